/* pack_w.c - codes as panels of bytes; see panels.h. */
#include <math.h>
#include <string.h>

#include "kernels/turn.h"
#include "matmul/magnitude.h"
#include "matmul/panels.h"
#include "matmul/product.h"

/* ---- room ---------------------------------------------------------------- */

size_t lb_pack_w_room(const lb_panels *p, const lb_coded *c, int64_t most,
                      int64_t depth, lb_pack_w *w, char *room)
{
    size_t used = 0;
    const int64_t f = sizeof(float), blocks = lb_panel_blocks(p, p->kc);
    if (p->decoded) {
        *w = (lb_pack_w){.p = p, .along = c->along};
        w->panel = lb_carve(
            room, &used, p->strip / p->kernel->nr * lb_panel_apart(p, p->kc));
        w->ws = lb_carve(room, &used, p->strip * blocks * f);
        lb_pack_decoded_room(w, room, &used);
        return used;
    }
    /* Kernels read those of whole strips, the last one included. */
    const int64_t whole = lb_round_up(most, p->strip);
    const int64_t across = p->ratios ? whole / c->lines.g + 2 : 0;
    *w = (lb_pack_w){.p = p, .scaled = -1, .ratio_k = -1};
    used = lb_scales_room(p->cpu, c, p->kc, most, depth, &w->s, room);
    const bool packs = !p->kernel->dots;
    const int64_t panels = !packs      ? 0
                           : p->staged ? 1
                                       : p->strip / p->kernel->nr;
    w->panel = lb_carve(room, &used, panels * lb_panel_apart(p, p->kc));
    w->quads =
        lb_carve(room, &used,
                 p->staged ? LB_DOTBYTE_BYTES * lb_panel_steps(p, p->kc) : 0);
    w->ws = lb_carve(room, &used, p->strip * blocks * f);
    w->lines =
        lb_carve(room, &used,
                 packs ? LB_DOTBYTE_LINES * lb_coded_line_bytes(c, p->kc) : 0);
    w->read = lb_carve(room, &used, lb_max_i64(blocks, across) * f);
    w->scales = lb_carve(room, &used, across * p->kc * f);
    w->largest = lb_carve(room, &used, across * f);
    w->ratio = lb_carve(room, &used, across * p->kc * (int64_t)sizeof(int16_t));
    return used;
}

void lb_pack_w_rows(lb_pack_w *w, int64_t j, int64_t n, int64_t depth)
{
    w->scaled = w->ratio_k = -1;
    if (!w->p->decoded) lb_scales_rows(&w->s, j, n, depth);
    w->s.first = j;
    w->s.n = n;
}

/* ---- slots --------------------------------------------------------------- */

/* Slots that rows [0, rows) of a strip are found in. */
static int64_t slots_for(const lb_panels *p, const lb_coded *c, int64_t rows)
{
    const int64_t used =
        c->along ? rows
                 : lb_round_up(lb_coded_line_bytes(c, rows), 16) * p->fields;
    return lb_round_up(used, p->kernel->nr);
}

/* One scale to a row, the same in all panels. */
static void scale_rows(lb_pack_w *w, int64_t j, int64_t rows, int64_t slots)
{
    const float *row = w->s.row + (j - w->s.first);
    if (w->scaled == j) return;
    w->scaled = j;
    for (int64_t s = 0; s < slots; s += 16) {
        const int64_t first = lb_panel_slot_row(w->p, s);
        for (int64_t e = 0; e < 16; e++) {
            const int64_t r = first + e * w->p->apart;
            w->ws[s + e] = r < rows ? row[r] * w->p->unit / w->p->up : 0;
        }
    }
}

/* One for each block of a row; the depth runs along memory. Where a block is
 * larger than what shares scales of x, it comes with several of those. */
static void scale_blocks(lb_pack_w *w, int64_t j, int64_t rows, int64_t slots,
                         int64_t k, int64_t n)
{
    const lb_coded *c = &w->s.c;
    const int64_t f = sizeof(float), g = c->lines.g, first = k / g;
    const int64_t blocks = lb_panel_blocks(w->p, n);
    const int64_t there = (k + n - 1) / g - first + 1;
    const float by = w->p->unit / w->p->up;
    float *const ws = w->ws;
    for (int64_t r = 0, some; r < rows; r += some) {
        const float *s =
            lb_coded_scales(c, w->p->cpu, j + r, first, there, w->read);
        some = c->scale ? rows : 1;
        lb_turn(sizeof(float), (const char *)s, c->scale_step * f,
                (char *)(ws + r), slots * f, some, there);
    }
    for (int64_t b = 0; b < there; b++)
        for (int64_t r = 0; r < slots; r++)
            ws[b * slots + r] = r < rows ? ws[b * slots + r] * by : 0;
    for (int64_t b = there; b < blocks; b++)
        memcpy(ws + b * slots, ws, (size_t)(slots * f));
}

