/* bench_training.c - the time of a training step with straight-through
 * quantized weights, compared with f32 weights; and of the gradients of
 * convolutions, compared with the convolution.
 *
 *   bench_training [rounds [threads]]
 *
 * Whole steps of Adam on 128 examples: forward, backward, update, with the
 * policy that denies dense copies of packed weights. All alternate within each
 * round.
 */
#include "bench.h"
#include "lowbit.h"

enum { EXAMPLES = 128, LAYERS = 3, PARAMS = 2 * LAYERS, STEPS = 4 };

/* ---- steps --------------------------------------------------------------- */

typedef struct net {
    lb_ctx *cx;
    const int64_t *width; /* inputs, then the outputs of each layer */
    const lb_quant_config *qat;
    lb_optimizer *o;
    lb_array *p[PARAMS]; /* references */
} net;

static lb_array *loss(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    const net *of = user;
    lb_array *x = a[n - 2];
    for (int k = 0; k < LAYERS; k++) {
        lb_array *w = a[2 * k];
        if (of->qat) w = lb_straight_through(cx, w, of->qat);
        x = lb_matmul(cx, x, lb_transpose(cx, w, NULL));
        x = lb_add(cx, x, a[2 * k + 1]);
        if (k < LAYERS - 1) x = lb_relu(cx, x);
    }
    return lb_mean(cx, lb_cross_entropy(cx, x, a[n - 1]), NULL, false);
}

static void start(net *t)
{
    lb_enter(t->cx);
    for (int k = 0; k < LAYERS; k++) {
        const lb_key key = {1, (uint64_t)k};
        lb_array *w = lb_random_normal(t->cx, key, LB_F32,
                                       LB_SHAPE(t->width[k + 1], t->width[k]));
        w = lb_mul(t->cx, w, lb_scalar(t->cx, sqrt(2.0 / (double)t->width[k])));
        t->p[2 * k] = lb_ref(w);
        t->p[2 * k + 1] =
            lb_ref(lb_zeros(t->cx, LB_F32, LB_SHAPE(t->width[k + 1])));
    }
    t->o = lb_optimizer_open(t->cx, &(lb_optimizer_config){.method = LB_ADAM},
                             t->p, PARAMS);
    lb_leave(t->cx);
}

static void step(net *t)
{
    const lb_key key = {2, (uint64_t)lb_optimizer_steps(t->o)};
    lb_array *a[PARAMS + 2], *g[PARAMS];
    lb_ctx *cx = t->cx;
    lb_enter(cx);
    for (int i = 0; i < PARAMS; i++)
        a[i] = t->p[i];
    a[PARAMS] =
        lb_random_normal(cx, key, LB_F32, LB_SHAPE(EXAMPLES, t->width[0]));
    a[PARAMS + 1] = lb_convert(
        cx,
        lb_rem(cx, lb_random_bits(cx, key, LB_U32, LB_SHAPE(EXAMPLES)),
               lb_scalar_int(cx, t->width[LAYERS])),
        LB_I32);
    if (lb_value_and_grad(cx, loss, a, PARAMS + 2, t, g, PARAMS) &&
        lb_optimizer_step(t->o, a, g))
        for (int i = 0; i < PARAMS; i++) {
            lb_unref(t->p[i]);
            t->p[i] = lb_ref(a[i]);
        }
    lb_leave(cx);
}

static double steps(void *arg)
{
    net *t = arg;
    const double begun = bench_now();
    for (int i = 0; i < STEPS; i++)
        step(t);
    return (bench_now() - begun) / STEPS;
}

