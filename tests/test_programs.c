/* test_programs.c - compiled functions: results, signatures and the cache,
 * constants, eager runs, descriptions.
 */
#include <stdlib.h>

#include "core/core.h"
#include "laws.h"
#include "programs.h"
#include "raw_prim.h"
#include "refused.h"

/* fn compiled and run twice, compared with fn itself. */
static void compare(lb_ctx *cx, lb_fn fn, void *user, lb_array *const *args,
                    int n, const char *what)
{
    lb_enter(cx);
    lb_compiled *f = lb_compile(cx, fn, user, NULL);
    lb_array *want = fn(cx, args, n, user);
    for (int i = 0; i < 2; i++)
        if (check_fails(equal(lb_run(f, args, n), want)))
            fprintf(stderr, "%s, run %d: %s\n", what, i, lb_error(cx));
    CHECK_EQ_I(lb_compiled_stats_of(f).runs, 2);
    lb_compiled_close(f);
    lb_clear(cx);
    lb_leave(cx);
}

/* The example of docs/programs.md. */
static lb_array *swiglu(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *gate = lb_silu(cx, lb_matmul(cx, a[0], a[1]));
    return lb_matmul(cx, lb_mul(cx, gate, lb_matmul(cx, a[0], a[2])), a[3]);
}

static void example(lb_ctx *cx)
{
    lb_array *x = iota(cx, LB_F32, LB_SHAPE(3, 8)), *x2 = lb_neg(cx, x);
    lb_array *gate = iota(cx, LB_F32, LB_SHAPE(8, 12));
    lb_array *up = lb_sub(cx, gate, lb_scalar(cx, 5));
    lb_array *down = lb_transpose(cx, gate, NULL);
    lb_compiled *f = lb_compile(cx, swiglu, NULL, NULL); /* nothing runs yet */
    lb_array *y = lb_run(f, (lb_array *[]){x, gate, up, down}, 4);
    CHECK(equal(y, swiglu(cx, (lb_array *[]){x, gate, up, down}, 4, NULL)));
    y = lb_run(f, (lb_array *[]){x2, gate, up, down}, 4); /* only runs */
    CHECK(equal(y, swiglu(cx, (lb_array *[]){x2, gate, up, down}, 4, NULL)));
    CHECK_EQ_I(lb_compiled_stats_of(f).traces, 1);
    lb_compiled_close(f);
}

/* ---- results ------------------------------------------------------------- */

/* An argument, a constant, a value twice, and a view. */
static bool several(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                    int n_out, void *user)
{
    (void)n;
    lb_array *y = lb_exp(cx, a[0]);
    lb_array *const of[] = {a[0],
                            user,
                            y,
                            y,
                            lb_transpose(cx, y, NULL),
                            lb_reduce_sum(cx, y, LB_AXES(1)),
                            lb_scalar(cx, 3)};
    for (int i = 0; i < n_out; i++)
        out[i] = of[i];
    return y != NULL;
}

static void results(lb_ctx *cx)
{
    enum { OUT = 7 };
    lb_array *want[OUT], *got[OUT], *x = iota(cx, LB_F32, LB_SHAPE(3, 5));
    lb_array *held = iota(cx, LB_BF16, LB_SHAPE(2, 2));
    lb_compiled *f = lb_compile_many(cx, several, OUT, held, NULL);
    CHECK(several(cx, &x, 1, want, OUT, held));
    for (int round = 0; round < 3; round++) {
        CHECK(lb_run_many(f, &x, 1, got));
        for (int i = 0; i < OUT; i++) {
            if (check_fails(equal(got[i], want[i])))
                fprintf(stderr, "result %d, round %d\n", i, round);
            CHECK(got[i] && got[i]->weak == want[i]->weak);
        }
        for (int i = 0; i < OUT; i++)
            lb_drop(cx, got[i]); /* each is an array of its own */
    }
    CHECK(equal(x, want[0]) && equal(held, want[1]));
    CHECK(!lb_run(f, &x, 1));
    REFUSED(false, LB_E_ARG, "the function has 7 results");
    lb_compiled_close(f);
    f = lb_compile(cx, doubled, NULL, NULL);
    CHECK(lb_item(cx, lb_run(f, NULL, 0)) == 2);
    CHECK(lb_run_many(f, NULL, 0, got) && lb_item(cx, got[0]) == 2);
    lb_compiled_close(f);
}

