/* lowbit.h - arrays whose numbers may be stored in few bits.
 *
 * The only header a user includes, with lowbit_io.h for files. Conventions,
 * stated once:
 *
 * - An array is immutable. Operations take arrays and return a new one, which
 *   belongs to the innermost open scope of the context and goes with it.
 * - An operation given NULL returns NULL. The first error of a context stays
 *   there with its sentence until lb_clear: one check at the end is enough.
 *   The library never aborts, exits or prints.
 * - A context serves one thread at a time and owns a pool of worker threads.
 *   Arrays may be read by any thread, and may outlive their context when a
 *   reference is held (lb_ref).
 * - Operations broadcast as numpy does and promote dtypes as jax.numpy does;
 *   numbers made by lb_scalar are weak: they take the other operand's dtype.
 *   (The strict primitives below them are reached through lowbit_ext.h.)
 * - Axes may be negative: -1 is the last.
 * - lb_options, lb_quant_config and lb_optimizer_config begin with struct_size:
 *   sizeof the struct, or 0 for "this version". It is how a later version of
 *   the library knows what was compiled. In every struct a zero member means
 *   the default.
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

/* Pinned: values are never reused. */
typedef enum lb_status {
    LB_OK = 0,
    LB_E_NOMEM = 1,       /* out of memory */
    LB_E_NULL = 2,        /* an operand is NULL */
    LB_E_SHAPE = 3,       /* shapes do not fit together */
    LB_E_DTYPE = 4,       /* not defined for this dtype */
    LB_E_AXIS = 5,        /* an axis is out of range or named twice */
    LB_E_ARG = 6,         /* any other argument */
    LB_E_SIZE = 7,        /* too large to be counted or addressed */
    LB_E_DENIED = 8,      /* the context's policy forbids it */
    LB_E_UNSUPPORTED = 9, /* known, and not available */
    LB_E_FILE = 10,       /* the system cannot open, read or write a file */
    LB_E_CONTENT = 11,    /* a file does not hold what it should */
    LB_E_MESH = 12,       /* ranks cannot go on together (lowbit_mesh.h) */
    LB_E_CANCELLED = 13,  /* the caller stopped a job (lowbit_io.h) */
} lb_status;

/* The first error since lb_open or lb_clear; LB_OK if there was none,
 * LB_E_NULL for a NULL context. */
LB_API lb_status lb_error_status(const lb_ctx *cx);
/* Its sentence, valid until lb_clear or lb_close; "" if there was none. For a
 * NULL context, which is how lb_open fails, a sentence that says so. */
LB_API const char *lb_error(const lb_ctx *cx);
LB_API void lb_clear(lb_ctx *cx);
/* "out of memory", "shape", ...: the status in a word or two; static. */
LB_API const char *lb_status_name(lb_status status);

/* ---- dtypes and shapes ------------------------------------------------- */

/* What an array's numbers are to the user, however they are stored.
 *
 * Converting: float to float rounds to nearest even; float to integer
 * truncates toward zero, saturates, and NaN gives 0; integer to integer wraps;
 * to bool is != 0; from bool is 0 or 1. */
typedef enum lb_dtype {
    LB_NO_DTYPE = 0, /* in an option: the default */
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

enum { LB_N_DTYPES = 14 }; /* with LB_NO_DTYPE */

/* "f32", "bool", ...; "none" for anything that is not a dtype; static. */
LB_API const char *lb_dtype_name(lb_dtype dtype);
/* Bytes of one element, 0 for anything that is not a dtype. */
LB_API size_t lb_dtype_size(lb_dtype dtype);
/* The dtype that two operands meet in, as in jax.numpy (f* is f32). */
LB_API lb_dtype lb_promote(lb_dtype a, lb_dtype b);

typedef struct lb_shape {
    int rank; /* 0 is a scalar */
    int64_t dim[LB_MAX_RANK];
} lb_shape;

/* A list of axes, in order. */
typedef struct lb_axes {
    int n;
    int axis[LB_MAX_RANK];
} lb_axes;

#ifndef __cplusplus
/* LB_SHAPE(2, 3): a shape in place. A scalar's is lb_shape_make(0, NULL). */
#define LB_SHAPE(...)                                                          \
    lb_shape_make((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),   \
                  (const int64_t[]){__VA_ARGS__})
/* LB_AXES(0, -1): a pointer to a list of axes in place. */
#define LB_AXES(...)                                                           \
    (&(const lb_axes){(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)),       \
                      {__VA_ARGS__}})
#endif
/* More than LB_MAX_RANK dims give a shape that every operation refuses. */
LB_API lb_shape lb_shape_make(int rank, const int64_t *dim);

