/* gemvq_labels_avx2.c - a vector times codes whose numbers, level times scale,
 * are rounded to bf16 or f16: AVX2 and FMA.
 *
 *   8 bits   each product is rounded, between the code and its x
 *   4 bits   the sixteen numbers of a block are rounded, and looked up: of
 *            bf16 two bytes of each, of f16 three
 *
 * Otherwise as gemvq_rows_avx2.c and gemvq_cols_avx2.c.
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx2.h"
#include "kernels/x86/label_avx2.h"

#undef AVX2
#define AVX2 LB_TARGET("avx2,fma,f16c")

enum { R = LB_GEMVQ_ROWS, C = LB_GEMVQ_COLS };

/* ---- 8 bits ------------------------------------------------------------- */

/* Byte b of each lane. */
AVX2_INLINE __m256 code_of(__m256i v, int b)
{
    const __m256i top = b == 3 ? v : _mm256_slli_epi32(v, 24 - 8 * b);
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(top, 24));
}

AVX2_INLINE __m256 scale_of(const lb_dtype to, const float *scale)
{
    return _mm256_set1_ps(lb_label_scale(to, *scale));
}

/* How a product of a code and a scale is rounded: to a dtype, or to bf16 where
 * halves go up, its scale 2^-24 of what it is. */
typedef struct {
    lb_dtype to;
    bool up;
} rounding;

AVX2_INLINE __m256 byte_number(const rounding how, __m256i v, int b, __m256 s)
{
    if (!how.up) return lb_number(how.to, code_of(v, b), s);
    return lb_bf16_up(_mm256_mul_ps(_mm256_cvtepi32_ps(top_byte(v, b)), s));
}

AVX2_INLINE __m256 byte_scale(const rounding how, const float *scale)
{
    return how.up ? _mm256_set1_ps(*scale * 0x1p-24f) : scale_of(how.to, scale);
}

/* n scales, one for each line; a check takes as long as a few groups. */
AVX2_INLINE bool halves_go_up(const lb_dtype to, const float *const *scale,
                              int n, int64_t groups, int shift)
{
    enum { WORTH = 8 };
    if (to != LB_BF16 || groups < WORTH || (groups - 1) >> shift) return false;
    float all[8];
    for (int i = 0; i < 8; i++)
        all[i] = *scale[i % n];
    return lb_label_all_up(_mm256_loadu_ps(all));
}

AVX2_INLINE void rows_of_bytes(const rounding how, const lb_gemvq_rows *r,
                               float *y)
{
    enum { FOLD = 32 }; /* groups: a lane sums 64 products */
    __m128 sum = _mm_setzero_ps();
    for (int64_t g = 0; g < r->groups;) {
        const int64_t end = r->groups - g < FOLD ? r->groups : g + FOLD;
        __m256 a[R][2];
        LB_UNROLL
        for (int i = 0; i < R; i++)
            a[i][0] = a[i][1] = _mm256_setzero_ps();
        for (; g < end; g++) {
            const float *x = (const float *)r->x + 32 * g;
            LB_UNROLL
            for (int i = 0; i < R; i++) {
                const __m256i v = load_codes(r->codes[i] + 32 * g);
                const __m256 s = byte_scale(how, r->scale[i] + (g >> r->shift));
                LB_UNROLL
                for (int b = 0; b < 4; b++)
                    a[i][b % 2] =
                        _mm256_fmadd_ps(byte_number(how, v, b, s),
                                        _mm256_load_ps(x + 8 * b), a[i][b % 2]);
            }
        }
        LB_UNROLL
        for (int i = 0; i < R; i++)
            a[i][0] = _mm256_add_ps(a[i][0], a[i][1]);
        sum = _mm_add_ps(sum, fold4(a[0][0], a[1][0], a[2][0], a[3][0]));
    }
    _mm_storeu_ps(y, sum);
}

