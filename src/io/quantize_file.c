/* quantize_file.c - a file quantized into another, an array at a time.
 *
 * What is to be is planned first, from shapes alone, and the header written;
 * then each array is read, quantized, written and let go. So memory is that of
 * one array, whatever the file's size. The source is read, not mapped: pages of
 * a map would count as ours until the system takes them back.
 */
#include <string.h>

#include "core/core.h"
#include "io/save.h"

typedef struct item {
    const lb_entry *entry;
    const char *kept; /* NULL: quantized */
    lb_quant_config config;
    const lb_file_layout *layout; /* if it has wishes of its own, or NULL */
} item;

typedef struct job {
    lb_ctx *cx;
    const lb_quantize_options *o;
    lb_arena arena;
    lb_file *f;
    item *item;
    lb_planned *list;
    float *offset; /* of those that the layout must know it of */
    lb_meta *meta;
    int64_t n, n_meta;
} job;

/* ---- planning ------------------------------------------------------------ */

static lb_planned planned(const item *it)
{
    const lb_entry *e = it->entry;
    return (lb_planned){.name = e->name,
                        .dtype = e->dtype,
                        .shape = lb_shape_make(e->rank, e->dim),
                        .config = it->kept ? NULL : &it->config};
}

/* Numbers and what becomes of them, both in memory. */
static uint64_t need(const lb_entry *e)
{
    return e->nbytes > UINT64_MAX / 2 ? UINT64_MAX : 2 * e->nbytes;
}

/* What another program quantized has a layout of its own: it is not taken
 * apart here. */
static bool plan_item(job *j, item *it)
{
    const lb_quantize_options *o = j->o;
    const lb_entry *e = it->entry;
    const lb_choose choose = o->choose ? o->choose : lb_choose_weights;
    const uint64_t most = o->max_memory ? o->max_memory : (uint64_t)512 << 20;
    it->config = o->config;
    it->kept = choose(o->choose_user, e, &it->config);
    if (!e->format || strcmp(e->format, "dense") != 0 || e->rank > LB_MAX_RANK)
        return lb_fail(j->cx, LB_E_UNSUPPORTED,
                       "%s: '%s' is %s of type %s, and only dense arrays are "
                       "quantized or copied",
                       LB_PATH(j->f->r->file[0]->path), LB_NAME(e->name),
                       e->format ? e->format : "unknown", LB_NAME(e->type));
    if (need(e) > most)
        return lb_fail(j->cx, LB_E_SIZE,
                       "'%s' needs %llu bytes to be quantized, more than "
                       "max_memory, %llu",
                       LB_NAME(e->name), (unsigned long long)need(e),
                       (unsigned long long)most);
    if (it->kept) return true;
    const lb_planned p = planned(it);
    const lb_verdict v = lb_saver_suits(j->cx, &p, o->kind, o->layout);
    if (v == LB_DECLINED)
        it->kept = "the layout has no place for it";
    else if (o->layout && it->config.format)
        it->layout = lb_file_layout_for(o->layout, it->config.format);
    return v != LB_FAILED;
}

/* Read and quantized; belongs to the open scope. */
static lb_array *make(const job *j, const item *it)
{
    lb_array *a = lb_file_load(j->cx, j->f, it->entry->name);
    if (it->kept) return a;
    a = lb_quantize(j->cx, a, &it->config);
    return a && it->layout && it->layout->adapt ? it->layout->adapt(j->cx, a)
                                                : a;
}

/* bitsandbytes' header depends on the mean of the scales: where it is asked for
 * arrays are quantized twice. */
static bool find_offset(job *j, int64_t i)
{
    const item *it = &j->item[i];
    if (it->kept || !it->config.double_quant || !it->layout ||
        !it->layout->wants_offset)
        return true;
    lb_enter(j->cx);
    const lb_array *q = make(j, it);
    lb_array *offset = NULL;
    for (int p = 0; q && p < LB_MAX_PARTS; p++)
        if (q->store->fmt->part[p].scale && q->store->part[p].a)
            offset = lb_component(j->cx, q->store->part[p].a, "offset");
    if (offset) j->offset[i] = (float)lb_item(j->cx, offset);
    lb_leave(j->cx);
    return offset != NULL;
}

