/* shard_call.c - executes a call with sharded arrays: reshards operands as
 * planned, computes this rank's share, combines partial results.
 */
#include <stdio.h>
#include <string.h>

#include "shard/shard_move.h"
#include "shard/shard_plan.h"

/* ---- operands ------------------------------------------------------------ */

typedef struct {
    lb_array **in;
    int64_t (*lo)[LB_MAX_RANK];
    void *block;
    size_t got;
} slices;

static lb_array *slice_of(const lb_shard_plan *p, int i, int64_t *lo)
{
    lb_array *a = p->call->in[i];
    int64_t count[LB_MAX_RANK];
    lb_spec_slice(&p->mesh->grid, &p->want[i], &a->shape, lb_mesh_rank(p->mesh),
                  lo, count);
    return lb_is_sharded(a)
               ? lb_recut(p->mesh, p->call->prim->name, a, &p->want[i])
               : lb_cut_here(p->mesh, a, &p->want[i], false);
}

static bool slices_open(const lb_shard_plan *p, slices *s)
{
    const size_t n = (size_t)p->call->n_in;
    const size_t pointers = n * sizeof *s->in;
    s->block =
        lb_heap_alloc(p->mesh->heap, pointers + n * sizeof *s->lo, &s->got);
    if (!s->block) return lb_fail(p->mesh->cx, LB_E_NOMEM, "out of memory");
    s->in = s->block;
    s->lo = (int64_t(*)[LB_MAX_RANK])(void *)((char *)s->block + pointers);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++)
        ok = (s->in[i] = slice_of(p, (int)i, s->lo[i])) != NULL;
    if (!ok) lb_heap_free(p->mesh->heap, s->block, s->got);
    return ok;
}

/* ---- this rank's share --------------------------------------------------- */

typedef struct {
    lb_mesh *mesh;
    const char *at;
    unsigned mask;
} link;

static bool reduce_spans(const lb_whole *w, bool max, lb_dtype dtype,
                         int64_t count, void *data)
{
    const link *l = w->user;
    return lb_mesh_reduce(l->mesh, l->at, l->mask,
                          max ? LB_COMM_MAX : LB_COMM_SUM, dtype, count, data);
}

static lb_whole whole_of(const lb_shard_plan *p, const int64_t *lo, link *l)
{
    const lb_array *a = p->call->in[0];
    *l = (link){p->mesh, p->call->prim->name, p->spans};
    lb_whole w = {.shape = a->shape, .user = l};
    memcpy(w.lo, lo, (size_t)a->shape.rank * sizeof *lo);
    if (lb_grid_ranks(&p->mesh->grid, p->spans) > 1) w.reduce = reduce_spans;
    return w;
}

/* Rules are user code: check the result. */
static bool is_promised(const lb_shard_plan *p, const lb_share *piece,
                        const lb_array *a)
{
    const lb_call *c = p->call;
    const bool wide = piece->partial && a->dtype == LB_F32 &&
                      (c->dtype == LB_F16 || c->dtype == LB_BF16);
    if ((a->dtype == c->dtype || wide) &&
        lb_shape_equal(&a->shape, &piece->shape))
        return true;
    return lb_fail(p->mesh->cx, LB_E_ARG,
                   "%s: the result of a rank's share is %s%s, not %s%s",
                   c->prim->name, lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                   lb_dtype_name(c->dtype), LB_SHOW(&piece->shape));
}

static lb_array *share(const lb_shard_plan *p, const slices *s)
{
    const lb_call *c = p->call;
    lb_ctx *cx = p->mesh->cx;
    link l;
    int64_t count[LB_MAX_RANK];
    const lb_whole whole = whole_of(p, s->lo[0], &l);
    lb_share piece = {.whole = c,
                      .in = s->in,
                      .lo = s->lo,
                      .slice_of = &whole,
                      .partial = lb_grid_ranks(&p->mesh->grid, p->partial) > 1};
    lb_spec_slice(&p->mesh->grid, &p->out, &c->shape, lb_mesh_rank(p->mesh),
                  piece.at, count);
    piece.shape = lb_shape_make(c->shape.rank, count);
    lb_array *out;
    if (p->cuts.run)
        out = p->cuts.run(cx, &piece);
    else if (c->reuse && s->in[0] == lb_slice_here(c->in[0]))
        out = lb_bind_given(cx, 1, c->prim, c->n_in, s->in, c->params);
    else
        out = lb_bind(cx, c->prim, c->n_in, s->in, c->params);
    return out && is_promised(p, &piece, out) ? out : NULL;
}

