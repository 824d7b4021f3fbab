/* container.h - files of named tensors: the interface of all containers.
 *
 * A container (safetensors, GGUF, npy, ...) is one file that ends in one
 * struct, a lb_container, and one line in registry_io.c. The kind of a file is
 * detected from its first bytes, never from its name. Opening a file checks its
 * whole header against the file's size and reads no tensor. The result is a
 * list of names with byte ranges, and metadata. The meaning of the bytes is up
 * to the layouts.
 *
 *     lb_reader *r = lb_reader_open(cx, "model.gguf", NULL);
 *     const lb_tensor *t = lb_reader_find(r, "output.weight");
 *     const void *in_place = lb_reader_at(r, t);       // may be NULL: then
 *     lb_reader_read(cx, r, t, 0, t->size, buffer);    // ... or in chunks
 *
 *     lb_writer *w = lb_writer_open(cx, lb_container_named("gguf"), ...);
 *     for (int64_t i; (i = lb_writer_next(w)) >= 0;)
 *         lb_writer_put(cx, w, bytes of tensor[i], their number); // in chunks
 *     lb_writer_close(cx, w, true);
 */
#ifndef LB_CONTAINER_H
#define LB_CONTAINER_H

#include "io/util/arena.h"
#include "io/util/infile.h"
#include "io/util/outfile.h"
#include "lowbit_io.h"

typedef struct lb_container lb_container;
typedef struct lb_reader lb_reader;
typedef struct lb_writer lb_writer;

/* How a container stores elements: len of them in size bytes. */
typedef struct lb_coding {
    const char *name; /* the name in the file: "BF16", "Q4_K", "<f4" */
    lb_dtype dtype;   /* the matching dtype, if little-endian; else none */
    int len, size;    /* len 0: obsolete type, rejected */
    int code;         /* the container's number for it */
} lb_coding;

typedef struct lb_tensor {
    const char *name;   /* unique in the file; contains no 0 */
    const char *type;   /* lb_coding.name, whether loadable or not */
    lb_dtype dtype;     /* none: not loadable */
    int rank;           /* GGUF: 0 to 4; others may exceed LB_MAX_RANK */
    const int64_t *dim; /* slowest axis first, unless fortran */
    bool fortran;       /* the first axis varies fastest */
    int file;           /* index of lb_reader.file */
    uint64_t begin;     /* offset in that file; 0 if packed */
    uint64_t size;      /* bytes, uncompressed */
    bool packed;        /* compressed: no byte range in the file */
    int swap;           /* big-endian, with units of this many bytes; 0: no.
                 * lb_reader_read swaps them */
    int64_t id;         /* private to the container */
} lb_tensor;

/* ---- reading ------------------------------------------------------------- */

/* The maximum header size that the reference implementation reads. */
enum { LB_HEADER_MOST = 100000000 };

/* Zero means the default. */
typedef struct lb_read_options {
    bool no_map;         /* read by pread; see infile.h */
    uint64_t max_header; /* for safetensors and its index; 0: LB_HEADER_MOST */
} lb_read_options;

struct lb_reader {
    const lb_container *kind;
    lb_read_options options;
    lb_arena arena; /* holds the fields below */
    lb_infile **file;
    int n_files;
    lb_tensor *tensor; /* in file order */
    int64_t n_tensors;
    lb_meta *meta; /* in file order */
    int64_t n_meta;
    lb_tensor **by_name;
    lb_meta **by_key;
    void *own; /* private to the container */
};

/* path: a file, or a directory that contains model.safetensors.index.json or
 * model.safetensors. options may be NULL. NULL and an error: LB_E_FILE for
 * system errors, LB_E_CONTENT for invalid files. */
lb_reader *lb_reader_open(lb_ctx *cx, const char *path,
                          const lb_read_options *options);
/* The same for an open file, whose reference it takes over in any case. A NULL
 * file returns NULL. */
lb_reader *lb_reader_open_file(lb_ctx *cx, lb_infile *file,
                               const lb_read_options *options);
