/* arguments.c - flags and lists, checked; and --help.
 *
 * One table says which flags there are, what each takes and in which modes it
 * means something: what would be ignored is refused.
 */
#include "arguments.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"

/* ---- values ------------------------------------------------------------- */

typedef struct choice {
    const char *name; /* NULL ends the table */
    int64_t value;
} choice;

static const choice precisions[] = {{"highest", LB_PRECISION_HIGHEST},
                                    {"fast", LB_PRECISION_FAST},
                                    {"fastest", LB_PRECISION_FASTEST},
                                    {NULL, 0}};
static const choice orients[] = {{"wt", ORIENT_WT}, {"w", ORIENT_W}, {NULL, 0}};
static const choice acts[] = {
    {"f32", LB_F32}, {"bf16", LB_BF16}, {"f16", LB_F16}, {NULL, 0}};
static const choice places[] = {
    {"warm", PLACE_WARM}, {"dram", PLACE_DRAM}, {NULL, 0}};

static const char *name_of(const choice *table, int64_t value)
{
    for (; table->name; table++)
        if (table->value == value) return table->name;
    return "?";
}

const char *precision_name(lb_precision precision)
{
    return name_of(precisions, precision);
}

const char *orient_name(bench_orient orient)
{
    return name_of(orients, orient);
}

const char *place_name(bench_place place)
{
    return name_of(places, place);
}

/* The next item of a list; false after the last. Items that are empty or too
 * long come as "", which no list takes. */
static bool next_item(const char **text, char item[NAME_SIZE])
{
    if (!*text) return false;
    const char *const end = strchr(*text, ',');
    const size_t n = end ? (size_t)(end - *text) : strlen(*text);
    item[0] = 0;
    if (n < NAME_SIZE) {
        memcpy(item, *text, n);
        item[n] = 0;
    }
    *text = end ? end + 1 : NULL;
    return true;
}

static bool to_number(const char *text, char **end, int64_t most, int64_t *out)
{
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    const long long value = strtoll(text, end, 10);
    *out = value;
    return !errno && value >= 1 && value <= most;
}

static bool full(const char *flag)
{
    return complain("%s: more than %d items", flag, LIST_MAX);
}

static bool set_numbers(const char *flag, const char *text, int64_t most,
                        number_list *list)
{
    char item[NAME_SIZE], *end;
    for (list->n = 0; next_item(&text, item); list->n++) {
        if (list->n == LIST_MAX) return full(flag);
        if (!to_number(item, &end, most, &list->at[list->n]) || *end)
            return complain("%s: '%s' is not a number from 1 to %lld", flag,
                            item, (long long)most);
    }
    return true;
}

static bool set_choices(const char *flag, const char *text, const choice *table,
                        number_list *list)
{
    char item[NAME_SIZE];
    for (list->n = 0; next_item(&text, item); list->n++) {
        const choice *c = table;
        while (c->name && strcmp(c->name, item) != 0)
            c++;
        if (list->n == LIST_MAX) return full(flag);
        if (!c->name) {
            char known[128] = "";
            for (c = table; c->name; c++) {
                const size_t used = strlen(known);
                snprintf(known + used, sizeof known - used, "%s%s",
                         used ? ", " : "", c->name);
            }
            return complain("%s: '%s' is none of %s", flag, item, known);
        }
        list->at[list->n] = c->value;
    }
    return true;
}

/* ---- flags -------------------------------------------------------------- */

enum {
    M_MOST = 1 << 20,
    THREADS_MOST = 256,
    DIM_MOST = 1 << 24,
    MIB_MOST = 1 << 16
};

typedef bool set_flag(bench_options *o, const char *flag, const char *value);

static bool set_formats(bench_options *o, const char *flag, const char *value)
{
    name_list *const list = &o->formats;
    char item[NAME_SIZE];
    for (list->n = 0; next_item(&value, item); list->n++) {
        if (list->n == LIST_MAX) return full(flag);
        if (!item[0]) return complain("%s: an empty or too long name", flag);
        memcpy(list->at[list->n], item, sizeof item);
    }
    return true;
}

