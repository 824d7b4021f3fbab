/* gemvq_cols_int_avx512.c - lines of codes times a whole number each, AVX-512.
 *
 * As gemvq_cols_int_avx2.c, with vectors twice as long: codes of two lines
 * stand beside each other as the products of pairs want them, and x is a pair
 * of numbers in every lane. Of 4 bits, words of both do, each of which is
 * shifted and looked up then (vpermw).
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx512.h"

enum { PAIRS = LB_GEMVQ_COLS / 2 };

AVX512_INLINE __m512i load_sum(const void *sum, int v)
{
    return _mm512_load_si512((const char *)sum + 64 * v);
}

AVX512_INLINE void store_sum(void *sum, int v, __m512i t)
{
    _mm512_store_si512((char *)sum + 64 * v, t);
}

AVX512_INLINE __m512i interleave(__m512i a, __m512i b, bool second)
{
    return second ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
}

AVX512_INLINE __m512i interleave_words(__m512i a, __m512i b, bool second)
{
    return second ? _mm512_unpackhi_epi16(a, b) : _mm512_unpacklo_epi16(a, b);
}

/* ---- 8 bits ------------------------------------------------------------- */

/* Codes as 128 more than they are, so that zeros make them words. */
AVX512_INLINE __m512i load_raised(const uint8_t *codes, int64_t ahead)
{
    return _mm512_xor_si512(load_codes(codes, ahead), _mm512_set1_epi8(-128));
}

AVX512_INLINE void all8(const lb_gemvq_cols *given, bool vnni)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const __m512i zero = _mm512_setzero_si512();
    char *sum = c->sum;
    __m512i x[PAIRS];
    LB_UNROLL
    for (int i = 0; i < PAIRS; i++)
        x[i] = _mm512_set1_epi32(*(const int32_t *)c->x[i]);
    for (int64_t g = 0; g < c->groups; g++, sum += 256) {
        __m512i t[4];
        LB_UNROLL
        for (int v = 0; v < 4; v++)
            t[v] = c->first ? zero : load_sum(sum, v);
        LB_UNROLL
        for (int i = 0; i < PAIRS; i++) {
            const __m512i a = load_raised(c->codes[2 * i] + 64 * g, c->ahead);
            const __m512i b =
                load_raised(c->codes[2 * i + 1] + 64 * g, c->ahead);
            LB_UNROLL
            for (int v = 0; v < 4; v++)
                t[v] = add_products(
                    t[v], interleave(interleave(a, b, v / 2), zero, v % 2),
                    x[i], vnni);
        }
        LB_UNROLL
        for (int v = 0; v < 4; v++)
            store_sum(sum, v, t[v]);
    }
}

AVX512 static void cols8(const lb_gemvq_cols *c)
{
    all8(c, false);
}
AVX512 static void cols8_vnni(const lb_gemvq_cols *c)
{
    all8(c, true);
}

AVX512 static void flush8(const lb_gemvq_flush *f)
{
    const char *sum = f->sum;
    const __m512 unit = _mm512_set1_ps(*f->x_scale);
    const __m512i raised = _mm512_set1_epi32(128 * f->x_sum);
    float *y = f->y;
    for (int64_t v = 0; v < 4 * f->groups; v++, y += 16, sum += 64) {
        const __m512 t = to_f32(_mm512_sub_epi32(load_sum(sum, 0), raised));
        _mm512_store_ps(y, _mm512_fmadd_ps(t, unit, _mm512_load_ps(y)));
    }
}

/* ---- 4 bits ------------------------------------------------------------- */

/* Two numbers, each in eight lanes. */
AVX512_INLINE __m512i spread_two(const void *from)
{
    const __m512i half =
        _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m128i two = _mm_loadl_epi64((const __m128i *)from);
    return _mm512_permutexvar_epi32(half, _mm512_castsi128_si512(two));
}

/* Field f of a word is one of 32 columns; words 4 .. 7 of each 8 go to the
 * second of two sums. */
