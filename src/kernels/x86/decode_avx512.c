/* decode_avx512.c - codes to numbers with AVX-512.
 *
 * A table of sixteen floats is one register, and vpermps minds only the lowest
 * four bits of its index: halves of bytes need a shift and no mask. Two bits
 * are the index of vpermilps likewise, and single bits are a mask. Ends of
 * spans are done with masks, so that nothing is left to the reference but
 * scales with which the quotient would not be exact. What is a matter of loads,
 * or of few bytes, is that of AVX2.
 */
#include "kernels/decode.h"

#if defined(__x86_64__)
#include <math.h>
#include <string.h>

#include "kernels/x86/intrin.h"

#define AVX512 LB_TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")

/* The first n of 16. */
LB_INLINE __mmask16 first_16(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : (1u << n) - 1);
}

/* ---- bytes --------------------------------------------------------------- */

/* What a scale does to codes. */
typedef enum { TIMES, TWICE, OVER } by;

typedef struct {
    __m512 a, b;
} factors;

/* See decode_avx2.c, here and in is_wild. */
AVX512 LB_INLINE __m512 quotient(__m512 code, factors f)
{
    const __m512 q = _mm512_mul_ps(code, f.b);
    const __m512 rest = _mm512_fnmadd_ps(q, f.a, code);
    return _mm512_fmadd_ps(rest, f.b, q);
}

AVX512 LB_INLINE __m512 scaled(by how, __m512 code, factors f)
{
    if (how == OVER) return quotient(code, f);
    const __m512 y = _mm512_mul_ps(code, f.a);
    return how == TWICE ? _mm512_mul_ps(y, f.b) : y;
}

LB_INLINE bool is_wild(by how, float s)
{
    const float size = fabsf(s);
    if (how == TWICE) return size > 0x1p120f;
    if (how == TIMES) return false;
    return !LB_EXACT || !(size >= 0x1p-100f && size <= 0x1p100f);
}

AVX512 LB_INLINE factors factors_of(by how, float s)
{
    return (factors){_mm512_set1_ps(s),
                     _mm512_set1_ps(how == OVER ? 1.0f / s : 1.0f / 127.0f)};
}

AVX512 LB_INLINE __m512 floats(__m128i code)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(code));
}

AVX512 LB_INLINE __m512 load_16(const int8_t *code)
{
    return floats(_mm_loadu_si128((const __m128i *)(const void *)code));
}

AVX512 LB_INLINE __m512 load_some(const int8_t *code, int64_t n)
{
    return floats(_mm_maskz_loadu_epi8(first_16(n), (const void *)code));
}

AVX512 LB_INLINE void byte_span(by how, const int8_t *code, int64_t n,
                                factors f, float *out)
{
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        _mm512_storeu_ps(out + i, scaled(how, load_16(code + i), f));
        _mm512_storeu_ps(out + i + 16, scaled(how, load_16(code + i + 16), f));
    }
    for (; i < n; i += 16)
        _mm512_mask_storeu_ps(out + i, first_16(n - i),
                              scaled(how, load_some(code + i, n - i), f));
}

AVX512 LB_INLINE void byte_spans(by how, lb_meaning meaning, const int8_t *code,
                                 int64_t n, lb_spans s, float *out)
{
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const int64_t m = end - i;
        if (is_wild(how, s.value[k])) {
            const lb_spans one = {s.value + k, m, m};
            lb_decode_ref.bytes(meaning, code + i, m, one, out + i);
        } else {
            byte_span(how, code + i, m, factors_of(how, s.value[k]), out + i);
        }
        i = end;
    }
}

