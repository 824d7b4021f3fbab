/* product_coded_table.c - whole numbers times packed bits, by tables: a row or
 * two where the depth runs along memory (product_coded_pairs.c is for more),
 * any number of rows where it runs across.
 *
 * A unit is one block of the result, up to 64 rows of x by 2048 of w:
 *
 *   for each chunk of the depth        along many panels, across one
 *     turn the codes of the block      along strip by strip, below
 *     for each pair of rows of x       its tables, in L1
 *       for each strip of w            32 rows
 *         for each panel of the chunk
 *
 * Panels are added to the result one after the other, which fixes the order
 * for any grid of blocks. Where the depth runs across memory, strips have every
 * eighth of 256 rows of w, which are brought to order in the end.
 */
#include <string.h>

#include "kernels/dottab.h"
#include "prims/coded_units.h"
#include "prims/int_panels.h"

enum {
    MOST_M = 64,        /* rows of x in a block */
    MOST_N = 2048,      /* rows of w, which share the tables of x */
    GRAIN = 128,        /* blocks of w begin at multiples of this */
    SHARES = 2,         /* blocks for each thread, */
    MIN_UNIT = 1 << 22, /* if so many multiplications remain to each */
    LEAST = 64,         /* rows of w, and depth, that are worth tables */
    MANY = 32,          /* rows of x, that bytes are worth */
    CHUNK = 16,         /* panels */
    LINE = 64,          /* bytes of a cache */
    MR = LB_DOTTAB_MR,
    KC = LB_DOTTAB_KC,
    STRIP = LB_DOTTAB_COLUMNS,
    BYTES = KC / 8,                      /* of codes in a panel, */
    TURNED = STRIP * BYTES + LINE,       /* of a strip, and some more: else
                                          * strips would fall together, */
    ACROSS = 8 * LB_DOTTAB_ACROSS,       /* rows of w in a line, across, */
    TABLES = 2 * BYTES * LB_DOTTAB_TABLE /* and of the tables of a row */
};

typedef struct {
    lb_weights w;
    const lb_dottab *kernel;
    lb_int_panels p;
    lb_units b;
    bool along;    /* the depth runs so: codes are turned when wanted */
    int64_t wide;  /* g.b.nb in whole strips */
    int64_t chunk; /* panels */
    /* Scratch, in bytes; tables are at 0. */
    size_t codes_at, lines_at, c_at, ws_at, rows_at, slab_at, put_at,
        weights_at, bytes;
} grid;

/* Of many rows of x, bytes across memory are as fast. */
static bool bytes_do(const lb_product *p, const lb_weights *w)
{
    return p->precision == LB_PRECISION_FASTEST && !w->coded.along &&
           w->m > MANY;
}

static bool fits(const lb_product *p, const lb_weights *w, const lb_cpu *cpu)
{
    lb_int_panels q;
    return !bytes_do(p, w) && p->precision >= LB_PRECISION_FAST &&
           lb_dottab_for(cpu) && w->coded.bits == 1 &&
           (w->m <= MR || !w->coded.along) && w->n >= LEAST && p->k >= LEAST &&
           lb_int_panels_of(cpu, &w->coded, w->m, &q) && q.line && !q.fine &&
           !q.scales.in_w;
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
    g->along = g->w.coded.along;
    /* Of few rows of x memory decides, which is faster along longer lines. */
    const bool few = !g->along && g->w.m <= MR;
    const lb_cut cut = {
        .most_m = MOST_M,
        .most_n = MOST_N,
        .least_m = MOST_M,
        .grain = g->along ? GRAIN : ACROSS,
        .shares = few ? 1 : SHARES,
        .work = MIN_UNIT,
    };
    g->b = lb_units_of(p, c, &g->w, &cut);
    g->wide = lb_round_up(g->b.nb, g->along ? STRIP : ACROSS);
    g->chunk = g->along ? lb_min_i64(CHUNK, lb_ceil_div(p->k, KC)) : 1;
    const int64_t f = sizeof(float);
    const int64_t strips = g->along ? 1 : g->wide / STRIP;
    const int64_t rest = g->along ? STRIP * BYTES : LB_DOTTAB_ACROSS * KC;
    const bool puts = g->w.swapped || !g->along;
    lb_scales s;
    g->codes_at = add(0, g->chunk * MR * TABLES);
    g->lines_at = add(g->codes_at, strips * TURNED);
    g->c_at = add(g->lines_at, rest);
    g->ws_at = add(g->c_at, g->b.mb * g->wide * f);
    g->rows_at = add(g->ws_at, g->wide * f);
    g->slab_at = add(g->rows_at, (MR + 2) * KC * f);
    g->put_at = add(g->slab_at, lb_row_slab_floats(g->w.x, KC) * f);
    g->weights_at = add(g->put_at, puts ? 2 * g->b.mb * g->wide * f : 0);
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
    lb_scales scales;
    char *scratch;
    float *c, *ws;
    lb_dottab_head head[CHUNK]; /* of the pair, in each panel */
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
    return b->g->along && b->p->k <= b->g->chunk * KC && step >= row &&
           step < row + LINE;
}

