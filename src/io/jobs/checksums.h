/* checksums.h - checksums of written arrays, for verification. */
#ifndef LB_CHECKSUMS_H
#define LB_CHECKSUMS_H

#define XXH_STATIC_LINKING_ONLY /* room for the state of the hash */
#include <xxhash.h>

#include "io/layouts/entries.h"
#include "io/util/outfile.h"

/* Of the array being written; its tensors' bytes are added in order. */
typedef struct lb_readback {
    XXH64_state_t tensor[LB_GROUP_MOST];
} lb_readback;

void lb_readback_begin(lb_readback *r);
void lb_readback_add(lb_readback *r, int k, const void *bytes, size_t n);
/* The checksum of its first n tensors. */
uint64_t lb_readback_sum(const lb_readback *r, int n);

/* Whether n tensors of a written file have checksum sum. False, and an error
 * that names the array. */
bool lb_readback_same(lb_ctx *cx, lb_outfile *o, const char *array,
                      const lb_tensor *tensor, int n, uint64_t sum);
/* Whether the file has the expected header. */
bool lb_readback_header(lb_ctx *cx, const lb_writer *w);

#endif
