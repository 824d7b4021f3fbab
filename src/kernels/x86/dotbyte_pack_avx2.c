/* dotbyte_pack_avx2.c - codes as panels of bytes with AVX2.
 *
 * As dotbyte_pack_avx512.c, in halves, for codes of 2 bits and of 1: others
 * have no tile here.
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <stddef.h>
#include <string.h>

#include "kernels/x86/intrin.h"

enum { NR = 16, LINES = LB_DOTBYTE_LINES, BYTES = LB_DOTBYTE_BYTES };

#define AVX2 LB_TARGET("avx2")

/* ---- fields -------------------------------------------------------------- */

/* Tables that nibbles look up: field f is found in table f % tables of nibble
 * f / tables, these in the order in which they come. */
typedef struct {
    __m256i table[4];
} fields_of;

AVX2 LB_INLINE fields_of make_fields(const lb_dotbyte_codes *c)
{
    fields_of f;
    const int tables = 4 / c->bits, mask = (1 << c->bits) - 1;
    for (int t = 0; t < 4; t++) {
        uint8_t entry[16];
        const int at = c->high_first ? tables - 1 - t : t;
        for (int i = 0; i < 16; i++)
            entry[i] =
                (uint8_t)(t < tables ? c->number[i >> (at * c->bits) & mask]
                                     : 0);
        f.table[t] = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(const void *)entry));
    }
    return f;
}

/* Eight quads of bytes of codes as a vector for each field, `apart` bytes
 * apart. bits and high_first are constants where this is inlined. */
AVX2 LB_INLINE void put_fields(const int bits, const bool high_first,
                               fields_of f, __m256i v, uint8_t *to,
                               int64_t apart)
{
    const int fields = 8 / bits;
    const __m256i nibble = _mm256_set1_epi8(15);
    const __m256i low = _mm256_and_si256(v, nibble);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble);
    LB_UNROLL
    for (int i = 0; i < fields; i++, to += apart) {
        const __m256i n = (i < fields / 2) != high_first ? low : high;
        _mm256_storeu_si256((__m256i *)(void *)to,
                            _mm256_shuffle_epi8(f.table[i % (4 / bits)], n));
    }
}

/* ---- depth along memory -------------------------------------------------- */

AVX2 LB_INLINE __m256i load_2x16(const uint8_t *p, const uint8_t *q)
{
    const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)q);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

/* 16 bytes of 8 lines: quad q of all of them to v[q]. The halves of register
 * a begin as lines a and a + 4. */
AVX2 LB_INLINE void turn(const uint8_t *p, int64_t step, __m256i *v)
{
    const uint8_t *q = p + 4 * step;
    const __m256i a = load_2x16(p, q), b = load_2x16(p + step, q + step);
    const __m256i c = load_2x16(p + 2 * step, q + 2 * step);
    const __m256i d = load_2x16(p + 3 * step, q + 3 * step);
    const __m256i ab0 = _mm256_unpacklo_epi32(a, b);
    const __m256i ab1 = _mm256_unpackhi_epi32(a, b);
    const __m256i cd0 = _mm256_unpacklo_epi32(c, d);
    const __m256i cd1 = _mm256_unpackhi_epi32(c, d);
    v[0] = _mm256_unpacklo_epi64(ab0, cd0);
    v[1] = _mm256_unpackhi_epi64(ab0, cd0);
    v[2] = _mm256_unpacklo_epi64(ab1, cd1);
    v[3] = _mm256_unpackhi_epi64(ab1, cd1);
}

/* n bytes of each line, a multiple of 16. */
AVX2 LB_INLINE void along_bits(const int bits, const bool high_first,
                               fields_of f, const uint8_t *from, int64_t step,
                               int64_t n, int64_t ahead, uint8_t *to)
{
    const int64_t apart = (int64_t)NR * 4;
    for (int64_t b = 0; b < n; b += 16) {
        /* Four lines each time: all of them for 64 bytes. */
        for (int l = 0; l < 4; l++)
            LB_FETCH(from, ahead + b / 64 * 64 + (b / 16 % 4 * 4 + l) * step);
        LB_UNROLL
        for (int half = 0; half < 2; half++) {
            __m256i v[4];
            turn(from + b + half * 8 * step, step, v);
            LB_UNROLL
            for (int q = 0; q < 4; q++)
                put_fields(bits, high_first, f, v[q],
                           to + q * (8 / bits) * apart + half * (apart / 2),
                           apart);
        }
        to += 4 * (8 / bits) * apart;
    }
}

AVX2 static void along_any(const lb_dotbyte_codes *c, const fields_of *f,
                           const uint8_t *from, int64_t step, int64_t n,
                           int64_t ahead, uint8_t *to)
{
    if (c->bits == 2 && c->high_first)
        along_bits(2, true, *f, from, step, n, ahead, to);
    else if (c->bits == 2)
        along_bits(2, false, *f, from, step, n, ahead, to);
    else if (c->high_first)
        along_bits(1, true, *f, from, step, n, ahead, to);
    else
        along_bits(1, false, *f, from, step, n, ahead, to);
}

