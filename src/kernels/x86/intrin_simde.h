/* intrin_simde.h - intrinsics that SIMDe 0.7.4 lacks, or does wrong.
 *
 * For intrin.h, in builds with LB_SIMDE, and nobody else: what Intel's manual
 * says, lane by lane. tests/test_intrin.c compares all of them, and what
 * SIMDe has, with the same words said another way; on a machine that has the
 * instructions it compares these instead. One that is missing here is a row
 * there and a row here.
 */
#ifndef LB_INTRIN_SIMDE_H
#define LB_INTRIN_SIMDE_H

#include <math.h>
#include <string.h>

#define __mmask8  simde__mmask8
#define __mmask32 simde__mmask32
#define __mmask64 simde__mmask64

/* A register, however it is looked at. */
typedef union {
    int8_t i8[64];
    uint8_t u8[64];
    int16_t i16[32];
    uint16_t u16[32];
    int32_t i32[16];
    uint32_t u32[16];
    int64_t i64[8];
    float f32[16];
    double f64[8];
    __m128i part[4];
    __m256 half[2];
    __m256i half_int[2];
} lb_simde_lanes;

/* Rows: STEP sees the lanes of a (and b), sets those of r, and runs for i from
 * 0 to N - 1. Lanes that it does not set are 0. */
#define LB_OF_1(NAME, TO, A, N, STEP)                                          \
    LB_INLINE TO lb##NAME(A in)                                                \
    {                                                                          \
        lb_simde_lanes a = {.i64 = {0}}, r = a;                                \
        TO out;                                                                \
        memcpy(&a, &in, sizeof in);                                            \
        for (int i = 0; i < (N); i++)                                          \
            STEP;                                                              \
        memcpy(&out, &r, sizeof out);                                          \
        return out;                                                            \
    }
#define LB_OF_2(NAME, TO, A, B, N, STEP)                                       \
    LB_INLINE TO lb##NAME(A in, B with)                                        \
    {                                                                          \
        lb_simde_lanes a = {.i64 = {0}}, b = a, r = a;                         \
        TO out;                                                                \
        memcpy(&a, &in, sizeof in);                                            \
        memcpy(&b, &with, sizeof with);                                        \
        for (int i = 0; i < (N); i++)                                          \
            STEP;                                                              \
        memcpy(&out, &r, sizeof out);                                          \
        return out;                                                            \
    }
/* A mask where lanes compare so. */
#define LB_COMPARES(NAME, M, V, N, STEP)                                       \
    LB_INLINE M lb##NAME(V in, V with)                                         \
    {                                                                          \
        lb_simde_lanes a = {.i64 = {0}}, b = a;                                \
        M out = 0;                                                             \
        memcpy(&a, &in, sizeof in);                                            \
        memcpy(&b, &with, sizeof with);                                        \
        for (int i = 0; i < (N); i++)                                          \
            if (STEP) out = (M)(out | (M)1 << i);                              \
        return out;                                                            \
    }
/* The three masked ways to memory for elements of SIZE bytes: what the mask
 * leaves out is not touched. */
#define LB_MASKED(PREFIX, SUFFIX, V, M, SIZE)                                  \
    LB_INLINE V lb##PREFIX##_mask_loadu_##SUFFIX(V old, M mask, const void *p) \
    {                                                                          \
        for (size_t i = 0; i < sizeof old / (SIZE); i++)                       \
            if (mask >> i & 1)                                                 \
                memcpy((char *)&old + i * (SIZE),                              \
                       (const char *)p + i * (SIZE), SIZE);                    \
        return old;                                                            \
    }                                                                          \
    LB_INLINE V lb##PREFIX##_maskz_loadu_##SUFFIX(M mask, const void *p)       \
    {                                                                          \
        V zero;                                                                \
        memset(&zero, 0, sizeof zero);                                         \
        return lb##PREFIX##_mask_loadu_##SUFFIX(zero, mask, p);                \
    }                                                                          \
    LB_INLINE void lb##PREFIX##_mask_storeu_##SUFFIX(void *p, M mask, V v)     \
    {                                                                          \
        for (size_t i = 0; i < sizeof v / (SIZE); i++)                         \
            if (mask >> i & 1)                                                 \
                memcpy((char *)p + i * (SIZE), (const char *)&v + i * (SIZE),  \
                       SIZE);                                                  \
    }

