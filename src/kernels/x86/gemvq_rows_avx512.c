/* gemvq_rows_avx512.c - a vector times lines of codes with AVX-512 and VNNI.
 *
 *   8 bits      widened to f32, or to 16 bits
 *   f32         vpermps looks up 16 levels by the low four bits of a lane;
 *               levels of fewer bits are repeated
 *   4 bits      vpermw does the same for levels of 14 bits; sums as in
 *               gemvq_rows_int_avx2.c
 *   2 or 1 bit  codes stay bytes; with VNNI products are summed in 32 bits at
 *               once, else as in gemvq_rows_int_avx2.c: 1024 codes are 16 pairs
 *               in each lane of 16 bits
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx512.h"

enum { R = LB_GEMVQ_ROWS };

/* ---- f32 ---------------------------------------------------------------- */

/* Field f of lane d is slot 16*f + d. scales: of a group; 0: none. */
AVX512_INLINE void all_f32(const lb_gemvq_rows *r, float *y, int bits,
                           int scales)
{
    const __m512 level = _mm512_loadu_ps(r->table->level);
    const float *x = r->x;
    __m512 a[R];
    for (int i = 0; i < R; i++)
        a[i] = _mm512_setzero_ps();
    for (int64_t g = 0; g < r->groups; g++, x += 512 / bits) {
        LB_UNROLL
        for (int i = 0; i < R; i++) {
            __m512i v = load_codes(r->codes[i] + 64 * g, r->ahead);
            __m512 t = _mm512_setzero_ps(), u = t;
            for (int f = 0; f < 32 / bits; f += 8) {
                LB_UNROLL
                for (int e = 0; e < 8; e += 2) {
                    const __m512i v1 =
                        _mm512_srli_epi32(v, (uint8_t)(bits * e));
                    const __m512i v2 =
                        _mm512_srli_epi32(v, (uint8_t)(bits * (e + 1)));
                    t = _mm512_fmadd_ps(_mm512_permutexvar_ps(v1, level),
                                        _mm512_load_ps(x + 16 * (f + e)), t);
                    u = _mm512_fmadd_ps(_mm512_permutexvar_ps(v2, level),
                                        _mm512_load_ps(x + 16 * (f + e + 1)),
                                        u);
                }
                if (bits < 4) v = _mm512_srli_epi32(v, (uint8_t)(bits * 8));
            }
            t = _mm512_add_ps(t, u);
            const int64_t at = scales == 1 ? g >> r->shift : g * scales;
            if (scales)
                a[i] = _mm512_fmadd_ps(
                    t, spread_scales(r->scale[i] + at, scales), a[i]);
            else
                a[i] = _mm512_add_ps(a[i], t);
        }
    }
    _mm_storeu_ps(y, fold_four(a));
}

AVX512 static void rows4_128(const lb_gemvq_rows *r, float *y)
{
    all_f32(r, y, 4, 1);
}
AVX512 static void rows4_64(const lb_gemvq_rows *r, float *y)
{
    all_f32(r, y, 4, 2);
}
AVX512 static void rows4_32(const lb_gemvq_rows *r, float *y)
{
    all_f32(r, y, 4, 4);
}
AVX512 static void rows4_16(const lb_gemvq_rows *r, float *y)
{
    all_f32(r, y, 4, 8);
}
AVX512 static void rows2(const lb_gemvq_rows *r, float *y)
{
    all_f32(r, y, 2, 0);
}
AVX512 static void rows2_16(const lb_gemvq_rows *r, float *y)
{
    all_f32(r, y, 2, 16);
}
AVX512 static void rows1(const lb_gemvq_rows *r, float *y)
{
    all_f32(r, y, 1, 0);
}
AVX512 static void rows1_32(const lb_gemvq_rows *r, float *y)
{
    all_f32(r, y, 1, 16);
}

/* Codes of 8 bits, 16 at a time, in their order. FOLD groups: a lane sums 64
 * products. */
