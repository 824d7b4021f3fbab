/* eformer_power.c - eformer's jit(implicit(power))(quantized array): a function
 * of arrays, compiled once and run on any format. */
#include <lowbit.h>
#include <stdio.h>

static lb_array *power(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    return lb_integer_pow(cx, x[0], 2);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    float y[2][4];
    lb_array *x =
        lb_random_uniform(cx, (lb_key){1, 0}, LB_F32, LB_SHAPE(2, 4), -2, 2);
    lb_array *q = lb_quantize(cx, x, &(lb_quant_config){.format = "int8"});
    lb_compiled *f = lb_compile(cx, power, NULL, NULL);
    const bool ok = lb_read(cx, lb_run(f, &q, 1), y, sizeof y);
    for (int i = 0; i < 2 && ok; i++)
        printf("%.4f %.4f %.4f %.4f\n", (double)y[i][0], (double)y[i][1],
               (double)y[i][2], (double)y[i][3]);
    if (!ok) fprintf(stderr, "eformer_power: %s\n", lb_error(cx));
    lb_compiled_close(f);
    lb_close(cx);
    return !ok;
}
