/* test_integers.c - formats as integers (lb_integers): values follow from
 * codes, scales and biases with the bits of decode, on every level; and the
 * kernels that multiply them (kernels/int_dot.h), against the portable one and
 * against double precision. */
/* ctest: simde */
#include "base/cpu.h"
#include "check.h"
#include "core/core.h"
#include "fenced.h"
#include "kernels/int_dot.h"
#include "laws.h"

enum { ROWS = 3, COLUMNS = 1100 };

static const char *const levels[] = {"ref",        "neon", "avx2", "avx512",
                                     "avx512vnni", "amx",  NULL};

/* ---- formats ------------------------------------------------------------- */

static bool same_bits(float a, float b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* Values [at, at + n) of row r. */
static void check_run(lb_ctx *cx, const lb_array *w, int64_t r, int64_t at,
                      int64_t n, const float *want)
{
    const lb_integers *of = w->store->fmt->integers;
    const int64_t all = (n + of->block - 1) / of->block * of->block;
    const size_t runs = (size_t)(all / of->run) * sizeof(float);
    /* What is written ends with the last block. */
    fenced code = fenced_open((size_t)all), scale = fenced_open(runs);
    fenced bias = fenced_open(runs);
    int8_t *const c = fenced_end(&code, (size_t)all);
    float *const s = fenced_end(&scale, runs), *const b =
                                                   fenced_end(&bias, runs);
    of->read(&cx->cpu, w->store, r * COLUMNS + at, n, c, s,
             of->bias ? b : NULL);
    for (int64_t i = 0; i < n; i++) {
        float v = s[i / of->run] * (float)c[i];
        if (of->bias) v += b[i / of->run];
        if (check_fails(same_bits(v, want[r * COLUMNS + at + i])))
            fprintf(stderr, "%s: value %lld is %a, not %a\n",
                    w->store->fmt->name, (long long)(at + i), v,
                    want[r * COLUMNS + at + i]);
    }
    fenced_close(&code);
    fenced_close(&scale);
    fenced_close(&bias);
}

static void check_format(const sample_format *f, const char *level)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1, .isa = level});
    const lb_shape shape = LB_SHAPE(ROWS, COLUMNS);
    float data[ROWS * COLUMNS], want[ROWS * COLUMNS];
    lb_array *x = lb_random_normal(cx, (lb_key){5, 1}, LB_F32, shape);
    CHECK(lb_read(cx, x, data, sizeof data));
    lb_array *w = f->make(cx, f, LB_F32, shape, data);
    CHECK(w && lb_read(cx, w, want, sizeof want));
    const int64_t block = f->fmt->integers->block;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t at = 0; at < COLUMNS; at += block * 3) {
            check_run(cx, w, r, at, COLUMNS - at, want);
            check_run(cx, w, r, at, lb_min_i64(block, COLUMNS - at), want);
        }
    lb_close(cx);
}

static void check_formats(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    sample_format_list all = sample_formats_of(cx);
    int n = 0;
    for (int i = 0; i < all.n; i++) {
        sample_format *f = &all.item[i];
        const sample_operand o = {
            LB_F32, LB_SHAPE(ROWS, COLUMNS), VALUES_TAME, 0, 0, false};
        f->every = 0;
        if (!f->fmt || !f->fmt->integers || f->variant || !sample_takes(f, &o))
            continue;
        for (const char *const *l = levels; *l; l++) {
            lb_level level;
            CHECK(lb_level_parse(*l, &level));
            if (lb_level_available(level)) check_format(f, *l);
        }
        n++;
    }
    CHECK(n > 0);
    sample_formats_free(&all);
    lb_close(cx);
}

/* ---- kernels ------------------------------------------------------------- */

enum { PANELS = 3, X_ROWS = 5, RUNS = PANELS * LB_INT_PANEL / 16 };

static uint32_t seed = 1;
static uint32_t draw(void)
{
    seed = seed * 1664525 + 1013904223;
    return seed >> 8;
}

typedef struct {
    lb_int_x *x; /* X_ROWS of PANELS, aligned */
    float from[X_ROWS][PANELS * LB_INT_PANEL];
    int8_t code[PANELS * LB_INT_PANEL];
    float scale[RUNS], bias[RUNS];
    int run;
    bool has_bias;
} operands;

/* extreme: codes and values at the ends of their ranges. */
static void fill(operands *o, bool extreme)
{
    for (int i = 0; i < PANELS * LB_INT_PANEL; i++) {
        const int8_t ends[] = {-128, 127};
        o->code[i] =
            extreme ? ends[draw() % 2] : (int8_t)(int)(draw() % 256 - 128);
        for (int r = 0; r < X_ROWS; r++)
            o->from[r][i] = extreme ? (draw() % 2 ? 1.0f : -1.0f)
                                    : (float)(int)(draw() % 2001 - 1000) / 7;
    }
    for (int i = 0; i < RUNS; i++) {
        o->scale[i] = (float)(int)(draw() % 2001 - 1000) / 3;
        o->bias[i] = (float)(int)(draw() % 2001 - 1000) / 3;
    }
}

