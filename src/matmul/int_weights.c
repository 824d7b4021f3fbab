/* int_weights.c - codes as panels of whole numbers; see int_panels.h.
 *
 * Stage one brings a strip of rows to bytes, a row's along the depth:
 *
 *   depth along memory     fields are unpacked row by row, unless kernels take
 *                          codes as they lie
 *   rows along memory      16 lines at a time are turned; a byte then holds
 *                          several rows, which stage two takes apart
 *
 * Stage two makes panels of 16 bits of them, a few rows at a time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "matmul/int_panels.h"
#include "matmul/product.h"

enum {
    PANEL = 16 << 10,      /* bytes of panels in L1, beside 6 rows of x, .. */
    DEEP_PANEL = 64 << 10, /* .. or in L2, beside all of x */
    ROWS = 64,   /* that meet a group of x, where codes are multiplied */
    MANY = 24,   /* rows of x: for more, codes that are dear are not */
    STRIP = 256, /* rows along memory: 64 bytes of 2 bits from each line */
    AHEAD = 32,  /* lines that are asked for before they are needed */
    PAD = 64     /* rows of bytes a power of 2 apart would fall together */
};

/* ---- what codes become --------------------------------------------------- */

static bool is_whole(float level)
{
    return level == rintf(level) && fabsf(level) <= 127;
}

/* Levels to number or level; false: not finite. */
static bool place_levels(const lb_coded *c, lb_int_panels *p)
{
    float most = 0;
    bool whole = true;
    for (int i = 0; i < 1 << c->bits; i++) {
        const float level = c->numbers.level[i];
        if (!isfinite(level)) return false;
        whole = whole && is_whole(level);
        most = fmaxf(most, fabsf(level));
    }
    p->by_level = most > 0 && (p->scales.in_w || !whole);
    p->unit = p->by_level ? most / LB_DOTINT_FINE_W : 1;
    for (int i = 0; i < 16; i++) {
        const float level = i < 1 << c->bits ? c->numbers.level[i] : 0;
        p->number[i] = (int8_t)(p->by_level ? i : (int)level);
        if (p->by_level)
            p->level[i] = (int16_t)lrintf(level / most * LB_DOTINT_LEVEL);
    }
    return true;
}

/* Whether numbers are on a line. */
static void find_line(const lb_coded *c, lb_int_panels *p)
{
    p->least = 0 + p->number[0];
    p->slope = p->number[1] - p->number[0];
    p->line = true;
    for (int i = 0; i < 1 << c->bits; i++)
        p->line = p->line && abs(p->number[i]) <= LB_DOTINT_LINE &&
                  p->number[i] == p->least + i * p->slope;
}

/* How many of the depth share a ratio, in a panel. */
static int64_t share_of(const lb_coded *c, const lb_int_panels *p)
{
    const int64_t g = c->lines.g;
    if (!p->scales.in_w) return p->kc;
    if (!c->along || g % LB_DOTINT_STEP) return 1;
    return g % p->kc == 0 ? p->kc : p->kc % g == 0 ? g : 1;
}

/* Whether kernels can take codes as they lie. */
static bool takes_fields(const lb_coded *c, const lb_int_panels *p)
{
    if (!c->along || (c->bits != 4 && c->bits != 2)) return false;
    if (!p->fine) return p->line;
    return c->bits == 4 && p->by_level && p->share % 64 == 0;
}

/* Codes of 1 bit, too. */
static bool takes_bits(const lb_coded *c, const lb_int_panels *p)
{
    return c->along && c->bits == 1 && !p->fine && p->line;
}

/* Whether it takes longer to make numbers of codes than to multiply them, so
 * that they are better made once: all but bytes, and fields on a line. */
static bool are_dear(const lb_coded *c, const lb_int_panels *p)
{
    return p->fine || c->bits == 1 || (c->bits < 8 && !takes_fields(c, p));
}

