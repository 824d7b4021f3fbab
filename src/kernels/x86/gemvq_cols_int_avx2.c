/* gemvq_cols_int_avx2.c - lines of codes times a whole number each, AVX2.
 *
 * Two lines are interleaved before they are decoded, so that a column's codes
 * of both stand beside each other, as vpmaddwd wants them; x is a pair of
 * numbers in every lane. Bytes of codes of 8 bits stay two and two.
 *
 *   8 bits   256 lines: at most 256 * 32767 * 255 < 2^31
 *   4 bits   32 lines: at most 32 * 8191 * 8191 < 2^31
 *
 * Of 2 bits and 1: gemvq_cols_bits_avx2.c.
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx2.h"

enum { PAIRS = LB_GEMVQ_COLS / 2 };

AVX2_INLINE void add_products(__m256i *sum, __m256i w, __m256i x)
{
    const __m256i t = _mm256_madd_epi16(w, x);
    LB_ADD_32(*sum, t);
}

/* ---- 8 bits ------------------------------------------------------------- */

/* Two lines are interleaved by words, so a number of 16 bits is two columns of
 * a line: 256 * odd + even, of which shifting leaves odd. Even is 128 more than
 * it was, so that it has no sign. What is added up are
 *
 *   both = sum of x * (256 * odd + even)     odd = sum of x * odd
 *
 * modulo 2^32, and both - 256 * odd is the sum of x * even: no byte is widened.
 * That sum is less than 256 * 32767 * 255 < 2^31. */
typedef struct {
    __m256i a, b;
} lines;

/* What was loaded is kept, and not loaded once more for its second half. */
AVX2_INLINE lines load_lines(const uint8_t *a, const uint8_t *b)
{
    const __m256i raise = _mm256_set1_epi16(128);
    lines v = {_mm256_xor_si256(load_codes(a), raise),
               _mm256_xor_si256(load_codes(b), raise)};
    LB_KEEP(v.a);
    LB_KEEP(v.b);
    return v;
}

AVX2_INLINE __m256i two_columns(lines v, bool second)
{
    return second ? _mm256_unpackhi_epi16(v.a, v.b)
                  : _mm256_unpacklo_epi16(v.a, v.b);
}

AVX2_INLINE void add_two(__m256i two, __m256i x, __m256i *both, __m256i *odd)
{
    add_products(both, two, x);
    add_products(odd, _mm256_srai_epi16(two, 8), x);
}

/* 64 bytes of a line at a time: eight lines that lie a power of 2 apart are all
 * that L1 keeps. */
AVX2 static void cols8(const lb_gemvq_cols *c)
{
    const uint8_t *codes[LB_GEMVQ_COLS];
    int32_t numbers[PAIRS];
    const int32_t *x = numbers;
    const int64_t groups = c->groups;
    const bool first = c->first;
    __m256i *sum = c->sum;
    for (int i = 0; i < LB_GEMVQ_COLS; i++)
        codes[i] = c->codes[i];
    for (int i = 0; i < PAIRS; i++)
        numbers[i] = *(const int32_t *)c->x[i];
    for (int64_t g = 0; g < groups; g++, sum += 8) {
        __m256i t[8];
        LB_KEEP_POINTER(x); /* numbers are spread as they are loaded */
        LB_UNROLL
        for (int v = 0; v < 8; v++)
            t[v] = first ? _mm256_setzero_si256() : _mm256_load_si256(sum + v);
        LB_UNROLL
        for (int i = 0; i < PAIRS; i++) {
            const uint8_t *const a = codes[2 * i] + 64 * g;
            const uint8_t *const b = codes[2 * i + 1] + 64 * g;
            const __m256i xi = _mm256_set1_epi32(x[i]);
            LB_UNROLL
            for (int v = 0; v < 8; v += 4) {
                const lines two = load_lines(a + 8 * v, b + 8 * v);
                add_two(two_columns(two, false), xi, &t[v], &t[v + 1]);
                add_two(two_columns(two, true), xi, &t[v + 2], &t[v + 3]);
            }
        }
        LB_UNROLL
        for (int v = 0; v < 8; v++)
            _mm256_store_si256(sum + v, t[v]);
    }
}