AVX512 static void rows8(const lb_gemvq_rows *r, float *y)
{
    enum { FOLD = 16 };
    __m128 sum = _mm_setzero_ps();
    for (int64_t g = 0; g < r->groups;) {
        const int64_t end = r->groups - g < FOLD ? r->groups : g + FOLD;
        __m512 a[R];
        LB_UNROLL
        for (int i = 0; i < R; i++)
            a[i] = _mm512_setzero_ps();
        for (; g < end; g++) {
            const float *x = (const float *)r->x + 64 * g;
            LB_UNROLL
            for (int i = 0; i < R; i++) {
                const uint8_t *codes = r->codes[i] + 64 * g;
                _mm_prefetch((const char *)codes + r->ahead, _MM_HINT_T0);
                LB_UNROLL
                for (int e = 0; e < 4; e++)
                    a[i] = _mm512_fmadd_ps(
                        to_f32(_mm512_cvtepi8_epi32(load_16(codes + 16 * e))),
                        _mm512_load_ps(x + 16 * e), a[i]);
            }
        }
        sum = _mm_add_ps(sum, fold_four(a));
    }
    _mm_storeu_ps(y, sum);
}

/* ---- 8 bits in whole numbers -------------------------------------------- */

AVX512_INLINE __m512i load_x(const void *x, int i)
{
    return _mm512_load_si512((const char *)x + 64 * i);
}

/* A lane sums a panel's 32 products: 32 * 128 * 32767 < 2^31. */
AVX512_INLINE void all8_i16(const lb_gemvq_rows *r, float *y, bool vnni)
{
    enum { PER = LB_GEMVQ_I16_PANEL / 64 };
    __m512 a[R];
    LB_UNROLL
    for (int i = 0; i < R; i++)
        a[i] = _mm512_setzero_ps();
    for (int64_t g = 0, p = 0; g < r->groups; p++) {
        const int64_t end = r->groups - g < PER ? r->groups : g + PER;
        const __m512 x_scale = _mm512_set1_ps(r->x_scale[p]);
        __m512i t[R];
        LB_UNROLL
        for (int i = 0; i < R; i++)
            t[i] = _mm512_setzero_si512();
        for (; g < end; g++) {
            const int16_t *x = (const int16_t *)r->x + 64 * g;
            const __m512i x0 = load_x(x, 0), x1 = load_x(x, 1);
            LB_UNROLL
            for (int i = 0; i < R; i++) {
                const uint8_t *codes = r->codes[i] + 64 * g;
                _mm_prefetch((const char *)codes + r->ahead, _MM_HINT_T0);
                t[i] = add_products(t[i], _mm512_cvtepi8_epi16(load_32(codes)),
                                    x0, vnni);
                t[i] = add_products(
                    t[i], _mm512_cvtepi8_epi16(load_32(codes + 32)), x1, vnni);
            }
        }
        LB_UNROLL
        for (int i = 0; i < R; i++)
            a[i] = _mm512_fmadd_ps(to_f32(t[i]), x_scale, a[i]);
    }
    _mm_storeu_ps(y, fold_four(a));
}

AVX512 static void rows8_i16(const lb_gemvq_rows *r, float *y)
{
    all8_i16(r, y, false);
}
AVX512 static void rows8_i16_vnni(const lb_gemvq_rows *r, float *y)
{
    all8_i16(r, y, true);
}

/* ---- 4 bits in whole numbers -------------------------------------------- */

AVX512_INLINE void all_i16(const lb_gemvq_rows *r, float *y, int scales,
                           bool vnni)
{
    enum { PER = LB_GEMVQ_I16_PANEL / 128 };
    const __m512i level = load_halves(r->table);
    __m512 a[R], b[R];
    for (int i = 0; i < R; i++)
        a[i] = b[i] = _mm512_setzero_ps();
    for (int64_t g = 0; g < r->groups; g++) {
        const int16_t *x = (const int16_t *)r->x + 128 * g;
        const bool ends = (g + 1) % PER == 0 || g + 1 == r->groups;
        const __m512 x_scale = _mm512_set1_ps(r->x_scale[g / PER]);
        LB_UNROLL
        for (int i = 0; i < R; i++) {
            const __m512i v = load_codes(r->codes[i] + 64 * g, r->ahead);
            __m512i t = _mm512_setzero_si512();
            LB_UNROLL
            for (int f = 0; f < 4; f++) {
                const __m512i w = _mm512_permutexvar_epi16(
                    _mm512_srli_epi16(v, (uint8_t)(4 * f)), level);
                t = add_products(t, w, load_x(x, f), vnni);
            }
            const int64_t at = scales == 1 ? g >> r->shift : g * scales;
            b[i] = _mm512_fmadd_ps(
                to_f32(t), spread_scales(r->scale[i] + at, scales), b[i]);
            if (!ends) continue;
            a[i] = _mm512_fmadd_ps(b[i], x_scale, a[i]);
            b[i] = _mm512_setzero_ps();
        }
    }
    _mm_storeu_ps(y,
                  _mm_mul_ps(fold_four(a), _mm_set1_ps(r->table->half_unit)));
}

