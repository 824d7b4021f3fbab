/* test_smoke.c - every primitive and every format at least once, on every
 * available level. Fast enough for emulators of CPUs without AVX, where a stray
 * instruction ends the program.
 *
 *   test_smoke [THREADS]    (default: 2)
 *
 * Results of primitives are compared with arithmetic in double precision. A
 * layer records which primitives were called: one that is missing here is a
 * failure. Then each format is an operand of a few samples of each primitive
 * (laws.h: transparency), and decoded values are compared with the source.
 */
/* ctest: simde nehalem=1 a53=1 skip-tsan */
#include "base/cpu.h"
#include "laws.h"

enum { M = 5, N = 7, MN = M * N };
enum { MOST = 21000 }; /* elements checked per array */

/* ---- numbers ------------------------------------------------------------ */

/* Exact in every supported dtype: a, b in eighths from -6.25 to 6.25, c in
 * sixteenths above 0, i and j small integers. */
static double a_at(int i)
{
    return (i * 37 % 101 - 50) / 8.0;
}
static double b_at(int i)
{
    return (i * 53 % 97 - 48) / 8.0;
}
static double c_at(int i)
{
    return (i * 29 % 83 + 4) / 16.0;
}
static double i_at(int i)
{
    return i * 41 % 120 - 60;
}
static double j_at(int i)
{
    return i * 3 % 8;
}

static lb_array *from(lb_ctx *cx, lb_dtype dtype, double (*at)(int))
{
    float f[MN];
    for (int i = 0; i < MN; i++)
        f[i] = (float)at(i);
    return lb_convert(cx, lb_from(cx, LB_F32, LB_SHAPE(M, N), f), dtype);
}

/* Elements as doubles; their number, or -1. */
static int64_t read(lb_ctx *cx, lb_array *x, double *out, int64_t room)
{
    const size_t size = lb_dtype_size(lb_dtype_of(x));
    static char raw[8 * MOST];
    const int64_t n = lb_size(x);
    if (n < 0 || n > room || (size_t)n * size > sizeof raw) return -1;
    if (!lb_read(cx, x, raw, (size_t)n * size)) return -1;
    for (int64_t i = 0; i < n; i++) {
        const char *p = raw + (size_t)i * size;
        float f;
        int32_t k;
        int64_t l;
        switch (lb_dtype_of(x)) {
        case LB_F32:
            memcpy(&f, p, sizeof f);
            out[i] = (double)f;
            break;
        case LB_F64:
            memcpy(&out[i], p, sizeof out[i]);
            break;
        case LB_I32:
            memcpy(&k, p, sizeof k);
            out[i] = k;
            break;
        case LB_I64:
            memcpy(&l, p, sizeof l);
            out[i] = (double)l;
            break;
        case LB_BOOL:
            out[i] = *p;
            break;
        default:
            return -1;
        }
    }
    return n;
}

/* x has these n elements, each within tol times its magnitude. */
static void near(lb_ctx *cx, const char *what, lb_array *x, int64_t n,
                 const double *want, double tol)
{
    static double got[MOST];
    const int64_t count = read(cx, x, got, MOST);
    if (check_fails(count == n))
        fprintf(stderr, "%s: %lld elements, not %lld: %s\n", what,
                (long long)count, (long long)n, lb_error(cx));
    for (int64_t i = 0; i < n && count == n; i++) {
        const bool ok =
            got[i] == want[i] || fabs(got[i] - want[i]) <= tol * fabs(want[i]);
        if (check_fails(ok))
            fprintf(stderr, "%s[%lld] is %.9g, not %.9g\n", what, (long long)i,
                    got[i], want[i]);
    }
    lb_clear(cx);
}

/* ---- elementwise -------------------------------------------------------- */

