/* seed_cases.h - shared by the files of the kind `seed`.
 *
 * The manifest is index.json: arrays are objects {file, dtype, shape, tol,
 * tol_of} that lead to .npy files. Expected values come from there alone.
 */
#ifndef SEED_CASES_H
#define SEED_CASES_H

#include "conformance.h"
#include "stablehlo.h"

/* One case of the manifest, or one call of a list of calls. */
typedef struct seed_case {
    checker check; /* its dir is the manifest's */
    const json_t *manifest;
    const json_t *it; /* the entry of `cases` */
} seed_case;

/* The array that the manifest describes so, with its tolerance. */
bool seed_array(checker *c, const json_t *ref, given *out);
/* axis and block_size, where they are there. */
bool seed_params(const json_t *params, lb_quant_config *config, note *n);
/* a's elements as something that is expected, to the bit. */
bool seed_expect(checker *c, const char *what, lb_array *a, given *out);

/* x in config's format; integers are its codes, which have no scale. */
lb_array *seed_make(lb_ctx *cx, const lb_quant_config *config, lb_array *x);
/* The parts of a that `refs` has, but for one. */
bool seed_check_parts(checker *c, const json_t *refs, lb_array *a,
                      const char *except);
/* 16 floats, which the manifest has as hexadecimal bits. */
bool seed_table(seed_case *s, const char *name, float *table);

/* Groups 1, 2, 3 and 9. */
bool seed_codec(seed_case *s);
/* An entry of `operands`, checked against its parts and values there. */
typedef struct seed_quantized {
    const json_t *entry;
    lb_array *a;
    /* The manifest's values, if they are others than ours: int8 of 16-bit
     * floats may have the code -128 there, which is -127 here. */
    lb_array *unclamped;
} seed_quantized;
bool seed_operand(seed_case *s, const json_t *operand, lb_decode decode,
                  seed_quantized *out);
/* What the stored bytes of an nf4 operand decode to in f32, unrounded; from
 * the manifest's files alone. */
bool seed_decoded(seed_case *s, const json_t *operand, given *out);
/* An operation by lax's name and attributes; c has no attributes yet. NULL and
 * a note if it cannot be. */
lb_array *seed_run_op(op_call c, const json_t *params);
/* Group 5. */
bool seed_primitive(seed_case *s);
/* A function of arrays in words: mean((x@w + b - y)^2). */
typedef struct seed_formula {
    const char *words;
    const char *const *name; /* of the arguments */
    int n;
    const lb_quant_config *ste; /* what ste(w) is; NULL: nothing */
    note *note;
} seed_formula;
/* Its value, an lb_fn: formula is a seed_formula. NULL, and a skip if the words
 * are not known. */
lb_array *seed_evaluate(lb_ctx *cx, lb_array *const *args, int n,
                        void *formula);
/* Groups 6 and 8. */
bool seed_training(seed_case *s);
bool seed_gradients(seed_case *s);
/* Group 4: opens and closes a case for each call. */
void seed_calls(runner *r, const char *dir, const json_t *it, const char *id);

/* Group 7: opens and closes a case for each entry of sharding.json. */
void seed_sharding(runner *r, const json_t *root);

/* ---- the text of a call -------------------------------------------------- */

typedef enum seed_function {
    SEED_QUANTIZE,
    SEED_STRAIGHT_THROUGH,
    SEED_CONFIG /* a configuration by itself */
} seed_function;

/* quantize(bf16 x[:3], dtype='nf4', block_size=32), and the like. */
typedef struct seed_call {
    seed_function function;
    char format[64]; /* "nf4" unless the call names another */
    bool has_block;
    int64_t block_size; /* -1: not a positive integer, which C cannot say
                         * otherwise: there 0 is the default */
    bool simulate;
    bool reference;
    bool zeros;     /* the array is zeros(shape); else rows [lo, hi) of x */
    lb_shape shape; /* of zeros */
    int64_t lo, hi;
    lb_dtype dtype; /* the array's; LB_NO_DTYPE: as it is */
} seed_call;

/* False and a skip if the text is not understood. */
bool seed_call_parse(const char *words, seed_call *out, note *n);

#endif
