/* stablehlo_structure.c - StableHLO's operations that move elements.
 *
 * Dynamic forms have operands in place of the attributes of the static ones; a
 * case states the result's type for both.
 */
#include <stdlib.h>
#include <string.h>

#include "stablehlo.h"

/* Reads an attribute with one entry for each axis of operand 0. */
static bool one_per_axis(const op_call *c, const char *spellings, lb_axes *out)
{
    if (!attr_axes(c, spellings, out)) return false;
    return out->n == lb_rank(c->in[0]) ||
           note_fail(c->note, "%s: %s has %d entries for an operand of rank %d",
                     c->name, spellings, out->n, lb_rank(c->in[0]));
}

/* Checks that the case's result has the shape given by the operand. */
static bool shape_operand(const op_call *c, int i)
{
    int64_t dim[LB_MAX_RANK];
    const lb_shape want = c->type[0].shape;
    if (!operand_ints(c, i, dim, want.rank)) return false;
    const lb_shape asked = lb_shape_make(want.rank, dim);
    return shape_equal(asked, want) ||
           note_fail(c->note, "%s: operand %d asks for %s, the result is %s",
                     c->name, i, shape_text(asked).s, shape_text(want).s);
}

static lb_array *run_reshape(const op_rule *r, const op_call *c)
{
    (void)r;
    if (c->n_in == 2 && !shape_operand(c, 1)) return NULL;
    return lb_reshape(c->cx, c->in[0], c->type[0].shape);
}

static lb_array *run_broadcast_in_dim(const op_rule *r, const op_call *c)
{
    (void)r;
    lb_axes dims;
    if (!one_per_axis(c, "dims|broadcast_dimensions", &dims)) return NULL;
    if (c->n_in == 2 && !shape_operand(c, 1)) return NULL;
    return lb_broadcast_in_dim(c->cx, c->in[0], c->type[0].shape, dims.axis);
}

/* Adds leading axes. */
static lb_array *run_broadcast(const op_rule *r, const op_call *c)
{
    (void)r;
    const lb_shape old = lb_shape_of(c->in[0]);
    lb_shape shape = {0};
    const json_t *const v = attr(c, "sizes|broadcast_sizes");
    if (!v) note_fail(c->note, "broadcast: no attribute sizes");
    if (!v || !json_shape(v, "sizes", &shape, c->note)) return NULL;
    int dims[LB_MAX_RANK] = {0};
    for (int k = 0; k < old.rank; k++) {
        if (shape.rank == LB_MAX_RANK) {
            note_skip(c->note, "broadcast: the result's rank is above %d",
                      LB_MAX_RANK);
            return NULL;
        }
        dims[k] = shape.rank;
        shape.dim[shape.rank++] = old.dim[k];
    }
    return lb_broadcast_in_dim(c->cx, c->in[0], shape, dims);
}

static lb_array *run_transpose(const op_rule *r, const op_call *c)
{
    (void)r;
    lb_axes dims;
    if (!one_per_axis(c, "dims|permutation", &dims)) return NULL;
    return lb_transpose(c->cx, c->in[0], dims.axis);
}

static lb_array *run_reverse(const op_rule *r, const op_call *c)
{
    (void)r;
    lb_axes dims;
    if (!attr_axes(c, "dims|dimensions", &dims)) return NULL;
    return lb_reverse(c->cx, c->in[0], &dims);
}

static lb_array *run_concatenate(const op_rule *r, const op_call *c)
{
    (void)r;
    int64_t axis = 0;
    if (!attr_int_or(c, "dim|dimension", 0, LB_MAX_RANK - 1, -1, &axis)) {
        return NULL;
    }
    for (int i = 1; i < c->n_in; i++) {
        if (!same_dtype(c, 0, i)) return NULL;
    }
    return lb_concatenate(c->cx, c->in, c->n_in, (int)axis);
}

/* slices: [lo, hi] or [lo, hi, stride] for each axis. */
static bool parse_slices(const op_call *c, const json_t *v, int64_t *start,
                         int64_t *limit, int64_t *stride)
{
    const int rank = lb_rank(c->in[0]);
    if (!json_is_array(v) || json_array_size(v) != (size_t)rank) {
        return note_fail(c->note, "slice: slices is not a list of %d", rank);
    }
    for (int k = 0; k < rank; k++) {
        int64_t s[3] = {0, 0, 1};
        int n = 0;
        if (!json_list_of_ints(json_array_get(v, (size_t)k), "slices", 0,
                               INT64_MAX, s, 3, &n, c->note)) {
            return false;
        }
        if (n < 2) return note_fail(c->note, "slice: axis %d has no limit", k);
        start[k] = s[0];
        limit[k] = s[1];
        stride[k] = s[2];
    }
    return true;
}

