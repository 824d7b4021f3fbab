/* unpack_avx512.h - lines of memory, past the caches, one store to each; and
 * the functions of unpacking with AVX-512 that stand in several files.
 *
 * Numbers come in the order of memory, a vector at a time, but memory need not
 * begin with a line: malloc's does not. So a line is put together from two
 * vectors, the one that came and the one before it, by a permutation. What is
 * left of lines at both ends goes past the caches in dwords: the end of a run
 * and the beginning of the next meet in a buffer of the CPU.
 */
#ifndef LB_UNPACK_AVX512_H
#define LB_UNPACK_AVX512_H

#include "kernels/unpack.h"
#include "kernels/x86/intrin.h"

#define AVX512 LB_TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")

/* Codes that are few to elements of 16 bits, as in unpack.h, of runs that
 * unpack_avx512.c takes. */
void lb_unpack_halves_16_avx512(const float *level, const uint8_t *byte,
                                int64_t n, const lb_spans *s, lb_sink to);
void lb_unpack_fields_16_avx512(lb_fields f, const uint8_t *byte, int64_t n,
                                const lb_spans *s, lb_sink to);
void lb_unpack_halves32_16_avx512(const int8_t *level, const uint8_t *from,
                                  int64_t n, lb_sink to);
void lb_unpack_pairs256_16_avx512(const uint8_t *from, int64_t n, lb_sink to);
void lb_unpack_trits256_16_avx512(const uint8_t *from, int64_t n, lb_sink to);

/* As in unpack.h. */
bool lb_unpack_bytes32_avx512(const uint8_t *from, int64_t n, lb_sink to);
bool lb_unpack_halves32_avx512(const int8_t *level, const uint8_t *from,
                               int64_t n, lb_sink to);
bool lb_unpack_pairs256_avx512(const uint8_t *from, int64_t n, lb_sink to);
bool lb_unpack_trits256_avx512(const uint8_t *from, int64_t n, lb_sink to);
bool lb_unpack_levels_vbmi(const float *level, const uint8_t *code, int64_t n,
                           const lb_spans *s, lb_sink to);

/* Whether n elements, and those of each scale, are whole steps, and go past the
 * caches to where dwords may be: what does not is as fast with AVX2. */
LB_INLINE bool lb_unpack_takes(lb_sink to, int64_t n, const lb_spans *s,
                               int64_t step)
{
    const bool dtype = to.dtype == LB_F32 || to.dtype == LB_BF16 ||
                       (to.dtype == LB_F16 && LB_EXACT);
    const bool whole =
        s->head >= n || (s->head % step == 0 && s->each % step == 0);
    return dtype && to.past && (uintptr_t)to.out % 4 == 0 && n % step == 0 &&
           whole;
}

/* Codes are asked for so many bytes before they are read: their lines come from
 * memory while stores go there, and that takes long. 4 KiB, as tuning.c has it
 * for all that have AVX-512. */
enum { LB_UNPACK_AHEAD = 4096 };

/* ---- lines ----------------------------------------------------------------
 */

typedef struct {
    char *at;     /* the line that comes next; first the beginning */
    __m512i turn; /* which dwords of two vectors it is */
    __m512i last; /* the vector before */
    int head;     /* dwords before the first line's end: 1 to 16 */
    bool begun;
} lb_lines;

AVX512 LB_INLINE lb_lines lb_lines_begin(lb_sink to)
{
    const __m512i count =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const int head = 16 - (int)((uintptr_t)to.out % 64 / 4);
    return (lb_lines){to.out, _mm512_add_epi32(count, _mm512_set1_epi32(head)),
                      _mm512_setzero_si512(), head, false};
}

/* The first n dwords. */
AVX512 LB_INLINE void lb_lines_part(char *at, int n, __m512i v)
{
    int32_t x[16];
    _mm512_storeu_si512((void *)x, v);
    for (int i = 0; i < n; i++)
        _mm_stream_si32((int *)(void *)(at + 4 * i), x[i]);
}

AVX512 LB_INLINE void lb_lines_put(lb_lines *l, __m512i v)
{
    if (l->begun) {
        const __m512 line = _mm512_permutex2var_ps(
            _mm512_castsi512_ps(l->last), l->turn, _mm512_castsi512_ps(v));
        _mm512_stream_ps((void *)l->at, line);
        l->at += 64;
    } else {
        if (l->head == 16)
            _mm512_stream_si512((void *)l->at, v);
        else
            lb_lines_part(l->at, l->head, v);
        l->at += 4 * l->head;
        l->begun = true;
    }
    l->last = v;
}

AVX512 LB_INLINE void lb_lines_put_ps(lb_lines *l, __m512 v)
{
    lb_lines_put(l, _mm512_castps_si512(v));
}

AVX512 LB_INLINE void lb_lines_end(const lb_lines *l)
{
    if (!l->begun || l->head == 16) return;
    const __m512 last = _mm512_castsi512_ps(l->last);
    lb_lines_part(
        l->at, 16 - l->head,
        _mm512_castps_si512(_mm512_permutex2var_ps(last, l->turn, last)));
}

/* ---- 16 bits --------------------------------------------------------------
 */

/* Rounded to nearest even, in the high halves of dwords; no NaNs. */
AVX512 LB_INLINE __m512i lb_bf16_rounded(__m512 x)
{
    const __m512i u = _mm512_castps_si512(x);
    const __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
    return _mm512_mask_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)),
                                 odd, u, _mm512_set1_epi32(0x8000));
}

/* NaNs stay, and become quiet. */
AVX512 LB_INLINE __m512i lb_bf16_any(__m512 x)
{
    const __m512i u = _mm512_castps_si512(x);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(lb_bf16_rounded(x), nan, u,
                                _mm512_set1_epi32(0x400000));
}

/* Thirty-two numbers, sixteen and then sixteen, as 16 bits. */
AVX512 LB_INLINE __m512i lb_halves_of(const lb_dtype d, __m512 a, __m512 b)
{
    if (d == LB_F16)
        return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(a, 0)),
                                  _mm512_cvtps_ph(b, 0), 1);
    const __m512i high = _mm512_setr_epi32(
        0x30001, 0x70005, 0xb0009, 0xf000d, 0x130011, 0x170015, 0x1b0019,
        0x1f001d, 0x230021, 0x270025, 0x2b0029, 0x2f002d, 0x330031, 0x370035,
        0x3b0039, 0x3f003d);
    return _mm512_permutex2var_epi16(lb_bf16_any(a), high, lb_bf16_any(b));
}

/* Even ones and odd ones, as bf16; no NaNs. */
AVX512 LB_INLINE __m512i lb_bf16_joined(__m512 even, __m512 odd)
{
    return _mm512_mask_blend_epi16(0xaaaaaaaa,
                                   _mm512_srli_epi32(lb_bf16_rounded(even), 16),
                                   lb_bf16_rounded(odd));
}

/* ---- numbers --------------------------------------------------------------
 */

/* Codes 0 to 3, in every quarter. */
AVX512 LB_INLINE __m512 lb_four_numbers(int least, int step)
{
    const __m512i four =
        _mm512_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
    return _mm512_cvtepi32_ps(
        _mm512_add_epi32(_mm512_set1_epi32(least),
                         _mm512_mullo_epi32(_mm512_set1_epi32(step), four)));
}

/* The scale of a GGUF block. */
AVX512 LB_INLINE __m512 lb_block_scale(const uint8_t *d)
{
    const __m128i h = _mm_cvtsi32_si128(d[0] | d[1] << 8);
    return _mm512_broadcastss_ps(_mm_cvtph_ps(h));
}

#endif
