/* decode_neon.c - codes to numbers with NEON.
 *
 *   bytes   a lookup leaves each at the top of a lane, zeros below, and the
 *           conversion divides by 2^24
 *   halves, fields, digits   bytes of levels are looked up and zipped to f32;
 *           those of few codes are multiplied with the scale beforehand
 *
 * Ends of spans are done over again with a vector that ends where they do;
 * what is shorter than one is the reference's.
 */
#include "kernels/decode.h"

#if defined(__aarch64__)
#include <string.h>

#include "kernels/arm/codes_neon.h"

LB_INLINE void store_16(const float32x4_t *v, float *out)
{
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        vst1q_f32(out + 4 * q, v[q]);
}

/* ---- bytes --------------------------------------------------------------- */

/* Powers of two keep 127 times a huge number from overflowing, and change no
 * bit of others. */
LB_INLINE float32x4_t by_absmax(float32x4_t code, float32x4_t s)
{
    const float32x4_t one = vdupq_n_f32(1);
    const uint32x4_t huge = vcagtq_f32(s, vdupq_n_f32(0x1p120f));
    const float32x4_t v =
        vmulq_f32(s, vbslq_f32(huge, vdupq_n_f32(0x1p-8f), one));
    const float32x4_t y =
        vmulq_f32(vmulq_f32(code, v), vdupq_n_f32(1.0f / 127.0f));
    return vmulq_f32(y, vbslq_f32(huge, vdupq_n_f32(0x1p8f), one));
}

LB_INLINE float32x4_t scaled(lb_meaning meaning, float32x4_t code,
                             float32x4_t s)
{
    switch (meaning) {
    case LB_MEANS_ABSMAX:
        return by_absmax(code, s);
    case LB_MEANS_INVERSE:
        return vdivq_f32(code, s);
    default:
        return vmulq_f32(code, s);
    }
}

LB_INLINE void bytes_16(lb_meaning meaning, const int8_t *code, float32x4_t s,
                        float *out)
{
    float32x4_t v[4];
    lb_floats_16(vld1q_s8(code), v);
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        v[q] = scaled(meaning, v[q], s);
    store_16(v, out);
}

LB_INLINE void byte_spans(lb_meaning meaning, const int8_t *code, int64_t n,
                          lb_spans s, float *out)
{
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const float32x4_t v = vdupq_n_f32(s.value[k]);
        const int64_t m = end - i;
        if (m < 16) {
            const lb_spans one = {s.value + k, m, m};
            lb_decode_ref.bytes(meaning, code + i, m, one, out + i);
        } else {
            for (; i + 16 <= end; i += 16)
                bytes_16(meaning, code + i, v, out + i);
            if (i < end) bytes_16(meaning, code + end - 16, v, out + end - 16);
        }
        i = end;
    }
}

/* A scale for each, which may lie where the numbers go. */
LB_INLINE void each_byte(lb_meaning meaning, const int8_t *code, int64_t n,
                         const float *s, float *out)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        float32x4_t v[4];
        lb_floats_16(vld1q_s8(code + i), v);
        LB_UNROLL
        for (int q = 0; q < 4; q++)
            v[q] = scaled(meaning, v[q], vld1q_f32(s + i + 4 * q));
        store_16(v, out + i);
    }
    const lb_spans rest = {s + i, 1, 1};
    lb_decode_ref.bytes(meaning, code + i, n - i, rest, out + i);
}

/* meaning is a constant where this is inlined. */
LB_INLINE void bytes_as(lb_meaning meaning, const int8_t *code, int64_t n,
                        lb_spans s, float *out)
{
    if (s.each == 1 && s.head == 1)
        each_byte(meaning, code, n, s.value, out);
    else
        byte_spans(meaning, code, n, s, out);
}

static void bytes(lb_meaning meaning, const int8_t *code, int64_t n, lb_spans s,
                  float *out)
{
    switch (meaning) {
    case LB_MEANS_ABSMAX:
        bytes_as(LB_MEANS_ABSMAX, code, n, s, out);
        return;
    case LB_MEANS_INVERSE:
        bytes_as(LB_MEANS_INVERSE, code, n, s, out);
        return;
    default:
        bytes_as(LB_MEANS_SCALE, code, n, s, out);
    }
}

/* ---- halves of bytes ----------------------------------------------------- */

LB_INLINE void levels_16(const lb_planes *p, uint8x16_t index, float32x4_t s,
                         float *out)
{
    float32x4_t v[4];
    lb_look_up(p, index, false, v);
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        v[q] = vmulq_f32(s, v[q]);
    store_16(v, out);
}

