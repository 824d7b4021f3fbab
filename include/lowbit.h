/* lowbit.h - quantized arrays: values stored in 8, 4, 2 or 1 bits.
 *
 * The only header a user needs (with lowbit_io.h for files). Conventions that
 * hold everywhere:
 *
 * - Arrays are immutable. An operation returns a new array, which belongs to
 *   the innermost open scope of the context and is freed with it.
 * - An operation given NULL returns NULL. The first error of a context and its
 *   message are kept until lb_clear, so one check at the end is enough. The
 *   library never aborts, exits or prints.
 * - A context is used by one thread at a time and owns a pool of worker
 *   threads. Any thread may read an array. An array may outlive its context if
 *   a reference is held (lb_ref).
 * - Operations broadcast as in numpy and promote dtypes as in jax.numpy.
 *   Scalars made by lb_scalar are weak: they take the dtype of the other
 *   operand. (The strict primitives below these operations are in
 *   lowbit_ext.h.)
 * - Axes may be negative: -1 is the last.
 * - Structs of options and configurations begin with struct_size:
 *   sizeof the struct, or 0 for "this version". It tells a later version of the
 *   library which version the program was compiled with. In every struct, zero
 *   means the default.
 */
#ifndef LOWBIT_H
#define LOWBIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LB_VERSION_STRING "0.1.0"

#define LB_API __attribute__((visibility("default")))

enum { LB_MAX_RANK = 8 };

typedef struct lb_ctx lb_ctx;
typedef struct lb_array lb_array;

/* ---- status ------------------------------------------------------------ */

/* Values are fixed and never reused. */
typedef enum lb_status {
    LB_OK = 0,
    LB_E_NOMEM = 1,       /* out of memory */
    LB_E_NULL = 2,        /* an operand is NULL */
    LB_E_SHAPE = 3,       /* incompatible shapes */
    LB_E_DTYPE = 4,       /* not supported for this dtype */
    LB_E_AXIS = 5,        /* axis out of range or repeated */
    LB_E_ARG = 6,         /* any other invalid argument */
    LB_E_SIZE = 7,        /* too large to count or address */
    LB_E_DENIED = 8,      /* forbidden by the context's policy */
    LB_E_UNSUPPORTED = 9, /* known but not available */
    LB_E_FILE = 10,       /* the system cannot open, read or write a file */
    LB_E_CONTENT = 11,    /* invalid file content */
    LB_E_MESH = 12,       /* ranks cannot continue together (lowbit_mesh.h) */
    LB_E_CANCELLED = 13,  /* the caller stopped a job (lowbit_io.h) */
} lb_status;

/* The first error since lb_open or lb_clear; LB_OK if there was none,
 * LB_E_NULL for a NULL context. */
LB_API lb_status lb_error_status(const lb_ctx *cx);
/* Its message, valid until lb_clear or lb_close; "" if there was no error. For
 * a NULL context (lb_open failed) a message that says so. */
LB_API const char *lb_error(const lb_ctx *cx);
LB_API void lb_clear(lb_ctx *cx);
/* "out of memory", "shape", ...: a short name of the status; static. */
LB_API const char *lb_status_name(lb_status status);

/* ---- dtypes and shapes ------------------------------------------------- */

/* Logical dtype of an array: the type of its values, however they are stored.
 *
 * Conversion: float to float rounds to nearest even; float to integer truncates
 * toward zero and saturates, and NaN becomes 0; integer to integer wraps; to
 * bool tests for != 0; from bool gives 0 or 1. */
typedef enum lb_dtype {
    LB_NO_DTYPE = 0, /* in options: the default */
    LB_F32 = 1,
    LB_F16 = 2,
    LB_BF16 = 3,
    LB_F64 = 4,
    LB_I8 = 5,
    LB_I16 = 6,
    LB_I32 = 7,
    LB_I64 = 8,
    LB_U8 = 9,
    LB_U16 = 10,
    LB_U32 = 11,
    LB_U64 = 12,
    LB_BOOL = 13,
} lb_dtype;

enum { LB_N_DTYPES = 14 }; /* including LB_NO_DTYPE */

/* "f32", "bool", ...; "none" for an invalid dtype; static. */
LB_API const char *lb_dtype_name(lb_dtype dtype);
/* Bytes per element; 0 for an invalid dtype. */
LB_API size_t lb_dtype_size(lb_dtype dtype);
/* The promoted dtype of two operands, as in jax.numpy (f* is f32). */
LB_API lb_dtype lb_promote(lb_dtype a, lb_dtype b);

typedef struct lb_shape {
    int rank; /* 0 is a scalar */
    int64_t dim[LB_MAX_RANK];
} lb_shape;

/* An ordered list of axes. */
typedef struct lb_axes {
    int n;
    int axis[LB_MAX_RANK];
} lb_axes;

#ifndef __cplusplus
/* LB_SHAPE(2, 3): a shape literal. For a scalar use lb_shape_make(0, NULL). */
#define LB_SHAPE(...)                                                          \
    lb_shape_make((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),   \
                  (const int64_t[]){__VA_ARGS__})
