/* gemvq_rows_int_neon.c - a vector of whole numbers times lines of codes, NEON.
 *
 *   8 bits      widened, times x of 16 bits: a lane sums 128 products of a
 *               panel, 128 * 128 * 32767 < 2^31
 *   4 bits      levels of 14 bits, their bytes looked up apart and zipped,
 *               times x of 16 bits: a lane sums at most eight products,
 *               8 * 8191 * 32767 < 2^31
 *   2 or 1 bit  codes stay bytes and are multiplied as such, into lanes of 16
 *               bits: a panel of 1024 codes is 64 products in each, at most
 *               64 * 3 * 128 = 24576
 */
#include "kernels/gemvq.h"

#if defined(__aarch64__)
#include "kernels/arm/gemvq_neon.h"

enum { R = LB_GEMVQ_ROWS, BYTES = 32 };

LB_INLINE int32x4_t add_products(int32x4_t sum, int16x8_t w, int16x8_t x)
{
    sum = vmlal_s16(sum, vget_low_s16(w), vget_low_s16(x));
    return vmlal_high_s16(sum, w, x);
}

/* The lanes of each, added up. */
LB_INLINE float32x4_t fold4(const float32x4_t *a)
{
    return vpaddq_f32(vpaddq_f32(a[0], a[1]), vpaddq_f32(a[2], a[3]));
}

LB_INLINE int32x4_t fold4_s32(const int32x4_t *a)
{
    return vpaddq_s32(vpaddq_s32(a[0], a[1]), vpaddq_s32(a[2], a[3]));
}

/* ---- 8 bits ------------------------------------------------------------- */

static void rows8(const lb_gemvq_rows *r, float *y)
{
    enum { PER = LB_GEMVQ_I16_PANEL / BYTES };
    float32x4_t a[R];
    LB_UNROLL
    for (int i = 0; i < R; i++)
        a[i] = vdupq_n_f32(0);
    for (int64_t g = 0, p = 0; g < r->groups; g += PER, p++) {
        const int64_t end = r->groups - g < PER ? r->groups : g + PER;
        int32x4_t t[R];
        LB_UNROLL
        for (int i = 0; i < R; i++)
            t[i] = vdupq_n_s32(0);
        for (int64_t h = 2 * g; h < 2 * end; h++) {
            const int16_t *x = (const int16_t *)r->x + 16 * h;
            const int16x8_t x0 = vld1q_s16(x), x1 = vld1q_s16(x + 8);
            LB_UNROLL
            for (int i = 0; i < R; i++) {
                const int8x16_t v =
                    vreinterpretq_s8_u8(vld1q_u8(r->codes[i] + 16 * h));
                t[i] = add_products(t[i], vmovl_s8(vget_low_s8(v)), x0);
                t[i] = add_products(t[i], vmovl_high_s8(v), x1);
            }
        }
        LB_UNROLL
        for (int i = 0; i < R; i++)
            a[i] = vfmaq_n_f32(a[i], vcvtq_f32_s32(t[i]), r->x_scale[p]);
    }
    vst1q_f32(y, fold4(a));
}

/* ---- 4 bits ------------------------------------------------------------- */

/* Products of 32 codes; t[0]: of the first 16 of them, t[1]: of the others. */
LB_INLINE void codes32(const lb_half_levels *l, const uint8_t *codes,
                       const int16x8_t *x, int32x4_t *t)
{
    const uint8x16_t v = vld1q_u8(codes);
    int16x8_t low[2], high[2];
    lb_look_up_halves(l, vandq_u8(v, vdupq_n_u8(15)), low);
    lb_look_up_halves(l, vshrq_n_u8(v, 4), high);
    LB_UNROLL
    for (int h = 0; h < 2; h++)
        t[h] = add_products(add_products(vdupq_n_s32(0), low[h], x[h]), high[h],
                            x[2 + h]);
}

