/* infile.c - input files: mapped, or read by pread. */
#include "io/util/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/core.h"

/* ---- names in sentences -------------------------------------------------- */

/* An escape takes at most four characters and is never split. */
lb_quoted lb_quote(const char *text, size_t n, bool end)
{
    static const char hex[] = "0123456789abcdef";
    enum { ROOM = sizeof(lb_quoted) - sizeof "..." };
    lb_quoted q = {""};
    size_t lo = 0, shown = 0, hi = 0;
    /* characters kept, from either end */
    for (; hi < n; hi++) {
        const unsigned char c = (unsigned char)text[end ? n - 1 - hi : hi];
        const size_t wide = c < 0x20 || c > 0x7e ? 4 : 1;
        if (shown + wide > ROOM) break;
        shown += wide;
    }
    const bool cut = hi < n;
    if (end) lo = n - hi;
    char *to = q.s;
    if (cut && end) to = (char *)memcpy(to, "...", 3) + 3;
    for (size_t i = lo; i < lo + hi; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c <= 0x7e) {
            *to++ = (char)c;
            continue;
        }
        *to++ = '\\';
        *to++ = 'x';
        *to++ = hex[c >> 4];
        *to++ = hex[c & 15];
    }
    if (cut && !end) to = (char *)memcpy(to, "...", 3) + 3;
    *to = 0;
    return q;
}

lb_quoted lb_quote_name(const char *name)
{
    return lb_quote(name, strlen(name), false);
}

lb_quoted lb_quote_path(const char *path)
{
    return lb_quote(path, strlen(path), true);
}

/* ---- open and close ------------------------------------------------------ */

static lb_infile *new_infile(lb_ctx *cx, const char *path)
{
    const size_t n = strlen(path) + 1;
    size_t got;
    lb_infile *f = lb_heap_alloc(cx->heap, sizeof *f + n, &got);
    if (!f) {
        lb_fail(cx, LB_E_NOMEM, "out of memory");
        return NULL;
    }
    *f = (lb_infile){.refs = 1, .heap = cx->heap, .got = got, .fd = -1};
    memcpy(f->path, path, n);
    return f;
}

static bool cannot(lb_ctx *cx, const lb_infile *f, const char *what, int error)
{
    return lb_fail(cx, LB_E_FILE, "%s: cannot %s: %s", LB_PATH(f->path), what,
                   strerror(error));
}

/* Regular files only: opening a pipe would block, and a device has no size. */
static bool open_regular(lb_ctx *cx, lb_infile *f)
{
    struct stat st;
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (f->fd < 0) return cannot(cx, f, "open", errno);
    if (fstat(f->fd, &st)) return cannot(cx, f, "look at", errno);
    if (S_ISDIR(st.st_mode)) return cannot(cx, f, "read", EISDIR);
    if (!S_ISREG(st.st_mode))
        return lb_fail(cx, LB_E_FILE, "%s: not a regular file",
                       LB_PATH(f->path));
    f->size = (uint64_t)st.st_size;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->changed =
        (int64_t)st.st_mtim.tv_sec * 1000000000 + (int64_t)st.st_mtim.tv_nsec;
    return true;
}

/* The map does not need the descriptor, and a model may have many shards. */
static void try_map(lb_infile *f)
{
    if (f->size == 0 || f->size > SIZE_MAX) return;
    void *map =
        mmap(NULL, (size_t)f->size, PROT_READ, MAP_SHARED, f->fd, (off_t)0);
    if (map == MAP_FAILED) return;
    f->map = map;
    f->mapped = true;
    close(f->fd);
    f->fd = -1;
}

lb_infile *lb_infile_open(lb_ctx *cx, const char *path, bool no_map)
{
    lb_infile *f = new_infile(cx, path);
    if (!f) return NULL;
    if (!open_regular(cx, f)) {
        lb_infile_unref(f);
        return NULL;
    }
    if (!no_map) try_map(f);
    return f;
}

lb_infile *lb_infile_wrap(lb_ctx *cx, const char *name, const void *bytes,
                          size_t size)
{
    lb_infile *f = new_infile(cx, name);
    if (!f) return NULL;
    f->map = bytes;
    f->size = size;
    return f;
}

lb_infile *lb_infile_ref(lb_infile *f)
{
    atomic_fetch_add(&f->refs, 1);
    return f;
}

void lb_infile_unref(lb_infile *f)
{
    if (!f || atomic_fetch_sub(&f->refs, 1) != 1) return;
    if (f->mapped) munmap((void *)(uintptr_t)f->map, (size_t)f->size);
    if (f->fd >= 0) close(f->fd);
    lb_heap_free(f->heap, f, f->got);
}

/* ---- reading ------------------------------------------------------------- */

static void count(lb_infile *f, uint64_t n)
{
    atomic_fetch_add_explicit(&f->bytes_read, n, memory_order_relaxed);
}

const void *lb_infile_at(lb_infile *f, uint64_t offset, uint64_t n)
{
    if (!f->map || !lb_infile_has(f, offset, n)) return NULL;
    count(f, n);
    return f->map + offset;
}

void lb_infile_forget(const lb_infile *f)
{
    if (f->mapped)
        (void)madvise((void *)(uintptr_t)f->map, (size_t)f->size,
                      MADV_DONTNEED);
}

int lb_infile_pread(lb_infile *f, uint64_t offset, size_t n, void *dst)
{
    if (!lb_infile_has(f, offset, n)) return ENODATA;
    if (f->fd < 0) {
        if (n) memcpy(dst, f->map + offset, n);
        count(f, n);
        return 0;
    }
    unsigned char *to = dst;
    while (n > 0) {
        const ssize_t got = pread(f->fd, to, n, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0)
            return ENODATA; /* the file has become shorter since it
                                       * was opened */
        to += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
        count(f, (uint64_t)got);
    }
    return 0;
}

bool lb_infile_read(lb_ctx *cx, lb_infile *f, uint64_t offset, size_t n,
                    void *dst)
{
    const int error = lb_infile_pread(f, offset, n, dst);
    if (!error) return true;
    if (error != ENODATA) return cannot(cx, f, "read", error);
    return lb_fail(cx, LB_E_CONTENT,
                   "%s: truncated: cannot read %zu bytes at offset %llu of a "
                   "file of %llu bytes",
                   LB_PATH(f->path), n, (unsigned long long)offset,
                   (unsigned long long)f->size);
}
