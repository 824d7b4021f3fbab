/* product_packed.c - f32 products in blocks, on packed panels.
 *
 * A unit is one block of the result. Its part of A is packed piece by piece, so
 * that a piece stays in L2 while all of B passes by. B is packed strip by strip
 * just before the first piece needs it: a strip of nr columns is read, or
 * decoded, while it is in L2, and a panel of it is packed and used in L1. What
 * runs across the depth comes in wide runs, so all columns are one strip then.
 * Large blocks pack less of A: an element packed for n columns is used n times.
 */
#include "kernels/gemm.h"
#include "prims/coded.h"
#include "prims/product.h"

enum {
    BLOCK = 1024,      /* rows and columns, at most, where the result lies */
    TILE_BLOCK = 512,  /* where it is kept in scratch */
    PIECE = 192,       /* rows of A packed together .. */
    IN_L2 = 192 << 8,  /* .. and floats, where there are fewer rows: 192 KiB */
    PART = 8,          /* depth that is read together, of wide runs */
    MIN_UNIT = 1 << 21 /* multiplications worth another thread: 40 us */
};

typedef struct {
    const lb_gemm_kernel *kernel;
    bool across; /* B runs across the depth */
    bool coded;  /* it is known where its codes are */
    lb_coded codes;
    int64_t mb, nb; /* sizes of a block */
    int64_t bm, bn; /* blocks along each axis */
    int64_t piece;  /* rows of A .. */
    int64_t deep;   /* .. and depth that go together: panels */
    int64_t strip;  /* columns of B that are read together */
    bool kept;      /* panels of all strips of B are, not of one */
    int64_t step;   /* floats of B from column to column */
    int64_t b_at, c_at, tmp_at, n; /* scratch, in floats; A is at 0 */
} grid;

static bool worth_splitting(const lb_product *p, const grid *g, int64_t units)
{
    const double each = (double)p->m * (double)p->n * (double)p->k /
                        ((double)g->bm * (double)g->bn);
    return p->batch * g->bm * g->bn < units && each >= 2.0 * MIN_UNIT;
}

static bool runs_across(const lb_source *s)
{
    return s->in_place ? s->rs == 1 && s->ks != 1
                       : s->matrix && s->matrix->row_last;
}

static void size_blocks(const lb_product *p, const lb_call *c, grid *g)
{
    const int64_t most = p->in_place ? BLOCK : TILE_BLOCK;
    const int64_t units = c->threads > 1 ? 4 * (int64_t)c->threads : 1;
    g->bm = lb_ceil_div(p->m, most);
    g->bn = lb_ceil_div(p->n, most);
    while (worth_splitting(p, g, units))
        if (p->m / g->bm >= p->n / g->bn)
            g->bm++;
        else
            g->bn++;
    g->mb = lb_round_up(lb_ceil_div(p->m, g->bm), g->kernel->mr);
    g->nb = lb_round_up(lb_ceil_div(p->n, g->bn), g->kernel->nr);
    g->bm = lb_ceil_div(p->m, g->mb);
    g->bn = lb_ceil_div(p->n, g->nb);
}

static void place_scratch(const lb_product *p, grid *g)
{
    const int64_t kc = lb_min_i64(p->k, LB_GEMM_KC);
    const int64_t deep = lb_min_i64(p->k, g->deep);
    const int64_t columns = g->kept ? g->nb : g->strip;
    int64_t tmp = 0;
    if (!p->a->in_place) tmp = g->piece * kc;
    if (!p->b->in_place)
        tmp = lb_max_i64(tmp, g->strip * (g->across ? PART : deep));
    g->b_at = lb_line_floats(g->piece * deep);
    g->c_at = g->b_at + lb_line_floats(columns * g->step);
    g->tmp_at = g->c_at + (p->in_place ? 0 : lb_line_floats(g->mb * g->nb));
    g->n = g->tmp_at + lb_line_floats(tmp);
}

static grid make_grid(const lb_product *p, const lb_call *c)
{
    grid g = {.kernel = lb_gemm_kernel_for(c->cpu),
              .across = runs_across(p->b)};
    size_blocks(p, c, &g);
    g.coded = lb_coded_of(c->cpu, p->b, &g.codes);
    g.piece = lb_min_i64(PIECE / g.kernel->mr * g.kernel->mr, g.mb);
    g.deep = LB_GEMM_KC;
    if (!g.across && g.piece == g.mb)
        g.deep *=
            lb_max_i64(1, lb_min_i64(LB_RUN, IN_L2 / g.piece) / LB_GEMM_KC);
    g.strip = g.across ? g.nb : g.kernel->nr;
    g.kept = g.across || g.mb > g.piece;
    g.step = lb_min_i64(p->k, LB_GEMM_KC) + 1; /* or all would fall on the same
                                                * places of the caches */
    place_scratch(p, &g);
    return g;
}

void lb_packed_plan(const lb_product *p, const lb_call *c, lb_plan *plan)
{
    const grid g = make_grid(p, c);
    plan->per_thread = (size_t)g.n * sizeof(float);
    plan->units[0] = p->batch * g.bm * g.bn;
    plan->kernel = g.kernel->name;
}

/* ---- one block ----------------------------------------------------------- */

