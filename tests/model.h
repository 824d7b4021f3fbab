/* model.h - the reference for arrays: doubles in row-major order, and loops
 * over indices. Independent of the library's code.
 *
 * model_array makes an array of a model's values as one of several views, dense
 * or in a format of its own (which forces every read through tiles).
 */
#ifndef LB_MODEL_H
#define LB_MODEL_H

#include <stdlib.h>

#include "check.h"
#include "lowbit_ext.h"

typedef struct model {
    lb_shape shape;
    double *v;
} model;

/* All models live until model_end. */
static struct {
    void **item;
    size_t n, room;
} model_heap;

static inline void *model_alloc(size_t size)
{
    if (model_heap.n == model_heap.room) {
        model_heap.room = model_heap.room * 2 + 64;
        model_heap.item = (void **)realloc(
            model_heap.item, model_heap.room * sizeof *model_heap.item);
    }
    void *p = model_heap.item ? calloc(1, size + 1) : NULL;
    if (!p) exit(2);
    return model_heap.item[model_heap.n++] = p;
}

static inline void model_end(void)
{
    while (model_heap.n)
        free(model_heap.item[--model_heap.n]);
    free(model_heap.item);
    model_heap.item = NULL;
    model_heap.room = 0;
}

static inline int64_t model_size(const lb_shape *s)
{
    int64_t n = 1;
    for (int k = 0; k < s->rank; k++)
        n *= s->dim[k];
    return n;
}

static inline model model_new(lb_shape shape)
{
    const int64_t n = model_size(&shape);
    return (model){shape, (double *)model_alloc((size_t)n * sizeof(double))};
}

/* Flat index to index, and back. */
static inline int64_t model_flat(const lb_shape *s, const int64_t *i)
{
    int64_t e = 0;
    for (int k = 0; k < s->rank; k++)
        e = e * s->dim[k] + i[k];
    return e;
}

static inline void model_index(const lb_shape *s, int64_t e, int64_t *i)
{
    for (int k = s->rank - 1; k >= 0; k--) {
        i[k] = e % s->dim[k];
        e /= s->dim[k];
    }
}

static inline uint32_t model_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Small integers that every dtype represents exactly. */
static inline double model_value(lb_dtype d, uint32_t r)
{
    if (d == LB_BOOL) return r % 2;
    const bool plus = d == LB_U8 || d == LB_U16 || d == LB_U32 || d == LB_U64;
    return plus ? r % 120 : (double)(r % 240) - 120;
}

/* ---- elements ------------------------------------------------------------ */

static inline double model_get(lb_dtype d, const void *p)
{
    union {
        float f;
        uint32_t u;
    } w = {0};
    uint64_t raw = 0;
    double f64;
    memcpy(&raw, p, lb_dtype_size(d));
    memcpy(&f64, &raw, 8);
    w.u = (uint32_t)raw;
    switch (d) {
    case LB_F32:
        return w.f;
    case LB_F64:
        return f64;
    case LB_BF16:
        w.u = (uint32_t)raw << 16;
        return w.f;
    case LB_F16: {
        const double sign = raw & 0x8000 ? -1 : 1;
        const int e = (int)(raw >> 10 & 31), m = (int)(raw & 1023);
        if (e == 31) return m ? (double)NAN : sign * HUGE_VAL;
        return sign * (e ? ldexp(1024 + m, e - 25) : ldexp(m, -24));
    }
    case LB_I8:
        return (int8_t)raw;
    case LB_I16:
        return (int16_t)raw;
    case LB_I32:
        return (int32_t)raw;
    case LB_I64:
        return (double)(int64_t)raw;
    default:
        return (double)raw;
    }
}

/* v must be a value of dtype d, and for f16 zero or normal. */
static inline void model_put(lb_dtype d, void *p, double v)
{
    union {
        float f;
        uint32_t u;
    } w = {(float)v};
    uint64_t raw = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
    if (d == LB_F32) raw = w.u;
    if (d == LB_BF16) raw = w.u >> 16;
    if (d == LB_F64) memcpy(&raw, &v, 8);
    if (d == LB_F16)
        raw = (w.u >> 16 & 0x8000) |
              (v != 0 ? ((w.u >> 13 & 0x3ffff) - (112u << 10)) : 0);
    memcpy(p, &raw, lb_dtype_size(d));
}

/* ---- arrays -------------------------------------------------------------- */

/* A format whose elements only its decoder can find, in one entry for all, so
 * that blocks can seldom be moved. */
static inline const char *model_data(const lb_array *a)
{
    if (a->store->data) return (const char *)a->store->data;
    const lb_array *all = a->store->part[0].a;
    return (const char *)all->store->data +
           (size_t)all->offset * lb_dtype_size(all->dtype);
}

static inline void model_decode(const lb_cpu *cpu, const lb_store *s,
                                int64_t first, int64_t n, void *out)
{
    (void)cpu;
    const lb_array *all = s->part[0].a;
    const size_t size = lb_dtype_size(all->dtype);
    const char *from =
        (const char *)all->store->data + (size_t)(all->offset + first) * size;
    for (int64_t i = 0; i < n; i++)
        ((float *)out)[i] =
            (float)model_get(all->dtype, from + (size_t)i * size);
}

static const lb_format model_format = {
    .struct_size = sizeof(lb_format),
    .name = "hidden",
    .part = {{.name = "all", .raw = true}},
    .decode = model_decode,
};

enum {
    MODEL_PLAIN,
    MODEL_COLUMNS,  /* the first axis is the consecutive one */
    MODEL_STEPPED,  /* every other element, from the second on */
    MODEL_BACKWARD, /* all axes reversed */
    MODEL_MIXED,    /* columns, the last axis reversed */
    MODEL_REPEATED, /* stride 0 along the first axis */
    MODEL_VIEWS,
    MODEL_HIDDEN = 8 /* flag: in the format above */
};

