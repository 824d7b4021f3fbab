/* assemble.c - builds quantized arrays from given codes, scales and packed
 * bytes. Nothing is computed, everything is checked. */
#include <string.h>

#include "core/core.h"
#include "ops/components.h"

/* The logical dtype: config's, else the dtype of a given scale, else f32. */
static lb_dtype label_of(const lb_quant *q, const lb_array *scale)
{
    if (q->dtype) return q->dtype;
    return scale && lb_dtype_is_float(scale->dtype) ? scale->dtype : LB_F32;
}

static bool begin(lb_ctx *cx, const char *who, const lb_quant_config *config,
                  const lb_shape *shape, lb_quant *q)
{
    return lb_shape_check(cx, who, shape) &&
           lb_quant_of(cx, who, config, shape->rank, q);
}

/* The part that holds scales; -1 if the format has none. */
static int scale_part(const lb_format *fmt)
{
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name; p++)
        if (fmt->part[p].scale) return p;
    return -1;
}

/* A single value is accepted for a part with one entry, whatever its rank. */
static lb_array *fitted(lb_ctx *cx, lb_array *a, const lb_layout *l, int p)
{
    const lb_shape want = lb_part_shape(&l->stored, &l->part[p]);
    const bool one = a && lb_size(a) == 1 && lb_shape_size(&want) == 1;
    return one ? lb_reshape(cx, a, want) : a;
}

/* ---- codes --------------------------------------------------------------- */

static bool code_exists(const lb_code_kind *k, int64_t code)
{
    return code >= k->least && code <= k->most &&
           (code - k->least) % k->step == 0;
}

static bool bad_code(lb_ctx *cx, const lb_quant *q, int64_t code, int64_t where)
{
    const lb_code_kind *k = &q->format->codes;
    return lb_fail(cx, LB_E_ARG,
                   "%s: code %lld of element %lld is invalid (codes are "
                   "%d %s %d)",
                   q->format->name, (long long)code, (long long)where, k->least,
                   k->least + k->step == k->most ? "and" : "to", k->most);
}

/* Writes a code into a row of bytes that hold fillers. */
static void put_code(const lb_code_kind *k, uint8_t *row, int64_t i,
                     int64_t code)
{
    if (k->bits == 8) {
        row[i] = (uint8_t)code;
        return;
    }
    const int64_t byte = i * k->bits / 8;
    const int bit = (int)(i * k->bits % 8), over = bit + k->bits - 8;
    const int shift = k->high_first ? 8 - k->bits - bit : bit;
    const int mask = (1 << k->bits) - 1;
    const int bits = (int)((code - k->least) / k->step);
    row[byte] = (uint8_t)((row[byte] & ~(mask << shift)) | bits << shift);
    if (over > 0) /* the rest is in the next byte */
        row[byte + 1] =
            (uint8_t)((row[byte + 1] & ~(mask >> (k->bits - over))) |
                      bits >> (k->bits - over));
}

static uint8_t filler_byte(const lb_code_kind *k)
{
    int byte = 0;
    for (int at = 0; k->bits < 8 && at < 8; at += k->bits)
        byte |= k->filler << at;
    return (uint8_t)byte;
}

static bool put_codes(lb_ctx *cx, const lb_quant *q, const lb_array *codes,
                      const lb_shape *stored, lb_array *part)
{
    enum { RUN = 256 };
    const lb_code_kind *k = &q->format->codes;
    const int64_t size = lb_shape_size(&codes->shape);
    if (!size) return true;
    const int64_t row = stored->rank ? stored->dim[stored->rank - 1] : 1;
    const int64_t bytes = (int64_t)part->store->data_size / (size / row);
    const lb_ctype c = lb_ctype_of(codes->dtype);
    uint8_t *to = part->store->data;
    memset(to, filler_byte(k), part->store->data_size);
    for (int64_t e = 0; e < size;) {
        int64_t code[RUN];
        const int64_t at = e % row, n = lb_min_i64(RUN, row - at);
        lb_tile_read_flat(&cx->cpu, codes, e, n, c, code);
        for (int64_t i = 0; i < n; i++) {
            if (!code_exists(k, code[i]))
                return bad_code(cx, q, code[i], e + i);
            put_code(k, to + e / row * bytes, at + i, code[i]);
        }
        e += n;
    }
    return true;
}

/* Parts other than codes and scales that depend only on the config: a table for
 * decoding. They are taken from a temporary array, because a format may prepare
 * its scales too. */
