/* test_update_in_place.c - lb_update_in_place: the values of
 * dynamic_update_slice, the same storage where nobody else can see it, and a
 * copy, which is reported, wherever somebody can.
 */
#include "programs.h"
#include "ranks.h"

static char last[512];
static int sentences;

static void note(void *user, const char *sentence)
{
    (void)user;
    sentences++;
    snprintf(last, sizeof last, "%s", sentence);
}

static void count(void *user, const char *sentence)
{
    (void)sentence;
    ++*(int *)user;
}

/* *a updated at row i of axis 0, the rest at 0; checks values, and whether it
 * happened in place. */
static void update(lb_ctx *cx, lb_array **a, lb_array *u, int64_t i,
                   bool in_place, int line)
{
    lb_array *at[LB_MAX_RANK], *was = *a;
    lb_enter(cx);
    for (int k = 0; k < lb_rank(u); k++)
        at[k] = lb_scalar_int(cx, k ? 0 : i);
    lb_enter(cx); /* without views that would be other holders */
    lb_array *want = lb_dynamic_update_slice(
        cx, lb_materialize(cx, *a),
        lb_convert(cx, lb_materialize(cx, u), lb_dtype_of(*a)), at);
    want = lb_from(cx, lb_dtype_of(want), lb_shape_of(want), lb_data(want));
    lb_keep(cx, want);
    lb_leave(cx);
    const int before = sentences;
    lb_array *got = lb_update_in_place(cx, a, u, at);
    if (check_fails(got && got == *a && equal(lb_materialize(cx, got), want) &&
                    in_place == (*a == was)))
        fprintf(stderr, "line %d: %s%s%s\n", line, *a == was ? "in place " : "",
                lb_error(cx), sentences > before ? last : "");
    if (check_fails(in_place == (sentences == before)))
        fprintf(stderr, "line %d: %d sentences: %s\n", line, sentences - before,
                last);
    lb_leave(cx);
}
#define UPDATE(a, u, i, in_place) update(cx, a, u, i, in_place, __LINE__)

static lb_array *zeros(lb_ctx *cx)
{
    return lb_materialize(cx, lb_zeros(cx, LB_F32, LB_SHAPE(6, 4)));
}

/* ---- dense --------------------------------------------------------------- */

static void dense(lb_ctx *cx)
{
    lb_enter(cx);
    lb_array *a = zeros(cx), *row = iota(cx, LB_F32, LB_SHAPE(1, 4));
    const void *data = lb_data(a);
    UPDATE(&a, row, 2, true);
    UPDATE(&a, row, 99, true); /* clamped to row 5 */
    UPDATE(&a, row, -3, true);
    UPDATE(&a, iota(cx, LB_F32, LB_SHAPE(2, 3)), 3, true);
    UPDATE(&a, iota(cx, LB_F32, LB_SHAPE(6, 4)), 0, true);
    UPDATE(&a, lb_zeros(cx, LB_F32, LB_SHAPE(0, 4)), 0, true);
    UPDATE(&a, lb_transpose(cx, iota(cx, LB_F32, LB_SHAPE(4, 2)), NULL), 1,
           true);
    CHECK(lb_data(a) == data);
    /* the array's dtype stays, other than with dynamic_update_slice */
    lb_array *h = lb_convert(cx, zeros(cx), LB_F16);
    UPDATE(&h, row, 1, true);
    CHECK_EQ_I(lb_dtype_of(h), LB_F16);
    lb_array *scalar = lb_full(cx, LB_F32, lb_shape_make(0, NULL), 1);
    CHECK(lb_update_in_place(cx, &scalar, lb_scalar(cx, 7), NULL) == scalar);
    CHECK(lb_item(cx, scalar) == 7);
    /* what only repeats a value is stored by the first update */
    lb_array *large = lb_zeros(cx, LB_F32, LB_SHAPE(300, 5000)), *first = large;
    lb_array *at[] = {lb_scalar_int(cx, 1), lb_scalar_int(cx, 0)};
    const int before = sentences;
    CHECK(lb_update_in_place(cx, &large, row, at) && large != first);
    CHECK_EQ_I(sentences, before);
    UPDATE(&large, iota(cx, LB_F32, LB_SHAPE(299, 4999)), 1, true);
    lb_leave(cx);
}

static lb_array *outer;

