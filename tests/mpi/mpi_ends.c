/* mpi_ends.c - the effect on other ranks when rank 1 ends: `fails` (it returns
 * 3), `dies` (it is killed) or `lacks` (it gets no communicator). mpi.sh checks
 * the outcome. */
#include <signal.h>
#include <string.h>

#include "lowbit_mpi.h"

static int ends(lb_comm *c, void *user)
{
    int32_t one = 1;
    if (c->rank == 1 && !strcmp(user, "dies")) raise(SIGKILL);
    if (c->rank == 1) return 3;
    return c->all_reduce(c, LB_COMM_SUM, LB_I32, 1, &one) ? 0 : 4;
}

/* Handler called before MPI's own. */
static bool lacks;

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *to)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return lacks && rank == 1 ? MPI_ERR_NO_MEM : PMPI_Comm_dup(comm, to);
}

int main(int argc, char **argv)
{
    char *how = argc > 1 ? argv[1] : "fails";
    lacks = !strcmp(how, "lacks");
    return lb_mpi_run(&argc, &argv, ends, how);
}
