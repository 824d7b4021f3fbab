/* test_io_npz.c - npz archives unlike numpy's: members that are encrypted,
 * compressed with other methods, too large or not arrays; wrong checksums; and
 * random access within members.
 */
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "check.h"
#include "core/core.h"
#include "io_golden.h"
#include "scratch.h"

static lb_ctx *cx;

/* A copy of a golden archive, to be modified. */
typedef struct copy {
    uint8_t *at;
    size_t n;
} copy;

static copy load(const char *path)
{
    copy c = {NULL, 0};
    c.at = io_slurp(path, &c.n);
    CHECK(c.at != NULL);
    return c;
}

/* The k-th occurrence of a four-byte signature: PK 1 2 is a directory entry, PK
 * 3 4 a local header. */
static uint8_t *mark(const copy *c, const char *what, int k)
{
    for (size_t i = 0; i + 4 <= c->n; i++)
        if (memcmp(c->at + i, what, 4) == 0 && k-- == 0) return c->at + i;
    CHECK(false);
    return c->at;
}

static lb_reader *reopen(const copy *c)
{
    return lb_reader_open_file(cx, lb_infile_wrap(cx, "z", c->at, c->n), NULL);
}

static void refused(copy *c, const char *say)
{
    lb_reader *r = reopen(c);
    if (check_fails(!r && strstr(lb_error(cx), say)))
        fprintf(stderr, "npz: want \"%s\", got \"%s\"\n", say, lb_error(cx));
    CHECK(r || lb_error_status(cx) == LB_E_CONTENT);
    lb_clear(cx);
    lb_reader_close(r);
    free(c->at);
}

/* Offsets in a header (h) and in the directory entry (e): the same fields, two
 * bytes further in the entry. */
static copy changed(const char *path, int member, size_t field, uint32_t value,
                    size_t size)
{
    copy c = load(path);
    uint8_t *h = mark(&c, "PK\x03\x04", member),
            *e = mark(&c, "PK\x01\x02", member);
    memcpy(h + field, &value, size); /* little-endian here */
    memcpy(e + field + 2, &value, size);
    return c;
}

static void test_members(void)
{
    const char *stored = IO_GOLDEN "stored.npz",
               *deflated = IO_GOLDEN "deflated.npz";
    enum { FLAGS = 6, METHOD = 8 };
    copy c = changed(stored, 0, METHOD, 77, 2);
    refused(&c, "compressed with an unknown method (method 77)");
    c = changed(stored, 0, FLAGS, 1, 2);
    refused(&c, "'w.npy' is encrypted");
    c = changed(deflated, 0, METHOD, 0, 2);
    refused(&c, "'w.npy' cannot have 176 bytes when stored in ");
    /* other members are not listed; arrays are, whatever their name */
    c = load(stored);
    memcpy(mark(&c, "PK\x03\x04", 0) + 30, "w.txt", 5);
    memcpy(mark(&c, "PK\x01\x02", 0) + 46, "w.txt", 5);
    lb_reader *r = reopen(&c);
    CHECK(r && r->n_tensors == 5 && lb_reader_find(r, "w.txt"));
    lb_reader_close(r);
    mark(&c, "NUMP", 0)[0] ^= 1;
    r = reopen(&c);
    CHECK(r && r->n_tensors == 4 && !lb_reader_find(r, "w.txt"));
    lb_reader_close(r);
    free(c.at);
    c = load(stored);
    mark(&c, "NUMP", 0)[0] ^= 1;
    refused(&c, "w: not an npy file");
    /* duplicate names */
    c = load(stored);
    memcpy(mark(&c, "PK\x03\x04", 0) + 30, "b.npy", 5);
    memcpy(mark(&c, "PK\x01\x02", 0) + 46, "b.npy", 5);
    refused(&c, "duplicate tensor 'b'");
    /* an array larger than its member */
    c = load(stored);
    uint8_t *shape = mark(&c, "(3, ", 0);
    shape[1] = '4';
    refused(&c, "'w' is truncated: its array needs 64 bytes from byte 128");
}

/* What two programs could read differently is refused. value: xored into the
 * byte at an offset from a signature. */
