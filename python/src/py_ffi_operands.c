/* py_ffi_operands.c - arrays of the library from XLA's buffers, without copies,
 * and back.
 *
 * A packed operand is several buffers, its parts, and a description in the
 * attributes (py_ffi.h). The array is made by lb_make: sizes and dtypes are
 * checked, codes are not, because that would read all of them in each call.
 * lowbit.jax checks codes that do not come from a quantizer when an array is
 * made from them.
 */
#include <stdio.h>
#include <string.h>

#include "py_ffi.h"

/* ---- dtypes -------------------------------------------------------------- */

static lb_dtype dtype_of(int xla)
{
    static const lb_dtype dtype[] = {
        [FFI_PRED] = LB_BOOL, [FFI_S8] = LB_I8,   [FFI_S16] = LB_I16,
        [FFI_S32] = LB_I32,   [FFI_S64] = LB_I64, [FFI_U8] = LB_U8,
        [FFI_U16] = LB_U16,   [FFI_U32] = LB_U32, [FFI_U64] = LB_U64,
        [FFI_F16] = LB_F16,   [FFI_F32] = LB_F32, [FFI_F64] = LB_F64,
        [FFI_BF16] = LB_BF16,
    };
    const int n = (int)(sizeof dtype / sizeof *dtype);
    return xla >= 0 && xla < n ? dtype[xla] : LB_NO_DTYPE;
}

/* ---- attributes ---------------------------------------------------------- */

static const void *attribute(const ffi_attrs *attrs, const char *name, int type)
{
    const size_t len = strlen(name);
    for (int64_t i = 0; i < attrs->size; i++)
        if (attrs->names[i]->len == len &&
            memcmp(attrs->names[i]->ptr, name, len) == 0)
            return attrs->types[i] == type ? attrs->item[i] : NULL;
    return NULL;
}

/* Reads integers of an attribute one after the other. */
typedef struct attr_cursor {
    const int64_t *at;
    size_t left;
    bool short_of; /* more were read than there are, or a count is too large */
} attr_cursor;

static int64_t next(attr_cursor *c)
{
    if (!c->left) {
        c->short_of = true;
        return 0;
    }
    c->left--;
    return *c->at++;
}

static int count(attr_cursor *c)
{
    const int64_t n = next(c);
    if (n >= 0 && n <= LB_MAX_RANK) return (int)n;
    c->short_of = true;
    return 0;
}

static void read_axes(attr_cursor *c, lb_axes *axes)
{
    axes->n = count(c);
    for (int k = 0; k < axes->n; k++)
        axes->axis[k] = (int)next(c);
}

static bool integers(const ffi_call *call, const char *name, attr_cursor *c)
{
    const ffi_array *a = attribute(&call->frame->attrs, name, FFI_ATTR_ARRAY);
    if (!a || a->dtype != FFI_S64)
        return lb_fail(call->cx, LB_E_ARG,
                       "ffi: attribute %s is missing, or not a list of i64",
                       name);
    *c = (attr_cursor){a->data, a->size, false};
    return true;
}

static bool complete(const ffi_call *call, const char *name,
                     const attr_cursor *c)
{
    return (!c->short_of && !c->left) ||
           lb_fail(call->cx, LB_E_ARG,
                   "ffi: attribute %s has a wrong number of integers", name);
}

bool ffi_spec_read(ffi_call *call, int i, ffi_spec *s)
{
    char name[8];
    attr_cursor c = {0};
    *s = (ffi_spec){0};
    snprintf(name, sizeof name, "f%d", i);
    const ffi_span *format =
        attribute(&call->frame->attrs, name, FFI_ATTR_STRING);
    if (!format || !format->len) return true;
    if (format->len >= sizeof s->format)
        return lb_fail(call->cx, LB_E_ARG, "ffi: a format's name of %zu bytes",
                       format->len);
    memcpy(s->format, format->ptr, format->len);
    snprintf(name, sizeof name, "a%d", i);
    if (!integers(call, name, &c)) return false;
    lb_quant_config *q = &s->config;
    *q = (lb_quant_config){.struct_size = sizeof *q, .format = s->format};
    q->dtype = (lb_dtype)next(&c);
    s->parts = (unsigned)next(&c);
    q->block_size = next(&c);
    q->compat = (lb_compat)next(&c);
    q->decode = (lb_decode)next(&c);
    q->scale = (lb_scale)next(&c);
    q->meaning = (lb_meaning)next(&c);
    q->threshold = (lb_threshold)next(&c);
    q->blocks = (lb_blocks)next(&c);
    q->on_nonfinite = (lb_nonfinite)next(&c);
    q->reference = next(&c) != 0;
    q->center = next(&c) != 0;
    q->double_quant = next(&c) != 0;
    read_axes(&c, &q->axes);
    s->shape.rank = count(&c);
    for (int k = 0; k < s->shape.rank; k++)
        s->shape.dim[k] = next(&c);
    s->n_perm = count(&c);
    for (int k = 0; k < s->n_perm; k++)
        s->perm[k] = (int)next(&c);
    return complete(call, name, &c) &&
           lb_shape_check(call->cx, "ffi", &s->shape);
}

