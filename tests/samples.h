/* samples.h - calls of every primitive, for the laws to loop over.
 *
 * A sample is a description: a primitive's name, its params, and for each
 * operand a dtype, a shape and the kind of its values. The laws make the
 * operands from it, as any view of any format:
 *
 *     samples x operand position x view x format
 *
 * A primitive that is listed in the registry and has no sample here is a
 * failure of every law.
 */
#ifndef LB_SAMPLES_H
#define LB_SAMPLES_H

#include "lowbit_ext.h"
#include "lowbit_params.h"

enum { SAMPLE_MAX_IN = 10 };

typedef enum sample_kind {
    VALUES_ANY,   /* specials among ordinary numbers; one kind of NaN */
    VALUES_BITS,  /* any bits, also NaNs with payloads: nobody computes */
    VALUES_TAME,  /* ordinary numbers whose sums do not overflow */
    VALUES_INDEX, /* integers in lo .. hi - 1 */
} sample_kind;

typedef struct sample_operand {
    lb_dtype dtype;
    lb_shape shape;
    sample_kind kind;
    int64_t lo, hi; /* of VALUES_INDEX */
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
    lb_dot_dims dot;
    lb_conv_dims conv;
    lb_random_params random;
    lb_random_uniform_params uniform;
    lb_random_permutation_params permutation;
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

/* Small ones cover dtypes, ranks and odd cases; large ones are cut into
 * several units of work. */
typedef enum sample_size { SAMPLES_SMALL, SAMPLES_LARGE } sample_size;

/* Samples of the primitive of that name; none if it is unknown. */
sample_list samples_of(const char *prim, sample_size size);
void samples_free(sample_list *list);
/* "dot_general f32(2,3) f32(3,4)", in place. */
lb_text sample_text(const sample *s);

/* For those who list samples: adds one and returns it, to be filled. */
sample *sample_add(sample_list *list, const char *prim);
sample_operand *sample_in(sample *s, lb_dtype dtype, lb_shape shape,
                          sample_kind kind);
/* samples_structure.c, samples_products.c: false if the name is not theirs. */
bool samples_structure(const char *prim, sample_size size, sample_list *list);
bool samples_products(const char *prim, sample_size size, sample_list *list);

/* Kinds of dtypes, as bits, and the dtypes of each. */
enum { KIND_F = 1, KIND_I = 2, KIND_U = 4, KIND_B = 8, KIND_ALL = 15 };
int sample_kind_of(lb_dtype dtype);
/* The kinds that an elementwise primitive takes; 0 if it is not one. */
int sample_kinds(const char *prim);

/* ---- values, views, formats --------------------------------------------- */

/* Elements of an operand, row-major, by a generator of a fixed seed. */
void sample_fill(const sample_operand *o, uint64_t seed, int64_t n, void *dst);

/* A way to store numbers: one for each format of the registry. */
typedef struct sample_format {
    const char *name;
    bool (*takes)(lb_dtype dtype);
    /* An array of that shape whose values are near data, row-major. */
    lb_array *(*make)(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                      const void *data);
} sample_format;
extern const sample_format sample_formats[]; /* ends with name == NULL */
const sample_format *sample_format_named(const char *name);
/* Formats that only tests know, so that laws are about more than dense; their
 * values are their own. Ends with name == NULL. */
extern const sample_format sample_toys[];

/* A way to look at them: an array of operand's shape and dtype whose storage
 * is such a view; NULL without an error if there is none for that shape. */
typedef struct sample_view {
    const char *name;
    lb_array *(*make)(lb_ctx *cx, const sample_format *f,
                      const sample_operand *o, uint64_t seed);
} sample_view;
extern const sample_view sample_views[]; /* the first is plain */

/* The elements of any array, row-major: decoded one by one from where the
 * strides say, without the code that is tested. malloc'ed; *size in bytes. */
void *sample_read(const lb_array *a, size_t *size);
/* A plain array of the same elements. */
lb_array *sample_plain(lb_ctx *cx, const lb_array *a);
/* Same shape, dtype and bits; else false, and where they differ in *why. */
bool sample_same(const lb_array *a, const lb_array *b, lb_text *why);

#endif
