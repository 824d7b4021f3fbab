/* dotint_avx2.c - products of whole numbers: rows of x with codes, for AVX2.
 *
 *            w: 1 row     8 accumulators of 8 sums along the depth, and the two
 *          +-------+      vectors that 32 codes become. Vectors of x are read
 *   x: 8   | r[i]  |      where they are multiplied: a step of 32 numbers is 16
 *   rows   +-------+      vpmaddwd and 16 vpaddd in about 8 cycles, in whose
 *                         shadow codes are decoded, as far as that is dark: of
 *                         many rows of x only the first few would need it, so
 *                         for these there are rows of words.
 *
 * Eight sums are folded to one by a tree of horizontal additions that is the
 * same for every element: (0+1) + (2+3), then the two halves.
 */
#include "kernels/dotint.h"

#if defined(__x86_64__)
#include "kernels/x86/dotint_codes_avx2.h"
#include "kernels/x86/dotint_pack.h"

enum { MR = 8, LANES = 16 };

/* Compilers reorder the sums until they spill, hence LB_KEEP, and copy sums
 * about if products are not said to come from memory. */
#if defined(LB_SIMDE)
#define MULTIPLY(to, w, at) ((to) = _mm256_madd_epi16(w, *(at)))
#else
#define MULTIPLY(to, w, at)                                                    \
    __asm__("vpmaddwd %1, %2, %0" : "=x"(to) : "m"(*(at)), "x"(w))
#endif

/* ---- folds --------------------------------------------------------------- */

/* Four sums; each half of the result has one half of each. */
LB_TARGET("avx2,fma")
LB_INLINE __m256i fold_4(const __m256i *r)
{
    return _mm256_hadd_epi32(_mm256_hadd_epi32(r[0], r[1]),
                             _mm256_hadd_epi32(r[2], r[3]));
}

LB_TARGET("avx2,fma")
LB_INLINE __m256 fold_4_fine(const __m256i *r)
{
    const __m256 a = _mm256_cvtepi32_ps(r[0]), b = _mm256_cvtepi32_ps(r[1]);
    const __m256 c = _mm256_cvtepi32_ps(r[2]), d = _mm256_cvtepi32_ps(r[3]);
    return _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
}

/* Half a panel is no sum too large for 32 bits; all of it may be one. */
LB_TARGET("avx2,fma")
LB_INLINE __m256 fold_8(const __m256i *r)
{
    const __m256i s = fold_4(r), t = fold_4(r + 4);
    return _mm256_add_ps(
        _mm256_cvtepi32_ps(_mm256_permute2x128_si256(s, t, 0x20)),
        _mm256_cvtepi32_ps(_mm256_permute2x128_si256(s, t, 0x31)));
}

LB_TARGET("avx2,fma")
LB_INLINE __m256i fold_8_small(const __m256i *r)
{
    const __m256i s = fold_4(r), t = fold_4(r + 4);
    return _mm256_add_epi32(_mm256_permute2x128_si256(s, t, 0x20),
                            _mm256_permute2x128_si256(s, t, 0x31));
}

LB_TARGET("avx2,fma")
LB_INLINE __m256 fold_8_fine(const __m256i *r)
{
    const __m256 s = fold_4_fine(r), t = fold_4_fine(r + 4);
    return _mm256_add_ps(_mm256_permute2f128_ps(s, t, 0x20),
                         _mm256_permute2f128_ps(s, t, 0x31));
}

/* What the rows of x bring to every sum. */
typedef struct {
    __m256 scale;
    __m256i slope, least; /* of a line: the sum times slope, plus this */
} shares;

LB_TARGET("avx2,fma")
LB_INLINE __m256 sums_of(const form f, const __m256i *r, const shares *x)
{
    if (is_fine(f)) return fold_8_fine(r);
    if (!is_line(f)) return fold_8(r);
    const __m256i sum = _mm256_mullo_epi32(fold_8_small(r), x->slope);
    return _mm256_cvtepi32_ps(_mm256_add_epi32(sum, x->least));
}

