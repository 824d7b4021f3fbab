/* name_file.c - names for files without one. */
#include "io/util/name_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

lb_fd_path lb_path_of_fd(int fd)
{
    lb_fd_path p;
    snprintf(p.s, sizeof p.s, "/proc/self/fd/%d", fd);
    return p;
}

bool lb_is_named(int fd, const char *path)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

typedef struct naming {
    int fd;
    const char *path, *first;
    const char *call; /* the one that failed */
    int error;
    bool ended;
} naming;

static int link_to(int fd, const char *path)
{
    const lb_fd_path from = lb_path_of_fd(fd);
    return linkat(AT_FDCWD, from.s, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* May be called again if it was interrupted at any point. */
static void replace(naming *n)
{
    n->call = "link";
    n->error = link_to(n->fd, n->first) ? errno : 0;
    if (n->error == EEXIST && lb_is_named(n->fd, n->first)) n->error = 0;
    if (!n->error && rename(n->first, n->path)) {
        n->call = "rename";
        n->error = errno;
        unlink(n->first);
    }
    n->ended = true;
}

/* ThreadSanitizer takes the second process for a fork. */
#if defined(__has_feature)
#define FEATURE(x) __has_feature(x)
#else
#define FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || FEATURE(thread_sanitizer)
#define ALONE 1
#else
#define ALONE 0
#endif

/* Its own process group: a signal to the first one's does not reach it. */
static int second_process(void *user)
{
    setpgid(0, 0);
    replace(user);
    return 0;
}

/* No exit signal, so that the program's own handling of child processes does
 * not see it. It cannot be started under some emulators and limits. */
static void run_second_process(naming *n)
{
    enum { STACK = 128 << 10 };
    sigset_t all, before;
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid =
        clone(second_process, stack + STACK, CLONE_VM | CLONE_VFORK, n);
    while (pid > 0 && waitpid(pid, NULL, (int)__WCLONE) < 0 && errno == EINTR)
        continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(stack, STACK);
}

int lb_name_file(int fd, const char *path, const char *first, const char **call)
{
    naming n = {.fd = fd, .path = path, .first = first};
    *call = "link";
    if (link_to(fd, path) == 0) return 0;
    if (errno != EEXIST) return errno;
    if (!ALONE) run_second_process(&n);
    if (!n.ended && !lb_is_named(fd, path)) replace(&n);
    *call = n.call;
    return n.error;
}
