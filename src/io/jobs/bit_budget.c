/* bit_budget.c - types by array, so that all of them take about so many bytes.
 *
 * Each array is quantized in each type and measured: its sum of squared errors
 * against its bytes. All begin with their cheapest type. Then steps to a better
 * one are taken, the one that takes the most error away for a byte first, as
 * long as they fit; of each array only types that no mixture of two others
 * beats (the lower hull) are steps, so that steps of one array become worse one
 * by one. At last what still fits is filled up, whatever type it is.
 *
 * Nothing in it depends on threads or instruction sets.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "io/jobs/job.h"

typedef struct option {
    lb_quant_config config;
    uint64_t nbytes;
    double error;
} option;

typedef struct choice {
    lb_job_item *it;
    option *option; /* the cheapest first */
    int n, at;
} choice;

typedef struct step {
    int64_t choice;
    int to;
    double gain; /* error for a byte */
} step;

typedef struct goal {
    lb_job *j;
    choice *choice;
    int64_t n;
    step *step;
    int64_t n_steps;
    uint64_t nbytes, budget;
    uint64_t kept; /* of nbytes, those of arrays without a choice */
} goal;

/* ---- measuring ----------------------------------------------------------- */

bool lb_job_bytes(lb_job *j, const lb_job_item *it, uint64_t *nbytes)
{
    const lb_entry *e = &it->group->entry;
    const lb_planned p = {.name = e->name,
                          .dtype = e->dtype,
                          .shape = lb_shape_make(e->rank, e->dim),
                          .config = it->kept ? NULL : &it->config};
    const lb_save_options save = {.kind = j->o->kind, .layout = j->o->layout};
    const float any = 0;
    const lb_saver_more more = {.offset = &any, .plan_only = true};
    lb_saver *s = lb_saver_begin(j->cx, "", &p, 1, &save, &more);
    if (s) *nbytes = lb_saver_size(s, 0);
    lb_saver_close(j->cx, s, false);
    return s != NULL;
}

static int by_bytes(const void *a, const void *b)
{
    const option *x = a, *y = b;
    if (x->nbytes != y->nbytes) return x->nbytes < y->nbytes ? -1 : 1;
    return (x->error > y->error) - (x->error < y->error);
}

/* One more type for it, if it suits. */
static bool try_option(goal *g, choice *c, const lb_quant_config *config)
{
    lb_job *j = g->j;
    lb_job_item it = *c->it;
    lb_difference d = {0};
    it.config = *config;
    it.fell_back = false;
    j->at = &it.group->entry;
    if (!lb_job_tries(j, &it)) {
        lb_job_advance(j, j->at->nbytes);
        return !lb_error_status(j->cx);
    }
    lb_transfer t = lb_job_transfer(j, &it);
    t.measure = true;
    t.progress = lb_job_advance;
    t.user = j;
    option *o = &c->option[c->n];
    *o = (option){.config = it.config};
    if (!lb_job_bytes(j, &it, &o->nbytes) ||
        !lb_transfer_run(j->cx, &t, NULL, &d))
        return false;
    o->error = d.dd;
    c->n++;
    return true;
}

/* What costs more and is no better is no option. */
static void drop_worse(choice *c)
{
    int n = 0;
    qsort(c->option, (size_t)c->n, sizeof *c->option, by_bytes);
    for (int i = 0; i < c->n; i++)
        if (!n || c->option[i].error < c->option[n - 1].error)
            c->option[n++] = c->option[i];
    c->n = n;
}

static bool measure(goal *g, lb_job_item *it)
{
    const lb_quantize_options *o = g->j->o;
    choice *c = &g->choice[g->n];
    *c = (choice){.it = it};
    c->option = lb_arena_alloc(g->j->cx, &g->j->arena, (uint64_t)o->n_other + 1,
                               sizeof *c->option);
    if (!c->option || !try_option(g, c, &o->config)) return false;
    for (int i = 0; i < o->n_other; i++)
        if (!try_option(g, c, &o->other[i])) return false;
    drop_worse(c);
    if (c->n) g->n++;
    return true;
}

/* ---- steps --------------------------------------------------------------- */

static double gain(const option *from, const option *to)
{
    return (from->error - to->error) / (double)(to->nbytes - from->nbytes);
}

/* From each corner of the hull to the next. */
static void add_steps(goal *g, int64_t k)
{
    const choice *c = &g->choice[k];
    for (int at = 0; at < c->n - 1;) {
        int best = at + 1;
        for (int i = at + 2; i < c->n; i++)
            if (gain(&c->option[at], &c->option[i]) >
                gain(&c->option[at], &c->option[best]))
                best = i;
        g->step[g->n_steps++] =
            (step){k, best, gain(&c->option[at], &c->option[best])};
        at = best;
    }
}

