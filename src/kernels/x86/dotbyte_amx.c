/* dotbyte_amx.c - products of bytes and of words with AMX tiles.
 *
 *                w: 32 rows         Panels of w lie as tile B has them: a quad
 *             +------+------+       of the depth of 16 rows is a row of it. x
 *   x: lines  |  B6  |  B7  |       lies as tile A has it: 64 bytes of the
 *  +----+     +------+------+       depth of a line are a row. Lines are the
 *  | A4 | 16  |  C0  |  C1  |       rows of x, digit by digit: 32 in one digit,
 *  | A5 | 16  |  C2  |  C3  |       or 16 in two, whose sums are added in the
 *  +----+     +------+------+       order of the VNNI kernels. Bits are theirs.
 *
 * Words are two bytes each. Those of w are taken apart once, when they have
 * been packed: a pair of vectors of two words to each row becomes one of upper
 * bytes, with signs, and one of lower bytes, without. Then B6 and B7 are these
 * of 16 rows, and the four tiles of C are multiplied by 2^16, 2^8, 2^8 and 1.
 *
 * Tiles are configured by begin and released by end, at either end of a unit of
 * work. All have 16 rows; where scales change after 32 of the depth, tiles are
 * 32 deep. Lines of A that are not in x have sums that nobody reads.
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <stddef.h>

#include "kernels/x86/dotbyte_tile.h"
#include "kernels/x86/intrin_amx.h"

#define LB_AMX                                                                 \
    LB_TARGET("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-int8")

enum {
    LINES = 2 * LB_TILE_ROWS,
    NR = LB_TILE_NR, /* two tiles */
    PIECE = LB_TILE_BYTES
};

/* ---- units --------------------------------------------------------------- */

/* How deep tiles are, if so much of the depth shares scales. */
LB_INLINE int depth_of(int64_t share)
{
    return share % PIECE ? PIECE / 2 : PIECE;
}

/* Tiles 0 to 3 are sums, 4 and 5 have x, 6 and 7 w. */
#define CONFIG(depth)                                                          \
    {                                                                          \
        .palette = 1, .bytes = {64, 64, 64, 64, (depth), (depth), 64, 64},     \
        .rows = {16, 16, 16, 16, 16, 16, (depth) / 4, (depth) / 4},            \
    }
static const lb_tile_config deep = CONFIG(PIECE), shallow = CONFIG(PIECE / 2);

LB_AMX
static void begin(int64_t share)
{
    LB_TILE_BARRIER();
    _tile_loadconfig(depth_of(share) == PIECE ? &deep : &shallow);
}

LB_AMX
static void end(void)
{
    _tile_release();
}

/* ---- x ------------------------------------------------------------------- */

/* As the kernels for VNNI, with the quads of a row side by side. */
LB_AMX
static int32_t round_bytes(int64_t n, const float *x, float factor, int planes,
                           int fields, int8_t *to, int64_t apart, int64_t plane)
{
    (void)apart;
    return lb_dotbyte_vnni.round(n, x, factor, planes, fields, to, 4, plane);
}

/* Words are rounded, in the order of the panel, then taken apart. */
LB_AMX
static int32_t round_words(int64_t n, const float *x, float factor, int planes,
                           int fields, int8_t *to, int64_t apart, int64_t plane)
{
    enum { SOME = 128, VECTOR = 32 };
    const __m512i half = _mm512_set1_epi16(128);
    int32_t sum = 0;
    (void)planes;
    (void)apart;
    for (; n > 0; n -= SOME, x += SOME) {
        int16_t word[SOME];
        const int64_t some = n < SOME ? n : SOME;
        sum += lb_dotword_vnni.round(some, x, factor, 1, fields,
                                     (int8_t *)(void *)word, 4, 0);
        for (int64_t k = 0; k < some; k += VECTOR, to += VECTOR) {
            const __m512i v = _mm512_loadu_si512((const void *)(word + k));
            const __m512i high =
                _mm512_srai_epi16(_mm512_add_epi16(v, half), 8);
            _mm256_storeu_si256((__m256i *)(void *)to,
                                _mm512_cvtepi16_epi8(high));
            _mm256_storeu_si256((__m256i *)(void *)(to + plane),
                                _mm512_cvtepi16_epi8(v));
        }
    }
    return sum;
}

/* ---- w ------------------------------------------------------------------- */

/* Bytes a and b of both words of each pair: where 16 bytes come from, those of
 * the first pair and those of the second. */