/* ---- context ----------------------------------------------------------- */

/* Memory comes from here and from nowhere else. Called by whichever threads
 * hold arrays, also at the same time. */
typedef struct lb_allocator {
    /* size bytes aligned to align (a power of two, 64 or less), or NULL */
    void *(*alloc)(void *user, size_t size, size_t align);
    /* size is the one that was asked for */
    void (*free)(void *user, void *ptr, size_t size);
    void *user;
} lb_allocator;

/* What to do when an operation wants a whole packed operand decoded. None of
 * the library's own does; primitives that users add may (lb_prim.dense). A
 * result that its layout cannot express is dense and none of its business:
 * lb_format_of tells. */
typedef enum lb_dense_policy {
    LB_DENSE_DEFAULT = 0, /* LOWBIT_DENSE=allow|log|deny, else allow */
    LB_DENSE_ALLOW = 1,
    LB_DENSE_LOG = 2, /* tell lb_options.log */
    LB_DENSE_DENY = 3 /* fail with LB_E_DENIED */
} lb_dense_policy;

/* How products of f32 are formed in dot_general and conv: what is asked for is
 * the least that is done. FAST and FASTEST concern products with packed
 * weights, on the codes themselves; where a format or a layout has no such
 * kernel, HIGHEST is computed, and lb_explain tells. Errors are relative to the
 * norm of the result, for numbers from a normal distribution. FAST and FASTEST
 * give NaN for a row of x that has an infinity, and keep their bounds while
 * scales of weights are within 1e-30 to 1e30. HIGHEST multiplies the numbers
 * that decoding gives, which are rounded to the array's dtype; FAST and FASTEST
 * may multiply code times scale as stored, before it is rounded to a 16-bit
 * dtype. */
typedef enum lb_precision {
    LB_PRECISION_DEFAULT = 0, /* the context's; there LOWBIT_PRECISION=highest|
                               * fast|fastest, else HIGHEST */
    LB_PRECISION_HIGHEST = 1, /* f32 sums in a fixed order: 1e-6 */
    LB_PRECISION_FAST = 2,    /* the other operand rounded to 16 bits: 3e-4 */
    LB_PRECISION_FASTEST = 3  /* .. to 8 bits: 1e-2, more with outliers */
} lb_precision;

/* Instruction-set levels; on each kind of machine a stronger one includes all
 * weaker ones. */
typedef enum lb_level {
    LB_LEVEL_REF = 0,
    LB_LEVEL_NEON = 1,
    LB_LEVEL_AVX2 = 2,   /* with FMA and F16C */
    LB_LEVEL_AVX512 = 3, /* F, BW, VL, DQ */
    LB_LEVEL_AVX512VNNI = 4
} lb_level;

typedef struct lb_options {
    size_t struct_size;
    int threads; /* 0: all cores the process may use; at most 256 */
    const lb_allocator *allocator; /* NULL: the C library's; copied */
    int64_t keep_bytes; /* freed memory kept for reuse; 0: 512 MiB, -1: none */
    lb_dense_policy dense;
    lb_precision precision;
    const char *isa; /* strongest level to use: "ref", "avx2", "avx512",
                      * "avx512vnni", "neon"; NULL: LOWBIT_ISA, else the best */
    void (*log)(void *user, const char *sentence); /* NULL: none */
    void *log_user;
    uint64_t cpu_off; /* bit l, 1 << LB_LEVEL_AVX512: code of lb_level l, and
                       * of those that include it, is not run, whatever isa
                       * says. Levels of other machines may be named; ref and
                       * bits of no level may not */
} lb_options;

/* NULL options: all defaults. NULL on failure: out of memory, or options that
 * make no sense; lb_open_why, called with the same options, then writes the
 * reason to buf (size bytes) and returns buf. */
LB_API lb_ctx *lb_open(const lb_options *options);
LB_API const char *lb_open_why(const lb_options *options, char *buf,
                               size_t size);
/* Ends all scopes and gives back what no array outside still needs. */
LB_API void lb_close(lb_ctx *cx);

/* Another policy for operands of one format; LB_DENSE_DEFAULT: the context's
 * again. An unknown name is an error. */
LB_API bool lb_set_dense(lb_ctx *cx, const char *format,
                         lb_dense_policy policy);

LB_API int lb_threads(const lb_ctx *cx);
/* The instruction-set level in use: "ref", "avx2", ... */
LB_API const char *lb_isa(const lb_ctx *cx);
/* The strongest one that this CPU and its system allow, used or not. */
LB_API const char *lb_isa_best(void);
/* What the CPU calls itself ("AMD EPYC 7B13 64-Core Processor"), "" if it does
 * not say; and the family that kernels are tuned for: "zen3", "icelake", for
 * others "generic-avx2" or as the level may be. Valid while cx is. */
