/* test_io_moves.c - moves between the layouts and types of files, as a table:
 * "=" keeps every decoded f32, "~" stays within an error, "x" is refused with a
 * reason. Sources are files of other programs (tests/golden), and what is
 * written here. Both ends are decoded again. Where both ends are canonical, the
 * way back ends in the same bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "lowbit_io.h"
#include "random_blocks.h"
#include "scratch.h"

enum { ROWS = 64, ROW = 256 };
#define W "model.layers.0.mlp.up_proj.weight"

static lb_ctx *cx;
static char where[SCRATCH_MAX];

/* ---- sources ------------------------------------------------------------- */

/* NAME of the table in the scratch directory. */
static scratch_path made(const char *name, const char *more)
{
    char file[64];
    snprintf(file, sizeof file, "%s", name);
    for (char *c = file; *c; c++)
        if (*c == ' ') *c = '-';
    return scratch_in(where, file, more);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* A model of f16 values in a directory. */
static void make_model(void)
{
    const scratch_path dir = made("model", "");
    const lb_planned w = {
        .name = W,
        .array = lb_convert(cx,
                            lb_random_normal(cx, (lb_key){.seed = 5}, LB_F32,
                                             LB_SHAPE(ROWS, ROW)),
                            LB_F16)};
    CHECK(mkdir(dir.s, 0700) == 0);
    CHECK(
        lb_save(cx, scratch_in(dir.s, "model.safetensors", "").s, &w, 1, NULL));
    CHECK(scratch_put(scratch_in(dir.s, "config.json", "").s,
                      "{\"model_type\": \"llama\", \"torch_dtype\": "
                      "\"float16\"}\n"));
}

/* LAYOUT TYPE [BLOCK]: the model, quantized. */
static bool make_quantized(const char *name, const char *to)
{
    char layout[32], type[32];
    int block = 0;
    if (sscanf(name, "%31s %31s %d", layout, type, &block) < 2) return false;
    const lb_quantize_options o = {
        .config = {.format = type,
                   .block_size = block,
                   .compat = strcmp(layout, "bnb") ? LB_COMPAT_NATIVE
                                                   : LB_COMPAT_BNB_CPU},
        .layout = layout,
        .directory = true,
        .no_sync = true};
    return lb_quantize_file(cx, made("model", "").s, to, &o);
}

static uint32_t state = 1;

/* A GGUF file with an array of random blocks. */
static bool make_blocks(const char *format, const char *to)
{
    const lb_planned w = {
        .name = W, .array = random_blocks(cx, format, ROWS, ROW, &state)};
    return w.array &&
           lb_save(cx, to, &w, 1, &(lb_save_options){.kind = "gguf"});
}

/* gpt-oss: experts of mxfp4. */
static bool make_experts(const char *to)
{
    enum { EXPERTS = 2, N = 8, BLOCKS = 3 };
    uint8_t blocks[EXPERTS * N * BLOCKS * 16], scales[EXPERTS * N * BLOCKS];
    for (size_t i = 0; i < sizeof blocks; i++)
        blocks[i] = (uint8_t)(random_blocks_draw(&state) & 0xff);
    for (size_t i = 0; i < sizeof scales; i++)
        scales[i] = (uint8_t)(100 + random_blocks_draw(&state) % 50);
    const lb_planned list[] = {
        {.name = "model.layers.0.mlp.experts.down_proj_blocks",
         .array = lb_from(cx, LB_U8, LB_SHAPE(EXPERTS, N, BLOCKS, 16), blocks)},
        {.name = "model.layers.0.mlp.experts.down_proj_scales",
         .array = lb_from(cx, LB_U8, LB_SHAPE(EXPERTS, N, BLOCKS), scales)}};
    return mkdir(to, 0700) == 0 &&
           scratch_put(scratch_in(to, "config.json", "").s,
                       "{\"model_type\": \"gpt_oss\", \"quantization_config\": "
                       "{\"quant_method\": \"mxfp4\"}}\n") &&
           lb_save(cx, scratch_in(to, "model.safetensors", "").s, list, 2,
                   NULL);
}

/* The path of a source of the table, which is made on first use. */
static scratch_path source(const char *name)
{
    scratch_path p;
    if (strchr(name, '/')) {
        snprintf(p.s, sizeof p.s, "tests/golden/%s", name);
        return p;
    }
    const bool gguf = !strchr(name, ' ') && strcmp(name, "gpt-oss") != 0;
    p = made(name, gguf ? ".gguf" : "");
    if (is_there(p.s)) return p;
    const bool ok = gguf                ? make_blocks(name, p.s)
                    : strchr(name, ' ') ? make_quantized(name, p.s)
                                        : make_experts(p.s);
    if (check_fails(ok)) fprintf(stderr, "%s: %s\n", name, lb_error(cx));
    return p;
}

/* ---- the table ----------------------------------------------------------- */

/* limit: 0 "=", > 0 "~" with that nrmse at most, < 0 "x" for a reason that
 * contains why. why of the others: they return to the same bytes by a move to
 * that layout or type. */
static const struct {
    const char *from, *to;
    double limit;
    const char *why;
} table[] = {
    /* GPTQ and compressed-tensors, 4 bits, symmetric */
    {"affine/gptq_4_sym", "q4_0", 0, NULL},
    {"affine/gptq_4_sym", "mlx", 0, NULL},
    {"affine/gptq_4_sym", "compressed-tensors", 0, NULL},
    {"affine/gptq_4_sym", "gptq", 0, NULL},
    {"affine/gptq_4_sym", "awq", 0, NULL},
    {"affine/ct_4", "q4_0", 0, NULL},
    {"affine/ct_4", "mlx", 0, NULL},
    {"affine/ct_4", "gptq", 0, NULL},
    {"affine/ct_4", "awq", 0, NULL},
    {"affine/awq_symmetric", "q4_0", 0, NULL},
    {"gptq q4_0", "q4_0", 0, "gptq"},
    {"gptq q4_0", "mlx", 0, "gptq"},
    {"gptq q4_0", "compressed-tensors", 0, "gptq"},
    {"gptq q4_0", "awq", 0, "gptq"},
    {"gptq q4_0", "q8_0", 0, NULL},
    {"awq q4_0", "mlx", 0, "awq"},
    {"awq q4_0", "compressed-tensors", 0, "awq"},
    {"awq q4_0", "gptq", 0, "awq"},
    {"compressed-tensors q4_0", "q4_0", 0, "compressed-tensors"},
    {"compressed-tensors q4_0", "mlx", 0, NULL}, /* its scales become f32 */
    {"compressed-tensors q4_0", "gptq", 0, "compressed-tensors"},
    {"compressed-tensors q4_0", "awq", 0, "compressed-tensors"},
    /* with zero points */
    {"affine/awq", "q4_1", 7e-4, NULL},
    {"affine/awq", "q4_0", -1, "with zero point"},
    {"affine/awq", "mlx", 0, NULL},
    {"affine/awq", "compressed-tensors", 0, NULL},
    {"affine/awq", "gptq", 0, NULL},
    {"affine/awq", "bnb", -1, "share them in the target"},
    {"affine/auto_round_v2", "awq", 0, NULL},
    {"affine/auto_round_v2", "compressed-tensors", 0, NULL},
    {"compressed-tensors int5", "awq", -1, "do not fit into 0 ... 15"},
    {"affine/gptq_3_act_order", "mlx", -1, "with such scales and groups"},
    {"affine/gptq_3_act_order", "q4_0", -1, "with such scales and groups"},
    {"affine/gptq_3_act_order", "awq", -1, "with such scales and groups"},
    /* 8 bits */
    {"affine/ct_8", "q8_0", 0, NULL},
    {"affine/ct_8", "mlx", 0, NULL},
    {"affine/ct_8", "gptq", 0, NULL},
    {"affine/ct_8", "awq", -1, "do not fit into 0 ... 15"},
    {"gptq q8_0", "q8_0", 0, "gptq"},
    {"gptq q8_0", "mlx", 0, "gptq"},
    {"gptq q8_0", "compressed-tensors", 0, "gptq"},
    {"compressed-tensors int8", "q8_0", 0x1p-11, NULL},
    {"compressed-tensors int8", "mlx", 2e-7, NULL},
    {"compressed-tensors int8", "gptq", 0x1p-11, NULL},
    {"compressed-tensors int8", "bnb", 2e-7, NULL},
    {"bnb int8", "q8_0", 0x1p-11 + 0x1p-22, NULL},
    {"bnb int8", "compressed-tensors", 2e-7, NULL},
    {"bnb int8", "mlx", 0x1p-10, NULL}, /* f16 */
    {"bnb int8", "awq", -1, "do not fit into 0 ... 15"},
    {"affine/gemma", "compressed-tensors", 0, NULL},
    /* MLX: the same parameters, but MLX rounds products and sums to f16 */
    {"affine/mlx_metal", "q4_1", 0.0015, NULL},
    {"affine/mlx_metal", "compressed-tensors", 0.01, NULL},
    {"affine/mlx_metal", "gptq", 0.01, NULL},
    {"affine/mlx_metal", "awq", 0.01, NULL},
    {"mlx int5 32", "q5_1", 6e-4, NULL},
    {"mlx int5 32", "awq", -1, "do not fit"},
    {"mlx int3 32", "q4_1", 6e-4, NULL},
    {"mlx uint8 32", "q8_0", 6e-4, NULL},
    {"mlx uint8 32", "q4_0", -1, "do not fit"},
    /* GGUF */
    {"q4_0", "mlx", 0, "q4_0"},
    {"q4_0", "compressed-tensors", 0, "q4_0"},
    {"q4_0", "gptq", 0, "q4_0"},
    {"q4_0", "awq", 0, "q4_0"},
    {"q4_1", "mlx", 0, "q4_1"},
    {"q5_0", "mlx", 0, "q5_0"},
    {"q5_1", "mlx", 0, "q5_1"},
    {"q8_0", "mlx", 0, "q8_0"},
    {"q5_0", "compressed-tensors", 0, "q5_0"},
    {"q8_0", "compressed-tensors", 0, "q8_0"},
    {"q4_1", "compressed-tensors", -1, "not a multiple of its scale"},
    {"q5_1", "compressed-tensors", -1, "not a multiple of its scale"},
    {"q4_1", "gptq", -1, "not a multiple of its scale"},
    {"q4_k", "mlx", 0, NULL},
    {"q5_k", "mlx", 0, NULL},
    {"q4_k", "compressed-tensors", -1, "not a multiple of its scale"},
    {"q4_k", "awq", -1, "not a multiple of its scale"},
    {"q6_k", "compressed-tensors", 0, NULL},
    {"q6_k", "mlx", -1, "share them in the target"},
    {"iq4_xs", "iq4_nl", 0x1p-11, NULL},
    {"iq4_xs", "mlx", -1, "other levels"},
    {"iq2_s", "gptq", -1, "iq2_s with such scales and groups"},
    {"tq2_0", "q2_0", 0, NULL},
    {"tq1_0", "tq2_0", 0, NULL},
    {"tq2_0", "mlx", 0, NULL},
    /* MXFP4 */
    {"gpt-oss", "mlx", 0, NULL},
    {"gpt-oss", "gguf_mxfp4", 0, NULL},
    {"mlx mxfp4", "compressed-tensors", 0, "mlx"},
    {"mlx mxfp4", "gguf_mxfp4", 0, "mlx"},
    {"compressed-tensors mxfp4", "mlx", 0, "compressed-tensors"},
    {"compressed-tensors mxfp4", "gguf_mxfp4", 0, "compressed-tensors"},
    {"gguf_mxfp4", "mlx", 0, "gguf_mxfp4"},
    {"gguf_mxfp4", "compressed-tensors", 0, "gguf_mxfp4"},
    {"gguf_mxfp4", "gptq", -1, "other levels"},
    {"floats/mxfp4/deepseek_v4", "mlx", -1, "a scale is not finite"},
    {"floats/mxfp4/ct", "mlx", 0, NULL},
    {"floats/mxfp4/mlx_mxfp4", "compressed-tensors", 0, NULL},
    /* MXFP8, NVFP4 */
    {"mlx mxfp8", "compressed-tensors", 0, "mlx"},
    {"compressed-tensors mxfp8", "mlx", 0, "compressed-tensors"},
    {"floats/nvfp4/modelopt", "compressed-tensors", 1.2e-7, NULL},
    {"floats/nvfp4/mlx_nvfp4", "compressed-tensors", 0, NULL},
    {"floats/nvfp4/ct", "compressed-tensors", 0, NULL},
    {"floats/nvfp4/ct", "mlx", -1, "nvfp4 with such scales"},
    /* ternary */
    {"bitnet ternary", "tq2_0", 0x1p-11, NULL},
    {"bitnet ternary", "tq1_0", 0x1p-11, NULL},
    {"bitnet ternary", "q2_0", 0x1p-11, NULL},
    {"bitnet ternary", "mlx", 2e-7, NULL},
    /* FP8 */
    {"fp8 fp8_e4m3", "compressed-tensors", 0, "fp8"},
    {"compressed-tensors fp8_e4m3", "fp8", 0, "compressed-tensors"},
    {"fp8 fp8_e4m3", "q8_0", -1, "fp8_e4m3 with such scales"},
    {"fp8 fp8_e4m3", "mlx", -1, "fp8_e4m3 with such scales"},
    {"fp8 fp8_e4m3", "gptq", -1, "fp8_e4m3 with such scales"},
    {"fp8 fp8_e4m3", "awq", -1, "fp8_e4m3 with such scales"},
    {"floats/fp8/deepseek_v3", "compressed-tensors", 0, NULL},
    {"floats/fp8/deepseek_v4", "fp8", 0, NULL},
    {"floats/fp8/mistral", "fp8", 0, NULL},
    {"floats/fp8/modelopt", "fp8", -1, "fp8_e5m2 with such scales"},
    /* nf4 */
    {"bnb nf4", "mlx", -1, "nf4 with such scales"},
    {"bnb nf4", "gptq", -1, "nf4 with such scales"},
    {"bnb nf4", "awq", -1, "nf4 with such scales"},
    {"bnb nf4", "compressed-tensors", -1, "nf4 with such scales"},
    {"bnb nf4", "q4_0", -1, "nf4 with such scales"},
    {"bnb nf4", "iq4_nl", -1, "nf4 with such scales"},
};
enum { CASES = sizeof table / sizeof *table };

/* ---- moves --------------------------------------------------------------- */

typedef struct seen {
    lb_moved worst;
} seen;

static void note(void *user, const lb_written *w)
{
    seen *s = user;
    if (w->moved > s->worst) s->worst = w->moved;
}

/* Types of GGUF are written as a file, layouts as a directory unless the source
 * has no directory. */
static scratch_path goal(const char *from, const char *to, const char *name)
{
    const bool layout = strchr(to, '-') || !strcmp(to, "mlx") ||
                        !strcmp(to, "gptq") || !strcmp(to, "awq") ||
                        !strcmp(to, "bnb") || !strcmp(to, "fp8");
    const size_t n = strlen(from);
    const bool file = n > 5 && !strcmp(from + n - 5, ".gguf");
    return made(name, layout && !file ? "" : ".safetensors");
}

static bool move(const char *from, const char *target, const char *to,
                 lb_allow allow, seen *s)
{
    const size_t n = strlen(to);
    *s = (seen){0};
    const lb_convert_options o = {
        .target = target,
        .allow = allow,
        .keep = true,
        .strict = true,
        .directory = strcmp(to + (n > 12 ? n - 12 : 0), ".safetensors") != 0,
        .no_sync = true,
        .linear_class = "autobitlinear",
        .done = note,
        .done_user = s};
    return lb_convert_file(cx, from, to, &o);
}

static lb_array *weight_of(lb_file *f)
{
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        if (e->format && strcmp(e->format, "dense") != 0)
            return lb_convert(cx, lb_file_load(cx, f, e->name), LB_F32);
    }
    return NULL;
}

