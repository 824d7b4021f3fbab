/* product_coded_table.c - a row or two of whole numbers times packed bits, by
 * tables. (product_coded_pairs.c is for more rows.)
 *
 * A unit is one block of the result, up to 2048 rows of w:
 *
 *   for each chunk of the depth        many panels
 *     tables of x                      in L1, or L2
 *     for each strip of w              32 rows
 *       for each panel of the chunk    its codes are turned, and looked up
 *
 * Panels are added to the result one after the other, which fixes the order
 * for any grid of blocks.
 */
#include <string.h>

#include "kernels/dottab.h"
#include "prims/coded_units.h"
#include "prims/int_panels.h"

enum {
    MOST_N = 2048,      /* rows of w in a block, which share the tables of x */
    GRAIN = 128,        /* blocks of w begin at multiples of this */
    SHARES = 2,         /* blocks for each thread, */
    MIN_UNIT = 1 << 22, /* if so many multiplications remain to each */
    LEAST = 64,         /* rows of w, and depth, that are worth tables */
    CHUNK = 16,         /* panels */
    LINE = 64,          /* bytes of a cache */
    MR = LB_DOTTAB_MR,
    KC = LB_DOTTAB_KC,
    STRIP = LB_DOTTAB_COLUMNS,
    BYTES = KC / 8,                      /* of codes in a panel, */
    TURNED = STRIP * BYTES,              /* of a strip, */
    TABLES = 2 * BYTES * LB_DOTTAB_TABLE /* and of the tables of a row */
};

typedef struct {
    lb_weights w;
    const lb_dottab *kernel;
    lb_int_panels p;
    lb_units b;
    int64_t wide;  /* g.b.nb in whole strips */
    int64_t chunk; /* panels */
    /* Scratch, in bytes; tables are at 0. */
    size_t codes_at, lines_at, c_at, ws_at, rows_at, slab_at, put_at,
        weights_at, bytes;
} grid;

static bool fits(const lb_product *p, const lb_weights *w, const lb_cpu *cpu)
{
    lb_int_panels q;
    return p->precision >= LB_PRECISION_FAST && lb_dottab_for(cpu) &&
           w->m <= MR && w->coded.bits == 1 && w->coded.along &&
           w->n >= LEAST && p->k >= LEAST &&
           lb_int_panels_of(cpu, &w->coded, w->m, &q) && q.line && !q.fine &&
           !q.scales.in_x && !q.scales.in_w;
}

/* ---- the grid ------------------------------------------------------------ */

static size_t add(size_t at, int64_t bytes)
{
    return at + (size_t)lb_round_up(bytes, 64);
}

static bool make_grid(const lb_product *p, const lb_call *c, grid *g)
{
    if (!lb_weights_of(p, c->cpu, &g->w) ||
        !lb_int_panels_of(c->cpu, &g->w.coded, g->w.m, &g->p))
        return false;
    g->kernel = lb_dottab_for(c->cpu);
    const lb_cut cut = {
        .most_m = MR,
        .most_n = MOST_N,
        .least_m = MR,
        .grain = GRAIN,
        .shares = SHARES,
        .work = MIN_UNIT,
    };
    g->b = lb_units_of(p, c, &g->w, &cut);
    g->wide = lb_round_up(g->b.nb, STRIP);
    g->chunk = lb_min_i64(CHUNK, lb_ceil_div(p->k, KC));
    const int64_t f = sizeof(float);
    lb_scales s;
    g->codes_at = add(0, g->chunk * MR * TABLES);
    g->lines_at = add(g->codes_at, TURNED);
    g->c_at = add(g->lines_at, STRIP * BYTES);
    g->ws_at = add(g->c_at, g->b.mb * g->wide * f);
    g->rows_at = add(g->ws_at, g->wide * f);
    g->slab_at = add(g->rows_at, (MR + 2) * KC * f);
    g->put_at = add(g->slab_at, lb_row_slab_floats(g->w.x, KC) * f);
    g->weights_at = add(g->put_at, g->w.swapped ? g->b.mb * g->b.nb * f : 0);
    g->bytes = g->weights_at +
               lb_scales_room(c->cpu, &g->w.coded, KC, g->b.nb, p->k, &s, NULL);
    return true;
}

static void make_plan(const lb_product *p, const lb_call *c, lb_plan *plan)
{
    grid g;
    if (!make_grid(p, c, &g)) return;
    plan->per_thread = g.bytes;
    plan->units[0] = g.b.n;
    plan->kernel = g.kernel->name;
}

/* ---- a block ------------------------------------------------------------- */

typedef struct {
    const lb_product *p;
    const grid *g;
    const lb_work *work;
    lb_coded coded;
    int64_t batch, i0, m, j0, n;
    lb_row_slab rows;
    char *scratch;
    float *c, *ws;
    lb_dottab_head head[CHUNK]; /* of each panel */
} block;

static int64_t depth_at(const block *b, int64_t k)
{
    return lb_min_i64(KC, b->p->k - k);
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
    return b->p->k <= b->g->chunk * KC && step >= row && step < row + LINE;
}

/* What is not whole is copied. Rows of w that are not have codes of no
 * meaning. */
