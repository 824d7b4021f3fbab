/* distance.c - see distance.h. A unit of work is a stretch of fixed length,
 * decoded and added up in runs that stay in L1. The results of stretches are
 * added in order. */
#include "core/distance.h"

#include <string.h>

enum { STRETCH = 1 << 15, STRETCHES = LB_DISTANCE_MOST / STRETCH };

typedef struct {
    const lb_cpu *cpu;
    const lb_array *a, *b;
    lb_ctype c;
    int64_t n;
    lb_apart each[STRETCHES];
} distance_job;

/* Pads a run to whole blocks with zeros, which do not change the sums. */
static const float *filled(const void *x, int64_t n, float *room)
{
    memmove(room, x, (size_t)n * sizeof *room);
    memset(room + n, 0, (size_t)(-n & (LB_APART_BLOCK - 1)) * sizeof *room);
    return room;
}

static void add_run(const distance_job *j, int64_t first, int64_t n,
                    lb_apart *to)
{
    _Alignas(64) double room[2][LB_RUN];
    const void *a = lb_tile_peek(j->cpu, j->a, &first, &n, j->c, room[0]);
    const void *b = lb_tile_peek(j->cpu, j->b, &first, &n, j->c, room[1]);
    if (j->c == LB_C_F64) {
        lb_apart_plain_f64(a, b, n, to);
        return;
    }
    if (n % LB_APART_BLOCK) {
        a = filled(a, n, (float *)(void *)room[0]);
        b = filled(b, n, (float *)(void *)room[1]);
    }
    lb_apart_for(j->cpu)(a, b, n + (-n & (LB_APART_BLOCK - 1)), to);
}

static void add_stretches(void *arg, int64_t lo, int64_t hi, int thread)
{
    distance_job *j = arg;
    (void)thread;
    for (int64_t u = lo; u < hi; u++) {
        const int64_t end = lb_min_i64((u + 1) * STRETCH, j->n);
        lb_apart sum = {0};
        for (int64_t i = u * STRETCH; i < end; i += LB_RUN)
            add_run(j, i, lb_min_i64(end - i, LB_RUN), &sum);
        j->each[u] = sum;
    }
}

bool lb_distance_add(lb_ctx *cx, lb_array *a, lb_array *b, lb_ctype c,
                     lb_apart *to)
{
    a = lb_here(cx, a);
    b = lb_here(cx, b);
    if (!a || !b) return false;
    distance_job j = {.cpu = &cx->cpu, .a = a, .b = b, .c = c, .n = lb_size(a)};
    const int64_t units = lb_ceil_div(j.n, STRETCH);
    lb_pool_run(cx->pool, units, add_stretches, &j);
    for (int64_t u = 0; u < units; u++) {
        const lb_apart *s = &j.each[u];
        to->apart += s->apart;
        to->nonfinite += s->nonfinite;
        to->aa += s->aa;
        to->bb += s->bb;
        to->ab += s->ab;
        to->dd += s->dd;
        if (s->max > to->max) to->max = s->max;
    }
    return true;
}
