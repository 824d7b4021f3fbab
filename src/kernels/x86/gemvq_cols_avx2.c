/* gemvq_cols_avx2.c - lines of codes times a number each: f32, AVX2 and FMA.
 *
 * Eight lines at a time onto the columns' sums, so that these are loaded and
 * stored once for eight products. Codes are decoded as in gemvq_rows_avx2.c.
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx2.h"

enum { C = LB_GEMVQ_COLS };

AVX2_INLINE void add_to(float *y, __m256 t)
{
    _mm256_store_ps(y, _mm256_add_ps(_mm256_load_ps(y), t));
}

AVX2 static void cols8(const lb_gemvq_cols *c)
{
    float *y = c->sum, x[C];
    const uint8_t *codes[C];
    for (int i = 0; i < C; i++) {
        codes[i] = c->codes[i];
        x[i] = *(const float *)c->x[i];
    }
    for (int64_t g = 0; g < c->groups; g++, y += 32) {
        __m256 t[4];
        LB_UNROLL
        for (int b = 0; b < 4; b++)
            t[b] = _mm256_load_ps(y + 8 * b);
        LB_UNROLL
        for (int i = 0; i < C; i++) {
            const __m256i v = load_codes(codes[i] + 32 * g);
            const __m256 xi = _mm256_broadcast_ss(x + i);
            LB_UNROLL
            for (int b = 0; b < 4; b++)
                t[b] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(top_byte(v, b)), xi,
                                       t[b]);
        }
        LB_UNROLL
        for (int b = 0; b < 4; b++)
            _mm256_store_ps(y + 8 * b, t[b]);
    }
}

/* ---- 4 bits ------------------------------------------------------------- */

/* The low or the high halves of 32 bytes of eight lines. */
AVX2_INLINE void half_group4(const lb_gemvq_cols *c, const levels_f32 *l,
                             int64_t g, bool high, int unit, float *y)
{
    __m256 t[4];
    LB_UNROLL
    for (int v = 0; v < 4; v++)
        t[v] = _mm256_setzero_ps();
    LB_UNROLL
    for (int i = 0; i < C; i++) {
        const __m256i v = load_codes(c->codes[i] + 32 * g);
        __m256 w[4], x[2];
        look_up_f32(l, high ? high_half(v, l->low) : low_half(v, l->low), w);
        spread_units(c->x[i], g, unit, c->shift, x);
        t[0] = _mm256_fmadd_ps(w[0], x[0], t[0]);
        t[1] = _mm256_fmadd_ps(w[1], x[0], t[1]);
        t[2] = _mm256_fmadd_ps(w[2], x[1], t[2]);
        t[3] = _mm256_fmadd_ps(w[3], x[1], t[3]);
    }
    LB_UNROLL
    for (int v = 0; v < 4; v++)
        add_to(y + 8 * v, t[v]);
}

AVX2_INLINE void all4(const lb_gemvq_cols *c, int unit)
{
    const levels_f32 l = load_levels_f32(c->table);
    float *y = c->sum;
    for (int64_t g = 0; g < c->groups; g++, y += 64) {
        half_group4(c, &l, g, false, unit, y);
        half_group4(c, &l, g, true, unit, y + 32);
    }
}

AVX2 static void cols4_64(const lb_gemvq_cols *c)
{
    all4(c, 64);
}
AVX2 static void cols4_32(const lb_gemvq_cols *c)
{
    all4(c, 32);
}
AVX2 static void cols4_16(const lb_gemvq_cols *c)
{
    all4(c, 16);
}

/* ---- 2 bits or 1 ------------------------------------------------------- */

/* Four lines from one on. Field f of lane d is slot 8*f + d; scaled: x has a
 * number for each lane. */
