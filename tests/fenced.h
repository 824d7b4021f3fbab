/* fenced.h - memory between two guard pages. */
#ifndef LB_FENCED_H
#define LB_FENCED_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct fenced {
    char *map;
    size_t size; /* of the pages between the guard pages */
    size_t page;
} fenced;

/* Space for at least that many bytes. */
static inline fenced fenced_open(size_t bytes)
{
    fenced f = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    f.size = (bytes / f.page + 1) * f.page;
    f.map = mmap(NULL, f.size + 2 * f.page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f.map == MAP_FAILED || mprotect(f.map, f.page, PROT_NONE) != 0 ||
        mprotect(f.map + f.page + f.size, f.page, PROT_NONE) != 0) {
        perror("mmap");
        exit(1);
    }
    return f;
}

static inline void fenced_close(fenced *f)
{
    munmap(f->map, f->size + 2 * f->page);
}

/* Bytes that are checked on both sides of an output. */
enum { FENCED_BESIDE = 128, FENCED_OTHER = 0x5a };

/* Start of the checked bytes before `at`, and their total size. */
static inline size_t fenced_around(const fenced *f, const char *at,
                                   size_t bytes, char **from)
{
    char *lo = f->map + f->page, *hi = lo + f->size;
    const size_t before = (size_t)(at - lo), after = (size_t)(hi - at) - bytes;
    const size_t some = FENCED_BESIDE;
    *from = lo + (before > some ? before - some : 0);
    return (size_t)(at - *from) + bytes + (after > some ? some : after);
}

/* An output of that many bytes, just before the second guard page or `at` bytes
 * after the first; it and the bytes next to it are filled with a pattern. */
static inline void *fenced_end(const fenced *f, size_t bytes)
{
    char *at = f->map + f->page + f->size - bytes, *from;
    const size_t n = fenced_around(f, at, bytes, &from);
    memset(from, FENCED_OTHER, n);
    return at;
}

static inline void *fenced_begin(const fenced *f, size_t gap, size_t bytes)
{
    char *at = f->map + f->page + gap, *from;
    const size_t n = fenced_around(f, at, bytes, &from);
    memset(from, FENCED_OTHER, n);
    return at;
}

/* Whether the bytes next to the output are unchanged. */
static inline bool fenced_kept(const fenced *f, const void *at, size_t bytes)
{
    char *from;
    const char *first = at;
    const size_t n = fenced_around(f, first, bytes, &from);
    for (size_t i = 0; i < n; i++)
        if ((from + i < first || from + i >= first + bytes) &&
            from[i] != FENCED_OTHER)
            return false;
    return true;
}

#endif
