/* seed_cases.c - the kind `seed`: results of the original system.
 *
 * DIR holds index.json, whose `cases` have a `group` each: 1, 2, 3, 9 codecs
 * (seed_codecs.c), 4 calls (seed_calls.c), 5 primitives on quantized operands
 * (seed_prims.c), 6 training (seed_training.c), 8 gradients of composed
 * functions (seed_gradients.c). 7 is sharding.json (seed_sharding.c). The
 * counts of each group are printed before the last line.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seed_cases.h"

/* ---- arrays -------------------------------------------------------------- */

static double smallest_normal(lb_dtype dtype)
{
    return ldexp(1, dtype == LB_F16 ? -14 : dtype == LB_F64 ? -1022 : -126);
}

static bool parse_tolerance(const json_t *ref, given *g, note *n)
{
    const json_t *const tol = json_object_get(ref, "tol");
    const char *const word = json_string_value(tol);
    const char *const of = json_string_value(json_object_get(ref, "tol_of"));
    if (!tol || (word && !strcmp(word, "exact"))) return true;
    const double t = json_number_value(tol);
    if (!json_is_number(tol) || !(t >= 0) || !of) {
        return note_fail(n, "an invalid tolerance");
    }
    g->tol = (tolerance){.ulps = -1};
    if (!strcmp(of, "element")) {
        g->tol.relative = t;
        g->tol.at_zero = smallest_normal(g->dtype);
        return true;
    }
    g->tol.absolute = dtype_is_float(g->dtype)
                          ? t * largest_finite(g->dtype, g->raw.data,
                                               shape_size(g->raw.shape))
                          : 0;
    return !strcmp(of, "array") ||
           note_skip(n, "a tolerance of '%.32s' is not known here", of);
}

bool seed_array(checker *c, const json_t *ref, given *out)
{
    *out = (given){0};
    const char *const file = json_string_value(json_object_get(ref, "file"));
    const char *const name = json_string_value(json_object_get(ref, "dtype"));
    lb_shape shape;
    if (!file || !name) {
        return note_fail(c->note, "an array without file or dtype");
    }
    const lb_dtype dtype = dtype_named(name);
    if (!dtype) return note_skip(c->note, "lowbit has no dtype '%.32s'", name);
    if (!json_shape(json_object_get(ref, "shape"), "shape", &shape, c->note) ||
        !given_read(c, file, dtype, out)) {
        return false;
    }
    const bool ok =
        shape_equal(shape, out->raw.shape)
            ? parse_tolerance(ref, out, c->note)
            : note_fail(c->note, "%s is %s, not %s", base_name(file),
                        shape_text(out->raw.shape).s, shape_text(shape).s);
    if (!ok) given_free(out);
    return ok;
}

bool seed_expect(checker *c, const char *what, lb_array *a, given *out)
{
    *out = (given){.tol = tolerance_bits(), .a = a};
    if (!a) return library_failed(c->cx, c->note, what);
    out->dtype = lb_dtype_of(a);
    out->raw.shape = lb_shape_of(a);
    out->raw.nbytes = (size_t)lb_size(a) * lb_dtype_size(out->dtype);
    out->raw.data = malloc(out->raw.nbytes ? out->raw.nbytes : 1);
    if (!out->raw.data) return note_fail(c->note, "out of memory");
    return lb_read(c->cx, a, out->raw.data, out->raw.nbytes) ||
           library_failed(c->cx, c->note, what);
}

bool seed_params(const json_t *params, lb_quant_config *config, note *n)
{
    const json_t *const axis = json_object_get(params, "axis");
    const json_t *const block = json_object_get(params, "block_size");
    int64_t list[LB_MAX_RANK] = {0};
    if (json_is_integer(axis)) {
        list[0] = json_integer_value(axis);
        config->axes.n = 1;
    } else if (axis && !json_is_null(axis) &&
               !json_list_of_ints(axis, "axis", -LB_MAX_RANK, LB_MAX_RANK - 1,
                                  list, LB_MAX_RANK, &config->axes.n, n)) {
        return false;
    }
    if (json_is_array(axis) && !config->axes.n) {
        return note_skip(n, "an empty list of axes means the default here");
    }
    for (int k = 0; k < config->axes.n; k++) {
        config->axes.axis[k] = (int)list[k];
    }
    return !block ||
           json_int(params, "block_size", 1, INT64_MAX, &config->block_size, n);
}

