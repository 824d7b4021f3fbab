/* product_thin.c - f32 products of a few rows with a matrix read as it lies.
 *
 * A unit is some rows of the matrix. Where they lie in memory with unit stride
 * one way or the other, the kernel reads them there; else they are decoded or
 * copied panel by panel into scratch first.
 */
#include <string.h>

#include "kernels/gemv.h"
#include "matmul/weights.h"

enum {
    STAGED = 64,       /* rows of the matrix, where panels go to scratch */
    MIN_UNIT = 1 << 18 /* multiplications worth another thread */
};

typedef struct {
    const lb_gemv_kernel *kernel;
    const lb_source *few, *many;
    bool swapped; /* few is B */
    int64_t v, rows, nb, step;
    bool staged;
    int64_t y_at, t_at, x_at, tmp_at, n; /* scratch in floats; lanes at 0 */
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

static grid make_grid(const lb_product *p, const lb_call *c)
{
    grid g = {.kernel = lb_gemv_kernel_for(c->cpu), .swapped = p->m > p->n};
    g.few = g.swapped ? p->b : p->a;
    g.many = g.swapped ? p->a : p->b;
    g.v = lb_min_i64(p->m, p->n);
    g.rows = lb_max_i64(p->m, p->n);
    g.staged = !g.many->in_place || (g.many->rs != 1 && g.many->ks != 1);
    g.nb = lb_min_i64(g.rows, g.staged ? STAGED : LB_GEMV_NB);
    if (c->threads > 1 && p->batch < 4 * (int64_t)c->threads) {
        /* Whole lines of 16 floats, and enough to do. */
        const int64_t share = lb_ceil_div(g.rows * p->batch, 4 * c->threads);
        const int64_t worth = MIN_UNIT / lb_max_i64(p->k * g.v, 1);
        g.nb = lb_min_i64(g.nb, lb_round_up(lb_max_i64(share, worth + 1), 16));
    }
    const bool whole = g.v == 1 && !g.staged && g.few->in_place &&
                       (g.few->ks == 1 || p->k <= 1);
    g.step = whole ? p->k : LB_GEMV_KC;
    const int64_t kc = lb_min_i64(g.step, p->k), nb = lb_line_floats(g.nb);
    g.y_at = LB_GEMV_LANES * lb_line_floats(g.nb);
    g.t_at = g.y_at + g.v * nb;
    g.x_at = g.t_at + (g.swapped && g.v > 1 ? g.v * nb : 0);
    g.tmp_at = g.x_at + (whole ? 0 : 2 * lb_line_floats(g.v * kc));
    g.n = g.tmp_at + (g.staged ? lb_line_floats(g.nb * kc) : 0);
    return g;
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    *g = make_grid(p, c);
    (void)w;
    plan->per_thread = (size_t)g->n * sizeof(float);
    plan->units[0] = p->batch * lb_ceil_div(g->rows, g->nb);
    plan->kernel = g->kernel->name;
}

/* The same block with unit stride along the depth, copied if need be. */
static lb_block along_depth(lb_block b, int64_t rows, int64_t kc, float *to)
{
    if (b.ks == 1 || kc == 1) return b;
    const float *p = b.p;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t kk = 0; kk < kc; kk++)
            to[i * kc + kk] = p[i * b.rs + kk * b.ks];
    return (lb_block){to, kc, 1};
}

/* One panel onto y, v rows of w. */
static void run_panel(const lb_product *p, const grid *g, const lb_work *work,
                      int64_t batch, int64_t j, int64_t w, int64_t k, float *y)
{
    const lb_cpu *cpu = work->call->cpu;
    float *scratch = work->scratch, *tmp = scratch + g->tmp_at;
    const int64_t kc = lb_min_i64(g->step, p->k - k);
    float *x = scratch + g->x_at, *x2 = x + lb_line_floats(g->v * kc);
    lb_block few = g->few->get(g->few, cpu, batch, 0, g->v, k, kc, x2);
    lb_block many = g->many->get(g->many, cpu, batch, j, w, k, kc, tmp);
    few = along_depth(few, g->v, kc, x);
    if (many.rs != 1) many = along_depth(many, w, kc, tmp);
    for (int64_t i = 0; i < g->v; i++) {
        const float *row = (const float *)few.p + i * few.rs;
        if (many.rs == 1)
            g->kernel->cols(kc, row, many.p, many.ks, w, y + i * w, k == 0,
                            scratch);
        else
            g->kernel->rows(kc, row, many.p, many.rs, w, y + i * w, k == 0);
    }
}

static void put(const lb_product *p, const grid *g, const lb_work *work,
                int64_t batch, int64_t j, int64_t w, const float *y)
{
    float *t = (float *)work->scratch + g->t_at;
    if (!g->swapped) {
        p->put(p, work, batch, 0, g->v, j, w, y);
        return;
    }
    for (int64_t i = 0; i < g->v && g->v > 1; i++)
        for (int64_t r = 0; r < w; r++)
            t[r * g->v + i] = y[i * w + r];
    p->put(p, work, batch, j, w, 0, g->v, g->v > 1 ? t : y);
}

static void run(const lb_product *p, const lb_work *work)
{
    const grid *const g = p->grid;
    const int64_t blocks = lb_ceil_div(g->rows, g->nb);
    const bool there = p->in_place && g->v == 1;
    for (int64_t u = work->lo; u < work->hi; u++) {
        const int64_t batch = u / blocks, j = u % blocks * g->nb;
        const int64_t w = lb_min_i64(g->nb, g->rows - j);
        float *y = there ? (float *)work->out->store->data + batch * g->rows + j
                         : (float *)work->scratch + g->y_at;
        if (p->k == 0) memset(y, 0, (size_t)(g->v * w) * sizeof *y);
        for (int64_t k = 0; k < p->k; k += g->step)
            run_panel(p, g, work, batch, j, w, k, y);
        if (!there) put(p, g, work, batch, j, w, y);
    }
}

const lb_algorithm lb_thin = {"gemv", make_plan, run};