/* What is left of lines, fewer than 16 bytes each, and so many quads of what
 * comes of it. */
AVX2 static void along_rest(const lb_dotbyte_codes *c, const fields_of *f,
                            const uint8_t *from, int64_t step, int64_t n,
                            int64_t quads, uint8_t *to)
{
    uint8_t rest[LINES * 16] = {0};
    uint8_t out[32 * NR * 4]; /* 16 bytes of 8 fields are 32 quads */
    const int64_t bytes = (n * c->bits + 7) / 8;
    for (int l = 0; l < LINES; l++)
        memcpy(rest + (size_t)l * 16, from + l * step, (size_t)bytes);
    along_any(c, f, rest, 16, 16, 0, out);
    memcpy(to, out, (size_t)(quads * NR * 4));
}

AVX2 void lb_dotbyte_along_avx2(const lb_dotbyte_codes *c, const uint8_t *from,
                                int64_t step, int64_t n, int64_t ahead,
                                uint8_t *to)
{
    const fields_of f = make_fields(c);
    const int64_t whole = n * c->bits / 8 / 16 * 16;
    const int64_t done = whole * 8 / c->bits;
    const int64_t group = 4 * (8 / c->bits); /* numbers of four bytes */
    along_any(c, &f, from, step, whole, ahead, to);
    if (done < n)
        along_rest(c, &f, from + whole, step, n - done,
                   (n - done + group - 1) / group * (8 / c->bits),
                   to + done * NR);
}

/* ---- rows along memory --------------------------------------------------- */

/* Dwords of a line in such an order that what unpacks of them is in order. */
AVX2 LB_INLINE __m256i line_of(const uint8_t *p)
{
    const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    return _mm256_permutevar8x32_epi32(
        _mm256_loadu_si256((const __m256i *)(const void *)p), order);
}

/* 32 bytes of four lines: quads of the depth, 8 to a vector. */
AVX2 LB_INLINE void quads_of(const uint8_t *p, int64_t step, __m256i *v)
{
    const __m256i a = line_of(p), b = line_of(p + step);
    const __m256i c = line_of(p + 2 * step), d = line_of(p + 3 * step);
    const __m256i ab0 = _mm256_unpacklo_epi8(a, b);
    const __m256i ab1 = _mm256_unpackhi_epi8(a, b);
    const __m256i cd0 = _mm256_unpacklo_epi8(c, d);
    const __m256i cd1 = _mm256_unpackhi_epi8(c, d);
    v[0] = _mm256_unpacklo_epi16(ab0, cd0);
    v[1] = _mm256_unpackhi_epi16(ab0, cd0);
    v[2] = _mm256_unpacklo_epi16(ab1, cd1);
    v[3] = _mm256_unpackhi_epi16(ab1, cd1);
}

/* Four lines of 64 bytes. */
AVX2 LB_INLINE void across_four(const int bits, const bool high_first,
                                fields_of f, const uint8_t *from, int64_t step,
                                uint8_t *to, int64_t panel)
{
    LB_UNROLL
    for (int half = 0; half < 2; half++) {
        __m256i v[4];
        quads_of(from + (ptrdiff_t)half * 32, step, v);
        LB_UNROLL
        for (int i = 0; i < 4; i++)
            put_fields(bits, high_first, f, v[i],
                       to + (2 * half + i / 2) * (8 / bits) * panel +
                           i % 2 * 32,
                       panel);
    }
}

AVX2 LB_INLINE void across_bits(const int bits, const bool high_first,
                                fields_of f, const uint8_t *from, int64_t step,
                                int64_t n, int64_t bytes, int64_t ahead,
                                uint8_t *to, int64_t panel)
{
    uint8_t some[4 * BYTES] = {0};
    for (int64_t k = 0; k < n; k += 4, from += 4 * step, to += NR * 4) {
        for (int l = 0; l < 4; l++)
            LB_FETCH(from, ahead + l * step);
        if (bytes == BYTES && k + 4 <= n) {
            across_four(bits, high_first, f, from, step, to, panel);
            continue;
        }
        for (int64_t l = 0; l < 4 && k + l < n; l++)
            memcpy(some + l * BYTES, from + l * step, (size_t)bytes);
        across_four(bits, high_first, f, some, BYTES, to, panel);
    }
}

AVX2 void lb_dotbyte_across_avx2(const lb_dotbyte_codes *c, const uint8_t *from,
                                 int64_t step, int64_t n, int64_t bytes,
                                 int64_t ahead, uint8_t *to, int64_t panel)
{
    const fields_of f = make_fields(c);
    if (c->bits == 2 && c->high_first)
        across_bits(2, true, f, from, step, n, bytes, ahead, to, panel);
    else if (c->bits == 2)
        across_bits(2, false, f, from, step, n, bytes, ahead, to, panel);
    else if (c->high_first)
        across_bits(1, true, f, from, step, n, bytes, ahead, to, panel);
    else
        across_bits(1, false, f, from, step, n, bytes, ahead, to, panel);
}
#endif
