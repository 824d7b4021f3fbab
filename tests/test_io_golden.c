/* test_io_golden.c - files written by other programs: their contents, mapped
 * and read with pread; and that rewriting them gives the same bytes.
 *
 * `test_io_golden --copy KIND FROM TO` rewrites any file: tools/interop uses it
 * to let other programs read lowbit's output.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "io/containers/multi_file.h"
#include "io_golden.h"
#include "scratch.h"

static char scratch[SCRATCH_MAX];

static void say(bool ok, const char *what, const io_file *g, const char *why)
{
    if (check_fails(ok))
        fprintf(stderr, "golden: %s: %s: %s\n", what, g->path, why);
}

static void read_one(lb_ctx *cx, const io_file *g, bool no_map)
{
    char why[8300];
    const lb_read_options options = {.no_map = no_map};
    lb_reader *r = lb_reader_open(cx, g->path, &options);
    say(r != NULL, "open", g, lb_error(cx));
    if (!r) return;
    CHECK_EQ_S(r->kind->name, g->kind);
    say(io_file_same(cx, g, r, why, sizeof why), "content", g, why);
    CHECK_EQ_S(lb_error(cx), "");
    for (int64_t i = 0; i < r->n_tensors; i++) {
        const lb_tensor *t = &r->tensor[i];
        const bool could = !no_map && !t->packed && !t->swap;
        CHECK_EQ_I(lb_reader_at(r, t) != NULL, could);
    }
    CHECK(!lb_reader_find(r, "no such tensor"));
    CHECK(!lb_reader_meta(r, "no such key"));
    lb_reader_close(r);
}

static void copy_one(lb_ctx *cx, const io_file *g, size_t piece)
{
    if (!g->twin[0]) return;
    lb_reader *r = lb_reader_open(cx, g->path, NULL);
    const lb_write_options options = {.no_sync = true};
    if (!r) return;
    say(io_copy(cx, r, r->kind, scratch, piece, &options), "copy", g,
        lb_error(cx));
    say(io_same_bytes(scratch, g->twin), "copy", g, "other bytes");
    lb_reader_close(r);
}

/* ---- shards -------------------------------------------------------------- */

static int numbers(const char *text, uint64_t *to)
{
    int n = 0;
    for (char *end; *text; text = *end == ',' ? end + 1 : "")
        to[n++] = strtoull(text, &end, 10);
    return n;
}

static void test_shard_plans(void)
{
    char line[512], sizes[200], want[200];
    unsigned long long limit;
    int k = 0;
    for (; io_line("shards", k, line, sizeof line); k++) {
        uint64_t size[32], to[32];
        int64_t shard[32], shards = 0;
        CHECK_EQ_I(sscanf(line, "%llu %199s %199s", &limit, sizes, want), 3);
        const int n = numbers(sizes, size);
        CHECK_EQ_I(numbers(want, to), n);
        const int64_t got = lb_shards_plan(size, n, limit, shard);
        for (int i = 0; i < n; i++) {
            CHECK_EQ_I(shard[i], to[i]);
            if (shard[i] >= shards) shards = shard[i] + 1;
        }
        CHECK_EQ_I(got, shards);
    }
    CHECK(k >= 8);
    CHECK_EQ_I(lb_shards_plan(NULL, 0, 5, NULL), 0);
    CHECK_EQ_S(lb_shard_name(0, 12).s, "model-00001-of-00012.safetensors");
}

static void test_index(lb_ctx *cx)
{
    const char *path = IO_GOLDEN "sharded/model.safetensors.index.json";
    lb_reader *r = lb_reader_open(cx, IO_GOLDEN "sharded", NULL);
    CHECK(r != NULL);
    if (!r) return;
    CHECK_EQ_S(r->file[0]->path, path);
    CHECK_EQ_I(r->n_files, 3);
    int64_t shard[8];
    uint64_t total = 0;
    for (int64_t i = 0; i < r->n_tensors; i++) {
        shard[i] = r->tensor[i].file - 1;
        total += r->tensor[i].size;
    }
    const lb_write_options options = {.no_sync = true};
    CHECK(lb_shards_write_index(cx, scratch, r->tensor, shard, r->n_tensors, 2,
                                total, &options));
    CHECK(io_same_bytes(scratch, path));
    lb_reader_close(r);
}

/* ---- strings of values --------------------------------------------------- */

static void test_strings(lb_ctx *cx)
{
    static const char *const want[] = {"a", "", "xyz"};
    lb_reader *r = lb_reader_open(cx, IO_GOLDEN "values.gguf", NULL);
    CHECK(r != NULL);
    if (!r) return;
    const lb_meta *m = lb_reader_meta(r, "x.words");
    const char *text = NULL;
    uint64_t at = 0, n = 0;
    for (int i = 0; i < 3; i++) {
        CHECK(lb_meta_next(m, &at, &text, &n));
        CHECK(n == strlen(want[i]) && memcmp(text, want[i], n) == 0);
    }
    CHECK(!lb_meta_next(m, &at, &text, &n));
    lb_meta cut = *m;
    for (at = 0, cut.size--; lb_meta_next(&cut, &at, &text, &n);)
        CHECK(at <= cut.size);
    CHECK_EQ_I(at, 9 + 8);
    at = 0;
    CHECK(!lb_meta_next(lb_reader_meta(r, "x.ints"), &at, &text, &n));
    lb_reader_close(r);
}

/* ---- the files ----------------------------------------------------------- */

static int copy_files(const char *kind, const char *from, const char *to)
{
    lb_ctx *cx = lb_open(NULL);
    const lb_container *k = lb_container_named(kind);
    lb_reader *r = k ? lb_reader_open(cx, from, NULL) : NULL;
    const bool ok = r && io_copy(cx, r, k, to, 1 << 20, NULL);
    if (!ok) fprintf(stderr, "%s\n", k ? lb_error(cx) : "no such kind");
    lb_reader_close(r);
    lb_close(cx);
    return !ok;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--copy") == 0)
        return copy_files(argv[2], argv[3], argv[4]);
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    CHECK(scratch_file(scratch));
    io_file g;
    int n = 0;
    bool seen[16] = {false};
    for (; io_file_at(n, &g); n++) {
        read_one(cx, &g, false);
        read_one(cx, &g, true);
        copy_one(cx, &g, 1 << 16);
        copy_one(cx, &g, 8);
        for (int k = 0; lb_containers[k]; k++)
            seen[k] |= lb_containers[k] == lb_container_named(g.kind);
    }
    CHECK(n > 30);
    for (int k = 0; lb_containers[k]; k++) /* every listed file exists */
        CHECK(seen[k]);
    test_shard_plans();
    test_index(cx);
    test_strings(cx);
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
    unlink(scratch);
    lb_close(cx);
    return check_report("files of others");
}
