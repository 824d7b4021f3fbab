/* scenario.c - see scenario.h. Each function of lowbit.h is a row. */
#include "scenario.h"

#include <string.h>

/* ---- operands ----------------------------------------------------------- */

static lb_array *vector(lb_ctx *cx, lb_dtype dtype, int64_t n)
{
    return lb_add(cx, lb_iota(cx, dtype, LB_SHAPE(n), 0),
                  lb_full_int(cx, dtype, LB_SHAPE(n), 1));
}

static lb_array *matrix(lb_ctx *cx, lb_dtype dtype)
{
    return lb_reshape(cx, vector(cx, dtype, 12), LB_SHAPE(3, 4));
}

static lb_array *f(lb_ctx *cx)
{
    return matrix(cx, LB_F32);
}

static lb_array *i(lb_ctx *cx)
{
    return matrix(cx, LB_I32);
}

static lb_array *v(lb_ctx *cx)
{
    return vector(cx, LB_F32, 4);
}

static lb_array *pred(lb_ctx *cx)
{
    return lb_gt(cx, f(cx), lb_scalar(cx, 5));
}

static lb_array *start(lb_ctx *cx)
{
    return lb_scalar_int(cx, 1);
}

/* ---- functions of several calls ----------------------------------------- */

/* Their results as an array, or NULL on error. */
static lb_array *printed(lb_ctx *cx)
{
    char text[256];
    const int64_t n = lb_to_string(cx, f(cx), text, sizeof text);
    return n < 0 ? NULL : lb_scalar_int(cx, n);
}

static lb_array *read_back(lb_ctx *cx)
{
    double x[12];
    return lb_read_f64(cx, f(cx), x, 12)
               ? lb_from(cx, LB_F64, LB_SHAPE(3, 4), x)
               : NULL;
}

static lb_array *configured(lb_ctx *cx)
{
    lb_quant_config c = {.format = "nf4", .decode = LB_DECODE_POLY};
    lb_array *q = lb_quantize(cx, f(cx), &c);
    return lb_config_of(cx, q, &c) ? lb_quantize(cx, f(cx), &c) : NULL;
}

static void nothing(void *user)
{
    (void)user;
}

static lb_array *wrap(lb_ctx *cx)
{
    static const float x[] = {1, 2, 3};
    return lb_wrap(cx, LB_F32, LB_SHAPE(3), x, nothing, NULL);
}

static lb_array *from(lb_ctx *cx)
{
    return lb_from(cx, LB_I16, LB_SHAPE(2), (const int16_t[]){1, 2});
}

static lb_array *read_all(lb_ctx *cx)
{
    float to[12];
    lb_array *a = lb_transpose(cx, f(cx), NULL);
    return lb_read(cx, a, to, sizeof to) ? a : NULL;
}

static lb_array *read_rows(lb_ctx *cx)
{
    float to[8];
    lb_array *a = f(cx);
    return lb_read_rows(cx, a, 1, 3, to, sizeof to) ? a : NULL;
}

static lb_array *item(lb_ctx *cx)
{
    lb_array *a = lb_full(cx, LB_BF16, LB_SHAPE(1), 3);
    return lb_item(cx, a) == 3 ? a : NULL;
}

static lb_array *item_int(lb_ctx *cx)
{
    lb_array *a = lb_full_int(cx, LB_U8, LB_SHAPE(1), 3);
    return lb_item_int(cx, a) == 3 ? a : NULL;
}

static lb_array *explain(lb_ctx *cx)
{
    lb_array *a = f(cx);
    return lb_explain(cx, "exp", &a, 1, NULL) ? a : NULL;
}

static lb_array *concatenate(lb_ctx *cx)
{
    lb_array *in[] = {f(cx), f(cx), f(cx)};
    return lb_concatenate(cx, in, 3, 0);
}

