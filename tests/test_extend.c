/* test_extend.c - external primitives, formats and layers have the same rights
 * as built-in ones: they are found, explained and called, and refused if filled
 * in incorrectly. (Law 3 checks that every primitive reads external formats.)
 */
#include "laws.h"
#include "raw_prim.h"
#include "scenario.h"
#include "toy_formats.h"

/* ---- a primitive: hypot ------------------------------------------------- */

static bool hypot_infer(lb_ctx *cx, lb_call *c)
{
    const lb_array *x = c->in[0], *y = c->in[1];
    if (!lb_shape_equal(&x->shape, &y->shape) || x->dtype != y->dtype ||
        lb_ctype_of(x->dtype) != LB_C_F32)
        return lb_fail(cx, LB_E_SHAPE, "hypot: %s%s with %s%s",
                       lb_dtype_name(x->dtype), LB_SHOW(&x->shape),
                       lb_dtype_name(y->dtype), LB_SHOW(&y->shape));
    c->shape = x->shape;
    c->dtype = x->dtype;
    return true;
}

static void hypot_plan(const lb_call *c, lb_plan *p)
{
    const lb_array *in[] = {c->in[0], c->in[1]};
    p->phases = 1;
    p->units[0] = lb_tiling_for(&c->shape, in, 2).tiles;
    p->per_thread = 3 * LB_TILE * sizeof(float);
    p->kernel = "by the test";
}

static void hypot_eval(const lb_work *w)
{
    const lb_call *c = w->call;
    const lb_array *in[] = {c->in[0], c->in[1]};
    const lb_tiling t = lb_tiling_for(&c->shape, in, 2);
    float *x = w->scratch, *y = x + LB_TILE, *z = y + LB_TILE;
    for (int64_t u = w->lo; u < w->hi; u++) {
        int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
        const int64_t size = lb_tiling_box(&t, u, lo, n);
        lb_tile_read(c->cpu, in[0], lo, n, LB_C_F32, x);
        lb_tile_read(c->cpu, in[1], lo, n, LB_C_F32, y);
        for (int64_t i = 0; i < size; i++)
            z[i] = sqrtf(x[i] * x[i] + y[i] * y[i]);
        lb_tile_write(c->cpu, w->out, lo, n, LB_C_F32, z);
    }
}

static const lb_prim hypot_prim = {
    .struct_size = sizeof(lb_prim),
    .name = "hypot",
    .n_in = 2,
    .infer = hypot_infer,
    .plan = hypot_plan,
    .eval = hypot_eval,
};

static void adding_a_primitive(lb_ctx *cx, const sample_format *f)
{
    CHECK(lb_add_primitive(cx, &hypot_prim));
    CHECK(lb_find_primitive(cx, "hypot") == &hypot_prim);
    int k = 0;
    while (lb_primitive_at(cx, k))
        k++;
    CHECK(lb_primitive_at(cx, k - 1) == &hypot_prim);
    CHECK(!lb_primitive_at(cx, -1));
    lb_array *in[] = {lb_full(cx, LB_F32, LB_SHAPE(2), 3),
                      lb_full(cx, LB_F32, LB_SHAPE(2), 4)};
    CHECK_EQ_S(lb_explain(cx, "hypot", in, 2, NULL),
               "hypot f32(2) f32(2) -> f32(2): tiles, by the test, 1 unit on 1 "
               "thread, scratch 0 + 196608 each");
    lb_array *out = lb_bind(cx, &hypot_prim, 2, in, NULL);
    CHECK(out && ((const float *)lb_data(out))[1] == 5);
    in[1] = lb_full(cx, LB_F32, LB_SHAPE(3), 4);
    CHECK(!lb_bind(cx, &hypot_prim, 2, in, NULL));
    CHECK_EQ_S(lb_error(cx), "hypot: f32(2) with f32(3)");
    lb_clear(cx);
    /* A context that it was not added to does not know it. */
    lb_ctx *other = lb_open(&(lb_options){.threads = 1});
    CHECK(!lb_find_primitive(other, "hypot"));
    lb_close(other);

    const lb_shape shape[] = {
        {0}, LB_SHAPE(5), LB_SHAPE(70, 41), LB_SHAPE(2, 3, 4), LB_SHAPE(3, 0)};
    sample_format copy = *f;
    for (int i = 0; i < 5; i++)
        for (lb_dtype d = LB_F32; d <= LB_BF16; d++) {
            sample s = {.prim = "hypot"};
            sample_in(&s, d, shape[i], VALUES_TAME);
            sample_in(&s, d, shape[i], VALUES_TAME);
            law_transparency(cx, &hypot_prim, &s, &copy);
        }
}

