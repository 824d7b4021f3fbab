/* seed_gradients.c - group 8: gradients of composed functions.
 *
 * A case has a formula (seed_formula.c) and the inputs to differentiate it with
 * respect to.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "seed_cases.h"

enum { MAX_ARGS = 16 };

typedef struct task {
    const char *name[MAX_ARGS];
    lb_array *in[MAX_ARGS];
    int n;
    int n_grad; /* inputs to differentiate with respect to: the first ones */
} task;

static bool add_input(seed_case *s, task *t, const char *name)
{
    const json_t *const inputs = json_object_get(s->it, "inputs");
    given g = {0};
    for (int i = 0; i < t->n; i++) {
        if (!strcmp(t->name[i], name)) return true;
    }
    if (t->n == MAX_ARGS) return note_fail(s->check.note, "too many inputs");
    if (!seed_array(&s->check, json_object_get(inputs, name), &g)) {
        return false;
    }
    t->in[t->n] = g.a;
    t->name[t->n++] = name;
    given_free(&g);
    return true;
}

static bool read_inputs(seed_case *s, task *t)
{
    const json_t *const of =
        json_object_get(json_object_get(s->it, "params"), "differentiate");
    json_t *const inputs = json_object_get(s->it, "inputs");
    const char *name;
    json_t *ref;
    for (size_t i = 0; i < json_array_size(of); i++) {
        name = json_string_value(json_array_get(of, i));
        if (!name) return note_fail(s->check.note, "differentiate what?");
        if (!add_input(s, t, name)) return false;
    }
    t->n_grad = t->n;
    json_object_foreach(inputs, name, ref)
    {
        if (!add_input(s, t, name)) return false;
    }
    return true;
}

/* An expected output from a file, by its name. */
static bool check_file(seed_case *s, const char *name, lb_array *a)
{
    const json_t *const outputs = json_object_get(s->it, "outputs");
    given want = {0};
    const bool ok =
        seed_array(&s->check, json_object_get(outputs, name), &want) &&
        check_array(&s->check, name, a, &want);
    given_free(&want);
    return ok;
}

static bool check_value(seed_case *s, lb_array *y)
{
    checker *const c = &s->check;
    const json_t *const ref =
        json_object_get(json_object_get(s->it, "outputs"), "value");
    const json_t *const v = json_object_get(ref, "number");
    const double tol = json_number_value(json_object_get(ref, "tol"));
    if (!y) return library_failed(c->cx, c->note, "value_and_grad");
    if (!json_is_number(v)) return check_file(s, "value", y);
    const double want = json_number_value(v);
    const double got = lb_item(c->cx, y);
    c->digest = digest_of(c->digest, &got, sizeof(got));
    return fabs(got - want) <= tol * fabs(want) ||
           note_fail(c->note, "the value is %.9g, not %.9g", got, want);
}

bool seed_gradients(seed_case *s)
{
    checker *const c = &s->check;
    task t = {0};
    lb_array *grad[MAX_ARGS];
    seed_formula f = {.words = json_string_value(json_object_get(
                          json_object_get(s->it, "params"), "expression")),
                      .name = t.name,
                      .note = c->note};
    if (!f.words) return note_fail(c->note, "the case has no expression");
    if (!read_inputs(s, &t)) return false;
    f.n = t.n;
    lb_array *const y =
        lb_value_and_grad(c->cx, seed_evaluate, t.in, t.n, &f, grad, t.n_grad);
    bool ok = check_value(s, y);
    for (int i = 0; ok && i < t.n_grad; i++) {
        char name[64];
        snprintf(name, sizeof(name), "d_%.32s", t.name[i]);
        ok = check_file(s, name, grad[i]);
    }
    return ok;
}
