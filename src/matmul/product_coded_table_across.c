/* product_coded_table_across.c - whole numbers times packed bits, by tables: a
 * row or two, where the depth runs across memory: x @ W, W (in, out).
 *
 *   phase 0   the tables of x; the scales of rows of w
 *   phase 1   units are panels of the depth, by some rows of w: codes are
 *             turned, and looked up strip by strip
 *   phase 2   units are rows of w: panels are added, one after the other,
 *             which fixes the order for any number of threads
 *
 * Units follow each other along the lines of a panel, and each asks for what
 * the next one reads. They are many, for threads that are not equally fast.
 * What they find lies in the order of strips (coded_turn.h) up to the end.
 */
#include <string.h>

#include "matmul/coded_tables.h"
#include "matmul/coded_turn.h"

enum {
    DEPTH = LB_DOTTAB_KC, /* of a panel */
    LINE = 64,            /* bytes of a cache, */
    MOST_N = 8 * LINE,    /* rows of w in a unit, */
    PIECE = 1024,         /* that are added up at a time, */
    SCALED = 4096,        /* and whose scales are read */
    BAND = 256,           /* that are turned at once, and sorted */
    STRIP = LB_DOTTAB_COLUMNS,
    TURNED = STRIP * DEPTH / 8 + LINE, /* bytes of a strip, and some more: else
                                        * strips would fall together */
    F = sizeof(float)
};

