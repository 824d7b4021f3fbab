/* test_rope.c - lb_rope against rotations in double precision, written from the
 * definitions: conventions, positions, layouts, partial heads and scalings; and
 * the sines behind it against the C library.
 */
#include "check.h"
#include "kernels/rotary.h"
#include "lowbit.h"

#define PI 3.141592653589793

/* ---- sines --------------------------------------------------------------- */

static void sines(void)
{
    double worst = 0;
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 400000; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double x = (double)(int64_t)bits / 0x1p63;
        x *= i % 4 == 0 ? 1 : i % 4 == 1 ? 100 : i % 4 == 2 ? 1e4 : 0x1p20;
        if (i % 16 == 0) x = PI / 4 * (double)(i / 16 - 12500);
        double s, c;
        lb_sincosd(x, &s, &c);
        worst = fmax(worst, fmax(fabs(s - sin(x)), fabs(c - cos(x))));
    }
    CHECK(worst < 1e-15);
    double s, c;
    lb_sincosd(0, &s, &c);
    CHECK(s == 0 && c == 1);
    lb_sincosd(1e9, &s, &c);
    CHECK(s == sin(1e9) && c == cos(1e9));
    lb_sincosd(INFINITY, &s, &c);
    CHECK(isnan(s) && isnan(c));
}

/* ---- rotations ----------------------------------------------------------- */

/* The published formulas, one pair at a time. */
static double frequency(const lb_rope_options *o, int64_t i, int64_t dims)
{
    const double base = o->base > 0 ? o->base : 10000;
    const double f = 1 / pow(base, 2.0 * (double)i / (double)dims);
    const double length = o->original ? (double)o->original : 8192;
    if (o->scaling == LB_ROPE_LINEAR) return f / o->factor;
    if (o->scaling == LB_ROPE_LLAMA3) {
        const double low = o->low > 0 ? o->low : 1,
                     high = o->high > 0 ? o->high : 4;
        const double wave = 2 * PI / f;
        if (wave < length / high) return f;
        if (wave > length / low) return f / o->factor;
        const double smooth = (length / wave - low) / (high - low);
        return (1 - smooth) * f / o->factor + smooth * f;
    }
    if (o->scaling == LB_ROPE_YARN) {
        const double slow = o->low > 0 ? o->low : 1,
                     fast = o->high > 0 ? o->high : 32;
        const double d = (double)dims, two = 2 * log(base);
        double lo = floor(d * log(length / (fast * 2 * PI)) / two);
        double hi = ceil(d * log(length / (slow * 2 * PI)) / two);
        lo = fmax(lo, 0);
        hi = fmin(hi, d - 1);
        if (lo == hi) hi += 0.001;
        const double ramp = fmin(fmax(((double)i - lo) / (hi - lo), 0), 1);
        return f / o->factor * ramp + f * (1 - ramp);
    }
    return f;
}

static double magnitude(const lb_rope_options *o)
{
    if (o->magnitude != 0) return o->magnitude;
    return o->scaling == LB_ROPE_YARN && o->factor > 1
               ? 0.1 * log(o->factor) + 1
               : 1;
}

enum { HEADS = 3, T = 5, D = 16, ALL = HEADS * T * D };

/* x (heads, positions, D) at those positions. */
static void model(const lb_rope_options *o, const double *x,
                  const int64_t *position, double *y)
{
    const int64_t dims = o->dims ? o->dims : D, half = dims / 2;
    memcpy(y, x, ALL * sizeof *y);
    for (int row = 0; row < HEADS * T; row++)
        for (int64_t i = 0; i < half; i++) {
            const double a = (double)position[row % T] * frequency(o, i, dims);
            const double c = cos(a) * magnitude(o), s = sin(a) * magnitude(o);
            const int64_t p = row * D + (o->interleaved ? 2 * i : i);
            const int64_t q = o->interleaved ? p + 1 : p + half;
            y[p] = x[p] * c - x[q] * s;
            y[q] = x[q] * c + x[p] * s;
        }
}

/* In the layout of the options; both conventions of the axis. */
static void compare(lb_ctx *cx, const lb_rope_options *of, lb_dtype dtype,
                    const int64_t *position, const char *name)
{
    static const int swap[] = {1, 0, 2};
    lb_rope_options o = *of;
    double x[ALL], want[ALL], got[ALL], worst = 0;
    lb_enter(cx);
    lb_array *a = lb_random_normal(cx, (lb_key){5, (uint64_t)dtype}, dtype,
                                   LB_SHAPE(HEADS, T, D));
    lb_array *wide = lb_convert(cx, a, LB_F64);
    CHECK(lb_read(cx, wide, x, sizeof x));
    model(&o, x, position, want);
    if (o.axis == -3) a = lb_transpose(cx, a, swap);
    lb_array *y = lb_rope(cx, a, &o);
    if (o.axis == -3) y = lb_transpose(cx, y, swap);
    CHECK(y && lb_dtype_of(y) == dtype);
    wide = lb_convert(cx, y, LB_F64);
    CHECK(wide && lb_read(cx, wide, got, sizeof got));
    for (int i = 0; i < ALL; i++)
        worst = fmax(worst, fabs(got[i] - want[i]));
    /* f64: the angle 10^5 itself is rounded, to 2^-36 */
    const double unit = dtype == LB_F64    ? 0x1p-35
                        : dtype == LB_F32  ? 0x1p-21
                        : dtype == LB_BF16 ? 0x1p-6
                                           : 0x1p-9;
    if (check_fails(worst <= unit))
        fprintf(stderr, "%s, %s: off by %g; %s\n", name, lb_dtype_name(dtype),
                worst, lb_error(cx));
    lb_leave(cx);
}

