/* test_update_compiled.c - updates in place that compiled functions refuse,
 * because they could not do what eager ones do; and rules of the update that
 * return arrays of others.
 */
#include "programs.h"
#include "refused.h"

static lb_array *zeros(lb_ctx *cx)
{
    return lb_materialize(cx, lb_zeros(cx, LB_F32, LB_SHAPE(6, 4)));
}

/* ---- what compiled functions refuse -------------------------------------- */

/* An argument that is updated must not have a second name. */
static bool twice(lb_ctx *cx, lb_array *const *a, int n, lb_array **out, int m,
                  void *user)
{
    (void)n, (void)m, (void)user;
    lb_array *cache = a[0], *zero = lb_scalar_int(cx, 0);
    lb_array *at[] = {zero, zero};
    out[0] = lb_update_in_place(cx, &cache, a[2], at);
    out[1] = lb_add(cx, a[1], lb_scalar(cx, 1));
    return out[0] && out[1];
}

static void same_argument(lb_ctx *cx)
{
    lb_enter(cx);
    lb_compiled *f = lb_compile_many(cx, twice, 2, NULL, NULL);
    lb_array *a = zeros(cx), *row = lb_full(cx, LB_F32, LB_SHAPE(1, 4), 5);
    lb_array *out[2], *args[] = {a, a, row};
    for (int run = 0; run < 2; run++) {
        REFUSED(lb_run_many(f, args, 3, out), LB_E_ARG,
                "arguments 0 and 1 are the same array, f32(6,4), and the "
                "function updates argument 0 in place");
        CHECK(equal(a, zeros(cx)));
    }
    args[1] = lb_reshape(cx, a, LB_SHAPE(6, 4)); /* a view: the update copies */
    CHECK(lb_run_many(f, args, 3, out));
    CHECK(lb_item(cx, lb_reduce_sum(cx, out[0], NULL)) == 20);
    CHECK(lb_item(cx, lb_reduce_sum(cx, out[1], NULL)) == 24);
    lb_compiled_close(f);
    lb_leave(cx);
}

/* The update of an argument of which only a sum is returned; of an array that
 * the function does not get as an argument; and of arrays that it makes. */
static lb_array *loses(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *cache = a[0], *at[] = {a[2], lb_scalar_int(cx, 0)};
    lb_update_in_place(cx, &cache, a[1], at);
    at[0] = lb_scalar_int(cx, 3);
    return lb_sum(cx, lb_update_in_place(cx, &cache, a[1], at), NULL, false);
}

static lb_array *captures(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n;
    lb_array *at[] = {a[2], lb_scalar_int(cx, 0)};
    return lb_update_in_place(cx, user, a[1], at);
}

static lb_array *makes(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *made = zeros(cx), *at[] = {a[2], lb_scalar_int(cx, 0)};
    lb_array *row = lb_full(cx, LB_F32, LB_SHAPE(1, 4), 1);
    lb_array *fixed[] = {lb_scalar_int(cx, 5), at[1]};
    if (!lb_update_in_place(cx, &made, row, fixed)) return NULL;
    return lb_sum(cx, lb_update_in_place(cx, &made, a[1], at), NULL, false);
}

static void lost_updates(lb_ctx *cx)
{
    static const struct {
        lb_fn fn;
        const char *why;
    } t[] = {
        {loses, "updates argument 0, f32(6,4), in place but does not return "
                "the updated array"},
        {captures, "dense f32(6,4) was made outside of the function that is "
                   "being compiled"},
        {makes, NULL},
    };
    lb_enter(cx);
    lb_array *a = zeros(cx), *outside = zeros(cx), *was = outside;
    lb_array *args[] = {a, lb_full(cx, LB_F32, LB_SHAPE(1, 4), 2),
                        lb_full_int(cx, LB_I32, (lb_shape){0}, 1)};
    for (int i = 0; i < 3; i++) {
        lb_compiled *f = lb_compile(cx, t[i].fn, &outside, NULL);
        if (t[i].why)
            REFUSED(lb_run(f, args, 3), LB_E_ARG, t[i].why);
        else
            CHECK(lb_item(cx, lb_run(f, args, 3)) == 12);
        lb_compiled_close(f);
    }
    CHECK(outside == was && equal(outside, zeros(cx)) && equal(a, zeros(cx)));
    lb_leave(cx);
}

/* ---- rules --------------------------------------------------------------- */

/* Rules of dynamic_update_slice: the update, an array of the test, or the array
 * itself. None owns what it returns. */
static lb_array *kept;
static int choice;

static lb_verdict answers(lb_ctx *cx, const lb_call *c, int operand,
                          lb_array **out)
{
    (void)cx, (void)operand;
    *out = choice == 2 ? kept : c->in[choice];
    return choice > 2 ? LB_DECLINED : LB_DONE;
}

static lb_array *update_all(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    lb_array *cache = a[0], *zero = lb_scalar_int(cx, 0);
    lb_array *at[] = {zero, zero};
    return lb_update_in_place(cx, &cache, a[1], at);
}

static void rules(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    CHECK(lb_add_rule(cx, NULL, "dynamic_update_slice", answers));
    lb_compiled *f = lb_compile(cx, update_all, NULL, NULL);
    lb_array *x = lb_full(cx, LB_F32, LB_SHAPE(6, 4), 3);
    kept = lb_ref(lb_full(cx, LB_F32, LB_SHAPE(6, 4), 4));
    lb_drop(cx, kept);
    size_t bytes = 0;
    for (int i = 0; i < 24; i++) {
        choice = i % 4;
        lb_enter(cx);
        lb_array *a = lb_full(cx, LB_F32, LB_SHAPE(6, 4), 5);
        lb_array *args[] = {a, x};
        lb_array *y =
            i / 4 % 2 ? lb_run(f, args, 2) : update_all(cx, args, 2, NULL);
        const double want[] = {5, 3, 4, 3};
        CHECK(y && y != x && y != kept);
        CHECK(equal(y, lb_full(cx, LB_F32, LB_SHAPE(6, 4), want[choice])));
        CHECK(equal(x, lb_full(cx, LB_F32, LB_SHAPE(6, 4), 3)));
        CHECK(equal(kept, lb_full(cx, LB_F32, LB_SHAPE(6, 4), 4)));
        lb_leave(cx);
        if (i == 11) bytes = lb_bytes_in_use(cx);
    }
    CHECK_EQ_I(lb_bytes_in_use(cx), bytes);
    lb_compiled_close(f);
    lb_unref(kept);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    same_argument(cx);
    lost_updates(cx);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    rules();
    return check_report("updates of compiled functions");
}
