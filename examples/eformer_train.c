/* eformer_train.c - training through a quantizer: eformer's
 * straight_through(w, config) inside of value_and_grad, with SGD. */
#include <lowbit.h>
#include <stdio.h>

static lb_array *uniform(lb_ctx *cx, uint64_t seed, lb_shape shape)
{
    return lb_random_uniform(cx, (lb_key){seed, 0}, LB_F32, shape, -1, 1);
}

/* mean (x @ w - y)^2 with w in nf4; args: x, y */
static lb_array *loss(lb_ctx *cx, lb_tree *p, lb_array *const *args, int n,
                      void *nf4)
{
    (void)n;
    lb_array *w = lb_straight_through(cx, lb_tree_get(p, "w"), nf4);
    return lb_squared_error(cx, lb_matmul(cx, args[0], w), args[1]);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    lb_quant_config nf4 = {.format = "nf4", .block_size = 8};
    lb_array *data[] = {uniform(cx, 5, LB_SHAPE(12, 4)),
                        uniform(cx, 6, LB_SHAPE(12, 8))};
    lb_tree *p = lb_tree_open(cx), *g = lb_tree_open(cx);
    lb_tree_set(p, "w", uniform(cx, 7, LB_SHAPE(4, 8)));
    lb_optimizer *o =
        lb_tree_optimizer_open(p, &(lb_optimizer_config){.rate = 2});
    for (int i = 0; i < 6; i++) {
        lb_array *l = lb_tree_value_and_grad(p, loss, data, 2, &nf4, g);
        lb_array *most =
            lb_reduce_max(cx, lb_abs(cx, lb_tree_find(g, "w")), NULL);
        printf("loss %.4f, largest gradient %.4f\n", lb_item(cx, l),
               lb_item(cx, most));
        lb_tree_optimizer_step(o, p, g);
    }
    const bool ok = cx && !lb_error_status(cx);
    if (!ok) fprintf(stderr, "eformer_train: %s\n", lb_error(cx));
    lb_optimizer_close(o);
    lb_tree_close(p);
    lb_tree_close(g);
    lb_close(cx);
    return !ok;
}
