/* sweep.c - see sweep.h.
 *
 * Weights are created once for all thread counts, precisions and M, by a
 * context with all threads; each thread count has a context of its own for
 * measuring.
 */
#include "sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_rows.h"
#include "bench_weights.h"
#include "cell.h"
#include "exact.h"
#include "limits.h"
#include "roofline.h"
#include "sampling.h"

#define DRAM_BYTES (640.0 * 1024 * 1024)

typedef struct sweep {
    const bench_options *o;
    lb_ctx *maker;
    lb_ctx *cx[LIST_MAX];   /* for each thread count */
    limits limit[LIST_MAX]; /* likewise, with_limits */
    cell *cells;            /* for the plot */
    int n_cells;
} sweep;

/* Shared by all cells of a format. */
typedef struct sweep_subject {
    cell plain; /* fields set later are 0 */
    lb_array *x;
    lb_array **w; /* the first one is used for warm */
    int n_w;
    exact reference;
} sweep_subject;

/* They take seconds, which callers that read JSON may not want to wait. */
static bool with_limits(const bench_options *o)
{
    return !o->json || o->svg;
}

/* ---- one cell ----------------------------------------------------------- */

typedef struct sweep_call {
    lb_ctx *cx;
    lb_array *x;
    lb_array *const *w;
    int n_w, next; /* weights, and the index of the next one */
    const cell *c;
} sweep_call;

static void multiply(void *arg)
{
    sweep_call *const r = arg;
    lb_drop(r->cx, weights_product(r->cx, r->x, r->w[r->next], r->c->orient,
                                   r->c->precision));
    r->next = (r->next + 1) % r->n_w;
}

static lb_array *first_rows(lb_ctx *cx, lb_array *x, int64_t m)
{
    return lb_slice(cx, x, (int64_t[]){0, 0}, (int64_t[]){m, lb_dim(x, 1)},
                    NULL);
}

static bool measure(lb_ctx *cx, const sweep_subject *s, double seconds, cell *c)
{
    lb_enter(cx);
    sweep_call r = {
        .cx = cx, .x = first_rows(cx, s->x, c->m), .w = s->w, .c = c};
    r.n_w = c->place == PLACE_DRAM ? s->n_w : 1;
    lb_array *const y =
        weights_product(cx, r.x, s->w[0], c->orient, c->precision);
    c->isa = lb_isa(cx);
    c->error = y ? exact_error(&s->reference, cx, y) : NAN;
    weights_explain(cx, r.x, s->w[0], c->orient, c->precision, c->kernel,
                    sizeof c->kernel);
    lb_drop(cx, y);
    if (lb_error_status(cx) == LB_OK) {
        sample_side side = {.run = multiply, .arg = &r};
        sample(&side, 1, seconds);
        const double gflop = cell_flops(c) * 1e-9;
        c->gflops = gflop / side.median;
        c->best = gflop / side.best;
        c->samples = side.samples;
        c->clean = side.clean;
    }
    lb_leave(cx);
    if (lb_error_status(cx) == LB_OK) return true;
    bench_fail("%s, %s, M %lld: %s", c->format, precision_name(c->precision),
               (long long)c->m, lb_error(cx));
    lb_clear(cx);
    return false;
}

static bool show(sweep *s, const cell *c)
{
    if (s->o->json)
        cell_print_json(c);
    else
        cell_print(c);
    cell *const more =
        realloc(s->cells, (size_t)(s->n_cells + 1) * sizeof *more);
    if (!more) return bench_fail("out of memory");
    s->cells = more;
    s->cells[s->n_cells++] = *c;
    return true;
}

static bool measure_all(sweep *s, const sweep_subject *u)
{
    const bench_options *o = s->o;
    const bool dense = weights_dense(u->plain.format) != LB_NO_DTYPE;
    bool ok = true;
    for (int t = 0; t < o->threads.n; t++) {
        for (int p = 0; p < o->places.n; p++) {
            /* dense weights have a single precision, whatever is requested */
            for (int q = 0; q < (dense ? 1 : o->precisions.n); q++) {
                for (int i = 0; i < o->m.n; i++) {
                    cell c = u->plain;
                    c.threads = (int)o->threads.at[t];
                    c.place = (bench_place)o->places.at[p];
                    c.precision = dense ? LB_PRECISION_HIGHEST
                                        : (lb_precision)o->precisions.at[q];
                    c.m = o->m.at[i];
                    if (!measure(s->cx[t], u, o->seconds, &c)) {
                        ok = false;
                        continue;
                    }
                    if (with_limits(o)) {
                        const limit most = limits_product(&s->limit[t], &c);
                        c.limit = most.gflops;
                        c.limit_name = most.name;
                    }
                    ok = show(s, &c) && ok;
                }
            }
        }
    }
    return ok;
}

