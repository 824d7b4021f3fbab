/* save_plan.c - plans how an array is stored in a file: tensors, their types,
 * and the descriptor in the metadata.
 */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/arrays/saver.h"

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

/* Lists grow by doubling; old copies stay in the arena until the end. */
static void *grown(lb_ctx *cx, lb_arena *arena, void *list, int64_t n,
                   size_t size)
{
    if (n & (n - 1)) return list; /* the capacity is the next power of two */
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
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "'%s': %s files have no type for %s%s",
                       LB_NAME(item->name), s->kind->name, lb_dtype_name(dtype),
                       dtype == LB_BF16 ? "; convert it to f32 or f16" : "");
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

bool lb_saver_plan_raw(lb_ctx *cx, lb_saver *s, const lb_tensor *t,
                       lb_saved *item)
{
    const size_t rank = (size_t)t->rank;
    int64_t *dim = lb_arena_alloc(cx, &s->arena, rank, sizeof *dim);
    item->name = lb_arena_text(cx, &s->arena, t->name, strlen(t->name));
    s->tensor =
        grown(cx, &s->arena, s->tensor, s->n_tensors, sizeof *s->tensor);
    if (!item->name || !dim || !s->tensor) return false;
    if (t->size > INT64_MAX)
        return lb_fail(cx, LB_E_SIZE, "'%s' has %llu bytes", LB_NAME(t->name),
                       (unsigned long long)t->size);
    if (rank) memcpy(dim, t->dim, rank * sizeof *dim);
    item->first = s->n_tensors;
    item->dtype = LB_U8;
    item->shape = LB_SHAPE((int64_t)t->size);
    item->n_tensors = 1;
    s->tensor[s->n_tensors++] = (lb_tensor){
        .name = item->name, .type = t->type, .rank = t->rank, .dim = dim};
    return true;
}

bool lb_saver_value(lb_ctx *cx, lb_saver *s, const lb_meta *m)
{
    s->meta = grown(cx, &s->arena, s->meta, s->n_meta, sizeof *s->meta);
    if (!s->meta) return false;
    s->meta[s->n_meta++] = *m;
    return true;
}

bool lb_saver_describe(lb_ctx *cx, lb_saver *s, const char *name,
                       const lb_described *d)
{
    lb_bytes text = {.heap = cx->heap};
    lb_description_put(&text, d);
    const size_t size = sizeof LB_DESCRIPTION + strlen(name);
    char *key = lb_arena_alloc(cx, &s->arena, size, 1);
    const char *copy = NULL;
    if (!text.failed) copy = lb_arena_text(cx, &s->arena, text.at, text.n);
    bool ok = key && copy;
    if (ok) {
        snprintf(key, size, "%s%s", LB_DESCRIPTION, name);
        const lb_meta m = {.key = key,
                           .type = LB_META_STRING,
                           .n = 1,
                           .bytes = (const uint8_t *)copy,
                           .size = text.n};
        ok = lb_saver_value(cx, s, &m);
    }
    lb_bytes_free(&text);
    return ok || lb_fail(cx, LB_E_NOMEM, "out of memory");
}

/* The first layout of that name that can store it. Block types of the file
 * format (GGUF) need no layout name. */
static lb_verdict plan_group(lb_ctx *cx, lb_saver *s, lb_saved *item,
                             const char *layout)
{
    for (int k = 0; lb_file_layouts[k]; k++) {
        const lb_file_layout *l = lb_file_layouts[k];
        const bool block = strcmp(l->name, "ggml") == 0;
        if (!l->plan ||
            !(block || (s->kind->groups && lb_layout_is(layout, l->name))))
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

lb_verdict lb_saver_plan(lb_ctx *cx, lb_saver *s, const lb_planned *p,
                         const char *layout, lb_saved *item)
{
    const lb_array *a = p->array;
    const bool spread = lb_is_sharded(a);
    lb_array *here = spread ? lb_local(cx, p->array) : p->array;
    if (spread && !here) return LB_FAILED;
    const bool quantized =
        a ? !here->store->data : p->config && !p->config->simulate;
    if (spread && !s->mesh)
        return verdict(
            lb_fail(cx, LB_E_ARG,
                    "save: '%s' is sharded: use lb_save_sharded, on all ranks",
                    LB_NAME(p->name ? p->name : "")));
    if (!p->name || (a && (p->dtype || p->config)))
        return verdict(lb_fail(
            cx, p->name ? LB_E_ARG : LB_E_NULL, "save: %s",
            p->name ? "both an array and a description (dtype or config) of it"
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
    const lb_described *d = spread
                                ? lb_describe_spread(cx, &s->arena, p->name, a)
                            : a ? lb_describe_array(cx, &s->arena, p->name, a)
                                : lb_describe_config(cx, &s->arena, p);
    if (!d) return LB_FAILED;
    item->described = d;
    item->array = here;
    item->spread = spread;
    item->format = lb_find_format(cx, d->format);
    item->dtype = d->dtype;
    if (!item->format)
        return verdict(lb_fail(cx, LB_E_ARG,
                               "'%s': unknown format '%s' in this context",
                               LB_NAME(p->name), d->format));
    const lb_verdict v = plan_group(cx, s, item, layout);
    item->array = NULL;
    item->offset = NULL;
    return v;
}

bool lb_saver_kind(lb_ctx *cx, lb_saver *s, const char *kind)
{
    if (!kind) kind = "safetensors";
    s->kind = lb_container_named(kind);
    return s->kind ||
           lb_fail(cx, LB_E_ARG, "save: unknown file type '%s'", LB_NAME(kind));
}

const lb_file_layout *lb_file_layout_for(const char *name, const char *format)
{
    for (int k = 0; lb_file_layouts[k]; k++) {
        const lb_file_layout *l = lb_file_layouts[k];
        if (l->format && lb_layout_is(name, l->name) &&
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
    if (lb_saver_kind(cx, &s, kind))
        v = lb_saver_plan(cx, &s, p, layout ? layout : "native", &item);
    lb_leave(cx);
    lb_arena_free(&s.arena);
    return v;
}
