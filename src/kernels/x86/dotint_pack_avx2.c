/* dotint_pack_avx2.c - rows of panels of 16 bits with AVX2.
 *
 * A step of the depth is two vectors, in the order in which bytes unpack:
 *
 *   0..7 16..23 | 8..15 24..31
 */
#include "kernels/dotint.h"

#if defined(__x86_64__)
#include <float.h>
#include <string.h>

#include "kernels/x86/dotint_pack.h"

enum { STEP = LB_DOTINT_STEP };

/* ---- w ------------------------------------------------------------------- */

LB_TARGET("avx2")
LB_INLINE __m256i first_lanes(int64_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

/* Eight parts, or the first n of them. */
LB_TARGET("avx2")
LB_INLINE __m128i ratios_8(__m256 scale, __m256 lift, __m256 factor)
{
    const __m256i r =
        _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_mul_ps(scale, lift), factor));
    return _mm_packs_epi32(_mm256_castsi256_si128(r),
                           _mm256_extracti128_si256(r, 1));
}

LB_TARGET("avx2")
LB_INLINE float largest_scale(int64_t n, const float *s)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i most = _mm256_setzero_si256();
    for (; n > 0; n -= 8, s += 8) {
        const __m256 v =
            n >= 8 ? _mm256_loadu_ps(s) : _mm256_maskload_ps(s, first_lanes(n));
        most = _mm256_max_epi32(most,
                                _mm256_and_si256(_mm256_castps_si256(v), mask));
    }
    return lb_largest_of_8(most);
}

LB_TARGET("avx2")
float lb_ratios_avx2(int64_t n, const float *scale, float top, int16_t *ratio)
{
    const float most = largest_scale(n, scale);
    if (!(most > 0 && most <= FLT_MAX)) {
        memset(ratio, 0, (size_t)n * sizeof *ratio);
        return most;
    }
    const float lift = most < 0x1p-100f ? 0x1p100f : 1;
    const __m256 l = _mm256_set1_ps(lift);
    const __m256 f = _mm256_set1_ps(top / (most * lift));
    for (; n >= 8; n -= 8, scale += 8, ratio += 8)
        _mm_storeu_si128((__m128i *)(void *)ratio,
                         ratios_8(_mm256_loadu_ps(scale), l, f));
    if (n) {
        int16_t rest[8];
        const __m256 v = _mm256_maskload_ps(scale, first_lanes(n));
        _mm_storeu_si128((__m128i *)(void *)rest, ratios_8(v, l, f));
        memcpy(ratio, rest, (size_t)n * sizeof *ratio);
    }
    return most;
}

LB_TARGET("avx2")
LB_INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

LB_TARGET("avx2")
LB_INLINE void widen_step(__m256i v, int16_t *to, lb_gaps at)
{
    const __m256i sign = _mm256_cmpgt_epi8(_mm256_setzero_si256(), v);
    lb_put_16(to, _mm256_unpacklo_epi8(v, sign));
    lb_put_16(to + at.second, _mm256_unpackhi_epi8(v, sign));
}

LB_TARGET("avx2")
LB_INLINE __m256i table(const int8_t *entries)
{
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)(const void *)entries));
}

/* A field of each byte. */
typedef struct {
    __m128i shift;
    __m256i mask;
} field_of;

LB_TARGET("avx2")
LB_INLINE field_of make_field(int field, int mask)
{
    return (field_of){_mm_cvtsi32_si128(field), _mm256_set1_epi8((char)mask)};
}

LB_TARGET("avx2")
LB_INLINE __m256i codes(__m256i v, field_of f)
{
    return _mm256_and_si256(_mm256_srl_epi16(v, f.shift), f.mask);
}

LB_TARGET("avx2")
LB_INLINE void widen_numbers(int64_t n, const int8_t *from, int16_t *to,
                             lb_gaps at)
{
    for (; n >= STEP; n -= STEP, from += STEP, to += at.next)
        widen_step(load(from), to, at);
    if (!n) return;
    int8_t rest[STEP] = {0};
    memcpy(rest, from, (size_t)n);
    widen_step(load(rest), to, at);
}

