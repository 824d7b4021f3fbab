/* test_quantize.c - lb_quantize for every format: values that are not finite,
 * their index and how they are handled; sources of any view; dense and packed
 * results; export and import of parts and codes. Formats come from the registry
 * and are named only if the test is about one. */
#include <float.h>
#include <stdlib.h>

#include "check.h"
#include "lowbit_ext.h"

enum { ROWS = 5, COLUMNS = 70, SIZE = ROWS * COLUMNS };

/* Every format that can be quantized to; calls f with its config. */
typedef void each_fn(lb_ctx *cx, lb_quant_config c, const lb_format *fmt);
static void each(lb_ctx *cx, each_fn *f)
{
    const lb_format *fmt;
    for (int k = 0; (fmt = lb_format_at(cx, k)); k++) {
        if (!lb_is_encodable(fmt)) continue;
        lb_enter(cx);
        f(cx, (lb_quant_config){.format = fmt->name}, fmt);
        CHECK_EQ_S(lb_error(cx), "");
        lb_clear(cx);
        lb_leave(cx);
    }
}

static void ramp(float *x)
{
    for (int i = 0; i < SIZE; i++)
        x[i] = (float)(i * 37 % 101 - 50) / 16;
}

static lb_array *ramp_array(lb_ctx *cx)
{
    float x[SIZE];
    ramp(x);
    return lb_from(cx, LB_F32, LB_SHAPE(ROWS, COLUMNS), x);
}

/* Same shape, dtype and bits. */
static bool same(lb_ctx *cx, lb_array *a, lb_array *b)
{
    a = lb_materialize(cx, a);
    b = lb_materialize(cx, b);
    if (!a || !b || a->dtype != b->dtype ||
        !lb_shape_equal(&a->shape, &b->shape))
        return false;
    return !lb_size(a) ||
           memcmp(lb_data(a), lb_data(b),
                  (size_t)lb_size(a) * lb_dtype_size(a->dtype)) == 0;
}

/* Same parts, bit by bit. */
static bool same_parts(lb_ctx *cx, lb_array *a, lb_array *b)
{
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        lb_array *x = a->store->part[p].a, *y = b->store->part[p].a;
        if (!x != !y || (x && !same(cx, x, y))) return false;
    }
    return a->dtype == b->dtype && a->store->meaning == b->store->meaning;
}

/* ---- values that are not finite ---------------------------------------- */

static void not_finite(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    const float most = fmt->largest > 0 ? fmt->largest : FLT_MAX;
    for (int i = 0; i < 3; i++) {
        float x[SIZE];
        ramp(x);
        x[2 * COLUMNS + 68] = bad[i];
        x[4 * COLUMNS + 1] = NAN; /* the first one is reported */
        lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(ROWS, COLUMNS), x);
        CHECK(!lb_quantize(cx, a, &c));
        CHECK_EQ_I(lb_error_status(cx), LB_E_ARG);
        CHECK(strstr(lb_error(cx), "(2,68)") != NULL);
        lb_clear(cx);
        /* In a view, the index is the view's. */
        CHECK(!lb_quantize(cx, lb_transpose(cx, a, NULL), &c));
        CHECK(strstr(lb_error(cx), "(1,4)") != NULL);
        lb_clear(cx);
        lb_quant_config clamp = c;
        clamp.on_nonfinite = LB_NONFINITE_CLAMP;
        x[2 * COLUMNS + 68] = isnan(bad[i]) ? 0 : bad[i] > 0 ? most : -most;
        x[4 * COLUMNS + 1] = 0;
        lb_array *b = lb_from(cx, LB_F32, LB_SHAPE(ROWS, COLUMNS), x);
        lb_array *p = lb_quantize(cx, a, &clamp), *q = lb_quantize(cx, b, &c);
        CHECK(p && q && same_parts(cx, p, q));
    }
}

/* An f64 that overflows f32 is named with its value. */
static void too_large(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    (void)fmt;
    const double x[] = {1, 2, 1e300, 3};
    CHECK(!lb_quantize(cx, lb_from(cx, LB_F64, LB_SHAPE(4), x), &c));
    CHECK(strstr(lb_error(cx), "(2)") && strstr(lb_error(cx), "1e+300"));
    lb_clear(cx);
}

/* ---- sources ------------------------------------------------------------ */

