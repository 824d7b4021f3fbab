/* command.h - the command, as a program starts it. */
#ifndef COMMAND_H
#define COMMAND_H

#include "lowbit_mesh.h"

/* As main has it. comm: the ranks of an MPI program, of which each runs it;
 * NULL: this process alone. Returns what to exit with. */
int lowbit_command(int argc, char **argv, lb_comm *comm);

#endif
