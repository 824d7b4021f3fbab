/* fuzz_container.h - what the fuzzers of all kinds of containers do. */
#ifndef LB_FUZZ_CONTAINER_H
#define LB_FUZZ_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#include "lowbit.h"

/* What a fuzzer is called with: any bytes. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Opens n bytes as a file of that name, if they are one of that kind, reads all
 * that it says it holds and closes it. Ends the program where a law is broken:
 * an error without its sentence, or of the wrong status; memory that is not
 * given back; a tensor outside of the file. */
int fuzz_container(const char *kind, const char *name, const uint8_t *bytes,
                   size_t n);

/* One for all runs: it is part of what is tested. NULL if it cannot be. */
lb_ctx *fuzz_context(void);

#endif