static bool set_precisions(bench_options *o, const char *flag,
                           const char *value)
{
    return set_choices(flag, value, precisions, &o->precisions);
}

static bool set_m(bench_options *o, const char *flag, const char *value)
{
    return set_numbers(flag, value, M_MOST, &o->m);
}

/* As many as the library would take by itself, at any level. */
static int all_threads(void)
{
    lb_ctx *const cx = lb_open(&(lb_options){.isa = "ref"});
    const int all = cx ? lb_threads(cx) : 1;
    lb_close(cx);
    return all;
}

static bool set_threads(bench_options *o, const char *flag, const char *value)
{
    number_list *const list = &o->threads;
    char item[NAME_SIZE], *end;
    for (list->n = 0; next_item(&value, item); list->n++) {
        if (list->n == LIST_MAX) return full(flag);
        int64_t *const n = &list->at[list->n];
        if (!strcmp(item, "all"))
            *n = all_threads();
        else if (!to_number(item, &end, THREADS_MOST, n) || *end)
            return complain("%s: '%s' is neither a number from 1 to %d nor all",
                            flag, item, THREADS_MOST);
    }
    return true;
}

static bool set_orients(bench_options *o, const char *flag, const char *value)
{
    return set_choices(flag, value, orients, &o->orients);
}

static bool set_acts(bench_options *o, const char *flag, const char *value)
{
    return set_choices(flag, value, acts, &o->acts);
}

static bool set_places(bench_options *o, const char *flag, const char *value)
{
    return set_choices(flag, value, places, &o->places);
}

static bool set_depths(bench_options *o, const char *flag, const char *value)
{
    return set_numbers(flag, value, DIM_MOST, &o->depths);
}

static bool set_shapes(bench_options *o, const char *flag, const char *value)
{
    shape_list *const list = &o->shapes;
    char item[NAME_SIZE], *end;
    for (list->n = 0; next_item(&value, item); list->n++) {
        if (list->n == LIST_MAX) return full(flag);
        int64_t n, k;
        if (!to_number(item, &end, DIM_MOST, &n) || *end != 'x' ||
            !to_number(end + 1, &end, DIM_MOST, &k) || *end)
            return complain("%s: '%s' is not a shape such as 4096x4096 "
                            "(outputs x inputs, each from 1 to %d)",
                            flag, item, DIM_MOST);
        list->at[list->n].n = n;
        list->at[list->n].k = k;
    }
    return true;
}

static bool set_size(bench_options *o, const char *flag, const char *value)
{
    char *end;
    if (!to_number(value, &end, MIB_MOST, &o->mib) || *end)
        return complain("%s: '%s' is not a number of MiB from 1 to %d", flag,
                        value, MIB_MOST);
    return true;
}

static bool set_seconds(bench_options *o, const char *flag, const char *value)
{
    char *end;
    o->seconds = strtod(value, &end);
    if (end == value || *end || !(o->seconds >= 0 && o->seconds <= 3600))
        return complain("%s: '%s' is not a number from 0 to 3600", flag, value);
    return true;
}

static bool set_isa(bench_options *o, const char *flag, const char *value)
{
    (void)flag;
    o->isa = value;
    return true;
}

static bool set_svg(bench_options *o, const char *flag, const char *value)
{
    o->svg = value;
    return *value || complain("%s: no name of a file", flag);
}

/* Modes as bits. */
#define IN(mode) (1u << (mode))
#define EVERY                                                                  \
    (IN(MODE_SWEEP) | IN(MODE_OPENBLAS) | IN(MODE_CODEC) | IN(MODE_ERROR) |    \
     IN(MODE_LIMITS) | IN(MODE_CALLS) | IN(MODE_OPS))
#define PRODUCTS (IN(MODE_SWEEP) | IN(MODE_OPENBLAS))

