/* test_blocks.c - packed arrays are cut, joined and gathered by whole blocks.
 *
 * For each toy format, view and cut: the values are those of the dense array,
 * whether or not the format was kept. Where it was kept, the bytes of every
 * part are canonical: equal to those of quantizing the cut (for the toys, the
 * same box of the part's own entries). The number of kept formats is checked,
 * so that a rule that always declines fails.
 */
#include <stdlib.h>

#include "check.h"
#include "core/core.h"
#include "dense_log.h"
#include "samples.h"
#include "toy_formats.h"

static float *values(lb_ctx *cx, lb_array *a)
{
    const size_t size = (size_t)lb_size(a) * sizeof(float);
    float *v = malloc(size + 1);
    const bool got = a && lb_read(cx, a, v, size);
    CHECK(got);
    if (!got) {
        fprintf(stderr, "%s\n", lb_error(cx));
        lb_clear(cx);
    }
    return v;
}

static void same_values(lb_ctx *cx, lb_array *a, lb_array *b)
{
    CHECK(a && b && lb_size(a) == lb_size(b));
    if (!a || !b || lb_size(a) != lb_size(b)) {
        if (*lb_error(cx)) fprintf(stderr, "%s\n", lb_error(cx));
        lb_clear(cx);
        return;
    }
    float *x = values(cx, a), *y = values(cx, b);
    CHECK(!memcmp(x, y, (size_t)lb_size(a) * sizeof *x));
    free(x);
    free(y);
}

static bool packed(const lb_array *a)
{
    return a && strcmp(lb_format_of(a), "dense") != 0;
}

enum { N_SAMPLES = 9 };

static lb_array *toy_sample(lb_ctx *cx, int i)
{
    const lb_shape s2 = {2, {6, 150}}, s3 = {3, {2, 3, 64}}, s1 = {1, {130}};
    switch (i) {
    case 0:
        return toy_block_make(cx, &s2, 64, 1);
    case 1:
        return toy_block_make(cx, &s3, 32, 2);
    case 2:
        return toy_block_make(cx, &s1, 64, 3);
    case 3:
        return toy_scale_make(cx, &s2, 2, 4);
    case 4:
        return toy_scale_make(cx, &s2, 1, 5);
    case 5:
        return toy_scale_make(cx, &s3, 5, 6);
    case 6:
        return toy_scale_make(cx, &s3, 7, 7);
    case 7:
        return toy_sum_make(cx, toy_block_make(cx, &s2, 50, 8), 3, 9);
    default: {
        /* a flat row whose blocks cross the rows of the view */
        const lb_shape flat = {1, {512}}, rows = {2, {4, 128}};
        return lb_reshape(cx, toy_block_make(cx, &flat, 64, 10), rows);
    }
    }
}

static lb_array *dense_of(lb_ctx *cx, lb_array *a)
{
    return lb_materialize(cx, a);
}

/* [lo, hi) along axis */
static lb_array *range(lb_ctx *cx, lb_array *a, int axis, int64_t lo,
                       int64_t hi)
{
    int64_t from[LB_MAX_RANK] = {0}, to[LB_MAX_RANK];
    const lb_shape s = lb_shape_of(a);
    memcpy(to, s.dim, sizeof to);
    from[axis] = lo;
    to[axis] = hi;
    return lb_slice(cx, a, from, to, NULL);
}

static long kept_packs, kept_joins, kept_picks, splits;

/* join(split(q)) == q, at every position. */
static void split_and_join(lb_ctx *cx, lb_array *q)
{
    lb_array *dense = dense_of(cx, q);
    for (int axis = 0; axis < lb_rank(q); axis++)
        for (int64_t at = 0; at <= lb_dim(q, axis);
             at += lb_dim(q, axis) > 20 ? 5 : 1) {
            lb_enter(cx);
            lb_array *half[2] = {range(cx, q, axis, 0, at),
                                 range(cx, q, axis, at, lb_dim(q, axis))};
            lb_array *whole = lb_concatenate(cx, half, 2, axis);
            same_values(cx, whole, dense);
            splits++;
            kept_joins += packed(whole);
            for (int i = 0; i < 2; i++) {
                lb_array *own = NULL;
                const lb_verdict v = lb_pack(cx, half[i], &own);
                CHECK(v != LB_FAILED);
                if (v != LB_DONE) continue;
                kept_packs++;
                CHECK(packed(own));
                same_values(cx, own, dense_of(cx, half[i]));
                CHECK(lb_nbytes(own) <= lb_nbytes(q));
            }
            lb_leave(cx);
        }
}