/* The array stays where it was held, however it was updated. */
static void scopes(lb_ctx *cx)
{
    lb_enter(cx);
    outer = zeros(cx);
    for (int copied = 0; copied < 2; copied++) {
        lb_enter(cx);
        lb_array *view = copied ? lb_transpose(cx, outer, NULL) : NULL;
        UPDATE(&outer, iota(cx, LB_F32, LB_SHAPE(1, 4)), 1, !copied);
        if (view) CHECK(lb_item(cx, lb_reduce_sum(cx, view, NULL)) != 0);
        lb_leave(cx);
        CHECK(lb_item(cx, lb_reduce_sum(cx, outer, NULL)) != 0);
    }
    lb_array *held = lb_ref(zeros(cx));
    lb_drop(cx, held); /* now a reference is its only holder */
    for (int copied = 0; copied < 2; copied++) {
        lb_enter(cx);
        if (copied) lb_transpose(cx, held, NULL);
        UPDATE(&held, iota(cx, LB_F32, LB_SHAPE(1, 4)), 1, !copied);
        lb_leave(cx);
    }
    lb_leave(cx);
    CHECK(((const float *)lb_data(held))[5] != 0);
    lb_unref(held);
}

static void expect_said(const char *why, int line)
{
    if (check_fails(strstr(last, why) != NULL))
        fprintf(stderr, "line %d: \"%s\", not \"%s\"\n", line, last, why);
}
#define SAID(why) expect_said(why, __LINE__)

/* Everybody who can see the array goes on seeing what it was. */
static void holders(lb_ctx *cx)
{
    static float mine[24];
    lb_enter(cx);
    lb_array *row = lb_full(cx, LB_F32, LB_SHAPE(1, 4), 3), *old;
    lb_array *a = zeros(cx), *zero = zeros(cx);
    old = lb_ref(a);
    UPDATE(&a, row, 1, false);
    SAID("update_in_place copies dense f32(6,4) of 96 bytes: it has another "
         "holder");
    CHECK(equal(old, zero));
    lb_unref(old);

    a = zeros(cx);
    old = lb_reshape(cx, a, LB_SHAPE(24));
    UPDATE(&a, row, 1, false);
    SAID("a view of it exists");
    CHECK(equal(lb_reshape(cx, old, LB_SHAPE(6, 4)), zero));
    UPDATE(&a, row, 2, true); /* the copy has no other holder */

    a = zeros(cx); /* the update is part of the array itself */
    lb_array *part =
        lb_slice(cx, a, (int64_t[]){0, 0}, (int64_t[]){1, 4}, NULL);
    UPDATE(&a, part, 1, false);
    a = zeros(cx);
    UPDATE(&a, a, 0, false);

    a = lb_wrap(cx, LB_F32, LB_SHAPE(6, 4), mine, NULL, NULL);
    UPDATE(&a, row, 1, false);
    SAID("its memory was not allocated by the context");
    CHECK(mine[4] == 0);

    lb_array *t = zeros(cx);
    a = lb_transpose(cx, t, NULL);
    lb_drop(cx, t);
    UPDATE(&a, lb_full(cx, LB_F32, LB_SHAPE(1, 6), 3), 1, false);
    SAID("it is not row-major");
    UPDATE(&a, lb_full(cx, LB_F32, LB_SHAPE(1, 6), 4), 2, true);
    lb_leave(cx);
}

static void refusals(lb_ctx *cx)
{
    lb_enter(cx);
    lb_array *a = lb_zeros(cx, LB_I32, LB_SHAPE(4)), *was = a, *none = NULL;
    lb_array *at[] = {lb_scalar_int(cx, 0)};
    CHECK(!lb_update_in_place(cx, &a, lb_zeros(cx, LB_F32, LB_SHAPE(2)), at));
    CHECK(strstr(lb_error(cx), "the update is f32, which would be truncated"));
    lb_clear(cx);
    CHECK(!lb_update_in_place(cx, &a, lb_zeros(cx, LB_I32, LB_SHAPE(5)), at));
    CHECK(strstr(lb_error(cx), "(5) does not fit into (4)"));
    lb_clear(cx);
    CHECK(!lb_update_in_place(cx, &none, a, at) && lb_error_status(cx));
    lb_clear(cx);
    CHECK(!lb_update_in_place(cx, &a, a, NULL) && lb_error_status(cx));
    lb_clear(cx);
    CHECK(!lb_update_in_place(cx, &a, NULL, at) && a == was);
    lb_clear(cx);
    lb_leave(cx);
}