/* ---- to and from memory -------------------------------------------------- */

LB_MASKED(_mm512, epi8, __m512i, __mmask64, 1)
LB_MASKED(_mm512, epi16, __m512i, __mmask32, 2)
LB_MASKED(_mm512, epi32, __m512i, __mmask16, 4)
LB_MASKED(_mm512, epi64, __m512i, __mmask8, 8)
LB_MASKED(_mm512, pd, __m512d, __mmask8, 8)
LB_MASKED(_mm256, epi8, __m256i, __mmask32, 1)
LB_MASKED(_mm256, epi16, __m256i, __mmask16, 2)
LB_MASKED(_mm256, epi32, __m256i, __mmask8, 4)
LB_MASKED(_mm256, ps, __m256, __mmask8, 4)
LB_MASKED(_mm, epi8, __m128i, __mmask16, 1)
LB_MASKED(_mm, epi16, __m128i, __mmask8, 2)
LB_MASKED(_mm, epi32, __m128i, __mmask8, 4)
LB_MASKED(_mm, ps, __m128, __mmask8, 4)

LB_INLINE __m512 lb_mm512_mask_loadu_ps(__m512 old, __mmask16 mask,
                                        const void *p)
{
    __m512i v;
    memcpy(&v, &old, sizeof v);
    v = lb_mm512_mask_loadu_epi32(v, mask, p);
    memcpy(&old, &v, sizeof v);
    return old;
}

LB_INLINE void lb_mm512_stream_ps(void *p, __m512 v)
{
    memcpy(p, &v, sizeof v);
}

LB_INLINE void lb_mm512_stream_si512(void *p, __m512i v)
{
    memcpy(p, &v, sizeof v);
}

/* Signed lanes whose top bit is set in mask; SIMDe reads the others, too. */
LB_INLINE __m256i lb_mm256_maskload_epi32(const void *p, __m256i mask)
{
    const int on = _mm256_movemask_ps(_mm256_castsi256_ps(mask));
    return lb_mm256_maskz_loadu_epi32((__mmask8)on, p);
}

LB_INLINE void lb_mm512_mask_cvtepi32_storeu_epi8(void *p, __mmask16 mask,
                                                  __m512i v)
{
    lb_simde_lanes a;
    memcpy(&a, &v, sizeof v);
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) ((int8_t *)p)[i] = (int8_t)(uint8_t)a.u32[i];
}

/* ---- conversions --------------------------------------------------------- */

LB_OF_1(_mm512_cvtepu8_epi16, __m512i, __m256i, 32, r.u16[i] = a.u8[i])
LB_OF_1(_mm512_cvtepi8_epi32, __m512i, __m128i, 16, r.i32[i] = a.i8[i])
LB_OF_1(_mm512_cvtepu8_epi32, __m512i, __m128i, 16, r.u32[i] = a.u8[i])
LB_OF_1(_mm512_cvtepi16_epi32, __m512i, __m256i, 16, r.i32[i] = a.i16[i])
LB_OF_1(_mm512_cvtepu16_epi32, __m512i, __m256i, 16, r.u32[i] = a.u16[i])
LB_OF_1(_mm512_cvtepi32_epi8, __m128i, __m512i, 16, r.u8[i] = (uint8_t)a.u32[i])
LB_OF_1(_mm512_cvtepi32_epi16, __m256i, __m512i, 16,
        r.u16[i] = (uint16_t)a.u32[i])
LB_OF_1(_mm256_cvtepi32_epi8, __m128i, __m256i, 8, r.u8[i] = (uint8_t)a.u32[i])
LB_OF_1(_mm256_cvtepi16_epi8, __m128i, __m256i, 16, r.u8[i] = (uint8_t)a.u16[i])
LB_OF_1(_mm512_cvtusepi32_epi8, __m128i, __m512i, 16,
        r.u8[i] = (uint8_t)(a.u32[i] > 255 ? 255 : a.u32[i]))
