/* test_io_floats.c - model directories with floats of 8 and 4 bits against what
 * the programs that define them decode (tests/golden/floats, whose generator is
 * tools/gen_float_layouts_golden.py): whole, by rows, by boxes, and after they
 * were saved in lowbit's own layout. */
#include <stdlib.h>

#include "check.h"
#include "lowbit_io.h"
#include "scratch.h"

#define DIR "tests/golden/floats/"

/* format: that of the weight; layout: its name */
static const struct {
    const char *name, *format, *layout;
} cases[] = {
    {"fp8/deepseek_v3", "fp8_e4m3", "fp8"},
    {"fp8/edges", "fp8_e4m3", "fp8"},
    {"fp8/padded", "fp8_e4m3", "fp8"},
    {"fp8/e8m0", "fp8_e4m3", "fp8"},
    {"fp8/e8m0_as_u8", "fp8_e4m3", "fp8"},
    {"fp8/deepseek_v4", "fp8_e4m3", "fp8"},
    {"fp8/experts", "fp8_e4m3", "fp8"},
    {"fp8/mistral", "fp8_e4m3", "fp8"},
    {"fp8/modelopt", "fp8_e5m2", "fp8"},
    {"fp8/modelopt_rows", "fp8_e4m3", "fp8"},
    {"fp8/ct_rows", "fp8_e4m3", "fp8"},
    {"fp8/ct_blocks", "fp8_e4m3", "fp8"},
    {"fp8/ct_mxfp8", "mxfp8", "fp8"},
    {"fp8/mlx_mxfp8", "mxfp8", "mlx"},
    {"mxfp4/gpt_oss", "mxfp4", "mxfp4"},
    {"mxfp4/deepseek_v4", "mxfp4", "fp8"},
    {"mxfp4/ct", "mxfp4", "compressed-tensors"},
    {"mxfp4/mlx_mxfp4", "mxfp4", "mlx"},
    {"nvfp4/modelopt", "nvfp4", "modelopt"},
    {"nvfp4/modelopt_experts", "nvfp4", "modelopt"},
    {"nvfp4/ct", "nvfp4", "compressed-tensors"},
    {"nvfp4/mlx_nvfp4", "nvfp4", "mlx"},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Bits, but any NaN equals any other. */
static bool same(lb_ctx *cx, lb_array *a, lb_array *b)
{
    const size_t n = (size_t)lb_size(b);
    float *x = malloc(2 * n * sizeof *x + 1);
    if (!x) abort();
    bool ok = lb_size(a) == lb_size(b) && lb_read(cx, a, x, n * sizeof *x) &&
              lb_read(cx, b, x + n, n * sizeof *x);
    for (size_t i = 0; ok && i < n; i++)
        ok = memcmp(&x[i], &x[n + i], sizeof *x) == 0 ||
             (isnan(x[i]) && isnan(x[n + i]));
    free(x);
    return ok;
}

static lb_array *f32(lb_ctx *cx, lb_array *a)
{
    return lb_convert(cx, a, LB_F32);
}

/* In 16 bits too: one rounding of the product. The golden file has the bits of
 * bf16. */
static void check_16(lb_ctx *cx, int i, lb_array *stored, lb_array *want)
{
    char path[256];
    snprintf(path, sizeof path, DIR "%s/expected_bf16_bits.npy", cases[i].name);
    lb_file *f = lb_file_open(cx, path, NULL);
    lb_array *bits = f ? lb_file_load(cx, f, lb_file_entry(f, 0)->name) : NULL;
    lb_array *brain = lb_materialize(cx, lb_convert(cx, stored, LB_BF16));
    lb_array *half = lb_materialize(cx, lb_convert(cx, stored, LB_F16));
    if (strcmp(cases[i].name, "mxfp4/gpt_oss") == 0) {
        brain = lb_transpose(cx, brain, (int[]){0, 2, 1});
        half = lb_transpose(cx, half, (int[]){0, 2, 1});
    }
    CHECK(same(cx, f32(cx, brain),
               f32(cx, lb_bitcast_convert(cx, bits, LB_BF16))));
    CHECK(same(cx, f32(cx, half), f32(cx, lb_convert(cx, want, LB_F16))));
    lb_file_close(f);
}

/* Every part of the last axis that begins and ends with a multiple of `each`,
 * and any rows. */
static void check_parts(lb_ctx *cx, lb_file *f, const lb_entry *e,
                        lb_array *whole)
{
    for (int64_t lo = 0; lo < e->dim[0]; lo += 3) {
        const int64_t hi = lo + 5 < e->dim[0] ? lo + 5 : e->dim[0];
        int64_t from[LB_MAX_RANK] = {lo}, to[LB_MAX_RANK] = {hi};
        for (int k = 1; k < e->rank; k++)
            to[k] = e->dim[k];
        lb_enter(cx);
        CHECK(same(cx, f32(cx, lb_file_load_rows(cx, f, e->name, lo, hi)),
                   lb_slice(cx, whole, from, to, NULL)));
        lb_leave(cx);
    }
    int64_t from[LB_MAX_RANK] = {0}, to[LB_MAX_RANK], n[LB_MAX_RANK];
    const int last = e->rank - 1;
    for (int k = 0; k < e->rank; k++)
        to[k] = n[k] = e->dim[k];
    from[last] = 32; /* a multiple of every block here */
    n[last] = to[last] - from[last];
    lb_enter(cx);
    lb_array *box = lb_file_load_slice(cx, f, e->name, from, n);
    CHECK_EQ_S(lb_format_of(box), e->format);
    CHECK(same(cx, f32(cx, box), lb_slice(cx, whole, from, to, NULL)));
    lb_leave(cx);
}

static void check_saved(lb_ctx *cx, const char *name, lb_array *a,
                        lb_array *want)
{
    char path[SCRATCH_MAX];
    CHECK(scratch_file(path));
    lb_enter(cx);
    const lb_planned p = {.name = name, .array = a};
    CHECK(lb_save(cx, path, &p, 1, NULL));
    lb_array *back = lb_load(cx, path, name);
    CHECK_EQ_S(lb_format_of(back), lb_format_of(a));
    CHECK(same(cx, f32(cx, back), want));
    lb_leave(cx);
    unlink(path);
}

static void check_case(lb_ctx *cx, int i)
{
    char path[256];
    const lb_entry *e = NULL;
    lb_enter(cx);
    snprintf(path, sizeof path, DIR "%s", cases[i].name);
    lb_file *f = lb_file_open(cx, path, NULL);
    for (int64_t k = 0; k < lb_file_count(f) && !e; k++)
        if (strcmp(lb_file_entry(f, k)->format, "dense") != 0)
            e = lb_file_entry(f, k);
    snprintf(path, sizeof path, DIR "%s/expected_f32.npy", cases[i].name);
    lb_file *values = lb_file_open(cx, path, NULL);
    lb_array *want =
        values ? lb_file_load(cx, values, lb_file_entry(values, 0)->name)
               : NULL;
    if (check_fails(e && want)) {
        fprintf(stderr, "%s: %s\n", cases[i].name, lb_error(cx));
    } else {
        CHECK_EQ_S(e->format, cases[i].format);
        CHECK_EQ_S(e->layout, cases[i].layout);
        lb_array *stored = lb_file_load(cx, f, e->name);
        lb_array *a = f32(cx, stored);
        lb_array *seen = a;
        if (strcmp(cases[i].name, "mxfp4/gpt_oss") == 0)
            seen = lb_transpose(cx, a, (int[]){0, 2, 1});
        if (check_fails(same(cx, seen, want)))
            fprintf(stderr, "%s: other values\n", cases[i].name);
        check_16(cx, i, stored, want);
        check_parts(cx, f, e, a);
        check_saved(cx, e->name, stored, a);
    }
    CHECK_EQ_S(lb_error(cx), "");
    lb_file_close(values);
    lb_file_close(f);
    lb_clear(cx);
    lb_leave(cx);
}

/* GGUF: scales in a second tensor (and none), and behind the blocks. */
static void check_gguf(lb_ctx *cx)
{
    static const struct {
        const char *name, *format;
        int tensors;
    } arrays[] = {{"up.weight", "gguf_nvfp4", 2},
                  {"exps.weight", "gguf_nvfp4", 2},
                  {"alone.weight", "gguf_nvfp4", 1},
                  {"q.weight", "i2_s", 1}};
    char path[SCRATCH_MAX];
    CHECK(scratch_file(path));
    lb_enter(cx);
    lb_file *f = lb_file_open(cx, DIR "gguf/scaled.gguf", NULL);
    lb_file *values = lb_file_open(cx, DIR "gguf/values.npz", NULL);
    CHECK_EQ_I(lb_file_count(f), 5);
    for (int i = 0; i < 4; i++) {
        const lb_entry *e = lb_file_find(f, arrays[i].name);
        lb_array *a = lb_file_load(cx, f, arrays[i].name);
        lb_array *want = lb_file_load(cx, values, arrays[i].name);
        if (check_fails(e && a && want)) continue;
        CHECK_EQ_S(lb_format_of(a), arrays[i].format);
        CHECK_EQ_I(e->n_tensors, arrays[i].tensors);
        CHECK(same(cx, a, want));
        for (int64_t lo = 0; lo < e->dim[0]; lo++) {
            int64_t from[LB_MAX_RANK] = {lo}, to[LB_MAX_RANK] = {lo + 1};
            for (int k = 1; k < e->rank; k++)
                to[k] = e->dim[k];
            CHECK(same(cx, lb_file_load_rows(cx, f, e->name, lo, lo + 1),
                       lb_slice(cx, want, from, to, NULL)));
        }
    }
    /* Copied to another GGUF file with both tensors. */
    const lb_planned p = {.name = "up.weight",
                          .array = lb_file_load(cx, f, "up.weight")};
    CHECK(lb_save(cx, path, &p, 1, &(lb_save_options){.kind = "gguf"}));
    CHECK(same(cx, lb_load(cx, path, "up.weight"), p.array));
    CHECK_EQ_S(lb_error(cx), "");
    lb_file_close(f);
    lb_file_close(values);
    lb_leave(cx);
    unlink(path);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.dense = LB_DENSE_DENY});
    for (int i = 0; i < CASES; i++)
        check_case(cx, i);
    check_gguf(cx);
    lb_close(cx);
    return check_report("test_io_floats");
}
