/* product_plain.c - f64 and integer products in portable C.
 *
 * The same panels as the packed way, in small blocks. Integers are multiplied
 * and added as u64: the low bits are those of any width and sign.
 */
#include <string.h>

#include "kernels/gemm.h"
#include "matmul/weights.h"

#define T       double
#define NAME(x) x##_f64
#include "matmul/product_lanes.h"
#define T       uint64_t
#define NAME(x) x##_u64
#include "matmul/product_lanes.h"

enum { BLOCK = 64, WORD = 8 };

static size_t words(int64_t n)
{
    return (size_t)lb_round_up(n, 8) * WORD;
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    (void)w;
    (void)c;
    const int64_t kc = lb_min_i64(p->k, LB_GEMM_KC);
    plan->per_thread = 3 * words(BLOCK * kc) + words(BLOCK * BLOCK);
    plan->units[0] =
        p->batch * lb_ceil_div(p->m, BLOCK) * lb_ceil_div(p->n, BLOCK);
    plan->kernel = p->a->type == LB_C_F64 ? "plain f64" : "plain i64";
}

static void pack(const lb_source *s, const lb_cpu *cpu, int64_t batch,
                 int64_t r, int64_t m, int64_t k, int64_t kc, void *to,
                 void *tmp)
{
    const lb_block b = s->get(s, cpu, batch, r, m, k, kc, tmp);
    if (s->type == LB_C_F64)
        pack_f64(&b, m, kc, to);
    else
        pack_u64(&b, m, kc, to);
}

static void run_block(const lb_product *p, const lb_work *w, int64_t batch,
                      int64_t i, int64_t j)
{
    const lb_cpu *cpu = w->call->cpu;
    const int64_t most = lb_min_i64(p->k, LB_GEMM_KC);
    const int64_t m = lb_min_i64(BLOCK, p->m - i);
    const int64_t n = lb_min_i64(BLOCK, p->n - j);
    char *a = w->scratch, *b = a + words(BLOCK * most);
    char *tmp = b + words(BLOCK * most), *c = tmp + words(BLOCK * most);
    int64_t ldc = n;
    if (p->in_place) {
        c = (char *)w->out->store->data +
            (size_t)((batch * p->m + i) * p->n + j) * WORD;
        ldc = p->n;
    }
    for (int64_t k = 0; k < p->k || k == 0; k += LB_GEMM_KC) {
        const int64_t kc = lb_min_i64(LB_GEMM_KC, p->k - k);
        pack(p->a, cpu, batch, i, m, k, kc, a, tmp);
        pack(p->b, cpu, batch, j, n, k, kc, b, tmp);
        if (p->a->type == LB_C_F64)
            block_f64(m, n, kc, a, b, c, ldc, k == 0);
        else
            block_u64(m, n, kc, a, b, c, ldc, k == 0);
    }
    if (!p->in_place) p->put(p, w, batch, i, m, j, n, c);
}

static void run(const lb_product *p, const lb_work *w)
{
    const int64_t bm = lb_ceil_div(p->m, BLOCK);
    const int64_t bn = lb_ceil_div(p->n, BLOCK);
    for (int64_t u = w->lo; u < w->hi; u++)
        run_block(p, w, u / (bm * bn), u / bn % bm * BLOCK, u % bn * BLOCK);
}

const lb_algorithm lb_plain = {"gemm", make_plan, run};