static void refused(lb_ctx *cx, bool added, lb_status status, const char *say)
{
    const bool ok =
        !added && lb_error_status(cx) == status && strstr(lb_error(cx), say);
    if (check_fails(ok))
        fprintf(stderr, "%s: \"%s\", not %s with \"%s\"\n",
                lb_status_name(lb_error_status(cx)), lb_error(cx),
                lb_status_name(status), say);
    lb_clear(cx);
}

static lb_verdict no_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    (void)cx;
    (void)c;
    (void)out;
    return LB_DECLINED;
}

static lb_verdict bad_move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    (void)c;
    (void)out;
    lb_fail(cx, LB_E_UNSUPPORTED, "bad_move: sentence");
    return LB_FAILED;
}

static bool silent_infer(lb_ctx *cx, lb_call *c)
{
    (void)cx;
    (void)c;
    return false;
}

static void bad_primitives(lb_ctx *cx)
{
#define REFUSED(STATUS, SAY, ...)                                              \
    do {                                                                       \
        lb_prim p = hypot_prim;                                                \
        p.name = "bad";                                                        \
        __VA_ARGS__;                                                           \
        refused(cx, lb_add_primitive(cx, &p), STATUS, SAY);                    \
    } while (0)
    REFUSED(LB_E_NULL, "name", p.name = NULL);
    REFUSED(LB_E_NULL, "bad", p.infer = NULL);
    REFUSED(LB_E_ARG, "struct_size 8,", p.struct_size = 8);
    REFUSED(LB_E_NULL, "bad", p.eval = NULL);
    REFUSED(LB_E_NULL, "bad", p.plan = NULL);
    REFUSED(LB_E_NULL, "bad", p.plan = NULL; p.eval = NULL);
    REFUSED(LB_E_NULL, "bad", p.plan = NULL; p.move = no_move);
    REFUSED(LB_E_SIZE, "1025", p.params_size = LB_MAX_PARAMS + 1);
    REFUSED(LB_E_SIZE, "-2", p.n_in = -2);
    REFUSED(LB_E_ARG, "exists", p.name = "exp");
    REFUSED(LB_E_ARG, "exists", p.name = "hypot");
#undef REFUSED
    refused(cx, lb_add_primitive(cx, NULL), LB_E_NULL, "primitive");
    CHECK(!lb_add_primitive(NULL, &hypot_prim));
    CHECK(!lb_find_primitive(cx, "bad") && !lb_find_primitive(cx, NULL));

    /* Rules that violate their contract do not break the library. */
    lb_array *one = lb_full(cx, LB_F32, LB_SHAPE(1), 1);
    lb_array *in[] = {one, one};
    lb_prim p = hypot_prim;
    p.move = no_move;
    p.plan = NULL;
    p.eval = NULL;
    refused(cx, lb_bind(cx, &p, 2, in, NULL), LB_E_UNSUPPORTED, "hypot");
    p.move = bad_move;
    refused(cx, lb_bind(cx, &p, 2, in, NULL), LB_E_UNSUPPORTED,
            "bad_move: sentence");
    p = hypot_prim;
    p.infer = silent_infer;
    refused(cx, lb_bind(cx, &p, 2, in, NULL), LB_E_ARG, "hypot");
}

/* ---- a primitive that needs raw memory ---------------------------------- */

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