static const uint8_t *turn_strip(const block *b, int64_t j, int64_t k)
{
    uint8_t *const to = (uint8_t *)b->scratch + b->g->codes_at;
    const int64_t bytes = lb_ceil_div(depth_at(b, k), 8);
    const int64_t step = b->coded.byte_step, rows = b->n - j;
    const uint8_t *from = b->coded.bytes + (b->j0 + j) * step + k / 8;
    if (bytes % LB_DOTTAB_BYTES == 0 && rows >= STRIP) {
        const int64_t in_chunk = k % (b->g->chunk * KC);
        const bool last =
            in_chunk + KC == b->g->chunk * KC || k + KC >= b->p->k;
        int64_t ahead = last ? STRIP * step - in_chunk / 8 : bytes;
        if (in_one_piece(b)) ahead = 0;
        b->g->kernel->turn(from, step, bytes, (uintptr_t)ahead, to);
        return to;
    }
    uint8_t *const own = (uint8_t *)b->scratch + b->g->lines_at;
    memset(own, 0, (size_t)STRIP * BYTES);
    for (int64_t r = 0; r < lb_min_i64(rows, STRIP); r++)
        memcpy(own + r * BYTES, from + r * step, (size_t)bytes);
    b->g->kernel->turn(own, BYTES, lb_round_up(bytes, LB_DOTTAB_BYTES), 0, to);
    return to;
}

/* The rows of x from k on. */
static void make_tables(block *b, int64_t k, uint8_t *to, lb_dottab_head *head)
{
    const grid *g = b->g;
    const int rows = (int)b->m;
    const int64_t n = depth_at(b, k);
    float *const tmp = (float *)(void *)(b->scratch + g->rows_at);
    float *const row = tmp + KC;
    const lb_block from =
        lb_row_slab_get(&b->rows, b->i0, rows, k, n, row + KC);
    for (int r = 0; r < rows; r++) {
        const float *x = (const float *)from.p + r * from.rs;
        for (int64_t e = 0; e < n && from.ks != 1; e++)
            row[e] = x[e * from.ks];
        const lb_int_row whole = lb_int_row_of(
            g->p.kernel->largest, (lb_int_bound){LB_DOTTAB_MOST_X, 0}, n,
            from.ks == 1 ? x : row, tmp);
        int32_t sum, low;
        g->kernel->tables(n, whole.x, whole.factor, b->coded.high_first,
                          to + (ptrdiff_t)r * LB_DOTTAB_TABLE,
                          rows * LB_DOTTAB_TABLE, &sum, &low);
        head->scale[r] = whole.scale;
        head->base[r] =
            (float)(g->p.least * (int64_t)sum + g->p.slope * (int64_t)low);
    }
}

/* What panel `at` of strip j asks for: its share of the strip after it. */
static lb_dottab_ahead ahead_of(const block *b, int64_t j, int64_t at,
                                int64_t panels)
{
    const int64_t step = b->coded.byte_step;
    const int64_t lines = lb_ceil_div(STRIP * step, LINE);
    const int64_t from = lines * at / panels, to = lines * (at + 1) / panels;
    const int64_t next = (b->j0 + j + STRIP) * step + from * LINE;
    if (!in_one_piece(b)) return (lb_dottab_ahead){0, 0};
    return (lb_dottab_ahead){(uintptr_t)b->coded.bytes + (uintptr_t)next,
                             to - from};
}

static void run_strip(block *b, int64_t j, int64_t k, int64_t panels)
{
    const grid *g = b->g;
    for (int64_t at = 0; at < panels; at++) {
        const int64_t here = k + at * KC;
        g->kernel->dots((int)b->m, lb_ceil_div(depth_at(b, here), 8),
                        tables_at(b, at), turn_strip(b, j, here),
                        (float)g->p.slope, &b->head[at], b->ws + j, here == 0,
                        ahead_of(b, j, at, panels), b->c + j, g->wide);
    }
}

static void run_chunk(block *b, int64_t k, int64_t panels)
{
    for (int64_t at = 0; at < panels; at++)
        make_tables(b, k + at * KC, tables_at(b, at), &b->head[at]);
    for (int64_t j = 0; j < b->n; j += STRIP)
        run_strip(b, j, k, panels);
}

/* The scales of rows of w; zeros for those that are not. */
static void read_scales(block *b)
{
    const grid *g = b->g;
    lb_scales s;
    lb_scales_room(g->p.cpu, &b->coded, KC, g->b.nb, b->p->k, &s,
                   b->scratch + g->weights_at);
    lb_scales_rows(&s, b->j0, b->n, b->p->k);
    for (int64_t j = 0; j < g->wide; j++)
        b->ws[j] = j < b->n ? s.row[j] * g->p.unit * LB_INT_DOWN : 0;
}

static void run_block(const lb_product *p, const lb_work *work, const grid *g,
                      lb_unit at)
{
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
        .scratch = work->scratch,
    };
    b.rows = lb_row_slab_of(g->w.x, work->call->cpu, at.batch, at.i0 + at.m,
                            b.scratch + g->slab_at);
    b.c = (float *)(void *)(b.scratch + g->c_at);
    b.ws = (float *)(void *)(b.scratch + g->ws_at);
    read_scales(&b);
    const int64_t panels = lb_ceil_div(p->k, KC);
    for (int64_t k = 0; k < panels; k += g->chunk)
        run_chunk(&b, k * KC, lb_min_i64(g->chunk, panels - k));
    lb_weights_put(p, &g->w, work, b.batch, b.i0, b.m, b.j0, b.n, b.c, g->wide,
                   (float *)(void *)(b.scratch + g->put_at));
}

static void run(const lb_product *p, const lb_work *w)
{
    grid g;
    if (!make_grid(p, w->call, &g)) return;
    for (int64_t u = w->lo; u < w->hi; u++)
        run_block(p, w, &g, lb_units_at(&g.b, &g.w, u));
}

const lb_weights_way lb_coded_table = {fits, make_plan, run};
