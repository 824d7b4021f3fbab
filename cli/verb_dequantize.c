/* verb_dequantize.c - `lowbit dequantize`: decodes quantized arrays. */
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
    .summary = "Dequantize a checkpoint",
    .help =
        "Quantized arrays become dense in the dtype that they decode to, as "
        "shown by lowbit info. --dtype converts all floating-point arrays, "
        "including those that were dense. The file format is given by --to or "
        "by the extension of the output (default: safetensors).\n\nOutput is "
        "atomic: it is written to OUTPUT.partial and renamed when complete; "
        "--resume reuses that file.",
    .examples = "lowbit dequantize small.safetensors -o wide.safetensors "
                "--dtype bf16\nlowbit dequantize model.gguf -o model.npz",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
    .shares = true,
};
