/* iq4_nl.c - GGUF's IQ4_NL: 32 indices of 4 bits into a table, and a scale.
 *
 *     byte  0 1 | 2 + j, j = 0 .. 15                     w = d * table[code]
 *           d   | low: code of j, high: code of j + 16
 *
 * The encoder is ggml's quantize_iq4_nl without an importance matrix, which is
 * what llama-quantize writes; quantize_row_iq4_nl_ref tries fewer scales. With
 * m the first value of the largest |x|, it tries the inverse scales 127/m and
 * -134/m .. -120/m. Each gives codes, and these codes give the d that minimizes
 * the sum of x^2 (x - w)^2. The final codes are computed with the best d. There
 * is no level 0: a zero among other values becomes d. Blocks below 1e-15 are
 * stored as d = 0 with codes 8.
 */
#include "formats/gguf_block.h"

static const int *const table = lb_iq4_nl_levels;

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

static void levels(int8_t *level)
{
    for (int c = 0; c < 16; c++)
        level[c] = (int8_t)table[c];
}

static void decode_whole(const lb_decode_kernel *k, const uint8_t *from,
                         int64_t n, float *out)
{
    int8_t level[16];
    levels(level);
    k->halves32(level, from, n, out);
}

static bool unpack(const lb_unpack_kernel *k, const uint8_t *from, int64_t n,
                   lb_sink to)
{
    int8_t level[16];
    levels(level);
    return k->halves32(level, from, n, to);
}

/* With v = x * id and w the level of its code, d * id = sum v^3 w / sum v^2
 * w^2. Over all blocks in which one |v| is A and none is larger this is at
 * least 0.895, and at least 0.9046 for A = 134 (computed by
 * tools/gen_gguf_types.py), so d >= 0.9046/134 of max|x|. A value of that size
 * is clamped to 113 d and loses up to 0.2372; f16 adds 113 d 2^-11 < 0.0005. No
 * other scale and no gap of the table loses more, whichever scale wins. */
static lb_qparam param(const uint8_t *block, int i)
{
    (void)i;
    return (lb_qparam){.scale = lb_gguf_get_d(block)};
}

static void put(uint8_t *block, const int16_t *code, const lb_qparam *p)
{
    lb_gguf_put_d(block, p->scale);
    lb_gguf_put_halves(block + 2, code);
}

static const lb_gguf_recoder recoder = {LB_LEVELS_IQ4, 0,  15,    0,
                                        false,         32, param, put};

static const lb_gguf_block type = {
    .len = 32,
    .size = 18,
    .encode = &lb_iq4_nl_encoders,
    .decode = decode_block,
    .decode_whole = decode_whole,
    .unpack = unpack,
    .bound = 0.24,
    .recoder = &recoder,
};

extern const lb_format lb_format_iq4_nl;
const lb_format lb_format_iq4_nl = {
    .struct_size = sizeof(lb_format),
    .name = "iq4_nl",
    .part = {{.name = "blocks", .raw = true}},
    .relabel = true,
    .decode = lb_gguf_decode,
    .unpack = lb_gguf_unpack,
    .layout = lb_gguf_layout,
    .encode_run = lb_gguf_encode_run,
    .bound = lb_gguf_bound,
    .type = &type,
    .kernels = LB_DECODE_LEVELS,
    .largest = 100 * LB_GGUF_D_MOST, /* d is at most 1.1 / 120 of max|x| */
    .searches = true,
    .recode = &lb_gguf_recode,
    .integers = &lb_integers_levels32,
};
