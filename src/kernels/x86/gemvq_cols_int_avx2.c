/* gemvq_cols_int_avx2.c - lines of codes times a whole number each, AVX2.
 *
 * Two lines are interleaved byte by byte before they are decoded, so that a
 * column's codes of both stand beside each other, as vpmaddwd and vpmaddubsw
 * want them; x is a pair of numbers in every lane.
 *
 *   8 bits      64 lines: at most 64 * 32767 * 255 < 2^31
 *   4 bits      32 lines: at most 32 * 8191 * 8191 < 2^31
 *   2 or 1 bit  sums of 16 bits: a pair is at most 2 * 3 * 128, and 32 pairs
 *               are 24576
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx2.h"

enum { PAIRS = LB_GEMVQ_COLS / 2, FEW = LB_GEMVQ_FEW };

AVX2_INLINE __m256i interleave(__m256i a, __m256i b, bool second)
{
    return second ? _mm256_unpackhi_epi8(a, b) : _mm256_unpacklo_epi8(a, b);
}

/* ---- 8 bits ------------------------------------------------------------- */

/* Codes as 128 more than they are, so that zeros make them words. */
AVX2_INLINE __m256i load_raised(const uint8_t *codes)
{
    return _mm256_xor_si256(load_codes(codes), _mm256_set1_epi8(-128));
}

AVX2 static void cols8(const lb_gemvq_cols *given)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const __m256i zero = _mm256_setzero_si256();
    __m256i *sum = c->sum, x[PAIRS];
    LB_UNROLL
    for (int i = 0; i < PAIRS; i++)
        x[i] = _mm256_set1_epi32(*(const int32_t *)c->x[i]);
    for (int64_t g = 0; g < c->groups; g++, sum += 4) {
        __m256i t[4];
        LB_UNROLL
        for (int v = 0; v < 4; v++)
            t[v] = c->first ? zero : _mm256_load_si256(sum + v);
        LB_UNROLL
        for (int i = 0; i < PAIRS; i++) {
            const __m256i a = load_raised(c->codes[2 * i] + 32 * g);
            const __m256i b = load_raised(c->codes[2 * i + 1] + 32 * g);
            LB_UNROLL
            for (int v = 0; v < 4; v++) {
                const __m256i two = interleave(a, b, v / 2);
                t[v] = _mm256_add_epi32(
                    t[v],
                    _mm256_madd_epi16(interleave(two, zero, v % 2), x[i]));
                LB_KEEP(t[v]);
            }
        }
        LB_UNROLL
        for (int v = 0; v < 4; v++)
            _mm256_store_si256(sum + v, t[v]);
    }
}

/* Half of a group, of all pairs of lines and rows of x: x[FEW*i + r]. */
AVX2_INLINE void add_half8(const int rows, const uint8_t *const *codes,
                           const int32_t *x, int64_t at, bool second,
                           bool first, __m256i *sum, int64_t apart)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i t[FEW][2];
    LB_KEEP_POINTER(x); /* one, not one for each number */
    LB_UNROLL
    for (int r = 0; r < rows; r++)
        LB_UNROLL
    for (int v = 0; v < 2; v++)
        t[r][v] = first ? zero : _mm256_load_si256(sum + r * apart + v);
    LB_UNROLL
    for (int i = 0; i < PAIRS; i++) {
        const __m256i two = _mm256_xor_si256(
            interleave(load_codes(codes[2 * i] + at),
                       load_codes(codes[2 * i + 1] + at), second),
            _mm256_set1_epi8(-128));
        const __m256i w[2] = {interleave(two, zero, false),
                              interleave(two, zero, true)};
        LB_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m256i xi = _mm256_set1_epi32(x[FEW * i + r]);
            LB_UNROLL
            for (int v = 0; v < 2; v++) {
                t[r][v] =
                    _mm256_add_epi32(t[r][v], _mm256_madd_epi16(w[v], xi));
                LB_KEEP(t[r][v]);
            }
        }
    }
    LB_UNROLL
    for (int r = 0; r < rows; r++)
        LB_UNROLL
    for (int v = 0; v < 2; v++)
        _mm256_store_si256(sum + r * apart + v, t[r][v]);
}

AVX2_INLINE void few8_rows(const int rows, const lb_gemvq_cols *c)
{
    const uint8_t *codes[LB_GEMVQ_COLS];
    int32_t x[PAIRS * FEW];
    const int64_t groups = c->groups, apart = c->sum_apart / 8;
    const bool first = c->first;
    __m256i *sum = c->sum;
    for (int i = 0; i < LB_GEMVQ_COLS; i++)
        codes[i] = c->codes[i];
    for (int i = 0; i < PAIRS; i++)
        for (int r = 0; r < rows; r++)
            x[FEW * i + r] = ((const int32_t *)c->x[i])[r * c->x_apart];
    for (int64_t g = 0; g < groups; g++, sum += 4) {
        add_half8(rows, codes, x, 32 * g, false, first, sum, apart);
        add_half8(rows, codes, x, 32 * g, true, first, sum + 2, apart);
    }
}

