/* quantize_file.c - a file quantized into another: planning, and the way
 * through its arrays.
 *
 * What is to be is planned first, from shapes alone, and the header written;
 * then each array is read, quantized and written in pieces (transfer.h). So
 * memory does not depend on the file's size. The source is read, not mapped:
 * pages of a map would count as ours until the system takes them back.
 */
#include <string.h>
#include <xxhash.h>

#include "core/core.h"
#include "io/job.h"
#include "io/selection.h"

static const uint64_t memory_default = (uint64_t)512 << 20;
static const uint64_t memory_least = 1000000;

/* ---- planning ------------------------------------------------------------ */

static bool is_quantized(const lb_job_item *it)
{
    return !it->kept && !it->decoded && !it->array;
}

static lb_planned planned(const lb_job_item *it)
{
    const lb_entry *e = &it->group->entry;
    if (it->array) return (lb_planned){.name = e->name, .array = it->array};
    return (lb_planned){.name = e->name,
                        .dtype = it->dtype ? it->dtype : e->dtype,
                        .shape = lb_shape_make(e->rank, e->dim),
                        .config = is_quantized(it) ? &it->config : NULL};
}

lb_transfer lb_job_transfer(lb_job *j, const lb_job_item *it)
{
    const uint64_t most = j->o->max_memory;
    return (lb_transfer){.f = j->f,
                         .group = it->group,
                         .config = is_quantized(it) ? &it->config : NULL,
                         .dtype = it->dtype,
                         .layout = it->layout,
                         .max_memory = most ? most : memory_default,
                         .measure = j->o->measure && !it->kept};
}

/* Sets config.format, which may be NULL, to its name. */
static bool name_format(lb_job *j, lb_job_item *it)
{
    lb_quant q;
    if (!lb_quant_of(j->cx, LB_NAME(it->group->entry.name), &it->config,
                     it->group->entry.rank, &q))
        return false;
    it->config.format = q.format->name;
    return true;
}

/* LB_DECLINED: the layout has no place for it; or, and the error is cleared,
 * the format does not take its shape. */
static lb_verdict try_config(lb_job *j, lb_job_item *it, const char **why)
{
    const lb_quantize_options *o = j->o;
    const lb_planned p = planned(it);
    const bool clear = !lb_error_status(j->cx);
    if (!name_format(j, it)) return LB_FAILED;
    const lb_verdict v = lb_saver_suits(j->cx, &p, o->kind, o->layout);
    it->layout =
        lb_file_layout_for(o->layout ? o->layout : "native", it->config.format);
    *why = "the layout has no place for it";
    if (v == LB_DONE && o->directory && it->layout && it->layout->refuses) {
        *why = it->layout->refuses(&it->group->entry);
        if (*why) return LB_DECLINED;
    }
    if (v != LB_FAILED || !clear || lb_error_status(j->cx) != LB_E_SHAPE)
        return v;
    *why = "its shape does not suit the type";
    if (o->fallback == LB_FALLBACK_ERROR) return LB_FAILED;
    lb_clear(j->cx);
    return LB_DECLINED;
}

static bool deny(lb_job *j, const lb_job_item *it, const char *why)
{
    return lb_fail(j->cx, LB_E_DENIED,
                   "'%s' is to be quantized, and cannot be as it is asked for: "
                   "%s",
                   LB_NAME(it->group->entry.name), why);
}

bool lb_job_tries(lb_job *j, lb_job_item *it)
{
    const char *why = NULL;
    return try_config(j, it, &why) == LB_DONE;
}

bool lb_job_suits(lb_job *j, lb_job_item *it)
{
    const lb_quantize_options *o = j->o;
    const char *why = NULL;
    lb_verdict v = try_config(j, it, &why);
    if (v != LB_DECLINED) return v == LB_DONE;
    if (o->strict) return deny(j, it, why);
    if (o->fallback == LB_FALLBACK_ERROR)
        return lb_fail(j->cx, LB_E_UNSUPPORTED, "'%s', %s: %s",
                       LB_NAME(it->group->entry.name), it->config.format, why);
    it->fell_back = true;
    const char *first = why;
    for (int i = 0; o->fallback == LB_FALLBACK_ADJUST && i < o->n_other; i++) {
        it->config = o->other[i];
        v = try_config(j, it, &why);
        if (v != LB_DECLINED) return v == LB_DONE;
    }
    it->kept = first;
    it->layout = NULL;
    return true;
}

