/* bit_budget.c - chooses a type for each array so that the result fits a
 * budget of bytes with the least squared error.
 *
 * Each array is quantized to each candidate type and measured: bytes and sum of
 * squared errors. All arrays start at their smallest type. Steps to a better
 * type are then taken in order of error removed per byte, as long as they fit.
 * Only types on the lower convex hull of an array are steps, so the gains of
 * one array decrease. Then the best single steps that still fit use up the rest
 * of the budget, whether on the hull or not. Last, the result is compared with
 * the same type for all arrays, for each type, and the better one is taken:
 * the result is never larger and less exact than one type for all.
 *
 * The choice does not depend on the number of threads or the instruction set.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "io/jobs/job.h"

/* One type that an array can be stored in. */
typedef struct option {
    lb_quant_config config;
    uint64_t nbytes;
    double error;  /* sum of squares */
    int candidate; /* its index */
} option;

enum { DENSE = -1 }; /* the array is not quantized */

/* One array, with its options in order of size and of decreasing error. */
typedef struct budget_choice {
    lb_job_item *it;
    option *option;
    int n, at;
    uint64_t dense; /* bytes if it is not quantized */
    int *best;      /* for each candidate: the option that is neither larger nor
                     * less exact; DENSE if the array cannot be stored so */
} budget_choice;

typedef struct step {
    int64_t choice;
    int to;
    double gain; /* error removed per byte */
} step;

typedef struct budget {
    lb_job *j;
    const lb_quant_config *candidate;
    int n_candidates;
    budget_choice *choice;
    int64_t n;
    step *step;
    int64_t n_steps;
    uint64_t nbytes, most;
    uint64_t kept;  /* part of nbytes: arrays that are not selected */
    uint64_t unfit; /* ... that the output cannot store quantized */
} budget;

/* ---- candidates ---------------------------------------------------------- */

/* Settings besides the default of a format: smaller blocks gain most where
 * codes have few bits. */
static const lb_quant_config fine[] = {
    {.block_size = 64, .double_quant = true},
    {.block_size = 32, .double_quant = true},
    {.block_size = 16, .double_quant = true},
};
static const lb_quant_config coarse[] = {{.block_size = 128}};
enum {
    N_FINE = sizeof fine / sizeof *fine,
    N_COARSE = sizeof coarse / sizeof *coarse
};

/* Adds a type if the output can store a matrix of a convenient shape in it. */
static void add_candidate(lb_job *j, lb_quant_config *list, int *n,
                          lb_quant_config config)
{
    const lb_quantize_options *o = j->o;
    config.compat = o->config.compat;
    config.on_nonfinite = o->config.on_nonfinite;
    const lb_planned p = {.name = "w.weight",
                          .dtype = LB_F32,
                          .shape = LB_SHAPE(256, 256),
                          .config = &config};
    for (int i = 0; i < *n; i++)
        if (lb_job_same_config(&list[i], &config)) return;
    if (lb_saver_suits(j->cx, &p, o->kind, o->layout) == LB_DONE)
        list[(*n)++] = config;
    lb_clear(j->cx);
}

static void add_all(lb_job *j, lb_quant_config *list, int *n)
{
    const char *name;
    for (int k = 0; (name = lb_format_name(j->cx, k)); k++) {
        if (!lb_can_quantize(j->cx, name)) continue;
        const bool few = lb_find_format(j->cx, name)->codes.bits <= 4;
        lb_quant_config config = {.format = name};
        add_candidate(j, list, n, config);
        for (int i = 0; i < (few ? N_FINE : N_COARSE); i++) {
            config = few ? fine[i] : coarse[i];
            config.format = name;
            add_candidate(j, list, n, config);
        }
    }
}

/* The types of the options, or all types that the output can store. */
static bool find_candidates(budget *b)
{
    lb_job *j = b->j;
    const lb_quantize_options *o = j->o;
    uint64_t formats = 0;
    while (lb_format_name(j->cx, (int)formats))
        formats++;
    lb_quant_config *list = lb_arena_alloc(
        j->cx, &j->arena, 1 + (uint64_t)o->n_other + formats * (1 + N_FINE),
        sizeof *list);
    if (!list) return false;
    int n = 0;
    list[n++] = o->config;
    for (int i = 0; i < o->n_other; i++)
        list[n++] = o->other[i];
    if (!o->n_other) add_all(j, list, &n);
    b->candidate = list;
    b->n_candidates = n;
    return true;
}

