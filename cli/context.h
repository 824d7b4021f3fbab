/* context.h - what a language model needs to run with a context of N tokens:
 * a cache of keys and values, and the bytes that each token reads. All follows
 * from names and shapes of arrays.
 */
#ifndef CLI_CONTEXT_H
#define CLI_CONTEXT_H

#include "verb.h"

typedef struct context_options {
    int64_t tokens; /* --context; 0: not given */
    uint64_t memory;
    double bandwidth; /* bytes per second */
} context_options;

/* False after a message. */
bool context_read(const arguments *a, context_options *o);
/* Nothing without --context; null as JSON. */
void context_print(const lb_file *f, const context_options *o);
void context_json(json *j, const lb_file *f, const context_options *o);

#endif
