/* lowbit_ext.h - for adding formats, primitives and layers.
 *
 * An array is a VIEW (shape, strides, offset, dtype) of a STORE (format, stored
 * shape, parts). Strides and offset count stored elements in the row-major
 * order of the stored shape, never bytes:
 *
 *     index i  ->  element e = offset + sum i[k]*stride[k]  ->  decode(e, n)
 *
 * Therefore transpose, broadcast, slice and most reshapes cost nothing in any
 * format. A PRIMITIVE is a struct of rules; lb_bind is the only way to call
 * one. LAYERS (gradient tape, sharding, tracing) sit above lb_bind and see
 * every call before it runs.
 */
#ifndef LOWBIT_EXT_H
#define LOWBIT_EXT_H

#include "lowbit.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LB_MAX_PARTS = 5,
    LB_MAX_NESTING = 8,   /* maximum depth of parts within parts */
    LB_MAX_PHASES = 4,    /* maximum number of phases of an eval */
    LB_MAX_PARAMS = 1024, /* maximum bytes of a primitive's params */
    LB_RUN = 2048,        /* maximum elements per decode call */
    LB_SPANS = 258        /* maximum values per lb_part_spans call */
};

typedef struct lb_store lb_store;
typedef struct lb_format lb_format;
typedef struct lb_prim lb_prim;
typedef struct lb_call lb_call;
typedef struct lb_plan lb_plan;
typedef struct lb_work lb_work;
typedef struct lb_heap lb_heap;
typedef struct lb_layer lb_layer;
typedef struct lb_traced lb_traced;
typedef struct lb_tuning lb_tuning;

/* Type of the elements of a tile: f32 for f32, f16, bf16 and quantized floats;
 * f64; i64 for signed integers; u64 for unsigned integers; for bool a byte, 0
 * or 1. */
typedef enum lb_ctype {
    LB_C_F32,
    LB_C_F64,
    LB_C_I64,
    LB_C_U64,
    LB_C_BOOL
} lb_ctype;

/* The CPU that a call runs on. */
typedef struct lb_cpu {
    lb_level level;
    const lb_tuning *tuning; /* private to the library; NULL: the level's
                              * default */
    bool vbmi;               /* AVX-512 VBMI (with AVX512VNNI) */
    bool dotprod;            /* sdot and udot (with NEON) */
} lb_cpu;

/* Destination of decoded values: elements of a float dtype, each rounded once.
 * past: use non-temporal stores. */
typedef struct lb_sink {
    lb_dtype dtype;
    bool past;
    void *out;
} lb_sink;

/* ---- stores and views --------------------------------------------------- */

/* One row of the parts table. The table belongs to the store, not to the
 * format. The shape of a part follows from it: per stored axis g ? ceil(n/g) :
 * 1, then own. Decoders must use this table rather than the quantization
 * config, which would be stale after slicing, re-shaping or joining. */
typedef struct lb_part {
    int64_t
        g[LB_MAX_RANK]; /* 0: shared (size 1), else one entry per g elements */
    int64_t own;        /* size of an extra trailing axis; 0: none */
    lb_array *a;        /* the entries, in any format; NULL: absent */
} lb_part;

/* Settings of lb_quantize that an array remembers although its parts do not
 * show them. They are kept where blocks are moved, but not in files. */
typedef struct lb_made {
    bool reference; /* calls with this array run at LB_LEVEL_REF */
    bool clip_gradient;
    lb_compat compat;
    lb_threshold threshold;
} lb_made;

struct lb_store {
    int refs;         /* atomic */
    lb_heap *heap;    /* the heap that allocated it */
    size_t heap_size; /* bytes of the allocation */
    const lb_format *fmt;
    lb_shape shape; /* stored shape; that of a view may differ */
    lb_ctype ctype; /* type that decode writes */
    int meaning;    /* lb_meaning of the scale; compared when joining */
    int depth;      /* nesting depth: 0 for a leaf */
    lb_made made;   /* zero unless set after lb_make */
    lb_part part[LB_MAX_PARTS];
    lb_dtype elem;            /* leaf (dense) only */
    void *data;               /* leaf only: the bytes; not NULL <=> leaf */
    size_t data_size;         /* leaf only: bytes */
    void (*done)(void *user); /* releases data provided by the user */
    void *user;
    const struct lb_sharding *sharding; /* NULL: not sharded */
    /* Not NULL: an array of a function that is being compiled. It has a shape
     * and a dtype, but no elements yet. */
    const lb_traced *traced;
};

/* A plain value: eval may copy it to its stack, permute the copy and read
 * through it. The reference count is kept elsewhere, because copying it would
 * be a data race. */
