/* rank_files.c - splits a checkpoint into a file for each rank of a mesh. */
#include "io/jobs/rank_files.h"

#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/models/model_dir.h"

lb_rank_text lb_rank_name(int rank, int ranks)
{
    lb_rank_text t;
    snprintf(t.s, sizeof t.s, "rank-%05d-of-%05d.safetensors", rank, ranks);
    return t;
}

bool lb_shard_ranks_fit(lb_ctx *cx, const lb_grid *grid)
{
    const int n = lb_grid_size(grid);
    return n <= LB_SHARD_RANKS ||
           lb_fail(cx, LB_E_ARG,
                   "a mesh of %d ranks; the maximum for files is %d", n,
                   (int)LB_SHARD_RANKS);
}

bool lb_shard_may_name(const char *name)
{
    return *name && *name != '.' && !strchr(name, '/') &&
           strcmp(name, "model.safetensors.index.json") != 0;
}

bool lb_group_place(const lb_group *g, int k, const lb_cut *box, lb_cut *to)
{
    *to = *box;
    if (!g->layout) return true;
    return g->layout->place && g->described &&
           g->layout->place(g->described, k, box, to);
}

typedef struct rank_work {
    lb_ctx *cx;
    lb_job job; /* provides paths in the directory */
    lb_file *f;
    const lb_shard_options *o;
    lb_grid grid;
    lb_placement *placed; /* the spec of each array */
    lb_meta *meta;        /* of the file being written */
    int64_t n_meta, room;
} rank_work;

/* ---- planning ------------------------------------------------------------ */

static lb_cut box_of(const rank_work *w, int64_t i, int rank)
{
    const lb_entry *e = &w->f->group[i]->entry;
    if (w->placed[i].whole) return lb_cut_one();
    lb_cut box = {.of = lb_shape_make(e->rank, e->dim)};
    lb_spec_slice(&w->grid, &w->placed[i].spec, &box.of, rank, box.start,
                  box.count);
    return box;
}

/* Bytes of an entry of a box; 0: entries are not whole bytes.
 */
static uint64_t unit_of(const lb_tensor *t, const lb_cut *to)
{
    const uint64_t all = (uint64_t)lb_shape_size(&to->of);
    return all && t->size % all == 0 ? t->size / all : 0;
}

/* The shape of a slice's tensor: that of the box, or a vector if the box is one
 * run. In units of t's elements, which may hold several codes. */
static bool local_dims(const lb_tensor *t, const lb_cut *to, int64_t *dim)
{
    bool same = to->of.rank == t->rank;
    uint64_t elements = 1;
    for (int k = 0; k < t->rank; k++) {
        elements *= (uint64_t)t->dim[k];
        same = same && to->of.dim[k] == t->dim[k];
        dim[k] = 1;
    }
    if (same) {
        memcpy(dim, to->count, (size_t)t->rank * sizeof *dim);
        return true;
    }
    const uint64_t size = elements ? t->size / elements : 0;
    const uint64_t bytes = (uint64_t)lb_cut_size(to) * unit_of(t, to);
    if (!size || !t->rank || bytes % size) return t->rank == 0;
    dim[0] = (int64_t)(bytes / size);
    return true;
}

/* Whether no two ranks' slices share bytes. */
static bool can_cut(const rank_work *w, int64_t i)
{
    const lb_group *g = w->f->group[i];
    for (int r = 0; r < lb_grid_size(&w->grid); r++) {
        const lb_cut box = box_of(w, i, r);
        for (int k = 0; k < LB_GROUP_MOST; k++) {
            int64_t dim[LB_MAX_RANK];
            const lb_tensor *t = g->tensor[k];
            lb_cut to;
            if (!t) continue;
            if (t->rank > LB_MAX_RANK || !lb_group_place(g, k, &box, &to) ||
                (t->size && !unit_of(t, &to)) || !local_dims(t, &to, dim))
                return false;
        }
    }
    return true;
}

