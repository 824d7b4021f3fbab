/* test_errors.c - every invalid call gives a status and a message with the
 * values involved, for every primitive and every public function, and has no
 * other effect. */
#include "error_rows.h"
#include "laws.h"
#include "scenario.h"

/* Refuses features that this machine may or may not have, so that tests do not
 * depend on it. */
static void *alloc_some(void *user, size_t size, size_t align)
{
    (void)user;
    void *p = NULL;
    if (size > (size_t)64 << 20) return NULL;
    return posix_memalign(&p, align < 8 ? 8 : align, size) ? NULL : p;
}

static void free_some(void *user, void *p, size_t size)
{
    (void)user;
    (void)size;
    free(p);
}

static const lb_allocator some = {alloc_some, free_some, NULL};

/* Every part of say, separated by '|', is in the message. */
static bool says(const char *sentence, const char *say)
{
    char piece[128];
    while (*say) {
        const size_t n = strcspn(say, "|");
        snprintf(piece, sizeof piece, "%.*s", (int)n, say);
        if (!strstr(sentence, piece)) return false;
        say += n + (say[n] == '|');
    }
    return true;
}

static void expect(lb_ctx *cx, const void *result, lb_status status,
                   const char *say, const char *what)
{
    const bool ok =
        !result && lb_error_status(cx) == status && says(lb_error(cx), say);
    if (check_fails(ok))
        fprintf(stderr, "%s: %s, \"%s\", not %s with \"%s\"\n", what,
                result ? "a result" : lb_status_name(lb_error_status(cx)),
                lb_error(cx), lb_status_name(status), say);
    lb_clear(cx);
}

/* ---- the rows of each primitive ----------------------------------------- */

static void refused(lb_ctx *cx, const lb_prim *prim, const error_row *row)
{
    const sample *s = &row->call;
    lb_array *in[SAMPLE_MAX_IN];
    lb_enter(cx);
    for (int i = 0; i < s->n_in; i++)
        in[i] = lb_zeros(cx, s->in[i].dtype, s->in[i].shape);
    const size_t before = lb_bytes_in_use(cx);
    expect(cx, law_bind(cx, prim, s, in), row->status, row->say,
           sample_text(s).s);
    CHECK_EQ_I(lb_bytes_in_use(cx), before);
    if (row->status != LB_E_NOMEM) /* explaining checks the same */
        expect(cx, lb_explain(cx, prim->name, in, s->n_in, &s->params),
               row->status, row->say, sample_text(s).s);
    lb_leave(cx);
}

/* Kinds, shapes and dtypes of an elementwise primitive. */
static int elementwise_rows(lb_ctx *cx, const lb_prim *prim)
{
    const int kinds = sample_kinds(prim->name), before = (int)check_count;
    const bool select = strcmp(prim->name, "select") == 0;
    char say[64];
    for (int d = 1; kinds && d < LB_N_DTYPES; d++) {
        const lb_dtype t = (lb_dtype)d;
        error_row row = {.call = {.prim = prim->name}, .say = say};
        for (int i = 0; i < prim->n_in; i++)
            sample_in(&row.call, select && !i ? LB_BOOL : t, LB_SHAPE(2, 3),
                      VALUES_ANY);
        row.status = LB_E_DTYPE;
        snprintf(say, sizeof say, "%s: |%s", prim->name, lb_dtype_name(t));
        if (!(kinds & sample_kind_of(t))) {
            refused(cx, prim, &row);
            continue;
        }
        if (prim->n_in > 1) {
            error_row other = row;
            sample_operand *last = &other.call.in[prim->n_in - 1];
            last->dtype = t == LB_I64 ? LB_F32 : LB_I64;
            snprintf(say, sizeof say, "%s: |operand %d|%s|%s", prim->name,
                     prim->n_in - 1, lb_dtype_name(t),
                     lb_dtype_name(last->dtype));
            refused(cx, prim, &other);
            last->dtype = t;
            last->shape = LB_SHAPE(3, 2);
            other.status = LB_E_SHAPE;
            snprintf(say, sizeof say, "%s: |operand %d|(2,3)|(3,2)", prim->name,
                     prim->n_in - 1);
            refused(cx, prim, &other);
            last->shape = LB_SHAPE(2, 3, 1);
            snprintf(say, sizeof say, "operand %d|(2,3)|(2,3,1)",
                     prim->n_in - 1);
            refused(cx, prim, &other);
        }
        for (int i = 0; i < prim->n_in; i++)
            row.call.in[i].shape = LB_SHAPE((int64_t)1 << 50);
        row.status = LB_E_NOMEM;
        snprintf(say, sizeof say, "out of memory|(1125899906842624)");
        refused(cx, prim, &row);
    }
    return (int)check_count - before;
}