LB_TARGET("avx2")
LB_INLINE void widen_codes(int64_t n, const int8_t *from, const int8_t *number,
                           int field, int mask, int16_t *to, lb_gaps at)
{
    const __m256i numbers = table(number);
    const field_of f = make_field(field, mask);
    for (; n >= STEP; n -= STEP, from += STEP, to += at.next)
        widen_step(_mm256_shuffle_epi8(numbers, codes(load(from), f)), to, at);
    if (!n) return;
    int8_t rest[STEP] = {0};
    for (int64_t k = 0; k < n; k++)
        rest[k] = number[(uint8_t)from[k] >> field & mask];
    widen_step(load(rest), to, at);
}

LB_TARGET("avx2")
LB_INLINE void widen_row(int64_t n, const int8_t *from, const int8_t *number,
                         int field, int mask, int16_t *to, lb_gaps at)
{
    if (number)
        widen_codes(n, from, number, field, mask, to, at);
    else
        widen_numbers(n, from, to, at);
}

/* What a step is multiplied with: one ratio, or one for each number in the
 * order of the panel. */
typedef struct {
    __m256i lo, hi;
} ratios;

LB_TARGET("avx2")
LB_INLINE ratios one_ratio(int16_t ratio)
{
    const __m256i r = _mm256_set1_epi16(ratio);
    return (ratios){r, r};
}

LB_TARGET("avx2")
LB_INLINE ratios ratio_each(const int16_t *ratio)
{
    const __m256i a = load(ratio), b = load(ratio + 16);
    return (ratios){_mm256_permute2x128_si256(a, b, 0x20),
                    _mm256_permute2x128_si256(a, b, 0x31)};
}

/* Where levels are found: tables of their lower and of their higher bytes, or
 * in the number itself. */
typedef struct {
    __m256i lower, higher;
    field_of field;
    bool number;
} levels;

LB_TARGET("avx2")
LB_INLINE levels no_levels(void)
{
    const __m256i zero = _mm256_setzero_si256();
    return (levels){zero, zero, make_field(0, 0), true};
}

LB_TARGET("avx2")
LB_INLINE levels levels_of(const int16_t *level, int field, int mask)
{
    levels l = {.field = make_field(field, mask)};
    const __m128i *at = (const __m128i *)(const void *)level;
    const __m128i a = _mm_loadu_si128(at), b = _mm_loadu_si128(at + 1);
    const __m128i byte = _mm_set1_epi16(255);
    l.lower = _mm256_broadcastsi128_si256(
        _mm_packus_epi16(_mm_and_si128(a, byte), _mm_and_si128(b, byte)));
    l.higher = _mm256_broadcastsi128_si256(
        _mm_packs_epi16(_mm_srai_epi16(a, 8), _mm_srai_epi16(b, 8)));
    return l;
}

/* A byte over a zero is the byte times 256; a shift makes that 2^6. */
LB_TARGET("avx2")
LB_INLINE void scale_step(__m256i v, levels l, ratios r, int16_t *to,
                          lb_gaps at)
{
    const int down = 8 - LB_DOTINT_NUMBER_BITS;
    const __m256i a =
        l.number ? _mm256_setzero_si256() : _mm256_shuffle_epi8(l.lower, v);
    const __m256i b = l.number ? v : _mm256_shuffle_epi8(l.higher, v);
    __m256i lo = _mm256_unpacklo_epi8(a, b), hi = _mm256_unpackhi_epi8(a, b);
    if (l.number) {
        lo = _mm256_srai_epi16(lo, down);
        hi = _mm256_srai_epi16(hi, down);
    }
    lb_put_16(to, _mm256_mulhrs_epi16(lo, r.lo));
    lb_put_16(to + at.second, _mm256_mulhrs_epi16(hi, r.hi));
}

LB_TARGET("avx2")
LB_INLINE __m256i bytes_of(const int8_t *from, levels l)
{
    return l.number ? load(from) : codes(load(from), l.field);
}

/* Whole steps; whether there are levels is a constant where this is inlined. */
LB_TARGET("avx2")
LB_INLINE void scale_steps(int64_t n, const int8_t *from, levels l,
                           const int16_t *ratio, int64_t g, int16_t *to,
                           lb_gaps at)
{
    if (g == 1) {
        for (int64_t k = 0; k < n; k += STEP, to += at.next)
            scale_step(bytes_of(from + k, l), l, ratio_each(ratio + k), to, at);
        return;
    }
    for (int64_t k = 0; k < n;) {
        const ratios r = one_ratio(*ratio++);
        const int64_t end = n - k < g ? n : k + g;
        for (; k < end; k += STEP, to += at.next)
            scale_step(bytes_of(from + k, l), l, r, to, at);
    }
}

