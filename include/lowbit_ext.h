/* lowbit_ext.h - for those who add formats, primitives and layers.
 *
 * The mechanism in four sentences. An array is a VIEW (shape, strides, offset,
 * dtype) of a STORE (format, stored shape, parts). Strides and offset count
 * stored elements in the row-major order of the stored shape, never bytes:
 *
 *     index i  ->  element e = offset + sum i[k]*stride[k]  ->  decode(e, n)
 *
 * so transpose, broadcast, slice and most reshapes cost nothing in any format.
 * A PRIMITIVE is a struct of rules; lb_bind is the only way to call one.
 * LAYERS (a gradient tape, sharding, tracing) sit above lb_bind and see every
 * call before it runs.
 */
#ifndef LOWBIT_EXT_H
#define LOWBIT_EXT_H

#include "lowbit.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LB_MAX_PARTS = 4,
    LB_MAX_NESTING = 8,   /* arrays that are parts of parts of parts ... */
    LB_MAX_PHASES = 4,    /* of an eval */
    LB_MAX_PARAMS = 1024, /* bytes of a primitive's params */
    LB_RUN = 2048,        /* most elements that one decode is asked for */
    LB_SPANS = 258        /* most numbers that lb_part_spans wants room for */
};

typedef struct lb_store lb_store;
typedef struct lb_format lb_format;
typedef struct lb_prim lb_prim;
typedef struct lb_call lb_call;
typedef struct lb_plan lb_plan;
typedef struct lb_work lb_work;
typedef struct lb_heap lb_heap;
typedef struct lb_layer lb_layer;
typedef struct lb_tuning lb_tuning;

/* What tiles are made of: f32 for f32, f16, bf16 and quantized floats, f64,
 * i64 for signed integers, u64 for unsigned, a byte that is 0 or 1 for bool. */
typedef enum lb_ctype {
    LB_C_F32,
    LB_C_F64,
    LB_C_I64,
    LB_C_U64,
    LB_C_BOOL
} lb_ctype;

/* What a call runs on. */
typedef struct lb_cpu {
    lb_level level;
    const lb_tuning *tuning; /* the library's own; NULL: the level's */
    bool vbmi;               /* has AVX-512 VBMI besides AVX512VNNI */
    bool dotprod;            /* has sdot and udot besides NEON */
} lb_cpu;

/* Where numbers are to be written: elements of a float dtype, each rounded
 * once; past: past the caches. */
typedef struct lb_sink {
    lb_dtype dtype;
    bool past;
    void *out;
} lb_sink;

/* ---- stores and views --------------------------------------------------- */

/* One line of the parts table; the table belongs to the store, not to the
 * format. The part's shape is derived: per stored axis g ? ceil(n/g) : 1, then
 * own. Decoders look here and never at a config, which would be stale after
 * re-shaping or joining. */
typedef struct lb_part {
    int64_t
        g[LB_MAX_RANK]; /* 0 shared (size 1), else an entry per g elements */
    int64_t own;        /* size of a trailing axis of its own; 0 none */
    lb_array *a;        /* the entries, in any format; NULL: absent */
} lb_part;

struct lb_store {
    int refs;         /* atomic */
    lb_heap *heap;    /* where it came from and goes back to */
    size_t heap_size; /* bytes of this block */
    const lb_format *fmt;
    lb_shape shape; /* stored shape; a view's may differ */
    lb_ctype ctype; /* what decode writes */
    int meaning;    /* how a scale is meant; compared when joining */
    int depth;      /* of nesting: 0 for a leaf */
    lb_part part[LB_MAX_PARTS];
    lb_dtype elem;            /* leaf (dense) only */
    void *data;               /* leaf only: the bytes; not NULL <=> leaf */
    size_t data_size;         /* leaf only: bytes */
    void (*done)(void *user); /* for bytes that are the user's */
    void *user;
    const struct lb_sharding *sharding; /* NULL: all of it is here */
};

