/* test_spec.c - partition specs: syntax, rules, and which rank holds what. */
/* ctest: skip-ref */
#include "check.h"
#include "lowbit_ext.h"
#include "lowbit_mesh.h"

static lb_ctx *cx;

static const char *show(const lb_grid *g, const char *text, lb_shape shape,
                        lb_spec_report *r)
{
    static char buf[256];
    lb_spec spec;
    lb_clear(cx);
    if (!lb_spec_parse(cx, g, shape, text, r, &spec)) return lb_error(cx);
    return lb_spec_text(g, &spec, buf, sizeof buf);
}

static void forms(const lb_grid *g)
{
    const lb_shape s = LB_SHAPE(8, 16, 24);
    static const char *const same[][2] = {
        {"P()", "P()"},
        {"P(tp, None)", "P(tp, None)"},
        {"P((dp,tp), None)", "P((dp,tp), None)"},
        {"P((tp, dp))", "P((tp,dp))"},
        {" P ( ) ", NULL},
        {"P(None,None,tp)", "P(None, None, tp)"},
        {"P(\"tp\",)", "P(tp)"},
        {"P('dp', (\"tp\",), None)", "P(dp, tp, None)"},
        {"P((), dp)", "P(None, dp)"},
        {"P([dp, tp])", "P((dp,tp))"},
        {NULL, "P()"},
        {"None", "P()"},
        {"dp", "P(dp)"},
        {"\"dp\"", "P(dp)"},
        {"(dp, tp)", "P(dp, tp)"},
        {"[\"dp\", None]", "P(dp, None)"},
        {"((dp, tp), None)", "P((dp,tp), None)"},
        {"[]", "P()"},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i][1]) CHECK_EQ_S(show(g, same[i][0], s, NULL), same[i][1]);
    static const char *const bad[] = {
        "",          "P",         "P(",           "P(dp",   "P(dp tp)",
        "P(dp))",    "P(dp,,tp)", "P((dp,None))", "P('dp)", "P(dp) x",
        "P(((dp)))", "Q(dp)",     "dp,tp",        "(dp]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        show(g, bad[i], s, NULL);
        CHECK_EQ_I(lb_error_status(cx) != LB_OK, 1);
    }
    lb_clear(cx);
}

/* The message contains the values. */
static void refusals(const lb_grid *g)
{
    const lb_shape s = LB_SHAPE(8, 6);
    CHECK_EQ_S(show(g, "P(nope)", s, NULL),
               "spec P(nope) names nope, which the mesh dp=2,tp=4 lacks");
    CHECK_EQ_S(show(g, "P(dp, dp)", s, NULL),
               "spec P(dp, dp) uses mesh axis dp twice");
    CHECK_EQ_S(show(g, "P((dp,tp), tp)", s, NULL),
               "spec P((dp,tp), tp) uses mesh axis tp twice");
    CHECK_EQ_S(
        show(g, "P(None, tp)", s, NULL),
        "spec P(None, tp) splits axis 1 of (8,6) into 4 pieces, but 6 is "
        "not a multiple of 4");
    CHECK_EQ_S(show(g, "P(None, dp, None)", s, NULL),
               "spec P(None, dp, None) has an entry 2, but (8,6) has 2 axes");
    CHECK_EQ_S(show(g, "P(dp)", lb_shape_make(0, NULL), NULL),
               "spec P(dp) has an entry 0, but () has 0 axes");
    lb_clear(cx);
    lb_spec spec;
    CHECK(!lb_spec_parse(cx, NULL, s, "P(dp)", NULL, &spec));
    CHECK(strstr(lb_error(cx), "there is no mesh"));
    lb_clear(cx);
}

static void relaxed(const lb_grid *g)
{
    lb_spec_report r = {0};
    const lb_shape s = LB_SHAPE(8, 6);
    CHECK_EQ_S(show(g, "P(nope, dp)", s, &r), "P(None, dp)");
    CHECK(r.n == 1 && r.change[0].entry == 0 &&
          strstr(r.change[0].why, "nope"));
    CHECK_EQ_S(show(g, "P((dp, nope), tp)", s, &r), "P(None, None)");
    CHECK(r.n == 2 &&
          strstr(r.change[1].why, "axis 1, 6, is not a multiple of 4"));
    CHECK_EQ_S(show(g, "P(tp, dp, nope, tp)", s, &r), "P(tp, dp)");
    CHECK(r.n == 2 && r.change[0].entry == 2 && r.change[1].entry == 3);
    CHECK_EQ_S(show(g, "P(dp, dp)", s, &r),
               "spec P(dp, dp) uses mesh axis dp twice");
    /* The second does not divide, so only one remains. */
    CHECK_EQ_S(show(g, "P(tp, tp)", s, &r), "P(tp, None)");
    r.strict_names = true;
    CHECK_EQ_S(show(g, "P(tp, tp)", s, &r),
               "spec P(tp, tp) uses mesh axis tp twice");
    CHECK(strstr(show(g, "P(nope)", s, &r), "lacks"));
    CHECK_EQ_S(show(g, "P(tp, (tp, dp))", LB_SHAPE(8), &r),
               "spec P(tp, (tp, dp)) uses mesh axis tp twice");
    CHECK_EQ_S(show(g, "P(None, tp, None)", s, &r), "P(None, None)");
    CHECK_EQ_I(r.n, 2);
    lb_clear(cx);
}

/* ('tp','dp') counts tp first. */
static void slices(const lb_grid *g)
{
    lb_spec a, b;
    const lb_shape s = LB_SHAPE(16, 4);
    CHECK(lb_spec_parse(cx, g, s, "P((tp,dp))", NULL, &a));
    for (int r = 0; r < 8; r++) {
        int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
        lb_spec_slice(g, &a, &s, r, lo, n);
        const int dp = r / 4, tp = r % 4;
        CHECK_EQ_I(lo[0], 2 * (tp * 2 + dp));
        CHECK_EQ_I(n[0], 2);
        CHECK(lo[1] == 0 && n[1] == 4);
        CHECK_EQ_I(lb_spec_replica(g, &a, &s, r), 0);
    }
    CHECK(lb_spec_parse(cx, g, s, "P(dp)", NULL, &a));
    for (int r = 0; r < 8; r++)
        CHECK_EQ_I(lb_spec_replica(g, &a, &s, r), r % 4);
    const lb_shape none = LB_SHAPE(0, 4); /* replicated on all ranks */
    for (int r = 0; r < 8; r++)
        CHECK_EQ_I(lb_spec_replica(g, &a, &none, r), r);
    CHECK(lb_spec_parse(cx, g, s, "P(dp, None)", NULL, &b));
    CHECK(lb_spec_equal(g, &a, &b));
    CHECK(lb_spec_parse(cx, g, s, "P(None, dp)", NULL, &b));
    CHECK(!lb_spec_equal(g, &a, &b));
    lb_grid one;
    CHECK(lb_grid_parse(cx, "dp=1,tp=8", &one));
    CHECK(lb_spec_parse(cx, &one, s, "P((dp,tp))", NULL, &a));
    CHECK(lb_spec_parse(cx, &one, s, "P(tp, dp)", NULL, &b));
    CHECK(lb_spec_equal(&one, &a, &b));
}

int main(void)
{
    lb_grid g;
    cx = lb_open(&(lb_options){.threads = 1});
    CHECK(lb_grid_parse(cx, "dp=2,tp=4", &g));
    forms(&g);
    refusals(&g);
    relaxed(&g);
    slices(&g);
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
    lb_close(cx);
    return check_report("spec");
}
