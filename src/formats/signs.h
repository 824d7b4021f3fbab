/* signs.h - what the formats share whose codes are signs: -1, 0 or 1.
 *
 *   codes  bytes of 8 / bits codes (kernels/bits.h); each row begins one
 *   scale  absent, or f32: a mean magnitude of the tensor, of each row or of
 *          each block of a row; w = code * s, or with meaning inverse code / s
 */
#ifndef LB_SIGNS_H
#define LB_SIGNS_H

#include "kernels/encode.h"
#include "kernels/sums.h"
#include "lowbit_ext.h"

enum { LB_SIGNS_CODES, LB_SIGNS_SCALE }; /* parts */

/* What must be known of a group before its codes: nothing, the mean of |x|,
 * which then is the scale, or its moments; then the scale is the mean of |x|
 * where that is above cut. */
typedef enum lb_signs_need {
    LB_SIGNS_NOTHING,
    LB_SIGNS_MEAN,
    LB_SIGNS_SPREAD
} lb_signs_need;

/* What they do not share. */
typedef struct lb_signs_rule {
    lb_signs_need (*need)(const lb_quant *q, bool scaled);
    /* For LB_SIGNS_SPREAD: of a group that is not empty. */
    float (*cut)(const lb_quant *q, lb_dtype from, lb_moments m);
    /* For LB_SIGNS_MEAN: the cut that belongs to a mean. NULL: codes do not
     * ask. */
    float (*cut_of_mean)(float mean);
    /* Bytes of codes from numbers and the cut, from the first place of a byte
     * on; fillers in the places that are left over. */
    void (*codes)(const lb_encode_kernel *k, float cut, const float *x,
                  int64_t n, uint8_t *byte);
} lb_signs_rule;

/* Who shares a scale: q's choice, or what the default is. */
lb_scale lb_signs_scale(const lb_quant *q);

/* The slots of a format whose type is a lb_signs_rule. */
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

/* interleave.c: the slots of lb_foreign, for parts "packed" and "scale". */
lb_array *lb_interleave_load(lb_ctx *cx, const lb_quant *q,
                             const lb_shape *shape, lb_array *const *part);
lb_array *lb_interleave_save(lb_ctx *cx, lb_array *a, int part);

#endif