/* A plain value: eval copies it to its stack, permutes it there and reads
 * through the copy. References are counted beside it, or a copy would race
 * with them. */
struct lb_array {
    bool weak;      /* takes the other operand's dtype when promoting */
    lb_dtype dtype; /* a label: every read rounds to it, once */
    lb_store *store;
    lb_shape shape;
    int64_t
        stride[LB_MAX_RANK]; /* in stored elements; 0 repeats, < 0 reverses */
    int64_t offset;
};

/* How codes lie in the first part, for formats whose codes are one integer per
 * element, packed into bytes: code = least + step * stored bits; with 8 bits
 * the byte, signed or not, is the code. */
typedef struct lb_code_kind {
    int bits;        /* 8, 4, 2 or 1; 0: the format has no such codes */
    bool high_first; /* the first element has the high bits of its byte */
    int least, most, step;
    int filler; /* stored bits for places of the last byte of a row that no
                 * element has */
} lb_code_kind;

/* How numbers follow from such codes: number = level(code) * scale, for
 * products that take codes as they lie. */
typedef struct lb_levels {
    float level[16]; /* of each code of 4 bits or less, by its stored bits; of
                      * 8 bits the level is the code */
    int scale;       /* the part that holds the scales, f32 by its label; 0:
                      * there is none */
    bool inverse;    /* the scale is 1 over what is stored */
    float factor;    /* and times this; 0: 1 */
} lb_levels;

/* A lb_quant_config as formats see it: the format found, axes counted from 0
 * to rank - 1. It is the params of the primitive "quantize". */
typedef struct lb_quant {
    const lb_format *format;
    int64_t block_size;
    lb_axes axes;
    lb_dtype dtype;
    bool reference; /* use_kernel is LB_NO */
    bool center;
    bool clip_gradient;
    lb_compat compat;
    lb_decode decode;
    lb_scale scale;
    lb_meaning meaning;
    lb_threshold threshold;
    lb_blocks blocks;
    lb_nonfinite on_nonfinite;
} lb_quant;

/* What an array of given shape will be made of. */
typedef struct lb_layout {
    lb_shape stored;
    lb_dtype dtype; /* the label */
    int meaning;
    lb_part part[LB_MAX_PARTS];  /* g and own */
    lb_dtype elem[LB_MAX_PARTS]; /* of each part; none: it is absent */
    int64_t run; /* encode_run: elements that are encoded together */
} lb_layout;

/* Bytes of another program; see lb_from_parts. */
typedef struct lb_foreign {
    const char *layout;             /* "eformer"; NULL ends the list */
    const char *part[LB_MAX_PARTS]; /* names of the parts, NULL after the last;
                                     * part[0] must be given, others may be
                                     * NULL in load */
    lb_array *(*load)(lb_ctx *, const lb_quant *, const lb_shape *,
                      lb_array *const *part);
    lb_array *(*save)(lb_ctx *, lb_array *a, int part);
} lb_foreign;

/* A format is one file that ends in this struct. name, part and decode are
 * enough for arrays that are made from parts; layout and one of the two ways
 * to encode make it a target of lb_quantize. */
