/* faults.c - C library calls that work normally, except for an injected fault.
 *
 * Files are written through a few calls of the C library. A program linked with
 * --wrap=CALL for each of them calls the functions in this file instead.
 */
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

fault_plan fault;

static void ask_environment(void)
{
    static bool asked;
    static char call[16], how[16];
    const char *text = getenv("LOWBIT_FAULT");
    if (asked) return;
    asked = true;
    if (!text || sscanf(text, "%15s %ld %15s", call, &fault.at, how) != 3)
        return;
    fault.call = strcmp(call, "any") == 0 ? NULL : call;
    fault.how = strcmp(how, "short") == 0  ? FAULT_SHORT
                : strcmp(how, "flip") == 0 ? FAULT_FLIP
                : *how == '-'              ? FAULT_SIGNAL
                                           : FAULT_FAILS;
    fault.error = abs(atoi(how));
}

/* Whether this call is the one that fails. */
static bool is_now(const char *call)
{
    ask_environment();
    if (!fault.at || (fault.call && strcmp(fault.call, call) != 0))
        return false;
    const bool now = ++fault.calls == fault.at || fault.at == FAULT_ALWAYS;
    if (now) fault.done++;
    if (!now || fault.how != FAULT_SIGNAL) return now;
    raise(fault.error);
    return false;
}

/* A process started by it makes its call. */
static void kill_process(void)
{
    kill(fault.process, SIGKILL);
}

static bool fails(const char *call)
{
    if (!is_now(call)) return false;
    if (fault.how == FAULT_KILLS) kill_process();
    if (fault.how != FAULT_FAILS) return false;
    errno = fault.error;
    return true;
}

/* ---- bytes --------------------------------------------------------------- */

ssize_t __real_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t __real_write(int fd, const void *from, size_t n);
ssize_t __real_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t __wrap_write(int fd, const void *from, size_t n);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at);

static size_t half(size_t n)
{
    return n > 1 ? n / 2 : n;
}

/* A copy of n bytes with one bit in the middle flipped. */
static void *flipped(const void *from, size_t n)
{
    unsigned char *p = malloc(n);
    if (!p) abort();
    memcpy(p, from, n);
    p[n / 2] ^= 1;
    return p;
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t n, off_t at)
{
    if (!is_now("pwrite")) return __real_pwrite(fd, from, n, at);
    if (fault.how == FAULT_SHORT) return __real_pwrite(fd, from, half(n), at);
    if (fault.how == FAULT_KILLS) {
        const ssize_t put = __real_pwrite(fd, from, half(n), at);
        kill_process();
        return put;
    }
    if (fault.how == FAULT_FLIP && n) {
        void *other = flipped(from, n);
        const ssize_t put = __real_pwrite(fd, other, n, at);
        free(other);
        return put;
    }
    errno = fault.error;
    return -1;
}

ssize_t __wrap_write(int fd, const void *from, size_t n)
{
    if (!is_now("write")) return __real_write(fd, from, n);
    if (fault.how == FAULT_SHORT) return __real_write(fd, from, half(n));
    if (fault.how == FAULT_KILLS) {
        const ssize_t put = __real_write(fd, from, half(n));
        kill_process();
        return put;
    }
    if (fault.how == FAULT_FLIP && n) {
        void *other = flipped(from, n);
        const ssize_t put = __real_write(fd, other, n);
        free(other);
        return put;
    }
    errno = fault.error;
    return -1;
}

ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at)
{
    if (!is_now("pread")) return __real_pread(fd, to, n, at);
    if (fault.how == FAULT_KILLS) kill_process();
    if (fault.how == FAULT_SHORT) return __real_pread(fd, to, half(n), at);
    if (fault.how == FAULT_FLIP) {
        const ssize_t got = __real_pread(fd, to, n, at);
        if (got > 0) ((unsigned char *)to)[got / 2] ^= 1;
        return got;
    }
    errno = fault.error;
    return -1;
}

/* ---- the rest ------------------------------------------------------------ */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    const bool creates = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
    const mode_t mode = creates ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (fails("open")) return -1;
    const int fd = __real_open(path, flags, mode);
    if (fault.opened) fault.opened(path);
    return fd;
}

/* The descriptor is closed in any case, as on Linux. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    const int status = __real_close(fd);
    return fails("close") ? -1 : status;
}

int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size)
{
    return fails("ftruncate") ? -1 : __real_ftruncate(fd, size);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    return fails("fsync") ? -1 : __real_fsync(fd);
}

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    return fails("fdatasync") ? -1 : __real_fdatasync(fd);
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    if (fault.renames) fault.renames(from);
    return fails("rename") ? -1 : __real_rename(from, to);
}

int __real_linkat(int a, const char *from, int b, const char *to, int flags);
int __wrap_linkat(int a, const char *from, int b, const char *to, int flags);
int __wrap_linkat(int a, const char *from, int b, const char *to, int flags)
{
    return fails("linkat") ? -1 : __real_linkat(a, from, b, to, flags);
}

int __real_renameat2(int a, const char *from, int b, const char *to,
                     unsigned flags);
int __wrap_renameat2(int a, const char *from, int b, const char *to,
                     unsigned flags);
int __wrap_renameat2(int a, const char *from, int b, const char *to,
                     unsigned flags)
{
    return fails("renameat2") ? -1 : __real_renameat2(a, from, b, to, flags);
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    return fails("mkdir") ? -1 : __real_mkdir(path, mode);
}
