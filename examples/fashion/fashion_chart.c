/* fashion_chart.c - learning curves as SVG, each labelled at its end. */
#include <math.h>
#include <stdio.h>

#include "fashion.h"

enum { WIDTH = 720, HEIGHT = 420, LEFT = 60, RIGHT = 130, TOP = 40, LOW = 45 };

typedef struct frame {
    FILE *f;
    double lo, hi;
    int n;
} frame;

static double at_x(const frame *c, int i)
{
    const double room = WIDTH - LEFT - RIGHT;
    return LEFT + (c->n > 1 ? room * i / (c->n - 1) : room / 2);
}

static double at_y(const frame *c, double y)
{
    const double room = HEIGHT - TOP - LOW;
    return HEIGHT - LOW - room * (y - c->lo) / (c->hi - c->lo);
}

static void draw_axes(const frame *c, const char *title)
{
    fprintf(c->f,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' "
            "font-family='sans-serif' font-size='12'>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='%d' y='24' font-size='15'>%s</text>\n",
            WIDTH, HEIGHT, LEFT, title);
    const double step = c->hi - c->lo > 12 ? 5 : 1;
    for (double y = ceil(c->lo / step) * step; y <= c->hi; y += step)
        fprintf(c->f,
                "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#ddd'/>"
                "<text x='%d' y='%.1f' text-anchor='end'>%.0f</text>\n",
                LEFT, WIDTH - RIGHT, at_y(c, y), at_y(c, y), LEFT - 8,
                at_y(c, y) + 4, y);
    for (int i = 0; i < c->n; i++)
        fprintf(c->f, "<text x='%.1f' y='%d' text-anchor='middle'>%d</text>\n",
                at_x(c, i), HEIGHT - LOW + 18, i + 1);
    fprintf(c->f, "<text x='%d' y='%d'>epochs</text>\n", WIDTH - RIGHT + 8,
            HEIGHT - LOW + 18);
}

static void draw_curve(const frame *c, const curve *v, int which, double *above)
{
    static const char *const color[] = {"#1b1b1b", "#1f77b4", "#2ca02c",
                                        "#ff7f0e", "#d62728", "#9467bd"};
    const char *of = color[which % 6];
    fprintf(c->f, "<polyline fill='none' stroke='%s' stroke-width='2' points='",
            of);
    for (int i = 0; i < v->n; i++)
        fprintf(c->f, "%.1f,%.1f ", at_x(c, i), at_y(c, fmax(v->y[i], c->lo)));
    double y = at_y(c, v->y[v->n - 1]) + 4;
    if (y < *above + 14) y = *above + 14; /* labels must not overlap */
    *above = y;
    fprintf(c->f, "'/>\n<text x='%d' y='%.1f' fill='%s'>%s %.1f</text>\n",
            WIDTH - RIGHT + 8, y, of, v->name, v->y[v->n - 1]);
}

bool chart_write(const char *path, const char *title, const curve *c, int n)
{
    frame to = {.f = fopen(path, "w"), .lo = 100, .hi = 0};
    if (!to.f) return false;
    for (int k = 0; k < n; k++) {
        to.n = c[k].n > to.n ? c[k].n : to.n;
        for (int i = 0; i < c[k].n; i++) {
            to.lo = fmin(to.lo, floor(c[k].y[i]));
            to.hi = fmax(to.hi, ceil(c[k].y[i]));
        }
    }
    to.lo = fmax(to.lo, to.hi - 20);
    draw_axes(&to, title);
    double above = 0;
    /* The best first, so that labels are placed downward. */
    for (int drawn = 0, last = -1; drawn < n; drawn++) {
        int best = -1;
        for (int k = 0; k < n; k++) {
            const double y = c[k].y[c[k].n - 1];
            const double was = last < 0 ? HUGE_VAL : c[last].y[c[last].n - 1];
            const bool later = y < was || (y == was && k > last);
            if (later && (best < 0 || y > c[best].y[c[best].n - 1])) best = k;
        }
        if (best < 0) break;
        draw_curve(&to, &c[best], best, &above);
        last = best;
    }
    fprintf(to.f, "</svg>\n");
    return fclose(to.f) == 0;
}