struct lb_format {
    size_t struct_size; /* sizeof(lb_format) */
    const char *name;
    struct {
        const char *name; /* NULL ends the list */
        bool raw;   /* dense contiguous bytes: decode may take a pointer, and an
                     * element's place inside an entry matters */
        bool firm;  /* may not become dense when blocks are moved */
        bool scale; /* numbers that lb_quantize_scales may quantize */
        bool optional; /* an array may do without */
    } part[LB_MAX_PARTS];
    lb_code_kind codes; /* of part 0 */
    /* May. Fills numbers, which came as zeros, for formats that have codes; or
     * false, where they do not follow this pattern. */
    bool (*levels)(const lb_cpu *, const lb_store *, lb_levels *numbers);
    bool relabel; /* convert to a float dtype only changes the label */
    /* Must. Elements [first, first + n) of the store in its ctype; n <= LB_RUN,
     * never across the end of a stored row. An element's bits do not depend on
     * first and n. */
    void (*decode)(const lb_cpu *, const lb_store *, int64_t first, int64_t n,
                   void *out);
    /* May. The same for elements first, first + step, ...: without it runs are
     * decoded whole and picked from. step may be 0 or negative. */
    void (*decode_strided)(const lb_cpu *, const lb_store *, int64_t first,
                           int64_t step, int64_t n, void *out);
    /* May. As decode, to where the sink says, of any n, also across the ends of
     * rows of a multiple of 256; false: nothing was done, decode is to. */
    bool (*unpack)(const lb_cpu *, const lb_store *, int64_t first, int64_t n,
                   lb_sink to);
    /* To quantize: what an array of that shape from elements of dtype `from`
     * is made of, all of q checked; or lb_fail with the numbers, and false.
     * `to` comes with the plain answers: stored in that shape, labelled with
     * the dtype that q asks for. g and own of parts that are absent, but might
     * be given to lb_from_parts, are filled too. The context may be NULL. */
    bool (*layout)(lb_ctx *, const lb_quant *q, lb_dtype from,
                   const lb_shape *shape, lb_layout *to);
    /* May. Fills what depends on q alone, once, before anything is encoded. */
    void (*prepare)(const lb_quant *q, lb_store *to);
    /* The simple way: elements [first, first + n) of the store from x, finite
     * f32. first is a multiple of lb_layout.run within its stored row; n is
     * one too, or the run ends with the row. Called once for each element, by
     * any thread. */
    void (*encode_run)(const lb_cpu *, const lb_quant *q, lb_store *to,
                       int64_t first, int64_t n, const float *x);
    /* The general way, as the plan and eval of a primitive: call->params is
     * the lb_quant, call->in[0] the source, out->store is to be filled; read
     * with lb_source_read. */
    void (*encode_plan)(const lb_call *, lb_plan *);
    void (*encode)(const lb_work *);
    /* May, with encode: as lb_prim.meet, so that slices of an array can be
     * encoded apart where they share a scale. */
    bool (*encode_meet)(const lb_work *);
    /* May. The largest |decoded - x| as a fraction of the largest |x| of the
     * elements that share a scale; 0: nothing is promised. q->dtype is set: it
     * may round, too. */
    double (*bound)(const lb_quant *q);
    /* May. The largest |x| that can be encoded: more is refused, or clamped,
     * as an infinity is. 0: any finite f32. */
    float largest;
    bool searches; /* encoding what was decoded may find other codes, which are
                    * no worse */
    const void *type; /* the format's own, for slots that formats share */
    unsigned kernels; /* bit l: has code of its own for lb_level l */
    const lb_foreign *foreign;   /* may be NULL; ends with layout == NULL */
    const struct lb_rule *rules; /* may be NULL; ends with prim == NULL */
};

/* A new array of a format from its parts: the plain view of a store of that
 * shape, labelled dtype. table fills g, own and a (NULL: absent) for each part
 * the format names; parts are referenced, and must have the derived shape;
 * raw ones must be dense and row-major. Belongs to the open scope. */
LB_API lb_array *lb_make(lb_ctx *cx, const lb_format *fmt, lb_dtype dtype,
                         int meaning, const lb_shape *stored,
                         const lb_part *table);

/* For decoders. The derived shape of a part; the number of the entry (of its
 * own axis: the first) that serves element e of the store; one value for each
 * of n elements of a row from first on, n <= LB_RUN; where the bytes of a raw
 * part begin. */
LB_API lb_shape lb_part_shape(const lb_shape *stored, const lb_part *part);
LB_API int64_t lb_part_entry(const lb_store *, int part, int64_t e);
LB_API void lb_part_scales(const lb_cpu *, const lb_store *, int part,
                           int64_t first, int64_t n, float *out);
