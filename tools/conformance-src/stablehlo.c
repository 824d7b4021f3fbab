/* stablehlo.c - the kind `stablehlo`: programs of StableHLO operations.
 *
 * A case is a directory with case.json:
 *
 *     consts  name -> {npy, shape, dtype}: a value in a file
 *     ops     [{op, ins, outs, out_types, attrs}, ...], run in order
 *     check   [[how, got, expected], ...]: stablehlo_check.c
 *
 * A case that violates these rules fails; one that uses features that lowbit
 * lacks is skipped, with the reason.
 */
#include <stdlib.h>
#include <string.h>

#include "stablehlo.h"

/* ---- types -------------------------------------------------------------- */

static bool parse_dtype(const json_t *v, lb_dtype *out, note *n)
{
    /* clang-format off */
    static const struct { const char *name; lb_dtype dtype; } known[] = {
        {"i1", LB_BOOL}, {"i8", LB_I8},   {"i16", LB_I16},   {"i32", LB_I32},
        {"i64", LB_I64}, {"ui8", LB_U8},  {"ui16", LB_U16},  {"ui32", LB_U32},
        {"ui64", LB_U64}, {"f16", LB_F16}, {"bf16", LB_BF16}, {"f32", LB_F32},
        {"f64", LB_F64}};
    /* Prefixes of StableHLO's other element types. */
    static const char *const foreign[] = {"complex<", "c64", "c128", "f8", "f6",
                                          "f4", "i2", "ui2", "i4", "ui4",
                                          "tf32", "!quant"};
    /* clang-format on */
    const char *const s = json_string_value(v);
    if (!s) return note_fail(n, "a dtype is not a string");
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (!strcmp(s, known[i].name)) {
            *out = known[i].dtype;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        if (!strncmp(s, foreign[i], strlen(foreign[i]))) {
            return note_skip(n, "lowbit has no dtype %.32s", s);
        }
    }
    return note_fail(n, "'%.32s' is not a dtype", s);
}

static bool parse_type(const json_t *v, tensor_type *out, note *n)
{
    if (!json_is_object(v)) return note_fail(n, "a type is not an object");
    return parse_dtype(json_object_get(v, "dtype"), &out->dtype, n) &&
           json_shape(json_object_get(v, "shape"), "shape", &out->shape, n);
}

bool keys_known(const json_t *object, const char *what,
                const char *const *known, note *n)
{
    if (!json_is_object(object)) return note_fail(n, "%s is no object", what);
    for (void *i = json_object_iter((json_t *)object); i;
         i = json_object_iter_next((json_t *)object, i)) {
        const char *const key = json_object_iter_key(i);
        const char *const *k = known;
        while (*k && strcmp(*k, key)) {
            k++;
        }
        if (!*k) {
            return note_skip(n, "%s has '%.64s', which is not known here", what,
                             key);
        }
    }
    return true;
}

/* ---- values ------------------------------------------------------------- */

const value *program_find(program *p, const char *name)
{
    for (const program *q = p; name && q;
         q = q->lanes ? q->lanes->outer : NULL) {
        for (size_t i = 0; i < q->n_values; i++) {
            if (!strcmp(q->values[i].name, name)) return &q->values[i];
        }
    }
    note_fail(p->note, "there is no value '%.64s'", name ? name : "");
    return NULL;
}

bool program_add(program *p, value v)
{
    for (size_t i = 0; i < p->n_values; i++) {
        if (!strcmp(p->values[i].name, v.name)) {
            return note_fail(p->note, "value '%.64s' is made twice", v.name);
        }
    }
    if (p->n_values == p->room) {
        const size_t room = p->room ? 2 * p->room : 16;
        value *const more = realloc(p->values, room * sizeof(*more));
        if (!more) return note_fail(p->note, "out of memory");
        p->values = more;
        p->room = room;
    }
    p->values[p->n_values++] = v;
    return true;
}

static bool add_const(program *p, const char *name, const json_t *v)
{
    static const char *const keys[] = {"npy", "shape", "dtype", NULL};
    tensor_type type = {0};
    if (!keys_known(v, "a constant", keys, p->note) ||
        !parse_type(v, &type, p->note)) {
        return false;
    }
    const char *const file = json_string_value(json_object_get(v, "npy"));
    char *const path = path_in(p->dir, file ? file : "", p->note);
    npy raw = {0};
    const bool read = path && npy_read(path, &raw, p->note);
    free(path);
    if (!read) return false;
    bool ok = true;
    if (!shape_equal(raw.shape, type.shape) || !npy_is(&raw, type.dtype)) {
        ok = note_fail(p->note, "%.64s is %c%zu %s, but %.64s is %s %s", file,
                       raw.kind, raw.item_size, shape_text(raw.shape).s, name,
                       lb_dtype_name(type.dtype), shape_text(type.shape).s);
    }
    lb_array *const a =
        ok ? lb_from(p->cx, type.dtype, type.shape, raw.data) : NULL;
    if (ok && !a) ok = library_failed(p->cx, p->note, "lb_from");
    if (ok && program_add(p, (value){name, a, raw})) return true;
    npy_free(&raw);
    return false;
}