/* If the form of the shares may differ between ranks, converts them to one
 * form. */
static lb_array *even_out(const lb_shard_plan *p, const slices *s, lb_array *a)
{
    bool alike, packed = false;
    for (int i = 0; i < p->call->n_in; i++)
        packed = packed || !s->in[i]->store->data;
    if (!p->cuts.varies || !packed) return a;
    if (!lb_mesh_meet_with(p->mesh, p->call->prim->name, lb_form_of(a), &alike))
        return NULL;
    return alike ? a : lb_materialize(p->mesh->cx, a);
}

/* ---- combining ----------------------------------------------------------- */

/* An array with elements that may be overwritten, because nobody else sees
 * them. */
static lb_array *fresh(lb_ctx *cx, lb_array *a)
{
    if (lb_data(a) && !lb_shared_why(a, 1)) return a;
    return lb_bind(cx, lb_find_primitive(cx, "copy"), 1, &a, NULL);
}

static lb_dtype bits_of(lb_dtype d)
{
    switch (lb_dtype_size(d)) {
    case 1:
        return LB_U8;
    case 2:
        return LB_U16;
    case 4:
        return LB_U32;
    default:
        return LB_U64;
    }
}

static lb_array *add_up(const lb_shard_plan *p, lb_array *a)
{
    const bool bits = p->cuts.combine == LB_COMBINE_BITS;
    lb_ctx *cx = p->mesh->cx;
    if (a) a = fresh(cx, a);
    const lb_dtype dtype = a ? a->dtype : p->call->dtype;
    if (!lb_mesh_reduce(p->mesh, p->call->prim->name, p->partial, LB_COMM_SUM,
                        bits ? bits_of(dtype) : dtype, a ? lb_size(a) : 0,
                        a ? a->store->data : NULL))
        return NULL;
    return lb_as(cx, a, p->call->dtype);
}

static lb_array *join(const lb_shard_plan *p, lb_array *a)
{
    lb_ctx *cx = p->mesh->cx;
    const int ranks = lb_grid_ranks(&p->mesh->grid, p->partial);
    if (a) a = lb_materialize(cx, a);
    lb_shape shape = {1, {ranks}};
    for (int k = 0; a && k < a->shape.rank && shape.rank < LB_MAX_RANK; k++)
        shape.dim[shape.rank++] = a->shape.dim[k];
    lb_array *all = a && lb_shape_check(cx, "gather", &shape)
                        ? lb_dense(cx, a->dtype, &shape)
                        : NULL;
    if (!lb_mesh_gather(p->mesh, p->call->prim->name, p->partial,
                        all ? all->store->data_size / (size_t)ranks : 0,
                        all ? lb_data(a) : NULL, all ? all->store->data : NULL))
        return NULL;
    return p->cuts.join(cx, p->call, all);
}

static lb_array *combine(const lb_shard_plan *p, lb_array *a)
{
    if (lb_grid_ranks(&p->mesh->grid, p->partial) == 1) return a;
    return p->cuts.combine == LB_COMBINE_JOIN ? join(p, a) : add_up(p, a);
}

/* ---- the call ------------------------------------------------------------ */

/* Cuts the result like operand 0; from is its current spec. */
static lb_array *cut_again(const lb_shard_plan *p, lb_array *slice,
                           const lb_spec *from)
{
    const lb_array *like = p->call->in[0];
    const lb_spread *as = lb_spread_of(like);
    const lb_grid *grid = &p->mesh->grid;
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK], start[LB_MAX_RANK];
    const bool keeps =
        p->cuts.keeps && as && slice && !lb_spec_equal(grid, from, &as->spec);
    const lb_spec *spec = keeps ? &as->spec : from;
    if (keeps) {
        const int rank = lb_mesh_rank(p->mesh);
        lb_spec_slice(grid, from, &like->shape, rank, lo, n);
        lb_spec_slice(grid, spec, &like->shape, rank, start, n);
        for (int k = 0; k < like->shape.rank; k++)
            start[k] -= lo[k];
        slice = lb_cut_compact(p->mesh->cx, slice, start, n);
    }
    return slice ? lb_spread_make(p->mesh, spec, slice->dtype, &p->call->shape,
                                  slice)
                 : NULL;
}

