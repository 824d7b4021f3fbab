/* dotbyte_pack_avx512.c - codes as panels of bytes with AVX-512.
 *
 * Codes are brought to their places before they are taken apart, four bytes at
 * a time, so the fewer their bits are the less there is to move. A nibble holds
 * one code of 4 bits, two of 2 or four of 1, and looks up any of them.
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <stddef.h>
#include <string.h>

#include "kernels/x86/dotbyte_turn.h"
#include "kernels/x86/intrin.h"

enum { NR = 32, LINES = LB_DOTBYTE_LINES, BYTES = LB_DOTBYTE_BYTES };

#define AVX512 LB_TARGET("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")

/* ---- fields -------------------------------------------------------------- */

/* Tables that nibbles look up, and in which order they come: field f is found
 * in table f % tables of nibble f / tables. */
typedef struct {
    __m512i table[4];
} fields_of;

AVX512
LB_INLINE fields_of make_fields(const lb_dotbyte_codes *c)
{
    fields_of f = {{_mm512_setzero_si512()}};
    if (c->bits == 8) return f;
    const int tables = 4 / c->bits, mask = (1 << c->bits) - 1;
    for (int t = 0; t < 4; t++) {
        uint8_t entry[16];
        const int at = c->high_first ? tables - 1 - t : t;
        for (int i = 0; i < 16; i++)
            entry[i] =
                t < tables ? c->number[i >> (at * c->bits) & mask] : (uint8_t)0;
        f.table[t] = _mm512_broadcast_i32x4(
            _mm_loadu_si128((const __m128i *)(const void *)entry));
    }
    return f;
}

AVX512
LB_INLINE void store(uint8_t *to, __m512i v)
{
    _mm512_storeu_si512((void *)to, v);
}

/* Where vectors of fields go: from one to its neighbour, and to the next two.
 */
typedef struct {
    int64_t one, two;
} gaps;

/* Sixteen quads of bytes of codes as a vector for each field. bits and
 * high_first are constants where this is inlined. */
AVX512
LB_INLINE void put_fields(const int bits, const bool high_first, fields_of f,
                          __m512i v, uint8_t *to, gaps at)
{
    if (bits == 8) {
        store(to, _mm512_xor_si512(v, _mm512_set1_epi8(-128)));
        return;
    }
    const int fields = 8 / bits;
    const __m512i nibble = _mm512_set1_epi8(15);
    const __m512i low = _mm512_and_si512(v, nibble);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble);
    LB_UNROLL
    for (int i = 0; i < fields; i++) {
        const __m512i n = (i < fields / 2) != high_first ? low : high;
        store(to + i / 2 * at.two + i % 2 * at.one,
              _mm512_shuffle_epi8(f.table[i % (4 / bits)], n));
    }
}

/* ---- depth along memory -------------------------------------------------- */

/* pieces is a constant where this is inlined, too. */
AVX512
LB_INLINE uint8_t *along_pieces(const int pieces, const int bits,
                                const bool high_first, fields_of f,
                                const uint8_t *from, int64_t step, uint8_t *to)
{
    const int64_t apart = (int64_t)NR * 4;
    const gaps at = {apart, 2 * apart};
    __m512i r[4][4], v[4];
    lb_load_pieces(pieces, from, step, r);
    LB_UNROLL
    for (int p = 0; p < pieces; p++) {
        lb_turn_quarters(r[p], v);
        LB_UNROLL
        for (int q = 0; q < 4; q++) {
            put_fields(bits, high_first, f, v[q], to, at);
            to += apart * (8 / bits);
        }
    }
    return to;
}

/* n bytes of each line, of which there are 16 whole at the last. */
AVX512
LB_INLINE void along_bits(const int bits, const bool high_first, fields_of f,
                          const uint8_t *from, int64_t step, int64_t n,
                          int64_t ahead, uint8_t *to)
{
    int64_t b = 0;
    for (; b + 64 <= n; b += 64) {
        lb_ask_half(from, step, n, ahead, b);
        to = along_pieces(4, bits, high_first, f, from + b, step, to);
    }
    for (; b < n; b += 16)
        to = along_pieces(1, bits, high_first, f, from + b, step, to);
}

