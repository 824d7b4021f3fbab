/* gemvq_sets.h - the kernels of each level; a list ends with name NULL. Of two
 * that serve the same the first is taken: wider units of scales come first.
 */
#ifndef LB_GEMVQ_SETS_H
#define LB_GEMVQ_SETS_H

#include "kernels/gemvq.h"

extern const lb_gemvq_kernel lb_gemvq_rows_ref[], lb_gemvq_cols_ref[];
#if defined(__x86_64__)
extern const lb_gemvq_kernel lb_gemvq_rows_avx2[], lb_gemvq_rows_int_avx2[];
extern const lb_gemvq_kernel lb_gemvq_rows_avx512[], lb_gemvq_rows_vnni[];
extern const lb_gemvq_kernel lb_gemvq_cols_avx2[], lb_gemvq_cols_int_avx2[];
extern const lb_gemvq_kernel lb_gemvq_cols_avx512[], lb_gemvq_cols_int_avx512[];
extern const lb_gemvq_kernel lb_gemvq_cols_vnni[], lb_gemvq_cols_bits_vnni[];
extern const lb_gemvq_kernel lb_gemvq_cols_bits_avx2[];
#elif defined(__aarch64__)
extern const lb_gemvq_kernel lb_gemvq_rows_neon[], lb_gemvq_rows_int_neon[];
extern const lb_gemvq_kernel lb_gemvq_cols_neon[], lb_gemvq_cols_int_neon[];
#endif

/* A level's functions for lines of 2 bits or 1 and x of two bytes or one, from
 * `all` and `flush`, which are inlined into them. */
#define LB_GEMVQ_COLS_OF(target, suffix, all, bits, two)                       \
    target static void cols##suffix(const lb_gemvq_cols *c)                    \
    {                                                                          \
        all(c, bits, two);                                                     \
    }                                                                          \
    target static void flush##suffix(const lb_gemvq_flush *f)                  \
    {                                                                          \
        flush(f, bits, two);                                                   \
    }
#define LB_GEMVQ_COLS_OF_BITS(target, all)                                     \
    LB_GEMVQ_COLS_OF(target, 2_i8x2, all, 2, true)                             \
    LB_GEMVQ_COLS_OF(target, 2_i8, all, 2, false)                              \
    LB_GEMVQ_COLS_OF(target, 1_i8x2, all, 1, true)                             \
    LB_GEMVQ_COLS_OF(target, 1_i8, all, 1, false)

/* Loops over the numbers of a vector: see lb_gemvq_x_range, lb_gemvq_x_order,
 * lb_gemvq_round; and over those of a line's scales:
 *
 *   tops    top[i] becomes the bits of the largest magnitude of x times
 *           scale[i] of some lines, if those are larger
 *   units   of n units whose largest magnitudes have the bits `top`: by[i]
 * makes them `most`, and scale[i] is unit for 1 of that; if they are not
 *           finite, 0 and NaN
 *   pairs   of two lines x * scale[i] * by[i], in the low half of to[i] and
 *           in the high one, as the nearest whole numbers, which are below 2^15
 */
typedef struct lb_gemvq_loops {
    void (*range)(lb_gemvq_x *x);
    void (*order)(const lb_gemvq_kernel *q, bool high_first, lb_gemvq_x *x);
    float (*round)(const float *x, int64_t n, float most, int32_t *to);
    void (*tops)(const float *x, int64_t lines, const float *scale,
                 int64_t step, int64_t n, int32_t *top);
    void (*units)(const int32_t *top, int64_t n, float most, float unit,
                  float *scale, float *by);
    void (*pairs)(const float *x, const float *const *scale, const float *by,
                  int64_t n, int32_t *to);
} lb_gemvq_loops;

extern const lb_gemvq_loops lb_gemvq_loops_ref;
#if defined(__x86_64__)
extern const lb_gemvq_loops lb_gemvq_loops_avx2;
#endif

const lb_gemvq_loops *lb_gemvq_loops_for(const lb_cpu *cpu);

/* Where each slot of a group stands in it. */
void lb_gemvq_places(const lb_gemvq_kernel *q, bool high_first, uint16_t *to);
/* n numbers as whole ones, at most `most`, and what 1 of them stands for; NaN
 * if there is a number that is not finite. */
float lb_gemvq_round(const float *x, int64_t n, float most, int32_t *to);

#endif
