/* outerint_avx2.c - whole numbers times codes across the depth, for AVX2.
 *
 *            w: 16 columns     12 accumulators; a pair of numbers of x is
 *          +-------+-------+   spread over all lanes as it is loaded. A pair
 *   x: 6   |  r00  |  r01  |   of lines is 12 vpmaddwd and 12 vpaddd in about 6
 *   rows   |   :   |   :   |   cycles.
 *          +-------+-------+
 *
 * Bytes of two lines are interleaved first, so all that follows, up to numbers
 * of 16 bits, makes pairs:
 *
 *   8 bits         a byte becomes the lower half of a number, its sign the rest
 *   4 bits         a byte becomes a number, of which each field is a part
 *   4 bits, fine   the bytes of levels are looked up and interleaved
 */
#include "kernels/outerint.h"

#if defined(__x86_64__)
#include "kernels/x86/outerint_avx2.h"

enum {
    MR = LB_OUTERINT_MR,
    KC = LB_OUTERINT_KC,
    PER = LB_OUTERINT_PER,
    EACH = 16,      /* numbers of a vector, */
    PAIR = 2 * EACH /* and of a pair of lines in a tile */
};

/* ---- x ------------------------------------------------------------------- */

AVX2_INLINE __m256i round_16(const float *x, __m256 factor)
{
    const __m256 a = _mm256_mul_ps(_mm256_loadu_ps(x), factor);
    const __m256 b = _mm256_mul_ps(_mm256_loadu_ps(x + 8), factor);
    const __m256i v =
        _mm256_packs_epi32(_mm256_cvtps_epi32(a), _mm256_cvtps_epi32(b));
    return _mm256_permute4x64_epi64(v, 0xd8);
}

AVX2_INLINE int32_t sum_of_8(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v),
                              _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

AVX2 static int32_t round_row(int64_t n, const float *x, float factor,
                              int16_t *to)
{
    const __m256 f = _mm256_set1_ps(factor);
    const __m256i one = _mm256_set1_epi16(1);
    __m256i sum = _mm256_setzero_si256();
    for (; n >= EACH; n -= EACH, x += EACH, to += EACH) {
        const __m256i v = round_16(x, f);
        _mm256_storeu_si256((__m256i *)(void *)to, v);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(v, one));
    }
    if (n) {
        float rest[EACH] = {0};
        int16_t out[EACH];
        memcpy(rest, x, (size_t)n * sizeof *x);
        const __m256i v = round_16(rest, f);
        _mm256_storeu_si256((__m256i *)(void *)out, v);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(v, one));
        memcpy(to, out, (size_t)(n + n % 2) * sizeof *to);
    }
    return sum_of_8(sum);
}

/* ---- two lines ----------------------------------------------------------- */

/* Bytes of both lines, in turn: of 32 bytes of each, the halves of both vectors
 * are 8 bytes after the other. What was loaded is kept: lines that lie 4 KiB
 * apart share so little of the cache that they may be gone a moment later. */
AVX2_INLINE void interleave_32(const uint8_t *a, const uint8_t *b, __m256i *to)
{
    __m256i va = load(a), vb = load(b);
    LB_KEEP(va);
    LB_KEEP(vb);
    to[0] = _mm256_unpacklo_epi8(va, vb);
    to[1] = _mm256_unpackhi_epi8(va, vb);
}

/* Vectors of the panel; tile t is `apart` numbers on from the last. */
AVX2_INLINE void put(int16_t *to, int64_t apart, const int v, __m256i x)
{
    int16_t *const at = to + v / 2 * apart + v % 2 * EACH;
    _mm256_store_si256((__m256i *)(void *)at, x);
}

/* ---- bytes --------------------------------------------------------------- */

/* Two vectors of numbers. */
AVX2_INLINE void widen(__m256i v, __m256i *to)
{
    const __m256i sign = _mm256_cmpgt_epi8(_mm256_setzero_si256(), v);
    to[0] = _mm256_unpacklo_epi8(v, sign);
    to[1] = _mm256_unpackhi_epi8(v, sign);
}

