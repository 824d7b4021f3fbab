/* seed_gradients.c - group 8: gradients of composed functions.
 *
 * A case says its function in words. They are looked up with each number in
 * them replaced by #; the numbers are parameters, in their order, so
 * (x - y)^3 is found where (x - y)^2 is.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seed_cases.h"

enum { MAX_ARGS = 8, MAX_NUMBERS = 8, MAX_WORDS = 256 };

typedef struct function {
    lb_ctx *cx;
    const char *name[MAX_ARGS]; /* of the arguments */
    lb_array *const *arg;
    int n;
    double number[MAX_NUMBERS];
} function;

/* ---- words of the functions ---------------------------------------------- */

static lb_array *arg(const function *f, const char *name)
{
    for (int i = 0; i < f->n; i++) {
        if (!strcmp(f->name[i], name)) return f->arg[i];
    }
    return NULL;
}
#define A(NAME) arg(f, NAME)
#define CX      f->cx

static lb_array *number(const function *f, int i)
{
    return lb_scalar(CX, f->number[i]);
}

static lb_array *power(const function *f, lb_array *x, int i)
{
    return lb_integer_pow(CX, x, (int)f->number[i]);
}

static lb_array *sum(const function *f, lb_array *x)
{
    return lb_reduce_sum(CX, x, NULL);
}

static lb_array *mean(const function *f, lb_array *x)
{
    return lb_mean(CX, x, NULL, false);
}

/* Along axis -number i, which stays. */
static lb_array *mean_along(const function *f, lb_array *x, int i)
{
    lb_axes axes = {1, {-(int)f->number[i]}};
    return lb_mean(CX, x, &axes, true);
}

static lb_array *max_with(const function *f, lb_array *x, int i)
{
    return lb_max(CX, x, number(f, i));
}

static lb_array *mul(const function *f, lb_array *x, lb_array *y)
{
    return lb_mul(CX, x, y);
}

static lb_array *dot(const function *f, lb_array *x, lb_array *y)
{
    return lb_matmul(CX, x, y);
}

/* mean((x - y)^number i) */
static lb_array *error(const function *f, lb_array *x, int i)
{
    return mean(f, power(f, lb_sub(CX, x, A("y")), i));
}

static lb_array *quantized(const function *f, lb_array *w, const char *format,
                           int64_t block)
{
    const lb_quant_config config = {.struct_size = sizeof(config),
                                    .format = format,
                                    .block_size = block,
                                    .dtype = lb_dtype_of(w),
                                    .compat = LB_COMPAT_SEED};
    return lb_straight_through(CX, w, &config);
}

static lb_array *conv(const function *f, lb_array *x, lb_array *w,
                      int64_t stride, int64_t padding)
{
    const lb_conv_dims dims = {.lhs = "b01f",
                               .rhs = "01io",
                               .out = "b01f",
                               .stride = {stride, stride},
                               .pad_lo = {padding, padding},
                               .pad_hi = {padding, padding}};
    return lb_conv_general_dilated(CX, x, w, &dims);
}

/* log(sum(exp(x - max))) + max along an axis, which goes */
static lb_array *log_sum_exp(const function *f, lb_array *x, int axis)
{
    const lb_axes axes = {1, {axis}};
    lb_array *const m = lb_reduce_max(CX, x, &axes);
    lb_array *const e = lb_exp(CX, lb_sub(CX, x, lb_expand(CX, m, axis)));
    return lb_add(CX, lb_log(CX, lb_reduce_sum(CX, e, &axes)), m);
}

/* ---- the functions ------------------------------------------------------- */

static lb_array *linear(const function *f)
{
    return error(f, lb_add(CX, dot(f, A("x"), A("w")), A("b")), 0);
}

static lb_array *cross_entropy(const function *f)
{
    const lb_axes last = {1, {1}};
    lb_array *const z = dot(f, A("x"), A("w"));
    lb_array *const picked = lb_reduce_sum(CX, mul(f, z, A("onehot")), &last);
    return mean(f, lb_sub(CX, log_sum_exp(f, z, 1), picked));
}

static lb_array *mlp(const function *f)
{
    lb_array *const h = lb_add(CX, dot(f, A("x"), A("w1")), A("b1"));
    lb_array *const z = dot(f, max_with(f, h, 0), A("w2"));
    return error(f, lb_add(CX, z, A("b2")), 1);
}