static void pick(lb_ctx *cx, lb_array *q)
{
    const int32_t at[5] = {1, 0, 1, 5, 2};
    lb_array *index = lb_from(cx, LB_I32, LB_SHAPE(5), at);
    lb_array *square = lb_from(cx, LB_I32, LB_SHAPE(2, 2), at);
    lb_array *dense = dense_of(cx, q);
    for (int axis = 0; axis < lb_rank(q); axis++) {
        lb_array *a = lb_take(cx, q, index, axis);
        same_values(cx, a, lb_take(cx, dense, index, axis));
        kept_picks += packed(a);
        a = lb_take(cx, q, square, axis);
        same_values(cx, a, lb_take(cx, dense, square, axis));
        kept_picks += packed(a);
    }
}

/* Cut by rows, the parts are the rows of the parts. */
static void canonical_bytes(lb_ctx *cx)
{
    lb_array *q = toy_sample(cx, 0), *own = NULL;
    CHECK(lb_pack(cx, range(cx, q, 0, 2, 5), &own) == LB_DONE);
    if (!own) return;
    for (int p = 0; p < 2; p++) {
        lb_array *want = range(cx, q->store->part[p].a, 0, 2, 5);
        lb_array *got = own->store->part[p].a;
        const lb_shape ws = lb_shape_of(want), gs = lb_shape_of(got);
        CHECK(lb_shape_equal(&ws, &gs));
        const size_t size =
            (size_t)lb_size(want) * lb_dtype_size(lb_dtype_of(want));
        char *x = malloc(size), *y = malloc(size);
        CHECK(lb_read(cx, want, x, size) && lb_read(cx, got, y, size) &&
              !memcmp(x, y, size));
        free(x);
        free(y);
    }
    /* A cut inside a block is not possible. */
    CHECK(lb_pack(cx, range(cx, q, 1, 3, 67), &own) == LB_DECLINED);
    CHECK(lb_pack(cx, range(cx, q, 1, 64, 150), &own) == LB_DONE);
    CHECK(lb_pack(cx, range(cx, q, 1, 64, 128), &own) == LB_DONE);
    CHECK(lb_pack(cx, range(cx, q, 1, 0, 100), &own) == LB_DECLINED);
}

/* A firm part never becomes dense: cutting through its blocks makes the whole
 * array dense. */
static void firm_parts(lb_ctx *cx)
{
    lb_array *q = toy_sample(cx, 7), *own = NULL;
    CHECK(lb_pack(cx, range(cx, q, 1, 50, 100), &own) == LB_DONE);
    CHECK(packed(own) && packed(own->store->part[0].a));
    CHECK(lb_pack(cx, range(cx, q, 1, 50, 101), &own) == LB_DECLINED);
}

/* In either order: a packed base is not decoded because another one is dense.
 */
static void firm_mixed(lb_ctx *cx)
{
    const lb_shape s = {2, {6, 150}};
    lb_array *q = toy_sum_make(cx, toy_block_make(cx, &s, 50, 8), 3, 9);
    lb_array *d = toy_sum_make(cx, lb_materialize(cx, q), 3, 10);
    for (int i = 0; i < 2; i++) {
        lb_array *both[2] = {i ? q : d, i ? d : q};
        lb_array *whole = lb_concatenate(cx, both, 2, 0);
        CHECK(whole && !packed(whole));
    }
}

/* A scale shared by the rows, itself packed in blocks that cross its own rows.
 */
