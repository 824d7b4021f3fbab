/* test_dense_policy.c - no operation decodes a whole quantized operand, or
 * moves its elements to a dense result, unless it reports that and the policy
 * allows it.
 *
 * Under DENY, the operations that every format must support run on all formats
 * and variants; those that need a dense copy or have a dense result that could
 * be packed are refused or logged, for all formats or for one. Measured by the
 * allocator: operations on a large nf4 array use at most 4 MiB per thread
 * besides operands and result.
 */
#include "laws.h"
#include "lowbit_params.h"
#include "raw_prim.h"

/* ---- operations that must run -------------------------------------------- */

static lb_array *join(lb_ctx *cx, lb_array *q)
{
    lb_array *in[] = {q, q};
    return lb_concatenate(cx, in, 2, 0);
}

static lb_array *conv(lb_ctx *cx, lb_array *q)
{
    const lb_shape k = LB_SHAPE(lb_dim(q, 0), 1, 8, 8);
    lb_array *x = lb_reshape(cx, q, LB_SHAPE(1, 1, -1, 16));
    return lb_conv_general_dilated(cx, x, lb_reshape(cx, q, k),
                                   &(lb_conv_dims){.lhs = ""});
}

static lb_array *rows(lb_ctx *cx, lb_array *q)
{
    const int32_t at[] = {3, 0, 5};
    return lb_embedding(cx, q, lb_from(cx, LB_I32, LB_SHAPE(3), at));
}

static lb_array *gather(lb_ctx *cx, lb_array *q)
{
    const lb_gather_dims d = {.offset_dims = {1, {1}},
                              .collapsed_slice_dims = {1, {1}},
                              .start_index_map = {1, {1}},
                              .index_vector_dim = 1,
                              .slice_sizes = {lb_dim(q, 0), 1}};
    const int32_t at[] = {13, 0, 63};
    return lb_gather(cx, q, lb_from(cx, LB_I32, LB_SHAPE(3, 1), at), &d);
}

static lb_array *dot(lb_ctx *cx, lb_array *x, lb_array *y, int axis)
{
    const lb_dot_dims d = {.lhs_contract = {1, {axis}},
                           .rhs_contract = {1, {axis}}};
    return lb_dot_general(cx, x, y, &d);
}

static lb_array *sum_of_moved(lb_ctx *cx, lb_array *const *args, int n,
                              void *user)
{
    lb_array *q = user;
    (void)n;
    return lb_reduce_sum(cx, lb_mul(cx, args[0], lb_convert(cx, q, LB_F32)),
                         NULL);
}

/* Of a product with q: the gradient of x is dense. */
static lb_array *gradient(lb_ctx *cx, lb_array *q, lb_array *x)
{
    lb_array *dx = NULL, *in = lb_convert(cx, x, LB_F32);
    lb_array *y = lb_value_and_grad(cx, sum_of_moved, &in, 1, q, &dx, 1);
    return y ? dx : NULL;
}

