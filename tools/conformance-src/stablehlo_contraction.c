/* stablehlo_contraction.c - StableHLO's operations that combine elements:
 * dot, convolution, gather and scatter. */
#include <stdlib.h>
#include <string.h>

#include "stablehlo.h"

/* ---- products ----------------------------------------------------------- */

static lb_array *run_dot_general(const op_rule *r, const op_call *c)
{
    (void)r;
    lb_dot_dims d = {.preferred = c->type[0].dtype};
    const bool ok = attr_axes(c, "lhs_contracting|lhs_contracting_dimensions",
                              &d.lhs_contract) &&
                    attr_axes(c, "rhs_contracting|rhs_contracting_dimensions",
                              &d.rhs_contract) &&
                    attr_axes_or_none(c, "lhs_batching|lhs_batching_dimensions",
                                      &d.lhs_batch) &&
                    attr_axes_or_none(c, "rhs_batching|rhs_batching_dimensions",
                                      &d.rhs_batch);
    return ok ? lb_dot_general(c->cx, c->in[0], c->in[1], &d) : NULL;
}

/* Contracts the last axis of a vector or matrix with the first of another. */
static lb_array *run_dot(const op_rule *r, const op_call *c)
{
    (void)r;
    for (int i = 0; i < 2; i++) {
        const int rank = lb_rank(c->in[i]);
        if (rank < 1 || rank > 2) {
            note_fail(c->note, "dot: operand %d has rank %d", i, rank);
            return NULL;
        }
    }
    const lb_dot_dims d = {
        .lhs_contract = {.n = 1, .axis = {lb_rank(c->in[0]) - 1}},
        .rhs_contract = {.n = 1, .axis = {0}},
        .preferred = c->type[0].dtype};
    return lb_dot_general(c->cx, c->in[0], c->in[1], &d);
}

/* Axis labels: ["b", "0", "f"] or the string "b0f". */
static bool labels(const op_call *c, const char *name, char *out, int rank)
{
    const json_t *const v = attr(c, name);
    const char *const whole = json_string_value(v);
    const size_t n = whole ? strlen(whole) : json_array_size(v);
    if (n != (size_t)rank) {
        return note_fail(c->note, "convolution: %s does not label %d axes",
                         name, rank);
    }
    for (size_t i = 0; i < n; i++) {
        const char *const s =
            whole ? whole + i : json_string_value(json_array_get(v, i));
        if (!s || !*s || (!whole && s[1])) {
            return note_fail(c->note, "convolution: %s: entry %zu is no label",
                             name, i);
        }
        out[i] = *s;
    }
    out[n] = 0;
    return true;
}

/* pad: [lo, hi] for each spatial axis. */
static bool padding(const op_call *c, int n, lb_conv_dims *d)
{
    const json_t *const v = attr(c, "pad|padding");
    if (!v) return true;
    if (json_array_size(v) != (size_t)n) {
        return note_fail(c->note, "convolution: pad is not a list of %d", n);
    }
    for (int k = 0; k < n; k++) {
        int64_t p[2];
        int m = 0;
        if (!json_list_of_ints(json_array_get(v, (size_t)k), "pad", INT64_MIN,
                               INT64_MAX, p, 2, &m, c->note)) {
            return false;
        }
        if (m != 2) {
            return note_fail(c->note, "convolution: pad %d is not a pair", k);
        }
        d->pad_lo[k] = p[0];
        d->pad_hi[k] = p[1];
    }
    return true;
}

static bool reversal(const op_call *c, int n, lb_conv_dims *d)
{
    const json_t *const v = attr(c, "reverse|window_reversal");
    if (!v) return true;
    if (json_array_size(v) != (size_t)n) {
        return note_fail(c->note, "convolution: reverse is not a list of %d",
                         n);
    }
    for (int k = 0; k < n; k++) {
        const json_t *const e = json_array_get(v, (size_t)k);
        if (!json_is_boolean(e) && !json_is_integer(e)) {
            return note_fail(c->note, "convolution: reverse %d is no bool", k);
        }
        d->reversal[k] = json_is_true(e) || json_integer_value(e) != 0;
    }
    return true;
}

static lb_array *run_convolution(const op_rule *r, const op_call *c)
{
    (void)r;
    const int rank = lb_rank(c->in[0]);
    const int n = rank - 2;
    if (n > LB_MAX_SPATIAL) {
        note_skip(c->note, "convolution: %d axes of space, lowbit has %d", n,
                  LB_MAX_SPATIAL);
        return NULL;
    }
    if (n < 0 || lb_rank(c->in[1]) != rank) {
        note_fail(c->note, "convolution: operands of rank %d and %d", rank,
                  lb_rank(c->in[1]));
        return NULL;
    }
    lb_conv_dims d = {.preferred = c->type[0].dtype};
    const bool ok =
        labels(c, "lhs_spec", d.lhs, rank) &&
        labels(c, "rhs_spec", d.rhs, rank) &&
        labels(c, "out_spec", d.out, rank) && padding(c, n, &d) &&
        reversal(c, n, &d) &&
        attr_sizes_or(c, "stride|window_strides", 1, 1, d.stride, n) &&
        attr_sizes_or(c, "lhs_dilate|lhs_dilation", 1, 1, d.lhs_dilation, n) &&
        attr_sizes_or(c, "rhs_dilate|rhs_dilation", 1, 1, d.rhs_dilation, n) &&
        attr_int_or(c, "feature_group_count", 1, INT64_MAX, 1,
                    &d.feature_groups) &&
        attr_int_or(c, "batch_group_count", 1, INT64_MAX, 1, &d.batch_groups);
    return ok ? lb_conv_general_dilated(c->cx, c->in[0], c->in[1], &d) : NULL;
}