bool ffi_dims_read(ffi_call *call, lb_dot_dims *dims)
{
    attr_cursor c = {0};
    if (!integers(call, "dims", &c)) return false;
    *dims = (lb_dot_dims){0};
    read_axes(&c, &dims->lhs_contract);
    read_axes(&c, &dims->rhs_contract);
    read_axes(&c, &dims->lhs_batch);
    read_axes(&c, &dims->rhs_batch);
    dims->preferred = (lb_dtype)next(&c);
    dims->precision = (lb_precision)next(&c);
    return complete(call, "dims", &c);
}

/* ---- operands ------------------------------------------------------------ */

static const ffi_buffer *buffer(ffi_call *call, const ffi_buffers *list,
                                int64_t i, lb_shape *shape, lb_dtype *dtype)
{
    if (i >= list->size || list->types[i] != FFI_BUFFER) {
        lb_fail(call->cx, LB_E_ARG, "ffi: buffer %lld of %lld is missing",
                (long long)i, (long long)list->size);
        return NULL;
    }
    const ffi_buffer *b = list->item[i];
    *shape = lb_shape_make((int)b->rank, b->dims);
    *dtype = dtype_of(b->dtype);
    if (!lb_shape_check(call->cx, "ffi", shape)) return NULL;
    if (!*dtype) {
        lb_fail(call->cx, LB_E_DTYPE, "ffi: XLA's dtype %d is not supported",
                b->dtype);
        return NULL;
    }
    return b;
}

static lb_array *next_buffer(ffi_call *call)
{
    lb_shape shape;
    lb_dtype dtype;
    const ffi_buffer *b =
        buffer(call, &call->frame->args, call->arg++, &shape, &dtype);
    return b ? lb_wrap(call->cx, dtype, shape, b->data, NULL, NULL) : NULL;
}

bool ffi_layout(lb_ctx *cx, const lb_quant_config *c, lb_dtype from,
                const lb_shape *shape, lb_layout *l, const lb_format **format)
{
    const lb_format *f = lb_find_format(cx, c->format);
    if (!f || !f->layout)
        return lb_fail(cx, LB_E_ARG, "ffi: no format \"%s\" with a layout",
                       c->format);
    lb_quant q = {
        .format = f,
        .block_size = c->block_size,
        .axes = c->axes,
        .dtype = c->dtype,
        .reference = c->reference,
        .center = c->center,
        .compat = c->compat,
        .decode = c->decode,
        .scale = c->scale,
        .meaning = c->meaning,
        .threshold = c->threshold,
        .blocks = c->blocks,
        .on_nonfinite = c->on_nonfinite,
    };
    for (int k = 0; k < q.axes.n; k++) {
        int *axis = &q.axes.axis[k];
        if (*axis < -shape->rank || *axis >= shape->rank)
            return lb_fail(cx, LB_E_AXIS, "%s: axis %d of an array of rank %d",
                           f->name, *axis, shape->rank);
        if (*axis < 0) *axis += shape->rank;
    }
    *l = (lb_layout){.stored = *shape,
                     .dtype = q.dtype ? q.dtype : from,
                     .meaning = (int)q.meaning,
                     .run = 1};
    *format = f;
    return f->layout(cx, &q, from, shape, l);
}

/* Sets g of a part to what its shape shows. Scales of arrays that jax.vmap or
 * slices have made may follow an axis that the configuration shares, and the
 * reverse. */
static bool fit_part(ffi_call *call, const lb_format *f, const lb_layout *l,
                     int p, lb_part *part, const lb_array *a)
{
    const lb_shape own = lb_shape_of(a), *stored = &l->stored;
    const lb_shape want = lb_part_shape(stored, part);
    if (lb_shape_equal(&own, &want)) return true;
    bool ok = own.rank == want.rank && !f->part[p].raw;
    for (int k = 0; ok && k < stored->rank; k++) {
        if (own.dim[k] == want.dim[k]) continue;
        ok = own.dim[k] == 1 || own.dim[k] == stored->dim[k];
        part->g[k] = own.dim[k] == 1 ? 0 : 1;
    }
    const lb_text got = lb_shape_text(&own), shape = lb_shape_text(stored);
    return ok ||
           lb_fail(call->cx, LB_E_SHAPE,
                   "%s: %s is %s, not %s, for an array of shape %s", f->name,
                   f->part[p].name, got.s, lb_shape_text(&want).s, shape.s);
}

