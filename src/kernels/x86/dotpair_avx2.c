/* dotpair_avx2.c - products with codes of one or two bits by tables of which
 * half is left out, for AVX2.
 *
 * 32 indices of 16 rows of w find 32 bytes in half a table, lower or higher
 * bytes of sums. vpmaddubsw multiplies them with their signs and adds the two
 * of each row: a shuffle, a multiplication and an addition, and twice that for
 * 64 products of trits or 128 of signs. On Zen 3 these have ports of their own,
 * but for the addition, which takes any: 1.6 of at best 1.5 cycles.
 */
#include "kernels/dotpair.h"

#if defined(__x86_64__)
#include "kernels/x86/dotpair_avx2.h"

enum {
    MR = LB_DOTPAIR_MR,
    COLUMNS = LB_DOTPAIR_COLUMNS,
    EACH = LB_DOTPAIR_EACH
};

/* ---- tables -------------------------------------------------------------- */

/* Magnitudes as bits, which order as they do, NaN on top. */
LB_TARGET("avx2")
LB_INLINE float largest_of(__m256i v)
{
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v),
                              _mm256_extracti128_si256(v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    return _mm_cvtss_f32(_mm_castsi128_ps(m));
}

LB_TARGET("avx2")
LB_INLINE float largest(const int group, int64_t n, const float *x, float *lane)
{
    __m256i most = _mm256_setzero_si256(), sums = most;
    for (; n > 0; n -= EACH, x += EACH) {
        const __m256 v =
            _mm256_andnot_ps(_mm256_set1_ps(-0.0f), lb_dotpair_load(n, x));
        __m256 s = _mm256_add_ps(v, _mm256_permute_ps(v, 0xb1));
        if (group == 4) s = _mm256_add_ps(s, _mm256_permute_ps(s, 0x4e));
        most = _mm256_max_epi32(most, _mm256_castps_si256(v));
        sums = _mm256_max_epi32(sums, _mm256_castps_si256(s));
    }
    *lane = largest_of(sums);
    return largest_of(most);
}

LB_TARGET("avx2")
static float largest_of_4(int64_t n, const float *x, float *lane)
{
    return largest(4, n, x, lane);
}

LB_TARGET("avx2")
static float largest_of_2(int64_t n, const float *x, float *lane)
{
    return largest(2, n, x, lane);
}

LB_TARGET("avx2")
LB_INLINE int32_t sum_of(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v),
                              _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e)));
}

/* Entries 0 to 3 or 4 to 7 of four numbers: what the first two and the last two
 * are multiplied with. */
typedef struct {
    __m256i first[2], last[2];
} factors;

/* Two factors of 16 bits. */
LB_INLINE int two(int a, int b)
{
    return (int)((unsigned)a & 0xffff) | (int)((unsigned)b << 16);
}

LB_TARGET("avx2")
LB_INLINE __m256i four(int a, int b, int c, int d)
{
    return _mm256_setr_epi32(a, b, c, d, a, b, c, d);
}

/* Signs: of entry e number i is negative if bit i of it is not set, the last
 * never. */
LB_TARGET("avx2")
LB_INLINE factors factors_of(lb_dotpair_kind kind)
{
    const __m256i none = _mm256_setzero_si256();
    const __m256i signs = four(two(-1, -1), two(1, -1), two(-1, 1), two(1, 1));
    const __m256i trits = four(two(1, 0), two(0, 1), two(1, 1), two(1, -1));
    if (kind != LB_DOTPAIR_SIGNS)
        return (factors){{trits, none}, {none, trits}};
    return (factors){
        {signs, signs},
        {_mm256_set1_epi32(two(-1, 1)), _mm256_set1_epi32(two(1, 1))},
    };
}

/* Where a table takes its numbers from. */
LB_TARGET("avx2")
LB_INLINE __m256i order_of(lb_dotpair_kind kind, bool high_first)
{
    if (!high_first) return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return kind == LB_DOTPAIR_SIGNS ? _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0)
                                    : _mm256_setr_epi32(3, 2, 1, 0, 7, 6, 5, 4);
}

