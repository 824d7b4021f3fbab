/* merge_ranks.c - merges the files of ranks into a checkpoint.
 *
 * First its files get their original headers and all tensors that every rank
 * has completely. They can then be opened as a checkpoint, which determines
 * where slices belong.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/core.h"
#include "io/containers/safetensors.h"
#include "io/jobs/rank_files.h"
#include "io/models/model_dir.h"

enum { BUFFER = 1 << 18 };

typedef struct merge_work {
    lb_ctx *cx;
    lb_job job; /* for a directory, and its arena */
    lb_grid grid;
    int ranks;
    lb_reader **rank;  /* the files of the ranks */
    lb_outfile **out;  /* files of the checkpoint */
    const char **name; /* their names, in a directory */
    int n_out;
    int first; /* index of a reader's first file of tensors: 1 after an index */
    bool no_sync;
    uint8_t *buffer;
} merge_work;

/* ---- metadata of rank files ---------------------------------------------- */

static bool wrong(const merge_work *w, const char *what)
{
    return lb_refuse(w->cx, w->rank[0]->file[0], "%s", what);
}

/* A metadata value as a string; NULL, and an error if required. */
static const char *value_of(merge_work *w, int rank, const char *key, int i,
                            bool must)
{
    char full[64];
    snprintf(full, sizeof full, i < 0 ? "%s%s" : "%s%s%d", LB_SHARD_KEY, key,
             i);
    const lb_meta *m = lb_reader_meta(w->rank[rank], full);
    if (m && m->type == LB_META_STRING)
        return lb_arena_text(w->cx, &w->job.arena, m->bytes, (size_t)m->size);
    if (must)
        lb_refuse(w->cx, w->rank[rank]->file[0],
                  "has no value %s, so it was not written by shard", full);
    return NULL;
}

/* A value of rank 0, which describes the whole checkpoint. */
static const char *value(merge_work *w, const char *key, int i, bool must)
{
    return value_of(w, 0, key, i, must);
}

static bool number(merge_work *w, const char *key, int i, uint64_t most,
                   uint64_t *v)
{
    const char *text = value(w, key, i, true);
    char *end = NULL;
    if (!text) return false;
    const unsigned long long n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || n > most)
        return wrong(w, "an invalid number in its metadata");
    *v = n;
    return true;
}

/* ---- ranks --------------------------------------------------------------- */

static lb_reader *open_rank(merge_work *w, const char *dir, int r, int n)
{
    const lb_read_options o = {.no_map = true};
    const char *path = lb_job_path(&w->job, dir, lb_rank_name(r, n).s);
    return path ? lb_reader_open(w->cx, path, &o) : NULL;
}

/* The number of ranks in the name of a first rank's file; 0 if it is not one.
 */
static int ranks_of(const char *name)
{
    int n = 0;
    const bool first = sscanf(name, "rank-00000-of-%9d", &n) == 1 && n > 0 &&
                       n <= LB_SHARD_RANKS;
    return first && strcmp(name, lb_rank_name(0, n).s) == 0 ? n : 0;
}

/* The number of ranks, from the only file of a first rank; 0 and an error. */
static int count_ranks(merge_work *w, const char *dir)
{
    int few = INT_MAX, many = 0;
    DIR *d = opendir(dir);
    if (!d && errno != ENOTDIR) {
        lb_fail(w->cx, LB_E_FILE, "%s: cannot open: %s", LB_PATH(dir),
                strerror(errno));
        return 0;
    }
    for (const struct dirent *e; d && (e = readdir(d));) {
        const int n = ranks_of(e->d_name);
        if (n && n < few) few = n;
        if (n > many) many = n;
    }
    if (d) closedir(d);
    if (!many)
        lb_fail(
            w->cx, LB_E_CONTENT,
            "%s: unknown file format: merge takes a directory of files such as "
            "%s, the output of shard",
            LB_PATH(dir), lb_rank_name(0, 8).s);
    else if (few < many)
        lb_fail(w->cx, LB_E_CONTENT, "%s: has both %s and %s", LB_PATH(dir),
                lb_rank_name(0, few).s, lb_rank_name(0, many).s);
    return few == many ? many : 0;
}

