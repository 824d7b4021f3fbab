/* entries.h - the arrays of a file, of one tensor or of a group of them.
 *
 * A layout knows how another program (or ours) lays one array into several
 * tensors, and by which of them it is known:
 *
 *     up.weight                U8  (22528,1)
 *     up.weight.absmax         F32 (704)           up.weight (352,128), one
 *     up.weight.quant_map      F32 (16)       ->   array of 4 bits
 *     up.weight.quant_state..  U8  (80)
 *
 * It is one file that ends in one struct, a lb_file_layout, and one line in
 * registry_io.c. Tensors that none claims are entries by themselves.
 */
#ifndef LB_ENTRIES_H
#define LB_ENTRIES_H

#include "io/containers/container.h"

enum { LB_GROUP_MOST = 16 }; /* tensors of a group */

typedef struct lb_file_layout lb_file_layout;
typedef struct lb_saved lb_saved;         /* saver.h */
typedef struct lb_described lb_described; /* descriptor.h */
typedef struct lb_cut lb_cut;             /* slices.h */

typedef struct lb_group {
    lb_entry entry;
    const lb_file_layout *layout; /* NULL: one tensor, dense or unknown */
    /* As the layout numbers them, NULL where there is none; the first stands
     * for the entry's place in the file. */
    const lb_tensor *tensor[LB_GROUP_MOST];
    void *own;                     /* the layout's, from the arena */
    const lb_described *described; /* by lb_group_described */
} lb_group;

enum { LB_MODEL_TYPES = 6 };

/* What config.json beside a file says about its weights; "" where it does not,
 * or there is none. */
typedef struct lb_model_config {
    bool there;
    char quant_method[64];  /* "unknown": quantized, and not said how */
    const char *quant_file; /* which file has it: "config.json", ... */
    bool quant_read;        /* by lb_quant_config_of */
    char linear_class[32];
    char dtype[16]; /* of the model: "bfloat16" */
    /* model_type, of it and of the models that it is made of */
    char type[LB_MODEL_TYPES][32];
    int n_types;
} lb_model_config;

struct lb_file {
    lb_reader *r;
    lb_file_options options;
    lb_arena arena;          /* holds this and what follows */
    lb_model_config *config; /* by lb_model_config_of */
    lb_group **group;        /* in the order of the file */
    int64_t n;
    lb_group **by_name;
};

/* Of what a reader, which is taken over in any case, lists. NULL is handed
 * through. */
lb_file *lb_file_of(lb_ctx *cx, lb_reader *r, const lb_file_options *options);

/* Rows of the first axis; hi < 0: all there is, also of a scalar. */
typedef struct lb_rows {
    int64_t lo, hi;
} lb_rows;

/* What a program must know to load a directory. */
typedef struct lb_loading {
    const char *dtype; /* of the model: "bfloat16" */
    const char *linear_class;
    bool double_quant;
    /* Modules whose weights are floats, as patterns of Python's. plain: they
     * are what the program leaves so by itself, if it is given no list. */
    const char *const *skip;
    int64_t n_skip;
    bool plain;
} lb_loading;