static bool plan(rank_work *w)
{
    const int64_t n = lb_file_count(w->f);
    w->placed =
        lb_arena_alloc(w->cx, &w->job.arena, (uint64_t)n, sizeof *w->placed);
    if (!w->placed) return false;
    for (int64_t i = 0; i < n; i++) {
        lb_placement *p = &w->placed[i];
        if (!lb_rules_place(w->cx, w->o->rules, &w->grid, w->f,
                            w->f->group[i]->entry.name, w->o->relaxed, p))
            return false;
        if (!p->whole && !can_cut(w, i)) {
            p->whole = "slices would share bytes in its layout";
            p->spec = (lb_spec){0};
        }
        if (w->o->placed) w->o->placed(w->o->user, p, i, n);
    }
    return lb_rules_check(w->cx, w->o->rules, w->f);
}

/* ---- values -------------------------------------------------------------- */

static bool add_meta(rank_work *w, const char *key, const char *more,
                     const void *text, size_t n)
{
    lb_arena *arena = &w->job.arena;
    const size_t size = strlen(key) + strlen(more) + 1;
    char *name = lb_arena_alloc(w->cx, arena, size, 1);
    const char *copy = lb_arena_text(w->cx, arena, text, n);
    if (w->n_meta == w->room) {
        const int64_t room = 2 * w->room + 16;
        lb_meta *grown =
            lb_arena_alloc(w->cx, arena, (uint64_t)room, sizeof *grown);
        if (!grown) return false;
        if (w->n_meta)
            memcpy(grown, w->meta, (size_t)w->n_meta * sizeof *grown);
        w->meta = grown;
        w->room = room;
    }
    if (!name || !copy) return false;
    snprintf(name, size, "%s%s", key, more);
    w->meta[w->n_meta++] = (lb_meta){.key = name,
                                     .type = LB_META_STRING,
                                     .n = 1,
                                     .bytes = (const uint8_t *)copy,
                                     .size = n};
    return true;
}

static bool add_number(rank_work *w, const char *key, int i, uint64_t v)
{
    char more[16] = "", text[32];
    if (i >= 0) snprintf(more, sizeof more, "%d", i);
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    return add_meta(w, key, more, text, strlen(text));
}

/* Bytes of a file from an offset on. */
static bool add_bytes(rank_work *w, const char *key, int i, lb_infile *f,
                      uint64_t first, uint64_t n)
{
    char more[16] = "";
    if (i >= 0) snprintf(more, sizeof more, "%d", i);
    uint8_t *text = lb_arena_alloc(w->cx, &w->job.arena, n, 1);
    return text && lb_infile_read(w->cx, f, first, (size_t)n, text) &&
           add_meta(w, key, more, text, (size_t)n);
}

/* Number of files of a reader that hold no tensors (0 or 1). */
static int indexes(const lb_reader *r)
{
    return r->kind == lb_container_named("safetensors") ? 0 : 1;
}

static const char *name_of(const lb_infile *f)
{
    const char *slash = strrchr(f->path, '/');
    return slash ? slash + 1 : f->path;
}

/* Metadata that restore the checkpoint: everything except tensors. */
static bool add_source(rank_work *w)
{
    const lb_reader *r = w->f->r;
    const int index = indexes(r);
    bool ok =
        add_number(w, LB_SHARD_KEY "files", -1, (uint64_t)(r->n_files - index));
    if (ok && index)
        ok = add_bytes(w, LB_SHARD_KEY "index", -1, r->file[0], 0,
                       r->file[0]->size);
    for (int i = index; ok && i < r->n_files; i++) {
        lb_infile *f = r->file[i];
        const char *name = name_of(f);
        char more[16];
        uint8_t head[8];
        snprintf(more, sizeof more, "%d", i - index);
        ok = lb_infile_read(w->cx, f, 0, sizeof head, head) &&
             (!index ||
              add_meta(w, LB_SHARD_KEY "name.", more, name, strlen(name))) &&
             add_number(w, LB_SHARD_KEY "size.", i - index, f->size) &&
             add_bytes(w, LB_SHARD_KEY "header.", i - index, f, sizeof head,
                       lb_get_u64(head));
    }
    return ok;
}

