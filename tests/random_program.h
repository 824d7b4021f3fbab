/* random_program.h - random functions of arrays, composed from the registry's
 * samples, for law 10.
 *
 * A program is a list of calls. An operand of a call is an argument or an
 * earlier result of the same shape and dtype, if there is one. About half of
 * the calls continue the latest result by an elementwise operation, a reduction
 * of trailing axes or a broadcast, so that there are chains to fuse.
 */
#ifndef LB_RANDOM_PROGRAM_H
#define LB_RANDOM_PROGRAM_H

#include "samples.h"

enum { PROGRAM_CALLS = 24, PROGRAM_VALUES = 96, PROGRAM_RESULTS = 4 };

typedef struct program_call {
    const lb_prim *prim;
    int n_in, in[SAMPLE_MAX_IN]; /* values */
    int out;
    sample_params params;
    bool taken; /* false: removed while shrinking a failing program */
} program_call;

typedef struct program_value {
    lb_dtype dtype;
    lb_shape shape;
    int arg;                /* -1: a result */
    sample_operand operand; /* of an argument */
} program_value;

typedef struct random_program {
    program_call call[PROGRAM_CALLS];
    program_value value[PROGRAM_VALUES];
    int n_calls, n_values, n_args;
    int result[PROGRAM_RESULTS], n_results;
    bool constants;        /* every third argument is a constant instead */
    lb_array *const *args; /* for constants */
} random_program;

/* Generates the program of that number from the primitives of the context. */
void random_program_make(lb_ctx *cx, uint64_t number, random_program *p);
/* Its arguments in the open scope, in formats chosen by the number. */
bool random_program_args(lb_ctx *cx, const random_program *p, uint64_t number,
                         const sample_format_list *formats, lb_array **args);
/* The program as a function: lb_fn_many, user is the program. */
bool random_program_run(lb_ctx *cx, lb_array *const *args, int n,
                        lb_array **out, int n_out, void *user);
/* The gradients of the sum of its last float result with respect to the first
 * n_out - 1 float arguments (the sum itself in place of missing ones); then the
 * sum. */
bool random_program_gradients(lb_ctx *cx, lb_array *const *args, int n,
                              lb_array **out, int n_out, void *user);
/* Keeps only the result that random_program_gradients sums. */
void random_program_last_float(random_program *p);
/* The same program without unused calls. */
random_program random_program_needed(const random_program *p);
void random_program_print(const random_program *p, lb_array *const *args);

#endif
