/* test_io_training.c - interrupted training that is continued from a file ends
 * with the same bytes as uninterrupted training, with optimizer states in f32
 * and in 8 bits, and weights behind a straight-through quantizer. Also: whole
 * steps, with saving and loading, in which each allocation fails in turn;
 * memory that grows linearly with the batch; ten thousand steps in constant
 * memory. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "check.h"
#include "scratch.h"
#include "training.h"

static bool step(lb_ctx *cx, lb_optimizer *o, lb_array **p,
                 const lb_quant_config *config)
{
    return training_step(cx, o, p, config, TRAIN_BATCH);
}

/* Without interruption; or interrupted after `cut` steps, and continued by
 * another context with another number of threads. */
static void run(const char *path, const lb_optimizer_config *c,
                const lb_quant_config *config, int cut, float *out)
{
    enum { STEPS = 24 };
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    lb_array *p[TRAIN_PARAMS];
    CHECK(training_start(cx, p));
    lb_optimizer *o = lb_optimizer_open(cx, c, p, TRAIN_PARAMS);
    for (int i = 0; i < STEPS; i++) {
        if (i == cut) {
            CHECK(training_save(cx, path, o, p));
            CHECK_EQ_S(lb_error(cx), "");
            lb_optimizer_close(o);
            lb_close(cx);
            cx = lb_open(&(lb_options){.threads = 1});
            CHECK(training_start(cx, p));
            o = lb_optimizer_open(cx, c, p, TRAIN_PARAMS);
            CHECK(training_load(cx, path, o, p));
            CHECK_EQ_I(lb_optimizer_steps(o), cut);
        }
        CHECK(step(cx, o, p, config));
    }
    CHECK(lb_read(cx, p[0], out, sizeof(float) * TRAIN_FIRST));
    CHECK_EQ_S(lb_error(cx), "");
    lb_optimizer_close(o);
    lb_close(cx);
}

static void resumed(const char *path)
{
    static const lb_quant_config bytes = {.format = "dynamic8"};
    static const lb_quant_config qat[] = {
        {.format = "nf4"}, {.format = "ternary", .scale = LB_SCALE_ROW}};
    static const lb_optimizer_config of[] = {
        {.method = LB_SGD, .momentum = 0.9},
        {.method = LB_ADAMW,
         .decay = 0.01,
         .clip_norm = 1,
         .schedule = LB_COSINE,
         .warmup = 5,
         .steps = 24},
        {.method = LB_ADAM, .state = &bytes}};
    static float whole[TRAIN_FIRST], parts[TRAIN_FIRST];
    for (int k = 0; k < 3; k++)
        for (int q = -1; q < 2; q++) {
            const lb_quant_config *config = q < 0 ? NULL : &qat[q];
            run(path, &of[k], config, -1, whole);
            run(path, &of[k], config, 9, parts);
            CHECK(memcmp(whole, parts, sizeof whole) == 0);
        }
}

/* ---- law 9: a whole step ------------------------------------------------- */

typedef struct meter {
    long count, fail_at;
    size_t bytes;
} meter;

static void *meter_alloc(void *user, size_t size, size_t align)
{
    meter *m = user;
    void *p = NULL;
    if (++m->count == m->fail_at) return NULL;
    if (posix_memalign(&p, align < sizeof p ? sizeof p : align, size))
        return NULL;
    m->bytes += size;
    return p;
}

static void meter_free(void *user, void *p, size_t size)
{
    meter *m = user;
    m->bytes -= size;
    free(p);
}

typedef struct trial {
    lb_quant_config qat;
    lb_optimizer_config optimizer;
} trial;

typedef struct failing {
    const char *path;
    const trial *of;
    lb_ctx *cx;
    lb_array *first[TRAIN_PARAMS];
    meter m;
    float want[TRAIN_FIRST];
} failing;

/* One step, its state to a file, and from there into another optimizer; the
 * resulting p[0] in `got`. */
static bool round_trip(failing *f, float *got)
{
    lb_ctx *cx = f->cx;
    lb_array *p[TRAIN_PARAMS];
    memcpy(p, f->first, sizeof p);
    lb_optimizer *o = lb_optimizer_open(cx, &f->of->optimizer, p, TRAIN_PARAMS);
    bool ok = o && step(cx, o, p, &f->of->qat);
    if (o && !ok) { /* then nothing has changed */
        CHECK(memcmp(p, f->first, sizeof p) == 0);
        CHECK_EQ_I(lb_optimizer_steps(o), 0);
    }
    ok = ok && training_save(cx, f->path, o, p);
    lb_optimizer_close(o);
    if (!ok) return false;
    o = lb_optimizer_open(cx, &f->of->optimizer, p, TRAIN_PARAMS);
    ok = o && training_load(cx, f->path, o, p) && step(cx, o, p, &f->of->qat) &&
         lb_read(cx, p[0], got, sizeof f->want);
    lb_optimizer_close(o);
    return ok;
}

