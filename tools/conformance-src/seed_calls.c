/* seed_calls.c - group 4: calls of quantize, straight_through and
 * QuantizationConfig, and their results.
 *
 * A call has a `result`, {class, dtype, shape, block_size, axis}, or an
 * `exception`. Known bugs of the original are corrected: the shape is the true
 * one, not the padded one; scalars, empty arrays and any number of rows are
 * accepted; the error about an unknown type lists the known ones.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "seed_cases.h"

typedef struct calling {
    checker check;
    const json_t *it;    /* the entry of `calls` */
    const json_t *types; /* the valid names */
    seed_call call;
    lb_quant_config config;
    lb_array *source;
} calling;

static bool type_known(const json_t *types, const char *name)
{
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *const s = json_string_value(json_array_get(types, i));
        if (s && !strcmp(s, name)) return true;
    }
    return false;
}

static bool is_packed_in_rows(const char *format)
{
    return !strcmp(format, "ternary") || !strcmp(format, "binary");
}

/* ---- errors -------------------------------------------------------------- */

/* The original refuses valid input: scalars, empty arrays, and numbers of rows
 * that its packing does not support. */
static bool is_excused(const calling *k)
{
    const lb_shape shape = lb_shape_of(k->source);
    return type_known(k->types, k->call.format) &&
           dtype_is_float(lb_dtype_of(k->source)) &&
           (!k->call.has_block || k->call.block_size > 0) &&
           (shape.rank == 0 || shape_size(shape) == 0 ||
            (is_packed_in_rows(k->call.format) && shape.dim[0] % 4 != 0));
}

/* A format that the original lacks: its name is valid here, and it is refused
 * because of `compat`. */
static bool is_ours(calling *k)
{
    const lb_quant_config native = {.struct_size = sizeof(native),
                                    .format = k->call.format};
    lb_clear(k->check.cx);
    return lb_quantize(k->check.cx, k->source, &native) != NULL;
}

static bool check_refused(calling *k, lb_array *got)
{
    checker *const c = &k->check;
    char why[512];
    snprintf(why, sizeof(why), "%s", lb_error(c->cx));
    if (got) return note_fail(c->note, "accepted, but it must be refused");
    if (!*why) return note_fail(c->note, "no result and no error");
    c->digest = digest_of(c->digest, why, strlen(why));
    if (type_known(k->types, k->call.format)) return true;
    bool lists = true;
    for (size_t i = 0; i < json_array_size(k->types); i++) {
        const char *const name = json_string_value(json_array_get(k->types, i));
        lists = lists && name && strstr(why, name);
    }
    return lists || is_ours(k) ||
           note_fail(c->note, "'%s' does not list the known types", why);
}

/* ---- results ------------------------------------------------------------- */

static bool check_class(calling *k, lb_array *got)
{
    static const struct {
        const char *class, *format;
    } classes[] = {
        {"dense", "dense"}, {"ArrayNF4", "nf4"}, {"Array8B", "int8"}};
    const json_t *const result = json_object_get(k->it, "result");
    const char *const class =
        json_string_value(json_object_get(result, "class"));
    const char *want = k->call.format; /* Array1B: any format */
    /* Here straight_through returns the quantizer's packed array; there it is
     * always dense. */
    const bool packed =
        k->call.function == SEED_STRAIGHT_THROUGH && !k->call.simulate;
    for (size_t i = 0; class && i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (!packed && !strcmp(class, classes[i].class)) {
            want = classes[i].format;
        }
    }
    return !strcmp(lb_format_of(got), want) ||
           note_fail(k->check.note, "the format is %s, not %s",
                     lb_format_of(got), want);
}

static bool check_dtype(calling *k, lb_array *got)
{
    const json_t *const result = json_object_get(k->it, "result");
    const char *const name =
        json_string_value(json_object_get(result, "dtype"));
    const bool codes = is_packed_in_rows(k->call.format);
    const lb_dtype want = name    ? dtype_named(name)
                          : codes ? LB_I8
                                  : lb_dtype_of(k->source);
    return lb_dtype_of(got) == want ||
           note_fail(k->check.note, "the dtype is %s, not %s",
                     lb_dtype_name(lb_dtype_of(got)), lb_dtype_name(want));
}

