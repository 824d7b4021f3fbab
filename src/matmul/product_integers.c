/* product_integers.c - a few rows of x times weights that are integers with
 * scales (lb_integers), K along memory.
 *
 *   phase 0   rows of x are rounded to digits; a unit is a row
 *   phase 1   a unit is some rows of w,
 *
 *     for each STRIP rows of w
 *       for each piece of the depth     as much of x as stays in L1
 *         codes become bytes
 *         for each few rows of x        see kernels/int_dot.h
 *           for each row of w
 */
#include <string.h>

#include "kernels/int_dot.h"
#include "matmul/operand.h"

enum {
    UNIT = 1 << 16, /* values of w that are worth a unit */
    UNIT_ROWS = 16, /* at least: whole cache lines of results */
    STRIP = 8,      /* rows of w that are bytes at a time */
    PIECE = 4,      /* panels of these; of one row of x */
    WHOLE = 16,     /* so many: with few rows of x pieces cost more */
    LINE = 64
};

typedef struct {
    lb_weights w;
    const lb_integers *of;
    int64_t k, panels, each, units; /* rows of w in a unit, units of a batch */
    int64_t piece;                  /* panels */
    int64_t scales;                 /* of a panel */
    /* Scratch, in bytes; x is at 0 of what is shared. */
    size_t code_at, scale_at, bias_at, sum_at, tile_at, turned_at, bytes;
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

bool lb_operand_integers(const lb_weights *w, int64_t k)
{
    const lb_matrix *m = w->w->matrix;
    if (!m || m->row.n != 1 || m->depth.n != 1 || w->w->type != LB_C_F32)
        return false;
    const lb_store *s = m->a->store;
    const lb_integers *of = s->fmt->integers;
    if (!of || !s->shape.rank || !lb_shape_size(&s->shape)) return false;
    const int64_t length = s->shape.dim[s->shape.rank - 1];
    const int64_t at = m->a->offset % length;
    if (m->depth.stride[0] != 1 && k > 1) return false;
    if (at % of->block || at + k > length) return false;
    if (w->n > 1 && m->row.stride[0] % length) return false;
    for (int b = 0; b < m->batch.n; b++)
        if (m->batch.stride[b] % length) return false;
    return true;
}

static size_t part(size_t *at, int64_t bytes)
{
    const size_t from = *at;
    *at += (size_t)lb_round_up(bytes, LINE);
    return from;
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    *g = (grid){.w = *w, .k = p->k, .panels = lb_int_dot_panels(p->k)};
    g->of = w->w->matrix->a->store->fmt->integers;
    g->each = lb_round_up(lb_ceil_div(UNIT, p->k), UNIT_ROWS);
    g->each = lb_min_i64(g->each, w->n);
    g->units = lb_ceil_div(w->n, g->each);
    g->piece = lb_min_i64(w->m > 2 ? PIECE : WHOLE, g->panels);
    /* Runs above 32 are repeated. */
    g->scales = LB_INT_PANEL / lb_min_i64(g->of->run, 32);
    const int64_t panels = STRIP * g->piece, scales = panels * g->scales;
    const int64_t f = sizeof(float);
    g->code_at = part(&g->bytes, panels * LB_INT_PANEL);
    g->scale_at = part(&g->bytes, scales * f);
    g->bias_at = part(&g->bytes, g->of->bias ? scales * f : 0);
    g->sum_at = part(&g->bytes, w->m * STRIP * LB_INT_LANES * f);
    g->tile_at = part(&g->bytes, w->m * g->each * f);
    g->turned_at = part(&g->bytes, w->swapped ? w->m * g->each * f : 0);
    const size_t x = (size_t)g->k * sizeof(float);
    plan->per_thread = g->bytes > x ? g->bytes : x;
    plan->shared =
        (size_t)(p->batch * w->m * g->panels) * sizeof(lb_int_x) + LINE;
    plan->phases = 2;
    plan->units[0] = p->batch * w->m;
    plan->units[1] = p->batch * g->units;
    plan->kernel = lb_int_dot_for(c->cpu)->name;
}

static lb_int_x *row_of_x(const grid *g, const lb_work *work, int64_t row)
{
    return (lb_int_x *)work->shared + row * g->panels;
}

static void round_x(const lb_product *p, const grid *g, const lb_work *work,
                    int64_t row)
{
    const lb_cpu *cpu = work->call->cpu;
    float *const tmp = work->scratch;
    const lb_block b =
        g->w.x->get(g->w.x, cpu, row / g->w.m, row % g->w.m, 1, 0, g->k, tmp);
    const float *x = b.p;
    if (b.ks != 1 && g->k > 1) {
        for (int64_t i = 0; i < g->k; i++)
            tmp[i] = x[i * b.ks];
        x = tmp;
    }
    lb_int_dot_for(cpu)->round(x, g->k, p->choice.digits,
                               row_of_x(g, work, row));
}

/* n values for each of `blocks` runs, the last first: they may be in place. */
static void repeat(float *value, int64_t blocks, int64_t n)
{
    for (int64_t b = blocks - 1; b >= 0; b--) {
        const float v = value[b];
        for (int64_t i = 0; i < n; i++)
            value[b * n + i] = v;
    }
}

/* A strip of rows in scratch. */
typedef struct {
    int8_t *code;
    float *scale, *bias, *sum;
} strip;

static strip strip_of(const grid *g, const lb_work *work)
{
    char *const at = work->scratch;
    return (strip){(int8_t *)(at + g->code_at),
                   (float *)(void *)(at + g->scale_at),
                   g->of->bias ? (float *)(void *)(at + g->bias_at) : NULL,
                   (float *)(void *)(at + g->sum_at)};
}

/* Depth [k, k + n) of the row that begins with element e, as panels. What is
 * past its end is zeros, with scales of zero. */
static lb_int_dot_row read_row(const grid *g, const lb_work *work, int64_t e,
                               int64_t k, int64_t n, const strip *s,
                               int64_t row)
{
    const lb_matrix *m = g->w.w->matrix;
    const int run = g->of->run < 32 ? g->of->run : 32;
    const int64_t values = lb_int_dot_panels(n) * LB_INT_PANEL;
    const int64_t read = lb_round_up(n, g->of->block);
    lb_int_dot_row to = {.run = run};
    int8_t *const code = s->code + row * g->piece * LB_INT_PANEL;
    const int64_t at = row * g->piece * g->scales;
    float *const scale = s->scale + at, *const bias = s->bias + at;
    const bool has_bias = g->of->bias;
    g->of->read(work->call->cpu, m->a->store, e + k, n, code, scale,
                has_bias ? bias : NULL);
    if (g->of->run > run) {
        repeat(scale, read / g->of->run, g->of->run / run);
        if (has_bias) repeat(bias, read / g->of->run, g->of->run / run);
    }
    memset(code + read, 0, (size_t)(values - read));
    for (int64_t i = read / run; i < values / run; i++) {
        scale[i] = 0;
        if (has_bias) bias[i] = 0;
    }
    to.code = code;
    to.scale = scale;
    to.bias = has_bias ? bias : NULL;
    return to;
}

/* Rows [j, j + n) of w, n <= STRIP: their sums. */
static void run_strip(const lb_product *p, const grid *g, const lb_work *work,
                      int64_t batch, int64_t j, int64_t n, const strip *s)
{
    const lb_int_dot *kernel = lb_int_dot_for(work->call->cpu);
    const lb_matrix *w = g->w.w->matrix;
    const int64_t m = g->w.m, first = w->a->offset +
                                      lb_dims_offset(&w->batch, batch) +
                                      j * w->row.stride[0];
    const int64_t sum_step = n * LB_INT_LANES;
    memset(s->sum, 0, (size_t)(m * sum_step) * sizeof *s->sum);
    for (int64_t at = 0; at < g->panels; at += g->piece) {
        const int64_t k = at * LB_INT_PANEL;
        const int64_t some = lb_min_i64(g->piece, g->panels - at);
        lb_int_dot_row row[STRIP];
        for (int64_t r = 0; r < n; r++)
            row[r] = read_row(g, work, first + r * w->row.stride[0], k,
                              lb_min_i64(some * LB_INT_PANEL, g->k - k), s, r);
        for (int64_t i = 0; i < m; i += LB_INT_ROWS)
            for (int64_t r = 0; r < n; r++)
                kernel->dot(row_of_x(g, work, batch * m + i) + at, g->panels,
                            lb_min_i64(LB_INT_ROWS, m - i), some, &row[r],
                            p->choice.digits,
                            s->sum + i * sum_step + r * LB_INT_LANES, sum_step);
    }
}

static void run_rows(const lb_product *p, const grid *g, const lb_work *work,
                     int64_t unit)
{
    const lb_int_dot *kernel = lb_int_dot_for(work->call->cpu);
    const int64_t batch = unit / g->units, j = unit % g->units * g->each;
    const int64_t n = lb_min_i64(g->each, g->w.n - j), m = g->w.m;
    char *const scratch = work->scratch;
    float *const tile = (float *)(void *)(scratch + g->tile_at);
    const strip s = strip_of(g, work);
    for (int64_t r = 0; r < n; r += STRIP) {
        const int64_t rows = lb_min_i64(STRIP, n - r);
        run_strip(p, g, work, batch, j + r, rows, &s);
        for (int64_t i = 0; i < m; i++)
            kernel->fold(s.sum + i * rows * LB_INT_LANES, rows,
                         tile + i * n + r);
    }
    lb_weights_put(p, &g->w, work, batch, 0, m, j, n, tile, n,
                   (float *)(void *)(scratch + g->turned_at));
}

static void run(const lb_product *p, const lb_work *work)
{
    const grid *const g = p->grid;
    for (int64_t u = work->lo; u < work->hi; u++)
        if (work->phase == 0)
            round_x(p, g, work, u);
        else
            run_rows(p, g, work, u);
}

const lb_algorithm lb_integer_rows = {"gemv", make_plan, run};
