/* seed_training.c - group 6: straight-through values and gradients, and a
 * training loop of stochastic gradient descent with a loss given as a formula
 * (seed_formula.c).
 *
 * The loop runs with sums in f64. Each step also runs in f32, as users run it,
 * from the weights of the f64 loop. Both must give the expected losses and
 * gradients. A loop of f32 steps only would depend on chance: a weight can be
 * so close to a rounding boundary that the order of summation decides its code.
 * In g6/train_int8 this is weight (14,16) at step 49: divided by its scale it
 * is 41.5000038 with f64 sums, one ulp from the boundary. XLA's f32 gives
 * 41.5000038 to 41.5000076, depending on the instruction set; 37 of 100 random
 * orders of f32 sums end below 41.5, as does ours at some levels, by one ulp.
 * The other code changes 24 gradients by 5 %.
 *
 * Loops in which the package's estimator does not quantize (its flag "package
 * wrong") are skipped.
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
                                .compat = LB_COMPAT_EFORMER};
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

/* Compares an output, by its name, if the case has it; how: how it was
 * computed, for the message. */
static bool check_as(seed_case *s, const char *name, const char *how,
                     lb_array *a)
{
    char label[64];
    const json_t *const ref =
        json_object_get(json_object_get(s->it, "outputs"), name);
    given want = {0};
    if (!ref) return true;
    snprintf(label, sizeof(label), "%s%s", name, how);
    const bool ok = seed_array(&s->check, ref, &want) &&
                    check_array(&s->check, label, a, &want);
    given_free(&want);
    return ok;
}

static bool check_output(seed_case *s, const char *name, lb_array *a)
{
    return check_as(s, name, "", a);
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

typedef struct {
    const char *how;
    lb_array *args[3]; /* w, x, y */
    float *losses;
} loop;

static bool check_step(seed_case *s, seed_formula *f, loop *l, int64_t i,
                       lb_array **gradient)
{
    lb_ctx *const cx = s->check.cx;
    char name[32];
    lb_array *const found =
        lb_value_and_grad(cx, seed_evaluate, l->args, 3, f, gradient, 1);
    if (!found) return library_failed(cx, s->check.note, "a step");
    l->losses[i] = (float)lb_item(cx, found);
    snprintf(name, sizeof(name), "grad_%lld", (long long)i);
    return check_as(s, name, l->how, *gradient);
}

/* A step in f64 and in f32; the next weights of both come from the f64
 * gradient. */
static bool step(seed_case *s, seed_formula *f, loop *l, int64_t i, double rate)
{
    lb_ctx *const cx = s->check.cx;
    lb_array *gradient = NULL;
    lb_array *other = NULL;
    lb_enter(cx);
    bool ok = check_step(s, f, &l[0], i, &gradient) &&
              check_step(s, f, &l[1], i, &other);
    if (ok) {
        lb_array *const w =
            lb_sub(cx, l->args[0], lb_mul(cx, gradient, lb_scalar(cx, rate)));
        ok = w || library_failed(cx, s->check.note, "a step");
        l[0].args[0] = l[1].args[0] = ok ? lb_keep(cx, w) : NULL;
    }
    lb_leave(cx);
    return ok;
}

/* Losses are stored as f32 in any case. */
static bool check_losses(seed_case *s, const loop *l, int64_t steps)
{
    lb_ctx *const cx = s->check.cx;
    const json_t *const ref =
        json_object_get(json_object_get(s->it, "outputs"), "losses");
    const char *const name = json_string_value(json_object_get(ref, "dtype"));
    const lb_dtype dtype = name ? dtype_named(name) : LB_NO_DTYPE;
    lb_array *const all =
        lb_from(cx, LB_F32, lb_shape_make(1, &steps), l->losses);
    return check_as(s, "losses", l->how,
                    dtype ? lb_convert(cx, all, dtype) : all);
}

static bool run_loops(seed_case *s, seed_formula *f, loop *l, int64_t steps,
                      double rate)
{
    lb_ctx *const cx = s->check.cx;
    for (int k = 1; k < 3; k++) {
        l[0].args[k] = lb_convert(cx, l[1].args[k], LB_F64);
        if (!l[0].args[k]) {
            return library_failed(cx, s->check.note, "lb_convert");
        }
    }
    l[0].args[0] = l[1].args[0];
    for (int64_t i = 0; i < steps; i++) {
        if (!step(s, f, l, i, rate)) return false;
    }
    return check_losses(s, &l[0], steps) && check_losses(s, &l[1], steps) &&
           check_output(s, "w_final", l->args[0]);
}

/* The flag for a bug of the package; NULL: none. */
static const char *flag_wrong(const seed_case *s)
{
    const json_t *const flags = json_object_get(s->it, "flags");
    for (size_t i = 0; i < json_array_size(flags); i++) {
        const char *const word = json_string_value(json_array_get(flags, i));
        if (word && !strncmp(word, "package wrong", 13)) return word;
    }
    return NULL;
}

static bool train(seed_case *s)
{
    static const char *const name[] = {"w", "x", "y"};
    const char *const by = json_string_value(param(s, "computed_by"));
    const char *const update = json_string_value(param(s, "update"));
    const char *const wrong = flag_wrong(s);
    const double rate = json_number_value(param(s, "lr"));
    int64_t steps = 0;
    if (by && !strncmp(by, "the package", 11) && wrong) {
        return note_skip(s->check.note, "the package's own: %s", wrong);
    }
    if (update && strcmp(update, "w = w - lr * grad") != 0) {
        return note_skip(s->check.note, "'%s' is not known here", update);
    }
    loop l[2] = {{.how = ", sums in f64"}, {.how = ", a step in f32"}};
    lb_quant_config config;
    seed_formula f = {.words = json_string_value(param(s, "loss")),
                      .name = name,
                      .n = 3,
                      .ste = &config,
                      .note = s->check.note};
    if (!f.words) return note_fail(s->check.note, "the case has no loss");
    if (!json_int(json_object_get(s->it, "params"), "steps", 1, MAX_STEPS,
                  &steps, s->check.note) ||
        !read_input(s, "w", &l[1].args[0]) ||
        !read_input(s, "x", &l[1].args[1]) ||
        !read_input(s, "y", &l[1].args[2]) ||
        !read_config(s, lb_dtype_of(l[1].args[0]), &config)) {
        return false;
    }
    float *const losses = malloc(2 * (size_t)steps * sizeof(*losses));
    if (!losses) return note_fail(s->check.note, "out of memory");
    l[0].losses = losses;
    l[1].losses = losses + steps;
    const bool ok = run_loops(s, &f, l, steps, rate);
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
