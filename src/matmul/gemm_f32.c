/* gemm_f32.c - f32 products in blocks, on packed panels.
 *
 * The loops, for x (m rows) and w (n rows), of any format, either way round:
 *
 *   phase 0   x is packed, for all units; units are panels of some rows
 *   phase 1   a unit is some columns of the result, of all its rows or some,
 *
 *     for each panel of the depth
 *       for each strip of w               nr rows become a panel in L1, or,
 *                                         across, all are read to L2
 *         for each piece of x             mr rows at a time, in L2
 *           tile                          C += x w
 *
 * w is packed just before it is needed: along the depth a strip of nr rows is
 * turned, from numbers or straight from codes (kernels/gemm_codes.h). Across
 * the depth nothing has to be turned: lines are decoded to where tiles read
 * them, and those that lie in memory are copied, for their pages are far apart.
 *
 * Units that a thread has in a row are one block, as wide as is good for it,
 * for each block brings x in again. Where x is too large to be packed as a
 * whole or much the larger one, each unit packs its part of it, piece by piece;
 * large blocks do so less often.
 *
 * The order of a sum: panels of LB_GEMM_KC, one after the other, whatever the
 * format, the orientation and the number of rows.
 */
#include "matmul/gemm_f32.h"
#include "kernels/tuning.h"
#include "matmul/operand.h"

enum {
    BLOCK = 1024,       /* rows and columns, at most, where the result lies */
    TILE_BLOCK = 512,   /* where it is kept in scratch */
    MIN_UNIT = 1 << 21, /* multiplications worth another thread: 40 us */
    SHARES = 8,         /* units for each thread: cores are not equally fast, */
    ROW_SHARES = 4,     /* but each of some rows packs w once more */
    EVEN = 16,          /* with fewer, all threads get as many as each other */
    WHOLE = 1 << 24,    /* floats of x that are packed once for all, */
    FEW_COLUMNS = 256,  /* unless w has no more than these, */
    TALL = 2            /* or x has more than so many rows for each of them */
};

/* Where x is whole: columns of a block at most, and of a unit. Lines come in
 * longer runs; those that are read become rows that fall on different places of
 * the caches. */
enum {
    WIDE = 512,
    WIDE_ACROSS = 1024,
    WIDE_READ = 544,
    NARROW = 64,
    NARROW_ACROSS = 128,
    VECTORS = 64 /* floats that tiles read past the end of a row, at most */
};

_Static_assert(sizeof(lb_f32_grid) <= LB_GRID, "it is kept in p->grid");

static bool worth_splitting(const lb_product *p, const lb_f32_grid *g,
                            int64_t units)
{
    const double each = (double)p->m * (double)p->n * (double)p->k /
                        ((double)g->bm * (double)g->bn);
    return p->batch * g->bm * g->bn < units && each >= 2.0 * MIN_UNIT;
}

static bool runs_across(const lb_source *s)
{
    return s->in_place ? s->rs == 1 && s->ks != 1 : s->across;
}

/* Where the result lies, each unit writes to its own part of it. */
static bool writes(const lb_product *p, const lb_f32_grid *g)
{
    return p->in_place && !g->w.swapped;
}

/* Columns of a block, at most. */
static int64_t widest_of(const lb_f32_grid *g)
{
    return g->read ? WIDE_READ : g->across ? WIDE_ACROSS : WIDE;
}

/* Scales of a line of codes that a block has. */
static int64_t scales_of(const lb_f32_grid *g)
{
    const lb_coded *c = &g->w.coded;
    return c->lines.g ? g->widest / c->lines.g + 2 : 1;
}

/* Where x is whole, columns are cut as finely as is worth a unit, and rows only
 * if these are not enough for all threads. */
static void size_units(const lb_product *p, const lb_call *c, lb_f32_grid *g)
{
    const int64_t m = g->w.m, n = g->w.n, wide = widest_of(g);
    const int64_t worth = lb_ceil_div(2 * MIN_UNIT, m * p->k);
    const bool far = g->read || lb_f32_lines(g);
    const int64_t least = far ? NARROW_ACROSS : NARROW;
    g->nb =
        lb_round_up(lb_min_i64(lb_max_i64(worth, least), wide), g->kernel->nr);
    g->bn = lb_ceil_div(n, g->nb);
    g->widest = lb_min_i64(lb_max_i64(wide / g->nb, 1), g->bn) * g->nb;
    g->bm = writes(p, g) ? 1 : lb_ceil_div(m, TILE_BLOCK);
    while (c->threads > 1 && worth_splitting(p, g, ROW_SHARES * c->threads))
        g->bm++;
    g->mb = lb_round_up(lb_ceil_div(m, g->bm), g->kernel->mr);
    g->bm = lb_ceil_div(m, g->mb);
}

