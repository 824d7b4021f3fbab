/* lowbit_io.h - arrays in files. Link with liblowbit-io.
 *
 *     lb_file *f = lb_file_open(cx, "model.safetensors", NULL);
 *     for (int64_t i = 0; i < lb_file_count(f); i++)
 *         puts(lb_file_entry(f, i)->name);
 *     lb_array *w = lb_file_load(cx, f, "mlp.up.weight");
 *     lb_array *few = lb_file_load_rows(cx, f, "mlp.down.weight", 0, 16);
 *     lb_file_close(f);                         // w and few stay valid
 *
 *     const lb_planned list[] = {{.name = "w", .array = w},
 *                                {.name = "few", .array = few}};
 *     lb_save(cx, "two.safetensors", list, 2, NULL);
 *
 *     const lb_quantize_options o = {.config = {.format = "nf4"}};
 *     lb_quantize_file(cx, "model.safetensors", "small.safetensors", &o);
 *
 * The conventions of lowbit.h apply. Zero in options means the default, and
 * options may be NULL unless a member is required. struct_size is the sizeof of
 * the struct (for programs that run with a later version of the library), or 0.
 * The type of a file is detected from its content, never from its name.
 * Everything in a file is checked against the file's size before it is used.
 * LB_E_CONTENT means that a file is invalid, LB_E_FILE that the system reported
 * an error, LB_E_UNSUPPORTED that a file is valid but uses something not
 * supported here.
 */
#ifndef LOWBIT_IO_H
#define LOWBIT_IO_H

#include "lowbit_mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reading ------------------------------------------------------------- */

typedef struct lb_file lb_file;

/* Zero means the default. */
typedef struct lb_file_options {
    size_t struct_size;
    bool no_map; /* read the file instead of mapping it. For files that another
                  * process may truncate, because accessing the map would then
                  * kill this process, and to keep pages of the file out of this
                  * process's memory statistics */
    bool raw;    /* list raw tensors without grouping those that form one array
                  * (codes, scales, ...) */
    const char *linear_class; /* for BitNet files, "bitlinear" or
                               * "autobitlinear": whether weight_scale divides
                               * or multiplies. NULL: read it from config.json
                               * next to the file; without one such arrays are
                               * listed but cannot be loaded */
    uint64_t max_header; /* limit for the header of a safetensors file or its
                          * index, in bytes; 0: 100,000,000 */
} lb_file_options;

/* One array of a file. */
typedef struct lb_entry {
    const char *name;   /* unique in the file */
    const char *type;   /* element type as spelled in the file: "BF16", "Q4_K",
                         * "<f4"; for a quantized array, that of its codes */
    const char *format; /* "dense", ...; NULL: the type is not supported and the
                         * array cannot be loaded */
    const char *layout; /* layout of the tensors that form the array: "bnb",
                         * ...; NULL: a single tensor */
    lb_dtype dtype;     /* dtype when loaded; LB_NO_DTYPE if format is NULL */
    int rank;           /* may exceed LB_MAX_RANK, and dims may be too large to
                         * load */
    const int64_t *dim;
    int n_tensors;   /* number of tensors in the file that form the array */
    uint64_t nbytes; /* total size in the file, after decompression */
    bool by_rows;    /* lb_file_load_rows reads only these rows; otherwise the
                      * whole array, each time */
} lb_entry;

/* path: a file (safetensors, its index, GGUF, npy, npz), or a directory that
 * contains model.safetensors.index.json or model.safetensors. Reads the header
 * and the tensors that describe quantized arrays. options may be NULL. NULL and
 * an error on failure. */
LB_API lb_file *lb_file_open(lb_ctx *cx, const char *path,
                             const lb_file_options *options);
/* Arrays loaded from the file stay valid. NULL is allowed. */
LB_API void lb_file_close(lb_file *f);

/* "safetensors", "gguf", ...; static. NULL for NULL. Like all functions that
 * take no context, it may be called from any thread. */
