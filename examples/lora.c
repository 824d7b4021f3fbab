/* lora.c - frozen weights in 4 bits and a small correction in f32, as one
 * array.
 *
 * The format is in low_rank.c: W = base + A B, whose parts are arrays. It has
 * a rule for dot_general, so products never form W. Constructing it is a
 * primitive with a gradient, so A and B can be trained while base stays packed.
 */
/* ctest: skip-asan */
#include <lowbit.h>
#include <stdio.h>

#include "low_rank.h"

enum { M = 384, N = 512, R = 8, ROWS = 4 };

static lb_array *normal(lb_ctx *cx, uint64_t seed, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){seed, 0}, LB_F32, shape);
}

/* ---- training ------------------------------------------------------------ */

/* mean (x (base + A B) - y)^2; args: base, x, y */
static lb_array *loss(lb_ctx *cx, lb_tree *p, lb_array *const *in, int n,
                      void *user)
{
    (void)n, (void)user;
    lb_array *w =
        low_rank_make(cx, in[0], lb_tree_get(p, "A"), lb_tree_get(p, "B"));
    return lb_squared_error(cx, lb_matmul(cx, in[1], w), in[2]);
}

/* Trains A (random at first) and B (zero at first) so that x W is x task.
 * Returns the last loss divided by the first. */
static double train(lb_ctx *cx, lb_array *base, lb_array *task)
{
    enum { STEPS = 200, BATCH = 64 };
    const lb_optimizer_config how = {
        .method = LB_ADAM, .rate = 1e-2, .schedule = LB_COSINE, .steps = STEPS};
    lb_array *a = normal(cx, 7, LB_SHAPE(M, R));
    lb_tree *p = lb_tree_open(cx), *grad = lb_tree_open(cx);
    lb_tree_set(p, "A", lb_mul(cx, a, lb_scalar(cx, 0.05)));
    lb_tree_set(p, "B", lb_zeros(cx, LB_F32, LB_SHAPE(R, N)));
    lb_optimizer *o = lb_tree_optimizer_open(p, &how);
    double first = 0, last = 0;
    for (int i = 0; i < STEPS && o && !lb_error_status(cx); i++) {
        lb_enter(cx); /* frees the arrays of a step, except A and B */
        lb_array *x = normal(cx, 100 + (uint64_t)i, LB_SHAPE(BATCH, M));
        lb_array *in[] = {base, x, lb_matmul(cx, x, task)};
        lb_array *l = lb_tree_value_and_grad(p, loss, in, 3, NULL, grad);
        if (lb_tree_optimizer_step(o, p, grad)) last = lb_item(cx, l);
        if (!i) first = last;
        lb_leave(cx);
    }
    lb_optimizer_close(o);
    lb_tree_close(p);
    lb_tree_close(grad);
    return last / first;
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

    /* The same with W decoded, which the rule avoids. */
    lb_array *whole = lb_matmul(cx, x, lb_materialize(cx, w));
    lb_array *off = lb_abs(cx, lb_sub(cx, y, whole));
    const double worst = lb_item(cx, lb_reduce_max(cx, off, NULL));
    const double most = lb_item(cx, lb_reduce_max(cx, lb_abs(cx, whole), NULL));
    printf("largest difference: %.1e of the largest value\n", worst / most);

    /* Another task: base plus a low-rank change, which A and B shall learn.
     * base is a constant and stays packed. */
    lb_array *change = lb_matmul(cx, normal(cx, 5, LB_SHAPE(M, R / 2)),
                                 normal(cx, 6, LB_SHAPE(R / 2, N)));
    lb_array *task = lb_add(cx, base, lb_mul(cx, change, lb_scalar(cx, 0.1)));
    const double left = train(cx, base, task);
    printf("after training %zu of %zu values the loss is %.1e of the first\n",
           (size_t)R * (M + N), (size_t)M * N, left);

    const bool ok = !lb_error_status(cx) && worst / most < 1e-5 && left < 1e-2;
    if (lb_error_status(cx)) fprintf(stderr, "lora: %s\n", lb_error(cx));
    lb_close(cx);
    return !ok;
}
