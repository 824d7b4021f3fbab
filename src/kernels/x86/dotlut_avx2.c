/* dotlut_avx2.c - products with codes of 1 bit by lookup tables (dotlut.h): the
 * 2x32 tile for AVX2.
 *
 * 32 indices of 16 rows of w find 32 bytes in a table, lower or higher bytes of
 * sums. vpmaddubsw multiplies them by their signs and adds the two of each row:
 * a shuffle, a multiplication and an addition, twice, for 128 products.
 */
#include "kernels/dotlut.h"

#if defined(__x86_64__)
#include <stddef.h>
#include <string.h>

#include "kernels/x86/intrin.h"

enum {
    MR = 2,
    NR = LB_DOTLUT_NR,
    LINES = LB_DOTBYTE_LINES,
    HEAD = LB_DOTLUT_HEAD,
    BYTE = LB_DOTLUT_BYTE,
    TABLE = LB_DOTLUT_TABLE,
    EACH = LB_DOTLUT_EACH
};

#define AVX2 LB_TARGET("avx2,fma")

static int64_t whole_steps(int64_t n)
{
    return (n + LB_DOTBYTE_STEP - 1) / LB_DOTBYTE_STEP * LB_DOTBYTE_STEP;
}

AVX2 LB_INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

AVX2 LB_INLINE void store(uint8_t *to, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)to, v);
}

AVX2 LB_INLINE __m256i twice(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

/* ---- x ------------------------------------------------------------------- */

/* Two factors of 16 bits. */
LB_INLINE int two(int a, int b)
{
    return (int)((unsigned)a & 0xffff) | (int)((unsigned)b << 16);
}

/* Each half of v has four numbers twice, as words: entries 0 to 3 of a table,
 * then 4 to 7. */
AVX2 LB_INLINE void put_table(__m256i v, uint8_t *to)
{
    const __m256i first =
        _mm256_setr_epi32(two(-1, -1), two(1, -1), two(-1, 1), two(1, 1),
                          two(-1, -1), two(1, -1), two(-1, 1), two(1, 1));
    const __m256i less = _mm256_set1_epi32(two(-1, 1));
    const __m256i more = _mm256_set1_epi32(two(1, 1));
    const __m256i offset = _mm256_set1_epi32(LB_DOTLUT_OFFSET);
    const __m256i a = _mm256_add_epi32(
        offset, _mm256_madd_epi16(_mm256_shuffle_epi32(v, 0x00), first));
    const __m256i b = _mm256_shuffle_epi32(v, 0x55);
    const __m256i all =
        _mm256_packus_epi32(_mm256_add_epi32(a, _mm256_madd_epi16(b, less)),
                            _mm256_add_epi32(a, _mm256_madd_epi16(b, more)));
    const __m256i bytes =
        _mm256_packus_epi16(_mm256_and_si256(all, _mm256_set1_epi16(255)),
                            _mm256_srli_epi16(all, 8));
    store(to, _mm256_permute4x64_epi64(bytes, 0xd8));
}

AVX2 static int32_t round_row(int64_t n, const float *x, float factor,
                              int planes, int fields, int8_t *to, int64_t apart,
                              int64_t plane)
{
    const __m256 f = _mm256_set1_ps(factor);
    __m256i sums = _mm256_setzero_si256();
    int32_t lane[8], sum = 0;
    (void)planes;
    (void)fields;
    (void)plane;
    for (int64_t left = whole_steps(n); left > 0; left -= EACH, to += apart) {
        float rest[EACH] = {0};
        const float *from = x;
        if (n < EACH && n > 0) memcpy(rest, x, (size_t)n * sizeof *x);
        if (n < EACH) from = rest;
        const __m256i v =
            _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(from), f));
        put_table(_mm256_packs_epi32(v, v), (uint8_t *)to);
        sums = _mm256_add_epi32(sums, v);
        x += n < EACH ? 0 : EACH;
        n -= EACH;
    }
    store((uint8_t *)lane, sums);
    for (int i = 0; i < 8; i++)
        sum += lane[i];
    return sum;
}

