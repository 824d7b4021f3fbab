/* test_read_as.c - lb_read_f32, lb_read_f64 and lb_read_i64: the elements of
 * lb_convert, for every dtype, format and kind of view. */
#include "lowbit_ext.h"
#include "refused.h"

enum { MOST = 1 << 12 };

static void check_array(lb_ctx *cx, lb_array *a)
{
    static float f[MOST + 1], f0[MOST];
    static double d[MOST + 1], d0[MOST];
    static int64_t i[MOST + 1], i0[MOST];
    const int64_t n = lb_size(a);
    f[n] = 7;
    d[n] = 7;
    i[n] = 7;
    CHECK(lb_read_f32(cx, a, f, n));
    CHECK(lb_read_f64(cx, a, d, n));
    CHECK(lb_read_i64(cx, a, i, n));
    CHECK(f[n] == 7 && d[n] == 7 && i[n] == 7);
    const size_t m = (size_t)n;
    CHECK(lb_read(cx, lb_convert(cx, a, LB_F32), f0, m * sizeof *f0));
    CHECK(lb_read(cx, lb_convert(cx, a, LB_F64), d0, m * sizeof *d0));
    CHECK(lb_read(cx, lb_convert(cx, a, LB_I64), i0, m * sizeof *i0));
    CHECK(memcmp(f, f0, m * sizeof *f) == 0);
    CHECK(memcmp(d, d0, m * sizeof *d) == 0);
    CHECK(memcmp(i, i0, m * sizeof *i) == 0);
}

static void check_views(lb_ctx *cx, lb_array *a)
{
    const int64_t lo[] = {1, 3}, hi[] = {4, 40};
    lb_enter(cx);
    check_array(cx, a);
    check_array(cx, lb_transpose(cx, a, NULL));
    check_array(cx, lb_slice(cx, a, lo, hi, NULL));
    check_array(cx, lb_reverse(cx, a, NULL));
    check_array(cx, lb_expand(cx, lb_expand(cx, a, 0), 0));
    check_array(cx, lb_broadcast_to(cx, a, LB_SHAPE(2, 5, 64)));
    lb_leave(cx);
}

/* More than one piece, and values that the caller knows. */
static void check_long(lb_ctx *cx)
{
    enum { N = 3000001 };
    lb_array *a = lb_iota(cx, LB_I32, LB_SHAPE(1, N), 1);
    double *d = malloc(N * sizeof *d);
    CHECK(d && lb_read_f64(cx, a, d, N));
    bool same = d != NULL;
    for (int i = 0; i < N && same; i++)
        same = d[i] == i;
    CHECK(same);
    free(d);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    const lb_shape shape = LB_SHAPE(5, 64);
    const lb_format *f;
    float x;
    int64_t i;
    lb_array *r = lb_random_normal(cx, (lb_key){1, 2}, LB_F32, shape);
    r = lb_mul(cx, r, lb_scalar(cx, 50));
    for (int d = 1; d < LB_N_DTYPES; d++)
        check_views(cx, lb_convert(cx, r, (lb_dtype)d));
    for (int k = 0; (f = lb_format_at(cx, k)); k++) {
        if (!lb_is_encodable(f)) continue;
        const lb_quant_config c = {.format = f->name};
        check_views(cx, lb_quantize(cx, r, &c));
        check_views(cx, lb_quantize(cx, lb_convert(cx, r, LB_F16), &c));
    }
    check_long(cx);
    CHECK(lb_read_f32(cx, lb_scalar(cx, 2.5), &x, 1) && x == 2.5f);
    CHECK(lb_read_i64(cx, lb_scalar(cx, -2.5), &i, 1) && i == -2);
    CHECK(lb_read_f32(cx, lb_zeros(cx, LB_I8, LB_SHAPE(3, 0)), NULL, 0));
    CHECK_EQ_S(lb_error(cx), "");
    REFUSED(lb_read_f32(cx, r, &x, 1), LB_E_SIZE, "320 elements, not 1");
    REFUSED(lb_read_f32(cx, NULL, &x, 1), LB_E_NULL, "NULL");
    REFUSED(lb_read_i64(cx, r, NULL, 320), LB_E_NULL, "dst is NULL");
    CHECK(!lb_read_f64(NULL, r, NULL, 320));
    lb_close(cx);
    return check_report("read_as");
}
