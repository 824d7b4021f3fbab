/* rewrite.h - converting a file array by array: shared by dequantize and
 * convert. */
#ifndef REWRITE_H
#define REWRITE_H

#include "job_talk.h"

typedef struct rewrite {
    const char *what;   /* the verb's name */
    bool decode;        /* decode quantized arrays */
    lb_dtype dtype;     /* of dense floats in the output; none: unchanged */
    const char *layout; /* of arrays that stay quantized */
    const char *target; /* lb_convert_options.target, given by --to */
    lb_allow allow;
    int64_t block_size;
} rewrite;

/* Runs a job with SRC, --output, --to, --force, --resume, --verify,
 * --max-memory, --no-sync, --jobs and the options of job_talk_begin. */
verdict rewrite_run(const rewrite *how, const arguments *a);
/* Reads --dtype, a float type. */
bool rewrite_dtype(const arguments *a, lb_dtype *out);

#endif
