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

static float ratios(int64_t n, const float *scale, float top, int16_t *ratio)
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

/* Where number k of a row goes. */
static inline int64_t place(int64_t k, int64_t apart)
{
    return k / LANES * apart + k % LANES;
}

static inline int64_t whole_steps(int64_t n)
{
    return (n + LB_DOTINT_STEP - 1) / LB_DOTINT_STEP * LB_DOTINT_STEP;
}

static void round_row(int64_t n, const float *x, float factor, int16_t *to,
                      int64_t apart)
{
    for (int64_t k = 0; k < whole_steps(n); k++)
        to[place(k, apart)] = k < n ? (int16_t)lrintf(x[k] * factor) : 0;
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

static void widen(int64_t n, const int8_t *from, const int8_t *number,
                  int field, int mask, int16_t *to, int64_t apart)
{
    for (int64_t k = 0; k < whole_steps(n); k++) {
        const int8_t *one = k < n ? from + k : NULL;
        if (one && number) one = number + ((uint8_t)*one >> field & mask);
        to[place(k, apart)] = one ? *one : 0;
    }
}

static int16_t fine_product(int32_t level, int32_t ratio)
{
    return (int16_t)((level * ratio + (1 << 14)) >> 15);
}

static void scale(int64_t n, const int8_t *from, const int16_t *level,
                  int field, int mask, const int16_t *ratio, int64_t g,
                  int16_t *to, int64_t apart)
{
    for (int64_t k = 0; k < whole_steps(n); k++) {
        const int byte = k < n ? from[k] : 0;
        const int a = level ? level[(uint8_t)byte >> field & mask]
                            : byte * (1 << LB_DOTINT_NUMBER_BITS);
        to[place(k, apart)] = k < n ? fine_product(a, ratio[k / g]) : 0;
    }
}

/* Number i of codes in the order of fields: of 32 bytes each field in turn. */
static int code_at(int bits, bool high_first, const uint8_t *codes, int64_t i)
{
    const int fields = 8 / bits;
    const int64_t group = i / (32 * fields) * 32;
    const int at = (int)(i / 32 % fields);
    const int field = high_first ? fields - 1 - at : at;
    return codes[group + i % 32] >> (field * bits) & ((1 << bits) - 1);
}

/* Bytes that there are, and zeros. */
static void some_codes(int bits, int64_t n, const uint8_t *codes, int64_t at,
                       uint8_t *to)
{
    const int64_t have = (n * bits + 7) / 8 - at;
    memset(to, 0, 32);
    memcpy(to, codes + at, (size_t)(have < 32 ? have : 32));
}

static void widen_fields(int bits, bool high_first, const int8_t *number,
                         int64_t n, const uint8_t *codes, int16_t *to,
                         int64_t apart)
{
    const int64_t group = 32 * 8 / bits;
    uint8_t some[32];
    int8_t sorted[32 * 4];
    for (int64_t k = 0; k < n; k += group) {
        some_codes(bits, n, codes, k * bits / 8, some);
        for (int64_t i = 0; i < group; i++)
            sorted[i] = number[code_at(bits, high_first, some, i)];
        widen(group, sorted, NULL, 0, 0, to + place(k, apart), apart);
    }
}

static void scale_fields(bool high_first, const int16_t *level,
                         const int16_t *ratio, int64_t g, int64_t n,
                         const uint8_t *codes, int16_t *to, int64_t apart)
{
    uint8_t some[32];
    for (int64_t k = 0; k < n; k += 64) {
        some_codes(4, n, codes, k / 2, some);
        for (int64_t i = 0; i < 64; i++) {
            const int32_t a = level[code_at(4, high_first, some, i)];
            to[place(k + i, apart)] = fine_product(a, ratio[k / g]);
        }
    }
}

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
    .largest = largest,
    .round = round_row,
    .unpack = unpack,
    .turn = turn,
    .ratios = ratios,
    .widen = widen,
    .scale = scale,
    .widen_fields = widen_fields,
    .scale_fields = scale_fields,
    .tile = tile,
};
