/* test_io_ranks.c - jobs shared by ranks: files and directories have the same
 * bytes as those of one rank. If one rank fails, all report its error and an
 * existing destination is unchanged. (test_cli_ranks.sh tests continuing a run
 * with another number of ranks.)
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "io_golden.h"
#include "lowbit_io.h"
#include "ranks.h"
#include "scratch.h"

enum { ARRAYS = 9, PATH = SCRATCH_MAX + 64 };

static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;
static lb_ctx *cx;
static char dir[SCRATCH_MAX];

static void say(bool ok, const char *what, const char *why)
{
    pthread_mutex_lock(&checking);
    if (check_fails(ok)) fprintf(stderr, "%s: %s\n", what, why);
    pthread_mutex_unlock(&checking);
}

static const char *in(char to[PATH], const char *name)
{
    snprintf(to, PATH, "%s/%s", dir, name);
    return to;
}

/* ---- quantized arrays ---------------------------------------------------- */

/* Weights of several sizes, vectors and an embedding; the bad model contains a
 * NaN. */
static void save_model(const char *path, int first, int last, bool bad)
{
    lb_planned list[ARRAYS] = {0};
    char name[ARRAYS][32];
    lb_enter(cx);
    for (int i = first; i < last; i++) {
        lb_planned *p = &list[i - first];
        snprintf(name[i], sizeof name[i],
                 i == 4 ? "embed_tokens.weight" : "layers.%d.weight", i);
        p->name = name[i];
        p->array = lb_random_normal(
            cx, (lb_key){11, (uint64_t)i}, i % 2 ? LB_BF16 : LB_F32,
            i == 2 ? LB_SHAPE(40) : LB_SHAPE(32 + 16 * i, 64));
        if (bad && i == 7)
            p->array = lb_log(cx, lb_neg(cx, lb_abs(cx, p->array)));
    }
    CHECK(lb_save(cx, path, list, last - first,
                  &(lb_save_options){.no_sync = true}));
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
}

static void save_dir(const char *path)
{
    char name[PATH + 64], index[2048] = "{\"weight_map\":{";
    CHECK(mkdir(path, 0777) == 0);
    for (int k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "%s/model-0000%d-of-00002.safetensors",
                 path, k + 1);
        save_model(name, k * 5, k ? ARRAYS : 5, false);
        for (int i = k * 5; i < (k ? ARRAYS : 5); i++) {
            char line[128];
            snprintf(line, sizeof line,
                     i == 4 ? "%s\"embed_tokens.weight\""
                            : "%s\"layers.%d.weight\"",
                     i ? "," : "", i);
            snprintf(line + strlen(line), sizeof line - strlen(line),
                     ":\"model-0000%d-of-00002.safetensors\"", k + 1);
            strcat(index, line);
        }
    }
    strcat(index, "}}");
    snprintf(name, sizeof name, "%s/model.safetensors.index.json", path);
    CHECK(scratch_put(name, index));
    snprintf(name, sizeof name, "%s/config.json", path);
    CHECK(scratch_put(name, "{\"model_type\": \"llama\"}"));
}

/* ---- jobs ---------------------------------------------------------------- */

typedef struct job {
    const char *from, *to;
    lb_quantize_options o;
    bool fails; /* and then with this message */
    const char *words;
    int told;
} job;

typedef struct account {
    int n, resumed;
    double error;
} account;

static void count(void *user, const lb_written *w)
{
    account *a = user;
    say(w->i == a->n, "order", w->entry->name);
    a->n++;
    a->resumed += w->resumed;
    a->error += w->error.dd;
}

static int run(lb_comm *comm, void *user)
{
    job *j = user;
    account a = {0};
    lb_quantize_options o = j->o;
    lb_ctx *mine = lb_open(&(lb_options){.threads = 1});
    o.comm = comm;
    o.no_sync = true;
    o.done = count;
    o.done_user = &a;
    o.max_memory = 4 << 20;
    const bool ok = lb_quantize_file(mine, j->from, j->to, &o);
    say(ok != j->fails, j->to ? j->to : "(dry)", lb_error(mine));
    if (j->fails)
        say(strstr(lb_error(mine), j->words) != NULL, j->words, lb_error(mine));
    else
        say(a.n == ARRAYS && (!o.measure || a.error > 0), "told", "");
    if (comm->rank == 0) j->told = a.resumed;
    lb_close(mine);
    return 0;
}