/* Bits as f32, any NaN being equal to any other; or the error. */
static double apart(const char *a, const char *b)
{
    const lb_file_options o = {.linear_class = "autobitlinear"};
    lb_file *f = lb_file_open(cx, a, &o), *g = lb_file_open(cx, b, &o);
    lb_array *x = weight_of(f), *y = weight_of(g);
    double error = INFINITY;
    const size_t n =
        x && y && lb_size(x) == lb_size(y) ? (size_t)lb_size(x) : 0;
    float *v = malloc(2 * n * sizeof *v + 1);
    if (n && v && lb_read(cx, x, v, n * sizeof *v) &&
        lb_read(cx, y, v + n, n * sizeof *v)) {
        double dd = 0, aa = 0;
        for (size_t i = 0; i < n; i++) {
            const double p = (double)v[i], q = (double)v[n + i];
            if (isnan(p) && isnan(q)) continue;
            if (memcmp(&v[i], &v[n + i], sizeof *v) != 0 && !(p == 0 && q == 0))
                dd += fmax((p - q) * (p - q), 1e-300);
            aa += p * p;
        }
        error = dd == 0 ? 0 : sqrt(dd / aa);
    }
    free(v);
    lb_file_close(f);
    lb_file_close(g);
    return error;
}

static bool same_file(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    bool same = f && g;
    for (int c = 0; same && c != EOF;)
        same = (c = fgetc(f)) == fgetc(g);
    if (f) fclose(f);
    if (g) fclose(g);
    return same;
}

