/* decode_avx2.c - codes to numbers with AVX2, FMA and F16C.
 *
 * How is in decode_avx2.h. Ends of spans are done over again with a vector
 * that ends where they do; what is shorter than one is the reference's.
 */
#include "kernels/decode.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/decode_avx2.h"

/* ---- bytes -------------------------------------------------------------- */

AVX2 LB_INLINE void bytes_16(by how, const int8_t *code, factors f, float *out)
{
    const __m256i c = both_halves(code);
    _mm256_storeu_ps(out, scaled(how, floats(c, tops()), f));
    _mm256_storeu_ps(out + 8, scaled(how, floats(c, next_tops()), f));
}

/* n >= 16. */
AVX2 LB_INLINE void byte_span(by how, const int8_t *code, int64_t n, factors f,
                              float *out)
{
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        bytes_16(how, code + i, f, out + i);
        bytes_16(how, code + i + 16, f, out + i + 16);
    }
    if (i + 16 <= n) bytes_16(how, code + i, f, out + i);
    if (n % 16) bytes_16(how, code + n - 16, f, out + n - 16);
}

AVX2 LB_INLINE void byte_spans(by how, lb_meaning meaning, const int8_t *code,
                               int64_t n, lb_spans s, float *out)
{
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const int64_t m = end - i;
        if (m >= 16 && !is_wild(how, s.value[k])) {
            byte_span(how, code + i, m, factors_of(how, s.value[k]), out + i);
        } else {
            const lb_spans one = {s.value + k, m, m};
            lb_decode_ref.bytes(meaning, code + i, m, one, out + i);
        }
        i = end;
    }
}

/* Returns how many were done; s may be out. */
AVX2 LB_INLINE int64_t each_span(lb_meaning meaning, const int8_t *code,
                                 int64_t n, const float *s, float *out)
{
    const __m256i low = tops(), high = next_tops();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i c = both_halves(code + i);
        const __m256 a = _mm256_loadu_ps(s + i), b = _mm256_loadu_ps(s + i + 8);
        _mm256_storeu_ps(out + i, each_scaled(meaning, floats(c, low), a));
        _mm256_storeu_ps(out + i + 8, each_scaled(meaning, floats(c, high), b));
    }
    return i;
}

AVX2 static int64_t bytes_each(lb_meaning meaning, const int8_t *code,
                               int64_t n, const float *s, float *out)
{
    switch (meaning) {
    case LB_MEANS_ABSMAX:
        return each_span(LB_MEANS_ABSMAX, code, n, s, out);
    case LB_MEANS_INVERSE:
        return each_span(LB_MEANS_INVERSE, code, n, s, out);
    default:
        return each_span(LB_MEANS_SCALE, code, n, s, out);
    }
}

