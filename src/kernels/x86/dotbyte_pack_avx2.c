/* dotbyte_pack_avx2.c - codes as panels of bytes with AVX2.
 *
 * As dotbyte_pack_avx512.c, in halves.
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <stddef.h>
#include <string.h>

#include "kernels/x86/dotbyte_turn_avx2.h"

#define AVX2 LB_AVX2_PACK

enum { NR = 16, LINES = LB_DOTBYTE_LINES, BYTES = LB_DOTBYTE_BYTES };

/* ---- fields -------------------------------------------------------------- */

/* Tables that nibbles look up: field f is found in table f % tables of nibble
 * f / tables, these in the order in which they come. */
typedef struct {
    __m256i table[4];
} fields_of;

AVX2 LB_INLINE fields_of make_fields(const lb_dotbyte_codes *c)
{
    fields_of f = {{_mm256_setzero_si256()}};
    if (c->bits == 8) return f;
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
    if (bits == 8) {
        _mm256_storeu_si256((__m256i *)(void *)to,
                            _mm256_xor_si256(v, _mm256_set1_epi8(-128)));
        return;
    }
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

/* function(bits, high_first, ...) for what codes are. */
#define BY_WIDTH(c, function, ...)                                             \
    do {                                                                       \
        if ((c)->bits == 8)                                                    \
            function(8, false, __VA_ARGS__);                                   \
        else if ((c)->bits == 4 && (c)->high_first)                            \
            function(4, true, __VA_ARGS__);                                    \
        else if ((c)->bits == 4)                                               \
            function(4, false, __VA_ARGS__);                                   \
        else if ((c)->bits == 2 && (c)->high_first)                            \
            function(2, true, __VA_ARGS__);                                    \
        else if ((c)->bits == 2)                                               \
            function(2, false, __VA_ARGS__);                                   \
        else if ((c)->high_first)                                              \
            function(1, true, __VA_ARGS__);                                    \
        else                                                                   \
            function(1, false, __VA_ARGS__);                                   \
    } while (0)

/* ---- depth along memory -------------------------------------------------- */

/* n bytes of each line, a multiple of 16. */
AVX2 LB_INLINE void along_bits(const int bits, const bool high_first,
                               fields_of f, const uint8_t *from, int64_t step,
                               int64_t n, uint8_t *to)
{
    const int64_t apart = (int64_t)NR * 4;
    for (int64_t b = 0; b < n; b += 16) {
        LB_UNROLL
        for (int half = 0; half < 2; half++) {
            __m256i v[4];
            lb_turn_8_lines(from + b + half * 8 * step, step, v);
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
                           uint8_t *to)
{
    BY_WIDTH(c, along_bits, *f, from, step, n, to);
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
    along_any(c, f, rest, 16, 16, out);
    memcpy(to, out, (size_t)(quads * NR * 4));
}

AVX2 void lb_dotbyte_along_avx2(const lb_dotbyte_codes *c, const uint8_t *from,
                                int64_t step, int64_t n, int64_t ahead,
                                uint8_t *to)
{
    const fields_of f = make_fields(c);
    (void)ahead; /* tiles ask, here and below */
    const int64_t whole = n * c->bits / 8 / 16 * 16;
    const int64_t done = whole * 8 / c->bits;
    const int64_t group = 4 * (8 / c->bits); /* numbers of four bytes */
    along_any(c, &f, from, step, whole, to);
    if (done < n)
        along_rest(c, &f, from + whole, step, n - done,
                   (n - done + group - 1) / group * (8 / c->bits),
                   to + done * NR);
}

/* ---- rows along memory --------------------------------------------------- */

/* 32 bytes of four lines: quads of the depth, 8 to a vector. */
AVX2 LB_INLINE void quads_of(const uint8_t *p, int64_t step, __m256i *v)
{
    const __m256i a = lb_line_of_avx2(p), b = lb_line_of_avx2(p + step);
    const __m256i c = lb_line_of_avx2(p + 2 * step),
                  d = lb_line_of_avx2(p + 3 * step);
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
                                int64_t n, int64_t bytes, uint8_t *to,
                                int64_t panel)
{
    uint8_t some[4 * BYTES] = {0};
    for (int64_t k = 0; k < n; k += 4, from += 4 * step, to += NR * 4) {
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
    (void)ahead;
    BY_WIDTH(c, across_bits, f, from, step, n, bytes, to, panel);
}
#endif
