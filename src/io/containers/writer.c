/* writer.c - writes files of any container, tensor after tensor.
 *
 * Sizes follow from shapes, so the header is written first, and tensors are
 * appended in pieces of any length.
 */
#include <string.h>

#include <xxhash.h>

#include "core/core.h"
#include "io/containers/container.h"

/* Copies the caller's tensors and sets their sizes, before the container is
 * called. */
static bool take_tensor(lb_ctx *cx, lb_writer *w, const lb_tensor *from,
                        lb_tensor *to)
{
    const lb_coding *c = lb_coding_find(w->kind->coding, from->type);
    if (!c || c->len == 0)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "tensor '%s': %s files have no type '%s'",
                       LB_NAME(from->name), w->kind->name, LB_NAME(from->type));
    if (from->fortran && !w->kind->fortran)
        return lb_fail(
            cx, LB_E_UNSUPPORTED,
            "tensor '%s' is in Fortran order, which %s files do not support",
            LB_NAME(from->name), w->kind->name);
    int64_t *dim =
        lb_arena_alloc(cx, &w->arena, (uint64_t)from->rank, sizeof *dim);
    *to = (lb_tensor){.type = c->name,
                      .dtype = c->dtype,
                      .rank = from->rank,
                      .fortran = from->fortran};
    to->name = lb_arena_text(cx, &w->arena, from->name, strlen(from->name));
    if (!dim || !to->name) return false;
    if (from->rank) memcpy(dim, from->dim, (size_t)from->rank * sizeof *dim);
    to->dim = dim;
    to->id = c->code;
    if (!lb_coding_size(c, dim, from->rank, &to->size))
        return lb_fail(cx, LB_E_SHAPE,
                       "tensor '%s': its shape is not a whole number of bytes "
                       "of type %s, or too large",
                       LB_NAME(from->name), c->name);
    return true;
}

static bool take_all(lb_ctx *cx, lb_writer *w, const lb_tensor *tensor)
{
    const uint64_t n = (uint64_t)w->n_tensors;
    w->tensor = lb_arena_alloc(cx, &w->arena, n, sizeof *w->tensor);
    w->order = lb_arena_alloc(cx, &w->arena, n, sizeof *w->order);
    if (!w->tensor || !w->order) return false;
    for (int64_t i = 0; i < w->n_tensors; i++) {
        if (!take_tensor(cx, w, &tensor[i], &w->tensor[i])) return false;
        w->order[i] = i;
    }
    lb_tensor **by = lb_sort_tensors(cx, &w->arena, w->tensor, w->n_tensors);
    lb_meta **keys = lb_sort_meta(cx, &w->arena, w->meta, w->n_meta);
    if (!by || !keys) return false;
    const lb_tensor *twin = lb_tensor_twin(by, w->n_tensors);
    if (twin)
        return lb_fail(cx, LB_E_ARG, "duplicate tensor '%s'",
                       LB_NAME(twin->name));
    const lb_meta *same = lb_meta_twin(keys, w->n_meta);
    if (same)
        return lb_fail(cx, LB_E_ARG, "duplicate metadata key '%s'",
                       LB_NAME(same->key));
    return true;
}

/* Tensors without bytes need no data, but may have something before or after
 * them. */
static bool skip_empty(lb_ctx *cx, lb_writer *w)
{
    for (; w->at < w->n_tensors; w->at++) {
        const int64_t i = w->order[w->at];
        if (w->kind->before && !w->kind->before(cx, w, i)) return false;
        if (w->tensor[i].size) break;
        if (w->kind->after && !w->kind->after(cx, w, i)) return false;
    }
    return true;
}

/* Zeros up to the next tensor, or to the end of the file. */
static bool fill_gap(lb_ctx *cx, lb_writer *w)
{
    static const uint8_t zeros[4096];
    if (!lb_writer_places(w) || w->sized) return true;
    const uint64_t to =
        w->at < w->n_tensors ? w->tensor[w->order[w->at]].begin : w->total;
    while (w->out->at < to) {
        const uint64_t n = to - w->out->at;
        if (!lb_outfile_write(cx, w->out, zeros,
                              n < sizeof zeros ? (size_t)n : sizeof zeros))
            return false;
    }
    return true;
}

