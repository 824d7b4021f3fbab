/* layout_native.c - lowbit's own layout: an array of any format as its parts,
 * each a tensor NAME.PART, and a descriptor (descriptor.h).
 *
 * It uses only the parts table, so it also stores formats that users add.
 */
#include <string.h>

#include "core/core.h"
#include "io/arrays/saver.h"
#include "io/arrays/slices.h"

/* ---- finding ------------------------------------------------------------- */

/* Where its tensors are searched: the name, and parts of parts. */
typedef struct native_place {
    lb_ctx *cx;
    lb_file *f;
    lb_group *g;
    int n_tensors;
    const char *array; /* for messages */
} native_place;

static bool find_tensor(native_place *at, lb_bytes *name, const lb_described *d,
                        lb_described_part *p)
{
    const lb_shape want = lb_part_shape(&d->stored, &p->table);
    lb_bytes_put(name, "", 1);
    if (name->failed) return lb_fail(at->cx, LB_E_NOMEM, "out of memory");
    const char *full = (const char *)name->at;
    p->tensor = lb_reader_find(at->f->r, full);
    if (!p->tensor)
        return lb_refuse(at->cx, at->f->r->file[0], "'%s' has no tensor '%s'",
                         at->array, LB_NAME(full));
    if (!lb_tensor_want(at->cx, at->f, at->array, p->name, p->tensor,
                        LB_NO_DTYPE, &want))
        return false;
    if (at->n_tensors == LB_GROUP_MOST)
        return lb_refuse(at->cx, at->f->r->file[0],
                         "'%s' has more than %d parts", at->array,
                         LB_GROUP_MOST);
    at->g->tensor[at->n_tensors++] = p->tensor;
    return true;
}

static bool find_parts(native_place *at, lb_bytes *name, lb_described *d)
{
    const size_t n = name->n;
    for (int i = 0; i < d->n_parts; i++) {
        lb_described_part *p = &d->part[i];
        const lb_shape want = lb_part_shape(&d->stored, &p->table);
        name->n = n;
        lb_bytes_put(name, ".", 1);
        lb_bytes_put(name, p->name, strlen(p->name));
        if (p->array && !lb_shape_equal(&p->array->shape, &want))
            return lb_refuse(
                at->cx, at->f->r->file[0],
                "part '%s.%s' has shape %s, but its groups require %s",
                at->array, p->name, LB_SHOW(&p->array->shape), LB_SHOW(&want));
        if (!(p->array ? find_parts(at, name, p->array)
                       : find_tensor(at, name, d, p)))
            return false;
    }
    return true;
}

static bool has_tensor(const lb_group *g, int n, const lb_tensor *t)
{
    for (int i = 0; i < n; i++)
        if (g->tensor[i] == t) return true;
    return false;
}

/* Whether t is a part of the array that m describes, whose name has n bytes.
 * LB_DECLINED: it is not; then g->own is NULL. */
static lb_verdict find_as(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                          const lb_meta *m, size_t n, lb_group *g)
{
    lb_described *d = lb_description_read(cx, f, m);
    if (!d) return LB_FAILED;
    if (strcmp(d->layout, "native") != 0) return LB_DECLINED;
    const lb_quoted quoted = lb_quote_name(m->key + strlen(LB_DESCRIPTION));
    native_place at = {.cx = cx, .f = f, .g = g, .array = quoted.s};
    lb_bytes path = {.heap = cx->heap};
    lb_bytes_put(&path, t->name, n);
    const bool ok = find_parts(&at, &path, d);
    lb_bytes_free(&path);
    if (!ok) return LB_FAILED;
    if (has_tensor(g, at.n_tensors, t)) {
        g->own = d;
        return LB_DONE;
    }
    memset(g->tensor, 0, sizeof g->tensor);
    return LB_DECLINED;
}

/* The array that a tensor is part of: NAME of NAME.PART, or of NAME.PART.PART.
 * A tensor NAME.X may also be a separate array. */