LB_API const char *lb_cpu_name(const lb_ctx *cx);
LB_API const char *lb_cpu_family(const lb_ctx *cx);
/* Gives the memory kept for reuse back to the allocator; returns its bytes. */
LB_API size_t lb_trim(lb_ctx *cx);
/* Bytes held by living arrays, by calls under way and by the context itself,
 * as the allocator sees them; not the ones kept for reuse. */
LB_API size_t lb_bytes_in_use(const lb_ctx *cx);
/* The largest lb_bytes_in_use has been. */
LB_API size_t lb_bytes_peak(const lb_ctx *cx);
LB_API const char *lb_version(void);

/* ---- scopes and references --------------------------------------------- */

/* Arrays made from now on belong to a new scope ... */
LB_API void lb_enter(lb_ctx *cx);
/* ... which ends here, with all its arrays but those handed on. */
LB_API void lb_leave(lb_ctx *cx);
/* Hands a to the enclosing scope. Returns a; NULL for NULL. */
LB_API lb_array *lb_keep(lb_ctx *cx, lb_array *a);
/* Takes a out of the scope it belongs to, now, to free its memory early. a
 * must not be used again (unless a reference is held). NULL is fine. */
LB_API void lb_drop(lb_ctx *cx, lb_array *a);
/* A reference outside of all scopes; any thread. Returns a; NULL for NULL. */
LB_API lb_array *lb_ref(lb_array *a);
/* Gives it back; any thread. NULL is fine. */
LB_API void lb_unref(lb_array *a);

/* ---- making arrays ----------------------------------------------------- */

/* Copies shape's elements, row-major, from data. */
LB_API lb_array *lb_from(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                         const void *data);
/* Uses data in place: it must not change while the array lives, and bytes of
 * bool must be 0 or 1. done(user) is called when the last reference goes, by
 * whichever thread; it may be NULL. On failure done is not called. data is
 * aligned to its dtype. */
LB_API lb_array *lb_wrap(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                         const void *data, void (*done)(void *user),
                         void *user);
/* Weak scalars: they take the dtype of what they meet, rounded once. A weak
 * float makes f32 of integers and bool; a weak integer that does not fit into
 * the other's integer dtype is an error. Among themselves they are f64, and
 * i32 or, if it does not fit, i64. */
LB_API lb_array *lb_scalar(lb_ctx *cx, double value);
LB_API lb_array *lb_scalar_int(lb_ctx *cx, int64_t value);
LB_API lb_array *lb_full(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                         double value);
LB_API lb_array *lb_full_int(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                             int64_t value);
LB_API lb_array *lb_zeros(lb_ctx *cx, lb_dtype dtype, lb_shape shape);
/* The index along axis. */
LB_API lb_array *lb_iota(lb_ctx *cx, lb_dtype dtype, lb_shape shape, int axis);

/* ---- looking at arrays ------------------------------------------------- */

LB_API int lb_rank(const lb_array *a);              /* -1 for NULL */
LB_API int64_t lb_dim(const lb_array *a, int axis); /* -1 if there is none */
LB_API lb_shape lb_shape_of(const lb_array *a);
LB_API int64_t lb_size(const lb_array *a); /* elements; -1 for NULL */
LB_API lb_dtype lb_dtype_of(const lb_array *a);
LB_API const char *lb_format_of(const lb_array *a); /* "dense", ... */
/* Bytes of what is stored behind a, its parts included. */
LB_API size_t lb_nbytes(const lb_array *a);
/* The elements where they lie, if they lie row-major and dense; else NULL:
 * lb_materialize first. Valid while a is. */
LB_API const void *lb_data(const lb_array *a);
/* All elements, row-major, in a's dtype, into dst of exactly size bytes. On
 * failure (out of memory on the way) dst may be written in part. */
LB_API bool lb_read(lb_ctx *cx, lb_array *a, void *dst, size_t size);
/* The same for rows lo <= i < hi of the first axis. */
LB_API bool lb_read_rows(lb_ctx *cx, lb_array *a, int64_t lo, int64_t hi,
                         void *dst, size_t size);
/* The value of an array of one element; NaN and an error otherwise. */
LB_API double lb_item(lb_ctx *cx, lb_array *a);
LB_API int64_t lb_item_int(lb_ctx *cx, lb_array *a);
/* a, dense and row-major: a itself, and nothing is done, if it is so already.
 * (Two pointers compare equal then: there is one array.) */
LB_API lb_array *lb_materialize(lb_ctx *cx, lb_array *a);

/* ---- quantizing --------------------------------------------------------- */

