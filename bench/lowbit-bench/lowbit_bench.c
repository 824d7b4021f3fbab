/* lowbit_bench.c - lowbit-bench: what the library does on this machine, next
 * to what the machine can do. `lowbit-bench --help` says the rest.
 *
 * Exit status: 0, 1 if something could not be measured or is not as promised,
 * 2 for arguments, or variables LOWBIT_*, that make no sense.
 */
#include <stdio.h>

#include "arguments.h"
#include "bench_weights.h"
#include "calls.h"
#include "codec_speed.h"
#include "complain.h"
#include "context.h"
#include "error_table.h"
#include "limits.h"
#include "openblas.h"
#include "ops_speed.h"
#include "sweep.h"

static bool run(const bench_options *o)
{
    switch (o->mode) {
    case MODE_SWEEP:
        return sweep_run(o);
    case MODE_OPENBLAS:
        return openblas_run(o);
    case MODE_CODEC:
        return codec_speed_run(o);
    case MODE_ERROR:
        return error_table_run(o);
    case MODE_LIMITS:
        return limits_run(o);
    case MODE_CALLS:
        return calls_run(o);
    case MODE_OPS:
        return ops_speed_run(o);
    case MODE_HELP:
        arguments_help();
        return true;
    case MODE_VERSION:
        printf("lowbit-bench %s\n", lb_version());
        return true;
    }
    return false;
}

/* Names of levels and formats, which only the library knows. */
static bool check_names(bench_options *o)
{
    if (o->mode == MODE_HELP || o->mode == MODE_VERSION) return true;
    lb_ctx *const cx = context_open(o, 0);
    const bool ok = cx && weights_check(cx, &o->formats);
    lb_close(cx);
    return ok;
}

int main(int argc, char **argv)
{
    static bench_options options;
    if (!arguments_parse(argc, argv, &options) || !check_names(&options))
        return 2;
    bool done = run(&options);
    const bool lost = ferror(stdout) || fflush(stdout);
    if (lost) done = complain("cannot write to stdout");
    return done ? 0 : 1;
}
