/* panels.c - which weights become bytes, and how; see panels.h. */
#include "matmul/panels.h"

#include <math.h>

#include "kernels/pack_integers.h"
#include "matmul/operand.h"
#include "matmul/weights.h"

enum {
    MANY = 64,        /* rows of w that share scales which do not differ much */
    SPREAD = 128,     /* of the depth, if its scales are in x */
    ROUNDED = 256,    /* of longer blocks most weights are small next to the
                       * largest, and rounded levels err by more than x */
    FEW = 12,         /* rows of x for which weights are better not packed, */
    LINES = 32,       /* and rows of these weights that meet a group */
    WORDS = 256,      /* depth of a panel of words, */
    WORDS_SHARE = 128 /* and the most of what shares a scale of x: the more
                       * there are, the smaller each has to be */
};

/* ---- levels -------------------------------------------------------------- */

typedef struct {
    int number[16];
    float unit;
    bool whole; /* numbers are levels */
} numbers;

static float largest_level(const lb_coded *c)
{
    float most = 0;
    for (int i = 0; i < 1 << c->bits; i++)
        most = fmaxf(most, fabsf(c->numbers.level[i]));
    return most;
}

/* Levels as parts of the largest, which becomes `top`; returns the sum of
 * squared errors. */
static double round_levels(const lb_coded *c, float most, float top,
                           numbers *to)
{
    double error = 0;
    for (int i = 0; i < 1 << c->bits; i++) {
        const float part = c->numbers.level[i] / most;
        to->number[i] = (int)lrintf(part * top);
        const double off = (double)part - to->number[i] / (double)top;
        error += off * off;
    }
    to->unit = most / top;
    to->whole = false;
    return error;
}

static bool whole_levels(const lb_coded *c, numbers *to)
{
    *to = (numbers){.unit = 1, .whole = true};
    for (int i = 0; i < 1 << c->bits; i++) {
        const float level = c->numbers.level[i];
        if (level != rintf(level) || fabsf(level) > 127) return false;
        to->number[i] = (int)level;
    }
    return true;
}

/* False: levels are not finite. For the quantiles of a normal distribution,
 * 112.03 is the scale up to 127 that rounds best: an error of 3.3e-3 instead of
 * 5e-3. */
static bool numbers_of(const lb_coded *c, numbers *to)
{
    static const float tops[] = {127, 112.03f};
    if (c->bits == 8) {
        *to = (numbers){.unit = 1, .whole = true};
        return true;
    }
    for (int i = 0; i < 1 << c->bits; i++)
        if (!isfinite(c->numbers.level[i])) return false;
    if (whole_levels(c, to)) return true;
    const float most = largest_level(c);
    if (most < 0x1p-100f) return false; /* its parts would not be exact */
    double least = INFINITY;
    for (int t = 0; t < 2; t++) {
        numbers n = {.whole = false};
        const double error = round_levels(c, most, tops[t], &n);
        if (error >= least) continue;
        least = error;
        *to = n;
    }
    return true;
}

/* Numbers as bytes from 0 on; returns the largest. */
static int place_numbers(const lb_coded *c, const numbers *n, lb_panels *p)
{
    int least = 0, most = 0;
    p->codes = (lb_dotbyte_codes){.bits = c->bits, .high_first = c->high_first};
    p->unit = n->unit;
    p->offset = 128;
    if (c->bits == 8) return 255;
    for (int i = 0; i < 1 << c->bits; i++) {
        least = n->number[i] < least ? n->number[i] : least;
        most = n->number[i] > most ? n->number[i] : most;
    }
    p->offset = -least;
    for (int i = 0; i < 16; i++)
        p->codes.number[i] =
            (uint8_t)(n->number[i & ((1 << c->bits) - 1)] - least);
    return most - least;
}

/* ---- scales -------------------------------------------------------------- */

/* Panels hold whole blocks. False: blocks are too small, or of a bad size. */
static bool place_blocks(const lb_coded *c, lb_panels *p)
{
    const int64_t g = c->lines.g;
    p->kc = p->share = LB_DOTBYTE_KC;
    if (p->scales.in_w && g % LB_DOTBYTE_KC) {
        if (!c->along || g > LB_DOTBYTE_KC || g % LB_DOTBYTE_STEP) return false;
        p->kc = LB_DOTBYTE_KC / g * g;
        p->share = g;
    }
    return c->along || !p->scales.in_w;
}