/* A group of eight lines. each: a scale for each slot, the same for all. */
AVX2_INLINE void group_of_bytes(const rounding how, const bool each,
                                const lb_gemvq_cols *c, int64_t g, float *y)
{
    __m256 t[4], s[4];
    LB_UNROLL
    for (int b = 0; b < 4; b++) {
        t[b] = _mm256_load_ps(y + 8 * b);
        if (!each) continue;
        s[b] = _mm256_loadu_ps(c->scale[0] + 32 * g + 8 * b);
        s[b] = how.up ? _mm256_mul_ps(s[b], _mm256_set1_ps(0x1p-24f))
                      : lb_label_scales(how.to, s[b]);
    }
    LB_UNROLL
    for (int i = 0; i < C; i++) {
        const __m256i v = load_codes(c->codes[i] + 32 * g);
        const __m256 x = _mm256_broadcast_ss(c->x[i]);
        if (!each)
            s[0] = s[1] = s[2] = s[3] =
                byte_scale(how, c->scale[i] + (g >> c->shift));
        LB_UNROLL
        for (int b = 0; b < 4; b++)
            t[b] = _mm256_fmadd_ps(byte_number(how, v, b, s[b]), x, t[b]);
    }
    LB_UNROLL
    for (int b = 0; b < 4; b++)
        _mm256_store_ps(y + 8 * b, t[b]);
}

AVX2_INLINE void cols_of_bytes(const rounding how, const lb_gemvq_cols *c)
{
    float *y = c->sum;
    for (int64_t g = 0; g < c->groups; g++)
        group_of_bytes(how, false, c, g, y + 32 * g);
}

AVX2_INLINE void cols_of_bytes_each(const lb_dtype to, const lb_gemvq_cols *c)
{
    float *y = c->sum;
    for (int64_t g = 0; g < c->groups; g++)
        if (to == LB_BF16 && c->up[g])
            group_of_bytes((rounding){to, true}, true, c, g, y + 32 * g);
        else
            group_of_bytes((rounding){to, false}, true, c, g, y + 32 * g);
}

AVX2 static void look_bf16(const float *scale, int64_t groups, bool *up)
{
    for (int64_t g = 0; g < groups; g++) {
        up[g] = true;
        for (int b = 0; b < 4 && up[g]; b++)
            up[g] = lb_label_all_up(_mm256_loadu_ps(scale + 32 * g + 8 * b));
    }
}

/* ---- 4 bits ------------------------------------------------------------- */

/* Levels 0..3 and 8..11, then the others. */
typedef struct {
    __m256 first, second;
} levels;

/* The bytes of sixteen numbers, in both halves, from the lowest one that is
 * not always 0. */
typedef struct {
    __m256i plane[3];
} planes;

AVX2_INLINE levels levels_of(const lb_gemvq_table *t)
{
    const __m256 low = _mm256_loadu_ps(t->level);
    const __m256 high = _mm256_loadu_ps(t->level + 8);
    return (levels){_mm256_permute2f128_ps(low, high, 0x20),
                    _mm256_permute2f128_ps(low, high, 0x31)};
}

/* Bytes are gathered in fours within halves, and fours then unpacked. */
AVX2_INLINE planes planes_of(const lb_dtype to, levels l, const float *scale)
{
    const __m256i place = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m256 s = scale_of(to, scale);
    const __m256i a = _mm256_shuffle_epi8(
        _mm256_castps_si256(lb_number(to, l.first, s)), place);
    const __m256i b = _mm256_shuffle_epi8(
        _mm256_castps_si256(lb_number(to, l.second, s)), place);
    const __m256i high = _mm256_unpackhi_epi32(a, b);
    planes p = {{_mm256_permute4x64_epi64(high, 0x88),
                 _mm256_permute4x64_epi64(high, 0xdd)}};
    if (to == LB_F16) {
        p.plane[2] = p.plane[1];
        p.plane[1] = p.plane[0];
        p.plane[0] =
            _mm256_permute4x64_epi64(_mm256_unpacklo_epi32(a, b), 0xdd);
    }
    return p;
}

/* Those of group g: of units of 32 each half has its own. */
AVX2_INLINE planes planes_at(const lb_dtype to, const int unit, levels l,
                             const float *scale, int64_t g, int shift)
{
    if (unit == 64) return planes_of(to, l, scale + (g >> shift));
    planes p = planes_of(to, l, scale + 2 * g);
    const planes q = planes_of(to, l, scale + 2 * g + 1);
    const int bytes = to == LB_F16 ? 3 : 2;
    LB_UNROLL
    for (int b = 0; b < bytes; b++)
        p.plane[b] = _mm256_blend_epi32(p.plane[b], q.plane[b], 0xf0);
    return p;
}

