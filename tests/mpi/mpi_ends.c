/* mpi_ends.c - what happens to the others when rank 1 of MPI's ends: `fails`,
 * it returns 3, or `dies`, it is killed. For mpi.sh, which looks at it. */
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

int main(int argc, char **argv)
{
    char *how = argc > 1 ? argv[1] : "fails";
    return lb_mpi_run(&argc, &argv, ends, how);
}
