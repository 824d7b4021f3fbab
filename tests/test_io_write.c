/* test_io_write.c - files are written completely or not at all: whichever
 * system call fails, the old file stays and no partial file is left; inputs are
 * never modified; and what cannot be written is refused before anything is
 * changed.
 *
 * Faults are injected into calls of the C library (faults.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "faults.h"
#include "io_golden.h"
#include "refused.h"
#include "scratch.h"

/* ---- destinations -------------------------------------------------------- */

static lb_ctx *cx;
static char dir[SCRATCH_MAX];

static scratch_path in_dir(const char *name)
{
    return scratch_in(dir, name, "");
}

/* ---- faults -------------------------------------------------------------- */

static bool copy(const char *from, const char *to, bool sync)
{
    lb_reader *r = lb_reader_open(cx, from, NULL);
    const lb_write_options options = {.no_sync = !sync};
    const bool ok = r && io_copy(cx, r, r->kind, to, 16, &options);
    lb_reader_close(r);
    return ok;
}

/* Fails each call in turn, until no call is left. */
static long faults(const char *from, const char *call, int error,
                   const char *say)
{
    const scratch_path to = in_dir("out"), partial = in_dir("out.partial");
    long k = 0;
    for (bool failed = true; failed && k < 1000; k++) {
        CHECK(scratch_put(to.s, "old"));
        fault = (fault_plan){.call = call, .at = k + 1, .error = error};
        const bool ok = copy(from, to.s, true);
        failed = fault.done != 0;
        fault.at = 0;
        /* interrupted calls are repeated, and only the first sync (of the file
         * itself) must succeed: that of the folder may fail */
        const bool goes_on =
            error == EINTR || (strcmp(call, "fsync") == 0 && k > 0);
        if (!failed || goes_on) {
            CHECK(ok);
            CHECK(!scratch_has(to.s, "old"));
        } else {
            REFUSED(ok, LB_E_FILE, say);
            CHECK(scratch_has(to.s, "old"));
        }
        CHECK(!scratch_exists(partial.s));
        CHECK_EQ_S(lb_error(cx), "");
    }
    return k;
}

static void test_faults(void)
{
    static const char *const file[] = {
        IO_GOLDEN "types.safetensors", IO_GOLDEN "types.gguf",
        IO_GOLDEN "float32.npy", IO_GOLDEN "stored.npz"};
    const int n = sizeof file / sizeof *file;
    for (int i = 0; i < n; i++) {
        CHECK(faults(file[i], "write", ENOSPC, "No space left on device") > 2);
        CHECK(faults(file[i], "write", EIO, "out.partial: cannot write ") > 2);
        CHECK(faults(file[i], "fsync", EIO, "cannot sync: Input/output") > 1);
        CHECK(faults(file[i], "rename", EACCES, "cannot rename: Perm") > 1);
    }
    CHECK(faults(file[3], "pwrite", EIO, ": Input/output") > 2);
    CHECK(faults(file[3], "write", EINTR, "") > 2);
    CHECK(faults(file[3], "pwrite", EINTR, "") > 2);
    /* short writes are continued */
    const scratch_path to = in_dir("out");
    for (int i = 0; i < n; i++) {
        size_t a = 0, b = 0;
        fault = (fault_plan){.at = FAULT_ALWAYS, .how = FAULT_SHORT};
        CHECK(copy(file[i], to.s, false));
        fault.at = 0;
        uint8_t *x = io_slurp(file[i], &a), *y = io_slurp(to.s, &b);
        CHECK(x && y && a == b && memcmp(x, y, a) == 0);
        free(x);
        free(y);
    }
    unlink(to.s);
}

/* ---- inputs and invalid destinations ------------------------------------- */

