/* stablehlo_check.c - a case's checks of its results.
 *
 *     [how, got, expected] or [how, got, expected, {...}]
 *
 * how is check.expect_eq (exact), check.expect_close or check.expect_almost_eq
 * (floats by tolerance_default). The fourth entry sets another tolerance:
 * {tolerance}, {rtol, atol} or {max_ulp_difference}.
 */
#include <stdlib.h>
#include <string.h>

#include "stablehlo.h"

/* The fourth entry of a check. */
static bool parse_tolerance(const json_t *v, tolerance *tol, note *n)
{
    static const char *const keys[] = {"tolerance", "rtol", "atol",
                                       "max_ulp_difference", NULL};
    if (!v) return true;
    if (!keys_known(v, "a check", keys, n)) return false;
    const json_t *const both = json_object_get(v, "tolerance");
    const json_t *const rel = json_object_get(v, "rtol");
    const json_t *const abs = json_object_get(v, "atol");
    const json_t *const ulps = json_object_get(v, "max_ulp_difference");
    *tol = (tolerance){.ulps = -1};
    if (json_is_integer(ulps) && json_integer_value(ulps) >= 0 && !both &&
        !rel && !abs) {
        tol->ulps = json_integer_value(ulps);
        return true;
    }
    tol->relative = json_number_value(both ? both : rel);
    tol->absolute = json_number_value(both ? both : abs);
    const bool numbers = both ? json_is_number(both) && !rel && !abs
                              : (!rel || json_is_number(rel)) &&
                                    (!abs || json_is_number(abs)) &&
                                    (rel || abs);
    if (!ulps && numbers && tol->relative >= 0 && tol->absolute >= 0) {
        return true;
    }
    return note_fail(n, "a check's tolerance is invalid");
}

/* A value's bytes: those of its file if it has one, so that a bug in lb_from or
 * lb_read cannot affect the expected value; otherwise read from the library;
 * the caller frees them. */
static const void *value_bytes(program *p, const value *v, bool from_library,
                               void **to_free)
{
    *to_free = NULL;
    if (v->raw.data && !from_library) return v->raw.data;
    const size_t size =
        (size_t)lb_size(v->a) * lb_dtype_size(lb_dtype_of(v->a));
    *to_free = malloc(size ? size : 1);
    if (!*to_free) {
        note_fail(p->note, "out of memory");
        return NULL;
    }
    if (!lb_read(p->cx, v->a, *to_free, size)) {
        library_failed(p->cx, p->note, "lb_read");
        return NULL;
    }
    p->digest = digest_of(p->digest, *to_free, size);
    return *to_free;
}

static bool check_values(program *p, const value *got, const value *want,
                         tolerance tol)
{
    void *free_got = NULL;
    void *free_want = NULL;
    const bool both_raw = got->raw.data && want->raw.data;
    const void *const g = value_bytes(p, got, both_raw, &free_got);
    const void *const w = g ? value_bytes(p, want, false, &free_want) : NULL;
    const bool ok = w && compare(lb_dtype_of(got->a), lb_shape_of(got->a), g, w,
                                 tol, p->note);
    free(free_got);
    free(free_want);
    return ok;
}

bool program_check(program *p, const json_t *check)
{
    const size_t n = json_array_size(check);
    const char *const how = json_string_value(json_array_get(check, 0));
    if (n < 3 || n > 4 || !how) {
        return note_fail(p->note, "a check is not [how, got, expected]");
    }
    const value *const got =
        program_find(p, json_string_value(json_array_get(check, 1)));
    const value *const want =
        program_find(p, json_string_value(json_array_get(check, 2)));
    if (!got || !want) return false;
    const lb_dtype dtype = lb_dtype_of(got->a);
    if (dtype != lb_dtype_of(want->a) ||
        !shape_equal(lb_shape_of(got->a), lb_shape_of(want->a))) {
        return note_fail(p->note, "%s: %s %s is compared with %s %s", how,
                         lb_dtype_name(dtype),
                         shape_text(lb_shape_of(got->a)).s,
                         lb_dtype_name(lb_dtype_of(want->a)),
                         shape_text(lb_shape_of(want->a)).s);
    }
    tolerance tol = {.ulps = -1};
    if (!strcmp(how, "check.expect_close") ||
        !strcmp(how, "check.expect_almost_eq")) {
        tol = tolerance_default(dtype);
        if (!parse_tolerance(json_array_get(check, 3), &tol, p->note)) {
            return false;
        }
    } else if (strcmp(how, "check.expect_eq") || n != 3) {
        return note_skip(p->note, "check '%.64s' is not known here", how);
    }
    return check_values(p, got, want, tol);
}
