/* verb_convert.c - `lowbit convert`: converts to another file format or layout,
 * or moves quantized arrays to another type. */
#include <strings.h>

#include "rewrite.h"

/* Kinds of files; any other --to is a target for quantized arrays. */
static bool is_kind(const char *to)
{
    return strcasecmp(to, "safetensors") == 0 || strcasecmp(to, "npy") == 0 ||
           strcasecmp(to, "npz") == 0;
}

static verdict run(const arguments *a)
{
    static const char *const layouts[] = {"native", "bnb", "bitnet", "eformer",
                                          NULL};
    static const char *const moved_to[] = {
        "mlx", "gptq", "awq", "compressed-tensors", "fp8", NULL};
    static const char *const allowed[] = {"exact", "rounded", "requantize",
                                          NULL};
    const char *to = a->value[OPTION_TO];
    rewrite how = {.what = "convert"};
    int layout = 0, allow = 0;
    const char *other = a->value[OPTION_LAYOUT];
    for (int k = 0; other && moved_to[k]; k++)
        if (strcasecmp(other, moved_to[k]) == 0)
            return complain(USAGE, "--layout %s requires a move: use --to %s",
                            moved_to[k], moved_to[k]);
    if (!argument_word(a, OPTION_LAYOUT, layouts, &layout) ||
        !argument_word(a, OPTION_ALLOW, allowed, &allow) ||
        !argument_number(a, OPTION_BLOCK_SIZE, 1, 1 << 20, &how.block_size) ||
        !rewrite_dtype(a, &how.dtype))
        return USAGE;
    if (a->count[OPTION_LAYOUT]) how.layout = layouts[layout];
    if (to && !is_kind(to))
        how.target = strcasecmp(to, "gguf") == 0 ? "gguf" : to;
    how.allow = (lb_allow)allow;
    if (!how.target && (a->count[OPTION_ALLOW] || a->count[OPTION_BLOCK_SIZE]))
        return complain(USAGE, "--%s requires --to with a layout or a type",
                        a->count[OPTION_ALLOW] ? "allow" : "block-size");
    if (how.target && how.layout)
        return complain(USAGE, "--layout %s contradicts --to %s", how.layout,
                        to);
    return rewrite_run(&how, a);
}

static const option_id options_taken[] = {
    OPTION_ALLOW,      OPTION_BLOCK_SIZE, OPTION_CONTAINER_ONLY,
    OPTION_DRY_RUN,    OPTION_DTYPE,      OPTION_FORCE,
    OPTION_JOBS,       OPTION_JSON,       OPTION_LAYOUT,
    OPTION_MAX_MEMORY, OPTION_NO_SYNC,    OPTION_OUTPUT,
    OPTION_QUIET,      OPTION_REPORT,     OPTION_RESUME,
    OPTION_TO,         OPTION_VERBOSE,    OPTION_VERIFY,
    N_OPTIONS};

const verb verb_convert = {
    .name = "convert",
    .operands = "SRC",
    .summary = "Convert a checkpoint to another file format or layout",
    .help = "Quantized arrays keep their codes and scales: nothing is "
            "requantized, and the command fails if the output cannot store an "
            "array. --dtype converts dense floating-point arrays. The file "
            "format is given by --to or by the extension of the output "
            "(default: safetensors). --layout applies to quantized arrays in "
            "safetensors.\n\n--to with a layout (native, bnb, ...), a type "
            "(q4_1, q8_0, ...) or gguf moves quantized arrays to it: codes "
            "stay, and scales and zero points are expressed as the target "
            "does. Every array is decoded before and after, which proves that "
            "it is moved exactly. If an array cannot be moved exactly, nothing "
            "is written (exit code 4). --allow rounded permits rounded scales; "
            "--allow requantize permits arrays to be decoded and quantized "
            "again. -v lists all arrays with their errors.\n\nWithout such a "
            "--to, a checkpoint that another program has quantized is copied "
            "unchanged to the same kind of file if its layout cannot be "
            "written.\n\nOutput is "
            "atomic: it is written to OUTPUT.partial and renamed when "
            "complete; --resume reuses that file.",
    .examples = "lowbit convert model.gguf -o model.safetensors\n"
                "lowbit convert bnb.safetensors -o ours.safetensors --layout "
                "native\n"
                "lowbit convert q4_0.gguf -o q4_1.gguf --to q4_1",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
    .shares = true,
};
