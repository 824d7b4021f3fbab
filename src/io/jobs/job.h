/* job.h - jobs that write a file into another: state and internal interface. */
#ifndef LB_JOB_H
#define LB_JOB_H

#include "io/jobs/move_array.h"

/* One array of the source. */
typedef struct lb_job_item {
    const lb_group *group;
    const char *kept; /* why it is not quantized; NULL: it is */
    lb_quant_config config;
    const lb_file_layout *layout; /* layout for config's format only, or NULL */
    bool fell_back;
    bool decoded;   /* a packed array, or one of another dtype, becomes dense */
    lb_dtype dtype; /* dtype of the result; none: unchanged */
    bool stored;    /* a packed array is copied as stored */
    bool raw;       /* a tensor, copied byte by byte */
    bool moves;     /* to another format, as plan says */
    bool told;      /* reported */
    lb_move_plan plan;
    const char *refused; /* why it cannot be moved; NULL: it may be */
    bool fixed;          /* its config differs from the common one */
    int shard;           /* of the output directory, from 0 */
} lb_job_item;

typedef struct lb_job {
    lb_ctx *cx;
    lb_quantize_options own; /* completed copy: o points to it */
    char note[256];          /* why the layout was chosen; "": it was given */
    const lb_quantize_options *o;
    const lb_convert_options *convert; /* a conversion: nothing is quantized; or
                                        * NULL */
    lb_arena arena;
    lb_file *f;
    bool verbatim; /* a foreign quantized checkpoint: files are copied
                    * unchanged */
    lb_job_item *item;
    lb_planned *list;
    float *offset;    /* lb_saved.offset of each array, if needed */
    lb_group **group; /* of f, in output order */
    lb_meta *meta;
    int64_t n, n_meta;
    lb_saver *plan;       /* of all arrays: sizes and descriptors */
    uint64_t number;      /* hash of everything that the result depends on */
    int shards;           /* files of the output directory */
    uint64_t read, total; /* source bytes, counted each time they are read */
    const lb_entry *at;   /* array being read */
    int64_t finished;     /* arrays written or measured */
    int64_t refused;      /* arrays that cannot be moved ... */
    int64_t quantized;    /* ... of those that are quantized in the source */
    const char *first_refused;   /* by name, while it runs */
    lb_move_result first_result; /* of it */
    lb_mesh *mesh; /* ranks that share the work; NULL: single process */
    int lock;      /* descriptor + 1 of the locked output directory; 0: none */
} lb_job;

/* Whether all ranks succeeded. Collective. */
bool lb_job_meet(const lb_job *j, bool ok);
/* Whether this rank does the work that is done only once. */
bool lb_job_leads(const lb_job *j);
/* Broadcasts the first rank's answer. Collective. */
bool lb_job_decides(lb_job *j, bool yes);

/* job_meta.c. lb_job_take_meta: metadata of the output and the order of its
 * arrays, from j->f. lb_job_put_config: after planning, the configuration of a
 * file without a directory. lb_job_set_file_type: after planning,
 * general.file_type and general.quantization_version of a GGUF model. False and
 * an error. */
bool lb_job_take_meta(lb_job *j);
bool lb_job_put_config(lb_job *j);
bool lb_job_set_file_type(lb_job *j);

/* Progress callback of transfers; user is the job. Adds nbytes of j->at, a
 * source array, to what was read. False and LB_E_CANCELLED if the caller
 * cancels. */
bool lb_job_advance(void *user, uint64_t nbytes);

/* Whether the caller stops the job: true and LB_E_CANCELLED. */
bool lb_job_cancelled(lb_ctx *cx, const lb_quantize_options *o);

/* copy_foreign.c: whether the job can handle a checkpoint that another program
 * has quantized; false and an error that names the method. If it can only be
 * copied, sets j->verbatim, and j->f lists tensors. */
bool lb_job_check_method(lb_job *j, const char *from);
/* The index in j->f->r->file of the file that such a job copies byte by byte to
 * that shard (-1: to its only file); -1: the output is composed, because
 * several files become one or the container cannot copy. */
int lb_job_copied_file(const lb_job *j, int shard);
/* Copies item it of such a job to s, which may be NULL. */
bool lb_job_copy_raw(lb_job *j, const lb_job_item *it, lb_saver *s);

/* choose_layout.c: sets the layout of a directory, if the options name none. */
void lb_job_choose_layout(lb_job *j);
/* Whether the output can hold a packed array as stored. */
lb_verdict lb_job_suits_stored(lb_job *j, const lb_entry *e);

