/* test_reduce_any.c - lb_reduce: against loops over plain integers, for
 * functions that are not commutative and for several operands; every format,
 * gradients, compiled functions, threads and meshes; and what must be refused.
 */
#include "check.h"
#include "lowbit_ext.h"
#include "lowbit_mesh.h"
#include "ranks.h"
#include "refused.h"
#include "samples.h"

static bool one(lb_array *a, lb_array **out)
{
    out[0] = a;
    return a != NULL;
}

static bool add(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                int n_out, void *user)
{
    (void)n, (void)n_out, (void)user;
    return one(lb_add(cx, a[0], a[1]), out);
}

/* The later of two: associative, and not commutative. */
static bool later(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                  int n_out, void *user)
{
    (void)cx, (void)n, (void)n_out, (void)user;
    return one(a[1], out);
}

/* x -> p x + q, one after the other: also associative only. */
static bool compose(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                    int n_out, void *user)
{
    (void)n, (void)n_out, (void)user;
    out[0] = lb_mul(cx, a[0], a[2]);
    out[1] = lb_add(cx, lb_mul(cx, a[1], a[2]), a[3]);
    return out[0] && out[1];
}

/* The largest element and its first index. */
static bool larger(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                   int n_out, void *user)
{
    (void)n, (void)n_out, (void)user;
    lb_array *keep =
        lb_or(cx, lb_gt(cx, a[0], a[2]),
              lb_and(cx, lb_eq(cx, a[0], a[2]), lb_lt(cx, a[1], a[3])));
    out[0] = lb_select(cx, keep, a[0], a[2]);
    out[1] = lb_select(cx, keep, a[1], a[3]);
    return out[0] && out[1];
}

static bool log_add_exp(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                        int n_out, void *user)
{
    (void)n, (void)n_out, (void)user;
    lb_array *m = lb_stop_gradient(cx, lb_max(cx, a[0], a[1]));
    return one(lb_add(cx, m,
                      lb_log(cx, lb_add(cx, lb_exp(cx, lb_sub(cx, a[0], m)),
                                        lb_exp(cx, lb_sub(cx, a[1], m))))),
               out);
}

static lb_array *normal(lb_ctx *cx, uint64_t seed, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){seed, 3}, LB_F32, shape);
}

static bool same(lb_ctx *cx, lb_array *a, lb_array *b)
{
    const lb_shape s = lb_shape_of(a), t = lb_shape_of(b);
    if (!a || !b || lb_dtype_of(a) != lb_dtype_of(b) || !lb_shape_equal(&s, &t))
        return false;
    const size_t n = (size_t)lb_size(a) * lb_dtype_size(lb_dtype_of(a));
    char *x = calloc(n + 1, 1), *y = calloc(n + 1, 1);
    const bool equal = x && y && lb_read(cx, a, x, n) && lb_read(cx, b, y, n) &&
                       !memcmp(x, y, n);
    free(x);
    free(y);
    return equal;
}

static lb_array *reduce1(lb_ctx *cx, lb_array *a, lb_array *init,
                         const lb_axes *axes, lb_fn_many body)
{
    lb_array *out;
    return lb_reduce(cx, &a, &init, 1, axes, body, NULL, &out) ? out : NULL;
}

/* ---- values ------------------------------------------------------------- */

/* Affine maps modulo 2^32, one after the other. */
static void check_order(lb_ctx *cx)
{
    static const int64_t size[] = {0, 1, 2, 3, 5, 7, 8, 13, 64, 100, 257};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        lb_enter(cx);
        const int64_t n = size[i];
        uint32_t p[257], q[257], x = 5, y = 3;
        for (int64_t k = 0; k < n; k++) {
            p[k] = (uint32_t)(2654435761u * (uint32_t)(k + 1));
            q[k] = (uint32_t)(k * k + 11);
            x = x * p[k];
            y = y * p[k] + q[k];
        }
        lb_array *out[2], *in[2] = {lb_from(cx, LB_U32, LB_SHAPE(n), p),
                                    lb_from(cx, LB_U32, LB_SHAPE(n), q)};
        lb_array *init[2] = {lb_scalar_int(cx, 5), lb_scalar_int(cx, 3)};
        CHECK(lb_reduce(cx, in, init, 2, NULL, compose, NULL, out));
        CHECK_EQ_I(lb_item_int(cx, out[0]), x);
        CHECK_EQ_I(lb_item_int(cx, out[1]), y);
        lb_leave(cx);
    }
}

