/* dotf32_avx512.c - f32 products with codes that are decoded in registers:
 * AVX-512.
 *
 * Decoding and multiplying share two units, so a vector of w costs what it
 * takes to decode beside its products: two instructions of bytes, two and a
 * quarter of nibbles, two of fewer bits. Up to twelve rows of x divide that
 * among them; some rows of w at a time divide what it takes to load x.
 *
 *   8 bits   in order
 *   else     a lane has two bytes, and each vector the next field of them;
 *            levels are multiplied by scales before they are looked up
 */
#include "kernels/dotf32.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/lanes_avx512.h"

#define AVX512 LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq")

enum { MR = 12, LANES = 16, BYTES = 32, MOST_LINES = 4, MOST_SUMS = 24 };

/* late: scales wait until all else is summed. halves: of 4 bits, a group may
 * have two scales. */
typedef struct {
    bool late, halves;
} way;

/* ---- sums ---------------------------------------------------------------- */

AVX512 LB_INLINE __m512 add_lows_highs(__m512i low, __m512i high)
{
    return _mm512_add_ps(_mm512_castsi512_ps(low), _mm512_castsi512_ps(high));
}

/* Lanes l and l + 8, then l and l + 4, of four sums. */
AVX512 LB_INLINE __m512 fold_4(__m512 a, __m512 b, __m512 c, __m512 d)
{
    const __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44),
                                    _mm512_shuffle_f32x4(a, b, 0xee));
    const __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44),
                                    _mm512_shuffle_f32x4(c, d, 0xee));
    return _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88),
                         _mm512_shuffle_f32x4(ab, cd, 0xdd));
}

/* Lanes l and l + 2 of what is left of them. */
AVX512 LB_INLINE __m512 fold_pairs(__m512 a, __m512 b)
{
    const __m512i x = _mm512_castps_si512(a), y = _mm512_castps_si512(b);
    return add_lows_highs(_mm512_unpacklo_epi64(x, y),
                          _mm512_unpackhi_epi64(x, y));
}

/* Sixteen sums in order, each of the lanes of one register. */
AVX512 LB_INLINE __m512 fold_16(const __m512 *r)
{
    __m512 q[4];
    LB_UNROLL
    for (int i = 0; i < 4; i++)
        q[i] = fold_4(r[i], r[4 + i], r[8 + i], r[12 + i]);
    const __m512 s = fold_pairs(q[0], q[1]), t = fold_pairs(q[2], q[3]);
    return _mm512_add_ps(_mm512_shuffle_ps(s, t, 0x88),
                         _mm512_shuffle_ps(s, t, 0xdd));
}

/* Numbers of some rows of w, each as often as there are rows of x: elements
 * [e, e + 16) of these. */
AVX512 LB_INLINE __m512 spread(const int rows, const int lines, int e,
                               const float *factor)
{
    __m512 s = _mm512_set1_ps(factor[0]);
    LB_UNROLL
    for (int l = 1; l < lines; l++)
        s = _mm512_mask_blend_ps((__mmask16)~lb_first_lanes(l * rows - e), s,
                                 _mm512_set1_ps(factor[l]));
    return s;
}

AVX512 LB_INLINE void add_first(int n, __m512 sum, bool first, float *c)
{
    const __mmask16 some = lb_first_lanes(n);
    if (!first) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(some, c));
    _mm512_mask_storeu_ps(c, some, sum);
}

/* The sums of some rows of w, which all rows of x have with the first, then
 * with the next one. */
AVX512 LB_INLINE void put(const int rows, const int lines, const __m512 *r,
                          const float *factor, bool first, float *c,
                          int64_t ldc)
{
    const int n = rows * lines;
    float all[2 * LANES];
    LB_UNROLL
    for (int e = 0; e < n; e += LANES) {
        __m512 sum = fold_16(r + e);
        if (factor) sum = _mm512_mul_ps(sum, spread(rows, lines, e, factor));
        if (lines == 1 || ldc == rows)
            add_first(n - e, sum, first, c + e);
        else
            _mm512_storeu_ps(all + e, sum);
    }
    if (lines == 1 || ldc == rows) return;
    for (int l = 0; l < lines; l++)
        for (int i = 0; i < rows; i++) {
            float *const to = c + l * ldc + i;
            *to = first ? all[l * rows + i] : all[l * rows + i] + *to;
        }
}