/* The true shape; the expected last axis may be padded to blocks. */
static bool check_shape(calling *k, lb_array *got, int64_t block)
{
    const json_t *const v =
        json_object_get(json_object_get(k->it, "result"), "shape");
    const lb_shape is = lb_shape_of(k->source);
    lb_shape want = is;
    if (!shape_equal(lb_shape_of(got), is)) {
        return note_fail(k->check.note, "the shape is %s, not %s",
                         shape_text(lb_shape_of(got)).s, shape_text(is).s);
    }
    if (!v) return true;
    if (!json_shape(v, "shape", &want, k->check.note)) return false;
    if (want.rank == is.rank && want.rank > 0 && block > 0) {
        int64_t *const last = &want.dim[want.rank - 1];
        const int64_t n = is.dim[is.rank - 1];
        if (*last % block == 0 && *last >= n && *last - n < block) *last = n;
    }
    return shape_equal(is, want) ||
           note_fail(k->check.note, "the shape is %s, not %s", shape_text(is).s,
                     shape_text(want).s);
}

/* In layout eformer, packed is (.., blocks, block / 2). */
static bool block_of(calling *k, lb_array *a, int64_t *out)
{
    lb_array *const packed = lb_export(k->check.cx, a, "eformer", "packed");
    if (!packed) return library_failed(k->check.cx, k->check.note, "packed");
    *out = 2 * lb_dim(packed, lb_rank(packed) - 1);
    return true;
}

static bool check_block(calling *k, int64_t block)
{
    const json_t *const want =
        json_object_get(json_object_get(k->it, "result"), "block_size");
    return !want || json_integer_value(want) == block ||
           note_fail(k->check.note, "the block size is %" PRId64, block);
}

/* Scales have size 1 along the quantized axes, and the array's size along
 * others. */
static bool check_axes(calling *k, lb_array *got)
{
    const json_t *const v =
        json_object_get(json_object_get(k->it, "result"), "axis");
    int64_t axis[LB_MAX_RANK];
    int n = 0;
    if (!v) return true;
    lb_array *const scale = lb_component(k->check.cx, got, "scale");
    if (!scale) return library_failed(k->check.cx, k->check.note, "scale");
    lb_shape want = lb_shape_of(k->source);
    if (!json_list_of_ints(v, "axis", -want.rank, want.rank - 1, axis,
                           LB_MAX_RANK, &n, k->check.note)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        want.dim[axis[i] < 0 ? axis[i] + want.rank : axis[i]] = 1;
    }
    return shape_equal(lb_shape_of(scale), want) ||
           note_fail(k->check.note, "the scale is %s, not %s",
                     shape_text(lb_shape_of(scale)).s, shape_text(want).s);
}

/* The values are those of quantize, in any storage. */
static bool check_values(calling *k, lb_array *got, lb_array **quantized)
{
    checker *const c = &k->check;
    lb_quant_config config = k->config;
    given want = {0};
    config.simulate = false;
    config.dtype = lb_dtype_of(got);
    *quantized = lb_quantize(c->cx, k->source, &config);
    const bool ok = seed_expect(c, "quantized", *quantized, &want) &&
                    check_array(c, "values", got, &want);
    given_free(&want);
    return ok;
}

static bool check_accepted(calling *k, lb_array *got)
{
    lb_array *quantized = NULL;
    int64_t block = 0;
    if (!got) return library_failed(k->check.cx, k->check.note, "refused");
    if (!check_class(k, got) || !check_dtype(k, got) ||
        !check_values(k, got, &quantized)) {
        return false;
    }
    const bool has_blocks = !strcmp(lb_format_of(quantized), "nf4");
    if (has_blocks && !block_of(k, quantized, &block)) return false;
    return check_shape(k, got, block) && check_block(k, block) &&
           check_axes(k, got);
}

/* ---- a call -------------------------------------------------------------- */

static bool make_source(calling *k, lb_array *x)
{
    const seed_call *const call = &k->call;
    lb_ctx *const cx = k->check.cx;
    lb_array *a = x;
    if (call->zeros) {
        a = lb_zeros(cx, LB_F32, call->shape);
    } else if (lb_rank(x) > 0) {
        int64_t start[LB_MAX_RANK] = {0};
        lb_shape limit = lb_shape_of(x);
        const int64_t rows = limit.dim[0];
        limit.dim[0] = call->hi < rows ? call->hi : rows;
        start[0] = call->lo < limit.dim[0] ? call->lo : limit.dim[0];
        a = lb_slice(cx, x, start, limit.dim, NULL);
    }
    if (call->dtype) a = lb_convert(cx, a, call->dtype);
    k->source = a;
    return a || library_failed(cx, k->check.note, "x");
}

