/* dotbyte_pack_neon.c - codes as panels of bytes with NEON.
 *
 * Bytes of codes are put where their numbers belong, then each field of them
 * is brought down and looked up. What they stand for is less by 128 than
 * dotbyte.h has it, so that it has a sign, as sdot wants it: codes of 8 bits
 * are the bytes that they are.
 */
#include "kernels/dotbyte.h"

#if defined(__aarch64__)
#include <string.h>

#include "kernels/arm/dotbyte_neon.h"
#include "kernels/arm/neon.h"

enum {
    NR = LB_DOTBYTE_NEON_NR,
    LINES = LB_DOTBYTE_LINES,
    BYTES = LB_DOTBYTE_BYTES,
    APART = NR * 4 /* bytes from quad to quad */
};

/* ---- fields -------------------------------------------------------------- */

typedef struct {
    uint8x16_t number; /* of each code, less the bias */
    uint8x16_t mask;
    bool high_first;
} fields_of;

static fields_of make_fields(const lb_dotbyte_codes *c)
{
    return (fields_of){.number = vsubq_u8(vld1q_u8(c->number),
                                          vdupq_n_u8(LB_DOTBYTE_NEON_BIAS)),
                       .mask = vdupq_n_u8((uint8_t)((1 << c->bits) - 1)),
                       .high_first = c->high_first};
}

/* The i-th fields of 16 bytes. bits is a constant where this is inlined. */
LB_INLINE uint8x16_t field(const int bits, const fields_of *f, uint8x16_t v,
                           int i)
{
    if (bits == 8) return v;
    const int at = bits * (f->high_first ? 8 / bits - 1 - i : i);
    const uint8x16_t down = vshlq_u8(v, vdupq_n_s8((int8_t)-at));
    return vqtbl1q_u8(f->number, vandq_u8(down, f->mask));
}

/* ---- depth along memory -------------------------------------------------- */

/* 16 bytes of four lines: quad q of all of them to v[q]. */
LB_INLINE void turn(const uint8_t *p, int64_t step, uint8x16_t *v)
{
    uint32x4_t a[4];
    LB_UNROLL
    for (int l = 0; l < 4; l++)
        a[l] = vreinterpretq_u32_u8(vld1q_u8(p + l * step));
    const uint64x2_t b[4] = {
        vreinterpretq_u64_u32(vtrn1q_u32(a[0], a[1])),
        vreinterpretq_u64_u32(vtrn2q_u32(a[0], a[1])),
        vreinterpretq_u64_u32(vtrn1q_u32(a[2], a[3])),
        vreinterpretq_u64_u32(vtrn2q_u32(a[2], a[3])),
    };
    v[0] = vreinterpretq_u8_u64(vtrn1q_u64(b[0], b[2]));
    v[1] = vreinterpretq_u8_u64(vtrn1q_u64(b[1], b[3]));
    v[2] = vreinterpretq_u8_u64(vtrn2q_u64(b[0], b[2]));
    v[3] = vreinterpretq_u8_u64(vtrn2q_u64(b[1], b[3]));
}

/* n bytes of each line, a multiple of 16. */
LB_INLINE void along_bits(const int bits, const fields_of *f,
                          const uint8_t *from, int64_t step, int64_t n,
                          int64_t ahead, uint8_t *to)
{
    for (int64_t b = 0; b < n; b += 16, to += 16 * (8 / bits) * NR) {
        for (int l = 0; l < LINES; l += 4) {
            uint8x16_t v[4];
            /* Four lines each time: all of them for 64 bytes. */
            LB_FETCH(from,
                     ahead + b / 64 * 64 + (b / 16 % 4 * 4 + l / 4) * step);
            turn(from + b + l * step, step, v);
            LB_UNROLL
            for (int q = 0; q < 4; q++)
                for (int i = 0; i < 8 / bits; i++)
                    vst1q_u8(to + (q * (8 / bits) + i) * APART + l * 4,
                             field(bits, f, v[q], i));
        }
    }
}

static void along_any(int bits, const fields_of *f, const uint8_t *from,
                      int64_t step, int64_t n, int64_t ahead, uint8_t *to)
{
    switch (bits) {
    case 8:
        along_bits(8, f, from, step, n, ahead, to);
        break;
    case 4:
        along_bits(4, f, from, step, n, ahead, to);
        break;
    case 2:
        along_bits(2, f, from, step, n, ahead, to);
        break;
    default:
        along_bits(1, f, from, step, n, ahead, to);
    }
}

/* What is left of lines, n numbers in fewer than 16 bytes each. */
static void along_rest(int bits, const fields_of *f, const uint8_t *from,
                       int64_t step, int64_t n, uint8_t *to)
{
    uint8_t rest[LINES * 16] = {0};
    uint8_t out[32 * APART]; /* 16 bytes of 8 fields are 32 quads */
    const int64_t bytes = (n * bits + 7) / 8;
    for (int l = 0; l < LINES; l++)
        memcpy(rest + (size_t)l * 16, from + l * step, (size_t)bytes);
    along_any(bits, f, rest, 16, 16, 0, out);
    memcpy(to, out, (size_t)((bytes + 3) / 4 * (8 / bits) * APART));
}

