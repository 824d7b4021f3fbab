/* gguf_read_only.c - GGUF's block types that lowbit reads and computes with,
 * but does not quantize to. kernels/gguf_loops.h has drawings of their blocks.
 */
#include "formats/gguf_block.h"
#include "kernels/gguf_decode.h"

#define TYPE(NAME, LEN, SIZE)                                                  \
    static lb_gguf_decoder *decoder_of_##NAME(const lb_gguf_decoders *d)       \
    {                                                                          \
        return d->NAME;                                                        \
    }                                                                          \
    static const lb_gguf_block type_##NAME = {.len = (LEN),                    \
                                              .size = (SIZE),                  \
                                              .decoder = decoder_of_##NAME,    \
                                              .recoder = &lb_recode_##NAME};   \
    extern const lb_format lb_format_##NAME;                                   \
    const lb_format lb_format_##NAME = {                                       \
        .struct_size = sizeof(lb_format),                                      \
        .name = #NAME,                                                         \
        .part = {{.name = "blocks", .raw = true}},                             \
        .relabel = true,                                                       \
        .decode = lb_gguf_decode,                                              \
        .layout = lb_gguf_layout,                                              \
        .type = &type_##NAME,                                                  \
        .kernels = LB_DECODE_LEVELS,                                           \
        .recode = &lb_gguf_recode,                                             \
    };
LB_GGUF_TYPES(LB_DECLARE_RECODER)
LB_GGUF_TYPES(TYPE)
