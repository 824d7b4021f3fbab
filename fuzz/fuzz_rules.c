/* fuzz_rules.c - any bytes as a mesh (the first line) and as sharding rules for
 * the arrays of a small file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "fuzz_container.h"
#include "io/arrays/mesh_arrays.h"

/* The file has a header only: every array has an empty axis. */
static const char header[] =
    "{\"up.weight\":{\"dtype\":\"F32\",\"shape\":[64,0,12],\"data_offsets\":[0,"
    "0]},\"norm\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[0,0]}}";

static void broken(const lb_ctx *cx, const char *law)
{
    fprintf(stderr, "fuzz: %s: %s\n", law, lb_error(cx));
    abort();
}

static lb_file *open_model(lb_ctx *cx)
{
    static uint8_t bytes[8 + sizeof header - 1];
    bytes[0] = (uint8_t)(sizeof header - 1);
    memcpy(bytes + 8, header, sizeof header - 1);
    const lb_file_options o = {0};
    lb_infile *f = lb_infile_wrap(cx, "fuzz.safetensors", bytes, sizeof bytes);
    return lb_file_of(cx, lb_reader_open_file(cx, f, NULL), &o);
}

/* Every slice of a placed array exists. */
static void look(const lb_ctx *cx, const lb_grid *grid, const lb_placement *p)
{
    char text[512];
    int64_t start[LB_MAX_RANK], count[LB_MAX_RANK];
    const lb_shape shape = lb_shape_make(p->entry->rank, p->entry->dim);
    const int last = lb_grid_size(grid) - 1;
    lb_spec_text(grid, &p->spec, text, sizeof text);
    lb_spec_slice(grid, &p->spec, &shape, last, start, count);
    for (int k = 0; k < shape.rank; k++)
        if (start[k] < 0 || count[k] < 0 || start[k] + count[k] > shape.dim[k])
            broken(cx, "a slice outside of its array");
}

static void place(lb_ctx *cx, lb_rules *r, const lb_grid *grid, lb_file *f)
{
    for (int64_t i = 0; i < lb_file_count(f); i++)
        for (int relaxed = 0; relaxed < 2; relaxed++) {
            lb_placement p;
            if (lb_rules_place(cx, r, grid, f, lb_file_entry(f, i)->name,
                               relaxed, &p))
                look(cx, grid, &p);
            else if (strlen(lb_error(cx)) < 10)
                broken(cx, "no sentence");
            lb_clear(cx);
        }
    (void)lb_rules_check(cx, r, f);
    lb_clear(cx);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    enum { MOST = 4096 }; /* matching takes up to a million steps each */
    char axes[MOST + 1];
    lb_grid grid;
    lb_ctx *cx = fuzz_context();
    if (!cx || n > MOST) return 0;
    const uint8_t *end = n ? memchr(bytes, '\n', n) : NULL;
    const size_t first = end ? (size_t)(end - bytes) : n;
    const size_t rest = end ? first + 1 : n;
    if (first) memcpy(axes, bytes, first);
    axes[first] = 0;
    const size_t before = lb_bytes_in_use(cx);
    const bool mesh = lb_grid_parse(cx, axes, &grid);
    lb_clear(cx);
    lb_file *f = mesh ? open_model(cx) : NULL;
    lb_rules *r = lb_rules_open(cx);
    lb_infile *text = lb_infile_wrap(cx, "fuzz.rules", bytes + rest, n - rest);
    const bool ok = f && r && lb_rules_take(cx, r, text);
    lb_clear(cx);
    if (ok) place(cx, r, &grid, f);
    lb_infile_unref(text);
    lb_rules_close(r);
    lb_file_close(f);
    if (lb_bytes_in_use(cx) != before) broken(cx, "memory is left");
    return 0;
}
