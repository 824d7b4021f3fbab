/* test_io_convert.c - files decoded and converted: every format and layout that
 * lowbit writes, and files of other programs, compared with loading each array.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "lowbit_ext.h"
#include "lowbit_io.h"
#include "scratch.h"

#define GOLDEN "tests/golden/layouts/"

static lb_ctx *cx;
static char out[SCRATCH_MAX], back[SCRATCH_MAX];

/* Each array of b equals that of a, converted to dtype if dtype is valid. */
static void check_same(const char *a, const char *b, lb_dtype dtype,
                       const char *format)
{
    const lb_file_options o = {.linear_class = "bitlinear"};
    lb_file *x = lb_file_open(cx, a, &o), *y = lb_file_open(cx, b, &o);
    CHECK(x && y && lb_file_count(x) == lb_file_count(y));
    for (int64_t i = 0; y && i < lb_file_count(x); i++) {
        const lb_entry *e = lb_file_entry(x, i);
        lb_difference d = {0};
        lb_enter(cx);
        lb_array *want = lb_file_load(cx, x, e->name);
        lb_array *got = lb_file_load(cx, y, e->name);
        const lb_ctype kind = lb_ctype_of(lb_dtype_of(want));
        if (dtype && (kind == LB_C_F32 || kind == LB_C_F64))
            want = lb_convert(cx, lb_materialize(cx, want), dtype);
        CHECK(got && lb_dtype_of(got) == lb_dtype_of(want));
        CHECK(got && lb_compare(cx, want, got, &d) && d.apart == 0);
        if (got && format) CHECK_EQ_S(lb_format_of(got), format);
        if (got && !format) CHECK_EQ_S(lb_format_of(got), lb_format_of(want));
        lb_leave(cx);
    }
    lb_file_close(x);
    lb_file_close(y);
    CHECK_EQ_S(lb_error(cx), "");
    lb_clear(cx);
}

static void test_others(void)
{
    static const char *const file[] = {
        GOLDEN "bnb4.safetensors", GOLDEN "bnb8.safetensors",
        GOLDEN "eformer.safetensors", GOLDEN "bitnet.safetensors"};
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        if (access(file[i], R_OK)) continue;
        lb_convert_options o = {.no_sync = true, .linear_class = "bitlinear"};
        CHECK(lb_convert_file(cx, file[i], out, &o));
        check_same(file[i], out, LB_NO_DTYPE, "dense");
        o.dtype = LB_F32;
        CHECK(lb_convert_file(cx, file[i], out, &o));
        check_same(file[i], out, LB_F32, "dense");
        o.keep = true; /* to the native layout, with unchanged codes */
        o.dtype = LB_NO_DTYPE;
        CHECK(lb_convert_file(cx, file[i], out, &o));
        check_same(file[i], out, LB_NO_DTYPE, NULL);
    }
}

/* ---- ours ---------------------------------------------------------------- */

static void quantize(const char *from, const lb_quant_config *config,
                     const char *kind, const char *layout)
{
    const lb_quantize_options o = {
        .config = *config, .kind = kind, .layout = layout, .no_sync = true};
    CHECK(lb_quantize_file(cx, from, out, &o));
}

static void test_round_trips(void)
{
    static const struct {
        lb_quant_config config;
        const char *kind, *layout;
    } row[] = {
        {{.format = "nf4"}, NULL, NULL},
        {{.format = "nf4", .double_quant = true}, NULL, NULL},
        {{.format = "int8"}, NULL, NULL},
        {{.format = "ternary"}, NULL, NULL},
        {{.format = "binary"}, NULL, NULL},
        {{.format = "nf4", .compat = LB_COMPAT_BNB_CPU}, NULL, "bnb"},
        {{.format = "int8", .compat = LB_COMPAT_BNB_CPU}, NULL, "bnb"},
        {{.format = "ternary", .meaning = LB_MEANS_INVERSE}, NULL, "bitnet"},
        {{.format = "nf4"}, NULL, "eformer"},
        {{.format = "q8_0"}, "gguf", NULL},
        {{.format = "q4_0"}, "gguf", NULL},
        {{.format = "iq4_nl"}, "gguf", NULL},
        {{.format = "tq1_0"}, "gguf", NULL},
        {{.format = "tq2_0"}, "gguf", NULL},
    };
    static char source[SCRATCH_MAX];
    CHECK(scratch_file(source));
    const lb_planned list[] = {
        {.name = "a.weight",
         .array = lb_random_normal(cx, (lb_key){1, 1}, LB_BF16,
                                   LB_SHAPE(512, 1024))},
        {.name = "b.weight",
         .array =
             lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(3, 77, 41))},
        {.name = "norm", .array = lb_full(cx, LB_F16, LB_SHAPE(9), 3)}};
    CHECK(lb_save(cx, source, list, 3, NULL));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        quantize(source, &row[i].config, row[i].kind, row[i].layout);
        lb_convert_options o = {.no_sync = true,
                                .max_memory = 2500000,
                                .measure = true,
                                .linear_class = "bitlinear"};
        CHECK(lb_convert_file(cx, out, back, &o));
        check_same(out, back, LB_NO_DTYPE, "dense");
        o.dtype = LB_F16;
        o.kind = "gguf";
        CHECK(lb_convert_file(cx, out, back, &o));
        check_same(out, back, LB_F16, "dense");
        o.keep = true;
        o.dtype = LB_NO_DTYPE;
        o.kind = row[i].kind;
        o.layout = row[i].layout;
        o.max_memory = 0;
        CHECK(lb_convert_file(cx, out, back, &o));
        check_same(out, back, LB_NO_DTYPE, NULL);
    }
    /* Nothing is written if there is an error. */
    lb_convert_options o = {.dtype = LB_I8};
    CHECK(!lb_convert_file(cx, out, back, &o));
    CHECK(strstr(lb_error(cx), "i8 is not a float dtype"));
    lb_clear(cx);
    o.dtype = LB_NO_DTYPE;
    CHECK(!lb_convert_file(cx, out, out, &o));
    CHECK(strstr(lb_error(cx), "is also the input"));
    lb_clear(cx);
    o.kind = "zip";
    CHECK(!lb_convert_file(cx, out, back, &o));
    CHECK(strstr(lb_error(cx), "unknown file type 'zip'"));
    lb_clear(cx);
    for (int i = 0; i < 2; i++) {
        CHECK(!lb_convert_file(cx, i ? out : NULL, i ? NULL : back, NULL));
        CHECK_EQ_I(lb_error_status(cx), LB_E_NULL);
        CHECK(strstr(lb_error(cx), "convert_file: a path is NULL"));
        lb_clear(cx);
    }
    o = (lb_convert_options){.struct_size = 7};
    CHECK(!lb_convert_file(cx, out, back, &o));
    CHECK_EQ_I(lb_error_status(cx), LB_E_ARG);
    CHECK(strstr(lb_error(cx), "convert_file: options.struct_size is 7"));
    lb_clear(cx);
    unlink(source);
}

int main(void)
{
    cx = lb_open(&(lb_options){.threads = 2});
    CHECK(scratch_file(out) && scratch_file(back));
    lb_enter(cx);
    test_others();
    test_round_trips();
    lb_leave(cx);
    CHECK_EQ_S(lb_error(cx), "");
    unlink(out);
    unlink(back);
    lb_close(cx);
    return check_report("files converted");
}
