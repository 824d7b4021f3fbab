/* dotf32_avx2.c - f32 products with codes that are decoded in registers: AVX2.
 *
 * Up to eight accumulators, one for each row of x, and of few of these for each
 * of as many rows of w as there is room for, hide the latency of vfmadd. x is
 * read where it is multiplied, two vectors a cycle, which leaves the other
 * ports to decoding: eight products last four cycles, and a vector of w takes
 * two to five instructions.
 */
#include "kernels/dotf32.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/intrin.h"

enum { MR = 8, LANES = 8, BYTES = 32, MOST_LINES = 4 };

/* Keeps a value in its register: compilers copy sums about, if products are not
 * said to be with memory, and make vectors of addresses. */
#if defined(LB_SIMDE)
#define KEEP(v)               ((void)0)
#define KEEP_ADDRESS(p)       ((void)0)
#define ADD_PRODUCT(r, w, at) ((r) = _mm256_fmadd_ps(w, *(at), r))
#else
#define KEEP(v)         __asm__("" : "+x"(v))
#define KEEP_ADDRESS(p) __asm__("" : "+r"(p))
#define ADD_PRODUCT(r, w, at)                                                  \
    __asm__("vfmadd231ps %1, %2, %0" : "+x"(r) : "m"(*(at)), "x"(w))
#endif

/* ---- sums ---------------------------------------------------------------- */

LB_TARGET("avx2,fma")
LB_INLINE void add_products(const int rows, const float *x, __m256 w, __m256 *r)
{
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        ADD_PRODUCT(r[i], w, (const __m256 *)(const void *)(x + i * LANES));
}

/* Four sums; each half of the result has one half of each. */
LB_TARGET("avx2,fma")
LB_INLINE __m256 fold_4(const __m256 *r)
{
    return _mm256_hadd_ps(_mm256_hadd_ps(r[0], r[1]),
                          _mm256_hadd_ps(r[2], r[3]));
}

/* The first n lanes; masked stores are slow. */
LB_TARGET("avx2,fma")
LB_INLINE void store_first(const int n, float *c, __m256 v)
{
    __m128 rest = _mm256_castps256_ps128(v);
    if (n == LANES) {
        _mm256_storeu_ps(c, v);
        return;
    }
    if (n & 4) {
        _mm_storeu_ps(c, rest);
        rest = _mm256_extractf128_ps(v, 1);
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)(c + (n & 4)), rest);
        rest = _mm_movehl_ps(rest, rest);
    }
    if (n & 1) _mm_store_ss(c + (n & 6), rest);
}

/* n sums, as they follow each other. */
LB_TARGET("avx2,fma")
LB_INLINE void add_first(const int n, __m256 sum, bool first, float *c)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i some = _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
    if (!first)
        sum = _mm256_add_ps(sum, n == LANES ? _mm256_loadu_ps(c)
                                            : _mm256_maskload_ps(c, some));
    store_first(n, c, sum);
}

/* Numbers of some rows of w, each as often as there are rows of x. */
LB_TARGET("avx2,fma")
LB_INLINE __m256 spread(const int rows, const int lines, const float *factor)
{
    if (lines == 1) return _mm256_broadcast_ss(factor);
    float all[LANES] = {0};
    LB_UNROLL
    for (int e = 0; e < lines * rows; e++)
        all[e] = factor[e / rows];
    return _mm256_setr_ps(all[0], all[1], all[2], all[3], all[4], all[5],
                          all[6], all[7]);
}

/* The sums of some rows of w, which all rows of x have with the first, then
 * with the next one. */
LB_TARGET("avx2,fma")
LB_INLINE void put(const int rows, const int lines, const __m256 *r,
                   const float *factor, bool first, float *c, int64_t ldc)
{
    const __m256 s = fold_4(r), t = fold_4(r + 4);
    __m256 sum = _mm256_add_ps(_mm256_permute2f128_ps(s, t, 0x20),
                               _mm256_permute2f128_ps(s, t, 0x31));
    if (factor) sum = _mm256_mul_ps(sum, spread(rows, lines, factor));
    if (lines == 1 || ldc == rows) {
        add_first(lines * rows, sum, first, c);
        return;
    }
    float all[LANES];
    _mm256_storeu_ps(all, sum);
    for (int l = 0; l < lines; l++)
        for (int i = 0; i < rows; i++) {
            float *const to = c + l * ldc + i;
            *to = first ? all[l * rows + i] : all[l * rows + i] + *to;
        }
}

