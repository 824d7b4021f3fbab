/* coded_turn.c - see coded_turn.h. */
#include "matmul/coded_turn.h"

#include <string.h>

#include "kernels/turn.h"
#include "matmul/product.h"

enum {
    STRIP = LB_DOTTURN_ROWS,
    WIDE = LB_DOTTURN_WIDE,
    EACH = LB_DOTTURN_BYTES,
    LINES = 8, /* of codes that share a table, however many a byte has */
    MOST_BAND = WIDE * 8
};

int64_t lb_turn_room(const lb_coded *c, int64_t depth)
{
    const int64_t bytes = lb_round_up(lb_coded_line_bytes(c, depth), EACH);
    return c->along ? STRIP * bytes : WIDE * lb_round_up(depth, LINES);
}

/* Copies lines, so many bytes of each, to the room: zeros behind them. */
static void copy_lines(const lb_turning *t, const uint8_t *from, int64_t lines,
                       int64_t bytes, int64_t all, int64_t width)
{
    memset(t->own, 0, (size_t)(all * width));
    for (int64_t l = 0; l < lines; l++)
        memcpy(t->own + l * width, from + l * t->c.byte_step, (size_t)bytes);
}

void lb_turn_along(const lb_turning *t, int64_t j, int64_t k, int64_t n,
                   int64_t ahead, uint8_t *to)
{
    const int64_t bytes = lb_coded_line_bytes(&t->c, n), rows = t->n - j;
    const int64_t width = lb_round_up(bytes, EACH);
    const uint8_t *from = lb_coded_codes(&t->c, t->j0 + j, k);
    if (bytes == width && rows >= STRIP) {
        t->kernel->along(from, t->c.byte_step, bytes, (uintptr_t)ahead, to);
        return;
    }
    copy_lines(t, from, lb_min_i64(rows, STRIP), bytes, STRIP, width);
    t->kernel->along(t->own, width, width, 0, to);
}

/* `wide` bands from row j on, and so many lines from k on. */
static void turn_bands(const lb_turning *t, int64_t j, int64_t wide, int64_t k,
                       int64_t lines, uint8_t *to, int64_t apart)
{
    const int bits = t->c.bits, fields = 8 / bits;
    const int64_t bytes = lb_coded_line_bytes(&t->c, t->n - j);
    const int64_t all = lb_round_up(lines, LINES);
    const uint8_t *const from = lb_coded_codes(&t->c, k, t->j0 + j);
    if (bytes >= wide * WIDE && lines == all) {
        t->kernel->across(bits, from, t->c.byte_step, lines / fields, wide, to,
                          apart);
        return;
    }
    for (int64_t w = 0; w < wide; w++) {
        const int64_t some = lb_min_i64(WIDE, bytes - w * WIDE);
        copy_lines(t, from + w * WIDE, lines, some, all, WIDE);
        t->kernel->across(bits, t->own, WIDE, all / fields, 1,
                          to + w * fields * apart, apart);
    }
}

void lb_turn_across(const lb_turning *t, int64_t j, int64_t rows, int64_t k,
                    int64_t n, uint8_t *to, int64_t apart)
{
    const int fields = 8 / t->c.bits;
    const int64_t band = lb_turn_band(&t->c), odd = n % LINES;
    const int64_t wide = rows / band, whole = wide * band;
    uint8_t *const rest = to + whole / STRIP * apart;
    uint8_t *const last = to + (n - odd) / fields * STRIP;
    if (wide) turn_bands(t, j, wide, k, n - odd, to, apart);
    if (rows > whole) turn_bands(t, j + whole, 1, k, n - odd, rest, apart);
    if (odd)
        turn_bands(t, j, lb_ceil_div(rows, band), k + n - odd, odd, last,
                   apart);
}

/* The strip whose rows come first in a byte, and bytes from it to that of the
 * rows after. */
static int64_t first_strip(const lb_coded *c)
{
    return c->high_first ? 8 / c->bits - 1 : 0;
}

static int64_t next_strip(const lb_coded *c)
{
    return (c->high_first ? -STRIP : STRIP) * (int64_t)sizeof(float);
}

void lb_turn_sort(const lb_coded *c, int64_t n, const float *from, float *to)
{
    const int fields = 8 / c->bits;
    const int64_t band = lb_turn_band(c), f = sizeof(float);
    for (int64_t j = 0; j < n; j += band)
        lb_turn(sizeof(float),
                (const char *)(from + j + first_strip(c) * STRIP),
                next_strip(c), (char *)(to + j), fields * f, fields, STRIP);
}

void lb_turn_strips(const lb_coded *c, int64_t n, const float *from,
                    int64_t room, float *to)
{
    const int fields = 8 / c->bits;
    const int64_t band = lb_turn_band(c), f = sizeof(float);
    memset(to, 0, (size_t)room * sizeof *to);
    if (c->along) {
        memcpy(to, from, (size_t)n * sizeof *to);
        return;
    }
    for (int64_t j = 0; j < n; j += band) {
        float last[MOST_BAND] = {0};
        const float *rows = from + j;
        if (n - j < band)
            rows = memcpy(last, rows, (size_t)(n - j) * sizeof *last);
        lb_turn(sizeof(float), (const char *)rows, fields * f,
                (char *)(to + j + first_strip(c) * STRIP), next_strip(c), STRIP,
                fields);
    }
}