static bool take_prepared(lb_ctx *cx, const lb_quant *q, lb_layout *l,
                          int scale, const lb_shape *shape)
{
    bool others = false;
    for (int p = 1; p < LB_MAX_PARTS; p++)
        others = others || (p != scale && l->elem[p]);
    if (!others || !q->format->prepare) return true;
    lb_layout blank = *l;
    const lb_array *a = lb_layout_alloc(cx, q, &blank, shape);
    if (!a) return false;
    q->format->prepare(q, a->store);
    for (int p = 1; p < LB_MAX_PARTS; p++) {
        const lb_array *part = a->store->part[p].a;
        if (p == scale || !part) continue;
        l->part[p].a = lb_view(cx, part);
        if (!l->part[p].a) return false;
    }
    return true;
}

lb_array *lb_from_codes(lb_ctx *cx, const lb_quant_config *config,
                        lb_array *codes, lb_array *scale)
{
    static const char who[] = "from_codes";
    lb_quant q;
    lb_layout l;
    if (!cx) return NULL;
    if (!codes) {
        lb_fail(cx, LB_E_NULL, "%s: the codes are NULL", who);
        return NULL;
    }
    if (!lb_has_elements(cx, who, codes) ||
        (scale && !lb_has_elements(cx, who, scale)) ||
        !begin(cx, who, config, &codes->shape, &q))
        return NULL;
    if (!q.format->codes.bits || !lb_dtype_is_int(codes->dtype)) {
        lb_fail(cx, q.format->codes.bits ? LB_E_DTYPE : LB_E_UNSUPPORTED,
                "%s: %s %s", who, q.format->name,
                q.format->codes.bits
                    ? "requires codes of an integer dtype"
                    : "has no codes of one integer per element");
        return NULL;
    }
    if (scale && !lb_dtype_is_float(scale->dtype)) {
        lb_fail(cx, LB_E_DTYPE, "%s: the scale is %s, not a float dtype", who,
                lb_dtype_name(scale->dtype));
        return NULL;
    }
    const lb_dtype dtype = label_of(&q, scale);
    if (!q.dtype && scale) q.dtype = dtype;
    if (!lb_layout_of(cx, &q, dtype, &codes->shape, &l)) return NULL;
    const int at = scale_part(q.format);
    const bool wants = at >= 0 && l.elem[at];
    for (int p = 0; p < LB_MAX_PARTS; p++)
        if (l.elem[p] && q.format->part[p].integers) {
            lb_fail(cx, LB_E_ARG,
                    "%s: %s as configured has a part %s (use lb_from_parts)",
                    who, q.format->name, q.format->part[p].name);
            return NULL;
        }
    if (wants != (scale != NULL)) {
        lb_fail(cx, LB_E_ARG, "%s: %s as configured %s, but %s was given", who,
                q.format->name, wants ? "has a scale" : "has no scale",
                wants ? "none" : "one");
        return NULL;
    }
    lb_enter(cx);
    const lb_shape bytes = lb_part_shape(&l.stored, &l.part[0]);
    l.part[0].a = lb_dense(cx, l.elem[0], &bytes);
    if (at >= 0) l.part[at].a = fitted(cx, scale, &l, at);
    lb_array *out = NULL;
    if (l.part[0].a && take_prepared(cx, &q, &l, at, &codes->shape) &&
        put_codes(cx, &q, codes, &l.stored, l.part[0].a))
        out = lb_layout_make(cx, &q, &l, &codes->shape);
    return lb_leave_with(cx, out);
}

/* ---- parts --------------------------------------------------------------- */

static bool check_codes(lb_ctx *cx, const lb_quant *q, const lb_array *a)
{
    const lb_code_kind *k = &q->format->codes;
    if (!k->bits || (k->most - k->least) / k->step + 1 == 1 << k->bits)
        return true;
    enum { RUN = 256 };
    const lb_store *s = a->store;
    const int64_t row = s->shape.rank ? s->shape.dim[s->shape.rank - 1] : 1;
    const int64_t size = lb_shape_size(&s->shape);
    for (int64_t e = 0, n; e < size; e += n) {
        int code[RUN];
        n = lb_min_i64(RUN, row - e % row);
        lb_codes_run(s, e, n, code);
        for (int64_t i = 0; i < n; i++)
            if (!code_exists(k, code[i]))
                return bad_code(cx, q, code[i], e + i);
    }
    return true;
}

