/* stream_avx2.c - copies past the caches with AVX; see kernels/stream.h. */
#include "kernels/stream.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/intrin.h"

#define AVX2 LB_TARGET("avx2")

enum { LINE = 64 };

AVX2 void lb_stream_avx2(void *dst, const void *src, size_t bytes)
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
    for (size_t i = head; i < end; i += LINE) {
        const __m256i *from = (const __m256i *)(const void *)(s + i);
        __m256i *to = (__m256i *)(void *)(d + i);
        const __m256i a = _mm256_loadu_si256(from);
        const __m256i b = _mm256_loadu_si256(from + 1);
        _mm256_stream_si256(to, a);
        _mm256_stream_si256(to + 1, b);
    }
    if (end < bytes) memcpy(d + end, s + end, bytes - end);
}
#endif