/* LB_AXES(0, -1): a pointer to an axis list literal. */
#define LB_AXES(...)                                                           \
    (&(const lb_axes){(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)),       \
                      {__VA_ARGS__}})
#endif
/* More than LB_MAX_RANK dims give a shape that every operation rejects. */
LB_API lb_shape lb_shape_make(int rank, const int64_t *dim);

/* ---- context ----------------------------------------------------------- */

/* All memory of a context comes from its allocator. Called from any thread that
 * holds arrays, also concurrently. */
typedef struct lb_allocator {
    /* size bytes aligned to align (a power of two, 64 or less), or NULL */
    void *(*alloc)(void *user, size_t size, size_t align);
    /* size is the one passed to alloc */
    void (*free)(void *user, void *ptr, size_t size);
    void *user;
} lb_allocator;

/* What to do when an operation makes a packed (not dense) operand dense:
 *
 * - its result holds elements of the operand, but the format cannot express
 *   their new order or selection without quantizing again. Only these
 *   operations can have such a result: lb_reshape, lb_reshape_permuted,
 *   lb_concatenate, lb_gather, lb_take, lb_embedding, lb_pad and
 *   lb_dynamic_update_slice. They keep whole blocks packed.
 * - it needs a dense copy of the whole operand. No built-in operation does;
 *   user-defined primitives may (lb_prim.dense).
 *
 * Arithmetic, comparisons, reductions and products have dense results by
 * nature. These, lb_materialize, lb_read and similar functions, conversion to
 * an integer dtype, and gradients are never logged or denied. */
typedef enum lb_dense_policy {
    LB_DENSE_DEFAULT = 0, /* LOWBIT_DENSE=allow|log|deny, else allow */
    LB_DENSE_ALLOW = 1,
    LB_DENSE_LOG = 2, /* call lb_options.log */
    LB_DENSE_DENY = 3 /* fail with LB_E_DENIED */
} lb_dense_policy;

/* How dot_general and conv compute f32 products. The computation is at least as
 * precise as requested. FAST and FASTEST apply to products with packed weights
 * and operate directly on the codes; if a format or layout has no such kernel,
 * HIGHEST is used (lb_explain shows which). The errors below are relative to
 * the norm of the result, for normally distributed values. With FAST and
 * FASTEST a row of x that contains an infinity gives NaN, and the error bounds
 * hold for weight scales from 1e-30 to 1e30. Packed operands are multiplied as
 * stored, code times scale: the dtype of such an array rounds what is read from
 * it, not products. So a product with an array of dtype bf16 or f16 and one
 * with its materialized values differ by that rounding, at most 2^-9 or 2^-12
 * of the sum of |x| |w|. */
typedef enum lb_precision {
    LB_PRECISION_DEFAULT = 0, /* the context's; its default is LOWBIT_PRECISION
                               * (highest, fast or fastest), else HIGHEST */
    LB_PRECISION_HIGHEST = 1, /* f32 sums in a fixed order: 1e-6 */
    LB_PRECISION_FAST = 2,    /* other operand rounded to 16 bits: 3e-4 */
    LB_PRECISION_FASTEST = 3  /* ... to 8 bits: 1e-2, more with outliers */
} lb_precision;

/* Instruction-set levels; each includes the lower ones of its architecture. */
typedef enum lb_level {
    LB_LEVEL_REF = 0,
    LB_LEVEL_NEON = 1,
    LB_LEVEL_AVX2 = 2,   /* with FMA and F16C */
    LB_LEVEL_AVX512 = 3, /* F, BW, VL, DQ */
    LB_LEVEL_AVX512VNNI = 4,
    LB_LEVEL_AMX = 5 /* TILE, INT8 */
} lb_level;

/* Threads of another program (OpenMP's, a framework's), for work of lowbit. Two
 * sets of threads that spin while they wait would compete for the cores. */
typedef struct lb_team {
    /* Calls body(arg, k) for some different k of 0 ... n - 1, 0 on the calling
     * thread, and returns when all calls have returned. The first call does the
     * work of those that are not made. */
    void (*run)(void *user, int n, void (*body)(void *arg, int k), void *arg);
    void *user;
} lb_team;

typedef struct lb_options {
    size_t struct_size;
    int threads; /* 0: all cores available to the process; at most 256 */
    /* Report arrays used after their scope was closed, and lb_leave without
     * lb_enter, as errors; also LOWBIT_DEBUG=1. Keeps a few hundred bytes for
     * each array until lb_close. */
    bool debug;
    /* lb_take and lb_embedding look for indices that are out of range first,
     * and fail. Not in a function that is being compiled, which has no indices
     * yet: check its arguments before lb_run. */
    bool check_indices;
    const lb_allocator *allocator; /* NULL: malloc and free; copied */
    /* Most freed memory kept for reuse; 0: 512 MiB, -1: none. Blocks that are
     * not reused while 16384 others are freed are given back anyway. */
    int64_t keep_bytes;
    lb_dense_policy dense;
    lb_precision precision;
    const char *isa; /* highest level to use: "ref", "avx2", "avx512",
                      * "avx512vnni", "amx", "neon"; NULL: LOWBIT_ISA, else the
                      * best */
    void (*log)(void *user, const char *sentence); /* NULL: none */
    void *log_user;
    uint64_t cpu_off; /* bit mask, e.g. 1 << LB_LEVEL_AVX512: levels not to use,
                       * including every level that builds on them, regardless
                       * of isa. Levels of other architectures are allowed; ref
                       * and undefined bits are not */
    const lb_team *team; /* NULL: threads of the context's own; copied */
} lb_options;

