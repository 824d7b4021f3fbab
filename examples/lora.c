/* lora.c - frozen weights in 4 bits and a small correction in f32, as one
 * array.
 *
 * low_rank.c has the format: W = base + A B, whose parts are arrays in turn. It
 * brings a rule for dot_general, so that products never form W.
 */
#include <lowbit.h>
#include <stdio.h>

#include "low_rank.h"

enum { M = 384, N = 512, R = 8, ROWS = 4 };

static lb_array *normal(lb_ctx *cx, uint64_t seed, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){seed, 0}, LB_F32, shape);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    lb_add_format(cx, &low_rank_format);

    lb_array *base = lb_quantize(cx, normal(cx, 1, LB_SHAPE(M, N)),
                                 &(lb_quant_config){.format = "nf4"});
    lb_array *a = normal(cx, 2, LB_SHAPE(M, R));
    lb_array *b = normal(cx, 3, LB_SHAPE(R, N));
    lb_array *w = low_rank_make(cx, base, a, b);
    lb_array *x = normal(cx, 4, LB_SHAPE(ROWS, M));
    printf("W: %s, %zu bytes; as f32 %d\n", lb_format_of(w), lb_nbytes(w),
           M * N * 4);

    lb_array *y = lb_matmul(cx, x, w); /* x base + (x A) B */
    lb_array *in[] = {x, w};
    const lb_dot_dims dims = {.lhs_contract = {1, {1}},
                              .rhs_contract = {1, {0}}};
    const char *how = lb_explain(cx, "dot_general", in, 2, &dims);
    if (how) printf("%s\n", how);

    /* The same with W decoded, which is what the rule is there to avoid. */
    lb_array *whole = lb_matmul(cx, x, lb_materialize(cx, w));
    lb_array *off = lb_abs(cx, lb_sub(cx, y, whole));
    const double worst = lb_item(cx, lb_reduce_max(cx, off, NULL));
    const double most = lb_item(cx, lb_reduce_max(cx, lb_abs(cx, whole), NULL));
    printf("off by at most %.1e of the largest\n", worst / most);

    const bool ok = !lb_error_status(cx) && worst / most < 1e-5;
    if (lb_error_status(cx)) fprintf(stderr, "lora: %s\n", lb_error(cx));
    lb_close(cx);
    return !ok;
}
