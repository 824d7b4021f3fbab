/* test_io_load.c - loading arrays: every array of every file of other programs,
 * whole and by rows, mapped and read with pread, has the hash in the listing
 * (test_io_golden checks the reader against the same listing); what cannot be
 * loaded is refused with a message.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "io/layouts/entries.h"
#include "io_golden.h"
#include "refused.h"
#include "scratch.h"

static lb_ctx *cx;

/* ---- the bytes of every array -------------------------------------------- */

/* Element i in C order, of a tensor whose first axis is contiguous. */
static int64_t fortran_place(const lb_tensor *t, int64_t i)
{
    int64_t index[64], at = 0;
    for (int k = t->rank - 1; k >= 0; i /= t->dim[k], k--)
        index[k] = i % t->dim[k];
    for (int k = t->rank - 1; k >= 0; k--)
        at = at * t->dim[k] + index[k];
    return at;
}

/* Its bytes in C order, little-endian, from the reader and computed here. */
static uint8_t *expected(lb_reader *r, const lb_tensor *t)
{
    const size_t n = (size_t)t->size;
    uint8_t *raw = malloc(n + 1);
    CHECK(lb_reader_read(cx, r, t, 0, n, raw));
    if (!t->fortran) return raw;
    const size_t unit = lb_dtype_size(t->dtype);
    uint8_t *turned = malloc(n + 1);
    for (size_t i = 0; i < n / unit; i++)
        memcpy(turned + i * unit,
               raw + (size_t)fortran_place(t, (int64_t)i) * unit, unit);
    free(raw);
    return turned;
}

/* The stored bytes of a, in order. */
static bool has_bytes(lb_array *a, const uint8_t *want, size_t n)
{
    if (!a) return false;
    const bool dense = strcmp(lb_format_of(a), "dense") == 0;
    const char *first = a->store->fmt->part[0].name; /* blocks or codes */
    lb_array *part = dense ? a : lb_component(cx, a, first);
    const size_t size =
        (size_t)lb_size(part) * lb_dtype_size(lb_dtype_of(part));
    uint8_t *got = malloc(size + 1);
    const bool same =
        size == n && lb_read(cx, part, got, size) && memcmp(got, want, n) == 0;
    free(got);
    return same;
}

static void check_rows(lb_file *f, const lb_entry *e, const uint8_t *want)
{
    const int64_t rows = e->dim[0];
    const size_t row = rows ? (size_t)e->nbytes / (size_t)rows : 0;
    for (int64_t lo = 0; lo <= rows && lo < 5; lo++)
        for (int64_t hi = lo; hi <= rows && hi < 6; hi++) {
            lb_array *a = lb_file_load_rows(cx, f, e->name, lo, hi);
            CHECK_EQ_I(lb_dim(a, 0), hi - lo);
            CHECK(
                has_bytes(a, want + (size_t)lo * row, (size_t)(hi - lo) * row));
        }
}

static void check_entry(lb_file *f, const lb_entry *e)
{
    const lb_tensor *t = lb_reader_find(f->r, e->name);
    CHECK(t && lb_file_find(f, e->name) == e);
    CHECK(e->rank == t->rank && e->nbytes == t->size);
    for (int k = 0; k < e->rank; k++)
        CHECK_EQ_I(e->dim[k], t->dim[k]);
    CHECK_EQ_I(e->n_tensors, 1);
    CHECK_EQ_S(e->type, t->type);
    if (!e->format) {
        REFUSED(lb_file_load(cx, f, e->name), LB_E_UNSUPPORTED,
                e->rank > LB_MAX_RANK ? "the maximum is 8"
                                      : "has unsupported type");
        return;
    }
    if (e->rank > LB_MAX_RANK) {
        REFUSED(lb_file_load(cx, f, e->name), LB_E_UNSUPPORTED,
                "the maximum is 8");
        return;
    }
    uint8_t *want = expected(f->r, t);
    lb_array *a = lb_file_load(cx, f, e->name);
    CHECK_EQ_S(lb_format_of(a), e->format);
    CHECK_EQ_I(lb_dtype_of(a), e->dtype);
    CHECK_EQ_I(lb_rank(a), e->rank);
    for (int k = 0; k < e->rank; k++)
        CHECK_EQ_I(lb_dim(a, k), e->dim[k]);
    CHECK(has_bytes(a, want, (size_t)t->size));
    /* A row of a block type with one axis is not an integer number of bytes. */
    if (e->rank > (strcmp(e->format, "dense") != 0)) check_rows(f, e, want);
    free(want);
}