static bool same_axes(const lb_axes *a, const lb_axes *b)
{
    for (int i = 0; i < a->n && a->n == b->n; i++)
        if (a->axis[i] != b->axis[i]) return false;
    return a->n == b->n;
}

/* Member by member: between them a struct has bytes that say nothing. */
static bool same_config(const lb_quant_config *a, const lb_quant_config *b)
{
    const char *f = a->format ? a->format : "", *g = b->format ? b->format : "";
    return strcmp(f, g) == 0 && a->block_size == b->block_size &&
           same_axes(&a->axes, &b->axes) && a->dtype == b->dtype &&
           a->simulate == b->simulate && a->use_kernel == b->use_kernel &&
           a->compat == b->compat && a->decode == b->decode &&
           a->scale == b->scale && a->meaning == b->meaning &&
           a->threshold == b->threshold && a->blocks == b->blocks &&
           a->on_nonfinite == b->on_nonfinite &&
           a->double_quant == b->double_quant && a->center == b->center &&
           a->clip_gradient == b->clip_gradient;
}

/* What another program quantized has a layout of its own: it is not taken
 * apart here. */
static bool plan_item(lb_job *j, lb_job_item *it)
{
    const lb_quantize_options *o = j->o;
    const lb_entry *e = &it->group->entry;
    const lb_choose choose = o->choose ? o->choose : lb_choose_weights;
    it->config = o->config;
    it->kept = o->selection ? lb_selection_choose(o->selection, e, &it->config)
                            : choose(o->choose_user, e, &it->config);
    if (!e->format || e->rank > LB_MAX_RANK ||
        (it->kept && strcmp(e->format, "dense") != 0))
        return lb_fail(j->cx, LB_E_UNSUPPORTED,
                       "%s: '%s' is %s of type %s, and only dense arrays are "
                       "quantized or copied",
                       LB_PATH(j->f->r->file[0]->path), LB_NAME(e->name),
                       e->format ? e->format : "unknown", LB_NAME(e->type));
    it->fixed = !same_config(&it->config, &o->config);
    return it->kept || lb_job_suits(j, it);
}

/* Packed arrays as they are, where there is a place for them; else dense. */
static bool plan_converted(lb_job *j, lb_job_item *it)
{
    const lb_entry *e = &it->group->entry;
    const lb_convert_options *c = j->convert;
    const lb_ctype kind = lb_ctype_of(e->dtype);
    if (!e->format || e->rank > LB_MAX_RANK)
        return lb_fail(j->cx, LB_E_UNSUPPORTED,
                       "%s: '%s' is of type %s, which cannot be loaded here",
                       LB_PATH(j->f->r->file[0]->path), LB_NAME(e->name),
                       LB_NAME(e->type));
    const bool packed = strcmp(e->format, "dense") != 0;
    if (packed && c->keep) {
        it->array = lb_file_load(j->cx, j->f, e->name);
        if (!it->array) return false;
        const lb_planned p = planned(it);
        const lb_verdict v = lb_saver_suits(j->cx, &p, c->kind, c->layout);
        it->config.format = e->format;
        it->layout =
            lb_file_layout_for(c->layout ? c->layout : "native", e->format);
        if (v != LB_DECLINED) return v == LB_DONE;
        if (c->strict)
            return lb_fail(j->cx, LB_E_UNSUPPORTED,
                           "'%s', %s: layout %s of a %s file has no place for "
                           "it",
                           LB_NAME(e->name), e->format,
                           c->layout ? c->layout : "native",
                           c->kind ? c->kind : "safetensors");
        it->array = NULL;
        it->layout = NULL;
        it->fell_back = true;
    }
    if ((kind == LB_C_F32 || kind == LB_C_F64) && c->dtype != e->dtype)
        it->dtype = c->dtype;
    it->decoded = packed || it->dtype;
    if (!it->decoded) it->kept = "dense";
    return true;
}

/* bitsandbytes' header depends on the mean of the scales: where it is asked for
 * arrays are quantized twice. */
