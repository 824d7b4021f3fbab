/* core.h - internal interfaces shared by core, prims, grad and shard. */
#ifndef LB_CORE_H
#define LB_CORE_H

#include "base/memory.h"
#include "base/threads.h"
#include "lowbit_ext.h"

enum { LB_ERROR_SIZE = 512, LB_EXPLAIN_SIZE = 1024 };

/* A growing list of pointers, allocated from the heap. */
typedef struct lb_list {
    void **item;
    int64_t n, room;
    size_t got;
} lb_list;
bool lb_list_push(lb_ctx *cx, lb_list *list, void *item); /* false:
                                                           * LB_E_NOMEM */
void lb_list_free(lb_heap *heap, lb_list *list);

/* Interface of traces to objects with state (optimizers), which a compiled
 * function reads and writes in each run. */
typedef struct lb_tracer {
    /* The array in *slot when a run begins, or the last one passed to `set`. */
    lb_array *(*get)(struct lb_tracer *, lb_array **slot);
    /* *slot becomes a reference to a at the end of each run. */
    bool (*set)(struct lb_tracer *, lb_array **slot, lb_array *a);
    /* lb_scalar(fn(user, which)), computed when a run begins. */
    lb_array *(*number)(struct lb_tracer *, double (*fn)(void *user, int which),
                        void *user, int which);
    /* Increments *count at the end of each run. Returns the number of such
     * calls in this trace; -1 when out of memory. */
    int (*advance)(struct lb_tracer *, int64_t *count);
    int64_t scope; /* of the trace; arrays of outer ones are constants */
} lb_tracer;

/* A rule of lb_add_rule. */
typedef struct lb_added_rule {
    const lb_format *fmt; /* NULL: any */
    const lb_prim *prim;
    lb_rule_fn *run;
    bool active; /* it is running, and not to be tried again */
    size_t got;
} lb_added_rule;

/* Memory for the elements of the next dense array of that dtype and shape. */
typedef struct lb_room {
    lb_dtype dtype;
    const lb_shape *shape; /* NULL: none */
    void *data;            /* aligned to 64 bytes */
    void (*done)(void *user);
    void *user;
} lb_room;

struct lb_ctx {
    lb_heap *heap;
    size_t got; /* of this block */
    lb_pool *pool;
    lb_cpu cpu;
    char cpu_name[64]; /* see lb_cpu_id */
    lb_dense_policy dense;
    lb_precision precision;
    void (*log)(void *user, const char *sentence);
    void *log_user;
    lb_status status; /* of the first error */
    int64_t errors;   /* number of first errors so far, including cleared
                       * ones */
    char error[LB_ERROR_SIZE];
    lb_list owned;  /* arrays of the open scopes, outermost first */
    int64_t *scope; /* where each open scope begins in owned */
    int64_t n_scopes, scope_room;
    int64_t lost_scopes; /* scopes that could not be recorded (out of memory) */
    size_t scope_got;
    lb_layer *layer;        /* innermost */
    lb_list prims, formats; /* added by the user */
    lb_list dense_formats;  /* formats with their own policy ... */
    lb_list dense_policies; /* ... and these policies */
    lb_list rules;          /* lb_added_rule, in the order of addition */
    bool check_indices;     /* of lb_take; see lb_options */
    int quiet;              /* > 0: dense results are not subject to the policy:
                             * parts of packed arrays, and gradients */
    struct lb_debug *debug; /* lb_options.debug; else NULL */
    const char *making;     /* with debug: the operation that is running */
    lb_room room;           /* of a compiled function */
    bool dry;               /* lb_explain: stop before eval */
    bool shares_all;        /* LOWBIT_POOL=always: even the smallest work */
    lb_tracer *tracer;      /* of the trace under way, or NULL */
    int64_t traces;         /* begun so far */
    const char *kernel;     /* of the last call; static */
    const lb_whole *whole;  /* of the next call that reaches the tiers */
    lb_array *given;        /* operand 0 of the next call, if its caller gives
                             * it up; see lb_bind_given */
    int given_refs;         /* references that this caller holds */
    char explain[LB_EXPLAIN_SIZE];
};