void lb_reader_close(lb_reader *r); /* NULL is allowed */

/* NULL if not found. Functions below that take no context may be called from
 * any thread. */
const lb_tensor *lb_reader_find(const lb_reader *r, const char *name);
/* The same for a name in two parts: n characters of prefix, then suffix. */
const lb_tensor *lb_reader_find_in(const lb_reader *r, const char *prefix,
                                   size_t n, const char *suffix);
const lb_meta *lb_reader_meta(const lb_reader *r, const char *key);
/* The same for a key in two parts, with n characters of rest. */
const lb_meta *lb_reader_meta_in(const lb_reader *r, const char *prefix,
                                 const char *rest, size_t n);
/* Address of all bytes of a tensor, with any alignment; NULL if they must be
 * read: not mapped, compressed or big-endian. Valid while the file is open. */
const void *lb_reader_at(const lb_reader *r, const lb_tensor *t);
/* Reads bytes [first, first + n) of a tensor, as little-endian; for a
 * big-endian tensor both ends must be multiples of its unit. A compressed
 * tensor is decompressed from its start, unless the previous call ended at or
 * before first. One thread at a time. */
bool lb_reader_read(lb_ctx *cx, lb_reader *r, const lb_tensor *t,
                    uint64_t first, size_t n, void *dst);

/* ---- writing ------------------------------------------------------------- */

/* Zero means the default. */
typedef struct lb_write_options {
    lb_infile *const *input; /* files that must not be overwritten */
    int n_inputs;
    bool no_sync;        /* do not sync to disk */
    bool place;          /* use lb_writer_place, if supported */
    bool shared, join;   /* with place: several processes write the file; join:
                          * another one has opened it and will rename it */
    lb_journal *journal; /* with place: see outfile.h; NULL: none */
    bool unnamed;      /* without journal and shared: lb_outfile_open_unnamed */
    bool compose_only; /* dry run: compose the header, open no file */
    /* With place: copy the header and offsets of copied->file[copied_file], a
     * file of the same kind with the same tensors, instead of composing them;
     * meta is ignored. NULL: compose. */
    const lb_reader *copied;
    int copied_file;
} lb_write_options;

struct lb_writer {
    const lb_container *kind;
    lb_write_options options;
    lb_arena arena;
    lb_outfile *out;
    lb_tensor *tensor; /* the caller's; type, dtype, begin and size set */
    int64_t n_tensors;
    const lb_meta *meta; /* the caller's, while the header is composed */
    int64_t n_meta;
    int64_t *order;  /* indices of tensors in the order of writing */
    lb_bytes header; /* composed by the container, written by lb_writer_open */
    uint64_t header_size, header_sum; /* size and XXH3 hash of the written
                                       * header */
    uint64_t total;                   /* size of the whole file */
    int64_t at;                       /* index in order of the current tensor */
    uint64_t done;                    /* bytes written of it */
    bool sized;                       /* options.place, and supported */
    uint64_t placed;                  /* bytes written by lb_writer_place */
    bool failed;
    void *own; /* private to the container */
};

/* Creates a file and writes its header. Of each tensor, name, type (a type name
 * of the container), rank, dim and fortran are used; arguments need not outlive
 * the call. options may be NULL. NULL and an error: an existing file at path is
 * unchanged. The output is deterministic. */
lb_writer *lb_writer_open(lb_ctx *cx, const lb_container *kind,
                          const char *path, const lb_tensor *tensor, int64_t n,
                          const lb_meta *meta, int64_t n_meta,
                          const lb_write_options *options);
/* Index of the next tensor to be written; -1 when complete. Tensors without
 * bytes are skipped. */
int64_t lb_writer_next(const lb_writer *w);
/* Appends n bytes to it, no more than remain. */
bool lb_writer_put(lb_ctx *cx, lb_writer *w, const void *bytes, size_t n);
/* Writes n bytes of tensor i at offset first, in any order, each byte once. An
 * alternative to the two functions above, if options.place is set and the
 * container supports it (lb_writer_places). */