AVX512
static void along_any(const lb_dotbyte_codes *c, const fields_of *f,
                      const uint8_t *from, int64_t step, int64_t n,
                      int64_t ahead, uint8_t *to)
{
    if (c->bits == 8)
        along_bits(8, false, *f, from, step, n, ahead, to);
    else if (c->bits == 4 && c->high_first)
        along_bits(4, true, *f, from, step, n, ahead, to);
    else if (c->bits == 4)
        along_bits(4, false, *f, from, step, n, ahead, to);
    else if (c->bits == 2 && c->high_first)
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
AVX512
static void along_rest(const lb_dotbyte_codes *c, const fields_of *f,
                       const uint8_t *from, int64_t step, int64_t n,
                       int64_t quads, uint8_t *to)
{
    uint8_t rest[LINES * 16] = {0};
    uint8_t out[32 * NR * 4]; /* 16 bytes of 8 fields are 32 quads */
    const int64_t bytes = (n * c->bits + 7) / 8;
    for (int l = 0; l < LINES; l++)
        memcpy(rest + (size_t)l * 16, from + l * step, (size_t)bytes);
    along_any(c, f, rest, 16, 16, 0, out);
    for (int64_t q = 0; q < quads; q++)
        memcpy(to + q * NR * 4, out + q * NR * 4, (size_t)LINES * 4);
}

AVX512
void lb_dotbyte_along_avx512(const lb_dotbyte_codes *c, const uint8_t *from,
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

/* Four lines: quads of the depth, 16 to a vector. */
AVX512
LB_INLINE void quads_of(const uint8_t *p, int64_t step, const __mmask64 *mask,
                        __m512i *v)
{
    const __m512i a = lb_line_of(p, mask[0]), b = lb_line_of(p + step, mask[1]);
    const __m512i c = lb_line_of(p + 2 * step, mask[2]);
    const __m512i d = lb_line_of(p + 3 * step, mask[3]);
    const __m512i ab0 = _mm512_unpacklo_epi8(a, b);
    const __m512i ab1 = _mm512_unpackhi_epi8(a, b);
    const __m512i cd0 = _mm512_unpacklo_epi8(c, d);
    const __m512i cd1 = _mm512_unpackhi_epi8(c, d);
    v[0] = _mm512_unpacklo_epi16(ab0, cd0);
    v[1] = _mm512_unpackhi_epi16(ab0, cd0);
    v[2] = _mm512_unpacklo_epi16(ab1, cd1);
    v[3] = _mm512_unpackhi_epi16(ab1, cd1);
}

/* Panels are of two vectors each. */
AVX512
LB_INLINE void across_bits(const int bits, const bool high_first, fields_of f,
                           const uint8_t *from, int64_t step, int64_t n,
                           int64_t bytes, int64_t ahead, uint8_t *to,
                           int64_t panel)
{
    const __mmask64 some = ~(__mmask64)0 >> (BYTES - bytes);
    const gaps at = {NR * 2, panel};
    for (int64_t k = 0; k < n; k += 4, from += 4 * step, to += NR * 4) {
        __m512i v[4];
        const __mmask64 mask[4] = {some, k + 1 < n ? some : 0,
                                   k + 2 < n ? some : 0, k + 3 < n ? some : 0};
        for (int l = 0; l < 4 && ahead; l++)
            LB_FETCH_L2(from, l * step + ahead);
        quads_of(from, step, mask, v);
        LB_UNROLL
        for (int i = 0; i < 4; i++) {
            const int first = i * (8 / bits);
            put_fields(bits, high_first, f, v[i],
                       to + first / 2 * panel + first % 2 * at.one, at);
        }
    }
}

AVX512
void lb_dotbyte_across_avx512(const lb_dotbyte_codes *c, const uint8_t *from,
                              int64_t step, int64_t n, int64_t bytes,
                              int64_t ahead, uint8_t *to, int64_t panel)
{
    const fields_of f = make_fields(c);
    if (c->bits == 8) /* else tiles ask */
        across_bits(8, false, f, from, step, n, bytes, ahead, to, panel);
    else if (c->bits == 4 && c->high_first)
        across_bits(4, true, f, from, step, n, bytes, 0, to, panel);
    else if (c->bits == 4)
        across_bits(4, false, f, from, step, n, bytes, 0, to, panel);
    else if (c->bits == 2 && c->high_first)
        across_bits(2, true, f, from, step, n, bytes, 0, to, panel);
    else if (c->bits == 2)
        across_bits(2, false, f, from, step, n, bytes, 0, to, panel);
    else if (c->high_first)
        across_bits(1, true, f, from, step, n, bytes, 0, to, panel);
    else
        across_bits(1, false, f, from, step, n, bytes, 0, to, panel);
}

AVX512
void lb_dotbyte_quads_avx512(const uint8_t *from, int64_t step, int64_t n,
                             int64_t bytes, uint8_t *to, int64_t apart)
{
    const __mmask64 some = ~(__mmask64)0 >> (BYTES - bytes);
    for (int64_t k = 0; k < n; k += 4, from += 4 * step, to += 64) {
        __m512i v[4];
        const __mmask64 mask[4] = {some, k + 1 < n ? some : 0,
                                   k + 2 < n ? some : 0, k + 3 < n ? some : 0};
        quads_of(from, step, mask, v);
        LB_UNROLL
        for (int i = 0; i < 4; i++)
            store(to + i * apart, v[i]);
    }
}

/* Two fields, found in nibbles that begin at bits a and b, constants where this
 * is inlined. */
AVX512
LB_INLINE void panel_fields(const int a, const int b, const __m512i *table,
                            const uint8_t *quads, int64_t n, uint8_t *to)
{
    const __m512i nibble = _mm512_set1_epi8(15);
    for (int64_t k = 0; k < n; k += 4, quads += 64, to += NR * 4) {
        const __m512i v = _mm512_loadu_si512((const void *)quads);
        const __m512i high = a || b ? _mm512_srli_epi16(v, 4) : v;
        store(to, _mm512_shuffle_epi8(table[0],
                                      _mm512_and_si512(a ? high : v, nibble)));
        store(to + 64, _mm512_shuffle_epi8(
                           table[1], _mm512_and_si512(b ? high : v, nibble)));
    }
}

AVX512
void lb_dotbyte_panel_avx512(const lb_dotbyte_codes *c, const uint8_t *quads,
                             int64_t n, int field, uint8_t *to)
{
    const fields_of f = make_fields(c);
    const int fields = 8 / c->bits, tables = 4 / c->bits;
    const __m512i table[2] = {f.table[field % tables],
                              f.table[(field + 1) % tables]};
    const bool a = (field < fields / 2) == c->high_first;
    const bool b = (field + 1 < fields / 2) == c->high_first;
    if (a && b)
        panel_fields(4, 4, table, quads, n, to);
    else if (a)
        panel_fields(4, 0, table, quads, n, to);
    else if (b)
        panel_fields(0, 4, table, quads, n, to);
    else
        panel_fields(0, 0, table, quads, n, to);
}
#endif
