/* pack_integers.c - pack_integers.h in portable C: the specification. */
#include "kernels/pack_integers.h"

#include <math.h>

#include "kernels/pack_f32.h"

void lb_pack_integers_ref(const int8_t *code, const float *scale,
                          const float *bias, int run, int64_t n, int8_t *to,
                          float *block_scale)
{
    for (int64_t k = 0; k < n; k += LB_PACK_BLOCK) {
        const int64_t some = n - k < LB_PACK_BLOCK ? n - k : LB_PACK_BLOCK;
        float number[LB_PACK_BLOCK], most = 0;
        bool finite = true;
        for (int64_t i = 0; i < some; i++) {
            const int64_t r = (k + i) / run;
            const float product = scale[r] * (float)code[k + i];
            number[i] = bias ? product + bias[r] : product;
            most = fmaxf(most, fabsf(number[i]));
            finite = finite && isfinite(number[i]);
        }
        const float lift = most < 0x1p-100f ? 0x1p100f : 1;
        const float factor =
            most > 0 && finite ? LB_PACK_MOST_BYTE / (most * lift) : 0;
        *block_scale++ = finite ? most / LB_PACK_MOST_BYTE : (float)NAN;
        for (int64_t i = 0; i < some; i++)
            to[k + i] =
                (int8_t)(factor > 0 ? lrintf(number[i] * lift * factor) : 0);
    }
}

lb_pack_integers_fn *lb_pack_integers_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return lb_pack_integers_avx512;
#endif
    return cpu->level == LB_LEVEL_REF ? lb_pack_integers_ref : NULL;
}