bool lb_writer_places(const lb_writer *w);
bool lb_writer_place(lb_ctx *cx, lb_writer *w, int64_t i, uint64_t first,
                     const void *bytes, size_t n);
/* All bytes of tensor i were written by an earlier run. */
void lb_writer_has(lb_writer *w, int64_t i);
/* Closes it. commit: renames the file to its path, which fails if bytes are
 * missing. NULL is allowed. */
bool lb_writer_close(lb_ctx *cx, lb_writer *w, bool commit);

/* ---- kinds --------------------------------------------------------------- */

enum { LB_PROBE = 16 }; /* bytes that a probe gets */

struct lb_container {
    const char *name;
    const lb_coding *coding; /* ends with name NULL */
    bool fortran;            /* supports Fortran order */
    bool groups;             /* can hold layouts of several tensors per array,
                              * and their descriptors */
    /* Required. n < LB_PROBE only if the file is shorter. */
    bool (*probe)(const uint8_t *head, size_t n);
    /* Required. Fills r from r->file[0], in memory of r->arena. Duplicate names
     * are checked by the caller. */
    bool (*open)(lb_ctx *cx, lb_reader *r);
    /* Optional. Frees r->own; also called after a failed open. */
    void (*close)(lb_reader *r);
    /* Required for compressed tensors; as lb_reader_read. */
    bool (*unpack)(lb_ctx *cx, lb_reader *r, const lb_tensor *t, uint64_t first,
                   size_t n, void *dst);
    /* Required for writing: composes w->header and sets order, begin and total.
     * Names are unique and sizes are set. */
    bool (*compose)(lb_ctx *cx, lb_writer *w);
    /* Optional; gaps between tensors are filled with zeros without them. They
     * write what precedes and follows the bytes of tensor i, and what follows
     * all tensors. put sees the bytes as they are written. */
    bool (*before)(lb_ctx *cx, lb_writer *w, int64_t i);
    void (*put)(lb_writer *w, const void *bytes, size_t n);
    bool (*after)(lb_ctx *cx, lb_writer *w, int64_t i);
    bool (*finish)(lb_ctx *cx, lb_writer *w);
};

extern const lb_container *const lb_containers[];         /* ends with NULL */
const lb_container *lb_container_named(const char *name); /* or NULL */

/* For containers. lb_refuse: LB_E_CONTENT with "PATH: " before the message. */
bool lb_refuse(lb_ctx *cx, const lb_infile *f, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* LB_E_UNSUPPORTED: the file is a Python pickle, which cannot be read without
 * running code. Returns false. */
bool lb_refuse_pickle(lb_ctx *cx, const lb_infile *f);
/* LB_E_CONTENT: a tensor ends at byte `end` of the data, which has only `have`.
 */
bool lb_refuse_truncated(lb_ctx *cx, const lb_infile *f, const lb_tensor *t,
                         uint64_t end, uint64_t have);
const lb_coding *lb_coding_find(const lb_coding *list, const char *name);
/* Size of a tensor in bytes; false if it overflows or is not a whole number of
 * blocks. */
bool lb_coding_size(const lb_coding *c, const int64_t *dim, int rank,
                    uint64_t *size);
/* lb_sort_tensors: n pointers sorted by name, stable; NULL and an error.
 * lb_tensor_twin: the first tensor with the same name as the one before it, or
 * NULL. */
lb_tensor **lb_sort_tensors(lb_ctx *cx, lb_arena *arena, lb_tensor *t,
                            int64_t n);
const lb_tensor *lb_tensor_twin(lb_tensor *const *by_name, int64_t n);
/* The same for metadata. */
lb_meta **lb_sort_meta(lb_ctx *cx, lb_arena *arena, const lb_meta *m,
                       int64_t n);
const lb_meta *lb_meta_twin(lb_meta *const *by_key, int64_t n);
/* Fills by_name and by_key, and rejects duplicate names. Called after open,
 * unless the container has done so. */
bool lb_reader_index(lb_ctx *cx, lb_reader *r);
bool lb_utf8_valid(const char *text, size_t n);

#endif