static lb_verdict find(lb_ctx *cx, lb_file *f, const lb_tensor *t, lb_group *g)
{
    const lb_meta *m = NULL;
    lb_verdict v = LB_DECLINED;
    for (const char *dot = strchr(t->name, '.'); dot && v == LB_DECLINED;
         dot = strchr(dot + 1, '.')) {
        const size_t n = (size_t)(dot - t->name);
        m = lb_reader_meta_in(f->r, LB_DESCRIPTION, t->name, n);
        if (m) v = find_as(cx, f, t, m, n, g);
    }
    if (v != LB_DONE) return v;
    if (g->tensor[0] != t)
        return LB_DECLINED; /* only its first tensor
                                                * identifies a group */
    const lb_described *d = g->own;
    const lb_format *fmt = lb_find_format(cx, d->format);
    g->entry.name = m->key + strlen(LB_DESCRIPTION);
    g->entry.format = fmt ? fmt->name : NULL;
    g->entry.dtype = fmt ? d->dtype : LB_NO_DTYPE;
    g->entry.rank = d->shape.rank;
    g->entry.dim = d->shape.dim;
    return LB_DONE;
}

/* ---- loading ------------------------------------------------------------- */

static lb_array *load_array(lb_ctx *cx, lb_file *f, const lb_described *d,
                            lb_rows rows);

/* Whether decode can read a part: raw bytes only in the groups that the format
 * has, others in any. */
static bool can_decode(const lb_format *fmt, int k, const lb_layout *own,
                       const lb_part *t)
{
    const lb_dtype dtype = t->a->dtype;
    if (!fmt->part[k].raw) return !t->own && dtype >= LB_F32 && dtype <= LB_F64;
    for (int i = 0; i < own->stored.rank; i++)
        if (t->g[i] != own->part[k].g[i]) return false;
    return t->own == own->part[k].own && dtype == own->elem[k];
}

/* Parts with groups of their own. */
static bool fill_table(lb_ctx *cx, const lb_file *f, const lb_format *fmt,
                       const lb_described *d, const lb_shape *shape,
                       lb_array *const *part, lb_part *table)
{
    lb_layout own;
    const lb_quant q = {.format = fmt, .dtype = d->dtype};
    if (!lb_layout_of(cx, &q, d->dtype, shape, &own)) return false;
    for (int i = 0; i < d->n_parts; i++) {
        const char *name = d->part[i].name;
        int k = 0;
        while (k < LB_MAX_PARTS && fmt->part[k].name &&
               strcmp(fmt->part[k].name, name) != 0)
            k++;
        if (k == LB_MAX_PARTS || !fmt->part[k].name || table[k].a)
            return lb_refuse(cx, f->r->file[0],
                             "%s has no part %s, or two of them", fmt->name,
                             LB_NAME(name));
        table[k] = d->part[i].table;
        table[k].a = part[i];
        if (!can_decode(fmt, k, &own, &table[k]))
            return lb_refuse(cx, f->r->file[0],
                             "part %s of %s %s has groups or a type that "
                             "cannot be decoded",
                             LB_NAME(name), fmt->name, LB_SHOW(shape));
    }
    for (int k = 0; k < LB_MAX_PARTS && fmt->part[k].name; k++)
        if (!table[k].a && !fmt->part[k].optional)
            return lb_refuse(cx, f->r->file[0], "%s requires part %s",
                             fmt->name, fmt->part[k].name);
    return true;
}