bool program_add_consts(program *p, const json_t *consts)
{
    for (void *i = json_object_iter((json_t *)consts); i;
         i = json_object_iter_next((json_t *)consts, i)) {
        if (!add_const(p, json_object_iter_key(i), json_object_iter_value(i))) {
            return false;
        }
    }
    return true;
}

void program_free(program *p)
{
    for (size_t i = 0; i < p->n_values; i++) {
        npy_free(&p->values[i].raw);
    }
    free(p->values);
}

/* ---- operations --------------------------------------------------------- */

const op_rule *stablehlo_find(const char *name)
{
    static const op_rule *const tables[] = {
        stablehlo_elementwise, stablehlo_structure, stablehlo_contraction,
        stablehlo_reduce};
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        for (const op_rule *r = tables[t]; r->name; r++) {
            if (!strcmp(r->name, name)) return r;
        }
    }
    return NULL;
}

/* In a region, operations on shapes map scalars to scalars. */
static const op_rule *rule_in(const program *p, const char *name)
{
    static const op_rule same[] = {
        RULE("broadcast_in_dim", "dims|broadcast_dimensions", 1, NULL),
        RULE("reshape", NULL, 1, NULL),
        RULE("transpose", "dims|permutation", 1, NULL),
        RULE(NULL, NULL, 0, NULL),
    };
    for (const op_rule *r = same; p->lanes && r->name; r++) {
        if (!strcmp(r->name, name)) return r;
    }
    return stablehlo_find(name);
}

static bool result_is(const op_call *c, int i, lb_array *a)
{
    const tensor_type *const want = &c->type[i];
    if (lb_dtype_of(a) == want->dtype &&
        shape_equal(lb_shape_of(a), want->shape)) {
        return true;
    }
    return note_fail(c->note, "%s: result %d is %s %s, but %s %s is expected",
                     c->name, i, lb_dtype_name(lb_dtype_of(a)),
                     shape_text(lb_shape_of(a)).s, lb_dtype_name(want->dtype),
                     shape_text(want->shape).s);
}

/* Writes the results to out, which is large enough. */
static bool call_rule(const op_rule *r, const op_call *c, lb_array **out)
{
    const int n = r->many ? c->n_out : r->run ? 1 : c->n_in;
    /* The rule first: its error may be more specific. */
    lb_array *const one = r->run && !r->many ? r->run(r, c) : NULL;
    if (r->run && !one) return library_failed(c->cx, c->note, c->name);
    if (c->n_out != n) {
        return note_fail(c->note, "%s has %d results", c->name, c->n_out);
    }
    if (r->many) {
        return r->many(r, c, out) || library_failed(c->cx, c->note, c->name);
    }
    for (int i = 0; i < n; i++) {
        out[i] = r->run ? one : c->in[i];
    }
    return true;
}

static bool run_rule(program *p, const op_rule *r, const op_call *c,
                     const json_t *outs, lb_array **out)
{
    if (!attrs_known(r, c)) return false;
    if (c->region && !r->many) {
        return note_skip(p->note, "%s: its region is not known here", c->name);
    }
    if (r->n_in >= 0 && c->n_in != r->n_in) {
        return note_fail(p->note, "%s has %d operands, not %d", c->name,
                         c->n_in, r->n_in);
    }
    if (!call_rule(r, c, out)) return false;
    for (int i = 0; i < c->n_out; i++) {
        const char *const name =
            json_string_value(json_array_get(outs, (size_t)i));
        if (!name) return note_fail(p->note, "%s: outs are no names", c->name);
        if (!result_is(c, i, out[i])) return false;
        if (!program_add(p, (value){.name = name, .a = out[i]})) return false;
    }
    return true;
}

