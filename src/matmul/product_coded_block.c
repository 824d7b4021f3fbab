/* product_coded_block.c - whole numbers times packed weights.
 *
 * A unit is one block of the result, up to 128 or 192 rows of x by 1024 of w:
 *
 *   for each chunk of the depth            as much of x as stays in L2
 *     round x to panels                    or that was done before, once for
 *     |                                    all blocks of the same rows
 *     for each strip of w                  codes in L1, as bytes if need be
 *       for each panel of the chunk
 *         for each group of rows of x      up to 8, in L1 as well
 *           dots with all of the strip     or tiles with panels of it
 *
 * Sums of panels are added to the result one after the other, which fixes the
 * order for any grid of blocks. The result is kept in the order of tiles, and
 * put to rows at the end.
 */
#include "kernels/tuning.h"
#include "kernels/turn.h"
#include "matmul/coded_units.h"
#include "matmul/int_panels.h"

enum {
    MOST_M = 192,      /* rows of x in a block, if a panel of these fits in */
    MOST_N = 1024,     /* rows of w */
    GRAIN = 128,       /* blocks of w begin at multiples of this */
    PUT = 1 << 14,     /* elements of a result that lies turned, put together:
                        * then its runs are longer than a group of rows */
    WHOLE = 1 << 24,   /* bytes of x that are rounded once for all blocks */
    SHARES = 4,        /* blocks for each thread, */
    MIN_UNIT = 1 << 21 /* if so many multiplications remain to each */
};

