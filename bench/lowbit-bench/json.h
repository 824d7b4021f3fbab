/* json.h - one JSON object a line, on stdout. */
#ifndef LB_BENCH_JSON_H
#define LB_BENCH_JSON_H

#include <stdbool.h>
#include <stdint.h>

void json_begin(void);
void json_text(const char *name, const char *value);
void json_number(const char *name, double value); /* null if not finite */
void json_integer(const char *name, int64_t value);
void json_bool(const char *name, bool value);
void json_end(void);

#endif
