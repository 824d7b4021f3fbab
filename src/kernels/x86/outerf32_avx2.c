/* outerf32_avx2.c - a few rows times 16 columns of codes: AVX2 with FMA.
 *
 * The tile of gemm_avx2.c whose two vectors of B are decoded on the spot, by
 * units that FMAs leave alone. Columns come out in order:
 *
 *   8 bits   as they are loaded
 *   4 bits   two lines at a time, 8 bytes of each in both halves; a half takes
 *            every other two of them, and each twice. The bytes of levels,
 *            looked up one by one, then unpack in order
 *   2, 1     all codes in every lane, each shifted by as much as its own
 */
#include "kernels/outerf32.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/label_avx2.h"

enum { MR = 4, NR = 16 };

#define AVX2        LB_TARGET("avx2,fma,f16c")
#define AVX2_INLINE AVX2 LB_INLINE

/* ---- what all lines have alike ------------------------------------------- */

typedef struct {
    __m256i plane[4]; /* 4 bits: the bytes of levels, from the lowest */
    __m256i shift[2]; /* 2 and 1 bits: of the two vectors, */
    __m256 level;     /* and their levels, in both halves */
    __m256 scale[2];  /* each: those of columns */
} tables;

AVX2_INLINE __m256i load_twice(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

AVX2_INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* Of these some are used, as bits and each say. */
AVX2_INLINE tables tables_of(const int bits, const bool each, const lb_dtype to,
                             const lb_outerf32_lines *w)
{
    tables t;
    memset(&t, 0, sizeof t);
    LB_UNROLL
    for (int b = 0; b < 4 && bits == 4; b++)
        t.plane[b] = load_twice(w->table->plane[b]);
    LB_UNROLL
    for (int v = 0; v < 2; v++) {
        if (bits < 4) t.shift[v] = load(w->table->shift + 8 * v);
        if (each)
            t.scale[v] = lb_label_scales(to, _mm256_loadu_ps(w->scale + 8 * v));
    }
    if (bits < 4) t.level = _mm256_castsi256_ps(load_twice(w->table->level));
    return t;
}

/* ---- 16 codes ------------------------------------------------------------ */

AVX2_INLINE __m256 decode_8(const uint8_t *codes)
{
    const __m128i v = _mm_loadl_epi64((const __m128i *)(const void *)codes);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v));
}

/* Of two lines, which may be the same. */
AVX2_INLINE void decode_nibbles(const tables *t, const bool high_first,
                                const uint8_t *codes, const uint8_t *codes2,
                                __m256 *to)
{
    const __m256i twice =
        _mm256_setr_epi8(0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13, 2,
                         2, 3, 3, 6, 6, 7, 7, 10, 10, 11, 11, 14, 14, 15, 15);
    const __m256i even = _mm256_set1_epi16(0x000f);
    const __m256i odd = _mm256_set1_epi16(0x0f00);
    int64_t line, line2;
    memcpy(&line, codes, sizeof line);
    memcpy(&line2, codes2, sizeof line2);
    const __m256i v =
        _mm256_shuffle_epi8(_mm256_blend_epi32(_mm256_set1_epi64x(line),
                                               _mm256_set1_epi64x(line2), 0xcc),
                            twice);
    const __m256i down = _mm256_srli_epi16(v, 4);
    const __m256i code = high_first
                             ? _mm256_or_si256(_mm256_and_si256(down, even),
                                               _mm256_and_si256(v, odd))
                             : _mm256_or_si256(_mm256_and_si256(v, even),
                                               _mm256_and_si256(down, odd));
    const __m256i a = _mm256_shuffle_epi8(t->plane[0], code);
    const __m256i b = _mm256_shuffle_epi8(t->plane[1], code);
    const __m256i c = _mm256_shuffle_epi8(t->plane[2], code);
    const __m256i d = _mm256_shuffle_epi8(t->plane[3], code);
    const __m256i ab0 = _mm256_unpacklo_epi8(a, b);
    const __m256i ab1 = _mm256_unpackhi_epi8(a, b);
    const __m256i cd0 = _mm256_unpacklo_epi8(c, d);
    const __m256i cd1 = _mm256_unpackhi_epi8(c, d);
    to[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(ab0, cd0));
    to[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(ab0, cd0));
    to[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(ab1, cd1));
    to[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(ab1, cd1));
}