static void views(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    (void)fmt;
    lb_array *a = ramp_array(cx), *view[5];
    view[0] = lb_transpose(cx, a, NULL);
    view[1] = lb_slice(cx, a, (int64_t[]){1, 3}, (int64_t[]){5, 70},
                       (int64_t[]){1, 2});
    view[2] = lb_reverse(cx, a, LB_AXES(0, 1));
    view[3] = lb_broadcast_to(
        cx, lb_slice(cx, a, (int64_t[]){0, 0}, (int64_t[]){1, COLUMNS}, NULL),
        LB_SHAPE(3, COLUMNS));
    view[4] = lb_reshape(cx, lb_transpose(cx, a, NULL), LB_SHAPE(2, 5, 35));
    for (int i = 0; i < 5; i++) {
        lb_array *copy = lb_from(cx, LB_F32, lb_shape_of(view[i]),
                                 lb_data(lb_materialize(cx, view[i])));
        lb_array *p = lb_quantize(cx, view[i], &c);
        lb_array *q = lb_quantize(cx, copy, &c);
        CHECK(p && q && same_parts(cx, p, q) && same(cx, p, q));
    }
}

/* Values that every dtype can represent are quantized equally from each, except
 * for the logical dtype. */
static void dtypes(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    (void)fmt;
    lb_array *a = ramp_array(cx), *q = lb_quantize(cx, a, &c);
    const lb_dtype of[] = {LB_F16, LB_BF16, LB_F64};
    for (int i = 0; i < 3; i++) {
        lb_array *p = lb_quantize(cx, lb_convert(cx, a, of[i]), &c);
        CHECK(p && p->dtype == of[i]);
        lb_array *as = p ? lb_convert(cx, p, LB_F32) : NULL;
        CHECK(as && as->store == p->store && same_parts(cx, as, q));
        lb_quant_config d = c;
        d.dtype = of[i];
        p = lb_quantize(cx, a, &d);
        CHECK(p && p->dtype == of[i] &&
              same(cx, p, lb_convert(cx, lb_materialize(cx, q), of[i])));
    }
    const int32_t n[4] = {1, 2, 3, 4};
    CHECK(!lb_quantize(cx, lb_from(cx, LB_I32, LB_SHAPE(4), n), &c));
    CHECK_EQ_I(lb_error_status(cx), LB_E_DTYPE);
    lb_clear(cx);
}

/* A quantized array can be quantized like any other. */
static void twice(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    (void)fmt;
    lb_array *q = lb_quantize(cx, ramp_array(cx), &c);
    lb_array *p = lb_quantize(cx, q, &c);
    CHECK(p && same_parts(cx, p, lb_quantize(cx, lb_materialize(cx, q), &c)));
}

static void empty_and_small(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    const lb_shape shape[] = {
        lb_shape_make(0, NULL), LB_SHAPE(0),       LB_SHAPE(1),
        LB_SHAPE(0, 4),         LB_SHAPE(4, 0),    LB_SHAPE(3, 1),
        LB_SHAPE(1, 1, 1),      LB_SHAPE(2, 0, 3), LB_SHAPE(1, 257),
    };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        lb_array *z = lb_zeros(cx, LB_F32, shape[i]);
        lb_array *q = lb_quantize(cx, z, &c);
        CHECK(q && lb_shape_equal(&q->shape, &shape[i]) && q->dtype == LB_F32);
        CHECK_EQ_S(lb_format_of(q), fmt->name);
        lb_array *w = q ? lb_materialize(cx, q) : NULL;
        CHECK(w && lb_size(w) == lb_size(z));
        const float *v = w ? lb_data(w) : NULL;
        for (int64_t k = 0; v && k < lb_size(w); k++)
            CHECK(v[k] == 0);
    }
}

/* ---- results ------------------------------------------------------------ */

static void results(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    lb_array *a = ramp_array(cx), *q = lb_quantize(cx, a, &c);
    CHECK_EQ_S(lb_format_of(q), fmt->name);
    CHECK(lb_materialize(cx, a) == a); /* a no-op */
    lb_quant_config d = c;
    d.simulate = true;
    lb_array *dense = lb_quantize(cx, a, &d);
    CHECK_EQ_S(lb_format_of(dense), "dense");
    CHECK(same(cx, dense, q));
    CHECK(same(cx, lb_straight_through(cx, a, &d), q));
    d = c;
    d.reference = true;
    CHECK(same_parts(cx, lb_quantize(cx, a, &d), q));
    d = c;
    d.dtype = LB_I32;
    CHECK(!lb_straight_through(cx, a, &d));
    CHECK_EQ_I(lb_error_status(cx), LB_E_DTYPE);
    lb_clear(cx);
    CHECK(!lb_kernel_available(cx, "no such format"));
    float row[2 * COLUMNS];
    const float *all = lb_data(lb_materialize(cx, q));
    CHECK(lb_read_rows(cx, q, 2, 4, row, sizeof row));
    CHECK(memcmp(row, all + 2 * COLUMNS, sizeof row) == 0);
}

