/* coded_scales.c - see coded_scales.h. */
#include "matmul/coded_scales.h"

#include <math.h>
#include <string.h>

#include "core/core.h"
#include "matmul/magnitude.h"

enum { TOGETHER = 16 }; /* scales of places that are read at a time */

lb_scales_way lb_scales_way_of(const lb_coded *c)
{
    const bool lines_differ = c->scale_step != 0, places_differ = c->lines.g;
    const bool depth = c->along ? places_differ : lines_differ;
    const bool row = c->along ? lines_differ : places_differ;
    return (lb_scales_way){.in_x = depth && !row, .in_w = depth && row};
}

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
    float some[TOGETHER];
    for (int64_t i = 0; i < n;) {
        const int64_t first = (place + i) / g;
        const int64_t last = (place + n - 1) / g;
        const int64_t blocks = lb_min_i64(TOGETHER, last - first + 1);
        const float *s = lb_coded_scales(c, cpu, 0, first, blocks, some);
        const int64_t end = lb_min_i64(n, (first + blocks) * g - place);
        for (; i < end; i++)
            to[i] = s[(place + i) / g - first];
    }
}

static void read_factor(const lb_scales *s, int64_t k, int64_t n)
{
    if (s->c.along)
        scales_of_places(&s->c, s->cpu, k, n, s->factor);
    else
        scales_of_lines(&s->c, s->cpu, k, n, s->factor);
}

const float *lb_scales_factor(const lb_scales *s, int64_t k, int64_t n)
{
    if (!s->way.in_x) return NULL;
    read_factor(s, k, n);
    for (int64_t i = 0; i < n; i++)
        s->factor[i] *= s->shrink;
    return s->factor;
}

/* A power of 2 that makes no scale larger than 1, for x may be as large as a
 * float can be. */
static float shrink_of(const lb_scales *s, int64_t depth)
{
    int e = 0;
    float most = 0, sum;
    for (int64_t k = 0, n; k < depth; k += n) {
        n = lb_min_i64(s->kc, depth - k);
        read_factor(s, k, n);
        most = fmaxf(most, lb_largest_and_sum(n, s->factor, &sum));
    }
    if (most >= 0x1p-100f && isfinite(most)) frexpf(most, &e);
    return ldexpf(1, -e);
}

/* ---- a block of rows ----------------------------------------------------- */

/* Scales that must be read are read once for all of the depth, line by line,
 * if they are not too many to be kept. */
static int64_t read_floats(lb_scales_way way, const lb_coded *c, int64_t rows,
                           int64_t depth)
{
    enum { MOST = 1 << 18 };
    if (!way.in_w || c->scale) return 0;
    const int64_t lines = c->along ? rows : depth;
    const int64_t places = c->along ? depth : rows;
    const int64_t n = lines * (places / c->lines.g + 2);
    return n <= MOST ? n : 0;
}

size_t lb_scales_room(const lb_cpu *cpu, const lb_coded *c, int64_t kc,
                      int64_t most, int64_t depth, lb_scales *s, char *room)
{
    const lb_scales_way way = lb_scales_way_of(c);
    const int64_t f = sizeof(float), read = read_floats(way, c, most, depth);
    size_t used = 0;
    *s = (lb_scales){
        .cpu = cpu, .way = way, .c = *c, .kc = kc, .reads = read > 0};
    s->row = lb_carve(room, &used, most * f);
    s->read = lb_carve(room, &used, read * f);
    s->factor = lb_carve(room, &used, way.in_x ? kc * f : 0);
    return used;
}

/* From then on s->c says that they lie there. */
static void read_scales(lb_scales *s, int64_t depth)
{
    const lb_coded *c = &s->c;
    const int64_t j = s->first, n = s->n, g = c->lines.g;
    const int64_t line = c->along ? j : 0, lines = c->along ? n : depth;
    const int64_t first = c->along ? 0 : j / g;
    const int64_t last = ((c->along ? depth : j + n) - 1) / g;
    const int64_t blocks = last - first + 1;
    for (int64_t l = 0; l < lines; l++) {
        float *const to = s->read + l * blocks;
        lb_coded_scales(c, s->cpu, line + l, first, blocks, to);
    }
    s->c.scale = s->read;
    s->c.scale_step = blocks;
    s->c.first = -line * blocks - first;
}

void lb_scales_rows(lb_scales *s, int64_t j, int64_t n, int64_t depth)
{
    s->first = j;
    s->n = n;
    if (s->way.in_w) {
        if (s->reads) read_scales(s, depth);
    } else if (s->way.in_x) {
        s->shrink = shrink_of(s, depth);
        for (int64_t i = 0; i < n; i++)
            s->row[i] = 1 / s->shrink;
    } else if (s->c.along || !s->c.lines.g) {
        scales_of_lines(&s->c, s->cpu, s->c.along ? j : 0, n, s->row);
    } else {
        scales_of_places(&s->c, s->cpu, j, n, s->row);
    }
}
