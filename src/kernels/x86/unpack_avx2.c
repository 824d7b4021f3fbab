/* unpack_avx2.c - codes to elements of a float dtype with AVX2, FMA and F16C;
 * see kernels/unpack.h.
 *
 * Numbers come as decode_avx2.h makes them, sixteen at a time, which is a line
 * of f32 or half of one of 16 bits. The dtype is a constant wherever it is an
 * argument called d.
 */
#include "kernels/unpack.h"

#if defined(__x86_64__)
#include <float.h>

#include "kernels/x86/unpack_avx2.h"

enum { SOME = LB_UNPACK_SOME };

/* ---- where numbers go --------------------------------------------------- */

/* f32 that stays in the caches is decoded where it belongs. */
static bool takes(lb_sink to, int64_t n)
{
    const bool f32 = to.dtype == LB_F32 && to.past;
    const bool half = to.dtype == LB_BF16 || (to.dtype == LB_F16 && LB_EXACT);
    const bool aligned = !to.past || (uintptr_t)to.out % 16 == 0;
    return (f32 || half) && aligned && n % SOME == 0;
}

/* All of n, or each value's, are so many. */
static bool spans_are(lb_spans s, int64_t n, int64_t step)
{
    return (s.head >= n || (s.head % step == 0 && s.each % step == 0)) &&
           n % step == 0;
}

/* Elements i .. i + 15. */
AVX2 LB_INLINE void put(const lb_dtype d, lb_sink to, int64_t i, __m256 a,
                        __m256 b)
{
    if (d == LB_F32) {
        float *out = (float *)to.out + i;
        lb_stream_32(out, _mm256_castps_si256(a));
        lb_stream_32(out + 8, _mm256_castps_si256(b));
        return;
    }
    lb_put_16(to, i, lb_halved(d, a, b));
}

/* The same, of even elements and of odd ones, none a NaN: that is how bf16 is
 * put together fastest. */
AVX2 LB_INLINE void put_pairs(lb_sink to, int64_t i, __m256 even, __m256 odd)
{
    lb_put_16(to, i,
              _mm256_blend_epi16(lb_high_halves(lb_bf16_of(even)),
                                 lb_bf16_of(odd), 0xaa));
}

AVX2 LB_INLINE void put_floats(const lb_dtype d, lb_sink to, int64_t i,
                               const float *x)
{
    put(d, to, i, _mm256_loadu_ps(x), _mm256_loadu_ps(x + 8));
}

/* ---- bytes -------------------------------------------------------------- */

/* As tops and next_tops, of even bytes and of odd ones. */
AVX2 LB_INLINE __m256i even_tops(void)
{
    return _mm256_setr_epi8(-1, -1, -1, 0, -1, -1, -1, 2, -1, -1, -1, 4, -1, -1,
                            -1, 6, -1, -1, -1, 8, -1, -1, -1, 10, -1, -1, -1,
                            12, -1, -1, -1, 14);
}

AVX2 LB_INLINE __m256i odd_tops(void)
{
    return _mm256_add_epi32(even_tops(), _mm256_set1_epi32(1 << 24));
}

/* Sixteen bytes; no NaN will come of them. */
AVX2 LB_INLINE void put_bytes_by(const lb_dtype d, lb_sink to, int64_t i,
                                 const by how, const void *code, factors f)
{
    const __m256i c = both_halves(code);
    if (d == LB_BF16)
        put_pairs(to, i, scaled(how, floats(c, even_tops()), f),
                  scaled(how, floats(c, odd_tops()), f));
    else
        put(d, to, i, scaled(how, floats(c, tops()), f),
            scaled(how, floats(c, next_tops()), f));
}

/* With a scale that the reference must do. */
AVX2 static void wild_bytes(const lb_dtype d, lb_meaning meaning,
                            const int8_t *code, int64_t i, int64_t end,
                            const float *s, lb_sink to)
{
    const lb_spans one = {s, SOME, SOME};
    for (float x[SOME]; i < end; i += SOME) {
        lb_decode_ref.bytes(meaning, code + i, SOME, one, x);
        if (d == LB_F32)
            put_floats(LB_F32, to, i, x);
        else if (d == LB_BF16)
            put_floats(LB_BF16, to, i, x);
        else
            put_floats(LB_F16, to, i, x);
    }
}