/* Whether the first rank has written the same header as this one. */
static bool same_plan(lb_ctx *cx, lb_writer *w, const char *path)
{
    const size_t n = w->header.n;
    uint8_t *there = lb_arena_alloc(cx, &w->arena, n, 1);
    if (!there || !lb_outfile_read(cx, w->out, 0, there, n)) return false;
    return memcmp(there, w->header.at, n) == 0 ||
           lb_fail(cx, LB_E_MESH,
                   "%s: this rank plans a different file than the first one",
                   LB_PATH(path));
}

/* A file that is written by lb_writer_place has its final size from the
 * beginning; bytes that are not written are zeros. */
static bool open_out(lb_ctx *cx, lb_writer *w, const char *path)
{
    const lb_write_options *o = &w->options;
    w->sized = lb_writer_places(w) && o->place;
    w->header_size = w->header.n;
    w->header_sum = XXH3_64bits(w->header.at, w->header.n);
    if (o->shared && !w->sized)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "%s: %s files are written sequentially, which several "
                       "ranks cannot do",
                       LB_PATH(path), w->kind->name);
    if (o->compose_only) return true;
    if (o->join) {
        w->out = lb_outfile_join(cx, path, w->total, o->journal, w->header_sum);
        return w->out && same_plan(cx, w, path);
    }
    w->out =
        o->unnamed ? lb_outfile_open_unnamed(cx, path, o->input, o->n_inputs,
                                             w->total, w->sized)
        : w->sized ? lb_outfile_open_sized(cx, path, o->input, o->n_inputs,
                                           w->total, o->journal, w->header_sum)
                   : lb_outfile_open(cx, path, o->input, o->n_inputs, w->total);
    if (!w->out) return false;
    w->out->shared = o->shared;
    return w->sized ? lb_outfile_patch(cx, w->out, 0, w->header.at, w->header.n)
                    : lb_outfile_write(cx, w->out, w->header.at, w->header.n);
}

/* Takes the offsets of all tensors and the header, which is everything before
 * the first one, from the copied file. */
static bool copy_header(lb_ctx *cx, lb_writer *w)
{
    const lb_reader *r = w->options.copied;
    lb_infile *f = r->file[w->options.copied_file];
    uint64_t n = f->size;
    for (int64_t i = 0; i < w->n_tensors; i++) {
        lb_tensor *t = &w->tensor[i];
        const lb_tensor *from = lb_reader_find(r, t->name);
        if (!from || from->file != w->options.copied_file ||
            from->size != t->size)
            return lb_fail(cx, LB_E_ARG, "tensor '%s' is not the one of %s",
                           LB_NAME(t->name), LB_PATH(f->path));
        t->begin = from->begin;
        if (t->begin < n) n = t->begin;
    }
    w->total = f->size;
    lb_bytes_fill(&w->header, 0, (size_t)n);
    return w->header.failed ||
           lb_infile_read(cx, f, 0, (size_t)n, w->header.at);
}

static bool make_header(lb_ctx *cx, lb_writer *w)
{
    return w->options.copied ? copy_header(cx, w) : w->kind->compose(cx, w);
}

static bool begin(lb_ctx *cx, lb_writer *w, const char *path,
                  const lb_tensor *tensor)
{
    if (!w->kind->compose)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "writing %s files is not supported", w->kind->name);
    if (!take_all(cx, w, tensor) || !make_header(cx, w)) return false;
    if (w->header.failed) return lb_fail(cx, LB_E_NOMEM, "out of memory");
    const bool ok = open_out(cx, w, path) &&
                    (!w->out || (skip_empty(cx, w) && fill_gap(cx, w)));
    lb_bytes_free(&w->header);
    w->meta = NULL;
    w->options.input = NULL;
    w->options.copied = NULL;
    return ok;
}

lb_writer *lb_writer_open(lb_ctx *cx, const lb_container *kind,
                          const char *path, const lb_tensor *tensor, int64_t n,
                          const lb_meta *meta, int64_t n_meta,
                          const lb_write_options *options)
{
    lb_arena arena = {.heap = cx->heap};
    lb_writer *w = lb_arena_alloc(cx, &arena, 1, sizeof *w);
    if (!w) return NULL;
    *w = (lb_writer){.kind = kind,
                     .arena = arena,
                     .n_tensors = n,
                     .meta = meta,
                     .n_meta = n_meta,
                     .header = {.heap = cx->heap}};
    if (options) w->options = *options;
    if (begin(cx, w, path, tensor)) return w;
    lb_writer_close(cx, w, false);
    return NULL;
}

