/* rewrite.h - a file into another, an array at a time: what dequantize and
 * convert share. */
#ifndef REWRITE_H
#define REWRITE_H

#include "job_talk.h"

typedef struct rewrite {
    const char *what;   /* the verb's name */
    bool decode;        /* quantized arrays become dense */
    lb_dtype dtype;     /* of floats that are dense then; none: as they are */
    const char *layout; /* of quantized arrays that stay so */
} rewrite;

/* SRC, --output, --to, --force, --resume, --verify, --max-memory, --no-sync,
 * --jobs and those of the talk. */
verdict rewrite_run(const rewrite *how, const arguments *a);
/* --dtype, of floats. */
bool rewrite_dtype(const arguments *a, lb_dtype *out);

#endif
