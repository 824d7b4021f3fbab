/* ranks.h - the ranks of a test: threads, or processes of MPI.
 *
 * A test of meshes whose main ends with `return ranks_main(argc, argv, tests);`
 * starts ranks with ranks_on. By default they are threads. Compiled with
 * LB_TEST_MPI (see tests/mpi.sh) they are the first of the processes started by
 * mpirun. All processes run the test, and all perform the checks that do not
 * depend on a mesh.
 */
#ifndef LB_RANKS_H
#define LB_RANKS_H

#include "lowbit_mesh.h"

#ifdef LB_TEST_MPI
#include <stdlib.h>
#include <string.h>

#include "lowbit_mpi.h"

static struct {
    lb_comm *world;
    int argc;
    char **argv;
    int (*tests)(int argc, char **argv);
} ranks_mpi;

/* Whether there are exactly n ranks, and whether this one prints the result. */
static inline bool ranks_are(int n)
{
    return ranks_mpi.world->size == n;
}

static inline bool ranks_first(void)
{
    return ranks_mpi.world->rank == 0;
}

/* Broadcasts the first rank's data; a barrier. */
static inline bool ranks_share(void *data, size_t n)
{
    lb_comm *world = ranks_mpi.world;
    char *all = malloc(n * (size_t)world->size);
    const bool ok = all && world->all_gather(world, n, data, all);
    if (ok) memcpy(data, all, n);
    free(all);
    return ok;
}

/* Runs fn on n ranks, like lb_mesh_run; 0 if there are fewer. */
static inline int ranks_on(int n, int (*fn)(lb_comm *, void *), void *user)
{
    lb_comm *world = ranks_mpi.world;
    if (world->size < n) return 0;
    lb_comm *some = world->split(world, world->rank >= n);
    if (!some) return -1;
    const int result = world->rank < n ? fn(some, user) : 0;
    some->close(some);
    return result;
}

static inline int ranks_start(lb_comm *world, void *user)
{
    (void)user;
    ranks_mpi.world = world;
    return ranks_mpi.tests(ranks_mpi.argc, ranks_mpi.argv);
}

static inline int ranks_main(int argc, char **argv,
                             int (*tests)(int argc, char **argv))
{
    ranks_mpi.argc = argc;
    ranks_mpi.argv = argv;
    ranks_mpi.tests = tests;
    return lb_mpi_run(&argc, &argv, ranks_start, NULL);
}

#else

static inline bool ranks_are(int n)
{
    return n > 0;
}

static inline bool ranks_first(void)
{
    return true;
}

static inline bool ranks_share(void *data, size_t n)
{
    return data && n;
}

static inline int ranks_on(int n, int (*fn)(lb_comm *, void *), void *user)
{
    return lb_mesh_run(n, fn, user);
}

static inline int ranks_main(int argc, char **argv,
                             int (*tests)(int argc, char **argv))
{
    return tests(argc, argv);
}

#endif
#endif