LB_API const char *lb_file_kind(const lb_file *f);
LB_API int64_t lb_file_count(const lb_file *f); /* entries; 0 for NULL */
/* In file order; NULL past the end. Valid as long as f. */
LB_API const lb_entry *lb_file_entry(const lb_file *f, int64_t i);
LB_API const lb_entry *lb_file_find(const lb_file *f, const char *name);

/* How a checkpoint was quantized. */
typedef struct lb_quant_method {
    const char *name;   /* "gptq", "awq", "mlx", "bitsandbytes", ...: as
                         * quant_method in config.json spells it; NULL: not
                         * quantized, or a GGUF file */
    bool decoded;       /* lb_file_load can decode its arrays. If false, the
                         * tensors are codes and scales of an unsupported
                         * layout */
    const char *source; /* the file that names the method: "config.json"; NULL:
                         * it was recognized by its tensors */
    const char *tensor; /* an example of the recognized tensors; NULL: none */
} lb_quant_method;
/* Detects the method from the tensors and, for the weights of a model
 * directory, from its config.json, quantize_config.json, quant_config.json and
 * hf_quant_config.json. False and an error if one of these cannot be read.
 * Pointers in m are valid as long as f. */
LB_API bool lb_file_method(lb_ctx *cx, lb_file *f, lb_quant_method *m);

/* Loads an array in the format it is stored in. If possible (aligned,
 * little-endian, not compressed) its bytes stay in the mapped file, which must
 * then not change while the array lives. A file may be used by one thread at a
 * time. */
LB_API lb_array *lb_file_load(lb_ctx *cx, lb_file *f, const char *name);
/* Loads rows lo <= i < hi of the first axis; reads no more than necessary. */
LB_API lb_array *lb_file_load_rows(lb_ctx *cx, lb_file *f, const char *name,
                                   int64_t lo, int64_t hi);
/* Loads the box of count[k] elements starting at start[k] along each axis, in
 * the format it is stored in. Reads only the bytes of these codes and scales,
 * except where they cannot be read separately: rows packed into the same bytes,
 * scales that are themselves quantized in blocks, deflated tensors. LB_E_SHAPE
 * if the box begins or ends inside a block. */
LB_API lb_array *lb_file_load_slice(lb_ctx *cx, lb_file *f, const char *name,
                                    const int64_t *start, const int64_t *count);
/* Bytes read from its files so far, including headers; for a mapped file, the
 * bytes of the arrays that were loaded. 0 for NULL. */
LB_API uint64_t lb_file_bytes_read(const lb_file *f);
/* Opens the file, loads one array, closes it. */
LB_API lb_array *lb_load(lb_ctx *cx, const char *path, const char *name);

/* ---- files and meshes ---------------------------------------------------- */

/* Loads a sharded array: each rank reads only its slice, as lb_file_load_slice
 * does. Every rank must have opened the file, and all ranks must make this
 * call; they agree on its success. report: NULL, or read the spec as
 * lb_spec_parse does with a report; entries that would cut inside a block then
 * become None as well. */
LB_API lb_array *lb_file_load_sharded(lb_ctx *cx, lb_mesh *mesh, lb_file *f,
                                      const char *name, const char *spec,
                                      lb_spec_report *report);

/* Sharding rules by name: "PATTERN=P(None, tp)"; the first matching rule
 * applies. Patterns are unanchored Perl-compatible regular expressions. A rules
 * file has one rule per line; empty lines and lines that begin with # are
 * ignored. False and an error on failure. lb_rules_close accepts NULL. */
typedef struct lb_rules lb_rules;
LB_API lb_rules *lb_rules_open(lb_ctx *cx);
LB_API void lb_rules_close(lb_rules *r);
LB_API bool lb_rules_add(lb_ctx *cx, lb_rules *r, const char *text);
LB_API bool lb_rules_read(lb_ctx *cx, lb_rules *r, const char *path);

/* How an array will be sharded, and why. */
typedef struct lb_placement {
    const lb_entry *entry;
    lb_spec spec;
    const char *pattern;    /* of the rule that applies; NULL: none matches */
    const char *whole;      /* why the array is replicated on every rank (static
                             * text); NULL: it is sharded */
    lb_spec_report dropped; /* changes to the spec, if it was read relaxed */
} lb_placement;

