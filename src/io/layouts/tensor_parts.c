/* tensor_parts.c - see tensor_parts.h. */
#include "io/layouts/tensor_parts.h"

#include <string.h>

#include "core/core.h"

lb_described *lb_parts_begin(lb_ctx *cx, lb_file *f, const char *format,
                             lb_dtype dtype, const lb_shape *shape)
{
    lb_described *d = lb_arena_alloc(cx, &f->arena, 1, sizeof *d);
    if (!d) return NULL;
    memcpy(d->format, format, strlen(format) + 1);
    d->dtype = dtype;
    d->shape = d->stored = *shape;
    return d;
}

lb_described_part *lb_parts_add(lb_described *d, const char *name)
{
    lb_described_part *p = &d->part[d->n_parts++];
    memcpy(p->name, name, strlen(name) + 1);
    p->n_groups = d->stored.rank;
    return p;
}

void lb_parts_rows(lb_described *d, const char *name, const lb_tensor *t,
                   lb_dtype elem, int64_t g)
{
    lb_described_part *p = lb_parts_add(d, name);
    p->tensor = t;
    p->elem = elem;
    lb_part_rows(&p->table, &d->stored, g);
}

/* ---- checks -------------------------------------------------------------- */

/* The shape of the tensor's elements, if it is the part's or larger. */
static bool cropped(const lb_described_part *p, const lb_shape *want,
                    lb_shape *of)
{
    const lb_tensor *t = p->tensor;
    uint64_t size = lb_dtype_size(p->elem);
    bool fits = t->rank == want->rank && !t->fortran;
    *of = *want;
    for (int k = 0; fits && k < t->rank; k++) {
        fits = t->dim[k] >= want->dim[k] &&
               (!t->dim[k] || size <= t->size / (uint64_t)t->dim[k]);
        of->dim[k] = t->dim[k];
        size *= (uint64_t)t->dim[k];
    }
    return fits && size == t->size;
}

static bool holds(const lb_described_part *p, const lb_shape *want)
{
    lb_shape of;
    if (p->tensor->fortran || !lb_shape_check(NULL, "", want)) return false;
    return (uint64_t)lb_shape_size(want) * lb_dtype_size(p->elem) ==
               p->tensor->size ||
           cropped(p, want, &of);
}

bool lb_parts_check(lb_ctx *cx, const lb_file *f, const char *array,
                    const lb_described *d)
{
    for (int i = 0; i < d->n_parts; i++) {
        const lb_described_part *p = &d->part[i];
        const lb_shape want = lb_part_shape(&d->stored, &p->table);
        if (p->array) {
            if (!lb_parts_check(cx, f, array, p->array)) return false;
            continue;
        }
        if (holds(p, &want)) continue;
        const lb_tensor *t = p->tensor;
        const lb_shape got = lb_shape_make(
            t->rank < LB_MAX_RANK ? t->rank : LB_MAX_RANK, t->dim);
        return lb_refuse(cx, f->r->file[t->file],
                         "'%s' %s needs %s %s of %s elements, but '%s' is %s "
                         "%s",
                         LB_NAME(array), LB_SHOW(&d->stored), d->format,
                         p->name, LB_SHOW(&want), LB_NAME(t->name), t->type,
                         LB_SHOW(&got));
    }
    return true;
}

static void list_tensors(const lb_described *d, lb_group *g, int *n)
{
    for (int i = 0; i < d->n_parts; i++)
        if (d->part[i].array)
            list_tensors(d->part[i].array, g, n);
        else
            g->tensor[(*n)++] = d->part[i].tensor;
}

bool lb_parts_group(lb_ctx *cx, lb_file *f, const char *name,
                    const lb_described *d, lb_group *g)
{
    int n = 0;
    const lb_format *fmt = lb_find_format(cx, d->format);
    if (!fmt)
        return lb_fail(cx, LB_E_UNSUPPORTED, "unknown format '%s'", d->format);
    if (!lb_parts_check(cx, f, name, d)) return false;
    list_tensors(d, g, &n);
    g->own = (void *)d;
    g->entry.name = name;
    g->entry.type = g->tensor[0]->type;
    g->entry.format = fmt->name;
    g->entry.dtype = d->dtype;
    g->entry.rank = d->shape.rank;
    g->entry.dim = d->shape.dim;
    return true;
}

/* ---- loading ------------------------------------------------------------- */

static lb_array *cut_array(lb_ctx *cx, lb_file *f, const lb_described *d,
                           const lb_cut *box);

static lb_array *cut_tensor(lb_ctx *cx, lb_file *f, const lb_described_part *p,
                            lb_cut *to)
{
    lb_shape of;
    if (cropped(p, &to->of, &of)) to->of = of;
    return lb_tensor_cut(cx, f, p->tensor, p->elem, to);
}

static lb_array *cut_array(lb_ctx *cx, lb_file *f, const lb_described *d,
                           const lb_cut *box)
{
    lb_part table[LB_MAX_PARTS] = {0};
    const lb_shape shape = lb_cut_shape(box);
    const lb_format *fmt = lb_find_format(cx, d->format);
    for (int i = 0; i < d->n_parts; i++) {
        const lb_described_part *p = &d->part[i];
        int64_t block;
        lb_cut to;
        int k = 0;
        while (fmt->part[k].name && strcmp(fmt->part[k].name, p->name) != 0)
            k++;
        if (!lb_cut_part(d, p, box, &to, &block)) {
            lb_fail(cx, LB_E_SHAPE, "the slice splits a block of %lld",
                    (long long)block);
            return NULL;
        }
        table[k] = p->table;
        table[k].a = p->array ? cut_array(cx, f, p->array, &to)
                              : cut_tensor(cx, f, p, &to);
        if (!table[k].a) return NULL;
    }
    return lb_make(cx, fmt, d->dtype, d->meaning, &shape, table);
}

/* Rows that share an entry. */
static int64_t rows_of_entry(const lb_described *d)
{
    int64_t most = 1;
    for (int i = 0; i < d->n_parts; i++)
        if (d->part[i].table.g[0] > most) most = d->part[i].table.g[0];
    return most;
}

lb_array *lb_parts_load(lb_ctx *cx, lb_file *f, const lb_group *g, lb_rows rows)
{
    const lb_described *d = g->own;
    lb_cut box = lb_cut_all(&d->shape);
    if (rows.hi < 0 || d->shape.rank < 2)
        return lb_rows_of(cx, cut_array(cx, f, d, &box), rows);
    const int64_t each = rows_of_entry(d), all = d->shape.dim[0];
    const int64_t lo = rows.lo / each * each;
    const int64_t hi = lb_min_i64(lb_ceil_div(rows.hi, each) * each, all);
    box.start[0] = lo;
    box.count[0] = hi - lo;
    return lb_rows_of(cx, cut_array(cx, f, d, &box),
                      (lb_rows){rows.lo - lo, rows.hi - lo});
}

bool lb_parts_cuts(const lb_group *g)
{
    return ((const lb_described *)g->own)->shape.rank > 1;
}

const lb_described *lb_parts_describe(lb_ctx *cx, lb_file *f, const lb_group *g)
{
    (void)cx, (void)f;
    return g->own;
}

lb_array *lb_parts_load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                            const lb_cut *box)
{
    return cut_array(cx, f, g->own, box);
}
