/* training.c - see training.h. */
#include "training.h"

#include <stdio.h>

static lb_array *loss(lb_ctx *cx, lb_array *const *p, int n, void *user)
{
    (void)n;
    const lb_quant_config *config = user;
    lb_array *w[2];
    for (int i = 0; i < 2; i++)
        w[i] = config ? lb_straight_through(cx, p[i], config) : p[i];
    lb_array *h = lb_relu(cx, lb_add(cx, lb_matmul(cx, p[3], w[0]), p[2]));
    return lb_mean(cx, lb_cross_entropy(cx, lb_matmul(cx, h, w[1]), p[4]), NULL,
                   false);
}

bool training_start(lb_ctx *cx, lb_array **p)
{
    const lb_shape shape[] = {LB_SHAPE(TRAIN_IN, TRAIN_HIDDEN),
                              LB_SHAPE(TRAIN_HIDDEN, TRAIN_OUT),
                              LB_SHAPE(TRAIN_HIDDEN)};
    for (int i = 0; i < TRAIN_PARAMS; i++) {
        p[i] = lb_random_normal(cx, (lb_key){1, (uint64_t)i}, LB_F32, shape[i]);
        p[i] = lb_mul(cx, p[i], lb_scalar(cx, 0.2));
        if (!p[i]) return false;
    }
    return true;
}

bool training_step(lb_ctx *cx, lb_optimizer *o, lb_array **p,
                   const lb_quant_config *config, int64_t batch)
{
    const lb_key key = {2, (uint64_t)lb_optimizer_steps(o)};
    lb_array *g[TRAIN_PARAMS], *in[TRAIN_PARAMS + 2] = {p[0], p[1], p[2]};
    in[3] = lb_random_normal(cx, key, LB_F32, LB_SHAPE(batch, TRAIN_IN));
    lb_array *z = lb_random_bits(cx, key, LB_U8, LB_SHAPE(batch));
    in[4] = lb_convert(cx, lb_rem(cx, z, lb_scalar_int(cx, TRAIN_OUT)), LB_I32);
    lb_quant_config c = config ? *config : (lb_quant_config){0};
    return lb_value_and_grad(cx, loss, in, TRAIN_PARAMS + 2, config ? &c : NULL,
                             g, TRAIN_PARAMS) &&
           lb_optimizer_step(o, p, g);
}

/* ---- files --------------------------------------------------------------- */

enum { MAX_SAVED = TRAIN_PARAMS + 1 + 2 * TRAIN_PARAMS };

bool training_save(lb_ctx *cx, const char *path, lb_optimizer *o,
                   lb_array *const *p)
{
    char name[MAX_SAVED][64];
    lb_planned list[MAX_SAVED];
    int n = 0;
    for (; n < TRAIN_PARAMS; n++) {
        snprintf(name[n], sizeof name[n], "p.%d", n);
        list[n] = (lb_planned){.name = name[n], .array = p[n]};
    }
    for (int i = 0; i < lb_optimizer_count(o); i++, n++) {
        lb_array *a = lb_optimizer_state(o, i, name[n], sizeof name[n]);
        list[n] = (lb_planned){.name = name[n], .array = a};
    }
    return lb_save(cx, path, list, n, &(lb_save_options){.no_sync = true});
}

bool training_load(lb_ctx *cx, const char *path, lb_optimizer *o, lb_array **p)
{
    char name[64];
    lb_array *state[MAX_SAVED];
    lb_file *f = lb_file_open(cx, path, NULL);
    if (!f) return false;
    for (int i = 0; i < TRAIN_PARAMS; i++) {
        snprintf(name, sizeof name, "p.%d", i);
        p[i] = lb_file_load(cx, f, name);
    }
    const int n = lb_optimizer_count(o);
    for (int i = 0; i < n; i++) {
        lb_optimizer_state(o, i, name, sizeof name);
        state[i] = lb_file_load(cx, f, name);
    }
    const bool ok = !lb_error_status(cx) && lb_optimizer_restore(o, state, n);
    lb_file_close(f);
    return ok;
}
