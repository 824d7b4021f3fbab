/* entries.h - the arrays of a file, each stored in one tensor or in a group.
 *
 * A layout knows how a program stores one array in several tensors, and which
 * tensor identifies the group:
 *
 *     up.weight                U8  (22528,1)
 *     up.weight.absmax         F32 (704)           up.weight (352,128), one
 *     up.weight.quant_map      F32 (16)       ->   array of 4 bits
 *     up.weight.quant_state..  U8  (80)
 *
 * A layout is one file that ends in one struct, a lb_file_layout, and one line
 * in registry_io.c. Tensors that no layout claims are arrays by themselves.
 */
#ifndef LB_ENTRIES_H
#define LB_ENTRIES_H

#include "io/containers/container.h"

enum { LB_GROUP_MOST = 16 }; /* tensors of a group */

typedef struct lb_file_layout lb_file_layout;
typedef struct lb_saved lb_saved;         /* saver.h */
typedef struct lb_described lb_described; /* descriptor.h */
typedef struct lb_cut lb_cut;             /* slices.h */
typedef struct lb_moving lb_moving;       /* move_array.h */
typedef struct lb_move_plan lb_move_plan;
typedef struct lb_settings lb_settings; /* settings.h */

typedef struct lb_group {
    lb_entry entry;
    const lb_file_layout *layout; /* NULL: one tensor, dense or unsupported */
    /* In the order defined by the layout, NULL if missing. The first one
     * determines the position of the array in the list. */
    const lb_tensor *tensor[LB_GROUP_MOST];
    void *own;                     /* data of the layout, in the arena */
    const lb_described *described; /* set by lb_group_described */
} lb_group;

enum { LB_MODEL_TYPES = 6 };

/* What config.json next to a file says about its weights; "" if unknown. */
typedef struct lb_model_config {
    bool there;
    char quant_method[64];  /* "unknown": quantized, but no method is named */
    const char *quant_file; /* the file that names it: "config.json", ... */
    bool quant_read;        /* set by lb_quant_config_of */
    char linear_class[32];
    int64_t block[2]; /* weight_block_size: rows and columns; or 0 */
    char dtype[16];   /* of the model: "bfloat16" */
    /* model_type of the model and of the models inside it */
    char type[LB_MODEL_TYPES][32];
    int n_types;
} lb_model_config;

struct lb_file {
    lb_reader *r;
    lb_file_options options;
    lb_arena arena;              /* holds this struct and the fields below */
    lb_model_config *config;     /* set by lb_model_config_of */
    const lb_settings *settings; /* set by lb_settings_of */
    lb_group **group;            /* in file order */
    int64_t n;
    lb_group **by_name;
};

/* Lists the arrays of a reader, which it takes over in any case. A NULL reader
 * returns NULL. */
lb_file *lb_file_of(lb_ctx *cx, lb_reader *r, const lb_file_options *options);

/* Rows of the first axis; hi < 0: everything, also of a scalar. */
typedef struct lb_rows {
    int64_t lo, hi;
} lb_rows;

/* What a loader of a model directory needs to know. */
typedef struct lb_loading {
    const char *dtype; /* of the model: "bfloat16" */
    const char *linear_class;
    bool double_quant;
    /* Modules whose weights are floats, as Python patterns. plain: these are
     * the ones that the loader skips by default. */
    const char *const *skip;
    int64_t n_skip;
    bool plain;
    const lb_saved *packed; /* quantized arrays of the output, with their
                             * descriptors */
    int64_t n_packed;
} lb_loading;

struct lb_file_layout {
    const char *name;
    const char *format; /* the only format that it stores; NULL: several */
    /* Required. Whether t, which no layout has claimed yet, identifies a group.
     * If so, fills g, whose entry has n_tensors and nbytes already set, and
     * returns LB_DONE; LB_FAILED if tensors that belong to it are missing or
     * wrong. */
    lb_verdict (*find)(lb_ctx *, lb_file *f, const lb_tensor *t, lb_group *g);
    /* Required. Loads the array, or rows in range. */
    lb_array *(*load)(lb_ctx *, lb_file *f, const lb_group *g, lb_rows rows);
    /* Optional, both required for writing. plan adds the tensors of an array
     * with lb_saver_tensor, or declines what the layout cannot store. part is
     * the dense content of the k-th of them. */
    lb_verdict (*plan)(lb_ctx *, lb_saver *s, lb_saved *item);
    lb_array *(*part)(lb_ctx *, const lb_saved *item, lb_array *a, int k);
    /* Optional. Whether rows can be loaded without reading the whole array;
     * NULL: no. */
    bool (*cuts)(const lb_group *g);
    /* Optional. Describes an array that it has found, in memory of f's arena;
     * NULL and an error. Without it, slices are cut from the whole array. */
    const lb_described *(*describe)(lb_ctx *, lb_file *f, const lb_group *g);
    /* Required with describe. Loads a box that splits no block. */
    lb_array *(*load_cut)(lb_ctx *, lb_file *f, const lb_group *g,
                          const lb_cut *box);
    /* Optional. Where a box is in the k-th tensor, in the order of plan; false:
     * its bytes are shared with other boxes. */
    bool (*place)(const lb_described *d, int k, const lb_cut *box, lb_cut *to);
    /* The parts of row pieces can be concatenated, and parts shared by all rows
     * are the same in every piece. */
    bool rows;
    /* Optional. *bytes (u8): new content of the k-th tensor for a slice, if
     * that tensor contains the array's shape; otherwise unchanged. False and an
     * error. */
    bool (*restate)(lb_ctx *, lb_file *f, const lb_group *g, int k,
                    const lb_cut *box, const lb_array **bytes);
    /* Optional. Converts a quantized array to what readers of this layout, and
     * plan, expect: scales of another dtype. */
    lb_array *(*adapt)(lb_ctx *, lb_array *a);
    /* Required with moves: the arrays that it stores, in words; and whether the
     * program loads an output head that is packed. */
    const char *stores;
    bool packs_head;
    /* Optional. How an array of another layout would be stored in this one, by
     * the same codes; false: not at all. */
    bool (*moves)(lb_ctx *, const lb_moving *m, lb_move_plan *to);
    /* plan needs lb_saved.offset for double quantization. */
    bool wants_offset;
    /* Optional, for layouts of model directories. Why the loader expects an
     * array as floats, as a static text; NULL: packed is fine. */
    const char *(*refuses)(const lb_model_config *c, const lb_entry *e);
    lb_compat compat; /* with refuses: the arithmetic of the loader */
    /* Required with refuses. Writes "quantization_config" of config.json. */
    void (*configure)(lb_bytes *to, const lb_loading *how);
};

