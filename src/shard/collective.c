/* collective.c - collective operations of a mesh.
 *
 * Engines reduce f32, f64 and integers. Here 16-bit floats are converted to f32
 * for the reduction and rounded once. Long data is processed in pieces, to
 * bound the memory for that and for sums in rank order.
 */
#include <string.h>

#include "kernels/convert.h"
#include "shard/comm_reduce.h"
#include "shard/mesh.h"

enum { PIECE = 1 << 20 }; /* elements reduced at a time */

static bool is_short(lb_dtype d)
{
    return d == LB_F16 || d == LB_BF16;
}

/* Gathers all ranks' data on every rank, and sums it in rank order. room: for
 * one piece of each rank. */
static bool sum_in_order(lb_mesh *mesh, lb_comm *comm, lb_dtype dtype,
                         int64_t n, char *room, void *data)
{
    const size_t bytes = (size_t)n * lb_dtype_size(dtype);
    if (!comm->all_gather(comm, bytes, data, room))
        return lb_mesh_broken(mesh, comm);
    memcpy(data, room, bytes);
    for (int r = 1; r < comm->size; r++)
        lb_comm_combine(LB_COMM_SUM, dtype, n, room + (size_t)r * bytes, data);
    return true;
}

/* A piece of a dtype that engines support. */
static bool reduce_piece(lb_mesh *mesh, lb_comm *comm, lb_comm_op op,
                         lb_dtype dtype, int64_t n, char *room, void *data)
{
    if (room) return sum_in_order(mesh, comm, dtype, n, room, data);
    return comm->all_reduce(comm, op, dtype, n, data) ||
           lb_mesh_broken(mesh, comm);
}

static bool reduce_pieces(lb_mesh *mesh, lb_comm *comm, lb_comm_op op,
                          lb_dtype dtype, int64_t count, char *room,
                          float *wide, char *data)
{
    const size_t size = lb_dtype_size(dtype);
    for (int64_t i = 0; i < count; i += PIECE) {
        const int64_t n = lb_min_i64(PIECE, count - i);
        char *at = data + (size_t)i * size;
        if (!wide) {
            if (!reduce_piece(mesh, comm, op, dtype, n, room, at)) return false;
            continue;
        }
        lb_load_run(dtype, at, 1, n, wide);
        if (!reduce_piece(mesh, comm, op, LB_F32, n, room, wide)) return false;
        lb_store_run(LB_C_F32, wide, dtype, n, at);
    }
    return true;
}

/* Scratch of a reduction: a piece as f32, and one piece of each rank. */
typedef struct {
    char *block;
    size_t got;
    float *wide;
    char *room;
} collective_scratch;

static bool scratch_open(lb_mesh *mesh, int ranks, lb_comm_op op,
                         lb_dtype dtype, int64_t count, collective_scratch *s)
{
    const bool wide = is_short(dtype);
    const bool ordered =
        mesh->deterministic && op == LB_COMM_SUM && lb_dtype_is_float(dtype);
    const int64_t most = lb_min_i64(PIECE, count);
    const size_t each = (size_t)most * (wide ? 4 : lb_dtype_size(dtype));
    const size_t size =
        (wide ? each : 0) + (ordered ? each * (size_t)ranks : 0);
    *s = (collective_scratch){0};
    if (!size) return true;
    s->block = lb_heap_alloc(mesh->heap, size, &s->got);
    if (!s->block)
        return lb_fail(mesh->cx, LB_E_NOMEM,
                       "out of memory (%zu bytes for a reduction)", size);
    if (wide) s->wide = (float *)(void *)s->block;
    if (ordered) s->room = s->block + (wide ? each : 0);
    return true;
}

bool lb_mesh_reduce(lb_mesh *mesh, const char *at, unsigned mask, lb_comm_op op,
                    lb_dtype dtype, int64_t count, void *data)
{
    lb_comm *comm;
    collective_scratch s;
    const int ranks = lb_grid_ranks(&mesh->grid, mask);
    if (ranks == 1) return lb_mesh_meet(mesh, at);
    scratch_open(mesh, ranks, op, dtype, count, &s);
    bool ok = lb_mesh_meet(mesh, at) && lb_mesh_group(mesh, mask, &comm);
    if (ok && count) {
        ok = reduce_pieces(mesh, comm, op, dtype, count, s.room, s.wide, data);
        mesh->traffic.reduces++;
        mesh->traffic.reduce_bytes += count * (int64_t)lb_dtype_size(dtype);
    }
    if (s.block) lb_heap_free(mesh->heap, s.block, s.got);
    return ok;
}

bool lb_mesh_gather(lb_mesh *mesh, const char *at, unsigned mask, size_t bytes,
                    const void *mine, void *all)
{
    return lb_mesh_meet(mesh, at) &&
           lb_mesh_gather_met(mesh, mask, bytes, mine, all);
}

bool lb_mesh_gather_met(lb_mesh *mesh, unsigned mask, size_t bytes,
                        const void *mine, void *all)
{
    lb_comm *comm;
    if (!lb_mesh_group(mesh, mask, &comm)) return false;
    if (!bytes) return true;
    if (!comm) {
        memcpy(all, mine, bytes);
        return true;
    }
    if (!comm->all_gather(comm, bytes, mine, all))
        return lb_mesh_broken(mesh, comm);
    mesh->traffic.gathers++;
    mesh->traffic.gather_bytes += (int64_t)bytes * (comm->size - 1);
    return true;
}