int64_t lb_writer_next(const lb_writer *w)
{
    return w->failed || w->at >= w->n_tensors ? -1 : w->order[w->at];
}

bool lb_writer_put(lb_ctx *cx, lb_writer *w, const void *bytes, size_t n)
{
    const int64_t i = lb_writer_next(w);
    if (w->failed) return false;
    w->failed = true; /* cleared on success */
    if (i < 0 || n > w->tensor[i].size - w->done)
        return lb_fail(
            cx, LB_E_ARG,
            "%zu bytes for tensor '%s', but only %llu are missing", n,
            i < 0 ? "(none)" : LB_NAME(w->tensor[i].name),
            i < 0 ? 0ULL : (unsigned long long)(w->tensor[i].size - w->done));
    if (!lb_outfile_write(cx, w->out, bytes, n)) return false;
    if (w->kind->put) w->kind->put(w, bytes, n);
    w->done += n;
    if (w->done == w->tensor[i].size) {
        if (w->kind->after && !w->kind->after(cx, w, i)) return false;
        w->done = 0;
        w->at++;
        if (!skip_empty(cx, w) || !fill_gap(cx, w)) return false;
    }
    w->failed = false;
    return true;
}

/* Possible if nothing between tensors must be generated. */
bool lb_writer_places(const lb_writer *w)
{
    const lb_container *k = w->kind;
    return !k->before && !k->put && !k->after && !k->finish;
}

bool lb_writer_place(lb_ctx *cx, lb_writer *w, int64_t i, uint64_t first,
                     const void *bytes, size_t n)
{
    const lb_tensor *t = &w->tensor[i];
    if (w->failed) return false;
    w->failed = true; /* cleared on success */
    if (!w->sized || first > t->size || n > t->size - first)
        return lb_fail(
            cx, LB_E_ARG,
            "%zu bytes at offset %llu of tensor '%s', which has %llu", n,
            (unsigned long long)first, LB_NAME(t->name),
            (unsigned long long)t->size);
    if (!lb_outfile_patch(cx, w->out, t->begin + first, bytes, n)) return false;
    w->placed += n;
    w->failed = false;
    return true;
}

void lb_writer_has(lb_writer *w, int64_t i)
{
    w->placed += w->tensor[i].size;
}

/* Checks that all tensors and the whole file are written. */
static bool finish_placed(lb_ctx *cx, lb_writer *w)
{
    uint64_t due = 0;
    for (int64_t i = 0; i < w->n_tensors; i++)
        due += w->tensor[i].size;
    return w->placed == due ||
           lb_fail(cx, LB_E_ARG,
                   "%llu bytes of tensors written, but %llu expected",
                   (unsigned long long)w->placed, (unsigned long long)due);
}

static bool finish(lb_ctx *cx, lb_writer *w)
{
    if (w->failed) return false;
    if (w->options.shared) return true; /* waits for all ranks */
    if (w->sized) return finish_placed(cx, w);
    const int64_t i = lb_writer_next(w);
    if (i >= 0)
        return lb_fail(cx, LB_E_ARG, "tensor '%s' lacks %llu of %llu bytes",
                       LB_NAME(w->tensor[i].name),
                       (unsigned long long)(w->tensor[i].size - w->done),
                       (unsigned long long)w->tensor[i].size);
    if (w->kind->finish && !w->kind->finish(cx, w)) return false;
    if (w->out->at != w->total) /* an internal error: no file is created */
        return lb_fail(cx, LB_E_SIZE, "%llu bytes written, but %llu expected",
                       (unsigned long long)w->out->at,
                       (unsigned long long)w->total);
    return true;
}

bool lb_writer_close(lb_ctx *cx, lb_writer *w, bool commit)
{
    if (!w) return false;
    const bool good = commit && finish(cx, w);
    const bool done = lb_outfile_close(cx, w->out, good, !w->options.no_sync);
    lb_bytes_free(&w->header);
    lb_arena arena = w->arena; /* w itself is in this arena */
    lb_arena_free(&arena);
    return done;
}
