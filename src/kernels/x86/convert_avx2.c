/* convert_avx2.c - conversions between f32 and 16 bits or f64 with AVX2, F16C.
 *
 * Bits are those of convert.c, NaNs included: F16C makes a NaN of f32 to that
 * of f16 as we do, but marks signalling NaNs of f16 as quiet, which loading
 * must not. Whatever is not here is left to the portable functions.
 */
#include "kernels/convert.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define AVX2 LB_TARGET("avx2,fma,f16c")

enum { NEAREST = 0, SOME = 16 }; /* a rounding; elements to a step */

/* ---- f16 ---------------------------------------------------------------- */

AVX2 static int64_t f32_from_f16(const uint16_t *src, int64_t n, float *dst)
{
    const __m256i size = _mm256_set1_epi16(0x7fff);
    const __m256i inf = _mm256_set1_epi16(0x7c00);
    int64_t i = 0;
    for (; i + SOME <= n; i += SOME) {
        const __m256i h =
            _mm256_loadu_si256((const __m256i *)(const void *)(src + i));
        const __m256i nan = _mm256_cmpgt_epi16(_mm256_and_si256(h, size), inf);
        if (!_mm256_testz_si256(nan, nan)) {
            lb_load_run(LB_F16, src + i, 1, SOME, dst + i);
            continue;
        }
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm256_castsi256_si128(h)));
        _mm256_storeu_ps(dst + i + 8,
                         _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1)));
    }
    return i;
}

AVX2 static int64_t f16_from_f32(const float *src, int64_t n, uint16_t *dst)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(dst + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(src + i), NEAREST));
    return i;
}

AVX2 static int64_t round_f16(int64_t n, float *x)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(x + i, _mm256_cvtph_ps(_mm256_cvtps_ph(
                                    _mm256_loadu_ps(x + i), NEAREST)));
    return i;
}

/* ---- bf16 --------------------------------------------------------------- */

/* Eight numbers rounded to bf16, in the high halves of dwords; the low ones
 * are anything, and NaNs wrong. */
AVX2 LB_INLINE __m256i high_halves(__m256 x)
{
    const __m256i u = _mm256_castps_si256(x), one = _mm256_set1_epi32(1);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), one);
    return _mm256_add_epi32(u,
                            _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
}

/* Both compared at once: each lane says whether either is a NaN. */
AVX2 LB_INLINE bool any_nan(__m256 a, __m256 b)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)) != 0;
}

AVX2 static int64_t f32_from_bf16(const uint16_t *src, int64_t n, float *dst)
{
    const __m256i zero = _mm256_setzero_si256();
    int64_t i = 0;
    for (; i + SOME <= n; i += SOME) {
        /* quarters 0 2 1 3, for unpacking works within halves */
        const __m256i b = _mm256_permute4x64_epi64(
            _mm256_loadu_si256((const __m256i *)(const void *)(src + i)), 0xd8);
        _mm256_storeu_ps(dst + i,
                         _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, b)));
        _mm256_storeu_ps(dst + i + 8,
                         _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, b)));
    }
    return i;
}

AVX2 static int64_t bf16_from_f32(const float *src, int64_t n, uint16_t *dst)
{
    int64_t i = 0;
    for (; i + SOME <= n; i += SOME) {
        const __m256 a = _mm256_loadu_ps(src + i);
        const __m256 b = _mm256_loadu_ps(src + i + 8);
        if (any_nan(a, b)) {
            lb_store_run(LB_C_F32, src + i, LB_BF16, SOME, dst + i);
            continue;
        }
        const __m256i both =
            _mm256_packus_epi32(_mm256_srli_epi32(high_halves(a), 16),
                                _mm256_srli_epi32(high_halves(b), 16));
        _mm256_storeu_si256((__m256i *)(void *)(dst + i),
                            _mm256_permute4x64_epi64(both, 0xd8));
    }
    return i;
}

AVX2 static int64_t round_bf16(int64_t n, float *x)
{
    const __m256i high = _mm256_set1_epi32(-0x10000);
    int64_t i = 0;
    for (; i + SOME <= n; i += SOME) {
        const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
        if (any_nan(a, b)) {
            lb_round_run(LB_BF16, SOME, x + i);
            continue;
        }
        const __m256i r = _mm256_and_si256(high_halves(a), high);
        const __m256i t = _mm256_and_si256(high_halves(b), high);
        _mm256_storeu_ps(x + i, _mm256_castsi256_ps(r));
        _mm256_storeu_ps(x + i + 8, _mm256_castsi256_ps(t));
    }
    return i;
}

/* ---- f64 ---------------------------------------------------------------- */

AVX2 static int64_t f64_from_f32(const float *src, int64_t n, double *dst)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        _mm256_storeu_pd(dst + i, _mm256_cvtps_pd(_mm_loadu_ps(src + i)));
    return i;
}

AVX2 static int64_t f32_from_f64(const double *src, int64_t n, float *dst)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        _mm_storeu_ps(dst + i, _mm256_cvtpd_ps(_mm256_loadu_pd(src + i)));
    return i;
}

/* ---- runs --------------------------------------------------------------- */

static void load_avx2(lb_dtype dtype, const void *src, int64_t step, int64_t n,
                      void *dst)
{
    int64_t i = 0;
    if (step == 1 && dtype == LB_F16)
        i = f32_from_f16(src, n, dst);
    else if (step == 1 && dtype == LB_BF16)
        i = f32_from_bf16(src, n, dst);
    if (i == 0)
        lb_load_run(dtype, src, step, n, dst);
    else
        lb_load_run(dtype, (const uint16_t *)src + i, 1, n - i,
                    (float *)dst + i);
}

static void store_avx2(lb_ctype ctype, const void *tile, lb_dtype dtype,
                       int64_t n, void *dst)
{
    int64_t i = 0;
    if (ctype == LB_C_F32 && dtype == LB_F16 && LB_EXACT)
        i = f16_from_f32(tile, n, dst);
    else if (ctype == LB_C_F32 && dtype == LB_BF16)
        i = bf16_from_f32(tile, n, dst);
    else if (ctype == LB_C_F32 && dtype == LB_F64)
        i = f64_from_f32(tile, n, dst);
    else if (ctype == LB_C_F64 && dtype == LB_F32)
        i = f32_from_f64(tile, n, dst);
    lb_store_run(ctype, (const char *)tile + (size_t)i * lb_ctype_size(ctype),
                 dtype, n - i, (char *)dst + (size_t)i * lb_dtype_size(dtype));
}

static void round_avx2(lb_dtype dtype, int64_t n, void *dst)
{
    int64_t i = 0;
    if (dtype == LB_F16 && LB_EXACT)
        i = round_f16(n, dst);
    else if (dtype == LB_BF16)
        i = round_bf16(n, dst);
    else {
        lb_round_run(dtype, n, dst);
        return;
    }
    lb_round_run(dtype, n - i, (float *)dst + i);
}

const lb_convert_kernel lb_convert_avx2 = {"convert avx2", load_avx2,
                                           store_avx2, round_avx2};
#endif
