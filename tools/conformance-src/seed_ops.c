/* seed_ops.c - operations by lax's names and attributes.
 *
 * Most are StableHLO operations under other names: their attributes are
 * rewritten, and StableHLO's rules run them. Rules for the others are here.
 */
#include <string.h>

#include "seed_cases.h"

/* ---- rules for lax ------------------------------------------------------- */

static lb_array *run_matmul(const op_rule *r, const op_call *c)
{
    (void)r;
    return lb_matmul(c->cx, c->in[0], c->in[1]);
}

static lb_array *run_integer_pow(const op_rule *r, const op_call *c)
{
    (void)r;
    int64_t y = 0;
    if (!attr(c, "y")) {
        note_fail(c->note, "integer_pow: no attribute y");
        return NULL;
    }
    return attr_int_or(c, "y", INT32_MIN, INT32_MAX, 0, &y)
               ? lb_integer_pow(c->cx, c->in[0], (int)y)
               : NULL;
}

static lb_array *run_reduce(const op_rule *r, const op_call *c)
{
    static const struct {
        const char *name;
        lb_array *(*reduce)(lb_ctx *, lb_array *, const lb_axes *);
    } kinds[] = {{"sum", lb_reduce_sum}, {"prod", lb_reduce_prod},
                 {"max", lb_reduce_max}, {"min", lb_reduce_min},
                 {"and", lb_reduce_and}, {"or", lb_reduce_or}};
    (void)r;
    lb_axes axes;
    const char *const how = attr_word(c, "kind");
    if (!how || !attr_axes(c, "axes", &axes)) return NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(how, kinds[i].name) != 0) continue;
        /* jax sums small integers in i32. */
        lb_array *const a = lb_convert(c->cx, c->in[0], c->type[0].dtype);
        /* cppcheck-suppress returnDanglingLifetime ; a call, not a struct */
        return kinds[i].reduce(c->cx, a, &axes);
    }
    note_skip(c->note, "reduce: lowbit does not reduce by '%.32s'", how);
    return NULL;
}

static const op_rule own_rules[] = {
    RULE("integer_pow", "y", 1, run_integer_pow),
    RULE("matmul", "preferred_element_type", 2, run_matmul),
    RULE("reduce", "kind axes", 1, run_reduce),
    RULE(NULL, NULL, 0, NULL),
};

/* ---- lax's attributes as StableHLO's ------------------------------------- */

/* Removes a key and returns its value, a reference that the caller releases;
 * NULL if it does not exist. */
static json_t *take(json_t *attrs, const char *key)
{
    json_t *const v = json_incref(json_object_get(attrs, key));
    json_object_del(attrs, key);
    return v;
}

static void rename_key(json_t *attrs, const char *from, const char *to)
{
    json_t *const v = take(attrs, from);
    if (v) json_object_set_new(attrs, to, v);
}

/* Checks that the result has the shape in the attribute. */
static bool asks_for_shape(const op_call *c, json_t *attrs, const char *key)
{
    lb_shape shape = {0};
    json_t *const v = take(attrs, key);
    const bool ok =
        json_shape(v, key, &shape, c->note) &&
        (shape_equal(shape, c->type[0].shape) ||
         note_fail(c->note, "%s: %s is not the result's", c->name, key));
    json_decref(v);
    return ok;
}

static bool asks_for_dtype(const op_call *c, json_t *attrs, const char *key)
{
    json_t *const v = take(attrs, key);
    const char *const name = json_string_value(v);
    const bool ok = name && dtype_named(name) == c->type[0].dtype;
    json_decref(v);
    return ok || note_fail(c->note, "%s: %s is not the result's", c->name, key);
}

static bool rewrite_reshape(const op_call *c, json_t *attrs)
{
    return asks_for_shape(c, attrs, "new_sizes");
}

static bool rewrite_broadcast(const op_call *c, json_t *attrs)
{
    return asks_for_shape(c, attrs, "shape");
}

static bool rewrite_convert(const op_call *c, json_t *attrs)
{
    return asks_for_dtype(c, attrs, "new_dtype");
}

static bool drop_preferred(const op_call *c, json_t *attrs)
{
    return !json_object_get(attrs, "preferred_element_type") ||
           asks_for_dtype(c, attrs, "preferred_element_type");
}

static bool rewrite_dot(const op_call *c, json_t *attrs)
{
    rename_key(attrs, "lhs_contract", "lhs_contracting");
    rename_key(attrs, "rhs_contract", "rhs_contracting");
    rename_key(attrs, "lhs_batch", "lhs_batching");
    rename_key(attrs, "rhs_batch", "rhs_batching");
    return drop_preferred(c, attrs);
}

/* Index vectors of lax are along the last axis. */
static bool rewrite_gather(const op_call *c, json_t *attrs)
{
    json_object_del(attrs, "meaning");
    json_object_set_new(attrs, "index_vector_dim",
                        json_integer(lb_rank(c->in[1]) - 1));
    return true;
}

/* "NHWC" as "b01f": the other letters are spatial axes, numbered in the order
 * of rhs. */