/* Two rows of x, whose sums of 32 bytes are eight registers. */
AVX2 static void two8(const lb_gemvq_cols *c, int rows)
{
    const uint8_t *codes[LB_GEMVQ_COLS];
    int32_t numbers[2 * PAIRS];
    const int32_t *x = numbers;
    const int64_t bytes = 64 * c->groups, apart = c->sum_apart / 8;
    const bool first = c->first;
    __m256i *sum = c->sum;
    (void)rows;
    for (int i = 0; i < LB_GEMVQ_COLS; i++)
        codes[i] = c->codes[i];
    for (int i = 0; i < 2 * PAIRS; i++)
        numbers[i] = ((const int32_t *)c->x[i / 2])[i % 2 * c->x_apart];
    for (int64_t at = 0; at < bytes; at += 32, sum += 4) {
        __m256i t[2][4];
        LB_KEEP_POINTER(x); /* numbers are spread as they are loaded */
        LB_UNROLL
        for (int v = 0; v < 8; v++)
            t[v / 4][v % 4] =
                first ? _mm256_setzero_si256()
                      : _mm256_load_si256(sum + v / 4 * apart + v % 4);
        LB_UNROLL
        for (int i = 0; i < PAIRS; i++) {
            const lines v =
                load_lines(codes[2 * i] + at, codes[2 * i + 1] + at);
            LB_UNROLL
            for (int h = 0; h < 2; h++) {
                __m256i two = two_columns(v, h);
                LB_KEEP(two);
                LB_UNROLL
                for (int r = 0; r < 2; r++)
                    add_two(two, _mm256_set1_epi32(x[2 * i + r]), &t[r][2 * h],
                            &t[r][2 * h + 1]);
            }
        }
        LB_UNROLL
        for (int v = 0; v < 8; v++)
            _mm256_store_si256(sum + v / 4 * apart + v % 4, t[v / 4][v % 4]);
    }
}

AVX2_INLINE void add_scaled(float *y, __m256i sum, __m256 unit)
{
    _mm256_store_ps(
        y, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), unit, _mm256_load_ps(y)));
}

AVX2 static void flush8(const lb_gemvq_flush *f)
{
    const __m256i *sum = f->sum;
    const __m256 unit = _mm256_broadcast_ss(f->x_scale);
    const __m256i raised = _mm256_set1_epi32(128 * f->x_sum);
    float *y = f->y;
    for (int64_t v = 0; v < 4 * f->groups; v++, sum += 2, y += 16) {
        const __m256i both = _mm256_load_si256(sum);
        const __m256i odd = _mm256_load_si256(sum + 1);
        const __m256i even = _mm256_sub_epi32(both, _mm256_slli_epi32(odd, 8));
        add_scaled(y, _mm256_sub_epi32(even, raised), unit);
        add_scaled(y + 8, odd, unit);
    }
}

/* ---- 4 bits ------------------------------------------------------------- */

/* 32 codes of two lines, in sums t. */
AVX2_INLINE void add_codes4(__m256i code, __m256i half0, __m256i half1,
                            __m256i x, __m256i *t)
{
    const __m256i b0 = _mm256_shuffle_epi8(half0, code);
    const __m256i b1 = _mm256_shuffle_epi8(half1, code);
    add_products(&t[0], _mm256_unpacklo_epi8(b0, b1), x);
    add_products(&t[1], _mm256_unpackhi_epi8(b0, b1), x);
}

