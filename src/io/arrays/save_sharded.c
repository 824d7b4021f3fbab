/* save_sharded.c - saves arrays that are sharded over ranks to one file or
 * several, without gathering them.
 *
 * Every rank plans the same file. The first rank creates it and the others
 * join. Each rank writes its slices of the tensors; of replicas, one rank
 * writes.
 */
#include <string.h>

#include "core/core.h"
#include "io/arrays/slices.h"
#include "io/containers/multi_file.h"
#include "io/models/model_dir.h"

/* ---- slices of the whole array ------------------------------------------- */

static bool widen(lb_ctx *cx, lb_described *d, const lb_shape *shape)
{
    const bool same = lb_shape_equal(&d->shape, &d->stored);
    const int64_t size = lb_shape_size(shape);
    if (!same && d->stored.rank != 1)
        return lb_fail(
            cx, LB_E_UNSUPPORTED,
            "a slice %s, stored as %s, does not match the array in the file",
            LB_SHOW(&d->shape), LB_SHOW(&d->stored));
    d->shape = *shape;
    d->stored = same ? *shape : lb_shape_make(1, &size);
    for (int p = 0; p < d->n_parts; p++) {
        lb_described *part = d->part[p].array;
        const lb_shape whole = lb_part_shape(&d->stored, &d->part[p].table);
        if (part && !widen(cx, part, &whole)) return false;
    }
    return true;
}

lb_described *lb_describe_spread(lb_ctx *cx, lb_arena *arena, const char *name,
                                 const lb_array *a)
{
    lb_array *whole = (lb_array *)(uintptr_t)a; /* read only */
    const lb_array *slice = lb_local(cx, whole);
    if (!slice) return NULL;
    lb_described *d = lb_describe_array(cx, arena, name, slice);
    return d && widen(cx, d, &a->shape) ? d : NULL;
}

/* ---- assignment of writes ------------------------------------------------ */

typedef struct save_task {
    lb_ctx *cx;
    lb_mesh *mesh;
    lb_saver *s;
    lb_saved *item;
    int64_t i; /* index of the item */
    lb_array *a;
} save_task;

/* The box of the k-th tensor that belongs to a rank. */
static bool place_of(const save_task *t, int k, int rank, lb_cut *to)
{
    const lb_spec spec = lb_sharding_of(t->a);
    const lb_saved *it = t->item;
    lb_cut box = {.of = it->shape};
    lb_spec_slice(lb_mesh_grid(t->mesh), &spec, &it->shape, rank, box.start,
                  box.count);
    *to = box;
    return !it->layout ||
           (it->layout->place && it->layout->place(it->described, k, &box, to));
}

static bool no_place(const save_task *t)
{
    char text[256];
    const lb_spec spec = lb_sharding_of(t->a);
    return lb_fail(
        t->cx, LB_E_UNSUPPORTED,
        "'%s', %s %s sharded by %s: layout %s would mix bytes of several "
        "slices; use another spec, or gather it first (lb_unshard)",
        LB_NAME(t->item->name), t->item->format->name, LB_SHOW(&t->item->shape),
        lb_spec_text(lb_mesh_grid(t->mesh), &spec, text, sizeof text),
        t->item->layout->name);
}

/* Whether this rank writes its box *to of tensor k. All boxes together must
 * cover the tensor. */
static bool find_box(const save_task *t, int k, lb_cut *to, bool *mine)
{
    const int n = lb_mesh_size(t->mesh), me = lb_mesh_rank(t->mesh);
    int64_t covered = 0;
    if (!place_of(t, k, me, to)) return no_place(t);
    for (int j = 0; j < n; j++) {
        const int rank = (int)((t->i + j) % n); /* rotate, so that rank 0 does
                                                 * not write everything */
        bool first = true;
        lb_cut its, other;
        if (!place_of(t, k, rank, &its)) return no_place(t);
        for (int e = 0; first && e < j; e++) {
            place_of(t, k, (int)((t->i + e) % n), &other);
            first = !lb_cut_same(&its, &other);
        }
        if (first) covered += lb_cut_size(&its);
        if (rank == me) *mine = first;
    }
    return covered == lb_shape_size(&to->of) || no_place(t);
}

/* ---- writing ------------------------------------------------------------- */

typedef struct writing {
    const save_task *t;
    int64_t tensor;
    uint64_t size; /* size of an element */
    const uint8_t *from;
} writing;

