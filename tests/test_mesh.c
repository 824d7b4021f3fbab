/* test_mesh.c - collectives, and how ranks learn of one another's errors. */
/* ctest: skip-ref */
#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "ranks.h"
#include "shard/mesh.h"

/* CHECK is for one thread at a time. */
static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;

static void safely(bool ok, int line, const char *what)
{
    pthread_mutex_lock(&checking);
    check_true(ok, __FILE__, line, what);
    pthread_mutex_unlock(&checking);
}
#define SAFELY(OK) safely((OK), __LINE__, #OK)

static const lb_options quiet = {.threads = 1};

/* ---- the engine --------------------------------------------------------- */

static int reduces(lb_comm *c, void *user)
{
    (void)user;
    enum { N = 10007 };
    float *f = malloc(N * sizeof *f);
    int8_t *b = malloc(N);
    for (int i = 0; i < N; i++) {
        f[i] = (float)(i + c->rank);
        b[i] = (int8_t)(i * 3 + c->rank);
    }
    bool ok = c->all_reduce(c, LB_COMM_SUM, LB_F32, N, f) &&
              c->all_reduce(c, LB_COMM_SUM, LB_I8, N, b);
    for (int i = 0; i < N && ok; i++) {
        const int n = c->size, sum = n * (n - 1) / 2;
        ok = f[i] == (float)(n * i + sum) &&
             b[i] == (int8_t)(uint8_t)(n * i * 3 + sum);
    }
    SAFELY((ok));
    double most[3] = {c->rank, -c->rank, 7}, least[1] = {c->rank};
    ok = c->all_reduce(c, LB_COMM_MAX, LB_F64, 3, most) &&
         c->all_reduce(c, LB_COMM_MIN, LB_F64, 1, least);
    SAFELY((ok && most[0] == c->size - 1 && most[1] == 0 && most[2] == 7 &&
            least[0] == 0));
    free(f);
    free(b);
    return 0;
}

static int gathers(lb_comm *c, void *user)
{
    (void)user;
    int mine[2] = {c->rank, 100 + c->rank},
        *all = malloc((size_t)c->size * sizeof mine);
    bool ok = c->all_gather(c, sizeof mine, mine, all);
    for (int r = 0; r < c->size && ok; r++)
        ok = all[2 * r] == r && all[2 * r + 1] == 100 + r;
    SAFELY((ok));
    free(all);
    return 0;
}

/* Even and odd ranks, each a group; and a group of that group. */
static int splits(lb_comm *c, void *user)
{
    (void)user;
    lb_comm *half = c->split(c, c->rank % 2);
    SAFELY((half && half->size == (c->size + 1 - c->rank % 2) / 2 &&
            half->rank == c->rank / 2));
    if (!half) return 1;
    int64_t sum = c->rank;
    bool ok = half->all_reduce(half, LB_COMM_SUM, LB_I64, 1, &sum);
    int64_t want = 0;
    for (int r = c->rank % 2; r < c->size; r += 2)
        want += r;
    SAFELY((ok && sum == want));
    lb_comm *alone = half->split(half, half->rank);
    SAFELY((alone && alone->size == 1 && alone->rank == 0));
    if (alone) alone->close(alone);
    half->close(half);
    return 0;
}

static int leaves(lb_comm *c, void *user)
{
    (void)user;
    if (c->rank == 1) return 5;
    int32_t x = 1;
    const bool ok = c->all_reduce(c, LB_COMM_SUM, LB_I32, 1, &x);
    SAFELY((!ok && strstr(c->why, "rank 1")));
    SAFELY((!c->split(c, 0)));
    return 0;
}

static void engine(void)
{
    for (int n = 1; n <= 8; n++) {
        CHECK_EQ_I(ranks_on(n, reduces, NULL), 0);
        CHECK_EQ_I(ranks_on(n, gathers, NULL), 0);
        CHECK_EQ_I(ranks_on(n, splits, NULL), 0);
    }
    CHECK_EQ_I(lb_mesh_run(3, leaves, NULL), 5);
    CHECK_EQ_I(lb_mesh_run(0, gathers, NULL), -1);
    CHECK_EQ_I(lb_mesh_run(2, NULL, NULL), -1);
}

/* ---- meshes ------------------------------------------------------------- */

