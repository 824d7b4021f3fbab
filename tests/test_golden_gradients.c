/* test_golden_gradients.c - values and gradients of composed functions against
 * jax (golden/gradients.txt; its grammar is in tools/gen_gradient_golden.py),
 * in f32 and bf16, with the policy that forbids decoding whole operands. */
/* ctest: skip-tsan */
#include <stdlib.h>

#include "check.h"
#include "golden.h"
#include "golden_functions.h"

enum { MAX_ARGS = 12 };

typedef struct {
    const golden_function *fn;
    char name[GOLDEN_NAME];
    bool quantizes;
    lb_quant_config config;
    char format[GOLDEN_NAME];
    lb_array *in[MAX_ARGS]; /* as stored in the file */
} call;

typedef struct {
    lb_dtype dtype;
    lb_array *value, *grad[MAX_ARGS];
} result;

static bool floats(const lb_array *a)
{
    return lb_dtype_of(a) == LB_BF16;
}

/* ---- running ------------------------------------------------------------- */

/* The call, and where its arguments come from: gradients are taken of the first
 * ones, which are the floats in their order. */
typedef struct {
    const call *c;
    int at[MAX_ARGS];
} order;

static lb_array *reordered(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    const order *o = user;
    lb_array *a[MAX_ARGS];
    for (int i = 0; i < n; i++)
        a[o->at[i]] = args[i];
    return o->c->fn->run(cx, a, &o->c->config);
}

static void run(lb_ctx *cx, const call *c, lb_dtype dtype, result *r)
{
    order o = {.c = c};
    lb_array *args[MAX_ARGS], *grad[MAX_ARGS] = {NULL};
    const int n = c->fn->n;
    int k = 0;
    *r = (result){.dtype = dtype};
    for (int i = 0; i < n; i++)
        if (floats(c->in[i])) {
            args[k] = lb_convert(cx, c->in[i], dtype);
            o.at[k++] = i;
        }
    const int n_grad = k;
    for (int i = 0; i < n; i++)
        if (!floats(c->in[i])) {
            args[k] = c->in[i];
            o.at[k++] = i;
        }
    r->value = lb_value_and_grad(cx, reordered, args, n, &o, grad, n_grad);
    for (int i = 0; i < n_grad; i++)
        r->grad[o.at[i]] = grad[i];
    if (check_fails(r->value != NULL))
        fprintf(stderr, "%s, %s: %s\n", c->name, lb_dtype_name(dtype),
                lb_error(cx));
    lb_clear(cx);
}

/* ---- comparing ----------------------------------------------------------- */

static void compare(lb_ctx *cx, const call *c, const char *what,
                    const char *tol, lb_array *a, const golden_array *want)
{
    double most = 0;
    const lb_shape shape = a ? lb_shape_of(a) : (lb_shape){.rank = -1};
    float *got = malloc((size_t)want->size * sizeof *got + 1);
    a = lb_convert(cx, a, LB_F32);
    bool ok = a && got && lb_shape_equal(&shape, &want->shape) &&
              lb_read(cx, a, got, (size_t)want->size * sizeof *got);
    if (check_fails(ok))
        fprintf(stderr, "%s, %s: no array of shape %s\n", c->name, what,
                LB_SHOW(&want->shape));
    for (int64_t i = 0; i < want->size; i++)
        most = fmax(most, fabs(golden_value(LB_F32, want->data, i)));
    for (int64_t i = 0; ok && i < want->size; i++) {
        const double w = golden_value(LB_F32, want->data, i);
        ok = fabs(got[i] - w) <= strtod(tol, NULL) * most;
        if (check_fails(ok))
            fprintf(stderr,
                    "%s, %s, within %s of %g: element %lld is %.9g, "
                    "not %.9g\n",
                    c->name, what, tol, most, (long long)i, (double)got[i], w);
    }
    free(got);
}