AVX2 static void bytes_avx2(lb_meaning meaning, const int8_t *code, int64_t n,
                            lb_spans s, float *out)
{
    if (s.each == 1 && s.head == 1) {
        const int64_t i = bytes_each(meaning, code, n, s.value, out);
        const lb_spans rest = {s.value + i, 1, 1};
        lb_decode_ref.bytes(meaning, code + i, n - i, rest, out + i);
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

/* ---- halves of bytes ---------------------------------------------------- */

AVX2 LB_INLINE void halves_32(const planes *p, const uint8_t *byte, __m256 s,
                              float *out)
{
    __m256 v[4];
    halves_of(p, byte, s, v);
    for (int k = 0; k < 4; k++)
        _mm256_storeu_ps(out + 8 * k, v[k]);
}

/* From the first of a byte on; n >= 32 is even. */
AVX2 LB_INLINE void half_span(const planes *p, const uint8_t *byte, int64_t n,
                              float s, float *out)
{
    const __m256 v = _mm256_set1_ps(s);
    for (int64_t i = 0; i + 32 <= n; i += 32)
        halves_32(p, byte + i / 2, v, out + i);
    if (n % 32) halves_32(p, byte + n / 2 - 16, v, out + n - 32);
}

/* Any span of at least 33; odd: it begins in a low half. */
AVX2 LB_INLINE void ragged_span(const planes *p, const float *level,
                                const uint8_t *byte, bool odd, int64_t n,
                                float s, float *out)
{
    if (odd) {
        *out++ = s * level[*byte++ & 15];
        n--;
    }
    half_span(p, byte, n & ~INT64_C(1), s, out);
    if (n % 2) out[n - 1] = s * level[byte[n / 2] >> 4];
}

AVX2 static void halves_avx2(const float *level, const uint8_t *byte,
                             int64_t skip, int64_t n, lb_spans s, float *out)
{
    const planes p = planes_of(level);
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const int64_t at = skip + i, m = end - i;
        if ((at | m) % 2 == 0 && m >= 32) {
            half_span(&p, byte + at / 2, m, s.value[k], out + i);
        } else if (m > 32) {
            ragged_span(&p, level, byte + at / 2, at % 2, m, s.value[k],
                        out + i);
        } else {
            const lb_spans one = {s.value + k, m, m};
            lb_decode_ref.halves(level, byte + at / 2, at % 2, m, one, out + i);
        }
        i = end;
    }
}

/* ---- fields ------------------------------------------------------------- */

AVX2 LB_INLINE void put_fields(__m256 four, __m256i dword, __m256i shift,
                               float *out)
{
    _mm256_storeu_ps(
        out, _mm256_permutevar_ps(four, _mm256_srlv_epi32(dword, shift)));
}

/* From the first of a byte on; returns how many were done, all but less than
 * eight. */
AVX2 LB_INLINE int64_t field_span(const int bits, __m256 four,
                                  const uint8_t *byte, int64_t n, float *out)
{
    const int per = 32 / bits; /* in a dword: 4 or 2 vectors */
    const __m256i shift = eight_times(bits);
    int64_t i = 0;
    for (; i + per <= n; i += per) {
        int32_t word;
        memcpy(&word, byte + i * bits / 8, sizeof word);
        const __m256i dword = _mm256_set1_epi32(word);
        for (int v = 0; v < per / 8; v++)
            put_fields(four, dword,
                       _mm256_add_epi32(shift, _mm256_set1_epi32(8 * bits * v)),
                       out + i + 8 * v);
    }
    for (; i + 8 <= n; i += 8) {
        const uint8_t *b = byte + i * bits / 8;
        const int word = bits == 1 ? b[0] : b[0] | b[1] << 8;
        put_fields(four, _mm256_set1_epi32(word), shift, out + i);
    }
    return i;
}

/* Any span; table: what the scale makes of the codes. */
AVX2 static void ragged_fields(lb_fields f, __m256 table, const uint8_t *row,
                               int64_t at, int64_t n, float s, float *out)
{
    const int per = 8 / f.bits;
    int64_t i = (per - at % per) % per;
    if (n < i + 8) i = n;
    if (i) lb_decode_ref.fields(f, row, at, i, (lb_spans){&s, i, i}, out);
    if (i == n) return;
    const uint8_t *byte = row + (at + i) / per;
    i += f.bits == 1 ? field_span(1, table, byte, n - i, out + i)
                     : field_span(2, table, byte, n - i, out + i);
    const lb_spans rest = {&s, n - i, n - i};
    if (i < n) lb_decode_ref.fields(f, row, at + i, n - i, rest, out + i);
}

AVX2 LB_INLINE void field_spans(const int bits, lb_fields f, const uint8_t *row,
                                int64_t at, int64_t n, lb_spans s, float *out)
{
    const __m256 code = codes_of(f);
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const __m256 v = _mm256_set1_ps(s.value[k]);
        const __m256 table =
            f.divides ? _mm256_div_ps(code, v) : _mm256_mul_ps(code, v);
        const int64_t m = end - i;
        if (((at + i) | m) % 8 == 0)
            field_span(bits, table, row + (at + i) * bits / 8, m, out + i);
        else
            ragged_fields(f, table, row, at + i, m, s.value[k], out + i);
        i = end;
    }
}