AVX512 static void rows4_i16_128(const lb_gemvq_rows *r, float *y)
{
    all_i16(r, y, 1, false);
}
AVX512 static void rows4_i16_64(const lb_gemvq_rows *r, float *y)
{
    all_i16(r, y, 2, false);
}
AVX512 static void rows4_i16_32(const lb_gemvq_rows *r, float *y)
{
    all_i16(r, y, 4, false);
}
AVX512 static void rows4_i16_16(const lb_gemvq_rows *r, float *y)
{
    all_i16(r, y, 8, false);
}
AVX512 static void rows4_i16_128_vnni(const lb_gemvq_rows *r, float *y)
{
    all_i16(r, y, 1, true);
}
AVX512 static void rows4_i16_64_vnni(const lb_gemvq_rows *r, float *y)
{
    all_i16(r, y, 2, true);
}
AVX512 static void rows4_i16_32_vnni(const lb_gemvq_rows *r, float *y)
{
    all_i16(r, y, 4, true);
}
AVX512 static void rows4_i16_16_vnni(const lb_gemvq_rows *r, float *y)
{
    all_i16(r, y, 8, true);
}

/* ---- 2 bits or 1 in whole numbers --------------------------------------- */

/* Groups [g, end) of line i, without VNNI. */
AVX512_INLINE __m512i panel_i8(const lb_gemvq_rows *r, int i, int64_t g,
                               int64_t end, int bits, bool two)
{
    const int fields = 8 / bits, vectors = fields * (two ? 2 : 1);
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    const char *x = (const char *)r->x + 64 * g * vectors;
    __m512i high = _mm512_setzero_si512(), low = high;
    for (; g < end; g++, x += 64 * vectors) {
        const __m512i v = load_codes(r->codes[i] + 64 * g, r->ahead);
        LB_UNROLL
        for (int f = 0; f < fields; f++) {
            const __m512i c = _mm512_and_si512(
                _mm512_srli_epi16(v, (uint8_t)(bits * f)), mask);
            high = _mm512_add_epi16(
                high, _mm512_maddubs_epi16(c, load_x(x, two ? 2 * f : f)));
            if (two)
                low = _mm512_add_epi16(
                    low, _mm512_maddubs_epi16(c, load_x(x, 2 * f + 1)));
        }
    }
    high = madd_i16(high, _mm512_set1_epi16(two ? 256 : 1));
    low = madd_i16(low, _mm512_set1_epi16(1));
    return two ? _mm512_add_epi32(high, low) : high;
}

/* Groups [g, end) of all lines, with VNNI: one after the other, each would wait
 * for its own sums. */
VNNI LB_INLINE void panel_i8_vnni(const lb_gemvq_rows *r, int64_t g,
                                  int64_t end, int bits, bool two, __m512i *sum)
{
    const int fields = 8 / bits, vectors = fields * (two ? 2 : 1);
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    const char *x = (const char *)r->x + 64 * g * vectors;
    __m512i high[R], low[R];
    LB_UNROLL
    for (int i = 0; i < R; i++)
        high[i] = low[i] = _mm512_setzero_si512();
    for (; g < end; g++, x += 64 * vectors) {
        __m512i v[R];
        LB_UNROLL
        for (int i = 0; i < R; i++)
            v[i] = load_codes(r->codes[i] + 64 * g, r->ahead);
        LB_UNROLL
        for (int f = 0; f < fields; f++) {
            const __m512i x_high = load_x(x, two ? 2 * f : f);
            const __m512i x_low = two ? load_x(x, 2 * f + 1) : x_high;
            LB_UNROLL
            for (int i = 0; i < R; i++) {
                const __m512i c = _mm512_and_si512(
                    _mm512_srli_epi16(v[i], (uint8_t)(bits * f)), mask);
                high[i] = _mm512_dpbusd_epi32(high[i], c, x_high);
                if (two) low[i] = _mm512_dpbusd_epi32(low[i], c, x_low);
            }
        }
    }
    LB_UNROLL
    for (int i = 0; i < R; i++)
        sum[i] = two ? _mm512_add_epi32(_mm512_slli_epi32(high[i], 8), low[i])
                     : high[i];
}

