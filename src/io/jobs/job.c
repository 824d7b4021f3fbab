/* job.c - jobs that write a file into another: everything is planned first,
 * then done array by array.
 *
 * The plan follows from shapes alone, and the header is written first. Then
 * each array is read, converted and written in pieces (copy_array.h), so memory
 * does not depend on the file's size. Arrays that are quantized are read, not
 * mapped: pages of a map would count as this process's memory until the kernel
 * reclaims them.
 */
#include "io/jobs/job.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "core/core.h"
#include "io/jobs/selection.h"

static const uint64_t memory_default = (uint64_t)512 << 20;
static const uint64_t memory_least = 1000000;

/* ---- ranks --------------------------------------------------------------- */

bool lb_job_meet(const lb_job *j, bool ok)
{
    if (!j->mesh) return ok;
    if (!ok) lb_fail(j->cx, LB_E_FILE, "it failed on another rank");
    return lb_mesh_agree(j->mesh);
}

bool lb_job_leads(const lb_job *j)
{
    return !j->mesh || lb_mesh_rank(j->mesh) == 0;
}

/* All-gathers the bytes of each rank, in rank order. */
static bool tell_all(lb_job *j, size_t n, const void *mine, void *all)
{
    lb_comm *c = j->o->comm;
    if (!lb_job_meet(j, true)) return false;
    return c->all_gather(c, n, mine, all) ||
           lb_fail(j->cx, LB_E_MESH, "%.200s", c->why);
}

bool lb_job_decides(lb_job *j, bool yes)
{
    if (!j->mesh) return yes;
    const uint8_t mine = yes;
    uint8_t *all =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)lb_mesh_size(j->mesh), 1);
    return lb_job_meet(j, all != NULL) && all && tell_all(j, 1, &mine, all) &&
           all[0];
}

/* Assigns n arrays to ranks, longest processing time first: the largest array
 * next, to the rank with the least work. */
static int *share_out(lb_job *j, const int64_t *which, int64_t n)
{
    const int ranks = j->mesh ? lb_mesh_size(j->mesh) : 1;
    int *owner = lb_arena_alloc(j->cx, &j->arena, (uint64_t)n, sizeof *owner);
    uint64_t *load =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)ranks, sizeof *load);
    if (!owner || !load) return NULL;
    for (int64_t i = 0; i < n; i++)
        owner[i] = ranks > 1 ? -1 : 0;
    for (int64_t left = ranks > 1 ? n : 0; left > 0; left--) {
        int64_t most = -1;
        int least = 0;
        uint64_t size = 0;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t its = j->item[which[i]].group->entry.nbytes;
            if (owner[i] >= 0 || (most >= 0 && its <= size)) continue;
            most = i;
            size = its;
        }
        for (int r = 1; r < ranks; r++)
            if (load[r] < load[least]) least = r;
        owner[most] = least;
        load[least] += size + 1;
    }
    return owner;
}

/* ---- planning ------------------------------------------------------------ */

bool lb_job_quantizes(const lb_job_item *it)
{
    return !it->kept && !it->decoded && !it->stored;
}

lb_planned lb_job_planned(const lb_job_item *it)
{
    const lb_entry *e = &it->group->entry;
    if (it->stored || it->raw || it->moves)
        return (lb_planned){.name = e->name};
    return (lb_planned){.name = e->name,
                        .dtype = it->dtype ? it->dtype : e->dtype,
                        .shape = lb_shape_make(e->rank, e->dim),
                        .config = lb_job_quantizes(it) ? &it->config : NULL};
}

lb_transfer lb_job_transfer(lb_job *j, const lb_job_item *it)
{
    const uint64_t most = j->o->max_memory;
    return (lb_transfer){.f = j->f,
                         .group = it->group,
                         .config = lb_job_quantizes(it) ? &it->config : NULL,
                         .dtype = it->dtype,
                         .layout = it->layout,
                         .max_memory = most ? most : memory_default,
                         .measure = j->o->measure && !it->kept};
}

bool lb_job_cancelled(lb_ctx *cx, const lb_quantize_options *o)
{
    return o->cancel && o->cancel(o->cancel_user) &&
           !lb_fail(cx, LB_E_CANCELLED, "interrupted");
}

