/* complain.h - how the program says what is wrong: a line on stderr. */
#ifndef LB_BENCH_COMPLAIN_H
#define LB_BENCH_COMPLAIN_H

#include <stdbool.h>

/* Returns false, so that it can be what a failing function returns. */
bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