static bool find_offset(lb_job *j, int64_t i)
{
    const lb_job_item *it = &j->item[i];
    if (!is_quantized(it) || !it->config.double_quant || !it->layout ||
        !it->layout->wants_offset)
        return true;
    const lb_transfer t = lb_job_transfer(j, it);
    lb_enter(j->cx);
    const lb_array *q = lb_transfer_whole(j->cx, &t);
    lb_array *offset = NULL;
    for (int p = 0; q && p < LB_MAX_PARTS; p++)
        if (q->store->fmt->part[p].scale && q->store->part[p].a)
            offset = lb_component(j->cx, q->store->part[p].a, "offset");
    if (offset) j->offset[i] = (float)lb_item(j->cx, offset);
    lb_leave(j->cx);
    return offset != NULL;
}

/* Values of the source that a file of the new kind can hold: safetensors has
 * texts only, and numpy's files have none. Descriptions of its own layout are
 * of no use. */
static bool take_meta(lb_job *j)
{
    const lb_reader *r = j->f->r;
    const char *kind = j->o->kind ? j->o->kind : "safetensors";
    const bool texts = strcmp(kind, "safetensors") == 0;
    const bool all = strcmp(kind, "gguf") == 0;
    j->meta =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)r->n_meta, sizeof *j->meta);
    for (int64_t i = 0; j->meta && i < r->n_meta; i++)
        if ((all || (texts && r->meta[i].type == LB_META_STRING)) &&
            strncmp(r->meta[i].key, LB_DESCRIPTION, strlen(LB_DESCRIPTION)))
            j->meta[j->n_meta++] = r->meta[i];
    return j->meta != NULL;
}

/* Shards of a source that has an index, whose first file is the index. */
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

