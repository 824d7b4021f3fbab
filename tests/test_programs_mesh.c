/* test_programs_mesh.c - compiled functions of sharded arrays: results have
 * the same bits and the same sharding as eagerly, on every mesh; random
 * programs, too (more of them with `--all`).
 */
/* ctest: long=--all skip-tsan skip-asan skip-ref */
#include <pthread.h>

#include "check.h"
#include "core/core.h"
#include "random_program.h"
#include "ranks.h"
#include "samples.h"

static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;

static void say(bool ok, const char *what, const char *more, const char *why)
{
    pthread_mutex_lock(&checking);
    if (check_fails(ok)) fprintf(stderr, "%s: %s: %s\n", what, more, why);
    pthread_mutex_unlock(&checking);
}

enum { MAX_ARGS = 5, MAX_OUT = 4, RUNS = 3, SOME = 200, ALL = 4000 };
static uint64_t random_programs = SOME;

typedef struct program {
    const char *name;
    lb_fn_many fn;
    int n, n_out;
    struct {
        lb_shape shape;
        const char *spec;   /* NULL: replicated */
        const char *format; /* NULL: dense */
    } arg[MAX_ARGS];
} program;

/* What a function needs besides its arguments. */
typedef struct world {
    lb_mesh *mesh;
    lb_optimizer *o;
} world;

/* ---- functions ----------------------------------------------------------- */

static bool elements(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                     int n_out, void *user)
{
    (void)n, (void)n_out, (void)user;
    lb_array *y = lb_add(cx, lb_mul(cx, a[0], a[1]), a[2]);
    out[0] = lb_gelu(cx, y);
    out[1] = lb_sub(cx, out[0], lb_reduce_max(cx, y, NULL));
    out[2] = lb_softmax(cx, y, -1);
    return true;
}

static bool products(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                     int n_out, void *user)
{
    (void)n, (void)n_out, (void)user;
    lb_array *h = lb_silu(cx, lb_matmul(cx, a[0], a[1]));
    h = lb_mul(cx, h, lb_matmul(cx, a[0], a[2]));
    out[0] = lb_matmul(cx, h, a[3]);
    out[1] = lb_rms_norm(cx, out[0], lb_reduce_sum(cx, a[0], LB_AXES(0)), 1e-5);
    return true;
}

/* Shards, reshards and gathers on the way. */
static bool moves(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                  int n_out, void *user)
{
    const world *w = user;
    (void)n, (void)n_out;
    out[0] = lb_exp(cx, lb_unshard(cx, a[0]));
    out[1] = lb_shard(cx, w->mesh, lb_neg(cx, out[0]), "P(tp)");
    out[2] = lb_reshard(cx, a[0], "P(None, dp)");
    out[3] = lb_unshard(cx, lb_mul(cx, a[0], a[0]));
    return true;
}

static lb_array *loss(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    const lb_quant_config nf4 = {.format = "nf4", .block_size = 16};
    lb_array *w = lb_straight_through(cx, a[0], &nf4);
    lb_array *h = lb_gelu(cx, lb_add(cx, lb_matmul(cx, a[3], w), a[2]));
    lb_array *y = lb_matmul(cx, h, a[1]);
    return lb_mean(cx, lb_mul(cx, y, y), NULL, false);
}

static bool trains(lb_ctx *cx, lb_array *const *a, int n, lb_array **out,
                   int n_out, void *user)
{
    const world *w = user;
    lb_array *g[3], *p[3] = {a[0], a[1], a[2]};
    (void)n_out;
    out[0] = lb_value_and_grad(cx, loss, a, n, user, g, 3);
    const bool ok = out[0] && lb_optimizer_step(w->o, p, g);
    for (int i = 0; i < 3; i++)
        out[1 + i] = p[i];
    return ok;
}

