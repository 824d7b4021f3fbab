/* bench_options.c - the options of `lowbit bench`: lists, checked. One table
 * lists which benchmarks use an option: others refuse it. */
#include "bench_options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_rows.h"
#include "verb.h"

/* ---- values ------------------------------------------------------------- */

typedef struct option_choice {
    const char *name; /* NULL ends the table */
    int64_t value;
} option_choice;

static const option_choice precisions[] = {{"highest", LB_PRECISION_HIGHEST},
                                           {"fast", LB_PRECISION_FAST},
                                           {"fastest", LB_PRECISION_FASTEST},
                                           {NULL, 0}};
static const option_choice orients[] = {
    {"wt", ORIENT_WT}, {"w", ORIENT_W}, {NULL, 0}};
static const option_choice acts[] = {
    {"f32", LB_F32}, {"bf16", LB_BF16}, {"f16", LB_F16}, {NULL, 0}};
static const option_choice places[] = {
    {"warm", PLACE_WARM}, {"dram", PLACE_DRAM}, {NULL, 0}};

static const char *name_of(const option_choice *table, int64_t value)
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
 * long become "", which is invalid everywhere. */
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
    return bench_misused("%s: more than %d items", flag, LIST_MAX);
}

static bool set_numbers(const char *flag, const char *text, int64_t most,
                        number_list *list)
{
    char item[NAME_SIZE], *end;
    for (list->n = 0; next_item(&text, item); list->n++) {
        if (list->n == LIST_MAX) return full(flag);
        if (!to_number(item, &end, most, &list->at[list->n]) || *end)
            return bench_misused("%s takes integers from 1 to %lld, not '%s'",
                                 flag, (long long)most, item);
    }
    return true;
}

static bool set_choices(const char *flag, const char *text,
                        const option_choice *table, number_list *list)
{
    char item[NAME_SIZE];
    for (list->n = 0; next_item(&text, item); list->n++) {
        const option_choice *c = table;
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
            return bench_misused("%s takes %s, not '%s'", flag, known, item);
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
        if (!item[0]) return bench_misused("%s: empty or too long name", flag);
        for (size_t i = 0; i < sizeof item; i++) /* in any case */
            list->at[list->n][i] = (char)tolower((unsigned char)item[i]);
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

/* The library's default, at any level. */
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
            return bench_misused(
                "%s takes integers from 1 to %d or all, not '%s'", flag,
                THREADS_MOST, item);
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
            return bench_misused(
                "%s takes shapes NxK such as 4096x4096, each from 1 "
                "to %d, not '%s'",
                flag, DIM_MOST, item);
        list->at[list->n].n = n;
        list->at[list->n].k = k;
    }
    return true;
}

static bool set_size(bench_options *o, const char *flag, const char *value)
{
    char *end;
    if (!to_number(value, &end, MIB_MOST, &o->mib) || *end)
        return bench_misused("%s takes an integer (MiB) from 1 to %d, not '%s'",
                             flag, MIB_MOST, value);
    return true;
}

static bool set_seconds(bench_options *o, const char *flag, const char *value)
{
    char *end;
    o->seconds = strtod(value, &end);
    if (end == value || *end || !(o->seconds >= 0 && o->seconds <= 3600))
        return bench_misused("%s takes a number from 0 to 3600, not '%s'", flag,
                             value);
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
    return *value || bench_misused("%s is empty", flag);
}

/* Benchmarks as bits. */
#define IN(mode) (1u << (mode))
#define EVERY                                                                  \
    (IN(MODE_SUMMARY) | IN(MODE_SWEEP) | IN(MODE_OPENBLAS) | IN(MODE_CODEC) |  \
     IN(MODE_ERROR) | IN(MODE_LIMITS) | IN(MODE_CALLS) | IN(MODE_OPS))
#define PRODUCTS (IN(MODE_SWEEP) | IN(MODE_OPENBLAS))

static const struct flag {
    option_id id;
    unsigned modes;
    set_flag *set;
} flags[] = {
    {OPTION_TYPE,
     IN(MODE_SUMMARY) | IN(MODE_SWEEP) | IN(MODE_CODEC) | IN(MODE_ERROR) |
         IN(MODE_CALLS) | IN(MODE_OPS),
     set_formats},
    {OPTION_PRECISIONS, IN(MODE_SWEEP) | IN(MODE_ERROR), set_precisions},
    {OPTION_M, IN(MODE_SUMMARY) | PRODUCTS, set_m},
    {OPTION_SHAPE, IN(MODE_SUMMARY) | PRODUCTS, set_shapes},
    {OPTION_ORIENT, IN(MODE_SUMMARY) | PRODUCTS | IN(MODE_ERROR), set_orients},
    {OPTION_ACT, IN(MODE_SWEEP) | IN(MODE_CODEC) | IN(MODE_ERROR), set_acts},
    {OPTION_WEIGHTS, IN(MODE_SWEEP), set_places},
    {OPTION_K, IN(MODE_ERROR), set_depths},
    {OPTION_SIZE, IN(MODE_CODEC), set_size},
    {OPTION_SVG, IN(MODE_SWEEP), set_svg},
    {OPTION_JOBS, EVERY, set_threads},
    {OPTION_ISA, EVERY, set_isa},
    {OPTION_SECONDS, EVERY, set_seconds},
};

