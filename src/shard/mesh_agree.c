/* mesh_agree.c - makes an error of one rank an error of all before they
 * communicate.
 *
 * All ranks exchange a status and a hash that identifies the current call. If
 * one has an error, all take over the message of the first that has. From then
 * on there is no communication until the error is cleared: all ranks know about
 * it, so none waits for another. A rank that fails while others continue joins
 * them at its next exchange, at the latest in lb_mesh_close.
 */
#include <stdio.h>
#include <string.h>

#include "shard/mesh.h"

typedef struct {
    int32_t status;
    uint32_t mark; /* hash of the call's name, or of the error message */
    uint32_t form;
} agree_state;

/* FNV-1a. */
static uint32_t mark_of(const char *s)
{
    uint32_t h = 2166136261u;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 16777619u;
    return h;
}

bool lb_mesh_broken(lb_mesh *mesh, lb_comm *comm)
{
    lb_ctx *cx = mesh->cx;
    lb_clear(cx); /* discard an error that only this rank has */
    mesh->failed = cx->errors + 1;
    return lb_fail(cx, LB_E_MESH, "rank %d of %d: %.*s", mesh->comm->rank,
                   mesh->comm->size, LB_COMM_WHY - 1, comm->why);
}

/* The first rank that has an error, or -1; all: whether all have the same
 * one. */
static int first_failed(const agree_state *s, int n, bool *all)
{
    int first = -1;
    *all = true;
    for (int r = 0; r < n; r++) {
        if (s[r].status && first < 0) first = r;
        *all = *all && s[r].status == s[0].status && s[r].mark == s[0].mark;
    }
    return first;
}

/* Every rank sends its message; that of rank `from` is taken over. */
static bool take_over(lb_mesh *mesh, const agree_state *s, int from, bool all)
{
    lb_ctx *cx = mesh->cx;
    lb_comm *comm = mesh->comm;
    if (!comm->all_gather(comm, LB_ERROR_SIZE, cx->error, mesh->room))
        return lb_mesh_broken(mesh, comm);
    lb_clear(cx);
    mesh->failed = cx->errors + 1;
    const char *words = mesh->room + (size_t)from * LB_ERROR_SIZE;
    if (all) return lb_fail(cx, (lb_status)s[from].status, "%s", words);
    return lb_fail(cx, (lb_status)s[from].status, "rank %d of %d: %.400s", from,
                   comm->size, words);
}

static bool differ(lb_mesh *mesh, const agree_state *s, const char *at)
{
    int r = 1;
    while (s[r].mark == s[0].mark)
        r++;
    mesh->failed = mesh->cx->errors + 1;
    return lb_fail(mesh->cx, LB_E_MESH,
                   "rank %d of %d is at a different call than rank 0 (this "
                   "rank is at %.100s): all ranks must make the same calls",
                   r, mesh->comm->size, at);
}

static bool settle(lb_mesh *mesh, const char *at, uint32_t form, bool *alike,
                   agree_state *s)
{
    lb_ctx *cx = mesh->cx;
    lb_comm *comm = mesh->comm;
    bool all;
    const agree_state own = {(int32_t)cx->status,
                             mark_of(cx->status ? cx->error : at), form};
    if (!comm->all_gather(comm, sizeof own, &own, s))
        return lb_mesh_broken(mesh, comm);
    *alike = true;
    for (int r = 0; r < comm->size; r++)
        *alike = *alike && s[r].form == form;
    const int from = first_failed(s, comm->size, &all);
    if (from >= 0) return take_over(mesh, s, from, all);
    return all || differ(mesh, s, at);
}

size_t lb_mesh_agree_room(int ranks)
{
    return (size_t)ranks * (sizeof(agree_state) + LB_ERROR_SIZE);
}

bool lb_mesh_meet_with(lb_mesh *mesh, const char *at, uint32_t form,
                       bool *alike)
{
    lb_ctx *cx = mesh->cx;
    *alike = true;
    if (cx->status && mesh->failed == cx->errors) return false;
    if (mesh->comm->size == 1) return !cx->status;
    agree_state *s =
        (agree_state *)(void *)(mesh->room +
                                (size_t)mesh->comm->size * LB_ERROR_SIZE);
    return settle(mesh, at, form, alike, s);
}

bool lb_mesh_meet(lb_mesh *mesh, const char *at)
{
    bool alike;
    return lb_mesh_meet_with(mesh, at, 0, &alike);
}

bool lb_mesh_agree(lb_mesh *mesh)
{
    return mesh && mesh->cx && lb_mesh_meet(mesh, "lb_mesh_agree");
}
