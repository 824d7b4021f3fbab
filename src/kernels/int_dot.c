/* int_dot.c - int_dot.h in portable C, and the choice of a level. */
#include "kernels/int_dot.h"

#include <math.h>
#include <string.h>

typedef struct {
    int32_t at[LB_INT_LANES];
} dot_ints;
typedef struct {
    float at[LB_INT_LANES];
} dot_floats;
typedef const int8_t *dot_codes;
typedef dot_floats dot_panel; /* scales; with runs of 32 there are 8 */

static inline dot_codes dot_take(const int8_t *code)
{
    return code;
}

static inline dot_ints dot_products(dot_codes code, const lb_int_digit *digit,
                                    int c)
{
    const int8_t *x = digit->code + c * LB_INT_CHUNK;
    dot_ints sum;
    for (int l = 0; l < LB_INT_LANES; l++) {
        sum.at[l] = 0;
        for (int i = 4 * l; i < 4 * l + 4; i++)
            sum.at[l] += code[i] * x[i];
    }
    return sum;
}

static inline dot_floats dot_convert(dot_ints a)
{
    dot_floats r;
    for (int l = 0; l < LB_INT_LANES; l++)
        r.at[l] = (float)a.at[l];
    return r;
}

static inline dot_floats dot_fma(dot_floats a, dot_floats b, dot_floats c)
{
    for (int l = 0; l < LB_INT_LANES; l++)
        c.at[l] = fmaf(a.at[l], b.at[l], c.at[l]);
    return c;
}

static inline dot_floats dot_all(float f)
{
    dot_floats r;
    for (int l = 0; l < LB_INT_LANES; l++)
        r.at[l] = f;
    return r;
}

static inline dot_floats dot_load(const float *p)
{
    dot_floats r;
    memcpy(&r, p, sizeof r);
    return r;
}

static inline void dot_store(float *p, dot_floats f)
{
    memcpy(p, &f, sizeof f);
}

static inline float dot_fold(dot_floats f)
{
    for (int half = LB_INT_LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            f.at[l] += f.at[l + half];
    return f.at[0];
}

static inline dot_panel dot_scaled(const float *scale, int run)
{
    dot_panel p = dot_all(0);
    memcpy(&p, scale, LB_INT_PANEL / (size_t)run * sizeof *scale);
    return p;
}

static inline dot_floats dot_scales(dot_panel p, int c, int run)
{
    dot_floats r;
    for (int l = 0; l < LB_INT_LANES; l++)
        r.at[l] = p.at[(c * LB_INT_CHUNK + 4 * l) / run];
    return r;
}

static inline dot_floats dot_sixteenths(const float *bias, int run)
{
    dot_floats r;
    for (int l = 0; l < LB_INT_LANES; l++)
        r.at[l] = bias[16 * l / run];
    return r;
}

#define LB_UNROLL
#define DOT_FN    static inline
#define DOT_ROWS  1
#define DOT_TABLE lb_int_dot_ref
#define DOT_NAME  "dot of integers ref"
#include "kernels/int_dot_loops.h"

const lb_int_dot *lb_int_dot_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512VNNI) return &lb_int_dot_vnni;
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_int_dot_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_int_dot_avx2;
#elif defined(__aarch64__)
    if (cpu->level == LB_LEVEL_NEON && cpu->dotprod) return &lb_int_dot_dotprod;
#endif
    return cpu->level == LB_LEVEL_REF ? &lb_int_dot_ref : NULL;
}
