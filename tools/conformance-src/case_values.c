/* case_values.c - shapes, dtypes and comparing values, without the library.
 *
 * Results are compared as plain bytes, with conversions of our own: an error of
 * the library cannot affect both sides.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conformance.h"

/* ---- shapes and dtypes -------------------------------------------------- */

text shape_text(lb_shape shape)
{
    text t = {"("};
    size_t at = 1;
    for (int k = 0; k < shape.rank && k < LB_MAX_RANK; k++) {
        at += (size_t)snprintf(t.s + at, sizeof(t.s) - at, "%s%" PRId64,
                               k ? "," : "", shape.dim[k]);
    }
    snprintf(t.s + at, sizeof(t.s) - at, ")");
    return t;
}

bool shape_equal(lb_shape a, lb_shape b)
{
    if (a.rank != b.rank) return false;
    for (int k = 0; k < a.rank; k++) {
        if (a.dim[k] != b.dim[k]) return false;
    }
    return true;
}

int64_t shape_size(lb_shape shape)
{
    /* If any size is 0, so is the product, even if the others overflow. */
    for (int k = 0; k < shape.rank; k++) {
        if (shape.dim[k] == 0) return 0;
    }
    int64_t size = 1;
    for (int k = 0; k < shape.rank; k++) {
        if (__builtin_mul_overflow(size, shape.dim[k], &size)) return -1;
    }
    return size;
}

bool dtype_is_float(lb_dtype dtype)
{
    return dtype == LB_F32 || dtype == LB_F16 || dtype == LB_BF16 ||
           dtype == LB_F64;
}

bool dtype_is_integer(lb_dtype dtype)
{
    return dtype >= LB_I8 && dtype <= LB_U64;
}

lb_dtype dtype_named(const char *name)
{
    for (int d = LB_NO_DTYPE + 1; d < LB_N_DTYPES; d++) {
        if (!strcmp(name, lb_dtype_name((lb_dtype)d))) return (lb_dtype)d;
    }
    return LB_NO_DTYPE;
}

/* ---- elements ----------------------------------------------------------- */

static double f16_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    double v = exponent == 31
                   ? (fraction ? (double)NAN : (double)INFINITY)
                   : (exponent ? ldexp(1024 + fraction, exponent - 25)
                               : ldexp(fraction, -24));
    return bits >> 15 ? -v : v;
}

static double bf16_value(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide, sizeof(v));
    return (double)v;
}

static double float_at(lb_dtype dtype, const void *data, int64_t i)
{
    const char *const p = (const char *)data + (size_t)i * lb_dtype_size(dtype);
    uint16_t half;
    float single;
    double wide;
    switch (dtype) {
    case LB_F16:
        memcpy(&half, p, sizeof(half));
        return f16_value(half);
    case LB_BF16:
        memcpy(&half, p, sizeof(half));
        return bf16_value(half);
    case LB_F32:
        memcpy(&single, p, sizeof(single));
        return (double)single;
    default:
        memcpy(&wide, p, sizeof(wide));
        return wide;
    }
}

/* As the bits of an i64: signed types are sign-extended. */
static uint64_t integer_at(lb_dtype dtype, const void *data, int64_t i)
{
    const size_t w = lb_dtype_size(dtype);
    const char *const p = (const char *)data + (size_t)i * w;
    uint8_t b1;
    uint16_t b2;
    uint32_t b4;
    uint64_t v = 0;
    if (w == 1) {
        memcpy(&b1, p, w);
        v = b1;
    } else if (w == 2) {
        memcpy(&b2, p, w);
        v = b2;
    } else if (w == 4) {
        memcpy(&b4, p, w);
        v = b4;
    } else {
        memcpy(&v, p, sizeof(v));
    }
    const bool is_signed = dtype >= LB_I8 && dtype <= LB_I64;
    const uint64_t sign = (uint64_t)1 << (8 * w - 1);
    return is_signed ? (v ^ sign) - sign : v;
}