static lb_array *run_slice(const op_rule *r, const op_call *c)
{
    (void)r;
    const int rank = lb_rank(c->in[0]);
    int64_t start[LB_MAX_RANK];
    int64_t limit[LB_MAX_RANK];
    int64_t stride[LB_MAX_RANK];
    const json_t *const slices = attr(c, "slices");
    const bool ok = slices
                        ? parse_slices(c, slices, start, limit, stride)
                        : attr_sizes(c, "start_indices", 0, start, rank) &&
                              attr_sizes(c, "limit_indices", 0, limit, rank) &&
                              attr_sizes_or(c, "strides", 1, 1, stride, rank);
    return ok ? lb_slice(c->cx, c->in[0], start, limit, stride) : NULL;
}

static lb_array *run_real_dynamic_slice(const op_rule *r, const op_call *c)
{
    (void)r;
    const int rank = lb_rank(c->in[0]);
    int64_t start[LB_MAX_RANK];
    int64_t limit[LB_MAX_RANK];
    int64_t stride[LB_MAX_RANK];
    const bool ok = operand_ints(c, 1, start, rank) &&
                    operand_ints(c, 2, limit, rank) &&
                    operand_ints(c, 3, stride, rank);
    return ok ? lb_slice(c->cx, c->in[0], start, limit, stride) : NULL;
}

/* Operands from `first` on are the starts, integer scalars of one dtype. */
static bool starts_from(const op_call *c, int first)
{
    if (c->n_in - first != lb_rank(c->in[0])) {
        return note_fail(c->note, "%s: %d start indices for rank %d", c->name,
                         c->n_in - first, lb_rank(c->in[0]));
    }
    for (int i = first; i < c->n_in; i++) {
        if (!same_type(c, first, i)) return false;
        if (!is_scalar(c, i) || !dtype_is_integer(lb_dtype_of(c->in[i]))) {
            return note_fail(c->note, "%s: operand %d is not an integer scalar",
                             c->name, i);
        }
    }
    return true;
}

static lb_array *run_dynamic_slice(const op_rule *r, const op_call *c)
{
    (void)r;
    int64_t size[LB_MAX_RANK];
    if (c->n_in < 1) {
        note_fail(c->note, "dynamic_slice: no operand");
        return NULL;
    }
    if (!starts_from(c, 1) ||
        !attr_sizes(c, "sizes|slice_sizes", 0, size, lb_rank(c->in[0]))) {
        return NULL;
    }
    return lb_dynamic_slice(c->cx, c->in[0], c->in + 1, size);
}

static lb_array *run_dynamic_update_slice(const op_rule *r, const op_call *c)
{
    (void)r;
    if (c->n_in < 2) {
        note_fail(c->note, "dynamic_update_slice: %d operands", c->n_in);
        return NULL;
    }
    if (!starts_from(c, 2) || !same_dtype(c, 0, 1)) return NULL;
    return lb_dynamic_update_slice(c->cx, c->in[0], c->in[1], c->in + 2);
}

static bool pad_value(const op_call *c)
{
    return same_dtype(c, 0, 1) &&
           (is_scalar(c, 1) ||
            note_fail(c->note, "%s: the padding value is not a scalar",
                      c->name));
}

static lb_array *run_pad(const op_rule *r, const op_call *c)
{
    (void)r;
    const int rank = lb_rank(c->in[0]);
    int64_t low[LB_MAX_RANK];
    int64_t high[LB_MAX_RANK];
    int64_t interior[LB_MAX_RANK];
    const bool ok =
        pad_value(c) &&
        attr_sizes(c, "low|edge_padding_low", INT64_MIN, low, rank) &&
        attr_sizes(c, "high|edge_padding_high", INT64_MIN, high, rank) &&
        attr_sizes_or(c, "interior|interior_padding", 0, 0, interior, rank);
    return ok ? lb_pad(c->cx, c->in[0], c->in[1], low, high, interior) : NULL;
}

static lb_array *run_dynamic_pad(const op_rule *r, const op_call *c)
{
    (void)r;
    const int rank = lb_rank(c->in[0]);
    int64_t low[LB_MAX_RANK];
    int64_t high[LB_MAX_RANK];
    int64_t interior[LB_MAX_RANK];
    const bool ok = pad_value(c) && operand_ints(c, 2, low, rank) &&
                    operand_ints(c, 3, high, rank) &&
                    operand_ints(c, 4, interior, rank);
    return ok ? lb_pad(c->cx, c->in[0], c->in[1], low, high, interior) : NULL;
}

