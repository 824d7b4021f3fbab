/* dotlines_avx512vnni.c - products of bytes with codes as they lie: vpdpbusd.
 *
 *            w: 2 lines         16 accumulators, whose lanes run along the
 *          +------+------+      depth. A vector of each line meets one of each
 *   x: 8   | r[j][0..7]  |      row of x: 16 products against 10 loads. With 4
 *   rows   +------+------+      rows of x or fewer, 4 lines at once.
 *
 * Nothing is packed, so that little is done between loads: memory decides for
 * few rows. In turn the lanes of all accumulators are folded at the end of a
 * panel, which grows with the rows: for many of them dotbyte_tile.h is better.
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <stddef.h>

#include "kernels/x86/dotbyte_tile.h"

enum {
    MR = 8,
    ALL = 16,   /* accumulators */
    MOST = 4,   /* lines at once */
    BYTES = 64, /* of a vector */
    AHEAD = 4   /* lines from those that are read to those that are
                        * asked for */
};

/* ---- x ------------------------------------------------------------------- */

LB_AVX512
static int32_t round_bytes(int64_t n, const float *x, float factor, int planes,
                           int fields, int8_t *to, int64_t apart, int64_t plane)
{
    const __m512 f = _mm512_set1_ps(factor);
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i sum = _mm512_setzero_si512();
    (void)planes;
    (void)fields;
    (void)plane;
    for (; n > 0; n -= BYTES, x += BYTES, to += apart) {
        __m512i v[4];
        for (int i = 0; i < 4; i++) {
            v[i] = lb_round_16(n - (int64_t)16 * i, x + (ptrdiff_t)16 * i, f);
            sum = _mm512_add_epi32(sum, v[i]);
        }
        const __m512i a = _mm512_packs_epi32(v[0], v[1]);
        const __m512i b = _mm512_packs_epi32(v[2], v[3]);
        _mm512_storeu_si512((void *)to, _mm512_permutexvar_epi32(
                                            order, _mm512_packs_epi16(a, b)));
    }
    return _mm512_reduce_add_epi32(sum);
}

/* ---- folds --------------------------------------------------------------- */

/* What is in BYTES lane is added to the lane that is so many away: sums of a
 * where that bit of a lane's number is 0, of b where it is 1. */
LB_AVX512
LB_INLINE __m512i fold(const int away, __m512i a, __m512i b)
{
    const __m512i quarters = _mm512_setr_epi32(4, 5, 6, 7, 16, 17, 18, 19, 12,
                                               13, 14, 15, 24, 25, 26, 27);
    const __m512i ones = _mm512_setr_epi32(1, 16, 3, 18, 5, 20, 7, 22, 9, 24,
                                           11, 26, 13, 28, 15, 30);
    const __m512 fa = _mm512_castsi512_ps(a), fb = _mm512_castsi512_ps(b);
    const __mmask16 mask = away == 8   ? 0xff00
                           : away == 4 ? 0xf0f0
                           : away == 2 ? 0xcccc
                                       : 0xaaaa;
    const __m512i own = _mm512_mask_mov_epi32(a, mask, b);
    const __m512i other =
        away == 8 ? _mm512_shuffle_i32x4(a, b, 0x4e)
        : away == 4
            ? _mm512_castps_si512(_mm512_permutex2var_ps(fa, quarters, fb))
        : away == 2 ? _mm512_castps_si512(_mm512_shuffle_ps(fa, fb, 0x4e))
                    : _mm512_castps_si512(_mm512_permutex2var_ps(fa, ones, fb));
    return _mm512_add_epi32(own, other);
}

/* The sum of all lanes of r[l], in lane l. */
LB_AVX512
LB_INLINE __m512i fold_all(__m512i *r)
{
    LB_UNROLL
    for (int l = 0; l < 8; l++)
        r[l] = fold(8, r[l], r[l + 8]);
    LB_UNROLL
    for (int l = 0; l < 4; l++)
        r[l] = fold(4, r[l], r[l + 4]);
    LB_UNROLL
    for (int l = 0; l < 2; l++)
        r[l] = fold(2, r[l], r[l + 2]);
    return fold(1, r[0], r[1]);
}

/* Lane by lane: what belongs to rows of x, the same for BYTES line, */
LB_AVX512
LB_INLINE __m512i of_rows(const int lines, const void *p)
{
    if (lines == 4)
        return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p));
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)p));
}

/* and what belongs to lines. */
LB_AVX512
LB_INLINE __m512 of_lines(const int lines, const float *p)
{
    const __m512 low = _mm512_mask_blend_ps(0xff00, _mm512_set1_ps(p[0]),
                                            _mm512_set1_ps(p[lines / 2]));
    if (lines == 2) return low;
    return _mm512_mask_blend_ps(0xf0f0, low,
                                _mm512_mask_blend_ps(0xff00,
                                                     _mm512_set1_ps(p[1]),
                                                     _mm512_set1_ps(p[3])));
}

/* ---- dots ---------------------------------------------------------------- */

/* Lines that are read together, and what is added to their addresses to ask
 * for others. */
typedef struct {
    const uint8_t *at[MOST];
    uintptr_t ahead;
} lines_of;