LB_TARGET("avx2,fma")
LB_INLINE __m256i first_lanes(int n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
}

/* The first n lanes; masked stores are slow. */
LB_TARGET("avx2,fma")
LB_INLINE void store_first(const int n, float *c, __m256 v)
{
    __m128 rest = _mm256_castps256_ps128(v);
    if (n == MR) {
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

LB_TARGET("avx2,fma")
LB_INLINE void put(const int rows, __m256 sum, float ws, __m256 xs, bool first,
                   float *c)
{
    const __m256i some = first_lanes(rows);
    __m256 old = _mm256_setzero_ps();
    if (!first)
        old = rows == MR ? _mm256_loadu_ps(c) : _mm256_maskload_ps(c, some);
    const __m256 v =
        _mm256_fmadd_ps(_mm256_mul_ps(sum, _mm256_set1_ps(ws)), xs, old);
    store_first(rows, c, v);
}

/* ---- rows ---------------------------------------------------------------- */

LB_TARGET("avx2,fma")
LB_INLINE __m256i add_product(__m256i sum, const int16_t *x, __m256i w)
{
    __m256i t;
    MULTIPLY(t, w, (const __m256i *)(const void *)x);
    sum = _mm256_add_epi32(sum, t);
    LB_KEEP(sum);
    return sum;
}

/* One step of a row with all rows of x. */
LB_TARGET("avx2,fma")
LB_INLINE void add_step(const int rows, const int16_t *x, pair w, __m256i *r)
{
    LB_KEEP(w.a);
    LB_KEEP(w.b);
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        r[i] = add_product(r[i], x + i * LANES, w.a);
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        r[i] = add_product(r[i], x + (rows + i) * LANES, w.b);
}

LB_TARGET("avx2,fma")
LB_INLINE void add_codes(const form f, const int rows, const tables *t, row w,
                         int64_t depth, const int16_t *x, __m256i *r)
{
    for (; depth > 0; depth -= group_codes(f)) {
        __m256i v = next_group(f, &w, depth);
        LB_UNROLL
        for (int i = 0; i < fields_of(f); i++) {
            add_step(rows, x, decode(f, t, &v, w.now), r);
            x += 2 * rows * LANES;
        }
    }
}

LB_TARGET("avx2,fma")
LB_INLINE void add_words(const int rows, const void *words, int64_t depth,
                         const int16_t *x, __m256i *r)
{
    const __m256i *w = (const __m256i *)words;
    for (; depth > 0; depth -= LB_DOTINT_STEP, w += 2, x += 2 * rows * LANES)
        add_step(rows, x,
                 (pair){_mm256_load_si256(w), _mm256_load_si256(w + 1)}, r);
}

LB_TARGET("avx2,fma")
LB_INLINE void add_row(const form f, const int rows, const tables *t,
                       const lb_dotint_codes *w, int64_t j, const int16_t *x,
                       __m256i *r)
{
    if (is_words(f))
        add_words(rows, w->codes + j * w->step, w->depth, x, r);
    else
        add_codes(f, rows, t, row_of(f, w, j), w->depth, x, r);
}

LB_TARGET("avx2,fma")
LB_INLINE shares shares_of(const form f, const lb_dotint_codes *w,
                           const lb_dotint_head *head)
{
    shares x = {_mm256_loadu_ps(head->scale), _mm256_setzero_si256(),
                _mm256_setzero_si256()};
    if (!is_line(f)) return x;
    x.slope = _mm256_set1_epi32(slope_of(f, w));
    x.least = _mm256_mullo_epi32(
        _mm256_loadu_si256((const __m256i *)(const void *)head->sum),
        _mm256_set1_epi32(w->least));
    return x;
}

/* It may lie anywhere, so this is never a pointer that C looks at. */
LB_INLINE void fetch(uintptr_t at, int64_t bytes)
{
    for (int64_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)(at + (uintptr_t)b), 0, 2);
}

LB_TARGET("avx2,fma")
LB_INLINE void dots_rows(const form f, const int rows, const lb_dotint_codes *w,
                         const int16_t *x, const lb_dotint_head *head,
                         bool first, float *c, int64_t ldc)
{
    const tables t = tables_of(f, w);
    const shares share = shares_of(f, w, head);
    const int64_t bytes = w->depth * group_bytes(f) / group_codes(f);
    for (int64_t j = 0; j < w->n; j++) {
        if (w->ahead)
            fetch((uintptr_t)(w->codes + j * w->step) + w->ahead, bytes);
        __m256i r[MR];
        LB_UNROLL
        for (int i = 0; i < MR; i++) {
            r[i] = _mm256_setzero_si256();
            if (i < rows) LB_KEEP(r[i]);
        }
        add_row(f, rows, &t, w, j, x, r);
        put(rows, sums_of(f, r, &share), w->ws[j * w->ws_step], share.scale,
            first, c + j * ldc);
    }
}

/* For each form a table of functions, one for each number of rows. */
typedef void function(const lb_dotint_codes *w, int rows, const int16_t *x,
                      const lb_dotint_head *head, bool first, float *c,
                      int64_t ldc);
#define ROWS(n, name, f)                                                       \
    LB_TARGET("avx2,fma")                                                      \
    static void name##_##n(const lb_dotint_codes *w, int rows,                 \
                           const int16_t *x, const lb_dotint_head *head,       \
                           bool first, float *c, int64_t ldc)                  \
    {                                                                          \
        (void)rows;                                                            \
        dots_rows(f, n, w, x, head, first, c, ldc);                            \
    }
