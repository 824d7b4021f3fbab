/* py_ffi.h - what the two files of the FFI handlers share. */
#ifndef PY_FFI_H
#define PY_FFI_H

#include "lowbit.h"
#include "lowbit_ext.h"
#include "xla_ffi.h"

/* A description of a quantized array, from the attributes f<i>, the name of its
 * format, and a<i>, integers:
 *
 *     dtype, parts present (bit mask), 11 members of lb_quant_config in the
 *     order of ffi_spec_read, number of axes, axes, rank, shape, number of
 *     permuted axes, permutation
 *
 * lowbit.jax._ffi makes them. */
typedef struct ffi_spec {
    char format[64]; /* "": dense, one buffer */
    lb_quant_config config;
    unsigned parts;
    lb_shape shape;
    int perm[LB_MAX_RANK];
    int n_perm; /* 0: not permuted */
} ffi_spec;

/* Cursors over the operands and results of a call. */
typedef struct ffi_call {
    ffi_frame *frame;
    lb_ctx *cx;
    int64_t arg, ret; /* the next ones */
} ffi_call;

/* These return false or NULL after lb_fail. i: number of the operand. */
bool ffi_spec_read(ffi_call *call, int i, ffi_spec *spec);
lb_array *ffi_operand(ffi_call *call, int i);
bool ffi_dims_read(ffi_call *call, lb_dot_dims *dims);
/* Copies a to the next result, whose dtype and size must match. */
bool ffi_result(ffi_call *call, lb_array *a);

/* The layout of an array of this shape, with the parts that it would have. */
bool ffi_layout(lb_ctx *cx, const lb_quant_config *config, lb_dtype from,
                const lb_shape *shape, lb_layout *layout,
                const lb_format **format);
/* The same of scales of this shape that are stored in 8 bits (double_quant). */
bool ffi_scale_layout(lb_ctx *cx, const lb_shape *shape, lb_layout *layout,
                      const lb_format **format);

#endif
