/* save.c - arrays to files: the header first, then each array as it comes. */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/save.h"

/* ---- planning ------------------------------------------------------------ */

static const char *type_of(const lb_container *kind, lb_dtype dtype)
{
    for (const lb_coding *c = kind->coding; c->name; c++)
        if (c->dtype == dtype && c->len == 1) return c->name;
    return NULL;
}

bool lb_saver_takes(const lb_saver *s, lb_dtype dtype)
{
    return type_of(s->kind, dtype) != NULL;
}

/* Lists grow by doubling; what they leave stays in the arena until the end. */
static void *grown(lb_ctx *cx, lb_arena *arena, void *list, int64_t n,
                   size_t size)
{
    if (n & (n - 1)) return list; /* has room up to the next power of two */
    void *more = lb_arena_alloc(cx, arena, n ? 2 * (uint64_t)n : 1, size);
    if (more && n) memcpy(more, list, (size_t)n * size);
    return more;
}

bool lb_saver_tensor(lb_ctx *cx, lb_saver *s, lb_saved *item,
                     const char *prefix, size_t n, const char *suffix,
                     const char *type, lb_dtype dtype, const lb_shape *shape)
{
    if (!type) type = type_of(s->kind, dtype);
    if (!type)
        return lb_fail(
            cx, LB_E_UNSUPPORTED, "'%s': a %s file has no type for %s",
            LB_NAME(item->name), s->kind->name, lb_dtype_name(dtype));
    s->tensor =
        grown(cx, &s->arena, s->tensor, s->n_tensors, sizeof *s->tensor);
    const size_t rest = strlen(suffix);
    char *name = lb_arena_alloc(cx, &s->arena, n + rest + 1, 1);
    int64_t *dim =
        lb_arena_alloc(cx, &s->arena, (uint64_t)shape->rank, sizeof *dim);
    if (!s->tensor || !name || !dim) return false;
    memcpy(name, prefix, n);
    memcpy(name + n, suffix, rest + 1);
    for (int k = 0; k < shape->rank; k++)
        dim[k] = shape->dim[k];
    s->tensor[s->n_tensors++] = (lb_tensor){
        .name = name, .type = type, .rank = shape->rank, .dim = dim};
    item->n_tensors++;
    return true;
}

bool lb_saver_describe(lb_ctx *cx, lb_saver *s, const char *name,
                       const lb_described *d)
{
    lb_bytes text = {.heap = cx->heap};
    lb_description_put(&text, d);
    s->meta = grown(cx, &s->arena, s->meta, s->n_meta, sizeof *s->meta);
    const size_t size = sizeof LB_DESCRIPTION + strlen(name);
    char *key = lb_arena_alloc(cx, &s->arena, size, 1);
    const char *copy = NULL;
    if (!text.failed) copy = lb_arena_text(cx, &s->arena, text.at, text.n);
    const bool ok = s->meta && key && copy;
    if (ok) {
        snprintf(key, size, "%s%s", LB_DESCRIPTION, name);
        s->meta[s->n_meta++] = (lb_meta){.key = key,
                                         .type = LB_META_STRING,
                                         .n = 1,
                                         .bytes = (const uint8_t *)copy,
                                         .size = text.n};
    }
    lb_bytes_free(&text);
    return ok || lb_fail(cx, LB_E_NOMEM, "out of memory");
}

/* The first layout of that name that has a place for it. Block types of files
 * that have them need no name. */
static lb_verdict plan_group(lb_ctx *cx, lb_saver *s, lb_saved *item,
                             const char *layout)
{
    for (int k = 0; lb_file_layouts[k]; k++) {
        const lb_file_layout *l = lb_file_layouts[k];
        if (!l->plan ||
            (strcmp(l->name, layout) != 0 && strcmp(l->name, "ggml") != 0))
            continue;
        item->layout = l;
        const lb_verdict v = l->plan(cx, s, item);
        if (v != LB_DECLINED) return v;
    }
    return LB_DECLINED;
}

