/* dotbyte_avx512vnni.c - products of bytes: the 12x32 tile for vpdpbusd.
 *
 *            w: 32 rows        24 accumulators of 16 sums, a row of w to each
 *          +------+------+     lane, two vectors of w and four bytes of x in
 *   x: 12  | r[i][0..1]  |     every lane: 27 of 32 registers. A quad of the
 *   rows   +------+------+     depth is 24 products against 14 loads.
 */
#include "kernels/dotbyte.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/intrin.h"

enum { MR = 12, NR = 32, STEP = LB_DOTBYTE_STEP };

#define AVX512 LB_TARGET("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")

/* ---- x ------------------------------------------------------------------- */

AVX512
LB_INLINE __m512i round_16(int64_t n, const float *x, __m512 factor)
{
    const __m512 v = n >= 16 ? _mm512_loadu_ps(x)
                     : n <= 0
                         ? _mm512_setzero_ps()
                         : _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), x);
    return _mm512_cvtps_epi32(_mm512_mul_ps(v, factor));
}

/* Four vectors of numbers of one byte; where dword d of the result comes
 * from: packing leaves that of vector v and lane l at 4l + v. */
AVX512
LB_INLINE __m512i pack_64(const __m512i *v, __m512i dword)
{
    const __m512i a = _mm512_packs_epi32(v[0], v[1]);
    const __m512i b = _mm512_packs_epi32(v[2], v[3]);
    return _mm512_permutexvar_epi32(dword, _mm512_packs_epi16(a, b));
}

/* Eight fields: of 32 bytes dwords come as 0 2 4 6, 1 3 5 7, so that what
 * belongs to four fields is in one lane. */
AVX512
LB_INLINE __m512i dwords_for(int fields)
{
    if (fields == 8)
        return _mm512_setr_epi32(0, 8, 1, 9, 4, 12, 5, 13, 2, 10, 3, 11, 6, 14,
                                 7, 15);
    return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11,
                             15);
}

/* Bytes of a lane: those of one field side by side. */
AVX512
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

AVX512
LB_INLINE void put_quads(__m512i v, int64_t n, int8_t *to, int64_t apart)
{
    int8_t byte[64];
    _mm512_storeu_si512((void *)byte, v);
    for (int64_t q = 0; q < n; q++)
        memcpy(to + q * apart, byte + q * 4, 4);
}

