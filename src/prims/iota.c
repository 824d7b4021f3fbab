/* iota.c - arrays without operands: the index along an axis, and constants.
 *
 * A constant is one element, repeated with stride 0.
 */
#include "lowbit_params.h"
#include "prims/place.h"

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_iota_params *p = c->params;
    if (!lb_shape_check(cx, "iota", &p->shape)) return false;
    if (!lb_dtype_is_float(p->dtype) && !lb_dtype_is_int(p->dtype))
        return lb_fail(cx, LB_E_DTYPE,
                       "iota: %s (%d) is not an integer or float dtype",
                       lb_dtype_name(p->dtype), (int)p->dtype);
    if (p->axis < 0 || p->axis >= p->shape.rank)
        return lb_fail(cx, LB_E_AXIS, "iota: axis %d is out of range for %s",
                       p->axis, LB_SHOW(&p->shape));
    c->shape = p->shape;
    c->dtype = p->dtype;
    return true;
}

static void plan(const lb_call *c, lb_plan *plan)
{
    *plan = (lb_plan){
        .per_thread = LB_RUN * 8,
        .phases = 1,
        .units = {lb_ceil_div(lb_shape_size(&c->shape), LB_RUN)},
        .kernel = "count",
    };
}

/* Writes value, value + step, ... to n elements of a tile. */
static void put(lb_ctype c, void *tile, int64_t i, int64_t n, int64_t value,
                int64_t step)
{
    float *f = (float *)tile + i;
    double *d = (double *)tile + i;
    int64_t *s = (int64_t *)tile + i; /* u64 has the same representation */
    switch (c) {
    case LB_C_F32:
        for (int64_t j = 0; j < n; j++)
            f[j] = (float)(int32_t)(value + j * step);
        return;
    case LB_C_F64:
        for (int64_t j = 0; j < n; j++)
            d[j] = (double)(value + j * step);
        return;
    default:
        for (int64_t j = 0; j < n; j++)
            s[j] = value + j * step;
    }
}

/* f32 tiles only while they are exact: an index above 2^24 must not be rounded
 * to f32 before it is rounded to 16 bits. */
static lb_ctype tile_type(lb_dtype dtype, int64_t dim)
{
    const lb_ctype c = lb_ctype_of(dtype);
    return c == LB_C_F32 && dim > 1 << 24 ? LB_C_F64 : c;
}

static void eval(const lb_work *w)
{
    const lb_iota_params *p = w->call->params;
    const lb_shape *shape = &w->call->shape;
    const int64_t size = lb_shape_size(shape), dim = shape->dim[p->axis];
    const lb_ctype c = tile_type(p->dtype, dim);
    int64_t stride[LB_MAX_RANK];
    lb_row_major(shape, stride);
    const int64_t inner = stride[p->axis];
    for (int64_t u = w->lo; u < w->hi; u++) {
        const int64_t first = u * LB_RUN;
        const int64_t n = lb_min_i64(LB_RUN, size - first);
        for (int64_t i = 0, m; i < n; i += m) {
            const int64_t e = first + i, at = e / inner % dim;
            /* The iota axis is the last: up to its end; otherwise up to the
             * next index. */
            m = lb_min_i64(n - i, inner == 1 ? dim - at : inner - e % inner);
            put(c, w->scratch, i, m, at, inner == 1);
        }
        lb_tile_write_flat(w->call->cpu, w->out, first, n, c, w->scratch);
    }
}

const lb_prim lb_prim_iota = {
    .struct_size = sizeof(lb_prim),
    .name = "iota",
    .element_ns = 0.3F,
    .params_size = sizeof(lb_iota_params),
    .params_exact = sizeof(int),
    .n_in = 0,
    .infer = infer,
    .plan = plan,
    .eval = eval,
};

lb_array *lb_iota(lb_ctx *cx, lb_dtype dtype, lb_shape shape, int axis)
{
    lb_iota_params p = {.shape = shape, .dtype = dtype};
    if (!lb_axis_fix(cx, "iota", axis, shape.rank, &p.axis)) return NULL;
    return lb_bind(cx, &lb_prim_iota, 0, NULL, &p);
}

/* One element, converted to dtype and broadcast. */
static lb_array *full(lb_ctx *cx, lb_dtype from, const void *value,
                      lb_dtype dtype, lb_shape shape)
{
    lb_enter(cx);
    lb_array *a = lb_from(cx, from, (lb_shape){0}, value);
    if (a && dtype != from) a = lb_convert(cx, a, dtype);
    if (a) a = lb_broadcast_to(cx, a, shape);
    return lb_leave_with(cx, a);
}

lb_array *lb_full(lb_ctx *cx, lb_dtype dtype, lb_shape shape, double value)
{
    return full(cx, LB_F64, &value, dtype, shape);
}

lb_array *lb_full_int(lb_ctx *cx, lb_dtype dtype, lb_shape shape, int64_t value)
{
    return full(cx, LB_I64, &value, dtype, shape);
}

lb_array *lb_zeros(lb_ctx *cx, lb_dtype dtype, lb_shape shape)
{
    const int64_t zero = 0; /* all bits are 0 in every dtype */
    return full(cx, lb_dtype_size(dtype) ? dtype : LB_I64, &zero, dtype, shape);
}
