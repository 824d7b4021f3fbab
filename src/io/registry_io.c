/* registry_io.c - the only list of containers.
 *
 * It stands apart from registry.c because the core must not need the libraries
 * that containers need. Probes are asked in this order.
 */
#include "io/container.h"

/* clang-format off */
#define CONTAINERS(X)                                                         \
    X(gguf) X(npy) X(npz) X(safetensors_index) X(safetensors)
/* clang-format on */

#define DECLARE(NAME) extern const lb_container lb_container_##NAME;
CONTAINERS(DECLARE)
#define LIST(NAME) &lb_container_##NAME,

const lb_container *const lb_containers[] = {CONTAINERS(LIST) NULL};
