/* test_io_specs.c - sharding rules by pattern: the spec of each array of a
 * file, and the reason; strict and relaxed; arrays without a matching rule,
 * invalid rules and invalid options.
 */
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "lowbit_io.h"
#include "refused.h"
#include "scratch.h"

static lb_ctx *cx;
static char path[SCRATCH_MAX];

static void save_model(void)
{
    lb_planned list[] = {{.name = "embed.weight"},   {.name = "l0.up.weight"},
                         {.name = "l0.down.weight"}, {.name = "l0.norm.weight"},
                         {.name = "step"},           {.name = "l0.odd.weight"}};
    lb_enter(cx);
    list[0].array = lb_zeros(cx, LB_BF16, LB_SHAPE(96, 64));
    list[1].array =
        lb_quantize(cx, lb_zeros(cx, LB_F32, LB_SHAPE(256, 64)), NULL);
    list[2].array =
        lb_quantize(cx, lb_zeros(cx, LB_F32, LB_SHAPE(64, 256)), NULL);
    list[3].array = lb_zeros(cx, LB_F32, LB_SHAPE(64));
    list[4].array = lb_zeros(cx, LB_F32, lb_shape_make(0, NULL));
    list[5].array = lb_zeros(cx, LB_F32, LB_SHAPE(6, 10));
    CHECK(lb_save(cx, path, list, 6, &(lb_save_options){.no_sync = true}));
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
}

typedef struct row {
    const char *name, *spec, *pattern, *whole;
    int dropped;
} row;

static void check_rows(lb_rules *r, lb_file *f, bool relaxed, const row *want,
                       int n)
{
    lb_grid grid;
    char text[256];
    CHECK(lb_grid_parse(cx, "dp=2,tp=4", &grid));
    for (int i = 0; i < n; i++) {
        lb_placement p;
        CHECK(lb_rules_place(cx, r, &grid, f, want[i].name, relaxed, &p));
        CHECK_EQ_S(lb_error(cx), "");
        CHECK_EQ_S(lb_spec_text(&grid, &p.spec, text, sizeof text),
                   want[i].spec);
        CHECK_EQ_S(p.pattern, want[i].pattern);
        CHECK_EQ_S(p.whole, want[i].whole);
        CHECK_EQ_I(p.dropped.n, want[i].dropped);
        CHECK_EQ_S(p.entry ? p.entry->name : NULL, want[i].name);
        lb_clear(cx);
    }
}

static void test_first(lb_file *f)
{
    static const row want[] = {
        {"embed.weight", "P((dp,tp))", "embed", NULL, 0},
        {"l0.up.weight", "P(tp, None)", "\\.up\\.", NULL, 0},
        {"l0.down.weight", "P(None, tp)", "(?<=l0)\\.down", NULL, 0},
        {"l0.norm.weight", "P()", "norm", "the rule splits no axis", 0},
        {"step", "P()", "step", "a scalar", 0},
        {"l0.odd.weight", "P()", NULL, "no rule matches", 0},
    };
    lb_rules *r = lb_rules_open(cx);
    CHECK(lb_rules_add(cx, r, "embed=P((dp, tp))"));
    CHECK(lb_rules_add(cx, r, "\\.up\\.=P(tp, None)"));
    CHECK(lb_rules_add(cx, r, "(?<=l0)\\.down=P(None, tp)"));
    CHECK(lb_rules_add(cx, r, "norm=P()"));
    CHECK(lb_rules_add(cx, r, "step=P(tp)"));
    CHECK(lb_rules_add(cx, r, "up|down=P(dp)")); /* the first match counts */
    check_rows(r, f, false, want, 6);
    REFUSED(lb_rules_check(cx, r, f), LB_E_ARG,
            "rule 'up|down' matches none of the 6 arrays");
    lb_rules_close(r);
}

static void test_fit(lb_file *f)
{
    static const row want[] = {
        {"embed.weight", "P(None, tp)", ".", NULL, 1},
        {"l0.up.weight", "P(None, None)", ".",
         "no axis of the rule can be split", 2},
        {"l0.norm.weight", "P(None)", ".", "no axis of the rule can be split",
         2},
        {"l0.odd.weight", "P(None, None)", ".",
         "no axis of the rule can be split", 2},
    };
    lb_grid grid;
    lb_placement p;
    lb_rules *r = lb_rules_open(cx);
    CHECK(lb_grid_parse(cx, "dp=2,tp=4", &grid));
    CHECK(lb_rules_add(cx, r, ".=P(pp, tp)"));
    check_rows(r, f, true, want, 4);
    CHECK(lb_rules_check(cx, r, f));
    REFUSED(lb_rules_place(cx, r, &grid, f, "embed.weight", false, &p),
            LB_E_AXIS, "names pp, which the mesh dp=2,tp=4 lacks");
    lb_rules_close(r);
    r = lb_rules_open(cx);
    CHECK(lb_rules_add(cx, r, ".=P(None, tp)"));
    REFUSED(lb_rules_place(cx, r, &grid, f, "l0.up.weight", false, &p),
            LB_E_SHAPE,
            "spec P(None, tp) splits axis 1 of 'l0.up.weight', nf4 "
            "f32(256,64), into pieces of 16, which cut through blocks of 64");
    REFUSED(lb_rules_place(cx, r, &grid, f, "l0.odd.weight", false, &p),
            LB_E_SHAPE, "into 4 pieces, but 10 is not a multiple of 4");
    REFUSED(lb_rules_place(cx, r, &grid, f, "none", false, &p), LB_E_ARG,
            "has no array called 'none'");
    lb_rules_close(r);
}

