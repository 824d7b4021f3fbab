/* gemvq_cols_int_neon.c - lines of codes times a whole number each, NEON.
 *
 *   8 bits      64 lines: at most 64 * 32767 * 128 < 2^31
 *   4 bits      32 lines: at most 32 * 8191 * 8191 < 2^31
 *   2 or 1 bit  sums of 16 bits: 64 lines are at most 64 * 3 * 128 = 24576
 */
#include "kernels/gemvq.h"

#if defined(__aarch64__)
#include "kernels/arm/gemvq_neon.h"

enum { C = LB_GEMVQ_COLS, PAIRS = C / 2, BYTES = 32 };

/* Sixteen sums of 32 bits. */
typedef struct {
    int32x4_t v[4];
} sums;

LB_INLINE sums load_sums(const int32_t *from, bool first)
{
    sums s;
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        s.v[q] = first ? vdupq_n_s32(0) : vld1q_s32(from + 4 * q);
    return s;
}

LB_INLINE void store_sums(int32_t *to, const sums *s)
{
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        vst1q_s32(to + 4 * q, s->v[q]);
}

LB_INLINE void add_products(sums *s, const int16x8_t *w, int16_t x)
{
    LB_UNROLL
    for (int h = 0; h < 2; h++) {
        s->v[2 * h] = vmlal_n_s16(s->v[2 * h], vget_low_s16(w[h]), x);
        s->v[2 * h + 1] = vmlal_high_n_s16(s->v[2 * h + 1], w[h], x);
    }
}

/* y += sum * scale. */
LB_INLINE void put_sums(const int32_t *sum, int64_t n, float scale, float *y)
{
    for (int64_t i = 0; i < n; i += 4)
        vst1q_f32(y + i, vfmaq_n_f32(vld1q_f32(y + i),
                                     vcvtq_f32_s32(vld1q_s32(sum + i)), scale));
}

/* ---- 8 bits -------------------------------------------------------------- */

static void cols8(const lb_gemvq_cols *given)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    int32_t *sum = c->sum;
    for (int64_t at = 0; at < c->groups * BYTES; at += 16, sum += 16) {
        sums t = load_sums(sum, c->first);
        LB_UNROLL
        for (int i = 0; i < C; i++) {
            const int8x16_t v = vreinterpretq_s8_u8(vld1q_u8(c->codes[i] + at));
            const int16x8_t w[2] = {vmovl_s8(vget_low_s8(v)), vmovl_high_s8(v)};
            add_products(&t, w, ((const int16_t *)c->x[i / 2])[i % 2]);
        }
        store_sums(sum, &t);
    }
}

static void flush8(const lb_gemvq_flush *f)
{
    put_sums(f->sum, f->groups * BYTES, *f->x_scale, f->y);
}

/* ---- 4 bits -------------------------------------------------------------- */

static void cols4(const lb_gemvq_cols *given)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const lb_half_levels l = lb_half_levels_of(c->table);
    int32_t *sum = c->sum;
    for (int64_t h = 0; h < c->groups * BYTES / 16; h++) {
        const int64_t unit = h / 2 >> c->shift;
        sums t[2] = {load_sums(sum, c->first), load_sums(sum + 16, c->first)};
        LB_UNROLL
        for (int i = 0; i < C; i++) {
            const uint8x16_t v = vld1q_u8(c->codes[i] + 16 * h);
            const int16_t x = ((const int16_t *)c->x[i / 2])[2 * unit + i % 2];
            int16x8_t low[2], high[2];
            lb_look_up_halves(&l, vandq_u8(v, vdupq_n_u8(15)), low);
            lb_look_up_halves(&l, vshrq_n_u8(v, 4), high);
            add_products(&t[0], low, x);
            add_products(&t[1], high, x);
        }
        store_sums(sum, &t[0]);
        store_sums(sum + 16, &t[1]);
        sum += 32;
    }
}

static void flush4(const lb_gemvq_flush *f)
{
    enum { GROUP = 2 * BYTES };
    const int32_t *sum = f->sum;
    for (int64_t g = 0; g < f->groups; g++)
        put_sums(sum + g * GROUP, GROUP, f->x_scale[g >> f->shift],
                 f->y + g * GROUP);
}

/* ---- 2 bits or 1 --------------------------------------------------------- */

LB_INLINE int16x8_t load_8(const int16_t *from, bool first)
{
    return first ? vdupq_n_s16(0) : vld1q_s16(from);
}

/* 16 columns, a field of as many bytes, have their sums of high and then those
 * of low. bits and two are constants where this is inlined. */