static bool conv_labels(const op_call *c, json_t *attrs, const char *key,
                        const char *spec, const char *rhs, const char *as)
{
    char out[LB_MAX_RANK + 1] = "";
    const size_t n = strlen(spec);
    if (n > LB_MAX_RANK || strlen(rhs) != n) {
        return note_fail(c->note, "%s: dimension_numbers of no use", c->name);
    }
    for (size_t i = 0; i < n; i++) {
        const bool is_rhs = spec == rhs;
        if (spec[i] == (is_rhs ? 'O' : 'N')) {
            out[i] = as[0];
        } else if (spec[i] == (is_rhs ? 'I' : 'C')) {
            out[i] = as[1];
        } else {
            int space = 0;
            const char *at = rhs;
            for (; *at && *at != spec[i]; at++) {
                space += *at != 'O' && *at != 'I';
            }
            out[i] = (char)(*at ? '0' + space : '?');
        }
    }
    json_object_set_new(attrs, key, json_string(out));
    return true;
}

static bool rewrite_conv(const op_call *c, json_t *attrs)
{
    json_t *const v = take(attrs, "dimension_numbers");
    const char *const lhs = json_string_value(json_array_get(v, 0));
    const char *const rhs = json_string_value(json_array_get(v, 1));
    const char *const out = json_string_value(json_array_get(v, 2));
    const bool ok =
        lhs && rhs && out
            ? conv_labels(c, attrs, "lhs_spec", lhs, rhs, "bf") &&
                  conv_labels(c, attrs, "rhs_spec", rhs, rhs, "oi") &&
                  conv_labels(c, attrs, "out_spec", out, rhs, "bf")
            : note_skip(c->note, "%s: dimension_numbers are not three words",
                        c->name);
    json_decref(v);
    return ok && drop_preferred(c, attrs);
}

typedef struct translation {
    const char *lax, *stablehlo;
    const char *direction; /* of a comparison */
    bool (*rewrite)(const op_call *c, json_t *attrs);
} translation;

/* Other operations may have the same name in StableHLO. */
static const translation translations[] = {
    {"broadcast_in_dim", "broadcast_in_dim", NULL, rewrite_broadcast},
    {"conv_general_dilated", "convolution", NULL, rewrite_conv},
    {"convert_element_type", "convert", NULL, rewrite_convert},
    {"cos", "cosine", NULL, NULL},
    {"div", "divide", NULL, NULL},
    {"dot_general", "dot_general", NULL, rewrite_dot},
    {"eq", "compare", "EQ", NULL},
    {"exp", "exponential", NULL, NULL},
    {"expm1", "exponential_minus_one", NULL, NULL},
    {"gather", "gather", NULL, rewrite_gather},
    {"ge", "compare", "GE", NULL},
    {"gt", "compare", "GT", NULL},
    {"le", "compare", "LE", NULL},
    {"log1p", "log_plus_one", NULL, NULL},
    {"lt", "compare", "LT", NULL},
    {"max", "maximum", NULL, NULL},
    {"min", "minimum", NULL, NULL},
    {"mul", "multiply", NULL, NULL},
    {"ne", "compare", "NE", NULL},
    {"neg", "negate", NULL, NULL},
    {"pow", "power", NULL, NULL},
    {"rem", "remainder", NULL, NULL},
    {"reshape", "reshape", NULL, rewrite_reshape},
    {"sin", "sine", NULL, NULL},
    {"sub", "subtract", NULL, NULL},
};

static const translation *find_translation(const char *lax)
{
    for (size_t i = 0; i < sizeof(translations) / sizeof(translations[0]);
         i++) {
        if (!strcmp(translations[i].lax, lax)) return &translations[i];
    }
    return NULL;
}

static const op_rule *find_own(const char *name)
{
    const op_rule *r = own_rules;
    while (r->name && strcmp(r->name, name) != 0) {
        r++;
    }
    return r->name ? r : NULL;
}

/* ---- running ------------------------------------------------------------- */

/* A copy of the attributes without those that are null. */
static json_t *without_nulls(const json_t *params)
{
    json_t *const attrs = json_object();
    for (void *i = json_object_iter((json_t *)params); i;
         i = json_object_iter_next((json_t *)params, i)) {
        json_t *const v = json_object_iter_value(i);
        if (!json_is_null(v)) {
            json_object_set(attrs, json_object_iter_key(i), v);
        }
    }
    return attrs;
}

static lb_array *run_rule(const op_rule *r, const op_call *c)
{
    if (!attrs_known(r, c)) return NULL;
    if (!r->run || (r->n_in >= 0 && r->n_in != c->n_in)) {
        note_fail(c->note, "%s has %d operands, not %d", c->name, c->n_in,
                  r->n_in);
        return NULL;
    }
    lb_array *const a = r->run(r, c);
    if (!a) library_failed(c->cx, c->note, c->name);
    return a;
}

lb_array *seed_run_op(op_call c, const json_t *params)
{
    const op_rule *const own = find_own(c.name);
    const translation *const t = find_translation(c.name);
    const op_rule *const r =
        own ? own : stablehlo_find(t ? t->stablehlo : c.name);
    if (!r) {
        note_skip(c.note, "lowbit has no function for '%.64s'", c.name);
        return NULL;
    }
    json_t *const attrs = without_nulls(params);
    c.attrs = attrs;
    if (t && t->direction) {
        json_object_set_new(attrs, "direction", json_string(t->direction));
    }
    const bool ok =
        !t || !t->rewrite || r->n_in > c.n_in || t->rewrite(&c, attrs);
    lb_array *const a = ok ? run_rule(r, &c) : NULL;
    json_decref(attrs);
    return a;
}
