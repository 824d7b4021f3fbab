/* verb_merge.c - `lowbit merge`: reassembles a checkpoint from files of ranks.
 */
#include <inttypes.h>
#include <string.h>

#include "interrupt.h"
#include "places.h"

static void sum_up(const lb_file *f, const char *to)
{
    uint64_t nbytes = 0;
    const int64_t n = lb_file_count(f);
    for (int64_t i = 0; i < n; i++)
        nbytes += lb_file_entry(f, i)->nbytes;
    fputs("wrote ", stderr);
    put_text(stderr, to, strlen(to));
    fprintf(stderr, ": %" PRId64 " array%s merged, %s\n", n, n == 1 ? "" : "s",
            show_bytes(nbytes).s);
}

static void print_json(const lb_file *f, const arguments *a)
{
    json *j = json_begin("merge");
    json_string(json_key(j, "source"), a->operand[0]);
    json_string(json_key(j, "output"), a->value[OPTION_OUTPUT]);
    json_open(json_key(j, "arrays"), '[');
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        json_next(j);
        json_open(j, '{');
        json_array_head(j, lb_file_entry(f, i));
        json_close(j, '}');
    }
    json_close(j, ']');
    json_end(j);
}

static verdict run(const arguments *a)
{
    const char *to = a->value[OPTION_OUTPUT];
    if (!place_is_free(a, "merge")) return USAGE;
    lb_ctx *cx = context_open(1);
    if (!cx) return complaint_verdict();
    verdict v = DONE;
    const lb_merge_options o = {.struct_size = sizeof o,
                                .no_sync = a->count[OPTION_NO_SYNC] != 0,
                                .cancel = interrupted};
    interrupt_defer(true);
    if (!lb_merge_file(cx, a->operand[0], to, &o))
        v = interrupt_verdict(cx, to);
    lb_file *f = v == DONE ? lb_file_open(cx, to, NULL) : NULL;
    if (v == DONE && !f) v = complain_of(cx);
    if (f && a->count[OPTION_JSON]) print_json(f, a);
    if (f && !a->count[OPTION_QUIET]) sum_up(f, to);
    lb_file_close(f);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {OPTION_OUTPUT,  OPTION_FORCE,
                                          OPTION_NO_SYNC, OPTION_QUIET,
                                          OPTION_JSON,    N_OPTIONS};

const verb verb_merge = {
    .name = "merge",
    .operands = "DIR",
    .summary = "Reassemble a checkpoint split by shard",
    .help = "DIR contains the files of all ranks. The output is byte-identical "
            "to the original checkpoint. It is a file if OUTPUT ends in "
            ".safetensors, otherwise a directory with all other files of the "
            "model. Output is atomic.",
    .examples = "lowbit merge ranks/ -o model.safetensors",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
};
