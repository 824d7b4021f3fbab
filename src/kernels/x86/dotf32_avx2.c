/* dotf32_avx2.c - f32 products with codes that are decoded in registers: AVX2.
 *
 * Eight accumulators, one for each row of x, hide the latency of vfmadd. x is
 * read where it is multiplied, two vectors a cycle, which leaves the other
 * ports to decoding: eight products last four cycles, and a vector of w takes
 * two to five instructions.
 */
#include "kernels/dotf32.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/intrin.h"

enum { MR = 8, LANES = 8, BYTES = 32 };

/* Keeps a value in its register. */
#if defined(LB_SIMDE)
#define KEEP(v) ((void)0)
#else
#define KEEP(v) __asm__("" : "+x"(v))
#endif

/* ---- sums ---------------------------------------------------------------- */

LB_TARGET("avx2,fma")
LB_INLINE void add_products(const int rows, const float *x, __m256 w, __m256 *r)
{
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        r[i] = _mm256_fmadd_ps(w, _mm256_load_ps(x + i * LANES), r[i]);
        KEEP(r[i]);
    }
}

/* Four sums; each half of the result has one half of each. */
LB_TARGET("avx2,fma")
LB_INLINE __m256 fold_4(const __m256 *r)
{
    return _mm256_hadd_ps(_mm256_hadd_ps(r[0], r[1]),
                          _mm256_hadd_ps(r[2], r[3]));
}

LB_TARGET("avx2,fma")
LB_INLINE void put(const int rows, const __m256 *r, bool first, float *c)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i some = _mm256_cmpgt_epi32(_mm256_set1_epi32(rows), lane);
    const __m256 s = fold_4(r), t = fold_4(r + 4);
    __m256 sum = _mm256_add_ps(_mm256_permute2f128_ps(s, t, 0x20),
                               _mm256_permute2f128_ps(s, t, 0x31));
    if (!first) sum = _mm256_add_ps(sum, _mm256_maskload_ps(c, some));
    if (rows == MR)
        _mm256_storeu_ps(c, sum);
    else
        _mm256_maskstore_ps(c, some, sum);
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