static bool check_part(lb_ctx *cx, const lb_quant *q, const lb_layout *l, int p,
                       const lb_array *a)
{
    const lb_format *fmt = q->format;
    const char *name = fmt->part[p].name;
    if (!a)
        return !l->elem[p] ||
               lb_fail(cx, LB_E_NULL, "from_parts: %s requires part %s",
                       fmt->name, name);
    if (fmt->part[p].scale && !l->elem[p])
        return lb_fail(cx, LB_E_ARG,
                       "from_parts: %s as configured has no %s, but one was "
                       "given",
                       fmt->name, name);
    if (fmt->part[p].raw && a->dtype != l->elem[p])
        return lb_fail(cx, LB_E_DTYPE, "from_parts: %s of %s is %s, not %s",
                       name, fmt->name, lb_dtype_name(a->dtype),
                       lb_dtype_name(l->elem[p]));
    if (!fmt->part[p].raw && fmt->codes.bits && !fmt->part[p].integers &&
        !lb_dtype_is_float(a->dtype))
        return lb_fail(cx, LB_E_DTYPE,
                       "from_parts: %s of %s is %s, not a float dtype", name,
                       fmt->name, lb_dtype_name(a->dtype));
    return true;
}

static lb_array *from_own(lb_ctx *cx, lb_quant *q, const lb_shape *shape,
                          lb_array *const *part)
{
    lb_layout l;
    const int at = scale_part(q->format);
    const lb_array *scale = at >= 0 ? part[at] : NULL;
    const lb_dtype dtype = label_of(q, scale);
    if (!q->dtype && scale) q->dtype = dtype;
    if (!lb_layout_of(cx, q, dtype, shape, &l)) return NULL;
    for (int p = 0; p < LB_MAX_PARTS && q->format->part[p].name; p++) {
        if (!check_part(cx, q, &l, p, part[p])) return NULL;
        l.part[p].a =
            q->format->part[p].raw ? part[p] : fitted(cx, part[p], &l, p);
        /* Bytes must be row-major: a strided view is copied. */
        if (part[p] && q->format->part[p].raw && !lb_data(part[p]))
            l.part[p].a = lb_materialize(cx, part[p]);
        if (part[p] && !l.part[p].a) return NULL;
    }
    lb_array *out = lb_layout_make(cx, q, &l, shape);
    return out && check_codes(cx, q, out) ? out : NULL;
}

static lb_array *from_foreign(lb_ctx *cx, const lb_quant *q,
                              const lb_shape *shape, const lb_foreign *f,
                              lb_array *const *part)
{
    if (!part[0]) {
        lb_fail(cx, LB_E_NULL, "from_parts: layout %s requires part %s",
                f->layout, f->part[0]);
        return NULL;
    }
    lb_array *a = f->load(cx, q, shape, part);
    if (a) a->store->made = lb_made_by(q);
    return a;
}

lb_array *lb_from_parts(lb_ctx *cx, const lb_quant_config *config,
                        lb_shape shape, const char *layout,
                        const char *const *name, lb_array *const *part, int n)
{
    static const char who[] = "from_parts";
    lb_quant q;
    lb_array *given[LB_MAX_PARTS] = {0};
    if (!cx || !begin(cx, who, config, &shape, &q)) return NULL;
    if (n < 0 || (n && (!name || !part))) {
        lb_fail(cx, LB_E_NULL, "%s: %d parts, but the list is NULL", who, n);
        return NULL;
    }
    const lb_foreign *f =
        layout ? lb_foreign_named(cx, who, q.format, layout) : NULL;
    if (layout && !f) return NULL;
    for (int i = 0; i < n; i++) {
        const int p = f ? lb_foreign_part(cx, who, f, name[i])
                        : lb_part_named(cx, who, q.format, name[i]);
        if (p < 0) return NULL;
        if (!part[i] || given[p]) {
            lb_fail(cx, part[i] ? LB_E_ARG : LB_E_NULL, "%s: part %s is %s",
                    who, name[i], part[i] ? "given twice" : "NULL");
            return NULL;
        }
        if (!lb_has_elements(cx, who, part[i])) return NULL;
        given[p] = part[i];
    }
    lb_enter(cx);
    return lb_leave_with(cx, f ? from_foreign(cx, &q, &shape, f, given)
                               : from_own(cx, &q, &shape, given));
}
