/* seed_training.c - group 6: straight-through values and gradients, and a
 * training loop of stochastic gradient descent.
 *
 * What the package's own estimator gives where it does not quantize (its flag
 * "package wrong") is nothing to repeat: those loops are skipped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seed_cases.h"

enum { MAX_STEPS = 10000 };

static const json_t *param(const seed_case *s, const char *name)
{
    return json_object_get(json_object_get(s->it, "params"), name);
}

static bool read_config(seed_case *s, lb_dtype dtype, lb_quant_config *config)
{
    const char *const format = json_string_value(param(s, "format"));
    const char *const decode = json_string_value(param(s, "decode"));
    *config = (lb_quant_config){.struct_size = sizeof(*config),
                                .format = format,
                                .dtype = dtype,
                                .compat = LB_COMPAT_SEED};
    if (decode && !strcmp(decode, "polynomial")) {
        config->decode = LB_DECODE_POLY;
    }
    if (!format) return note_fail(s->check.note, "the case has no format");
    return seed_params(json_object_get(s->it, "params"), config, s->check.note);
}

static bool read_input(seed_case *s, const char *name, lb_array **out)
{
    given g = {0};
    const bool ok = seed_array(
        &s->check, json_object_get(json_object_get(s->it, "inputs"), name), &g);
    *out = g.a;
    given_free(&g);
    return ok;
}

/* An output that is there, under its name. */
static bool check_output(seed_case *s, const char *name, lb_array *a)
{
    const json_t *const ref =
        json_object_get(json_object_get(s->it, "outputs"), name);
    given want = {0};
    if (!ref) return true;
    const bool ok = seed_array(&s->check, ref, &want) &&
                    check_array(&s->check, name, a, &want);
    given_free(&want);
    return ok;
}

/* ---- straight_through ---------------------------------------------------- */

static bool straight_through(seed_case *s, lb_array *w, lb_array *cotangent,
                             const char *output, lb_decode decode)
{
    lb_ctx *const cx = s->check.cx;
    lb_quant_config config;
    lb_array *gradient = NULL;
    const json_t *const outputs = json_object_get(s->it, "outputs");
    if (!json_object_get(outputs, output)) return true;
    if (!read_config(s, lb_dtype_of(w), &config)) return false;
    config.decode = decode;
    lb_tape *const tape = lb_tape_open(cx);
    lb_array *const y =
        lb_tape_watch(tape, w) ? lb_straight_through(cx, w, &config) : NULL;
    if (y) lb_tape_grad(tape, y, cotangent, &w, 1, &gradient);
    lb_tape_close(tape);
    return check_output(s, output, y) && check_output(s, "gradient", gradient);
}

static bool check_estimator(seed_case *s)
{
    lb_array *w = NULL;
    lb_array *cotangent = NULL;
    return read_input(s, "w", &w) && read_input(s, "cotangent", &cotangent) &&
           straight_through(s, w, cotangent, "value", LB_DECODE_TABLE) &&
           straight_through(s, w, cotangent, "value_poly", LB_DECODE_POLY);
}

/* ---- train_sgd ----------------------------------------------------------- */

/* mean((x @ ste(w) - y)^2) of w, x, y */
static lb_array *loss(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    (void)n;
    lb_array *const w = lb_straight_through(cx, args[0], user);
    lb_array *const d = lb_sub(cx, lb_matmul(cx, args[1], w), args[2]);
    return lb_mean(cx, lb_mul(cx, d, d), NULL, false);
}

/* One step from args[0], which is replaced. */
static bool step(seed_case *s, lb_quant_config *config, lb_array **args,
                 int64_t i, double rate, float *at)
{
    lb_ctx *const cx = s->check.cx;
    lb_array *gradient = NULL;
    char name[32];
    lb_enter(cx);
    lb_array *const l =
        lb_value_and_grad(cx, loss, args, 3, config, &gradient, 1);
    lb_array *const w =
        lb_sub(cx, args[0], lb_mul(cx, gradient, lb_scalar(cx, rate)));
    *at = l ? (float)lb_item(cx, l) : 0;
    snprintf(name, sizeof(name), "grad_%lld", (long long)i);
    const bool ok = w ? check_output(s, name, gradient)
                      : library_failed(cx, s->check.note, "a step");
    if (ok) args[0] = lb_keep(cx, w);
    lb_leave(cx);
    return ok;
}

static bool train(seed_case *s)
{
    lb_ctx *const cx = s->check.cx;
    const char *const by = json_string_value(param(s, "computed_by"));
    const char *const what = json_string_value(param(s, "loss"));
    const json_t *const flag =
        json_array_get(json_object_get(s->it, "flags"), 0);
    const char *const word = json_string_value(flag);
    const double rate = json_number_value(param(s, "lr"));
    int64_t steps = 0;
    if (by && !strncmp(by, "the package", 11) && word &&
        !strncmp(word, "package wrong", 13)) {
        return note_skip(s->check.note, "the package's own: %s", word);
    }
    if (!what || strcmp(what, "mean((x @ ste(w) - y)^2)") != 0) {
        return note_skip(s->check.note, "a loss that is not known here");
    }
    lb_array *args[3];
    lb_quant_config config;
    if (!json_int(json_object_get(s->it, "params"), "steps", 1, MAX_STEPS,
                  &steps, s->check.note) ||
        !read_input(s, "w", &args[0]) || !read_input(s, "x", &args[1]) ||
        !read_input(s, "y", &args[2]) ||
        !read_config(s, lb_dtype_of(args[0]), &config)) {
        return false;
    }
    /* Sums in f64, as the manifest's own `measured` has them: some codes come
     * so near to a rounding boundary that in f32 the order of a sum, which
     * kernels choose, decides on which side they fall. */
    args[1] = lb_convert(cx, args[1], LB_F64);
    args[2] = lb_convert(cx, args[2], LB_F64);
    if (!args[1] || !args[2]) {
        return library_failed(cx, s->check.note, "lb_convert");
    }
    float *const losses = malloc((size_t)steps * sizeof(*losses));
    bool ok = losses || note_fail(s->check.note, "out of memory");
    for (int64_t i = 0; ok && i < steps; i++) {
        ok = step(s, &config, args, i, rate, &losses[i]);
    }
    const int64_t dim[] = {steps};
    ok = ok &&
         check_output(s, "losses",
                      lb_from(cx, LB_F32, lb_shape_make(1, dim), losses)) &&
         check_output(s, "w_final", args[0]);
    free(losses);
    return ok;
}

bool seed_training(seed_case *s)
{
    const char *const op = json_string_value(json_object_get(s->it, "op"));
    if (op && !strcmp(op, "straight_through")) return check_estimator(s);
    if (op && !strcmp(op, "train_sgd")) return train(s);
    return note_skip(s->check.note, "an op that is not known here");
}
