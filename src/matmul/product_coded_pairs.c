/* product_coded_pairs.c - whole numbers times packed signs and trits, by tables
 * of which half is left out (kernels/dotpair.h).
 *
 * A unit is one block of the result, up to 128 rows of x by 2048 of w:
 *
 *   for each chunk of the depth        as many panels as stay in L2
 *     tables of x
 *     for each band of w               64 rows; if the depth runs across
 *       for each panel of the chunk    memory, those of some bytes of a line
 *         codes are turned
 *         for each 64 rows
 *           codes become indices       in L1
 *           for each pair of rows of x
 *             for each 32 rows
 *
 * Panels are added to the result one after the other, which fixes the order
 * for any grid of blocks. Where the depth runs across memory, results lie in
 * the order of strips (coded_turn.h) up to the end.
 */
#include "kernels/dotpair.h"
#include "kernels/tuning.h"
#include "matmul/coded_turn.h"
#include "matmul/coded_units.h"
#include "matmul/int_panels.h"

enum {
    MOST_M = 128,       /* rows of x in a block */
    LEAST_M = 32,       /* no fewer, to have more blocks */
    MOST_N = 2048,      /* rows of w */
    GRAIN = 128,        /* blocks of w begin at multiples of this */
    SHARES = 4,         /* blocks for each thread, */
    MIN_UNIT = 1 << 22, /* if so many multiplications remain to each */
    MOST_X = 1 << 25,   /* bytes of tables that are made before */
    MR = LB_DOTPAIR_MR,
    HALF = LB_DOTPAIR_COLUMNS,
    STRIP = 2 * HALF,
    BANDS = 2,                /* that are turned at once across: a line of
                               * a cache of each line of codes */
    BYTES = LB_DOTPAIR_BYTES, /* of codes in a panel, */
    TURNED = HALF * BYTES,    /* and of a half strip, turned */
    INDICES = LB_DOTPAIR_HEAD + BYTES * LB_DOTPAIR_BYTE
};

