/* verb_dequantize.c - `lowbit dequantize`: quantized arrays become dense. */
#include "rewrite.h"

static verdict run(const arguments *a)
{
    rewrite how = {.what = "dequantize", .decode = true};
    if (!rewrite_dtype(a, &how.dtype)) return USAGE;
    return rewrite_run(&how, a);
}

static const option_id options_taken[] = {OPTION_CONTAINER_ONLY,
                                          OPTION_DRY_RUN,
                                          OPTION_DTYPE,
                                          OPTION_FORCE,
                                          OPTION_JOBS,
                                          OPTION_JSON,
                                          OPTION_MAX_MEMORY,
                                          OPTION_NO_SYNC,
                                          OPTION_OUTPUT,
                                          OPTION_QUIET,
                                          OPTION_REPORT,
                                          OPTION_RESUME,
                                          OPTION_TO,
                                          OPTION_VERBOSE,
                                          OPTION_VERIFY,
                                          N_OPTIONS};

const verb verb_dequantize = {
    .name = "dequantize",
    .operands = "SRC",
    .summary = "Writes a file whose quantized arrays are dense again",
    .help = "In the dtype that they were quantized from, as far as the file "
            "says; --dtype makes\nthat of all floats, also of those that were "
            "dense. The kind of file is that of --to, or\nwhat the output's "
            "name ends with, or safetensors. It is written whole or not at "
            "all: as\nOUTPUT.partial, which a run with --resume takes up.",
    .examples = "lowbit dequantize small.safetensors -o wide.safetensors "
                "--dtype bf16\nlowbit dequantize model.gguf -o model.npz",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
    .shares = true,
};
