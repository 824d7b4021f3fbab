/* int_dot_dotprod.c - int_dot.h with sdot. Only CPUs with dotprod, which is
 * optional, may come here (lb_cpu.dotprod). */
#include "kernels/int_dot.h"

#if defined(__aarch64__)
#include "kernels/arm/neon.h"

#if defined(__clang__)
#define DOT_FN __attribute__((target("dotprod"))) LB_INLINE
#else
#define DOT_FN __attribute__((target("arch=armv8.2-a+dotprod"))) LB_INLINE
#endif

typedef struct {
    int32x4_t at[4];
} dot_ints;
typedef struct {
    float32x4_t at[4];
} dot_floats;
typedef struct {
    int8x16_t at[4];
} dot_codes;
typedef const float *dot_panel;

DOT_FN dot_codes dot_take(const int8_t *code)
{
    return (dot_codes){{vld1q_s8(code), vld1q_s8(code + 16),
                        vld1q_s8(code + 32), vld1q_s8(code + 48)}};
}

/* Not the intrinsic: clang has it only where a whole file is compiled for
 * dotprod. */
DOT_FN dot_ints dot_products(dot_codes w, const lb_int_digit *digit, int c)
{
    const int8_t *x = digit->code + c * LB_INT_CHUNK;
    dot_ints sum;
    LB_UNROLL
    for (int v = 0; v < 4; v++) {
        sum.at[v] = vdupq_n_s32(0);
        __asm__("sdot %0.4s, %1.16b, %2.16b"
                : "+w"(sum.at[v])
                : "w"(w.at[v]), "w"(vld1q_s8(x + 16 * v)));
    }
    return sum;
}

DOT_FN dot_floats dot_convert(dot_ints a)
{
    dot_floats r;
    LB_UNROLL
    for (int v = 0; v < 4; v++)
        r.at[v] = vcvtq_f32_s32(a.at[v]);
    return r;
}

DOT_FN dot_floats dot_fma(dot_floats a, dot_floats b, dot_floats c)
{
    LB_UNROLL
    for (int v = 0; v < 4; v++)
        c.at[v] = vfmaq_f32(c.at[v], a.at[v], b.at[v]);
    return c;
}

DOT_FN dot_floats dot_all(float f)
{
    const float32x4_t v = vdupq_n_f32(f);
    return (dot_floats){{v, v, v, v}};
}

DOT_FN dot_floats dot_load(const float *p)
{
    return (dot_floats){
        {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}

DOT_FN void dot_store(float *p, dot_floats f)
{
    LB_UNROLL
    for (int v = 0; v < 4; v++)
        vst1q_f32(p + 4 * v, f.at[v]);
}

DOT_FN float dot_fold(dot_floats f)
{
    const float32x4_t four =
        vaddq_f32(vaddq_f32(f.at[0], f.at[2]), vaddq_f32(f.at[1], f.at[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

DOT_FN dot_panel dot_scaled(const float *scale, int run)
{
    (void)run;
    return scale;
}

DOT_FN dot_floats dot_scales(dot_panel scale, int c, int run)
{
    dot_floats r;
    LB_UNROLL
    for (int v = 0; v < 4; v++)
        r.at[v] = vld1q_dup_f32(scale + (c * LB_INT_CHUNK + 16 * v) / run);
    return r;
}

DOT_FN dot_floats dot_sixteenths(const float *bias, int run)
{
    if (run == 16) return dot_load(bias);
    const float32x4_t a = vld1q_f32(bias), b = vld1q_f32(bias + 4);
    return (dot_floats){{vzip1q_f32(a, a), vzip2q_f32(a, a), vzip1q_f32(b, b),
                         vzip2q_f32(b, b)}};
}

#define DOT_ROWS  2
#define DOT_TABLE lb_int_dot_dotprod
#define DOT_NAME  "dot of integers neon"
#include "kernels/int_dot_loops.h"
#endif