/* The placement of one array of f. It is an error if the rule does not fit and
 * relaxed is false. Pointers in *to are valid as long as f and r. */
LB_API bool lb_rules_place(lb_ctx *cx, lb_rules *r, const lb_grid *grid,
                           lb_file *f, const char *name, bool relaxed,
                           lb_placement *to);
/* To be called after all arrays were placed: an error if a pattern matched no
 * name. */
LB_API bool lb_rules_check(lb_ctx *cx, const lb_rules *r, const lb_file *f);

/* Zero means the default; mesh and rules are required. */
typedef struct lb_shard_options {
    size_t struct_size;
    const char *mesh; /* "dp=2,tp=4" */
    lb_rules *rules;  /* a pattern that matches no name is an error */
    bool relaxed;     /* drop the parts of a rule that do not fit, and report
                       * them */
    bool dry_run;     /* call placed, but write nothing */
    bool no_sync;
    /* Called for each array, the i-th of n. May be NULL. */
    void (*placed)(void *user, const lb_placement *p, int64_t i, int64_t n);
    void *user;
    /* Called after each piece of an array. True stops with LB_E_CANCELLED, and
     * leaves nothing behind. May be NULL. */
    bool (*cancel)(void *user);
    void *cancel_user;
} lb_shard_options;

/* Zero means the default; options may be NULL. */
typedef struct lb_merge_options {
    size_t struct_size;
    bool no_sync;
    bool (*cancel)(void *user); /* as in lb_shard_options */
    void *cancel_user;
} lb_merge_options;

/* Splits a checkpoint (safetensors, with or without an index) into one file per
 * rank of a mesh: rank-00000-of-00008.safetensors and so on in directory `to`,
 * which is created, or replaced if it contains nothing but weights. Slices keep
 * the layout of the source, and each file can be loaded by itself. Arrays whose
 * slices would share bytes are replicated in all files. Limits: 4096 ranks,
 * 100,000 files, and 100,000,000 bytes for the header of the first rank's file,
 * which includes the headers of the checkpoint. */
LB_API bool lb_shard_file(lb_ctx *cx, const char *from, const char *to,
                          const lb_shard_options *options);
/* Reassembles the checkpoint that lb_shard_file split. `to` is a file if its
 * name ends in .safetensors, otherwise a directory, which also gets the other
 * files of `from` (configuration, tokenizer). The weight files are
 * byte-identical to the original ones, unless several files become one. */
LB_API bool lb_merge_file(lb_ctx *cx, const char *from, const char *to,
                          const lb_merge_options *options);

/* ---- metadata of files --------------------------------------------------- */

/* GGUF's types; safetensors only has strings. */
typedef enum lb_meta_type {
    LB_META_U8 = 0,
    LB_META_I8 = 1,
    LB_META_U16 = 2,
    LB_META_I16 = 3,
    LB_META_U32 = 4,
    LB_META_I32 = 5,
    LB_META_F32 = 6,
    LB_META_BOOL = 7,
    LB_META_STRING = 8,
    LB_META_ARRAY = 9,
    LB_META_U64 = 10,
    LB_META_I64 = 11,
    LB_META_F64 = 12,
    LB_N_META = 13
} lb_meta_type;

/* A metadata value exactly as stored in the file, so that it can be written
 * back unchanged. Values are little-endian and bytes may be unaligned. */
typedef struct lb_meta {
    const char *key; /* unique; contains no NUL */
    lb_meta_type type;
    lb_meta_type item;    /* of an array */
    uint64_t n;           /* items of an array; otherwise 1 */
    const uint8_t *bytes; /* the value; for a string its characters, without
                           * length or NUL; for an array its items as encoded in
                           * GGUF */
    uint64_t size;        /* of bytes */
} lb_meta;

/* In file order; NULL past the end. Valid as long as f. */
LB_API const lb_meta *lb_file_meta(const lb_file *f, int64_t i);
LB_API const lb_meta *lb_file_find_meta(const lb_file *f, const char *key);
/* Iterates over an array of strings: returns the string at *at, which starts as
 * 0, and advances *at; false at the end. Checks against m->size every time,
 * because bytes may be mapped and another process may change the file. */
