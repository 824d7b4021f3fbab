/* whole.h - for formats whose codes are whole numbers from -127 to 127, times a
 * scale that a group shares: where those come from. */
#ifndef LB_WHOLE_H
#define LB_WHOLE_H

#include "lowbit_ext.h"

enum { LB_WHOLE_CODES, LB_WHOLE_SCALE }; /* parts */

/* The slots encode_plan and encode of a format with these parts. */
void lb_whole_plan(const lb_call *c, lb_plan *to);
void lb_whole_encode(const lb_work *w);
bool lb_whole_meet(const lb_work *w);

#endif
