/* operand.h - as what packed weights can be multiplied: what the selection
 * table (select.c) asks about them.
 */
#ifndef LB_OPERAND_H
#define LB_OPERAND_H

#include "kernels/gemm_codes.h"
#include "kernels/gemvq.h"
#include "matmul/weights.h"

typedef enum lb_need {
    LB_NEED_GEMV,     /* a gemv kernel of type T for so few rows of x */
    LB_NEED_GEMV_F32, /* the same, and none for integers */
    LB_NEED_INTEGERS, /* values are integers of 8 bits, K along memory */
    LB_NEED_DIGITS,   /* panels of T, x in so many digits (panels.h) */
    LB_NEED_DECODED,  /* the same, and codes cannot become such panels */
    LB_NEED_F32_K,    /* kernels/dotf32.h: finite, blocks of whole groups */
    LB_NEED_F32_PANEL /* kernels/gemm_codes.h: blocks of whole units */
} lb_need;

/* w has codes, and p a depth. */
bool lb_operand_can(lb_need need, lb_choice as, const lb_product *p,
                    const lb_weights *w, const lb_cpu *cpu);

/* The gemv kernel that multiplies as a choice says; NULL: there is none.
 * product_coded_thin.c. */
const lb_gemvq_kernel *lb_operand_gemv(const lb_product *p, const lb_weights *w,
                                       const lb_cpu *cpu, lb_choice as);
/* Whether each of the k-deep rows can be read as integers.
 * product_integers.c. */
bool lb_operand_integers(const lb_weights *w, int64_t k);
/* What makes panels of f32 of such codes; NULL: nothing. */
const lb_gemm_codes *lb_operand_panel(const lb_cpu *cpu, const lb_coded *c);

#endif
