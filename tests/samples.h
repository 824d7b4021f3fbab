/* samples.h - calls of every primitive, for the laws to loop over.
 *
 * A sample is a description: a primitive's name, its params, and for each
 * operand a dtype, a shape and the kind of its values. The laws make the
 * operands from it, as any view of any format:
 *
 *     samples x operand position x view x format
 *
 * A registered primitive without a sample fails every law.
 */
#ifndef LB_SAMPLES_H
#define LB_SAMPLES_H

#include "lowbit_ext.h"
#include "lowbit_params.h"

enum { SAMPLE_MAX_IN = 10 };

typedef enum sample_kind {
    VALUES_ANY,    /* special values among ordinary ones; one kind of NaN */
    VALUES_BITS,   /* any bits, also NaNs with payloads: only copied */
    VALUES_TAME,   /* ordinary values whose sums do not overflow */
    VALUES_FINITE, /* any finite value that is not extremely large */
    VALUES_INDEX,  /* integers in lo .. hi - 1 */
    VALUES_SMOOTH, /* 2^-2 <= |x| < 1: where functions have derivatives */
    VALUES_PLUS,   /* the same, nonnegative */
} sample_kind;

typedef struct sample_operand {
    lb_dtype dtype;
    lb_shape shape;
    sample_kind kind;
    int64_t lo, hi; /* of VALUES_INDEX */
    bool scaled;    /* must be stored with scales: never dense */
} sample_operand;

typedef union sample_params {
    lb_convert_params convert;
    lb_integer_pow_params integer_pow;
    lb_transpose_params transpose;
    lb_reshape_params reshape;
    lb_broadcast_params broadcast;
    lb_slice_params slice;
    lb_reverse_params reverse;
    lb_concatenate_params concatenate;
    lb_pad_params pad;
    lb_dynamic_slice_params dynamic_slice;
    lb_iota_params iota;
    lb_gather_dims gather;
    lb_reduce_params reduce;
    lb_argminmax_params arg;
    lb_softmax_params softmax;
    lb_norm_params norm;
    lb_dot_dims dot;
    lb_conv_dims conv;
    lb_rope_params rope;
    lb_attention_params attention;
    lb_random_params random;
    lb_random_uniform_params uniform;
    lb_random_permutation_params permutation;
    lb_quant quant;
} sample_params;

typedef struct sample {
    const char *prim;
    int n_in;
    sample_operand in[SAMPLE_MAX_IN];
    sample_params params;
} sample;

typedef struct sample_list {
    sample *item;
    int n, room;
} sample_list;

/* Small samples cover dtypes, ranks and unusual cases; large ones are split
 * into several units of work. */
typedef enum sample_size { SAMPLES_SMALL, SAMPLES_LARGE } sample_size;

/* Samples of the primitive of that name; none if it is unknown. */
sample_list samples_of(const char *prim, sample_size size);
void samples_free(sample_list *list);
/* "dot_general f32(2,3) f32(3,4)", in `place`. */
lb_text sample_text(const sample *s);

/* For files that list samples: adds one and returns it to be filled. */
sample *sample_add(sample_list *list, const char *prim);
sample_operand *sample_in(sample *s, lb_dtype dtype, lb_shape shape,
                          sample_kind kind);
/* samples_structure.c, samples_products.c, samples_quantize.c: false if the
 * name is not one of theirs. */
bool samples_structure(const char *prim, sample_size size, sample_list *list);
bool samples_products(const char *prim, sample_size size, sample_list *list);
bool samples_quantize(const char *prim, sample_size size, sample_list *list);

/* Kinds of dtypes, as bits, and the dtypes of each. */
enum { KIND_F = 1, KIND_I = 2, KIND_U = 4, KIND_B = 8, KIND_ALL = 15 };
int sample_kind_of(lb_dtype dtype);
/* The kinds that an elementwise primitive accepts; 0 if it is not one. */
int sample_kinds(const char *prim);

/* ---- values, views, formats --------------------------------------------- */

/* Elements of an operand, row-major, from a generator with a fixed seed. */
void sample_fill(const sample_operand *o, uint64_t seed, int64_t n, void *dst);

/* Replaces values that not every format can represent by ordinary ones. */
void sample_mend(lb_dtype dtype, int64_t n, void *data);

/* A way to store values: a format with default or other settings. */
typedef struct sample_format sample_format;
struct sample_format {
    const char *name;     /* "nf4", "nf4, block 2" */
    const lb_format *fmt; /* NULL: dense */
    bool variant;         /* settings; NULL: the format's defaults */
    lb_quant_config config;
    bool all_axes; /* config.axes are all axes of an array */
    int every;     /* sample_takes accepts only one of so many operands, unless
                    * it is 0 or LB_TEST_EVERY_FORMAT is set: the format shares
                    * its functions with others */
    int max_rank;  /* parts with an axis of their own may need one */
    /* An array of that shape whose values are close to data, row-major, or
     * values of its own. NULL: there is no constructor, which fails the laws.
     */
    lb_array *(*make)(lb_ctx *cx, const sample_format *f, lb_dtype dtype,
                      lb_shape shape, const void *data);
};

extern const sample_format sample_dense;
/* Three formats for tests only; ends with name == NULL. */
extern const sample_format sample_toys[];

typedef struct sample_format_list {
    sample_format *item;
    int n;
} sample_format_list;

/* Every format that cx knows, each followed by its variants: those with an
 * encoder through lb_quantize, the others through listed constructors. */
sample_format_list sample_formats_of(const lb_ctx *cx);
void sample_formats_free(sample_format_list *list);
/* Adds the external formats of the tests: toys, examples. */
bool sample_add_outside(lb_ctx *cx);
/* Names of variants whose format cx does not know: "", or a list. */
lb_text sample_lost_variants(const lb_ctx *cx);

/* Whether an operand's dtype and rank can be stored this way. */
bool sample_takes(const sample_format *f, const sample_operand *o);
/* The config for an array of that rank and dtype, in *c. */
void sample_config(const sample_format *f, int rank, lb_dtype dtype,
                   lb_quant_config *c);
/* Scales that exist, are finite and are not quantized yet. */
bool sample_has_scales(const lb_array *a);

/* A view: an array of operand's shape and dtype whose storage is viewed that
 * way; NULL without an error if that shape has no such view. */
typedef struct sample_view {
    const char *name;
    lb_array *(*make)(lb_ctx *cx, const sample_format *f,
                      const sample_operand *o, uint64_t seed);
} sample_view;
extern const sample_view sample_views[]; /* the first is plain */

/* Whether an array packed for a view is kept for the next one, until turned
 * off; for one context at a time. */
void sample_remember(bool on);

/* The elements of any array, row-major, decoded one by one by strides, without
 * the code under test. malloc'ed; *size in bytes. */
void *sample_read(const lb_array *a, size_t *size);
/* A plain array of the same elements. */
lb_array *sample_plain(lb_ctx *cx, const lb_array *a);
/* Same shape, dtype and bits, for two similar views of one format in every
 * part; else false, with the difference in *why. */
bool sample_same(const lb_array *a, const lb_array *b, lb_text *why);

#endif
