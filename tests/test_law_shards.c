/* test_law_shards.c - law 7: unshard(p(shard(x))) == p(x), for every primitive,
 * its samples, every format, a table of specs, and meshes of 1 to 8 threads.
 * Results are equal bit by bit, except that products and sums of floats over
 * ranks stay within their bound.
 *
 * Every rank runs everything; the ranks take turns in comparing. Specs are
 * parsed in relaxed mode, so that each sample is cut where possible. Ranks
 * synchronize once per primitive, not per sample: on a busy machine each
 * synchronization waits for the slowest rank.
 */
/* ctest: skip-tsan skip-asan skip-ref b:skip-arm64 */
#include <pthread.h>

#include "even_samples.h"
#include "laws.h"
#include "ranks.h"

static const char *const specs[] = {
    "P(x)",
    "P(None, x)",
    "P(x, y)",
    "P(y, x)",
    "P((x,y))",
    "P(None, (y,x))",
    "P(None, None, x)",
    "P()",
    "P(y, None, x)",
    "P((y,x), None)",
    "P(None, y, x)",
    "P(x, None, None, y)",
};
enum { SPECS = sizeof specs / sizeof *specs };

enum { PRIMS = 256 };

/* Number of comparisons: each rank counts its own, then they are added up. */
typedef struct {
    int64_t combinations, cut;
    int64_t cut_of[PRIMS]; /* of each primitive */
} tally;

typedef struct {
    const char *mesh;
    sample_format_list formats; /* of the library */
    tally all;                  /* rank 0 writes it */
} plan;

/* The state of one rank. */
typedef struct {
    const plan *plan;
    lb_ctx *cx;
    lb_mesh *mesh;
    const lb_prim *prim;
    int number;    /* of the primitive */
    bool refuses;  /* errors are part of it: ranks agree after each call */
    int64_t calls; /* calls so far: decides which rank compares */
    bool lost;     /* an error has been reported */
    tally tally;
} walk;

static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;

static void tell(const walk *w, bool ok, const sample *s,
                 const sample_format *f, int row, const char *why)
{
    char more[256];
    snprintf(more, sizeof more, "%s, %s, row %d, rank %d", w->plan->mesh,
             f->name, row, lb_mesh_rank(w->mesh));
    pthread_mutex_lock(&checking);
    law_check(ok, s, "shards", more, why);
    pthread_mutex_unlock(&checking);
}

/* ---- comparing ---------------------------------------------------------- */

static bool adds_floats(const lb_prim *prim, const lb_array *want)
{
    return sample_kind_of(want->dtype) == KIND_F &&
           (prim->compose || !strcmp(prim->name, "dot_general") ||
            !strcmp(prim->name, "conv_general_dilated") ||
            !strcmp(prim->name, "reduce_sum"));
}

/* 64 roundings of f32, relative to the sum of magnitudes (of a composed
 * primitive, which may divide by it: to the largest result); and one of each
 * result, by up to half a unit in its last place. */
static bool close_by(lb_ctx *cx, const lb_prim *prim, const sample *s,
                     lb_array *const *in, lb_array *got, lb_array *want,
                     lb_text *why)
{
    sample_params p = s->params;
    lb_array *size[2] = {law_size_of(cx, in[0]), NULL};
    if (s->n_in == 2) size[1] = law_size_of(cx, in[1]);
    const bool dot = !strcmp(prim->name, "dot_general");
    if (dot) p.dot.preferred = LB_F32, p.dot.precision = LB_PRECISION_HIGHEST;
    if (!strcmp(prim->name, "conv_general_dilated")) p.conv.preferred = LB_F32;
    lb_array *sum = prim->compose ? law_size_of(cx, want)
                                  : lb_bind(cx, prim, s->n_in, size, &p);
    lb_array *x = lb_convert(cx, got, LB_F64),
             *y = lb_convert(cx, want, LB_F64);
    x = lb_materialize(cx, x);
    y = lb_materialize(cx, y);
    sum = sum ? lb_materialize(cx, lb_convert(cx, sum, LB_F64)) : NULL;
    if (!sum || !x || !y || got->dtype != want->dtype) return false;
    const double *g = lb_data(x), *w = lb_data(y), *most = lb_data(sum);
    const double unit = got->dtype == LB_BF16  ? 0x1p-8
                        : got->dtype == LB_F16 ? 0x1p-11
                                               : 0x1p-24;
    const double part = law_off(s, dot);
    for (int64_t i = 0; i < lb_size(x); i++) {
        if (g[i] == w[i] || (isnan(g[i]) && isnan(w[i]))) continue;
        const double roundings = unit * (fabs(g[i]) + fabs(w[i]));
        if (fabs(g[i] - w[i]) <= part * most[i] + roundings) continue;
        snprintf(why->s, sizeof why->s, "element %lld is %.9g, not %.9g",
                 (long long)i, g[i], w[i]);
        return false;
    }
    return true;
}

