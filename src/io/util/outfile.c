/* outfile.c - atomic file output. */
#include "io/util/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/core.h"
#include "io/util/name_file.h"

static const char suffix[] = ".partial";

/* The name for messages. */
static const char *name_of(const lb_outfile *o)
{
    return o->unnamed ? o->path : o->partial;
}

static bool cannot(lb_ctx *cx, lb_outfile *o, const char *what, int error)
{
    o->failed = true;
    return lb_fail(cx, LB_E_FILE, "%s: cannot %s: %s", LB_PATH(name_of(o)),
                   what, strerror(error));
}

/* Names the bytes, and the total where it is known. */
static bool cannot_write(lb_ctx *cx, lb_outfile *o, size_t n, uint64_t at,
                         int error)
{
    char what[96];
    snprintf(what, sizeof what, "write %zu bytes at offset %llu", n,
             (unsigned long long)at);
    const size_t k = strlen(what);
    if (o->total)
        snprintf(what + k, sizeof what - k, " of %llu",
                 (unsigned long long)o->total);
    return cannot(cx, o, what, error);
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
        return lb_fail(cx, LB_E_FILE, "%s is a directory, not a file",
                       LB_PATH(path));
    if (!S_ISREG(st.st_mode)) /* the rename would replace a device */
        return lb_fail(cx, LB_E_FILE, "%s is not a regular file",
                       LB_PATH(path));
    if (is_input(&st, input, n))
        return lb_fail(cx, LB_E_ARG, "output %s is also the input",
                       LB_PATH(path));
    return true;
}

/* blocks: those that the partial file of an earlier run already has. */
static bool fits(lb_ctx *cx, const char *partial, const struct statvfs *v,
                 uint64_t blocks, uint64_t size)
{
    uint64_t room;
    if (__builtin_mul_overflow((uint64_t)v->f_bavail, (uint64_t)v->f_frsize,
                               &room) ||
        __builtin_add_overflow(room, blocks * 512, &room) || room >= size)
        return true;
    return lb_fail(cx, LB_E_FILE,
                   "%s needs %llu bytes, but the file system has only %llu "
                   "free",
                   LB_PATH(partial), (unsigned long long)size,
                   (unsigned long long)room);
}

static bool has_room(lb_ctx *cx, lb_outfile *o, uint64_t size)
{
    struct statvfs v;
    struct stat st;
    if (!size || fstatvfs(o->fd, &v) || fstat(o->fd, &st) ||
        fits(cx, name_of(o), &v, (uint64_t)st.st_blocks, size))
        return true;
    o->failed = true;
    return false;
}

static bool is_busy(lb_ctx *cx, const char *partial)
{
    return lb_fail(cx, LB_E_FILE, "%s: another process is writing it",
                   LB_PATH(partial));
}

/* An existing partial file is not modified before it is locked. */
static bool open_partial(lb_ctx *cx, lb_outfile *o, lb_infile *const *input,
                         int n)
{
    if (!may_replace(cx, o->path, input, n)) return false;
    if (!may_replace(cx, o->partial, input, n)) return false;
    const int fd =
        open(o->partial, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return cannot(cx, o, "open", errno);
    const bool taken = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    /* its writer may have renamed it before it was locked */
    if (taken || !lb_is_named(fd, o->partial)) {
        close(fd);
        return is_busy(cx, o->partial);
    }
    o->fd = fd;
    return true;
}

const char *lb_outfile_place(const char *path, char *real)
{
    struct stat st;
    if (lstat(path, &st) || !S_ISLNK(st.st_mode)) return path;
    const char *to = realpath(path, real);
    return to ? to : path;
}

/* The directory of path in dir, which has PATH_MAX bytes; false: too long,
 * which opening it reports. */
static bool parent_of(const char *path, char *dir)
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    if (n >= PATH_MAX) return false;
    memcpy(dir, n ? path : ".", n ? n : 1);
    dir[n ? n : 1] = 0;
    return true;
}

bool lb_outfile_check_parent(lb_ctx *cx, const char *path)
{
    char real[PATH_MAX], dir[PATH_MAX];
    const char *at = lb_outfile_place(path, real);
    if (!parent_of(at, dir) || access(dir, W_OK | X_OK) == 0) return true;
    return lb_fail(cx, LB_E_FILE, "cannot write %s: %s", LB_PATH(at),
                   strerror(errno));
}