/* ctx.c: arrays and scopes. Adopts a (one reference) into the open scope; on
 * failure releases it and returns NULL. */
lb_array *lb_own(lb_ctx *cx, lb_array *a);

/* lookup.c: the policy for operands of a format. */
lb_dense_policy lb_dense_of(const lb_ctx *cx, const lb_format *fmt);

/* lookup.c: whether operands of a format may have rules, its own or added. */
bool lb_has_rules(const lb_ctx *cx, const lb_format *fmt);

/* origin.c: with lb_options.debug, where arrays were made, and which are no
 * longer alive. lb_debug_open returns NULL if out of memory. */
typedef struct lb_origin lb_origin;
struct lb_debug *lb_debug_open(lb_heap *heap);
void lb_debug_close(struct lb_debug *);
/* A new array, at a in a block of the heap; NULL and an error if out of
 * memory. */
lb_origin *lb_origin_new(lb_ctx *cx, lb_array *a, void *block, size_t got);
/* The last reference is gone. True: the view stays until lb_debug_close,
 * without its store; false: the caller has to free it. */
bool lb_origin_end(lb_origin *);
/* The operation that made the array; NULL if it is not known. */
const char *lb_origin_name(const lb_origin *);
/* array.c: false, and an error, if debug has found that a is not alive. */
bool lb_is_alive(lb_ctx *cx, const char *who, const lb_array *a);

/* bind.c: a call that writes its result into out, which is dense, row-major and
 * as infer requires. Declines if a layer, rule or view could handle the
 * call. */
lb_verdict lb_bind_into(lb_ctx *cx, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params, lb_array *out);

/* bind.c: the CPU to run a call on: the context's, or one without kernels if an
 * operand was made with lb_quant_config.reference. */
const lb_cpu *lb_cpu_for(const lb_ctx *cx, lb_array *const *in, int n);
/* bind.c: a call with the context's settings, before infer, for the context's
 * CPU: a call that is evaluated needs that of lb_cpu_for. */
lb_call lb_call_of(const lb_ctx *cx, const lb_prim *prim, int n,
                   lb_array *const *in, const void *params);

/* cost.c: how long an inferred call takes on one thread, roughly, in ns; and
 * how many threads are worth that: all of the pool, or 1. */
double lb_call_ns(const lb_call *c);
int lb_threads_for(const lb_ctx *cx, double ns);

/* bind.c: runs the phases of a plan of which the caller knows all that
 * lb_bind would find out, on call->threads threads. */
bool lb_run_plan(lb_ctx *cx, const lb_call *c, const lb_plan *plan,
                 lb_array *out);

/* bind.c: a call on a slice whose result depends on other slices. */
lb_array *lb_bind_slice(lb_ctx *cx, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params,
                        const lb_whole *whole);

/* bind.c: a call whose caller holds `refs` references to in[0] and gives them
 * up: if there are no others, and no views, the result may be in[0] itself,
 * overwritten. Layers that are not transparent take in[0] as theirs. */
lb_array *lb_bind_given(lb_ctx *cx, int refs, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params);

/* array.c: why the elements of an array with `refs` known references must not
 * be overwritten; NULL: nobody else can see them. */
const char *lb_shared_why(const lb_array *a, int refs);

/* reuse.c: tells the log of the dense policy that a, with `refs` references
 * known (0: it is needed), was copied to `to`. */
void lb_copy_report(lb_ctx *cx, const lb_array *a, int refs,
                    const lb_array *to);

/* ctx.c: `to`, of the open scope, takes over a reference to `from`: that of its
 * scope or, if it is in none, one made by lb_ref. */
void lb_replace(lb_ctx *cx, lb_array *from, lb_array *to);

/* ctx.c: whether scope number `scope` (the innermost: cx->n_scopes - 1), or one
 * inside of it, holds a. */
bool lb_in_scope(const lb_ctx *cx, int64_t scope, const lb_array *a);

/* array.c: a store of which this process holds only a slice, its only part.
 * Implemented by the mesh. */