static bool run_call(calling *k, lb_array *x)
{
    checker *const c = &k->check;
    const char *const words = json_string_value(json_object_get(k->it, "call"));
    if (!words) return note_fail(c->note, "a call without its text");
    if (!seed_call_parse(words, &k->call, c->note) || !make_source(k, x)) {
        return false;
    }
    k->config = (lb_quant_config){.struct_size = sizeof(k->config),
                                  .format = k->call.format,
                                  .block_size = k->call.block_size,
                                  .simulate = k->call.simulate,
                                  .reference = k->call.reference,
                                  .compat = LB_COMPAT_EFORMER};
    const bool raises = json_object_get(k->it, "exception") != NULL;
    if (!raises && !json_is_object(json_object_get(k->it, "result"))) {
        return note_fail(c->note, "neither result nor exception");
    }
    lb_array *const got =
        k->call.function == SEED_STRAIGHT_THROUGH
            ? lb_straight_through(c->cx, k->source, &k->config)
            : lb_quantize(c->cx, k->source, &k->config);
    if (k->call.function == SEED_CONFIG && !raises) {
        /* Any struct is accepted; errors appear when it is used. */
        return type_known(k->types, k->call.format)
                   ? got || library_failed(c->cx, c->note, "refused")
                   : check_refused(k, got);
    }
    return raises && !is_excused(k) ? check_refused(k, got)
                                    : check_accepted(k, got);
}

/* ---- the case ------------------------------------------------------------ */

/* Every type can be selected by its name, and the default is that of the
 * manifest. */
static bool check_defaults(checker *c, const json_t *params, lb_array *x)
{
    const json_t *const types = json_object_get(params, "types");
    const json_t *const first = json_object_get(params, "defaults");
    const char *const name = json_string_value(json_object_get(first, "dtype"));
    lb_array *const plain = lb_quantize(c->cx, x, NULL);
    if (!plain) return library_failed(c->cx, c->note, "quantize");
    if (name && strcmp(name, lb_format_of(plain)) != 0) {
        return note_fail(c->note, "the default is %s, not %s",
                         lb_format_of(plain), name);
    }
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *const s = json_string_value(json_array_get(types, i));
        const lb_quant_config config = {.struct_size = sizeof(config),
                                        .format = s,
                                        .compat = LB_COMPAT_EFORMER};
        lb_array *const a = lb_quantize(c->cx, x, &config);
        if (!s || !a) return library_failed(c->cx, c->note, "quantize");
        if (strcmp(lb_format_of(a), s) != 0) {
            return note_fail(c->note, "%.64s gives %s", s, lb_format_of(a));
        }
    }
    return true;
}

static void run_numbered(runner *r, const char *dir, const json_t *it,
                         const json_t *params, const json_t *ref, int64_t at,
                         const char *id)
{
    note n;
    char name[256];
    const char *const words = json_string_value(json_object_get(it, "call"));
    case_open(r, &n);
    calling k = {.check = {.cx = r->cx, .dir = dir, .note = &n},
                 .it = it,
                 .types = json_object_get(params, "types")};
    given x = {0};
    if (seed_array(&k.check, ref, &x)) {
        if (it) {
            run_call(&k, x.a);
        } else {
            check_defaults(&k.check, params, x.a);
        }
    }
    given_free(&x);
    if (it) {
        snprintf(name, sizeof(name), "%.64s[%" PRId64 "] %.128s", id, at,
                 words ? words : "");
    } else {
        snprintf(name, sizeof(name), "%.64s", id);
    }
    case_close(r, &n, name, k.check.digest);
}

void seed_calls(runner *r, const char *dir, const json_t *it, const char *id)
{
    const json_t *const params = json_object_get(it, "params");
    const json_t *const calls = json_object_get(it, "calls");
    const json_t *const ref =
        json_object_get(json_object_get(it, "inputs"), "x");
    run_numbered(r, dir, NULL, params, ref, -1, id);
    for (size_t i = 0; i < json_array_size(calls); i++) {
        run_numbered(r, dir, json_array_get(calls, i), params, ref, (int64_t)i,
                     id);
    }
}
