/* test_io_layout_rules.c - for each layout of other programs a small model
 * directory that is valid, and directories that break one rule, with the
 * message that results: shapes that do not fit each other, groups that do not
 * divide, indices out of range, scales of other types, sizes that overflow.
 *
 * A row is a configuration and tensors as text (text_directory.h).
 * `test_io_layout_rules --dump fuzz/corpus/layouts` writes the rows as seeds.
 */
#include <stdlib.h>

#include "check.h"
#include "core/core.h"
#include "io/layouts/entries.h"
#include "scratch.h"
#include "text_directory.h"

/* What becomes of the tensors of a row. */
static const char valid[] = "",    /* an array, which loads */
    raw[] = "(not such an array)"; /* no layout claims them: a checkpoint
                                    * of another program, not decoded */

typedef struct rule_row {
    const char *layout, *config, *tensors;
    const char *say; /* valid, raw, or what the error says */
} rule_row;

#define QUANT(X) "{\"quantization_config\": {" X "}}"
#define GPTQ4                                                                  \
    QUANT("\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32")
#define AWQ4 QUANT("\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 32")
#define CT(BITS, GROUP)                                                        \
    QUANT("\"quant_method\": \"compressed-tensors\", \"config_groups\": "      \
          "{\"g\": {\"targets\": [\"Linear\"], \"weights\": "                  \
          "{\"num_bits\": " #BITS ", \"group_size\": " #GROUP "}}}")
#define MLX(BITS, GROUP)                                                       \
    "{\"quantization\": {\"bits\": " #BITS ", \"group_size\": " #GROUP "}}"
#define GEMMA(BITS) QUANT("\"quant_method\": \"gemma\", \"num_bits\": " #BITS)
#define FP8                                                                    \
    QUANT("\"quant_method\": \"fp8\", "                                        \
          "\"weight_block_size\": [16, 32]")
#define HUGE_DIM "2305843009213693952" /* 2^61 */

static const rule_row rows[] = {
    /* GPTQ: 16 rows, 64 columns of 4 bits, groups of 32 */
    {"gptq", GPTQ4,
     "a.qweight I32 8 16\na.qzeros I32 2 2\na.scales F16 2 16\n"
     "a.g_idx I32 64 = 0\n",
     valid},
    {"gptq", GPTQ4, "a.qweight I32 8 16\na.scales F16 2 16\n", valid},
    {"gptq", GPTQ4, "a.qweight I32 8 16\na.scales BF16 1 16\n", valid},
    {"gptq", GPTQ4, "a.qweight I32 8 16\na.scales F16 3 16\n",
     "needs groups of one size that cover the columns"},
    {"gptq", GPTQ4, "a.qweight I32 8 16\na.scales F16 0 16\n",
     "0 groups needs groups of one size"},
    {"gptq", GPTQ4, "a.qweight I32 8 16\na.scales F16 2 8\n", raw},
    {"gptq", GPTQ4, "a.qweight I32 8 16\na.scales I32 2 16\n", raw},
    {"gptq", GPTQ4, "a.qweight I32 8 16\na.scales F64 2 16\n", raw},
    {"gptq", GPTQ4, "a.qweight I32 8 16\na.scales F16 32\n", raw},
    {"gptq", GPTQ4, "a.qweight I32 8 16\na.qzeros I32 3 2\na.scales F16 2 16\n",
     "'a.qzeros' is I32 (3,2)"},
    {"gptq", GPTQ4, "a.qweight I32 8 16\na.qzeros F16 2 2\na.scales F16 2 16\n",
     "'a.qzeros' is F16 (2,2)"},
    {"gptq", GPTQ4, "a.qweight I32 8 16\na.qzeros I32 2 3\na.scales F16 2 16\n",
     "'a.qweight' is I32 (8,16), but 'a.weight' with 16 rows, 42 columns of "
     "6 bits"},
    {"gptq", GPTQ4,
     "a.qweight I32 8 16\na.scales F16 2 16\na.g_idx I32 63 = 0\n",
     "'a.g_idx' is I32 (63)"},
    {"gptq", GPTQ4,
     "a.qweight I32 8 16\na.scales F16 2 16\na.g_idx I64 64 = 0\n",
     "'a.g_idx' is I64 (64)"},
    {"gptq", GPTQ4,
     "a.qweight I32 8 16\na.scales F16 2 16\na.g_idx I32 64 = 0 1 2\n",
     "'a.g_idx': column 2 is of group 2, but there are 2"},
    {"gptq", GPTQ4,
     "a.qweight I32 8 16\na.scales F16 2 16\na.g_idx I32 64 = 0 -1\n",
     "'a.g_idx': column 1 is of group -1, but there are 2"},
    {"gptq", "{}", "a.qweight I32 8 16\na.scales F16 2 16\n", raw},
    {"gptq", QUANT("\"quant_method\": \"gptq\", \"bits\": 9"),
     "a.qweight I32 8 16\na.scales F16 2 16\n", raw},
    {"gptq", QUANT("\"bits\": 4, \"checkpoint_format\": \"marlin\""),
     "a.qweight I32 8 16\na.scales F16 2 16\n", raw},
    {"gptq", GPTQ4, "a.qweight I32 " HUGE_DIM " 0\na.scales F16 2 0\n",
     "2305843009213693952 columns of 4 bits and 2 groups needs a valid shape"},
    {"gptq", GPTQ4, "a.qweight I32 0 16\na.scales F16 2 16\n",
     "needs a valid shape"},
    /* AWQ: 16 rows, 64 columns */
    {"awq", AWQ4, "a.qweight I32 64 2\na.qzeros I32 2 2\na.scales F16 2 16\n",
     valid},
    {"awq", AWQ4, "a.qweight I32 64 2\na.scales F16 3 16\n",
     "needs groups of one size that cover the columns"},
    {"awq", AWQ4, "a.qweight I32 64 2\na.qzeros I32 2 3\na.scales F16 2 16\n",
     "'a.qzeros' is I32 (2,3)"},
    {"awq", AWQ4, "a.qweight I32 64 2\na.qzeros I64 2 2\na.scales F16 2 16\n",
     "'a.qzeros' is I64 (2,2)"},
    {"awq", AWQ4, "a.qweight I32 64 2\na.scales U8 2 16\n", raw},
    {"awq", AWQ4, "a.qweight I32 64 2\na.scales F16 2 20\n", raw},
    {"awq", QUANT("\"bits\": 4, \"version\": \"gemv\""),
     "a.qweight I32 64 2\na.scales F16 2 16\n", raw},
    /* compressed-tensors, integers: 8 rows, 64 columns of 3 bits */
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale BF16 8 2\n"
     "a.weight_shape I64 2 = 8 64\na.weight_zero_point I32 1 2\n"
     "a.weight_g_idx I32 64 = 0 1\n",
     valid},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 7\na.weight_scale BF16 8 2\n"
     "a.weight_shape I64 2 = 8 64\n",
     valid}, /* 10 codes in a word */
    {"compressed-tensors", "{}",
     "a.weight_packed I32 8 6\na.weight_scale BF16 8 2\n"
     "a.weight_shape I32 2 = 8 64\n",
     valid},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 5\na.weight_scale BF16 8 2\n"
     "a.weight_shape I64 2 = 8 64\n",
     "'a.weight_packed' is I32 (8,5), but 'a.weight' with 8 rows, 64 columns"},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale BF16 8 3\n"
     "a.weight_shape I64 2 = 8 64\n",
     "needs groups of one size that cover the columns"},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale BF16 7 2\n"
     "a.weight_shape I64 2 = 8 64\n",
     "'a.weight_scale' is BF16 (7,2)"},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale BF16 8 2\n"
     "a.weight_shape I64 2 = 9 64\n",
     "'a.weight_shape' is (9,64), which does not fit the 8 rows"},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale BF16 8 2\n"
     "a.weight_shape I64 2 = 8 -64\n",
     "'a.weight_shape' is (8,-64)"},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale BF16 8 2\n"
     "a.weight_shape I64 2 = 8 9223372036854775807\n",
     "'a.weight_shape' is (8,9223372036854775807)"},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale BF16 8 2\n"
     "a.weight_shape I64 3 = 8 64 1\n",
     "'a.weight_shape' is not an I64 of 2 elements"},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale BF16 8 2\n"
     "a.weight_shape F32 2\n",
     "'a.weight_shape' is not an I64 of 2 elements"},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale BF16 8 2\n"
     "a.weight_shape I64 2 = 8 64\na.weight_zero_point I32 2 2\n",
     "'a.weight_zero_point' is I32 (2,2)"},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale BF16 8 2\n"
     "a.weight_shape I64 2 = 8 64\na.weight_zero_point I8 8 2\n",
     "'a.weight_zero_point' is I8 (8,2)"},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale BF16 8 2\n"
     "a.weight_shape I64 2 = 8 64\na.weight_g_idx I32 64 = 2\n",
     "'a.weight_g_idx': column 0 is of group 2, but there are 2"},
    {"compressed-tensors", CT(3, 32),
     "a.weight_packed I32 8 6\na.weight_scale I8 8 2\n"
     "a.weight_shape I64 2 = 8 64\n",
     raw},
    {"compressed-tensors", CT(8, 32),
     "a.weight I8 8 64\na.weight_scale F32 8 2\n", valid},
    {"compressed-tensors", CT(8, null),
     "a.weight I8 8 64\na.weight_scale F32 8\n", valid},
    {"compressed-tensors", CT(8, null),
     "a.weight I8 8 64\na.weight_scale F32 1\n", valid},
    {"compressed-tensors", CT(8, null),
     "a.weight I8 8 64\na.weight_scale F32 7\n", "'a.weight_scale' is F32 (7)"},
    {"compressed-tensors", CT(8, 32),
     "a.weight I8 8 64\na.weight_scale F32 8 2\na.weight_zero_point I8 8\n",
     "'a.weight_zero_point' is I8 (8)"},
    {"compressed-tensors", CT(8, 32),
     "a.weight I8 8 64\na.weight_scale F32 4 2\n",
     "'a.weight_scale' is F32 (4,2)"},
    /* compressed-tensors, floats: 8 rows, 64 columns */
    {"compressed-tensors", "{}",
     "a.weight_packed U8 8 32\na.weight_scale F8_E4M3 8 4\n"
     "a.weight_global_scale F32 1\n",
     valid},
    {"compressed-tensors", "{}",
     "a.weight_packed U8 8 32\na.weight_scale F8_E4M3 8 3\n"
     "a.weight_global_scale F32 1\n",
     "not one for each 16 elements of a row"},
    {"compressed-tensors", "{}",
     "a.weight_packed U8 8 32\na.weight_scale F8_E4M3 8 4\n"
     "a.weight_global_scale F32 2\n",
     "a.weight_global_scale"},
    {"compressed-tensors", "{}",
     "a.weight_packed U8 8 32\na.weight_scale F8_E4M3 8 4\n", raw},
    {"compressed-tensors", "{}",
     "a.weight_packed U8 8 32\na.weight_scale F8_E4M3 8 4\n"
     "a.weight_global_scale I32 1\n",
     raw},
    {"compressed-tensors", "{}",
     "a.weight_packed U8 8 32\na.weight_scale U8 8 2\n", valid},
    {"compressed-tensors", "{}",
     "a.weight_packed U8 8 32\na.weight_scale U8 8 4\n",
     "not one for each 32 elements of a row"},
    {"compressed-tensors", "{}",
     "a.weight_packed U8 8 24\na.weight_scale U8 8 1\n",
     "not one for each 32 elements of a row"},
    /* MLX: 4 rows, 64 columns */
    {"mlx", MLX(4, 32),
     "a.weight U32 4 8\na.scales F16 4 2\na.biases F16 4 2\n", valid},
    {"mlx", MLX(4, 32),
     "a.weight U32 3 4 8\na.scales F16 3 4 2\na.biases F16 3 4 2\n", valid},
    {"mlx", MLX(4, 64),
     "a.weight U32 4 8\na.scales F16 4 2\na.biases F16 4 2\n",
     "8 words and 2 groups per row, which does not fit 4 bits and groups of "
     "64"},
    {"mlx", MLX(3, 32),
     "a.weight U32 4 7\na.scales F16 4 2\na.biases F16 4 2\n",
     "7 words and 2 groups per row"},
    {"mlx", MLX(4, 32),
     "a.weight U32 4 8\na.scales F16 4 2\na.biases F16 4 1\n",
     "'a.biases' is F16 (4,1)"},
    {"mlx", MLX(4, 32),
     "a.weight U32 4 8\na.scales F16 4 2\na.biases F32 4 2\n",
     "'a.biases' is F32 (4,2)"},
    {"mlx", MLX(4, 32),
     "a.weight U32 4 8\na.scales F16 5 2\na.biases F16 5 2\n", raw},
    {"mlx", MLX(4, 32),
     "a.weight I32 4 8\na.scales F16 4 2\na.biases F16 4 2\n", raw},
    {"mlx", MLX(4, 32), "a.weight U32 4 8\na.scales F16 4 2\n", raw},
    {"mlx", MLX(4, 32), "a.weight U32 4 8\na.scales U8 4 2\n", valid},
    {"mlx", MLX(4, 32), "a.weight U32 4 9\na.scales U8 4 2\n", raw},
    {"mlx", MLX(4, 32), "a.weight U32 4 8\na.scales U8 3 2\n",
     "not one for each 32 elements of a row"},
    /* Gemma: 4 rows of 32 */
    {"gemma", GEMMA(4), "a.weight U8 4 16\na.weight_scale F32 4 1\n", valid},
    {"gemma", GEMMA(2), "a.weight U8 4 8\na.weight_scale F32 4 1\n", valid},
    {"gemma", GEMMA(4), "a.weight I8 4 32\na.weight_scale F32 4 1\n", valid},
    {"gemma", GEMMA(4), "a.weight U8 4 16\na.weight_scale F32 3 1\n",
     "'a.weight_scale' is F32 (3,1)"},
    {"gemma", GEMMA(3), "a.weight U8 4 16\na.weight_scale F32 4 1\n", raw},
    {"gemma",
     QUANT("\"quant_method\": \"gemma\", \"module_quant_configs\": "
           "{\"(\": {\"num_bits\": 4}}"),
     "a.weight U8 4 16\na.weight_scale F32 4 1\n",
     "config.json '^(?:()': missing closing parenthesis"},
    /* fp8: 40 rows, 64 columns, tiles of 16 x 32 */
    {"fp8", FP8, "a.weight F8_E4M3 40 64\na.weight_scale_inv F32 3 2\n", valid},
    {"fp8", FP8, "a.weight F8_E4M3 40 64\na.weight_scale_inv F32 4 3\n", valid},
    {"fp8", FP8, "a.weight F8_E5M2 40 64\na.weight_scale BF16 40 1\n", valid},
    {"fp8", FP8, "a.weight F8_E4M3 40 64\na.weight_scale F32 40\n", valid},
    {"fp8", FP8, "a.weight F8_E4M3 40 64\na.weight_scale F32\n", valid},
    {"fp8", FP8, "a.weight F8_E4M3 40 64\na.qscale_weight F32\n", valid},
    {"fp8", FP8, "a.weight F8_E4M3 40 64\na.weight_scale_inv F32 2 2\n",
     "(40,64) has scales 'a.weight_scale_inv' F32 (2,2)"},
    {"fp8", FP8, "a.weight F8_E4M3 40 64\na.weight_scale_inv F32 3 1 2\n",
     "(40,64) has scales 'a.weight_scale_inv' F32 (3,1,2)"},
    {"fp8", FP8, "a.weight F8_E4M3 40 64\na.weight_scale_inv F32 0 2\n",
     "(40,64) has scales 'a.weight_scale_inv' F32 (0,2)"},
    {"fp8", "{}", "a.weight F8_E4M3 40 64\na.weight_scale_inv F32 7 2\n",
     "(40,64) has scales 'a.weight_scale_inv' F32 (7,2)"},
    {"fp8", FP8, "a.weight F8_E4M3 40 64\na.weight_scale_inv I32 3 2\n", raw},
    {"fp8", FP8, "a.weight F8_E4M3 40 64\na.weight_scale F64 40 1\n", raw},
    {"fp8", FP8, "a.weight I8 40 32\na.scale F8_E8M0 40 2\n", valid},
    {"fp8", FP8, "a.weight I8 40 32\na.scale F8_E8M0 40 3\n",
     "not one for each 32 elements of a row"},
    {"fp8", FP8, "a.weight I8 40 32\na.scale F8_E8M0 39 2\n",
     "not one for each 32 elements of a row"},
    /* gpt-oss: 2 experts of 4 rows, 64 columns */
    {"mxfp4", "{}", "a_blocks U8 2 4 2 16\na_scales U8 2 4 2\n", valid},
    {"mxfp4", "{}", "a_blocks U8 2 4 2 16\na_scales U8 2 4 3\n",
     "not one for each 32 elements of a row"},
    {"mxfp4", "{}", "a_blocks U8 2 4 2 8\na_scales U8 2 4 2\n",
     "not one for each 32 elements of a row"},
    {"mxfp4", "{}", "a_blocks U8 2 4 2 16\na_scales U8 2 8\n", raw},
    {"mxfp4", "{}", "a_blocks U8 2 4 2 16\na_scales F32 2 4 2\n", raw},
    /* ModelOpt's nvfp4: 8 rows, 64 columns */
    {"modelopt", "{}",
     "a.weight U8 8 32\na.weight_scale F8_E4M3 8 4\na.weight_scale_2 F32\n",
     valid},
    {"modelopt", "{}",
     "a.weight U8 8 32\na.weight_scale F8_E4M3 4 8\na.weight_scale_2 F32\n",
     "not one for each 16 elements of a row"},
    {"modelopt", "{}",
     "a.weight U8 8 32\na.weight_scale F8_E4M3 8 4\na.weight_scale_2 F32 3\n",
     "a.weight_scale_2"},
    {"modelopt", "{}",
     "a.weight U8 8 32\na.weight_scale F8_E5M2 8 4\na.weight_scale_2 F32\n",
     raw},
    {"modelopt", "{}",
     "a.weight U8 8 32\na.weight_scale F8_E4M3 8 4\na.weight_scale_2 BF16\n",
     raw},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- directories --------------------------------------------------------- */

