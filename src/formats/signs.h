/* signs.h - common code of the formats whose codes are -1, 0 or 1.
 *
 *   codes  bytes of 8 / bits codes (kernels/bits.h); each row begins a byte
 *   scale  absent, or f32: a mean magnitude of the tensor, of each row or of
 *          each block of a row; w = code * s, or with meaning inverse code / s
 */
#ifndef LB_SIGNS_H
#define LB_SIGNS_H

#include "kernels/encode.h"
#include "kernels/sums.h"
#include "lowbit_ext.h"

enum { LB_SIGNS_CODES, LB_SIGNS_SCALE }; /* parts */

/* Statistics of a group that are needed before its codes: none; the mean of
 * |x|, which is then the scale; or its moments, then the scale is the mean of
 * |x| over values above the cut. */
typedef enum lb_signs_need {
    LB_SIGNS_NOTHING,
    LB_SIGNS_MEAN,
    LB_SIGNS_SPREAD
} lb_signs_need;

/* Where the formats differ. */
typedef struct lb_signs_rule {
    lb_signs_need (*need)(const lb_quant *q, bool scaled);
    /* For LB_SIGNS_SPREAD: the cut of a nonempty group. */
    float (*cut)(const lb_quant *q, lb_dtype from, lb_moments m);
    /* For LB_SIGNS_MEAN: the cut that belongs to a mean. NULL: codes do not
     * depend on it. */
    float (*cut_of_mean)(float mean);
    /* Computes the bytes of codes from values and the cut, starting at the
     * first code of a byte; unused codes of the last byte are fillers. */
    void (*codes)(const lb_encode_kernel *k, float cut, const float *x,
                  int64_t n, uint8_t *byte);
} lb_signs_rule;

/* The scale granularity: as q specifies, or the default. */
lb_scale lb_signs_scale(const lb_quant *q);

/* Function pointers of a format whose type is a lb_signs_rule. */
bool lb_signs_layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                     const lb_shape *shape, lb_layout *to);
void lb_signs_prepare(const lb_quant *q, lb_store *to);
void lb_signs_plan(const lb_call *call, lb_plan *to);
void lb_signs_encode(const lb_work *w);
void lb_signs_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                     int64_t n, void *out);
bool lb_signs_unpack(const lb_cpu *cpu, const lb_store *s, int64_t first,
                     int64_t n, lb_sink to);
bool lb_signs_levels(const lb_cpu *cpu, const lb_store *s, lb_levels *to);
double lb_signs_bound(const lb_quant *q);
extern const lb_recode lb_signs_recode;

/* interleave.c: lb_foreign functions for parts "packed" and "scale". */
lb_array *lb_interleave_load(lb_ctx *cx, const lb_quant *q,
                             const lb_shape *shape, lb_array *const *part);
lb_array *lb_interleave_save(lb_ctx *cx, lb_array *a, int part);

#endif