/* "value ..." or "grad I ..." of the line, for each dtype it names. */
static bool check_line(lb_ctx *cx, golden_file *f, const call *c,
                       const result *r, int n)
{
    const bool is_grad = !strcmp(f->word[0], "grad");
    const int arg = is_grad && f->n > 1 ? atoi(f->word[1]) : 0;
    golden_array want;
    char what[64];
    if ((!is_grad && strcmp(f->word[0], "value")) || arg < 0 ||
        arg >= c->fn->n || f->n < 5 || !golden_read(f, f->n - 3, &want))
        return false;
    for (int k = 0; k < n; k++) {
        const char *dtype = lb_dtype_name(r[k].dtype);
        const char *tol = golden_key(f, 1, dtype);
        lb_array *a = is_grad ? r[k].grad[arg] : r[k].value;
        snprintf(what, sizeof what, "%s %d in %s", f->word[0], arg, dtype);
        if (!tol) continue;
        CHECK(!a || lb_dtype_of(a) == r[k].dtype);
        compare(cx, c, what, tol, a, &want);
    }
    golden_free(&want);
    return true;
}

/* ---- the file ------------------------------------------------------------ */

static bool read_call(golden_file *f, const golden_names *names, call *c,
                      int *calls)
{
    int colon = 3, n = 0;
    *c = (call){.fn = NULL};
    while (colon < f->n && strcmp(f->word[colon], ":"))
        colon++;
    for (int i = 0; i < golden_functions_n && f->n > 2; i++)
        if (!strcmp(golden_functions[i].name, f->word[2])) {
            c->fn = &golden_functions[i];
            calls[i]++;
        }
    golden_file keys = *f;
    keys.n = colon;
    if (!c->fn || f->n - colon - 1 != c->fn->n || c->fn->n > MAX_ARGS ||
        !golden_config(&keys, 3, &c->config))
        return false;
    snprintf(c->name, sizeof c->name, "%s", f->word[1]);
    c->quantizes = c->config.format != NULL;
    snprintf(c->format, sizeof c->format, "%s",
             c->quantizes ? c->config.format : "");
    c->config.format = c->format;
    for (int i = colon + 1; i < f->n; i++)
        if (!(c->in[n++] = golden_find(names, f->word[i]))) return false;
    return true;
}

static bool check_call(lb_ctx *cx, golden_file *f, const golden_names *names,
                       int *calls)
{
    const lb_dtype dtype[] = {LB_F32, LB_BF16};
    call c;
    result r[2];
    int n = 0;
    bool ok = read_call(f, names, &c, calls);
    lb_enter(cx);
    /* Quantized values are rounded to one dtype: expected for that dtype only.
     */
    for (int k = 0; ok && k < 2; k++)
        if (!c.quantizes || c.config.dtype == dtype[k])
            run(cx, &c, dtype[k], &r[n++]);
    while (ok && (ok = golden_next(f)) && strcmp(f->word[0], "end"))
        ok = check_line(cx, f, &c, r, n);
    lb_leave(cx);
    return ok;
}

int main(void)
{
    static golden_names names;
    int *calls = calloc((size_t)golden_functions_n, sizeof *calls);
    golden_file f = {0};
    lb_ctx *cx = lb_open(&(lb_options){.dense = LB_DENSE_DENY});
    bool ok = cx && calls && golden_open(&f, "tests/golden/gradients.txt");
    while (ok && golden_next(&f))
        ok = !strcmp(f.word[0], "input")
                 ? golden_input(cx, &f, &names)
                 : !strcmp(f.word[0], "call") &&
                       check_call(cx, &f, &names, calls);
    CHECK(ok && f.whole);
    if (!ok) fprintf(stderr, "line %d: %s\n", f.line, golden_error());
    for (int i = 0; i < golden_functions_n && calls; i++)
        if (check_fails(calls[i] > 0))
            fprintf(stderr, "%s is never called\n", golden_functions[i].name);
    golden_forget(&names);
    golden_close(&f);
    lb_close(cx);
    free(calls);
    return check_report("test_golden_gradients");
}