/* Whether a file's metadata match its name and the first file's mesh. */
static bool check_rank(merge_work *w, int r, const char *mesh)
{
    char want[16];
    const lb_infile *f = w->rank[r]->file[0];
    const char *its = value_of(w, r, "mesh", -1, true);
    const char *rank = its ? value_of(w, r, "rank", -1, true) : NULL;
    if (!rank) return false;
    if (strcmp(its, mesh) != 0)
        return lb_refuse(w->cx, f, "its mesh is %s, but that of rank 0 is %s",
                         LB_NAME(its), LB_NAME(mesh));
    snprintf(want, sizeof want, "%d", r);
    return strcmp(rank, want) == 0 ||
           lb_refuse(w->cx, f, "is the file of rank %s, not of rank %d",
                     LB_NAME(rank), r);
}

static bool open_ranks(merge_work *w, const char *dir)
{
    w->ranks = count_ranks(w, dir);
    w->rank = lb_arena_alloc(w->cx, &w->job.arena, (uint64_t)w->ranks + 1,
                             sizeof(lb_reader *));
    if (!w->ranks || !w->rank) return false;
    for (int r = 0; r < w->ranks; r++)
        if (!(w->rank[r] = open_rank(w, dir, r, w->ranks))) return false;
    const char *mesh = value(w, "mesh", -1, true);
    if (!mesh || !lb_grid_parse(w->cx, mesh, &w->grid)) return false;
    if (lb_grid_size(&w->grid) != w->ranks)
        return lb_refuse(w->cx, w->rank[0]->file[0],
                         "its mesh is %s, but there are files of %d ranks",
                         LB_NAME(mesh), w->ranks);
    bool ok = true;
    for (int r = 0; ok && r < w->ranks; r++)
        ok = check_rank(w, r, mesh);
    return ok;
}

/* ---- files --------------------------------------------------------------- */

/* Input files, which must not be overwritten. */
static lb_infile **inputs(merge_work *w)
{
    lb_infile **input = lb_arena_alloc(w->cx, &w->job.arena, (uint64_t)w->ranks,
                                       sizeof(lb_infile *));
    for (int r = 0; input && r < w->ranks; r++)
        input[r] = w->rank[r]->file[0];
    return input;
}

