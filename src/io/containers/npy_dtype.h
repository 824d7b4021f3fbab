/* npy_dtype.h - parses the dtype (descr) of an npy header.
 *
 * Accepts what numpy.lib.format.descr_to_dtype and numpy.dtype of numpy 2.4
 * accept: a string ("<f4", "float32", "M8[25us]", "f4,(2,3)i2"), a tuple of a
 * descr and a shape, or a list of fields. Python objects are rejected: they are
 * pickled, and loading a pickle runs code.
 */
#ifndef LB_NPY_DTYPE_H
#define LB_NPY_DTYPE_H

#include "io/containers/container.h"
#include "io/util/python_literal.h"

enum { LB_NPY_RANK = 64 }; /* the limit of numpy */

typedef struct lb_npy_dtype {
    char name[48];  /* in numpy's spelling, "<f4"; "" if it has fields */
    lb_dtype dtype; /* the matching dtype; else none */
    int swap;       /* see lb_tensor */
    int64_t size;   /* bytes per element; of a whole sub-array */
    bool array;     /* a sub-array, */
    int64_t items;  /* with so many items; else 1 */
    bool raw;       /* opaque bytes, or a sub-array */
} lb_npy_dtype;

/* f and who are used in messages; arena holds temporary data. */
typedef struct lb_npy_task {
    lb_ctx *cx;
    const lb_infile *f;
    const char *who;
    lb_arena *arena;
} lb_npy_task;

bool lb_npy_dtype_of(const lb_npy_task *k, const lb_py *descr, lb_npy_dtype *d);

#endif