static text element_text(lb_dtype dtype, const void *data, int64_t i)
{
    text t;
    if (dtype_is_float(dtype)) {
        snprintf(t.s, sizeof(t.s), "%.*g", dtype == LB_F64 ? 17 : 9,
                 float_at(dtype, data, i));
    } else if (dtype >= LB_U8) {
        snprintf(t.s, sizeof(t.s), "%" PRIu64, integer_at(dtype, data, i));
    } else {
        snprintf(t.s, sizeof(t.s), "%" PRId64,
                 (int64_t)integer_at(dtype, data, i));
    }
    return t;
}

static text index_text(lb_shape shape, int64_t i)
{
    lb_shape index = {.rank = shape.rank};
    for (int k = shape.rank - 1; k >= 0; k--) {
        index.dim[k] = i % shape.dim[k];
        i /= shape.dim[k];
    }
    return shape_text(index);
}

/* ---- comparing ---------------------------------------------------------- */

/* Bits of a float as an integer that counts representable values: adjacent
 * floats differ by 1, and both zeros are 0. */
static int64_t ordinal_at(lb_dtype dtype, const void *data, int64_t i)
{
    const size_t w = lb_dtype_size(dtype);
    const lb_dtype as = w == 2 ? LB_U16 : w == 4 ? LB_U32 : LB_U64;
    const uint64_t bits = integer_at(as, data, i);
    const uint64_t sign = (uint64_t)1 << (8 * w - 1);
    return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

static bool float_fits(lb_dtype dtype, const void *got, const void *want,
                       int64_t i, tolerance tol)
{
    const double g = float_at(dtype, got, i);
    const double w = float_at(dtype, want, i);
    if (tol.bits && !signbit(g) != !signbit(w) && !isnan(w)) return false;
    if (g == w || (isnan(g) && isnan(w))) return true;
    if (!isfinite(g) || !isfinite(w)) return false;
    if (tol.ulps >= 0) {
        const int64_t a = ordinal_at(dtype, got, i);
        const int64_t b = ordinal_at(dtype, want, i);
        /* Unsigned: two doubles of opposite sign can differ by 2^63. */
        const uint64_t apart =
            a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
        return apart <= (uint64_t)tol.ulps;
    }
    const double apart = fabs(g - w);
    return apart <= tol.absolute + tol.relative * fabs(w) ||
           (w == 0 && apart <= tol.at_zero);
}

tolerance tolerance_default(lb_dtype dtype)
{
    const double t = dtype == LB_F16 ? 2e-3 : dtype == LB_BF16 ? 2e-2 : 1e-4;
    return (tolerance){.absolute = t, .relative = t, .ulps = -1};
}

tolerance tolerance_bits(void)
{
    return (tolerance){.ulps = -1, .bits = true};
}

double largest_finite(lb_dtype dtype, const void *data, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        const double v = fabs(float_at(dtype, data, i));
        if (isfinite(v) && v > most) most = v;
    }
    return most;
}

bool compare(lb_dtype dtype, lb_shape shape, const void *got, const void *want,
             tolerance tol, note *n)
{
    const int64_t size = shape_size(shape);
    const bool is_float = dtype_is_float(dtype);
    int64_t first = -1;
    int64_t wrong = 0;
    for (int64_t i = 0; i < size; i++) {
        if (is_float
                ? float_fits(dtype, got, want, i, tol)
                : integer_at(dtype, got, i) == integer_at(dtype, want, i)) {
            continue;
        }
        if (!wrong++) first = i;
    }
    if (!wrong) return true;
    return note_fail(n,
                     "element %s is %s, but %s is expected; %" PRId64
                     " of %" PRId64 " differ",
                     index_text(shape, first).s,
                     element_text(dtype, got, first).s,
                     element_text(dtype, want, first).s, wrong, size);
}

uint64_t digest_of(uint64_t seed, const void *data, size_t size)
{
    /* FNV-1a's offset basis and prime for 64 bits. */
    uint64_t h = seed ? seed : UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) {
        h = (h ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    }
    return h;
}
