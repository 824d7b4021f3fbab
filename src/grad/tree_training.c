/* tree_training.c - gradients and optimizers of trees: flattens their float
 * arrays for the functions of lists.
 */
#include "core/core.h"
#include "grad/optimizer.h"

/* A list of arrays from the heap. */
typedef struct tree_list {
    lb_array **array;
    int n;
    size_t got;
} tree_list;

static bool open_list(lb_ctx *cx, tree_list *l, int room)
{
    *l = (tree_list){0};
    size_t size;
    if (!lb_mul_size((size_t)room, sizeof *l->array, &size) ||
        !(l->array = lb_heap_alloc(cx->heap, size, &l->got)))
        return lb_fail(cx, LB_E_NOMEM, "out of memory (a tree of %d arrays)",
                       room);
    return true;
}

static void close_list(lb_ctx *cx, tree_list *l)
{
    if (l->array) lb_heap_free(cx->heap, l->array, l->got);
}

static bool trains(const lb_tree *t, int i)
{
    return lb_dtype_is_float(lb_tree_at(t, i)->dtype);
}

/* Appends the float arrays. */
static void take_floats(const lb_tree *t, tree_list *l)
{
    for (int i = 0; i < lb_tree_count(t); i++)
        if (trains(t, i)) l->array[l->n++] = lb_tree_at(t, i);
}

static int floats_of(const lb_tree *t)
{
    int n = 0;
    for (int i = 0; i < lb_tree_count(t); i++)
        n += trains(t, i);
    return n;
}

/* Sets arrays of `to`, named as the float arrays of `like`. */
static bool put_floats(const lb_tree *like, lb_array *const *list, lb_tree *to)
{
    int k = 0;
    for (int i = 0; i < lb_tree_count(like); i++)
        if (trains(like, i) &&
            !lb_tree_set(to, lb_tree_name(like, i), list[k++]))
            return false;
    return true;
}

/* ---- gradients ----------------------------------------------------------- */

typedef struct tree_call {
    lb_tree *params;
    int n_params; /* of them floats: the first arguments */
    lb_tree_fn fn;
    void *user;
} tree_call;

/* The parameters' floats are those of args, which the tape watches. */
static lb_array *call_tree(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    const tree_call *c = user;
    lb_tree *p = lb_tree_copy(c->params);
    lb_array *y = NULL;
    if (p && put_floats(c->params, args, p))
        y = c->fn(cx, p, args + c->n_params, n - c->n_params, c->user);
    lb_tree_close(p);
    return y;
}

static bool check_call(lb_ctx *cx, const lb_tree *params, lb_tree_fn fn,
                       lb_array *const *args, int n, const lb_tree *grads)
{
    const char *who = "tree_value_and_grad";
    if (!fn || !grads || (n > 0 && !args))
        return lb_fail(cx, LB_E_NULL, "%s: the %s NULL", who,
                       !fn      ? "function is"
                       : !grads ? "tree of gradients is"
                                : "arguments are");
    if (grads == params || lb_tree_context(grads) != cx)
        return lb_fail(cx, LB_E_ARG, "%s: the tree of gradients %s", who,
                       grads == params ? "is that of the parameters"
                                       : "has another context");
    if (n < 0 || n > INT32_MAX - lb_tree_count(params))
        return lb_fail(cx, LB_E_ARG, "%s: %d arguments", who, n);
    return true;
}

lb_array *lb_tree_value_and_grad(lb_tree *params, lb_tree_fn fn,
                                 lb_array *const *args, int n, void *user,
                                 lb_tree *grads)
{
    lb_ctx *cx = lb_tree_context(params);
    tree_list in, out = {0};
    lb_array *y = NULL;
    if (!cx || !check_call(cx, params, fn, args, n, grads)) return NULL;
    lb_tree_clear(grads);
    tree_call c = {params, floats_of(params), fn, user};
    lb_enter(cx);
    if (open_list(cx, &in, c.n_params + n) && open_list(cx, &out, c.n_params)) {
        take_floats(params, &in);
        for (int i = 0; i < n; i++)
            in.array[in.n++] = args[i];
        y = lb_value_and_grad(cx, call_tree, in.array, in.n, &c, out.array,
                              c.n_params);
        if (y && !put_floats(params, out.array, grads)) {
            lb_tree_clear(grads);
            y = NULL;
        }
    }
    close_list(cx, &in);
    close_list(cx, &out);
    return lb_leave_with(cx, y);
}