static bool same_values(lb_ctx *cx, lb_array *got, lb_array *want, lb_text *why)
{
    if (!got || !want) return false;
    return sample_same(sample_plain(cx, got), sample_plain(cx, want), why);
}

/* ---- one call ----------------------------------------------------------- */

/* Operands of a sample, in f where they can be. */
static bool dressed(lb_ctx *cx, const sample *s, const sample_format *f,
                    lb_array **in, bool *any)
{
    *any = !f->fmt;
    if (!law_operands(cx, s, in)) return false;
    for (int i = 0; i < s->n_in; i++) {
        if (!f->fmt || !sample_takes(f, &s->in[i])) continue;
        lb_array *a = sample_views[0].make(cx, f, &s->in[i], (uint64_t)i + 7);
        if (!a) return false;
        if (!law_suits(s, i, a)) continue;
        in[i] = a;
        *any = true;
    }
    return true;
}

static bool is_cut(const lb_array *a)
{
    const lb_spec spec = lb_sharding_of(a);
    const lb_grid *grid = lb_mesh_grid(lb_mesh_of(a));
    return !lb_spec_equal(grid, &spec, &(lb_spec){0});
}

/* Blocks are never cut: refused (see test_shard). */
static void forgive(walk *w)
{
    lb_mesh_agree(w->mesh);
    if (lb_error_status(w->cx) == LB_E_SHAPE &&
        strstr(lb_error(w->cx), "block"))
        lb_clear(w->cx);
}

static void compare(walk *w, const sample *s, const sample_format *f, int row,
                    lb_array *const *in, lb_array *got, bool cuts)
{
    lb_text why = {""};
    lb_array *want = got ? law_bind(w->cx, w->prim, s, in) : NULL;
    const bool ok = same_values(w->cx, got, want, &why) ||
                    (got && want && adds_floats(w->prim, want) &&
                     close_by(w->cx, w->prim, s, in, got, want, &why));
    w->tally.combinations++;
    w->tally.cut += cuts;
    w->tally.cut_of[w->number % PRIMS] += cuts;
    if (!lb_error_status(w->cx)) tell(w, ok, s, f, row, why.s);
}

static void one_call(walk *w, const sample *s, const sample_format *f, int row)
{
    lb_array *in[SAMPLE_MAX_IN], *cut[SAMPLE_MAX_IN];
    lb_ctx *cx = w->cx;
    bool any, cuts = false;
    lb_enter(cx);
    bool ok = dressed(cx, s, f, in, &any);
    /* Packed arrays without elements become dense when joined. */
    if (ok && s->n_in && s->in[0].scaled && !lb_size(in[0])) any = false;
    for (int i = 0; i < s->n_in && ok && any; i++) {
        lb_spec_report r = {0};
        /* Operands by different rows of the table: some agree, some do not. */
        const char *spec = specs[(row + i * (row % 3)) % SPECS];
        cut[i] = lb_shard_relaxed(cx, w->mesh, in[i], spec, &r);
        ok = cut[i] != NULL;
        cuts = cuts || (ok && is_cut(cut[i]));
    }
    if (ok && any && s->n_in) {
        lb_array *got = lb_unshard(cx, law_bind(cx, w->prim, s, cut));
        if (w->calls++ % lb_mesh_size(w->mesh) == lb_mesh_rank(w->mesh))
            compare(w, s, f, row, in, got, cuts);
    }
    if (w->refuses) forgive(w);
    if (lb_error_status(cx) && !w->lost) {
        tell(w, false, s, f, row, lb_error(cx));
        w->lost = true; /* and skips the rest of the samples */
    }
    lb_leave(cx);
}