/* options NULL: all defaults. Returns NULL if out of memory or if options are
 * invalid; lb_open_why, called with the same options, writes the reason to buf
 * (size bytes) and returns buf. */
LB_API lb_ctx *lb_open(const lb_options *options);
LB_API const char *lb_open_why(const lb_options *options, char *buf,
                               size_t size);
/* Closes all scopes and frees all arrays that are not referenced. */
LB_API void lb_close(lb_ctx *cx);

/* Overrides the policy for operands of one format; LB_DENSE_DEFAULT restores
 * the context's policy. An unknown format name is an error. */
LB_API bool lb_set_dense(lb_ctx *cx, const char *format,
                         lb_dense_policy policy);

LB_API int lb_threads(const lb_ctx *cx);
/* The instruction-set level in use: "ref", "avx2", ... */
LB_API const char *lb_isa(const lb_ctx *cx);
/* The highest level supported by this CPU and operating system, used or not. */
LB_API const char *lb_isa_best(void);
/* The CPU's brand string ("AMD EPYC 7B13 64-Core Processor"; "" if it has
 * none), and the family that kernels are tuned for: "zen3", "icelake", or a
 * generic one such as "generic-avx2". Valid as long as cx. */
LB_API const char *lb_cpu_name(const lb_ctx *cx);
LB_API const char *lb_cpu_family(const lb_ctx *cx);
/* Returns memory kept for reuse to the allocator; the result is in bytes. */
LB_API size_t lb_trim(lb_ctx *cx);
/* Bytes allocated for live arrays, calls in progress and the context itself,
 * not counting memory kept for reuse. */
LB_API size_t lb_bytes_in_use(const lb_ctx *cx);
/* The maximum of lb_bytes_in_use so far. */
LB_API size_t lb_bytes_peak(const lb_ctx *cx);
LB_API const char *lb_version(void);

/* ---- scopes and references --------------------------------------------- */

/* Opens a scope: arrays created from now on belong to it ... */
LB_API void lb_enter(lb_ctx *cx);
/* ... and closes it: frees its arrays, except those passed to lb_keep. Without
 * an open scope it does nothing (an error with lb_options.debug). */
LB_API void lb_leave(lb_ctx *cx);
/* Moves a to the enclosing scope. Returns a; NULL for NULL. */
LB_API lb_array *lb_keep(lb_ctx *cx, lb_array *a);
/* Removes a from its scope now, to free its memory before the scope ends. a
 * must not be used afterwards unless a reference is held. Views of it, tapes
 * that have recorded it and functions that are being compiled hold what they
 * need. NULL is allowed. */
LB_API void lb_drop(lb_ctx *cx, lb_array *a);
/* Adds a reference, independent of scopes. Any thread. Returns a. */
LB_API lb_array *lb_ref(lb_array *a);
/* Releases it. Any thread. NULL is allowed. */
LB_API void lb_unref(lb_array *a);

/* ---- making arrays ----------------------------------------------------- */

/* Copies row-major elements of the given shape from data. */
LB_API lb_array *lb_from(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                         const void *data);
/* Uses data without copying. data must be aligned to its dtype and must not
 * change while the array lives; bytes of bool must be 0 or 1. done(user) is
 * called (from any thread) when the last reference is released; it may be NULL.
 * On failure done is not called. */
LB_API lb_array *lb_wrap(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                         const void *data, void (*done)(void *user),
                         void *user);
/* Weak scalars: they take the other operand's dtype, rounded once. A weak float
 * promotes integers and bool to f32. A weak integer that does not fit into the
 * other operand's integer dtype is an error. With only weak operands the dtype
 * is f64, or for integers i32 (i64 if the value does not fit). */
LB_API lb_array *lb_scalar(lb_ctx *cx, double value);
LB_API lb_array *lb_scalar_int(lb_ctx *cx, int64_t value);
LB_API lb_array *lb_full(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                         double value);
LB_API lb_array *lb_full_int(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                             int64_t value);
LB_API lb_array *lb_zeros(lb_ctx *cx, lb_dtype dtype, lb_shape shape);
/* Each element is its index along axis. */
LB_API lb_array *lb_iota(lb_ctx *cx, lb_dtype dtype, lb_shape shape, int axis);

/* ---- looking at arrays ------------------------------------------------- */