static lb_verdict verdict(bool done)
{
    return done ? LB_DONE : LB_FAILED;
}

static lb_verdict plan_item(lb_ctx *cx, lb_saver *s, const lb_planned *p,
                            const char *layout, lb_saved *item)
{
    const lb_array *a = p->array;
    const bool quantized =
        a ? !a->store->data : p->config && !p->config->simulate;
    if (!p->name || (a && (p->dtype || p->config)))
        return verdict(lb_fail(cx, p->name ? LB_E_ARG : LB_E_NULL, "save: %s",
                               p->name ? "an array, and how to make it, too"
                                       : "an array without a name"));
    item->name = lb_arena_text(cx, &s->arena, p->name, strlen(p->name));
    if (!item->name) return LB_FAILED;
    item->first = s->n_tensors;
    item->dtype = a ? a->dtype : p->dtype;
    item->shape = a ? a->shape : p->shape;
    if (!lb_shape_check(cx, LB_NAME(p->name), &item->shape)) return LB_FAILED;
    if (!quantized)
        return verdict(lb_saver_tensor(cx, s, item, p->name, strlen(p->name),
                                       "", NULL, item->dtype, &item->shape));
    const lb_described *d = a ? lb_describe_array(cx, &s->arena, p->name, a)
                              : lb_describe_config(cx, &s->arena, p);
    if (!d) return LB_FAILED;
    item->described = d;
    item->array = p->array;
    item->format = lb_find_format(cx, d->format);
    item->dtype = d->dtype;
    if (!item->format)
        return verdict(lb_fail(cx, LB_E_ARG,
                               "'%s': no format '%s' in this context",
                               LB_NAME(p->name), d->format));
    const lb_verdict v = plan_group(cx, s, item, layout);
    item->array = NULL;
    item->offset = NULL;
    return v;
}

static bool no_place(lb_ctx *cx, const lb_saver *s, const lb_saved *item,
                     const char *layout)
{
    return lb_fail(cx, LB_E_UNSUPPORTED,
                   "'%s', %s %s: layout %s of a %s file has no place for it",
                   LB_NAME(item->name), item->format->name,
                   LB_SHOW(&item->shape), layout, s->kind->name);
}

static bool find_kind(lb_ctx *cx, lb_saver *s, const char *kind)
{
    if (!kind) kind = "safetensors";
    s->kind = lb_container_named(kind);
    return s->kind ||
           lb_fail(cx, LB_E_ARG, "save: no kind of file '%s'", LB_NAME(kind));
}

const lb_file_layout *lb_file_layout_for(const char *name, const char *format)
{
    for (int k = 0; lb_file_layouts[k]; k++) {
        const lb_file_layout *l = lb_file_layouts[k];
        if (l->format && strcmp(l->name, name) == 0 &&
            strcmp(l->format, format) == 0)
            return l;
    }
    return NULL;
}

lb_verdict lb_saver_suits(lb_ctx *cx, const lb_planned *p, const char *kind,
                          const char *layout)
{
    const float any = 0; /* whatever it will be */
    lb_saver s = {.arena = {.heap = cx->heap}};
    lb_saved item = {.offset = &any};
    lb_verdict v = LB_FAILED;
    lb_enter(cx);
    if (find_kind(cx, &s, kind))
        v = plan_item(cx, &s, p, layout ? layout : "native", &item);
    lb_leave(cx);
    lb_arena_free(&s.arena);
    return v;
}

/* ---- open ---------------------------------------------------------------- */

static bool take_meta(lb_ctx *cx, lb_saver *s, const lb_save_options *o)
{
    for (int64_t i = 0; i < o->n_meta; i++) {
        s->meta = grown(cx, &s->arena, s->meta, s->n_meta, sizeof *s->meta);
        if (!s->meta) return false;
        s->meta[s->n_meta++] = o->meta[i];
    }
    return true;
}