LB_OF_1(_mm512_cvtepi32_pd, __m512d, __m256i, 8, r.f64[i] = a.i32[i])
LB_OF_1(_mm512_cvtps_pd, __m512d, __m256, 8, r.f64[i] = (double)a.f32[i])
LB_OF_1(_mm512_cvtpd_ps, __m256, __m512d, 8, r.f32[i] = (float)a.f64[i])
/* Rounding and what does not fit are the same for half a register. */
LB_OF_1(_mm512_cvtepi32_ps, __m512, __m512i, 2,
        r.half[i] = _mm256_cvtepi32_ps(a.half_int[i]))
LB_OF_1(_mm512_cvtps_epi32, __m512i, __m512, 2,
        r.half_int[i] = _mm256_cvtps_epi32(a.half[i]))
LB_OF_1(_mm512_cvttps_epi32, __m512i, __m512, 2,
        r.half_int[i] = _mm256_cvttps_epi32(a.half[i]))
LB_OF_1(_mm512_cvtph_ps, __m512, __m256i, 2,
        r.half[i] = _mm256_cvtph_ps(a.part[i]))
/* The rounding is a constant, so it stays in a macro. */
#define lb_mm512_cvtps_ph(v, how)                                              \
    lb_join_ph(_mm256_cvtps_ph(_mm512_castps512_ps256(v), (how)),              \
               _mm256_cvtps_ph(lb_mm512_extractf32x8_ps((v), 1), (how)))

LB_INLINE __m256i lb_join_ph(__m128i lo, __m128i hi)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(lo), hi, 1);
}

/* ---- parts of registers -------------------------------------------------- */

LB_INLINE __m256 lb_mm512_extractf32x8_ps(__m512 v, int k)
{
    lb_simde_lanes a;
    memcpy(&a, &v, sizeof v);
    return a.half[k];
}

LB_INLINE __m256i lb_mm512_extracti32x8_epi32(__m512i v, int k)
{
    lb_simde_lanes a;
    memcpy(&a, &v, sizeof v);
    return a.half_int[k];
}

LB_OF_1(_mm512_zextsi256_si512, __m512i, __m256i, 8, r.i32[i] = a.i32[i])
LB_OF_1(_mm512_zextps256_ps512, __m512, __m256, 8, r.i32[i] = a.i32[i])
LB_OF_1(_mm512_broadcast_i32x8, __m512i, __m256i, 16, r.i32[i] = a.i32[i % 8])
LB_OF_1(_mm512_cvtss_f32, float, __m512, 1, r.f32[i] = a.f32[i])
LB_OF_1(_mm512_cvtsi512_si32, int, __m512i, 1, r.i32[i] = a.i32[i])

/* ---- shuffles ------------------------------------------------------------ */

LB_OF_2(_mm512_permutevar_ps, __m512, __m512, __m512i, 16,
        r.i32[i] = a.i32[(i & ~3) + (b.i32[i] & 3)])
LB_OF_2(_mm512_permute_ps, __m512, __m512, int, 16,
        r.i32[i] = a.i32[(i & ~3) + (b.i32[0] >> i % 4 * 2 & 3)])
LB_OF_2(_mm512_shuffle_epi32, __m512i, __m512i, int, 16,
        r.i32[i] = a.i32[(i & ~3) + (b.i32[0] >> i % 4 * 2 & 3)])
LB_OF_2(_mm512_bslli_epi128, __m512i, __m512i, int, 64,
        r.u8[i] = (uint8_t)(i % 16 < b.i32[0] ? 0 : a.u8[i - b.i32[0]]))
LB_OF_2(_mm512_bsrli_epi128, __m512i, __m512i, int, 64,
        r.u8[i] = (uint8_t)(i % 16 + b.i32[0] > 15 ? 0 : a.u8[i + b.i32[0]]))

LB_INLINE __m512 lb_mm512_shuffle_f32x4(__m512 x, __m512 y, int how)
{
    lb_simde_lanes a, b, r;
    memcpy(&a, &x, sizeof x);
    memcpy(&b, &y, sizeof y);
    for (int i = 0; i < 4; i++)
        r.part[i] = (i < 2 ? &a : &b)->part[how >> 2 * i & 3];
    memcpy(&x, &r, sizeof x);
    return x;
}

LB_INLINE __m512i lb_mm512_alignr_epi32(__m512i high, __m512i low, int n)
{
    int32_t both[32];
    memcpy(both, &low, sizeof low);
    memcpy(both + 16, &high, sizeof high);
    memcpy(&low, both + (n & 15), sizeof low);
    return low;
}

