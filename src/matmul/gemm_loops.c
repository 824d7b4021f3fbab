/* gemm_loops.c - x as integers times packed weights, in panels (panels.h):
 *
 *   phase 0   x is rounded to panels; units are panels of some rows
 *   phase 1   a unit is one block of the result,
 *
 *     for each chunk of the depth          as much of x as stays in L2
 *       for each strip of w
 *         for each panel of the chunk      codes become bytes or words
 *           for each nr rows of it         which stay in L1
 *             tiles with all groups of rows of x, block by block
 *
 * Weights that are not packed meet each group as a whole strip.
 *
 * Where x is too large to be kept twice there is no phase 0, and each unit
 * rounds what it needs.
 */
#include <string.h>

#include "kernels/tuning.h"
#include "kernels/turn.h"
#include "matmul/coded_units.h"
#include "matmul/panels.h"

enum {
    MOST_M = 192,       /* rows of x in a gemm_block */
    MOST_N = 1024,      /* rows of w */
    MOST_DECODED = 512, /* the same where these are decoded */
    GRAIN = 128,        /* blocks of w begin at multiples of this */
    PUT = 16,           /* rows put at a time */
    SHARES = 4,         /* blocks for each thread, */
    MIN_UNIT = 1 << 21, /* if so many multiplications remain to each */
    MOST_X = 1 << 25    /* bytes of x that are rounded before */
};

typedef struct {
    lb_weights w;
    lb_panels p;
    lb_units b;
    int64_t group, panel; /* bytes of x: of mr rows, of all groups */
    int64_t in_l2;        /* bytes of x */
    int64_t chunk;        /* depth */
    int64_t panels;       /* of all of the depth, */
    bool before;          /* and x is rounded to them in phase 0 */
    /* Scratch, in bytes; x is at 0, if not. */
    size_t c_at, rows_at, slab_at, put_at, weights_at, bytes;
} gemm_grid;
_Static_assert(sizeof(gemm_grid) <= LB_GRID, "it is kept in p->grid");

/* ---- the grid ------------------------------------------------------------ */

static size_t add(size_t at, int64_t bytes)
{
    return at + (size_t)lb_round_up(bytes, 64);
}

static void make_room(const lb_product *p, gemm_grid *g)
{
    const lb_panels *q = &g->p;
    const int64_t f = sizeof(float);
    const int64_t groups = lb_ceil_div(g->b.mb, q->mr);
    const int64_t put = PUT * lb_put_apart(g->b.nb) * f;
    g->group = lb_round_up(lb_pack_x_bytes(q, q->mr, q->kc), 64);
    g->panel = groups * g->group;
    const int64_t most =
        g->w.coded.along ? lb_max_i64(1, g->in_l2 / g->panel) : 1;
    const int64_t panels = lb_min_i64(most, lb_ceil_div(p->k, q->kc));
    lb_pack_w w;
    g->chunk = panels * q->kc;
    g->panels = lb_ceil_div(p->k, q->kc);
    g->before = g->panel * g->panels <= MOST_X / (p->batch * g->b.bm);
    g->c_at = add(0, g->before ? 0 : panels * g->panel);
    const int64_t rows = q->kernel->dots ? groups * q->mr : g->b.mb;
    g->rows_at = add(g->c_at, rows * lb_round_up(g->b.nb, q->strip) * f);
    g->slab_at = add(g->rows_at, lb_pack_x_room(q) * f);
    const int64_t slab = lb_row_slab_floats(g->w.x, q->kc) * f;
    g->put_at = add(g->slab_at, slab);
    g->weights_at = add(g->put_at, g->w.swapped ? 2 * put : put);
    g->bytes =
        g->weights_at + lb_pack_w_room(q, &g->w.coded, g->b.nb, p->k, &w, NULL);
}

static bool make_grid(const lb_product *p, const lb_weights *w,
                      const lb_call *c, gemm_grid *g)
{
    g->w = *w;
    if (!lb_panels_for(p, w, c->cpu, &g->p)) return false;
    /* Weights are decoded for each block of x anew. */
    const lb_cut cut = {
        .most_m = g->p.decoded ? MOST_DECODED : MOST_M,
        .most_n = g->p.decoded ? MOST_DECODED : MOST_N,
        .least_m = g->p.mr,
        .grain = GRAIN,
        .shares = SHARES,
        .work = MIN_UNIT,
    };
    g->b = lb_units_of(p, c, &g->w, &cut);
    g->in_l2 = (int64_t)lb_tuning_for(c->cpu)->l2_x;
    make_room(p, g);
    return true;
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    gemm_grid *const g = p->grid;
    if (!make_grid(p, w, c, g)) return;
    plan->per_thread = g->bytes;
    plan->phases = g->before ? 2 : 1;
    plan->units[plan->phases - 1] = g->b.n;
    if (g->before) {
        plan->units[0] = p->batch * g->b.bm * g->panels;
        plan->shared = (size_t)(plan->units[0] * g->panel);
    }
    plan->kernel = g->p.planes == 2 ? g->p.kernel->name_two : g->p.kernel->name;
    p->tile = (lb_tile_sizes){g->p.mr, g->p.kernel->nr, g->p.kc};
}

