/* int_dot_avx512.h - what int_dot.h has in common with and without VNNI. DOT_FN
 * is set. */
#include "kernels/int_dot.h"
#include "kernels/x86/intrin.h"

typedef __m512i dot_ints;
typedef __m512 dot_floats;
typedef __m512 dot_panel;

DOT_FN dot_floats dot_convert(dot_ints a)
{
    return _mm512_cvtepi32_ps(a);
}

DOT_FN dot_floats dot_fma(dot_floats a, dot_floats b, dot_floats c)
{
    return _mm512_fmadd_ps(a, b, c);
}

DOT_FN dot_floats dot_all(float f)
{
    return _mm512_set1_ps(f);
}

DOT_FN dot_floats dot_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

DOT_FN void dot_store(float *p, dot_floats f)
{
    _mm512_storeu_ps(p, f);
}

DOT_FN float dot_fold(dot_floats f)
{
    const __m256 eight =
        _mm256_add_ps(_mm512_castps512_ps256(f), _mm512_extractf32x8_ps(f, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                   _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* With runs of 32 there are 8 scales. */
DOT_FN dot_panel dot_scaled(const float *p, int run)
{
    return run == 16 ? _mm512_loadu_ps(p)
                     : _mm512_castps256_ps512(_mm256_loadu_ps(p));
}

DOT_FN dot_floats dot_scales(dot_panel p, int c, int run)
{
    const int a = 64 * c / run, b = (64 * c + 16) / run;
    const int d = (64 * c + 32) / run, e = (64 * c + 48) / run;
    return _mm512_permutexvar_ps(
        _mm512_setr_epi32(a, a, a, a, b, b, b, b, d, d, d, d, e, e, e, e), p);
}

DOT_FN dot_floats dot_sixteenths(const float *bias, int run)
{
    const __m512 b = dot_scaled(bias, run);
    if (run == 16) return b;
    return _mm512_permutexvar_ps(
        _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7), b);
}
