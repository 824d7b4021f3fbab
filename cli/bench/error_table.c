/* error_table.c - see error_table.h.
 *
 * Each error is the largest over several M, chosen so that the algorithms for
 * one, few and many rows of x are all included.
 */
#include "error_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_rows.h"
#include "bench_weights.h"
#include "exact.h"

enum { OUTPUTS = 256, OUTLIERS = 8 };

static const int64_t rows_of_x[] = {1, 8, 33};
enum { ROWS = 33, N_ROWS = sizeof rows_of_x / sizeof *rows_of_x };

typedef enum inputs { NORMAL, WITH_OUTLIERS, WITH_SUBNORMALS, N_INPUTS } inputs;
static const char *const inputs_name[] = {"normal", "outliers", "subnormal"};

/* NaN: no bound. (One scale for 256 or 1024 values in 8 bits cannot represent
 * both an outlier and its neighbours.) */
static double bound(lb_precision precision, inputs kind)
{
    const bool outliers = kind == WITH_OUTLIERS;
    if (precision == LB_PRECISION_FAST) return outliers ? 1e-3 : 3e-4;
    if (precision == LB_PRECISION_FASTEST) return outliers ? NAN : 1e-2;
    return 1e-6;
}

typedef struct table {
    const bench_options *o;
    lb_ctx *cx;
    const char *format; /* current M */
    bench_orient orient;
    /* by index of precision and of K; NaN: shape not supported */
    double error[LIST_MAX][N_INPUTS][LIST_MAX];
    int above;
} table;

/* ---- x ------------------------------------------------------------------ */

static void disturb(float *x, int64_t k, inputs kind)
{
    for (int64_t i = 0; i < ROWS; i++, x += k) {
        if (kind == WITH_OUTLIERS)
            for (int64_t j = 0; j < OUTLIERS && j < k; j++)
                x[(j * k / OUTLIERS + i * 7) % k] *= 100;
        if (kind == WITH_SUBNORMALS)
            for (int64_t j = 1 + i % 5; j < k; j += 5)
                x[j] *= 1e-40F;
    }
}

static lb_array *make_x(lb_ctx *cx, lb_dtype act, int64_t k, inputs kind)
{
    const lb_shape shape = LB_SHAPE(ROWS, k);
    const size_t bytes = (size_t)(ROWS * k) * sizeof(float);
    float *const x = malloc(bytes);
    lb_array *a = lb_random_normal(cx, (lb_key){2, 0}, LB_F32, shape);
    if (!x || !lb_read(cx, a, x, bytes)) {
        free(x);
        return NULL;
    }
    disturb(x, k, kind);
    a = lb_convert(cx, lb_from(cx, LB_F32, shape, x), act);
    free(x);
    return a;
}

/* ---- errors ------------------------------------------------------------- */

static double worst_of_rows(table *t, const exact *e, lb_array *x, lb_array *w,
                            lb_precision precision)
{
    double worst = 0;
    for (int i = 0; i < N_ROWS; i++) {
        lb_enter(t->cx);
        lb_array *const some =
            lb_slice(t->cx, x, (int64_t[]){0, 0},
                     (int64_t[]){rows_of_x[i], lb_dim(x, 1)}, NULL);
        lb_array *const y =
            weights_product(t->cx, some, w, t->orient, precision);
        const double error = y ? exact_error(e, t->cx, y) : INFINITY;
        lb_leave(t->cx);
        worst = isnan(error) ? INFINITY : fmax(worst, error);
    }
    return worst;
}

/* All precisions and dtypes of x for the d-th K. */
static bool fill_depth(table *t, lb_dtype act, int d)
{
    const int64_t k = t->o->depths.at[d];
    bool ok = true;
    lb_array *const w =
        weights_make(t->cx, t->format, t->orient, OUTPUTS, k, (lb_key){1, 0});
    if (!w) lb_clear(t->cx); /* e.g. rows that are not whole blocks */
    for (int kind = 0; kind < N_INPUTS; kind++) {
        exact e = {0};
        lb_array *const x = w ? make_x(t->cx, act, k, (inputs)kind) : NULL;
        const bool there = x && exact_open(&e, t->cx, x, w, t->orient);
        if (w && !there) ok = bench_fail("%s", lb_error(t->cx));
        for (int p = 0; p < t->o->precisions.n; p++)
            t->error[p][kind][d] =
                there ? worst_of_rows(t, &e, x, w,
                                      (lb_precision)t->o->precisions.at[p])
                      : NAN;
        exact_close(&e);
    }
    if (lb_error_status(t->cx) == LB_OK) return ok;
    bench_fail("%s: %s", t->format, lb_error(t->cx));
    lb_clear(t->cx);
    return false;
}