/* Operations on q and x, both (6,64); x is dense. */
#define SEED_LIST(X)                                                           \
    X(lt, lb_lt(cx, q, x))                                                     \
    X(lt from the right, lb_lt(cx, x, q))                                      \
    X(convert_element_type, lb_convert(cx, q, LB_BF16))                        \
    X(convert_element_type to integers, lb_convert(cx, q, LB_I32))             \
    X(integer_pow, lb_integer_pow(cx, q, 3))                                   \
    X(pow, lb_pow(cx, q, x))                                                   \
    X(pow from the right, lb_pow(cx, x, q))                                    \
    X(div, lb_div(cx, q, x))                                                   \
    X(div from the right, lb_div(cx, x, q))                                    \
    X(sqrt, lb_sqrt(cx, q))                                                    \
    X(dot_general, dot(cx, q, x, 1))                                           \
    X(dot_general from the right, dot(cx, x, q, 0))                            \
    X(dot_general of both, dot(cx, q, q, 1))                                   \
    X(matmul, lb_matmul(cx, x, lb_transpose(cx, q, NULL)))                     \
    X(add, lb_add(cx, q, x))                                                   \
    X(add of both, lb_add(cx, q, q))                                           \
    X(reduce, lb_reduce_sum(cx, q, NULL))                                      \
    X(reduce along the last axis, lb_reduce_max(cx, q, LB_AXES(-1)))           \
    X(reduce along the first axis, lb_reduce_min(cx, q, LB_AXES(0)))           \
    X(mul, lb_mul(cx, x, q))                                                   \
    X(transpose, lb_transpose(cx, q, NULL))                                    \
    X(conv_general_dilated, conv(cx, q))                                       \
    X(max, lb_max(cx, q, x))                                                   \
    X(exp, lb_exp(cx, q))                                                      \
    X(log, lb_log(cx, q))                                                      \
    X(reshape, lb_reshape(cx, q, LB_SHAPE(8, 48)))                             \
    X(broadcast_in_dim,                                                        \
      lb_broadcast_in_dim(cx, q, LB_SHAPE(6, 2, 64), (const int[]){0, 2}))     \
    X(materialize, lb_materialize(cx, q))                                      \
    X(materialize of columns, lb_materialize(cx, lb_transpose(cx, q, NULL)))   \
    X(gradient, gradient(cx, q, x))

