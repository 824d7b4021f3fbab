/* copy.h - moving bytes: streams and transpositions. Raw pointers only. */
#ifndef LB_COPY_H
#define LB_COPY_H

#include <stddef.h>
#include <stdint.h>

/* memcpy with stores that bypass the caches, for what will not be read again
 * soon: the caches stay warm and the old lines are not read first. */
void lb_copy_stream(void *dst, const void *src, size_t bytes);

/* dst[c*dst_step + r] = src[r*src_step + c] for r < rows, c < cols; steps in
 * elements of size 1, 2, 4 or 8 bytes. */
void lb_copy_transposed(const void *src, int64_t src_step, void *dst,
                        int64_t dst_step, int64_t rows, int64_t cols,
                        size_t size);

#endif
