/* gemm_codes_avx512.c - panels of 32 columns out of codes, with AVX-512.
 *
 * A line of each of 16 rows is turned as dwords, which leaves one dword of each
 * row in a register, the rows in order. Its bytes are numbers of one column
 * each: these are shifted to where they are wanted and become floats, or an
 * index, of which vpermps looks at the lowest four bits only.
 */
#include "kernels/gemm_codes.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/lanes_avx512.h"
#include "kernels/x86/turn_avx512.h"

#define AVX512 LB_TARGET("avx512f,avx512bw")

enum {
    NR = 32,
    LANES = 16,
    ROWS = 16,    /* that are turned together */
    LINE = 64,    /* bytes of a row that are */
    PER_LINE = 16 /* dwords of these */
};

/* It may lie anywhere, so this is never a pointer that C looks at. */
LB_INLINE void fetch(uintptr_t at)
{
    __builtin_prefetch((const void *)at, 0, 2);
}

/* ---- numbers ------------------------------------------------------------- */

/* Code number i of each dword, as a level. */
AVX512 LB_INLINE __m512 level_at(const int bits, __m512 level, __m512i v,
                                 const int i)
{
    if (bits < 8)
        return _mm512_permutexvar_ps(_mm512_srli_epi32(v, (unsigned)(i * bits)),
                                     level);
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(
        i < 3 ? _mm512_slli_epi32(v, (unsigned)(24 - 8 * i)) : v, 24));
}

/* Which number of its dword code number i is. */
LB_INLINE int place_of(const int bits, bool high_first, const int i)
{
    const int fields = 8 / bits;
    return high_first ? i / fields * fields + fields - 1 - i % fields : i;
}

/* ---- panels -------------------------------------------------------------- */

/* Sixteen rows; past the end are the last one. */
typedef struct {
    const lb_gemm_rows *w;
    const uint8_t *row[ROWS];
    const float *scale[ROWS];
    __m512 level;
    __m512 factor; /* the scales of what comes next, .. */
    int64_t until; /* .. up to this number */
    float *dst;
} columns;

AVX512 LB_INLINE void next_scales(columns *c)
{
    const int64_t g = c->w->g, block = c->until / (g ? g : 1);
    float s[ROWS];
    for (int j = 0; j < ROWS; j++)
        s[j] = c->scale[j][block];
    c->factor = _mm512_loadu_ps(s);
    c->until = g ? c->until + g : INT64_MAX;
}

AVX512 LB_INLINE void open_columns(const int bits, const lb_gemm_rows *w,
                                   int64_t j, columns *c)
{
    c->w = w;
    for (int64_t r = 0; r < ROWS; r++) {
        const int64_t i = j + r < w->n ? j + r : w->n - 1;
        c->row[r] = w->codes + i * w->step;
        c->scale[r] = w->scale + i * w->scale_step;
    }
    c->level = lb_level_lanes(bits, w->level);
    c->until = 0;
    next_scales(c);
}

/* The next 64 bytes of each row, or what is left of them and zeros. */
AVX512 LB_INLINE void read_rows(columns *c, int64_t left, __m512i *r)
{
    const uintptr_t ahead = c->w->ahead;
    const __mmask64 some =
        left < LINE ? ((__mmask64)1 << left) - 1 : ~(__mmask64)0;
    LB_UNROLL
    for (int i = 0; i < ROWS; i++) {
        r[i] = _mm512_maskz_loadu_epi8(some, (const void *)c->row[i]);
        if (ahead) fetch((uintptr_t)c->row[i] + ahead);
        c->row[i] += left < LINE ? 0 : LINE;
    }
}

/* The numbers of a dword of each row, the first of which is number `at`, one
 * below the other. A scale may end in the middle of the 32 of one bit. */
AVX512 LB_INLINE void put_dwords(const int bits, columns *c, __m512i v,
                                 int64_t at, float *dst)
{
    const int n = 32 / bits, half = bits == 1 ? n / 2 : n;
    const bool high_first = c->w->high_first;
    LB_UNROLL
    for (int i = 0; i < n; i++) {
        if (i % half == 0 && at + i == c->until && at + i < c->w->depth)
            next_scales(c);
        _mm512_storeu_ps(
            dst + (int64_t)place_of(bits, high_first, i) * NR,
            _mm512_mul_ps(level_at(bits, c->level, v, i), c->factor));
    }
}

/* Those of which fewer are left. */
AVX512 LB_INLINE void put_last(const int bits, columns *c, __m512i v,
                               int64_t at, int64_t left, float *dst)
{
    float last[32 * NR];
    put_dwords(bits, c, v, at, last);
    for (int64_t i = 0; i < left; i++)
        memcpy(dst + i * NR, last + i * NR, ROWS * sizeof *dst);
}

