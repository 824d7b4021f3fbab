/* lowbit_io.h - arrays in files. Link with liblowbit-io.
 *
 *     lb_file *f = lb_file_open(cx, "model.safetensors", NULL);
 *     for (int64_t i = 0; i < lb_file_count(f); i++)
 *         puts(lb_file_entry(f, i)->name);
 *     lb_array *w = lb_file_load(cx, f, "mlp.up.weight");
 *     lb_array *few = lb_file_load_rows(cx, f, "mlp.down.weight", 0, 16);
 *     lb_file_close(f);                         // w and few stay
 *
 *     const lb_planned list[] = {{.name = "w", .array = w},
 *                                {.name = "few", .array = few}};
 *     lb_save(cx, "two.safetensors", list, 2, NULL);
 *
 *     const lb_quantize_options o = {.config = {.format = "nf4"}};
 *     lb_quantize_file(cx, "model.safetensors", "small.safetensors", &o);
 *
 * Conventions are those of lowbit.h. All that is zero in options is the
 * default, and where nothing must be given they may be NULL; struct_size is the
 * sizeof of the struct, for programs that run with a later library, or 0. What
 * kind of file it is its bytes say, never its name. Everything that a file
 * claims is held against its size before it is believed: LB_E_CONTENT is a file
 * that is wrong, LB_E_FILE the system that refuses, LB_E_UNSUPPORTED what is
 * right and not available here.
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
    bool no_map; /* read, do not map: for files that another process may
                  * shorten meanwhile, which kills whoever looks at the map; and
                  * where pages of files should not count as this process's */
    bool raw;    /* tensors as they lie: groups of them that are one array
                  * (codes, scales, ..) are not looked for */
    const char *linear_class; /* of BitNet's files, "bitlinear" or
                               * "autobitlinear": whether a weight_scale divides
                               * or multiplies; NULL: as config.json beside the
                               * file says, without which such arrays are
                               * listed and not loaded */
    uint64_t max_header; /* bytes of a header of safetensors or of its index;
                          * 0: 100,000,000 */
} lb_file_options;

/* One array of a file. */
typedef struct lb_entry {
    const char *name;   /* unique in the file */
    const char *type;   /* of its numbers, as the file has it: "BF16", "Q4_K",
                         * "<f4"; of a group: of its codes */
    const char *format; /* "dense", ..; NULL: there is none for the type here,
                         * and it cannot be loaded */
    const char *layout; /* whose group of tensors it is: "bnb", ..; NULL: it is
                         * one tensor */
    lb_dtype dtype;     /* what it loads as; none if format is NULL */
    int rank;           /* may be more than LB_MAX_RANK, and dims more than can
                         * be loaded */
    const int64_t *dim;
    int n_tensors;   /* of the file that it is made of */
    uint64_t nbytes; /* in the file, of all of them, unpacked */
} lb_entry;

/* path: a file (safetensors, its index, GGUF, npy, npz), or a directory with
 * model.safetensors.index.json or model.safetensors in it. Reads its header,
 * and of groups what describes them. options may be NULL. NULL and an error. */
LB_API lb_file *lb_file_open(lb_ctx *cx, const char *path,
                             const lb_file_options *options);
/* Arrays loaded from it stay. NULL is fine. */
LB_API void lb_file_close(lb_file *f);

/* "safetensors", "gguf", ..; static. Any thread, as all that take no context.
 * NULL for NULL. */
LB_API const char *lb_file_kind(const lb_file *f);
LB_API int64_t lb_file_count(const lb_file *f); /* entries; 0 for NULL */
/* In the order of the file; NULL past the end. Valid while f is. */
LB_API const lb_entry *lb_file_entry(const lb_file *f, int64_t i);
LB_API const lb_entry *lb_file_find(const lb_file *f, const char *name);

/* How a checkpoint was quantized, by whichever program. */
typedef struct lb_quant_method {
    const char *name;   /* "gptq", "awq", "mlx", "bitsandbytes", ...: as
                         * quant_method in config.json spells it; NULL: it is
                         * not quantized, or is a GGUF file */
    bool decoded;       /* lb_file_load decodes its arrays. If false, the file's
                         * tensors are codes and scales of a layout that is not
                         * supported */
    const char *source; /* the file that names it: "config.json"; NULL: it was
                         * recognized by its tensors */
    const char *tensor; /* one that shows it; NULL: none does */
} lb_quant_method;
/* Looks at the tensors and, for the weights of a model directory, at its
 * config.json, quantize_config.json, quant_config.json and
 * hf_quant_config.json. False and an error if one of these cannot be read.
 * What m points to is valid while f is. */
