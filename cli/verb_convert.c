/* verb_convert.c - `lowbit convert`: another kind of file or layout. */
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
    .summary = "Writes the same arrays as another kind of file, or in another "
               "layout",
    .help = "Quantized arrays stay as they are, code for code, and it fails if "
            "there is no place\nfor one: nothing is quantized again. Dense "
            "floats may become those of --dtype. The\nkind of file is that of "
            "--to, or what the output's name ends with, or safetensors.\n"
            "--layout is for quantized arrays in safetensors. It is written "
            "whole or not at all: as\nOUTPUT.partial, which a run with "
            "--resume takes "
            "up.",
    .examples = "lowbit convert model.gguf -o model.safetensors\n"
                "lowbit convert bnb.safetensors -o ours.safetensors --layout "
                "native",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
    .shares = true,
};
