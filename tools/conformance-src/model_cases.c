/* model_cases.c - the kinds `fp8`, `mxfp4`, `nvfp4`: model directories as other
 * programs write them, and what their own decoders make of one weight.
 *
 * A case is a directory with model.safetensors, or shards with an index;
 * usually config.json and the like; expected_f32.npy, the values computed in
 * f32; and expected_bf16_bits.npy (optional), the same rounded once. The weight
 * is the only quantized array of that shape. A shape that lacks leading axes of
 * 1, or has the last two axes transposed, is accepted. Values are compared bit
 * by bit, a NaN with any NaN, also row by row as they are read in pieces.
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

static const lb_entry *find_weight(const lb_file *f, lb_shape want, bool turned,
                                   note *n)
{
    const lb_entry *found = NULL;
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        const lb_entry *const e = lb_file_entry(f, i);
        if (!e->format || !strcmp(e->format, "dense") ||
            e->rank > LB_MAX_RANK || count_of(e) != shape_size(want) ||
            !fits(e, want, turned)) {
            continue;
        }
        if (found) {
            note_fail(n, "both '%.64s' and '%.64s' are quantized and %s",
                      found->name, e->name, shape_text(want).s);
            return NULL;
        }
        found = e;
    }
    return found;
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

static bool check_weight(checker *c, lb_file *f, const given *f32)
{
    const lb_shape want = f32->raw.shape;
    const lb_entry *e = find_weight(f, want, false, c->note);
    bool turned = false;
    if (!e && c->note->verdict == PASSED) {
        turned = true;
        e = find_weight(f, want, true, c->note);
    }
    if (!e) {
        return note_fail(c->note, "no quantized array is %s",
                         shape_text(want).s);
    }
    /* values without the rounding to the model's dtype */
    lb_array *a = lb_convert(c->cx, lb_file_load(c->cx, f, e->name), LB_F32);
    if (!a) return library_failed(c->cx, c->note, "lb_file_load");
    if (!check_rows(c, f, e, a)) return false;
    if (turned) {
        int axes[LB_MAX_RANK];
        for (int k = 0; k < e->rank; k++) {
            axes[k] = k;
        }
        axes[e->rank - 1] = e->rank - 2;
        axes[e->rank - 2] = e->rank - 1;
        a = lb_transpose(c->cx, a, axes);
    }
    a = lb_reshape(c->cx, a, want);
    if (file_exists(c->dir, ".", "expected_bf16_bits.npy")) {
        return check_decoded(c, a, f32);
    }
    return check_array(c, "decoded", a, f32);
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

static bool run_models(runner *r, const char *dir, note *n)
{
    return cases_run(r, dir, "expected_f32.npy", run_case, n);
}

#define MODELS(NAME, HELP)                                                     \
    const kind kind_##NAME = {.name = #NAME,                                   \
                              .help = HELP,                                    \
                              .dense = LB_DENSE_DENY,                          \
                              .run = run_models}

MODELS(fp8, "model directories with an fp8 weight: model.safetensors, "
            "expected_f32.npy");
MODELS(mxfp4, "the same with a weight in mxfp4 (gpt-oss, compressed-tensors, "
              "MLX)");
MODELS(nvfp4, "the same with a weight in nvfp4 (ModelOpt, compressed-tensors, "
              "MLX)");
