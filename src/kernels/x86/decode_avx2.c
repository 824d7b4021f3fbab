/* decode_avx2.c - codes to numbers with AVX2, FMA and F16C.
 *
 * Bytes become floats by a shuffle that puts each on top of its dword, a shift
 * that spreads its sign, and a conversion: vpmovsxbd is slower on whole
 * registers. A table of sixteen floats is four tables of their bytes: four
 * shuffles look up 32 codes, and unpacking puts the bytes together. A table of
 * four is one vpermilps, whose index is what lies lowest in a dword, so fields
 * need a shift and no mask. Ends of spans are done over again with a vector
 * that ends where they do; what is shorter than one is the reference's.
 */
#include "kernels/decode.h"

#if defined(__x86_64__)
#include <math.h>
#include <string.h>

#include "kernels/x86/intrin.h"

#define AVX2 LB_TARGET("avx2,fma,f16c")

AVX2 LB_INLINE __m256i both_halves(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

/* ---- bytes -------------------------------------------------------------- */

/* Bytes 0 .. 7 of both halves on top of dwords; those that follow are bytes
 * 8 .. 15. */
AVX2 LB_INLINE __m256i tops(void)
{
    return _mm256_setr_epi8(-1, -1, -1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1,
                            -1, 3, -1, -1, -1, 4, -1, -1, -1, 5, -1, -1, -1, 6,
                            -1, -1, -1, 7);
}

AVX2 LB_INLINE __m256i next_tops(void)
{
    /* 8 more in every fourth byte, and what is negative stays so. */
    return _mm256_add_epi32(tops(), _mm256_set1_epi32(8 << 24));
}

AVX2 LB_INLINE __m256 floats(__m256i twice, __m256i places)
{
    return _mm256_cvtepi32_ps(
        _mm256_srai_epi32(_mm256_shuffle_epi8(twice, places), 24));
}

/* What a scale does to codes. */
typedef enum { TIMES, TWICE, OVER } by;

typedef struct {
    __m256 a, b;
} factors;

/* The correctly rounded quotient without a division: r is 1/s rounded, q is
 * off by little, and what remains is exact. True for all codes and all s whose
 * quotients are normal numbers; test_decode_kernels tries every one. */
AVX2 LB_INLINE __m256 quotient(__m256 code, factors f)
{
    const __m256 q = _mm256_mul_ps(code, f.b);
    const __m256 rest = _mm256_fnmadd_ps(q, f.a, code);
    return _mm256_fmadd_ps(rest, f.b, q);
}

AVX2 LB_INLINE __m256 scaled(by how, __m256 code, factors f)
{
    if (how == OVER) return quotient(code, f);
    const __m256 y = _mm256_mul_ps(code, f.a);
    return how == TWICE ? _mm256_mul_ps(y, f.b) : y;
}

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

/* The reference must do it: 127 times a huge number would overflow; 1/s or a
 * quotient may not be a normal number. */
LB_INLINE bool is_wild(by how, float s)
{
    const float size = fabsf(s);
    if (how == TWICE) return size > 0x1p120f;
    if (how == TIMES) return false;
    return !LB_EXACT || !(size >= 0x1p-100f && size <= 0x1p100f);
}

AVX2 LB_INLINE factors factors_of(by how, float s)
{
    return (factors){_mm256_set1_ps(s),
                     _mm256_set1_ps(how == OVER ? 1.0f / s : 1.0f / 127.0f)};
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

/* A scale for each element. */
AVX2 LB_INLINE __m256 each_scaled(lb_meaning meaning, __m256 code, __m256 s)
{
    if (meaning == LB_MEANS_INVERSE) return _mm256_div_ps(code, s);
    if (meaning != LB_MEANS_ABSMAX) return _mm256_mul_ps(code, s);
    const __m256 one = _mm256_set1_ps(1.0f);
    const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), s);
    const __m256 huge =
        _mm256_cmp_ps(size, _mm256_set1_ps(0x1p120f), _CMP_GT_OQ);
    const __m256 down = _mm256_blendv_ps(one, _mm256_set1_ps(0x1p-8f), huge);
    const __m256 up = _mm256_blendv_ps(one, _mm256_set1_ps(0x1p8f), huge);
    const __m256 y = _mm256_mul_ps(_mm256_mul_ps(code, _mm256_mul_ps(s, down)),
                                   _mm256_set1_ps(1.0f / 127.0f));
    return _mm256_mul_ps(y, up);
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

/* Byte j of each of sixteen floats, in both halves of plane j. */
typedef struct {
    __m256i plane[4];
} planes;

AVX2 LB_INLINE planes planes_of(const float *level)
{
    const __m128i sort =
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m128i v[4];
    for (int k = 0; k < 4; k++)
        v[k] = _mm_shuffle_epi8(
            _mm_loadu_si128((const __m128i *)(const void *)(level + 4 * k)),
            sort);
    const __m128i a = _mm_unpacklo_epi32(v[0], v[1]);
    const __m128i b = _mm_unpacklo_epi32(v[2], v[3]);
    const __m128i c = _mm_unpackhi_epi32(v[0], v[1]);
    const __m128i d = _mm_unpackhi_epi32(v[2], v[3]);
    return (planes){{
        _mm256_broadcastsi128_si256(_mm_unpacklo_epi64(a, b)),
        _mm256_broadcastsi128_si256(_mm_unpackhi_epi64(a, b)),
        _mm256_broadcastsi128_si256(_mm_unpacklo_epi64(c, d)),
        _mm256_broadcastsi128_si256(_mm_unpackhi_epi64(c, d)),
    }};
}

/* 16 bytes to 32 numbers. Unpacking works within halves of registers, so the
 * bytes are first laid out for it: those of vector v are 4 v and 4 v + 1 below
 * and the next two above, each twice. */
AVX2 LB_INLINE void halves_32(const planes *p, const uint8_t *byte, __m256 s,
                              float *out)
{
    const __m256i order =
        _mm256_setr_epi8(0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13, 2,
                         2, 3, 3, 6, 6, 7, 7, 10, 10, 11, 11, 14, 14, 15, 15);
    const __m256i b = _mm256_shuffle_epi8(both_halves(byte), order);
    const __m256i code = _mm256_or_si256(
        _mm256_and_si256(b, _mm256_set1_epi16(0x0f00)),
        _mm256_and_si256(_mm256_srli_epi16(b, 4), _mm256_set1_epi16(0x000f)));
    const __m256i b0 = _mm256_shuffle_epi8(p->plane[0], code);
    const __m256i b1 = _mm256_shuffle_epi8(p->plane[1], code);
    const __m256i b2 = _mm256_shuffle_epi8(p->plane[2], code);
    const __m256i b3 = _mm256_shuffle_epi8(p->plane[3], code);
    const __m256i low0 = _mm256_unpacklo_epi8(b0, b1);
    const __m256i low1 = _mm256_unpackhi_epi8(b0, b1);
    const __m256i high0 = _mm256_unpacklo_epi8(b2, b3);
    const __m256i high1 = _mm256_unpackhi_epi8(b2, b3);
    const __m256i w0 = _mm256_unpacklo_epi16(low0, high0);
    const __m256i w1 = _mm256_unpackhi_epi16(low0, high0);
    const __m256i w2 = _mm256_unpacklo_epi16(low1, high1);
    const __m256i w3 = _mm256_unpackhi_epi16(low1, high1);
    _mm256_storeu_ps(out, _mm256_mul_ps(s, _mm256_castsi256_ps(w0)));
    _mm256_storeu_ps(out + 8, _mm256_mul_ps(s, _mm256_castsi256_ps(w1)));
    _mm256_storeu_ps(out + 16, _mm256_mul_ps(s, _mm256_castsi256_ps(w2)));
    _mm256_storeu_ps(out + 24, _mm256_mul_ps(s, _mm256_castsi256_ps(w3)));
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

/* The four codes, or two twice, as numbers. */
AVX2 LB_INLINE __m256 codes_of(lb_fields f)
{
    const __m256i four = _mm256_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3);
    const __m256i two = _mm256_setr_epi32(0, 1, 0, 1, 0, 1, 0, 1);
    const __m256i code =
        _mm256_add_epi32(_mm256_set1_epi32(f.least),
                         _mm256_mullo_epi32(_mm256_set1_epi32(f.step),
                                            f.bits == 1 ? two : four));
    return _mm256_cvtepi32_ps(code);
}

AVX2 LB_INLINE void put_fields(__m256 four, __m256i dword, __m256i shift,
                               float *out)
{
    _mm256_storeu_ps(
        out, _mm256_permutevar_ps(four, _mm256_srlv_epi32(dword, shift)));
}

AVX2 LB_INLINE __m256i eight_times(int bits)
{
    return _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                              _mm256_set1_epi32(bits));
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

/* Two numbers; c is left with what follows. The second byte of some registers
 * is a register, too: a compiler that is not let know what c was shifts once
 * where it would copy and shift twice. */
AVX2 LB_INLINE __m128 two_levels(const float *t, uint64_t *c)
{
    LB_IN_BYTES(*c);
    const __m128 a = _mm_load_ss(t + (*c & 255));
    const __m128 b = _mm_load_ss(t + (*c >> 8 & 255));
    *c >>= 16;
    return _mm_unpacklo_ps(a, b);
}

/* Loads find numbers faster than a gather does. */
AVX2 LB_INLINE __m256 eight_levels(const float *t, const uint8_t *code)
{
    uint64_t c;
    memcpy(&c, code, sizeof c);
    const __m128 p0 = two_levels(t, &c), p1 = two_levels(t, &c);
    const __m128 p2 = two_levels(t, &c), p3 = two_levels(t, &c);
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_movelh_ps(p0, p1)),
                                _mm_movelh_ps(p2, p3), 1);
}

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

