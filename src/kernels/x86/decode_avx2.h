/* decode_avx2.h - vectors of numbers from codes, with AVX2: what decoding to
 * f32 and unpacking to any float dtype have in common.
 *
 * Bytes become floats by a shuffle that puts each on top of its dword, a shift
 * that spreads its sign, and a conversion: vpmovsxbd is slower on whole
 * registers. A table of sixteen floats is four tables of their bytes: four
 * shuffles look up 32 codes, and unpacking puts the bytes together. A table of
 * four is one vpermilps, whose index is what lies lowest in a dword, so fields
 * need a shift and no mask.
 */
#ifndef LB_DECODE_AVX2_H
#define LB_DECODE_AVX2_H

#include <math.h>
#include <string.h>

#include "kernels/decode.h"
#include "kernels/x86/intrin.h"

#define AVX2 LB_TARGET("avx2,fma,f16c")

AVX2 LB_INLINE __m256i both_halves(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

/* ---- bytes ------------------------------------------------------------------
 */

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

/* ---- halves of bytes --------------------------------------------------------
 */

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
AVX2 LB_INLINE void halves_of(const planes *p, const uint8_t *byte, __m256 s,
                              __m256 *v)
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
    v[0] = _mm256_mul_ps(s, _mm256_castsi256_ps(w0));
    v[1] = _mm256_mul_ps(s, _mm256_castsi256_ps(w1));
    v[2] = _mm256_mul_ps(s, _mm256_castsi256_ps(w2));
    v[3] = _mm256_mul_ps(s, _mm256_castsi256_ps(w3));
}

/* ---- fields -----------------------------------------------------------------
 */

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

AVX2 LB_INLINE __m256i eight_times(int bits)
{
    return _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                              _mm256_set1_epi32(bits));
}

/* ---- levels of bytes --------------------------------------------------------
 */

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

/* ---- blocks of GGUF files ---------------------------------------------------
 */

AVX2 LB_INLINE __m256 scale_at(const uint8_t *d)
{
    const __m128i h = _mm_cvtsi32_si128(d[0] | d[1] << 8);
    return _mm256_broadcastss_ps(_mm_cvtph_ps(h));
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

/* The first digits to base 3 of eight fractions: with a byte in bits 8 .. 15 of
 * its dword, times 3 the first digit is what reaches bit 16, and the fraction
 * of the others remains. */
AVX2 LB_INLINE __m256 digits_of(__m256 four, __m256i fraction)
{
    return _mm256_permutevar_ps(
        four, _mm256_mulhi_epu16(fraction, _mm256_set1_epi32(3)));
}

/* Four bytes of four digits: the first digits, then the second ones, come
 * first; times 9, the others do. */
AVX2 LB_INLINE __m256i last_trits(const uint8_t *from)
{
    int32_t word;
    memcpy(&word, from, sizeof word);
    const __m256i b = _mm256_shuffle_epi8(
        _mm256_set1_epi32(word),
        _mm256_setr_epi8(-1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1,
                         -1, -1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3,
                         -1, -1));
    return _mm256_mullo_epi16(b, _mm256_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3));
}

#endif