/* x / sqrt(mean(x^2, -1) + eps), numbers from i on */
static lb_array *unit(const function *f, lb_array *x, int i)
{
    lb_array *const m = mean_along(f, power(f, x, i), i + 1);
    return lb_div(CX, x, lb_sqrt(CX, lb_add(CX, m, number(f, i + 2))));
}

static lb_array *layer_norm(const function *f)
{
    lb_array *const u = lb_sub(CX, A("x"), mean_along(f, A("x"), 0));
    lb_array *const y = lb_add(CX, mul(f, unit(f, u, 1), A("g")), A("b"));
    return sum(f, mul(f, A("c"), y));
}

static lb_array *rms_norm(const function *f)
{
    return sum(f, mul(f, A("c"), mul(f, unit(f, A("x"), 0), A("g"))));
}

static lb_array *attention(const function *f)
{
    lb_array *const z = dot(f, A("q"), lb_transpose(CX, A("k"), NULL));
    lb_array *const s =
        lb_softmax(CX, lb_div(CX, z, lb_scalar(CX, sqrt(f->number[0]))), -1);
    return sum(f, mul(f, A("c"), dot(f, s, A("v"))));
}

static lb_array *conv_relu(const function *f)
{
    lb_array *const z =
        conv(f, A("x"), A("w"), (int64_t)f->number[3], (int64_t)f->number[4]);
    return lb_div(CX, sum(f, power(f, max_with(f, z, 0), 1)), number(f, 2));
}

static lb_array *embedding(const function *f)
{
    return sum(f, mul(f, A("c"), lb_embedding(CX, A("t"), A("idx"))));
}

static lb_array *structural(const function *f)
{
    lb_array *const in[] = {lb_transpose(CX, A("a"), NULL),
                            lb_transpose(CX, A("b"), NULL)};
    const int64_t dim[] = {(int64_t)f->number[1], -(int64_t)f->number[2]};
    lb_array *const y = lb_concatenate(CX, in, 2, (int)f->number[0]);
    return sum(f, mul(f, A("c"), lb_reshape(CX, y, lb_shape_make(2, dim))));
}

static lb_array *powers(const function *f)
{
    return sum(f, mul(f, A("c"), lb_pow(CX, A("x"), A("p"))));
}

static lb_array *log_ratio(const function *f)
{
    return sum(f, mul(f, A("c"), lb_log(CX, lb_div(CX, A("a"), A("b")))));
}

static lb_array *exp_outer(const function *f)
{
    lb_array *const d =
        lb_sub(CX, lb_expand(CX, A("a"), 1), lb_expand(CX, A("b"), 0));
    return sum(f, mul(f, lb_exp(CX, d), A("c")));
}

static lb_array *polynomial(const function *f)
{
    lb_array *const low = lb_integer_pow(CX, A("x"), -(int)f->number[2]);
    lb_array *const y =
        lb_sub(CX, power(f, A("x"), 0), mul(f, number(f, 1), low));
    return sum(f, mul(f, A("c"), y));
}

static lb_array *sqrt_product(const function *f)
{
    return sum(f, lb_sqrt(CX, mul(f, A("a"), A("b"))));
}

static lb_array *larger(const function *f)
{
    return sum(f, mul(f, A("c"), lb_max(CX, A("a"), A("b"))));
}

static lb_array *largest(const function *f)
{
    const lb_axes axes = {1, {(int)f->number[0]}};
    return sum(f, mul(f, A("c"), lb_reduce_max(CX, A("x"), &axes)));
}

static lb_array *log_sums(const function *f)
{
    lb_array *const y = log_sum_exp(f, A("x"), (int)f->number[0]);
    return sum(f, mul(f, A("c"), y));
}

static lb_array *rounded(const function *f)
{
    lb_array *const x = lb_convert(CX, A("x"), LB_BF16);
    return sum(f, mul(f, A("c"), lb_convert(CX, power(f, x, 0), LB_F32)));
}

static lb_array *ste_int8(const function *f)
{
    return error(f, dot(f, A("x"), quantized(f, A("w"), "int8", 0)), 0);
}

static lb_array *ste_nf4(const function *f)
{
    lb_array *const w = quantized(f, A("w"), "nf4", (int64_t)f->number[0]);
    return error(f, dot(f, A("x"), w), 1);
}

static lb_array *ste_ternary(const function *f)
{
    return error(f, dot(f, A("x"), quantized(f, A("w"), "ternary", 0)), 0);
}

