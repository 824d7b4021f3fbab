/* lazy_tensor.h - a tensor as an array whose data stays in the file. */
#ifndef LB_LAZY_TENSOR_H
#define LB_LAZY_TENSOR_H

#include "io/layouts/entries.h"

/* A float tensor that is read from the file on access, one run at a time: for
 * arrays that are larger than memory and must be processed as a whole. It
 * belongs to the current scope and must not outlive the file. A run that cannot
 * be read becomes zeros and is recorded (lb_paged_check). NULL and an error for
 * tensors that are compressed, big-endian or in Fortran order. */
typedef struct lb_paged lb_paged;
lb_array *lb_paged_open(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                        lb_paged **paged);
bool lb_paged_check(lb_ctx *cx, const lb_paged *paged);

#endif
