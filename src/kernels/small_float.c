/* small_float.c - small_float.h in portable C, and the choice of a level. */
#include "kernels/small_float.h"

#include <math.h>

#define LOOP_FN    static inline
#define LOOP_TABLE lb_small_decoders_ref
#include "kernels/small_float_loops.h"

const lb_small_decoders *lb_small_decoders_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_small_decoders_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_small_decoders_avx2;
#endif
    (void)cpu;
    return &lb_small_decoders_ref;
}

/* ---- encoding ------------------------------------------------------------ */

typedef struct small_kind {
    int m, bias;    /* bits of the mantissa; exponent of 1 */
    uint32_t sign;  /* the bit of the sign */
    uint32_t most;  /* the largest finite code */
    float least;    /* the smallest normal value */
    float rounding; /* a number whose last bit is the smallest value */
    float largest;
} small_kind;

static const small_kind kinds[] = {
    [LB_E4M3] = {3, 7, 0x80, 0x7e, 0x1p-6f, 0x1p14f, 448},
    [LB_E5M2] = {2, 15, 0x80, 0x7b, 0x1p-14f, 0x1p7f, 57344},
    [LB_E2M1] = {1, 1, 0x08, 0x07, 1, 0x1p22f, 6},
};

float lb_small_largest(lb_small kind)
{
    return kinds[kind].largest;
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* Adding 2^22 or the like leaves no bits below the smallest value. */
static inline uint8_t code_of(const small_kind *k, float x)
{
    const uint32_t u = bits_of(x), sign = u >> 31 ? k->sign : 0;
    const float a = fabsf(x);
    const int shift = 23 - k->m;
    const uint32_t b = u & 0x7fffffff;
    const uint32_t up = b + (1u << (shift - 1)) - 1 + (b >> shift & 1);
    const uint32_t normal = (up >> shift) - ((uint32_t)(127 - k->bias) << k->m);
    const uint32_t small = bits_of(a + k->rounding) - bits_of(k->rounding);
    const uint32_t em = a < k->least ? small : normal;
    return (uint8_t)(sign |
                     (a < k->largest ? em < k->most ? em : k->most : k->most));
}

void lb_small_encode(lb_small kind, const float *x, int64_t n, float scale,
                     bool times, uint8_t *code)
{
    const small_kind *k = &kinds[kind];
    if (!(scale > 0) || isinf(scale))
        for (int64_t i = 0; i < n; i++)
            code[i] = code_of(k, copysignf(0, x[i]));
    else if (times)
        for (int64_t i = 0; i < n; i++)
            code[i] = code_of(k, x[i] * scale);
    else
        for (int64_t i = 0; i < n; i++)
            code[i] = code_of(k, x[i] / scale);
}
