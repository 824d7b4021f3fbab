/* custom_primitive.c - a primitive of your own: axpy, a*x + y.
 *
 * Three functions define it: infer checks the call and sets the result's shape
 * and dtype, plan splits the work into units, eval computes units. It reads
 * tiles, so x and y may be any view of any format, and it gives the same bits
 * for every number of threads.
 */
#include <lowbit_ext.h>
#include <stdio.h>

typedef struct axpy_params {
    float a;
} axpy_params;

static bool axpy_infer(lb_ctx *cx, lb_call *c)
{
    const lb_array *x = c->in[0], *y = c->in[1];
    if (!lb_shape_equal(&x->shape, &y->shape))
        return lb_fail(cx, LB_E_SHAPE, "axpy: x has shape %s, y has shape %s",
                       LB_SHOW(&x->shape), LB_SHOW(&y->shape));
    if (x->dtype != y->dtype || lb_ctype_of(x->dtype) != LB_C_F32)
        return lb_fail(
            cx, LB_E_DTYPE,
            "axpy: x is %s and y is %s; both must be f32, f16 or bf16",
            lb_dtype_name(x->dtype), lb_dtype_name(y->dtype));
    c->shape = x->shape;
    c->dtype = x->dtype;
    return true;
}

enum { TILES = 16 }; /* per unit: fewer are not worth another thread */

static lb_tiling tiling_of(const lb_call *c)
{
    const lb_array *in[] = {c->in[0], c->in[1]};
    return lb_tiling_for(&c->shape, in, 2);
}

static void axpy_plan(const lb_call *c, lb_plan *plan)
{
    plan->phases = 1;
    plan->units[0] = (tiling_of(c).tiles + TILES - 1) / TILES;
    plan->per_thread = 3 * LB_TILE * sizeof(float);
    plan->kernel = "axpy";
}

static void axpy_eval(const lb_work *w)
{
    const lb_call *c = w->call;
    const axpy_params *p = c->params;
    const lb_tiling t = tiling_of(c);
    float *z = w->scratch;
    for (int64_t i = w->lo * TILES; i < w->hi * TILES && i < t.tiles; i++) {
        int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
        const int64_t size = lb_tiling_box(&t, i, lo, n);
        const float *x =
            lb_tile_peek(c->cpu, c->in[0], lo, n, LB_C_F32, z + LB_TILE);
        const float *y =
            lb_tile_peek(c->cpu, c->in[1], lo, n, LB_C_F32, z + 2 * LB_TILE);
        for (int64_t k = 0; k < size; k++)
            z[k] = p->a * x[k] + y[k];
        lb_tile_write(c->cpu, w->out, lo, n, LB_C_F32, z);
    }
}

static const lb_prim axpy = {
    .struct_size = sizeof(lb_prim),
    .name = "axpy",
    .params_size = sizeof(axpy_params),
    .n_in = 2,
    .infer = axpy_infer,
    .plan = axpy_plan,
    .eval = axpy_eval,
};

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    lb_add_primitive(cx, &axpy);

    lb_array *x = lb_iota(cx, LB_F32, LB_SHAPE(3, 2), 0); /* 0 0 1 1 2 2 */
    lb_array *y = lb_transpose(cx, lb_iota(cx, LB_F32, LB_SHAPE(2, 3), 0),
                               NULL); /* 0 1 0 1 0 1 */
    lb_array *in[] = {x, y};
    const axpy_params p = {10};
    const char *how = lb_explain(cx, "axpy", in, 2, &p);
    if (how) printf("%s\n", how);
    float z[3][2];
    if (!lb_read(cx, lb_bind(cx, &axpy, 2, in, &p), z, sizeof z)) {
        fprintf(stderr, "custom_primitive: %s\n", lb_error(cx));
        lb_close(cx);
        return 1;
    }
    for (int i = 0; i < 3; i++)
        printf("%g %g\n", (double)z[i][0], (double)z[i][1]);

    in[1] = lb_transpose(cx, y, NULL);
    if (!lb_bind(cx, &axpy, 2, in, &p)) printf("%s\n", lb_error(cx));
    lb_close(cx);
    return z[2][1] != 21;
}