static int by_gain(const void *a, const void *b)
{
    const step *x = a, *y = b;
    if (x->gain != y->gain) return x->gain > y->gain ? -1 : 1;
    if (x->choice != y->choice) return x->choice < y->choice ? -1 : 1;
    return x->to - y->to;
}

static bool take(goal *g, choice *c, int to)
{
    const uint64_t more = c->option[to].nbytes - c->option[c->at].nbytes;
    if (to <= c->at || g->nbytes > g->budget || more > g->budget - g->nbytes)
        return false;
    c->at = to;
    g->nbytes += more;
    return true;
}

/* The best single step that still fits, again and again. */
static void fill_up(goal *g)
{
    for (bool any = true; any;) {
        choice *best = NULL;
        int to = 0;
        double most = 0;
        for (int64_t k = 0; k < g->n; k++) {
            choice *c = &g->choice[k];
            const option *now = &c->option[c->at];
            for (int i = c->at + 1; i < c->n; i++) {
                const uint64_t more = c->option[i].nbytes - now->nbytes;
                if (more > g->budget - g->nbytes ||
                    gain(now, &c->option[i]) <= most)
                    continue;
                most = gain(now, &c->option[i]);
                best = c;
                to = i;
            }
        }
        any = best && take(g, best, to);
    }
}

/* ---- the goal ------------------------------------------------------------ */

static double elements_of(const lb_entry *e)
{
    double n = 1;
    for (int k = 0; k < e->rank; k++)
        n *= (double)e->dim[k];
    return n;
}

/* What headers take, about and rather too much: of an array codes and scales by
 * name, with shapes and places, and a description of both. */
static double header_of(const lb_job *j)
{
    enum { TENSOR = 100, DESCRIPTION = 260 };
    double bytes = 0;
    for (int64_t i = 0; i < j->n; i++) {
        const double name = (double)strlen(j->item[i].group->entry.name);
        bytes += 2 * (name + TENSOR) + name + DESCRIPTION;
    }
    return bytes;
}

static bool find_budget(goal *g)
{
    const lb_quantize_options *o = g->j->o;
    const double header = o->target_bytes ? header_of(g->j) : 0;
    double elements = 0;
    for (int64_t i = 0; i < g->j->n; i++)
        elements += elements_of(&g->j->item[i].group->entry);
    const double most = o->target_bytes ? (double)o->target_bytes
                                        : o->target_bits * elements / 8;
    g->budget = most > header ? (uint64_t)(most - header) : 0;
    if (g->nbytes <= g->budget) return true;
    const double least = (double)g->nbytes + header;
    return lb_fail(g->j->cx, LB_E_ARG,
                   "the target is %.0f bytes, %.4g bits for each element, and "
                   "no less can be reached than %.0f, %.4g bits; %llu of them "
                   "are arrays that stay as they are, unless they are included",
                   most, 8 * most / fmax(elements, 1), least,
                   8 * least / fmax(elements, 1), (unsigned long long)g->kept);
}

static bool has_choice(const lb_job_item *it)
{
    return !it->kept && !it->fixed && !it->fell_back;
}

static bool begin(goal *g)
{
    lb_job *j = g->j;
    const uint64_t n = (uint64_t)j->n, types = (uint64_t)j->o->n_other + 1;
    g->choice = lb_arena_alloc(j->cx, &j->arena, n, sizeof *g->choice);
    g->step = lb_arena_alloc(j->cx, &j->arena, n * types, sizeof *g->step);
    if (!g->choice || !g->step) return false;
    for (int64_t i = 0; i < j->n; i++)
        if (has_choice(&j->item[i]))
            j->total += types * j->item[i].group->entry.nbytes;
    for (int64_t i = 0; i < j->n; i++) {
        lb_job_item *it = &j->item[i];
        const bool free = has_choice(it);
        const int64_t before = g->n;
        uint64_t nbytes = 0;
        if (free && !measure(g, it)) return false;
        if (g->n > before)
            nbytes = g->choice[before].option[0].nbytes;
        else if (!lb_job_bytes(j, it, &nbytes))
            return false;
        g->nbytes += nbytes;
        if (!free) g->kept += nbytes;
    }
    return true;
}

bool lb_job_allocate(lb_job *j)
{
    goal g = {.j = j};
    if (!begin(&g) || !find_budget(&g)) return false;
    for (int64_t k = 0; k < g.n; k++)
        add_steps(&g, k);
    if (g.n_steps > 1)
        qsort(g.step, (size_t)g.n_steps, sizeof *g.step, by_gain);
    for (int64_t i = 0; i < g.n_steps; i++)
        (void)take(&g, &g.choice[g.step[i].choice], g.step[i].to);
    fill_up(&g);
    for (int64_t k = 0; k < g.n; k++) {
        const choice *c = &g.choice[k];
        c->it->config = c->option[c->at].config;
        if (!lb_job_suits(j, c->it)) return false;
    }
    return true;
}
