/* test_io_select.c - which arrays are quantized, and to which type: patterns,
 * recipes, unsuitable shapes, forbidden choices, and target sizes. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "io/jobs/selection.h"
#include "refused.h"
#include "scratch.h"

static lb_ctx *cx;
static char source[SCRATCH_MAX], out[SCRATCH_MAX], recipe[SCRATCH_MAX];

enum { LAYERS = 6, MOST = 64 };

/* ---- a model with layers of different difficulty ----------------------- */

static int64_t n_arrays;
static char names[MOST][48];

static lb_array *numbers(int64_t rows, int64_t columns, int seed, double tail)
{
    const lb_key key = {3, (uint64_t)seed};
    lb_array *x = lb_random_normal(cx, key, LB_F32, LB_SHAPE(rows, columns));
    /* A power makes some values much larger than the others. */
    lb_array *far = lb_mul(cx, x, lb_mul(cx, x, x));
    return lb_mul(cx, lb_add(cx, x, lb_mul(cx, far, lb_scalar(cx, tail))),
                  lb_scalar(cx, 0.02 * (1 + seed % 5)));
}

static void make_source(void)
{
    lb_planned list[MOST] = {0};
    static const char *const part[] = {"attn.q", "attn.o", "mlp.up",
                                       "mlp.down"};
    for (int l = 0; l < LAYERS; l++)
        for (int k = 0; k < 4; k++) {
            const int64_t i = n_arrays++;
            snprintf(names[i], sizeof names[i], "layers.%d.%s.weight", l,
                     part[k]);
            list[i] =
                (lb_planned){.name = names[i],
                             .array = numbers(64 + 32 * k, k == 3 ? 288 : 256,
                                              (int)i, (double)(i % 3) * 0.3)};
        }
    list[n_arrays] =
        (lb_planned){.name = "embed.weight", .array = numbers(32, 256, 90, 0)};
    list[n_arrays + 1] =
        (lb_planned){.name = "odd.weight", .array = numbers(40, 100, 91, 0)};
    list[n_arrays + 2] = (lb_planned){
        .name = "norm", .array = lb_full(cx, LB_F32, LB_SHAPE(256), 1)};
    n_arrays += 3;
    CHECK(lb_save(cx, source, list, n_arrays, NULL));
}

/* ---- results ------------------------------------------------------------- */

typedef struct seen {
    const char *format[MOST], *kept[MOST];
    char text[MOST][64]; /* behind kept */
    int64_t block[MOST];
    lb_difference all;
    uint64_t nbytes;
    double elements;
    int fell_back;
} seen;

static int index_of(const char *name)
{
    for (int i = 0; i < LAYERS * 4; i++)
        if (strcmp(names[i], name) == 0) return i;
    return LAYERS * 4 + (name[0] == 'o' ? 1 : name[0] == 'n' ? 2 : 0);
}

static void note(void *user, const lb_written *w)
{
    seen *s = user;
    const int i = index_of(w->entry->name);
    s->format[i] = w->kept ? NULL : w->config->format;
    s->block[i] = w->kept ? 0 : w->config->block_size;
    snprintf(s->text[i], sizeof s->text[i], "%s", w->kept ? w->kept : "");
    s->kept[i] = w->kept ? s->text[i] : NULL;
    s->all.dd += w->error.dd;
    s->nbytes += w->nbytes;
    s->fell_back += w->fell_back;
    double n = 1;
    for (int k = 0; k < w->entry->rank; k++)
        n *= (double)w->entry->dim[k];
    s->elements += n;
}

static lb_quantize_options options(seen *s)
{
    *s = (seen){0};
    return (lb_quantize_options){.config = {.format = "nf4"},
                                 .done = note,
                                 .done_user = s,
                                 .measure = true,
                                 .no_sync = true};
}

static bool quantize(const lb_quantize_options *o)
{
    return lb_quantize_file(cx, source, out, o);
}

/* ---- patterns ------------------------------------------------------------ */