static bool write_run(void *user, int64_t first, int64_t at, int64_t n)
{
    const writing *w = user;
    return lb_writer_place(
        w->t->cx, w->t->s->w, w->tensor, (uint64_t)first * w->size,
        w->from + (uint64_t)at * w->size, (size_t)n * w->size);
}

static bool write_box(const save_task *t, int k, const lb_cut *to,
                      lb_array *slice)
{
    const lb_saved *it = t->item;
    const int64_t tensor = it->first + k;
    const uint64_t due = t->s->w->tensor[tensor].size;
    lb_array *part = it->layout ? it->layout->part(t->cx, it, slice, k) : slice;
    lb_array *dense = part ? lb_materialize(t->cx, part) : NULL;
    if (!dense) return false;
    const uint64_t n =
        (uint64_t)lb_size(dense) * lb_dtype_size(lb_dtype_of(dense));
    const uint64_t all = (uint64_t)lb_shape_size(&to->of);
    const uint64_t some = (uint64_t)lb_cut_size(to);
    if (!n && !some) return true;
    const uint64_t size = some ? n / some : 0;
    if (size * some != n || size * all != due)
        return lb_fail(t->cx, LB_E_UNSUPPORTED,
                       "'%s': the slice of rank %d has %llu bytes for %llu of "
                       "%llu entries, which need %llu",
                       LB_NAME(t->s->w->tensor[tensor].name),
                       lb_mesh_rank(t->mesh), (unsigned long long)n,
                       (unsigned long long)some, (unsigned long long)all,
                       (unsigned long long)due);
    writing w = {t, tensor, size, lb_data(dense)};
    return lb_cut_runs(to, write_run, &w);
}

static bool write_item(const save_task *t)
{
    const int n = lb_mesh_size(t->mesh), me = lb_mesh_rank(t->mesh);
    bool ok = true;
    for (int k = 0; ok && k < t->item->n_tensors; k++) {
        const lb_shape one = {0};
        lb_cut to = lb_cut_all(&one); /* all of it */
        bool mine = t->i % n == me;
        if (lb_is_sharded(t->a)) ok = find_box(t, k, &to, &mine);
        if (!ok || !mine) continue;
        lb_enter(t->cx);
        ok = write_box(t, k, &to, lb_local(t->cx, t->a));
        lb_leave(t->cx);
    }
    return ok;
}

static bool check_list(lb_ctx *cx, const lb_mesh *mesh, const lb_planned *list,
                       int64_t n)
{
    if (n < 0 || (n && !list))
        return lb_fail(
            cx, LB_E_NULL,
            "save_sharded: list is NULL or has a negative count (%lld arrays)",
            (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const lb_array *a = list[i].array;
        const char *name = list[i].name ? list[i].name : "";
        if (!a)
            return lb_fail(cx, LB_E_NULL, "save_sharded: '%s' has no array",
                           LB_NAME(name));
        if (lb_is_sharded(a) && lb_mesh_of(a) != mesh)
            return lb_fail(
                cx, LB_E_MESH,
                "save_sharded: '%s' is sharded over a different mesh",
                LB_NAME(name));
    }
    return true;
}

static bool check_kind(lb_ctx *cx, const lb_save_options *o)
{
    if (!o->max_shard || !o->kind || strcmp(o->kind, "safetensors") == 0)
        return true;
    return lb_fail(
        cx, LB_E_ARG,
        "save_sharded: max_shard (%llu bytes) requires safetensors, not %s",
        (unsigned long long)o->max_shard, LB_NAME(o->kind));
}

/* One file. */
static bool save_one(lb_ctx *cx, lb_mesh *mesh, const char *path,
                     const lb_planned *list, int64_t n,
                     const lb_save_options *options)
{
    const lb_saver_more more = {.mesh = mesh};
    lb_saver *s = lb_saver_begin(cx, path, list, n, options, &more);
    bool ok = s != NULL;
    for (int64_t i = 0; ok && i < n; i++) {
        const save_task t = {cx, mesh, s, &s->item[i], i, list[i].array};
        ok = write_item(&t);
    }
    if (s) s->at = s->n;
    ok = lb_saver_close(cx, s, ok);
    return lb_mesh_agree(mesh) && ok;
}

/* ---- shards -------------------------------------------------------------- */

typedef struct split {
    lb_saver *plan;
    int64_t *item;   /* shard of each array */
    int64_t *tensor; /* shard of each tensor */
    int64_t shards;
    uint64_t total;
} split;

static bool split_up(lb_job *j, lb_mesh *mesh, const lb_planned *list,
                     int64_t n, const lb_save_options *o, split *sp)
{
    lb_save_options flat = *o;
    flat.max_shard = 0;
    const lb_saver_more more = {.plan_only = true, .mesh = mesh};
    sp->plan = lb_saver_begin(j->cx, "", list, n, &flat, &more);
    if (!sp->plan) return false;
    const uint64_t tensors = (uint64_t)sp->plan->n_tensors;
    sp->item = lb_arena_alloc(j->cx, &j->arena, (uint64_t)n, sizeof *sp->item);
    sp->tensor = lb_arena_alloc(j->cx, &j->arena, tensors, sizeof *sp->tensor);
    uint64_t *size =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)n, sizeof *size);
    if (!sp->item || !sp->tensor || !size) return false;
    for (int64_t i = 0; i < n; i++)
        sp->total += size[i] = lb_saver_size(sp->plan, i);
    sp->shards = lb_shards_plan(size, n, o->max_shard, sp->item);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < sp->plan->item[i].n_tensors; k++)
            sp->tensor[sp->plan->item[i].first + k] = sp->item[i];
    return true;
}

