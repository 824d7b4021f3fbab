/* outfile.h - a file to be written, whole or not at all.
 *
 * Bytes go to PATH.partial, which takes PATH's name when all are there and on
 * the disk. Until then, and whatever goes wrong, what stood at PATH stays.
 */
#ifndef LB_OUTFILE_H
#define LB_OUTFILE_H

#include "io/file.h"

typedef struct lb_outfile {
    lb_heap *heap;
    size_t got;  /* of this block */
    uint64_t at; /* bytes written so far */
    int fd;
    bool failed;      /* a write went wrong: it cannot be committed */
    const char *path; /* behind this struct, as is the next */
    char *partial;
} lb_outfile;

/* Refuses a path that is one of n inputs, by whatever name: they are read
 * while it is written. An old PATH.partial is overwritten. size: bytes to
 * come, if known, which must be free on the disk; else 0. NULL and an error. */
lb_outfile *lb_outfile_open(lb_ctx *cx, const char *path,
                            lb_infile *const *input, int n, uint64_t size);
/* n bytes at the end. */
bool lb_outfile_write(lb_ctx *cx, lb_outfile *o, const void *from, size_t n);
/* n bytes over others at offset, which were written before. */
bool lb_outfile_patch(lb_ctx *cx, lb_outfile *o, uint64_t offset,
                      const void *from, size_t n);
/* Ends it: commit gives it its name, after it is on the disk if sync; else, or
 * if something went wrong before, the partial file is removed. True if there
 * now is a new file at its path, as was asked. NULL is fine. */
bool lb_outfile_close(lb_ctx *cx, lb_outfile *o, bool commit, bool sync);

#endif
