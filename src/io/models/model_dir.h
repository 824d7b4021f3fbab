/* model_dir.h - Hugging Face model directories. */
#ifndef LB_MODEL_DIR_H
#define LB_MODEL_DIR_H

#include "io/jobs/job.h"

/* Composes config.json with that "quantization_config"; NULL: without one. */
bool lb_model_json(lb_ctx *cx, lb_infile *config, const lb_bytes *value,
                   lb_bytes *out);
/* hf_config.c: composes config.json for the job's output; false and an error.
 * Writes nothing if no array is packed. */
bool lb_job_configure(lb_job *j, lb_bytes *to);
/* Whether config.json can be copied: all packed arrays are copied unchanged. */
bool lb_job_keeps_config(const lb_job *j);

/* A directory written by a job. begin: creates *partial (in the job's arena)
 * for its files. from: the source, a file or a directory, which cannot be
 * replaced; or NULL. end: copies the other files of `from` (other_files.h), if
 * that is a directory, and renames the result; if not ok, removes it. The first
 * rank does the work; all ranks call it and agree on the result. False and an
 * error. lb_job_path: DIR/NAME. */
bool lb_job_begin_directory(lb_job *j, const char *from, const char *to,
                            char **partial);
bool lb_job_end_directory(lb_job *j, const char *from, const char *to,
                          char *partial, bool ok);
char *lb_job_path(lb_job *j, const char *dir, const char *name);

#endif