/* ---- measuring ----------------------------------------------------------- */

/* Bytes of an array in the new file. */
typedef struct cost {
    uint64_t data;
    uint64_t header; /* estimated from above */
} cost;

/* For each tensor its name, shape and offsets; for each value its text, with
 * escapes. */
static uint64_t header_of(const lb_saver *s)
{
    enum { TENSOR = 100, VALUE = 16 };
    uint64_t n = 0;
    for (int64_t i = 0; i < s->n_tensors; i++)
        n += strlen(s->tensor[i].name) + TENSOR;
    for (int64_t i = 0; i < s->n_meta; i++) {
        const lb_meta *m = &s->meta[i];
        n += strlen(m->key) + m->size + VALUE;
        for (uint64_t k = 0; k < m->size; k++)
            n += m->bytes[k] == '"' || m->bytes[k] == '\\';
    }
    return n;
}

/* Values that the new file takes from the source. */
static uint64_t metadata_bytes(const lb_job *j)
{
    const lb_saver s = {.meta = j->meta, .n_meta = j->n_meta};
    return header_of(&s);
}

static bool find_cost(lb_job *j, const lb_job_item *it, cost *c)
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
    if (s) *c = (cost){lb_saver_size(s, 0), header_of(s)};
    lb_saver_close(j->cx, s, false);
    return s != NULL;
}

bool lb_job_bytes(lb_job *j, const lb_job_item *it, uint64_t *nbytes)
{
    cost c = {0};
    const bool ok = find_cost(j, it, &c);
    *nbytes = c.data;
    return ok;
}

/* The part that counts: headers only for a target in bytes. */
static uint64_t counted(const lb_job *j, cost c)
{
    return c.data + (j->o->target_bytes ? c.header : 0);
}

static int by_bytes(const void *a, const void *b)
{
    const option *x = a, *y = b;
    if (x->nbytes != y->nbytes) return x->nbytes < y->nbytes ? -1 : 1;
    if (x->error != y->error) return x->error < y->error ? -1 : 1;
    return x->candidate - y->candidate;
}

/* Some errors only rule out a type for this array: its shape, values that the
 * type cannot represent, or too little memory. clear: there was no error
 * before. */
static lb_verdict declined(lb_job *j, bool clear, bool measured)
{
    const lb_status s = lb_error_status(j->cx);
    if (!s) return LB_DECLINED;
    const bool of_type =
        measured ? s == LB_E_ARG || s == LB_E_SIZE : s == LB_E_SHAPE;
    if (!clear || !of_type) return LB_FAILED;
    lb_clear(j->cx);
    return LB_DECLINED;
}

/* Measures an array in a type. LB_DECLINED: the type does not suit its shape,
 * saves nothing, or needs more memory than allowed. */
static lb_verdict measure_option(budget *b, const lb_job_item *item, option *o)
{
    lb_job *j = b->j;
    lb_job_item it = *item;
    lb_difference d = {0};
    it.config = b->candidate[o->candidate];
    j->at = &it.group->entry;
    const bool clear = !lb_error_status(j->cx);
    if (!lb_job_tries(j, &it)) return declined(j, clear, false);
    o->config = it.config;
    cost c;
    if (!find_cost(j, &it, &c)) return LB_FAILED;
    o->nbytes = counted(j, c);
    const bool must = it.layout && it.layout->refuses; /* be quantized */
    if (!must && c.data >= it.group->entry.nbytes) return LB_DECLINED;
    lb_transfer t = lb_job_transfer(j, &it);
    t.measure = true;
    t.progress = lb_job_advance;
    t.user = j;
    if (!lb_transfer_run(j->cx, &t, NULL, &d)) return declined(j, clear, true);
    o->error = d.dd;
    return LB_DONE;
}

/* Sorts the options and drops those that are larger and no more exact. */
static void drop_worse(budget_choice *c)
{
    int n = 0;
    qsort(c->option, (size_t)c->n, sizeof *c->option, by_bytes);
    for (int i = 0; i < c->n; i++) {
        const int candidate = c->option[i].candidate;
        if (!n || c->option[i].error < c->option[n - 1].error)
            c->option[n++] = c->option[i];
        c->best[candidate] = n - 1;
    }
    c->n = n;
}