static bool put(const char *dir, const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(scratch_in(dir, name, "").s, "wb");
    return f && (!n || fwrite(bytes, 1, n, f) == n) && fclose(f) == 0;
}

static void write_row(lb_ctx *cx, const char *dir, const rule_row *r)
{
    char text[2048];
    text_directory d;
    const int n =
        snprintf(text, sizeof text, "%s\n--\n%s", r->config, r->tensors);
    CHECK(n > 0 && (size_t)n < sizeof text);
    CHECK(text_directory_of(cx->heap, (const uint8_t *)text, (size_t)n, &d));
    CHECK(put(dir, "config.json", d.config, d.n_config));
    CHECK(put(dir, "model.safetensors", d.weights.at, d.weights.n));
    lb_bytes_free(&d.weights);
}

/* The array that layouts, and not single tensors, make; NULL: none. */
static const lb_entry *made(const lb_file *f)
{
    for (int64_t i = 0; i < lb_file_count(f); i++)
        if (lb_file_entry(f, i)->layout) return lb_file_entry(f, i);
    return NULL;
}

/* valid, raw, or the error */
static const char *outcome(lb_ctx *cx, const char *dir, const rule_row *r)
{
    lb_quant_method m;
    const char *result = raw;
    lb_file *f = lb_file_open(cx, dir, NULL);
    const lb_entry *e = made(f);
    if (e) {
        CHECK_EQ_S(e->layout, r->layout);
        if (lb_file_load(cx, f, e->name)) result = valid;
    } else if (f && lb_file_method(cx, f, &m)) {
        CHECK(!m.decoded);
    }
    lb_file_close(f);
    return lb_error_status(cx) ? lb_error(cx) : result;
}

