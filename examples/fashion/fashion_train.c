/* fashion_train.c - training: Adam, cosine schedule, shuffled minibatches.
 *
 * With `qat` every weight is quantized in each step with a straight-through
 * gradient: training sees the quantizer of inference. A checkpoint has the f32
 * weights, the optimizer's state, the accuracies so far and the settings.
 */
#include <lowbit_io.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fashion.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- a step -------------------------------------------------------------- */

/* The mean cross entropy; args: images, labels. */
static lb_array *loss(lb_ctx *cx, lb_tree *w, lb_array *const *args, int n,
                      void *user)
{
    const plan *p = user;
    (void)n;
    if (!net_quantize(w, p->qat)) return NULL;
    lb_array *z = p->net->run(cx, w, args[0]);
    return lb_mean(cx, lb_cross_entropy(cx, z, args[1]), NULL, false);
}

typedef struct state {
    lb_ctx *cx;
    const plan *p;
    const dataset *of;
    outcome *out;
    lb_optimizer *optimizer;
    lb_tree *params, *grads;
    int64_t steps; /* per epoch */
    int epoch;
} state;

/* One step on these rows. Returns the loss, -1 on error. */
static double step(state *s, lb_array *rows)
{
    lb_ctx *cx = s->cx;
    lb_array *data[] = {dataset_images(cx, s->of, rows),
                        lb_take(cx, s->of->labels, rows, 0)};
    plan p = *s->p;
    lb_array *l =
        lb_tree_value_and_grad(s->params, loss, data, 2, &p, s->grads);
    return l && lb_tree_optimizer_step(s->optimizer, s->params, s->grads)
               ? lb_item(cx, l)
               : -1;
}

/* ---- checkpoints --------------------------------------------------------- */

enum { TRAITS = 6 };

static const char plan_name[] = "fashion.plan", seen_name[] = "fashion.seen";

/* The settings that identify a training. */
static void traits_of(const state *s, double to[TRAITS])
{
    const plan *p = s->p;
    const double is[TRAITS] = {(double)p->seed,  p->epochs,
                               p->batch,         p->rate,
                               (double)s->of->n, (double)p->limit};
    memcpy(to, is, sizeof is);
}

static lb_array *numbers(lb_ctx *cx, const double *x, int64_t n)
{
    return lb_from(cx, LB_F64, LB_SHAPE(n), x);
}

static bool save(state *s)
{
    double traits[TRAITS], seen[1 + MAX_EPOCHS] = {s->out->ms};
    lb_enter(s->cx);
    lb_tree *t = lb_tree_copy(s->params);
    traits_of(s, traits);
    memcpy(seen + 1, s->out->accuracy, sizeof s->out->accuracy);
    const bool ok =
        lb_tree_optimizer_save(s->optimizer, t) &&
        lb_tree_set(t, plan_name, numbers(s->cx, traits, TRAITS)) &&
        lb_tree_set(t, seen_name, numbers(s->cx, seen, 1 + s->p->epochs)) &&
        lb_tree_save(t, s->p->checkpoint, NULL);
    lb_tree_close(t);
    lb_leave(s->cx);
    return ok;
}

static bool read_numbers(state *s, lb_tree *t, const char *name, double *to,
                         int64_t n)
{
    lb_array *a = lb_tree_get(t, name);
    if (a && (lb_dtype_of(a) != LB_F64 || lb_size(a) != n)) {
        fprintf(stderr, "fashion: %s: %s does not have %lld values\n",
                s->p->checkpoint, name, (long long)n);
        return false;
    }
    return a && lb_read(s->cx, a, to, sizeof *to * (size_t)n);
}

/* True if the checkpoint belongs to this training. */
static bool is_ours(state *s, lb_tree *t)
{
    double is[TRAITS], was[TRAITS], seen[1 + MAX_EPOCHS];
    traits_of(s, is);
    if (!read_numbers(s, t, plan_name, was, TRAITS)) return false;
    if (memcmp(is, was, sizeof is) != 0) {
        fprintf(stderr,
                "fashion: %s is of seed %g, %g epochs, batch size %g, rate %g, "
                "%g images, limit %g; expected %g, %g, %g, %g, %g, %g\n",
                s->p->checkpoint, was[0], was[1], was[2], was[3], was[4],
                was[5], is[0], is[1], is[2], is[3], is[4], is[5]);
        return false;
    }
    if (!read_numbers(s, t, seen_name, seen, 1 + s->p->epochs)) return false;
    s->out->ms = seen[0];
    memcpy(s->out->accuracy, seen + 1, sizeof *seen * (size_t)s->p->epochs);
    return true;
}

static bool load(state *s)
{
    lb_enter(s->cx);
    lb_file *f = lb_file_open(s->cx, s->p->checkpoint,
                              &(lb_file_options){.no_map = true});
    lb_tree *t = lb_tree_load_file(s->cx, f);
    bool ok = t && is_ours(s, t);
    for (int i = 0; i < lb_tree_count(s->params) && ok; i++) {
        const char *name = lb_tree_name(s->params, i);
        ok = lb_tree_set(s->params, name, lb_tree_get(t, name));
    }
    ok = ok && lb_tree_optimizer_restore(s->optimizer, t);
    lb_tree_close(t);
    lb_file_close(f);
    lb_leave(s->cx);
    if (ok) s->epoch = (int)(lb_optimizer_steps(s->optimizer) / s->steps);
    return ok;
}