/* Over several axes elements are in row-major order. */
static void check_axes(lb_ctx *cx)
{
    const lb_shape s = LB_SHAPE(3, 4, 5);
    lb_array *a = lb_reshape(cx, lb_iota(cx, LB_I32, LB_SHAPE(60), 0), s);
    lb_array *init = lb_scalar_int(cx, -1);
    int32_t v[15], w[4];
    CHECK(lb_read(cx, reduce1(cx, a, init, LB_AXES(1), later), v, sizeof v));
    for (int i = 0; i < 15; i++)
        CHECK_EQ_I(v[i], i / 5 * 20 + 15 + i % 5);
    CHECK(lb_read(cx, reduce1(cx, a, init, LB_AXES(2, 0), later), w, sizeof w));
    for (int i = 0; i < 4; i++)
        CHECK_EQ_I(w[i], 40 + i * 5 + 4);
    CHECK_EQ_I(lb_item_int(cx, reduce1(cx, a, init, NULL, later)), 59);
    /* No axes: one call with the initial value. */
    CHECK(same(cx, reduce1(cx, a, lb_scalar_int(cx, 7), &(lb_axes){0}, add),
               lb_add(cx, a, lb_full_int(cx, LB_I32, s, 7))));
    /* The initial value alone. */
    lb_array *none = lb_zeros(cx, LB_F16, LB_SHAPE(2, 0, 3));
    CHECK(same(cx, reduce1(cx, none, lb_scalar(cx, 4), LB_AXES(1), add),
               lb_full(cx, LB_F16, LB_SHAPE(2, 3), 4)));
    CHECK_EQ_I(lb_size(reduce1(cx, none, init, LB_AXES(0), add)), 0);
    CHECK_EQ_I(
        lb_item_int(cx, reduce1(cx, lb_full_int(cx, LB_I8, (lb_shape){0}, 5),
                                init, NULL, add)),
        4);
}

static void check_dtypes(lb_ctx *cx)
{
    lb_array *a = lb_full_int(cx, LB_I8, LB_SHAPE(300), 1);
    lb_array *wide = lb_full_int(cx, LB_I32, (lb_shape){0}, 10);
    lb_array *s = reduce1(cx, a, wide, NULL, add);
    CHECK_EQ_I(lb_dtype_of(s), LB_I32);
    CHECK_EQ_I(lb_item_int(cx, s), 310);
    s = reduce1(cx, a, lb_scalar_int(cx, 0), NULL, add);
    CHECK_EQ_I(lb_dtype_of(s), LB_I8);
    CHECK_EQ_I(lb_item_int(cx, s), 300 - 256);
    s = reduce1(cx, a, lb_scalar(cx, 0.5), NULL, add);
    CHECK_EQ_I(lb_dtype_of(s), LB_F32);
    CHECK_NEAR(lb_item(cx, s), 300.5, 0);
}

/* The index of the maximum, as the primitive finds it. */
static void check_several(lb_ctx *cx)
{
    lb_array *a = lb_convert(cx, normal(cx, 1, LB_SHAPE(7, 133)), LB_BF16);
    lb_array *in[] = {a, lb_iota(cx, LB_I32, LB_SHAPE(7, 133), 1)};
    lb_array *init[] = {lb_scalar(cx, -INFINITY), lb_scalar_int(cx, 0)};
    lb_array *out[2];
    CHECK(lb_reduce(cx, in, init, 2, LB_AXES(-1), larger, NULL, out));
    CHECK(same(cx, out[0], lb_reduce_max(cx, a, LB_AXES(1))));
    CHECK(same(cx, out[1], lb_argmax(cx, a, 1, LB_I32)));
}

