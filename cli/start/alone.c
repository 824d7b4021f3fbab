/* alone.c - `lowbit`: a single process, without MPI. */
#include "command.h"

int main(int argc, char **argv)
{
    return lowbit_command(argc, argv, NULL);
}
