/* outerf32_ref.c - outerf32.h in portable C, and which level has a kernel. */
#include <string.h>

#include "kernels/convert.h"
#include "kernels/outerf32.h"

enum { MR = 4, NR = 16 };

void lb_outerf32_table_of(lb_outerf32_table *t, int bits, bool high_first,
                          const float *level)
{
    *t = (lb_outerf32_table){.bits = bits, .high_first = high_first};
    for (int i = 0; i < 16 && bits < 8; i++) {
        uint32_t u;
        t->level[i] = level[i & ((1 << bits) - 1)];
        memcpy(&u, t->level + i, sizeof u);
        for (int b = 0; b < 4; b++)
            t->plane[b][i] = (uint8_t)(u >> 8 * b);
    }
    for (int j = 0; j < LB_OUTERF32_MAX_NR && bits < 8; j++) {
        const int at = j * bits % 32, bit = at % 8;
        t->shift[j] = at - bit + (high_first ? 8 - bits - bit : bit);
    }
}

static float number_at(const lb_outerf32_lines *w, int64_t k, int j)
{
    const lb_outerf32_table *t = w->table;
    const uint8_t *codes = w->codes + k * w->step;
    if (t->bits == 8) return (float)(int8_t)codes[j];
    const int fields = 8 / t->bits, at = j % fields;
    const int field = t->high_first ? fields - 1 - at : at;
    const int code = codes[j / fields] >> (field * t->bits);
    return t->level[code & ((1 << t->bits) - 1)];
}

static void tile(const lb_outerf32_lines *w, int rows, const float *x,
                 bool first, int n, float *c, int64_t ldc, float *keep)
{
    for (int64_t k = 0; k < w->k; k++)
        for (int j = 0; j < NR; j++) {
            const int64_t at = w->each ? j : k * w->scale_step;
            keep[k * NR + j] = number_at(w, k, j) * w->scale[at];
        }
    lb_round_run(w->rounds, w->k * NR, keep);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t k = 0; k < w->k; k++)
                sum += x[k * rows + i] * keep[k * NR + j];
            c[i * ldc + j] = first ? sum : c[i * ldc + j] + sum;
        }
}

const lb_outerf32 lb_outerf32_ref = {.name = "dot f32 ref 4x16",
                                     .mr = MR,
                                     .nr = NR,
                                     .kc = 256,
                                     .most = 256,
                                     .tile = tile};

const lb_outerf32 *lb_outerf32_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_outerf32_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_outerf32_avx2;
#endif
    (void)cpu;
    return NULL;
}
