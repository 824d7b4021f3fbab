/* bench_elementwise.c - elementwise functions, reductions and gathers, compared
 * with memcpy.
 *
 *   bench_elementwise [-2] [beginning of a row's name]...
 *
 * Each row of the table is one call, on operands that fit in L2 (32 Ki
 * elements) and on large ones (16 Mi elements), at level ref and at the highest
 * level, in alternating rounds on one thread (-2: two). Prints ns per element
 * and GB/s (stored bytes read plus bytes written), fastest and median round.
 */
#include <stdint.h>
#include <string.h>

#include "bench.h"
#include "lowbit.h"

enum { SMALL = 128, COLS = 256, LARGE = 65536, LEVELS = 2 };

/* Operands of the rows. */
typedef struct {
    lb_ctx *cx;
    lb_array *x, *y; /* f32 in (-4, 4) */
    lb_array *positive, *half, *brain, *bools, *int8, *nf4, *index;
    char *to;
    int64_t n;
} operands;

typedef lb_array *row_fn(operands *);

#define UNARY(NAME, ON)                                                        \
    static lb_array *NAME##_##ON(operands *s)                                  \
    {                                                                          \
        return lb_##NAME(s->cx, s->ON);                                        \
    }
#define BINARY(NAME, ON, WITH)                                                 \
    static lb_array *NAME##_##ON##_##WITH(operands *s)                         \
    {                                                                          \
        return lb_##NAME(s->cx, s->ON, s->WITH);                               \
    }
#define REDUCE(NAME, ON, HOW, AXES)                                            \
    static lb_array *NAME##_##ON##_##HOW(operands *s)                          \
    {                                                                          \
        return lb_##NAME(s->cx, s->ON, AXES);                                  \
    }

UNARY(neg, x)
UNARY(abs, x)
UNARY(sign, x)
UNARY(exp, x)
UNARY(log, positive)
UNARY(tanh, x)
UNARY(logistic, x)
UNARY(erf, x)
UNARY(sqrt, positive)
UNARY(rsqrt, positive)
UNARY(expm1, x)
UNARY(log1p, positive)
UNARY(sin, x)
UNARY(floor, x)
UNARY(round, x)
UNARY(round_away, x)
UNARY(is_finite, x)
BINARY(add, x, y)
BINARY(mul, x, y)
BINARY(div, x, y)
BINARY(max, x, y)
BINARY(lt, x, y)
BINARY(eq, x, y)
BINARY(add, half, half)
BINARY(add, brain, brain)
UNARY(exp, brain)
UNARY(exp, int8)
UNARY(exp, nf4)
BINARY(add, int8, y)
BINARY(add, nf4, y)
BINARY(mul, nf4, int8)
UNARY(materialize, int8)
UNARY(materialize, nf4)
REDUCE(reduce_sum, x, rows, LB_AXES(1))
REDUCE(reduce_sum, x, columns, LB_AXES(0))
REDUCE(reduce_sum, x, all, NULL)
REDUCE(reduce_max, x, rows, LB_AXES(1))
REDUCE(reduce_max, x, columns, LB_AXES(0))
REDUCE(reduce_max, x, all, NULL)
REDUCE(reduce_sum, brain, rows, LB_AXES(1))
REDUCE(reduce_sum, int8, rows, LB_AXES(1))
REDUCE(reduce_sum, nf4, rows, LB_AXES(1))
REDUCE(reduce_sum, nf4, columns, LB_AXES(0))

static lb_array *argmax_x(operands *s)
{
    return lb_argmax(s->cx, s->x, 1, LB_I32);
}

static lb_array *select_x_y(operands *s)
{
    return lb_select(s->cx, s->bools, s->x, s->y);
}

static lb_array *clamp_x(operands *s)
{
    return lb_clamp(s->cx, lb_scalar(s->cx, -1), s->x, lb_scalar(s->cx, 1));
}

static lb_array *add_row(operands *s)
{
    lb_array *row =
        lb_slice(s->cx, s->y, (int64_t[]){0, 0}, (int64_t[]){1, COLS}, NULL);
    return lb_add(s->cx, s->x, row);
}