/* Else units are as square as can be. */
static void size_blocks(const lb_product *p, const lb_call *c, lb_f32_grid *g)
{
    const int64_t m = g->w.m, n = g->w.n, threads = c->threads;
    const int64_t most = writes(p, g) ? BLOCK : TILE_BLOCK;
    g->bm = lb_ceil_div(m, most);
    g->bn = lb_ceil_div(n, g->read ? lb_min_i64(most, widest_of(g)) : most);
    while (threads > 1) {
        const bool rows = m / g->bm >= n / g->bn;
        const int64_t shares = rows ? ROW_SHARES : SHARES;
        if (!worth_splitting(p, g, shares * threads)) break;
        if (rows)
            g->bm++;
        else
            g->bn++;
    }
    const int64_t units = p->batch * g->bm * g->bn;
    if (units > 1 && units < EVEN * threads)
        while (p->batch * g->bm * g->bn % threads)
            g->bn++;
    g->mb = lb_round_up(lb_ceil_div(m, g->bm), g->kernel->mr);
    g->nb = lb_round_up(lb_ceil_div(n, g->bn), g->kernel->nr);
    g->bm = lb_ceil_div(m, g->mb);
    g->bn = lb_ceil_div(n, g->nb);
    g->widest = g->nb;
}

static void place_scratch(const lb_product *p, lb_f32_grid *g)
{
    const int64_t kc = lb_min_i64(p->k, LB_GEMM_KC + LB_GEMM_REST);
    const int64_t deep = lb_min_i64(p->k, g->deep + LB_GEMM_REST);
    const int64_t columns = g->kept ? g->widest : g->strip;
    const int64_t put = g->mb * g->widest;
    int64_t tmp = 0;
    if (!g->w.x->in_place) tmp = g->piece * kc;
    if (!g->across && !g->w.w->in_place) tmp = lb_max_i64(tmp, g->strip * deep);
    if (lb_f32_lines(g)) {
        g->codes_at = lb_line_floats(kc * scales_of(g));
        tmp = lb_max_i64(tmp, g->codes_at +
                                  kc * LB_F32_LINE / (int64_t)sizeof(float));
    }
    g->b_at = g->whole ? 0 : lb_line_floats(g->piece * deep);
    g->c_at = g->b_at + lb_line_floats(g->read ? g->widest * kc + VECTORS
                                               : columns * g->step);
    g->put_at = g->c_at + (writes(p, g) ? 0 : lb_line_floats(put));
    g->tmp_at = g->put_at + (g->w.swapped ? lb_line_floats(put) : 0);
    g->n = g->tmp_at + lb_line_floats(tmp);
}

/* Matrices of x, of which one may serve all batches; 0: each serves some. */
static int64_t matrices_of(const lb_product *p, const lb_source *x)
{
    const lb_matrix *a = x->matrix;
    int shared = 0;
    for (int k = 0; a && k < a->batch.n; k++)
        shared += a->batch.stride[k] == 0;
    if (!shared) return p->batch;
    return shared == a->batch.n ? 1 : 0;
}

/* w is the operand that has more rows, if the other one has few. */
static void find_roles(const lb_product *p, const lb_cpu *cpu, lb_f32_grid *g)
{
    lb_weights *const w = &g->w;
    *w = (lb_weights){.x = p->a, .w = p->b, .m = p->m, .n = p->n};
    if (p->m > p->n && p->n <= LB_FEW)
        *w = (lb_weights){
            .x = p->b, .w = p->a, .m = p->n, .n = p->m, .swapped = true};
    g->across = runs_across(w->w);
    if (p->k == 0 || !lb_coded_of(cpu, w->w, &w->coded) ||
        w->coded.along == g->across)
        w->coded.bits = 0;
    if (w->coded.bits) g->panel = lb_operand_panel(cpu, &w->coded);
    if (g->panel) g->across = false;
    g->read = g->across && !w->w->in_place;
}

