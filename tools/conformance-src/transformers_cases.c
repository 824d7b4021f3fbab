/* transformers_cases.c - the kind `transformers`: a model, and the same
 * model quantized by transformers with bitsandbytes, or by its BitNet loader.
 *
 * DIR/base is the model; nf4, nf4_double, int8, bitnet_.. in DIR are the
 * quantized ones. `lowbit quantize` must produce the same tensors: names,
 * types, shapes and bytes. Exception: torch sums the mean of nested scales in
 * another order, so it may differ by 1 ulp, and the maxima of the differences
 * from it by as much.
 */
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "lowbit_io.h"

enum { WORDS = 8 };

typedef struct made {
    const char *name;
    const char *word[WORDS]; /* options of the command, NULL after the last */
} made;

static const made cases[] = {
    {"nf4", {"--type", "nf4", "--layout", "bnb"}},
    {"nf4_double", {"--type", "nf4", "--layout", "bnb", "--double-quant"}},
    {"int8", {"--type", "int8", "--layout", "bnb"}},
    {"bitnet_autobitlinear",
     {"--type", "ternary", "--layout", "bitnet", "--threshold", "absmean"}},
    {"bitnet_bitlinear",
     {"--type", "ternary", "--layout", "bitnet", "--threshold", "absmean",
      "--linear-class", "bitlinear"}},
};

/* ---- the mean of nested scales ------------------------------------------- */

static bool same_state(const char *got, const char *want, note *n)
{
    static const char key[] = "nested_offset";
    json_t *const a = json_loads(got, JSON_REJECT_DUPLICATES, NULL);
    json_t *const b = json_loads(want, JSON_REJECT_DUPLICATES, NULL);
    const float x = (float)json_number_value(json_object_get(a, key));
    const float y = (float)json_number_value(json_object_get(b, key));
    json_object_del(a, key);
    json_object_del(b, key);
    const bool ok = a && json_equal(a, b) && (x == y || nextafterf(x, y) == y);
    json_decref(a);
    json_decref(b);
    return ok || note_fail(n, "quant_state %.200s, not %.200s", got, want);
}

/* ---- tensors ------------------------------------------------------------- */

static char *bytes_of(checker *c, lb_file *f, const char *name, size_t *n)
{
    lb_array *const a = lb_file_load(c->cx, f, name);
    *n = a ? (size_t)lb_size(a) * lb_dtype_size(lb_dtype_of(a)) : 0;
    char *const to = a ? malloc(*n + 1) : NULL;
    if (!to || !lb_read(c->cx, a, to, *n)) {
        library_failed(c->cx, c->note, name);
        free(to);
        return NULL;
    }
    to[*n] = 0;
    return to;
}

/* One ulp of the mean that is subtracted from the nested scales. */
static float mean_ulp(checker *c, lb_file *f, const char *name)
{
    static const char suffix[] = "nested_absmax";
    char state[512];
    size_t n = 0;
    snprintf(state, sizeof(state), "%.*squant_state.bitsandbytes__nf4",
             (int)(strlen(name) - strlen(suffix)), name);
    char *const said = bytes_of(c, f, state, &n);
    json_t *const j = said ? json_loads(said, 0, NULL) : NULL;
    const float mean =
        (float)json_number_value(json_object_get(j, "nested_offset"));
    json_decref(j);
    free(said);
    return nextafterf(mean, INFINITY) - mean;
}

static bool near_floats(const char *a, const char *b, size_t n, float by)
{
    bool ok = true;
    for (size_t i = 0; ok && i + 4 <= n; i += 4) {
        float x;
        float y;
        memcpy(&x, a + i, 4);
        memcpy(&y, b + i, 4);
        ok = fabsf(x - y) <= by;
    }
    return ok;
}

static bool same_bytes(checker *c, lb_file *got, lb_file *want,
                       const char *name)
{
    size_t n = 0;
    size_t m = 0;
    char *const a = bytes_of(c, got, name, &n);
    char *const b = bytes_of(c, want, name, &m);
    bool ok = a && b;
    if (ok) c->digest = digest_of(c->digest, a, n);
    if (ok && (n != m || memcmp(a, b, n) != 0)) {
        const bool nested = strstr(name, ".nested_absmax") != NULL;
        if (strstr(name, ".quant_state.")) {
            ok = same_state(a, b, c->note);
        } else {
            ok = nested && n == m &&
                 near_floats(a, b, n, mean_ulp(c, want, name));
            if (!ok) note_fail(c->note, "%.128s has other bytes", name);
        }
    }
    free(a);
    free(b);
    return ok;
}

