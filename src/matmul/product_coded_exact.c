/* product_coded_exact.c - f32 products of a few rows with codes, which are
 * decoded as they are multiplied (kernels/dotf32.h).
 *
 *   phase 0   x is packed, in groups of a few rows; units are panels
 *   phase 1   units are rows of w:
 *
 *     for each chunk of the depth         as much of x as stays in L2
 *       for each strip of w               64 rows
 *         for each panel of the chunk
 *           for each group of rows of x   16 to 24 KiB, in L1
 *
 * Panels are added to the result one after the other, which fixes the order of
 * a sum for any grid of units.
 */
#include <math.h>
#include <string.h>

#include "kernels/dotf32.h"
#include "kernels/tuning.h"
#include "matmul/coded_units.h"

enum {
    MOST_N = 512,       /* rows of w in a unit */
    GRAIN = 64,         /* units begin at multiples of this */
    STRIP = 64,         /* rows of w that meet a group of x */
    SHARES = 4,         /* units for each thread, */
    MIN_UNIT = 1 << 20, /* if so many multiplications remain to each */
    KC = LB_DOTF32_KC,
    MOST_BLOCKS = KC / 16 /* scales of a row in a panel */
};

typedef struct {
    lb_weights w;
    const lb_dotf32 *kernel;
    lb_units b;
    int64_t groups;         /* of rows of x */
    int64_t panels, filled; /* of a matrix x, and its depth in whole groups */
    int64_t chunk;          /* of the depth */
    bool tame;              /* levels are neither huge nor tiny */
    /* Scratch in floats; the result is at 0. */
    int64_t scale_at, put_at, n;
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

/* Neither huge nor tiny, so that products with a code and sums of these keep
 * away from the ends of f32's range; or 0. */
static bool is_tame(float x)
{
    return x == 0 || (fabsf(x) > 0x1p-80f && fabsf(x) < 0x1p80f);
}

static bool levels_are_tame(const lb_coded *c)
{
    bool tame = true;
    for (int i = 0; c->bits < 8 && i < 1 << c->bits; i++) {
        const float size = fabsf(c->numbers.level[i]);
        tame = tame && (size == 0 || (size > 0x1p-20f && size < 0x1p20f));
    }
    return tame;
}

/* ---- the grid ------------------------------------------------------------ */

static void make_grid(const lb_product *p, const lb_weights *w,
                      const lb_call *c, grid *g)
{
    g->w = *w;
    g->kernel = lb_dotf32_for(c->cpu);
    g->groups = lb_ceil_div(g->w.m, g->kernel->mr);
    g->panels = lb_ceil_div(p->k, KC);
    g->filled = lb_round_up(p->k, lb_dotf32_group(g->w.coded.bits));
    g->chunk = lb_max_i64((int64_t)lb_tuning_for(c->cpu)->l2_x /
                              (g->w.m * KC * (int64_t)sizeof(float)),
                          1) *
               KC;
    g->tame = levels_are_tame(&g->w.coded);
    const lb_cut cut = {
        .most_m = g->w.m,
        .most_n = MOST_N,
        .least_m = g->w.m,
        .grain = GRAIN,
        .shares = SHARES,
        .work = MIN_UNIT,
    };
    g->b = lb_units_of(p, c, &g->w, &cut);
    const int64_t put = LB_DOTF32_MAX_MR * lb_put_apart(g->b.nb);
    const int64_t rows = lb_line_floats((int64_t)LB_DOTF32_MAX_MR * KC);
    g->scale_at = lb_line_floats(g->w.m * g->b.nb);
    g->put_at = g->scale_at + lb_line_floats((int64_t)STRIP * MOST_BLOCKS);
    g->n = g->put_at + lb_line_floats(g->w.swapped ? 2 * put : put);
    g->n = lb_max_i64(g->n, rows); /* phase 0 reads these */
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    make_grid(p, w, c, g);
    plan->phases = 2;
    plan->shared = (size_t)(p->batch * g->w.m * g->filled) * sizeof(float) +
                   (size_t)(p->batch * g->panels);
    plan->per_thread = (size_t)g->n * sizeof(float);
    plan->units[0] = p->batch * g->panels;
    plan->units[1] = g->b.n;
    plan->kernel = g->kernel->name;
    p->tile.kc = KC;
}

/* ---- x ------------------------------------------------------------------- */

static int64_t group_at(const grid *g, int64_t at)
{
    return lb_group_row(g->w.m, g->groups, at);
}

/* Panel k of a matrix; its groups follow each other. */
static float *panel_at(const grid *g, const lb_work *work, int64_t batch,
                       int64_t k)
{
    return (float *)work->shared + g->w.m * (batch * g->filled + k);
}

/* Whether its numbers are tame: one byte for each panel, after all of x. */
static uint8_t *tame_at(const lb_product *p, const grid *g, const lb_work *work,
                        int64_t batch, int64_t k)
{
    uint8_t *const first = (uint8_t *)(void *)panel_at(g, work, p->batch, 0);
    return first + batch * g->panels + k / KC;
}

static float largest(const float *x, int64_t n)
{
    uint32_t most = 0;
    float size;
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, sizeof u);
        u &= INT32_MAX;
        most = u > most ? u : most;
    }
    memcpy(&size, &most, sizeof size);
    return size;
}

