/* test_io_killed.c - training that is killed repeatedly, and continued from its
 * checkpoint by a new process each time, ends with the same bytes as
 * uninterrupted training.
 *
 * The process sends SIGKILL to itself, so the moment does not depend on time:
 * at a random allocation (in a training step, while writing a file or while
 * reading it), and at every file system call of such a process, halfway through
 * its bytes if it writes some. The process records what it is doing in memory
 * shared with its parent. A kill at a call leaves no other file.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "faults.h"
#include "scratch.h"
#include "training.h"

enum { STEPS = 12 };

typedef enum doing { OPENING, LOADING, STEPPING, SAVING, DONE, DOINGS } doing;

typedef struct shared {
    doing now;
    long allocations; /* of the process */
} shared;

typedef struct trial {
    const char *path;
    const lb_optimizer_config *optimizer;
    const lb_quant_config *qat;
    int threads;
    int64_t steps; /* until it ends */
    long at;       /* index of the allocation that kills; 0: none */
    long call;     /* index of the file system call that kills */
    shared *seen;
} trial;

/* ---- the killed process -------------------------------------------------- */

static void *deadly_alloc(void *user, size_t size, size_t align)
{
    const trial *t = user;
    void *p = NULL;
    if (++t->seen->allocations == t->at) raise(SIGKILL);
    if (posix_memalign(&p, align < sizeof p ? sizeof p : align, size))
        return NULL;
    return p;
}

static void deadly_free(void *user, void *p, size_t size)
{
    (void)user, (void)size;
    free(p);
}

static bool go_on(const trial *t, lb_ctx *cx, lb_optimizer *o, lb_array **p)
{
    t->seen->now = LOADING;
    bool ok = access(t->path, R_OK) || training_load(cx, t->path, o, p);
    while (ok && lb_optimizer_steps(o) < t->steps) {
        t->seen->now = STEPPING;
        ok = training_step(cx, o, p, t->qat, TRAIN_BATCH);
        t->seen->now = SAVING;
        ok = ok && training_save(cx, t->path, o, p);
    }
    return ok;
}

/* The life of one process; its exit status. */
static int live(trial *t)
{
    const lb_allocator a = {deadly_alloc, deadly_free, t};
    lb_array *p[TRAIN_PARAMS];
    fault =
        (fault_plan){.at = t->call, .how = FAULT_KILLS, .process = getpid()};
    lb_ctx *cx = lb_open(&(lb_options){
        .threads = t->threads, .allocator = &a, .keep_bytes = -1});
    bool ok = cx && training_start(cx, p);
    lb_optimizer *o =
        ok ? lb_optimizer_open(cx, t->optimizer, p, TRAIN_PARAMS) : NULL;
    ok = o && go_on(t, cx, o, p);
    if (!ok) fprintf(stderr, "the process: %s\n", lb_error(cx));
    lb_optimizer_close(o);
    lb_close(cx);
    if (ok) t->seen->now = DONE;
    return !ok;
}

/* True if it was killed; otherwise it must have finished. */
static bool run(trial *t)
{
    int status = 0;
    t->seen->now = OPENING;
    t->seen->allocations = 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (!pid) _exit(live(t));
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    /* A process that it started, see io/util/name_file.h. */
    while (waitpid(-1, NULL, __WALL) > 0)
        continue;
    if (WIFSIGNALED(status)) {
        CHECK_EQ_I(WTERMSIG(status), SIGKILL);
        return true;
    }
    CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
    CHECK_EQ_I(t->seen->now, DONE);
    return false;
}

/* ---- files --------------------------------------------------------------- */

enum { FILE_MAX = 1 << 16 };

typedef struct bytes {
    size_t n;
    char at[FILE_MAX];
} bytes;

static void read_file(const char *path, bytes *to)
{
    FILE *f = fopen(path, "rb");
    to->n = f ? fread(to->at, 1, FILE_MAX, f) : 0;
    CHECK(f && to->n && to->n < FILE_MAX);
    if (f) fclose(f);
}

static void check_same(const char *path, const bytes *want)
{
    static bytes got;
    read_file(path, &got);
    CHECK(got.n == want->n && !memcmp(got.at, want->at, got.n));
}