typedef struct {
    lb_weights w;
    const lb_dottab *kernel;
    const lb_dotturn *turns;
    lb_tables x;
    int64_t wide;   /* rows of w, in whole bands, */
    int64_t bn;     /* units of a panel, */
    int64_t scaled; /* and of scales */
    int64_t ld;     /* floats from row to row of sums */
    /* In bytes. Shared, of a batch: tables at 0. */
    size_t ws_at, sums_at, shared;
    /* Scratch: turned codes at 0. */
    size_t lines_at, bytes;
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");
_Static_assert(BAND == LB_DOTTURN_WIDE * 8, "these are bits");
_Static_assert(MOST_N % BAND == 0 && PIECE % BAND == 0 && SCALED % BAND == 0,
               "bands are whole");

/* ---- the grid ------------------------------------------------------------ */

size_t lb_tables_across_bytes(const lb_weights *w, const lb_tables *t)
{
    size_t bytes = t->all;
    const int64_t wide = lb_round_up(w->n, BAND);
    lb_carve(NULL, &bytes, wide * F);
    lb_carve(NULL, &bytes, t->panels * w->m * lb_put_apart(wide) * F);
    return bytes;
}

static void place_shared(grid *g)
{
    g->ws_at = g->shared = g->x.all;
    lb_carve(NULL, &g->shared, g->wide * F);
    g->sums_at = g->shared;
    lb_carve(NULL, &g->shared, g->x.panels * g->w.m * g->ld * F);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Each phase has its own. */
static void place_scratch(grid *g)
{
    const lb_coded *const c = &g->w.coded;
    size_t used = 0;
    lb_carve(NULL, &used, MOST_N / STRIP * TURNED);
    g->lines_at = used;
    lb_carve(NULL, &used, lb_turn_room(c, DEPTH));
    g->bytes = larger(used, g->x.room);
    g->bytes = larger(g->bytes, lb_tables_scales_room(&g->x, c, SCALED));
    g->bytes = larger(g->bytes, (size_t)(3 * g->w.m * PIECE * F));
}

static bool make_grid(const lb_product *p, const lb_weights *w,
                      const lb_cpu *cpu, grid *g)
{
    g->w = *w;
    if (w->coded.along || !lb_tables_of(p, w, cpu, &g->x)) return false;
    g->kernel = lb_dottab_for(cpu);
    g->turns = lb_dotturn_for(cpu);
    g->wide = lb_round_up(w->n, BAND);
    g->bn = lb_ceil_div(w->n, MOST_N);
    g->scaled = lb_ceil_div(w->n, SCALED);
    g->ld = lb_put_apart(g->wide);
    place_shared(g);
    place_scratch(g);
    return true;
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    if (!make_grid(p, w, c->cpu, g)) return;
    plan->phases = 3;
    plan->shared = (size_t)p->batch * g->shared;
    plan->per_thread = g->bytes;
    plan->units[0] = p->batch * (1 + g->scaled);
    plan->units[1] = p->batch * g->x.panels * g->bn;
    plan->units[2] = p->batch * lb_ceil_div(w->n, PIECE);
    plan->kernel = g->kernel->name;
    p->tile.kc = DEPTH;
}

static char *shared_of(const grid *g, const lb_work *work, int64_t batch)
{
    return (char *)work->shared + (size_t)batch * g->shared;
}

static float *scales_of(const grid *g, const lb_work *work, int64_t batch)
{
    return (float *)(void *)(shared_of(g, work, batch) + g->ws_at);
}

/* Of row 0 in a panel. */
static float *sums_of(const grid *g, const lb_work *work, int64_t batch,
                      int64_t panel)
{
    float *const first =
        (float *)(void *)(shared_of(g, work, batch) + g->sums_at);
    return first + panel * g->w.m * g->ld;
}

/* ---- a unit -------------------------------------------------------------- */

typedef struct {
    int64_t batch, panel, j, n; /* rows of w */
} block;

static block block_of(const grid *g, int64_t unit)
{
    const int64_t panel = unit / g->bn, j = unit % g->bn * MOST_N;
    return (block){panel / g->x.panels, panel % g->x.panels, j,
                   lb_min_i64(MOST_N, g->w.n - j)};
}

/* What strip number `at` of so many asks for: its share of the next block's
 * lines. */
static lb_dottab_ahead ahead_of(const lb_coded *c, const grid *g,
                                const block *next, int64_t at, int64_t strips)
{
    const int64_t lines = lb_tables_depth(&g->x, next->panel);
    const int64_t first = lines * at / strips;
    const int64_t from =
        (next->panel * DEPTH + first) * c->byte_step + next->j / 8;
    return (lb_dottab_ahead){(uintptr_t)c->bytes + (uintptr_t)from,
                             lines * (at + 1) / strips - first, c->byte_step};
}

/* next: what this thread will read then, or NULL. */
static void run_block(const lb_work *work, const grid *g, const block *b,
                      const block *next)
{
    const lb_coded c = lb_coded_at(&g->w.coded, g->w.w, b->batch);
    const int64_t depth = lb_tables_depth(&g->x, b->panel);
    const int64_t strips = lb_round_up(b->n, BAND) / STRIP;
    char *const tables = shared_of(g, work, b->batch);
    const float *const ws = scales_of(g, work, b->batch) + b->j;
    float *const to = sums_of(g, work, b->batch, b->panel) + b->j;
    uint8_t *const codes = work->scratch;
    const lb_turning turning = {g->turns, c, b->j, b->n,
                                (uint8_t *)work->scratch + g->lines_at};
    lb_turn_across(&turning, 0, b->n, b->panel * DEPTH, depth, codes, TURNED);
    for (int64_t s = 0; s < strips; s++) {
        lb_dottab_ahead ahead = {0, 0, 0};
        if (next) ahead = ahead_of(&c, g, next, s, strips);
        g->kernel->dots((int)g->w.m, lb_ceil_div(depth, 8),
                        lb_tables_at(&g->x, tables, b->panel),
                        codes + s * TURNED, (float)g->x.p.slope,
                        lb_tables_head(&g->x, tables, b->panel), ws + s * STRIP,
                        true, ahead, to + s * STRIP, g->ld);
    }
}

/* ---- sums ---------------------------------------------------------------- */

static void add_panels(const lb_product *p, const lb_work *work, const grid *g,
                       int64_t batch, int64_t j)
{
    const int64_t n = lb_min_i64(PIECE, g->w.n - j), m = g->w.m;
    const int64_t wide = lb_min_i64(PIECE, g->wide - j);
    float *const sum = work->scratch, *const sorted = sum + m * PIECE;
    for (int64_t r = 0; r < m; r++) {
        float *const to = sum + r * PIECE;
        for (int64_t k = 0; k < g->x.panels; k++) {
            const float *from = sums_of(g, work, batch, k) + r * g->ld + j;
            if (k == 0)
                memcpy(to, from, (size_t)wide * F);
            else
                for (int64_t i = 0; i < wide; i++)
                    to[i] += from[i];
        }
        lb_turn_sort(&g->w.coded, n, to, sorted + r * PIECE);
    }
    lb_weights_put(p, &g->w, work, batch, 0, m, j, n, sorted, PIECE,
                   sorted + m * PIECE);
}

/* Tables are made by one: so are the scales of the depth that x takes. */
static void prepare(const lb_work *w, const grid *g, int64_t batch, int64_t at)
{
    const lb_coded c = lb_coded_at(&g->w.coded, g->w.w, batch);
    const int64_t j = (at - 1) * SCALED;
    if (at == 0)
        lb_tables_make(&g->x, &g->w, batch, 0, g->x.panels,
                       shared_of(g, w, batch), w->scratch);
    else
        lb_tables_scales(&g->x, &c, j, lb_min_i64(SCALED, g->w.n - j),
                         lb_min_i64(SCALED, g->wide - j),
                         scales_of(g, w, batch) + j, w->scratch);
}

static void run(const lb_product *p, const lb_work *w)
{
    const grid *const g = p->grid;
    const int64_t pieces = lb_ceil_div(g->w.n, PIECE);
    for (int64_t u = w->lo; u < w->hi; u++) {
        if (w->phase == 0) {
            prepare(w, g, u / (1 + g->scaled), u % (1 + g->scaled));
        } else if (w->phase == 1) {
            const block b = block_of(g, u), next = block_of(g, u + 1);
            const bool more = u + 1 < w->hi && next.batch == b.batch;
            run_block(w, g, &b, more ? &next : NULL);
        } else {
            add_panels(p, w, g, u / pieces, u % pieces * PIECE);
        }
    }
}

const lb_algorithm lb_coded_table_across = {"lookup", make_plan, run};