typedef struct {
    lb_weights w;
    lb_int_panels p;
    lb_units b;
    int64_t groups; /* of rows of x in a block, at most */
    int64_t in_l2;  /* bytes of x */
    int64_t chunk;  /* depth */
    int64_t put;    /* rows put together */
    int64_t panels; /* of all the depth */
    int64_t slice;  /* bytes of these, of the rows of a block */
    bool whole;     /* they are made in phase 0 */
    /* Scratch, in bytes; x, if it is not whole, is at 0. */
    size_t c_at, w_at, ws_at, rows_at, slab_at, put_at, weights_at, bytes;
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

/* ---- the grid ------------------------------------------------------------ */

/* Bytes of a panel of x of a depth: scales and vectors of all groups. */
static int64_t panel_bytes(int64_t m, int64_t groups, int64_t depth)
{
    return groups * (int64_t)sizeof(lb_dotint_head) +
           m * depth * (int64_t)sizeof(int16_t);
}

static size_t add(size_t at, int64_t bytes)
{
    return at + (size_t)lb_round_up(bytes, 64);
}

static void make_room(const lb_product *p, grid *g)
{
    const lb_int_panels *q = &g->p;
    const int64_t f = sizeof(float),
                  panel = panel_bytes(g->b.mb, g->groups, q->kc);
    /* Weights whose rows run along memory are read along it. */
    const int64_t most = g->w.coded.along ? lb_max_i64(1, g->in_l2 / panel) : 1;
    const int64_t panels = lb_min_i64(most, lb_ceil_div(p->k, q->kc));
    const int64_t columns = lb_round_up(g->b.nb, q->kernel->nr);
    g->put = LB_DOTINT_MAX_MR;
    if (g->w.swapped)
        g->put = lb_max_i64(g->put, lb_min_i64(PUT / g->b.nb, g->b.mb));
    const int64_t put = g->put * lb_put_apart(g->b.nb) * f;
    lb_int_weights w;
    g->chunk = panels * q->kc;
    g->panels = lb_ceil_div(p->k, q->kc);
    g->slice = g->panels * panel;
    g->whole = g->b.bn > 1 && g->slice <= WHOLE / (p->batch * g->b.bm);
    g->c_at = add(0, g->whole ? 0 : panels * panel);
    g->w_at = add(g->c_at, g->b.mb * columns * f);
    const int64_t tiles = q->packs ? q->sub * q->kc : 0;
    g->ws_at = add(g->w_at, tiles * (int64_t)sizeof(int16_t));
    g->rows_at = add(g->ws_at, q->strip * f);
    g->slab_at = add(g->rows_at, lb_int_rows_room(q) * f);
    const int64_t slab = lb_row_slab_floats(g->w.x, q->kc) * f;
    g->put_at = add(g->slab_at, slab);
    g->weights_at = add(g->put_at, g->w.swapped ? 2 * put : put);
    g->bytes = g->weights_at +
               lb_int_weights_room(q, &g->w.coded, g->b.nb, p->k, &w, NULL);
}

static bool make_grid(const lb_product *p, const lb_weights *w,
                      const lb_call *c, grid *g)
{
    g->w = *w;
    if (!lb_int_panels_of(c->cpu, &g->w.coded, g->w.m, &g->p)) return false;
    g->in_l2 = (int64_t)lb_tuning_for(c->cpu)->l2_x;
    const int64_t most = g->in_l2 / (int64_t)sizeof(int16_t) / g->p.kc;
    const lb_cut cut = {
        .most_m = lb_max_i64(lb_min_i64(MOST_M, most), g->p.kernel->mr),
        .most_n = MOST_N,
        .least_m = g->p.kernel->mr,
        .grain = GRAIN,
        .shares = SHARES,
        .work = MIN_UNIT,
    };
    g->b = lb_units_of(p, c, &g->w, &cut);
    g->groups = lb_ceil_div(g->b.mb, g->p.kernel->mr);
    make_room(p, g);
    return true;
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    if (!make_grid(p, w, c, g)) return;
    plan->per_thread = g->bytes;
    plan->kernel = g->p.kernel->name;
    p->tile = (lb_tile_sizes){g->p.kernel->mr, g->p.kernel->nr, g->p.kc};
    if (g->whole) {
        plan->phases = 2;
        plan->shared = (size_t)(p->batch * g->b.bm * g->slice);
        plan->units[0] = p->batch * g->b.bm * g->panels;
    }
    plan->units[plan->phases - 1] = g->b.n;
}

/* ---- a block ------------------------------------------------------------- */

typedef struct {
    const lb_product *p;
    const grid *g;
    const lb_work *work;
    lb_coded coded;
    lb_int_weights weights;
    int64_t batch, i0, m, groups, j0, n;
    lb_row_slab rows;
    char *room; /* scratch */
    char *x;    /* panels: there, or all of them */
    float *c;
} block;

static int64_t group_at(const block *b, int64_t at)
{
    return lb_group_row(b->m, b->groups, at);
}

/* Where a group begins in a panel: its head, then its vectors. */
static lb_dotint_head *group_head(const block *b, char *panel, int64_t at,
                                  int64_t depth)
{
    char *const head = panel + panel_bytes(group_at(b, at), at, depth);
    return (lb_dotint_head *)(void *)head;
}

static int16_t *group_vectors(lb_dotint_head *head)
{
    return (int16_t *)(void *)(head + 1);
}

static void pack_x(block *b, int64_t k, int64_t n, char *panel)
{
    const grid *g = b->g;
    const int64_t depth = lb_round_up(n, b->g->p.step);
    const float *factor = lb_scales_factor(&b->weights.s, k, n);
    float *const tmp = (float *)(void *)(b->room + g->rows_at);
    for (int64_t i = 0; i < b->groups; i++) {
        const int64_t row = group_at(b, i);
        lb_dotint_head *const head = group_head(b, panel, i, depth);
        lb_int_rows_pack(&g->p, &b->rows, b->i0 + row,
                         (int)(group_at(b, i + 1) - row), k, n, factor, head,
                         group_vectors(head), tmp);
    }
}

/* All tiles of a panel of x with packed rows [j, j + n) of w. */
static void run_tiles(block *b, char *panel, int64_t depth, int64_t j,
                      int64_t n, bool first)
{
    const lb_dotint *kernel = b->g->p.kernel;
    const int nr = kernel->nr;
    const int16_t *w = (const int16_t *)(const void *)(b->room + b->g->w_at);
    const float *ws = (const float *)(const void *)(b->room + b->g->ws_at);
    for (int64_t i = 0; i < b->groups; i++) {
        const int64_t row = group_at(b, i);
        const int rows = (int)(group_at(b, i + 1) - row);
        lb_dotint_head *const head = group_head(b, panel, i, depth);
        const int16_t *x = group_vectors(head);
        for (int64_t r = 0; r < n; r += nr)
            kernel->tile(rows, depth, x, w + r * depth, head->scale, ws + r,
                         b->g->p.fine, first, b->c + (j + r) * b->m + row * nr);
    }
}

/* The same, row by row. */
static void run_words(block *b, char *panel, int64_t depth, int64_t j,
                      int64_t n, bool first)
{
    const lb_dotint_codes w = {
        .kind = LB_DOTINT_WORDS,
        .fine = b->g->p.fine,
        .codes = (const uint8_t *)b->room + b->g->w_at,
        .step = depth * (int64_t)sizeof(int16_t),
        .ws = (const float *)(const void *)(b->room + b->g->ws_at),
        .ws_step = 1,
        .n = n,
        .depth = depth,
    };
    for (int64_t i = 0; i < b->groups; i++) {
        const int64_t row = group_at(b, i), rows = group_at(b, i + 1) - row;
        lb_dotint_head *const head = group_head(b, panel, i, depth);
        b->g->p.kernel->dots(&w, (int)rows, group_vectors(head), head, first,
                             b->c + row * b->n + j * rows, rows);
    }
}

/* All of a panel of x with the strip from row j of w on, as it is. */
static void run_dots(block *b, char *panel, int64_t depth, int64_t j,
                     bool first)
{
    float *const ws = (float *)(void *)(b->room + b->g->ws_at);
    lb_int_weights_scales(&b->weights, ws);
    for (int64_t i = 0; i < b->groups; i++) {
        const int64_t row = group_at(b, i), rows = group_at(b, i + 1) - row;
        lb_dotint_head *const head = group_head(b, panel, i, depth);
        lb_int_weights_dots(&b->weights, i == 0, ws, (int)rows,
                            group_vectors(head), head, first,
                            b->c + row * b->n + j * rows, rows);
    }
}

static void run_strip(block *b, int64_t k, int64_t n, char *panel, int64_t j)
{
    const lb_int_panels *q = &b->g->p;
    const int64_t end = lb_min_i64(j + q->strip, b->n);
    const int64_t depth = lb_round_up(n, b->g->p.step);
    int16_t *const to = (int16_t *)(void *)(b->room + b->g->w_at);
    float *const ws = (float *)(void *)(b->room + b->g->ws_at);
    lb_int_weights_strip(&b->weights, b->j0 + j, k, n);
    if (!q->packs) {
        run_dots(b, panel, depth, j, k == 0);
        return;
    }
    for (int64_t s = j; s < end; s += q->sub) {
        const int64_t rows = lb_min_i64(q->sub, end - s);
        lb_int_weights_pack(&b->weights, b->j0 + s, to, ws);
        if (q->kernel->dots)
            run_words(b, panel, depth, s, rows, k == 0);
        else
            run_tiles(b, panel, depth, s, rows, k == 0);
    }
}

static void run_chunk(block *b, int64_t k, int64_t n)
{
    const int64_t kc = b->g->p.kc, strip = b->g->p.strip;
    const int64_t panel = panel_bytes(b->m, b->groups, kc);
    char *const x = b->x + (b->g->whole ? k / kc * panel : 0);
    for (int64_t at = 0; at < n && !b->g->whole; at += kc)
        pack_x(b, k + at, lb_min_i64(kc, n - at), x + at / kc * panel);
    for (int64_t j = 0; j < b->n; j += strip) {
        for (int64_t at = 0; at < n; at += kc) {
            const bool last = at + kc >= n;
            lb_int_weights_next(&b->weights, b->j0 + (last ? j + strip : j),
                                last ? k : k + at + kc);
            run_strip(b, k + at, lb_min_i64(kc, n - at), x + at / kc * panel,
                      j);
        }
    }
}

/* Rows [row, row + rows), a group, of the result, in order. Tiles leave them
 * at c[(j / nr * m + i) * nr + j % nr], dots group by group. */
static void sort_group(const block *b, int64_t row, int64_t rows, float *to,
                       int64_t ld)
{
    const lb_dotint *kernel = b->g->p.kernel;
    const int nr = kernel->nr;
    if (kernel->dots) {
        const int64_t f = sizeof(float);
        lb_turn(sizeof(float), (const char *)(b->c + row * b->n), rows * f,
                (char *)to, ld * f, b->n, rows);
        return;
    }
    for (int64_t j = 0; j < b->n; j += nr) {
        const float *c = b->c + j * b->m + row * nr;
        const int64_t n = lb_min_i64(nr, b->n - j);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t e = 0; e < n; e++)
                to[i * ld + j + e] = c[i * nr + e];
    }
}