/* ---- groups -------------------------------------------------------------- */

enum { N_GROUPS = 10 }; /* 0: cases without a group */

typedef struct tally {
    int64_t count[N_GROUPS][SKIPPED + 1];
} tally;

/* Adds the counts since `before` to a group. */
static void tally_add(tally *t, int group, const runner *r,
                      const runner *before)
{
    for (int v = PASSED; v <= SKIPPED; v++) {
        t->count[group][v] += r->count[v] - before->count[v];
    }
}

static void tally_print(const tally *t)
{
    for (int g = 0; g < N_GROUPS; g++) {
        const int64_t *const n = t->count[g];
        if (n[PASSED] + n[FAILED] + n[SKIPPED] == 0) continue;
        printf("group %d: %" PRId64 " passed, %" PRId64 " failed, %" PRId64
               " skipped\n",
               g, n[PASSED], n[FAILED], n[SKIPPED]);
    }
}

static int group_of(const json_t *it)
{
    const json_t *const g = json_object_get(it, "group");
    const json_int_t v = json_integer_value(g);
    return json_is_integer(g) && v > 0 && v < N_GROUPS ? (int)v : 0;
}

static void run_one(runner *r, const char *dir, const json_t *manifest,
                    const json_t *it, const char *id)
{
    const int group = group_of(it);
    if (group == 4) {
        seed_calls(r, dir, it, id);
        return;
    }
    note n;
    case_open(r, &n);
    seed_case s = {{.cx = r->cx, .dir = dir, .note = &n}, manifest, it};
    if (group == 5) {
        seed_primitive(&s);
    } else if (group == 6) {
        seed_training(&s);
    } else if (group == 8) {
        seed_gradients(&s);
    } else if (group == 1 || group == 2 || group == 3 || group == 9) {
        seed_codec(&s);
    } else {
        note_skip(&n, "its group is not known here");
    }
    case_close(r, &n, id, s.check.digest);
}

static void run_cases(runner *r, const char *dir, const json_t *manifest,
                      const json_t *cases, tally *t)
{
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *const it = json_array_get(cases, i);
        const char *const id = json_string_value(json_object_get(it, "id"));
        const int group = group_of(it);
        const runner before = *r;
        run_one(r, dir, manifest, it, id ? id : "a case without an id");
        tally_add(t, group, r, &before);
    }
}

static bool run_sharding(runner *r, const char *dir, tally *t, note *n)
{
    if (!file_exists(dir, ".", "sharding.json")) return true;
    json_t *root = NULL;
    char *const path = path_in(dir, "sharding.json", n);
    const bool read = path && json_read(path, &root, n);
    free(path);
    if (!read) return false;
    const runner before = *r;
    seed_sharding(r, root);
    tally_add(t, 7, r, &before);
    json_decref(root);
    return true;
}

static bool run_seed(runner *r, const char *dir, note *n)
{
    char *const path = path_in(dir, "index.json", n);
    json_t *manifest = NULL;
    const bool read = path && json_read(path, &manifest, n);
    free(path);
    if (!read) return false;
    tally t = {0};
    const json_t *const cases = json_object_get(manifest, "cases");
    bool ok =
        json_is_array(cases) || note_fail(n, "index.json has no list of cases");
    if (ok) run_cases(r, dir, manifest, cases, &t);
    ok = ok && run_sharding(r, dir, &t, n);
    if (ok) tally_print(&t);
    json_decref(manifest);
    return ok;
}

const kind kind_seed = {
    .name = "seed",
    .help = "codecs, calls, primitives and gradients of the original",
    .dense = LB_DENSE_LOG,
    .run = run_seed,
};
