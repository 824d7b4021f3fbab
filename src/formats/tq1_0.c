/* tq1_0.c - GGUF's TQ1_0: 256 values -1, 0, 1, five to a byte, and a scale.
 *
 *     byte  m = 0 .. 31       32 + m, m = 0 .. 15   48 + m, m = 0 .. 3   52 53
 *     codes k = 0 .. 4: of    k = 0 .. 4: of        k = 0 .. 3: of       d
 *           32 k + m          160 + 16 k + m        240 + 4 k + m
 *
 * A byte is ceil(t * 256 / 243) with t = sum code[k] * 3^(4-k) < 243: a
 * fixed-point fraction. Multiplying it by 3 yields the first code as the carry
 * out of the byte, and leaves the others. w = (code - 1) * d; d = max|x| and
 * code = 1 + x * (1/d), rounded half away from zero, in f32 before d becomes
 * f16.
 */
#include "formats/gguf_block.h"

/* Bytes of a kind are contiguous: `bytes` bytes starting at byte `at`, with
 * `codes` codes each, for values `first` + bytes * k + m. */
static const struct {
    int first, at, bytes, codes;
} kind[] = {{0, 0, 32, 5}, {160, 32, 16, 5}, {240, 48, 4, 4}, {256, 0, 0, 0}};

static void decode_block(const uint8_t *from, int lo, int n, float *out)
{
    static const int power[] = {1, 3, 9, 27, 81};
    const float d = lb_gguf_get_d(from + 52);
    for (int c = 0; n > 0;) {
        while (lo >= kind[c + 1].first)
            c++;
        const int k = (lo - kind[c].first) / kind[c].bytes;
        const int m = (lo - kind[c].first) % kind[c].bytes;
        const int left = kind[c].bytes - m, count = n < left ? n : left;
        const uint8_t *byte = from + kind[c].at + m;
        for (int i = 0; i < count; i++)
            out[i] = (float)(((byte[i] * power[k] & 255) * 3 >> 8) - 1) * d;
        lo += count;
        out += count;
        n -= count;
    }
}

static void decode_whole(const lb_decode_kernel *k, const uint8_t *from,
                         int64_t n, float *out)
{
    k->trits256(from, n, out);
}

static bool unpack(const lb_unpack_kernel *k, const uint8_t *from, int64_t n,
                   lb_sink to)
{
    return k->trits256(from, n, to);
}

/* The error of a code is at most d/2; f16 adds d 2^-11; the rest is for the
 * roundings of 1/d and of x * (1/d). */
static lb_qparam param(const uint8_t *block, int i)
{
    (void)i;
    return (lb_qparam){.scale = lb_gguf_get_d(block + 52), .zero = 1};
}

static void put(uint8_t *block, const int16_t *code, const lb_qparam *p)
{
    for (int c = 0; kind[c].bytes; c++)
        for (int m = 0; m < kind[c].bytes; m++) {
            int t = 0;
            for (int k = 0; k < 5; k++) {
                const int i = kind[c].first + kind[c].bytes * k + m;
                t = t * 3 + (k < kind[c].codes ? code[i] : 0);
            }
            block[kind[c].at + m] = (uint8_t)((t * 256 + 242) / 243);
        }
    lb_gguf_put_d(block + 52, p->scale);
}

static const lb_gguf_recoder recoder = {LB_LEVELS_INT, 0,   2,     1,
                                        false,         256, param, put};

static const lb_gguf_block type = {
    .len = 256,
    .size = 54,
    .encode = &lb_tq1_0_encoders,
    .decode = decode_block,
    .decode_whole = decode_whole,
    .unpack = unpack,
    .bound = 0.5 + 0x1p-11 + 0x1p-20,
    .recoder = &recoder,
};

extern const lb_format lb_format_tq1_0;
const lb_format lb_format_tq1_0 = {
    .struct_size = sizeof(lb_format),
    .name = "tq1_0",
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
    .integers = &lb_integers_trits256,
};
