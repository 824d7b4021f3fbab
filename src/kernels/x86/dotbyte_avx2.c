/* dotbyte_avx2.c - products of bytes: the 6x16 tile for AVX2, where those of w
 * are at most 3.
 *
 * vpmaddubsw adds two products to 16 bits and saturates. With such bytes it
 * does not: 2 * 3 * 128 = 768, and 42 of these are 32256, so that sums of 42
 * quads stay in 16 bits as well. That is a product of 32 numbers to two
 * instructions, where numbers of 16 bits take four.
 *
 *            w: 16 rows        12 accumulators of 8 pairs of sums, a row of w
 *          +------+------+     to each pair, two vectors of w, four bytes of
 *   x: 6   | r[i][0..1]  |     x in every lane, a product: 16 registers.
 *   rows   +------+------+
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <stddef.h>
#include <string.h>

#include "kernels/x86/dotbyte_ask.h"
#include "kernels/x86/intrin.h"

enum {
    MR = 6,
    NR = 16,
    STEP = LB_DOTBYTE_STEP,
    MOST_W = 3,
    RUN = 32767 / (2 * MOST_W * 128) /* quads: 42 */
};

#define AVX2 LB_TARGET("avx2,fma")

/* ---- x ------------------------------------------------------------------- */

AVX2 LB_INLINE __m256i round_8(const float *x, __m256 factor)
{
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), factor));
}

/* Where dwords come from that packing has left in the order 0 2 4 6, 1 3 5 7,
 * which is how eight fields want them: what belongs to four is in one half. */
AVX2 LB_INLINE __m256i dwords_for(int fields)
{
    return fields == 8 ? _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)
                       : _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
}

/* Bytes of a half: those of one field side by side. */
AVX2 LB_INLINE __m256i bytes_for(int fields)
{
    const __m128i one =
        _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i two =
        _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const __m128i four =
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm256_broadcastsi128_si256(fields == 1   ? one
                                       : fields == 2 ? two
                                                     : four);
}

/* Four vectors of numbers of one byte. */
AVX2 LB_INLINE __m256i pack_32(const __m256i *v, __m256i dword, __m256i byte)
{
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]),
                                             _mm256_packs_epi32(v[2], v[3]));
    return _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(bytes, dword), byte);
}

AVX2 LB_INLINE int32_t sum_of_8(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v),
                              _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

AVX2 LB_INLINE void put_quads(__m256i v, int8_t *to, int64_t apart)
{
    int8_t bytes[STEP];
    _mm256_storeu_si256((__m256i *)(void *)bytes, v);
    for (int q = 0; q < STEP; q += 4, to += apart)
        memcpy(to, bytes + q, 4);
}

AVX2 static int32_t round_row(int64_t n, const float *x, float factor,
                              int planes, int fields, int8_t *to, int64_t apart,
                              int64_t plane)
{
    const __m256 f = _mm256_set1_ps(factor);
    const __m256i dword = dwords_for(fields), byte = bytes_for(fields);
    __m256i sum = _mm256_setzero_si256();
    for (; n > 0; n -= STEP, x += STEP, to += STEP / 4 * apart) {
        __m256i v[4], high[4];
        float rest[STEP] = {0};
        if (n < STEP) memcpy(rest, x, (size_t)n * sizeof *x);
        for (int i = 0; i < 4; i++) {
            v[i] = round_8((n < STEP ? rest : x) + (ptrdiff_t)8 * i, f);
            sum = _mm256_add_epi32(sum, v[i]);
        }
        if (planes == 2) {
            for (int i = 0; i < 4; i++) {
                high[i] = _mm256_srai_epi32(
                    _mm256_add_epi32(v[i], _mm256_set1_epi32(128)), 8);
                v[i] = _mm256_sub_epi32(v[i], _mm256_slli_epi32(high[i], 8));
            }
            put_quads(pack_32(high, dword, byte), to, apart);
        }
        put_quads(pack_32(v, dword, byte), planes == 2 ? to + plane : to,
                  apart);
    }
    return sum_of_8(sum);
}

/* ---- tiles --------------------------------------------------------------- */

AVX2 LB_INLINE __m256i quad(const int8_t *p)
{
    int32_t q;
    memcpy(&q, p, sizeof q);
    __m256i v = _mm256_set1_epi32(q);
    LB_KEEP(v);
    return v;
}

AVX2 LB_INLINE __m256i load(const uint8_t *p)
{
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
    LB_KEEP(v);
    return v;
}

AVX2 LB_INLINE __m256i add_products(__m256i sum, __m256i w, __m256i x)
{
    const __m256i t = _mm256_maddubs_epi16(w, x);
    LB_ADD_16(sum, t);
    return sum;
}

/* At most RUN quads, added to sums of 32 bits. rows is a constant where this
 * is inlined, here and below. */
