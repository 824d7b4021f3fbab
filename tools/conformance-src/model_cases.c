/* model_cases.c - the kinds `fp8`, `mxfp4`, `nvfp4`, `gptq`, `awq`,
 * `compressed-tensors` and `mlx`: model directories as other programs write
 * them, and what their own decoders make of one weight.
 *
 * A case is a directory with model.safetensors, or shards with an index;
 * usually config.json and the like; expected_f32.npy, the values computed in
 * f32; and expected_bf16_bits.npy (optional), the same rounded once. The weight
 * is a quantized array of that shape. A shape that lacks leading axes of
 * 1, or has the last two axes transposed, is accepted. Values are compared bit
 * by bit, a NaN with any NaN, also row by row as they are read in pieces.
 *
 * A directory as the program alone wrote it is a case as well. If it has
 * values.safetensors, arrays of the same names must have these values, in their
 * dtype. Without any values every quantized array must be read, whole and row
 * by row, with the same bits.
 */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "lowbit_io.h"

static int64_t count_of(const lb_entry *e)
{
    int64_t n = 1;
    for (int k = 0; k < e->rank; k++) {
        n *= e->dim[k];
    }
    return n;
}

/* Whether the array has that shape but for leading axes of 1; turned: with the
 * last two axes transposed. */
static bool fits(const lb_entry *e, lb_shape want, bool turned)
{
    const int last = want.rank - 1;
    if (turned && (last < 1 || e->rank < 2)) return false;
    if (turned) {
        const int64_t n = want.dim[last];
        want.dim[last] = want.dim[last - 1];
        want.dim[last - 1] = n;
    }
    for (int k = 1; k <= e->rank || k <= want.rank; k++) {
        const int64_t a = k <= e->rank ? e->dim[e->rank - k] : 1;
        const int64_t b = k <= want.rank ? want.dim[want.rank - k] : 1;
        if (a != b) return false;
    }
    return true;
}

static bool is_candidate(const lb_entry *e, lb_shape want, bool turned)
{
    return e->format && strcmp(e->format, "dense") != 0 &&
           e->rank <= LB_MAX_RANK && count_of(e) == shape_size(want) &&
           fits(e, want, turned);
}

/* The rows, read a few at a time, must have the bits of the whole. */
static bool check_rows(checker *c, lb_file *f, const lb_entry *e, lb_array *a)
{
    enum { ROWS = 37 };
    const int64_t n = e->rank ? e->dim[0] : 0;
    bool same = true;
    for (int64_t lo = 0; same && lo < n; lo += ROWS) {
        const int64_t hi = lo + ROWS < n ? lo + ROWS : n;
        lb_enter(c->cx);
        int64_t from[LB_MAX_RANK] = {lo};
        int64_t to[LB_MAX_RANK];
        for (int k = 0; k < e->rank; k++) {
            to[k] = k ? e->dim[k] : hi;
        }
        lb_array *const rows = lb_convert(
            c->cx, lb_file_load_rows(c->cx, f, e->name, lo, hi), LB_F32);
        lb_array *const part = lb_slice(c->cx, a, from, to, NULL);
        const size_t bytes = (size_t)lb_size(part) * sizeof(float);
        char *const x = malloc(2 * bytes + 1);
        same = rows && part && x && lb_read(c->cx, rows, x, bytes) &&
               lb_read(c->cx, part, x + bytes, bytes) &&
               !memcmp(x, x + bytes, bytes);
        free(x);
        lb_leave(c->cx);
        if (!same) {
            note_fail(c->note, "rows %lld to %lld differ when read alone: %s",
                      (long long)lo, (long long)hi, lb_error(c->cx));
        }
    }
    return same;
}

/* Whether the expected values are rounded to the 16 bits of the scales, as MLX
 * computes; in f32 most need more. */
static bool is_rounded(checker *c, const given *f32, lb_dtype dtype)
{
    const size_t bytes = f32->raw.nbytes;
    char *const x = malloc(bytes + 1);
    lb_array *const twice =
        lb_convert(c->cx, lb_convert(c->cx, f32->a, dtype), LB_F32);
    const bool same = x && twice && lb_read(c->cx, twice, x, bytes) &&
                      !memcmp(x, f32->raw.data, bytes);
    free(x);
    return same;
}