LB_API bool lb_meta_next(const lb_meta *m, uint64_t *at, const char **text,
                         uint64_t *n);

/* ---- writing ------------------------------------------------------------- */

typedef struct lb_saver lb_saver;

/* One array of a file to be written: available now, or provided later. */
typedef struct lb_planned {
    const char *name;
    lb_array *array;               /* NULL: provided later; then ... */
    lb_dtype dtype;                /* ... its dtype (before quantization),
                                    * ... */
    lb_shape shape;                /* ... its shape ... */
    const lb_quant_config *config; /* ... and how it is quantized; NULL:
                                    * dense */
} lb_planned;

/* Zero means the default. */
typedef struct lb_save_options {
    size_t struct_size;
    const char *kind;    /* "safetensors" (the default), "gguf", "npy", "npz" */
    const char *layout;  /* of quantized arrays in safetensors: "native"
                          * (default), "bnb", "bitnet", "eformer" */
    const lb_meta *meta; /* metadata of the file; safetensors only supports
                          * strings */
    int64_t n_meta;
    lb_file *const *input; /* files that must not be overwritten */
    int n_inputs;
    bool no_sync;       /* skip fsync */
    uint64_t max_shard; /* lb_save_sharded: maximum bytes per file of a
                         * multi-file checkpoint (a larger array gets a file of
                         * its own). path is then a directory, which is created,
                         * or replaced if it contains nothing but weights; kind
                         * must be safetensors. 0: one file */
} lb_save_options;

/* Writes the header of a file with these arrays, which has no name until it is
 * complete, or is PATH.partial where the file system does not support that;
 * sizes follow from the plan. list is not used after the call. options may be
 * NULL. On failure returns NULL with an error, and a file at path is unchanged.
 * The same plan and arrays produce the same bytes. A quantized array must be
 * complete, not a view of a part of it.
 *
 *     lb_saver *s = lb_saver_open(cx, path, list, n, NULL);
 *     for (int64_t i; (i = lb_saver_next(s)) >= 0;)
 *         lb_saver_put(cx, s, array of list[i]);
 *     lb_saver_close(cx, s, true); */
LB_API lb_saver *lb_saver_open(lb_ctx *cx, const char *path,
                               const lb_planned *list, int64_t n,
                               const lb_save_options *options);
/* Index of the array to provide next; -1 when all are written, or after an
 * error. */
LB_API int64_t lb_saver_next(const lb_saver *s);
/* Writes that array, which must match its plan. */
LB_API bool lb_saver_put(lb_ctx *cx, lb_saver *s, lb_array *a);
/* Finishes. commit: true puts the file at its path, which fails if an array is
 * missing; false removes it. NULL is allowed. */
LB_API bool lb_saver_close(lb_ctx *cx, lb_saver *s, bool commit);
/* Whether a file kind and layout can store the planned array; both may be NULL,
 * as in lb_save_options. Returns false without an error if they cannot; with an
 * error if the array cannot be made at all, or if there is no such kind or
 * layout. */
LB_API bool lb_can_save(lb_ctx *cx, const lb_planned *p, const char *kind,
                        const char *layout);
/* Opens, writes all arrays (which must be available) and commits. */
LB_API bool lb_save(lb_ctx *cx, const char *path, const lb_planned *list,
                    int64_t n, const lb_save_options *options);

/* ---- descriptors --------------------------------------------------------- */

/* An array of any format as its stored parts and a text that describes how they
 * form the array: the tensors and the descriptor of a `native` file
 * (docs/formats.md), without a file. For programs that keep arrays in their own
 * containers. a must be a whole array, not a view of a part of one. */

/* Writes the descriptor of a packed array, JSON, to buf, shortened to size
 * bytes with the final 0. Returns its length, or -1 and an error. */
LB_API int64_t lb_descriptor(lb_ctx *cx, lb_array *a, char *buf, size_t size);
/* The k-th dense part of a and its name, as in "codes" or, of a part that is
 * quantized itself, "absmax.codes". NULL without an error past the end. */
LB_API lb_array *lb_stored_part(lb_ctx *cx, lb_array *a, int k, char *name,
                                size_t size);
