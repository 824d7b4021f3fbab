/* dotint_unpack_avx2.c - codes to bytes, and bytes turned, with AVX2.
 *
 * Shuffles look up bytes in sixteen entries within halves of a register, so
 * codes are first brought to halves in such a way that what comes out is in
 * order. A nibble holds two codes of 2 bits, and looks up either of them.
 */
#include <string.h>

#if defined(__x86_64__)
#include "kernels/x86/dotint_pack.h"
#include "kernels/x86/intrin.h"

LB_TARGET("avx2")
LB_INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

LB_TARGET("avx2")
LB_INLINE void store(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

/* The same sixteen bytes in both halves. */
LB_TARGET("avx2")
LB_INLINE __m256i table(const int8_t *entries)
{
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)(const void *)entries));
}

LB_TARGET("avx2")
LB_INLINE __m256i low(__m256i v)
{
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}

LB_TARGET("avx2")
LB_INLINE __m256i high(__m256i v)
{
    return low(_mm256_srli_epi16(v, 4));
}

/* ---- fields -------------------------------------------------------------- */

/* 32 bytes to 64 numbers. */
LB_TARGET("avx2")
LB_INLINE void unpack_4(__m256i v, __m256i numbers, bool high_first, int8_t *to)
{
    v = _mm256_permute4x64_epi64(v, 0xd8);
    const __m256i l = _mm256_shuffle_epi8(numbers, low(v));
    const __m256i h = _mm256_shuffle_epi8(numbers, high(v));
    const __m256i a = high_first ? h : l, b = high_first ? l : h;
    store(to, _mm256_unpacklo_epi8(a, b));
    store(to + 32, _mm256_unpackhi_epi8(a, b));
}

/* 32 bytes to 128. first and second: the number of a nibble's lower and of its
 * higher half, in the order in which they come. */
LB_TARGET("avx2")
LB_INLINE void unpack_2(__m256i v, __m256i first, __m256i second,
                        bool high_first, int8_t *to)
{
    v = _mm256_permutevar8x32_epi32(v,
                                    _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    const __m256i l = low(v), h = high(v);
    const __m256i n0 = high_first ? h : l, n1 = high_first ? l : h;
    const __m256i a = _mm256_shuffle_epi8(first, n0);
    const __m256i b = _mm256_shuffle_epi8(second, n0);
    const __m256i c = _mm256_shuffle_epi8(first, n1);
    const __m256i d = _mm256_shuffle_epi8(second, n1);
    const __m256i ab0 = _mm256_unpacklo_epi8(a, b);
    const __m256i ab1 = _mm256_unpackhi_epi8(a, b);
    const __m256i cd0 = _mm256_unpacklo_epi8(c, d);
    const __m256i cd1 = _mm256_unpackhi_epi8(c, d);
    store(to, _mm256_unpacklo_epi16(ab0, cd0));
    store(to + 32, _mm256_unpackhi_epi16(ab0, cd0));
    store(to + 64, _mm256_unpacklo_epi16(ab1, cd1));
    store(to + 96, _mm256_unpackhi_epi16(ab1, cd1));
}

/* 4 bytes to 32: each is spread over eight places, which test a bit each. */
LB_TARGET("avx2")
LB_INLINE void unpack_1(int32_t bits, __m256i bit, __m256i zero, __m256i change,
                        int8_t *to)
{
    const __m256i spread =
        _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2,
                         2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i v = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread);
    const __m256i on = _mm256_cmpeq_epi8(_mm256_and_si256(v, bit), bit);
    store(to, _mm256_xor_si256(zero, _mm256_and_si256(on, change)));
}

/* ---- runs ---------------------------------------------------------------- */

