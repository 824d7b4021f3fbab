/* dotint_pack_neon.c - codes to bytes, bytes turned, and rows of panels of w,
 * with NEON.
 */
#include "kernels/dotint.h"

#if defined(__aarch64__)
#include <string.h>

#include "kernels/arm/codes_neon.h"
#include "kernels/arm/dotint_neon.h"

enum { LANES = LB_DOTINT_NEON_LANES, STEP = LB_DOTINT_STEP };

/* ---- codes to bytes ------------------------------------------------------ */

/* The codes of 16 bytes as numbers. */
LB_INLINE void unpack_16(const lb_spread *s, int bits, int8x16_t numbers,
                         uint8x16_t v, int8_t *to)
{
    uint8x16_t byte = s->byte;
    for (int f = 0; f < 8 / bits; f++, to += 16) {
        vst1q_s8(to, vqtbl1q_s8(numbers, lb_codes_at(s, v, byte)));
        byte = vaddq_u8(byte, vdupq_n_u8((uint8_t)(2 * bits)));
    }
}

void lb_dotint_unpack_neon(int bits, bool high_first, const int8_t *number,
                           int64_t n, const uint8_t *codes, int8_t *to)
{
    const lb_spread s = lb_spread_of(bits, high_first);
    const int per = 16 * 8 / bits;
    int8_t table[16] = {0};
    memcpy(table, number, (size_t)1 << bits);
    const int8x16_t numbers = vld1q_s8(table);
    for (; n >= per; n -= per, codes += 16, to += per)
        unpack_16(&s, bits, numbers, vld1q_u8(codes), to);
    if (!n) return;
    uint8_t rest[16] = {0};
    int8_t out[128];
    memcpy(rest, codes, (size_t)((n * bits + 7) / 8));
    unpack_16(&s, bits, numbers, vld1q_u8(rest), out);
    memcpy(to, out, (size_t)n);
}

/* ---- turning ------------------------------------------------------------- */

/* One round of the 16x16 transpose: lines l and l + 8 are interleaved. After
 * four rounds line p has byte p of every line. */
LB_INLINE void interleave(const int8x16_t *from, int8x16_t *to)
{
    LB_UNROLL
    for (int l = 0; l < 8; l++) {
        to[2 * l] = vzip1q_s8(from[l], from[l + 8]);
        to[2 * l + 1] = vzip2q_s8(from[l], from[l + 8]);
    }
}

void lb_dotint_turn_neon(const int8_t *const *line, int64_t n, int8_t *to,
                         int64_t ld)
{
    for (int64_t p = 0; p < n; p += 16, to += 16 * ld) {
        int8x16_t a[16], b[16];
        LB_UNROLL
        for (int l = 0; l < 16; l++)
            a[l] = vld1q_s8(line[l] + p);
        interleave(a, b);
        interleave(b, a);
        interleave(a, b);
        interleave(b, a);
        LB_UNROLL
        for (int l = 0; l < 16; l++)
            vst1q_s8(to + l * ld, a[l]);
    }
}

/* ---- rows of panels ------------------------------------------------------ */

typedef struct {
    uint8x16_t v[2];
} bytes32;

/* The next 32 bytes, of which there may be fewer. */
LB_INLINE bytes32 load_bytes(const uint8_t *from, int64_t n)
{
    uint8_t some[STEP] = {0};
    if (n < STEP) {
        memcpy(some, from, (size_t)n);
        from = some;
    }
    return (bytes32){{vld1q_u8(from), vld1q_u8(from + 16)}};
}

/* 32 codes of one bit, from the n <= 4 bytes that there are. */
LB_INLINE bytes32 load_bits(const lb_spread *s, const uint8_t *from, int64_t n)
{
    uint8_t some[16] = {0};
    memcpy(some, from, (size_t)(n < 4 ? n : 4));
    const uint8x16_t v = vld1q_u8(some);
    return (bytes32){{lb_codes_at(s, v, s->byte),
                      lb_codes_at(s, v, vaddq_u8(s->byte, vdupq_n_u8(2)))}};
}

LB_INLINE bytes32 field_of(bytes32 b, int at, int mask)
{
    const int8x16_t down = vdupq_n_s8((int8_t)-at);
    const uint8x16_t m = vdupq_n_u8((uint8_t)mask);
    return (bytes32){{vandq_u8(vshlq_u8(b.v[0], down), m),
                      vandq_u8(vshlq_u8(b.v[1], down), m)}};
}

/* What a row of w needs at hand. */
typedef struct {
    const lb_dotint_codes *w;
    int8x16_t number, least, slope;
    uint8x16_t level[2]; /* the lower byte of each, and the higher */
    const int16_t *ratio;
} row;