static void check_row(lb_ctx *cx, const char *dir, const rule_row *r)
{
    lb_enter(cx);
    write_row(cx, dir, r);
    const char *got = outcome(cx, dir, r);
    const bool fixed = r->say == valid || r->say == raw;
    if (check_fails(fixed ? got == r->say : strstr(got, r->say) != NULL))
        fprintf(stderr, "%s: %s%s\nwant \"%s\"\ngot  \"%s\"\n", r->layout,
                r->config, r->tensors, r->say, got);
    if (!fixed) CHECK_EQ_I(lb_error_status(cx), LB_E_CONTENT);
    lb_leave(cx);
    lb_clear(cx);
}

/* ---- which layouts ------------------------------------------------------- */

/* Those whose tensors are described by tensors of their own have tests of their
 * own: descriptors, quant_state. Others only write. */
static bool has_own_tests(const char *layout)
{
    static const char *const own[] = {"ggml",   "bnb",     "bitnet",
                                      "native", "eformer", "int8"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(layout, own[i]) == 0) return true;
    return false;
}

static void check_all_layouts(void)
{
    for (int k = 0; lb_file_layouts[k]; k++) {
        const char *name = lb_file_layouts[k]->name;
        int n_valid = 0, n_other = 0;
        for (int i = 0; i < ROWS; i++) {
            if (strcmp(rows[i].layout, name) != 0) continue;
            n_valid += rows[i].say == valid;
            n_other += rows[i].say != valid && rows[i].say != raw;
        }
        if (check_fails(has_own_tests(name) || (n_valid && n_other)))
            fprintf(stderr, "no rows of layout %s\n", name);
    }
}

static void dump(const char *dir)
{
    for (int i = 0; i < ROWS; i++) {
        char name[64];
        snprintf(name, sizeof name, "rule-%03d.txt", i);
        FILE *f = fopen(scratch_in(dir, name, "").s, "wb");
        CHECK(f &&
              fprintf(f, "%s\n--\n%s", rows[i].config, rows[i].tensors) > 0);
        if (f) fclose(f);
    }
}

int main(int argc, char **argv)
{
    char dir[SCRATCH_MAX];
    lb_ctx *cx = lb_open(NULL);
    CHECK(cx && scratch_dir(dir));
    if (argc > 2) dump(argv[2]);
    check_all_layouts();
    for (int i = 0; i < ROWS; i++)
        check_row(cx, dir, &rows[i]);
    scratch_remove(dir);
    lb_close(cx);
    return check_report("rules of other programs' layouts");
}