/* Pages of maps count as memory of this process. */
static void forget_pages(const lb_job *j)
{
    for (int i = 0; i < j->f->r->n_files; i++)
        lb_infile_forget(j->f->r->file[i]);
}

bool lb_job_advance(void *user, uint64_t nbytes)
{
    lb_job *j = user;
    forget_pages(j);
    j->read += nbytes;
    const lb_progress p = {.entry = j->at,
                           .done = j->read,
                           .total = j->total,
                           .arrays_done = j->finished,
                           .arrays = j->n};
    if (nbytes && j->o->progress) j->o->progress(j->o->progress_user, &p);
    return !lb_job_cancelled(j->cx, j->o);
}

/* bitsandbytes' header contains the mean of the scales: with double_quant
 * arrays are quantized twice. */
static bool wants_offset(const lb_job_item *it)
{
    return lb_job_quantizes(it) && it->config.double_quant && it->layout &&
           it->layout->wants_offset;
}

static bool find_offset(lb_job *j, int64_t i)
{
    const lb_job_item *it = &j->item[i];
    if (!wants_offset(it)) return true;
    const lb_transfer t = lb_job_transfer(j, it);
    lb_enter(j->cx);
    const lb_array *q = lb_transfer_whole(j->cx, &t);
    lb_array *offset = NULL;
    for (int p = 0; q && p < LB_MAX_PARTS; p++)
        if (q->store->fmt->part[p].scale && q->store->part[p].a)
            offset = lb_component(j->cx, q->store->part[p].a, "offset");
    if (offset) j->offset[i] = (float)lb_item(j->cx, offset);
    lb_leave(j->cx);
    j->at = &it->group->entry;
    return offset && lb_job_advance(j, j->at->nbytes);
}

/* The shard of an array; in a source with an index, file 0 is the index. */
static int shard_of(const lb_job *j, const lb_group *g)
{
    const int file = g->tensor[0]->file;
    return j->f->r->n_files > 1 ? file - 1 : 0;
}

static void put_config(lb_bytes *b, const lb_quant_config *c)
{
    const int64_t all[] = {
        c->block_size,   c->axes.n,       c->dtype,   c->simulate,  c->compat,
        c->decode,       c->scale,        c->meaning, c->threshold, c->blocks,
        c->on_nonfinite, c->double_quant, c->center};
    lb_bytes_put(b, c->format, strlen(c->format) + 1);
    lb_bytes_put(b, all, sizeof all);
    lb_bytes_put(b, c->axes.axis, (size_t)c->axes.n * sizeof(int));
}

/* Hashes everything that must be unchanged for a run to be resumed. */
static bool find_number(lb_job *j)
{
    static const char version[] = LB_VERSION_STRING;
    const lb_reader *r = j->f->r;
    lb_bytes b = {.heap = j->cx->heap};
    lb_bytes_put(&b, version, sizeof version);
    const char *const how[] = {j->o->kind, j->o->layout, j->o->linear_class};
    for (int i = 0; i < 3; i++)
        lb_bytes_put(&b, how[i] ? how[i] : "", how[i] ? strlen(how[i]) + 1 : 1);
    for (int i = 0; i < r->n_files; i++) {
        lb_bytes_u64(&b, r->file[i]->size);
        lb_bytes_u64(&b, (uint64_t)r->file[i]->changed);
    }
    for (int64_t i = 0; i < j->n; i++) {
        const lb_job_item *it = &j->item[i];
        const char *name = it->group->entry.name;
        lb_bytes_put(&b, name, strlen(name) + 1);
        lb_bytes_u64(&b, it->group->tensor[0]->begin);
        if (lb_job_quantizes(it)) put_config(&b, &it->config);
        lb_bytes_u32(&b, (uint32_t)it->dtype);
        lb_bytes_u32(&b, it->stored);
        if (it->moves) put_config(&b, &it->plan.target.config);
    }
    if (!b.failed) j->number = XXH3_64bits(b.at, b.n);
    const bool ok = !b.failed || lb_fail(j->cx, LB_E_NOMEM, "out of memory");
    lb_bytes_free(&b);
    return ok;
}

/* The arrays of one output file, by their index in the job. */
typedef struct some_items {
    lb_job *j;
    const int64_t *which; /* NULL: all */
} some_items;

