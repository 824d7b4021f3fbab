/* operand.c - see operand.h. */
#include "matmul/operand.h"

#include <math.h>

#include "kernels/dotf32.h"
#include "kernels/gemm.h"
#include "kernels/int_dot.h"
#include "matmul/panels.h"
#include "matmul/select.h"

/* ---- gemv ---------------------------------------------------------------- */

/* Kernels that take some rows at once take all they can; f32 twice, unless each
 * row must be multiplied with scales first; and of bytes twice, if the second
 * pass is not full. */
static bool can_gemv(const lb_product *p, const lb_weights *w,
                     const lb_cpu *cpu, lb_choice as)
{
    const lb_coded *c = &w->coded;
    const lb_gemvq_kernel *q = lb_operand_gemv(p, w, cpu, as);
    if (!q) return false;
    if (q->few) {
        const int64_t once = lb_gemvq_cols_rows(q);
        if (as.type == LB_T_F32) return w->m <= (q->unit ? once : 2 * once);
        return w->m <= (q->bits == 8 ? 2 * once : once);
    }
    return w->m <= lb_gemv_rows(cpu->level, c->along, p->precision, c->bits);
}

/* As what codes are multiplied if not in f32. */
static lb_choice as_integers(const lb_product *p, const lb_weights *w)
{
    if (w->coded.bits > 2) return (lb_choice){.type = LB_T_I16, .digits = 2};
    const bool one = p->precision == LB_PRECISION_FASTEST;
    return (lb_choice){.type = LB_T_I8, .digits = one ? 1 : 2};
}

/* ---- integers ------------------------------------------------------------ */

static bool can_digits(const lb_product *p, const lb_weights *w,
                       const lb_cpu *cpu, lb_choice as, bool decoded)
{
    lb_panels b;
    return lb_panels_for(p, w, cpu, &b) && b.decoded == decoded &&
           (b.kernel->x_size > 1) == (as.type == LB_T_I16) &&
           (as.type == LB_T_I16 || b.planes == as.digits);
}

/* ---- f32 ----------------------------------------------------------------- */

/* Blocks of scales do not begin within `unit` codes, nor within a panel if they
 * are shorter or longer than one. */
static bool blocks_fit(int64_t g, int64_t unit, int64_t kc)
{
    return g % unit == 0 && (!g || kc % g == 0 || g % kc == 0);
}

static bool are_finite(const lb_coded *c)
{
    bool finite = true;
    for (int i = 0; c->bits < 8 && i < 1 << c->bits; i++)
        finite = finite && isfinite(c->numbers.level[i]);
    return finite;
}

static bool can_f32_k(const lb_weights *w)
{
    const lb_coded *c = &w->coded;
    return blocks_fit(c->lines.g, lb_dotf32_unit(c->bits), LB_DOTF32_KC) &&
           are_finite(c);
}

/* Columns of a tile share a scale, or each has one of its own, which is in no
 * more than one place. */
static bool lines_fit(const lb_coded *c, int nr)
{
    const int64_t g = c->lines.g;
    return g % nr == 0 || g == 1;
}

const lb_gemm_codes *lb_operand_panel(const lb_cpu *cpu, const lb_coded *c)
{
    const lb_gemm_codes *const codes = lb_gemm_codes_for(cpu);
    const bool fits =
        codes &&
        (c->along ? blocks_fit(c->lines.g, LB_GEMM_CODES_UNIT, LB_GEMM_KC)
                  : lines_fit(c, codes->nr));
    return fits ? codes : NULL;
}

/* ---- all ----------------------------------------------------------------- */

bool lb_operand_can(lb_need need, lb_choice as, const lb_product *p,
                    const lb_weights *w, const lb_cpu *cpu)
{
    switch (need) {
    case LB_NEED_GEMV:
        return can_gemv(p, w, cpu, as);
    case LB_NEED_GEMV_F32:
        return !lb_operand_gemv(p, w, cpu, as_integers(p, w)) &&
               can_gemv(p, w, cpu, as);
    case LB_NEED_INTEGERS:
        return lb_int_dot_for(cpu) && lb_operand_integers(w, p->k);
    case LB_NEED_DIGITS:
        return can_digits(p, w, cpu, as, false);
    case LB_NEED_DECODED:
        return can_digits(p, w, cpu, as, true);
    case LB_NEED_F32_K:
        return can_f32_k(w);
    default:
        return w->n >= w->m && lb_operand_panel(cpu, &w->coded);
    }
}
