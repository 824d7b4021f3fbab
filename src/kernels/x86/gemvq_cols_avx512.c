/* gemvq_cols_avx512.c - lines of codes times a number each: f32, AVX-512.
 *
 * Eight lines at a time onto the columns' sums, so that these are loaded and
 * stored once for eight products. Codes are decoded as in
 * gemvq_rows_avx512.c.
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx512.h"

enum { C = LB_GEMVQ_COLS };

AVX512 static void cols8(const lb_gemvq_cols *given)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    float *y = c->sum;
    __m512 x[C];
    LB_UNROLL
    for (int i = 0; i < C; i++)
        x[i] = _mm512_set1_ps(*(const float *)c->x[i]);
    for (int64_t g = 0; g < c->groups; g++, y += 64) {
        __m512 t[4];
        LB_UNROLL
        for (int e = 0; e < 4; e++)
            t[e] = _mm512_load_ps(y + 16 * e);
        LB_UNROLL
        for (int i = 0; i < C; i++) {
            const uint8_t *codes = c->codes[i] + 64 * g;
            _mm_prefetch((const char *)codes + c->ahead, _MM_HINT_T0);
            LB_UNROLL
            for (int e = 0; e < 4; e++)
                t[e] = _mm512_fmadd_ps(
                    to_f32(_mm512_cvtepi8_epi32(load_16(codes + 16 * e))), x[i],
                    t[e]);
        }
        LB_UNROLL
        for (int e = 0; e < 4; e++)
            _mm512_store_ps(y + 16 * e, t[e]);
    }
}

/* ---- 4 bits ------------------------------------------------------------- */

/* Field f of lane d is slot 16*f + d; units: numbers of x for a group. */
AVX512_INLINE void all4(const lb_gemvq_cols *given, int units)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const __m512 level = _mm512_loadu_ps(c->table->level);
    float *y = c->sum;
    for (int64_t g = 0; g < c->groups; g++, y += 128) {
        __m512 t[8];
        const int64_t at = units == 1 ? g >> c->shift : g * units;
        LB_UNROLL
        for (int f = 0; f < 8; f++)
            t[f] = _mm512_load_ps(y + 16 * f);
        LB_UNROLL
        for (int i = 0; i < C; i++) {
            const __m512i v = load_codes(c->codes[i] + 64 * g, c->ahead);
            const __m512 x = spread_scales((const float *)c->x[i] + at, units);
            LB_UNROLL
            for (int f = 0; f < 8; f++)
                t[f] = _mm512_fmadd_ps(
                    _mm512_permutexvar_ps(
                        _mm512_srli_epi32(v, (uint8_t)(4 * f)), level),
                    x, t[f]);
        }
        LB_UNROLL
        for (int f = 0; f < 8; f++)
            _mm512_store_ps(y + 16 * f, t[f]);
    }
}

AVX512 static void cols4_128(const lb_gemvq_cols *c)
{
    all4(c, 1);
}
AVX512 static void cols4_64(const lb_gemvq_cols *c)
{
    all4(c, 2);
}
AVX512 static void cols4_32(const lb_gemvq_cols *c)
{
    all4(c, 4);
}
AVX512 static void cols4_16(const lb_gemvq_cols *c)
{
    all4(c, 8);
}

/* ---- 2 bits or 1 -------------------------------------------------------- */

/* Field f of lane d is slot 16*f + d; scaled: x has a number for each lane. */
AVX512_INLINE void signs(const lb_gemvq_cols *given, int bits, bool scaled)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const __m512 level = _mm512_loadu_ps(c->table->level);
    float *y = c->sum;
    __m512 x[C];
    LB_UNROLL
    for (int i = 0; i < C && !scaled; i++)
        x[i] = _mm512_set1_ps(*(const float *)c->x[i]);
    for (int64_t g = 0; g < c->groups; g++) {
        __m512i v[C];
        LB_UNROLL
        for (int i = 0; i < C; i++) {
            v[i] = load_codes(c->codes[i] + 64 * g, c->ahead);
            if (scaled) x[i] = _mm512_loadu_ps((const float *)c->x[i] + 16 * g);
        }
        for (int part = 0; part < 32 / bits / 8; part++, y += 128) {
            LB_UNROLL
            for (int f = 0; f < 8; f++) {
                __m512 t = _mm512_load_ps(y + 16 * f);
                LB_UNROLL
                for (int i = 0; i < C; i++)
                    t = _mm512_fmadd_ps(
                        _mm512_permutexvar_ps(
                            _mm512_srli_epi32(v[i], (uint8_t)(bits * f)),
                            level),
                        x[i], t);
                _mm512_store_ps(y + 16 * f, t);
            }
            LB_UNROLL
            for (int i = 0; i < C; i++)
                v[i] = _mm512_srli_epi32(v[i], (uint8_t)(bits * 8));
        }
    }
}

AVX512 static void cols2(const lb_gemvq_cols *c)
{
    signs(c, 2, false);
}
AVX512 static void cols2_16(const lb_gemvq_cols *c)
{
    signs(c, 2, true);
}
AVX512 static void cols1(const lb_gemvq_cols *c)
{
    signs(c, 1, false);
}
AVX512 static void cols1_32(const lb_gemvq_cols *c)
{
    signs(c, 1, true);
}

const lb_gemvq_kernel lb_gemvq_cols_avx512[] = {
    {"gemv q8 f32 avx512 cols", 8, LB_GEMVQ_F32, 64, 0, 1, ORDER8,
     .together = true, .cols = cols8, .few = lb_gemvq_few8_avx512},
    {"gemv q4 f32 avx512 cols", 4, LB_GEMVQ_F32, 128, 128, 1, ORDER4,
     .together = true, .cols = cols4_128, .few = lb_gemvq_few4_128_avx512},
    {"gemv q4 f32 avx512 cols", 4, LB_GEMVQ_F32, 128, 64, 1, ORDER4,
     .together = true, .cols = cols4_64, .few = lb_gemvq_few4_64_avx512},
    {"gemv q4 f32 avx512 cols", 4, LB_GEMVQ_F32, 128, 32, 1, ORDER4,
     .together = true, .cols = cols4_32},
    {"gemv q4 f32 avx512 cols", 4, LB_GEMVQ_F32, 128, 16, 1, ORDER4,
     .together = true, .cols = cols4_16},
    {"gemv q2 f32 avx512 cols", 2, LB_GEMVQ_F32, 256, 0, 1, ORDER2,
     .together = true, .cols = cols2, .few = lb_gemvq_few2_avx512},
    {"gemv q2 f32 avx512 cols", 2, LB_GEMVQ_F32, 256, 16, 1, ORDER2,
     .together = true, .cols = cols2_16},
    {"gemv q1 f32 avx512 cols", 1, LB_GEMVQ_F32, 512, 0, 1, ORDER1,
     .together = true, .cols = cols1, .few = lb_gemvq_few1_avx512},
    {"gemv q1 f32 avx512 cols", 1, LB_GEMVQ_F32, 512, 32, 1, ORDER1,
     .together = true, .cols = cols1_32},
    {0},
};
#endif
