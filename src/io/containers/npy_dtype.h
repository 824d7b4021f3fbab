/* npy_dtype.h - what one element of numpy's is, from the descr of a header.
 *
 * As numpy.lib.format.descr_to_dtype and numpy.dtype of 2.4 read one: a string
 * ("<f4", "float32", "M8[25us]", "f4,(2,3)i2"), a tuple of a descr and a
 * shape, or a list of fields. Objects of Python are pickled, which is a program
 * and not data: refused.
 */
#ifndef LB_NPY_DTYPE_H
#define LB_NPY_DTYPE_H

#include "io/containers/container.h"
#include "io/util/python_literal.h"

enum { LB_NPY_RANK = 64 }; /* numpy's own limit */

typedef struct lb_npy_dtype {
    char name[48];  /* as numpy writes it, "<f4"; "" if it has fields */
    lb_dtype dtype; /* if it is one of ours; else none */
    int swap;       /* as lb_tensor has it */
    int64_t size;   /* bytes of one; of a sub-array all of it */
    bool array;     /* a sub-array, .. */
    int64_t items;  /* .. of so many; else 1 */
    bool raw;       /* bytes without meaning, or a sub-array */
} lb_npy_dtype;

/* Who asks: f and who are for sentences, arena holds what is only needed
 * meanwhile. */
typedef struct lb_npy_task {
    lb_ctx *cx;
    const lb_infile *f;
    const char *who;
    lb_arena *arena;
} lb_npy_task;

bool lb_npy_dtype_of(const lb_npy_task *k, const lb_py *descr, lb_npy_dtype *d);

#endif