/* All files of all inputs, by which the writer knows them. */
static lb_infile **input_files(lb_ctx *cx, lb_saver *s,
                               const lb_save_options *o, int *n)
{
    *n = 0;
    for (int i = 0; i < o->n_inputs; i++)
        *n += o->input[i]->r->n_files;
    lb_infile **all =
        lb_arena_alloc(cx, &s->arena, (uint64_t)*n, sizeof(lb_infile *));
    *n = 0;
    for (int i = 0; all && i < o->n_inputs; i++)
        for (int k = 0; k < o->input[i]->r->n_files; k++)
            all[(*n)++] = o->input[i]->r->file[k];
    return all;
}

static bool plan_all(lb_ctx *cx, lb_saver *s, const lb_planned *list,
                     const char *layout, const float *offset)
{
    for (int64_t i = 0; i < s->n; i++) {
        lb_saved *item = &s->item[i];
        if (offset) item->offset = &offset[i];
        const lb_verdict v = plan_item(cx, s, &list[i], layout, item);
        if (v == LB_DECLINED) return no_place(cx, s, item, layout);
        if (v != LB_DONE) return false;
        if (item->n_tensors > LB_GROUP_MOST)
            return lb_fail(cx, LB_E_UNSUPPORTED, "'%s' has %d parts, not %d",
                           LB_NAME(item->name), item->n_tensors, LB_GROUP_MOST);
    }
    return true;
}

/* Those that an earlier run has written are passed by. */
static void skip_done(lb_saver *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        s->done[i] = s->journal.record[i * LB_RECORD] != 0;
        for (int k = 0; s->done[i] && k < s->item[i].n_tensors; k++)
            lb_writer_has(s->w, s->item[i].first + k);
    }
    while (s->at < s->n && s->done[s->at])
        s->at++;
}

static bool keep_journal(lb_ctx *cx, lb_saver *s, const lb_saver_more *more)
{
    s->journal =
        (lb_journal){.resume = more->resume, .job = more->job, .n = s->n};
    s->journal.record =
        lb_arena_alloc(cx, &s->arena, (uint64_t)s->n, LB_RECORD);
    s->done = lb_arena_alloc(cx, &s->arena, (uint64_t)s->n, sizeof *s->done);
    return s->journal.record && s->done;
}

static bool begin(lb_ctx *cx, lb_saver *s, const char *path,
                  const lb_planned *list, const lb_save_options *o,
                  const lb_saver_more *more)
{
    lb_write_options w = {.no_sync = o->no_sync, .place = true};
    const char *layout = o->layout ? o->layout : "native";
    if (!find_kind(cx, s, o->kind)) return false;
    s->item = lb_arena_alloc(cx, &s->arena, (uint64_t)s->n, sizeof *s->item);
    if (!s->item || !take_meta(cx, s, o) ||
        !plan_all(cx, s, list, layout, more->offset))
        return false;
    if (more->plan_only) return true;
    if (more->journal && !keep_journal(cx, s, more)) return false;
    lb_infile **inputs = input_files(cx, s, o, &w.n_inputs);
    if (!inputs) return false;
    w.input = inputs;
    w.journal = more->journal ? &s->journal : NULL;
    s->w = lb_writer_open(cx, s->kind, path, s->tensor, s->n_tensors, s->meta,
                          s->n_meta, &w);
    if (s->w && s->w->sized && more->journal) skip_done(s);
    return s->w != NULL;
}

static bool read_options(lb_ctx *cx, const lb_save_options *options,
                         lb_save_options *o)
{
    *o = (lb_save_options){0};
    if (!options) return true;
    const size_t size = options->struct_size ? options->struct_size : sizeof *o;
    if (size < sizeof o->struct_size)
        return lb_fail(cx, LB_E_ARG,
                       "save: options.struct_size is %zu, not sizeof or 0",
                       size);
    memcpy(o, options, size < sizeof *o ? size : sizeof *o);
    return true;
}

