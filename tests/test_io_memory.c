/* test_io_memory.c - law 9 for files: whichever allocation fails, there is an
 * error message, nothing is leaked, the next try works, and an existing
 * destination is unchanged.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "io/containers/multi_file.h"
#include "io_golden.h"
#include "meter.h"
#include "scratch.h"

static meter m;
static char scratch[SCRATCH_MAX];
static char partial[SCRATCH_MAX + 16];

/* Lists a file and loads every array that is supported. */
static bool load_all(lb_ctx *cx, const char *path)
{
    lb_file *f = lb_file_open(cx, path, NULL);
    bool ok = f != NULL;
    for (int64_t i = 0; ok && i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        if (!e->format || e->rank > LB_MAX_RANK) continue;
        lb_enter(cx);
        ok = lb_file_load(cx, f, e->name) != NULL;
        if (ok && e->rank) ok = lb_file_load_rows(cx, f, e->name, 0, 0) != NULL;
        lb_leave(cx);
    }
    lb_file_close(f);
    return ok;
}

/* Saves the arrays of a file in the layout named by twin. */
static bool save_all(lb_ctx *cx, const io_file *g)
{
    lb_planned list[32] = {0};
    int64_t n = 0;
    lb_file *f = lb_file_open(cx, g->path, NULL);
    bool ok = f != NULL;
    lb_enter(cx);
    for (; ok && n < lb_file_count(f) && n < 32; n++) {
        list[n].name = lb_file_entry(f, n)->name;
        list[n].array = lb_file_load(cx, f, list[n].name);
        ok = list[n].array != NULL;
    }
    const lb_save_options options = {.layout = g->twin, .no_sync = true};
    ok = ok && lb_save(cx, scratch, list, n, &options);
    lb_leave(cx);
    lb_file_close(f);
    return ok;
}

static bool quantize(lb_ctx *cx, const io_file *g)
{
    const lb_quantize_options options = {.no_sync = true};
    return lb_quantize_file(cx, g->path, scratch, &options);
}

/* Opens, reads, loads and copies a file; or writes an index. */
static bool perform(lb_ctx *cx, const io_file *g)
{
    char why[8300] = "";
    if (!load_all(cx, g->path)) return false;
    if (!g->kind[0]) return g->twin[0] ? save_all(cx, g) : quantize(cx, g);
    lb_reader *r = lb_reader_open(cx, g->path, NULL);
    bool ok = r && io_file_same(cx, g, r, why, sizeof why);
    const lb_write_options options = {.no_sync = true};
    if (ok && g->twin[0])
        ok = io_copy(cx, r, r->kind, scratch, 1000, &options);
    else if (ok && r->n_files > 1) {
        const int64_t shard[8] = {0};
        ok = lb_shards_write_index(cx, scratch, r->tensor, shard, r->n_tensors,
                                   1, 5, &options);
    }
    lb_reader_close(r);
    return ok;
}

static void say(bool ok, const io_file *g, long k, const char *what,
                const char *why)
{
    if (check_fails(ok))
        fprintf(stderr, "memory: %s: allocation %ld fails: %s: %s\n", g->path,
                k, what, why);
}

static long failing(lb_ctx *cx, const io_file *g)
{
    long k = 0;
    for (bool failed = true; failed && ++k < 10000;) {
        CHECK(scratch_put(scratch, "old"));
        const long before = m.blocks;
        m.failed = 0;
        m.fail_at = m.count + k;
        const bool ok = perform(cx, g);
        m.fail_at = 0;
        failed = m.failed != 0;
        say(ok == !failed, g, k, "result", lb_error(cx));
        say(m.blocks == before, g, k, "leak", "blocks are left");
        if (failed) {
            say(lb_error_status(cx) == LB_E_NOMEM, g, k, "status",
                lb_error(cx));
            say(scratch_has(scratch, "old"), g, k, "destination",
                "has changed");
        }
        say(access(partial, F_OK) != 0, g, k, "partial file", "is left");
        lb_clear(cx);
        if (failed) say(perform(cx, g), g, k, "next try", lb_error(cx));
        lb_clear(cx);
    }
    return k - 1;
}

int main(void)
{
    const lb_allocator a = {meter_alloc, meter_free, &m};
    CHECK(scratch_file(scratch));
    snprintf(partial, sizeof partial, "%s.partial", scratch);
    lb_ctx *cx =
        lb_open(&(lb_options){.threads = 1, .allocator = &a, .keep_bytes = -1});
    CHECK(cx != NULL);
    io_file g;
    long n = 0;
    for (int i = 0; io_file_at(i, &g); i++)
        n += failing(cx, &g);
    CHECK(n > 600);
    static const char *const groups[][2] = {{"bnb4.safetensors", "bnb"},
                                            {"bnb8.safetensors", "bnb"},
                                            {"eformer.safetensors", "eformer"},
                                            {"native.safetensors", "native"},
                                            {"bitlinear", "bitnet"},
                                            {"bnb4.values", ""}};
    for (int i = 0; i < 6; i++) {
        g = (io_file){0};
        snprintf(g.path, sizeof g.path, "tests/golden/layouts/%s",
                 groups[i][0]);
        snprintf(g.twin, sizeof g.twin, "%s", groups[i][1]);
        n += failing(cx, &g);
    }
    CHECK(n > 1200);
    lb_close(cx);
    CHECK_EQ_I(m.blocks, 0);
    unlink(scratch);
    printf("%ld allocations of files, each failed once\n", n);
    return check_report("law 9, files");
}
