/* dotbyte_tile.h - products of bytes and of words: the 12x32 tile for vpdpbusd
 * and vpdpwssd.
 *
 *            w: 32 rows        24 accumulators of 16 sums, a row of w to each
 *          +------+------+     lane, two vectors of w and four bytes of x in
 *   x: 12  | r[i][0..1]  |     every lane: 27 of 32 registers. A quad of the
 *   rows   +------+------+     depth is 24 products against 14 loads.
 */
#ifndef LB_DOTBYTE_TILE_H
#define LB_DOTBYTE_TILE_H

#include <string.h>

#include "kernels/x86/dotbyte_ask.h"
#include "kernels/x86/intrin.h"

enum { LB_TILE_MR = 12, LB_TILE_NR = 32 };

#define LB_AVX512 LB_TARGET("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")

/* 16 numbers of x, or n and zeros. */
LB_AVX512
LB_INLINE __m512i lb_round_16(int64_t n, const float *x, __m512 factor)
{
    const __m512 v = n >= 16 ? _mm512_loadu_ps(x)
                     : n <= 0
                         ? _mm512_setzero_ps()
                         : _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), x);
    return _mm512_cvtps_epi32(_mm512_mul_ps(v, factor));
}

/* Compilers copy the accumulator of the intrinsic before and after. words, as
 * rows below, is a constant where this is inlined. */
LB_AVX512
LB_INLINE __m512i lb_add_products(const bool words, __m512i sum, __m512i w,
                                  __m512i x)
{
#if defined(LB_SIMDE)
    return words ? _mm512_dpwssd_epi32(sum, w, x)
                 : _mm512_dpbusd_epi32(sum, w, x);
#else
    if (words)
        __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
    else
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
    return sum;
#endif
}

LB_AVX512
LB_INLINE __m512i lb_tile_quad(const int8_t *p)
{
    int32_t q;
    memcpy(&q, p, sizeof q);
    __m512i v = _mm512_set1_epi32(q);
    LB_KEEP_512(v);
    return v;
}

LB_AVX512
LB_INLINE __m512i lb_tile_load(const uint8_t *p)
{
    __m512i v = _mm512_loadu_si512((const void *)p);
    LB_KEEP_512(v);
    return v;
}

LB_AVX512
LB_INLINE void lb_tile_put(const int rows, __m512i (*r)[2],
                           const lb_dotbyte_x *x, const float *ws, bool first,
                           float *c)
{
    const __m512 w0 = _mm512_loadu_ps(ws), w1 = _mm512_loadu_ps(ws + 16);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512 scale = _mm512_set1_ps(x->scale[i]);
        LB_UNROLL
        for (int v = 0; v < 2; v++) {
            float *const at = c + i * LB_TILE_NR + v * 16;
            const __m512 sum = _mm512_cvtepi32_ps(r[i][v]);
            const __m512 old =
                first ? _mm512_setzero_ps() : _mm512_loadu_ps(at);
            _mm512_storeu_ps(
                at,
                _mm512_fmadd_ps(_mm512_mul_ps(sum, v ? w1 : w0), scale, old));
        }
    }
}

/* The last plane begins with what the offset makes of sums, one before it with
 * nothing. */
LB_AVX512
LB_INLINE __m512i lb_tile_start_of(const lb_dotbyte_x *x, int plane, int i)
{
    return _mm512_set1_epi32(plane + 1 == x->planes ? x->start[i] : 0);
}

/* Sums of the plane before, as the next begins with them. */
LB_AVX512
LB_INLINE void lb_tile_carry(const int rows, __m512i (*r)[2],
                             const lb_dotbyte_x *x, int plane)
{
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512i start = lb_tile_start_of(x, plane, i);
        LB_UNROLL
        for (int v = 0; v < 2; v++) {
            r[i][v] = _mm512_add_epi32(_mm512_slli_epi32(r[i][v], 8), start);
            LB_KEEP_512(r[i][v]);
        }
    }
}