static void run_kernel(const lb_int_dot *k, operands *o, int digits,
                       float sum[X_ROWS][LB_INT_LANES])
{
    const lb_int_dot_row w = {o->code, o->scale, o->has_bias ? o->bias : NULL,
                              o->run};
    for (int r = 0; r < X_ROWS; r++)
        k->round(o->from[r], PANELS * LB_INT_PANEL - 9 * r, digits,
                 o->x + r * PANELS);
    /* Panels one by one, then the rest. */
    memset(sum, 0, X_ROWS * LB_INT_LANES * sizeof(float));
    k->dot(o->x, PANELS, X_ROWS, 1, &w, digits, sum[0], LB_INT_LANES);
    const lb_int_dot_row rest = {
        w.code + LB_INT_PANEL, w.scale + LB_INT_PANEL / o->run,
        w.bias ? w.bias + LB_INT_PANEL / o->run : NULL, o->run};
    k->dot(o->x + 1, PANELS, X_ROWS, PANELS - 1, &rest, digits, sum[0],
           LB_INT_LANES);
}

/* The relative error of a product, against double precision. */
static void check_error(const operands *o, int digits, const float *y)
{
    for (int r = 0; r < X_ROWS; r++) {
        double want = 0, size = 0;
        for (int i = 0; i < PANELS * LB_INT_PANEL - 9 * r; i++) {
            double v = (double)o->scale[i / o->run] * o->code[i];
            if (o->has_bias) v += o->bias[i / o->run];
            want += o->from[r][i] * v;
            size += fabs(o->from[r][i] * v);
        }
        CHECK(fabs(y[r] - want) <= size * (digits == 2 ? 3e-5 : 8e-3));
    }
}

static void check_kernel(const lb_int_dot *k, operands *o, int digits)
{
    float got[X_ROWS][LB_INT_LANES], want[X_ROWS][LB_INT_LANES];
    float y[X_ROWS], first[X_ROWS];
    run_kernel(&lb_int_dot_ref, o, digits, want);
    run_kernel(k, o, digits, got);
    CHECK(memcmp(got, want, sizeof got) == 0);
    k->fold(got[0], X_ROWS, y);
    lb_int_dot_ref.fold(want[0], X_ROWS, first);
    CHECK(memcmp(y, first, sizeof y) == 0);
    check_error(o, digits, y);
}

static void check_kernels(void)
{
    operands o = {.run = 16};
    fenced x = fenced_open(X_ROWS * PANELS * sizeof(lb_int_x));
    o.x = fenced_end(&x, X_ROWS * PANELS * sizeof(lb_int_x));
    for (const char *const *l = levels; *l; l++) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = 1, .isa = *l});
        const lb_int_dot *k = cx ? lb_int_dot_for(&cx->cpu) : NULL;
        for (int i = 0; i < 16 && k; i++) {
            o.run = i & 1 ? 32 : 16;
            o.has_bias = i & 2;
            fill(&o, i & 4);
            check_kernel(k, &o, i & 8 ? 2 : 1);
        }
        lb_close(cx);
    }
    fenced_close(&x);
}

/* Zeros, what is not finite, and numbers whose reciprocal is not. */
static void check_rounding(void)
{
    fenced room = fenced_open(sizeof(lb_int_x));
    lb_int_x *const x = fenced_end(&room, sizeof(lb_int_x));
    float from[LB_INT_PANEL] = {0};
    lb_int_dot_ref.round(from, LB_INT_PANEL, 1, x);
    for (int i = 0; i < LB_INT_PANEL; i++)
        CHECK_EQ_I(x->digit[0].code[i], 0);
    CHECK(isfinite(x->scale));
    from[7] = 0x1p-149f;
    lb_int_dot_ref.round(from, LB_INT_PANEL, 2, x);
    CHECK(isfinite(x->scale) && isfinite(x->sum[0]));
    from[7] = INFINITY;
    lb_int_dot_ref.round(from, LB_INT_PANEL, 1, x);
    CHECK(isnan(x->scale));
    from[7] = 3;
    from[8] = -3;
    lb_int_dot_ref.round(from, LB_INT_PANEL, 2, x);
    CHECK_EQ_I(x->digit[0].code[7] * LB_INT_BASE + x->digit[1].code[7],
               LB_INT_MOST);
    CHECK_EQ_I(x->digit[0].code[8] * LB_INT_BASE + x->digit[1].code[8],
               -LB_INT_MOST);
    fenced_close(&room);
}

int main(void)
{
    check_formats();
    check_kernels();
    check_rounding();
    return check_report("integers");
}
