/* iq4_nl.c - GGUF's IQ4_NL: 32 codes of 4 bits into a table, and a scale.
 *
 *     byte  0 1 | 2 + j, j = 0 .. 15                     w = d * table[code]
 *           d   | low: code of j, high: code of j + 16
 *
 * The encoder is ggml's quantize_iq4_nl without an importance matrix, which is
 * what llama-quantize writes; quantize_row_iq4_nl_ref tries fewer scales. With
 * m the first number of the largest |x| it tries the inverse scales 127/m and
 * -134/m .. -120/m: each gives codes, and those the d with the least sum of
 * x^2 (x - w)^2. Codes are then found anew with the best d. There is no level
 * 0: next to others, a zero becomes d. Blocks below 1e-15 are d = 0, codes 8.
 */
#include "formats/gguf_block.h"

enum { TRIES = 16 };

static const int table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                              1,    13,   25,  38,  53,  69,  89,  113};

/* Halfway between the k-th of the table and the next: a tie is the upper's. */
static inline float middle(int k)
{
    return 0.5f * (float)(table[k] + table[k + 1]);
}

/* 15 minus the number of middles above it: the same comparisons at every
 * instruction-set level, and 15 for NaN, as ggml's search has it. */
static int code_of(float v)
{
    int code = 15;
    for (int k = 0; k < 15; k++)
        code -= v < middle(k);
    return code;
}

/* table[code_of(v)], by masks: both compilers make vectors of them. */
static inline float level_of(float v)
{
    int level = table[15];
    for (int k = 0; k < 15; k++)
        level -= -(v < middle(k)) & (table[k + 1] - table[k]);
    return (float)level;
}

/* For each inverse scale id[t] the sums x^2 w x and x^2 w w of its levels w, in
 * the order of the elements: t runs inside, so that lanes can be tries. */
static void try_all(const float *x, const float *id, float *sum_wx,
                    float *sum_ww)
{
    for (int t = 0; t < TRIES; t++)
        sum_wx[t] = sum_ww[t] = 0;
    for (int i = 0; i < 32; i++) {
        const float weight = x[i] * x[i];
        for (int t = 0; t < TRIES; t++) {
            const float w = level_of(id[t] * x[i]);
            sum_wx[t] += weight * w * x[i];
            sum_ww[t] += weight * w * w;
        }
    }
}

static float best_scale(const float *x, float m)
{
    float id[TRIES], sum_wx[TRIES], sum_ww[TRIES];
    id[0] = 1 / (m / 127);
    for (int t = 1; t < TRIES; t++)
        id[t] = (float)(t - 8 - 127) / m;
    try_all(x, id, sum_wx, sum_ww);
    float d = sum_ww[0] > 0 ? sum_wx[0] / sum_ww[0] : 0;
    float best = d * sum_wx[0];
    for (int t = 1; t < TRIES; t++)
        if (sum_ww[t] > 0 && sum_wx[t] * sum_wx[t] > best * sum_ww[t]) {
            d = sum_wx[t] / sum_ww[t];
            best = d * sum_wx[t];
        }
    return d;
}

static void encode_block(const float *x, uint8_t *to)
{
    const float m = lb_gguf_peak(x, 32);
    const float d = fabsf(m) < 1e-15f ? 0 : best_scale(x, m);
    const float id = d != 0 ? 1 / d : 0;
    lb_gguf_put_d(to, d);
    for (int j = 0; j < 16; j++)
        to[2 + j] =
            (uint8_t)(code_of(id * x[j]) | code_of(id * x[j + 16]) << 4);
}

static void decode_block(const uint8_t *from, int lo, int n, float *out)
{
    const float d = lb_gguf_get_d(from);
    const int low = lo < 16 ? (lo + n < 16 ? n : 16 - lo) : 0;
    const uint8_t *byte = from + 2;
    for (int i = 0; i < low; i++)
        out[i] = d * (float)table[byte[lo + i] & 15];
    for (int i = low; i < n; i++)
        out[i] = d * (float)table[byte[lo + i - 16] >> 4];
}

static void decode_whole(const lb_decode_kernel *k, const uint8_t *from,
                         int64_t n, float *out)
{
    int8_t level[16];
    for (int c = 0; c < 16; c++)
        level[c] = (int8_t)table[c];
    k->halves32(level, from, n, out);
}

/* With v = x * id and w its code's value, d * id = sum v^3 w / sum v^2 w^2.
 * Over all blocks in which one |v| is A and none is larger that is at least
 * 0.895, and at least 0.9046 for A = 134 (tools/gen_gguf_types.py computes
 * both), so d >= 0.9046/134 of max|x|, and a number of that size is clamped to
 * 113 d: it loses up to 0.2372, f16 adds 113 d 2^-11 < 0.0005. No other tries
 * or gaps of the table lose as much, whichever try wins. */
static const lb_gguf_block type = {
    .len = 32,
    .size = 18,
    .encode = encode_block,
    .decode = decode_block,
    .decode_whole = decode_whole,
    .bound = 0.24,
};

extern const lb_format lb_format_iq4_nl;
const lb_format lb_format_iq4_nl = {
    .struct_size = sizeof(lb_format),
    .name = "iq4_nl",
    .part = {{.name = "blocks", .raw = true}},
    .relabel = true,
    .decode = lb_gguf_decode,
    .layout = lb_gguf_layout,
    .encode_run = lb_gguf_encode_run,
    .bound = lb_gguf_bound,
    .type = &type,
    .kernels = LB_DECODE_LEVELS,
    .largest = 100 * LB_GGUF_D_MOST, /* d is at most 1.1 / 120 of it */
    .searches = true,
};
