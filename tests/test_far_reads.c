/* test_far_reads.c - views and gathers so large that they are read in several
 * planes, spans and rounds, against elements computed from the strides.
 *
 * The laws check the same for small arrays. The arrays here have several tiles,
 * with partial tiles at the ends, in every format.
 */
/* ctest: skip-tsan */
#include <stdlib.h>

#include "check.h"
#include "lowbit_ext.h"

static const char *what; /* what is tested, for messages */

static void check_bytes(const void *got, const void *want, size_t size,
                        const char *how)
{
    if (check_fails(got && memcmp(got, want, size) == 0))
        fprintf(stderr, "%s: %s\n", what, how);
}

/* ---- expected values ----------------------------------------------------- */

/* Elements of v in row-major order, from the elements `all` of its store. */
static char *pick_out(const lb_array *v, const char *all, size_t size)
{
    const int64_t n = lb_shape_size(&v->shape);
    char *out = malloc((size_t)n * size + 1);
    for (int64_t i = 0; i < n && out; i++) {
        int64_t e = v->offset, rest = i;
        for (int k = v->shape.rank - 1; k >= 0; rest /= v->shape.dim[k--])
            e += rest % v->shape.dim[k] * v->stride[k];
        memcpy(out + (size_t)i * size, all + (size_t)e * size, size);
    }
    return out;
}

static char *read_all(lb_ctx *cx, lb_array *a)
{
    const size_t size = (size_t)lb_size(a) * lb_dtype_size(lb_dtype_of(a));
    char *out = malloc(size + 1);
    CHECK(out && lb_read(cx, a, out, size));
    return out;
}

/* ---- views --------------------------------------------------------------- */

/* With gaps between the elements of the last axis, removed again. */
static void check_apart(lb_ctx *cx, lb_array *v, const char *want, size_t bytes)
{
    const int last = lb_rank(v) - 1;
    int64_t none[LB_MAX_RANK] = {0}, gap[LB_MAX_RANK] = {0};
    int64_t end[LB_MAX_RANK], step[LB_MAX_RANK];
    gap[last] = 2;
    lb_array *value = lb_convert(cx, lb_scalar(cx, 0), lb_dtype_of(v));
    lb_array *wide = lb_pad(cx, v, value, none, none, gap);
    for (int k = 0; k <= last; k++) {
        end[k] = lb_dim(wide, k);
        step[k] = k == last ? 3 : 1;
    }
    lb_array *again = lb_materialize(cx, lb_slice(cx, wide, none, end, step));
    check_bytes(lb_data(again), want, bytes, "pad between");
}

static void check_view(lb_ctx *cx, lb_array *v, const char *all,
                       const char *how)
{
    if (!v) {
        CHECK(!*lb_error(cx));
        return;
    }
    const lb_dtype d = lb_dtype_of(v);
    const size_t size = lb_dtype_size(d), bytes = (size_t)lb_size(v) * size;
    char *want = pick_out(v, all, size), *got = malloc(bytes + 1);
    lb_enter(cx);
    lb_array *dense = lb_materialize(cx, v);
    check_bytes(lb_data(dense), want, bytes, how);
    check_apart(cx, v, want, bytes);
    CHECK(lb_read(cx, v, got, bytes));
    check_bytes(got, want, bytes, "read");
    if (d == LB_F32 || d == LB_BF16 || d == LB_F64) {
        lb_array *same = lb_mul(cx, v, lb_full(cx, d, lb_shape_of(v), 1));
        check_bytes(lb_data(same), want, bytes, "times a dense one");
        same = lb_mul(cx, v, lb_scalar(cx, 1));
        check_bytes(lb_data(same), want, bytes, "times one");
    }
    lb_leave(cx);
    free(want);
    free(got);
}

static lb_array *part_of(lb_ctx *cx, lb_array *a, int64_t lo, int64_t by0,
                         int64_t by1)
{
    const lb_shape s = lb_shape_of(a);
    return lb_slice(cx, a, (int64_t[]){lo, lo},
                    (int64_t[]){s.dim[0] - 1, s.dim[1] - 2},
                    (int64_t[]){by0, by1});
}