/* The inverse: an array that shares the parts, which are checked as those of a
 * file. text: a descriptor of that many bytes. */
LB_API lb_array *lb_from_descriptor(lb_ctx *cx, const char *text, size_t size,
                                    const char *const *name,
                                    lb_array *const *part, int n);

/* ---- trees --------------------------------------------------------------- */

/* All arrays of a file or a model directory as a tree (lowbit_tree.h), in file
 * order. An array that cannot be loaded is an error. lb_tree_load_file does
 * the same for an open file, which may then be closed. */
LB_API lb_tree *lb_tree_load(lb_ctx *cx, const char *path);
LB_API lb_tree *lb_tree_load_file(lb_ctx *cx, lb_file *f);
/* lb_save for all arrays of a tree. */
LB_API bool lb_tree_save(lb_tree *t, const char *path,
                         const lb_save_options *options);

/* Writes arrays that are sharded over mesh, or the same on all ranks. Each rank
 * writes the bytes of its slices; no rank needs the complete arrays. The file
 * is the same as lb_save writes for the gathered arrays (except that blocks
 * that crossed rows, in arrays not cut by rows, become blocks within rows).
 * LB_E_UNSUPPORTED if slices would share bytes: in the layouts bitnet and
 * eformer, which pack four rows into a byte, if cut by rows; and if blocks of
 * quantized scales would be cut. Called by all ranks, which agree on its
 * success: after an error on any rank an existing file at path is left
 * unchanged. */
LB_API bool lb_save_sharded(lb_ctx *cx, lb_mesh *mesh, const char *path,
                            const lb_planned *list, int64_t n,
                            const lb_save_options *options);

/* ---- error statistics ---------------------------------------------------- */

/* Error of b relative to a. Members are sums, so that arrays can be compared in
 * pieces. */
typedef struct lb_difference {
    int64_t n;             /* elements */
    int64_t apart;         /* elements whose values differ */
    int64_t nonfinite;     /* ... because one is not finite; these are excluded
                            * from the sums */
    double aa, bb, ab, dd; /* sums of a*a, b*b, a*b and (a-b)*(a-b) */
    double max;            /* the largest |a-b| */
} lb_difference;

/* Adds the error statistics of two arrays of the same shape (any formats and
 * dtypes) to *d, which must be zero-initialized. The result does not depend on
 * the number of threads or the CPU. Sums are accurate to six digits. */
LB_API bool lb_compare(lb_ctx *cx, lb_array *a, lb_array *b, lb_difference *d);
/* Normalized error |a-b| / |a| (2-norms over values that are finite in both): 0
 * if none differ, infinite if a is all zeros, NaN if no value is finite in
 * both. */
LB_API double lb_difference_nrmse(const lb_difference *d);
/* Cosine similarity of a and b over the same values: 1 if none differ. */
LB_API double lb_difference_cosine(const lb_difference *d);

/* A kind of defect in an array: how often it occurs, and the first index. */
typedef struct lb_flaw {
    int64_t n, first;
} lb_flaw;

/* Value statistics and defects of an array. */
typedef struct lb_findings {
    int64_t n;        /* elements */
    lb_flaw nan, inf; /* by element index, row-major */
    lb_flaw code;     /* codes that are invalid in the format */
    lb_flaw scale;    /* scales that are negative, unless the format has
                       * such, or not finite (reciprocal
                       * ones: not positive), by index in ... */
    int64_t scales;   /* ... all scales */
    int64_t finite;   /* finite elements; the members below are about these */
    int64_t zeros;
    double least, most;
    double sum, squares;
    int64_t outer_zeros; /* integer zero points that are not codes. Not a
                          * defect, but rare: in GPTQ's first version some
                          * programs destroyed words of zero points so */
} lb_findings;

/* Checks an array and adds to *f, which must be zero-initialized. Uses all
 * threads; the result does not depend on their number. */
LB_API bool lb_examine(lb_ctx *cx, lb_array *a, lb_findings *f);
/* Whether there are no defects. */
LB_API bool lb_findings_sound(const lb_findings *f);

