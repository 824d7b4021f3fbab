/* fashion.h - data, networks and training of the example. */
#ifndef FASHION_H
#define FASHION_H

#include <lowbit.h>

enum { CLASSES = 10, SIDE = 28, PIXELS = SIDE * SIDE };

/* ---- fashion_data.c ------------------------------------------------------ */

typedef struct dataset {
    lb_array *images; /* (n, 784) u8 */
    lb_array *labels; /* (n) i32 */
    int64_t n;
} dataset;

/* Reads DIR/<which>-images-idx3-ubyte.gz and labels; which is "train" or
 * "t10k". On failure prints a message and returns false. The arrays belong to
 * the open scope. */
bool dataset_read(lb_ctx *cx, const char *dir, const char *which, dataset *out);
/* Moves the last `n` images of `from` to `out`, as a validation set. */
bool dataset_hold_out(lb_ctx *cx, dataset *from, int64_t n, dataset *out);
/* Rows of the images, normalized to mean 0 and deviation 1. */
lb_array *dataset_images(lb_ctx *cx, const dataset *d, lb_array *rows);

/* ---- fashion_net.c ------------------------------------------------------- */

enum { MAX_PARAMS = 12 };

/* Layer i has parameters NAME.i.weight (outputs, inputs) and NAME.i.bias
 * (outputs). */
typedef struct net {
    const char *name;
    double rate; /* of Adam; README.md explains the choice */
    int batch;
    int n_params;
    lb_shape shape[MAX_PARAMS];
    /* (batch, 784) -> logits (batch, 10); weights in any format */
    lb_array *(*run)(lb_ctx *cx, lb_tree *params, lb_array *x);
} net;

extern const net net_mlp, net_cnn;

/* A new tree of random parameters; NULL on error. */
lb_tree *net_init(lb_ctx *cx, const net *n, lb_key key);
/* Quantizes the weights, with straight-through gradients; biases stay f32.
 * config NULL: nothing to do. */
bool net_quantize(lb_tree *params, const lb_quant_config *config);

/* ---- fashion_train.c ----------------------------------------------------- */

typedef struct plan {
    const net *net;
    const lb_quant_config *qat; /* NULL: f32 weights */
    double rate;
    int epochs, batch;
    int64_t limit; /* images per epoch; 0: all */
    uint64_t seed;
    const char *label;      /* for the progress bar; NULL: none */
    const char *checkpoint; /* a file, written after each epoch, from which
                             * training continues; NULL: none */
} plan;

enum { MAX_EPOCHS = 64 };

typedef struct outcome {
    double accuracy[MAX_EPOCHS]; /* on the test images, after each epoch */
    double loss[MAX_EPOCHS];     /* means; 0: before a checkpoint */
    double ms;                   /* per step, the median of some */
    lb_tree *params;             /* see outcome_free */
} outcome;

bool train(lb_ctx *cx, const plan *p, const dataset *of, const dataset *test,
           outcome *out);
void outcome_free(outcome *o);
/* Percentage of images classified correctly. */
double accuracy_of(lb_ctx *cx, const net *n, lb_tree *params, const dataset *d);

/* ---- fashion_compare.c --------------------------------------------------- */

/* Prints a row for each file of the net's parameters; the first is the
 * reference for size, error and speed. */
bool compare(lb_ctx *cx, const net *n, const dataset *test, char *const *paths,
             int n_paths);

/* ---- fashion_chart.c ----------------------------------------------------- */

typedef struct curve {
    const char *name;
    const double *y;
    int n;
} curve;

/* Learning curves, as an SVG file. */
bool chart_write(const char *path, const char *title, const curve *c, int n);

#endif