/* NULLs and counts, which lb_bind checks for all. */
static void counted(lb_ctx *cx, const lb_prim *prim, const sample *s)
{
    lb_array *in[SAMPLE_MAX_IN + 1] = {0};
    const int n = s->n_in;
    char say[64];
    lb_enter(cx);
    CHECK(law_operands(cx, s, in));
    for (int i = 0; i < n; i++) {
        lb_array *a = in[i];
        in[i] = NULL;
        snprintf(say, sizeof say, "%s: operand %d is NULL", prim->name, i);
        expect(cx, law_bind(cx, prim, s, in), LB_E_NULL, say, prim->name);
        in[i] = a;
    }
    if (n)
        expect(cx, law_bind(cx, prim, s, NULL), LB_E_NULL, "list|NULL",
               prim->name);
    if (prim->params_size)
        expect(cx, lb_bind(cx, prim, n, in, NULL), LB_E_NULL, "params|NULL",
               prim->name);
    in[n] = n ? in[0] : lb_scalar(cx, 1);
    snprintf(say, sizeof say, "%s: %d operands|%d", prim->name, n + 1, n);
    if (prim->n_in >= 0)
        expect(cx, lb_bind(cx, prim, n + 1, in, &s->params), LB_E_ARG, say,
               prim->name);
    if (prim->n_in != 0)
        expect(cx, lb_bind(cx, prim, 0, in, &s->params), LB_E_ARG, "0 operands",
               prim->name);
    expect(cx, lb_bind(cx, prim, -1, in, &s->params), LB_E_ARG, "-1 operands",
           prim->name);
    CHECK(!lb_bind(NULL, prim, n, in, &s->params));
    lb_leave(cx);
}

static void every_primitive(lb_ctx *cx)
{
    static error_row row[ERROR_ROWS];
    const lb_prim *prim;
    for (int k = 0; (prim = lb_primitive_at(cx, k)); k++) {
        const int common = elementwise_rows(cx, prim);
        const int n = error_rows_of(prim->name, row);
        /* The same array as a constant: nothing to refuse. */
        const bool takes_all = prim->flow == LB_FLOW_NONE;
        if (check_fails(common + n > 0 || takes_all))
            fprintf(stderr, "%s has no rows\n", prim->name);
        for (int i = 0; i < n; i++)
            refused(cx, prim, &row[i]);
        sample_list list = samples_of(prim->name, SAMPLES_SMALL);
        if (list.n) counted(cx, prim, &list.item[0]);
        samples_free(&list);
    }
}

/* ---- the public functions ----------------------------------------------- */

#define REFUSED(CALL, STATUS, SAY) expect(cx, CALL, STATUS, SAY, #CALL)

static void of_one_array(lb_ctx *cx)
{
    static lb_array *(*const f[])(lb_ctx *, lb_array *) = {
        lb_neg,       lb_abs,       lb_sign,       lb_exp,   lb_log,
        lb_expm1,     lb_log1p,     lb_sqrt,       lb_rsqrt, lb_cbrt,
        lb_tanh,      lb_logistic,  lb_sin,        lb_cos,   lb_tan,
        lb_erf,       lb_floor,     lb_ceil,       lb_round, lb_round_away,
        lb_is_finite, lb_not,       lb_popcnt,     lb_relu,  lb_silu,
        lb_gelu,      lb_gelu_tanh, lb_materialize};
    lb_array *a = lb_scalar_int(cx, 1);
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
        expect(cx, f[i](cx, NULL), LB_E_NULL, "NULL", "of one array");
        CHECK(!f[i](NULL, NULL) &&
              !f[i](NULL, lb_materialize == f[i] ? NULL : a));
    }
}

static void of_two_arrays(lb_ctx *cx)
{
    static lb_array *(*const f[])(lb_ctx *, lb_array *,
                                  lb_array *) = {lb_add,
                                                 lb_sub,
                                                 lb_mul,
                                                 lb_div,
                                                 lb_rem,
                                                 lb_max,
                                                 lb_min,
                                                 lb_pow,
                                                 lb_atan2,
                                                 lb_swiglu,
                                                 lb_and,
                                                 lb_or,
                                                 lb_xor,
                                                 lb_shift_left,
                                                 lb_shift_right_logical,
                                                 lb_shift_right_arithmetic,
                                                 lb_eq,
                                                 lb_ne,
                                                 lb_lt,
                                                 lb_le,
                                                 lb_gt,
                                                 lb_ge};
    lb_array *x = lb_zeros(cx, LB_I32, LB_SHAPE(2, 3));
    lb_array *y = lb_zeros(cx, LB_I32, LB_SHAPE(4));
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
        expect(cx, f[i](cx, NULL, x), LB_E_NULL, "operand 0", "of two arrays");
        expect(cx, f[i](cx, x, NULL), LB_E_NULL, "operand 1", "of two arrays");
        expect(cx, f[i](cx, x, y), LB_E_SHAPE, "operand 1|(4)|3|axis 1",
               "of two arrays");
        CHECK(!f[i](NULL, x, y));
    }
    REFUSED(lb_matmul(cx, NULL, x), LB_E_NULL, "operand 0");
    REFUSED(lb_matmul(cx, x, NULL), LB_E_NULL, "operand 1");
    REFUSED(lb_matmul(cx, x, y), LB_E_SHAPE, "(2,3)|3|(4)|4");
    REFUSED(lb_matmul(cx, x, lb_scalar(cx, 1)), LB_E_SHAPE, "operand 1");
    REFUSED(lb_cross_entropy(cx, x, y), LB_E_SHAPE, "(4)|(2)");
    REFUSED(lb_cross_entropy(cx, x, NULL), LB_E_NULL, "labels");
    REFUSED(lb_cross_entropy(cx, x, lb_zeros(cx, LB_F32, LB_SHAPE(2))),
            LB_E_SHAPE, "f32");
    REFUSED(lb_and(cx, x, lb_zeros(cx, LB_F32, LB_SHAPE(3))), LB_E_DTYPE,
            "f32");
    REFUSED(lb_select(cx, x, x, x), LB_E_DTYPE, "operand 0|i32|bool");
    REFUSED(lb_select(cx, NULL, x, x), LB_E_NULL, "operand 0");
    REFUSED(lb_clamp(cx, x, x, NULL), LB_E_NULL, "operand 2");
    REFUSED(lb_clamp(cx, y, x, x), LB_E_SHAPE, "(2,3)|4");
}