/* ---- the table ---------------------------------------------------------- */

static void show_json(const table *t, lb_dtype act, int p, inputs kind, int d,
                      double most)
{
    row_begin();
    row_text("format", t->format);
    row_text("precision", precision_name((lb_precision)t->o->precisions.at[p]));
    row_text("orient", orient_name(t->orient));
    row_text("act", lb_dtype_name(act));
    row_text("x", inputs_name[kind]);
    row_integer("threads", lb_threads(t->cx));
    row_integer("k", t->o->depths.at[d]);
    row_number("error", t->error[p][kind][d]);
    row_number("bound", most);
    row_end();
}

static void show_row(table *t, lb_dtype act, int p, inputs kind)
{
    const lb_precision precision = (lb_precision)t->o->precisions.at[p];
    const double most = bound(precision, kind);
    const bool text = !t->o->json;
    if (text)
        printf("%-8s %-9s %-3s %-4s %-9s", t->format, precision_name(precision),
               orient_name(t->orient), lb_dtype_name(act), inputs_name[kind]);
    for (int d = 0; d < t->o->depths.n; d++) {
        const double error = t->error[p][kind][d];
        if (error > most) t->above++;
        if (!text)
            show_json(t, act, p, kind, d, most);
        else if (isnan(error))
            printf(" %7s ", "-");
        else
            printf(" %7.1e%c", error, error > most ? '!' : ' ');
    }
    if (text && isnan(most))
        printf("  none\n");
    else if (text)
        printf("  %.0e\n", most);
    fflush(stdout);
}

static void show_head(const table *t)
{
    printf("level %s, %d threads; N %d, largest error over M 1, 8, 33; -: "
           "shape not supported by the format; !: above the bound\n\n%-8s %-9s "
           "%-3s %-4s %-9s",
           lb_isa(t->cx), lb_threads(t->cx), OUTPUTS, "format", "precision",
           "W", "x", "values");
    for (int d = 0; d < t->o->depths.n; d++)
        printf(" K %-6lld", (long long)t->o->depths.at[d]);
    printf("  bound\n");
}

static bool run_format(table *t, lb_dtype act)
{
    bool ok = true;
    for (int d = 0; d < t->o->depths.n; d++) {
        lb_enter(t->cx);
        ok = fill_depth(t, act, d) && ok;
        lb_leave(t->cx);
    }
    for (int p = 0; p < t->o->precisions.n; p++)
        for (int kind = 0; kind < N_INPUTS; kind++)
            show_row(t, act, p, (inputs)kind);
    return ok;
}

static bool run_table(table *t)
{
    const bench_options *o = t->o;
    if (!o->json) show_head(t);
    bool ok = true;
    for (int f = 0; f < o->formats.n; f++) {
        for (int r = 0; r < o->orients.n; r++) {
            for (int a = 0; a < o->acts.n; a++) {
                t->format = o->formats.at[f];
                t->orient = (bench_orient)o->orients.at[r];
                ok = run_format(t, (lb_dtype)o->acts.at[a]) && ok;
            }
        }
    }
    if (t->above) bench_fail("%d errors exceed their bound", t->above);
    return ok && !t->above;
}

bool error_table_run(const bench_options *o)
{
    bool ok = true;
    for (int i = 0; i < o->threads.n; i++) {
        table t = {.o = o, .cx = bench_context(o, (int)o->threads.at[i])};
        if (!t.cx) return false;
        ok = run_table(&t) && ok;
        lb_close(t.cx);
    }
    return ok;
}
