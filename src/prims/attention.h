/* attention.h - parts of the primitive attention: dimensions, and an eval for
 * f32 and one for f64.
 */
#ifndef LB_ATTENTION_H
#define LB_ATTENTION_H

#include "core/core.h"
#include "lowbit_params.h"

/* Sizes, and which axes of q, k and v they are. */
typedef struct lb_attend {
    const lb_attention_params *params;
    int64_t batch, heads, kv_heads, group; /* group: heads per kv head */
    int64_t queries, keys, d, dv;
    int lead;   /* 1: there is an axis of batches */
    int qh, qt; /* axes of q and the result */
    int kh, kt; /* of k and v */
} lb_attend;

lb_attend lb_attend_of(const lb_call *c);
/* Valid keys of a batch, 0 to keys. */
int64_t lb_attend_valid(const lb_call *c, const lb_attend *a, int64_t batch);
/* The keys [lo, hi) that a query sees; empty: hi <= lo. */
void lb_attend_seen(const lb_attend *a, int64_t valid, int64_t query,
                    int64_t *lo, int64_t *hi);
/* Rows of q or the result (kv false), or of k or v, as a box of an array:
 * n positions from `first` of one head, `size` numbers each. */
void lb_attend_box(const lb_attend *a, bool kv, int64_t batch, int64_t head,
                   int64_t first, int64_t n, int64_t size, int64_t *lo,
                   int64_t *count);

void lb_attend_plan_f32(const lb_call *c, lb_plan *plan);
void lb_attend_eval_f32(const lb_work *w);
void lb_attend_plan_f64(const lb_call *c, lb_plan *plan);
void lb_attend_eval_f64(const lb_work *w);

/* attention_vjp.c */
lb_array *lb_attend_vjp(lb_ctx *cx, const lb_call *c, int operand,
                        lb_array *out, lb_array *dout);

/* attention_codes.c: keys or values whose element e, in row e / size of the
 * store, is code[e] * scale[e / size] * factor. */
typedef struct lb_attend_codes {
    const int8_t *code; /* NULL: x is not of this form */
    const float *scale;
    float factor;
    int64_t size; /* of a row */
} lb_attend_codes;
lb_attend_codes lb_attend_codes_of(const lb_cpu *cpu, const lb_array *x);
/* The codes of n rows, from element `at` on and `step` elements apart, as
 * floats; and their scales times the factor. */
void lb_attend_convert(const lb_cpu *cpu, const lb_attend_codes *c, int64_t at,
                       int64_t step, int64_t n, float *to);
void lb_attend_scales(const lb_attend_codes *c, int64_t at, int64_t step,
                      int64_t n, float *to);

#endif