static double d_neg(double x)
{
    return -x;
}
static double d_sign(double x)
{
    return (x > 0) - (x < 0);
}
static double d_rsqrt(double x)
{
    return 1 / sqrt(x);
}
static double d_logistic(double x)
{
    return 1 / (1 + exp(-x));
}
static double d_cube(double x)
{
    return x * x * x;
}
static double d_finite(double x)
{
    return isfinite(x) != 0;
}
static double d_not(double x)
{
    return -1 - x;
}
static double d_popcnt(double x)
{
    return __builtin_popcount((unsigned)(int)x);
}
static double d_same(double x)
{
    return x;
}
static lb_array *cube(lb_ctx *cx, lb_array *x)
{
    return lb_integer_pow(cx, x, 3);
}
static lb_array *widen(lb_ctx *cx, lb_array *x)
{
    return lb_convert(cx, x, LB_F64);
}

static void unary(lb_ctx *cx)
{
    static const struct {
        const char *name;
        lb_array *(*call)(lb_ctx *, lb_array *);
        double (*want)(double);
        double (*at)(int);
        lb_dtype dtype;
    } rows[] = {
        {"neg", lb_neg, d_neg, a_at, LB_F32},
        {"abs", lb_abs, fabs, a_at, LB_F32},
        {"sign", lb_sign, d_sign, a_at, LB_F32},
        {"exp", lb_exp, exp, a_at, LB_F32},
        {"log", lb_log, log, c_at, LB_F32},
        {"expm1", lb_expm1, expm1, a_at, LB_F32},
        {"log1p", lb_log1p, log1p, c_at, LB_F32},
        {"sqrt", lb_sqrt, sqrt, c_at, LB_F32},
        {"rsqrt", lb_rsqrt, d_rsqrt, c_at, LB_F32},
        {"cbrt", lb_cbrt, cbrt, a_at, LB_F32},
        {"tanh", lb_tanh, tanh, a_at, LB_F32},
        {"logistic", lb_logistic, d_logistic, a_at, LB_F32},
        {"sin", lb_sin, sin, a_at, LB_F32},
        {"cos", lb_cos, cos, a_at, LB_F32},
        {"tan", lb_tan, tan, a_at, LB_F32},
        {"erf", lb_erf, erf, a_at, LB_F32},
        {"floor", lb_floor, floor, a_at, LB_F32},
        {"ceil", lb_ceil, ceil, a_at, LB_F32},
        {"round", lb_round, rint, a_at, LB_F32},
        {"round_away", lb_round_away, round, a_at, LB_F32},
        {"is_finite", lb_is_finite, d_finite, a_at, LB_F32},
        {"not", lb_not, d_not, i_at, LB_I32},
        {"popcnt", lb_popcnt, d_popcnt, i_at, LB_I32},
        {"integer_pow", cube, d_cube, a_at, LB_F32},
        {"convert", widen, d_same, a_at, LB_F32},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double want[MN];
        for (int i = 0; i < MN; i++)
            want[i] = rows[r].want(rows[r].at(i));
        near(cx, rows[r].name,
             rows[r].call(cx, from(cx, rows[r].dtype, rows[r].at)), MN, want,
             4e-7);
    }
}

#define INTEGERS(OP, X, Y) ((double)((int)(X)OP(int)(Y)))

static double of_two(const char *name, double x, double y)
{
    const unsigned bits = (unsigned)(int)x;
    if (!strcmp(name, "add")) return x + y;
    if (!strcmp(name, "sub")) return x - y;
    if (!strcmp(name, "mul")) return x * y;
    if (!strcmp(name, "div")) return x / y;
    if (!strcmp(name, "rem")) return fmod(x, y);
    if (!strcmp(name, "max")) return x > y ? x : y;
    if (!strcmp(name, "min")) return x < y ? x : y;
    if (!strcmp(name, "pow")) return pow(x, y);
    if (!strcmp(name, "atan2")) return atan2(x, y);
    if (!strcmp(name, "swiglu")) return x / (1 + exp(-x)) * y;
    if (!strcmp(name, "and")) return INTEGERS(&, x, y);
    if (!strcmp(name, "or")) return INTEGERS(|, x, y);
    if (!strcmp(name, "xor")) return INTEGERS(^, x, y);
    if (!strcmp(name, "shift_left")) return x * exp2(y);
    if (!strcmp(name, "shift_right_logical"))
        return (double)(int)(bits >> (int)y);
    if (!strcmp(name, "shift_right_arithmetic")) return floor(x / exp2(y));
    if (!strcmp(name, "eq")) return x == y;
    if (!strcmp(name, "ne")) return x != y;
    if (!strcmp(name, "lt")) return x < y;
    if (!strcmp(name, "le")) return x <= y;
    if (!strcmp(name, "gt")) return x > y;
    return x >= y; /* ge */
}