static long check_file(const char *path, bool no_map)
{
    lb_file *f = lb_file_open(cx, path, &(lb_file_options){.no_map = no_map});
    CHECK(f != NULL);
    CHECK_EQ_S(lb_error(cx), "");
    const int64_t n = lb_file_count(f);
    for (int64_t i = 0; i < n; i++) {
        lb_enter(cx);
        check_entry(f, lb_file_entry(f, i));
        lb_leave(cx);
    }
    CHECK(!lb_file_entry(f, n) && !lb_file_entry(f, -1));
    for (int64_t i = 0; i < f->r->n_meta; i++) {
        const lb_meta *m = lb_file_meta(f, i);
        CHECK(m && lb_file_find_meta(f, m->key) == m);
    }
    CHECK(!lb_file_meta(f, f->r->n_meta) && !lb_file_find_meta(f, "no such"));
    lb_file_close(f);
    return (long)n;
}

static void test_golden(void)
{
    io_file g;
    long n = 0;
    for (int i = 0; io_file_at(i, &g); i++) {
        n += check_file(g.path, false);
        n += check_file(g.path, true);
    }
    n += check_file(IO_GOLDEN "sharded", false);
    CHECK(n > 200);
}

/* ---- in place ------------------------------------------------------------ */

/* Bytes in the right layout are not copied, and stay valid after file and
 * context are closed. */
static void test_in_place(void)
{
    lb_ctx *other = lb_open(&(lb_options){.threads = 1});
    lb_file *f = lb_file_open(other, IO_GOLDEN "types.safetensors", NULL);
    lb_array *a = lb_ref(lb_file_load(other, f, "float32_2"));
    lb_array *rows = lb_ref(lb_file_load_rows(other, f, "float32_2", 1, 3));
    const uint8_t *map = lb_reader_at(f->r, lb_reader_find(f->r, "float32_2"));
    CHECK(map && lb_data(a) == map);
    CHECK(lb_data(rows) == map + 8);
    /* Bools are checked and copied. */
    CHECK(lb_data(lb_file_load(other, f, "bool_2")) !=
          lb_reader_at(f->r, lb_reader_find(f->r, "bool_2")));
    float want[6], got[6];
    memcpy(want, map, sizeof want);
    lb_file_close(f);
    lb_close(other);
    CHECK(lb_read(cx, a, got, sizeof got));
    CHECK(memcmp(got, want, sizeof got) == 0);
    CHECK(lb_read(cx, rows, got, 16) && memcmp(got, want + 2, 16) == 0);
    lb_unref(a);
    lb_unref(rows);
}

/* ---- refusals ------------------------------------------------------------ */

/* A safetensors file with that header and n bytes of value 2, and its path;
 * with a header of odd length the data is unaligned. */
static const char *file_of(const char *header, int n)
{
    static char path[SCRATCH_MAX];
    if (!path[0]) CHECK(scratch_file(path));
    FILE *out = fopen(path, "wb");
    const uint64_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        fputc((int)(length >> 8 * i & 255), out);
    fputs(header, out);
    for (int i = 0; i < n; i++)
        fputc(2, out);
    fclose(out);
    return path;
}

