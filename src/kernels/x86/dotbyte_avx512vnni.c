/* dotbyte_avx512vnni.c - products of bytes with vpdpbusd; see dotbyte_tile.h.
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/dotbyte_tile.h"

enum { STEP = LB_DOTBYTE_STEP };

/* ---- x ------------------------------------------------------------------- */

/* Four vectors of numbers of one byte; where dword d of the result comes
 * from: packing leaves that of vector v and lane l at 4l + v. */
LB_AVX512
LB_INLINE __m512i pack_64(const __m512i *v, __m512i dword)
{
    const __m512i a = _mm512_packs_epi32(v[0], v[1]);
    const __m512i b = _mm512_packs_epi32(v[2], v[3]);
    return _mm512_permutexvar_epi32(dword, _mm512_packs_epi16(a, b));
}

/* Eight fields: of 32 bytes dwords come as 0 2 4 6, 1 3 5 7, so that what
 * belongs to four fields is in one lane. */
LB_AVX512
LB_INLINE __m512i dwords_for(int fields)
{
    if (fields == 8)
        return _mm512_setr_epi32(0, 8, 1, 9, 4, 12, 5, 13, 2, 10, 3, 11, 6, 14,
                                 7, 15);
    return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11,
                             15);
}

/* Bytes of a lane: those of one field side by side. */
LB_AVX512
LB_INLINE __m512i bytes_for(int fields)
{
    if (fields == 1)
        return _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8,
                                                    9, 10, 11, 12, 13, 14, 15));
    if (fields == 2)
        return _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8,
                                                    10, 12, 14, 9, 11, 13, 15));
    return _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
}

LB_AVX512
LB_INLINE void put_quads(__m512i v, int64_t n, int8_t *to, int64_t apart)
{
    int8_t byte[64];
    if (n == 16 && apart == 4) {
        _mm512_storeu_si512((void *)to, v);
        return;
    }
    _mm512_storeu_si512((void *)byte, v);
    for (int64_t q = 0; q < n; q++)
        memcpy(to + q * apart, byte + q * 4, 4);
}

LB_AVX512
static int32_t round_row(int64_t n, const float *x, float factor, int planes,
                         int fields, int8_t *to, int64_t apart, int64_t plane)
{
    const __m512 f = _mm512_set1_ps(factor);
    const __m512i dword = dwords_for(fields), byte = bytes_for(fields);
    __m512i sum = _mm512_setzero_si512();
    for (; n > 0; n -= 64, x += 64, to += 16 * apart) {
        __m512i v[4], high[4];
        for (int i = 0; i < 4; i++) {
            v[i] = lb_round_16(n - (int64_t)16 * i, x + (int64_t)16 * i, f);
            sum = _mm512_add_epi32(sum, v[i]);
        }
        const int64_t quads = n > STEP ? 16 : STEP / 4;
        if (planes == 2) {
            for (int i = 0; i < 4; i++) {
                high[i] = _mm512_srai_epi32(
                    _mm512_add_epi32(v[i], _mm512_set1_epi32(128)), 8);
                v[i] = _mm512_sub_epi32(v[i], _mm512_slli_epi32(high[i], 8));
            }
            put_quads(_mm512_shuffle_epi8(pack_64(high, dword), byte), quads,
                      to, apart);
        }
        put_quads(_mm512_shuffle_epi8(pack_64(v, dword), byte), quads,
                  planes == 2 ? to + plane : to, apart);
    }
    return _mm512_reduce_add_epi32(sum);
}

/* ---- tiles --------------------------------------------------------------- */

LB_AVX512
static void tile(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                 bool first, float *c, lb_dotbyte_ask *ask)
{
    lb_tile_any(false, x, k, w, first, c, ask);
}

const lb_dotbyte lb_dotbyte_vnni = {
    .name = "dot i8 avx512vnni",
    .name_two = "dot i8x2 avx512vnni",
    .size = 1,
    .x_size = 1,
    .piece = 4,
    .asks = true,
    .mr = LB_TILE_MR,
    .nr = LB_TILE_NR,
    .most_w = 255,
    .planes = true,
    .round = round_row,
    .along = lb_dotbyte_along_avx512,
    .across = lb_dotbyte_across_avx512,
    .quads = lb_dotbyte_quads_avx512,
    .panel = lb_dotbyte_panel_avx512,
    .tile = tile,
};
#endif