static void test_text(void)
{
    lb_rules *r = lb_rules_open(cx);
    REFUSED(lb_rules_add(cx, r, "no spec"), LB_E_ARG,
            "rule 'no spec': expected PATTERN=P(None, tp)");
    REFUSED(lb_rules_add(cx, r, "=P(tp)"), LB_E_ARG, "expected PATTERN");
    REFUSED(lb_rules_add(cx, r, "a=Q(tp)"), LB_E_ARG, "is invalid");
    REFUSED(lb_rules_add(cx, r, "a=P(tp"), LB_E_ARG, "is incomplete");
    REFUSED(lb_rules_add(cx, r, "(a=P(tp)"), LB_E_ARG, "rule '(a'");
    CHECK(!lb_rules_add(cx, NULL, "a=P(tp)"));
    char file[SCRATCH_MAX];
    CHECK(scratch_file(file));
    FILE *to = fopen(file, "w");
    fputs("# a comment\n\n  up=P(tp, None)  \r\nbad line\n", to);
    fclose(to);
    REFUSED(lb_rules_read(cx, r, file), LB_E_CONTENT, ", line 4: rule 'bad");
    to = fopen(file, "w");
    fputs("# a comment\n\n  up=P(tp, None)  \r\ndown=P(None,tp)", to);
    fclose(to);
    CHECK(lb_rules_read(cx, r, file));
    CHECK_EQ_S(lb_error(cx), "");
    CHECK_EQ_I(truncate(file, (1 << 20) + 1), 0);
    REFUSED(lb_rules_read(cx, r, file), LB_E_CONTENT,
            "has 1048577 bytes; the maximum is 1048576");
    unlink(file);
    REFUSED(lb_rules_read(cx, r, file), LB_E_FILE, "cannot open");
    lb_rules_close(r);
    lb_rules_close(NULL);
}

/* For programs compiled with a smaller options struct, the fields past its end
 * are zero. */
static void test_options(void)
{
    char out[SCRATCH_MAX];
    CHECK(scratch_file(out));
    unlink(out);
    lb_rules *r = lb_rules_open(cx);
    CHECK(lb_rules_add(cx, r, "up=P(tp)"));
    lb_shard_options o = {.mesh = "tp=2", .rules = r, .dry_run = true};
    CHECK(lb_shard_file(cx, path, NULL, &o));
    o.struct_size = sizeof o;
    CHECK(lb_shard_file(cx, path, NULL, &o));
    o.mesh = "tp=2,dp=2048";
    CHECK(lb_shard_file(cx, path, NULL, &o));
    o.mesh = "tp=2,dp=2049";
    REFUSED(lb_shard_file(cx, path, NULL, &o), LB_E_ARG,
            "a mesh of 4098 ranks; the maximum for files is 4096");
    o.mesh = "tp=2";
    o.struct_size = 5;
    REFUSED(lb_shard_file(cx, path, out, &o), LB_E_ARG,
            "shard_file: options.struct_size is 5");
    o.struct_size = offsetof(lb_shard_options, dry_run);
    REFUSED(lb_shard_file(cx, path, NULL, &o), LB_E_NULL,
            "a path, the mesh or");
    o.struct_size = offsetof(lb_shard_options, rules);
    REFUSED(lb_shard_file(cx, path, out, &o), LB_E_NULL, "a path, the mesh or");
    o.struct_size = 0;
    REFUSED(lb_shard_file(cx, NULL, out, &o), LB_E_NULL, "a path, the mesh or");
    REFUSED(lb_shard_file(cx, path, out, NULL), LB_E_NULL,
            "a path, the mesh or");
    o.mesh = NULL;
    REFUSED(lb_shard_file(cx, path, out, &o), LB_E_NULL, "a path, the mesh or");
    CHECK(!lb_shard_file(NULL, path, out, &o));
    REFUSED(lb_merge_file(cx, NULL, out, NULL), LB_E_NULL,
            "merge_file: a path is NULL");
    REFUSED(lb_merge_file(cx, path, NULL, NULL), LB_E_NULL,
            "merge_file: a path is NULL");
    CHECK(!lb_merge_file(NULL, path, out, NULL));
    CHECK(access(out, F_OK) != 0);
    lb_rules_close(r);
}

int main(void)
{
    cx = lb_open(NULL);
    CHECK(scratch_file(path));
    save_model();
    lb_file *f = lb_file_open(cx, path, NULL);
    test_first(f);
    test_fit(f);
    test_text();
    test_options();
    lb_file_close(f);
    unlink(path);
    lb_close(cx);
    return check_report("io_specs");
}
