/* stablehlo_region.c - scalar functions inside of operations.
 *
 * An operation has its region under "region", "regions", "body", "reducer" or
 * "computation", beside its operands or among its attributes:
 *
 *     {"args": ["a", "b"], "ops": [...], "returns": ["c"], "consts": {...}}
 *
 * or a list with one such object. Arguments may be objects with a name and a
 * type. Results may also be the operands of a final operation `return`.
 * Constants are optional. Names that are not defined in the region refer to
 * values outside.
 */
#include <stdlib.h>
#include <string.h>

#include "stablehlo.h"

/* The value of the first of these keys that exists; the list ends with NULL. */
static const json_t *one_of(const json_t *object, const char *const *keys)
{
    for (; *keys; keys++) {
        const json_t *const v = json_object_get(object, *keys);
        if (v && !json_is_null(v)) return v;
    }
    return NULL;
}

const json_t *region_of(const json_t *op)
{
    static const char *const keys[] = {"region",  "regions",     "body",
                                       "reducer", "computation", NULL};
    const json_t *const own = one_of(op, keys);
    return own ? own : one_of(json_object_get(op, "attrs"), keys);
}

static const char *name_of(const json_t *v)
{
    if (json_is_object(v)) v = json_object_get(v, "name");
    return json_string_value(v);
}

static bool is_return(const json_t *op)
{
    const char *const name = json_string_value(json_object_get(op, "op"));
    return name && !strcmp(without_dialect(name), "return");
}

static bool add_args(program *p, const json_t *args, lb_array *const *in, int n)
{
    if (json_array_size(args) != (size_t)n) {
        return note_fail(p->note, "a region has %zu arguments, not %d",
                         json_array_size(args), n);
    }
    for (int i = 0; i < n; i++) {
        const char *const name = name_of(json_array_get(args, (size_t)i));
        if (!name) {
            return note_fail(p->note, "argument %d of a region has no name", i);
        }
        if (!program_add(p, (value){.name = name, .a = in[i]})) return false;
    }
    return true;
}

/* Runs the operations. If the last one is `return`, its operands are stored in
 * *returns. */
static bool run_ops(program *p, const json_t *ops, const json_t **returns)
{
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *const op = json_array_get(ops, i);
        if (!is_return(op)) {
            if (!program_run_op(p, op)) return false;
            continue;
        }
        *returns = json_object_get(op, "ins");
        if (i + 1 < json_array_size(ops)) {
            return note_fail(p->note, "a region goes on after `return`");
        }
    }
    return true;
}

static bool give(program *p, const json_t *returns, lb_array **out, int n)
{
    if (json_array_size(returns) != (size_t)n) {
        return note_fail(p->note, "a region has %zu results, not %d",
                         json_array_size(returns), n);
    }
    for (int i = 0; i < n; i++) {
        const value *const v =
            program_find(p, name_of(json_array_get(returns, (size_t)i)));
        if (!v) return false;
        out[i] = v->a;
        if (lb_rank(v->a) == 0) {
            out[i] = lb_broadcast_to(p->cx, v->a, p->lanes->shape);
        }
    }
    return true;
}

static bool run(program *p, const json_t *region, lb_array *const *in, int n_in,
                lb_array **out, int n_out)
{
    static const char *const known[] = {
        "args", "arguments", "params", "parameters", "inputs",  "arg_types",
        "ops",  "body",      "consts", "returns",    "return",  "results",
        "outs", "ret",       "types",  "out_types",  "outputs", "block_args",
        "ins",  "arg_names", NULL};
    static const char *const args[] = {"args",       "arguments", "params",
                                       "parameters", "inputs",    "block_args",
                                       "arg_names",  "ins",       NULL};
    static const char *const ops[] = {"ops", "body", NULL};
    static const char *const ends[] = {"returns", "return",  "results", "outs",
                                       "ret",     "outputs", NULL};
    const json_t *const list = one_of(region, ops);
    const json_t *const consts = json_object_get(region, "consts");
    const json_t *returns = one_of(region, ends);
    if (!keys_known(region, "a region", known, p->note)) return false;
    if (!json_is_array(list)) {
        return note_fail(p->note, "a region has no list of operations");
    }
    return add_args(p, one_of(region, args), in, n_in) &&
           (!consts || program_add_consts(p, consts)) &&
           run_ops(p, list, &returns) && give(p, returns, out, n_out);
}

bool region_run(program *p, const json_t *region, lb_array *const *in, int n_in,
                lb_array **out, int n_out)
{
    if (json_is_array(region)) {
        if (json_array_size(region) != 1) {
            return note_skip(p->note, "an operation of %zu regions",
                             json_array_size(region));
        }
        region = json_array_get(region, 0);
    }
    const lanes seen = {.outer = p, .shape = lb_shape_of(in[0])};
    program inner = {
        .cx = p->cx, .dir = p->dir, .note = p->note, .lanes = &seen};
    const bool ok = run(&inner, region, in, n_in, out, n_out);
    program_free(&inner);
    return ok;
}