/* Within each 16 bytes. */
LB_INLINE __m512i lb_mm512_alignr_epi8(__m512i high, __m512i low, int n)
{
    lb_simde_lanes a, b, r;
    memcpy(&a, &low, sizeof low);
    memcpy(&b, &high, sizeof high);
    for (int i = 0; i < 64; i++) {
        const int from = i % 16 + n, at = i / 16 * 16 + from % 16;
        r.u8[i] = (uint8_t)(from < 16 ? a.u8[at] : from < 32 ? b.u8[at] : 0);
    }
    memcpy(&low, &r, sizeof low);
    return low;
}

/* ---- arithmetic ---------------------------------------------------------- */

/* SIMDe's leaves -0 as it is. */
LB_OF_1(_mm512_abs_ps, __m512, __m512, 16, r.u32[i] = a.u32[i] & 0x7fffffff)
LB_OF_2(_mm512_srai_epi32, __m512i, __m512i, unsigned, 16,
        r.i32[i] = a.i32[i] >> (b.u32[0] > 31 ? 31 : b.u32[0]))
LB_OF_2(_mm512_srav_epi32, __m512i, __m512i, __m512i, 16,
        r.i32[i] = a.i32[i] >> (b.u32[i] > 31 ? 31 : b.u32[i]))

/* SIMDe has it, under a name with two operands too many. */
LB_OF_2(_mm512_mulhi_epu16, __m512i, __m512i, __m512i, 32,
        r.u16[i] = (uint16_t)((uint32_t)a.u16[i] * b.u16[i] >> 16))
LB_OF_2(_mm512_madd_epi16, __m512i, __m512i, __m512i, 2,
        r.half_int[i] = _mm256_madd_epi16(a.half_int[i], b.half_int[i]))

/* acc where the mask leaves it. */
LB_INLINE __m512 lb_mm512_mask3_fmadd_ps(__m512 a, __m512 b, __m512 acc,
                                         __mmask16 mask)
{
    return _mm512_mask_blend_ps(mask, acc, _mm512_fmadd_ps(a, b, acc));
}

/* Halves are added to halves: what the compilers make of it. */
LB_INLINE float lb_mm512_reduce_add_ps(__m512 v)
{
    lb_simde_lanes a;
    memcpy(&a, &v, sizeof v);
    for (int n = 8; n; n /= 2)
        for (int i = 0; i < n; i++)
            a.f32[i] += a.f32[i + n];
    return a.f32[0];
}

LB_INLINE double lb_mm512_reduce_add_pd(__m512d v)
{
    lb_simde_lanes a;
    memcpy(&a, &v, sizeof v);
    for (int n = 4; n; n /= 2)
        for (int i = 0; i < n; i++)
            a.f64[i] += a.f64[i + n];
    return a.f64[0];
}

LB_INLINE int lb_mm512_reduce_add_epi32(__m512i v)
{
    lb_simde_lanes a;
    memcpy(&a, &v, sizeof v);
    for (int i = 1; i < 16; i++)
        a.u32[0] += a.u32[i];
    return a.i32[0];
}

/* As vmaxps takes it: the second of the two unless the first is greater. */
LB_INLINE float lb_mm512_reduce_max_ps(__m512 v)
{
    lb_simde_lanes a;
    memcpy(&a, &v, sizeof v);
    for (int n = 8; n; n /= 2)
        for (int i = 0; i < n; i++)
            if (!(a.f32[i] > a.f32[i + n])) a.f32[i] = a.f32[i + n];
    return a.f32[0];
}

/* ---- masks --------------------------------------------------------------- */

LB_COMPARES(_mm512_cmple_ps_mask, __mmask16, __m512, 16, a.f32[i] <= b.f32[i])
LB_COMPARES(_mm512_cmpneq_ps_mask, __mmask16, __m512, 16,
            !(a.f32[i] == b.f32[i]))
LB_COMPARES(_mm512_cmplt_epi32_mask, __mmask16, __m512i, 16,
            a.i32[i] < b.i32[i])
LB_COMPARES(_mm512_cmpneq_epi8_mask, __mmask64, __m512i, 64, a.i8[i] != b.i8[i])
LB_COMPARES(_mm512_cmpgt_epi16_mask, __mmask32, __m512i, 32,
            a.i16[i] > b.i16[i])
