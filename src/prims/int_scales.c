/* int_scales.c - where the scales of weights go; see int_panels.h. */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "prims/int_panels.h"

/* ---- scales that are not in weights -------------------------------------- */

/* One scale for each of n lines. */
static void scales_of_lines(const lb_coded *c, const lb_cpu *cpu, int64_t line,
                            int64_t n, float *to)
{
    float s;
    if (c->scale_step == 1) { /* they lie like those of one line */
        const float *all = lb_coded_scales(c, cpu, line, 0, n, to);
        if (all != to) memcpy(to, all, (size_t)n * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = i > 0 && c->scale_step == 0
                    ? to[0]
                    : *lb_coded_scales(c, cpu, line + i, 0, 1, &s);
}

/* One for each of n places of all lines. */
static void scales_of_places(const lb_coded *c, const lb_cpu *cpu,
                             int64_t place, int64_t n, float *to)
{
    const int64_t g = c->lines.g;
    float some[LB_INT_BLOCKS];
    for (int64_t i = 0; i < n;) {
        const int64_t first = (place + i) / g;
        const int64_t last = (place + n - 1) / g;
        const int64_t blocks = lb_min_i64(LB_INT_BLOCKS, last - first + 1);
        const float *s = lb_coded_scales(c, cpu, 0, first, blocks, some);
        const int64_t end = lb_min_i64(n, (first + blocks) * g - place);
        for (; i < end; i++)
            to[i] = s[(place + i) / g - first];
    }
}

static void read_factor(const lb_int_weights *w, int64_t k, int64_t n)
{
    if (w->c.along)
        scales_of_places(&w->c, w->p->cpu, k, n, w->factor);
    else
        scales_of_lines(&w->c, w->p->cpu, k, n, w->factor);
}

const float *lb_int_weights_factor(const lb_int_weights *w, int64_t k,
                                   int64_t n)
{
    if (!w->p->in_x) return NULL;
    read_factor(w, k, n);
    for (int64_t i = 0; i < n; i++)
        w->factor[i] *= w->shrink;
    return w->factor;
}

/* A power of 2 that makes no scale larger than 1, for x may be as large as a
 * float can be. */
static float shrink_of(const lb_int_weights *w, int64_t depth)
{
    int e = 0;
    float most = 0;
    for (int64_t k = 0, n; k < depth; k += n) {
        n = lb_min_i64(w->p->kc, depth - k);
        read_factor(w, k, n);
        for (int64_t i = 0; i < n; i++)
            most = fmaxf(most, fabsf(w->factor[i]));
    }
    if (most >= 0x1p-100f && isfinite(most)) frexpf(most, &e);
    return ldexpf(1, -e);
}

/* ---- a block of rows ----------------------------------------------------- */

/* Scales that must be read are read once for all of the depth, line by line,
 * if they are not too many to be kept. */
int64_t lb_int_scales_room(const lb_int_panels *p, const lb_coded *c,
                           int64_t rows, int64_t depth)
{
    enum { MOST = 1 << 18 };
    if (!p->in_w || c->scale) return 0;
    const int64_t lines = c->along ? rows : depth;
    const int64_t places = c->along ? depth : rows;
    const int64_t n = lines * (places / c->lines.g + 2);
    return n <= MOST ? n : 0;
}

/* From then on w->c says that they lie there. */
static void read_scales(lb_int_weights *w, int64_t depth)
{
    const lb_coded *c = &w->c;
    const int64_t j = w->first, n = w->n, g = c->lines.g;
    const int64_t line = c->along ? j : 0, lines = c->along ? n : depth;
    const int64_t first = c->along ? 0 : j / g;
    const int64_t last = ((c->along ? depth : j + n) - 1) / g;
    const int64_t blocks = last - first + 1;
    for (int64_t l = 0; l < lines; l++) {
        float *const to = w->read + l * blocks;
        lb_coded_scales(c, w->p->cpu, line + l, first, blocks, to);
    }
    w->c.scale = w->read;
    w->c.scale_step = blocks;
    w->c.first = -line * blocks - first;
}

void lb_int_weights_rows(lb_int_weights *w, int64_t j, int64_t n, int64_t depth)
{
    w->first = j;
    w->n = n;
    if (w->p->in_w) {
        if (w->reads) read_scales(w, depth);
    } else if (w->p->in_x) {
        w->shrink = shrink_of(w, depth);
        for (int64_t i = 0; i < n; i++)
            w->row[i] = 1 / w->shrink;
    } else if (w->c.along || !w->c.lines.g) {
        scales_of_lines(&w->c, w->p->cpu, w->c.along ? j : 0, n, w->row);
    } else {
        scales_of_places(&w->c, w->p->cpu, j, n, w->row);
    }
}

/* ---- ratios -------------------------------------------------------------- */

/* Scales of rows as parts of the largest of each. */
static void ratios_of(const lb_int_panels *p, int64_t rows, int64_t n,
                      const float *s, int64_t step, int16_t *ratio,
                      float *largest)
{
    const float top = p->by_level ? LB_DOTINT_RATIO : LB_DOTINT_NUMBER_RATIO;
    p->kernel->ratios(rows, n, s, step, top, ratio, p->ratio_apart, largest);
    for (int64_t r = 0; r < rows; r++)
        if (!isfinite(largest[r])) largest[r] = (float)NAN;
}

/* Those of a strip whose rows run along memory: for each block of rows one for
 * each of the depth. */
static void ratios_across(lb_int_weights *w, int64_t rows)
{
    const lb_int_panels *p = w->p;
    const lb_coded *c = &w->c;
    const int64_t first = w->at / c->lines.g;
    const int64_t blocks = (w->at + rows - 1) / c->lines.g - first + 1;
    float tmp[LB_INT_BLOCKS + 1];
    const float *s = tmp;
    for (int64_t k = 0; k < w->depth; k++) {
        if (c->scale && k > 0)
            s += c->scale_step;
        else
            s = lb_coded_scales(c, p->cpu, w->k + k, first, blocks, tmp);
        for (int64_t b = 0; b < blocks; b++)
            w->scales[b * p->kc + k] = s[b];
    }
    ratios_of(p, blocks, w->depth, w->scales, p->kc, w->ratio, w->largest);
}

/* One ratio for each of the depth, from those of blocks of g; `at` is where in
 * the first of these it begins. */
static void spread(const int16_t *ratio, int64_t g, int64_t at, int64_t n,
                   int16_t *to)
{
    for (int64_t k = 0; k < n; ratio++, at = 0)
        for (int64_t i = at; i < g && k < n; i++)
            to[k++] = *ratio;
}

/* Those of a strip along memory, row by row. */
static void ratios_along(lb_int_weights *w, int64_t rows)
{
    const lb_int_panels *p = w->p;
    const int64_t g = w->c.lines.g, first = w->k / g;
    const int64_t blocks = (w->k + w->depth - 1) / g - first + 1;
    const bool there = w->c.scale && p->share > 1;
    int16_t some[LB_DOTINT_DEEP];
    for (int64_t r = 0; r < (there ? 1 : rows); r++) {
        int16_t *const to = w->ratio + r * p->ratio_apart;
        const float *s =
            lb_coded_scales(&w->c, p->cpu, w->at + r, first, blocks, w->scales);
        ratios_of(p, there ? rows : 1, blocks, s, w->c.scale_step,
                  p->share > 1 ? to : some, w->largest + r);
        if (p->share == 1) spread(some, g, w->k % g, w->depth, to);
    }
}

void lb_int_ratios(lb_int_weights *w, int64_t rows)
{
    if (w->c.along)
        ratios_along(w, rows);
    else
        ratios_across(w, rows);
}