static lb_array *ste_binary(const function *f)
{
    return error(f, dot(f, A("x"), quantized(f, A("w"), "binary", 0)), 0);
}

static lb_array *ste_two(const function *f)
{
    lb_array *const h = dot(f, A("x"), quantized(f, A("w1"), "int8", 0));
    lb_array *const w = quantized(f, A("w2"), "nf4", (int64_t)f->number[1]);
    return error(f, dot(f, max_with(f, h, 0), w), 2);
}

static lb_array *frozen_int8(const function *f)
{
    lb_array *const h = dot(f, A("x"), quantized(f, A("w"), "int8", 0));
    return mean(f, power(f, max_with(f, h, 0), 1));
}

static lb_array *frozen_nf4(const function *f)
{
    lb_array *const w = quantized(f, A("w"), "nf4", (int64_t)f->number[0]);
    return mean(f, power(f, max_with(f, dot(f, A("x"), w), 1), 2));
}

/* As that above it in the list: one step, padded by one. */
static lb_array *frozen_conv(const function *f)
{
    lb_array *const w = quantized(f, A("w"), "int8", 0);
    lb_array *const y = conv(f, A("x"), w, 1, 1);
    return lb_div(CX, sum(f, power(f, y, 0)), number(f, 1));
}

static lb_array *adapter(const function *f)
{
    lb_array *const base = dot(f, A("x"), quantized(f, A("w"), "int8", 0));
    lb_array *const low = dot(f, dot(f, A("x"), A("a")), A("b"));
    return error(f, lb_add(CX, base, low), 0);
}

/* clang-format off */
static const struct {
    const char *words;
    lb_array *(*run)(const function *);
} functions[] = {
    {"mean((x@w + b - y)^#)", linear},
    {"z = x@w; mean(log(sum_j exp(z_j - max z)) + max z - z[label])  "
     "(label picked by a one-hot product)", cross_entropy},
    {"mean((max(x@w1 + b1, #)@w2 + b2 - y)^#)", mlp},
    {"u = x - mean(x,-#); sum(c * (u / sqrt(mean(u^#,-#) + #) * g + b))",
     layer_norm},
    {"sum(c * x / sqrt(mean(x^#,-#) + #) * g)", rms_norm},
    {"s = softmax(q@k^T / sqrt(#)); sum(c * (s@v))", attention},
    {"sum(max(conv(x, w), #)^#) / #, NHWC x HWIO, stride #, padding #",
     conv_relu},
    {"sum(c * t[idx]); rows may repeat", embedding},
    {"sum(c * reshape(concat(a^T, b^T; axis #), (#, -#)))", structural},
    {"sum(c * x^p), x > #", powers},
    {"sum(c * log(a / b)), a, b > #", log_ratio},
    {"sum(exp(a[:,None] - b[None,:]) * c)", exp_outer},
    {"sum(c * (x^# - # x^-#)), x > #", polynomial},
    {"sum(sqrt(a * b)), a, b > #", sqrt_product},
    {"sum(c * max(a, b)); where a == b each side gets half", larger},
    {"sum(c * max(x, axis #)); equal maxima share the gradient equally",
     largest},
    {"sum(c * (log(sum(exp(x - max), #)) + max))", log_sums},
    {"sum(c * f32(bf16(x)^#)): the product is a bf16 product, the gradient is "
     "rounded to bf16 on its way back", rounded},
    {"mean((x @ ste_int8(w) - y)^#)", ste_int8},
    {"mean((x @ ste_nf4(w, block #) - y)^#), exact table", ste_nf4},
    {"mean((x @ ste_ternary(w) - y)^#), quantize()'s rule", ste_ternary},
    {"mean((x @ ste_binary(w) - y)^#)", ste_binary},
    {"mean((max(x @ ste_int8(w1), #) @ ste_nf4(w2, block #) - y)^#), exact "
     "table", ste_two},
    {"mean(max(x @ int8(w), #)^#), w quantized once, no gradient for it",
     frozen_int8},
    {"mean(max(x @ nf4(w, block #), #)^#), exact table", frozen_nf4},
    {"sum(conv(x, int8(w))^#)/#", frozen_conv},
    {"mean((x @ int8(w) + (x@a)@b - y)^#)", adapter},
};
/* clang-format on */

/* ---- words and arguments ------------------------------------------------- */

