/* product_coded_thin.c - a vector times packed weights, or a few: one by one,
 * or some at once.
 *
 *   phase 0   x is read, takes the scales that all lines share, and is put in
 *             the order in which the kernel (kernels/gemvq.h) decodes
 *   phase 1   along: units are lines. Else units are strips of columns, and
 *             where these are few, sums over LINES lines each, kept
 *   phase 2   the latter only: sums are added up, and only then brought to the
 *             order of columns
 *
 * Sums are formed over the same lines in the same order, whoever forms them.
 * All rows of x meet a unit's codes while these are in a cache, and those that
 * a kernel takes at once while they are in registers.
 */
#include <math.h>
#include <string.h>

#include "kernels/gemvq.h"
#include "kernels/tuning.h"
#include "matmul/operand.h"

enum {
    LINES = 256,        /* that one sum is formed over, where !along */
    STRIP = 16384,      /* columns whose sums are kept in L2: lines that are not
                         * cut come from memory a third faster */
    NARROW = 512,       /* least, where several threads share them */
    UNIT_BYTES = 65536, /* of codes, that are worth a unit: 3 us */
    UNIT_LINES = 16,    /* its results are whole lines of a cache */
    READ = 256,         /* scales read together */
    FAR = 131072        /* bytes */
};

/* Where scales that are not the kernel's business go. */
typedef enum { NOWHERE, TO_X, TO_Y } target;

typedef struct {
    lb_weights w;
    const lb_gemvq_kernel *kernel;
    int64_t k, n, batch, m;
    target scales;
    int64_t g, blocks; /* of a line, for the kernel; 0: none */
    /* units of phase 1, of each batch */
    int64_t each, count; /* lines or columns */
    int64_t most;        /* units of lines that are run as one */
    int64_t piece;       /* columns of a unit of phase 2 */
    int64_t sums, kept;  /* of LINES lines; kept between phases or 1 */
    bool keeps;
    int64_t slots;        /* numbers of a sum of all columns: whole groups */
    int64_t wide;         /* floats of results of a unit, in whole groups */
    int64_t x_at, sum_at; /* shared, in bytes; the table is at 0 */
    int64_t x_step;       /* from row to row, of all batches */
    size_t shared;
    int64_t y_at, scale_at; /* scratch, in bytes; the kernel's at 0 */
    size_t scratch;
} grid;
_Static_assert(sizeof(grid) <= LB_GRID, "it is kept in p->grid");

/* ---- what runs ---------------------------------------------------------- */

static bool has_blocks(const lb_weights *w, int64_t k)
{
    const lb_coded *c = &w->coded;
    const int64_t across = c->along ? k : w->n;
    return c->numbers.scale && c->lines.g && c->lines.g < across;
}

/* Scales go to one side of the product or the other, or vary along both. */
static target target_of(const lb_weights *w, int64_t k)
{
    const lb_coded *c = &w->coded;
    if (!c->numbers.scale) return NOWHERE;
    if (!has_blocks(w, k)) return c->along ? TO_Y : TO_X;
    if (c->scale_step == 0) return c->along ? TO_X : TO_Y;
    return NOWHERE;
}

static int64_t block_of(const lb_weights *w, int64_t k)
{
    return has_blocks(w, k) && target_of(w, k) == NOWHERE ? w->coded.lines.g
                                                          : 0;
}

/* Whether levels suit such sums. */
static bool suits(lb_gemvq_kind kind, int bits, const lb_gemvq_table *t)
{
    if (!t->finite) return false;
    if (kind == LB_GEMVQ_F32 || bits == 8) return true;
    if (bits < 4) return t->linear;
    return t->half_unit > 0x1p-40f && t->half_unit < 0x1p40f;
}

const lb_gemvq_kernel *lb_operand_gemv(const lb_product *p, const lb_weights *w,
                                       const lb_cpu *cpu, lb_choice as)
{
    lb_gemvq_table t;
    const lb_coded *c = &w->coded;
    const lb_gemvq_kind kind = as.type == LB_T_F32   ? LB_GEMVQ_F32
                               : as.type == LB_T_I16 ? LB_GEMVQ_I16
                               : as.digits == 2      ? LB_GEMVQ_I8X2
                                                     : LB_GEMVQ_I8;
    lb_gemvq_table_look(&t, c->numbers.level, c->bits);
    if (!suits(kind, c->bits, &t)) return NULL;
    const lb_gemvq_need need = {c->bits, c->along, kind, block_of(w, p->k)};
    return lb_gemvq_kernel_for(cpu, &need);
}