LB_API bool lb_file_method(lb_ctx *cx, lb_file *f, lb_quant_method *m);

/* An array, in the format it is stored in. Its bytes stay in the file's map
 * where they can (aligned, little-endian, not compressed): they must not change
 * while the array lives. One thread at a time for a file. */
LB_API lb_array *lb_file_load(lb_ctx *cx, lb_file *f, const char *name);
/* Rows lo <= i < hi of its first axis; reads no more than it must. */
LB_API lb_array *lb_file_load_rows(lb_ctx *cx, lb_file *f, const char *name,
                                   int64_t lo, int64_t hi);
/* The box of count[k] elements from start[k] on along each axis, in the format
 * that it is stored in. Reads no other bytes of codes and scales, but for what
 * a box shares with others: rows that lie in the same bytes, scales that are
 * quantized in blocks of their own, deflated tensors. LB_E_SHAPE if it begins
 * or ends inside a block. */
LB_API lb_array *lb_file_load_slice(lb_ctx *cx, lb_file *f, const char *name,
                                    const int64_t *start, const int64_t *count);
/* Bytes of its files that were read so far, headers included; of a map those
 * that arrays were made of. 0 for NULL. */
LB_API uint64_t lb_file_bytes_read(const lb_file *f);
/* Opens, loads one, closes. */
LB_API lb_array *lb_load(lb_ctx *cx, const char *path, const char *name);

/* ---- files and meshes ---------------------------------------------------- */

/* A sharded array of which each rank reads its slice, as lb_file_load_slice
 * does: every rank has opened the file. Called by all ranks, which agree on
 * how it went. report: NULL, or the spec is read as lb_spec_parse does with
 * one; entries that would cut inside a block become None, too. */
LB_API lb_array *lb_file_load_sharded(lb_ctx *cx, lb_mesh *mesh, lb_file *f,
                                      const char *name, const char *spec,
                                      lb_spec_report *report);

/* Specs by patterns of names: "PATTERN=P(None, tp)", of which the first that
 * matches counts. Patterns are regular expressions as Perl has them, that match
 * anywhere in a name. A file has a rule in each line, but for those that are
 * empty or begin with #. False and an error. NULL is fine for close. */
typedef struct lb_rules lb_rules;
LB_API lb_rules *lb_rules_open(lb_ctx *cx);
LB_API void lb_rules_close(lb_rules *r);
LB_API bool lb_rules_add(lb_ctx *cx, lb_rules *r, const char *text);
LB_API bool lb_rules_read(lb_ctx *cx, lb_rules *r, const char *path);

/* What an array gets, and why. */
typedef struct lb_placement {
    const lb_entry *entry;
    lb_spec spec;
    const char *pattern;    /* of its rule; NULL: none matches */
    const char *whole;      /* why every rank has all of it, a static text;
                             * NULL: it is cut */
    lb_spec_report dropped; /* of its rule, if it was read relaxed */
} lb_placement;

/* Of an array of f: an error if its rule does not fit and relaxed is false.
 * What is valid is so while f and r are. */
LB_API bool lb_rules_place(lb_ctx *cx, lb_rules *r, const lb_grid *grid,
                           lb_file *f, const char *name, bool relaxed,
                           lb_placement *to);
/* After all arrays were placed: an error if a pattern has matched none of the
 * names. */
LB_API bool lb_rules_check(lb_ctx *cx, const lb_rules *r, const lb_file *f);

/* Zero means the default; mesh and rules must be given. */
typedef struct lb_shard_options {
    size_t struct_size;
    const char *mesh; /* "dp=2,tp=4" */
    lb_rules *rules;  /* a pattern that matches no name is an error */
    bool relaxed;     /* what does not fit of a rule is dropped, and told */
    bool dry_run;     /* tell placed, and write nothing */
    bool no_sync;
    /* Told of each array, the i-th of n; NULL: nobody. */
    void (*placed)(void *user, const lb_placement *p, int64_t i, int64_t n);
    void *user;
} lb_shard_options;