/* The array of d's parts, in their order. */
static lb_array *assemble(lb_ctx *cx, const lb_file *f, const lb_format *fmt,
                          const lb_described *d, const lb_shape *shape,
                          lb_array *const *part)
{
    const char *name[LB_MAX_PARTS];
    lb_part table[LB_MAX_PARTS] = {0};
    lb_quant_config config;
    for (int i = 0; i < d->n_parts; i++)
        name[i] = d->part[i].name;
    if (lb_description_config(fmt, d, &config))
        return lb_from_parts(cx, &config, *shape, NULL, name, part, d->n_parts);
    if (!fmt->groups || !lb_shape_equal(&d->shape, &d->stored) ||
        d->meaning < 0 || d->meaning > LB_MEANS_INVERSE) {
        lb_refuse(cx, f->r->file[0],
                  "the parts of %s %s, stored as %s, have a layout that this "
                  "format does not produce",
                  fmt->name, LB_SHOW(&d->shape), LB_SHOW(&d->stored));
        return NULL;
    }
    if (!fill_table(cx, f, fmt, d, shape, part, table)) return NULL;
    return lb_make(cx, fmt, d->dtype, d->meaning, shape, table);
}

/* Whether every part follows the first axis row by row, or does not depend on
 * it. */
static bool can_cut(const lb_described *d)
{
    if (!d->shape.rank || !lb_shape_equal(&d->shape, &d->stored)) return false;
    for (int i = 0; i < d->n_parts; i++)
        if (d->part[i].table.g[0] > 1) return false;
    return true;
}

static bool cuts(const lb_group *g)
{
    return can_cut(g->own);
}

static lb_array *load_part(lb_ctx *cx, lb_file *f, const lb_described_part *p,
                           lb_rows rows)
{
    const lb_rows all = {0, -1};
    if (rows.hi >= 0 && !p->table.g[0]) rows = all;
    if (p->array) return lb_rows_of(cx, load_array(cx, f, p->array, all), rows);
    return lb_tensor_load(cx, f, p->tensor, rows);
}

static lb_array *load_array(lb_ctx *cx, lb_file *f, const lb_described *d,
                            lb_rows rows)
{
    lb_array *part[LB_MAX_PARTS];
    lb_shape shape = d->shape;
    const lb_format *fmt = lb_find_format(cx, d->format);
    if (!fmt || !fmt->layout) {
        lb_fail(cx, LB_E_UNSUPPORTED, "%s: unknown format '%s'%s",
                LB_PATH(f->r->file[0]->path), LB_NAME(d->format),
                fmt ? ", or one whose layout cannot be checked" : "");
        return NULL;
    }
    const bool cut = rows.hi >= 0 && can_cut(d);
    if (cut) shape.dim[0] = rows.hi - rows.lo;
    for (int i = 0; i < d->n_parts; i++) {
        part[i] = load_part(cx, f, &d->part[i], cut ? rows : (lb_rows){0, -1});
        if (!part[i]) return NULL;
    }
    lb_array *a = assemble(cx, f, fmt, d, &shape, part);
    return cut ? a : lb_rows_of(cx, a, rows);
}

static lb_array *load(lb_ctx *cx, lb_file *f, const lb_group *g, lb_rows rows)
{
    return load_array(cx, f, g->own, rows);
}

/* ---- boxes --------------------------------------------------------------- */

static const lb_described *describe(lb_ctx *cx, lb_file *f, const lb_group *g)
{
    (void)cx, (void)f;
    return g->own;
}

static lb_array *cut_array(lb_ctx *cx, lb_file *f, const lb_described *d,
                           const lb_cut *box);

/* Quantized scales whose blocks the box splits: read as a whole and
 * dequantized. */
static lb_array *cut_scales(lb_ctx *cx, lb_file *f, const lb_described *d,
                            const lb_cut *box)
{
    int64_t block;
    lb_described seen = *d;
    seen.shape = box->of; /* or the rows that contain them */
    if (lb_cut_fits(&seen, box, &block)) return cut_array(cx, f, &seen, box);
    lb_array *all = load_array(cx, f, d, (lb_rows){0, -1});
    return lb_array_cut(cx, lb_reshape(cx, all, box->of), box);
}

