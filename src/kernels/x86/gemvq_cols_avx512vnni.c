/* gemvq_cols_avx512vnni.c - lines of codes of 2 bits or 1, times a whole number
 * each, with VNNI.
 *
 * Bytes of four lines stand beside each other, as vpdpbusd wants them, and x is
 * four bytes in every lane. Codes are not shifted, only masked: sums of field f
 * are 2^(bits*f) times what they should be, which is put right once for all
 * lines. 256 * 192 * 128 * 256 < 2^31.
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/gemvq_avx512.h"

enum { FOURS = LB_GEMVQ_COLS / 4 };

/* Compilers copy the sum of the intrinsic before and after. */
VNNI LB_INLINE __m512i add_fours(__m512i sum, __m512i codes, __m512i x)
{
#if defined(LB_SIMDE)
    return _mm512_dpbusd_epi32(sum, codes, x);
#else
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(x));
    return sum;
#endif
}

/* x of four lines in every lane. */
AVX512_INLINE __m512i four_of(const void *x)
{
    int32_t four;
    memcpy(&four, x, sizeof four);
    return _mm512_set1_epi32(four);
}

/* Four bytes of each 16 of four lines to a vector. */
AVX512_INLINE void load_four(const uint8_t *const *codes, int64_t at,
                             int64_t ahead, __m512i *v)
{
    const __m512i a = load_codes(codes[0] + at, ahead);
    const __m512i b = load_codes(codes[1] + at, ahead);
    const __m512i c = load_codes(codes[2] + at, ahead);
    const __m512i d = load_codes(codes[3] + at, ahead);
    const __m512i ab0 = _mm512_unpacklo_epi8(a, b);
    const __m512i ab1 = _mm512_unpackhi_epi8(a, b);
    const __m512i cd0 = _mm512_unpacklo_epi8(c, d);
    const __m512i cd1 = _mm512_unpackhi_epi8(c, d);
    v[0] = _mm512_unpacklo_epi16(ab0, cd0);
    v[1] = _mm512_unpackhi_epi16(ab0, cd0);
    v[2] = _mm512_unpacklo_epi16(ab1, cd1);
    v[3] = _mm512_unpackhi_epi16(ab1, cd1);
}

/* Sums of high and of low stand in turns, one field of 16 bytes each. */
VNNI LB_INLINE void bits_of(const lb_gemvq_cols *given, int bits, bool two)
{
    const lb_gemvq_cols own = *given, *c = &own; /* which no store changes */
    const int fields = 8 / bits;
    const __m512i zero = _mm512_setzero_si512();
    __m512i high[FOURS], low[FOURS];
    char *sum = c->sum;
    LB_UNROLL
    for (int i = 0; i < FOURS; i++) {
        high[i] = four_of(c->x[2 * i]);
        low[i] = four_of(c->x[2 * i + LB_GEMVQ_COLS / 2]);
    }
    for (int64_t g = 0; g < c->groups; g++) {
        __m512i v[FOURS][4];
        LB_UNROLL
        for (int i = 0; i < FOURS; i++)
            load_four(c->codes + 4 * i, 64 * g, c->ahead, v[i]);
        LB_UNROLL
        for (int q = 0; q < 4; q++) {
            LB_UNROLL
            for (int f = 0; f < fields; f++, sum += two ? 128 : 64) {
                const __m512i mask =
                    _mm512_set1_epi8((char)(((1 << bits) - 1) << (bits * f)));
                __m512i h = c->first ? zero : _mm512_load_si512(sum);
                __m512i l = zero;
                if (two && !c->first) l = _mm512_load_si512(sum + 64);
                LB_UNROLL
                for (int i = 0; i < FOURS; i++) {
                    const __m512i code = _mm512_and_si512(v[i][q], mask);
                    h = add_fours(h, code, high[i]);
                    if (two) l = add_fours(l, code, low[i]);
                }
                _mm512_store_si512(sum, h);
                if (two) _mm512_store_si512(sum + 64, l);
            }
        }
    }
}

AVX512_INLINE void flush(const lb_gemvq_flush *f, int bits, bool two)
{
    const char *sum = f->sum;
    int64_t at = 0;
    for (int64_t v = 0; v < 4 * f->groups; v++) {
        LB_UNROLL
        for (int i = 0; i < 8 / bits; i++, at += 16, sum += two ? 128 : 64) {
            __m512i t = _mm512_load_si512(sum);
            if (two)
                t = _mm512_add_epi32(_mm512_slli_epi32(t, 8),
                                     _mm512_load_si512(sum + 64));
            put_16(f, _mm512_srai_epi32(t, (unsigned)(bits * i)), at);
        }
    }
}

LB_GEMVQ_COLS_OF_BITS(VNNI, bits_of)

/* Where slots of four lines stand: lanes of four bytes first. */
#define FOURS2                                                                 \
    {                                                                          \
        {4, 4, 4, 4},                                                          \
        {                                                                      \
            4, 64, 1, 16                                                       \
        }                                                                      \
    }
#define FOURS1                                                                 \
    {                                                                          \
        {4, 4, 8, 4},                                                          \
        {                                                                      \
            8, 128, 1, 32                                                      \
        }                                                                      \
    }

const lb_gemvq_kernel lb_gemvq_cols_bits_vnni[] = {
    {"gemv q2 i8x2 avx512vnni cols", 2, LB_GEMVQ_I8X2, 256, 0, 1, FOURS2,
     .together = true, .cols = cols2_i8x2, .flush = flush2_i8x2, .sum_size = 8,
     .lines = LB_GEMVQ_MOST_LINES},
    {"gemv q1 i8x2 avx512vnni cols", 1, LB_GEMVQ_I8X2, 512, 0, 1, FOURS1,
     .together = true, .cols = cols1_i8x2, .flush = flush1_i8x2, .sum_size = 8,
     .lines = LB_GEMVQ_MOST_LINES},
    {"gemv q2 i8 avx512vnni cols", 2, LB_GEMVQ_I8, 256, 0, 1, FOURS2,
     .together = true, .cols = cols2_i8, .flush = flush2_i8, .sum_size = 4,
     .lines = LB_GEMVQ_MOST_LINES},
    {"gemv q1 i8 avx512vnni cols", 1, LB_GEMVQ_I8, 512, 0, 1, FOURS1,
     .together = true, .cols = cols1_i8, .flush = flush1_i8, .sum_size = 4,
     .lines = LB_GEMVQ_MOST_LINES},
    {0},
};
#endif
