/* stream_avx512.c - copies past the caches, a line to a store; see
 * kernels/stream.h. */
#include "kernels/stream.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/intrin.h"

#define AVX512 LB_TARGET("avx512f")

enum { LINE = 64 };

AVX512 void lb_stream_avx512(void *dst, const void *src, size_t bytes)
{
    char *d = dst;
    const char *s = src;
    const size_t head = (size_t)(-(uintptr_t)d % LINE);
    if (bytes < head + LINE) {
        memcpy(d, s, bytes);
        return;
    }
    const size_t end = bytes - (bytes - head) % LINE;
    if (head) memcpy(d, s, head);
    for (size_t i = head; i < end; i += LINE)
        _mm512_stream_si512((void *)(d + i),
                            _mm512_loadu_si512((const void *)(s + i)));
    if (end < bytes) memcpy(d + end, s + end, bytes - end);
}
#endif
