/* test_small.c - small work: it stays on the calling thread; a result is one
 * block, whatever is freed first; and what is dropped is freed, unless
 * something needs it.
 */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "core/core.h"
#include "lowbit_params.h"

static bool says(lb_ctx *cx, const char *prim, lb_array *const *in, int n,
                 const void *params, const char *words)
{
    const char *s = lb_explain(cx, prim, in, n, params);
    if (s && strstr(s, words)) return true;
    fprintf(stderr, "%s: not \"%s\"\n", s ? s : lb_error(cx), words);
    return false;
}

/* Plans know how many threads will run them. */
static void threshold(void)
{
    setenv("LOWBIT_POOL", "auto", 1);
    lb_ctx *cx = lb_open(&(lb_options){.threads = 3});
    const lb_dot_dims dims = {.lhs_contract = {1, {2}},
                              .rhs_contract = {1, {1}},
                              .lhs_batch = {1, {0}},
                              .rhs_batch = {1, {0}}};
    for (int64_t n = 1; n <= 1 << 20; n *= 1024) {
        const char *threads = n > 1024 ? "on 3 threads" : "on 1 thread,";
        lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(n));
        lb_array *in[] = {lb_materialize(cx, x), lb_materialize(cx, x)};
        in[0] = lb_add(cx, x, lb_scalar(cx, 1));
        in[1] = in[0];
        CHECK(says(cx, "add", in, 2, NULL, threads));
        CHECK(says(cx, "concatenate", in, 2, &(int){0}, threads));
        lb_array *heads[] = {lb_reshape(cx, in[0], LB_SHAPE(1, 1, n)),
                             lb_reshape(cx, in[0], LB_SHAPE(1, n, 1))};
        CHECK(says(cx, "dot_general", heads, 2, &dims, threads));
    }
    /* Few elements, but much work each. */
    const lb_random_params few = {{1, 2}, LB_F32, LB_SHAPE(4096)};
    CHECK(says(cx, "random_normal", NULL, 0, &few, "on 3 threads"));
    /* One row of a large table. */
    lb_array *table =
        lb_add(cx, lb_zeros(cx, LB_F32, LB_SHAPE(4096, 256)), lb_scalar(cx, 1));
    lb_array *in[] = {table, lb_zeros(cx, LB_I32, LB_SHAPE(1, 1))};
    const lb_gather_dims row = {.offset_dims = {1, {1}},
                                .collapsed_slice_dims = {1, {0}},
                                .start_index_map = {1, {0}},
                                .index_vector_dim = 1,
                                .slice_sizes = {1, 256}};
    CHECK(says(cx, "gather", in, 2, &row, "on 1 thread"));
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    setenv("LOWBIT_POOL", "always", 1);
    cx = lb_open(&(lb_options){.threads = 3});
    lb_array *one = lb_zeros(cx, LB_F32, LB_SHAPE(1));
    CHECK(says(cx, "neg", &one, 1, NULL, "on 3 threads"));
    lb_close(cx);
    char why[256];
    setenv("LOWBIT_POOL", "never", 1);
    CHECK(!lb_open(NULL));
    CHECK_EQ_S(lb_open_why(NULL, why, sizeof why),
               "LOWBIT_POOL is \"never\": not auto or always");
    unsetenv("LOWBIT_POOL");
}

/* The first view of a result is in the block of its elements: either may go
 * first. With debug it is apart. */
static void blocks(bool debug)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1, .debug = debug});
    const float row[] = {1, 2, 3, 4};
    lb_scalar(cx, 1); /* the list of the scope's arrays */
    for (int k = 0; k < 3; k++) {
        const size_t before = lb_bytes_in_use(cx);
        lb_enter(cx);
        lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(4), row);
        lb_array *view = lb_ref(lb_reverse(cx, a, NULL));
        lb_array *kept = k == 1 ? lb_ref(a) : NULL;
        if (k == 2) lb_drop(cx, a);
        lb_leave(cx);
        float got[4];
        CHECK(lb_read(cx, view, got, sizeof got) && got[0] == 4);
        lb_unref(view);
        if (kept) CHECK(lb_read(cx, kept, got, sizeof got) && got[3] == 4);
        lb_unref(kept);
        if (!debug) CHECK_EQ_I(lb_bytes_in_use(cx), before);
    }
    /* And the context may be closed before all of them. */
    lb_array *a = lb_ref(lb_from(cx, LB_F32, LB_SHAPE(4), row));
    lb_array *view = lb_ref(lb_reverse(cx, a, NULL));
    lb_close(cx);
    CHECK(((const float *)lb_data(a))[1] == 2);
    lb_unref(a);
    CHECK_EQ_I(lb_dim(view, 0), 4);
    lb_unref(view);
}

