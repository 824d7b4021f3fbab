/* int_dot_loops.h - the loops of int_dot.h. Each level includes it with
 *
 *   DOT_FN      how its functions are declared
 *   DOT_ROWS    rows of x at once, at most LB_INT_ROWS
 *   DOT_TABLE   the lb_int_dot to define, and DOT_NAME, its name
 *
 * and with lanes of its own, 16 of each:
 *
 *   dot_ints, dot_floats
 *   dot_take(code)                 64 codes as dot_codes
 *   dot_products(codes, digit, c)  their sums of four products with chunk c
 *   dot_convert(ints)              to floats
 *   dot_fma(a, b, c)               a * b + c, rounded once
 *   dot_all(f), dot_load(p), dot_store(p, floats)
 *   dot_fold(floats)               adds lanes i and i + 8, then i + 4, 2, 1
 *   dot_scaled(scale, run)         the scales of a panel as dot_panel,
 *   dot_scales(panel, c, run)      and those of the lanes of chunk c
 *   dot_sixteenths(bias, run)      of each 16 values of a panel
 */
#include <math.h>
#include <string.h>

#include "kernels/int_dot.h"

/* ---- x ------------------------------------------------------------------- */

/* The largest magnitude; what is not finite is larger than all. */
DOT_FN float dot_largest(const float *x, int n)
{
    int32_t most = 0;
    for (int i = 0; i < n; i++) {
        int32_t u;
        memcpy(&u, &x[i], sizeof u);
        u &= INT32_MAX;
        most = u > most ? u : most;
    }
    float top;
    memcpy(&top, &most, sizeof top);
    return top;
}

/* To the nearest, ties to even, for magnitudes below 2^22. */
DOT_FN float dot_nearest(float x)
{
    return (x + 0x1.8p23f) - 0x1.8p23f;
}

DOT_FN void dot_starts(lb_int_digit *d)
{
    for (int i = 0; i < LB_INT_PANEL / 4; i++) {
        const int8_t *c = d->code + 4 * i;
        d->start[i] = -128 * (c[0] + c[1] + c[2] + c[3]);
    }
}

/* n <= 256 values. */
DOT_FN void dot_round_panel(const float *x, int n, int digits, lb_int_x *to)
{
    const float largest = dot_largest(x, n);
    const float top = digits == 2 ? LB_INT_MOST : 127;
    const bool finite = largest <= 0x1.fffffep127f;
    /* x may be so small that top / largest is not finite. */
    const float size = largest < 0x1p-100f ? 0x1p-100f : largest;
    const float by = finite ? top / size : 0;
    memset(to, 0, sizeof *to);
    to->scale = finite ? size / top : (float)NAN;
    float whole[LB_INT_PANEL];
    for (int i = 0; i < n; i++)
        whole[i] = dot_nearest((finite ? x[i] : 0) * by);
    for (int i = n; i < LB_INT_PANEL; i++)
        whole[i] = 0;
    for (int s = 0; s < LB_INT_LANES; s++) {
        float sum = 0; /* exact */
        for (int i = 16 * s; i < 16 * s + 16; i++)
            sum += whole[i];
        to->sum[s] = sum * to->scale;
    }
    int8_t *const high = to->digit[0].code, *const low = to->digit[1].code;
    for (int i = 0; i < LB_INT_PANEL && digits == 1; i++)
        high[i] = (int8_t)(int)whole[i];
    for (int i = 0; i < LB_INT_PANEL && digits == 2; i++) {
        const float h = dot_nearest(whole[i] * (1.0f / LB_INT_BASE));
        high[i] = (int8_t)(int)h;
        low[i] = (int8_t)(int)(whole[i] - LB_INT_BASE * h);
    }
    dot_starts(&to->digit[0]);
    if (digits == 2) dot_starts(&to->digit[1]);
}

DOT_FN void dot_round(const float *x, int64_t k, int digits, lb_int_x *to)
{
    for (; k > 0; k -= LB_INT_PANEL, x += LB_INT_PANEL, to++)
        dot_round_panel(x, k < LB_INT_PANEL ? (int)k : LB_INT_PANEL, digits,
                        to);
}

