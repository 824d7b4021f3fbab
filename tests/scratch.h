/* scratch.h - files of a test's own, in $TMPDIR or else in /tmp. */
#ifndef LB_SCRATCH_H
#define LB_SCRATCH_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SCRATCH_MAX = 512 };

static inline void scratch_name(char path[SCRATCH_MAX])
{
    const char *in = getenv("TMPDIR");
    snprintf(path, SCRATCH_MAX, "%s/lowbit_XXXXXX", in && *in ? in : "/tmp");
}

/* An empty file, or an empty directory, that was not there before. */
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

#endif