static long fail_each(failing *f)
{
    static float got[TRAIN_FIRST];
    const size_t before = f->m.bytes;
    long k = 0;
    for (bool failed = true; failed && k < 100000;) {
        lb_enter(f->cx);
        f->m.fail_at = f->m.count + ++k;
        failed = !round_trip(f, got);
        f->m.fail_at = 0;
        if (failed) CHECK_EQ_I(lb_error_status(f->cx), LB_E_NOMEM);
        lb_leave(f->cx);
        CHECK_EQ_I(f->m.bytes, before);
        lb_clear(f->cx);
        /* and the next one is unaffected */
        if (k % 16 == 0 || !failed) {
            lb_enter(f->cx);
            CHECK(round_trip(f, got));
            CHECK(memcmp(got, f->want, sizeof got) == 0);
            lb_leave(f->cx);
        }
    }
    return k - 1;
}

static void fail_all(const char *path)
{
    static const lb_quant_config bytes = {.format = "dynamic8"};
    static const trial of[] = {
        {{.format = "nf4"}, {.method = LB_ADAM, .clip_norm = 1}},
        {{.format = "ternary", .scale = LB_SCALE_ROW, .clip_gradient = true},
         {.method = LB_ADAMW, .decay = 0.01, .state = &bytes}},
        {{.format = "int8"}, {.method = LB_SGD, .momentum = 0.9}}};
    long all = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        failing f = {.path = path, .of = &of[i]};
        const lb_allocator a = {meter_alloc, meter_free, &f.m};
        f.cx = lb_open(
            &(lb_options){.threads = 1, .allocator = &a, .keep_bytes = -1});
        CHECK(f.cx && training_start(f.cx, f.first));
        lb_enter(f.cx); /* and the context's lists have grown */
        CHECK(round_trip(&f, f.want));
        lb_leave(f.cx);
        const long k = fail_each(&f);
        CHECK(k > 200);
        all += k;
        lb_close(f.cx);
        CHECK_EQ_I(f.m.bytes, 0);
    }
    printf("training, saved and continued: %ld allocations, each failed once\n",
           all);
}

/* ---- memory -------------------------------------------------------------- */

/* Resident pages of this process. */
static long resident(void)
{
    long all = 0, here = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%ld %ld", &all, &here) != 2) here = 0;
    fclose(f);
    return here;
}

/* Peak memory of a step with that many examples. */
static size_t peak_of(int64_t batch)
{
    const lb_quant_config config = {.format = "nf4"};
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_array *p[TRAIN_PARAMS];
    CHECK(training_start(cx, p));
    lb_optimizer *o = lb_optimizer_open(cx, NULL, p, TRAIN_PARAMS);
    CHECK(training_step(cx, o, p, &config, batch));
    const size_t bytes = lb_bytes_peak(cx);
    lb_optimizer_close(o);
    lb_close(cx);
    return bytes;
}

/* Memory grows linearly with the number of examples. */
static void grows_as_a_line(void)
{
    const double a = (double)peak_of(1024), b = (double)peak_of(2048),
                 c = (double)peak_of(4096);
    CHECK(b > a);
    CHECK_NEAR((c - b) / (b - a), 2, 0.05);
    printf("memory per example in a batch: %.0f bytes\n", (c - b) / 2048);
}

/* Ten thousand steps need no more memory than the first thousand. */
static void flat(void)
{
    enum { STEPS = 10000, WARM = 1000, SLACK = 64 };
    const lb_quant_config config = {.format = "nf4"};
    const lb_optimizer_config c = {.method = LB_ADAM};
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_array *p[TRAIN_PARAMS];
    long pages = 0;
    size_t bytes = 0;
    CHECK(training_start(cx, p));
    lb_optimizer *o = lb_optimizer_open(cx, &c, p, TRAIN_PARAMS);
    for (int i = 0; i < TRAIN_PARAMS; i++)
        lb_ref(p[i]);
    for (int i = 0; i < STEPS; i++) {
        lb_array *was[TRAIN_PARAMS];
        memcpy(was, p, sizeof was);
        lb_enter(cx);
        CHECK(step(cx, o, p, &config));
        for (int k = 0; k < TRAIN_PARAMS; k++) {
            lb_ref(p[k]);
            lb_unref(was[k]);
        }
        lb_leave(cx);
        if (i == WARM) {
            pages = resident();
            bytes = lb_bytes_in_use(cx);
        }
        if (i > WARM) CHECK_EQ_I(lb_bytes_in_use(cx), bytes);
    }
    CHECK(resident() <= pages + SLACK);
    for (int i = 0; i < TRAIN_PARAMS; i++)
        lb_unref(p[i]);
    lb_optimizer_close(o);
    lb_close(cx);
}

int main(void)
{
    char path[SCRATCH_MAX];
    /* Otherwise pages that the kernel merges into huge ones count as growth. */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    CHECK(scratch_file(path));
    resumed(path);
    fail_all(path);
    grows_as_a_line();
    flat();
    unlink(path);
    return check_report("io training");
}
