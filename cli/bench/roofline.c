/* roofline.c - see roofline.h.
 *
 * Both axes are logarithmic: FLOP per byte of weights on the x axis, GFLOP/s on
 * the y axis. The slanted line is DRAM bandwidth, the horizontal lines are
 * peaks of arithmetic and of table lookups. Colours are formats, shapes are
 * precisions; hollow points had their weights in cache, and may lie above the
 * slanted line.
 */
#include "roofline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bench_rows.h"

enum {
    WIDTH = 960,
    HEIGHT = 600,
    LEFT = 70,
    RIGHT = 190,
    TOP = 50,
    BOTTOM = 60,
    COLOURS = 8
};

typedef struct plot {
    FILE *file;
    double x0, x1, y0, y1; /* powers of ten at the edges of the plot */
} plot;

static double across(const plot *p, double x)
{
    const double at = (log10(x) - p->x0) / (p->x1 - p->x0);
    return LEFT + at * (WIDTH - LEFT - RIGHT);
}

static double down(const plot *p, double y)
{
    const double at = (log10(y) - p->y0) / (p->y1 - p->y0);
    return HEIGHT - BOTTOM - at * (HEIGHT - TOP - BOTTOM);
}

static double intensity(const cell *c)
{
    return cell_flops(c) / c->weight_bytes;
}

static const char *colour(int i)
{
    static const char *const list[COLOURS] = {"#4e79a7", "#f28e2b", "#59a14f",
                                              "#e15759", "#b07aa1", "#9c755f",
                                              "#76b7b2", "#797979"};
    return list[i % COLOURS];
}

/* ---- axes and limits ---------------------------------------------------- */

static void line(const plot *p, double x0, double y0, double x1, double y1,
                 const char *style)
{
    fprintf(p->file, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' %s/>\n",
            across(p, x0), down(p, y0), across(p, x1), down(p, y1), style);
}

static void draw_axes(const plot *p, const limits *l)
{
    static const char grid[] = "stroke='#dddddd'";
    const double left = pow(10, p->x0), right = pow(10, p->x1);
    const double low = pow(10, p->y0), high = pow(10, p->y1);
    for (int e = (int)p->x0; e <= (int)p->x1; e++) {
        const double x = pow(10, e);
        line(p, x, low, x, high, grid);
        fprintf(p->file,
                "<text x='%.1f' y='%d' text-anchor='middle'>%g</text>\n",
                across(p, x), HEIGHT - BOTTOM + 18, x);
    }
    for (int e = (int)p->y0; e <= (int)p->y1; e++) {
        const double y = pow(10, e);
        line(p, left, y, right, y, grid);
        fprintf(p->file, "<text x='%d' y='%.1f' text-anchor='end'>%g</text>\n",
                LEFT - 8, down(p, y) + 4, y);
    }
    fprintf(p->file,
            "<text x='%d' y='%d' text-anchor='middle'>FLOP per byte of "
            "weights</text>\n"
            "<text x='20' y='%d' text-anchor='middle' "
            "transform='rotate(-90 20 %d)'>GFLOP/s</text>\n"
            "<text x='%d' y='28' font-size='16'>lowbit products, %d "
            "thread%s</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, HEIGHT / 2, HEIGHT / 2,
            LEFT, l->threads, l->threads > 1 ? "s" : "");
}

static void draw_level(const plot *p, double rate, double dram,
                       const char *name)
{
    const double right = pow(10, p->x1);
    double from = rate / dram;
    if (from < pow(10, p->x0)) from = pow(10, p->x0);
    if (from > right) return;
    line(p, from, rate, right, rate, "stroke='black' stroke-width='1.5'");
    fprintf(p->file, "<text x='%.1f' y='%.1f'>%s %.0f</text>\n",
            across(p, right) + 6, down(p, rate) + 4, name, rate);
}

static double highest(const limits *l)
{
    return fmax(l->fma, fmax(l->dot16, l->dot8));
}

/* The highest lookup peak for this format, if lookups were used. */
static double looked_up(const cell *cells, int n, const char *format,
                        int threads)
{
    for (int i = 0; i < n; i++)
        if (cells[i].threads == threads && !strcmp(cells[i].format, format) &&
            !strcmp(cells[i].limit_name, "lookup"))
            return cells[i].limit;
    return 0;
}

static void draw_limits(const plot *p, const cell *cells, int n,
                        const limits *l)
{
    const double most = highest(l);
    double x0 = pow(10, p->x0);
    if (x0 * l->dram < pow(10, p->y0)) x0 = pow(10, p->y0) / l->dram;
    const double x1 = fmin(most / l->dram, pow(10, p->x1));
    line(p, x0, x0 * l->dram, x1, x1 * l->dram,
         "stroke='black' stroke-width='1.5'");
    const double middle = sqrt(x0 * x1);
    fprintf(p->file, "<text x='%.1f' y='%.1f'>DRAM %.1f GB/s</text>\n",
            across(p, middle) + 8, down(p, middle * l->dram) + 14, l->dram);
    draw_level(p, l->fma, l->dram, "f32 FMA");
    draw_level(p, l->dot16, l->dram, "int16 dot");
    draw_level(p, l->dot8, l->dram, "int8 dot");
    const double trits = looked_up(cells, n, "ternary", l->threads);
    const double signs = looked_up(cells, n, "binary", l->threads);
    if (trits > 0) draw_level(p, trits, l->dram, "ternary lookups");
    if (signs > 0) draw_level(p, signs, l->dram, "binary lookups");
}

