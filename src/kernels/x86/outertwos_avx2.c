/* outertwos_avx2.c - whole numbers times bytes that stay two and two, AVX2.
 *
 *            w: 16 columns     12 accumulators: of each row one of
 *          +-------+-------+   256 * odd + even, one of odd. A pair of lines is
 *   x: 6   | both  |  odd  |   one load and a shift, and for each row two
 *   rows   |   :   |   :   |   vpmaddwd and two vpaddd.
 *          +-------+-------+
 *
 * After every four pairs another pair of lines is brought to the next panel.
 * What it waits for, L2 mostly, it waits for while multiplications go on. And
 * two lines of a cache are asked for, which are waited for nowhere.
 */
#include "kernels/outerint.h"

#if defined(__x86_64__)
#include "kernels/x86/outerint_avx2.h"

enum {
    MR = LB_OUTERINT_MR,
    KC = LB_OUTERINT_KC,
    TILE = LB_OUTERINT_TILE,
    PAIR = LB_OUTERINT_PAIR,
    PER = LB_OUTERINT_PER
};

/* ---- lines --------------------------------------------------------------- */

/* 32 bytes of two lines, for two tiles. */
AVX2_INLINE void put_twos(__m256i a, __m256i b, uint8_t *to, int64_t apart)
{
    const __m256i raise = _mm256_set1_epi16(128);
    const __m256i low = _mm256_unpacklo_epi16(a, b);
    const __m256i high = _mm256_unpackhi_epi16(a, b);
    _mm256_store_si256((__m256i *)(void *)to, _mm256_xor_si256(low, raise));
    _mm256_store_si256((__m256i *)(void *)(to + apart),
                       _mm256_xor_si256(high, raise));
}

AVX2_INLINE void feed_pair(lb_outerint_feed *f)
{
    const uint8_t *const a = f->codes, *const b = a + f->step;
    put_twos(load(a), load(b), f->to, f->apart);
    put_twos(load(a + 32), load(b + 32), f->to + 2 * f->apart, f->apart);
    f->codes += 2 * f->step;
    f->to += PAIR;
    f->n -= 2;
}

AVX2 void lb_outerint_feed_twos_avx2(lb_outerint_feed *f)
{
    for (; f->n >= 2; ask_two(f))
        feed_pair(f);
    if (f->n == 0) return;
    const __m256i zero = _mm256_setzero_si256();
    put_twos(load(f->codes), zero, f->to, f->apart);
    put_twos(load(f->codes + 32), zero, f->to + 2 * f->apart, f->apart);
    f->n = 0;
}

/* ---- tiles --------------------------------------------------------------- */

AVX2_INLINE void add_pair(const int rows, const int16_t *x, const uint8_t *w,
                          __m256i (*r)[2])
{
    __m256i both = _mm256_load_si256((const __m256i *)(const void *)w);
    LB_KEEP(both);
    __m256i odd = _mm256_srai_epi16(both, 8);
    LB_KEEP(odd);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m256i xi = spread(x + (ptrdiff_t)i * KC);
        add_products(&r[i][0], xi, both);
        add_products(&r[i][1], xi, odd);
    }
}

AVX2_INLINE void put_sum(__m256i sum, __m256 ws, __m256 scale, bool first,
                         float *c)
{
    const __m256 old = first ? _mm256_setzero_ps() : _mm256_loadu_ps(c);
    const __m256 all = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), ws);
    _mm256_storeu_ps(c, _mm256_fmadd_ps(all, scale, old));
}

AVX2_INLINE void put_sums(const int rows, __m256i (*r)[2],
                          const lb_outerint_head *head, const float *ws,
                          bool first, float *c, int64_t ldc)
{
    const __m256 w0 = _mm256_loadu_ps(ws), w1 = _mm256_loadu_ps(ws + 8);
    LB_UNROLL
    for (int i = 0; i < rows; i++, c += ldc) {
        const __m256 scale = _mm256_broadcast_ss(head->scale + i);
        const __m256i even =
            _mm256_sub_epi32(r[i][0], _mm256_slli_epi32(r[i][1], 8));
        put_sum(even, w0, scale, first, c);
        put_sum(r[i][1], w1, scale, first, c + 8);
    }
}

AVX2_INLINE void panel_rows(const int rows, int64_t pairs, const int16_t *x,
                            const uint8_t *w, const lb_outerint_head *head,
                            const float *ws, bool first, float *c, int64_t ldc,
                            lb_outerint_feed *next)
{
    lb_outerint_feed f = *next; /* which no store changes */
    for (int t = 0; t < LB_OUTERINT_TILES; t++) {
        const int16_t *at = x;
        int64_t left = pairs;
        __m256i r[MR][2];
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            r[i][0] = _mm256_set1_epi32(head->raised[i]);
            r[i][1] = _mm256_setzero_si256();
        }
        for (; left >= PER && f.n >= 2; left -= PER) {
            LB_UNROLL
            for (int q = 0; q < PER; q++, at += 2, w += PAIR) {
                add_pair(rows, at, w, r);
                if (q == PER / 2 - 1) feed_pair(&f);
            }
            ask_two(&f);
        }
        for (; left >= PER; left -= PER)
            LB_UNROLL
        for (int q = 0; q < PER; q++, at += 2, w += PAIR)
            add_pair(rows, at, w, r);
        for (; left > 0; left--, at += 2, w += PAIR)
            add_pair(rows, at, w, r);
        put_sums(rows, r, head, ws + t * TILE, first, c + t * TILE, ldc);
    }
    *next = f;
}

#define ROWS(n, of_x)                                                          \
    AVX2 static void twos_##n(int of_x, int64_t pairs, const int16_t *x,       \
                              const uint8_t *w, const lb_outerint_head *head,  \
                              const float *ws, bool first, float *c,           \
                              int64_t ldc, lb_outerint_feed *next)             \
    {                                                                          \
        (void)of_x;                                                            \
        panel_rows(n, pairs, x, w, head, ws, first, c, ldc, next);             \
    }

LB_UP_TO_6(ROWS, rows)

void lb_outerint_panel_twos_avx2(int rows, int64_t pairs, const int16_t *x,
                                 const uint8_t *w, const lb_outerint_head *head,
                                 const float *ws, bool first, float *c,
                                 int64_t ldc, lb_outerint_feed *next)
{
    static void (*const of[])(int, int64_t, const int16_t *, const uint8_t *,
                              const lb_outerint_head *, const float *, bool,
                              float *, int64_t, lb_outerint_feed *) =
        LB_TABLE(LB_UP_TO_6, twos);
    of[LB_NTH(rows)](rows, pairs, x, w, head, ws, first, c, ldc, next);
}
#endif
