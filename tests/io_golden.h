/* io_golden.h - the files in tests/golden/io and their description in
 * listing.txt (its grammar is in tools/gen_io_golden.py). */
#ifndef LB_IO_GOLDEN_H
#define LB_IO_GOLDEN_H

#include "io/containers/container.h"

#define IO_GOLDEN "tests/golden/io/"

typedef struct io_file {
    char path[128]; /* from the project's root */
    char kind[32];
    char twin[128]; /* likewise, or "" */
    long first;     /* where its lines in listing.txt begin */
} io_file;

/* The k-th file; false past the end. */
bool io_file_at(int k, io_file *g);
/* Whether r agrees with the lines of the listing, with the same bytes read
 * whole, in pieces and in place; else false, and where describes the
 * difference. */
bool io_file_same(lb_ctx *cx, const io_file *g, lb_reader *r, char *where,
                  size_t size);
/* The rest of the k-th line that begins with word; false past the end. */
bool io_line(const char *word, int k, char *line, size_t size);

/* All bytes of a file (free them); NULL if it cannot be read. */
uint8_t *io_slurp(const char *path, size_t *n);
/* Whether two files can be read and are equal. */
bool io_same_bytes(const char *a, const char *b);
/* Whether two arrays have the same shape, dtype and bits. */
bool io_same_bits(lb_ctx *cx, lb_array *a, lb_array *b);
/* Writes the tensors of r, in its order, in pieces of `piece` bytes. */
bool io_copy(lb_ctx *cx, lb_reader *r, const lb_container *kind,
             const char *path, size_t piece, const lb_write_options *options);

#endif