bool lb_int_panels_of(const lb_cpu *cpu, const lb_coded *c, int64_t m,
                      lb_int_panels *p)
{
    *p = (lb_int_panels){
        .kernel = lb_dotint_for(cpu),
        .cpu = cpu,
        .scales = lb_scales_way_of(c),
        .unit = 1,
    };
    p->kc = p->kernel->kc;
    if (c->bits < 8 && !place_levels(c, p)) return false;
    p->fine = p->scales.in_w || p->by_level;
    if (c->bits < 8) find_line(c, p);
    if (p->scales.in_w && !p->by_level)
        p->unit = 0x1p15f / (LB_DOTINT_NUMBER_RATIO << LB_DOTINT_NUMBER_BITS);
    p->share = share_of(c, p);
    p->ratio_apart = p->share == 1 ? p->kc : p->kc / LB_DOTINT_STEP;
    p->fields = takes_fields(c, p) ? 8 / c->bits : 1;
    p->step = (int64_t)LB_DOTINT_STEP * p->fields;
    p->high_first = c->high_first;
    p->sub = (p->kernel->dots ? DEEP_PANEL : PANEL) / (int64_t)sizeof(int16_t) /
             p->kc;
    p->packs = !p->kernel->dots || (m > MANY && are_dear(c, p));
    p->strip = !c->along ? STRIP : p->packs ? p->sub : ROWS;
    if (p->scales.in_w && !c->along)
        p->strip = lb_min_i64(p->strip, LB_INT_BLOCKS * c->lines.g);
    p->sub = lb_min_i64(p->sub, p->strip);
    return true;
}

/* ---- room ---------------------------------------------------------------- */

static int64_t row_bytes(const lb_int_panels *p)
{
    return p->kc + PAD;
}

size_t lb_int_weights_room(const lb_int_panels *p, const lb_coded *c,
                           int64_t most, int64_t depth, lb_int_weights *w,
                           char *room)
{
    size_t used = 0;
    const int64_t f = sizeof(float), i = sizeof(int16_t);
    const int64_t blocks = c->along ? p->strip : LB_INT_BLOCKS + 1;
    *w = (lb_int_weights){.p = p};
    used = lb_scales_room(p->cpu, c, p->kc, most, depth, &w->s, room);
    w->largest = lb_carve(room, &used, blocks * f);
    w->ratio = lb_carve(room, &used, p->fine ? blocks * p->ratio_apart * i : 0);
    w->scales = lb_carve(room, &used, (c->along ? 1 : blocks) * p->kc * f);
    const int64_t rows =
        c->along
            ? p->strip
            : lb_round_up(lb_coded_line_bytes(c, p->strip), LB_DOTINT_PLACES);
    w->bytes = lb_carve(room, &used, rows * row_bytes(p));
    w->lines = lb_carve(room, &used, (LB_DOTINT_LINES + 1) * STRIP);
    return used;
}

/* ---- stage one ----------------------------------------------------------- */

/* Asks for codes before they are needed. They may lie past the end, so this is
 * never a pointer that C looks at. */
static void fetch(const lb_coded *c, int64_t line, int64_t place, int64_t n)
{
    const uintptr_t at = (uintptr_t)c->bytes +
                         (uintptr_t)(line * c->byte_step) +
                         (uintptr_t)(place * c->bits / 8);
    for (int64_t b = 0; b < n * c->bits / 8; b += 64)
        __builtin_prefetch((const void *)(at + (uintptr_t)b), 0, 3);
}

/* A row's codes are too few in one place for the hardware to see them coming:
 * those of the next strip are asked for while the tiles of this one run. */
static void strip_along(lb_int_weights *w, int64_t rows)
{
    const lb_int_panels *p = w->p;
    for (int64_t r = 0; r < rows; r++) {
        if (p->packs) fetch(&w->s.c, w->next_at + r, w->next_k, w->depth);
        if (w->s.c.bits < 8 && p->fields == 1 && !takes_bits(&w->s.c, p))
            p->kernel->unpack(w->s.c.bits, w->s.c.high_first, p->number,
                              w->depth,
                              lb_coded_codes(&w->s.c, w->at + r, w->k),
                              w->bytes + r * row_bytes(p));
    }
    if (p->scales.in_w)
        lb_int_ratios(w, rows);
    else if (p->fine)
        w->ratio[0] = LB_DOTINT_RATIO;
}

/* Line l of those that are turned together; lines that are not are zeros, and
 * pieces that are not whole are copied. */
static const int8_t *line_of(const lb_int_weights *w, int64_t k, int64_t bytes,
                             int l)
{
    int8_t *const to = w->lines + l * STRIP;
    if (k >= w->depth) return w->lines + LB_DOTINT_LINES * STRIP;
    const uint8_t *from = lb_coded_codes(&w->s.c, w->k + k, w->at);
    if (bytes % LB_DOTINT_PLACES == 0) return (const int8_t *)from;
    memcpy(to, from, (size_t)bytes);
    return to;
}