/* Without a rule: gathers all operands, as in a single process. */
static lb_array *run_whole(const lb_shard_plan *p, const slices *s)
{
    const lb_call *c = p->call;
    const lb_spec whole = {0};
    lb_array *a = lb_bind(p->mesh->cx, c->prim, c->n_in, s->in, c->params);
    if (!a || p->cuts.keeps) return cut_again(p, a, &whole);
    return lb_spread_make(p->mesh, &whole, a->dtype, &a->shape, a);
}

static lb_array *run_cut(const lb_shard_plan *p, const slices *s)
{
    return cut_again(p, combine(p, even_out(p, s, share(p, s))), &p->out);
}

static lb_array *run(lb_mesh *mesh, const lb_call *c)
{
    lb_shard_plan p;
    slices s;
    lb_array *out = NULL;
    if (!lb_shard_plan_open(mesh, c, &p)) return NULL;
    if (slices_open(&p, &s)) {
        out = p.whole ? run_whole(&p, &s) : run_cut(&p, &s);
        lb_heap_free(mesh->heap, s.block, s.got);
    }
    lb_shard_plan_close(&p);
    return out;
}

lb_array *lb_shard_call(lb_mesh *mesh, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params)
{
    lb_ctx *cx = mesh->cx;
    lb_call c = lb_call_of(cx, prim, n, in, params);
    if (prim->shard && !prim->infer(cx, &c)) {
        lb_fail(cx, LB_E_ARG, "%s: refused", prim->name);
        return NULL;
    }
    lb_array *given = cx->given;
    cx->given = NULL; /* of the share, not of what prepares it */
    c.reuse = given == in[0] && given && !lb_shared_why(given, cx->given_refs);
    lb_enter(cx);
    return lb_leave_with(cx, run(mesh, &c));
}

/* ---- lb_explain ---------------------------------------------------------- */

typedef struct {
    char *to;
    size_t room, at;
} call_words;

static void say(call_words *w, const char *s)
{
    if (w->at < w->room) snprintf(w->to + w->at, w->room - w->at, "%s", s);
    w->at += strlen(s);
}

static void say_spec(call_words *w, const lb_shard_plan *p, const lb_spec *spec)
{
    char text[256];
    say(w, lb_spec_text(&p->mesh->grid, spec, text, sizeof text));
}

static void say_axes(call_words *w, const lb_grid *grid, unsigned mask)
{
    bool first = true;
    for (int k = 0; k < grid->n; k++) {
        if (!(mask >> k & 1)) continue;
        say(w, first ? "" : ",");
        say(w, grid->axis[k].name);
        first = false;
    }
}

static void say_operands(call_words *w, const lb_shard_plan *p)
{
    char text[64];
    for (int i = 0; i < p->call->n_in; i++) {
        if (!lb_shard_plan_gathers(p, i)) continue;
        snprintf(text, sizeof text, ", gathers operand %d to ", i);
        say(w, text);
        say_spec(w, p, &p->want[i]);
    }
}

bool lb_shard_explain(lb_mesh *mesh, const lb_call *c, char *to, size_t room)
{
    static const char *const how[] = {", adds up over ", ", adds up over ",
                                      ", joins over "};
    lb_shard_plan p;
    call_words w = {.room = room};
    w.to = to;
    if (!lb_shard_plan_open(mesh, c, &p)) return false;
    say(&w, c->prim->name);
    for (int i = 0; i < c->n_in; i++) {
        const lb_spec spec = lb_sharding_of(c->in[i]);
        say(&w, " ");
        say(&w, lb_format_of(c->in[i]));
        say(&w, " ");
        say(&w, lb_dtype_name(c->in[i]->dtype));
        say(&w, LB_SHOW(&c->in[i]->shape));
        if (lb_is_sharded(c->in[i])) say_spec(&w, &p, &spec);
    }
    say(&w, p.whole ? ": sharded, but cannot be cut" : ": sharded");
    say_operands(&w, &p);
    if (lb_grid_ranks(&mesh->grid, p.partial) > 1) {
        say(&w, how[p.cuts.combine]);
        say_axes(&w, &mesh->grid, p.partial);
    }
    say(&w, " -> ");
    say_spec(&w, &p, &p.out);
    lb_shard_plan_close(&p);
    return true;
}
