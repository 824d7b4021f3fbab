/* product_packed.c - f32 products in blocks, on packed panels.
 *
 * A unit is one block of the result. A piece of packed A stays in L2 while all
 * of B passes by. B is packed strip by strip just before the first piece needs
 * it: a strip of nr columns is read, or decoded, while it is in L2, and a panel
 * of it is packed and used in L1; some codes become a panel at once. What runs
 * across the depth comes in wide runs, so all columns are one strip then.
 *
 * A is packed once for all, in a phase before. Then units are all rows by few
 * columns: B is packed once, and a unit that is late keeps nobody waiting for
 * long. Those that a thread has in a row are one block, as wide as is good for
 * it, for each block brings A in again. Where A is too large for that or much
 * the larger one, or a single thread has numbers to multiply, each unit packs
 * its part of A, piece by piece; large blocks do so less often: an element
 * packed for n columns is used n times.
 */
#include "kernels/gemm.h"
#include "kernels/gemm_codes.h"
#include "kernels/tuning.h"
#include "matmul/operand.h"

enum {
    BLOCK = 1024,       /* rows and columns, at most, where the result lies */
    TILE_BLOCK = 512,   /* where it is kept in scratch */
    PART = 8,           /* depth that is read together, of wide runs */
    MIN_UNIT = 1 << 21, /* multiplications worth another thread: 40 us */
    SHARES = 8,         /* units for each thread: cores are not equally fast, */
    ROW_SHARES = 4,     /* but each of some rows packs B once more */
    EVEN = 16,          /* with fewer, all threads get as many as each other */
    WHOLE = 1 << 24,    /* floats of A that are packed once for all, */
    FEW_COLUMNS = 256,  /* unless B has no more than these, */
    TALL = 2            /* or A has more than so many rows for each of them */
};

/* Where A is whole: columns of a block at most, and of a unit. Numbers that run
 * across the depth come in longer runs. */
enum { WIDE = 512, WIDE_ACROSS = 1024, NARROW = 64, NARROW_ACROSS = 128 };

