/* gemvq.c - tables of levels, and which kernel serves what. */
#include "kernels/gemvq.h"

#include <math.h>
#include <string.h>

#include "kernels/gemvq_sets.h"

/* Codes 0 and 1 of one bit are all that a kernel may tell apart: it may look
 * at more bits, so the levels are repeated. */
static void repeat_levels(lb_gemvq_table *t, const float *level, int bits)
{
    const int n = bits < 8 ? 1 << bits : 0;
    for (int i = 0; i < 16 && n; i++)
        t->level[i] = level[i % n];
}

static void find_line(lb_gemvq_table *t, int bits)
{
    const float least = t->level[0], step = t->level[1] - t->level[0];
    t->finite = true;
    t->linear = bits < 4 && fabsf(least) <= 4 && fabsf(step) <= 4;
    for (int i = 0; i < 1 << bits && bits < 8; i++) {
        t->finite = t->finite && isfinite(t->level[i]);
        t->linear = t->linear && t->level[i] == least + step * (float)i;
    }
    if (!t->linear) return;
    t->least = (int)least;
    t->step = (int)step;
    t->linear = (float)t->least == least && (float)t->step == step;
}

void lb_gemvq_table_init(lb_gemvq_table *t, const float *level, int bits)
{
    memset(t, 0, sizeof *t);
    repeat_levels(t, level, bits);
    find_line(t, bits);
    float most = 0;
    for (int i = 0; i < 16; i++)
        most = fmaxf(most, fabsf(t->level[i]));
    /* Levels so far from 1 that a unit would not be normal stay what they
     * are in F32, and are not asked for in I16. */
    t->half_unit = most / LB_GEMVQ_LEVEL;
    for (int i = 0; i < 16 && t->finite && most > 0; i++) {
        uint32_t u;
        memcpy(&u, &t->level[i], sizeof u);
        for (int b = 0; b < 4; b++)
            t->byte[b][i] = (uint8_t)(u >> 8 * b);
        const int whole =
            (int)lrint((double)t->level[i] / most * LB_GEMVQ_LEVEL);
        t->half[0][i] = (uint8_t)(whole & 0xff);
        t->half[1][i] = (uint8_t)((unsigned)whole >> 8 & 0xff);
    }
}

/* Strongest first. */
static const struct {
    lb_level level;
    const lb_gemvq_kernel *kernels;
} sets[] = {
#if defined(__x86_64__)
    {LB_LEVEL_AVX512VNNI, lb_gemvq_rows_vnni},
    {LB_LEVEL_AVX512, lb_gemvq_rows_avx512},
    {LB_LEVEL_AVX2, lb_gemvq_rows_avx2},
    {LB_LEVEL_AVX2, lb_gemvq_rows_int_avx2},
    {LB_LEVEL_AVX2, lb_gemvq_cols_avx2},
    {LB_LEVEL_AVX2, lb_gemvq_cols_int_avx2},
#endif
    {LB_LEVEL_REF, lb_gemvq_rows_ref},
    {LB_LEVEL_REF, lb_gemvq_cols_ref},
};
enum { SETS = sizeof sets / sizeof *sets };

static bool serves(const lb_gemvq_kernel *q, const lb_gemvq_need *need)
{
    if (q->bits != need->bits || q->kind != need->kind) return false;
    if (need->along ? !q->rows : !q->cols) return false;
    return q->unit ? need->g % q->unit == 0 : need->g == 0;
}

const lb_gemvq_kernel *lb_gemvq_kernel_for(const lb_cpu *cpu,
                                           const lb_gemvq_need *need)
{
    for (int s = 0; s < SETS; s++) {
        if (sets[s].level > cpu->level) continue;
        for (const lb_gemvq_kernel *q = sets[s].kernels; q->name; q++)
            if (serves(q, need)) return q;
    }
    return NULL;
}

const lb_gemvq_kernel *lb_gemvq_kernel_at(int k, lb_level *level)
{
    for (int s = 0; s < SETS; s++)
        for (const lb_gemvq_kernel *q = sets[s].kernels; q->name; q++)
            if (k-- == 0) {
                *level = sets[s].level;
                return q;
            }
    return NULL;
}