AVX2 static void fields_avx2(lb_fields f, const uint8_t *row, int64_t at,
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

/* ---- levels of bytes ---------------------------------------------------- */

AVX2 void lb_decode_levels_avx2(const float *level, const uint8_t *code,
                                int64_t n, lb_spans s, float *out)
{
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const __m256 v = _mm256_set1_ps(s.value[k]);
        for (; i + 8 <= end; i += 8)
            _mm256_storeu_ps(out + i,
                             _mm256_mul_ps(v, eight_levels(level, code + i)));
        if (i == end) continue;
        const lb_spans rest = {s.value + k, end - i, end - i};
        lb_decode_ref.levels(level, code + i, end - i, rest, out + i);
        i = end;
    }
}

/* ---- blocks of GGUF files ----------------------------------------------- */

AVX2 LB_INLINE void put_bytes(__m256i twice, __m256 d, float *out)
{
    _mm256_storeu_ps(out, _mm256_mul_ps(floats(twice, tops()), d));
    _mm256_storeu_ps(out + 8, _mm256_mul_ps(floats(twice, next_tops()), d));
}

AVX2 void lb_decode_bytes32_avx2(const uint8_t *from, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++, from += 34, out += 32) {
        const __m256 d = scale_at(from);
        put_bytes(both_halves(from + 2), d, out);
        put_bytes(both_halves(from + 18), d, out + 16);
    }
}

AVX2 void lb_decode_halves32_avx2(const int8_t *level, const uint8_t *from,
                                  int64_t n, float *out)
{
    const __m256i table = both_halves(level), mask = _mm256_set1_epi8(15);
    for (int64_t i = 0; i < n; i++, from += 18, out += 32) {
        const __m256 d = scale_at(from);
        const __m256i b = both_halves(from + 2);
        const __m256i low = _mm256_and_si256(b, mask);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(b, 4), mask);
        put_bytes(_mm256_shuffle_epi8(table, low), d, out);
        put_bytes(_mm256_shuffle_epi8(table, high), d, out + 16);
    }
}

AVX2 void lb_decode_pairs256_avx2(const uint8_t *from, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++, from += 66, out += 256) {
        const __m256 four = four_signs(scale_at(from + 64));
        for (int m = 0; m < 64; m += 8) {
            const __m256i b = dwords(from + m, 0);
            float *to = out + m / 32 * 128 + m % 32;
            _mm256_storeu_ps(to, _mm256_permutevar_ps(four, b));
            _mm256_storeu_ps(
                to + 32, _mm256_permutevar_ps(four, _mm256_srli_epi32(b, 2)));
            _mm256_storeu_ps(
                to + 64, _mm256_permutevar_ps(four, _mm256_srli_epi32(b, 4)));
            _mm256_storeu_ps(
                to + 96, _mm256_permutevar_ps(four, _mm256_srli_epi32(b, 6)));
        }
    }
}

AVX2 LB_INLINE void put_digits(__m256 four, __m256i fraction, int digits,
                               int step, float *out)
{
    for (int k = 0; k < digits; k++, out += step) {
        _mm256_storeu_ps(out, digits_of(four, fraction));
        fraction = _mm256_mullo_epi16(fraction, _mm256_set1_epi32(3));
    }
}

AVX2 void lb_decode_trits256_avx2(const uint8_t *from, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++, from += 54, out += 256) {
        const __m256 four = four_signs(scale_at(from + 52));
        for (int m = 0; m < 32; m += 8)
            put_digits(four, dwords(from + m, 1), 5, 32, out + m);
        for (int m = 0; m < 16; m += 8)
            put_digits(four, dwords(from + 32 + m, 1), 5, 16, out + 160 + m);
        const __m256i last = last_trits(from + 48);
        put_digits(four, last, 1, 0, out + 240);
        put_digits(four, _mm256_mullo_epi16(last, _mm256_set1_epi32(9)), 1, 0,
                   out + 248);
    }
}

const lb_decode_kernel lb_decode_avx2 = {
    .name = "decode avx2",
    .bytes = bytes_avx2,
    .halves = halves_avx2,
    .fields = fields_avx2,
    .levels = lb_decode_levels_avx2,
    .bytes32 = lb_decode_bytes32_avx2,
    .halves32 = lb_decode_halves32_avx2,
    .pairs256 = lb_decode_pairs256_avx2,
    .trits256 = lb_decode_trits256_avx2,
};
#endif