/* Whose arithmetic is repeated, bit for bit. */
typedef enum lb_compat {
    LB_COMPAT_NATIVE = 0,  /* f32 from the input's values, true divisions */
    LB_COMPAT_EFORMER = 1, /* eformer: each step rounded to the input's dtype */
    LB_COMPAT_BNB_CUDA = 2,            /* bitsandbytes on a GPU */
    LB_COMPAT_BNB_CPU = 3,             /* bitsandbytes on a CPU */
    LB_COMPAT_SEED = LB_COMPAT_EFORMER /* former name */
} lb_compat;

/* How many elements share a scale. */
typedef enum lb_scale {
    LB_SCALE_DEFAULT = 0, /* the format's: ternary and binary have one for the
                           * tensor, none if dtype is i8 or compat eformer */
    LB_SCALE_NONE = 1,    /* there is none: values are the codes */
    LB_SCALE_TENSOR = 2,
    LB_SCALE_ROW = 3,  /* of the last axis */
    LB_SCALE_BLOCK = 4 /* of block_size elements along the last axis */
} lb_scale;

/* What a stored scale s means. */
typedef enum lb_meaning {
    LB_MEANS_SCALE = 0,  /* w = code * s */
    LB_MEANS_ABSMAX = 1, /* int8: w = (code * s) * f32(1/127) */
    LB_MEANS_INVERSE = 2 /* w = code / s */
} lb_meaning;

/* Where small numbers become 0 in ternary. */
typedef enum lb_threshold {
    LB_THRESHOLD_STD = 0,    /* |w| <= half the standard deviation */
    LB_THRESHOLD_ABSMEAN = 1 /* round(w / mean |w|) is 0 */
} lb_threshold;

/* Where blocks begin. */
typedef enum lb_blocks {
    LB_BLOCKS_DEFAULT = 0, /* in rows; flat where compat is bitsandbytes' */
    LB_BLOCKS_IN_ROWS = 1, /* each row begins one; its last may be short */
    LB_BLOCKS_FLAT = 2     /* they run on across rows */
} lb_blocks;

typedef enum lb_decode {
    LB_DECODE_TABLE = 0,
    LB_DECODE_POLY = 1 /* nf4: eformer's polynomial, off by up to 1.5 % */
} lb_decode;

typedef enum lb_nonfinite {
    LB_NONFINITE_ERROR = 0, /* an error that names the first index */
    LB_NONFINITE_CLAMP = 1  /* NaN is 0, an infinity the largest number of
                             * the input's dtype (f64: of f32), or that the
                             * format can hold */
} lb_nonfinite;

typedef enum lb_choice {
    LB_CHOICE_DEFAULT = 0,
    LB_YES = 1,
    LB_NO = 2
} lb_choice;

/* How to quantize; zero means the default. What a format has no use for is
 * refused, not ignored, except block_size and axes under LB_COMPAT_EFORMER. */
typedef struct lb_quant_config {
    size_t struct_size;
    const char *format;   /* NULL: "nf4" */
    int64_t block_size;   /* 0: the format's, mostly 64 */
    lb_axes axes;         /* int8: those that share a scale; n 0: the last. (For
                           * x @ w, w (in, out), axis 0: a scale per output) */
    lb_dtype dtype;       /* what it materializes to; default: the input's (of
                           * ternary and binary in compat eformer: i8) */
    bool simulate;        /* the result is dense, of the quantized values */
    lb_choice use_kernel; /* LB_NO: the reference code, whatever the CPU */
    lb_compat compat;
    lb_decode decode;
    lb_scale scale;
    lb_meaning meaning;
    lb_threshold threshold;
    lb_blocks blocks;
    lb_nonfinite on_nonfinite;
    bool double_quant;  /* the scales are quantized too: lb_quantize_scales */
    bool center;        /* dynamic8: the mean is taken off and stored */
    bool clip_gradient; /* no gradient for numbers outside of the range that
                         * their scale leaves (ternary, binary: |w| > scale) */
} lb_quant_config;

/* a (f32, f16, bf16 or f64; any view, any format) in config's format. NULL
 * config: all defaults. Its gradient is the identity. */
LB_API lb_array *lb_quantize(lb_ctx *cx, lb_array *a,
                             const lb_quant_config *config);
/* lb_quantize to a float dtype, always: what training wants. */
LB_API lb_array *lb_straight_through(lb_ctx *cx, lb_array *a,
                                     const lb_quant_config *config);
/* The same codes with scales stored in 8 bits (bitsandbytes' double
 * quantization): blocks of 256 scales after their mean is taken off. Scales
 * must be finite, which the inverse of a group of zeros is not. */
