/* descriptors.c - arrays from and to a descriptor and parts in memory: what a
 * `native` file contains, without the file. */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/arrays/saver.h"
#include "io/layouts/descriptor.h"

/* ---- to ------------------------------------------------------------------ */

int64_t lb_descriptor(lb_ctx *cx, lb_array *a, char *buf, size_t size)
{
    if (!cx || !a) return -1;
    if (a->store->data) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "descriptor: a dense array has no parts to describe");
        return -1;
    }
    lb_arena arena = {.heap = cx->heap};
    lb_bytes text = {.heap = cx->heap};
    lb_described *d = lb_describe_array(cx, &arena, "array", a);
    if (d) {
        memcpy(d->layout, "native", sizeof "native");
        lb_description_put(&text, d);
        lb_bytes_put(&text, "", 1);
    }
    const bool ok =
        d && (!text.failed || lb_fail(cx, LB_E_NOMEM, "out of memory"));
    const int64_t n = ok ? (int64_t)text.n - 1 : -1;
    if (ok && size) snprintf(buf, size, "%s", (const char *)text.at);
    lb_bytes_free(&text);
    lb_arena_free(&arena);
    return n;
}

/* The k-th leaf below s; writes its name behind the n bytes that are there. */
static lb_array *leaf(const lb_store *s, int *k, char *name, size_t size,
                      size_t n)
{
    for (int p = 0; p < LB_MAX_PARTS && s->fmt->part[p].name; p++) {
        lb_array *part = s->part[p].a;
        if (!part) continue;
        const size_t end =
            n + strlen(s->fmt->part[p].name) + (n ? sizeof "." - 1 : 0);
        if (n < size)
            snprintf(name + n, size - n, "%s%s", n ? "." : "",
                     s->fmt->part[p].name);
        if (part->store->data && (*k)-- == 0) return part;
        lb_array *below =
            part->store->data ? NULL : leaf(part->store, k, name, size, end);
        if (below) return below;
    }
    return NULL;
}

lb_array *lb_stored_part(lb_ctx *cx, lb_array *a, int k, char *name,
                         size_t size)
{
    if (!cx || !a || k < 0 || a->store->data) return NULL;
    lb_array *found = leaf(a->store, &k, name, size, 0);
    return found ? lb_view(cx, found) : NULL;
}

/* ---- from ---------------------------------------------------------------- */

typedef struct parts_given {
    const char *const *name;
    lb_array *const *part;
    int n, used;
} parts_given;

static lb_array *part_given(lb_ctx *cx, parts_given *g, const lb_bytes *path)
{
    for (int i = 0; i < g->n; i++)
        if (g->name[i] && strlen(g->name[i]) == path->n &&
            memcmp(g->name[i], path->at, path->n) == 0) {
            g->used++;
            return g->part[i];
        }
    lb_fail(cx, LB_E_ARG, "from_descriptor: part '%.*s' is missing",
            (int)path->n, (const char *)path->at);
    return NULL;
}

static lb_array *assemble(lb_ctx *cx, const lb_described *d, parts_given *g,
                          lb_bytes *path);

static bool find_parts(lb_ctx *cx, const lb_described *d, parts_given *g,
                       lb_bytes *path, const char **name, lb_array **part)
{
    const size_t n = path->n;
    for (int i = 0; i < d->n_parts; i++) {
        const lb_described_part *p = &d->part[i];
        name[i] = p->name;
        path->n = n;
        if (n) lb_bytes_put(path, ".", 1);
        lb_bytes_put(path, p->name, strlen(p->name));
        if (path->failed) return lb_fail(cx, LB_E_NOMEM, "out of memory");
        part[i] = p->array ? assemble(cx, p->array, g, path)
                           : part_given(cx, g, path);
        if (!part[i]) return false;
    }
    return true;
}

static lb_array *assemble(lb_ctx *cx, const lb_described *d, parts_given *g,
                          lb_bytes *path)
{
    const char *name[LB_MAX_PARTS];
    lb_array *part[LB_MAX_PARTS];
    lb_quant_config config;
    const lb_format *fmt = lb_find_format(cx, d->format);
    if (!fmt || !fmt->layout) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "from_descriptor: '%s' is not a packed format that can be "
                "checked",
                LB_NAME(d->format));
        return NULL;
    }
    if (!lb_description_config(fmt, d, &config)) {
        lb_fail(cx, LB_E_CONTENT,
                "from_descriptor: the parts of %s %s, stored as %s, have a "
                "layout that this format does not produce",
                fmt->name, LB_SHOW(&d->shape), LB_SHOW(&d->stored));
        return NULL;
    }
    if (!find_parts(cx, d, g, path, name, part)) return NULL;
    return lb_from_parts(cx, &config, d->shape, NULL, name, part, d->n_parts);
}

lb_array *lb_from_descriptor(lb_ctx *cx, const char *text, size_t size,
                             const char *const *name, lb_array *const *part,
                             int n)
{
    if (!cx || !text) return NULL;
    for (int i = 0; i < n; i++)
        if (!part[i]) return NULL;
    parts_given g = {name, part, n, 0};
    lb_arena arena = {.heap = cx->heap};
    lb_bytes path = {.heap = cx->heap};
    const lb_described *d = lb_description_parse(cx, &arena, "from_descriptor",
                                                 "descriptor", text, size);
    lb_array *a = d ? assemble(cx, d, &g, &path) : NULL;
    if (a && g.used != n) {
        lb_fail(cx, LB_E_ARG,
                "from_descriptor: %d parts are given, but the descriptor has "
                "%d",
                n, g.used);
        a = NULL;
    }
    lb_bytes_free(&path);
    lb_arena_free(&arena);
    return a;
}