struct lb_array {
    bool weak;      /* takes the other operand's dtype when promoting */
    lb_dtype dtype; /* logical dtype: every read rounds to it, once */
    lb_store *store;
    lb_shape shape;
    int64_t
        stride[LB_MAX_RANK]; /* in stored elements; 0 repeats, < 0 reverses */
    int64_t offset;
};

/* Layout of the codes in the first part, for formats whose codes are one
 * integer per element, packed into bytes: code = least + step * stored bits.
 * With 8 bits the (signed or unsigned) byte is the code. */
typedef struct lb_code_kind {
    int bits;        /* 8, 4, 2 or 1; 0: not such a format. In the library also
                      * 3, 5, 6 and 7, which may cross bytes */
    bool high_first; /* the first element is in the high bits */
    int least, most, step;
    int filler; /* stored bits of the padding in the last byte of a row */
} lb_code_kind;

/* How values follow from such codes: value = level(code) * scale. Used by
 * products that operate directly on codes. */
typedef struct lb_levels {
    float level[16]; /* indexed by the stored bits, for codes of up to 4 bits;
                      * with 8 bits the level is the code */
    int scale;       /* index of the part with the scales (logical dtype f32);
                      * 0: none */
    bool inverse;    /* the stored value is the reciprocal of the scale */
    float factor;    /* additional constant factor; 0: 1 */
} lb_levels;

/* How the values of a format follow from codes and parameters that a group of
 * elements shares:
 *
 *     value = scale * (level(code) - zero) + bias
 *
 * Arrays move from one format to another without new rounding if their codes
 * are on the same levels (core/move.h). */
typedef enum lb_levels_kind {
    LB_LEVELS_INT,  /* level(code) = code */
    LB_LEVELS_E2M1, /* 4 bits; level: twice the E2M1 value */
    LB_LEVELS_IQ4   /* 4 bits; the levels of IQ4_NL */
} lb_levels_kind;

typedef struct lb_scheme {
    lb_levels_kind levels;
    int least, most;           /* codes */
    int zero_least, zero_most; /* zero points; equal: always that one */
    bool bias;                 /* parameters include a bias */
    bool stores;               /* lb_recode.put can make such an array */
    /* Elements along each stored axis that share parameters; 0: all. */
    int64_t g[LB_MAX_RANK];
} lb_scheme;

typedef struct lb_qparam {
    float scale, bias;
    int zero;
    bool rounded; /* scale is only near what decoding multiplies with */
} lb_qparam;

/* Codes and parameters of a format that has a scheme. */
typedef struct lb_recode {
    /* False: this array has none. */
    bool (*scheme)(const lb_store *, lb_scheme *to);
    /* The parameters of the group of element e. */
    lb_qparam (*param)(const lb_store *, int64_t e);
    /* Optional, for codes that values do not tell apart: reads those of
     * elements [first, first + n) of a row. False: not of this array. Without
     * it, codes follow from values. */
    bool (*codes)(const lb_store *, int64_t first, int64_t n, int16_t *code);
    /* Stores the codes of elements [first, first + n), of one group
     * along a row, and its parameters, rounded to what is stored. A group is
     * stored in pieces of whole bytes, from its first element on. */
    void (*put)(lb_store *to, int64_t first, int64_t n, const int16_t *code,
                const lb_qparam *p);
    /* Optional, for parts of their own: stores only the parameters of the group
     * of element e. Codes may then be copied from an array of this format. */
    void (*set)(lb_store *to, int64_t e, const lb_qparam *p);
} lb_recode;

/* Values as integers of 8 bits, in f32 with the bits of decode: value = scale *
 * code + bias. Products at FAST and FASTEST multiply the codes. */
typedef struct lb_integers {
    int block; /* values that are read together: 256 or a divisor; rows begin
                * with one */
    int run;   /* values that share a scale and a bias: 16 or a power of two
                * above, at most a block */
    bool bias; /* there are biases; else NULL is passed for them */
    /* Reads n values of a row from `first` on, which begins a block, and the
     * rest of the last block, whose codes may be anything beyond the row. */
    void (*read)(const lb_cpu *, const lb_store *, int64_t first, int64_t n,
                 int8_t *code, float *scale, float *bias);
} lb_integers;

/* A lb_quant_config as seen by formats: with the format resolved and axes
 * counted from 0 to rank - 1. It is the params of the primitive "quantize". */
