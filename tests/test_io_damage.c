/* test_io_damage.c - truncated or modified files cause an error and nothing
 * worse, whatever the damage.
 *
 * Every file of tests/golden/io is cut at every byte, mapped (with a guard page
 * at the end) and read with pread, and opened with bits and bytes changed by a
 * generator with a fixed seed. Files that still open are read to the end.
 * Allocations stay in proportion to the small files.
 */
/* ctest: long=--all */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "io_golden.h"

enum { MEMORY_MOST = 4 << 20 }; /* the cursor and npy's buffers are on stack */

static void say(bool ok, const char *what, const io_file *g, size_t at,
                const char *why)
{
    if (check_fails(ok))
        fprintf(stderr, "damage: %s: %s, %zu: %s\n", what, g->path, at, why);
}

/* A refusal has the right status and a message, and leaks nothing. */
static void expect_refusal(lb_ctx *cx, size_t before, const io_file *g,
                           size_t at)
{
    const lb_status status = lb_error_status(cx);
    say(status == LB_E_CONTENT || status == LB_E_FILE, "status", g, at,
        lb_error(cx));
    say(strlen(lb_error(cx)) > 10, "sentence", g, at, lb_error(cx));
    lb_clear(cx);
    say(lb_bytes_in_use(cx) == before, "memory", g, at, "bytes are left");
    say(lb_bytes_peak(cx) < MEMORY_MOST, "memory", g, at, "too much of it");
}

/* Reads all of it; the content may be anything. */
static void read_all(lb_ctx *cx, lb_reader *r)
{
    static uint8_t buffer[1 << 16];
    for (int64_t i = 0; i < r->n_tensors; i++) {
        const lb_tensor *t = &r->tensor[i];
        const uint64_t unit = t->swap ? (uint64_t)t->swap : 1;
        const uint64_t piece = sizeof buffer / unit * unit;
        bool ok = true;
        for (uint64_t at = 0; ok && at < t->size && at < 16 * piece;) {
            const uint64_t left = t->size - at;
            const size_t n = (size_t)(left < piece ? left : piece);
            ok = lb_reader_read(cx, r, t, at, n, buffer);
            at += n;
        }
        const uint8_t *p = lb_reader_at(r, t);
        if (p && t->size) buffer[0] = (uint8_t)(p[0] ^ p[t->size - 1]);
    }
    for (int64_t i = 0; i < r->n_meta; i++)
        if (r->meta[i].size) buffer[0] ^= r->meta[i].bytes[r->meta[i].size - 1];
}

/* ---- cut ----------------------------------------------------------------- */

/* The end of the last tensor of a GGUF file; n if there is none. */
static size_t end_of_tensors(lb_ctx *cx, const uint8_t *bytes, size_t n)
{
    size_t end = 0;
    lb_reader *r =
        lb_reader_open_file(cx, lb_infile_wrap(cx, "whole", bytes, n), NULL);
    for (int64_t i = 0; r && i < r->n_tensors; i++) {
        const size_t at = (size_t)(r->tensor[i].begin + r->tensor[i].size);
        if (at > end) end = at;
    }
    lb_reader_close(r);
    return end ? end : n;
}

/* JSON is valid without its final newline, and a GGUF file without the padding
 * after its last tensor, or after its header if it has no tensors (a u64 at
 * byte 8). */
static bool may_open(const io_file *g, const uint8_t *bytes, size_t n,
                     size_t end, size_t cut)
{
    static const uint8_t zeros[32];
    if (strcmp(g->kind, "safetensors_index") == 0)
        return cut + 1 == n && bytes[cut] == '\n';
    if (strcmp(g->kind, "gguf") == 0 && cut >= end) return true;
    return strcmp(g->kind, "gguf") == 0 && memcmp(bytes + 8, zeros, 8) == 0 &&
           n - cut < sizeof zeros && memcmp(bytes + cut, zeros, n - cut) == 0;
}

