/* command.c - runs the command `lowbit` as a user does. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance.h"

/* Its output up to the limit. The rest is read and dropped: otherwise the
 * process would block on a full pipe. */
static bool drain(int fd, command_result *out, note *n)
{
    enum { MOST = 1 << 22, PIECE = 4096 };
    for (;;) {
        char piece[PIECE];
        const ssize_t got = read(fd, piece, sizeof(piece));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got == 0 || note_fail(n, "cannot read a pipe");
        if (out->size + (size_t)got > MOST) continue;
        char *more = realloc(out->text, out->size + (size_t)got + 1);
        if (!more) return note_fail(n, "out of memory");
        memcpy(more + out->size, piece, (size_t)got);
        out->text = more;
        out->size += (size_t)got;
        out->text[out->size] = 0;
    }
}

static bool spawn(const char *const *argv, int to, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions)) return false;
    char **words = (char **)(uintptr_t)argv; /* it does not change them */
    const bool ok =
        !posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO) &&
        !posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                          O_WRONLY, 0) &&
        !posix_spawn(pid, LB_CLI, &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return ok;
}

bool command_run(const char *const *argv, command_result *out, note *n)
{
    int end[2];
    pid_t pid = 0;
    int status = 0;
    *out = (command_result){0};
    if (pipe2(end, O_CLOEXEC)) return note_fail(n, "no pipe");
    const bool started = spawn(argv, end[1], &pid);
    close(end[1]);
    bool ok = started || note_fail(n, "cannot run %s", LB_CLI);
    ok = ok && drain(end[0], out, n);
    close(end[0]);
    if (started && waitpid(pid, &status, 0) != pid) return false;
    if (!ok) return false;
    if (!WIFEXITED(status)) {
        return note_fail(n, "%s %s: killed by signal %d", argv[0], argv[1],
                         WTERMSIG(status));
    }
    out->code = WEXITSTATUS(status);
    return true;
}
