/* dotint_ref.c - products of whole numbers in portable C: the specification.
 *
 * Panels lie in the order of the depth, eight numbers to a vector: what
 * compilers can put into registers everywhere.
 */
#include <math.h>
#include <string.h>

#include "kernels/dotint.h"

enum { MR = 4, NR = 2, LANES = 8 };

static float largest(int64_t n, const float *x, float *lane)
{
    uint32_t most = 0; /* magnitudes compare as their bits do, NaN on top */
    float sum[LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
        sum[i % LANES] += fabsf(x[i]);
    }
    *lane = sum[0];
    for (int l = 1; l < LANES; l++)
        *lane = sum[l] > *lane ? sum[l] : *lane;
    float f;
    memcpy(&f, &most, sizeof f);
    return f;
}

static float row_ratios(int64_t n, const float *scale, float top,
                        int16_t *ratio)
{
    float lane;
    const float most = largest(n, scale, &lane);
    const bool none = most == 0 || !isfinite(most);
    const float lift = most < 0x1p-100f ? 0x1p100f : 1;
    const float factor = none ? 0 : top / (most * lift);
    for (int64_t i = 0; i < n; i++)
        ratio[i] = none ? 0 : (int16_t)lrintf(scale[i] * lift * factor);
    return most;
}

static void ratios(int64_t rows, int64_t n, const float *scale, int64_t step,
                   float top, int16_t *ratio, int64_t apart, float *most)
{
    for (int64_t r = 0; r < rows; r++)
        most[r] = row_ratios(n, scale + r * step, top, ratio + r * apart);
}

/* Where number k of a row goes. */
static inline int64_t place(int64_t k, int64_t apart)
{
    return k / LANES * apart + k % LANES;
}

static inline int64_t whole_steps(int64_t n)
{
    return (n + LB_DOTINT_STEP - 1) / LB_DOTINT_STEP * LB_DOTINT_STEP;
}

static int32_t round_row(int64_t n, const float *x, float factor, int16_t *to,
                         int64_t apart)
{
    int32_t sum = 0;
    for (int64_t k = 0; k < whole_steps(n); k++) {
        const int16_t one = k < n ? (int16_t)lrintf(x[k] * factor) : 0;
        to[place(k, apart)] = one;
        sum += one;
    }
    return sum;
}

static void unpack(int bits, bool high_first, const int8_t *number, int64_t n,
                   const uint8_t *codes, int8_t *to)
{
    const int fields = 8 / bits, mask = (1 << bits) - 1;
    for (int64_t i = 0; i < n; i++) {
        const int at = (int)(i % fields);
        const int field = high_first ? fields - 1 - at : at;
        to[i] = number[codes[i / fields] >> (field * bits) & mask];
    }
}

static void turn(const int8_t *const *line, int64_t n, int8_t *to, int64_t ld)
{
    for (int64_t p = 0; p < n; p++)
        for (int l = 0; l < LB_DOTINT_LINES; l++)
            to[p * ld + l] = line[l][p];
}

/* ---- w ------------------------------------------------------------------- */

static int fields_of(const lb_dotint_codes *w)
{
    return w->kind == LB_DOTINT_FIELDS ? 8 / w->bits : 1;
}

/* Number k of a row, in the order of fields if that is its kind: the code, or
 * of BYTES the byte; 0 where there is none. */
static int code_at(const lb_dotint_codes *w, const uint8_t *codes, int64_t k)
{
    const int fields = fields_of(w), field = (int)(k / 32 % fields);
    const int64_t byte = k / (32 * fields) * 32 + k % 32;
    if (byte * fields >= w->depth) return 0;
    switch (w->kind) {
    case LB_DOTINT_BYTES:
        return (int8_t)codes[k];
    case LB_DOTINT_FIELD:
        return codes[k] >> w->field & w->mask;
    case LB_DOTINT_FIELDS:
        return codes[byte] >> (field * w->bits) & ((1 << w->bits) - 1);
    default:
        return codes[k / 8] >> (w->high_first ? 7 - k % 8 : k % 8) & 1;
    }
}

static int16_t number_at(const lb_dotint_codes *w, int64_t j, int64_t k)
{
    const int code = code_at(w, w->codes + j * w->step, k);
    const bool bytes = w->kind == LB_DOTINT_BYTES;
    if (!w->fine && w->kind == LB_DOTINT_FIELD) return w->number[code];
    if (!w->fine) return (int16_t)(bytes ? code : w->least + w->slope * code);
    const int32_t level =
        bytes ? code * (1 << LB_DOTINT_NUMBER_BITS) : w->level[code];
    const int32_t ratio = w->ratio[j * w->ratio_step + k / w->g];
    return (int16_t)((level * ratio + (1 << 14)) >> 15);
}

static void pack(const lb_dotint_codes *w, int64_t j, int16_t *to,
                 int64_t apart)
{
    const int64_t group = (int64_t)LB_DOTINT_STEP * fields_of(w);
    const int64_t n = (w->depth + group - 1) / group * group;
    for (int64_t k = 0; k < n; k++)
        to[place(k, apart)] = number_at(w, j, k);
}

/* ---- tiles --------------------------------------------------------------- */

static void add_products(const int16_t *x, const int16_t *w, int32_t *sum)
{
    for (int l = 0; l < LANES; l++)
        sum[l] += x[l] * w[l];
}

static float fold(const int32_t *sum)
{
    int32_t total = 0;
    for (int l = 0; l < LANES; l++)
        total += sum[l];
    return (float)total;
}

static float fold_fine(const int32_t *sum)
{
    float f[LANES];
    for (int l = 0; l < LANES; l++)
        f[l] = (float)sum[l];
    return ((f[0] + f[1]) + (f[2] + f[3])) + ((f[4] + f[5]) + (f[6] + f[7]));
}

static void tile(int rows, int64_t k, const int16_t *x, const int16_t *w,
                 const float *xs, const float *ws, bool fine, bool first,
                 float *c)
{
    int32_t sum[MR][NR][LANES] = {{{0}}};
    for (int64_t v = 0; v < k / LANES; v++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < NR; j++)
                add_products(x + (v * rows + i) * LANES,
                             w + (v * NR + j) * LANES, sum[i][j]);
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < NR; j++) {
            const int at = i * NR + j;
            const float f = fine ? fold_fine(sum[i][j]) : fold(sum[i][j]);
            c[at] = fmaf(f * ws[j], xs[at], first ? 0 : c[at]);
        }
    }
}

const lb_dotint lb_dotint_ref = {
    .name = "dot i16 ref",
    .mr = MR,
    .nr = NR,
    .lanes = LANES,
    .kc = LB_DOTINT_KC,
    .largest = largest,
    .round = round_row,
    .unpack = unpack,
    .turn = turn,
    .ratios = ratios,
    .pack = pack,
    .tile = tile,
};
