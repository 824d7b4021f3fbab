/* report_moves.c - quantized arrays that were moved to another layout or type:
 * how many exactly, and how many not. */
#include <inttypes.h>
#include <string.h>

#include "report.h"

const char *report_moved(const report_row *row)
{
    static const char *const word[] = {NULL, "moved", "rounded", "requantized",
                                       "refused"};
    return (size_t)row->moved < sizeof word / sizeof *word ? word[row->moved]
                                                           : NULL;
}

bool report_has_moves(const report *r)
{
    for (int64_t i = 0; i < r->n; i++)
        if (r->row[i].moved) return true;
    return false;
}

/* Quantized arrays that are floats in the output. */
static int64_t decoded(const report *r)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const char *from = r->row[i].entry.format;
        n += !r->row[i].moved && !r->row[i].format && from &&
             strcmp(from, "dense") != 0;
    }
    return n;
}

void report_moves(const report *r, FILE *to)
{
    const int64_t floats = decoded(r);
    report_group g[REPORT_GROUPS];
    const int n = report_groups(r, report_moved, g);
    int64_t others = r->n;
    for (int i = 0; i < n; i++) {
        fprintf(to, "%s%" PRId64 " %s",
                i ? ", " : "quantized arrays: ", g[i].count, g[i].key);
        if (g[i].error.apart)
            fprintf(to, " (nrmse %.2g, largest %.2g)",
                    lb_difference_nrmse(&g[i].error), g[i].worst);
        others -= g[i].count;
    }
    if (floats) fprintf(to, "; decoded to floats: %" PRId64, floats);
    fprintf(to, "; others copied: %" PRId64 "\n", others - floats);
}