/* ---- epochs -------------------------------------------------------------- */

static void show(const state *s, int64_t i, double value)
{
    enum { WIDTH = 24 };
    char bar[WIDTH + 1];
    if (!s->p->label || !isatty(STDERR_FILENO)) return;
    const int done = (int)(WIDTH * (i + 1) / s->steps);
    for (int k = 0; k < WIDTH; k++)
        bar[k] = k < done ? '#' : '.';
    bar[WIDTH] = 0;
    fprintf(stderr, "\r%-14s epoch %2d of %d [%s] loss %.3f ", s->p->label,
            s->epoch + 1, s->p->epochs, bar, value);
    if (i + 1 == s->steps) fprintf(stderr, "\r%70s\r", "");
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool run_epoch(state *s)
{
    enum { TIMED = 101 };
    lb_ctx *cx = s->cx;
    const int64_t batch = s->p->batch;
    const lb_key key = {s->p->seed, 1000 + (uint64_t)s->epoch};
    double ms[TIMED], sum = 0;
    int timed = 0;
    bool ok = true;
    lb_enter(cx);
    lb_array *order = lb_random_permutation(cx, key, s->of->n);
    for (int64_t i = 0; i < s->steps && ok; i++) {
        const int64_t lo = i * batch, hi = lo + batch;
        const double begun = now();
        lb_enter(cx);
        const double value = step(s, lb_slice(cx, order, &lo, &hi, NULL));
        lb_leave(cx);
        if (timed < TIMED) ms[timed++] = (now() - begun) * 1e3;
        ok = value >= 0 && !lb_error_status(cx);
        if (isnan(value))
            fprintf(stderr,
                    "fashion: the loss of step %lld of epoch %d is NaN\n",
                    (long long)i + 1, s->epoch + 1);
        sum += value;
        if (i % 16 == 15 || i + 1 == s->steps) show(s, i, value);
    }
    lb_leave(cx);
    if (timed) qsort(ms, (size_t)timed, sizeof *ms, by_value);
    s->out->ms = timed ? ms[timed / 2] : 0;
    s->out->loss[s->epoch] = sum / (double)s->steps;
    return ok;
}

double accuracy_of(lb_ctx *cx, const net *n, lb_tree *params, const dataset *d)
{
    enum { BATCH = 500 };
    int64_t right = 0;
    for (int64_t lo = 0; lo < d->n; lo += BATCH) {
        const int64_t count = d->n - lo < BATCH ? d->n - lo : BATCH;
        lb_enter(cx);
        lb_array *rows = lb_add(cx, lb_iota(cx, LB_I64, LB_SHAPE(count), 0),
                                lb_scalar_int(cx, lo));
        lb_array *z = n->run(cx, params, dataset_images(cx, d, rows));
        lb_array *hit = lb_eq(cx, lb_argmax(cx, z, 1, LB_I32),
                              lb_take(cx, d->labels, rows, 0));
        right += lb_item_int(
            cx, lb_reduce_sum(cx, lb_convert(cx, hit, LB_I64), NULL));
        lb_leave(cx);
    }
    return 100.0 * (double)right / (double)d->n;
}

static bool test_now(state *s, const dataset *test)
{
    lb_tree *w = lb_tree_copy(s->params);
    lb_enter(s->cx);
    const bool ok = net_quantize(w, s->p->qat);
    if (ok) s->out->accuracy[s->epoch] = accuracy_of(s->cx, s->p->net, w, test);
    lb_leave(s->cx);
    lb_tree_close(w);
    return ok && !lb_error_status(s->cx);
}

static bool begin(state *s)
{
    const plan *p = s->p;
    const bool some = p->limit && p->limit < s->of->n;
    s->steps = (some ? p->limit : s->of->n) / p->batch;
    const int64_t all = s->steps * p->epochs;
    if (!all) {
        fprintf(stderr, "fashion: %lld images are less than a batch of %d\n",
                (long long)s->of->n, p->batch);
        return false;
    }
    const lb_optimizer_config c = {.method = LB_ADAM,
                                   .rate = p->rate,
                                   .schedule = LB_COSINE,
                                   .warmup = all < 1000 ? all / 10 : 100,
                                   .steps = all};
    s->params = net_init(s->cx, p->net, (lb_key){p->seed, 1});
    s->grads = lb_tree_open(s->cx);
    s->optimizer = lb_tree_optimizer_open(s->params, &c);
    if (s->optimizer && p->checkpoint && access(p->checkpoint, R_OK) == 0)
        return load(s);
    return s->optimizer != NULL;
}

bool train(lb_ctx *cx, const plan *p, const dataset *of, const dataset *test,
           outcome *out)
{
    state s = {.cx = cx, .p = p, .of = of, .out = out};
    *out = (outcome){0};
    bool ok = begin(&s);
    for (; ok && s.epoch < p->epochs; s.epoch++) {
        ok = run_epoch(&s) && test_now(&s, test);
        if (ok && p->checkpoint) ok = save(&s);
    }
    lb_optimizer_close(s.optimizer);
    lb_tree_close(s.grads);
    out->params = s.params;
    return ok;
}

void outcome_free(outcome *o)
{
    lb_tree_close(o->params);
    o->params = NULL;
}