/* What is not whole is copied. Rows of w that are not have codes of no
 * meaning. */
static void turn_strip(const block *b, int64_t j, int64_t k, uint8_t *to)
{
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
        return;
    }
    uint8_t *const own = (uint8_t *)b->scratch + b->g->lines_at;
    memset(own, 0, (size_t)STRIP * BYTES);
    for (int64_t r = 0; r < lb_min_i64(rows, STRIP); r++)
        memcpy(own + r * BYTES, from + r * step, (size_t)bytes);
    b->g->kernel->turn(own, BYTES, lb_round_up(bytes, LB_DOTTAB_BYTES), 0, to);
}

/* Across: `wide` times ACROSS rows of w from j on, and so many lines from k on.
 * What is not whole is copied. */
static void turn_some(const block *b, int64_t j, int64_t wide, int64_t k,
                      int64_t lines)
{
    const lb_dottab *const kernel = b->g->kernel;
    const int64_t step = b->coded.byte_step, done = k % KC / 8;
    const int64_t bytes = lb_coded_line_bytes(&b->coded, b->n - j);
    const uint8_t *const from = lb_coded_codes(&b->coded, k, b->j0 + j);
    uint8_t *const to = (uint8_t *)b->scratch + b->g->codes_at +
                        j / STRIP * TURNED + done * STRIP;
    if (bytes >= wide * LB_DOTTAB_ACROSS && lines % LB_DOTTAB_LINES == 0) {
        kernel->across(from, step, lines / LB_DOTTAB_LINES, wide, to, TURNED);
        return;
    }
    uint8_t *const own = (uint8_t *)b->scratch + b->g->lines_at;
    for (int64_t w = 0; w < wide; w++) {
        const int64_t at = w * LB_DOTTAB_ACROSS;
        const int64_t some = lb_min_i64(LB_DOTTAB_ACROSS, bytes - at);
        memset(own, 0, (size_t)LB_DOTTAB_ACROSS * KC);
        for (int64_t l = 0; l < lines; l++)
            memcpy(own + l * LB_DOTTAB_ACROSS, from + l * step + at,
                   (size_t)some);
        kernel->across(own, LB_DOTTAB_ACROSS,
                       lb_ceil_div(lines, LB_DOTTAB_LINES), 1,
                       to + w * 8 * TURNED, TURNED);
    }
}

/* All of the block's, in a panel. */
static void turn_across(const block *b, int64_t k)
{
    const int64_t n = depth_at(b, k), odd = n % LB_DOTTAB_LINES;
    const int64_t wide = b->n / ACROSS, whole = wide * ACROSS;
    if (wide) turn_some(b, 0, wide, k, n - odd);
    if (b->n > whole) turn_some(b, whole, 1, k, n - odd);
    if (odd) turn_some(b, 0, lb_ceil_div(b->n, ACROSS), k + n - odd, odd);
}

/* Which row of w is at a place of the block. */
static int64_t row_at(const block *b, int64_t place)
{
    const int64_t strip = place / STRIP, bit = strip % 8;
    if (b->g->along) return place;
    return strip / 8 * ACROSS + place % STRIP * 8 +
           (b->coded.high_first ? 7 - bit : bit);
}