/* Cuts a checkpoint (safetensors, also with an index) into a file for each rank
 * of a mesh: a directory to, with rank-00000-of-00008.safetensors and so on,
 * that is made, or replaced if it holds nothing but weights. Slices are in the
 * layout that they come from, each file can be loaded by itself, and arrays
 * whose slices would share bytes are whole in all of them. At most 4096 ranks
 * and 100,000 files; and what the first rank's header holds of the checkpoint,
 * its headers among it, must be 100,000,000 bytes at most. */
LB_API bool lb_shard_file(lb_ctx *cx, const char *from, const char *to,
                          const lb_shard_options *options);
/* Reassembles the checkpoint that lb_shard_file split. The name decides: to is
 * a file if it ends in .safetensors, and else a directory, which also gets the
 * other files of from (configuration, tokenizer). The weights have the bytes
 * that they had, unless several files become one. */
LB_API bool lb_merge_file(lb_ctx *cx, const char *from, const char *to,
                          bool no_sync);

/* ---- values in files ----------------------------------------------------- */

/* GGUF's numbers; safetensors has strings only. */
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

/* A value as it stands in the file, so that it can be written back as it was.
 * Numbers are little-endian and bytes may be at any address. */
typedef struct lb_meta {
    const char *key; /* unique; holds no 0 inside */
    lb_meta_type type;
    lb_meta_type item;    /* of an array */
    uint64_t n;           /* items of an array; of others 1 */
    const uint8_t *bytes; /* a number; a string's characters, without length or
                           * 0; an array's items as GGUF has them */
    uint64_t size;        /* of bytes */
} lb_meta;

/* In the order of the file; NULL past the end. Valid while f is. */
LB_API const lb_meta *lb_file_meta(const lb_file *f, int64_t i);
LB_API const lb_meta *lb_file_find_meta(const lb_file *f, const char *key);
/* The next string of an array of them, from *at on, which begins as 0; false at
 * the end. Held against m->size each time: bytes may lie in a map, and whoever
 * writes to the file changes them. */
LB_API bool lb_meta_next(const lb_meta *m, uint64_t *at, const char **text,
                         uint64_t *n);

/* ---- writing ------------------------------------------------------------- */

typedef struct lb_saver lb_saver;

/* One array of a file to be: one that is there, or one to come. */
typedef struct lb_planned {
    const char *name;
    lb_array *array;               /* NULL: to come, and then .. */
    lb_dtype dtype;                /* .. what was or is to be quantized, .. */
    lb_shape shape;                /* .. its shape .. */
    const lb_quant_config *config; /* .. and how; NULL: it stays dense */
} lb_planned;

/* Zero means the default. */
typedef struct lb_save_options {
    size_t struct_size;
    const char *kind;    /* "safetensors" (the default), "gguf", "npy", "npz" */
    const char *layout;  /* of quantized arrays in safetensors: "native" (the
                          * default), "bnb", "bitnet", "eformer" */
    const lb_meta *meta; /* values of the file; safetensors has texts only */
    int64_t n_meta;
    lb_file *const *input; /* files that may not be overwritten */
    int n_inputs;
    bool no_sync;       /* do not wait for the disk */
    uint64_t max_shard; /* lb_save_sharded: bytes of a shard, at most, but for
                         * an array that is larger; path is then a directory,
                         * which is made, or replaced if it holds nothing but
                         * weights, and kind is safetensors. 0: one file */
} lb_save_options;

/* Writes the header of a file with these arrays, whose sizes follow from what
 * is planned, to PATH.partial. Nothing of the list is needed afterwards.
 * options may be NULL. NULL and an error: what stood at path stays. The same
 * plan and arrays give the same file. A quantized array must be all of what it
 * was quantized to, not a view of some of it.
 *
 *     lb_saver *s = lb_saver_open(cx, path, list, n, NULL);
 *     for (int64_t i; (i = lb_saver_next(s)) >= 0;)
 *         lb_saver_put(cx, s, array of list[i]);
 *     lb_saver_close(cx, s, true);
 */
LB_API lb_saver *lb_saver_open(lb_ctx *cx, const char *path,
                               const lb_planned *list, int64_t n,
                               const lb_save_options *options);
/* The array that is wanted next, by its index; -1 when there is none, or after
 * an error. */
LB_API int64_t lb_saver_next(const lb_saver *s);
/* That array, which must be as it was planned. */
LB_API bool lb_saver_put(lb_ctx *cx, lb_saver *s, lb_array *a);
/* Ends it; commit: true makes it the file at its path, which fails if an array
 * is missing. Otherwise the partial file is removed. NULL is fine. */
