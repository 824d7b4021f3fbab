/* test_small.c - small work: it stays on the calling thread; a result is one
 * block, whatever is freed first; and environment variables about it.
 */
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

int main(void)
{
    threshold();
    blocks(false);
    blocks(true);
    return check_report("small work");
}