AVX2 static void cols4(const lb_gemvq_cols *given)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const __m256i half0 = load_twice(c->table->half[0]);
    const __m256i half1 = load_twice(c->table->half[1]);
    const __m256i low = _mm256_set1_epi8(15);
    const int shift = c->shift;
    __m256i *sum = c->sum;
    for (int64_t g = 0; g < c->groups; g++, sum += 8) {
        __m256i t[8];
        LB_UNROLL
        for (int v = 0; v < 8; v++)
            t[v] =
                c->first ? _mm256_setzero_si256() : _mm256_load_si256(sum + v);
        LB_UNROLL
        for (int i = 0; i < PAIRS; i++) {
            const __m256i a = load_codes(c->codes[2 * i] + 32 * g);
            const __m256i b = load_codes(c->codes[2 * i + 1] + 32 * g);
            const __m256i x =
                _mm256_set1_epi32(((const int32_t *)c->x[i])[g >> shift]);
            LB_UNROLL
            for (int h = 0; h < 2; h++) {
                const __m256i v = interleave(a, b, h);
                add_codes4(low_half(v, low), half0, half1, x, t + 4 * h);
                add_codes4(high_half(v, low), half0, half1, x, t + 4 * h + 2);
            }
        }
        LB_UNROLL
        for (int v = 0; v < 8; v++)
            _mm256_store_si256(sum + v, t[v]);
    }
}

/* The same for two rows of x, whose sums are eight registers. */
AVX2_INLINE void add_two4(const lb_gemvq_cols *c, int64_t g, bool second,
                          __m256i *sum)
{
    const __m256i half0 = load_twice(c->table->half[0]);
    const __m256i half1 = load_twice(c->table->half[1]);
    const __m256i low = _mm256_set1_epi8(15);
    const int64_t apart = c->sum_apart / 8;
    __m256i t[2][4];
    LB_UNROLL
    for (int v = 0; v < 8; v++)
        t[v / 4][v % 4] = c->first
                              ? _mm256_setzero_si256()
                              : _mm256_load_si256(sum + v / 4 * apart + v % 4);
    LB_UNROLL
    for (int i = 0; i < PAIRS; i++) {
        const __m256i v =
            interleave(load_codes(c->codes[2 * i] + 32 * g),
                       load_codes(c->codes[2 * i + 1] + 32 * g), second);
        LB_UNROLL
        for (int h = 0; h < 2; h++) {
            const __m256i code = h ? high_half(v, low) : low_half(v, low);
            const __m256i b0 = _mm256_shuffle_epi8(half0, code);
            const __m256i b1 = _mm256_shuffle_epi8(half1, code);
            __m256i w0 = _mm256_unpacklo_epi8(b0, b1);
            __m256i w1 = _mm256_unpackhi_epi8(b0, b1);
            LB_KEEP(w0);
            LB_KEEP(w1);
            LB_UNROLL
            for (int r = 0; r < 2; r++) {
                const int32_t *from = (const int32_t *)c->x[i] + r * c->x_apart;
                const __m256i x = _mm256_set1_epi32(from[g >> c->shift]);
                __m256i *const s = &t[r][2 * h];
                add_products(&s[0], w0, x);
                add_products(&s[1], w1, x);
            }
        }
    }
    LB_UNROLL
    for (int v = 0; v < 8; v++)
        _mm256_store_si256(sum + v / 4 * apart + v % 4, t[v / 4][v % 4]);
}

AVX2 static void two4(const lb_gemvq_cols *given, int rows)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    __m256i *sum = c->sum;
    (void)rows;
    for (int64_t g = 0; g < c->groups; g++, sum += 8) {
        add_two4(c, g, false, sum);
        add_two4(c, g, true, sum + 4);
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

const lb_gemvq_kernel lb_gemvq_cols_int_avx2[] = {
    {"gemv q8 i16 avx2 cols",
     8,
     LB_GEMVQ_I16,
     64,
     0,
     1,
     {{4, 2, 2, 2, 2}, {2, 16, 1, 8, 32}},
     .cols = cols8,
     .few = two8,
     .only_two = true,
     .flush = flush8,
     .sum_size = 4,
     .lines = LB_GEMVQ_MOST_LINES},
    {"gemv q4 i16 avx2 cols",
     4,
     LB_GEMVQ_I16,
     64,
     64,
     1,
     {{4, 2, 2, 2, 2}, {2, 32, 8, 1, 16}},
     .cols = cols4,
     .few = two4,
     .only_two = true,
     .flush = flush4,
     .sum_size = 4,
     .lines = LB_GEMVQ_MOST_LINES},
    {0},
};
#endif