/* ---- w ------------------------------------------------------------------- */

typedef struct {
    __m256i entry, sign;
} halves;

AVX2 LB_INLINE halves halves_of(const lb_dotbyte_codes *c, bool reversed)
{
    const lb_dotlut_index t = lb_dotlut_index_of(c, reversed);
    return (halves){twice(t.entry), twice(t.sign)};
}

/* Eight codes of 16 rows; adds their signs to the head. */
AVX2 LB_INLINE void put_byte(const bool reversed, halves t, __m128i v,
                             uint8_t *to, __m256i *head)
{
    const __m128i nibble = _mm_set1_epi8(15);
    const __m128i low = _mm_and_si128(v, nibble);
    const __m128i high = _mm_and_si128(_mm_srli_epi16(v, 4), nibble);
    const __m128i a = reversed ? high : low, b = reversed ? low : high;
    const __m256i both =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi8(a, b)),
                                _mm_unpackhi_epi8(a, b), 1);
    const __m256i sign = _mm256_shuffle_epi8(t.sign, both);
    store(to, _mm256_or_si256(_mm256_shuffle_epi8(t.entry, both),
                              _mm256_set1_epi16(0x0800)));
    store(to + 32, sign);
    *head = _mm256_add_epi16(*head,
                             _mm256_maddubs_epi16(_mm256_set1_epi8(1), sign));
}

AVX2 LB_INLINE void put_head(__m256i head, uint8_t *to)
{
    store(to, _mm256_mullo_epi16(head, _mm256_set1_epi16(-128)));
}

/* One round of a 16x16 transpose of bytes; after four of them line p has byte p
 * of every line. */
AVX2 LB_INLINE void interleave(const __m128i *from, __m128i *to)
{
    LB_UNROLL
    for (int l = 0; l < 8; l++) {
        to[2 * l] = _mm_unpacklo_epi8(from[l], from[l + 8]);
        to[2 * l + 1] = _mm_unpackhi_epi8(from[l], from[l + 8]);
    }
}

/* 16 bytes of 16 lines, of which `bytes` go to a panel. */
AVX2 LB_INLINE void along_16(const bool reversed, halves t, const uint8_t *from,
                             int64_t step, int64_t bytes, uint8_t *to,
                             __m256i *head)
{
    __m128i x[LINES], y[LINES];
    LB_UNROLL
    for (int l = 0; l < LINES; l++)
        x[l] =
            _mm_loadu_si128((const __m128i *)(const void *)(from + l * step));
    interleave(x, y);
    interleave(y, x);
    interleave(x, y);
    interleave(y, x);
    if (bytes == 16) {
        LB_UNROLL
        for (int b = 0; b < 16; b++)
            put_byte(reversed, t, x[b], to + (ptrdiff_t)b * BYTE, head);
        return;
    }
    for (int b = 0; b < bytes; b++)
        put_byte(reversed, t, x[b], to + (ptrdiff_t)b * BYTE, head);
}

AVX2 LB_INLINE void along_any(const bool reversed, const lb_dotbyte_codes *c,
                              const uint8_t *from, int64_t step, int64_t n,
                              uint8_t *to)
{
    const halves t = halves_of(c, reversed);
    const int64_t bytes = (n + 7) / 8, all = whole_steps(n) / 8;
    uint8_t *const start = to;
    __m256i head = _mm256_setzero_si256();
    int64_t b = 0;
    to += HEAD;
    for (; b + 16 <= bytes; b += 16, to += (ptrdiff_t)16 * BYTE)
        along_16(reversed, t, from + b, step, 16, to, &head);
    if (b < all) {
        uint8_t rest[LINES * 16] = {0};
        for (int l = 0; l < LINES && b < bytes; l++)
            memcpy(rest + (size_t)l * 16, from + b + l * step,
                   (size_t)(bytes - b));
        along_16(reversed, t, rest, 16, all - b, to, &head);
    }
    put_head(head, start);
}

