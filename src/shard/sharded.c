/* sharded.c - arrays of which this process holds a slice.
 *
 *     view  ->  store  shape: the global one
 *                      part 0: the slice, a separate array
 *                      sharding: the mesh and the spec, stored after the store
 */
#include <stdio.h>
#include <string.h>

#include "shard/shard.h"
#include "shard/shard_move.h"

/* Never called: the layer handles calls with such arrays. */
static void decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, void *out)
{
    (void)cpu, (void)first;
    memset(out, 0, (size_t)n * lb_ctype_size(s->ctype));
}

static const lb_format format_sharded = {
    .struct_size = sizeof(lb_format),
    .name = "sharded",
    .part = {{.name = "slice", .firm = true}},
    .decode = decode,
};

const lb_spread *lb_spread_of(const lb_array *a)
{
    return a ? (const lb_spread *)(const void *)a->store->sharding : NULL;
}

lb_array *lb_slice_here(const lb_array *a)
{
    return a->store->part[0].a;
}

/* The slice's part. If the part is shared it has one entry on every rank;
 * otherwise it is sharded like the array. */
static lb_array *component(lb_ctx *cx, lb_array *a, const char *name)
{
    const lb_spread *s = lb_spread_of(a);
    lb_array *slice = lb_slice_here(a);
    lb_box b;
    lb_enter(cx);
    lb_array *part = lb_component(cx, slice, name);
    if (!part || !lb_as_box(slice, &b)) return lb_leave_with(cx, NULL);
    lb_spec spec = s->spec;
    lb_shape shape = part->shape;
    int p = 0; /* it exists: lb_component found it */
    while (strcmp(slice->store->fmt->part[p].name, name) != 0)
        p++;
    for (int k = 0; k < a->shape.rank && k < spec.n; k++) {
        const int at = b.axis[k];
        const int n = lb_grid_ranks(&s->mesh->grid, lb_spec_mask(&spec, k));
        if (at < 0 || !b.part[p].g[at])
            spec.entry[k].n = 0;
        else
            shape.dim[k] *= n;
    }
    return lb_leave_with(
        cx, lb_spread_make(s->mesh, &spec, part->dtype, &shape, part));
}

static const char *describe(const lb_array *a, char *to, size_t room)
{
    const lb_spread *s = lb_spread_of(a);
    char spec[256], grid[256];
    snprintf(to, room, "%s over %s",
             lb_spec_text(&s->mesh->grid, &s->spec, spec, sizeof spec),
             lb_grid_text(&s->mesh->grid, grid, sizeof grid));
    return to;
}

static void release(void *user)
{
    lb_mesh_unref(user);
}

lb_array *lb_spread_make(lb_mesh *mesh, const lb_spec *spec, lb_dtype dtype,
                         const lb_shape *shape, lb_array *slice)
{
    typedef struct {
        lb_store store;
        lb_spread spread;
    } block;
    lb_ctx *cx = mesh->cx;
    size_t got;
    if (!slice) return NULL;
    block *b = lb_heap_alloc(cx->heap, sizeof *b, &got);
    if (!b) {
        lb_fail(cx, LB_E_NOMEM, "out of memory");
        return NULL;
    }
    b->spread = (lb_spread){
        {lb_gather_all, component, lb_reshard_like, describe}, mesh, *spec};
    b->store = (lb_store){
        .refs = 1,
        .heap = cx->heap,
        .heap_size = got,
        .fmt = &format_sharded,
        .shape = *shape,
        .ctype = lb_ctype_of(dtype),
        .depth = slice->store->depth,
        .part = {{.a = lb_ref(slice)}},
        .done = release,
        .user = mesh,
        .sharding = &b->spread.base,
    };
    __atomic_add_fetch(&mesh->refs, 1, __ATOMIC_RELAXED);
    return lb_view_store(cx, &b->store, dtype);
}

/* ---- access -------------------------------------------------------------- */

bool lb_is_sharded(const lb_array *a)
{
    return lb_spread_of(a) != NULL;
}

lb_mesh *lb_mesh_of(const lb_array *a)
{
    const lb_spread *s = lb_spread_of(a);
    return s ? s->mesh : NULL;
}

lb_spec lb_sharding_of(const lb_array *a)
{
    const lb_spread *s = lb_spread_of(a);
    return s ? s->spec : (lb_spec){0};
}

lb_array *lb_local(lb_ctx *cx, lb_array *a)
{
    if (!cx || (a && !lb_has_elements(cx, "local", a))) return NULL;
    return lb_is_sharded(a) ? lb_view(cx, lb_slice_here(a)) : a;
}