/* n scales as parts of the largest magnitude among them, in units of 1 / top,
 * rounded to nearest even. Returns that magnitude, or NaN if a scale is not
 * finite; then, and for zeros, all parts are 0. */
static float ratios_of(int64_t n, const float *scale, float top, int16_t *to)
{
    /* Added to a number, rounds it to an integer in the low bits of the sum. */
    const float magic = 0x1.8p23f;
    float sum;
    const float most = lb_largest_and_sum(n, scale, &sum);
    if (!isfinite(most) || most == 0) {
        memset(to, 0, (size_t)n * sizeof *to);
        return most == 0 ? 0 : (float)NAN;
    }
    const float lift = most < 0x1p-100f ? 0x1p100f : 1;
    const float factor = top / (most * lift);
    for (int64_t i = 0; i < n; i++) {
        const float part = scale[i] * lift * factor + magic;
        int32_t bits;
        memcpy(&bits, &part, sizeof bits);
        to[i] = (int16_t)bits;
    }
    return most;
}

/* Ratios of all rows in the panel from k on; rows run along memory. */
static void make_ratios(lb_pack_w *w, int64_t k, int64_t n)
{
    const lb_panels *p = w->p;
    const lb_coded *c = &w->s.c;
    const int64_t f = sizeof(float), first = w->s.first / c->lines.g;
    const int64_t last = (w->s.first + w->s.n - 1) / c->lines.g;
    const int64_t blocks = last - first + 1;
    if (w->ratio_k == k) return;
    w->ratio_k = k;
    if (c->scale) {
        const float *s = lb_coded_scales(c, p->cpu, k, first, blocks, w->read);
        lb_turn(sizeof(float), (const char *)s, c->scale_step * f,
                (char *)w->scales, p->kc * f, n, blocks);
    } else {
        for (int64_t i = 0; i < n; i++) {
            const float *s =
                lb_coded_scales(c, p->cpu, k + i, first, blocks, w->read);
            for (int64_t b = 0; b < blocks; b++)
                w->scales[b * p->kc + i] = s[b];
        }
    }
    const float top = c->bits == 8 ? LB_DOTWORD_RATIO_8 : LB_DOTWORD_RATIO;
    for (int64_t b = 0; b < blocks; b++)
        w->largest[b] =
            ratios_of(n, w->scales + b * p->kc, top, w->ratio + b * p->kc);
}

/* The largest of each row's, which are those of 16 slots. */
static void scale_ratios(lb_pack_w *w, int64_t j, int64_t rows, int64_t slots)
{
    const int64_t g = w->s.c.lines.g, first = w->s.first / g;
    const float by = w->p->unit / w->p->up;
    for (int64_t s = 0; s < slots; s += 16) {
        const int64_t row = lb_panel_slot_row(w->p, s);
        const float most = row < rows ? w->largest[(j + row) / g - first] : 0;
        for (int64_t e = 0; e < 16; e++)
            w->ws[s + e] = row + e * w->p->apart < rows ? most * by : 0;
    }
}

/* ---- panels -------------------------------------------------------------- */

/* A few lines, and zeros in place of those that are not. */
static void pack_few(lb_pack_w *w, const uint8_t *from, int64_t lines,
                     int64_t n, uint8_t *to)
{
    const lb_coded *c = &w->s.c;
    const int64_t bytes = lb_coded_line_bytes(c, n);
    memset(w->lines, 0, (size_t)(LB_DOTBYTE_LINES * bytes));
    for (int64_t l = 0; l < lines; l++)
        memcpy(w->lines + l * bytes, from + l * c->byte_step, (size_t)bytes);
    w->p->kernel->along(&w->p->codes, w->lines, bytes, n, 0, to);
}