static void empty_arrays(lb_ctx *cx)
{
    const lb_shape shape[] = {LB_SHAPE(0), LB_SHAPE(3, 0), LB_SHAPE(0, 4),
                              LB_SHAPE(2, 0, 3)};
    for (int i = 0; i < 4; i++) {
        lb_array *in[2] = {lb_zeros(cx, LB_F32, shape[i]),
                           lb_zeros(cx, LB_F32, shape[i])};
        compare(cx, simple, NULL, in, 2, "empty");
    }
    lb_array *in[2] = {lb_zeros(cx, LB_F32, LB_SHAPE(3, 0)),
                       lb_zeros(cx, LB_F32, LB_SHAPE(0, 4))};
    compare(cx, layer, NULL, in, 2, "product of empty matrices");
}

/* ---- signatures ---------------------------------------------------------- */

static void signatures(lb_ctx *cx)
{
    lb_array *a = iota(cx, LB_F32, LB_SHAPE(4, 64));
    lb_array *other = lb_neg(cx, a), *weak = lb_scalar(cx, 3);
    lb_array *strong = lb_convert(cx, weak, lb_dtype_of(weak));
    lb_compiled *f = lb_compile(cx, doubled, NULL, NULL);
    EXPECT(0, 0, 0);
    CHECK(lb_run(f, &a, 1) && lb_run(f, &a, 1) && lb_run(f, &other, 1));
    EXPECT(1, 1, 3);
    lb_array *of[] = {
        iota(cx, LB_F32, LB_SHAPE(4, 65)),
        lb_reshape(cx, a, LB_SHAPE(4, 64, 1)),
        lb_convert(cx, a, LB_BF16),
        lb_quantize(cx, a, &(lb_quant_config){.format = "nf4"}),
        lb_quantize(cx, a, &(lb_quant_config){.format = "int8"}),
        lb_transpose(cx, iota(cx, LB_F32, LB_SHAPE(64, 4)), NULL),
        weak,
        lb_reshape(cx, strong, LB_SHAPE(1)),
    };
    const int n = (int)(sizeof of / sizeof *of);
    for (int i = 0; i < n; i++) {
        lb_array *want = lb_add(cx, of[i], of[i]);
        lb_array *got = lb_run(f, &of[i], 1);
        CHECK(equal(got, want));
        CHECK(got && got->weak == want->weak);
        CHECK(equal(lb_run(f, &of[i], 1), want));
        EXPECT(2 + i, 2 + i, 5 + 2 * i);
    }
    cx->precision = LB_PRECISION_FAST;
    CHECK(lb_run(f, &a, 1) != NULL);
    EXPECT(2 + n, 2 + n, 4 + 2 * n);
    cx->precision = LB_PRECISION_HIGHEST;
    CHECK(lb_run(f, &a, 1) != NULL);
    EXPECT(2 + n, 2 + n, 5 + 2 * n);
    CHECK(equal(lb_run(f, NULL, 0), lb_scalar(cx, 2)));
    EXPECT(3 + n, 3 + n, 6 + 2 * n);
    lb_compiled_close(f);
}

static void eviction(lb_ctx *cx)
{
    lb_compiled *f =
        lb_compile(cx, doubled, NULL, &(lb_compile_options){.cache = 2});
    lb_array *a[3];
    for (int i = 0; i < 3; i++)
        a[i] = iota(cx, LB_F32, LB_SHAPE(i + 2));
    static const int order[] = {0, 1, 0, 2, 0, 1, 2};
    static const int traces[] = {1, 2, 2, 3, 3, 4, 5};
    for (int i = 0; i < 7; i++) {
        CHECK(equal(lb_run(f, &a[order[i]], 1),
                    lb_add(cx, a[order[i]], a[order[i]])));
        EXPECT(i ? 2 : 1, traces[i], i + 1);
    }
    lb_compiled_close(f);
    f = lb_compile(cx, doubled, NULL, NULL);
    for (int i = 0; i < 40; i++) {
        lb_array *x = iota(cx, LB_F32, LB_SHAPE(i + 1));
        CHECK(lb_run(f, &x, 1) != NULL);
        EXPECT(i < 16 ? i + 1 : 16, i + 1, i + 1);
    }
    lb_compiled_close(f);
}