static void cut_everywhere(lb_ctx *cx, const io_file *g, const uint8_t *bytes,
                           size_t n)
{
    const int fd = memfd_create("cut", 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK_EQ_I(write(fd, bytes, n), n);
    const size_t end =
        strcmp(g->kind, "gguf") == 0 ? end_of_tensors(cx, bytes, n) : n;
    const size_t before = lb_bytes_in_use(cx);
    for (size_t cut = n; cut-- > 0;) {
        uint8_t *some = malloc(cut ? cut : 1); /* for the sanitizer to check */
        memcpy(some, bytes, cut);
        const bool may = may_open(g, bytes, n, end, cut);
        lb_reader *r = lb_reader_open_file(
            cx, lb_infile_wrap(cx, g->path, some, cut), NULL);
        say(may || !r, "opened", g, cut, "though it is cut");
        lb_reader_close(r);
        if (!r) expect_refusal(cx, before, g, cut);
        free(some);

        CHECK_EQ_I(ftruncate(fd, (off_t)cut), 0);
        r = lb_reader_open(cx, path, &(lb_read_options){.no_map = true});
        lb_clear(may ? cx : NULL); /* there are no shards next to it */
        say(may || !r, "opened", g, cut, "though it is cut");
        lb_reader_close(r);
        if (!r && !may) expect_refusal(cx, before, g, cut);
    }
    close(fd);
}

/* It is truncated between opening and reading. */
static void cut_later(lb_ctx *cx)
{
    const int fd = memfd_create("later", 0);
    char path[64];
    size_t n = 0;
    uint8_t *bytes = io_slurp(IO_GOLDEN "vector.npy", &n), room[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK_EQ_I(write(fd, bytes, n), n);
    lb_reader *r = lb_reader_open(cx, path, &(lb_read_options){.no_map = true});
    CHECK(r != NULL);
    CHECK_EQ_I(ftruncate(fd, (off_t)n - 1), 0);
    CHECK(r &&
          !lb_reader_read(cx, r, r->tensor, 0, (size_t)r->tensor->size, room));
    CHECK_EQ_I(lb_error_status(cx), LB_E_CONTENT);
    CHECK(strstr(lb_error(cx), "cannot read 40 bytes at offset 128") != NULL);
    lb_clear(cx);
    lb_reader_close(r);
    free(bytes);
    close(fd);
}

/* ---- changed ------------------------------------------------------------- */

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* A bit, a byte, a byte with a special value, or a run of bytes. */
static void damage(uint8_t *bytes, size_t n, uint32_t *state)
{
    static const uint8_t special[] = {0, 1, 0x7f, 0x80, 0xff, '"', '{', '9'};
    const int times = 1 + (int)(draw(state) % 3);
    for (int i = 0; i < times; i++) {
        const size_t at = draw(state) % n;
        const uint32_t v = draw(state);
        switch (draw(state) % 4) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << v % 8);
            break;
        case 1:
            bytes[at] = (uint8_t)v;
            break;
        case 2:
            bytes[at] = special[v % sizeof special];
            break;
        default:
            for (size_t k = at; k < n && k < at + 8; k++)
                bytes[k] = special[v % sizeof special];
        }
    }
}

static long change_often(lb_ctx *cx, const io_file *g, const uint8_t *bytes,
                         size_t n, int times)
{
    uint32_t state = (uint32_t)n;
    long opened = 0;
    const size_t before = lb_bytes_in_use(cx);
    uint8_t *some = malloc(n);
    for (int k = 0; k < times; k++) {
        memcpy(some, bytes, n);
        damage(some, n, &state);
        lb_reader *r =
            lb_reader_open_file(cx, lb_infile_wrap(cx, g->path, some, n), NULL);
        if (r) {
            opened++;
            read_all(cx, r);
            lb_clear(cx);
            lb_reader_close(r);
        } else
            expect_refusal(cx, before, g, (size_t)k);
    }
    free(some);
    return opened;
}

int main(int argc, char **argv)
{
    const int times = argc > 1 && strcmp(argv[1], "--all") == 0 ? 200000 : 3000;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1, .keep_bytes = -1});
    io_file g;
    long opened = 0, files = 0;
    for (int i = 0; io_file_at(i, &g); i++, files++) {
        size_t n = 0;
        uint8_t *bytes = io_slurp(g.path, &n);
        CHECK(bytes != NULL);
        if (!bytes) continue;
        cut_everywhere(cx, &g, bytes, n);
        opened += change_often(cx, &g, bytes, n, times);
        free(bytes);
    }
    cut_later(cx);
    lb_close(cx);
    printf("%ld files; %ld of %ld changed ones still open\n", files, opened,
           files * times);
    return check_report("damaged files");
}