typedef struct {
    const lb_product *p;
    const grid *g;
    const lb_cpu *cpu;
    int64_t batch, i, m, j, n; /* rows and columns of the block */
    lb_coded codes;            /* of this batch */
    float *a, *b, *tmp;
    float *c;
    int64_t ldc;
} block;

/* Part of B, all columns: depth [k, k + kc). Asks for the next part. */
static lb_block read_part(const block *u, int64_t k, int64_t kc, float *tmp)
{
    const lb_source *s = u->p->b;
    const int64_t after = lb_min_i64(kc, u->p->k - k - kc);
    if (u->g->coded) lb_coded_fetch(&u->codes, k + kc, after, u->j, u->n);
    return s->get(s, u->cpu, u->batch, u->j, u->n, k, kc, tmp);
}

static void pack_across(const block *u, int64_t k, int64_t kc)
{
    const int64_t part = u->p->b->in_place ? kc : PART;
    const int nr = u->g->kernel->nr;
    for (int64_t kk = 0; kk < kc; kk += part) {
        const int64_t some = lb_min_i64(part, kc - kk);
        const lb_block w = read_part(u, k + kk, some, u->tmp);
        lb_gemm_pack(w.p, w.rs, w.ks, u->n, some, nr, u->b + kk * nr,
                     u->g->step);
    }
}

/* Packs A, rows [i, i + m), depth [k, k + depth), panel by panel. */
static void pack_a(const block *u, int64_t i, int64_t m, int64_t k,
                   int64_t depth)
{
    const lb_source *s = u->p->a;
    for (int64_t kk = 0, kc; kk < depth; kk += kc) {
        kc = lb_min_i64(LB_GEMM_KC, depth - kk);
        const lb_block x =
            s->get(s, u->cpu, u->batch, u->i + i, m, k + kk, kc, u->tmp);
        lb_gemm_pack_rows(x.p, x.rs, x.ks, m, kc, u->g->kernel->mr,
                          u->a + kk * m);
    }
}

/* The packed rows [i, i + m) of A by all of B, which is read if i is 0. */
static void run_across(const block *u, int64_t i, int64_t m, int64_t k,
                       int64_t kc)
{
    const grid *g = u->g;
    if (i == 0) pack_across(u, k, kc);
    lb_gemm_block(g->kernel, m, u->n, kc, u->a, u->b, g->kernel->nr, g->step,
                  u->c + i * u->ldc, u->ldc, k == 0);
}

/* The same by one strip, where B runs along the depth. */
static void run_strip(const block *u, int64_t i, int64_t m, int64_t j,
                      int64_t k, int64_t depth)
{
    const grid *g = u->g;
    const lb_source *s = u->p->b;
    const int64_t n = lb_min_i64(g->strip, u->n - j);
    const int64_t after = lb_min_i64(g->strip, u->n - j - n);
    const int nr = g->kernel->nr;
    float *const b = u->b + (g->kept ? j * g->step : 0);
    lb_block w = {0};
    if (i == 0) {
        if (g->coded) lb_coded_fetch(&u->codes, u->j + j + n, after, k, depth);
        w = s->get(s, u->cpu, u->batch, u->j + j, n, k, depth, u->tmp);
    }
    int64_t kk = 0;
    do { /* once, where there is no depth */
        const int64_t kc = lb_min_i64(LB_GEMM_KC, depth - kk);
        if (i == 0)
            lb_gemm_pack((const float *)w.p + kk * w.ks, w.rs, w.ks, n, kc, nr,
                         b, g->step);
        lb_gemm_block(g->kernel, m, n, kc, u->a + kk * m, b, nr, g->step,
                      u->c + i * u->ldc + j, u->ldc, k + kk == 0);
        kk += kc;
    } while (kk < depth);
}

static void run_block(const block *u)
{
    const grid *g = u->g;
    const int64_t depth = u->p->k;
    for (int64_t k = 0; k < depth || k == 0; k += g->deep) {
        const int64_t deep = lb_min_i64(g->deep, depth - k);
        for (int64_t i = 0; i < u->m; i += g->piece) {
            const int64_t rows = lb_min_i64(g->piece, u->m - i);
            pack_a(u, i, rows, k, deep);
            if (g->across) run_across(u, i, rows, k, deep);
            for (int64_t j = 0; j < u->n && !g->across; j += g->strip)
                run_strip(u, i, rows, j, k, deep);
        }
    }
}

void lb_packed_run(const lb_product *p, const lb_work *w)
{
    const grid g = make_grid(p, w->call);
    for (int64_t at = w->lo; at < w->hi; at++) {
        block u = {.p = p, .g = &g, .cpu = w->call->cpu, .a = w->scratch};
        u.batch = at / (g.bm * g.bn);
        u.i = at / g.bn % g.bm * g.mb;
        u.j = at % g.bn * g.nb;
        u.m = lb_min_i64(g.mb, p->m - u.i);
        u.n = lb_min_i64(g.nb, p->n - u.j);
        if (g.coded) u.codes = lb_coded_at(&g.codes, p->b, u.batch);
        u.b = u.a + g.b_at;
        u.tmp = u.a + g.tmp_at;
        u.ldc = p->in_place ? p->n : u.n;
        u.c = p->in_place ? (float *)p->at + (u.batch * p->m + u.i) * p->n + u.j
                          : u.a + g.c_at;
        run_block(&u);
        if (!p->in_place) p->put(p, w, u.batch, u.i, u.m, u.j, u.n, u.c);
    }
}