static lb_array *run_iota(const op_rule *r, const op_call *c)
{
    (void)r;
    int64_t axis = 0;
    if (!attr_int_or(c, "dim|iota_dimension", 0, LB_MAX_RANK - 1, -1, &axis) ||
        (c->n_in == 1 && !shape_operand(c, 0))) {
        return NULL;
    }
    return lb_iota(c->cx, c->type[0].dtype, c->type[0].shape, (int)axis);
}

static lb_array *run_get_dimension_size(const op_rule *r, const op_call *c)
{
    (void)r;
    int64_t axis = 0;
    if (!attr_int_or(c, "dim|dimension", 0, lb_rank(c->in[0]) - 1, -1, &axis)) {
        return NULL;
    }
    return lb_full_int(c->cx, c->type[0].dtype, c->type[0].shape,
                       lb_dim(c->in[0], (int)axis));
}

/* The numbers of nested lists, row-major; *n counts also those that do not fit.
 */
static bool flatten(const op_call *c, const json_t *v, bool as_float,
                    int64_t *out, int64_t room, int64_t *n)
{
    if (json_is_array(v)) {
        for (size_t i = 0; i < json_array_size(v); i++) {
            if (!flatten(c, json_array_get(v, i), as_float, out, room, n)) {
                return false;
            }
        }
        return true;
    }
    if (!json_is_boolean(v) &&
        !(as_float ? json_is_number(v) : json_is_integer(v))) {
        return note_skip(c->note, "constant: a value that is not a number");
    }
    if (*n < room) {
        const double d =
            json_is_boolean(v) ? json_is_true(v) : json_number_value(v);
        const int64_t i =
            json_is_boolean(v) ? json_is_true(v) : json_integer_value(v);
        memcpy(out + *n, as_float ? (const void *)&d : (const void *)&i,
               sizeof(*out));
    }
    ++*n;
    return true;
}

static lb_array *run_constant(const op_rule *r, const op_call *c)
{
    (void)r;
    const json_t *const v = attr(c, "value");
    const lb_dtype dtype = c->type[0].dtype;
    const bool as_float = dtype_is_float(dtype);
    int64_t n = 0;
    if (!v) note_fail(c->note, "constant: no attribute value");
    if (!v || !flatten(c, v, as_float, NULL, 0, &n)) return NULL;
    if (n != 1 && n != shape_size(c->type[0].shape)) {
        note_fail(c->note, "constant: %d values for shape %s", (int)n,
                  shape_text(c->type[0].shape).s);
        return NULL;
    }
    int64_t *const data = malloc((size_t)(n ? n : 1) * sizeof(*data));
    if (!data) {
        note_fail(c->note, "out of memory");
        return NULL;
    }
    const int64_t count = n;
    n = 0;
    flatten(c, v, as_float, data, count, &n);
    const lb_shape shape =
        count == 1 ? lb_shape_make(0, NULL) : c->type[0].shape;
    lb_array *const a = lb_from(c->cx, as_float ? LB_F64 : LB_I64, shape, data);
    free(data);
    return lb_broadcast_to(c->cx, lb_convert(c->cx, a, dtype),
                           c->type[0].shape);
}

const op_rule stablehlo_structure[] = {
    RULE("broadcast", "sizes|broadcast_sizes", 1, run_broadcast),
    RULE("broadcast_in_dim", "dims|broadcast_dimensions", 1,
         run_broadcast_in_dim),
    RULE("concatenate", "dim|dimension", -1, run_concatenate),
    RULE("constant", "value", 0, run_constant),
    RULE("dynamic_broadcast_in_dim", "dims|broadcast_dimensions", 2,
         run_broadcast_in_dim),
    RULE("dynamic_iota", "dim|iota_dimension", 1, run_iota),
    RULE("dynamic_pad", NULL, 5, run_dynamic_pad),
    RULE("dynamic_reshape", NULL, 2, run_reshape),
    RULE("dynamic_slice", "sizes|slice_sizes", -1, run_dynamic_slice),
    RULE("dynamic_update_slice", NULL, -1, run_dynamic_update_slice),
    RULE("get_dimension_size", "dim|dimension", 1, run_get_dimension_size),
    RULE("iota", "dim|iota_dimension", 0, run_iota),
    RULE("optimization_barrier", NULL, -1, NULL),
    RULE(
        "pad",
        "low|edge_padding_low high|edge_padding_high interior|interior_padding",
        2, run_pad),
    RULE("real", NULL, 1, NULL),
    RULE("real_dynamic_slice", NULL, 4, run_real_dynamic_slice),
    RULE("reshape", NULL, 1, run_reshape),
    RULE("reverse", "dims|dimensions", 1, run_reverse),
    RULE("slice", "slices start_indices limit_indices strides", 1, run_slice),
    RULE("transpose", "dims|permutation", 1, run_transpose),
    RULE(NULL, NULL, 0, NULL),
};
