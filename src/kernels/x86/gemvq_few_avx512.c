/* gemvq_few_avx512.c - lines of codes times a number each, for a few rows of x
 * at once: f32, AVX-512.
 *
 * Codes come in the order of gemvq_cols_avx512.c, four vectors of a group at a
 * time, so that the sums of four rows are sixteen registers. Eight lines are
 * added to these before they are stored again; a vector that was decoded is
 * multiplied with as many numbers as there are rows.
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx512.h"

enum { C = LB_GEMVQ_COLS, FEW = LB_GEMVQ_FEW, TOGETHER = 4 };

/* Eight lines, and what each row of x has for them. */
typedef struct {
    const uint8_t *codes[C];
    __m512 x[C][FEW];
    int64_t ahead, apart; /* from row to row of sums */
} lines;

/* Vector u of a group. */
AVX512_INLINE __m512 decode_one(const int bits, __m512 level,
                                const uint8_t *codes, __m512i v, int u)
{
    if (bits == 8) return to_f32(_mm512_cvtepi8_epi32(load_16(codes + 16 * u)));
    const __m512i code = bits == 4
                             ? _mm512_srli_epi32(v, (unsigned)(4 * u))
                             : _mm512_srl_epi32(v, _mm_cvtsi32_si128(bits * u));
    return _mm512_permutexvar_ps(code, level);
}

/* Four vectors of group g, of all lines and rows. */
AVX512_INLINE void add_some(const int bits, const int rows, const lines *l,
                            __m512 level, int64_t g, int u, float *y)
{
    __m512 s[FEW][TOGETHER];
    LB_UNROLL
    for (int r = 0; r < rows; r++)
        LB_UNROLL
    for (int e = 0; e < TOGETHER; e++)
        s[r][e] = _mm512_load_ps(y + r * l->apart + 16 * e);
    LB_UNROLL
    for (int i = 0; i < C; i++) {
        const uint8_t *codes = l->codes[i] + 64 * g;
        __m512i v = _mm512_setzero_si512();
        if (bits < 8) v = _mm512_loadu_si512((const void *)codes);
        if (u == 0) _mm_prefetch((const char *)codes + l->ahead, _MM_HINT_T0);
        LB_UNROLL
        for (int e = 0; e < TOGETHER; e++) {
            const __m512 w = decode_one(bits, level, codes, v, u + e);
            LB_UNROLL
            for (int r = 0; r < rows; r++)
                s[r][e] = _mm512_fmadd_ps(w, l->x[i][r], s[r][e]);
        }
    }
    LB_UNROLL
    for (int r = 0; r < rows; r++)
        LB_UNROLL
    for (int e = 0; e < TOGETHER; e++)
        _mm512_store_ps(y + r * l->apart + 16 * e, s[r][e]);
}

/* The numbers for group g, of which it has so many units. */
AVX512_INLINE void gather_x(const int rows, const lb_gemvq_cols *c, int units,
                            int64_t at, lines *l)
{
    LB_UNROLL
    for (int i = 0; i < C; i++)
        LB_UNROLL
    for (int r = 0; r < rows; r++)
        l->x[i][r] =
            spread_scales((const float *)c->x[i] + r * c->x_apart + at, units);
}

/* units: numbers of x for a group; 0: one for all of a line. */
AVX512_INLINE void add_groups(const int bits, int units, const int rows,
                              const lb_gemvq_cols *c)
{
    const __m512 level = _mm512_loadu_ps(c->table->level);
    const int64_t groups = c->groups;
    const int vectors = bits == 8 ? 4 : 32 / bits;
    float *y = c->sum;
    lines l = {.apart = c->sum_apart, .ahead = c->ahead};
    for (int i = 0; i < C; i++)
        l.codes[i] = c->codes[i];
    if (!units) gather_x(rows, c, 1, 0, &l);
    for (int64_t g = 0; g < groups; g++) {
        if (units)
            gather_x(rows, c, units, units == 1 ? g >> c->shift : g * units,
                     &l);
        if (bits == 4) { /* of others, code would not stay in a cache */
            add_some(bits, rows, &l, level, g, 0, y);
            add_some(bits, rows, &l, level, g, TOGETHER, y + 16 * TOGETHER);
            y += 32 * TOGETHER;
            continue;
        }
        for (int u = 0; u < vectors; u += TOGETHER, y += 16 * TOGETHER)
            add_some(bits, rows, &l, level, g, u, y);
    }
}

AVX512_INLINE void few(const int bits, int units, const lb_gemvq_cols *c,
                       int rows)
{
    if (rows == 2)
        add_groups(bits, units, 2, c);
    else if (rows == 3)
        add_groups(bits, units, 3, c);
    else
        add_groups(bits, units, 4, c);
}

AVX512 void lb_gemvq_few8_avx512(const lb_gemvq_cols *c, int rows)
{
    few(8, 0, c, rows);
}
AVX512 void lb_gemvq_few4_128_avx512(const lb_gemvq_cols *c, int rows)
{
    few(4, 1, c, rows);
}
AVX512 void lb_gemvq_few4_64_avx512(const lb_gemvq_cols *c, int rows)
{
    few(4, 2, c, rows);
}
AVX512 void lb_gemvq_few2_avx512(const lb_gemvq_cols *c, int rows)
{
    few(2, 0, c, rows);
}
AVX512 void lb_gemvq_few1_avx512(const lb_gemvq_cols *c, int rows)
{
    few(1, 0, c, rows);
}
#endif
