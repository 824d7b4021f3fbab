/* byte_weights.c - codes as panels of bytes; see byte_panels.h. */
#include <string.h>

#include "prims/byte_panels.h"
#include "prims/product.h"

/* ---- room ---------------------------------------------------------------- */

size_t lb_byte_weights_room(const lb_byte_panels *p, const lb_coded *c,
                            int64_t most, int64_t depth, lb_byte_weights *w,
                            char *room)
{
    size_t used = 0;
    const int64_t f = sizeof(float), blocks = lb_byte_blocks(p, p->kc);
    *w = (lb_byte_weights){.p = p};
    used = lb_scales_room(p->cpu, c, p->kc, most, depth, &w->s, room);
    w->panel = lb_carve(room, &used,
                        p->strip / p->kernel->nr * lb_byte_apart(p, p->kc));
    w->ws = lb_carve(room, &used, p->strip * blocks * f);
    w->lines =
        lb_carve(room, &used, LB_DOTBYTE_LINES * lb_coded_line_bytes(c, p->kc));
    w->read = lb_carve(room, &used, blocks * f);
    return used;
}

void lb_byte_weights_rows(lb_byte_weights *w, int64_t j, int64_t n,
                          int64_t depth)
{
    lb_scales_rows(&w->s, j, n, depth);
}

/* ---- slots --------------------------------------------------------------- */

/* Slots that rows [0, rows) of a strip are found in. */
static int64_t slots_for(const lb_byte_panels *p, const lb_coded *c,
                         int64_t rows)
{
    const int64_t used =
        c->along ? rows
                 : lb_round_up(lb_coded_line_bytes(c, rows), 16) * p->fields;
    return lb_round_up(used, p->kernel->nr);
}

/* One scale to a row. */
static void scale_rows(lb_byte_weights *w, int64_t j, int64_t rows,
                       int64_t slots)
{
    const float *row = w->s.row + (j - w->s.first);
    for (int64_t s = 0; s < slots; s += 16) {
        const int64_t first = lb_byte_slot_row(w->p, s);
        for (int64_t e = 0; e < 16; e++) {
            const int64_t r = first + e * w->p->apart;
            w->ws[s + e] = r < rows ? row[r] * w->p->unit / w->p->up : 0;
        }
    }
}

/* One for each block of a row; the depth runs along memory. */
static void scale_blocks(lb_byte_weights *w, int64_t j, int64_t rows,
                         int64_t slots, int64_t k, int64_t n)
{
    const lb_coded *c = &w->s.c;
    const int64_t blocks = lb_byte_blocks(w->p, n), first = k / c->lines.g;
    const bool shared = c->lines.g > w->p->share; /* by several panels */
    const float by = w->p->unit / w->p->up;
    const float *s = w->read;
    for (int64_t r = 0; r < slots; r++) {
        if (r < rows && c->scale && r > 0)
            s += c->scale_step;
        else if (r < rows)
            s = lb_coded_scales(c, w->p->cpu, j + r, first, shared ? 1 : blocks,
                                w->read);
        for (int64_t b = 0; b < blocks; b++)
            w->ws[b * slots + r] = r < rows ? s[b] * by : 0;
    }
}

/* ---- panels -------------------------------------------------------------- */

/* A few lines, and zeros in place of those that are not. */
static void pack_few(lb_byte_weights *w, const uint8_t *from, int64_t lines,
                     int64_t n, uint8_t *to)
{
    const lb_coded *c = &w->s.c;
    const int64_t bytes = lb_coded_line_bytes(c, n);
    memset(w->lines, 0, (size_t)(LB_DOTBYTE_LINES * bytes));
    for (int64_t l = 0; l < lines; l++)
        memcpy(w->lines + l * bytes, from + l * c->byte_step, (size_t)bytes);
    w->p->kernel->along(&w->p->codes, w->lines, bytes, n, 0, to);
}

static void pack_along(lb_byte_weights *w, int64_t j, int64_t rows,
                       int64_t slots, int64_t k, int64_t n)
{
    enum { LINES = LB_DOTBYTE_LINES };
    const lb_coded *c = &w->s.c;
    const lb_dotbyte *kernel = w->p->kernel;
    const int64_t nr = kernel->nr, apart = lb_byte_apart(w->p, n);
    for (int64_t r = 0; r < slots; r += LINES) {
        uint8_t *const to = w->panel + r / nr * apart + r % nr * 4;
        if (r + LINES <= rows)
            kernel->along(&w->p->codes, lb_coded_codes(c, j + r, k),
                          c->byte_step, n, w->ahead, to);
        else if (r < rows)
            pack_few(w, lb_coded_codes(c, j + r, k), rows - r, n, to);
        /* else there are bytes of no meaning, whose scales are 0 */
    }
}

int64_t lb_byte_weights_strip(lb_byte_weights *w, int64_t j, int64_t k,
                              int64_t n)
{
    const lb_byte_panels *p = w->p;
    const lb_coded *c = &w->s.c;
    const int64_t end = w->s.first + w->s.n;
    const int64_t rows = lb_min_i64(p->strip, end - j);
    const int64_t slots = slots_for(p, c, rows);
    if (c->along)
        pack_along(w, j, rows, slots, k, n);
    else
        p->kernel->across(&p->codes, lb_coded_codes(c, k, j), c->byte_step, n,
                          lb_coded_line_bytes(c, rows), w->ahead, w->panel,
                          lb_byte_apart(p, n));
    if (p->scales.in_w)
        scale_blocks(w, j, rows, slots, k, n);
    else
        scale_rows(w, j, rows, slots);
    return slots;
}

/* They may lie past the end, so this is never a pointer that C looks at. One
 * group of rows of x has just enough quads, if there are two for each. */
void lb_byte_weights_next(lb_byte_weights *w, int64_t j, int64_t k,
                          int64_t next_j, int64_t next_k, int64_t groups)
{
    enum { LINE = 64 };
    const lb_coded *c = &w->s.c;
    const lb_byte_panels *p = w->p;
    const int64_t line = c->along ? next_j : next_k;
    const int64_t place = c->along ? next_k : next_j;
    const int64_t lines = c->along ? p->strip : p->kc;
    const int64_t places = c->along ? p->kc : p->strip;
    w->ahead = (c->along ? next_j - j : next_k - k) * c->byte_step +
               (c->along ? next_k - k : next_j - j) * c->bits / 8;
    w->ask = (lb_dotbyte_ask){
        .at = (uintptr_t)c->bytes + (uintptr_t)(line * c->byte_step) +
              (uintptr_t)(place * c->bits / 8),
        .step = c->byte_step,
        .column = LINE,
        .rows = lines,
        .left = lines,
        .columns = lb_ceil_div(lb_coded_line_bytes(c, places), LINE),
        .each = groups > 1 ? 1 : 2,
    };
}
