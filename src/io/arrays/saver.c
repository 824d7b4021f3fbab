/* saver.c - saves arrays: the header first, then array after array. */
#include <string.h>

#include "core/core.h"
#include "io/arrays/saver.h"

/* ---- open ---------------------------------------------------------------- */

static bool no_place(lb_ctx *cx, const lb_saver *s, const lb_saved *item,
                     const char *layout)
{
    const bool other = strcmp(s->kind->name, "safetensors") != 0;
    return lb_fail(
        cx, LB_E_UNSUPPORTED, "%s%s cannot store '%s', which is %s %s",
        other ? "" : "layout ", other ? s->kind->name : layout,
        LB_NAME(item->name), item->format->name, LB_SHOW(&item->shape));
}

static bool take_meta(lb_ctx *cx, lb_saver *s, const lb_save_options *o)
{
    for (int64_t i = 0; i < o->n_meta; i++) {
        if (!lb_saver_value(cx, s, &o->meta[i])) return false;
    }
    return true;
}

/* All files of all inputs: the writer must not overwrite them. */
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
                     const char *layout, const lb_saver_more *more)
{
    for (int64_t i = 0; i < s->n; i++) {
        lb_saved *item = &s->item[i];
        lb_planned p = list[i];
        if (more->offset) item->offset = &more->offset[i];
        if (more->load) lb_enter(cx);
        const lb_tensor *raw = NULL;
        const bool there =
            !more->load || more->load(more->user, i, &p.array, &raw);
        lb_verdict v = LB_FAILED;
        if (raw)
            v = lb_saver_plan_raw(cx, s, raw, item) ? LB_DONE : LB_FAILED;
        else if (there)
            v = lb_saver_plan(cx, s, &p, layout, item);
        if (more->load) lb_leave(cx);
        if (v == LB_DECLINED) return no_place(cx, s, item, layout);
        if (v != LB_DONE) return false;
        if (item->n_tensors > LB_GROUP_MOST)
            return lb_fail(cx, LB_E_UNSUPPORTED,
                           "'%s' has %d parts; the maximum is %d",
                           LB_NAME(item->name), item->n_tensors, LB_GROUP_MOST);
    }
    return true;
}

/* Whether another rank or an earlier run writes item i. */
static bool is_passed(const lb_saver *s, int64_t i)
{
    return (s->done && s->done[i]) ||
           (s->owner && s->owner[i] != lb_mesh_rank(s->mesh));
}

static void pass_by(lb_saver *s)
{
    while (s->at < s->n && is_passed(s, s->at))
        s->at++;
}

static void skip_done(lb_saver *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        if (s->done) s->done[i] = s->journal.record[i * LB_RECORD] != 0;
        for (int k = 0; is_passed(s, i) && k < s->item[i].n_tensors; k++)
            lb_writer_has(s->w, s->item[i].first + k);
    }
    pass_by(s);
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

/* All ranks of a mesh open it, the first one before the others. */
static bool open_writer(lb_ctx *cx, lb_saver *s, const char *path,
                        lb_write_options *w)
{
    const int rank = s->mesh ? lb_mesh_rank(s->mesh) : 0;
    w->shared = s->mesh != NULL;
    w->join = rank > 0;
    for (int turn = 0; turn < (s->mesh ? 2 : 1); turn++) {
        if (turn == (rank > 0))
            s->w = lb_writer_open(cx, s->kind, path, s->tensor, s->n_tensors,
                                  s->meta, s->n_meta, w);
        if (s->mesh && !lb_mesh_agree(s->mesh)) return false;
    }
    return s->w != NULL;
}

static bool compose(lb_ctx *cx, lb_saver *s, const char *path,
                    const lb_saver_more *more)
{
    const lb_write_options w = {.place = true,
                                .shared = more->shared,
                                .compose_only = true,
                                .copied = more->copied,
                                .copied_file = more->copied_file};
    s->w = lb_writer_open(cx, s->kind, path, s->tensor, s->n_tensors, s->meta,
                          s->n_meta, &w);
    return s->w != NULL;
}