/* The same, a value once for all elements that share it: the first serves
 * `head` of them (or all), every other one the next `each`. */
typedef struct lb_spans {
    const float *value; /* in the part, in room or in spread */
    int64_t head, each;
} lb_spans;
/* room: for LB_SPANS values. spread: for n, if each has its own (head and each
 * are 1); may be where results go that are written one by one. n > LB_RUN: all
 * is as it lies in the part, across rows, or value is NULL. */
LB_API lb_spans lb_part_spans(const lb_cpu *, const lb_store *, int part,
                              int64_t first, int64_t n, float *room,
                              float *spread);
LB_API const void *lb_part_bytes(const lb_store *, int part);

/* For layouts. Fills a line of the table: entries follow every axis but the
 * last, and there g (0: shared). */
LB_API void lb_part_rows(lb_part *part, const lb_shape *stored, int64_t g);
/* A name, as sentences want it: "native", "eformer", "bnb-cuda", "bnb-cpu". */
LB_API const char *lb_compat_name(lb_compat compat);

/* For encoders: where the bytes of a part are to be written; the source's
 * elements [first, first + n) in row-major order, or the box [lo, lo + n) of
 * it, as finite f32 numbers: what is not finite is noted, and the call will
 * fail, or is clamped if the config says so. peek returns a pointer to where
 * they lie, if they lie so, and else to room, which holds n; again is the same
 * for elements that this call has read before, and has not noted. */
LB_API void *lb_part_place(lb_store *, int part);
LB_API void lb_source_read(const lb_work *, int64_t first, int64_t n, float *x);
LB_API const float *lb_source_peek(const lb_work *, int64_t first, int64_t n,
                                   float *room);
LB_API const float *lb_source_again(const lb_work *, int64_t first, int64_t n,
                                    float *room);
LB_API void lb_source_read_box(const lb_work *, const int64_t *lo,
                               const int64_t *n, float *x);

/* ---- primitives --------------------------------------------------------- */

/* What a tier says. */
typedef enum lb_verdict { LB_DONE, LB_DECLINED, LB_FAILED } lb_verdict;

struct lb_call {
    const lb_prim *prim;
    const lb_cpu *cpu;
    int threads;            /* of the pool; results must not depend on it */
    lb_precision precision; /* the context's; params may name their own */
    int n_in;
    lb_array *const *in; /* none is NULL */
    const void *params;  /* prim->params_size bytes */
    lb_shape shape;      /* of the result; set by infer */
    lb_dtype dtype;
    const struct lb_whole *whole; /* NULL: in[0] is all there is */
};

/* What in[0] is a slice of. */
typedef struct lb_whole {
    lb_shape shape;          /* of the whole */
    int64_t lo[LB_MAX_RANK]; /* where the slice begins in it */
    /* NULL: the result depends on the slice alone. Else called between phases
     * (lb_prim.meet), by all who have slices that it depends on, in the same
     * order: data becomes the largest (max), or else the sum, of everybody's.
     * Sums of integers wrap. False: somebody failed. */
    bool (*reduce)(const struct lb_whole *, bool max, lb_dtype dtype,
                   int64_t count, void *data);
    void *user;
} lb_whole;

/* A format's own way with a primitive; operand is the one in that format. */
typedef struct lb_rule {
    const char *prim;
    lb_verdict (*run)(lb_ctx *, const lb_call *, int operand, lb_array **out);
} lb_rule;

/* Largest of the library's own: a convolution's, 2976 bytes; asserted there. */
enum { LB_PLAN_NOTE = 4096 };