static void making(lb_ctx *cx)
{
    const float one = 1;
    const lb_shape nine = lb_shape_make(9, (const int64_t[9]){1});
    REFUSED(lb_from(cx, LB_F32, LB_SHAPE(1), NULL), LB_E_NULL, "(1)");
    REFUSED(lb_from(cx, (lb_dtype)77, LB_SHAPE(1), &one), LB_E_DTYPE, "77");
    REFUSED(lb_from(cx, LB_F32, nine, &one), LB_E_SHAPE, "rank 9|8");
    REFUSED(lb_from(cx, LB_F32, LB_SHAPE(-1), &one), LB_E_SHAPE, "-1|axis 0");
    REFUSED(lb_from(cx, LB_F32, LB_SHAPE(INT64_MAX), &one), LB_E_SIZE,
            "9223372036854775807");
    REFUSED(lb_wrap(cx, LB_F32, LB_SHAPE(1), NULL, NULL, NULL), LB_E_NULL, "");
    REFUSED(
        lb_wrap(cx, LB_F32, LB_SHAPE(1), (const char *)&one + 1, NULL, NULL),
        LB_E_ARG, "aligned|4");
    REFUSED(lb_full(cx, LB_NO_DTYPE, LB_SHAPE(1), 1), LB_E_DTYPE, "0");
    REFUSED(lb_full(cx, LB_F32, nine, 1), LB_E_SHAPE, "rank 9");
    REFUSED(lb_full_int(cx, (lb_dtype)14, LB_SHAPE(1), 1), LB_E_DTYPE, "14");
    REFUSED(lb_zeros(cx, LB_F32, LB_SHAPE(INT64_MAX, 2)), LB_E_SIZE,
            "9223372036854775807,2");
    REFUSED(lb_zeros(cx, (lb_dtype)-1, LB_SHAPE(2)), LB_E_DTYPE, "-1");
    REFUSED(lb_iota(cx, LB_F32, LB_SHAPE(2), 1), LB_E_AXIS, "axis 1|rank 1");
    REFUSED(lb_iota(cx, LB_F32, nine, 0), LB_E_SHAPE, "rank 9");
    REFUSED(lb_convert(cx, lb_scalar(cx, 1), LB_NO_DTYPE), LB_E_DTYPE, "0");
    REFUSED(lb_convert(cx, NULL, LB_F32), LB_E_NULL, "operand 0");
    REFUSED(lb_random_bits(cx, (lb_key){0}, LB_F32, LB_SHAPE(2)), LB_E_DTYPE,
            "f32");
    REFUSED(lb_random_permutation(cx, (lb_key){0}, -5), LB_E_ARG, "-5");
}

