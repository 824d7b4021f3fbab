/* limits.c - see limits.h.
 *
 * Threads wait at a barrier, then each does its share. The time is from the
 * start of the first thread to the end of the last one.
 */
#include "limits.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench_rows.h"
#include "sampling.h"

#define MIB      (1024.0 * 1024.0)
#define SHORTEST 0.004 /* length of a sample in s */

enum {
    MEMORY = 512 << 20, /* larger than any cache */
    HUGE_PAGE = 2 << 20,
    SAMPLES = 25,
    THREADS_MAX = 256
};

/* ---- a team ------------------------------------------------------------- */

typedef struct limit_task {
    const limits *l;
    limit_loop loop; /* if loop.run */
    bool store;      /* else fill, or */
    limit_walk walk; /* read */
    int64_t rounds;  /* of it */
    size_t bytes;    /* of all threads */
    pthread_barrier_t barrier;
} limit_task;

typedef struct limit_member {
    limit_task *t;
    int index;
    double begin, end;
} limit_member;

static void do_share(const limit_task *t, int index)
{
    const size_t step = (size_t)t->walk.streams * t->walk.apart;
    const size_t unit = step ? step : 64;
    const size_t share = t->bytes / (size_t)t->l->threads / unit * unit;
    char *const mine = t->l->memory + (size_t)index * share;
    if (t->loop.run) {
        t->loop.run(t->rounds);
        return;
    }
    for (int64_t r = 0; r < t->rounds; r++) {
        if (t->store)
            t->l->kernels.fill(mine, share);
        else
            t->l->kernels.read(mine, share, t->walk);
    }
}

static void *run_member(void *arg)
{
    limit_member *const m = arg;
    pthread_barrier_wait(&m->t->barrier);
    m->begin = now();
    do_share(m->t, m->index);
    m->end = now();
    return NULL;
}

/* Seconds of one run of all threads. */
static double run_team(limit_task *t)
{
    const int n = t->l->threads;
    pthread_t thread[THREADS_MAX];
    limit_member members[THREADS_MAX];
    pthread_barrier_init(&t->barrier, NULL, (unsigned)n);
    members[0] = (limit_member){.t = t};
    for (int i = 1; i < n; i++) {
        members[i] = (limit_member){.t = t, .index = i};
        if (pthread_create(&thread[i], NULL, run_member, &members[i])) {
            bench_fail("cannot start %d threads", n);
            exit(1); /* the others wait forever */
        }
    }
    run_member(&members[0]);
    double begin = members[0].begin, end = members[0].end;
    for (int i = 1; i < n; i++) {
        pthread_join(thread[i], NULL);
        if (members[i].begin < begin) begin = members[i].begin;
        if (members[i].end > end) end = members[i].end;
    }
    pthread_barrier_destroy(&t->barrier);
    return end - begin;
}

/* The best of several samples, in 1e9 of `amount` (per round) per second. A
 * long sample may only have been preempted, so rounds are doubled until even
 * the shortest one is long enough. */
static double best_rate(limit_task *t, double amount, double least_seconds)
{
    double best = 0;
    const double end = now() + t->l->seconds;
    t->rounds = 1;
    for (int i = 0; i < SAMPLES && (i == 0 || now() < end); i++) {
        const double s = run_team(t);
        sample_rest(s);
        const double rate = amount * (double)t->rounds / s * 1e-9;
        if (rate > best) best = rate;
        if (s >= least_seconds || t->rounds > INT64_MAX / 4) continue;
        t->rounds *= 2;
        best = 0;
        i = -1;
    }
    return best;
}

static double loop_rate(const limits *l, limit_loop loop)
{
    limit_task t = {.l = l, .loop = loop};
    return best_rate(&t, loop.ops * l->threads, SHORTEST);
}

/* ---- all of them -------------------------------------------------------- */

/* Read bandwidth of a working set of that size, with the best of several
 * patterns. */
static double read_rate(const limits *l, size_t bytes)
{
    static const limit_walk walks[] = {{1, 0}, {4, 16 << 10}, {8, 16 << 10}};
    double best = 0;
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++) {
        const size_t step = (size_t)walks[i].streams * walks[i].apart;
        if (bytes / (size_t)l->threads < step) continue;
        limit_task t = {.l = l, .walk = walks[i], .bytes = bytes};
        const double rate = best_rate(&t, (double)bytes, SHORTEST);
        if (rate > best) best = rate;
    }
    return best;
}

