/* product_coded_outer.c - whole numbers times codes whose depth runs from line
 * to line: x @ W, W (in, out).
 *
 *   phase 0   x becomes whole numbers; units are parts of the depth
 *   phase 1   units are columns, and of many rows of x some:
 *
 *     for each panel of the depth
 *       for each 64 columns           as numbers of 16 bits, in L1
 *         for each group of rows of x
 *
 * Lines lie far apart, and at distances that are bad for caches. So little is
 * read of each at a time, and more of each is asked for, early and evenly,
 * while tiles run. Panels are added to the result one after the other, which
 * fixes the order of a sum for any grid of units.
 */
#include <string.h>

#include "kernels/outerint.h"
#include "matmul/coded_units.h"
#include "matmul/int_panels.h"

enum {
    MOST_M = 128,       /* rows of a unit, */
    LEAST_M = 24,       /* to have more units no fewer; */
    MOST_N = 1024,      /* columns, which begin */
    GRAIN = 128,        /* at multiples of this, */
    MOST = 1 << 16,     /* and results, which stay in L2 */
    SHARES = 4,         /* units for each thread, */
    WIDE = 2,           /* where panels are fed: longer pieces of lines are
                         * faster to read, */
    MIN_UNIT = 1 << 20, /* if so many multiplications remain to each */
    PART = 8,           /* panels of x that are packed together */
    KC = LB_OUTERINT_KC,
    MR = LB_OUTERINT_MR,
    COLUMNS = LB_OUTERINT_COLUMNS,
    TILE = LB_OUTERINT_TILE,
    FED = 16,   /* rows of x: with more, panels take little of the time */
    LINE = 64,  /* bytes of a line of a cache, */
    BAND = 256, /* and what is asked for of each of w */
    F = sizeof(float)
};

/* Which panels are made while tiles of the one before run: */
typedef enum {
    NONE,
    TWOS, /* bytes, two and two, */
    FINE  /* or levels of 4 bits */
} feeding;