static void test_inputs(void)
{
    const scratch_path in = in_dir("in"), hard = in_dir("hard"),
                       soft = in_dir("soft");
    const scratch_path other = in_dir("other"), shadow = in_dir("x.partial");
    CHECK(scratch_put(in.s, "input"));
    CHECK_EQ_I(link(in.s, hard.s), 0);
    CHECK_EQ_I(symlink(in.s, soft.s), 0);
    CHECK_EQ_I(link(in.s, shadow.s), 0);
    lb_infile *f = lb_infile_open(cx, in.s, false);
    const char *const same[] = {in.s, hard.s, soft.s};
    CHECK(f != NULL);
    for (int i = 0; i < 3; i++)
        REFUSED(lb_outfile_open(cx, same[i], &f, 1, 0), LB_E_ARG,
                "is also the input");
    const scratch_path pipe = in_dir("pipe");
    CHECK_EQ_I(mkfifo(pipe.s, 0666), 0);
    REFUSED(lb_outfile_open(cx, pipe.s, &f, 1, 0), LB_E_FILE,
            "is not a regular file");
    REFUSED(lb_outfile_open(cx, "/dev/null", NULL, 0, 0), LB_E_FILE,
            "is not a regular file");
    CHECK_EQ_I(unlink(pipe.s), 0);
    REFUSED(lb_outfile_open(cx, in_dir("x").s, &f, 1, 0), LB_E_ARG,
            "x.partial is also the input");
    CHECK(scratch_has(in.s, "input"));
    lb_outfile *o = lb_outfile_open(cx, other.s, &f, 1, 0);
    CHECK(o != NULL);
    CHECK(!lb_outfile_close(cx, o, false, false));
    CHECK(!scratch_exists(other.s) &&
          !scratch_exists(in_dir("other.partial").s));
    lb_infile_unref(f);
    unlink(in.s), unlink(hard.s), unlink(soft.s), unlink(shadow.s);
}

static void test_places(void)
{
    REFUSED(lb_outfile_open(cx, dir, NULL, 0, 0), LB_E_FILE, "is a directory");
    REFUSED(lb_outfile_open(cx, in_dir("no/where").s, NULL, 0, 0), LB_E_FILE,
            "cannot open: No such file");
    REFUSED(lb_outfile_open(cx, in_dir("big").s, NULL, 0, (uint64_t)1 << 60),
            LB_E_FILE,
            "needs 1152921504606846976 bytes, but the file system has");
    CHECK(!scratch_exists(in_dir("big").s) &&
          !scratch_exists(in_dir("big.partial").s));
    REFUSED(lb_infile_open(cx, in_dir("none").s, false), LB_E_FILE,
            "none: cannot open: No such file or directory");
    REFUSED(lb_infile_open(cx, dir, false), LB_E_FILE, "Is a directory");
    REFUSED(lb_infile_open(cx, "/dev/null", false), LB_E_FILE,
            "/dev/null: not a regular file");
    const scratch_path pipe = in_dir("pipe");
    CHECK_EQ_I(mkfifo(pipe.s, 0600), 0);
    REFUSED(lb_reader_open(cx, pipe.s, NULL), LB_E_FILE, "not a regular file");
    REFUSED(lb_reader_open(cx, dir, NULL), LB_E_CONTENT, "a directory without");
    unlink(pipe.s);
}

/* ---- one writer ---------------------------------------------------------- */

static int tried, taken;

static void try_lock(const char *at)
{
    const int fd = open(at, O_RDWR | O_CLOEXEC);
    tried++;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) taken++;
    if (fd >= 0) close(fd);
}

/* Another run finishes between our opening the file and locking it. */
static void gets_its_name(const char *at)
{
    fault.opened = NULL;
    CHECK_EQ_S(at, in_dir("out.partial").s);
    CHECK_EQ_I(rename(at, in_dir("out").s), 0);
}

static void test_one_writer(void)
{
    const scratch_path to = in_dir("out"), partial = in_dir("out.partial");
    const scratch_path other = in_dir("other");
    /* It stays locked until it is renamed, also if renaming fails. */
    for (int fails = 0; fails < 2; fails++) {
        lb_outfile *o = lb_outfile_open(cx, to.s, NULL, 0, 0);
        CHECK(o && lb_outfile_write(cx, o, "new", 3));
        REFUSED(lb_outfile_open(cx, to.s, NULL, 0, 0), LB_E_FILE,
                "out.partial: another process is writing it");
        tried = taken = 0;
        fault = (fault_plan){
            .call = "rename", .at = fails, .error = EIO, .renames = try_lock};
        CHECK_EQ_I(lb_outfile_close(cx, o, true, false), !fails);
        fault = (fault_plan){0};
        lb_clear(cx);
        CHECK(tried == 1 && taken == 0);
        CHECK(scratch_has(to.s, "new") && !scratch_exists(partial.s));
    }
    /* A file finished by another run meanwhile is not written to. */
    CHECK(scratch_put(partial.s, "finished"));
    fault.opened = gets_its_name;
    REFUSED(lb_outfile_open(cx, to.s, NULL, 0, 0), LB_E_FILE,
            "out.partial: another process is writing it");
    fault = (fault_plan){0};
    CHECK(scratch_has(to.s, "finished") && !scratch_exists(partial.s));
    /* Nor the target of a link. */
    CHECK(scratch_put(other.s, "other"));
    CHECK_EQ_I(symlink(other.s, partial.s), 0);
    REFUSED(lb_outfile_open(cx, to.s, NULL, 0, 0), LB_E_FILE,
            "out.partial: cannot open: ");
    CHECK(scratch_has(other.s, "other") && scratch_exists(partial.s));
    unlink(partial.s), unlink(other.s), unlink(to.s);
}