/* Fills in operands and types; the arrays are large enough. */
static bool bind_op(program *p, const json_t *ins, const json_t *types,
                    lb_array **in, tensor_type *type)
{
    for (size_t i = 0; i < json_array_size(ins); i++) {
        const value *const v =
            program_find(p, json_string_value(json_array_get(ins, i)));
        if (!v) return false;
        in[i] = v->a;
        if (p->lanes && lb_rank(v->a) == 0) {
            in[i] = lb_broadcast_to(p->cx, v->a, p->lanes->shape);
            if (!in[i]) return library_failed(p->cx, p->note, "a scalar");
        }
    }
    for (size_t i = 0; i < json_array_size(types); i++) {
        if (!parse_type(json_array_get(types, i), &type[i], p->note)) {
            return false;
        }
        if (p->lanes && type[i].shape.rank) {
            return note_skip(p->note, "a region of arrays, not of scalars");
        }
        if (p->lanes) type[i].shape = p->lanes->shape;
    }
    return true;
}

bool program_run_op(program *p, const json_t *op)
{
    static const char *const keys[] = {
        "op",      "ins",  "outs",    "out_types",   "attrs", "region",
        "regions", "body", "reducer", "computation", NULL};
    if (!keys_known(op, "an operation", keys, p->note)) return false;
    const char *const full = json_string_value(json_object_get(op, "op"));
    const json_t *const ins = json_object_get(op, "ins");
    const json_t *const outs = json_object_get(op, "outs");
    const json_t *const types = json_object_get(op, "out_types");
    const json_t *const attrs = json_object_get(op, "attrs");
    const size_t n_in = json_array_size(ins);
    const size_t n_out = json_array_size(outs);
    if (!full || !json_is_array(ins) || !json_is_array(outs) ||
        !json_is_array(types) || json_array_size(types) != n_out ||
        (attrs && !json_is_object(attrs))) {
        return note_fail(p->note, "operation '%.64s' is malformed",
                         full ? full : "");
    }
    if (n_in > 4096 || n_out > 4096) {
        return note_skip(p->note, "operation '%.64s' has %zu operands", full,
                         n_in);
    }
    const char *const name = without_dialect(full);
    if (!strcmp(name, "return") && n_out == 0) return true;
    const op_rule *const r = rule_in(p, name);
    if (!r) {
        return note_skip(p->note, "lowbit has no function for '%.64s'", full);
    }
    lb_array **const in = calloc(n_in + 1, sizeof(lb_array *));
    lb_array **const out = calloc(n_out + 1, sizeof(lb_array *));
    tensor_type *const type = calloc(n_out + 1, sizeof(*type));
    const op_call c = {.cx = p->cx,
                       .name = r->name,
                       .attrs = attrs,
                       .region = region_of(op),
                       .program = p,
                       .n_in = (int)n_in,
                       .in = in,
                       .n_out = (int)n_out,
                       .type = type,
                       .note = p->note};
    const bool ok = in && out && type ? bind_op(p, ins, types, in, type) &&
                                            run_rule(p, r, &c, outs, out)
                                      : note_fail(p->note, "out of memory");
    free(in);
    free(out);
    free(type);
    return ok;
}

/* ---- cases -------------------------------------------------------------- */

static bool run_program(program *p, const json_t *root)
{
    static const char *const keys[] = {"source", "check", "ops", "consts",
                                       NULL};
    const json_t *const ops = json_object_get(root, "ops");
    const json_t *const checks = json_object_get(root, "check");
    const json_t *const consts = json_object_get(root, "consts");
    if (!json_is_array(ops) || json_array_size(checks) == 0 ||
        !json_is_object(consts)) {
        return note_fail(p->note, "case.json lacks ops, check or consts");
    }
    if (!keys_known(root, "case.json", keys, p->note) ||
        !program_add_consts(p, consts)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(ops); i++) {
        if (!program_run_op(p, json_array_get(ops, i))) return false;
    }
    for (size_t i = 0; i < json_array_size(checks); i++) {
        if (!program_check(p, json_array_get(checks, i))) return false;
    }
    return true;
}

static void run_case(runner *r, const char *dir, const char *name)
{
    note n;
    case_open(r, &n);
    program p = {.cx = r->cx, .dir = dir, .note = &n};
    json_t *root = NULL;
    char *const path = path_in(dir, "case.json", &n);
    if (path && json_read(path, &root, &n)) run_program(&p, root);
    program_free(&p);
    json_decref(root);
    free(path);
    case_close(r, &n, name, p.digest);
}

static bool run_stablehlo(runner *r, const char *dir, note *n)
{
    return cases_run(r, dir, "case.json", run_case, n);
}

const kind kind_stablehlo = {
    .name = "stablehlo",
    .help = "programs of StableHLO operations with their results",
    .run = run_stablehlo,
};