/* Texts of the source; descriptions of its own layout are of no use. */
static bool take_meta(job *j)
{
    const lb_reader *r = j->f->r;
    j->meta =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)r->n_meta, sizeof *j->meta);
    for (int64_t i = 0; j->meta && i < r->n_meta; i++)
        if (r->meta[i].type == LB_META_STRING &&
            strncmp(r->meta[i].key, LB_DESCRIPTION, strlen(LB_DESCRIPTION)))
            j->meta[j->n_meta++] = r->meta[i];
    return j->meta != NULL;
}

static bool plan(job *j)
{
    const uint64_t n = (uint64_t)lb_file_count(j->f);
    j->n = (int64_t)n;
    j->item = lb_arena_alloc(j->cx, &j->arena, n, sizeof *j->item);
    j->list = lb_arena_alloc(j->cx, &j->arena, n, sizeof *j->list);
    j->offset = lb_arena_alloc(j->cx, &j->arena, n, sizeof *j->offset);
    if (!j->item || !j->list || !j->offset || !take_meta(j)) return false;
    for (int64_t i = 0; i < j->n; i++) {
        j->item[i].entry = lb_file_entry(j->f, i);
        if (!plan_item(j, &j->item[i]) || !find_offset(j, i)) return false;
        j->list[i] = planned(&j->item[i]);
    }
    return true;
}

/* ---- doing --------------------------------------------------------------- */

static bool write_item(job *j, lb_saver *s, int64_t i)
{
    const item *it = &j->item[i];
    lb_enter(j->cx);
    lb_array *q = make(j, it);
    const bool ok = q && lb_saver_put(j->cx, s, q);
    const lb_written w = {.entry = it->entry,
                          .i = i,
                          .n = j->n,
                          .kept = it->kept,
                          .config = it->kept ? NULL : &it->config,
                          .nbytes = q ? lb_nbytes(q) : 0};
    lb_leave(j->cx);
    if (ok && j->o->done) j->o->done(j->o->done_user, &w);
    return ok;
}

static bool run(job *j, const char *to)
{
    const lb_save_options save = {.kind = j->o->kind,
                                  .layout = j->o->layout,
                                  .meta = j->meta,
                                  .n_meta = j->n_meta,
                                  .input = &j->f,
                                  .n_inputs = 1,
                                  .no_sync = j->o->no_sync};
    lb_saver *s = lb_saver_begin(j->cx, to, j->list, j->offset, j->n, &save);
    bool ok = s != NULL;
    for (int64_t i; ok && (i = lb_saver_next(s)) >= 0;)
        ok = write_item(j, s, i);
    return lb_saver_close(j->cx, s, ok);
}

bool lb_quantize_file(lb_ctx *cx, const char *from, const char *to,
                      const lb_quantize_options *options)
{
    lb_quantize_options o = {0};
    if (!cx) return false;
    if (options) {
        const size_t size =
            options->struct_size ? options->struct_size : sizeof o;
        if (size < sizeof o.struct_size)
            return lb_fail(cx, LB_E_ARG,
                           "quantize_file: options.struct_size is %zu, not "
                           "sizeof or 0",
                           size);
        memcpy(&o, options, size < sizeof o ? size : sizeof o);
    }
    const lb_file_options read = {.no_map = true};
    job j = {.cx = cx, .o = &o, .arena = {.heap = cx->heap}};
    j.f = lb_file_open(cx, from, &read);
    const bool ok = j.f && plan(&j) && run(&j, to);
    lb_file_close(j.f);
    lb_arena_free(&j.arena);
    return ok;
}