/* ---- packed -------------------------------------------------------------- */

/* Caches of 2 heads, 6 positions of 512: whole rows are blocks of any format
 * that quantizes along the last axis. */
static void packed(lb_ctx *cx, const lb_quant_config *config, bool in_place)
{
    lb_enter(cx);
    lb_array *x =
        lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(2, 6, 512));
    lb_array *u =
        lb_random_normal(cx, (lb_key){3, 4}, LB_F32, LB_SHAPE(2, 1, 512));
    lb_array *a = lb_quantize(cx, x, config), *q = lb_quantize(cx, u, config);
    const lb_array *was = a;
    lb_array *zero = lb_scalar_int(cx, 0);
    lb_array *at[] = {zero, lb_scalar_int(cx, 3), zero};
    lb_array *want = lb_dynamic_update_slice(cx, lb_materialize(cx, a),
                                             lb_materialize(cx, q), at);
    lb_array *joined = lb_dynamic_update_slice(cx, a, q, at);
    CHECK(lb_update_in_place(cx, &a, q, at));
    if (check_fails(equal(lb_materialize(cx, a), want) &&
                    equal(lb_materialize(cx, joined), want) &&
                    !strcmp(lb_format_of(a), config->format) &&
                    !strcmp(lb_format_of(joined), config->format) &&
                    (a == was) == in_place))
        fprintf(stderr, "%s: %s, %s, %s\n", config->format, lb_format_of(a),
                lb_format_of(joined), lb_error(cx));
    lb_leave(cx);
}

static void formats(lb_ctx *cx)
{
    static const char *const blocks[] = {"nf4", "q4_0", "q8_0", "iq4_nl"};
    const int before = sentences;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        packed(cx, &(lb_quant_config){.format = blocks[i]}, true);
    packed(cx, &(lb_quant_config){.format = "int8", .axes = {1, {-1}}}, true);
    CHECK_EQ_I(sentences, before);
}

/* What is no whole block, or dense, makes a dense result: an event. */
static void packed_to_dense(lb_ctx *cx)
{
    lb_enter(cx);
    const lb_quant_config nf4 = {.format = "nf4", .block_size = 64};
    lb_array *x = iota(cx, LB_F32, LB_SHAPE(4, 128));
    lb_array *row = lb_neg(cx, iota(cx, LB_F32, LB_SHAPE(1, 128)));
    lb_array *a = lb_quantize(cx, x, &nf4);
    lb_array *at[] = {lb_scalar_int(cx, 1), lb_scalar_int(cx, 0)};
    lb_array *inside[] = {lb_scalar_int(cx, 1), lb_scalar_int(cx, 32)};
    lb_array *half =
        lb_quantize(cx, lb_neg(cx, iota(cx, LB_F32, LB_SHAPE(1, 64))), &nf4);
    lb_set_dense(cx, "nf4", LB_DENSE_DENY);
    const lb_array *was = a;
    CHECK(!lb_update_in_place(cx, &a, row, at) && a == was);
    CHECK_EQ_I(lb_error_status(cx), LB_E_DENIED);
    lb_clear(cx);
    CHECK(!lb_update_in_place(cx, &a, half, inside) && a == was);
    lb_clear(cx);
    CHECK(equal(a, lb_quantize(cx, x, &nf4)));
    CHECK(lb_update_in_place(cx, &a, lb_quantize(cx, row, &nf4), at) == was);
    CHECK(lb_update_in_place(cx, &a, half, at) == was); /* half a row */
    lb_set_dense(cx, "nf4", LB_DENSE_DEFAULT);
    sentences = 0;
    CHECK(lb_update_in_place(cx, &a, row, at) && a != was && lb_data(a));
    CHECK(sentences == 2 && strstr(last, "whole blocks"));
    UPDATE(&a, row, 0, true); /* dense from now on */

    /* with one scale for all of it, a row has no scale of its own */
    a = lb_quantize(cx, x,
                    &(lb_quant_config){.format = "int8", .axes = {2, {0, 1}}});
    lb_array *q = lb_quantize(
        cx, row, &(lb_quant_config){.format = "int8", .axes = {2, {0, 1}}});
    sentences = 0;
    lb_array *want = lb_dynamic_update_slice(cx, lb_materialize(cx, a),
                                             lb_materialize(cx, q), at);
    CHECK(lb_update_in_place(cx, &a, q, at) && lb_data(a) && sentences == 2);
    CHECK(equal(a, want));
    lb_leave(cx);
}

