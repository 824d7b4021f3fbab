/* lowbit_mpi.h - run the ranks of a mesh as MPI processes.
 *
 * This is a separate library, liblowbit-mpi: the core does not depend on MPI,
 * and MPI implementations are not binary compatible with each other. A program
 * that runs on threads with
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

/* Initializes MPI, unless the program has done so, calls fn with a communicator
 * of all ranks, and finalizes MPI. Returns the result of fn on this rank, or -1
 * if MPI could not be initialized. argc and argv are passed to MPI, which may
 * change them, and may be NULL. If fn returns nonzero on a rank, the other
 * ranks have five seconds to return as well; then this rank prints a message to
 * stderr and calls MPI_Abort, because they would wait for it forever. A rank
 * that gets no communicator does so immediately. */
LB_API int lb_mpi_run(int *argc, char ***argv,
                      int (*fn)(lb_comm *comm, void *user), void *user);

/* For programs that initialize MPI themselves, with MPI_THREAD_FUNNELED or
 * higher: a communicator over a duplicate of comm, to be released with its
 * close function. Called by all ranks, and afterwards used only by the thread
 * that initialized MPI. NULL if MPI fails. */
LB_API lb_comm *lb_mpi_comm(MPI_Comm comm);

#ifdef __cplusplus
}
#endif
#endif