static row row_of(const lb_dotint_codes *w, int64_t j)
{
    row r = {.w = w};
    r.number = r.least = r.slope = vdupq_n_s8(0);
    r.level[0] = r.level[1] = vdupq_n_u8(0);
    if (w->fine) r.ratio = w->ratio + j * w->ratio_step;
    if (w->fine && w->kind != LB_DOTINT_BYTES) {
        const uint8x16_t a = vreinterpretq_u8_s16(vld1q_s16(w->level));
        const uint8x16_t b = vreinterpretq_u8_s16(vld1q_s16(w->level + 8));
        r.level[0] = vuzp1q_u8(a, b);
        r.level[1] = vuzp2q_u8(a, b);
    } else if (w->kind == LB_DOTINT_FIELD) {
        r.number = vld1q_s8(w->number);
    } else if (w->kind != LB_DOTINT_BYTES) {
        r.least = vdupq_n_s8((int8_t)w->least);
        r.slope = vdupq_n_s8((int8_t)w->slope);
    }
    return r;
}

/* Sixteen numbers of 16 bits that are not fine. */
LB_INLINE int16x8x2_t plain_16(const row *r, uint8x16_t code)
{
    int8x16_t v = vreinterpretq_s8_u8(code);
    if (r->w->kind == LB_DOTINT_FIELD)
        v = vqtbl1q_s8(r->number, code);
    else if (r->w->kind != LB_DOTINT_BYTES)
        v = vmlaq_s8(r->least, r->slope, v);
    return (int16x8x2_t){{vmovl_s8(vget_low_s8(v)), vmovl_high_s8(v)}};
}

LB_INLINE int16x8x2_t levels_16(const row *r, uint8x16_t code)
{
    if (r->w->kind == LB_DOTINT_BYTES) {
        const int8x16_t v = vreinterpretq_s8_u8(code);
        return (int16x8x2_t){{vshll_n_s8(vget_low_s8(v), LB_DOTINT_NUMBER_BITS),
                              vshll_high_n_s8(v, LB_DOTINT_NUMBER_BITS)}};
    }
    const uint8x16_t lo = vqtbl1q_u8(r->level[0], code);
    const uint8x16_t hi = vqtbl1q_u8(r->level[1], code);
    return (int16x8x2_t){{vreinterpretq_s16_u8(vzip1q_u8(lo, hi)),
                          vreinterpretq_s16_u8(vzip2q_u8(lo, hi))}};
}

/* (a * b + 2^14) >> 15 is what one instruction does. */
LB_INLINE int16x8_t times_ratio(const row *r, int16x8_t level, int64_t k)
{
    const int16x8_t ratio = r->w->g == 1 ? vld1q_s16(r->ratio + k)
                                         : vdupq_n_s16(r->ratio[k / r->w->g]);
    return vqrdmulhq_s16(level, ratio);
}

/* The 32 numbers from k on. */
LB_INLINE void put_step(const row *r, bytes32 code, int64_t k, int16_t *to,
                        int64_t apart)
{
    LB_UNROLL
    for (int h = 0; h < 2; h++, k += 16, to += 2 * apart) {
        int16x8x2_t n =
            r->w->fine ? levels_16(r, code.v[h]) : plain_16(r, code.v[h]);
        if (r->w->fine) {
            n.val[0] = times_ratio(r, n.val[0], k);
            n.val[1] = times_ratio(r, n.val[1], k + LANES);
        }
        vst1q_s16(to, n.val[0]);
        vst1q_s16(to + apart, n.val[1]);
    }
}

/* Bytes, or one field of each, or fields one after the other. */
static void pack_bytes(const row *r, const uint8_t *codes, int16_t *to,
                       int64_t apart)
{
    const lb_dotint_codes *w = r->w;
    const bool fields = w->kind == LB_DOTINT_FIELDS;
    const int n = fields ? 8 / w->bits : 1;
    const int64_t bytes = (w->depth + n - 1) / n;
    for (int64_t at = 0, k = 0; at < bytes; at += STEP) {
        const bytes32 v = load_bytes(codes + at, bytes - at);
        for (int f = 0; f < n; f++, k += STEP, to += STEP / LANES * apart) {
            bytes32 c = v;
            if (fields)
                c = field_of(v, f * w->bits, (1 << w->bits) - 1);
            else if (w->kind == LB_DOTINT_FIELD)
                c = field_of(v, w->field, w->mask);
            put_step(r, c, k, to, apart);
        }
    }
}

static void pack_bits(const row *r, const uint8_t *codes, int16_t *to,
                      int64_t apart)
{
    const lb_spread s = lb_spread_of(1, r->w->high_first);
    int64_t left = (r->w->depth + 7) / 8;
    for (int64_t k = 0; left > 0; left -= 4, codes += 4, k += STEP) {
        put_step(r, load_bits(&s, codes, left), k, to, apart);
        to += STEP / LANES * apart;
    }
}

void lb_dotint_pack_neon(const lb_dotint_codes *w, int64_t j, int16_t *to,
                         int64_t apart)
{
    const row r = row_of(w, j);
    const uint8_t *codes = w->codes + j * w->step;
    if (w->kind == LB_DOTINT_BITS)
        pack_bits(&r, codes, to, apart);
    else
        pack_bytes(&r, codes, to, apart);
}
#endif