/* See lb_saver_more.load. */
static bool load_stored(void *user, int64_t i, lb_array **a,
                        const lb_tensor **raw)
{
    const some_items *s = user;
    const lb_job_item *it = &s->j->item[s->which ? s->which[i] : i];
    if (it->raw) *raw = it->group->tensor[0];
    if (it->moves)
        *a = lb_job_move_result(s->j, it);
    else if (it->stored) {
        forget_pages(s->j);
        *a = lb_file_load(s->j->cx, s->j->f, it->group->entry.name);
    }
    return *a || !(it->moves || it->stored);
}

static lb_save_options save_options(const lb_job *j)
{
    return (lb_save_options){.kind = j->o->kind,
                             .layout = j->o->layout,
                             .meta = j->meta,
                             .n_meta = j->n_meta,
                             .input = &j->f,
                             .n_inputs = 1,
                             .no_sync = j->o->no_sync};
}

/* The output path is checked before types are chosen for a target, which
 * measures every array. */
static bool plan(lb_job *j, const char *from, const char *to)
{
    const uint64_t n = (uint64_t)lb_file_count(j->f);
    j->n = (int64_t)n;
    j->item = lb_arena_alloc(j->cx, &j->arena, n, sizeof *j->item);
    j->list = lb_arena_alloc(j->cx, &j->arena, n, sizeof *j->list);
    j->offset = lb_arena_alloc(j->cx, &j->arena, n, sizeof *j->offset);
    if (!j->item || !j->list || !j->offset || !lb_job_take_meta(j))
        return false;
    for (int64_t i = 0; i < j->n; i++) {
        lb_job_item *it = &j->item[i];
        it->group = j->group[i];
        it->shard = shard_of(j, it->group);
        j->total += it->group->entry.nbytes;
        if (it->shard >= j->shards) j->shards = it->shard + 1;
        if (!(j->convert ? lb_job_plan_converted(j, it)
                         : lb_job_plan_quantized(j, it)))
            return false;
        forget_pages(j);
    }
    const char *first = j->n ? j->item[0].group->entry.name : "";
    if (j->o->selection && !lb_selection_check(j->cx, j->o, j->n, first))
        return false;
    if (to && lb_job_leads(j) && !lb_job_may_write(j, from, to)) return false;
    if (lb_job_has_target(j) && !lb_job_allocate(j)) return false;
    for (int64_t i = 0; i < j->n; i++)
        if (wants_offset(&j->item[i]))
            j->total += j->item[i].group->entry.nbytes;
    for (int64_t i = 0; i < j->n; i++) {
        if (!find_offset(j, i)) return false;
        j->list[i] = lb_job_planned(&j->item[i]);
    }
    const lb_save_options save = save_options(j);
    some_items all = {.j = j};
    const lb_saver_more more = {.offset = j->offset,
                                .load = load_stored,
                                .user = &all,
                                .plan_only = true};
    j->plan = lb_saver_begin(j->cx, "", j->list, j->n, &save, &more);
    for (int64_t i = 0; j->plan && i < j->n; i++) {
        const lb_file_layout *l = j->plan->item[i].layout;
        if (l && l->moves && !j->item[i].kept) j->item[i].layout = l;
    }
    return j->plan && lb_job_put_config(j) && lb_job_set_file_type(j) &&
           find_number(j);
}

/* ---- doing --------------------------------------------------------------- */

/* The result of one array. */
typedef struct outcome {
    lb_difference m;
    lb_moved moved;
    bool resumed;
} outcome;

static void tell(lb_job *j, int64_t i, const outcome *o, const char *refused)
{
    lb_job_item *it = &j->item[i];
    const lb_entry *e = &it->group->entry;
    const lb_written w = {.entry = e,
                          .i = i,
                          .n = j->n,
                          .kept = it->kept,
                          .config = lb_job_quantizes(it) ? &it->config : NULL,
                          .format = lb_job_quantizes(it) ? it->config.format
                                    : it->stored         ? e->format
                                                         : "dense",
                          .dtype = it->dtype ? it->dtype : e->dtype,
                          .nbytes = lb_saver_size(j->plan, i),
                          .error = o->m,
                          .fell_back = it->fell_back,
                          .resumed = o->resumed,
                          .moved = o->moved,
                          .refused = refused};
    it->told = true;
    if (j->o->done) j->o->done(j->o->done_user, &w);
}

