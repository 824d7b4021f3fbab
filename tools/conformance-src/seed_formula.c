/* seed_formula.c - evaluates functions of arrays, given as formulas.
 *
 *     formula  name = sum; .. ; sum, and a comment
 *     sum      products separated by + and -
 *     product  factors separated by *, / and @, of equal precedence, left to
 *              right
 *     factor   -factor | number | number factor | atom, followed by ^factor,
 *              ^T, [index] (of rows), [:,None], [label] (by a one-hot product)
 *     atom     name | (sum) | function(sum, ..)
 *
 * Functions are those of the tables below, names of dtypes, which convert, and
 * names of formats, which quantize, also with the prefix ste_: int8(w, axis 0),
 * ste_nf4(w, block 16). ste alone is the case's estimator. A mean along an axis
 * keeps the axis, other reductions do not. Two notations of a log-sum-exp do
 * not follow this grammar and are matched literally.
 *
 * A comment follows a comma, a semicolon or a colon, or is in parentheses. It
 * may specify the stride and padding of convolutions (NHWC x HWIO; default: 1),
 * and that nf4 is decoded by its polynomial.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "seed_cases.h"

enum { MAX_LOCALS = 8, MAX_PARTS = 8, MAX_DEPTH = 64 };

/* A word of letters, digits and underscores. */
typedef struct formula_word {
    char s[32];
} formula_word;

typedef struct reader {
    lb_ctx *cx;
    const seed_formula *f;
    lb_array *const *arg;
    const char *p;
    int depth;
    int locals;
    struct {
        formula_word name;
        lb_array *a;
    } local[MAX_LOCALS];
} reader;

static lb_array *read_sum(reader *r);
static lb_array *read_factor(reader *r);

/* ---- text ---------------------------------------------------------------- */

static lb_array *unknown(reader *r)
{
    note_skip(r->f->note, "'%s' is not known here, from '%s' on", r->f->words,
              r->p);
    r->p = "";
    return NULL;
}

static char peek(reader *r)
{
    while (*r->p == ' ') {
        r->p++;
    }
    return *r->p;
}

static bool take(reader *r, char want)
{
    if (peek(r) != want) return false;
    r->p++;
    return true;
}

