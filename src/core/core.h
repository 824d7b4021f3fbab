/* core.h - what core, prims, grad and shard share and users do not see. */
#ifndef LB_CORE_H
#define LB_CORE_H

#include "base/memory.h"
#include "base/threads.h"
#include "lowbit_ext.h"

enum { LB_ERROR_SIZE = 512, LB_EXPLAIN_SIZE = 1024 };

/* A growing list of pointers, from the heap. */
typedef struct lb_list {
    void **item;
    int64_t n, room;
    size_t got;
} lb_list;
bool lb_list_push(lb_ctx *cx, lb_list *list, void *item); /* or LB_E_NOMEM */
void lb_list_free(lb_heap *heap, lb_list *list);

struct lb_ctx {
    lb_heap *heap;
    size_t got; /* of this block */
    lb_pool *pool;
    lb_cpu cpu;
    char cpu_name[64]; /* as lb_cpu_id has it */
    lb_dense_policy dense;
    lb_precision precision;
    void (*log)(void *user, const char *sentence);
    void *log_user;
    lb_status status; /* of the first error */
    int64_t errors;   /* first errors so far, also those that were cleared */
    char error[LB_ERROR_SIZE];
    lb_list owned;  /* arrays of the open scopes, outermost first */
    int64_t *scope; /* where each open scope begins in owned */
    int64_t n_scopes, scope_room;
    int64_t lost_scopes; /* entered when there was no memory to note it */
    size_t scope_got;
    lb_layer *layer;        /* innermost */
    lb_list prims, formats; /* added by the user */
    lb_list dense_formats;  /* those with a policy of their own, and .. */
    lb_list dense_policies; /* .. which */
    bool dry;               /* explaining: stop before eval */
    const lb_whole *whole;  /* of the next call that reaches the tiers */
    char explain[LB_EXPLAIN_SIZE];
};

/* ctx.c: arrays and scopes. Adopts a (one reference) into the open scope; on
 * failure releases it and returns NULL. */
lb_array *lb_own(lb_ctx *cx, lb_array *a);

/* lookup.c: the policy for operands of a format. */
lb_dense_policy lb_dense_of(const lb_ctx *cx, const lb_format *fmt);

/* bind.c: a call whose result is to be filled in where it is, dense and
 * row-major and what infer says, if no layer, rule or view could have a say in
 * it; else declined. */
lb_verdict lb_bind_into(lb_ctx *cx, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params, lb_array *out);

/* bind.c: a call of a slice, with the rest of which results have to do. */
lb_array *lb_bind_slice(lb_ctx *cx, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params,
                        const lb_whole *whole);

/* array.c: a store of which this process holds a slice, its only part. The mesh
 * knows more about it. */
struct lb_sharding {
    /* All of it, as an array like any other, in the open scope. */
    lb_array *(*gather)(lb_ctx *cx, lb_array *a);
    /* lb_component of it, itself sharded. */
    lb_array *(*component)(lb_ctx *cx, lb_array *a, const char *name);
    /* lb_cut_like, where one of the two is sharded. */
    lb_array *(*like)(lb_ctx *cx, lb_array *a, const lb_array *like,
                      bool cheap);
};
/* For those who read arrays past lb_bind: a, or all of it. NULL on error. */
lb_array *lb_here(lb_ctx *cx, lb_array *a);
/* a, cut among ranks as `like` is, which has its shape: a itself if it is, a
 * call that tapes see if not. NULL gives NULL. cheap: only if nothing has to be
 * exchanged for it, else a itself. */
lb_array *lb_cut_like(lb_ctx *cx, lb_array *a, const lb_array *like,
                      bool cheap);

/* parts.c: whether a line of the table makes sense for part p. */
bool lb_part_check(lb_ctx *cx, const lb_format *fmt, int p,
                   const lb_shape *stored, const lb_part *part);

/* array.c: the plain view of a store, whose one reference it takes over. */
lb_array *lb_view_store(lb_ctx *cx, lb_store *store, lb_dtype dtype);

/* array.c: element 0 of a view where it lies, from which its strides count, if
 * the store is a leaf of elements of the view's dtype; else NULL. */
const void *lb_elements(const lb_array *a);

/* shape.c: axes as users write them to 0 .. rank-1, or an error. */
bool lb_axis_fix(lb_ctx *cx, const char *who, int axis, int rank, int *out);
/* in NULL: all axes. Refuses duplicates. */
bool lb_axes_fix(lb_ctx *cx, const char *who, const lb_axes *in, int rank,
                 lb_axes *out);
