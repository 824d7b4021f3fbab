/* test_golden_prims.c - each primitive on quantized operands, in every operand
 * position, against jax on the decoded values (golden/golden_prims.txt), with
 * the policy that forbids decoding whole operands.
 *
 *     quantized NAME INPUT KEY=VALUE...
 *     call NAME PRIMITIVE KEY=VALUE... : OPERAND...
 *     out exact | rel:T | abs:T  ARRAY
 *     end
 */
/* ctest: skip-tsan */
#include <stdlib.h>

#include "check.h"
#include "dense_log.h"
#include "golden.h"

enum { MAX_IN = 4 };

typedef struct golden_call {
    golden_file f; /* its line; the words stay where they are */
    lb_array *in[MAX_IN];
    int n;
} golden_call;

static const char *key(const golden_call *c, const char *name)
{
    return golden_key(&c->f, 3, name);
}

static lb_shape shape_key(const golden_call *c, const char *name)
{
    int64_t dim[LB_MAX_RANK];
    const int rank = golden_numbers(key(c, name), dim);
    return lb_shape_make(rank, dim);
}

/* ---- one function for each primitive that has params --------------------- */

static lb_array *convert(lb_ctx *cx, const golden_call *c)
{
    return lb_convert(cx, c->in[0], golden_dtype(key(c, "dtype")));
}

static lb_array *integer_pow(lb_ctx *cx, const golden_call *c)
{
    return lb_integer_pow(cx, c->in[0], atoi(key(c, "y")));
}

static lb_array *reduce(lb_ctx *cx, const golden_call *c)
{
    static const struct {
        const char *name;
        lb_array *(*run)(lb_ctx *, lb_array *, const lb_axes *);
    } op[] = {{"sum", lb_reduce_sum},
              {"prod", lb_reduce_prod},
              {"max", lb_reduce_max},
              {"min", lb_reduce_min}};
    const lb_axes axes = golden_axes(key(c, "axes"));
    lb_array *out = NULL;
    for (size_t i = 0; i < sizeof op / sizeof *op; i++)
        if (!strcmp(op[i].name, key(c, "op")))
            out = op[i].run(cx, c->in[0], &axes);
    return out;
}

static lb_array *dot_general(lb_ctx *cx, const golden_call *c)
{
    const lb_dot_dims dims = {
        .lhs_contract = golden_axes(key(c, "lc")),
        .rhs_contract = golden_axes(key(c, "rc")),
        .lhs_batch = golden_axes(key(c, "lb")),
        .rhs_batch = golden_axes(key(c, "rb")),
        .preferred = golden_dtype(key(c, "preferred")),
    };
    return lb_dot_general(cx, c->in[0], c->in[1], &dims);
}

static lb_array *conv(lb_ctx *cx, const golden_call *c)
{
    lb_conv_dims dims = {.feature_groups = atoi(key(c, "groups"))};
    snprintf(dims.lhs, sizeof dims.lhs, "%.5s", key(c, "lhs"));
    snprintf(dims.rhs, sizeof dims.rhs, "%.5s", key(c, "rhs"));
    snprintf(dims.out, sizeof dims.out, "%.5s", key(c, "res"));
    const struct {
        const char *name;
        int64_t *to;
    } list[] = {{"stride", dims.stride},
                {"lo", dims.pad_lo},
                {"hi", dims.pad_hi},
                {"ldil", dims.lhs_dilation},
                {"rdil", dims.rhs_dilation}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        int64_t number[LB_MAX_RANK] = {0};
        golden_numbers(key(c, list[i].name), number);
        memcpy(list[i].to, number, LB_MAX_SPATIAL * sizeof *number);
    }
    return lb_conv_general_dilated(cx, c->in[0], c->in[1], &dims);
}

static lb_array *transpose(lb_ctx *cx, const golden_call *c)
{
    return lb_transpose(cx, c->in[0], golden_axes(key(c, "perm")).axis);
}

