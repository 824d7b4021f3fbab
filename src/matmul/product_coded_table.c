/* product_coded_table.c - whole numbers times packed bits, by tables: a row or
 * two (product_coded_pairs.c is for more), the depth along memory
 * (product_coded_table_across.c: across it).
 *
 *   phase 0   tables of x; units are panels of the depth
 *   phase 1   units are rows of w:
 *
 *     for each chunk of the depth        many panels, whose tables are in L2
 *       for each strip of w              32 rows
 *         for each panel of the chunk    codes are turned, and looked up
 *
 * Panels are added to the result one after the other, which fixes the order
 * for any grid of units.
 */
#include "matmul/coded_tables.h"
#include "matmul/coded_turn.h"
#include "matmul/coded_units.h"

enum {
    MOST_N = 2048,      /* rows of w in a unit */
    GRAIN = 128,        /* units begin at multiples of this */
    SHARES = 8,         /* units for each thread, */
    MIN_UNIT = 1 << 20, /* if so many multiplications remain to each */
    CHUNK = 16,         /* panels */
    LINE = 64,          /* bytes of a cache */
    KC = LB_DOTTAB_KC,
    STRIP = LB_DOTTAB_COLUMNS
};

typedef struct {
    lb_weights w;
    const lb_dottab *kernel;
    const lb_dotturn *turns;
    lb_tables x;
    lb_units b;
    int64_t wide;  /* g.b.nb in whole strips */
    int64_t chunk; /* panels */
    /* Scratch, in bytes; turned codes are at 0. */
    size_t lines_at, c_at, ws_at, put_at, scales_at, bytes;
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

/* ---- the grid ------------------------------------------------------------ */

static bool make_grid(const lb_product *p, const lb_weights *w,
                      const lb_call *c, grid *g)
{
    const lb_cut cut = {
        .most_m = w->m,
        .most_n = MOST_N,
        .least_m = w->m,
        .grain = GRAIN,
        .shares = SHARES,
        .work = MIN_UNIT,
    };
    const int64_t f = sizeof(float);
    g->w = *w;
    if (!lb_tables_of(p, w, c->cpu, &g->x)) return false;
    g->kernel = lb_dottab_for(c->cpu);
    g->turns = lb_dotturn_for(c->cpu);
    g->b = lb_units_of(p, c, &g->w, &cut);
    g->wide = lb_round_up(g->b.nb, STRIP);
    g->chunk = lb_min_i64(CHUNK, g->x.panels);
    size_t used = 0;
    lb_carve(NULL, &used, STRIP * KC / 8);
    g->lines_at = used;
    lb_carve(NULL, &used, lb_turn_room(&g->w.coded, KC));
    g->c_at = used;
    lb_carve(NULL, &used, w->m * g->wide * f);
    g->ws_at = used;
    lb_carve(NULL, &used, g->wide * f);
    g->put_at = used;
    lb_carve(NULL, &used, w->swapped ? w->m * g->b.nb * f : 0);
    g->scales_at = used;
    used += lb_tables_scales_room(&g->x, &g->w.coded, g->b.nb);
    g->bytes = used > g->x.room ? used : g->x.room;
    return true;
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    if (!make_grid(p, w, c, g)) return;
    plan->phases = 2;
    plan->shared = (size_t)p->batch * g->x.all;
    plan->per_thread = g->bytes;
    plan->units[0] = p->batch * g->x.panels;
    plan->units[1] = g->b.n;
    plan->kernel = g->kernel->name;
    p->tile.kc = KC;
}

/* ---- a unit -------------------------------------------------------------- */

typedef struct {
    const lb_product *p;
    const grid *g;
    lb_coded coded;
    lb_unit at;
    lb_turning turning;
    char *tables;
    uint8_t *turned;
    float *c, *ws;
} block;

/* Whether a strip is one piece of memory that is read once, so that the next
 * one can be asked for in the order of memory, which suits DRAM best. */
static bool in_one_piece(const block *b)
{
    const int64_t row = lb_ceil_div(b->p->k, 8), step = b->coded.byte_step;
    return b->g->x.panels <= b->g->chunk && step >= row && step < row + LINE;
}

/* What is asked for while a strip is turned: what comes after it. */
static void turn_strip(const block *b, int64_t j, int64_t panel, int64_t end)
{
    const int64_t depth = lb_tables_depth(&b->g->x, panel);
    const int64_t done = panel % b->g->chunk * KC / 8;
    const int64_t ahead =
        panel + 1 == end ? STRIP * b->coded.byte_step - done : depth / 8;
    lb_turn_along(&b->turning, j, panel * KC, depth,
                  in_one_piece(b) ? 0 : ahead, b->turned);
}

/* What panel `at` of strip j asks for: its share of the strip after it. */
static lb_dottab_ahead ahead_of(const block *b, int64_t j, int64_t at)
{
    const int64_t step = b->coded.byte_step, panels = b->g->x.panels;
    const int64_t lines = lb_ceil_div(STRIP * step, LINE);
    const int64_t from = lines * at / panels, to = lines * (at + 1) / panels;
    const int64_t next = (b->at.j0 + j + STRIP) * step + from * LINE;
    if (!in_one_piece(b)) return (lb_dottab_ahead){0, 0, 0};
    return (lb_dottab_ahead){(uintptr_t)b->coded.bytes + (uintptr_t)next,
                             to - from, LINE};
}

/* Strip j of w, panels [from, end). */
static void run_strip(const block *b, int64_t j, int64_t from, int64_t end)
{
    const grid *g = b->g;
    for (int64_t at = from; at < end; at++) {
        turn_strip(b, j, at, end);
        g->kernel->dots(
            (int)b->at.m, lb_ceil_div(lb_tables_depth(&g->x, at), 8),
            lb_tables_at(&g->x, b->tables, at), b->turned, (float)g->x.p.slope,
            lb_tables_head(&g->x, b->tables, at), b->ws + j, at == 0,
            ahead_of(b, j, at), b->c + j, g->wide);
    }
}

static char *tables_of(const grid *g, const lb_work *work, int64_t batch)
{
    return (char *)work->shared + (size_t)batch * g->x.all;
}

static void run_unit(const lb_product *p, const lb_work *work, const grid *g,
                     lb_unit at)
{
    char *const scratch = work->scratch;
    block b = {
        .p = p,
        .g = g,
        .coded = lb_coded_at(&g->w.coded, g->w.w, at.batch),
        .at = at,
        .tables = tables_of(g, work, at.batch),
        .turned = work->scratch,
        .c = (float *)(void *)(scratch + g->c_at),
        .ws = (float *)(void *)(scratch + g->ws_at),
    };
    b.turning = (lb_turning){g->turns, b.coded, at.j0, at.n,
                             (uint8_t *)scratch + g->lines_at};
    lb_tables_scales(&g->x, &b.coded, at.j0, at.n, g->wide, b.ws,
                     scratch + g->scales_at);
    const int64_t panels = g->x.panels;
    for (int64_t k = 0; k < panels; k += g->chunk)
        for (int64_t j = 0; j < at.n; j += STRIP)
            run_strip(&b, j, k, lb_min_i64(k + g->chunk, panels));
    lb_weights_put(p, &g->w, work, at.batch, at.i0, at.m, at.j0, at.n, b.c,
                   g->wide, (float *)(void *)(scratch + g->put_at));
}

static void run(const lb_product *p, const lb_work *w)
{
    const grid *const g = p->grid;
    for (int64_t u = w->lo; u < w->hi; u++) {
        if (w->phase == 0) {
            const int64_t batch = u / g->x.panels, panel = u % g->x.panels;
            lb_tables_make(&g->x, &g->w, batch, panel, panel + 1,
                           tables_of(g, w, batch), w->scratch);
        } else {
            run_unit(p, w, g, lb_units_at(&g->b, &g->w, u));
        }
    }
}

const lb_algorithm lb_coded_table = {"lookup", make_plan, run};
