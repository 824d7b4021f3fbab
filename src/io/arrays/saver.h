/* saver.h - saving arrays to a file; the interface of layouts to it. */
#ifndef LB_SAVER_H
#define LB_SAVER_H

#include "io/jobs/checksums.h"
#include "io/layouts/descriptor.h"
#include "lowbit_mesh.h"

struct lb_saved {
    const char *name;
    const lb_format *format; /* NULL: dense */
    lb_dtype dtype;
    lb_shape shape;
    const lb_described *described; /* of a quantized array */
    lb_array *array;     /* during planning: the array, if it exists already; of
                          * a sharded array this rank's slice */
    bool spread;         /* sharded */
    const float *offset; /* during planning: the mean of its scales, if known */
    const lb_file_layout *layout; /* NULL: a single tensor */
    int64_t first;                /* index of its first tensor in the file */
    int n_tensors;
    uint64_t put[LB_GROUP_MOST]; /* bytes written so far, by tensor */
};

struct lb_saver {
    lb_arena arena; /* holds this struct and the fields below */
    const lb_container *kind;
    lb_writer *w;
    lb_saved *item;
    int64_t n, at;
    bool *done; /* items written by an earlier run */
    lb_journal journal;
    lb_readback sums; /* of the item being written, if there is a journal */
    bool verify;
    lb_tensor *tensor; /* during planning */
    int64_t n_tensors;
    lb_meta *meta;
    int64_t n_meta;
    bool failed;
    lb_mesh *mesh;    /* ranks that write it together; NULL: one process */
    const int *owner; /* with a mesh: the rank that writes each item */
};

/* Options of internal callers. */
typedef struct lb_saver_more {
    const float *offset; /* lb_saved.offset of each array, or NULL */
    /* Sets *a to the i-th array, if the list has only its name, for as long as
     * it is planned; or sets *raw to a tensor that is copied byte by byte; or
     * sets neither. NULL: the list has all arrays. */
    bool (*load)(void *user, int64_t i, lb_array **a, const lb_tensor **raw);
    void *user;
    bool journal; /* keep a journal, so that the run can be resumed */
    bool resume;  /* resume an earlier run */
    uint64_t job; /* identifies the job of the journal */
    bool verify;  /* read the file back before it is renamed */
    bool unnamed; /* as in lb_write_options */
    /* Ranks that write the file together: owner[i] writes array i. All begin
     * and close it. */
    lb_mesh *mesh;
    const int *owner;
    bool plan_only; /* write nothing: for sizes and descriptors */
    bool compose;   /* with plan_only: compose the header, for its errors */
    bool shared;    /* with compose: for a file that several ranks write */
    const lb_reader *copied; /* as in lb_write_options */
    int copied_file;
} lb_saver_more;

lb_saver *lb_saver_begin(lb_ctx *cx, const char *path, const lb_planned *list,
                         int64_t n, const lb_save_options *options,
                         const lb_saver_more *more);
/* Appends a piece of the array that lb_saver_next names: its next rows, or its
 * next elements if it is stored flat. Parts that are shared by all pieces are
 * taken from the first one. For a dense array: its next bytes. */
bool lb_saver_piece(lb_ctx *cx, lb_saver *s, lb_array *piece);
/* Begins the array again: its pieces so far will be overwritten. */
void lb_saver_rewind(lb_saver *s);
/* Completes the array. record: LB_RECORD bytes for the journal, whose last 8
 * belong to the saver, or NULL. */
bool lb_saver_end(lb_ctx *cx, lb_saver *s, const void *record);
/* Whether the next array, which existed when it was planned, may be written in
 * pieces of rows. */
bool lb_saver_takes_rows(const lb_saver *s);
/* The journal record of an array that an earlier run has written, else NULL. */
const void *lb_saver_record(const lb_saver *s, int64_t i);
/* Bytes of all tensors of array i. */
uint64_t lb_saver_size(const lb_saver *s, int64_t i);

/* Whether a file of that kind and layout can store p; if not, LB_DECLINED. NULL
 * is the default kind or layout. */
lb_verdict lb_saver_suits(lb_ctx *cx, const lb_planned *p, const char *kind,
                          const char *layout);

/* save_plan.c. lb_saver_kind: sets the container by name (NULL: the default),
 * or fails. lb_saver_plan: plans an item of the file and adds its tensors. */
bool lb_saver_kind(lb_ctx *cx, lb_saver *s, const char *kind);
lb_verdict lb_saver_plan(lb_ctx *cx, lb_saver *s, const lb_planned *p,
                         const char *layout, lb_saved *item);
/* The same for a tensor of another file of this kind, copied as bytes. */
bool lb_saver_plan_raw(lb_ctx *cx, lb_saver *s, const lb_tensor *t,
                       lb_saved *item);
/* Adds a tensor PREFIX SUFFIX to an item; n: length of the prefix. type: a type
 * name of the container; NULL: the container's type for dtype. */
bool lb_saver_tensor(lb_ctx *cx, lb_saver *s, lb_saved *item,
                     const char *prefix, size_t n, const char *suffix,
                     const char *type, lb_dtype dtype, const lb_shape *shape);
/* Whether the container has a type for dtype. */
bool lb_saver_takes(const lb_saver *s, lb_dtype dtype);
/* Adds a metadata value; what it points to must outlive the saver. */
bool lb_saver_value(lb_ctx *cx, lb_saver *s, const lb_meta *m);
/* Adds the descriptor as metadata value "lowbit.NAME". */
bool lb_saver_describe(lb_ctx *cx, lb_saver *s, const char *name,
                       const lb_described *d);

/* Checks the caller's options, which may be NULL, and completes them. */
bool lb_save_options_read(lb_ctx *cx, const lb_save_options *options,
                          lb_save_options *o);
/* save_sharded.c: describes a whole array, of which this rank has a slice. */
lb_described *lb_describe_spread(lb_ctx *cx, lb_arena *arena, const char *name,
                                 const lb_array *a);

/* descriptor_make.c: describes an array that exists, or one that is planned, in
 * memory of the arena; NULL and an error on failure. */
lb_described *lb_describe_array(lb_ctx *cx, lb_arena *arena, const char *name,
                                const lb_array *a);
lb_described *lb_describe_config(lb_ctx *cx, lb_arena *arena,
                                 const lb_planned *p);
/* The part of that name; NULL if there is none. */
const lb_described_part *lb_described_part_of(const lb_described *d,
                                              const char *name);

#endif
