/* test_amx.c - level amx: products with every format have the bits of level
 * avx512vnni, at every precision, in both orientations, for shapes on either
 * side of what a tile, a panel and a block of scales hold; and which kernels
 * they use. On a machine without AMX by a model of its tiles
 * (src/kernels/x86/intrin_amx.h).
 */
/* ctest: simde amx skip-tsan skip-ref */
#include <stdlib.h>

#include "base/cpu.h"
#include "laws.h"

enum { MOST_M = 70, MOST_K = 1130, MOST_N = 65 };

/* (m, k) @ (k, n) */
static const struct {
    int64_t k, n;
} sizes[] = {{1, 1}, {32, 33}, {96, 40}, {100, 65}, {288, 48}, {1130, 36}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };
static const int64_t rows[] = {1, 3, 8, 13, 17, 33, MOST_M};
enum { N_ROWS = sizeof rows / sizeof *rows };

static lb_ctx *amx, *vnni;

static float *numbers(int64_t n, uint64_t seed)
{
    const sample_operand o = {LB_F32, LB_SHAPE(n), VALUES_TAME, 0, 0, false};
    float *data = malloc((size_t)(n + 1) * sizeof *data);
    if (!data) abort();
    sample_fill(&o, seed, n, data);
    return data;
}

typedef struct {
    const sample_format *f;
    int64_t m, k, n;
    bool kn, swapped;
    lb_precision precision;
} product;

static lb_dot_dims dims_of(const product *p)
{
    const lb_axes x = {1, {1}}, w = {1, {p->kn ? 0 : 1}};
    return (lb_dot_dims){.lhs_contract = p->swapped ? w : x,
                         .rhs_contract = p->swapped ? x : w,
                         .precision = p->precision};
}

/* Of one level; NULL: the format does not take that shape. */
static float *multiply(lb_ctx *cx, const product *p, const float *xs,
                       const float *ws, char *how, size_t room)
{
    const lb_shape shape = p->kn ? LB_SHAPE(p->k, p->n) : LB_SHAPE(p->n, p->k);
    const sample_operand o = {LB_F32, shape, VALUES_TAME, 0, 0, false};
    float *to = NULL;
    if (!sample_takes(p->f, &o)) return NULL;
    lb_enter(cx);
    lb_array *x = lb_from(cx, LB_F32, LB_SHAPE(p->m, p->k), xs);
    lb_array *w = p->f->make(cx, p->f, LB_F32, shape, ws);
    const lb_dot_dims d = dims_of(p);
    lb_array *in[2] = {p->swapped ? w : x, p->swapped ? x : w};
    const char *text = lb_explain(cx, "dot_general", in, 2, &d);
    snprintf(how, room, "%s", text ? text : "");
    lb_array *y = lb_dot_general(cx, in[0], in[1], &d);
    const size_t size = (size_t)(p->m * p->n) * sizeof *to;
    to = malloc(size);
    if (!to) abort();
    if (check_fails(y && lb_read(cx, y, to, size))) memset(to, 0, size);
    lb_leave(cx);
    return to;
}

static int with_tiles;

static void check_product(const product *p, const float *xs, const float *ws)
{
    if (check_thins()) return;
    char how[2][1024];
    float *a = multiply(vnni, p, xs, ws, how[0], sizeof how[0]);
    float *b = multiply(amx, p, xs, ws, how[1], sizeof how[1]);
    const size_t size = (size_t)(p->m * p->n) * sizeof *a;
    if (a && b && check_fails(memcmp(a, b, size) == 0)) {
        int64_t at = 0;
        while (!memcmp(a + at, b + at, sizeof *a))
            at++;
        fprintf(stderr,
                "%s, M %lld, K %lld, N %lld%s: number %lld is %a, not %a\n  "
                "%s\n  %s\n",
                p->f->name, (long long)p->m, (long long)p->k, (long long)p->n,
                p->swapped ? ", swapped" : "", (long long)at, (double)b[at],
                (double)a[at], how[0], how[1]);
    }
    CHECK(!strstr(how[0], " amx"));
    if (strstr(how[1], " amx")) with_tiles++;
    free(a);
    free(b);
}

static void check_format(const sample_format *f)
{
    float *xs = numbers((int64_t)MOST_M * MOST_K, 5);
    float *ws = numbers((int64_t)MOST_K * MOST_N, 6);
    static int cases;
    product p = {.f = f};
    for (int s = 0; s < N_SIZES; s++)
        for (int i = 0; i < N_ROWS; i++)
            for (int w = 0; w < 4; w++) {
                p.m = rows[i];
                p.k = sizes[s].k;
                p.n = sizes[s].n;
                p.kn = w & 1;
                p.swapped = w & 2;
                /* Each with every other, but not all with all. */
                p.precision =
                    (lb_precision)(LB_PRECISION_HIGHEST + (s + i + w) % 3);
                if (++cases % 3 == 0) check_product(&p, xs, ws);
            }
    free(xs);
    free(ws);
}

/* Without the system's permission the level below is used, and others need
 * none. */
static void check_permission(void)
{
    for (lb_level l = LB_LEVEL_REF; l <= LB_LEVEL_AVX512VNNI; l++)
        CHECK_EQ_I(lb_level_permitted(l), l);
    CHECK_EQ_I(lb_level_permitted(LB_LEVEL_AMX), LB_LEVEL_AMX);
}

/* Formats of one digit, and of two, use tiles from so many rows on. */
static void check_choices(const sample_format *f)
{
    const struct {
        const char *format, *fast, *fastest;
    } want[] = {{"int8", "dot i8x2 amx", "dot i8 amx"},
                {"ternary", "dot i8x2 amx", "dot i8 amx"},
                {"binary", "dot i8x2 amx", "dot i8 amx"},
                {"nf4", "dot i16 rows amx", " amx"},
                {"q8_0", "dot i16 rows amx", "dot i8 amx"}};
    float *xs = numbers(32 * 256, 5), *ws = numbers(256 * 256, 6);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        if (strcmp(f->name, want[i].format) != 0) continue;
        for (int w = 0; w < 4; w++) {
            const bool fast = w & 2;
            const product p = {f,
                               32,
                               256,
                               256,
                               w & 1,
                               false,
                               fast ? LB_PRECISION_FAST : LB_PRECISION_FASTEST};
            char how[1024];
            free(multiply(amx, &p, xs, ws, how, sizeof how));
            const char *name = fast ? want[i].fast : want[i].fastest;
            if (check_fails(strstr(how, name) != NULL))
                fprintf(stderr, "%s: not %s but %s\n", f->name, name, how);
        }
    }
    free(xs);
    free(ws);
}

int main(void)
{
    if (!lb_level_available(LB_LEVEL_AMX)) {
        printf("neither AMX nor AVX-512 VNNI here\n");
        return 77;
    }
    check_permission();
    amx = lb_open(&(lb_options){.threads = 2, .isa = "amx"});
    vnni = lb_open(&(lb_options){.threads = 2, .isa = "avx512vnni"});
    CHECK_EQ_S(lb_isa(amx), "amx");
    CHECK_EQ_S(lb_isa(vnni), "avx512vnni");
    sample_format_list all = sample_formats_of(vnni);
    for (int i = 0; i < all.n; i++) {
        sample_format *f = &all.item[i];
        if (!f->fmt) continue;
        check_choices(f);
        check_format(f);
    }
    CHECK(with_tiles > 0);
    printf("%d products with tiles\n", with_tiles);
    sample_formats_free(&all);
    lb_close(amx);
    lb_close(vnni);
    return check_report("amx");
}