/* The blocks of the array in a GGUF file. */
static bool same_blocks(const char *a, const char *b)
{
    const char *const path[] = {a, b};
    uint8_t *raw[2] = {NULL};
    size_t n[2] = {0};
    for (int i = 0; i < 2; i++) {
        lb_array *x = lb_component(cx, lb_load(cx, path[i], W), "blocks");
        n[i] = x ? (size_t)lb_size(x) : 0;
        raw[i] = malloc(n[i] + 1);
        if (!x || !raw[i] || !lb_read(cx, x, raw[i], n[i])) n[i] = 0;
    }
    const bool same = n[0] && n[0] == n[1] && !memcmp(raw[0], raw[1], n[0]);
    free(raw[0]);
    free(raw[1]);
    return same;
}

/* The tensors of a directory, or a file. */
static scratch_path tensors_of(const char *path)
{
    const scratch_path p = scratch_in(path, "model.safetensors", "");
    if (is_there(p.s)) return p;
    scratch_path q;
    snprintf(q.s, sizeof q.s, "%s", path);
    return q;
}

static void check_back(int i, const char *from, const char *to)
{
    seen s;
    const size_t n = strlen(from);
    const bool gguf = n > 5 && !strcmp(from + n - 5, ".gguf");
    const scratch_path back = made("back", gguf ? ".gguf" : "");
    if (check_fails(
            move(to, table[i].why, back.s, LB_ALLOW_EXACT, &s) &&
            (gguf ? same_blocks(from, back.s)
                  : same_file(tensors_of(from).s, tensors_of(back.s).s))))
        fprintf(stderr, "%s to %s and back: other bytes: %s\n", table[i].from,
                table[i].to, lb_error(cx));
    scratch_remove(back.s);
}

