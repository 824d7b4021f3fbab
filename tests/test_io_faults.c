/* test_io_faults.c - a file system that fails at every call in turn.
 *
 * Law 9 for writing files: whichever call fails, there is an error with the
 * system's message, the old destination stays, no partial file is left, and the
 * next try works; or the failure was harmless and the file is correct. Short
 * reads and writes are continued. Data that was stored incorrectly is detected
 * when it is read back.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "faults.h"
#include "io_golden.h"
#include "lowbit_io.h"
#include "scratch.h"

static lb_ctx *cx;
static char root[SCRATCH_MAX];

static scratch_path in(const char *name, const char *rest)
{
    return scratch_in(root, name, rest);
}

/* ---- jobs ---------------------------------------------------------------- */

static const char values[] = "tests/golden/layouts/bnb4.values";

static bool to_file(const char *path, bool verify)
{
    const lb_quantize_options o = {.config = {.format = "nf4"},
                                   .verify = verify};
    return lb_quantize_file(cx, values, path, &o);
}

static bool to_gguf(const char *path, bool verify)
{
    const lb_quantize_options o = {
        .kind = "gguf", .config = {.format = "q8_0"}, .verify = verify};
    return lb_quantize_file(cx, "tests/golden/io/sharded", path, &o);
}

static bool to_npz(const char *path, bool verify)
{
    const lb_convert_options o = {
        .kind = "npz", .dtype = LB_F32, .verify = verify};
    return lb_convert_file(cx, values, path, &o);
}

static bool to_layout(const char *path, bool verify)
{
    const lb_convert_options o = {.keep = true, .verify = verify};
    return lb_convert_file(cx, "tests/golden/layouts/bnb4.safetensors", path,
                           &o);
}

static bool to_directory(const char *path, bool verify)
{
    const lb_quantize_options o = {
        .config = {.format = "int8"}, .directory = true, .verify = verify};
    return lb_quantize_file(cx, in("model", "").s, path, &o);
}

static bool to_saved(const char *path, bool verify)
{
    (void)verify;
    lb_array *w = lb_zeros(cx, LB_F32, LB_SHAPE(32, 64));
    const lb_planned list[] = {{.name = "up.weight", .array = w}};
    const bool ok = lb_save(cx, path, list, 1, NULL);
    lb_drop(cx, w);
    return ok;
}

static bool cut(const char *from, const char *path)
{
    lb_rules *rules = lb_rules_open(cx);
    const lb_shard_options o = {.mesh = "x=2", .rules = rules, .relaxed = true};
    const bool ok =
        lb_rules_add(cx, rules, ".*=P(x)") && lb_shard_file(cx, from, path, &o);
    lb_rules_close(rules);
    return ok;
}

static bool to_ranks(const char *path, bool verify)
{
    (void)verify;
    return cut("tests/golden/layouts/bnb4.safetensors", path);
}

static bool from_ranks(const char *path, bool verify)
{
    (void)verify;
    return lb_merge_file(cx, in("ranks", "").s, path, NULL);
}

static bool from_many(const char *path, bool verify)
{
    (void)verify;
    return lb_merge_file(cx, in("ranks of shards", "").s, path, NULL);
}

static const struct job {
    const char *name;
    bool (*run)(const char *path, bool verify);
    const char *inside; /* a directory that contained this */
    bool sums;          /* the output is read back */
} jobs[] = {
    {"file", to_file, NULL, true},
    {"gguf", to_gguf, NULL, true},
    {"npz", to_npz, NULL, false},
    {"layout", to_layout, NULL, true},
    {"saved", to_saved, NULL, false},
    {"directory", to_directory, "config.json", true},
    {"shard", to_ranks, "model.safetensors", false},
    {"merge", from_ranks, NULL, false},
    {"merge shards", from_many, "model.safetensors", false},
    {"merge to directory", from_ranks, "model.safetensors", false},
    {"merge shards to file", from_many, NULL, false},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

/* The name decides whether merge writes a file or a directory. */
static scratch_path at(const struct job *j, const char *name, const char *more)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s%s", name, j->inside ? "" : ".safetensors",
             more);
    return in(full, "");
}

/* ---- existing files ------------------------------------------------------ */

/* The number of files of directory a, which b must also have; -1: one differs.
 */
static int files_of(const char *a, const char *b)
{
    int n = 0;
    DIR *d = opendir(a);
    for (const struct dirent *e; d && n >= 0 && (e = readdir(d));) {
        char x[1024], y[1024];
        if (e->d_name[0] == '.') continue;
        snprintf(x, sizeof x, "%s/%s", a, e->d_name);
        snprintf(y, sizeof y, "%s/%s", b, e->d_name);
        n = io_same_bytes(x, y) ? n + 1 : -1;
    }
    if (d) closedir(d);
    return d ? n : -1;
}

static bool same(const struct job *j, const char *a, const char *b)
{
    if (!j->inside) return io_same_bytes(a, b);
    const int n = files_of(a, b);
    return n > 0 && files_of(b, a) == n;
}

/* Creates the files that will be replaced, at old and at out. */
static void put_old(const struct job *j, const char *path)
{
    char inside[1024];
    scratch_remove(path);
    if (!j->inside) {
        CHECK(scratch_put(path, "old"));
        return;
    }
    CHECK(mkdir(path, 0777) == 0);
    snprintf(inside, sizeof inside, "%s/%s", path, j->inside);
    CHECK(scratch_put(inside, "old"));
}

/* ---- the law ------------------------------------------------------------- */

static void say(bool ok, const struct job *j, const fault_plan *was,
                const char *what)
{
    if (check_fails(ok))
        fprintf(stderr, "faults: %s, %s %ld, how %d, errno %d: %s: %s\n",
                j->name, was->call ? was->call : "call", was->at, (int)was->how,
                was->error, what, lb_error(cx));
}