bool lb_outfile_check(lb_ctx *cx, const char *path, lb_infile *const *input,
                      int n)
{
    char real[PATH_MAX], partial[PATH_MAX];
    const char *at = lb_outfile_place(path, real);
    const int k = snprintf(partial, sizeof partial, "%s%s", at, suffix);
    if (!may_replace(cx, at, input, n)) return false;
    if (k >= (int)sizeof partial) return true; /* opening it reports that */
    if (!may_replace(cx, partial, input, n) || !lb_outfile_check_parent(cx, at))
        return false;
    const int fd = open(partial, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || lb_fail(cx, LB_E_FILE, "%s: cannot open: %s",
                                          LB_PATH(partial), strerror(errno));
    const bool taken = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    close(fd);
    return !taken || is_busy(cx, partial);
}

bool lb_outfile_check_room(lb_ctx *cx, const char *path, uint64_t size,
                           uint64_t blocks)
{
    char real[PATH_MAX], dir[PATH_MAX], partial[PATH_MAX];
    struct statvfs v;
    struct stat st;
    const char *at = lb_outfile_place(path, real);
    const int n = snprintf(partial, sizeof partial, "%s%s", at, suffix);
    if (n >= (int)sizeof partial || !parent_of(at, dir) || statvfs(dir, &v))
        return true;
    if (stat(partial, &st) == 0) blocks += (uint64_t)st.st_blocks;
    return fits(cx, partial, &v, blocks, size);
}

static lb_outfile *make(lb_ctx *cx, const char *path)
{
    char real[PATH_MAX];
    path = lb_outfile_place(path, real);
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
    return o;
}

static bool resize(lb_ctx *cx, lb_outfile *o, uint64_t size)
{
    return !ftruncate(o->fd, (off_t)size) || cannot(cx, o, "resize", errno);
}

lb_outfile *lb_outfile_open(lb_ctx *cx, const char *path,
                            lb_infile *const *input, int n, uint64_t size)
{
    lb_outfile *o = make(cx, path);
    if (o) o->total = size;
    if (o && open_partial(cx, o, input, n) && resize(cx, o, 0) &&
        has_room(cx, o, size))
        return o;
    lb_outfile_close(cx, o, false, false);
    return NULL;
}

/* ---- files without a name ------------------------------------------------ */

/* False: the file system does not support it, or a partial file exists, which
 * another process may be writing. The lock is for once it has a name. */
static bool open_unnamed(lb_outfile *o)
{
    char dir[PATH_MAX];
    struct stat st;
    if (lstat(o->partial, &st) == 0 || !parent_of(o->path, dir)) return false;
    const int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    if (access(lb_path_of_fd(fd).s, F_OK) || flock(fd, LOCK_EX | LOCK_NB)) {
        close(fd);
        return false;
    }
    o->fd = fd;
    o->unnamed = true;
    return true;
}

lb_outfile *lb_outfile_open_unnamed(lb_ctx *cx, const char *path,
                                    lb_infile *const *input, int n,
                                    uint64_t size, bool sized)
{
    lb_outfile *o = make(cx, path);
    if (o) o->total = size;
    if (o && may_replace(cx, o->path, input, n) &&
        (open_unnamed(o) || open_partial(cx, o, input, n)) &&
        resize(cx, o, 0) && has_room(cx, o, size) &&
        (!sized || resize(cx, o, size)))
        return o;
    lb_outfile_close(cx, o, false, false);
    return NULL;
}

static bool give_name(lb_ctx *cx, lb_outfile *o)
{
    const char *call;
    const int error = lb_name_file(o->fd, o->path, o->partial, &call);
    return !error || (error == EEXIST ? is_busy(cx, o->partial)
                                      : cannot(cx, o, call, error));
}

/* ---- journal ------------------------------------------------------------- */

typedef struct journal_head {
    char magic[16];
    uint64_t job[2]; /* native byte order: resumed on the same machine */
    int64_t n;
    uint64_t size; /* of the file, without the journal */
} journal_head;

static journal_head head_of(const lb_outfile *o, uint64_t job)
{
    return (journal_head){.magic = "lowbit partial 2",
                          .job = {o->journal->job, job},
                          .n = o->journal->n,
                          .size = o->total};
}

static bool read_at(const lb_outfile *o, uint64_t at, void *to, size_t n)
{
    uint8_t *p = to;
    while (n > 0) {
        const ssize_t got = pread(o->fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        p += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return true;
}

/* Reads the records if the partial file is of the same job. */
static bool read_journal(lb_outfile *o, const journal_head *want)
{
    lb_journal *j = o->journal;
    journal_head have;
    const size_t n = (size_t)j->n * LB_RECORD;
    j->same = read_at(o, o->total, &have, sizeof have) &&
              memcmp(&have, want, sizeof have) == 0;
    if (!j->resume || !j->same) return false;
    if (read_at(o, o->total + sizeof have, j->record, n)) return true;
    memset(j->record, 0, n);
    return false;
}

uint64_t lb_outfile_journal_size(int64_t n)
{
    return sizeof(journal_head) + (uint64_t)n * LB_RECORD;
}

uint64_t lb_outfile_stored(const struct stat *st)
{
    const uint64_t size = (uint64_t)st->st_size;
    const uint64_t blocks = (uint64_t)st->st_blocks * 512;
    return blocks < size ? blocks : size;
}

static bool begin_sized(lb_ctx *cx, lb_outfile *o, uint64_t job)
{
    struct stat st;
    lb_journal *j = o->journal;
    if (!j)
        return resize(cx, o, 0) && has_room(cx, o, o->total) &&
               resize(cx, o, o->total);
    const journal_head head = head_of(o, job);
    const uint64_t all = o->total + lb_outfile_journal_size(j->n);
    if (read_journal(o, &head)) return has_room(cx, o, all);
    if (fstat(o->fd, &st) == 0) j->discarded = lb_outfile_stored(&st);
    return resize(cx, o, 0) && has_room(cx, o, all) && resize(cx, o, all) &&
           lb_outfile_patch(cx, o, o->total, &head, sizeof head);
}

lb_outfile *lb_outfile_open_sized(lb_ctx *cx, const char *path,
                                  lb_infile *const *input, int n, uint64_t size,
                                  lb_journal *journal, uint64_t job)
{
    lb_outfile *o = make(cx, path);
    if (o) {
        o->journal = journal;
        o->total = size;
    }
    if (o && open_partial(cx, o, input, n) && begin_sized(cx, o, job)) return o;
    lb_outfile_close(cx, o, false, false);
    return NULL;
}

/* Opens the file that the first rank has made, and reads its journal. */
static bool open_joined(lb_ctx *cx, lb_outfile *o, uint64_t job)
{
    lb_journal *j = o->journal;
    journal_head have = {.magic = ""};
    o->fd = open(o->partial, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (o->fd < 0) return cannot(cx, o, "open", errno);
    if (!j) return true;
    const journal_head want = head_of(o, job);
    if (read_at(o, o->total, &have, sizeof have) &&
        memcmp(&have, &want, sizeof have) == 0 &&
        read_at(o, o->total + sizeof have, j->record, (size_t)j->n * LB_RECORD))
        return true;
    return lb_fail(cx, LB_E_FILE, "%s: another rank is writing another file",
                   LB_PATH(o->partial));
}

lb_outfile *lb_outfile_join(lb_ctx *cx, const char *path, uint64_t size,
                            lb_journal *journal, uint64_t job)
{
    lb_outfile *o = make(cx, path);
    if (o) {
        o->journal = journal;
        o->total = size;
        o->shared = o->joined = true;
    }
    if (o && open_joined(cx, o, job)) return o;
    lb_outfile_close(cx, o, false, false);
    return NULL;
}

/* Writes records [lo, hi). In a shared file only those that are set, one by
 * one: other ranks own the records in between. */
static bool put_records(lb_ctx *cx, lb_outfile *o, int64_t lo, int64_t hi)
{
    const lb_journal *j = o->journal;
    const uint64_t at = o->total + sizeof(journal_head);
    bool ok = true;
    if (!o->shared)
        return lb_outfile_patch(cx, o, at + (uint64_t)lo * LB_RECORD,
                                j->record + lo * LB_RECORD,
                                (size_t)(hi - lo) * LB_RECORD);
    for (int64_t i = lo; ok && i < hi; i++)
        if (j->record[i * LB_RECORD])
            ok = lb_outfile_patch(cx, o, at + (uint64_t)i * LB_RECORD,
                                  j->record + i * LB_RECORD, LB_RECORD);
    return ok;
}

/* Syncs the bytes, then writes the records of them. */
static bool flush_records(lb_ctx *cx, lb_outfile *o, bool sync)
{
    if (sync && fdatasync(o->fd)) return cannot(cx, o, "sync", errno);
    const bool ok = put_records(cx, o, o->lo, o->hi);
    o->lo = o->hi = 0;
    o->loose = 0;
    return ok;
}

/* A record must not reach the disk before its bytes. Syncing every OFTEN bytes
 * also avoids a long wait at the end. */
bool lb_outfile_note(lb_ctx *cx, lb_outfile *o, int64_t i, const void *record,
                     bool sync)
{
    enum { OFTEN = 64 << 20 }; /* bytes */
    lb_journal *j = o->journal;
    if (!j) return true;
    memcpy(j->record + i * LB_RECORD, record, LB_RECORD);
    if (o->lo == o->hi) o->lo = o->hi = i;
    if (i < o->lo) o->lo = i;
    if (i >= o->hi) o->hi = i + 1;
    return (sync && o->loose < OFTEN) || flush_records(cx, o, sync);
}

/* ---- write --------------------------------------------------------------- */

bool lb_outfile_write(lb_ctx *cx, lb_outfile *o, const void *from, size_t n)
{
    const uint8_t *p = from;
    if (o->failed) return false;
    while (n > 0) {
        const ssize_t put = write(o->fd, p, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return cannot_write(cx, o, n, o->at, put ? errno : EIO);
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
        if (put <= 0) return cannot_write(cx, o, n, offset, put ? errno : EIO);
        p += put;
        n -= (size_t)put;
        offset += (uint64_t)put;
        o->loose += (uint64_t)put;
    }
    return true;
}

/* ---- read back ----------------------------------------------------------- */

bool lb_outfile_settle(lb_ctx *cx, lb_outfile *o, bool sync)
{
    if (sync && fdatasync(o->fd)) return cannot(cx, o, "sync", errno);
    (void)posix_fadvise(o->fd, 0, 0, POSIX_FADV_DONTNEED);
    return true;
}

bool lb_outfile_read(lb_ctx *cx, lb_outfile *o, uint64_t offset, void *to,
                     size_t n)
{
    errno = ENODATA; /* unless read_at sets it: the file is too short */
    return read_at(o, offset, to, n) || cannot(cx, o, "read back", errno);
}

/* ---- close --------------------------------------------------------------- */

/* Makes the rename durable. Not every file system supports it, and the file is
 * complete in any case: errors are ignored. */
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

/* close may report bytes that were not written, so it comes before the rename;
 * the lock must last until after it, so a second descriptor holds it. */
static bool commit_partial(lb_ctx *cx, lb_outfile *o, bool sync)
{
    if (o->journal && !resize(cx, o, o->total)) return false;
    if (sync && fsync(o->fd)) return cannot(cx, o, "sync", errno);
    const int fd = o->fd, locked = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (locked < 0) return cannot(cx, o, "keep", errno);
    o->fd = locked;
    if (close(fd)) return cannot(cx, o, "close", errno);
    if (o->unnamed) {
        if (!give_name(cx, o)) return false;
    } else if (rename(o->partial, o->path)) {
        return cannot(cx, o, "rename", errno);
    }
    if (sync) sync_directory(o);
    return true;
}

bool lb_outfile_publish(lb_ctx *cx, lb_outfile *o)
{
    if (rename(o->partial, o->path)) return cannot(cx, o, "rename", errno);
    o->joined = true; /* the directory's writer removes it */
    return true;
}

static bool has_record(const lb_journal *j)
{
    for (int64_t i = 0; i < j->n; i++)
        if (j->record[i * LB_RECORD]) return true;
    return false;
}

/* Whether the partial file of a cancelled job stays, to be resumed: then its
 * journal is complete. Other ranks may have records of a shared file. */
static bool keep_partial(lb_ctx *cx, lb_outfile *o, bool sync)
{
    return o->journal && !o->failed && lb_error_status(cx) == LB_E_CANCELLED &&
           (o->shared || has_record(o->journal)) && flush_records(cx, o, sync);
}

/* Closes one of several descriptors of a shared file: another rank, or
 * lb_outfile_publish, renames it. */
static bool leave(lb_ctx *cx, lb_outfile *o, bool commit, bool sync)
{
    bool ok = commit && !o->failed;
    const int fd = o->fd;
    if (fd >= 0 && !ok) (void)keep_partial(cx, o, sync);
    if (ok && sync && fsync(fd)) ok = cannot(cx, o, "sync", errno);
    if (fd >= 0 && close(fd) && ok) ok = cannot(cx, o, "close", errno);
    lb_heap_free(o->heap, o, o->got);
    return ok;
}

bool lb_outfile_close(lb_ctx *cx, lb_outfile *o, bool commit, bool sync)
{
    if (!o) return false;
    if (o->joined) return leave(cx, o, commit, sync);
    const bool opened = o->fd >= 0;
    const bool done = commit && !o->failed && commit_partial(cx, o, sync);
    if (opened && !done && !o->unnamed && !keep_partial(cx, o, sync))
        unlink(o->partial); /* while it is locked */
    if (opened) close(o->fd);
    lb_heap_free(o->heap, o, o->got);
    return done;
}