static void policies(void)
{
    const lb_shape shape = LB_SHAPE(6, 40);
    for (int policy = LB_DENSE_ALLOW; policy <= LB_DENSE_DENY; policy++) {
        diary d = {0};
        lb_ctx *cx = lb_open(&(lb_options){.threads = 1,
                                           .dense = (lb_dense_policy)policy,
                                           .log = note,
                                           .log_user = &d});
        CHECK(lb_add_primitive(cx, &raw_prim) && lb_add_format(cx, &toy_block));
        lb_array *q = toy_block_make(cx, &shape, 32, 1);
        lb_array *plain = sample_plain(cx, q);
        lb_array *t = lb_transpose(cx, plain, NULL);
        lb_text why;
        /* A dense row-major operand needs no copy: the policy does not matter.
         */
        CHECK(
            sample_same(lb_bind(cx, &raw_prim, 1, &plain, NULL), plain, &why));
        CHECK_EQ_I(d.n, 0);
        const size_t before = lb_bytes_in_use(cx);
        lb_array *out = lb_bind(cx, &raw_prim, 1, &q, NULL);
        if (policy == LB_DENSE_DENY) {
            refused(cx, out != NULL, LB_E_DENIED,
                    "raw needs a dense copy of operand 0, toy_block f32(6,40)");
            CHECK_EQ_I(lb_bytes_in_use(cx), before);
            CHECK(!lb_explain(cx, "raw", &q, 1, NULL));
            CHECK_EQ_I(lb_error_status(cx), LB_E_DENIED);
            lb_clear(cx);
            CHECK(lb_exp(cx, q) != NULL); /* tiles are not a dense copy */
        } else {
            CHECK(sample_same(out, plain, &why));
            CHECK(strstr(lb_explain(cx, "raw", &q, 1, NULL), ": dense"));
            CHECK_EQ_I(d.n > 0, policy == LB_DENSE_LOG);
        }
        /* Copying a strided operand is not decoding it. */
        const int noted = d.n;
        CHECK(sample_same(lb_bind(cx, &raw_prim, 1, &t, NULL), t, &why));
        CHECK_EQ_I(d.n, noted);
        if (policy == LB_DENSE_LOG)
            CHECK(strstr(
                d.last,
                "raw needs a dense copy of operand 0, toy_block f32(6,40)"));
        else
            CHECK_EQ_I(d.n, 0);
        lb_close(cx);
    }
}

/* ---- layers ------------------------------------------------------------- */

typedef struct tracer {
    lb_layer layer;
    int calls;
    const lb_prim *last;
    bool swallows; /* gives back the first operand instead */
} tracer;

static lb_array *trace(lb_ctx *cx, lb_layer *self, const lb_prim *prim, int n,
                       lb_array *const *in, const void *params)
{
    tracer *t = (tracer *)(void *)self;
    t->calls++;
    t->last = prim;
    if (t->swallows) return in[0];
    return lb_bind(cx, prim, n, in, params);
}

static void layers(lb_ctx *cx)
{
    tracer low = {.layer = {.bind = trace}}, high = {.layer = {.bind = trace}};
    lb_array *x = lb_iota(cx, LB_F32, LB_SHAPE(3, 4), 1);
    lb_push_layer(cx, &low.layer);
    CHECK(lb_exp(cx, x) != NULL);
    CHECK_EQ_I(low.calls, 1);
    CHECK_EQ_S(low.last->name, "exp");
    lb_push_layer(cx, &high.layer);
    CHECK(lb_neg(cx, x) != NULL);
    CHECK(high.calls == 1 && low.calls == 2);
    high.swallows = true; /* then the layers below do not see it */
    CHECK(lb_neg(cx, x) == x);
    CHECK(high.calls == 2 && low.calls == 2);
    lb_pop_layer(cx);
    /* max, sub, exp, sum, div and the operations that make their shapes equal.
     */
    const int before = low.calls;
    CHECK(lb_softmax(cx, x, -1) != NULL);
    CHECK(low.calls - before >= 6);
    CHECK_EQ_S(low.last->name, "div");
    /* Wrong calls are refused before any layer sees them. */
    const int good = low.calls;
    CHECK(!lb_exp(cx, NULL));
    CHECK_EQ_I(low.calls, good);
    lb_clear(cx);
    /* Every function that computes goes through lb_bind. */
    static const char *const silent[] = {"from", "wrap", "scalar", "scalar_int",
                                         "explain"};
    const char *name = "";
    for (int k = 0; name; k++) {
        const int was = low.calls;
        scenario_run(cx, k, &name);
        bool quiet = !name;
        for (int i = 0; i < 5 && name; i++)
            quiet = quiet || strcmp(silent[i], name) == 0;
        if (check_fails(quiet || low.calls > was))
            fprintf(stderr, "%s bypasses lb_bind\n", name);
    }
    CHECK_EQ_S(lb_error(cx), "");
    lb_pop_layer(cx);
    const int end = low.calls;
    CHECK(lb_exp(cx, x) != NULL);
    CHECK_EQ_I(low.calls, end);
    lb_pop_layer(cx); /* there is none: nothing happens */
}

/* ---- formats ------------------------------------------------------------ */

/* A layout without space for a part's own axis. */
static bool wide_layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                        const lb_shape *shape, lb_layout *to)
{
    (void)cx, (void)q, (void)from;
    lb_part_rows(&to->part[0], shape, 32);
    to->part[0].own = 34;
    to->elem[0] = LB_U8;
    return true;
}