static void seed_list(lb_ctx *cx, const sample_format *f, lb_dtype dtype)
{
    const sample_operand o = {dtype, LB_SHAPE(6, 64), VALUES_TAME, 0, 0, false};
    lb_enter(cx);
    lb_array *q = sample_views[0].make(cx, f, &o, 1);
    lb_array *x = sample_views[0].make(cx, &sample_dense, &o, 2);
    if (check_fails(q && x)) fprintf(stderr, "%s: %s\n", f->name, lb_error(cx));
#define RUN(NAME, CALL)                                                        \
    if (check_fails((CALL) != NULL))                                           \
        fprintf(stderr, "%s: " #NAME ": %s\n", f->name, lb_error(cx));         \
    lb_clear(cx);
    SEED_LIST(RUN)
    lb_leave(cx);
}

typedef struct diary {
    int n;
    char last[256];
} diary;

static void note(void *user, const char *sentence)
{
    diary *d = user;
    d->n++;
    snprintf(d->last, sizeof d->last, "%s", sentence);
}

static void seed_lists(void)
{
    static const lb_dense_policy policy[] = {LB_DENSE_DENY, LB_DENSE_LOG};
    for (int i = 0; i < 2; i++) {
        diary d = {0};
        lb_ctx *cx = lb_open(&(lb_options){
            .threads = 1, .dense = policy[i], .log = note, .log_user = &d});
        CHECK(sample_add_outside(cx));
        sample_format_list list = law_formats(cx);
        for (int k = 0; k < list.n; k++)
            for (int t = LB_F32; t <= LB_I8; t++) {
                const sample_operand o = {.dtype = (lb_dtype)t};
                if (list.item[k].fmt && sample_takes(&list.item[k], &o))
                    seed_list(cx, &list.item[k], (lb_dtype)t);
            }
        CHECK_EQ_I(d.n, 0);
        sample_formats_free(&list);
        lb_close(cx);
    }
}

/* ---- operations that move elements -------------------------------------- */

static lb_array *turned(lb_ctx *cx, lb_array *q)
{
    return lb_reshape(cx, lb_transpose(cx, q, NULL), LB_SHAPE(8, 48));
}

static lb_array *mixed(lb_ctx *cx, lb_array *q)
{
    lb_array *in[] = {q, lb_materialize(cx, q)};
    return lb_concatenate(cx, in, 2, 0);
}

static lb_array *padded(lb_ctx *cx, lb_array *q)
{
    return lb_pad(cx, q, lb_scalar_int(cx, 0), (const int64_t[]){1, 0},
                  (const int64_t[]){0, 2}, NULL);
}

static lb_array *updated(lb_ctx *cx, lb_array *q)
{
    lb_array *at[] = {lb_scalar_int(cx, 1), lb_scalar_int(cx, 2)};
    lb_array *u = lb_zeros(cx, lb_dtype_of(q), LB_SHAPE(2, 3));
    return lb_dynamic_update_slice(cx, q, u, at);
}

static lb_array *repeated(lb_ctx *cx, lb_array *q)
{
    return lb_reshape(cx, lb_broadcast_to(cx, q, LB_SHAPE(2, 6, 64)),
                      LB_SHAPE(12, 64));
}

static const struct {
    const char *name, *prim;
    lb_array *(*run)(lb_ctx *, lb_array *q);
} moving[] = {
    {"reshape of columns", "reshape", turned},
    {"reshape of a broadcast", "reshape", repeated},
    {"concatenate", "concatenate", join},
    {"concatenate with dense", "concatenate", mixed},
    {"gather of rows", "gather", rows},
    {"gather of columns", "gather", gather},
    {"pad", "pad", padded},
    {"dynamic_update_slice", "dynamic_update_slice", updated},
};

enum { MOVING = sizeof moving / sizeof *moving };
static int moved_packed[MOVING], moved_dense[MOVING];

/* The result is packed under every policy, or dense: then LOG reports it, with
 * the bytes, and DENY refuses it. */
static void moves(lb_ctx *cx, diary *d, const sample_format *f, int i,
                  lb_dtype dtype)
{
    const sample_operand o = {dtype, LB_SHAPE(6, 64), VALUES_TAME, 0, 0, false};
    lb_text why = {""};
    char bytes[2][64];
    lb_enter(cx);
    lb_array *q = sample_views[0].make(cx, f, &o, 1);
    CHECK(q && lb_set_dense(cx, f->fmt->name, LB_DENSE_ALLOW));
    d->n = 0;
    lb_array *want = moving[i].run(cx, q);
    CHECK(want && d->n == 0);
    const bool dense = want && want->store->data;
    ++*(dense ? &moved_dense[i] : &moved_packed[i]);

    CHECK(lb_set_dense(cx, f->fmt->name, LB_DENSE_LOG));
    lb_array *got = moving[i].run(cx, q);
    CHECK(want && sample_same(got, want, &why));
    if (check_fails((d->n > 0) == dense))
        fprintf(stderr, "%s, %s: %d sentences\n", f->name, moving[i].name,
                d->n);
    snprintf(bytes[0], sizeof bytes[0], " of %zu bytes", lb_nbytes(q));
    snprintf(bytes[1], sizeof bytes[1], " of %zu bytes", lb_nbytes(want));
    if (dense)
        CHECK(strstr(d->last, moving[i].prim) == d->last &&
              strstr(d->last, "has a dense result") &&
              strstr(d->last, f->fmt->name) && strstr(d->last, bytes[0]) &&
              strstr(d->last, bytes[1]));

    CHECK(lb_set_dense(cx, f->fmt->name, LB_DENSE_DENY));
    const size_t before = lb_bytes_in_use(cx);
    lb_enter(cx);
    got = moving[i].run(cx, q);
    if (dense)
        CHECK(!got && lb_error_status(cx) == LB_E_DENIED &&
              strstr(lb_error(cx), d->last) &&
              strstr(lb_error(cx), "lb_materialize"));
    else
        CHECK(sample_same(got, want, &why));
    lb_leave(cx);
    CHECK_EQ_I(lb_bytes_in_use(cx), before);
    lb_clear(cx);
    CHECK(lb_set_dense(cx, f->fmt->name, LB_DENSE_DEFAULT));
    lb_leave(cx);
}

static void everything_moves(void)
{
    diary d = {0};
    lb_ctx *cx =
        lb_open(&(lb_options){.threads = 1, .log = note, .log_user = &d});
    CHECK(sample_add_outside(cx));
    sample_format_list list = law_formats(cx);
    for (int k = 0; k < list.n; k++)
        for (int t = LB_F32; t <= LB_I8; t++) {
            const sample_operand o = {.dtype = (lb_dtype)t};
            for (int i = 0; i < MOVING && list.item[k].fmt; i++)
                if (sample_takes(&list.item[k], &o))
                    moves(cx, &d, &list.item[k], i, (lb_dtype)t);
        }
    for (int i = 0; i < MOVING; i++)
        printf("%-24s packed %3d, dense %3d\n", moving[i].name, moved_packed[i],
               moved_dense[i]);
    CHECK(moved_packed[0] && moved_dense[0]); /* int8, nf4 */
    CHECK(moved_packed[2] && moved_dense[3] && moved_packed[4]);
    CHECK(moved_dense[5] && moved_dense[6] && moved_dense[7]);
    sample_formats_free(&list);

    /* Empty results hold no elements; parts of packed results are no event. */
    lb_array *x = lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(8, 64));
    lb_array *q = lb_quantize(cx, x, NULL);
    lb_array *twice = lb_quantize_scales(cx, q);
    d.n = 0;
    CHECK(lb_set_dense(cx, "nf4", LB_DENSE_DENY));
    CHECK(lb_set_dense(cx, lb_format_of(lb_component(cx, twice, "absmax")),
                       LB_DENSE_DENY));
    CHECK(rows(cx, twice) != NULL && join(cx, twice) != NULL);
    const int64_t none[] = {0, 0}, end[] = {8, 0};
    lb_array *empty = lb_slice(cx, q, none, end, NULL);
    CHECK(turned(cx, q) == NULL);
    lb_clear(cx);
    CHECK(lb_reshape(cx, lb_transpose(cx, empty, NULL), LB_SHAPE(4, 0, 3)));
    CHECK_EQ_S(lb_error(cx), "");
    CHECK_EQ_I(d.n, 0);
    /* Explicit requests of the user are not refused. */
    float v[8 * 64];
    CHECK(lb_read(cx, lb_transpose(cx, q, NULL), v, sizeof v));
    CHECK(lb_convert(cx, lb_transpose(cx, q, NULL), LB_I32) != NULL);
    const char *line = lb_explain(
        cx, "reshape", &q, 1, &(lb_reshape_params){.shape = LB_SHAPE(64, 8)});
    CHECK(line && strstr(line, ": move"));
    lb_close(cx);
}

