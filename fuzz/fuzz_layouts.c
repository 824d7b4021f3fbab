/* fuzz_layouts.c - a model directory (tests/text_directory.h) with any
 * configuration and any tensors: arrays of all layouts are found, loaded as a
 * whole, by rows and as slices, and these agree.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "fuzz_container.h"
#include "io/layouts/entries.h"
#include "scratch.h"
#include "text_directory.h"

enum { MOST = 1 << 16 }; /* elements */

static void broken(const lb_ctx *cx, const char *law)
{
    fprintf(stderr, "fuzz: %s: %s\n", law, lb_error(cx));
    abort();
}

/* ---- the directory ------------------------------------------------------- */

static char dir[SCRATCH_MAX];

static void remove_dir(void)
{
    scratch_remove(dir);
}

/* Only the configuration is on disk. */
static lb_reader *open_text(lb_ctx *cx, text_directory *d)
{
    if (!*dir) {
        if (!scratch_dir(dir)) abort();
        atexit(remove_dir);
    }
    const scratch_path path = scratch_in(dir, d->config_name, "");
    FILE *config = fopen(path.s, "wb");
    if (!config || fwrite(d->config, 1, d->n_config, config) != d->n_config ||
        fclose(config))
        abort();
    lb_reader *r = lb_reader_open_file(
        cx,
        lb_infile_wrap(cx, scratch_in(dir, "model.safetensors", "").s,
                       d->weights.at, d->weights.n),
        NULL);
    if (!r && lb_error_status(cx) != LB_E_CONTENT)
        broken(cx, "a status of opening");
    return r;
}

static void remove_config(const text_directory *d)
{
    (void)remove(scratch_in(dir, d->config_name, "").s);
}

/* ---- arrays -------------------------------------------------------------- */

static void read_all(lb_ctx *cx, lb_array *a, void *to, size_t most)
{
    const size_t size = (size_t)lb_size(a) * lb_dtype_size(lb_dtype_of(a));
    if (size > most || !lb_read(cx, a, to, size))
        broken(cx, "an array that loads is not read");
}

/* Of an array whose values are known, so that it loads, a box loads with the
 * same values; part NULL: it begins or ends inside a block. */
static void compare(lb_ctx *cx, const char *law, lb_array *whole,
                    const int64_t *start, const int64_t *count, lb_array *part)
{
    static double want[MOST], got[MOST];
    int64_t stop[LB_MAX_RANK];
    for (int k = 0; k < lb_rank(whole); k++)
        stop[k] = start[k] + count[k];
    lb_array *cut = lb_slice(cx, whole, start, stop, NULL);
    if (!part || !cut) broken(cx, law);
    if (lb_rank(part) != lb_rank(whole) || lb_size(part) != lb_size(cut))
        broken(cx, law);
    read_all(cx, cut, want, sizeof want);
    read_all(cx, part, got, sizeof got);
    if (memcmp(want, got,
               (size_t)lb_size(cut) * lb_dtype_size(lb_dtype_of(cut))) != 0)
        broken(cx, law);
}

static void use_boxes(lb_ctx *cx, lb_file *f, const lb_entry *e, lb_array *a,
                      unsigned seed)
{
    static double values[MOST];
    read_all(cx, a, values, sizeof values);
    const lb_shape shape = lb_shape_make(e->rank, e->dim);
    lb_array *whole = lb_wrap(cx, lb_dtype_of(a), shape, values, NULL, NULL);
    int64_t start[LB_MAX_RANK] = {0}, count[LB_MAX_RANK];
    if (!whole) broken(cx, "a wrap");
    if (!e->rank || lb_dtype_of(a) != e->dtype) return;
    memcpy(count, e->dim, (size_t)e->rank * sizeof *count);
    start[0] = (int64_t)(seed % (uint64_t)(e->dim[0] + 1));
    count[0] = (int64_t)(seed / 7 % (uint64_t)(e->dim[0] - start[0] + 1));
    compare(cx, "rows differ", whole, start, count,
            lb_file_load_rows(cx, f, e->name, start[0], start[0] + count[0]));
    for (int k = 0; k < e->rank; k++) {
        start[k] = (int64_t)((seed >> 3 * k) % (uint64_t)(e->dim[k] + 1));
        if (seed & 1) start[k] = start[k] / 32 * 32;
        count[k] = e->dim[k] - start[k];
        if (seed & 2) count[k] = (count[k] + 1) / 2;
    }
    lb_array *part = lb_file_load_slice(cx, f, e->name, start, count);
    if (!part && lb_error_status(cx) == LB_E_SHAPE)
        lb_clear(cx);
    else
        compare(cx, "a slice differs", whole, start, count, part);
}

static void use_array(lb_ctx *cx, lb_file *f, const lb_entry *e, unsigned seed)
{
    int64_t n = 0;
    if (e->rank <= LB_MAX_RANK) {
        const lb_shape shape = lb_shape_make(e->rank, e->dim);
        if (!lb_shape_count(&shape, &n) || n > MOST) return;
    }
    lb_enter(cx);
    lb_array *a = lb_file_load(cx, f, e->name);
    if (!a && strlen(lb_error(cx)) < 10) broken(cx, "no sentence");
    if (!a && lb_error_status(cx) != LB_E_CONTENT &&
        lb_error_status(cx) != LB_E_UNSUPPORTED)
        broken(cx, "a status of loading");
    if (a) use_boxes(cx, f, e, a, seed);
    lb_leave(cx);
    lb_clear(cx);
}

static void use(lb_ctx *cx, lb_reader *r, unsigned seed)
{
    static const lb_file_options options;
    lb_quant_method m;
    lb_file *f = lb_file_of(cx, r, &options);
    if (!f &&
        (lb_error_status(cx) != LB_E_CONTENT || strlen(lb_error(cx)) < 10))
        broken(cx, "a status of listing");
    if (!f) return;
    if (!lb_file_method(cx, f, &m) && lb_error_status(cx) != LB_E_CONTENT)
        broken(cx, "a status of the method");
    lb_clear(cx);
    for (int64_t i = 0; i < lb_file_count(f); i++)
        use_array(cx, f, lb_file_entry(f, i), seed);
    lb_file_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    lb_ctx *cx = fuzz_context();
    text_directory d;
    unsigned seed = 0;
    if (!cx) return 0;
    const size_t before = lb_bytes_in_use(cx);
    for (size_t i = 0; i < n; i++)
        seed = seed * 31 + bytes[i];
    if (text_directory_of(cx->heap, bytes, n, &d)) {
        lb_reader *r = open_text(cx, &d);
        lb_clear(cx);
        if (r) use(cx, r, seed);
        lb_clear(cx);
        remove_config(&d);
    }
    lb_bytes_free(&d.weights);
    if (lb_bytes_in_use(cx) != before) broken(cx, "memory is left");
    return 0;
}