static bool is_word(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

static bool take_word(reader *r, formula_word *out)
{
    size_t n = 0;
    if (isdigit((unsigned char)peek(r))) return false;
    while (is_word(r->p[n])) {
        n++;
    }
    if (n == 0 || n >= sizeof(out->s)) return false;
    memcpy(out->s, r->p, n);
    out->s[n] = 0;
    r->p += n;
    return true;
}

/* Exactly this word. */
static bool take_named(reader *r, const char *name)
{
    const char *const before = r->p;
    formula_word w;
    if (take_word(r, &w) && !strcmp(w.s, name)) return true;
    r->p = before;
    return false;
}

static bool take_number(reader *r, double *out)
{
    char *end = NULL;
    const char ch = peek(r);
    const char next = ch ? r->p[1] : ch;
    if (!isdigit((unsigned char)ch) &&
        (ch != '-' || !isdigit((unsigned char)next))) {
        return false;
    }
    *out = strtod(r->p, &end);
    r->p = end;
    return true;
}

static bool take_int(reader *r, int64_t *out)
{
    double v = 0;
    if (!take_number(r, &v) || v != rint(v) || fabs(v) > 1e9) return false;
    *out = (int64_t)v;
    return true;
}

/* [axis] number */
static bool take_axis(reader *r, int *out)
{
    int64_t axis = 0;
    take_named(r, "axis");
    if (!take_int(r, &axis)) return false;
    *out = (int)axis;
    return true;
}

/* Matches the text literally, where % is a name, the same one each time, and #
 * an integer. */
static bool take_phrase(reader *r, const char *phrase, formula_word *name,
                        int64_t *number)
{
    const char *const before = r->p;
    bool ok = true;
    name->s[0] = 0;
    for (; ok && *phrase; phrase++) {
        size_t n = 0;
        if (*phrase == '#') {
            ok = take_int(r, number);
        } else if (*phrase == '%') {
            while (isalnum((unsigned char)r->p[n]) && n + 1 < sizeof(name->s)) {
                n++;
            }
            ok = n && (!name->s[0] ||
                       (strlen(name->s) == n && !strncmp(name->s, r->p, n)));
            memcpy(name->s, r->p, ok ? n : 0);
            name->s[ok ? n : 0] = 0;
            r->p += n;
        } else {
            ok = *r->p == *phrase;
            r->p += ok;
        }
    }
    ok = ok && !is_word(*r->p);
    if (!ok) r->p = before;
    return ok;
}

/* The number after a word of the comment (default: 1). */
static bool remark(reader *r, const char *name, int64_t *out)
{
    reader at = *r;
    const char *const found = strstr(r->f->words, name);
    *out = 1;
    if (!found) return true;
    at.p = found + strlen(name);
    return take_int(&at, out);
}

static lb_array *named(const reader *r, const char *name)
{
    for (int i = 0; i < r->locals; i++) {
        if (!strcmp(r->local[i].name.s, name)) return r->local[i].a;
    }
    for (int i = 0; i < r->f->n; i++) {
        if (!strcmp(r->f->name[i], name)) return r->arg[i];
    }
    return NULL;
}

/* ---- functions ----------------------------------------------------------- */

static const struct {
    const char *name;
    lb_array *(*run)(lb_ctx *cx, lb_array *x);
} of_elements[] = {
    {"abs", lb_abs},
    {"cos", lb_cos},
    {"erf", lb_erf},
    {"exp", lb_exp},
    {"expm1", lb_expm1},
    {"floor", lb_floor},
    {"gelu", lb_gelu_tanh},
    {"log", lb_log},
    {"log1p", lb_log1p},
    {"logistic", lb_logistic},
    {"relu", lb_relu},
    {"round", lb_round},
    {"rsqrt", lb_rsqrt},
    {"sigmoid", lb_logistic},
    {"sign", lb_sign},
    {"silu", lb_silu},
    {"sin", lb_sin},
    {"sqrt", lb_sqrt},
    {"stop_gradient", lb_stop_gradient},
    {"tanh", lb_tanh},
};

static lb_array *mean(lb_ctx *cx, lb_array *x, const lb_axes *axes)
{
    return lb_mean(cx, x, axes, axes != NULL);
}

/* between: the function of two arrays with the same name. */
static const struct {
    const char *name;
    lb_array *(*run)(lb_ctx *cx, lb_array *x, const lb_axes *axes);
    lb_array *(*between)(lb_ctx *cx, lb_array *x, lb_array *y);
} reductions[] = {
    {"max", lb_reduce_max, lb_max}, {"mean", mean, NULL},
    {"min", lb_reduce_min, lb_min}, {"prod", lb_reduce_prod, NULL},
    {"sum", lb_reduce_sum, NULL},
};

/* log(sum(exp(x - max))) + max along an axis, which is removed. */
static lb_array *log_sum_exp(lb_ctx *cx, lb_array *x, int axis)
{
    const lb_axes axes = {1, {axis}};
    lb_array *const m = lb_reduce_max(cx, x, &axes);
    lb_array *const e = lb_exp(cx, lb_sub(cx, x, lb_expand(cx, m, axis)));
    return lb_add(cx, lb_log(cx, lb_reduce_sum(cx, e, &axes)), m);
}

static const struct {
    const char *name;
    lb_array *(*run)(lb_ctx *cx, lb_array *x, int axis);
} along[] = {{"log_softmax", lb_log_softmax},
             {"logsumexp", log_sum_exp},
             {"softmax", lb_softmax}};

#define COUNT(LIST) (sizeof(LIST) / sizeof((LIST)[0]))

/* All of these begin after the opening parenthesis and stop before the closing
 * one. */

static lb_array *reduce(reader *r, size_t i)
{
    lb_axes axes = {1, {0}};
    lb_array *const x = read_sum(r);
    if (!x || !take(r, ',')) return reductions[i].run(r->cx, x, NULL);
    const char *const before = r->p;
    if (reductions[i].between && !take_named(r, "axis")) {
        return reductions[i].between(r->cx, x, read_sum(r));
    }
    r->p = before;
    return take_axis(r, &axes.axis[0]) ? reductions[i].run(r->cx, x, &axes)
                                       : unknown(r);
}

static lb_array *run_along(reader *r, size_t i)
{
    int axis = -1;
    lb_array *const x = read_sum(r);
    if (x && take(r, ',') && !take_axis(r, &axis)) return unknown(r);
    return along[i].run(r->cx, x, axis);
}

static lb_array *quantize(reader *r, const char *format)
{
    lb_quant_config config = {.struct_size = sizeof(config),
                              .format = format,
                              .compat = LB_COMPAT_EFORMER};
    lb_array *const x = read_sum(r);
    while (x && take(r, ',')) {
        const bool ok = take_named(r, "block")
                            ? take_int(r, &config.block_size)
                            : take_named(r, "axis") && !config.axes.n++ &&
                                  take_axis(r, &config.axes.axis[0]);
        if (!ok) return unknown(r);
    }
    if (!strcmp(format, "nf4") && strstr(r->f->words, "poly")) {
        config.decode = LB_DECODE_POLY;
    }
    config.dtype = lb_dtype_of(x);
    return x ? lb_straight_through(r->cx, x, &config) : NULL;
}

static bool is_format(lb_ctx *cx, const char *name)
{
    const char *known = "";
    for (int k = 0; known; k++) {
        known = lb_format_name(cx, k);
        if (known && !strcmp(known, name)) return strcmp(name, "dense") != 0;
    }
    return false;
}

static lb_array *concatenate(reader *r)
{
    lb_array *in[MAX_PARTS];
    int n = 0;
    int axis = 0;
    do {
        in[n] = read_sum(r);
        if (!in[n]) return NULL;
        n++;
    } while (n < MAX_PARTS && take(r, ','));
    if (!take(r, ';') || !take_axis(r, &axis)) return unknown(r);
    return lb_concatenate(r->cx, in, n, axis);
}

static lb_array *reshape(reader *r)
{
    int64_t dim[LB_MAX_RANK];
    int n = 0;
    lb_array *const x = read_sum(r);
    if (!x) return NULL;
    if (!take(r, ',') || !take(r, '(')) return unknown(r);
    while (n < LB_MAX_RANK && take_int(r, &dim[n])) {
        n++;
        if (!take(r, ',')) break;
    }
    if (!take(r, ')')) return unknown(r);
    return lb_reshape(r->cx, x, lb_shape_make(n, dim));
}

static lb_array *convolve(reader *r)
{
    int64_t s = 0;
    int64_t p = 0;
    lb_array *const x = read_sum(r);
    if (!x) return NULL;
    if (!take(r, ',')) return unknown(r);
    lb_array *const w = read_sum(r);
    if (!remark(r, "stride", &s) || !remark(r, "padding", &p)) {
        return unknown(r);
    }
    const lb_conv_dims dims = {.lhs = "b01f",
                               .rhs = "01io",
                               .out = "b01f",
                               .stride = {s, s},
                               .pad_lo = {p, p},
                               .pad_hi = {p, p}};
    return lb_conv_general_dilated(r->cx, x, w, &dims);
}

static lb_array *run_function(reader *r, const char *name)
{
    const char *const format = strncmp(name, "ste_", 4) ? name : name + 4;
    for (size_t i = 0; i < COUNT(of_elements); i++) {
        if (!strcmp(of_elements[i].name, name)) {
            return of_elements[i].run(r->cx, read_sum(r));
        }
    }
    for (size_t i = 0; i < COUNT(reductions); i++) {
        if (!strcmp(reductions[i].name, name)) return reduce(r, i);
    }
    for (size_t i = 0; i < COUNT(along); i++) {
        if (!strcmp(along[i].name, name)) return run_along(r, i);
    }
    if (!strcmp(name, "concat")) return concatenate(r);
    if (!strcmp(name, "reshape")) return reshape(r);
    if (!strcmp(name, "conv")) return convolve(r);
    if (!strcmp(name, "ste") && r->f->ste) {
        return lb_straight_through(r->cx, read_sum(r), r->f->ste);
    }
    if (is_format(r->cx, format)) return quantize(r, format);
    const lb_dtype dtype = dtype_named(name);
    return dtype ? lb_convert(r->cx, read_sum(r), dtype) : unknown(r);
}

/* ---- formulas ------------------------------------------------------------ */

static lb_array *read_atom(reader *r)
{
    formula_word name;
    int64_t axis = -1;
    lb_array *a = NULL;
    peek(r);
    if (take_phrase(r, "log(sum_j exp(%_j - max %)) + max %", &name, &axis) ||
        take_phrase(r, "log(sum(exp(% - max), #)) + max", &name, &axis)) {
        a = named(r, name.s);
        return a ? log_sum_exp(r->cx, a, (int)axis) : unknown(r);
    }
    const char *const before = r->p;
    if (take(r, '(')) {
        a = read_sum(r);
    } else if (!take_word(r, &name)) {
        return unknown(r);
    } else if (take(r, '(')) {
        a = run_function(r, name.s);
    } else {
        a = named(r, name.s);
        r->p = a ? r->p : before;
        return a ? a : unknown(r);
    }
    return !a || take(r, ')') ? a : unknown(r);
}

/* After a bracket: [:,None], [rows], or [label] with the labels in `onehot`. */
static lb_array *read_index(reader *r, lb_array *a)
{
    const lb_axes last = {1, {-1}};
    lb_array *const onehot = named(r, "onehot");
    const char *const inside = r->p;
    formula_word name;
    int axis = 0;
    if (take_word(r, &name) && strcmp(name.s, "None") != 0) {
        lb_array *const rows = named(r, name.s);
        if ((!rows && !onehot) || !take(r, ']')) return unknown(r);
        return rows ? lb_embedding(r->cx, a, rows)
                    : lb_reduce_sum(r->cx, lb_mul(r->cx, a, onehot), &last);
    }
    r->p = inside;
    do {
        if (take_named(r, "None")) {
            a = lb_expand(r->cx, a, axis);
        } else if (!take(r, ':')) {
            return unknown(r);
        }
        axis++;
    } while (take(r, ','));
    return take(r, ']') ? a : unknown(r);
}

static lb_array *read_power(reader *r, lb_array *a)
{
    double v = 0;
    if (take_named(r, "T")) return lb_transpose(r->cx, a, NULL);
    if (!take_number(r, &v)) return lb_pow(r->cx, a, read_factor(r));
    return v == rint(v) && fabs(v) < 1e6
               ? lb_integer_pow(r->cx, a, (int)v)
               : lb_pow(r->cx, a, lb_scalar(r->cx, v));
}

static lb_array *read_plain_factor(reader *r)
{
    double v = 0;
    lb_array *a = NULL;
    if (isdigit((unsigned char)peek(r))) {
        take_number(r, &v);
        a = lb_scalar(r->cx, v);
        const char next = peek(r);
        if (next == '(' || isalpha((unsigned char)next)) {
            return lb_mul(r->cx, a, read_factor(r));
        }
    } else if (take(r, '-')) {
        return lb_neg(r->cx, read_factor(r));
    } else {
        a = read_atom(r);
    }
    for (;;) {
        if (a && take(r, '[')) {
            a = read_index(r, a);
        } else if (a && take(r, '^')) {
            a = read_power(r, a);
        } else {
            return a;
        }
    }
}

static lb_array *read_factor(reader *r)
{
    if (r->depth == MAX_DEPTH) return unknown(r);
    r->depth++;
    lb_array *const a = read_plain_factor(r);
    r->depth--;
    return a;
}

static lb_array *read_product(reader *r)
{
    lb_array *a = read_factor(r);
    for (;;) {
        if (a && take(r, '*')) {
            a = lb_mul(r->cx, a, read_factor(r));
        } else if (a && take(r, '/')) {
            a = lb_div(r->cx, a, read_factor(r));
        } else if (a && take(r, '@')) {
            a = lb_matmul(r->cx, a, read_factor(r));
        } else {
            return a;
        }
    }
}

static lb_array *read_sum(reader *r)
{
    lb_array *a = read_product(r);
    for (;;) {
        if (a && take(r, '+')) {
            a = lb_add(r->cx, a, read_product(r));
        } else if (a && take(r, '-')) {
            a = lb_sub(r->cx, a, read_product(r));
        } else {
            return a;
        }
    }
}

/* name = sum; */
static bool read_local(reader *r)
{
    const char *const before = r->p;
    formula_word name;
    if (!take_word(r, &name) || !take(r, '=')) {
        r->p = before;
        return false;
    }
    if (r->locals == MAX_LOCALS) return unknown(r);
    lb_array *const a = read_sum(r);
    if (!a) return false;
    if (!take(r, ';')) return unknown(r);
    r->local[r->locals].name = name;
    r->local[r->locals++].a = a;
    return true;
}

lb_array *seed_evaluate(lb_ctx *cx, lb_array *const *args, int n, void *formula)
{
    const seed_formula *const f = formula;
    reader r = {.cx = cx, .f = f, .arg = args, .p = f->words};
    (void)n;
    while (read_local(&r)) {
    }
    lb_array *const a = read_sum(&r);
    return !a || strchr(",;:(", peek(&r)) ? a : unknown(&r);
}