static void put_rows(block *b)
{
    const grid *g = b->g;
    const int64_t ld = lb_put_apart(b->n);
    float *const tile = (float *)(void *)(b->room + g->put_at);
    float *const turned = tile + g->put * ld;
    for (int64_t i = 0, first = 0; i < b->groups; i++) {
        const int64_t row = group_at(b, i), end = group_at(b, i + 1);
        sort_group(b, row, end - row, tile + (row - first) * ld, ld);
        if (end < b->m && group_at(b, i + 2) - first <= g->put) continue;
        lb_weights_put(b->p, &g->w, b->work, b->batch, b->i0 + first,
                       end - first, b->j0, b->n, tile, ld, turned);
        first = end;
    }
}

/* ---- units --------------------------------------------------------------- */

static block block_of(const lb_product *p, const lb_work *work, const grid *g,
                      lb_unit at)
{
    const int64_t rows = at.batch * g->b.bm + at.i0 / g->b.mb;
    block b = {
        .p = p,
        .g = g,
        .work = work,
        .coded = lb_coded_at(&g->w.coded, g->w.w, at.batch),
        .batch = at.batch,
        .i0 = at.i0,
        .m = at.m,
        .j0 = at.j0,
        .n = at.n,
        .room = work->scratch,
        .x = g->whole ? (char *)work->shared + rows * g->slice : work->scratch,
    };
    b.rows = lb_row_slab_of(g->w.x, work->call->cpu, at.batch, at.i0 + at.m,
                            b.room + g->slab_at);
    b.groups = lb_ceil_div(b.m, g->p.kernel->mr);
    b.c = (float *)(void *)(b.room + g->c_at);
    lb_int_weights_room(&g->p, &b.coded, g->b.nb, p->k, &b.weights,
                        b.room + g->weights_at);
    return b;
}

