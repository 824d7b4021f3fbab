/* product_coded_table.c - whole numbers times packed bits, by tables: a row or
 * two (product_coded_pairs.c is for more).
 *
 * A unit is one block of the result, these rows of x by 2048 of w:
 *
 *   for each chunk of the depth        along memory many panels, across one
 *     the tables of x                  in L1
 *     turn the codes of the block      along strip by strip, below
 *     for each strip of w              32 rows
 *       for each panel of the chunk
 *
 * Panels are added to the result one after the other, which fixes the order
 * for any grid of blocks. Where the depth runs across memory, results lie in
 * the order of strips (coded_turn.h) up to the end.
 */
#include "kernels/dottab.h"
#include "prims/coded_turn.h"
#include "prims/coded_units.h"
#include "prims/int_panels.h"

enum {
    MOST_N = 2048,      /* rows of w, which share the tables of x */
    GRAIN = 128,        /* blocks of w begin at multiples of this */
    SHARES = 2,         /* blocks for each thread, */
    MIN_UNIT = 1 << 22, /* if so many multiplications remain to each */
    LEAST = 64,         /* rows of w, and depth, that are worth tables */
    CHUNK = 16,         /* panels */
    LINE = 64,          /* bytes of a cache */
    MR = LB_DOTTAB_MR,
    KC = LB_DOTTAB_KC,
    ACROSS = 512, /* of a panel's depth, where this runs across memory: the
                   * first panel of a block is not asked for before */
    STRIP = LB_DOTTAB_COLUMNS,
    BYTES = KC / 8,                      /* of codes in a panel, */
    TURNED = STRIP * BYTES + LINE,       /* of a strip, and some more: else
                                          * strips would fall together, */
    TABLES = 2 * BYTES * LB_DOTTAB_TABLE /* and of the tables of a row */
};