static void structure(lb_ctx *cx)
{
    lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    lb_array *i = lb_scalar_int(cx, 0), *at[] = {i, NULL}, *two[] = {i, i};
    lb_array *half[] = {x, NULL};
    const int64_t none[2] = {0}, six[2] = {6, 6};
    const lb_shape nine = lb_shape_make(9, (const int64_t[9]){1});
    lb_array *deep = lb_zeros(cx, LB_F32, LB_SHAPE(1, 1, 1, 1, 1, 1, 1, 1));
    REFUSED(lb_transpose(cx, NULL, NULL), LB_E_NULL, "operand 0");
    REFUSED(lb_transpose(cx, x, (const int[]){0, 2}), LB_E_AXIS,
            "axis 2|rank 2");
    REFUSED(lb_transpose(cx, x, (const int[]){0, -2}), LB_E_AXIS, "repeated");
    REFUSED(lb_reshape(cx, NULL, LB_SHAPE(1)), LB_E_NULL, "");
    REFUSED(lb_reshape(cx, x, LB_SHAPE(-1, -1)), LB_E_SHAPE, "0 and 1");
    REFUSED(lb_reshape(cx, x, LB_SHAPE(4, -1)), LB_E_SHAPE, "6|(4,-1)");
    REFUSED(lb_reshape(cx, x, LB_SHAPE(0, -1)), LB_E_SHAPE, "6|(0,-1)");
    REFUSED(lb_reshape(cx, x, LB_SHAPE(-2, -3)), LB_E_SHAPE, "-2|axis 0");
    REFUSED(lb_reshape(cx, x, nine), LB_E_SHAPE, "rank 9");
    REFUSED(lb_reshape_permuted(cx, x, (const int[]){0, 9}, LB_SHAPE(6)),
            LB_E_AXIS, "axis 9");
    REFUSED(lb_broadcast_in_dim(cx, x, LB_SHAPE(2, 3), NULL), LB_E_NULL,
            "dims|2");
    REFUSED(lb_broadcast_in_dim(cx, x, nine, (const int[]){0, 1}), LB_E_SHAPE,
            "rank 9");
    REFUSED(lb_broadcast_to(cx, x, LB_SHAPE(3)), LB_E_SHAPE, "(2,3)|2|(3)");
    REFUSED(lb_broadcast_to(cx, x, LB_SHAPE(4, 3)), LB_E_SHAPE, "(2,3)|(4,3)");
    REFUSED(lb_broadcast_to(cx, x, nine), LB_E_SHAPE, "rank 9");
    REFUSED(lb_broadcast_to(cx, x, (lb_shape){.rank = -3}), LB_E_SHAPE, "");
    REFUSED(lb_broadcast_to(cx, NULL, LB_SHAPE(1)), LB_E_NULL, "operand 0");
    REFUSED(lb_slice(cx, x, NULL, six, NULL), LB_E_NULL, "start|2");
    REFUSED(lb_slice(cx, x, none, NULL, NULL), LB_E_NULL, "limit|2");
    REFUSED(lb_slice(cx, x, none, six, NULL), LB_E_ARG, "0:6:1|(2,3)");
    REFUSED(lb_slice(cx, NULL, none, six, NULL), LB_E_NULL, "operand 0");
    REFUSED(lb_reverse(cx, x, LB_AXES(2)), LB_E_AXIS, "axis 2|rank 2");
    REFUSED(lb_reverse(cx, x, LB_AXES(1, -1)), LB_E_AXIS, "axis 1|repeated");
    REFUSED(lb_squeeze(cx, x, LB_AXES(0)), LB_E_SHAPE, "axis 0|(2,3)|2");
    REFUSED(lb_squeeze(cx, x, LB_AXES(-3)), LB_E_AXIS, "axis -3|rank 2");
    REFUSED(lb_expand(cx, x, 3), LB_E_AXIS, "axis 3|rank 3");
    REFUSED(lb_expand(cx, deep, 0), LB_E_SHAPE, "8");
    REFUSED(lb_concatenate(cx, NULL, 2, 0), LB_E_NULL, "");
    REFUSED(lb_concatenate(cx, two, 0, 0), LB_E_ARG, "0 operands");
    REFUSED(lb_concatenate(cx, two, -1, 0), LB_E_ARG, "-1 operands");
    REFUSED(lb_concatenate(cx, half, 2, 0), LB_E_NULL, "operand 1");
    REFUSED(lb_concatenate(cx, two, 2, 0), LB_E_AXIS, "axis 0");
    REFUSED(lb_concatenate(cx, &x, 1, 2), LB_E_AXIS, "axis 2");
    REFUSED(lb_pad(cx, x, NULL, none, none, NULL), LB_E_NULL, "operand 1");
    REFUSED(lb_pad(cx, NULL, i, none, none, NULL), LB_E_NULL, "operand 0");
    REFUSED(lb_dynamic_slice(cx, x, NULL, none), LB_E_NULL, "starts");
    REFUSED(lb_dynamic_slice(cx, x, two, NULL), LB_E_NULL, "sizes");
    REFUSED(lb_dynamic_slice(cx, x, at, none), LB_E_NULL, "operand 2");
    REFUSED(lb_dynamic_update_slice(cx, x, x, NULL), LB_E_NULL, "starts");
    REFUSED(lb_dynamic_update_slice(cx, x, NULL, two), LB_E_NULL, "operand 1");
    REFUSED(lb_update_in_place(cx, &x, NULL, two), LB_E_NULL, "update");
    REFUSED(lb_attention(cx, x, x, NULL, NULL), LB_E_NULL, "operand 2");
    REFUSED(lb_rope(cx, NULL, NULL), LB_E_NULL, "operand 0");
    REFUSED(lb_materialize(cx, NULL), LB_E_NULL, "operand 0");
}

