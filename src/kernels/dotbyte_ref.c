/* dotbyte_ref.c - products of bytes in portable C: the specification. */
#include <math.h>
#include <string.h>

#include "kernels/dotbyte.h"

enum { MR = 8, NR = 16 }; /* a panel is 16 slots */

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

/* The fields of a byte, in the order of codes, `apart` bytes apart. */
static void put_fields(const lb_dotbyte_codes *c, uint8_t byte, uint8_t *to,
                       int64_t apart)
{
    const int fields = 8 / c->bits, mask = (1 << c->bits) - 1;
    if (c->bits == 8) {
        *to = (uint8_t)(byte ^ 128);
        return;
    }
    for (int f = 0; f < fields; f++, to += apart) {
        const int field = c->high_first ? fields - 1 - f : f;
        *to = c->number[byte >> (field * c->bits) & mask];
    }
}

/* Four bytes are a quad for each field. */
static void along(const lb_dotbyte_codes *c, const uint8_t *from, int64_t step,
                  int64_t n, int64_t ahead, uint8_t *to)
{
    const int64_t fields = 8 / c->bits, apart = (int64_t)NR * 4;
    (void)ahead;
    for (int l = 0; l < LB_DOTBYTE_LINES; l++, from += step, to += 4)
        for (int64_t b = 0; b * fields < n; b++)
            put_fields(c, from[b], to + b / 4 * fields * apart + b % 4, apart);
}

/* The fields of 16 bytes are as many slots for each. */
static void across(const lb_dotbyte_codes *c, const uint8_t *from, int64_t step,
                   int64_t n, int64_t bytes, int64_t ahead, uint8_t *to,
                   int64_t panel)
{
    (void)ahead;
    for (int64_t k = 0; k < n; k++, from += step)
        for (int64_t b = 0; b < bytes; b++)
            put_fields(c, from[b],
                       to + b / 16 * (8 / c->bits) * panel + k / 4 * NR * 4 +
                           b % 16 * 4 + k % 4,
                       panel);
}

/* A quad of all rows of w, byte by byte. */
static void widen_quad(const uint8_t *w, int16_t (*to)[NR])
{
    for (int b = 0; b < 4; b++)
        for (int j = 0; j < NR; j++)
            to[b][j] = w[4 * j + b];
}

/* What the first plane has, times 256, may leave 32 bits; all together do
 * not. */
static void add_plane(int rows, int64_t k, const int8_t *x, const uint8_t *w,
                      uint32_t (*sum)[NR])
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < NR; j++)
            sum[i][j] *= 256;
    for (int64_t q = 0; q < k / 4; q++, w += NR * 4) {
        int16_t wide[4][NR];
        widen_quad(w, wide);
        for (int i = 0; i < rows; i++, x += 4)
            for (int b = 0; b < 4; b++)
                for (int j = 0; j < NR; j++)
                    sum[i][j] += (uint32_t)((int16_t)x[b] * wide[b][j]);
    }
}

static void tile_block(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                       bool first, float *c)
{
    uint32_t sum[MR][NR] = {{0}};
    for (int p = 0; p < x->planes; p++)
        add_plane(x->rows, k, x->bytes + p * x->plane, w->bytes, sum);
    for (int i = 0; i < x->rows; i++)
        for (int j = 0; j < NR; j++) {
            float *const at = c + i * NR + j;
            int32_t whole;
            sum[i][j] += (uint32_t)x->start[i];
            memcpy(&whole, &sum[i][j], sizeof whole);
            *at =
                fmaf((float)whole * w->scale[j], x->scale[i], first ? 0 : *at);
        }
}

static void tile(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                 bool first, float *c, lb_dotbyte_ask *ask)
{
    (void)ask;
    lb_dotbyte_x x1 = *x;
    lb_dotbyte_w w1 = *w;
    do {
        const int64_t some = k < x1.share ? k : x1.share;
        tile_block(&x1, some, &w1, first, c);
        lb_dotbyte_next(&x1, &w1, 1, 1, NR);
        first = false;
        k -= some;
    } while (k > 0);
}

const lb_dotbyte lb_dotbyte_ref = {
    .name = "dot i8 ref",
    .name_two = "dot i8x2 ref",
    .size = 1,
    .x_size = 1,
    .piece = 4,
    .mr = MR,
    .nr = NR,
    .most_w = 255,
    .planes = true,
    .round = round_row,
    .along = along,
    .across = across,
    .tile = tile,
};
