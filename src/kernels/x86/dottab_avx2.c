/* dottab_avx2.c - products with single bits by tables, for AVX2.
 *
 * A nibble of 32 rows of w is the index of two shuffles, one in each half of
 * the table. What they find are 32 bytes b; sums need 16 bits:
 *
 *   all += b         as 16 numbers: even bytes, and 256 times the odd ones
 *   odd += b >> 8
 *
 * Both may only be known modulo 2^16, which is all there is: in the end the
 * even ones are all - 256 * odd. So 128 multiplications take 2 shuffles, 2
 * shifts and 4 additions, in about 2 cycles.
 */
#include "kernels/dottab.h"

#if defined(__x86_64__)
#include "kernels/x86/dottab_avx2.h"

enum { MR = LB_DOTTAB_MR, COLUMNS = LB_DOTTAB_COLUMNS, EACH = 8 };

/* ---- tables -------------------------------------------------------------- */

/* The sum of the lanes of each half, in all of them. */
LB_TARGET("avx2")
LB_INLINE __m256i sum_halves(__m256i v)
{
    v = _mm256_add_epi32(v, _mm256_shuffle_epi32(v, 0xb1));
    return _mm256_add_epi32(v, _mm256_shuffle_epi32(v, 0x4e));
}

/* Bits 0 and 1, or 2 and 3, of entries 0 to 3 and 8 to 11, or 4 to 7 and 12 to
 * 15: as pairs that numbers are multiplied with. Packing brings these in order.
 */
typedef struct {
    __m256i low[2], high[2];
} pairs;

LB_TARGET("avx2")
LB_INLINE pairs all_pairs(void)
{
    const __m256i low =
        _mm256_setr_epi32(0, 1, 0x10000, 0x10001, 0, 1, 0x10000, 0x10001);
    const __m128i none = _mm_setzero_si128(), second = _mm_set1_epi32(0x10000);
    return (pairs){
        {low, low},
        {_mm256_set_m128i(second, none),
         _mm256_set_m128i(_mm_set1_epi32(0x10001), _mm_set1_epi32(1))},
    };
}

LB_TARGET("avx2")
static void tables(int64_t n, const float *x, float factor, bool high_first,
                   uint8_t *to, int64_t apart, int32_t *sum, int32_t *low)
{
    const pairs p = all_pairs();
    const __m256i down = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    const __m256i up = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i order = high_first ? down : up;
    const __m256 f = _mm256_set1_ps(factor);
    __m256i sums = _mm256_setzero_si256(), lows = sums;
    for (; n > 0; n -= EACH, x += EACH, to += 2 * apart) {
        const __m256i v = _mm256_permutevar8x32_epi32(
            _mm256_cvtps_epi32(_mm256_mul_ps(lb_dottab_load(n, x), f)), order);
        const __m256i less = _mm256_min_epi32(v, _mm256_setzero_si256());
        const __m256i each = sum_halves(less), few = _mm256_packs_epi32(v, v);
        const __m256i up_by = _mm256_sub_epi32(_mm256_setzero_si256(), each);
        lb_dottab_put_table(_mm256_permute4x64_epi64(few, 0x44), p.low, p.high,
                            _mm256_permute4x64_epi64(up_by, 0x44), to);
        lb_dottab_put_table(_mm256_permute4x64_epi64(few, 0xee), p.low, p.high,
                            _mm256_permute4x64_epi64(up_by, 0xee), to + apart);
        sums = _mm256_add_epi32(sums, v);
        lows = _mm256_add_epi32(lows, each);
    }
    sums = sum_halves(sums);
    *sum = _mm256_extract_epi32(sums, 0) + _mm256_extract_epi32(sums, 4);
    *low = _mm256_extract_epi32(lows, 0) + _mm256_extract_epi32(lows, 4);
}

/* ---- dots ---------------------------------------------------------------- */

/* Sums of bytes: of the lower bytes of tables and of the higher ones. */
typedef struct {
    __m256i all[2], odd[2];
} sums;

LB_TARGET("avx2")
LB_INLINE void look_up(__m256i code, const uint8_t *table, sums *s)
{
    LB_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m256i b =
            _mm256_shuffle_epi8(lb_dottab_half(table + 16 * h), code);
        s->all[h] = _mm256_add_epi16(s->all[h], b);
        LB_KEEP(s->all[h]);
        s->odd[h] = _mm256_add_epi16(s->odd[h], _mm256_srli_epi16(b, 8));
        LB_KEEP(s->odd[h]);
    }
}