LB_COMPARES(_mm512_cmpeq_epi16_mask, __mmask32, __m512i, 32,
            a.i16[i] == b.i16[i])
LB_COMPARES(_mm512_testn_epi8_mask, __mmask64, __m512i, 64,
            !(a.u8[i] & b.u8[i]))
LB_COMPARES(_mm512_testn_epi32_mask, __mmask16, __m512i, 16,
            !(a.u32[i] & b.u32[i]))

/* ---- their names -------------------------------------------------------- */

#undef _mm256_cvtepi16_epi8
#undef _mm256_cvtepi32_epi8
#undef _mm256_mask_loadu_epi16
#undef _mm256_mask_loadu_epi32
#undef _mm256_mask_loadu_epi8
#undef _mm256_mask_loadu_ps
#undef _mm256_mask_storeu_epi16
#undef _mm256_mask_storeu_epi32
#undef _mm256_mask_storeu_epi8
#undef _mm256_mask_storeu_ps
#undef _mm256_maskload_epi32
#undef _mm256_maskz_loadu_epi16
#undef _mm256_maskz_loadu_epi32
#undef _mm256_maskz_loadu_epi8
#undef _mm256_maskz_loadu_ps
#undef _mm512_abs_ps
#undef _mm512_alignr_epi32
#undef _mm512_alignr_epi8
#undef _mm512_broadcast_i32x8
#undef _mm512_bslli_epi128
#undef _mm512_bsrli_epi128
#undef _mm512_cmpeq_epi16_mask
#undef _mm512_cmpgt_epi16_mask
#undef _mm512_cmple_ps_mask
#undef _mm512_cmplt_epi32_mask
#undef _mm512_cmpneq_epi8_mask
#undef _mm512_cmpneq_ps_mask
#undef _mm512_cvtepi16_epi32
#undef _mm512_cvtepi32_epi16
#undef _mm512_cvtepi32_epi8
#undef _mm512_cvtepi32_pd
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtepi8_epi32
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtepu8_epi16
#undef _mm512_cvtepu8_epi32
#undef _mm512_cvtpd_ps
#undef _mm512_cvtph_ps
#undef _mm512_cvtps_epi32
#undef _mm512_cvtps_pd
#undef _mm512_cvtps_ph
#undef _mm512_cvtsi512_si32
#undef _mm512_cvtss_f32
#undef _mm512_cvttps_epi32
#undef _mm512_cvtusepi32_epi8
#undef _mm512_extractf32x8_ps
#undef _mm512_extracti32x8_epi32
#undef _mm512_madd_epi16
#undef _mm512_mask3_fmadd_ps
#undef _mm512_mask_cvtepi32_storeu_epi8
#undef _mm512_mask_loadu_epi16
#undef _mm512_mask_loadu_epi32
#undef _mm512_mask_loadu_epi64
#undef _mm512_mask_loadu_epi8
#undef _mm512_mask_loadu_pd
#undef _mm512_mask_loadu_ps
#undef _mm512_mask_storeu_epi16
#undef _mm512_mask_storeu_epi32
#undef _mm512_mask_storeu_epi64
#undef _mm512_mask_storeu_epi8
#undef _mm512_mask_storeu_pd
#undef _mm512_maskz_loadu_epi16
#undef _mm512_maskz_loadu_epi32
#undef _mm512_maskz_loadu_epi64
#undef _mm512_maskz_loadu_epi8
#undef _mm512_maskz_loadu_pd
#undef _mm512_mulhi_epu16
#undef _mm512_permute_ps
#undef _mm512_permutevar_ps
#undef _mm512_reduce_add_epi32
#undef _mm512_reduce_add_pd
#undef _mm512_reduce_add_ps
#undef _mm512_reduce_max_ps
#undef _mm512_shuffle_epi32
#undef _mm512_shuffle_f32x4
#undef _mm512_srai_epi32
#undef _mm512_srav_epi32
#undef _mm512_stream_ps
#undef _mm512_stream_si512
#undef _mm512_testn_epi32_mask
#undef _mm512_testn_epi8_mask
#undef _mm512_zextps256_ps512
#undef _mm512_zextsi256_si512
#undef _mm_mask_loadu_epi16
#undef _mm_mask_loadu_epi32
#undef _mm_mask_loadu_epi8
#undef _mm_mask_loadu_ps
#undef _mm_mask_storeu_epi16
#undef _mm_mask_storeu_epi32
#undef _mm_mask_storeu_epi8
#undef _mm_mask_storeu_ps
#undef _mm_maskz_loadu_epi16
#undef _mm_maskz_loadu_epi32
#undef _mm_maskz_loadu_epi8
#undef _mm_maskz_loadu_ps

