/* tq2_0.c - GGUF's TQ2_0: 256 values -1, 0, 1 in two bits each, and a scale.
 *
 *     byte  32 g + m, g = 0, 1, m = 0 .. 31      | 64 65
 *           bits 2 k: code of 128 g + 32 k + m   | d       w = (code - 1) * d
 *
 * d = max|x| and code = 1 + x * (1/d), rounded half away from zero, in f32
 * before d becomes f16. A block of zeros has codes 1 (bytes 55) and d = 0. Bits
 * 3, which no encoder writes, decode to 2, as in ggml.
 */
#include "formats/gguf_block.h"

static void decode_block(const uint8_t *from, int lo, int n, float *out)
{
    const float d = lb_gguf_get_d(from + 64);
    while (n > 0) { /* at most 32 values, whose bits have the same position */
        const int m = lo % 32, count = n < 32 - m ? n : 32 - m;
        const uint8_t *byte = from + lo / 128 * 32 + m;
        const int shift = lo % 128 / 32 * 2;
        for (int i = 0; i < count; i++)
            out[i] = (float)((byte[i] >> shift & 3) - 1) * d;
        lo += count;
        out += count;
        n -= count;
    }
}

static void decode_whole(const lb_decode_kernel *k, const uint8_t *from,
                         int64_t n, float *out)
{
    k->pairs256(from, n, out);
}

static bool unpack(const lb_unpack_kernel *k, const uint8_t *from, int64_t n,
                   lb_sink to)
{
    return k->pairs256(from, n, to);
}

/* The error of a code is at most d/2; f16 adds d 2^-11; the rest is for the
 * roundings of 1/d and of x * (1/d). */
static lb_qparam param(const uint8_t *block, int i)
{
    (void)i;
    return (lb_qparam){.scale = lb_gguf_get_d(block + 64), .zero = 1};
}

static void put(uint8_t *block, const int16_t *code, const lb_qparam *p)
{
    for (int i = 0; i < 64; i++) {
        const int16_t *first = code + i / 32 * 128 + i % 32;
        block[i] = (uint8_t)(first[0] | first[32] << 2 | first[64] << 4 |
                             first[96] << 6);
    }
    lb_gguf_put_d(block + 64, p->scale);
}

static const lb_gguf_recoder recoder = {LB_LEVELS_INT, 0,   3,     1,
                                        false,         256, param, put};

static const lb_gguf_block type = {
    .len = 256,
    .size = 66,
    .encode = &lb_tq2_0_encoders,
    .decode = decode_block,
    .decode_whole = decode_whole,
    .unpack = unpack,
    .bound = 0.5 + 0x1p-11 + 0x1p-20,
    .recoder = &recoder,
};

extern const lb_format lb_format_tq2_0;
const lb_format lb_format_tq2_0 = {
    .struct_size = sizeof(lb_format),
    .name = "tq2_0",
    .part = {{.name = "blocks", .raw = true}},
    .relabel = true,
    .decode = lb_gguf_decode,
    .unpack = lb_gguf_unpack,
    .layout = lb_gguf_layout,
    .encode_run = lb_gguf_encode_run,
    .bound = lb_gguf_bound,
    .type = &type,
    .kernels = LB_DECODE_LEVELS,
    .largest = LB_GGUF_D_MOST,
    .recode = &lb_gguf_recode,
    .integers = &lb_integers_pairs256,
};
