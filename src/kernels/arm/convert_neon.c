/* convert_neon.c - conversions between f32 and 16 bits with NEON.
 *
 * Bits are those of convert.c, NaNs included: the CPU makes a NaN of f32 to
 * that of f16 as we do, but marks signalling NaNs of f16 as quiet, which
 * loading must not. Whatever is not here is left to the portable functions,
 * which compilers make vectors of.
 */
#include "kernels/convert.h"

#if defined(__aarch64__)
#include "kernels/arm/neon.h"

enum { SOME = 8 }; /* elements to a step */

/* ---- f16 ----------------------------------------------------------------- */

LB_INLINE float16x4_t halves_of(const uint16_t *src)
{
    return vreinterpret_f16_u16(vld1_u16(src));
}

static int64_t f32_from_f16(const uint16_t *src, int64_t n, float *dst)
{
    int64_t i = 0;
    for (; i + SOME <= n; i += SOME) {
        const uint16x8_t h = vld1q_u16(src + i);
        if (vmaxvq_u16(vandq_u16(h, vdupq_n_u16(0x7fff))) > 0x7c00) {
            lb_load_run(LB_F16, src + i, 1, SOME, dst + i);
            continue;
        }
        vst1q_f32(dst + i, vcvt_f32_f16(halves_of(src + i)));
        vst1q_f32(dst + i + 4, vcvt_f32_f16(halves_of(src + i + 4)));
    }
    return i;
}

static int64_t f16_from_f32(const float *src, int64_t n, uint16_t *dst)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1_u16(dst + i,
                 vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(src + i))));
    return i;
}

static int64_t round_f16(int64_t n, float *x)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(x + i, vcvt_f32_f16(vcvt_f16_f32(vld1q_f32(x + i))));
    return i;
}

/* ---- bf16 ---------------------------------------------------------------- */

/* Four numbers rounded to bf16, in the high halves of lanes; the low ones are
 * anything. */
LB_INLINE uint32x4_t high_halves(const float *src)
{
    const float32x4_t x = vld1q_f32(src);
    const uint32x4_t u = vreinterpretq_u32_f32(x);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(odd, vdupq_n_u32(0x7fff));
    const uint32x4_t quiet = vorrq_u32(u, vdupq_n_u32(0x400000));
    return vbslq_u32(vceqq_f32(x, x), vaddq_u32(u, up), quiet);
}

static int64_t f32_from_bf16(const uint16_t *src, int64_t n, float *dst)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(dst + i,
                  vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(src + i), 16)));
    return i;
}

static int64_t bf16_from_f32(const float *src, int64_t n, uint16_t *dst)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1_u16(dst + i, vshrn_n_u32(high_halves(src + i), 16));
    return i;
}

static int64_t round_bf16(int64_t n, float *x)
{
    const uint32x4_t high = vdupq_n_u32(0xffff0000u);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(x + i,
                  vreinterpretq_f32_u32(vandq_u32(high_halves(x + i), high)));
    return i;
}

/* ---- runs ---------------------------------------------------------------- */

static void load_neon(lb_dtype dtype, const void *src, int64_t step, int64_t n,
                      void *dst)
{
    int64_t i = 0;
    if (step == 1 && dtype == LB_F16)
        i = f32_from_f16(src, n, dst);
    else if (step == 1 && dtype == LB_BF16)
        i = f32_from_bf16(src, n, dst);
    if (i == 0)
        lb_load_run(dtype, src, step, n, dst);
    else
        lb_load_run(dtype, (const uint16_t *)src + i, 1, n - i,
                    (float *)dst + i);
}

static void store_neon(lb_ctype ctype, const void *tile, lb_dtype dtype,
                       int64_t n, void *dst)
{
    int64_t i = 0;
    if (ctype == LB_C_F32 && dtype == LB_F16)
        i = f16_from_f32(tile, n, dst);
    else if (ctype == LB_C_F32 && dtype == LB_BF16)
        i = bf16_from_f32(tile, n, dst);
    lb_store_run(ctype, (const char *)tile + (size_t)i * lb_ctype_size(ctype),
                 dtype, n - i, (char *)dst + (size_t)i * lb_dtype_size(dtype));
}

static void round_neon(lb_dtype dtype, int64_t n, void *dst)
{
    int64_t i = 0;
    if (dtype == LB_F16)
        i = round_f16(n, dst);
    else if (dtype == LB_BF16)
        i = round_bf16(n, dst);
    if (i == 0)
        lb_round_run(dtype, n, dst);
    else
        lb_round_run(dtype, n - i, (float *)dst + i);
}

const lb_convert_kernel lb_convert_neon = {"convert neon", load_neon,
                                           store_neon, round_neon};
#endif
