/* chunks.h - reads an array of any size in chunks of a few megabytes that all
 * threads share. */
#ifndef LB_CHUNKS_H
#define LB_CHUNKS_H

#include "lowbit_io.h"

/* Elements of a chunk, and of the part that a thread processes at a time. */
enum { LB_CHUNK = 1 << 21, LB_CHUNK_PART = 1 << 14 };

/* The dtype that represents the values of d exactly: f32 or f64. */
lb_dtype lb_chunk_dtype(lb_dtype d);
/* Elements lo <= i < hi of a vector, dense; valid in the current scope. NULL
 * and an error on failure. */
const void *lb_chunk(lb_ctx *cx, lb_array *a, lb_dtype as, int64_t lo,
                     int64_t hi);

#endif