static bool begin(lb_ctx *cx, lb_saver *s, const char *path,
                  const lb_planned *list, const lb_save_options *o,
                  const lb_saver_more *more)
{
    lb_write_options w = {.no_sync = o->no_sync,
                          .place = true,
                          .unnamed = more->unnamed,
                          .copied = more->copied,
                          .copied_file = more->copied_file};
    const char *layout = o->layout ? o->layout : "native";
    s->mesh = more->mesh;
    s->owner = more->owner;
    if (lb_saver_kind(cx, s, o->kind))
        s->item =
            lb_arena_alloc(cx, &s->arena, (uint64_t)s->n, sizeof *s->item);
    bool ok =
        s->item && take_meta(cx, s, o) && plan_all(cx, s, list, layout, more);
    if (more->plan_only)
        return ok && (!more->compose || compose(cx, s, path, more));
    ok = ok && (!more->journal || keep_journal(cx, s, more));
    lb_infile **inputs = ok ? input_files(cx, s, o, &w.n_inputs) : NULL;
    if (s->mesh) {
        if (!inputs)
            lb_fail(cx, LB_E_FILE, "this rank could not plan the file");
        ok = lb_mesh_agree(s->mesh) && ok;
    }
    if (!ok || !inputs) return false;
    w.input = inputs;
    w.journal = more->journal ? &s->journal : NULL;
    if (!open_writer(cx, s, path, &w)) return false;
    if (s->w && s->w->sized) skip_done(s);
    s->verify = more->verify;
    lb_readback_begin(&s->sums);
    return s->w != NULL;
}

bool lb_save_options_read(lb_ctx *cx, const lb_save_options *options,
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
        lb_fail(cx, LB_E_NULL,
                "save: the path or the list of %lld arrays is NULL",
                (long long)n);
        return NULL;
    }
    lb_arena arena = {.heap = cx->heap};
    if (!lb_save_options_read(cx, options, &o)) return NULL;
    lb_saver *s = lb_arena_alloc(cx, &arena, 1, sizeof *s);
    if (!s) return NULL;
    *s = (lb_saver){.arena = arena, .n = n};
    const bool clear = !lb_error_status(cx);
    lb_enter(cx);
    const bool ok = begin(cx, s, path, list, &o, more);
    lb_leave(cx);
    /* An error of an optional step on the way is still an error. */
    if (ok && !(clear && lb_error_status(cx))) return s;
    lb_saver_close(cx, s, false);
    return NULL;
}

lb_saver *lb_saver_open(lb_ctx *cx, const char *path, const lb_planned *list,
                        int64_t n, const lb_save_options *options)
{
    const lb_saver_more more = {.unnamed = true};
    return lb_saver_begin(cx, path, list, n, options, &more);
}

/* ---- putting ------------------------------------------------------------- */

/* The item that owns the tensor wanted by the writer. Without random access
 * tensors are written in the file's order, and each item has one. */
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
        return lb_fail(
            cx, LB_E_ARG,
            "'%s' was planned with %llu bytes, but has at least %llu",
            LB_NAME(t->name), (unsigned long long)t->size,
            (unsigned long long)(item->put[k] + n));
    if (!n) return true;
    const bool ok =
        s->w->sized
            ? lb_writer_place(cx, s->w, tensor, item->put[k], lb_data(dense), n)
            : lb_writer_put(cx, s->w, lb_data(dense), n);
    if (s->done) lb_readback_add(&s->sums, k, lb_data(dense), n);
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
    s->failed = true; /* cleared on success */
    if (lb_dtype_of(piece) != item->dtype ||
        strcmp(lb_format_of(piece), format) != 0)
        return lb_fail(cx, LB_E_ARG, "'%s' was planned as %s %s, but is %s %s",
                       LB_NAME(item->name), format, lb_dtype_name(item->dtype),
                       lb_format_of(piece), lb_dtype_name(lb_dtype_of(piece)));
    if (!put_parts(cx, s, item, piece)) return false;
    s->failed = clear && lb_error_status(cx); /* as in lb_saver_begin */
    return !s->failed;
}

void lb_saver_rewind(lb_saver *s)
{
    const int64_t i = lb_saver_next(s);
    if (i >= 0) memset(s->item[i].put, 0, sizeof s->item[i].put);
    lb_readback_begin(&s->sums);
}

enum { SUM_AT = LB_RECORD - (int)sizeof(uint64_t) };

static bool note(lb_ctx *cx, lb_saver *s, int64_t i, const void *record)
{
    uint8_t all[LB_RECORD];
    const uint64_t sum = lb_readback_sum(&s->sums, s->item[i].n_tensors);
    memcpy(all, record, sizeof all);
    memcpy(all + SUM_AT, &sum, sizeof sum);
    lb_readback_begin(&s->sums);
    return lb_outfile_note(cx, s->w->out, i, all, !s->w->options.no_sync);
}