static lb_array *reshape(lb_ctx *cx, const golden_call *c)
{
    return lb_reshape(cx, c->in[0], shape_key(c, "shape"));
}

static lb_array *concatenate(lb_ctx *cx, const golden_call *c)
{
    return lb_concatenate(cx, c->in, c->n, atoi(key(c, "axis")));
}

static lb_array *broadcast(lb_ctx *cx, const golden_call *c)
{
    return lb_broadcast_in_dim(cx, c->in[0], shape_key(c, "shape"),
                               golden_axes(key(c, "dims")).axis);
}

static lb_array *gather(lb_ctx *cx, const golden_call *c)
{
    lb_gather_dims dims = {
        .offset_dims = golden_axes(key(c, "offset")),
        .collapsed_slice_dims = golden_axes(key(c, "collapsed")),
        .start_index_map = golden_axes(key(c, "map")),
        .index_vector_dim = 1,
        .bounds =
            strcmp(key(c, "bounds"), "fill") ? LB_BOUNDS_CLAMP : LB_BOUNDS_FILL,
    };
    golden_numbers(key(c, "sizes"), dims.slice_sizes);
    return lb_gather(cx, c->in[0], c->in[1], &dims);
}

static const struct {
    const char *name;
    lb_array *(*unary)(lb_ctx *, lb_array *);
    lb_array *(*binary)(lb_ctx *, lb_array *, lb_array *);
    lb_array *(*any)(lb_ctx *, const golden_call *);
} prims[] = {
    {"sqrt", lb_sqrt, NULL, NULL},
    {"exp", lb_exp, NULL, NULL},
    {"log", lb_log, NULL, NULL},
    {"lt", NULL, lb_lt, NULL},
    {"add", NULL, lb_add, NULL},
    {"mul", NULL, lb_mul, NULL},
    {"div", NULL, lb_div, NULL},
    {"max", NULL, lb_max, NULL},
    {"pow", NULL, lb_pow, NULL},
    {"convert_element_type", NULL, NULL, convert},
    {"integer_pow", NULL, NULL, integer_pow},
    {"reduce", NULL, NULL, reduce},
    {"dot_general", NULL, NULL, dot_general},
    {"conv_general_dilated", NULL, NULL, conv},
    {"transpose", NULL, NULL, transpose},
    {"reshape", NULL, NULL, reshape},
    {"concatenate", NULL, NULL, concatenate},
    {"broadcast_in_dim", NULL, NULL, broadcast},
    {"gather", NULL, NULL, gather},
};
enum { N_PRIMS = sizeof prims / sizeof *prims };

static lb_array *run(lb_ctx *cx, const golden_call *c, int *calls)
{
    for (int i = 0; i < N_PRIMS; i++) {
        if (strcmp(prims[i].name, c->f.word[2])) continue;
        calls[i]++;
        return prims[i].any      ? prims[i].any(cx, c)
               : prims[i].binary ? prims[i].binary(cx, c->in[0], c->in[1])
                                 : prims[i].unary(cx, c->in[0]);
    }
    return NULL;
}

/* ---- comparing ----------------------------------------------------------- */

/* Infinities must be equal, NaN must be NaN. */
static bool near(const char *tol, double got, double want)
{
    if (isnan(want) || isinf(want) || isnan(got))
        return got == want || (isnan(got) && isnan(want));
    const double t = strtod(tol + 4, NULL);
    return fabs(got - want) <= (*tol == 'r' ? t * fabs(want) : t);
}