LB_API bool lb_saver_close(lb_ctx *cx, lb_saver *s, bool commit);
/* Whether a kind of file, and a layout, have a place for what is planned; both
 * may be NULL, as in lb_save_options. False, and an error only if it cannot be
 * made at all, or there is no such kind or layout. */
LB_API bool lb_can_save(lb_ctx *cx, const lb_planned *p, const char *kind,
                        const char *layout);
/* All in one, of arrays that are there. */
LB_API bool lb_save(lb_ctx *cx, const char *path, const lb_planned *list,
                    int64_t n, const lb_save_options *options);

/* The same for arrays that are sharded over mesh, or the same on all ranks:
 * each rank writes the bytes of its slices, and nobody has all of them. The
 * file is the one that lb_save writes of the gathered arrays (of blocks that
 * crossed rows, and are cut otherwise than by rows: with blocks in rows).
 * LB_E_UNSUPPORTED where slices share bytes in a layout: BitNet's and the
 * eformer's four rows in one, cut by rows; scales that are quantized in blocks
 * that are cut. Called by all ranks, which agree on how it went: what stood at
 * path stays if one has an error. */
LB_API bool lb_save_sharded(lb_ctx *cx, lb_mesh *mesh, const char *path,
                            const lb_planned *list, int64_t n,
                            const lb_save_options *options);

/* ---- how much was lost --------------------------------------------------- */

/* Of b, from a. Sums, so that an array can be compared in pieces. */
typedef struct lb_difference {
    int64_t n;             /* elements */
    int64_t apart;         /* of them, those that are not the same number */
    int64_t nonfinite;     /* .. because one is no finite number: they are in
                            * none of the sums */
    double aa, bb, ab, dd; /* sums of a*a, b*b, a*b and (a-b)*(a-b) */
    double max;            /* the largest |a-b| */
} lb_difference;

/* Adds the difference of two arrays of the same shape, in whatever formats and
 * dtypes, to *d, which begins as zeros. The same for every number of threads
 * and every CPU; sums are right to six digits. */
LB_API bool lb_compare(lb_ctx *cx, lb_array *a, lb_array *b, lb_difference *d);
/* |a-b| / |a|, with the norms of all values that are finite in both: 0 if none
 * differ, infinite if a is all zeros, NaN if no value is finite in both. */
LB_API double lb_difference_nrmse(const lb_difference *d);
/* Cosine of the angle between a and b, of the same values: 1 if none differ. */
LB_API double lb_difference_cosine(const lb_difference *d);

/* What is wrong with an array: how often, and the first place. */
typedef struct lb_flaw {
    int64_t n, first;
} lb_flaw;

/* The numbers of an array. */
typedef struct lb_findings {
    int64_t n;        /* elements */
    lb_flaw nan, inf; /* by the element's index, row-major */
    lb_flaw code;     /* codes that the format does not have */
    lb_flaw scale;    /* scales that are below zero or not finite (of those
                       * that divide: not above zero), by their
                       * index among .. */
    int64_t scales;   /* .. all of them */
    int64_t finite;   /* elements that are, which the rest is about */
    int64_t zeros;
    double least, most;
    double sum, squares;
} lb_findings;

/* Checks an array and adds to *f, which begins as zeros. Uses all threads; the
 * result does not depend on their number. */
LB_API bool lb_examine(lb_ctx *cx, lb_array *a, lb_findings *f);
/* Whether there are no flaws. */
LB_API bool lb_findings_sound(const lb_findings *f);

/* Numbers of finite values in bins of equal width from lo to hi. */
enum { LB_HISTOGRAM_MOST = 200 };
typedef struct lb_histogram {
    double lo, hi;
    int bins;
    int64_t count[LB_HISTOGRAM_MOST], below, above;
} lb_histogram;

/* Adds the values of an array to *h, of which lo, hi and bins are set; or the
 * codes of a quantized one to count, code c to count[c & 255]: LB_E_UNSUPPORTED
 * if its format has none. Both use all threads. */
LB_API bool lb_count_values(lb_ctx *cx, lb_array *a, lb_histogram *h);
LB_API bool lb_count_codes(lb_ctx *cx, lb_array *a, int64_t count[256]);

/* ---- a file, quantized --------------------------------------------------- */

/* Whether an array is to be quantized: NULL, and config, which comes as the
 * options have it, may be changed; or why it stays as it is, a static text. */
