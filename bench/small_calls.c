/* small_calls.c - see small_calls.h. */
#include "small_calls.h"

#include "lowbit_nn.h"

/* ---- operands ------------------------------------------------------------ */

static lb_array *floats(shot *s, lb_shape shape)
{
    return lb_random_uniform(s->cx, (lb_key){1, 2}, LB_F32, shape, 0.25, 0.75);
}

static lb_array *ints(shot *s, lb_shape shape, int64_t below)
{
    lb_array *x = lb_random_uniform(s->cx, (lb_key){3, 4}, LB_F32, shape, 0,
                                    (double)below);
    return lb_convert(s->cx, x, LB_I32);
}

static lb_array *packed(shot *s, lb_array *a, const char *format)
{
    return lb_quantize(s->cx, a, &(lb_quant_config){.format = format});
}

/* Rows of at most 64. */
static lb_shape rows_of(int64_t size)
{
    return size < 64 ? LB_SHAPE(1, size) : LB_SHAPE(size / 64, 64);
}

static void operands(shot *s, int n, lb_array *a, lb_array *b, lb_array *c)
{
    s->n = n;
    s->in[0] = a;
    s->in[1] = b;
    s->in[2] = c;
}

static int64_t root_of(int64_t size)
{
    int64_t r = 1;
    while ((r + 1) * (r + 1) <= size)
        r++;
    return r;
}

/* ---- structure ----------------------------------------------------------- */

static void one_float(shot *s, int64_t size)
{
    operands(s, 1, floats(s, rows_of(size)), NULL, NULL);
}

static void convert(shot *s, int64_t size)
{
    one_float(s, size);
    s->params.convert.dtype = LB_BF16;
}

static void bitcast(shot *s, int64_t size)
{
    one_float(s, size);
    s->params.bitcast.dtype = LB_U16;
}

static void power(shot *s, int64_t size)
{
    one_float(s, size);
    s->params.power.exponent = 3;
}

static void flipped(shot *s, int64_t size)
{
    one_float(s, size);
    s->params.transpose.perm[0] = 1;
}

/* Of a transposed array: it has to be written. */
static void reshaped(shot *s, int64_t size)
{
    one_float(s, size);
    s->in[0] = lb_transpose(s->cx, s->in[0], NULL);
    s->params.reshape.shape = LB_SHAPE(lb_size(s->in[0]));
}

static void transposed_copy(shot *s, int64_t size)
{
    one_float(s, size);
    s->in[0] = lb_transpose(s->cx, s->in[0], NULL);
}

static void broadcast(shot *s, int64_t size)
{
    operands(s, 1, floats(s, LB_SHAPE(64)), NULL, NULL);
    s->params.broadcast.shape = LB_SHAPE(size, 64);
    s->params.broadcast.dims[0] = 1;
}

static void slice(shot *s, int64_t size)
{
    one_float(s, size);
    s->params.slice = (lb_slice_params){
        .limit = {lb_dim(s->in[0], 0), lb_dim(s->in[0], 1)}, .stride = {1, 1}};
}

static void reverse(shot *s, int64_t size)
{
    one_float(s, size);
    s->params.reverse.axes = (lb_axes){1, {1}};
}

static void joined(shot *s, int64_t size)
{
    lb_array *a = floats(s, rows_of(size / 2 + 1));
    operands(s, 2, a, a, NULL);
    s->params.concatenate.axis = 0;
}

static void joined_columns(shot *s, int64_t size)
{
    joined(s, size);
    s->params.concatenate.axis = 1;
}

static void pad(shot *s, int64_t size)
{
    one_float(s, size);
    s->n = 2;
    s->in[1] = lb_zeros(s->cx, LB_F32, (lb_shape){0});
    s->params.pad = (lb_pad_params){.lo = {1, 1}, .hi = {1, 1}};
}

static void dynamic_slice(shot *s, int64_t size)
{
    lb_array *zero = lb_zeros(s->cx, LB_I32, (lb_shape){0});
    const lb_shape shape = rows_of(size);
    operands(s, 3, floats(s, shape), zero, zero);
    s->params.dynamic_slice.sizes[0] = shape.dim[0];
    s->params.dynamic_slice.sizes[1] = (shape.dim[1] + 1) / 2;
}

