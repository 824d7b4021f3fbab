/* dotlut_ref.c - lookup tables in portable C: the specification. */
#include <math.h>
#include <string.h>

#include "kernels/dotlut.h"

enum { MR = 2, NR = LB_DOTLUT_NR, STEP = LB_DOTBYTE_STEP };

static int64_t whole_steps(int64_t n)
{
    return (n + STEP - 1) / STEP * STEP;
}

/* ---- x ------------------------------------------------------------------- */

static void put_table(const int32_t *x, uint8_t *to)
{
    for (int e = 0; e < 16; e++) {
        const int32_t *const of = x + e / 8 * 4;
        int32_t sum = of[3] + LB_DOTLUT_OFFSET;
        for (int i = 0; i < 3; i++)
            sum += e >> i & 1 ? of[i] : -of[i];
        to[e] = (uint8_t)(sum & 255);
        to[16 + e] = (uint8_t)(sum >> 8);
    }
}

static int32_t round_row(int64_t n, const float *x, float factor, int planes,
                         int fields, int8_t *to, int64_t apart, int64_t plane)
{
    int32_t sum = 0;
    (void)planes;
    (void)fields;
    (void)plane;
    for (int64_t k = 0; k < whole_steps(n); k += LB_DOTLUT_EACH, to += apart) {
        int32_t v[LB_DOTLUT_EACH];
        for (int i = 0; i < LB_DOTLUT_EACH; i++) {
            v[i] = k + i < n ? (int32_t)lrintf(x[k + i] * factor) : 0;
            sum += v[i];
        }
        put_table(v, (uint8_t *)to);
    }
    return sum;
}

/* ---- w ------------------------------------------------------------------- */

static void add_to_head(int more, uint8_t *at)
{
    int16_t v;
    memcpy(&v, at, sizeof v);
    v = (int16_t)(v + more);
    memcpy(at, &v, sizeof v);
}

/* Eight codes of row r of 16, as byte `at` of a panel. */
static void put_byte(const lb_dotlut_index *t, bool reversed, uint8_t byte,
                     int64_t r, int64_t at, uint8_t *panel)
{
    uint8_t *const to = panel + LB_DOTLUT_HEAD + at * LB_DOTLUT_BYTE + r * 2;
    for (int h = 0; h < 2; h++) {
        const int v = byte >> (4 * (reversed ? 1 - h : h)) & 15;
        to[h] = (uint8_t)(t->entry[v] + 8 * h);
        to[32 + h] = (uint8_t)t->sign[v];
        add_to_head(-128 * t->sign[v], panel + 2 * r);
    }
}

static void along(const lb_dotbyte_codes *c, const uint8_t *from, int64_t step,
                  int64_t n, int64_t ahead, uint8_t *to)
{
    const lb_dotlut_index t = lb_dotlut_index_of(c, c->high_first);
    (void)ahead;
    memset(to, 0, 32);
    for (int64_t r = 0; r < LB_DOTBYTE_LINES; r++, from += step)
        for (int64_t b = 0; b < whole_steps(n) / 8; b++)
            put_byte(&t, c->high_first, b * 8 < n ? from[b] : 0, r, b, to);
}

/* The codes of eight lines at place p, the first line the lowest bit. */
static uint8_t turned(const uint8_t *from, int64_t step, int64_t n, int64_t p,
                      bool high_first)
{
    const int64_t bit = high_first ? 7 - p % 8 : p % 8;
    int byte = 0;
    for (int64_t l = 0; l < 8 && l < n; l++)
        byte |= (from[l * step + p / 8] >> bit & 1) << l;
    return (uint8_t)byte;
}

static void across(const lb_dotbyte_codes *c, const uint8_t *from, int64_t step,
                   int64_t n, int64_t bytes, int64_t ahead, uint8_t *to,
                   int64_t panel)
{
    const lb_dotlut_index t = lb_dotlut_index_of(c, false);
    (void)ahead;
    for (int64_t p = 0; p < bytes * 8; p++) {
        const int64_t slots = p / 128 * 8 + p % 8; /* which 16 */
        uint8_t *const at = to + slots / 2 * panel + slots % 2 * 64;
        memset(at + p / 8 % 16 * 2, 0, 2);
        for (int64_t b = 0; b < whole_steps(n) / 8; b++)
            put_byte(
                &t, false,
                turned(from + 8 * b * step, step, n - 8 * b, p, c->high_first),
                p / 8 % 16, b, at);
    }
}

/* ---- tiles --------------------------------------------------------------- */

/* Of a row of x and row j of w. */
static int32_t sum_of(const lb_dotbyte_x *x, int64_t k, const uint8_t *w, int i,
                      int j)
{
    const uint8_t *const of = w + j / 16 * 64 + j % 16 * 2;
    const uint8_t *table =
        (const uint8_t *)x->bytes + (int64_t)i * LB_DOTLUT_TABLE;
    int16_t begin;
    memcpy(&begin, of, sizeof begin);
    int32_t sum = begin * 257;
    for (int64_t b = 0; b < k / 8; b++) {
        const uint8_t *const at = of + LB_DOTLUT_HEAD + b * LB_DOTLUT_BYTE;
        for (int h = 0; h < 2; h++)
            sum += (int8_t)at[32 + h] *
                   (table[at[h] & 15] + 256 * table[16 + (at[h] & 15)]);
        table += (int64_t)x->rows * LB_DOTLUT_TABLE;
    }
    return sum;
}

static void tile(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                 bool first, float *c, lb_dotbyte_ask *ask)
{
    (void)ask;
    for (int i = 0; i < x->rows; i++)
        for (int j = 0; j < NR; j++) {
            float *const at = c + i * NR + j;
            const int32_t sum = sum_of(x, k, w->bytes, i, j) + x->start[i];
            *at = fmaf((float)sum * w->scale[j], x->scale[i], first ? 0 : *at);
        }
}

const lb_dotbyte lb_dotlut_ref = {
    .name = "dot pairs ref",
    .size = 1,
    .x_size = 4,
    .piece = LB_DOTLUT_TABLE,
    .mr = MR,
    .nr = NR,
    .most_w = 2,
    .widths = 1,
    .bias = 1,
    .round = round_row,
    .along = along,
    .across = across,
    .tile = tile,
};