/* n numbers of a row, in the order of codes; zeros up to a whole group. */
static void pack_row(const float *x, int64_t step, int64_t n,
                     const uint8_t *place, int64_t group, int lanes,
                     int64_t apart, float *to)
{
    for (int64_t k = 0; k < n; k += group)
        for (int64_t i = 0; i < group; i += lanes, to += apart)
            for (int l = 0; l < lanes; l++) {
                const int64_t from = k + place[i + l];
                to[l] = from < n ? x[from * step] : 0;
            }
}

static void pack_panel(const lb_product *p, const lb_work *work, const grid *g,
                       int64_t batch, int64_t k)
{
    const lb_source *x = g->w.x;
    const lb_coded *c = &g->w.coded;
    const int64_t n = lb_min_i64(KC, p->k - k),
                  group = lb_dotf32_group(c->bits);
    const int64_t filled = lb_round_up(n, group);
    const int lanes = g->kernel->lanes;
    uint8_t place[LB_DOTF32_MAX_GROUP];
    lb_dotf32_order(lanes, c->bits, c->high_first, place);
    for (int64_t i = 0; i < g->groups; i++) {
        const int64_t row = group_at(g, i), rows = group_at(g, i + 1) - row;
        const lb_block from =
            x->get(x, work->call->cpu, batch, row, rows, k, n, work->scratch);
        float *const to = panel_at(g, work, batch, k) + row * filled;
        for (int64_t r = 0; r < rows; r++)
            pack_row((const float *)from.p + r * from.rs, from.ks, n, place,
                     group, lanes, rows * lanes, to + r * lanes);
    }
    *tame_at(p, g, work, batch, k) =
        g->tame &&
        is_tame(largest(panel_at(g, work, batch, k), g->w.m * filled));
}

/* ---- a unit -------------------------------------------------------------- */

typedef struct {
    const lb_product *p;
    const grid *g;
    const lb_work *work;
    lb_coded coded;
    int64_t batch, j0, n;
    int64_t k, depth, filled; /* the panel, and to whole groups */
    const float *x;
    float *c;
} unit;

/* The scales of rows [j, j + n) of w in the panel. */
static void aim_scales(const unit *b, int64_t j, lb_dotf32_codes *w)
{
    const lb_coded *c = &b->coded;
    const lb_cpu *cpu = b->work->call->cpu;
    const int64_t g = c->lines.g, first = g ? b->k / g : 0;
    const int64_t blocks = g ? (b->k + b->depth - 1) / g - first + 1 : 1;
    w->g = blocks > 1 ? g : 0;
    w->scale_step = c->scale_step;
    if (c->scale) {
        w->scale = lb_coded_scales(c, cpu, j, first, blocks, NULL);
        return;
    }
    float *const read = b->c + b->g->scale_at;
    w->scale = read;
    w->scale_step = blocks;
    for (int64_t r = 0; r < w->n; r++)
        lb_coded_scales(c, cpu, j + r, first, blocks, read + r * blocks);
}

