/* test_programs_refused.c - what compiled functions refuse: wrong arguments,
 * reads of arrays without elements, functions that differ from call to call.
 */
#include "core/core.h"
#include "programs.h"
#include "refused.h"

/* ---- errors -------------------------------------------------------------- */

static lb_array *gives_nothing(lb_ctx *cx, lb_array *const *a, int n,
                               void *user)
{
    (void)a, (void)n;
    if (user) lb_fail(cx, LB_E_ARG, "the function's own sentence");
    return NULL;
}

static bool gives_one(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                      int n_out, void *user)
{
    (void)cx, (void)n, (void)n_out, (void)user;
    out[0] = a[0];
    return true;
}

static lb_array *reads(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    const int *how = user;
    float v[4];
    (void)n;
    lb_array *s = lb_reduce_sum(cx, lb_exp(cx, a[0]), NULL);
    switch (*how) {
    case 0:
        return lb_scalar(cx, lb_item(cx, s));
    case 1:
        return lb_scalar_int(cx, lb_item_int(cx, a[1]));
    case 2:
        lb_read(cx, a[0], v, sizeof v);
        return s;
    case 3:
        lb_read_rows(cx, a[0], 0, 1, v, sizeof *v);
        return s;
    case 4:
        CHECK(!lb_data(s));
        return s;
    case 5:
        return lb_component(cx, a[2], "scale");
    case 6:
        return lb_codes(cx, a[2]);
    case 7:
        return lb_export(cx, a[2], NULL, "scale");
    case 8:
        return lb_from_codes(cx, &(lb_quant_config){.format = "int8"}, a[3],
                             lb_scalar(cx, 1));
    case 9: /* whether a weak integer fits depends on its value */
        return lb_add(cx, a[4], a[3]);
    default:
        return lb_add(cx, lb_scalar_int(cx, 3),
                      lb_convert(cx, a[0], LB_I8)); /* weak, and known */
    }
}

static void reading(lb_ctx *cx)
{
    static const char *const say[] = {
        "item: the elements of f32() (result of "
        "reduce_sum) are not known",
        "item: the elements of f64() (an argument)",
        "read: the elements of f32(4)",
        "read: the elements of f32(4)",
        NULL,
        "component: the elements of f32(8,16)",
        "the elements of f32(8,16)",
        "component: the elements of f32(8,16)",
        "from_codes: the elements of i8(4)",
        "promotion of a scalar: the elements of",
        NULL};
    lb_array *q = iota(cx, LB_F32, LB_SHAPE(8, 16));
    lb_array *in[] = {iota(cx, LB_F32, LB_SHAPE(4)), lb_scalar(cx, 3),
                      lb_quantize(cx, q, &(lb_quant_config){.format = "int8"}),
                      iota(cx, LB_I8, LB_SHAPE(4)), lb_scalar_int(cx, 3)};
    for (int how = 0; how < 11; how++) {
        lb_compiled *f = lb_compile(cx, reads, &how, NULL);
        lb_array *got = lb_run(f, in, 5);
        if (say[how])
            REFUSED(got, LB_E_UNSUPPORTED, say[how]);
        else
            CHECK(got != NULL);
        CHECK_EQ_I(lb_compiled_stats_of(f).programs, say[how] ? 0 : 1);
        lb_clear(cx);
        lb_compiled_close(f);
    }
}

