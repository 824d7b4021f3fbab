/* gemm_codes_avx2.c - panels of 16 columns out of codes, with AVX2.
 *
 * Eight rows at a time, 16 bytes of each: two rounds of unpacking give four
 * registers, each a dword of all eight, which is eight columns of as many codes
 * as a dword has.
 *
 *   half 0   dword d of rows 0, 1, 2, 3
 *   half 1   the same of rows 4, 5, 6, 7
 *
 * Codes of 8 bits become dwords of their own, and floats. Those of 4 are looked
 * up in the bytes of sixteen levels, which are then unpacked; smaller ones pick
 * a level where they are, lowest in the dword after a shift. A step writes 32
 * bytes of the panel, one store a cycle, and little else takes as long.
 */
#include "kernels/gemm_codes.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/intrin.h"

#define AVX2 LB_TARGET("avx2,fma")

enum {
    NR = 16,
    HALF = NR / 2,
    LINE = 64,  /* bytes of a row that are read one after the other .. */
    PIECE = 16, /* .. and that are turned */
    DWORDS = PIECE / 4,
    MOST = PIECE * 8,
    UNIT = LB_GEMM_CODES_UNIT
};

/* ---- turning ------------------------------------------------------------- */

AVX2 LB_INLINE __m256i two_rows(const uint8_t *a, const uint8_t *b)
{
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a)),
        _mm_loadu_si128((const __m128i *)b), 1);
}

/* t[d]: dword d of eight rows, as above. */
AVX2 LB_INLINE void turn(const uint8_t *const *row, int64_t at, __m256i *t)
{
    __m256i r[4];
    LB_UNROLL
    for (int i = 0; i < 4; i++)
        r[i] = two_rows(row[i] + at, row[i + 4] + at);
    const __m256i a = _mm256_unpacklo_epi32(r[0], r[1]);
    const __m256i b = _mm256_unpacklo_epi32(r[2], r[3]);
    const __m256i c = _mm256_unpackhi_epi32(r[0], r[1]);
    const __m256i d = _mm256_unpackhi_epi32(r[2], r[3]);
    t[0] = _mm256_unpacklo_epi64(a, b);
    t[1] = _mm256_unpackhi_epi64(a, b);
    t[2] = _mm256_unpacklo_epi64(c, d);
    t[3] = _mm256_unpackhi_epi64(c, d);
}

/* ---- numbers ------------------------------------------------------------- */

/* What codes stand for; bits is a constant wherever this is inlined. */
typedef struct {
    __m256i plane[4]; /* 4 bits: the bytes of levels, from the lowest */
    __m256 level;     /* 2 and 1 bits: four, in both halves */
} tables;

AVX2 LB_INLINE tables tables_of(const int bits, const float *level)
{
    const __m256i none = _mm256_setzero_si256();
    tables t = {{none, none, none, none}, _mm256_setzero_ps()};
    if (bits == 4) {
        uint8_t plane[4][16];
        for (int i = 0; i < 16; i++) {
            uint32_t u;
            memcpy(&u, level + i, sizeof u);
            for (int b = 0; b < 4; b++)
                plane[b][i] = (uint8_t)(u >> 8 * b);
        }
        for (int b = 0; b < 4; b++)
            t.plane[b] = _mm256_broadcastsi128_si256(
                _mm_loadu_si128((const __m128i *)(const void *)plane[b]));
    } else if (bits == 2) {
        t.level = _mm256_broadcast_ps((const __m128 *)(const void *)level);
    } else if (bits == 1) {
        const float twice[4] = {level[0], level[1], level[0], level[1]};
        t.level = _mm256_broadcast_ps((const __m128 *)(const void *)twice);
    }
    return t;
}

/* Eight scales, one for each row of a half. */
typedef struct {
    __m256 by;
    bool small; /* of bytes: they are 2^-24 of the scales, which is exact */
} factors;

/* Byte b of every dword, on top of it: 2^24 of the code. */
AVX2 LB_INLINE __m256i on_top(__m256i v, int b)
{
    const int zeros = 0xffffff, first = b << 24, next = 4 << 24;
    const __m128i place =
        _mm_setr_epi32(first | zeros, (first + next) | zeros,
                       (first + 2 * next) | zeros, (first + 3 * next) | zeros);
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(place));
}