static void note_refused(lb_job *j, const lb_entry *e, const lb_move_result *r)
{
    if (j->first_refused) return;
    j->first_refused = e->name;
    j->first_result = *r;
}

/* Writes item i as the next array of s; s NULL: in a dry run. With several
 * ranks, results are reported after all have finished theirs. */
static bool do_item(lb_job *j, lb_saver *s, int64_t i, outcome *out)
{
    lb_job_item *it = &j->item[i];
    lb_move_result r = {.moved = it->stored && j->convert->target
                                     ? LB_MOVED_EXACT
                                     : LB_MOVED_NONE};
    lb_transfer t = lb_job_transfer(j, it);
    t.progress = lb_job_advance;
    t.user = j;
    j->at = &it->group->entry;
    *out = (outcome){.moved = r.moved};
    if (it->moves || it->refused) {
        if (!lb_job_move(j, it, &t, s, &r)) return false;
        *out = (outcome){.m = r.error, .moved = r.moved};
        if (r.moved == LB_MOVED_REFUSED) note_refused(j, &it->group->entry, &r);
    } else if (it->raw) {
        if (!lb_job_copy_raw(j, it, s)) return false;
    } else if (it->stored) {
        if (!lb_transfer_stored(j->cx, &t, s)) return false;
    } else if (!lb_transfer_run(j->cx, &t, s, &out->m))
        return false;
    j->finished++;
    if (!j->mesh) tell(j, i, out, r.why[0] ? r.why : NULL);
    return true;
}

/* After an array was refused: looks at all others, and fails. With several
 * ranks, only at this one's first. */
static bool deny(lb_job *j)
{
    outcome out;
    bool ok = true;
    for (int64_t i = 0; ok && !j->mesh && i < j->n; i++)
        if (!j->item[i].told) ok = do_item(j, NULL, i, &out);
    if (ok) lb_job_deny_moves(j, j->first_refused, &j->first_result);
    return false;
}

/* An array written by an earlier run. m: its errors from the journal, if
 * recorded; otherwise it is measured again if needed. */
static bool tell_resumed(lb_job *j, int64_t i, lb_difference m, lb_moved moved,
                         outcome *out)
{
    const lb_job_item *it = &j->item[i];
    const lb_transfer t = lb_job_transfer(j, it);
    if (t.measure && !it->stored && !it->moves && !m.n &&
        !lb_transfer_run(j->cx, &t, NULL, &m))
        return false;
    *out = (outcome){.m = m, .moved = moved, .resumed = true};
    j->finished++;
    if (!j->mesh) tell(j, i, out, NULL);
    j->at = &it->group->entry;
    return lb_job_advance(j, j->at->nbytes);
}

/* The arrays of one output file, their ranks, and their results. */
typedef struct shares {
    int64_t *which, n;
    int *owner;
    outcome *out;
} shares;

static bool shares_of(lb_job *j, int shard, shares *s)
{
    const uint64_t n = (uint64_t)j->n;
    *s = (shares){0};
    s->which = lb_arena_alloc(j->cx, &j->arena, n, sizeof *s->which);
    s->out = lb_arena_alloc(j->cx, &j->arena, n, sizeof *s->out);
    if (!s->which || !s->out) return false;
    for (int64_t i = 0; i < j->n; i++)
        if (shard < 0 || j->item[i].shard == shard) s->which[s->n++] = i;
    s->owner = share_out(j, s->which, s->n);
    return s->owner != NULL;
}

static bool is_mine(const lb_job *j, const shares *s, int64_t k)
{
    return s->owner[k] == (j->mesh ? lb_mesh_rank(j->mesh) : 0);
}

/* With several ranks, every rank reports the results of all arrays. */
static bool tell_shares(lb_job *j, const shares *s, bool ok)
{
    if (!j->mesh) return ok;
    const size_t size = (size_t)s->n * sizeof *s->out;
    outcome *all = lb_arena_alloc(
        j->cx, &j->arena, (uint64_t)s->n * (uint64_t)lb_mesh_size(j->mesh),
        sizeof *all);
    if (!lb_job_meet(j, ok && all) || !tell_all(j, size, s->out, all))
        return false;
    for (int64_t k = 0; k < s->n; k++) {
        const outcome *o = &all[s->owner[k] * s->n + k];
        tell(j, s->which[k], o, NULL);
    }
    return true;
}