static void errors(lb_ctx *cx)
{
    lb_array *x = iota(cx, LB_F32, LB_SHAPE(4)), *none = NULL, *out[2];
    CHECK(!lb_compile(NULL, simple, NULL, NULL) && !lb_run(NULL, &x, 1));
    CHECK(!lb_run_many(NULL, &x, 1, out));
    CHECK(!lb_compiled_explain(NULL, 0, LB_EXPLAIN_TEXT));
    CHECK_EQ_I(lb_compiled_stats_of(NULL).runs, 0);
    lb_compiled_close(NULL);
    REFUSED(lb_compile(cx, NULL, NULL, NULL), LB_E_NULL, "function is NULL");
    REFUSED(lb_compile_many(cx, NULL, 1, NULL, NULL), LB_E_NULL, "is NULL");
    REFUSED(lb_compile_many(cx, gives_one, 0, NULL, NULL), LB_E_ARG,
            "n_out is 0");
#define OPTIONS(SAY, ...)                                                      \
    REFUSED(lb_compile(cx, simple, NULL, &(lb_compile_options){__VA_ARGS__}),  \
            LB_E_ARG, SAY)
    OPTIONS("cache is -1", .cache = -1);
    OPTIONS("fold_bytes is -2", .fold_bytes = -2);
    OPTIONS("struct_size is 8", .struct_size = 8);
    lb_compiled *f = lb_compile(cx, doubled, NULL, NULL);
    REFUSED(lb_run(f, &x, -1), LB_E_ARG, "arguments is -1");
    REFUSED(lb_run(f, NULL, 1), LB_E_NULL, "list of 1 arguments is NULL");
    REFUSED(lb_run(f, (lb_array *[]){x, NULL}, 2), LB_E_NULL,
            "argument 1 is NULL");
    REFUSED(lb_run_many(f, &x, 1, NULL), LB_E_NULL, "results is NULL");
    REFUSED(lb_compiled_explain(f, 0, LB_EXPLAIN_TEXT), LB_E_ARG,
            "run the function first");
    CHECK(lb_run(f, &x, 1) != NULL);
    REFUSED(lb_compiled_explain(f, 1, LB_EXPLAIN_TEXT), LB_E_ARG,
            "program 1 does not exist (of 1)");
    REFUSED(lb_compiled_explain(f, -1, LB_EXPLAIN_TEXT), LB_E_ARG,
            "program -1 does not exist");
    REFUSED(lb_compiled_explain(f, 0, (lb_explain_form)3), LB_E_ARG, "3");
    lb_compiled_close(f);
    f = lb_compile(cx, gives_nothing, NULL, NULL);
    REFUSED(lb_run(f, &x, 1), LB_E_NULL, "the function returned no array");
    lb_compiled_close(f);
    f = lb_compile(cx, gives_nothing, &none, NULL);
    REFUSED(lb_run(f, &x, 1), LB_E_ARG, "the function's own sentence");
    lb_compiled_close(f);
    f = lb_compile_many(cx, gives_one, 2, NULL, NULL);
    out[0] = out[1] = x;
    REFUSED(lb_run_many(f, &x, 1, out), LB_E_NULL, "returned no array");
    CHECK(!out[0] && !out[1]);
    lb_compiled_close(f);
    f = lb_compile(cx, layer, NULL, NULL); /* shapes that do not fit */
    REFUSED(lb_run(f, (lb_array *[]){x, iota(cx, LB_F32, LB_SHAPE(3))}, 2),
            LB_E_SHAPE, "4");
    CHECK_EQ_I(lb_compiled_stats_of(f).programs, 0);
    lb_compiled_close(f);
}

static lb_array *leaves_a_tape(lb_ctx *cx, lb_array *const *a, int n,
                               void *user)
{
    (void)n;
    *(lb_tape **)user = lb_tape_open(cx);
    return a[0];
}

static void open_tape(lb_ctx *cx)
{
    lb_tape *t = NULL;
    lb_array *x = iota(cx, LB_F32, LB_SHAPE(4));
    lb_compiled *f = lb_compile(cx, leaves_a_tape, &t, NULL);
    REFUSED(lb_run(f, &x, 1), LB_E_ARG, "left a gradient tape");
    lb_tape_close(t);
    CHECK(lb_neg(cx, x) != NULL);
    lb_compiled_close(f);
}

/* An array of the trace that outlives it. */
static lb_array *keeps(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n;
    lb_array **kept = user, *y = lb_exp(cx, a[0]);
    if (kept) *kept = lb_ref(y);
    return lb_mul(cx, y, y);
}

static lb_array *uses(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n;
    return lb_mul(cx, a[0], user);
}

