/* comm_threads.c - ranks as threads of one process.
 *
 * The ranks of a group share a barrier, and a place for each to publish the
 * address of its data. Others read the data there, between two barriers, so
 * nothing is copied unnecessarily:
 *
 *     all_reduce   rank r reduces the r-th part of all data, in rank order, in
 *                  its own buffer; then each copies the parts of the others
 *
 * If the function of a rank has returned, ranks that wait for it get an error.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "shard/comm_reduce.h"

typedef struct thread_place {
    const void *data;    /* gather */
    void *to;            /* reduce */
    int color;           /* split */
    int thread;          /* its rank among all */
    struct group *joins; /* split: created by the first rank of a color */
} thread_place;

/* All ranks of a run, and which have returned. */
typedef struct world {
    lb_heap *heap;
    pthread_mutex_t lock;
    pthread_cond_t change;
    int *gone; /* per rank: its position in the order of returning; 0:
                * running */
    int left;
} world;

typedef struct group {
    world *world;
    size_t got;
    int n, refs;  /* ranks; ranks that have not closed it */
    int arrived;  /* ranks at the barrier */
    unsigned gen; /* generation of the barrier */
    thread_place place[];
} group;

typedef struct thread_comm {
    lb_comm comm; /* first member, to be cast back */
    size_t got;
    group *group;
} thread_comm;

static group *group_of(lb_comm *c)
{
    return ((thread_comm *)(void *)c)->group;
}

static thread_place *place_of(lb_comm *c)
{
    return &group_of(c)->place[c->rank];
}

/* ---- the barrier --------------------------------------------------------- */

/* The first of the group that has returned, by its rank among all; -1: none. */
static int missing(const group *g)
{
    const int *gone = g->world->gone;
    int first = -1;
    for (int r = 0; r < g->n; r++) {
        const int t = g->place[r].thread;
        if (gone[t] && (first < 0 || gone[t] < gone[first])) first = t;
    }
    return first;
}

static bool meet(lb_comm *c)
{
    group *g = group_of(c);
    world *w = g->world;
    pthread_mutex_lock(&w->lock);
    const unsigned gen = g->gen;
    if (missing(g) < 0 && ++g->arrived == g->n) { /* otherwise it will never
                                                   * complete */
        g->arrived = 0;
        g->gen++;
        pthread_cond_broadcast(&w->change);
    }
    while (g->gen == gen && missing(g) < 0)
        pthread_cond_wait(&w->change, &w->lock);
    const bool ok = g->gen != gen;
    if (!ok)
        snprintf(c->why, sizeof c->why,
                 "rank %d has ended while others wait for it", missing(g));
    pthread_mutex_unlock(&w->lock);
    return ok;
}

/* ---- collective operations ----------------------------------------------- */

/* The beginning of part r of count elements. */
static int64_t part_begin(int64_t count, int n, int r)
{
    return count / n * r + lb_min_i64(count % n, r);
}

static bool all_reduce(lb_comm *c, lb_comm_op op, lb_dtype dtype, int64_t count,
                       void *data)
{
    const group *g = group_of(c);
    const size_t size = lb_dtype_size(dtype);
    place_of(c)->to = data;
    if (!meet(c)) return false;
    const int64_t lo = part_begin(count, g->n, c->rank);
    const int64_t hi = part_begin(count, g->n, c->rank + 1);
    enum { PIECE = 4096 }; /* bytes reduced at a time */
    const int64_t step = PIECE / (int64_t)size;
    _Alignas(64) char sum[PIECE];
    for (int64_t i = lo; i < hi; i += step) {
        const int64_t n = lb_min_i64(step, hi - i);
        const size_t at = (size_t)i * size, bytes = (size_t)n * size;
        memcpy(sum, (const char *)g->place[0].to + at, bytes);
        for (int r = 1; r < g->n; r++)
            lb_comm_combine(op, dtype, n, (const char *)g->place[r].to + at,
                            sum);
        memcpy((char *)data + at, sum, bytes);
    }
    if (!meet(c)) return false;
    for (int r = 0; r < g->n; r++) {
        const int64_t from = part_begin(count, g->n, r);
        const int64_t n = part_begin(count, g->n, r + 1) - from;
        const size_t at = (size_t)from * size;
        if (r != c->rank && n)
            memcpy((char *)data + at, (const char *)g->place[r].to + at,
                   (size_t)n * size);
    }
    return meet(c);
}

static bool all_gather(lb_comm *c, size_t bytes, const void *mine, void *all)
{
    const group *g = group_of(c);
    place_of(c)->data = mine;
    if (!meet(c)) return false;
    for (int r = 0; r < g->n && bytes; r++)
        memcpy((char *)all + (size_t)r * bytes, g->place[r].data, bytes);
    return meet(c);
}

/* ---- groups -------------------------------------------------------------- */

static lb_comm *split(lb_comm *c, int color);
static void close_comm(lb_comm *c);

static group *group_open(world *w, int n)
{
    size_t size, got;
    if (!lb_mul_size((size_t)n, sizeof(thread_place), &size) ||
        !lb_add_size(size, sizeof(group), &size))
        return NULL;
    group *g = lb_heap_alloc(w->heap, size, &got);
    if (!g) return NULL;
    memset(g, 0, size);
    g->world = w;
    g->got = got;
    g->n = g->refs = n;
    return g;
}