/* ---- w ------------------------------------------------------------------- */

/* Chunk c of a panel of each row of x, onto t. */
DOT_FN void dot_chunk(const lb_int_x *x, int64_t x_step, int rows,
                      const int8_t *code, int c, dot_floats scale, int digits,
                      dot_floats *t)
{
    const dot_codes w = dot_take(code + c * LB_INT_CHUNK);
    LB_UNROLL
    for (int r = 0; r < rows; r++, x += x_step) {
        dot_floats f = dot_convert(dot_products(w, &x->digit[0], c));
        if (digits == 2)
            f = dot_fma(f, dot_all(LB_INT_BASE),
                        dot_convert(dot_products(w, &x->digit[1], c)));
        t[r] = dot_fma(f, scale, t[r]);
    }
}

DOT_FN void dot_panels(const lb_int_x *x, int64_t x_step, int rows,
                       int64_t panels, const lb_int_dot_row *w, int run,
                       int digits, float *lanes, int64_t sum_step)
{
    const int8_t *code = w->code;
    const float *scale = w->scale, *bias = w->bias;
    dot_floats sum[LB_INT_ROWS], t[LB_INT_ROWS];
    LB_UNROLL
    for (int r = 0; r < rows; r++)
        sum[r] = dot_load(lanes + r * sum_step);
    for (int64_t p = 0; p < panels; p++, x++, code += LB_INT_PANEL) {
        const dot_panel s = dot_scaled(scale, run);
        LB_UNROLL
        for (int r = 0; r < rows; r++)
            t[r] = dot_all(0);
        LB_UNROLL
        for (int c = 0; c < LB_INT_PANEL / LB_INT_CHUNK; c++)
            dot_chunk(x, x_step, rows, code, c, dot_scales(s, c, run), digits,
                      t);
        LB_UNROLL
        for (int r = 0; r < rows; r++)
            sum[r] = dot_fma(t[r], dot_all(x[r * x_step].scale), sum[r]);
        scale += LB_INT_PANEL / run;
        if (!bias) continue;
        LB_UNROLL
        for (int r = 0; r < rows; r++)
            sum[r] = dot_fma(dot_sixteenths(bias, run),
                             dot_load(x[r * x_step].sum), sum[r]);
        bias += LB_INT_PANEL / run;
    }
    LB_UNROLL
    for (int r = 0; r < rows; r++)
        dot_store(lanes + r * sum_step, sum[r]);
}

DOT_FN void dot_some(const lb_int_x *x, int64_t x_step, int rows,
                     int64_t panels, const lb_int_dot_row *w, int digits,
                     float *sum, int64_t sum_step)
{
    if (w->run == 16 && digits == 2)
        dot_panels(x, x_step, rows, panels, w, 16, 2, sum, sum_step);
    else if (w->run == 16)
        dot_panels(x, x_step, rows, panels, w, 16, 1, sum, sum_step);
    else if (digits == 2)
        dot_panels(x, x_step, rows, panels, w, 32, 2, sum, sum_step);
    else
        dot_panels(x, x_step, rows, panels, w, 32, 1, sum, sum_step);
}

DOT_FN void dot_rows(const lb_int_x *x, int64_t x_step, int64_t rows,
                     int64_t panels, const lb_int_dot_row *w, int digits,
                     float *sum, int64_t sum_step)
{
    for (; rows >= DOT_ROWS; rows -= DOT_ROWS) {
        dot_some(x, x_step, DOT_ROWS, panels, w, digits, sum, sum_step);
        x += DOT_ROWS * x_step;
        sum += DOT_ROWS * sum_step;
    }
    for (; rows > 0; rows--, x += x_step, sum += sum_step)
        dot_some(x, x_step, 1, panels, w, digits, sum, sum_step);
}

DOT_FN void dot_folds(const float *sum, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = dot_fold(dot_load(sum + i * LB_INT_LANES));
}

const lb_int_dot DOT_TABLE = {DOT_NAME, dot_round, dot_rows, dot_folds};