static bool begin_file(merge_work *w, const char *path, int i)
{
    uint64_t size = 0;
    const char *header = value(w, "header.", i, true);
    if (!header || !number(w, "size.", i, INT64_MAX, &size)) return false;
    const uint64_t n = strlen(header);
    if (size < 8 || n > size - 8)
        return wrong(w, "a recorded size smaller than the header");
    uint8_t head[8];
    for (int k = 0; k < 8; k++)
        head[k] = (uint8_t)(n >> 8 * k);
    lb_infile **input = inputs(w);
    if (!input) return false;
    w->out[i] =
        lb_outfile_open_sized(w->cx, path, input, w->ranks, size, NULL, 0);
    return w->out[i] && lb_outfile_patch(w->cx, w->out[i], 0, head, 8) &&
           lb_outfile_patch(w->cx, w->out[i], 8, header, (size_t)n);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* A tensor stored in hex in the metadata; *found: whether it exists. */
static bool put_kept(merge_work *w, lb_outfile *out, const lb_tensor *t,
                     bool *found)
{
    const lb_meta *m = lb_reader_meta_in(w->rank[0], LB_SHARD_KEY "tensor.",
                                         t->name, strlen(t->name));
    *found = m != NULL;
    if (!m) return true;
    bool ok =
        m->type == LB_META_STRING && m->size % 2 == 0 && m->size / 2 == t->size;
    uint8_t *bytes =
        ok ? lb_arena_alloc(w->cx, &w->job.arena, t->size, 1) : NULL;
    if (ok && !bytes) return false;
    for (uint64_t i = 0; ok && i < t->size; i++) {
        const int hi = digit_of((char)m->bytes[2 * i]);
        const int lo = digit_of((char)m->bytes[2 * i + 1]);
        ok = hi >= 0 && lo >= 0;
        if (ok) bytes[i] = (uint8_t)(hi << 4 | lo);
    }
    if (!ok) return wrong(w, "invalid hex data in its metadata");
    return lb_outfile_patch(w->cx, out, t->begin, bytes, (size_t)t->size);
}

static bool copy_bytes(merge_work *w, lb_reader *r, const lb_tensor *from,
                       uint64_t first, lb_outfile *out, uint64_t to, uint64_t n)
{
    while (n) {
        const size_t some = n < BUFFER ? (size_t)n : BUFFER;
        if (lb_job_cancelled(w->cx, w->job.o) ||
            !lb_reader_read(w->cx, r, from, first, some, w->buffer) ||
            !lb_outfile_patch(w->cx, out, to, w->buffer, some))
            return false;
        first += some;
        to += some;
        n -= some;
    }
    return true;
}

static bool same_tensor(const lb_tensor *a, const lb_tensor *b)
{
    bool same = strcmp(a->type, b->type) == 0 && a->rank == b->rank &&
                a->size == b->size;
    for (int k = 0; same && k < a->rank; k++)
        same = a->dim[k] == b->dim[k];
    return same;
}

/* Writes tensors that every rank has completely. first: index of the first file
 * of tensors in r->file. */
static bool put_whole(merge_work *w, lb_reader *r, int first, bool *done)
{
    for (int64_t i = 0; i < r->n_tensors; i++) {
        const lb_tensor *t = &r->tensor[i];
        lb_outfile *out = w->out[t->file - first];
        if (!put_kept(w, out, t, &done[i])) return false;
        if (done[i]) continue;
        const lb_tensor *from = lb_reader_find(w->rank[0], t->name);
        done[i] = from && same_tensor(t, from);
        if (done[i] &&
            !copy_bytes(w, w->rank[0], from, 0, out, t->begin, t->size))
            return false;
    }
    return true;
}

/* ---- slices -------------------------------------------------------------- */

typedef struct scatter {
    merge_work *w;
    lb_reader *from;
    const lb_tensor *slice, *t;
    lb_outfile *out;
    uint64_t unit;
} scatter;

static bool put_run(void *user, int64_t first, int64_t at, int64_t n)
{
    const scatter *s = user;
    return copy_bytes(s->w, s->from, s->slice, (uint64_t)at * s->unit, s->out,
                      s->t->begin + (uint64_t)first * s->unit,
                      (uint64_t)n * s->unit);
}

static lb_cut box_of(const merge_work *w, const lb_spec *spec,
                     const lb_entry *e, int rank)
{
    lb_cut box = {.of = lb_shape_make(e->rank, e->dim)};
    lb_spec_slice(&w->grid, spec, &box.of, rank, box.start, box.count);
    return box;
}

/* Whether an earlier rank has the same slice. */
static bool is_again(const merge_work *w, const lb_group *g,
                     const lb_spec *spec, int k, int rank, const lb_cut *to)
{
    for (int r = 0; r < rank; r++) {
        const lb_cut box = box_of(w, spec, &g->entry, r);
        lb_cut its;
        if (lb_group_place(g, k, &box, &its) && lb_cut_same(&its, to))
            return true;
    }
    return false;
}

/* Writes all ranks' slices of tensor k of an array. */
static bool put_slices(merge_work *w, const lb_group *g, const lb_spec *spec,
                       int k, lb_outfile *out)
{
    const lb_tensor *t = g->tensor[k];
    int64_t covered = 0, all = 0;
    for (int r = 0; r < w->ranks; r++) {
        const lb_cut box = box_of(w, spec, &g->entry, r);
        lb_cut to;
        if (!lb_group_place(g, k, &box, &to))
            return wrong(w, "a spec that is not possible in its layout");
        all = lb_shape_size(&to.of);
        if (t->size && (!all || t->size % (uint64_t)all))
            return lb_refuse(w->cx, w->rank[0]->file[0],
                             "'%s' has %llu bytes, which is not a multiple of "
                             "its %lld entries",
                             LB_NAME(t->name), (unsigned long long)t->size,
                             (long long)all);
        if (is_again(w, g, spec, k, r, &to)) continue;
        const lb_tensor *slice = lb_reader_find(w->rank[r], t->name);
        const uint64_t unit = all ? t->size / (uint64_t)all : 0;
        if (!slice || slice->size != (uint64_t)lb_cut_size(&to) * unit)
            return lb_refuse(
                w->cx, w->rank[r]->file[0], "has no tensor '%s' of %llu bytes",
                LB_NAME(t->name), (unsigned long long)lb_cut_size(&to) * unit);
        scatter s = {w, w->rank[r], slice, t, out, unit};
        if (!lb_cut_runs(&to, put_run, &s)) return false;
        covered += lb_cut_size(&to);
    }
    return covered == all || wrong(w, "slices that do not cover their array");
}

/* All ranks must have split an array by the same spec. */
static bool same_specs(merge_work *w, const char *name, const lb_meta *m)
{
    for (int r = 1; r < w->ranks; r++) {
        const lb_meta *its = lb_reader_meta_in(w->rank[r], LB_SHARD_KEY "spec.",
                                               name, strlen(name));
        if (!its || its->type != m->type || its->size != m->size ||
            (m->size && memcmp(its->bytes, m->bytes, (size_t)m->size) != 0))
            return lb_refuse(w->cx, w->rank[r]->file[0],
                             "its spec of '%s' differs from that of rank 0",
                             LB_NAME(name));
    }
    return true;
}

static bool put_array(merge_work *w, lb_file *f, lb_group *g, int first,
                      bool *done)
{
    char text[512];
    lb_spec spec;
    const lb_entry *e = &g->entry;
    const lb_meta *m = lb_reader_meta_in(w->rank[0], LB_SHARD_KEY "spec.",
                                         e->name, strlen(e->name));
    if (!m) return true;
    if (e->rank > LB_MAX_RANK || m->type != LB_META_STRING ||
        m->size >= sizeof text)
        return wrong(w, "a spec of an array that cannot be split");
    if (!same_specs(w, e->name, m)) return false;
    memcpy(text, m->bytes, (size_t)m->size);
    text[m->size] = 0;
    if (!lb_spec_parse(w->cx, &w->grid, lb_shape_make(e->rank, e->dim), text,
                       NULL, &spec) ||
        (g->layout && !lb_group_described(w->cx, f, g)))
        return false;
    for (int k = 0; k < LB_GROUP_MOST; k++) {
        const lb_tensor *t = g->tensor[k];
        if (!t || done[t - f->r->tensor]) continue;
        if (!put_slices(w, g, &spec, k, w->out[t->file - first])) return false;
        done[t - f->r->tensor] = true;
    }
    return true;
}

/* Whether the opened files are those being written, w->out, in this order. */
static bool check_files(merge_work *w, const lb_reader *r, int first)
{
    if (r->n_files - first != w->n_out)
        return wrong(w, "an index of other files");
    for (int i = 0; w->name && i < w->n_out; i++) {
        const char *path = r->file[first + i]->path;
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        if (strcmp(name, w->name[i]) != 0)
            return lb_refuse(
                w->cx, w->rank[0]->file[0],
                "its file %d is called '%s', but '%s' in its index", i,
                LB_NAME(w->name[i]), LB_NAME(name));
    }
    return true;
}

static bool put_arrays(merge_work *w, lb_file *f, int first, bool *done)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < lb_file_count(f); i++)
        ok = put_array(w, f, f->group[i], first, done);
    for (int64_t i = 0; ok && i < f->r->n_tensors; i++)
        if (!done[i] && f->r->tensor[i].size)
            ok = lb_refuse(w->cx, w->rank[0]->file[0],
                           "has neither '%s' nor a spec of its array",
                           LB_NAME(f->r->tensor[i].name));
    return ok;
}