/* A scale for each element. */
AVX512 LB_INLINE __m512 each_scaled(lb_meaning meaning, __m512 code, __m512 s)
{
    if (meaning == LB_MEANS_INVERSE) return _mm512_div_ps(code, s);
    if (meaning != LB_MEANS_ABSMAX) return _mm512_mul_ps(code, s);
    const __m512 one = _mm512_set1_ps(1.0f);
    const __m512 size = _mm512_abs_ps(s);
    const __mmask16 huge =
        _mm512_cmp_ps_mask(size, _mm512_set1_ps(0x1p120f), _CMP_GT_OQ);
    const __m512 down =
        _mm512_mask_blend_ps(huge, one, _mm512_set1_ps(0x1p-8f));
    const __m512 up = _mm512_mask_blend_ps(huge, one, _mm512_set1_ps(0x1p8f));
    const __m512 y = _mm512_mul_ps(_mm512_mul_ps(code, _mm512_mul_ps(s, down)),
                                   _mm512_set1_ps(1.0f / 127.0f));
    return _mm512_mul_ps(y, up);
}

/* s may be out. */
AVX512 LB_INLINE void each_span(lb_meaning meaning, const int8_t *code,
                                int64_t n, const float *s, float *out)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, each_scaled(meaning, load_16(code + i),
                                              _mm512_loadu_ps(s + i)));
    if (i == n) return;
    const __mmask16 some = first_16(n - i);
    _mm512_mask_storeu_ps(out + i, some,
                          each_scaled(meaning, load_some(code + i, n - i),
                                      _mm512_maskz_loadu_ps(some, s + i)));
}

AVX512 static void bytes_each(lb_meaning meaning, const int8_t *code, int64_t n,
                              const float *s, float *out)
{
    switch (meaning) {
    case LB_MEANS_ABSMAX:
        each_span(LB_MEANS_ABSMAX, code, n, s, out);
        return;
    case LB_MEANS_INVERSE:
        each_span(LB_MEANS_INVERSE, code, n, s, out);
        return;
    default:
        each_span(LB_MEANS_SCALE, code, n, s, out);
    }
}

AVX512 static void bytes_avx512(lb_meaning meaning, const int8_t *code,
                                int64_t n, lb_spans s, float *out)
{
    if (s.each == 1 && s.head == 1) {
        bytes_each(meaning, code, n, s.value, out);
        return;
    }
    switch (meaning) {
    case LB_MEANS_ABSMAX:
        byte_spans(TWICE, meaning, code, n, s, out);
        return;
    case LB_MEANS_INVERSE:
        byte_spans(OVER, meaning, code, n, s, out);
        return;
    default:
        byte_spans(TIMES, meaning, code, n, s, out);
    }
}

/* ---- halves of bytes ----------------------------------------------------- */

/* Eight bytes to 16 numbers: lanes get the dword that holds their code, and
 * shift it down. */
AVX512 LB_INLINE __m512 halves_16(__m512 table, __m128i byte)
{
    const __m512i dword =
        _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m512i shift = _mm512_setr_epi32(4, 0, 12, 8, 20, 16, 28, 24, 4, 0,
                                            12, 8, 20, 16, 28, 24);
    const __m512i v =
        _mm512_permutexvar_epi32(dword, _mm512_castsi128_si512(byte));
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(v, shift), table);
}

/* From the first of a byte on. */
AVX512 LB_INLINE void half_span(__m512 table, const uint8_t *byte, int64_t n,
                                float s, float *out)
{
    const __m512 v = _mm512_set1_ps(s);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m128i b =
            _mm_loadl_epi64((const __m128i *)(const void *)(byte + i / 2));
        _mm512_storeu_ps(out + i, _mm512_mul_ps(v, halves_16(table, b)));
    }
    if (i == n) return;
    const __m128i b = _mm_maskz_loadu_epi8(first_16((n - i + 1) / 2),
                                           (const void *)(byte + i / 2));
    _mm512_mask_storeu_ps(out + i, first_16(n - i),
                          _mm512_mul_ps(v, halves_16(table, b)));
}

