/* unpack_tables_avx2.c - codes of few bits to elements of 16 bits with AVX2:
 * what their numbers are rounded to is found once for a scale, in tables, and
 * looked up; see unpack_avx2.h.
 *
 * Sixteen numbers are two tables of their bytes, for vpshufb. Four are two
 * tables of dwords, for vpermilps: in the low halves for even elements, in the
 * high ones for odd ones, so that what is found only has to be joined.
 */
#include "kernels/unpack.h"

#if defined(__x86_64__)
#include "kernels/x86/unpack_avx2.h"

enum { SOME = LB_UNPACK_SOME };

/* Sixteen numbers; the dtype as it comes, for this is not done often. */
AVX2 LB_INLINE __m256i rounded(lb_dtype d, __m256 a, __m256 b)
{
    return d == LB_F16 ? lb_halved(LB_F16, a, b) : lb_halved(LB_BF16, a, b);
}

/* ---- sixteen numbers ---------------------------------------------------- */

/* The low and high bytes of them all, in both halves. */
typedef struct {
    __m256i low, high;
} bytes_of_16;

AVX2 LB_INLINE bytes_of_16 split(__m256i words)
{
    const __m256i apart =
        _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15,
                         0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m256i v = _mm256_shuffle_epi8(words, apart);
    return (bytes_of_16){_mm256_permute4x64_epi64(v, 0x88),
                         _mm256_permute4x64_epi64(v, 0xdd)};
}

/* 32 elements. Unpacking works within halves of registers, so codes lie as in
 * 0 .. 7, 16 .. 23, 8 .. 15, 24 .. 31. */
AVX2 LB_INLINE void look_up(bytes_of_16 t, __m256i code, lb_sink to, int64_t i)
{
    const __m256i low = _mm256_shuffle_epi8(t.low, code);
    const __m256i high = _mm256_shuffle_epi8(t.high, code);
    lb_put_16(to, i, _mm256_unpacklo_epi8(low, high));
    lb_put_16(to, i + SOME, _mm256_unpackhi_epi8(low, high));
}

AVX2 LB_INLINE __m256i high_then_low(const uint8_t *byte)
{
    const __m256i order =
        _mm256_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 8, 8, 9, 9, 10, 10, 11, 11, 4,
                         4, 5, 5, 6, 6, 7, 7, 12, 12, 13, 13, 14, 14, 15, 15);
    const __m256i b = _mm256_shuffle_epi8(both_halves(byte), order);
    return _mm256_or_si256(
        _mm256_and_si256(b, _mm256_set1_epi16(0x0f00)),
        _mm256_and_si256(_mm256_srli_epi16(b, 4), _mm256_set1_epi16(0x000f)));
}

AVX2 void lb_unpack_halves_16(const float *level, const uint8_t *byte,
                              int64_t n, lb_spans s, lb_sink to)
{
    const __m256 a = _mm256_loadu_ps(level), b = _mm256_loadu_ps(level + 8);
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const __m256 v = _mm256_broadcast_ss(s.value + k);
        const bytes_of_16 t =
            split(rounded(to.dtype, _mm256_mul_ps(v, a), _mm256_mul_ps(v, b)));
        for (; i < end; i += 2 * SOME)
            look_up(t, high_then_low(byte + i / 2), to, i);
    }
}

AVX2 void lb_unpack_halves32_16(const int8_t *level, const uint8_t *from,
                                int64_t n, lb_sink to)
{
    const __m256i order =
        _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
                         10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m256i shift = _mm256_setr_epi64x(0, 4, 0, 4);
    const __m256i twice = both_halves(level), mask = _mm256_set1_epi8(15);
    const __m256 a = floats(twice, tops()), b = floats(twice, next_tops());
    for (int64_t i = 0; i < n; i++, from += 18) {
        const __m256 d = scale_at(from);
        const bytes_of_16 t =
            split(rounded(to.dtype, _mm256_mul_ps(a, d), _mm256_mul_ps(b, d)));
        const __m256i c = _mm256_shuffle_epi8(both_halves(from + 2), order);
        look_up(t, _mm256_and_si256(_mm256_srlv_epi64(c, shift), mask), to,
                32 * i);
    }
}

/* ---- four numbers ------------------------------------------------------- */

typedef struct {
    __m256 even, odd; /* four, twice: in low halves, in high ones */
} halves_of_4;

AVX2 LB_INLINE halves_of_4 four_of(lb_dtype d, __m256 four)
{
    const __m256i low =
        _mm256_cvtepu16_epi32(_mm256_castsi256_si128(rounded(d, four, four)));
    return (halves_of_4){_mm256_castsi256_ps(low),
                         _mm256_castsi256_ps(_mm256_slli_epi32(low, 16))};
}

/* The lowest bits of dwords: of even elements, and of odd ones. */
AVX2 LB_INLINE __m256i joined(halves_of_4 t, __m256i even, __m256i odd)
{
    return _mm256_castps_si256(_mm256_or_ps(_mm256_permutevar_ps(t.even, even),
                                            _mm256_permutevar_ps(t.odd, odd)));
}