/* As look_up_f32. */
AVX2_INLINE void look_up(const lb_dtype to, const planes *p, __m256i index,
                         __m256 *w)
{
    const int top = to == LB_F16 ? 1 : 0;
    const __m256i zero = _mm256_setzero_si256();
    const __m256i b2 = _mm256_shuffle_epi8(p->plane[top], index);
    const __m256i b3 = _mm256_shuffle_epi8(p->plane[top + 1], index);
    const __m256i high[2] = {_mm256_unpacklo_epi8(b2, b3),
                             _mm256_unpackhi_epi8(b2, b3)};
    __m256i low[2] = {zero, zero};
    if (to == LB_F16) {
        const __m256i b1 = _mm256_shuffle_epi8(p->plane[0], index);
        low[0] = _mm256_unpacklo_epi8(zero, b1);
        low[1] = _mm256_unpackhi_epi8(zero, b1);
    }
    LB_UNROLL
    for (int h = 0; h < 2; h++) {
        w[2 * h] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(low[h], high[h]));
        w[2 * h + 1] =
            _mm256_castsi256_ps(_mm256_unpackhi_epi16(low[h], high[h]));
    }
}

/* Groups [g, end) of line i. */
AVX2_INLINE __m256 part_of_nibbles(const lb_dtype to, const int unit,
                                   const lb_gemvq_rows *r, levels l, int i,
                                   int64_t g, int64_t end)
{
    const __m256i mask = _mm256_set1_epi8(15);
    const float *x = (const float *)r->x + 64 * g;
    int64_t block = g >> r->shift;
    planes p = planes_at(to, unit, l, r->scale[i], g, r->shift);
    __m256 t[4];
    LB_UNROLL
    for (int v = 0; v < 4; v++)
        t[v] = _mm256_setzero_ps();
    for (; g < end; g++, x += 64) {
        const __m256i v = load_codes(r->codes[i] + 32 * g);
        if (g >> r->shift != block) {
            block = g >> r->shift;
            p = planes_at(to, unit, l, r->scale[i], g, r->shift);
        }
        LB_UNROLL
        for (int h = 0; h < 2; h++) {
            __m256 w[4];
            look_up(to, &p, h ? high_half(v, mask) : low_half(v, mask), w);
            LB_UNROLL
            for (int e = 0; e < 4; e++)
                t[e] = _mm256_fmadd_ps(w[e], _mm256_load_ps(x + 32 * h + 8 * e),
                                       t[e]);
        }
    }
    return _mm256_add_ps(_mm256_add_ps(t[0], t[1]), _mm256_add_ps(t[2], t[3]));
}

/* Lines take turns every few groups: tables fill the registers. */
AVX2_INLINE void rows_of_nibbles(const lb_dtype to, const int unit,
                                 const lb_gemvq_rows *r, float *y)
{
    enum { PER = 16 };
    const levels l = levels_of(r->table);
    __m256 a[R];
    for (int i = 0; i < R; i++)
        a[i] = _mm256_setzero_ps();
    for (int64_t g = 0; g < r->groups; g += PER) {
        const int64_t end = r->groups - g < PER ? r->groups : g + PER;
        for (int i = 0; i < R; i++)
            a[i] =
                _mm256_add_ps(a[i], part_of_nibbles(to, unit, r, l, i, g, end));
    }
    _mm_storeu_ps(y, fold4(a[0], a[1], a[2], a[3]));
}

AVX2_INLINE void cols_of_nibbles(const lb_dtype to, const int unit,
                                 const lb_gemvq_cols *c)
{
    const levels l = levels_of(c->table);
    const __m256i mask = _mm256_set1_epi8(15);
    float *y = c->sum;
    for (int64_t g = 0; g < c->groups; g++, y += 64) {
        __m256 t[8];
        LB_UNROLL
        for (int v = 0; v < 8; v++)
            t[v] = _mm256_load_ps(y + 8 * v);
        for (int i = 0; i < C; i++) {
            const __m256i v = load_codes(c->codes[i] + 32 * g);
            const __m256 x = _mm256_broadcast_ss(c->x[i]);
            const planes p = planes_at(to, unit, l, c->scale[i], g, c->shift);
            LB_UNROLL
            for (int h = 0; h < 2; h++) {
                __m256 w[4];
                look_up(to, &p, h ? high_half(v, mask) : low_half(v, mask), w);
                LB_UNROLL
                for (int e = 0; e < 4; e++)
                    t[4 * h + e] = _mm256_fmadd_ps(w[e], x, t[4 * h + e]);
            }
        }
        LB_UNROLL
        for (int v = 0; v < 8; v++)
            _mm256_store_ps(y + 8 * v, t[v]);
    }
}

