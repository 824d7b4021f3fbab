/* command.h - the command as a function. */
#ifndef COMMAND_H
#define COMMAND_H

#include "lowbit_mesh.h"

/* Arguments and result are those of main. comm: the ranks of an MPI program,
 * each of which calls it; NULL: a single process. */
int lowbit_command(int argc, char **argv, lb_comm *comm);

#endif