static lb_array *dynamic_slice(lb_ctx *cx)
{
    lb_array *at[] = {start(cx), start(cx)};
    return lb_dynamic_slice(cx, f(cx), at, (const int64_t[]){2, 2});
}

static lb_array *dynamic_update_slice(lb_ctx *cx)
{
    lb_array *at[] = {start(cx), start(cx)};
    return lb_dynamic_update_slice(cx, f(cx),
                                   lb_zeros(cx, LB_F32, LB_SHAPE(1, 2)), at);
}

static lb_array *attention(lb_ctx *cx)
{
    lb_array *x = lb_expand(cx, f(cx), 0);
    return lb_attention(cx, x, x, x, &(lb_attention_options){.causal = true});
}

/* In place and, where a view exists, by a copy. */
static lb_array *update_in_place(lb_ctx *cx)
{
    lb_array *a = lb_materialize(cx, f(cx)), *at[] = {start(cx), start(cx)};
    lb_array *u = lb_zeros(cx, LB_F32, LB_SHAPE(1, 2));
    if (!lb_update_in_place(cx, &a, u, at)) return NULL;
    return lb_transpose(cx, a, NULL) ? lb_update_in_place(cx, &a, u, at) : NULL;
}

static lb_array *dot_general(lb_ctx *cx)
{
    return lb_dot_general(
        cx, f(cx), f(cx),
        &(lb_dot_dims){.lhs_contract = {1, {1}}, .rhs_contract = {1, {1}}});
}

static lb_array *batched_matmul(lb_ctx *cx)
{
    lb_array *x = lb_broadcast_to(cx, f(cx), LB_SHAPE(2, 3, 4));
    return lb_matmul(cx, x, lb_transpose(cx, f(cx), NULL));
}

static lb_array *conv(lb_ctx *cx)
{
    lb_array *x = lb_reshape(cx, f(cx), LB_SHAPE(1, 1, 3, 4));
    lb_array *k = lb_reshape(cx, v(cx), LB_SHAPE(1, 1, 2, 2));
    return lb_conv_general_dilated(cx, x, k, &(lb_conv_dims){.lhs = ""});
}

static const lb_gather_dims rows = {.offset_dims = {1, {1}},
                                    .collapsed_slice_dims = {1, {0}},
                                    .start_index_map = {1, {0}},
                                    .index_vector_dim = 1,
                                    .slice_sizes = {1, 4}};

static lb_array *two_rows(lb_ctx *cx)
{
    return lb_from(cx, LB_I32, LB_SHAPE(2, 1), (const int32_t[]){2, 0});
}

static lb_array *labels(lb_ctx *cx)
{
    return lb_from(cx, LB_I32, LB_SHAPE(3), (const int32_t[]){2, 0, 3});
}

/* ---- quantizing --------------------------------------------------------- */

#define CONFIG(...) (&(const lb_quant_config){__VA_ARGS__})

static lb_array *q(lb_ctx *cx)
{
    return lb_quantize(cx, f(cx), NULL);
}

static lb_array *from_codes(lb_ctx *cx)
{
    const lb_quant_config *c = CONFIG(.format = "int8");
    lb_array *codes = lb_full_int(cx, LB_I8, LB_SHAPE(3, 4), -7);
    return lb_from_codes(cx, c, codes,
                         lb_full(cx, LB_F16, LB_SHAPE(3, 1), 0.5));
}

static lb_array *from_parts(lb_ctx *cx, const char *layout, const char *first)
{
    const char *const name[] = {first, "absmax"};
    lb_array *a = q(cx);
    lb_array *part[2];
    for (int k = 0; k < 2; k++)
        if (!(part[k] = lb_export(cx, a, layout, name[k]))) return NULL;
    return lb_from_parts(cx, NULL, LB_SHAPE(3, 4), layout, name, part, 2);
}

static lb_array *set_dense(lb_ctx *cx)
{
    return lb_set_dense(cx, "nf4", LB_DENSE_ALLOW) ? v(cx) : NULL;
}