AVX2_INLINE void four_signs(const lb_gemvq_cols *c, int first, int bits,
                            bool scaled)
{
    const __m256 level =
        _mm256_broadcast_ps((const __m128 *)(const void *)c->table->level);
    float *y = c->sum;
    __m256 x[4];
    LB_UNROLL
    for (int i = 0; i < 4 && !scaled; i++)
        x[i] = _mm256_broadcast_ss(c->x[first + i]);
    for (int64_t g = 0; g < c->groups; g++) {
        __m256i v[4];
        LB_UNROLL
        for (int i = 0; i < 4; i++) {
            v[i] = load_codes(c->codes[first + i] + 32 * g);
            if (scaled)
                x[i] = _mm256_loadu_ps((const float *)c->x[first + i] + 8 * g);
        }
        for (int part = 0; part < 32 / bits / 8; part++, y += 64) {
            LB_UNROLL
            for (int f = 0; f < 8; f++) {
                __m256 t =
                    _mm256_mul_ps(_mm256_permutevar_ps(
                                      level, _mm256_srli_epi32(v[0], bits * f)),
                                  x[0]);
                LB_UNROLL
                for (int i = 1; i < 4; i++)
                    t = _mm256_fmadd_ps(
                        _mm256_permutevar_ps(level,
                                             _mm256_srli_epi32(v[i], bits * f)),
                        x[i], t);
                add_to(y + 8 * f, t);
            }
            LB_UNROLL
            for (int i = 0; i < 4; i++)
                v[i] = _mm256_srli_epi32(v[i], bits * 8);
        }
    }
}

AVX2_INLINE void signs(const lb_gemvq_cols *c, int bits, bool scaled)
{
    four_signs(c, 0, bits, scaled);
    four_signs(c, 4, bits, scaled);
}

AVX2 static void cols2(const lb_gemvq_cols *c)
{
    signs(c, 2, false);
}
AVX2 static void cols2_scaled(const lb_gemvq_cols *c)
{
    signs(c, 2, true);
}
AVX2 static void cols1(const lb_gemvq_cols *c)
{
    signs(c, 1, false);
}
AVX2 static void cols1_scaled(const lb_gemvq_cols *c)
{
    signs(c, 1, true);
}

#define NF4_ORDER                                                              \
    {                                                                          \
        {4, 2, 4, 2},                                                          \
        {                                                                      \
            2, 32, 8, 1                                                        \
        }                                                                      \
    }

const lb_gemvq_kernel lb_gemvq_cols_avx2[] = {
    {"gemv q8 f32 avx2 cols",
     8,
     LB_GEMVQ_F32,
     32,
     0,
     0x1p-24f,
     {{8, 4}, {4, 1}},
     .cols = cols8,
     .few = lb_gemvq_few8_avx2},
    {"gemv q4 f32 avx2 cols", 4, LB_GEMVQ_F32, 64, 64, 1, NF4_ORDER,
     .cols = cols4_64, .few = lb_gemvq_few4_avx2},
    {"gemv q4 f32 avx2 cols", 4, LB_GEMVQ_F32, 64, 32, 1, NF4_ORDER,
     .cols = cols4_32},
    {"gemv q4 f32 avx2 cols", 4, LB_GEMVQ_F32, 64, 16, 1, NF4_ORDER,
     .cols = cols4_16},
    {"gemv q2 f32 avx2 cols",
     2,
     LB_GEMVQ_F32,
     128,
     0,
     1,
     {{8, 16}, {16, 1}},
     .cols = cols2,
     .few = lb_gemvq_few2_avx2},
    {"gemv q2 f32 avx2 cols",
     2,
     LB_GEMVQ_F32,
     128,
     16,
     1,
     {{8, 16}, {16, 1}},
     .cols = cols2_scaled},
    {"gemv q1 f32 avx2 cols",
     1,
     LB_GEMVQ_F32,
     256,
     0,
     1,
     {{8, 32}, {32, 1}},
     .cols = cols1,
     .few = lb_gemvq_few1_avx2},
    {"gemv q1 f32 avx2 cols",
     1,
     LB_GEMVQ_F32,
     256,
     32,
     1,
     {{8, 32}, {32, 1}},
     .cols = cols1_scaled},
    {0},
};
#endif