/* What an eval needs, allocated before it begins, so that it cannot fail. */
struct lb_plan {
    size_t shared;     /* scratch that all threads see, kept between phases */
    size_t per_thread; /* scratch of each thread */
    /* Independent pieces of phase 0, 1, ...; a phase begins when the one
     * before has ended. phases == 0: nothing to do. */
    int phases;
    int64_t units[LB_MAX_PHASES];
    const char *kernel; /* what lb_explain calls it; static */
    /* LB_PLAN_NOTE bytes, aligned to 64, for what eval would have to find out
     * once more. It finds them as plan left them, in the same place, and leaves
     * them so: all threads do. It owns nothing, for eval may not come. (A plan
     * that uses it sets fields, and does not assign the whole.) */
    void *note;
};

/* One thread's share of an eval: units lo <= u < hi of a phase. */
struct lb_work {
    const lb_call *call;
    lb_array *out; /* dense and row-major, or prim->result's; to be filled */
    const lb_plan *plan;
    void *shared;  /* aligned to 64 */
    void *scratch; /* this thread's, aligned to 64 */
    int phase;
    int64_t lo, hi;
    int64_t *trouble; /* see lb_work_trouble */
};

/* An eval cannot fail, but operands may hold what no result can be made of:
 * notes element `where`. The smallest one that any thread noted goes to
 * prim->trouble; phases that follow are left out. */
LB_API void lb_work_trouble(const lb_work *, int64_t where);

/* What a result is to a tape, if gradients of an operand are recorded. */
typedef enum lb_flow {
    LB_FLOW_FLOATS = 0, /* floats have gradients, others are constants */
    LB_FLOW_NONE = 1,   /* a constant */
    LB_FLOW_ALWAYS = 2  /* others than floats are an error: it was not meant */
} lb_flow;

/* ---- how calls are cut among ranks -------------------------------------- */

enum { LB_MAX_LABELS = 32 };

/* How results of ranks become one, where they cut what the result does not
 * have: a sum; a sum of bits, all of which but one rank's are 0; or what join
 * makes of them. */
typedef enum lb_combine {
    LB_COMBINE_SUM = 0,
    LB_COMBINE_BITS = 1,
    LB_COMBINE_JOIN = 2
} lb_combine;

/* A rank's share of a call. */
typedef struct lb_share {
    const lb_call *whole;       /* the call as it was made */
    lb_array *const *in;        /* slices of its operands .. */
    int64_t (*lo)[LB_MAX_RANK]; /* .. and where each begins */
    lb_shape shape;             /* of this rank's result */
    int64_t at[LB_MAX_RANK];    /* where that begins in the whole result */
    bool partial;               /* it will be combined with others' */
    const lb_whole *slice_of;   /* what in[0] is a slice of */
} lb_share;

/* Axes of operands and of the result have labels, from 1 on. Axes with the
 * same label are cut alike, in equal pieces; label 0: not at all. A label that
 * the result lacks leaves partial results, to be combined. All comes as 0. */
typedef struct lb_cuts {
    int (*in)[LB_MAX_RANK]; /* of each operand's axes */
    int out[LB_MAX_RANK];
    int64_t grain[LB_MAX_LABELS]; /* pieces are multiples of it; 0: of 1 */
    bool spans[LB_MAX_LABELS];    /* a share depends on all pieces: lb_whole */
    bool firm;   /* a grain that does not fit is an error; else gathered */
    bool keeps;  /* the result is cut as operand 0 was, even if that had to be
                  * gathered for it */
    bool varies; /* of packed operands the share may be packed on one rank and
                  * dense on another, by what numbers they have: then it is
                  * made dense on all */
    lb_combine combine;
    /* May. The share of a rank; NULL: the same primitive with the same params.
     * 16-bit floats that are to be added up may come as f32. */
    lb_array *(*run)(lb_ctx *, const lb_share *);
    /* For LB_COMBINE_JOIN: of everybody's results, stacked along a new first
     * axis. */
    lb_array *(*join)(lb_ctx *, const lb_call *whole, lb_array *all);
} lb_cuts;