/* Random values; for MODEL_REPEATED equal along the first axis. */
static inline model model_make(lb_shape shape, lb_dtype d, int kind,
                               uint32_t seed)
{
    model m = model_new(shape);
    const int64_t n = model_size(&shape);
    const int64_t row = n && shape.rank ? n / shape.dim[0] : 1;
    for (int64_t i = 0; i < n; i++)
        m.v[i] = kind % MODEL_HIDDEN == MODEL_REPEATED && i >= row
                     ? m.v[i - row]
                     : model_value(d, model_random(&seed));
    return m;
}

/* Strides of a kind of view; returns the number of elements it needs. */
static inline int64_t model_strides(const lb_shape *s, int kind,
                                    int64_t *stride, int64_t *offset)
{
    int64_t step = 1;
    const int by = kind == MODEL_STEPPED ? 2 : 1;
    *offset = kind == MODEL_STEPPED ? 1 : 0;
    for (int j = 0; j < s->rank; j++) {
        const bool columns = kind == MODEL_COLUMNS || kind == MODEL_MIXED;
        const int k = columns ? j : s->rank - 1 - j;
        stride[k] = step * by;
        step *= (s->dim[k] ? s->dim[k] : 1) * by;
        if (kind == MODEL_REPEATED && k == 0) stride[k] = 0;
        if ((kind == MODEL_BACKWARD ||
             (kind == MODEL_MIXED && k == s->rank - 1)) &&
            s->dim[k] > 0) {
            *offset += (s->dim[k] - 1) * stride[k];
            stride[k] = -stride[k];
        }
    }
    return step + *offset + 1;
}

static inline lb_array *model_array(lb_ctx *cx, const model *m, lb_dtype d,
                                    int kind)
{
    int64_t stride[LB_MAX_RANK] = {0}, offset, i[LB_MAX_RANK];
    const int64_t room =
        model_strides(&m->shape, kind % MODEL_HIDDEN, stride, &offset);
    const lb_shape flat = {1, {room}};
    lb_array *a = lb_dense(cx, d, &flat);
    if (!a) return NULL;
    const size_t size = lb_dtype_size(d);
    memset(a->store->data, d == LB_BOOL ? 1 : 0x55, a->store->data_size);
    for (int64_t e = 0; e < model_size(&m->shape); e++) {
        int64_t at = offset;
        model_index(&m->shape, e, i);
        for (int k = 0; k < m->shape.rank; k++)
            at += i[k] * stride[k];
        model_put(d, (char *)a->store->data + (size_t)at * size, m->v[e]);
    }
    if (kind >= MODEL_HIDDEN) {
        lb_part part[LB_MAX_PARTS] = {{.g = {room}, .own = room, .a = a}};
        a->shape = (lb_shape){2, {1, room}};
        a->stride[0] = room;
        a->stride[1] = 1;
        a = lb_make(cx, &model_format, d, 0, &flat, part);
        if (!a) return NULL;
    }
    a->shape = m->shape;
    a->offset = offset;
    for (int k = 0; k < m->shape.rank; k++)
        a->stride[k] = stride[k];
    return a;
}

/* Same shape, dtype and values: both by strides and from lb_read. what: for the
 * message. */
static inline bool model_same(lb_ctx *cx, lb_array *a, lb_dtype d,
                              const model *m, const char *what)
{
    if (!a) {
        fprintf(stderr, "%s: %s\n", what, lb_error(cx));
        return false;
    }
    const int64_t n = model_size(&m->shape);
    const size_t size = lb_dtype_size(d);
    if (a->dtype != d || !lb_shape_equal(&a->shape, &m->shape)) {
        fprintf(stderr, "%s: %s%s, not %s%s\n", what, lb_dtype_name(a->dtype),
                LB_SHOW(&a->shape), lb_dtype_name(d), LB_SHOW(&m->shape));
        return false;
    }
    char *read = (char *)malloc((size_t)n * size + 1);
    const char *data = model_data(a);
    bool ok = read && lb_read(cx, a, read, (size_t)n * size);
    for (int64_t e = 0; e < n && ok; e++) {
        int64_t i[LB_MAX_RANK], at = a->offset;
        model_index(&m->shape, e, i);
        for (int k = 0; k < m->shape.rank; k++)
            at += i[k] * a->stride[k];
        const double want = m->v[e];
        const double lies = model_get(d, data + (size_t)at * size);
        const double got = model_get(d, read + (size_t)e * size);
        ok = (lies == want && got == want) ||
             (isnan(want) && isnan(lies) && isnan(got));
        if (!ok)
            fprintf(stderr, "%s: element %lld of %s%s is %g, read %g, not %g\n",
                    what, (long long)e, lb_dtype_name(d), LB_SHOW(&a->shape),
                    lies, got, want);
    }
    free(read);
    return ok;
}

#define CHECK_MODEL(cx, a, d, m) CHECK(model_same(cx, a, d, m, #a))

/* The call failed with this status, and its message contains a digit. */
static inline bool model_refused(lb_ctx *cx, const lb_array *a, lb_status want)
{
    const lb_status got = lb_error_status(cx);
    const char *s = lb_error(cx);
    const bool ok = !a && got == want && strpbrk(s, "0123456789") != NULL;
    if (!ok)
        fprintf(stderr, "%s, not %s: \"%s\"\n", lb_status_name(got),
                lb_status_name(want), s);
    lb_clear(cx);
    return ok;
}

#define CHECK_REFUSED(cx, a, status) CHECK(model_refused(cx, a, status))

#endif