static void sums(lb_ctx *cx)
{
    lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    lb_array *v = lb_zeros(cx, LB_F32, LB_SHAPE(2));
    lb_array *s = lb_scalar(cx, 1), *f = lb_zeros(cx, LB_F32, LB_SHAPE(2, 1));
    const lb_axes nine = {.n = 9};
    REFUSED(lb_reduce_sum(cx, NULL, NULL), LB_E_NULL, "");
    REFUSED(lb_reduce_sum(cx, x, LB_AXES(2)), LB_E_AXIS, "axis 2|rank 2");
    REFUSED(lb_reduce_max(cx, x, LB_AXES(0, -2)), LB_E_AXIS, "axis 0|repeated");
    REFUSED(lb_reduce_min(cx, x, &nine), LB_E_AXIS, "9 axes|rank 2");
    REFUSED(lb_reduce_and(cx, x, NULL), LB_E_DTYPE, "f32");
    REFUSED(lb_argmax(cx, x, 2, LB_I32), LB_E_AXIS, "axis 2|rank 2");
    REFUSED(lb_argmin(cx, NULL, 0, LB_I32), LB_E_NULL, "");
    REFUSED(lb_argmin(cx, s, 0, LB_I32), LB_E_AXIS, "axis 0|rank 0");
    REFUSED(lb_softmax(cx, x, 2), LB_E_AXIS, "axis 2|rank 2");
    REFUSED(lb_softmax(cx, NULL, 0), LB_E_NULL, "softmax");
    REFUSED(lb_log_softmax(cx, s, 0), LB_E_AXIS, "axis 0|rank 0");
    REFUSED(lb_sum(cx, x, LB_AXES(5), true), LB_E_AXIS, "axis 5|rank 2");
    REFUSED(lb_mean(cx, x, LB_AXES(5), true), LB_E_AXIS, "axis 5|rank 2");
    REFUSED(lb_prod(cx, x, LB_AXES(5), true), LB_E_AXIS, "axis 5|rank 2");
    REFUSED(lb_amax(cx, x, LB_AXES(5), true), LB_E_AXIS, "axis 5|rank 2");
    REFUSED(lb_amin(cx, NULL, NULL, true), LB_E_NULL, "");
    REFUSED(lb_all(cx, x, LB_AXES(5), true), LB_E_AXIS, "axis 5|rank 2");
    REFUSED(lb_any(cx, NULL, NULL, true), LB_E_NULL, "");
    REFUSED(lb_var(cx, NULL, NULL, true), LB_E_NULL, "var");
    REFUSED(lb_rms_norm(cx, x, v, 0), LB_E_SHAPE, "weight|(2)|(3)");
    REFUSED(lb_rms_norm(cx, s, NULL, 0), LB_E_SHAPE, "scalar");
    REFUSED(lb_layer_norm(cx, x, NULL, v, 0), LB_E_SHAPE, "bias|(2)|(3)");
    REFUSED(lb_layer_norm(cx, NULL, NULL, NULL, 0), LB_E_NULL, "layer_norm");
    REFUSED(lb_dot_general(cx, x, x, NULL), LB_E_NULL, "");
    REFUSED(lb_dot_general(cx, NULL, x, &(lb_dot_dims){.preferred = 0}),
            LB_E_NULL, "operand 0");
    REFUSED(lb_conv_general_dilated(cx, x, x, NULL), LB_E_NULL, "");
    REFUSED(lb_conv_general_dilated(cx, x, NULL, &(lb_conv_dims){.lhs = ""}),
            LB_E_NULL, "operand 1");
    REFUSED(lb_gather(cx, x, s, NULL), LB_E_NULL, "");
    REFUSED(lb_gather(cx, NULL, s, &(lb_gather_dims){.has_fill = 0}), LB_E_NULL,
            "operand 0");
    REFUSED(lb_scatter_add(cx, x, s, x, NULL), LB_E_NULL, "");
    REFUSED(lb_scatter_add(cx, x, s, NULL, &(lb_gather_dims){.has_fill = 0}),
            LB_E_NULL, "operand 2");
    REFUSED(lb_take(cx, x, f, 0), LB_E_DTYPE, "f32");
    REFUSED(lb_take(cx, x, NULL, 0), LB_E_NULL, "");
    REFUSED(lb_take(cx, x, lb_scalar_int(cx, 0), 2), LB_E_AXIS,
            "axis 2|rank 2");
    REFUSED(lb_embedding(cx, s, lb_scalar_int(cx, 0)), LB_E_AXIS,
            "axis 0|rank 0");
}

/* ---- quantizing ---------------------------------------------------------- */

#define CONFIG(...) (&(const lb_quant_config){__VA_ARGS__})
#define TO(FORMAT, ...)                                                        \
    lb_quantize(cx, x, CONFIG(.format = FORMAT, __VA_ARGS__))

