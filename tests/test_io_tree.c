/* test_io_tree.c - trees from and to files of each kind, and quantizing a tree
 * by the rules of lb_quantize_file: both give the same codes. */
#include "check.h"
#include "lowbit_io.h"
#include "refused.h"
#include "scratch.h"

static lb_ctx *cx;
static char dir[SCRATCH_MAX];

static const struct {
    const char *name;
    lb_shape shape;
} arrays[] = {
    {"embed.weight", {2, {32, 64}}},
    {"layers.0.up.weight", {2, {48, 64}}},
    {"layers.0.up.bias", {1, {48}}},
    {"layers.0.down.weight", {2, {64, 48}}},
    {"layers.1.up.weight", {2, {48, 64}}},
    {"layers.1.norm.weight", {1, {64}}},
};
enum { N = sizeof arrays / sizeof *arrays };

static lb_tree *make(void)
{
    lb_tree *t = lb_tree_open(cx);
    for (int i = 0; i < N; i++)
        CHECK(lb_tree_set(t, arrays[i].name,
                          lb_random_normal(cx, (lb_key){5, (uint64_t)i}, LB_F32,
                                           arrays[i].shape)));
    return t;
}

/* The same names, formats and values. (Some files sort their arrays.) */
static void check_same(const lb_tree *a, const lb_tree *b)
{
    CHECK_EQ_I(lb_tree_count(a), lb_tree_count(b));
    for (int i = 0; i < lb_tree_count(a); i++) {
        lb_difference d = {0};
        lb_array *x = lb_tree_at(a, i);
        lb_array *y = lb_tree_find(b, lb_tree_name(a, i));
        CHECK(y != NULL);
        if (!y) continue;
        CHECK_EQ_S(lb_format_of(x), lb_format_of(y));
        CHECK(lb_compare(cx, x, y, &d));
        CHECK_EQ_I(d.apart, 0);
    }
}

static void check_files(void)
{
    static const char *const kinds[] = {"safetensors", "gguf", "npz"};
    lb_tree *t = make();
    CHECK(
        lb_tree_quantize_at(t, 1, &(lb_quant_config){.format = "q8_0"}, NULL));
    for (int k = 0; k < 3; k++) {
        const scratch_path path = scratch_in(dir, "model.", kinds[k]);
        const lb_save_options o = {.kind = kinds[k], .no_sync = true};
        lb_tree *u = lb_tree_copy(t);
        if (k == 2) /* has no quantized arrays */
            CHECK(lb_tree_set(u, arrays[1].name,
                              lb_materialize(cx, lb_tree_at(t, 1))));
        CHECK(lb_tree_save(u, path.s, &o));
        lb_tree *v = lb_tree_load(cx, path.s);
        check_same(u, v);
        lb_tree_close(v);
        lb_file *f =
            lb_file_open(cx, path.s, &(lb_file_options){.no_map = true});
        v = lb_tree_load_file(cx, f);
        lb_file_close(f);
        check_same(u, v);
        lb_tree_close(v);
        lb_tree_close(u);
    }
    /* A directory is a model if it contains model.safetensors. */
    lb_tree *v = lb_tree_load(cx, dir);
    check_same(t, v);
    /* Over the file that its arrays are mapped from. */
    CHECK(lb_tree_save(v, scratch_in(dir, "model.safetensors", "").s,
                       &(lb_save_options){.no_sync = true}));
    check_same(t, v);
    lb_tree_close(v);
    lb_tree_close(t);

    REFUSED(lb_tree_load(cx, scratch_in(dir, "none", "").s), LB_E_FILE, "none");
    CHECK(!lb_tree_save(NULL, dir, NULL) && !lb_error_status(cx));
    CHECK(!lb_tree_load(NULL, dir) && !lb_tree_load_file(cx, NULL));
}

/* ---- selections ---------------------------------------------------------- */

static lb_selection *some(void)
{
    lb_selection *s = lb_selection_open(cx);
    CHECK(lb_selection_include(cx, s, "^embed"));
    CHECK(lb_selection_exclude(cx, s, "layers\\.0\\.down"));
    CHECK(lb_selection_override(cx, s, "layers.1=q8_0"));
    return s;
}

static void check_selection(void)
{
    static const char *const format[N] = {"nf4",   "nf4",  "dense",
                                          "dense", "q8_0", "dense"};
    const lb_quantize_options o = {
        .config = {.format = "nf4"}, .selection = some(), .no_sync = true};
    const scratch_path from = scratch_in(dir, "from.safetensors", "");
    const scratch_path to = scratch_in(dir, "to.safetensors", "");
    lb_tree_change report[N];
    lb_tree *t = make();
    CHECK(lb_tree_save(t, from.s, &(lb_save_options){.no_sync = true}));
    CHECK(lb_quantize_file(cx, from.s, to.s, &o));
    lb_selection_close(o.selection);

    lb_selection *s = some();
    CHECK(lb_tree_quantize_selected(t, &o.config, s, report));
    for (int i = 0; i < N; i++) {
        CHECK_EQ_S(report[i].name, arrays[i].name);
        CHECK_EQ_S(report[i].after, format[i]);
        CHECK_EQ_S(lb_format_of(lb_tree_at(t, i)), format[i]);
        CHECK_EQ_I(report[i].bytes_after, lb_nbytes(lb_tree_at(t, i)));
        CHECK((report[i].kept != NULL) == (report[i].nrmse == 0));
    }
    CHECK_EQ_S(report[2].kept, "1-D");
    CHECK_EQ_S(report[3].kept, "excluded");
    CHECK(report[4].nrmse > 0.001 && report[4].nrmse < 0.01);
    lb_tree *u = lb_tree_load(cx, to.s);
    check_same(t, u);
    lb_tree_close(u);

    /* Without a selection the defaults decide; a second time nothing is left
     * to do. */
    lb_tree *v = make();
    CHECK(lb_tree_quantize_selected(v, NULL, NULL, report));
    CHECK_EQ_S(report[0].kept, "embedding");
    CHECK_EQ_S(report[3].after, "nf4");
    CHECK(lb_tree_quantize_selected(v, NULL, NULL, report));
    CHECK_EQ_S(report[3].kept, "already quantized");

    /* Errors, before anything changes. */
    CHECK(lb_selection_exclude(cx, s, "lm_head"));
    lb_tree_close(v);
    v = make();
    REFUSED(lb_tree_quantize_selected(v, NULL, s, NULL), LB_E_ARG,
            "exclude 'lm_head' matches none of the 6");
    CHECK_EQ_S(lb_format_of(lb_tree_at(v, 1)), "dense");
    lb_tree_clear(v);
    CHECK(!lb_tree_quantize_selected(v, NULL, s, NULL));
    lb_clear(cx);
    lb_selection_close(s);
    lb_tree_close(v);
    lb_tree_close(t);
}

int main(void)
{
    cx = lb_open(NULL);
    CHECK(scratch_dir(dir));
    check_files();
    check_selection();
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    scratch_remove(dir);
    return check_report("io_tree");
}