struct lb_prim {
    size_t struct_size; /* sizeof(lb_prim) */
    const char *name;
    size_t params_size; /* a plain value, whose pointers are to what outlives
                         * the context; 0 none */
    int n_in;           /* operands; -1: any number from 1 */
    /* Must. Checks everything and sets shape and dtype, or calls lb_fail with
     * a sentence that has the numbers in it and returns false. */
    bool (*infer)(lb_ctx *, lb_call *);
    /* May. A view, or whole blocks moved. */
    lb_verdict (*move)(lb_ctx *, const lb_call *, lb_array **out);
    /* Must, both, unless move never declines. eval sees operands through
     * lb_tile_* or, where a store is a leaf of the label's dtype, where they
     * lie. dense says that it wants them dense and row-major: then packed or
     * strided operands are copied first, if the policy lets. */
    void (*plan)(const lb_call *, lb_plan *);
    void (*eval)(const lb_work *);
    bool dense;
    /* May. The result to be filled by eval, if it is not a dense one. */
    lb_array *(*result)(lb_ctx *, const lb_call *);
    /* Must, if eval calls lb_work_trouble: lb_fail with the sentence. */
    void (*trouble)(lb_ctx *, const lb_call *, int64_t where);
    /* May. The gradient of a float operand, of its shape and dtype, from dout,
     * that of the result, which was out: a program over arrays, in which out
     * and the operands are what they were in the call. NULL without an error:
     * nothing flows. Without a vjp a gradient through the result is an error;
     * integer and bool results are constants to a tape. */
    lb_array *(*vjp)(lb_ctx *, const lb_call *, int operand, lb_array *out,
                     lb_array *dout);
    lb_flow flow;
    /* May. How the call may be cut among ranks; false: not at all, and its
     * operands are gathered first. The call is of whole arrays, of which only
     * shapes and dtypes may be looked at. */
    bool (*shard)(const lb_call *, lb_cuts *);
    /* May. Where lb_call.whole has reduce, called after each phase, also after
     * one that met trouble: ranks exchange what the next one needs. */
    bool (*meet)(const lb_work *);
};

/* Calls a primitive. Operands are borrowed; the result belongs to the open
 * scope. params: prim->params_size bytes, copied where they are needed. */
LB_API lb_array *lb_bind(lb_ctx *cx, const lb_prim *prim, int n,
                         lb_array *const *in, const void *params);
/* prim and its strings must outlive the context. Its name must be new. */
LB_API bool lb_add_primitive(lb_ctx *cx, const lb_prim *prim);
LB_API const lb_prim *lb_find_primitive(const lb_ctx *cx, const char *name);
/* The k-th primitive of the context, built-in ones first; NULL at the end. */
LB_API const lb_prim *lb_primitive_at(const lb_ctx *cx, int k);
/* fmt and its strings must outlive all arrays of the format, which may outlive
 * the context. Its name must be new. */
LB_API bool lb_add_format(lb_ctx *cx, const lb_format *fmt);
LB_API const lb_format *lb_find_format(const lb_ctx *cx, const char *name);
LB_API const lb_format *lb_format_at(const lb_ctx *cx, int k);

/* Records the context's first error and returns false. Any thread but those
 * inside an eval. */