static void quantizing(lb_ctx *cx)
{
    static const char known[] = "no_such|int8|nf4|ternary|binary|q8_0";
    lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    lb_array *i = lb_zeros(cx, LB_I32, LB_SHAPE(2, 3));
    REFUSED(lb_quantize(cx, NULL, NULL), LB_E_NULL, "quantize|NULL");
    REFUSED(lb_quantize(cx, i, NULL), LB_E_DTYPE, "i32(2,3)");
    REFUSED(TO("no_such", .block_size = 0), LB_E_ARG, known);
    REFUSED(TO("dense", .block_size = 0), LB_E_ARG, "dense|int8|nf4");
    REFUSED(TO("", .block_size = 0), LB_E_ARG, "int8|nf4");
    REFUSED(lb_quantize(cx, x, CONFIG(.struct_size = 4)), LB_E_ARG,
            "struct_size|4");
    REFUSED(TO("nf4", .block_size = 3), LB_E_ARG, "nf4|3|even");
    REFUSED(TO("nf4", .block_size = 1), LB_E_ARG, "nf4|1|even");
    REFUSED(TO("nf4", .block_size = -2), LB_E_ARG, "block_size|-2");
    REFUSED(TO("nf4", .axes = {1, {0}}), LB_E_AXIS, "nf4|axis 0|the last");
    REFUSED(TO("nf4", .dtype = LB_I8), LB_E_DTYPE, "nf4|i8");
    REFUSED(TO("nf4", .dtype = (lb_dtype)77), LB_E_DTYPE, "77");
    REFUSED(TO("nf4", .compat = (lb_compat)9), LB_E_ARG, "compat|9|0..3");
    REFUSED(TO("nf4", .decode = (lb_decode)9), LB_E_ARG, "decode|9|0..1");
    REFUSED(TO("nf4", .scale = (lb_scale)9), LB_E_ARG, "scale|9|0..4");
    REFUSED(TO("nf4", .meaning = (lb_meaning)9), LB_E_ARG, "meaning|9");
    REFUSED(TO("nf4", .threshold = (lb_threshold)9), LB_E_ARG, "threshold|9");
    REFUSED(TO("nf4", .blocks = (lb_blocks)9), LB_E_ARG, "blocks|9");
    REFUSED(TO("nf4", .on_nonfinite = (lb_nonfinite)9), LB_E_ARG,
            "on_nonfinite|9");
    REFUSED(TO("nf4", .scale = LB_SCALE_ROW), LB_E_ARG, "nf4|scale row");
    REFUSED(TO("nf4", .meaning = LB_MEANS_INVERSE), LB_E_ARG,
            "nf4|meaning is inverse");
    REFUSED(TO("nf4", .center = true), LB_E_ARG, "nf4|center is given");
    REFUSED(TO("int8", .axes = {1, {2}}), LB_E_AXIS, "axis 2|rank 2");
    REFUSED(TO("int8", .axes = {1, {-3}}), LB_E_AXIS, "axis -3|rank 2");
    REFUSED(TO("int8", .axes = {2, {1, -1}}), LB_E_AXIS, "axis 1|repeated");
    REFUSED(TO("int8", .axes = {.n = 9}), LB_E_AXIS, "9 axes|rank 2");
    REFUSED(TO("int8", .axes = {.n = -1}), LB_E_AXIS, "-1 axes|rank 2");
    REFUSED(TO("int8", .dtype = LB_I8), LB_E_DTYPE, "int8|i8");
    REFUSED(TO("int8", .decode = LB_DECODE_POLY), LB_E_ARG,
            "int8|decode is poly");
    REFUSED(TO("ternary", .dtype = LB_I8, .scale = LB_SCALE_ROW), LB_E_DTYPE,
            "ternary|i8|scale|row");
    REFUSED(TO("binary", .dtype = LB_I8, .scale = LB_SCALE_TENSOR), LB_E_DTYPE,
            "binary|i8|scale|tensor");
    REFUSED(TO("ternary", .dtype = LB_I32), LB_E_DTYPE, "ternary|i32");
    REFUSED(TO("ternary", .block_size = 8), LB_E_ARG, "ternary|block_size|8");
    REFUSED(TO("ternary", .axes = {1, {0}}), LB_E_ARG, "ternary|axis is given");
    REFUSED(TO("binary", .threshold = LB_THRESHOLD_ABSMEAN), LB_E_ARG,
            "binary|threshold is absmean");
    REFUSED(TO("dynamic8", .compat = LB_COMPAT_EFORMER), LB_E_ARG,
            "dynamic8|eformer");
    REFUSED(TO("q8_0", .block_size = 64), LB_E_ARG, "q8_0|64|32");
    REFUSED(TO("tq1_0", .dtype = LB_I8), LB_E_DTYPE, "tq1_0|i8");
    REFUSED(TO("q4_0", .double_quant = true), LB_E_ARG,
            "q4_0|no separate scales");
    REFUSED(lb_straight_through(cx, NULL, NULL), LB_E_NULL, "NULL");
    REFUSED(
        lb_straight_through(cx, x, CONFIG(.format = "ternary", .dtype = LB_I8)),
        LB_E_DTYPE, "straight_through|i8");
    REFUSED(lb_straight_through(cx, i, CONFIG(.format = "ternary")), LB_E_DTYPE,
            "straight_through|i32");
    CHECK(!lb_kernel_available(NULL, "nf4") && !lb_kernel_available(cx, NULL) &&
          !lb_kernel_available(cx, "no_such"));
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
}

static void taking_apart(lb_ctx *cx)
{
    lb_array *x = lb_full(cx, LB_F32, LB_SHAPE(2, 3), 1);
    lb_array *q = lb_quantize(cx, x, CONFIG(.format = "nf4"));
    lb_array *b = lb_quantize(cx, x, CONFIG(.format = "q8_0"));
    const int64_t lo[] = {0, 1}, hi[] = {2, 3};
    lb_array *cut = lb_slice(cx, q, lo, hi, NULL);
    lb_array *wide = lb_broadcast_to(cx, q, LB_SHAPE(2, 2, 3));
    REFUSED(lb_quantize_scales(cx, NULL), LB_E_NULL, "operand 0");
    REFUSED(lb_quantize_scales(cx, x), LB_E_ARG,
            "dense(2,3)|no separate scales");
    REFUSED(lb_quantize_scales(cx, lb_quantize_scales(cx, q)), LB_E_ARG,
            "nf4(2,3)|absmax|dynamic8");
    REFUSED(lb_component(cx, NULL, "codes"), LB_E_NULL, "NULL");
    REFUSED(lb_component(cx, q, NULL), LB_E_ARG, "nf4|codes, absmax");
    REFUSED(lb_component(cx, q, "no_such"), LB_E_ARG,
            "nf4|no_such|codes, absmax");
    REFUSED(lb_component(cx, x, "codes"), LB_E_ARG, "dense|codes|none");
    REFUSED(lb_component(cx, cut, "codes"), LB_E_UNSUPPORTED, "nf4(2,2)|codes");
    REFUSED(lb_component(cx, wide, "codes"), LB_E_UNSUPPORTED, "nf4(2,2,3)");
    CHECK(!lb_component(cx, q, "table")); /* it continues without: no error */
    CHECK(strcmp(lb_component_name(q, 0), "codes") == 0);
    CHECK(strcmp(lb_component_name(q, 1), "absmax") == 0);
    CHECK(!lb_component_name(q, -1) && !lb_component_name(q, 1000));
    CHECK(!lb_component_name(x, 0) && !lb_component_name(NULL, 0));
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
    REFUSED(lb_codes(cx, NULL), LB_E_NULL, "NULL");
    REFUSED(lb_codes(cx, x), LB_E_UNSUPPORTED, "dense");
    REFUSED(lb_codes(cx, b), LB_E_UNSUPPORTED, "q8_0");
    REFUSED(lb_export(cx, NULL, "eformer", "packed"), LB_E_NULL, "NULL");
    REFUSED(lb_export(cx, q, "no_such", "packed"), LB_E_ARG, "nf4|no_such");
    REFUSED(lb_export(cx, q, "eformer", "no_such"), LB_E_ARG,
            "eformer|no_such");
    REFUSED(lb_export(cx, q, "eformer", NULL), LB_E_ARG, "eformer");
    REFUSED(lb_export(cx, q, NULL, "no_such"), LB_E_ARG, "nf4|no_such|codes");
    REFUSED(lb_export(cx, x, "eformer", "packed"), LB_E_ARG, "dense|eformer");
    REFUSED(lb_export(cx, cut, "eformer", "packed"), LB_E_UNSUPPORTED,
            "nf4(2,2)");
}