/* An array with a bias is decoded as MLX does: product and sum are rounded to
 * the dtype of the scales. The same parts in f32 give the values in f32. */
static lb_array *in_f32(checker *c, lb_array *a, const given *f32)
{
    static const char *const name[] = {"codes", "scale", "bias"};
    lb_array *part[3];
    const char *const format = lb_format_of(a);
    const lb_shape shape = lb_shape_of(a);
    bool has_bias = false;
    for (int k = 0; lb_component_name(a, k); k++) {
        has_bias = has_bias || !strcmp(lb_component_name(a, k), "bias");
    }
    lb_array *const bias = has_bias ? lb_component(c->cx, a, "bias") : NULL;
    if (!bias || is_rounded(c, f32, lb_dtype_of(bias))) return a;
    for (int i = 0; i < 3; i++) {
        part[i] = lb_component(c->cx, a, name[i]);
        if (i) part[i] = lb_convert(c->cx, part[i], LB_F32);
        if (!part[i]) return NULL;
    }
    const int64_t groups = lb_dim(part[1], -1);
    const int64_t columns = shape.dim[shape.rank - 1];
    const lb_quant_config config = {
        .struct_size = sizeof(config),
        .format = format,
        .scale = groups > 1 ? LB_SCALE_DEFAULT : LB_SCALE_ROW,
        .block_size = groups > 1 ? columns / groups : 0,
        .dtype = LB_F32};
    return lb_from_parts(c->cx, &config, shape, NULL, name, part, 3);
}

static bool check_entry(checker *c, lb_file *f, const lb_entry *e, bool turned,
                        const given *f32)
{
    /* values without the rounding to the model's dtype */
    lb_array *a = lb_convert(c->cx, lb_file_load(c->cx, f, e->name), LB_F32);
    if (!a) return library_failed(c->cx, c->note, "lb_file_load");
    if (!check_rows(c, f, e, a)) return false;
    a = in_f32(c, a, f32);
    if (!a) return library_failed(c->cx, c->note, "parts in f32");
    if (turned) {
        int axes[LB_MAX_RANK];
        for (int k = 0; k < e->rank; k++) {
            axes[k] = k;
        }
        axes[e->rank - 1] = e->rank - 2;
        axes[e->rank - 2] = e->rank - 1;
        a = lb_transpose(c->cx, a, axes);
    }
    a = lb_reshape(c->cx, a, f32->raw.shape);
    if (file_exists(c->dir, ".", "expected_bf16_bits.npy")) {
        return check_decoded(c, a, f32);
    }
    return check_array(c, "decoded", a, f32);
}

/* Of several arrays of the shape one must have the values. */
static bool check_weight(checker *c, lb_file *f, const given *f32)
{
    const lb_shape want = f32->raw.shape;
    note *const outer = c->note;
    note last = {.verdict = PASSED};
    for (int turned = 0; turned < 2 && last.verdict == PASSED; turned++) {
        for (int64_t i = 0; i < lb_file_count(f); i++) {
            const lb_entry *const e = lb_file_entry(f, i);
            note mine = {.verdict = PASSED};
            if (!is_candidate(e, want, turned)) continue;
            c->note = &mine;
            c->digest = 0;
            const bool ok = check_entry(c, f, e, turned, f32);
            c->note = outer;
            if (ok) return true;
            lb_clear(c->cx);
            last = mine;
        }
    }
    if (last.verdict == PASSED) {
        return note_fail(c->note, "no quantized array is %s",
                         shape_text(want).s);
    }
    *outer = last;
    return false;
}

static void run_case(runner *r, const char *dir, const char *name)
{
    note n;
    case_open(r, &n);
    checker c = {.cx = r->cx, .dir = dir, .note = &n};
    given f32 = {0};
    lb_file *const f = lb_file_open(r->cx, dir, NULL);
    if (!f) library_failed(r->cx, &n, "lb_file_open");
    if (f && given_read(&c, "expected_f32.npy", LB_F32, &f32)) {
        check_weight(&c, f, &f32);
    }
    given_free(&f32);
    lb_file_close(f);
    case_close(r, &n, name, c.digest);
}

