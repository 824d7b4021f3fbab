/* model_dir.h - the directory of a model, as transformers has it. */
#ifndef LB_MODEL_DIR_H
#define LB_MODEL_DIR_H

#include "io/job.h"

/* The text of config.json with that "quantization_config"; NULL: without. */
bool lb_model_json(lb_ctx *cx, lb_infile *config, const lb_bytes *value,
                   lb_bytes *out);
/* loading.c: what config.json of the job's directory is to say; false and an
 * error; of layouts that nobody loads nothing is put. */
bool lb_job_configure(lb_job *j, lb_bytes *to);

#endif
