/* components.h - finds parts and layouts by name. On failure the functions
 * report an error and return NULL or -1. */
#ifndef LB_COMPONENTS_H
#define LB_COMPONENTS_H

#include "lowbit_ext.h"

int lb_part_named(lb_ctx *cx, const char *who, const lb_format *fmt,
                  const char *name);
/* Codes of elements [first, first + n) of a row of the store. */
void lb_codes_run(const lb_store *s, int64_t first, int64_t n, int *code);
const lb_foreign *lb_foreign_named(lb_ctx *cx, const char *who,
                                   const lb_format *fmt, const char *layout);
int lb_foreign_part(lb_ctx *cx, const char *who, const lb_foreign *f,
                    const char *name);

#endif