bool ffi_scale_layout(lb_ctx *cx, const lb_shape *shape, lb_layout *l,
                      const lb_format **format)
{
    const lb_quant_config config = {
        .struct_size = sizeof config, .format = "dynamic8", .center = true};
    return ffi_layout(cx, &config, LB_F32, shape, l, format);
}

static bool take_parts(ffi_call *call, unsigned parts, bool double_quant,
                       const lb_format *f, lb_layout *l);

/* Scales in 8 bits. Their stored shape is a row of all entries, after axes that
 * jax.vmap has added in front. */
static lb_array *next_scales(ffi_call *call, const lb_shape *want)
{
    lb_shape shape;
    lb_dtype dtype;
    lb_layout l;
    const lb_format *f;
    unsigned parts = 0;
    if (!buffer(call, &call->frame->args, call->arg, &shape, &dtype) ||
        !ffi_scale_layout(call->cx, &shape, &l, &f))
        return NULL;
    for (int p = 0; p < LB_MAX_PARTS; p++)
        parts |= (unsigned)(l.elem[p] != LB_NO_DTYPE) << p;
    if (!take_parts(call, parts, false, f, &l)) return NULL;
    lb_array *a = lb_make(call->cx, f, l.dtype, l.meaning, &l.stored, l.part);
    return a ? lb_reshape(call->cx, a, *want) : NULL;
}

static bool take_parts(ffi_call *call, unsigned parts, bool double_quant,
                       const lb_format *f, lb_layout *l)
{
    for (int p = 0; p < LB_MAX_PARTS && f->part[p].name; p++) {
        if (!(parts >> p & 1)) continue;
        const lb_shape want = lb_part_shape(&l->stored, &l->part[p]);
        lb_array *a = double_quant && f->part[p].scale
                          ? next_scales(call, &want)
                          : next_buffer(call);
        if (!a || !fit_part(call, f, l, p, &l->part[p], a)) return false;
        if (f->part[p].raw && lb_dtype_of(a) != l->elem[p])
            return lb_fail(call->cx, LB_E_DTYPE, "%s: %s is %s, not %s",
                           f->name, f->part[p].name,
                           lb_dtype_name(lb_dtype_of(a)),
                           lb_dtype_name(l->elem[p]));
        l->part[p].a = a;
    }
    return true;
}

lb_array *ffi_operand(ffi_call *call, int i)
{
    ffi_spec s;
    lb_layout l;
    const lb_format *f;
    if (!ffi_spec_read(call, i, &s)) return NULL;
    if (!*s.format) return next_buffer(call);
    if (!ffi_layout(call->cx, &s.config, s.config.dtype, &s.shape, &l, &f) ||
        !take_parts(call, s.parts, s.config.double_quant, f, &l))
        return NULL;
    lb_array *a = lb_make(call->cx, f, l.dtype, l.meaning, &l.stored, l.part);
    if (!a) return NULL;
    a->store->made.reference = s.config.reference;
    a->store->made.compat = s.config.compat;
    a->store->made.threshold = s.config.threshold;
    if (!lb_shape_equal(&l.stored, &s.shape))
        a = lb_reshape(call->cx, a, s.shape);
    if (!s.n_perm) return a;
    if (s.n_perm != s.shape.rank) {
        lb_fail(call->cx, LB_E_AXIS, "ffi: %d axes of %d are permuted",
                s.n_perm, s.shape.rank);
        return NULL;
    }
    return lb_transpose(call->cx, a, s.perm);
}

bool ffi_result(ffi_call *call, lb_array *a)
{
    lb_shape shape;
    lb_dtype dtype;
    const ffi_buffer *b =
        buffer(call, &call->frame->rets, call->ret++, &shape, &dtype);
    if (!a || !b) return false;
    const lb_shape own = lb_shape_of(a);
    if (dtype != lb_dtype_of(a) || !lb_shape_equal(&own, &shape))
        return lb_fail(call->cx, LB_E_SHAPE,
                       "ffi: result %lld is %s%s, not %s%s",
                       (long long)call->ret - 1, lb_dtype_name(lb_dtype_of(a)),
                       lb_shape_text(&own).s, lb_dtype_name(dtype),
                       lb_shape_text(&shape).s);
    const size_t size = (size_t)lb_size(a) * lb_dtype_size(dtype);
    return lb_read(call->cx, a, b->data, size);
}