/* A panel's sums of four lines onto y. */
AVX512_INLINE __m128 add_panel(const lb_gemvq_rows *r, const __m512i *t,
                               int64_t p, __m128 y)
{
    __m128i whole =
        _mm_mullo_epi32(fold_four_i32(t), _mm_set1_epi32(r->table->step));
    whole = _mm_add_epi32(whole, _mm_set1_epi32(r->table->least * r->x_sum[p]));
    return _mm_add_ps(
        y, _mm_mul_ps(_mm_cvtepi32_ps(whole), _mm_set1_ps(r->x_scale[p])));
}

AVX512_INLINE void all_i8(const lb_gemvq_rows *r, float *y, int bits, bool two)
{
    const int64_t per = LB_GEMVQ_I8_PANEL / (512 / bits);
    __m128 sum = _mm_setzero_ps();
    for (int64_t g = 0, p = 0; g < r->groups; g += per, p++) {
        const int64_t end = r->groups - g < per ? r->groups : g + per;
        __m512i t[R];
        for (int i = 0; i < R; i++)
            t[i] = panel_i8(r, i, g, end, bits, two);
        sum = add_panel(r, t, p, sum);
    }
    _mm_storeu_ps(y, sum);
}

VNNI LB_INLINE void all_i8_vnni(const lb_gemvq_rows *r, float *y, int bits,
                                bool two)
{
    const int64_t per = LB_GEMVQ_I8_PANEL / (512 / bits);
    __m128 sum = _mm_setzero_ps();
    for (int64_t g = 0, p = 0; g < r->groups; g += per, p++) {
        const int64_t end = r->groups - g < per ? r->groups : g + per;
        __m512i t[R];
        panel_i8_vnni(r, g, end, bits, two, t);
        sum = add_panel(r, t, p, sum);
    }
    _mm_storeu_ps(y, sum);
}

AVX512 static void rows2_i8x2(const lb_gemvq_rows *r, float *y)
{
    all_i8(r, y, 2, true);
}
AVX512 static void rows1_i8x2(const lb_gemvq_rows *r, float *y)
{
    all_i8(r, y, 1, true);
}
AVX512 static void rows2_i8(const lb_gemvq_rows *r, float *y)
{
    all_i8(r, y, 2, false);
}
AVX512 static void rows1_i8(const lb_gemvq_rows *r, float *y)
{
    all_i8(r, y, 1, false);
}
VNNI static void rows2_i8x2_vnni(const lb_gemvq_rows *r, float *y)
{
    all_i8_vnni(r, y, 2, true);
}
VNNI static void rows1_i8x2_vnni(const lb_gemvq_rows *r, float *y)
{
    all_i8_vnni(r, y, 1, true);
}
VNNI static void rows2_i8_vnni(const lb_gemvq_rows *r, float *y)
{
    all_i8_vnni(r, y, 2, false);
}
VNNI static void rows1_i8_vnni(const lb_gemvq_rows *r, float *y)
{
    all_i8_vnni(r, y, 1, false);
}

#define ORDER4_I16                                                             \
    {                                                                          \
        {32, 4},                                                               \
        {                                                                      \
            4, 1                                                               \
        }                                                                      \
    }
#define ORDER2_I8                                                              \
    {                                                                          \
        {64, 4},                                                               \
        {                                                                      \
            4, 1                                                               \
        }                                                                      \
    }
#define ORDER1_I8                                                              \
    {                                                                          \
        {64, 8},                                                               \
        {                                                                      \
            8, 1                                                               \
        }                                                                      \
    }

