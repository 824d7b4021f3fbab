/* bench_small.c - what small calls cost, on one thread and on two.
 *
 *   bench_small [--rounds R] [--only NAME] [--sizes N,N,...] [--markdown]
 *
 * Every primitive of the registry, and more products, norms and packed operands
 * (small_calls.c), at sizes from 1 to 10^6 elements of the largest operand or
 * result. Calls on contexts with one and with two threads alternate; a column
 * is ns on one thread and the ratio of two threads to one. A ratio above 1.10
 * is marked: work that small belongs on the calling thread. As other programs
 * disturb some cell in every run, such a cell is measured again with contexts
 * of its own, and the smaller ratio counts.
 */
#include <stdbool.h>
#include <string.h>

#include "bench.h"
#include "small_calls.h"

enum { MOST_SIZES = 16, ROUNDS = 9 };

/* ---- measuring ----------------------------------------------------------- */

static void call(shot *s)
{
    lb_enter(s->cx);
    if (s->call)
        s->call(s);
    else
        lb_bind(s->cx, s->prim, s->n, s->in, &s->params);
    lb_leave(s->cx);
}

static double round_of(void *arg)
{
    shot *s = arg;
    const double from = bench_now();
    for (double i = 0; i < s->times; i++)
        call(s);
    return (bench_now() - from) / s->times;
}

typedef struct options {
    int rounds;
    const char *only;
    int64_t size[MOST_SIZES];
    int n_sizes;
    bool markdown;
} options;

typedef struct totals {
    int cells, repeated, slower;
    double worst;
    char name[64];
    int64_t size;
} totals;

static bool open_shot(shot *s, const char *prim, make_fn *make, int threads,
                      int64_t size)
{
    memset(s, 0, sizeof *s);
    s->cx = lb_open(&(lb_options){.threads = threads});
    s->prim = lb_find_primitive(s->cx, prim); /* not needed for `call` */
    if (make)
        make(s, size);
    else if (!small_rows(s, size))
        return false;
    for (int i = 0; i < 3; i++)
        call(s);
    s->times = 1;
    return !lb_error_status(s->cx);
}

/* About 1 ms a round: the second thread slept while the other context was
 * measured, and joins after 0.1 ms. */
static void set_times(shot s[2])
{
    double ns = round_of(&s[0]);
    for (int i = 0; i < 2 && ns < 1e4; i++) {
        s[0].times = 1 + 2e4 / (ns + 1);
        ns = round_of(&s[0]);
    }
    s[0].times = s[1].times = 1 + 1e6 / (ns + 1);
}

/* ns on one thread, and what two take in relation to it. */
static bool measure(const options *o, const entry *e, int64_t size,
                    double figure[2])
{
    shot s[2] = {0};
    const char *name = e->label ? e->label : e->prim;
    const bool ok = open_shot(&s[0], e->prim, e->make, 1, size) &&
                    open_shot(&s[1], e->prim, e->make, 2, size);
    if (ok) {
        bench_side side[2] = {{round_of, &s[0], 0}, {round_of, &s[1], 0}};
        set_times(s);
        bench_alternate(side, 2, o->rounds);
        figure[0] = side[0].figure;
        figure[1] = side[1].figure / side[0].figure;
    } else {
        fprintf(stderr, "bench_small: %s, %lld: %s\n", name, (long long)size,
                lb_error_status(s[0].cx) ? lb_error(s[0].cx)
                                         : "no operands for it");
    }
    for (int i = 0; i < 2; i++)
        lb_close(s[i].cx);
    return ok;
}

static bool cell(const options *o, const entry *e, int64_t size, totals *t)
{
    double figure[2], again[2];
    if (!measure(o, e, size, figure)) return false;
    if (figure[1] > 1.1) {
        if (!measure(o, e, size, again)) return false;
        t->repeated++;
        if (again[1] < figure[1]) memcpy(figure, again, sizeof figure);
    }
    const bool slower = figure[1] > 1.1;
    printf(o->markdown ? " %.0f %.2f%s |" : " %10.0f %5.2f%s", figure[0],
           figure[1], slower ? "!" : " ");
    t->cells++;
    t->slower += slower;
    if (figure[1] > t->worst) {
        t->worst = figure[1];
        t->size = size;
        snprintf(t->name, sizeof t->name, "%s", e->label ? e->label : e->prim);
    }
    return true;
}

static bool line(const options *o, const entry *e, totals *t)
{
    const char *name = e->label ? e->label : e->prim;
    if (o->only && !strstr(name, o->only)) return true;
    printf(o->markdown ? "| %s |" : "%-28s", name);
    bool ok = true;
    for (int i = 0; i < o->n_sizes && ok; i++)
        ok = cell(o, e, o->size[i], t);
    printf("\n");
    fflush(stdout);
    return ok;
}

static bool all_lines(const options *o, totals *t)
{
    lb_ctx *cx = lb_open(NULL);
    const lb_prim *prim;
    bool ok = true;
    for (int k = 0; (prim = lb_primitive_at(cx, k)) && ok; k++) {
        bool listed = false;
        for (int i = 0; i < small_entries_n; i++)
            listed = listed || strcmp(small_entries[i].prim, prim->name) == 0;
        const entry e = {prim->name, NULL, NULL};
        if (!listed) ok = line(o, &e, t);
    }
    for (int i = 0; i < small_entries_n && ok; i++)
        ok = line(o, &small_entries[i], t);
    lb_close(cx);
    return ok;
}

static int read_sizes(const char *text, int64_t *size)
{
    int n = 0;
    for (char *end; n < MOST_SIZES && *text; text = *end ? end + 1 : end) {
        size[n] = strtoll(text, &end, 10);
        if (end == text || size[n] < 1) return 0;
        n++;
    }
    return n;
}

static bool read_options(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--markdown") == 0) {
            o->markdown = true;
            continue;
        }
        if (strcmp(argv[i], "--rounds") == 0)
            o->rounds = atoi(value);
        else if (strcmp(argv[i], "--only") == 0)
            o->only = value;
        else if (strcmp(argv[i], "--sizes") == 0)
            o->n_sizes = read_sizes(value, o->size);
        else
            return false;
        i++;
    }
    return o->rounds > 0 && o->n_sizes > 0;
}

int main(int argc, char **argv)
{
    options o = {.rounds = ROUNDS,
                 .size = {1, 64, 1024, 8192, 32768, 131072, 1000000},
                 .n_sizes = 7};
    totals t = {0};
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: bench_small [--rounds R] [--only NAME] "
                        "[--sizes N,N,...] [--markdown]\n");
        return 2;
    }
    printf(o.markdown ? "| call |" : "%-28s", "");
    for (int i = 0; i < o.n_sizes; i++)
        printf(o.markdown ? " %lld |" : " %10lld   x2 ", (long long)o.size[i]);
    printf("\n");
    for (int i = 0; i <= o.n_sizes && o.markdown; i++)
        printf(i < o.n_sizes ? "|---" : "|---|\n");
    if (!all_lines(&o, &t)) return 1;
    printf("%s%d cells, %d measured again, %d above 1.10; the largest is %.2f, "
           "of %s at %lld\n",
           o.markdown ? "\n" : "", t.cells, t.repeated, t.slower, t.worst,
           t.name, (long long)t.size);
    return 0;
}
