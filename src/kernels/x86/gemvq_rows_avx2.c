/* gemvq_rows_avx2.c - a vector times lines of codes: f32, AVX2 and FMA.
 *
 *   8 bits      a shuffle or a mask leaves one byte of each lane, at its top:
 *               2^24 times the code
 *   4 bits      four shuffles look up the bytes of 32 levels
 *   2 or 1 bit  vpermilps looks at the low two bits of a lane, so a shift is
 * all it takes to look up a code: no mask
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx2.h"

enum { R = LB_GEMVQ_ROWS };

AVX2 static void rows8(const lb_gemvq_rows *r, float *y)
{
    enum { FOLD = 32 }; /* groups: a lane sums 64 products */
    __m128 sum = _mm_setzero_ps();
    for (int64_t g = 0; g < r->groups;) {
        const int64_t end = r->groups - g < FOLD ? r->groups : g + FOLD;
        __m256 a[R][2];
        LB_UNROLL
        for (int i = 0; i < R; i++)
            a[i][0] = a[i][1] = _mm256_setzero_ps();
        for (; g < end; g++) {
            const float *x = (const float *)r->x + 32 * g;
            LB_UNROLL
            for (int i = 0; i < R; i++) {
                const __m256i v = load_group(r, i, g);
                LB_UNROLL
                for (int b = 0; b < 4; b++) {
                    const __m256 w = _mm256_cvtepi32_ps(top_byte(v, b));
                    a[i][b % 2] = _mm256_fmadd_ps(w, _mm256_load_ps(x + 8 * b),
                                                  a[i][b % 2]);
                }
            }
        }
        LB_UNROLL
        for (int i = 0; i < R; i++)
            a[i][0] = _mm256_add_ps(a[i][0], a[i][1]);
        sum = _mm_add_ps(sum, fold4(a[0][0], a[1][0], a[2][0], a[3][0]));
    }
    _mm_storeu_ps(y, sum);
}

/* ---- 4 bits ------------------------------------------------------------- */

/* The products of 64 codes; t[0]: with 16 of each 32 codes, t[1]: the rest. */
AVX2_INLINE void group4(const levels_f32 *l, __m256i v, const float *x,
                        __m256 *t)
{
    __m256 w[4];
    look_up_f32(l, low_half(v, l->low), w);
    t[0] = _mm256_mul_ps(w[0], _mm256_load_ps(x));
    t[1] = _mm256_mul_ps(w[2], _mm256_load_ps(x + 16));
    t[0] = _mm256_fmadd_ps(w[1], _mm256_load_ps(x + 8), t[0]);
    t[1] = _mm256_fmadd_ps(w[3], _mm256_load_ps(x + 24), t[1]);
    look_up_f32(l, high_half(v, l->low), w);
    t[0] = _mm256_fmadd_ps(w[0], _mm256_load_ps(x + 32), t[0]);
    t[1] = _mm256_fmadd_ps(w[2], _mm256_load_ps(x + 48), t[1]);
    t[0] = _mm256_fmadd_ps(w[1], _mm256_load_ps(x + 40), t[0]);
    t[1] = _mm256_fmadd_ps(w[3], _mm256_load_ps(x + 56), t[1]);
}

/* Groups [g, end) of line i, times their scales. */
AVX2_INLINE __m256 part4(const lb_gemvq_rows *r, int i, int64_t g, int64_t end,
                         int unit)
{
    const levels_f32 l = load_levels_f32(r->table);
    const uint8_t *codes = r->codes[i];
    const float *x = r->x, *scale = r->scale[i];
    __m256 sum = _mm256_setzero_ps();
    for (; g < end; g++) {
        __m256 t[2], s[2];
        group4(&l, load_codes(codes + 32 * g), x + 64 * g, t);
        spread_units(scale, g, unit, r->shift, s);
        if (unit > 16) {
            sum = _mm256_fmadd_ps(_mm256_add_ps(t[0], t[1]), s[0], sum);
        } else {
            sum = _mm256_fmadd_ps(t[0], s[0], sum);
            sum = _mm256_fmadd_ps(t[1], s[1], sum);
        }
    }
    return sum;
}

/* Lines take turns every few groups: tables fill the registers. */
AVX2_INLINE void all4(const lb_gemvq_rows *r, float *y, int unit)
{
    enum { PER = 8 };
    __m256 a[R];
    for (int i = 0; i < R; i++)
        a[i] = _mm256_setzero_ps();
    for (int64_t g = 0; g < r->groups; g += PER) {
        const int64_t end = r->groups - g < PER ? r->groups : g + PER;
        for (int i = 0; i < R; i++)
            a[i] = _mm256_add_ps(a[i], part4(r, i, g, end, unit));
    }
    _mm_storeu_ps(y, fold4(a[0], a[1], a[2], a[3]));
}

