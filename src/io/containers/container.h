/* container.h - files that hold named tensors: what all kinds of them share.
 *
 * A kind (safetensors, GGUF, npy, ..) is one file that ends in one struct, a
 * lb_container, and one line in registry_io.c. Which kind a file is its first
 * bytes say, never its name. Opening one checks everything that its header
 * claims against the file's size, and reads no tensor; what it finds are names
 * with byte ranges and metadata. Nothing here knows what the numbers mean: that
 * is for the layouts above.
 *
 *     lb_reader *r = lb_reader_open(cx, "model.gguf", NULL);
 *     const lb_tensor *t = lb_reader_find(r, "output.weight");
 *     const void *in_place = lb_reader_at(r, t);       // may be NULL: then
 *     lb_reader_read(cx, r, t, 0, t->size, buffer);    // .. or in chunks
 *
 *     lb_writer *w = lb_writer_open(cx, lb_container_named("gguf"), ..);
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

/* How a kind stores numbers: len of them in size bytes. */
typedef struct lb_coding {
    const char *name; /* as the file has it: "BF16", "Q4_K", "<f4" */
    lb_dtype dtype;   /* if it is one of ours, little-endian; else none */
    int len, size;    /* len 0: no longer in use, refused */
    int code;         /* the kind's own number for it */
} lb_coding;

typedef struct lb_tensor {
    const char *name;   /* unique in the file; holds no 0 inside */
    const char *type;   /* lb_coding.name, whether the library has it or not */
    lb_dtype dtype;     /* likewise */
    int rank;           /* any: of GGUF 0 to 4, of others more than ours */
    const int64_t *dim; /* the slowest first, if not fortran */
    bool fortran;       /* the first is the fastest */
    int file;           /* of lb_reader.file */
    uint64_t begin;     /* in that file; 0 if packed */
    uint64_t size;      /* bytes, unpacked */
    bool packed;        /* compressed: not in the file as they are */
    int swap;   /* big-endian, in units of so many bytes; 0: no. lb_reader_read
                 * turns them around */
    int64_t id; /* the kind's own */
} lb_tensor;

/* ---- reading ------------------------------------------------------------- */

/* Bytes of a header of safetensors that other programs read. */
enum { LB_HEADER_MOST = 100000000 };

/* Zero means the default. */
typedef struct lb_read_options {
    bool no_map;         /* read by pread; see file.h */
    uint64_t max_header; /* of safetensors and its index; 0: LB_HEADER_MOST */
} lb_read_options;

struct lb_reader {
    const lb_container *kind;
    lb_read_options options;
    lb_arena arena; /* holds what follows */
    lb_infile **file;
    int n_files;
    lb_tensor *tensor; /* in the order of their bytes */
    int64_t n_tensors;
    lb_meta *meta; /* in the file's order */
    int64_t n_meta;
    lb_tensor **by_name;
    lb_meta **by_key;
    void *own; /* the kind's */
};

/* path: a file, or a directory with model.safetensors.index.json or
 * model.safetensors in it. options may be NULL. NULL and an error: LB_E_FILE
 * if the system refuses, LB_E_CONTENT if the file is wrong. */
lb_reader *lb_reader_open(lb_ctx *cx, const char *path,
                          const lb_read_options *options);
/* The same for a file that is open already, whose reference is taken over in
 * any case. NULL is handed through. */
lb_reader *lb_reader_open_file(lb_ctx *cx, lb_infile *file,
                               const lb_read_options *options);
void lb_reader_close(lb_reader *r); /* NULL is fine */

/* NULL if there is none. Any thread, as all that follows, where no context is
 * given. */
const lb_tensor *lb_reader_find(const lb_reader *r, const char *name);
/* The same for a name in two pieces: n characters, then suffix. */
const lb_tensor *lb_reader_find_in(const lb_reader *r, const char *prefix,
                                   size_t n, const char *suffix);
const lb_meta *lb_reader_meta(const lb_reader *r, const char *key);
/* The same for a key in two pieces, of which the second has n characters. */
const lb_meta *lb_reader_meta_in(const lb_reader *r, const char *prefix,
                                 const char *rest, size_t n);
/* All bytes of a tensor where they lie, at any address; NULL if they must be
 * read: not mapped, packed or big-endian. Valid while the file is open. */
const void *lb_reader_at(const lb_reader *r, const lb_tensor *t);
/* Bytes [first, first + n) of a tensor, little-endian; of a big-endian one both
 * ends lie on units. Deflated tensors are unpacked from their begin to first,
 * unless the call before ended before it. One thread at a time. */
bool lb_reader_read(lb_ctx *cx, lb_reader *r, const lb_tensor *t,
                    uint64_t first, size_t n, void *dst);

/* ---- writing ------------------------------------------------------------- */

/* Zero means the default. */
typedef struct lb_write_options {
    lb_infile *const *input; /* files that may not be overwritten */
    int n_inputs;
    bool no_sync;        /* do not wait for the disk */
    bool place;          /* lb_writer_place is used, if the kind can */
    bool shared, join;   /* then: others write, too; one of them has opened it,
                          * and gives it its name */
    lb_journal *journal; /* then, too: see outfile.h; NULL: none */
    bool compose_only;   /* compose the header and open no file: a dry run */
} lb_write_options;

