/* verb_bench.c - `lowbit bench`, also called lowbit-bench: the speed of the
 * library on this machine. The benchmarks are in cli/bench/. */
#include <string.h>

#include "bench/bench_rows.h"
#include "bench/bench_weights.h"
#include "bench/calls.h"
#include "bench/codec_speed.h"
#include "bench/error_table.h"
#include "bench/limits.h"
#include "bench/openblas.h"
#include "bench/ops_speed.h"
#include "bench/summary.h"
#include "bench/sweep.h"
#include "verb.h"

static bool run_mode(const bench_options *o)
{
    switch (o->mode) {
    case MODE_SUMMARY:
        return summary_run(o);
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
    }
    return false;
}

/* Names of levels and types, which only the library knows. */
static bool check_names(bench_options *o)
{
    lb_ctx *const cx = bench_context(o, 0);
    const bool ok = cx && weights_check(cx, &o->formats, o->mode == MODE_CODEC);
    lb_close(cx);
    return ok;
}

static verdict run(const arguments *a)
{
    static bench_options o;
    if (!bench_options_read(a, is_bench_alias(a), &o) || !check_names(&o))
        return USAGE;
    rows_open(&o);
    const bool ok = run_mode(&o);
    rows_close();
    return ok ? DONE : FAILED;
}

static const option_id options_taken[] = {
    OPTION_PRODUCTS, OPTION_CODEC,   OPTION_ERROR,      OPTION_OPS,
    OPTION_CALLS,    OPTION_LIMITS,  OPTION_OPENBLAS,   OPTION_TYPE,
    OPTION_M,        OPTION_SHAPE,   OPTION_PRECISIONS, OPTION_ORIENT,
    OPTION_ACT,      OPTION_WEIGHTS, OPTION_K,          OPTION_SIZE,
    OPTION_ISA,      OPTION_SECONDS, OPTION_QUICK,      OPTION_SVG,
    OPTION_JOBS,     OPTION_JSON,    N_OPTIONS};

const verb verb_bench = {
    .name = "bench",
    .operands = "",
    .summary = "Measure the speed of the library on this machine",
    .help =
        "By default, one line for each type: the product of x (M,K) and W, and "
        "quantizing and decoding W, in GB of f32 per second. Reports the "
        "fastest call within 0.25 s. LOWBIT_PRECISION sets the precision.\n\n"
        "The other benchmarks take lists separated by commas: --type "
        "f32,nf4,... or all, -j 1,2,all. They report the median and the best "
        "of their samples; GFLOP/s is 2 M N K / time. Errors are relative "
        "(Frobenius norm), compared with a product in double precision. \"of "
        "limit\" compares with the measured peak of the cores or of the "
        "memory, whichever is lower.\n\n"
        "On a shared machine, run it as `chrt -f 10 lowbit bench ...` and "
        "compare only figures of one run.",
    .examples = "lowbit bench --type nf4,int8 --m 8\n"
                "LOWBIT_PRECISION=fast lowbit bench -j 1\n"
                "lowbit bench --products --type nf4 --m 1,32 --weights dram\n"
                "lowbit bench --codec --type all -j all",
    .options = options_taken,
    .run = run,
};
