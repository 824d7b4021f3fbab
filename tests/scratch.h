/* scratch.h - temporary files of a test, in $TMPDIR (default: /tmp). */
#ifndef LB_SCRATCH_H
#define LB_SCRATCH_H

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCRATCH_MAX = 512 };

static inline void scratch_name(char path[SCRATCH_MAX])
{
    const char *in = getenv("TMPDIR");
    snprintf(path, SCRATCH_MAX, "%s/lowbit_XXXXXX", in && *in ? in : "/tmp");
}

/* A new empty file, or a new empty directory. */
static inline bool scratch_file(char path[SCRATCH_MAX])
{
    scratch_name(path);
    const int fd = mkstemp(path);
    return fd >= 0 && !close(fd);
}

static inline bool scratch_dir(char path[SCRATCH_MAX])
{
    scratch_name(path);
    return mkdtemp(path) != NULL;
}

typedef struct scratch_path {
    char s[SCRATCH_MAX + 80];
} scratch_path;

/* DIR/NAME with a suffix, such as ".partial". */
static inline scratch_path scratch_in(const char *dir, const char *name,
                                      const char *more)
{
    scratch_path p;
    const int n = snprintf(p.s, sizeof p.s, "%s/%s%s", dir, name, more);
    if (n < 0 || (size_t)n >= sizeof p.s) abort();
    return p;
}

static inline bool scratch_put(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

/* Whether the file has exactly that content. */
static inline bool scratch_has(const char *path, const char *text)
{
    FILE *f = fopen(path, "rb");
    bool same = f != NULL;
    for (const char *p = text; same && *p; p++)
        same = fgetc(f) == (unsigned char)*p;
    same = same && fgetc(f) == EOF;
    if (f) fclose(f);
    return same;
}

static inline bool scratch_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static inline int scratch_unlink(const char *path, const struct stat *st,
                                 int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

/* Removes a file or a directory tree, if it exists. */
static inline void scratch_remove(const char *path)
{
    enum { FILES_OPEN = 16 };
    (void)nftw(path, scratch_unlink, FILES_OPEN, FTW_DEPTH | FTW_PHYS);
}

#endif
