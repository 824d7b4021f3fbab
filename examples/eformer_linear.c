/* eformer_linear.c - a linear layer with quantized weights, which stay packed:
 * eformer's quantize(w, QuantizationConfig(dtype)) and x @ w under implicit. */
#include <lowbit.h>
#include <stdio.h>

static lb_array *uniform(lb_ctx *cx, uint64_t seed, lb_shape shape)
{
    return lb_random_uniform(cx, (lb_key){seed, 0}, LB_F32, shape, -1, 1);
}

int main(void)
{
    static const char *const formats[] = {"nf4", "int8"};
    lb_ctx *cx = lb_open(NULL);
    lb_array *x = uniform(cx, 2, LB_SHAPE(2, 96));
    lb_array *w = uniform(cx, 3, LB_SHAPE(3, 96)); /* (out, in) */
    lb_array *b = uniform(cx, 4, LB_SHAPE(3));
    for (int k = 0; k < 2; k++) {
        float y[2][3];
        lb_array *q =
            lb_quantize(cx, w, &(lb_quant_config){.format = formats[k]});
        lb_array *z = lb_matmul(cx, x, lb_transpose(cx, q, NULL));
        if (!lb_read(cx, lb_add(cx, z, b), y, sizeof y)) break;
        printf("%s, %zu bytes\n", lb_format_of(q), lb_nbytes(q));
        for (int i = 0; i < 2; i++)
            printf("%.4f %.4f %.4f\n", (double)y[i][0], (double)y[i][1],
                   (double)y[i][2]);
    }
    const bool ok = cx && !lb_error_status(cx);
    if (!ok) fprintf(stderr, "eformer_linear: %s\n", lb_error(cx));
    lb_close(cx);
    return !ok;
}
