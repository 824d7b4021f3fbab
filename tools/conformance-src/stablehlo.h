/* stablehlo.h - operations of StableHLO as calls of lowbit.h.
 *
 * lowbit's functions broadcast and promote, StableHLO's operations do not: a
 * rule checks StableHLO's constraints on operands before it calls a function,
 * and stablehlo.c checks that the result has the type stated by the case.
 */
#ifndef STABLEHLO_H
#define STABLEHLO_H

#include "conformance.h"

typedef struct tensor_type {
    lb_dtype dtype;
    lb_shape shape;
} tensor_type;

struct program;

typedef struct op_call {
    lb_ctx *cx;
    const char *name;     /* without its dialect */
    const json_t *attrs;  /* an object; NULL: none */
    const json_t *region; /* see stablehlo_region.c; NULL: none */
    int n_in;
    lb_array *const *in;
    int n_out;
    const tensor_type *type; /* of the results; from the case */
    note *note;
    struct program *program; /* that contains the operation */
} op_call;

typedef struct op_rule op_rule;
struct op_rule {
    const char *name;
    /* Supported attributes, separated by spaces; alternative spellings are
     * separated by |. NULL: none. */
    const char *attrs;
    int n_in; /* -1: run checks it */
    /* Returns the only result. NULL: a note, or an error in the context.
     * Without run: the results are the operands. */
    lb_array *(*run)(const op_rule *, const op_call *);
    lb_array *(*unary)(lb_ctx *, lb_array *);
    lb_array *(*binary)(lb_ctx *, lb_array *, lb_array *);
    /* Instead of run, for any number of results: c->n_out arrays in out. */
    bool (*many)(const op_rule *, const op_call *, lb_array **out);
};

#define RULE(name, attrs, n_in, run)                                           \
    {                                                                          \
        name, attrs, n_in, run, NULL, NULL, NULL                               \
    }
#define RULE_MANY(name, attrs, n_in, many)                                     \
    {                                                                          \
        name, attrs, n_in, NULL, NULL, NULL, many                              \
    }

/* Each ends with a rule without a name. */
extern const op_rule stablehlo_elementwise[];
extern const op_rule stablehlo_structure[];
extern const op_rule stablehlo_contraction[];
extern const op_rule stablehlo_reduce[];

/* NULL and a note if the name is unknown. */
const op_rule *stablehlo_find(const char *name);

/* ---- a running case ----------------------------------------------------- */

typedef struct value {
    const char *name; /* belongs to the JSON */
    lb_array *a;
    npy raw; /* bytes of a constant; results have no data here */
} value;

/* Operations of a region are written for scalars and run on arrays of this
 * shape; scalars from outside are broadcast. */
typedef struct lanes {
    struct program *outer;
    lb_shape shape;
} lanes;

typedef struct program {
    lb_ctx *cx;
    const char *dir;
    note *note;
    value *values;
    size_t n_values, room;
    uint64_t digest;
    const lanes *lanes; /* NULL: not a region */
} program;

/* NULL and a note if it does not exist. */
const value *program_find(program *p, const char *name);
bool program_add(program *p, value v);
bool program_add_consts(program *p, const json_t *consts);
bool program_run_op(program *p, const json_t *op);
void program_free(program *p);

/* The region of an operation, under any of its usual names. */
const json_t *region_of(const json_t *op);
/* Runs it on n_in arrays of one shape; its n_out results have that shape. */
bool region_run(program *p, const json_t *region, lb_array *const *in, int n_in,
                lb_array **out, int n_out);
bool program_check(program *p, const json_t *check);
/* Whether this is an object with known keys only (the list ends with NULL).
 * With other keys, which may matter, the case is skipped. */
bool keys_known(const json_t *object, const char *what,
                const char *const *known, note *n);

/* ---- for rules ---------------------------------------------------------- */

/* A case with attributes that the rule does not support is skipped, unless they
 * are neutral: their meaning might matter. */
bool attrs_known(const op_rule *r, const op_call *c);
/* NULL if it does not exist. */
const json_t *attr(const op_call *c, const char *spellings);
/* Required, with a valid value. */
bool attr_axes(const op_call *c, const char *spellings, lb_axes *out);
bool attr_sizes(const op_call *c, const char *spellings, int64_t lo,
                int64_t *out, int count);
/* Optional. */
bool attr_axes_or_none(const op_call *c, const char *spellings, lb_axes *out);
bool attr_sizes_or(const op_call *c, const char *spellings, int64_t lo,
                   int64_t otherwise, int64_t *out, int count);
bool attr_int_or(const op_call *c, const char *spellings, int64_t lo,
                 int64_t hi, int64_t otherwise, int64_t *out);
/* Without its dialect; NULL and a note if it is missing or not a string. */
const char *attr_word(const op_call *c, const char *spellings);
const char *without_dialect(const char *name);

bool same_type(const op_call *c, int i, int j);
bool same_dtype(const op_call *c, int i, int j);
bool is_scalar(const op_call *c, int i);
/* The values of operand i, integers of rank 1 or a scalar. */
bool operand_ints(const op_call *c, int i, int64_t *out, int count);

#endif
