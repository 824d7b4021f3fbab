/* lowbit_mpi.h - the ranks of an MPI program as those of a mesh.
 *
 * A library of its own, liblowbit-mpi: the core knows nothing of MPI, and two
 * kinds of MPI do not share their binary interface. A program that runs on
 * threads with
 *
 *     return lb_mesh_run(4, main_of_rank, NULL);
 *
 * runs on processes, started with `mpirun -np 4 program`, with
 *
 *     return lb_mpi_run(&argc, &argv, main_of_rank, NULL);
 */
#ifndef LOWBIT_MPI_H
#define LOWBIT_MPI_H

#include <mpi.h>

#include "lowbit_mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Starts MPI, if the program has not, calls fn with all of its ranks, and ends
 * MPI again; returns what fn returned on this rank, -1 if MPI could not be
 * started. argc and argv are MPI's to change, and may be NULL. A rank whose fn
 * does not return 0 gives the others five seconds to return as well; then it
 * names itself on stderr and ends all of them (MPI_Abort), because they wait
 * for it in vain; one that gets no communicator does so at once. */
LB_API int lb_mpi_run(int *argc, char ***argv,
                      int (*fn)(lb_comm *comm, void *user), void *user);

/* For who starts MPI himself, with MPI_THREAD_FUNNELED or more: a communicator
 * over a duplicate of comm, to be ended with its close. Called by all ranks,
 * and from then on used by the thread that started MPI. NULL if MPI says no. */
LB_API lb_comm *lb_mpi_comm(MPI_Comm comm);

#ifdef __cplusplus
}
#endif
#endif