static bool measure(budget *b, lb_job_item *it)
{
    lb_job *j = b->j;
    budget_choice *c = &b->choice[b->n];
    const uint64_t types = (uint64_t)b->n_candidates;
    *c = (budget_choice){.it = it};
    c->option = lb_arena_alloc(j->cx, &j->arena, types, sizeof *c->option);
    c->best = lb_arena_alloc(j->cx, &j->arena, types, sizeof *c->best);
    if (!c->option || !c->best) return false;
    for (int k = 0; k < b->n_candidates; k++) {
        option *o = &c->option[c->n];
        *o = (option){.candidate = k};
        c->best[k] = DENSE;
        const uint64_t end = j->read + it->group->entry.nbytes;
        const lb_verdict v = measure_option(b, it, o);
        if (v == LB_FAILED) return false;
        c->n += v == LB_DONE;
        lb_job_advance(j, end - j->read);
    }
    drop_worse(c);
    if (!c->n) return true;
    lb_job_item dense = *it;
    cost unquantized;
    dense.kept = "";
    if (!find_cost(j, &dense, &unquantized)) return false;
    c->dense = counted(j, unquantized);
    b->n++;
    return true;
}

/* ---- steps --------------------------------------------------------------- */

static double gain(const option *from, const option *to)
{
    return (from->error - to->error) / (double)(to->nbytes - from->nbytes);
}