static void wide_run(const lb_cpu *cpu, const lb_quant *q, lb_store *to,
                     int64_t first, int64_t n, const float *x)
{
    (void)cpu, (void)q, (void)to, (void)first, (void)n, (void)x;
}

static void too_wide(void)
{
    lb_ctx *own = lb_open(NULL);
    const lb_format f = {
        .struct_size = sizeof f,
        .name = "wide",
        .part = {{.name = "blocks", .raw = true}},
        .decode = toy_block.decode,
        .layout = wide_layout,
        .encode_run = wide_run,
    };
    CHECK(lb_add_format(own, &f));
    lb_array *a = lb_zeros(own, LB_F32, LB_SHAPE(1, 1, 1, 1, 1, 1, 1, 2));
    refused(own, lb_quantize(own, a, &(lb_quant_config){.format = "wide"}),
            LB_E_SHAPE, "rank 8");
    lb_close(own);
}

static void adding_formats(lb_ctx *cx)
{
    static const lb_format *const fmt[] = {&toy_block, &toy_scale, &toy_sum};
    int built_in = 0;
    while (lb_format_at(cx, built_in))
        built_in++;
    for (int i = 0; i < 3; i++) {
        CHECK(lb_add_format(cx, fmt[i]));
        CHECK(lb_find_format(cx, fmt[i]->name) == fmt[i]);
        CHECK(lb_format_at(cx, built_in + i) == fmt[i]);
    }
    CHECK(!lb_format_at(cx, built_in + 3) && !lb_format_at(cx, -1));
    CHECK_EQ_S(lb_format_name(cx, built_in), fmt[0]->name);
    CHECK_EQ_S(lb_format_name(cx, 0), "dense");
    CHECK(!lb_format_name(cx, built_in + 3) && !lb_format_name(NULL, -1));
#define REFUSED(STATUS, SAY, ...)                                              \
    do {                                                                       \
        lb_format f = toy_block;                                               \
        f.name = "bad";                                                        \
        __VA_ARGS__;                                                           \
        refused(cx, lb_add_format(cx, &f), STATUS, SAY);                       \
    } while (0)
    REFUSED(LB_E_NULL, "name", f.name = NULL);
    REFUSED(LB_E_NULL, "bad", f.decode = NULL);
    REFUSED(LB_E_ARG, "struct_size 8,", f.struct_size = 8);
    REFUSED(LB_E_ARG, "exists", f.name = "dense");
    REFUSED(LB_E_ARG, "exists", f.name = "toy_sum");
    const lb_code_kind good = {.bits = 4, .most = 15, .step = 1};
    REFUSED(LB_E_ARG, "3 bits", f.codes = good; f.codes.bits = 3);
    REFUSED(LB_E_ARG, "by 0", f.codes = good; f.codes.step = 0);
    REFUSED(LB_E_ARG, "to 16", f.codes = good; f.codes.most = 16);
    REFUSED(LB_E_ARG, "filler 16", f.codes = good; f.codes.filler = 16);
    REFUSED(LB_E_ARG, "part codes", f.codes = good; f.part[0].raw = false);
    REFUSED(LB_E_NULL, "no encoder", f.layout = wide_layout);
    REFUSED(LB_E_NULL, "but no parts", f.layout = wide_layout;
            f.part[0].name = NULL);
    static const lb_foreign half[] = {{.layout = "half", .part = {"x"}}, {0}};
    REFUSED(LB_E_NULL, "half", f.foreign = half);
#undef REFUSED
    refused(cx, lb_add_format(cx, NULL), LB_E_NULL, "format");
    CHECK(!lb_add_format(NULL, &toy_block));
}