static const program programs[] = {
    {"elements",
     elements,
     3,
     3,
     {{{2, {8, 16}}, "P(dp, tp)", NULL},
      {{2, {8, 1}}, "P(dp)", NULL},
      {{1, {16}}, NULL, NULL}}},
    {"elements of nf4",
     elements,
     3,
     3,
     {{{2, {8, 256}}, "P(dp)", "nf4"},
      {{2, {8, 256}}, "P(dp)", NULL},
      {{0, {0}}, NULL, NULL}}},
    {"products",
     products,
     4,
     2,
     {{{2, {8, 64}}, "P(dp)", NULL},
      {{2, {64, 128}}, "P(None, tp)", NULL},
      {{2, {64, 128}}, "P(None, tp)", NULL},
      {{2, {128, 64}}, "P(tp)", NULL}}},
    {"products of packed weights",
     products,
     4,
     2,
     {{{2, {8, 64}}, "P(dp)", NULL},
      {{2, {64, 512}}, "P(None, tp)", "nf4"},
      {{2, {64, 512}}, NULL, "int8"},
      {{2, {512, 64}}, "P(tp)", "nf4"}}},
    {"moves", moves, 1, 4, {{{2, {16, 8}}, "P(tp, dp)", NULL}}},
    {"trains",
     trains,
     4,
     4,
     {{{2, {64, 1024}}, "P(None, tp)", NULL},
      {{2, {1024, 8}}, "P(tp)", NULL},
      {{1, {1024}}, "P(tp)", NULL},
      {{2, {8, 64}}, "P(dp)", NULL}}},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* ---- comparing ----------------------------------------------------------- */

static bool same(lb_ctx *cx, const lb_mesh *mesh, lb_array *got, lb_array *want,
                 lb_text *why)
{
    if (!got || !want) return false;
    const lb_spec is = lb_sharding_of(got), of = lb_sharding_of(want);
    if (lb_size(want) && /* specs of empty arrays may differ */
        (lb_is_sharded(got) != lb_is_sharded(want) ||
         !lb_spec_equal(lb_mesh_grid(mesh), &is, &of))) {
        snprintf(why->s, sizeof why->s, "sharded in another way");
        return false;
    }
    return sample_same(sample_plain(cx, lb_unshard(cx, got)),
                       sample_plain(cx, lb_unshard(cx, want)), why);
}

static bool arguments(lb_ctx *cx, lb_mesh *mesh, const program *p, lb_array **a)
{
    for (int i = 0; i < p->n; i++) {
        a[i] = lb_random_normal(cx, (lb_key){8, (uint64_t)i}, LB_F32,
                                p->arg[i].shape);
        if (p->arg[i].format)
            a[i] = lb_quantize(cx, a[i],
                               &(lb_quant_config){.format = p->arg[i].format,
                                                  .block_size = 16 * (i != 2)});
        if (p->arg[i].spec) a[i] = lb_shard(cx, mesh, a[i], p->arg[i].spec);
        if (!a[i]) return false;
    }
    return true;
}

static void one_program(lb_ctx *cx, lb_mesh *mesh, const program *p,
                        const char *grid)
{
    lb_array *a[MAX_ARGS], *want[MAX_OUT] = {NULL}, *got[MAX_OUT] = {NULL};
    const lb_optimizer_config c = {
        .method = LB_ADAMW, .decay = 0.01, .clip_norm = 1};
    world eager = {.mesh = mesh}, other = {.mesh = mesh};
    lb_text why = {""};
    lb_enter(cx);
    bool ok = arguments(cx, mesh, p, a);
    if (ok && p->fn == trains) {
        eager.o = lb_optimizer_open(cx, &c, a, 3);
        other.o = lb_optimizer_open(cx, &c, a, 3);
    }
    lb_compiled *f = lb_compile_many(cx, p->fn, p->n_out, &other,
                                     &(lb_compile_options){.check = true});
    for (int run = 0; run < RUNS && ok; run++) {
        ok = p->fn(cx, a, p->n, want, p->n_out, &eager) &&
             lb_run_many(f, a, p->n, got);
        for (int i = 0; i < p->n_out && ok; i++)
            ok = same(cx, mesh, got[i], want[i], &why);
        for (int i = 0; i < 3 && ok && p->fn == trains; i++)
            a[i] = got[1 + i];
    }
    say(ok, p->name, grid, lb_error_status(cx) ? lb_error(cx) : why.s);
    say(lb_compiled_stats_of(f).runs == RUNS && !lb_compiled_stats_of(f).eager,
        p->name, grid, "it ran eagerly");
    lb_compiled_close(f);
    lb_optimizer_close(eager.o);
    lb_optimizer_close(other.o);
    lb_mesh_agree(mesh);
    lb_clear(cx);
    lb_leave(cx);
}

/* ---- random programs ----------------------------------------------------- */

/* Arguments sharded in different ways, some not at all. Only programs that run
 * eagerly are compared: which rank fails first differs. */
static void random_one(lb_ctx *cx, lb_mesh *mesh, uint64_t number,
                       const sample_format_list *formats, const char *grid)
{
    static const char *const spec[] = {
        NULL,       "P(dp)",      "P(tp)",      "P(dp,tp)",
        "P(tp,dp)", "P((dp,tp))", "P(None,tp)", "P(None,None,dp)"};
    lb_array *args[PROGRAM_VALUES], *want[PROGRAM_RESULTS] = {NULL},
                                    *got[PROGRAM_RESULTS] = {NULL};
    random_program p;
    lb_text why = {""}, name;
    snprintf(name.s, sizeof name.s, "random program %d", (int)number);
    const lb_fn_many fn =
        number % 3 ? random_program_run : random_program_gradients;
    lb_enter(cx);
    random_program_make(cx, number, &p);
    bool made = random_program_args(cx, &p, number, formats, args);
    p.args = args;
    for (int i = 0; i < p.n_args && made; i++) {
        lb_spec_report r = {0};
        const char *s = spec[(number + (uint64_t)i * 5) % 8];
        if (s) made = (args[i] = lb_shard_relaxed(cx, mesh, args[i], s, &r));
    }
    made = lb_mesh_agree(mesh) && made &&
           fn(cx, args, p.n_args, want, p.n_results, &p);
    if (lb_mesh_agree(mesh) && made) {
        lb_compiled *f = lb_compile_many(cx, fn, p.n_results, &p, NULL);
        for (int run = 0; run < 2; run++) {
            bool ok = lb_run_many(f, args, p.n_args, got);
            for (int i = 0; i < p.n_results && ok; i++)
                ok = same(cx, mesh, got[i], want[i], &why);
            say(ok, name.s, grid, lb_error_status(cx) ? lb_error(cx) : why.s);
            if (!lb_mesh_agree(mesh)) break;
        }
        lb_compiled_close(f);
    }
    lb_mesh_agree(mesh);
    lb_clear(cx);
    lb_leave(cx);
}

static int ranks(lb_comm *comm, void *user)
{
    const char *axes = user;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, axes, NULL);
    for (int i = 0; i < PROGRAMS; i++)
        one_program(cx, mesh, &programs[i], axes);
    sample_format_list formats = sample_formats_of(cx);
    for (uint64_t k = 0; k < random_programs; k++)
        random_one(cx, mesh, k, &formats, axes);
    sample_formats_free(&formats);
    say(lb_mesh_close(mesh), "close", axes, lb_error(cx));
    lb_close(cx);
    return 0;
}

static int tests(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--all") == 0) random_programs = ALL;
    static const struct {
        int ranks;
        char mesh[16];
    } of[] = {{1, "dp=1,tp=1"}, {2, "dp=1,tp=2"}, {2, "dp=2,tp=1"},
              {4, "dp=2,tp=2"}, {4, "dp=1,tp=4"}, {8, "dp=2,tp=4"}};
    for (int m = 0; m < 6; m++) {
        char mesh[16];
        if (!ranks_are(of[m].ranks)) continue;
        memcpy(mesh, of[m].mesh, sizeof mesh);
        CHECK_EQ_I(ranks_on(of[m].ranks, ranks, mesh), 0);
    }
    return check_report("compiled functions of sharded arrays");
}

int main(int argc, char **argv)
{
    return ranks_main(argc, argv, tests);
}