struct lb_sharding {
    /* The complete array, not sharded, in the open scope. */
    lb_array *(*gather)(lb_ctx *cx, lb_array *a);
    /* Implements lb_component; the result is sharded too. */
    lb_array *(*component)(lb_ctx *cx, lb_array *a, const char *name);
    /* Implements lb_cut_like, if one of the two is sharded. */
    lb_array *(*like)(lb_ctx *cx, lb_array *a, const lb_array *like,
                      bool cheap);
    /* For lb_describe: "P(dp, None) over dp=2,tp=4"; returns to. */
    const char *(*describe)(const lb_array *a, char *to, size_t room);
};
/* What stands behind an array without elements (lb_store.traced). */
struct lb_traced {
    int64_t trace;       /* a number that no other trace has */
    bool dead;           /* not traced: see lb_is_alive */
    const char *made_by; /* the primitive's name; NULL: an argument */
    /* a cut among ranks as `like` is, recorded as a call. */
    lb_array *(*like)(lb_ctx *cx, lb_array *a, const lb_array *like,
                      bool cheap);
};
/* True if a has elements; otherwise an error. who: the caller, for the message.
 */
bool lb_has_elements(lb_ctx *cx, const char *who, const lb_array *a);
/* For functions that read arrays without lb_bind: a, gathered if it is sharded.
 * NULL on error. */
lb_array *lb_here(lb_ctx *cx, lb_array *a);
/* a with the same sharding as `like`, which has the same shape. Returns a
 * itself if it has that sharding; otherwise makes a call that tapes record.
 * NULL gives NULL. cheap: return a itself if communication would be
 * necessary. */
lb_array *lb_cut_like(lb_ctx *cx, lb_array *a, const lb_array *like,
                      bool cheap);

/* parts.c: whether a row of the table is valid for part p. */
bool lb_part_check(lb_ctx *cx, const lb_format *fmt, int p,
                   const lb_shape *stored, const lb_part *part);

/* parts.c: lb_make with another store's format, meaning and settings. */
lb_array *lb_make_like(lb_ctx *cx, const lb_store *like, lb_dtype dtype,
                       const lb_shape *stored, const lb_part *table);

/* array.c: the plain view of a store; takes over the store's reference. */
lb_array *lb_view_store(lb_ctx *cx, lb_store *store, lb_dtype dtype);

/* array.c: pointer to element 0 of a view, to which its strides apply, if the
 * store is a leaf of the view's dtype; else NULL. */
const void *lb_elements(const lb_array *a);

/* shape.c: converts user axes (possibly negative) to 0 ... rank-1, or fails. */
bool lb_axis_fix(lb_ctx *cx, const char *who, int axis, int rank, int *out);
/* in NULL: all axes. Duplicates are an error. */
bool lb_axes_fix(lb_ctx *cx, const char *who, const lb_axes *in, int rank,
                 lb_axes *out);
/* For infer, which is strict: axes must be in 0 ... rank-1, without
 * duplicates. */
bool lb_axes_check(lb_ctx *cx, const char *who, const char *what,
                   const lb_axes *axes, int rank);
bool lb_axes_has(const lb_axes *axes, int axis);

/* promote.c: broadcasts and promotes the operands of a user function for the
 * strict primitives. */
/* Converts all to the common dtype (which weak ones do not affect). in is
 * overwritten. */
bool lb_meet_dtypes(lb_ctx *cx, lb_array **in, int n);
/* Broadcasts all to the common shape. in is overwritten. */
bool lb_meet_shapes(lb_ctx *cx, const char *who, lb_array **in, int n);
/* a converted to dtype; a itself if it has it. */
lb_array *lb_as(lb_ctx *cx, lb_array *a, lb_dtype dtype);

bool lb_dtype_is_float(lb_dtype d);
bool lb_dtype_is_int(lb_dtype d);      /* signed or unsigned, not bool */
bool lb_dtype_is_unsigned(lb_dtype d); /* u8 ... u64 */

/* shape.c: strides for viewing a in another shape, by numpy's no-copy rule;
 * false if there are none. */