static void threads(void)
{
    lb_ctx *one = lb_open(&(lb_options){.threads = 1});
    lb_ctx *seven = lb_open(&(lb_options){.threads = 7});
    const lb_format *fmt;
    for (int k = 0; (fmt = lb_format_at(one, k)); k++) {
        if (!lb_is_encodable(fmt)) continue;
        const lb_quant_config c = {.format = fmt->name};
        const lb_shape shape = LB_SHAPE(61, 1027);
        lb_array *q[2];
        for (int i = 0; i < 2; i++) {
            lb_ctx *cx = i ? seven : one;
            q[i] = lb_quantize(
                cx, lb_random_normal(cx, (lb_key){5, 6}, LB_F32, shape), &c);
        }
        CHECK(q[0] && q[1] && same_parts(one, q[0], q[1]));
    }
    lb_close(one);
    lb_close(seven);
}

/* ---- parts and codes ---------------------------------------------------- */

static void parts(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    lb_array *q = lb_quantize(cx, ramp_array(cx), &c);
    const char *name[LB_MAX_PARTS];
    lb_array *part[LB_MAX_PARTS];
    int n = 0;
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name; p++) {
        lb_array *a = lb_component(cx, q, fmt->part[p].name);
        CHECK(!a == !q->store->part[p].a);
        if (!a) continue;
        name[n] = fmt->part[p].name;
        part[n++] = a;
    }
    lb_array *r = lb_from_parts(cx, &c, lb_shape_of(q), NULL, name, part, n);
    CHECK(r && same_parts(cx, r, q) && same(cx, r, q));
    CHECK(!lb_from_parts(cx, &c, lb_shape_of(q), NULL, name, part, 0));
    lb_clear(cx);
    CHECK(!lb_component(cx, q, "no such part"));
    CHECK(strstr(lb_error(cx), fmt->part[0].name) != NULL);
    lb_clear(cx);
}

/* Rows of a quantized array: the parts of a view are those of its rows. */
static void parts_of_rows(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    lb_array *q = lb_quantize(cx, ramp_array(cx), &c);
    lb_array *rows =
        lb_slice(cx, q, (int64_t[]){1, 0}, (int64_t[]){3, COLUMNS}, NULL);
    lb_array *part = lb_component(cx, rows, fmt->part[0].name);
    lb_array *all = lb_component(cx, q, fmt->part[0].name);
    CHECK(part && all);
    if (!part || !all) return;
    int64_t lo[LB_MAX_RANK] = {1}, hi[LB_MAX_RANK];
    for (int k = 0; k < lb_rank(all); k++)
        hi[k] = k ? lb_dim(all, k) : 3;
    CHECK(same(cx, part, lb_slice(cx, all, lo, hi, NULL)));
}

static void codes(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    lb_array *q = lb_quantize(cx, ramp_array(cx), &c);
    if (!fmt->codes.bits) {
        CHECK(!lb_codes(cx, q));
        CHECK_EQ_I(lb_error_status(cx), LB_E_UNSUPPORTED);
        lb_clear(cx);
        return;
    }
    lb_array *code = lb_codes(cx, q), *scale = NULL;
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name; p++)
        if (fmt->part[p].scale) scale = lb_component(cx, q, fmt->part[p].name);
    CHECK(code && lb_shape_equal(&code->shape, &q->shape));
    lb_array *r = lb_from_codes(cx, &c, code, scale);
    CHECK(r && same_parts(cx, r, q));
    /* Of a view, the view's. */
    CHECK(same(cx, lb_codes(cx, lb_transpose(cx, q, NULL)),
               lb_transpose(cx, code, NULL)));
    /* A single number is accepted for a single scale. */
    if (scale && lb_size(scale) == 1) {
        lb_array *number = lb_reshape(cx, scale, lb_shape_make(0, NULL));
        CHECK(same_parts(cx, lb_from_codes(cx, &c, code, number), q));
    }
    lb_array *wide = lb_convert(cx, code, LB_I32);
    CHECK(same_parts(cx, lb_from_codes(cx, &c, wide, scale), q));
    /* One that does not exist. */
    int32_t *v = malloc(SIZE * sizeof *v);
    if (!v) abort();
    CHECK(lb_read(cx, wide, v, SIZE * sizeof *v));
    v[123] = fmt->codes.most + 1;
    lb_array *bad = lb_from(cx, LB_I32, lb_shape_of(q), v);
    free(v);
    CHECK(!lb_from_codes(cx, &c, bad, scale));
    CHECK(strstr(lb_error(cx), "123") != NULL);
    lb_clear(cx);
}

/* ---- other layouts ------------------------------------------------------ */

/* Importing an export gives the same array, or an error: never another array.
 * Square, so that shapes alone cannot distinguish. */
