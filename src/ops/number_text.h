/* number_text.h - the decimal digits of a floating-point number. */
#ifndef LB_NUMBER_TEXT_H
#define LB_NUMBER_TEXT_H

#include "lowbit_ext.h"

/* The text of a finite number in pieces: before "." after, and with an exponent
 * the rest: -1.5e-07 is "-1", "5", -7. */
typedef struct lb_number {
    char before[352]; /* the largest f64 has 309 digits */
    char after[96];
    int exponent, exp_size; /* at least two digits, as numpy prints them */
} lb_number;

/* The fewest digits that identify x, a value of a float dtype, but at most
 * `most` <= 64 after the point and, with an exponent, at least `least`: then
 * the exact value is rounded, as numpy does, and zeros at the end stay. */
void lb_number_of(lb_number *to, lb_dtype dtype, double x, int least, int most,
                  bool exponent);
/* x rounded to a float dtype. */
double lb_number_round(lb_dtype dtype, double x);

#endif
