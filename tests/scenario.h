/* scenario.h - every function of lowbit.h that makes or reads an array, each
 * called once with its own small operands: for laws about all of them. */
#ifndef LB_SCENARIO_H
#define LB_SCENARIO_H

#include "lowbit.h"

/* The k-th function: *name is its name; returns its result (functions that read
 * return their operand). NULL: it failed, or *name is NULL and k is past the
 * end. */
lb_array *scenario_run(lb_ctx *cx, int k, const char **name);

#endif