/* ---- subjects ----------------------------------------------------------- */

static bool wanted(const number_list *list, int64_t value)
{
    for (int i = 0; i < list->n; i++)
        if (list->at[i] == value) return true;
    return false;
}

static int64_t largest(const number_list *list)
{
    int64_t most = 0;
    for (int i = 0; i < list->n; i++)
        if (list->at[i] > most) most = list->at[i];
    return most;
}

/* The weights, and as many copies as needed to exceed the caches. */
static bool make_weights(sweep *s, sweep_subject *u)
{
    const cell *const c = &u->plain;
    lb_array *const w = weights_make(s->maker, c->format, c->orient, c->n, c->k,
                                     (lb_key){1, 0});
    if (!w) return false;
    const double bytes = u->plain.weight_bytes = (double)lb_nbytes(w);
    const bool dram = wanted(&s->o->places, PLACE_DRAM);
    u->n_w = dram && bytes > 0 ? (int)ceil(DRAM_BYTES / bytes) : 1;
    if (dram && u->n_w < 2) u->n_w = 2;
    u->w = calloc((size_t)u->n_w, sizeof *u->w);
    if (!u->w) return bench_fail("out of memory");
    u->w[0] = w;
    for (int i = 1; i < u->n_w; i++) {
        u->w[i] = weights_copy(s->maker, w, c->format, c->orient);
        if (!u->w[i]) return false;
    }
    return true;
}

static bool run_subject(sweep *s, const cell *plain)
{
    sweep_subject u = {.plain = *plain};
    lb_ctx *const cx = s->maker;
    lb_enter(cx);
    u.x = lb_random_normal(cx, (lb_key){2, 0}, plain->act,
                           LB_SHAPE(largest(&s->o->m), plain->k));
    bool ok = u.x && make_weights(s, &u);
    if (ok && exact_open(&u.reference, cx, u.x, u.w[0], plain->orient)) {
        ok = measure_all(s, &u);
        exact_close(&u.reference);
    } else {
        ok = bench_fail("%s %lldx%lld: %s", plain->format, (long long)plain->n,
                        (long long)plain->k, lb_error(cx));
        lb_clear(cx);
    }
    lb_leave(cx);
    free(u.w);
    return ok;
}

static bool run_shape(sweep *s, cell plain)
{
    const bench_options *o = s->o;
    bool ok = true;
    for (int r = 0; r < o->orients.n; r++) {
        for (int a = 0; a < o->acts.n; a++) {
            for (int f = 0; f < o->formats.n; f++) {
                plain.orient = (bench_orient)o->orients.at[r];
                plain.act = (lb_dtype)o->acts.at[a];
                plain.format = o->formats.at[f];
                ok = run_subject(s, &plain) && ok;
            }
        }
    }
    return ok;
}

/* ---- all ---------------------------------------------------------------- */

static void close_sweep(sweep *s)
{
    for (int t = 0; t < s->o->threads.n; t++) {
        lb_close(s->cx[t]);
        limits_close(&s->limit[t]);
    }
    lb_close(s->maker);
    free(s->cells);
}

static bool open_sweep(sweep *s)
{
    const bench_options *o = s->o;
    if (o->svg && !roofline_check(o->svg)) return false;
    s->maker = bench_context(o, 0);
    if (!s->maker) return false;
    for (int t = 0; t < o->threads.n; t++) {
        const int threads = (int)o->threads.at[t];
        s->cx[t] = bench_context(o, threads);
        if (!s->cx[t]) return false;
        if (!with_limits(o)) continue;
        if (!limits_open(&s->limit[t], threads, lb_isa(s->cx[t]), o->seconds))
            return false;
        if (!o->json) limits_print(&s->limit[t]);
    }
    return true;
}

static bool run_shapes(sweep *s)
{
    const bench_options *o = s->o;
    bool ok = true;
    if (!o->json) {
        printf("level %s; ~: samples were preempted\n\n", lb_isa(s->maker));
        cell_print_head();
    }
    for (int i = 0; i < o->shapes.n; i++) {
        const cell plain = {.n = o->shapes.at[i].n, .k = o->shapes.at[i].k};
        ok = run_shape(s, plain) && ok;
    }
    if (o->svg)
        ok = roofline_draw(o->svg, s->cells, s->n_cells,
                           &s->limit[o->threads.n - 1]) &&
             ok;
    return ok;
}

bool sweep_run(const bench_options *o)
{
    sweep s = {.o = o};
    const bool ok = open_sweep(&s) && run_shapes(&s);
    close_sweep(&s);
    return ok;
}
