/* dotbyte_ref.c - products of bytes in portable C: the specification. */
#include <math.h>
#include <string.h>

#include "kernels/dotbyte.h"

enum { MR = 4, NR = 16 };

static int64_t whole_steps(int64_t n)
{
    return (n + LB_DOTBYTE_STEP - 1) / LB_DOTBYTE_STEP * LB_DOTBYTE_STEP;
}

/* Where number k of a row goes: its quad, and its byte of that. */
typedef struct {
    int64_t quad, byte;
} place;

static place place_of(int64_t k, int fields)
{
    const int64_t group = (int64_t)4 * fields;
    return (place){k / group * fields + k % fields, k % group / fields};
}

static int32_t round_row(int64_t n, const float *x, float factor, int planes,
                         int fields, int8_t *to, int64_t apart, int64_t plane)
{
    int32_t sum = 0;
    for (int64_t k = 0; k < whole_steps(n); k++) {
        const place p = place_of(k, fields);
        const int32_t v = k < n ? (int32_t)lrintf(x[k] * factor) : 0;
        const int32_t high = (v + 128) >> 8;
        int8_t *const at = to + p.quad * apart + p.byte;
        sum += v;
        *at = (int8_t)(planes == 2 ? high : v);
        if (planes == 2) at[plane] = (int8_t)(v - 256 * high);
    }
    return sum;
}

/* Code i of a line. */
static uint8_t byte_of(const lb_dotbyte_codes *c, const uint8_t *line,
                       int64_t i)
{
    if (c->bits == 8) return (uint8_t)(line[i] ^ 128);
    const int fields = 8 / c->bits, at = (int)(i % fields);
    const int field = c->high_first ? fields - 1 - at : at;
    return c
        ->number[line[i / fields] >> (field * c->bits) & ((1 << c->bits) - 1)];
}

static void along(const lb_dotbyte_codes *c, const uint8_t *from, int64_t step,
                  int64_t n, int64_t ahead, uint8_t *to)
{
    (void)ahead;
    for (int l = 0; l < LB_DOTBYTE_LINES; l++)
        for (int64_t k = 0; k < whole_steps(n); k++) {
            const place p = place_of(k, 8 / c->bits);
            to[(p.quad * NR + l) * 4 + p.byte] =
                k < n ? byte_of(c, from + l * step, k) : (uint8_t)0;
        }
}

static void across(const lb_dotbyte_codes *c, const uint8_t *from, int64_t step,
                   int64_t n, int64_t bytes, int64_t ahead, uint8_t *to,
                   int64_t panel)
{
    (void)ahead;
    const int fields = 8 / c->bits;
    for (int64_t j = 0; j < bytes * fields; j++) {
        const int64_t byte = j / fields;
        const int64_t slot = (byte / 16 * fields + j % fields) * 16 + byte % 16;
        uint8_t *const row = to + slot / NR * panel + slot % NR * 4;
        for (int64_t k = 0; k < n; k++)
            row[k / 4 * NR * 4 + k % 4] = byte_of(c, from + k * step, j);
    }
}

/* One sum. Twice the first plane's, and so on, may leave 32 bits; all together
 * do not. */
static int32_t sum_of(const lb_dotbyte_x *x, int i, int64_t k, const uint8_t *w)
{
    uint32_t sum = 0;
    for (int p = 0; p < x->planes; p++) {
        const int8_t *row = x->bytes + p * x->plane + (int64_t)i * 4;
        sum *= 256;
        for (int64_t q = 0; q < k / 4; q++)
            for (int b = 0; b < 4; b++)
                sum += (uint32_t)(row[q * x->rows * 4 + b] * w[q * NR * 4 + b]);
    }
    sum += (uint32_t)x->start[i];
    int32_t whole;
    memcpy(&whole, &sum, sizeof whole);
    return whole;
}

static void tile(const lb_dotbyte_x *x, int64_t k, const uint8_t *w,
                 const float *ws, bool first, float *c)
{
    for (int i = 0; i < x->rows; i++)
        for (int j = 0; j < NR; j++) {
            const float f = (float)sum_of(x, i, k, w + (int64_t)j * 4);
            float *const at = c + i * NR + j;
            *at = fmaf(f * ws[j], x->scale[i], first ? 0 : *at);
        }
}

const lb_dotbyte lb_dotbyte_ref = {
    .name = "dot i8 ref",
    .name_two = "dot i8x2 ref",
    .mr = MR,
    .nr = NR,
    .most_w = 255,
    .round = round_row,
    .along = along,
    .across = across,
    .tile = tile,
};