/* Bytes are turned as they are, with all their fields. Lines lie far apart,
 * and at bad distances: they are asked for one by one, a few ahead, and after
 * the last those of the next strip. */
static void strip_across(lb_int_weights *w, int64_t rows)
{
    const int64_t bytes = lb_coded_line_bytes(&w->s.c, rows);
    const int64_t wide = lb_round_up(bytes, LB_DOTINT_PLACES);
    const int8_t *line[LB_DOTINT_LINES];
    memset(w->lines, 0, (LB_DOTINT_LINES + 1) * STRIP);
    for (int64_t k = 0; k < w->depth; k += LB_DOTINT_LINES) {
        for (int l = 0; l < LB_DOTINT_LINES; l++) {
            const int64_t ahead = k + l + AHEAD;
            if (ahead < w->depth)
                fetch(&w->s.c, w->k + ahead, w->at, rows);
            else
                fetch(&w->s.c, w->k + ahead - w->depth, w->at + rows, rows);
            line[l] = line_of(w, k + l, bytes, l);
        }
        w->p->kernel->turn(line, wide, w->bytes + k, row_bytes(w->p));
    }
    if (w->p->scales.in_w)
        lb_int_ratios(w, rows);
    else if (w->p->fine)
        w->ratio[0] = LB_DOTINT_RATIO;
}

void lb_int_weights_next(lb_int_weights *w, int64_t j, int64_t k)
{
    w->next_at = j;
    w->next_k = k;
}

void lb_int_weights_strip(lb_int_weights *w, int64_t j, int64_t k, int64_t n)
{
    const int64_t rows = lb_min_i64(w->p->strip, w->s.first + w->s.n - j);
    w->at = j;
    w->k = k;
    w->depth = n;
    if (w->s.c.along)
        strip_along(w, rows);
    else
        strip_across(w, rows);
}

/* ---- stage two ----------------------------------------------------------- */

static lb_dotint_kind kind_of(const lb_int_weights *w)
{
    const lb_coded *c = &w->s.c;
    if (w->p->fields > 1) return LB_DOTINT_FIELDS;
    if (c->bits == 8) return LB_DOTINT_BYTES;
    if (!c->along || w->p->by_level) return LB_DOTINT_FIELD;
    return takes_bits(c, w->p) ? LB_DOTINT_BITS : LB_DOTINT_BYTES;
}

/* Where the codes of row r of the strip are, and which field of bytes. */
static void aim_codes(const lb_int_weights *w, int64_t r, lb_dotint_codes *to)
{
    const lb_coded *c = &w->s.c;
    const bool as_they_lie = c->bits == 8 || to->kind == LB_DOTINT_FIELDS ||
                             to->kind == LB_DOTINT_BITS;
    const int64_t apart = row_bytes(w->p);
    to->mask = 15;
    if (c->along && as_they_lie) {
        to->codes = lb_coded_codes(c, w->at + r, w->k);
        to->step = c->byte_step;
        return;
    }
    to->step = apart;
    to->codes = (const uint8_t *)w->bytes + r * apart;
    if (c->along || c->bits == 8) return;
    const int fields = 8 / c->bits, at = (int)(r % fields);
    to->codes = (const uint8_t *)w->bytes + r / fields * apart;
    to->field = (c->high_first ? fields - 1 - at : at) * c->bits;
    to->mask = (1 << c->bits) - 1;
}

/* Which ratios, and which of the largest scales, belong to row r. */
static int64_t ratio_of(const lb_int_weights *w, int64_t r)
{
    const int64_t g = w->s.c.lines.g;
    if (!w->p->scales.in_w) return 0;
    return w->s.c.along ? r : (w->at + r) / g - w->at / g;
}

/* Rows from r of the strip on; how far they can be taken together is up to
 * the caller. */