/* a is (rows, cols), rows even and cols a multiple of 8. */
static void check_views(lb_ctx *cx, lb_array *a, const char *all)
{
    const int64_t rows = lb_dim(a, 0), cols = lb_dim(a, 1);
    const lb_axes first = {1, {0}}, second = {1, {1}}, both = {2, {0, 1}};
    lb_array *t = lb_transpose(cx, a, NULL);
    lb_array *cut = part_of(cx, t, 3, 1, 1);
    check_view(cx, a, all, "as it is");
    check_view(cx, t, all, "transposed");
    check_view(cx, cut, all, "a part, transposed");
    check_view(cx, part_of(cx, t, 1, 3, 1), all, "each third, transposed");
    check_view(cx, part_of(cx, t, 1, 1, 3), all, "transposed, each third");
    check_view(cx, part_of(cx, a, 1, 1, 2), all, "each second");
    check_view(cx, part_of(cx, a, 5, 2, 300), all, "few of many");
    check_view(cx, lb_reverse(cx, t, &first), all, "transposed, reversed 0");
    check_view(cx, lb_reverse(cx, t, &second), all, "transposed, reversed 1");
    check_view(cx, lb_reverse(cx, t, &both), all, "transposed, reversed");
    check_view(cx, lb_reverse(cx, a, &second), all, "reversed");
    lb_array *heads = lb_reshape(cx, a, LB_SHAPE(rows, cols / 8, 8));
    check_view(cx, lb_transpose(cx, heads, (int[]){0, 2, 1}), all, "021");
    check_view(cx, lb_transpose(cx, heads, (int[]){2, 1, 0}), all, "210");
    check_view(cx, lb_transpose(cx, heads, (int[]){2, 0, 1}), all, "201");
    heads = lb_reshape(cx, a, LB_SHAPE(2, rows / 2, cols));
    check_view(cx, lb_transpose(cx, heads, (int[]){1, 2, 0}), all, "120");
    check_view(cx, lb_transpose(cx, heads, (int[]){0, 2, 1}), all, "batches");
    const int64_t edge[2] = {cols - 1, 0}, end[2] = {cols, rows};
    lb_array *row = lb_slice(cx, t, edge, end, NULL);
    check_view(cx, lb_broadcast_to(cx, row, LB_SHAPE(9, rows)), all,
               "a column, repeated");
    check_view(
        cx, lb_broadcast_in_dim(cx, t, LB_SHAPE(cols, 3, rows), (int[]){0, 2}),
        all, "transposed, repeated between");
    check_view(cx,
               lb_broadcast_in_dim(cx, cut,
                                   LB_SHAPE(lb_dim(cut, 0), lb_dim(cut, 1), 3),
                                   (int[]){0, 1}),
               all, "transposed, repeated");
}

/* ---- gathers ------------------------------------------------------------- */

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* n entries of an axis of v, some of them out of bounds where bounds are
 * filled. */
static void check_take(lb_ctx *cx, lb_array *v, const char *all, int axis,
                       int64_t n, bool fill)
{
    const lb_shape shape = lb_shape_of(v);
    const int64_t most = shape.dim[axis], other = shape.dim[!axis];
    const size_t size = lb_dtype_size(lb_dtype_of(v));
    int32_t *index = malloc((size_t)n * sizeof *index);
    uint32_t seed = (uint32_t)n;
    for (int64_t i = 0; i < n; i++)
        index[i] = (int32_t)(next(&seed) % (most + (fill ? 3 : 0)));
    char *have = pick_out(v, all, size);
    char *want = calloc((size_t)(n * other) + 1, size);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < other; k++) {
            const int64_t to = axis ? k * n + i : i * other + k;
            const int64_t from =
                axis ? k * most + index[i] : index[i] * other + k;
            if (index[i] < most)
                memcpy(want + (size_t)to * size, have + (size_t)from * size,
                       size);
        }
    lb_enter(cx);
    lb_array *at = lb_from(cx, LB_I32, LB_SHAPE(n), index);
    lb_gather_dims d = {.offset_dims = {1, {!axis}},
                        .collapsed_slice_dims = {1, {axis}},
                        .start_index_map = {1, {axis}},
                        .index_vector_dim = 1,
                        .bounds = LB_BOUNDS_FILL,
                        .has_fill = true};
    d.slice_sizes[axis] = 1;
    d.slice_sizes[!axis] = other;
    lb_array *got = fill ? lb_gather(cx, v, at, &d) : lb_take(cx, v, at, axis);
    check_bytes(lb_data(lb_materialize(cx, got)), want,
                (size_t)(n * other) * size, fill ? "take or fill" : "take");
    lb_leave(cx);
    free(index);
    free(have);
    free(want);
}

/* Many entries of a long axis; with a short one the result would be huge. */
static void check_gathers(lb_ctx *cx, lb_array *a, const char *all, int64_t n)
{
    enum { LONG = 1000, SOME = 3 };
    lb_array *t = lb_transpose(cx, a, NULL);
    lb_array *cut = part_of(cx, a, 0, 1, 1);
    for (int axis = 0; axis < 2; axis++) {
        const int64_t m = lb_dim(a, !axis) > LONG ? SOME : n;
        check_take(cx, a, all, axis, m, false);
        check_take(cx, t, all, !axis, m, false);
        check_take(cx, cut, all, axis, m, true);
        check_take(cx, lb_transpose(cx, cut, NULL), all, !axis, m, true);
    }
}