LB_TARGET("avx2")
static int32_t tables(lb_dotpair_kind kind, int64_t n, const float *x,
                      float factor, bool high_first, uint8_t *to, int64_t apart)
{
    const factors f = factors_of(kind);
    const __m256i order = order_of(kind, high_first);
    const __m256 by = _mm256_set1_ps(factor);
    __m256i sums = _mm256_setzero_si256();
    for (; n > 0; n -= EACH, x += EACH, to += apart) {
        const __m256i v =
            _mm256_cvtps_epi32(_mm256_mul_ps(lb_dotpair_load(n, x), by));
        const __m256i sorted = _mm256_permutevar8x32_epi32(v, order);
        lb_dotpair_put_table(_mm256_packs_epi32(sorted, sorted), f.first,
                             f.last, _mm256_set1_epi32(LB_DOTPAIR_OFFSET), to);
        sums = _mm256_add_epi32(sums, v);
    }
    return sum_of(sums);
}

/* ---- codes --------------------------------------------------------------- */

/* By half a byte of codes: the entry of a table of four or two numbers, and its
 * sign. A fourth value of two bits would be the third. */
LB_TARGET("avx2")
LB_INLINE void halves_of(lb_dotpair_kind kind, __m256i *entry, __m256i *sign)
{
    static const int8_t entries[2][16] = {
        {7, 6, 5, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7},
        {2, 1, 3, 3, 0, 0, 0, 0, 3, 1, 2, 2, 3, 1, 2, 2},
    };
    static const int8_t signs[2][16] = {
        {-1, -1, -1, -1, -1, -1, -1, -1, 1, 1, 1, 1, 1, 1, 1, 1},
        {-1, -1, 1, 1, -1, 0, 1, 1, -1, 1, 1, 1, -1, 1, 1, 1},
    };
    *entry = _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)(const void *)entries[kind]));
    *sign = _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)(const void *)signs[kind]));
}

/* Where in a table the entries of the two halves of a byte begin. */
LB_TARGET("avx2")
LB_INLINE __m256i place_of(lb_dotpair_kind kind, int64_t byte)
{
    if (kind == LB_DOTPAIR_SIGNS) return _mm256_set1_epi16(0x0800);
    return _mm256_set1_epi16(byte % 2 ? 0x0c08 : 0x0400);
}

LB_TARGET("avx2")
static void make_index(lb_dotpair_kind kind, int64_t bytes,
                       const uint8_t *turned, uint8_t *to)
{
    const __m256i low = _mm256_set1_epi8(15), one = _mm256_set1_epi8(1);
    const __m256i place[2] = {place_of(kind, 0), place_of(kind, 1)};
    __m256i entry, sign,
        sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    halves_of(kind, &entry, &sign);
    uint8_t *const head = to;
    to += LB_DOTPAIR_HEAD;
    for (int64_t b = 0; b < bytes; b++, to += LB_DOTPAIR_BYTE) {
        const __m256i v = _mm256_load_si256(
            (const __m256i *)(const void *)(turned + b * COLUMNS));
        const __m256i halves[2] = {
            _mm256_and_si256(v, low),
            _mm256_and_si256(_mm256_srli_epi16(v, 4), low)};
        const __m256i both[2] = {_mm256_unpacklo_epi8(halves[0], halves[1]),
                                 _mm256_unpackhi_epi8(halves[0], halves[1])};
        LB_UNROLL
        for (int h = 0; h < 2; h++) {
            __m256i *const at = (__m256i *)(void *)(to + 64 * h);
            const __m256i s = _mm256_shuffle_epi8(sign, both[h]);
            _mm256_store_si256(
                at, _mm256_or_si256(_mm256_shuffle_epi8(entry, both[h]),
                                    place[b % 2]));
            _mm256_store_si256(at + 1, s);
            sum[h] = _mm256_add_epi16(sum[h], _mm256_maddubs_epi16(one, s));
        }
    }
    LB_UNROLL
    for (int h = 0; h < 2; h++)
        _mm256_store_si256((__m256i *)(void *)(head + 32 * h),
                           _mm256_mullo_epi16(sum[h], _mm256_set1_epi16(-128)));
}

/* ---- dots ---------------------------------------------------------------- */

/* Of 16 rows of w, two times: of the lower bytes of sums and of the higher. */
typedef struct {
    __m256i part[2][2];
} sums;

LB_TARGET("avx2")
LB_INLINE __m256i load(const uint8_t *at)
{
    return _mm256_load_si256((const __m256i *)(const void *)at);
}