static void binary(lb_ctx *cx)
{
    static const struct {
        const char *name;
        lb_array *(*call)(lb_ctx *, lb_array *, lb_array *);
        double (*x)(int), (*y)(int);
        lb_dtype dtype;
    } rows[] = {
        {"add", lb_add, a_at, b_at, LB_F32},
        {"sub", lb_sub, a_at, b_at, LB_F32},
        {"mul", lb_mul, a_at, b_at, LB_F32},
        {"div", lb_div, a_at, c_at, LB_F32},
        {"rem", lb_rem, a_at, c_at, LB_F32},
        {"max", lb_max, a_at, b_at, LB_F32},
        {"min", lb_min, a_at, b_at, LB_F32},
        {"pow", lb_pow, c_at, a_at, LB_F32},
        {"atan2", lb_atan2, a_at, b_at, LB_F32},
        {"swiglu", lb_swiglu, a_at, b_at, LB_F32},
        {"and", lb_and, i_at, j_at, LB_I32},
        {"or", lb_or, i_at, j_at, LB_I32},
        {"xor", lb_xor, i_at, j_at, LB_I32},
        {"shift_left", lb_shift_left, i_at, j_at, LB_I32},
        {"shift_right_logical", lb_shift_right_logical, i_at, j_at, LB_I32},
        {"shift_right_arithmetic", lb_shift_right_arithmetic, i_at, j_at,
         LB_I32},
        {"eq", lb_eq, i_at, j_at, LB_I32},
        {"ne", lb_ne, i_at, j_at, LB_I32},
        {"lt", lb_lt, a_at, b_at, LB_F32},
        {"le", lb_le, a_at, b_at, LB_F32},
        {"gt", lb_gt, a_at, b_at, LB_F32},
        {"ge", lb_ge, a_at, b_at, LB_F32},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double want[MN];
        for (int i = 0; i < MN; i++)
            want[i] = of_two(rows[r].name, rows[r].x(i), rows[r].y(i));
        lb_array *x = from(cx, rows[r].dtype, rows[r].x);
        lb_array *y = from(cx, rows[r].dtype, rows[r].y);
        near(cx, rows[r].name, rows[r].call(cx, x, y), MN, want, 4e-7);
    }
}

static void ternary(lb_ctx *cx)
{
    lb_array *a = from(cx, LB_F32, a_at), *b = from(cx, LB_F32, b_at);
    double chosen[MN], clamped[MN];
    for (int i = 0; i < MN; i++) {
        chosen[i] = a_at(i) < b_at(i) ? a_at(i) : -b_at(i);
        clamped[i] = fmin(fmax(a_at(i), -1.5), 2);
    }
    near(cx, "select", lb_select(cx, lb_lt(cx, a, b), a, lb_neg(cx, b)), MN,
         chosen, 0);
    near(cx, "clamp", lb_clamp(cx, lb_scalar(cx, -1.5), a, lb_scalar(cx, 2)),
         MN, clamped, 0);
}

/* ---- structure ---------------------------------------------------------- */

/* Under lb_ste, which calls it with a constant. */
static lb_array *negated(lb_ctx *cx, lb_array *const *x, int n, void *user)
{
    (void)n, (void)user;
    return lb_neg(cx, x[0]);
}