typedef const char *(*lb_choose)(void *user, const lb_entry *e,
                                 lb_quant_config *config);
/* The default: floats of two or more axes and 1024 or more elements, but for
 * norms, embeddings, routers and the output head, by their names. (Layouts of
 * programs that pack smaller ones, too, bnb and bitnet, have those packed. And
 * what no pattern of a selection includes or overrides stays if it would not be
 * smaller.) user is not used. */
LB_API const char *lb_choose_weights(void *user, const lb_entry *e,
                                     lb_quant_config *config);

/* Arrays by patterns of their names: regular expressions as Perl has them,
 * that match anywhere in a name. An exclusion keeps what it matches as it is;
 * an inclusion takes in what the default above leaves; an override,
 * "PATTERN=TYPE[:KEY=VALUE,..]" or "PATTERN=keep", says how, and the last one
 * that matches counts. It takes in what it matches, too, but for vectors: norms
 * and biases of the layers that it is meant for. Keys are block_size, axis,
 * double_quant (yes, no), scale (none, tensor, row, block), threshold (std,
 * absmean), compat and nonfinite (error, clamp). A recipe is a file of lines
 * include PATTERN, exclude PATTERN, override ..; empty ones and those that
 * begin with # do not count. False and an error. NULL is fine for close. */
typedef struct lb_selection lb_selection;
LB_API lb_selection *lb_selection_open(lb_ctx *cx);
LB_API void lb_selection_close(lb_selection *s);
LB_API bool lb_selection_include(lb_ctx *cx, lb_selection *s, const char *text);
LB_API bool lb_selection_exclude(lb_ctx *cx, lb_selection *s, const char *text);
LB_API bool lb_selection_override(lb_ctx *cx, lb_selection *s,
                                  const char *text);
LB_API bool lb_selection_recipe(lb_ctx *cx, lb_selection *s, const char *path);
/* A lb_choose, with the selection as its user. */
LB_API const char *lb_selection_choose(void *selection, const lb_entry *e,
                                       lb_quant_config *config);

/* An array that has been written: what lb_quantize_options.done is told. */
typedef struct lb_written {
    const lb_entry *entry; /* of the source */
    int64_t i, n;          /* it is the i-th of n */
    const char *kept;      /* why it stays as it was; NULL: it does not */
    const lb_quant_config *config; /* of a quantized one; NULL: it is not */
    const char *format;            /* of it in the new file: "dense", .. */
    lb_dtype dtype;                /* .. and what it loads as */
    uint64_t nbytes;               /* in the new file */
    lb_difference error;           /* if measure was asked for; n is 0 if not */
    bool fell_back; /* it was to be quantized, or otherwise: shape or layout do
                     * not allow it */
    bool resumed;   /* it was written by an earlier run */
} lb_written;

/* How far a job has come: bytes of the source, as often as they are read (with
 * a target, or scales of scales, more than once). */
typedef struct lb_progress {
    const lb_entry *entry; /* at work on this one */
    uint64_t done, total;
    int64_t arrays_done, arrays;
} lb_progress;

/* What becomes of an array whose shape its format does not take. */
typedef enum lb_shape_fallback {
    LB_FALLBACK_KEEP = 0, /* it stays as it is, and is named */
    LB_FALLBACK_ERROR = 1,
    LB_FALLBACK_ADJUST = 2 /* the first of lb_quantize_options.other that takes
                            * it; if none does it stays */
} lb_shape_fallback;

