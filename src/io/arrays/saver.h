/* saver.h - arrays on their way to a file, for layouts. */
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
    const lb_described *described; /* of a quantized one */
    lb_array *array;     /* if it is there already, while it is planned; of a
                          * sharded one this rank's slice */
    bool spread;         /* it is sharded */
    const float *offset; /* the mean of its scales, if it is known; likewise */
    const lb_file_layout *layout; /* NULL: one tensor */
    int64_t first;                /* of the file's tensors */
    int n_tensors;
    uint64_t put[LB_GROUP_MOST]; /* bytes of each that are written */
};

struct lb_saver {
    lb_arena arena; /* holds this and what follows */
    const lb_container *kind;
    lb_writer *w;
    lb_saved *item;
    int64_t n, at;
    bool *done; /* items that an earlier run has written */
    lb_journal journal;
    lb_readback sums; /* of the item being written, if there is a journal */
    bool verify;
    lb_tensor *tensor; /* while it is planned */
    int64_t n_tensors;
    lb_meta *meta;
    int64_t n_meta;
    bool failed;
    lb_mesh *mesh;    /* whose ranks write it together; NULL: alone */
    const int *owner; /* of each item: the rank that writes it; then */
};

/* How a file is written, beyond what users may say. */
typedef struct lb_saver_more {
    const float *offset; /* of each array: what lb_saved.offset will be; NULL */
    /* Sets *a to the i-th array, which the list only names, for as long as it
     * is planned; or sets *raw to a tensor whose bytes are copied as they are,
     * whatever they mean; or leaves both. NULL: the list has all. */
    bool (*load)(void *user, int64_t i, lb_array **a, const lb_tensor **raw);
    void *user;
    bool journal; /* keep one, so that the run can be taken up, .. */
    bool resume;  /* .. or take it up; .. */
    uint64_t job; /* .. of a job of this number */
    bool verify;  /* read it back before it gets its name */
    /* Ranks that write it together, each the arrays that owner, of n, says are
     * its. All begin and close it. */
    lb_mesh *mesh;
    const int *owner;
    bool plan_only; /* write nothing: for sizes and descriptions */
    bool compose;   /* .. but compose the header, for its errors; .. */
    bool shared;    /* .. also those of a file that several ranks write */
} lb_saver_more;

lb_saver *lb_saver_begin(lb_ctx *cx, const char *path, const lb_planned *list,
                         int64_t n, const lb_save_options *options,
                         const lb_saver_more *more);
/* The array that lb_saver_next names in pieces: each with what comes next of
 * its rows, or of its elements if it is stored flat. Parts that do not follow
 * them are taken from the first. Of one that is dense, its bytes. */
bool lb_saver_piece(lb_ctx *cx, lb_saver *s, lb_array *piece);
/* It is complete. record: LB_RECORD bytes for the journal, of which the last 8
 * are the saver's, or NULL. */
bool lb_saver_end(lb_ctx *cx, lb_saver *s, const void *record);
/* Whether the array that is wanted next may come in pieces of rows, if it is
 * one that was there when it was planned. */
bool lb_saver_takes_rows(const lb_saver *s);
/* Of an array that an earlier run has written its record, else NULL. */
const void *lb_saver_record(const lb_saver *s, int64_t i);
/* Bytes of all tensors of array i. */
uint64_t lb_saver_size(const lb_saver *s, int64_t i);

/* Whether a file of that kind and layout has a place for what is planned, which
 * it may not have: LB_DECLINED. Of kinds and layouts NULL is the default. */
lb_verdict lb_saver_suits(lb_ctx *cx, const lb_planned *p, const char *kind,
                          const char *layout);

/* save_plan.c: the kind of that name, or the default, or an error; and what is
 * planned as an item of the file, whose tensors it adds. */
bool lb_saver_kind(lb_ctx *cx, lb_saver *s, const char *kind);
lb_verdict lb_saver_plan(lb_ctx *cx, lb_saver *s, const lb_planned *p,
                         const char *layout, lb_saved *item);
/* The same for a tensor of another file of this kind, which comes as bytes. */
bool lb_saver_plan_raw(lb_ctx *cx, lb_saver *s, const lb_tensor *t,
                       lb_saved *item);
/* Another tensor of the array, called PREFIX SUFFIX, of which prefix has n
 * characters. type: as the kind has it; NULL: the kind's own for dtype. */
bool lb_saver_tensor(lb_ctx *cx, lb_saver *s, lb_saved *item,
                     const char *prefix, size_t n, const char *suffix,
                     const char *type, lb_dtype dtype, const lb_shape *shape);
/* Whether the kind has a type for dtype. */
bool lb_saver_takes(const lb_saver *s, lb_dtype dtype);
/* Another value of the file; what it points to must stay. */
bool lb_saver_value(lb_ctx *cx, lb_saver *s, const lb_meta *m);
/* A text among the file's values: "lowbit.NAME". */
bool lb_saver_describe(lb_ctx *cx, lb_saver *s, const char *name,
                       const lb_described *d);

/* What a user says, checked; options may be NULL. */
bool lb_save_options_read(lb_ctx *cx, const lb_save_options *options,
                          lb_save_options *o);
/* save_sharded.c: what all of an array is made of, of which this rank has a
 * slice. */
lb_described *lb_describe_spread(lb_ctx *cx, lb_arena *arena, const char *name,
                                 const lb_array *a);

/* descriptor_make.c: what an array is made of, that is there or to come. From
 * the arena; NULL and an error. */
lb_described *lb_describe_array(lb_ctx *cx, lb_arena *arena, const char *name,
                                const lb_array *a);
lb_described *lb_describe_config(lb_ctx *cx, lb_arena *arena,
                                 const lb_planned *p);
/* The part of that name; NULL if there is none. */
const lb_described_part *lb_described_part_of(const lb_described *d,
                                              const char *name);

#endif
