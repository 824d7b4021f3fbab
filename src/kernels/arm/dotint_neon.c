/* dotint_neon.c - products of whole numbers: the 6x2 tile for NEON.
 *
 *             w: 2 rows       12 sums of eight lanes along the depth, two
 *          +-------+-------+  registers each: smlal adds four products to one
 *   x: 6   | r[i][0..1]    |  of them, smlal2 the next four to the other. 24
 *   rows   +-------+-------+  accumulators, two vectors of w and one of x.
 *
 * Lanes and folds are those of the reference, and so are the bits.
 */
#include "kernels/dotint.h"

#if defined(__aarch64__)
#include <float.h>
#include <string.h>

#include "kernels/arm/dotint_neon.h"
#include "kernels/arm/neon.h"

enum { MR = 6, NR = 2, LANES = LB_DOTINT_NEON_LANES, STEP = LB_DOTINT_STEP };

/* ---- rows of x ----------------------------------------------------------- */

typedef struct {
    uint32x4_t most; /* as bits, which order as magnitudes do, NaN on top */
    lb_eight sum;
} magnitudes;

LB_INLINE void add_8(const float *x, magnitudes *m)
{
    const float32x4_t lo = vabsq_f32(vld1q_f32(x));
    const float32x4_t hi = vabsq_f32(vld1q_f32(x + 4));
    m->most = vmaxq_u32(m->most, vreinterpretq_u32_f32(lo));
    m->most = vmaxq_u32(m->most, vreinterpretq_u32_f32(hi));
    m->sum.lo = vaddq_f32(m->sum.lo, lo);
    m->sum.hi = vaddq_f32(m->sum.hi, hi);
}

static float largest(int64_t n, const float *x, float *lane)
{
    magnitudes m = {vdupq_n_u32(0), lb_eight_zero()};
    for (; n >= LANES; n -= LANES, x += LANES)
        add_8(x, &m);
    if (n) {
        float rest[LANES] = {0};
        memcpy(rest, x, (size_t)n * sizeof *x);
        add_8(rest, &m);
    }
    *lane = vmaxvq_f32(vmaxq_f32(m.sum.lo, m.sum.hi));
    const uint32_t bits = vmaxvq_u32(m.most);
    float most;
    memcpy(&most, &bits, sizeof most);
    return most;
}

/* Eight numbers, rounded to nearest even. */
LB_INLINE int16x8_t round_8(const float *x, float lift, float factor)
{
    const float32x4_t lo = vmulq_n_f32(vld1q_f32(x), lift);
    const float32x4_t hi = vmulq_n_f32(vld1q_f32(x + 4), lift);
    return vcombine_s16(vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(lo, factor))),
                        vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(hi, factor))));
}

static int32_t round_row(int64_t n, const float *x, float factor, int16_t *to,
                         int64_t apart)
{
    int32x4_t sum = vdupq_n_s32(0);
    int64_t end = (n + STEP - 1) / STEP * STEP;
    for (; n >= LANES; n -= LANES, end -= LANES, x += LANES, to += apart) {
        const int16x8_t v = round_8(x, 1, factor);
        sum = vpadalq_s16(sum, v);
        vst1q_s16(to, v);
    }
    if (n) {
        float rest[LANES] = {0};
        memcpy(rest, x, (size_t)n * sizeof *x);
        const int16x8_t v = round_8(rest, 1, factor);
        sum = vpadalq_s16(sum, v);
        vst1q_s16(to, v);
        end -= LANES;
        to += apart;
    }
    for (; end > 0; end -= LANES, to += apart)
        vst1q_s16(to, vdupq_n_s16(0));
    return vaddvq_s32(sum);
}

static float row_ratios(int64_t n, const float *scale, float top,
                        int16_t *ratio)
{
    float lane;
    const float most = largest(n, scale, &lane);
    if (!(most > 0 && most <= FLT_MAX)) {
        memset(ratio, 0, (size_t)n * sizeof *ratio);
        return most;
    }
    const float lift = most < 0x1p-100f ? 0x1p100f : 1;
    const float factor = top / (most * lift);
    for (; n >= LANES; n -= LANES, scale += LANES, ratio += LANES)
        vst1q_s16(ratio, round_8(scale, lift, factor));
    if (n) {
        float rest[LANES] = {0};
        int16_t out[LANES];
        memcpy(rest, scale, (size_t)n * sizeof *scale);
        vst1q_s16(out, round_8(rest, lift, factor));
        memcpy(ratio, out, (size_t)n * sizeof *ratio);
    }
    return most;
}