typedef struct {
    lb_weights w;
    const lb_dotpair *kernel;
    const lb_dotturn *turns;
    lb_dotpair_kind kind;
    lb_int_panels p;
    lb_units b;
    float middle, slope;   /* level = middle + slope * sign */
    int64_t kc;            /* depth of a panel, */
    int64_t pair, panel;   /* bytes of its tables: of a pair of rows, of all */
    int64_t panels, chunk; /* of all of the depth, and of what stays in L2 */
    bool before;           /* tables are made in phase 0 */
    int64_t band;          /* rows of w that are turned at once */
    int64_t ld;            /* floats from row to row of the result */
    /* Scratch, in bytes; tables are at 0, if not. */
    size_t codes_at, turned_at, own_at, c_at, ws_at, rows_at, slab_at, put_at,
        sorted_at, weights_at, bytes;
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

/* ---- the grid ------------------------------------------------------------ */

static size_t add(size_t at, int64_t bytes)
{
    return at + (size_t)lb_round_up(bytes, 64);
}

/* What codes mean, and how much of the depth is a panel. */
static void make_numbers(grid *g)
{
    const bool signs = g->w.coded.bits == 1;
    g->kind = signs ? LB_DOTPAIR_SIGNS : LB_DOTPAIR_TRITS;
    g->slope = signs ? 0.5f * (float)g->p.slope : (float)g->p.slope;
    g->middle = (float)g->p.least + g->slope;
    g->kc = (int64_t)BYTES * 8 / g->w.coded.bits;
}

static void make_room(const lb_product *p, const lb_call *c, grid *g)
{
    const int64_t f = sizeof(float), head = sizeof(lb_dotpair_head);
    const int64_t in_l2 = (int64_t)lb_tuning_for(c->cpu)->l2_x;
    const int64_t pairs = lb_ceil_div(g->b.mb, MR);
    const bool along = g->w.coded.along;
    lb_scales s;
    g->pair = MR * g->kc / LB_DOTPAIR_EACH * LB_DOTPAIR_TABLE;
    g->panel = pairs * g->pair + lb_round_up(pairs * head, 64);
    g->panels = lb_ceil_div(p->k, g->kc);
    g->chunk = lb_min_i64(lb_max_i64(1, in_l2 / g->panel), g->panels);
    g->before = g->panel * g->panels <= MOST_X / (p->batch * g->b.bm);
    g->band = along ? STRIP : BANDS * lb_turn_band(&g->w.coded);
    g->ld = lb_put_apart(lb_round_up(g->b.nb, lb_turn_band(&g->w.coded)));
    g->codes_at = add(0, g->before ? 0 : g->chunk * g->panel);
    g->turned_at = add(g->codes_at, 2 * INDICES);
    g->own_at = add(g->turned_at, g->band / HALF * TURNED);
    g->c_at = add(g->own_at, lb_turn_room(&g->w.coded, g->kc));
    g->ws_at = add(g->c_at, g->b.mb * g->ld * f);
    g->rows_at = add(g->ws_at, g->ld * f);
    g->slab_at = add(g->rows_at, (MR + 2) * g->kc * f);
    g->put_at = add(g->slab_at, lb_row_slab_floats(g->w.x, g->kc) * f);
    g->sorted_at = add(g->put_at, g->w.swapped ? g->b.mb * g->b.nb * f : 0);
    g->weights_at = add(g->sorted_at, along ? 0 : g->b.mb * g->ld * f);
    g->bytes = g->weights_at + lb_scales_room(c->cpu, &g->w.coded, g->kc,
                                              g->b.nb, p->k, &s, NULL);
}

static bool make_grid(const lb_product *p, const lb_weights *w,
                      const lb_call *c, grid *g)
{
    g->w = *w;
    if (!lb_int_panels_of(c->cpu, &g->w.coded, g->w.m, &g->p)) return false;
    g->kernel = lb_dotpair_for(c->cpu);
    g->turns = lb_dotturn_for(c->cpu);
    make_numbers(g);
    const lb_cut cut = {
        .most_m = MOST_M,
        .most_n = MOST_N,
        .least_m = LEAST_M,
        .grain = lb_max_i64(GRAIN, lb_turn_band(&g->w.coded)),
        .shares = SHARES,
        .work = MIN_UNIT,
    };
    g->b = lb_units_of(p, c, &g->w, &cut);
    make_room(p, c, g);
    return true;
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    if (!make_grid(p, w, c, g)) return;
    plan->per_thread = g->bytes;
    plan->phases = g->before ? 2 : 1;
    plan->units[plan->phases - 1] = g->b.n;
    if (g->before) {
        plan->units[0] = p->batch * g->b.bm * g->panels;
        plan->shared = (size_t)(plan->units[0] * g->panel);
    }
    plan->kernel = g->kernel->name;
    p->tile = (lb_tile_sizes){MR, HALF, g->kc};
}

/* ---- a block ------------------------------------------------------------- */

typedef struct {
    const lb_product *p;
    const grid *g;
    const lb_work *work;
    lb_coded coded;
    lb_unit at;
    int64_t pairs; /* of rows of x */
    lb_row_slab rows;
    lb_turning turning;
    lb_scales scales;
    char *scratch;
    float *c, *ws;
} block;

static int64_t depth_at(const block *b, int64_t k)
{
    return lb_min_i64(b->g->kc, b->p->k - k);
}

/* Of codes that tables are made for. */
static int64_t bytes_at(const block *b, int64_t k)
{
    return lb_ceil_div(depth_at(b, k), LB_DOTPAIR_EACH) * b->coded.bits;
}

/* Rows of x in a pair: the last may have one. */
static int rows_of(const block *b, int64_t pair)
{
    return (int)lb_min_i64(MR, b->at.m - pair * MR);
}

/* Where a panel of x is, in a chunk that begins with panel `first`. */
static char *panel_at(const block *b, int64_t first, int64_t panel)
{
    const grid *g = b->g;
    if (!g->before) return b->scratch + (panel - first) * g->panel;
    const int64_t rows = b->at.batch * g->b.bm + b->at.i0 / g->b.mb;
    return (char *)b->work->shared + (rows * g->panels + panel) * g->panel;
}

/* Tables of all pairs come first, then what else they bring. */
static lb_dotpair_head *head_at(const block *b, char *panel, int64_t pair)
{
    return (lb_dotpair_head *)(void *)(panel + b->pairs * b->g->pair) + pair;
}

static uint8_t *codes_at(const block *b, int64_t half)
{
    return (uint8_t *)b->scratch + b->g->codes_at + half * INDICES;
}

/* ---- x ------------------------------------------------------------------- */

static void make_tables(block *b, int64_t pair, int64_t k, char *panel)
{
    const grid *g = b->g;
    const int64_t n = depth_at(b, k), i = pair * MR;
    const int rows = rows_of(b, pair);
    const lb_int_bound bound = {LB_DOTPAIR_MOST, LB_DOTPAIR_MOST};
    float *const tmp = (float *)(void *)(b->scratch + g->rows_at);
    float *const row = tmp + g->kc;
    uint8_t *const to = (uint8_t *)panel + pair * g->pair;
    lb_dotpair_head *const head = head_at(b, panel, pair);
    const lb_block from =
        lb_row_slab_get(&b->rows, b->at.i0 + i, rows, k, n, row + g->kc);
    const float *factor = lb_scales_factor(&b->scales, k, n);
    for (int r = 0; r < rows; r++) {
        const float *x = lb_line_up((const float *)from.p + r * from.rs,
                                    from.ks, n, factor, row);
        const lb_int_row whole =
            lb_int_row_of(g->kernel->largest[g->kind], bound, n, x, tmp);
        const int32_t sum = g->kernel->tables(
            g->kind, n, whole.x, whole.factor,
            b->coded.along && b->coded.high_first,
            to + (ptrdiff_t)r * LB_DOTPAIR_TABLE, rows * LB_DOTPAIR_TABLE);
        head->scale[r] = whole.scale;
        head->base[r] = g->middle * (float)sum;
    }
}

static void make_panel(block *b, int64_t k, char *panel)
{
    for (int64_t pair = 0; pair < b->pairs; pair++)
        make_tables(b, pair, k, panel);
}

/* ---- w ------------------------------------------------------------------- */

/* A band of n rows, all strips of it. ahead: bytes from here to what is wanted
 * next. */
static void turn_band(const block *b, int64_t j, int64_t n, int64_t k,
                      int64_t ahead)
{
    uint8_t *const to = (uint8_t *)b->scratch + b->g->turned_at;
    const int64_t depth = depth_at(b, k);
    if (!b->coded.along)
        lb_turn_across(&b->turning, j, n, k, depth, to, TURNED);
    for (int64_t at = 0; at < n && b->coded.along; at += HALF)
        lb_turn_along(&b->turning, j + at, k, depth, ahead,
                      to + at / HALF * TURNED);
}

/* Of n rows from `at` on in the band. */
static void make_indices(const block *b, int64_t at, int64_t n, int64_t k)
{
    const uint8_t *const turned = (uint8_t *)b->scratch + b->g->turned_at;
    for (int64_t h = 0; h < n / HALF; h++)
        b->g->kernel->index(b->g->kind, bytes_at(b, k),
                            turned + (at / HALF + h) * TURNED, codes_at(b, h));
}

/* ---- both ---------------------------------------------------------------- */

static void run_pairs(const block *b, char *panel, int64_t j, int64_t n,
                      int64_t k)
{
    const grid *g = b->g;
    const int64_t bytes = bytes_at(b, k);
    for (int64_t pair = 0; pair < b->pairs; pair++) {
        float *const c = b->c + pair * MR * g->ld;
        for (int64_t at = j; at < j + n; at += HALF)
            g->kernel->dots(g->kind, rows_of(b, pair), bytes,
                            (uint8_t *)panel + pair * g->pair,
                            codes_at(b, (at - j) / HALF), g->slope,
                            head_at(b, panel, pair), b->ws + at, k == 0, c + at,
                            g->ld);
    }
}

static void run_band(const block *b, int64_t j, int64_t first, int64_t panels)
{
    const int64_t whole = b->coded.along ? HALF : lb_turn_band(&b->coded);
    const int64_t rows = lb_min_i64(b->g->band, b->at.n - j);
    const int64_t n = lb_round_up(rows, whole);
    for (int64_t at = 0; at < panels; at++) {
        const int64_t k = (first + at) * b->g->kc;
        const int64_t next =
            at + 1 < panels ? BYTES : STRIP * b->coded.byte_step - at * BYTES;
        turn_band(b, j, rows, k, next);
        for (int64_t s = 0; s < n; s += STRIP) {
            const int64_t some = lb_min_i64(STRIP, n - s);
            make_indices(b, s, some, k);
            run_pairs(b, panel_at(b, first, first + at), j + s, some, k);
        }
    }
}

static void run_chunk(block *b, int64_t first, int64_t panels)
{
    for (int64_t at = 0; at < panels && !b->g->before; at++)
        make_panel(b, (first + at) * b->g->kc, panel_at(b, first, first + at));
    for (int64_t j = 0; j < b->at.n; j += b->g->band)
        run_band(b, j, first, panels);
}

/* The scales of rows of w; zeros for those that are not. */
static void read_scales(block *b)
{
    const grid *g = b->g;
    float *const row = b->scales.row;
    lb_scales_rows(&b->scales, b->at.j0, b->at.n, b->p->k);
    for (int64_t j = 0; j < b->at.n; j++)
        row[j] = row[j] * g->p.unit * LB_INT_DOWN;
    lb_turn_strips(&b->coded, b->at.n, row, g->ld - lb_put_apart(0), b->ws);
}

static void put_block(const block *b)
{
    const grid *g = b->g;
    float *const sorted = (float *)(void *)(b->scratch + g->sorted_at);
    for (int64_t i = 0; i < b->at.m && !b->coded.along; i++)
        lb_turn_sort(&b->coded, b->at.n, b->c + i * g->ld, sorted + i * g->ld);
    lb_weights_put(b->p, &g->w, b->work, b->at.batch, b->at.i0, b->at.m,
                   b->at.j0, b->at.n, b->coded.along ? b->c : sorted, g->ld,
                   (float *)(void *)(b->scratch + g->put_at));
}

static block block_of(const lb_product *p, const lb_work *work, const grid *g,
                      lb_unit at)
{
    block b = {
        .p = p,
        .g = g,
        .work = work,
        .coded = lb_coded_at(&g->w.coded, g->w.w, at.batch),
        .at = at,
        .pairs = lb_ceil_div(at.m, MR),
        .scratch = work->scratch,
    };
    b.rows = lb_row_slab_of(g->w.x, work->call->cpu, at.batch, at.i0 + at.m,
                            b.scratch + g->slab_at);
    b.turning = (lb_turning){g->turns, b.coded, b.at.j0, b.at.n,
                             (uint8_t *)b.scratch + g->own_at};
    b.c = (float *)(void *)(b.scratch + g->c_at);
    b.ws = (float *)(void *)(b.scratch + g->ws_at);
    lb_scales_room(g->p.cpu, &b.coded, g->kc, g->b.nb, p->k, &b.scales,
                   b.scratch + g->weights_at);
    return b;
}

static void run_block(const lb_product *p, const lb_work *work, const grid *g,
                      lb_unit at)
{
    block b = block_of(p, work, g, at);
    read_scales(&b);
    for (int64_t k = 0; k < g->panels; k += g->chunk)
        run_chunk(&b, k, lb_min_i64(g->chunk, g->panels - k));
    put_block(&b);
}

/* Some rows of x: a panel of all their pairs. */
static void run_before(const lb_product *p, const lb_work *work, const grid *g,
                       int64_t unit)
{
    const int64_t panel = unit % g->panels;
    block b = block_of(p, work, g,
                       lb_units_at(&g->b, &g->w, unit / g->panels * g->b.bn));
    if (g->p.scales.in_x) lb_scales_rows(&b.scales, 0, 0, p->k);
    make_panel(&b, panel * g->kc, panel_at(&b, panel, panel));
}

static void run(const lb_product *p, const lb_work *w)
{
    const grid *const g = p->grid;
    for (int64_t u = w->lo; u < w->hi; u++)
        if (g->before && w->phase == 0)
            run_before(p, w, g, u);
        else
            run_block(p, w, g, lb_units_at(&g->b, &g->w, u));
}

const lb_algorithm lb_coded_pairs = {"lookup", make_plan, run};
