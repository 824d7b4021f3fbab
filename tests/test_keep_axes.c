/* test_keep_axes.c - reductions that keep their axes: shapes, dtypes and values
 * against sums in double precision; and indices that are checked. */
#include "check.h"
#include "lowbit_ext.h"
#include "refused.h"

enum { A = 3, B = 5, C = 4 };

typedef lb_array *reducing(lb_ctx *, lb_array *, const lb_axes *, bool);

static double combine(int which, double so_far, double v)
{
    switch (which) {
    case 0:
        return so_far + v;
    case 1:
        return so_far * v;
    case 2:
        return fmax(so_far, v);
    case 3:
        return fmin(so_far, v);
    case 4:
        return so_far != 0 && v != 0;
    default:
        return so_far != 0 || v != 0;
    }
}

static const struct {
    const char *name;
    reducing *of;
    double first;
} rows[] = {{"sum", lb_sum, 0},           {"prod", lb_prod, 1},
            {"amax", lb_amax, -HUGE_VAL}, {"amin", lb_amin, HUGE_VAL},
            {"all", lb_all, 1},           {"any", lb_any, 0}};
enum { ROWS = sizeof rows / sizeof *rows };

static double value(int i)
{
    return i % 7 == 3 ? 0 : (i * 37 % 11 - 5) / 4.0;
}

static void check_axes(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                       unsigned mask)
{
    for (int r = 0; r < ROWS; r++) {
        double want[A * B * C], got[A * B * C];
        lb_shape shape = LB_SHAPE(A, B, C);
        const int64_t step[] = {B * C, C, 1};
        int64_t n = 1, to_step[3] = {0};
        for (int k = 2; k >= 0; k--) {
            if (mask >> k & 1) shape.dim[k] = 1;
            to_step[k] = mask >> k & 1 ? 0 : n;
            n *= shape.dim[k];
        }
        for (int64_t i = 0; i < n; i++)
            want[i] = rows[r].first;
        for (int i = 0; i < A * B * C; i++) {
            int64_t at = 0, rest = i;
            for (int k = 0; k < 3; k++) {
                at += rest / step[k] * to_step[k];
                rest %= step[k];
            }
            want[at] = combine(r, want[at], value(i));
        }
        lb_array *kept = rows[r].of(cx, x, axes, true);
        lb_array *gone = rows[r].of(cx, x, axes, false);
        const lb_shape s = lb_shape_of(kept);
        CHECK(s.rank == 3 && memcmp(s.dim, shape.dim, 3 * sizeof *s.dim) == 0);
        CHECK_EQ_I(lb_rank(gone), 3 - __builtin_popcount(mask));
        CHECK(lb_dtype_of(kept) == (r < 4 ? LB_F32 : LB_BOOL));
        for (int side = 0; side < 2; side++) {
            CHECK(lb_read_f64(cx, side ? gone : kept, got, n));
            for (int64_t i = 0; i < n; i++)
                CHECK_NEAR(got[i], want[i], 1e-6 * (1 + fabs(want[i])));
        }
        CHECK_EQ_S(lb_error(cx), "");
    }
}

static void check_dtypes(lb_ctx *cx)
{
    const int8_t v[] = {100, 100, 3};
    lb_array *x = lb_from(cx, LB_I8, LB_SHAPE(3), v);
    CHECK(lb_dtype_of(lb_prod(cx, x, NULL, true)) == LB_I32);
    CHECK(lb_item_int(cx, lb_prod(cx, x, NULL, true)) == 30000);
    CHECK(lb_dtype_of(lb_amax(cx, x, NULL, true)) == LB_I8);
    CHECK(lb_item_int(cx, lb_all(cx, x, NULL, false)) == 1);
    lb_array *none = lb_zeros(cx, LB_F32, LB_SHAPE(2, 0));
    CHECK(lb_size(lb_amax(cx, none, LB_AXES(1), true)) == 2);
    CHECK(lb_item(cx, lb_any(cx, none, NULL, false)) == 0);
    CHECK(lb_item(cx, lb_all(cx, none, NULL, false)) == 1);
    lb_array *nan = lb_full(cx, LB_F32, LB_SHAPE(2), (double)NAN);
    CHECK(isnan(lb_item(cx, lb_amax(cx, nan, NULL, false))));
    CHECK(lb_item(cx, lb_any(cx, nan, NULL, false)) == 1);
    lb_array *w = lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(4, 64));
    lb_array *q = lb_quantize(cx, w, NULL);
    lb_array *d = lb_materialize(cx, q);
    CHECK(lb_item(cx, lb_amax(cx, q, NULL, false)) ==
          lb_item(cx, lb_amax(cx, d, NULL, false)));
    CHECK_EQ_S(lb_error(cx), "");
}

/* ---- indices ------------------------------------------------------------- */

static lb_array *look_up(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    (void)n, (void)user;
    return lb_embedding(cx, args[0], args[1]);
}

static void check_indices(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.check_indices = true});
    lb_array *x = lb_iota(cx, LB_F32, LB_SHAPE(6, 2), 0);
    const int32_t good[] = {5, 0, 3}, bad[] = {0, 5, 6}, below[] = {-1, 2, 2};
    lb_array *i = lb_from(cx, LB_I32, LB_SHAPE(3), good);
    CHECK(lb_item(cx, lb_amax(cx, lb_embedding(cx, x, i), NULL, false)) == 5);
    i = lb_from(cx, LB_I32, LB_SHAPE(3), bad);
    REFUSED(lb_embedding(cx, x, i), LB_E_ARG,
            "take: index 2 is 6, not in 0..5");
    REFUSED(lb_take(cx, x, i, 1), LB_E_ARG, "take: index 1 is 5, not in 0..1");
    i = lb_from(cx, LB_I32, LB_SHAPE(3, 1), below);
    REFUSED(lb_take(cx, x, i, 0), LB_E_ARG, "index 0 is -1");
    i = lb_full_int(cx, LB_U64, LB_SHAPE(2), -1);
    REFUSED(lb_take(cx, x, i, 0), LB_E_ARG, "index 0 is -1");
    i = lb_pad(cx, lb_zeros(cx, LB_U8, LB_SHAPE(1300)), lb_scalar_int(cx, 9),
               (int64_t[]){0}, (int64_t[]){1}, (int64_t[]){0});
    REFUSED(lb_take(cx, x, i, 0), LB_E_ARG, "index 1300 is 9");
    CHECK(lb_size(lb_take(cx, x, lb_zeros(cx, LB_I32, LB_SHAPE(0)), 0)) == 0);
    REFUSED(lb_take(cx, x, x, 0), LB_E_DTYPE, "");
    /* Compiled, it has no indices to look at, and clamps. */
    lb_compiled *f = lb_compile(cx, look_up, NULL, NULL);
    lb_array *args[] = {x, lb_from(cx, LB_I32, LB_SHAPE(3), bad)};
    CHECK(lb_item(cx, lb_amax(cx, lb_run(f, args, 2), NULL, false)) == 5);
    lb_compiled_close(f);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    float v[A * B * C];
    for (int i = 0; i < A * B * C; i++)
        v[i] = (float)value(i);
    lb_array *x = lb_from(cx, LB_F32, LB_SHAPE(A, B, C), v);
    check_axes(cx, x, NULL, 7);
    check_axes(cx, x, LB_AXES(0), 1);
    check_axes(cx, x, LB_AXES(-2), 2);
    check_axes(cx, x, LB_AXES(2, 0), 5);
    check_axes(cx, x, &(lb_axes){0}, 0);
    check_dtypes(cx);
    check_indices();
    lb_close(cx);
    return check_report("test_keep_axes");
}