void lb_dotbyte_along_neon(const lb_dotbyte_codes *c, const uint8_t *from,
                           int64_t step, int64_t n, int64_t ahead, uint8_t *to)
{
    const fields_of f = make_fields(c);
    const int64_t whole = n * c->bits / 8 / 16 * 16;
    const int64_t done = whole * 8 / c->bits;
    along_any(c->bits, &f, from, step, whole, ahead, to);
    if (done < n)
        along_rest(c->bits, &f, from + whole, step, n - done, to + done * NR);
}

/* ---- rows along memory --------------------------------------------------- */

/* Four lines of 64 bytes, which a store interleaves. */
LB_INLINE void across_four(const int bits, const fields_of *f,
                           const uint8_t *from, int64_t step, uint8_t *to,
                           int64_t panel)
{
    for (int b = 0; b < BYTES; b += 16) {
        uint8x16_t v[4];
        LB_UNROLL
        for (int l = 0; l < 4; l++)
            v[l] = vld1q_u8(from + l * step + b);
        for (int i = 0; i < 8 / bits; i++, to += panel) {
            const uint8x16x4_t quads = {
                {field(bits, f, v[0], i), field(bits, f, v[1], i),
                 field(bits, f, v[2], i), field(bits, f, v[3], i)}};
            vst4q_u8(to, quads);
        }
    }
}

LB_INLINE void across_bits(const int bits, const fields_of *f,
                           const uint8_t *from, int64_t step, int64_t n,
                           int64_t bytes, int64_t ahead, uint8_t *to,
                           int64_t panel)
{
    uint8_t some[4 * BYTES] = {0};
    for (int64_t k = 0; k < n; k += 4, from += 4 * step, to += APART) {
        for (int l = 0; l < 4; l++)
            LB_FETCH(from, ahead + l * step);
        if (bytes == BYTES && k + 4 <= n) {
            across_four(bits, f, from, step, to, panel);
            continue;
        }
        for (int64_t l = 0; l < 4 && k + l < n; l++)
            memcpy(some + l * BYTES, from + l * step, (size_t)bytes);
        across_four(bits, f, some, BYTES, to, panel);
    }
}

void lb_dotbyte_across_neon(const lb_dotbyte_codes *c, const uint8_t *from,
                            int64_t step, int64_t n, int64_t bytes,
                            int64_t ahead, uint8_t *to, int64_t panel)
{
    const fields_of f = make_fields(c);
    switch (c->bits) {
    case 8:
        across_bits(8, &f, from, step, n, bytes, ahead, to, panel);
        break;
    case 4:
        across_bits(4, &f, from, step, n, bytes, ahead, to, panel);
        break;
    case 2:
        across_bits(2, &f, from, step, n, bytes, ahead, to, panel);
        break;
    default:
        across_bits(1, &f, from, step, n, bytes, ahead, to, panel);
    }
}

/* ---- x ------------------------------------------------------------------- */

/* Where the bytes of eight quads come from, of 32 numbers in order. */
static uint8x16x2_t places_of(int fields)
{
    uint8_t from[32];
    for (int b = 0; b < 32; b++) {
        const int quad = b / 4, group = quad / fields * 4 * fields;
        from[b] = (uint8_t)(group + b % 4 * fields + quad % fields);
    }
    return (uint8x16x2_t){{vld1q_u8(from), vld1q_u8(from + 16)}};
}

/* 32 numbers of 16 bits as eight quads of their low bytes. */
LB_INLINE void put_quads(const int16x8_t *v, uint8x16x2_t place, int8_t *to,
                         int64_t apart)
{
    const int8x16x2_t all = {{vcombine_s8(vmovn_s16(v[0]), vmovn_s16(v[1])),
                              vcombine_s8(vmovn_s16(v[2]), vmovn_s16(v[3]))}};
    int8_t byte[32];
    vst1q_s8(byte, vqtbl2q_s8(all, place.val[0]));
    vst1q_s8(byte + 16, vqtbl2q_s8(all, place.val[1]));
    for (int q = 0; q < 8; q++)
        memcpy(to + q * apart, byte + (size_t)q * 4, 4);
}

LB_INLINE int16x8_t round_8(const float *x, float factor)
{
    const int32x4_t lo = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x), factor));
    const int32x4_t hi = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4), factor));
    return vcombine_s16(vmovn_s32(lo), vmovn_s32(hi));
}

int32_t lb_dotbyte_round_neon(int64_t n, const float *x, float factor,
                              int planes, int fields, int8_t *to, int64_t apart,
                              int64_t plane)
{
    enum { STEP = LB_DOTBYTE_STEP };
    const uint8x16x2_t place = places_of(fields);
    int32x4_t sum = vdupq_n_s32(0);
    for (; n > 0; n -= STEP, x += STEP, to += STEP / 4 * apart) {
        float rest[STEP] = {0};
        int16x8_t v[4], high[4];
        if (n < STEP) memcpy(rest, x, (size_t)n * sizeof *x);
        LB_UNROLL
        for (int i = 0; i < 4; i++) {
            v[i] = round_8((n < STEP ? rest : x) + (ptrdiff_t)8 * i, factor);
            high[i] = vrshrq_n_s16(v[i], 8); /* (v + 128) >> 8 */
            sum = vpadalq_s16(sum, v[i]);
        }
        if (planes == 2) put_quads(high, place, to, apart);
        put_quads(v, place, planes == 2 ? to + plane : to, apart);
    }
    return vaddvq_s32(sum);
}
#endif