static void test_patterns(void)
{
    seen s;
    lb_quantize_options o = options(&s);
    o.selection = lb_selection_open(cx);
    CHECK(lb_selection_exclude(cx, o.selection, "^layers\\.0\\."));
    CHECK(lb_selection_include(cx, o.selection, "embed"));
    CHECK(lb_selection_override(cx, o.selection, "attn=int8"));
    CHECK(lb_selection_override(cx, o.selection,
                                "\\.(?:1|2)\\.mlp(?=\\.up)=nf4:block_size=32"));
    CHECK(lb_selection_override(cx, o.selection, "layers.3.attn.q=keep"));
    CHECK(lb_selection_override(cx, o.selection, "^embed|^norm=int8"));
    CHECK(quantize(&o));
    CHECK_EQ_S(lb_error(cx), "");
    for (int i = 0; i < 4; i++)
        CHECK_EQ_S(s.kept[i], "excluded");
    CHECK_EQ_S(s.format[4], "int8");
    CHECK_EQ_S(s.format[6], "nf4");
    CHECK(s.block[6] == 32 && s.block[7] == 0 && s.block[14] == 0);
    CHECK_EQ_S(s.kept[12], "kept by an override");
    CHECK_EQ_S(s.format[24], "int8");
    CHECK_EQ_S(s.kept[26], "1-D");
    /* Each pattern must match something. */
    CHECK(lb_selection_exclude(cx, o.selection, "lyers"));
    REFUSED(quantize(&o), LB_E_ARG,
            "exclude 'lyers' matches none of the 27 arrays");
    lb_selection_close(o.selection);
    o.selection = lb_selection_open(cx);
    REFUSED(lb_selection_include(cx, o.selection, "a(b"), LB_E_ARG,
            "missing closing parenthesis, at character 3");
    REFUSED(lb_selection_override(cx, o.selection, "x=nf5"), LB_E_ARG,
            "unknown type 'nf5': 5-bit formats are int5 "
            "(expected PATTERN=TYPE");
    REFUSED(lb_selection_override(cx, o.selection, "x"), LB_E_ARG, "no type");
    REFUSED(lb_selection_override(cx, o.selection, "x=nf4:block=3"), LB_E_ARG,
            "unknown key or invalid value");
    REFUSED(lb_selection_override(cx, o.selection, "x=nf4:scale="), LB_E_ARG,
            "unknown key or invalid value");
    /* Matching that would take too long is aborted. */
    CHECK(lb_selection_include(cx, o.selection, "^((.|[a-z0-9])+)+[A-Z]$"));
    REFUSED(quantize(&o), LB_E_ARG, "match limit exceeded");
    lb_selection_close(o.selection);
    lb_selection_close(NULL);
}

static bool read_recipe(lb_selection *s, const char *text)
{
    FILE *f = fopen(recipe, "w");
    const bool wrote = f && fputs(text, f) >= 0;
    const bool whole = f && fclose(f) == 0;
    CHECK(wrote && whole);
    return lb_selection_recipe(cx, s, recipe);
}

static void test_recipe(void)
{
    seen s;
    lb_quantize_options o = options(&s);
    o.selection = lb_selection_open(cx);
    CHECK(read_recipe(o.selection,
                      "# which\n\n  exclude   attn\\.o\\.\r\n"
                      "include ^embed\noverride up=ternary:scale=block,"
                      "threshold=absmean,block_size=128"));
    CHECK(quantize(&o));
    CHECK_EQ_S(s.kept[1], "excluded");
    CHECK_EQ_S(s.format[2], "ternary");
    CHECK(s.block[2] == 128 && s.format[24]);
    REFUSED(read_recipe(o.selection, "include a\nexcept b\n"), LB_E_CONTENT,
            "line 2: 'except b': expected include PATTERN");
    REFUSED(read_recipe(o.selection, "override a"), LB_E_CONTENT, "line 1");
    REFUSED(read_recipe(o.selection, "include"), LB_E_CONTENT, "line 1");
    REFUSED(lb_selection_recipe(cx, o.selection, "no/such"), LB_E_FILE,
            "cannot open");
    lb_selection_close(o.selection);
}

/* ---- shapes -------------------------------------------------------------- */

static void test_shapes(void)
{
    static const lb_quant_config other[] = {{.format = "tq1_0"},
                                            {.format = "q8_0"}};
    seen s;
    lb_quantize_options o = options(&s);
    o.kind = "gguf";
    o.config.format = "tq2_0";
    CHECK(quantize(&o));
    CHECK_EQ_S(s.format[0], "tq2_0");
    CHECK_EQ_S(s.kept[3], "row length 288 is not a multiple of 256");
    CHECK_EQ_I(s.fell_back, LAYERS + 1);
    o = options(&s);
    o.kind = "gguf";
    o.config.format = "tq2_0";
    o.fallback = LB_FALLBACK_ADJUST;
    o.other = other;
    o.n_other = 2;
    CHECK(quantize(&o));
    CHECK_EQ_S(s.format[3], "q8_0");
    CHECK_EQ_S(s.kept[25], "row length 100 is not a multiple of 256");
    o.strict = true;
    REFUSED(quantize(&o), LB_E_DENIED, "as requested");
    o.strict = false;
    o.fallback = LB_FALLBACK_ERROR;
    REFUSED(quantize(&o), LB_E_UNSUPPORTED, "not a multiple of");
    CHECK(access(out, F_OK) == 0); /* of the run before */
}

