/* verb_quantize.c - `lowbit quantize`: a file in fewer bits. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "job_talk.h"

/* ---- the command line ---------------------------------------------------- */

/* bitsandbytes' files hold what its own arithmetic gives. */
static bool read_config(const arguments *a, lb_quant_config *c)
{
    static const char *const compat[] = {"native", "seed", "bnb-cuda",
                                         "bnb-cpu", NULL};
    static const char *const scale[] = {"",    "none",  "tensor",
                                        "row", "block", NULL};
    static const char *const threshold[] = {"std", "absmean", NULL};
    static const char *const class[] = {"autobitlinear", "bitlinear", NULL};
    const char *layout = a->value[OPTION_LAYOUT];
    int how = LB_COMPAT_NATIVE, of = LB_SCALE_DEFAULT, where = LB_THRESHOLD_STD;
    int divides = 0;
    if (layout && strcmp(layout, "bnb") == 0) how = LB_COMPAT_BNB_CPU;
    if (!argument_word(a, OPTION_COMPAT, compat, &how) ||
        !argument_word(a, OPTION_SCALE, scale, &of) ||
        !argument_word(a, OPTION_THRESHOLD, threshold, &where) ||
        !argument_word(a, OPTION_LINEAR_CLASS, class, &divides) ||
        !argument_number(a, OPTION_BLOCK_SIZE, 1, INT32_MAX, &c->block_size))
        return false;
    c->format = a->value[OPTION_TYPE];
    c->compat = (lb_compat)how;
    c->scale = (lb_scale)of;
    c->threshold = (lb_threshold)where;
    if (divides) c->meaning = LB_MEANS_INVERSE;
    c->double_quant = a->count[OPTION_DOUBLE_QUANT] != 0;
    return true;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* What kind of file a name asks for; NULL: it does not say. */
static const char *kind_of(const char *path)
{
    return ends_with(path, ".gguf")          ? "gguf"
           : ends_with(path, ".npz")         ? "npz"
           : ends_with(path, ".npy")         ? "npy"
           : ends_with(path, ".safetensors") ? "safetensors"
                                             : NULL;
}

/* A directory, if it is one, is called so, or would be one of a model that does
 * not look like a file. */
static bool is_directory(const char *from, const char *to)
{
    struct stat st;
    if (stat(to, &st) == 0) return S_ISDIR(st.st_mode);
    if (ends_with(to, "/")) return true;
    return !kind_of(to) && stat(from, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_empty_directory(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    if (!d) return false;
    while (n < 3 && readdir(d))
        n++;
    closedir(d);
    return n < 3; /* . and .. */
}

static bool check_places(const arguments *a)
{
    struct stat st;
    const char *to = a->value[OPTION_OUTPUT];
    if (!to || !a->value[OPTION_TYPE]) {
        complain(USAGE, "quantize needs --%s; see lowbit quantize --help",
                 to ? "type" : "output");
        return false;
    }
    if (!*to) {
        complain(USAGE, "--output is empty");
        return false;
    }
    if (stat(to, &st) == 0 && !a->count[OPTION_FORCE] &&
        !is_empty_directory(to)) {
        complain(USAGE, "%s: is there already; --force replaces it", to);
        return false;
    }
    return true;
}

static verdict run(const arguments *a)
{
    static const char *const layouts[] = {"native", "bnb", "bitnet", "seed",
                                          NULL};
    lb_quantize_options o = {.struct_size = sizeof o,
                             .done = job_talk_done,
                             .progress = job_talk_progress};
    job_talk t;
    int64_t jobs = 0, memory = 0;
    int layout = 0;
    const char *to = a->value[OPTION_OUTPUT];
    if (!check_places(a) ||
        !argument_word(a, OPTION_LAYOUT, layouts, &layout) ||
        !argument_number(a, OPTION_JOBS, 1, 256, &jobs) ||
        !argument_number(a, OPTION_MAX_MEMORY, 1, INT64_MAX, &memory) ||
        !read_config(a, &o.config) ||
        !job_talk_begin(&t, a, "quantize", a->operand[0],
                        a->value[OPTION_OUTPUT]))
        return USAGE;
    o.layout = layouts[layout];
    o.done_user = o.progress_user = &t;
    o.measure = t.measure;
    o.max_memory = (uint64_t)memory;
    o.no_sync = a->count[OPTION_NO_SYNC] != 0;
    o.resume = a->count[OPTION_RESUME] != 0;
    o.directory = is_directory(a->operand[0], to);
    o.kind = o.directory ? NULL : kind_of(to);
    lb_ctx *cx = context_open((int)jobs);
    verdict v = cx ? DONE : FAILED;
    if (cx && !lb_quantize_file(cx, a->operand[0], to, &o)) {
        progress_clear(&t.progress);
        v = complain_of(cx);
    }
    v = job_talk_end(&t, cx, v);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {
    OPTION_LINEAR_CLASS, OPTION_OUTPUT,     OPTION_TYPE,       OPTION_LAYOUT,
    OPTION_COMPAT,       OPTION_BLOCK_SIZE, OPTION_SCALE,      OPTION_THRESHOLD,
    OPTION_DOUBLE_QUANT, OPTION_JOBS,       OPTION_MAX_MEMORY, OPTION_NO_SYNC,
    OPTION_FORCE,        OPTION_QUIET,      OPTION_REPORT,     OPTION_VERBOSE,
    OPTION_RESUME,       N_OPTIONS};

const verb verb_quantize = {
    .name = "quantize",
    .operands = "SRC",
    .summary = "Writes a file, or a model, whose weights take fewer bits",
    .help = "SRC is what lowbit info lists, with dense arrays. Norms, "
            "embeddings, routers, the\noutput head, vectors and tiny arrays "
            "stay as they are, and so does what the layout\nhas no place for; "
            "each is named with the reason. Of a directory a directory is\n"
            "made, with its other files, unless the output is called .gguf, "
            ".safetensors or\n.npz. It is written whole or not at all: as "
            "OUTPUT.partial, which a run with --resume\ntakes up.",
    .examples = "lowbit quantize model.safetensors -o small.safetensors --type "
                "nf4 --report lost.html",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
};