AVX2_INLINE void decode_fields(const tables *t, const uint8_t *codes,
                               __m256 level, __m256 *to)
{
    int32_t all;
    memcpy(&all, codes, sizeof all);
    const __m256i v = _mm256_set1_epi32(all);
    LB_UNROLL
    for (int h = 0; h < 2; h++)
        to[h] = _mm256_permutevar_ps(level, _mm256_srlv_epi32(v, t->shift[h]));
}

/* ---- tiles --------------------------------------------------------------- */

/* Keeps two vectors of a line, and adds their products. */
AVX2_INLINE void add_line(const int rows, const __m256 *w, const float *x,
                          float *keep, __m256 (*r)[2])
{
    _mm256_store_ps(keep, w[0]);
    _mm256_store_ps(keep + 8, w[1]);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m256 xi = _mm256_broadcast_ss(x + i);
        LB_ADD_PRODUCT(r[i][0], xi, w[0]);
        LB_ADD_PRODUCT(r[i][1], xi, w[1]);
    }
}

AVX2_INLINE void scale_two(const lb_dtype to, __m256 s0, __m256 s1, __m256 *w)
{
    w[0] = lb_number(to, w[0], s0);
    w[1] = lb_number(to, w[1], s1);
}

AVX2_INLINE __m256 scale_at(const lb_dtype to, const float *scale)
{
    return _mm256_set1_ps(lb_label_scale(to, *scale));
}

AVX2_INLINE void add_nibbles(const bool high_first, const lb_dtype to,
                             const int rows, const lb_outerf32_lines *w,
                             const float *x, float *keep, __m256 (*r)[2])
{
    const tables t = tables_of(4, false, to, w);
    const int64_t step = w->step, scale_step = w->scale_step;
    const uint8_t *codes = w->codes;
    const float *scale = w->scale;
    int64_t left = w->k;
    __m256 v[4];
    for (; left >= 2; left -= 2) {
        decode_nibbles(&t, high_first, codes, codes + step, v);
        const __m256 s = scale_at(to, scale);
        const __m256 s2 = scale_at(to, scale + scale_step);
        scale_two(to, s, s, v);
        scale_two(to, s2, s2, v + 2);
        add_line(rows, v, x, keep, r);
        add_line(rows, v + 2, x + rows, keep + NR, r);
        codes += 2 * step;
        scale += 2 * scale_step;
        x += 2 * rows;
        keep += 2 * NR;
    }
    if (!left) return;
    const __m256 s = scale_at(to, scale);
    decode_nibbles(&t, high_first, codes, codes, v);
    scale_two(to, s, s, v);
    add_line(rows, v, x, keep, r);
}

/* One line of other codes. */
AVX2_INLINE void add_other(const int bits, const bool each, const lb_dtype to,
                           const int rows, const tables *t,
                           const uint8_t *codes, const float *scale,
                           const float *x, float *keep, __m256 (*r)[2])
{
    __m256 v[2];
    const __m256 s = each ? t->scale[0] : scale_at(to, scale);
    if (bits == 8) {
        v[0] = decode_8(codes);
        v[1] = decode_8(codes + 8);
        scale_two(to, s, each ? t->scale[1] : s, v);
    } else {
        decode_fields(t, codes, lb_number(to, t->level, s), v);
    }
    add_line(rows, v, x, keep, r);
}

AVX2_INLINE void add_others(const int bits, const bool each, const lb_dtype to,
                            const int rows, const lb_outerf32_lines *w,
                            const float *x, float *keep, __m256 (*r)[2])
{
    const tables t = tables_of(bits, each, to, w);
    const int64_t step = w->step, scale_step = w->scale_step;
    const uint8_t *codes = w->codes;
    const float *scale = w->scale;
    int64_t left = w->k;
    for (; left >= 2; left -= 2) {
        add_other(bits, each, to, rows, &t, codes, scale, x, keep, r);
        add_other(bits, each, to, rows, &t, codes + step, scale + scale_step,
                  x + rows, keep + NR, r);
        codes += 2 * step;
        scale += 2 * scale_step;
        x += 2 * rows;
        keep += 2 * NR;
    }
    if (left) add_other(bits, each, to, rows, &t, codes, scale, x, keep, r);
}