/* The words with # for each number that is no part of a name. */
static bool read_words(const char *said, char *words, double *numbers, note *n)
{
    int count = 0;
    size_t at = 0;
    char before = ' ';
    while (*said) {
        const bool named = isalnum((unsigned char)before) || before == '_';
        char *end = NULL;
        if (at + 1 >= MAX_WORDS || count == MAX_NUMBERS) {
            return note_skip(n, "an expression too long to be known here");
        }
        if (isdigit((unsigned char)*said) && !named) {
            numbers[count++] = strtod(said, &end);
            said = end;
            words[at++] = before = '#';
        } else {
            words[at++] = before = *said++;
        }
    }
    words[at] = 0;
    return true;
}

typedef struct task {
    function f;
    lb_array *(*run)(const function *);
} task;

static lb_array *call(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    function f = ((const task *)user)->f;
    f.cx = cx;
    f.arg = args;
    f.n = n;
    return ((const task *)user)->run(&f);
}

static bool add_input(seed_case *s, task *t, const char *name, lb_array **in)
{
    const json_t *const inputs = json_object_get(s->it, "inputs");
    given g = {0};
    for (int i = 0; i < t->f.n; i++) {
        if (!strcmp(t->f.name[i], name)) return true;
    }
    if (t->f.n == MAX_ARGS) return note_fail(s->check.note, "too many inputs");
    if (!seed_array(&s->check, json_object_get(inputs, name), &g)) {
        return false;
    }
    in[t->f.n] = g.a;
    t->f.name[t->f.n++] = name;
    given_free(&g);
    return true;
}

/* Those to differentiate come first. */
static bool read_inputs(seed_case *s, task *t, lb_array **in, int *n_grad)
{
    const json_t *const of =
        json_object_get(json_object_get(s->it, "params"), "differentiate");
    json_t *const inputs = json_object_get(s->it, "inputs");
    const char *name;
    json_t *ref;
    for (size_t i = 0; i < json_array_size(of); i++) {
        name = json_string_value(json_array_get(of, i));
        if (!name) return note_fail(s->check.note, "differentiate what?");
        if (!add_input(s, t, name, in)) return false;
    }
    *n_grad = t->f.n;
    json_object_foreach(inputs, name, ref)
    {
        if (!add_input(s, t, name, in)) return false;
    }
    return true;
}

static bool check_value(seed_case *s, lb_array *y)
{
    checker *const c = &s->check;
    const json_t *const ref =
        json_object_get(json_object_get(s->it, "outputs"), "value");
    const json_t *const v = json_object_get(ref, "number");
    const double tol = json_number_value(json_object_get(ref, "tol"));
    if (!json_is_number(v)) return note_fail(c->note, "no value is expected");
    if (!y) return library_failed(c->cx, c->note, "value_and_grad");
    const double want = json_number_value(v);
    const double got = lb_item(c->cx, y);
    c->digest = digest_of(c->digest, &got, sizeof(got));
    return fabs(got - want) <= tol * fabs(want) ||
           note_fail(c->note, "the value is %.9g, not %.9g", got, want);
}

static bool check_gradients(seed_case *s, const task *t, lb_array **grad, int n)
{
    checker *const c = &s->check;
    const json_t *const outputs = json_object_get(s->it, "outputs");
    bool ok = true;
    for (int i = 0; ok && i < n; i++) {
        char name[64];
        given want = {0};
        snprintf(name, sizeof(name), "d_%.32s", t->f.name[i]);
        ok = seed_array(c, json_object_get(outputs, name), &want) &&
             check_array(c, name, grad[i], &want);
        given_free(&want);
    }
    return ok;
}

bool seed_gradients(seed_case *s)
{
    checker *const c = &s->check;
    const char *const said = json_string_value(
        json_object_get(json_object_get(s->it, "params"), "expression"));
    char words[MAX_WORDS];
    task t = {0};
    if (!said) return note_fail(c->note, "the case has no expression");
    if (!read_words(said, words, t.f.number, c->note)) return false;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (!strcmp(functions[i].words, words)) t.run = functions[i].run;
    }
    if (!t.run) return note_skip(c->note, "'%s' is not known here", words);
    lb_array *in[MAX_ARGS];
    lb_array *grad[MAX_ARGS];
    int n_grad = 0;
    if (!read_inputs(s, &t, in, &n_grad)) return false;
    lb_array *const y =
        lb_value_and_grad(c->cx, call, in, t.f.n, &t, grad, n_grad);
    return check_value(s, y) && check_gradients(s, &t, grad, n_grad);
}