const lb_gemvq_kernel lb_gemvq_rows_avx512[] = {
    {"gemv q8 f32 avx512", 8, LB_GEMVQ_F32, 64, 0, 1, ORDER8, .rows = rows8},
    {"gemv q4 f32 avx512", 4, LB_GEMVQ_F32, 128, 128, 1, ORDER4,
     .rows = rows4_128},
    {"gemv q4 f32 avx512", 4, LB_GEMVQ_F32, 128, 64, 1, ORDER4,
     .rows = rows4_64},
    {"gemv q4 f32 avx512", 4, LB_GEMVQ_F32, 128, 32, 1, ORDER4,
     .rows = rows4_32},
    {"gemv q4 f32 avx512", 4, LB_GEMVQ_F32, 128, 16, 1, ORDER4,
     .rows = rows4_16},
    {"gemv q2 f32 avx512", 2, LB_GEMVQ_F32, 256, 0, 1, ORDER2, .rows = rows2},
    {"gemv q2 f32 avx512", 2, LB_GEMVQ_F32, 256, 16, 1, ORDER2,
     .rows = rows2_16},
    {"gemv q1 f32 avx512", 1, LB_GEMVQ_F32, 512, 0, 1, ORDER1, .rows = rows1},
    {"gemv q1 f32 avx512", 1, LB_GEMVQ_F32, 512, 32, 1, ORDER1,
     .rows = rows1_32},
    {"gemv q8 i16 avx512", 8, LB_GEMVQ_I16, 64, 0, 1, ORDER8,
     .rows = rows8_i16},
    {"gemv q4 i16 avx512", 4, LB_GEMVQ_I16, 128, 128, 1, ORDER4_I16,
     .rows = rows4_i16_128},
    {"gemv q4 i16 avx512", 4, LB_GEMVQ_I16, 128, 64, 1, ORDER4_I16,
     .rows = rows4_i16_64},
    {"gemv q4 i16 avx512", 4, LB_GEMVQ_I16, 128, 32, 1, ORDER4_I16,
     .rows = rows4_i16_32},
    {"gemv q4 i16 avx512", 4, LB_GEMVQ_I16, 128, 16, 1, ORDER4_I16,
     .rows = rows4_i16_16},
    {"gemv q2 i8x2 avx512", 2, LB_GEMVQ_I8X2, 256, 0, 1, ORDER2_I8,
     .rows = rows2_i8x2},
    {"gemv q1 i8x2 avx512", 1, LB_GEMVQ_I8X2, 512, 0, 1, ORDER1_I8,
     .rows = rows1_i8x2},
    {"gemv q2 i8 avx512", 2, LB_GEMVQ_I8, 256, 0, 1, ORDER2_I8,
     .rows = rows2_i8},
    {"gemv q1 i8 avx512", 1, LB_GEMVQ_I8, 512, 0, 1, ORDER1_I8,
     .rows = rows1_i8},
    {0},
};

const lb_gemvq_kernel lb_gemvq_rows_vnni[] = {
    {"gemv q8 i16 avx512vnni", 8, LB_GEMVQ_I16, 64, 0, 1, ORDER8,
     .rows = rows8_i16_vnni},
    {"gemv q4 i16 avx512vnni", 4, LB_GEMVQ_I16, 128, 128, 1, ORDER4_I16,
     .rows = rows4_i16_128_vnni},
    {"gemv q4 i16 avx512vnni", 4, LB_GEMVQ_I16, 128, 64, 1, ORDER4_I16,
     .rows = rows4_i16_64_vnni},
    {"gemv q4 i16 avx512vnni", 4, LB_GEMVQ_I16, 128, 32, 1, ORDER4_I16,
     .rows = rows4_i16_32_vnni},
    {"gemv q4 i16 avx512vnni", 4, LB_GEMVQ_I16, 128, 16, 1, ORDER4_I16,
     .rows = rows4_i16_16_vnni},
    {"gemv q2 i8x2 avx512vnni", 2, LB_GEMVQ_I8X2, 256, 0, 1, ORDER2_I8,
     .rows = rows2_i8x2_vnni},
    {"gemv q1 i8x2 avx512vnni", 1, LB_GEMVQ_I8X2, 512, 0, 1, ORDER1_I8,
     .rows = rows1_i8x2_vnni},
    {"gemv q2 i8 avx512vnni", 2, LB_GEMVQ_I8, 256, 0, 1, ORDER2_I8,
     .rows = rows2_i8_vnni},
    {"gemv q1 i8 avx512vnni", 1, LB_GEMVQ_I8, 512, 0, 1, ORDER1_I8,
     .rows = rows1_i8_vnni},
    {0},
};
#endif
