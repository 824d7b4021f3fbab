/* convert.c - the portable conversions; see convert.h.
 *
 * Rounding f64 or a 64-bit integer to 16 bits goes through f32, which would
 * round twice. So the way there rounds to odd: toward zero, with the lowest
 * bit set if anything was lost. f32 has at least two bits more than f16 and
 * bf16, so the second rounding then sees all it needs.
 */
#include "kernels/convert.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

uint16_t lb_f16_from_f32(float f)
{
    const uint32_t sign = bits_of(f) >> 16 & 0x8000,
                   u = bits_of(f) & ~(1u << 31);
    /* Below 2^-14 the spacing is 2^-24, as it is just above 0.5. */
    const uint32_t small = bits_of(float_of(u) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (u + 0xfff + (u >> 13 & 1) - 0x38000000u) >> 13;
    const uint32_t nan = 0x7e00 | (u >> 13 & 0x3ff);
    const uint32_t h = u > 0x7f800000u    ? nan
                       : u >= 0x47800000u ? 0x7c00 /* 65536 and above */
                       : u < 0x38800000u  ? small
                                          : normal;
    return (uint16_t)(sign | h);
}

float lb_f32_from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t e = h & 0x7c00, m = h & 0x3ff;
    const uint32_t u = e == 0 ? bits_of((float)m * 0x1p-24f)
                       : e == 0x7c00
                           ? 0x7f800000u | m << 13
                           : ((uint32_t)(h & 0x7fff) << 13) + 0x38000000u;
    return float_of(sign | u);
}

uint16_t lb_bf16_from_f32(float f)
{
    const uint32_t u = bits_of(f);
    const uint32_t nan = (u | 0x400000) >> 16;
    const uint32_t r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000u ? nan : r);
}

float lb_f32_from_bf16(uint16_t b)
{
    return float_of((uint32_t)b << 16);
}

/* ---- to odd ------------------------------------------------------------- */

static float odd_from_f64(double d)
{
    const float f = (float)d;
    if (isnan(d) || (double)f == d) return f;
    const uint32_t u = bits_of(f);
    const bool away = fabs((double)f) > fabs(d);
    return float_of((away ? u - 1 : u) | 1);
}

static float odd_from_u64(uint64_t v)
{
    int shift = 0;
    while (v >> 24 >> shift)
        shift++;
    const uint64_t kept = v >> shift;
    const bool lost = kept << shift != v;
    return ldexpf((float)(kept | (lost ? 1 : 0)), shift);
}

static float odd_from_i64(int64_t v)
{
    return v < 0 ? -odd_from_u64(0 - (uint64_t)v) : odd_from_u64((uint64_t)v);
}

/* ---- float to integer --------------------------------------------------- */

