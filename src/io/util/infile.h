/* infile.h - an input file as bytes.
 *
 * The file is mapped, or read by pread if requested or if mapping fails. Its
 * size is taken once, when it is opened. Ranges are checked against it by
 * subtraction, so that no sum of untrusted values can overflow.
 *
 * Use pread for files that another process may truncate meanwhile: reading a
 * map beyond the new end kills the process with SIGBUS.
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
    size_t got; /* allocated size of this block */
    const uint8_t *map;
    uint64_t size;
    int fd; /* -1: the data is in map */
    bool mapped;
    int64_t changed; /* modification time in ns; 0: memory */
    dev_t dev;       /* identity, for lb_outfile_open; 0, 0: memory */
    ino_t ino;
    char path[];
} lb_infile;

/* Returns one reference, or NULL and an error. no_map: read by pread. Regular
 * files only. The context must not be in use by another thread. */
lb_infile *lb_infile_open(lb_ctx *cx, const char *path, bool no_map);
/* The same for bytes in memory, which must outlive the object. name is used in
 * messages. */
lb_infile *lb_infile_wrap(lb_ctx *cx, const char *name, const void *bytes,
                          size_t size);
/* Any thread. unref closes the file with the last reference; NULL is allowed.
 * Arrays that use the map in place hold a reference. */
lb_infile *lb_infile_ref(lb_infile *f);
void lb_infile_unref(lb_infile *f);

/* Whether [offset, offset + n) is inside the file. */
static inline bool lb_infile_has(const lb_infile *f, uint64_t offset,
                                 uint64_t n)
{
    return offset <= f->size && n <= f->size - offset;
}
/* Address of a range, valid while the file is open; NULL if the file is not
 * mapped or the range is outside. Any thread. */
const void *lb_infile_at(lb_infile *f, uint64_t offset, uint64_t n);
/* Drops the map's pages from the resident set of this process; they are read
 * again on the next access. Any thread. */
void lb_infile_forget(const lb_infile *f);
/* Copies a range. Returns 0 or an errno; ENODATA if the range is outside of the
 * file, or is now. Any thread. */
int lb_infile_pread(lb_infile *f, uint64_t offset, size_t n, void *dst);
/* The same with an error message. */
bool lb_infile_read(lb_ctx *cx, lb_infile *f, uint64_t offset, size_t n,
                    void *dst);

/* ---- names in sentences -------------------------------------------------- */

/* Untrusted text (from files and users) in a form that is safe in messages and
 * on terminals: control characters and non-ASCII bytes become \xNN, and long
 * text is shortened. LB_NAME keeps the beginning, LB_PATH the end. */
typedef struct lb_quoted {
    char s[104];
} lb_quoted;
lb_quoted lb_quote(const char *text, size_t n, bool end);
lb_quoted lb_quote_name(const char *name);
lb_quoted lb_quote_path(const char *path);
#define LB_NAME(name) (lb_quote_name(name).s)
#define LB_PATH(path) (lb_quote_path(path).s)

#endif