/* A barrier before and after, where one rank may write files. */
static void on(int n, job *j)
{
    char meet = 0;
    CHECK(ranks_share(&meet, 1));
    CHECK_EQ_I(ranks_on(n, run, j), 0);
    CHECK(ranks_share(&meet, 1));
}

static void same_dirs(const char *a, const char *b)
{
    static const char *const name[] = {
        "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
        "model.safetensors.index.json", "config.json"};
    for (int i = 0; i < 4; i++) {
        char x[PATH + 64], y[PATH + 64];
        snprintf(x, sizeof x, "%s/%s", a, name[i]);
        snprintf(y, sizeof y, "%s/%s", b, name[i]);
        CHECK(io_same_bytes(x, y));
    }
}

static void test_same(int n)
{
    static const char *const kind[] = {"safetensors", "gguf"};
    char from[PATH], to[PATH], want[PATH], partial[PATH + 8];
    in(from, "model.safetensors");
    in(to, "out");
    in(want, "want");
    snprintf(partial, sizeof partial, "%s.partial", to);
    if (ranks_first()) save_model(from, 0, ARRAYS, false);
    for (int k = 0; k < 4; k++) {
        lb_quantize_options o = {
            .kind = kind[k == 1],
            .layout = k == 2 ? "bnb" : NULL,
            .config = {.format = k == 1 ? "q8_0" : "nf4",
                       .double_quant = k == 2,
                       .compat = k == 2 ? LB_COMPAT_BNB_CPU : 0},
            .measure = k == 0,
            .verify = k == 3};
        if (ranks_first()) CHECK(lb_quantize_file(cx, from, want, &o));
        CHECK_EQ_S(lb_error(cx), "");
        job j = {.from = from, .to = to, .o = o};
        on(n, &j);
        if (!ranks_first()) continue;
        CHECK(io_same_bytes(want, to));
        CHECK(!scratch_exists(partial));
        unlink(to);
    }
    job dry = {
        .from = from,
        .o = {.config = {.format = "nf4"}, .dry_run = true, .measure = true}};
    on(n, &dry);
    job npz = {.from = from,
               .to = to,
               .fails = true,
               .words = "which several ranks cannot do",
               .o = {.kind = "npz", .config = {.format = "nf4"}}};
    if (ranks_first()) save_model(from, 0, 1, false);
    if (n > 1) on(n, &npz);
    if (!ranks_first()) return;
    unlink(from);
    unlink(want);
}

static void test_bad(int n)
{
    char from[PATH], to[PATH], partial[PATH + 8];
    in(from, "bad.safetensors");
    in(to, "old");
    snprintf(partial, sizeof partial, "%s.partial", to);
    if (ranks_first()) {
        save_model(from, 0, ARRAYS, true);
        CHECK(scratch_put(to, "old"));
    }
    job j = {.from = from,
             .to = to,
             .fails = true,
             .words = "'layers.7.weight'",
             .o = {.config = {.format = "int8"}}};
    on(n, &j);
    CHECK(!scratch_exists(partial));
    FILE *f = fopen(to, "r");
    char text[8] = "";
    CHECK(f && fgets(text, sizeof text, f) && strcmp(text, "old") == 0);
    if (f) fclose(f);
    j.from = "/nowhere/at/all";
    j.words = "/nowhere/at/all: cannot open";
    on(n, &j);
    if (!ranks_first()) return;
    unlink(from);
    unlink(to);
}