static void make_grid(const lb_product *p, const lb_call *c, lb_f32_grid *g)
{
    *g = (lb_f32_grid){.kernel = lb_gemm_kernel_for(c->cpu)};
    find_roles(p, c->cpu, g);
    const int64_t m = g->w.m, n = g->w.n;
    g->matrices = matrices_of(p, g->w.x);
    g->whole = n > FEW_COLUMNS && m <= TALL * n && p->k > 0 &&
               g->matrices > 0 && p->k <= WHOLE / (m * g->matrices);
    if (g->whole)
        size_units(p, c, g);
    else
        size_blocks(p, c, g);
    const int64_t in_l2 = (int64_t)(lb_tuning_for(c->cpu)->l2_gemm / 4);
    g->piece = in_l2 / LB_GEMM_KC / g->kernel->mr * g->kernel->mr;
    g->piece = lb_min_i64(lb_max_i64(g->piece, g->kernel->mr), g->mb);
    g->deep = LB_GEMM_KC;
    if (!g->across && !lb_f32_lines(g) && g->piece == g->mb)
        g->deep *=
            lb_max_i64(1, lb_min_i64(LB_RUN - LB_GEMM_REST, in_l2 / g->piece) /
                              LB_GEMM_KC);
    g->strip = g->across ? g->widest : g->kernel->nr;
    g->kept = g->across || g->mb > g->piece;
    g->step = lb_min_i64(p->k, LB_GEMM_KC + LB_GEMM_REST) +
              1; /* or all would fall on the same places of the
                                  * caches */
    place_scratch(p, g);
}

/* Of a block's rows. */
static int64_t pieces(const lb_f32_grid *g)
{
    return lb_ceil_div(g->mb, g->piece);
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    lb_f32_grid *const g = p->grid;
    (void)w; /* it may be better the other way round */
    make_grid(p, c, g);
    plan->per_thread = (size_t)g->n * sizeof(float);
    plan->kernel = g->panel ? g->panel->name : g->kernel->name;
    p->tile = (lb_tile_sizes){g->kernel->mr, g->kernel->nr, LB_GEMM_KC};
    if (g->whole) {
        plan->phases = 2;
        plan->shared = (size_t)(g->matrices * g->w.m * p->k) * sizeof(float);
        plan->units[0] = g->matrices * g->bm * pieces(g) * lb_gemm_depths(p->k);
    }
    plan->units[plan->phases - 1] = p->batch * g->bm * g->bn;
}

/* ---- one block ----------------------------------------------------------- */

/* Packs x, rows [i, i + m), depth [k, k + depth), panel by panel. */
static void pack_x(const lb_f32_block *u, int64_t i, int64_t m, int64_t k,
                   int64_t depth, float *to)
{
    const lb_source *s = u->g->w.x;
    for (int64_t kk = 0, kc; kk < depth; kk += kc) {
        kc = lb_gemm_depth(depth - kk);
        const lb_block x =
            s->get(s, u->cpu, u->batch, u->i + i, m, k + kk, kc, u->tmp);
        lb_gemm_pack_rows(x.p, x.rs, x.ks, m, kc, u->g->kernel->mr,
                          to + kk * m);
    }
}

/* Where a panel of all rows of the block is, if x is whole. */
static float *whole_x(const lb_f32_block *u, int64_t k)
{
    const int64_t matrix = u->g->matrices > 1 ? u->batch : 0;
    return u->a + (matrix * u->g->w.m + u->i) * u->p->k + u->m * k;
}

/* The packed rows [i, i + m) of x by all of w, which is read if i is 0. */
static void run_across(const lb_f32_block *u, const float *a, int64_t i,
                       int64_t m, int64_t k, int64_t kc)
{
    const lb_f32_grid *g = u->g;
    const lb_source *s = g->w.w;
    const int nr = g->kernel->nr;
    float *const c = u->c + i * u->ldc;
    if (g->read) {
        if (i == 0) lb_f32_read_lines(u, k, kc);
        lb_gemm_block(g->kernel, m, u->n, kc, a, u->b, u->n, 1, c, u->ldc,
                      k == 0, NULL);
        return;
    }
    if (i == 0) {
        const lb_block w = s->get(s, u->cpu, u->batch, u->j, u->n, k, kc, NULL);
        lb_gemm_pack(w.p, w.rs, w.ks, u->n, kc, nr, u->b, g->step);
    }
    lb_gemm_block(g->kernel, m, u->n, kc, a, u->b, nr, g->step, c, u->ldc,
                  k == 0, NULL);
}

/* The packed rows by one strip. */
static void run_strip(const lb_f32_block *u, const float *a, int64_t i,
                      int64_t m, int64_t j, int64_t k, int64_t depth)
{
    const lb_f32_grid *g = u->g;
    const int64_t n = lb_min_i64(g->strip, u->n - j);
    float *const b = u->b + (g->kept ? j * g->step : 0);
    lb_f32_strip s = {.j = j, .n = n, .made = true};
    if (i == 0) s = lb_f32_strip_read(u, j, n, k, depth);
    int64_t kk = 0;
    do { /* once, where there is no depth */
        const int64_t kc = lb_gemm_depth(depth - kk);
        if (!s.made) lb_f32_strip_pack(u, &s, kk, kc, b);
        const lb_gemm_soon soon = lb_f32_strip_soon(u, &s, kk, kc);
        lb_gemm_block(g->kernel, m, n, kc, a + kk * m, b, g->kernel->nr,
                      g->step, u->c + i * u->ldc + j, u->ldc, k + kk == 0,
                      &soon);
        kk += kc;
    } while (kk < depth);
}

