/* shard.c - the public functions lb_shard, lb_reshard, lb_unshard.
 *
 * All of them call one primitive, "reshard", which the mesh's layer executes.
 * So tapes record it, and its derivative is the identity.
 */
#include "shard/shard.h"

#include <stdio.h>
#include <string.h>

#include "shard/shard_move.h"

/* ---- the primitive ------------------------------------------------------- */

static bool infer(lb_ctx *cx, lb_call *c)
{
    (void)cx;
    c->shape = c->in[0]->shape;
    c->dtype = c->in[0]->dtype;
    return true;
}

/* Only reached if the mesh's layer is not installed. */
static lb_verdict move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    (void)c, (void)out;
    lb_fail(cx, LB_E_MESH, "reshard: the mesh does not belong to this context");
    return LB_FAILED;
}

static lb_array *vjp(lb_ctx *cx, const lb_call *c, int operand, lb_array *out,
                     lb_array *dout)
{
    (void)cx, (void)c, (void)operand, (void)out;
    return dout;
}

const lb_prim lb_prim_reshard = {
    .struct_size = sizeof(lb_prim),
    .name = "reshard",
    .params_size = sizeof(lb_reshard_params),
    .n_in = 1,
    .infer = infer,
    .move = move,
    .vjp = vjp,
};

/* Makes a slice compact: packed if the slices of all ranks can be. If blocks
 * cross rows, or the last one is short, this may differ between ranks. */
static lb_array *pack_alike(lb_mesh *mesh, lb_array *slice)
{
    lb_ctx *cx = mesh->cx;
    lb_array *out = NULL;
    bool alike = true;
    const lb_verdict v = lb_pack(cx, slice, &out);
    if (!slice->store->data &&
        !lb_mesh_meet_with(mesh, "reshard", lb_form_of(out), &alike))
        return NULL;
    if (v == LB_FAILED) return NULL;
    return v == LB_DONE && alike ? out : lb_materialize(cx, slice);
}

lb_array *lb_reshard_run(lb_mesh *mesh, lb_array *a, const lb_reshard_params *p)
{
    lb_ctx *cx = mesh->cx;
    lb_enter(cx);
    lb_array *out;
    if (!lb_is_sharded(a)) {
        out = lb_cut_here(mesh, a, &p->spec, true);
    } else {
        out = lb_recut(mesh, "reshard", a, &p->spec);
        if (out && out != lb_slice_here(a) && !p->plain)
            out = pack_alike(mesh, out);
    }
    if (out && p->plain)
        out = lb_view(cx, out);
    else if (out)
        out = lb_spread_make(mesh, &p->spec, a->dtype, &a->shape, out);
    return lb_leave_with(cx, out);
}

/* ---- validation ---------------------------------------------------------- */

static bool check(lb_ctx *cx, const char *who, const lb_mesh *mesh,
                  const lb_array *a)
{
    if (!a) return lb_fail(cx, LB_E_NULL, "%s: the array is NULL", who);
    if (!mesh) return lb_fail(cx, LB_E_NULL, "%s: the mesh is NULL", who);
    if (mesh->cx != cx)
        return lb_fail(
            cx, LB_E_MESH,
            "%s: the mesh does not, or no longer, belong to this context", who);
    if (lb_is_sharded(a) && lb_mesh_of(a) != mesh)
        return lb_fail(cx, LB_E_MESH, "%s: %s%s is sharded over another mesh",
                       who, lb_dtype_name(a->dtype), LB_SHOW(&a->shape));
    return true;
}

static void drop_entry(lb_spec *spec, int k, lb_spec_report *r)
{
    spec->entry[k].n = 0;
    if (r->n < LB_MAX_CHANGES) {
        r->change[r->n].entry = k;
        snprintf(r->change[r->n].why, sizeof r->change[r->n].why,
                 "pieces of axis %d would begin or end inside a block", k);
    }
    r->n++;
}

/* The first rank whose slice would not consist of whole blocks; -1: none. */
static int misfit(lb_ctx *cx, const lb_mesh *mesh, lb_array *a,
                  const lb_spec *spec)
{
    int64_t start[LB_MAX_RANK], count[LB_MAX_RANK];
    int bad = -1;
    for (int r = 0; r < lb_mesh_size(mesh) && bad < 0; r++) {
        lb_enter(cx);
        lb_spec_slice(&mesh->grid, spec, &a->shape, r, start, count);
        const lb_array *view = lb_cut_view(cx, a, start, count);
        if (view && !lb_can_pack(view)) bad = r;
        lb_leave(cx);
    }
    return bad;
}

/* If blocks cross rows: checks that each rank's slice has whole blocks. */
static bool check_slices(lb_ctx *cx, const lb_mesh *mesh, lb_array *a,
                         lb_spec_report *report, lb_spec *spec)
{
    char text[256];
    if (lb_is_sharded(a) || !lb_can_pack(a)) return true; /* will be dense */
    for (int k = spec->n - 1; k >= 0; k--) {
        const int r = misfit(cx, mesh, a, spec);
        if (r < 0) return true;
        if (!report)
            return lb_fail(
                cx, LB_E_SHAPE,
                "spec %s cuts %s %s%s, whose blocks cross rows, inside "
                "a block for rank %d",
                lb_spec_text(&mesh->grid, spec, text, sizeof text),
                lb_format_of(a), lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                r);
        if (spec->entry[k].n) drop_entry(spec, k, report);
    }
    return true;
}

