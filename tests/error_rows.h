/* error_rows.h - calls of primitives that must be refused, and the expected
 * errors. */
#ifndef LB_ERROR_ROWS_H
#define LB_ERROR_ROWS_H

#include "samples.h"

typedef struct error_row {
    sample call;
    lb_status status;
    const char *say; /* words in the message, separated by '|' */
} error_row;

enum { ERROR_ROWS = 64 };

/* Fills row and returns the number of rows for that primitive. Those that hold
 * for all elementwise primitives are in test_errors.c. */
int error_rows_of(const char *prim, error_row row[ERROR_ROWS]);

#endif
