/* input.c - standard input as a file that can be mapped and read at offsets. */
#include "input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        const ssize_t put = write(fd, bytes, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        bytes += put;
        n -= (size_t)put;
    }
    return true;
}

static bool copy_all(int from, int to)
{
    enum { CHUNK = 1 << 20 };
    char *chunk = malloc(CHUNK);
    bool ok = chunk != NULL;
    while (ok) {
        const ssize_t got = read(from, chunk, CHUNK);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) break;
        ok = got > 0 && write_all(to, chunk, (size_t)got);
    }
    free(chunk);
    return ok;
}

/* A descriptor of a temporary file that has no name, or -1. */
static int temporary(const char *directory)
{
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/lowbit-XXXXXX", directory);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = mkstemp(path);
    if (fd >= 0) unlink(path);
    return fd;
}

const char *input_path(const char *operand)
{
    static const char path[] = "/dev/stdin";
    struct stat st;
    const char *set = getenv("TMPDIR"), *directory = set && *set ? set : "/tmp";
    if (strcmp(operand, "-") != 0) return operand;
    if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode)) return path;
    const int fd = temporary(directory);
    const bool ok = fd >= 0 && copy_all(STDIN_FILENO, fd) &&
                    dup2(fd, STDIN_FILENO) == STDIN_FILENO;
    const int error = errno;
    if (fd > STDIN_FILENO) close(fd);
    if (ok) return path;
    complain(FAILED, "cannot copy standard input to a file in %s: %s",
             directory, strerror(error));
    return NULL;
}