AVX2 static void along(const lb_dotbyte_codes *c, const uint8_t *from,
                       int64_t step, int64_t n, int64_t ahead, uint8_t *to)
{
    (void)ahead;
    if (c->high_first)
        along_any(true, c, from, step, n, to);
    else
        along_any(false, c, from, step, n, to);
}

/* Swaps the bits of a that are `shift` above the mask's with those of b. */
AVX2 LB_INLINE void swap_bits(__m128i *a, __m128i *b, __m128i mask,
                              const int shift)
{
    const __m128i t =
        _mm_and_si128(_mm_xor_si128(_mm_srli_epi16(*a, shift), *b), mask);
    *b = _mm_xor_si128(*b, t);
    *a = _mm_xor_si128(*a, _mm_slli_epi16(t, shift));
}

/* 8x8 bits of each byte of eight lines: x[f] has bit f of all of them. */
AVX2 LB_INLINE void turn_bits(__m128i *x)
{
    LB_UNROLL
    for (int l = 0; l < 4; l++)
        swap_bits(&x[l], &x[l + 4], _mm_set1_epi8(0x0f), 4);
    LB_UNROLL
    for (int l = 0; l < 8; l++)
        if (!(l & 2)) swap_bits(&x[l], &x[l + 2], _mm_set1_epi8(0x33), 2);
    LB_UNROLL
    for (int l = 0; l < 8; l += 2)
        swap_bits(&x[l], &x[l + 1], _mm_set1_epi8(0x55), 1);
}

/* 16 bytes of all lines: 128 slots. */
AVX2 LB_INLINE void across_16(const lb_dotbyte_codes *c, halves t,
                              const uint8_t *from, int64_t step, int64_t n,
                              int64_t bytes, uint8_t *to, int64_t panel)
{
    const int flip = c->high_first ? 7 : 0;
    __m256i head[8];
    LB_UNROLL
    for (int f = 0; f < 8; f++)
        head[f] = _mm256_setzero_si256();
    uint8_t *at = to + HEAD;
    for (int64_t k = 0; k < whole_steps(n); k += 8, at += BYTE) {
        __m128i x[8];
        uint8_t some[8 * 16] = {0};
        const uint8_t *lines = from + k * step;
        const bool whole = bytes == 16 && k + 8 <= n;
        for (int64_t l = 0; l < 8 && k + l < n && !whole; l++)
            memcpy(some + l * 16, lines + l * step, (size_t)bytes);
        LB_UNROLL
        for (int l = 0; l < 8; l++)
            x[l] = _mm_loadu_si128((
                const __m128i *)(const void *)(whole
                                                   ? lines + l * step
                                                   : some + (ptrdiff_t)l * 16));
        turn_bits(x);
        LB_UNROLL
        for (int f = 0; f < 8; f++) {
            const int slots = f ^ flip;
            put_byte(false, t, x[f],
                     at + slots / 2 * panel + (ptrdiff_t)(slots % 2) * 64,
                     &head[f]);
        }
    }
    LB_UNROLL
    for (int f = 0; f < 8; f++) {
        const int slots = f ^ flip;
        put_head(head[f], to + slots / 2 * panel + (ptrdiff_t)(slots % 2) * 64);
    }
}

AVX2 static void across(const lb_dotbyte_codes *c, const uint8_t *from,
                        int64_t step, int64_t n, int64_t bytes, int64_t ahead,
                        uint8_t *to, int64_t panel)
{
    const halves t = halves_of(c, false);
    (void)ahead;
    for (int64_t b = 0; b < bytes; b += 16, to += 4 * panel)
        across_16(c, t, from + b, step, n, bytes - b < 16 ? bytes - b : 16, to,
                  panel);
}

/* ---- tiles --------------------------------------------------------------- */