AVX2 LB_INLINE void bytes_by(const lb_dtype d, const by how, lb_meaning meaning,
                             const int8_t *code, int64_t n, lb_spans s,
                             lb_sink to)
{
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const factors f = factors_of(how, s.value[k]);
        if (is_wild(how, s.value[k]) || !(fabsf(s.value[k]) <= FLT_MAX)) {
            wild_bytes(d, meaning, code, i, end, s.value + k, to);
            i = end;
        }
        for (; i < end; i += SOME)
            put_bytes_by(d, to, i, how, code + i, f);
    }
}

AVX2 LB_INLINE void bytes_each(const lb_dtype d, const lb_meaning meaning,
                               const int8_t *code, int64_t n, const float *s,
                               lb_sink to)
{
    for (int64_t i = 0; i < n; i += SOME) {
        const __m256i c = both_halves(code + i);
        const __m256 a = _mm256_loadu_ps(s + i), b = _mm256_loadu_ps(s + i + 8);
        put(d, to, i, each_scaled(meaning, floats(c, tops()), a),
            each_scaled(meaning, floats(c, next_tops()), b));
    }
}

AVX2 LB_INLINE void bytes_to(const lb_dtype d, lb_meaning meaning,
                             const int8_t *code, int64_t n, lb_spans s,
                             lb_sink to)
{
    const bool each = s.each == 1;
    switch (meaning) {
    case LB_MEANS_ABSMAX:
        if (each)
            bytes_each(d, LB_MEANS_ABSMAX, code, n, s.value, to);
        else
            bytes_by(d, TWICE, meaning, code, n, s, to);
        return;
    case LB_MEANS_INVERSE:
        if (each)
            bytes_each(d, LB_MEANS_INVERSE, code, n, s.value, to);
        else
            bytes_by(d, OVER, meaning, code, n, s, to);
        return;
    default:
        if (each)
            bytes_each(d, LB_MEANS_SCALE, code, n, s.value, to);
        else
            bytes_by(d, TIMES, meaning, code, n, s, to);
    }
}

AVX2 static bool bytes_avx2(lb_meaning meaning, const int8_t *code, int64_t n,
                            const lb_spans *spans, lb_sink to)
{
    lb_spans s = *spans;
    const bool each = s.each == 1 && s.head == 1;
    if (!takes(to, n) || !(each || spans_are(s, n, SOME))) return false;
    if (to.dtype == LB_F32)
        bytes_to(LB_F32, meaning, code, n, s, to);
    else if (to.dtype == LB_BF16)
        bytes_to(LB_BF16, meaning, code, n, s, to);
    else
        bytes_to(LB_F16, meaning, code, n, s, to);
    return true;
}

/* ---- halves of bytes ---------------------------------------------------- */

AVX2 static void halves_f32(const float *level, const uint8_t *byte, int64_t n,
                            lb_spans s, lb_sink to)
{
    const planes p = planes_of(level);
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const __m256 scale = _mm256_broadcast_ss(s.value + k);
        for (; i < end; i += 2 * SOME) {
            __m256 v[4];
            halves_of(&p, byte + i / 2, scale, v);
            put(LB_F32, to, i, v[0], v[1]);
            put(LB_F32, to, i + SOME, v[2], v[3]);
        }
    }
}

AVX2 static bool halves_avx2(const float *level, const uint8_t *byte, int64_t n,
                             const lb_spans *spans, lb_sink to)
{
    lb_spans s = *spans;
    if (!takes(to, n) || !spans_are(s, n, 2 * SOME)) return false;
    if (to.dtype == LB_F32)
        halves_f32(level, byte, n, s, to);
    else
        lb_unpack_halves_16(level, byte, n, s, to);
    return true;
}

/* ---- fields ------------------------------------------------------------- */

/* Eight of the fields of a dword, from field 8 v on. */
AVX2 LB_INLINE __m256 fields_of(const int bits, __m256 table, __m256i dword,
                                int v)
{
    const __m256i shift =
        _mm256_add_epi32(eight_times(bits), _mm256_set1_epi32(8 * bits * v));
    return _mm256_permutevar_ps(table, _mm256_srlv_epi32(dword, shift));
}