static void views(lb_ctx *cx)
{
    lb_array *a = from(cx, LB_F32, a_at);
    double want[3 * MN];
    for (int i = 0; i < MN; i++)
        want[i] = a_at(i % M * N + i / M);
    lb_array *t = lb_transpose(cx, a, NULL);
    near(cx, "transpose", t, MN, want, 0);
    near(cx, "copy", lb_materialize(cx, t), MN, want, 0);
    near(cx, "reshape", lb_reshape(cx, t, LB_SHAPE(M, N)), MN, want, 0);
    lb_array *bits = lb_bitcast_convert(cx, lb_materialize(cx, t), LB_I32);
    near(cx, "bitcast_convert", lb_bitcast_convert(cx, bits, LB_F32), MN, want,
         0);
    for (int i = 0; i < 3 * MN; i++)
        want[i] = a_at(i % MN);
    near(cx, "broadcast_in_dim",
         lb_broadcast_in_dim(cx, a, LB_SHAPE(3, M, N), (int[]){1, 2}), 3 * MN,
         want, 0);
    for (int i = 0; i < 3 * 2; i++)
        want[i] = a_at((1 + i / 2) * N + 2 + 3 * (i % 2));
    near(cx, "slice",
         lb_slice(cx, a, (int64_t[]){1, 2}, (int64_t[]){4, 6},
                  (int64_t[]){1, 3}),
         3 * 2, want, 0);
    lb_array *at[] = {lb_scalar_int(cx, 1), lb_scalar_int(cx, 2)};
    at[0] = lb_convert(cx, at[0], LB_I32);
    at[1] = lb_convert(cx, at[1], LB_I32);
    for (int i = 0; i < 3 * 4; i++)
        want[i] = a_at((1 + i / 4) * N + 2 + i % 4);
    lb_array *box = lb_dynamic_slice(cx, a, at, (int64_t[]){3, 4});
    near(cx, "dynamic_slice", box, 3 * 4, want, 0);
    for (int i = 0; i < MN; i++) {
        const int r = i / N - 1, c = i % N - 2;
        const bool inside = r >= 0 && r < 3 && c >= 0 && c < 4;
        want[i] = inside ? -a_at(i) : a_at(i);
    }
    near(cx, "dynamic_update_slice",
         lb_dynamic_update_slice(cx, a, lb_neg(cx, box), at), MN, want, 0);
    for (int i = 0; i < MN; i++)
        want[i] = a_at(i / N * N + N - 1 - i % N);
    near(cx, "reverse", lb_reverse(cx, a, LB_AXES(1)), MN, want, 0);
    for (int i = 0; i < MN; i++)
        want[i] = -a_at(i);
    near(cx, "ste", lb_ste(cx, negated, a, NULL), MN, want, 0);
    for (int i = 0; i < MN; i++)
        want[i] = a_at(i);
    lb_array *heads = lb_expand(cx, a, 0); /* each query sees its own key */
    near(cx, "attention",
         lb_attention(cx, heads, heads, heads,
                      &(lb_attention_options){.causal = true, .window = 1}),
         MN, want, 1e-6);
    for (int i = 0; i < MN; i++) { /* the first two columns of row i by i */
        const int r = i / N, c = i % N;
        const double u = a_at(r * N), v = a_at(r * N + 1);
        want[i] = c == 0   ? u * cos(r) - v * sin(r)
                  : c == 1 ? v * cos(r) + u * sin(r)
                           : a_at(i);
    }
    near(cx, "rope", lb_rope(cx, a, &(lb_rope_options){.dims = 2}), MN, want,
         1e-5);
}