/* What is asked for meanwhile: the same rows in the next panel of the chunk
 * [k, end), or the first panel of the next rows. */
static uintptr_t bytes_ahead(const unit *b, int64_t k, int64_t end)
{
    const lb_coded *c = &b->coded;
    const bool last = b->k + KC >= end;
    return last ? (uintptr_t)(STRIP * c->byte_step - (b->k - k) * c->bits / 8)
                : (uintptr_t)((int64_t)KC * c->bits / 8);
}

static void run_strip(const unit *b, int64_t j, uintptr_t ahead)
{
    const lb_coded *c = &b->coded;
    const int64_t line = b->j0 + j;
    lb_dotf32_codes w = {
        .bits = c->bits,
        .level = c->numbers.level,
        .codes = c->bytes + line * c->byte_step + b->k * c->bits / 8,
        .step = c->byte_step,
        .tame = *tame_at(b->p, b->g, b->work, b->batch, b->k),
        .n = lb_min_i64(STRIP, b->n - j),
        .depth = b->depth,
    };
    aim_scales(b, line, &w);
    for (int64_t i = 0; i < b->g->groups; i++) {
        const int64_t row = group_at(b->g, i);
        const int64_t rows = group_at(b->g, i + 1) - row;
        w.ahead = i == 0 ? ahead : 0;
        b->g->kernel->dots(&w, (int)rows, b->x + row * b->filled, b->k == 0,
                           b->c + row * b->n + j * rows, rows);
    }
}

static void run_chunk(unit *b, int64_t k, int64_t end)
{
    for (int64_t j = 0; j < b->n; j += STRIP)
        for (b->k = k; b->k < end; b->k += KC) {
            b->depth = lb_min_i64(KC, end - b->k);
            b->filled = lb_round_up(b->depth, lb_dotf32_group(b->coded.bits));
            b->x = panel_at(b->g, b->work, b->batch, b->k);
            run_strip(b, j, bytes_ahead(b, k, end));
        }
}

static void put_rows(const unit *b)
{
    const grid *g = b->g;
    const int64_t ld = lb_put_apart(b->n);
    float *const tile = b->c + g->put_at;
    float *const turned = tile + LB_DOTF32_MAX_MR * ld;
    for (int64_t i = 0; i < g->groups; i++) {
        const int64_t row = group_at(g, i), rows = group_at(g, i + 1) - row;
        const float *c = b->c + row * b->n;
        for (int64_t j = 0; j < b->n; j++)
            for (int64_t r = 0; r < rows; r++)
                tile[r * ld + j] = c[j * rows + r];
        lb_weights_put(b->p, &g->w, b->work, b->batch, row, rows, b->j0, b->n,
                       tile, ld, turned);
    }
}

static void run_unit(const lb_product *p, const lb_work *work, const grid *g,
                     lb_unit at)
{
    unit b = {
        .p = p,
        .g = g,
        .work = work,
        .coded = lb_coded_at(&g->w.coded, g->w.w, at.batch),
        .batch = at.batch,
        .j0 = at.j0,
        .n = at.n,
        .c = work->scratch,
    };
    for (int64_t k = 0; k < p->k; k += g->chunk)
        run_chunk(&b, k, lb_min_i64(k + g->chunk, p->k));
    put_rows(&b);
}

static void run(const lb_product *p, const lb_work *w)
{
    const grid *const g = p->grid;
    for (int64_t u = w->lo; u < w->hi; u++) {
        if (w->phase == 0)
            pack_panel(p, w, g, u / g->panels, u % g->panels * KC);
        else
            run_unit(p, w, g, lb_units_at(&g->b, &g->w, u));
    }
}

const lb_algorithm lb_coded_exact = {"few gemm", make_plan, run};