/* Whether an item is quantized, and how it is planned in the output. */
bool lb_job_quantizes(const lb_job_item *it);
lb_planned lb_job_planned(const lb_job_item *it);
/* Whether the rank of an array is supported; else an error. */
bool lb_job_rank_ok(lb_job *j, const lb_entry *e);
bool lb_job_plan_quantized(lb_job *j, lb_job_item *it); /* Both plan an item
                                                         * whose group is set.
                                                         * False and an error.
                                                         * quantize_file.c */
bool lb_job_plan_converted(lb_job *j, lb_job_item *it); /* convert_file.c */

/* Checks the caller's options, which may be NULL, and completes them. */
bool lb_job_options(lb_ctx *cx, const lb_quantize_options *options,
                    lb_quantize_options *o);
/* Runs the job; c NULL: quantize. */
bool lb_job_run(lb_ctx *cx, const char *from, const char *to,
                const lb_quantize_options *o, const lb_convert_options *c);

/* move_file.c, for lb_convert_options.target. lb_job_set_target: checks it, and
 * sets kind or layout. lb_job_check_names: whether the names of the tensors
 * suit the output. lb_job_plan_moved: plans a packed array.
 * lb_job_move_result: the array that it becomes, uninitialized. lb_job_move:
 * moves it, or finds that it is refused. lb_job_deny_moves: the error, after
 * all arrays; the name and the result are those of the first refused one. */
bool lb_job_set_target(lb_ctx *cx, const lb_convert_options *c,
                       lb_quantize_options *o);
bool lb_job_check_names(lb_job *j);
bool lb_job_plan_moved(lb_job *j, lb_job_item *it);
/* Whether arrays that are quantized are then moved to the layout of the output,
 * and plans one. */
bool lb_job_writes_moved(const lb_job *j);
bool lb_job_plan_encoded(lb_job *j, lb_job_item *it);
lb_array *lb_job_move_result(lb_job *j, const lb_job_item *it);
bool lb_job_move(lb_job *j, lb_job_item *it, const lb_transfer *t, lb_saver *s,
                 lb_move_result *r);
void lb_job_deny_moves(lb_job *j, const char *name, const lb_move_result *r);

/* bit_budget.c. lb_job_has_target: whether the job has a target size.
 * lb_job_allocate: chooses a type for each array to reach it (see
 * lb_quantize_options.target_bits); called when everything else is planned. */
bool lb_job_has_target(const lb_job *j);
bool lb_job_allocate(lb_job *j);
/* quantize_file.c: sets it->kept if the array is not quantized as it->config
 * requests. False: an error. */
bool lb_job_decide(lb_job *j, lb_job_item *it);
bool lb_job_same_config(const lb_quant_config *a, const lb_quant_config *b);
/* The transfer of an item. */
lb_transfer lb_job_transfer(lb_job *j, const lb_job_item *it);
/* Its size in the output. False: an error. */
bool lb_job_bytes(lb_job *j, const lb_job_item *it, uint64_t *nbytes);
/* Checks whether it can be quantized as it->config requests; if not, sets
 * it->kept or another config. False: an error. */
bool lb_job_suits(lb_job *j, lb_job_item *it);

/* The same without fallbacks: false without an error if it cannot. */
bool lb_job_tries(lb_job *j, lb_job_item *it);

/* Tells the caller that nbytes at path, the partial output of an earlier run,
 * were discarded; same: that --resume would have continued them. */
void lb_job_note_discarded(lb_job *j, const char *path, uint64_t nbytes,
                           bool same);
/* Writes the arrays of one shard (-1: all) to path. */
bool lb_job_write(lb_job *j, const char *path, int shard);
/* Reports the arrays of a shard that an earlier run has completed. Their errors
 * are measured again if requested. */
bool lb_job_skip(lb_job *j, int shard);

/* model_dir.c: writes the result as a model directory. */
bool lb_job_write_directory(lb_job *j, const char *from, const char *to);
/* Whether the output, a directory or a file, can be written; checked by the
 * first rank. False and an error. */
bool lb_job_may_write(lb_job *j, const char *from, const char *to);
/* For errors before the first byte is written: whether the other files of a
 * model directory can be read, config.json can be composed (if configure), and
 * the file system has room for them and for so many bytes of weights. */
bool lb_job_check_directory(lb_job *j, const char *from, const char *to,
                            uint64_t weights, bool configure);

#endif