static void kept_arrays(lb_ctx *cx)
{
    lb_array *kept = NULL, *x = iota(cx, LB_F32, LB_SHAPE(4));
    lb_compiled *f = lb_compile(cx, keeps, &kept, NULL);
    CHECK(lb_run(f, &x, 1) && kept);
    REFUSED(lb_neg(cx, kept), LB_E_UNSUPPORTED, "neg: the elements of f32(4)");
    REFUSED(lb_mul(cx, x, kept), LB_E_UNSUPPORTED, "result of exp");
    REFUSED(lb_run(f, &kept, 1), LB_E_UNSUPPORTED, "run: the elements");
    REFUSED(lb_transpose(cx, kept, NULL), LB_E_UNSUPPORTED, "transpose");
    lb_optimizer *o = lb_optimizer_open(cx, NULL, &x, 1);
    lb_array *w = x;
    REFUSED(lb_optimizer_step(o, &w, &kept), LB_E_UNSUPPORTED, "elements");
    lb_optimizer_close(o);
    lb_compiled *g = lb_compile(cx, uses, kept, NULL);
    REFUSED(lb_run(g, &x, 1), LB_E_ARG, "f32(4) belongs to a function");
    lb_compiled_close(g);
    lb_compiled_close(f);
    lb_unref(kept);
}

/* ---- check --------------------------------------------------------------- */

static lb_array *counts(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    int *calls = user;
    (void)n;
    ++*calls;
    switch (calls[1]) {
    case 0: /* another constant */
        return lb_mul(cx, a[0], lb_scalar(cx, *calls));
    case 1: /* one call more */
        return *calls > 1 ? lb_neg(cx, lb_neg(cx, lb_exp(cx, a[0])))
                          : lb_exp(cx, a[0]);
    case 2: /* another primitive */
        return *calls > 1 ? lb_sin(cx, a[0]) : lb_cos(cx, a[0]);
    case 3: /* other params */
        return lb_integer_pow(cx, a[0], 1 + *calls);
    case 4: /* another result */
        return a[*calls > 1];
    default: /* other operands */
        return lb_sub(cx, a[*calls > 1], a[0]);
    }
}

static void checking(lb_ctx *cx)
{
    const lb_compile_options check = {.check = true};
    lb_array *in[] = {iota(cx, LB_F32, LB_SHAPE(4)),
                      iota(cx, LB_F32, LB_SHAPE(4))};
    for (int how = 0; how < 6; how++) {
        int calls[2] = {0, how};
        lb_compiled *f = lb_compile(cx, counts, calls, &check);
        CHECK(lb_run(f, in, 2) != NULL);
        REFUSED(lb_run(f, in, 2), LB_E_ARG, "differs from call to call");
        lb_compiled_close(f);
        int again[2] = {0, how};
        f = lb_compile(cx, counts, again, NULL);
        CHECK(lb_run(f, in, 2) && lb_run(f, in, 2) && again[0] == 1);
        lb_compiled_close(f);
    }
    const lb_fn fine[] = {simple, layer, doubled};
    in[0] = iota(cx, LB_F32, LB_SHAPE(4, 4));
    in[1] = lb_quantize(cx, in[0], &(lb_quant_config){.format = "int8"});
    for (int k = 0; k < 3; k++) {
        lb_compiled *f = lb_compile(cx, fine[k], NULL, &check);
        for (int i = 0; i < 3; i++)
            CHECK(lb_run(f, in, 2) != NULL);
        EXPECT(1, 3, 3);
        lb_compiled_close(f);
    }
}

int main(void)
{
    static void (*const test[])(lb_ctx *) = {errors, reading, kept_arrays,
                                             open_tape, checking};
    unsetenv("LOWBIT_COMPILE");
    for (size_t i = 0; i < sizeof test / sizeof *test; i++) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = 1 + (int)i % 3});
        if (cx) test[i](cx);
        if (check_fails(cx && !lb_error_status(cx)))
            fprintf(stderr, "test %d: %s\n", (int)i, lb_error(cx));
        lb_close(cx);
    }
    return check_report("what compiled functions refuse");
}