/* A vector of codes of one line, or `some` numbers and what meets zeros. */
LB_AVX512
LB_INLINE __m512i numbers_at(const uint8_t *p, int64_t some)
{
    __m512i v;
    v = _mm512_xor_si512(some >= BYTES
                             ? _mm512_loadu_si512((const void *)p)
                             : _mm512_maskz_loadu_epi8(
                                   ((__mmask64)1 << some) - 1, (const void *)p),
                         _mm512_set1_epi8(-128));
    LB_KEEP_512(v);
    return v;
}

/* One vector of BYTES row and BYTES line, from place k on. */
LB_AVX512
LB_INLINE void add_vectors(const int rows, const int lines, const int8_t *x,
                           const lines_of *w, int64_t k, int64_t some,
                           __m512i *r)
{
    __m512i v[MOST];
    LB_UNROLL
    for (int j = 0; j < lines; j++)
        v[j] = numbers_at(w->at[j] + k, some);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        __m512i xi =
            _mm512_loadu_si512((const void *)(x + (ptrdiff_t)i * BYTES));
        LB_KEEP_512(xi);
        LB_UNROLL
        for (int j = 0; j < lines; j++) {
            __m512i *const sum = r + j * (ALL / lines) + i;
            *sum = lb_add_products(false, *sum, v[j], xi);
        }
    }
}

/* rows and lines are constants where this is inlined. */
LB_AVX512
LB_INLINE void dots_of(const int rows, const int lines, const lb_dotbyte_x *x,
                       const lines_of *w, int64_t depth, const float *ws,
                       bool first, float *c)
{
    const ptrdiff_t vector = (ptrdiff_t)rows * BYTES;
    const int8_t *from = x->bytes;
    __m512i r[ALL];
    int64_t k = 0;
    LB_UNROLL
    for (int l = 0; l < ALL; l++) {
        r[l] = _mm512_setzero_si512();
        if (l % (ALL / lines) < rows) LB_KEEP_512(r[l]);
    }
    for (; k + BYTES <= depth; k += BYTES) {
        LB_UNROLL
        for (int j = 0; j < lines; j++)
            __builtin_prefetch(
                (const void *)((uintptr_t)(w->at[j] + k) + w->ahead), 0, 3);
        add_vectors(rows, lines, from, w, k, BYTES, r);
        from += vector;
    }
    for (; k < depth; k += BYTES, from += vector)
        add_vectors(rows, lines, from, w, k,
                    depth - k < BYTES ? depth - k : BYTES, r);
    const __m512i start = of_rows(lines, x->start);
    const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(fold_all(r), start));
    const __m512 scale = _mm512_castsi512_ps(of_rows(lines, x->scale));
    const __m512 old = first ? _mm512_setzero_ps() : _mm512_loadu_ps(c);
    _mm512_storeu_ps(c, _mm512_fmadd_ps(_mm512_mul_ps(sum, of_lines(lines, ws)),
                                        scale, old));
}

/* Those from number j on; in place of lines that are not, the last. */
LB_INLINE lines_of lines_at(const int lines, const lb_dotbyte_lines *w,
                            int64_t j)
{
    lines_of at = {.ahead = 0};
    const int64_t on = j + AHEAD - w->n;
    for (int l = 0; l < lines; l++)
        at.at[l] = w->codes + (j + l < w->n ? j + l : w->n - 1) * w->step;
    if (w->next)
        at.ahead =
            on < 0 ? (uintptr_t)(AHEAD * w->step)
                   : w->next + (uintptr_t)(on * w->step) - (uintptr_t)at.at[0];
    return at;
}

LB_AVX512
LB_INLINE void dots_rows(const int rows, const lb_dotbyte_x *x,
                         const lb_dotbyte_lines *w, bool first, float *c)
{
    const int lines = rows > 4 ? 2 : 4;
    for (int64_t j = 0; j < w->n; j += lines, c += ALL) {
        const lines_of at = lines_at(lines, w, j);
        dots_of(rows, lines, x, &at, w->depth, w->ws + j, first, c);
    }
}

LB_AVX512
LB_INLINE void dots_any(const lb_dotbyte_x *x, const lb_dotbyte_lines *w,
                        bool first, float *c)
{
    switch (x->rows) {
    case 8:
        dots_rows(8, x, w, first, c);
        break;
    case 7:
        dots_rows(7, x, w, first, c);
        break;
    case 6:
        dots_rows(6, x, w, first, c);
        break;
    case 5:
        dots_rows(5, x, w, first, c);
        break;
    case 4:
        dots_rows(4, x, w, first, c);
        break;
    case 3:
        dots_rows(3, x, w, first, c);
        break;
    case 2:
        dots_rows(2, x, w, first, c);
        break;
    default:
        dots_rows(1, x, w, first, c);
    }
}

LB_AVX512
static void dots_bytes(const lb_dotbyte_x *x, const lb_dotbyte_lines *w,
                       bool first, float *c)
{
    dots_any(x, w, first, c);
}

const lb_dotbyte lb_dotlines_vnni = {
    .name = "dot i8 lines avx512vnni",
    .size = 1,
    .x_size = 1,
    .piece = BYTES,
    .mr = MR,
    .nr = 1,
    .most_w = 255,
    .round = round_bytes,
    .dots = dots_bytes,
};
#endif