LB_INLINE void signs(const lb_gemvq_cols *given, const int bits, const bool two)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const uint8x16_t mask = vdupq_n_u8((uint8_t)((1 << bits) - 1));
    int16_t *sum = c->sum;
    int8_t high[C], low[C];
    for (int i = 0; i < C; i++) {
        high[i] = ((const int8_t *)c->x[i / 2])[i % 2];
        low[i] = ((const int8_t *)c->x[PAIRS + i / 2])[i % 2];
    }
    for (int64_t at = 0; at < c->groups * BYTES; at += 16)
        for (int f = 0; f < 8 / bits; f++, sum += two ? 32 : 16) {
            const int8x16_t down = vdupq_n_s8((int8_t)(-bits * f));
            int16x8_t h[2], l[2];
            LB_UNROLL
            for (int p = 0; p < 2; p++) {
                h[p] = load_8(sum + 8 * p, c->first);
                l[p] = load_8(sum + (two ? 16 : 0) + 8 * p, c->first);
            }
            LB_UNROLL
            for (int i = 0; i < C; i++) {
                uint8x16_t v = vshlq_u8(vld1q_u8(c->codes[i] + at), down);
                LB_KEEP(v);
                const int8x16_t w = vreinterpretq_s8_u8(vandq_u8(v, mask));
                const int8x16_t x0 = vdupq_n_s8(high[i]);
                const int8x16_t x1 = vdupq_n_s8(low[i]);
                h[0] = vmlal_s8(h[0], vget_low_s8(w), vget_low_s8(x0));
                h[1] = vmlal_high_s8(h[1], w, x0);
                l[0] = vmlal_s8(l[0], vget_low_s8(w), vget_low_s8(x1));
                l[1] = vmlal_high_s8(l[1], w, x1);
            }
            LB_UNROLL
            for (int p = 0; p < 2; p++) {
                vst1q_s16(sum + 8 * p, h[p]);
                if (two) vst1q_s16(sum + 16 + 8 * p, l[p]);
            }
        }
}

/* Four columns from one on; two roundings, as the reference has them. */
LB_INLINE void put_4(const lb_gemvq_flush *f, int32x4_t t, int64_t at)
{
    int32_t *const before = f->whole + at;
    float *const y = f->y + at;
    if (!f->begins) t = vaddq_s32(t, vld1q_s32(before));
    if (!f->ends) {
        vst1q_s32(before, t);
        return;
    }
    const int32x4_t least = vdupq_n_s32(f->table->least * f->x_sum);
    const int32x4_t whole = vmlaq_n_s32(least, t, f->table->step);
    vst1q_f32(y, vaddq_f32(vld1q_f32(y),
                           vmulq_n_f32(vcvtq_f32_s32(whole), *f->x_scale)));
}

LB_INLINE void flush(const lb_gemvq_flush *f, const int bits, const bool two)
{
    const int16_t *sum = f->sum;
    for (int64_t i = 0; i < f->groups * (BYTES * 8 / bits); i += 16) {
        LB_UNROLL
        for (int q = 0; q < 4; q++, sum += 4) {
            const int16x4_t v = vld1_s16(sum);
            put_4(f,
                  two ? vaddw_s16(vshll_n_s16(v, 8), vld1_s16(sum + 16))
                      : vmovl_s16(v),
                  i + 4 * q);
        }
        if (two) sum += 16;
    }
}

LB_GEMVQ_COLS_OF_BITS(, signs)

const lb_gemvq_kernel lb_gemvq_cols_int_neon[] = {
    {"gemv q8 i16 neon cols", 8, LB_GEMVQ_I16, 32, 0, 1, LB_FIELDS_NEON(1),
     .cols = cols8, .flush = flush8, .sum_size = 4},
    {"gemv q4 i16 neon cols", 4, LB_GEMVQ_I16, 64, 64, 1, LB_FIELDS_NEON(2),
     .cols = cols4, .flush = flush4, .sum_size = 4},
    {"gemv q2 i8x2 neon cols", 2, LB_GEMVQ_I8X2, 128, 0, 1, LB_FIELDS_NEON(4),
     .cols = cols2_i8x2, .flush = flush2_i8x2, .sum_size = 4},
    {"gemv q1 i8x2 neon cols", 1, LB_GEMVQ_I8X2, 256, 0, 1, LB_FIELDS_NEON(8),
     .cols = cols1_i8x2, .flush = flush1_i8x2, .sum_size = 4},
    {"gemv q2 i8 neon cols", 2, LB_GEMVQ_I8, 128, 0, 1, LB_FIELDS_NEON(4),
     .cols = cols2_i8, .flush = flush2_i8, .sum_size = 2},
    {"gemv q1 i8 neon cols", 1, LB_GEMVQ_I8, 256, 0, 1, LB_FIELDS_NEON(8),
     .cols = cols1_i8, .flush = flush1_i8, .sum_size = 2},
    {0},
};
#endif
