/* unpack_avx512.c - codes to elements of a float dtype with AVX-512; see
 * kernels/unpack.h.
 *
 * Vectors of numbers as decode_avx512.c makes them, or of 16 bits, in the order
 * of memory, to lines (unpack_avx512.h). Codes that are few are looked up in
 * tables that hold their numbers, which scales are multiplied into; those of 16
 * bits stand in unpack_tables_avx512.c. The dtype is a constant wherever it is
 * an argument called d.
 */
#include "kernels/unpack.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/convert.h"
#include "kernels/x86/unpack_bytes_avx512.h"

static const lb_spans all_one = {NULL, INT64_MAX, INT64_MAX};

static int64_t step_of(lb_sink to)
{
    return to.dtype == LB_F32 ? FLOATS : SOME;
}

/* ---- bytes --------------------------------------------------------------- */

AVX512 static void put_wild(lb_lines *l, const lb_dtype d, const float *x)
{
    uint32_t line[16];
    lb_store_run(LB_C_F32, x, d, d == LB_F32 ? FLOATS : SOME, line);
    lb_lines_put(l, _mm512_loadu_si512((const void *)line));
}

AVX512 LB_INLINE void bytes_by(const lb_dtype d, const by how,
                               const lb_meaning meaning, const int8_t *code,
                               int64_t n, const lb_spans *s, lb_sink to)
{
    const int step = d == LB_F32 ? FLOATS : SOME;
    lb_lines l = lb_lines_begin(to);
    int64_t i = 0, end = lb_span_first(*s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(*s, end, n)) {
        const float v = s->value[k];
        const factors f = factors_of(how, v);
        for (float x[SOME]; is_wild(how, v) && i < end; i += step) {
            lb_decode_ref.bytes(meaning, code + i, step,
                                (lb_spans){&v, step, step}, x);
            put_wild(&l, d, x);
        }
        for (; i + 64 <= end; i += 64) {
            LB_FETCH(code + i, AHEAD);
            for (int m = 0; m < 64; m += step)
                put_bytes(d, &l, how, code + i + m, f);
        }
        for (; i < end; i += step)
            put_bytes(d, &l, how, code + i, f);
    }
    lb_lines_end(&l);
}

AVX512 LB_INLINE void bytes_to(const lb_dtype d, lb_meaning meaning,
                               const int8_t *code, int64_t n, const lb_spans *s,
                               lb_sink to)
{
    switch (meaning) {
    case LB_MEANS_ABSMAX:
        bytes_by(d, TWICE, LB_MEANS_ABSMAX, code, n, s, to);
        return;
    case LB_MEANS_INVERSE:
        bytes_by(d, OVER, LB_MEANS_INVERSE, code, n, s, to);
        return;
    default:
        bytes_by(d, TIMES, LB_MEANS_SCALE, code, n, s, to);
    }
}

AVX512 static void bytes_f32(lb_meaning meaning, const int8_t *code, int64_t n,
                             const lb_spans *s, lb_sink to)
{
    bytes_to(LB_F32, meaning, code, n, s, to);
}

AVX512 static void bytes_bf16(lb_meaning meaning, const int8_t *code, int64_t n,
                              const lb_spans *s, lb_sink to)
{
    bytes_to(LB_BF16, meaning, code, n, s, to);
}

AVX512 static void bytes_f16(lb_meaning meaning, const int8_t *code, int64_t n,
                             const lb_spans *s, lb_sink to)
{
    bytes_to(LB_F16, meaning, code, n, s, to);
}

/* A scale for each element, as decoded: in whole vectors. */
AVX512 static void bytes_each(lb_meaning meaning, const int8_t *code, int64_t n,
                              const float *s, lb_sink to)
{
    lb_lines l = lb_lines_begin(to);
    for (int64_t i = 0; i < n; i += 4 * FLOATS) {
        _Alignas(64) float x[4 * FLOATS];
        const int64_t m = n - i < 4 * FLOATS ? n - i : 4 * FLOATS;
        LB_FETCH(code + i, AHEAD);
        lb_decode_avx512.bytes(meaning, code + i, m, (lb_spans){s + i, 1, 1},
                               x);
        for (int64_t j = 0; j < m; j += FLOATS)
            lb_lines_put_ps(&l, _mm512_load_ps(x + j));
    }
    lb_lines_end(&l);
}

static bool bytes_avx512(lb_meaning meaning, const int8_t *code, int64_t n,
                         const lb_spans *s, lb_sink to)
{
    const bool each = s->each == 1 && s->head == 1;
    if (each && to.dtype == LB_F32 &&
        lb_unpack_takes(to, n, &all_one, FLOATS)) {
        bytes_each(meaning, code, n, s->value, to);
        return true;
    }
    if (!lb_unpack_takes(to, n, s, step_of(to)))
        return lb_unpack_kernel_avx2.bytes(meaning, code, n, s, to);
    if (to.dtype == LB_F32)
        bytes_f32(meaning, code, n, s, to);
    else if (to.dtype == LB_BF16)
        bytes_bf16(meaning, code, n, s, to);
    else
        bytes_f16(meaning, code, n, s, to);
    return true;
}

/* ---- halves of bytes ----------------------------------------------------- */

/* Eight bytes to 16 numbers: see decode_avx512.c. */
AVX512 LB_INLINE __m512 halves_of(__m512 table, const uint8_t *byte)
{
    const __m512i dword =
        _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m512i shift = _mm512_setr_epi32(4, 0, 12, 8, 20, 16, 28, 24, 4, 0,
                                            12, 8, 20, 16, 28, 24);
    const __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)byte);
    const __m512i v =
        _mm512_permutexvar_epi32(dword, _mm512_castsi128_si512(b));
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(v, shift), table);
}

