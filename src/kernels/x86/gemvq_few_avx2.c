/* gemvq_few_avx2.c - lines of codes times a number each, for a few rows of x
 * at once: f32, AVX2 and FMA.
 *
 * Codes come in the order of gemvq_cols_avx2.c, two vectors of a group at a
 * time, so that the sums of four rows are eight registers. Eight lines are
 * added to these before they are stored again; a vector that was decoded is
 * multiplied with as many numbers as there are rows.
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx2.h"

enum { C = LB_GEMVQ_COLS, FEW = LB_GEMVQ_FEW };

/* What codes stand for. */
typedef struct {
    levels_f32 l; /* 4 bits */
    __m256 level; /* fewer */
} tables;

AVX2_INLINE tables tables_of(const int bits, const lb_gemvq_table *t)
{
    tables to = {{{_mm256_setzero_si256()}, _mm256_setzero_si256()},
                 _mm256_setzero_ps()};
    if (bits == 4) to.l = load_levels_f32(t);
    if (bits < 4)
        to.level = _mm256_broadcast_ps((const __m128 *)(const void *)t->level);
    return to;
}

/* Which two vectors of a group, of 8 or 4 bits known beforehand. */
typedef struct {
    int u;            /* even */
    __m256i shift[2]; /* fewer: where their fields are */
} place;

AVX2_INLINE void decode_two(const int bits, const tables *t, __m256i v,
                            const place *p, __m256 *w)
{
    if (bits == 8) {
        w[0] = _mm256_cvtepi32_ps(top_byte(v, p->u));
        w[1] = _mm256_cvtepi32_ps(top_byte(v, p->u + 1));
    } else if (bits == 4) {
        const __m256i code =
            p->u >= 4 ? high_half(v, t->l.low) : low_half(v, t->l.low);
        __m256 all[4]; /* of which two are not made */
        look_up_f32(&t->l, code, all);
        w[0] = all[p->u % 4];
        w[1] = all[p->u % 4 + 1];
    } else {
        w[0] =
            _mm256_permutevar_ps(t->level, _mm256_srlv_epi32(v, p->shift[0]));
        w[1] =
            _mm256_permutevar_ps(t->level, _mm256_srlv_epi32(v, p->shift[1]));
    }
}

/* Eight lines and some rows of x. */
typedef struct {
    const uint8_t *codes[C];
    float x[C * FEW];
    int64_t apart; /* from row to row of sums */
} lines;

/* Two vectors of a group, of all lines and rows. */
AVX2_INLINE void add_two(const int bits, const int rows, const lines *l,
                         const tables *t, int64_t at, const place *p, float *y)
{
    __m256 s[FEW][2];
    const float *x = l->x;
    LB_KEEP_POINTER(x); /* one, not one for each number */
    LB_UNROLL
    for (int r = 0; r < rows; r++) {
        s[r][0] = _mm256_load_ps(y + r * l->apart);
        s[r][1] = _mm256_load_ps(y + r * l->apart + 8);
    }
    LB_UNROLL
    for (int i = 0; i < C; i++) {
        __m256 w[2];
        decode_two(bits, t, load_codes(l->codes[i] + at), p, w);
        LB_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m256 xi = _mm256_broadcast_ss(x + FEW * i + r);
            s[r][0] = _mm256_fmadd_ps(w[0], xi, s[r][0]);
            s[r][1] = _mm256_fmadd_ps(w[1], xi, s[r][1]);
        }
    }
    LB_UNROLL
    for (int r = 0; r < rows; r++) {
        _mm256_store_ps(y + r * l->apart, s[r][0]);
        _mm256_store_ps(y + r * l->apart + 8, s[r][1]);
    }
}

/* A group, of which y has the sums. */
AVX2_INLINE void add_group(const int bits, const int rows, const lines *l,
                           const tables *t, int64_t at, float *y)
{
    const __m256i two = _mm256_set1_epi32(2 * bits);
    place p = {0, {_mm256_setzero_si256(), _mm256_set1_epi32(bits)}};
    if (bits < 4) { /* so many that they would not stay in a cache of code */
        for (; p.u < 32 / bits; p.u += 2, y += 16) {
            add_two(bits, rows, l, t, at, &p, y);
            p.shift[0] = _mm256_add_epi32(p.shift[0], two);
            p.shift[1] = _mm256_add_epi32(p.shift[1], two);
        }
        return;
    }
    LB_UNROLL
    for (int u = 0; u < 32 / bits; u += 2)
        add_two(bits, rows, l, t, at, &(place){.u = u}, y + 8 * u);
}

/* The numbers of unit `at`. */
AVX2_INLINE void gather_x(const int rows, const lb_gemvq_cols *c, int64_t at,
                          lines *l)
{
    LB_UNROLL
    for (int i = 0; i < C; i++)
        LB_UNROLL
    for (int r = 0; r < rows; r++)
        l->x[FEW * i + r] = ((const float *)c->x[i])[r * c->x_apart + at];
}

AVX2_INLINE void add_groups(const int bits, const bool scaled, const int rows,
                            const lb_gemvq_cols *c)
{
    const tables t = tables_of(bits, c->table);
    const int64_t groups = c->groups;
    float *y = c->sum;
    lines l = {.apart = c->sum_apart};
    for (int i = 0; i < C; i++)
        l.codes[i] = c->codes[i];
    gather_x(rows, c, 0, &l);
    for (int64_t g = 0; g < groups; g++, y += 256 / bits) {
        if (scaled) gather_x(rows, c, g >> c->shift, &l);
        add_group(bits, rows, &l, &t, 32 * g, y);
    }
}

AVX2_INLINE void few(const int bits, const bool scaled, const lb_gemvq_cols *c,
                     int rows)
{
    if (rows == 2)
        add_groups(bits, scaled, 2, c);
    else if (rows == 3)
        add_groups(bits, scaled, 3, c);
    else
        add_groups(bits, scaled, 4, c);
}

AVX2 void lb_gemvq_few8_avx2(const lb_gemvq_cols *c, int rows)
{
    few(8, false, c, rows);
}
AVX2 void lb_gemvq_few4_avx2(const lb_gemvq_cols *c, int rows)
{
    few(4, true, c, rows);
}
AVX2 void lb_gemvq_few2_avx2(const lb_gemvq_cols *c, int rows)
{
    few(2, false, c, rows);
}
AVX2 void lb_gemvq_few1_avx2(const lb_gemvq_cols *c, int rows)
{
    few(1, false, c, rows);
}
#endif