static lb_array *add_column(operands *s)
{
    lb_array *column = lb_slice(s->cx, s->y, (int64_t[]){0, 0},
                                (int64_t[]){s->n / COLS, 1}, NULL);
    return lb_add(s->cx, s->x, column);
}

static lb_array *integer_pow_x(operands *s)
{
    return lb_integer_pow(s->cx, s->x, 2);
}

static lb_array *softmax_x(operands *s)
{
    return lb_softmax(s->cx, s->x, 1);
}

static lb_array *take_x(operands *s)
{
    return lb_take(s->cx, s->x, s->index, 0);
}

static lb_array *take_nf4(operands *s)
{
    return lb_materialize(s->cx, lb_take(s->cx, s->nf4, s->index, 0));
}

static const struct row {
    const char *name;
    row_fn *run;  /* NULL: memcpy */
    double bytes; /* read and written per element */
} rows[] = {
    {"memcpy", NULL, 8},
    {"neg", neg_x, 8},
    {"abs", abs_x, 8},
    {"sign", sign_x, 8},
    {"exp", exp_x, 8},
    {"log", log_positive, 8},
    {"tanh", tanh_x, 8},
    {"logistic", logistic_x, 8},
    {"erf", erf_x, 8},
    {"sqrt", sqrt_positive, 8},
    {"rsqrt", rsqrt_positive, 8},
    {"expm1", expm1_x, 8},
    {"log1p", log1p_positive, 8},
    {"sin", sin_x, 8},
    {"floor", floor_x, 8},
    {"round", round_x, 8},
    {"round_away", round_away_x, 8},
    {"is_finite", is_finite_x, 5},
    {"integer_pow 2", integer_pow_x, 8},
    {"add", add_x_y, 12},
    {"add row", add_row, 8},
    {"add column", add_column, 8},
    {"mul", mul_x_y, 12},
    {"div", div_x_y, 12},
    {"max", max_x_y, 12},
    {"lt", lt_x_y, 9},
    {"eq", eq_x_y, 9},
    {"select", select_x_y, 13},
    {"clamp", clamp_x, 8},
    {"softmax", softmax_x, 8},
    {"f16 add", add_half_half, 6},
    {"bf16 add", add_brain_brain, 6},
    {"bf16 exp", exp_brain, 4},
    {"int8 materialize", materialize_int8, 5},
    {"int8 exp", exp_int8, 5},
    {"int8 add f32", add_int8_y, 9},
    {"nf4 materialize", materialize_nf4, 4.5625},
    {"nf4 exp", exp_nf4, 4.5625},
    {"nf4 add f32", add_nf4_y, 8.5625},
    {"nf4 mul int8", mul_nf4_int8, 5.5625},
    {"sum rows", reduce_sum_x_rows, 4},
    {"sum columns", reduce_sum_x_columns, 4},
    {"sum all", reduce_sum_x_all, 4},
    {"max rows", reduce_max_x_rows, 4},
    {"max columns", reduce_max_x_columns, 4},
    {"max all", reduce_max_x_all, 4},
    {"bf16 sum rows", reduce_sum_brain_rows, 2},
    {"int8 sum rows", reduce_sum_int8_rows, 1},
    {"nf4 sum rows", reduce_sum_nf4_rows, 0.5625},
    {"nf4 sum columns", reduce_sum_nf4_columns, 0.5625},
    {"argmax", argmax_x, 4},
    {"take", take_x, 8},
    {"nf4 take", take_nf4, 4.5625},
};
enum { N_ROWS = (int)(sizeof rows / sizeof *rows) };

/* ---- rounds ------------------------------------------------------------- */

typedef struct {
    operands *on;
    const struct row *row;
    int calls;
    double best;
} side;

static void run_once(side *s)
{
    operands *on = s->on;
    if (!s->row->run) {
        memcpy(on->to, lb_data(on->x), (size_t)on->n * 4);
        return;
    }
    lb_enter(on->cx);
    if (!s->row->run(on)) {
        fprintf(stderr, "%s: %s\n", s->row->name, lb_error(on->cx));
        exit(1);
    }
    lb_leave(on->cx);
}