/* One digit: scales of the depth spread x over more than one byte holds well,
 * unless each serves many weights and few numbers of x share a scale of their
 * own. Levels that are not whole are rounded where x is, too. */
static bool digits_fit(int digits, int64_t rows, lb_precision precision,
                       const numbers *n, lb_panels *p)
{
    const bool rounded =
        n->whole || (precision == LB_PRECISION_FASTEST && p->share <= ROUNDED);
    p->up = p->kernel->x_size == 4 ? 0x1p12f : digits == 2 ? 0x1p14f : 0x1p6f;
    if (digits == 2) return rounded;
    if (p->kernel->x_size > 1 || (p->scales.in_x && rows < MANY)) return false;
    if (p->scales.in_x) p->share = SPREAD;
    return n->whole || p->share <= ROUNDED;
}

static bool bytes_of(const lb_coded *c, int64_t rows, lb_precision precision,
                     const numbers *n, lb_panels *p)
{
    if (!place_blocks(c, p)) return false;
    lb_dotbyte_need need = {.most_w = place_numbers(c, n, p),
                            .bits = c->bits,
                            .along = c->along,
                            .words = true};
    need.signs = c->bits == 1 && need.most_w == 2 && p->share == p->kc;
    p->kernel = lb_dotbyte_for(p->cpu, &need);
    if (!p->kernel) return false;
    p->offset -= p->kernel->bias;
    p->in_turn = c->along ? p->fields : 1;
    const int64_t share = p->share;
    int digits = precision == LB_PRECISION_FASTEST ? 1 : 2;
    if (digits == 1 && !digits_fit(1, rows, precision, n, p)) {
        p->share = share;
        digits = 2;
    }
    p->planes = p->kernel->x_size > 1 ? 1 : digits;
    return digits == 1 || (digits_fit(2, rows, precision, n, p) &&
                           (p->kernel->planes || p->kernel->x_size > 1));
}

/* Few rows of x meet bytes as stored, where panels contain no more than one
 * scale. How deep these are is the same on every level, and so is rounded x. */
static void take_lines(const lb_coded *c, int64_t m, lb_panels *p)
{
    if (c->bits != 8 || !c->along || m > FEW || p->planes != 1 ||
        p->kernel->x_size > 1 || p->share < p->kc)
        return;
    const bool deep = !p->scales.in_w || c->lines.g % LB_DOTBYTE_DEEP == 0;
    if (deep) p->kc = p->share = LB_DOTBYTE_DEEP;
    const lb_dotbyte *lines = lb_dotlines_for(p->cpu);
    if (lines) p->kernel = lines;
}

/* ---- words --------------------------------------------------------------- */

/* As place_blocks. Across, those of a strip are whole or one. */
static bool place_word_blocks(const lb_coded *c, const numbers *n, lb_panels *p)
{
    const int64_t g = c->lines.g, wide = LB_DOTBYTE_BYTES * p->fields;
    const int64_t most = n->whole ? WORDS : WORDS_SHARE;
    p->kc = WORDS;
    p->share = most;
    if (!p->scales.in_w) return true;
    p->ratios = !c->along;
    if (g % LB_DOTBYTE_STEP) return false;
    if (p->ratios) {
        p->share = WORDS_SHARE;
        return wide % g == 0 || g % wide == 0;
    }
    if (g > most && g % most) return false;
    p->share = lb_min_i64(g, most);
    p->kc = g % WORDS == 0 ? WORDS : p->share * (WORDS / p->share);
    if (g > most && g % p->kc) p->kc = p->share;
    return true;
}

/* What weights of the largest magnitude `most` leave to x. */
static float sum_for(float most)
{
    return 0x1p31f / ceilf(fmaxf(most, 1)) - LB_DOTWORD_SPARE;
}