/* ---- constants ----------------------------------------------------------- */

static lb_array *plus(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n;
    return lb_add(cx, a[0], lb_exp(cx, *(lb_array **)user));
}

static const char *described(lb_compiled *f)
{
    const char *s = lb_compiled_explain(f, 0, LB_EXPLAIN_TEXT);
    return s ? s : "";
}

/* The program holds them; folded if they are not larger than the bound. */
static void constants(lb_ctx *cx)
{
    const int64_t bound[] = {0, -1, 11, 12};
    for (int i = 0; i < 4; i++) {
        lb_compiled *f = NULL;
        lb_array *x = iota(cx, LB_F32, LB_SHAPE(3));
        lb_enter(cx);
        lb_array *held = iota(cx, LB_F32, LB_SHAPE(3));
        f = lb_compile(cx, plus, &held,
                       &(lb_compile_options){.fold_bytes = bound[i]});
        lb_array *want = lb_keep(cx, plus(cx, &x, 1, &held));
        CHECK(equal(lb_run(f, &x, 1), want));
        lb_leave(cx);
        CHECK(equal(lb_run(f, &x, 1), want));
        CHECK(!strstr(described(f), "exp") == (i == 0 || i == 3));
        lb_compiled_close(f);
    }
}

/* ---- eager --------------------------------------------------------------- */

static lb_array *passes(lb_ctx *cx, lb_layer *self, const lb_prim *prim, int n,
                        lb_array *const *in, const void *params)
{
    (void)self;
    return lb_bind(cx, prim, n, in, params);
}

static lb_array *calls_another(lb_ctx *cx, lb_array *const *a, int n,
                               void *user)
{
    (void)n;
    lb_array *y = lb_run(user, a, 2);
    return y ? lb_add(cx, y, a[0]) : NULL;
}

static void eagerly(lb_ctx *cx)
{
    lb_array *in[] = {iota(cx, LB_F32, LB_SHAPE(4)),
                      iota(cx, LB_F32, LB_SHAPE(4))};
    lb_array *want = simple(cx, in, 2, NULL), *dx, *dx2;
    lb_compiled *f = lb_compile(cx, simple, NULL, NULL);
    lb_layer all = {.bind = passes};
    lb_push_layer(cx, &all);
    CHECK(equal(lb_run(f, in, 2), want));
    lb_pop_layer(cx);
    CHECK_EQ_I(lb_compiled_stats_of(f).eager, 1);
    /* A tape outside records the calls. */
    lb_tape *t = lb_tape_open(cx);
    CHECK(lb_tape_watch(t, in[0]));
    lb_array *y = lb_reduce_sum(cx, lb_run(f, in, 2), NULL);
    CHECK(lb_tape_grad(t, y, NULL, in, 1, &dx));
    lb_tape_close(t);
    t = lb_tape_open(cx);
    CHECK(lb_tape_watch(t, in[0]));
    y = lb_reduce_sum(cx, simple(cx, in, 2, NULL), NULL);
    CHECK(lb_tape_grad(t, y, NULL, in, 1, &dx2));
    lb_tape_close(t);
    CHECK(equal(dx, dx2));
    CHECK_EQ_I(lb_compiled_stats_of(f).eager, 2);
    CHECK_EQ_I(lb_compiled_stats_of(f).traces, 0);
    /* Inside another function it becomes a part of it. */
    lb_compiled *g = lb_compile(cx, calls_another, f, NULL);
    want = lb_add(cx, want, in[0]);
    CHECK(equal(lb_run(g, in, 2), want) && equal(lb_run(g, in, 2), want));
    CHECK_EQ_I(lb_compiled_stats_of(f).eager, 3);
    CHECK_EQ_I(lb_compiled_stats_of(g).runs, 2);
    lb_compiled_close(g);
    lb_compiled_close(f);
    static const char *const value[] = {"off", "on", "", "no"};
    for (int i = 0; i < 4; i++) {
        setenv("LOWBIT_COMPILE", value[i], 1);
        f = lb_compile(cx, simple, NULL, NULL);
        if (i == 3)
            REFUSED(f, LB_E_ARG, "LOWBIT_COMPILE is \"no\"");
        else
            CHECK(lb_run(f, in, 2) != NULL);
        CHECK_EQ_I(lb_compiled_stats_of(f).eager, i == 0);
        lb_compiled_close(f);
    }
    unsetenv("LOWBIT_COMPILE");
}