/* The same, as levels of 8 bits times ratio. */
AVX2_INLINE void widen_fine(__m256i v, __m256i ratio, __m256i *to)
{
    const __m256i zero = _mm256_setzero_si256();
    to[0] = _mm256_srai_epi16(_mm256_unpacklo_epi8(zero, v), 2);
    to[1] = _mm256_srai_epi16(_mm256_unpackhi_epi8(zero, v), 2);
    to[0] = _mm256_mulhrs_epi16(to[0], ratio);
    to[1] = _mm256_mulhrs_epi16(to[1], ratio);
}

AVX2_INLINE void pack_bytes(const bool fine, const uint8_t *a, const uint8_t *b,
                            __m256i ratio, int16_t *to, int64_t apart)
{
    __m256i v[4], number[2];
    interleave_32(a, b, v);
    interleave_32(a + 32, b + 32, v + 2);
    LB_UNROLL
    for (int q = 0; q < 4; q++) {
        if (fine)
            widen_fine(v[q], ratio, number);
        else
            widen(v[q], number);
        put(to, apart, 2 * q, number[0]);
        put(to, apart, 2 * q + 1, number[1]);
    }
}

/* ---- fields -------------------------------------------------------------- */

AVX2_INLINE void pack_fields(const uint8_t *a, const uint8_t *b, int16_t *to,
                             int64_t apart)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i low = _mm256_set1_epi16(0x0f), high = _mm256_set1_epi16(0xf0);
    __m256i v[2];
    interleave_32(a, b, v);
    LB_UNROLL
    for (int q = 0; q < 4; q++) {
        const __m256i u = q % 2 ? _mm256_unpackhi_epi8(v[q / 2], zero)
                                : _mm256_unpacklo_epi8(v[q / 2], zero);
        put(to, apart, 2 * q, _mm256_and_si256(u, low));
        put(to, apart, 2 * q + 1, _mm256_and_si256(u, high));
    }
}

/* ---- levels -------------------------------------------------------------- */

typedef struct {
    __m256i low, high; /* bytes of levels, in both halves */
} planes;

AVX2_INLINE planes planes_of(const int16_t *level)
{
    const __m128i *at = (const __m128i *)(const void *)level;
    const __m128i a = _mm_loadu_si128(at), b = _mm_loadu_si128(at + 1);
    const __m128i byte = _mm_set1_epi16(255);
    return (planes){
        _mm256_broadcastsi128_si256(
            _mm_packus_epi16(_mm_and_si128(a, byte), _mm_and_si128(b, byte))),
        _mm256_broadcastsi128_si256(
            _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8))),
    };
}

AVX2_INLINE void pack_levels(const planes *p, const uint8_t *a,
                             const uint8_t *b, __m256i ratio, int16_t *to,
                             int64_t apart)
{
    const __m256i mask = _mm256_set1_epi8(15);
    __m256i v[2];
    interleave_32(a, b, v);
    LB_UNROLL
    for (int h = 0; h < 2; h++)
        LB_UNROLL
    for (int f = 0; f < 2; f++) {
        const __m256i code =
            _mm256_and_si256(f ? _mm256_srli_epi16(v[h], 4) : v[h], mask);
        const __m256i low = _mm256_shuffle_epi8(p->low, code);
        const __m256i high = _mm256_shuffle_epi8(p->high, code);
        put(to, apart, 4 * h + f,
            _mm256_mulhrs_epi16(_mm256_unpacklo_epi8(low, high), ratio));
        put(to, apart, 4 * h + 2 + f,
            _mm256_mulhrs_epi16(_mm256_unpackhi_epi8(low, high), ratio));
    }
}

/* ---- panels -------------------------------------------------------------- */

AVX2_INLINE void pack_pair(const int bits, const bool fine, const planes *p,
                           const uint8_t *a, const uint8_t *b,
                           const int16_t *ratio, int16_t *to, int64_t apart)
{
    const __m256i r = fine ? spread(ratio) : _mm256_setzero_si256();
    if (bits == 8)
        pack_bytes(fine, a, b, r, to, apart);
    else if (fine)
        pack_levels(p, a, b, r, to, apart);
    else
        pack_fields(a, b, to, apart);
}

