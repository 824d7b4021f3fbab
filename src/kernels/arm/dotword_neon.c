/* dotword_neon.c - products of 16-bit integers with smlal: the 6x16 tile.
 *
 *             w: 16 rows       24 accumulators of four sums, a row of w to each
 *          +--+--+--+--+       lane. Pairs of w are read apart, first numbers
 *   x: 6   | r[i][0..3] |      and second ones, and each meets one of x.
 *   rows   +--+--+--+--+
 *
 * For CPUs without dotprod, and what bytes cannot hold. Packing is portable C.
 */
#include "kernels/dotbyte.h"

#if defined(__aarch64__)
#include <string.h>

#include "kernels/arm/neon.h"

enum { MR = 6, NR = 16, VECTORS = NR / 4 };

typedef int32x4_t sums[VECTORS];

/* rows is a constant where this is inlined, here and below. */
LB_INLINE void add_pair(const int rows, sums *r, const uint8_t *w,
                        const int8_t *x)
{
    int16_t words[2 * NR];
    memcpy(words, w, sizeof words);
    const int16x8x2_t a = vld2q_s16(words), b = vld2q_s16(words + NR);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        int16_t pair[2];
        memcpy(pair, x + (ptrdiff_t)i * 4, sizeof pair);
        for (int e = 0; e < 2; e++) {
            r[i][0] = vmlal_n_s16(r[i][0], vget_low_s16(a.val[e]), pair[e]);
            r[i][1] = vmlal_n_s16(r[i][1], vget_high_s16(a.val[e]), pair[e]);
            r[i][2] = vmlal_n_s16(r[i][2], vget_low_s16(b.val[e]), pair[e]);
            r[i][3] = vmlal_n_s16(r[i][3], vget_high_s16(b.val[e]), pair[e]);
        }
    }
}

LB_INLINE void tile_block(const int rows, const lb_dotbyte_x *x, int64_t k,
                          const lb_dotbyte_w *w, bool first, float *c)
{
    sums r[MR];
    const int8_t *from = x->bytes;
    const uint8_t *at = w->bytes, *const end = at + k * 2 * NR;
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            r[i][v] = vdupq_n_s32(0);
    for (; at < end; at += NR * 4, from += (ptrdiff_t)rows * 4)
        add_pair(rows, r, at, from);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const float32x4_t scale = vdupq_n_f32(x->scale[i]);
        for (int v = 0; v < VECTORS; v++) {
            float *const to = c + i * NR + v * 4;
            const float32x4_t sum = vcvtq_f32_s32(r[i][v]);
            const float32x4_t old = first ? vdupq_n_f32(0) : vld1q_f32(to);
            const float32x4_t ws = vld1q_f32(w->scale + 4 * v);
            vst1q_f32(to, vfmaq_f32(old, vmulq_f32(sum, ws), scale));
        }
    }
}

LB_INLINE void tile_rows(const int rows, const lb_dotbyte_x *x, int64_t k,
                         const lb_dotbyte_w *w, bool first, float *c)
{
    lb_dotbyte_x x1 = *x;
    lb_dotbyte_w w1 = *w;
    do {
        const int64_t some = k < x1.share ? k : x1.share;
        tile_block(rows, &x1, some, &w1, first, c);
        lb_dotbyte_next(&x1, &w1, 2, 2, NR);
        first = false;
        k -= some;
    } while (k > 0);
}

static void tile(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                 bool first, float *c, lb_dotbyte_ask *ask)
{
    (void)ask; /* packing asks */
    switch (x->rows) {
    case 6:
        tile_rows(6, x, k, w, first, c);
        break;
    case 5:
        tile_rows(5, x, k, w, first, c);
        break;
    case 4:
        tile_rows(4, x, k, w, first, c);
        break;
    case 3:
        tile_rows(3, x, k, w, first, c);
        break;
    case 2:
        tile_rows(2, x, k, w, first, c);
        break;
    default:
        tile_rows(1, x, k, w, first, c);
    }
}

const lb_dotbyte lb_dotword_neon = {
    .name = "dot i16 neon",
    .size = 2,
    .x_size = 2,
    .piece = 4,
    .mr = MR,
    .nr = NR,
    .widths = 15,
    .round = lb_dotword_round_ref,
    .along = lb_dotword_along_ref,
    .across = lb_dotword_across_ref,
    .tile = tile,
};
#endif
