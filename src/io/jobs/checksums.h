/* checksums.h - sums of what an array's tensors were written with, by which
 * they are known again when they are read back. */
#ifndef LB_CHECKSUMS_H
#define LB_CHECKSUMS_H

#define XXH_STATIC_LINKING_ONLY /* for the size of a state */
#include <xxhash.h>

#include "io/layouts/entries.h"
#include "io/util/outfile.h"

/* Of the array being written; bytes of each tensor come in their order. */
typedef struct lb_readback {
    XXH64_state_t tensor[LB_GROUP_MOST];
} lb_readback;

void lb_readback_begin(lb_readback *r);
void lb_readback_add(lb_readback *r, int k, const void *bytes, size_t n);
/* Of its first n tensors. */
uint64_t lb_readback_sum(const lb_readback *r, int n);

/* The same of n tensors of a file that was written: whether it is sum. False,
 * and an error that names the array. */
bool lb_readback_same(lb_ctx *cx, lb_outfile *o, const char *array,
                      const lb_tensor *tensor, int n, uint64_t sum);
/* Whether it has the header that it should have. */
bool lb_readback_header(lb_ctx *cx, const lb_writer *w);

#endif
