/* gemm_codes.c - panels out of codes in portable C, and which level makes them
 * in another way.
 */
#include "kernels/gemm_codes.h"

#include <stddef.h>

const lb_gemm_codes *lb_gemm_codes_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_gemm_codes_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_gemm_codes_avx2;
#endif
    return cpu->level == LB_LEVEL_REF ? &lb_gemm_codes_ref : NULL;
}

/* Number `at` from codes on. */
static float level_at(const lb_gemm_rows *w, const uint8_t *codes, int64_t at)
{
    const int fields = 8 / w->bits, place = (int)(at % fields);
    const int field = w->high_first ? fields - 1 - place : place;
    if (w->bits == 8) return (float)(int8_t)codes[at];
    const int code = codes[at / fields] >> (field * w->bits);
    return w->level[code & ((1 << w->bits) - 1)];
}

enum { NR = 8 };

static void decode(const lb_gemm_rows *w, float *dst)
{
    for (int64_t kk = 0; kk < w->depth; kk++)
        for (int64_t j = 0; j < NR; j++) {
            const int64_t row = j < w->n ? j : 0;
            const int64_t block = w->g ? kk / w->g : 0;
            dst[kk * NR + j] = level_at(w, w->codes + row * w->step, kk) *
                               w->scale[row * w->scale_step + block];
        }
}

static void lines(const lb_gemm_rows *w, float *dst)
{
    for (int64_t kk = 0; kk < w->depth; kk++)
        for (int64_t j = 0; j < NR; j++) {
            const int64_t column = j < w->n ? j : 0;
            const float *scale = w->scale + kk * w->scale_step;
            dst[kk * NR + j] = level_at(w, w->codes + kk * w->step, column) *
                               scale[w->each ? column : 0];
        }
}

const lb_gemm_codes lb_gemm_codes_ref = {
    .name = "dot f32 ref", .nr = NR, .decode = decode, .lines = lines};
