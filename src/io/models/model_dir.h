/* model_dir.h - the directory of a model, as transformers has it. */
#ifndef LB_MODEL_DIR_H
#define LB_MODEL_DIR_H

#include "io/jobs/job.h"

/* The text of config.json with that "quantization_config"; NULL: without. */
bool lb_model_json(lb_ctx *cx, lb_infile *config, const lb_bytes *value,
                   lb_bytes *out);
/* hf_config.c: what config.json of the job's directory is to say; false and an
 * error. Nothing is put if nothing is packed. */
bool lb_job_configure(lb_job *j, lb_bytes *to);
/* Whether config.json holds as it is: all packed arrays stay as they were. */
bool lb_job_keeps_config(const lb_job *j);

/* A directory written by a job. begin makes *partial, from the job's arena, for
 * its files; end copies the other files of from (other_files.h), if that is a
 * directory, and renames it to its final name; if not ok it is removed. Done by
 * the first rank; all ranks call it and agree. from: the input, a file or a
 * directory, which cannot be replaced; or NULL. False and an error.
 * lb_job_path: DIR/NAME. */
bool lb_job_begin_directory(lb_job *j, const char *from, const char *to,
                            char **partial);
bool lb_job_end_directory(lb_job *j, const char *from, const char *to,
                          char *partial, bool ok);
char *lb_job_path(lb_job *j, const char *dir, const char *name);

#endif