AVX2 static void few8(const lb_gemvq_cols *c, int rows)
{
    if (rows == 2)
        few8_rows(2, c);
    else if (rows == 3)
        few8_rows(3, c);
    else
        few8_rows(4, c);
}

AVX2 static void flush8(const lb_gemvq_flush *f)
{
    const __m256i *sum = f->sum;
    const __m256 unit = _mm256_broadcast_ss(f->x_scale);
    const __m256i raised = _mm256_set1_epi32(128 * f->x_sum);
    float *y = f->y;
    for (int64_t v = 0; v < 4 * f->groups; v++, y += 8) {
        const __m256 t = _mm256_cvtepi32_ps(
            _mm256_sub_epi32(_mm256_load_si256(sum++), raised));
        _mm256_store_ps(y, _mm256_fmadd_ps(t, unit, _mm256_load_ps(y)));
    }
}

/* ---- 4 bits ------------------------------------------------------------- */

/* Eight bytes of each 16: 32 columns, in sums t. */
AVX2_INLINE void half_group4(const lb_gemvq_cols *c, __m256i half0,
                             __m256i half1, __m256i low, int64_t g, bool second,
                             __m256i *t)
{
    LB_UNROLL
    for (int i = 0; i < PAIRS; i++) {
        const __m256i v =
            interleave(load_codes(c->codes[2 * i] + 32 * g),
                       load_codes(c->codes[2 * i + 1] + 32 * g), second);
        const __m256i x =
            _mm256_set1_epi32(((const int32_t *)c->x[i])[g >> c->shift]);
        LB_UNROLL
        for (int h = 0; h < 2; h++) {
            const __m256i code = h ? high_half(v, low) : low_half(v, low);
            const __m256i b0 = _mm256_shuffle_epi8(half0, code);
            const __m256i b1 = _mm256_shuffle_epi8(half1, code);
            const __m256i w0 = _mm256_unpacklo_epi8(b0, b1);
            const __m256i w1 = _mm256_unpackhi_epi8(b0, b1);
            t[2 * h] = _mm256_add_epi32(t[2 * h], _mm256_madd_epi16(w0, x));
            t[2 * h + 1] =
                _mm256_add_epi32(t[2 * h + 1], _mm256_madd_epi16(w1, x));
        }
    }
}

AVX2 static void cols4(const lb_gemvq_cols *given)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const __m256i half0 = load_twice(c->table->half[0]);
    const __m256i half1 = load_twice(c->table->half[1]);
    const __m256i low = _mm256_set1_epi8(15);
    __m256i *sum = c->sum;
    for (int64_t g = 0; g < c->groups; g++)
        LB_UNROLL
    for (int second = 0; second < 2; second++, sum += 4) {
        __m256i t[4];
        LB_UNROLL
        for (int v = 0; v < 4; v++)
            t[v] =
                c->first ? _mm256_setzero_si256() : _mm256_load_si256(sum + v);
        half_group4(c, half0, half1, low, g, second, t);
        LB_UNROLL
        for (int v = 0; v < 4; v++)
            _mm256_store_si256(sum + v, t[v]);
    }
}

AVX2 static void flush4(const lb_gemvq_flush *f)
{
    const __m256i *sum = f->sum;
    float *y = f->y;
    for (int64_t g = 0; g < f->groups; g++) {
        const __m256 unit = _mm256_broadcast_ss(f->x_scale + (g >> f->shift));
        for (int v = 0; v < 8; v++, y += 8) {
            const __m256 t = _mm256_cvtepi32_ps(_mm256_load_si256(sum++));
            _mm256_store_ps(y, _mm256_fmadd_ps(t, unit, _mm256_load_ps(y)));
        }
    }
}

/* ---- 2 bits or 1 ------------------------------------------------------- */

/* Sums of high and of low stand in turns, 16 columns each: eight bytes of each
 * 16, one field of each. */