/* The addition by hand: compilers copy the sum otherwise. */
LB_TARGET("avx2")
LB_INLINE __m256i look_up(__m256i sum, __m256i table, __m256i index,
                          __m256i sign)
{
#if defined(LB_SIMDE)
    return _mm256_add_epi16(
        sum, _mm256_maddubs_epi16(_mm256_shuffle_epi8(table, index), sign));
#else
    __m256i found;
    __asm__("vpshufb %3, %2, %1\n\t"
            "vpmaddubsw %4, %1, %1\n\t"
            "vpaddw %1, %0, %0"
            : "+x"(sum), "=&x"(found)
            : "x"(table), "x"(index), "x"(sign));
    return sum;
#endif
}

/* A byte of codes of 32 rows. */
LB_TARGET("avx2")
LB_INLINE void add_byte(const int rows, const uint8_t *table,
                        const uint8_t *codes, sums *s)
{
    LB_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m256i index = load(codes + 64 * h);
        const __m256i sign = load(codes + 64 * h + 32);
        LB_UNROLL
        for (int i = 0; i < rows; i++)
            LB_UNROLL
        for (int p = 0; p < 2; p++) {
            s[i].part[h][p] =
                look_up(s[i].part[h][p],
                        lb_dotpair_half(table + i * LB_DOTPAIR_TABLE + 16 * p),
                        index, sign);
        }
    }
}

/* each: bytes of codes for a table. */
LB_TARGET("avx2")
LB_INLINE void add_bytes(const int rows, const int each, int64_t bytes,
                         const uint8_t *table, const uint8_t *codes, sums *s)
{
    for (; bytes > 0; bytes -= each, table += rows * LB_DOTPAIR_TABLE)
        LB_UNROLL
    for (int b = 0; b < each; b++, codes += LB_DOTPAIR_BYTE)
        add_byte(rows, table, codes, s);
}

/* Columns 8q to 8q + 7 of 32, in order. */
LB_TARGET("avx2")
LB_INLINE void sort_columns(const sums *s, __m256 *to)
{
    const __m256i weight = _mm256_set1_epi32(256 << 16 | 1);
    LB_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m256i low = s->part[h][0], high = s->part[h][1];
        const __m256i a =
            _mm256_madd_epi16(_mm256_unpacklo_epi16(low, high), weight);
        const __m256i b =
            _mm256_madd_epi16(_mm256_unpackhi_epi16(low, high), weight);
        to[h] = _mm256_cvtepi32_ps(_mm256_permute2x128_si256(a, b, 0x20));
        to[h + 2] = _mm256_cvtepi32_ps(_mm256_permute2x128_si256(a, b, 0x31));
    }
}

LB_TARGET("avx2,fma")
LB_INLINE void dots_rows(const int rows, const int each, int64_t bytes,
                         const uint8_t *table, const uint8_t *codes,
                         float slope, const lb_dotpair_head *head,
                         const float *ws, bool first, float *c, int64_t ldc)
{
    sums s[MR];
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        LB_FETCH(c, i * ldc);
        LB_FETCH(c, i * ldc + COLUMNS - 1);
        LB_UNROLL
        for (int h = 0; h < 2; h++)
            s[i].part[h][0] = s[i].part[h][1] = load(codes + 32 * h);
    }
    add_bytes(rows, each, bytes, table, codes + LB_DOTPAIR_HEAD, s);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        __m256 t[4];
        sort_columns(&s[i], t);
        lb_dotpair_put_columns(t, slope, head->base[i], head->scale[i], ws,
                               first, c + i * ldc);
    }
}

LB_TARGET("avx2,fma")
static void dots(lb_dotpair_kind kind, int rows, int64_t bytes,
                 const uint8_t *table, const uint8_t *codes, float slope,
                 const lb_dotpair_head *head, const float *ws, bool first,
                 float *c, int64_t ldc)
{
    if (kind == LB_DOTPAIR_SIGNS && rows == 1)
        dots_rows(1, 1, bytes, table, codes, slope, head, ws, first, c, ldc);
    else if (kind == LB_DOTPAIR_SIGNS)
        dots_rows(2, 1, bytes, table, codes, slope, head, ws, first, c, ldc);
    else if (rows == 1)
        dots_rows(1, 2, bytes, table, codes, slope, head, ws, first, c, ldc);
    else
        dots_rows(2, 2, bytes, table, codes, slope, head, ws, first, c, ldc);
}

const lb_dotpair lb_dotpair_avx2 = {
    .name = "dot pairs avx2",
    .largest = {largest_of_4, largest_of_2},
    .tables = tables,
    .index = make_index,
    .dots = dots,
};
#endif