/* ---- groups of codes ----------------------------------------------------- */

/* A group of some rows of w: 32 bytes of each. */
typedef struct {
    const uint8_t *codes[MOST_LINES];
    __m512 level[MOST_LINES], level2[MOST_LINES]; /* of the second half */
    __m512 scale[MOST_LINES];                     /* of 8 bits */
} groups;

AVX512 LB_INLINE __m512i load_words(const uint8_t *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
}

/* Vector v of row l of w; word: what is left of its bytes. */
AVX512 LB_INLINE __m512 number_at(const int bits, const way how,
                                  const groups *w, const int l, const int v,
                                  __m512i *word)
{
    if (bits == 8) {
        const __m512 code = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
            _mm_loadu_si128((const __m128i *)(w->codes[l] + v * LANES))));
        return how.late ? code : _mm512_mul_ps(code, w->scale[l]);
    }
    const __m512i code = *word;
    *word = _mm512_srli_epi32(code, (unsigned)bits);
    if (bits < 4) return _mm512_permutevar_ps(w->level[l], code);
    const __m512 level = _mm512_permutexvar_ps(code, w->level[l]);
    return how.halves
               ? _mm512_mask_blend_ps(0xff00, level,
                                      _mm512_permutexvar_ps(code, w->level2[l]))
               : level;
}

AVX512 LB_INLINE void add_groups(const int bits, const way how, const int rows,
                                 const int lines, const groups *w,
                                 const float *x, __m512 *r)
{
    __m512i word[MOST_LINES];
    LB_UNROLL
    for (int l = 0; l < lines && bits < 8; l++)
        word[l] = load_words(w->codes[l]);
    for (int v = 0; v < BYTES * 8 / bits / LANES; v++) {
        __m512 number[MOST_LINES];
        LB_UNROLL
        for (int l = 0; l < lines; l++) {
            number[l] = number_at(bits, how, w, l, v, word + l);
            LB_KEEP_512(number[l]);
        }
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            __m512 u = _mm512_loadu_ps(x + i * LANES);
            if (lines > 1) LB_KEEP_512(u);
            LB_UNROLL
            for (int l = 0; l < lines; l++)
                r[l * rows + i] =
                    _mm512_fmadd_ps(u, number[l], r[l * rows + i]);
        }
        x += rows * LANES;
    }
}

/* ---- rows ---------------------------------------------------------------- */

/* What numbers of row l are made of: a scale for all of a group, or one for
 * each half of its bytes, of which the second may not be there. */
AVX512 LB_INLINE void aim(const int bits, const way how, __m512 level,
                          const float *scale, int64_t at, int64_t depth,
                          int shift, int l, groups *now)
{
    const int64_t half = (int64_t)BYTES * 4 / bits, then = at + half;
    const __m512 s = _mm512_set1_ps(scale[at >> shift]);
    const __m512 next =
        bits < 8 && then < depth ? _mm512_set1_ps(scale[then >> shift]) : s;
    now->scale[l] = s;
    if (bits == 8) return;
    if (bits < 4) {
        now->level[l] =
            _mm512_mul_ps(level, _mm512_mask_blend_ps(0xff00, s, next));
    } else {
        now->level[l] = _mm512_mul_ps(level, s);
        if (how.halves) now->level2[l] = _mm512_mul_ps(level, next);
    }
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
AVX512 LB_INLINE void add_rows(const int bits, const way how, const int rows,
                               const int lines, __m512 level,
                               const lb_dotf32_codes *w, int64_t j,
                               const float *x, __m512 *r)
{
    const int64_t group = (int64_t)BYTES * 8 / bits, depth = w->depth;
    const float *const scale = w->scale + j * w->scale_step;
    const int shift = w->g ? __builtin_ctzll((unsigned long long)w->g) : 63;
    groups now;
    uint8_t room[MOST_LINES][BYTES];
    LB_UNROLL
    for (int l = 0; l < lines; l++) {
        now.codes[l] = w->codes + (j + l) * w->step;
        now.level[l] = level;
        if (!how.late)
            aim(bits, how, level, scale + l * w->scale_step, 0, depth, shift, l,
                &now);
    }
    for (int64_t at = 0; at < depth; at += group) {
        LB_UNROLL
        for (int l = 0; l < lines; l++)
            if (w->g && at && !how.late)
                aim(bits, how, level, scale + l * w->scale_step, at, depth,
                    shift, l, &now);
        if (depth - at < group) fill_up(bits, lines, depth - at, &now, room);
        add_groups(bits, how, rows, lines, &now, x, r);
        LB_UNROLL
        for (int l = 0; l < lines; l++)
            now.codes[l] += BYTES;
        x += group * rows;
    }
}

/* It may lie anywhere, so this is never a pointer that C looks at. */
LB_INLINE void fetch(uintptr_t at, int64_t bytes)
{
    for (int64_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)(at + (uintptr_t)b), 0, 2);
}

