/* components.c - access to the stored parts and codes of an array, also in
 * other programs' layouts. */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "ops/components.h"

/* The names of a format's parts, separated by commas. */
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

const char *lb_component_name(const lb_array *a, int k)
{
    return a && k >= 0 && k < LB_MAX_PARTS ? a->store->fmt->part[k].name : NULL;
}

/* Whether a views all elements of its store, in order. */
static bool is_whole(const lb_array *a)
{
    return lb_is_row_major(a) && a->offset == 0 &&
           lb_shape_size(&a->shape) == lb_shape_size(&a->store->shape);
}

/* Permutes the part's axes like the view's, followed by its own axis. */
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

/* The part of an empty view, if the view has the axes of the store. */
static lb_array *empty_part(lb_ctx *cx, const lb_array *a, int p)
{
    const lb_part *part = &a->store->part[p];
    if (lb_shape_size(&a->shape) || a->shape.rank != a->store->shape.rank)
        return NULL;
    return lb_zeros(cx, part->a->dtype, lb_part_shape(&a->shape, part));
}

lb_array *lb_component(lb_ctx *cx, lb_array *a, const char *name)
{
    lb_box b;
    lb_array cut, *empty;
    if (!cx) return NULL;
    if (!a) {
        lb_fail(cx, LB_E_NULL, "component: the array is NULL");
        return NULL;
    }
    const lb_store *s = a->store;
    if (!lb_has_elements(cx, "component", a)) return NULL;
    if (s->sharding) return s->sharding->component(cx, a, name);
    const int p = lb_part_named(cx, "component", s->fmt, name);
    if (p < 0 || !s->part[p].a) return NULL;
    const bool as_stored =
        s->shape.rank == 1 || lb_shape_equal(&a->shape, &s->shape);
    if (is_whole(a) && as_stored) return lb_view(cx, s->part[p].a);
    if (lb_as_box(a, &b) && lb_box_cut(&b, p, &cut) &&
        !(a->shape.rank == LB_MAX_RANK && b.part[p].own))
        return in_view_order(cx, a, &b, &b.part[p], &cut);
    if (is_whole(a)) return lb_view(cx, s->part[p].a);
    if ((empty = empty_part(cx, a, p))) return empty;
    lb_fail(cx, LB_E_UNSUPPORTED,
            "component: this view of %s%s cuts through entries of %s, or "
            "repeats them: use the whole array, or lb_materialize",
            s->fmt->name, LB_SHOW(&a->shape), name);
    return NULL;
}

/* ---- codes --------------------------------------------------------------- */

/* The i-th code of a row of part 0. Codes of 3, 5, 6 and 7 bits may continue in
 * the next byte. */
static int code_in(const lb_code_kind *k, const uint8_t *row, int64_t i)
{
    const int64_t byte = i * k->bits / 8;
    const int bit = (int)(i * k->bits % 8);
    int v = row[byte];
    if (k->bits == 8) return k->least < 0 ? (int8_t)v : v;
    if (bit + k->bits > 8) v |= row[byte + 1] << 8;
    v >>= k->high_first ? 8 - k->bits - bit : bit;
    return k->least + k->step * (v & ((1 << k->bits) - 1));
}

void lb_codes_run(const lb_store *s, int64_t first, int64_t n, int *code)
{
    const int64_t row = s->shape.rank ? s->shape.dim[s->shape.rank - 1] : 1;
    const int64_t at = first % row;
    const uint8_t *bytes = lb_part_bytes(s, 0);
    bytes += lb_part_entry(s, 0, first - at);
    for (int64_t i = 0; i < n; i++)
        code[i] = code_in(&s->fmt->codes, bytes, at + i);
}

/* Codes [at, at + n) of a row, as bytes. */
typedef void unpack_fn(const lb_code_kind *k, const uint8_t *row, int64_t at,
                       int64_t n, uint8_t *to);

static void unpack_any(const lb_code_kind *k, const uint8_t *row, int64_t at,
                       int64_t n, uint8_t *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)code_in(k, row, at + i);
}

/* Whole bytes of codes, with constant shifts. */
static inline void unpack_bytes(const lb_code_kind *k, const uint8_t *row,
                                int64_t at, int64_t n, uint8_t *to,
                                const int bits)
{
    const int each = 8 / bits, mask = (1 << bits) - 1;
    const int64_t head = lb_min_i64(n, (each - at % each) % each);
    const int64_t bytes = (n - head) / each;
    unpack_any(k, row, at, head, to);
    row += (at + head) / each;
    to += head;
    for (int64_t b = 0; b < bytes; b++)
        for (int j = 0; j < each; j++) {
            const int shift = k->high_first ? 8 - bits - j * bits : j * bits;
            to[b * each + j] =
                (uint8_t)(k->least + k->step * (row[b] >> shift & mask));
        }
    unpack_any(k, row, bytes * each, n - head - bytes * each,
               to + bytes * each);
}

static void unpack_4(const lb_code_kind *k, const uint8_t *row, int64_t at,
                     int64_t n, uint8_t *to)
{
    unpack_bytes(k, row, at, n, to, 4);
}