typedef struct {
    const lb_gemm_kernel *kernel;
    bool across; /* B runs across the depth */
    bool coded;  /* it is known where its codes are */
    lb_coded codes;
    const lb_gemm_codes *panel; /* makes panels of codes at once; or NULL */
    bool whole;                 /* A is packed in phase 0, */
    int64_t matrices;           /* so many of them */
    int64_t mb, nb;             /* sizes of a unit */
    int64_t bm, bn;             /* units along each axis */
    int64_t widest;             /* columns of a block: of some units in a row */
    int64_t piece;              /* rows of A .. */
    int64_t deep;               /* .. and depth that go together: panels */
    int64_t strip;              /* columns of B that are read together */
    bool kept;                  /* panels of all strips of B are, not of one */
    int64_t step;               /* floats of B from column to column */
    int64_t b_at, c_at, tmp_at, n; /* scratch, in floats; A, if it is not
                                    * whole, is at 0 */
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

static bool worth_splitting(const lb_product *p, const grid *g, int64_t units)
{
    const double each = (double)p->m * (double)p->n * (double)p->k /
                        ((double)g->bm * (double)g->bn);
    return p->batch * g->bm * g->bn < units && each >= 2.0 * MIN_UNIT;
}

static bool runs_across(const lb_source *s)
{
    return s->in_place ? s->rs == 1 && s->ks != 1 : s->across;
}

/* Where A is whole, columns are cut as finely as is worth a unit, and rows only
 * if these are not enough for all threads. */
static void size_units(const lb_product *p, const lb_call *c, grid *g)
{
    const int64_t worth = lb_ceil_div(2 * MIN_UNIT, p->m * p->k);
    const int64_t wide = g->across ? WIDE_ACROSS : WIDE;
    const int64_t least = g->across && !p->b->in_place ? NARROW_ACROSS : NARROW;
    g->nb =
        lb_round_up(lb_min_i64(lb_max_i64(worth, least), wide), g->kernel->nr);
    g->bn = lb_ceil_div(p->n, g->nb);
    g->widest = lb_min_i64(lb_max_i64(wide / g->nb, 1), g->bn) * g->nb;
    g->bm = p->in_place ? 1 : lb_ceil_div(p->m, TILE_BLOCK);
    while (c->threads > 1 && worth_splitting(p, g, ROW_SHARES * c->threads))
        g->bm++;
    g->mb = lb_round_up(lb_ceil_div(p->m, g->bm), g->kernel->mr);
    g->bm = lb_ceil_div(p->m, g->mb);
}

/* Else units are as square as can be. */
static void size_blocks(const lb_product *p, const lb_call *c, grid *g)
{
    const int64_t most = p->in_place ? BLOCK : TILE_BLOCK;
    const int64_t threads = c->threads;
    g->bm = lb_ceil_div(p->m, most);
    g->bn = lb_ceil_div(p->n, most);
    while (threads > 1) {
        const bool rows = p->m / g->bm >= p->n / g->bn;
        const int64_t shares = rows ? ROW_SHARES : SHARES;
        if (!worth_splitting(p, g, shares * threads)) break;
        if (rows)
            g->bm++;
        else
            g->bn++;
    }
    const int64_t units = p->batch * g->bm * g->bn;
    if (units > 1 && units < EVEN * threads)
        while (p->batch * g->bm * g->bn % threads)
            g->bn++;
    g->mb = lb_round_up(lb_ceil_div(p->m, g->bm), g->kernel->mr);
    g->nb = lb_round_up(lb_ceil_div(p->n, g->bn), g->kernel->nr);
    g->bm = lb_ceil_div(p->m, g->mb);
    g->bn = lb_ceil_div(p->n, g->nb);
    g->widest = g->nb;
}

static void place_scratch(const lb_product *p, grid *g)
{
    const int64_t kc = lb_min_i64(p->k, LB_GEMM_KC + LB_GEMM_REST);
    const int64_t deep = lb_min_i64(p->k, g->deep + LB_GEMM_REST);
    const int64_t columns = g->kept ? g->widest : g->strip;
    int64_t tmp = 0;
    if (!p->a->in_place) tmp = g->piece * kc;
    if (!p->b->in_place)
        tmp = lb_max_i64(tmp, g->strip * (g->across ? PART : deep));
    g->b_at = g->whole ? 0 : lb_line_floats(g->piece * deep);
    g->c_at = g->b_at + lb_line_floats(columns * g->step);
    g->tmp_at = g->c_at + (p->in_place ? 0 : lb_line_floats(g->mb * g->widest));
    g->n = g->tmp_at + lb_line_floats(tmp);
}

/* What is packed together, at most: the last. */
static int64_t deepest(int64_t k)
{
    return lb_max_i64(lb_min_i64(k, LB_GEMM_KC),
                      k - (lb_gemm_depths(k) - 1) * LB_GEMM_KC);
}

/* Matrices of A, of which one may serve all batches; 0: each serves some. */
static int64_t matrices_of(const lb_product *p)
{
    const lb_matrix *a = p->a->matrix;
    int shared = 0;
    for (int k = 0; a && k < a->batch.n; k++)
        shared += a->batch.stride[k] == 0;
    if (!shared) return p->batch;
    return shared == a->batch.n ? 1 : 0;
}

static grid make_grid(const lb_product *p, const lb_call *c)
{
    grid g = {.kernel = lb_gemm_kernel_for(c->cpu),
              .across = runs_across(p->b)};
    g.coded = lb_coded_of(c->cpu, p->b, &g.codes);
    if (!g.across && g.coded && p->k > 0)
        g.panel = lb_operand_panel(c->cpu, &g.codes);
    g.matrices = matrices_of(p);
    g.whole = (g.panel || c->threads > 1) && p->n > FEW_COLUMNS &&
              p->m <= TALL * p->n && p->k > 0 && g.matrices > 0 &&
              p->k <= WHOLE / (p->m * g.matrices);
    if (g.whole)
        size_units(p, c, &g);
    else
        size_blocks(p, c, &g);
    const int64_t in_l2 = (int64_t)(lb_tuning_for(c->cpu)->l2_gemm / 4);
    g.piece = in_l2 / LB_GEMM_KC / g.kernel->mr * g.kernel->mr;
    g.piece = lb_min_i64(lb_max_i64(g.piece, g.kernel->mr), g.mb);
    g.deep = LB_GEMM_KC;
    if (!g.across && g.piece == g.mb)
        g.deep *= lb_max_i64(
            1, lb_min_i64(LB_RUN - LB_GEMM_REST, in_l2 / g.piece) / LB_GEMM_KC);
    g.strip = g.across ? g.widest : g.kernel->nr;
    g.kept = g.across || g.mb > g.piece;
    g.step = deepest(p->k) + 1; /* or all would fall on the same places of the
                                 * caches */
    place_scratch(p, &g);
    return g;
}

/* Of a block's rows. */
static int64_t pieces(const grid *g)
{
    return lb_ceil_div(g->mb, g->piece);
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    *g = make_grid(p, c);
    (void)w;
    plan->per_thread = (size_t)g->n * sizeof(float);
    plan->kernel = g->kernel->name;
    p->tile = (lb_tile_sizes){g->kernel->mr, g->kernel->nr, LB_GEMM_KC};
    if (g->whole) {
        plan->phases = 2;
        plan->shared = (size_t)(g->matrices * p->m * p->k) * sizeof(float);
        plan->units[0] = g->matrices * g->bm * pieces(g) * lb_gemm_depths(p->k);
    }
    plan->units[plan->phases - 1] = p->batch * g->bm * g->bn;
}

static void plan_codes(lb_product *p, const lb_weights *w, const lb_call *c,
                       lb_plan *plan)
{
    make_plan(p, w, c, plan);
    plan->kernel = lb_gemm_codes_for(c->cpu)->name;
}

/* ---- one block ----------------------------------------------------------- */

typedef struct {
    const lb_product *p;
    const grid *g;
    const lb_cpu *cpu;
    int64_t batch, i, m, j, n; /* rows and columns of the block */
    lb_coded codes;            /* of this batch */
    float *a, *b, *tmp;
    float *c;
    int64_t ldc;
} block;

/* Part of B, all columns: depth [k, k + kc). Asks for the next part. */
static lb_block read_part(const block *u, int64_t k, int64_t kc, float *tmp)
{
    const lb_source *s = u->p->b;
    const int64_t after = lb_min_i64(kc, u->p->k - k - kc);
    if (u->g->coded) lb_coded_fetch(&u->codes, k + kc, after, u->j, u->n);
    return s->get(s, u->cpu, u->batch, u->j, u->n, k, kc, tmp);
}

static void pack_across(const block *u, int64_t k, int64_t kc)
{
    const int64_t part = u->p->b->in_place ? kc : PART;
    const int nr = u->g->kernel->nr;
    for (int64_t kk = 0; kk < kc; kk += part) {
        const int64_t some = lb_min_i64(part, kc - kk);
        const lb_block w = read_part(u, k + kk, some, u->tmp);
        lb_gemm_pack(w.p, w.rs, w.ks, u->n, some, nr, u->b + kk * nr,
                     u->g->step);
    }
}

/* Packs A, rows [i, i + m), depth [k, k + depth), panel by panel. */
static void pack_a(const block *u, int64_t i, int64_t m, int64_t k,
                   int64_t depth, float *to)
{
    const lb_source *s = u->p->a;
    for (int64_t kk = 0, kc; kk < depth; kk += kc) {
        kc = lb_gemm_depth(depth - kk);
        const lb_block x =
            s->get(s, u->cpu, u->batch, u->i + i, m, k + kk, kc, u->tmp);
        lb_gemm_pack_rows(x.p, x.rs, x.ks, m, kc, u->g->kernel->mr,
                          to + kk * m);
    }
}

/* Where a panel of all rows of the block is, if A is whole. */
static float *whole_a(const block *u, int64_t k)
{
    const int64_t matrix = u->g->matrices > 1 ? u->batch : 0;
    return u->a + (matrix * u->p->m + u->i) * u->p->k + u->m * k;
}

/* The packed rows [i, i + m) of A by all of B, which is read if i is 0. */
static void run_across(const block *u, const float *a, int64_t i, int64_t m,
                       int64_t k, int64_t kc)
{
    const grid *g = u->g;
    if (i == 0) pack_across(u, k, kc);
    lb_gemm_block(g->kernel, m, u->n, kc, a, u->b, g->kernel->nr, g->step,
                  u->c + i * u->ldc, u->ldc, k == 0, NULL);
}

/* Columns [j, j + n) of the block, where B runs along the depth: numbers, or
 * codes. */
typedef struct {
    int64_t j, n, k;
    bool made; /* its panel is there already */
    lb_block w;
    lb_gemm_rows codes;
} strip;

/* The scales of a strip, from depth k on. */
static void aim_scales(const block *u, int64_t k, int64_t depth, strip *s)
{
    const lb_coded *c = &u->codes;
    const int64_t g = c->lines.g, first = g ? k / g : 0;
    const int64_t blocks = g ? (k + depth - 1) / g - first + 1 : 1;
    s->codes.g = g;
    s->codes.scale_step = c->scale_step;
    if (c->scale) {
        s->codes.scale =
            lb_coded_scales(c, u->cpu, u->j + s->j, first, blocks, NULL);
        return;
    }
    s->codes.scale = u->tmp;
    s->codes.scale_step = blocks;
    for (int64_t r = 0; r < s->n; r++)
        lb_coded_scales(c, u->cpu, u->j + s->j + r, first, blocks,
                        u->tmp + r * blocks);
}

static strip read_strip(const block *u, int64_t j, int64_t n, int64_t k,
                        int64_t depth)
{
    const lb_coded *c = &u->codes;
    const lb_source *b = u->p->b;
    const int64_t line = u->j + j;
    strip s = {.j = j, .n = n, .k = k};
    const int64_t after = lb_min_i64(u->g->strip, u->n - j - n);
    if (!u->g->panel) {
        if (u->g->coded) lb_coded_fetch(c, line + n, after, k, depth);
        s.w = b->get(b, u->cpu, u->batch, line, n, k, depth, u->tmp);
        return s;
    }
    s.codes = (lb_gemm_rows){
        .bits = c->bits,
        .high_first = c->high_first,
        .level = c->numbers.level,
        .codes = lb_coded_codes(c, line, k),
        .step = c->byte_step,
        .n = n,
        .ahead = after && u->g->panel->asks ? (uintptr_t)(n * c->byte_step) : 0,
    };
    aim_scales(u, k, depth, &s);
    return s;
}

/* A panel of its codes, of depth [kk, kk + kc): blocks of scales may end where
 * panels do. */
static void decode_strip(const block *u, const strip *s, int64_t kk, int64_t kc,
                         float *to)
{
    lb_gemm_rows c = s->codes;
    c.codes += kk * c.bits / 8;
    c.scale += c.g ? (s->k + kk) / c.g - s->k / c.g : 0;
    if (c.g > kc) c.g = 0; /* all of it is in one block */
    c.depth = kc;
    u->g->panel->decode(&c, to);
}

/* What is packed together of it, of depth [kk, kk + kc). */
static void pack_strip(const block *u, const strip *s, int64_t kk, int64_t kc,
                       float *to)
{
    const lb_gemm_kernel *const kernel = u->g->kernel;
    const float *w = s->w.p;
    if (u->g->panel) {
        decode_strip(u, s, kk, lb_min_i64(kc, LB_GEMM_KC), to);
        if (kc > LB_GEMM_KC)
            decode_strip(u, s, kk + LB_GEMM_KC, kc - LB_GEMM_KC,
                         to + LB_GEMM_KC * kernel->nr);
    } else if (kernel->pack && s->n == kernel->nr && s->w.ks == 1) {
        kernel->pack(w + kk, s->w.rs, kc, to);
    } else {
        lb_gemm_pack(w + kk * s->w.ks, s->w.rs, s->w.ks, s->n, kc, kernel->nr,
                     to, u->g->step);
    }
}

/* What the strip after this one will need of the same depth: its panel, where
 * that is kept, and the codes that become one. Decoding would wait for these,
 * and asking for them while it decodes holds up its own. */
static lb_gemm_soon soon_after(const block *u, const strip *s, int64_t kk,
                               int64_t kc)
{
    enum { LINE = 64 };
    const lb_gemm_codes *const panel = u->g->panel;
    const int64_t f = sizeof(float), after = u->n - s->j - s->n;
    const bool dense = !panel && u->p->b->in_place && s->w.ks == 1;
    lb_gemm_soon soon = {.panel = u->g->kept};
    if (s->made || (panel ? panel->asks : !dense)) return soon;
    const int64_t bits = dense ? 8 * f : u->codes.bits;
    soon.step = dense ? s->w.rs * f : u->codes.byte_step;
    soon.at = (dense ? (uintptr_t)s->w.p : (uintptr_t)s->codes.codes) +
              (uintptr_t)(kk * bits / 8) + (uintptr_t)(s->n * soon.step);
    soon.rows = lb_min_i64(u->g->strip, after);
    soon.lines = lb_ceil_div(kc * bits, 8 * LINE) + (soon.step % LINE > 0);
    return soon;
}

/* The packed rows by one strip. */
static void run_strip(const block *u, const float *a, int64_t i, int64_t m,
                      int64_t j, int64_t k, int64_t depth)
{
    const grid *g = u->g;
    const int64_t n = lb_min_i64(g->strip, u->n - j);
    float *const b = u->b + (g->kept ? j * g->step : 0);
    strip s = {.j = j, .n = n, .made = true};
    if (i == 0) s = read_strip(u, j, n, k, depth);
    int64_t kk = 0;
    do { /* once, where there is no depth */
        const int64_t kc = lb_gemm_depth(depth - kk);
        if (!s.made) pack_strip(u, &s, kk, kc, b);
        const lb_gemm_soon soon = soon_after(u, &s, kk, kc);
        lb_gemm_block(g->kernel, m, n, kc, a + kk * m, b, g->kernel->nr,
                      g->step, u->c + i * u->ldc + j, u->ldc, k + kk == 0,
                      &soon);
        kk += kc;
    } while (kk < depth);
}

/* The packed A of some rows by all of B. */
static void run_piece(const block *u, const float *a, int64_t i, int64_t rows,
                      int64_t k, int64_t deep)
{
    const grid *g = u->g;
    if (g->across) {
        run_across(u, a, i, rows, k, deep);
        return;
    }
    for (int64_t j = 0; j < u->n; j += g->strip)
        run_strip(u, a, i, rows, j, k, deep);
}

static void run_block(const block *u)
{
    const grid *g = u->g;
    int64_t k = 0;
    do { /* once, where there is no depth */
        const int64_t left = u->p->k - k;
        const int64_t deep = left <= g->deep + LB_GEMM_REST ? left : g->deep;
        for (int64_t i = 0; i < u->m; i += g->piece) {
            const int64_t rows = lb_min_i64(g->piece, u->m - i);
            const float *a = g->whole ? whole_a(u, k) + i * deep : u->a;
            if (!g->whole) pack_a(u, i, rows, k, deep, u->a);
            run_piece(u, a, i, rows, k, deep);
        }
        k += deep;
    } while (k < u->p->k);
}

/* ---- units --------------------------------------------------------------- */

static block rows_of(const lb_product *p, const grid *g, const lb_work *w,
                     int64_t batch, int64_t i)
{
    float *const scratch = w->scratch;
    return (block){
        .p = p,
        .g = g,
        .cpu = w->call->cpu,
        .batch = batch,
        .i = i,
        .m = lb_min_i64(g->mb, p->m - i),
        .a = g->whole ? w->shared : scratch,
        .b = scratch + g->b_at,
        .tmp = scratch + g->tmp_at,
    };
}

/* Packs a panel of a piece of A. */
static void pack_unit(const lb_product *p, const grid *g, const lb_work *w,
                      int64_t at)
{
    const int64_t panels = lb_gemm_depths(p->k);
    const int64_t i = at / panels % pieces(g) * g->piece;
    const int64_t rows = at / panels / pieces(g);
    const int64_t k = at % panels * LB_GEMM_KC;
    const int64_t kc = lb_gemm_depth(p->k - k);
    const block u = rows_of(p, g, w, rows / g->bm, rows % g->bm * g->mb);
    if (i < u.m)
        pack_a(&u, i, lb_min_i64(g->piece, u.m - i), k, kc,
               whole_a(&u, k) + i * kc);
}

/* Units that lie beside each other. */
static void run_units(const lb_product *p, const grid *g, const lb_work *w,
                      int64_t at, int64_t units)
{
    block u =
        rows_of(p, g, w, at / (g->bm * g->bn), at / g->bn % g->bm * g->mb);
    u.j = at % g->bn * g->nb;
    u.n = lb_min_i64(units * g->nb, p->n - u.j);
    if (g->coded) u.codes = lb_coded_at(&g->codes, p->b, u.batch);
    u.ldc = p->in_place ? p->n : u.n;
    u.c = p->in_place ? (float *)w->out->store->data +
                            (u.batch * p->m + u.i) * p->n + u.j
                      : (float *)w->scratch + g->c_at;
    run_block(&u);
    if (!p->in_place) p->put(p, w, u.batch, u.i, u.m, u.j, u.n, u.c);
}

static void run(const lb_product *p, const lb_work *w)
{
    const grid *const g = p->grid;
    if (g->whole && w->phase == 0) {
        for (int64_t at = w->lo; at < w->hi; at++)
            pack_unit(p, g, w, at);
        return;
    }
    for (int64_t at = w->lo, units; at < w->hi; at += units) {
        units = lb_min_i64(w->hi - at, g->bn - at % g->bn);
        units = lb_min_i64(units, g->widest / g->nb);
        run_units(p, g, w, at, units);
    }
}

const lb_algorithm lb_packed = {"gemm", make_plan, run};
const lb_algorithm lb_coded_panel = {"panel gemm", plan_codes, run};
