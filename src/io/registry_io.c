/* registry_io.c - the lists of containers and layouts.
 *
 * They are separate from registry.c because the core must not depend on the
 * libraries that containers need. Probes are called in this order.
 */
#include "io/containers/container.h"
#include "io/layouts/entries.h"

/* clang-format off */
#define CONTAINERS(X)                                                         \
    X(gguf) X(npy) X(npz) X(safetensors_index) X(safetensors)
/* clang-format on */

#define DECLARE(NAME) extern const lb_container lb_container_##NAME;
CONTAINERS(DECLARE)
#define LIST(NAME) &lb_container_##NAME,

const lb_container *const lb_containers[] = {CONTAINERS(LIST) NULL};

/* Layouts claim tensors in this order. */
/* clang-format off */
#define LAYOUTS(X)                                                            \
    X(gguf_nvfp4) X(i2_s) X(ggml) X(bnb4) X(bnb8) X(bitnet) X(native)         \
    X(eformer) X(modelopt) X(ct_float) X(mxfp4) X(mlx_float) X(fp8)           \
    X(plain_float) X(gptq) X(awq) X(gemma) X(ct_int) X(mlx_affine)            \
    X(mlx_out) X(gptq_out) X(awq_out) X(ct_out) X(fp8_out)
/* clang-format on */

#define DECLARE_LAYOUT(NAME) extern const lb_file_layout lb_file_layout_##NAME;
LAYOUTS(DECLARE_LAYOUT)
#define LIST_LAYOUT(NAME) &lb_file_layout_##NAME,

const lb_file_layout *const lb_file_layouts[] = {LAYOUTS(LIST_LAYOUT) NULL};