AVX2_INLINE void put(__m256 (*r)[2], const int rows, int n, bool first,
                     float *c, int64_t ldc)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    LB_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m256i some =
            _mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8 * h), lane);
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            float *const to = c + i * ldc + 8 * h;
            __m256 sum = r[i][h];
            if (n == NR) {
                if (!first) sum = _mm256_add_ps(_mm256_loadu_ps(to), sum);
                _mm256_storeu_ps(to, sum);
            } else {
                if (!first)
                    sum = _mm256_add_ps(_mm256_maskload_ps(to, some), sum);
                _mm256_maskstore_ps(to, some, sum);
            }
        }
    }
}

AVX2_INLINE void tile_rows(const int bits, const bool flag, const lb_dtype to,
                           const int rows, const lb_outerf32_lines *w,
                           const float *x, bool first, int n, float *c,
                           int64_t ldc, float *keep)
{
    __m256 r[MR][2];
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        r[i][0] = r[i][1] = _mm256_setzero_ps();
    if (bits == 4)
        add_nibbles(flag, to, rows, w, x, keep, r);
    else
        add_others(bits, flag, to, rows, w, x, keep, r);
    put(r, rows, n, first, c, ldc);
}

/* For each kind of codes a table of functions, one for each number of rows.
 * flag: of 4 bits whether the high ones are first, of 8 whether each column has
 * a scale. */
typedef void function(const lb_outerf32_lines *w, int rows, const float *x,
                      bool first, int n, float *c, int64_t ldc, float *keep);
#define ROWS(h, name, bits, flag, to)                                          \
    AVX2 static void name##_##h(const lb_outerf32_lines *w, int rows,          \
                                const float *x, bool first, int n, float *c,   \
                                int64_t ldc, float *keep)                      \
    {                                                                          \
        (void)rows;                                                            \
        tile_rows(bits, flag, to, h, w, x, first, n, c, ldc, keep);            \
    }
#define TILE(name, bits, flag, to)                                             \
    LB_UP_TO_4(ROWS, name, bits, flag, to)                                     \
    static function *const name[] = LB_TABLE(LB_UP_TO_4, name);

/* The same for numbers that are rounded to no dtype, bf16 and f16. */
#define TILES(name, bits, flag)                                                \
    TILE(name##_f32, bits, flag, LB_F32)                                       \
    TILE(name##_bf16, bits, flag, LB_BF16)                                     \
    TILE(name##_f16, bits, flag, LB_F16)                                       \
    static function *const *name(lb_dtype rounds)                              \
    {                                                                          \
        return rounds == LB_BF16  ? name##_bf16                                \
               : rounds == LB_F16 ? name##_f16                                 \
                                  : name##_f32;                                \
    }

TILES(bytes, 8, false)
TILES(bytes_each, 8, true)
TILES(nibbles, 4, false)
TILES(nibbles_high, 4, true)
TILES(pairs, 2, false)
TILES(single, 1, false)

static function *const *functions_of(const lb_outerf32_lines *w)
{
    switch (w->table->bits) {
    case 8:
        return w->each ? bytes_each(w->rounds) : bytes(w->rounds);
    case 4:
        return w->table->high_first ? nibbles_high(w->rounds)
                                    : nibbles(w->rounds);
    case 2:
        return pairs(w->rounds);
    default:
        return single(w->rounds);
    }
}

static void tile(const lb_outerf32_lines *w, int rows, const float *x,
                 bool first, int n, float *c, int64_t ldc, float *keep)
{
    functions_of(w)[LB_NTH(rows)](w, rows, x, first, n, c, ldc, keep);
}

const lb_outerf32 lb_outerf32_avx2 = {.name = "dot f32 avx2 4x16",
                                      .mr = MR,
                                      .nr = NR,
                                      .kc = 256,
                                      .most = 256,
                                      .tile = tile};
#endif