static void networks(lb_ctx *cx, int rounds)
{
    static const int64_t widths[][LAYERS + 1] = {{784, 512, 256, 10},
                                                 {1024, 1024, 1024, 1024}};
    static const lb_quant_config how[] = {
        {.format = "int8"},
        {.format = "nf4"},
        {.format = "ternary", .scale = LB_SCALE_ROW},
        {.format = "binary", .scale = LB_SCALE_ROW}};
    enum { SIDES = 5 };
    printf("a step with %d examples: ms (relative to f32)\n", EXAMPLES);
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
        net t[SIDES];
        bench_side side[SIDES];
        for (int i = 0; i < SIDES; i++) {
            t[i] = (net){
                .cx = cx, .width = widths[k], .qat = i ? &how[i - 1] : NULL};
            start(&t[i]);
            step(&t[i]);
            side[i] = (bench_side){steps, &t[i], 0};
        }
        bench_alternate(side, SIDES, rounds);
        printf("%5d-%d-%d-%d", (int)widths[k][0], (int)widths[k][1],
               (int)widths[k][2], (int)widths[k][3]);
        for (int i = 0; i < SIDES; i++) {
            printf("   %s %.2f (%.2f)", i ? how[i - 1].format : "float",
                   side[i].figure / 1e6, side[i].figure / side[0].figure);
            lb_optimizer_close(t[i].o);
            for (int j = 0; j < PARAMS; j++)
                lb_unref(t[i].p[j]);
        }
        printf("\n");
    }
}

/* ---- convolutions -------------------------------------------------------- */

typedef struct conv {
    lb_ctx *cx;
    lb_array *x, *w, *dy;
    lb_conv_dims dims;
    int of; /* the operand whose gradient is computed; -1: the result */
} conv;

static double convolve(void *arg)
{
    const conv *c = arg;
    lb_array *of[] = {c->x, c->w}, *g = NULL;
    lb_enter(c->cx);
    double begun = bench_now();
    if (c->of < 0) {
        lb_conv_general_dilated(c->cx, c->x, c->w, &c->dims);
    } else {
        lb_tape *t = lb_tape_open(c->cx);
        lb_tape_watch(t, of[c->of]);
        lb_array *y = lb_conv_general_dilated(c->cx, c->x, c->w, &c->dims);
        begun = bench_now();
        lb_tape_grad(t, y, c->dy, &of[c->of], 1, &g);
        lb_tape_close(t);
    }
    const double taken = bench_now() - begun;
    lb_leave(c->cx);
    return taken;
}

static void convolutions(lb_ctx *cx, int rounds)
{
    static const struct {
        int64_t side, from, to, kernel, stride, pad;
    } of[] = {{56, 64, 64, 3, 1, 1},   {56, 64, 64, 3, 2, 1},
              {28, 128, 128, 3, 2, 1}, {56, 64, 64, 2, 2, 0},
              {56, 64, 128, 1, 2, 0},  {56, 32, 32, 5, 3, 2}};
    printf("convolutions of 8 images, NHWC: ms, gradients relative to it\n");
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        const int64_t s = of[k].stride, p = of[k].pad, n = of[k].kernel;
        conv c = {.cx = cx,
                  .dims = {.lhs = "b01f",
                           .rhs = "o01i",
                           .out = "b01f",
                           .stride = {s, s},
                           .pad_lo = {p, p},
                           .pad_hi = {p, p}}};
        lb_enter(cx);
        c.x = lb_random_normal(cx, (lb_key){1, 0}, LB_F32,
                               LB_SHAPE(8, of[k].side, of[k].side, of[k].from));
        c.w = lb_random_normal(cx, (lb_key){2, 0}, LB_F32,
                               LB_SHAPE(of[k].to, n, n, of[k].from));
        c.dy = lb_conv_general_dilated(cx, c.x, c.w, &c.dims);
        conv each[3];
        bench_side side[3];
        for (int i = 0; i < 3; i++) {
            each[i] = c;
            each[i].of = i - 1;
            side[i] = (bench_side){convolve, &each[i], 0};
        }
        bench_alternate(side, 3, rounds);
        printf("%5d x %d, %d to %d, %d x %d by %d: %.2f   of the input %.2f, "
               "of the kernel %.2f\n",
               (int)of[k].side, (int)of[k].side, (int)of[k].from, (int)of[k].to,
               (int)n, (int)n, (int)s, side[0].figure / 1e6,
               side[1].figure / side[0].figure,
               side[2].figure / side[0].figure);
        lb_leave(cx);
    }
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 21;
    lb_ctx *cx = lb_open(&(lb_options){.threads = argc > 2 ? atoi(argv[2]) : 2,
                                       .dense = LB_DENSE_DENY});
    if (!cx || rounds < 1) return 2;
    networks(cx, rounds);
    convolutions(cx, rounds);
    const bool ok = !lb_error_status(cx);
    if (!ok) fprintf(stderr, "bench_training: %s\n", lb_error(cx));
    lb_close(cx);
    return !ok;
}