static void ratios(int64_t rows, int64_t n, const float *scale, int64_t step,
                   float top, int16_t *ratio, int64_t apart, float *most)
{
    for (int64_t r = 0; r < rows; r++)
        most[r] = row_ratios(n, scale + r * step, top, ratio + r * apart);
}

/* ---- tiles --------------------------------------------------------------- */

typedef struct {
    int32x4_t lo, hi; /* lanes 0..3 and 4..7 */
} sums;

/* Neighbours to neighbours. */
LB_INLINE float32x2_t fold_2(const sums *r)
{
    const int32x4_t a = vpaddq_s32(r[0].lo, r[0].hi);
    const int32x4_t b = vpaddq_s32(r[1].lo, r[1].hi);
    const int32x4_t s = vpaddq_s32(a, b);
    return vcvt_f32_s32(vpadd_s32(vget_low_s32(s), vget_high_s32(s)));
}

LB_INLINE float32x2_t fold_2_fine(const sums *r)
{
    const float32x4_t a =
        vpaddq_f32(vcvtq_f32_s32(r[0].lo), vcvtq_f32_s32(r[0].hi));
    const float32x4_t b =
        vpaddq_f32(vcvtq_f32_s32(r[1].lo), vcvtq_f32_s32(r[1].hi));
    const float32x4_t s = vpaddq_f32(a, b);
    return vpadd_f32(vget_low_f32(s), vget_high_f32(s));
}

/* rows is a constant where this is inlined. */
LB_INLINE void tile_rows(const int rows, int64_t k, const int16_t *x,
                         const int16_t *w, const float *xs, const float *ws,
                         bool fine, bool first, float *c)
{
    sums r[MR][NR];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        LB_UNROLL
        for (int j = 0; j < NR; j++)
            r[i][j] = (sums){vdupq_n_s32(0), vdupq_n_s32(0)};
    }
    for (; k > 0; k -= LANES, x += rows * LANES, w += NR * LANES) {
        const int16x8_t v[NR] = {vld1q_s16(w), vld1q_s16(w + LANES)};
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            int16x8_t u = vld1q_s16(x + i * LANES);
            LB_KEEP(u);
            LB_UNROLL
            for (int j = 0; j < NR; j++) {
                r[i][j].lo =
                    vmlal_s16(r[i][j].lo, vget_low_s16(u), vget_low_s16(v[j]));
                r[i][j].hi = vmlal_high_s16(r[i][j].hi, u, v[j]);
            }
        }
    }
    const float32x2_t scale = vld1_f32(ws);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const float32x2_t sum = fine ? fold_2_fine(r[i]) : fold_2(r[i]);
        const float32x2_t old = first ? vdup_n_f32(0) : vld1_f32(c + i * NR);
        vst1_f32(c + i * NR,
                 vfma_f32(old, vmul_f32(sum, scale), vld1_f32(xs + i * NR)));
    }
}

static void tile(int rows, int64_t k, const int16_t *x, const int16_t *w,
                 const float *xs, const float *ws, bool fine, bool first,
                 float *c)
{
    switch (rows) {
    case 6:
        tile_rows(6, k, x, w, xs, ws, fine, first, c);
        break;
    case 5:
        tile_rows(5, k, x, w, xs, ws, fine, first, c);
        break;
    case 4:
        tile_rows(4, k, x, w, xs, ws, fine, first, c);
        break;
    case 3:
        tile_rows(3, k, x, w, xs, ws, fine, first, c);
        break;
    case 2:
        tile_rows(2, k, x, w, xs, ws, fine, first, c);
        break;
    default:
        tile_rows(1, k, x, w, xs, ws, fine, first, c);
    }
}

const lb_dotint lb_dotint_neon = {
    .name = "dot i16 neon",
    .mr = MR,
    .nr = NR,
    .lanes = LANES,
    .kc = LB_DOTINT_KC,
    .largest = largest,
    .round = round_row,
    .unpack = lb_dotint_unpack_neon,
    .turn = lb_dotint_turn_neon,
    .ratios = ratios,
    .pack = lb_dotint_pack_neon,
    .tile = tile,
};
#endif