/* Elements from everywhere. */
static void check_points(lb_ctx *cx, lb_array *a, const char *all, int64_t n)
{
    const size_t size = lb_dtype_size(lb_dtype_of(a));
    const int64_t rows = lb_dim(a, 0), cols = lb_dim(a, 1);
    int32_t *index = malloc((size_t)n * 2 * sizeof *index);
    char *want = malloc((size_t)n * size + 1);
    uint32_t seed = 7;
    for (int64_t i = 0; i < n; i++) {
        index[2 * i] = (int32_t)(next(&seed) % rows);
        index[2 * i + 1] = (int32_t)(next(&seed) % cols);
        const int64_t e = index[2 * i] * cols + index[2 * i + 1];
        memcpy(want + (size_t)i * size, all + (size_t)e * size, size);
    }
    lb_enter(cx);
    const lb_gather_dims d = {.collapsed_slice_dims = {2, {0, 1}},
                              .start_index_map = {2, {0, 1}},
                              .index_vector_dim = 1,
                              .slice_sizes = {1, 1}};
    lb_array *at = lb_from(cx, LB_I32, LB_SHAPE(n, 2), index);
    check_bytes(lb_data(lb_gather(cx, a, at, &d)), want, (size_t)n * size,
                "points");
    lb_leave(cx);
    free(index);
    free(want);
}

/* ---- other operations that read across ----------------------------------- */

/* The first of the largest along an axis of v, of f32 numbers. */
static void check_argmax(lb_ctx *cx, lb_array *v, const float *all, int axis)
{
    const int64_t n = lb_dim(v, axis), other = lb_dim(v, !axis);
    int64_t *want = calloc((size_t)other, sizeof *want);
    float *x = (float *)(void *)pick_out(v, (const char *)all, sizeof *x);
    for (int64_t k = 0; k < other; k++)
        for (int64_t i = 0, at, most; i < n; i++) {
            at = axis ? k * n + i : i * other + k;
            most = axis ? k * n + want[k] : want[k] * other + k;
            if (x[at] > x[most]) want[k] = i;
        }
    lb_enter(cx);
    check_bytes(lb_data(lb_argmax(cx, v, axis, LB_I64)), want,
                (size_t)other * sizeof *want, "argmax");
    lb_leave(cx);
    free(want);
    free(x);
}

/* Rows of v (f32) are added to fewer rows, one after the other. */
static void check_scatter(lb_ctx *cx, lb_array *v, const float *all)
{
    enum { ROWS = 7 };
    const int64_t n = lb_dim(v, 0), row = lb_dim(v, 1);
    int32_t *index = malloc((size_t)n * sizeof *index);
    float *want = calloc((size_t)(ROWS * row), sizeof *want);
    float *x = (float *)(void *)pick_out(v, (const char *)all, sizeof *x);
    uint32_t seed = 3;
    for (int64_t w = 0; w < n; w++) {
        index[w] = (int32_t)(next(&seed) % (ROWS + 1)); /* some are outside */
        for (int64_t e = 0; e < row && index[w] < ROWS; e++)
            want[index[w] * row + e] += x[w * row + e];
    }
    lb_enter(cx);
    const lb_gather_dims d = {.offset_dims = {1, {1}},
                              .collapsed_slice_dims = {1, {0}},
                              .start_index_map = {1, {0}},
                              .index_vector_dim = 1,
                              .slice_sizes = {1, row},
                              .bounds = LB_BOUNDS_FILL};
    lb_array *sums = lb_zeros(cx, LB_F32, LB_SHAPE(ROWS, row));
    lb_array *at = lb_from(cx, LB_I32, LB_SHAPE(n), index);
    check_bytes(lb_data(lb_scatter_add(cx, sums, at, v, &d)), want,
                (size_t)(ROWS * row) * sizeof *want, "scatter_add");
    lb_leave(cx);
    free(index);
    free(want);
    free(x);
}

/* A view that is not row-major has the codes of its contiguous copy, and
 * refuses the same value. */