AVX512_INLINE void all4(const lb_gemvq_cols *given, bool vnni)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const __m512i level = load_halves(c->table);
    char *sum = c->sum;
    for (int64_t g = 0; g < c->groups; g++, sum += 512) {
        __m512i t[8];
        LB_UNROLL
        for (int v = 0; v < 8; v++)
            t[v] = c->first ? _mm512_setzero_si512() : load_sum(sum, v);
        LB_UNROLL
        for (int i = 0; i < PAIRS; i++) {
            const __m512i a = load_codes(c->codes[2 * i] + 64 * g, c->ahead);
            const __m512i b =
                load_codes(c->codes[2 * i + 1] + 64 * g, c->ahead);
            const __m512i x = spread_two((const int32_t *)c->x[i] + 2 * g);
            const __m512i v[2] = {interleave_words(a, b, false),
                                  interleave_words(a, b, true)};
            LB_UNROLL
            for (int f = 0; f < 8; f++)
                t[f] = add_products(
                    t[f],
                    _mm512_permutexvar_epi16(
                        _mm512_srli_epi16(v[f % 2], (uint8_t)(f / 2 * 4)),
                        level),
                    x, vnni);
        }
        LB_UNROLL
        for (int v = 0; v < 8; v++)
            store_sum(sum, v, t[v]);
    }
}

AVX512 static void cols4(const lb_gemvq_cols *c)
{
    all4(c, false);
}
AVX512 static void cols4_vnni(const lb_gemvq_cols *c)
{
    all4(c, true);
}

AVX512 static void flush4(const lb_gemvq_flush *f)
{
    const char *sum = f->sum;
    float *y = f->y;
    for (int64_t g = 0; g < f->groups; g++) {
        const __m512 unit = _mm512_castsi512_ps(spread_two(f->x_scale + 2 * g));
        for (int v = 0; v < 8; v++, y += 16, sum += 64)
            _mm512_store_ps(y, _mm512_fmadd_ps(to_f32(load_sum(sum, 0)), unit,
                                               _mm512_load_ps(y)));
    }
}

/* ---- 2 bits or 1 -------------------------------------------------------- */

/* Sums of high and of low stand in turns, 32 columns each: eight bytes of each
 * 16, one field of each. They have 16 bits: a pair is at most 2 * 3 * 128, and
 * 32 pairs are 24576. */
AVX512_INLINE void signs(const lb_gemvq_cols *given, int bits, bool two)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const int fields = 8 / bits, vectors = two ? 2 : 1;
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    char *sum = c->sum;
    __m512i high[PAIRS], low[PAIRS];
    LB_UNROLL
    for (int i = 0; i < PAIRS; i++) {
        high[i] = _mm512_set1_epi16(*(const int16_t *)c->x[i]);
        low[i] = _mm512_set1_epi16(*(const int16_t *)c->x[i + PAIRS]);
    }
    for (int64_t g = 0; g < c->groups; g++) {
        __m512i a[PAIRS], b[PAIRS];
        LB_UNROLL
        for (int i = 0; i < PAIRS; i++) {
            a[i] = load_codes(c->codes[2 * i] + 64 * g, c->ahead);
            b[i] = load_codes(c->codes[2 * i + 1] + 64 * g, c->ahead);
        }
        LB_UNROLL
        for (int second = 0; second < 2; second++) {
            __m512i v[PAIRS];
            LB_UNROLL
            for (int i = 0; i < PAIRS; i++)
                v[i] = interleave(a[i], b[i], second);
            LB_UNROLL
            for (int f = 0; f < fields; f++, sum += 64 * vectors) {
                __m512i h, l = _mm512_setzero_si512();
                h = c->first ? l : load_sum(sum, 0);
                if (two && !c->first) l = load_sum(sum, 1);
                LB_UNROLL
                for (int i = 0; i < PAIRS; i++) {
                    const __m512i code = _mm512_and_si512(
                        _mm512_srli_epi16(v[i], (uint8_t)(bits * f)), mask);
                    h = _mm512_add_epi16(h,
                                         _mm512_maddubs_epi16(code, high[i]));
                    if (two)
                        l = _mm512_add_epi16(
                            l, _mm512_maddubs_epi16(code, low[i]));
                }
                store_sum(sum, 0, h);
                if (two) store_sum(sum, 1, l);
            }
        }
    }
}