/* ---- files without a name ------------------------------------------------ */

/* Whether the file system supports them. */
static bool has_unnamed(void)
{
    const int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static lb_outfile *unnamed(const char *path)
{
    lb_outfile *o = lb_outfile_open_unnamed(cx, path, NULL, 0, 3, false);
    CHECK(o && lb_outfile_write(cx, o, "new", 3));
    return o;
}

/* fails: it is as if the file system did not. */
static void test_unnamed(bool fails)
{
    const scratch_path to = in_dir("out"), partial = in_dir("out.partial");
    for (int old = 0; old < 2; old++) {
        if (old) CHECK(scratch_put(to.s, "old"));
        fault = (fault_plan){.call = "open", .at = fails, .error = EOPNOTSUPP};
        lb_outfile *o = unnamed(to.s);
        fault = (fault_plan){0};
        CHECK_EQ_I(o->unnamed, !fails && has_unnamed());
        CHECK_EQ_I(scratch_exists(partial.s), !o->unnamed);
        CHECK_EQ_I(scratch_exists(to.s), old);
        CHECK(lb_outfile_close(cx, o, true, false));
        CHECK(scratch_has(to.s, "new") && !scratch_exists(partial.s));
        unlink(to.s);
    }
}

/* One that begins to write while another does: the last to end replaces it. A
 * partial file that appears meanwhile belongs to another process. */
static void test_two_unnamed(void)
{
    const scratch_path to = in_dir("out"), partial = in_dir("out.partial");
    lb_outfile *a = unnamed(to.s), *b = unnamed(to.s);
    CHECK(lb_outfile_write(cx, b, "er", 2));
    CHECK(lb_outfile_close(cx, a, true, false) && scratch_has(to.s, "new"));
    CHECK(lb_outfile_close(cx, b, true, false) && scratch_has(to.s, "newer"));
    a = unnamed(to.s);
    CHECK(scratch_put(partial.s, "another"));
    REFUSED(lb_outfile_close(cx, a, true, false), LB_E_FILE,
            "out.partial: another process is writing it");
    CHECK(scratch_has(to.s, "newer") && scratch_has(partial.s, "another"));
    unlink(to.s), unlink(partial.s);
}

/* ---- ranges of files ----------------------------------------------------- */

static void test_ranges(void)
{
    const scratch_path p = in_dir("ten");
    char room[16] = "";
    CHECK(scratch_put(p.s, "0123456789"));
    for (int no_map = 0; no_map < 2; no_map++) {
        lb_infile *f = lb_infile_open(cx, p.s, no_map);
        CHECK(f != NULL && f->size == 10);
        CHECK(lb_infile_has(f, 10, 0) && !lb_infile_has(f, 10, 1));
        CHECK(!lb_infile_has(f, 11, 0) && !lb_infile_has(f, 1, UINT64_MAX));
        CHECK(!lb_infile_has(f, UINT64_MAX, 1));
        CHECK_EQ_I(lb_infile_at(f, 0, 10) != NULL, !no_map);
        CHECK(!lb_infile_at(f, 1, 10));
        CHECK_EQ_I(f->bytes_read, no_map ? 0 : 10);
        CHECK(lb_infile_read(cx, f, 3, 4, room) && !memcmp(room, "3456", 4));
        CHECK_EQ_I(f->bytes_read, no_map ? 4 : 14);
        CHECK_EQ_I(lb_infile_pread(f, 7, 4, room), ENODATA);
        REFUSED(
            lb_infile_read(cx, f, 7, 4, room), LB_E_CONTENT,
            "truncated: cannot read 4 bytes at offset 7 of a file of 10 bytes");
        lb_infile_unref(lb_infile_ref(f));
        CHECK(lb_infile_read(cx, f, 9, 1, room) && room[0] == '9');
        lb_infile_unref(f);
    }
    unlink(p.s);
}

/* A file larger than the address space can be read. */
static void test_too_large_to_map(void)
{
    const int fd = memfd_create("large", 0);
    const uint64_t size = (uint64_t)1 << 60;
    char path_of[64], room[5] = "";
    snprintf(path_of, sizeof path_of, "/proc/self/fd/%d", fd);
    CHECK_EQ_I(ftruncate(fd, (off_t)size), 0);
    CHECK_EQ_I(pwrite(fd, "here", 4, (off_t)size - 4), 4);
    lb_infile *f = lb_infile_open(cx, path_of, false);
    CHECK(f && !f->map && f->size == size);
    CHECK(!lb_infile_at(f, size - 4, 4));
    CHECK(lb_infile_read(cx, f, size - 4, 4, room) && !strcmp(room, "here"));
    lb_infile_unref(f);
    close(fd);
}

static void test_quotes(void)
{
    char text[300];
    memset(text, 'x', sizeof text);
    CHECK_EQ_S(LB_NAME("a\x1b[31m\xc3\xa9"), "a\\x1b[31m\\xc3\\xa9");
    lb_quoted q = lb_quote(text, sizeof text, false);
    CHECK(strlen(q.s) == 103 && !strcmp(q.s + 100, "..."));
    q = lb_quote(text, sizeof text, true);
    CHECK(strlen(q.s) == 103 && !strncmp(q.s, "...", 3));
    memset(text, 1, sizeof text);
    q = lb_quote(text, sizeof text, false);
    CHECK(strlen(q.s) == 103 && !strcmp(q.s + 96, "\\x01..."));
    CHECK_EQ_S(lb_quote("", 0, true).s, "");
}

/* ---- unsupported content ------------------------------------------------- */

static bool open_writer(const char *kind, const lb_tensor *t, int64_t n,
                        const lb_meta *m, int64_t n_meta)
{
    const scratch_path to = in_dir("kind");
    lb_writer *w = lb_writer_open(cx, lb_container_named(kind), to.s, t, n, m,
                                  n_meta, NULL);
    lb_writer_close(cx, w, false);
    CHECK(!scratch_exists(to.s) && !scratch_exists(in_dir("kind.partial").s));
    return w != NULL;
}

#define T(NAME, TYPE, RANK, ...)                                               \
    ((lb_tensor){.name = NAME,                                                 \
                 .type = TYPE,                                                 \
                 .rank = RANK,                                                 \
                 .dim = (const int64_t[]){__VA_ARGS__}})

static void test_kinds(void)
{
    static const char bytes[8] = "abcd";
    const uint8_t *v = (const uint8_t *)bytes;
    const lb_tensor a = T("a", "F32", 1, 2), bad = T("\xff", "F32", 1, 2);
    const lb_tensor two[] = {a, a};
    const lb_meta text = {"k", LB_META_STRING, 0, 1, v, 4};
    const lb_meta number = {"k", LB_META_U32, 0, 1, v, 4};
    const lb_meta odd = {"k", LB_META_U32, 0, 1, v, 3};
    const lb_meta align = {"general.alignment", LB_META_U32, 0, 1, v, 4};
    const lb_meta both[] = {text, text};
    CHECK(open_writer("safetensors", &a, 1, &text, 1));
    REFUSED(open_writer("safetensors", two, 2, NULL, 0), LB_E_ARG,
            "duplicate tensor 'a'");
    REFUSED(open_writer("safetensors", &a, 1, both, 2), LB_E_ARG,
            "duplicate metadata key 'k'");
    REFUSED(open_writer("safetensors", &a, 1, &number, 1), LB_E_UNSUPPORTED,
            "key 'k': metadata of safetensors must be UTF-8 text");
    REFUSED(open_writer("safetensors", &bad, 1, NULL, 0), LB_E_UNSUPPORTED,
            "tensor '\\xff': invalid name for safetensors");
    REFUSED(
        open_writer("safetensors", &T("__metadata__", "F32", 1, 2), 1, NULL, 0),
        LB_E_UNSUPPORTED, "not __metadata__)");
    REFUSED(open_writer("safetensors", &T("a", "Q8_0", 1, 32), 1, NULL, 0),
            LB_E_UNSUPPORTED, "safetensors files have no type 'Q8_0'");
    REFUSED(open_writer("safetensors", &T("a", "F4", 1, 3), 1, NULL, 0),
            LB_E_SHAPE, "not a whole number of bytes");
    REFUSED(open_writer("safetensors", &T("a", "F4", 1, -2), 1, NULL, 0),
            LB_E_SHAPE, "not a whole number of bytes");
    REFUSED(open_writer("safetensors_index", &a, 1, NULL, 0), LB_E_UNSUPPORTED,
            "writing safetensors_index files is not supported");
    lb_tensor turned = a;
    turned.fortran = true;
    REFUSED(open_writer("gguf", &turned, 1, NULL, 0), LB_E_UNSUPPORTED,
            "is in Fortran order, which gguf files do not support");
    CHECK(open_writer("gguf", &a, 1, &number, 1));
    REFUSED(open_writer("gguf", &a, 1, &odd, 1), LB_E_ARG,
            "invalid value of type 4 and 3 bytes");
    REFUSED(open_writer("gguf", &a, 1, &align, 1), LB_E_ARG,
            "general.alignment is not a power of two");
    REFUSED(open_writer("gguf", &T("a", "F32", 5, 1, 1, 1, 1, 1), 1, NULL, 0),
            LB_E_UNSUPPORTED, "rank 5; the maxima of GGUF are 63 and 4");
    REFUSED(open_writer("gguf", &T("a", "Q8_0", 2, 32, 3), 1, NULL, 0),
            LB_E_SHAPE,
            "rows of 3 elements, not a multiple of the block size of Q8_0, 32");
    REFUSED(open_writer("gguf", &T("a", "Q4_2", 1, 32), 1, NULL, 0),
            LB_E_UNSUPPORTED, "gguf files have no type 'Q4_2'");
    REFUSED(open_writer("npy", two, 2, NULL, 0), LB_E_UNSUPPORTED,
            "type 'F32'");
    const lb_tensor x = T("x", "<f4", 1, 2), y = T("y", "|u1", 0, 0);
    const lb_tensor xy[] = {x, y};
    CHECK(open_writer("npy", &x, 1, NULL, 0));
    REFUSED(open_writer("npy", xy, 2, NULL, 0), LB_E_UNSUPPORTED,
            "cannot write 2 arrays to an npy file (one array only); use npz");
    REFUSED(open_writer("npy", &x, 1, &text, 1), LB_E_UNSUPPORTED,
            "cannot write 1 metadata value to an npy file; use npz");
    REFUSED(open_writer("npz", xy, 2, &number, 1), LB_E_UNSUPPORTED,
            "key 'k': metadata of npz must be UTF-8 text");
    CHECK(open_writer("npz", xy, 2, &text, 1));
    CHECK(open_writer("npz", xy, 2, NULL, 0));
}

/* Content that no file can store, or no reader accepts. */
static void test_sizes(void)
{
    enum { HUGE_TEXT = 100000000 };
    const int64_t half = (int64_t)1 << 62;
    static const char *const kind[] = {"safetensors", "gguf", "npz"};
    static const char *const type[] = {"U8", "I8", "|u1"};
    for (int i = 0; i < 3; i++) {
        const lb_tensor two[] = {T("a", type[i], 1, half),
                                 T("b", type[i], 1, half)};
        REFUSED(open_writer(kind[i], two, 2, NULL, 0), LB_E_SIZE,
                "the file would exceed 9223372036854775807 bytes");
    }
    REFUSED(open_writer("npy", &T("a", "|u1", 1, INT64_MAX), 1, NULL, 0),
            LB_E_SIZE, "the file would exceed 9223372036854775807 bytes");
    int64_t ones[65];
    for (int i = 0; i < 65; i++)
        ones[i] = 1;
    const lb_tensor deep = {
        .name = "a", .type = "|u1", .rank = 65, .dim = ones};
    REFUSED(open_writer("npy", &deep, 1, NULL, 0), LB_E_UNSUPPORTED,
            "tensor 'a' has rank 65; the maximum of numpy is 64");
    char *text = malloc(HUGE_TEXT);
    CHECK(text != NULL);
    memset(text, 'x', HUGE_TEXT);
    lb_meta m = {"k", LB_META_STRING, 0, 1, (const uint8_t *)text, HUGE_TEXT};
    REFUSED(open_writer("safetensors", NULL, 0, &m, 1), LB_E_UNSUPPORTED,
            "would have 100000032 bytes; the maximum is 100000000");
    m.size -= 32;
    CHECK(open_writer("safetensors", NULL, 0, &m, 1));
    free(text);
}

/* Writes at offsets: out of range, and too few bytes. */
static void test_placed(void)
{
    const scratch_path to = in_dir("placed");
    const lb_tensor x = T("x", "U8", 1, 3);
    const lb_container *kind = lb_container_named("safetensors");
    const lb_write_options o = {.place = true, .no_sync = true};
    lb_writer *w = lb_writer_open(cx, kind, to.s, &x, 1, NULL, 0, &o);
    CHECK(w && lb_writer_place(cx, w, 0, 1, "ab", 2));
    REFUSED(lb_writer_place(cx, w, 0, 2, "cd", 2), LB_E_ARG,
            "2 bytes at offset 2 of tensor 'x', which has 3");
    CHECK(!lb_writer_close(cx, w, true));
    w = lb_writer_open(cx, kind, to.s, &x, 1, NULL, 0, &o);
    CHECK(w && lb_writer_place(cx, w, 0, 0, "ab", 2));
    REFUSED(lb_writer_close(cx, w, true), LB_E_ARG,
            "2 bytes of tensors written, but 3 expected");
    CHECK(!scratch_exists(to.s));
}

/* A rank that finds another job's file in place of its own. */
static void test_join(void)
{
    const scratch_path to = in_dir("join");
    uint8_t record[LB_RECORD] = {0};
    lb_journal a = {.job = 1, .n = 1, .record = record}, b = a;
    b.job = 2;
    lb_outfile *o = lb_outfile_open_sized(cx, to.s, NULL, 0, 8, &a, 7);
    CHECK(o != NULL);
    REFUSED(lb_outfile_join(cx, to.s, 8, &b, 7), LB_E_FILE,
            "join.partial: another rank is writing another file");
    lb_outfile *too = lb_outfile_join(cx, to.s, 8, &a, 7);
    CHECK(too != NULL);
    lb_outfile_close(cx, too, false, false);
    lb_outfile_close(cx, o, false, false);
    CHECK(!scratch_exists(to.s) && !scratch_exists(in_dir("join.partial").s));
}

/* Too many bytes, too few, and nothing more after an error. */
static void test_counts(void)
{
    const scratch_path to = in_dir("counts");
    const lb_tensor xy[] = {T("x", "U8", 1, 3), T("none", "U8", 1, 0),
                            T("y", "U8", 1, 1)};
    const lb_container *kind = lb_container_named("safetensors");
    lb_writer *w = lb_writer_open(cx, kind, to.s, xy, 3, NULL, 0, NULL);
    CHECK_EQ_I(lb_writer_next(w), 0);
    CHECK(lb_writer_put(cx, w, "ab", 2));
    REFUSED(lb_writer_put(cx, w, "cd", 2), LB_E_ARG,
            "2 bytes for tensor 'x', but only 1 are missing");
    CHECK_EQ_I(lb_writer_next(w), -1);
    CHECK(!lb_writer_put(cx, w, "c", 1));
    CHECK(!lb_writer_close(cx, w, true));
    CHECK(!scratch_exists(to.s));
    w = lb_writer_open(cx, kind, to.s, xy, 3, NULL, 0, NULL);
    CHECK(lb_writer_put(cx, w, "abc", 3));
    CHECK_EQ_I(lb_writer_next(w), 2);
    REFUSED(lb_writer_close(cx, w, true), LB_E_ARG, "'y' lacks 1 of 1 bytes");
    CHECK(!scratch_exists(to.s));
    w = lb_writer_open(cx, kind, to.s, xy, 3, NULL, 0, NULL);
    CHECK(lb_writer_put(cx, w, "abc", 3) && lb_writer_put(cx, w, "d", 1));
    CHECK_EQ_I(lb_writer_next(w), -1);
    REFUSED(lb_writer_put(cx, w, "e", 1), LB_E_ARG, "1 bytes for tensor");
    CHECK(!lb_writer_close(cx, w, true));
    CHECK(!scratch_exists(to.s));
}

int main(void)
{
    CHECK(scratch_dir(dir));
    cx = lb_open(&(lb_options){.threads = 1});
    const size_t before = lb_bytes_in_use(cx);
    test_faults();
    test_inputs();
    test_places();
    test_one_writer();
    test_unnamed(false);
    test_unnamed(true);
    if (has_unnamed()) test_two_unnamed();
    test_ranges();
    test_too_large_to_map();
    test_quotes();
    test_kinds();
    test_sizes();
    test_counts();
    test_placed();
    test_join();
    CHECK_EQ_I(lb_bytes_in_use(cx), before);
    lb_close(cx);
    CHECK_EQ_I(rmdir(dir), 0); /* and nothing is left in it */
    return check_report("writing files");
}