/* For infer, which is strict: axes must be in 0 .. rank-1, each once. */
bool lb_axes_check(lb_ctx *cx, const char *who, const char *what,
                   const lb_axes *axes, int rank);
bool lb_axes_has(const lb_axes *axes, int axis);

/* promote.c: the operands of a user's function, broadcast and promoted, for
 * the strict primitives. */
/* Converts all to the common dtype (weak ones follow). in is overwritten. */
bool lb_meet_dtypes(lb_ctx *cx, lb_array **in, int n);
/* Broadcasts all to the common shape. in is overwritten. */
bool lb_meet_shapes(lb_ctx *cx, const char *who, lb_array **in, int n);
/* a as dtype: a itself if it has it. */
lb_array *lb_as(lb_ctx *cx, lb_array *a, lb_dtype dtype);

bool lb_dtype_is_float(lb_dtype d);
bool lb_dtype_is_int(lb_dtype d);      /* signed or unsigned, not bool */
bool lb_dtype_is_unsigned(lb_dtype d); /* u8 .. u64 */

/* shape.c: strides that give a view another shape, by numpy's no-copy rule;
 * false if there are none. */
bool lb_restride(const lb_array *a, const lb_shape *shape, int64_t *stride);

/* Functions that are LB_API here are seen by liblowbit-io, and by nobody else
 * outside (cmake/lowbit.map). */

/* quant.c: a user's config as far as both sides know it, the rest zero. NULL:
 * all defaults. who: for errors. */
bool lb_config_read(lb_ctx *cx, const char *who, const lb_quant_config *config,
                    lb_quant_config *c);
/* The config for an array of that rank as formats see it: the format found,
 * enums and axes checked, which lb_quant_check does for whatever comes. */
bool lb_quant_check(lb_ctx *cx, const char *who, const lb_quant *q, int rank);
LB_API bool lb_quant_of(lb_ctx *cx, const char *who,
                        const lb_quant_config *config, int rank, lb_quant *q);

/* layout.c: whether a user's or a file's `given` names the layout `name`.
 * "seed" is the former name of "eformer", found in older files. */
LB_API bool lb_layout_is(const char *given, const char *name);
/* The format's layout, checked. cx may be NULL: then a refusal says
 * nothing. from: the dtype of what is quantized. */
LB_API bool lb_layout_of(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                         const lb_shape *shape, lb_layout *to);
/* An array of the layout's parts, seen in that shape; of new parts, not set. */
lb_array *lb_layout_make(lb_ctx *cx, const lb_format *fmt, const lb_layout *l,
                         const lb_shape *shape);
lb_array *lb_layout_alloc(lb_ctx *cx, const lb_format *fmt, lb_layout *l,
                          const lb_shape *shape);

/* box.c: a view as a box of its store, if it is one: what must be known to
 * move blocks. A plain value; parts are views on the caller's stack. */
typedef struct lb_box {
    lb_shape shape; /* the stored shape that the view's strides name */
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
    int axis[LB_MAX_RANK]; /* of the store, for each of the view; -1: none */
    lb_part part[LB_MAX_PARTS];  /* the table for that shape; a: see view */
    lb_array view[LB_MAX_PARTS]; /* of the parts, in their derived shapes */
} lb_box;
bool lb_as_box(const lb_array *a, lb_box *box);
/* The part of a part that the box needs; false: it cuts through an entry. */
bool lb_box_cut(const lb_box *box, int part, lb_array *cut);

/* blocks.c: whole blocks moved, the format kept. They decline where the table
 * cannot express the result; for leaves always. */
LB_API lb_verdict lb_pack(lb_ctx *cx, lb_array *a, lb_array **out);
bool lb_can_pack(const lb_array *a);
lb_verdict lb_join(lb_ctx *cx, lb_array *const *in, int n, int axis,
                   lb_array **out);
/* Entries of axis by index, an integer vector, clamped. */
lb_verdict lb_pick(lb_ctx *cx, lb_array *a, int axis, lb_array *index,
                   lb_array **out);

/* unpack.c: elements [first, first + n) of a packed store of f32 numbers. */
void lb_unpack(const lb_cpu *, const lb_store *, int64_t first, int64_t n,
               lb_sink to);

/* Every array function of the user's header opens a scope around what it
 * composes and hands out only its result. */
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
