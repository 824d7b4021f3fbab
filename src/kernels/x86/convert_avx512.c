/* convert_avx512.c - 16 bits to f32 with AVX-512; all else as with AVX2.
 *
 * Sources of quantizing are read here, and then looked through for much longer
 * than it took to read them: so lines are asked for ahead, or memory would
 * rest meanwhile. A tenth to a fifth was gained by that; with AVX2, for CPUs
 * that tuning.c knows, it may be lost.
 */
#include "kernels/convert.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define AVX512 LB_TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")

enum { SOME = 32, HALF = 16, AHEAD = 2048 }; /* elements; 4 KiB of them */

LB_INLINE const __m256i *half_of(const uint16_t *src)
{
    return (const __m256i *)(const void *)src;
}

AVX512 static int64_t f32_from_bf16(const uint16_t *src, int64_t n, float *dst)
{
    int64_t i = 0;
    for (; i + SOME <= n; i += SOME) {
        LB_FETCH(src + i, AHEAD);
        LB_UNROLL for (int k = 0; k < SOME; k += HALF)
        {
            const __m512i b =
                _mm512_cvtepu16_epi32(_mm256_loadu_si256(half_of(src + i + k)));
            _mm512_storeu_si512((void *)(dst + i + k),
                                _mm512_slli_epi32(b, 16));
        }
    }
    return i;
}

/* NaNs as they are, see convert_avx2.c. */
AVX512 static int64_t f32_from_f16(const uint16_t *src, int64_t n, float *dst)
{
    const __m512i size = _mm512_set1_epi16(0x7fff);
    const __m512i inf = _mm512_set1_epi16(0x7c00);
    int64_t i = 0;
    for (; i + SOME <= n; i += SOME) {
        const __m512i h = _mm512_loadu_si512((const void *)(src + i));
        LB_FETCH(src + i, AHEAD);
        if (_mm512_cmpgt_epi16_mask(_mm512_and_si512(h, size), inf)) {
            lb_load_run(LB_F16, src + i, 1, SOME, dst + i);
            continue;
        }
        LB_UNROLL for (int k = 0; k < SOME; k += HALF) _mm512_storeu_ps(
            dst + i + k,
            _mm512_cvtph_ps(_mm256_loadu_si256(half_of(src + i + k))));
    }
    return i;
}

static void load_avx512(lb_dtype dtype, const void *src, int64_t step,
                        int64_t n, void *dst)
{
    int64_t i = 0;
    if (step == 1 && dtype == LB_F16)
        i = f32_from_f16(src, n, dst);
    else if (step == 1 && dtype == LB_BF16)
        i = f32_from_bf16(src, n, dst);
    if (i == 0)
        lb_convert_avx2.load(dtype, src, step, n, dst);
    else
        lb_convert_avx2.load(dtype, (const uint16_t *)src + i, 1, n - i,
                             (float *)dst + i);
}

static void store_avx512(lb_ctype ctype, const void *tile, lb_dtype dtype,
                         int64_t n, void *dst)
{
    lb_convert_avx2.store(ctype, tile, dtype, n, dst);
}

static void round_avx512(lb_dtype dtype, int64_t n, void *dst)
{
    lb_convert_avx2.round(dtype, n, dst);
}

const lb_convert_kernel lb_convert_avx512 = {"convert avx512", load_avx512,
                                             store_avx512, round_avx512};
#endif
