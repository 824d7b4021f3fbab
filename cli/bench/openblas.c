/* openblas.c - see openblas.h.
 *
 * OpenBLAS is loaded at run time, not linked. Debian's does not know every new
 * CPU, so its kernels are selected explicitly: those of our level. Its threads
 * are set to sleep immediately when idle: by default they spin for 2^26 cycles,
 * and our next call would find the CPU busy.
 */
#include "openblas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_rows.h"
#include "bench_weights.h"
#include "sampling.h"

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 }; /* from cblas.h */

typedef struct openblas {
    void *library;
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k,
                  float alpha, const float *a, int lda, const float *b, int ldb,
                  float beta, float *c, int ldc);
    void (*set_threads)(int);
    const char *(*core)(void);
} openblas;

/* POSIX has dlsym return functions as void *; C has no cast for that. */
static bool find(void *library, const char *name, void *function, size_t size)
{
    void *const found = dlsym(library, name);
    memcpy(function, &found, size);
    return found != NULL;
}

static bool load(openblas *b, const char *isa)
{
    const char *const core = !strncmp(isa, "avx512", 6) ? "SKYLAKEX"
                             : !strcmp(isa, "avx2")     ? "HASWELL"
                             : !strcmp(isa, "neon")     ? "ARMV8"
                                                        : "PRESCOTT";
    setenv("OPENBLAS_CORETYPE", core, 1);
    setenv("OPENBLAS_THREAD_TIMEOUT", "4", 0);
    b->library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!b->library) {
        bench_fail("%s", dlerror());
        return false;
    }
    if (find(b->library, "cblas_sgemm", &b->sgemm, sizeof b->sgemm) &&
        find(b->library, "openblas_set_num_threads", &b->set_threads,
             sizeof b->set_threads) &&
        find(b->library, "openblas_get_corename", &b->core, sizeof b->core))
        return true;
    bench_fail("libopenblas.so.0 lacks required functions");
    return false;
}

/* ---- one comparison ----------------------------------------------------- */

typedef struct pair {
    const openblas *blas;
    lb_ctx *cx;
    lb_array *x, *w;
    bench_orient orient;
    int m, n, k;
    float *y; /* of OpenBLAS */
} pair;

static void ours(void *arg)
{
    const pair *p = arg;
    lb_drop(p->cx, weights_product(p->cx, p->x, p->w, p->orient,
                                   LB_PRECISION_HIGHEST));
}

static void theirs(void *arg)
{
    const pair *p = arg;
    const bool t = p->orient == ORIENT_WT;
    p->blas->sgemm(ROW_MAJOR, NO_TRANS, t ? TRANS : NO_TRANS, p->m, p->n, p->k,
                   1, lb_data(p->x), p->k, lb_data(p->w), t ? p->k : p->n, 0,
                   p->y, p->n);
}

static void show(const bench_options *o, const pair *p, const sample_side *side)
{
    const double gflop = 2e-9 * p->m * p->n * p->k;
    const double us = gflop / side[0].median, them = gflop / side[1].median;
    if (o->json) {
        row_begin();
        row_text("isa", lb_isa(p->cx));
        row_integer("m", p->m);
        row_integer("n", p->n);
        row_integer("k", p->k);
        row_text("orient", orient_name(p->orient));
        row_integer("threads", lb_threads(p->cx));
        row_number("gflops", us);
        row_number("openblas_gflops", them);
        row_number("ratio", us / them);
        row_end();
        return;
    }
    printf("%5d %6d %6d %-3s %3d %9.2f %9.2f %9.2f %9.2f %7.2f%s\n", p->m, p->n,
           p->k, orient_name(p->orient), lb_threads(p->cx), us, them,
           gflop / side[0].best, gflop / side[1].best, us / them,
           side[0].clean && side[1].clean ? "" : " ~");
    fflush(stdout);
}

static bool compare(const bench_options *o, pair *p)
{
    lb_ctx *const cx = p->cx;
    const int64_t n = p->n, k = p->k;
    lb_enter(cx);
    p->x = lb_random_normal(cx, (lb_key){2, 0}, LB_F32, LB_SHAPE(p->m, k));
    p->w = weights_make(cx, "f32", p->orient, n, k, (lb_key){1, 0});
    p->y = calloc((size_t)p->m * (size_t)n, sizeof *p->y);
    bool ok = p->x && p->w && p->y;
    if (ok) {
        sample_side side[2] = {{.run = ours, .arg = p},
                               {.run = theirs, .arg = p}};
        p->blas->set_threads(lb_threads(cx));
        sample(side, 2, o->seconds);
        ok = lb_error_status(cx) == LB_OK;
        if (ok) show(o, p, side);
    }
    if (!ok)
        bench_fail("M %d: %s", p->m, p->y ? lb_error(cx) : "out of memory");
    free(p->y);
    lb_leave(cx);
    return ok;
}

static bool compare_all(const bench_options *o, const openblas *blas,
                        lb_ctx *cx)
{
    bool ok = true;
    for (int s = 0; s < o->shapes.n; s++) {
        for (int r = 0; r < o->orients.n; r++) {
            for (int i = 0; i < o->m.n; i++) {
                pair p = {.blas = blas,
                          .cx = cx,
                          .orient = (bench_orient)o->orients.at[r],
                          .m = (int)o->m.at[i],
                          .n = (int)o->shapes.at[s].n,
                          .k = (int)o->shapes.at[s].k};
                ok = compare(o, &p) && ok;
            }
        }
    }
    return ok;
}

bool openblas_run(const bench_options *o)
{
    openblas blas = {0};
    bool ok = true;
    for (int t = 0; t < o->threads.n; t++) {
        lb_ctx *const cx = bench_context(o, (int)o->threads.at[t]);
        if (!cx) return false;
        if (!blas.library && !load(&blas, lb_isa(cx))) {
            lb_close(cx);
            return false;
        }
        if (t == 0 && !o->json)
            printf(
                "level %s, OpenBLAS runs as %s; f32, GFLOP/s of medians; "
                "ratio above 1: lowbit is faster; ~: samples were preempted\n\n"
                "%5s %6s %6s %-3s %3s "
                "%9s %9s %9s %9s %7s\n",
                lb_isa(cx), blas.core(), "M", "N", "K", "W", "thr", "lowbit",
                "OpenBLAS", "best", "best", "ratio");
        ok = compare_all(o, &blas, cx) && ok;
        lb_close(cx);
    }
    return ok; /* the library stays loaded: its threads may still be running */
}
