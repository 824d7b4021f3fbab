/* arrays.c - lists the arrays of a file and loads them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "io/arrays/slices.h"

/* ---- listing ------------------------------------------------------------- */

static const lb_entry *plain_entry(lb_entry *e, const lb_tensor *t)
{
    *e = (lb_entry){.name = t->name,
                    .type = t->type,
                    .format = t->dtype ? "dense" : NULL,
                    .dtype = t->dtype,
                    .rank = t->rank,
                    .dim = t->dim};
    return e;
}

/* Each tensor belongs to one entry only. */
static bool claim(lb_ctx *cx, lb_file *f, lb_group **owner, lb_group *g)
{
    for (int i = 0; i < LB_GROUP_MOST; i++) {
        const lb_tensor *t = g->tensor[i];
        if (!t) continue;
        if (owner[t - f->r->tensor])
            return lb_refuse(cx, f->r->file[t->file],
                             "tensor '%s' is part of both '%s' and '%s'",
                             LB_NAME(t->name),
                             LB_NAME(owner[t - f->r->tensor]->entry.name),
                             LB_NAME(g->entry.name));
        owner[t - f->r->tensor] = g;
        g->entry.n_tensors++;
        g->entry.nbytes += t->size; /* sizes of one file: cannot overflow */
    }
    return true;
}

/* owner: the entry of each tensor; NULL if no layout claims it. */
static bool find_groups(lb_ctx *cx, lb_file *f, lb_group **owner)
{
    lb_group found;
    for (int k = 0; lb_file_layouts[k]; k++) {
        const lb_file_layout *layout = lb_file_layouts[k];
        for (int64_t i = 0; i < f->r->n_tensors; i++) {
            const lb_tensor *t = &f->r->tensor[i];
            if (owner[i]) continue;
            found = (lb_group){.layout = layout};
            plain_entry(&found.entry, t);
            found.entry.layout = layout->name;
            const lb_verdict v = layout->find(cx, f, t, &found);
            if (v == LB_FAILED) return false;
            if (v == LB_DECLINED) continue;
            lb_group *g = lb_arena_alloc(cx, &f->arena, 1, sizeof *g);
            if (!g) return false;
            *g = found;
            if (!claim(cx, f, owner, g)) return false;
        }
    }
    return true;
}

static int name_order(const void *a, const void *b)
{
    const lb_group *x = *(lb_group *const *)a, *y = *(lb_group *const *)b;
    return strcmp(x->entry.name, y->entry.name);
}

static bool sort_names(lb_ctx *cx, lb_file *f)
{
    f->by_name =
        lb_arena_alloc(cx, &f->arena, (uint64_t)f->n, sizeof *f->by_name);
    if (!f->by_name) return false;
    if (!f->n) return true;
    memcpy(f->by_name, f->group, (size_t)f->n * sizeof *f->by_name);
    qsort(f->by_name, (size_t)f->n, sizeof *f->by_name, name_order);
    for (int64_t i = 1; i < f->n; i++)
        if (name_order(&f->by_name[i - 1], &f->by_name[i]) == 0)
            return lb_refuse(cx, f->r->file[0], "two arrays are called '%s'",
                             LB_NAME(f->by_name[i]->entry.name));
    return true;
}

static bool is_by_rows(const lb_group *g)
{
    const lb_tensor *t = g->tensor[0];
    if (g->entry.rank < 2) return false;
    if (g->layout) return g->layout->cuts && g->layout->cuts(g);
    return !t->packed && !t->fortran;
}

static bool list(lb_ctx *cx, lb_file *f)
{
    const uint64_t n = (uint64_t)f->r->n_tensors;
    lb_group **owner = lb_arena_alloc(cx, &f->arena, n, sizeof *owner);
    lb_group *plain = lb_arena_alloc(cx, &f->arena, n, sizeof *plain);
    f->group = lb_arena_alloc(cx, &f->arena, n, sizeof *f->group);
    if (!owner || !plain || !f->group) return false;
    if (!f->options.raw && !find_groups(cx, f, owner)) return false;
    for (uint64_t i = 0; i < n; i++) {
        const lb_tensor *t = &f->r->tensor[i];
        lb_group *g = owner[i];
        if (!g) {
            g = &plain[i];
            plain_entry(&g->entry, t);
            g->tensor[0] = t;
            if (!claim(cx, f, owner, g)) return false;
        }
        if (g->tensor[0] != t) continue;
        g->entry.by_rows = is_by_rows(g);
        f->group[f->n++] = g;
    }
    return sort_names(cx, f);
}

/* ---- open and close ------------------------------------------------------ */

static bool read_options(lb_ctx *cx, const lb_file_options *options,
                         lb_file_options *o)
{
    *o = (lb_file_options){0};
    if (!options) return true;
    const size_t size = options->struct_size ? options->struct_size : sizeof *o;
    if (size < sizeof o->struct_size)
        return lb_fail(cx, LB_E_ARG,
                       "file_open: options.struct_size is %zu, not sizeof or 0",
                       size);
    memcpy(o, options, size < sizeof *o ? size : sizeof *o);
    return true;
}