/* Descriptors of slices, if the file has one of the array. */
static bool add_description(rank_work *w, int64_t i, const lb_cut *box)
{
    const char *name = w->f->group[i]->entry.name;
    const lb_meta *m =
        lb_reader_meta_in(w->f->r, LB_DESCRIPTION, name, strlen(name));
    if (!m) return true;
    if (w->placed[i].whole)
        return add_meta(w, m->key, "", m->bytes, (size_t)m->size);
    lb_described *d = lb_description_read(w->cx, w->f, m);
    if (d && d->n_parts)
        d = lb_cut_described(w->cx, &w->job.arena, d, box, true);
    else if (d)
        d->shape = lb_cut_shape(box);
    if (!d)
        return lb_fail(w->cx, LB_E_SHAPE, "'%s' cannot be split",
                       LB_NAME(name));
    lb_bytes text = {.heap = w->cx->heap};
    lb_description_put(&text, d);
    const bool ok = text.failed ? lb_fail(w->cx, LB_E_NOMEM, "out of memory")
                                : add_meta(w, m->key, "", text.at, text.n);
    lb_bytes_free(&text);
    return ok;
}

static bool add_values(rank_work *w, int rank)
{
    const lb_reader *r = w->f->r;
    char text[512];
    bool ok = true;
    w->n_meta = 0;
    for (int64_t i = 0; ok && i < r->n_meta; i++) {
        const lb_meta *m = &r->meta[i];
        if (strncmp(m->key, LB_DESCRIPTION, strlen(LB_DESCRIPTION)) != 0 &&
            m->type == LB_META_STRING)
            ok = add_meta(w, m->key, "", m->bytes, (size_t)m->size);
    }
    ok = ok &&
         add_meta(w, LB_SHARD_KEY "mesh", "", w->o->mesh, strlen(w->o->mesh)) &&
         add_number(w, LB_SHARD_KEY "rank", -1, (uint64_t)rank);
    for (int64_t i = 0; ok && i < w->f->n; i++) {
        const lb_cut box = box_of(w, i, rank);
        ok = add_description(w, i, &box);
        if (!ok || w->placed[i].whole) continue;
        lb_spec_text(&w->grid, &w->placed[i].spec, text, sizeof text);
        ok = add_meta(w, LB_SHARD_KEY "spec.", w->f->group[i]->entry.name, text,
                      strlen(text));
    }
    return ok && (rank || add_source(w));
}

/* ---- writing ------------------------------------------------------------- */

/* A tensor of a slice, and its source. */
typedef struct rank_piece {
    const lb_tensor *from;
    lb_cut to;
    const lb_array *instead; /* content of a tensor that contains the array's
                              * shape */
} rank_piece;

enum { BUFFER = 1 << 18 };

typedef struct copying {
    rank_work *w;
    lb_writer *out;
    int64_t tensor;
    const rank_piece *p;
    uint64_t unit, at; /* bytes of an element; position in the buffer */
    size_t n;
    uint8_t *buffer;
} copying;

static bool flush(copying *c)
{
    if (lb_job_cancelled(c->w->cx, c->w->job.o)) return false;
    const bool ok = !c->n || lb_writer_place(c->w->cx, c->out, c->tensor, c->at,
                                             c->buffer, c->n);
    c->at += c->n;
    c->n = 0;
    return ok;
}

static bool copy_run(void *user, int64_t first, int64_t at, int64_t n)
{
    copying *c = user;
    uint64_t from = (uint64_t)first * c->unit, left = (uint64_t)n * c->unit;
    (void)at; /* runs come in order */
    while (left) {
        const size_t room = BUFFER - c->n;
        const size_t some = left < room ? (size_t)left : room;
        if (!lb_reader_read(c->w->cx, c->w->f->r, c->p->from, from, some,
                            c->buffer + c->n))
            return false;
        c->n += some;
        from += some;
        left -= some;
        if (c->n == BUFFER && !flush(c)) return false;
    }
    return true;
}

static bool copy_piece(rank_work *w, lb_writer *out, int64_t i,
                       const rank_piece *p, uint8_t *buffer)
{
    if (p->instead)
        return lb_writer_place(w->cx, out, i, 0, lb_data(p->instead),
                               (size_t)lb_size(p->instead));
    if (!p->from->size) return true;
    copying c = {.w = w,
                 .out = out,
                 .tensor = i,
                 .p = p,
                 .unit = unit_of(p->from, &p->to)};
    c.buffer = buffer;
    return lb_cut_runs(&p->to, copy_run, &c) && flush(&c);
}