typedef struct lb_quant {
    const lb_format *format;
    int64_t block_size;
    lb_axes axes;
    lb_dtype dtype;
    bool reference;
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

/* Layout of an array to be created from a given shape. */
typedef struct lb_layout {
    lb_shape stored;
    lb_dtype dtype; /* logical dtype */
    int meaning;
    lb_part part[LB_MAX_PARTS];  /* g and own are set */
    lb_dtype elem[LB_MAX_PARTS]; /* of each part; LB_NO_DTYPE: absent */
    int64_t run; /* encode_run: elements that are encoded together */
    /* The format of a part that is not dense: elem is then the dtype of its
     * only part, which has one entry per element (lb_part_place returns its
     * bytes). NULL: dense. */
    const lb_format *as[LB_MAX_PARTS];
} lb_layout;

/* Another program's layout; see lb_from_parts. */
typedef struct lb_foreign {
    const char *layout;             /* "eformer"; NULL ends the list */
    const char *part[LB_MAX_PARTS]; /* names of the parts, NULL after the last;
                                     * load always gets part[0], others may be
                                     * NULL */
    lb_array *(*load)(lb_ctx *, const lb_quant *, const lb_shape *,
                      lb_array *const *part);
    lb_array *(*save)(lb_ctx *, lb_array *a, int part);
} lb_foreign;

/* A format is one source file that ends in this struct. name, part and decode
 * suffice for arrays that are built from parts; with layout and one of the two
 * encoders lb_quantize can produce the format. Function pointers are optional
 * unless marked "Required". */
struct lb_format {
    size_t struct_size; /* sizeof(lb_format) */
    const char *name;
    struct {
        const char *name; /* NULL ends the list */
        bool raw;      /* dense contiguous bytes: decode may take a pointer, and
                        * the position of an element inside an entry matters */
        bool firm;     /* must not become dense when blocks are moved */
        bool scale;    /* lb_quantize_scales may quantize it */
        bool optional; /* arrays may lack this part */
        bool negative; /* scales may be negative */
        bool integers; /* it may have an integer dtype, if there are codes */
    } part[LB_MAX_PARTS];
    lb_code_kind codes; /* of part 0 */
    /* For formats that have codes: fills values, which is zero-initialized.
     * Returns false if the array does not follow this pattern. */
    bool (*levels)(const lb_cpu *, const lb_store *, lb_levels *numbers);
    bool relabel; /* conversion to a float dtype only changes the logical
                   * dtype */
    bool groups;  /* decode supports any groups of parts that are not raw: a
                   * file may have other groups than layout produces */
    /* Required. Decodes elements [first, first + n) of the store to its ctype.
     * n <= LB_RUN, and the range never crosses the end of a stored row. The
     * bits of an element must not depend on first and n. */
    void (*decode)(const lb_cpu *, const lb_store *, int64_t first, int64_t n,
                   void *out);
    /* The same for elements first, first + step, ...; step may be 0 or
     * negative. Without it, runs are decoded completely and elements picked
     * from them. */
    void (*decode_strided)(const lb_cpu *, const lb_store *, int64_t first,
                           int64_t step, int64_t n, void *out);
    /* As decode, but to a sink, for any n, and also across rows whose length is
     * a multiple of 256. Returns false without doing anything if decode must be
     * used. */
    bool (*unpack)(const lb_cpu *, const lb_store *, int64_t first, int64_t n,
                   lb_sink to);
    /* Required for quantizing: the layout of an array of this shape, quantized
     * from elements of dtype `from`. Checks all of q, or calls lb_fail with the
     * values involved and returns false. `to` is initialized with the defaults:
     * stored in this shape, with the dtype that q requests. Also fill g and own
     * of parts that are absent but may be given to lb_from_parts. The context
     * may be NULL. */
    bool (*layout)(lb_ctx *, const lb_quant *q, lb_dtype from,
                   const lb_shape *shape, lb_layout *to);
    /* Fills what depends only on q; called once before encoding. */
    void (*prepare)(const lb_quant *q, lb_store *to);
    /* The simple encoder: encodes elements [first, first + n) of the store from
     * x (finite f32). first is a multiple of lb_layout.run within its stored
     * row; n is too, unless the run ends with the row. Called exactly once per
     * element, from any thread. */
    void (*encode_run)(const lb_cpu *, const lb_quant *q, lb_store *to,
                       int64_t first, int64_t n, const float *x);
    /* The general encoder: the plan and eval of a primitive, where call->params
     * is the lb_quant, call->in[0] the source (read it with lb_source_read) and
     * out->store the store to fill. */
    void (*encode_plan)(const lb_call *, lb_plan *);
    void (*encode)(const lb_work *);
    /* With encode: as lb_prim.meet, so that slices of an array can be encoded
     * separately although they share a scale. */
    bool (*encode_meet)(const lb_work *);
    /* Error bound: the largest |decoded - x| as a fraction of the largest |x|
     * among the elements that share a scale; 0: no guarantee. q->dtype is set,
     * because rounding to it may add to the error. */
    double (*bound)(const lb_quant *q);
    /* The largest |x| that can be encoded. Larger values are handled as
     * infinities are: an error, or clamped. 0: any finite f32. */
    float largest;
    bool searches; /* re-encoding decoded values may give different codes, which
                    * are not worse */
    const void *type; /* private to formats that share these functions */
    unsigned kernels; /* bit l: has specialized kernels for lb_level l */
    const lb_foreign *foreign;   /* may be NULL; ends with layout == NULL */
    const struct lb_rule *rules; /* may be NULL; ends with prim == NULL */
    const lb_recode *recode;     /* may be NULL */
    const lb_integers *integers; /* may be NULL */
};

/* Whether lb_quantize can produce a format. Other formats with a layout can
 * still be made from their parts (lb_from_parts). */
static inline bool lb_is_encodable(const lb_format *f)
{
    return f->layout && (f->encode_run || (f->encode && f->encode_plan));
}

/* Creates an array from its parts: the plain view of a new store of that shape,
 * with logical dtype dtype. table provides g, own and a (NULL: absent) for each
 * part that the format names. Parts are referenced, and must have the derived
 * shape; raw ones must be dense and row-major. The result belongs to the open
 * scope. */
LB_API lb_array *lb_make(lb_ctx *cx, const lb_format *fmt, lb_dtype dtype,
                         int meaning, const lb_shape *stored,
                         const lb_part *table);

/* For decoders: the derived shape of a part; the index of the part's entry for
 * element e of the store (if the part has an axis of its own: of the entry's
 * first element); one value per element for n elements of a row starting at
 * first, n <= LB_RUN; the bytes of a raw part. */
LB_API lb_shape lb_part_shape(const lb_shape *stored, const lb_part *part);
LB_API int64_t lb_part_entry(const lb_store *, int part, int64_t e);
LB_API void lb_part_scales(const lb_cpu *, const lb_store *, int part,
                           int64_t first, int64_t n, float *out);
/* The same, with one value per group of elements that share it: value[0]
 * applies to the first `head` elements (or to all), each further value to the
 * next `each`. */
typedef struct lb_spans {
    const float *value; /* points into the part, room or spread */
    int64_t head, each;
} lb_spans;
/* room: for LB_SPANS values. spread: for n values, used if every element has
 * its own (head and each are then 1); it may be the output buffer if outputs
 * are written one by one. With n > LB_RUN the values are those in the part,
 * across rows, or value is NULL. */
LB_API lb_spans lb_part_spans(const lb_cpu *, const lb_store *, int part,
                              int64_t first, int64_t n, float *room,
                              float *spread);
LB_API const void *lb_part_bytes(const lb_store *, int part);

/* For layouts: fills a row of the table so that entries follow every axis
 * except the last, which is grouped by g (0: shared). */
LB_API void lb_part_rows(lb_part *part, const lb_shape *stored, int64_t g);
/* Name for messages: "native", "eformer", "bnb-cuda", "bnb-cpu". */
LB_API const char *lb_compat_name(lb_compat compat);

/* For encoders. lb_part_place returns the bytes of a part, to be written.
 * lb_source_read reads the source's elements [first, first + n) in row-major
 * order, and lb_source_read_box the box [lo, lo + n), as finite f32 values: a
 * value that is not finite makes the call fail, or is clamped if the config
 * says so. lb_source_peek returns a pointer to the elements if they are stored
 * that way, else it fills and returns room (n values). lb_source_again does the
 * same for elements that this call has already read and checked. */
LB_API void *lb_part_place(lb_store *, int part);
LB_API void lb_source_read(const lb_work *, int64_t first, int64_t n, float *x);
LB_API const float *lb_source_peek(const lb_work *, int64_t first, int64_t n,
                                   float *room);
LB_API const float *lb_source_again(const lb_work *, int64_t first, int64_t n,
                                    float *room);
LB_API void lb_source_read_box(const lb_work *, const int64_t *lo,
                               const int64_t *n, float *x);

/* ---- primitives --------------------------------------------------------- */

/* Result of a tier. */
typedef enum lb_verdict { LB_DONE, LB_DECLINED, LB_FAILED } lb_verdict;

struct lb_call {
    const lb_prim *prim;
    const lb_cpu *cpu;
    int threads;            /* that may run units: those of the pool, or 1 for
                             * a small call; results must not depend on it */
    lb_precision precision; /* the context's; params may override it */
    int n_in;
    lb_array *const *in; /* none is NULL */
    const void *params;  /* prim->params_size bytes */
    lb_shape shape;      /* of the result; set by infer */
    lb_dtype dtype;
    const struct lb_whole *whole; /* NULL: in[0] is not a slice */
    /* The caller gives up in[0], which nobody else can see: the result may be
     * that array, with other elements. Only for primitives with `reuses`. */
    bool reuse;
};

/* The array that in[0] is a slice of. */
typedef struct lb_whole {
    lb_shape shape;          /* global shape */
    int64_t lo[LB_MAX_RANK]; /* where the slice begins */
    /* NULL: the result depends only on the slice. Otherwise it is called
     * between phases (lb_prim.meet), by every rank whose slice the result
     * depends on, in the same order. Replaces data by the maximum (max) or the
     * sum over these ranks. Integer sums wrap. False: a rank failed. */
    bool (*reduce)(const struct lb_whole *, bool max, lb_dtype dtype,
                   int64_t count, void *data);
    void *user;
} lb_whole;

/* A format's own implementation of a primitive; operand is the index of the
 * operand in that format. The result has the shape and dtype of the call. It
 * belongs to the open scope, as results of lb_bind do, or stays with its holder
 * (an operand, an array that is kept for later calls): then the caller gets a
 * view of it. */
typedef lb_verdict lb_rule_fn(lb_ctx *, const lb_call *, int operand,
                              lb_array **out);
typedef struct lb_rule {
    const char *prim;
    lb_rule_fn *run;
} lb_rule;

/* The largest use in the library is a convolution: 2976 bytes (asserted
 * there). */
enum { LB_PLAN_NOTE = 4096, LB_PLAN_DETAIL = 96 };

/* What an eval needs, allocated before it starts, so that it cannot fail. */
struct lb_plan {
    size_t shared;     /* scratch shared by all threads, kept between phases */
    size_t per_thread; /* scratch per thread */
    /* Number of independent units of phase 0, 1, ...; a phase starts when the
     * previous one has ended. phases == 0: nothing to do. */
    int phases;
    int64_t units[LB_MAX_PHASES];
    const char *kernel; /* kernel name for lb_explain; static */
    char *detail; /* NULL, or for lb_explain: LB_PLAN_DETAIL bytes for a string
                   * that plan may write, about more than the kernel */
    /* Plan state: LB_PLAN_NOTE bytes, aligned to 64, that eval sees at the same
     * address and must not change: all threads read them. They must not own
     * anything, because eval may not be called. (A plan that uses note must set
     * fields of lb_plan individually, not assign the whole struct.) */
    void *note;
};

/* One thread's part of an eval: units lo <= u < hi of a phase. */
struct lb_work {
    const lb_call *call;
    lb_array *out; /* to be filled; dense and row-major, or as returned by
                    * prim->result */
    const lb_plan *plan;
    void *shared;  /* aligned to 64 */
    void *scratch; /* this thread's, aligned to 64 */
    int phase;
    int64_t lo, hi;
    int64_t *trouble; /* see lb_work_trouble */
};

/* Reports a data error: eval cannot fail, but operands may contain values that
 * have no valid result. `where` is the index of the element; the smallest one
 * of all threads is passed to prim->trouble, and later phases are skipped. */
LB_API void lb_work_trouble(const lb_work *, int64_t where);

/* How a tape treats a result while gradients of an operand are recorded. */
typedef enum lb_flow {
    LB_FLOW_FLOATS = 0, /* floats have gradients, others are constants */
    LB_FLOW_NONE = 1,   /* a constant */
    LB_FLOW_ALWAYS = 2  /* a non-float result is an error, because it would
                         * silently stop the gradient */
} lb_flow;

/* ---- partitioning of calls among ranks ----------------------------------- */

enum { LB_MAX_LABELS = 32 };

/* How to combine the ranks' results if an axis is cut that the result does not
 * have: by a sum; by a sum of bits, where all but one rank contribute 0; or
 * with join. */
typedef enum lb_combine {
    LB_COMBINE_SUM = 0,
    LB_COMBINE_BITS = 1,
    LB_COMBINE_JOIN = 2
} lb_combine;

/* A rank's share of a call. */
typedef struct lb_share {
    const lb_call *whole;       /* the original call */
    lb_array *const *in;        /* slices of its operands ... */
    int64_t (*lo)[LB_MAX_RANK]; /* ... and where each begins */
    lb_shape shape;             /* of this rank's result */
    int64_t at[LB_MAX_RANK];    /* where this result begins in the whole one */
    bool partial;               /* it will be combined with those of other
                                 * ranks */
    const lb_whole *slice_of;   /* see lb_call.whole */
} lb_share;

/* How a call may be partitioned. Axes of operands and of the result have
 * labels, starting from 1. Axes with the same label are cut alike, into equal
 * pieces; label 0 means not cut. Cutting a label that the result lacks gives
 * partial results, to be combined. Zero-initialized. */
typedef struct lb_cuts {
    int (*in)[LB_MAX_RANK]; /* labels of each operand's axes */
    int out[LB_MAX_RANK];
    int64_t grain[LB_MAX_LABELS]; /* pieces are multiples of it; 0: 1 */
    bool spans[LB_MAX_LABELS];    /* a share depends on all pieces: see
                                   * lb_whole */
    bool firm;   /* a grain that does not divide is an error; otherwise the
                  * operand is gathered */
    bool keeps;  /* the result is cut as operand 0 was, even if that had to be
                  * gathered first */
    bool varies; /* with packed operands, depending on their values, the share
                  * may be packed on some ranks and dense on others: it is then
                  * made dense on all */
    lb_combine combine;
    /* Computes a rank's share; NULL: the same primitive with the same params.
     * 16-bit floats that will be summed may be returned as f32. */
    lb_array *(*run)(lb_ctx *, const lb_share *);
    /* For LB_COMBINE_JOIN: combines the results of all ranks, stacked along a
     * new first axis. */
    lb_array *(*join)(lb_ctx *, const lb_call *whole, lb_array *all);
} lb_cuts;

/* ---- fusion ------------------------------------------------------------- */

/* One tile of an elementwise function: n elements of each operand, in the
 * compute type of its dtype. */
typedef struct lb_lanes {
    int64_t n;
    int bits;     /* width of the last operand's dtype */
    int exponent; /* integer_pow */
    const void *in[3];
    void *out; /* never overlaps an operand */
    /* Bit i: in[i] is a single element, which all n use. Only those operands
     * that lb_fusion.ones allows, and never all of them. */
    unsigned ones;
} lb_lanes;

typedef void lb_lanes_fn(const lb_lanes *);

enum { LB_FUSE_COLS = 32768 }; /* longest row that is reduced in a tile */

/* How a call runs on tiles between other calls of a compiled function. Each
 * result is rounded to its dtype by the caller. */
typedef enum lb_fusible {
    LB_FUSE_NONE = 0, /* it runs on its own */
    LB_FUSE_LANES,    /* elements of the result from those of the operands */
    LB_FUSE_CONVERT,  /* the operand in another dtype */
    LB_FUSE_SAME,     /* the operand's elements in the same order */
    LB_FUSE_REPEAT,   /* broadcast_in_dim: axis k of the operand is axis axis[k]
                       * of the result, repeated if its size is 1 */
    LB_FUSE_ROWS      /* trailing axes are reduced */
} lb_fusible;

typedef struct lb_fusion {
    lb_fusible kind;
    lb_lanes_fn *run;      /* LANES */
    lb_lanes lanes;        /* LANES: bits and exponent */
    unsigned ones;         /* LANES: what run accepts in lb_lanes.ones */
    int axis[LB_MAX_RANK]; /* REPEAT */
    int lead;              /* ROWS: axes that stay */
    /* ROWS: out[i] is the result of row i of `rows`, n <= LB_FUSE_COLS
     * elements each. */
    void (*reduce)(const struct lb_fusion *, const void *tile, int64_t rows,
                   int64_t n, void *out);
    const void *op; /* ROWS: for reduce, as the next two */
    lb_ctype ctype;
    uint64_t initial;
} lb_fusion;

struct lb_prim {
    size_t struct_size; /* sizeof(lb_prim) */
    const char *name;
    /* Leading bytes of params without padding, which lb_compile_options.check
     * compares; 0: all of them. */
    size_t params_exact;
    size_t params_size; /* a plain value; pointers in it must outlive the
                         * context; 0: no params */
    int n_in;           /* operands; -1: one or more */
    /* Function pointers below are optional unless marked "Required".
     *
     * Required. Checks everything and sets shape and dtype, or calls lb_fail
     * with a message that contains the values involved, and returns false. */
    bool (*infer)(lb_ctx *, lb_call *);
    /* Returns a view, or moves whole blocks. */
    lb_verdict (*move)(lb_ctx *, const lb_call *, lb_array **out);
    /* Both required, unless move never declines. eval reads operands with
     * lb_tile_*, or directly if a store is a leaf of the logical dtype. dense:
     * operands must be dense and row-major; packed or strided ones are copied
     * first, if the policy allows it. */
    void (*plan)(const lb_call *, lb_plan *);
    void (*eval)(const lb_work *);
    bool dense;
    /* The result holds elements of the first `moves` operands (-1: of all), so
     * packed ones should give a packed result: if move declines, the dense
     * result is subject to the dense policy. 0: dense by nature. */
    int moves;
    /* Creates the result that eval fills, if it is not a dense array. */
    lb_array *(*result)(lb_ctx *, const lb_call *);
    /* Required if eval calls lb_work_trouble: calls lb_fail with the
     * message. */
    void (*trouble)(lb_ctx *, const lb_call *, int64_t where);
    /* The gradient of a float operand, with its shape and dtype, given dout,
     * the gradient of the result out. A program over arrays; out and the
     * operands are those of the call. NULL without an error: the gradient is
     * zero. Without a vjp, a gradient through a float result is an error;
     * integer and bool results are constants to a tape. */
    lb_array *(*vjp)(lb_ctx *, const lb_call *, int operand, lb_array *out,
                     lb_array *dout);
    lb_flow flow;
    /* How the call may be partitioned among ranks. False: not at all, so that
     * its operands are gathered first. The call is for whole arrays, of which
     * only shapes and dtypes may be used. */
    bool (*shard)(const lb_call *, lb_cuts *);
    /* If lb_call.whole has reduce: called after each phase (even one with a
     * data error) to exchange what the next phase needs. */
    bool (*meet)(const lb_work *);
    /* Optional. How the call runs inside a fused loop, with the same bits as
     * eval; `to` is zeroed. Looks at shapes, dtypes, params and cpu only. */
    void (*fuse)(const lb_call *, lb_fusion *to);
    /* Optional. Additions and multiplications of a call, for
     * lb_compiled_explain; fusible calls do not need it. */
    int64_t (*operations)(const lb_call *);
    /* Optional. The same call, made of functions of lowbit.h: a result with the
     * same bits. A primitive that has it is a shortcut for these calls. They
     * are made instead of eval if `suits` is false or an operand's format has
     * rules, and are what a layer sees unless its `whole` takes the call. */
    lb_array *(*compose)(lb_ctx *, const lb_call *);
    /* Optional, with compose. Whether eval is for calls like this: looks at
     * shapes, dtypes and params only. NULL: always. */
    bool (*suits)(const lb_call *);
    /* move can write the result into operand 0: see lb_call.reuse. */
    bool reuses;
    /* Time of an element of the result or of the largest operand on one thread,
     * in ns, if it is much more than that of copying it; 0: it is not. Calls
     * that are too short for several threads run on one. */
    float element_ns;
};

/* Calls a primitive. Operands are borrowed; the result belongs to the open
 * scope. params: prim->params_size bytes, copied where needed. */
LB_API lb_array *lb_bind(lb_ctx *cx, const lb_prim *prim, int n,
                         lb_array *const *in, const void *params);
/* prim and its strings must outlive the context. Its name must not be in
 * use. */
LB_API bool lb_add_primitive(lb_ctx *cx, const lb_prim *prim);
LB_API const lb_prim *lb_find_primitive(const lb_ctx *cx, const char *name);
/* The k-th primitive of the context, built-in ones first; NULL past the end. */
LB_API const lb_prim *lb_primitive_at(const lb_ctx *cx, int k);
/* fmt and its strings must outlive all arrays of the format, which may outlive
 * the context. Its name must not be in use. */
LB_API bool lb_add_format(lb_ctx *cx, const lb_format *fmt);
LB_API const lb_format *lb_find_format(const lb_ctx *cx, const char *name);
LB_API const lb_format *lb_format_at(const lb_ctx *cx, int k);

/* Adds a rule: an implementation of a primitive for operands in one format, or
 * in any format, including dense, if format is NULL. Built-in formats and
 * primitives may be named. Rules are valid until lb_close.
 *
 * Operands are tried in order. For each, added rules are tried first, the
 * latest first (whether for its format or for any), then the format's own
 * rules. The first that does not decline decides; if all decline, the call runs
 * as if there were no rules.
 *
 * A rule may call its own primitive with lb_bind: while it runs, it is not
 * tried again, so that call reaches the other rules and the built-in
 * implementation. Rules run below tapes, meshes and traces: gradients are those
 * of the primitive. Compiled functions do not fuse calls with operands that
 * have rules. */
LB_API bool lb_add_rule(lb_ctx *cx, const char *format, const char *primitive,
                        lb_rule_fn *run);

/* Records an error, if it is the context's first, and returns false. Must not
 * be called inside an eval; otherwise from any thread. */
LB_API bool lb_fail(lb_ctx *cx, lb_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A layer sees each call of the context, the last added layer first, and passes
 * it on with lb_bind (which then reaches the layers below). The result of its
 * bind belongs to the open scope: not an operand, but a view of it. */
struct lb_layer {
    lb_array *(*bind)(lb_ctx *, lb_layer *self, const lb_prim *, int n,
                      lb_array *const *in, const void *params);
    lb_layer *below; /* set by lb_push_layer */
    /* Optional. For lb_explain: describes what the layer would do with a call;
     * false if it only passes the call on. */
    bool (*explain)(lb_ctx *, lb_layer *self, const lb_call *, char *to,
                    size_t room);
    /* The layer decides where calls run, not what is computed: compiled
     * functions may run above it. Above any other layer they run eagerly, so
     * that it sees each call. */
    bool transparent;
    /* Optional. Whether the layer wants a call of a primitive with `compose` as
     * it is; NULL or false: it sees the calls that the primitive is composed
     * of. */
    bool (*whole)(const lb_layer *self, const lb_prim *, int n,
                  lb_array *const *in);
    /* Private to the library: the layer knows that lb_update_in_place gives up
     * operand 0. Below any other layer that is not transparent it copies. */
    bool gives;
};
LB_API void lb_push_layer(lb_ctx *cx, lb_layer *layer);
LB_API void lb_pop_layer(lb_ctx *cx);

/* ---- tiles: how eval reads and writes ------------------------------------ */

LB_API lb_ctype lb_ctype_of(lb_dtype dtype);
LB_API size_t lb_ctype_size(lb_ctype ctype);

/* Reads the box [lo, lo + n) of a view, row-major, into a tile of ctype:
 * lb_ctype_of(a->dtype), or LB_C_F64 or LB_C_F32 for any float. */
LB_API void lb_tile_read(const lb_cpu *, const lb_array *a, const int64_t *lo,
                         const int64_t *n, lb_ctype ctype, void *tile);
/* The same, but if the elements are stored exactly like such a tile, returns a
 * pointer to them and does not use tile. */
LB_API const void *lb_tile_peek(const lb_cpu *, const lb_array *a,
                                const int64_t *lo, const int64_t *n,
                                lb_ctype ctype, void *tile);
/* Elements [first, first + n) in the view's row-major order. */
LB_API void lb_tile_read_flat(const lb_cpu *, const lb_array *a, int64_t first,
                              int64_t n, lb_ctype ctype, void *out);
/* Writes a tile to a box of a dense row-major result, converting to its
 * dtype. */
LB_API void lb_tile_write(const lb_cpu *, lb_array *out, const int64_t *lo,
                          const int64_t *n, lb_ctype ctype, const void *tile);
/* A pointer to the box of a result if eval may write there directly: the box
 * must be contiguous, row-major, of ctype, and small enough to stay in the
 * caches. Otherwise NULL: compute in scratch, then call lb_tile_write. */
LB_API void *lb_tile_place(const lb_cpu *, lb_array *out, const int64_t *lo,
                           const int64_t *n, lb_ctype ctype);
LB_API void lb_tile_write_flat(const lb_cpu *, lb_array *out, int64_t first,
                               int64_t n, lb_ctype ctype, const void *tile);

/* How a shape is divided into tiles, which are numbered row-major. */
typedef struct lb_tiling {
    lb_shape shape;
    int64_t n[LB_MAX_RANK];     /* of a full tile */
    int64_t count[LB_MAX_RANK]; /* tiles along each axis */
    int64_t tiles;              /* total number of tiles */
    int64_t size;               /* elements of a full tile */
} lb_tiling;
enum { LB_TILE = 16384 }; /* maximum elements of a tile */

/* Tiles of at most LB_TILE elements, shaped to suit the operands' strides. */
LB_API lb_tiling lb_tiling_for(const lb_shape *shape, const lb_array *const *in,
                               int n);
/* The box of tile t; returns its number of elements. */
LB_API int64_t lb_tiling_box(const lb_tiling *, int64_t t, int64_t *lo,
                             int64_t *n);

/* ---- helpers ------------------------------------------------------------ */

LB_API int64_t lb_shape_size(const lb_shape *shape); /* shape must be valid */
LB_API bool lb_shape_equal(const lb_shape *a, const lb_shape *b);
/* Checks the rank, for negative dims and for overflow (in elements and in
 * 8-byte words). */
LB_API bool lb_shape_check(lb_ctx *cx, const char *who, const lb_shape *shape);
LB_API void lb_row_major(const lb_shape *shape, int64_t *stride);
/* Whether the elements are row-major without gaps (axes of size 1 are
 * ignored). */
LB_API bool lb_is_row_major(const lb_array *a);
/* A new view of a's store in the open scope, initially equal to a. The caller
 * may change it until it is shared. NULL and an error if out of memory. */
LB_API lb_array *lb_view(lb_ctx *cx, const lb_array *a);
/* A new dense array in the open scope, with uninitialized elements. */
LB_API lb_array *lb_dense(lb_ctx *cx, lb_dtype dtype, const lb_shape *shape);

/* "(2,3)" as a temporary, for messages: LB_SHOW(&shape). */
typedef struct lb_text {
    char s[192];
} lb_text;
LB_API lb_text lb_shape_text(const lb_shape *shape);
#define LB_SHOW(shape) (lb_shape_text(shape).s)

#ifdef __cplusplus
}
#endif
#endif
