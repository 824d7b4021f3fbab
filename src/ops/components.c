/* components.c - what is stored behind an array, part by part, code by code,
 * and in other programs' layouts. */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "ops/components.h"

/* "codes, scale": the names of a format's parts. */
static lb_text part_names(const lb_format *fmt)
{
    lb_text t = {"none"};
    size_t at = 0;
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name; p++) {
        const int n = snprintf(t.s + at, sizeof t.s - at, "%s%s",
                               at ? ", " : "", fmt->part[p].name);
        if (n < 0 || (size_t)n >= sizeof t.s - at) break;
        at += (size_t)n;
    }
    return t;
}

int lb_part_named(lb_ctx *cx, const char *who, const lb_format *fmt,
                  const char *name)
{
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name && name; p++)
        if (strcmp(fmt->part[p].name, name) == 0) return p;
    lb_fail(cx, LB_E_ARG, "%s: %s has no part \"%.100s\" (it has: %s)", who,
            fmt->name, name ? name : "", part_names(fmt).s);
    return -1;
}

/* a sees all elements of its store, in their order. */
static bool is_whole(const lb_array *a)
{
    return lb_is_row_major(a) && a->offset == 0 &&
           lb_shape_size(&a->shape) == lb_shape_size(&a->store->shape);
}

/* The part's axes in the order of the view's, then its own. */
static lb_array *in_view_order(lb_ctx *cx, const lb_array *a, const lb_box *b,
                               const lb_part *part, const lb_array *cut)
{
    lb_array *out = lb_view(cx, cut);
    if (!out) return NULL;
    const int rank = a->shape.rank, own = b->shape.rank;
    out->shape.rank = rank;
    for (int k = 0; k < rank; k++) {
        const int at = b->axis[k];
        out->shape.dim[k] = at < 0 ? 1 : cut->shape.dim[at];
        out->stride[k] = at < 0 ? 0 : cut->stride[at];
    }
    if (!part->own) return out;
    out->shape.dim[rank] = part->own;
    out->stride[rank] = cut->stride[own];
    out->shape.rank++;
    return out;
}

lb_array *lb_component(lb_ctx *cx, lb_array *a, const char *name)
{
    lb_box b;
    lb_array cut;
    if (!cx) return NULL;
    if (!a) {
        lb_fail(cx, LB_E_NULL, "component: the array is NULL");
        return NULL;
    }
    const lb_format *fmt = a->store->fmt;
    const int p = lb_part_named(cx, "component", fmt, name);
    if (p < 0) return NULL;
    lb_array *part = a->store->part[p].a;
    if (!part) return NULL;
    if (is_whole(a)) return lb_view(cx, part);
    if (lb_as_box(a, &b) && lb_box_cut(&b, p, &cut) &&
        !(a->shape.rank == LB_MAX_RANK && b.part[p].own))
        return in_view_order(cx, a, &b, &b.part[p], &cut);
    lb_fail(cx, LB_E_UNSUPPORTED,
            "component: this view of %s%s cuts through entries of %s, or "
            "repeats them: take it of the whole array, or lb_materialize",
            fmt->name, LB_SHOW(&a->shape), name);
    return NULL;
}

/* ---- codes --------------------------------------------------------------- */

/* Element e of the store: its bits in the first part. */
static int stored_code(const lb_store *s, const uint8_t *bytes, int64_t e)
{
    const lb_code_kind *k = &s->fmt->codes;
    const uint8_t byte = bytes[lb_part_entry(s, 0, e)];
    if (k->bits == 8) return k->least < 0 ? (int8_t)byte : byte;
    const int64_t row = s->shape.rank ? s->shape.dim[s->shape.rank - 1] : 1;
    const int per = 8 / k->bits, i = (int)(e % row % per);
    const int shift = (k->high_first ? per - 1 - i : i) * k->bits;
    return k->least + k->step * (byte >> shift & ((1 << k->bits) - 1));
}

lb_array *lb_codes(lb_ctx *cx, lb_array *a)
{
    if (!cx) return NULL;
    if (!a || !a->store->fmt->codes.bits) {
        lb_fail(cx, a ? LB_E_UNSUPPORTED : LB_E_NULL, "codes: %s%s",
                a ? lb_format_of(a) : "the array is NULL",
                a ? " has no codes of one integer per element" : "");
        return NULL;
    }
    const bool is_signed = a->store->fmt->codes.least < 0;
    lb_array *out = lb_dense(cx, is_signed ? LB_I8 : LB_U8, &a->shape);
    if (!out) return NULL;
    const uint8_t *bytes = lb_part_bytes(a->store, 0);
    uint8_t *to = out->store->data;
    const int64_t size = lb_shape_size(&a->shape);
    int64_t i[LB_MAX_RANK] = {0}, e = a->offset;
    for (int64_t at = 0; at < size; at++) {
        to[at] = (uint8_t)stored_code(a->store, bytes, e);
        for (int k = a->shape.rank - 1; k >= 0; k--) {
            e += a->stride[k];
            if (++i[k] < a->shape.dim[k]) break;
            e -= a->shape.dim[k] * a->stride[k];
            i[k] = 0;
        }
    }
    return out;
}

/* ---- other programs' layouts --------------------------------------------- */

const lb_foreign *lb_foreign_named(lb_ctx *cx, const char *who,
                                   const lb_format *fmt, const char *layout)
{
    const lb_foreign *f = fmt->foreign;
    for (; f && f->layout; f++)
        if (strcmp(f->layout, layout) == 0) return f;
    lb_fail(cx, LB_E_ARG, "%s: %s has no layout \"%.100s\"", who, fmt->name,
            layout);
    return NULL;
}

int lb_foreign_part(lb_ctx *cx, const char *who, const lb_foreign *f,
                    const char *name)
{
    for (int p = 0; p < LB_MAX_PARTS && f->part[p] && name; p++)
        if (strcmp(f->part[p], name) == 0) return p;
    lb_fail(cx, LB_E_ARG, "%s: layout %s has no part \"%.100s\"", who,
            f->layout, name ? name : "");
    return -1;
}

lb_array *lb_export(lb_ctx *cx, lb_array *a, const char *layout,
                    const char *name)
{
    if (!layout) return lb_component(cx, a, name);
    if (!cx) return NULL;
    if (!a) {
        lb_fail(cx, LB_E_NULL, "export: the array is NULL");
        return NULL;
    }
    const lb_format *fmt = a->store->fmt;
    const lb_foreign *f = lb_foreign_named(cx, "export", fmt, layout);
    const int p = f ? lb_foreign_part(cx, "export", f, name) : -1;
    if (p < 0) return NULL;
    lb_enter(cx);
    lb_array *whole = a;
    const bool plain =
        is_whole(a) && lb_shape_equal(&a->shape, &a->store->shape);
    if (!plain && lb_pack(cx, a, &whole) != LB_DONE)
        whole = is_whole(a) ? a : NULL;
    if (!whole)
        lb_fail(cx, LB_E_UNSUPPORTED,
                "export: this view of %s%s is not made of whole blocks",
                fmt->name, LB_SHOW(&a->shape));
    return lb_leave_with(cx, whole ? f->save(cx, whole, p) : NULL);
}