/* ---- targets ------------------------------------------------------------- */

static const lb_quant_config others[] = {
    {.format = "nf4", .block_size = 128},
    {.format = "nf4", .block_size = 32},
    {.format = "nf4", .block_size = 16},
    {.format = "int8"},
    {.format = "ternary", .scale = LB_SCALE_BLOCK}};

/* The best of: the first k arrays in 8 bits, the rest in 4, in file order, with
 * no more bytes. */
static double best_split(uint64_t nbytes)
{
    double error8[MOST] = {0}, error4[MOST] = {0}, best = INFINITY;
    uint64_t size8[MOST] = {0}, size4[MOST] = {0}, rest = 0;
    lb_file *f = lb_file_open(cx, source, NULL);
    int64_t n = 0;
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        lb_quant_config config = {.format = "nf4"};
        if (lb_choose_weights(NULL, e, &config)) {
            rest += e->nbytes;
            continue;
        }
        lb_enter(cx);
        lb_difference d4 = {0}, d8 = {0};
        lb_array *x = lb_file_load(cx, f, e->name);
        lb_array *q4 = lb_quantize(cx, x, &config);
        lb_array *q8 = lb_quantize(cx, x, &(lb_quant_config){.format = "int8"});
        CHECK(lb_compare(cx, x, q4, &d4) && lb_compare(cx, x, q8, &d8));
        error4[n] = d4.dd;
        error8[n] = d8.dd;
        size4[n] = lb_nbytes(q4);
        size8[n++] = lb_nbytes(q8);
        lb_leave(cx);
    }
    lb_file_close(f);
    for (int64_t k = 0; k <= n; k++)
        for (int side = 0; side < 2; side++) { /* first or last in 8 bits */
            double error = 0;
            uint64_t size = rest;
            for (int64_t i = 0; i < n; i++) {
                const bool eight = side ? i >= k : i < k;
                error += eight ? error8[i] : error4[i];
                size += eight ? size8[i] : size4[i];
            }
            if (size <= nbytes && error < best) best = error;
        }
    return best;
}

static void test_goal(void)
{
    static const double bits[] = {3.5, 4.4, 5, 6.25, 7.2};
    seen s, again;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        lb_quantize_options o = options(&s);
        o.target_bits = bits[i] + 0.6; /* unchanged arrays are part of it */
        o.other = others;
        o.n_other = sizeof others / sizeof *others;
        CHECK(quantize(&o));
        CHECK_EQ_S(lb_error(cx), "");
        const double got = 8 * (double)s.nbytes / s.elements;
        CHECK(got <= o.target_bits && got >= 0.98 * o.target_bits);
        const double split = best_split(s.nbytes);
        CHECK(isinf(split) || s.all.dd < split);
        /* The same for every number of threads and every level. */
        lb_ctx *keep = cx;
        cx = lb_open(&(lb_options){.threads = 1, .isa = "ref"});
        o.done_user = &again;
        again = (seen){0};
        CHECK(quantize(&o));
        lb_close(cx);
        cx = keep;
        CHECK(again.nbytes == s.nbytes && again.all.dd == s.all.dd);
        for (int k = 0; k < MOST; k++) {
            CHECK(!again.format[k] == !s.format[k] &&
                  again.block[k] == s.block[k]);
            if (s.format[k]) CHECK_EQ_S(again.format[k], s.format[k]);
        }
        /* As bytes. */
        o = options(&s);
        o.target_bytes = 400000 + 50000 * i;
        o.other = others;
        o.n_other = sizeof others / sizeof *others;
        CHECK(quantize(&o));
        CHECK(s.nbytes <= o.target_bytes &&
              (double)s.nbytes >= 0.95 * (double)o.target_bytes);
    }
    lb_quantize_options o = options(&s);
    o.target_bits = 1;
    REFUSED(quantize(&o), LB_E_ARG, "cannot reach 1 bits per weight");
    /* A plan writes nothing. */
    o = options(&s);
    o.dry_run = true;
    CHECK(lb_quantize_file(cx, source, NULL, &o));
    CHECK(s.format[0] && s.all.dd > 0);
}

int main(void)
{
    cx = lb_open(&(lb_options){.threads = 2});
    CHECK(scratch_file(source) && scratch_file(out) && scratch_file(recipe));
    lb_enter(cx);
    make_source();
    lb_leave(cx);
    test_patterns();
    test_recipe();
    test_shapes();
    test_goal();
    CHECK_EQ_S(lb_error(cx), "");
    unlink(source);
    unlink(out);
    unlink(recipe);
    lb_close(cx);
    return check_report("which arrays are quantized");
}