static const struct {
    option_id id;
    bench_mode mode;
} modes[] = {
    {OPTION_PRODUCTS, MODE_SWEEP}, {OPTION_OPENBLAS, MODE_OPENBLAS},
    {OPTION_CODEC, MODE_CODEC},    {OPTION_ERROR, MODE_ERROR},
    {OPTION_LIMITS, MODE_LIMITS},  {OPTION_CALLS, MODE_CALLS},
    {OPTION_OPS, MODE_OPS},
};

enum { N_FLAGS = sizeof flags / sizeof *flags };
enum { N_MODES = sizeof modes / sizeof *modes };

/* ---- defaults ------------------------------------------------------------ */

static void fill_threads(bench_options *o)
{
    const int all = all_threads();
    if (o->mode == MODE_CODEC || o->mode == MODE_CALLS || o->mode == MODE_OPS)
        o->threads = (number_list){1, {1}};
    else if (all == 1 || o->mode == MODE_ERROR || o->mode == MODE_SUMMARY)
        o->threads = (number_list){1, {all}};
    else
        o->threads = (number_list){2, {1, all}};
}

static void fill_defaults(bench_options *o)
{
    const bool error = o->mode == MODE_ERROR, codec = o->mode == MODE_CODEC;
    const bool brief = o->mode == MODE_SUMMARY;
    const char *const formats =
        codec || brief ? "all" : "f32,int8,nf4,ternary,binary";
    if (!o->formats.n) set_formats(o, "", formats);
    if (!o->precisions.n) set_precisions(o, "", "highest,fast,fastest");
    if (!o->m.n) set_m(o, "", brief ? "1" : "1,2,8,32,128,512");
    if (!o->shapes.n) set_shapes(o, "", "4096x4096");
    if (!o->orients.n) set_orients(o, "", error ? "wt,w" : "wt");
    if (!o->acts.n) set_acts(o, "", codec ? "f32,bf16,f16" : "f32");
    if (!o->places.n) set_places(o, "", "warm");
    if (!o->depths.n)
        set_depths(o, "", "1,33,64,255,1000,4096,4097,11008,16384");
    if (!o->mib) o->mib = 256;
    if (o->seconds < 0) o->seconds = brief ? 0.25 : 1.2;
    if (!o->threads.n) fill_threads(o);
}

/* ---- all ---------------------------------------------------------------- */

static bool read_mode(const arguments *a, bool alias, bench_options *o,
                      const char **name)
{
    int n = 0;
    o->mode = alias ? MODE_SWEEP : MODE_SUMMARY;
    *name = alias ? "--products" : "the summary (see lowbit bench --help)";
    for (int i = 0; i < N_MODES; i++) {
        if (!a->count[modes[i].id]) continue;
        if (n++)
            return bench_misused("%s and --%s: one benchmark at a time", *name,
                                 option_rows[modes[i].id].name);
        static char text[32];
        snprintf(text, sizeof text, "--%s", option_rows[modes[i].id].name);
        o->mode = modes[i].mode;
        *name = text;
    }
    return true;
}

bool bench_options_read(const arguments *a, bool alias, bench_options *o)
{
    const char *mode;
    *o = (bench_options){.seconds = a->count[OPTION_QUICK] ? 0 : -1,
                         .json = a->count[OPTION_JSON] != 0,
                         .lines = alias};
    if (!read_mode(a, alias, o, &mode)) return false;
    for (int f = 0; f < N_FLAGS; f++) {
        const option_id id = flags[f].id;
        char name[32];
        snprintf(name, sizeof name, "--%s", option_rows[id].name);
        if (!a->count[id]) continue;
        if (a->count[id] > 1) return bench_misused("%s is given twice", name);
        if (!flags[f].set(o, name, a->value[id])) return false;
        if (!(flags[f].modes & IN(o->mode)))
            return bench_misused("%s does not apply to %s", name, mode);
    }
    fill_defaults(o);
    if (o->mode == MODE_SUMMARY &&
        (o->m.n > 1 || o->shapes.n > 1 || o->threads.n > 1 || o->orients.n > 1))
        return bench_misused(
            "lists of M, shapes, orientations and threads need --products");
    return true;
}
