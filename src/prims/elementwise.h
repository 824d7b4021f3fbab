/* elementwise.h - the rows behind elementwise.def. */
#ifndef LB_ELEMENTWISE_H
#define LB_ELEMENTWISE_H

#include "kernels/lanes_f32.h"
#include "lowbit_ext.h"
#include "prims/cuts.h"

enum { LB_KIND_F = 1, LB_KIND_I = 2, LB_KIND_U = 4, LB_KIND_B = 8 };

/* elementwise_vjp.c: lb_prim.vjp of each row that supports floats. */
typedef lb_array *lb_vjp_fn(lb_ctx *, const lb_call *, int operand,
                            lb_array *out, lb_array *dout);

typedef struct lb_row {
    lb_prim prim; /* first member: a call's prim is cast to its row */
    int kinds;    /* supported kinds of the last operand */
    bool to_bool; /* the result is bool; else it has the last operand's dtype */
    lb_lane lane; /* f32 loops of each level; none: use run */
    lb_lanes_fn *run[5]; /* by lb_ctype of the last operand */
} lb_row;

#define UNARY(NAME, ...)                                                       \
    extern const lb_row lb_row_##NAME;                                         \
    lb_vjp_fn lb_vjp_##NAME;
#define BINARY(NAME, ...)  UNARY(NAME, )
#define COMPARE(NAME, ANY) extern const lb_row lb_row_##NAME;
#include "prims/elementwise.def"
#undef UNARY
#undef BINARY
#undef COMPARE
extern const lb_row lb_row_is_finite, lb_row_integer_pow, lb_row_select;
extern const lb_row lb_row_clamp;
lb_vjp_fn lb_vjp_integer_pow, lb_vjp_select, lb_vjp_clamp;
/* a for use in a formula: 16-bit floats are converted to f32. Packed arrays are
 * rounded to 16 bits first, as the call saw them: a conversion would decode
 * them without rounding. */
lb_array *lb_vjp_wide(lb_ctx *cx, lb_array *a);

/* elementwise.c: functions that all rows share. */
bool lb_row_infer(lb_ctx *, lb_call *);
void lb_row_plan(const lb_call *, lb_plan *);
void lb_row_eval(const lb_work *);
/* The loop of a row for operands of a compute type; NULL: there is none. */
lb_lanes_fn *lb_row_lanes(const lb_row *row, const lb_cpu *cpu, lb_ctype c);
void lb_row_fuse(const lb_call *, lb_fusion *);
lb_array *lb_row_call(lb_ctx *cx, const lb_row *row, lb_array *const *in,
                      const void *params);

#endif
