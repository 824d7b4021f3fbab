/* registry.h - access to the lists in registry.c. */
#ifndef LB_REGISTRY_H
#define LB_REGISTRY_H

#include "lowbit_ext.h"

extern const lb_prim *const lb_builtin_prims[];     /* ends with NULL */
extern const lb_format *const lb_builtin_formats[]; /* ends with NULL */
extern const lb_format *const lb_default_format;    /* of lb_quantize */
/* Of lb_quantize_scales; exported for liblowbit-io only (cmake/lowbit.map). */
LB_API extern const lb_format *const lb_scale_format;

#endif
