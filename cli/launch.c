/* launch.c - environment variables of mpirun: those of Open MPI, and those of
 * MPICH and its derivatives. */
#include "launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An integer from the environment, by either name; 0: not set. */
static int number_of(const char *name, const char *other)
{
    const char *text = getenv(name);
    if (!text) text = getenv(other);
    const long n = text ? strtol(text, NULL, 10) : 0;
    return n > 0 && n < 1 << 20 ? (int)n : 0;
}

int launch_size(void)
{
    const int n = number_of("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
    return n ? n : 1;
}

int launch_threads(void)
{
    const int here = number_of("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS");
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (!here || cores < 1) return 0;
    return cores > here ? (int)(cores / here) : 1;
}

verdict launch_ranks(char **argv)
{
    static const char name[] = "lowbit-mpi";
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    char *slash = strrchr(path, '/');
    if (slash && (size_t)(slash + 1 - path) + sizeof name <= sizeof path) {
        memcpy(slash + 1, name, sizeof name);
        execv(path, argv);
    }
    return complain(
        FAILED,
        "started as one of %d processes, but cannot run %s, which shares work "
        "among them (%s); it is built only if MPI is installed",
        launch_size(), name, strerror(errno));
}