AVX512 static void halves_f32(const float *level, const uint8_t *byte,
                              int64_t n, const lb_spans *s, lb_sink to)
{
    const __m512 levels = _mm512_loadu_ps(level);
    lb_lines l = lb_lines_begin(to);
    int64_t i = 0, end = lb_span_first(*s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(*s, end, n)) {
        const __m512 t = _mm512_mul_ps(_mm512_set1_ps(s->value[k]), levels);
        for (; i + 64 <= end; i += 64) {
            LB_FETCH(byte + i / 2, AHEAD);
            for (int m = 0; m < 32; m += 8)
                lb_lines_put_ps(&l, halves_of(t, byte + i / 2 + m));
        }
        for (; i < end; i += FLOATS)
            lb_lines_put_ps(&l, halves_of(t, byte + i / 2));
    }
    lb_lines_end(&l);
}

static bool halves_avx512(const float *level, const uint8_t *byte, int64_t n,
                          const lb_spans *s, lb_sink to)
{
    if (!lb_unpack_takes(to, n, s, step_of(to)))
        return lb_unpack_kernel_avx2.halves(level, byte, n, s, to);
    if (to.dtype == LB_F32)
        halves_f32(level, byte, n, s, to);
    else
        lb_unpack_halves_16_avx512(level, byte, n, s, to);
    return true;
}

/* ---- fields -------------------------------------------------------------- */

/* What a scale makes of four codes, in every lane. */
AVX512 LB_INLINE __m512 numbers_of(lb_fields f, float s)
{
    const __m512 code = lb_four_numbers(f.least, f.step);
    const __m512 v = _mm512_set1_ps(s);
    return f.divides ? _mm512_div_ps(code, v) : _mm512_mul_ps(code, v);
}

AVX512 LB_INLINE __m512 ones_of(__m512 zero, __m512 one, const uint8_t *byte)
{
    uint16_t word;
    memcpy(&word, byte, sizeof word);
    return _mm512_mask_blend_ps((__mmask16)word, zero, one);
}

AVX512 LB_INLINE __m512 twos_of(__m512 four, const uint8_t *byte)
{
    const __m512i shift = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18,
                                            20, 22, 24, 26, 28, 30);
    int32_t word;
    memcpy(&word, byte, sizeof word);
    return _mm512_permutevar_ps(
        four, _mm512_srlv_epi32(_mm512_set1_epi32(word), shift));
}

AVX512 LB_INLINE void fields_by(const int bits, lb_fields f,
                                const uint8_t *byte, int64_t n,
                                const lb_spans *s, lb_sink to)
{
    lb_lines l = lb_lines_begin(to);
    int64_t i = 0, end = lb_span_first(*s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(*s, end, n)) {
        const __m512 four = numbers_of(f, s->value[k]);
        const __m512 zero = _mm512_permute_ps(four, 0x00);
        const __m512 one = _mm512_permute_ps(four, 0x55);
        for (; i < end; i += FLOATS) {
            const uint8_t *from = byte + i * bits / 8;
            if (i % 64 == 0) LB_FETCH(from, AHEAD);
            lb_lines_put_ps(&l, bits == 1 ? ones_of(zero, one, from)
                                          : twos_of(four, from));
        }
    }
    lb_lines_end(&l);
}

AVX512 static void fields_f32(lb_fields f, const uint8_t *byte, int64_t n,
                              const lb_spans *s, lb_sink to)
{
    if (f.bits == 1)
        fields_by(1, f, byte, n, s, to);
    else
        fields_by(2, f, byte, n, s, to);
}

static bool fields_avx512(lb_fields f, const uint8_t *byte, int64_t n,
                          const lb_spans *s, lb_sink to)
{
    static const float one = 1;
    const lb_spans unscaled = {&one, n, n};
    if (!s->value) {
        s = &unscaled;
        f.divides = false;
    }
    if (!lb_unpack_takes(to, n, s, step_of(to)))
        return lb_unpack_kernel_avx2.fields(f, byte, n, s, to);
    if (to.dtype == LB_F32)
        fields_f32(f, byte, n, s, to);
    else
        lb_unpack_fields_16_avx512(f, byte, n, s, to);
    return true;
}

/* ---- levels of bytes ----------------------------------------------------- */

/* Loads are all there is to it, and AVX2 has them. */
static bool levels_avx512(const float *level, const uint8_t *code, int64_t n,
                          const lb_spans *s, lb_sink to)
{
    return lb_unpack_kernel_avx2.levels(level, code, n, s, to);
}

const lb_unpack_kernel lb_unpack_kernel_avx512 = {
    .name = "unpack avx512",
    .bytes = bytes_avx512,
    .halves = halves_avx512,
    .fields = fields_avx512,
    .levels = levels_avx512,
    .bytes32 = lb_unpack_bytes32_avx512,
    .halves32 = lb_unpack_halves32_avx512,
    .pairs256 = lb_unpack_pairs256_avx512,
    .trits256 = lb_unpack_trits256_avx512,
};
const lb_unpack_kernel lb_unpack_kernel_vbmi = {
    .name = "unpack vbmi",
    .bytes = bytes_avx512,
    .halves = halves_avx512,
    .fields = fields_avx512,
    .levels = lb_unpack_levels_vbmi,
    .bytes32 = lb_unpack_bytes32_avx512,
    .halves32 = lb_unpack_halves32_avx512,
    .pairs256 = lb_unpack_pairs256_avx512,
    .trits256 = lb_unpack_trits256_avx512,
};
#endif
