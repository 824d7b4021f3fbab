/* stream.h - copies past the caches, for results much larger than they are:
 * the caches stay warm, and lines that are replaced are not read first. */
#ifndef LB_STREAM_H
#define LB_STREAM_H

#include <stddef.h>

/* As memcpy. */
void lb_stream_copy(void *dst, const void *src, size_t bytes);
/* To be called by the thread that streamed, before others read the result. */
void lb_stream_end(void);

#endif
