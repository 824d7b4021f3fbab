/* dotword_avx512vnni.c - products of words with vpdpwssd (dotbyte_tile.h), and
 * codes of 4 bits as panels of them.
 *
 * vpermw looks a level up by the low five bits of a word: with the sixteen
 * levels twice in a register, the low four, and no mask is needed. Two bytes of
 * codes are four such words, one shift apart.
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <stddef.h>
#include <string.h>

#include "kernels/x86/dotbyte_tile.h"
#include "kernels/x86/dotbyte_turn.h"

enum {
    NR = LB_TILE_NR,
    LINES = LB_DOTBYTE_LINES,
    BYTES = LB_DOTBYTE_BYTES,
    STEP = LB_DOTBYTE_STEP,
    FIELDS = 4 /* of two bytes */
};

/* ---- x ------------------------------------------------------------------- */

/* Where word w of the 32 of a step comes from: pairs of those that are as far
 * apart as there are fields in turn. */
LB_AVX512
LB_INLINE __m512i words_for(int fields)
{
    int16_t from[32];
    for (int i = 0; i < 32; i++) {
        const int group = 2 * fields, e = i % group;
        from[i / group * group + e % fields * 2 + e / fields] = (int16_t)i;
    }
    return _mm512_loadu_si512((const void *)from);
}

LB_AVX512
static int32_t round_row(int64_t n, const float *x, float factor, int planes,
                         int fields, int8_t *to, int64_t apart, int64_t plane)
{
    const __m512 f = _mm512_set1_ps(factor);
    const __m512i order = words_for(fields);
    __m512i sum = _mm512_setzero_si512();
    (void)planes;
    (void)plane;
    for (; n > 0; n -= STEP, x += STEP, to += STEP / 2 * apart) {
        int8_t byte[64];
        const __m512i a = lb_round_16(n, x, f),
                      b = lb_round_16(n - 16, x + 16, f);
        const __m512i words =
            _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(a)),
                               _mm512_cvtepi32_epi16(b), 1);
        sum = _mm512_add_epi32(sum, _mm512_add_epi32(a, b));
        _mm512_storeu_si512((void *)byte,
                            _mm512_permutexvar_epi16(order, words));
        for (int64_t q = 0; q < STEP / 2; q++)
            memcpy(to + q * apart, byte + q * 4, 4);
    }
    return _mm512_reduce_add_epi32(sum);
}

/* ---- depth along memory -------------------------------------------------- */

LB_AVX512
LB_INLINE __m512i levels_of(const lb_dotbyte_codes *c)
{
    return _mm512_broadcast_i64x4(
        _mm256_loadu_si256((const __m256i *)(const void *)c->level));
}

/* Sixteen quads of bytes of codes as a vector of pairs for each field. */
LB_AVX512
LB_INLINE void put_fields(const bool high_first, __m512i level, __m512i v,
                          uint8_t *to)
{
    const int flip = high_first ? 1 : 0;
    LB_UNROLL
    for (int i = 0; i < FIELDS; i++) {
        const __m512i code = (i ^ flip) == 0   ? v
                             : (i ^ flip) == 1 ? _mm512_srli_epi16(v, 4)
                             : (i ^ flip) == 2 ? _mm512_srli_epi16(v, 8)
                                               : _mm512_srli_epi16(v, 12);
        _mm512_storeu_si512((void *)(to + (ptrdiff_t)i * NR * 4),
                            _mm512_permutexvar_epi16(code, level));
    }
}

/* pieces and high_first are constants where this is inlined. */
LB_AVX512
LB_INLINE uint8_t *along_pieces(const int pieces, const bool high_first,
                                __m512i level, const uint8_t *from,
                                int64_t step, uint8_t *to)
{
    __m512i r[4][4], v[4];
    lb_load_pieces(pieces, from, step, r);
    LB_UNROLL
    for (int p = 0; p < pieces; p++) {
        lb_turn_quarters(r[p], v);
        LB_UNROLL
        for (int q = 0; q < 4; q++) {
            put_fields(high_first, level, v[q], to);
            to += FIELDS * NR * 4;
        }
    }
    return to;
}

LB_AVX512
LB_INLINE void along_order(const bool high_first, __m512i level,
                           const uint8_t *from, int64_t step, int64_t n,
                           int64_t ahead, uint8_t *to)
{
    int64_t b = 0;
    for (; b + 64 <= n; b += 64) {
        lb_ask_half(from, step, n, ahead, b);
        to = along_pieces(4, high_first, level, from + b, step, to);
    }
    for (; b < n; b += 16)
        to = along_pieces(1, high_first, level, from + b, step, to);
}

/* n bytes of each line, 16 whole ones at the last. */
LB_AVX512
static void along_any(const lb_dotbyte_codes *c, const uint8_t *from,
                      int64_t step, int64_t n, int64_t ahead, uint8_t *to)
{
    const __m512i level = levels_of(c);
    if (c->high_first)
        along_order(true, level, from, step, n, ahead, to);
    else
        along_order(false, level, from, step, n, ahead, to);
}