/* ---- optimizers ---------------------------------------------------------- */

lb_optimizer *lb_tree_optimizer_open(lb_tree *params,
                                     const lb_optimizer_config *config)
{
    lb_ctx *cx = lb_tree_context(params);
    lb_optimizer *o = NULL;
    tree_list p;
    if (!cx) return NULL;
    if (open_list(cx, &p, lb_tree_count(params))) {
        take_floats(params, &p);
        o = lb_optimizer_open(cx, config, p.array, p.n);
    }
    close_list(cx, &p);
    return o;
}

/* The gradients by the names of the float parameters. */
static bool take_grads(lb_tree *params, lb_tree *grads, tree_list *l)
{
    for (int i = 0; i < lb_tree_count(params); i++) {
        if (!trains(params, i)) continue;
        lb_array *g = lb_tree_find(grads, lb_tree_name(params, i));
        if (!g)
            return lb_fail(lb_tree_context(params), LB_E_ARG,
                           "optimizer: no gradient of '%.100s'",
                           lb_tree_name(params, i));
        l->array[l->n++] = g;
    }
    return true;
}

bool lb_tree_optimizer_step(lb_optimizer *o, lb_tree *params, lb_tree *grads)
{
    lb_ctx *cx = lb_tree_context(params);
    tree_list p, g = {0};
    if (!o || !cx || !grads) return false;
    const int n = floats_of(params);
    if (n != lb_optimizer_size(o))
        return lb_fail(cx, LB_E_ARG,
                       "optimizer: %d float arrays in the tree, %d when it was "
                       "opened",
                       n, lb_optimizer_size(o));
    lb_enter(cx);
    bool ok = open_list(cx, &p, n) && open_list(cx, &g, n);
    if (ok) {
        take_floats(params, &p);
        /* Same names: lb_tree_set then allocates nothing and cannot fail. */
        ok = take_grads(params, grads, &g) &&
             lb_optimizer_step(o, p.array, g.array) &&
             put_floats(params, p.array, params);
    }
    close_list(cx, &p);
    close_list(cx, &g);
    lb_leave(cx);
    return ok;
}

enum { NAME = 64 }; /* of an array of the state: "optimizer.12.momentum" */

bool lb_tree_optimizer_save(lb_optimizer *o, lb_tree *to)
{
    lb_ctx *cx = lb_tree_context(to);
    bool ok = o && cx;
    lb_enter(cx);
    for (int i = 0; ok && i < lb_optimizer_count(o); i++) {
        char name[NAME];
        lb_array *a = lb_optimizer_state(o, i, name, sizeof name);
        ok = a && lb_tree_set(to, name, a);
    }
    lb_leave(cx);
    return ok;
}

bool lb_tree_optimizer_restore(lb_optimizer *o, lb_tree *from)
{
    lb_ctx *cx = lb_tree_context(from);
    tree_list l;
    if (!o || !cx) return false;
    lb_enter(cx);
    bool ok = open_list(cx, &l, lb_optimizer_count(o));
    for (int i = 0; ok && i < lb_optimizer_count(o); i++) {
        char name[NAME];
        ok = lb_optimizer_state(o, i, name, sizeof name) &&
             (l.array[l.n++] = lb_tree_get(from, name));
    }
    ok = ok && lb_optimizer_restore(o, l.array, l.n);
    close_list(cx, &l);
    lb_leave(cx);
    return ok;
}