/* ---- points ------------------------------------------------------------- */

/* A circle, a square or a triangle. */
static void draw_mark(FILE *file, double x, double y, lb_precision precision,
                      const char *ink, bool filled)
{
    const char *const fill = filled ? ink : "white";
    if (precision == LB_PRECISION_FAST)
        fprintf(file, "<rect x='%.1f' y='%.1f' width='8' height='8'", x - 4,
                y - 4);
    else if (precision == LB_PRECISION_FASTEST)
        fprintf(file, "<path d='M%.1f %.1fl5 9h-10z'", x, y - 6);
    else
        fprintf(file, "<circle cx='%.1f' cy='%.1f' r='4.5'", x, y);
    fprintf(file, " fill='%s' stroke='%s' stroke-width='1.5'>", fill, ink);
}

static const char *end_of_mark(lb_precision precision)
{
    if (precision == LB_PRECISION_FAST) return "</rect>";
    return precision == LB_PRECISION_FASTEST ? "</path>" : "</circle>";
}

/* Index of the format in order of appearance. */
static int format_index(const char **seen, int *n, const char *format)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(seen[i], format)) return i;
    if (*n < LIST_MAX) seen[*n] = format;
    return *n < LIST_MAX ? (*n)++ : 0;
}

static void draw_cells(const plot *p, const cell *cells, int n, int threads)
{
    const char *seen[LIST_MAX];
    int formats = 0;
    for (int i = 0; i < n; i++) {
        const cell *c = &cells[i];
        if (c->threads != threads) continue;
        draw_mark(p->file, across(p, intensity(c)), down(p, c->gflops),
                  c->precision, colour(format_index(seen, &formats, c->format)),
                  c->place == PLACE_DRAM);
        fprintf(p->file,
                "<title>%s %s M=%lld %lldx%lld %s: %.1f GFLOP/s</title>%s\n",
                c->format, precision_name(c->precision), (long long)c->m,
                (long long)c->n, (long long)c->k, place_name(c->place),
                c->gflops, end_of_mark(c->precision));
    }
    const int x = WIDTH - RIGHT + 40;
    int y = HEIGHT - BOTTOM - 20 * (formats + 4);
    for (int i = 0; i < formats; i++, y += 20)
        fprintf(p->file, "<text x='%d' y='%d' fill='%s'>%s</text>\n", x + 12,
                y + 4, colour(i), seen[i]);
    for (int q = LB_PRECISION_HIGHEST; q <= LB_PRECISION_FASTEST;
         q++, y += 20) {
        draw_mark(p->file, x, y, (lb_precision)q, "black", true);
        fprintf(p->file, "%s<text x='%d' y='%d'>%s</text>\n",
                end_of_mark((lb_precision)q), x + 12, y + 4,
                precision_name((lb_precision)q));
    }
    draw_mark(p->file, x, y, LB_PRECISION_HIGHEST, "black", false);
    fprintf(p->file, "</circle><text x='%d' y='%d'>warm</text>\n", x + 12,
            y + 4);
}

static void choose_range(plot *p, const cell *cells, int n, const limits *l)
{
    double low = l->fma, left = 1, right = l->dot8 / l->dram * 10;
    double high = highest(l);
    for (int i = 0; i < n; i++) {
        low = fmin(low, cells[i].gflops);
        high = fmax(high, cells[i].gflops);
        left = fmin(left, intensity(&cells[i]));
        right = fmax(right, intensity(&cells[i]));
    }
    p->x0 = floor(log10(left));
    p->x1 = ceil(log10(right));
    p->y0 = floor(log10(fmax(low, 1e-3)));
    p->y1 = ceil(log10(high));
}

bool roofline_check(const char *file)
{
    struct stat st;
    const bool there = !lstat(file, &st);
    if (there && !S_ISREG(st.st_mode))
        return true; /* a pipe: cannot be tested without side effects */
    FILE *const f = fopen(file, "a");
    if (!f) return bench_fail("%s: %s", file, strerror(errno));
    fclose(f);
    if (!there) remove(file);
    return true;
}

bool roofline_draw(const char *file, const cell *cells, int n, const limits *l)
{
    plot p = {.file = fopen(file, "w")};
    if (!p.file) return bench_fail("%s: %s", file, strerror(errno));
    choose_range(&p, cells, n, l);
    fprintf(p.file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
            "viewBox='0 0 %d %d' font-family='sans-serif' font-size='12'>\n"
            "<rect width='%d' height='%d' fill='white'/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_axes(&p, l);
    draw_limits(&p, cells, n, l);
    draw_cells(&p, cells, n, l->threads);
    fputs("</svg>\n", p.file);
    const bool bad = ferror(p.file);
    if (fclose(p.file) || bad) return bench_fail("cannot write %s", file);
    return true;
}