lb_saver *lb_saver_begin(lb_ctx *cx, const char *path, const lb_planned *list,
                         int64_t n, const lb_save_options *options,
                         const lb_saver_more *more)
{
    lb_save_options o;
    if (!cx) return NULL;
    if (!path || n < 0 || (n && !list)) {
        lb_fail(cx, LB_E_NULL, "save: no path, or no list of %lld arrays",
                (long long)n);
        return NULL;
    }
    lb_arena arena = {.heap = cx->heap};
    if (!read_options(cx, options, &o)) return NULL;
    lb_saver *s = lb_arena_alloc(cx, &arena, 1, sizeof *s);
    if (!s) return NULL;
    *s = (lb_saver){.arena = arena, .n = n};
    const bool clear = !lb_error_status(cx);
    lb_enter(cx);
    const bool ok = begin(cx, s, path, list, &o, more);
    lb_leave(cx);
    /* An error on the way, of a part that could be done without, is one. */
    if (ok && !(clear && lb_error_status(cx))) return s;
    lb_saver_close(cx, s, false);
    return NULL;
}

lb_saver *lb_saver_open(lb_ctx *cx, const char *path, const lb_planned *list,
                        int64_t n, const lb_save_options *options)
{
    const lb_saver_more nothing = {0};
    return lb_saver_begin(cx, path, list, n, options, &nothing);
}

/* ---- putting ------------------------------------------------------------- */

/* The item that a tensor, which the writer wants, is part of: kinds that do not
 * place have one each. */
int64_t lb_saver_next(const lb_saver *s)
{
    if (!s || s->failed || s->at >= s->n) return -1;
    if (s->w->sized) return s->at;
    const int64_t t = lb_writer_next(s->w);
    for (int64_t i = 0; t >= 0 && i < s->n; i++)
        if (s->item[i].first == t) return i;
    return -1;
}

static bool put_bytes(lb_ctx *cx, lb_saver *s, lb_saved *item, int k,
                      lb_array *part)
{
    const int64_t tensor = item->first + k;
    const lb_tensor *t = &s->w->tensor[tensor];
    lb_array *dense = lb_materialize(cx, part);
    if (!dense) return false;
    const size_t n = (size_t)lb_size(dense) * lb_dtype_size(lb_dtype_of(dense));
    if (n > t->size - item->put[k])
        return lb_fail(cx, LB_E_ARG,
                       "'%s' was planned with %llu bytes, and has %llu or more",
                       LB_NAME(t->name), (unsigned long long)t->size,
                       (unsigned long long)(item->put[k] + n));
    if (!n) return true;
    const bool ok =
        s->w->sized
            ? lb_writer_place(cx, s->w, tensor, item->put[k], lb_data(dense), n)
            : lb_writer_put(cx, s->w, lb_data(dense), n);
    item->put[k] += n;
    return ok;
}

static bool put_parts(lb_ctx *cx, lb_saver *s, lb_saved *item, lb_array *a)
{
    for (int k = 0; k < item->n_tensors; k++) {
        const uint64_t size = s->w->tensor[item->first + k].size;
        if (size && item->put[k] == size) continue;
        lb_enter(cx);
        lb_array *part = item->layout ? item->layout->part(cx, item, a, k) : a;
        const bool ok = part && put_bytes(cx, s, item, k, part);
        lb_leave(cx);
        if (!ok) return false;
    }
    return true;
}

bool lb_saver_piece(lb_ctx *cx, lb_saver *s, lb_array *piece)
{
    const int64_t i = lb_saver_next(s);
    if (s->failed || i < 0) return false;
    lb_saved *item = &s->item[i];
    const char *format = item->format ? item->format->name : "dense";
    const bool clear = !lb_error_status(cx);
    s->failed = true; /* unless all goes well */
    if (lb_dtype_of(piece) != item->dtype ||
        strcmp(lb_format_of(piece), format) != 0)
        return lb_fail(cx, LB_E_ARG, "'%s' was planned as %s %s, and is %s %s",
                       LB_NAME(item->name), format, lb_dtype_name(item->dtype),
                       lb_format_of(piece), lb_dtype_name(lb_dtype_of(piece)));
    if (!put_parts(cx, s, item, piece)) return false;
    s->failed = clear && lb_error_status(cx); /* as in lb_saver_open */
    return !s->failed;
}

