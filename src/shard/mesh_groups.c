/* mesh_groups.c - groups of ranks along some axes of a mesh. */
#include "shard/mesh.h"

unsigned lb_spec_mask(const lb_spec *spec, int entry)
{
    unsigned mask = 0;
    if (entry >= spec->n) return 0;
    for (int i = 0; i < spec->entry[entry].n; i++)
        mask |= 1u << spec->entry[entry].axis[i];
    return mask;
}

unsigned lb_spec_masks(const lb_spec *spec)
{
    unsigned mask = 0;
    for (int k = 0; k < spec->n; k++)
        mask |= lb_spec_mask(spec, k);
    return mask;
}

int lb_grid_ranks(const lb_grid *grid, unsigned mask)
{
    int n = 1;
    for (int k = 0; k < grid->n; k++)
        if (mask >> k & 1) n *= grid->axis[k].size;
    return n;
}

int lb_grid_size(const lb_grid *grid)
{
    return lb_grid_ranks(grid, ~0u);
}

void lb_grid_coord(const lb_grid *grid, int rank, int *coord)
{
    for (int k = grid->n - 1; k >= 0; k--) {
        coord[k] = rank % grid->axis[k].size;
        rank /= grid->axis[k].size;
    }
}

int lb_mesh_member(const lb_mesh *mesh, unsigned mask, int member)
{
    int rank = 0, step = 1;
    for (int k = mesh->grid.n - 1; k >= 0; k--) {
        const int n = mesh->grid.axis[k].size;
        const bool moves = mask >> k & 1;
        rank += step * (moves ? member % n : mesh->coord[k]);
        if (moves) member /= n;
        step *= n;
    }
    return rank;
}

/* Removes axes of size 1, which have no effect. */
static unsigned essential(const lb_grid *grid, unsigned mask)
{
    unsigned m = 0;
    for (int k = 0; k < grid->n; k++)
        if ((mask >> k & 1) && grid->axis[k].size > 1) m |= 1u << k;
    return m;
}

bool lb_mesh_group(lb_mesh *mesh, unsigned mask, lb_comm **comm)
{
    const lb_grid *grid = &mesh->grid;
    mask = essential(grid, mask);
    *comm = NULL;
    if (!mask) return true;
    if (mask == essential(grid, ~0u)) {
        *comm = mesh->comm;
        return true;
    }
    if (!mesh->sub[mask]) {
        int color = 0; /* the group's coordinates along all other axes */
        for (int k = 0; k < grid->n; k++)
            if (!(mask >> k & 1))
                color = color * grid->axis[k].size + mesh->coord[k];
        mesh->sub[mask] = mesh->comm->split(mesh->comm, color);
    }
    *comm = mesh->sub[mask];
    return *comm || lb_mesh_broken(mesh, mesh->comm);
}
