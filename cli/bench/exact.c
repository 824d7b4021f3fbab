/* exact.c - see exact.h. */
#include "exact.h"

#include <math.h>
#include <stdlib.h>

#include "bench_rows.h"

enum { COLUMNS = 256, EDGE = 64, GROUP = 4 };

/* All columns, or EDGE at each end and the others evenly between them. */
static void choose_columns(exact *e)
{
    const int64_t inner = e->columns - 2 * EDGE;
    for (int64_t i = 0; i < e->columns; i++) {
        if (e->columns == e->n || i < EDGE)
            e->column[i] = i;
        else if (i < EDGE + inner)
            e->column[i] = EDGE + (i - EDGE) * (e->n - 2 * EDGE) / inner;
        else
            e->column[i] = e->n - (e->columns - i);
    }
}

/* f64, row-major. */
static const double *doubles(lb_ctx *cx, lb_array *a)
{
    lb_array *const d = lb_materialize(cx, lb_convert(cx, a, LB_F64));
    return d ? lb_data(d) : NULL;
}

/* (columns, k): the columns of W that are used. */
static const double *chosen(lb_ctx *cx, const exact *e, lb_array *w,
                            bench_orient orient)
{
    lb_array *const index =
        lb_wrap(cx, LB_I64, LB_SHAPE(e->columns), e->column, NULL, NULL);
    if (orient == ORIENT_W) w = lb_transpose(cx, w, NULL);
    return doubles(cx, lb_take(cx, lb_convert(cx, w, LB_F32), index, 0));
}

/* Columns in groups: x is loaded once per group, and the sums do not depend on
 * each other. */
static void multiply(exact *e, const double *x, const double *w, int64_t k)
{
    for (int64_t c = 0; c < e->columns; c += GROUP) {
        const double *from[GROUP];
        for (int64_t g = 0; g < GROUP; g++)
            from[g] = w + (c + g < e->columns ? c + g : c) * k;
        for (int64_t i = 0; i < e->m; i++) {
            double sum[GROUP] = {0};
            for (int64_t j = 0; j < k; j++)
                for (int g = 0; g < GROUP; g++)
                    sum[g] += x[i * k + j] * from[g][j];
            for (int64_t g = 0; g < GROUP && c + g < e->columns; g++)
                e->want[i * e->columns + c + g] = sum[g];
        }
    }
}

bool exact_open(exact *e, lb_ctx *cx, lb_array *x, lb_array *w,
                bench_orient orient)
{
    const int64_t n = lb_dim(w, orient == ORIENT_WT ? 0 : 1);
    *e = (exact){.m = lb_dim(x, 0), .n = n};
    e->columns = n < COLUMNS ? n : COLUMNS;
    e->column = calloc((size_t)e->columns, sizeof *e->column);
    e->want = calloc((size_t)(e->m * e->columns), sizeof *e->want);
    if (!e->column || !e->want) {
        exact_close(e);
        return bench_fail("out of memory");
    }
    choose_columns(e);
    lb_enter(cx);
    const double *const px = doubles(cx, x);
    const double *const pw = chosen(cx, e, w, orient);
    if (px && pw) multiply(e, px, pw, lb_dim(x, 1));
    lb_leave(cx);
    if (px && pw) return true;
    exact_close(e);
    return bench_fail("%s", lb_error(cx));
}

void exact_close(exact *e)
{
    free(e->column);
    free(e->want);
    *e = (exact){0};
}

double exact_error(const exact *e, lb_ctx *cx, lb_array *y)
{
    lb_enter(cx);
    const int64_t rows = lb_dim(y, 0);
    const double *const got = doubles(cx, y);
    double off = 0, all = 0;
    for (int64_t i = 0; got && i < rows; i++) {
        for (int64_t c = 0; c < e->columns; c++) {
            const double want = e->want[i * e->columns + c];
            const double d = got[i * e->n + e->column[c]] - want;
            off += d * d;
            all += want * want;
        }
    }
    lb_leave(cx);
    if (!got) return NAN;
    return off == 0 ? 0 : sqrt(off / all);
}
