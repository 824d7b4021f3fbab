/* product_coded_across.c - f32 products of some rows with codes whose depth
 * runs from line to line: x @ W, W (in, out).
 *
 *   phase 0   x is packed for the tiles of kernels/gemm.h; units are panels of
 *             the depth
 *   phase 1   units are columns:
 *
 *     for each panel of the depth
 *       for each 16 or 32 columns      decoded to L1, which tiles read
 *         for each group of rows of x
 *
 * Lines lie far apart, and at distances that are bad for caches: so no more of
 * them are read at a time than a panel has, each one on from where it was left,
 * and what comes next is asked for. Panels are added to the result one after
 * the other, which fixes the order of a sum for any grid of units.
 */
#include <string.h>

#include "kernels/gemm.h"
#include "kernels/outerf32.h"
#include "matmul/coded_units.h"

enum {
    MOST_N = 512,       /* columns of a unit, which begin */
    GRAIN = 64,         /* at multiples of this */
    MOST = 1 << 14,     /* and results, which stay in L2 */
    SHARES = 4,         /* units for each thread, */
    MIN_UNIT = 1 << 20, /* if so many multiplications remain to each */
    LINE = 64,          /* bytes of a line of a cache */
    F = sizeof(float)
};

typedef struct {
    lb_weights w;
    const lb_outerf32 *panels;
    const lb_gemm_kernel *tiles;
    int64_t kc;   /* depth of a panel */
    int64_t head; /* rows of x that meet codes as these are decoded */
    lb_units b;
    int64_t depths;     /* panels of a matrix */
    int64_t ld, scales; /* floats from row to row of a unit's result, and
                         * scales of a line in it */
    int64_t w_at, codes_at, scale_at,
        n; /* scratch in floats; the result is at 0 */
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

/* ---- the grid ------------------------------------------------------------ */

/* Blocks of scales in columns [j, j + n). */
static int64_t blocks_of(const lb_coded *c, int64_t j, int64_t n)
{
    const int64_t g = c->lines.g;
    return g ? (j + n - 1) / g - j / g + 1 : 1;
}

/* The height of the first of as few groups as there can be, as even as there
 * can be, where the others may be as high as a tile. */
static int64_t head_of(int64_t m, int64_t most, int64_t tile)
{
    const int64_t groups = 1 + lb_ceil_div(lb_max_i64(m - most, 0), tile);
    return lb_min_i64(most, lb_ceil_div(m, groups));
}

static void make_grid(const lb_product *p, const lb_weights *w,
                      const lb_call *c, grid *g)
{
    g->w = *w;
    const lb_coded *codes = &g->w.coded;
    g->panels = lb_outerf32_for(c->cpu);
    g->tiles = lb_gemm_kernel_for(c->cpu);
    g->head = head_of(g->w.m, g->panels->mr, g->tiles->mr);
    /* Sums of fewer are no less exact than those of LB_GEMM_KC, unless there
     * are too many of them. */
    const int64_t most = (int64_t)LB_GEMM_KC * g->panels->kc;
    g->kc = p->k <= most ? g->panels->kc : LB_GEMM_KC;
    g->depths = lb_ceil_div(p->k, g->kc);
    const lb_cut cut = {
        .most_m = g->w.m,
        .most_n = lb_max_i64(lb_min_i64(MOST_N, MOST / g->w.m / GRAIN * GRAIN),
                             GRAIN),
        .least_m = g->w.m,
        .grain = GRAIN,
        .shares = SHARES,
        .work = MIN_UNIT,
    };
    g->b = lb_units_of(p, c, &g->w, &cut);
    g->ld = lb_put_apart(g->b.nb);
    g->scales = blocks_of(codes, codes->lines.g - 1, g->b.nb);
    const int64_t lines = codes->scale_step ? g->kc : 1;
    g->w_at = lb_line_floats(g->w.m * g->ld * (g->w.swapped ? 2 : 1));
    g->codes_at = g->w_at + lb_line_floats(g->panels->nr * g->kc);
    g->scale_at = g->codes_at + lb_line_floats(LINE * g->kc / F + 1);
    g->n = g->scale_at + lb_round_up(lines * g->scales, LB_OUTERF32_MAX_NR);
    g->n = lb_max_i64(g->n, lb_line_floats(g->w.m * g->kc)); /* phase 0 */
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    make_grid(p, w, c, g);
    plan->phases = 2;
    plan->shared = (size_t)(p->batch * g->w.m * p->k) * sizeof(float);
    plan->per_thread = (size_t)g->n * sizeof(float);
    plan->units[0] = p->batch * g->depths;
    plan->units[1] = g->b.n;
    plan->kernel = g->panels->name;
    p->tile = (lb_tile_sizes){g->tiles->mr, g->tiles->nr, g->kc};
}

/* ---- x ------------------------------------------------------------------- */

static float *panel_at(const lb_product *p, const grid *g, const lb_work *work,
                       int64_t batch, int64_t k)
{
    return (float *)work->shared + g->w.m * (batch * p->k + k);
}

static void pack_panel(const lb_product *p, const lb_work *work, const grid *g,
                       int64_t batch, int64_t k)
{
    const lb_source *x = g->w.x;
    const int64_t n = lb_min_i64(g->kc, p->k - k), head = g->head;
    const lb_block from =
        x->get(x, work->call->cpu, batch, 0, g->w.m, k, n, work->scratch);
    const float *const rows = from.p;
    float *const to = panel_at(p, g, work, batch, k);
    lb_gemm_pack_rows(rows, from.rs, from.ks, head, n, (int)head, to);
    lb_gemm_pack_rows(rows + head * from.rs, from.rs, from.ks, g->w.m - head, n,
                      g->tiles->mr, to + head * n);
}

/* ---- a unit -------------------------------------------------------------- */

/* A strip is LINE bytes of each line of a panel, copied together and filled up
 * with zeros. Lines lie far apart, and at distances that are bad for caches:
 * they are asked for a few at a time, while tiles of the strip before run. */
typedef struct {
    int64_t k, depth, j; /* the panel, and columns of the unit from j on */
    int64_t asked;       /* lines */
} strip;

typedef struct {
    const lb_product *p;
    const grid *g;
    const lb_work *work;
    lb_coded coded;
    lb_unit at; /* all rows of x, some columns */
    float *c;
    uint8_t *codes; /* of the strip, */
    strip now, next;
    lb_outerf32_lines lines;
} unit;

/* The strip that follows; of depth 0 if there is none. */
static strip strip_after(const unit *b, const strip *s)
{
    strip next = {.k = s->k, .j = s->j + LINE * 8 / b->coded.bits};
    if (next.j >= b->at.n) {
        next.k += s->depth;
        next.j = 0;
    }
    next.depth = lb_min_i64(b->g->kc, b->p->k - next.k);
    return next;
}

static const uint8_t *strip_line(const unit *b, const strip *s, int64_t line)
{
    const lb_coded *c = &b->coded;
    return lb_coded_codes(c, s->k + line, b->at.j0 + s->j);
}

/* The same of a line that may not be there, to be asked for. */
static uintptr_t strip_address(const unit *b, const strip *s, int64_t line)
{
    const lb_coded *c = &b->coded;
    return (uintptr_t)c->bytes + (uintptr_t)((s->k + line) * c->byte_step) +
           (uintptr_t)((b->at.j0 + s->j) * c->bits / 8);
}

static void ask(const unit *b, strip *s, int64_t lines)
{
    const int64_t end = lb_min_i64(s->asked + lines, s->depth);
    for (; s->asked < end; s->asked++)
        __builtin_prefetch(strip_line(b, s, s->asked), 0, 2);
}

static void copy_strip(unit *b)
{
    const strip *s = &b->now;
    const int64_t left = lb_ceil_div((b->at.n - s->j) * b->coded.bits, 8);
    const int64_t depth = s->depth, step = b->coded.byte_step;
    const uint8_t *from = strip_line(b, s, 0);
    uint8_t *to = b->codes;
    if (left >= LINE) {
        for (int64_t k = 0; k < depth; k++)
            memcpy(to + LINE * k, from + step * k, LINE);
        return;
    }
    for (int64_t k = 0; k < depth; k++, to += LINE) {
        memset(to, 0, LINE);
        memcpy(to, from + step * k, (size_t)left);
    }
}

/* The scales of the panel's lines, where they lie or read; those of columns
 * also up to a whole tile. */
static void aim_scales(unit *b)
{
    const lb_coded *c = &b->coded;
    const lb_cpu *cpu = b->work->call->cpu;
    const int64_t g = c->lines.g, first = g ? b->at.j0 / g : 0;
    const int64_t n = blocks_of(c, b->at.j0, b->at.n);
    const int64_t lines = c->scale_step ? b->now.depth : 1;
    float *const read = b->c + b->g->scale_at;
    lb_outerf32_lines *const w = &b->lines;
    w->scale_step = c->scale_step;
    if (c->scale && !w->each) {
        w->scale = lb_coded_scales(c, cpu, b->now.k, first, n, NULL);
        return;
    }
    w->scale = read;
    if (c->scale_step) w->scale_step = n;
    for (int64_t r = 0; r < lines; r++) {
        const float *from =
            lb_coded_scales(c, cpu, b->now.k + r, first, n, read + r * n);
        if (from != read + r * n) memcpy(read, from, (size_t)n * F);
    }
    if (w->each)
        memset(read + n, 0, (size_t)(lb_round_up(n, b->g->panels->nr) - n) * F);
}

/* All rows with nr columns from j on, codes at byte `at` of the strip, with
 * so many lines of the next one asked for at a time. */
static void run_columns(unit *b, const float *x, int64_t j, int64_t at,
                        int64_t lines)
{
    const int64_t m = b->g->w.m, ld = b->g->ld, g = b->coded.lines.g;
    const lb_outerf32 *const panels = b->g->panels;
    const int n = (int)lb_min_i64(panels->nr, b->at.n - j);
    const bool first = b->now.k == 0;
    lb_outerf32_lines w = b->lines;
    float *const keep = b->c + b->g->w_at;
    w.codes += at;
    if (g) w.scale += (b->at.j0 % g + j) / g;
    if (panels->asks) {
        w.ask = strip_address(b, &b->next, at * b->now.depth / LINE);
        w.ask_step = b->next.depth > 0 ? b->coded.byte_step : 0;
        while (lines << w.ask_shift < b->now.depth)
            w.ask_shift++;
    }
    for (int64_t i = 0, h; i < m; i += h) {
        float *const to = b->c + i * ld + j;
        h = i == 0 ? b->g->head : lb_gemm_height(m - i, b->g->tiles->mr);
        if (!panels->asks) ask(b, &b->next, lines);
        if (i == 0)
            panels->tile(&w, (int)h, x, first, n, to, ld, keep);
        else
            b->g->tiles->tile(w.k, x + i * w.k, keep, panels->nr, to, ld,
                              (int)h, n, first);
    }
}

static void run_strip(unit *b)
{
    const int nr = b->g->panels->nr;
    const int64_t bytes = nr * b->coded.bits / 8;
    const int64_t others = b->g->w.m - b->g->head;
    const int64_t groups = 1 + lb_ceil_div(others, b->g->tiles->mr);
    const int64_t lines = lb_ceil_div(b->now.depth * bytes,
                                      LINE * (b->g->panels->asks ? 1 : groups));
    const float *x = panel_at(b->p, b->g, b->work, b->at.batch, b->now.k);
    if (b->now.j == 0) aim_scales(b);
    copy_strip(b);
    b->next = strip_after(b, &b->now);
    b->lines.k = b->now.depth;
    for (int64_t at = 0, j = b->now.j; at < LINE && j < b->at.n;
         at += bytes, j += nr)
        run_columns(b, x, j, at, lines);
    if (!b->g->panels->asks) ask(b, &b->next, b->next.depth);
}

static void run_unit(const lb_product *p, const lb_work *work, const grid *g,
                     lb_unit at)
{
    unit b = {
        .p = p,
        .g = g,
        .work = work,
        .coded = lb_coded_at(&g->w.coded, g->w.w, at.batch),
        .at = at,
        .c = work->scratch,
    };
    b.codes = (uint8_t *)(void *)(b.c + g->codes_at);
    lb_outerf32_table table;
    lb_outerf32_table_of(&table, b.coded.bits, b.coded.high_first,
                         b.coded.numbers.level);
    b.lines = (lb_outerf32_lines){
        .table = &table,
        .step = LINE,
        .codes = b.codes,
        .each = b.coded.lines.g == 1,
        .rounds = LB_F32,
    };
    b.now = (strip){.depth = lb_min_i64(g->kc, p->k)};
    for (; b.now.depth > 0; b.now = b.next)
        run_strip(&b);
    lb_weights_put(p, &g->w, work, b.at.batch, 0, g->w.m, b.at.j0, b.at.n, b.c,
                   g->ld, b.c + g->w.m * g->ld);
}

static void run(const lb_product *p, const lb_work *w)
{
    const grid *const g = p->grid;
    for (int64_t u = w->lo; u < w->hi; u++) {
        if (w->phase == 0)
            pack_panel(p, w, g, u / g->depths, u % g->depths * g->kc);
        else
            run_unit(p, w, g, lb_units_at(&g->b, &g->w, u));
    }
}

const lb_algorithm lb_coded_across = {"outer gemm", make_plan, run};
