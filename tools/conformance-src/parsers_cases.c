/* parsers_cases.c - the kind `parsers`: valid files must be accepted, invalid
 * ones refused.
 *
 * A directory holds files and manifest.json, {name: {expect, ..}}:
 *
 *     accept ..   `lowbit info` exits 0 and lists the shape and dtype of the
 *                 manifest, if it has them; each array loads, or the error
 *                 names its unsupported type; its bytes hash to sha_c_order
 *     reject ..   `lowbit info` exits 3 with a message
 *     .. may ..   either
 */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "lowbit_io.h"

/* ---- listing ------------------------------------------------------------- */

static bool same_shape(const json_t *want, const json_t *got, note *n)
{
    lb_shape a = {0};
    lb_shape b = {0};
    return json_shape(want, "shape", &a, n) &&
           json_shape(got, "listed shape", &b, n) &&
           (shape_equal(a, b) || note_fail(n, "shape %s is listed, not %s",
                                           shape_text(b).s, shape_text(a).s));
}

static bool check_listing(checker *c, const json_t *want, const char *listing)
{
    const char *dtype = json_string_value(json_object_get(want, "dtype"));
    const json_t *const shape = json_object_get(want, "shape");
    json_error_t why;
    json_t *const root = json_loads(listing, JSON_REJECT_DUPLICATES, &why);
    if (!root) return note_fail(c->note, "info --json: %s", why.text);
    const json_t *const first =
        json_array_get(json_object_get(root, "arrays"), 0);
    const char *const type = json_string_value(json_object_get(first, "type"));
    bool ok =
        !shape || same_shape(shape, json_object_get(first, "shape"), c->note);
    if (ok && dtype && (!type || strcmp(type, dtype) != 0)) {
        ok = note_fail(c->note, "type %.64s is listed, not %.64s",
                       type ? type : "(none)", dtype);
    }
    json_decref(root);
    return ok;
}

/* ---- loading ------------------------------------------------------------- */

/* Hashes are over the bytes in the file's order. */
static void turn_around(uint8_t *p, size_t n, size_t unit)
{
    for (; n >= unit; n -= unit, p += unit) {
        for (size_t i = 0; i < unit / 2; i++) {
            const uint8_t byte = p[i];
            p[i] = p[unit - 1 - i];
            p[unit - 1 - i] = byte;
        }
    }
}

static bool check_hash(checker *c, lb_array *a, const lb_entry *e,
                       const char *want)
{
    const size_t unit = lb_dtype_size(lb_dtype_of(a));
    const size_t n = (size_t)lb_size(a) * unit;
    uint8_t *const bytes = malloc(n ? n : 1);
    bool ok = bytes != NULL && lb_read(c->cx, a, bytes, n);
    if (!ok) library_failed(c->cx, c->note, "read");
    if (ok) c->digest = digest_of(c->digest, bytes, n);
    if (ok && e->type[0] == '>') turn_around(bytes, n, unit);
    if (ok && want && strcmp(sha256_text(bytes, n).s, want) != 0) {
        ok = note_fail(c->note, "'%.64s' loads as other bytes", e->name);
    }
    free(bytes);
    return ok;
}

static bool check_entry(checker *c, lb_file *f, const lb_entry *e,
                        const char *hash)
{
    lb_array *const a = lb_file_load(c->cx, f, e->name);
    if (a) return check_hash(c, a, e, hash);
    const bool clear = lb_error_status(c->cx) == LB_E_UNSUPPORTED &&
                       strstr(lb_error(c->cx), "type") != NULL;
    if (e->format || !clear) return library_failed(c->cx, c->note, "load");
    lb_clear(c->cx);
    return true;
}

static bool check_loading(checker *c, const json_t *want, const char *path)
{
    const char *hash = json_string_value(json_object_get(want, "sha_c_order"));
    lb_file *const f = lb_file_open(c->cx, path, NULL);
    if (!f) return library_failed(c->cx, c->note, "open");
    bool ok = true;
    for (int64_t i = 0; ok && i < lb_file_count(f); i++) {
        ok = check_entry(c, f, lb_file_entry(f, i), hash);
    }
    lb_file_close(f);
    return ok;
}

/* ---- cases --------------------------------------------------------------- */

static bool check_case(checker *c, const char *path, const json_t *want)
{
    enum { ACCEPTED = 0, REJECTED = 3 };
    const char *const expect =
        json_string_value(json_object_get(want, "expect"));
    const bool accept = expect && strncmp(expect, "accept", 6) == 0;
    if (!accept && !(expect && strncmp(expect, "reject", 6) == 0)) {
        return note_fail(c->note, "manifest.json: no verdict");
    }
    const char *const argv[] = {"lowbit", "info", "--json", "--", path, NULL};
    command_result r = {0};
    bool ok = command_run(argv, &r, c->note);
    const int right = accept ? ACCEPTED : REJECTED;
    const bool either =
        strstr(expect, "may") && (r.code == ACCEPTED || r.code == REJECTED);
    if (ok && r.code != right && !either) {
        ok = note_fail(c->note, "info exits %d, not %d (%.80s)", r.code, right,
                       expect);
    }
    if (ok && r.code == ACCEPTED) {
        ok = check_listing(c, want, r.text ? r.text : "") &&
             check_loading(c, want, path);
    }
    free(r.text);
    return ok;
}

static void run_case(runner *r, const char *dir, const char *name,
                     const json_t *want)
{
    note n;
    case_open(r, &n);
    checker c = {.cx = r->cx, .dir = dir, .note = &n};
    char *const path = path_in(dir, name, &n);
    if (path) check_case(&c, path, want);
    free(path);
    case_close(r, &n, name, c.digest);
}

static bool run_manifest(runner *r, const char *dir, const char *name, note *n)
{
    json_t *root = NULL;
    char *const below = path_in(dir, name, n);
    char *const path = below ? path_in(below, "manifest.json", n) : NULL;
    const bool ok = path && json_read(path, &root, n);
    const char *file;
    json_t *want;
    json_object_foreach(root, file, want)
    {
        run_case(r, below, file, want);
    }
    json_decref(root);
    free(path);
    free(below);
    return ok;
}

static bool run_parsers(runner *r, const char *dir, note *n)
{
    name_list list = {0};
    bool ok = cases_in(dir, "manifest.json", &list, n);
    for (size_t i = 0; ok && i < list.n; i++) {
        ok = run_manifest(r, dir, list.name[i], n);
    }
    name_list_free(&list);
    return ok;
}

const kind kind_parsers = {
    .name = "parsers",
    .help = "files that must be accepted or rejected",
    .dense = LB_DENSE_DENY,
    .run = run_parsers,
};
