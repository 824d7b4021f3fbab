/* infile.h - a file to be read, as bytes.
 *
 * Mapped into memory, or read by pread where that is asked for or mapping
 * fails. Its size is taken once, when it is opened, and every range is held
 * against it by subtraction, so that no sum of what a file says can wrap.
 *
 * Whoever maps a file that another process may shorten meanwhile should ask
 * for pread: reading a map past the new end kills the process.
 */
#ifndef LB_INFILE_H
#define LB_INFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/memory.h"
#include "lowbit_ext.h"

typedef struct lb_infile {
    _Atomic int refs;
    _Atomic uint64_t bytes_read; /* by lb_infile_at and lb_infile_pread */
    lb_heap *heap;
    size_t got; /* of this block */
    const uint8_t *map;
    uint64_t size;
    int fd; /* -1: all is in map */
    bool mapped;
    int64_t changed; /* when, in ns; of memory: 0 */
    dev_t dev; /* which file it is, for lb_outfile_open; of memory: 0, 0 */
    ino_t ino;
    char path[];
} lb_infile;

/* One reference, or NULL and an error. no_map: read by pread. Only regular
 * files. The context must not be in use by another thread. */
lb_infile *lb_infile_open(lb_ctx *cx, const char *path, bool no_map);
/* The same for bytes in memory, which must stay; name: for sentences. */
lb_infile *lb_infile_wrap(lb_ctx *cx, const char *name, const void *bytes,
                          size_t size);
/* Any thread; unref closes with the last one. An array that uses the map in
 * place holds a reference. NULL is fine for unref. */
lb_infile *lb_infile_ref(lb_infile *f);
void lb_infile_unref(lb_infile *f);

/* Whether n bytes from offset on are inside. */
static inline bool lb_infile_has(const lb_infile *f, uint64_t offset,
                                 uint64_t n)
{
    return offset <= f->size && n <= f->size - offset;
}
/* Where they lie, valid while the file is open; NULL if it is not mapped or
 * they are not inside. Any thread. */
const void *lb_infile_at(lb_infile *f, uint64_t offset, uint64_t n);
/* Pages of the map that were looked at no longer count as this process's; they
 * are there when they are looked at again. Any thread. */
void lb_infile_forget(const lb_infile *f);
/* Copies them. 0, or an errno; ENODATA if they are not (any longer) inside.
 * Any thread. */
int lb_infile_pread(lb_infile *f, uint64_t offset, size_t n, void *dst);
/* The same with a sentence. */
bool lb_infile_read(lb_ctx *cx, lb_infile *f, uint64_t offset, size_t n,
                    void *dst);

/* ---- names in sentences -------------------------------------------------- */

/* Text from files and users as it may stand in a sentence, on a terminal and
 * next to numbers that matter more: control characters and what is not ASCII
 * as \xNN, and of a long one some. LB_NAME keeps its begin, LB_PATH its end. */
typedef struct lb_quoted {
    char s[104];
} lb_quoted;
lb_quoted lb_quote(const char *text, size_t n, bool end);
lb_quoted lb_quote_name(const char *name);
lb_quoted lb_quote_path(const char *path);
#define LB_NAME(name) (lb_quote_name(name).s)
#define LB_PATH(path) (lb_quote_path(path).s)

#endif