static void update(shot *s, int64_t size)
{
    lb_array *zero = lb_zeros(s->cx, LB_I32, (lb_shape){0});
    const lb_shape shape = rows_of(size);
    operands(s, 4, floats(s, shape), floats(s, LB_SHAPE(1, shape.dim[1])),
             zero);
    s->in[3] = zero;
}

static void iota(shot *s, int64_t size)
{
    s->n = 0;
    s->params.iota = (lb_iota_params){rows_of(size), LB_F32, 1};
}

static lb_gather_dims rows_dims(int64_t cols)
{
    return (lb_gather_dims){.offset_dims = {1, {1}},
                            .collapsed_slice_dims = {1, {0}},
                            .start_index_map = {1, {0}},
                            .index_vector_dim = 1,
                            .slice_sizes = {1, cols}};
}

static void gather(shot *s, int64_t size)
{
    const lb_shape shape = rows_of(size);
    operands(s, 2, floats(s, shape),
             ints(s, LB_SHAPE(shape.dim[0], 1), shape.dim[0]), NULL);
    s->params.gather = rows_dims(shape.dim[1]);
}

static void gather_row(shot *s, int64_t size)
{
    const lb_shape shape = rows_of(size);
    operands(s, 2, floats(s, shape), ints(s, LB_SHAPE(1, 1), 1), NULL);
    s->params.gather = rows_dims(shape.dim[1]);
}

static void scatter(shot *s, int64_t size)
{
    gather(s, size);
    s->n = 3;
    s->in[2] = floats(s, s->in[0]->shape);
}

/* Elements of a vector, and rows of 1024. */
static void scatter_elements(shot *s, int64_t size)
{
    operands(s, 3, floats(s, LB_SHAPE(size)), ints(s, LB_SHAPE(size, 1), size),
             floats(s, LB_SHAPE(size)));
    s->params.gather = (lb_gather_dims){.collapsed_slice_dims = {1, {0}},
                                        .start_index_map = {1, {0}},
                                        .index_vector_dim = 1,
                                        .slice_sizes = {1}};
}

static void scatter_long(shot *s, int64_t size)
{
    const int64_t n = size < 1024 ? size : 1024, rows = size / n;
    operands(s, 3, floats(s, LB_SHAPE(rows, n)),
             ints(s, LB_SHAPE(rows, 1), rows), floats(s, LB_SHAPE(rows, n)));
    s->params.gather = rows_dims(n);
}

static void select_rows(shot *s, int64_t size)
{
    one_float(s, size);
    lb_array *x = s->in[0];
    operands(s, 3, lb_lt(s->cx, x, lb_scalar(s->cx, 0.5)), x, x);
}

static void clamp(shot *s, int64_t size)
{
    lb_array *lo = lb_zeros(s->cx, LB_F32, (lb_shape){0});
    lb_array *hi = lb_full(s->cx, LB_F32, (lb_shape){0}, 0.5);
    operands(s, 3, lo, floats(s, rows_of(size)), hi);
}

/* ---- reductions ---------------------------------------------------------- */

static void reduce(shot *s, int64_t size)
{
    one_float(s, size);
    s->params.reduce.axes = (lb_axes){1, {1}};
}

static void reduce_first(shot *s, int64_t size)
{
    one_float(s, size);
    s->params.reduce.axes = (lb_axes){1, {0}};
}

static void reduce_all(shot *s, int64_t size)
{
    operands(s, 1, floats(s, LB_SHAPE(size)), NULL, NULL);
    s->params.reduce.axes = (lb_axes){1, {0}};
}

static void reduce_bool(shot *s, int64_t size)
{
    reduce(s, size);
    s->in[0] = lb_lt(s->cx, s->in[0], lb_scalar(s->cx, 0.5));
}

static void arg(shot *s, int64_t size)
{
    one_float(s, size);
    s->params.arg = (lb_argminmax_params){1, LB_I32};
}

static void arg_all(shot *s, int64_t size)
{
    operands(s, 1, floats(s, LB_SHAPE(size)), NULL, NULL);
    s->params.arg = (lb_argminmax_params){0, LB_I32};
}

/* ---- products ------------------------------------------------------------ */

static void product(shot *s, lb_array *x, lb_array *w, bool turned)
{
    operands(s, 2, x, w, NULL);
    s->params.dot = (lb_dot_dims){.lhs_contract = {1, {1}},
                                  .rhs_contract = {1, {turned ? 1 : 0}}};
}