AVX2 static void rows4_64(const lb_gemvq_rows *r, float *y)
{
    all4(r, y, 64);
}
AVX2 static void rows4_32(const lb_gemvq_rows *r, float *y)
{
    all4(r, y, 32);
}
AVX2 static void rows4_16(const lb_gemvq_rows *r, float *y)
{
    all4(r, y, 16);
}

/* ---- 2 bits or 1 ------------------------------------------------------- */

/* Field f of lane d is slot 8*f + d. */
AVX2_INLINE void signs(const lb_gemvq_rows *r, float *y, int bits, bool scaled)
{
    const __m256 level =
        _mm256_broadcast_ps((const __m128 *)(const void *)r->table->level);
    const float *x = r->x;
    __m256 a[R], b[R];
    LB_UNROLL
    for (int i = 0; i < R; i++)
        a[i] = b[i] = _mm256_setzero_ps();
    for (int64_t g = 0; g < r->groups; g++) {
        __m256i v[R];
        LB_UNROLL
        for (int i = 0; i < R; i++) {
            v[i] = load_codes(r->codes[i] + 32 * g);
            if (scaled) b[i] = _mm256_setzero_ps();
        }
        for (int quarter = 0; quarter < 32 / bits / 8; quarter++, x += 64) {
            LB_UNROLL
            for (int f = 0; f < 8; f++) {
                const __m256 xf = _mm256_load_ps(x + 8 * f);
                LB_UNROLL
                for (int i = 0; i < R; i++) {
                    const __m256 w = _mm256_permutevar_ps(
                        level, _mm256_srli_epi32(v[i], bits * f));
                    if (f % 2 && !scaled)
                        a[i] = _mm256_fmadd_ps(w, xf, a[i]);
                    else
                        b[i] = _mm256_fmadd_ps(w, xf, b[i]);
                }
            }
            LB_UNROLL
            for (int i = 0; i < R; i++)
                v[i] = _mm256_srli_epi32(v[i], bits * 8);
        }
        if (scaled) {
            LB_UNROLL
            for (int i = 0; i < R; i++)
                a[i] = _mm256_fmadd_ps(
                    b[i], _mm256_loadu_ps(r->scale[i] + 8 * g), a[i]);
        }
    }
    if (!scaled) {
        LB_UNROLL
        for (int i = 0; i < R; i++)
            a[i] = _mm256_add_ps(a[i], b[i]);
    }
    _mm_storeu_ps(y, fold4(a[0], a[1], a[2], a[3]));
}

AVX2 static void rows2(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 2, false);
}
AVX2 static void rows2_scaled(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 2, true);
}
AVX2 static void rows1(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 1, false);
}
AVX2 static void rows1_scaled(const lb_gemvq_rows *r, float *y)
{
    signs(r, y, 1, true);
}

#define NF4_ORDER                                                              \
    {                                                                          \
        {4, 2, 4, 2},                                                          \
        {                                                                      \
            2, 32, 8, 1                                                        \
        }                                                                      \
    }

const lb_gemvq_kernel lb_gemvq_rows_avx2[] = {
    {"gemv q8 f32 avx2",
     8,
     LB_GEMVQ_F32,
     32,
     0,
     0x1p-24f,
     {{8, 4}, {4, 1}},
     .rows = rows8},
    {"gemv q4 f32 avx2", 4, LB_GEMVQ_F32, 64, 64, 1, NF4_ORDER,
     .rows = rows4_64},
    {"gemv q4 f32 avx2", 4, LB_GEMVQ_F32, 64, 32, 1, NF4_ORDER,
     .rows = rows4_32},
    {"gemv q4 f32 avx2", 4, LB_GEMVQ_F32, 64, 16, 1, NF4_ORDER,
     .rows = rows4_16},
    {"gemv q2 f32 avx2",
     2,
     LB_GEMVQ_F32,
     128,
     0,
     1,
     {{8, 16}, {16, 1}},
     .rows = rows2},
    {"gemv q2 f32 avx2",
     2,
     LB_GEMVQ_F32,
     128,
     16,
     1,
     {{8, 16}, {16, 1}},
     .rows = rows2_scaled},
    {"gemv q1 f32 avx2",
     1,
     LB_GEMVQ_F32,
     256,
     0,
     1,
     {{8, 32}, {32, 1}},
     .rows = rows1},
    {"gemv q1 f32 avx2",
     1,
     LB_GEMVQ_F32,
     256,
     32,
     1,
     {{8, 32}, {32, 1}},
     .rows = rows1_scaled},
    {0},
};
#endif