lb_file *lb_file_of(lb_ctx *cx, lb_reader *r, const lb_file_options *options)
{
    if (!r) return NULL;
    lb_arena arena = {.heap = cx->heap};
    lb_file *f = lb_arena_alloc(cx, &arena, 1, sizeof *f);
    if (!f) {
        lb_reader_close(r);
        return NULL;
    }
    *f = (lb_file){.r = r, .options = *options, .arena = arena};
    if (list(cx, f)) return f;
    lb_file_close(f);
    return NULL;
}

lb_file *lb_file_open(lb_ctx *cx, const char *path,
                      const lb_file_options *options)
{
    lb_file_options o;
    if (!cx) return NULL;
    if (!path) {
        lb_fail(cx, LB_E_NULL, "file_open: the path is NULL");
        return NULL;
    }
    if (!read_options(cx, options, &o)) return NULL;
    const lb_read_options ro = {.no_map = o.no_map, .max_header = o.max_header};
    return lb_file_of(cx, lb_reader_open(cx, path, &ro), &o);
}

void lb_file_close(lb_file *f)
{
    if (!f) return;
    lb_reader_close(f->r);
    lb_arena arena = f->arena; /* f itself is in this arena */
    lb_arena_free(&arena);
}

/* ---- looking ------------------------------------------------------------- */

const char *lb_file_kind(const lb_file *f)
{
    return f ? f->r->kind->name : NULL;
}

int64_t lb_file_count(const lb_file *f)
{
    return f ? f->n : 0;
}

const lb_entry *lb_file_entry(const lb_file *f, int64_t i)
{
    return f && i >= 0 && i < f->n ? &f->group[i]->entry : NULL;
}

