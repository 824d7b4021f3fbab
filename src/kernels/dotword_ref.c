/* dotword_ref.c - products of 16-bit integers in portable C: the specification
 * of words in dotbyte.h. */
#include <math.h>
#include <string.h>

#include "kernels/dotbyte.h"

enum { MR = 8, NR = 16 };

int32_t lb_dotword_round_ref(int64_t n, const float *x, float factor,
                             int planes, int fields, int8_t *to, int64_t apart,
                             int64_t plane)
{
    const int64_t step = LB_DOTBYTE_STEP, whole = (n + step - 1) / step * step;
    int32_t sum = 0;
    (void)planes;
    (void)plane;
    for (int64_t k = 0; k < whole; k++) {
        const int64_t place = k / fields;
        const int32_t v = k < n ? (int32_t)lrintf(x[k] * factor) : 0;
        const int16_t word = (int16_t)v;
        sum += v;
        memcpy(to + (place / 2 * fields + k % fields) * apart + place % 2 * 2,
               &word, sizeof word);
    }
    return sum;
}

/* What a field of a byte stands for. */
static int16_t word_of(const lb_dotbyte_codes *c, uint8_t byte, int f)
{
    const int fields = 8 / c->bits;
    if (c->bits == 8) return (int8_t)byte;
    const int field = c->high_first ? fields - 1 - f : f;
    return c->level[byte >> (field * c->bits) & ((1 << c->bits) - 1)];
}

static void put_word(int word, uint8_t *to)
{
    const int16_t v = (int16_t)word;
    memcpy(to, &v, sizeof v);
}

/* Two bytes are a pair for each field; of 8 bits, four are two pairs. */
void lb_dotword_along_ref(const lb_dotbyte_codes *c, const uint8_t *from,
                          int64_t step, int64_t n, int64_t ahead, uint8_t *to)
{
    const int fields = 8 / c->bits, turn = 2 * fields;
    (void)ahead;
    for (int l = 0; l < LB_DOTBYTE_LINES; l++, from += step, to += 4)
        for (int64_t k = 0; k < n; k++) {
            const int64_t place = k / turn;
            put_word(word_of(c, from[k / fields], (int)(k % fields)),
                     to + (place / 2 * turn + k % turn) * NR * 4 +
                         place % 2 * 2);
        }
}

/* The fields of 16 bytes are as many panels, the lines words. */
void lb_dotword_across_ref(const lb_dotbyte_codes *c, const uint8_t *from,
                           int64_t step, int64_t n, int64_t bytes,
                           int64_t ahead, uint8_t *to, int64_t panel)
{
    const int fields = 8 / c->bits;
    (void)ahead;
    for (int64_t k = 0; k < n; k++, from += step)
        for (int64_t b = 0; b < bytes; b++)
            for (int f = 0; f < fields; f++) {
                const int64_t code = b * fields + f;
                int word = word_of(c, from[b], f);
                if (c->ratio && c->bits == 8) word *= 64;
                if (c->ratio)
                    word = (word * c->ratio[code / c->share * c->apart + k] +
                            (1 << 14)) >>
                           15;
                put_word(word, to + (b / 16 * fields + f) * panel +
                                   k / 2 * NR * 4 + b % 16 * 4 + k % 2 * 2);
            }
}

/* A pair of all rows of w, word by word. */
static void split_pair(const uint8_t *w, int16_t (*to)[NR])
{
    int16_t pair[NR][2];
    memcpy(pair, w, sizeof pair);
    for (int j = 0; j < NR; j++) {
        to[0][j] = pair[j][0];
        to[1][j] = pair[j][1];
    }
}

static void tile_block(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                       bool first, float *c)
{
    /* Modulo 2^32, as other levels have it: slots that are no rows, whose scale
     * is 0, hold anything. */
    uint32_t sum[MR][NR] = {{0}};
    const int8_t *from = x->bytes;
    for (int64_t q = 0; q < k / 2; q++) {
        int16_t b[2][NR];
        split_pair(w->bytes + q * NR * 4, b);
        for (int i = 0; i < x->rows; i++, from += 4) {
            int16_t a[2];
            memcpy(a, from, sizeof a);
            for (int j = 0; j < NR; j++)
                sum[i][j] += (uint32_t)(a[0] * b[0][j] + a[1] * b[1][j]);
        }
    }
    for (int i = 0; i < x->rows; i++)
        for (int j = 0; j < NR; j++) {
            float *const at = c + i * NR + j;
            *at = fmaf((float)(int32_t)sum[i][j] * w->scale[j], x->scale[i],
                       first ? 0 : *at);
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
        lb_dotbyte_next(&x1, &w1, 2, 2, NR);
        first = false;
        k -= some;
    } while (k > 0);
}

const lb_dotbyte lb_dotword_ref = {
    .name = "dot i16 rows ref",
    .size = 2,
    .x_size = 2,
    .piece = 4,
    .mr = MR,
    .nr = NR,
    .widths = 15,
    .round = lb_dotword_round_ref,
    .along = lb_dotword_along_ref,
    .across = lb_dotword_across_ref,
    .tile = tile,
};