static void blocks(lb_ctx *cx)
{
    lb_array *a = from(cx, LB_F32, a_at), *b = from(cx, LB_F32, b_at);
    double want[3 * MN] = {0};
    for (int i = 0; i < 2 * MN; i++) {
        const int r = i / (2 * N), c = i % (2 * N);
        want[i] = c < N ? a_at(r * N + c) : b_at(r * N + c - N);
    }
    near(cx, "concatenate", lb_concatenate(cx, (lb_array *[]){a, b}, 2, 1),
         2 * MN, want, 0);
    for (int i = 0; i < (M + 1) * (2 * N); i++) { /* a gap between columns */
        const int r = i / (2 * N) - 1, c = i % (2 * N);
        want[i] = r < 0 || c % 2 || c > 2 * N - 2 ? 9 : a_at(r * N + c / 2);
    }
    near(cx, "pad",
         lb_pad(cx, a, lb_scalar(cx, 9), (int64_t[]){1, 0}, (int64_t[]){0, 1},
                (int64_t[]){0, 1}),
         (int64_t)(M + 1) * (2 * N), want, 0);
    for (int i = 0; i < MN; i++)
        want[i] = i % N;
    near(cx, "iota", lb_iota(cx, LB_I32, LB_SHAPE(M, N), 1), MN, want, 0);

    static const int32_t row[] = {3, 0, 3};
    lb_array *rows = lb_from(cx, LB_I32, LB_SHAPE(3, 1), row);
    const lb_gather_dims dims = {
        .offset_dims = {1, {1}},
        .collapsed_slice_dims = {1, {0}},
        .start_index_map = {1, {0}},
        .index_vector_dim = 1,
        .slice_sizes = {1, N},
    };
    for (int i = 0; i < 3 * N; i++)
        want[i] = a_at(row[i / N] * N + i % N);
    lb_array *some = lb_gather(cx, a, rows, &dims);
    near(cx, "gather", some, (int64_t)3 * N, want, 0);
    for (int i = 0; i < MN; i++)
        want[i] = b_at(i);
    for (int i = 0; i < 3 * N; i++) /* eighths: sums are exact */
        want[row[i / N] * N + i % N] += a_at(row[i / N] * N + i % N);
    near(cx, "scatter_add", lb_scatter_add(cx, b, rows, some, &dims), MN, want,
         0);
}

/* ---- reductions and products -------------------------------------------- */

static void reductions(lb_ctx *cx)
{
    lb_array *a = from(cx, LB_F32, a_at);
    lb_array *positive = lb_gt(cx, a, lb_scalar(cx, 0));
    double sum[M], product[M], most[M], least[M], all[M], any[M];
    double at_most[M], at_least[M];
    for (int r = 0; r < M; r++) {
        sum[r] = any[r] = at_most[r] = at_least[r] = 0;
        product[r] = all[r] = 1;
        most[r] = least[r] = a_at(r * N);
        for (int c = 0; c < N; c++) {
            const double x = a_at(r * N + c);
            sum[r] += x;
            product[r] *= x;
            if (x > most[r]) most[r] = x, at_most[r] = c;
            if (x < least[r]) least[r] = x, at_least[r] = c;
            if (x > 0) any[r] = 1;
            if (!(x > 0)) all[r] = 0;
        }
    }
    const lb_axes *last = LB_AXES(1);
    near(cx, "reduce_sum", lb_reduce_sum(cx, a, last), M, sum, 0);
    near(cx, "reduce_prod", lb_reduce_prod(cx, a, last), M, product, 1e-6);
    near(cx, "reduce_max", lb_reduce_max(cx, a, last), M, most, 0);
    near(cx, "reduce_min", lb_reduce_min(cx, a, last), M, least, 0);
    near(cx, "reduce_and", lb_reduce_and(cx, positive, last), M, all, 0);
    near(cx, "reduce_or", lb_reduce_or(cx, positive, last), M, any, 0);
    near(cx, "argmax", lb_argmax(cx, a, 1, LB_NO_DTYPE), M, at_most, 0);
    near(cx, "argmin", lb_argmin(cx, a, 1, LB_NO_DTYPE), M, at_least, 0);
}

/* Softmax and norms of rows, with the second operand's first row as weight and
 * bias. */