/* Number of finite values in bins of equal width from lo to hi. */
enum { LB_HISTOGRAM_MOST = 200 };
typedef struct lb_histogram {
    double lo, hi;
    int bins;
    int64_t count[LB_HISTOGRAM_MOST], below, above;
} lb_histogram;

/* lb_count_values adds the values of an array to *h, in which lo, hi and bins
 * must be set. lb_count_codes adds the codes of a quantized array: code c to
 * count[c & 255]; LB_E_UNSUPPORTED if its format has no codes. Both use all
 * threads. */
LB_API bool lb_count_values(lb_ctx *cx, lb_array *a, lb_histogram *h);
LB_API bool lb_count_codes(lb_ctx *cx, lb_array *a, int64_t count[256]);

/* ---- quantizing a file --------------------------------------------------- */

/* Decides about an array. NULL: quantize it; config holds the defaults from the
 * options and may be changed. Otherwise a static text: the reason why it is
 * left unchanged. A file with quantized arrays is refused in either case. */
typedef const char *(*lb_choose)(void *user, const lb_entry *e,
                                 lb_quant_config *config);
/* The default: quantizes floats with two or more axes and 1024 or more
 * elements, except norms, embeddings, routers and the output head (by name).
 * (The layouts bnb and bitnet also quantize smaller arrays, as the programs
 * that define them do. Arrays that would not become smaller are left unchanged,
 * unless a pattern of a selection includes or overrides them.) user is not
 * used. */
LB_API const char *lb_choose_weights(void *user, const lb_entry *e,
                                     lb_quant_config *config);

/* Selects arrays by name. Patterns are unanchored Perl-compatible regular
 * expressions. An exclusion leaves matching arrays unchanged. An inclusion
 * quantizes matching arrays that are skipped by default. An override,
 * "PATTERN=TYPE[:KEY=VALUE,...]" or "PATTERN=keep", sets how matching arrays
 * are quantized; the last matching override applies. It also includes them,
 * except vectors, which are norms and biases of the layers it is meant for.
 * Keys are block_size, axis, double_quant (yes, no), scale (none, tensor, row,
 * block), threshold (std, absmean), compat and nonfinite (error, clamp). A
 * recipe is a file of lines "include PATTERN", "exclude PATTERN" or "override
 * ..."; empty lines and lines that begin with # are ignored. An empty pattern
 * is an error. False and an error on failure. lb_selection_close accepts NULL.
 */
typedef struct lb_selection lb_selection;
LB_API lb_selection *lb_selection_open(lb_ctx *cx);
LB_API void lb_selection_close(lb_selection *s);
LB_API bool lb_selection_include(lb_ctx *cx, lb_selection *s, const char *text);
LB_API bool lb_selection_exclude(lb_ctx *cx, lb_selection *s, const char *text);
LB_API bool lb_selection_override(lb_ctx *cx, lb_selection *s,
                                  const char *text);
LB_API bool lb_selection_recipe(lb_ctx *cx, lb_selection *s, const char *path);
/* A lb_choose; its user argument is the selection. */
LB_API const char *lb_selection_choose(void *selection, const lb_entry *e,
                                       lb_quant_config *config);

/* Quantizes a tree in memory (lowbit_tree.h) by these rules; s NULL: by
 * lb_choose_weights. config: the defaults, as in lb_quantize_options. An array
 * that is selected and that its format does not support is an error, and so is
 * a pattern that matches no name. report: as in lb_tree_quantize. */
LB_API bool lb_tree_quantize_selected(lb_tree *t, const lb_quant_config *config,
                                      lb_selection *s, lb_tree_change *report);

/* What may be done with quantized arrays that lb_convert_options.target cannot
 * store exactly. */
typedef enum lb_allow {
    LB_ALLOW_EXACT = 0,     /* nothing: such arrays are refused */
    LB_ALLOW_ROUNDED = 1,   /* round a scale or a bias, with unchanged codes */
    LB_ALLOW_REQUANTIZE = 2 /* also decode them and quantize them again */
} lb_allow;

