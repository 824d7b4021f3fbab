/* trees.c - trees of parameters from and to files. */
#include "core/core.h"
#include "io/util/arena.h"
#include "lowbit_io.h"

lb_tree *lb_tree_load_file(lb_ctx *cx, lb_file *f)
{
    lb_tree *t = f ? lb_tree_open(cx) : NULL;
    bool ok = t != NULL;
    for (int64_t i = 0; ok && i < lb_file_count(f); i++) {
        const char *name = lb_file_entry(f, i)->name;
        lb_enter(cx);
        lb_array *a = lb_file_load(cx, f, name);
        ok = a && lb_tree_set(t, name, a);
        lb_leave(cx);
    }
    if (ok) return t;
    lb_tree_close(t);
    return NULL;
}

lb_tree *lb_tree_load(lb_ctx *cx, const char *path)
{
    lb_file *f = lb_file_open(cx, path, NULL);
    lb_tree *t = lb_tree_load_file(cx, f);
    lb_file_close(f);
    return t;
}

bool lb_tree_save(lb_tree *t, const char *path, const lb_save_options *options)
{
    lb_ctx *cx = lb_tree_context(t);
    if (!cx) return false;
    const int n = lb_tree_count(t);
    lb_arena arena = {.heap = cx->heap};
    lb_planned *list = lb_arena_alloc(cx, &arena, (uint64_t)n, sizeof *list);
    for (int i = 0; list && i < n; i++)
        list[i] =
            (lb_planned){.name = lb_tree_name(t, i), .array = lb_tree_at(t, i)};
    const bool ok = list && lb_save(cx, path, list, n, options);
    lb_arena_free(&arena);
    return ok;
}
