/* q8_0.c - GGUF's Q8_0: 32 signed bytes and a scale.
 *
 *     byte  0 1 | 2 .. 33          w = code * d
 *           d   | code 0 .. 31
 *
 * d = max|x| / 127 and code = x * (1/d), rounded half away from zero, both in
 * f32 before d becomes f16. A block of zeros is 34 zero bytes.
 */
#include "formats/gguf_block.h"

static void decode_block(const uint8_t *from, int lo, int n, float *out)
{
    const float d = lb_gguf_get_d(from);
    const int8_t *code = (const int8_t *)from + 2 + lo;
    for (int i = 0; i < n; i++)
        out[i] = (float)code[i] * d;
}

static void decode_whole(const lb_decode_kernel *k, const uint8_t *from,
                         int64_t n, float *out)
{
    k->bytes32(from, n, out);
}

static bool unpack(const lb_unpack_kernel *k, const uint8_t *from, int64_t n,
                   lb_sink to)
{
    return k->bytes32(from, n, to);
}

/* The error of a code is at most d/2, with d = max/127; f16 adds 127 d 2^-11;
 * the rest is for the roundings of 1/d and of x * (1/d), 127 * 2^-24 each. */
static lb_qparam param(const uint8_t *block, int i)
{
    (void)i;
    return (lb_qparam){.scale = lb_gguf_get_d(block)};
}

static void put(uint8_t *block, const int16_t *code, const lb_qparam *p)
{
    lb_gguf_put_d(block, p->scale);
    for (int i = 0; i < 32; i++)
        block[2 + i] = (uint8_t)code[i];
}

static const lb_gguf_recoder recoder = {LB_LEVELS_INT, -128, 127,   0,
                                        false,         32,   param, put};

static const lb_gguf_block type = {
    .len = 32,
    .size = 34,
    .encode = &lb_q8_0_encoders,
    .decode = decode_block,
    .decode_whole = decode_whole,
    .unpack = unpack,
    .bound = 1.0 / 254 + 0x1p-11 + 0x1p-20,
    .recoder = &recoder,
};

extern const lb_format lb_format_q8_0;
const lb_format lb_format_q8_0 = {
    .struct_size = sizeof(lb_format),
    .name = "q8_0",
    .part = {{.name = "blocks", .raw = true}},
    .relabel = true,
    .decode = lb_gguf_decode,
    .unpack = lb_gguf_unpack,
    .layout = lb_gguf_layout,
    .encode_run = lb_gguf_encode_run,
    .bound = lb_gguf_bound,
    .type = &type,
    .kernels = LB_DECODE_LEVELS,
    .largest = 127 * LB_GGUF_D_MOST,
    .recode = &lb_gguf_recode,
    .integers = &lb_integers_bytes32,
};