LB_API int lb_rank(const lb_array *a);              /* -1 for NULL */
LB_API int64_t lb_dim(const lb_array *a, int axis); /* -1 if out of range */
LB_API lb_shape lb_shape_of(const lb_array *a);
LB_API int64_t lb_size(const lb_array *a); /* elements; -1 for NULL */
LB_API lb_dtype lb_dtype_of(const lb_array *a);
LB_API const char *lb_format_of(const lb_array *a); /* "dense", ... */
/* Bytes of storage behind a, including its parts. */
LB_API size_t lb_nbytes(const lb_array *a);
/* Pointer to the elements if they are dense and row-major in memory, else NULL
 * (call lb_materialize first). Valid as long as a. */
LB_API const void *lb_data(const lb_array *a);
/* Copies all elements, row-major, in a's dtype, to dst; size must match
 * exactly. On failure (out of memory) dst may be partly written. */
LB_API bool lb_read(lb_ctx *cx, lb_array *a, void *dst, size_t size);
/* The same for rows lo <= i < hi of the first axis. */
LB_API bool lb_read_rows(lb_ctx *cx, lb_array *a, int64_t lo, int64_t hi,
                         void *dst, size_t size);
/* The value of a one-element array; NaN and an error for any other array. */
LB_API double lb_item(lb_ctx *cx, lb_array *a);
LB_API int64_t lb_item_int(lb_ctx *cx, lb_array *a);
/* Decodes a to a dense row-major array. If a is one already, returns a itself
 * at no cost (there is only one array then). */
LB_API lb_array *lb_materialize(lb_ctx *cx, lb_array *a);

/* ---- quantizing --------------------------------------------------------- */

/* The implementation whose arithmetic is reproduced bit for bit. */
typedef enum lb_compat {
    LB_COMPAT_NATIVE = 0,   /* f32 from the input's values, true division */
    LB_COMPAT_EFORMER = 1,  /* eformer: each step rounded to input dtype */
    LB_COMPAT_BNB_CUDA = 2, /* bitsandbytes on a GPU */
    LB_COMPAT_BNB_CPU = 3,  /* bitsandbytes on a CPU */
    LB_COMPAT_SEED = LB_COMPAT_EFORMER /* former name */
} lb_compat;

/* Scale granularity: how many elements share a scale. */
typedef enum lb_scale {
    LB_SCALE_DEFAULT = 0, /* the format's; for ternary and binary TENSOR, but
                           * NONE if dtype is i8 or compat is eformer */
    LB_SCALE_NONE = 1,    /* no scale: values are the codes */
    LB_SCALE_TENSOR = 2,
    LB_SCALE_ROW = 3,  /* one per row of the last axis */
    LB_SCALE_BLOCK = 4 /* one per block_size elements along the last axis */
} lb_scale;

/* What a stored scale s means. */
typedef enum lb_meaning {
    LB_MEANS_SCALE = 0,  /* w = code * s */
    LB_MEANS_ABSMAX = 1, /* int8: w = (code * s) * f32(1/127) */
    LB_MEANS_INVERSE = 2 /* w = code / s */
} lb_meaning;

/* Which values the ternary quantizer sets to 0. */
typedef enum lb_threshold {
    LB_THRESHOLD_STD = 0,    /* |w| <= half the standard deviation */
    LB_THRESHOLD_ABSMEAN = 1 /* round(w / mean |w|) is 0 */
} lb_threshold;

/* Where blocks begin. */
typedef enum lb_blocks {
    LB_BLOCKS_DEFAULT = 0, /* IN_ROWS; FLAT if compat is bitsandbytes */
    LB_BLOCKS_IN_ROWS = 1, /* at each row; the last one may be short */
    LB_BLOCKS_FLAT = 2,    /* blocks continue across rows */
    LB_BLOCKS_LISTED = 3   /* part "group" has the block of each column, and
                            * block_size is their number (int1 to uint8; only
                            * lb_from_parts) */
} lb_blocks;

typedef enum lb_decode {
    LB_DECODE_TABLE = 0,
    LB_DECODE_POLY = 1 /* nf4: eformer's polynomial, error up to 1.5 % */
} lb_decode;

typedef enum lb_nonfinite {
    LB_NONFINITE_ERROR = 0, /* an error with the first index */
    LB_NONFINITE_CLAMP = 1  /* NaN becomes 0; an infinity becomes the largest
                             * value of the input's dtype (f64: of f32) or of
                             * the format */
} lb_nonfinite;

/* Quantization parameters; zero means the default. One that the format does not
 * use is an error, except block_size and axes with LB_COMPAT_EFORMER. */
typedef struct lb_quant_config {
    size_t struct_size;
    const char *format; /* NULL: "nf4" */
    int64_t block_size; /* 0: the format's default, usually 64 */
    lb_axes axes;       /* int8: the axes that share a scale; n 0: the last.
                           * (For x @ w with w (in, out), use axis 0: one scale
                           * per output) */
    lb_dtype dtype;     /* dtype to materialize to (default: the input's; for
                           * ternary and binary with compat eformer: i8) */
    bool simulate;      /* return a dense array of the quantized values */
    bool reference;     /* run the portable reference code, not SIMD kernels,
                           * to encode, and in every operation with the array
                           * (also where it is moved or sliced) */
    lb_compat compat;
    lb_decode decode;
    lb_scale scale;
    lb_meaning meaning;
    lb_threshold threshold;
    lb_blocks blocks;
    lb_nonfinite on_nonfinite;
    bool double_quant;  /* quantize the scales too: lb_quantize_scales */
    bool center;        /* dynamic8: subtract the mean and store it. int1 to
                         * int7 and uint8: store zero points (asymmetric) */
    bool clip_gradient; /* no gradient for values outside the representable
                         * range (ternary, binary: |w| > scale) */
} lb_quant_config;