/* ---- how it is divided -------------------------------------------------- */

static size_t lines_of(int64_t n, size_t each)
{
    return ((size_t)n * each + 63) / 64 * 64;
}

/* Lines that lie as far apart as streams from memory should. */
static int64_t lines_apart(const lb_coded *c, const lb_cpu *cpu)
{
    const lb_tuning *t = lb_tuning_for(cpu);
    const int64_t bytes = lb_distance(c->byte_step);
    if (t->streams < 2) return 1;
    return lb_max_i64((int64_t)t->stream_gap / bytes, 1);
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        const int64_t r = x % y;
        x = y;
        y = r;
    }
    return a / x * b;
}

/* Columns begin with a group and a scale. */
static void make_strips(grid *g, int threads)
{
    const int64_t unit = g->g && g->blocks > 1
                             ? common_multiple(g->kernel->group, g->g)
                             : g->kernel->group;
    const bool alone = threads < 2 || g->batch >= 4 * (int64_t)threads;
    g->sums = lb_ceil_div(g->k, LINES);
    g->each = STRIP;
    if (!alone && g->sums < 4 * threads)
        g->each = lb_max_i64(lb_ceil_div(g->n * g->sums, 4 * threads), NARROW);
    g->each = lb_max_i64(lb_min_i64(g->each, STRIP) / unit, 1) * unit;
    g->each = lb_min_i64(g->each, g->n);
    g->count = lb_ceil_div(g->n, g->each);
    g->kept = !alone && g->count < 4 * (int64_t)threads ? g->sums : 1;
    if (g->m > 1) g->kept = g->sums;
    g->keeps = g->m > 1 || g->kept > 1;
    /* Rows of sums must not fall together in a cache. */
    g->slots = lb_put_apart(lb_round_up(g->n, g->kernel->group));
    g->piece = lb_min_i64(g->each, NARROW);
}

/* Units are small, for threads that are not equally fast; those that one of
 * them takes together are read as one matrix. */
static void make_lines(grid *g, const lb_coded *c, const lb_cpu *cpu)
{
    const int64_t bytes = lb_max_i64(g->k * c->bits / 8, 1);
    const int64_t four = LB_GEMVQ_ROWS * lines_apart(c, cpu);
    const int64_t worth = lb_ceil_div(UNIT_BYTES, bytes);
    g->each = lb_min_i64(lb_round_up(worth, UNIT_LINES), g->n);
    g->count = lb_ceil_div(g->n, g->each);
    g->most = lb_max_i64(lb_min_i64(four / g->each, g->count), 1);
    g->sums = g->kept = 1;
}

/* False: it does not fit, and nobody should have asked. */
static bool make_grid(const lb_product *p, const lb_weights *w,
                      const lb_call *call, grid *to)
{
    const lb_coded *c = &w->coded;
    grid g = {.w = *w,
              .kernel = lb_operand_gemv(p, w, call->cpu, p->choice),
              .k = p->k,
              .n = w->n,
              .batch = p->batch,
              .m = w->m,
              .most = 1,
              .piece = 1,
              .scales = target_of(w, p->k),
              .g = block_of(w, p->k)};
    if (!g.kernel) return false;
    if (g.g) g.blocks = lb_ceil_div(c->along ? g.k : g.n, g.g);
    if (c->along)
        make_lines(&g, c, call->cpu);
    else
        make_strips(&g, call->threads);
    g.x_at = (int64_t)lines_of(1, sizeof(lb_gemvq_table));
    g.x_step = (int64_t)(lines_of(1, sizeof(lb_gemvq_x)) +
                         lb_gemvq_x_size(g.kernel, g.k));
    g.sum_at = g.x_at + g.batch * g.m * g.x_step;
    g.shared = (size_t)g.sum_at;
    if (g.keeps)
        g.shared += lines_of(g.batch * g.m * g.kept * g.slots, sizeof(float));
    if (!c->along)
        g.y_at = (int64_t)lines_of(
            (int64_t)lb_gemvq_cols_size(g.kernel, g.each, g.g), 1);
    g.wide = lb_line_floats(lb_round_up(g.most * g.each, g.kernel->group));
    g.scale_at = g.y_at + (c->along ? 2 : 3) * g.wide * (int64_t)sizeof(float);
    g.scratch = (size_t)g.scale_at;
    const int64_t lines = c->along ? g.most * g.each : lb_min_i64(g.k, LINES);
    if (g.g && !c->scale)
        g.scratch += lines_of((c->along ? g.blocks : lb_ceil_div(g.each, g.g)) *
                                  (c->scale_step ? lines : 1),
                              sizeof(float));
    *to = g;
    return true;
}