AVX2 LB_INLINE void fields_f32(const int bits, lb_fields f, const uint8_t *byte,
                               int64_t n, lb_spans s, lb_sink to)
{
    const int per = 32 / bits; /* in a dword */
    const __m256 code = codes_of(f);
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const __m256 scale = _mm256_broadcast_ss(s.value + k);
        const __m256 table =
            f.divides ? _mm256_div_ps(code, scale) : _mm256_mul_ps(code, scale);
        for (; i < end; i += per) {
            int32_t word;
            memcpy(&word, byte + i * bits / 8, sizeof word);
            const __m256i w = _mm256_set1_epi32(word);
            for (int v = 0; v < per / 8; v += 2)
                put(LB_F32, to, i + 8 * v, fields_of(bits, table, w, v),
                    fields_of(bits, table, w, v + 1));
        }
    }
}

AVX2 static bool fields_avx2(lb_fields f, const uint8_t *byte, int64_t n,
                             const lb_spans *spans, lb_sink to)
{
    lb_spans s = *spans;
    static const float one = 1;
    if (!s.value) {
        s = (lb_spans){&one, n, n};
        f.divides = false;
    }
    if (!takes(to, n) || !spans_are(s, n, 32 / f.bits)) return false;
    if (to.dtype != LB_F32)
        lb_unpack_fields_16(f, byte, n, s, to);
    else if (f.bits == 1)
        fields_f32(1, f, byte, n, s, to);
    else
        fields_f32(2, f, byte, n, s, to);
    return true;
}

/* ---- levels of bytes ---------------------------------------------------- */

AVX2 LB_INLINE void levels_to(const lb_dtype d, const float *level,
                              const uint8_t *code, int64_t n, lb_spans s,
                              lb_sink to)
{
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const __m256 scale = _mm256_broadcast_ss(s.value + k);
        for (; i < end; i += SOME)
            put(d, to, i, _mm256_mul_ps(scale, eight_levels(level, code + i)),
                _mm256_mul_ps(scale, eight_levels(level, code + i + 8)));
    }
}

AVX2 static bool levels_avx2(const float *level, const uint8_t *code, int64_t n,
                             const lb_spans *spans, lb_sink to)
{
    lb_spans s = *spans;
    if (!takes(to, n) || !spans_are(s, n, SOME)) return false;
    if (to.dtype == LB_F32)
        levels_to(LB_F32, level, code, n, s, to);
    else if (to.dtype == LB_BF16)
        levels_to(LB_BF16, level, code, n, s, to);
    else
        levels_to(LB_F16, level, code, n, s, to);
    return true;
}

/* ---- blocks of GGUF files ----------------------------------------------- */

AVX2 LB_INLINE void put_bytes(const lb_dtype d, lb_sink to, int64_t i,
                              __m256i twice, __m256 scale)
{
    put(d, to, i, _mm256_mul_ps(floats(twice, tops()), scale),
        _mm256_mul_ps(floats(twice, next_tops()), scale));
}

AVX2 LB_INLINE void bytes32_to(const lb_dtype d, const uint8_t *from, int64_t n,
                               lb_sink to)
{
    for (int64_t i = 0; i < 32 * n; i += 32, from += 34) {
        const __m256 scale = scale_at(from);
        if ((from[1] & 0x7c) == 0x7c) { /* an infinity, or a NaN */
            put_bytes(d, to, i, both_halves(from + 2), scale);
            put_bytes(d, to, i + 16, both_halves(from + 18), scale);
            continue;
        }
        const factors f = {scale, scale};
        put_bytes_by(d, to, i, TIMES, from + 2, f);
        put_bytes_by(d, to, i + 16, TIMES, from + 18, f);
    }
}

AVX2 static bool bytes32_avx2(const uint8_t *from, int64_t n, lb_sink to)
{
    if (!takes(to, 32 * n)) return false;
    if (to.dtype == LB_F32)
        bytes32_to(LB_F32, from, n, to);
    else if (to.dtype == LB_BF16)
        bytes32_to(LB_BF16, from, n, to);
    else
        bytes32_to(LB_F16, from, n, to);
    return true;
}

