/* dotword_avx2.c - products of 16-bit integers of x with vpmaddwd: the 6x16
 * tile for AVX2. Sums of 32 bits are exact as long as the caller bounds x
 * (dotbyte.h).
 *
 *            w: 16 rows        12 accumulators of 8 sums, a row of w to each
 *          +------+------+     lane, two vectors of w, a pair of x in every
 *   x: 6   | r[i][0..1]  |     lane, a product: 16 registers.
 *   rows   +------+------+
 *
 * Rows of w are words, or bytes, which become words where they are multiplied:
 * a quad of them is the pair of its first and third byte, then that of its
 * second and fourth. Panels of bytes are half as large, and made twice as fast.
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <stddef.h>
#include <string.h>

#include "kernels/x86/dotbyte_ask.h"
#include "kernels/x86/intrin.h"

enum { MR = 6, NR = 16, STEP = LB_DOTBYTE_STEP };

#define AVX2 LB_TARGET("avx2,fma")

/* ---- rounding ------------------------------------------------------------ */

/* The words of a half in the order of pairs: those that are `fields` apart,
 * where w is bytes the first and third of quads. */
AVX2 LB_INLINE __m256i words_for(const bool bytes, int fields)
{
    const __m128i one =
        _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i two =
        _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    const __m128i four =
        _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    const __m128i nibbles =
        _mm_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, 2, 3, 10, 11, 6, 7, 14, 15);
    const __m128i order = bytes         ? fields == 1 ? two : nibbles
                          : fields == 1 ? one
                          : fields == 2 ? two
                                        : four;
    return _mm256_broadcastsi128_si256(order);
}

AVX2 LB_INLINE __m256i round_16(const float *x, __m256 factor, __m256i order,
                                __m256i *sum)
{
    const __m256i a =
        _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), factor));
    const __m256i b =
        _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), factor));
    *sum = _mm256_add_epi32(*sum, _mm256_add_epi32(a, b));
    return _mm256_shuffle_epi8(
        _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8), order);
}

AVX2 LB_INLINE void put_pairs(__m256i v, int8_t *to, int64_t apart)
{
    int32_t pair[8];
    _mm256_storeu_si256((__m256i *)(void *)pair, v);
    for (int i = 0; i < 8; i++)
        memcpy(to + i * apart, &pair[i], sizeof *pair);
}

AVX2 LB_INLINE int32_t sum_of_8(__m256i v)
{
    int32_t lane[8], sum = 0;
    _mm256_storeu_si256((__m256i *)(void *)lane, v);
    for (int i = 0; i < 8; i++)
        sum += lane[i];
    return sum;
}

AVX2 LB_INLINE int32_t round_row(__m256i order, int64_t n, const float *x,
                                 float factor, int8_t *to, int64_t apart)
{
    const __m256 f = _mm256_set1_ps(factor);
    __m256i sum = _mm256_setzero_si256();
    for (; n > 0; n -= STEP, x += STEP, to += STEP / 2 * apart) {
        float rest[STEP] = {0};
        const float *from = x;
        if (n < STEP) from = memcpy(rest, x, (size_t)n * sizeof *x);
        put_pairs(round_16(from, f, order, &sum), to, apart);
        put_pairs(round_16(from + 16, f, order, &sum), to + 8 * apart, apart);
    }
    return sum_of_8(sum);
}

AVX2 static int32_t round_pairs(int64_t n, const float *x, float factor,
                                int planes, int fields, int8_t *to,
                                int64_t apart, int64_t plane)
{
    (void)planes;
    (void)plane;
    return round_row(words_for(false, fields), n, x, factor, to, apart);
}

AVX2 static int32_t round_quads(int64_t n, const float *x, float factor,
                                int planes, int fields, int8_t *to,
                                int64_t apart, int64_t plane)
{
    (void)planes;
    (void)plane;
    return round_row(words_for(true, fields), n, x, factor, to, apart);
}

/* ---- tiles --------------------------------------------------------------- */

AVX2 LB_INLINE void put_8(__m256i sum, __m256 ws, __m256 xs, bool first,
                          float *c)
{
    const __m256 t = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), ws);
    const __m256 old = first ? _mm256_setzero_ps() : _mm256_loadu_ps(c);
    _mm256_storeu_ps(c, _mm256_fmadd_ps(t, xs, old));
}

/* rows and bytes are constants where this is inlined, here and below. */
AVX2 LB_INLINE void add_pair(const int rows, const int8_t *x, __m256i w0,
                             __m256i w1, __m256i (*r)[2])
{
    LB_KEEP(w0);
    LB_KEEP(w1);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        int32_t pair;
        memcpy(&pair, x + (ptrdiff_t)i * 4, sizeof pair);
        const __m256i q = _mm256_set1_epi32(pair);
        const __m256i a = _mm256_madd_epi16(w0, q);
        const __m256i b = _mm256_madd_epi16(w1, q);
        LB_ADD_32(r[i][0], a);
        LB_ADD_32(r[i][1], b);
    }
}

