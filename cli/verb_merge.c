/* verb_merge.c - `lowbit merge`: a checkpoint from the files of its ranks. */
#include <inttypes.h>
#include <string.h>

#include "interrupt.h"
#include "places.h"

static void sum_up(lb_ctx *cx, const char *to)
{
    lb_file *f = lb_file_open(cx, to, NULL);
    uint64_t nbytes = 0;
    const int64_t n = lb_file_count(f);
    for (int64_t i = 0; i < n; i++)
        nbytes += lb_file_entry(f, i)->nbytes;
    fputs("lowbit: ", stderr);
    put_text(stderr, to, strlen(to));
    fprintf(stderr, ": %" PRId64 " array%s of %s merged\n", n,
            n == 1 ? "" : "s", show_bytes(nbytes).s);
    lb_file_close(f);
}

static verdict run(const arguments *a)
{
    const char *to = a->value[OPTION_OUTPUT];
    if (!place_is_free(a, "merge")) return USAGE;
    lb_ctx *cx = context_open(1);
    if (!cx) return FAILED;
    verdict v = DONE;
    const lb_merge_options o = {.struct_size = sizeof o,
                                .no_sync = a->count[OPTION_NO_SYNC] != 0,
                                .cancel = interrupted};
    interrupt_defer(true);
    if (!lb_merge_file(cx, a->operand[0], to, &o))
        v = interrupt_verdict(cx, to);
    else if (!a->count[OPTION_QUIET])
        sum_up(cx, to);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {
    OPTION_OUTPUT, OPTION_FORCE, OPTION_NO_SYNC, OPTION_QUIET, N_OPTIONS};

const verb verb_merge = {
    .name = "merge",
    .operands = "DIR",
    .summary = "Makes the checkpoint again that shard has cut",
    .help = "DIR holds the files of all ranks. The result has the bytes that "
            "the checkpoint had: it\nis a file, or a directory with an index, "
            "as that was, and is written whole or not at all.",
    .examples = "lowbit merge ranks/ -o model.safetensors",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
};