static int64_t to_signed(double d, int bits)
{
    const double top = ldexp(1.0, bits - 1); /* one above the largest */
    const int64_t max = (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
    if (isnan(d)) return 0;
    return d >= top ? max : d < -top ? -max - 1 : (int64_t)d;
}

static uint64_t to_unsigned(double d, int bits)
{
    if (!(d > 0)) return 0;
    return d >= ldexp(1.0, bits) ? UINT64_MAX >> (64 - bits) : (uint64_t)d;
}

/* ---- runs --------------------------------------------------------------- */

/* One loop for each pair of a source and a destination type. */
#define LOOP(S, D, EXPR)                                                       \
    do {                                                                       \
        const S *s = src;                                                      \
        D *d = dst;                                                            \
        for (int64_t i = 0; i < n; i++) {                                      \
            const S v = s[i * step];                                           \
            d[i] = (D)(EXPR);                                                  \
        }                                                                      \
        return;                                                                \
    } while (0)

void lb_load_run(lb_dtype dtype, const void *src, int64_t step, int64_t n,
                 void *dst)
{
    if (step == 1 &&
        lb_dtype_size(dtype) == lb_ctype_size(lb_ctype_of(dtype))) {
        memcpy(dst, src, (size_t)n * lb_dtype_size(dtype));
        return;
    }
    switch (dtype) {
    case LB_NO_DTYPE:
        return;
    case LB_F32:
        LOOP(float, float, v);
    case LB_F16:
        LOOP(uint16_t, float, lb_f32_from_f16(v));
    case LB_BF16:
        LOOP(uint16_t, float, lb_f32_from_bf16(v));
    case LB_F64:
        LOOP(double, double, v);
    case LB_I8:
        LOOP(int8_t, int64_t, v);
    case LB_I16:
        LOOP(int16_t, int64_t, v);
    case LB_I32:
        LOOP(int32_t, int64_t, v);
    case LB_I64:
        LOOP(int64_t, int64_t, v);
    case LB_U8:
        LOOP(uint8_t, uint64_t, v);
    case LB_U16:
        LOOP(uint16_t, uint64_t, v);
    case LB_U32:
        LOOP(uint32_t, uint64_t, v);
    case LB_U64:
        LOOP(uint64_t, uint64_t, v);
    case LB_BOOL:
        LOOP(uint8_t, uint8_t, v != 0);
    }
}

static void store_f32(const void *src, lb_dtype dtype, int64_t n, void *dst)
{
    enum { step = 1 };
    switch (dtype) {
    case LB_NO_DTYPE:
        return;
    case LB_F32:
        LOOP(float, float, v);
    case LB_F16:
        LOOP(float, uint16_t, lb_f16_from_f32(v));
    case LB_BF16:
        LOOP(float, uint16_t, lb_bf16_from_f32(v));
    case LB_F64:
        LOOP(float, double, v);
    case LB_I8:
        LOOP(float, int8_t, to_signed((double)v, 8));
    case LB_I16:
        LOOP(float, int16_t, to_signed((double)v, 16));
    case LB_I32:
        LOOP(float, int32_t, to_signed((double)v, 32));
    case LB_I64:
        LOOP(float, int64_t, to_signed((double)v, 64));
    case LB_U8:
        LOOP(float, uint8_t, to_unsigned((double)v, 8));
    case LB_U16:
        LOOP(float, uint16_t, to_unsigned((double)v, 16));
    case LB_U32:
        LOOP(float, uint32_t, to_unsigned((double)v, 32));
    case LB_U64:
        LOOP(float, uint64_t, to_unsigned((double)v, 64));
    case LB_BOOL:
        LOOP(float, uint8_t, v != 0);
    }
}

static void store_f64(const void *src, lb_dtype dtype, int64_t n, void *dst)
{
    enum { step = 1 };
    switch (dtype) {
    case LB_NO_DTYPE:
        return;
    case LB_F32:
        LOOP(double, float, v);
    case LB_F16:
        LOOP(double, uint16_t, lb_f16_from_f32(odd_from_f64(v)));
    case LB_BF16:
        LOOP(double, uint16_t, lb_bf16_from_f32(odd_from_f64(v)));
    case LB_F64:
        LOOP(double, double, v);
    case LB_I8:
        LOOP(double, int8_t, to_signed(v, 8));
    case LB_I16:
        LOOP(double, int16_t, to_signed(v, 16));
    case LB_I32:
        LOOP(double, int32_t, to_signed(v, 32));
    case LB_I64:
        LOOP(double, int64_t, to_signed(v, 64));
    case LB_U8:
        LOOP(double, uint8_t, to_unsigned(v, 8));
    case LB_U16:
        LOOP(double, uint16_t, to_unsigned(v, 16));
    case LB_U32:
        LOOP(double, uint32_t, to_unsigned(v, 32));
    case LB_U64:
        LOOP(double, uint64_t, to_unsigned(v, 64));
    case LB_BOOL:
        LOOP(double, uint8_t, v != 0);
    }
}

/* From here on narrowing to an integer wraps, so the sign of the destination
 * does not matter. */
static void store_i64(const void *src, lb_dtype dtype, int64_t n, void *dst)
{
    enum { step = 1 };
    switch (dtype) {
    case LB_NO_DTYPE:
        return;
    case LB_F32:
        LOOP(int64_t, float, v);
    case LB_F16:
        LOOP(int64_t, uint16_t, lb_f16_from_f32(odd_from_i64(v)));
    case LB_BF16:
        LOOP(int64_t, uint16_t, lb_bf16_from_f32(odd_from_i64(v)));
    case LB_F64:
        LOOP(int64_t, double, v);
    case LB_I8:
    case LB_U8:
        LOOP(int64_t, uint8_t, v);
    case LB_I16:
    case LB_U16:
        LOOP(int64_t, uint16_t, v);
    case LB_I32:
    case LB_U32:
        LOOP(int64_t, uint32_t, v);
    case LB_I64:
    case LB_U64:
        LOOP(int64_t, uint64_t, v);
    case LB_BOOL:
        LOOP(int64_t, uint8_t, v != 0);
    }
}

static void store_u64(const void *src, lb_dtype dtype, int64_t n, void *dst)
{
    enum { step = 1 };
    switch (dtype) {
    case LB_F32:
        LOOP(uint64_t, float, v);
    case LB_F16:
        LOOP(uint64_t, uint16_t, lb_f16_from_f32(odd_from_u64(v)));
    case LB_BF16:
        LOOP(uint64_t, uint16_t, lb_bf16_from_f32(odd_from_u64(v)));
    case LB_F64:
        LOOP(uint64_t, double, v);
    default:
        store_i64(src, dtype, n, dst);
    }
}

static void store_bool(const void *src, lb_dtype dtype, int64_t n, void *dst)
{
    enum { step = 1 };
    switch (dtype) {
    case LB_NO_DTYPE:
        return;
    case LB_F32:
        LOOP(uint8_t, float, v);
    case LB_F16:
        LOOP(uint8_t, uint16_t, v ? 0x3c00 : 0);
    case LB_BF16:
        LOOP(uint8_t, uint16_t, v ? 0x3f80 : 0);
    case LB_F64:
        LOOP(uint8_t, double, v);
    case LB_I8:
    case LB_U8:
    case LB_BOOL:
        LOOP(uint8_t, uint8_t, v);
    case LB_I16:
    case LB_U16:
        LOOP(uint8_t, uint16_t, v);
    case LB_I32:
    case LB_U32:
        LOOP(uint8_t, uint32_t, v);
    case LB_I64:
    case LB_U64:
        LOOP(uint8_t, uint64_t, v);
    }
}

void lb_store_run(lb_ctype ctype, const void *tile, lb_dtype dtype, int64_t n,
                  void *dst)
{
    if (ctype == lb_ctype_of(dtype) &&
        lb_dtype_size(dtype) == lb_ctype_size(ctype)) {
        memcpy(dst, tile, (size_t)n * lb_dtype_size(dtype));
        return;
    }
    switch (ctype) {
    case LB_C_F32:
        store_f32(tile, dtype, n, dst);
        return;
    case LB_C_F64:
        store_f64(tile, dtype, n, dst);
        return;
    case LB_C_I64:
        store_i64(tile, dtype, n, dst);
        return;
    case LB_C_U64:
        store_u64(tile, dtype, n, dst);
        return;
    case LB_C_BOOL:
        store_bool(tile, dtype, n, dst);
        return;
    }
}

lb_dtype lb_widest_of(lb_ctype ctype)
{
    static const lb_dtype widest[] = {
        [LB_C_F32] = LB_F32, [LB_C_F64] = LB_F64,   [LB_C_I64] = LB_I64,
        [LB_C_U64] = LB_U64, [LB_C_BOOL] = LB_BOOL,
    };
    return widest[ctype];
}

void lb_convert_run(lb_ctype from, const void *tile, lb_ctype to, int64_t n,
                    void *out)
{
    lb_store_run(from, tile, lb_widest_of(to), n, out);
}

void lb_round_run(lb_dtype dtype, int64_t n, void *dst)
{
    enum { step = 1 };
    const void *src = dst;
    switch (dtype) {
    case LB_F16:
        LOOP(float, float, lb_f32_from_f16(lb_f16_from_f32(v)));
    case LB_BF16:
        LOOP(float, float, lb_f32_from_bf16(lb_bf16_from_f32(v)));
    case LB_I8:
        LOOP(int64_t, int64_t, (int8_t)v);
    case LB_I16:
        LOOP(int64_t, int64_t, (int16_t)v);
    case LB_I32:
        LOOP(int64_t, int64_t, (int32_t)v);
    case LB_U8:
        LOOP(uint64_t, uint64_t, (uint8_t)v);
    case LB_U16:
        LOOP(uint64_t, uint64_t, (uint16_t)v);
    case LB_U32:
        LOOP(uint64_t, uint64_t, (uint32_t)v);
    default:
        return;
    }
}

const lb_convert_kernel lb_convert_ref = {"convert ref", lb_load_run,
                                          lb_store_run, lb_round_run};

const lb_convert_kernel *lb_convert_kernel_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_convert_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_convert_avx2;
#elif defined(__aarch64__)
    if (cpu->level == LB_LEVEL_NEON) return &lb_convert_neon;
#endif
    (void)cpu;
    return &lb_convert_ref;
}