static void check_refusal(int i, const char *from, const char *to)
{
    seen s;
    if (check_fails(!move(from, table[i].to, to, LB_ALLOW_ROUNDED, &s) &&
                    lb_error_status(cx) == LB_E_DENIED &&
                    strstr(lb_error(cx), table[i].why) && !is_there(to)))
        fprintf(stderr, "%s to %s: want \"%s\", got \"%s\"\n", table[i].from,
                table[i].to, table[i].why, lb_error(cx));
    lb_clear(cx);
}

static void check_case(int i)
{
    seen s;
    lb_enter(cx);
    const scratch_path from = source(table[i].from);
    const scratch_path to = goal(from.s, table[i].to, "to");
    const double limit = table[i].limit;
    if (limit < 0) {
        check_refusal(i, from.s, to.s);
        lb_leave(cx);
        return;
    }
    bool ok = move(from.s, table[i].to, to.s, LB_ALLOW_EXACT, &s);
    double error = ok ? apart(from.s, to.s) : INFINITY;
    if (limit == 0) {
        ok = ok && s.worst == LB_MOVED_EXACT && error == 0;
    } else if (!ok) { /* else the same real numbers, decoded differently */
        ok = strstr(lb_error(cx), "would be rounded");
        lb_clear(cx);
        ok = ok && move(from.s, table[i].to, to.s, LB_ALLOW_ROUNDED, &s) &&
             s.worst == LB_MOVED_ROUNDED;
        error = ok ? apart(from.s, to.s) : INFINITY;
    }
    if (check_fails(ok && error <= limit))
        fprintf(stderr, "%s to %s: error %g, limit %g, moved %d: %s\n",
                table[i].from, table[i].to, error, limit, (int)s.worst,
                lb_error(cx));
    if (ok && table[i].why) check_back(i, from.s, to.s);
    scratch_remove(to.s);
    lb_clear(cx);
    lb_leave(cx);
}

int main(void)
{
    cx = lb_open(&(lb_options){.threads = 1});
    CHECK(scratch_dir(where));
    make_model();
    for (int i = 0; i < CASES; i++)
        check_case(i);
    scratch_remove(where);
    lb_close(cx);
    return check_report("moves of files");
}
