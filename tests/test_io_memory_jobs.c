/* test_io_memory_jobs.c - law 9 for jobs: files and directories are quantized,
 * converted, compared and examined. Whichever allocation fails, there is an
 * error message, nothing is leaked, an existing destination is unchanged, and
 * the next try works.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "io_golden.h"
#include "lowbit_io.h"
#include "meter.h"
#include "scratch.h"

static meter m;
static char root[SCRATCH_MAX];

static scratch_path in(const char *name)
{
    return scratch_in(root, name, "");
}

/* ---- jobs ---------------------------------------------------------------- */

#define LAYOUTS "tests/golden/layouts/"

static bool quantize(lb_ctx *cx, const lb_quantize_options *o)
{
    return lb_quantize_file(cx, in("source").s, in("out").s, o);
}

static bool nested(lb_ctx *cx)
{
    const lb_quantize_options o = {.layout = "bnb",
                                   .config = {.format = "nf4",
                                              .compat = LB_COMPAT_BNB_CPU,
                                              .double_quant = true},
                                   .no_sync = true,
                                   .measure = true,
                                   .verify = true};
    return quantize(cx, &o);
}

/* Larger than the memory limit: in chunks ... */
static bool pieces(lb_ctx *cx)
{
    const lb_quantize_options o = {
        .config = {.format = "int8"}, .no_sync = true, .max_memory = 1000000};
    return quantize(cx, &o);
}

/* ... or read in place. */
static bool paged(lb_ctx *cx)
{
    const lb_quantize_options o = {
        .config = {.format = "ternary", .scale = LB_SCALE_TENSOR},
        .no_sync = true,
        .max_memory = 1000000};
    return quantize(cx, &o);
}

static bool gguf(lb_ctx *cx)
{
    const lb_quantize_options o = {
        .kind = "gguf", .config = {.format = "q8_0"}, .no_sync = true};
    return quantize(cx, &o);
}

static bool goal(lb_ctx *cx)
{
    static const lb_quant_config other[] = {
        {.format = "int8"}, {.format = "nf4", .block_size = 32}};
    const lb_quantize_options o = {.config = {.format = "nf4"},
                                   .other = other,
                                   .n_other = 2,
                                   .target_bits = 8,
                                   .no_sync = true};
    return quantize(cx, &o);
}

static bool select_some(lb_ctx *cx)
{
    lb_selection *s = lb_selection_open(cx);
    const lb_quantize_options o = {
        .config = {.format = "nf4"}, .selection = s, .no_sync = true};
    const bool ok = s && lb_selection_exclude(cx, s, "norm$") &&
                    lb_selection_include(cx, s, "^b") &&
                    lb_selection_override(cx, s, "a=int8:axis=0") &&
                    lb_selection_recipe(cx, s, in("recipe").s) &&
                    quantize(cx, &o);
    lb_selection_close(s);
    return ok;
}

static bool decode(lb_ctx *cx)
{
    const lb_convert_options o = {.no_sync = true, .measure = true};
    return lb_convert_file(cx, LAYOUTS "bnb4.safetensors", in("out").s, &o);
}

static bool keep(lb_ctx *cx)
{
    const lb_convert_options o = {
        .keep = true, .no_sync = true, .verify = true};
    return lb_convert_file(cx, LAYOUTS "bnb4.safetensors", in("out").s, &o);
}

static bool to_npz(lb_ctx *cx)
{
    const lb_convert_options o = {
        .kind = "npz", .dtype = LB_F32, .no_sync = true};
    return lb_convert_file(cx, LAYOUTS "bnb8.safetensors", in("out").s, &o);
}

static bool directory(lb_ctx *cx)
{
    const lb_quantize_options o = {
        .layout = "bnb",
        .config = {.format = "int8", .compat = LB_COMPAT_BNB_CPU},
        .directory = true,
        .no_sync = true};
    return lb_quantize_file(cx, in("model").s, in("dir").s, &o);
}

/* Files of two ranks; the mesh's axis splits the arrays that it can. */
static bool cut(lb_ctx *cx, const char *from, const char *to)
{
    lb_rules *r = lb_rules_open(cx);
    const lb_shard_options o = {
        .mesh = "x=2", .rules = r, .relaxed = true, .no_sync = true};
    const bool ok =
        r && lb_rules_add(cx, r, ".=P(x)") && lb_shard_file(cx, from, to, &o);
    lb_rules_close(r);
    return ok;
}

static bool shard(lb_ctx *cx)
{
    return cut(cx, LAYOUTS "bnb4.safetensors", in("dir").s);
}

static bool shard_described(lb_ctx *cx)
{
    return cut(cx, LAYOUTS "native.safetensors", in("dir").s);
}

static const lb_merge_options no_sync = {.no_sync = true};

static bool merge(lb_ctx *cx)
{
    return lb_merge_file(cx, in("ranks").s, in("out.safetensors").s, &no_sync);
}

static bool merge_joined(lb_ctx *cx)
{
    return lb_merge_file(cx, in("ranks_of_many").s, in("out.safetensors").s,
                         &no_sync);
}

static bool merge_directory(lb_ctx *cx)
{
    return lb_merge_file(cx, in("ranks_of_many").s, in("dir").s, &no_sync);
}