static void test_refused(void)
{
    const char *const types = IO_GOLDEN "types.safetensors";
    lb_file *f = lb_file_open(cx, types, NULL);
    REFUSED(lb_file_load(cx, f, "no such"), LB_E_ARG,
            "has no array called 'no such' (of 20)");
    REFUSED(lb_file_load(cx, f, NULL), LB_E_NULL, "has no array called");
    REFUSED(lb_file_load(cx, f, "complex64_2"), LB_E_UNSUPPORTED,
            "'complex64_2' has unsupported type C64");
    REFUSED(lb_file_load_rows(cx, f, "int8_2", 1, 4), LB_E_ARG,
            "rows 1 to 4 of 'int8_2' are out of range (3 rows)");
    REFUSED(lb_file_load_rows(cx, f, "int8_2", 2, 1), LB_E_ARG, "rows 2 to 1");
    REFUSED(lb_file_load_rows(cx, f, "int8_2", -1, 1), LB_E_ARG,
            "rows -1 to 1");
    REFUSED(lb_file_load_rows(cx, f, "int8_2", 0, -1), LB_E_ARG,
            "rows 0 to -1");
    lb_file_close(f);
    REFUSED(lb_load(cx, IO_GOLDEN "shapes.safetensors", "deep"),
            LB_E_UNSUPPORTED, "'deep' has rank 10; the maximum is 8");
    f = lb_file_open(cx, IO_GOLDEN "shapes.safetensors", NULL);
    REFUSED(lb_file_load_rows(cx, f, "scalar", 0, 1), LB_E_ARG,
            "'scalar' are out of range (a scalar");
    lb_file_close(f);
    const char *path = file_of("{\"a\":{\"dtype\":\"BOOL\",\"shape\":[3],"
                               "\"data_offsets\":[0,3]}}",
                               3);
    REFUSED(lb_load(cx, path, "a"), LB_E_CONTENT,
            "tensor 'a' has type bool, but its byte 0 is 2");
    unlink(path);
    REFUSED(lb_load(cx, path, "a"), LB_E_FILE, "cannot open: No such file");
    REFUSED(lb_file_open(cx, NULL, NULL), LB_E_NULL, "the path is NULL");
    REFUSED(lb_file_open(cx, types, &(lb_file_options){.struct_size = 3}),
            LB_E_ARG, "options.struct_size is 3");
    CHECK(!lb_file_open(NULL, types, NULL));
    CHECK(!lb_file_load(cx, NULL, "a") &&
          !lb_file_load_rows(cx, NULL, "a", 0, 1));
    CHECK_EQ_S(lb_error(cx), "");
    CHECK(!lb_file_kind(NULL) && !lb_file_count(NULL) &&
          !lb_file_entry(NULL, 0));
    CHECK(!lb_file_find(NULL, "a") && !lb_file_meta(NULL, 0));
    lb_file_close(NULL);
}

/* Unaligned data is copied correctly. */
static void test_unaligned(void)
{
    const char *path = file_of("{\"abc\":{\"dtype\":\"I32\",\"shape\":[2],"
                               "\"data_offsets\":[0,8]}}",
                               8);
    lb_array *a = lb_load(cx, path, "abc");
    CHECK_EQ_I(lb_item_int(cx, lb_reduce_max(cx, a, NULL)), 0x02020202);
    CHECK_EQ_S(lb_error(cx), "");
    unlink(path);
}

/* Invalid requests for bytes, from layouts and other callers. */
static void test_ranges(void)
{
    uint8_t room[32];
    const lb_file_options o = {0};
    lb_reader *r = lb_reader_open(cx, IO_GOLDEN "big.npy", NULL);
    CHECK(r && r->n_tensors == 1 && r->tensor[0].swap == 4);
    REFUSED(
        lb_reader_read(cx, r, r->tensor, 2, 4, room), LB_E_ARG,
        "tensor 'big' is big-endian: bytes 2 to 6 are not whole units of 4");
    REFUSED(lb_reader_read(cx, r, r->tensor, 24, 4, room), LB_E_ARG,
            "tensor 'big' has 24 bytes: cannot read 4 at offset 24");
    lb_file *f = lb_file_of(cx, r, &o);
    const lb_shape two = LB_SHAPE(2);
    REFUSED(lb_tensor_part(cx, f, f->r->tensor, 20, LB_F32, &two), LB_E_CONTENT,
            "tensor 'big' has 24 bytes: cannot read 8 at offset 20");
    lb_file_close(f);
}

int main(void)
{
    cx = lb_open(&(lb_options){.threads = 1});
    test_golden(); /* the context's lists have reached their final size */
    const size_t before = lb_bytes_in_use(cx);
    lb_enter(cx);
    test_golden();
    test_in_place();
    test_refused();
    test_unaligned();
    test_ranges();
    lb_leave(cx);
    CHECK_EQ_I(lb_bytes_in_use(cx), before);
    lb_close(cx);
    return check_report("arrays from files");
}