/* ---- groups of codes ----------------------------------------------------- */

/* What codes stand for; bits is a constant wherever this is inlined. */
typedef struct {
    __m256i plane[4]; /* 4 bits: the bytes of levels, from the lowest */
    __m256 level;     /* 2 and 1 bits: four, in both halves */
} tables;

LB_TARGET("avx2,fma")
LB_INLINE tables tables_of(const int bits, const float *level)
{
    tables t;
    memset(&t, 0, sizeof t);
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

LB_TARGET("avx2,fma")
LB_INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* A group of some rows of w, and what codes are multiplied with. */
typedef struct {
    const uint8_t *codes[MOST_LINES];
    __m256 scale[MOST_LINES];
} groups;

/* Byte b of each lane at its top, zeros below: 2^24 times a code. */
LB_TARGET("avx2,fma")
LB_INLINE __m256i top_byte(__m256i v, int b)
{
    const char o = -1, c = (char)b;
    if (b == 3)
        return _mm256_and_si256(v, _mm256_set1_epi32((int32_t)0xff000000));
    return _mm256_shuffle_epi8(
        v, _mm256_broadcastsi128_si256(
               _mm_setr_epi8(o, o, o, c, o, o, o, (char)(c + 4), o, o, o,
                             (char)(c + 8), o, o, o, (char)(c + 12))));
}

/* 32 bytes of a row. late: they stay as many times too large. */
LB_TARGET("avx2,fma")
LB_INLINE void add_bytes(const bool late, const int rows, __m256i v,
                         __m256 scale, const float *x, __m256 *r)
{
    LB_UNROLL
    for (int b = 0; b < 4; b++) {
        __m256i code = top_byte(v, b);
        if (!late) code = _mm256_srai_epi32(code, 24);
        __m256 w = _mm256_cvtepi32_ps(code);
        if (!late) w = _mm256_mul_ps(w, scale);
        add_products(rows, x + b * rows * LANES, w, r);
    }
}

/* 32 nibbles, in bytes of their own. */
LB_TARGET("avx2,fma")
LB_INLINE void add_nibbles(const int rows, const tables *t, __m256i code,
                           __m256 scale, const float *x, __m256 *r)
{
    const __m256i a = _mm256_shuffle_epi8(t->plane[0], code);
    const __m256i b = _mm256_shuffle_epi8(t->plane[1], code);
    const __m256i c = _mm256_shuffle_epi8(t->plane[2], code);
    const __m256i d = _mm256_shuffle_epi8(t->plane[3], code);
    const __m256i low[2] = {_mm256_unpacklo_epi8(a, b),
                            _mm256_unpackhi_epi8(a, b)};
    const __m256i high[2] = {_mm256_unpacklo_epi8(c, d),
                             _mm256_unpackhi_epi8(c, d)};
    LB_UNROLL
    for (int v = 0; v < 4; v++) {
        const __m256i w = v % 2
                              ? _mm256_unpackhi_epi16(low[v / 2], high[v / 2])
                              : _mm256_unpacklo_epi16(low[v / 2], high[v / 2]);
        add_products(rows, x + v * rows * LANES,
                     _mm256_mul_ps(_mm256_castsi256_ps(w), scale), r);
    }
}

/* Fields of 2 or 1 bits of eight numbers of 32 bits each. */
LB_TARGET("avx2,fma")
LB_INLINE void add_fields(const int bits, const bool late, const int rows,
                          const int lines, const tables *t, const groups *w,
                          const float *x, __m256 *r)
{
    __m256i v[MOST_LINES];
    __m256 level[MOST_LINES];
    LB_UNROLL
    for (int l = 0; l < lines; l++) {
        v[l] = load(w->codes[l]);
        level[l] = late ? t->level : _mm256_mul_ps(t->level, w->scale[l]);
    }
    for (int f = 0; f < 32 / bits; f += 4) {
        LB_UNROLL
        for (int u = 0; u < 4; u++) {
            LB_UNROLL
            for (int l = 0; l < lines; l++) {
                add_products(rows, x, _mm256_permutevar_ps(level[l], v[l]),
                             r + l * rows);
                v[l] = _mm256_srli_epi32(v[l], bits);
            }
            x += rows * LANES;
        }
    }
}

LB_TARGET("avx2,fma")
LB_INLINE void add_groups(const int bits, const bool late, const int rows,
                          const int lines, const tables *t, const groups *w,
                          const float *x, __m256 *r)
{
    const __m256i mask = _mm256_set1_epi8(15);
    if (bits < 4) {
        add_fields(bits, late, rows, lines, t, w, x, r);
        return;
    }
    LB_UNROLL
    for (int l = 0; l < lines; l++) {
        const __m256i v = load(w->codes[l]);
        __m256 *const sums = r + l * rows;
        if (bits == 8) {
            add_bytes(late, rows, v, w->scale[l], x, sums);
            continue;
        }
        const __m256i high = _mm256_srli_epi16(v, 4);
        add_nibbles(rows, t, _mm256_and_si256(v, mask), w->scale[l], x, sums);
        add_nibbles(rows, t, _mm256_and_si256(high, mask), w->scale[l],
                    x + 4 * rows * LANES, sums);
    }
}

/* ---- rows ---------------------------------------------------------------- */

/* The scales of a group: one, or one for each half of its bytes, of which the
 * second may not be there. */
LB_TARGET("avx2,fma")
LB_INLINE __m256 scales_at(const int bits, const float *scale, int64_t at,
                           int64_t depth, int shift)
{
    const int64_t half = (int64_t)BYTES * 4 / bits;
    const float first = scale[at >> shift];
    if (bits == 8 || depth - at <= half) return _mm256_set1_ps(first);
    const float next = scale[(at + half) >> shift];
    return _mm256_set_m128(_mm_set1_ps(next), _mm_set1_ps(first));
}

/* The codes of the last groups, of which there are not all. */
LB_INLINE void fill_up(const int bits, const int lines, int64_t left,
                       groups *now, uint8_t (*room)[BYTES])
{
    for (int l = 0; l < lines; l++) {
        memset(room[l], 0, BYTES);
        memcpy(room[l], now->codes[l], (size_t)((left * bits + 7) / 8));
        now->codes[l] = room[l];
    }
}

/* Rows j and those after it. */
LB_TARGET("avx2,fma")
LB_INLINE void add_rows(const int bits, const bool late, const int rows,
                        const int lines, const tables *t,
                        const lb_dotf32_codes *w, int64_t j, const float *x,
                        __m256 *r)
{
    const int64_t group = (int64_t)BYTES * 8 / bits, depth = w->depth;
    const float *scale = w->scale + j * w->scale_step;
    const int shift = w->g ? __builtin_ctzll((unsigned long long)w->g) : 0;
    groups now;
    uint8_t room[MOST_LINES][BYTES];
    LB_UNROLL
    for (int l = 0; l < lines; l++) {
        now.codes[l] = w->codes + (j + l) * w->step;
        now.scale[l] = _mm256_set1_ps(scale[l * w->scale_step]);
    }
    for (int64_t at = 0; at < depth; at += group) {
        LB_UNROLL
        for (int l = 0; l < lines; l++)
            if (w->g && !late)
                now.scale[l] = scales_at(bits, scale + l * w->scale_step, at,
                                         depth, shift);
        if (depth - at < group) fill_up(bits, lines, depth - at, &now, room);
        add_groups(bits, late, rows, lines, t, &now, x, r);
        LB_UNROLL
        for (int l = 0; l < lines; l++) {
            now.codes[l] += BYTES;
            KEEP_ADDRESS(now.codes[l]);
        }
        x += group * rows;
    }
}

/* It may lie anywhere, so this is never a pointer that C looks at. */
LB_INLINE void fetch(uintptr_t at, int64_t bytes)
{
    for (int64_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)(at + (uintptr_t)b), 0, 2);
}