LB_INLINE void halves_32(const lb_planes *p, const uint8_t *byte, float32x4_t s,
                         float *out)
{
    const uint8x16_t v = vld1q_u8(byte);
    const uint8x16_t high = vshrq_n_u8(v, 4);
    const uint8x16_t low = vandq_u8(v, vdupq_n_u8(15));
    levels_16(p, vzip1q_u8(high, low), s, out);
    levels_16(p, vzip2q_u8(high, low), s, out + 16);
}

/* From the first of a byte on; n >= 32 is even. */
static void half_span(const lb_planes *p, const uint8_t *byte, int64_t n,
                      float s, float *out)
{
    const float32x4_t v = vdupq_n_f32(s);
    for (int64_t i = 0; i + 32 <= n; i += 32)
        halves_32(p, byte + i / 2, v, out + i);
    if (n % 32) halves_32(p, byte + n / 2 - 16, v, out + n - 32);
}

/* Any span of at least 33; odd: it begins in a low half. */
static void ragged_span(const lb_planes *p, const float *level,
                        const uint8_t *byte, bool odd, int64_t n, float s,
                        float *out)
{
    if (odd) {
        *out++ = s * level[*byte++ & 15];
        n--;
    }
    half_span(p, byte, n & ~INT64_C(1), s, out);
    if (n % 2) out[n - 1] = s * level[byte[n / 2] >> 4];
}

static void halves(const float *level, const uint8_t *byte, int64_t skip,
                   int64_t n, lb_spans s, float *out)
{
    const lb_planes p = lb_planes_of(level);
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const int64_t at = skip + i, m = end - i;
        if (m > 32) {
            ragged_span(&p, level, byte + at / 2, at % 2, m, s.value[k],
                        out + i);
        } else if (m == 32 && at % 2 == 0) {
            half_span(&p, byte + at / 2, m, s.value[k], out + i);
        } else {
            const lb_spans one = {s.value + k, m, m};
            lb_decode_ref.halves(level, byte + at / 2, at % 2, m, one, out + i);
        }
        i = end;
    }
}

/* ---- fields -------------------------------------------------------------- */

/* What a scale makes of four codes, four times. */
LB_INLINE lb_planes planes_of_4(float32x4_t four)
{
    const float32x4_t all[4] = {four, four, four, four};
    float level[16];
    store_16(all, level);
    return lb_planes_of(level);
}

/* From the first of a byte on; returns how many were done, all but less than
 * 16. */
LB_INLINE int64_t field_span(const int bits, const lb_spread *spread,
                             const lb_planes *p, const uint8_t *byte, int64_t n,
                             float *out)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint32_t word = 0;
        memcpy(&word, byte + i * bits / 8, 2 * (size_t)bits);
        const uint8x16_t v = vreinterpretq_u8_u32(vdupq_n_u32(word));
        float32x4_t w[4];
        lb_look_up(p, lb_codes_at(spread, v, spread->byte), false, w);
        store_16(w, out + i);
    }
    return i;
}

/* The whole of a span that lies anywhere. */
LB_INLINE void ragged_fields(const int bits, lb_fields f,
                             const lb_spread *spread, const uint8_t *row,
                             int64_t at, int64_t n, float s, float *out)
{
    const int per = 8 / bits;
    const float least = (float)f.least, step = (float)f.step;
    const float32x4_t code = {least, least + step, least + 2 * step,
                              least + 3 * step};
    const float32x4_t v = vdupq_n_f32(s);
    int64_t i = (per - at % per) % per;
    if (n < i + 16) i = n;
    if (i) lb_decode_ref.fields(f, row, at, i, (lb_spans){&s, i, i}, out);
    if (i == n) return;
    const lb_planes p =
        planes_of_4(f.divides ? vdivq_f32(code, v) : vmulq_f32(code, v));
    i += field_span(bits, spread, &p, row + (at + i) / per, n - i, out + i);
    const lb_spans rest = {&s, n - i, n - i};
    if (i < n) lb_decode_ref.fields(f, row, at + i, n - i, rest, out + i);
}

LB_INLINE void field_spans(const int bits, lb_fields f, const uint8_t *row,
                           int64_t at, int64_t n, lb_spans s, float *out)
{
    const lb_spread spread = lb_spread_of(bits, false);
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        ragged_fields(bits, f, &spread, row, at + i, end - i, s.value[k],
                      out + i);
        i = end;
    }
}

static void fields(lb_fields f, const uint8_t *row, int64_t at, int64_t n,
                   lb_spans s, float *out)
{
    static const float one = 1;
    if (!s.value) {
        s = (lb_spans){&one, n, n};
        f.divides = false;
    }
    if (f.bits == 1)
        field_spans(1, f, row, at, n, s, out);
    else
        field_spans(2, f, row, at, n, s, out);
}

/* ---- levels of bytes ----------------------------------------------------- */