static void group_leave(group *g)
{
    world *w = g->world;
    pthread_mutex_lock(&w->lock);
    const bool last = --g->refs == 0;
    pthread_mutex_unlock(&w->lock);
    if (last) lb_heap_free(w->heap, g, g->got);
}

static lb_comm *comm_open(group *g, int rank)
{
    size_t got;
    thread_comm *t = lb_heap_alloc(g->world->heap, sizeof *t, &got);
    if (!t) return NULL;
    *t = (thread_comm){
        .comm = {.struct_size = sizeof(lb_comm),
                 .engine = "threads",
                 .rank = rank,
                 .size = g->n,
                 .all_reduce = all_reduce,
                 .all_gather = all_gather,
                 .split = split,
                 .close = close_comm},
        .got = got,
        .group = g,
    };
    return &t->comm;
}

static void close_comm(lb_comm *c)
{
    if (!c) return;
    thread_comm *t = (thread_comm *)(void *)c;
    group *g = t->group;
    lb_heap_free(g->world->heap, t, t->got);
    group_leave(g);
}

/* Whether all ranks of a group have something; all get the same answer. */
static bool all_have(lb_comm *c, bool mine)
{
    int32_t have = mine;
    return all_reduce(c, LB_COMM_MIN, LB_I32, 1, &have) && have;
}

static lb_comm *split(lb_comm *c, int color)
{
    group *g = group_of(c);
    thread_place *own = place_of(c);
    own->color = color;
    own->joins = NULL;
    if (!meet(c)) return NULL;
    int first = -1, rank = 0, n = 0;
    for (int r = 0; r < g->n; r++) {
        if (g->place[r].color != color) continue;
        if (first < 0) first = r;
        rank += r < c->rank;
        n++;
    }
    if (first == c->rank && (own->joins = group_open(g->world, n)))
        for (int r = 0, i = 0; r < g->n; r++)
            if (g->place[r].color == color)
                own->joins->place[i++].thread = g->place[r].thread;
    if (!meet(c)) { /* then it failed on all ranks, and none has joined */
        if (own->joins)
            lb_heap_free(g->world->heap, own->joins, own->joins->got);
        return NULL;
    }
    group *joins = g->place[first].joins;
    lb_comm *sub = joins ? comm_open(joins, rank) : NULL;
    if (joins && !sub) group_leave(joins);
    if (all_have(c, sub != NULL)) return sub;
    if (!c->why[0]) snprintf(c->why, sizeof c->why, "out of memory");
    close_comm(sub);
    return NULL;
}

/* ---- running ------------------------------------------------------------- */

typedef struct runner {
    pthread_t thread;
    lb_comm *comm;
    int (*fn)(lb_comm *, void *);
    void *user;
    int result;
} runner;

static void leave(world *w, int rank)
{
    pthread_mutex_lock(&w->lock);
    w->gone[rank] = ++w->left;
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->lock);
}

static void *run_rank(void *arg)
{
    runner *r = arg;
    r->result = r->fn(r->comm, r->user);
    leave(group_of(r->comm)->world, r->comm->rank);
    return NULL;
}

/* Rank 0 runs on this thread. Ranks that cannot be started count as
 * returned. */
static int run_all(world *w, runner *r, int n)
{
    int started = 1, result = 0;
    for (int i = 1; i < n; i++, started++)
        if (pthread_create(&r[i].thread, NULL, run_rank, &r[i])) break;
    for (int i = started; i < n; i++)
        leave(w, i);
    run_rank(&r[0]);
    for (int i = 1; i < started; i++)
        pthread_join(r[i].thread, NULL);
    for (int i = started - 1; i >= 0; i--)
        if (r[i].result) result = r[i].result;
    return started < n ? -1 : result;
}

static int run_in(world *w, int n, int (*fn)(lb_comm *, void *), void *user)
{
    size_t got;
    int made = 0, result = -1;
    group *g = group_open(w, n);
    if (!g) return -1;
    runner *r = lb_heap_alloc(w->heap, (size_t)n * sizeof *r, &got);
    for (int i = 0; i < n; i++)
        g->place[i].thread = i;
    for (; r && made < n; made++) {
        r[made] = (runner){.comm = comm_open(g, made), .fn = fn, .user = user};
        if (!r[made].comm) break;
    }
    if (made == n) result = run_all(w, r, n);
    for (int i = 0; i < made; i++)
        close_comm(r[i].comm);
    for (int i = made; i < n; i++)
        group_leave(g);
    if (r) lb_heap_free(w->heap, r, got);
    return result;
}

int lb_mesh_run(int n, int (*fn)(lb_comm *comm, void *user), void *user)
{
    enum { MOST = 1 << 16 };
    world w = {0};
    size_t got;
    if (n < 1 || n > MOST || !fn) return -1;
    if (!(w.heap = lb_heap_open(NULL, 0))) return -1;
    int result = -1;
    w.gone = lb_heap_alloc(w.heap, (size_t)n * sizeof *w.gone, &got);
    if (w.gone) memset(w.gone, 0, (size_t)n * sizeof *w.gone);
    if (w.gone && !pthread_mutex_init(&w.lock, NULL)) {
        if (!pthread_cond_init(&w.change, NULL)) {
            result = run_in(&w, n, fn, user);
            pthread_cond_destroy(&w.change);
        }
        pthread_mutex_destroy(&w.lock);
    }
    if (w.gone) lb_heap_free(w.heap, w.gone, got);
    lb_heap_close(w.heap);
    return result;
}
