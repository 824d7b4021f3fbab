/* stream.c - see stream.h. SSE2 is part of every x86-64, so it needs no level;
 * elsewhere a stream is a copy. */
#include "kernels/stream.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>

enum { LINE = 64 };

static void stream_line(char *d, const char *s)
{
    const __m128i *from = (const __m128i *)s;
    __m128i *to = (__m128i *)d;
    const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2), e = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, e);
}

void lb_stream_copy(void *dst, const void *src, size_t bytes)
{
    char *d = dst;
    const char *s = src;
    const size_t head = (size_t)(-(uintptr_t)d % LINE);
    if (bytes < head + LINE) {
        memcpy(d, s, bytes);
        return;
    }
    const size_t end = bytes - (bytes - head) % LINE;
    memcpy(d, s, head);
    for (size_t i = head; i < end; i += LINE)
        stream_line(d + i, s + i);
    memcpy(d + end, s + end, bytes - end);
}

void lb_stream_end(void)
{
    _mm_sfence(); /* streaming stores are not ordered otherwise */
}
#else
void lb_stream_copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void lb_stream_end(void) {}
#endif

lb_stream_fn *lb_stream_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return lb_stream_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return lb_stream_avx2;
#endif
    (void)cpu;
    return lb_stream_copy;
}