LB_TARGET("avx2")
static void run_4(bool high_first, const int8_t *number, int64_t n,
                  const uint8_t *codes, int8_t *to)
{
    const __m256i numbers = table(number);
    for (; n >= 64; n -= 64, codes += 32, to += 64)
        unpack_4(load(codes), numbers, high_first, to);
    if (!n) return;
    uint8_t rest[32] = {0};
    int8_t out[64];
    memcpy(rest, codes, (size_t)(n + 1) / 2);
    unpack_4(load(rest), numbers, high_first, out);
    memcpy(to, out, (size_t)n);
}

LB_TARGET("avx2")
static void run_2(bool high_first, const int8_t *number, int64_t n,
                  const uint8_t *codes, int8_t *to)
{
    int8_t lower[16], higher[16];
    for (int i = 0; i < 16; i++) {
        lower[i] = number[i & 3];
        higher[i] = number[i >> 2];
    }
    const __m256i first = table(high_first ? higher : lower);
    const __m256i second = table(high_first ? lower : higher);
    for (; n >= 128; n -= 128, codes += 32, to += 128)
        unpack_2(load(codes), first, second, high_first, to);
    if (!n) return;
    uint8_t rest[32] = {0};
    int8_t out[128];
    memcpy(rest, codes, (size_t)(n + 3) / 4);
    unpack_2(load(rest), first, second, high_first, out);
    memcpy(to, out, (size_t)n);
}

LB_TARGET("avx2")
static void run_1(bool high_first, const int8_t *number, int64_t n,
                  const uint8_t *codes, int8_t *to)
{
    const __m256i up = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    const __m256i down = _mm256_set1_epi64x(0x0102040810204080);
    const __m256i bit = high_first ? down : up;
    const __m256i zero = _mm256_set1_epi8(number[0]);
    const __m256i change = _mm256_xor_si256(zero, _mm256_set1_epi8(number[1]));
    int32_t bits = 0;
    for (; n >= 32; n -= 32, codes += 4, to += 32) {
        memcpy(&bits, codes, sizeof bits);
        unpack_1(bits, bit, zero, change, to);
    }
    if (!n) return;
    int8_t out[32];
    bits = 0;
    memcpy(&bits, codes, (size_t)(n + 7) / 8);
    unpack_1(bits, bit, zero, change, out);
    memcpy(to, out, (size_t)n);
}

void lb_unpack_avx2(int bits, bool high_first, const int8_t *number, int64_t n,
                    const uint8_t *codes, int8_t *to)
{
    if (bits == 4)
        run_4(high_first, number, n, codes, to);
    else if (bits == 2)
        run_2(high_first, number, n, codes, to);
    else
        run_1(high_first, number, n, codes, to);
}

/* ---- turning ------------------------------------------------------------- */

/* One round of the 16x16 transpose, of both halves at once: lines l and l + 8
 * are interleaved. After four rounds line p has byte p of every line. */
LB_TARGET("avx2")
LB_INLINE void interleave(const __m256i *from, __m256i *to)
{
    LB_UNROLL
    for (int l = 0; l < 8; l++) {
        to[2 * l] = _mm256_unpacklo_epi8(from[l], from[l + 8]);
        to[2 * l + 1] = _mm256_unpackhi_epi8(from[l], from[l + 8]);
    }
}

LB_TARGET("avx2")
void lb_turn_lines_avx2(const int8_t *const *line, int64_t n, int8_t *to,
                        int64_t ld)
{
    for (int64_t p = 0; p < n; p += 32, to += 32 * ld) {
        __m256i a[16], b[16];
        LB_UNROLL
        for (int l = 0; l < 16; l++)
            a[l] = load(line[l] + p);
        interleave(a, b);
        interleave(b, a);
        interleave(a, b);
        interleave(b, a);
        LB_UNROLL
        for (int l = 0; l < 16; l++) {
            _mm_storeu_si128((__m128i *)(void *)(to + l * ld),
                             _mm256_castsi256_si128(a[l]));
            _mm_storeu_si128((__m128i *)(void *)(to + (l + 16) * ld),
                             _mm256_extracti128_si256(a[l], 1));
        }
    }
}
#endif