/* Four bytes of each row of w. */
AVX2 LB_INLINE void add_quad(const bool bytes, const int rows, const int8_t *x,
                             const uint8_t *w, __m256i (*r)[2])
{
    const __m256i low = _mm256_set1_epi16(255);
    const __m256i w0 = _mm256_loadu_si256((const __m256i *)(const void *)w);
    const __m256i w1 =
        _mm256_loadu_si256((const __m256i *)(const void *)(w + 32));
    if (!bytes) {
        add_pair(rows, x, w0, w1, r);
        return;
    }
    add_pair(rows, x, _mm256_and_si256(w0, low), _mm256_and_si256(w1, low), r);
    add_pair(rows, x + (ptrdiff_t)rows * 4, _mm256_srli_epi16(w0, 8),
             _mm256_srli_epi16(w1, 8), r);
}

AVX2 LB_INLINE void tile_block(const bool bytes, const int rows,
                               const lb_dotbyte_x *x, int64_t k,
                               const lb_dotbyte_w *panel, bool first, float *c,
                               lb_dotbyte_ask *ask)
{
    const int64_t step = (int64_t)rows * (bytes ? 8 : 4);
    const int8_t *from = x->bytes;
    const uint8_t *w = panel->bytes;
    const uint8_t *const end = w + k * (bytes ? 1 : 2) * NR;
    __m256i r[MR][2];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        r[i][0] = r[i][1] = _mm256_set1_epi32(x->start[i]);
        LB_KEEP(r[i][0]);
        LB_KEEP(r[i][1]);
    }
    while (w < end) {
        lb_tile_asking a;
        const uint8_t *const some =
            w + NR * 4 * lb_tile_ask_next(ask, w, (end - w) / (NR * 4), &a);
        for (; w < some; w += NR * 4, from += step) {
            __builtin_prefetch((const void *)a.at, 0, 2);
            a.at += (uintptr_t)a.step;
            add_quad(bytes, rows, from, w, r);
        }
    }
    const __m256 s0 = _mm256_loadu_ps(panel->scale);
    const __m256 s1 = _mm256_loadu_ps(panel->scale + 8);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m256 xs = _mm256_set1_ps(x->scale[i]);
        put_8(r[i][0], s0, xs, first, c + (ptrdiff_t)i * NR);
        put_8(r[i][1], s1, xs, first, c + (ptrdiff_t)i * NR + 8);
    }
}

AVX2 LB_INLINE void tile_rows(const bool bytes, const int rows,
                              const lb_dotbyte_x *x, int64_t k,
                              const lb_dotbyte_w *w, bool first, float *c,
                              lb_dotbyte_ask *ask)
{
    lb_dotbyte_x x1 = *x;
    lb_dotbyte_w w1 = *w;
    do {
        const int64_t some = k < x1.share ? k : x1.share;
        tile_block(bytes, rows, &x1, some, &w1, first, c, ask);
        lb_dotbyte_next(&x1, &w1, 2, bytes ? 1 : 2, NR);
        first = false;
        k -= some;
    } while (k > 0);
}

typedef void function(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                      bool first, float *c, lb_dotbyte_ask *ask);
#define ROWS(n, name, bytes, rows)                                             \
    AVX2 static void name##_##n(const lb_dotbyte_x *x, int64_t k,              \
                                const lb_dotbyte_w *w, bool first, float *c,   \
                                lb_dotbyte_ask *ask)                           \
    {                                                                          \
        tile_rows(bytes, rows, x, k, w, first, c, ask);                        \
    }
#if LB_OF_EACH
#define ROWS_OF(n, name, bytes) ROWS(n, name, bytes, n)
#else
#define ROWS_OF(n, name, bytes) ROWS(n, name, bytes, x->rows)
#endif

LB_UP_TO_6(ROWS_OF, pairs, false)
LB_UP_TO_6(ROWS_OF, quads, true)

static void tile_pairs(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                       bool first, float *c, lb_dotbyte_ask *ask)
{
    static function *const of[] = LB_TABLE(LB_UP_TO_6, pairs);
    of[LB_NTH(x->rows)](x, k, w, first, c, ask);
}

static void tile_quads(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                       bool first, float *c, lb_dotbyte_ask *ask)
{
    static function *const of[] = LB_TABLE(LB_UP_TO_6, quads);
    of[LB_NTH(x->rows)](x, k, w, first, c, ask);
}

const lb_dotbyte lb_dotword_avx2 = {
    .name = "dot i16 avx2",
    .size = 2,
    .x_size = 2,
    .piece = 4,
    .asks = true,
    .mr = MR,
    .nr = NR,
    .widths = 4,
    .round = round_pairs,
    .along = lb_dotword_along_avx2,
    .across = lb_dotword_across_avx2,
    .tile = tile_pairs,
};

const lb_dotbyte lb_dotwide_avx2 = {
    .name = "dot i16 x u8 avx2",
    .size = 1,
    .x_size = 2,
    .piece = 4,
    .asks = true,
    .mr = MR,
    .nr = NR,
    .most_w = 255,
    .widths = 4 | 8,
    .round = round_quads,
    .along = lb_dotbyte_along_avx2,
    .across = lb_dotbyte_across_avx2,
    .tile = tile_quads,
};
#endif