static void rows(lb_ctx *cx)
{
    const double eps = 0.25;
    lb_array *a = from(cx, LB_F32, a_at), *b = from(cx, LB_F32, b_at);
    double soft[MN], logs[MN], rms[MN], layer[MN];
    for (int r = 0; r < M; r++) {
        double sum = 0, squares = 0, exps = 0, around = 0;
        for (int c = 0; c < N; c++) {
            const double x = a_at(r * N + c);
            sum += x;
            squares += x * x;
            exps += exp(x);
        }
        for (int c = 0; c < N; c++)
            around += pow(a_at(r * N + c) - sum / N, 2);
        for (int i = r * N; i < (r + 1) * N; i++) {
            const double x = a_at(i), w = b_at(i % N);
            soft[i] = exp(x) / exps;
            logs[i] = x - log(exps);
            rms[i] = x / sqrt(squares / N + eps) * w;
            layer[i] = (x - sum / N) / sqrt(around / N + eps) * w + w;
        }
    }
    lb_array *w = lb_reshape(
        cx, lb_slice(cx, b, (int64_t[]){0, 0}, (int64_t[]){1, N}, NULL),
        LB_SHAPE(N));
    near(cx, "softmax", lb_softmax(cx, a, -1), MN, soft, 1e-5);
    near(cx, "log_softmax", lb_log_softmax(cx, a, -1), MN, logs, 1e-5);
    near(cx, "rms_norm", lb_rms_norm(cx, a, w, eps), MN, rms, 1e-5);
    near(cx, "layer_norm", lb_layer_norm(cx, a, w, w, eps), MN, layer, 1e-4);
}

static void products(lb_ctx *cx)
{
    lb_array *a = from(cx, LB_F32, a_at), *b = from(cx, LB_F32, b_at);
    double want[M * M], signal[MN];
    for (int i = 0; i < M * M; i++) {
        want[i] = 0;
        for (int k = 0; k < N; k++) /* exact in any order: 64ths, small */
            want[i] += a_at(i / M * N + k) * b_at(i % M * N + k);
    }
    near(cx, "dot_general", lb_matmul(cx, a, lb_transpose(cx, b, NULL)), M * M,
         want, 0);
    for (int i = 0; i < M; i++) /* one row: another kernel */
        signal[i] = want[i];
    const int64_t zero[] = {0, 0}, row[] = {1, N};
    near(cx, "dot_general, one row",
         lb_matmul(cx, lb_slice(cx, a, zero, row, NULL),
                   lb_transpose(cx, b, NULL)),
         M, signal, 0);
    /* M signals of length N with a kernel of 3 and one zero of padding on each
     * side */
    static const float tap[] = {0.5F, -2, 4};
    for (int i = 0; i < MN; i++) {
        signal[i] = 0;
        for (int k = -1; k <= 1; k++)
            if (i % N + k >= 0 && i % N + k < N)
                signal[i] += (double)tap[k + 1] * a_at(i + k);
    }
    near(cx, "conv_general_dilated",
         lb_conv_general_dilated(cx, lb_reshape(cx, a, LB_SHAPE(M, 1, N)),
                                 lb_from(cx, LB_F32, LB_SHAPE(1, 1, 3), tap),
                                 &(lb_conv_dims){.lhs = "bf0",
                                                 .rhs = "oi0",
                                                 .out = "bf0",
                                                 .pad_lo = {1},
                                                 .pad_hi = {1}}),
         MN, signal, 0);
}

/* ---- random numbers and quantizing -------------------------------------- */

/* The first words of (seed 0, stream 0) are those that Philox's authors
 * publish for counter and key 0. */
static void randoms(lb_ctx *cx)
{
    static const uint32_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                     0x9b00dbd8};
    double want[4], got[512], mean = 0, square = 0;
    for (int i = 0; i < 4; i++)
        want[i] = (double)(int32_t)words[i];
    const lb_key zero = {0, 0};
    near(cx, "random_bits", lb_random_bits(cx, zero, LB_I32, LB_SHAPE(4)), 4,
         want, 0);
    lb_array *u = lb_random_uniform(cx, zero, LB_F32, LB_SHAPE(512), 2, 4);
    CHECK_EQ_I(read(cx, u, got, 512), 512);
    for (int i = 0; i < 512; i++) {
        CHECK(got[i] >= 2 && got[i] < 4);
        mean += got[i] / 512;
    }
    CHECK_NEAR(mean, 3, 0.1); /* four standard deviations */
    lb_array *n = lb_random_normal(cx, zero, LB_F32, LB_SHAPE(512));
    CHECK_EQ_I(read(cx, n, got, 512), 512);
    mean = 0;
    for (int i = 0; i < 512; i++) {
        mean += got[i] / 512;
        square += got[i] * got[i] / 512;
    }
    CHECK_NEAR(mean, 0, 0.18);
    CHECK_NEAR(square, 1, 0.25);
    CHECK_EQ_I(read(cx, lb_random_permutation(cx, zero, 100), got, 100), 100);
    bool seen[100] = {false};
    for (int i = 0; i < 100; i++) {
        CHECK(got[i] >= 0 && got[i] < 100 && !seen[(int)got[i]]);
        seen[(int)got[i]] = true;
    }
    CHECK(!lb_error_status(cx));
}