/* Containers with sequential output have checksums of their own. */
static bool verify_all(lb_ctx *cx, lb_saver *s)
{
    bool ok = lb_outfile_settle(cx, s->w->out, !s->w->options.no_sync) &&
              (s->w->options.join || lb_readback_header(cx, s->w));
    for (int64_t i = 0; ok && i < s->n; i++) {
        const lb_saved *item = &s->item[i];
        if (s->owner && s->owner[i] != lb_mesh_rank(s->mesh)) continue;
        uint64_t sum;
        memcpy(&sum, s->journal.record + i * LB_RECORD + SUM_AT, sizeof sum);
        ok = lb_readback_same(cx, s->w->out, item->name,
                              s->w->tensor + item->first, item->n_tensors, sum);
    }
    return ok;
}

bool lb_saver_end(lb_ctx *cx, lb_saver *s, const void *record)
{
    const int64_t i = s->at < s->n && s->w->sized ? s->at : -1;
    if (s->failed) return false;
    s->failed = true; /* cleared on success */
    for (int k = 0; i >= 0 && k < s->item[i].n_tensors; k++) {
        const lb_tensor *t = &s->w->tensor[s->item[i].first + k];
        if (s->item[i].put[k] != t->size)
            return lb_fail(cx, LB_E_ARG,
                           "'%s' was planned with %llu bytes, but has %llu",
                           LB_NAME(t->name), (unsigned long long)t->size,
                           (unsigned long long)s->item[i].put[k]);
    }
    if (record && i >= 0 && s->done && !note(cx, s, i, record)) return false;
    s->failed = false;
    s->at++;
    pass_by(s);
    return true;
}

bool lb_saver_takes_rows(const lb_saver *s)
{
    const int64_t i = lb_saver_next(s);
    return i >= 0 && s->w->sized && s->item[i].layout &&
           s->item[i].layout->rows;
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
    s->failed = true; /* cleared on success */
    if (!a) return lb_fail(cx, LB_E_NULL, "save: the array is NULL");
    if (i < 0 || !s->item)
        return lb_fail(cx, LB_E_ARG, "save: more arrays than were planned");
    const lb_saved *item = &s->item[i];
    const lb_shape shape = lb_shape_of(a);
    const char *format = item->format ? item->format->name : "dense";
    if (!lb_shape_equal(&shape, &item->shape) ||
        lb_dtype_of(a) != item->dtype || strcmp(lb_format_of(a), format) != 0)
        return lb_fail(cx, LB_E_ARG,
                       "'%s' was planned as %s %s %s, but is %s %s %s",
                       LB_NAME(item->name), format, lb_dtype_name(item->dtype),
                       LB_SHOW(&item->shape), lb_format_of(a),
                       lb_dtype_name(lb_dtype_of(a)), LB_SHOW(&shape));
    s->failed = false;
    return lb_saver_piece(cx, s, a) && lb_saver_end(cx, s, NULL);
}

/* The first rank closes it after all others have closed it without errors. */
static bool close_together(lb_ctx *cx, lb_saver *s, bool ok)
{
    const bool first = lb_mesh_rank(s->mesh) == 0;
    if (!ok)
        lb_fail(cx, LB_E_FILE, "this rank could not finish writing the file");
    const bool left = !first && lb_writer_close(cx, s->w, ok);
    ok = lb_mesh_agree(s->mesh) && ok && (first || left);
    if (first) ok = lb_writer_close(cx, s->w, ok);
    return lb_mesh_agree(s->mesh) && ok;
}

bool lb_saver_close(lb_ctx *cx, lb_saver *s, bool commit)
{
    if (!s) return false;
    bool ok = commit && !s->failed && s->w;
    if (ok && lb_saver_next(s) >= 0)
        ok = lb_fail(cx, LB_E_ARG,
                     "save: array '%s' was planned but not written",
                     LB_NAME(s->item[lb_saver_next(s)].name));
    if (ok && s->verify && s->done && s->w->sized) ok = verify_all(cx, s);
    const bool done = s->mesh && s->w ? close_together(cx, s, ok)
                                      : lb_writer_close(cx, s->w, ok);
    lb_arena arena = s->arena; /* s itself is in this arena */
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