AVX512 LB_INLINE void decode_columns(const int bits, const lb_gemm_rows *w,
                                     int64_t j, float *dst)
{
    const int each = 32 / bits;
    const int64_t bytes = (w->depth * bits + 7) / 8;
    columns c;
    open_columns(bits, w, j, &c);
    for (int64_t byte = 0, at = 0; byte < bytes; byte += LINE) {
        __m512i v[PER_LINE];
        read_rows(&c, bytes - byte, v);
        lb_turn_16(v);
        for (int d = 0; d < PER_LINE && at < w->depth; d++, at += each) {
            if (w->depth - at >= each)
                put_dwords(bits, &c, v[d], at, dst + at * NR);
            else
                put_last(bits, &c, v[d], at, w->depth - at, dst + at * NR);
        }
    }
}

AVX512 LB_INLINE void decode_panel(const int bits, const lb_gemm_rows *w,
                                   float *dst)
{
    for (int64_t j = 0; j < NR; j += ROWS)
        decode_columns(bits, w, j, dst + j);
}

AVX512 static void decode(const lb_gemm_rows *w, float *dst)
{
    switch (w->bits) {
    case 8:
        decode_panel(8, w, dst);
        break;
    case 4:
        decode_panel(4, w, dst);
        break;
    case 2:
        decode_panel(2, w, dst);
        break;
    default:
        decode_panel(1, w, dst);
    }
}

/* ---- lines --------------------------------------------------------------- */

/* Where the code of each column begins in the dwords that it is among. */
AVX512 LB_INLINE __m512i shifts_of(int bits, bool high_first)
{
    int32_t at[LANES];
    for (int j = 0; j < LANES; j++) {
        const int each = 8 / bits, byte = j / each % 4;
        const int field = high_first ? each - 1 - j % each : j % each;
        at[j] = 8 * byte + field * bits;
    }
    return _mm512_loadu_si512(at);
}

/* Sixteen levels of a line. */
AVX512 LB_INLINE __m512 line_levels(const int bits, __m512 level, __m512i shift,
                                    const uint8_t *codes)
{
    if (bits == 8)
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
            _mm_loadu_si128((const __m128i *)(const void *)codes)));
    int32_t word = 0;
    memcpy(&word, codes, (size_t)(bits < 4 ? bits : 2) * LANES / 8);
    __m512i v = _mm512_set1_epi32(word);
    if (bits == 4) { /* eight lanes of each of two dwords */
        const __m512i dword =
            _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
        const __m128i two =
            _mm_loadl_epi64((const __m128i *)(const void *)codes);
        v = _mm512_permutexvar_epi32(dword, _mm512_castsi128_si512(two));
    }
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(v, shift), level);
}

AVX512 LB_INLINE void decode_lines(const int bits, const lb_gemm_rows *w,
                                   float *dst)
{
    enum { BYTES = NR };
    const __m512 level = lb_level_lanes(bits, w->level);
    const __m512i shift = shifts_of(bits, w->high_first);
    const uint8_t *codes = w->codes;
    const float *scale = w->scale;
    uint8_t room[BYTES] = {0};
    __m512 s[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (int64_t kk = 0; kk < w->depth; kk++, dst += NR) {
        const uint8_t *from = codes;
        if (kk < w->asks) fetch(w->ahead + (uintptr_t)(kk * w->ask_step));
        if (w->n < NR)
            from = memcpy(room, codes, (size_t)((w->n * bits + 7) / 8));
        if (!w->each) {
            s[0] = s[1] = _mm512_set1_ps(*scale);
        } else if (!kk || w->scale_step) {
            LB_UNROLL
            for (int v = 0; v < 2; v++)
                s[v] = _mm512_maskz_loadu_ps(
                    lb_first_lanes((int)w->n - v * LANES), scale + v * LANES);
        }
        LB_UNROLL
        for (int v = 0; v < 2; v++)
            _mm512_storeu_ps(
                dst + v * LANES,
                _mm512_mul_ps(line_levels(bits, level, shift,
                                          from + v * LANES * bits / 8),
                              s[v]));
        codes += w->step;
        scale += w->scale_step;
    }
}

AVX512 static void lines(const lb_gemm_rows *w, float *dst)
{
    switch (w->bits) {
    case 8:
        decode_lines(8, w, dst);
        break;
    case 4:
        decode_lines(4, w, dst);
        break;
    case 2:
        decode_lines(2, w, dst);
        break;
    default:
        decode_lines(1, w, dst);
    }
}

const lb_gemm_codes lb_gemm_codes_avx512 = {.name = "dot f32 avx512 14x32",
                                            .nr = NR,
                                            .asks = true,
                                            .decode = decode,
                                            .lines = lines};
#endif
