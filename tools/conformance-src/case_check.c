/* case_check.c - compares the arrays of a case's files with the library's.
 *
 * Expected values stay in the file's bytes, and the library's results are
 * copied to plain memory: only bytes are compared.
 */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

bool given_read(checker *c, const char *file, lb_dtype dtype, given *out)
{
    *out = (given){.dtype = dtype, .tol = tolerance_bits()};
    char *const path = path_below(c->dir, file, c->note);
    const bool read = path && npy_read(path, &out->raw, c->note);
    free(path);
    if (!read) return false;
    bool ok = true;
    if (!npy_is(&out->raw, dtype)) {
        ok = note_fail(c->note, "%s is %c%zu, not %s", base_name(file),
                       out->raw.kind, out->raw.item_size, lb_dtype_name(dtype));
    }
    out->a = ok ? lb_from(c->cx, dtype, out->raw.shape, out->raw.data) : NULL;
    if (ok && !out->a) ok = library_failed(c->cx, c->note, "lb_from");
    if (!ok) given_free(out);
    return ok;
}

void given_free(given *g)
{
    npy_free(&g->raw);
    g->a = NULL;
}

static bool check(checker *c, const char *what, lb_array *a, const given *want,
                  bool any_shape)
{
    if (!a) return library_failed(c->cx, c->note, what);
    const lb_dtype dtype = lb_dtype_of(a);
    const lb_shape shape = lb_shape_of(a);
    const int64_t size = lb_size(a);
    if (dtype != want->dtype ||
        (any_shape ? size != shape_size(want->raw.shape)
                   : !shape_equal(shape, want->raw.shape))) {
        return note_fail(c->note, "%s is %s %s, but %s %s is expected", what,
                         lb_dtype_name(dtype), shape_text(shape).s,
                         lb_dtype_name(want->dtype),
                         shape_text(want->raw.shape).s);
    }
    const size_t bytes = (size_t)size * lb_dtype_size(dtype);
    void *const got = malloc(bytes ? bytes : 1);
    if (!got) return note_fail(c->note, "out of memory");
    note why = {.verdict = PASSED};
    bool ok =
        lb_read(c->cx, a, got, bytes) || library_failed(c->cx, c->note, what);
    if (ok) {
        c->digest = digest_of(c->digest, got, bytes);
        ok = compare(dtype, shape, got, want->raw.data, want->tol, &why) ||
             note_fail(c->note, "%s: %s", what, why.why);
    }
    free(got);
    return ok;
}

bool check_array(checker *c, const char *what, lb_array *a, const given *want)
{
    return check(c, what, a, want, false);
}

bool check_bytes(checker *c, const char *what, lb_array *a, const given *want)
{
    return check(c, what, a, want, true);
}

bool check_decoded(checker *c, lb_array *a, const given *f32)
{
    given bf16 = {0};
    const bool ok =
        check_array(c, "decoded", a, f32) &&
        given_read(c, "expected_bf16_bits.npy", LB_BF16, &bf16) &&
        check_array(c, "as bf16", lb_convert(c->cx, a, LB_BF16), &bf16);
    given_free(&bf16);
    return ok;
}

void meta_case(runner *r, const char *dir, const char *name,
               bool (*check_meta)(checker *c, const json_t *meta))
{
    note n;
    case_open(r, &n);
    checker c = {.cx = r->cx, .dir = dir, .note = &n};
    json_t *meta = NULL;
    char *const path = path_in(dir, "meta.json", &n);
    if (path && json_read(path, &meta, &n)) check_meta(&c, meta);
    free(path);
    json_decref(meta);
    case_close(r, &n, name, c.digest);
}