/* What a killed save leaves next to the file. */
static const char *partial_of(const char *path)
{
    static char name[SCRATCH_MAX + 32];
    snprintf(name, sizeof name, "%s.partial", path);
    return name;
}

/* Whether the file system supports files without a name. */
static bool has_unnamed(const char *path)
{
    char dir[SCRATCH_MAX + 32];
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = 0;
    const int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static void clean(const char *path)
{
    unlink(path);
    unlink(partial_of(path));
}

/* ---- killing ------------------------------------------------------------- */

/* At random allocations, until a process finishes: `most` is enough for some
 * steps. killed: number of kills by activity. */
static void at_allocations(trial *t, const bytes *want, long most,
                           uint64_t draw, long *killed)
{
    enum { LIVES = 200 };
    bool again = true;
    clean(t->path);
    for (int life = 0; again; life++) {
        draw = draw * UINT64_C(6364136223846793005) + 1;
        t->at = life < LIVES ? 1 + (long)(draw >> 33) % most : 0;
        t->threads = 1 + life % 2;
        again = run(t);
        if (again) killed[t->seen->now]++;
    }
    t->at = 0;
    check_same(t->path, want);
    CHECK(access(partial_of(t->path), F_OK)); /* no other file is left */
}

static void write_file(const char *path, const bytes *from)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(from->at, 1, from->n, f) == from->n);
    if (f) fclose(f);
}

/* At each file system call, from the one that opens a checkpoint to the one
 * that renames the last: there is a complete checkpoint at any time, and the
 * next process continues from it. */
static void at_calls(trial *t, const bytes *before, const bytes *want,
                     long *killed)
{
    bool again = true;
    for (t->call = 1; again; t->call++) {
        clean(t->path);
        write_file(t->path, before);
        again = run(t);
        if (!again) break;
        killed[t->seen->now]++;
        CHECK(!has_unnamed(t->path) || access(partial_of(t->path), F_OK));
        const long call = t->call;
        t->call = 0;
        CHECK(!run(t));
        t->call = call;
        check_same(t->path, want);
        CHECK(access(partial_of(t->path), F_OK));
    }
    CHECK(t->call > 20);
    t->call = 0;
}

static void kill_all(trial *t, long *killed)
{
    enum { ROUNDS = 8 };
    static bytes before, whole;
    clean(t->path);
    t->steps = STEPS - 2;
    CHECK(!run(t));
    read_file(t->path, &before);
    clean(t->path);
    t->steps = STEPS;
    CHECK(!run(t));
    const long all = t->seen->allocations;
    read_file(t->path, &whole);
    for (uint64_t i = 0; i < ROUNDS; i++)
        at_allocations(t, &whole, all / 4, i, killed);
    at_calls(t, &before, &whole, killed);
}

int main(void)
{
    static const lb_quant_config in8 = {.format = "dynamic8"},
                                 nf4 = {.format = "nf4"},
                                 ternary = {.format = "ternary",
                                            .scale = LB_SCALE_ROW};
    static const lb_optimizer_config adamw = {.method = LB_ADAMW,
                                              .decay = 0.01,
                                              .clip_norm = 1,
                                              .schedule = LB_COSINE,
                                              .warmup = 3,
                                              .steps = STEPS},
                                     adam = {.method = LB_ADAM, .state = &in8};
    char dir[SCRATCH_MAX], path[SCRATCH_MAX + 16];
    long killed[DOINGS] = {0};
    CHECK(scratch_dir(dir) && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    snprintf(path, sizeof path, "%s/kept", dir);
    shared *seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED) return 1;
    trial trials[] = {{.path = path, .optimizer = &adamw, .qat = &ternary},
                      {.path = path, .optimizer = &adam, .qat = &nf4}};
    for (int i = 0; i < 2; i++) {
        trials[i].seen = seen;
        trials[i].threads = 1;
        kill_all(&trials[i], killed);
    }
    printf(
        "killed %ld times while it opened, %ld while it read, %ld in a step, "
        "%ld while it wrote\n",
        killed[OPENING], killed[LOADING], killed[STEPPING], killed[SAVING]);
    CHECK(killed[LOADING] && killed[STEPPING] && killed[SAVING] > 10);
    clean(path);
    rmdir(dir);
    munmap(seen, sizeof *seen);
    return check_report("training that is killed");
}