/* The lb_saver_more of one output file. */
typedef struct file_plan {
    lb_planned *list;
    float *offset;
    some_items some;
} file_plan;

static bool plan_file(lb_job *j, const shares *sh, file_plan *f)
{
    const uint64_t n = (uint64_t)j->n;
    *f = (file_plan){.some = {.j = j, .which = sh->which}};
    f->list = lb_arena_alloc(j->cx, &j->arena, n, sizeof *f->list);
    f->offset = lb_arena_alloc(j->cx, &j->arena, n, sizeof *f->offset);
    if (!f->list || !f->offset) return false;
    for (int64_t k = 0; k < sh->n; k++) {
        f->list[k] = j->list[sh->which[k]];
        f->offset[k] = j->offset[sh->which[k]];
    }
    return true;
}

void lb_job_note_discarded(lb_job *j, const char *path, uint64_t nbytes,
                           bool same)
{
    if (j->o->discarded && nbytes && lb_job_leads(j))
        j->o->discarded(j->o->discarded_user, path, nbytes, same);
}

bool lb_job_write(lb_job *j, const char *path, int shard)
{
    const lb_save_options save = save_options(j);
    const int copied = lb_job_copied_file(j, shard);
    file_plan f;
    shares sh;
    const bool made = shares_of(j, shard, &sh) && plan_file(j, &sh, &f);
    if (!lb_job_meet(j, made) || !made) return false;
    const lb_saver_more more = {.offset = f.offset,
                                .load = load_stored,
                                .user = &f.some,
                                .journal = true,
                                .resume = j->o->resume,
                                .verify = j->o->verify,
                                .job = j->number,
                                .mesh = j->mesh,
                                .owner = j->mesh ? sh.owner : NULL,
                                .copied = copied < 0 ? NULL : j->f->r,
                                .copied_file = copied};
    lb_saver *s = lb_saver_begin(j->cx, path, f.list, sh.n, &save, &more);
    bool ok = s != NULL;
    if (ok && s->journal.discarded)
        lb_job_note_discarded(j, s->w->out->partial, s->journal.discarded,
                              s->journal.same);
    for (int64_t k = 0; ok && k < sh.n; k++) {
        const uint8_t *record = lb_saver_record(s, k);
        lb_difference m = {0};
        if (!record || !is_mine(j, &sh, k)) continue;
        memcpy(&m, record + 8, sizeof m);
        ok = tell_resumed(j, sh.which[k], m, (lb_moved)record[1], &sh.out[k]);
    }
    for (int64_t k; ok && !j->refused && (k = lb_saver_next(s)) >= 0;)
        ok = do_item(j, s, sh.which[k], &sh.out[k]);
    if (ok && j->refused) ok = deny(j);
    ok = tell_shares(j, &sh, ok);
    return lb_job_meet(j, lb_saver_close(j->cx, s, ok));
}

bool lb_job_skip(lb_job *j, int shard)
{
    shares sh;
    bool ok = shares_of(j, shard, &sh);
    for (int64_t k = 0; ok && k < sh.n; k++)
        if (is_mine(j, &sh, k))
            ok = tell_resumed(j, sh.which[k], (lb_difference){0}, LB_MOVED_NONE,
                              &sh.out[k]);
    return tell_shares(j, &sh, ok);
}

/* Composes the header of an output file like lb_job_write, and adds the file's
 * size, including the journal, to *size. */
static bool rehearse_file(lb_job *j, const char *path, int shard,
                          uint64_t *size)
{
    const lb_save_options save = save_options(j);
    const int copied = lb_job_copied_file(j, shard);
    file_plan f;
    shares sh;
    if (!shares_of(j, shard, &sh) || !plan_file(j, &sh, &f)) return false;
    const lb_saver_more more = {.offset = f.offset,
                                .load = load_stored,
                                .user = &f.some,
                                .plan_only = true,
                                .compose = true,
                                .shared = j->mesh != NULL,
                                .copied = copied < 0 ? NULL : j->f->r,
                                .copied_file = copied};
    lb_saver *s = lb_saver_begin(j->cx, path, f.list, sh.n, &save, &more);
    if (s) *size += s->w->total;
    if (s && s->w->sized) *size += lb_outfile_journal_size(sh.n);
    lb_saver_close(j->cx, s, false);
    return s != NULL;
}