/* Each format, and views of it, as its dense copy. */
static void check_formats(lb_ctx *cx)
{
    sample_format_list formats = sample_formats_of(cx);
    const sample_operand o = {LB_F32, LB_SHAPE(6, 128), VALUES_TAME, 0, 0,
                              false};
    for (int i = 0; i < formats.n; i++) {
        const sample_format *f = &formats.item[i];
        if (!sample_takes(f, &o)) continue;
        lb_enter(cx);
        lb_array *q = sample_views[0].make(cx, f, &o, 9);
        lb_array *d = sample_plain(cx, q);
        for (int k = 0; k < 2 && q; k++) {
            lb_array *zero = lb_scalar(cx, 0);
            CHECK(same(cx, reduce1(cx, q, zero, LB_AXES(k), add),
                       reduce1(cx, d, zero, LB_AXES(k), add)));
            q = lb_transpose(cx, q, NULL);
            d = lb_transpose(cx, d, NULL);
        }
        lb_clear(cx);
        lb_leave(cx);
    }
    sample_formats_free(&formats);
}

static void check_threads(lb_ctx *cx)
{
    static const int threads[] = {1, 2, 7};
    lb_array *first = NULL;
    for (int i = 0; i < 3; i++) {
        lb_ctx *own = lb_open(&(lb_options){.threads = threads[i]});
        lb_array *s = lb_ref(reduce1(own, normal(own, 5, LB_SHAPE(9, 1000)),
                                     lb_full(own, LB_F32, (lb_shape){0}, 1),
                                     LB_AXES(1), add));
        lb_close(own);
        if (!first)
            first = s;
        else {
            CHECK(same(cx, first, s));
            lb_unref(s);
        }
    }
    lb_unref(first);
}

/* ---- gradients, compiled functions -------------------------------------- */

/* d/dx log sum exp = softmax */
static lb_array *soft(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    (void)n, (void)user;
    lb_array *out;
    if (!lb_reduce(cx, args, args + 1, 1, NULL, log_add_exp, NULL, &out))
        return NULL;
    return out;
}

static void check_gradient(lb_ctx *cx)
{
    lb_array *args[] = {lb_convert(cx, normal(cx, 2, LB_SHAPE(5, 7)), LB_F64),
                        lb_full(cx, LB_F64, (lb_shape){0}, 0.25)};
    lb_array *grad[2];
    CHECK(lb_value_and_grad(cx, soft, args, 2, NULL, grad, 2));
    lb_array *all =
        lb_concatenate(cx,
                       (lb_array *[]){lb_reshape(cx, args[0], LB_SHAPE(35)),
                                      lb_reshape(cx, args[1], LB_SHAPE(1))},
                       2, 0);
    double want[36], got[36];
    CHECK(lb_read(cx, lb_softmax(cx, all, 0), want, sizeof want));
    CHECK(lb_read(cx, grad[0], got, 35 * sizeof *got));
    got[35] = lb_item(cx, grad[1]);
    for (int i = 0; i < 36; i++)
        CHECK_NEAR(got[i], want[i], 1e-12);
}

static void check_compiled(lb_ctx *cx)
{
    lb_compiled *f = lb_compile(cx, soft, NULL, NULL);
    lb_array *args[] = {normal(cx, 6, LB_SHAPE(11, 9)),
                        lb_full(cx, LB_F32, (lb_shape){0}, 1)};
    for (int i = 0; i < 2; i++)
        CHECK(same(cx, lb_run(f, args, 2), soft(cx, args, 2, NULL)));
    lb_compiled_close(f);
}

/* ---- refusals ----------------------------------------------------------- */

static bool narrow(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                   int n_out, void *user)
{
    (void)n, (void)n_out, (void)user;
    return one(lb_convert(cx, a[0], LB_F16), out);
}