AVX2 LB_INLINE void put_bytes(__m256i v, __m256 by, float *dst)
{
    LB_UNROLL
    for (int b = 0; b < 4; b++) {
        const __m256 w = _mm256_cvtepi32_ps(on_top(v, b));
        _mm256_storeu_ps(dst + b * NR, _mm256_mul_ps(w, by));
    }
}

/* Of scales as they are, which are tiny or huge. Apart, or the compiler does
 * for both what they have in common, and has no registers for it. */
AVX2 __attribute__((noinline, cold)) static void
put_bytes_of_any(__m256i v, __m256 by, float *dst)
{
    for (int b = 0; b < 4; b++) {
        const __m256i code = _mm256_srai_epi32(on_top(v, b), 24);
        _mm256_storeu_ps(dst + b * NR,
                         _mm256_mul_ps(_mm256_cvtepi32_ps(code), by));
    }
}

/* Bytes of a and b in turn: of the first half of each, and of the second. */
AVX2 LB_INLINE void zip(__m256i a, __m256i b, __m256i *to)
{
    to[0] = _mm256_unpacklo_epi8(a, b);
    to[1] = _mm256_unpackhi_epi8(a, b);
}

/* A code in every byte; byte after byte of all rows, two steps apart. */
AVX2 LB_INLINE void put_nibbles(const tables *t, __m256i code, __m256 by,
                                float *dst)
{
    __m256i low[2], high[2];
    zip(_mm256_shuffle_epi8(t->plane[0], code),
        _mm256_shuffle_epi8(t->plane[1], code), low);
    zip(_mm256_shuffle_epi8(t->plane[2], code),
        _mm256_shuffle_epi8(t->plane[3], code), high);
    LB_UNROLL
    for (int i = 0; i < 2; i++) {
        const __m256 u =
            _mm256_castsi256_ps(_mm256_unpacklo_epi16(low[i], high[i]));
        const __m256 v =
            _mm256_castsi256_ps(_mm256_unpackhi_epi16(low[i], high[i]));
        _mm256_storeu_ps(dst + 4 * i * NR, _mm256_mul_ps(u, by));
        _mm256_storeu_ps(dst + (4 * i + 2) * NR, _mm256_mul_ps(v, by));
    }
}

AVX2 LB_INLINE void put_pairs(bool high_first, const tables *t, __m256i v,
                              __m256 by, float *dst)
{
    const __m256i in_turn = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m256i mask = _mm256_set1_epi8(15);
    v = _mm256_shuffle_epi8(v, in_turn);
    const __m256i low = _mm256_and_si256(v, mask);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(v, 4), mask);
    put_nibbles(t, low, by, dst + high_first * NR);
    put_nibbles(t, high, by, dst + !high_first * NR);
}

/* UNIT codes of 1 or 2 bits, from bit `from` of every dword. */
AVX2 LB_INLINE void put_fields(const int bits, const int from, bool high_first,
                               __m256 level, __m256i v, __m256 by, float *dst)
{
    const int each = 8 / bits;
    LB_UNROLL
    for (int i = 0; i < UNIT; i++) {
        const int64_t f = high_first ? each - 1 - i % each : i % each;
        const __m256i code = _mm256_srli_epi32(v, from + i * bits);
        _mm256_storeu_ps(dst + (i / each * each + f) * NR,
                         _mm256_mul_ps(_mm256_permutevar_ps(level, code), by));
    }
}

/* ---- panels -------------------------------------------------------------- */

/* Half of the columns. */
typedef struct {
    const uint8_t *row[HALF];
    const float *scale[HALF];
    factors s;     /* of what comes next, .. */
    int64_t until; /* .. up to here */
} half;

/* Rows past the end are the last one. */
LB_INLINE void find_rows(const lb_gemm_rows *w, int first, half *h)
{
    for (int64_t j = 0; j < HALF; j++) {
        const int64_t i = first + j < w->n ? first + j : w->n - 1;
        h->row[j] = w->codes + i * w->step;
        h->scale[j] = w->scale + i * w->scale_step;
    }
    h->until = 0;
}