typedef struct {
    lb_weights w;
    const lb_dottab *kernel;
    const lb_dotturn *turns;
    lb_int_panels p;
    lb_units b;
    bool along;    /* the depth runs so: codes are turned when wanted */
    int64_t wide;  /* g.b.nb in whole strips */
    int64_t depth; /* of a panel */
    int64_t chunk; /* panels */
    /* Scratch, in bytes; tables are at 0. */
    size_t codes_at, lines_at, c_at, ws_at, rows_at, slab_at, put_at, sorted_at,
        weights_at, bytes;
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

static bool fits(const lb_product *p, const lb_weights *w, const lb_cpu *cpu)
{
    lb_int_panels q;
    return p->precision >= LB_PRECISION_FAST && lb_dottab_for(cpu) &&
           w->coded.bits == 1 && w->m <= MR && w->n >= LEAST && p->k >= LEAST &&
           lb_int_panels_of(cpu, &w->coded, w->m, &q) && q.line && !q.fine &&
           !q.scales.in_w;
}

/* ---- the grid ------------------------------------------------------------ */

static size_t add(size_t at, int64_t bytes)
{
    return at + (size_t)lb_round_up(bytes, 64);
}

static bool make_grid(const lb_product *p, const lb_weights *w,
                      const lb_call *c, grid *g)
{
    g->w = *w;
    if (!lb_int_panels_of(c->cpu, &g->w.coded, g->w.m, &g->p)) return false;
    g->kernel = lb_dottab_for(c->cpu);
    g->turns = lb_dotturn_for(c->cpu);
    g->along = g->w.coded.along;
    const int64_t band = lb_turn_band(&g->w.coded);
    /* Memory decides, which is faster along longer lines. */
    const lb_cut cut = {
        .most_m = MR,
        .most_n = MOST_N,
        .least_m = MR,
        .grain = lb_max_i64(GRAIN, band),
        .shares = g->along ? SHARES : 1,
        .work = MIN_UNIT,
    };
    g->b = lb_units_of(p, c, &g->w, &cut);
    g->wide = lb_round_up(g->b.nb, band);
    g->depth = g->along ? KC : ACROSS;
    g->chunk = g->along ? lb_min_i64(CHUNK, lb_ceil_div(p->k, KC)) : 1;
    const int64_t f = sizeof(float);
    const int64_t strips = g->along ? 1 : g->wide / STRIP;
    lb_scales s;
    g->codes_at = add(0, g->chunk * MR * TABLES);
    g->lines_at = add(g->codes_at, strips * TURNED);
    g->c_at = add(g->lines_at, lb_turn_room(&g->w.coded, KC));
    g->ws_at = add(g->c_at, g->b.mb * g->wide * f);
    g->rows_at = add(g->ws_at, g->wide * f);
    g->slab_at = add(g->rows_at, (MR + 2) * KC * f);
    g->put_at = add(g->slab_at, lb_row_slab_floats(g->w.x, KC) * f);
    g->sorted_at = add(g->put_at, g->w.swapped ? g->b.mb * g->b.nb * f : 0);
    g->weights_at = add(g->sorted_at, g->along ? 0 : g->b.mb * g->wide * f);
    g->bytes = g->weights_at +
               lb_scales_room(c->cpu, &g->w.coded, KC, g->b.nb, p->k, &s, NULL);
    return true;
}

static void make_plan(const lb_product *p, const lb_weights *w,
                      const lb_call *c, lb_plan *plan)
{
    grid *const g = p->grid;
    if (!make_grid(p, w, c, g)) return;
    plan->per_thread = g->bytes;
    plan->units[0] = g->b.n;
    plan->kernel = g->kernel->name;
}

/* ---- a block ------------------------------------------------------------- */

typedef struct {
    const lb_product *p;
    const grid *g;
    const lb_work *work;
    lb_coded coded;
    lb_unit at;
    lb_row_slab rows;
    lb_scales scales;
    lb_turning turning;
    char *scratch;
    float *c, *ws;
    lb_dottab_head head[CHUNK]; /* of each panel */
} block;

static int64_t depth_at(const block *b, int64_t k)
{
    return lb_min_i64(b->g->depth, b->p->k - k);
}

static uint8_t *tables_at(const block *b, int64_t panel)
{
    return (uint8_t *)b->scratch + panel * MR * TABLES;
}

/* Whether a strip is one piece of memory that is read once, so that the next
 * one can be asked for in the order of memory, which suits DRAM best. */
static bool in_one_piece(const block *b)
{
    const int64_t row = lb_ceil_div(b->p->k, 8), step = b->coded.byte_step;
    return b->g->along && b->p->k <= b->g->chunk * KC && step >= row &&
           step < row + LINE;
}

/* What is asked for while a strip is turned: what comes after it. */
static void turn_strip(const block *b, int64_t j, int64_t k, uint8_t *to)
{
    const int64_t depth = depth_at(b, k), chunk = b->g->chunk * KC;
    const int64_t done = k % chunk;
    const bool last = done + KC == chunk || k + KC >= b->p->k;
    const int64_t ahead =
        last ? STRIP * b->coded.byte_step - done / 8 : depth / 8;
    lb_turn_along(&b->turning, j, k, depth, in_one_piece(b) ? 0 : ahead, to);
}

/* Of x from k on. */
static void make_tables(block *b, int64_t k, uint8_t *to, lb_dottab_head *head)
{
    const grid *g = b->g;
    const int rows = (int)b->at.m;
    const int64_t n = depth_at(b, k);
    float *const tmp = (float *)(void *)(b->scratch + g->rows_at);
    float *const row = tmp + KC;
    const lb_block from =
        lb_row_slab_get(&b->rows, b->at.i0, rows, k, n, row + KC);
    const float *factor = lb_scales_factor(&b->scales, k, n);
    for (int r = 0; r < rows; r++) {
        const float *x = lb_line_up((const float *)from.p + r * from.rs,
                                    from.ks, n, factor, row);
        const lb_int_row whole =
            lb_int_row_of(g->p.kernel->largest,
                          (lb_int_bound){LB_DOTTAB_MOST_X, 0}, n, x, tmp);
        int32_t sum, low;
        g->kernel->tables(n, whole.x, whole.factor,
                          g->along && b->coded.high_first,
                          to + (ptrdiff_t)r * LB_DOTTAB_TABLE,
                          rows * LB_DOTTAB_TABLE, &sum, &low);
        head->scale[r] = whole.scale;
        head->base[r] =
            (float)(g->p.least * (int64_t)sum + g->p.slope * (int64_t)low);
    }
}

/* Across, strip j asks for its share of the next panel's lines: some lines of
 * the cache from each place, one place after the other. */
static lb_dottab_ahead ahead_across(const block *b, int64_t j, int64_t k)
{
    const int64_t depth = b->g->depth;
    const int64_t lines = lb_min_i64(b->p->k - k - depth, depth);
    const int64_t places =
        lb_ceil_div(lb_coded_line_bytes(&b->coded, b->at.n), LINE);
    const int64_t strips =
        lb_round_up(b->at.n, lb_turn_band(&b->coded)) / STRIP;
    const int64_t each = lb_ceil_div(depth * places, strips);
    const int64_t first = j / STRIP * each, line = first % depth;
    if (lines <= line || first / depth >= places)
        return (lb_dottab_ahead){0, 0, 0};
    const uintptr_t from =
        (uintptr_t)b->coded.bytes +
        (uintptr_t)((k + depth + line) * b->coded.byte_step) +
        (uintptr_t)(b->at.j0 / 8 + first / depth * LINE);
    return (lb_dottab_ahead){from, lb_min_i64(each, lines - line),
                             b->coded.byte_step};
}

/* What panel `at` of strip j asks for: its share of the strip after it. */
static lb_dottab_ahead ahead_of(const block *b, int64_t j, int64_t at,
                                int64_t panels)
{
    const int64_t step = b->coded.byte_step;
    const int64_t lines = lb_ceil_div(STRIP * step, LINE);
    const int64_t from = lines * at / panels, to = lines * (at + 1) / panels;
    const int64_t next = (b->at.j0 + j + STRIP) * step + from * LINE;
    if (!in_one_piece(b)) return (lb_dottab_ahead){0, 0, 0};
    return (lb_dottab_ahead){(uintptr_t)b->coded.bytes + (uintptr_t)next,
                             to - from, LINE};
}

/* Strip j of w, in a chunk. */
static void run_strip(block *b, int64_t j, int64_t k, int64_t panels)
{
    const grid *g = b->g;
    uint8_t *const codes = (uint8_t *)b->scratch + g->codes_at;
    for (int64_t at = 0; at < panels; at++) {
        const int64_t here = k + at * g->depth;
        uint8_t *const turned = g->along ? codes : codes + j / STRIP * TURNED;
        if (g->along) turn_strip(b, j, here, turned);
        g->kernel->dots(
            (int)b->at.m, lb_ceil_div(depth_at(b, here), 8), tables_at(b, at),
            turned, (float)g->p.slope, &b->head[at], b->ws + j, here == 0,
            g->along ? ahead_of(b, j, at, panels) : ahead_across(b, j, here),
            b->c + j, g->wide);
    }
}

static void run_chunk(block *b, int64_t k, int64_t panels)
{
    const int64_t wide = lb_round_up(b->at.n, lb_turn_band(&b->coded));
    for (int64_t at = 0; at < panels; at++)
        make_tables(b, k + at * b->g->depth, tables_at(b, at), &b->head[at]);
    if (!b->g->along)
        lb_turn_across(&b->turning, 0, b->at.n, k, depth_at(b, k),
                       (uint8_t *)b->scratch + b->g->codes_at, TURNED);
    for (int64_t j = 0; j < wide; j += STRIP)
        run_strip(b, j, k, panels);
}

/* The scales of rows of w; zeros for those that are not. */
static void read_scales(block *b)
{
    const grid *g = b->g;
    lb_scales *const s = &b->scales;
    lb_scales_room(g->p.cpu, &b->coded, KC, g->b.nb, b->p->k, s,
                   b->scratch + g->weights_at);
    lb_scales_rows(s, b->at.j0, b->at.n, b->p->k);
    for (int64_t j = 0; j < b->at.n; j++)
        s->row[j] = s->row[j] * g->p.unit * LB_INT_DOWN;
    lb_turn_strips(&b->coded, b->at.n, s->row, g->wide, b->ws);
}

static void put_block(const block *b)
{
    const grid *g = b->g;
    float *const sorted = (float *)(void *)(b->scratch + g->sorted_at);
    for (int64_t i = 0; i < b->at.m && !g->along; i++)
        lb_turn_sort(&b->coded, b->at.n, b->c + i * g->wide,
                     sorted + i * g->wide);
    lb_weights_put(b->p, &g->w, b->work, b->at.batch, b->at.i0, b->at.m,
                   b->at.j0, b->at.n, g->along ? b->c : sorted, g->wide,
                   (float *)(void *)(b->scratch + g->put_at));
}

static void run_block(const lb_product *p, const lb_work *work, const grid *g,
                      lb_unit at)
{
    block b = {
        .p = p,
        .g = g,
        .work = work,
        .coded = lb_coded_at(&g->w.coded, g->w.w, at.batch),
        .at = at,
        .scratch = work->scratch,
    };
    b.rows = lb_row_slab_of(g->w.x, work->call->cpu, at.batch, at.i0 + at.m,
                            b.scratch + g->slab_at);
    b.turning = (lb_turning){g->turns, b.coded, b.at.j0, b.at.n,
                             (uint8_t *)b.scratch + g->lines_at};
    b.c = (float *)(void *)(b.scratch + g->c_at);
    b.ws = (float *)(void *)(b.scratch + g->ws_at);
    read_scales(&b);
    const int64_t panels = lb_ceil_div(p->k, g->depth);
    for (int64_t k = 0; k < panels; k += g->chunk)
        run_chunk(&b, k * g->depth, lb_min_i64(g->chunk, panels - k));
    put_block(&b);
}

static void run(const lb_product *p, const lb_work *w)
{
    const grid *const g = p->grid;
    for (int64_t u = w->lo; u < w->hi; u++)
        run_block(p, w, g, lb_units_at(&g->b, &g->w, u));
}

const lb_weights_way lb_coded_table = {fits, make_plan, run};