/* Rows [i, i + rows) of x from k on. */
static void make_tables(block *b, int64_t i, int rows, int64_t k, uint8_t *to,
                        lb_dottab_head *head)
{
    const grid *g = b->g;
    const int64_t n = depth_at(b, k);
    float *const tmp = (float *)(void *)(b->scratch + g->rows_at);
    float *const row = tmp + KC;
    const lb_block from =
        lb_row_slab_get(&b->rows, b->i0 + i, rows, k, n, row + KC);
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
    const int64_t lines = b->p->k - k - KC < KC ? b->p->k - k - KC : KC;
    const int64_t places =
        lb_ceil_div(lb_coded_line_bytes(&b->coded, b->n), LINE);
    const int64_t strips = lb_ceil_div(b->n, ACROSS) * 8;
    const int64_t each = lb_ceil_div(KC * places, strips);
    const int64_t first = j / STRIP * each, line = first % KC;
    if (b->g->w.m > MR || lines <= line || first / KC >= places)
        return (lb_dottab_ahead){0, 0, 0};
    const uintptr_t from = (uintptr_t)b->coded.bytes +
                           (uintptr_t)((k + KC + line) * b->coded.byte_step) +
                           (uintptr_t)(b->j0 / 8 + first / KC * LINE);
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
    const int64_t next = (b->j0 + j + STRIP) * step + from * LINE;
    if (!in_one_piece(b)) return (lb_dottab_ahead){0, 0, 0};
    return (lb_dottab_ahead){(uintptr_t)b->coded.bytes + (uintptr_t)next,
                             to - from, LINE};
}

/* A pair of rows of x with strip j of w, in a chunk. */
static void run_strip(block *b, int64_t i, int rows, int64_t j, int64_t k,
                      int64_t panels)
{
    const grid *g = b->g;
    uint8_t *const codes = (uint8_t *)b->scratch + g->codes_at;
    for (int64_t at = 0; at < panels; at++) {
        const int64_t here = k + at * KC;
        uint8_t *const turned = g->along ? codes : codes + j / STRIP * TURNED;
        if (g->along) turn_strip(b, j, here, turned);
        g->kernel->dots(
            rows, lb_ceil_div(depth_at(b, here), 8), tables_at(b, at), turned,
            (float)g->p.slope, &b->head[at], b->ws + j, here == 0,
            g->along ? ahead_of(b, j, at, panels) : ahead_across(b, j, here),
            b->c + i * g->wide + j, g->wide);
    }
}

static void run_chunk(block *b, int64_t k, int64_t panels)
{
    const int64_t pairs = lb_ceil_div(b->m, MR);
    const int64_t wide =
        lb_round_up(b->n, b->g->along ? STRIP : (int64_t)ACROSS);
    if (!b->g->along) turn_across(b, k);
    for (int64_t pair = 0; pair < pairs; pair++) {
        const int64_t i = lb_group_row(b->m, pairs, pair);
        const int rows = (int)(lb_group_row(b->m, pairs, pair + 1) - i);
        for (int64_t at = 0; at < panels; at++)
            make_tables(b, i, rows, k + at * KC, tables_at(b, at),
                        &b->head[at]);
        for (int64_t j = 0; j < wide; j += STRIP)
            run_strip(b, i, rows, j, k, panels);
    }
}

/* The scales of rows of w; zeros for those that are not. */
static void read_scales(block *b)
{
    const grid *g = b->g;
    lb_scales *const s = &b->scales;
    lb_scales_room(g->p.cpu, &b->coded, KC, g->b.nb, b->p->k, s,
                   b->scratch + g->weights_at);
    lb_scales_rows(s, b->j0, b->n, b->p->k);
    for (int64_t j = 0; j < g->wide; j++) {
        const int64_t row = row_at(b, j);
        b->ws[j] = row < b->n ? s->row[row] * g->p.unit * LB_INT_DOWN : 0;
    }
}

static void put_block(const block *b)
{
    const grid *g = b->g;
    float *const room = (float *)(void *)(b->scratch + g->put_at);
    const float *c = b->c;
    if (!g->along) {
        const int64_t wide = lb_round_up(b->n, (int64_t)ACROSS);
        for (int64_t j = 0; j < wide; j++)
            for (int64_t i = 0, row = row_at(b, j); i < b->m; i++)
                room[i * g->wide + row] = b->c[i * g->wide + j];
        c = room;
    }
    lb_weights_put(b->p, &g->w, b->work, b->batch, b->i0, b->m, b->j0, b->n, c,
                   g->wide, room + b->m * g->wide);
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
    put_block(&b);
}

static void run(const lb_product *p, const lb_work *w)
{
    grid g;
    if (!make_grid(p, w->call, &g)) return;
    for (int64_t u = w->lo; u < w->hi; u++)
        run_block(p, w, &g, lb_units_at(&g.b, &g.w, u));
}

const lb_weights_way lb_coded_table = {fits, make_plan, run};