/* From each corner of the lower convex hull to the next. */
static void add_steps(budget *b, int64_t k)
{
    const budget_choice *c = &b->choice[k];
    for (int at = 0; at < c->n - 1;) {
        int best = at + 1;
        for (int i = at + 2; i < c->n; i++)
            if (gain(&c->option[at], &c->option[i]) >
                gain(&c->option[at], &c->option[best]))
                best = i;
        b->step[b->n_steps++] =
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

static bool take(budget *b, budget_choice *c, int to)
{
    if (to <= c->at) return false;
    const uint64_t more = c->option[to].nbytes - c->option[c->at].nbytes;
    if (b->nbytes > b->most || more > b->most - b->nbytes) return false;
    c->at = to;
    b->nbytes += more;
    return true;
}

/* Takes the best single step that still fits, until none does. */
static void fill_up(budget *b)
{
    for (bool any = true; any;) {
        budget_choice *best = NULL;
        int to = 0;
        double most = 0;
        for (int64_t k = 0; k < b->n; k++) {
            budget_choice *c = &b->choice[k];
            if (c->at == DENSE) continue;
            const option *now = &c->option[c->at];
            for (int i = c->at + 1; i < c->n; i++) {
                const uint64_t more = c->option[i].nbytes - now->nbytes;
                if (more > b->most - b->nbytes ||
                    gain(now, &c->option[i]) <= most)
                    continue;
                most = gain(now, &c->option[i]);
                best = c;
                to = i;
            }
        }
        any = best && take(b, best, to);
    }
}

/* ---- one type for all ---------------------------------------------------- */

static uint64_t bytes_at(const budget_choice *c, int at)
{
    return at == DENSE ? c->dense : c->option[at].nbytes;
}

static double error_at(const budget_choice *c, int at)
{
    return at == DENSE ? 0 : c->option[at].error;
}

/* If one type for all arrays fits the budget with less error, uses that. */
static void beat_single_types(budget *b)
{
    uint64_t rest = b->nbytes, nbytes = 0; /* rest: arrays without a choice */
    double least = 0;
    int best = DENSE;
    for (int64_t i = 0; i < b->n; i++) {
        rest -= bytes_at(&b->choice[i], b->choice[i].at);
        least += error_at(&b->choice[i], b->choice[i].at);
    }
    for (int k = 0; k < b->n_candidates; k++) {
        uint64_t size = rest;
        double error = 0;
        for (int64_t i = 0; i < b->n; i++) {
            size += bytes_at(&b->choice[i], b->choice[i].best[k]);
            error += error_at(&b->choice[i], b->choice[i].best[k]);
        }
        if (size > b->most || error >= least) continue;
        best = k;
        nbytes = size;
        least = error;
    }
    if (best == DENSE) return;
    for (int64_t i = 0; i < b->n; i++)
        b->choice[i].at = b->choice[i].best[best];
    b->nbytes = nbytes;
    fill_up(b);
}

/* ---- the budget ---------------------------------------------------------- */

/* Four digits and a decimal unit. */
enum { SIZE_TEXT = 32 };
static const char *size_text(double bytes, char to[SIZE_TEXT])
{
    static const char *const unit[] = {"bytes", "kB", "MB", "GB"};
    int u = 0;
    for (; u < 3 && bytes >= 1000; u++)
        bytes /= 1000;
    snprintf(to, SIZE_TEXT, "%.4g %s", bytes, unit[u]);
    return to;
}

static double elements_of(const lb_entry *e)
{
    double n = 1;
    for (int k = 0; k < e->rank; k++)
        n *= (double)e->dim[k];
    return n;
}

static bool find_budget(budget *b)
{
    const lb_quantize_options *o = b->j->o;
    double elements = 0;
    for (int64_t i = 0; i < b->j->n; i++)
        elements += elements_of(&b->j->item[i].group->entry);
    const double most = o->target_bytes ? (double)o->target_bytes
                                        : o->target_bits * elements / 8;
    b->most = (uint64_t)fmin(most, 1e18);
    if (b->nbytes <= b->most) return true;
    const double least = (double)b->nbytes;
    char size[4][SIZE_TEXT], unfit[96] = "", kept[128] = "";
    if (b->unfit)
        snprintf(unfit, sizeof unfit,
                 ", of which %s are arrays that the output cannot store "
                 "quantized",
                 size_text((double)b->unfit, size[2]));
    if (b->kept)
        snprintf(kept, sizeof kept,
                 ", %s %s are arrays that are not quantized; include them to "
                 "go lower",
                 b->unfit ? "and" : "of which",
                 size_text((double)b->kept, size[3]));
    return lb_fail(b->j->cx, LB_E_ARG,
                   "cannot reach %.4g bits per weight (%s): the minimum is "
                   "%.4g (%s, %.0f bytes)%s%s",
                   8 * most / fmax(elements, 1), size_text(most, size[0]),
                   8 * least / fmax(elements, 1), size_text(least, size[1]),
                   least, unfit, kept);
}

static bool has_choice(const lb_job_item *it)
{
    return !it->kept && !it->fixed;
}

/* Measures all arrays; afterwards each is at its smallest option. */
static bool begin(budget *b)
{
    lb_job *j = b->j;
    const uint64_t n = (uint64_t)j->n;
    if (!find_candidates(b)) return false;
    const uint64_t types = (uint64_t)b->n_candidates;
    b->choice = lb_arena_alloc(j->cx, &j->arena, n, sizeof *b->choice);
    b->step = lb_arena_alloc(j->cx, &j->arena, n * types, sizeof *b->step);
    if (!b->choice || !b->step) return false;
    if (j->o->target_bytes) b->nbytes = metadata_bytes(j);
    for (int64_t i = 0; i < j->n; i++)
        if (has_choice(&j->item[i]))
            j->total += types * j->item[i].group->entry.nbytes;
    for (int64_t i = 0; i < j->n; i++) {
        lb_job_item *it = &j->item[i];
        const int64_t before = b->n;
        cost c = {0};
        if (has_choice(it)) {
            if (!measure(b, it)) return false;
            if (b->n == before && !lb_job_decide(j, it)) return false;
        }
        if (b->n > before) {
            b->nbytes += b->choice[before].option[0].nbytes;
            continue;
        }
        if (!find_cost(j, it, &c)) return false;
        b->nbytes += counted(j, c);
        if (it->fell_back)
            b->unfit += c.data;
        else if (it->kept)
            b->kept += c.data;
    }
    return true;
}

bool lb_job_has_target(const lb_job *j)
{
    return j->o->target_bits > 0 || j->o->target_bytes;
}

bool lb_job_allocate(lb_job *j)
{
    budget b = {.j = j};
    if (!begin(&b) || !find_budget(&b)) return false;
    for (int64_t k = 0; k < b.n; k++)
        add_steps(&b, k);
    if (b.n_steps > 1)
        qsort(b.step, (size_t)b.n_steps, sizeof *b.step, by_gain);
    for (int64_t i = 0; i < b.n_steps; i++)
        (void)take(&b, &b.choice[b.step[i].choice], b.step[i].to);
    fill_up(&b);
    beat_single_types(&b);
    for (int64_t k = 0; k < b.n; k++) {
        const budget_choice *c = &b.choice[k];
        if (c->at == DENSE)
            c->it->kept = "fits the target unquantized";
        else {
            c->it->config = c->option[c->at].config;
            if (!lb_job_suits(j, c->it)) return false;
        }
    }
    return true;
}