/* The packed x of some rows by all of w. */
static void run_piece(const lb_f32_block *u, const float *a, int64_t i,
                      int64_t rows, int64_t k, int64_t deep)
{
    const lb_f32_grid *g = u->g;
    if (g->across) {
        run_across(u, a, i, rows, k, deep);
        return;
    }
    for (int64_t j = 0; j < u->n; j += g->strip)
        run_strip(u, a, i, rows, j, k, deep);
}

static void run_block(const lb_f32_block *u)
{
    const lb_f32_grid *g = u->g;
    int64_t k = 0;
    do { /* once, where there is no depth */
        const int64_t left = u->p->k - k;
        const int64_t deep = left <= g->deep + LB_GEMM_REST ? left : g->deep;
        for (int64_t i = 0; i < u->m; i += g->piece) {
            const int64_t rows = lb_min_i64(g->piece, u->m - i);
            const float *a = g->whole ? whole_x(u, k) + i * deep : u->a;
            if (!g->whole) pack_x(u, i, rows, k, deep, u->a);
            run_piece(u, a, i, rows, k, deep);
        }
        k += deep;
    } while (k < u->p->k);
}

/* ---- units --------------------------------------------------------------- */

static lb_f32_block rows_of(const lb_product *p, const lb_f32_grid *g,
                            const lb_work *w, int64_t batch, int64_t i)
{
    float *const scratch = w->scratch;
    return (lb_f32_block){
        .p = p,
        .g = g,
        .cpu = w->call->cpu,
        .batch = batch,
        .i = i,
        .m = lb_min_i64(g->mb, g->w.m - i),
        .a = g->whole ? w->shared : scratch,
        .b = scratch + g->b_at,
        .tmp = scratch + g->tmp_at,
    };
}

/* Packs a panel of a piece of x. */
static void pack_unit(const lb_product *p, const lb_f32_grid *g,
                      const lb_work *w, int64_t at)
{
    const int64_t panels = lb_gemm_depths(p->k);
    const int64_t i = at / panels % pieces(g) * g->piece;
    const int64_t rows = at / panels / pieces(g);
    const int64_t k = at % panels * LB_GEMM_KC;
    const int64_t kc = lb_gemm_depth(p->k - k);
    const lb_f32_block u = rows_of(p, g, w, rows / g->bm, rows % g->bm * g->mb);
    if (i < u.m)
        pack_x(&u, i, lb_min_i64(g->piece, u.m - i), k, kc,
               whole_x(&u, k) + i * kc);
}

/* Units that lie beside each other. */
static void run_units(const lb_product *p, const lb_f32_grid *g,
                      const lb_work *w, int64_t at, int64_t units)
{
    lb_f32_block u =
        rows_of(p, g, w, at / (g->bm * g->bn), at / g->bn % g->bm * g->mb);
    u.j = at % g->bn * g->nb;
    u.n = lb_min_i64(units * g->nb, g->w.n - u.j);
    if (g->w.coded.bits) u.codes = lb_coded_at(&g->w.coded, g->w.w, u.batch);
    if (writes(p, g)) {
        u.ldc = p->n;
        u.c =
            (float *)w->out->store->data + (u.batch * p->m + u.i) * p->n + u.j;
        run_block(&u);
        return;
    }
    float *const scratch = w->scratch;
    u.ldc = u.n;
    u.c = scratch + g->c_at;
    run_block(&u);
    lb_weights_put(p, &g->w, w, u.batch, u.i, u.m, u.j, u.n, u.c, u.ldc,
                   scratch + g->put_at);
}

static void run(const lb_product *p, const lb_work *w)
{
    const lb_f32_grid *const g = p->grid;
    if (g->whole && w->phase == 0) {
        for (int64_t at = w->lo; at < w->hi; at++)
            pack_unit(p, g, w, at);
        return;
    }
    for (int64_t at = w->lo, units; at < w->hi; at += units) {
        units = lb_min_i64(w->hi - at, g->bn - at % g->bn);
        units = lb_min_i64(units, g->widest / g->nb);
        run_units(p, g, w, at, units);
    }
}

const lb_algorithm lb_gemm_f32 = {"gemm", make_plan, run};