static void make_plan(lb_product *p, const lb_weights *w, const lb_call *c,
                      lb_plan *plan)
{
    grid *const g = p->grid;
    if (!make_grid(p, w, c, g)) return;
    plan->shared = g->shared;
    plan->per_thread = g->scratch;
    plan->phases = g->keeps ? 3 : 2;
    plan->units[0] = p->batch * g->m;
    plan->units[1] = p->batch * g->count * g->kept;
    plan->units[2] = p->batch * g->m * lb_ceil_div(g->n, g->piece);
    plan->kernel = g->kernel->name;
}

/* ---- scales ------------------------------------------------------------- */

/* Numbers [at, at + n), one to a line, times the scales of these. */
static void scale_lines(const lb_coded *c, const lb_cpu *cpu, int64_t at,
                        int64_t n, float *x)
{
    float tmp[READ];
    /* Scales of lines follow each other, all share one, or neither. */
    const int64_t most = c->scale_step == 1 ? READ : c->scale_step == 0 ? n : 1;
    for (int64_t i = 0; i < n;) {
        const int64_t m = lb_min_i64(most, n - i);
        const float *s =
            lb_coded_scales(c, cpu, at + i, 0, c->scale_step == 1 ? m : 1, tmp);
        for (const int64_t end = i + m; i < end; i++, s += c->scale_step == 1)
            x[i] *= *s;
    }
}

/* Numbers [at, at + n) of a line, times the scales of their blocks. */
static void scale_blocks(const lb_coded *c, const lb_cpu *cpu, int64_t at,
                         int64_t n, float *x)
{
    float tmp[READ];
    const int64_t g = c->lines.g, blocks = lb_ceil_div(at + n, g);
    for (int64_t b = at / g, m; b < blocks; b += m) {
        m = lb_min_i64(READ, blocks - b);
        const float *s = lb_coded_scales(c, cpu, 0, b, m, tmp);
        for (int64_t k = 0; k < m; k++) {
            const int64_t first = lb_max_i64((b + k) * g, at);
            const int64_t end = lb_min_i64((b + k + 1) * g, at + n);
            for (int64_t i = first - at; i < end - at; i++)
                x[i] *= s[k];
        }
    }
}

static void apply_scales(const lb_coded *c, const lb_cpu *cpu, bool by_line,
                         int64_t at, int64_t n, float *x)
{
    if (by_line)
        scale_lines(c, cpu, at, n, x);
    else
        scale_blocks(c, cpu, at, n, x);
}

/* Block scales of lines [line, line + lines), blocks [block, block + n) of
 * each, for the kernel. */
static void aim_scales(const lb_coded *c, const lb_cpu *cpu, int64_t line,
                       int64_t lines, int64_t block, int64_t n, float *tmp,
                       lb_gemvq_lines *to)
{
    to->scale_step = c->scale_step;
    if (c->scale) {
        to->scale = lb_coded_scales(c, cpu, line, block, n, NULL);
        return;
    }
    to->scale = tmp;
    to->scale_step = c->scale_step ? n : 0;
    if (!c->scale_step) lines = 1;
    const bool together = n == c->scale_step;
    if (together) {
        lb_coded_scales(c, cpu, line, block, n * lines, tmp);
        return;
    }
    for (int64_t i = 0; i < lines; i++)
        lb_coded_scales(c, cpu, line + i, block, n, tmp + i * n);
}

/* ---- x ------------------------------------------------------------------ */

/* Of row i of a batch. */
static lb_gemvq_x *x_of(const grid *g, const lb_work *work, int64_t batch,
                        int64_t i)
{
    return (lb_gemvq_x *)(void *)((char *)work->shared + g->x_at +
                                  (batch * g->m + i) * g->x_step);
}

static void read_x(const lb_weights *w, const lb_cpu *cpu, int64_t batch,
                   int64_t i, int64_t k, float *to)
{
    const lb_block b = w->x->get(w->x, cpu, batch, i, 1, 0, k, to);
    const float *from = b.p;
    if (from == to) return;
    if (b.ks == 1)
        memcpy(to, from, (size_t)k * sizeof *to);
    else
        for (int64_t e = 0; e < k; e++)
            to[e] = from[e * b.ks];
}