static void test_dir(int n)
{
    char from[PATH], to[PATH], want[PATH], cmd[4 * PATH];
    in(from, "model");
    in(to, "dir");
    in(want, "whole");
    if (ranks_first()) save_dir(from);
    job j = {.from = from,
             .to = to,
             .o = {.config = {.format = "nf4"}, .directory = true}};
    lb_quantize_options o = j.o;
    if (ranks_first()) CHECK(lb_quantize_file(cx, from, want, &o));
    CHECK_EQ_S(lb_error(cx), "");
    on(n, &j);
    if (ranks_first()) same_dirs(want, to);
    on(n, &j); /* replacing an existing one */
    if (!ranks_first()) return;
    same_dirs(want, to);
    snprintf(cmd, sizeof cmd, "rm -rf '%s' '%s' '%s'", from, to, want);
    CHECK(system(cmd) == 0);
}

/* ---- a broken connection ------------------------------------------------- */

typedef struct cut {
    char from[PATH], to[PATH], partial[PATH];
    long at; /* from this collective on */
    bool done;
} cut;

enum { ENDS = 2 };
static struct wire {
    bool (*gather)(lb_comm *, size_t, const void *, void *);
    long calls, cut_at;
} wire[ENDS]; /* of each rank */

static bool gather(lb_comm *c, size_t n, const void *mine, void *all)
{
    struct wire *w = &wire[c->rank];
    if (++w->calls < w->cut_at) return w->gather(c, n, mine, all);
    snprintf(c->why, sizeof c->why, "the wire is cut");
    return false;
}

/* For both ranks at once: they report why they end. The output is complete, or
 * a partial one for another run. */
static int run_cut(lb_comm *comm, void *user)
{
    cut *c = user;
    lb_ctx *mine = lb_open(&(lb_options){.threads = 1});
    const lb_quantize_options o = {.config = {.format = "nf4"},
                                   .comm = comm,
                                   .directory = true,
                                   .resume = true,
                                   .no_sync = true};
    struct wire *w = &wire[comm->rank];
    *w = (struct wire){.gather = comm->all_gather, .cut_at = c->at};
    comm->all_gather = gather;
    const bool ok = lb_quantize_file(mine, c->from, c->to, &o);
    const bool done = w->calls < c->at;
    say(ok == done, "cut", lb_error(mine));
    say(ok || strstr(lb_error(mine), "the wire is cut"), "cut", lb_error(mine));
    if (comm->rank == 0) c->done = done;
    comm->all_gather = w->gather;
    lb_close(mine);
    return 0;
}

static void test_cut(void)
{
    cut c = {0};
    in(c.from, "model");
    in(c.to, "cut");
    in(c.partial, "cut.partial");
    if (ranks_first()) save_dir(c.from);
    for (c.at = 1; !c.done && c.at < 1000; c.at++) {
        CHECK_EQ_I(ranks_on(ENDS, run_cut, &c), 0);
        CHECK(ranks_share(&c.done, sizeof c.done));
        if (!ranks_first()) continue;
        if (scratch_exists(c.to)) {
            lb_file *f = lb_file_open(cx, c.to, NULL);
            say(lb_file_count(f) == ARRAYS, "cut", "what is there");
            lb_file_close(f);
        } else
            say(!c.done, "cut", "nothing is there");
        scratch_remove(c.to);
        scratch_remove(c.partial);
    }
    say(c.at > 3, "cut", "nothing was");
    if (ranks_first()) scratch_remove(c.from);
}

static void test_ranks(int n)
{
    if (!ranks_are(n)) return;
    if (n == ENDS) test_cut();
    test_same(n);
    test_bad(n);
    test_dir(n);
}

static int tests(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    cx = lb_open(&(lb_options){.threads = 1});
    if (ranks_first()) CHECK(scratch_dir(dir));
    CHECK(ranks_share(dir, sizeof dir));
    test_ranks(1);
    test_ranks(2);
    test_ranks(4);
    if (ranks_first()) CHECK(rmdir(dir) == 0);
    lb_close(cx);
    return check_report("io_ranks");
}

int main(int argc, char **argv)
{
    return ranks_main(argc, argv, tests);
}
