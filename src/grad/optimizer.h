/* optimizer.h - what functions of trees need besides the public header. */
#ifndef LB_OPTIMIZER_H
#define LB_OPTIMIZER_H

#include "lowbit.h"

/* The number of parameters. */
int lb_optimizer_size(const lb_optimizer *o);

#endif
