/* hello.c - quantize weights to 4 bits, multiply with them, show the error. */
#include <lowbit.h>
#include <stdio.h>

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    lb_key one = {1, 0}, two = {2, 0};
    lb_array *x = lb_random_normal(cx, one, LB_F32, LB_SHAPE(8, 1024));
    lb_array *w = lb_random_normal(cx, two, LB_F32, LB_SHAPE(1024, 512));

    lb_array *q = lb_quantize(cx, w, &(lb_quant_config){.format = "nf4"});
    lb_array *y = lb_matmul(cx, x, w);
    lb_array *z = lb_matmul(cx, x, q); /* q stays packed */

    lb_array *d = lb_sub(cx, z, y);
    d = lb_sqrt(cx, lb_div(cx, lb_mean(cx, lb_mul(cx, d, d), NULL, false),
                           lb_mean(cx, lb_mul(cx, y, y), NULL, false)));
    double error = lb_item(cx, d);
    if (lb_error_status(cx)) {
        fprintf(stderr, "hello: %s\n", lb_error(cx));
        lb_close(cx);
        return 1;
    }
    printf("w: %s, %zu bytes\n", lb_format_of(w), lb_nbytes(w));
    printf("q: %s, %zu bytes\n", lb_format_of(q), lb_nbytes(q));
    printf("relative error of x @ q vs. x @ w: %.1f %%\n", 100 * error);
    lb_close(cx); /* also frees all arrays */
    return 0;
}
