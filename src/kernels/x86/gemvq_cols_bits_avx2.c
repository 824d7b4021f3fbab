/* gemvq_cols_bits_avx2.c - lines of codes of 2 bits or 1, times a whole number
 * each, AVX2.
 *
 * Two lines are interleaved, so that a column's codes of both stand beside each
 * other, as vpmaddubsw wants them; x is a pair of bytes in every lane.
 *
 * Codes are masked where they stand in half a byte, and not shifted: the sum of
 * eight lines, which is at most 4 * 2 * 12 * 128 = 12288, is shifted instead.
 * So a shift serves eight lines of a field and not two.
 *
 * Sums have 16 bits: a pair is at most 2 * 3 * 128, and 32 pairs are 24576. But
 * they are modulo 2^16 as well, and as a rule, of one bit always, so near to
 * each other that 256 lines have room: then they go to y at once.
 */
#include "kernels/gemvq.h"

#if defined(__x86_64__)
#include "kernels/x86/gemvq_avx2.h"

enum { PAIRS = LB_GEMVQ_COLS / 2 };

/* x of eight lines; and what bytes are masked with for each field of half a
 * byte. */
typedef struct {
    __m256i high[PAIRS], low[PAIRS], mask[4];
} factors;

AVX2_INLINE factors load_factors(const lb_gemvq_cols *c, int bits, bool two)
{
    factors x;
    LB_UNROLL
    for (int i = 0; i < PAIRS; i++) {
        x.high[i] = _mm256_set1_epi16(*(const int16_t *)c->x[i]);
        x.low[i] = two ? _mm256_set1_epi16(*(const int16_t *)c->x[i + PAIRS])
                       : _mm256_setzero_si256();
    }
    LB_UNROLL
    for (int f = 0; f < 4 / bits; f++)
        x.mask[f] = _mm256_set1_epi8((char)(((1 << bits) - 1) << bits * f));
    return x;
}

/* Adds t * 2^-by. */
AVX2_INLINE void add_to(__m256i *sum, __m256i t, int by, bool first)
{
    if (by) t = _mm256_srai_epi16(t, by);
    if (!first) t = _mm256_add_epi16(t, _mm256_load_si256(sum));
    _mm256_store_si256(sum, t);
}

/* One field of 16 columns: bits `by` and above of the bytes of eight lines. */
AVX2_INLINE void add_field(const __m256i *v, const factors *x, int bits, int by,
                           bool two, bool first, __m256i *sum)
{
    __m256i h, l = _mm256_setzero_si256();
    LB_UNROLL
    for (int i = 0; i < PAIRS; i++) {
        const __m256i code = _mm256_and_si256(v[i], x->mask[by / bits]);
        const __m256i high = _mm256_maddubs_epi16(code, x->high[i]);
        h = i ? _mm256_add_epi16(h, high) : high;
        LB_KEEP(h); /* added one after the other, none is spilled */
        if (!two) continue;
        const __m256i low = _mm256_maddubs_epi16(code, x->low[i]);
        l = i ? _mm256_add_epi16(l, low) : low;
        LB_KEEP(l);
    }
    add_to(sum, h, by, first);
    if (two) add_to(sum + 1, l, by, first);
}

AVX2_INLINE void to_upper_half(__m256i *v)
{
    LB_UNROLL
    for (int i = 0; i < PAIRS; i++)
        v[i] = _mm256_srli_epi16(v[i], 4);
}

/* Sums of high and of low stand in turns, 16 columns each: eight bytes of each
 * 16, one field of each. */
AVX2_INLINE void add_lines(const lb_gemvq_cols *c, int bits, bool two,
                           bool first)
{
    const factors x = load_factors(c, bits, two);
    const int64_t bytes = 32 * c->groups;
    const uint8_t *codes[LB_GEMVQ_COLS];
    __m256i *sum = c->sum;
    LB_UNROLL
    for (int i = 0; i < LB_GEMVQ_COLS; i++)
        codes[i] = c->codes[i];
    for (int64_t at = 0; at < bytes; at += 32) {
        LB_UNROLL
        for (int second = 0; second < 2; second++) {
            __m256i v[PAIRS];
            LB_UNROLL
            for (int i = 0; i < PAIRS; i++) {
                v[i] = interleave(load_codes(codes[2 * i] + at),
                                  load_codes(codes[2 * i + 1] + at), second);
                LB_KEEP(v[i]);
            }
            LB_UNROLL
            for (int f = 0; f < 8 / bits; f++, sum += two ? 2 : 1) {
                if (f * bits == 4) to_upper_half(v);
                add_field(v, &x, bits, f * bits % 4, two, first, sum);
            }
        }
    }
}