static const struct flag {
    const char *name;
    unsigned modes;
    set_flag *set;
} flags[] = {
    {"--formats",
     IN(MODE_SWEEP) | IN(MODE_CODEC) | IN(MODE_ERROR) | IN(MODE_CALLS) |
         IN(MODE_OPS),
     set_formats},
    {"--precisions", IN(MODE_SWEEP) | IN(MODE_ERROR), set_precisions},
    {"--m", PRODUCTS, set_m},
    {"--shape", PRODUCTS, set_shapes},
    {"--orient", PRODUCTS | IN(MODE_ERROR), set_orients},
    {"--act", IN(MODE_SWEEP) | IN(MODE_CODEC) | IN(MODE_ERROR), set_acts},
    {"--weights", IN(MODE_SWEEP), set_places},
    {"--k", IN(MODE_ERROR), set_depths},
    {"--size", IN(MODE_CODEC), set_size},
    {"--svg", IN(MODE_SWEEP), set_svg},
    {"--threads", EVERY, set_threads},
    {"--isa", EVERY, set_isa},
    {"--seconds", EVERY, set_seconds},
};

static const struct {
    const char *name;
    bench_mode mode;
} modes[] = {
    {"--openblas", MODE_OPENBLAS}, {"--codec", MODE_CODEC},
    {"--error", MODE_ERROR},       {"--limits", MODE_LIMITS},
    {"--calls", MODE_CALLS},       {"--ops", MODE_OPS},
    {"--help", MODE_HELP},         {"-h", MODE_HELP},
    {"--version", MODE_VERSION},
};

enum { N_FLAGS = sizeof flags / sizeof *flags };
enum { N_MODES = sizeof modes / sizeof *modes };

/* The number of the flag that arg begins with, as "--m" or "--m=8"; -1. */
static int find_flag(const char *arg, const char **value)
{
    for (int i = 0; i < N_FLAGS; i++) {
        const size_t n = strlen(flags[i].name);
        if (strncmp(arg, flags[i].name, n) != 0) continue;
        if (arg[n] && arg[n] != '=') continue;
        *value = arg[n] ? arg + n + 1 : NULL;
        return i;
    }
    return -1;
}

static const char *mode_flag(bench_mode mode)
{
    for (int i = 0; i < N_MODES; i++)
        if (modes[i].mode == mode) return modes[i].name;
    return "the sweep";
}

static bool set_mode(bench_options *o, const char *arg)
{
    for (int i = 0; i < N_MODES; i++) {
        if (strcmp(arg, modes[i].name) != 0) continue;
        if (o->mode != MODE_SWEEP && o->mode != modes[i].mode)
            return complain("%s and %s: one at a time", mode_flag(o->mode),
                            arg);
        o->mode = modes[i].mode;
        return true;
    }
    return complain("unknown argument '%s'; --help lists what there is", arg);
}

/* ---- defaults ----------------------------------------------------------- */

static void fill_defaults(bench_options *o)
{
    const bool error = o->mode == MODE_ERROR, codec = o->mode == MODE_CODEC;
    const char *const formats = codec ? "all" : "f32,int8,nf4,ternary,binary";
    if (!o->formats.n) set_formats(o, "", formats);
    if (!o->precisions.n) set_precisions(o, "", "highest,fast,fastest");
    if (!o->m.n) set_m(o, "", "1,2,8,32,128,512");
    if (!o->shapes.n) set_shapes(o, "", "4096x4096");
    if (!o->orients.n) set_orients(o, "", error ? "wt,w" : "wt");
    if (!o->acts.n) set_acts(o, "", codec ? "f32,bf16,f16" : "f32");
    if (!o->places.n) set_places(o, "", "warm");
    if (!o->depths.n)
        set_depths(o, "", "1,33,64,255,1000,4096,4097,11008,16384");
    if (!o->mib) o->mib = 256;
    if (o->seconds < 0) o->seconds = 1.2;
    if (!o->threads.n &&
        (codec || o->mode == MODE_CALLS || o->mode == MODE_OPS))
        set_threads(o, "", "1");
    if (!o->threads.n) {
        const int all = all_threads();
        o->threads = (number_list){all > 1 && !error ? 2 : 1, {1, all}};
        if (o->threads.n == 1) o->threads.at[0] = all;
    }
}