/* ---- lb_drop ------------------------------------------------------------- */

static lb_array *dropping(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    lb_array *x = lb_mul(cx, a[0], a[0]);
    lb_array *y = lb_exp(cx, x);
    (void)n, (void)user;
    lb_drop(cx, x); /* y was computed from it, or will be */
    lb_array *z = lb_add(cx, y, lb_transpose(cx, y, NULL));
    lb_drop(cx, y);
    return z;
}

static bool same(lb_ctx *cx, lb_array *a, lb_array *b)
{
    float x[64], y[64];
    return a && b && lb_read(cx, a, x, sizeof x) &&
           lb_read(cx, b, y, sizeof y) && memcmp(x, y, sizeof x) == 0;
}

/* A loop without scopes of its own needs no more memory with each step. */
static void dropped_in_a_loop(lb_ctx *cx, lb_array *a)
{
    lb_enter(cx);
    lb_array *x = lb_ref(lb_neg(cx, a));
    size_t most = 0;
    for (int i = 0; i < 100; i++) {
        lb_array *y = lb_tanh(cx, x), *z = lb_add(cx, y, a);
        lb_drop(cx, y);
        lb_unref(x);
        if (!i) lb_drop(cx, x);
        x = lb_ref(z);
        lb_drop(cx, z);
        if (i == 5) most = lb_bytes_in_use(cx);
    }
    CHECK_EQ_I(lb_bytes_in_use(cx), most);
    lb_unref(x);
    lb_leave(cx);
}

/* A trace holds what it has recorded, a tape what it needs. */
static void dropped_and_recorded(lb_ctx *cx, lb_array *a)
{
    lb_array *want = dropping(cx, &a, 1, NULL), *dx = NULL;
    lb_compiled *f = lb_compile(cx, dropping, NULL, NULL);
    CHECK(same(cx, lb_run(f, &a, 1), want) && same(cx, lb_run(f, &a, 1), want));
    lb_compiled_close(f);
    lb_tape *tape = lb_tape_open(cx);
    CHECK(lb_tape_watch(tape, a));
    lb_array *y = lb_reduce_sum(cx, dropping(cx, &a, 1, NULL), NULL);
    CHECK(lb_tape_grad(tape, y, NULL, &a, 1, &dx));
    lb_tape_close(tape);
    /* d/dx 2 sum exp(x^2) = 4 x exp(x^2), to a few roundings */
    float at[64], got[64];
    CHECK(lb_read(cx, a, at, sizeof at) && lb_read(cx, dx, got, sizeof got));
    for (int i = 0; i < 64; i++) {
        const double x = at[i], d = 4 * x * exp(x * x);
        CHECK(fabs(got[i] - d) <= 1e-5 * d);
    }
}

static void drops(bool debug)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1, .debug = debug});
    lb_array *a = lb_iota(cx, LB_F32, LB_SHAPE(8, 8), 1);
    a = lb_div(cx, a, lb_scalar(cx, 8));
    if (!debug) dropped_in_a_loop(cx, a);
    /* A view holds the elements. */
    lb_array *x = lb_exp(cx, a), *t = lb_transpose(cx, x, NULL);
    lb_drop(cx, x);
    CHECK(same(cx, t, lb_transpose(cx, lb_exp(cx, a), NULL)));
    dropped_and_recorded(cx, a);
    /* An array of an enclosing scope; one that is in none; NULL. */
    x = lb_ref(lb_exp(cx, a));
    lb_enter(cx);
    lb_drop(cx, x);
    lb_drop(cx, x);
    lb_drop(cx, NULL);
    lb_leave(cx);
    CHECK(lb_data(x) != NULL);
    lb_unref(x);
    CHECK_EQ_S(lb_error(cx), "");
    if (debug) {
        CHECK(!lb_exp(cx, x));
        CHECK(strstr(lb_error(cx), "is used after its scope was closed, or "
                                   "after lb_drop"));
    }
    lb_close(cx);
}

int main(void)
{
    threshold();
    blocks(false);
    blocks(true);
    drops(false);
    drops(true);
    return check_report("small work");
}
