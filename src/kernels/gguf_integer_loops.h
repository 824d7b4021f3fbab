/* gguf_integer_loops.h - the part of gguf_loops.h that reads blocks as integers
 * (gguf_integers.h). Drawings of blocks are in gguf_loops.h and formats/.
 *
 *   LOOP_READERS  the lb_gguf_readers to define
 *   LOOP_LOOKUP   optional: the levels of 16 bytes of codes
 */

/* Bytes of a register: shifts are by bits of each. */
typedef uint8_t loop_b16 __attribute__((vector_size(16)));
typedef uint8_t loop_b32 __attribute__((vector_size(32)));

#ifndef LOOP_LOOKUP
#define LOOP_LOOKUP loop_lookup
LOOP_FN void loop_lookup(const int8_t *level, const uint8_t *restrict from,
                         int8_t *restrict code)
{
    for (int i = 0; i < 16; i++) {
        code[i] = level[from[i] & 15];
        code[16 + i] = level[from[i] >> 4];
    }
}
#endif

LOOP_FN void loop_less(const uint8_t *restrict q, int zero, int n,
                       int8_t *restrict code)
{
    for (int i = 0; i < n; i++)
        code[i] = (int8_t)(q[i] - zero);
}

/* ---- blocks of 32, 64 and 128 -------------------------------------------- */

LOOP_FN void read_bytes32(const uint8_t *from, int8_t *code, float *scale)
{
    *scale = loop_half(from);
    memcpy(code, from + 2, 32);
}

/* 16 bytes: the low halves less `zero`, then the high ones. */
LOOP_FN void loop_nibbles(const uint8_t *from, uint8_t zero, int8_t *code)
{
    loop_b16 b;
    memcpy(&b, from, sizeof b);
    const loop_b16 low = (b & 15) - zero, high = (b >> 4) - zero;
    memcpy(code, &low, sizeof low);
    memcpy(code + 16, &high, sizeof high);
}

/* 32 bytes. */
LOOP_FN void loop_nibbles32(const uint8_t *from, int8_t *code)
{
    loop_b32 b;
    memcpy(&b, from, sizeof b);
    const loop_b32 low = b & 15, high = b >> 4;
    memcpy(code, &low, sizeof low);
    memcpy(code + 32, &high, sizeof high);
}

LOOP_FN void read_halves32(const uint8_t *from, int8_t *code, float *scale)
{
    *scale = loop_half(from);
    loop_nibbles(from + 2, 8, code);
}

LOOP_FN void read_levels32(const uint8_t *from, int8_t *code, float *scale)
{
    *scale = loop_half(from);
    LOOP_LOOKUP(lb_gguf_iq4, from + 2, code);
}

LOOP_FN void read_q4_1(const uint8_t *from, int8_t *code, float *scale,
                       float *bias)
{
    *scale = loop_half(from);
    *bias = loop_half(from + 2);
    loop_nibbles(from + 4, 0, code);
}

LOOP_FN void loop_five_bits(const uint8_t *restrict from, uint32_t fifth,
                            int zero, int8_t *restrict code)
{
    for (int i = 0; i < 16; i++) {
        const uint32_t low = from[i] & 15u, high = from[i] >> 4;
        code[i] = (int8_t)((int)(low | (fifth >> i & 1) << 4) - zero);
        code[16 + i] =
            (int8_t)((int)(high | (fifth >> (16 + i) & 1) << 4) - zero);
    }
}

LOOP_FN void read_q5_0(const uint8_t *from, int8_t *code, float *scale)
{
    *scale = loop_half(from);
    loop_five_bits(from + 6, loop_u32(from + 2), 16, code);
}

LOOP_FN void read_q5_1(const uint8_t *from, int8_t *code, float *scale,
                       float *bias)
{
    *scale = loop_half(from);
    *bias = loop_half(from + 2);
    loop_five_bits(from + 8, loop_u32(from + 4), 0, code);
}

LOOP_FN void read_q1_0(const uint8_t *from, int8_t *code, float *scale)
{
    *scale = loop_half(from);
    for (int i = 0; i < 128; i++)
        code[i] = (int8_t)((from[2 + i / 8] >> i % 8 & 1) * 2 - 1);
}

LOOP_FN void read_q2_0(const uint8_t *from, int8_t *code, float *scale)
{
    *scale = loop_half(from);
    for (int i = 0; i < 64; i++)
        code[i] = (int8_t)((from[2 + i / 4] >> i % 4 * 2 & 3) - 1);
}

/* ---- blocks of 256 ------------------------------------------------------- */

/* 64 bytes as loop_quarters has them. */
LOOP_FN void loop_pairs(const uint8_t *from, uint8_t zero, int8_t *code)
{
    for (int k = 0; k < 2; k++, from += 32) {
        loop_b32 b;
        memcpy(&b, from, sizeof b);
        for (int j = 0; j < 4; j++, code += 32, b >>= 2) {
            const loop_b32 q = (b & 3) - zero;
            memcpy(code, &q, sizeof q);
        }
    }
}