LB_AMX
LB_INLINE __m512i bytes_of(__m512i first, __m512i second, int odd)
{
    int8_t from[2][16];
    for (int i = 0; i < 16; i++) {
        const int8_t at = (int8_t)(i / 4 * 4 + i % 2 * 2 + odd);
        from[0][i] = i % 4 < 2 ? at : -1;
        from[1][i] = i % 4 < 2 ? -1 : at;
    }
    return _mm512_or_si512(
        _mm512_shuffle_epi8(first, _mm512_broadcast_i32x4(_mm_loadu_si128(
                                       (const __m128i *)(void *)from[0]))),
        _mm512_shuffle_epi8(second, _mm512_broadcast_i32x4(_mm_loadu_si128(
                                        (const __m128i *)(void *)from[1]))));
}

LB_AMX
static void split_words(uint8_t *panel, int64_t n)
{
    for (int64_t k = 0; k < n; k += 4, panel += NR * 8)
        for (int h = 0; h < NR * 4; h += 64) {
            uint8_t *const a = panel + h, *const b = a + NR * 4;
            const __m512i first = _mm512_loadu_si512((const void *)a);
            const __m512i second = _mm512_loadu_si512((const void *)b);
            _mm512_storeu_si512((void *)a, bytes_of(first, second, 1));
            _mm512_storeu_si512((void *)b, bytes_of(first, second, 0));
        }
}

/* ---- tiles --------------------------------------------------------------- */

typedef int32_t tile_sums[LINES][NR];

/* With each row of tile B a line that comes next is asked for. */
LB_INLINE void ask_for(lb_dotbyte_ask *ask, const uint8_t *w, int64_t quads)
{
    while (quads > 0 && ask && ask->columns) {
        lb_tile_asking a;
        const int64_t some = lb_tile_ask_next(ask, w, quads, &a);
        for (int64_t q = 0; q < some; q++, a.at += (uintptr_t)a.step)
            __builtin_prefetch((const void *)a.at, 0, 2);
        quads -= some;
    }
}

/* Sums of a block, `left` and `right` being the two tiles of w from one quad to
 * the next. words is a constant where this is inlined, and so is two: whether
 * there are more lines than a tile has rows. */
LB_AMX
LB_INLINE void add_block(const bool words, const bool two,
                         const lb_dotbyte_x *x, int64_t k, const uint8_t *left,
                         const uint8_t *right, lb_dotbyte_ask *ask,
                         int32_t (*sum)[NR])
{
    const int64_t depth = depth_of(x->share), row = x->row;
    const int64_t apart = words ? NR * 8 : NR * 4; /* from quad to quad */
    const int64_t step = sizeof *sum;
    const int8_t *from = x->bytes;
    _tile_zero(0);
    _tile_zero(1);
    if (two) _tile_zero(2);
    if (two) _tile_zero(3);
    for (; k > 0; k -= depth, from += depth) {
        ask_for(ask, left, depth / 4);
        _tile_loadd(4, from, row);
        _tile_loadd(6, left, apart);
        if (words)
            _tile_dpbssd(0, 4, 6);
        else
            _tile_dpbsud(0, 4, 6);
        _tile_loadd(7, right, apart);
        _tile_dpbsud(1, 4, 7);
        if (two) {
            _tile_loadd(5, from + LB_TILE_ROWS * row, row);
            if (words)
                _tile_dpbssd(2, 5, 6);
            else
                _tile_dpbsud(2, 5, 6);
            _tile_dpbsud(3, 5, 7);
        }
        left += depth / 4 * apart;
        right += depth / 4 * apart;
    }
    _tile_stored(0, sum[0], step);
    _tile_stored(1, sum[0] + LB_TILE_ROWS, step);
    if (two) _tile_stored(2, sum[LB_TILE_ROWS], step);
    if (two) _tile_stored(3, sum[LB_TILE_ROWS] + LB_TILE_ROWS, step);
}

/* Sums of 16 rows of w as f32, times scales, are added to c. */
LB_AMX
LB_INLINE void put(const lb_dotbyte_x *x, int i, __m512i sum, const float *ws,
                   bool first, float *c)
{
    const __m512 old = first ? _mm512_setzero_ps() : _mm512_loadu_ps(c);
    const __m512 part =
        _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(ws));
    _mm512_storeu_ps(c,
                     _mm512_fmadd_ps(part, _mm512_set1_ps(x->scale[i]), old));
}

LB_AMX
LB_INLINE __m512i load_sums(const int32_t *p)
{
    return _mm512_loadu_si512((const void *)p);
}

LB_AMX
LB_INLINE __m512i times_256(__m512i v)
{
    return _mm512_slli_epi32(v, 8);
}

/* Two tiles of w are 32 rows of it. Sums of a digit, times 256, are added to
 * those of the next. */
