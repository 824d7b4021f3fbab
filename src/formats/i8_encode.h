/* i8_encode.h - computes i8 codes (-127 to 127) and the scales that groups
 * share. */
#ifndef LB_I8_ENCODE_H
#define LB_I8_ENCODE_H

#include "lowbit_ext.h"

enum { LB_I8_CODES, LB_I8_SCALE }; /* parts */

/* The encode_plan, encode and encode_meet of a format with these parts. */
void lb_i8_plan(const lb_call *c, lb_plan *to);
void lb_i8_encode(const lb_work *w);
bool lb_i8_meet(const lb_work *w);

#endif