LOOP_FN void read_pairs256(const uint8_t *from, int8_t *code, float *scale)
{
    *scale = loop_half(from + 64);
    loop_pairs(from, 1, code);
}

/* Byte i of n, 5 or 4 codes to each; power is 3^k for code k. */
LOOP_FN void loop_trits(const uint8_t *restrict from, int n, int codes,
                        int8_t *restrict code)
{
    int power = 1;
    for (int k = 0; k < codes; k++, power *= 3)
        for (int i = 0; i < n; i++) {
            const uint8_t rest = (uint8_t)(from[i] * power);
            code[n * k + i] = (int8_t)((rest * 3 >> 8) - 1);
        }
}

LOOP_FN void read_trits256(const uint8_t *from, int8_t *code, float *scale)
{
    *scale = loop_half(from + 52);
    loop_trits(from, 32, 5, code);
    loop_trits(from + 32, 16, 5, code + 160);
    loop_trits(from + 48, 4, 4, code + 240);
}

LOOP_FN void read_q2_k(const uint8_t *from, int8_t *code, float *scale,
                       float *bias)
{
    const float d = loop_half(from + 80), dmin = loop_half(from + 82);
    for (int s = 0; s < 16; s++) {
        scale[s] = d * (float)(from[s] & 15);
        bias[s] = -(dmin * (float)(from[s] >> 4));
    }
    loop_pairs(from + 16, 0, code);
}

LOOP_FN void read_q3_k(const uint8_t *from, int8_t *code, float *scale)
{
    const float d = loop_half(from + 108);
    loop_codes q;
    for (int s = 0; s < 16; s++)
        scale[s] = d * (float)loop_q3_scale(from + 96, s);
    loop_quarters(from + 32, q);
    loop_or(from, 2, q);
    loop_less(q, 4, 256, code);
}

/* 8 runs of 32 with a scale and a minimum. */
LOOP_FN void read_k_scales(const uint8_t *from, float *scale, float *bias)
{
    const float d = loop_half(from), dmin = loop_half(from + 2);
    for (int s = 0; s < 8; s++) {
        scale[s] = d * (float)loop_k_scale(from + 4, s, false);
        bias[s] = -(dmin * (float)loop_k_scale(from + 4, s, true));
    }
}

LOOP_FN void read_q4_k(const uint8_t *from, int8_t *code, float *scale,
                       float *bias)
{
    read_k_scales(from, scale, bias);
    for (int k = 0; k < 4; k++)
        loop_nibbles32(from + 16 + 32 * k, code + 64 * k);
}

LOOP_FN void read_q5_k(const uint8_t *from, int8_t *code, float *scale,
                       float *bias)
{
    read_k_scales(from, scale, bias);
    for (int k = 0; k < 4; k++)
        loop_nibbles32(from + 48 + 32 * k, code + 64 * k);
    loop_or(from + 16, 4, (uint8_t *)code);
}

LOOP_FN void read_q6_k(const uint8_t *from, int8_t *code, float *scale)
{
    const float d = loop_half(from + 208);
    loop_codes q;
    for (int s = 0; s < 16; s++)
        scale[s] = d * (float)(int8_t)from[192 + s];
    loop_six(from, q);
    loop_less(q, 32, 256, code);
}

LOOP_FN void read_iq4_xs(const uint8_t *from, int8_t *code, float *scale)
{
    const float d = loop_half(from);
    for (int s = 0; s < 8; s++) {
        scale[s] = d * (float)loop_iq4_xs_scale(from, s);
        LOOP_LOOKUP(lb_gguf_iq4, from + 8 + 16 * s, code + 32 * s);
    }
}

/* ---- the table ----------------------------------------------------------- */

#define LOOP_ONE_true(NAME)  read_##NAME(from, code, scale, bias)
#define LOOP_ONE_false(NAME) read_##NAME(from, code, scale)
#define LOOP_READ(NAME, LEN, SIZE, RUN, BIAS)                                  \
    LOOP_FN void read_all_##NAME(const uint8_t *from, int64_t n, int8_t *code, \
                                 float *scale, float *bias)                    \
    {                                                                          \
        (void)bias;                                                            \
        for (; n > 0; n--, from += (SIZE), code += (LEN)) {                    \
            LOOP_ONE_##BIAS(NAME);                                             \
            scale += (LEN) / (RUN);                                            \
            if (BIAS) bias += (LEN) / (RUN);                                   \
        }                                                                      \
    }
/* All have one type, although some do not write biases.
 * NOLINTNEXTLINE(readability-non-const-parameter) */
LB_GGUF_INTEGER_TYPES(LOOP_READ)

#define LOOP_READER(NAME, ...) .NAME = read_all_##NAME,
const lb_gguf_readers LOOP_READERS = {LB_GGUF_INTEGER_TYPES(LOOP_READER)};