/* ---- both dtypes -------------------------------------------------------- */

#define KERNELS(to, dtype)                                                     \
    AVX2 static void rows8_##to(const lb_gemvq_rows *r, float *y)              \
    {                                                                          \
        if (halves_go_up(dtype, r->scale, R, r->groups, r->shift))             \
            rows_of_bytes((rounding){dtype, true}, r, y);                      \
        else                                                                   \
            rows_of_bytes((rounding){dtype, false}, r, y);                     \
    }                                                                          \
    AVX2 static void cols8_##to(const lb_gemvq_cols *c)                        \
    {                                                                          \
        if (halves_go_up(dtype, c->scale, C, c->groups, c->shift))             \
            cols_of_bytes((rounding){dtype, true}, c);                         \
        else                                                                   \
            cols_of_bytes((rounding){dtype, false}, c);                        \
    }                                                                          \
    AVX2 static void cols8_each_##to(const lb_gemvq_cols *c)                   \
    {                                                                          \
        cols_of_bytes_each(dtype, c);                                          \
    }                                                                          \
    AVX2 static void rows4_64_##to(const lb_gemvq_rows *r, float *y)           \
    {                                                                          \
        rows_of_nibbles(dtype, 64, r, y);                                      \
    }                                                                          \
    AVX2 static void rows4_32_##to(const lb_gemvq_rows *r, float *y)           \
    {                                                                          \
        rows_of_nibbles(dtype, 32, r, y);                                      \
    }                                                                          \
    AVX2 static void cols4_64_##to(const lb_gemvq_cols *c)                     \
    {                                                                          \
        cols_of_nibbles(dtype, 64, c);                                         \
    }                                                                          \
    AVX2 static void cols4_32_##to(const lb_gemvq_cols *c)                     \
    {                                                                          \
        cols_of_nibbles(dtype, 32, c);                                         \
    }

KERNELS(bf16, LB_BF16)
KERNELS(f16, LB_F16)

#define BYTES(u)                                                               \
    .bits = 8, .kind = LB_GEMVQ_F32, .group = 32, .unit = (u), .factor = 1,    \
    .order = {{8, 4}, {4, 1}}
#define NIBBLES(u)                                                             \
    .bits = 4, .kind = LB_GEMVQ_F32, .group = 64, .unit = (u), .factor = 1,    \
    .order = {{4, 2, 4, 2}, {2, 32, 8, 1}}
/* clang-format off */
#define ROWS(bits, codes, function, dtype)                                     \
    {"gemv q" #bits " f32 avx2", codes, .rounds = (dtype), .rows = (function)}
#define COLS(bits, codes, function, dtype)                                     \
    {"gemv q" #bits " f32 avx2 cols", codes, .rounds = (dtype),                \
     .cols = (function), .look = (dtype) == LB_BF16 ? look_bf16 : NULL}
/* clang-format on */
#define SET(to, dtype)                                                         \
    ROWS(8, BYTES(32), rows8_##to, dtype),                                     \
        COLS(8, BYTES(32), cols8_##to, dtype),                                 \
        COLS(8, BYTES(1), cols8_each_##to, dtype),                             \
        ROWS(4, NIBBLES(64), rows4_64_##to, dtype),                            \
        ROWS(4, NIBBLES(32), rows4_32_##to, dtype),                            \
        COLS(4, NIBBLES(64), cols4_64_##to, dtype),                            \
        COLS(4, NIBBLES(32), cols4_32_##to, dtype)

const lb_gemvq_kernel lb_gemvq_labels_avx2[] = {
    SET(bf16, LB_BF16),
    SET(f16, LB_F16),
    {0},
};
#endif