LB_TARGET("avx2")
LB_INLINE void scale_row(int64_t n, const int8_t *from, levels l,
                         const int16_t *ratio, int64_t g, int16_t *to,
                         lb_gaps at)
{
    const int64_t whole = n / STEP * STEP;
    scale_steps(whole, from, l, ratio, g, to, at);
    if (whole == n) return;
    int8_t rest[STEP] = {0};
    int16_t last[STEP] = {0};
    const int64_t left = n - whole;
    memcpy(rest, from + whole, (size_t)left);
    for (int64_t k = 0; k < left; k++)
        last[k] = ratio[(whole + k) / g];
    scale_steps(STEP, rest, l, last, 1, to + whole / STEP * at.next, at);
}

LB_TARGET("avx2")
LB_INLINE void scale_any(int64_t n, const int8_t *from, const int16_t *level,
                         int field, int mask, const int16_t *ratio, int64_t g,
                         int16_t *to, lb_gaps at)
{
    if (level)
        scale_row(n, from, levels_of(level, field, mask), ratio, g, to, at);
    else
        scale_row(n, from, no_levels(), ratio, g, to, at);
}

/* ---- fields -------------------------------------------------------------- */

LB_TARGET("avx2")
LB_INLINE __m256i low(__m256i v)
{
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}

LB_TARGET("avx2")
LB_INLINE __m256i high(__m256i v)
{
    return low(_mm256_srli_epi16(v, 4));
}

/* The first n of 32 bytes, and zeros. */
typedef struct {
    uint8_t byte[32];
} some_codes;

static some_codes first_codes(const uint8_t *codes, int64_t n)
{
    some_codes s = {{0}};
    memcpy(s.byte, codes, (size_t)n);
    return s;
}

/* What a nibble's lower and higher code of 2 bits stand for. */
LB_TARGET("avx2")
LB_INLINE __m256i lower_of_nibble(__m256i numbers)
{
    return _mm256_shuffle_epi8(numbers, _mm256_set1_epi32(0x03020100));
}

LB_TARGET("avx2")
LB_INLINE __m256i higher_of_nibble(__m256i numbers)
{
    const __m256i twice =
        _mm256_set_epi32(0x03030303, 0x02020202, 0x01010101, 0, 0x03030303,
                         0x02020202, 0x01010101, 0);
    return _mm256_shuffle_epi8(numbers, twice);
}

/* A nibble is one code of 4 bits or two of 2, and looks up either of these; a
 * for the field that comes first. Returns where the next one begins. */
LB_TARGET("avx2")
LB_INLINE int16_t *widen_bytes(__m256i v, const int bits, const bool high_first,
                               __m256i a, __m256i b, int16_t *to, lb_gaps at)
{
    const __m256i one = high_first ? high(v) : low(v);
    const __m256i two = high_first ? low(v) : high(v);
    widen_step(_mm256_shuffle_epi8(a, one), to, at);
    to += at.next;
    if (bits == 2) {
        widen_step(_mm256_shuffle_epi8(b, one), to, at);
        widen_step(_mm256_shuffle_epi8(a, two), to + at.next, at);
        to += 2 * at.next;
    }
    widen_step(_mm256_shuffle_epi8(b, two), to, at);
    return to + at.next;
}

LB_TARGET("avx2")
LB_INLINE void widen_run(const int bits, const bool high_first,
                         const int8_t *number, int64_t n, const uint8_t *codes,
                         int16_t *to, lb_gaps at)
{
    const __m256i all = table(number);
    const __m256i lower = bits == 4 ? all : lower_of_nibble(all);
    const __m256i higher = bits == 4 ? all : higher_of_nibble(all);
    const __m256i a = high_first ? higher : lower;
    const __m256i b = high_first ? lower : higher;
    int64_t left = (n * bits + 7) / 8;
    for (; left >= 32; left -= 32, codes += 32)
        to = widen_bytes(load(codes), bits, high_first, a, b, to, at);
    if (!left) return;
    const some_codes rest = first_codes(codes, left);
    widen_bytes(load(rest.byte), bits, high_first, a, b, to, at);
}

LB_TARGET("avx2")
LB_INLINE void widen_fields(int bits, bool high_first, const int8_t *number,
                            int64_t n, const uint8_t *codes, int16_t *to,
                            lb_gaps at)
{
    if (bits == 4 && high_first)
        widen_run(4, true, number, n, codes, to, at);
    else if (bits == 4)
        widen_run(4, false, number, n, codes, to, at);
    else if (high_first)
        widen_run(2, true, number, n, codes, to, at);
    else
        widen_run(2, false, number, n, codes, to, at);
}

