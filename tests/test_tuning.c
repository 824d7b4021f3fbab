/* test_tuning.c - the row of the tuning table affects the speed of a product,
 * never its bits: all rows with different values, and some extreme ones. */
/* ctest: simde skip-ref skip-arm64 */
#include "check.h"
#include "core/core.h"
#include "kernels/tuning.h"

enum { N = 301, K = 1234 };

static const lb_tuning odd[] = {
    {"tiny", .streams = 8, .stream_gap = 64, .bypass = 1, .l2_gemm = 1,
     .l2_x = 1},
    {"huge", .streams = 2, .stream_gap = (size_t)1 << 30,
     .prefetch = (size_t)1 << 20, .bypass = (size_t)1 << 40,
     .l2_gemm = (size_t)1 << 32, .l2_x = (size_t)1 << 32},
};
enum { N_ODD = (int)(sizeof odd / sizeof *odd) };

static const lb_tuning *row_at(int k)
{
    return k < N_ODD ? &odd[k] : lb_tuning_at(k - N_ODD);
}

/* Many families repeat the values of another row. */
static bool is_repeated(int k)
{
    const lb_tuning *t = row_at(k);
    for (int i = 0; i < k; i++) {
        const lb_tuning *u = row_at(i);
        if (t->streams == u->streams && t->stream_gap == u->stream_gap &&
            t->prefetch == u->prefetch && t->bypass == u->bypass &&
            t->l2_gemm == u->l2_gemm && t->l2_x == u->l2_x)
            return true;
    }
    return false;
}

static lb_array *normals(lb_ctx *cx, uint32_t seed, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){seed, 7}, LB_F32, shape);
}

static lb_array *product(lb_ctx *cx, const lb_tuning *row, lb_array *x,
                         lb_array *w, const lb_dot_dims *d)
{
    cx->cpu.tuning = row;
    return lb_materialize(cx, lb_dot_general(cx, x, w, d));
}

static void check_rows(lb_ctx *cx, lb_array *x, lb_array *w,
                       const lb_dot_dims *d)
{
    lb_enter(cx);
    lb_array *want = product(cx, row_at(0), x, w, d);
    for (int k = 1; row_at(k); k++) {
        if (is_repeated(k)) continue;
        lb_array *got = product(cx, row_at(k), x, w, d);
        const size_t bytes = (size_t)(x->shape.dim[0] * N) * sizeof(float);
        const bool same =
            got && want && !memcmp(lb_data(got), lb_data(want), bytes);
        if (check_fails(same))
            fprintf(stderr,
                    "%s, %d rows, axis %d, precision %d: %s and %s differ\n",
                    w->store->fmt->name, (int)x->shape.dim[0],
                    d->rhs_contract.axis[0], (int)d->precision,
                    row_at(k)->family, row_at(0)->family);
    }
    lb_leave(cx);
}

static void check_format(lb_ctx *cx, const char *format, int axis)
{
    static const int64_t rows[] = {1, 3, 5, 30, 200};
    lb_enter(cx);
    lb_array *w = normals(cx, 1, axis ? LB_SHAPE(N, K) : LB_SHAPE(K, N));
    if (format) w = lb_quantize(cx, w, &(lb_quant_config){.format = format});
    for (int i = 0; i < 5; i++) {
        lb_array *x = normals(cx, 2, LB_SHAPE(rows[i], K));
        for (int p = 1; w && x && p <= LB_PRECISION_FASTEST; p++)
            if (!check_thins())
                check_rows(cx, x, w,
                           &(lb_dot_dims){.lhs_contract = {1, {1}},
                                          .rhs_contract = {1, {axis}},
                                          .precision = (lb_precision)p});
    }
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
    lb_leave(cx);
}

int main(void)
{
    static const char *const formats[] = {NULL,      "int8",   "nf4",
                                          "ternary", "binary", "q8_0"};
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    CHECK(cx != NULL);
    for (int i = 0; cx && i < 6; i++)
        for (int axis = 0; axis < 2; axis++)
            check_format(cx, formats[i], axis);
    lb_close(cx);
    return check_report("tuning");
}