static lb_array *floors(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    return lb_floor(cx, x[0]);
}

/* mean (relu(x w + b) - 1)^2, with straight-through quantization of w */
static lb_array *loss(lb_ctx *cx, lb_array *const *in, int n, void *user)
{
    (void)n, (void)user;
    lb_array *w = lb_straight_through(cx, in[0], CONFIG(.format = "nf4"));
    lb_array *y = lb_add(cx, lb_matmul(cx, in[2], w), in[1]);
    y = lb_sub(cx, lb_relu(cx, y), lb_scalar(cx, 1));
    return lb_mean(cx, lb_mul(cx, y, y), NULL, false);
}

static lb_array *training_step(lb_ctx *cx)
{
    lb_array *w = f(cx), *g[2];
    lb_array *in[] = {w, v(cx), lb_transpose(cx, w, NULL)};
    if (!in[1] || !in[2] || !lb_value_and_grad(cx, loss, in, 3, NULL, g, 2))
        return NULL;
    return lb_sub(cx, w, lb_mul(cx, g[0], lb_scalar(cx, 0.5)));
}

/* Two steps, with its state restored in between. */
static lb_array *optimizer(lb_ctx *cx)
{
    static const lb_quant_config bytes = {.format = "dynamic8"};
    const lb_optimizer_config c = {
        .method = LB_ADAMW, .decay = 0.1, .clip_norm = 1, .state = &bytes};
    lb_array *w = f(cx), *g = w ? lb_neg(cx, w) : NULL, *state[3];
    lb_optimizer *o = g ? lb_optimizer_open(cx, &c, &w, 1) : NULL;
    bool ok = o && lb_optimizer_step(o, &w, &g);
    for (int k = 0; k < 3 && ok; k++)
        ok = (state[k] = lb_optimizer_state(o, k, NULL, 0)) != NULL;
    ok =
        ok && lb_optimizer_restore(o, state, 3) && lb_optimizer_step(o, &w, &g);
    lb_optimizer_close(o);
    return ok ? w : NULL;
}

static lb_array *tape(lb_ctx *cx)
{
    lb_array *x = f(cx), *g = NULL;
    lb_tape *t = x ? lb_tape_open(cx) : NULL;
    if (t && lb_tape_watch(t, x)) {
        lb_array *y = lb_exp(cx, lb_reduce_max(cx, x, LB_AXES(0)));
        if (y) lb_tape_grad(t, y, y, &x, 1, &g);
    }
    lb_tape_close(t);
    return g;
}

/* Elementwise, a product, a reduction; a constant and a repeated call. */
static lb_array *block(lb_ctx *cx, lb_array *const *in, int n, void *user)
{
    (void)n;
    lb_array *y = lb_matmul(cx, lb_softmax(cx, in[0], -1), in[1]);
    y = lb_add(cx, lb_tanh(cx, y), lb_mul(cx, lb_tanh(cx, y), user));
    return lb_sub(cx, y, lb_exp(cx, lb_scalar(cx, 2)));
}

/* Compiled, run from the cache, described; two signatures, room for one. */
static lb_array *compiled(lb_ctx *cx)
{
    lb_array *c = v(cx), *x = f(cx), *w = lb_transpose(cx, x, NULL);
    lb_array *few[] = {x, lb_matmul(cx, w, x)}, *y = NULL;
    lb_array *packed[] = {x, lb_quantize(cx, few[1], CONFIG(.format = "nf4"))};
    const lb_compile_options options = {.cache = 1, .check = true};
    if (!c || !few[1] || !packed[1]) return NULL;
    lb_compiled *p = lb_compile(cx, block, c, &options);
    bool ok = p && lb_run(p, few, 2) && lb_run(p, few, 2);
    const bool eager = lb_compiled_stats_of(p).eager; /* under a test's layer */
    for (int form = LB_EXPLAIN_TEXT; form <= LB_EXPLAIN_DOT && ok; form++)
        ok = eager || lb_compiled_explain(p, 0, (lb_explain_form)form) != NULL;
    y = ok ? lb_run(p, packed, 2) : NULL;
    lb_compiled_close(p);
    return y;
}