/* A row times a square matrix of `size` elements. */
static void one_row(shot *s, int64_t size, const char *format, bool turned)
{
    const int64_t k = root_of(size);
    lb_array *w = floats(s, LB_SHAPE(k, k));
    product(s, floats(s, LB_SHAPE(1, k)), format ? packed(s, w, format) : w,
            turned);
}

#define ONE_ROW(NAME, FORMAT, TURNED)                                          \
    static void NAME(shot *s, int64_t size)                                    \
    {                                                                          \
        one_row(s, size, FORMAT, TURNED);                                      \
    }
ONE_ROW(row_f32, NULL, false)
ONE_ROW(row_f32_t, NULL, true)
ONE_ROW(row_int8, "int8", false)
ONE_ROW(row_int8_t, "int8", true)
ONE_ROW(row_nf4, "nf4", false)
ONE_ROW(row_nf4_t, "nf4", true)
ONE_ROW(row_q8, "q8_0", true)
ONE_ROW(row_ternary, "ternary", true)

static void square(shot *s, int64_t size, const char *format)
{
    const int64_t k = root_of(size);
    lb_array *w = floats(s, LB_SHAPE(k, k));
    product(s, floats(s, LB_SHAPE(k, k)), format ? packed(s, w, format) : w,
            true);
}

/* `size` multiplications, not elements: 10^6 elements would take seconds. */
static void square_f32(shot *s, int64_t size)
{
    square(s, size < 40000 ? size : 40000, NULL);
}

static void square_nf4(shot *s, int64_t size)
{
    square(s, size < 40000 ? size : 40000, "nf4");
}

/* Eight heads: a row of 8 each times a matrix of size / 8 elements. */
static void batched(shot *s, int64_t size)
{
    const int64_t n = size < 64 ? 1 : size / 64;
    operands(s, 2, floats(s, LB_SHAPE(8, 1, 8)), floats(s, LB_SHAPE(8, n, 8)),
             NULL);
    s->params.dot = (lb_dot_dims){.lhs_contract = {1, {2}},
                                  .rhs_contract = {1, {2}},
                                  .lhs_batch = {1, {0}},
                                  .rhs_batch = {1, {0}}};
}

static void batched_ints(shot *s, int64_t size)
{
    batched(s, size);
    for (int i = 0; i < 2; i++)
        s->in[i] = lb_convert(s->cx, s->in[i], LB_I32);
}

static void conv(shot *s, int64_t size)
{
    const int64_t n = size < 8 ? 8 : size;
    operands(s, 2, floats(s, LB_SHAPE(1, 1, n)), floats(s, LB_SHAPE(4, 1, 3)),
             NULL);
    s->params.conv = (lb_conv_dims){.lhs = "bf0", .rhs = "oi0", .out = "bf0"};
}

/* ---- quantizing, random numbers ------------------------------------------ */

static lb_array *run_quantize(shot *s)
{
    return lb_quantize(s->cx, s->in[0], &(lb_quant_config){.format = "nf4"});
}

static lb_array *run_quantize_int8(shot *s)
{
    return lb_quantize(s->cx, s->in[0], &(lb_quant_config){.format = "int8"});
}

static lb_array *run_ste(shot *s)
{
    return lb_straight_through(s->cx, s->in[0],
                               &(lb_quant_config){.format = "nf4"});
}

static lb_array *run_scales(shot *s)
{
    return lb_quantize_scales(s->cx, s->in[0]);
}

static lb_array *run_softmax(shot *s)
{
    return lb_softmax(s->cx, s->in[0], -1);
}

static lb_array *run_log_softmax(shot *s)
{
    return lb_log_softmax(s->cx, s->in[0], -1);
}

static lb_array *run_rms_norm(shot *s)
{
    return lb_rms_norm(s->cx, s->in[0], s->in[1], 1e-5);
}

static lb_array *run_layer_norm(shot *s)
{
    return lb_layer_norm(s->cx, s->in[0], s->in[1], s->in[1], 1e-5);
}

static lb_array *run_add(shot *s)
{
    return lb_add(s->cx, s->in[0], s->in[1]);
}

static lb_array *run_matmul(shot *s)
{
    return lb_matmul(s->cx, s->in[0], s->in[1]);
}

