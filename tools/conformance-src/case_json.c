/* case_json.c - lists of numbers from JSON, with types and ranges checked. */
#include <inttypes.h>

#include "conformance.h"

bool json_list_of_ints(const json_t *v, const char *what, int64_t lo,
                       int64_t hi, int64_t *out, int max, int *count, note *n)
{
    if (!json_is_array(v)) return note_fail(n, "%s is not a list", what);
    const size_t size = json_array_size(v);
    if (size > (size_t)max) {
        return note_fail(n, "%s has %zu entries, at most %d make sense", what,
                         size, max);
    }
    for (size_t i = 0; i < size; i++) {
        const json_t *const e = json_array_get(v, i);
        const json_int_t x = json_integer_value(e);
        if (!json_is_integer(e) || x < lo || x > hi) {
            return note_fail(n,
                             "%s: entry %zu is not an integer from %" PRId64
                             " to %" PRId64,
                             what, i, lo, hi);
        }
        out[i] = x;
    }
    *count = (int)size;
    return true;
}

bool json_int(const json_t *object, const char *key, int64_t lo, int64_t hi,
              int64_t *out, note *n)
{
    const json_t *const v = json_object_get(object, key);
    *out = json_integer_value(v);
    return (json_is_integer(v) && *out >= lo && *out <= hi) ||
           note_fail(n, "%s is not an integer from %" PRId64 " to %" PRId64,
                     key, lo, hi);
}

bool json_axes(const json_t *v, const char *what, lb_axes *out, note *n)
{
    int64_t axis[LB_MAX_RANK];
    int count = 0;
    if (!json_list_of_ints(v, what, 0, LB_MAX_RANK - 1, axis, LB_MAX_RANK,
                           &count, n)) {
        return false;
    }
    *out = (lb_axes){.n = count};
    for (int k = 0; k < count; k++) {
        out->axis[k] = (int)axis[k];
    }
    return true;
}

bool json_shape(const json_t *v, const char *what, lb_shape *out, note *n)
{
    *out = (lb_shape){0};
    if (json_is_array(v) && json_array_size(v) > LB_MAX_RANK) {
        return note_skip(n, "%s has rank %zu, lowbit goes up to %d", what,
                         json_array_size(v), LB_MAX_RANK);
    }
    if (!json_list_of_ints(v, what, 0, INT64_MAX, out->dim, LB_MAX_RANK,
                           &out->rank, n)) {
        return false;
    }
    return shape_size(*out) >= 0 ||
           note_fail(n, "%s %s is too large to be counted", what,
                     shape_text(*out).s);
}
