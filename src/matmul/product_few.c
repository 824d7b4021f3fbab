/* product_few.c - f32 products of a few rows with many, which are not packed.
 *
 * A unit is some of the many rows. Where these run along the depth, in memory
 * or as they are decoded, the kernel takes them as they are; where they run
 * across it, a block of them is copied or decoded to scratch first, for the
 * tiles that take it from there.
 */
#include <string.h>

#include "kernels/few.h"
#include "kernels/tuning.h"
#include "matmul/coded.h"
#include "matmul/weights.h"

enum {
    UNIT = 1024,        /* most of the many rows in a unit */
    LEAST = 512,        /* better not fewer, where they are read across the
                         * depth: runs from memory or to be decoded are long */
    WHOLE = 1 << 20,    /* floats of x that are packed once for all units */
    DEEP = LB_RUN,      /* of what is decoded together: calls take time */
    MIN_UNIT = 1 << 20, /* multiplications worth another thread */
};

typedef struct {
    const lb_few_kernel *kernel;
    const lb_gemm_kernel *tiles;
    const lb_source *few, *many;
    bool swapped; /* few is B */
    bool along;   /* many run along the depth .. */
    bool there;   /* .. and are read where they lie */
    bool coded;   /* .. or are codes, and it is known where */
    lb_coded codes;
    bool whole; /* all of x is packed once, else panel by panel */
    int64_t v, rows, k;
    int64_t nb, span, block; /* rows of a unit; of those that go through the
                              * depth together; that are read together, .. */
    int64_t deep;            /* .. and how deep: panels */
    int64_t ldt;
    int64_t w_size;
    int64_t t_at, s_at, w_at, tmp_at, n; /* scratch in floats; x is at 0 */
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

/* Whether blocks of rows come along the depth. */
static bool comes_along(const lb_source *s, int64_t k)
{
    if (s->in_place) return s->ks == 1 || s->rs != 1 || k == 1;
    return !s->across;
}

/* Rows of a unit that is worth another thread, and gives each a few. */
static int64_t unit_rows(const lb_product *p, const grid *g, int threads)
{
    if (threads == 1) return lb_min_i64(g->rows, UNIT);
    const int64_t share = lb_ceil_div(g->rows * p->batch, 4 * threads);
    const int64_t worth = MIN_UNIT / lb_max_i64(p->k * g->v, 1) + 1;
    const int64_t least = g->along ? share : lb_max_i64(share, LEAST);
    return lb_min_i64(g->rows, lb_min_i64(UNIT, lb_max_i64(least, worth)));
}

static int64_t panel_floats(const grid *g)
{
    const int64_t kc = lb_min_i64(g->k, LB_FEW_KC);
    return lb_line_floats(lb_few_floats(g->kernel, g->v, kc));
}

static void place_scratch(const lb_product *p, grid *g)
{
    const int64_t kc = lb_min_i64(p->k, LB_FEW_KC), nr = g->tiles->nr;
    const int64_t panels = g->whole ? lb_ceil_div(p->k, LB_FEW_KC) : 1;
    const int64_t groups = lb_ceil_div(g->v, LB_FEW_ROWS);
    const int64_t sums = lb_line_floats(groups * g->ldt);
    const int64_t some = lb_min_i64(g->block, g->rows);
    g->t_at = panels * panel_floats(g);
    g->s_at = g->t_at + sums;
    g->w_at = g->s_at + (p->in_place ? 0 : sums);
    const int64_t part = lb_min_i64(lb_few_part(g->kernel), kc);
    if (g->along)
        g->w_size =
            g->there ? 0 : lb_line_floats(some * lb_min_i64(p->k, g->deep));
    else
        g->w_size = lb_few_copy_floats(g->kernel, g->tiles, kc, some);
    g->tmp_at = g->w_at + g->w_size;
    if (!g->along)
        g->tmp_at +=
            g->many->in_place ? g->w_size : lb_line_floats(some * part);
    const int64_t lanes = g->along ? 0 : LB_FEW_LEVELS * g->v * nr;
    g->n = g->tmp_at + lb_line_floats(lb_max_i64(g->v * kc, lanes));
}

static grid make_grid(const lb_product *p, const lb_call *c)
{
    grid g = {
        .kernel = lb_few_kernel_for(c->cpu),
        .tiles = lb_gemm_kernel_for(c->cpu),
        .swapped = p->m > p->n,
        .v = lb_min_i64(p->m, p->n),
        .rows = lb_max_i64(p->m, p->n),
        .k = p->k,
    };
    g.few = g.swapped ? p->b : p->a;
    g.many = g.swapped ? p->a : p->b;
    g.along = comes_along(g.many, p->k);
    g.there = g.along && g.many->in_place && (g.many->ks == 1 || p->k == 1);
    g.coded = lb_coded_of(c->cpu, g.many, &g.codes);
    g.whole = g.v * p->k <= WHOLE;
    const int64_t unit = g.along ? 2 * g.kernel->many : g.tiles->nr;
    g.nb = lb_min_i64(g.rows, lb_round_up(unit_rows(p, &g, c->threads), unit));
    g.block = g.along ? unit : g.nb;
    g.deep = g.along && !g.there && g.whole ? DEEP : LB_FEW_KC;
    const int64_t in_l2 =
        (int64_t)(lb_tuning_for(c->cpu)->l2_x / sizeof(float));
    g.span = g.v * p->k <= in_l2 ? lb_min_i64(g.block, g.nb) : g.nb;
    g.ldt = LB_FEW_ROWS * lb_round_up(g.nb, 4);
    place_scratch(p, &g);
    return g;
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    *g = make_grid(p, c);
    (void)w;
    plan->per_thread = (size_t)g->n * sizeof(float);
    plan->units[0] = p->batch * lb_ceil_div(g->rows, g->nb);
    plan->kernel = g->kernel->name;
    p->tile.kc = LB_FEW_KC;
}

/* ---- one unit ------------------------------------------------------------ */

typedef struct {
    const grid *g;
    const lb_cpu *cpu;
    float *scratch;
    int64_t batch, j, n; /* rows [j, j + n) of the many */
} unit;

/* What is multiplied at a time: rows [i, i + n) of the unit, depth [k, k + kc),
 * as block number `number`. */
typedef struct {
    int64_t i, n, k, kc;
    int number;
} piece;

static int64_t span_of(const unit *u, int64_t i)
{
    return i / u->g->span * u->g->span;
}

static void size_piece(const unit *u, piece *s)
{
    const int64_t end = lb_min_i64(u->n, span_of(u, s->i) + u->g->span);
    s->n = lb_min_i64(u->g->block, end - s->i);
    s->kc = lb_min_i64(u->g->deep, u->g->k - s->k);
}

/* First the rows of a span, then its depth, then the next span. */
static bool next_piece(const unit *u, piece *s)
{
    const int64_t lo = span_of(u, s->i);
    s->number++;
    s->i += s->n;
    if (s->i >= lb_min_i64(lo + u->g->span, u->n)) {
        s->k += u->g->deep;
        if (s->k < u->g->k)
            s->i = lo;
        else
            s->k = 0;
    }
    size_piece(u, s);
    return s->i < u->n;
}

static float *panel_of(const unit *u, int64_t k)
{
    return u->scratch + (u->g->whole ? k / LB_FEW_KC * panel_floats(u->g) : 0);
}

static void pack_x(const unit *u, int64_t k)
{
    const grid *g = u->g;
    const int64_t kc = lb_min_i64(LB_FEW_KC, g->k - k);
    const lb_block b = g->few->get(g->few, u->cpu, u->batch, 0, g->v, k, kc,
                                   u->scratch + g->tmp_at);
    if (g->along)
        lb_few_pack(g->kernel, b.p, b.rs, b.ks, g->v, kc, panel_of(u, k));
    else
        lb_few_pack_across(g->kernel, g->tiles, b.p, b.rs, b.ks, g->v, kc,
                           panel_of(u, k));
}

/* The many rows of a piece: where they lie, or in scratch. */
static lb_block rows_of(const unit *u, const piece *s)
{
    const lb_source *many = u->g->many;
    return many->get(many, u->cpu, u->batch, u->j + s->i, s->n, s->k, s->kc,
                     u->scratch + u->g->w_at);
}

/* Where a piece will be read from, if that is known. */
static lb_few_next place_of(const unit *u, const piece *s)
{
    const grid *g = u->g;
    if (g->there) {
        const lb_block w = rows_of(u, s);
        const int64_t size = sizeof(float);
        return (lb_few_next){(uintptr_t)w.p, w.rs * size,
                             g->kernel->lanes * size};
    }
    if (!g->coded) return (lb_few_next){0};
    const lb_coded c = lb_coded_at(&g->codes, g->many, u->batch);
    const int64_t at = (u->j + s->i) * c.byte_step + s->k * c.bits / 8;
    return (lb_few_next){(uintptr_t)(c.bytes + at), c.byte_step,
                         g->kernel->lanes * c.bits / 8};
}

/* Rows that lie neither way: strides of both axes are large. */
static lb_block gather(const piece *s, const lb_block *w, float *to)
{
    const float *from = w->p;
    for (int64_t r = 0; r < s->n; r++)
        for (int64_t kk = 0; kk < s->kc; kk++)
            to[r * s->kc + kk] = from[r * w->rs + kk * w->ks];
    return (lb_block){to, s->kc, 1};
}

static void run_along(const unit *u, const piece *s, const piece *after)
{
    const grid *g = u->g;
    const int64_t panel = LB_FEW_KC / g->kernel->lanes; /* vectors */
    float *t = u->scratch + g->t_at + s->i * LB_FEW_ROWS;
    lb_block w = rows_of(u, s);
    if (w.ks != 1 && s->kc > 1) w = gather(s, &w, u->scratch + g->w_at);
    lb_few_next next = {0};
    if (after) next = place_of(u, after);
    for (int64_t kk = 0; kk < s->kc; kk += LB_FEW_KC) {
        lb_few_along(g->kernel, g->v, lb_min_i64(LB_FEW_KC, s->kc - kk),
                     panel_of(u, s->k + kk), (const float *)w.p + kk, w.rs,
                     s->n, t, g->ldt, s->k + kk == 0, next);
        if (next.at) next.at += (uintptr_t)(panel * next.step);
    }
}

/* The copy of a piece, not begun. */
static lb_few_copy copy_of(const unit *u, const piece *s)
{
    lb_few_copy c = {.k = s->kc, .n = s->n, .to = u->scratch + u->g->w_at};
    if (!u->g->many->in_place) return c;
    const lb_block w = rows_of(u, s);
    c.from = w.p;
    c.ldw = w.ks;
    if (s->number % 2) c.to += u->g->w_size;
    return c;
}

/* Decodes a piece part by part, and copies each while it is in L2. */
static void decode(const unit *u, const piece *s, lb_few_copy *c)
{
    const lb_source *many = u->g->many;
    const int64_t part = lb_few_part(u->g->kernel);
    for (; c->at < c->k; c->at += part) {
        const int64_t kc = lb_min_i64(part, c->k - c->at);
        const int64_t after = s->k + c->at + kc;
        if (u->g->coded) {
            const lb_coded codes = lb_coded_at(&u->g->codes, many, u->batch);
            lb_coded_fetch(&codes, after, lb_min_i64(part, u->g->k - after),
                           u->j + s->i, s->n);
        }
        const lb_block w =
            many->get(many, u->cpu, u->batch, u->j + s->i, s->n, s->k + c->at,
                      kc, u->scratch + u->g->w_at + u->g->w_size);
        c->from = w.p;
        c->ldw = w.ks;
        lb_few_copy_some(u->g->kernel, u->g->tiles, c, kc * s->n);
    }
}

static void run_across(const unit *u, const piece *s, const piece *next)
{
    const grid *g = u->g;
    float *t = u->scratch + g->t_at + s->i, *tmp = u->scratch + g->tmp_at;
    lb_few_copy copy = copy_of(u, s), after = copy;
    const bool ahead = next && g->many->in_place;
    if (!g->many->in_place)
        decode(u, s, &copy);
    else if (s->number == 0)
        lb_few_copy_some(g->kernel, g->tiles, &copy, INT64_MAX);
    if (ahead) after = copy_of(u, next);
    lb_few_across(g->kernel, g->tiles, g->v, panel_of(u, s->k), &copy, t, g->nb,
                  s->k == 0, tmp, ahead ? &after : NULL);
}

static void run_unit(const unit *u)
{
    piece s = {0};
    size_piece(u, &s);
    for (bool more = u->g->k > 0; more;) {
        piece next = s;
        more = next_piece(u, &next);
        if (!u->g->whole && s.i == span_of(u, s.i)) pack_x(u, s.k);
        if (u->g->along)
            run_along(u, &s, more ? &next : NULL);
        else
            run_across(u, &s, more ? &next : NULL);
        s = next;
    }
}

/* The sums to where they belong: of row i of the few at to + i*row, step
 * apart. */
static void spread(const unit *u, float *to, int64_t row, int64_t step)
{
    const grid *g = u->g;
    const float *t = u->scratch + g->t_at;
    for (int64_t i = 0; i < g->v; i++, to += row) {
        if (g->along) {
            lb_few_row(t, g->ldt, g->v, i, u->n, to, step);
            continue;
        }
        for (int64_t j = 0; j < u->n; j++)
            to[j * step] = t[i * g->nb + j];
    }
}

static void finish(const lb_product *p, const lb_work *work, const unit *u)
{
    const grid *g = u->g;
    float *s = u->scratch + g->s_at, *at = work->out->store->data;
    if (p->k == 0)
        memset(u->scratch + g->t_at, 0,
               (size_t)(g->s_at - g->t_at) * sizeof *s);
    if (p->in_place) {
        at += u->batch * p->m * p->n;
        if (g->swapped)
            spread(u, at + u->j * p->n, 1, p->n);
        else
            spread(u, at + u->j, p->n, 1);
    } else if (g->swapped) {
        spread(u, s, 1, g->v);
        p->put(p, work, u->batch, u->j, u->n, 0, g->v, s);
    } else {
        spread(u, s, u->n, 1);
        p->put(p, work, u->batch, 0, g->v, u->j, u->n, s);
    }
}

static void run(const lb_product *p, const lb_work *work)
{
    const grid *const g = p->grid;
    const int64_t units = lb_ceil_div(g->rows, g->nb);
    int64_t packed = -1; /* the batch whose x is there */
    for (int64_t i = work->lo; i < work->hi; i++) {
        const int64_t j = i % units * g->nb;
        const unit u = {.g = g,
                        .cpu = work->call->cpu,
                        .scratch = work->scratch,
                        .batch = i / units,
                        .j = j,
                        .n = lb_min_i64(g->nb, g->rows - j)};
        if (g->whole && packed != u.batch)
            for (int64_t k = 0; k < g->k; k += LB_FEW_KC)
                pack_x(&u, k);
        packed = u.batch;
        run_unit(&u);
        finish(p, work, &u);
    }
}

const lb_algorithm lb_few = {"few gemm", make_plan, run};