static void from_codes(lb_ctx *cx)
{
    const lb_quant_config *int8 = CONFIG(.format = "int8");
    const lb_quant_config *none =
        CONFIG(.format = "ternary", .scale = LB_SCALE_NONE);
    lb_array *c = lb_from(cx, LB_I8, LB_SHAPE(2, 3),
                          (const int8_t[]){1, -1, 0, 1, -128, 0});
    lb_array *ok = lb_zeros(cx, LB_I8, LB_SHAPE(2, 3));
    lb_array *s = lb_full(cx, LB_F32, LB_SHAPE(2, 1), 0.5);
    lb_array *f = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    lb_array *big = lb_full(cx, LB_U8, LB_SHAPE(2, 3), 16);
    REFUSED(lb_from_codes(cx, int8, NULL, s), LB_E_NULL, "codes are NULL");
    REFUSED(lb_from_codes(cx, int8, c, s), LB_E_ARG,
            "int8|code -128|element 4|-127 to 127");
    REFUSED(lb_from_codes(cx, int8, ok, NULL), LB_E_ARG, "int8|none was given");
    REFUSED(lb_from_codes(cx, int8, f, s), LB_E_DTYPE, "int8|integer");
    REFUSED(lb_from_codes(cx, int8, ok, lb_zeros(cx, LB_F32, LB_SHAPE(3, 1))),
            LB_E_SHAPE, "int8|scale|(3,1)|(2,1)|(2,3)");
    REFUSED(lb_from_codes(cx, int8, ok, lb_zeros(cx, LB_I32, LB_SHAPE(2, 1))),
            LB_E_DTYPE, "scale|i32");
    REFUSED(lb_from_codes(cx, CONFIG(.format = "no_such"), ok, s), LB_E_ARG,
            "from_codes|no_such|nf4");
    REFUSED(lb_from_codes(cx, CONFIG(.format = "q8_0"), ok, NULL),
            LB_E_UNSUPPORTED, "q8_0");
    REFUSED(lb_from_codes(cx, none, c, NULL), LB_E_ARG,
            "ternary|code -128|element 4|-1 to 1");
    REFUSED(lb_from_codes(cx, none, ok, s), LB_E_ARG, "ternary|one was given");
    REFUSED(lb_from_codes(cx,
                          CONFIG(.format = "binary", .scale = LB_SCALE_NONE),
                          ok, NULL),
            LB_E_ARG, "binary|code 0|element 0");
    REFUSED(lb_from_codes(cx, NULL, big, s), LB_E_ARG,
            "nf4|code 16|element 0|0 to 15");
}