/* ---- all of them -------------------------------------------------------- */

/* There are many built-in samples: each uses a few rows of the table, the next
 * one the next few. */
static void one_list(walk *w, const sample_list *list, bool all)
{
    const int formats = w->plan->formats.n;
    for (int i = 0; i < list->n; i++)
        for (int f = -1; f < formats; f++) {
            const sample_format *fmt =
                f < 0 ? &sample_dense : &w->plan->formats.item[f];
            const int turn = i + (f + 1) * 5;
            for (int row = 0; row < SPECS; row++) {
                const bool now =
                    all ? row % (f < 0 ? 1 : 6) == turn % (f < 0 ? 1 : 6)
                        : row == turn % SPECS && (f < 0 || turn % 12 == 0);
                if (now || law_run.all) one_call(w, &list->item[i], fmt, row);
            }
        }
    /* The rank with the error has printed its sample. */
    if (!lb_mesh_agree(w->mesh) && !w->lost && list->n)
        tell(w, false, &list->item[0], &sample_dense, -1, lb_error(w->cx));
    lb_clear(w->cx);
    w->lost = false;
}

static int ranks(lb_comm *comm, void *user)
{
    plan *p = user;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, p->mesh, NULL);
    walk w = {.plan = p, .cx = cx, .mesh = mesh};
    for (int k = 0; (w.prim = lb_primitive_at(cx, k)); k++) {
        if (k % law_run.shares != law_run.share) continue;
        w.number = k;
        w.refuses = !strcmp(w.prim->name, "quantize");
        sample_list list = samples_of(w.prim->name, SAMPLES_SMALL);
        one_list(&w, &list, false);
        samples_free(&list);
        sample_list even = even_samples_of(w.prim->name);
        one_list(&w, &even, true);
        samples_free(&even);
    }
    const bool ok = comm->all_reduce(
        comm, LB_COMM_SUM, LB_I64, sizeof w.tally / sizeof(int64_t), &w.tally);
    if (comm->rank == 0) p->all = w.tally;
    lb_mesh_close(mesh);
    lb_close(cx);
    return ok ? 0 : 1;
}

/* Every primitive with operands must have been sharded. */
static void check_cut(const plan *p)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    const lb_prim *prim;
    for (int k = 0; (prim = lb_primitive_at(cx, k)); k++) {
        if (k % law_run.shares != law_run.share || !prim->n_in) continue;
        if (check_fails(p->all.cut_of[k % PRIMS] > 0))
            fprintf(stderr, "%s: nothing was cut on %s\n", prim->name, p->mesh);
    }
    lb_close(cx);
}

static int tests(int argc, char **argv)
{
    static const char *const meshes[] = {"x=1", "x=2", "x=2,y=2", "x=4",
                                         "x=2,y=4"};
    static const int size[] = {1, 2, 4, 4, 8};
    law_args(argc, argv);
    law_scaled(); /* before there are threads */
    for (int m = 0; m < 5; m++) {
        if (!ranks_are(size[m]) || (law_run.few && m != 2)) continue;
        plan p = {.mesh = meshes[m], .formats = sample_formats_of(NULL)};
        CHECK_EQ_I(ranks_on(size[m], ranks, &p), 0);
        if (ranks_first())
            printf("%s: %lld combinations, %lld of them cut\n", p.mesh,
                   (long long)p.all.combinations, (long long)p.all.cut);
        if (size[m] > 1 && ranks_first()) check_cut(&p);
        sample_formats_free(&p.formats);
    }
    return check_report("law 7, shards");
}

int main(int argc, char **argv)
{
    return ranks_main(argc, argv, tests);
}