typedef struct {
    lb_weights w;
    const lb_outerint *kernel;
    lb_int_panels p;
    int64_t groups; /* of rows of x in a unit, at most */
    feeding feeds;
    lb_units b;
    int64_t ld;              /* floats from row to row of a unit's result */
    int64_t depths, x_bytes; /* panels of a matrix, and bytes of x in one */
    int order[COLUMNS];      /* the column of each position, */
    float part[COLUMNS / LB_OUTERINT_VECTOR]; /* and what numbers stand for */
    /* Scratch, in bytes; the result is at 0. */
    size_t panel_at, codes_at, ws_at, put_at, weights_at, bytes;
    size_t rows_bytes; /* of phase 0 */
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

/* ---- the grid ------------------------------------------------------------ */

static void make_units(const lb_product *p, const lb_call *c, grid *g)
{
    const lb_cut cut = {
        .most_m = MOST_M,
        .most_n = lb_min_i64(MOST_N, MOST / lb_min_i64(g->w.m, MOST_M)),
        .least_m = LEAST_M,
        .grain = GRAIN,
        .shares = g->feeds ? WIDE : SHARES,
        .work = MIN_UNIT,
    };
    g->b = lb_units_of(p, c, &g->w, &cut);
    g->groups = lb_ceil_div(g->b.mb, MR);
    g->p.strip = g->b.nb;
}

static void make_order(grid *g)
{
    const lb_coded *c = &g->w.coded;
    for (int p = 0; p < COLUMNS; p++) {
        const int shift = c->bits * lb_outerint_field(c->bits, p);
        const bool as_they_lie = c->bits < 8 && !g->p.fine;
        g->order[p] = g->feeds == TWOS
                          ? lb_outerint_twos_column(p)
                          : lb_outerint_column(c->bits, c->high_first, p);
        g->part[p / LB_OUTERINT_VECTOR] =
            as_they_lie ? (float)g->p.slope / (float)(1 << shift) : 1;
    }
}

static size_t add(size_t at, int64_t bytes)
{
    return at + (size_t)lb_round_up(bytes, 64);
}

/* Of two lines, in a tile. */
static int64_t pair_bytes(const grid *g)
{
    return g->feeds == TWOS ? LB_OUTERINT_PAIR
                            : 2 * TILE * (int64_t)sizeof(int16_t);
}

static void make_room(const lb_product *p, grid *g)
{
    const int64_t wide = lb_round_up(g->b.nb, COLUMNS);
    const int64_t put = g->b.mb * lb_put_apart(wide) * F;
    lb_int_weights w;
    g->ld = lb_put_apart(wide);
    g->panel_at = add(0, g->b.mb * g->ld * F);
    g->codes_at = add(g->panel_at, (g->feeds ? 2 : 1) * COLUMNS / TILE * KC /
                                       2 * pair_bytes(g));
    g->ws_at = add(g->codes_at, (int64_t)COLUMNS * KC);
    g->put_at = add(g->ws_at, wide * F);
    g->weights_at = add(g->put_at, g->w.swapped ? 2 * put : put);
    g->bytes = g->weights_at +
               lb_int_weights_room(&g->p, &g->w.coded, g->b.nb, p->k, &w, NULL);
    g->rows_bytes =
        add(0, (g->w.m + 1) * KC * F) +
        lb_scales_room(g->p.cpu, &g->w.coded, KC, 0, p->k, &w.s, NULL);
    if (g->bytes < g->rows_bytes) g->bytes = g->rows_bytes;
}

static bool make_grid(const lb_product *p, const lb_weights *w,
                      const lb_call *c, grid *g)
{
    g->w = *w;
    if (!lb_int_panels_of(c->cpu, &g->w.coded, g->w.m, &g->p)) return false;
    g->kernel = lb_outerint_for(c->cpu);
    g->p.kc = g->p.ratio_apart = KC;
    g->feeds = g->w.m > FED || (g->w.coded.bits == 8) == g->p.fine ? NONE
               : g->p.fine                                         ? FINE
                                                                   : TWOS;
    g->depths = lb_ceil_div(p->k, KC);
    make_units(p, c, g);
    g->x_bytes =
        lb_round_up(g->b.bm * g->groups * (int64_t)sizeof(lb_outerint_head),
                    64) +
        g->w.m * KC * (int64_t)sizeof(int16_t);
    make_order(g);
    make_room(p, g);
    return true;
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    if (!make_grid(p, w, c, g)) return;
    plan->phases = 2;
    plan->shared = (size_t)(p->batch * g->depths * g->x_bytes);
    plan->per_thread = g->bytes;
    plan->units[0] = p->batch * lb_ceil_div(g->depths, PART);
    plan->units[1] = g->b.n;
    plan->kernel = g->kernel->name;
    p->tile = (lb_tile_sizes){MR, TILE, KC};
}

/* ---- x ------------------------------------------------------------------- */

/* A panel of x: the heads of the groups of each unit, then all rows. */
static lb_outerint_head *heads_at(const grid *g, const lb_work *work,
                                  int64_t batch, int64_t depth)
{
    char *const at =
        (char *)work->shared + (batch * g->depths + depth) * g->x_bytes;
    return (lb_outerint_head *)(void *)at;
}

static int16_t *rows_of(const grid *g, lb_outerint_head *heads)
{
    char *const end =
        (char *)heads + g->x_bytes - g->w.m * KC * (int64_t)sizeof(int16_t);
    return (int16_t *)(void *)end;
}

/* One row of n numbers, `step` apart. */
static void pack_row(const grid *g, const float *x, int64_t step, int64_t n,
                     const float *factor, float *tmp, int16_t *to,
                     lb_outerint_head *head, int64_t i)
{
    const lb_int_bound bound = {LB_DOTINT_MOST_X,
                                g->p.fine ? LB_DOTINT_FINE_X : 0};
    if (step != 1 || factor) {
        for (int64_t k = 0; k < n; k++)
            tmp[k] = factor ? x[k * step] * factor[k] : x[k * step];
        x = tmp;
    }
    const lb_int_row row =
        lb_int_row_of(g->p.fine ? lb_int_largest_and_sum : g->p.kernel->largest,
                      bound, n, x, tmp);
    const int32_t sum = g->kernel->round(n, row.x, row.factor, to);
    const bool as_they_lie = g->w.coded.bits < 8 && !g->p.fine;
    head->scale[i] = row.scale;
    head->raised[i] = -128 * sum;
    head->base[i] = as_they_lie ? (float)(g->p.least * (int64_t)sum) : 0;
}

static void pack_panel(const lb_work *work, const grid *g, const lb_scales *s,
                       int64_t batch, int64_t k, int64_t n)
{
    const lb_source *x = g->w.x;
    float *const tmp = work->scratch, *const block = tmp + KC;
    const lb_block from =
        x->get(x, work->call->cpu, batch, 0, g->w.m, k, n, block);
    const float *factor = lb_scales_factor(s, k, n);
    lb_outerint_head *heads = heads_at(g, work, batch, k / KC);
    int16_t *const rows = rows_of(g, heads);
    for (int64_t i0 = 0; i0 < g->w.m; i0 += g->b.mb, heads += g->groups) {
        const int64_t m = lb_min_i64(g->b.mb, g->w.m - i0);
        const int64_t groups = lb_ceil_div(m, MR);
        for (int64_t at = 0; at < groups; at++) {
            const int64_t first = i0 + lb_group_row(m, groups, at);
            const int64_t end = i0 + lb_group_row(m, groups, at + 1);
            for (int64_t i = first; i < end; i++)
                pack_row(g, (const float *)from.p + i * from.rs, from.ks, n,
                         factor, tmp, rows + i * KC, &heads[at], i - first);
        }
    }
}

static void pack_part(const lb_product *p, const lb_work *work, const grid *g,
                      int64_t batch, int64_t k)
{
    const int64_t end = lb_min_i64(k + (int64_t)PART * KC, p->k);
    const lb_coded coded = lb_coded_at(&g->w.coded, g->w.w, batch);
    lb_scales s;
    lb_scales_room(g->p.cpu, &coded, KC, 0, p->k, &s,
                   (char *)work->scratch + add(0, (g->w.m + 1) * KC * F));
    if (g->p.scales.in_x) lb_scales_rows(&s, 0, 0, p->k);
    for (; k < end; k += KC)
        pack_panel(work, g, &s, batch, k, lb_min_i64(KC, end - k));
}

/* ---- a unit -------------------------------------------------------------- */

/* What is asked for while tiles run: BAND bytes of each line of a panel, for
 * memory is slow to give less at a time. */
typedef struct {
    int64_t k, depth, j, n;
    int64_t lines; /* that were asked for */
} band;

typedef struct {
    const lb_product *p;
    const grid *g;
    const lb_work *work;
    lb_coded coded;
    lb_int_weights weights;
    lb_unit at;     /* rows of x, and columns */
    int64_t groups; /* of those rows */
    float *c, *ws;
    int16_t *panel;
    band now, next;
    /* This panel and the next, where that is fed, and what is left of it. */
    uint8_t *fed[2];
    lb_outerint_feed feed;
} unit;

static band band_at(const unit *b, int64_t k, int64_t j)
{
    const int64_t n = (int64_t)BAND * 8 / b->coded.bits;
    return (band){
        .k = k,
        .depth = lb_min_i64(KC, b->p->k - k),
        .j = j,
        .n = lb_min_i64(n, b->at.n - j),
    };
}

/* The band that follows; of depth 0 if there is none. */
static band band_after(const unit *b, const band *s)
{
    const int64_t j = s->j + s->n;
    return j < b->at.n ? band_at(b, s->k, j) : band_at(b, s->k + s->depth, 0);
}

/* The scales of a line, if they lie there. */
static void ask_scales(const unit *b, int64_t line)
{
    const lb_coded *c = &b->weights.s.c;
    if (!b->g->p.scales.in_w || !c->scale) return;
    const float *const at = c->scale + c->first + line * c->scale_step;
    const uintptr_t from = (uintptr_t)(at + b->at.j0 / c->lines.g);
    const uintptr_t last =
        (uintptr_t)(at + (b->at.j0 + b->at.n - 1) / c->lines.g);
    for (uintptr_t p = from / LINE * LINE; p <= last; p += LINE)
        __builtin_prefetch((const void *)p, 0, 2);
}

/* So many lines of the next band, or what is left of them. These are no
 * pointers that C looks at: a line of the cache begins before it. */
static void ask(unit *b, int64_t lines)
{
    band *const s = &b->next;
    const int64_t end = lb_min_i64(s->lines + lines, s->depth);
    for (; s->lines < end; s->lines++) {
        const int64_t k = s->k + s->lines;
        const uintptr_t from =
            (uintptr_t)lb_coded_codes(&b->coded, k, b->at.j0 + s->j);
        const uintptr_t to =
            from + (uintptr_t)lb_coded_line_bytes(&b->coded, s->n);
        for (uintptr_t at = from / LINE * LINE; at < to; at += LINE)
            __builtin_prefetch((const void *)at, 0, 2);
        if (s->j == 0) ask_scales(b, k);
    }
}

/* The ratios of all panels of a depth, if there are some. */
static void aim_ratios(unit *b)
{
    lb_int_weights *const w = &b->weights;
    w->at = b->at.j0;
    w->k = b->now.k;
    w->depth = b->now.depth;
    if (b->g->p.scales.in_w) lb_int_ratios(w, b->at.n);
}

/* Which of these columns from j on have. */
static int64_t ratio_of(const unit *b, int64_t j)
{
    const int64_t g = b->coded.lines.g;
    return b->g->p.scales.in_w ? (b->at.j0 + j) / g - b->at.j0 / g : 0;
}

/* The last columns may be too few: their lines are copied, and filled up with
 * zeros. */
static void copy_lines(const unit *b, int64_t bytes, lb_outerint_lines *to)
{
    uint8_t *const own = (uint8_t *)(void *)b->c + b->g->codes_at;
    const int64_t width = (int64_t)to->bits * COLUMNS / 8;
    memset(own, 0, (size_t)(width * to->n));
    for (int64_t i = 0; i < to->n; i++)
        memcpy(own + i * width, to->codes + i * to->step, (size_t)bytes);
    to->codes = own;
    to->step = width;
}

/* The scale of a panel's columns, if it is of this panel only. */
static void aim_ws(unit *b, int64_t j)
{
    const grid *g = b->g;
    if (!g->p.scales.in_w) return;
    const float ws =
        b->weights.largest[ratio_of(b, j)] * g->p.unit * LB_INT_DOWN;
    for (int p = 0; p < COLUMNS; p++)
        b->ws[j + p] = ws;
}

static void make_panel(unit *b, int64_t j)
{
    const grid *g = b->g;
    const int bits = b->coded.bits;
    lb_outerint_lines lines = {
        .bits = bits,
        .fine = g->p.fine,
        .level = g->p.level,
        .ratio = b->weights.ratio + ratio_of(b, j) * KC,
        .codes = lb_coded_codes(&b->coded, b->now.k, b->at.j0 + j),
        .step = b->coded.byte_step,
        .n = b->now.depth,
    };
    if (b->at.n - j < COLUMNS)
        copy_lines(b, lb_ceil_div((b->at.n - j) * bits, 8), &lines);
    g->kernel->pack(&lines, b->panel);
    aim_ws(b, j);
}

/* All rows with the panel of columns from j on, with so many lines of the next
 * band asked for at a time. */
static void run_panel(unit *b, int64_t j, int64_t lines)
{
    const grid *g = b->g;
    const int64_t pairs = lb_ceil_div(b->now.depth, 2);
    lb_outerint_head *const all =
        heads_at(g, b->work, b->at.batch, b->now.k / KC);
    const lb_outerint_head *const heads = all + b->at.i0 / g->b.mb * g->groups;
    const int16_t *x = rows_of(g, all) + b->at.i0 * KC;
    for (int64_t at = 0; at < b->groups; at++) {
        const int64_t i = lb_group_row(b->at.m, b->groups, at);
        const int rows = (int)(lb_group_row(b->at.m, b->groups, at + 1) - i);
        for (int t = 0; t < LB_OUTERINT_TILES; t++) {
            const int64_t to = j + (int64_t)t * TILE;
            ask(b, lines);
            g->kernel->tile(rows, pairs, x + i * KC,
                            b->panel + t * pairs * 2 * TILE, &heads[at],
                            g->part + t * TILE / LB_OUTERINT_VECTOR, b->ws + to,
                            b->now.k == 0, b->c + i * g->ld + to, g->ld);
        }
    }
}

static void run_band(unit *b)
{
    const int64_t end = b->now.j + b->now.n;
    const int64_t tiles =
        lb_ceil_div(b->now.n, COLUMNS) * LB_OUTERINT_TILES * b->groups;
    const int64_t lines = lb_ceil_div(KC, tiles);
    if (b->now.j == 0) aim_ratios(b);
    b->next = band_after(b, &b->now);
    for (int64_t j = b->now.j; j < end; j += COLUMNS) {
        make_panel(b, j);
        run_panel(b, j, lines);
    }
    ask(b, KC);
}

/* ---- a unit of fed panels ------------------------------------------------ */

/* The panel of columns from j on is what is fed. */
static void aim_feed(unit *b, int64_t k, int64_t j, uint8_t *to)
{
    const grid *g = b->g;
    lb_outerint_feed *const f = &b->feed;
    f->n = lb_min_i64(KC, b->p->k - k);
    f->to = to;
    f->apart = lb_ceil_div(f->n, 2) * pair_bytes(g);
    if (f->n <= 0) return;
    lb_outerint_lines lines = {
        .bits = b->coded.bits,
        .codes = lb_coded_codes(&b->coded, k, b->at.j0 + j),
        .step = b->coded.byte_step,
        .n = f->n,
    };
    if (b->at.n - j < COLUMNS)
        copy_lines(b, lb_ceil_div((b->at.n - j) * lines.bits, 8), &lines);
    f->codes = lines.codes;
    f->step = lines.step;
    f->level = g->p.level;
    f->ratio = b->weights.ratio + ratio_of(b, j) * KC;
}

/* The next band is what is asked for. */
static void aim_asks(unit *b)
{
    const band *s = &b->next;
    lb_outerint_feed *const f = &b->feed;
    f->asks = s->depth;
    f->asked = 0;
    if (s->depth <= 0) return;
    const uintptr_t from =
        (uintptr_t)lb_coded_codes(&b->coded, s->k, b->at.j0 + s->j);
    f->ask = from / LINE * LINE;
    f->ask_step = b->coded.byte_step;
    f->ask_bytes = lb_round_up((int64_t)(from - f->ask) +
                                   lb_coded_line_bytes(&b->coded, s->n),
                               LB_OUTERINT_ASK);
    for (int64_t k = 0; k < s->depth && s->j == 0; k++)
        ask_scales(b, s->k + k);
}

static void feed_rest(unit *b)
{
    if (b->feed.n <= 0) return;
    if (b->g->feeds == TWOS)
        b->g->kernel->feed_twos(&b->feed);
    else
        b->g->kernel->feed_fine(&b->feed);
}

/* All rows with the panel of columns from j on, which is at fed[0]. */
static void run_fed(unit *b, int64_t j)
{
    const grid *g = b->g;
    const int64_t pairs = lb_ceil_div(b->now.depth, 2);
    lb_outerint_head *const all =
        heads_at(g, b->work, b->at.batch, b->now.k / KC);
    const lb_outerint_head *const heads = all + b->at.i0 / g->b.mb * g->groups;
    for (int64_t at = 0; at < b->groups; at++) {
        const int64_t i = lb_group_row(b->at.m, b->groups, at);
        const int rows = (int)(lb_group_row(b->at.m, b->groups, at + 1) - i);
        const int16_t *x = rows_of(g, all) + (b->at.i0 + i) * KC;
        float *const c = b->c + i * g->ld + j;
        if (g->feeds == TWOS)
            g->kernel->panel_twos(rows, pairs, x, b->fed[0], &heads[at],
                                  b->ws + j, b->now.k == 0, c, g->ld, &b->feed);
        else
            g->kernel->panel_fine(
                rows, pairs, x, (const int16_t *)(const void *)b->fed[0],
                &heads[at], b->ws + j, b->now.k == 0, c, g->ld, &b->feed);
    }
    feed_rest(b);
}

/* The ratios of a depth are not known before it begins: then its first panel
 * is not fed by the one before. */
static void run_fed_band(unit *b)
{
    const int64_t end = b->now.j + b->now.n;
    const bool known = !b->g->p.scales.in_w;
    if (b->now.j == 0) {
        aim_ratios(b);
        if (b->now.k == 0 || !known) aim_feed(b, b->now.k, 0, b->fed[0]);
        feed_rest(b);
    }
    b->next = band_after(b, &b->now);
    aim_asks(b);
    for (int64_t j = b->now.j; j < end; j += COLUMNS) {
        uint8_t *const next = b->fed[1];
        if (j + COLUMNS < b->at.n)
            aim_feed(b, b->now.k, j + COLUMNS, next);
        else if (known)
            aim_feed(b, b->now.k + b->now.depth, 0, next);
        aim_ws(b, j);
        run_fed(b, j);
        b->fed[1] = b->fed[0];
        b->fed[0] = next;
    }
    b->next.lines = b->next.depth - b->feed.asks;
    ask(b, KC);
}

/* ---- all of it ----------------------------------------------------------- */

/* The scales of columns, in the order of positions, unless they differ from
 * panel to panel; and ratios, if these are all alike. */
static void aim_scales(unit *b)
{
    const grid *g = b->g;
    lb_int_weights *const w = &b->weights;
    lb_int_weights_room(&g->p, &b->coded, g->b.nb, b->p->k, w,
                        (char *)(void *)b->c + g->weights_at);
    lb_scales_rows(&w->s, b->at.j0, b->at.n, b->p->k);
    if (g->p.scales.in_w) return;
    for (int64_t j = 0; j < b->at.n; j += COLUMNS)
        for (int p = 0; p < COLUMNS; p++) {
            const int64_t at = j + g->order[p];
            b->ws[j + p] =
                at < b->at.n ? w->s.row[at] * g->p.unit * LB_INT_DOWN : 0;
        }
    for (int64_t k = 0; k < KC && g->p.fine; k++)
        w->ratio[k] = LB_DOTINT_RATIO;
}

/* From the order of positions to that of columns. */
static void put_rows(unit *b)
{
    const grid *g = b->g;
    float *const to = (float *)(void *)((char *)(void *)b->c + g->put_at);
    for (int64_t i = 0; i < b->at.m; i++)
        for (int64_t j = 0; j < b->at.n; j += COLUMNS)
            for (int p = 0; p < COLUMNS; p++)
                to[i * g->ld + j + g->order[p]] = b->c[i * g->ld + j + p];
    lb_weights_put(b->p, &g->w, b->work, b->at.batch, b->at.i0, b->at.m,
                   b->at.j0, b->at.n, to, g->ld, to + b->at.m * g->ld);
}

static void run_unit(const lb_product *p, const lb_work *work, const grid *g,
                     lb_unit at)
{
    char *const room = work->scratch;
    unit b = {
        .p = p,
        .g = g,
        .work = work,
        .coded = lb_coded_at(&g->w.coded, g->w.w, at.batch),
        .at = at,
        .groups = lb_ceil_div(at.m, MR),
        .c = work->scratch,
        .ws = (float *)(void *)(room + g->ws_at),
        .panel = (int16_t *)(void *)(room + g->panel_at),
    };
    b.fed[0] = (uint8_t *)(void *)b.panel;
    b.fed[1] = b.fed[0] + (int64_t)COLUMNS / TILE * KC / 2 * pair_bytes(g);
    b.next = band_at(&b, 0, 0);
    aim_scales(&b);
    ask(&b, KC);
    for (b.now = b.next; b.now.depth > 0; b.now = b.next)
        (g->feeds ? run_fed_band : run_band)(&b);
    put_rows(&b);
}

static void run(const lb_product *p, const lb_work *w)
{
    const grid *const g = p->grid;
    const int64_t parts = lb_ceil_div(g->depths, PART);
    for (int64_t u = w->lo; u < w->hi; u++) {
        if (w->phase == 0)
            pack_part(p, w, g, u / parts, u % parts * PART * KC);
        else
            run_unit(p, w, g, lb_units_at(&g->b, &g->w, u));
    }
}

const lb_algorithm lb_coded_outer = {"outer gemm", make_plan, run};