#define _mm256_cvtepi16_epi8             lb_mm256_cvtepi16_epi8
#define _mm256_cvtepi32_epi8             lb_mm256_cvtepi32_epi8
#define _mm256_mask_loadu_epi16          lb_mm256_mask_loadu_epi16
#define _mm256_mask_loadu_epi32          lb_mm256_mask_loadu_epi32
#define _mm256_mask_loadu_epi8           lb_mm256_mask_loadu_epi8
#define _mm256_mask_loadu_ps             lb_mm256_mask_loadu_ps
#define _mm256_mask_storeu_epi16         lb_mm256_mask_storeu_epi16
#define _mm256_mask_storeu_epi32         lb_mm256_mask_storeu_epi32
#define _mm256_mask_storeu_epi8          lb_mm256_mask_storeu_epi8
#define _mm256_mask_storeu_ps            lb_mm256_mask_storeu_ps
#define _mm256_maskload_epi32            lb_mm256_maskload_epi32
#define _mm256_maskz_loadu_epi16         lb_mm256_maskz_loadu_epi16
#define _mm256_maskz_loadu_epi32         lb_mm256_maskz_loadu_epi32
#define _mm256_maskz_loadu_epi8          lb_mm256_maskz_loadu_epi8
#define _mm256_maskz_loadu_ps            lb_mm256_maskz_loadu_ps
#define _mm512_abs_ps                    lb_mm512_abs_ps
#define _mm512_alignr_epi32              lb_mm512_alignr_epi32
#define _mm512_alignr_epi8               lb_mm512_alignr_epi8
#define _mm512_broadcast_i32x8           lb_mm512_broadcast_i32x8
#define _mm512_bslli_epi128              lb_mm512_bslli_epi128
#define _mm512_bsrli_epi128              lb_mm512_bsrli_epi128
#define _mm512_cmpeq_epi16_mask          lb_mm512_cmpeq_epi16_mask
#define _mm512_cmpgt_epi16_mask          lb_mm512_cmpgt_epi16_mask
#define _mm512_cmple_ps_mask             lb_mm512_cmple_ps_mask
#define _mm512_cmplt_epi32_mask          lb_mm512_cmplt_epi32_mask
#define _mm512_cmpneq_epi8_mask          lb_mm512_cmpneq_epi8_mask
#define _mm512_cmpneq_ps_mask            lb_mm512_cmpneq_ps_mask
#define _mm512_cvtepi16_epi32            lb_mm512_cvtepi16_epi32
#define _mm512_cvtepi32_epi16            lb_mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi8             lb_mm512_cvtepi32_epi8
#define _mm512_cvtepi32_pd               lb_mm512_cvtepi32_pd
#define _mm512_cvtepi32_ps               lb_mm512_cvtepi32_ps
#define _mm512_cvtepi8_epi32             lb_mm512_cvtepi8_epi32
#define _mm512_cvtepu16_epi32            lb_mm512_cvtepu16_epi32
#define _mm512_cvtepu8_epi16             lb_mm512_cvtepu8_epi16
#define _mm512_cvtepu8_epi32             lb_mm512_cvtepu8_epi32
#define _mm512_cvtpd_ps                  lb_mm512_cvtpd_ps
#define _mm512_cvtph_ps                  lb_mm512_cvtph_ps
#define _mm512_cvtps_epi32               lb_mm512_cvtps_epi32
#define _mm512_cvtps_pd                  lb_mm512_cvtps_pd
#define _mm512_cvtps_ph                  lb_mm512_cvtps_ph
#define _mm512_cvtsi512_si32             lb_mm512_cvtsi512_si32
#define _mm512_cvtss_f32                 lb_mm512_cvtss_f32
#define _mm512_cvttps_epi32              lb_mm512_cvttps_epi32
#define _mm512_cvtusepi32_epi8           lb_mm512_cvtusepi32_epi8
#define _mm512_extractf32x8_ps           lb_mm512_extractf32x8_ps
#define _mm512_extracti32x8_epi32        lb_mm512_extracti32x8_epi32
#define _mm512_madd_epi16                lb_mm512_madd_epi16
#define _mm512_mask3_fmadd_ps            lb_mm512_mask3_fmadd_ps
#define _mm512_mask_cvtepi32_storeu_epi8 lb_mm512_mask_cvtepi32_storeu_epi8
#define _mm512_mask_loadu_epi16          lb_mm512_mask_loadu_epi16
#define _mm512_mask_loadu_epi32          lb_mm512_mask_loadu_epi32
#define _mm512_mask_loadu_epi64          lb_mm512_mask_loadu_epi64
#define _mm512_mask_loadu_epi8           lb_mm512_mask_loadu_epi8
#define _mm512_mask_loadu_pd             lb_mm512_mask_loadu_pd
#define _mm512_mask_loadu_ps             lb_mm512_mask_loadu_ps
#define _mm512_mask_storeu_epi16         lb_mm512_mask_storeu_epi16
#define _mm512_mask_storeu_epi32         lb_mm512_mask_storeu_epi32
#define _mm512_mask_storeu_epi64         lb_mm512_mask_storeu_epi64
#define _mm512_mask_storeu_epi8          lb_mm512_mask_storeu_epi8
#define _mm512_mask_storeu_pd            lb_mm512_mask_storeu_pd
#define _mm512_maskz_loadu_epi16         lb_mm512_maskz_loadu_epi16
#define _mm512_maskz_loadu_epi32         lb_mm512_maskz_loadu_epi32
#define _mm512_maskz_loadu_epi64         lb_mm512_maskz_loadu_epi64
#define _mm512_maskz_loadu_epi8          lb_mm512_maskz_loadu_epi8
#define _mm512_maskz_loadu_pd            lb_mm512_maskz_loadu_pd
#define _mm512_mulhi_epu16               lb_mm512_mulhi_epu16
#define _mm512_permute_ps                lb_mm512_permute_ps
#define _mm512_permutevar_ps             lb_mm512_permutevar_ps
#define _mm512_reduce_add_epi32          lb_mm512_reduce_add_epi32
#define _mm512_reduce_add_pd             lb_mm512_reduce_add_pd
#define _mm512_reduce_add_ps             lb_mm512_reduce_add_ps
#define _mm512_reduce_max_ps             lb_mm512_reduce_max_ps
#define _mm512_shuffle_epi32             lb_mm512_shuffle_epi32
#define _mm512_shuffle_f32x4             lb_mm512_shuffle_f32x4
#define _mm512_srai_epi32                lb_mm512_srai_epi32
#define _mm512_srav_epi32                lb_mm512_srav_epi32
#define _mm512_stream_ps                 lb_mm512_stream_ps
#define _mm512_stream_si512              lb_mm512_stream_si512
#define _mm512_testn_epi32_mask          lb_mm512_testn_epi32_mask
#define _mm512_testn_epi8_mask           lb_mm512_testn_epi8_mask
#define _mm512_zextps256_ps512           lb_mm512_zextps256_ps512
#define _mm512_zextsi256_si512           lb_mm512_zextsi256_si512
#define _mm_mask_loadu_epi16             lb_mm_mask_loadu_epi16
#define _mm_mask_loadu_epi32             lb_mm_mask_loadu_epi32
#define _mm_mask_loadu_epi8              lb_mm_mask_loadu_epi8
#define _mm_mask_loadu_ps                lb_mm_mask_loadu_ps
#define _mm_mask_storeu_epi16            lb_mm_mask_storeu_epi16
#define _mm_mask_storeu_epi32            lb_mm_mask_storeu_epi32
#define _mm_mask_storeu_epi8             lb_mm_mask_storeu_epi8
#define _mm_mask_storeu_ps               lb_mm_mask_storeu_ps
#define _mm_maskz_loadu_epi16            lb_mm_maskz_loadu_epi16
#define _mm_maskz_loadu_epi32            lb_mm_maskz_loadu_epi32
#define _mm_maskz_loadu_epi8             lb_mm_maskz_loadu_epi8
#define _mm_maskz_loadu_ps               lb_mm_maskz_loadu_ps

#endif
