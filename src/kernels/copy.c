/* copy.c - see copy.h. SSE2 is part of every x86-64, so it needs no level. */
#include "kernels/copy.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

void lb_copy_stream(void *dst, const void *src, size_t bytes)
{
#if defined(__SSE2__)
    char *d = dst;
    const char *s = src;
    const size_t head = (size_t)(-(uintptr_t)d & 63);
    if (bytes >= head + 64) {
        memcpy(d, s, head);
        const size_t body = (bytes - head) & ~(size_t)63;
        for (size_t i = head; i < head + body; i += 64) {
            const __m128i a = _mm_loadu_si128((const __m128i *)(s + i));
            const __m128i b = _mm_loadu_si128((const __m128i *)(s + i + 16));
            const __m128i c = _mm_loadu_si128((const __m128i *)(s + i + 32));
            const __m128i e = _mm_loadu_si128((const __m128i *)(s + i + 48));
            _mm_stream_si128((__m128i *)(d + i), a);
            _mm_stream_si128((__m128i *)(d + i + 16), b);
            _mm_stream_si128((__m128i *)(d + i + 32), c);
            _mm_stream_si128((__m128i *)(d + i + 48), e);
        }
        memcpy(d + head + body, s + head + body, bytes - head - body);
        _mm_sfence();
        return;
    }
#endif
    memcpy(dst, src, bytes);
}

/* Strips of eight columns: eight lines are written to at a time, and each
 * line that is read is used up before it leaves the first cache. */
#define TRANSPOSE(T)                                                           \
    do {                                                                       \
        const T *s = src;                                                      \
        T *d = dst;                                                            \
        for (int64_t c0 = 0; c0 < cols; c0 += 8) {                             \
            const int64_t c1 = c0 + 8 < cols ? c0 + 8 : cols;                  \
            for (int64_t r = 0; r < rows; r++)                                 \
                for (int64_t c = c0; c < c1; c++)                              \
                    d[c * dst_step + r] = s[r * src_step + c];                 \
        }                                                                      \
    } while (0)

#if defined(__SSE2__)
static void transpose4(const float *src, int64_t src_step, float *dst,
                       int64_t dst_step)
{
    __m128 a = _mm_loadu_ps(src), b = _mm_loadu_ps(src + src_step);
    __m128 c = _mm_loadu_ps(src + 2 * src_step);
    __m128 d = _mm_loadu_ps(src + 3 * src_step);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(dst, a);
    _mm_storeu_ps(dst + dst_step, b);
    _mm_storeu_ps(dst + 2 * dst_step, c);
    _mm_storeu_ps(dst + 3 * dst_step, d);
}
#endif

static void transpose_32(const void *src, int64_t src_step, void *dst,
                         int64_t dst_step, int64_t rows, int64_t cols)
{
#if defined(__SSE2__)
    const float *s = src;
    float *d = dst;
    const int64_t r4 = rows & ~(int64_t)3, c4 = cols & ~(int64_t)3;
    for (int64_t r = 0; r < r4; r += 4)
        for (int64_t c = 0; c < c4; c += 4)
            transpose4(s + r * src_step + c, src_step, d + c * dst_step + r,
                       dst_step);
    /* What is left: columns past c4 of all rows, rows past r4 of the rest. */
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < r4 ? c4 : 0; c < cols; c++)
            memcpy(&d[c * dst_step + r], &s[r * src_step + c], sizeof *s);
#else
    TRANSPOSE(uint32_t);
#endif
}

void lb_copy_transposed(const void *src, int64_t src_step, void *dst,
                        int64_t dst_step, int64_t rows, int64_t cols,
                        size_t size)
{
    switch (size) {
    case 1:
        TRANSPOSE(uint8_t);
        return;
    case 2:
        TRANSPOSE(uint16_t);
        return;
    case 4:
        transpose_32(src, src_step, dst, dst_step, rows, cols);
        return;
    case 8:
        TRANSPOSE(uint64_t);
        return;
    default:
        return;
    }
}