#define DOTS(name, f)                                                          \
    LB_UP_TO_8(ROWS, name, f)                                                  \
    static function *const name[] = LB_TABLE(LB_UP_TO_8, name);

DOTS(dots_bytes, FORM_BYTES)
DOTS(dots_field, FORM_FIELD)
DOTS(dots_fields_4, FORM_FIELDS_4)
DOTS(dots_fields_2, FORM_FIELDS_2)
DOTS(dots_bits, FORM_BITS)
DOTS(dots_words, FORM_WORDS)
DOTS(dots_fine_bytes, FORM_FINE_BYTES)
DOTS(dots_fine_field, FORM_FINE_FIELD)
DOTS(dots_fine_fields, FORM_FINE_FIELDS)
DOTS(dots_fine_words, FORM_FINE_WORDS)

static void dots(const lb_dotint_codes *w, int rows, const int16_t *x,
                 const lb_dotint_head *head, bool first, float *c, int64_t ldc)
{
    static function *const *const by_form[] = {
        [FORM_BYTES] = dots_bytes,
        [FORM_FIELD] = dots_field,
        [FORM_FIELDS_4] = dots_fields_4,
        [FORM_FIELDS_2] = dots_fields_2,
        [FORM_BITS] = dots_bits,
        [FORM_WORDS] = dots_words,
        [FORM_FINE_BYTES] = dots_fine_bytes,
        [FORM_FINE_FIELD] = dots_fine_field,
        [FORM_FINE_FIELDS] = dots_fine_fields,
        [FORM_FINE_WORDS] = dots_fine_words,
    };
    by_form[form_of(w)][LB_NTH(rows)](w, rows, x, head, first, c, ldc);
}

const lb_dotint lb_dotint_avx2 = {
    .name = "dot i16 avx2",
    .mr = MR,
    .nr = 1,
    .lanes = LANES,
    .kc = LB_DOTINT_DEEP,
    .largest = lb_largest_avx2,
    .round = lb_round_row_avx2,
    .unpack = lb_unpack_avx2,
    .turn = lb_turn_lines_avx2,
    .ratios = lb_ratios_avx2,
    .pack = lb_pack_avx2,
    .dots = dots,
};
#endif
