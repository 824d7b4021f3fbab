/* stream.h - copies past the caches, for results much larger than they are:
 * the caches stay warm, and lines that are replaced are not read first. */
#ifndef LB_STREAM_H
#define LB_STREAM_H

#include <stddef.h>

#include "lowbit_ext.h"

/* As memcpy. */
typedef void lb_stream_fn(void *dst, const void *src, size_t bytes);
lb_stream_fn lb_stream_copy;
/* The strongest of a level: with wider stores more of them are under way. */
lb_stream_fn *lb_stream_for(const lb_cpu *cpu);
#if defined(__x86_64__)
lb_stream_fn lb_stream_avx2, lb_stream_avx512;
#endif
/* To be called by the thread that streamed, before others read the result. */
void lb_stream_end(void);

#endif