struct lb_writer {
    const lb_container *kind;
    lb_write_options options;
    lb_arena arena;
    lb_outfile *out;
    lb_tensor *tensor; /* as given; type, dtype, begin and size filled in */
    int64_t n_tensors;
    const lb_meta *meta; /* the caller's, while the header is composed */
    int64_t n_meta;
    int64_t *order;  /* in which tensors are written */
    lb_bytes header; /* composed by the kind, written by lb_writer_open */
    uint64_t header_size, header_sum; /* of it, XXH3, when it is gone */
    uint64_t total;                   /* bytes of the whole file */
    int64_t at;                       /* of order: being written */
    uint64_t done;                    /* bytes of that */
    bool sized;                       /* options.place, and the kind can */
    uint64_t placed;                  /* by lb_writer_place, of all tensors */
    bool failed;
    void *own; /* the kind's */
};

/* Writes the header of a file with these tensors: of each name, type (a name
 * that the kind knows), rank, dim and fortran count. Nothing of it is needed
 * after the call. options may be NULL. NULL and an error: what stood at path
 * stays. The same arguments and bytes give the same file. */
lb_writer *lb_writer_open(lb_ctx *cx, const lb_container *kind,
                          const char *path, const lb_tensor *tensor, int64_t n,
                          const lb_meta *meta, int64_t n_meta,
                          const lb_write_options *options);
/* The tensor whose bytes are wanted next, by its index; -1 when there is none.
 * Those without bytes are not asked for. */
int64_t lb_writer_next(const lb_writer *w);
/* Its next n bytes: no more than are left of it. */
bool lb_writer_put(lb_ctx *cx, lb_writer *w, const void *bytes, size_t n);
/* n bytes of tensor i at first, in any order, each byte once: instead of the
 * two above, where options.place is set and the kind can (lb_writer_places). */
bool lb_writer_places(const lb_writer *w);
bool lb_writer_place(lb_ctx *cx, lb_writer *w, int64_t i, uint64_t first,
                     const void *bytes, size_t n);
/* All bytes of tensor i are in the file, from an earlier run. */
void lb_writer_has(lb_writer *w, int64_t i);
/* Ends it; commit: true makes it the file at its path, which fails if bytes are
 * missing. NULL is fine. */
bool lb_writer_close(lb_ctx *cx, lb_writer *w, bool commit);

/* ---- kinds --------------------------------------------------------------- */

enum { LB_PROBE = 16 }; /* bytes that a probe may see */

struct lb_container {
    const char *name;
    const lb_coding *coding; /* ends with name NULL */
    bool fortran;            /* can say that the first axis is the fastest */
    bool groups;             /* layouts of several tensors for an array, and
                              * texts that describe them, are written to it */
    /* Must. n < LB_PROBE: the file has no more. */
    bool (*probe)(const uint8_t *head, size_t n);
    /* Must. Fills r from r->file[0]; all memory from r->arena. Names need not
     * be unique yet. */
    bool (*open)(lb_ctx *cx, lb_reader *r);
    /* May. Releases r->own; also after a failed open. */
    void (*close)(lb_reader *r);
    /* Must, if tensors are packed: as lb_reader_read. */
    bool (*unpack)(lb_ctx *cx, lb_reader *r, const lb_tensor *t, uint64_t first,
                   size_t n, void *dst);
    /* Must, to be written: composes w->header and sets order, begin and total;
     * names are unique, sizes set. */
    bool (*compose)(lb_ctx *cx, lb_writer *w);
    /* May. (Between tensors that lie apart zeros are written without it.) What
     * goes into the file before and after the bytes of tensor i, and
     * after all of them; put sees the bytes as they pass. */
    bool (*before)(lb_ctx *cx, lb_writer *w, int64_t i);
    void (*put)(lb_writer *w, const void *bytes, size_t n);
    bool (*after)(lb_ctx *cx, lb_writer *w, int64_t i);
    bool (*finish)(lb_ctx *cx, lb_writer *w);
};

extern const lb_container *const lb_containers[];         /* ends with NULL */
const lb_container *lb_container_named(const char *name); /* or NULL */

/* For kinds. lb_refuse: LB_E_CONTENT with "PATH: " before the sentence. */
bool lb_refuse(lb_ctx *cx, const lb_infile *f, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* LB_E_UNSUPPORTED: the file is a pickle of Python's, which only running it
 * could read. False. */
bool lb_refuse_pickle(lb_ctx *cx, const lb_infile *f);
/* The same for a tensor that ends at a byte of the data, which has fewer. */
bool lb_refuse_truncated(lb_ctx *cx, const lb_infile *f, const lb_tensor *t,
                         uint64_t end, uint64_t have);
const lb_coding *lb_coding_find(const lb_coding *list, const char *name);
/* Bytes of a tensor, and false if they cannot be counted or are no whole number
 * of blocks. */
bool lb_coding_size(const lb_coding *c, const int64_t *dim, int rank,
                    uint64_t *size);
/* Pointers to n tensors in order of their names, equal ones as they lie; NULL
 * and an error. The first that is called as the one before it, or NULL. */
lb_tensor **lb_sort_tensors(lb_ctx *cx, lb_arena *arena, lb_tensor *t,
                            int64_t n);
const lb_tensor *lb_tensor_twin(lb_tensor *const *by_name, int64_t n);
/* The same for values. */
lb_meta **lb_sort_meta(lb_ctx *cx, lb_arena *arena, const lb_meta *m,
                       int64_t n);
const lb_meta *lb_meta_twin(lb_meta *const *by_key, int64_t n);
/* Fills by_name and by_key, and refuses names that are not unique. Done after
 * open, unless it has been. */
bool lb_reader_index(lb_ctx *cx, lb_reader *r);
bool lb_utf8_valid(const char *text, size_t n);

#endif