AVX2_INLINE void signs(const lb_gemvq_cols *given, int bits, bool two)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const int fields = 8 / bits;
    const __m256i mask = _mm256_set1_epi8((char)((1 << bits) - 1));
    __m256i *sum = c->sum;
    __m256i high[PAIRS], low[PAIRS];
    LB_UNROLL
    for (int i = 0; i < PAIRS; i++) {
        high[i] = _mm256_set1_epi16(*(const int16_t *)c->x[i]);
        low[i] = _mm256_set1_epi16(*(const int16_t *)c->x[i + PAIRS]);
    }
    for (int64_t g = 0; g < c->groups; g++)
        for (int second = 0; second < 2; second++) {
            __m256i v[PAIRS];
            LB_UNROLL
            for (int i = 0; i < PAIRS; i++)
                v[i] = interleave(load_codes(c->codes[2 * i] + 32 * g),
                                  load_codes(c->codes[2 * i + 1] + 32 * g),
                                  second);
            LB_UNROLL
            for (int f = 0; f < fields; f++, sum += two ? 2 : 1) {
                __m256i h, l = _mm256_setzero_si256();
                h = c->first ? l : _mm256_load_si256(sum);
                if (two && !c->first) l = _mm256_load_si256(sum + 1);
                LB_UNROLL
                for (int i = 0; i < PAIRS; i++) {
                    const __m256i code = _mm256_and_si256(
                        _mm256_srli_epi16(v[i], bits * f), mask);
                    h = _mm256_add_epi16(h,
                                         _mm256_maddubs_epi16(code, high[i]));
                    if (two)
                        l = _mm256_add_epi16(
                            l, _mm256_maddubs_epi16(code, low[i]));
                }
                _mm256_store_si256(sum, h);
                if (two) _mm256_store_si256(sum + 1, l);
            }
        }
}

/* Vectors of 16 columns, the low four of each half first. */
AVX2_INLINE void flush(const lb_gemvq_flush *f, int bits, bool two)
{
    const __m256i *sum = f->sum;
    const __m256i both = _mm256_set1_epi32(two ? 1 << 16 | 256 : 1);
    const __m256i zero = _mm256_setzero_si256();
    const __m256i step = _mm256_set1_epi32(f->table->step);
    const __m256i least = _mm256_set1_epi32(f->table->least * f->x_sum);
    const __m256 unit = _mm256_broadcast_ss(f->x_scale);
    float *y = f->y;
    for (int64_t v = 0; v < f->groups * (16 / bits); v++, y += 16) {
        const __m256i h = _mm256_load_si256(sum++);
        const __m256i l = two ? _mm256_load_si256(sum++) : zero;
        __m256i t0 = _mm256_madd_epi16(_mm256_unpacklo_epi16(h, l), both);
        __m256i t1 = _mm256_madd_epi16(_mm256_unpackhi_epi16(h, l), both);
        t0 = _mm256_add_epi32(_mm256_mullo_epi32(t0, step), least);
        t1 = _mm256_add_epi32(_mm256_mullo_epi32(t1, step), least);
        const __m256 f0 = _mm256_mul_ps(_mm256_cvtepi32_ps(t0), unit);
        const __m256 f1 = _mm256_mul_ps(_mm256_cvtepi32_ps(t1), unit);
        _mm256_store_ps(y, _mm256_add_ps(_mm256_load_ps(y), f0));
        _mm256_store_ps(y + 8, _mm256_add_ps(_mm256_load_ps(y + 8), f1));
    }
}

LB_GEMVQ_COLS_OF_BITS(AVX2, signs)

const lb_gemvq_kernel lb_gemvq_cols_int_avx2[] = {
    {"gemv q8 i16 avx2 cols",
     8,
     LB_GEMVQ_I16,
     32,
     0,
     1,
     {{4, 2, 4}, {1, 16, 4}},
     .cols = cols8,
     .few = few8,
     .flush = flush8,
     .sum_size = 4},
    {"gemv q4 i16 avx2 cols",
     4,
     LB_GEMVQ_I16,
     64,
     64,
     1,
     {{4, 2, 2, 2, 2}, {2, 32, 8, 1, 16}},
     .cols = cols4,
     .flush = flush4,
     .sum_size = 4},
    {"gemv q2 i8x2 avx2 cols",
     2,
     LB_GEMVQ_I8X2,
     128,
     0,
     1,
     {{4, 2, 2, 4, 2}, {4, 64, 16, 1, 32}},
     .cols = cols2_i8x2,
     .flush = flush2_i8x2,
     .sum_size = 4},
    {"gemv q1 i8x2 avx2 cols",
     1,
     LB_GEMVQ_I8X2,
     256,
     0,
     1,
     {{4, 2, 2, 8, 2}, {8, 128, 32, 1, 64}},
     .cols = cols1_i8x2,
     .flush = flush1_i8x2,
     .sum_size = 4},
    {"gemv q2 i8 avx2 cols",
     2,
     LB_GEMVQ_I8,
     128,
     0,
     1,
     {{4, 2, 2, 4, 2}, {4, 64, 16, 1, 32}},
     .cols = cols2_i8,
     .flush = flush2_i8,
     .sum_size = 2},
    {"gemv q1 i8 avx2 cols",
     1,
     LB_GEMVQ_I8,
     256,
     0,
     1,
     {{4, 2, 2, 8, 2}, {8, 128, 32, 1, 64}},
     .cols = cols1_i8,
     .flush = flush1_i8,
     .sum_size = 2},
    {0},
};
#endif