static bool near_all(lb_ctx *cx, lb_array *a, const golden_array *want,
                     const char *tol, lb_text *why)
{
    golden_array alike = *want;
    if (!strcmp(tol, "exact") || !a || !want->data)
        return golden_same(cx, a, want, why);
    const size_t bytes = (size_t)want->size * lb_dtype_size(want->dtype);
    const lb_shape shape = lb_shape_of(a);
    bool ok =
        lb_dtype_of(a) == want->dtype && lb_shape_equal(&shape, &want->shape);
    alike.data = malloc(bytes + 1);
    ok = ok && alike.data && lb_read(cx, a, alike.data, bytes);
    if (!ok)
        snprintf(why->s, sizeof why->s, "%s%.90s %.90s",
                 lb_dtype_name(lb_dtype_of(a)), LB_SHOW(&shape), lb_error(cx));
    for (int64_t i = 0; ok && i < want->size; i++) {
        const double g = golden_value(want->dtype, alike.data, i);
        const double w = golden_value(want->dtype, want->data, i);
        ok = near(tol, g, w);
        if (!ok)
            snprintf(why->s, sizeof why->s, "element %lld is %.9g, not %.9g",
                     (long long)i, g, w);
    }
    free(alike.data);
    return ok;
}

/* ---- the file ------------------------------------------------------------ */

static bool quantized(lb_ctx *cx, golden_file *f, golden_names *names)
{
    lb_quant_config config;
    if (f->n < 3 || !golden_config(f, 3, &config)) return false;
    lb_array *x = golden_find(names, f->word[2]);
    lb_enter(cx);
    lb_array *q = lb_quantize(cx, x, &config);
    if (!q) fprintf(stderr, "%s: %s\n", f->word[1], lb_error(cx));
    const bool ok = golden_put(names, f->word[1], q);
    lb_leave(cx);
    return ok;
}

static bool begin_call(const golden_file *f, const golden_names *names,
                       golden_call *c)
{
    *c = (golden_call){.f = *f};
    int colon = 3;
    while (colon < f->n && strcmp(f->word[colon], ":"))
        colon++;
    for (int i = colon + 1; i < f->n && c->n < MAX_IN; i++)
        if (!(c->in[c->n++] = golden_find(names, f->word[i]))) return false;
    return c->n > 0;
}

static bool call(lb_ctx *cx, golden_file *f, const golden_names *names,
                 int *calls)
{
    golden_call c;
    golden_array want;
    lb_text why = {""};
    if (!begin_call(f, names, &c) || !golden_next(f) || f->n != 5 ||
        !golden_read(f, 2, &want))
        return false;
    lb_enter(cx);
    lb_array *out = run(cx, &c, calls);
    if (check_fails(near_all(cx, out, &want, f->word[1], &why)))
        fprintf(stderr, "%s(%s%s%s), %s: %s\n", c.f.word[1],
                c.f.word[c.f.n - c.n], c.n > 1 ? ", " : "",
                c.n > 1 ? c.f.word[c.f.n - 1] : "", f->word[1], why.s);
    lb_clear(cx);
    lb_leave(cx);
    golden_free(&want);
    return golden_next(f) && !strcmp(f->word[0], "end");
}

int main(void)
{
    static golden_names names;
    int calls[N_PRIMS] = {0};
    golden_file f = {0};
    lb_ctx *cx =
        lb_open(&(lb_options){.dense = LB_DENSE_LOG, .log = log_no_copies});
    bool ok = cx && golden_open(&f, "tests/golden/golden_prims.txt");
    while (ok && golden_next(&f))
        ok = !strcmp(f.word[0], "input") ? golden_input(cx, &f, &names)
             : !strcmp(f.word[0], "quantized")
                 ? quantized(cx, &f, &names)
                 : !strcmp(f.word[0], "call") && call(cx, &f, &names, calls);
    CHECK(ok && f.whole);
    if (!ok) fprintf(stderr, "line %d: %s\n", f.line, golden_error());
    for (int i = 0; i < N_PRIMS; i++) {
        printf("%s%s %d", i ? ", " : "", prims[i].name, calls[i]);
        CHECK(calls[i] > 0);
    }
    printf("\n");
    golden_forget(&names);
    golden_close(&f);
    lb_close(cx);
    return check_report("test_golden_prims");
}