static lb_array *run_rope(shot *s)
{
    return lb_rope(s->cx, s->in[0], NULL);
}

static lb_array *run_attention(shot *s)
{
    return lb_attention(s->cx, s->in[0], s->in[1], s->in[1], NULL);
}

static lb_array *run_materialize(shot *s)
{
    return lb_materialize(s->cx, s->in[0]);
}

#define OF_FLOATS(NAME, CALL)                                                  \
    static void NAME(shot *s, int64_t size)                                    \
    {                                                                          \
        one_float(s, size);                                                    \
        s->call = CALL;                                                        \
    }
OF_FLOATS(quantize, run_quantize)
OF_FLOATS(quantize_int8, run_quantize_int8)
OF_FLOATS(ste, run_ste)
OF_FLOATS(softmax, run_softmax)
OF_FLOATS(log_softmax, run_log_softmax)

static void scales(shot *s, int64_t size)
{
    one_float(s, size * 64);
    s->in[0] = packed(s, s->in[0], "nf4");
    s->call = run_scales;
}

static void one_long_row(shot *s, int64_t size)
{
    operands(s, 1, floats(s, LB_SHAPE(size)), NULL, NULL);
    s->call = run_softmax;
}

static void rms_norm(shot *s, int64_t size)
{
    one_float(s, size);
    s->in[1] = floats(s, LB_SHAPE(lb_dim(s->in[0], 1)));
    s->call = run_rms_norm;
}

static void layer_norm(shot *s, int64_t size)
{
    rms_norm(s, size);
    s->call = run_layer_norm;
}

/* Pairs: of even rows. */
static void rope(shot *s, int64_t size)
{
    one_float(s, size + size % 2);
    s->call = run_rope;
}

/* One query of 8 heads, size / 512 keys. */
static void attention(shot *s, int64_t size)
{
    const int64_t keys = size < 512 ? 1 : size / 512;
    operands(s, 2, floats(s, LB_SHAPE(8, 1, 64)),
             floats(s, LB_SHAPE(8, keys, 64)), NULL);
    s->call = run_attention;
}

/* As many queries as keys. */
static void attention_square(shot *s, int64_t size)
{
    const int64_t n = size < 512 ? 1 : size / 512;
    lb_array *x = floats(s, LB_SHAPE(8, n < 128 ? n : 128, 64));
    operands(s, 2, x, x, NULL);
    s->call = run_attention;
}

static void add(shot *s, int64_t size)
{
    one_float(s, size);
    s->in[1] = s->in[0];
    s->call = run_add;
}

static void add_row(shot *s, int64_t size)
{
    rms_norm(s, size);
    s->call = run_add;
}

static void add_nf4(shot *s, int64_t size)
{
    add(s, size);
    s->in[0] = packed(s, s->in[0], "nf4");
}

static void matmul(shot *s, int64_t size)
{
    row_f32(s, size);
    s->call = run_matmul;
}

#define DECODED(NAME, FORMAT)                                                  \
    static void NAME(shot *s, int64_t size)                                    \
    {                                                                          \
        one_float(s, size);                                                    \
        s->in[0] = packed(s, s->in[0], FORMAT);                                \
        s->call = run_materialize;                                             \
    }
DECODED(decode_int8, "int8")
DECODED(decode_nf4, "nf4")
DECODED(decode_q8, "q8_0")

static void random_of(shot *s, int64_t size, lb_dtype dtype)
{
    s->n = 0;
    s->params.random = (lb_random_params){{1, 2}, dtype, rows_of(size)};
}

static void bits(shot *s, int64_t size)
{
    random_of(s, size, LB_U32);
}

static void normal(shot *s, int64_t size)
{
    random_of(s, size, LB_F32);
}

static void uniform(shot *s, int64_t size)
{
    random_of(s, size, LB_F32);
    s->params.uniform.hi = 1;
}

static void permutation(shot *s, int64_t size)
{
    s->n = 0;
    s->params.permutation = (lb_random_permutation_params){{1, 2}, size};
}

/* ---- the list ------------------------------------------------------------ */