AVX2 LB_INLINE void fields_to(const int bits, lb_fields f, const uint8_t *byte,
                              int64_t n, lb_spans s, lb_sink to)
{
    const int per = 32 / bits; /* in a dword */
    const __m256 code = codes_of(f);
    const __m256i shift = eight_times(2 * bits);
    const __m256i next = _mm256_add_epi32(shift, _mm256_set1_epi32(bits));
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const __m256 v = _mm256_broadcast_ss(s.value + k);
        const halves_of_4 t =
            four_of(to.dtype, f.divides ? _mm256_div_ps(code, v)
                                        : _mm256_mul_ps(code, v));
        for (; i < end; i += per) {
            int32_t word;
            memcpy(&word, byte + i * bits / 8, sizeof word);
            for (int m = 0; m < per; m += SOME) {
                const __m256i w =
                    _mm256_set1_epi32((int32_t)((uint32_t)word >> m * bits));
                lb_put_16(to, i + m,
                          joined(t, _mm256_srlv_epi32(w, shift),
                                 _mm256_srlv_epi32(w, next)));
            }
        }
    }
}

AVX2 void lb_unpack_fields_16(lb_fields f, const uint8_t *byte, int64_t n,
                              lb_spans s, lb_sink to)
{
    if (f.bits == 1)
        fields_to(1, f, byte, n, s, to);
    else
        fields_to(2, f, byte, n, s, to);
}

/* Even bytes of sixteen at the given byte of dwords; odd ones. */
AVX2 LB_INLINE __m256i even_dwords(const uint8_t *from, int place)
{
    const __m256i even = _mm256_setr_epi8(
        0, -1, -1, -1, 2, -1, -1, -1, 4, -1, -1, -1, 6, -1, -1, -1, 8, -1, -1,
        -1, 10, -1, -1, -1, 12, -1, -1, -1, 14, -1, -1, -1);
    const __m256i v = _mm256_shuffle_epi8(both_halves(from), even);
    return place ? _mm256_slli_epi32(v, 8) : v;
}

AVX2 LB_INLINE __m256i odd_dwords(const uint8_t *from, int place)
{
    const __m256i odd = _mm256_setr_epi8(
        1, -1, -1, -1, 3, -1, -1, -1, 5, -1, -1, -1, 7, -1, -1, -1, 9, -1, -1,
        -1, 11, -1, -1, -1, 13, -1, -1, -1, 15, -1, -1, -1);
    const __m256i v = _mm256_shuffle_epi8(both_halves(from), odd);
    return place ? _mm256_slli_epi32(v, 8) : v;
}

AVX2 void lb_unpack_pairs256_16(const uint8_t *from, int64_t n, lb_sink to)
{
    for (int64_t i = 0; i < 256 * n; i += 256, from += 66) {
        const halves_of_4 t =
            four_of(to.dtype, four_signs(scale_at(from + 64)));
        for (int m = 0; m < 64; m += SOME) {
            const int64_t at = i + m / 32 * 128 + m % 32;
            __m256i a = even_dwords(from + m, 0), b = odd_dwords(from + m, 0);
            for (int k = 0; k < 4; k++) {
                lb_put_16(to, at + 32 * k, joined(t, a, b));
                a = _mm256_srli_epi32(a, 2);
                b = _mm256_srli_epi32(b, 2);
            }
        }
    }
}

/* Five digits of sixteen bytes, each `step` elements after the one before. */
AVX2 LB_INLINE void put_digits(halves_of_4 t, const uint8_t *from, int step,
                               lb_sink to, int64_t i)
{
    const __m256i three = _mm256_set1_epi32(3);
    __m256i a = even_dwords(from, 1), b = odd_dwords(from, 1);
    for (int k = 0; k < 5; k++, i += step) {
        lb_put_16(to, i,
                  joined(t, _mm256_mulhi_epu16(a, three),
                         _mm256_mulhi_epu16(b, three)));
        a = _mm256_mullo_epi16(a, three);
        b = _mm256_mullo_epi16(b, three);
    }
}

AVX2 void lb_unpack_trits256_16(const uint8_t *from, int64_t n, lb_sink to)
{
    for (int64_t i = 0; i < 256 * n; i += 256, from += 54) {
        const halves_of_4 t =
            four_of(to.dtype, four_signs(scale_at(from + 52)));
        put_digits(t, from, 32, to, i);
        put_digits(t, from + 16, 32, to, i + 16);
        put_digits(t, from + 32, 16, to, i + 160);
        const __m256i a = last_trits(from + 48);
        const __m256i b = _mm256_mullo_epi16(a, _mm256_set1_epi32(9));
        const __m256i both =
            _mm256_packus_epi32(_mm256_castps_si256(digits_of(t.even, a)),
                                _mm256_castps_si256(digits_of(t.even, b)));
        lb_put_16(to, i + 240, _mm256_permute4x64_epi64(both, 0xd8));
    }
}
#endif
