/* int_rows.c - rows of x as whole numbers; see int_panels.h. */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "matmul/int_panels.h"

/* Scales of x and of w are multiplied with a sum one after the other; these
 * powers of 2, which cancel, keep the first product in the range of normal
 * numbers for scales of weights from 1e-30 to 1e30. */
#define UP (1 / LB_INT_DOWN)

const float *lb_line_up(const float *x, int64_t step, int64_t n,
                        const float *factor, float *tmp)
{
    if (step == 1 && !factor) return x;
    for (int64_t k = 0; k < n; k++)
        tmp[k] = factor ? x[k * step] * factor[k] : x[k * step];
    return tmp;
}

int64_t lb_int_rows_room(const lb_int_panels *p)
{
    return (p->kernel->mr + 2) * p->kc;
}

/* The order of fields: of 32 bytes each field in turn, the lowest first. */
static inline void sort_fields(const int fields, const bool high_first,
                               const float *x, int64_t n, float *to)
{
    enum { BYTES = 32 };
    const int64_t group = (int64_t)BYTES * fields;
    const int last = high_first ? fields - 1 : 0;
    int64_t k = 0;
    for (; k + group <= n; k += group)
        for (int f = 0; f < fields; f++)
            for (int b = 0; b < BYTES; b++)
                to[k + (f ^ last) * BYTES + b] = x[k + b * fields + f];
    if (k == n) return;
    memset(to + k, 0, (size_t)group * sizeof *to);
    for (int64_t i = 0; i < n - k; i++)
        to[k + (i % fields ^ last) * BYTES + i / fields] = x[k + i];
}

enum { PARTS = 8 };

/* Magnitudes of n <= PARTS numbers, which compare as their bits do. */
static inline void take_sizes(int64_t n, const float *x, int32_t *most,
                              float *part)
{
    for (int64_t i = 0; i < n; i++) {
        const float size = fabsf(x[i]);
        int32_t bits;
        memcpy(&bits, &size, sizeof bits);
        most[i] = bits > most[i] ? bits : most[i];
        part[i] += size;
    }
}

float lb_int_largest_and_sum(int64_t n, const float *x, float *sum)
{
    int32_t most[PARTS] = {0};
    float part[PARTS] = {0}, largest;
    int64_t k = 0;
    for (; k + PARTS <= n; k += PARTS)
        take_sizes(PARTS, x + k, most, part);
    take_sizes(n - k, x + k, most, part);
    *sum = 0;
    for (int i = 0; i < PARTS; i++) {
        most[0] = most[i] > most[0] ? most[i] : most[0];
        *sum += part[i];
    }
    memcpy(&largest, most, sizeof largest);
    return largest;
}

/* What numbers are multiplied with, so that they and their sums in lanes stay
 * within bounds; 0 for zeros, NaN if one is not finite. If x is so small that
 * this is too large for a float, it is inf, and if x is so large that a lane's
 * sum is, negative. */
static float factor_of(lb_int_largest *largest, lb_int_bound bound, int64_t n,
                       const float *x)
{
    float lane;
    const float most = largest(n, x, &lane);
    if (!isfinite(most)) return (float)NAN;
    if (most == 0) return 0;
    const float factor = bound.one / most;
    if (bound.lane == 0) return factor;
    return isinf(lane) ? -1 : fminf(factor, bound.lane / lane);
}

lb_int_row lb_int_row_of(lb_int_largest *largest, lb_int_bound bound, int64_t n,
                         const float *x, float *tmp)
{
    const float factor = factor_of(largest, bound, n, x);
    if (isinf(factor) || factor < 0) { /* once more, on another scale */
        const float lift = factor < 0 ? 0x1p-20f : 0x1p100f;
        for (int64_t k = 0; k < n; k++)
            tmp[k] = x[k] * lift;
        const float other = factor_of(largest, bound, n, tmp);
        return (lb_int_row){tmp, other, UP / other / lift};
    }
    if (isnan(factor)) {
        memset(tmp, 0, (size_t)n * sizeof *tmp);
        return (lb_int_row){tmp, 0, factor};
    }
    return (lb_int_row){x, factor, factor == 0 ? 0 : UP / factor};
}

/* Returns the scale. */
static float round_row(const lb_int_panels *p, const float *x, int64_t n,
                       int16_t *to, int64_t apart, float *tmp, int32_t *sum)
{
    const lb_int_bound bound = {LB_DOTINT_MOST_X,
                                p->fine ? LB_DOTINT_FINE_X : 0};
    const lb_int_row row = lb_int_row_of(p->kernel->largest, bound, n, x, tmp);
    *sum = p->kernel->round(n, row.x, row.factor, to, apart);
    return row.scale;
}

/* Asks for the same part of the rows that come next. It may lie past the end,
 * so this is never a pointer that C looks at. */
static void fetch_rows(const lb_block *b, int rows, int64_t n)
{
    const int64_t size = sizeof(float);
    for (int r = rows; r < 2 * rows; r++) {
        const uintptr_t at = (uintptr_t)b->p + (uintptr_t)(r * b->rs * size);
        for (int64_t i = 0; i < n * size; i += 64)
            __builtin_prefetch((const void *)(at + (uintptr_t)i));
    }
}

void lb_int_rows_pack(const lb_int_panels *p, lb_row_slab *x, int64_t i,
                      int rows, int64_t k, int64_t n, const float *factor,
                      lb_dotint_head *head, int16_t *to, float *tmp)
{
    const int lanes = p->kernel->lanes, nr = p->kernel->nr;
    float *const row = tmp, *const sorted = tmp + p->kc;
    float *const block = sorted + p->kc;
    const lb_block b = lb_row_slab_get(x, i, rows, k, n, block);
    if (x->x->in_place && !x->room && b.ks == 1) fetch_rows(&b, rows, n);
    const int64_t filled = lb_ceil_div(n, p->step) * p->step;
    for (int r = 0; r < rows; r++) {
        const float *at = (const float *)b.p + r * b.rs;
        at = lb_line_up(at, b.ks, n, factor, row);
        if (p->fields == 2)
            sort_fields(2, p->high_first, at, n, sorted);
        else if (p->fields == 4)
            sort_fields(4, p->high_first, at, n, sorted);
        const bool in_order = p->fields == 1;
        const float s = round_row(p, in_order ? at : sorted,
                                  in_order ? n : filled, to + r * lanes,
                                  (int64_t)rows * lanes, row, &head->sum[r]);
        for (int j = 0; j < nr; j++)
            head->scale[r * nr + j] = s;
    }
}