/* ---- primitives and formats from outside --------------------------------- */

static lb_array *raw_twice(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *y = lb_bind(cx, &raw_prim, 1, a, NULL);
    y = y ? lb_exp(cx, y) : NULL;
    y = y ? lb_bind(cx, &raw_prim, 1, &y, NULL) : NULL;
    return y ? lb_add(cx, y, a[0]) : NULL;
}

/* Elementwise operations, products both ways, and a view, of any format. */
static lb_array *of_format(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *t = lb_transpose(cx, a[0], NULL);
    lb_array *y = lb_matmul(cx, a[1], t);
    lb_array *z = lb_matmul(cx, lb_softmax(cx, y, -1), a[0]);
    lb_array *scaled = lb_mul(cx, a[0], lb_scalar(cx, 2));
    return lb_add(cx, z, lb_reduce_sum(cx, scaled, LB_AXES(0)));
}

static void from_outside(lb_ctx *cx)
{
    sample_format_list list = law_formats(cx);
    for (int k = 0; k < list.n; k++) {
        const sample_format *f = &list.item[k];
        const lb_dtype d = f->config.dtype ? f->config.dtype : LB_F32;
        const sample_operand w = {d, LB_SHAPE(6, 64), VALUES_TAME, 0, 0, false};
        const sample_operand x = {d, LB_SHAPE(3, 64), VALUES_TAME, 0, 0, false};
        if (!sample_takes(f, &w)) continue;
        lb_enter(cx);
        lb_array *in[] = {sample_views[0].make(cx, f, &w, 1),
                          sample_views[0].make(cx, &sample_dense, &x, 2)};
        if (in[0] && in[1]) {
            compare(cx, of_format, NULL, in, 2, f->name);
            compare(cx, raw_twice, NULL, in, 1, f->name);
        }
        CHECK_EQ_I(lb_error_status(cx), LB_OK);
        lb_leave(cx);
    }
    sample_formats_free(&list);
}

/* ---- descriptions -------------------------------------------------------- */

/* Every { [ and " closes, in that order. */
static bool balanced(const char *s)
{
    char open[64];
    int n = 0;
    bool quoted = false;
    for (; *s; s++) {
        if (*s == '"') quoted = !quoted;
        if (quoted) continue;
        if ((*s == '{' || *s == '[') && n < 64) open[n++] = *s;
        if (*s == '}' && (!n || open[--n] != '{')) return false;
        if (*s == ']' && (!n || open[--n] != '[')) return false;
    }
    return !n && !quoted;
}

/* x w (nf4 or dense), then gelu and a bias in one step; twice exp. */
static lb_array *known(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_exp(cx, a[0]);
    lb_array *y = lb_matmul(cx, a[0], a[1]);
    return lb_add(cx, lb_tanh(cx, y), lb_mul(cx, lb_tanh(cx, y), a[2]));
}

