/* int_ratios.c - scales of weights as whole numbers, parts of the largest of a
 * row; see int_panels.h. */
#include <math.h>

#include "core/core.h"
#include "kernels/turn.h"
#include "matmul/int_panels.h"

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

/* Scales of some blocks of each line of the depth, those of a block together.
 */
static void turn_scales(lb_int_weights *w, int64_t first, int64_t blocks)
{
    const lb_coded *c = &w->s.c;
    const int64_t f = sizeof(float), apart = w->p->kc;
    float tmp[LB_INT_BLOCKS + 1];
    const int64_t lines = c->scale ? w->depth : 1; /* that are read as one */
    for (int64_t k = 0; k < w->depth; k += lines) {
        const float *s =
            lb_coded_scales(c, w->p->cpu, w->k + k, first, blocks, tmp);
        lb_turn(sizeof *s, (const char *)s, c->scale_step * f,
                (char *)(w->scales + k), apart * f, lines, blocks);
    }
}

/* Those of a strip whose rows run along memory: for each block of rows one for
 * each of the depth. */
static void ratios_across(lb_int_weights *w, int64_t rows)
{
    const lb_int_panels *p = w->p;
    const int64_t g = w->s.c.lines.g, first = w->at / g;
    const int64_t blocks = (w->at + rows - 1) / g - first + 1;
    turn_scales(w, first, blocks);
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
    const int64_t g = w->s.c.lines.g, first = w->k / g;
    const int64_t blocks = (w->k + w->depth - 1) / g - first + 1;
    const bool there = w->s.c.scale && p->share > 1;
    int16_t some[LB_DOTINT_DEEP];
    for (int64_t r = 0; r < (there ? 1 : rows); r++) {
        int16_t *const to = w->ratio + r * p->ratio_apart;
        const float *s = lb_coded_scales(&w->s.c, p->cpu, w->at + r, first,
                                         blocks, w->scales);
        ratios_of(p, there ? rows : 1, blocks, s, w->s.c.scale_step,
                  p->share > 1 ? to : some, w->largest + r);
        if (p->share == 1) spread(some, g, w->k % g, w->depth, to);
    }
}

void lb_int_ratios(lb_int_weights *w, int64_t rows)
{
    if (w->s.c.along)
        ratios_along(w, rows);
    else
        ratios_across(w, rows);
}
