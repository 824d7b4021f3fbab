/* gemvq_cols_neon.c - lines of codes times a number each: f32, NEON.
 *
 * Eight lines at a time onto the columns' sums, so that these are loaded and
 * stored once for eight products. Bytes become f32 at the top of their lanes;
 * fewer bits are looked up, a field of 16 bytes at a time: four vectors of
 * columns, of four bytes each.
 */
#include "kernels/gemvq.h"

#if defined(__aarch64__)
#include "kernels/arm/codes_neon.h"
#include "kernels/arm/gemvq_neon.h"

enum { C = LB_GEMVQ_COLS, BYTES = 32 };

static void cols8(const lb_gemvq_cols *given)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    float *y = c->sum, x[C];
    for (int i = 0; i < C; i++)
        x[i] = *(const float *)c->x[i];
    for (int64_t at = 0; at < c->groups * BYTES; at += 16, y += 16) {
        float32x4_t t[4];
        LB_UNROLL
        for (int q = 0; q < 4; q++)
            t[q] = vld1q_f32(y + 4 * q);
        LB_UNROLL
        for (int i = 0; i < C; i++) {
            float32x4_t w[4];
            lb_floats_16(vreinterpretq_s8_u8(vld1q_u8(c->codes[i] + at)), w);
            LB_UNROLL
            for (int q = 0; q < 4; q++)
                t[q] = vfmaq_n_f32(t[q], w[q], x[i]);
        }
        LB_UNROLL
        for (int q = 0; q < 4; q++)
            vst1q_f32(y + 4 * q, t[q]);
    }
}

/* ---- 4, 2 bits or 1 ------------------------------------------------------ */

/* How many numbers of x serve 16 bytes of a line: one of them four bytes, or
 * eight, or all. Else one serves groups, or the whole line. */
typedef enum { LINE, ONE, TWO, GROUPS, FOUR } serving;

LB_INLINE float number_for(const float *x, serving s, int64_t h, int shift,
                           int q)
{
    switch (s) {
    case ONE:
        return x[h];
    case TWO:
        return x[2 * h + q / 2];
    case FOUR:
        return x[4 * h + q];
    case GROUPS:
        return x[h / 2 >> shift];
    default:
        return x[0];
    }
}

/* Field f of the h-th 16 bytes; all but h and f are constants where this is
 * inlined. Levels repeat, so bits of a neighbour do no harm. */
LB_INLINE void add_field(const lb_gemvq_cols *c, const lb_planes *l,
                         const int bits, const serving s, const bool is_short,
                         int64_t h, int f, float *y)
{
    const int8x16_t down = vdupq_n_s8((int8_t)(-bits * f));
    float32x4_t t[4];
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        t[q] = vdupq_n_f32(0);
    LB_UNROLL
    for (int i = 0; i < C; i++) {
        uint8x16_t v = vshlq_u8(vld1q_u8(c->codes[i] + 16 * h), down);
        LB_KEEP(v);
        float32x4_t w[4];
        lb_look_up(l, vandq_u8(v, vdupq_n_u8(15)), is_short, w);
        LB_UNROLL
        for (int q = 0; q < 4; q++)
            t[q] =
                vfmaq_n_f32(t[q], w[q], number_for(c->x[i], s, h, c->shift, q));
    }
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        vst1q_f32(y + 4 * q, vaddq_f32(vld1q_f32(y + 4 * q), t[q]));
}

LB_INLINE void all_fields(const lb_gemvq_cols *given, const int bits,
                          const serving s, const bool is_short)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const lb_planes l = lb_planes_of(c->table->level);
    float *y = c->sum;
    for (int64_t h = 0; h < c->groups * BYTES / 16; h++)
        for (int f = 0; f < 8 / bits; f++, y += 16)
            add_field(c, &l, bits, s, is_short, h, f, y);
}

LB_INLINE void fields(const lb_gemvq_cols *c, const int bits, const serving s)
{
    const lb_planes l = lb_planes_of(c->table->level);
    if (lb_planes_are_short(&l))
        all_fields(c, bits, s, true);
    else
        all_fields(c, bits, s, false);
}

static void cols4_64(const lb_gemvq_cols *c)
{
    fields(c, 4, GROUPS);
}
static void cols4_32(const lb_gemvq_cols *c)
{
    fields(c, 4, ONE);
}
static void cols4_16(const lb_gemvq_cols *c)
{
    fields(c, 4, TWO);
}
static void cols2(const lb_gemvq_cols *c)
{
    fields(c, 2, LINE);
}
static void cols2_scaled(const lb_gemvq_cols *c)
{
    fields(c, 2, FOUR);
}
static void cols1(const lb_gemvq_cols *c)
{
    fields(c, 1, LINE);
}
static void cols1_scaled(const lb_gemvq_cols *c)
{
    fields(c, 1, FOUR);
}

const lb_gemvq_kernel lb_gemvq_cols_neon[] = {
    {"gemv q8 f32 neon cols", 8, LB_GEMVQ_F32, 32, 0, 1, LB_FIELDS_NEON(1),
     .cols = cols8},
    {"gemv q4 f32 neon cols", 4, LB_GEMVQ_F32, 64, 64, 1, LB_FIELDS_NEON(2),
     .cols = cols4_64},
    {"gemv q4 f32 neon cols", 4, LB_GEMVQ_F32, 64, 32, 1, LB_FIELDS_NEON(2),
     .cols = cols4_32},
    {"gemv q4 f32 neon cols", 4, LB_GEMVQ_F32, 64, 16, 1, LB_FIELDS_NEON(2),
     .cols = cols4_16},
    {"gemv q2 f32 neon cols", 2, LB_GEMVQ_F32, 128, 0, 1, LB_FIELDS_NEON(4),
     .cols = cols2},
    {"gemv q2 f32 neon cols", 2, LB_GEMVQ_F32, 128, 16, 1, LB_FIELDS_NEON(4),
     .cols = cols2_scaled},
    {"gemv q1 f32 neon cols", 1, LB_GEMVQ_F32, 256, 0, 1, LB_FIELDS_NEON(8),
     .cols = cols1},
    {"gemv q1 f32 neon cols", 1, LB_GEMVQ_F32, 256, 32, 1, LB_FIELDS_NEON(8),
     .cols = cols1_scaled},
    {0},
};
#endif