static void flat_shared_part(lb_ctx *cx)
{
    const lb_shape flat = {1, {96}}, part = {3, {1, 2, 48}},
                   s = {3, {4, 2, 48}};
    lb_array *scale = lb_reshape(cx, toy_block_make(cx, &flat, 32, 11), part);
    lb_part t[LB_MAX_PARTS];
    memcpy(t, toy_scale_make(cx, &s, 1, 12)->store->part, sizeof t);
    t[1].a = scale;
    lb_array *q = lb_make(cx, &toy_scale, LB_F32, 0, &s, t);
    CHECK(q && packed(q->store->part[1].a));
    lb_array *both[2] = {q, q}, *dense = dense_of(cx, q);
    lb_array *want[2] = {dense, dense};
    lb_array *whole = lb_concatenate(cx, both, 2, 0);
    CHECK(packed(whole) && packed(whole->store->part[1].a));
    same_values(cx, whole, lb_concatenate(cx, want, 2, 0));
}

static void flat_rows(lb_ctx *cx)
{
    lb_array *q = toy_sample(cx, 8), *own = NULL;
    CHECK(lb_pack(cx, range(cx, q, 0, 1, 3), &own) == LB_DONE);
    lb_array *both[2] = {range(cx, q, 0, 0, 1), range(cx, q, 0, 1, 4)};
    lb_array *whole = lb_concatenate(cx, both, 2, 0);
    CHECK(packed(whole));
    same_values(cx, whole, dense_of(cx, q));
}

static void different_scales(lb_ctx *cx)
{
    const lb_shape s = {2, {4, 6}};
    lb_array *a = toy_scale_make(cx, &s, 2, 1),
             *b = toy_scale_make(cx, &s, 2, 2);
    lb_array *rows = lb_concatenate(cx, (lb_array *[]){a, b}, 2, 0);
    CHECK(packed(rows)); /* one scale a row: rows join */
    lb_array *columns = lb_concatenate(cx, (lb_array *[]){a, b}, 2, 1);
    CHECK(!packed(columns)); /* scales differ: dense */
    same_values(cx, columns,
                lb_concatenate(cx,
                               (lb_array *[]){dense_of(cx, a), dense_of(cx, b)},
                               2, 1));
    lb_array *twice = lb_concatenate(cx, (lb_array *[]){a, a}, 2, 1);
    CHECK(packed(twice)); /* equal scales stay shared */
}

static void bad_parts(lb_ctx *cx)
{
    const lb_shape s = {2, {4, 6}}, wrong = {2, {4, 9}};
    lb_array *q = toy_block_make(cx, &s, 4, 1);
    lb_part t[LB_MAX_PARTS];
    memcpy(t, q->store->part, sizeof t);
    CHECK(!lb_make(cx, &toy_block, LB_F32, 0, &wrong, t));
    CHECK(lb_error_status(cx) == LB_E_SHAPE);
    CHECK(strstr(lb_error(cx), "(4,5)") && strstr(lb_error(cx), "(4,3)"));
    lb_clear(cx);
    t[0].g[1] = 3;
    CHECK(!lb_make(cx, &toy_block, LB_F32, 0, &s, t));
    CHECK(lb_error_status(cx) == LB_E_SHAPE);
    CHECK(strstr(lb_error(cx), "(4,3)") && strstr(lb_error(cx), "(4,2)"));
    lb_clear(cx);
    memcpy(t, q->store->part, sizeof t);
    t[3].a = t[0].a;
    CHECK(!lb_make(cx, &toy_block, LB_F32, 0, &s, t));
    CHECK(lb_error_status(cx) == LB_E_ARG);
    lb_clear(cx);
    /* sums of sums of sums ... */
    lb_array *deep = q;
    int depth = 0;
    while (deep && depth < 20) {
        deep = toy_sum_make(cx, deep, 1, 3);
        depth++;
    }
    CHECK(!deep && lb_error_status(cx) == LB_E_SIZE);
    CHECK_EQ_I(depth, LB_MAX_NESTING); /* toy_block itself is one level */
    lb_clear(cx);
}

/* ---- reshape ------------------------------------------------------------ */

/* view in shape has the values of the dense array, and is packed or not. */
static void reshapes(lb_ctx *cx, lb_array *view, lb_shape shape, bool keeps)
{
    lb_text why = {""};
    lb_array *want = lb_reshape(cx, lb_materialize(cx, view), shape);
    lb_array *got = lb_reshape(cx, view, shape);
    if (check_fails(got && sample_same(got, want, &why) &&
                    packed(got) == keeps))
        fprintf(stderr, "%s%s to %s: %s %s\n", lb_format_of(view),
                LB_SHOW(&view->shape), LB_SHOW(&shape), lb_format_of(got),
                why.s);
}