static double one_round(void *arg)
{
    side *s = arg;
    const double start = bench_now();
    for (int i = 0; i < s->calls; i++)
        run_once(s);
    const double t = (bench_now() - start) / s->calls;
    if (t < s->best) s->best = t;
    return t;
}

/* Approximate ns of a round. */
static int calls_for(side *s)
{
    const double start = bench_now();
    run_once(s);
    const double t = bench_now() - start;
    return t > 2e6 ? 1 : (int)(2e6 / (t + 1)) + 1;
}

static void print_row(const struct row *row, operands *const *on)
{
    side s[LEVELS];
    bench_side sides[LEVELS];
    const int rounds = on[0]->n > 1 << 20 ? 9 : 15;
    for (int l = 0; l < LEVELS; l++) {
        s[l] = (side){on[l], row, 1, (double)INFINITY};
        run_once(&s[l]);
        s[l].calls = calls_for(&s[l]);
        sides[l] = (bench_side){.round = one_round, .arg = &s[l]};
    }
    bench_alternate(sides, LEVELS, rounds);
    const double n = (double)on[0]->n, bytes = n * row->bytes;
    printf("%-17s", row->name);
    for (int l = 0; l < LEVELS; l++)
        printf(" |%7.3f %6.1f (%5.1f)", s[l].best / n, bytes / s[l].best,
               bytes / sides[l].figure);
    printf("\n");
    fflush(stdout);
}

/* ---- operands ----------------------------------------------------------- */

static lb_array *quantized(lb_ctx *cx, lb_array *x, const char *format)
{
    lb_quant_config config = {.format = format};
    return lb_quantize(cx, x, &config);
}

static void open_operands(operands *s, const char *isa, int threads, int64_t m)
{
    lb_options options = {.threads = threads, .isa = isa};
    *s = (operands){.cx = lb_open(&options), .n = m * COLS};
    lb_ctx *cx = s->cx;
    const lb_shape shape = LB_SHAPE(m, COLS);
    s->x = lb_random_uniform(cx, (lb_key){1, 0}, LB_F32, shape, -4, 4);
    s->y = lb_random_uniform(cx, (lb_key){2, 0}, LB_F32, shape, -4, 4);
    s->positive = lb_random_uniform(cx, (lb_key){3, 0}, LB_F32, shape, 0, 9);
    s->half = lb_convert(cx, s->x, LB_F16);
    s->brain = lb_convert(cx, s->x, LB_BF16);
    s->bools = lb_materialize(cx, lb_lt(cx, s->x, s->y));
    s->int8 = quantized(cx, s->x, "int8");
    s->nf4 = quantized(cx, s->x, "nf4");
    s->index = lb_convert(cx,
                          lb_random_uniform(cx, (lb_key){4, 0}, LB_F32,
                                            LB_SHAPE(m), 0, (double)m),
                          LB_I32);
    s->to = calloc((size_t)s->n, 4);
    if (!s->index || !s->nf4 || !s->bools || !s->to) {
        fprintf(stderr, "%s\n", lb_error(cx));
        exit(1);
    }
}

static bool wanted(const char *name, int argc, char **argv)
{
    bool any = false;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') continue;
        any = true;
        if (!strncmp(name, argv[i], strlen(argv[i]))) return true;
    }
    return !any;
}

int main(int argc, char **argv)
{
    int threads = 1;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "-2")) threads = 2;
    const int64_t sizes[] = {SMALL, LARGE};
    for (int z = 0; z < 2; z++) {
        operands level[LEVELS];
        open_operands(&level[0], "ref", threads, sizes[z]);
        open_operands(&level[1], NULL, threads, sizes[z]);
        printf("%-17s | %-21s | %-21s\n%-17s | %-21s | %-21s\n",
               z ? "16 Mi elements" : "32 Ki elements", "ref", "best level", "",
               "ns/el.   GB/s (median)", "ns/el.   GB/s (median)");
        for (int i = 0; i < N_ROWS; i++)
            if (wanted(rows[i].name, argc, argv))
                print_row(&rows[i], (operands *[]){&level[0], &level[1]});
        for (int l = 0; l < LEVELS; l++) {
            free(level[l].to);
            lb_close(level[l].cx);
        }
    }
    return 0;
}