/* Nothing looks up 256 entries of f32 faster than loads do. */
static void levels(const float *level, const uint8_t *code, int64_t n,
                   lb_spans s, float *out)
{
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const float v = s.value[k];
        for (; i + 4 <= end; i += 4) {
            const float32x4_t four = {level[code[i]], level[code[i + 1]],
                                      level[code[i + 2]], level[code[i + 3]]};
            vst1q_f32(out + i, vmulq_n_f32(four, v));
        }
        for (; i < end; i++)
            out[i] = v * level[code[i]];
    }
}

/* ---- blocks of GGUF files ------------------------------------------------ */

LB_INLINE float32x4_t scale_at(const uint8_t *from)
{
    uint16_t d;
    memcpy(&d, from, sizeof d);
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(d)));
}

LB_INLINE void put_bytes(int8x16_t code, float32x4_t d, float *out)
{
    float32x4_t v[4];
    lb_floats_16(code, v);
    LB_UNROLL
    for (int q = 0; q < 4; q++)
        v[q] = vmulq_f32(v[q], d);
    store_16(v, out);
}

static void bytes32(const uint8_t *from, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++, from += 34, out += 32) {
        const float32x4_t d = scale_at(from);
        put_bytes(vreinterpretq_s8_u8(vld1q_u8(from + 2)), d, out);
        put_bytes(vreinterpretq_s8_u8(vld1q_u8(from + 18)), d, out + 16);
    }
}

static void halves32(const int8_t *level, const uint8_t *from, int64_t n,
                     float *out)
{
    const int8x16_t table = vld1q_s8(level);
    for (int64_t i = 0; i < n; i++, from += 18, out += 32) {
        const float32x4_t d = scale_at(from);
        const uint8x16_t b = vld1q_u8(from + 2);
        const uint8x16_t low = vandq_u8(b, vdupq_n_u8(15));
        put_bytes(vqtbl1q_s8(table, low), d, out);
        put_bytes(vqtbl1q_s8(table, vshrq_n_u8(b, 4)), d, out + 16);
    }
}

/* Codes 0 .. 3 stand for -1 .. 2. */
LB_INLINE lb_planes signs_of(float32x4_t d)
{
    return planes_of_4(vmulq_f32((float32x4_t){-1, 0, 1, 2}, d));
}

LB_INLINE void put_signs(const lb_planes *p, uint8x16_t index, float *out)
{
    float32x4_t v[4];
    lb_look_up(p, index, false, v);
    store_16(v, out);
}

static void pairs256(const uint8_t *from, int64_t n, float *out)
{
    const uint8x16_t mask = vdupq_n_u8(3);
    for (int64_t i = 0; i < n; i++, from += 66, out += 256) {
        const lb_planes p = signs_of(scale_at(from + 64));
        for (int m = 0; m < 64; m += 16) {
            const uint8x16_t b = vld1q_u8(from + m);
            float *to = out + m / 32 * 128 + m % 32;
            put_signs(&p, vandq_u8(b, mask), to);
            put_signs(&p, vandq_u8(vshrq_n_u8(b, 2), mask), to + 32);
            put_signs(&p, vandq_u8(vshrq_n_u8(b, 4), mask), to + 64);
            put_signs(&p, vshrq_n_u8(b, 6), to + 96);
        }
    }
}

/* A byte times 3: what is carried over 256. */
LB_INLINE uint8x16_t carry(uint8x16_t b)
{
    return vshrq_n_u8(vhaddq_u8(b, vshrq_n_u8(b, 1)), 6);
}

/* Five digits of each of 16 bytes. */
LB_INLINE void put_digits(const lb_planes *p, const uint8_t *from, int step,
                          float *out)
{
    uint8x16_t b = vld1q_u8(from);
    for (int k = 0; k < 5; k++, out += step) {
        put_signs(p, carry(b), out);
        b = vmulq_u8(b, vdupq_n_u8(3));
    }
}

static void trits256(const uint8_t *from, int64_t n, float *out)
{
    const uint8x16_t power = {1, 1, 1, 1, 3,  3,  3,  3,
                              9, 9, 9, 9, 27, 27, 27, 27};
    for (int64_t i = 0; i < n; i++, from += 54, out += 256) {
        const lb_planes p = signs_of(scale_at(from + 52));
        uint32_t last;
        memcpy(&last, from + 48, sizeof last);
        const uint8x16_t b = vreinterpretq_u8_u32(vdupq_n_u32(last));
        put_digits(&p, from, 32, out);
        put_digits(&p, from + 16, 32, out + 16);
        put_digits(&p, from + 32, 16, out + 160);
        put_signs(&p, carry(vmulq_u8(b, power)), out + 240);
    }
}

const lb_decode_kernel lb_decode_neon = {
    .name = "decode neon",
    .bytes = bytes,
    .halves = halves,
    .fields = fields,
    .levels = levels,
    .bytes32 = bytes32,
    .halves32 = halves32,
    .pairs256 = pairs256,
    .trits256 = trits256,
};
#endif
