/* outfile.c - files to be written whole or not at all. */
#include "io/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/core.h"

static const char suffix[] = ".partial";

static bool cannot(lb_ctx *cx, lb_outfile *o, const char *what, int error)
{
    o->failed = true;
    return lb_fail(cx, LB_E_FILE, "%s: cannot %s: %s", LB_PATH(o->partial),
                   what, strerror(error));
}

/* ---- open ---------------------------------------------------------------- */

static bool is_input(const struct stat *st, lb_infile *const *input, int n)
{
    for (int i = 0; i < n; i++)
        if (input[i]->ino == st->st_ino && input[i]->dev == st->st_dev &&
            st->st_ino)
            return true;
    return false;
}

static bool may_replace(lb_ctx *cx, const char *path, lb_infile *const *input,
                        int n)
{
    struct stat st;
    if (stat(path, &st)) return true;
    if (S_ISDIR(st.st_mode))
        return lb_fail(cx, LB_E_FILE, "%s: is a directory, not a file to write",
                       LB_PATH(path));
    if (is_input(&st, input, n))
        return lb_fail(cx, LB_E_ARG,
                       "%s: is read from, and cannot be written as well",
                       LB_PATH(path));
    return true;
}

static bool has_room(lb_ctx *cx, lb_outfile *o, uint64_t size)
{
    struct statvfs v;
    uint64_t room;
    if (!size || fstatvfs(o->fd, &v)) return true;
    if (__builtin_mul_overflow((uint64_t)v.f_bavail, (uint64_t)v.f_frsize,
                               &room) ||
        room >= size)
        return true;
    o->failed = true;
    return lb_fail(cx, LB_E_FILE,
                   "%s: needs %llu bytes, and the disk has %llu free",
                   LB_PATH(o->partial), (unsigned long long)size,
                   (unsigned long long)room);
}

static bool open_partial(lb_ctx *cx, lb_outfile *o, lb_infile *const *input,
                         int n, uint64_t size)
{
    if (!may_replace(cx, o->path, input, n)) return false;
    if (!may_replace(cx, o->partial, input, n)) return false;
    o->fd = open(o->partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (o->fd < 0) return cannot(cx, o, "open", errno);
    return has_room(cx, o, size);
}

lb_outfile *lb_outfile_open(lb_ctx *cx, const char *path,
                            lb_infile *const *input, int n, uint64_t size)
{
    const size_t len = strlen(path);
    size_t got;
    lb_outfile *o =
        lb_heap_alloc(cx->heap, sizeof *o + 2 * len + 1 + sizeof suffix, &got);
    if (!o) {
        lb_fail(cx, LB_E_NOMEM, "out of memory");
        return NULL;
    }
    char *to = (char *)(o + 1);
    *o = (lb_outfile){.heap = cx->heap,
                      .got = got,
                      .fd = -1,
                      .path = memcpy(to, path, len + 1),
                      .partial = to + len + 1};
    snprintf(o->partial, len + sizeof suffix, "%s%s", path, suffix);
    if (open_partial(cx, o, input, n, size)) return o;
    lb_outfile_close(cx, o, false, false);
    return NULL;
}

/* ---- write --------------------------------------------------------------- */

bool lb_outfile_write(lb_ctx *cx, lb_outfile *o, const void *from, size_t n)
{
    const uint8_t *p = from;
    if (o->failed) return false;
    while (n > 0) {
        const ssize_t put = write(o->fd, p, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return cannot(cx, o, "write", put ? errno : EIO);
        p += put;
        n -= (size_t)put;
        o->at += (uint64_t)put;
    }
    return true;
}

bool lb_outfile_patch(lb_ctx *cx, lb_outfile *o, uint64_t offset,
                      const void *from, size_t n)
{
    const uint8_t *p = from;
    if (o->failed) return false;
    while (n > 0) {
        const ssize_t put = pwrite(o->fd, p, n, (off_t)offset);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return cannot(cx, o, "write", put ? errno : EIO);
        p += put;
        n -= (size_t)put;
        offset += (uint64_t)put;
    }
    return true;
}

/* ---- close --------------------------------------------------------------- */

/* The name is in the directory, which goes to the disk by itself. Not every
 * file system can be told, and the file is good in any case: no error. */
static void sync_directory(lb_outfile *o)
{
    char *slash = strrchr(o->partial, '/');
    const char *dir = slash ? (slash == o->partial ? "/" : o->partial) : ".";
    if (slash) *slash = 0;
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (slash) *slash = '/';
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

static bool commit_partial(lb_ctx *cx, lb_outfile *o, bool sync)
{
    if (sync && fsync(o->fd)) return cannot(cx, o, "sync", errno);
    const int fd = o->fd;
    o->fd = -1;
    if (close(fd)) return cannot(cx, o, "close", errno);
    if (rename(o->partial, o->path)) return cannot(cx, o, "rename", errno);
    if (sync) sync_directory(o);
    return true;
}

bool lb_outfile_close(lb_ctx *cx, lb_outfile *o, bool commit, bool sync)
{
    if (!o) return false;
    const bool opened = o->fd >= 0;
    const bool done = commit && !o->failed && commit_partial(cx, o, sync);
    if (o->fd >= 0) close(o->fd);
    if (opened && !done) unlink(o->partial);
    lb_heap_free(o->heap, o, o->got);
    return done;
}