static void grids(lb_ctx *cx)
{
    lb_grid g;
    CHECK(lb_grid_parse(cx, "dp=2,tp=4", &g) && g.n == 2);
    CHECK(lb_grid_size(&g) == 8 && !strcmp(g.axis[1].name, "tp"));
    CHECK(lb_grid_parse(cx, " a_1 = 3 , b=1", &g) && lb_grid_size(&g) == 3);
    static const char *const bad[] = {
        "",
        "dp",
        "dp=",
        "dp=0",
        "dp=2,",
        "dp=2 tp=2",
        "=2",
        "dp=2,dp=2",
        "2=2",
        "dp=-1",
        "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1",
        "a=1024,b=1024,c=2",
        "a=99999999999999999999",
        "a234567890123456789012345678901234567890=2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!lb_grid_parse(cx, bad[i], &g));
        CHECK(lb_error_status(cx) == LB_E_ARG && lb_error(cx)[0]);
        lb_clear(cx);
    }
}

static int opens(lb_comm *c, void *user)
{
    lb_ctx *cx = lb_open(&quiet);
    lb_mesh *m = lb_mesh_open(cx, c, user, NULL);
    SAFELY((m && lb_mesh_rank(m) == c->rank && lb_mesh_size(m) == c->size));
    SAFELY((lb_mesh_agree(m)));
    /* Each axis by itself, and both. */
    for (unsigned mask = 0; m && mask < 1u << m->grid.n; mask++) {
        int64_t one = 1, ranks = 0;
        bool ok = lb_mesh_reduce(m, "test", mask, LB_COMM_SUM, LB_I64, 1, &one);
        SAFELY((ok && one == lb_grid_ranks(&m->grid, mask)));
        int32_t all[64], mine = c->rank;
        ok = lb_mesh_gather(m, "test", mask, sizeof mine, &mine, all);
        for (int i = 0; i < one && ok; i++)
            ranks += all[i] == lb_mesh_member(m, mask, i);
        SAFELY((ok && ranks == one));
    }
    /* Sums of 16-bit values are exact: 1 + 3 * 2^-9 is 1 + 2^-7 in bf16. */
    uint16_t bf = c->rank ? 0x3b40 : 0x3f80;
    bool ok = lb_mesh_reduce(m, "test", ~0u, LB_COMM_SUM, LB_BF16, 1, &bf);
    SAFELY((ok && (c->size != 3 || bf == 0x3f81)));
    SAFELY((lb_mesh_close(m) && !lb_error_status(cx)));
    lb_close(cx);
    return 0;
}

/* Long data, in the order of ranks: the same bits as adding them sequentially.
 */
static int in_order(lb_comm *c, void *user)
{
    (void)user;
    enum { N = (1 << 20) + 3 };
    lb_ctx *cx = lb_open(&quiet);
    lb_mesh *m =
        lb_mesh_open(cx, c, "x=4", &(lb_mesh_options){.deterministic = true});
    float *f = malloc(N * sizeof *f);
    for (int i = 0; i < N; i++)
        f[i] = 1.0f / (float)(1 + i % 1000 + c->rank * 7);
    bool ok = lb_mesh_reduce(m, "test", ~0u, LB_COMM_SUM, LB_F32, N, f);
    for (int i = 0; i < N && ok; i++) {
        float want = 1.0f / (float)(1 + i % 1000);
        for (int r = 1; r < 4; r++)
            want += 1.0f / (float)(1 + i % 1000 + r * 7);
        ok = f[i] == want;
    }
    const lb_traffic t = lb_mesh_traffic(m);
    SAFELY((ok && t.reduces == 1 && t.reduce_bytes == 4 * N));
    free(f);
    lb_mesh_close(m);
    lb_close(cx);
    return 0;
}

/* ---- errors ------------------------------------------------------------- */