/* A line of what is asked for with every other byte: all of them at once would
 * wait for each other. */
LB_TARGET("avx2")
LB_INLINE void add_bytes(const int rows, int64_t bytes, const uint8_t *table,
                         const uint8_t *codes, lb_dottab_ahead ahead, sums *s)
{
    const __m256i mask = _mm256_set1_epi8(15);
    for (; bytes > 0; bytes--, codes += COLUMNS) {
        if (ahead.lines > 0 && bytes % 2 == 0) {
            __builtin_prefetch((const void *)ahead.at);
            ahead.at += (uintptr_t)ahead.step;
            ahead.lines--;
        }
        const __m256i v =
            _mm256_load_si256((const __m256i *)(const void *)codes);
        LB_UNROLL
        for (int nibble = 0; nibble < 2; nibble++) {
            __m256i code = nibble ? _mm256_srli_epi16(v, 4) : v;
            code = _mm256_and_si256(code, mask);
            LB_KEEP(code);
            LB_UNROLL
            for (int i = 0; i < rows; i++, table += LB_DOTTAB_TABLE)
                look_up(code, table, &s[i]);
        }
    }
}

/* Columns 8q to 8q + 7 of 32, in order. */
LB_TARGET("avx2")
LB_INLINE void sort_columns(const sums *s, __m256 *to)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i part[4]; /* columns 4q and 16 + 4q on */
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        part[q] = zero;
    LB_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m256i even =
            _mm256_sub_epi16(s->all[h], _mm256_slli_epi16(s->odd[h], 8));
        const __m256i a = _mm256_unpacklo_epi16(even, s->odd[h]);
        const __m256i b = _mm256_unpackhi_epi16(even, s->odd[h]);
        const __m256i more[4] = {
            _mm256_unpacklo_epi16(a, zero), _mm256_unpackhi_epi16(a, zero),
            _mm256_unpacklo_epi16(b, zero), _mm256_unpackhi_epi16(b, zero)};
        LB_UNROLL
        for (int q = 0; q < 4; q++)
            part[q] =
                _mm256_add_epi32(part[q], _mm256_slli_epi32(more[q], 8 * h));
    }
    LB_UNROLL
    for (int q = 0; q < 2; q++) {
        const __m256i a = part[2 * q], b = part[2 * q + 1];
        to[q] = _mm256_cvtepi32_ps(_mm256_permute2x128_si256(a, b, 0x20));
        to[q + 2] = _mm256_cvtepi32_ps(_mm256_permute2x128_si256(a, b, 0x31));
    }
}

LB_TARGET("avx2,fma")
LB_INLINE void dots_rows(const int rows, int64_t bytes, const uint8_t *table,
                         const uint8_t *codes, float slope,
                         const lb_dottab_head *head, const float *ws,
                         bool first, lb_dottab_ahead ahead, float *c,
                         int64_t ldc)
{
    sums s[MR];
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        LB_UNROLL
    for (int h = 0; h < 2; h++)
        s[i].all[h] = s[i].odd[h] = _mm256_setzero_si256();
    add_bytes(rows, bytes, table, codes, ahead, s);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        __m256 t[4];
        sort_columns(&s[i], t);
        lb_dottab_put_columns(t, slope, head->base[i], head->scale[i], ws,
                              first, c + i * ldc);
    }
}

LB_TARGET("avx2,fma")
static void dots(int rows, int64_t bytes, const uint8_t *table,
                 const uint8_t *codes, float slope, const lb_dottab_head *head,
                 const float *ws, bool first, lb_dottab_ahead ahead, float *c,
                 int64_t ldc)
{
    if (rows == 1)
        dots_rows(1, bytes, table, codes, slope, head, ws, first, ahead, c,
                  ldc);
    else
        dots_rows(2, bytes, table, codes, slope, head, ws, first, ahead, c,
                  ldc);
}

const lb_dottab lb_dottab_avx2 = {
    .name = "dot tables avx2",
    .tables = tables,
    .dots = dots,
};
#endif