static bool look(lb_ctx *cx)
{
    lb_file *f = lb_file_open(cx, LAYOUTS "bnb4.safetensors", NULL);
    bool ok = f != NULL;
    for (int64_t i = 0; ok && i < lb_file_count(f); i++) {
        const char *name = lb_file_entry(f, i)->name;
        lb_findings found = {0};
        lb_difference d = {0};
        lb_enter(cx);
        lb_array *a = lb_file_load(cx, f, name);
        lb_array *b = lb_load(cx, LAYOUTS "bnb4.values", name);
        ok = a && b && lb_examine(cx, a, &found) && lb_compare(cx, a, b, &d);
        lb_leave(cx);
    }
    lb_file_close(f);
    return ok;
}

static const struct job {
    const char *name;
    bool (*run)(lb_ctx *cx);
    const char *to; /* NULL: nothing is written */
} jobs[] = {
    {"double quantization", nested, "out"},
    {"pieces", pieces, "out"},
    {"where it lies", paged, "out"},
    {"gguf", gguf, "out"},
    {"goal", goal, "out"},
    {"selection", select_some, "out"},
    {"decode", decode, "out"},
    {"as it is stored", keep, "out"},
    {"npz", to_npz, "out"},
    {"directory", directory, "dir"},
    {"shard", shard, "dir"},
    {"shard with descriptions", shard_described, "dir"},
    {"merge", merge, "out.safetensors"},
    {"merge to one file", merge_joined, "out.safetensors"},
    {"merge to a directory", merge_directory, "dir"},
    {"look", look, NULL},
};

/* ---- the law ------------------------------------------------------------- */

/* A file with one word, or a directory with such a file, which any job may
 * replace. */
static scratch_path old_file(const char *to)
{
    return in(strcmp(to, "dir") == 0 ? "dir/model.safetensors" : to);
}

static void put_old(const char *to)
{
    scratch_remove(in(to).s);
    if (strcmp(to, "dir") == 0) CHECK(mkdir(in(to).s, 0777) == 0);
    CHECK(scratch_put(old_file(to).s, "old"));
}

static void say(bool ok, const struct job *j, long k, const char *what,
                const char *why)
{
    if (check_fails(ok))
        fprintf(stderr, "memory: %s: allocation %ld fails: %s: %s\n", j->name,
                k, what, why);
}

static long failing(lb_ctx *cx, const struct job *j)
{
    const scratch_path partial =
        scratch_in(root, j->to ? j->to : "none", ".partial");
    long k = 0;
    for (bool failed = true; failed && ++k < 20000;) {
        if (j->to) put_old(j->to);
        const long before = m.blocks;
        m.failed = 0;
        m.fail_at = m.count + k;
        const bool ok = j->run(cx);
        m.fail_at = 0;
        failed = m.failed != 0;
        say(ok == !failed, j, k, "result", lb_error(cx));
        say(m.blocks == before, j, k, "leak", "blocks are left");
        if (failed) {
            say(lb_error_status(cx) == LB_E_NOMEM, j, k, "status",
                lb_error(cx));
            if (j->to)
                say(scratch_has(old_file(j->to).s, "old"), j, k, "destination",
                    "has changed");
        }
        say(access(partial.s, F_OK) != 0, j, k, "partial file", "is left");
        lb_clear(cx);
    }
    say(j->run(cx), j, k, "next try", lb_error(cx));
    lb_clear(cx);
    return k - 1;
}

/* A file, a model of it, and a recipe. */
static void make_sources(lb_ctx *cx)
{
    lb_enter(cx);
    lb_array *a =
        lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(600, 640));
    lb_array *b = lb_random_normal(cx, (lb_key){1, 3}, LB_F32, LB_SHAPE(4, 32));
    const lb_planned list[] = {
        {.name = "a.weight", .array = a},
        {.name = "b.weight", .array = b},
        {.name = "norm", .array = lb_full(cx, LB_F32, LB_SHAPE(9), 3)}};
    CHECK(lb_save(cx, in("source").s, list, 3, NULL));
    CHECK(mkdir(in("model").s, 0777) == 0);
    CHECK(lb_save(cx, in("model/model.safetensors").s, list, 3, NULL));
    CHECK(scratch_put(in("model/config.json").s, "{\"dtype\": \"float32\"}"));
    CHECK(scratch_put(in("recipe").s, "# a recipe\noverride norm=keep\n"));
    CHECK(cut(cx, LAYOUTS "bnb4.safetensors", in("ranks").s));
    CHECK(cut(cx, "tests/golden/io/sharded", in("ranks_of_many").s));
    lb_leave(cx);
}

int main(void)
{
    const lb_allocator a = {meter_alloc, meter_free, &m};
    CHECK(scratch_dir(root));
    lb_ctx *cx =
        lb_open(&(lb_options){.threads = 1, .allocator = &a, .keep_bytes = -1});
    CHECK(cx != NULL);
    make_sources(cx);
    long n = 0;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        const long k = failing(cx, &jobs[i]);
        printf("%s: %ld allocations\n", jobs[i].name, k);
        n += k;
    }
    CHECK(n > 1000);
    lb_close(cx);
    CHECK_EQ_I(m.blocks, 0);
    static const char *const made[] = {
        "source", "model", "recipe",        "out",
        "dir",    "ranks", "ranks_of_many", "out.safetensors"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        scratch_remove(in(made[i]).s);
    CHECK(rmdir(root) == 0);
    printf("%ld allocations of jobs, each failed once\n", n);
    return check_report("law 9, jobs");
}