/* A reshape that is no view moves whole rows and blocks, or is dense. */
static void reshape_moves(lb_ctx *cx)
{
    const lb_shape s = LB_SHAPE(3, 4, 128), rows = LB_SHAPE(12, 128);
    lb_array *x = lb_random_normal(cx, (lb_key){5, 6}, LB_F32, s);
    const int swap[] = {1, 0, 2};
    static const char *const name[] = {"nf4", "int8", "ternary", "q8_0"};
    for (int i = 0; i < 4; i++) {
        lb_array *q = lb_quantize(cx, x, &(lb_quant_config){.format = name[i]});
        lb_array *t = lb_transpose(cx, q, swap);
        lb_text why;
        reshapes(cx, t, rows, true);
        reshapes(cx, t, LB_SHAPE(6, 2, 128), true);
        reshapes(cx, t, LB_SHAPE(-1), true);
        reshapes(cx, t, LB_SHAPE(24, 64), true);
        /* The bytes are those of quantizing in that order (except for a scale
         * of the whole tensor, whose sum has another order). */
        lb_array *y = lb_reshape(cx, lb_transpose(cx, x, swap), rows);
        lb_array *want =
            lb_quantize(cx, y, &(lb_quant_config){.format = name[i]});
        lb_array *got = lb_reshape(cx, t, rows);
        if (i != 2)
            for (int p = 0; p < LB_MAX_PARTS; p++)
                if (want->store->part[p].a)
                    CHECK(sample_same(lb_reshape(cx, got->store->part[p].a,
                                                 want->store->part[p].a->shape),
                                      want->store->part[p].a, &why));
        /* Cut at the ends of blocks, and inside. */
        const int64_t lo[] = {0, 0, 64}, odd[] = {0, 0, 3}, hi[] = {3, 4, 128};
        reshapes(cx, lb_slice(cx, q, lo, hi, NULL), LB_SHAPE(12, 64), true);
        reshapes(cx, lb_slice(cx, q, odd, hi, NULL), LB_SHAPE(1500), i == 1);
        /* The last axis moves: only codes that are not packed can. */
        reshapes(cx, lb_transpose(cx, q, NULL), LB_SHAPE(512, 3), i == 1);
        /* Repeated and reversed elements. */
        reshapes(cx, lb_reverse(cx, q, LB_AXES(0)), rows, false);
        reshapes(cx, lb_broadcast_to(cx, q, LB_SHAPE(2, 3, 4, 128)),
                 LB_SHAPE(24, 128), false);
    }
    /* int8 with a scale per output, transposed. */
    lb_array *w = lb_quantize(
        cx, lb_random_normal(cx, (lb_key){7, 8}, LB_F32, LB_SHAPE(10, 12)),
        &(lb_quant_config){.format = "int8", .axes = {1, {0}}});
    reshapes(cx, lb_transpose(cx, w, NULL), LB_SHAPE(3, 40), true);
    CHECK_EQ_S(lb_error(cx), "");
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){
        .threads = 2, .dense = LB_DENSE_LOG, .log = log_no_copies});
    for (int i = 0; i < N_SAMPLES; i++) {
        lb_array *q = toy_sample(cx, i);
        CHECK(q && packed(q));
        if (!q) continue;
        split_and_join(cx, q);
        pick(cx, q);
        if (lb_rank(q) < 2) continue;
        split_and_join(cx, lb_transpose(cx, q, NULL));
        pick(cx, lb_transpose(cx, q, NULL));
    }
    CHECK(kept_joins > 100 && kept_packs > 100 && kept_picks > 10);
    printf("%ld splits, %ld packs, %ld joins, %ld picks kept their format\n",
           splits, kept_packs, kept_joins, kept_picks);
    canonical_bytes(cx);
    firm_parts(cx);
    firm_mixed(cx);
    flat_shared_part(cx);
    flat_rows(cx);
    different_scales(cx);
    bad_parts(cx);
    reshape_moves(cx);
    lb_close(cx);
    return check_report("blocks");
}
