/* unpack_levels_avx512.c - bytes that stand for levels of a table, with the
 * byte permutations of VBMI; see kernels/unpack.h.
 *
 * 256 numbers are four planes of their bytes, each four registers. 64 codes
 * find their bytes in a plane by two permutations, of which the highest bit of
 * a code chooses; then the bytes are put together. That is four times as fast
 * as loads.
 */
#include "kernels/unpack.h"

#if defined(__x86_64__)
#include "kernels/x86/unpack_avx512.h"

#define VBMI                                                                   \
    LB_TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")

enum { CODES = 64, AHEAD = LB_UNPACK_AHEAD };

typedef struct {
    __m512i of[4][4]; /* a plane, 64 levels */
} planes;

/* 64 levels, as one register of each plane. */
VBMI LB_INLINE void split_vbmi(const float *level, planes *p, int q)
{
    const __m128i bytes = _mm_setr_epi8(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40,
                                        44, 48, 52, 56, 60);
    const __m512i sort = _mm512_add_epi8(
        _mm512_broadcast_i32x4(bytes),
        _mm512_setr_epi32(0, 0, 0, 0, 0x01010101, 0x01010101, 0x01010101,
                          0x01010101, 0x02020202, 0x02020202, 0x02020202,
                          0x02020202, 0x03030303, 0x03030303, 0x03030303,
                          0x03030303));
    __m512i v[4]; /* quarters: bytes 0, 1, 2, 3 of sixteen levels */
    LB_UNROLL for (int k = 0; k < 4; k++) v[k] = _mm512_permutexvar_epi8(
        sort, _mm512_loadu_si512((const void *)(level + 16 * k)));
    const __m512i a = _mm512_shuffle_i32x4(v[0], v[1], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(v[2], v[3], 0x44);
    const __m512i c = _mm512_shuffle_i32x4(v[0], v[1], 0xee);
    const __m512i d = _mm512_shuffle_i32x4(v[2], v[3], 0xee);
    p->of[0][q] = _mm512_shuffle_i32x4(a, b, 0x88);
    p->of[1][q] = _mm512_shuffle_i32x4(a, b, 0xdd);
    p->of[2][q] = _mm512_shuffle_i32x4(c, d, 0x88);
    p->of[3][q] = _mm512_shuffle_i32x4(c, d, 0xdd);
}

/* 64 codes to four vectors. Unpacking works within quarters of registers, so
 * fours of codes are first transposed. */
VBMI LB_INLINE void levels_vbmi(const planes *p, const uint8_t *code,
                                __m512 scale, __m512 *v)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i c =
        _mm512_permutexvar_epi32(order, _mm512_loadu_si512((const void *)code));
    const __mmask64 upper = _mm512_movepi8_mask(c);
    __m512i b[4];
    LB_UNROLL for (int k = 0; k < 4; k++)
    {
        const __m512i *t = p->of[k];
        b[k] = _mm512_mask_blend_epi8(upper,
                                      _mm512_permutex2var_epi8(t[0], c, t[1]),
                                      _mm512_permutex2var_epi8(t[2], c, t[3]));
    }
    const __m512i low0 = _mm512_unpacklo_epi8(b[0], b[1]);
    const __m512i low1 = _mm512_unpackhi_epi8(b[0], b[1]);
    const __m512i high0 = _mm512_unpacklo_epi8(b[2], b[3]);
    const __m512i high1 = _mm512_unpackhi_epi8(b[2], b[3]);
    const __m512i w[4] = {
        _mm512_unpacklo_epi16(low0, high0), _mm512_unpackhi_epi16(low0, high0),
        _mm512_unpacklo_epi16(low1, high1), _mm512_unpackhi_epi16(low1, high1)};
    LB_UNROLL for (int k = 0; k < 4; k++) v[k] =
        _mm512_mul_ps(scale, _mm512_castsi512_ps(w[k]));
}

VBMI LB_INLINE void unpack_vbmi(const lb_dtype d, const float *level,
                                const uint8_t *code, int64_t n,
                                const lb_spans *s, lb_sink to)
{
    planes p;
    LB_UNROLL for (int q = 0; q < 4; q++) split_vbmi(level + 64 * q, &p, q);
    lb_lines l = lb_lines_begin(to);
    int64_t i = 0, end = lb_span_first(*s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(*s, end, n)) {
        const __m512 scale = _mm512_set1_ps(s->value[k]);
        for (; i < end; i += CODES) {
            __m512 v[4];
            LB_FETCH(code + i, AHEAD);
            levels_vbmi(&p, code + i, scale, v);
            if (d == LB_F32) {
                LB_UNROLL for (int m = 0; m < 4; m++) lb_lines_put_ps(&l, v[m]);
            } else {
                lb_lines_put(&l, lb_halves_of(d, v[0], v[1]));
                lb_lines_put(&l, lb_halves_of(d, v[2], v[3]));
            }
        }
    }
    lb_lines_end(&l);
}

VBMI static void f32_vbmi(const float *level, const uint8_t *code, int64_t n,
                          const lb_spans *s, lb_sink to)
{
    unpack_vbmi(LB_F32, level, code, n, s, to);
}

VBMI static void bf16_vbmi(const float *level, const uint8_t *code, int64_t n,
                           const lb_spans *s, lb_sink to)
{
    unpack_vbmi(LB_BF16, level, code, n, s, to);
}

VBMI static void f16_vbmi(const float *level, const uint8_t *code, int64_t n,
                          const lb_spans *s, lb_sink to)
{
    unpack_vbmi(LB_F16, level, code, n, s, to);
}

bool lb_unpack_levels_vbmi(const float *level, const uint8_t *code, int64_t n,
                           const lb_spans *s, lb_sink to)
{
    if (!lb_unpack_takes(to, n, s, CODES))
        return lb_unpack_kernel_avx2.levels(level, code, n, s, to);
    if (to.dtype == LB_F32)
        f32_vbmi(level, code, n, s, to);
    else if (to.dtype == LB_BF16)
        bf16_vbmi(level, code, n, s, to);
    else
        f16_vbmi(level, code, n, s, to);
    return true;
}
#endif
