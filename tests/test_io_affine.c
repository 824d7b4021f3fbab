/* test_io_affine.c - integer weights of other programs: what those programs
 * decode, bit for bit, as a whole, row by row and as slices; and files that
 * contradict themselves (tools/gen_affine_golden.py). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "lowbit_io.h"
#include "scratch.h"

static const char where[] = "tests/golden/affine";

static lb_file *open_in(lb_ctx *cx, const char *dir, const char *name,
                        bool no_map)
{
    char path[512];
    const lb_file_options o = {.no_map = no_map};
    snprintf(path, sizeof path, "%s/%s%s%s", where, dir, *name ? "/" : "",
             name);
    return lb_file_open(cx, path, &o);
}

/* The bytes of a in the dtype of its values in the golden file. */
static char *bytes_of(lb_ctx *cx, lb_array *a, lb_dtype dtype, size_t *size)
{
    a = lb_convert(cx, a, dtype);
    if (!a) return NULL;
    *size = (size_t)lb_size(a) * lb_dtype_size(dtype);
    char *to = malloc(*size + 1);
    if (to && lb_read(cx, a, to, *size)) return to;
    free(to);
    return NULL;
}

static void same(lb_ctx *cx, const char *what, const char *dir,
                 const char *name, lb_array *a, lb_array *want)
{
    size_t n = 0, m = 0;
    const lb_dtype d = lb_dtype_of(want);
    char *x = bytes_of(cx, a, d, &n), *y = bytes_of(cx, want, d, &m);
    if (check_fails(x && y && n == m && memcmp(x, y, n) == 0)) {
        size_t at = 0;
        while (x && y && at < n && at < m && x[at] == y[at])
            at++;
        fprintf(stderr, "%s: %s: %s differs at byte %zu of %zu: %s\n", dir,
                name, what, at, m, lb_error(cx));
    }
    free(x);
    free(y);
}

static void one_array(lb_ctx *cx, const char *dir, lb_file *f, lb_file *values,
                      const char *name)
{
    lb_enter(cx);
    lb_array *want = lb_file_load(cx, values, name);
    const lb_entry *e = lb_file_find(f, name);
    if (check_fails(want && e && e->format)) {
        fprintf(stderr, "%s: %s is not an array\n", dir, name);
        lb_leave(cx);
        return;
    }
    CHECK(strcmp(e->format, "dense") != 0);
    lb_array *a = lb_file_load(cx, f, name);
    same(cx, "the array", dir, name, a, want);
    /* compressed-tensors decodes in the dtype of the scales: one rounding */
    same(cx, "the array in its dtype", dir, name, lb_convert(cx, a, e->dtype),
         lb_convert(cx, want, e->dtype));
    const int64_t rows = e->dim[0];
    for (int64_t lo = 0; lo < rows; lo += 5) {
        const int64_t hi = lo + 5 < rows ? lo + 5 : rows;
        int64_t start[8] = {lo}, stop[8], count[8];
        for (int k = 0; k < e->rank; k++)
            stop[k] = count[k] = e->dim[k];
        stop[0] = hi;
        count[0] = hi - lo;
        lb_array *part = lb_slice(cx, want, start, stop, NULL);
        same(cx, "a run of rows", dir, name,
             lb_file_load_rows(cx, f, name, lo, hi), part);
        same(cx, "a slice", dir, name,
             lb_file_load_slice(cx, f, name, start, count), part);
    }
    CHECK_EQ_S(lb_error(cx), "");
    lb_clear(cx);
    lb_leave(cx);
}

static int one_directory(lb_ctx *cx, const char *dir)
{
    int n = 0;
    for (int no_map = 0; no_map < 2; no_map++) {
        lb_file *f = open_in(cx, dir, "", no_map);
        lb_file *values = open_in(cx, dir, "values.safetensors", false);
        if (check_fails(f && values)) {
            fprintf(stderr, "%s: %s\n", dir, lb_error(cx));
        } else {
            lb_quant_method m;
            CHECK(lb_file_method(cx, f, &m) && m.name && m.decoded);
            for (; n < lb_file_count(values); n++)
                one_array(cx, dir, f, values, lb_file_entry(values, n)->name);
            if (!no_map) n = 0;
        }
        lb_file_close(f);
        lb_file_close(values);
        lb_clear(cx);
    }
    return n;
}

/* Other programs store zero points in as many bits as codes. */
static void test_large_zero(lb_ctx *cx)
{
    static const char *const layout[] = {"gptq", "awq", "compressed-tensors"};
    static const char *const name[] = {"codes", "scale", "zero"};
    const lb_quant_config config = {
        .format = "int4", .block_size = 32, .dtype = LB_F16};
    char path[SCRATCH_MAX];
    CHECK(scratch_file(path));
    CHECK(unlink(path) == 0);
    for (int i = 0; i < 6; i++) {
        const int zero = i < 3 ? 15 : 16;
        lb_array *part[] = {lb_full_int(cx, LB_U8, LB_SHAPE(8, 16), 0x21),
                            lb_full_int(cx, LB_F16, LB_SHAPE(8, 1), 1),
                            lb_full_int(cx, LB_U8, LB_SHAPE(8, 1), zero)};
        const lb_planned p = {.name = "m.weight",
                              .array =
                                  lb_from_parts(cx, &config, LB_SHAPE(8, 32),
                                                NULL, name, part, 3)};
        const lb_save_options o = {.layout = layout[i % 3], .no_sync = true};
        CHECK(p.array != NULL);
        CHECK_EQ_I(lb_save(cx, path, &p, 1, &o), zero < 16);
        CHECK_EQ_S(lb_error(cx),
                   zero < 16 ? "" : "zero point 16 does not fit into 4 bits");
        lb_clear(cx);
        CHECK_EQ_I(unlink(path), zero < 16 ? 0 : -1);
    }
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    CHECK(cx != NULL);
    test_large_zero(cx);
    DIR *d = opendir(where);
    CHECK(d != NULL);
    int arrays = 0, directories = 0;
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        directories++;
        arrays += one_directory(cx, e->d_name);
    }
    if (d) closedir(d);
    CHECK_EQ_I(directories, 43);
    printf("%d arrays in %d directories\n", arrays, directories);
    lb_close(cx);
    return check_report("integer weights of other programs");
}