/* Relative error of a format over all elements, for normally distributed values
 * like weights, with a margin over the measured one. Formats that are not
 * listed must have an error below that of zeros. */
static double may_be_off(const char *format)
{
    static const struct {
        const char *format;
        double off;
    } rows[] = {
        {"dense", 0},     {"int8", 0.015},    {"nf4", 0.12},   {"ternary", 0.7},
        {"binary", 0.7},  {"dynamic8", 0.03}, {"q8_0", 0.01},  {"q4_0", 0.13},
        {"iq4_nl", 0.11}, {"tq1_0", 0.85},    {"tq2_0", 0.85},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].format, format)) return rows[i].off;
    return 0.99;
}

/* Partial blocks of 256 and 64, rows that fill no panel. */
enum { ROWS = 70, LONG = 300, WIDE = 40 };

/* x @ q^T, and x^T @ q, for few and many rows of x, against the decoded q in
 * double precision, within 2^-18 of the sum of magnitudes. */
static void multiply(lb_ctx *cx, lb_array *q, const double *w, bool turned)
{
    static double x[WIDE * LONG];
    static const int64_t rows[] = {1, 2, 6, WIDE};
    const int64_t k = turned ? ROWS : LONG, n = turned ? LONG : ROWS;
    for (int r = 0; r < 4; r++) {
        lb_array *v =
            lb_random_normal(cx, (lb_key){6, 6}, LB_F32, LB_SHAPE(rows[r], k));
        lb_array *y = lb_matmul(cx, v, turned ? q : lb_transpose(cx, q, NULL));
        static double got[WIDE * LONG];
        CHECK_EQ_I(read(cx, v, x, WIDE * LONG), rows[r] * k);
        CHECK_EQ_I(read(cx, y, got, WIDE * LONG), rows[r] * n);
        for (int64_t i = 0; i < rows[r] * n; i++) {
            double want = 0, size = 0;
            for (int64_t kk = 0; kk < k; kk++) {
                const double t =
                    x[i / n * k + kk] *
                    (turned ? w[kk * n + i % n] : w[i % n * k + kk]);
                want += t;
                size += fabs(t);
            }
            CHECK_NEAR(got[i], want, 0x1p-18 * size);
        }
    }
}

static void codec(lb_ctx *cx, const lb_format *fmt)
{
    static double was[MOST], is[MOST];
    const bool dense = !strcmp(fmt->name, "dense");
    const int64_t n = (int64_t)ROWS * LONG;
    lb_array *x =
        lb_random_normal(cx, (lb_key){5, 5}, LB_F32, LB_SHAPE(ROWS, LONG));
    lb_array *q =
        dense ? x : lb_quantize(cx, x, &(lb_quant_config){.format = fmt->name});
    double off = 0, size = 0;
    CHECK_EQ_I(read(cx, x, was, MOST), n);
    CHECK_EQ_I(read(cx, q, is, MOST), n);
    CHECK_EQ_S(lb_format_of(q), fmt->name);
    for (int64_t i = 0; i < n; i++) {
        off += (is[i] - was[i]) * (is[i] - was[i]);
        size += was[i] * was[i];
    }
    if (check_fails(sqrt(off / size) <= may_be_off(fmt->name)))
        fprintf(stderr, "%s: off by %g: %s\n", fmt->name, sqrt(off / size),
                lb_error(cx));
    multiply(cx, q, is, false);
    multiply(cx, q, is, true);
    /* Scales in 8 bits: values stay close. */
    if (q && sample_has_scales(q)) {
        CHECK_EQ_I(read(cx, lb_quantize_scales(cx, q), was, MOST), n);
        for (int64_t i = 0; i < n; i++)
            CHECK_NEAR(was[i], is[i], 0.1);
    }
    if (check_fails(!lb_error_status(cx)))
        fprintf(stderr, "%s: %s\n", fmt->name, lb_error(cx));
    lb_clear(cx);
}

