/* training.h - a small network for tests of training, and its checkpoints:
 * parameters and optimizer in a file. The number of a step determines its
 * data. */
#ifndef LB_TRAINING_H
#define LB_TRAINING_H

#include "lowbit_io.h"

enum {
    TRAIN_IN = 48,
    TRAIN_HIDDEN = 33,
    TRAIN_OUT = 5,
    TRAIN_BATCH = 16,
    TRAIN_PARAMS = 3,
    TRAIN_FIRST = TRAIN_IN * TRAIN_HIDDEN /* elements of parameter 0 */
};

/* Initial parameters, in the open scope. */
bool training_start(lb_ctx *cx, lb_array **p);
/* A training step on that many examples: replaces p. config: for
 * straight-through quantization of the weights, or NULL. */
bool training_step(lb_ctx *cx, lb_optimizer *o, lb_array **p,
                   const lb_quant_config *config, int64_t batch);
bool training_save(lb_ctx *cx, const char *path, lb_optimizer *o,
                   lb_array *const *p);
bool training_load(lb_ctx *cx, const char *path, lb_optimizer *o, lb_array **p);

#endif
