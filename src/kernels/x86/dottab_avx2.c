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
#include "kernels/x86/intrin.h"

enum { MR = LB_DOTTAB_MR, COLUMNS = LB_DOTTAB_COLUMNS, EACH = 8 };

/* ---- tables -------------------------------------------------------------- */

LB_TARGET("avx2")
LB_INLINE __m256i load_some(int64_t n, const float *x, __m256 factor)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i some = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
    const __m256 v =
        n >= EACH ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, some);
    return _mm256_cvtps_epi32(_mm256_mul_ps(v, factor));
}

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

/* One table: both halves of x have its numbers, of 16 bits, twice. */
LB_TARGET("avx2")
LB_INLINE void put_table(__m256i x, __m256i low, const pairs *p, uint8_t *to)
{
    const __m256i a = _mm256_shuffle_epi32(x, 0x00);
    const __m256i b = _mm256_shuffle_epi32(x, 0x55);
    __m256i t[2];
    LB_UNROLL
    for (int h = 0; h < 2; h++)
        t[h] =
            _mm256_sub_epi32(_mm256_add_epi32(_mm256_madd_epi16(a, p->low[h]),
                                              _mm256_madd_epi16(b, p->high[h])),
                             low);
    const __m256i all = _mm256_packus_epi32(t[0], t[1]);
    const __m256i bytes =
        _mm256_packus_epi16(_mm256_and_si256(all, _mm256_set1_epi16(255)),
                            _mm256_srli_epi16(all, 8));
    _mm256_store_si256((__m256i *)(void *)to,
                       _mm256_permute4x64_epi64(bytes, 0xd8));
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
        const __m256i v =
            _mm256_permutevar8x32_epi32(load_some(n, x, f), order);
        const __m256i less = _mm256_min_epi32(v, _mm256_setzero_si256());
        const __m256i each = sum_halves(less), few = _mm256_packs_epi32(v, v);
        put_table(_mm256_permute4x64_epi64(few, 0x44),
                  _mm256_permute4x64_epi64(each, 0x44), &p, to);
        put_table(_mm256_permute4x64_epi64(few, 0xee),
                  _mm256_permute4x64_epi64(each, 0xee), &p, to + apart);
        sums = _mm256_add_epi32(sums, v);
        lows = _mm256_add_epi32(lows, each);
    }
    sums = sum_halves(sums);
    *sum = _mm256_extract_epi32(sums, 0) + _mm256_extract_epi32(sums, 4);
    *low = _mm256_extract_epi32(lows, 0) + _mm256_extract_epi32(lows, 4);
}

/* ---- codes --------------------------------------------------------------- */

/* Rows r and 16 + r. */
LB_TARGET("avx2")
LB_INLINE __m256i load_rows(const uint8_t *from, int64_t step, int r)
{
    const __m128i *low = (const __m128i *)(const void *)(from + r * step);
    const __m128i *high =
        (const __m128i *)(const void *)(from + (r + 16) * step);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                   _mm_loadu_si128(high), 1);
}

/* One round of a 16x16 transpose in each half: lines l and l + 8 are
 * interleaved. After four rounds line p has byte p of every line. */
LB_TARGET("avx2")
LB_INLINE void interleave(const __m256i *from, __m256i *to)
{
    LB_UNROLL
    for (int l = 0; l < 8; l++) {
        to[2 * l] = _mm256_unpacklo_epi8(from[l], from[l + 8]);
        to[2 * l + 1] = _mm256_unpackhi_epi8(from[l], from[l + 8]);
    }
}

/* It may lie anywhere, so this is never a pointer that C looks at. */
LB_INLINE void fetch_rows(const uint8_t *from, int64_t step, uintptr_t ahead)
{
    for (int r = 0; r < COLUMNS; r++)
        __builtin_prefetch(
            (const void *)((uintptr_t)from + (uintptr_t)(r * step) + ahead));
}

LB_TARGET("avx2")
static void turn(const uint8_t *from, int64_t step, int64_t bytes,
                 uintptr_t ahead, uint8_t *to)
{
    enum { LINES = LB_DOTTAB_BYTES };
    for (int64_t b = 0; b < bytes; b += LINES, to += LINES * COLUMNS) {
        __m256i x[LINES], y[LINES];
        if (ahead && b % 64 == 0) fetch_rows(from + b, step, ahead);
        LB_UNROLL
        for (int r = 0; r < LINES; r++)
            x[r] = load_rows(from + b, step, r);
        interleave(x, y);
        interleave(y, x);
        interleave(x, y);
        interleave(y, x);
        LB_UNROLL
        for (int r = 0; r < LINES; r++)
            _mm256_store_si256((__m256i *)(void *)(to + r * COLUMNS), x[r]);
    }
}

