/* q4_0.c - GGUF's Q4_0: 32 codes of 4 bits and a scale that may be negative.
 *
 *     byte  0 1 | 2 + j, j = 0 .. 15                     w = (code - 8) * d
 *           d   | low: code of j, high: code of j + 16
 *
 * d = m / -8, with m the first value of the largest |x|, which so gets code 0;
 * -m would be 16 and is clamped to 15. code = (int)(x * (1/d) + 8.5), each step
 * in f32: halves round up. A block of zeros has d = -0 (bytes 00 80) and codes
 * 8.
 */
#include "formats/gguf_block.h"

static void decode_block(const uint8_t *from, int lo, int n, float *out)
{
    const float d = lb_gguf_get_d(from);
    const int low = lo < 16 ? (lo + n < 16 ? n : 16 - lo) : 0;
    const uint8_t *byte = from + 2;
    for (int i = 0; i < low; i++)
        out[i] = (float)((byte[lo + i] & 15) - 8) * d;
    for (int i = low; i < n; i++)
        out[i] = (float)((byte[lo + i - 16] >> 4) - 8) * d;
}

static const int8_t level[16] = {-8, -7, -6, -5, -4, -3, -2, -1,
                                 0,  1,  2,  3,  4,  5,  6,  7};

static void decode_whole(const lb_decode_kernel *k, const uint8_t *from,
                         int64_t n, float *out)
{
    k->halves32(level, from, n, out);
}

static bool unpack(const lb_unpack_kernel *k, const uint8_t *from, int64_t n,
                   lb_sink to)
{
    return k->halves32(level, from, n, to);
}

/* The error of a code is at most d/2, or d where 16 was clamped to 15; f16 adds
 * 7 d 2^-11 for the value 7 d (and 8 d 2^-11 for -8 d, where the error is d/2).
 * d is max/8. */
static lb_qparam param(const uint8_t *block, int i)
{
    (void)i;
    return (lb_qparam){.scale = lb_gguf_get_d(block), .zero = 8};
}

static void put(uint8_t *block, const int16_t *code, const lb_qparam *p)
{
    lb_gguf_put_d(block, p->scale);
    lb_gguf_put_halves(block + 2, code);
}

static const lb_gguf_recoder recoder = {LB_LEVELS_INT, 0,  15,    8,
                                        false,         32, param, put};

static const lb_gguf_block type = {
    .len = 32,
    .size = 18,
    .encode = &lb_q4_0_encoders,
    .decode = decode_block,
    .decode_whole = decode_whole,
    .unpack = unpack,
    .bound = (1 + 7 * 0x1p-11) / 8,
    .recoder = &recoder,
};

extern const lb_format lb_format_q4_0;
const lb_format lb_format_q4_0 = {
    .struct_size = sizeof(lb_format),
    .name = "q4_0",
    .part = {{.name = "blocks", .raw = true}},
    .relabel = true,
    .decode = lb_gguf_decode,
    .unpack = lb_gguf_unpack,
    .layout = lb_gguf_layout,
    .encode_run = lb_gguf_encode_run,
    .bound = lb_gguf_bound,
    .type = &type,
    .kernels = LB_DECODE_LEVELS,
    .largest = 8 * LB_GGUF_D_MOST,
    .recode = &lb_gguf_recode,
    .integers = &lb_integers_halves32,
};
