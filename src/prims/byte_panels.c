/* byte_panels.c - which weights become bytes, and how; see byte_panels.h. */
#include "prims/byte_panels.h"

#include <math.h>

#include "prims/product.h"

enum {
    PANEL = 16 << 10, /* bytes of panels in L1, beside rows of x */
    MANY = 64,        /* rows of w that share scales which do not differ much */
    SPREAD = 128,     /* of the depth, if its scales are in x */
    ROUNDED = 256     /* of longer blocks most weights are small next to the
                       * largest, and rounded levels err by more than x */
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

/* False: levels are not finite. Where they are the quantiles of a normal
 * distribution, 112.03 brings them nearest to whole numbers, of all scales up
 * to 127: an error of 3.3e-3 instead of 5e-3. */
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
static int place_numbers(const lb_coded *c, const numbers *n, lb_byte_panels *p)
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
static bool place_blocks(const lb_coded *c, lb_byte_panels *p)
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

/* Scales of the depth spread x over more than one byte holds well, unless each
 * serves many weights and few numbers of x share a scale of their own. Two
 * planes take weights as they are. */
static bool planes_fit(int64_t rows, const numbers *n, lb_byte_panels *p)
{
    p->up = p->planes == 2 ? 0x1p14f : 0x1p6f;
    if (p->planes == 2) return p->kernel->planes && n->whole && !p->scales.in_w;
    if (p->scales.in_x && rows < MANY) return false;
    if (p->scales.in_x) p->share = SPREAD;
    return n->whole || p->share <= ROUNDED;
}

bool lb_byte_panels_of(const lb_cpu *cpu, const lb_coded *c, int64_t rows,
                       lb_precision precision, lb_byte_panels *p)
{
    numbers n;
    *p = (lb_byte_panels){.fields = 8 / c->bits,
                          .in_turn = c->along ? 8 / c->bits : 1,
                          .apart = c->along ? 1 : 8 / c->bits};
    if (!numbers_of(c, &n)) return false;
    p->cpu = cpu;
    p->scales = lb_scales_way_of(c);
    if (!place_blocks(c, p)) return false;
    p->kernel = lb_dotbyte_for(cpu, place_numbers(c, &n, p), c->along);
    if (!p->kernel) return false;
    p->offset -= p->kernel->bias;
    p->strip = c->along ? lb_max_i64(PANEL / p->kc, p->kernel->nr)
                        : (int64_t)LB_DOTBYTE_BYTES * p->fields;
    p->strip = lb_round_up(p->strip, p->kernel->nr);
    for (p->planes = precision == LB_PRECISION_FASTEST ? 1 : 2; p->planes <= 2;
         p->planes++)
        if (planes_fit(rows, &n, p)) return true;
    return false;
}