static bool nothing(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                    int n_out, void *user)
{
    (void)cx, (void)a, (void)n, (void)out, (void)n_out;
    return user != NULL;
}

static void check_errors(lb_ctx *cx)
{
    lb_array *x = normal(cx, 1, LB_SHAPE(3, 4)), *y = lb_transpose(cx, x, NULL);
    lb_array *zero = lb_scalar(cx, 0), *in[] = {x, y}, *init[] = {zero, zero};
    lb_array *out[2] = {NULL};
    const lb_axes *axis = LB_AXES(1);
#define R(STATUS, SAY, ...)                                                    \
    REFUSED(lb_reduce(cx, __VA_ARGS__, out) || out[0], STATUS, SAY)
    R(LB_E_SHAPE, "(4,3), but operand 0 has shape (3,4)", in, init, 2, axis,
      add, NULL);
    R(LB_E_SHAPE, "value 0 has shape (3,4), but must be a scalar", in, in, 1,
      axis, add, NULL);
    R(LB_E_AXIS, "reduce: axis 2", in, init, 1, LB_AXES(2), add, NULL);
    R(LB_E_NULL, "function is NULL", in, init, 1, axis, NULL, NULL);
    R(LB_E_NULL, "operands are NULL", NULL, init, 1, axis, add, NULL);
    R(LB_E_NULL, "operand 0 is NULL", (lb_array *[]){NULL}, init, 1, axis, add,
      NULL);
    R(LB_E_NULL, "value 0 is NULL", in, (lb_array *[]){NULL}, 1, axis, add,
      NULL);
    R(LB_E_SHAPE, "result 0 of the function is f16(3,2)", in, init, 1, axis,
      narrow, NULL);
    R(LB_E_ARG, "function failed", in, init, 1, axis, nothing, NULL);
    R(LB_E_NULL, "result 0 of the function is NULL", in, init, 1, axis, nothing,
      x);
    R(LB_E_ARG, "reduce: the number of operands is 0", in, init, 0, axis, add,
      NULL);
#undef R
}

/* ---- meshes ------------------------------------------------------------- */

static int on_rank(lb_comm *comm, void *user)
{
    (void)user;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, "data=2", NULL);
    const lb_shape s = LB_SHAPE(8, 12);
    int wrong = !mesh;
    static const char *const spec[] = {"P(data, None)", "P(None, data)"};
    for (int i = 0; i < 4 && mesh; i++) {
        lb_array *a = normal(cx, 8, s), *b = lb_iota(cx, LB_I32, s, i / 2);
        lb_array *whole[] = {a, b}, *out[2], *want[2];
        lb_array *cut[] = {lb_shard(cx, mesh, a, spec[i % 2]),
                           lb_shard(cx, mesh, b, spec[i % 2])};
        lb_array *init[] = {lb_scalar(cx, -9), lb_scalar_int(cx, -1)};
        const lb_axes *axes = LB_AXES(i / 2);
        const bool ok =
            lb_reduce(cx, whole, init, 2, axes, larger, NULL, want) &&
            lb_reduce(cx, cut, init, 2, axes, larger, NULL, out);
        for (int k = 0; k < 2; k++)
            wrong += !ok || !same(cx, lb_unshard(cx, out[k]), want[k]);
    }
    wrong += !lb_mesh_close(mesh);
    lb_close(cx);
    return wrong;
}

static int tests(int argc, char **argv)
{
    (void)argc, (void)argv;
    lb_ctx *cx = lb_open(NULL);
    check_order(cx);
    check_axes(cx);
    check_dtypes(cx);
    check_several(cx);
    check_formats(cx);
    check_threads(cx);
    check_gradient(cx);
    check_compiled(cx);
    CHECK_EQ_S(lb_error(cx), "");
    check_errors(cx);
    lb_close(cx);
    CHECK_EQ_I(ranks_on(2, on_rank, NULL), 0);
    return check_report("test_reduce_any");
}

int main(int argc, char **argv)
{
    return ranks_main(argc, argv, tests);
}