static void rotations(lb_ctx *cx)
{
    static const lb_dtype dtype[] = {LB_F32, LB_BF16, LB_F64, LB_F16};
    static const struct {
        const char *name;
        lb_rope_options o;
    } c[] = {
        {"default", {0}},
        {"interleaved", {.interleaved = true}},
        {"partial", {.dims = 6}},
        {"partial interleaved", {.dims = 10, .interleaved = true}},
        {"base", {.base = 500000}},
        {"linear", {.scaling = LB_ROPE_LINEAR, .factor = 4}},
        {"llama3", {.scaling = LB_ROPE_LLAMA3, .factor = 8, .base = 5e5}},
        {"llama3, short",
         {.scaling = LB_ROPE_LLAMA3,
          .factor = 8,
          .low = 2,
          .high = 9,
          .original = 100}},
        {"yarn", {.scaling = LB_ROPE_YARN, .factor = 4, .original = 4096}},
        {"yarn, magnitude",
         {.scaling = LB_ROPE_YARN,
          .factor = 16,
          .low = 2,
          .high = 20,
          .original = 300,
          .magnitude = 0.75}},
    };
    static const int64_t start[T] = {7, 8, 9, 10, 11};
    static const int64_t any[T] = {40, 3, 100000, 0, -2};
    for (size_t i = 0; i < 4 * sizeof c / sizeof *c; i++) {
        lb_rope_options o = c[i / 4].o;
        const lb_dtype d = dtype[i % 4];
        lb_enter(cx);
        o.offset = 7;
        compare(cx, &o, d, start, c[i / 4].name);
        o.offset = 0;
        o.positions = lb_full_int(cx, LB_I32, lb_shape_make(0, NULL), 7);
        compare(cx, &o, d, start, c[i / 4].name);
        o.positions = lb_from(cx, LB_I64, LB_SHAPE(T), any);
        o.axis = -3;
        compare(cx, &o, d, any, c[i / 4].name);
        lb_leave(cx);
    }
}

/* A rotation keeps lengths, its gradient turns back, integers become floats. */
static lb_array *loss(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n;
    return lb_reduce_sum(
        cx, lb_mul(cx, lb_rope(cx, a[0], user), lb_rope(cx, a[1], user)), NULL);
}

static void gradient(lb_ctx *cx)
{
    lb_rope_options o = {.offset = 1000, .interleaved = true};
    float x[64], dx[64];
    lb_enter(cx);
    lb_array *a[] = {
        lb_random_normal(cx, (lb_key){1, 1}, LB_F32, LB_SHAPE(4, 16)),
        lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(4, 16))};
    lb_array *g;
    CHECK(lb_value_and_grad(cx, loss, a, 2, &o, &g, 1));
    CHECK(lb_read(cx, a[1], x, sizeof x) && lb_read(cx, g, dx, sizeof dx));
    for (int i = 0; i < 64; i++)
        CHECK_NEAR(dx[i], x[i], 1e-5);
    CHECK_EQ_I(lb_dtype_of(lb_rope(
                   cx, lb_full_int(cx, LB_I8, LB_SHAPE(2, 4), 3), NULL)),
               LB_F32);
    CHECK(!lb_rope(cx, lb_zeros(cx, LB_F32, LB_SHAPE(4)), NULL));
    CHECK(strstr(lb_error(cx), "(4)"));
    lb_clear(cx);
    static const struct {
        int axis;
        const char *say;
    } axes[] = {{-1, "axis -1 of (4,16) is the last one"},
                {1, "axis 1 of (4,16) is the last one"},
                {-3, "axis -3 is out of range for an array of rank 2"},
                {2, "axis 2 is out of range"}};
    for (int i = 0; i < 4; i++) {
        CHECK(!lb_rope(cx, a[0], &(lb_rope_options){.axis = axes[i].axis}));
        CHECK(strstr(lb_error(cx), axes[i].say));
        lb_clear(cx);
    }
    o.struct_size = 4;
    CHECK(!lb_rope(cx, a[0], &o) && strstr(lb_error(cx), "struct_size is 4"));
    lb_clear(cx);
    lb_leave(cx);
}

int main(void)
{
    sines();
    for (int threads = 1; threads <= 2; threads++) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = threads});
        rotations(cx);
        gradient(cx);
        CHECK_EQ_S(lb_error(cx), "");
        lb_close(cx);
    }
    return check_report("lb_rope");
}
