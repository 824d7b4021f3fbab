/* verb_convert.c - `lowbit convert`: converts to another file format or layout.
 */
#include "rewrite.h"

static verdict run(const arguments *a)
{
    static const char *const layouts[] = {"native", "bnb", "bitnet", "eformer",
                                          NULL};
    rewrite how = {.what = "convert"};
    int layout = 0;
    if (!argument_word(a, OPTION_LAYOUT, layouts, &layout) ||
        !rewrite_dtype(a, &how.dtype))
        return USAGE;
    if (a->count[OPTION_LAYOUT]) how.layout = layouts[layout];
    return rewrite_run(&how, a);
}

static const option_id options_taken[] = {
    OPTION_CONTAINER_ONLY, OPTION_DRY_RUN,    OPTION_DTYPE,
    OPTION_FORCE,          OPTION_JOBS,       OPTION_JSON,
    OPTION_LAYOUT,         OPTION_MAX_MEMORY, OPTION_NO_SYNC,
    OPTION_OUTPUT,         OPTION_QUIET,      OPTION_REPORT,
    OPTION_RESUME,         OPTION_TO,         OPTION_VERBOSE,
    OPTION_VERIFY,         N_OPTIONS};

const verb verb_convert = {
    .name = "convert",
    .operands = "SRC",
    .summary = "Convert a checkpoint to another file format or layout",
    .help = "Quantized arrays keep their codes and scales: nothing is "
            "requantized, and the command fails if the output cannot store an "
            "array. --dtype converts dense floating-point arrays. The file "
            "format is given by --to or by the extension of the output "
            "(default: safetensors). --layout applies to quantized arrays in "
            "safetensors.\n\nA checkpoint that another program has quantized "
            "(GPTQ, AWQ, ...) is copied unchanged to the same kind of "
            "file.\n\nOutput is atomic: it is written to OUTPUT.partial and "
            "renamed when complete; --resume reuses that file.",
    .examples = "lowbit convert model.gguf -o model.safetensors\n"
                "lowbit convert bnb.safetensors -o ours.safetensors --layout "
                "native",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
    .shares = true,
};
