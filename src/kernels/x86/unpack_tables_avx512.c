/* unpack_tables_avx512.c - codes of few bits to elements of 16 bits with
 * AVX-512: what their numbers are rounded to is found once for a scale, and
 * looked up with vpermw; see unpack_avx512.h.
 *
 * vpermw minds the lowest five bits of a word. Tables of sixteen or of four
 * numbers stand there twice or eight times, so that codes need a shift and no
 * mask. A line is 32 elements.
 */
#include "kernels/unpack.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/unpack_avx512.h"

enum { SOME = 32, AHEAD = LB_UNPACK_AHEAD };

/* Sixteen numbers twice; the dtype as it comes, for this is not done often. */
AVX512 LB_INLINE __m512i table_of(lb_dtype d, __m512 x)
{
    return d == LB_F16 ? lb_halves_of(LB_F16, x, x)
                       : lb_halves_of(LB_BF16, x, x);
}

AVX512 LB_INLINE void look_up(lb_lines *l, __m512i table, __m512i words)
{
    lb_lines_put(l, _mm512_permutexvar_epi16(words, table));
}

/* ---- sixteen numbers ----------------------------------------------------- */

AVX512 void lb_unpack_halves_16_avx512(const float *level, const uint8_t *byte,
                                       int64_t n, const lb_spans *s, lb_sink to)
{
    const __m512 levels = _mm512_loadu_ps(level);
    lb_lines l = lb_lines_begin(to);
    int64_t i = 0, end = lb_span_first(*s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(*s, end, n)) {
        const __m512i t = table_of(
            to.dtype, _mm512_mul_ps(_mm512_set1_ps(s->value[k]), levels));
        for (; i < end; i += SOME) {
            const __m512i b = _mm512_cvtepu8_epi32(
                _mm_loadu_si128((const __m128i *)(const void *)(byte + i / 2)));
            LB_FETCH(byte + i / 2, AHEAD);
            look_up(&l, t,
                    _mm512_or_si512(_mm512_srli_epi32(b, 4),
                                    _mm512_slli_epi32(b, 16)));
        }
    }
    lb_lines_end(&l);
}

AVX512 void lb_unpack_halves32_16_avx512(const int8_t *level,
                                         const uint8_t *from, int64_t n,
                                         lb_sink to)
{
    const __m512i high =
        _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(4), 1);
    const __m512 levels = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
        _mm_loadu_si128((const __m128i *)(const void *)level)));
    lb_lines l = lb_lines_begin(to);
    for (int64_t i = 0; i < n; i++, from += 18) {
        const __m512i t =
            table_of(to.dtype, _mm512_mul_ps(levels, lb_block_scale(from)));
        const __m256i b = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(const void *)(from + 2)));
        LB_FETCH(from, AHEAD);
        look_up(&l, t, _mm512_srlv_epi16(_mm512_cvtepu8_epi16(b), high));
    }
    lb_lines_end(&l);
}

/* ---- four numbers -------------------------------------------------------- */

AVX512 LB_INLINE __m512i ones_of(__m512i t, const uint8_t *byte)
{
    uint32_t word;
    memcpy(&word, byte, sizeof word);
    const __m512i zero = _mm512_permutexvar_epi16(_mm512_setzero_si512(), t);
    const __m512i one = _mm512_permutexvar_epi16(_mm512_set1_epi16(1), t);
    return _mm512_mask_blend_epi16(word, zero, one);
}

/* Eight bytes: each word gets the two that its field is in. */
AVX512 LB_INLINE __m512i twos_of(__m512i t, const uint8_t *byte)
{
    const __m512i order = _mm512_setr_epi32(
        0x01000100, 0x01000100, 0x01000100, 0x01000100, 0x03020302, 0x03020302,
        0x03020302, 0x03020302, 0x05040504, 0x05040504, 0x05040504, 0x05040504,
        0x07060706, 0x07060706, 0x07060706, 0x07060706);
    const __m512i shift =
        _mm512_broadcast_i32x4(_mm_setr_epi16(0, 2, 4, 6, 8, 10, 12, 14));
    int64_t eight;
    memcpy(&eight, byte, sizeof eight);
    const __m512i v = _mm512_shuffle_epi8(_mm512_set1_epi64(eight), order);
    return _mm512_permutexvar_epi16(_mm512_srlv_epi16(v, shift), t);
}