/* Of 16 rows of w, two times: of the lower bytes of sums and of the higher. */
typedef struct {
    __m256i part[2][2];
} sums;

/* The addition by hand: compilers copy the sum otherwise. */
AVX2 LB_INLINE __m256i look_up(__m256i sum, __m256i table, __m256i index,
                               __m256i sign)
{
    const __m256i found =
        _mm256_maddubs_epi16(_mm256_shuffle_epi8(table, index), sign);
    LB_ADD_16(sum, found);
    return sum;
}

/* rows is a constant where this is inlined, here and below. */
AVX2 LB_INLINE void add_byte(const int rows, const int8_t *table,
                             const uint8_t *codes, sums *s)
{
    LB_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m256i index = load(codes + (ptrdiff_t)64 * h);
        const __m256i sign = load(codes + (ptrdiff_t)64 * h + 32);
        LB_UNROLL
        for (int i = 0; i < rows; i++)
            LB_UNROLL
        for (int p = 0; p < 2; p++)
            s[i].part[h][p] =
                look_up(s[i].part[h][p],
                        twice(table + (ptrdiff_t)i * TABLE + (ptrdiff_t)16 * p),
                        index, sign);
    }
}

/* Eight rows of w. */
AVX2 LB_INLINE void put_8(__m256i sum, const lb_dotbyte_x *x, int i,
                          const float *ws, bool first, float *c)
{
    const __m256i all = _mm256_add_epi32(sum, _mm256_set1_epi32(x->start[i]));
    const __m256 t =
        _mm256_mul_ps(_mm256_cvtepi32_ps(all), _mm256_loadu_ps(ws));
    const __m256 old = first ? _mm256_setzero_ps() : _mm256_loadu_ps(c);
    _mm256_storeu_ps(c, _mm256_fmadd_ps(t, _mm256_set1_ps(x->scale[i]), old));
}

AVX2 LB_INLINE void tile_rows(const int rows, const lb_dotbyte_x *x, int64_t k,
                              const lb_dotbyte_w *w, bool first, float *c)
{
    const __m256i weight = _mm256_set1_epi32(256 << 16 | 1);
    const uint8_t *codes = w->bytes + HEAD;
    const int8_t *table = x->bytes;
    sums s[MR];
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < 2; h++)
            s[i].part[h][0] = s[i].part[h][1] =
                load(w->bytes + (ptrdiff_t)64 * h);
    for (; k > 0; k -= EACH, codes += BYTE, table += (ptrdiff_t)rows * TABLE)
        add_byte(rows, table, codes, s);
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < 2; h++) {
            const __m256i low = s[i].part[h][0], high = s[i].part[h][1];
            const __m256i a =
                _mm256_madd_epi16(_mm256_unpacklo_epi16(low, high), weight);
            const __m256i b =
                _mm256_madd_epi16(_mm256_unpackhi_epi16(low, high), weight);
            float *const at = c + (ptrdiff_t)i * NR + (ptrdiff_t)16 * h;
            const float *const ws = w->scale + (ptrdiff_t)16 * h;
            put_8(_mm256_permute2x128_si256(a, b, 0x20), x, i, ws, first, at);
            put_8(_mm256_permute2x128_si256(a, b, 0x31), x, i, ws + 8, first,
                  at + 8);
        }
}

AVX2 static void tile(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                      bool first, float *c, lb_dotbyte_ask *ask)
{
    (void)ask; /* codes of 1 bit are soon there */
    if (x->rows == 1)
        tile_rows(1, x, k, w, first, c);
    else
        tile_rows(2, x, k, w, first, c);
}

const lb_dotbyte lb_dotlut_avx2 = {
    .name = "dot pairs avx2",
    .size = 1,
    .x_size = 4,
    .piece = TABLE,
    .mr = MR,
    .nr = NR,
    .most_w = 2,
    .widths = 1,
    .bias = 1,
    .round = round_row,
    .along = along,
    .across = across,
    .tile = tile,
};
#endif