/* What became of a quantized array in such a conversion. */
typedef enum lb_moved {
    LB_MOVED_NONE = 0, /* not such an array */
    LB_MOVED_EXACT = 1,
    LB_MOVED_ROUNDED = 2,
    LB_MOVED_REQUANTIZED = 3,
    LB_MOVED_REFUSED = 4
} lb_moved;

/* A written array, as reported to lb_quantize_options.done. Pointers are valid
 * during that call. */
typedef struct lb_written {
    const lb_entry *entry; /* of the source */
    int64_t i, n;          /* the i-th of n arrays */
    const char *kept;      /* why it was left unchanged; NULL: it was not */
    const lb_quant_config *config; /* how it was quantized; NULL: it was not */
    const char *format;            /* in the new file: "dense", ... */
    lb_dtype dtype;                /* ... and dtype when loaded */
    uint64_t nbytes;               /* size in the new file */
    lb_difference error;           /* if requested with measure; otherwise n is
                                    * 0 */
    bool fell_back; /* it was not quantized as requested, because its shape or
                     * the layout does not allow it */
    bool resumed;   /* it was written by an earlier run */
    lb_moved moved; /* with lb_convert_options.target; error is then set */
    const char *refused; /* why it could not be moved; NULL: it was */
} lb_written;

/* Progress of a job, in bytes of the source. Bytes that are read more than once
 * (with a target, or double_quant) count each time. */
typedef struct lb_progress {
    const lb_entry *entry; /* current array */
    uint64_t done, total;
    int64_t arrays_done, arrays;
} lb_progress;

/* What to do with an array whose shape its format does not support. */
typedef enum lb_shape_fallback {
    LB_FALLBACK_KEEP = 0, /* leave it unchanged and report it */
    LB_FALLBACK_ERROR = 1,
    LB_FALLBACK_ADJUST = 2 /* use the first of lb_quantize_options.other that
                            * supports it; if none does, leave it unchanged */
} lb_shape_fallback;

/* Zero means the default. */
typedef struct lb_quantize_options {
    size_t struct_size;
    const char *kind;   /* as in lb_save_options */
    const char *layout; /* as in lb_save_options. The default for a directory is
                         * the layout that transformers loads (bnb for nf4 and
                         * int8, with its arithmetic if compat is native; bitnet
                         * for ternary), if it can store everything as
                         * requested, otherwise native; see note */
    lb_quant_config config; /* defaults, where choose sets nothing else */
    lb_choose choose;       /* NULL: lb_choose_weights. May be called twice per
                             * array */
    void *choose_user;
    void (*done)(void *user, const lb_written *w); /* NULL: no calls */
    void *done_user;
    uint64_t max_memory; /* limit for array data in memory, in bytes, regardless
                          * of file and array sizes; 0: 512 MiB */
    bool no_sync;
    bool measure;   /* fill lb_written.error */
    bool dry_run;   /* plan and call done, but write nothing. Everything that
                     * would fail in the real run is an error; with measure the
                     * values of all arrays are read as well. to may be NULL */
    bool resume;    /* continue an interrupted run with the same options from
                     * its DST.partial; the result is byte-identical to that of
                     * a single run. Without one, or if it belongs to a
                     * different job, start from the beginning */
    bool strict;    /* LB_E_DENIED, before anything is written, if an array
                     * cannot be quantized as requested */
    bool directory; /* to is a model directory, which is created. If the source
                     * is one, its other files are copied */
    lb_shape_fallback fallback;
    const lb_quant_config *other; /* see fallback, and target below */
    int n_other;
    /* Target for the size of the whole output, in bits per element or in bytes
     * (headers included); 0: none. Each array gets one of the types in config
     * and other, or, if other is empty, of all types that the output can store.
     * The assignment minimizes the squared error approximately, subject to the
     * target, and is never both larger and less exact than a single type for
     * all arrays. Every array is quantized in every type to measure its error,
     * which takes proportionally long. */
    double target_bits;
    uint64_t target_bytes;
    void (*progress)(void *user, const lb_progress *p); /* NULL: no calls */
    void *progress_user;
    lb_selection *selection;  /* instead of choose; a pattern that matches no
                               * name is a warning (see warn) */
    const char *linear_class; /* as in lb_file_options; for a directory in
                               * layout bitnet: the value to write to
                               * config.json */
    bool verify; /* read back all arrays before the file gets its final name.
                  * LB_E_FILE if one differs; an existing file is then left
                  * unchanged. (Not needed for npz, which contains
                  * checksums.) */
    /* Ranks that share the work: all call this function with the same
     * arguments, and the output is the same as that of one rank. Each rank
     * reads and writes its part; done is called for all arrays at the end. Not
     * supported for npz. NULL: a single process. */
    lb_comm *comm;
    /* Called after each piece of an array (at most a few MB, unless the array
     * must be quantized as a whole). True stops the job with LB_E_CANCELLED;
     * DST.partial is kept, so that a run with resume continues it (npz: it is
     * removed). With comm, one rank that stops, stops all. NULL: never. */
    bool (*cancel)(void *user);
    void *cancel_user;
    /* Called with a message, before the first array is quantized, for each
     * pattern of the selection that matches no array. NULL, or strict: such a
     * pattern is an error. */
    void (*warn)(void *user, const char *text);
    void *warn_user;
    /* Called with a phrase about each decision that the options leave open: the
     * layout of a directory, and why. May be NULL. */
    void (*note)(void *user, const char *text);
    void *note_user;
    /* Called if the partial output of an interrupted run, nbytes on the disk,
     * is discarded; same: with resume, it would have been continued. May be
     * NULL. */
    void (*discarded)(void *user, const char *path, uint64_t nbytes, bool same);
    void *discarded_user;
} lb_quantize_options;