static void from_parts(lb_ctx *cx)
{
    const lb_shape shape = LB_SHAPE(2, 3);
    const lb_shape nine = lb_shape_make(9, (const int64_t[9]){1});
    lb_array *codes = lb_zeros(cx, LB_U8, LB_SHAPE(2, 2));
    lb_array *absmax = lb_zeros(cx, LB_F32, LB_SHAPE(2, 1));
    const char *name[] = {"codes", "absmax"}, *wrong[] = {"codes", "no_such"};
    const char *twice[] = {"codes", "codes"}, *eformer[] = {"packed", "absmax"};
    lb_array *good[] = {codes, absmax}, *half[] = {codes, NULL};
    lb_array *long_rows[] = {lb_zeros(cx, LB_U8, shape), absmax};
    lb_array *ints[] = {lb_zeros(cx, LB_I32, LB_SHAPE(2, 2)), absmax};
    lb_array *long_max[] = {codes, lb_zeros(cx, LB_F32, LB_SHAPE(2, 2))};
    lb_array *int_max[] = {codes, lb_zeros(cx, LB_I32, LB_SHAPE(2, 1))};
#define FROM(SHAPE, LAYOUT, NAME, PART, N)                                     \
    lb_from_parts(cx, NULL, SHAPE, LAYOUT, NAME, PART, N)
    REFUSED(FROM(shape, NULL, name, half, 2), LB_E_NULL, "absmax|NULL");
    REFUSED(FROM(shape, NULL, name, long_rows, 2), LB_E_SHAPE,
            "nf4|codes|(2,3)|(2,2)");
    REFUSED(FROM(shape, NULL, name, ints, 2), LB_E_DTYPE, "codes|nf4|i32|u8");
    REFUSED(FROM(shape, NULL, name, long_max, 2), LB_E_SHAPE,
            "nf4|absmax|(2,2)|(2,1)");
    REFUSED(FROM(shape, NULL, name, int_max, 2), LB_E_DTYPE, "absmax|nf4|i32");
    REFUSED(FROM(shape, NULL, wrong, good, 2), LB_E_ARG,
            "nf4|no_such|codes, absmax");
    REFUSED(FROM(shape, NULL, twice, good, 2), LB_E_ARG, "codes|twice");
    REFUSED(FROM(shape, NULL, name, good, 1), LB_E_NULL, "nf4|absmax");
    REFUSED(FROM(shape, NULL, name, good, 0), LB_E_NULL, "nf4|codes");
    REFUSED(FROM(shape, NULL, NULL, good, 2), LB_E_NULL, "2 parts");
    REFUSED(FROM(shape, NULL, name, NULL, 2), LB_E_NULL, "2 parts");
    REFUSED(FROM(shape, NULL, name, good, -1), LB_E_NULL, "-1 parts");
    REFUSED(FROM(shape, "no_such", name, good, 2), LB_E_ARG, "nf4|no_such");
    REFUSED(FROM(shape, "eformer", name, good, 2), LB_E_ARG, "eformer|codes");
    REFUSED(FROM(shape, "eformer", eformer, good, 2), LB_E_SHAPE,
            "nf4|packed|(2,2)|(2,1,2)");
    REFUSED(FROM(shape, "eformer", eformer, good, 0), LB_E_NULL,
            "eformer|packed");
    REFUSED(FROM(LB_SHAPE(-2, 3), NULL, name, good, 2), LB_E_SHAPE, "-2");
    REFUSED(FROM(nine, NULL, name, good, 2), LB_E_SHAPE, "rank 9");
#undef FROM
    REFUSED(lb_from_parts(cx, CONFIG(.format = "no_such"), shape, NULL, name,
                          good, 2),
            LB_E_ARG, "from_parts|no_such|nf4");
}

static void reading(lb_ctx *cx)
{
    float to[6];
    lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    REFUSED(lb_read(cx, NULL, to, 24) ? x : NULL, LB_E_NULL, "NULL");
    REFUSED(lb_read(cx, x, to, 23) ? x : NULL, LB_E_SIZE, "f32(2,3)|24|23");
    REFUSED(lb_read(cx, x, NULL, 24) ? x : NULL, LB_E_NULL, "dst");
    REFUSED(lb_read_rows(cx, x, 1, 3, to, 24) ? x : NULL, LB_E_ARG,
            "1 to 3|(2,3)");
    REFUSED(lb_read_rows(cx, x, 1, 2, to, 24) ? x : NULL, LB_E_SIZE, "12|24");
    REFUSED(lb_read_rows(cx, lb_scalar(cx, 1), 0, 1, to, 4) ? x : NULL,
            LB_E_ARG, "0 to 1|()");
    REFUSED(isnan(lb_item(cx, x)) ? NULL : x, LB_E_SHAPE, "(2,3)|6");
    REFUSED(isnan(lb_item(cx, NULL)) ? NULL : x, LB_E_NULL, "NULL");
    REFUSED(lb_item_int(cx, NULL) ? x : NULL, LB_E_NULL, "NULL");
    REFUSED(lb_explain(cx, "no_such", &x, 1, NULL), LB_E_ARG, "no_such");
    REFUSED(lb_explain(cx, NULL, &x, 1, NULL), LB_E_ARG, "");
    REFUSED(lb_explain(cx, "exp", NULL, 1, NULL), LB_E_NULL, "");
    REFUSED(lb_bind(cx, NULL, 0, NULL, NULL), LB_E_NULL, "primitive");
    CHECK(!lb_read(NULL, x, to, 24));
    CHECK(!lb_explain(NULL, "exp", &x, 1, NULL));
    CHECK(isnan(lb_item(NULL, x)) && lb_item_int(NULL, x) == 0);
}

/* Without a context every function returns NULL and touches nothing. */
static void no_context(void)
{
    const char *name = "";
    int n = 0;
    for (; name; n++)
        CHECK(!scenario_run(NULL, n, &name));
    CHECK(n > 100);
    CHECK_EQ_I(lb_error_status(NULL), LB_E_NULL);
    CHECK(strlen(lb_error(NULL)) > 10);
    lb_clear(NULL);
    lb_close(NULL);
    lb_enter(NULL);
    lb_leave(NULL);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1, .allocator = &some});
    CHECK(cx != NULL);
    if (!cx) return check_report("errors");
    every_primitive(cx);
    of_one_array(cx);
    of_two_arrays(cx);
    making(cx);
    structure(cx);
    sums(cx);
    quantizing(cx);
    taking_apart(cx);
    from_codes(cx);
    from_parts(cx);
    reading(cx);
    no_context();
    lb_close(cx);
    return check_report("errors");
}