/* ---- operations that need a dense copy ----------------------------------- */

static lb_ctx *open_raw(lb_dense_policy policy, diary *d)
{
    *d = (diary){0};
    lb_ctx *cx = lb_open(&(lb_options){
        .threads = 1, .dense = policy, .log = note, .log_user = d});
    CHECK(lb_add_primitive(cx, &raw_prim) && sample_add_outside(cx));
    return cx;
}

/* `raw` of an array in that format follows the policy. */
static void obeys(lb_ctx *cx, diary *d, const sample_format *f,
                  lb_dense_policy policy)
{
    const lb_dtype dtype = f->config.dtype ? f->config.dtype : LB_F32;
    const sample_operand o = {dtype, LB_SHAPE(6, 64), VALUES_TAME, 0, 0, false};
    lb_text why;
    char say[128];
    lb_enter(cx);
    lb_array *q = sample_views[0].make(cx, f, &o, 1);
    if (check_fails(q != NULL))
        fprintf(stderr, "%s: %s\n", f->name, lb_error(cx));
    snprintf(say, sizeof say,
             "raw needs a dense copy of operand 0, %s %s(6,64)", f->fmt->name,
             lb_dtype_name(dtype));
    d->n = 0;
    lb_array *out = lb_bind(cx, &raw_prim, 1, &q, NULL);
    if (policy == LB_DENSE_DENY) {
        CHECK(!out && lb_error_status(cx) == LB_E_DENIED &&
              strstr(lb_error(cx), say));
    } else {
        CHECK(sample_same(out, sample_plain(cx, q), &why));
        CHECK_EQ_I(d->n, policy == LB_DENSE_LOG);
        if (policy == LB_DENSE_LOG) CHECK_EQ_S(d->last, say);
        const char *line = lb_explain(cx, "raw", &q, 1, NULL);
        CHECK(line && strstr(line, ": dense"));
    }
    lb_clear(cx);
    lb_leave(cx);
}

