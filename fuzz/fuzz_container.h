/* fuzz_container.h - what the fuzzers of all kinds of containers do. */
#ifndef LB_FUZZ_CONTAINER_H
#define LB_FUZZ_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#include "lowbit.h"

/* A fuzzer's entry point: any bytes. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Opens n bytes as a file with that name, reads everything in it and closes it.
 * Aborts if a law is violated: an error without a message or with the wrong
 * status, a leak, a tensor outside of the file. */
int fuzz_container(const char *kind, const char *name, const uint8_t *bytes,
                   size_t n);

/* One context for all runs: reusing it is part of the test. NULL if it cannot
 * be opened. */
lb_ctx *fuzz_context(void);

#endif
