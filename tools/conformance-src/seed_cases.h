/* seed_cases.h - shared by the files of the kind `seed`.
 *
 * The manifest is index.json. Arrays are objects {file, dtype, shape, tol,
 * tol_of} that refer to .npy files, the only source of expected values.
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

/* Reads the array that the object describes, with its tolerance. */
bool seed_array(checker *c, const json_t *ref, given *out);
/* axis and block_size, if given. */
bool seed_params(const json_t *params, lb_quant_config *config, note *n);
/* The elements of a as an expected result, compared bit by bit. */
bool seed_expect(checker *c, const char *what, lb_array *a, given *out);

/* x in the format of config; integers are codes without a scale. */
lb_array *seed_make(lb_ctx *cx, const lb_quant_config *config, lb_array *x);
/* Checks the parts of a that `refs` lists, except one. */
bool seed_check_parts(checker *c, const json_t *refs, lb_array *a,
                      const char *except);
/* 16 floats, stored in the manifest as hexadecimal bits. */
bool seed_table(seed_case *s, const char *name, float *table);

/* Groups 1, 2, 3 and 9. */
bool seed_codec(seed_case *s);
/* An entry of `operands`, compared with the parts and values listed there. */
typedef struct seed_quantized {
    const json_t *entry;
    lb_array *a;
    /* The manifest's values, if they differ from ours: int8 of 16-bit floats
     * may have the code -128 there, which is -127 here. */
    lb_array *unclamped;
} seed_quantized;
bool seed_operand(seed_case *s, const json_t *operand, lb_decode decode,
                  seed_quantized *out);
/* The f32 values of an nf4 operand's stored bytes, not rounded to its dtype;
 * computed from the manifest's files only. */
bool seed_decoded(seed_case *s, const json_t *operand, given *out);
/* An operation by lax's name and attributes; c has no attributes yet. NULL and
 * a note on failure. */
lb_array *seed_run_op(op_call c, const json_t *params);
/* Group 5. */
bool seed_primitive(seed_case *s);
/* A function of arrays as a formula: mean((x@w + b - y)^2). */
typedef struct seed_formula {
    const char *words;
    const char *const *name; /* of the arguments */
    int n;
    const lb_quant_config *ste; /* of ste(w); NULL: none */
    note *note;
} seed_formula;
/* Its value, an lb_fn; formula is a seed_formula. NULL; the case is skipped if
 * the formula is not understood. */
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
    int64_t block_size; /* -1: not a positive integer; 0 would mean the default
                         * in C */
    bool simulate;
    bool reference;
    bool zeros;     /* the array is zeros(shape); else rows [lo, hi) of x */
    lb_shape shape; /* of zeros */
    int64_t lo, hi;
    lb_dtype dtype; /* of the array; LB_NO_DTYPE: unchanged */
} seed_call;

/* False if the text is not understood; the case is skipped. */
bool seed_call_parse(const char *words, seed_call *out, note *n);

#endif