bool limits_open(limits *l, int threads, const char *level, double seconds)
{
    *l = (limits){.threads = threads,
                  .seconds = seconds,
                  .kernels = limit_kernels_for(level)};
    l->memory = aligned_alloc(HUGE_PAGE, MEMORY);
    if (!l->memory) return bench_fail("cannot allocate %.0f MiB", MEMORY / MIB);
    madvise(l->memory, MEMORY, MADV_HUGEPAGE);
    memset(l->memory, 1, MEMORY);
    l->fma = loop_rate(l, l->kernels.fma);
    l->dot16 = loop_rate(l, l->kernels.dot16);
    l->dot8 = loop_rate(l, l->kernels.dot8);
    l->lookup = loop_rate(l, l->kernels.lookup);
    l->dram = read_rate(l, MEMORY);
    limit_task fill = {.l = l, .store = true, .bytes = MEMORY};
    l->stream = best_rate(&fill, MEMORY, 0);
    return true;
}

void limits_close(limits *l)
{
    free(l->memory);
    l->memory = NULL;
}

double limits_read(limits *l, double bytes)
{
    int i = 16; /* with less, starting the threads dominates */
    while (i < LIMIT_SIZES - 1 && (double)(INT64_C(1) << i) < bytes)
        i++;
    if (INT64_C(1) << i >= MEMORY) return l->dram;
    if (l->read[i] == 0) /* caches are at least as fast as DRAM */
        l->read[i] = fmax(read_rate(l, (size_t)1 << i), l->dram);
    return l->read[i];
}

/* An index has four bits: four signs or two ternary values. A table entry is
 * half of their product with x, whose 16 bits need two tables. */
static double lookup_flops(const cell *c)
{
    const double bits = 8 * c->weight_bytes / (double)(c->n * c->k);
    return bits < 2 ? 4 : 2;
}

limit limits_product(limits *l, const cell *c)
{
    const char *const kernel = c->kernel;
    limit cores = {l->fma, "fma"};
    if (strstr(kernel, " pairs") || strstr(kernel, " tables"))
        cores = (limit){l->lookup * lookup_flops(c), "lookup"};
    else if (strstr(kernel, " i16"))
        cores = (limit){l->dot16, "dot16"};
    else if (strstr(kernel, " i8x2"))
        cores = (limit){l->dot8 / 2, "dot8 / 2"};
    else if (strstr(kernel, " i8"))
        cores = (limit){l->dot8, "dot8"};
    limit memory = {l->dram, "dram"};
    if (c->place == PLACE_WARM)
        memory = (limit){limits_read(l, c->weight_bytes), "read"};
    memory.gflops *= cell_flops(c) / c->weight_bytes;
    return memory.gflops < cores.gflops ? memory : cores;
}

void limits_print(const limits *l)
{
    printf("limits, %d thread%s: fma %.0f GFLOP/s, dot16 %.0f, dot8 %.0f "
           "GOP/s, lookup %.0f G/s, DRAM read %.1f, non-temporal stores "
           "%.1f GB/s\n",
           l->threads, l->threads > 1 ? "s" : "", l->fma, l->dot16, l->dot8,
           l->lookup, l->dram, l->stream);
    fflush(stdout);
}

bool limits_run(const bench_options *o)
{
    lb_ctx *const cx = bench_context(o, 0);
    if (!cx) return false;
    bool ok = true;
    for (int i = 0; ok && i < o->threads.n; i++) {
        limits l;
        ok = limits_open(&l, (int)o->threads.at[i], lb_isa(cx), o->seconds);
        if (!ok) break;
        if (o->json) {
            row_begin();
            row_text("isa", lb_isa(cx));
            row_integer("threads", l.threads);
            row_number("fma_gflops", l.fma);
            row_number("dot16_gops", l.dot16);
            row_number("dot8_gops", l.dot8);
            row_number("lookup_gops", l.lookup);
            row_number("dram_gbps", l.dram);
            row_number("stream_gbps", l.stream);
            row_end();
        } else {
            limits_print(&l);
        }
        limits_close(&l);
    }
    lb_close(cx);
    return ok;
}