/* Plans the part of tensor k of array i that a rank's file contains. */
static bool add_piece(rank_work *w, int64_t i, int k, int rank, lb_tensor *t,
                      rank_piece *p)
{
    const lb_group *g = w->f->group[i];
    const lb_tensor *from = g->tensor[k];
    const lb_cut box = box_of(w, i, rank);
    int64_t *dim = lb_arena_alloc(w->cx, &w->job.arena,
                                  (uint64_t)from->rank + 1, sizeof *dim);
    if (!dim) return false;
    *p = (rank_piece){.from = from, .to = lb_cut_one()};
    *t =
        (lb_tensor){.name = from->name, .type = from->type, .rank = from->rank};
    memcpy(dim, from->dim, (size_t)from->rank * sizeof *dim);
    t->dim = dim;
    if (w->placed[i].whole) return true;
    if (!lb_group_place(g, k, &box, &p->to)) return false; /* never */
    if (g->layout && g->layout->restate)
        if (!g->layout->restate(w->cx, w->f, g, k, &box, &p->instead))
            return false;
    if (p->instead)
        dim[0] = lb_size(p->instead);
    else if (p->to.of.rank) /* only a part */
        local_dims(from, &p->to, dim);
    return true;
}

/* Keeps the original of tensors that are replaced, for merging. */
static bool add_kept(rank_work *w, const rank_piece *p)
{
    static const char digit[] = "0123456789abcdef";
    const size_t n = (size_t)p->from->size;
    uint8_t *bytes = lb_arena_alloc(w->cx, &w->job.arena, n, 1);
    char *hex = lb_arena_alloc(w->cx, &w->job.arena, 2 * n + 1, 1);
    if (!bytes || !hex || !lb_reader_read(w->cx, w->f->r, p->from, 0, n, bytes))
        return false;
    for (size_t i = 0; i < n; i++) {
        hex[2 * i] = digit[bytes[i] >> 4];
        hex[2 * i + 1] = digit[bytes[i] & 15];
    }
    return add_meta(w, LB_SHARD_KEY "tensor.", p->from->name, hex, 2 * n);
}

/* The file of rank `rank`, in dir; NULL: it is only planned. Adds its size to
 * *size. */
static bool write_rank(rank_work *w, int rank, const char *dir, uint8_t *buffer,
                       uint64_t *size)
{
    const uint64_t most = (uint64_t)w->f->r->n_tensors;
    lb_tensor *t = lb_arena_alloc(w->cx, &w->job.arena, most, sizeof *t);
    rank_piece *p = lb_arena_alloc(w->cx, &w->job.arena, most, sizeof *p);
    const char *path = lb_job_path(
        &w->job, dir ? dir : "", lb_rank_name(rank, lb_grid_size(&w->grid)).s);
    const lb_write_options o = {
        .no_sync = w->o->no_sync, .place = true, .compose_only = !dir};
    int64_t n = 0;
    bool ok = t && p && path && add_values(w, rank);
    for (int64_t i = 0; ok && i < w->f->n; i++)
        for (int k = 0; ok && k < LB_GROUP_MOST; k++) {
            if (!w->f->group[i]->tensor[k]) continue;
            ok = add_piece(w, i, k, rank, &t[n], &p[n]) &&
                 (rank || !p[n].instead || add_kept(w, &p[n]));
            n++;
        }
    if (!ok) return false;
    lb_writer *out = lb_writer_open(w->cx, lb_container_named("safetensors"),
                                    path, t, n, w->meta, w->n_meta, &o);
    ok = out != NULL;
    if (ok) *size += out->total;
    for (int64_t i = 0; ok && dir && i < n; i++)
        ok = copy_piece(w, out, i, &p[i], buffer);
    return lb_writer_close(w->cx, out, ok && dir) || (ok && !dir);
}

static bool write_ranks(rank_work *w, const char *dir, uint64_t *size)
{
    uint8_t *buffer = lb_arena_alloc(w->cx, &w->job.arena, BUFFER, 1);
    const lb_arena kept = w->job.arena;
    bool ok = buffer != NULL;
    for (int r = 0; ok && r < lb_grid_size(&w->grid); r++) {
        w->job.arena = (lb_arena){.heap = w->cx->heap}; /* of this rank */
        w->meta = NULL;
        w->room = 0;
        lb_enter(w->cx);
        ok = write_rank(w, r, dir, buffer, size);
        lb_leave(w->cx);
        lb_arena_free(&w->job.arena);
    }
    w->job.arena = kept;
    return ok;
}