/* Quantizes a (f32, f16, bf16 or f64; any view, any format) to config's format.
 * config NULL: all defaults. The gradient is the identity
 * (straight-through). */
LB_API lb_array *lb_quantize(lb_ctx *cx, lb_array *a,
                             const lb_quant_config *config);
/* lb_quantize, but the result always has a float dtype, as training needs. */
LB_API lb_array *lb_straight_through(lb_ctx *cx, lb_array *a,
                                     const lb_quant_config *config);
/* The same codes with scales stored in 8 bits (bitsandbytes' double
 * quantization): blocks of 256 scales after subtracting their mean. Scales must
 * be finite; the inverse scale of an all-zero group is not. */
LB_API lb_array *lb_quantize_scales(lb_ctx *cx, lb_array *a);
/* Whether format has specialized kernels for the instruction-set level in use;
 * false for an unknown name. */
LB_API bool lb_kernel_available(const lb_ctx *cx, const char *format);
/* The k-th format of the context, built-in formats first; NULL past the end.
 * "dense" is listed but is not a quantization format. */
LB_API const char *lb_format_name(const lb_ctx *cx, int k);
/* Whether lb_quantize can produce format; other formats can only be read. false
 * for an unknown name. */
LB_API bool lb_can_quantize(const lb_ctx *cx, const char *format);

/* A stored part of a by name ("codes", "scale", "absmax", ...; format
 * dependent), with a's axis order and sliced like a; flat if the storage is one
 * flat row and a is all of it. NULL without an error if the array does not have
 * this optional part. It is an error if the format has no part of that name
 * (the message lists the names) or if a does not consist of whole blocks. */
LB_API lb_array *lb_component(lb_ctx *cx, lb_array *a, const char *name);
/* The name of the k-th part of a's format, whether or not a has this part; NULL
 * past the end, and for NULL. Static, or as long as the format. */
LB_API const char *lb_component_name(const lb_array *a, int k);
/* The code of each element as an integer (i8, or u8 if no code is negative),
 * dense, in a's shape. */
LB_API lb_array *lb_codes(lb_ctx *cx, lb_array *a);

/* Builds an array from existing codes and scales without computing anything.
 * codes: as returned by lb_codes. scale: as returned by lb_component, or NULL
 * if config specifies no scale. An invalid code is an error that contains its
 * index. config.dtype defaults to the scale's dtype, else f32 (with compat
 * eformer to its default). */
LB_API lb_array *lb_from_codes(lb_ctx *cx, const lb_quant_config *config,
                               lb_array *codes, lb_array *scale);
/* Builds an array from n named parts. layout NULL: the format's own, as
 * returned by lb_component; padding bits are ignored. Other layouts are those
 * of other programs: "eformer" (nf4: "packed" (..., blocks, block/2) and
 * "absmax"; int8: "weight" and "scale"; ternary and binary: "packed", four rows
 * per byte row). */
LB_API lb_array *lb_from_parts(lb_ctx *cx, const lb_quant_config *config,
                               lb_shape shape, const char *layout,
                               const char *const *name, lb_array *const *part,
                               int n);
/* The inverse: one part of a in such a layout. NULL without an error if the
 * array does not have this optional part. */
LB_API lb_array *lb_export(lb_ctx *cx, lb_array *a, const char *layout,
                           const char *name);

/* ---- elementwise ------------------------------------------------------- */

/* For all of these: results are rounded once to their dtype; 16-bit floats are
 * computed in f32; float functions convert integer arguments to f32.
 *
 * For f32, the library implements exp, log, tanh, logistic and erf itself:
 * errors are at most 0.99, 0.84, 1.09, 2.41 and 1.32 ulp, with the same bits on
 * every machine. Other f32 functions call the C library in f64 and round; f64
 * functions call the C library. Their last bit may differ between machines. */

/* See lb_dtype for the conversion rules. */
LB_API lb_array *lb_convert(lb_ctx *cx, lb_array *a, lb_dtype dtype);
/* XLA's bitcast_convert_type: the bits of a's elements as another dtype. A
 * narrower dtype adds a last axis, of the ratio of the two widths; a wider one
 * removes it. Its element 0 has the least significant bits. Packed arrays are
 * decoded to their dtype. bool is an error. There is no gradient. */
LB_API lb_array *lb_bitcast_convert(lb_ctx *cx, lb_array *a, lb_dtype dtype);

