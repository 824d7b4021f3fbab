/* registry.c - the lists of all built-in primitives and formats.
 *
 * To add one, add a line here; no other file needs to change.
 */
#include "core/registry.h"
#include "prims/elementwise.h"

/* clang-format off */
#define PRIMS(X)                                                              \
    X(convert_element_type) X(bitcast_convert)                                \
    X(copy) X(transpose) X(broadcast_in_dim) X(slice) X(reverse) X(reshape)   \
    X(concatenate) X(pad) X(dynamic_slice) X(dynamic_update_slice) X(iota)    \
    X(gather) X(scatter_add) X(quantize) X(quantize_scales)                   \
    X(stop_gradient) X(ste)                                                   \
    X(reduce_sum) X(reduce_prod) X(reduce_max) X(reduce_min) X(reduce_and)    \
    X(reduce_or) X(argmax) X(argmin)                                          \
    X(dot_general) X(conv_general_dilated)                                    \
    X(rope) X(attention)                                                      \
    X(softmax) X(log_softmax) X(rms_norm) X(layer_norm)                       \
    X(random_bits) X(random_uniform) X(random_normal) X(random_permutation)
#define FORMATS(X)                                                            \
    X(dense) X(int8) X(nf4) X(ternary) X(binary) X(dynamic8)                  \
    X(q8_0) X(q4_0) X(iq4_nl) X(tq1_0) X(tq2_0)                               \
    X(q4_1) X(q5_0) X(q5_1) X(q2_k) X(q3_k) X(q4_k) X(q5_k) X(q6_k)           \
    X(iq4_xs) X(iq3_s) X(iq3_xxs) X(iq2_s) X(iq2_xs) X(iq2_xxs) X(iq1_m)      \
    X(iq1_s) X(gguf_mxfp4) X(gguf_nvfp4) X(q2_0) X(q1_0) X(i2_s)              \
    X(fp8_e4m3) X(fp8_e5m2) X(mxfp8) X(mxfp4) X(nvfp4) X(fp4_e2m1) X(e8m0)    \
    X(int1) X(int2) X(int3) X(int4) X(int5) X(int6) X(int7) X(uint8)
/* clang-format on */

#define DECLARE_PRIM(NAME) extern const lb_prim lb_prim_##NAME;
PRIMS(DECLARE_PRIM)
#define DECLARE_FORMAT(NAME) extern const lb_format lb_format_##NAME;
FORMATS(DECLARE_FORMAT)

#define UNARY(NAME, ...)   &lb_row_##NAME.prim,
#define BINARY(NAME, ...)  &lb_row_##NAME.prim,
#define COMPARE(NAME, ...) &lb_row_##NAME.prim,
#define LIST_PRIM(NAME)    &lb_prim_##NAME,
#define LIST_FORMAT(NAME)  &lb_format_##NAME,

const lb_prim *const lb_builtin_prims[] = {
#include "prims/elementwise.def"
    &lb_row_is_finite.prim, &lb_row_integer_pow.prim, &lb_row_select.prim,
    &lb_row_clamp.prim,     PRIMS(LIST_PRIM) NULL,
};

const lb_format *const lb_builtin_formats[] = {FORMATS(LIST_FORMAT) NULL};

const lb_format *const lb_default_format = &lb_format_nf4;
const lb_format *const lb_scale_format = &lb_format_dynamic8;