static lb_dotint_codes codes_of(const lb_int_weights *w, int64_t r)
{
    const lb_int_panels *p = w->p;
    lb_dotint_codes to = {
        .kind = kind_of(w),
        .bits = w->s.c.bits,
        .high_first = w->s.c.high_first,
        .number = p->number,
        .least = p->least,
        .slope = p->slope,
        .fine = p->fine,
        .level = p->level,
        .ratio = w->ratio + ratio_of(w, r) * p->ratio_apart,
        .ratio_step = p->scales.in_w && w->s.c.along ? p->ratio_apart : 0,
        .g = p->share,
        .n = 1,
        .depth = w->depth,
    };
    aim_codes(w, r, &to);
    return to;
}

static int64_t strip_rows(const lb_int_weights *w)
{
    return lb_min_i64(w->p->strip, w->s.first + w->s.n - w->at);
}

static float scale_of(const lb_int_weights *w, int64_t r)
{
    const float scale = w->p->scales.in_w ? w->largest[ratio_of(w, r)]
                                          : w->s.row[w->at + r - w->s.first];
    return scale * w->p->unit * LB_INT_DOWN;
}

void lb_int_weights_scales(const lb_int_weights *w, float *ws)
{
    for (int64_t r = 0; r < strip_rows(w); r++)
        ws[r] = scale_of(w, r);
}

/* Rows that are alike but for where they lie, so that they can be taken
 * together: all of them or, where these run along memory, those of a block of
 * scales that are in the same field of their bytes, every step-th. */
typedef struct {
    int64_t begin, end; /* of the block */
    int64_t first, step;
    lb_dotint_codes codes;
} run;

/* The next one before row last of the strip; begin and end say where to start,
 * at first. */
static bool next_run(const lb_int_weights *w, int64_t last, run *it)
{
    const bool blocks = w->p->scales.in_w && !w->s.c.along;
    const int64_t g = w->s.c.lines.g;
    it->step = w->s.c.along ? 1 : 8 / w->s.c.bits;
    it->first++;
    if (it->first >= lb_min_i64(it->end, it->begin + it->step)) {
        it->begin = it->first = it->end;
        if (it->begin >= last) return false;
        it->end = last;
        if (blocks)
            it->end =
                lb_min_i64(last, ((w->at + it->begin) / g + 1) * g - w->at);
    }
    it->codes = codes_of(w, it->first);
    it->codes.n = lb_ceil_div(it->end - it->first, it->step);
    return true;
}

void lb_int_weights_dots(const lb_int_weights *w, bool ask, const float *ws,
                         int rows, const int16_t *x, const lb_dotint_head *head,
                         bool first, float *c, int64_t ldc)
{
    const int64_t on = (w->next_at - w->at) * w->s.c.byte_step +
                       (w->next_k - w->k) * w->s.c.bits / 8;
    for (run it = {0}; next_run(w, strip_rows(w), &it);) {
        it.codes.ws = ws + it.first;
        it.codes.ws_step = it.step;
        it.codes.ahead = ask && w->s.c.along ? (uintptr_t)on : 0;
        w->p->kernel->dots(&it.codes, rows, x, head, first, c + it.first * ldc,
                           it.step * ldc);
    }
}

/* In place of rows that are not. */
static void pack_zeros(const lb_int_panels *p, int64_t depth, int16_t *to,
                       int64_t apart)
{
    const int lanes = p->kernel->lanes;
    for (int64_t k = 0; k < depth; k += lanes, to += apart)
        memset(to, 0, (size_t)lanes * sizeof *to);
}

void lb_int_weights_pack(lb_int_weights *w, int64_t j, int16_t *to, float *ws)
{
    const lb_int_panels *p = w->p;
    const int nr = p->kernel->nr, lanes = p->kernel->lanes;
    const int64_t apart = (int64_t)nr * lanes;
    const int64_t depth = lb_round_up(w->depth, p->step);
    const int64_t first = j - w->at;
    const int64_t rows = lb_min_i64(p->sub, strip_rows(w) - first);
    run it = {.begin = first, .end = first, .first = first};
    while (next_run(w, first + rows, &it)) {
        for (int64_t i = 0; i < it.codes.n; i++) {
            const int64_t r = it.first + i * it.step - first;
            p->kernel->pack(&it.codes, i,
                            to + r / nr * nr * depth + r % nr * lanes, apart);
            ws[r] = scale_of(w, first + r);
        }
    }
    for (int64_t r = rows; r < lb_round_up(rows, nr); r++) {
        pack_zeros(p, depth, to + r / nr * nr * depth + r % nr * lanes, apart);
        ws[r] = 0;
    }
}