static void prepare_x(const grid *g, const lb_weights *w, const lb_work *work,
                      int64_t batch, int64_t i)
{
    const lb_cpu *cpu = work->call->cpu;
    const lb_coded c = lb_coded_at(&w->coded, w->w, batch);
    lb_gemvq_x *x = x_of(g, work, batch, i);
    lb_gemvq_x_place(g->kernel, g->k,
                     (char *)x + lines_of(1, sizeof(lb_gemvq_x)), x);
    read_x(w, cpu, batch, i, g->k, x->number);
    lb_gemvq_x_range(cpu, x);
    if (g->scales == TO_X) {
        apply_scales(&c, cpu, !c.along, 0, g->k, x->number);
        lb_gemvq_x_range(cpu, x);
    }
    if (c.along) lb_gemvq_x_order(cpu, g->kernel, c.high_first, x);
}

/* ---- lines and columns -------------------------------------------------- */

/* Lines that are read together are asked for together, a round of them ahead:
 * less would ask for what is being read. Rounds longer than FAR would be gone
 * from the cache again. */
static int64_t bytes_ahead(const lb_coded *c, const lb_cpu *cpu)
{
    const int64_t ahead = (int64_t)lb_tuning_for(cpu)->prefetch;
    const int64_t line = lb_max_i64(lb_distance(c->byte_step), 1);
    const int64_t lines =
        c->along ? LB_GEMVQ_ROWS * lines_apart(c, cpu) : LB_GEMVQ_COLS;
    return line <= FAR / lines ? lb_round_up(ahead, line * lines) : ahead;
}

static lb_gemvq_lines lines_at(const grid *g, const lb_coded *c,
                               const lb_work *work, int64_t n)
{
    return (lb_gemvq_lines){
        .codes = c->bytes,
        .step = c->byte_step,
        .g = g->g,
        .n = n,
        .high_first = c->high_first,
        .table = work->shared,
        .ahead = bytes_ahead(c, work->call->cpu),
        .cpu = work->call->cpu,
    };
}

/* Results j .. j + n of row i, and where they go. */
static void finish(const lb_product *p, const grid *g, const lb_weights *w,
                   const lb_work *work, int64_t batch, int64_t i, int64_t j,
                   int64_t n, float *y)
{
    const lb_coded c = lb_coded_at(&w->coded, w->w, batch);
    const double unit =
        x_of(g, work, batch, i)->unit * (double)g->kernel->factor;
    float *scale = y + g->wide;
    if (g->scales == TO_Y) {
        for (int64_t e = 0; e < n; e++)
            scale[e] = 1;
        apply_scales(&c, work->call->cpu, c.along, j, n, scale);
        for (int64_t e = 0; e < n; e++)
            y[e] = (float)((double)y[e] * unit * (double)scale[e]);
    } else if (unit != 1) {
        for (int64_t e = 0; e < n; e++)
            y[e] = (float)((double)y[e] * unit);
    }
    lb_weights_put(p, w, work, batch, i, 1, j, n, y, n, NULL);
}

static void run_lines(const lb_product *p, const grid *g, const lb_weights *w,
                      const lb_work *work, int64_t batch, int64_t j, int64_t n)
{
    const lb_cpu *cpu = work->call->cpu;
    const lb_coded c = lb_coded_at(&w->coded, w->w, batch);
    float *y = (float *)(void *)((char *)work->scratch + g->y_at);
    lb_gemvq_lines lines = lines_at(g, &c, work, g->k);
    lines.codes += j * c.byte_step;
    if (g->g)
        aim_scales(&c, cpu, j, n, 0, g->blocks,
                   (float *)(void *)((char *)work->scratch + g->scale_at),
                   &lines);
    for (int64_t i = 0; i < g->m; i++) {
        lb_gemvq_run_rows(g->kernel, &lines, x_of(g, work, batch, i), n,
                          lines_apart(&c, cpu), y);
        finish(p, g, w, work, batch, i, j, n, y);
    }
}

static float *kept_sum(const grid *g, const lb_work *work, int64_t batch,
                       int64_t i, int64_t sum)
{
    float *first = (float *)(void *)((char *)work->shared + g->sum_at);
    return first + ((batch * g->m + i) * g->kept + sum) * g->slots;
}

/* One sum of columns j, j + 1, ..., in slots: to y, or of all rows to where it
 * is kept. */