/* The rest of the checkpoint at path, whose headers are written. Tensors that
 * every rank has come first: they may be needed to interpret others. */
static bool fill(merge_work *w, const char *path)
{
    const lb_read_options ro = {.no_map = true};
    const lb_file_options fo = {.no_map = true, .linear_class = "bitlinear"};
    lb_reader *r = lb_reader_open(w->cx, path, &ro);
    bool *done = r ? lb_arena_alloc(w->cx, &w->job.arena,
                                    (uint64_t)r->n_tensors, sizeof *done)
                   : NULL;
    if (!done || !check_files(w, r, w->first) ||
        !put_whole(w, r, w->first, done)) {
        lb_reader_close(r);
        return false;
    }
    lb_file *f = lb_file_of(w->cx, r, &fo); /* r is now owned by the file */
    const bool ok = f && put_arrays(w, f, w->first, done);
    lb_file_close(f);
    if (!ok && !lb_error_status(w->cx))
        wrong(w, "files that do not belong to its checkpoint");
    return ok;
}

/* ---- original files ------------------------------------------------------ */

static bool merge_one(merge_work *w, const char *to)
{
    bool ok = begin_file(w, to, 0) && fill(w, w->out[0]->partial);
    ok = lb_outfile_close(w->cx, w->out[0], ok, !w->no_sync);
    w->out[0] = NULL;
    return ok;
}