LB_API lb_array *lb_quantize_scales(lb_ctx *cx, lb_array *a);
/* Whether format has code of its own for the instruction-set level in use;
 * false for an unknown name. */
LB_API bool lb_kernel_available(const lb_ctx *cx, const char *format);
/* The k-th format of the context, built-in ones first, of which "dense" is not
 * to be quantized to; NULL past the end. */
LB_API const char *lb_format_name(const lb_ctx *cx, int k);

/* What is stored behind a, by the format's name for it: "codes", "scale",
 * "absmax", ...; in a's order of axes, as it was cut; flat if it is stored as
 * one flat row and a is all of it. NULL and no error for a part that the array
 * does without; an error for a name that the format does not have, which lists
 * those it has, and where a is no box of blocks. */
LB_API lb_array *lb_component(lb_ctx *cx, lb_array *a, const char *name);
/* The code of each element, one integer per element (i8; u8 if none is below
 * 0), dense, in a's shape. */
LB_API lb_array *lb_codes(lb_ctx *cx, lb_array *a);

/* Arrays from what is given, nothing computed. codes: as lb_codes gives them;
 * scale: as lb_component does, or NULL where config says none. A code that
 * does not exist is refused with its index. config.dtype: default the
 * scale's, else f32 (in compat eformer what that has). */
LB_API lb_array *lb_from_codes(lb_ctx *cx, const lb_quant_config *config,
                               lb_array *codes, lb_array *scale);
/* From n parts by name. layout NULL: the format's own, as lb_component gives
 * them; bits that belong to no element are not looked at. Others are bytes of
 * other programs: "eformer" (nf4: "packed" (.., blocks, block/2) and "absmax";
 * int8: "weight" and "scale"; ternary and binary: "packed", four rows in a byte
 * row). */
LB_API lb_array *lb_from_parts(lb_ctx *cx, const lb_quant_config *config,
                               lb_shape shape, const char *layout,
                               const char *const *name, lb_array *const *part,
                               int n);
/* The inverse: one part of a in such a layout; NULL and no error for one that
 * the array does without. */
LB_API lb_array *lb_export(lb_ctx *cx, lb_array *a, const char *layout,
                           const char *name);

/* ---- elementwise ------------------------------------------------------- */

/* For all of these: results are rounded once to their dtype; 16-bit floats
 * compute in f32; functions of floats given integers convert them to f32.
 *
 * In f32, exp, log, tanh, logistic and erf are the library's own: off by at
 * most 0.99, 0.84, 1.09, 2.41 and 1.32 ulp, with the same bits everywhere.
 * Others of f32 are the C library's in f64, rounded; those of f64 are the C
 * library's. Their last bit may differ between machines. */

