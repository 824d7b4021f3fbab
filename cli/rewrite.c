/* rewrite.c - the command line of verbs that write the arrays of a file into
 * another, as lb_convert_file does it. */
#include "rewrite.h"

#include <string.h>
#include <sys/stat.h>

/* ---- the command line ---------------------------------------------------- */

static const char *const kinds[] = {"safetensors", "gguf", "npy", "npz", NULL};

/* By --to, or by how the name ends. */
static bool read_kind(const arguments *a, const char **kind)
{
    const char *dot = strrchr(a->value[OPTION_OUTPUT], '.');
    int k = 0;
    for (int i = 0; dot && kinds[i]; i++)
        if (strcmp(dot + 1, kinds[i]) == 0) k = i;
    if (!argument_word(a, OPTION_TO, kinds, &k)) return false;
    *kind = kinds[k];
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

static bool check_places(const arguments *a, const char *what)
{
    struct stat st;
    const char *to = a->value[OPTION_OUTPUT];
    const size_t n = to ? strlen(to) : 0;
    if (!n) {
        complain(USAGE, "%s needs --output; see lowbit %s --help", what, what);
        return false;
    }
    const bool there = stat(to, &st) == 0;
    if (there && !a->count[OPTION_FORCE]) {
        complain(USAGE, "%s: is there already; --force replaces it", to);
        return false;
    }
    return true;
}

/* A directory, if it is one, is called so, or is made of one and not called as
 * a file would be. */
static bool is_directory(const arguments *a)
{
    struct stat st;
    const char *to = a->value[OPTION_OUTPUT], *dot = strrchr(to, '.');
    if (stat(to, &st) == 0) return S_ISDIR(st.st_mode);
    if (to[strlen(to) - 1] == '/') return true;
    for (int i = 0; dot && kinds[i]; i++)
        if (strcmp(dot + 1, kinds[i]) == 0) return false;
    return !a->count[OPTION_TO] && stat(a->operand[0], &st) == 0 &&
           S_ISDIR(st.st_mode);
}

verdict rewrite_run(const rewrite *how, const arguments *a)
{
    const char *kind;
    job_talk talk;
    int64_t jobs = 0;
    if (!check_places(a, how->what) || !read_kind(a, &kind) ||
        !argument_number(a, OPTION_JOBS, 1, 256, &jobs) ||
        !job_talk_begin(&talk, a, how->what, a->operand[0],
                        a->value[OPTION_OUTPUT]))
        return USAGE;
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
                                  .no_sync = a->count[OPTION_NO_SYNC] != 0,
                                  .directory = is_directory(a)};
    lb_ctx *cx = context_open((int)jobs);
    verdict v = cx ? DONE : FAILED;
    if (cx &&
        !lb_convert_file(cx, a->operand[0], a->value[OPTION_OUTPUT], &o)) {
        progress_clear(&talk.progress);
        v = complain_of(cx);
    }
    v = job_talk_end(&talk, cx, v);
    lb_close(cx);
    return v;
}