/* One panel of the rows of some blocks. */
static void run_panel(const lb_product *p, const lb_work *work, const grid *g,
                      int64_t unit)
{
    const int64_t kc = g->p.kc, k = unit % g->panels * kc;
    const int64_t first = unit / g->panels * g->b.bn; /* of these blocks */
    block b = block_of(p, work, g, lb_units_at(&g->b, &g->w, first));
    if (g->p.scales.in_x) lb_scales_rows(&b.weights.s, b.j0, b.n, p->k);
    pack_x(&b, k, lb_min_i64(kc, p->k - k),
           b.x + k / kc * panel_bytes(b.m, b.groups, kc));
}

static void run_block(const lb_product *p, const lb_work *work, const grid *g,
                      int64_t unit)
{
    block b = block_of(p, work, g, lb_units_at(&g->b, &g->w, unit));
    lb_scales_rows(&b.weights.s, b.j0, b.n, p->k);
    for (int64_t k = 0; k < p->k; k += g->chunk)
        run_chunk(&b, k, lb_min_i64(g->chunk, p->k - k));
    put_rows(&b);
}

static void run(const lb_product *p, const lb_work *w)
{
    const grid *const g = p->grid;
    for (int64_t u = w->lo; u < w->hi; u++)
        if (g->whole && w->phase == 0)
            run_panel(p, w, g, u);
        else
            run_block(p, w, g, u);
}

const lb_algorithm lb_coded_block = {"gemm", make_plan, run};
