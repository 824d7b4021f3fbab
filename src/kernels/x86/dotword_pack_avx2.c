/* dotword_pack_avx2.c - codes of 4 bits as panels of words with AVX2: the two
 * bytes of each level are looked up.
 *
 * K along memory: quads of bytes of 8 lines are brought together first. Rows
 * along memory: the bytes of two lines are interleaved first.
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <stddef.h>
#include <string.h>

#include "kernels/x86/dotbyte_turn_avx2.h"

enum {
    NR = 16,
    LINES = LB_DOTBYTE_LINES,
    BYTES = LB_DOTBYTE_BYTES,
    APART = NR * 4 /* bytes from pair to pair */
};

#define AVX2 LB_AVX2_PACK

AVX2 LB_INLINE void store(uint8_t *to, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)to, v);
}

/* ---- levels -------------------------------------------------------------- */

/* Low and high bytes of levels, in both halves. */
typedef struct {
    __m256i low, high;
} level_bytes;

AVX2 LB_INLINE level_bytes levels_of(const lb_dotbyte_codes *c)
{
    const __m128i *at = (const __m128i *)(const void *)c->level;
    const __m128i a = _mm_loadu_si128(at), b = _mm_loadu_si128(at + 1);
    const __m128i byte = _mm_set1_epi16(255);
    return (level_bytes){_mm256_broadcastsi128_si256(_mm_packus_epi16(
                             _mm_and_si128(a, byte), _mm_and_si128(b, byte))),
                         _mm256_broadcastsi128_si256(_mm_packus_epi16(
                             _mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8)))};
}

AVX2 LB_INLINE __m256i nibbles(const int field, __m256i v)
{
    return _mm256_and_si256(field ? _mm256_srli_epi16(v, 4) : v,
                            _mm256_set1_epi8(15));
}

/* ---- depth along memory -------------------------------------------------- */

/* Eight quads of bytes of codes as four pairs. high_first is a constant where
 * this is inlined, here and below. */
AVX2 LB_INLINE void put_quads(const bool high_first, level_bytes t, __m256i v,
                              uint8_t *to)
{
    const __m256i even = _mm256_set1_epi16(255);
    LB_UNROLL
    for (int f = 0; f < 2; f++) {
        const __m256i code = nibbles(high_first ? 1 - f : f, v);
        const __m256i low = _mm256_shuffle_epi8(t.low, code);
        const __m256i high = _mm256_shuffle_epi8(t.high, code);
        store(to + (ptrdiff_t)f * APART,
              _mm256_or_si256(_mm256_and_si256(low, even),
                              _mm256_slli_epi16(high, 8)));
        store(to + (ptrdiff_t)(2 + f) * APART,
              _mm256_or_si256(_mm256_srli_epi16(low, 8),
                              _mm256_andnot_si256(even, high)));
    }
}

/* n bytes of each line, a multiple of 16. */
AVX2 LB_INLINE void along_order(const bool high_first, level_bytes t,
                                const uint8_t *from, int64_t step, int64_t n,
                                uint8_t *to)
{
    for (int64_t b = 0; b < n; b += 16, to += 16 * APART) {
        LB_UNROLL
        for (int half = 0; half < 2; half++) {
            __m256i v[4];
            lb_turn_8_lines(from + b + half * 8 * step, step, v);
            LB_UNROLL
            for (int q = 0; q < 4; q++)
                put_quads(high_first, t, v[q],
                          to + (ptrdiff_t)q * 4 * APART +
                              (ptrdiff_t)half * (APART / 2));
        }
    }
}

AVX2 static void along_any(const lb_dotbyte_codes *c, const uint8_t *from,
                           int64_t step, int64_t n, uint8_t *to)
{
    const level_bytes t = levels_of(c);
    if (c->high_first)
        along_order(true, t, from, step, n, to);
    else
        along_order(false, t, from, step, n, to);
}

/* What is left of lines, fewer than 16 bytes each. */
AVX2 static void along_rest(const lb_dotbyte_codes *c, const uint8_t *from,
                            int64_t step, int64_t n, uint8_t *to)
{
    uint8_t rest[LINES * 16] = {0};
    uint8_t out[16 * APART]; /* 16 bytes are 16 pairs */
    for (int l = 0; l < LINES; l++)
        memcpy(rest + (size_t)l * 16, from + l * step, (size_t)(n + 1) / 2);
    along_any(c, rest, 16, 16, out);
    memcpy(to, out, (size_t)((n + 7) / 8 * 4 * APART));
}