static void pack_along(lb_pack_w *w, int64_t j, int64_t rows, int64_t slots,
                       int64_t k, int64_t n)
{
    enum { LINES = LB_DOTBYTE_LINES };
    const lb_coded *c = &w->s.c;
    const lb_dotbyte *kernel = w->p->kernel;
    const int64_t nr = kernel->nr, apart = lb_panel_apart(w->p, n);
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

static void pack_across(lb_pack_w *w, int64_t j, int64_t rows, int64_t k,
                        int64_t n)
{
    const lb_panels *p = w->p;
    const lb_coded *c = &w->s.c;
    lb_dotbyte_codes codes = p->codes;
    if (p->ratios) {
        const int64_t g = c->lines.g;
        make_ratios(w, k, n);
        codes.ratio = w->ratio + (j / g - w->s.first / g) * p->kc;
        codes.share = g;
        codes.apart = p->kc;
    }
    if (p->staged) {
        w->apart = LB_DOTBYTE_BYTES / 4 * lb_panel_steps(p, n);
        p->kernel->quads(lb_coded_codes(c, k, j), c->byte_step, n,
                         lb_coded_line_bytes(c, rows), w->quads, w->apart);
        return;
    }
    p->kernel->across(&codes, lb_coded_codes(c, k, j), c->byte_step, n,
                      lb_coded_line_bytes(c, rows), w->ahead, w->panel,
                      lb_panel_apart(p, n));
}

static int64_t strip_rows(const lb_pack_w *w, int64_t j)
{
    return lb_min_i64(w->p->strip, w->s.first + w->s.n - j);
}

static void scale_strip(lb_pack_w *w, int64_t j, int64_t rows, int64_t slots,
                        int64_t k, int64_t n)
{
    if (w->p->each)
        scale_blocks(w, j, rows, slots, k, n);
    else if (w->p->ratios)
        scale_ratios(w, j, rows, slots);
    else
        scale_rows(w, j, rows, slots);
}

static void split_panels(const lb_pack_w *w, int64_t slots, int64_t n)
{
    const lb_dotbyte *kernel = w->p->kernel;
    for (int64_t s = 0; s < slots && kernel->split; s += kernel->nr)
        kernel->split(w->panel + s / kernel->nr * lb_panel_apart(w->p, n),
                      lb_round_up(n, LB_DOTBYTE_STEP));
}

int64_t lb_pack_w_strip(lb_pack_w *w, int64_t j, int64_t k, int64_t n)
{
    const lb_coded *c = &w->s.c;
    const int64_t rows = strip_rows(w, j);
    if (w->p->decoded) {
        const int64_t all = lb_round_up(rows, w->p->kernel->nr);
        lb_pack_decoded(w, j, rows, all, k, n);
        split_panels(w, all, n);
        return all;
    }
    const int64_t slots = slots_for(w->p, c, rows);
    if (c->along)
        pack_along(w, j, rows, slots, k, n);
    else
        pack_across(w, j, rows, k, n);
    split_panels(w, slots, n);
    scale_strip(w, j, rows, slots, k, n);
    return slots;
}

const uint8_t *lb_pack_w_panel(lb_pack_w *w, int64_t s, int64_t n)
{
    const lb_panels *p = w->p;
    if (!p->staged) return w->panel + s / p->kernel->nr * lb_panel_apart(p, n);
    const int64_t vector = s / 16;
    p->kernel->panel(&p->codes, w->quads + vector / p->fields * w->apart, n,
                     (int)(vector % p->fields), w->panel);
    return w->panel;
}

lb_dotbyte_lines lb_pack_w_lines(lb_pack_w *w, int64_t j, int64_t k, int64_t n)
{
    const lb_coded *c = &w->s.c;
    const int64_t rows = strip_rows(w, j);
    scale_strip(w, j, rows, lb_round_up(rows, LB_DOTBYTE_TOGETHER), k, n);
    return (lb_dotbyte_lines){
        .codes = lb_coded_codes(c, j, k),
        .step = c->byte_step,
        .n = rows,
        .depth = n,
        .ws = w->ws,
        .next = w->ask.at,
    };
}

/* What is asked for may lie past the end, so it is never a pointer that C looks
 * at, here and below. */
static void ask_scales(const lb_pack_w *w, int64_t j, int64_t k)
{
    const lb_coded *c = &w->s.c;
    if (!w->p->each || !c->scale) return;
    uintptr_t at = (uintptr_t)c->scale +
                   (uintptr_t)((c->first + j * c->scale_step + k / c->lines.g) *
                               (int64_t)sizeof(float));
    for (int64_t r = 0; r < w->p->strip; r++) {
        __builtin_prefetch((const void *)at);
        at += (uintptr_t)(c->scale_step * (int64_t)sizeof(float));
    }
}

/* Tiles ask for a line with each quad. Where these are fewer than the lines,
 * packing asks for half of those along memory, and across for all of bytes. */
void lb_pack_w_next(lb_pack_w *w, int64_t j, int64_t k, int64_t next_j,
                    int64_t next_k, int64_t groups)
{
    enum { LINE = 64 };
    const lb_coded *c = &w->s.c;
    const lb_panels *p = w->p;
    if (p->decoded) return;
    const int64_t quads =
        p->strip / p->kernel->nr * p->kc * p->kernel->size / 4;
    const int64_t line = c->along ? next_j : next_k;
    const int64_t place = c->along ? next_k : next_j;
    const int64_t lines = c->along ? p->strip : p->kc;
    const int64_t places = c->along ? p->kc : p->strip;
    const int64_t columns = lb_ceil_div(lb_coded_line_bytes(c, places), LINE);
    const bool few = groups * quads < lines * columns;
    const int64_t packed = !few ? 0 : c->along ? columns / 2 : columns;
    w->ask = (lb_dotbyte_ask){
        .at = (uintptr_t)c->bytes + (uintptr_t)(line * c->byte_step) +
              (uintptr_t)(place * c->bits / 8),
        .step = c->byte_step,
        .column = LINE,
        .rows = lines,
        .left = lines,
        .columns = columns - packed,
    };
    w->ahead = (c->along ? next_j - j : next_k - k) * c->byte_step +
               (c->along ? next_k - k : next_j - j) * c->bits / 8;
    if (p->kernel->asks && !few) w->ahead = 0;
    ask_scales(w, next_j, next_k);
}