static bool write_index(merge_work *w, const char *dir, const char *text)
{
    const char *path =
        lb_job_path(&w->job, dir, "model.safetensors.index.json");
    const size_t n = strlen(text);
    lb_outfile *o = path ? lb_outfile_open(w->cx, path, NULL, 0, n) : NULL;
    const bool ok = o && lb_outfile_write(w->cx, o, text, n);
    return lb_outfile_close(w->cx, o, ok, !w->no_sync);
}

/* Files in a directory get their names before they are complete: the directory
 * itself is renamed at the end. */
static bool fill_directory(merge_work *w, const char *dir, const char *index)
{
    w->name = lb_arena_alloc(w->cx, &w->job.arena, (uint64_t)w->n_out,
                             sizeof *w->name);
    bool ok = w->name != NULL;
    for (int i = 0; ok && i < w->n_out; i++) {
        const char *name = w->name[i] =
            index ? value(w, "name.", i, true) : "model.safetensors";
        ok = name &&
             (lb_shard_may_name(name) || wrong(w, "an invalid file name"));
        const char *path = ok ? lb_job_path(&w->job, dir, name) : NULL;
        ok = path && begin_file(w, path, i) &&
             lb_outfile_publish(w->cx, w->out[i]);
    }
    ok = ok && (!index || write_index(w, dir, index)) && fill(w, dir);
    for (int i = 0; i < w->n_out; i++) {
        if (w->out[i])
            ok = lb_outfile_close(w->cx, w->out[i], ok, !w->no_sync) && ok;
        w->out[i] = NULL;
    }
    return ok;
}

static bool merge_to_directory(merge_work *w, const char *from, const char *to,
                               const char *index)
{
    char *partial = NULL;
    uint64_t all = 0, size = 0;
    w->first = index ? 1 : 0;
    for (int i = 0; i < w->n_out; i++) {
        if (!number(w, "size.", i, INT64_MAX, &size)) return false;
        all += size;
    }
    if (!lb_job_check_directory(&w->job, from, to, all, false)) return false;
    if (!lb_job_begin_directory(&w->job, from, to, &partial)) return false;
    const bool ok = fill_directory(w, partial, index);
    return lb_job_end_directory(&w->job, from, to, partial, ok);
}

/* ---- several files into one ---------------------------------------------- */

/* Parses the header of file i, in the arena of r. */
static bool list_file(merge_work *w, lb_reader *r, int i,
                      lb_safetensors_list *list)
{
    uint64_t size = 0;
    const char *header = value(w, "header.", i, true);
    if (!header || !number(w, "size.", i, INT64_MAX, &size)) return false;
    const uint64_t n = strlen(header);
    if (size < 8 || n > size - 8)
        return wrong(w, "a recorded size smaller than the header");
    lb_infile *f =
        lb_infile_wrap(w->cx, w->rank[0]->file[0]->path, header, (size_t)n);
    const bool ok =
        f && lb_safetensors_parse(w->cx, r, f, 0, n, size - 8 - n, list);
    lb_infile_unref(f);
    return ok;
}