/* What sums are to be multiplied with, if late. */
LB_INLINE void late_factors(const int bits, const int lines,
                            const lb_dotf32_codes *w, int64_t j, float *to)
{
    const float unit = bits == 8 ? 0x1p-24f : 1;
    for (int l = 0; l < lines; l++)
        to[l] = w->scale[(j + l) * w->scale_step] * unit;
}

/* late: scales wait until all else is summed. */
LB_TARGET("avx2,fma")
LB_INLINE void dots_lines(const int bits, const bool late, const int rows,
                          const int lines, const tables *t,
                          const lb_dotf32_codes *w, int64_t j, const float *x,
                          bool first, float *c, int64_t ldc)
{
    __m256 r[MR];
    float factor[MOST_LINES];
    for (int l = 0; l < lines && w->ahead; l++)
        fetch((uintptr_t)(w->codes + (j + l) * w->step) + w->ahead,
              w->depth * bits / 8);
    LB_UNROLL
    for (int i = 0; i < MR; i++) {
        r[i] = _mm256_setzero_ps();
        if (i < lines * rows) KEEP(r[i]);
    }
    add_rows(bits, late, rows, lines, t, w, j, x, r);
    if (late) late_factors(bits, lines, w, j, factor);
    put(rows, lines, r, late ? factor : NULL, first, c + j * ldc, ldc);
}

