/* lazy_tensor.h - a tensor as an array that stays in its file. */
#ifndef LB_LAZY_TENSOR_H
#define LB_LAZY_TENSOR_H

#include "io/layouts/entries.h"

/* Floats that are read from the file as they are looked at, a run at a time:
 * for what is larger than memory and must be seen whole. Belongs to the open
 * scope, and must not outlive the file. A run that cannot be read is zeros, and
 * noted: lb_paged_check. NULL and an error; of a tensor that is packed, or
 * turned around, too. */
typedef struct lb_paged lb_paged;
lb_array *lb_paged_open(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                        lb_paged **paged);
bool lb_paged_check(lb_ctx *cx, const lb_paged *paged);

#endif