/* Half h of group g of a line onto its sum. */
LB_INLINE float32x4_t add_half(const lb_gemvq_rows *r, const int32x4_t *t,
                               int i, int64_t g, int h, int unit,
                               float32x4_t sum)
{
    const float *s = r->scale[i];
    if (unit == 16) {
        s += 4 * g + 2 * h;
        sum = vfmaq_n_f32(sum, vcvtq_f32_s32(t[0]), s[0]);
        return vfmaq_n_f32(sum, vcvtq_f32_s32(t[1]), s[1]);
    }
    const float one = unit == 32 ? s[2 * g + h] : s[g >> r->shift];
    return vfmaq_n_f32(sum, vcvtq_f32_s32(vaddq_s32(t[0], t[1])), one);
}

/* unit is a constant where this is inlined. */
LB_INLINE void all4(const lb_gemvq_rows *r, float *y, const int unit)
{
    enum { PER = LB_GEMVQ_I16_PANEL / 64 };
    const lb_half_levels l = lb_half_levels_of(r->table);
    float32x4_t a[R];
    LB_UNROLL
    for (int i = 0; i < R; i++)
        a[i] = vdupq_n_f32(0);
    for (int64_t g = 0, p = 0; g < r->groups; p++) {
        const int64_t end = r->groups - g < PER ? r->groups : g + PER;
        float32x4_t t[R];
        LB_UNROLL
        for (int i = 0; i < R; i++)
            t[i] = vdupq_n_f32(0);
        for (; g < end; g++) {
            for (int h = 0; h < 2; h++) {
                const int16x8x4_t x =
                    vld1q_s16_x4((const int16_t *)r->x + 64 * g + 32 * h);
                LB_UNROLL
                for (int i = 0; i < R; i++) {
                    int32x4_t u[2];
                    codes32(&l, r->codes[i] + BYTES * g + 16 * h, x.val, u);
                    t[i] = add_half(r, u, i, g, h, unit, t[i]);
                    LB_KEEP(t[i]);
                }
            }
        }
        LB_UNROLL
        for (int i = 0; i < R; i++)
            a[i] = vfmaq_n_f32(a[i], t[i], r->x_scale[p]);
    }
    vst1q_f32(y, vmulq_n_f32(fold4(a), r->table->half_unit));
}

static void rows4_64(const lb_gemvq_rows *r, float *y)
{
    all4(r, y, 64);
}
static void rows4_32(const lb_gemvq_rows *r, float *y)
{
    all4(r, y, 32);
}
static void rows4_16(const lb_gemvq_rows *r, float *y)
{
    all4(r, y, 16);
}

/* ---- 2 bits or 1 -------------------------------------------------------- */

/* Eight lanes of 16 bits for each half of a vector of bytes. */
typedef struct {
    int16x8_t lo, hi;
} sums;

LB_INLINE void add_bytes(sums *s, int8x16_t codes, int8x16_t x)
{
    s->lo = vmlal_s8(s->lo, vget_low_s8(codes), vget_low_s8(x));
    s->hi = vmlal_high_s8(s->hi, codes, x);
}

LB_INLINE int32x4_t sum_of(const sums *s)
{
    return vpadalq_s16(vpaddlq_s16(s->lo), s->hi);
}

/* The sums over groups [g, end) of all lines. A vector of 32 numbers of x, or
 * one of high and one of low, meets each field of a group. */