/* Quantizes a file or a model directory piece by piece. Arrays that are not
 * selected, or that the layout cannot store, are copied unchanged. Metadata is
 * copied: strings, and from GGUF to GGUF everything. Output is atomic: it is
 * written to a partial file and renamed when complete (see lb_saver_open). NaN
 * and infinities in arrays to be quantized are LB_E_CONTENT, unless
 * config.on_nonfinite clamps them. */
LB_API bool lb_quantize_file(lb_ctx *cx, const char *from, const char *to,
                             const lb_quantize_options *options);

/* ---- converting a file --------------------------------------------------- */

/* Zero means the default; members without a comment are as in
 * lb_quantize_options. */
typedef struct lb_convert_options {
    size_t struct_size;
    const char *kind;
    const char *layout; /* the default for a directory is that of the source */
    lb_dtype dtype; /* of floats that are or become dense; none: unchanged */
    bool keep;      /* keep packed arrays packed, with their codes and scales,
                     * if kind and layout can store them; otherwise they are
                     * decoded */
    void (*done)(void *user, const lb_written *w);
    void *done_user;
    uint64_t max_memory; /* packed arrays must fit */
    bool no_sync, measure, dry_run, resume, directory;
    bool strict; /* with keep: an array that cannot be stored packed is an
                  * error */
    void (*progress)(void *user, const lb_progress *p);
    void *progress_user;
    const char *linear_class; /* as in lb_file_options */
    bool verify;
    lb_comm *comm;
    bool (*cancel)(void *user);
    void *cancel_user;
    void (*discarded)(void *user, const char *path, uint64_t nbytes, bool same);
    void *discarded_user;
    /* Moves quantized arrays: to a layout ("native", "bnb", ...), a type
     * ("q4_1", "q8_0", ...) or, by type, to "gguf". Codes are kept; scales and
     * zero points are expressed as the target does, and each array is decoded
     * before and after, to prove that its values are the same. LB_E_DENIED if
     * an array cannot be moved as `allow` says: nothing is written then, but
     * done is called for all arrays. NULL: see keep. */
    const char *target;
    lb_allow allow;
    int64_t block_size; /* elements that share a scale in the target, where it
                         * has a choice; 0: as in the source, if possible */
} lb_convert_options;

/* Writes the arrays of a file or a model directory to another one: decoded, or
 * with another dtype, file kind or layout. */
LB_API bool lb_convert_file(lb_ctx *cx, const char *from, const char *to,
                            const lb_convert_options *options);

#ifdef __cplusplus
}
#endif
#endif