/* The last line of an odd number meets zeros: bytes that are, or codes with the
 * ratio 0. */
AVX2_INLINE void pack_as(const int bits, const bool fine,
                         const lb_outerint_lines *w, int16_t *to, int64_t apart)
{
    static const uint8_t none[64];
    const uint8_t *a = w->codes;
    planes p = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    if (fine && bits == 4) p = planes_of(w->level);
    int64_t k = 0;
    for (; k + 2 <= w->n; k += 2, a += 2 * w->step, to += PAIR)
        pack_pair(bits, fine, &p, a, a + w->step, w->ratio + k, to, apart);
    if (k == w->n) return;
    const int16_t ratio[2] = {fine ? w->ratio[k] : (int16_t)0, 0};
    pack_pair(bits, fine, &p, a, none, ratio, to, apart);
}

#define PACK(name, bits, fine)                                                 \
    AVX2 static void name(const lb_outerint_lines *w, int16_t *to)             \
    {                                                                          \
        pack_as(bits, fine, w, to, (w->n + 1) / 2 * PAIR);                     \
    }

PACK(pack_8, 8, false)
PACK(pack_4, 4, false)
PACK(pack_fine_8, 8, true)
PACK(pack_fine_4, 4, true)

static void pack(const lb_outerint_lines *w, int16_t *to)
{
    if (w->bits == 8)
        (w->fine ? pack_fine_8 : pack_8)(w, to);
    else
        (w->fine ? pack_fine_4 : pack_4)(w, to);
}

AVX2 static void feed_fine(lb_outerint_feed *f)
{
    const lb_outerint_lines w = {.level = f->level,
                                 .ratio = f->ratio,
                                 .codes = f->codes,
                                 .step = f->step,
                                 .n = f->n};
    pack_as(4, true, &w, (int16_t *)(void *)f->to, f->apart / 2);
    f->n = 0;
}

AVX2_INLINE void feed_pair(const planes *p, lb_outerint_feed *f)
{
    pack_levels(p, f->codes, f->codes + f->step, spread(f->ratio),
                (int16_t *)(void *)f->to, f->apart / 2);
    f->codes += 2 * f->step;
    f->ratio += 2;
    f->to += PAIR * sizeof(int16_t);
    f->n -= 2;
}

/* ---- tiles --------------------------------------------------------------- */

AVX2_INLINE void put_sums(const int rows, __m256i (*r)[2],
                          const lb_outerint_head *head, const float *part,
                          const float *ws, bool first, float *c, int64_t ldc)
{
    LB_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m256 p = _mm256_broadcast_ss(part + h);
        const __m256 w = _mm256_loadu_ps(ws + 8 * h);
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            float *const to = c + i * ldc + 8 * h;
            const __m256 all =
                _mm256_fmadd_ps(_mm256_cvtepi32_ps(r[i][h]), p,
                                _mm256_broadcast_ss(head->base + i));
            const __m256 old =
                first ? _mm256_setzero_ps() : _mm256_loadu_ps(to);
            _mm256_storeu_ps(
                to, _mm256_fmadd_ps(_mm256_mul_ps(all, w),
                                    _mm256_broadcast_ss(head->scale + i), old));
        }
    }
}

AVX2_INLINE void add_pair(const int rows, const int16_t *x, const int16_t *w,
                          __m256i (*r)[2])
{
    __m256i w0 = _mm256_load_si256((const __m256i *)(const void *)w);
    __m256i w1 = _mm256_load_si256((const __m256i *)(const void *)(w + EACH));
    LB_KEEP(w0);
    LB_KEEP(w1);
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m256i xi = spread(x + (ptrdiff_t)i * KC);
        add_products(&r[i][0], xi, w0);
        add_products(&r[i][1], xi, w1);
    }
}

