/* program.h - compiled functions: the graph of calls that a trace records, and
 * the steps that are made of it.
 *
 *     trace      the function runs once on arrays without elements; every call
 *                becomes a node                                     (trace.c)
 *     simplify   unused and repeated nodes are removed           (simplify.c)
 *     fuse       connected nodes become groups that run tile by tile
 *                                                        (group.c, fused.c)
 *     schedule   an order of steps, and the last use of each value
 *                                                               (schedule.c)
 *     place      an offset in one block for each intermediate array
 *                                                              (one_block.c)
 *
 * The memory of a program is a list of blocks that are freed together.
 */
#ifndef LB_PROGRAM_H
#define LB_PROGRAM_H

#include "core/core.h"

/* Memory that is freed as a whole. */
typedef struct prog_block {
    struct prog_block *next;
    size_t got, used, size;
} prog_block;

typedef struct prog_memory {
    lb_ctx *cx;
    prog_block *first;
} prog_memory;

/* size bytes, zeroed and aligned to 16, or NULL and LB_E_NOMEM. */
void *lb_prog_alloc(prog_memory *m, size_t size);
void lb_prog_free(prog_memory *m);

struct prog_group;

/* Where an intermediate array is in the arena. */
typedef struct prog_place {
    int index;        /* in the order of placing */
    size_t at, bytes; /* bytes 0: it has memory of its own */
} prog_place;

/* An argument, a constant or the result of a node. */
typedef struct prog_value {
    prog_place place;
    int id;
    lb_dtype dtype;
    lb_shape shape;
    int arg;                 /* index of the argument, or -1 */
    lb_array *constant;      /* a reference, or NULL */
    struct prog_node *by;    /* the node, or NULL */
    struct prog_value *same; /* simplify: the value that replaces this one */
    int uses;                /* by nodes, and once as a result */
    bool is_result;
    bool is_state; /* state of an object, e.g. an optimizer */
    bool updated;  /* passed to lb_update_in_place */
    int mark;      /* for searches */
    int local;     /* index in the fused loop of its group */
    bool leaves;   /* used outside of its group, or a result */
} prog_value;

/* A call of a primitive. */
typedef struct prog_node {
    const lb_prim *prim;
    void *params;
    int n_in;
    prog_value **in;
    int *traced; /* ids of `in` before simplification */
    prog_value *out;
    int at;     /* position in the trace */
    bool alive; /* some result depends on it */
    bool grown; /* its group was joined with those of its operands */
    bool quiet; /* part of a gradient: the dense policy does not apply */
    bool gives; /* a call of lb_update_in_place */
    int root;   /* gives: the argument that is updated, or -1 */
    bool last;  /* nothing needs operand 0 after it */
    lb_fusion fusion;
    int64_t operations;     /* arithmetic operations; 0 if unknown */
    struct prog_node *twin; /* a copy for another user, or NULL */
    struct prog_group *group;
    struct prog_node *next; /* in the group */
} prog_node;

typedef struct prog_fused prog_fused;

/* Limits of a fused step: calls, operands. */
enum { LB_FUSED_CALLS = 32, LB_FUSED_IN = 16 };

/* One call, or several fused calls. */
typedef struct prog_step {
    prog_node *node;   /* the call, or the first of the fused calls */
    prog_fused *fused; /* NULL: a call */
    prog_value **dead; /* values whose last use this is */
    int n_dead;
    const char *kernel; /* in the last run */
} prog_step;

/* An array that an object keeps between runs (an optimizer's moments). */
typedef struct prog_state {
    lb_array **slot;
    prog_value *in, *out; /* in NULL: only written; out NULL: only read */
} prog_state;

/* A scalar that is computed at the start of each run. */
typedef struct prog_number {
    double (*fn)(void *user, int which);
    void *user;
    int which;
    prog_value *value;
} prog_number;

typedef struct prog_count {
    int64_t *count;
    int64_t by;
} prog_count;

