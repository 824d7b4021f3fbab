/* stablehlo.h - operations of StableHLO as calls of lowbit.h.
 *
 * lowbit's functions broadcast and promote, StableHLO's operations do not: a
 * rule checks that operands are as StableHLO demands before it calls one, and
 * stablehlo.c checks that what came back has the type the case states.
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
    struct program *program; /* that the operation is in */
} op_call;

typedef struct op_rule op_rule;
struct op_rule {
    const char *name;
    /* The attributes it understands, separated by spaces; spellings of the
     * same one joined by |. NULL: none. */
    const char *attrs;
    int n_in; /* -1: run checks it */
    /* The one result. NULL: a note, or an error in the context. No run: the
     * results are the operands. */
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

/* NULL and a note: nothing here is called so. */
const op_rule *stablehlo_find(const char *name);

/* ---- a case under way --------------------------------------------------- */

typedef struct value {
    const char *name; /* belongs to the JSON */
    lb_array *a;
    npy raw; /* a constant's own bytes; no data for results */
} value;

/* What a region's operations see: they are written for scalars and run on
 * arrays of shape `lanes`, to which scalars from outside are broadcast. */
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

/* NULL and a note if there is none. */
const value *program_find(program *p, const char *name);
bool program_add(program *p, value v);
bool program_add_consts(program *p, const json_t *consts);
bool program_run_op(program *p, const json_t *op);
void program_free(program *p);

/* The region of an operation that has one, under any of its usual names. */
const json_t *region_of(const json_t *op);
/* Runs it on n_in arrays of one shape; its n_out results have that shape. */
bool region_run(program *p, const json_t *region, lb_array *const *in, int n_in,
                lb_array **out, int n_out);
bool program_check(program *p, const json_t *check);
/* object is one and has no keys but the known ones, a list that ends with
 * NULL; others make the case skipped, since they may matter. */
bool keys_known(const json_t *object, const char *what,
                const char *const *known, note *n);

/* ---- for rules ---------------------------------------------------------- */

/* Attributes the rule does not know and that are not neutral make the case
 * skipped: their meaning might matter. */
bool attrs_known(const op_rule *r, const op_call *c);
/* NULL if there is none. */
const json_t *attr(const op_call *c, const char *spellings);
/* Must be there, with a value that makes sense. */
bool attr_axes(const op_call *c, const char *spellings, lb_axes *out);
bool attr_sizes(const op_call *c, const char *spellings, int64_t lo,
                int64_t *out, int count);
/* May be there. */
bool attr_axes_or_none(const op_call *c, const char *spellings, lb_axes *out);
bool attr_sizes_or(const op_call *c, const char *spellings, int64_t lo,
                   int64_t otherwise, int64_t *out, int count);
bool attr_int_or(const op_call *c, const char *spellings, int64_t lo,
                 int64_t hi, int64_t otherwise, int64_t *out);
/* Without its dialect; NULL and a note if it is not there or not a string. */
const char *attr_word(const op_call *c, const char *spellings);
const char *without_dialect(const char *name);

bool same_type(const op_call *c, int i, int j);
bool same_dtype(const op_call *c, int i, int j);
bool is_scalar(const op_call *c, int i);
/* Operand i, a list of integers (of rank 1, or a scalar), as numbers. */
bool operand_ints(const op_call *c, int i, int64_t *out, int count);

#endif