/* What a run that is taken up must have had in common with this one. */
static bool find_number(lb_job *j)
{
    static const char version[] = LB_VERSION_STRING;
    const lb_reader *r = j->f->r;
    lb_bytes b = {.heap = j->cx->heap};
    lb_bytes_put(&b, version, sizeof version);
    for (int i = 0; i < r->n_files; i++) {
        lb_bytes_u64(&b, r->file[i]->size);
        lb_bytes_u64(&b, (uint64_t)r->file[i]->changed);
    }
    for (int64_t i = 0; i < j->n; i++) {
        const lb_job_item *it = &j->item[i];
        const char *name = it->group->entry.name;
        lb_bytes_put(&b, name, strlen(name) + 1);
        lb_bytes_u64(&b, it->group->tensor[0]->begin);
        if (is_quantized(it)) put_config(&b, &it->config);
        lb_bytes_u32(&b, (uint32_t)it->dtype);
    }
    if (!b.failed) j->number = XXH3_64bits(b.at, b.n);
    const bool ok = !b.failed || lb_fail(j->cx, LB_E_NOMEM, "out of memory");
    lb_bytes_free(&b);
    return ok;
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

static bool plan(lb_job *j)
{
    const uint64_t n = (uint64_t)lb_file_count(j->f);
    j->n = (int64_t)n;
    j->item = lb_arena_alloc(j->cx, &j->arena, n, sizeof *j->item);
    j->list = lb_arena_alloc(j->cx, &j->arena, n, sizeof *j->list);
    j->offset = lb_arena_alloc(j->cx, &j->arena, n, sizeof *j->offset);
    if (!j->item || !j->list || !j->offset || !take_meta(j)) return false;
    for (int64_t i = 0; i < j->n; i++) {
        lb_job_item *it = &j->item[i];
        it->group = j->f->group[i];
        it->shard = shard_of(j, it->group);
        j->total += it->group->entry.nbytes;
        if (it->shard >= j->shards) j->shards = it->shard + 1;
        if (!(j->convert ? plan_converted(j, it) : plan_item(j, it)))
            return false;
    }
    if (j->o->selection && !lb_selection_check(j->cx, j->o->selection, j->n))
        return false;
    if ((j->o->target_bits > 0 || j->o->target_bytes) && !lb_job_allocate(j))
        return false;
    for (int64_t i = 0; i < j->n; i++) {
        if (!find_offset(j, i)) return false;
        j->list[i] = planned(&j->item[i]);
    }
    const lb_save_options save = save_options(j);
    const lb_saver_more more = {.offset = j->offset, .plan_only = true};
    j->plan = lb_saver_begin(j->cx, "", j->list, j->n, &save, &more);
    return j->plan && find_number(j);
}

/* ---- doing --------------------------------------------------------------- */

static void tell(lb_job *j, int64_t i, const lb_difference *m, bool resumed)
{
    const lb_job_item *it = &j->item[i];
    const lb_entry *e = &it->group->entry;
    const lb_written w = {.entry = e,
                          .i = i,
                          .n = j->n,
                          .kept = it->kept,
                          .config = is_quantized(it) ? &it->config : NULL,
                          .format = is_quantized(it) ? it->config.format
                                    : it->array      ? e->format
                                                     : "dense",
                          .dtype = it->dtype ? it->dtype : e->dtype,
                          .nbytes = lb_saver_size(j->plan, i),
                          .error = m ? *m : (lb_difference){0},
                          .fell_back = it->fell_back,
                          .resumed = resumed};
    if (j->o->done) j->o->done(j->o->done_user, &w);
}

static void advance(void *user, uint64_t nbytes)
{
    lb_job *j = user;
    j->read += nbytes;
    const lb_progress p = {.entry = j->at, .done = j->read, .total = j->total};
    if (j->o->progress) j->o->progress(j->o->progress_user, &p);
}

/* Array i, as the one that s wants next; s NULL: only measured. */
static bool do_item(lb_job *j, lb_saver *s, int64_t i)
{
    const lb_job_item *it = &j->item[i];
    lb_difference m = {0};
    lb_transfer t = lb_job_transfer(j, it);
    t.progress = advance;
    t.user = j;
    j->at = &it->group->entry;
    if (it->array) {
        if (s && (!lb_saver_piece(j->cx, s, it->array) ||
                  !lb_saver_end(j->cx, s, (const uint8_t[LB_RECORD]){1})))
            return false;
        advance(j, j->at->nbytes);
    } else if ((s || t.measure) && !lb_transfer_run(j->cx, &t, s, &m))
        return false;
    tell(j, i, &m, false);
    return true;
}

static void tell_resumed(lb_job *j, const lb_saver *s, int64_t k, int64_t i)
{
    const uint8_t *record = lb_saver_record(s, k);
    lb_difference m;
    if (!record) return;
    memcpy(&m, record + 8, sizeof m);
    tell(j, i, &m, true);
    j->at = &j->item[i].group->entry;
    advance(j, j->at->nbytes);
}

/* Which array of the job is the k-th of a shard; -1 after the last. */
static int64_t of_shard(const lb_job *j, int shard, int64_t k)
{
    for (int64_t i = 0; i < j->n; i++)
        if ((shard < 0 || j->item[i].shard == shard) && k-- == 0) return i;
    return -1;
}

/* A shard has the descriptions of all arrays: those of its own, which the
 * saver adds, are left out here. */
static bool shard_meta(lb_job *j, int shard, lb_save_options *save)
{
    const size_t prefix = strlen(LB_DESCRIPTION);
    const lb_saver *all = j->plan;
    lb_meta *meta =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)all->n_meta, sizeof *meta);
    if (!meta) return false;
    save->meta = meta;
    save->n_meta = 0;
    for (int64_t i = 0; i < all->n_meta; i++) {
        const char *key = all->meta[i].key;
        bool own = false;
        if (strncmp(key, LB_DESCRIPTION, prefix) == 0)
            for (int64_t k = 0; !own && k < j->n; k++)
                own = j->item[k].shard == shard &&
                      strcmp(j->list[k].name, key + prefix) == 0;
        if (!own) meta[save->n_meta++] = all->meta[i];
    }
    return true;
}

bool lb_job_write(lb_job *j, const char *path, int shard)
{
    lb_save_options save = save_options(j);
    int64_t n = 0;
    lb_planned *list =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)j->n, sizeof *list);
    float *offset =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)j->n, sizeof *offset);
    int64_t *which =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)j->n, sizeof *which);
    if (!list || !offset || !which) return false;
    if (shard >= 0 && !shard_meta(j, shard, &save)) return false;
    for (int64_t i = 0; i < j->n; i++) {
        if (shard >= 0 && j->item[i].shard != shard) continue;
        list[n] = j->list[i];
        offset[n] = j->offset[i];
        which[n++] = i;
    }
    const lb_saver_more more = {.offset = offset,
                                .journal = true,
                                .resume = j->o->resume,
                                .job = j->number};
    lb_saver *s = lb_saver_begin(j->cx, path, list, n, &save, &more);
    bool ok = s != NULL;
    for (int64_t k = 0; ok && k < n; k++)
        tell_resumed(j, s, k, which[k]);
    for (int64_t k; ok && (k = lb_saver_next(s)) >= 0;)
        ok = do_item(j, s, which[k]);
    return lb_saver_close(j->cx, s, ok);
}