static void law_of_failure(const struct job *j, const fault_plan *was)
{
    say(lb_error_status(cx) == LB_E_FILE, j, was, "status");
    if (was->how == FAULT_FAILS)
        say(strstr(lb_error(cx), strerror(was->error)) != NULL, j, was,
            "the system's word");
    say(same(j, at(j, "out", "").s, at(j, "old", "").s), j, was, "the old one");
    say(access(at(j, "out", ".partial").s, F_OK) != 0, j, was, "a partial one");
    lb_clear(cx);
    say(j->run(at(j, "out", "").s, false), j, was, "next try");
    say(same(j, at(j, "out", "").s, at(j, "right", "").s), j, was,
        "next bytes");
}

/* Fails one call after the other until the job makes no more. Counts the calls
 * that led to an error, if not NULL. */
static long each_call(const struct job *j, fault_plan plan, long *errors)
{
    bool done = true;
    const bool verify = plan.how == FAULT_FLIP;
    for (plan.at = 1; done && plan.at < 10000; plan.at++) {
        put_old(j, at(j, "out", "").s);
        fault = plan;
        const bool ok = j->run(at(j, "out", "").s, verify);
        const fault_plan was = fault;
        fault.at = 0;
        done = was.done != 0;
        if (!done) break;
        if (errors) *errors += !ok;
        if (ok)
            say(same(j, at(j, "out", "").s, at(j, "right", "").s), j, &was,
                "another file, and no error");
        else
            law_of_failure(j, &was);
        lb_clear(cx);
    }
    return plan.at - 1;
}

static long test_job(const struct job *j)
{
    static const int error[] = {ENOSPC, EIO, EDQUOT};
    static const char *const moves[] = {"pwrite", "write", "pread"};
    long n = 0, errors = 0;
    put_old(j, at(j, "old", "").s);
    scratch_remove(at(j, "right", "").s);
    CHECK(j->run(at(j, "right", "").s, true));
    for (int i = 0; i < 3; i++)
        n += each_call(j, (fault_plan){.error = error[i]}, &errors);
    CHECK(errors > n / 2);
    for (int i = 0; i < 3; i++) {
        errors = 0;
        n += each_call(j, (fault_plan){.call = moves[i], .how = FAULT_SHORT},
                       &errors);
        n += each_call(j, (fault_plan){.call = moves[i], .error = EINTR},
                       &errors);
        CHECK_EQ_I(errors, 0);
    }
    errors = 0;
    if (j->sums)
        n += each_call(j, (fault_plan){.call = "pwrite", .how = FAULT_FLIP},
                       &errors);
    CHECK(!j->sums || errors > 0);
    return n;
}

/* A model of one file and two other files. */
static void make_model(void)
{
    lb_array *w =
        lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(32, 64));
    const lb_planned list[] = {{.name = "layers.0.up.weight", .array = w}};
    CHECK(mkdir(in("model", "").s, 0777) == 0);
    CHECK(lb_save(cx, in("model", "/model.safetensors").s, list, 1, NULL));
    CHECK(
        scratch_put(in("model", "/config.json").s, "{\"dtype\": \"float32\"}"));
    CHECK(scratch_put(in("model", "/tokenizer.json").s, "{}"));
}

/* An array that is read in place several times: an error of any of those reads
 * is an error of the job. */
static void test_paged(void)
{
    enum { STEP = 41 }; /* some of them */
    const lb_quantize_options o = {
        .config = {.format = "ternary", .scale = LB_SCALE_TENSOR},
        .max_memory = 1000000,
        .no_sync = true};
    lb_array *w =
        lb_random_normal(cx, (lb_key){1, 3}, LB_F32, LB_SHAPE(600, 640));
    const lb_planned list[] = {{.name = "up.weight", .array = w}};
    CHECK(lb_save(cx, in("old", "").s, list, 1, NULL));
    long failed = 0;
    for (long at = 1; at < 10000; at += STEP) {
        fault = (fault_plan){.call = "pread", .at = at, .error = EIO};
        const bool ok =
            lb_quantize_file(cx, in("old", "").s, in("out", "").s, &o);
        const bool done = fault.done != 0;
        fault.at = 0;
        if (!done) break;
        failed++;
        CHECK(!ok && lb_error_status(cx) == LB_E_FILE);
        CHECK(strstr(lb_error(cx), strerror(EIO)) != NULL);
        CHECK(access(in("out", "").s, F_OK) != 0);
        CHECK(access(in("out", ".partial").s, F_OK) != 0);
        lb_clear(cx);
    }
    CHECK(failed > 3);
}

int main(void)
{
    long n = 0;
    cx = lb_open(&(lb_options){.threads = 1});
    CHECK(cx && scratch_dir(root));
    make_model();
    CHECK(to_ranks(in("ranks", "").s, false) &&
          cut("tests/golden/io/sharded", in("ranks of shards", "").s));
    for (int i = 0; i < JOBS; i++)
        n += test_job(&jobs[i]);
    CHECK(n > 300);
    scratch_remove(in("old", "").s);
    scratch_remove(in("out", "").s);
    test_paged();
    static const char *const made[] = {"model",
                                       "old",
                                       "out",
                                       "right",
                                       "ranks",
                                       "ranks of shards",
                                       "old.safetensors",
                                       "out.safetensors",
                                       "right.safetensors"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        scratch_remove(in(made[i], "").s);
    CHECK(rmdir(root) == 0);
    lb_close(cx);
    printf("%ld calls, each failed once\n", n);
    return check_report("law 9, failing file systems");
}
