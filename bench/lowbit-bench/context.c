/* context.c - see context.h. */
#include "context.h"

#include <string.h>

#include "complain.h"

lb_ctx *context_open(const bench_options *o, int threads)
{
    const lb_options options = {.threads = threads, .isa = o->isa};
    lb_ctx *const cx = lb_open(&options);
    if (cx) return cx;
    char why[256];
    lb_open_why(&options, why, sizeof why);
    /* its options have the names of our flags */
    const char *const ours = strncmp(why, "options.", 8) ? NULL : why + 8;
    complain("%s%s", ours ? "--" : "", ours ? ours : why);
    return NULL;
}
