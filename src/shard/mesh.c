/* mesh.c - meshes: named axes over the ranks of a communicator. */
#include "shard/mesh.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "shard/shard_layer.h"

/* ---- parsing a grid ------------------------------------------------------ */

static bool bad_grid(lb_ctx *cx, const char *text, const char *what)
{
    return lb_fail(cx, LB_E_ARG,
                   "mesh: \"%.100s\" %s; expected axes such as dp=2,tp=4", text,
                   what);
}

static const char *skip(const char *s)
{
    while (*s == ' ')
        s++;
    return s;
}

static bool name_taken(const lb_grid *g, const char *name)
{
    for (int k = 0; k < g->n; k++)
        if (strcmp(g->axis[k].name, name) == 0) return true;
    return false;
}

/* Parses one "name=size" and advances *s. */
static bool parse_axis(lb_ctx *cx, const char *text, const char **s,
                       lb_grid *grid)
{
    enum { MOST = 1 << 20 };
    char name[LB_AXIS_NAME];
    size_t n = 0;
    long size = 0;
    const char *p = skip(*s);
    for (; isalnum((unsigned char)*p) || *p == '_'; p++) {
        if (n + 1 == sizeof name)
            return bad_grid(cx, text, "has a name that is too long");
        name[n++] = *p;
    }
    name[n] = 0;
    if (!n || isdigit((unsigned char)name[0]))
        return bad_grid(cx, text, "has an axis without a name");
    p = skip(p);
    if (*p++ != '=') return bad_grid(cx, text, "has an axis without a size");
    for (p = skip(p); isdigit((unsigned char)*p) && size <= MOST; p++)
        size = size * 10 + (*p - '0');
    if (size < 1 || size > MOST)
        return bad_grid(cx, text, "has an invalid size");
    if (name_taken(grid, name))
        return bad_grid(cx, text, "repeats an axis name");
    if (grid->n == LB_MAX_MESH_AXES)
        return bad_grid(cx, text, "has more than 8 axes");
    if (lb_grid_size(grid) > MOST / size)
        return bad_grid(cx, text, "has more than 2^20 ranks");
    memcpy(grid->axis[grid->n].name, name, n + 1);
    grid->axis[grid->n++].size = (int)size;
    *s = skip(p);
    return true;
}

bool lb_grid_parse(lb_ctx *cx, const char *text, lb_grid *grid)
{
    *grid = (lb_grid){0};
    if (!text) return lb_fail(cx, LB_E_NULL, "mesh: the axes are NULL");
    for (const char *s = text;;) {
        if (!parse_axis(cx, text, &s, grid)) return false;
        if (!*s) return true;
        if (*s++ != ',') return bad_grid(cx, text, "has no comma after a size");
    }
}

/* ---- open and close ------------------------------------------------------ */

static bool check_comm(lb_ctx *cx, const lb_comm *comm, const lb_grid *grid,
                       const char *axes)
{
    if (comm->struct_size != sizeof *comm)
        return lb_fail(
            cx, LB_E_ARG,
            "mesh: the communicator has struct_size %zu, not %zu: its "
            "engine was built for another version",
            comm->struct_size, sizeof *comm);
    if (lb_grid_size(grid) == comm->size) return true;
    return lb_fail(cx, LB_E_ARG,
                   "mesh: %.100s has %d ranks, but the communicator has %d",
                   axes, lb_grid_size(grid), comm->size);
}

static void mesh_free(lb_mesh *m)
{
    if (m->room) lb_heap_free(m->heap, m->room, m->room_got);
    lb_heap_free(m->heap, m, m->got);
}

static lb_mesh *mesh_make(lb_ctx *cx, lb_comm *comm, const lb_grid *grid)
{
    size_t got;
    lb_mesh *m = lb_heap_alloc(cx->heap, sizeof *m, &got);
    if (m) {
        *m = (lb_mesh){.cx = cx, .refs = 1, .heap = cx->heap, .got = got};
        m->comm = comm;
        m->grid = *grid;
        m->room = lb_heap_alloc(cx->heap, lb_mesh_agree_room(comm->size),
                                &m->room_got);
        lb_grid_coord(grid, comm->rank, m->coord);
        if (m->room) return m;
        mesh_free(m);
    }
    lb_fail(cx, LB_E_NOMEM, "out of memory (a mesh)");
    return NULL;
}

/* If out of memory on a rank, ranks cannot exchange messages, but this one
 * bit. */
static bool all_opened(lb_ctx *cx, lb_comm *comm, bool mine)
{
    int32_t all = mine;
    if (!comm->all_reduce(comm, LB_COMM_MIN, LB_I32, 1, &all))
        return lb_fail(cx, LB_E_MESH, "mesh: %.200s", comm->why);
    return all || lb_fail(cx, LB_E_MESH, "mesh: another rank cannot open it");
}

lb_mesh *lb_mesh_open(lb_ctx *cx, lb_comm *comm, const char *axes,
                      const lb_mesh_options *options)
{
    lb_grid grid;
    if (!cx) return NULL;
    if (!comm) {
        lb_fail(cx, LB_E_NULL, "mesh: the communicator is NULL");
        return NULL;
    }
    const bool fits = lb_grid_parse(cx, axes, &grid) &&
                      check_comm(cx, comm, &grid, axes) && !cx->status;
    lb_mesh *m = fits ? mesh_make(cx, comm, &grid) : NULL;
    if (!all_opened(cx, comm, m != NULL) || !m) {
        if (m) mesh_free(m);
        return NULL;
    }
    m->deterministic = options && options->deterministic;
    lb_shard_layer_put(m);
    return m;
}

bool lb_mesh_close(lb_mesh *m)
{
    if (!m || !m->cx) return false;
    const bool ok = lb_mesh_meet(m, "lb_mesh_close");
    lb_shard_layer_take(m);
    for (size_t i = 0; i < sizeof m->sub / sizeof *m->sub; i++)
        if (m->sub[i]) m->sub[i]->close(m->sub[i]);
    memset(m->sub, 0, sizeof m->sub);
    m->cx = NULL;
    m->comm = NULL;
    lb_mesh_unref(m);
    return ok;
}

void lb_mesh_unref(lb_mesh *m)
{
    if (__atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL)) return;
    mesh_free(m);
}

/* ---- access -------------------------------------------------------------- */

const lb_grid *lb_mesh_grid(const lb_mesh *m)
{
    return m ? &m->grid : NULL;
}

int lb_mesh_rank(const lb_mesh *m)
{
    int rank = 0;
    for (int k = 0; m && k < m->grid.n; k++)
        rank = rank * m->grid.axis[k].size + m->coord[k];
    return rank;
}

int lb_mesh_size(const lb_mesh *m)
{
    return m ? lb_grid_size(&m->grid) : 0;
}

lb_traffic lb_mesh_traffic(const lb_mesh *m)
{
    return m ? m->traffic : (lb_traffic){0};
}