static bool check_blocks(lb_ctx *cx, const lb_mesh *mesh, const lb_array *a,
                         const int64_t *grain, const lb_spec *spec)
{
    char text[256];
    for (int k = 0; k < spec->n; k++) {
        const int n = lb_grid_ranks(&mesh->grid, lb_spec_mask(spec, k));
        const int64_t piece = a->shape.dim[k] / n;
        if (n == 1 || piece % grain[k] == 0) continue;
        return lb_fail(
            cx, LB_E_SHAPE,
            "spec %s cuts axis %d of %s %s%s in pieces of %lld, inside "
            "blocks of %lld: use a block size that divides %lld",
            lb_spec_text(&mesh->grid, spec, text, sizeof text), k,
            lb_format_of(a), lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
            (long long)piece, (long long)grain[k], (long long)piece);
    }
    return true;
}

/* Parses a spec that must not cut inside blocks. */
static bool read_spec(lb_ctx *cx, const lb_mesh *mesh, lb_array *a,
                      const char *text, lb_spec_report *report, lb_spec *spec)
{
    int64_t grain[LB_MAX_RANK];
    const bool even =
        lb_cut_grain(lb_is_sharded(a) ? lb_slice_here(a) : a, grain);
    if (!lb_spec_parse_grain(cx, &mesh->grid, a->shape, even ? grain : NULL,
                             text, report, spec))
        return false;
    return even ? check_blocks(cx, mesh, a, grain, spec)
                : check_slices(cx, mesh, a, report, spec);
}

static lb_array *place(lb_ctx *cx, const char *who, lb_mesh *mesh, lb_array *a,
                       const char *text, lb_spec_report *report)
{
    lb_reshard_params p = {.mesh = mesh};
    if (!cx || !check(cx, who, mesh, a) || !a || !mesh ||
        !read_spec(cx, mesh, a, text, report, &p.spec))
        return NULL;
    return lb_bind(cx, &lb_prim_reshard, 1, &a, &p);
}

/* ---- public functions ---------------------------------------------------- */

lb_array *lb_shard(lb_ctx *cx, lb_mesh *mesh, lb_array *a, const char *spec)
{
    return place(cx, "shard", mesh, a, spec, NULL);
}

lb_array *lb_shard_relaxed(lb_ctx *cx, lb_mesh *mesh, lb_array *a,
                           const char *spec, lb_spec_report *report)
{
    lb_spec_report unread = {0};
    return place(cx, "shard", mesh, a, spec, report ? report : &unread);
}

lb_array *lb_reshard(lb_ctx *cx, lb_array *a, const char *spec)
{
    if (!cx) return NULL;
    if (a && !lb_is_sharded(a)) {
        lb_fail(cx, LB_E_ARG, "reshard: %s%s is not sharded (use lb_shard)",
                lb_dtype_name(a->dtype), LB_SHOW(&a->shape));
        return NULL;
    }
    return place(cx, "reshard", lb_mesh_of(a), a, spec, NULL);
}

lb_array *lb_unshard(lb_ctx *cx, lb_array *a)
{
    if (!cx) return NULL;
    if (a && !lb_is_sharded(a)) /* of a traced array that is not known yet */
        return a->store->traced ? lb_cut_like(cx, a, lb_scalar(cx, 0), false)
                                : a;
    const lb_reshard_params p = {.mesh = lb_mesh_of(a), .plain = true};
    if (!check(cx, "unshard", p.mesh, a)) return NULL;
    return lb_bind(cx, &lb_prim_reshard, 1, &a, &p);
}

lb_array *lb_reshard_like(lb_ctx *cx, lb_array *a, const lb_array *like,
                          bool cheap)
{
    const lb_spread *from = lb_spread_of(a), *to = lb_spread_of(like);
    const lb_spec whole = {0};
    if (cheap && from &&
        !lb_recut_is_local(&from->spec, to ? &to->spec : &whole))
        return a;
    if (!to) return lb_unshard(cx, a);
    if (from && from->mesh == to->mesh &&
        lb_spec_equal(&to->mesh->grid, &from->spec, &to->spec))
        return a;
    if (!check(cx, "reshard", to->mesh, a)) return NULL;
    const lb_reshard_params p = {.mesh = to->mesh, .spec = to->spec};
    return lb_bind(cx, &lb_prim_reshard, 1, &a, &p);
}

lb_array *lb_from_slice(lb_ctx *cx, lb_mesh *mesh, lb_shape shape,
                        const char *text, lb_array *slice)
{
    lb_spec spec;
    int64_t start[LB_MAX_RANK], count[LB_MAX_RANK];
    if (!cx || !check(cx, "from_slice", mesh, slice) ||
        !lb_has_elements(cx, "from_slice", slice) ||
        !lb_shape_check(cx, "from_slice", &shape) ||
        !lb_spec_parse(cx, &mesh->grid, shape, text, NULL, &spec))
        return NULL;
    lb_spec_slice(&mesh->grid, &spec, &shape, lb_mesh_rank(mesh), start, count);
    const lb_shape want = lb_shape_make(shape.rank, count);
    if (lb_is_sharded(slice) || !lb_shape_equal(&want, &slice->shape)) {
        lb_fail(cx, LB_E_SHAPE, "from_slice: the slice is %s%s, not %s",
                lb_is_sharded(slice) ? "sharded, " : "", LB_SHOW(&slice->shape),
                LB_SHOW(&want));
        return NULL;
    }
    return lb_spread_make(mesh, &spec, slice->dtype, &shape, slice);
}