/* The layout of that name, for arrays of that format; NULL if it does not store
 * them: for adapt and wants_offset. */
const lb_file_layout *lb_file_layout_for(const char *name, const char *format);

extern const lb_file_layout *const lb_file_layouts[]; /* ends with NULL */

/* layout_ggml.c: the format of a block type of GGUF files ("Q4_0"); NULL: it is
 * not supported. */
const lb_format *lb_file_block_format(const lb_ctx *cx, const char *type);

/* ---- for layouts --------------------------------------------------------- */

/* The shape of a tensor, or an error that names it if its rank is too high. */
bool lb_tensor_shape(lb_ctx *cx, const lb_file *f, const lb_tensor *t,
                     lb_shape *shape);
/* Bytes of a tensor, from `first` on, as elements of dtype: zero-copy if
 * possible, else a copy. */
lb_array *lb_tensor_part(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                         uint64_t first, lb_dtype dtype, const lb_shape *shape);
/* A tensor of a supported dtype, or rows of it. */
lb_array *lb_tensor_load(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                         lb_rows rows);
/* Whether name is a prefix followed by suffix; *n: length of the prefix. */
bool lb_name_ends(const char *name, const char *suffix, size_t *n);
/* Checks that tensor `what` of an array exists and has that dtype (LB_NO_DTYPE:
 * any) and shape; else an error. */
bool lb_tensor_want(lb_ctx *cx, const lb_file *f, const char *array,
                    const char *what, const lb_tensor *t, lb_dtype dtype,
                    const lb_shape *shape);
/* The number of elements of an untrusted shape; false if it overflows. */
bool lb_shape_count(const lb_shape *shape, int64_t *n);
/* The dtype of a torch name such as "bfloat16"; or LB_NO_DTYPE. */
lb_dtype lb_dtype_of_torch(const char *name);
/* Reads config.json on first use; NULL and an error. */
const lb_model_config *lb_model_config_of(lb_ctx *cx, lb_file *f);
/* The same, with quant_method from other files if config.json has none. */
const lb_model_config *lb_quant_config_of(lb_ctx *cx, lb_file *f);
/* Metadata of a safetensors file without a directory: the part of config.json
 * that says how its arrays are stored. */
#define LB_CONFIG_KEY "config.json"
/* That text as a file; *file NULL: there is none. False and an error. */
bool lb_config_inside(lb_ctx *cx, const lb_file *f, lb_infile **file);
/* Parses a config.json; returns false if file is NULL. */
bool lb_model_config_read(lb_ctx *cx, lb_infile *file, lb_model_config *c);
/* default_policy.c: the role of an array, from its name, that asks for full
 * precision: "norm", ...; NULL: none. */
const char *lb_name_role(const char *name);
/* Whether a role is that of an embedding, or of the output head. */
bool lb_role_is_embedding(const char *role);
bool lb_role_is_head(const char *role);
/* Whether lb_choose_weights keeps an array because it is tiny. */
bool lb_role_is_tiny(const char *role);
/* hf_rules.c: lb_file_layout.refuses of layouts that pack linear layers only.
 */
const char *lb_linear_only(const lb_model_config *c, const lb_entry *e);
/* Whether it belongs to a single expert: P.experts.7.Q. */
bool lb_name_is_expert(const char *name);
/* Writes a list of strings as JSON; NULL is null. */
void lb_put_texts(lb_bytes *to, const char *const *text, int64_t n);
/* Rows of a loaded array; the array itself if all rows are selected. */
lb_array *lb_rows_of(lb_ctx *cx, lb_array *a, lb_rows rows);

#endif