/* The signature of an argument. */
typedef struct prog_key {
    lb_dtype dtype;
    bool weak, direct; /* direct: lb_data is not NULL */
    bool packed;
    int64_t bytes; /* for lb_compiled_explain; not compared */
    const lb_format *fmt;
    int meaning;
    const void *sharding; /* not NULL: sharded */
    lb_shape shape;
} prog_key;

typedef struct lb_program {
    prog_memory memory;
    lb_ctx *cx;
    lb_precision precision;
    int n_args;
    prog_key *key; /* of each argument */
    lb_list values, nodes;
    lb_list states, numbers, counts;
    prog_key *state_key; /* of each state when it was traced */
    prog_value **arg;
    int n_results;
    prog_value **result;
    int *traced; /* ids of the results before simplification, ... */
    int64_t traced_nodes, traced_values; /* ... and the counts */
    bool *weak;                          /* of each result */
    prog_step *step;
    int n_steps;
    prog_value **placed; /* in order of offset in the arena */
    int n_placed;
    size_t arena;     /* bytes */
    size_t peak;      /* with results and others outside of the arena */
    int removed;      /* number of unused and repeated nodes */
    int64_t last_use; /* for the cache: number of the last run */
    int64_t runs;
} lb_program;

/* trace.c: the program of fn(args); NULL on failure. */
typedef struct prog_function {
    lb_fn one; /* either this or many */
    lb_fn_many many;
    int n_out;
    void *user;
} prog_function;
lb_program *lb_program_trace(lb_ctx *cx, const prog_function *fn,
                             lb_array *const *args, int n, int64_t fold_bytes);
/* Calls fn eagerly. Results belong to the open scope. */
bool lb_call_function(lb_ctx *cx, const prog_function *fn,
                      lb_array *const *args, int n, lb_array **out);
void lb_program_free(lb_program *p);
prog_key lb_key_of(const lb_array *a);
bool lb_key_equal(const prog_key *a, const prog_key *b);

/* simplify.c */
bool lb_program_simplify(lb_program *p);
/* group.c: which nodes run together. */
bool lb_program_group(lb_program *p);
/* schedule.c: steps from groups. */
bool lb_program_schedule(lb_program *p);
/* trace.c: the primitive that records lb_cut_like. */
extern const lb_prim lb_prim_cut_like;
lb_array *lb_run_cut_like(lb_ctx *cx, const prog_node *node,
                          lb_array *const *in);
/* one_block.c: places of intermediate arrays. */
bool lb_program_place(lb_program *p);
/* The memory of a run; *out is NULL if every array has its own. False if there
 * is none. */
typedef struct prog_arena prog_arena;
bool lb_arena_open(const lb_program *p, prog_arena **out);
void lb_arena_close(prog_arena *a);
/* Lets the next lb_dense with the dtype and shape of v use its place, until the
 * offer ends. a may be NULL. */
void lb_arena_offer(const lb_program *p, prog_arena *a, const prog_value *v);
void lb_arena_end_offer(const lb_program *p);
/* run.c: results belong to the open scope; false on failure, with NULLs. */
bool lb_program_run(lb_program *p, lb_array *const *args, lb_array **out);

/* Nodes that run in one loop over the elements of `shape`. With reductions,
 * which are over the axes from `lead` on, a tile consists of whole rows. */
typedef struct prog_group {
    int id;
    prog_node *first, *last;
    int n;
    lb_shape shape;
    int lead; /* -1: no reductions */
    bool fusible;
    int mark;      /* for searches */
    int waits_for; /* number of groups that must run first */
    bool listed;
} prog_group;

/* explain.c: a text from the heap, or NULL. */
char *lb_program_text(const lb_program *p, lb_explain_form form, size_t *got);

/* fused.c: compiles a group to a loop over tiles. NULL if it exceeds a limit
 * or, with *failed, if out of memory. */
prog_fused *lb_fuse_group(lb_program *p, prog_group *g, bool *failed);
/* LB_DECLINED: with these operands the nodes have to run one by one. val:
 * arrays by id of value. */
lb_verdict lb_fused_run(lb_program *p, const prog_fused *f, prog_arena *arena,
                        lb_array **val);

#endif
