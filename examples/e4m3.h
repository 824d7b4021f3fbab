/* e4m3.h - a user-defined format: 8-bit floats with a scale per block. After
 * lb_add_format(cx, &e4m3_format), lb_quantize accepts "e4m3". */
#ifndef E4M3_H
#define E4M3_H

#include <lowbit_ext.h>

extern const lb_format e4m3_format;

/* The value of a code; NaN for 0x7f and 0xff. */
float e4m3_value(uint8_t code);
/* The code nearest to x, which must be finite: ties to even, magnitudes above
 * 448 become 448. */
uint8_t e4m3_code(float x);

#endif