/* ---- layers -------------------------------------------------------------- */

static lb_array *loss(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *at[] = {lb_scalar_int(cx, 1), lb_scalar_int(cx, 0)};
    lb_array *cache = zeros(cx), *y = lb_mul(cx, a[0], a[0]);
    CHECK(lb_update_in_place(cx, &cache, y, at));
    lb_array *first = lb_mul(cx, cache, cache);
    at[0] = lb_scalar_int(cx, 2);
    CHECK(lb_update_in_place(cx, &cache, y, at));
    return lb_add(cx, lb_reduce_sum(cx, lb_mul(cx, cache, cache), NULL),
                  lb_reduce_sum(cx, first, NULL));
}

/* sum of y^2 once and twice, y = x^2: 3 x^4, whose gradient is 12 x^3 */
static void tapes(lb_ctx *cx)
{
    lb_enter(cx);
    lb_array *x =
        lb_add(cx, iota(cx, LB_F32, LB_SHAPE(1, 4)), lb_scalar(cx, 1));
    lb_array *g, *y = lb_value_and_grad(cx, loss, &x, 1, NULL, &g, 1);
    lb_array *want = lb_mul(cx, lb_scalar(cx, 12), lb_integer_pow(cx, x, 3));
    CHECK(y && g &&
          equal(lb_round(cx, lb_mul(cx, g, lb_scalar(cx, 1e4))),
                lb_round(cx, lb_mul(cx, want, lb_scalar(cx, 1e4)))));
    /* watched: the tape itself holds it */
    lb_array *a = zeros(cx), *was = a, *dx;
    lb_tape *t = lb_tape_open(cx);
    CHECK(lb_tape_watch(t, a));
    UPDATE(&a, x, 1, false);
    y = lb_reduce_sum(cx, a, NULL);
    CHECK(lb_tape_grad(t, y, NULL, &was, 1, &dx));
    CHECK(lb_item(cx, lb_reduce_sum(cx, dx, NULL)) == 20);
    lb_array *free_one = zeros(cx); /* nothing depends on this one */
    UPDATE(&free_one, lb_stop_gradient(cx, x), 1, true);
    lb_tape_close(t);
    lb_leave(cx);
}

/* (cache, row, position): the cache updated twice, and the sum of both rows. */
static bool step(lb_ctx *cx, lb_array *const *a, int n, lb_array **out, int m,
                 void *user)
{
    (void)n, (void)m;
    const int *kind = user;
    lb_array *cache = a[0], *zero = lb_scalar_int(cx, 0);
    lb_array *at[] = {a[2], zero};
    lb_array *next[] = {lb_add(cx, a[2], lb_scalar_int(cx, 1)), zero};
    lb_array *before = *kind ? lb_reduce_sum(cx, cache, NULL) : zero;
    lb_update_in_place(cx, &cache, a[1], at);
    lb_update_in_place(cx, &cache, lb_mul(cx, a[1], lb_scalar(cx, 2)), next);
    out[0] = cache;
    out[1] = lb_add(cx, lb_reduce_sum(cx, cache, NULL), before);
    return out[0] && out[1];
}

/* Runs f on *a; the values have to be those of the eager function. */
static void run_step(lb_ctx *cx, lb_compiled *f, int *kind, lb_array **a,
                     int64_t at, bool in_place, int line)
{
    lb_array *out[2], *want[2];
    lb_enter(cx);
    lb_array *row = lb_full(cx, LB_F32, LB_SHAPE(1, 4), (double)at);
    lb_array *copy = lb_from(cx, LB_F32, lb_shape_of(*a), lb_data(*a));
    lb_array *own[] = {copy, row, lb_full_int(cx, LB_I32, (lb_shape){0}, at)};
    lb_array *args[] = {*a, own[1], own[2]};
    CHECK(step(cx, own, 3, want, 2, kind));
    const lb_array *was = *a;
    CHECK(lb_run_many(f, args, 3, out));
    if (check_fails(equal(out[0], want[0]) && equal(out[1], want[1]) &&
                    (out[0] == was) == in_place))
        fprintf(stderr, "line %d: %s, %s\n%s", line, lb_error(cx), last,
                lb_compiled_explain(f, 0, LB_EXPLAIN_TEXT));
    *a = out[0];
    lb_leave(cx);
}
#define STEP(at, in_place) run_step(cx, f, &kind, &a, at, in_place, __LINE__)