LB_API lb_array *lb_neg(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_abs(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_sign(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_exp(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_log(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_expm1(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_log1p(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_sqrt(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_rsqrt(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_cbrt(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_tanh(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_logistic(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_sin(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_cos(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_tan(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_erf(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_floor(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_ceil(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_round(lb_ctx *cx, lb_array *x);      /* half to even */
LB_API lb_array *lb_round_away(lb_ctx *cx, lb_array *x); /* half away from 0 */
LB_API lb_array *lb_is_finite(lb_ctx *cx, lb_array *x);  /* bool */
LB_API lb_array *lb_not(lb_ctx *cx, lb_array *x);        /* bitwise */
LB_API lb_array *lb_popcnt(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_integer_pow(lb_ctx *cx, lb_array *x, int exponent);

LB_API lb_array *lb_add(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_sub(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_mul(lb_ctx *cx, lb_array *x, lb_array *y);
/* Integers: rounds toward zero; x / 0 is -1 (all bits); MIN / -1 wraps. */
LB_API lb_array *lb_div(lb_ctx *cx, lb_array *x, lb_array *y);
/* The result has the sign of x. Integers: x rem 0 is x. */
LB_API lb_array *lb_rem(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_max(lb_ctx *cx, lb_array *x, lb_array *y); /* NaN wins */
LB_API lb_array *lb_min(lb_ctx *cx, lb_array *x, lb_array *y); /* NaN wins */
LB_API lb_array *lb_pow(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_atan2(lb_ctx *cx, lb_array *y, lb_array *x);
LB_API lb_array *lb_and(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_or(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_xor(lb_ctx *cx, lb_array *x, lb_array *y);
/* A count that is negative or not below the bit width shifts out all bits. */
LB_API lb_array *lb_shift_left(lb_ctx *cx, lb_array *x, lb_array *count);
LB_API lb_array *lb_shift_right_logical(lb_ctx *cx, lb_array *x,
                                        lb_array *count);
LB_API lb_array *lb_shift_right_arithmetic(lb_ctx *cx, lb_array *x,
                                           lb_array *count);
/* Comparisons return bool; with a NaN all but ne are false. */
LB_API lb_array *lb_eq(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_ne(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_lt(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_le(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_gt(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_ge(lb_ctx *cx, lb_array *x, lb_array *y);

/* pred is bool. */
LB_API lb_array *lb_select(lb_ctx *cx, lb_array *pred, lb_array *on_true,
                           lb_array *on_false);
/* min(max(x, lo), hi); a NaN in any operand gives NaN. */
LB_API lb_array *lb_clamp(lb_ctx *cx, lb_array *lo, lb_array *x, lb_array *hi);

/* ---- structure --------------------------------------------------------- */

/* Changes only metadata, for any format. perm NULL: reverse the axes. */
LB_API lb_array *lb_transpose(lb_ctx *cx, lb_array *a, const int *perm);
/* One dim may be -1: inferred. Changes only metadata if the strides allow
 * it. */
LB_API lb_array *lb_reshape(lb_ctx *cx, lb_array *a, lb_shape shape);
/* lb_reshape(lb_transpose(a, perm)) in one operation. */
LB_API lb_array *lb_reshape_permuted(lb_ctx *cx, lb_array *a, const int *perm,
                                     lb_shape shape);
/* Axis k of a becomes axis dims[k] of the result. The sizes must be equal, or
 * a's must be 1. dims need not be sorted. */
LB_API lb_array *lb_broadcast_in_dim(lb_ctx *cx, lb_array *a, lb_shape shape,
                                     const int *dims);
/* As in numpy: axes are matched from the last. */
LB_API lb_array *lb_broadcast_to(lb_ctx *cx, lb_array *a, lb_shape shape);
/* Elements start <= i < limit, in steps of stride (NULL: 1), per axis. */
LB_API lb_array *lb_slice(lb_ctx *cx, lb_array *a, const int64_t *start,
                          const int64_t *limit, const int64_t *stride);
LB_API lb_array *lb_reverse(lb_ctx *cx, lb_array *a, const lb_axes *axes);
/* Removes axes of size 1 (NULL: all of them). */
LB_API lb_array *lb_squeeze(lb_ctx *cx, lb_array *a, const lb_axes *axes);
/* Inserts an axis of size 1 at position axis. */
LB_API lb_array *lb_expand(lb_ctx *cx, lb_array *a, int axis);
LB_API lb_array *lb_concatenate(lb_ctx *cx, lb_array *const *in, int n,
                                int axis);
/* Negative lo and hi remove elements; interior inserts padding between
 * elements; NULL means zeros. A weak value takes a's dtype, unless it is a
 * float and a holds integers. */
LB_API lb_array *lb_pad(lb_ctx *cx, lb_array *a, lb_array *value,
                        const int64_t *lo, const int64_t *hi,
                        const int64_t *interior);
/* starts: one integer scalar per axis, clamped so that the slice fits. */
LB_API lb_array *lb_dynamic_slice(lb_ctx *cx, lb_array *a,
                                  lb_array *const *starts,
                                  const int64_t *sizes);
LB_API lb_array *lb_dynamic_update_slice(lb_ctx *cx, lb_array *a,
                                         lb_array *update,
                                         lb_array *const *starts);

/* ---- reductions -------------------------------------------------------- */

/* axes NULL: all. The axes are removed from the shape. The order of summation
 * depends only on the shape; 16-bit floats are summed in f32, integers wrap.
 * Sums and products of bool are an error: use reduce_or and reduce_and. */
LB_API lb_array *lb_reduce_sum(lb_ctx *cx, lb_array *a, const lb_axes *axes);
LB_API lb_array *lb_reduce_prod(lb_ctx *cx, lb_array *a, const lb_axes *axes);
LB_API lb_array *lb_reduce_max(lb_ctx *cx, lb_array *a, const lb_axes *axes);
LB_API lb_array *lb_reduce_min(lb_ctx *cx, lb_array *a, const lb_axes *axes);
LB_API lb_array *lb_reduce_and(lb_ctx *cx, lb_array *a, const lb_axes *axes);
LB_API lb_array *lb_reduce_or(lb_ctx *cx, lb_array *a, const lb_axes *axes);
/* See lb_reduce (lowbit_functions.h) for any other computation. */
/* First index of the largest (smallest) element; of the first NaN, if any. The
 * axis is removed: lb_expand(cx, result, axis) restores it with size 1.
 * index_dtype: any integer dtype; LB_NO_DTYPE: i32. */
LB_API lb_array *lb_argmax(lb_ctx *cx, lb_array *a, int axis,
                           lb_dtype index_dtype);
LB_API lb_array *lb_argmin(lb_ctx *cx, lb_array *a, int axis,
                           lb_dtype index_dtype);

/* ---- products ---------------------------------------------------------- */

/* Shape of the result: batch axes, free axes of lhs, free axes of rhs. Lists of
 * equal length are paired. preferred: dtype of the result (default: the
 * operands' promoted dtype). The operands may have different float dtypes. */
typedef struct lb_dot_dims {
    lb_axes lhs_contract, rhs_contract;
    lb_axes lhs_batch, rhs_batch;
    lb_dtype preferred;
    lb_precision precision;
} lb_dot_dims;

LB_API lb_array *lb_dot_general(lb_ctx *cx, lb_array *lhs, lb_array *rhs,
                                const lb_dot_dims *dims);
/* numpy's matmul: batched, broadcasting; either operand may be a vector. */
LB_API lb_array *lb_matmul(lb_ctx *cx, lb_array *a, lb_array *b);

typedef struct lb_linear_options {
    size_t struct_size;
    lb_dtype dtype; /* of the result; default: x's and w's promoted dtype */
    lb_precision precision;
    bool in_out; /* w is (in, out), not (out, in) */
} lb_linear_options;

/* x w^T + bias: x (..., in), w (out, in), bias (out) or NULL; the result is
 * (..., out). The bias is added in f32 (f64 for f64), and the sum is rounded
 * once to the result's dtype, which does not depend on that of the bias.
 * options may be NULL. */
LB_API lb_array *lb_linear(lb_ctx *cx, lb_array *x, lb_array *w, lb_array *bias,
                           const lb_linear_options *options);

enum { LB_MAX_SPATIAL = 3 };

/* XLA's labels: lhs and out use b (batch), f (feature), 0 1 2 (space); rhs uses
 * o, i, 0 1 2. "" means "bf01" and "oi01". Zero stride or dilation means 1. */
typedef struct lb_conv_dims {
    char lhs[LB_MAX_SPATIAL + 3];
    char rhs[LB_MAX_SPATIAL + 3];
    char out[LB_MAX_SPATIAL + 3];
    bool reversal[LB_MAX_SPATIAL]; /* reverse the kernel along this axis */
    int64_t stride[LB_MAX_SPATIAL];
    int64_t pad_lo[LB_MAX_SPATIAL], pad_hi[LB_MAX_SPATIAL];
    int64_t lhs_dilation[LB_MAX_SPATIAL], rhs_dilation[LB_MAX_SPATIAL];
    int64_t feature_groups, batch_groups; /* 0: 1 */
    lb_dtype preferred;
    lb_precision precision;
} lb_conv_dims;

LB_API lb_array *lb_conv_general_dilated(lb_ctx *cx, lb_array *lhs,
                                         lb_array *rhs,
                                         const lb_conv_dims *dims);

/* ---- gather and scatter ------------------------------------------------ */

typedef enum lb_bounds {
    LB_BOUNDS_CLAMP = 0, /* starts are clamped so that the slice fits */
    LB_BOUNDS_FILL = 1,  /* gather: fill; scatter: skip */
} lb_bounds;

/* XLA's gather dimension numbers. */
typedef struct lb_gather_dims {
    lb_axes offset_dims;
    lb_axes collapsed_slice_dims;
    lb_axes operand_batching_dims;
    lb_axes start_indices_batching_dims;
    lb_axes start_index_map;
    int index_vector_dim;
    int64_t slice_sizes[LB_MAX_RANK];
    lb_bounds bounds;
    bool has_fill; /* otherwise: NaN, minimum of a signed, maximum of an
                    * unsigned integer, true */
    double fill;   /* exact for integers up to 2^53 */
} lb_gather_dims;

LB_API lb_array *lb_gather(lb_ctx *cx, lb_array *a, lb_array *starts,
                           const lb_gather_dims *dims);
/* Adds updates to a at the positions lb_gather reads with the same dims: the
 * transpose of gather. Duplicate indices accumulate, in order. */
LB_API lb_array *lb_scatter_add(lb_ctx *cx, lb_array *a, lb_array *starts,
                                lb_array *updates, const lb_gather_dims *dims);
/* Slices of a along axis, one per index. An index out of range is clamped or,
 * with lb_options.check_indices, an error. */
LB_API lb_array *lb_take(lb_ctx *cx, lb_array *a, lb_array *index, int axis);
/* Rows of table: lb_take along axis 0. */
LB_API lb_array *lb_embedding(lb_ctx *cx, lb_array *table, lb_array *index);

/* ---- for networks ------------------------------------------------------ */

LB_API lb_array *lb_relu(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_silu(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_gelu(lb_ctx *cx, lb_array *x);      /* exact, using erf */
LB_API lb_array *lb_gelu_tanh(lb_ctx *cx, lb_array *x); /* tanh approximation */
LB_API lb_array *lb_softmax(lb_ctx *cx, lb_array *x, int axis);
LB_API lb_array *lb_log_softmax(lb_ctx *cx, lb_array *x, int axis);
/* axes NULL: all. keep: keep the reduced axes with size 1. The mean and
 * variance of an empty group are NaN.
 *
 * Integers are promoted as in jax.numpy: the sum of i8, i16, i32 and bool is
 * i32, of u8, u16 and u32 u32; i64 and u64 stay. Mean and variance of integers
 * and bool are f32. (lb_reduce_sum keeps the dtype.) */
LB_API lb_array *lb_sum(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                        bool keep);
LB_API lb_array *lb_mean(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                         bool keep);
/* Products are promoted as sums. The maximum of no elements is -infinity, or
 * the smallest integer; NaN wins. */
LB_API lb_array *lb_prod(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                         bool keep);
LB_API lb_array *lb_amax(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                         bool keep);
LB_API lb_array *lb_amin(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                         bool keep);
/* Whether all (any) elements are not 0; NaN is not 0. */
LB_API lb_array *lb_all(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                        bool keep);
LB_API lb_array *lb_any(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                        bool keep);
LB_API lb_array *lb_var(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                        bool keep);
/* Over the last axis; weight and bias may be NULL. */
LB_API lb_array *lb_rms_norm(lb_ctx *cx, lb_array *x, lb_array *weight,
                             double eps);
LB_API lb_array *lb_layer_norm(lb_ctx *cx, lb_array *x, lb_array *weight,
                               lb_array *bias, double eps);
/* -log softmax(logits)[label] over the last axis, not averaged. labels:
 * integers with logits' leading shape. An out-of-range label gives NaN. */
LB_API lb_array *lb_cross_entropy(lb_ctx *cx, lb_array *logits,
                                  lb_array *labels);
/* The mean of (x - y)^2, a scalar. */
LB_API lb_array *lb_squared_error(lb_ctx *cx, lb_array *x, lb_array *y);

/* ---- random numbers ---------------------------------------------------- */

/* Counter-based (Philox 4x32-10): element i of (seed, stream) has the same
 * bits on every machine, level and thread count. */
typedef struct lb_key {
    uint64_t seed, stream;
} lb_key;

/* A key that is independent of key and of the keys for all other n. */
LB_API lb_key lb_key_fold(lb_key key, uint64_t n);
/* Uniform bits in any integer dtype. */
LB_API lb_array *lb_random_bits(lb_ctx *cx, lb_key key, lb_dtype dtype,
                                lb_shape shape);
/* Uniform floats, lo <= x < hi. */
LB_API lb_array *lb_random_uniform(lb_ctx *cx, lb_key key, lb_dtype dtype,
                                   lb_shape shape, double lo, double hi);
/* Normal floats, mean 0 and variance 1. */
LB_API lb_array *lb_random_normal(lb_ctx *cx, lb_key key, lb_dtype dtype,
                                  lb_shape shape);
/* A random permutation of 0 to n-1, as i64. */
LB_API lb_array *lb_random_permutation(lb_ctx *cx, lb_key key, int64_t n);

/* ---- what happens inside ----------------------------------------------- */

/* Describes in one line how the primitive would run on these operands: shapes,
 * tier, kernel, units of work, threads, scratch bytes (shared, and per thread).
 * Nothing is computed, but packed blocks are moved and a format's own rule is
 * applied, because only that shows whether they succeed. params as in
 * lowbit_params.h; NULL if none. The text belongs to the context until the next
 * call; NULL on error. */
LB_API const char *lb_explain(lb_ctx *cx, const char *primitive,
                              lb_array *const *in, int n, const void *params);

#ifdef __cplusplus
}
#endif

#include "lowbit_functions.h"
#include "lowbit_inspect.h"
#include "lowbit_nn.h"
#include "lowbit_tree.h"

#endif
