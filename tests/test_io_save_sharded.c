/* test_io_save_sharded.c - saving sharded arrays: the bytes equal those that
 * lb_save writes for the whole arrays, for every format, layout and spec that
 * is supported; multi-file output has the same arrays. Unsupported arrays and
 * errors of one rank are reported by every rank, and the old file stays.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "io/arrays/saver.h"
#include "io_golden.h"
#include "lowbit_io.h"
#include "ranks.h"
#include "scratch.h"

enum { PATH = SCRATCH_MAX + 64 };

static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;
static char dir[SCRATCH_MAX];

static void say(bool ok, const char *what, const char *more, const char *why)
{
    pthread_mutex_lock(&checking);
    if (check_fails(ok)) fprintf(stderr, "%s: %s: %s\n", what, more, why);
    pthread_mutex_unlock(&checking);
}

/* ---- arrays -------------------------------------------------------------- */

typedef struct variant {
    lb_quant_config config; /* no format: dense */
    const char *layout;
    bool rows; /* slices of rows have bytes of their own */
} variant;

static const variant variants[] = {
    {{0}, "native", true},
    {{.format = "int8"}, "native", true},
    {{.format = "int8", .axes = {1, {0}}}, "native", true},
    {{.format = "int8", .compat = LB_COMPAT_BNB_CPU}, "bnb", true},
    {{.format = "int8"}, "eformer", true},
    {{.format = "nf4", .block_size = 32}, "native", true},
    {{.format = "nf4", .block_size = 32}, "eformer", true},
    {{.format = "nf4", .block_size = 32, .compat = LB_COMPAT_BNB_CPU},
     "bnb",
     true},
    {{.format = "ternary"}, "native", true},
    {{.format = "ternary"}, "eformer", false},
    {{.format = "ternary"}, "bitnet", false},
    {{.format = "ternary", .scale = LB_SCALE_ROW}, "native", true},
    {{.format = "binary", .scale = LB_SCALE_BLOCK, .block_size = 32},
     "native",
     true},
    {{.format = "dynamic8", .block_size = 32}, "native", true},
    {{.format = "q8_0"}, "gguf", true},
    {{.format = "q4_0"}, "native", true},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static const char *const specs[] = {
    "P()",     "P(x)", "P(None, x)", "P((x,y))",       "P(y, x)",
    "P(x, y)", "P(y)", "P(None, y)", "P(None, (y, x))"};
enum { SPECS = sizeof specs / sizeof *specs };

static lb_array *make(lb_ctx *cx, const variant *v, uint64_t seed)
{
    lb_array *x =
        lb_random_normal(cx, (lb_key){5, seed}, LB_BF16, LB_SHAPE(16, 256));
    return v->config.format ? lb_quantize(cx, x, &v->config) : x;
}

static lb_save_options options_of(const variant *v)
{
    const bool gguf = strcmp(v->layout, "gguf") == 0;
    return (lb_save_options){.layout = gguf ? NULL : v->layout,
                             .kind = gguf ? "gguf" : NULL,
                             .no_sync = true};
}

static bool cuts_rows(const char *spec)
{
    return strcmp(spec, "P()") != 0 && strncmp(spec, "P(None", 6) != 0;
}

/* One sharded, one replicated. */
static void check_one(lb_ctx *cx, lb_mesh *mesh, const variant *v,
                      const char *spec)
{
    char path[PATH], want[PATH], what[64];
    snprintf(path, sizeof path, "%s/got", dir);
    snprintf(want, sizeof want, "%s/want", dir);
    snprintf(what, sizeof what, "%s as %s",
             v->config.format ? v->config.format : "dense", v->layout);
    const lb_save_options o = options_of(v);
    const bool first = lb_mesh_rank(mesh) == 0;
    lb_enter(cx);
    lb_array *a = make(cx, v, 1), *b = make(cx, v, 2);
    lb_planned list[] = {{.name = "a.weight", .array = a},
                         {.name = "b.weight", .array = b}};
    if (first) say(lb_save(cx, want, list, 2, &o), what, spec, lb_error(cx));
    list[0].array = lb_shard(cx, mesh, a, spec);
    if (!list[0].array) {
        say(false, what, spec, lb_error(cx));
        lb_clear(cx);
    }
    const bool one = lb_mesh_size(mesh) == 1;
    const bool has = v->rows || one || !cuts_rows(spec);
    const bool ok = lb_save_sharded(cx, mesh, path, list, 2, &o);
    say(ok == has, what, spec, lb_error(cx));
    if (!has)
        say(lb_error_status(cx) == LB_E_UNSUPPORTED &&
                strstr(lb_error(cx), "would mix bytes of several slices"),
            what, spec, lb_error(cx));
    if (ok && first) say(io_same_bytes(path, want), what, spec, "bytes");
    lb_clear(cx);
    lb_leave(cx);
    say(lb_mesh_agree(mesh), what, spec,
        "agree"); /* before it is overwritten */
    if (first) unlink(path);
}

/* ---- quantized, saved and loaded on other meshes ------------------------- */

/* To a multi-file directory, twice, so that one is replaced. */
static void check_shards(lb_ctx *cx, lb_mesh *mesh)
{
    char path[PATH], index[PATH + 40];
    snprintf(path, sizeof path, "%s/model", dir);
    snprintf(index, sizeof index, "%s/model.safetensors.index.json", path);
    lb_enter(cx);
    lb_planned list[6];
    char name[6][32];
    for (int i = 0; i < 6; i++) {
        snprintf(name[i], sizeof name[i], "l%d.weight", i);
        lb_array *w = make(cx, &variants[0], (uint64_t)i);
        w = lb_shard(cx, mesh, w, i % 2 ? "P(x)" : "P(None, x)");
        list[i] = (lb_planned){
            .name = name[i],
            .array = lb_quantize(
                cx, w, &(lb_quant_config){.format = "nf4", .block_size = 16})};
    }
    const lb_save_options o = {.no_sync = true, .max_shard = 5000};
    for (int turn = 0; turn < 2; turn++)
        say(lb_save_sharded(cx, mesh, path, list, 6, &o), "shards", path,
            lb_error(cx));
    say(scratch_exists(index), "shards", "index", "");
    lb_file *f = lb_file_open(cx, path, NULL);
    for (int i = 0; i < 6; i++) {
        lb_array *back =
            lb_file_load_sharded(cx, mesh, f, name[i], "P(None, x)", NULL);
        say(io_same_bits(cx, back, list[i].array), "shards", name[i],
            lb_error(cx));
    }
    lb_file_close(f);
    lb_clear(cx);
    lb_leave(cx);
    say(lb_mesh_agree(mesh), "shards", "agree", "");
    if (lb_mesh_rank(mesh)) return;
    char cmd[PATH + 16];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", path);
    say(system(cmd) == 0, "shards", path, "");
}

/* ---- errors -------------------------------------------------------------- */

/* A rank whose plan fails without a message. */
static bool no_load(void *user, int64_t i, lb_array **a, const lb_tensor **raw)
{
    (void)i;
    (void)a;
    (void)raw;
    return !*(const bool *)user;
}

static void check_unplanned(lb_ctx *cx, lb_mesh *mesh, const char *path,
                            const lb_planned *list)
{
    bool fails = lb_mesh_rank(mesh) == lb_mesh_size(mesh) - 1;
    const lb_saver_more more = {.load = no_load, .user = &fails, .mesh = mesh};
    lb_saver *s = lb_saver_begin(cx, path, list, 1, NULL, &more);
    say(!s && strstr(lb_error(cx), "could not plan the file"), "wrong",
        "a silent rank", lb_error(cx));
    lb_saver_close(cx, s, false);
    lb_clear(cx);
}

/* Arrays of another mesh of the same ranks. */
static void check_other_mesh(lb_ctx *cx, lb_mesh *mesh, lb_comm *comm,
                             const char *path)
{
    char axes[16];
    snprintf(axes, sizeof axes, "z=%d", comm->size);
    lb_mesh *other = lb_mesh_open(cx, comm, axes, NULL);
    say(other != NULL, "wrong", "two meshes", lb_error(cx));
    lb_enter(cx);
    const lb_planned list = {
        .name = "a",
        .array = lb_shard(cx, other, make(cx, &variants[0], 1), "P(z)")};
    say(!lb_save_sharded(cx, mesh, path, &list, 1, NULL) &&
            lb_error_status(cx) == LB_E_MESH &&
            strstr(lb_error(cx), "'a' is sharded over a different mesh"),
        "wrong", "another mesh", lb_error(cx));
    lb_clear(cx);
    lb_leave(cx);
    lb_mesh_close(other);
}

static void check_wrong(lb_ctx *cx, lb_mesh *mesh, lb_comm *comm)
{
    char path[PATH], partial[PATH + 8];
    const bool first = lb_mesh_rank(mesh) == 0;
    const bool last = lb_mesh_rank(mesh) == lb_mesh_size(mesh) - 1;
    snprintf(path, sizeof path, "%s/old", dir);
    snprintf(partial, sizeof partial, "%s.partial", path);
    if (first) {
        FILE *f = fopen(path, "w");
        fputs("old", f);
        fclose(f);
    }
    lb_enter(cx);
    lb_array *a = lb_shard(cx, mesh, make(cx, &variants[1], 1), "P(x)");
    const lb_planned list = {.name = "a", .array = a};
    const lb_planned other = {.name = "b", .array = a};
    const lb_planned none = {.name = "a"};
    const lb_save_options o = {.no_sync = true};
    say(lb_mesh_agree(mesh), "wrong", "agree", lb_error(cx));
    say(!lb_save_sharded(cx, mesh, path, last ? &none : &list, 1, &o) &&
            strstr(lb_error(cx), "save_sharded: 'a' has no array"),
        "wrong", "one rank lacks it", lb_error(cx));
    lb_clear(cx);
    if (lb_mesh_size(mesh) > 1) {
        say(!lb_save_sharded(cx, mesh, path, last ? &other : &list, 1, &o) &&
                strstr(lb_error(cx),
                       "plans a different file than the first one"),
            "wrong", "another plan", lb_error(cx));
        lb_clear(cx);
    }
    say(!lb_save_sharded(cx, mesh, "/nowhere/at/all", &list, 1, &o) &&
            strstr(lb_error(cx), "cannot open"),
        "wrong", "no such place", lb_error(cx));
    lb_clear(cx);
    say(!lb_save_sharded(cx, mesh, NULL, &list, 1, &o) &&
            strstr(lb_error(cx), "save: no path"),
        "wrong", "no path", lb_error(cx));
    lb_clear(cx);
    say(!lb_save_sharded(cx, mesh, path, last ? NULL : &list, 1, &o) &&
            strstr(lb_error(cx), "save_sharded: list is NULL or has a negative "
                                 "count (1 arrays)") &&
            (!last || lb_error_status(cx) == LB_E_NULL),
        "wrong", "no list", lb_error(cx));
    lb_clear(cx);
    const lb_save_options gguf = {
        .no_sync = true, .kind = "gguf", .max_shard = 5000};
    say(!lb_save_sharded(cx, mesh, path, &list, 1, &gguf) &&
            lb_error_status(cx) == LB_E_ARG &&
            strstr(lb_error(cx),
                   "max_shard (5000 bytes) requires safetensors, not gguf"),
        "wrong", "shards of gguf", lb_error(cx));
    lb_clear(cx);
    const lb_planned dense = {.name = "a", .array = make(cx, &variants[0], 1)};
    check_unplanned(cx, mesh, path, &dense);
    check_other_mesh(cx, mesh, comm, path);
    say(!lb_save(cx, path, &list, 1, &o) &&
            strstr(lb_error(cx), "'a' is sharded: use lb_save_sharded"),
        "wrong", "lb_save", lb_error(cx));
    lb_clear(cx);
    say(!lb_save_sharded(cx, NULL, path, &list, 1, &o), "wrong", "mesh", "");
    lb_clear(cx);
    lb_leave(cx);
    say(lb_mesh_agree(mesh), "wrong", "agree", lb_error(cx));
    if (!first) return;
    char text[8] = "";
    FILE *f = fopen(path, "r");
    say(f && fgets(text, sizeof text, f) && strcmp(text, "old") == 0, "wrong",
        "the old file", text);
    if (f) fclose(f);
    say(!scratch_exists(partial), "wrong", "partial", "");
    unlink(path);
}

static int ranks(lb_comm *comm, void *user)
{
    const char *axes = user;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, axes, NULL);
    for (int v = 0; v < VARIANTS; v++)
        for (int k = 0; k < SPECS; k++)
            if (strchr(axes, 'y') || !strchr(specs[k], 'y'))
                check_one(cx, mesh, &variants[v], specs[k]);
    check_shards(cx, mesh);
    check_wrong(cx, mesh, comm);
    say(lb_mesh_close(mesh), "close", axes, lb_error(cx));
    lb_close(cx);
    return 0;
}

static int tests(int argc, char **argv)
{
    static char *const mesh[] = {"x=1", "x=2", "x=2,y=2", "x=4", "x=2,y=4"};
    static const int size[] = {1, 2, 4, 4, 8};
    (void)argc;
    (void)argv;
    if (ranks_first()) CHECK(scratch_dir(dir));
    CHECK(ranks_share(dir, sizeof dir));
    for (int m = 0; m < 5; m++)
        if (ranks_are(size[m]))
            CHECK_EQ_I(ranks_on(size[m], ranks, mesh[m]), 0);
    if (ranks_first()) {
        char want[PATH];
        snprintf(want, sizeof want, "%s/want", dir);
        unlink(want);
        CHECK(rmdir(dir) == 0);
    }
    return check_report("io_save_sharded");
}

int main(int argc, char **argv)
{
    return ranks_main(argc, argv, tests);
}
