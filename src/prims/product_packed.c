/* product_packed.c - f32 products in blocks, on packed panels.
 *
 * A unit is one block of the result. For each panel of the depth it packs its
 * part of B once, and its part of A piece by piece so that a piece stays in L2
 * while all of B passes by. Large blocks pack less: an element packed for a
 * block of n columns is used n times.
 */
#include "kernels/gemm.h"
#include "prims/product.h"

enum {
    BLOCK = 1024,      /* rows and columns, at most, where the result lies */
    TILE_BLOCK = 512,  /* where it is kept in scratch */
    PIECE = 192,       /* rows of A packed together: 192 KiB */
    READ = 256,        /* rows read together where they must be decoded */
    MIN_UNIT = 1 << 21 /* multiplications worth another thread: 40 us */
};

typedef struct {
    const lb_gemm_kernel *kernel;
    int64_t kc, mb, nb, piece;     /* sizes of a block */
    int64_t bm, bn;                /* blocks along each axis */
    int64_t b_at, c_at, tmp_at, n; /* scratch, in floats; A is at 0 */
} grid;

static bool worth_splitting(const lb_product *p, const grid *g, int64_t units)
{
    const double each = (double)p->m * (double)p->n * (double)p->k /
                        ((double)g->bm * (double)g->bn);
    return p->batch * g->bm * g->bn < units && each >= 2.0 * MIN_UNIT;
}

static grid make_grid(const lb_product *p, const lb_call *c)
{
    grid g = {.kernel = lb_gemm_kernel_for(c->cpu)};
    const int64_t most = p->in_place ? BLOCK : TILE_BLOCK;
    const int64_t units = c->threads > 1 ? 2 * (int64_t)c->threads : 1;
    g.kc = lb_min_i64(p->k, LB_GEMM_KC);
    g.bm = lb_ceil_div(p->m, most);
    g.bn = lb_ceil_div(p->n, most);
    while (worth_splitting(p, &g, units))
        if (p->m / g.bm >= p->n / g.bn)
            g.bm++;
        else
            g.bn++;
    g.mb = lb_round_up(lb_ceil_div(p->m, g.bm), g.kernel->mr);
    g.nb = lb_round_up(lb_ceil_div(p->n, g.bn), g.kernel->nr);
    g.bm = lb_ceil_div(p->m, g.mb);
    g.bn = lb_ceil_div(p->n, g.nb);
    g.piece = lb_min_i64(PIECE / g.kernel->mr * g.kernel->mr, g.mb);
    int64_t tmp = 0;
    if (!p->a->in_place) tmp = g.piece;
    if (!p->b->in_place) tmp = lb_max_i64(tmp, lb_min_i64(READ, g.nb));
    g.b_at = lb_line_floats(g.piece * g.kc);
    g.c_at = g.b_at + lb_line_floats(g.nb * g.kc);
    g.tmp_at = g.c_at + (p->in_place ? 0 : lb_line_floats(g.mb * g.nb));
    g.n = g.tmp_at + lb_line_floats(tmp * g.kc);
    return g;
}

void lb_packed_plan(const lb_product *p, const lb_call *c, lb_plan *plan)
{
    const grid g = make_grid(p, c);
    plan->per_thread = (size_t)g.n * sizeof(float);
    plan->units[0] = p->batch * g.bm * g.bn;
    plan->kernel = g.kernel->name;
}

static void pack_a(const lb_source *s, const lb_cpu *cpu, int64_t batch,
                   int64_t r, int64_t m, int64_t k, int64_t kc, int mr,
                   float *to, float *tmp)
{
    const lb_block b = s->get(s, cpu, batch, r, m, k, kc, tmp);
    lb_gemm_pack_rows(b.p, b.rs, b.ks, m, kc, mr, to);
}

static void pack_b(const lb_source *s, const lb_cpu *cpu, int64_t batch,
                   int64_t r, int64_t m, int64_t k, int64_t kc, int nr,
                   float *to, float *tmp)
{
    const int64_t step = s->in_place ? m : READ / nr * nr;
    for (int64_t i = 0; i < m; i += step) {
        const int64_t rows = lb_min_i64(step, m - i);
        const lb_block b = s->get(s, cpu, batch, r + i, rows, k, kc, tmp);
        lb_gemm_pack(b.p, b.rs, b.ks, rows, kc, nr, to + i * kc);
    }
}

static void run_block(const lb_product *p, const lb_work *w, const grid *g,
                      int64_t batch, int64_t i0, int64_t j0)
{
    const lb_cpu *cpu = w->call->cpu;
    float *a = w->scratch, *b = a + g->b_at, *tmp = a + g->tmp_at;
    const int64_t m = lb_min_i64(g->mb, p->m - i0);
    const int64_t n = lb_min_i64(g->nb, p->n - j0);
    const int64_t ldc = p->in_place ? p->n : n;
    float *c = p->in_place ? (float *)p->at + (batch * p->m + i0) * p->n + j0
                           : a + g->c_at;
    for (int64_t k = 0; k < p->k || k == 0; k += LB_GEMM_KC) {
        const int64_t kc = lb_min_i64(LB_GEMM_KC, p->k - k);
        pack_b(p->b, cpu, batch, j0, n, k, kc, g->kernel->nr, b, tmp);
        for (int64_t i = 0; i < m; i += g->piece) {
            const int64_t rows = lb_min_i64(g->piece, m - i);
            pack_a(p->a, cpu, batch, i0 + i, rows, k, kc, g->kernel->mr, a,
                   tmp);
            lb_gemm_block(g->kernel, rows, n, kc, a, b, g->kernel->nr, kc,
                          c + i * ldc, ldc, k == 0);
        }
    }
    if (!p->in_place) p->put(p, w, batch, i0, m, j0, n, c);
}

void lb_packed_run(const lb_product *p, const lb_work *w)
{
    const grid g = make_grid(p, w->call);
    for (int64_t u = w->lo; u < w->hi; u++)
        run_block(p, w, &g, u / (g.bm * g.bn), u / g.bn % g.bm * g.mb,
                  u % g.bn * g.nb);
}
