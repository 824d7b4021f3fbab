/* lanes_f32.c - see lanes_f32.h: the choice, what is left of a tile, and the
 * reference, whose vectors of 16 bytes every machine has or its compiler
 * imitates: NEON has no wider ones, so this is its level, too.
 */
#include "kernels/lanes_f32.h"

#include <math.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

const lb_lanes_f32 *lb_lanes_f32_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_lanes_f32_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_lanes_f32_avx2;
#else
    (void)cpu;
#endif
    return &lb_lanes_f32_ref;
}

void lb_lanes_padded(const lb_lanes *l, int64_t from, const size_t size[4],
                     lb_lanes_fn *run)
{
    _Alignas(64) char block[4][LB_LANES_BLOCK * 4];
    const size_t n = (size_t)(l->n - from);
    lb_lanes all = *l;
    all.n = LB_LANES_BLOCK;
    all.out = block[3];
    for (int i = 0; i < 3; i++) {
        if (!size[i]) continue;
        if (l->ones >> i & 1) continue;
        memset(block[i], 0, sizeof block[i]);
        memcpy(block[i], (const char *)l->in[i] + (size_t)from * size[i],
               n * size[i]);
        all.in[i] = block[i];
    }
    run(&all);
    memcpy((char *)l->out + (size_t)from * size[3], block[3], n * size[3]);
}

void lb_lanes_copied(const lb_lanes *l, lb_lanes_fn *run)
{
    float copy[LB_LANES_BLOCK];
    const int one = l->ones == 1 ? 0 : 1;
    for (int i = 0; i < LB_LANES_BLOCK; i++)
        memcpy(&copy[i], l->in[one], sizeof *copy);
    lb_lanes some = *l;
    some.ones = 0;
    some.in[one] = copy;
    for (int64_t i = 0; i < l->n; i += LB_LANES_BLOCK) {
        some.n = l->n - i < LB_LANES_BLOCK ? l->n - i : LB_LANES_BLOCK;
        some.in[!one] = (const float *)l->in[!one] + i;
        some.out = (float *)l->out + i;
        run(&some);
    }
}

/* ---- the reference ------------------------------------------------------ */

#define LANE_FN    static inline __attribute__((always_inline))
#define LANE_RUN   static
#define LANE_TABLE lb_lanes_f32_ref
#define LANE_NAME  "lanes"
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
#if defined(__aarch64__)
LANE_FN vf lookup_16(const float *table, vi i)
{
    const uint8x16x4_t all = vld1q_u8_x4((const uint8_t *)table);
    const vu first = (vu)(i & 15) * 0x04040404u + 0x03020100u;
    return (vf)vqtbl4q_u8(all, (uint8x16_t)first);
}
#define LANE_LOOKUP(table, i) lookup_16(table, i)
#endif
#include "kernels/mathf_lanes.h"

#if defined(__aarch64__)
LANE_FN vf root_of(vf x)
{
    return (vf)vsqrtq_f32((float32x4_t)x);
}

LANE_FN vf inverse_root_of(vf x)
{
    const float32x4_t v = (float32x4_t)x;
    const float64x2_t one = vdupq_n_f64(1.0);
    const float64x2_t lo = vsqrtq_f64(vcvt_f64_f32(vget_low_f32(v)));
    const float64x2_t hi = vsqrtq_f64(vcvt_high_f64_f32(v));
    return (vf)vcombine_f32(vcvt_f32_f64(vdivq_f64(one, lo)),
                            vcvt_f32_f64(vdivq_f64(one, hi)));
}
#else
LANE_FN vf root_of(vf x)
{
    return (vf){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])};
}

static float inverse_root(float x)
{
    return (float)(1.0 / sqrt((double)x));
}

LANE_FN vf inverse_root_of(vf x)
{
    return (vf){inverse_root(x[0]), inverse_root(x[1]), inverse_root(x[2]),
                inverse_root(x[3])};
}
#endif

/* Four bytes in every lane, of which each looks at its own. */
LANE_FN vi load_bools(const uint8_t *p)
{
    static const uint8_t own[16] = {1, 0, 0, 0, 0, 1, 0, 0,
                                    0, 0, 1, 0, 0, 0, 0, 1};
    uint32_t all;
    vu mask;
    memcpy(&all, p, sizeof all);
    memcpy(&mask, own, sizeof mask);
    return (vi)((mask & all) != 0);
}

#if defined(__SSE2__)
LANE_FN void store_bools(uint8_t *to, vi a, vi b, vi c, vi d)
{
    const __m128i ab = _mm_packs_epi32((__m128i)a, (__m128i)b);
    const __m128i cd = _mm_packs_epi32((__m128i)c, (__m128i)d);
    const __m128i all = _mm_packs_epi16(ab, cd);
    _mm_storeu_si128((__m128i *)(void *)to,
                     _mm_and_si128(all, _mm_set1_epi8(1)));
}
#elif defined(__aarch64__)
LANE_FN void store_bools(uint8_t *to, vi a, vi b, vi c, vi d)
{
    const int16x8_t ab =
        vcombine_s16(vmovn_s32((int32x4_t)a), vmovn_s32((int32x4_t)b));
    const int16x8_t cd =
        vcombine_s16(vmovn_s32((int32x4_t)c), vmovn_s32((int32x4_t)d));
    const int8x16_t all = vcombine_s8(vmovn_s16(ab), vmovn_s16(cd));
    vst1q_u8(to, vandq_u8(vreinterpretq_u8_s8(all), vdupq_n_u8(1)));
}
#else
LANE_FN void store_bools(uint8_t *to, vi a, vi b, vi c, vi d)
{
    for (int i = 0; i < 4; i++) {
        to[i] = a[i] & 1;
        to[i + 4] = b[i] & 1;
        to[i + 8] = c[i] & 1;
        to[i + 12] = d[i] & 1;
    }
}
#endif

#include "kernels/lanes_f32_loops.h"
