/* stablehlo_attrs.c - checks of attributes and operands for the rules. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "stablehlo.h"

/* Hints to the compiler that do not change the result. Products of lowbit are
 * never less precise than `precision` requires. */
static const char neutral[] =
    "indices_are_sorted unique_indices precision|precision_config "
    "result_accuracy known_expanding_dimensions known_nonexpanding_dimensions "
    "mhlo.frontend_attributes mhlo.sharding sdy.sharding";

/* Whether key is one of the words in list, separated by ' ' or '|'. */
static bool listed(const char *list, const char *key)
{
    const size_t len = strlen(key);
    while (list && *list) {
        const size_t word = strcspn(list, " |");
        if (word == len && !memcmp(list, key, len)) return true;
        list += word + (list[word] != 0);
    }
    return false;
}

bool attrs_known(const op_rule *r, const op_call *c)
{
    for (void *i = json_object_iter((json_t *)c->attrs); i;
         i = json_object_iter_next((json_t *)c->attrs, i)) {
        const char *const key = json_object_iter_key(i);
        if (!listed(r->attrs, key) && !listed(neutral, key)) {
            return note_skip(c->note, "%s: attribute '%.64s' is not known here",
                             c->name, key);
        }
    }
    return true;
}

const json_t *attr(const op_call *c, const char *spellings)
{
    for (void *i = json_object_iter((json_t *)c->attrs); i;
         i = json_object_iter_next((json_t *)c->attrs, i)) {
        if (listed(spellings, json_object_iter_key(i))) {
            return json_object_iter_value(i);
        }
    }
    return NULL;
}

static const json_t *needed(const op_call *c, const char *spellings)
{
    const json_t *const v = attr(c, spellings);
    if (!v) note_fail(c->note, "%s: no attribute %s", c->name, spellings);
    return v;
}

bool attr_axes(const op_call *c, const char *spellings, lb_axes *out)
{
    const json_t *const v = needed(c, spellings);
    return v && json_axes(v, spellings, out, c->note);
}

bool attr_axes_or_none(const op_call *c, const char *spellings, lb_axes *out)
{
    *out = (lb_axes){0};
    const json_t *const v = attr(c, spellings);
    return !v || json_axes(v, spellings, out, c->note);
}

static bool sizes(const op_call *c, const json_t *v, const char *spellings,
                  int64_t lo, int64_t *out, int count)
{
    int n = 0;
    if (!json_list_of_ints(v, spellings, lo, INT64_MAX, out, count, &n,
                           c->note)) {
        return false;
    }
    return n == count || note_fail(c->note, "%s: %s has %d entries, not %d",
                                   c->name, spellings, n, count);
}

bool attr_sizes(const op_call *c, const char *spellings, int64_t lo,
                int64_t *out, int count)
{
    const json_t *const v = needed(c, spellings);
    return v && sizes(c, v, spellings, lo, out, count);
}

bool attr_sizes_or(const op_call *c, const char *spellings, int64_t lo,
                   int64_t otherwise, int64_t *out, int count)
{
    const json_t *const v = attr(c, spellings);
    if (v) return sizes(c, v, spellings, lo, out, count);
    for (int k = 0; k < count; k++) {
        out[k] = otherwise;
    }
    return true;
}

bool attr_int_or(const op_call *c, const char *spellings, int64_t lo,
                 int64_t hi, int64_t otherwise, int64_t *out)
{
    const json_t *const v = attr(c, spellings);
    *out = v ? json_integer_value(v) : otherwise;
    return (!v || json_is_integer(v)) && *out >= lo && *out <= hi
               ? true
               : note_fail(c->note,
                           "%s: %s is not an integer from %" PRId64
                           " to %" PRId64,
                           c->name, spellings, lo, hi);
}

const char *without_dialect(const char *name)
{
    static const char *const dialects[] = {"stablehlo.", "chlo.", "mhlo.",
                                           "func."};
    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
        const size_t len = strlen(dialects[i]);
        if (!strncmp(name, dialects[i], len)) return name + len;
    }
    return name;
}

const char *attr_word(const op_call *c, const char *spellings)
{
    const json_t *const v = needed(c, spellings);
    const char *const s = json_string_value(v);
    if (v && !s) {
        note_fail(c->note, "%s: %s is not a string", c->name, spellings);
    }
    return s ? without_dialect(s) : NULL;
}

/* ---- operands ----------------------------------------------------------- */

bool same_dtype(const op_call *c, int i, int j)
{
    const lb_dtype a = lb_dtype_of(c->in[i]);
    const lb_dtype b = lb_dtype_of(c->in[j]);
    return a == b ||
           note_fail(c->note, "%s: operand %d is %s and %d is %s", c->name, i,
                     lb_dtype_name(a), j, lb_dtype_name(b));
}

bool same_type(const op_call *c, int i, int j)
{
    const lb_shape a = lb_shape_of(c->in[i]);
    const lb_shape b = lb_shape_of(c->in[j]);
    if (!shape_equal(a, b)) {
        return note_fail(c->note, "%s: operand %d has shape %s and %d has %s",
                         c->name, i, shape_text(a).s, j, shape_text(b).s);
    }
    return same_dtype(c, i, j);
}

bool is_scalar(const op_call *c, int i)
{
    return lb_rank(c->in[i]) == 0;
}

bool operand_ints(const op_call *c, int i, int64_t *out, int count)
{
    lb_array *const a = c->in[i];
    if (!dtype_is_integer(lb_dtype_of(a)) || lb_rank(a) > 1 ||
        lb_size(a) != count) {
        return note_fail(c->note, "%s: operand %d is %s %s, not %d integers",
                         c->name, i, lb_dtype_name(lb_dtype_of(a)),
                         shape_text(lb_shape_of(a)).s, count);
    }
    return lb_read(c->cx, lb_convert(c->cx, a, LB_I64), out,
                   (size_t)count * sizeof(*out));
}
