/* input.h - files that a verb reads, by the operand that names them. */
#ifndef INPUT_H
#define INPUT_H

#include "verb.h"

/* The path to open for an operand, which is the operand itself unless it is
 * "-". Then it is /dev/stdin: standard input, if that is a regular file; else
 * a copy of it in a temporary file without a name, in $TMPDIR or /tmp. NULL and
 * a message if it cannot be copied. */
const char *input_path(const char *operand);

#endif