static void explained(lb_ctx *cx)
{
    lb_array *in[] = {iota(cx, LB_F32, LB_SHAPE(8, 16)),
                      iota(cx, LB_F32, LB_SHAPE(16, 32)),
                      iota(cx, LB_F32, LB_SHAPE(8, 32))};
    lb_compiled *f = lb_compile(cx, known, NULL, NULL);
    CHECK(lb_run(f, in, 3) != NULL);
    const char *s = lb_compiled_explain(f, 0, LB_EXPLAIN_JSON);
    CHECK(s && balanced(s));
    /* Product: 512 + 2048 bytes to 1024; the rest: 1024 + 1024 to 1024. */
    CHECK(strstr(s, "\"calls\": 6, \"removed\": 2, \"bytes_read\": 4608, "
                    "\"bytes_written\": 2048, \"operations\": 8960, "
                    "\"peak_bytes\": 2048}"));
    CHECK(strstr(s, "\"primitives\": [\"tanh\", \"mul\", \"add\"], \"fused\": "
                    "true"));
    s = lb_compiled_explain(f, 0, LB_EXPLAIN_TEXT);
    CHECK(s && strstr(s, "3 arguments, 1 results, 2 steps for 6 calls (2 "
                         "removed)\narguments: a0: f32(8,16), a1: "));
    CHECK(s && strstr(s, "f32(8,32) = fused[tanh mul add]("));
    s = lb_compiled_explain(f, 0, LB_EXPLAIN_DOT);
    CHECK(s && balanced(s) && strncmp(s, "digraph program {\n", 18) == 0);
    CHECK(s && strstr(s, "label=\"tanh mul add\"") && strstr(s, "s0 -> s1"));
    CHECK(s && strstr(s, "s1 -> r0"));
    in[1] = lb_quantize(cx, in[1], &(lb_quant_config){.format = "nf4"});
    CHECK(lb_run(f, in, 3) != NULL);
    s = lb_compiled_explain(f, 0, LB_EXPLAIN_JSON);
    CHECK(s && strstr(s, "\"name\": \"a1\", \"format\": \"nf4\""));
    s = lb_compiled_explain(f, 1, LB_EXPLAIN_JSON);
    CHECK(s && !strstr(s, "nf4"));
    lb_compiled_close(f);
}

/* After an update in place, the old pointer means the old elements. A plain
 * update with the same operands is another call: its result is no argument. */
static bool reads_old(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                      int m, void *user)
{
    lb_array *cache = a[0], *at[] = {a[1]};
    (void)n, (void)m, (void)user;
    lb_array *v = lb_dynamic_update_slice(cx, a[0], a[2], at);
    out[1] = lb_update_in_place(cx, &cache, a[2], at);
    out[0] = lb_add(cx, lb_mul(cx, lb_sum(cx, a[0], NULL, false), cache), v);
    return out[0] && out[1];
}

static void old_pointers(lb_ctx *cx)
{
    const float x[] = {1, 2, 3, 4, 0}, want[] = {11, 77, 33, 44, 0};
    float got[5];
    lb_array *out[2];
    lb_compiled *f = lb_compile_many(cx, reads_old, 2, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        lb_array *a[] = {lb_from(cx, LB_F32, LB_SHAPE(5), x),
                         lb_full_int(cx, LB_I32, lb_shape_make(0, NULL), 1),
                         lb_full(cx, LB_F32, LB_SHAPE(1), 7)};
        CHECK(lb_run_many(f, a, 3, out));
        CHECK(lb_read(cx, out[0], got, sizeof got));
        for (int k = 0; k < 5; k++)
            CHECK_NEAR(got[k], want[k], 0);
    }
    lb_compiled_close(f);
}

int main(void)
{
    static void (*const test[])(lb_ctx *) = {
        example,   results, empty_arrays, signatures, eviction,
        constants, eagerly, from_outside, explained,  old_pointers,
    };
    unsetenv("LOWBIT_COMPILE");
    unsetenv("LOWBIT_PRECISION");
    for (size_t i = 0; i < sizeof test / sizeof *test; i++) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = 1 + (int)i % 3});
        CHECK(cx && sample_add_outside(cx) && lb_add_primitive(cx, &raw_prim));
        if (cx) test[i](cx);
        if (check_fails(!cx || !lb_error_status(cx)))
            fprintf(stderr, "test %d: %s\n", (int)i, lb_error(cx));
        lb_close(cx);
    }
    return check_report("compiled functions");
}