/* ---- a block ------------------------------------------------------------- */

typedef struct {
    const lb_product *p;
    const gemm_grid *g;
    const lb_work *work;
    lb_coded coded;
    lb_pack_w weights;
    int64_t batch, i0, m, groups, j0, n;
    lb_row_slab rows;
    char *room;
    float *c;
} gemm_block;

static int64_t group_at(const gemm_block *b, int64_t at)
{
    return lb_group_row(b->m, b->groups, at);
}

static void pack_x(gemm_block *b, int64_t k, int64_t n, char *panel)
{
    const gemm_grid *g = b->g;
    const float *factor = lb_scales_factor(&b->weights.s, k, n);
    float *const tmp = (float *)(void *)(b->room + g->rows_at);
    for (int64_t i = 0; i < b->groups; i++) {
        const int64_t row = group_at(b, i);
        lb_pack_x(&g->p, &b->rows, b->i0 + row, (int)(group_at(b, i + 1) - row),
                  k, n, factor, panel + i * g->group, tmp);
    }
}

/* Where the panel of depth k is, in a chunk that begins with `first`. */
static char *x_at(const gemm_block *b, int64_t first, int64_t k)
{
    const gemm_grid *g = b->g;
    if (!g->before) return b->room + (k - first) / g->p.kc * g->panel;
    const int64_t rows = b->batch * g->b.bm + b->i0 / g->b.mb;
    return (char *)b->work->shared +
           (rows * g->panels + k / g->p.kc) * g->panel;
}

/* A tile of a group of rows of x with nr rows of w, the panel of slots [s, s +
 * nr) of a strip of so many, whose first is slot j. */
static void run_tile(gemm_block *b, char *panel, const uint8_t *w, int64_t n,
                     int64_t j, int64_t s, int64_t slots, int64_t group,
                     bool first)
{
    const lb_panels *q = &b->g->p;
    const int nr = q->kernel->nr;
    const int64_t row = group_at(b, group);
    const int rows = (int)(group_at(b, group + 1) - row);
    const lb_dotbyte_x x =
        lb_pack_x_at(q, panel + group * b->g->group, rows, n);
    const lb_dotbyte_w of = {
        .bytes = w,
        .scale = b->weights.ws + s,
        .apart = q->each ? slots : 0,
    };
    q->kernel->tile(&x, lb_round_up(n, LB_DOTBYTE_STEP), &of, first,
                    b->c + (j + s) * b->m + row * nr, &b->weights.ask);
}

/* What dots make of a group, line by line. */
static float *group_sums(const gemm_block *b, int64_t group)
{
    const lb_panels *q = &b->g->p;
    return b->c + group * q->mr * lb_round_up(b->n, q->strip);
}

static void run_dots(gemm_block *b, int64_t k, int64_t n, char *panel,
                     int64_t j)
{
    const lb_panels *q = &b->g->p;
    lb_dotbyte_lines w = lb_pack_w_lines(&b->weights, b->j0 + j, k, n);
    for (int64_t i = 0; i < b->groups; i++) {
        const int rows = (int)(group_at(b, i + 1) - group_at(b, i));
        const lb_dotbyte_x x =
            lb_pack_x_at(q, panel + i * b->g->group, rows, n);
        q->kernel->dots(&x, &w, k == 0,
                        group_sums(b, i) + j * lb_dotbyte_apart(rows));
        w.next = 0; /* has been asked for */
    }
}

static void run_strip(gemm_block *b, int64_t k, int64_t n, char *panel,
                      int64_t j)
{
    if (b->g->p.kernel->dots) {
        run_dots(b, k, n, panel, j);
        return;
    }
    const int64_t slots = lb_pack_w_strip(&b->weights, b->j0 + j, k, n);
    for (int64_t s = 0; s < slots; s += b->g->p.kernel->nr) {
        const uint8_t *w = lb_pack_w_panel(&b->weights, s, n);
        for (int64_t i = 0; i < b->groups; i++)
            run_tile(b, panel, w, n, j, s, slots, i, k == 0);
    }
}

static void run_chunk(gemm_block *b, int64_t k, int64_t n)
{
    const int64_t kc = b->g->p.kc, strip = b->g->p.strip, end = k + n;
    for (int64_t at = k; at < end && !b->g->before; at += kc)
        pack_x(b, at, lb_min_i64(kc, end - at), x_at(b, k, at));
    for (int64_t j = 0; j < b->n; j += strip)
        for (int64_t at = k; at < end; at += kc) {
            const int64_t row = b->j0 + j;
            const bool last = at + kc >= end;
            lb_pack_w_next(&b->weights, row, at, last ? row + strip : row,
                           last ? k : at + kc, b->groups);
            run_strip(b, at, lb_min_i64(kc, end - at), x_at(b, k, at), j);
        }
}