static lb_writer *open_joined(merge_work *w, lb_reader *r, const char *to,
                              int files)
{
    lb_arena *arena = &w->job.arena;
    lb_safetensors_list *list =
        lb_arena_alloc(w->cx, arena, (uint64_t)files, sizeof *list);
    lb_infile **input = inputs(w);
    lb_meta *meta = NULL;
    int64_t n = 0, n_meta = 0;
    bool ok = list && input;
    for (int i = 0; ok && i < files; i++) {
        ok = list_file(w, r, i, &list[i]);
        n += list[i].n_tensors;
    }
    ok = ok && lb_safetensors_join_meta(w->cx, arena, list, (uint64_t)files,
                                        &meta, &n_meta);
    lb_tensor *all =
        ok ? lb_arena_alloc(w->cx, arena, (uint64_t)n, sizeof *all) : NULL;
    if (!all) return NULL;
    n = 0;
    for (int i = 0; i < files; i++)
        for (int64_t k = 0; k < list[i].n_tensors; k++)
            all[n++] = list[i].tensor[k];
    const lb_write_options o = {.input = input,
                                .n_inputs = w->ranks,
                                .no_sync = w->no_sync,
                                .place = true};
    return lb_writer_open(w->cx, lb_container_named("safetensors"), to, all, n,
                          meta, n_meta, &o);
}

/* Merges a checkpoint of several files into one, with a new header. */
static bool merge_joined(merge_work *w, const char *to, int files)
{
    lb_reader r = {.arena = {.heap = w->cx->heap}}; /* provides the arena */
    lb_writer *out = open_joined(w, &r, to, files);
    bool ok = out != NULL;
    w->n_out = 1;
    if (ok) {
        w->out[0] = out->out;
        ok = fill(w, out->out->partial);
        for (int64_t i = 0; i < out->n_tensors; i++)
            lb_writer_has(out, i); /* fill checks that all are written */
    }
    ok = lb_writer_close(w->cx, out, ok);
    w->out[0] = NULL;
    lb_arena_free(&r.arena);
    return ok;
}

/* ---- all of it ----------------------------------------------------------- */

/* The name decides: NAME.safetensors is a file; any other name, a name with a
 * trailing slash and an existing directory are directories. */
static bool is_file_name(const char *to)
{
    static const char end[] = ".safetensors";
    struct stat st;
    const size_t n = strlen(to), k = sizeof end - 1;
    if (stat(to, &st) == 0 && S_ISDIR(st.st_mode)) return false;
    return n > k && strcasecmp(to + n - k, end) == 0;
}

static bool merge(merge_work *w, const char *from, const char *to)
{
    uint64_t files = 0;
    if (!open_ranks(w, from) || !number(w, "files", -1, LB_SHARD_FILES, &files))
        return false;
    const char *index = value(w, "index", -1, false);
    w->n_out = (int)files;
    w->out =
        lb_arena_alloc(w->cx, &w->job.arena, files + 1, sizeof(lb_outfile *));
    w->buffer = lb_arena_alloc(w->cx, &w->job.arena, BUFFER, 1);
    if (!w->out || !w->buffer) return false;
    if (!index && files != 1) return wrong(w, "several files without an index");
    if (!is_file_name(to)) return merge_to_directory(w, from, to, index);
    return index ? merge_joined(w, to, (int)files) : merge_one(w, to);
}

bool lb_merge_file(lb_ctx *cx, const char *from, const char *to,
                   const lb_merge_options *options)
{
    lb_merge_options o = {0};
    if (!cx) return false;
    if (!from || !to)
        return lb_fail(cx, LB_E_NULL, "merge_file: a path is NULL");
    const size_t size =
        options && options->struct_size ? options->struct_size : sizeof o;
    if (size < sizeof o.struct_size)
        return lb_fail(cx, LB_E_ARG,
                       "merge_file: options.struct_size is %zu, not sizeof or "
                       "0",
                       size);
    if (options) memcpy(&o, options, size < sizeof o ? size : sizeof o);
    const lb_quantize_options how = {
        .no_sync = o.no_sync, .cancel = o.cancel, .cancel_user = o.cancel_user};
    merge_work w = {.cx = cx, .no_sync = o.no_sync};
    w.job = (lb_job){.cx = cx, .o = &how, .arena = {.heap = cx->heap}};
    const bool ok = merge(&w, from, to);
    for (int r = 0; w.rank && r < w.ranks; r++)
        lb_reader_close(w.rank[r]);
    lb_arena_free(&w.job.arena);
    return ok;
}