AVX2 LB_INLINE factors factors_at(const int bits, const half *h, int64_t block)
{
    float s[HALF];
    for (int j = 0; j < HALF; j++)
        s[j] = h->scale[j][block];
    const __m256 by = _mm256_loadu_ps(s);
    if (bits < 8) return (factors){by, false};
    const __m256 less = _mm256_mul_ps(by, _mm256_set1_ps(0x1p-24f));
    const __m256 back = _mm256_mul_ps(less, _mm256_set1_ps(0x1p24f));
    const __m256 exact = _mm256_cmp_ps(back, by, _CMP_EQ_OQ);
    const bool small = _mm256_movemask_ps(exact) == 0xff;
    return (factors){small ? less : by, small};
}

/* The scales from `at` on, where those change. */
AVX2 LB_INLINE void renew(const int bits, const lb_gemm_rows *w, int64_t at,
                          half *h)
{
    if (at != h->until) return;
    h->s = factors_at(bits, h, w->g ? at / w->g : 0);
    h->until = w->g && w->g < w->depth - at ? at + w->g : INT64_MAX;
}

/* A dword of every row: numbers from `at` on. */
AVX2 LB_INLINE void put_dword(const int bits, const lb_gemm_rows *w,
                              const tables *t, __m256i v, int64_t at, half *h,
                              float *dst)
{
    if (bits == 8) {
        if (h->s.small)
            put_bytes(v, h->s.by, dst);
        else
            put_bytes_of_any(v, h->s.by, dst);
    } else if (bits == 4) {
        put_pairs(w->high_first, t, v, h->s.by, dst);
    } else {
        put_fields(bits, 0, w->high_first, t->level, v, h->s.by, dst);
        if (bits == 2) return;
        renew(bits, w, at + UNIT, h);
        put_fields(bits, UNIT, w->high_first, t->level, v, h->s.by,
                   dst + UNIT * NR);
    }
}

/* Numbers from `at` on out of 16 bytes of each row. */
AVX2 LB_INLINE void put_piece(const int bits, const lb_gemm_rows *w,
                              const tables *t, const uint8_t *const *row,
                              int64_t byte, int64_t at, half *h, float *dst)
{
    const int each = 32 / bits;
    __m256i v[DWORDS];
    turn(row, byte, v);
    LB_UNROLL
    for (int d = 0; d < DWORDS; d++) {
        if (d * each % UNIT == 0) renew(bits, w, at + d * each, h);
        put_dword(bits, w, t, v[d], at + d * each, h, dst + d * each * NR);
    }
}

/* What is left of every row, and zeros. */
AVX2 LB_INLINE void put_rest(const int bits, const lb_gemm_rows *w,
                             const tables *t, int64_t byte, half *h, float *dst)
{
    const int64_t at = byte * 8 / bits, left = w->depth - at;
    const size_t bytes = (size_t)((left * bits + 7) / 8);
    uint8_t room[HALF][PIECE] = {{0}};
    const uint8_t *row[HALF];
    float last[MOST * NR];
    for (int j = 0; j < HALF; j++)
        row[j] = memcpy(room[j], h->row[j] + byte, bytes);
    put_piece(bits, w, t, row, 0, at, h, last);
    for (int64_t k = 0; k < left; k++)
        memcpy(dst + (at + k) * NR, last + k * NR, HALF * sizeof *dst);
}

/* A line of eight rows, then of the others: rows often lie such that they fall
 * on the same places of L1, which has room for eight. */
AVX2 LB_INLINE void decode_panel(const int bits, const lb_gemm_rows *w,
                                 float *dst)
{
    const int64_t whole = w->depth * bits / 8 / PIECE * PIECE;
    const tables t = tables_of(bits, w->level);
    half h[2];
    for (int i = 0; i < 2; i++)
        find_rows(w, i * HALF, h + i);
    for (int64_t line = 0; line < whole; line += LINE) {
        const int64_t end = line + LINE < whole ? line + LINE : whole;
        for (int i = 0; i < 2; i++) {
            for (int64_t byte = line; byte < end; byte += PIECE) {
                const int64_t at = byte * 8 / bits;
                put_piece(bits, w, &t, h[i].row, byte, at, h + i,
                          dst + at * NR + i * HALF);
            }
        }
    }
    for (int i = 0; i < 2 && whole * 8 < w->depth * bits; i++)
        put_rest(bits, w, &t, whole, h + i, dst + i * HALF);
}