/* Swaps the places of a that are `shift` above the mask's with those of b. */
LB_TARGET("avx2")
LB_INLINE void swap_bits(__m256i *a, __m256i *b, __m256i mask, const int shift)
{
    const __m256i t = _mm256_and_si256(
        _mm256_xor_si256(_mm256_srli_epi16(*a, shift), *b), mask);
    *b = _mm256_xor_si256(*b, t);
    *a = _mm256_xor_si256(*a, _mm256_slli_epi16(t, shift));
}

/* A transpose of 8x8 bits in each byte. */
LB_TARGET("avx2")
LB_INLINE void turn_bits(__m256i *x)
{
    LB_UNROLL
    for (int l = 0; l < 4; l++)
        swap_bits(&x[l], &x[l + 4], _mm256_set1_epi8(0x0f), 4);
    LB_UNROLL
    for (int l = 0; l < 8; l++)
        if (!(l & 2)) swap_bits(&x[l], &x[l + 2], _mm256_set1_epi8(0x33), 2);
    LB_UNROLL
    for (int l = 0; l < 8; l += 2)
        swap_bits(&x[l], &x[l + 1], _mm256_set1_epi8(0x55), 1);
}

LB_TARGET("avx2")
static void across(const uint8_t *from, int64_t step, int64_t bytes,
                   int64_t wide, uint8_t *to, int64_t apart)
{
    enum { LINES = LB_DOTTAB_LINES, EACH_LINE = LB_DOTTAB_ACROSS, AHEAD = 4 };
    for (int64_t b = 0; b < bytes; b++, from += LINES * step, to += COLUMNS) {
        const uint8_t *line = from;
        uint8_t *at = to;
        for (int64_t w = 0; w < wide; w++, at += LINES * apart) {
            __m256i x[LINES];
            LB_UNROLL
            for (int l = 0; l < LINES; l++) {
                const uint8_t *const one = line + l * step;
                x[l] = _mm256_loadu_si256((const __m256i *)(const void *)one);
                if (w % 2 == 0)
                    __builtin_prefetch(
                        (const void *)((uintptr_t)one +
                                       (uintptr_t)(AHEAD * LINES * step)));
            }
            line += EACH_LINE;
            turn_bits(x);
            LB_UNROLL
            for (int l = 0; l < LINES; l++)
                _mm256_store_si256((__m256i *)(void *)(at + l * apart), x[l]);
        }
    }
}

/* ---- dots ---------------------------------------------------------------- */

/* Sums of bytes: of the lower bytes of tables and of the higher ones. */
typedef struct {
    __m256i all[2], odd[2];
} sums;

LB_TARGET("avx2")
LB_INLINE __m256i half_table(const uint8_t *at)
{
    return _mm256_broadcastsi128_si256(
        _mm_load_si128((const __m128i *)(const void *)at));
}

LB_TARGET("avx2")
LB_INLINE void look_up(__m256i code, const uint8_t *table, sums *s)
{
    LB_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m256i b = _mm256_shuffle_epi8(half_table(table + 16 * h), code);
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
LB_INLINE void put_columns(const sums *s, float slope, float base, float scale,
                           const float *ws, bool first, float *c)
{
    __m256 t[4];
    sort_columns(s, t);
    LB_UNROLL
    for (int q = 0; q < 4; q++) {
        const __m256 sum =
            _mm256_fmadd_ps(t[q], _mm256_set1_ps(slope), _mm256_set1_ps(base));
        const __m256 old =
            first ? _mm256_setzero_ps() : _mm256_loadu_ps(c + 8 * q);
        const __m256 w = _mm256_mul_ps(sum, _mm256_loadu_ps(ws + 8 * q));
        _mm256_storeu_ps(c + 8 * q,
                         _mm256_fmadd_ps(w, _mm256_set1_ps(scale), old));
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
    for (int i = 0; i < rows; i++)
        put_columns(&s[i], slope, head->base[i], head->scale[i], ws, first,
                    c + i * ldc);
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
    .turn = turn,
    .across = across,
    .dots = dots,
};
#endif