/* ---- gather and scatter ------------------------------------------------- */

static bool index_vector_dim(const op_call *c, lb_gather_dims *d)
{
    int64_t dim = 0;
    if (!attr_int_or(c, "index_vector_dim", 0, LB_MAX_RANK, 0, &dim)) {
        return false;
    }
    d->index_vector_dim = (int)dim;
    return dtype_is_integer(lb_dtype_of(c->in[1])) ||
           note_fail(c->note, "%s: the indices are %s", c->name,
                     lb_dtype_name(lb_dtype_of(c->in[1])));
}

static lb_array *run_gather(const op_rule *r, const op_call *c)
{
    (void)r;
    const int rank = lb_rank(c->in[0]);
    lb_gather_dims d = {.bounds = LB_BOUNDS_CLAMP};
    const bool ok =
        index_vector_dim(c, &d) &&
        attr_axes_or_none(c, "offset_dims", &d.offset_dims) &&
        attr_axes_or_none(c, "collapsed_slice_dims", &d.collapsed_slice_dims) &&
        attr_axes_or_none(c, "operand_batching_dims",
                          &d.operand_batching_dims) &&
        attr_axes_or_none(c, "start_indices_batching_dims",
                          &d.start_indices_batching_dims) &&
        attr_axes_or_none(c, "start_index_map", &d.start_index_map) &&
        (c->n_in == 3 ? operand_ints(c, 2, d.slice_sizes, rank)
                      : attr_sizes(c, "slice_sizes", 0, d.slice_sizes, rank));
    return ok ? lb_gather(c->cx, c->in[0], c->in[1], &d) : NULL;
}

static bool has_axis(const lb_axes *axes, int axis)
{
    for (int k = 0; k < axes->n; k++) {
        if (axes->axis[k] == axis) return true;
    }
    return false;
}

/* The sizes of a window are those of the updates' window axes, in order, and 1
 * along axes that the window lacks. */
static bool window_sizes(const op_call *c, lb_gather_dims *d)
{
    const lb_axes *const window = &d->offset_dims;
    int used = 0;
    for (int k = 0; k < lb_rank(c->in[0]); k++) {
        d->slice_sizes[k] = 1;
        if (has_axis(&d->collapsed_slice_dims, k) ||
            has_axis(&d->operand_batching_dims, k)) {
            continue;
        }
        d->slice_sizes[k] =
            used < window->n ? lb_dim(c->in[2], window->axis[used++]) : -1;
        if (d->slice_sizes[k] < 0) {
            return note_fail(c->note,
                             "scatter: the updates have no axis for axis %d of "
                             "the operand",
                             k);
        }
    }
    return true;
}

static lb_array *run_scatter(const op_rule *r, const op_call *c)
{
    (void)r;
    if (c->n_in != 3) {
        note_skip(c->note, "scatter: %d operands at once", c->n_in);
        return NULL;
    }
    if (!attr(c, "applies")) {
        note_skip(c->note, "scatter: a region that is not one operation");
        return NULL;
    }
    const char *const how = attr_word(c, "applies");
    if (!how) return NULL;
    if (strcmp(how, "add")) {
        note_skip(c->note, "scatter: lowbit only adds, not '%.32s'", how);
        return NULL;
    }
    lb_gather_dims d = {.bounds = LB_BOUNDS_FILL};
    const bool ok =
        same_dtype(c, 0, 2) && index_vector_dim(c, &d) &&
        attr_axes_or_none(c, "update_window_dims", &d.offset_dims) &&
        attr_axes_or_none(c, "inserted_window_dims", &d.collapsed_slice_dims) &&
        attr_axes_or_none(c, "input_batching_dims", &d.operand_batching_dims) &&
        attr_axes_or_none(c, "scatter_indices_batching_dims",
                          &d.start_indices_batching_dims) &&
        attr_axes_or_none(c, "scatter_dims_to_operand_dims",
                          &d.start_index_map) &&
        window_sizes(c, &d);
    return ok ? lb_scatter_add(c->cx, c->in[0], c->in[1], c->in[2], &d) : NULL;
}

static const char dot_attrs[] = "lhs_contracting|lhs_contracting_dimensions "
                                "rhs_contracting|rhs_contracting_dimensions "
                                "lhs_batching|lhs_batching_dimensions "
                                "rhs_batching|rhs_batching_dimensions";
static const char conv_attrs[] =
    "lhs_spec rhs_spec out_spec pad|padding reverse|window_reversal "
    "stride|window_strides lhs_dilate|lhs_dilation rhs_dilate|rhs_dilation "
    "feature_group_count batch_group_count";
static const char gather_attrs[] =
    "offset_dims collapsed_slice_dims operand_batching_dims "
    "start_indices_batching_dims start_index_map index_vector_dim slice_sizes";
static const char scatter_attrs[] =
    "applies update_window_dims inserted_window_dims input_batching_dims "
    "scatter_indices_batching_dims scatter_dims_to_operand_dims "
    "index_vector_dim";

const op_rule stablehlo_contraction[] = {
    RULE("convolution", conv_attrs, 2, run_convolution),
    RULE("dot", NULL, 2, run_dot),
    RULE("dot_general", dot_attrs, 2, run_dot_general),
    RULE("dynamic_gather", gather_attrs, 3, run_gather),
    RULE("gather", gather_attrs, 2, run_gather),
    RULE("scatter", scatter_attrs, -1, run_scatter),
    RULE(NULL, NULL, 0, NULL),
};
