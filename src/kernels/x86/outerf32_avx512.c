/* outerf32_avx512.c - a few rows times 32 columns of codes: AVX-512.
 *
 * The tile of gemm_avx512.c whose two vectors of B are decoded on the spot.
 * Bytes become dwords in order; of fewer bits each lane has the dword that its
 * code is in, shifted by as much as its own. vpermps looks that up among levels
 * which were multiplied by the scale of the line.
 */
#include "kernels/outerf32.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/label_avx512.h"
#include "kernels/x86/lanes_avx512.h"

enum { MR = 8, NR = 32, LANES = 16 };

#define AVX512 LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq")

/* ---- 32 codes ------------------------------------------------------------ */

/* What all lines have alike. */
typedef struct {
    __m512i shift[2];
    __m512 level;
    __m512 scale[2]; /* each: those of columns */
} tables;

AVX512 LB_INLINE tables tables_of(const int bits, const bool each,
                                  const lb_dtype to, const lb_outerf32_lines *w)
{
    tables t;
    memset(&t, 0, sizeof t);
    t.level = _mm512_loadu_ps(w->table->level);
    LB_UNROLL
    for (int v = 0; v < 2; v++) {
        if (bits < 8)
            t.shift[v] =
                _mm512_loadu_si512((const void *)(w->table->shift + v * LANES));
        if (!each) continue;
        float scale[LANES];
        for (int i = 0; i < LANES; i++)
            scale[i] = lb_label_scale(to, w->scale[v * LANES + i]);
        t.scale[v] = _mm512_loadu_ps(scale);
    }
    return t;
}

AVX512 LB_INLINE __m512i dword_at(const uint8_t *codes, int at)
{
    int32_t u;
    memcpy(&u, codes + 4 * at, sizeof u);
    return _mm512_set1_epi32(u);
}

/* Vector v of a line whose scale is s, if not each column has one. */
AVX512 LB_INLINE __m512 number_at(const int bits, const bool each,
                                  const lb_dtype to, const tables *t,
                                  __m512 level, __m512 s, const uint8_t *codes,
                                  const int v)
{
    if (bits == 8) {
        const __m512i code = _mm512_cvtepi8_epi32(
            _mm_loadu_si128((const __m128i *)(codes + v * LANES)));
        return lb_number_512(to, _mm512_cvtepi32_ps(code),
                             each ? t->scale[v] : s);
    }
    __m512i u = dword_at(codes, bits == 4 ? 2 * v : bits == 2 ? v : 0);
    if (bits == 4)
        u = _mm512_mask_mov_epi32(u, 0xff00, dword_at(codes, 2 * v + 1));
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(u, t->shift[v]), level);
}

/* ---- tiles --------------------------------------------------------------- */

AVX512 LB_INLINE void put(float *c, __mmask16 mask, __m512 sum, bool first)
{
    if (!first) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c), sum);
    _mm512_mask_storeu_ps(c, mask, sum);
}

AVX512 LB_INLINE void tile_rows(const int bits, const bool each,
                                const lb_dtype to, const int rows,
                                const lb_outerf32_lines *given, const float *x,
                                bool first, int n, float *c, int64_t ldc,
                                float *keep)
{
    const lb_outerf32_lines own = *given,
                            *w = &own; /* which no store changes */
    const tables t = tables_of(bits, each, to, w);
    const uint8_t *codes = w->codes;
    const float *scale = w->scale;
    __m512 r[MR][2];
    LB_UNROLL
    for (int i = 0; i < rows; i++)
        r[i][0] = r[i][1] = _mm512_setzero_ps();
    for (int64_t k = 0; k < w->k; k++) {
        __builtin_prefetch(
            (const void *)(w->ask +
                           (uintptr_t)((k >> w->ask_shift) * w->ask_step)),
            0, 2);
        const __m512 s = _mm512_set1_ps(lb_label_scale(to, *scale));
        const __m512 level = bits < 8 ? lb_number_512(to, t.level, s) : s;
        const __m512 w0 = number_at(bits, each, to, &t, level, s, codes, 0);
        const __m512 w1 = number_at(bits, each, to, &t, level, s, codes, 1);
        _mm512_storeu_ps(keep, w0);
        _mm512_storeu_ps(keep + LANES, w1);
        LB_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512 xi = _mm512_set1_ps(x[i]);
            r[i][0] = _mm512_fmadd_ps(xi, w0, r[i][0]);
            r[i][1] = _mm512_fmadd_ps(xi, w1, r[i][1]);
        }
        codes += w->step;
        scale += w->scale_step;
        x += rows;
        keep += NR;
    }
    LB_UNROLL
    for (int i = 0; i < rows; i++) {
        put(c + i * ldc, lb_first_lanes(n), r[i][0], first);
        put(c + i * ldc + LANES, lb_first_lanes(n - LANES), r[i][1], first);
    }
}

/* For each kind of codes a table of functions, one for each number of rows. */
typedef void function(const lb_outerf32_lines *w, int rows, const float *x,
                      bool first, int n, float *c, int64_t ldc, float *keep);
#define ROWS(h, name, bits, each, to)                                          \
    AVX512                                                                     \
    static void name##_##h(const lb_outerf32_lines *w, int rows,               \
                           const float *x, bool first, int n, float *c,        \
                           int64_t ldc, float *keep)                           \
    {                                                                          \
        (void)rows;                                                            \
        tile_rows(bits, each, to, h, w, x, first, n, c, ldc, keep);            \
    }
#define TILE(name, bits, each, to)                                             \
    LB_UP_TO_8(ROWS, name, bits, each, to)                                     \
    static function *const name[] = LB_TABLE(LB_UP_TO_8, name);

/* Bytes are rounded one by one; else it is levels that are. */
TILE(bytes_f32, 8, false, LB_F32)
TILE(bytes_bf16, 8, false, LB_BF16)
TILE(bytes_f16, 8, false, LB_F16)
TILE(each_f32, 8, true, LB_F32)
TILE(each_bf16, 8, true, LB_BF16)
TILE(each_f16, 8, true, LB_F16)
TILE(nibbles, 4, false, w->rounds)
TILE(pairs, 2, false, w->rounds)
TILE(single, 1, false, w->rounds)

static function *const *functions_of(const lb_outerf32_lines *w)
{
    switch (w->table->bits) {
    case 8:
        if (w->rounds == LB_BF16) return w->each ? each_bf16 : bytes_bf16;
        if (w->rounds == LB_F16) return w->each ? each_f16 : bytes_f16;
        return w->each ? each_f32 : bytes_f32;
    case 4:
        return nibbles;
    case 2:
        return pairs;
    default:
        return single;
    }
}

static void tile(const lb_outerf32_lines *w, int rows, const float *x,
                 bool first, int n, float *c, int64_t ldc, float *keep)
{
    functions_of(w)[LB_NTH(rows)](w, rows, x, first, n, c, ldc, keep);
}

const lb_outerf32 lb_outerf32_avx512 = {.name = "dot f32 avx512 8x32",
                                        .mr = MR,
                                        .nr = NR,
                                        .kc = 64,
                                        .most = 32,
                                        .asks = true,
                                        .tile = tile};
#endif