/* Fewer than 16 bytes of each line, n numbers. */
LB_AVX512
static void along_rest(const lb_dotbyte_codes *c, const uint8_t *from,
                       int64_t step, int64_t n, uint8_t *to)
{
    uint8_t rest[LINES * 16] = {0};
    uint8_t out[16 * NR * 4]; /* 16 bytes of codes are 16 pairs */
    const int64_t bytes = (n + 1) / 2, pairs = (n + 7) / 8 * 4;
    for (int l = 0; l < LINES; l++)
        memcpy(rest + (size_t)l * 16, from + l * step, (size_t)bytes);
    along_any(c, rest, 16, 16, 0, out);
    for (int64_t q = 0; q < pairs; q++)
        memcpy(to + q * NR * 4, out + q * NR * 4, (size_t)LINES * 4);
}

LB_AVX512
void lb_dotword_along_avx512(const lb_dotbyte_codes *c, const uint8_t *from,
                             int64_t step, int64_t n, int64_t ahead,
                             uint8_t *to)
{
    const int64_t whole = n / 32 * 16, done = whole * 2;
    along_any(c, from, step, whole, ahead, to);
    if (done < n)
        along_rest(c, from + whole, step, n - done, to + done * 2 * NR);
}

/* ---- rows along memory --------------------------------------------------- */

/* Two lines: of 16 bytes of both, all four codes to each pair. */
LB_AVX512
LB_INLINE void pairs_of(const uint8_t *p, int64_t step, __mmask64 first,
                        __mmask64 second, __m512i *v)
{
    const __m512i a = lb_line_of(p, first), b = lb_line_of(p + step, second);
    const __m512i ab0 = _mm512_unpacklo_epi8(a, b);
    const __m512i ab1 = _mm512_unpackhi_epi8(a, b);
    v[0] = _mm512_unpacklo_epi16(ab0, ab0);
    v[1] = _mm512_unpackhi_epi16(ab0, ab0);
    v[2] = _mm512_unpacklo_epi16(ab1, ab1);
    v[3] = _mm512_unpackhi_epi16(ab1, ab1);
}

/* Ratios of two lines for codes from number `at` on. */
LB_AVX512
LB_INLINE __m512i ratios_at(const lb_dotbyte_codes *c, int64_t k, int at)
{
    int32_t pair;
    memcpy(&pair, c->ratio + at / c->share * c->apart + k, sizeof pair);
    return _mm512_set1_epi32(pair);
}

LB_AVX512
void lb_dotword_across_avx512(const lb_dotbyte_codes *c, const uint8_t *from,
                              int64_t step, int64_t n, int64_t bytes,
                              int64_t ahead, uint8_t *to, int64_t panel)
{
    const __m512i level = levels_of(c);
    const __mmask64 some = ~(__mmask64)0 >> (BYTES - bytes);
    /* The lower byte of a pair's words is the first line, the upper the next.
     */
    const __m512i low = _mm512_set1_epi32(8 << 16);
    const __m512i high = _mm512_set1_epi32(12 << 16 | 4);
    const __m512i shift[2] = {c->high_first ? high : low,
                              c->high_first ? low : high};
    (void)ahead; /* tiles ask */
    for (int64_t k = 0; k < n; k += 2, from += 2 * step, to += NR * 4) {
        __m512i v[4];
        pairs_of(from, step, some, k + 1 < n ? some : 0, v);
        LB_UNROLL
        for (int i = 0; i < 4; i++) {
            uint8_t *const at = to + i * panel;
            __m512i a = _mm512_permutexvar_epi16(
                _mm512_srlv_epi16(v[i], shift[0]), level);
            __m512i b = _mm512_permutexvar_epi16(
                _mm512_srlv_epi16(v[i], shift[1]), level);
            if (c->ratio) {
                const __m512i ratio = ratios_at(c, k, 32 * i);
                a = _mm512_mulhrs_epi16(a, ratio);
                b = _mm512_mulhrs_epi16(b, ratio);
            }
            _mm512_storeu_si512((void *)at, a);
            _mm512_storeu_si512((void *)(at + 64), b);
        }
    }
}

/* ---- tiles --------------------------------------------------------------- */

LB_AVX512
static void tile(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                 bool first, float *c, lb_dotbyte_ask *ask)
{
    lb_tile_any(true, x, k, w, first, c, ask);
}

const lb_dotbyte lb_dotword_vnni = {
    .name = "dot i16 rows avx512vnni",
    .size = 2,
    .x_size = 2,
    .piece = 4,
    .asks = true,
    .mr = LB_TILE_MR,
    .nr = LB_TILE_NR,
    .widths = 4,
    .round = round_row,
    .along = lb_dotword_along_avx512,
    .across = lb_dotword_across_avx512,
    .tile = tile,
};
#endif