AVX2 static void decode(const lb_gemm_rows *w, float *dst)
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

enum { LANES = 8 };

/* It may lie anywhere, so this is never a pointer that C looks at. */
LB_INLINE void fetch(uintptr_t at)
{
    __builtin_prefetch((const void *)at, 0, 2);
}

/* Where the code of each column begins in its dword, and levels. */
typedef struct {
    __m256i shift;
    __m256 low, high; /* of 1 and 2 bits all are in each half of low */
} columns;

AVX2 LB_INLINE columns columns_of(const int bits, const lb_gemm_rows *w)
{
    int32_t at[LANES];
    float level[16] = {0};
    for (int j = 0; j < LANES; j++) {
        const int each = 8 / bits, byte = j / each;
        const int field = w->high_first ? each - 1 - j % each : j % each;
        at[j] = 8 * byte + field * bits;
    }
    for (int i = 0; i < 16 && bits < 8; i++)
        level[i] = w->level[i & ((1 << bits) - 1)];
    return (columns){_mm256_loadu_si256((const __m256i *)(const void *)at),
                     _mm256_loadu_ps(level), _mm256_loadu_ps(level + 8)};
}

/* Eight levels of a line. */
AVX2 LB_INLINE __m256 line_levels(const int bits, const columns *c,
                                  const uint8_t *codes)
{
    int32_t word = 0;
    if (bits == 8)
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(
            _mm_loadl_epi64((const __m128i *)(const void *)codes)));
    memcpy(&word, codes, (size_t)bits * LANES / 8);
    const __m256i code = _mm256_srlv_epi32(_mm256_set1_epi32(word), c->shift);
    if (bits < 4) return _mm256_permutevar_ps(c->low, code);
    const __m256 low = _mm256_permutevar8x32_ps(c->low, code);
    const __m256 high = _mm256_permutevar8x32_ps(c->high, code);
    return _mm256_blendv_ps(low, high,
                            _mm256_castsi256_ps(_mm256_slli_epi32(code, 28)));
}

/* The scales of two times eight columns, of which some may not be there. */
AVX2 LB_INLINE void load_scales(const lb_gemm_rows *w, const float *scale,
                                __m256 *s)
{
    float all[NR] = {0};
    memcpy(all, scale, (size_t)w->n * sizeof *all);
    s[0] = _mm256_loadu_ps(all);
    s[1] = _mm256_loadu_ps(all + LANES);
}

AVX2 LB_INLINE void decode_lines(const int bits, const lb_gemm_rows *w,
                                 float *dst)
{
    const columns c = columns_of(bits, w);
    const uint8_t *codes = w->codes;
    const float *scale = w->scale;
    uint8_t room[NR] = {0};
    __m256 s[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int64_t kk = 0; kk < w->depth; kk++, dst += NR) {
        const uint8_t *from = codes;
        if (kk < w->asks) fetch(w->ahead + (uintptr_t)(kk * w->ask_step));
        if (w->n < NR)
            from = memcpy(room, codes, (size_t)((w->n * bits + 7) / 8));
        if (!w->each)
            s[0] = s[1] = _mm256_broadcast_ss(scale);
        else if (!kk || w->scale_step)
            load_scales(w, scale, s);
        LB_UNROLL
        for (int v = 0; v < 2; v++)
            _mm256_storeu_ps(
                dst + v * LANES,
                _mm256_mul_ps(
                    line_levels(bits, &c, from + v * LANES * bits / 8), s[v]));
        codes += w->step;
        scale += w->scale_step;
    }
}

AVX2 static void lines(const lb_gemm_rows *w, float *dst)
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

const lb_gemm_codes lb_gemm_codes_avx2 = {
    .name = "dot f32 avx2 6x16", .nr = NR, .decode = decode, .lines = lines};
#endif