static lb_group *group_named(const lb_file *f, const char *name)
{
    int64_t lo = 0, hi = f->n;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        const int c = strcmp(f->by_name[mid]->entry.name, name);
        if (c == 0) return f->by_name[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const lb_entry *lb_file_find(const lb_file *f, const char *name)
{
    const lb_group *g = f && name ? group_named(f, name) : NULL;
    return g ? &g->entry : NULL;
}

const lb_meta *lb_file_meta(const lb_file *f, int64_t i)
{
    return f && i >= 0 && i < f->r->n_meta ? &f->r->meta[i] : NULL;
}

const lb_meta *lb_file_find_meta(const lb_file *f, const char *key)
{
    return f && key ? lb_reader_meta(f->r, key) : NULL;
}

/* ---- loading ------------------------------------------------------------- */

lb_group *lb_group_wanted(lb_ctx *cx, const lb_file *f, const char *name)
{
    if (!cx || !f) return NULL;
    lb_group *g = name ? group_named(f, name) : NULL;
    if (!g)
        lb_fail(cx, name ? LB_E_ARG : LB_E_NULL,
                "%s: has no array called '%s' (of %lld)",
                LB_PATH(f->r->file[0]->path), name ? LB_NAME(name) : "(NULL)",
                (long long)f->n);
    return g;
}

/* Errors caused by the bytes of the file become content errors that name the
 * file and the array. */
static void blame_file(lb_ctx *cx, const lb_file *f, const lb_group *g)
{
    char why[LB_ERROR_SIZE];
    const lb_status s = lb_error_status(cx);
    if (s == LB_OK || s == LB_E_NOMEM || s >= LB_E_DENIED) return;
    memcpy(why, lb_error(cx), strlen(lb_error(cx)) + 1);
    lb_clear(cx);
    lb_refuse(cx, f->r->file[g->tensor[0]->file], "'%s': %s",
              LB_NAME(g->entry.name), why);
}

/* The result of loading; clear: there was no error before. */
static lb_array *loaded(lb_ctx *cx, const lb_file *f, const lb_group *g,
                        bool clear, lb_array *a)
{
    lb_keep(cx, a);
    lb_leave(cx);
    if (!a && clear) blame_file(cx, f, g);
    /* Running out of memory for the scope is an error as well. */
    return clear && lb_error_status(cx) ? NULL : a;
}

static lb_array *load(lb_ctx *cx, lb_file *f, const lb_group *g, lb_rows rows)
{
    const bool clear = !lb_error_status(cx);
    lb_enter(cx);
    lb_array *a = g->layout ? g->layout->load(cx, f, g, rows)
                            : lb_tensor_load(cx, f, g->tensor[0], rows);
    return loaded(cx, f, g, clear, a);
}

lb_array *lb_file_load(lb_ctx *cx, lb_file *f, const char *name)
{
    const lb_group *g = lb_group_wanted(cx, f, name);
    return g ? load(cx, f, g, (lb_rows){0, -1}) : NULL;
}

lb_array *lb_file_load_rows(lb_ctx *cx, lb_file *f, const char *name,
                            int64_t lo, int64_t hi)
{
    const lb_group *g = lb_group_wanted(cx, f, name);
    if (!g) return NULL;
    const int64_t n = g->entry.rank ? g->entry.dim[0] : 0;
    if (g->entry.rank && lo >= 0 && lo <= hi && hi <= n)
        return load(cx, f, g, (lb_rows){lo, hi});
    lb_fail(cx, LB_E_ARG,
            "%s: rows %lld to %lld of '%s' are out of range (%s%lld rows)",
            LB_PATH(f->r->file[0]->path), (long long)lo, (long long)hi,
            LB_NAME(name), g->entry.rank ? "" : "a scalar, ", (long long)n);
    return NULL;
}

/* ---- boxes --------------------------------------------------------------- */

const lb_described *lb_group_described(lb_ctx *cx, lb_file *f, lb_group *g)
{
    if (!g->described && g->layout && g->layout->describe)
        g->described = g->layout->describe(cx, f, g);
    return g->described;
}

/* The first axis varies fastest (Fortran order): the stored array is the
 * transpose. */
static lb_array *cut_turned(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                            const lb_cut *box)
{
    const int rank = box->of.rank;
    lb_cut c = {.of = {.rank = rank}};
    for (int k = 0; k < rank; k++) {
        const int from = rank - 1 - k;
        c.of.dim[k] = box->of.dim[from];
        c.start[k] = box->start[from];
        c.count[k] = box->count[from];
    }
    lb_array *a = lb_transpose(cx, lb_tensor_cut(cx, f, t, t->dtype, &c), NULL);
    return a ? lb_bind(cx, lb_find_primitive(cx, "copy"), 1, &a, NULL) : NULL;
}

static lb_array *cut_tensor(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                            const lb_cut *box)
{
    if (!t->dtype) return lb_tensor_load(cx, f, t, (lb_rows){0, -1}); /* no */
    if (t->fortran) return cut_turned(cx, f, t, box);
    return lb_tensor_cut(cx, f, t, t->dtype, box);
}

lb_array *lb_group_load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                            const lb_cut *box)
{
    const bool clear = !lb_error_status(cx);
    if (lb_cut_is_all(box)) return load(cx, f, g, (lb_rows){0, -1});
    lb_enter(cx);
    lb_array *a;
    if (!g->layout)
        a = cut_tensor(cx, f, g->tensor[0], box);
    else if (g->layout->load_cut)
        a = g->layout->load_cut(cx, f, g, box);
    else
        a = lb_array_cut(cx, g->layout->load(cx, f, g, (lb_rows){0, -1}), box);
    return loaded(cx, f, g, clear, a);
}

static bool inside(const lb_entry *e, const int64_t *start,
                   const int64_t *count)
{
    for (int k = 0; k < e->rank; k++)
        if (start[k] < 0 || count[k] < 0 || count[k] > e->dim[k] ||
            start[k] > e->dim[k] - count[k])
            return false;
    return true;
}

static bool check_box(lb_ctx *cx, lb_file *f, lb_group *g, const lb_cut *box)
{
    int64_t block = 0;
    const lb_described *d = lb_group_described(cx, f, g);
    if (!d) return !lb_error_status(cx);
    if (lb_cut_fits(d, box, &block)) return true;
    const lb_shape count = lb_cut_shape(box),
                   start = lb_shape_make(box->of.rank, box->start);
    char of[32] = "";
    if (block) snprintf(of, sizeof of, " of %lld", (long long)block);
    return lb_fail(
        cx, LB_E_SHAPE,
        "%s: slice %s at %s of '%s', %s %s%s, begins or ends inside a block%s",
        LB_PATH(f->r->file[0]->path), LB_SHOW(&count), LB_SHOW(&start),
        LB_NAME(g->entry.name), g->entry.format, lb_dtype_name(g->entry.dtype),
        LB_SHOW(&box->of), of);
}

lb_array *lb_file_load_slice(lb_ctx *cx, lb_file *f, const char *name,
                             const int64_t *start, const int64_t *count)
{
    lb_group *g = lb_group_wanted(cx, f, name);
    if (!g) return NULL;
    const lb_entry *e = &g->entry;
    if (e->rank > LB_MAX_RANK || !e->format)
        return load(cx, f, g, (lb_rows){0, -1}); /* fails with the reason */
    if (e->rank && (!start || !count || !inside(e, start, count))) {
        lb_fail(cx, start && count ? LB_E_ARG : LB_E_NULL,
                "%s: the slice is not inside '%s'",
                LB_PATH(f->r->file[0]->path), LB_NAME(name));
        return NULL;
    }
    lb_cut box = {.of = lb_shape_make(e->rank, e->dim)};
    for (int k = 0; k < e->rank; k++) {
        box.start[k] = start[k];
        box.count[k] = count[k];
    }
    return check_box(cx, f, g, &box) ? lb_group_load_cut(cx, f, g, &box) : NULL;
}

uint64_t lb_file_bytes_read(const lb_file *f)
{
    uint64_t n = 0;
    for (int i = 0; f && i < f->r->n_files; i++)
        n += f->r->file[i]->bytes_read;
    return n;
}

lb_array *lb_load(lb_ctx *cx, const char *path, const char *name)
{
    lb_file *f = lb_file_open(cx, path, NULL);
    lb_array *a = lb_file_load(cx, f, name);
    lb_file_close(f);
    return a;
}