static bool same_tensor(checker *c, lb_file *got, lb_file *want,
                        const lb_entry *e)
{
    const lb_entry *const g = lb_file_find(got, e->name);
    const bool state = strstr(e->name, ".quant_state.") != NULL;
    if (!g) return note_fail(c->note, "no tensor %.128s", e->name);
    if (strcmp(g->type, e->type) != 0 || g->rank != e->rank) {
        return note_fail(c->note, "%.128s is %s of rank %d, not %s of %d",
                         e->name, g->type, g->rank, e->type, e->rank);
    }
    for (int k = 0; k < e->rank && !state; k++) {
        if (g->dim[k] != e->dim[k]) {
            return note_fail(c->note, "%.128s has %lld along axis %d, not %lld",
                             e->name, (long long)g->dim[k], k,
                             (long long)e->dim[k]);
        }
    }
    return same_bytes(c, got, want, e->name);
}

static bool same_files(checker *c, const char *got, const char *want)
{
    const lb_file_options raw = {.struct_size = sizeof(raw), .raw = true};
    lb_file *const a = lb_file_open(c->cx, got, &raw);
    lb_file *const b = lb_file_open(c->cx, want, &raw);
    bool ok = a && b;
    if (!ok) library_failed(c->cx, c->note, "open");
    if (ok && lb_file_count(a) != lb_file_count(b)) {
        ok =
            note_fail(c->note, "%lld tensors, not %lld",
                      (long long)lb_file_count(a), (long long)lb_file_count(b));
    }
    for (int64_t i = 0; ok && i < lb_file_count(b); i++) {
        ok = same_tensor(c, a, b, lb_file_entry(b, i));
    }
    lb_file_close(a);
    lb_file_close(b);
    return ok;
}

/* ---- cases --------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int what,
                      struct FTW *where)
{
    (void)st;
    (void)what;
    (void)where;
    return remove(path);
}

/* Quantizes base to a temporary directory and compares it with want. */
static bool check_case(checker *c, const made *m, const char *base,
                       const char *want)
{
    char out[256];
    const char *const tmp = getenv("TMPDIR");
    snprintf(out, sizeof(out), "%s/lowbit_XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(out)) return note_fail(c->note, "no temporary directory");
    const char *argv[8 + WORDS] = {"lowbit", "quantize", base, "-o",
                                   out,      "--force",  "-q"};
    int n = 7;
    for (int i = 0; i < WORDS && m->word[i]; i++) {
        argv[n++] = m->word[i];
    }
    command_result r = {0};
    bool ok = command_run(argv, &r, c->note);
    if (ok && r.code) ok = note_fail(c->note, "quantize exits %d", r.code);
    ok = ok && same_files(c, out, want);
    free(r.text);
    nftw(out, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return ok;
}

static void run_case(runner *r, const char *dir, const made *m)
{
    note n;
    case_open(r, &n);
    checker c = {.cx = r->cx, .dir = dir, .note = &n};
    char *const base = path_in(dir, "base", &n);
    char *const want = path_in(dir, m->name, &n);
    if (base && want) check_case(&c, m, base, want);
    free(base);
    free(want);
    case_close(r, &n, m->name, c.digest);
}

/* In one file or in several. */
static bool has_model(const char *dir, const char *name)
{
    return file_exists(dir, name, "model.safetensors") ||
           file_exists(dir, name, "model.safetensors.index.json");
}

static bool run_transformers(runner *r, const char *dir, note *n)
{
    if (!has_model(dir, "base")) {
        return note_fail(n, "%.256s: no model in base", dir);
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (has_model(dir, cases[i].name)) {
            run_case(r, dir, &cases[i]);
        } else {
            cases_skip(r, cases[i].name, 1, "is not there");
        }
    }
    return true;
}

const kind kind_transformers = {
    .name = "transformers",
    .help = "a model in other programs' layouts",
    .dense = LB_DENSE_DENY,
    .run = run_transformers,
};