/* Everything that can fail before the first array is written, so that a dry
 * run fails where the real one does. */
static bool rehearse(lb_job *j, const char *from, const char *to)
{
    uint64_t size = 0;
    bool ok = true;
    for (int k = 0; ok && k < (j->shards ? j->shards : 1); k++)
        ok = rehearse_file(j, to ? to : "", j->o->directory ? k : -1, &size);
    if (!ok || !to || !lb_job_leads(j)) return ok;
    return j->o->directory ? lb_job_check_directory(j, from, to, size, true)
                           : lb_outfile_check_room(j->cx, to, size, 0);
}

/* Reads and quantizes everything: values can be refused as well. */
static bool dry_run(lb_job *j)
{
    shares sh;
    bool ok = shares_of(j, -1, &sh);
    for (int64_t k = 0; ok && k < sh.n; k++)
        if (is_mine(j, &sh, k)) ok = do_item(j, NULL, k, &sh.out[k]);
    if (ok && j->refused) ok = deny(j);
    return tell_shares(j, &sh, ok);
}

static bool run(lb_job *j, const char *from, const char *to)
{
    if (!lb_job_meet(j, rehearse(j, from, to))) return false;
    if (j->refused && !j->mesh) return deny(j);
    if (j->o->dry_run) return dry_run(j);
    return j->o->directory ? lb_job_write_directory(j, from, to)
                           : lb_job_write(j, to, -1);
}

/* All ranks of a communicator. */
static bool open_mesh(lb_job *j)
{
    char axes[32];
    lb_comm *c = j->o->comm;
    if (!c || c->size == 1) return true;
    snprintf(axes, sizeof axes, "rank=%d", c->size);
    j->mesh = lb_mesh_open(j->cx, c, axes, NULL);
    return j->mesh != NULL;
}

/* ---- all of it ----------------------------------------------------------- */

bool lb_job_options(lb_ctx *cx, const lb_quantize_options *options,
                    lb_quantize_options *o)
{
    *o = (lb_quantize_options){0};
    if (!options) return true;
    const size_t size = options->struct_size ? options->struct_size : sizeof *o;
    if (size < sizeof o->struct_size)
        return lb_fail(cx, LB_E_ARG,
                       "quantize_file: options.struct_size is %zu, not sizeof "
                       "or 0",
                       size);
    memcpy(o, options, size < sizeof *o ? size : sizeof *o);
    if (o->max_memory && o->max_memory < memory_least)
        return lb_fail(cx, LB_E_ARG,
                       "max_memory is %llu; at least %llu bytes are needed",
                       (unsigned long long)o->max_memory,
                       (unsigned long long)memory_least);
    return true;
}

/* Packed arrays that are copied as stored are described from the file's map. */
bool lb_job_run(lb_ctx *cx, const char *from, const char *to,
                const lb_quantize_options *o, const lb_convert_options *c)
{
    const lb_file_options read = {.no_map = !c || !c->keep,
                                  .linear_class = o->linear_class};
    lb_job j = {.cx = cx, .own = *o, .convert = c, .arena = {.heap = cx->heap}};
    j.o = &j.own;
    lb_enter(cx);
    bool ok = open_mesh(&j);
    if (ok) {
        j.f = lb_file_open(cx, from, &read);
        const bool known = j.f && lb_job_check_method(&j, from) &&
                           (!c || lb_job_check_names(&j));
        if (known && j.note[0] && o->note && lb_job_leads(&j))
            o->note(o->note_user, j.note);
        const bool planned = known && plan(&j, from, to);
        ok = lb_job_meet(&j, planned) && planned && run(&j, from, to);
    }
    lb_saver_close(cx, j.plan, false);
    lb_leave(cx);
    lb_file_close(j.f);
    lb_arena_free(&j.arena);
    if (j.mesh) ok = lb_mesh_close(j.mesh) && ok;
    return ok;
}