/* ---- without expected_f32.npy -------------------------------------------- */

/* The values of an array of the same name, in the dtype that they have. */
static bool check_values(checker *c, lb_file *values, const char *name,
                         lb_array *a)
{
    lb_array *const want = lb_file_load(c->cx, values, name);
    if (!want) return library_failed(c->cx, c->note, "values.safetensors");
    lb_difference d = {0};
    lb_array *const got = lb_convert(c->cx, a, lb_dtype_of(want));
    if (!got || !lb_compare(c->cx, want, got, &d)) {
        return library_failed(c->cx, c->note, "lb_compare");
    }
    return d.apart == 0 || note_fail(c->note, "%lld values of %s differ",
                                     (long long)d.apart, name);
}

static bool check_alone(checker *c, lb_file *f, lb_file *values)
{
    int64_t arrays = 0;
    bool ok = true;
    for (int64_t i = 0; ok && i < lb_file_count(f); i++) {
        const lb_entry *const e = lb_file_entry(f, i);
        if (!e->format) {
            ok = note_fail(c->note, "%s is %s, which cannot be read", e->name,
                           e->type);
        } else if (strcmp(e->format, "dense") != 0) {
            lb_enter(c->cx);
            lb_array *const stored = lb_file_load(c->cx, f, e->name);
            lb_array *const a =
                stored ? lb_convert(c->cx, stored, LB_F32) : NULL;
            ok = a ? check_rows(c, f, e, a)
                   : library_failed(c->cx, c->note, "lb_file_load");
            ok = ok && (!values || check_values(c, values, e->name, stored));
            lb_leave(c->cx);
            arrays++;
        }
    }
    return ok && (arrays > 0 || note_fail(c->note, "no quantized array"));
}

static void run_alone(runner *r, const char *dir, const char *name)
{
    note n;
    if (file_exists(dir, ".", "expected_f32.npy")) return;
    case_open(r, &n);
    checker c = {.cx = r->cx, .dir = dir, .note = &n};
    const size_t size = strlen(dir) + sizeof("/values.safetensors");
    char *const path = malloc(size);
    const bool has = file_exists(dir, ".", "values.safetensors");
    if (path) snprintf(path, size, "%s/values.safetensors", dir);
    lb_file *const values =
        has && path ? lb_file_open(r->cx, path, NULL) : NULL;
    lb_file *const f = lb_file_open(r->cx, dir, NULL);
    if (!f || !path || (has && !values)) {
        library_failed(r->cx, &n, "lb_file_open");
    } else {
        check_alone(&c, f, values);
    }
    lb_file_close(values);
    lb_file_close(f);
    free(path);
    case_close(r, &n, name, c.digest);
}

/* A directory may have both. */
static void run_index(runner *r, const char *dir, const char *name)
{
    if (!file_exists(dir, ".", "model.safetensors")) run_alone(r, dir, name);
}

static bool run_models(runner *r, const char *dir, note *n)
{
    return cases_run(r, dir, "expected_f32.npy", run_case, n) &&
           cases_run(r, dir, "model.safetensors", run_alone, n) &&
           cases_run(r, dir, "model.safetensors.index.json", run_index, n);
}

#define MODELS(NAME, HELP)                                                     \
    const kind kind_##NAME = {.name = #NAME,                                   \
                              .help = HELP,                                    \
                              .dense = LB_DENSE_DENY,                          \
                              .run = run_models}

MODELS(fp8, "model directories with an fp8 weight (see below)");
MODELS(gptq, "the same with a weight in GPTQ's layout (v1, v2, act-order)");
MODELS(awq, "the same with a weight in AWQ's gemm layout");
const kind kind_compressed_tensors = {
    .name = "compressed-tensors",
    .help = "the same with integer or float weights of compressed-tensors",
    .dense = LB_DENSE_DENY,
    .run = run_models};
MODELS(mlx, "the same with a weight that MLX has quantized, in any mode");
MODELS(mxfp4, "the same with a weight in mxfp4 (gpt-oss, compressed-tensors, "
              "MLX)");
MODELS(nvfp4, "the same with a weight in nvfp4 (ModelOpt, compressed-tensors, "
              "MLX)");
