/* gguf_read_only.c - GGUF's block types that lowbit reads and computes with,
 * but does not quantize to. kernels/gguf_loops.h has drawings of their blocks.
 */
#include "formats/gguf_block.h"
#include "kernels/gguf_decode.h"

/* Types whose codes select points of a grid are not read as integers, nor are
 * those whose scales may be beyond f16's range: sums in f32 of codes times
 * scales would not be finite. */
#define INTEGERS_q4_1       &lb_integers_q4_1
#define INTEGERS_q5_0       &lb_integers_q5_0
#define INTEGERS_q5_1       &lb_integers_q5_1
#define INTEGERS_q2_k       &lb_integers_q2_k
#define INTEGERS_q3_k       &lb_integers_q3_k
#define INTEGERS_q4_k       &lb_integers_q4_k
#define INTEGERS_q5_k       &lb_integers_q5_k
#define INTEGERS_q6_k       &lb_integers_q6_k
#define INTEGERS_iq4_xs     &lb_integers_iq4_xs
#define INTEGERS_q2_0       &lb_integers_q2_0
#define INTEGERS_q1_0       &lb_integers_q1_0
#define INTEGERS_gguf_mxfp4 NULL
#define INTEGERS_iq3_s      NULL
#define INTEGERS_iq3_xxs    NULL
#define INTEGERS_iq2_s      NULL
#define INTEGERS_iq2_xs     NULL
#define INTEGERS_iq2_xxs    NULL
#define INTEGERS_iq1_m      NULL
#define INTEGERS_iq1_s      NULL

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
        .integers = INTEGERS_##NAME,                                           \
    };
LB_GGUF_TYPES(LB_DECLARE_RECODER)
LB_GGUF_TYPES(TYPE)

/* ---- with a scale of the tensor ------------------------------------------ */

enum { SCALE = 1 };

static void scaled_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                          int64_t n, void *out)
{
    float room[LB_SPANS], each[LB_RUN];
    float *w = out;
    lb_gguf_decode(cpu, s, first, n, out);
    if (!s->part[SCALE].a) return;
    const lb_spans scale = lb_part_spans(cpu, s, SCALE, first, n, room, each);
    int64_t i = 0, end = lb_span_first(scale, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(scale, end, n))
        for (; i < end; i++)
            w[i] *= scale.value[k];
}

#define SCALED(NAME, LEN, SIZE)                                                \
    static lb_gguf_decoder *decoder_of_##NAME(const lb_gguf_decoders *d)       \
    {                                                                          \
        return d->NAME;                                                        \
    }                                                                          \
    static const lb_gguf_block type_##NAME = {                                 \
        .len = (LEN), .size = (SIZE), .decoder = decoder_of_##NAME};           \
    extern const lb_format lb_format_##NAME;                                   \
    const lb_format lb_format_##NAME = {                                       \
        .struct_size = sizeof(lb_format),                                      \
        .name = #NAME,                                                         \
        .part = {{.name = "blocks", .raw = true},                              \
                 {.name = "scale", .optional = true}},                         \
        .relabel = true,                                                       \
        .groups = true,                                                        \
        .decode = scaled_decode,                                               \
        .layout = lb_gguf_layout,                                              \
        .type = &type_##NAME,                                                  \
        .kernels = LB_DECODE_LEVELS,                                           \
    };
LB_GGUF_SCALED(SCALED)