static bool train(lb_ctx *cx, lb_array *const *in, int n, lb_array **out,
                  int n_out, void *user)
{
    lb_array *w = in[0], *g;
    out[1] = lb_value_and_grad(cx, loss, in, n, NULL, &g, n_out - 1);
    const bool ok = out[1] && lb_optimizer_step(user, &w, &g);
    out[0] = w;
    return ok;
}

/* Two runs of a training step with a state. */
static lb_array *compiled_training(lb_ctx *cx)
{
    static const lb_quant_config bytes = {.format = "dynamic8"};
    const lb_optimizer_config c = {
        .method = LB_ADAMW, .decay = 0.1, .clip_norm = 1, .state = &bytes};
    lb_array *w = f(cx), *out[2] = {NULL};
    lb_array *in[] = {w, v(cx), lb_transpose(cx, w, NULL)};
    if (!in[1] || !in[2]) return NULL;
    lb_optimizer *o = lb_optimizer_open(cx, &c, &w, 1);
    lb_compiled *p = o ? lb_compile_many(cx, train, 2, o, NULL) : NULL;
    bool ok = p && lb_run_many(p, in, 3, out);
    in[0] = out[0];
    ok = ok && lb_run_many(p, in, 3, out);
    ok = ok && lb_optimizer_steps(o) == 2;
    lb_compiled_close(p);
    lb_optimizer_close(o);
    return ok ? out[0] : NULL;
}

/* The largest element and its index. */
static bool larger(lb_ctx *cx, lb_array *const *args, int n, lb_array **out,
                   int n_out, void *user)
{
    (void)n, (void)n_out, (void)user;
    lb_array *keep = lb_ge(cx, args[0], args[2]);
    out[0] = lb_select(cx, keep, args[0], args[2]);
    out[1] = lb_select(cx, keep, args[1], args[3]);
    return out[0] && out[1];
}

static lb_array *reduce(lb_ctx *cx)
{
    lb_array *x = f(cx), *out[2];
    lb_array *in[] = {x, lb_iota(cx, LB_I32, lb_shape_of(x), 1)};
    lb_array *init[] = {lb_scalar(cx, -1e30), lb_scalar_int(cx, -1)};
    return lb_reduce(cx, in, init, 2, LB_AXES(1), larger, NULL, out) ? out[1]
                                                                     : NULL;
}

/* ---- the table ---------------------------------------------------------- */