LB_AVX512
LB_INLINE void lb_tile_block(const bool words, const int rows,
                             const lb_dotbyte_x *x, int64_t k,
                             const lb_dotbyte_w *panel, bool first, float *c,
                             lb_dotbyte_ask *ask)
{
    const uint8_t *const w = panel->bytes;
    __m512i r[LB_TILE_MR][2];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        r[i][0] = r[i][1] = lb_tile_start_of(x, 0, i);
        LB_KEEP_512(r[i][0]);
        LB_KEEP_512(r[i][1]);
    }
    for (int p = 0; p < x->planes; p++) {
        const int8_t *from = x->bytes + p * x->plane;
        const uint8_t *at = w, *const end =
                                   w + k * (words ? 2 : 1) * LB_TILE_NR;
        if (p > 0) lb_tile_carry(rows, r, x, p);
        while (at < end) {
            lb_tile_asking a;
            const uint8_t *const some =
                at + LB_TILE_NR * 4 *
                         lb_tile_ask_next(ask, at,
                                          (end - at) / (LB_TILE_NR * 4), &a);
            for (; at < some; at += LB_TILE_NR * 4, from += rows * 4) {
                const __m512i w0 = lb_tile_load(at), w1 = lb_tile_load(at + 64);
                __builtin_prefetch((const void *)a.at, 0, 2);
                a.at += (uintptr_t)a.step;
                LB_UNROLL
                for (int i = 0; i < rows; i++) {
                    const __m512i q = lb_tile_quad(from + i * 4);
                    r[i][0] = lb_add_products(words, r[i][0], w0, q);
                    r[i][1] = lb_add_products(words, r[i][1], w1, q);
                }
            }
        }
    }
    lb_tile_put(rows, r, x, panel->scale, first, c);
}

LB_AVX512
LB_INLINE void lb_tile_rows(const bool words, const int rows,
                            const lb_dotbyte_x *x, int64_t k,
                            const lb_dotbyte_w *w, bool first, float *c,
                            lb_dotbyte_ask *ask)
{
    lb_dotbyte_x x1 = *x;
    lb_dotbyte_w w1 = *w;
    do {
        const int64_t some = k < x1.share ? k : x1.share;
        lb_tile_block(words, rows, &x1, some, &w1, first, c, ask);
        lb_dotbyte_next(&x1, &w1, words ? 2 : 1, words ? 2 : 1, LB_TILE_NR);
        first = false;
        k -= some;
    } while (k > 0);
}

LB_AVX512
LB_INLINE void lb_tile_any(const bool words, const lb_dotbyte_x *x, int64_t k,
                           const lb_dotbyte_w *w, bool first, float *c,
                           lb_dotbyte_ask *ask)
{
    switch (x->rows) {
    case 12:
        lb_tile_rows(words, 12, x, k, w, first, c, ask);
        break;
    case 11:
        lb_tile_rows(words, 11, x, k, w, first, c, ask);
        break;
    case 10:
        lb_tile_rows(words, 10, x, k, w, first, c, ask);
        break;
    case 9:
        lb_tile_rows(words, 9, x, k, w, first, c, ask);
        break;
    case 8:
        lb_tile_rows(words, 8, x, k, w, first, c, ask);
        break;
    case 7:
        lb_tile_rows(words, 7, x, k, w, first, c, ask);
        break;
    case 6:
        lb_tile_rows(words, 6, x, k, w, first, c, ask);
        break;
    case 5:
        lb_tile_rows(words, 5, x, k, w, first, c, ask);
        break;
    case 4:
        lb_tile_rows(words, 4, x, k, w, first, c, ask);
        break;
    case 3:
        lb_tile_rows(words, 3, x, k, w, first, c, ask);
        break;
    case 2:
        lb_tile_rows(words, 2, x, k, w, first, c, ask);
        break;
    default:
        lb_tile_rows(words, 1, x, k, w, first, c, ask);
    }
}

#endif