bool lb_saver_end(lb_ctx *cx, lb_saver *s, const void *record)
{
    const int64_t i = s->at < s->n && s->w->sized ? s->at : -1;
    if (s->failed) return false;
    s->failed = true; /* unless all goes well */
    for (int k = 0; i >= 0 && k < s->item[i].n_tensors; k++) {
        const lb_tensor *t = &s->w->tensor[s->item[i].first + k];
        if (s->item[i].put[k] != t->size)
            return lb_fail(cx, LB_E_ARG,
                           "'%s' was planned with %llu bytes, and has %llu",
                           LB_NAME(t->name), (unsigned long long)t->size,
                           (unsigned long long)s->item[i].put[k]);
    }
    if (record && i >= 0 && s->done &&
        !lb_outfile_note(cx, s->w->out, i, record, !s->w->options.no_sync))
        return false;
    s->failed = false;
    do
        s->at++;
    while (s->at < s->n && s->done && s->done[s->at]);
    return true;
}

const void *lb_saver_record(const lb_saver *s, int64_t i)
{
    return s->done && s->done[i] ? s->journal.record + i * LB_RECORD : NULL;
}

uint64_t lb_saver_size(const lb_saver *s, int64_t i)
{
    const lb_saved *item = &s->item[i];
    uint64_t n = 0;
    for (int k = 0; k < item->n_tensors; k++) {
        const lb_tensor *t = &s->tensor[item->first + k];
        uint64_t size = 0;
        const lb_coding *c = lb_coding_find(s->kind->coding, t->type);
        if (c && lb_coding_size(c, t->dim, t->rank, &size)) n += size;
    }
    return n;
}

bool lb_saver_put(lb_ctx *cx, lb_saver *s, lb_array *a)
{
    const int64_t i = lb_saver_next(s);
    if (!cx || !s || s->failed) return false;
    s->failed = true; /* unless all goes well */
    if (!a) return lb_fail(cx, LB_E_NULL, "save: the array is NULL");
    if (i < 0 || !s->item)
        return lb_fail(cx, LB_E_ARG, "save: one array too many");
    const lb_saved *item = &s->item[i];
    const lb_shape shape = lb_shape_of(a);
    const char *format = item->format ? item->format->name : "dense";
    if (!lb_shape_equal(&shape, &item->shape) ||
        lb_dtype_of(a) != item->dtype || strcmp(lb_format_of(a), format) != 0)
        return lb_fail(cx, LB_E_ARG,
                       "'%s' was planned as %s %s %s, and is %s %s %s",
                       LB_NAME(item->name), format, lb_dtype_name(item->dtype),
                       LB_SHOW(&item->shape), lb_format_of(a),
                       lb_dtype_name(lb_dtype_of(a)), LB_SHOW(&shape));
    s->failed = false;
    return lb_saver_piece(cx, s, a) && lb_saver_end(cx, s, NULL);
}

bool lb_saver_close(lb_ctx *cx, lb_saver *s, bool commit)
{
    if (!s) return false;
    bool ok = commit && !s->failed && s->w;
    if (ok && lb_saver_next(s) >= 0)
        ok = lb_fail(cx, LB_E_ARG, "save: '%s' is missing",
                     LB_NAME(s->item[lb_saver_next(s)].name));
    const bool done = lb_writer_close(cx, s->w, ok);
    lb_arena arena = s->arena; /* which s is in */
    lb_arena_free(&arena);
    return done;
}

bool lb_save(lb_ctx *cx, const char *path, const lb_planned *list, int64_t n,
             const lb_save_options *options)
{
    lb_saver *s = lb_saver_open(cx, path, list, n, options);
    bool ok = s != NULL;
    for (int64_t i; ok && (i = lb_saver_next(s)) >= 0;)
        ok = lb_saver_put(cx, s, list[i].array);
    return lb_saver_close(cx, s, ok);
}