const entry small_entries[] = {
    {"convert_element_type", NULL, convert},
    {"bitcast_convert", NULL, bitcast},
    {"integer_pow", NULL, power},
    {"select", NULL, select_rows},
    {"clamp", NULL, clamp},
    {"copy", NULL, one_float},
    {"copy", "copy of a transpose", transposed_copy},
    {"transpose", NULL, flipped},
    {"broadcast_in_dim", NULL, broadcast},
    {"slice", NULL, slice},
    {"reverse", NULL, reverse},
    {"reshape", "reshape of a transpose", reshaped},
    {"concatenate", "concatenate rows", joined},
    {"concatenate", "concatenate columns", joined_columns},
    {"pad", NULL, pad},
    {"dynamic_slice", NULL, dynamic_slice},
    {"dynamic_update_slice", NULL, update},
    {"iota", NULL, iota},
    {"gather", "gather rows", gather},
    {"gather", "gather one row", gather_row},
    {"scatter_add", NULL, scatter},
    {"scatter_add", "scatter_add of elements", scatter_elements},
    {"scatter_add", "scatter_add of long rows", scatter_long},
    {"quantize", "quantize nf4", quantize},
    {"quantize", "quantize int8", quantize_int8},
    {"quantize_scales", NULL, scales},
    {"stop_gradient", NULL, one_float},
    {"ste", "straight_through nf4", ste},
    {"reduce_sum", NULL, reduce},
    {"reduce_sum", "reduce_sum axis 0", reduce_first},
    {"reduce_sum", "reduce_sum of one row", reduce_all},
    {"reduce_prod", NULL, reduce},
    {"reduce_max", NULL, reduce},
    {"reduce_min", NULL, reduce},
    {"reduce_and", NULL, reduce_bool},
    {"reduce_or", NULL, reduce_bool},
    {"argmax", NULL, arg},
    {"argmax", "argmax of one row", arg_all},
    {"argmin", NULL, arg},
    {"dot_general", "1xK @ KxK f32", row_f32},
    {"dot_general", "1xK @ (KxK)^T f32", row_f32_t},
    {"dot_general", "1xK @ KxK int8", row_int8},
    {"dot_general", "1xK @ (KxK)^T int8", row_int8_t},
    {"dot_general", "1xK @ KxK nf4", row_nf4},
    {"dot_general", "1xK @ (KxK)^T nf4", row_nf4_t},
    {"dot_general", "1xK @ (KxK)^T q8_0", row_q8},
    {"dot_general", "1xK @ (KxK)^T ternary", row_ternary},
    {"dot_general", "KxK @ (KxK)^T f32", square_f32},
    {"dot_general", "KxK @ (KxK)^T nf4", square_nf4},
    {"dot_general", "8 batches of 1x8 @ (Nx8)^T", batched},
    {"dot_general", "the same of i32", batched_ints},
    {"conv_general_dilated", NULL, conv},
    {"random_bits", NULL, bits},
    {"random_uniform", NULL, uniform},
    {"random_normal", NULL, normal},
    {"random_permutation", NULL, permutation},
    {"softmax", "lb_softmax", softmax},
    {"softmax", "lb_softmax of one row", one_long_row},
    {"log_softmax", "lb_log_softmax", log_softmax},
    {"rms_norm", "lb_rms_norm", rms_norm},
    {"layer_norm", "lb_layer_norm", layer_norm},
    {"rope", "lb_rope", rope},
    {"attention", "lb_attention, one query", attention},
    {"attention", "lb_attention", attention_square},
    {"", "lb_add", add},
    {"", "lb_add of a row", add_row},
    {"", "lb_add of nf4", add_nf4},
    {"dot_general", "lb_matmul 1xK @ KxK", matmul},
    {"copy", "lb_materialize int8", decode_int8},
    {"copy", "lb_materialize nf4", decode_nf4},
    {"copy", "lb_materialize q8_0", decode_q8},
};
const int small_entries_n = sizeof small_entries / sizeof *small_entries;

bool small_rows(shot *s, int64_t size)
{
    for (int i = 0; i < 2; i++) {
        lb_array *x =
            i ? ints(s, rows_of(size), 100) : floats(s, rows_of(size));
        operands(s, s->prim->n_in, x, x, x);
        if (s->prim->n_in < 1 || s->prim->n_in > 3 || s->prim->params_size)
            return false;
        lb_enter(s->cx);
        const bool ok = lb_bind(s->cx, s->prim, s->n, s->in, NULL) != NULL;
        lb_leave(s->cx);
        lb_clear(s->cx);
        if (ok) return true;
    }
    return false;
}