AVX512 LB_INLINE void dots_lines(const int bits, const way how, const int rows,
                                 const int lines, __m512 level,
                                 const lb_dotf32_codes *w, int64_t j,
                                 const float *x, bool first, float *c,
                                 int64_t ldc)
{
    __m512 r[2 * LANES];
    float factor[MOST_LINES];
    for (int l = 0; l < lines && w->ahead; l++)
        fetch((uintptr_t)(w->codes + (j + l) * w->step) + w->ahead,
              w->depth * bits / 8);
    LB_UNROLL
    for (int i = 0; i < LANES; i++) {
        r[i] = _mm512_setzero_ps();
        if (rows * lines > LANES) r[LANES + i] = _mm512_setzero_ps();
    }
    add_rows(bits, how, rows, lines, level, w, j, x, r);
    for (int l = 0; l < lines && how.late; l++)
        factor[l] = w->scale[(j + l) * w->scale_step];
    put(rows, lines, r, how.late ? factor : NULL, first, c + j * ldc, ldc);
}

/* How many rows of w are multiplied together: at least eight sums, which hide
 * the latency of vfmadd, and at most as many as there is room for. */
LB_INLINE int lines_of(int rows)
{
    return rows * MOST_LINES <= MOST_SUMS ? MOST_LINES : 2;
}

AVX512 LB_INLINE void dots_rows(const int bits, const way how, const int rows,
                                const lb_dotf32_codes *w, const float *x,
                                bool first, float *c, int64_t ldc)
{
    const __m512 level = lb_level_lanes(bits, w->level);
    const int lines = lines_of(rows);
    int64_t j = 0;
    for (; j + lines <= w->n; j += lines)
        dots_lines(bits, how, rows, lines, level, w, j, x, first, c, ldc);
    for (; j < w->n; j++)
        dots_lines(bits, how, rows, 1, level, w, j, x, first, c, ldc);
}

/* For each size of codes a table of functions, one for each number of rows. */
typedef void function(const lb_dotf32_codes *w, int rows, const float *x,
                      bool first, float *c, int64_t ldc);
#define ROWS(n, name, bits, how)                                               \
    AVX512                                                                     \
    static void name##_##n(const lb_dotf32_codes *w, int rows, const float *x, \
                           bool first, float *c, int64_t ldc)                  \
    {                                                                          \
        (void)rows;                                                            \
        dots_rows(bits, how, n, w, x, first, c, ldc);                          \
    }
#define DOTS(name, bits, how)                                                  \
    LB_UP_TO_12(ROWS, name, bits, how)                                         \
    static function *const name[] = LB_TABLE(LB_UP_TO_12, name);

#define SOON   ((way){false, false})
#define LATE   ((way){true, false})
#define HALVES ((way){false, true})

DOTS(dots_8, 8, SOON)
DOTS(dots_8_late, 8, LATE)
DOTS(dots_4, 4, SOON)
DOTS(dots_4_halves, 4, HALVES)
DOTS(dots_2, 2, SOON)
DOTS(dots_2_late, 2, LATE)
DOTS(dots_1, 1, SOON)
DOTS(dots_1_late, 1, LATE)

static function *const *functions_of(const lb_dotf32_codes *w)
{
    const bool late = w->tame && !w->g;
    switch (w->bits) {
    case 8:
        return late ? dots_8_late : dots_8;
    case 4:
        return w->g == lb_dotf32_unit(4) ? dots_4_halves : dots_4;
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

const lb_dotf32 lb_dotf32_avx512 = {
    .name = "dot f32 avx512",
    .mr = MR,
    .lanes = LANES,
    .dots = dots,
};
#endif