/* The rules stand at lb_dtype. */
LB_API lb_array *lb_convert(lb_ctx *cx, lb_array *a, lb_dtype dtype);

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
LB_API lb_array *lb_round_away(lb_ctx *cx, lb_array *x); /* half from zero */
LB_API lb_array *lb_is_finite(lb_ctx *cx, lb_array *x);  /* bool */
LB_API lb_array *lb_not(lb_ctx *cx, lb_array *x);        /* bits; bool: ! */
LB_API lb_array *lb_popcnt(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_integer_pow(lb_ctx *cx, lb_array *x, int exponent);

LB_API lb_array *lb_add(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_sub(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_mul(lb_ctx *cx, lb_array *x, lb_array *y);
/* Integers: toward zero; x / 0 is -1 (all bits), and MIN / -1 wraps. */
LB_API lb_array *lb_div(lb_ctx *cx, lb_array *x, lb_array *y);
/* The sign of x. Integers: x rem 0 is x. */
LB_API lb_array *lb_rem(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_max(lb_ctx *cx, lb_array *x, lb_array *y); /* NaN wins */
LB_API lb_array *lb_min(lb_ctx *cx, lb_array *x, lb_array *y); /* NaN wins */
LB_API lb_array *lb_pow(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_atan2(lb_ctx *cx, lb_array *y, lb_array *x);
LB_API lb_array *lb_and(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_or(lb_ctx *cx, lb_array *x, lb_array *y);
LB_API lb_array *lb_xor(lb_ctx *cx, lb_array *x, lb_array *y);
/* A count below 0 or not below the width shifts everything out. */
LB_API lb_array *lb_shift_left(lb_ctx *cx, lb_array *x, lb_array *count);
LB_API lb_array *lb_shift_right_logical(lb_ctx *cx, lb_array *x,
                                        lb_array *count);
LB_API lb_array *lb_shift_right_arithmetic(lb_ctx *cx, lb_array *x,
                                           lb_array *count);
/* Comparisons give bool; with a NaN all but ne are false. */
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

/* Metadata only, whatever the format. perm NULL: reverse the axes. */
LB_API lb_array *lb_transpose(lb_ctx *cx, lb_array *a, const int *perm);
/* One dim may be -1: what is left. Metadata only where strides allow it. */
LB_API lb_array *lb_reshape(lb_ctx *cx, lb_array *a, lb_shape shape);
/* lb_reshape(lb_transpose(a, perm)), as one operation. */
LB_API lb_array *lb_reshape_permuted(lb_ctx *cx, lb_array *a, const int *perm,
                                     lb_shape shape);
/* Axis k of a becomes axis dims[k] of the result, of a's size or, where a has
 * 1, of any. dims need not be sorted. */
LB_API lb_array *lb_broadcast_in_dim(lb_ctx *cx, lb_array *a, lb_shape shape,
                                     const int *dims);
/* As numpy: axes are matched from the last. */
LB_API lb_array *lb_broadcast_to(lb_ctx *cx, lb_array *a, lb_shape shape);
/* Elements start <= i < limit by stride (NULL: 1) of each axis. */
LB_API lb_array *lb_slice(lb_ctx *cx, lb_array *a, const int64_t *start,
                          const int64_t *limit, const int64_t *stride);
LB_API lb_array *lb_reverse(lb_ctx *cx, lb_array *a, const lb_axes *axes);
/* Removes axes of size 1 (NULL: all of them). */
LB_API lb_array *lb_squeeze(lb_ctx *cx, lb_array *a, const lb_axes *axes);
/* Inserts an axis of size 1 so that it becomes axis. */
LB_API lb_array *lb_expand(lb_ctx *cx, lb_array *a, int axis);
LB_API lb_array *lb_concatenate(lb_ctx *cx, lb_array *const *in, int n,
                                int axis);
/* Negative lo and hi cut; interior goes between; NULL for these: zeros. A weak
 * value takes a's dtype, if it is not a float among integers. */
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

/* axes NULL: all. The axes vanish from the shape. Sums follow a tree that
 * depends on the shape alone; 16-bit floats sum in f32, integers wrap. Sums
 * and products of bool are refused: say reduce_or and reduce_and. */
LB_API lb_array *lb_reduce_sum(lb_ctx *cx, lb_array *a, const lb_axes *axes);
LB_API lb_array *lb_reduce_prod(lb_ctx *cx, lb_array *a, const lb_axes *axes);
LB_API lb_array *lb_reduce_max(lb_ctx *cx, lb_array *a, const lb_axes *axes);
LB_API lb_array *lb_reduce_min(lb_ctx *cx, lb_array *a, const lb_axes *axes);
LB_API lb_array *lb_reduce_and(lb_ctx *cx, lb_array *a, const lb_axes *axes);
LB_API lb_array *lb_reduce_or(lb_ctx *cx, lb_array *a, const lb_axes *axes);
/* The first index of the largest (smallest); the first NaN if there is one.
 * index_dtype: any integer dtype; LB_NO_DTYPE: i32. */
LB_API lb_array *lb_argmax(lb_ctx *cx, lb_array *a, int axis,
                           lb_dtype index_dtype);
LB_API lb_array *lb_argmin(lb_ctx *cx, lb_array *a, int axis,
                           lb_dtype index_dtype);

/* ---- products ---------------------------------------------------------- */

/* Result: the batch axes, lhs's free axes, rhs's free axes. Lists of equal
 * length pair up. preferred: the dtype of the result (default: the operands'
 * promoted dtype). Floats of different dtypes may meet. */
typedef struct lb_dot_dims {
    lb_axes lhs_contract, rhs_contract;
    lb_axes lhs_batch, rhs_batch;
    lb_dtype preferred;
    lb_precision precision;
} lb_dot_dims;

LB_API lb_array *lb_dot_general(lb_ctx *cx, lb_array *lhs, lb_array *rhs,
                                const lb_dot_dims *dims);
/* numpy's matmul: batched and broadcasting, vectors at either side. */
LB_API lb_array *lb_matmul(lb_ctx *cx, lb_array *a, lb_array *b);

enum { LB_MAX_SPATIAL = 3 };

/* XLA's labels: lhs and out use b (batch), f (feature), 0 1 2 (space), rhs
 * uses o, i, 0 1 2; "" is "bf01" and "oi01". Zero stride or dilation is 1. */
typedef struct lb_conv_dims {
    char lhs[LB_MAX_SPATIAL + 3];
    char rhs[LB_MAX_SPATIAL + 3];
    char out[LB_MAX_SPATIAL + 3];
    bool reversal[LB_MAX_SPATIAL]; /* the kernel runs backward there */
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
    LB_BOUNDS_CLAMP = 0, /* starts are moved so that the slice fits */
    LB_BOUNDS_FILL = 1,  /* gather: fill; scatter: leave out */
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
    bool has_fill; /* else NaN, the least signed, the largest unsigned, true */
    double fill;   /* exact for integers up to 2^53 */
} lb_gather_dims;

LB_API lb_array *lb_gather(lb_ctx *cx, lb_array *a, lb_array *starts,
                           const lb_gather_dims *dims);
/* a with updates added where lb_gather with the same dims would have read
 * them: the transpose of gather. Repeated places add up, in order. */
LB_API lb_array *lb_scatter_add(lb_ctx *cx, lb_array *a, lb_array *starts,
                                lb_array *updates, const lb_gather_dims *dims);
/* Slices of a along axis, one for each index (clamped). */
LB_API lb_array *lb_take(lb_ctx *cx, lb_array *a, lb_array *index, int axis);
/* Rows of table: lb_take along axis 0. */
LB_API lb_array *lb_embedding(lb_ctx *cx, lb_array *table, lb_array *index);

/* ---- for networks ------------------------------------------------------ */

LB_API lb_array *lb_relu(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_silu(lb_ctx *cx, lb_array *x);
LB_API lb_array *lb_gelu(lb_ctx *cx, lb_array *x);      /* with erf */
LB_API lb_array *lb_gelu_tanh(lb_ctx *cx, lb_array *x); /* approximated */
LB_API lb_array *lb_softmax(lb_ctx *cx, lb_array *x, int axis);
LB_API lb_array *lb_log_softmax(lb_ctx *cx, lb_array *x, int axis);
/* axes NULL: all. keep: the axes stay with size 1. The mean and the variance
 * of an empty group are NaN. */
LB_API lb_array *lb_sum(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                        bool keep);
LB_API lb_array *lb_mean(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                         bool keep);
LB_API lb_array *lb_var(lb_ctx *cx, lb_array *x, const lb_axes *axes,
                        bool keep);
/* Over the last axis; weight and bias may be NULL. */
LB_API lb_array *lb_rms_norm(lb_ctx *cx, lb_array *x, lb_array *weight,
                             double eps);
LB_API lb_array *lb_layer_norm(lb_ctx *cx, lb_array *x, lb_array *weight,
                               lb_array *bias, double eps);
/* -log softmax(logits)[label] over the last axis, for integer labels of
 * logits' leading shape; not averaged. A label outside gives NaN. */
LB_API lb_array *lb_cross_entropy(lb_ctx *cx, lb_array *logits,
                                  lb_array *labels);
/* The mean of (x - y)^2, a scalar. */
LB_API lb_array *lb_squared_error(lb_ctx *cx, lb_array *x, lb_array *y);

/* ---- gradients ---------------------------------------------------------- */

/* A function of arrays, composed of the operations here. What it makes belongs
 * to the scope that is open when it is called; it may open others. */
typedef lb_array *(*lb_fn)(lb_ctx *cx, lb_array *const *args, int n,
                           void *user);

/* fn(args), a float scalar, and the gradients of its first n_grad arguments,
 * which are floats in any format, in grad: dense, of their shape and dtype;
 * zeros where nothing depends on one. Value and gradients belong to the open
 * scope, all else is gone. NULL, and NULLs in grad, on error: also where
 * something on the way has no gradient. Integers, bools and what fn reaches
 * otherwise than through args are constants. Calls nest: fn may take gradients
 * itself. */
LB_API lb_array *lb_value_and_grad(lb_ctx *cx, lb_fn fn, lb_array *const *args,
                                   int n, void *user, lb_array **grad,
                                   int n_grad);
/* a, as a constant. */
LB_API lb_array *lb_stop_gradient(lb_ctx *cx, lb_array *a);
/* fn(x), of x's shape and a float dtype, with the identity as derivative:
 * what lb_straight_through is for lb_quantize. */
LB_API lb_array *lb_ste(lb_ctx *cx, lb_fn fn, lb_array *x, void *user);

/* The same by hand. From lb_tape_open to lb_tape_close the context's calls are
 * recorded, as far as they depend on arrays that are watched. Tapes close in
 * the opposite order, and before their context. */
typedef struct lb_tape lb_tape;
LB_API lb_tape *lb_tape_open(lb_ctx *cx);
/* a, this very array and no other view of it, is one that gradients are taken
 * of from now on. It may be one on the way, which a recorded call has made. */
LB_API bool lb_tape_watch(lb_tape *tape, lb_array *a);
/* Gradients of `of`, n arrays that are watched, if that of y is dy (NULL: 1, if
 * y is a scalar); they belong to the open scope. What was recorded, and what
 * is watched, is forgotten with it. False, and NULLs in grad, on error. */
LB_API bool lb_tape_grad(lb_tape *tape, lb_array *y, lb_array *dy,
                         lb_array *const *of, int n, lb_array **grad);
LB_API void lb_tape_close(lb_tape *tape);

/* ---- training ----------------------------------------------------------- */

typedef enum lb_method { LB_SGD = 0, LB_ADAM = 1, LB_ADAMW = 2 } lb_method;
typedef enum lb_schedule { LB_CONSTANT = 0, LB_COSINE = 1 } lb_schedule;

typedef struct lb_optimizer_config {
    size_t struct_size;
    lb_method method;
    double rate;     /* 0: 1e-2 for sgd, else 1e-3 */
    double momentum; /* sgd */
    bool nesterov;
    double beta1, beta2, eps; /* adam; 0: 0.9, 0.999, 1e-8 */
    double decay;             /* of weights; adamw: not through the gradient */
    double
        clip_norm; /* the norm that all gradients together may have; 0: any */
    lb_schedule schedule; /* of the rate: cosine goes down to least * rate in
                           * `steps` steps */
    int64_t warmup; /* steps in which the rate goes up, from rate / warmup */
    int64_t steps;
    double least;
    const lb_quant_config *state; /* how moments are kept between steps; copied,
                                   * but for its strings; NULL: as f32. 8 bits:
                                   * {.format = "dynamic8"} */
} lb_optimizer_config;

typedef struct lb_optimizer lb_optimizer;

/* For n parameters, floats of which only shapes and dtypes matter here. */
LB_API lb_optimizer *lb_optimizer_open(lb_ctx *cx,
                                       const lb_optimizer_config *config,
                                       lb_array *const *params, int n);
/* NULL is fine. Before its context is closed. */
LB_API void lb_optimizer_close(lb_optimizer *o);
/* Replaces params by the next ones, which belong to the open scope and have
 * the same dtypes; or nothing happens at all. */
LB_API bool lb_optimizer_step(lb_optimizer *o, lb_array **params,
                              lb_array *const *grads);
LB_API int64_t lb_optimizer_steps(const lb_optimizer *o); /* done so far */
/* The rate of a step, counted from 0, as config has it: nothing is a default
 * here. */
LB_API double lb_schedule_rate(const lb_optimizer_config *config, int64_t step);
/* The arrays that a state consists of, and each, in the open scope, with a
 * name for it in name (size bytes; may be NULL): what a file keeps. Given back
 * in their order, training goes on with the same bits. */
LB_API int lb_optimizer_count(const lb_optimizer *o);
LB_API lb_array *lb_optimizer_state(lb_optimizer *o, int i, char *name,
                                    size_t size);
LB_API bool lb_optimizer_restore(lb_optimizer *o, lb_array *const *state,
                                 int n);

/* ---- random numbers ---------------------------------------------------- */

/* Counter-based (Philox 4x32-10): element i of (seed, stream) has the same
 * bits on every machine, level and thread count. */
typedef struct lb_key {
    uint64_t seed, stream;
} lb_key;

/* A key that is independent of key and of any other n. */
LB_API lb_key lb_key_fold(lb_key key, uint64_t n);
/* Uniform bits in any integer dtype. */
LB_API lb_array *lb_random_bits(lb_ctx *cx, lb_key key, lb_dtype dtype,
                                lb_shape shape);
/* Floats, lo <= x < hi. */
LB_API lb_array *lb_random_uniform(lb_ctx *cx, lb_key key, lb_dtype dtype,
                                   lb_shape shape, double lo, double hi);
/* Floats, mean 0 and variance 1. */
LB_API lb_array *lb_random_normal(lb_ctx *cx, lb_key key, lb_dtype dtype,
                                  lb_shape shape);
/* 0 .. n-1 in random order, as i64. */
LB_API lb_array *lb_random_permutation(lb_ctx *cx, lb_key key, int64_t n);

/* ---- what happens inside ----------------------------------------------- */

/* The primitive of that name on these operands, in one line: shapes, the tier
 * and kernel it would take, units of work, threads, scratch bytes (shared, and
 * each thread's). No eval runs, but packed blocks are moved where they can be,
 * and a format's rule is followed, to know that they can.
 * params as the primitive takes them (lowbit_params.h); NULL if none.
 * The text belongs to the context until the next call; NULL on error. */
LB_API const char *lb_explain(lb_ctx *cx, const char *primitive,
                              lb_array *const *in, int n, const void *params);

#ifdef __cplusplus
}
#endif
#endif
