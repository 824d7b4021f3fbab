/* cell.c - see cell.h. */
#include "cell.h"

#include <stdio.h>

#include "bench_rows.h"

double cell_flops(const cell *c)
{
    return 2.0 * (double)c->m * (double)c->n * (double)c->k;
}

double cell_weight_rate(const cell *c)
{
    return c->gflops * c->weight_bytes / cell_flops(c);
}

void cell_print_head(void)
{
    printf("%-8s %-9s %5s %-11s %-4s %-3s %-4s %3s %8s %8s %7s %-17s %8s\n",
           "format", "precision", "M", "NxK", "x", "W", "from", "thr",
           "GFLOP/s", "best", "W GB/s", "of limit", "error");
}

void cell_print(const cell *c)
{
    char shape[48], limit[32] = "-";
    snprintf(shape, sizeof shape, "%lldx%lld", (long long)c->n,
             (long long)c->k);
    if (c->limit > 0)
        snprintf(limit, sizeof limit, "%3.0f %% of %s",
                 100 * c->gflops / c->limit, c->limit_name);
    printf("%-8s %-9s %5lld %-11s %-4s %-3s %-4s %3d %8.2f %8.2f %7.2f %-17s "
           "%8.1e%s\n",
           c->format, precision_name(c->precision), (long long)c->m, shape,
           lb_dtype_name(c->act), orient_name(c->orient), place_name(c->place),
           c->threads, c->gflops, c->best, cell_weight_rate(c), limit, c->error,
           c->clean ? "" : " ~");
    fflush(stdout);
}

void cell_print_json(const cell *c)
{
    row_begin();
    row_text("format", c->format);
    row_text("precision", precision_name(c->precision));
    row_integer("m", c->m);
    row_integer("threads", c->threads);
    row_text("weights", place_name(c->place));
    row_number("gflops", c->gflops);
    row_number("error", c->error);
    row_integer("n", c->n);
    row_integer("k", c->k);
    row_text("orient", orient_name(c->orient));
    row_text("act", lb_dtype_name(c->act));
    row_number("best_gflops", c->best);
    row_number("weight_gbps", cell_weight_rate(c));
    row_integer("samples", c->samples);
    row_bool("clean", c->clean);
    row_text("kernel", c->kernel);
    row_text("isa", c->isa);
    if (c->limit > 0) {
        row_number("limit_gflops", c->limit);
        row_text("limit", c->limit_name);
    }
    row_end();
}