AVX2 void lb_dotword_along_avx2(const lb_dotbyte_codes *c, const uint8_t *from,
                                int64_t step, int64_t n, int64_t ahead,
                                uint8_t *to)
{
    const int64_t whole = n / 32 * 16, done = whole * 2;
    (void)ahead; /* tiles ask, here and below */
    along_any(c, from, step, whole, to);
    if (done < n)
        along_rest(c, from + whole, step, n - done, to + done / 2 * APART);
}

/* ---- rows along memory --------------------------------------------------- */

/* A field of interleaved bytes of two lines, in which each half of a vector has
 * four of both and then four more, as two vectors of words. */
AVX2 LB_INLINE void words_of(const int field, const bool fine, level_bytes t,
                             __m256i v, __m256i ratio, __m256i *to)
{
    const __m256i code = nibbles(field, v);
    const __m256i low = _mm256_shuffle_epi8(t.low, code);
    const __m256i high = _mm256_shuffle_epi8(t.high, code);
    to[0] = _mm256_unpacklo_epi8(low, high);
    to[1] = _mm256_unpackhi_epi8(low, high);
    LB_UNROLL
    for (int i = 0; i < 2 && fine; i++)
        to[i] = _mm256_mulhrs_epi16(to[i], ratio);
}

/* Ratios of two lines; one of 16 bytes' codes. */
AVX2 LB_INLINE __m256i spread(const int16_t *ratio)
{
    int32_t pair;
    memcpy(&pair, ratio, sizeof pair);
    return _mm256_set1_epi32(pair);
}

/* 64 bytes of two lines. */
AVX2 LB_INLINE void across_two(const bool high_first, const bool fine,
                               level_bytes t, const uint8_t *a,
                               const uint8_t *b, const int16_t *const *ratio,
                               int64_t k, uint8_t *to, int64_t panel)
{
    LB_UNROLL
    for (int half = 0; half < 2; half++) {
        const __m256i va = lb_line_of_avx2(a + (ptrdiff_t)32 * half);
        const __m256i vb = lb_line_of_avx2(b + (ptrdiff_t)32 * half);
        const __m256i v[2] = {_mm256_unpacklo_epi8(va, vb),
                              _mm256_unpackhi_epi8(va, vb)};
        LB_UNROLL
        for (int i = 0; i < 2; i++) {
            const int group = 2 * half + i;
            const __m256i r = fine ? spread(ratio[group] + k) : va;
            LB_UNROLL
            for (int f = 0; f < 2; f++) {
                uint8_t *const at = to + (group * 2 + f) * panel;
                __m256i w[2];
                words_of(high_first ? 1 - f : f, fine, t, v[i], r, w);
                store(at, w[0]);
                store(at + 32, w[1]);
            }
        }
    }
}

AVX2 LB_INLINE void across_any(const bool high_first, const bool fine,
                               const lb_dotbyte_codes *c, const uint8_t *from,
                               int64_t step, int64_t n, int64_t bytes,
                               uint8_t *to, int64_t panel)
{
    const level_bytes t = levels_of(c);
    const int16_t *ratio[4] = {NULL};
    uint8_t some[2 * BYTES] = {0};
    for (int g = 0; g < 4 && fine; g++) /* 16 bytes have one */
        ratio[g] = c->ratio + (int64_t)32 * g / c->share * c->apart;
    for (int64_t k = 0; k < n; k += 2, from += 2 * step, to += APART) {
        if (bytes == BYTES && k + 2 <= n) {
            across_two(high_first, fine, t, from, from + step, ratio, k, to,
                       panel);
            continue;
        }
        for (int64_t l = 0; l < 2 && k + l < n; l++)
            memcpy(some + l * BYTES, from + l * step, (size_t)bytes);
        across_two(high_first, fine, t, some, some + BYTES, ratio, k, to,
                   panel);
    }
}

AVX2 void lb_dotword_across_avx2(const lb_dotbyte_codes *c, const uint8_t *from,
                                 int64_t step, int64_t n, int64_t bytes,
                                 int64_t ahead, uint8_t *to, int64_t panel)
{
    (void)ahead;
    if (c->high_first && c->ratio)
        across_any(true, true, c, from, step, n, bytes, to, panel);
    else if (c->high_first)
        across_any(true, false, c, from, step, n, bytes, to, panel);
    else if (c->ratio)
        across_any(false, true, c, from, step, n, bytes, to, panel);
    else
        across_any(false, false, c, from, step, n, bytes, to, panel);
}
#endif