/* Levels that ratios are multiplied with. */
static void place_ratios(const lb_coded *c, float most, lb_panels *p)
{
    p->sum = sum_for(LB_DOTWORD_MOST_W);
    p->unit = c->bits == 8 ? 0x1p15f / (LB_DOTWORD_RATIO_8 * 64)
                           : most / LB_DOTWORD_MOST_W;
    for (int i = 0; i < 16 && c->bits < 8; i++)
        p->codes.level[i] =
            (int16_t)lrintf(c->numbers.level[i] / most * LB_DOTWORD_LEVEL);
}

/* Levels that are not whole, in as many steps as leave most to x. For the
 * quantiles of a normal distribution, 5456.85 rounds as well as the largest
 * scale. */
static void place_levels(const lb_coded *c, float most, lb_panels *p)
{
    static const float tops[] = {LB_DOTWORD_MOST_W, 5456.85f};
    double least = INFINITY;
    for (int t = 0; t < 2; t++) {
        numbers n = {.whole = false};
        const double error = round_levels(c, most, tops[t], &n);
        if (error >= least) continue;
        least = error;
        p->unit = n.unit;
        p->sum = sum_for(tops[t]);
        for (int i = 0; i < 16; i++)
            p->codes.level[i] = (int16_t)n.number[i];
    }
}

static void place_whole(const lb_coded *c, const numbers *n, lb_panels *p)
{
    p->unit = 1;
    p->sum = sum_for(c->bits == 8 ? 128 : largest_level(c));
    for (int i = 0; i < 16; i++)
        p->codes.level[i] = (int16_t)n->number[i];
}

static bool words_of(const lb_coded *c, const numbers *n, lb_panels *p)
{
    const float most = c->bits < 8 ? largest_level(c) : 128;
    p->kernel = lb_dotword_for(p->cpu);
    if (!(p->kernel->widths & c->bits) || most < 0x1p-100f ||
        !place_word_blocks(c, n, p))
        return false;
    p->codes = (lb_dotbyte_codes){.bits = c->bits, .high_first = c->high_first};
    if (p->ratios)
        place_ratios(c, most, p);
    else if (n->whole)
        place_whole(c, n, p);
    else
        place_levels(c, most, p);
    p->offset = 0;
    p->up = 0x1p14f;
    p->planes = 1;
    p->in_turn = c->along ? 2 * p->fields : 1;
    return true;
}

/* Rows of w that become panels together. */
static int64_t strip_of(const lb_coded *c, const lb_panels *p)
{
    if (p->kernel->dots) return LINES;
    const int64_t strip =
        c->along ? lb_max_i64(LB_PANELS_BYTES / p->kc, p->kernel->nr)
                 : (int64_t)LB_DOTBYTE_BYTES * p->fields;
    return lb_round_up(strip, p->kernel->nr);
}

bool lb_panels_of(const lb_cpu *cpu, const lb_coded *c, int64_t m, int64_t n,
                  lb_precision precision, lb_panels *p)
{
    numbers levels;
    *p = (lb_panels){.cpu = cpu,
                     .scales = lb_scales_way_of(c),
                     .fields = 8 / c->bits,
                     .apart = c->along ? 1 : 8 / c->bits};
    if (!numbers_of(c, &levels)) return false;
    if (bytes_of(c, n, precision, &levels, p))
        take_lines(c, m, p);
    else if (!words_of(c, &levels, p))
        return false;
    p->each = p->scales.in_w && c->along;
    p->strip = strip_of(c, p);
    p->staged = !c->along && c->bits < 8 && p->kernel->quads;
    return true;
}

bool lb_panels_for(const lb_product *p, const lb_weights *w, const lb_cpu *cpu,
                   lb_panels *to)
{
    if (!w->coded.bits ||
        !lb_panels_of(cpu, &w->coded, w->m, w->n, p->precision, to))
        lb_panels_decoded(cpu, w->coded.along, p->precision, to);
    /* Decoding rounds to the dtype, reading integers does not. */
    to->integers =
        to->decoded && to->kernel->size == 1 && to->kernel->most_w == 255 &&
        to->kernel->along && w->coded.along && lb_pack_integers_for(cpu) &&
        lb_operand_integers(w, p->k) && w->w->matrix->a->dtype == LB_F32;
    to->mr = to->kernel->mr / (to->kernel->by_row ? to->planes : 1);
    return true;
}