LB_TARGET("avx2,fma")
LB_INLINE void add_bytes(const int rows, const uint8_t *codes, __m256 scale,
                         const float *x, __m256 *r)
{
    LB_UNROLL
    for (int v = 0; v < BYTES / LANES; v++) {
        const __m256i w = _mm256_cvtepi8_epi32(_mm_loadl_epi64(
            (const __m128i *)(const void *)(codes + v * LANES)));
        add_products(rows, x + v * rows * LANES,
                     _mm256_mul_ps(_mm256_cvtepi32_ps(w), scale), r);
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
LB_INLINE void add_fields(const int bits, const int rows, __m256i v,
                          __m256 level, const float *x, __m256 *r)
{
    for (int f = 0; f < 32 / bits; f += 4) {
        LB_UNROLL
        for (int u = 0; u < 4; u++) {
            add_products(rows, x, _mm256_permutevar_ps(level, v), r);
            v = _mm256_srli_epi32(v, bits);
            x += rows * LANES;
        }
    }
}

/* The scales of a group: one, or one for each half of its bytes. */
LB_TARGET("avx2,fma")
LB_INLINE __m256 scales_at(const int bits, const float *scale, int64_t at,
                           int64_t g)
{
    if (bits == 8) return _mm256_set1_ps(scale[at / g]);
    const int64_t half = (int64_t)BYTES * 4 / bits;
    return _mm256_set_m128(_mm_set1_ps(scale[(at + half) / g]),
                           _mm_set1_ps(scale[at / g]));
}

/* codes: a whole group, or what there is of it. */
LB_TARGET("avx2,fma")
LB_INLINE void add_group(const int bits, const int rows, const tables *t,
                         const uint8_t *codes, __m256 scale, const float *x,
                         __m256 *r)
{
    if (bits == 8) {
        add_bytes(rows, codes, scale, x, r);
    } else if (bits == 4) {
        const __m256i v = load(codes), mask = _mm256_set1_epi8(15);
        add_nibbles(rows, t, _mm256_and_si256(v, mask), scale, x, r);
        add_nibbles(rows, t, _mm256_and_si256(_mm256_srli_epi16(v, 4), mask),
                    scale, x + 4 * rows * LANES, r);
    } else {
        add_fields(bits, rows, load(codes), _mm256_mul_ps(t->level, scale), x,
                   r);
    }
}

/* ---- rows ---------------------------------------------------------------- */

LB_TARGET("avx2,fma")
LB_INLINE void add_row(const int bits, const int rows, const tables *t,
                       const lb_dotf32_codes *w, int64_t j, const float *x,
                       __m256 *r)
{
    const int64_t group = (int64_t)BYTES * 8 / bits;
    const uint8_t *codes = w->codes + j * w->step;
    const float *scale = w->scale + j * w->scale_step;
    __m256 s = _mm256_set1_ps(*scale);
    for (int64_t at = 0; at < w->depth; at += group) {
        uint8_t some[BYTES];
        const int64_t left = w->depth - at;
        if (w->g) /* The last half may not be there, nor its scale. */
            s = left > group / 2 || bits == 8
                    ? scales_at(bits, scale, at, w->g)
                    : _mm256_set1_ps(scale[at / w->g]);
        const uint8_t *from = codes;
        if (left < group) {
            memset(some, 0, sizeof some);
            memcpy(some, codes, (size_t)((left * bits + 7) / 8));
            from = some;
        }
        add_group(bits, rows, t, from, s, x, r);
        codes += BYTES;
        x += group * rows;
    }
}

/* It may lie anywhere, so this is never a pointer that C looks at. */
LB_INLINE void fetch(uintptr_t at, int64_t bytes)
{
    for (int64_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)(at + (uintptr_t)b), 0, 2);
}

LB_TARGET("avx2,fma")
LB_INLINE void dots_rows(const int bits, const int rows,
                         const lb_dotf32_codes *w, const float *x, bool first,
                         float *c, int64_t ldc)
{
    const tables t = tables_of(bits, w->level);
    for (int64_t j = 0; j < w->n; j++) {
        if (w->ahead)
            fetch((uintptr_t)(w->codes + j * w->step) + w->ahead,
                  w->depth * bits / 8);
        __m256 r[MR];
        LB_UNROLL
        for (int i = 0; i < MR; i++) {
            r[i] = _mm256_setzero_ps();
            if (i < rows) KEEP(r[i]);
        }
        add_row(bits, rows, &t, w, j, x, r);
        put(rows, r, first, c + j * ldc);
    }
}

/* A function for each size of codes, with code of its own for each number of
 * rows. */
#define DOTS(name, bits)                                                       \
    LB_TARGET("avx2,fma")                                                      \
    static void name(const lb_dotf32_codes *w, int rows, const float *x,       \
                     bool first, float *c, int64_t ldc)                        \
    {                                                                          \
        switch (rows) {                                                        \
        case 1:                                                                \
            dots_rows(bits, 1, w, x, first, c, ldc);                           \
            break;                                                             \
        case 2:                                                                \
            dots_rows(bits, 2, w, x, first, c, ldc);                           \
            break;                                                             \
        case 3:                                                                \
            dots_rows(bits, 3, w, x, first, c, ldc);                           \
            break;                                                             \
        case 4:                                                                \
            dots_rows(bits, 4, w, x, first, c, ldc);                           \
            break;                                                             \
        case 5:                                                                \
            dots_rows(bits, 5, w, x, first, c, ldc);                           \
            break;                                                             \
        case 6:                                                                \
            dots_rows(bits, 6, w, x, first, c, ldc);                           \
            break;                                                             \
        case 7:                                                                \
            dots_rows(bits, 7, w, x, first, c, ldc);                           \
            break;                                                             \
        default:                                                               \
            dots_rows(bits, 8, w, x, first, c, ldc);                           \
        }                                                                      \
    }

DOTS(dots_8, 8)
DOTS(dots_4, 4)
DOTS(dots_2, 2)
DOTS(dots_1, 1)

static void dots(const lb_dotf32_codes *w, int rows, const float *x, bool first,
                 float *c, int64_t ldc)
{
    switch (w->bits) {
    case 8:
        dots_8(w, rows, x, first, c, ldc);
        break;
    case 4:
        dots_4(w, rows, x, first, c, ldc);
        break;
    case 2:
        dots_2(w, rows, x, first, c, ldc);
        break;
    default:
        dots_1(w, rows, x, first, c, ldc);
    }
}

const lb_dotf32 lb_dotf32_avx2 = {
    .name = "dot f32 avx2",
    .mr = MR,
    .lanes = LANES,
    .dots = dots,
};
#endif