/* ---- every format under every primitive --------------------------------- */

enum { FEW = 4 }; /* samples of a primitive for each format */

static void cross(lb_ctx *cx)
{
    const lb_prim *prim;
    sample_format_list list = law_formats(cx);
    for (int k = 0; (prim = lb_primitive_at(cx, k)); k++) {
        sample_list samples = samples_of(prim->name, SAMPLES_SMALL);
        CHECK(samples.n > 0);
        for (int f = 0; f < list.n; f++) {
            const law_dress d = {&list.item[f], &sample_views[0]};
            int left = d.f->variant ? 1 : FEW;
            for (int i = 0; i < samples.n && left; i++) {
                const sample *s = &samples.item[i];
                const long before = law_run.combinations;
                law_dress dress[SAMPLE_MAX_IN] = {{NULL, NULL}};
                for (int j = 0; j < s->n_in; j++)
                    dress[j] = d;
                if (!s->n_in || !s->in[0].scaled)
                    law_transparent(cx, prim, s, dress);
                else if (d.f->fmt)
                    law_of_scales(cx, prim, s, &d);
                left -= law_run.combinations > before;
            }
        }
        samples_free(&samples);
    }
    sample_formats_free(&list);
}

/* ---- called primitives -------------------------------------------------- */

enum { MAX_PRIMS = 256 };

typedef struct {
    lb_layer layer; /* first: the layer is the whole */
    bool called[MAX_PRIMS];
} witness;

static lb_array *note(lb_ctx *cx, lb_layer *self, const lb_prim *prim, int n,
                      lb_array *const *in, const void *params)
{
    witness *w = (witness *)(void *)self;
    for (int k = 0; k < MAX_PRIMS && lb_primitive_at(cx, k); k++)
        if (lb_primitive_at(cx, k) == prim) w->called[k] = true;
    return lb_bind(cx, prim, n, in, params);
}

/* Primitives themselves, not what they are composed of. */
static bool as_it_is(const lb_layer *self, const lb_prim *prim, int n,
                     lb_array *const *in)
{
    (void)self, (void)prim, (void)n, (void)in;
    return true;
}

static void every_primitive(lb_ctx *cx)
{
    witness w = {.layer = {.bind = note, .whole = as_it_is}};
    lb_push_layer(cx, &w.layer);
    unary(cx);
    binary(cx);
    ternary(cx);
    views(cx);
    blocks(cx);
    reductions(cx);
    rows(cx);
    products(cx);
    randoms(cx);
    const lb_format *fmt;
    for (int k = 0; (fmt = lb_format_at(cx, k)); k++)
        if (lb_can_quantize(cx, fmt->name) || k == 0) codec(cx, fmt);
    lb_pop_layer(cx);
    const lb_prim *prim;
    for (int k = 0; (prim = lb_primitive_at(cx, k)); k++)
        if (check_fails(k < MAX_PRIMS && w.called[k]))
            fprintf(stderr, "%s was not called\n", prim->name);
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 2;
    for (int l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++) {
        if (!lb_level_available((lb_level)l)) continue;
        const char *isa = lb_level_name((lb_level)l);
        lb_ctx *cx = lb_open(&(lb_options){.threads = threads, .isa = isa});
        CHECK(cx != NULL);
        if (!cx) continue;
        every_primitive(cx);
        CHECK(sample_add_outside(cx));
        cross(cx);
        printf("%s, %d threads: %ld combinations so far\n", isa, threads,
               law_run.combinations);
        lb_close(cx);
    }
    return check_report("smoke");
}