static void policies(void)
{
    for (int p = LB_DENSE_ALLOW; p <= LB_DENSE_DENY; p++) {
        diary d;
        lb_ctx *cx = open_raw((lb_dense_policy)p, &d);
        sample_format_list list = law_formats(cx);
        for (int k = 0; k < list.n; k++)
            if (list.item[k].fmt)
                obeys(cx, &d, &list.item[k], (lb_dense_policy)p);
        sample_formats_free(&list);
        lb_close(cx);
    }
}

/* Each format in turn has its own policy, the others keep the context's. */
static void of_one_format(void)
{
    diary d;
    lb_ctx *cx = open_raw(LB_DENSE_ALLOW, &d);
    sample_format_list list = law_formats(cx);
    for (int k = 0; k < list.n; k++) {
        const sample_format *f = &list.item[k];
        if (!f->fmt || f->variant) continue;
        for (int p = LB_DENSE_ALLOW; p <= LB_DENSE_DENY; p++) {
            CHECK(lb_set_dense(cx, f->fmt->name, (lb_dense_policy)p));
            for (int i = 0; i < list.n; i++)
                if (list.item[i].fmt)
                    obeys(cx, &d, &list.item[i],
                          list.item[i].fmt == f->fmt ? (lb_dense_policy)p
                                                     : LB_DENSE_ALLOW);
        }
        CHECK(lb_set_dense(cx, f->fmt->name, LB_DENSE_DEFAULT));
        obeys(cx, &d, f, LB_DENSE_ALLOW);
    }
    sample_formats_free(&list);
    CHECK(!lb_set_dense(cx, "no_such", LB_DENSE_DENY));
    CHECK_EQ_I(lb_error_status(cx), LB_E_ARG);
    CHECK(strstr(lb_error(cx), "no_such"));
    lb_clear(cx);
    CHECK(!lb_set_dense(cx, NULL, LB_DENSE_DENY) && *lb_error(cx));
    lb_clear(cx);
    CHECK(!lb_set_dense(cx, "dense", (lb_dense_policy)7));
    CHECK(strstr(lb_error(cx), "7"));
    CHECK(!lb_set_dense(NULL, "dense", LB_DENSE_DENY));
    lb_close(cx);
}

static void from_environment(void)
{
    static const struct {
        const char *value;
        lb_dense_policy policy;
    } row[] = {{"deny", LB_DENSE_DENY},
               {"log", LB_DENSE_LOG},
               {"allow", LB_DENSE_ALLOW}};
    for (int i = 0; i < 3; i++) {
        diary d;
        setenv("LOWBIT_DENSE", row[i].value, 1);
        lb_ctx *cx = open_raw(LB_DENSE_DEFAULT, &d);
        obeys(cx, &d, sample_toys, row[i].policy);
        lb_close(cx);
    }
    unsetenv("LOWBIT_DENSE");
}

/* ---- memory -------------------------------------------------------------- */

typedef struct meter {
    size_t now, most;
} meter;

/* One thread: only arrays and scratch are allocated, by bind. */
static void *meter_alloc(void *user, size_t size, size_t align)
{
    meter *m = user;
    void *p = NULL;
    if (posix_memalign(&p, align < sizeof p ? sizeof p : align, size))
        return NULL;
    m->now += size;
    if (m->now > m->most) m->most = m->now;
    return p;
}

static void meter_free(void *user, void *p, size_t size)
{
    ((meter *)user)->now -= size;
    free(p);
}

/* Peak bytes of a call, beyond those before and after it. The heap rounds sizes
 * up by at most an eighth, which does not count as the result. */