AVX2 static void halves32_f32(const int8_t *level, const uint8_t *from,
                              int64_t n, lb_sink to)
{
    const __m256i table = both_halves(level), mask = _mm256_set1_epi8(15);
    for (int64_t i = 0; i < n; i++, from += 18) {
        const __m256 scale = scale_at(from);
        const __m256i b = both_halves(from + 2);
        const __m256i low = _mm256_and_si256(b, mask);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(b, 4), mask);
        put_bytes(LB_F32, to, 32 * i, _mm256_shuffle_epi8(table, low), scale);
        put_bytes(LB_F32, to, 32 * i + 16, _mm256_shuffle_epi8(table, high),
                  scale);
    }
}

AVX2 static bool halves32_avx2(const int8_t *level, const uint8_t *from,
                               int64_t n, lb_sink to)
{
    if (!takes(to, 32 * n)) return false;
    if (to.dtype == LB_F32)
        halves32_f32(level, from, n, to);
    else
        lb_unpack_halves32_16(level, from, n, to);
    return true;
}

AVX2 static void pairs256_f32(const uint8_t *from, int64_t n, lb_sink to)
{
    for (int64_t i = 0; i < n; i++, from += 66) {
        const __m256 four = four_signs(scale_at(from + 64));
        for (int m = 0; m < 64; m += SOME) {
            const int64_t at = 256 * i + m / 32 * 128 + m % 32;
            __m256i a = dwords(from + m, 0), b = dwords(from + m + 8, 0);
            for (int k = 0; k < 4; k++) {
                put(LB_F32, to, at + 32 * k, _mm256_permutevar_ps(four, a),
                    _mm256_permutevar_ps(four, b));
                a = _mm256_srli_epi32(a, 2);
                b = _mm256_srli_epi32(b, 2);
            }
        }
    }
}

AVX2 static bool pairs256_avx2(const uint8_t *from, int64_t n, lb_sink to)
{
    if (!takes(to, 256 * n)) return false;
    if (to.dtype == LB_F32)
        pairs256_f32(from, n, to);
    else
        lb_unpack_pairs256_16(from, n, to);
    return true;
}

/* Five digits of sixteen bytes, each `step` elements after the one before. */
AVX2 LB_INLINE void put_digits(lb_sink to, int64_t i, __m256 four,
                               const uint8_t *from, int step)
{
    const __m256i three = _mm256_set1_epi32(3);
    __m256i a = dwords(from, 1), b = dwords(from + 8, 1);
    for (int k = 0; k < 5; k++, i += step) {
        put(LB_F32, to, i, digits_of(four, a), digits_of(four, b));
        a = _mm256_mullo_epi16(a, three);
        b = _mm256_mullo_epi16(b, three);
    }
}

AVX2 static void trits256_f32(const uint8_t *from, int64_t n, lb_sink to)
{
    for (int64_t i = 0; i < 256 * n; i += 256, from += 54) {
        const __m256 four = four_signs(scale_at(from + 52));
        put_digits(to, i, four, from, 32);
        put_digits(to, i + 16, four, from + 16, 32);
        put_digits(to, i + 160, four, from + 32, 16);
        const __m256i last = last_trits(from + 48);
        const __m256i next = _mm256_mullo_epi16(last, _mm256_set1_epi32(9));
        put(LB_F32, to, i + 240, digits_of(four, last), digits_of(four, next));
    }
}

AVX2 static bool trits256_avx2(const uint8_t *from, int64_t n, lb_sink to)
{
    if (!takes(to, 256 * n)) return false;
    if (to.dtype == LB_F32)
        trits256_f32(from, n, to);
    else
        lb_unpack_trits256_16(from, n, to);
    return true;
}

const lb_unpack_kernel lb_unpack_kernel_avx2 = {
    .name = "unpack avx2",
    .bytes = bytes_avx2,
    .halves = halves_avx2,
    .fields = fields_avx2,
    .levels = levels_avx2,
    .bytes32 = bytes32_avx2,
    .halves32 = halves32_avx2,
    .pairs256 = pairs256_avx2,
    .trits256 = trits256_avx2,
};
#endif