AVX2 LB_INLINE __m256 scale_at(const uint8_t *d)
{
    const __m128i h = _mm_cvtsi32_si128(d[0] | d[1] << 8);
    return _mm256_broadcastss_ps(_mm_cvtph_ps(h));
}

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

/* -d, 0 * d, d, 2 * d, for vpermilps. */
AVX2 LB_INLINE __m256 four_signs(__m256 d)
{
    return _mm256_mul_ps(_mm256_setr_ps(-1, 0, 1, 2, -1, 0, 1, 2), d);
}

/* Eight bytes, each at the given byte of its dword. */
AVX2 LB_INLINE __m256i dwords(const uint8_t *from, int place)
{
    const __m256i lowest = _mm256_setr_epi8(
        0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1, -1, -1, 4, -1, -1,
        -1, 5, -1, -1, -1, 6, -1, -1, -1, 7, -1, -1, -1);
    int64_t eight;
    memcpy(&eight, from, sizeof eight);
    const __m256i v = _mm256_shuffle_epi8(_mm256_set1_epi64x(eight), lowest);
    return place ? _mm256_slli_epi32(v, 8) : v;
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

/* Digits of eight fractions: with a byte in bits 8 .. 15, times 3 the first
 * digit is what reaches bit 16, and the fraction of the others remains. */
AVX2 LB_INLINE void put_digits(__m256 four, __m256i fraction, int digits,
                               int step, float *out)
{
    const __m256i three = _mm256_set1_epi32(3);
    for (int k = 0; k < digits; k++, out += step) {
        _mm256_storeu_ps(out, _mm256_permutevar_ps(
                                  four, _mm256_mulhi_epu16(fraction, three)));
        fraction = _mm256_mullo_epi16(fraction, three);
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
        /* Four bytes of four digits: two of them to a vector. */
        int32_t word;
        memcpy(&word, from + 48, sizeof word);
        const __m256i b = _mm256_shuffle_epi8(
            _mm256_set1_epi32(word),
            _mm256_setr_epi8(-1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3,
                             -1, -1, -1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1,
                             -1, -1, 3, -1, -1));
        const __m256i one_nine = _mm256_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3);
        const __m256i first = _mm256_mullo_epi16(b, one_nine);
        put_digits(four, first, 1, 0, out + 240);
        put_digits(four, _mm256_mullo_epi16(first, _mm256_set1_epi32(9)), 1, 0,
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
