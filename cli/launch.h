/* launch.h - when mpirun has started the command: lowbit itself knows no MPI,
 * and becomes lowbit-mpi, which is built where there is one. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "verb.h"

/* Processes that were started together; 1 if nobody says so. */
int launch_size(void);
/* Threads for each of those on this machine; 0: all there are. */
int launch_threads(void);
/* Becomes lowbit-mpi, with the same arguments; returns, with a sentence, if
 * that cannot be. */
verdict launch_ranks(char **argv);

#endif
