/* alone.c - `lowbit`: one process, which needs no MPI. */
#include "command.h"

int main(int argc, char **argv)
{
    return lowbit_command(argc, argv, NULL);
}