static void unpack_2(const lb_code_kind *k, const uint8_t *row, int64_t at,
                     int64_t n, uint8_t *to)
{
    unpack_bytes(k, row, at, n, to, 2);
}

static void unpack_1(const lb_code_kind *k, const uint8_t *row, int64_t at,
                     int64_t n, uint8_t *to)
{
    unpack_bytes(k, row, at, n, to, 1);
}

static void unpack_8(const lb_code_kind *k, const uint8_t *row, int64_t at,
                     int64_t n, uint8_t *to)
{
    (void)k;
    if (n) memcpy(to, row + at, (size_t)n);
}

static unpack_fn *unpack_of(int bits)
{
    return bits == 8   ? unpack_8
           : bits == 4 ? unpack_4
           : bits == 2 ? unpack_2
           : bits == 1 ? unpack_1
                       : unpack_any;
}

typedef struct {
    const lb_array *a;
    uint8_t *to;
} codes_job;

/* Codes of n elements of a view, starting at a flat index. */
static void codes_flat(const codes_job *j, int64_t first, int64_t n)
{
    const lb_array *a = j->a;
    const lb_store *s = a->store;
    const int last = a->shape.rank - 1;
    const int64_t row = s->shape.rank ? s->shape.dim[s->shape.rank - 1] : 1;
    const bool plain = lb_is_row_major(a);
    unpack_fn *unpack = unpack_of(s->fmt->codes.bits);
    for (int64_t i = 0, m; i < n; i += m) {
        int64_t rest = first + i, e = a->offset;
        for (int k = last; k >= 0 && !plain; rest /= a->shape.dim[k], k--)
            e += rest % a->shape.dim[k] * a->stride[k];
        if (plain) e += rest;
        m = plain ? lb_min_i64(n - i, row - e % row) : 1;
        const uint8_t *bytes = lb_part_bytes(s, 0);
        bytes += lb_part_entry(s, 0, e - e % row);
        unpack(&s->fmt->codes, bytes, e % row, m, j->to + first + i);
    }
}

enum { RUN = 1 << 14 };

static void codes_task(void *arg, int64_t lo, int64_t hi, int thread)
{
    const codes_job *j = arg;
    const int64_t size = lb_shape_size(&j->a->shape);
    (void)thread;
    codes_flat(j, lo * RUN, lb_min_i64(hi * RUN, size) - lo * RUN);
}

lb_array *lb_codes(lb_ctx *cx, lb_array *a)
{
    if (!cx) return NULL;
    if (a && !(a = lb_here(cx, a))) return NULL;
    if (!a || !a->store->fmt->codes.bits) {
        lb_fail(cx, a ? LB_E_UNSUPPORTED : LB_E_NULL, "codes: %s%s",
                a ? lb_format_of(a) : "the array is NULL",
                a ? " has no codes of one integer per element" : "");
        return NULL;
    }
    const bool is_signed = a->store->fmt->codes.least < 0;
    lb_array *out = lb_dense(cx, is_signed ? LB_I8 : LB_U8, &a->shape);
    if (!out) return NULL;
    codes_job j = {a, out->store->data};
    lb_pool_run(cx->pool, lb_ceil_div(lb_shape_size(&a->shape), RUN),
                codes_task, &j);
    return out;
}

/* ---- other programs' layouts --------------------------------------------- */

const lb_foreign *lb_foreign_named(lb_ctx *cx, const char *who,
                                   const lb_format *fmt, const char *layout)
{
    const lb_foreign *f = fmt->foreign;
    for (; f && f->layout; f++)
        if (lb_layout_is(layout, f->layout)) return f;
    lb_text known = {""};
    for (f = fmt->foreign; f && f->layout; f++)
        snprintf(known.s + strlen(known.s), sizeof known.s - strlen(known.s),
                 " %s", f->layout);
    lb_fail(cx, LB_E_ARG, "%s: %s has no layout \"%.100s\" (it has:%s)", who,
            fmt->name, layout,
            known.s[0] ? known.s : " only its own layout, NULL");
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
    if (!(a = lb_here(cx, a))) return NULL;
    const lb_format *fmt = a->store->fmt;
    const lb_foreign *f = lb_foreign_named(cx, "export", fmt, layout);
    const int p = f ? lb_foreign_part(cx, "export", f, name) : -1;
    if (p < 0) return NULL;
    lb_enter(cx);
    lb_array *whole = a;
    const bool plain =
        is_whole(a) && lb_shape_equal(&a->shape, &a->store->shape);
    const lb_verdict v = plain ? LB_DONE : lb_pack(cx, a, &whole);
    if (v == LB_FAILED) return lb_leave_with(cx, NULL);
    /* Packing a permuted view keeps it permuted. */
    if (v != LB_DONE || !is_whole(whole)) whole = is_whole(a) ? a : NULL;
    if (!whole)
        lb_fail(cx, LB_E_UNSUPPORTED,
                "export: this view of %s%s is permuted, or not made of whole "
                "blocks",
                fmt->name, LB_SHOW(&a->shape));
    return lb_leave_with(cx, whole ? f->save(cx, whole, p) : NULL);
}