static bool save_split(lb_job *j, lb_mesh *mesh, const lb_planned *list,
                       int64_t n, const lb_save_options *o, const char *dir,
                       const split *sp)
{
    lb_planned *some =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)n, sizeof *some);
    bool ok = some != NULL;
    for (int64_t shard = 0; shard < sp->shards; shard++) {
        lb_save_options its = *o;
        int64_t count = 0;
        its.max_shard = 0;
        const char *path =
            lb_job_path(j, dir, lb_shard_name(shard, sp->shards).s);
        ok = ok && path;
        if (!lb_job_meet(j, ok)) return false;
        for (int64_t i = 0; i < n; i++)
            if (sp->item[i] == shard) some[count++] = list[i];
        if (!save_one(j->cx, mesh, path, some, count, &its)) return false;
    }
    if (!lb_job_leads(j)) return lb_job_meet(j, ok);
    const lb_write_options w = {.no_sync = o->no_sync};
    const char *path = lb_job_path(j, dir, "model.safetensors.index.json");
    ok = ok && path &&
         lb_shards_write_index(j->cx, path, sp->plan->tensor, sp->tensor,
                               sp->plan->n_tensors, sp->shards, sp->total, &w);
    return lb_job_meet(j, ok);
}

/* A directory gets its name when it is complete. */
static bool save_many(lb_ctx *cx, lb_mesh *mesh, const char *to,
                      const lb_planned *list, int64_t n,
                      const lb_save_options *o)
{
    const lb_quantize_options how = {.no_sync = o->no_sync};
    lb_job j = {.cx = cx, .o = &how, .mesh = mesh, .arena = {.heap = cx->heap}};
    split sp = {0};
    char *partial = NULL;
    bool ok = lb_job_meet(&j, split_up(&j, mesh, list, n, o, &sp)) &&
              lb_job_begin_directory(&j, NULL, to, &partial);
    if (ok) {
        ok = save_split(&j, mesh, list, n, o, partial, &sp);
        ok = lb_job_end_directory(&j, NULL, to, partial, ok);
    }
    lb_saver_close(cx, sp.plan, false);
    lb_arena_free(&j.arena);
    return ok;
}

bool lb_save_sharded(lb_ctx *cx, lb_mesh *mesh, const char *path,
                     const lb_planned *list, int64_t n,
                     const lb_save_options *options)
{
    lb_save_options o;
    if (!cx) return false;
    if (!mesh) return lb_fail(cx, LB_E_NULL, "save_sharded: the mesh is NULL");
    const bool ok = lb_save_options_read(cx, options, &o) &&
                    (path || lb_fail(cx, LB_E_NULL, "save: no path")) &&
                    check_kind(cx, &o) && check_list(cx, mesh, list, n);
    if (!lb_mesh_agree(mesh) || !ok) return false;
    return (o.max_shard ? save_many : save_one)(cx, mesh, path, list, n, &o);
}