bool arguments_parse(int argc, char **argv, bench_options *o)
{
    unsigned given = 0; /* bit i: flags[i] */
    *o = (bench_options){.seconds = -1};
    for (int i = 1; i < argc; i++) {
        const char *value = NULL;
        const int f = find_flag(argv[i], &value);
        if (f < 0 && !strcmp(argv[i], "--json")) {
            o->json = true;
            continue;
        }
        if (f < 0) {
            if (!set_mode(o, argv[i])) return false;
            continue;
        }
        if (given & 1u << f) return complain("%s twice", flags[f].name);
        if (!value && ++i == argc)
            return complain("%s wants a value", flags[f].name);
        if (!flags[f].set(o, flags[f].name, value ? value : argv[i]))
            return false;
        given |= 1u << f;
    }
    if (o->mode == MODE_HELP || o->mode == MODE_VERSION) return true;
    for (int f = 0; f < N_FLAGS; f++)
        if (given & 1u << f && !(flags[f].modes & IN(o->mode)))
            return complain("%s means nothing to %s", flags[f].name,
                            mode_flag(o->mode));
    fill_defaults(o);
    return true;
}

void arguments_help(void)
{
    fputs(
        "usage: lowbit-bench [WHAT] [OPTION VALUE]...\n"
        "\n"
        "Measures the library on this machine, next to what the machine can\n"
        "do, which it measures too. Lists are separated by commas.\n"
        "\n"
        "What is measured:\n"
        "  (nothing said)   products x W over formats, precisions, M, threads\n"
        "  --openblas       f32 products next to OpenBLAS, in alternating\n"
        "                   rounds; loaded when asked for, from Debian's\n"
        "                   libopenblas0-pthread\n"
        "  --codec          quantizing, and reading back into memory that is\n"
        "                   the caller's and was touched before\n"
        "  --error          errors of products next to their bounds; fails if\n"
        "                   one is above\n"
        "  --ops            elementwise, reductions, gather, transpose and\n"
        "                   convolutions, on packed operands and dense ones\n"
        "  --limits         only what the machine can do\n"
        "  --calls          what the smallest products cost, in ns\n"
        "  --help, --version\n"
        "\n"
        "Options, with their defaults:\n"
        "  --formats f32,int8,nf4,ternary,binary   also bf16 and f16 (dense),\n"
        "                   any other of the library's, or all\n"
        "  --precisions highest,fast,fastest       (dense weights: highest)\n"
        "  --m 1,2,8,32,128,512     rows of x\n"
        "  --shape 4096x4096        outputs x inputs, a list\n"
        "  --threads 1,all          (--codec, --calls, --ops: 1; --error: "
        "all)\n"
        "  --orient wt      wt: x @ W^T, W (out, in); w: x @ W, W (in, out)\n"
        "                   (--error: both)\n"
        "  --act f32        dtype of x: f32, bf16, f16; of --codec: that of "
        "the\n"
        "                   dense side, by default all three\n"
        "  --weights warm   warm: one array; dram: at least 640 MiB of "
        "distinct\n"
        "                   ones in turn\n"
        "  --k LIST         inputs, for --error\n"
        "  --size 256       MiB of f32, for --codec\n"
        "  --isa LEVEL      strongest level to use: ref, avx2, avx512, ...\n"
        "  --seconds 1.2    most to spend on one figure\n"
        "  --svg FILE       also draw the products as a roofline plot\n"
        "  --json           one JSON object a line instead of a table\n"
        "\n"
        "GFLOP/s is 2 M N K / time, of the median sample (and of the best).\n"
        "Error is Frobenius, relative, against double precision on the "
        "decoded\n"
        "weights. \"of limit\" compares with the smaller of what the cores "
        "can\n"
        "multiply, or look up, in the way of the kernel that ran (--json "
        "names\n"
        "it) and what the weights can be read at.\n"
        "On a machine that is shared, run it as `chrt -f 10 lowbit-bench ...`\n"
        "and compare only figures of one run.\n",
        stdout);
}