void lb_job_skip(lb_job *j, int shard)
{
    int64_t i;
    for (int64_t k = 0; (i = of_shard(j, shard, k)) >= 0; k++) {
        tell(j, i, NULL, true);
        j->at = &j->item[i].group->entry;
        advance(j, j->at->nbytes);
    }
}

static bool run(lb_job *j, const char *from, const char *to)
{
    bool ok = true;
    if (!j->o->dry_run)
        return j->o->directory ? lb_job_write_directory(j, from, to)
                               : lb_job_write(j, to, -1);
    for (int64_t i = 0; ok && i < j->n; i++)
        ok = do_item(j, NULL, i);
    return ok;
}

/* ---- for users ----------------------------------------------------------- */

static bool read_options(lb_ctx *cx, const lb_quantize_options *options,
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
                       "quantize_file: max_memory is %llu, and at least %llu "
                       "are needed",
                       (unsigned long long)o->max_memory,
                       (unsigned long long)memory_least);
    return true;
}

/* Packed arrays that go over as they are stay in the file's map until then. */
static bool run_job(lb_ctx *cx, const char *from, const char *to,
                    const lb_quantize_options *o, const lb_convert_options *c)
{
    const lb_file_options read = {.no_map = !c || !c->keep,
                                  .linear_class = o->linear_class};
    lb_job j = {.cx = cx, .o = o, .convert = c, .arena = {.heap = cx->heap}};
    lb_enter(cx);
    j.f = lb_file_open(cx, from, &read);
    const bool ok = j.f && plan(&j) && run(&j, from, to);
    lb_saver_close(cx, j.plan, false);
    lb_leave(cx);
    lb_file_close(j.f);
    lb_arena_free(&j.arena);
    return ok;
}

bool lb_quantize_file(lb_ctx *cx, const char *from, const char *to,
                      const lb_quantize_options *options)
{
    lb_quantize_options o;
    if (!cx) return false;
    if (!from || (!to && !(options && options->dry_run)))
        return lb_fail(cx, LB_E_NULL, "quantize_file: a path is NULL");
    if (!read_options(cx, options, &o)) return false;
    return run_job(cx, from, to, &o, NULL);
}

bool lb_convert_file(lb_ctx *cx, const char *from, const char *to,
                     const lb_convert_options *options)
{
    lb_convert_options c = {0};
    if (!cx) return false;
    if (!from || (!to && !(options && options->dry_run)))
        return lb_fail(cx, LB_E_NULL, "convert_file: a path is NULL");
    const size_t size =
        options && options->struct_size ? options->struct_size : sizeof c;
    if (size < sizeof c.struct_size)
        return lb_fail(cx, LB_E_ARG,
                       "convert_file: options.struct_size is %zu, not sizeof "
                       "or 0",
                       size);
    if (options) memcpy(&c, options, size < sizeof c ? size : sizeof c);
    const lb_ctype kind = lb_ctype_of(c.dtype);
    if (c.dtype && kind != LB_C_F32 && kind != LB_C_F64)
        return lb_fail(cx, LB_E_DTYPE, "convert_file: %s is no float dtype",
                       lb_dtype_name(c.dtype));
    const lb_quantize_options as = {.kind = c.kind,
                                    .layout = c.layout,
                                    .done = c.done,
                                    .done_user = c.done_user,
                                    .max_memory = c.max_memory,
                                    .no_sync = c.no_sync,
                                    .measure = c.measure,
                                    .dry_run = c.dry_run,
                                    .resume = c.resume,
                                    .directory = c.directory,
                                    .progress = c.progress,
                                    .progress_user = c.progress_user,
                                    .linear_class = c.linear_class};
    lb_quantize_options o;
    return read_options(cx, &as, &o) && run_job(cx, from, to, &o, &c);
}
