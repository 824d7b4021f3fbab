/* launch.h - running under mpirun: lowbit does not use MPI itself, but replaces
 * itself by lowbit-mpi, which is built if MPI is installed. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "verb.h"

/* Number of processes started together; 1 without mpirun. */
int launch_size(void);
/* Threads for each process on this machine; 0: all cores. */
int launch_threads(void);
/* Executes lowbit-mpi with the same arguments. Returns only on failure, after a
 * message. */
verdict launch_ranks(char **argv);

#endif