/* Everything that could fail before the first byte is written. */
static bool rehearse(rank_work *w, const char *from, const char *to)
{
    uint64_t size = 0;
    if (to && !lb_job_may_write(&w->job, from, to)) return false;
    return write_ranks(w, NULL, &size) &&
           (!to || lb_job_check_directory(&w->job, from, to, size, false));
}

static bool write_all(rank_work *w, const char *from, const char *to)
{
    char *partial = NULL;
    uint64_t size = 0;
    if (!lb_job_begin_directory(&w->job, from, to, &partial)) return false;
    return lb_job_end_directory(&w->job, from, to, partial,
                                write_ranks(w, partial, &size));
}

/* Checks that the result can be merged again. */
static bool check_files(const rank_work *w)
{
    const lb_reader *r = w->f->r;
    const int n = r->n_files - indexes(r);
    if (n > LB_SHARD_FILES)
        return lb_fail(w->cx, LB_E_UNSUPPORTED,
                       "%s: has %d files; the maximum is %d",
                       LB_PATH(r->file[0]->path), n, (int)LB_SHARD_FILES);
    for (int i = 1; i < r->n_files; i++)
        if (!lb_shard_may_name(name_of(r->file[i])))
            return lb_fail(
                w->cx, LB_E_UNSUPPORTED,
                "%s: has a file '%s', a name that merge would not write",
                LB_PATH(r->file[0]->path), LB_NAME(name_of(r->file[i])));
    return true;
}

static bool check_source(const rank_work *w)
{
    const char *kind = lb_file_kind(w->f);
    if (strncmp(kind, "safetensors", 11) != 0)
        return lb_fail(w->cx, LB_E_UNSUPPORTED,
                       "%s: only safetensors files can be sharded, not %s",
                       LB_PATH(w->f->r->file[0]->path), kind);
    for (int64_t i = 0; i < w->f->r->n_meta; i++)
        if (strncmp(w->f->r->meta[i].key, LB_SHARD_KEY, strlen(LB_SHARD_KEY)) ==
            0)
            return lb_fail(
                w->cx, LB_E_UNSUPPORTED,
                "%s: is already the file of a rank: it has a value %s",
                LB_PATH(w->f->r->file[0]->path), LB_NAME(w->f->r->meta[i].key));
    return check_files(w);
}

bool lb_shard_file(lb_ctx *cx, const char *from, const char *to,
                   const lb_shard_options *options)
{
    lb_shard_options o = {0};
    if (!cx) return false;
    const size_t size =
        options && options->struct_size ? options->struct_size : sizeof o;
    if (size < sizeof o.struct_size)
        return lb_fail(cx, LB_E_ARG,
                       "shard_file: options.struct_size is %zu, not sizeof "
                       "or 0",
                       size);
    if (options) memcpy(&o, options, size < sizeof o ? size : sizeof o);
    if (!from || !o.mesh || !o.rules || (!to && !o.dry_run))
        return lb_fail(cx, LB_E_NULL,
                       "shard_file: a path, the mesh or the rules are NULL");
    const lb_quantize_options how = {.no_sync = o.no_sync,
                                     .directory = true,
                                     .cancel = o.cancel,
                                     .cancel_user = o.cancel_user};
    /* Only bytes matter here: any meaning of the scales will do. */
    const lb_file_options read = {.no_map = true, .linear_class = "bitlinear"};
    rank_work w = {.cx = cx, .o = &o};
    w.job = (lb_job){.cx = cx, .o = &how, .arena = {.heap = cx->heap}};
    if (!lb_grid_parse(cx, o.mesh, &w.grid) || !lb_shard_ranks_fit(cx, &w.grid))
        return false;
    w.f = lb_file_open(cx, from, &read);
    const bool ok = w.f && check_source(&w) && plan(&w) &&
                    rehearse(&w, from, to) &&
                    (o.dry_run || write_all(&w, from, to));
    lb_file_close(w.f);
    lb_arena_free(&w.job.arena);
    return ok;
}
