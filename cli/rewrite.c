/* rewrite.c - the command line of verbs that convert a file by lb_convert_file.
 */
#include "rewrite.h"

#include <string.h>

#include "interrupt.h"
#include "launch.h"
#include "places.h"

/* From --to, or the extension of the output. */
static bool read_kind(const arguments *a, bool target, const char **kind)
{
    static const char *const kinds[] = {"safetensors", "gguf", "npy", "npz",
                                        NULL};
    const char *to = a->value[OPTION_OUTPUT];
    const char *said = to ? place_kind(to) : NULL;
    int k = 0;
    const bool given = a->count[OPTION_TO] && !target;
    if (given && !argument_word(a, OPTION_TO, kinds, &k)) return false;
    *kind = said && !given ? said : kinds[k];
    return true;
}

bool rewrite_dtype(const arguments *a, lb_dtype *out)
{
    static const char *const word[] = {"", "f32", "f16", "bf16", "f64", NULL};
    static const lb_dtype dtype[] = {LB_NO_DTYPE, LB_F32, LB_F16, LB_BF16,
                                     LB_F64};
    int k = 0;
    if (!argument_word(a, OPTION_DTYPE, word + 1, &k)) return false;
    *out = dtype[a->count[OPTION_DTYPE] ? k + 1 : 0];
    return true;
}

verdict rewrite_run(const rewrite *how, const arguments *a)
{
    const char *kind;
    job_talk talk;
    int64_t jobs = 0;
    uint64_t memory = 0;
    if (!place_is_free(a, how->what) || !read_kind(a, how->target, &kind) ||
        !argument_number(a, OPTION_JOBS, 1, 256, &jobs) ||
        !argument_bytes(a, OPTION_MAX_MEMORY, MEMORY_LEAST, &memory))
        return USAGE;
    verdict v = job_talk_begin(&talk, a, how->what, a->operand[0],
                               a->value[OPTION_OUTPUT]);
    if (v != DONE) return v;
    talk.moves = how->target && strcmp(how->target, "gguf") != 0;
    const lb_convert_options o = {.struct_size = sizeof o,
                                  .kind = kind,
                                  .layout = how->layout,
                                  .dtype = how->dtype,
                                  .keep = !how->decode,
                                  .strict = true,
                                  .done = job_talk_done,
                                  .done_user = &talk,
                                  .progress = job_talk_progress,
                                  .progress_user = &talk,
                                  .max_memory = memory,
                                  .measure = talk.measure,
                                  .no_sync = a->count[OPTION_NO_SYNC] != 0,
                                  .dry_run = a->count[OPTION_DRY_RUN] != 0,
                                  .resume = a->count[OPTION_RESUME] != 0,
                                  .verify = a->count[OPTION_VERIFY] != 0,
                                  .directory = place_is_directory(a),
                                  .comm = a->comm,
                                  .cancel = interrupted,
                                  .discarded = job_talk_discarded,
                                  .discarded_user = &talk,
                                  .target = how->target,
                                  .allow = how->allow,
                                  .block_size = how->block_size};
    if (a->comm && !jobs) jobs = launch_threads();
    lb_ctx *cx = context_open((int)jobs);
    if (!cx) v = complaint_verdict();
    if (cx && !place_is_model(a, cx, kind)) v = USAGE;
    if (v == DONE &&
        !lb_convert_file(cx, a->operand[0], a->value[OPTION_OUTPUT], &o))
        v = job_talk_failed(&talk, cx);
    v = job_talk_end(&talk, cx, v);
    lb_close(cx);
    return v;
}