struct lb_file_layout {
    const char *name;
    const char *format; /* the only one that it takes; NULL: it takes several */
    /* Must. Whether t, which belongs to nobody yet, is the one by which a group
     * is known: then fills g, whose entry has place for n_tensors and nbytes
     * that are counted for it, and says LB_DONE. LB_FAILED: it is, and what
     * should be beside it is not. */
    lb_verdict (*find)(lb_ctx *, lb_file *f, const lb_tensor *t, lb_group *g);
    /* Must. The array, or rows of it, which are inside. */
    lb_array *(*load)(lb_ctx *, lb_file *f, const lb_group *g, lb_rows rows);
    /* May, both, to be written. plan lists the tensors of an array with
     * lb_saver_tensor, or declines what it has no place for; part is what goes
     * to the k-th of them, dense. */
    lb_verdict (*plan)(lb_ctx *, lb_saver *s, lb_saved *item);
    lb_array *(*part)(lb_ctx *, const lb_saved *item, lb_array *a, int k);
    /* May. Whether rows are loaded without the rest of the array; NULL: not. */
    bool (*cuts)(const lb_group *g);
    /* May. What an array that it has found is made of, when it is loaded; from
     * f's arena; NULL and an error. Without it boxes are cut from what is
     * loaded whole. */
    const lb_described *(*describe)(lb_ctx *, lb_file *f, const lb_group *g);
    /* Must, with it: a box of the array, which cuts through no block. */
    lb_array *(*load_cut)(lb_ctx *, lb_file *f, const lb_group *g,
                          const lb_cut *box);
    /* May. Where that box is in the k-th tensor, as plan lists them, of an
     * array so described; false: nowhere that is not shared with others. */
    bool (*place)(const lb_described *d, int k, const lb_cut *box, lb_cut *to);
    /* Parts of pieces of rows, one after the other, are those of the array;
     * and those that rows share are the same in each. */
    bool rows;
    /* May. *bytes: what the k-th tensor is for a slice, u8, if it says the
     * array's shape; else it is left alone. False and an error. */
    bool (*restate)(lb_ctx *, lb_file *f, const lb_group *g, int k,
                    const lb_cut *box, const lb_array **bytes);
    /* May. An array that was quantized for this layout as its readers want it,
     * and as plan expects one that is to come: scales of another dtype. */
    lb_array *(*adapt)(lb_ctx *, lb_array *a);
    /* plan must know lb_saved.offset of double quantization. */
    bool wants_offset;
    /* May. Of layouts that a program loads whole directories of: why it takes
     * an array as floats only, a static text; NULL: packed, too. */
    const char *(*refuses)(const lb_model_config *c, const lb_entry *e);
    lb_compat compat; /* with it: the program's arithmetic */
    /* Must, with it: what "quantization_config" in config.json is to be. */
    void (*configure)(lb_bytes *to, const lb_loading *how);
};

/* The layout of that name and the format that it takes; NULL if it takes none:
 * for adapt and wants_offset. */
const lb_file_layout *lb_file_layout_for(const char *name, const char *format);

extern const lb_file_layout *const lb_file_layouts[]; /* ends with NULL */

/* ---- for layouts --------------------------------------------------------- */

/* A tensor's shape as arrays have it, or an error that names it. */
bool lb_tensor_shape(lb_ctx *cx, const lb_file *f, const lb_tensor *t,
                     lb_shape *shape);
/* Bytes of a tensor from first on, as elements of dtype in that shape: in place
 * if they can be, else a copy. */
lb_array *lb_tensor_part(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                         uint64_t first, lb_dtype dtype, const lb_shape *shape);
/* A tensor of one of our dtypes, or rows of it. */
lb_array *lb_tensor_load(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                         lb_rows rows);
/* Whether name is something and then suffix; *n: the length of the former. */
bool lb_name_ends(const char *name, const char *suffix, size_t *n);
/* Whether there is a tensor, of that dtype (none: any) and shape, for what an
 * array is to have; else an error. */
bool lb_tensor_want(lb_ctx *cx, const lb_file *f, const char *array,
                    const char *what, const lb_tensor *t, lb_dtype dtype,
                    const lb_shape *shape);
/* Elements of a shape from a file; false if they cannot be counted. */
bool lb_shape_count(const lb_shape *shape, int64_t *n);
/* By the name that Python's programs have for a dtype: "bfloat16"; or none. */
lb_dtype lb_dtype_of_torch(const char *name);
/* Read once, when it is first asked for; NULL and an error. */
const lb_model_config *lb_model_config_of(lb_ctx *cx, lb_file *f);
/* The same with quant_method from other files, if config.json has none. */
const lb_model_config *lb_quant_config_of(lb_ctx *cx, lb_file *f);
/* What a config.json says; NULL is false. */
bool lb_model_config_read(lb_ctx *cx, lb_infile *file, lb_model_config *c);
/* default_policy.c: what a name says about an array that should keep its
 * precision: "norm", ...; NULL: nothing. */
const char *lb_name_role(const char *name);
/* Whether that is an embedding, or the output head. */
bool lb_role_is_embedding(const char *role);
bool lb_role_is_head(const char *role);
/* Whether that is why lb_choose_weights leaves an array. */
bool lb_role_is_tiny(const char *role);
/* hf_rules.c: lb_file_layout.refuses of those that pack linear layers only. */
const char *lb_linear_only(const lb_model_config *c, const lb_entry *e);
/* Whether it is an expert's by itself, P.experts.7.Q. */
bool lb_name_is_expert(const char *name);
/* A list of texts as JSON; NULL is null. */
void lb_put_texts(lb_bytes *to, const char *const *text, int64_t n);
/* Rows of an array that has all of them; the array itself if that is meant. */
lb_array *lb_rows_of(lb_ctx *cx, lb_array *a, lb_rows rows);

#endif