AVX512
static int32_t round_row(int64_t n, const float *x, float factor, int planes,
                         int fields, int8_t *to, int64_t apart, int64_t plane)
{
    const __m512 f = _mm512_set1_ps(factor);
    const __m512i dword = dwords_for(fields), byte = bytes_for(fields);
    __m512i sum = _mm512_setzero_si512();
    for (; n > 0; n -= 64, x += 64, to += 16 * apart) {
        __m512i v[4], high[4];
        for (int i = 0; i < 4; i++) {
            v[i] = round_16(n - (int64_t)16 * i, x + (int64_t)16 * i, f);
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

/* Compilers copy the accumulator of the intrinsic before and after. */
AVX512
LB_INLINE __m512i add_products(__m512i sum, __m512i w, __m512i x)
{
#if defined(LB_SIMDE)
    return _mm512_dpbusd_epi32(sum, w, x);
#else
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
    return sum;
#endif
}

AVX512
LB_INLINE __m512i quad(const int8_t *p)
{
    int32_t q;
    memcpy(&q, p, sizeof q);
    __m512i v = _mm512_set1_epi32(q);
    LB_KEEP_512(v);
    return v;
}

AVX512
LB_INLINE __m512i load(const uint8_t *p)
{
    __m512i v = _mm512_loadu_si512((const void *)p);
    LB_KEEP_512(v);
    return v;
}

/* rows is a constant where this is inlined, here and below. */
AVX512
LB_INLINE void put(const int rows, __m512i (*r)[2], const lb_dotbyte_x *x,
                   const float *ws, bool first, float *c)
{
    const __m512 w0 = _mm512_loadu_ps(ws), w1 = _mm512_loadu_ps(ws + 16);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512 scale = _mm512_set1_ps(x->scale[i]);
        LB_UNROLL
        for (int v = 0; v < 2; v++) {
            float *const at = c + i * NR + v * 16;
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
AVX512
LB_INLINE __m512i start_of(const lb_dotbyte_x *x, int plane, int i)
{
    return _mm512_set1_epi32(plane + 1 == x->planes ? x->start[i] : 0);
}

/* Sums of the plane before, as the next begins with them. */
AVX512
LB_INLINE void carry(const int rows, __m512i (*r)[2], const lb_dotbyte_x *x,
                     int plane)
{
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512i start = start_of(x, plane, i);
        LB_UNROLL
        for (int v = 0; v < 2; v++) {
            r[i][v] = _mm512_add_epi32(_mm512_slli_epi32(r[i][v], 8), start);
            LB_KEEP_512(r[i][v]);
        }
    }
}

/* Quads with which lines of the same column are asked for; without any more of
 * these it is w that is, where it is read. */
typedef struct {
    uintptr_t at;
    int64_t second, step; /* to another of the same quad, and to the next one */
} asking;

LB_INLINE int64_t ask_next(lb_dotbyte_ask *ask, const uint8_t *w, int64_t quads,
                           asking *a)
{
    *a = (asking){(uintptr_t)w, 0, 0};
    if (!ask || !ask->columns) return quads;
    const int64_t some = (ask->left + ask->each - 1) / ask->each;
    if (some < quads) quads = some;
    *a = (asking){ask->at, (ask->each - 1) * ask->step, ask->each * ask->step};
    ask->at += (uintptr_t)(quads * a->step);
    ask->left -= quads * ask->each;
    if (ask->left > 0) return quads;
    ask->at += (uintptr_t)(ask->left * ask->step + ask->column -
                           ask->rows * ask->step);
    ask->left = ask->rows;
    ask->columns--;
    return quads;
}

AVX512
LB_INLINE void tile_rows(const int rows, const lb_dotbyte_x *x, int64_t k,
                         const uint8_t *w, const float *ws, bool first,
                         float *c, lb_dotbyte_ask *ask)
{
    __m512i r[MR][2];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        r[i][0] = r[i][1] = start_of(x, 0, i);
        LB_KEEP_512(r[i][0]);
        LB_KEEP_512(r[i][1]);
    }
    for (int p = 0; p < x->planes; p++) {
        const int8_t *from = x->bytes + p * x->plane;
        const uint8_t *at = w, *const end = w + k * NR;
        if (p > 0) carry(rows, r, x, p);
        while (at < end) {
            asking a;
            const uint8_t *const some =
                at + NR * 4 * ask_next(ask, at, (end - at) / (NR * 4), &a);
            for (; at < some; at += NR * 4, from += rows * 4) {
                const __m512i w0 = load(at), w1 = load(at + 64);
                __builtin_prefetch((const void *)a.at, 0, 2);
                __builtin_prefetch((const void *)(a.at + (uintptr_t)a.second),
                                   0, 2);
                a.at += (uintptr_t)a.step;
                LB_UNROLL
                for (int i = 0; i < rows; i++) {
                    const __m512i q = quad(from + i * 4);
                    r[i][0] = add_products(r[i][0], w0, q);
                    r[i][1] = add_products(r[i][1], w1, q);
                }
            }
        }
    }
    put(rows, r, x, ws, first, c);
}

AVX512
static void tile(const lb_dotbyte_x *x, int64_t k, const uint8_t *w,
                 const float *ws, bool first, float *c, lb_dotbyte_ask *ask)
{
    switch (x->rows) {
    case 12:
        tile_rows(12, x, k, w, ws, first, c, ask);
        break;
    case 11:
        tile_rows(11, x, k, w, ws, first, c, ask);
        break;
    case 10:
        tile_rows(10, x, k, w, ws, first, c, ask);
        break;
    case 9:
        tile_rows(9, x, k, w, ws, first, c, ask);
        break;
    case 8:
        tile_rows(8, x, k, w, ws, first, c, ask);
        break;
    case 7:
        tile_rows(7, x, k, w, ws, first, c, ask);
        break;
    case 6:
        tile_rows(6, x, k, w, ws, first, c, ask);
        break;
    case 5:
        tile_rows(5, x, k, w, ws, first, c, ask);
        break;
    case 4:
        tile_rows(4, x, k, w, ws, first, c, ask);
        break;
    case 3:
        tile_rows(3, x, k, w, ws, first, c, ask);
        break;
    case 2:
        tile_rows(2, x, k, w, ws, first, c, ask);
        break;
    default:
        tile_rows(1, x, k, w, ws, first, c, ask);
    }
}

const lb_dotbyte lb_dotbyte_vnni = {
    .name = "dot i8 avx512vnni",
    .name_two = "dot i8x2 avx512vnni",
    .mr = MR,
    .nr = NR,
    .most_w = 255,
    .planes = true,
    .round = round_row,
    .along = lb_dotbyte_along_avx512,
    .across = lb_dotbyte_across_avx512,
    .tile = tile,
};
#endif