LB_AMX
LB_INLINE void byte_block(const bool two, const lb_dotbyte_x *x, int64_t k,
                          const lb_dotbyte_w *w, bool first, float *c,
                          lb_dotbyte_ask *ask, int32_t (*sum)[NR])
{
    add_block(false, two, x, k, w->bytes, w->bytes + 64, ask, sum);
    for (int i = 0; i < x->rows; i++) {
        const __m512i start = _mm512_set1_epi32(x->start[i]);
        for (int v = 0; v < NR; v += 16) {
            __m512i all = load_sums(sum[i] + v);
            for (int p = 1; p < x->planes; p++)
                all = _mm512_add_epi32(times_256(all),
                                       load_sums(sum[p * x->rows + i] + v));
            put(x, i, _mm512_add_epi32(all, start), w->scale + v, first,
                c + i * NR + v);
        }
    }
}

/* Two tiles are the upper and the lower bytes of 16 rows. */
LB_AMX
LB_INLINE void word_block(const bool two, const lb_dotbyte_x *x, int64_t k,
                          const lb_dotbyte_w *w, bool first, float *c,
                          lb_dotbyte_ask *ask, int32_t (*sum)[NR])
{
    for (int v = 0; v < NR; v += 16) {
        const uint8_t *const high = w->bytes + v * 4;
        add_block(true, two, x, k, high, high + NR * 4, ask, sum);
        for (int i = 0; i < x->rows; i++) {
            const int32_t *const upper = sum[i], *const lower =
                                                     sum[x->rows + i];
            const __m512i mid =
                _mm512_add_epi32(load_sums(upper + 16), load_sums(lower));
            const __m512i all = _mm512_add_epi32(
                times_256(_mm512_add_epi32(times_256(load_sums(upper)), mid)),
                load_sums(lower + 16));
            put(x, i, all, w->scale + v, first, c + i * NR + v);
        }
    }
}

LB_AMX
LB_INLINE void blocks(const bool words, const bool two, const lb_dotbyte_x *x,
                      int64_t k, const lb_dotbyte_w *w, bool first, float *c,
                      lb_dotbyte_ask *ask)
{
    tile_sums sum __attribute__((aligned(64)));
    lb_dotbyte_x x1 = *x;
    lb_dotbyte_w w1 = *w;
    LB_TILE_BARRIER();
    do {
        const int64_t some = k < x1.share ? k : x1.share;
        if (words)
            word_block(two, &x1, some, &w1, first, c, ask, sum);
        else
            byte_block(two, &x1, some, &w1, first, c, ask, sum);
        x1.bytes += x1.share;
        x1.start += x1.apart;
        x1.scale += x1.apart;
        w1.bytes += x1.share * NR * (words ? 2 : 1);
        w1.scale += w1.apart;
        first = false;
        k -= some;
    } while (k > 0);
}

LB_AMX
static void tile_bytes(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                       bool first, float *c, lb_dotbyte_ask *ask)
{
    if (x->rows * x->planes > LB_TILE_ROWS)
        blocks(false, true, x, k, w, first, c, ask);
    else
        blocks(false, false, x, k, w, first, c, ask);
}

LB_AMX
static void tile_words(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                       bool first, float *c, lb_dotbyte_ask *ask)
{
    if (x->rows * 2 > LB_TILE_ROWS)
        blocks(true, true, x, k, w, first, c, ask);
    else
        blocks(true, false, x, k, w, first, c, ask);
}

const lb_dotbyte lb_dotbyte_amx = {
    .name = "dot i8 amx",
    .name_two = "dot i8x2 amx",
    .size = 1,
    .x_size = 1,
    .piece = PIECE,
    .by_row = true,
    .asks = true,
    .mr = LINES,
    .nr = NR,
    .most_w = 255,
    .planes = true,
    .begin = begin,
    .end = end,
    .round = round_bytes,
    .along = lb_dotbyte_along_avx512,
    .across = lb_dotbyte_across_avx512,
    .quads = lb_dotbyte_quads_avx512,
    .panel = lb_dotbyte_panel_avx512,
    .tile = tile_bytes,
};

const lb_dotbyte lb_dotword_amx = {
    .name = "dot i16 rows amx",
    .size = 2,
    .x_size = 2,
    .widths = 4,
    .piece = 2 * PIECE,
    .by_row = true,
    .asks = true,
    .mr = LINES / 2,
    .nr = NR,
    .begin = begin,
    .end = end,
    .round = round_words,
    .along = lb_dotword_along_avx512,
    .across = lb_dotword_across_avx512,
    .split = split_words,
    .tile = tile_words,
};
#endif
