/* outerint_ref.c - outerint.h in portable C, and which level has a kernel. */
#include "kernels/outerint.h"

#include <math.h>
#include <stddef.h>

enum { TILE = LB_OUTERINT_TILE };

static int32_t round_row(int64_t n, const float *x, float factor, int16_t *to)
{
    int32_t sum = 0;
    for (int64_t k = 0; k < n; k++) {
        to[k] = (int16_t)lrintf(x[k] * factor);
        sum += to[k];
    }
    if (n % 2) to[n] = 0;
    return sum;
}

static int number(const lb_outerint_lines *w, int64_t k, int position)
{
    if (k >= w->n) return 0;
    const int bits = w->bits, mask = (1 << bits) - 1;
    const int byte = w->codes[k * w->step + lb_outerint_byte(bits, position)];
    const int shift = bits * lb_outerint_field(bits, position);
    if (!w->fine) return bits == 8 ? (int8_t)byte : byte & mask << shift;
    const int level =
        bits == 8 ? (int8_t)byte * 64 : w->level[byte >> shift & mask];
    return (level * w->ratio[k] + (1 << 14)) >> 15;
}

static void pack(const lb_outerint_lines *w, int16_t *to)
{
    for (int t = 0; t < LB_OUTERINT_TILES; t++)
        for (int64_t k = 0; k < w->n; k += 2)
            for (int p = 0; p < TILE; p++, to += 2) {
                to[0] = (int16_t)number(w, k, t * TILE + p);
                to[1] = (int16_t)number(w, k + 1, t * TILE + p);
            }
}

static void tile(int rows, int64_t pairs, const int16_t *x, const int16_t *w,
                 const lb_outerint_head *head, const float *part,
                 const float *ws, bool first, float *c, int64_t ldc)
{
    for (int i = 0; i < rows; i++, x += LB_OUTERINT_KC, c += ldc)
        for (int p = 0; p < TILE; p++) {
            int32_t sum = 0;
            for (int64_t k = 0; k < 2 * pairs; k++)
                sum += x[k] * w[(k / 2 * TILE + p) * 2 + k % 2];
            const float all =
                fmaf((float)sum, part[p / LB_OUTERINT_VECTOR], head->base[i]);
            c[p] = fmaf(all * ws[p], head->scale[i], first ? 0 : c[p]);
        }
}

const lb_outerint lb_outerint_ref = {
    .name = "dot i16 outer ref",
    .round = round_row,
    .pack = pack,
    .tile = tile,
};

const lb_outerint *lb_outerint_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level == LB_LEVEL_AVX2) return &lb_outerint_avx2;
#endif
    (void)cpu;
    return NULL;
}