/* The function that contains a row's expression. */
#define ROWS(X)                                                                \
    X(from, from(cx))                                                          \
    X(wrap, wrap(cx))                                                          \
    X(scalar, lb_scalar(cx, 2))                                                \
    X(scalar_int, lb_scalar_int(cx, 2))                                        \
    X(full, lb_full(cx, LB_F16, LB_SHAPE(2, 3), 2))                            \
    X(full_int, lb_full_int(cx, LB_I64, LB_SHAPE(2, 3), 2))                    \
    X(zeros, lb_zeros(cx, LB_BOOL, LB_SHAPE(2, 3)))                            \
    X(iota, lb_iota(cx, LB_I8, LB_SHAPE(2, 3), 1))                             \
    X(read, read_all(cx))                                                      \
    X(read_rows, read_rows(cx))                                                \
    X(item, item(cx))                                                          \
    X(item_int, item_int(cx))                                                  \
    X(explain, explain(cx))                                                    \
    X(materialize, lb_materialize(cx, lb_transpose(cx, f(cx), NULL)))          \
    X(quantize, lb_quantize(cx, f(cx), CONFIG(.format = "nf4")))               \
    X(quantize by columns,                                                     \
      lb_quantize(cx, f(cx), CONFIG(.format = "int8", .axes = {1, {0}})))      \
    X(quantize from columns,                                                   \
      lb_quantize(cx, lb_transpose(cx, f(cx), NULL),                           \
                  CONFIG(.format = "ternary", .scale = LB_SCALE_ROW)))         \
    X(quantize twice, lb_quantize(cx, f(cx), CONFIG(.double_quant = true)))    \
    X(quantize and back, lb_quantize(cx, f(cx), CONFIG(.simulate = true)))     \
    X(straight_through,                                                        \
      lb_straight_through(cx, f(cx), CONFIG(.format = "binary")))              \
    X(quantize_scales, lb_quantize_scales(cx, q(cx)))                          \
    X(component, lb_component(cx, q(cx), "absmax"))                            \
    X(codes, lb_codes(cx, q(cx)))                                              \
    X(from_codes, from_codes(cx))                                              \
    X(from_parts, from_parts(cx, NULL, "codes"))                               \
    X(export and from_parts, from_parts(cx, "eformer", "packed"))              \
    X(set_dense, set_dense(cx))                                                \
    X(convert, lb_convert(cx, f(cx), LB_BF16))                                 \
    X(neg, lb_neg(cx, f(cx)))                                                  \
    X(abs, lb_abs(cx, i(cx)))                                                  \
    X(sign, lb_sign(cx, f(cx)))                                                \
    X(exp, lb_exp(cx, i(cx)))                                                  \
    X(log, lb_log(cx, f(cx)))                                                  \
    X(expm1, lb_expm1(cx, f(cx)))                                              \
    X(log1p, lb_log1p(cx, f(cx)))                                              \
    X(sqrt, lb_sqrt(cx, f(cx)))                                                \
    X(rsqrt, lb_rsqrt(cx, f(cx)))                                              \
    X(cbrt, lb_cbrt(cx, f(cx)))                                                \
    X(tanh, lb_tanh(cx, f(cx)))                                                \
    X(logistic, lb_logistic(cx, f(cx)))                                        \
    X(sin, lb_sin(cx, f(cx)))                                                  \
    X(cos, lb_cos(cx, f(cx)))                                                  \
    X(tan, lb_tan(cx, f(cx)))                                                  \
    X(erf, lb_erf(cx, f(cx)))                                                  \
    X(floor, lb_floor(cx, f(cx)))                                              \
    X(ceil, lb_ceil(cx, f(cx)))                                                \
    X(round, lb_round(cx, f(cx)))                                              \
    X(round_away, lb_round_away(cx, f(cx)))                                    \
    X(is_finite, lb_is_finite(cx, f(cx)))                                      \
    X(not, lb_not(cx, pred(cx)))                                               \
    X(popcnt, lb_popcnt(cx, i(cx)))                                            \
    X(integer_pow, lb_integer_pow(cx, f(cx), -2))                              \
    X(add, lb_add(cx, f(cx), v(cx)))                                           \
    X(sub, lb_sub(cx, f(cx), i(cx)))                                           \
    X(mul, lb_mul(cx, f(cx), lb_scalar(cx, 2)))                                \
    X(div, lb_div(cx, i(cx), i(cx)))                                           \
    X(rem, lb_rem(cx, f(cx), v(cx)))                                           \
    X(max, lb_max(cx, f(cx), v(cx)))                                           \
    X(min, lb_min(cx, f(cx), v(cx)))                                           \
    X(pow, lb_pow(cx, f(cx), v(cx)))                                           \
    X(atan2, lb_atan2(cx, f(cx), v(cx)))                                       \
    X(swiglu, lb_swiglu(cx, f(cx), v(cx)))                                     \
    X(and, lb_and(cx, i(cx), i(cx)))                                           \
    X(or, lb_or(cx, i(cx), i(cx)))                                             \
    X(xor, lb_xor(cx, i(cx), i(cx)))                                           \
    X(shift_left, lb_shift_left(cx, i(cx), start(cx)))                         \
    X(shift_right_logical, lb_shift_right_logical(cx, i(cx), start(cx)))       \
    X(shift_right_arithmetic, lb_shift_right_arithmetic(cx, i(cx), start(cx))) \
    X(eq, lb_eq(cx, f(cx), v(cx)))                                             \
    X(ne, lb_ne(cx, f(cx), v(cx)))                                             \
    X(lt, lb_lt(cx, f(cx), v(cx)))                                             \
    X(le, lb_le(cx, f(cx), v(cx)))                                             \
    X(gt, lb_gt(cx, f(cx), v(cx)))                                             \
    X(ge, lb_ge(cx, f(cx), v(cx)))                                             \
    X(select, lb_select(cx, pred(cx), f(cx), v(cx)))                           \
    X(clamp, lb_clamp(cx, lb_scalar(cx, 2), f(cx), v(cx)))                     \
    X(bitcast_convert, lb_bitcast_convert(cx, f(cx), LB_I8))                   \
    X(transpose, lb_transpose(cx, f(cx), NULL))                                \
    X(reshape, lb_reshape(cx, f(cx), LB_SHAPE(2, -1)))                         \
    X(reshape_permuted, lb_reshape_permuted(cx, f(cx), NULL, LB_SHAPE(12)))    \
    X(broadcast_in_dim,                                                        \
      lb_broadcast_in_dim(cx, v(cx), LB_SHAPE(4, 2), (const int[]){0}))        \
    X(broadcast_to, lb_broadcast_to(cx, v(cx), LB_SHAPE(2, 4)))                \
    X(slice,                                                                   \
      lb_slice(cx, v(cx), (const int64_t[]){1}, (const int64_t[]){3}, NULL))   \
    X(reverse, lb_reverse(cx, f(cx), NULL))                                    \
    X(squeeze, lb_squeeze(cx, lb_expand(cx, f(cx), 1), NULL))                  \
    X(expand, lb_expand(cx, f(cx), -1))                                        \
    X(concatenate, concatenate(cx))                                            \
    X(pad, lb_pad(cx, v(cx), lb_scalar(cx, 0), (const int64_t[]){1},           \
                  (const int64_t[]){2}, (const int64_t[]){1}))                 \
    X(dynamic_slice, dynamic_slice(cx))                                        \
    X(dynamic_update_slice, dynamic_update_slice(cx))                          \
    X(update_in_place, update_in_place(cx))                                    \
    X(reduce_sum, lb_reduce_sum(cx, f(cx), NULL))                              \
    X(reduce_prod, lb_reduce_prod(cx, f(cx), LB_AXES(0)))                      \
    X(reduce_max, lb_reduce_max(cx, f(cx), LB_AXES(1)))                        \
    X(reduce_min, lb_reduce_min(cx, f(cx), LB_AXES(1)))                        \
    X(reduce_and, lb_reduce_and(cx, pred(cx), LB_AXES(1)))                     \
    X(reduce_or, lb_reduce_or(cx, pred(cx), LB_AXES(1)))                       \
    X(reduce, reduce(cx))                                                      \
    X(argmax, lb_argmax(cx, f(cx), 1, LB_NO_DTYPE))                            \
    X(argmin, lb_argmin(cx, f(cx), 1, LB_I64))                                 \
    X(dot_general, dot_general(cx))                                            \
    X(matmul, lb_matmul(cx, f(cx), v(cx)))                                     \
    X(matmul of batches, batched_matmul(cx))                                   \
    X(conv_general_dilated, conv(cx))                                          \
    X(gather, lb_gather(cx, f(cx), two_rows(cx), &rows))                       \
    X(scatter_add,                                                             \
      lb_scatter_add(cx, f(cx), two_rows(cx),                                  \
                     lb_zeros(cx, LB_F32, LB_SHAPE(2, 4)), &rows))             \
    X(take, lb_take(cx, f(cx), two_rows(cx), 1))                               \
    X(embedding, lb_embedding(cx, f(cx), two_rows(cx)))                        \
    X(relu, lb_relu(cx, f(cx)))                                                \
    X(silu, lb_silu(cx, f(cx)))                                                \
    X(gelu, lb_gelu(cx, f(cx)))                                                \
    X(gelu_tanh, lb_gelu_tanh(cx, f(cx)))                                      \
    X(softmax, lb_softmax(cx, f(cx), -1))                                      \
    X(log_softmax, lb_log_softmax(cx, f(cx), 0))                               \
    X(sum, lb_sum(cx, f(cx), LB_AXES(0), true))                                \
    X(sum of integers, lb_sum(cx, i(cx), NULL, false))                         \
    X(prod, lb_prod(cx, f(cx), LB_AXES(0), true))                              \
    X(amax, lb_amax(cx, f(cx), LB_AXES(1), true))                              \
    X(amin, lb_amin(cx, f(cx), NULL, true))                                    \
    X(all, lb_all(cx, f(cx), LB_AXES(1), true))                                \
    X(any, lb_any(cx, f(cx), NULL, false))                                     \
    X(linear, lb_linear(cx, v(cx), f(cx), vector(cx, LB_F32, 3), NULL))        \
    X(to_string, printed(cx))                                                  \
    X(read_f64, read_back(cx))                                                 \
    X(config_of, configured(cx))                                               \
    X(mean, lb_mean(cx, f(cx), NULL, false))                                   \
    X(var, lb_var(cx, f(cx), LB_AXES(1), true))                                \
    X(rms_norm, lb_rms_norm(cx, f(cx), v(cx), 1e-6))                           \
    X(layer_norm, lb_layer_norm(cx, f(cx), v(cx), v(cx), 1e-6))                \
    X(cross_entropy, lb_cross_entropy(cx, f(cx), labels(cx)))                  \
    X(squared_error, lb_squared_error(cx, f(cx), v(cx)))                       \
    X(optimizer, optimizer(cx))                                                \
    X(stop_gradient, lb_stop_gradient(cx, f(cx)))                              \
    X(ste, lb_ste(cx, floors, f(cx), NULL))                                    \
    X(value_and_grad, training_step(cx))                                       \
    X(tape, tape(cx))                                                          \
    X(compiled, compiled(cx))                                                  \
    X(compiled training, compiled_training(cx))                                \
    X(rope, lb_rope(cx, f(cx), NULL))                                          \
    X(attention, attention(cx))                                                \
    X(top_k, lb_top_k(cx, f(cx), 2, NULL))                                     \
    X(sample, lb_sample(cx, (lb_key){1, 2}, f(cx), NULL))                      \
    X(slice_axis, lb_slice_axis(cx, f(cx), 1, 0, -1))                          \
    X(random_bits, lb_random_bits(cx, (lb_key){1, 2}, LB_U8, LB_SHAPE(5)))     \
    X(random_uniform,                                                          \
      lb_random_uniform(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(5), 0, 1))        \
    X(random_normal,                                                           \
      lb_random_normal(cx, (lb_key){1, 2}, LB_F64, LB_SHAPE(5)))               \
    X(random_permutation, lb_random_permutation(cx, (lb_key){1, 2}, 9))

lb_array *scenario_run(lb_ctx *cx, int k, const char **name)
{
    lb_array *out = NULL;
    *name = NULL;
    lb_enter(cx);
#define RUN(NAME, EXPR)                                                        \
    if (k-- == 0) {                                                            \
        *name = #NAME;                                                         \
        out = EXPR;                                                            \
    }
    ROWS(RUN)
    lb_keep(cx, out);
    lb_leave(cx);
    return out;
}
