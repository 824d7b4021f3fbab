/* ranks.c - `lowbit-mpi`: the same command under MPI. */
#include "command.h"
#include "lowbit_mpi.h"

typedef struct words {
    int argc;
    char **argv;
} words;

static int run(lb_comm *comm, void *user)
{
    const words *w = user;
    return lowbit_command(w->argc, w->argv, comm);
}

int main(int argc, char **argv)
{
    words w = {argc, argv};
    return lb_mpi_run(&w.argc, &w.argv, run, &w);
}
