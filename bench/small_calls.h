/* small_calls.h - calls of every primitive at any size, for bench_small. */
#ifndef LB_SMALL_CALLS_H
#define LB_SMALL_CALLS_H

#include "lowbit_ext.h"
#include "lowbit_params.h"

/* One call in one context. */
typedef struct shot {
    lb_ctx *cx;
    const lb_prim *prim;
    lb_array *in[4];
    int n;
    union {
        char any[LB_MAX_PARAMS];
        lb_convert_params convert;
        lb_bitcast_params bitcast;
        lb_integer_pow_params power;
        lb_transpose_params transpose;
        lb_reshape_params reshape;
        lb_broadcast_params broadcast;
        lb_slice_params slice;
        lb_reverse_params reverse;
        lb_concatenate_params concatenate;
        lb_pad_params pad;
        lb_dynamic_slice_params dynamic_slice;
        lb_iota_params iota;
        lb_gather_dims gather;
        lb_reduce_params reduce;
        lb_argminmax_params arg;
        lb_dot_dims dot;
        lb_conv_dims conv;
        lb_random_params random;
        lb_random_uniform_params uniform;
        lb_random_permutation_params permutation;
        lb_quant quant;
    } params;
    lb_array *(*call)(struct shot *); /* NULL: prim */
    double times;                     /* in a round */
} shot;

/* Operands and params for about `size` elements. */
typedef void make_fn(shot *s, int64_t size);

typedef struct entry {
    const char *prim;  /* "": none, `call` is set */
    const char *label; /* NULL: the primitive's name */
    make_fn *make;     /* NULL: elementwise */
} entry;

/* In no order; primitives that are not listed are taken to be elementwise. */
extern const entry small_entries[];
extern const int small_entries_n;

/* Operands of an elementwise primitive: floats, else integers. False: neither
 * is accepted. */
bool small_rows(shot *s, int64_t size);

#endif