static void making(lb_ctx *cx)
{
    const lb_shape s = LB_SHAPE(6, 40);
    lb_array *q = toy_block_make(cx, &s, 32, 1);
    CHECK_EQ_S(lb_format_of(q), "toy_block");
    CHECK_EQ_I(lb_nbytes(q), 6 * 20 + 6 * 2 * 4);
    CHECK(!lb_data(q));
    lb_part t[LB_MAX_PARTS];
    memcpy(t, q->store->part, sizeof t);
#define REFUSED(STATUS, SAY, ...)                                              \
    do {                                                                       \
        lb_part p[LB_MAX_PARTS];                                               \
        lb_shape stored = s;                                                   \
        lb_dtype d = LB_F32;                                                   \
        memcpy(p, t, sizeof p);                                                \
        __VA_ARGS__;                                                           \
        refused(cx, lb_make(cx, &toy_block, d, 0, &stored, p), STATUS, SAY);   \
    } while (0)
    REFUSED(LB_E_SHAPE, "scale has shape (6,2), not (6,3)", p[1].g[1] = 16);
    REFUSED(LB_E_SHAPE, "codes", stored.dim[1] = 41);
    REFUSED(LB_E_ARG, "-1 on axis 0", p[0].g[0] = -1);
    REFUSED(LB_E_SHAPE, "own axis of size -1", p[1].own = -1);
    REFUSED(LB_E_DTYPE, "77", d = (lb_dtype)77);
    REFUSED(LB_E_ARG, "no part 2", p[2] = p[1]);
    REFUSED(LB_E_SHAPE, "rank 9", stored.rank = 9);
    REFUSED(LB_E_NULL, "codes is missing", p[0].a = NULL);
    REFUSED(LB_E_NULL, "scale is missing", p[1].a = NULL);
    REFUSED(LB_E_ARG, "per 0 elements", p[0].g[1] = 0);
    REFUSED(LB_E_ARG, "codes must be dense",
            p[0].a = lb_broadcast_to(cx, lb_zeros(cx, LB_U8, LB_SHAPE(1)),
                                     p[0].a->shape));
#undef REFUSED
    refused(cx, lb_make(cx, NULL, LB_F32, 0, &s, t), LB_E_NULL, "format");
    refused(cx, lb_make(cx, &toy_block, LB_F32, 0, NULL, t), LB_E_NULL,
            "shape");
    refused(cx, lb_make(cx, &toy_block, LB_F32, 0, &s, NULL), LB_E_NULL,
            "table");
    CHECK(!lb_make(NULL, &toy_block, LB_F32, 0, &s, t));
    /* Nested arrays up to the maximum depth. */
    int depth = 1;
    for (lb_array *a = q; (a = toy_sum_make(cx, a, 2, 3)); depth++)
        CHECK(lb_exp(cx, a) != NULL);
    CHECK_EQ_I(depth, LB_MAX_NESTING);
    CHECK(strstr(lb_error(cx), "8 deep"));
    lb_clear(cx);
}

/* ---- a format's own rules ----------------------------------------------- */

/* neg: returns the operand itself, to be recognised. */
static lb_verdict rule_done(lb_ctx *cx, const lb_call *c, int operand,
                            lb_array **out)
{
    *out = lb_view(cx, c->in[operand]);
    return *out ? LB_DONE : LB_FAILED;
}

static lb_verdict rule_declines(lb_ctx *cx, const lb_call *c, int operand,
                                lb_array **out)
{
    (void)c;
    (void)operand;
    (void)out;
    return lb_scalar(cx, 1) ? LB_DECLINED : LB_FAILED; /* leaves an array */
}

static lb_verdict rule_fails(lb_ctx *cx, const lb_call *c, int operand,
                             lb_array **out)
{
    (void)c;
    (void)out;
    lb_fail(cx, LB_E_UNSUPPORTED, "add: operand %d", operand);
    return LB_FAILED;
}

static void rules(lb_ctx *cx)
{
    static const lb_rule rule[] = {{"neg", rule_done},
                                   {"exp", rule_declines},
                                   {"add", rule_fails},
                                   {NULL, NULL}};
    static lb_format ruled;
    const lb_shape s = LB_SHAPE(6, 40);
    ruled = toy_block;
    ruled.name = "ruled";
    ruled.rules = rule;
    lb_array *q = toy_block_make(cx, &s, 32, 1);
    lb_array *r = lb_make(cx, &ruled, LB_F32, 0, &s, q->store->part);
    lb_text why;
    CHECK(sample_same(lb_neg(cx, r), q, &why));
    CHECK(strstr(lb_explain(cx, "neg", &r, 1, NULL), ": rule"));
    CHECK(sample_same(lb_exp(cx, r), lb_exp(cx, q), &why));
    CHECK(strstr(lb_explain(cx, "exp", &r, 1, NULL), ": tiles"));
    CHECK(!lb_add(cx, q, r));
    CHECK_EQ_S(lb_error(cx), "add: operand 1");
    lb_clear(cx);
    CHECK(sample_same(lb_sub(cx, q, r), lb_sub(cx, q, q), &why));
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){
        .threads = 1, .dense = LB_DENSE_LOG, .log = log_no_copies});
    CHECK(cx != NULL);
    if (!cx) return check_report("extend");
    adding_formats(cx);
    too_wide();
    adding_a_primitive(cx, &sample_toys[0]);
    bad_primitives(cx);
    layers(cx);
    making(cx);
    rules(cx);
    lb_close(cx);
    policies();
    return check_report("extend");
}
