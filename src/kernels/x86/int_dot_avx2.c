/* int_dot_avx2.c - int_dot.h with vpmaddubsw: |code| times x with its sign,
 * 2 * 128 * 127 < 2^15. */
#include "kernels/int_dot.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define DOT_FN LB_TARGET("avx2,fma") LB_INLINE

typedef struct {
    __m256i half[2];
} dot_ints;
typedef struct {
    __m256 half[2];
} dot_floats;
typedef dot_floats dot_panel;
typedef struct {
    __m256i sign[2], size[2]; /* codes, and their magnitudes */
} dot_codes;

DOT_FN dot_codes dot_take(const int8_t *code)
{
    dot_codes w;
    for (int i = 0; i < 2; i++) {
        w.sign[i] = _mm256_loadu_si256((const __m256i *)(const void *)code + i);
        w.size[i] = _mm256_abs_epi8(w.sign[i]);
    }
    return w;
}

DOT_FN __m256i dot_half(dot_codes w, const int8_t *x, int i)
{
    const __m256i v = _mm256_load_si256((const __m256i *)(const void *)x + i);
    const __m256i two =
        _mm256_maddubs_epi16(w.size[i], _mm256_sign_epi8(v, w.sign[i]));
    return _mm256_madd_epi16(two, _mm256_set1_epi16(1));
}

DOT_FN dot_ints dot_products(dot_codes w, const lb_int_digit *x, int c)
{
    const int8_t *at = x->code + c * LB_INT_CHUNK;
    return (dot_ints){{dot_half(w, at, 0), dot_half(w, at, 1)}};
}

DOT_FN dot_floats dot_convert(dot_ints a)
{
    return (dot_floats){
        {_mm256_cvtepi32_ps(a.half[0]), _mm256_cvtepi32_ps(a.half[1])}};
}

DOT_FN dot_floats dot_fma(dot_floats a, dot_floats b, dot_floats c)
{
    return (dot_floats){{_mm256_fmadd_ps(a.half[0], b.half[0], c.half[0]),
                         _mm256_fmadd_ps(a.half[1], b.half[1], c.half[1])}};
}

DOT_FN dot_floats dot_all(float f)
{
    return (dot_floats){{_mm256_set1_ps(f), _mm256_set1_ps(f)}};
}

DOT_FN dot_floats dot_load(const float *p)
{
    return (dot_floats){{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}};
}

DOT_FN void dot_store(float *p, dot_floats f)
{
    _mm256_storeu_ps(p, f.half[0]);
    _mm256_storeu_ps(p + 8, f.half[1]);
}

DOT_FN float dot_fold(dot_floats f)
{
    const __m256 eight = _mm256_add_ps(f.half[0], f.half[1]);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                   _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

DOT_FN dot_panel dot_scaled(const float *scale, int run)
{
    const __m256 low = _mm256_loadu_ps(scale);
    return (dot_panel){{low, run == 16 ? _mm256_loadu_ps(scale + 8) : low}};
}

/* Scale number `at` in the low half, and number `next` in the high one. */
DOT_FN __m256 dot_pick(__m256 s, int at, int next)
{
    return _mm256_permutevar8x32_ps(
        s, _mm256_setr_epi32(at, at, at, at, next, next, next, next));
}

DOT_FN dot_floats dot_scales(dot_panel p, int c, int run)
{
    if (run == 32)
        return (dot_floats){{dot_pick(p.half[0], 2 * c, 2 * c),
                             dot_pick(p.half[0], 2 * c + 1, 2 * c + 1)}};
    const __m256 s = p.half[c / 2];
    const int at = c % 2 * 4;
    return (dot_floats){{dot_pick(s, at, at + 1), dot_pick(s, at + 2, at + 3)}};
}

DOT_FN dot_floats dot_sixteenths(const float *bias, int run)
{
    if (run == 16) return dot_load(bias);
    const __m256 b = _mm256_loadu_ps(bias);
    return (dot_floats){
        {_mm256_permutevar8x32_ps(b, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
         _mm256_permutevar8x32_ps(b,
                                  _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7))}};
}

#define DOT_ROWS  2
#define DOT_TABLE lb_int_dot_avx2
#define DOT_NAME  "dot of integers avx2"
#include "kernels/int_dot_loops.h"
#endif
