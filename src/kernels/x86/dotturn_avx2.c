/* dotturn_avx2.c - codes of one or two bits, turned, for AVX2. */
#include "kernels/dotturn.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

enum { COLUMNS = LB_DOTTURN_ROWS };

/* Rows r and 16 + r. */
LB_TARGET("avx2")
LB_INLINE __m256i load_rows(const uint8_t *from, int64_t step, int r)
{
    const __m128i *low = (const __m128i *)(const void *)(from + r * step);
    const __m128i *high =
        (const __m128i *)(const void *)(from + (r + 16) * step);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                   _mm_loadu_si128(high), 1);
}

/* One round of a 16x16 transpose in each half: lines l and l + 8 are
 * interleaved. After four rounds line p has byte p of every line. */
LB_TARGET("avx2")
LB_INLINE void interleave(const __m256i *from, __m256i *to)
{
    LB_UNROLL
    for (int l = 0; l < 8; l++) {
        to[2 * l] = _mm256_unpacklo_epi8(from[l], from[l + 8]);
        to[2 * l + 1] = _mm256_unpackhi_epi8(from[l], from[l + 8]);
    }
}

/* It may lie anywhere, so this is never a pointer that C looks at. */
LB_INLINE void fetch_rows(const uint8_t *from, int64_t step, uintptr_t ahead)
{
    for (int r = 0; r < COLUMNS; r++)
        __builtin_prefetch(
            (const void *)((uintptr_t)from + (uintptr_t)(r * step) + ahead));
}

LB_TARGET("avx2")
static void along(const uint8_t *from, int64_t step, int64_t bytes,
                  uintptr_t ahead, uint8_t *to)
{
    enum { LINES = LB_DOTTURN_BYTES };
    for (int64_t b = 0; b < bytes; b += LINES, to += LINES * COLUMNS) {
        __m256i x[LINES], y[LINES];
        if (ahead && b % 64 == 0) fetch_rows(from + b, step, ahead);
        LB_UNROLL
        for (int r = 0; r < LINES; r++)
            x[r] = load_rows(from + b, step, r);
        interleave(x, y);
        interleave(y, x);
        interleave(x, y);
        interleave(y, x);
        LB_UNROLL
        for (int r = 0; r < LINES; r++)
            _mm256_store_si256((__m256i *)(void *)(to + r * COLUMNS), x[r]);
    }
}

/* Swaps the places of a that are `shift` above the mask's with those of b. */
LB_TARGET("avx2")
LB_INLINE void swap_bits(__m256i *a, __m256i *b, __m256i mask, const int shift)
{
    const __m256i t = _mm256_and_si256(
        _mm256_xor_si256(_mm256_srli_epi16(*a, shift), *b), mask);
    *b = _mm256_xor_si256(*b, t);
    *a = _mm256_xor_si256(*a, _mm256_slli_epi16(t, shift));
}

/* Fields of as many lines, in each byte: 8x8 of one bit, 4x4 of two. Squares
 * that are half as large trade places, then those in them. */
LB_TARGET("avx2")
LB_INLINE void turn_fields(const int bits, __m256i *x)
{
    const int lines = 8 / bits;
    LB_UNROLL
    for (int l = 0; l < lines / 2; l++)
        swap_bits(&x[l], &x[l + lines / 2], _mm256_set1_epi8(0x0f), 4);
    LB_UNROLL
    for (int l = 0; l < lines; l++)
        if (!(l & lines / 4))
            swap_bits(&x[l], &x[l + lines / 4], _mm256_set1_epi8(0x33), 2);
    LB_UNROLL
    for (int l = 0; l < lines && bits == 1; l += 2)
        swap_bits(&x[l], &x[l + 1], _mm256_set1_epi8(0x55), 1);
}

LB_TARGET("avx2")
LB_INLINE void across_bits(const int bits, const uint8_t *from, int64_t step,
                           int64_t bytes, int64_t wide, uint8_t *to,
                           int64_t apart)
{
    enum { WIDE = LB_DOTTURN_WIDE, AHEAD = 32 }; /* lines */
    const int lines = 8 / bits;
    for (int64_t b = 0; b < bytes; b++, from += lines * step, to += COLUMNS) {
        const uint8_t *line = from;
        uint8_t *at = to;
        for (int64_t w = 0; w < wide; w++, at += lines * apart) {
            __m256i x[8];
            LB_UNROLL
            for (int l = 0; l < lines; l++) {
                const uint8_t *const one = line + l * step;
                x[l] = _mm256_loadu_si256((const __m256i *)(const void *)one);
                if (w % 2 == 0)
                    __builtin_prefetch(
                        (const void *)((uintptr_t)one +
                                       (uintptr_t)(AHEAD * step)));
            }
            line += WIDE;
            turn_fields(bits, x);
            LB_UNROLL
            for (int l = 0; l < lines; l++)
                _mm256_store_si256((__m256i *)(void *)(at + l * apart), x[l]);
        }
    }
}

LB_TARGET("avx2")
static void across(int bits, const uint8_t *from, int64_t step, int64_t bytes,
                   int64_t wide, uint8_t *to, int64_t apart)
{
    if (bits == 1)
        across_bits(1, from, step, bytes, wide, to, apart);
    else
        across_bits(2, from, step, bytes, wide, to, apart);
}

const lb_dotturn lb_dotturn_avx2 = {.along = along, .across = across};
#endif
