/* turn.c - see turn.h.
 *
 * A square is transposed by interleaving its first half with its second,
 * log2(rows) times:
 *
 *   a0 a1 a2 a3      a0 c0 a1 c1      a0 b0 c0 d0
 *   b0 b1 b2 b3  ->  a2 c2 a3 c3  ->  a1 b1 c1 d1
 *   c0 c1 c2 c3      b0 d0 b1 d1      a2 b2 c2 d2
 *   d0 d1 d2 d3      b2 d2 b3 d3      a3 b3 c3 d3
 *
 * Small elements come in rows of 8 bytes, two to a register, which is as fast
 * as 16 and takes half the steps. SSE2 is part of every x86-64, so it needs no
 * level.
 */
#include "kernels/turn.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>

static inline __m128i load_8(const char *s)
{
    return _mm_loadl_epi64((const __m128i *)s);
}

static inline __m128i load_16(const char *s)
{
    return _mm_loadu_si128((const __m128i *)s);
}

static inline void store_16(char *d, __m128i v)
{
    _mm_storeu_si128((__m128i *)d, v);
}

/* Two rows of 8 bytes. */
static inline void store_rows(char *d, int64_t dst, __m128i v)
{
    _mm_storel_epi64((__m128i *)d, v);
    _mm_storel_epi64((__m128i *)(d + dst), _mm_unpackhi_epi64(v, v));
}

/* 8 x 8 */
static inline void square_1(const char *s, int64_t src, char *d, int64_t dst)
{
    const char *t = s + 4 * src;
    const __m128i a = _mm_unpacklo_epi8(load_8(s), load_8(t));
    const __m128i b = _mm_unpacklo_epi8(load_8(s + src), load_8(t + src));
    const __m128i c =
        _mm_unpacklo_epi8(load_8(s + 2 * src), load_8(t + 2 * src));
    const __m128i e =
        _mm_unpacklo_epi8(load_8(s + 3 * src), load_8(t + 3 * src));
    const __m128i ac = _mm_unpacklo_epi8(a, c), ac2 = _mm_unpackhi_epi8(a, c);
    const __m128i be = _mm_unpacklo_epi8(b, e), be2 = _mm_unpackhi_epi8(b, e);
    store_rows(d, dst, _mm_unpacklo_epi8(ac, be));
    store_rows(d + 2 * dst, dst, _mm_unpackhi_epi8(ac, be));
    store_rows(d + 4 * dst, dst, _mm_unpacklo_epi8(ac2, be2));
    store_rows(d + 6 * dst, dst, _mm_unpackhi_epi8(ac2, be2));
}

/* 4 x 4 */
static inline void square_2(const char *s, int64_t src, char *d, int64_t dst)
{
    const __m128i ac = _mm_unpacklo_epi16(load_8(s), load_8(s + 2 * src));
    const __m128i be = _mm_unpacklo_epi16(load_8(s + src), load_8(s + 3 * src));
    store_rows(d, dst, _mm_unpacklo_epi16(ac, be));
    store_rows(d + 2 * dst, dst, _mm_unpackhi_epi16(ac, be));
}

/* 4 x 4 */
static inline void square_4(const char *s, int64_t src, char *d, int64_t dst)
{
    const __m128i a = load_16(s), b = load_16(s + src);
    const __m128i c = load_16(s + 2 * src), e = load_16(s + 3 * src);
    const __m128i ac = _mm_unpacklo_epi32(a, c), ac2 = _mm_unpackhi_epi32(a, c);
    const __m128i be = _mm_unpacklo_epi32(b, e), be2 = _mm_unpackhi_epi32(b, e);
    store_16(d, _mm_unpacklo_epi32(ac, be));
    store_16(d + dst, _mm_unpackhi_epi32(ac, be));
    store_16(d + 2 * dst, _mm_unpacklo_epi32(ac2, be2));
    store_16(d + 3 * dst, _mm_unpackhi_epi32(ac2, be2));
}

/* 2 x 2 */
static inline void square_8(const char *s, int64_t src, char *d, int64_t dst)
{
    const __m128i a = load_16(s), b = load_16(s + src);
    store_16(d, _mm_unpacklo_epi64(a, b));
    store_16(d + dst, _mm_unpackhi_epi64(a, b));
}

/* A row of squares: n rows, n elements apart. */
static void squares(size_t size, const char *s, int64_t src, char *d,
                    int64_t dst, int64_t n, int64_t cols)
{
    const int64_t step = (int64_t)size;
    switch (size) {
    case 1:
        for (int64_t c = 0; c < cols; c += n)
            square_1(s + c * step, src, d + c * dst, dst);
        return;
    case 2:
        for (int64_t c = 0; c < cols; c += n)
            square_2(s + c * step, src, d + c * dst, dst);
        return;
    case 4:
        for (int64_t c = 0; c < cols; c += n)
            square_4(s + c * step, src, d + c * dst, dst);
        return;
    default:
        for (int64_t c = 0; c < cols; c += n)
            square_8(s + c * step, src, d + c * dst, dst);
    }
}
#endif

/* Rows lo <= r < hi, columns from first on, one by one. */
static void singly(size_t size, const char *s, int64_t src, char *d,
                   int64_t dst, int64_t lo, int64_t hi, int64_t first,
                   int64_t cols)
{
    const int64_t step = (int64_t)size;
    for (int64_t r = lo; r < hi; r++) {
        const char *from = s + r * src;
        char *to = d + r * step;
        switch (size) {
        case 1:
            for (int64_t c = first; c < cols; c++)
                to[c * dst] = from[c];
            break;
        case 2:
            for (int64_t c = first; c < cols; c++)
                memcpy(to + c * dst, from + c * 2, 2);
            break;
        case 4:
            for (int64_t c = first; c < cols; c++)
                memcpy(to + c * dst, from + c * 4, 4);
            break;
        default:
            for (int64_t c = first; c < cols; c++)
                memcpy(to + c * dst, from + c * 8, 8);
        }
    }
}

void lb_turn(size_t size, const char *s, int64_t src, char *d, int64_t dst,
             int64_t rows, int64_t cols)
{
    int64_t whole_rows = 0, whole_cols = 0;
#if defined(__SSE2__)
    const int64_t step = (int64_t)size, n = size == 1 ? 8 : size == 8 ? 2 : 4;
    whole_rows = rows / n * n;
    whole_cols = cols / n * n;
    for (int64_t r = 0; r < whole_rows; r += n)
        squares(size, s + r * src, src, d + r * step, dst, n, whole_cols);
#endif
    singly(size, s, src, d, dst, 0, whole_rows, whole_cols, cols);
    singly(size, s, src, d, dst, whole_rows, rows, 0, cols);
}
