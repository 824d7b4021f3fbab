/* gemvq.c - tables of levels, and which kernel serves what. */
#include "kernels/gemvq.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/gemvq_sets.h"

/* Codes 0 and 1 of one bit are all that a kernel may tell apart: it may look
 * at more bits, so the levels are repeated. */
static void repeat_levels(lb_gemvq_table *t, const float *level, int bits)
{
    const int mask = (1 << bits) - 1;
    for (int i = 0; i < 16; i++)
        t->level[i] = level[i & mask];
}

static void find_line(lb_gemvq_table *t, const float *level, int bits)
{
    const float least = level[0], step = level[1] - level[0];
    t->linear = bits < 4 && fabsf(least) <= 4 && fabsf(step) <= 4;
    for (int i = 0; i < 1 << bits && t->linear; i++)
        t->linear = level[i] == least + step * (float)i;
    if (!t->linear) return;
    t->least = (int)least;
    t->step = (int)step;
    t->linear = (float)t->least == least && (float)t->step == step;
}

void lb_gemvq_table_look(lb_gemvq_table *t, const float *level, int bits)
{
    float most = 0;
    t->finite = true;
    t->linear = false;
    t->half_unit = 0;
    if (bits == 8) return;
    for (int i = 0; i < 1 << bits; i++) {
        const float size = fabsf(level[i]);
        t->finite = t->finite && size <= FLT_MAX;
        most = size > most ? size : most;
    }
    t->half_unit = most / LB_GEMVQ_LEVEL;
    find_line(t, level, bits);
}

void lb_gemvq_table_init(lb_gemvq_table *t, const float *level, int bits)
{
    memset(t, 0, sizeof *t);
    lb_gemvq_table_look(t, level, bits);
    if (bits == 8) return;
    repeat_levels(t, level, bits);
    const double by = t->half_unit > 0 ? 1 / (double)t->half_unit : 0;
    for (int i = 0; i < 16 && t->finite; i++) {
        uint32_t u;
        memcpy(&u, &t->level[i], sizeof u);
        for (int b = 0; b < 4; b++)
            t->byte[b][i] = (uint8_t)(u >> 8 * b);
        const double whole = (double)t->level[i] * by;
        const int half = (int)(whole + (whole < 0 ? -0.5 : 0.5));
        t->half[0][i] = (uint8_t)(half & 0xff);
        t->half[1][i] = (uint8_t)((unsigned)half >> 8 & 0xff);
    }
}

/* Strongest first. */
static const struct {
    lb_level level;
    const lb_gemvq_kernel *kernels;
} sets[] = {
#if defined(__x86_64__)
    {LB_LEVEL_AVX512VNNI, lb_gemvq_rows_vnni},
    {LB_LEVEL_AVX512VNNI, lb_gemvq_cols_vnni},
    {LB_LEVEL_AVX512VNNI, lb_gemvq_cols_bits_vnni},
    {LB_LEVEL_AVX512, lb_gemvq_rows_avx512},
    {LB_LEVEL_AVX512, lb_gemvq_cols_avx512},
    {LB_LEVEL_AVX512, lb_gemvq_cols_int_avx512},
    {LB_LEVEL_AVX2, lb_gemvq_rows_avx2},
    {LB_LEVEL_AVX2, lb_gemvq_rows_int_avx2},
    {LB_LEVEL_AVX2, lb_gemvq_cols_avx2},
    {LB_LEVEL_AVX2, lb_gemvq_cols_int_avx2},
    {LB_LEVEL_AVX2, lb_gemvq_cols_bits_avx2},
#elif defined(__aarch64__)
    {LB_LEVEL_NEON, lb_gemvq_rows_neon},
    {LB_LEVEL_NEON, lb_gemvq_rows_int_neon},
    {LB_LEVEL_NEON, lb_gemvq_cols_neon},
    {LB_LEVEL_NEON, lb_gemvq_cols_int_neon},
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