AVX2 LB_INLINE void add_run(const int rows, const int8_t *x, const uint8_t *w,
                            const uint8_t *end, lb_tile_asking ask,
                            __m256i (*sum)[2])
{
    const __m256i one = _mm256_set1_epi16(1);
    __m256i r[MR][2];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        r[i][0] = r[i][1] = _mm256_setzero_si256();
        LB_KEEP(r[i][0]);
        LB_KEEP(r[i][1]);
    }
    for (; w < end; w += NR * 4, x += rows * 4) {
        const __m256i w0 = load(w), w1 = load(w + 32);
        __builtin_prefetch((const void *)ask.at, 0, 2);
        ask.at += (uintptr_t)ask.step;
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m256i q = quad(x + i * 4);
            r[i][0] = add_products(r[i][0], w0, q);
            r[i][1] = add_products(r[i][1], w1, q);
        }
    }
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        sum[i][0] =
            _mm256_add_epi32(sum[i][0], _mm256_madd_epi16(r[i][0], one));
        sum[i][1] =
            _mm256_add_epi32(sum[i][1], _mm256_madd_epi16(r[i][1], one));
    }
}

AVX2 LB_INLINE void put_8(__m256i sum, __m256 ws, __m256 xs, bool first,
                          float *c)
{
    const __m256 t = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), ws);
    const __m256 old = first ? _mm256_setzero_ps() : _mm256_loadu_ps(c);
    _mm256_storeu_ps(c, _mm256_fmadd_ps(t, xs, old));
}

/* 256 times the sums of the plane before; the last has what the offset adds. */
AVX2 LB_INLINE void start_plane(const int rows, const lb_dotbyte_x *x, int p,
                                __m256i (*sum)[2])
{
    for (int i = 0; i < rows; i++) {
        const int32_t start = p + 1 == x->planes ? x->start[i] : 0;
        for (int v = 0; v < 2; v++)
            sum[i][v] = _mm256_add_epi32(_mm256_slli_epi32(sum[i][v], 8),
                                         _mm256_set1_epi32(start));
    }
}

AVX2 LB_INLINE void tile_rows(const int rows, const lb_dotbyte_x *x, int64_t k,
                              const uint8_t *w, const float *ws, bool first,
                              float *c, lb_dotbyte_ask *ask)
{
    const __m256 w0 = _mm256_loadu_ps(ws), w1 = _mm256_loadu_ps(ws + 8);
    __m256i sum[MR][2];
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = _mm256_setzero_si256();
    for (int p = 0; p < x->planes; p++) {
        const int8_t *from = x->bytes + p * x->plane;
        start_plane(rows, x, p, sum);
        for (int64_t q = 0, n; q < k / 4; q += n) {
            const uint8_t *const at = w + q * NR * 4;
            lb_tile_asking a;
            n = k / 4 - q < RUN ? k / 4 - q : RUN;
            n = lb_tile_ask_next(ask, at, n, &a);
            add_run(rows, from + q * rows * 4, at, at + n * NR * 4, a, sum);
        }
    }
    for (int i = 0; i < rows; i++) {
        const __m256 xs = _mm256_set1_ps(x->scale[i]);
        put_8(sum[i][0], w0, xs, first, c + i * NR);
        put_8(sum[i][1], w1, xs, first, c + i * NR + 8);
    }
}

AVX2 LB_INLINE void tile_block(const lb_dotbyte_x *x, int64_t k,
                               const uint8_t *w, const float *ws, bool first,
                               float *c, lb_dotbyte_ask *ask)
{
    switch (x->rows) {
    case 6:
        tile_rows(6, x, k, w, ws, first, c, ask);
        break;
    case 5:
        tile_rows(5, x, k, w, ws, first, c, ask);
        break;
    case 4:
        tile_rows(4, x, k, w, ws, first, c, ask);
        break;
    case 3:
        tile_rows(3, x, k, w, ws, first, c, ask);
        break;
    case 2:
        tile_rows(2, x, k, w, ws, first, c, ask);
        break;
    default:
        tile_rows(1, x, k, w, ws, first, c, ask);
    }
}

AVX2 static void tile(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                      bool first, float *c, lb_dotbyte_ask *ask)
{
    lb_dotbyte_x x1 = *x;
    lb_dotbyte_w w1 = *w;
    do {
        const int64_t some = k < x1.share ? k : x1.share;
        tile_block(&x1, some, w1.bytes, w1.scale, first, c, ask);
        lb_dotbyte_next(&x1, &w1, 1, 1, NR);
        first = false;
        k -= some;
    } while (k > 0);
}

const lb_dotbyte lb_dotbyte_avx2 = {
    .name = "dot i8 avx2",
    .name_two = "dot i8x2 avx2",
    .size = 1,
    .x_size = 1,
    .piece = 4,
    .asks = true,
    .mr = MR,
    .nr = NR,
    .most_w = MOST_W,
    .planes = true,
    .round = round_row,
    .along = lb_dotbyte_along_avx2,
    .across = lb_dotbyte_across_avx2,
    .tile = tile,
};
#endif
