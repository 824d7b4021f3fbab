/* e4m3.h - a format from outside the library: 8-bit floats, a scale per block.
 * lb_add_format(cx, &e4m3_format), and "e4m3" is a name like any other. */
#ifndef E4M3_H
#define E4M3_H

#include <lowbit_ext.h>

extern const lb_format e4m3_format;

/* The number that a code stands for; NaN for 0x7f and 0xff. */
float e4m3_value(uint8_t code);
/* The code nearest to x, which is finite: ties go to the even code, and what
 * is beyond 448 to 448. */
uint8_t e4m3_code(float x);

#endif