static void check_quantize(lb_ctx *cx, lb_array *v, const char *name)
{
    const lb_quant_config q = {.struct_size = sizeof q, .format = name};
    lb_enter(cx);
    lb_array *copy = lb_materialize(cx, v);
    lb_array *want = lb_quantize(cx, copy, &q), *got = lb_quantize(cx, v, &q);
    CHECK(!want == !got);
    lb_clear(cx);
    if (want && got) {
        char *x = read_all(cx, want), *y = read_all(cx, got);
        check_bytes(y, x, (size_t)lb_size(v) * sizeof(float), "quantize");
        free(x);
        free(y);
        char sentence[512];
        float *number = (float *)(void *)read_all(cx, copy);
        number[lb_size(v) / 3 * 2] = INFINITY;
        number[lb_size(v) - 1] = INFINITY;
        lb_array *bad = lb_from(cx, LB_F32, lb_shape_of(v), number);
        free(number);
        CHECK(!lb_quantize(cx, bad, &q));
        snprintf(sentence, sizeof sentence, "%s", lb_error(cx));
        lb_clear(cx);
        lb_array *t = lb_materialize(cx, lb_transpose(cx, bad, NULL));
        CHECK(!lb_quantize(cx, lb_transpose(cx, t, NULL), &q));
        CHECK_EQ_S(lb_error(cx), sentence);
        lb_clear(cx);
    }
    lb_leave(cx);
}

static void check_others(lb_ctx *cx, lb_array *a)
{
    if (!a) return;
    char *all = read_all(cx, a);
    const float *x = (const float *)(const void *)all;
    lb_array *t = lb_transpose(cx, a, NULL);
    lb_array *cut = part_of(cx, t, 3, 1, 1);
    for (int axis = 0; axis < 2; axis++) {
        check_argmax(cx, a, x, axis);
        check_argmax(cx, cut, x, axis);
    }
    check_scatter(cx, a, x);
    check_scatter(cx, t, x);
    check_scatter(cx, cut, x);
    for (int k = 0; lb_format_at(cx, k); k++)
        if (lb_is_encodable(lb_format_at(cx, k)))
            check_quantize(cx, t, lb_format_at(cx, k)->name);
    free(all);
}

/* ---- arrays -------------------------------------------------------------- */

static void check_array(lb_ctx *cx, lb_array *a, bool views)
{
    if (!a) return;
    char *all = read_all(cx, a);
    if (views) check_views(cx, a, all);
    check_gathers(cx, a, all, views ? 300 : 5000);
    check_gathers(cx, a, all, 3);
    check_points(cx, a, all, 5000);
    free(all);
}

/* Packed, dtypes f32 and bf16; a format may not support the shape. */
static void check_format(lb_ctx *cx, const char *name, lb_shape shape,
                         bool views)
{
    const lb_quant_config q = {.struct_size = sizeof q, .format = name};
    what = name;
    lb_enter(cx);
    lb_array *x = lb_random_normal(cx, (lb_key){1, 2}, LB_F32, shape);
    lb_array *a = lb_quantize(cx, x, &q);
    if (!a) lb_clear(cx);
    check_array(cx, a, views);
    if (views) check_others(cx, a);
    check_array(cx, a && views ? lb_convert(cx, a, LB_BF16) : NULL, views);
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
}

static void check_dense(lb_ctx *cx, lb_dtype d, lb_shape shape, bool views)
{
    what = lb_dtype_name(d);
    lb_enter(cx);
    lb_array *x = lb_random_normal(cx, (lb_key){1, 2}, LB_F32, shape);
    if (d == LB_BOOL) x = lb_lt(cx, x, lb_scalar(cx, 0));
    check_array(cx, lb_convert(cx, x, d), views);
    if (views && d == LB_F32) check_others(cx, x);
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
}

/* Integer arrays: their tiles are i64. */
static void check_integers(lb_ctx *cx)
{
    const lb_quant_config q = {
        .struct_size = sizeof q, .format = "ternary", .dtype = LB_I8};
    what = "ternary i8";
    lb_enter(cx);
    lb_array *x =
        lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(70, 888));
    lb_array *a = lb_quantize(cx, x, &q);
    CHECK(a);
    check_array(cx, a, true);
    lb_leave(cx);
}

int main(void)
{
    static const lb_dtype dtypes[] = {LB_F32, LB_BF16, LB_F64,
                                      LB_I32, LB_U8,   LB_BOOL};
    const lb_options o = {.struct_size = sizeof o, .threads = 2};
    lb_ctx *cx = lb_open(&o);
    const lb_shape odd = LB_SHAPE(66, 600), even = LB_SHAPE(34, 768);
    const lb_shape longer = LB_SHAPE(2, 20480);
    for (int k = 0; lb_format_at(cx, k); k++) {
        const lb_format *f = lb_format_at(cx, k);
        if (!lb_is_encodable(f)) continue;
        check_format(cx, f->name, odd, true);
        check_format(cx, f->name, even, true);
        check_format(cx, f->name, longer, false);
    }
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        check_dense(cx, dtypes[i], odd, true);
        check_dense(cx, dtypes[i], longer, false);
    }
    check_integers(cx);
    lb_close(cx);
    return check_report("far reads");
}