static void run_sum(const grid *g, const lb_weights *w, const lb_work *work,
                    int64_t batch, int64_t sum, int64_t j, float *y)
{
    const lb_cpu *cpu = work->call->cpu;
    const lb_coded c = lb_coded_at(&w->coded, w->w, batch);
    const int64_t line = sum * LINES;
    const int64_t n = lb_min_i64(g->each, g->n - j);
    const int64_t count = lb_min_i64(LINES, g->k - line);
    lb_gemvq_lines lines = lines_at(g, &c, work, n);
    lines.codes += line * c.byte_step + j * c.bits / 8;
    if (g->g)
        aim_scales(&c, cpu, line, count, j / g->g, lb_ceil_div(n, g->g),
                   (float *)(void *)((char *)work->scratch + g->scale_at),
                   &lines);
    const int64_t groups = lb_ceil_div(g->m, lb_gemvq_cols_rows(g->kernel));
    for (int64_t at = 0; at < groups; at++) {
        const int64_t i = lb_group_row(g->m, groups, at);
        lb_gemvq_run_cols(g->kernel, &lines,
                          (int)(lb_group_row(g->m, groups, at + 1) - i),
                          x_of(g, work, batch, i)->number + line,
                          g->x_step / (int64_t)sizeof(float), count,
                          y ? y : kept_sum(g, work, batch, i, sum) + j,
                          g->kept * g->slots, work->scratch);
    }
}

/* All sums of a strip, or the one that is this unit's. */
static void run_strip(const lb_product *p, const grid *g, const lb_weights *w,
                      const lb_work *work, int64_t batch, int64_t sum,
                      int64_t j)
{
    const int64_t n = lb_min_i64(g->each, g->n - j);
    float *y = (float *)(void *)((char *)work->scratch + g->y_at);
    float *part = y + g->wide, *all = part + g->wide;
    if (g->keeps) {
        run_sum(g, w, work, batch, sum, j, NULL);
        return;
    }
    run_sum(g, w, work, batch, 0, j, all);
    for (int64_t s = 1; s < g->sums; s++) {
        run_sum(g, w, work, batch, s, j, part);
        for (int64_t i = 0; i < lb_round_up(n, g->kernel->group); i++)
            all[i] += part[i];
    }
    lb_gemvq_cols_order(g->kernel, w->coded.high_first, all, n, y);
    finish(p, g, w, work, batch, 0, j, n, y);
}

/* Units [u, hi), or as many as are run as one; returns the next. */
static int64_t run_units(const lb_product *p, const grid *g,
                         const lb_weights *w, const lb_work *work, int64_t u)
{
    const int64_t first = u % g->count, j = first * g->each;
    const int64_t units =
        lb_min_i64(lb_min_i64(g->most, g->count - first), work->hi - u);
    run_lines(p, g, w, work, u / g->count, j,
              lb_min_i64(units * g->each, g->n - j));
    return u + units;
}

/* Of row i. */
static void add_sums(const lb_product *p, const grid *g, const lb_weights *w,
                     const lb_work *work, int64_t batch, int64_t i, int64_t j)
{
    const int64_t n = lb_min_i64(g->piece, g->n - j);
    const int64_t slots = lb_round_up(n, g->kernel->group);
    float *y = (float *)(void *)((char *)work->scratch + g->y_at);
    float *const all = y + 2 * g->wide;
    memcpy(all, kept_sum(g, work, batch, i, 0) + j,
           (size_t)slots * sizeof *all);
    for (int64_t s = 1; s < g->kept; s++) {
        const float *part = kept_sum(g, work, batch, i, s) + j;
        for (int64_t e = 0; e < slots; e++)
            all[e] += part[e];
    }
    lb_gemvq_cols_order(g->kernel, w->coded.high_first, all, n, y);
    finish(p, g, w, work, batch, i, j, n, y);
}

static void run(const lb_product *p, const lb_work *work)
{
    const grid *const g = p->grid;
    const lb_weights *const w = &g->w;
    for (int64_t u = work->lo, next; u < work->hi; u = next) {
        next = u + 1;
        if (work->phase == 0) {
            if (u == 0)
                lb_gemvq_table_init(work->shared, w->coded.numbers.level,
                                    w->coded.bits);
            prepare_x(g, w, work, u / g->m, u % g->m);
        } else if (work->phase == 2) {
            const int64_t pieces = lb_ceil_div(g->n, g->piece);
            const int64_t row = u / pieces;
            add_sums(p, g, w, work, row / g->m, row % g->m,
                     u % pieces * g->piece);
        } else if (w->coded.along) {
            next = run_units(p, g, w, work, u);
        } else {
            const int64_t strip = u % g->count, sum = u / g->count % g->kept;
            run_strip(p, g, w, work, u / g->count / g->kept, sum,
                      strip * g->each);
        }
    }
}

const lb_algorithm lb_coded_thin = {"gemv", make_plan, run};