/* How many rows of w are multiplied together. */
LB_INLINE int lines_of(int rows)
{
    return rows <= 2 ? 4 : rows <= 4 ? 2 : 1;
}

LB_TARGET("avx2,fma")
LB_INLINE void dots_rows(const int bits, const bool late, const int rows,
                         const lb_dotf32_codes *w, const float *x, bool first,
                         float *c, int64_t ldc)
{
    const tables t = tables_of(bits, w->level);
    const int lines = lines_of(rows);
    int64_t j = 0;
    for (; j + lines <= w->n; j += lines)
        dots_lines(bits, late, rows, lines, &t, w, j, x, first, c, ldc);
    for (; j < w->n && lines > 1; j++)
        dots_lines(bits, late, rows, 1, &t, w, j, x, first, c, ldc);
}

/* For each size of codes a table of functions, one for each number of rows. */
typedef void function(const lb_dotf32_codes *w, int rows, const float *x,
                      bool first, float *c, int64_t ldc);
#define ROWS(n, name, bits, late)                                              \
    LB_TARGET("avx2,fma")                                                      \
    static void name##_##n(const lb_dotf32_codes *w, int rows, const float *x, \
                           bool first, float *c, int64_t ldc)                  \
    {                                                                          \
        (void)rows;                                                            \
        dots_rows(bits, late, n, w, x, first, c, ldc);                         \
    }
#define DOTS(name, bits, late)                                                 \
    LB_UP_TO_8(ROWS, name, bits, late)                                         \
    static function *const name[] = LB_TABLE(LB_UP_TO_8, name);

DOTS(dots_8, 8, false)
DOTS(dots_8_late, 8, true)
DOTS(dots_4, 4, false)
DOTS(dots_2, 2, false)
DOTS(dots_2_late, 2, true)
DOTS(dots_1, 1, false)
DOTS(dots_1_late, 1, true)

static function *const *functions_of(const lb_dotf32_codes *w)
{
    const bool late = w->tame && !w->g;
    switch (w->bits) {
    case 8:
        return late ? dots_8_late : dots_8;
    case 4:
        return dots_4;
    case 2:
        return late ? dots_2_late : dots_2;
    default:
        return late ? dots_1_late : dots_1;
    }
}

static void dots(const lb_dotf32_codes *w, int rows, const float *x, bool first,
                 float *c, int64_t ldc)
{
    functions_of(w)[LB_NTH(rows)](w, rows, x, first, c, ldc);
}

const lb_dotf32 lb_dotf32_avx2 = {
    .name = "dot f32 avx2",
    .mr = MR,
    .lanes = LANES,
    .dots = dots,
};
#endif