AVX512 LB_INLINE void fields_by(const int bits, lb_fields f,
                                const uint8_t *byte, int64_t n,
                                const lb_spans *s, lb_sink to)
{
    const __m512 code = lb_four_numbers(f.least, f.step);
    lb_lines l = lb_lines_begin(to);
    int64_t i = 0, end = lb_span_first(*s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(*s, end, n)) {
        const __m512 v = _mm512_set1_ps(s->value[k]);
        const __m512i t =
            table_of(to.dtype, f.divides ? _mm512_div_ps(code, v)
                                         : _mm512_mul_ps(code, v));
        for (; i < end; i += SOME) {
            const uint8_t *from = byte + i * bits / 8;
            LB_FETCH(from, AHEAD);
            lb_lines_put(&l, bits == 1 ? ones_of(t, from) : twos_of(t, from));
        }
    }
    lb_lines_end(&l);
}

AVX512 void lb_unpack_fields_16_avx512(lb_fields f, const uint8_t *byte,
                                       int64_t n, const lb_spans *s, lb_sink to)
{
    if (f.bits == 1)
        fields_by(1, f, byte, n, s, to);
    else
        fields_by(2, f, byte, n, s, to);
}

/* -d, 0 * d, d, 2 * d, again and again. */
AVX512 LB_INLINE __m512i four_signs(lb_dtype dtype, const uint8_t *d)
{
    const __m512 code = lb_four_numbers(-1, 1);
    return table_of(dtype, _mm512_mul_ps(code, lb_block_scale(d)));
}

AVX512 LB_INLINE __m512i words(const uint8_t *from)
{
    return _mm512_cvtepu8_epi16(
        _mm256_loadu_si256((const __m256i *)(const void *)from));
}

AVX512 void lb_unpack_pairs256_16_avx512(const uint8_t *from, int64_t n,
                                         lb_sink to)
{
    lb_lines l = lb_lines_begin(to);
    for (int64_t i = 0; i < n; i++, from += 66) {
        const __m512i t = four_signs(to.dtype, from + 64);
        LB_FETCH(from, AHEAD);
        for (int m = 0; m < 64; m += 32) {
            __m512i a = words(from + m);
            for (int k = 0; k < 4; k++, a = _mm512_srli_epi16(a, 2))
                look_up(&l, t, a);
        }
    }
    lb_lines_end(&l);
}

/* The first digits to base 3 of 32 fractions in words. */
AVX512 LB_INLINE void put_digits(lb_lines *l, __m512i t, __m512i fraction)
{
    look_up(l, t, _mm512_mulhi_epu16(fraction, _mm512_set1_epi16(3)));
}

/* 32 bytes of five digits; 16 bytes, whose digits come two at a time, the fifth
 * with those of the last four bytes. */
AVX512 void lb_unpack_trits256_16_avx512(const uint8_t *from, int64_t n,
                                         lb_sink to)
{
    const __m512i three = _mm512_set1_epi16(3), nine = _mm512_set1_epi16(9);
    const __m512i next =
        _mm512_inserti64x4(_mm512_set1_epi16(1), _mm256_set1_epi16(3), 1);
    const __m512i fifth = _mm512_inserti64x4(
        _mm512_set1_epi16(81),
        _mm256_setr_epi16(1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27),
        1);
    lb_lines l = lb_lines_begin(to);
    for (int64_t i = 0; i < n; i++, from += 54) {
        const __m512i t = four_signs(to.dtype, from + 52);
        __m512i a = _mm512_slli_epi16(words(from), 8);
        LB_FETCH(from, AHEAD);
        for (int k = 0; k < 5; k++, a = _mm512_mullo_epi16(a, three))
            put_digits(&l, t, a);
        const __m128i b =
            _mm_loadu_si128((const __m128i *)(const void *)(from + 32));
        int32_t word;
        memcpy(&word, from + 48, sizeof word);
        const __m256i last = _mm256_set_m128i(_mm_set1_epi32(word), b);
        const __m512i twice = _mm512_slli_epi16(
            _mm512_cvtepu8_epi16(_mm256_broadcastsi128_si256(b)), 8);
        a = _mm512_mullo_epi16(twice, next);
        put_digits(&l, t, a);
        put_digits(&l, t, _mm512_mullo_epi16(a, nine));
        a = _mm512_slli_epi16(_mm512_cvtepu8_epi16(last), 8);
        put_digits(&l, t, _mm512_mullo_epi16(a, fifth));
    }
    lb_lines_end(&l);
}
#endif