LB_INLINE void signs_panel(const lb_gemvq_rows *r, int64_t g, int64_t end,
                           const int bits, const bool two, int32x4_t *sum)
{
    const int fields = 8 / bits, each = two ? 2 * BYTES : BYTES;
    const uint8x16_t mask = vdupq_n_u8((uint8_t)((1 << bits) - 1));
    const int8_t *x = (const int8_t *)r->x + g * fields * each;
    sums high[R], low[R];
    LB_UNROLL
    for (int i = 0; i < R; i++)
        high[i] = low[i] = (sums){vdupq_n_s16(0), vdupq_n_s16(0)};
    for (; g < end; g++, x += fields * each) {
        for (int h = 0; h < BYTES; h += 16) {
            uint8x16_t v[R];
            LB_UNROLL
            for (int i = 0; i < R; i++)
                v[i] = vld1q_u8(r->codes[i] + BYTES * g + h);
            for (int f = 0; f < fields; f++) {
                const int8x16_t x0 = vld1q_s8(x + f * each + h);
                const int8x16_t x1 =
                    two ? vld1q_s8(x + f * each + BYTES + h) : x0;
                LB_UNROLL
                for (int i = 0; i < R; i++) {
                    const int8x16_t c =
                        vreinterpretq_s8_u8(vandq_u8(v[i], mask));
                    add_bytes(&high[i], c, x0);
                    if (two) add_bytes(&low[i], c, x1);
                    v[i] = vshlq_u8(v[i], vdupq_n_s8((int8_t)-bits));
                }
            }
        }
    }
    LB_UNROLL
    for (int i = 0; i < R; i++) {
        sum[i] = sum_of(&high[i]);
        if (two) sum[i] = vaddq_s32(vshlq_n_s32(sum[i], 8), sum_of(&low[i]));
    }
}

LB_INLINE void signs(const lb_gemvq_rows *r, float *y, const int bits,
                     const bool two)
{
    const int64_t per = LB_GEMVQ_I8_PANEL / (BYTES * 8 / bits);
    float32x4_t sum = vdupq_n_f32(0);
    for (int64_t g = 0, p = 0; g < r->groups; g += per, p++) {
        const int64_t end = r->groups - g < per ? r->groups : g + per;
        int32x4_t t[R];
        signs_panel(r, g, end, bits, two, t);
        const int32x4_t whole =
            vmlaq_n_s32(vdupq_n_s32(r->table->least * r->x_sum[p]),
                        fold4_s32(t), r->table->step);
        /* Two roundings, as the reference has them. */
        sum = vaddq_f32(sum, vmulq_n_f32(vcvtq_f32_s32(whole), r->x_scale[p]));
    }
    vst1q_f32(y, sum);
}

static void rows2_i8x2(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 2, true);
}
static void rows2_i8(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 2, false);
}
static void rows1_i8x2(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 1, true);
}
static void rows1_i8(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 1, false);
}

/* Bytes as they lie, field by field. */
#define FIELDS(n)                                                              \
    {                                                                          \
        {BYTES, n},                                                            \
        {                                                                      \
            n, 1                                                               \
        }                                                                      \
    }

const lb_gemvq_kernel lb_gemvq_rows_int_neon[] = {
    {"gemv q8 i16 neon", 8, LB_GEMVQ_I16, 32, 0, 1, FIELDS(1), .rows = rows8},
    {"gemv q4 i16 neon", 4, LB_GEMVQ_I16, 64, 64, 1, LB_FIELDS_NEON(2),
     .rows = rows4_64},
    {"gemv q4 i16 neon", 4, LB_GEMVQ_I16, 64, 32, 1, LB_FIELDS_NEON(2),
     .rows = rows4_32},
    {"gemv q4 i16 neon", 4, LB_GEMVQ_I16, 64, 16, 1, LB_FIELDS_NEON(2),
     .rows = rows4_16},
    {"gemv q2 i8x2 neon", 2, LB_GEMVQ_I8X2, 128, 0, 1, FIELDS(4),
     .rows = rows2_i8x2},
    {"gemv q1 i8x2 neon", 1, LB_GEMVQ_I8X2, 256, 0, 1, FIELDS(8),
     .rows = rows1_i8x2},
    {"gemv q2 i8 neon", 2, LB_GEMVQ_I8, 128, 0, 1, FIELDS(4), .rows = rows2_i8},
    {"gemv q1 i8 neon", 1, LB_GEMVQ_I8, 256, 0, 1, FIELDS(8), .rows = rows1_i8},
    {0},
};
#endif