/* Row i of the block, from c[(slot / nr * m + i) * nr + slot % nr]. */
static void sort_row(const gemm_block *b, int64_t i, float *to)
{
    const lb_panels *q = &b->g->p;
    const int64_t nr = q->kernel->nr, apart = q->apart;
    if (apart == 1) {
        for (int64_t s = 0; s < b->n; s += nr)
            memcpy(to + s, b->c + s * b->m + i * nr,
                   (size_t)lb_min_i64(nr, b->n - s) * sizeof *to);
        return;
    }
    for (int64_t s = 0; s < lb_round_up(b->n, 16 * apart); s += 16) {
        const float *c = b->c + (s / nr * b->m + i) * nr + s % nr;
        const int64_t j = lb_panel_slot_row(q, s);
        const int64_t n = lb_min_i64(16, lb_ceil_div(b->n - j, apart));
        for (int64_t e = 0; e < n; e++)
            to[j + e * apart] = c[e];
    }
}

/* Rows [i, i + rows), which are in the tile. */
static void put_tile(gemm_block *b, int64_t i, int64_t rows)
{
    const gemm_grid *g = b->g;
    const int64_t ld = lb_put_apart(b->n);
    float *const tile = (float *)(void *)(b->room + g->put_at);
    lb_weights_put(b->p, &g->w, b->work, b->batch, b->i0 + i, rows, b->j0, b->n,
                   tile, ld, tile + PUT * ld);
}

static void put_rows(gemm_block *b)
{
    const int64_t ld = lb_put_apart(b->n);
    float *const tile = (float *)(void *)(b->room + b->g->put_at);
    for (int64_t i = 0; i < b->m; i += PUT) {
        const int64_t rows = lb_min_i64(PUT, b->m - i);
        for (int64_t r = 0; r < rows; r++)
            sort_row(b, i + r, tile + r * ld);
        put_tile(b, i, rows);
    }
}

/* The same of dots. */
static void put_groups(gemm_block *b)
{
    const int64_t ld = lb_put_apart(b->n), f = sizeof(float);
    float *const tile = (float *)(void *)(b->room + b->g->put_at);
    for (int64_t i = 0; i < b->groups; i++) {
        const int64_t row = group_at(b, i), rows = group_at(b, i + 1) - row;
        lb_turn(sizeof(float), (const char *)group_sums(b, i),
                lb_dotbyte_apart((int)rows) * f, (char *)tile, ld * f, b->n,
                rows);
        put_tile(b, row, rows);
    }
}

static gemm_block block_of(const lb_product *p, const lb_work *work,
                           const gemm_grid *g, lb_unit at)
{
    gemm_block b = {
        .p = p,
        .g = g,
        .work = work,
        .coded = g->p.decoded ? g->w.coded
                              : lb_coded_at(&g->w.coded, g->w.w, at.batch),
        .batch = at.batch,
        .i0 = at.i0,
        .m = at.m,
        .j0 = at.j0,
        .n = at.n,
        .room = work->scratch,
    };
    b.rows = lb_row_slab_of(g->w.x, work->call->cpu, at.batch, at.i0 + at.m,
                            b.room + g->slab_at);
    b.groups = lb_ceil_div(b.m, g->p.mr);
    b.c = (float *)(void *)(b.room + g->c_at);
    lb_pack_w_room(&g->p, &b.coded, g->b.nb, p->k, &b.weights,
                   b.room + g->weights_at);
    b.weights.from = g->w.w;
    b.weights.batch = at.batch;
    return b;
}

static void run_block(const lb_product *p, const lb_work *work,
                      const gemm_grid *g, lb_unit at)
{
    gemm_block b = block_of(p, work, g, at);
    lb_pack_w_rows(&b.weights, b.j0, b.n, p->k);
    for (int64_t k = 0; k < p->k; k += g->chunk)
        run_chunk(&b, k, lb_min_i64(g->chunk, p->k - k));
    if (g->p.kernel->dots)
        put_groups(&b);
    else
        put_rows(&b);
}

/* Some rows of x: a panel of all their groups. */
static void run_before(const lb_product *p, const lb_work *work,
                       const gemm_grid *g, int64_t unit)
{
    const int64_t k = unit % g->panels * g->p.kc;
    const lb_unit at = lb_units_at(&g->b, &g->w, unit / g->panels * g->b.bn);
    gemm_block b = block_of(p, work, g, at);
    if (g->p.scales.in_x) lb_pack_w_rows(&b.weights, 0, 0, p->k);
    pack_x(&b, k, lb_min_i64(g->p.kc, p->k - k), x_at(&b, k, k));
}

static void run(const lb_product *p, const lb_work *w)
{
    const gemm_grid *const g = p->grid;
    const lb_dotbyte *kernel = g->p.kernel;
    if (g->before && w->phase == 0) {
        for (int64_t u = w->lo; u < w->hi; u++)
            run_before(p, w, g, u);
        return;
    }
    if (kernel->begin) kernel->begin(g->p.share);
    for (int64_t u = w->lo; u < w->hi; u++)
        run_block(p, w, g, lb_units_at(&g->b, &g->w, u));
    if (kernel->end) kernel->end();
}

const lb_algorithm lb_gemm = {"gemm", make_plan, run};