AVX2_INLINE void signs(const lb_gemvq_cols *c, int bits, bool two)
{
    if (c->first)
        add_lines(c, bits, two, true);
    else
        add_lines(c, bits, two, false);
}

/* What becomes of sums, less what they are near to. */
typedef struct {
    __m256i middle, step, least;
    __m256 unit;
} ending;

AVX2_INLINE ending ending_of(const lb_gemvq_flush *f, bool two)
{
    const int32_t *m = f->middle;
    return (ending){_mm256_set1_epi32(two ? 256 * m[0] + m[1] : m[0]),
                    _mm256_set1_epi32(f->table->step),
                    _mm256_set1_epi32(f->table->least * f->x_sum),
                    _mm256_set1_ps(*f->x_scale)};
}

/* Eight columns from one on; two roundings, as the reference has them. */
AVX2_INLINE void put_8(const lb_gemvq_flush *f, const ending *e, __m256i t,
                       int64_t at)
{
    __m256i *const whole = (__m256i *)(void *)(f->whole + at);
    float *const y = f->y + at;
    t = _mm256_add_epi32(t, e->middle);
    if (!f->begins) t = _mm256_add_epi32(t, _mm256_load_si256(whole));
    if (!f->ends) {
        _mm256_store_si256(whole, t);
        return;
    }
    t = _mm256_add_epi32(_mm256_mullo_epi32(t, e->step), e->least);
    const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(t), e->unit);
    _mm256_store_ps(y, _mm256_add_ps(_mm256_load_ps(y), scaled));
}

/* Vectors of 16 columns, the low four of each half first. */
AVX2_INLINE void flush(const lb_gemvq_flush *given, int bits, bool two)
{
    const lb_gemvq_flush own = *given, *f = &own; /* which no store changes */
    const ending e = ending_of(f, two);
    const __m256i *sum = f->sum;
    const __m256i both = _mm256_set1_epi32(two ? 1 << 16 | 256 : 1);
    const __m256i zero = _mm256_setzero_si256();
    const __m256i high = _mm256_set1_epi16((int16_t)-f->middle[0]);
    const __m256i low = _mm256_set1_epi16((int16_t)-f->middle[1]);
    for (int64_t v = 0; v < f->groups * (16 / bits); v++) {
        const __m256i h = _mm256_add_epi16(_mm256_load_si256(sum++), high);
        const __m256i l =
            two ? _mm256_add_epi16(_mm256_load_si256(sum++), low) : zero;
        put_8(f, &e, _mm256_madd_epi16(_mm256_unpacklo_epi16(h, l), both),
              16 * v);
        put_8(f, &e, _mm256_madd_epi16(_mm256_unpackhi_epi16(h, l), both),
              16 * v + 8);
    }
}

LB_GEMVQ_COLS_OF_BITS(AVX2, signs)

const lb_gemvq_kernel lb_gemvq_cols_bits_avx2[] = {
    {"gemv q2 i8x2 avx2 cols",
     2,
     LB_GEMVQ_I8X2,
     128,
     0,
     1,
     {{4, 2, 2, 4, 2}, {4, 64, 16, 1, 32}},
     .cols = cols2_i8x2,
     .flush = flush2_i8x2,
     .modulo = true,
     .sum_size = 4},
    {"gemv q1 i8x2 avx2 cols",
     1,
     LB_GEMVQ_I8X2,
     256,
     0,
     1,
     {{4, 2, 2, 8, 2}, {8, 128, 32, 1, 64}},
     .cols = cols1_i8x2,
     .flush = flush1_i8x2,
     .modulo = true,
     .sum_size = 4},
    {"gemv q2 i8 avx2 cols",
     2,
     LB_GEMVQ_I8,
     128,
     0,
     1,
     {{4, 2, 2, 4, 2}, {4, 64, 16, 1, 32}},
     .cols = cols2_i8,
     .flush = flush2_i8,
     .modulo = true,
     .sum_size = 2},
    {"gemv q1 i8 avx2 cols",
     1,
     LB_GEMVQ_I8,
     256,
     0,
     1,
     {{4, 2, 2, 8, 2}, {8, 128, 32, 1, 64}},
     .cols = cols1_i8,
     .flush = flush1_i8,
     .modulo = true,
     .sum_size = 2},
    {0},
};
#endif
