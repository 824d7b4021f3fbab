/* float8.c - use a format of your own.
 *
 * The format is in e4m3.c. After lb_add_format it works like a built-in format:
 * lb_quantize accepts its name, operations decode it on the fly, and slices and
 * gathers stay packed.
 */
#include <lowbit.h>
#include <math.h>
#include <stdio.h>

#include "e4m3.h"

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    lb_add_format(cx, &e4m3_format);

    lb_array *w =
        lb_random_normal(cx, (lb_key){1, 0}, LB_F32, LB_SHAPE(64, 300));
    lb_array *q = lb_quantize(cx, w, &(lb_quant_config){.format = "e4m3"});
    lb_array *x =
        lb_random_normal(cx, (lb_key){2, 0}, LB_F32, LB_SHAPE(8, 300));
    printf("%s: %zu bytes, %zu as f32\n", lb_format_of(q), lb_nbytes(q),
           lb_nbytes(w));

    /* A product with the packed weights, transposed as a view. */
    lb_array *y = lb_matmul(cx, x, lb_transpose(cx, q, NULL));
    lb_array *exact = lb_matmul(cx, x, lb_transpose(cx, w, NULL));
    lb_array *off = lb_sub(cx, y, exact);
    const double ratio =
        lb_item(cx, lb_sum(cx, lb_mul(cx, off, off), NULL, 0)) /
        lb_item(cx, lb_sum(cx, lb_mul(cx, exact, exact), NULL, 0));
    printf("relative error of x @ W^T: %.1f %%\n", 100 * sqrt(ratio));

    /* Rows are copied without decoding. */
    const int64_t row[] = {5, 63, 5};
    lb_array *rows = lb_embedding(cx, q, lb_from(cx, LB_I64, LB_SHAPE(3), row));
    printf("three rows: %s, %zu bytes\n", lb_format_of(rows), lb_nbytes(rows));

    const bool ok = rows && !lb_error_status(cx) && ratio < 1e-3;
    if (lb_error_status(cx)) fprintf(stderr, "float8: %s\n", lb_error(cx));
    lb_close(cx);
    return !ok;
}