bool lb_restride(const lb_array *a, const lb_shape *shape, int64_t *stride);

/* LB_API functions in this header are exported for liblowbit-io only
 * (cmake/lowbit.map). */

/* quant.c: copies a user's config as far as both sides know it; the rest is
 * zero. NULL: all defaults. who: for errors. */
bool lb_config_read(lb_ctx *cx, const char *who, const lb_quant_config *config,
                    lb_quant_config *c);
/* lb_quant_check validates a config for an array of that rank as formats see
 * it. lb_quant_of makes one from a user's config: finds the format and
 * normalizes the axes. */
bool lb_quant_check(lb_ctx *cx, const char *who, const lb_quant *q, int rank);
LB_API bool lb_quant_of(lb_ctx *cx, const char *who,
                        const lb_quant_config *config, int rank, lb_quant *q);

/* The same for a format to quantize to, which needs an encoder. */
LB_API bool lb_quant_to(lb_ctx *cx, const char *who,
                        const lb_quant_config *config, int rank, lb_quant *q);

/* nearest.c: for messages about unknown names. The formats that can be
 * quantized to; and ": " with the nearest ones, or "". */
lb_text lb_formats_known(const lb_ctx *cx);
LB_API lb_text lb_formats_near(const lb_ctx *cx, const char *name);

/* layout.c: whether a user's or a file's `given` is the layout `name`. "seed"
 * is the former name of "eformer", found in older files. */
LB_API bool lb_layout_is(const char *given, const char *name);
/* The format's layout, checked. cx may be NULL: then errors have no message.
 * from: dtype of the array to quantize. */
LB_API bool lb_layout_of(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                         const lb_shape *shape, lb_layout *to);
/* An array from the parts in the layout, viewed in that shape; lb_layout_alloc
 * allocates the parts, uninitialized. */
lb_array *lb_layout_make(lb_ctx *cx, const lb_quant *q, const lb_layout *l,
                         const lb_shape *shape);
lb_array *lb_layout_alloc(lb_ctx *cx, const lb_quant *q, lb_layout *l,
                          const lb_shape *shape);
lb_made lb_made_by(const lb_quant *q);

/* box.c: a view as a box of its store, if it is one, as needed to move blocks.
 * A plain value; parts are views on the caller's stack. */
typedef struct lb_box {
    lb_shape shape; /* stored shape implied by the view's strides */
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
    int axis[LB_MAX_RANK]; /* of the store, per axis of the view; -1: none */
    lb_part part[LB_MAX_PARTS];  /* table for that shape; for a see view */
    lb_array view[LB_MAX_PARTS]; /* of the parts, in their derived shapes */
} lb_box;
bool lb_as_box(const lb_array *a, lb_box *box);
/* The part of a part that belongs to the box; false if an entry would be
 * cut. */
bool lb_box_cut(const lb_box *box, int part, lb_array *cut);

/* blocks.c: moving whole blocks without leaving the format. They decline if the
 * table cannot express the result, and always for leaves. */
LB_API lb_verdict lb_pack(lb_ctx *cx, lb_array *a, lb_array **out);
bool lb_can_pack(const lb_array *a);
/* The same, stored in a's own axis order, so that any reshape is a view. */
lb_verdict lb_pack_rows(lb_ctx *cx, lb_array *a, lb_array **out);
lb_verdict lb_join(lb_ctx *cx, lb_array *const *in, int n, int axis,
                   lb_array **out);
/* Entries along axis selected by index, an integer vector; clamped. */
lb_verdict lb_pick(lb_ctx *cx, lb_array *a, int axis, lb_array *index,
                   lb_array **out);

/* unpack.c: elements [first, first + n) of a packed store of f32 values. */
void lb_unpack(const lb_cpu *, const lb_store *, int64_t first, int64_t n,
               lb_sink to);

/* Functions of the public header open a scope around their intermediate arrays
 * and return only the result. */
lb_array *lb_leave_with(lb_ctx *cx, lb_array *a);

static inline int64_t lb_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t lb_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t lb_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

#endif