/* Vectors of 32 columns, the low four of each eight first. */
AVX512_INLINE void flush(const lb_gemvq_flush *f, int bits, bool two)
{
    const char *sum = f->sum;
    const __m512i both = _mm512_set1_epi32(two ? 1 << 16 | 256 : 1);
    const __m512i zero = _mm512_setzero_si512();
    int64_t at = 0;
    for (int64_t v = 0; v < f->groups * (16 / bits); v++) {
        const __m512i h = load_sum(sum, 0);
        const __m512i l = two ? load_sum(sum, 1) : zero;
        sum += two ? 128 : 64;
        for (int half = 0; half < 2; half++, at += 16)
            put_16(f, madd_i16(interleave_words(h, l, half), both), at);
    }
}

LB_GEMVQ_COLS_OF_BITS(AVX512, signs)

/* Where slots of two lines stand: lanes of four columns first. */
#define PAIRS8                                                                 \
    {                                                                          \
        {4, 4, 4},                                                             \
        {                                                                      \
            1, 16, 4                                                           \
        }                                                                      \
    }
#define PAIRS4                                                                 \
    {                                                                          \
        {4, 4, 2, 4},                                                          \
        {                                                                      \
            4, 32, 16, 1                                                       \
        }                                                                      \
    }
#define PAIRS2                                                                 \
    {                                                                          \
        {4, 4, 2, 4, 2},                                                       \
        {                                                                      \
            4, 64, 16, 1, 32                                                   \
        }                                                                      \
    }
#define PAIRS1                                                                 \
    {                                                                          \
        {4, 4, 2, 8, 2},                                                       \
        {                                                                      \
            8, 128, 32, 1, 64                                                  \
        }                                                                      \
    }

const lb_gemvq_kernel lb_gemvq_cols_int_avx512[] = {
    {"gemv q8 i16 avx512 cols", 8, LB_GEMVQ_I16, 64, 0, 1, PAIRS8,
     .together = true, .cols = cols8, .flush = flush8, .sum_size = 4},
    {"gemv q4 i16 avx512 cols", 4, LB_GEMVQ_I16, 128, 64, 1, PAIRS4,
     .together = true, .cols = cols4, .flush = flush4, .sum_size = 4},
    {"gemv q2 i8x2 avx512 cols", 2, LB_GEMVQ_I8X2, 256, 0, 1, PAIRS2,
     .together = true, .cols = cols2_i8x2, .flush = flush2_i8x2, .sum_size = 4},
    {"gemv q1 i8x2 avx512 cols", 1, LB_GEMVQ_I8X2, 512, 0, 1, PAIRS1,
     .together = true, .cols = cols1_i8x2, .flush = flush1_i8x2, .sum_size = 4},
    {"gemv q2 i8 avx512 cols", 2, LB_GEMVQ_I8, 256, 0, 1, PAIRS2,
     .together = true, .cols = cols2_i8, .flush = flush2_i8, .sum_size = 2},
    {"gemv q1 i8 avx512 cols", 1, LB_GEMVQ_I8, 512, 0, 1, PAIRS1,
     .together = true, .cols = cols1_i8, .flush = flush1_i8, .sum_size = 2},
    {0},
};

const lb_gemvq_kernel lb_gemvq_cols_vnni[] = {
    {"gemv q8 i16 avx512vnni cols", 8, LB_GEMVQ_I16, 64, 0, 1, PAIRS8,
     .together = true, .cols = cols8_vnni, .flush = flush8, .sum_size = 4},
    {"gemv q4 i16 avx512vnni cols", 4, LB_GEMVQ_I16, 128, 64, 1, PAIRS4,
     .together = true, .cols = cols4_vnni, .flush = flush4, .sum_size = 4},
    {0},
};
#endif