static void test_contradictions(void)
{
    static const struct {
        const char *file, *mark;
        size_t at;
        uint8_t value;
        const char *say;
    } all[] = {
        {"stored", "PK\x05\x06", 10, 1, "several disks"},
        {"stored", "PK\x05\x06", 12, 1, "precede its end record"},
        {"stored", "PK\x05\x06", 16, 1, "precede its end record"},
        {"stored", "PK\x05\x06", 20, 1, "no end record"},
        {"stored", "PK\x01\x02", 0, 1, "no directory entry at offset"},
        {"stored", "PK\x01\x02", 24, 1, "contradict each other"},
        {"stored", "PK\x01\x02", 29, 0x80, "exceeds the"},
        {"stored", "PK\x01\x02", 34, 1, "invalid directory entry"},
        {"stored", "PK\x01\x02", 42, 1, "no local header at offset 1"},
        {"stored", "PK\x01\x02", 45, 1, "is outside the"},
        {"stored", "PK\x01\x02", 46, 0x77, "invalid member name"},
        {"stored", "PK\x03\x04", 14, 1, "contradict each other"},
        {"stored", "PK\x03\x04", 30, 1, "contradict each other"},
        {"stored", "PK\x03\x04", 41, 1, "contradict each other"},
        {"streamed", "PK\x03\x04", 14, 1, "contradict each other"},
        {"zip64", "PK\x06\x07", 4, 1, "invalid ZIP64 end locator"},
        {"zip64", "PK\x06\x07", 10, 1, "invalid ZIP64 end locator"},
        {"zip64", "PK\x06\x07", 8, 1, "invalid ZIP64 end record"},
        {"zip64", "PK\x06\x06", 4, 1, "invalid ZIP64 end record"},
        {"zip64", "PK\x06\x06", 32, 1, "several disks"},
        {"zip64", "PK\x06\x06", 48, 1, "contradict each other"},
        {"zip64", "PK\x01\x02", 53, 16, "a ZIP64 field is too short"},
        {"zip64", "PK\x01\x02", 54, 1, "an extra field of"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char path[64];
        snprintf(path, sizeof path, IO_GOLDEN "%s.npz", all[i].file);
        copy c = load(path);
        mark(&c, all[i].mark, 0)[all[i].at] ^= all[i].value;
        refused(&c, all[i].say);
    }
    copy c = load(IO_GOLDEN "stored.npz");
    c.n--;
    refused(&c, "no end record");
    /* narrow fields with all bits set refer to the wide ones */
    c = load(IO_GOLDEN "zip64.npz");
    memset(mark(&c, "PK\x05\x06", 0) + 8, 0xff, 12);
    lb_reader *r = reopen(&c);
    CHECK(r && r->n_tensors == 5);
    lb_reader_close(r);
    free(c.at);
}

/* Methods that zipfile and others use are named. */
static void test_methods(void)
{
    static const struct {
        uint32_t method;
        const char *name;
    } all[] = {{9, "Deflate64"}, {12, "bzip2"}, {14, "LZMA"},
               {95, "XZ"},       {93, "zstd"},  {98, "PPMd"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        copy c = changed(IO_GOLDEN "stored.npz", 0, 8, all[i].method, 2);
        char say[128];
        snprintf(say, sizeof say,
                 "'w.npy' is compressed with %s (method %u), which lowbit does "
                 "not support; save it again with numpy.savez",
                 all[i].name, all[i].method);
        refused(&c, say);
    }
}

/* A size that deflate cannot produce from so few bytes. */
static void test_bombs(void)
{
    enum { SIZE = 22 };
    copy c = load(IO_GOLDEN "deflated.npz");
    uint8_t *h = mark(&c, "PK\x03\x04", 0), *e = mark(&c, "PK\x01\x02", 0);
    const uint64_t large = 1u << 30;
    memcpy(e + SIZE + 2, &large, 4);
    memcpy(h + 30 + 5 + 4, &large, 8); /* after the name */
    refused(&c, "'w.npy' cannot have 1073741824 bytes when compressed to ");
}

/* A deflated member with one stored block that states fewer bytes than it has.
 */
static void test_long_member(void)
{
    static const char text[] =
        "\x93NUMPY\x01\x00\x3a\x00{'descr': '|u1', 'fortran_order': False, "
        "'shape': (2,), }\n\x01\x02\x03";
    enum { HAS = sizeof text - 1, SAID = HAS - 1, PACKED = HAS + 5 };
    uint8_t room[2];
    lb_bytes b = {.heap = cx->heap};
    for (int entry = 0; entry < 2; entry++) {
        lb_bytes_put(&b, entry ? "PK\x01\x02\x14\0" : "PK\x03\x04",
                     entry ? 6 : 4);
        lb_bytes_put(&b, "\x14\0\0\0\x08\0\0\0\x21\0\0\0\0\0", 14);
        lb_bytes_u32(&b, PACKED);
        lb_bytes_u32(&b, SAID);
        lb_bytes_u32(&b, 5); /* of its name; no other field */
        lb_bytes_fill(&b, 0, entry ? 14 : 0);
        lb_bytes_put(&b, "a.npy", 5);
        if (entry) continue;
        lb_bytes_put(&b, "\x01", 1); /* the last block */
        lb_bytes_u16(&b, HAS);
        lb_bytes_u16(&b, (uint16_t)~HAS);
        lb_bytes_put(&b, text, HAS);
    }
    lb_bytes_put(&b, "PK\x05\x06\0\0\0\0\x01\0\x01\0", 12);
    lb_bytes_u32(&b, 46 + 5);
    lb_bytes_u32(&b, 30 + 5 + PACKED);
    lb_bytes_fill(&b, 0, 2);
    const copy c = {b.at, b.n};
    lb_reader *r = reopen(&c);
    CHECK(r && r->n_tensors == 1 && r->tensor->size == 2);
    CHECK(r && lb_reader_read(cx, r, r->tensor, 0, 1, room));
    CHECK(r && !lb_reader_read(cx, r, r->tensor, 0, 2, room));
    CHECK(strstr(lb_error(cx), "'a' has more than its stated 70 bytes"));
    lb_clear(cx);
    lb_reader_close(r);
    lb_bytes_free(&b);
}

/* A stored member with much data after the array; the checksum covers all. */
static void put_tailed(lb_bytes *b, size_t tail, uint32_t wrong)
{
    static const char text[] =
        "\x93NUMPY\x01\x00\x3a\x00{'descr': '|u1', 'fortran_order': False, "
        "'shape': (2,), }\n\x01\x02";
    enum { HAS = sizeof text - 1 };
    lb_bytes data = {.heap = cx->heap};
    lb_bytes_put(&data, text, HAS);
    lb_bytes_fill(&data, 7, tail);
    const uint32_t sum = (uint32_t)crc32_z(0, data.at, data.n) ^ wrong;
    for (int entry = 0; entry < 2; entry++) {
        lb_bytes_put(b, entry ? "PK\x01\x02\x14\0" : "PK\x03\x04",
                     entry ? 6 : 4);
        lb_bytes_put(b, "\x14\0\0\0\0\0\0\0\x21\0", 10);
        lb_bytes_u32(b, sum);
        lb_bytes_u32(b, (uint32_t)data.n);
        lb_bytes_u32(b, (uint32_t)data.n);
        lb_bytes_u32(b, 5); /* of its name; no other field */
        lb_bytes_fill(b, 0, entry ? 14 : 0);
        lb_bytes_put(b, "a.npy", 5);
        if (!entry) lb_bytes_put(b, data.at, data.n);
    }
    lb_bytes_put(b, "PK\x05\x06\0\0\0\0\x01\0\x01\0", 12);
    lb_bytes_u32(b, 46 + 5);
    lb_bytes_u32(b, (uint32_t)(30 + 5 + data.n));
    lb_bytes_fill(b, 0, 2);
    lb_bytes_free(&data);
}

static void test_tails(void)
{
    static const size_t tail[] = {1, 16384, 16385, 100000};
    uint8_t room[2];
    for (int k = 0; k < 8; k++) {
        const bool wrong = k >= 4;
        lb_bytes b = {.heap = cx->heap};
        put_tailed(&b, tail[k % 4], wrong);
        const copy c = {b.at, b.n};
        lb_reader *r = reopen(&c);
        CHECK(r && r->n_tensors == 1 && r->tensor->size == 2);
        CHECK(r && lb_reader_read(cx, r, r->tensor, 0, 1, room));
        CHECK(r && lb_reader_read(cx, r, r->tensor, 1, 1, room) == !wrong);
        CHECK(!wrong || strstr(lb_error(cx), "CRC error"));
        lb_clear(cx);
        lb_reader_close(r);
        lb_bytes_free(&b);
    }
}

/* A changed byte is detected when the last one is read. */
static void test_sums(void)
{
    static uint8_t room[1024];
    const char *const path[] = {IO_GOLDEN "stored.npz",
                                IO_GOLDEN "deflated.npz"};
    copy c = load(path[0]);
    uint8_t *w = mark(&c, "PK\x03\x04", 0) + 30 + 5 + 20 + 128;
    w[7] ^= 1;
    lb_reader *r = reopen(&c);
    CHECK(r != NULL);
    const lb_tensor *t = lb_reader_find(r, "w");
    CHECK(lb_reader_read(cx, r, t, 0, 47, room));
    CHECK(!lb_reader_read(cx, r, t, 47, 1, room));
    CHECK(strstr(lb_error(cx), "CRC error") != NULL);
    CHECK_EQ_I(lb_error_status(cx), LB_E_CONTENT);
    lb_clear(cx);
    CHECK(lb_reader_read(cx, r, t, 0, 4, room)); /* and reading can continue */
    lb_reader_close(r);
    free(c.at);
    /* also if the array ends before the member does */
    c = load(path[0]);
    mark(&c, "(3, ", 0)[1] = '2';
    r = reopen(&c);
    CHECK(r != NULL);
    t = lb_reader_find(r, "w");
    CHECK(t && t->size == 32 && lb_reader_read(cx, r, t, 0, 31, room));
    CHECK(!lb_reader_read(cx, r, t, 0, 32, room));
    CHECK(strstr(lb_error(cx), "CRC error") != NULL);
    lb_clear(cx);
    lb_reader_close(r);
    free(c.at);
    /* random access, between members and inside of them */
    for (int k = 0; k < 2; k++) {
        r = lb_reader_open(cx, path[k], NULL);
        const lb_tensor *a = lb_reader_find(r, "w"),
                        *m = lb_reader_find(r, "mask");
        CHECK(a && m && a->packed);
        CHECK(lb_reader_read(cx, r, a, 0, 48, room));
        for (int i = 47; i >= 0; i--) {
            uint8_t one[2] = {0, 0};
            CHECK(lb_reader_read(cx, r, a, (uint64_t)i, 1, one));
            CHECK(lb_reader_read(cx, r, m, (uint64_t)i % 9, 1, one + 1));
            CHECK_EQ_I(one[0], room[i]);
        }
        CHECK(!lb_reader_read(cx, r, a, 40, 9, room));
        CHECK(strstr(lb_error(cx),
                     "has 48 bytes: cannot read 9 at offset 40") != NULL);
        lb_clear(cx);
        lb_reader_close(r);
    }
}

/* Far forward and back in a stored member, without reading in between. */
static void test_far(void)
{
    enum { N = 300000 };
    char path[SCRATCH_MAX];
    const lb_tensor t = {
        .name = "far", .type = "<u4", .rank = 1, .dim = (const int64_t[]){N}};
    uint32_t v[100];
    CHECK(scratch_file(path));
    lb_writer *w =
        lb_writer_open(cx, lb_container_named("npz"), path, &t, 1, NULL, 0,
                       &(lb_write_options){.no_sync = true});
    for (uint32_t i = 0; i < N; i += 100) {
        for (uint32_t k = 0; k < 100; k++)
            v[k] = i + k;
        CHECK(lb_writer_put(cx, w, v, sizeof v));
    }
    CHECK(lb_writer_close(cx, w, true));
    lb_reader *r = lb_reader_open(cx, path, NULL);
    CHECK(r != NULL);
    const uint32_t place[] = {0, 299900, 5, 150000, 150100, 160000, 1};
    const uint64_t before = r ? r->file[0]->bytes_read : 0;
    for (int i = 0; r && i < 7; i++) {
        CHECK(lb_reader_read(cx, r, r->tensor, 4 * (uint64_t)place[i], 400, v));
        CHECK_EQ_I(v[0], place[i]);
        CHECK_EQ_I(v[99], place[i] + 99);
    }
    if (r) CHECK(r->file[0]->bytes_read - before < 200000);
    lb_reader_close(r);
    unlink(path);
}

/* The length of a name has 16 bits; .npy takes four bytes. */
static void test_long_names(void)
{
    enum { LONGEST = 65531 };
    static char name[LONGEST + 2];
    static const uint8_t one = 7;
    const lb_container *npz = lb_container_named("npz");
    const lb_write_options o = {.no_sync = true};
    const lb_tensor t = {.name = name, .type = "|u1"};
    char path[SCRATCH_MAX];
    CHECK(scratch_file(path));
    memset(name, 'n', LONGEST);
    lb_writer *w = lb_writer_open(cx, npz, path, &t, 1, NULL, 0, &o);
    CHECK(lb_writer_put(cx, w, &one, 1));
    CHECK(lb_writer_close(cx, w, true));
    lb_reader *r = lb_reader_open(cx, path, NULL);
    CHECK(r && r->n_tensors == 1 && strcmp(r->tensor[0].name, name) == 0);
    lb_reader_close(r);
    unlink(path);
    name[LONGEST] = 'n';
    CHECK(!lb_writer_open(cx, npz, path, &t, 1, NULL, 0, &o));
    CHECK_EQ_I(lb_error_status(cx), LB_E_UNSUPPORTED);
    CHECK(strstr(lb_error(cx),
                 "this one of 65532 bytes is not, or exceeds 65531"));
    lb_clear(cx);
    memcpy(name, "\xff\xfe", 3);
    CHECK(!lb_writer_open(cx, npz, path, &t, 1, NULL, 0, &o));
    CHECK(strstr(lb_error(cx), "must be valid UTF-8, but this one of 2 bytes"));
    lb_clear(cx);
    CHECK(access(path, F_OK) != 0);
}

int main(void)
{
    cx = lb_open(&(lb_options){.threads = 1});
    const size_t before = lb_bytes_in_use(cx);
    test_members();
    test_contradictions();
    test_methods();
    test_bombs();
    test_long_member();
    test_tails();
    test_sums();
    test_far();
    test_long_names();
    CHECK_EQ_I(lb_bytes_in_use(cx), before);
    lb_close(cx);
    return check_report("archives");
}