LB_TARGET("avx2")
LB_INLINE void scale_bytes(__m256i v, const bool high_first, levels l, ratios r,
                           int16_t *to, lb_gaps at)
{
    scale_step(high_first ? high(v) : low(v), l, r, to, at);
    scale_step(high_first ? low(v) : high(v), l, r, to + at.next, at);
}

LB_TARGET("avx2")
LB_INLINE void scale_run(const bool high_first, const int16_t *level,
                         const int16_t *ratio, int64_t g, int64_t n,
                         const uint8_t *codes, int16_t *to, lb_gaps at)
{
    const levels l = levels_of(level, 0, 15);
    const int64_t whole = n / 64 * 64;
    for (int64_t k = 0; k < whole;) {
        const ratios r = one_ratio(*ratio++);
        const int64_t end = whole - k < g ? whole : k + g;
        for (; k < end; k += 64, codes += 32, to += 2 * at.next)
            scale_bytes(load(codes), high_first, l, r, to, at);
    }
    if (whole == n) return;
    const some_codes rest = first_codes(codes, (n - whole + 1) / 2);
    const bool begun = whole % g != 0;
    scale_bytes(load(rest.byte), high_first, l,
                one_ratio(begun ? ratio[-1] : ratio[0]), to, at);
}

LB_TARGET("avx2")
LB_INLINE void scale_fields(bool high_first, const int16_t *level,
                            const int16_t *ratio, int64_t g, int64_t n,
                            const uint8_t *codes, int16_t *to, lb_gaps at)
{
    if (high_first)
        scale_run(true, level, ratio, g, n, codes, to, at);
    else
        scale_run(false, level, ratio, g, n, codes, to, at);
}

/* ---- for tiles of 16 and of 32 lanes ------------------------------------- */

LB_TARGET("avx2")
void lb_widen_avx2(int64_t n, const int8_t *from, const int8_t *number,
                   int field, int mask, int16_t *to, int64_t apart)
{
    widen_row(n, from, number, field, mask, to, lb_gaps_16(apart));
}

LB_TARGET("avx2")
void lb_scale_avx2(int64_t n, const int8_t *from, const int16_t *level,
                   int field, int mask, const int16_t *ratio, int64_t g,
                   int16_t *to, int64_t apart)
{
    scale_any(n, from, level, field, mask, ratio, g, to, lb_gaps_16(apart));
}

LB_TARGET("avx2")
void lb_widen_fields_avx2(int bits, bool high_first, const int8_t *number,
                          int64_t n, const uint8_t *codes, int16_t *to,
                          int64_t apart)
{
    widen_fields(bits, high_first, number, n, codes, to, lb_gaps_16(apart));
}

LB_TARGET("avx2")
void lb_scale_fields_avx2(bool high_first, const int16_t *level,
                          const int16_t *ratio, int64_t g, int64_t n,
                          const uint8_t *codes, int16_t *to, int64_t apart)
{
    scale_fields(high_first, level, ratio, g, n, codes, to, lb_gaps_16(apart));
}

LB_TARGET("avx2")
void lb_widen_avx2_32(int64_t n, const int8_t *from, const int8_t *number,
                      int field, int mask, int16_t *to, int64_t apart)
{
    widen_row(n, from, number, field, mask, to, lb_gaps_32(apart));
}

LB_TARGET("avx2")
void lb_scale_avx2_32(int64_t n, const int8_t *from, const int16_t *level,
                      int field, int mask, const int16_t *ratio, int64_t g,
                      int16_t *to, int64_t apart)
{
    scale_any(n, from, level, field, mask, ratio, g, to, lb_gaps_32(apart));
}

LB_TARGET("avx2")
void lb_widen_fields_avx2_32(int bits, bool high_first, const int8_t *number,
                             int64_t n, const uint8_t *codes, int16_t *to,
                             int64_t apart)
{
    widen_fields(bits, high_first, number, n, codes, to, lb_gaps_32(apart));
}

LB_TARGET("avx2")
void lb_scale_fields_avx2_32(bool high_first, const int16_t *level,
                             const int16_t *ratio, int64_t g, int64_t n,
                             const uint8_t *codes, int16_t *to, int64_t apart)
{
    scale_fields(high_first, level, ratio, g, n, codes, to, lb_gaps_32(apart));
}
#endif
