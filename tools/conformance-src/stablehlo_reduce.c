/* stablehlo_reduce.c - StableHLO's reduce, by one operation or by a region. */
#include <stdlib.h>
#include <string.h>

#include "stablehlo.h"

typedef struct reducer {
    const char *name;
    lb_array *(*reduce)(lb_ctx *, lb_array *, const lb_axes *);
    lb_array *(*combine)(lb_ctx *, lb_array *, lb_array *);
} reducer;

static const reducer reducers[] = {
    {"add", lb_reduce_sum, lb_add},     {"multiply", lb_reduce_prod, lb_mul},
    {"maximum", lb_reduce_max, lb_max}, {"minimum", lb_reduce_min, lb_min},
    {"and", lb_reduce_and, lb_and},     {"or", lb_reduce_or, lb_or},
};

/* NULL: lb_reduce is needed. */
static const reducer *find_reducer(const char *name, lb_dtype dtype)
{
    /* In StableHLO the sum of i1 is `or` and the product is `and`; lowbit has
     * no sums and products of bools. */
    if (dtype == LB_BOOL && !strcmp(name, "add")) name = "or";
    if (dtype == LB_BOOL && !strcmp(name, "multiply")) name = "and";
    for (size_t i = 0; i < sizeof(reducers) / sizeof(reducers[0]); i++) {
        if (!strcmp(name, reducers[i].name)) return &reducers[i];
    }
    return NULL;
}

/* in: the operands, then their initial values. In the custom syntax they are in
 * pairs, recognized by their ranks. */
static bool operands(const op_call *c, lb_array **in)
{
    const int n = c->n_in / 2;
    if (c->n_in < 2 || c->n_in % 2) {
        return note_fail(c->note, "reduce: %d operands", c->n_in);
    }
    bool listed = true;
    bool paired = true;
    for (int i = 0; i < n; i++) {
        listed = listed && is_scalar(c, n + i);
        paired = paired && is_scalar(c, 2 * i + 1);
    }
    if (!listed && !paired) {
        return note_fail(c->note, "reduce: an initial value is no scalar");
    }
    for (int i = 0; i < n; i++) {
        in[i] = c->in[listed ? i : 2 * i];
        in[n + i] = c->in[listed ? n + i : 2 * i + 1];
    }
    /* Computed in the initial value's dtype, which may be wider. */
    for (int i = 0; i < n; i++) {
        const lb_dtype wide = lb_dtype_of(in[n + i]);
        if (lb_dtype_of(in[i]) != wide) in[i] = lb_convert(c->cx, in[i], wide);
        if (!in[i]) return library_failed(c->cx, c->note, "reduce");
    }
    return true;
}

/* ---- functions for lb_reduce -------------------------------------------- */

static bool run_region(lb_ctx *cx, lb_array *const *args, int n, lb_array **out,
                       int n_out, void *user)
{
    (void)cx;
    const op_call *const c = user;
    return region_run(c->program, c->region, args, n, out, n_out);
}

static bool run_binary(lb_ctx *cx, lb_array *const *args, int n, lb_array **out,
                       int n_out, void *user)
{
    const op_rule *const r = user;
    if (n != 2 || n_out != 1) return false;
    out[0] = r->binary(cx, args[0], args[1]);
    return out[0] != NULL;
}

static bool reduce_by_name(const op_call *c, lb_array *const *in,
                           const lb_axes *axes, lb_array **out)
{
    const char *const name = attr_word(c, "applies");
    if (!name) return false;
    if (c->n_in != 2) {
        return note_fail(c->note, "reduce: %d operands by one operation",
                         c->n_in);
    }
    const reducer *const f = find_reducer(name, lb_dtype_of(in[0]));
    if (f) {
        out[0] = f->combine(c->cx, in[1], f->reduce(c->cx, in[0], axes));
        return out[0] != NULL;
    }
    const op_rule *const r = stablehlo_find(name);
    if (!r || !r->binary) {
        return note_skip(c->note,
                         "reduce: '%.32s' is not an operation on two "
                         "scalars",
                         name);
    }
    return lb_reduce(c->cx, in, in + 1, 1, axes, run_binary, (void *)r, out);
}

static bool run_reduce(const op_rule *r, const op_call *c, lb_array **out)
{
    (void)r;
    lb_axes axes;
    const int n = c->n_in / 2;
    lb_array **const in = calloc((size_t)c->n_in + 1, sizeof(lb_array *));
    if (!in) return note_fail(c->note, "out of memory");
    bool ok = operands(c, in) && attr_axes(c, "dimensions|dims", &axes);
    if (ok && c->n_out != n) {
        ok = note_fail(c->note, "reduce has %d results, not %d", c->n_out, n);
    }
    if (ok && c->region) {
        ok = lb_reduce(c->cx, in, in + n, n, &axes, run_region, (void *)c, out);
    } else if (ok && attr(c, "applies")) {
        ok = reduce_by_name(c, in, &axes, out);
    } else if (ok) {
        ok = note_skip(c->note, "reduce: neither an operation nor a region");
    }
    free(in);
    return ok;
}

const op_rule stablehlo_reduce[] = {
    RULE_MANY("reduce",
              "dimensions|dims applies region regions body reducer computation",
              -1, run_reduce),
    RULE(NULL, NULL, 0, NULL),
};
