/* dotbyte_dotprod.c - products of bytes: the 6x16 tile for sdot.
 *
 *             w: 16 rows       24 accumulators of four sums, a row of w to each
 *          +--+--+--+--+       lane, four vectors of w and two of x: 30 of 32
 *   x: 6   | r[i][0..3] |      registers. A quad of the depth is 24 products
 *   rows   +--+--+--+--+       against 6 loads: sdot takes the quad of a row
 *                              from a lane of x.
 *
 * Only CPUs with dotprod, which is optional, may come here (lb_cpu.dotprod).
 */
#include "kernels/dotbyte.h"

#if defined(__aarch64__)
#include <string.h>

#include "kernels/arm/dotbyte_neon.h"
#include "kernels/arm/neon.h"

enum { MR = 6, NR = LB_DOTBYTE_NEON_NR, VECTORS = NR / 4 };

#if defined(__clang__)
#define DOTPROD __attribute__((target("dotprod")))
#else
#define DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))
#endif

/* A quad of w, times that of x in a lane. Not the intrinsic: clang has it only
 * where a whole file is compiled for dotprod. */
#define ADD_PRODUCTS(sum, w, x, lane)                                          \
    __asm__("sdot %0.4s, %1.16b, %2.4b[" #lane "]" : "+w"(sum) : "w"(w), "w"(x))

typedef int32x4_t sums[VECTORS];

DOTPROD LB_INLINE void add_four(sums *r, const int8x16_t *w, const int8_t *x)
{
    const int8x16_t q = vld1q_s8(x);
    LB_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        ADD_PRODUCTS(r[0][v], w[v], q, 0);
        ADD_PRODUCTS(r[1][v], w[v], q, 1);
        ADD_PRODUCTS(r[2][v], w[v], q, 2);
        ADD_PRODUCTS(r[3][v], w[v], q, 3);
    }
}

DOTPROD LB_INLINE void add_two(sums *r, const int8x16_t *w, const int8_t *x)
{
    const int8x8_t q = vld1_s8(x);
    LB_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        ADD_PRODUCTS(r[0][v], w[v], q, 0);
        ADD_PRODUCTS(r[1][v], w[v], q, 1);
    }
}

DOTPROD LB_INLINE void add_one(sums *r, const int8x16_t *w, const int8_t *x)
{
    int32_t quad;
    memcpy(&quad, x, sizeof quad);
    const int32x2_t q = vdup_n_s32(quad);
    LB_UNROLL
    for (int v = 0; v < VECTORS; v++)
        ADD_PRODUCTS(r[0][v], w[v], q, 0);
}

/* rows is a constant where this is inlined, here and below. */
DOTPROD LB_INLINE void add_quad(const int rows, sums *r, const uint8_t *w,
                                const int8_t *x)
{
    int8x16_t v[VECTORS];
    LB_UNROLL
    for (int i = 0; i < VECTORS; i++)
        v[i] = vreinterpretq_s8_u8(vld1q_u8(w + (ptrdiff_t)16 * i));
    if (rows & 4) add_four(r, v, x);
    if (rows & 2) add_two(r + (rows & 4), v, x + (ptrdiff_t)4 * (rows & 4));
    if (rows & 1) add_one(r + (rows & 6), v, x + (ptrdiff_t)4 * (rows & 6));
}

DOTPROD LB_INLINE void put(const int rows, sums *r, const lb_dotbyte_x *x,
                           const float *ws, bool first, float *c)
{
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const int32x4_t start = vdupq_n_s32(x->start[i]);
        const float32x4_t scale = vdupq_n_f32(x->scale[i]);
        LB_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            float *const at = c + i * NR + v * 4;
            const float32x4_t sum = vcvtq_f32_s32(vaddq_s32(r[i][v], start));
            const float32x4_t old = first ? vdupq_n_f32(0) : vld1q_f32(at);
            vst1q_f32(at, vfmaq_f32(old, vmulq_f32(sum, vld1q_f32(ws + 4 * v)),
                                    scale));
        }
    }
}

DOTPROD LB_INLINE void tile_rows(const int rows, const lb_dotbyte_x *x,
                                 int64_t k, const uint8_t *w, const float *ws,
                                 bool first, float *c)
{
    sums r[MR];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        LB_UNROLL
        for (int v = 0; v < VECTORS; v++)
            r[i][v] = vdupq_n_s32(0);
    }
    for (int p = 0; p < x->planes; p++) {
        const int8_t *from = x->bytes + p * x->plane;
        const uint8_t *at = w, *const end = w + k * NR;
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            LB_UNROLL
            for (int v = 0; v < VECTORS; v++)
                r[i][v] = vshlq_n_s32(r[i][v], 8);
        }
        for (; at < end; at += NR * 4, from += rows * 4)
            add_quad(rows, r, at, from);
    }
    put(rows, r, x, ws, first, c);
}

DOTPROD LB_INLINE void tile_block(const lb_dotbyte_x *x, int64_t k,
                                  const uint8_t *w, const float *ws, bool first,
                                  float *c)
{
    switch (x->rows) {
    case 6:
        tile_rows(6, x, k, w, ws, first, c);
        break;
    case 5:
        tile_rows(5, x, k, w, ws, first, c);
        break;
    case 4:
        tile_rows(4, x, k, w, ws, first, c);
        break;
    case 3:
        tile_rows(3, x, k, w, ws, first, c);
        break;
    case 2:
        tile_rows(2, x, k, w, ws, first, c);
        break;
    default:
        tile_rows(1, x, k, w, ws, first, c);
    }
}

DOTPROD static void tile(const lb_dotbyte_x *x, int64_t k,
                         const lb_dotbyte_w *w, bool first, float *c,
                         lb_dotbyte_ask *ask)
{
    (void)ask; /* packing asks */
    lb_dotbyte_x x1 = *x;
    lb_dotbyte_w w1 = *w;
    do {
        const int64_t some = k < x1.share ? k : x1.share;
        tile_block(&x1, some, w1.bytes, w1.scale, first, c);
        lb_dotbyte_next(&x1, &w1, 1, 1, NR);
        first = false;
        k -= some;
    } while (k > 0);
}

const lb_dotbyte lb_dotbyte_dotprod = {
    .name = "dot i8 neon dotprod",
    .name_two = "dot i8x2 neon dotprod",
    .size = 1,
    .x_size = 1,
    .piece = 4,
    .mr = MR,
    .nr = NR,
    .most_w = 255,
    .bias = LB_DOTBYTE_NEON_BIAS,
    .planes = true,
    .round = lb_dotbyte_round_neon,
    .along = lb_dotbyte_along_neon,
    .across = lb_dotbyte_across_neon,
    .tile = tile,
};
#endif