/* Rank 2 fails before the others reach the collective; all get its error. */
static int fails(lb_comm *c, void *user)
{
    const bool again = *(const bool *)user;
    lb_ctx *cx = lb_open(&quiet);
    lb_mesh *m = lb_mesh_open(cx, c, "x=4", NULL);
    if (c->rank == 2) {
        lb_zeros(cx, LB_F32, (lb_shape){1, {-7}});
        SAFELY((lb_error_status(cx) == LB_E_SHAPE));
    } else {
        int32_t x = 1; /* it does not exist */
        SAFELY((!lb_mesh_reduce(m, "a sum", ~0u, LB_COMM_SUM, LB_I32, 1, &x)));
        SAFELY((!lb_mesh_reduce(m, "a sum", ~0u, LB_COMM_SUM, LB_I32, 1,
                                &x))); /* and nobody waits */
    }
    if (again) {
        SAFELY((!lb_mesh_agree(m)));
        SAFELY((strstr(lb_error(cx), "rank 2 of 4: ")));
        lb_clear(cx);
        SAFELY((lb_mesh_agree(m)));
        int32_t x = 1;
        SAFELY((lb_mesh_reduce(m, "a sum", ~0u, LB_COMM_SUM, LB_I32, 1, &x) &&
                x == 4));
        SAFELY((lb_mesh_close(m)));
    } else {
        SAFELY((!lb_mesh_close(m)));
        SAFELY((lb_error_status(cx) == LB_E_SHAPE &&
                strstr(lb_error(cx), "rank 2 of 4: ") &&
                strstr(lb_error(cx), "-7")));
    }
    lb_close(cx);
    return 0;
}

/* An error that all ranks have names none of them. */
static int all_fail(lb_comm *c, void *user)
{
    (void)user;
    lb_ctx *cx = lb_open(&quiet);
    lb_mesh *m = lb_mesh_open(cx, c, "x=3", NULL);
    lb_zeros(cx, LB_F32, (lb_shape){1, {-7}});
    SAFELY((!lb_mesh_agree(m) && !strstr(lb_error(cx), "rank 0")));
    lb_clear(cx);
    lb_mesh_close(m);
    lb_close(cx);
    return 0;
}

static int strays(lb_comm *c, void *user)
{
    (void)user;
    lb_ctx *cx = lb_open(&quiet);
    lb_mesh *m = lb_mesh_open(cx, c, "x=3", NULL);
    SAFELY((!lb_mesh_meet(m, c->rank == 1 ? "here" : "there")));
    SAFELY((lb_error_status(cx) == LB_E_MESH));
    lb_mesh_close(m);
    lb_close(cx);
    return 0;
}

static int leaves_mesh(lb_comm *c, void *user)
{
    (void)user;
    lb_ctx *cx = lb_open(&quiet);
    lb_mesh *m = lb_mesh_open(cx, c, "x=3", NULL);
    if (c->rank != 1) {
        SAFELY((!lb_mesh_agree(m)));
        SAFELY((strstr(lb_error(cx), "rank 1 has ended")));
        lb_mesh_close(m);
        lb_close(cx);
    }
    if (c->rank == 1) { /* arrays it leaves behind are its own */
        lb_mesh *own = m;
        for (lb_layer **at = &cx->layer; *at; at = &(*at)->below)
            if (*at == &own->layer) {
                *at = own->layer.below;
                break;
            }
        own->cx = NULL;
        lb_mesh_unref(own);
        lb_close(cx);
    }
    return 0;
}

static int cannot_open(lb_comm *c, void *user)
{
    (void)user;
    lb_ctx *cx = lb_open(&quiet);
    SAFELY((!lb_mesh_open(cx, c, c->rank ? "x=2" : "x=3", NULL)));
    SAFELY((strstr(lb_error(cx), c->rank ? "another rank" : "has 3")));
    lb_close(cx);
    return 0;
}

static int tests(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    lb_ctx *cx = lb_open(&quiet);
    bool again = false;
    engine();
    grids(cx);
    CHECK_EQ_I(ranks_on(1, opens, "x=1"), 0);
    CHECK_EQ_I(ranks_on(3, opens, "x=3"), 0);
    CHECK_EQ_I(ranks_on(8, opens, "dp=2,tp=4"), 0);
    CHECK_EQ_I(ranks_on(8, opens, "a=2,b=1,c=2,d=2"), 0);
    CHECK_EQ_I(ranks_on(4, in_order, NULL), 0);
    CHECK_EQ_I(ranks_on(4, fails, &again), 0);
    again = true;
    CHECK_EQ_I(ranks_on(4, fails, &again), 0);
    CHECK_EQ_I(ranks_on(3, all_fail, NULL), 0);
    CHECK_EQ_I(ranks_on(3, strays, NULL), 0);
    CHECK_EQ_I(lb_mesh_run(3, leaves_mesh, NULL), 0);
    CHECK_EQ_I(ranks_on(2, cannot_open, NULL), 0);
    lb_close(cx);
    return check_report("mesh");
}

int main(int argc, char **argv)
{
    return ranks_main(argc, argv, tests);
}
