/* job.h - a file on its way into another: what is known of it while it is
 * planned and done. */
#ifndef LB_JOB_H
#define LB_JOB_H

#include "io/jobs/copy_array.h"

/* One array of the source. */
typedef struct lb_job_item {
    const lb_group *group;
    const char *kept; /* why it stays; NULL: it is quantized */
    lb_quant_config config;
    const lb_file_layout *layout; /* that has config's format only, or NULL */
    bool fell_back;
    bool decoded;   /* it was packed, or of another dtype, and is dense of .. */
    lb_dtype dtype; /* .. this; none: its own */
    bool stored;    /* it is packed, and goes over so */
    bool raw;       /* a tensor, copied byte by byte */
    bool fixed;     /* its config is not the one that holds for all */
    int shard;      /* of the new directory: from 0 */
} lb_job_item;

typedef struct lb_job {
    lb_ctx *cx;
    lb_quantize_options own; /* a copy, completed: o points to it */
    char note[256];          /* why its layout was chosen; "": it was given */
    const lb_quantize_options *o;
    const lb_convert_options *convert; /* then nothing is quantized; or NULL */
    lb_arena arena;
    lb_file *f;
    bool verbatim; /* its tensors and configuration are copied unchanged: they
                    * are of a method that is not decoded here */
    lb_job_item *item;
    lb_planned *list;
    float *offset;    /* of those that the layout must know it of */
    lb_group **group; /* of f, in the order of the output */
    lb_meta *meta;
    int64_t n, n_meta;
    lb_saver *plan;       /* of all arrays: sizes and descriptions */
    uint64_t number;      /* all that the result depends on */
    int shards;           /* files of the new directory */
    uint64_t read, total; /* bytes of the source, as often as they are read */
    const lb_entry *at;   /* being read */
    int64_t finished;     /* arrays that are written, or measured */
    lb_mesh *mesh;        /* ranks that share the work; NULL: this one alone */
    int lock; /* of the directory that it writes: a descriptor + 1; 0: none */
} lb_job;

/* Whether all ranks are well. With others, all say and hear so. */
bool lb_job_meet(const lb_job *j, bool ok);
/* Whether this is the one that does what is to be done once. */
bool lb_job_leads(const lb_job *j);
/* What the first rank says; called by all. */
bool lb_job_decides(lb_job *j, bool yes);

/* job_meta.c: metadata of the output, and the order of its arrays, from j->f;
 * once the arrays are planned, what the GGUF file of a model says about their
 * types: general.file_type and general.quantization_version. False and an
 * error. */
bool lb_job_take_meta(lb_job *j);
bool lb_job_set_file_type(lb_job *j);

/* Reports nbytes more of j->at, an array of the source, as read; the progress
 * callback of a transfer, whose user is the job. False and LB_E_CANCELLED: the
 * caller stops the job. */
bool lb_job_advance(void *user, uint64_t nbytes);

/* Whether the caller stops the job: true and LB_E_CANCELLED. */
bool lb_job_cancelled(lb_ctx *cx, const lb_quantize_options *o);

/* copy_foreign.c: whether what another program has quantized may be what the
 * job makes of it; false and an error that names the method. It may be copied
 * only: then j->verbatim is set, and j->f lists tensors. */
bool lb_job_check_method(lb_job *j, const char *from);
/* Item it of such a job, to s, which may be NULL. */
bool lb_job_copy_raw(lb_job *j, const lb_job_item *it, lb_saver *s);

/* choose_layout.c: the layout of a directory, if the options name none. */
void lb_job_choose_layout(lb_job *j);
/* Whether the output has a place for a packed array as it is stored. */
lb_verdict lb_job_suits_stored(lb_job *j, const lb_entry *e);

/* Whether it is, and what the new file is to have for it. */
bool lb_job_quantizes(const lb_job_item *it);
lb_planned lb_job_planned(const lb_job_item *it);
/* What becomes of an array whose group is set. False: an error. */
/* Whether it can be an array here; else a sentence. */
bool lb_job_rank_ok(lb_job *j, const lb_entry *e);
bool lb_job_plan_quantized(lb_job *j, lb_job_item *it); /* quantize_file.c */
bool lb_job_plan_converted(lb_job *j, lb_job_item *it); /* convert_file.c */

/* What a user says, checked; options may be NULL. */
bool lb_job_options(lb_ctx *cx, const lb_quantize_options *options,
                    lb_quantize_options *o);
/* All of it; c NULL: it is quantized. */
bool lb_job_run(lb_ctx *cx, const char *from, const char *to,
                const lb_quantize_options *o, const lb_convert_options *c);

/* bit_budget.c: whether the job has a target size; and a type for each array,
 * chosen to reach it: see lb_quantize_options.target_bits. To be called when
 * everything else is planned. */
bool lb_job_has_target(const lb_job *j);
bool lb_job_allocate(lb_job *j);
/* quantize_file.c: whether the array is quantized as it->config describes, or
 * why it is kept. False: an error. */
bool lb_job_decide(lb_job *j, lb_job_item *it);
bool lb_job_same_config(const lb_quant_config *a, const lb_quant_config *b);
/* What the job makes of array i, but for the types that it might have. */
lb_transfer lb_job_transfer(lb_job *j, const lb_job_item *it);
/* Bytes of it in the new file. False: an error. */
bool lb_job_bytes(lb_job *j, const lb_job_item *it, uint64_t *nbytes);
/* Whether it can be quantized as it->config says: if not it->kept is set, or
 * the config is another. False: an error. */
bool lb_job_suits(lb_job *j, lb_job_item *it);

/* The same without other configs: false and no error if it cannot. */
bool lb_job_tries(lb_job *j, lb_job_item *it);

/* Tells the caller that nbytes at path, the partial output of an earlier run,
 * were discarded; same: that --resume would have continued them. */
void lb_job_note_discarded(lb_job *j, const char *path, uint64_t nbytes,
                           bool same);
/* Writes the arrays of one shard (-1: all) to a file of that name. */
bool lb_job_write(lb_job *j, const char *path, int shard);
/* Tells that those of a shard were written before. What they have lost was not
 * noted with them, and is measured again if it is asked for. */
bool lb_job_skip(lb_job *j, int shard);

/* model_dir.c: writes the result as a model directory. */
bool lb_job_write_directory(lb_job *j, const char *from, const char *to);
/* Whether the result, a directory or a file, can be written at to; checked by
 * the first rank. False and an error. */
bool lb_job_may_write(lb_job *j, const char *from, const char *to);
/* For errors before the first byte is written: whether the other files of a
 * model directory can be read, config.json can be composed (if configure), and
 * the file system has room for them and for so many bytes of weights. */
bool lb_job_check_directory(lb_job *j, const char *from, const char *to,
                            uint64_t weights, bool configure);

#endif