/* f: lines that are fed meanwhile, by planes p; or NULL. */
AVX2_INLINE void tile_rows(const int rows, int64_t pairs, const int16_t *x,
                           const int16_t *w, const lb_outerint_head *head,
                           const float *part, const float *ws, bool first,
                           float *c, int64_t ldc, const planes *p,
                           lb_outerint_feed *f)
{
    __m256i r[MR][2];
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        r[i][0] = r[i][1] = _mm256_setzero_si256();
    for (; f && pairs >= PER && f->n >= 2; pairs -= PER) {
        LB_UNROLL
        for (int q = 0; q < PER; q++, x += 2, w += PAIR)
            add_pair(rows, x, w, r);
        feed_pair(p, f);
        ask_two(f);
    }
    for (; pairs >= PER; pairs -= PER)
        LB_UNROLL
    for (int q = 0; q < PER; q++, x += 2, w += PAIR)
        add_pair(rows, x, w, r);
    for (; pairs > 0; pairs--, x += 2, w += PAIR)
        add_pair(rows, x, w, r);
    put_sums(rows, r, head, part, ws, first, c, ldc);
}

AVX2_INLINE void panel_rows(const int rows, int64_t pairs, const int16_t *x,
                            const int16_t *w, const lb_outerint_head *head,
                            const float *ws, bool first, float *c, int64_t ldc,
                            lb_outerint_feed *next)
{
    static const float part[] = {1, 1};
    lb_outerint_feed f = *next; /* which no store changes */
    const planes p = planes_of(f.level);
    for (int t = 0; t < LB_OUTERINT_TILES; t++)
        tile_rows(rows, pairs, x, w + t * pairs * PAIR, head, part,
                  ws + t * LB_OUTERINT_TILE, first, c + t * LB_OUTERINT_TILE,
                  ldc, &p, &f);
    *next = f;
}

#define ROWS(n, of_x)                                                          \
    AVX2 static void plain_##n(int of_x, int64_t pairs, const int16_t *x,      \
                               const int16_t *w, const lb_outerint_head *head, \
                               const float *part, const float *ws, bool first, \
                               float *c, int64_t ldc)                          \
    {                                                                          \
        (void)of_x;                                                            \
        tile_rows(n, pairs, x, w, head, part, ws, first, c, ldc, NULL, NULL);  \
    }                                                                          \
    AVX2 static void fine_##n(int of_x, int64_t pairs, const int16_t *x,       \
                              const int16_t *w, const lb_outerint_head *head,  \
                              const float *ws, bool first, float *c,           \
                              int64_t ldc, lb_outerint_feed *next)             \
    {                                                                          \
        (void)of_x;                                                            \
        panel_rows(n, pairs, x, w, head, ws, first, c, ldc, next);             \
    }

LB_UP_TO_6(ROWS, rows)

static void tile(int rows, int64_t pairs, const int16_t *x, const int16_t *w,
                 const lb_outerint_head *head, const float *part,
                 const float *ws, bool first, float *c, int64_t ldc)
{
    static void (*const of[])(int, int64_t, const int16_t *, const int16_t *,
                              const lb_outerint_head *, const float *,
                              const float *, bool, float *, int64_t) =
        LB_TABLE(LB_UP_TO_6, plain);
    of[LB_NTH(rows)](rows, pairs, x, w, head, part, ws, first, c, ldc);
}

static void panel_fine(int rows, int64_t pairs, const int16_t *x,
                       const int16_t *w, const lb_outerint_head *head,
                       const float *ws, bool first, float *c, int64_t ldc,
                       lb_outerint_feed *next)
{
    static void (*const of[])(int, int64_t, const int16_t *, const int16_t *,
                              const lb_outerint_head *, const float *, bool,
                              float *, int64_t, lb_outerint_feed *) =
        LB_TABLE(LB_UP_TO_6, fine);
    of[LB_NTH(rows)](rows, pairs, x, w, head, ws, first, c, ldc, next);
}

const lb_outerint lb_outerint_avx2 = {
    .name = "dot i16 outer avx2",
    .round = round_row,
    .pack = pack,
    .tile = tile,
    .feed_twos = lb_outerint_feed_twos_avx2,
    .panel_twos = lb_outerint_panel_twos_avx2,
    .feed_fine = feed_fine,
    .panel_fine = panel_fine,
};
#endif