static void exported(lb_ctx *cx, lb_quant_config c, const lb_foreign *f,
                     lb_array *a)
{
    lb_array *part[LB_MAX_PARTS];
    int n = 0;
    for (; n < LB_MAX_PARTS && f->part[n]; n++) {
        part[n] = lb_export(cx, a, f->layout, f->part[n]);
        if (!part[n]) break;
    }
    if (lb_error_status(cx) == LB_E_UNSUPPORTED || !n) {
        lb_clear(cx);
        return;
    }
    c.scale = n > 1 ? c.scale : LB_SCALE_NONE;
    c.dtype = LB_F32;
    lb_array *b =
        lb_from_parts(cx, &c, lb_shape_of(a), f->layout, f->part, part, n);
    CHECK(b && same(cx, a, b));
    CHECK_EQ_S(lb_error(cx), "");
    lb_clear(cx);
}

static void layouts(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    const lb_key key = {3, 1};
    for (const lb_foreign *f = fmt->foreign; f && f->layout; f++) {
        lb_array *x = lb_random_normal(cx, key, LB_F32, LB_SHAPE(64, 64));
        lb_array *y = lb_random_normal(cx, key, LB_F32, LB_SHAPE(2, 3, 64));
        lb_array *q = lb_quantize(cx, x, &c), *r = lb_quantize(cx, y, &c);
        lb_array *view[] = {
            q,
            lb_transpose(cx, q, NULL),
            lb_reverse(cx, q, LB_AXES(0)),
            lb_slice(cx, q, (int64_t[]){8, 0}, (int64_t[]){24, 64}, NULL),
            r,
            lb_transpose(cx, r, (int[]){1, 0, 2}),
            lb_reshape(cx, r, LB_SHAPE(6, 64)),
            lb_reshape(cx, r, LB_SHAPE(2, 192)),
        };
        for (size_t i = 0; i < sizeof view / sizeof *view; i++)
            exported(cx, c, f, view[i]);
        CHECK(lb_export(cx, q, f->layout, f->part[0]) != NULL);
        CHECK(!lb_export(cx, q, f->layout, "no such part"));
        lb_clear(cx);
    }
    CHECK(!lb_export(cx, lb_quantize(cx, ramp_array(cx), &c), "no such layout",
                     "packed"));
    lb_clear(cx);
}

/* Parts come in the order of the view's axes. */
static void part_axes(lb_ctx *cx, lb_quant_config c, const lb_format *fmt)
{
    const lb_key key = {3, 2};
    lb_array *x = lb_random_normal(cx, key, LB_F32, LB_SHAPE(6, 256));
    lb_array *q = lb_quantize(cx, x, &c);
    lb_array *split = lb_reshape(cx, q, LB_SHAPE(2, 3, 256));
    lb_array *part = lb_component(cx, split, fmt->part[0].name);
    CHECK(part && lb_dim(part, 0) == 2 && lb_dim(part, 1) == 3);
    lb_array *turned = lb_transpose(cx, q, NULL);
    part = lb_component(cx, turned, fmt->part[0].name);
    CHECK(part && lb_dim(part, 1) == 6);
    lb_array *none =
        lb_slice(cx, q, (int64_t[]){2, 0}, (int64_t[]){2, 256}, NULL);
    part = lb_component(cx, none, fmt->part[0].name);
    CHECK(part && lb_dim(part, 0) == 0);
}

/* ---- names -------------------------------------------------------------- */

static void unknown(lb_ctx *cx)
{
    lb_array *a = ramp_array(cx);
    CHECK(!lb_quantize(cx, a, &(lb_quant_config){.format = "int9"}));
    const lb_format *fmt;
    for (int k = 0; (fmt = lb_format_at(cx, k)); k++)
        if (lb_is_encodable(fmt))
            CHECK(strstr(lb_error(cx), fmt->name) != NULL);
    lb_clear(cx);
    lb_array *q = lb_quantize(cx, a, NULL);
    CHECK_EQ_S(lb_format_of(q), "nf4"); /* eformer's default */
    CHECK_EQ_S(lb_error(cx), "");
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2, .dense = LB_DENSE_DENY});
    CHECK(cx != NULL);
    if (!cx) return check_report("quantize");
    each(cx, not_finite);
    each(cx, too_large);
    each(cx, views);
    each(cx, dtypes);
    each(cx, twice);
    each(cx, empty_and_small);
    each(cx, results);
    each(cx, parts);
    each(cx, parts_of_rows);
    each(cx, codes);
    each(cx, layouts);
    each(cx, part_axes);
    unknown(cx);
    lb_close(cx);
    threads();
    return check_report("quantize");
}
