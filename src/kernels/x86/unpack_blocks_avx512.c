/* unpack_blocks_avx512.c - blocks of GGUF files to elements of a float dtype
 * with AVX-512; see kernels/unpack.h and unpack_avx512.c. */
#include "kernels/unpack.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/unpack_bytes_avx512.h"

static const lb_spans no_scale = {NULL, INT64_MAX, INT64_MAX};

AVX512 LB_INLINE void bytes32_to(const lb_dtype d, const uint8_t *from,
                                 int64_t n, lb_sink to)
{
    const int step = d == LB_F32 ? FLOATS : SOME;
    lb_lines l = lb_lines_begin(to);
    for (int64_t i = 0; i < n; i++, from += 34) {
        const __m512 scale = lb_block_scale(from);
        const factors f = {scale, scale};
        const int8_t *code = (const int8_t *)from + 2;
        LB_FETCH(from, AHEAD);
        const bool wild = (from[1] & 0x7c) == 0x7c; /* an infinity, or a NaN */
        for (int m = 0; m < 32; m += step) {
            if (wild && d == LB_BF16)
                lb_lines_put(
                    &l, lb_halves_of(d, scaled(TIMES, sixteen(code), f),
                                     scaled(TIMES, sixteen(code + FLOATS), f)));
            else
                put_bytes(d, &l, TIMES, code + m, f);
        }
    }
    lb_lines_end(&l);
}

AVX512 static void bytes32_any(const uint8_t *from, int64_t n, lb_sink to)
{
    if (to.dtype == LB_F32)
        bytes32_to(LB_F32, from, n, to);
    else if (to.dtype == LB_BF16)
        bytes32_to(LB_BF16, from, n, to);
    else
        bytes32_to(LB_F16, from, n, to);
}

bool lb_unpack_bytes32_avx512(const uint8_t *from, int64_t n, lb_sink to)
{
    if (!lb_unpack_takes(to, 32 * n, &no_scale, 32))
        return lb_unpack_kernel_avx2.bytes32(from, n, to);
    bytes32_any(from, n, to);
    return true;
}

AVX512 LB_INLINE __m512i dwords(const uint8_t *from)
{
    return _mm512_cvtepu8_epi32(
        _mm_loadu_si128((const __m128i *)(const void *)from));
}

AVX512 static void halves32_f32(const int8_t *level, const uint8_t *from,
                                int64_t n, lb_sink to)
{
    const __m512 levels = _mm512_cvtepi32_ps(sixteen(level));
    lb_lines l = lb_lines_begin(to);
    for (int64_t i = 0; i < n; i++, from += 18) {
        const __m512 t = _mm512_mul_ps(levels, lb_block_scale(from));
        const __m512i b = dwords(from + 2);
        LB_FETCH(from, AHEAD);
        lb_lines_put_ps(&l, _mm512_permutexvar_ps(b, t));
        lb_lines_put_ps(&l, _mm512_permutexvar_ps(_mm512_srli_epi32(b, 4), t));
    }
    lb_lines_end(&l);
}

bool lb_unpack_halves32_avx512(const int8_t *level, const uint8_t *from,
                               int64_t n, lb_sink to)
{
    if (!lb_unpack_takes(to, 32 * n, &no_scale, 32))
        return lb_unpack_kernel_avx2.halves32(level, from, n, to);
    if (to.dtype == LB_F32)
        halves32_f32(level, from, n, to);
    else
        lb_unpack_halves32_16_avx512(level, from, n, to);
    return true;
}

/* -d, 0 * d, d, 2 * d, in every lane. */
AVX512 LB_INLINE __m512 four_signs(const uint8_t *d)
{
    return _mm512_mul_ps(lb_four_numbers(-1, 1), lb_block_scale(d));
}

AVX512 static void pairs256_f32(const uint8_t *from, int64_t n, lb_sink to)
{
    lb_lines l = lb_lines_begin(to);
    for (int64_t i = 0; i < n; i++, from += 66) {
        const __m512 four = four_signs(from + 64);
        LB_FETCH(from, AHEAD);
        for (int m = 0; m < 64; m += 32) {
            __m512i a = dwords(from + m), b = dwords(from + m + 16);
            for (int k = 0; k < 4; k++) {
                lb_lines_put_ps(&l, _mm512_permutevar_ps(four, a));
                lb_lines_put_ps(&l, _mm512_permutevar_ps(four, b));
                a = _mm512_srli_epi32(a, 2);
                b = _mm512_srli_epi32(b, 2);
            }
        }
    }
    lb_lines_end(&l);
}

bool lb_unpack_pairs256_avx512(const uint8_t *from, int64_t n, lb_sink to)
{
    if (!lb_unpack_takes(to, 256 * n, &no_scale, 256))
        return lb_unpack_kernel_avx2.pairs256(from, n, to);
    if (to.dtype == LB_F32)
        pairs256_f32(from, n, to);
    else
        lb_unpack_pairs256_16_avx512(from, n, to);
    return true;
}

/* The first digits to base 3, see decode_avx2.h; then the others remain. */
AVX512 LB_INLINE void put_digits(lb_lines *l, __m512 four, __m512i *fraction)
{
    const __m512i three = _mm512_set1_epi32(3);
    lb_lines_put_ps(
        l, _mm512_permutevar_ps(four, _mm512_mulhi_epu16(*fraction, three)));
    *fraction = _mm512_mullo_epi16(*fraction, three);
}

AVX512 LB_INLINE __m512i fractions(const uint8_t *from)
{
    return _mm512_slli_epi32(dwords(from), 8);
}

AVX512 static void trits256_f32(const uint8_t *from, int64_t n, lb_sink to)
{
    const __m512i power =
        _mm512_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27);
    lb_lines l = lb_lines_begin(to);
    for (int64_t i = 0; i < n; i++, from += 54) {
        const __m512 four = four_signs(from + 52);
        __m512i a = fractions(from), b = fractions(from + 16);
        __m512i c = fractions(from + 32);
        LB_FETCH(from, AHEAD);
        for (int k = 0; k < 5; k++) {
            put_digits(&l, four, &a);
            put_digits(&l, four, &b);
        }
        for (int k = 0; k < 5; k++)
            put_digits(&l, four, &c);
        int32_t word;
        memcpy(&word, from + 48, sizeof word);
        const __m128i last = _mm_set1_epi32(word);
        a = _mm512_mullo_epi16(_mm512_slli_epi32(_mm512_cvtepu8_epi32(last), 8),
                               power);
        put_digits(&l, four, &a);
    }
    lb_lines_end(&l);
}

bool lb_unpack_trits256_avx512(const uint8_t *from, int64_t n, lb_sink to)
{
    if (!lb_unpack_takes(to, 256 * n, &no_scale, 256))
        return lb_unpack_kernel_avx2.trits256(from, n, to);
    if (to.dtype == LB_F32)
        trits256_f32(from, n, to);
    else
        lb_unpack_trits256_16_avx512(from, n, to);
    return true;
}
#endif
