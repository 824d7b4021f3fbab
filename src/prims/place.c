/* place.c - see place.h. */
#include "prims/place.h"

#include "kernels/stream.h"
#include "kernels/tuning.h"

enum { UNIT = 4 * LB_RUN }; /* elements decoded per unit */

/* Whether src is packed and in the same order as dst. */
static bool is_flat(const lb_array *src, const lb_array *dst)
{
    return !src->store->data && src->store->ctype == LB_C_F32 &&
           lb_dtype_is_float(src->dtype) && lb_is_row_major(src) &&
           lb_is_row_major(dst);
}

void lb_place_plan(lb_place *p, const lb_array *src, const lb_shape *shape,
                   const int64_t *lo, const int64_t *step)
{
    p->src = *src;
    p->dst = (lb_array){.dtype = src->dtype, .shape = src->shape};
    int64_t stride[LB_MAX_RANK];
    lb_row_major(shape, stride);
    for (int k = 0; k < shape->rank; k++) {
        const int64_t by = step && src->shape.dim[k] > 1 ? step[k] : 1;
        p->dst.stride[k] = stride[k] * by;
        p->dst.offset += lo ? lo[k] * stride[k] : 0;
    }
    const size_t size = lb_dtype_size(src->dtype);
    p->raw = lb_elements(src);
    p->size = 0;
    if (p->raw) {
        p->move =
            lb_move_plan(size, shape->rank, src->shape.dim, src->stride,
                         p->dst.stride, size * (size_t)lb_shape_size(shape));
        p->units = p->move.units;
    } else if (is_flat(&p->src, &p->dst)) {
        p->size = lb_shape_size(&src->shape);
        p->units = lb_ceil_div(p->size, UNIT);
    } else {
        const lb_array *in = &p->src;
        p->tiling = lb_tiling_for(&src->shape, &in, 1);
        p->units = p->tiling.tiles;
    }
}

const char *lb_place_name(const lb_place *p)
{
    return p->raw ? lb_move_name(&p->move) : p->size ? "unpack" : "copy tiles";
}

static void unpack(const lb_place *p, const lb_cpu *cpu, const lb_array *dst,
                   int64_t first, int64_t end)
{
    const lb_store *to = dst->store;
    const size_t at = (size_t)(dst->offset + first) * lb_dtype_size(dst->dtype);
    lb_unpack(cpu, p->src.store, p->src.offset + first, end - first,
              (lb_sink){dst->dtype, to->data_size >= lb_tuning_for(cpu)->bypass,
                        (char *)to->data + at});
}

void lb_place_run(const lb_place *p, const lb_work *w, int64_t lo, int64_t hi)
{
    lb_array dst = p->dst;
    dst.store = w->out->store;
    dst.offset += w->out->offset;
    if (p->raw) {
        const size_t at = (size_t)dst.offset * lb_dtype_size(dst.dtype);
        lb_move_run(&p->move, p->raw, (char *)dst.store->data + at, lo, hi);
        lb_stream_end();
        return;
    }
    const lb_cpu *cpu = w->call->cpu;
    if (p->size) {
        unpack(p, cpu, &dst, lo * UNIT, lb_min_i64(hi * UNIT, p->size));
        return;
    }
    /* Decoded values are rounded when they are written, so not before. */
    lb_array src = p->src;
    if (!src.store->data && lb_dtype_is_float(src.dtype) &&
        src.store->ctype == LB_C_F32)
        src.dtype = LB_F32;
    const lb_ctype c = lb_ctype_of(src.dtype);
    for (int64_t u = lo; u < hi; u++) {
        int64_t at[LB_MAX_RANK], n[LB_MAX_RANK];
        lb_tiling_box(&p->tiling, u, at, n);
        lb_tile_write(cpu, &dst, at, n, c,
                      lb_tile_peek(cpu, &src, at, n, c, w->scratch));
    }
}

int64_t lb_places_units(const lb_place *p, int n)
{
    int64_t units = 0;
    for (int i = 0; i < n; i++)
        units += p[i].units;
    return units;
}

void lb_places_run(const lb_place *p, int n, const lb_work *w)
{
    int64_t first = 0;
    for (int i = 0; i < n; i++) {
        const int64_t lo = lb_max_i64(w->lo - first, 0);
        const int64_t hi = lb_min_i64(w->hi - first, p[i].units);
        if (lo < hi) lb_place_run(&p[i], w, lo, hi);
        first += p[i].units;
    }
}

lb_array lb_cut(const lb_array *a, const int64_t *lo, const int64_t *hi,
                const int64_t *step)
{
    lb_array v = *a;
    for (int k = 0; k < a->shape.rank; k++) {
        const int64_t by = step ? step[k] : 1;
        v.shape.dim[k] = lb_ceil_div(hi[k] - lo[k], by);
        /* A step beyond the end may be huge; then there is no second
         * element. */
        if (v.shape.dim[k] > 1) v.stride[k] *= by;
        if (v.shape.dim[k] > 0) v.offset += lo[k] * a->stride[k];
    }
    /* Empty views start where the whole view does, inside the store. */
    if (!lb_shape_size(&v.shape)) v.offset = a->offset;
    return v;
}

lb_array lb_repeat(const lb_array *a, const lb_shape *shape)
{
    lb_array v = *a;
    v.shape = *shape;
    for (int k = 0; k < shape->rank; k++)
        v.stride[k] = 0;
    return v;
}

int lb_frames(const lb_shape *shape, const int64_t *lo, const int64_t *hi,
              lb_frame *out)
{
    int n = 0;
    lb_frame rest = {{0}, {0}};
    for (int k = 0; k < shape->rank; k++)
        rest.hi[k] = shape->dim[k];
    for (int k = 0; k < shape->rank; k++) {
        if (lo[k] > 0) {
            out[n] = rest;
            out[n++].hi[k] = lo[k];
        }
        if (hi[k] < shape->dim[k]) {
            out[n] = rest;
            out[n++].lo[k] = hi[k];
        }
        rest.lo[k] = lo[k];
        rest.hi[k] = hi[k];
    }
    return n;
}