static void one_holder(lb_ctx *cx, lb_compiled *f, lb_array **at)
{
    int kind = 0;
    lb_array *a = *at;
    STEP(0, true);
    STEP(2, true);
    STEP(3, true);
    lb_array *view = lb_reshape(cx, a, LB_SHAPE(24));
    lb_array *seen = lb_from(cx, LB_F32, LB_SHAPE(24), lb_data(view));
    sentences = 0;
    STEP(1, false); /* of the two updates the first copies */
    CHECK_EQ_I(sentences, 1);
    SAID("a view of it exists");
    CHECK(equal(view, seen));
    STEP(4, true);
    lb_array *old = lb_ref(a);
    STEP(1, false);
    lb_unref(old);
    STEP(1, true);
    *at = a;
}

static void compiled(lb_ctx *cx)
{
    for (int kind = 0; kind < 2; kind++) {
        lb_enter(cx);
        lb_compiled *f = lb_compile_many(cx, step, 2, &kind, NULL);
        lb_array *a = zeros(cx);
        if (kind) { /* the sum runs fused with another one, at the end */
            STEP(0, false);
            SAID("its elements are needed later");
            STEP(2, false);
        } else {
            one_holder(cx, f, &a);
        }
        CHECK_EQ_I(lb_compiled_stats_of(f).traces, 1);
        lb_compiled_close(f);
        lb_leave(cx);
    }
}

/* ---- meshes -------------------------------------------------------------- */

static int ranks(lb_comm *comm, void *user)
{
    (void)user;
    int said = 0; /* ranks are threads */
    lb_ctx *cx = lb_open(&(lb_options){
        .threads = 1, .dense = LB_DENSE_LOG, .log = count, .log_user = &said});
    lb_mesh *mesh = lb_mesh_open(cx, comm, "tp=2", NULL);
    lb_array *zero = lb_scalar_int(cx, 0);
    lb_array *at[] = {zero, lb_scalar_int(cx, 2), zero};
    lb_array *row = iota(cx, LB_F32, LB_SHAPE(2, 1, 4));
    lb_array *all = lb_zeros(cx, LB_F32, LB_SHAPE(2, 6, 4));
    lb_array *want = lb_dynamic_update_slice(cx, all, row, at);
    lb_array *cache = lb_shard(cx, mesh, all, "P(tp, None, None)");
    lb_drop(cx, all);
    int bad = !cache;
    for (int i = 0; i < 3 && !bad; i++) {
        lb_array *slice = lb_local(cx, cache);
        const void *data = lb_data(slice);
        lb_drop(cx, slice);
        said = 0;
        lb_array *view = i == 2 ? lb_transpose(cx, cache, NULL) : NULL;
        bad |= !lb_update_in_place(cx, &cache, row, at);
        lb_array *now = lb_local(cx, cache);
        bad |= (lb_data(now) == data) == (i == 2);
        bad |= said != (i == 2);
        lb_drop(cx, now);
        lb_array *got = lb_unshard(cx, cache);
        lb_text why = {""};
        bad |= !sample_same(got, want, &why);
        lb_drop(cx, got);
        lb_drop(cx, view);
    }
    bad |= !lb_mesh_close(mesh);
    if (bad) fprintf(stderr, "%s\n", lb_error(cx));
    lb_close(cx);
    return bad;
}

static int tests(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int threads = 1; threads <= 2; threads++) {
        lb_ctx *cx = lb_open(&(lb_options){
            .threads = threads, .dense = LB_DENSE_LOG, .log = note});
        dense(cx);
        scopes(cx);
        const size_t bytes = lb_bytes_in_use(cx);
        scopes(cx);
        CHECK_EQ_I(lb_bytes_in_use(cx), bytes);
        holders(cx);
        refusals(cx);
        formats(cx);
        packed_to_dense(cx);
        tapes(cx);
        compiled(cx);
        CHECK_EQ_S(lb_error(cx), "");
        lb_close(cx);
    }
    if (ranks_are(2)) CHECK_EQ_I(ranks_on(2, ranks, NULL), 0);
    return check_report("lb_update_in_place");
}

int main(int argc, char **argv)
{
    return ranks_main(argc, argv, tests);
}