static size_t extra(const meter *m, size_t before, const lb_array *out)
{
    const size_t result = out && out->store->data ? lb_nbytes(out) : 0;
    CHECK(m->now - before <= result + result / 8 + 4096);
    return m->most - m->now;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SIDE = 2048 }; /* their shadows are as large again */
#else
enum { SIDE = 8192 };
#endif

static void peaks(void)
{
    enum { THREADS = 2, ROWS = 16 };
    const size_t most = (size_t)THREADS * (4 << 20);
    meter m = {0};
    const lb_allocator al = {meter_alloc, meter_free, &m};
    lb_ctx *cx = lb_open(&(lb_options){.threads = THREADS,
                                       .allocator = &al,
                                       .keep_bytes = -1,
                                       .dense = LB_DENSE_DENY});
    CHECK(cx && lb_add_primitive(cx, &raw_prim));
    /* Rows repeat, so that making it needs no memory. */
    lb_array *row =
        lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(1, SIDE));
    row = lb_broadcast_to(cx, row, LB_SHAPE(SIDE, SIDE));
    size_t before = m.now;
    m.most = m.now;
    lb_array *q = lb_quantize(cx, row, &(lb_quant_config){.format = "nf4"});
    CHECK(q != NULL);
    if (!q) fprintf(stderr, "%s\n", lb_error(cx));
    const size_t beyond = m.most - before;
    CHECK(beyond < lb_nbytes(q) + most);
    lb_array *x =
        lb_random_normal(cx, (lb_key){3, 4}, LB_F32, LB_SHAPE(ROWS, SIDE));
    lb_array *y = lb_exp(cx, q);
    printf("%d x %d nf4, bytes beyond operands and result on %d threads:\n",
           SIDE, SIDE, THREADS);
#define MEASURE(NAME, CALL)                                                    \
    do {                                                                       \
        before = m.most = m.now;                                               \
        lb_array *out = CALL;                                                  \
        const size_t used = extra(&m, before, out);                            \
        if (check_fails(out && used <= most))                                  \
            fprintf(stderr, "%s: %s\n", NAME, lb_error(cx));                   \
        printf("  %-16s %zu\n", NAME, used);                                   \
        lb_drop(cx, out);                                                      \
    } while (0)
    MEASURE("exp(q)", lb_exp(cx, q));
    MEASURE("add(q, x)", lb_add(cx, q, y));
    MEASURE("add(x, q)", lb_add(cx, y, q));
    lb_drop(cx, y);
    MEASURE("reduce(q)", lb_reduce_sum(cx, q, NULL));
    MEASURE("reduce(q, 0)", lb_reduce_sum(cx, q, LB_AXES(0)));
    MEASURE("reduce(q, 1)", lb_reduce_max(cx, q, LB_AXES(1)));
    MEASURE("matmul(x, q)", lb_matmul(cx, x, q));
    lb_array *t = lb_transpose(cx, q, NULL);
    MEASURE("transpose(q)", lb_transpose(cx, q, NULL));
    MEASURE("matmul(x, q^T)", lb_matmul(cx, x, t));
    MEASURE("copy(q^T)", lb_materialize(cx, t));
    lb_drop(cx, t);
    lb_drop(cx, q);
    /* The meter detects a dense copy where there is one. */
    lb_array *small = lb_zeros(cx, LB_F32, LB_SHAPE(2048, 2048));
    small = lb_quantize(cx, small, NULL);
    CHECK(lb_set_dense(cx, lb_format_of(small), LB_DENSE_ALLOW));
    before = m.most = m.now;
    lb_array *out = lb_bind(cx, &raw_prim, 1, &small, NULL);
    CHECK(out && extra(&m, before, out) >= 2048 * 2048 * sizeof(float));
    lb_close(cx);
    CHECK_EQ_I(m.now, 0);
}

int main(void)
{
    seed_lists();
    everything_moves();
    policies();
    of_one_format();
    from_environment();
    peaks();
    return check_report("dense policy");
}
