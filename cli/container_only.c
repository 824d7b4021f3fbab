/* container_only.c - whether a GGUF output would be a usable model.
 *
 * A GGUF model names its architecture and uses llama.cpp's tensor names. Other
 * files have neither, and tensors are not renamed here: llama.cpp could not
 * load the result.
 */
#include <string.h>

#include "places.h"

bool place_is_model(const arguments *a, lb_ctx *cx, const char *kind)
{
    lb_quant_method q = {0};
    if (!kind || strcmp(kind, "gguf") != 0 || a->count[OPTION_CONTAINER_ONLY])
        return true;
    const lb_file_options options = {.struct_size = sizeof options,
                                     .no_map = true};
    lb_file *f = lb_file_open(cx, a->operand[0], &options);
    const bool known = f && lb_file_method(cx, f, &q);
    lb_clear(cx); /* the job reports what is wrong with the file */
    /* GGUF: metadata that came from a GGUF file */
    const bool ok = !known || (q.name && !q.decoded) ||
                    strcmp(lb_file_kind(f), "gguf") == 0 ||
                    lb_file_find_meta(f, "gguf") ||
                    lb_file_find_meta(f, "general.architecture");
    lb_file_close(f);
    if (ok) return true;
    complain(USAGE,
             "%s is not a GGUF file: the output would lack the architecture "
             "and the tensor names that llama.cpp requires (use "
             "--container-only to write it anyway)",
             a->operand[0]);
    return false;
}