LB_API bool lb_fail(lb_ctx *cx, lb_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A layer sees each call of the context, the one added last first, and hands
 * it down with lb_bind (which then reaches the layers below). */
struct lb_layer {
    lb_array *(*bind)(lb_ctx *, lb_layer *self, const lb_prim *, int n,
                      lb_array *const *in, const void *params);
    lb_layer *below; /* set by lb_push_layer */
    /* May. What it would do with a call, in words, for lb_explain; false: it
     * only hands it down. */
    bool (*explain)(lb_ctx *, lb_layer *self, const lb_call *, char *to,
                    size_t room);
};
LB_API void lb_push_layer(lb_ctx *cx, lb_layer *layer);
LB_API void lb_pop_layer(lb_ctx *cx);

/* ---- tiles: how eval reads and writes ----------------------------------- */

LB_API lb_ctype lb_ctype_of(lb_dtype dtype);
LB_API size_t lb_ctype_size(lb_ctype ctype);

/* The box [lo, lo + n) of a view, row-major, to a tile of ctype (which is
 * lb_ctype_of(a->dtype), or LB_C_F64 or LB_C_F32 for any float). */
LB_API void lb_tile_read(const lb_cpu *, const lb_array *a, const int64_t *lo,
                         const int64_t *n, lb_ctype ctype, void *tile);
/* The same, but where the elements lie in memory just like such a tile, the
 * pointer to them is returned and tile is not touched. */
LB_API const void *lb_tile_peek(const lb_cpu *, const lb_array *a,
                                const int64_t *lo, const int64_t *n,
                                lb_ctype ctype, void *tile);
/* Elements [first, first + n) in the view's row-major order. */
LB_API void lb_tile_read_flat(const lb_cpu *, const lb_array *a, int64_t first,
                              int64_t n, lb_ctype ctype, void *out);
/* A tile to the box of a dense row-major result, converted to its dtype. */
LB_API void lb_tile_write(const lb_cpu *, lb_array *out, const int64_t *lo,
                          const int64_t *n, lb_ctype ctype, const void *tile);
/* Where the box of a result lies, if eval may as well write it there itself:
 * row-major, in ctype, and small enough to be worth a place in the caches.
 * Else NULL: compute elsewhere, then lb_tile_write. */
LB_API void *lb_tile_place(const lb_cpu *, lb_array *out, const int64_t *lo,
                           const int64_t *n, lb_ctype ctype);
LB_API void lb_tile_write_flat(const lb_cpu *, lb_array *out, int64_t first,
                               int64_t n, lb_ctype ctype, const void *tile);

/* How a shape is cut into tiles. Tiles are numbered row-major. */
typedef struct lb_tiling {
    lb_shape shape;
    int64_t n[LB_MAX_RANK];     /* of a whole tile */
    int64_t count[LB_MAX_RANK]; /* tiles along each axis */
    int64_t tiles;              /* their product */
    int64_t size;               /* elements of a whole tile */
} lb_tiling;
enum { LB_TILE = 16384 }; /* most elements of a tile */

/* Tiles of at most LB_TILE elements that suit how the operands lie. */
LB_API lb_tiling lb_tiling_for(const lb_shape *shape, const lb_array *const *in,
                               int n);
/* The box of tile t; returns its number of elements. */
LB_API int64_t lb_tiling_box(const lb_tiling *, int64_t t, int64_t *lo,
                             int64_t *n);

/* ---- helpers ------------------------------------------------------------ */

LB_API int64_t lb_shape_size(const lb_shape *shape); /* of a valid shape */
LB_API bool lb_shape_equal(const lb_shape *a, const lb_shape *b);
/* Checks rank, signs and that size (in elements and 8-byte words) fits. */
LB_API bool lb_shape_check(lb_ctx *cx, const char *who, const lb_shape *shape);
LB_API void lb_row_major(const lb_shape *shape, int64_t *stride);
/* The elements lie row-major without gaps (axes of size 1 do not matter). */
LB_API bool lb_is_row_major(const lb_array *a);
/* A new view of a's store in the open scope, equal to a; to be changed before
 * anybody else sees it. NULL and an error when out of memory. */
LB_API lb_array *lb_view(lb_ctx *cx, const lb_array *a);
/* A new dense array in the open scope, its elements not set. */
LB_API lb_array *lb_dense(lb_ctx *cx, lb_dtype dtype, const lb_shape *shape);

/* "(2,3)" in place, for sentences: LB_SHOW(&shape). */
typedef struct lb_text {
    char s[192];
} lb_text;
LB_API lb_text lb_shape_text(const lb_shape *shape);
#define LB_SHOW(shape) (lb_shape_text(shape).s)

#ifdef __cplusplus
}
#endif
#endif