AVX512 static void halves_avx512(const float *level, const uint8_t *byte,
                                 int64_t skip, int64_t n, lb_spans s,
                                 float *out)
{
    const __m512 table = _mm512_loadu_ps(level);
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        int64_t at = skip + i;
        if (at % 2 && i < end) { /* it begins in a low half */
            out[i++] = s.value[k] * level[byte[at / 2] & 15];
            at++;
        }
        if (i < end)
            half_span(table, byte + at / 2, end - i, s.value[k], out + i);
        i = end;
    }
}

/* ---- fields -------------------------------------------------------------- */

/* What the scale makes of the codes: four of them in every lane, and the first
 * two alone. */
typedef struct {
    __m512 four, zero, one;
} table;

AVX512 LB_INLINE table table_of(lb_fields f, float s)
{
    const __m512i four =
        _mm512_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
    const __m512 code = _mm512_cvtepi32_ps(
        _mm512_add_epi32(_mm512_set1_epi32(f.least),
                         _mm512_mullo_epi32(_mm512_set1_epi32(f.step), four)));
    const __m512 v = _mm512_set1_ps(s);
    const __m512 t =
        f.divides ? _mm512_div_ps(code, v) : _mm512_mul_ps(code, v);
    return (table){t, _mm512_permute_ps(t, 0x00), _mm512_permute_ps(t, 0x55)};
}

/* The next 16 codes, or fewer. */
AVX512 LB_INLINE __m512 fields_16(const int bits, const table *t,
                                  const uint8_t *byte, int64_t n)
{
    uint32_t word = 0;
    if (n >= 16 && bits == 2)
        memcpy(&word, byte, 4);
    else if (n >= 16)
        memcpy(&word, byte, 2);
    else
        memcpy(&word, byte, (size_t)((n * bits + 7) / 8));
    if (bits == 1)
        return _mm512_mask_blend_ps((__mmask16)word, t->zero, t->one);
    const __m512i shift = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18,
                                            20, 22, 24, 26, 28, 30);
    return _mm512_permutevar_ps(
        t->four, _mm512_srlv_epi32(_mm512_set1_epi32((int)word), shift));
}

/* From the first of a byte on. */
AVX512 LB_INLINE void field_span(const int bits, const table *t,
                                 const uint8_t *byte, int64_t n, float *out)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, fields_16(bits, t, byte + i * bits / 8, 16));
    if (i < n)
        _mm512_mask_storeu_ps(out + i, first_16(n - i),
                              fields_16(bits, t, byte + i * bits / 8, n - i));
}

AVX512 LB_INLINE void field_spans(const int bits, lb_fields f,
                                  const uint8_t *row, int64_t at, int64_t n,
                                  lb_spans s, float *out)
{
    const int64_t per = 8 / bits;
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const table t = table_of(f, s.value[k]);
        int64_t head = (per - (at + i) % per) % per; /* up to a whole byte */
        if (head > end - i) head = end - i;
        if (head) {
            const lb_spans one = {s.value + k, head, head};
            lb_decode_ref.fields(f, row, at + i, head, one, out + i);
            i += head;
        }
        if (i < end)
            field_span(bits, &t, row + (at + i) / per, end - i, out + i);
        i = end;
    }
}

AVX512 static void fields_avx512(lb_fields f, const uint8_t *row, int64_t at,
                                 int64_t n, lb_spans s, float *out)
{
    static const float one = 1;
    if (!s.value) {
        s = (lb_spans){&one, n, n};
        f.divides = false;
    }
    if (f.bits == 1)
        field_spans(1, f, row, at, n, s, out);
    else
        field_spans(2, f, row, at, n, s, out);
}

const lb_decode_kernel lb_decode_avx512 = {
    .name = "decode avx512",
    .bytes = bytes_avx512,
    .halves = halves_avx512,
    .fields = fields_avx512,
    .levels = lb_decode_levels_avx2,
    .bytes32 = lb_decode_bytes32_avx2,
    .halves32 = lb_decode_halves32_avx2,
    .pairs256 = lb_decode_pairs256_avx2,
    .trits256 = lb_decode_trits256_avx2,
};
#endif