static lb_array *cut_parts(lb_ctx *cx, lb_file *f, const lb_format *fmt,
                           const lb_described *d, const lb_described *local,
                           const lb_cut *box)
{
    lb_array *part[LB_MAX_PARTS];
    int64_t block;
    lb_cut to;
    for (int i = 0; i < d->n_parts; i++) {
        const lb_described_part *p = &d->part[i];
        if (!lb_cut_part(d, p, box, &to, &block))
            return NULL; /* splits no
                                                                * block */
        part[i] = p->array
                      ? cut_scales(cx, f, p->array, &to)
                      : lb_tensor_cut(cx, f, p->tensor, p->tensor->dtype, &to);
        if (!part[i]) return NULL;
    }
    return assemble(cx, f, fmt, local, &local->shape, part);
}

static lb_array *cut_array(lb_ctx *cx, lb_file *f, const lb_described *d,
                           const lb_cut *box)
{
    const lb_format *fmt = lb_find_format(cx, d->format);
    if (!fmt || !fmt->layout)
        return load_array(cx, f, d, (lb_rows){0, -1}); /* an error */
    lb_arena arena = {.heap = cx->heap};
    const lb_described *local = lb_cut_described(cx, &arena, d, box, false);
    lb_array *a = local ? cut_parts(cx, f, fmt, d, local, box) : NULL;
    lb_arena_free(&arena);
    return a;
}

static lb_array *load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                          const lb_cut *box)
{
    return cut_array(cx, f, g->own, box);
}

/* ---- writing ------------------------------------------------------------- */

static bool plan_parts(lb_ctx *cx, lb_saver *s, lb_saved *item, lb_bytes *name,
                       const lb_described *d)
{
    const size_t n = name->n;
    for (int i = 0; i < d->n_parts; i++) {
        const lb_described_part *p = &d->part[i];
        const lb_shape shape = lb_part_shape(&d->stored, &p->table);
        name->n = n;
        lb_bytes_put(name, ".", 1);
        lb_bytes_put(name, p->name, strlen(p->name));
        if (name->failed) return lb_fail(cx, LB_E_NOMEM, "out of memory");
        if (!(p->array ? plan_parts(cx, s, item, name, p->array)
                       : lb_saver_tensor(cx, s, item, (const char *)name->at,
                                         name->n, "", NULL, p->elem, &shape)))
            return false;
    }
    return true;
}

/* A container may lack types for dtypes of user formats. */
static bool takes_parts(const lb_saver *s, const lb_described *d)
{
    for (int i = 0; i < d->n_parts; i++) {
        const lb_described_part *p = &d->part[i];
        if (!(p->array ? takes_parts(s, p->array) : lb_saver_takes(s, p->elem)))
            return false;
    }
    return true;
}

static lb_verdict plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    lb_described d = *item->described;
    if (!takes_parts(s, &d)) return LB_DECLINED;
    lb_bytes name = {.heap = cx->heap};
    memcpy(d.layout, "native", sizeof "native");
    lb_bytes_put(&name, item->name, strlen(item->name));
    const bool ok = plan_parts(cx, s, item, &name, &d);
    lb_bytes_free(&name);
    return ok && lb_saver_describe(cx, s, item->name, &d) ? LB_DONE : LB_FAILED;
}

/* The k-th tensor of a's parts, in the order of planning. */
static lb_array *leaf(const lb_array *a, int *k)
{
    const lb_store *s = a->store;
    for (int p = 0; p < LB_MAX_PARTS && s->fmt->part[p].name; p++) {
        lb_array *part = s->part[p].a;
        if (!part) continue;
        if (part->store->data && (*k)-- == 0) return part;
        lb_array *below = part->store->data ? NULL : leaf(part, k);
        if (below) return below;
    }
    return NULL;
}

static lb_array *part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    lb_array *found = leaf(a, &k);
    if (!found)
        lb_fail(cx, LB_E_ARG, "'%s' has different parts than planned",
                LB_NAME(item->name));
    return found ? lb_view(cx, found) : NULL;
}

const lb_file_layout lb_file_layout_native = {
    .name = "native",
    .find = find,
    .load = load,
    .cuts = cuts,
    .describe = describe,
    .load_cut = load_cut,
    .place = lb_cut_leaf,
    .rows = true,
    .plan = plan,
    .part = part,
};