/* Zero means the default. */
typedef struct lb_quantize_options {
    size_t struct_size;
    const char *kind;   /* as in lb_save_options */
    const char *layout; /* likewise; the default of a directory is the layout
                         * that transformers loads (bnb for nf4 and int8, with
                         * its arithmetic if compat is native; bitnet for
                         * ternary), if it can store everything as requested,
                         * otherwise native; see note */
    lb_quant_config config; /* how, where choose says nothing else */
    lb_choose choose;       /* NULL: lb_choose_weights. May be called twice for
                             * an array */
    void *choose_user;
    void (*done)(void *user, const lb_written *w); /* NULL: nobody */
    void *done_user;
    uint64_t max_memory; /* bytes of arrays at a time, whatever the size of the
                          * file and its arrays; 0: 512 MiB */
    bool no_sync;
    bool measure;   /* fill lb_written.error */
    bool dry_run;   /* plan, tell done, and write nothing. Everything that the
                     * real run would refuse is an error; with measure the
                     * values of all arrays are read, too. to may be NULL */
    bool resume;    /* go on where a run with the same options, that was killed,
                     * has left DST.partial: the bytes are those of one run. If
                     * there is none, or it is of another job: from the start */
    bool strict;    /* LB_E_DENIED, before anything is written, if an array that
                     * is to be quantized cannot be, or only otherwise */
    bool directory; /* to is a directory of a model, which is made; of a source
                     * that is one, all but the weights goes over, too */
    lb_shape_fallback fallback;
    const lb_quant_config *other; /* see fallback, and target below */
    int n_other;
    /* A target for the whole result, in bits per element or in bytes (headers
     * included); 0: none. Each array gets one of the types in config and other,
     * or, if other is empty, of all types that the output can store: the
     * assignment with about the least squared error that fits, and never larger
     * and less exact than one type for all arrays. Every array is measured in
     * every type, which takes as long as quantizing it so many times. */
    double target_bits;
    uint64_t target_bytes;
    void (*progress)(void *user, const lb_progress *p); /* NULL: nobody */
    void *progress_user;
    lb_selection *selection;  /* instead of choose; a pattern that matches no
                               * name is a warning (see warn) */
    const char *linear_class; /* as in lb_file_options; of a directory in the
                               * layout bitnet: what config.json is to say */
    bool
        verify; /* read all arrays back before the file gets its name: LB_E_FILE
                 * if one is not as it was written, and what stood there stays.
                 * (Of npz its own sums do that, for whoever reads it.) */
    /* Ranks that share the work: all call it with the same arguments, and the
     * file is that of one. Each reads and writes what is its; done is told of
     * all arrays, when they are done. Not for npz. NULL: this one alone. */
    lb_comm *comm;
    /* Called after each piece of an array (at most a few MB, unless the array
     * must be quantized as a whole). True stops the job with LB_E_CANCELLED;
     * DST.partial is kept, so that a run with resume continues it (npz: it is
     * removed). With comm, one rank that stops, stops all. NULL: never. */
    bool (*cancel)(void *user);
    void *cancel_user;
    /* Called with a sentence before the first array is quantized, for each
     * pattern of the selection that matches no array. NULL, or strict: such a
     * pattern is an error. */
    void (*warn)(void *user, const char *text);
    void *warn_user;
    /* Called with a phrase about each decision that the options leave to the
     * job: the layout of a directory, and why. NULL: nobody. */
    void (*note)(void *user, const char *text);
    void *note_user;
} lb_quantize_options;

/* Quantizes a file, or the directory of a model, piece by piece: what is not
 * chosen, or what the layout has no place for, goes over as it is. Values of
 * the source go over, too: texts, and from GGUF to GGUF all. to is written as
 * lb_saver_open does it: whole or not at all. NaN and infinities in what is
 * quantized are LB_E_CONTENT, unless config.on_nonfinite clamps them. */
LB_API bool lb_quantize_file(lb_ctx *cx, const char *from, const char *to,
                             const lb_quantize_options *options);

/* ---- a file, converted -------------------------------------------------- */

/* Zero means the default; what is not explained is as in lb_quantize_options.
 */
typedef struct lb_convert_options {
    size_t struct_size;
    const char *kind;
    const char *layout; /* the default of a directory is that of the source */
    lb_dtype dtype; /* of floats that are, or become, dense; none: each its own
                     */
    bool keep;      /* packed arrays stay packed, with their codes and scales,
                     * where kind and layout have a place for them; else they
                     * are decoded */
    void (*done)(void *user, const lb_written *w);
    void *done_user;
    uint64_t max_memory; /* what is packed must fit */
    bool no_sync, measure, dry_run, resume, directory;
    bool strict; /* with keep: what there is no place for is an error */
    void (*progress)(void *user, const lb_progress *p);
    void *progress_user;
    const char *linear_class; /* as in lb_file_options */
    bool verify;
    lb_comm *comm;
    bool (*cancel)(void *user);
    void *cancel_user;
} lb_convert_options;

/* Writes the arrays of a file, or of a model, into another: decoded, in another
 * dtype, kind of file or layout. */
LB_API bool lb_convert_file(lb_ctx *cx, const char *from, const char *to,
                            const lb_convert_options *options);

#ifdef __cplusplus
}
#endif
#endif
