/* test_shard.c - sharded arrays: sharding, gathering and resharding; and that
 * shard(quantize(w)) equals quantize(shard(w)), byte by byte, on every rank. */
/* ctest: skip-ref */
#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "core/core.h"
#include "ranks.h"
#include "samples.h"

static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;

static void say(bool ok, const char *what, const char *more, const char *why)
{
    pthread_mutex_lock(&checking);
    if (check_fails(ok)) fprintf(stderr, "%s: %s: %s\n", what, more, why);
    pthread_mutex_unlock(&checking);
}

typedef struct {
    const char *mesh;
    sample_format_list formats;
} plan;

static const char *const specs[] = {
    "P()",      "P(x)",           "P(None, x)",     "P(x, y)", "P(y, x)",
    "P((x,y))", "P((y,x), None)", "P(None, (y,x))", "P(y)",    "P(None, y)",
};
enum { SPECS = sizeof specs / sizeof *specs };

static lb_array *numbers(lb_ctx *cx, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){7, 0}, LB_F32, shape);
}

/* Whether a spec is valid for the mesh. */
static bool has_axes(const lb_mesh *mesh, const char *spec)
{
    return lb_mesh_grid(mesh)->n > 1 || !strchr(spec, 'y');
}

/* ---- cutting and gathering ---------------------------------------------- */

/* From any spec to any other, and back. */
static void moves(lb_ctx *cx, lb_mesh *mesh, const char *name,
                  const lb_quant_config *config)
{
    for (int i = 0; i < SPECS; i++)
        for (int j = 0; j < SPECS; j++) {
            lb_text why = {""};
            char more[128];
            if (!has_axes(mesh, specs[i]) || !has_axes(mesh, specs[j]))
                continue;
            lb_enter(cx);
            lb_array *w = numbers(cx, LB_SHAPE(16, 256));
            if (config) w = lb_quantize(cx, w, config);
            lb_array *a = lb_shard(cx, mesh, w, specs[i]);
            lb_array *b = lb_reshard(cx, a, specs[j]);
            lb_array *c = lb_unshard(cx, b);
            const bool ok = c && !lb_is_sharded(c) && lb_is_sharded(b) &&
                            !strcmp(lb_format_of(b), lb_format_of(w)) &&
                            sample_same(c, w, &why);
            snprintf(more, sizeof more, "%s: %s to %s", name, specs[i],
                     specs[j]);
            say(ok, "move", more, lb_error_status(cx) ? lb_error(cx) : why.s);
            lb_clear(cx);
            lb_leave(cx);
        }
}

static void reads(lb_ctx *cx, lb_mesh *mesh)
{
    float x[12], want[12];
    lb_array *w = numbers(cx, LB_SHAPE(4, 3));
    lb_array *a = lb_shard(cx, mesh, w, "P(x)");
    bool ok = lb_read(cx, w, want, sizeof want) && lb_read(cx, a, x, sizeof x);
    say(ok && !memcmp(x, want, sizeof x), "read", "whole", lb_error(cx));
    ok = lb_read_rows(cx, a, 1, 3, x, 6 * sizeof *x);
    say(ok && !memcmp(x, want + 3, 6 * sizeof *x), "read", "rows",
        lb_error(cx));
    lb_array *sum = lb_reduce_sum(cx, a, NULL);
    const double s = lb_item(cx, sum),
                 t = lb_item(cx, lb_reduce_sum(cx, w, NULL));
    say(fabs(s - t) < 1e-5, "item", "sum", lb_error(cx));
    say(!lb_data(a) && lb_size(a) == 12 && lb_dim(a, 0) == 4, "data", "", "");
    lb_array *t2 = lb_transpose(cx, a, NULL);
    char text[64];
    const lb_spec spec = lb_sharding_of(t2);
    say(!strcmp(lb_spec_text(lb_mesh_grid(mesh), &spec, text, sizeof text),
                "P(None, x)"),
        "transpose", text, "");
}

/* A given slice is not checked again. */
static void slices(lb_ctx *cx, lb_mesh *mesh)
{
    const int rank = lb_mesh_rank(mesh), size = lb_mesh_size(mesh);
    lb_array *own = lb_full(cx, LB_F32, LB_SHAPE(2, 3), rank);
    char spec[64] = "P(x)";
    if (lb_mesh_grid(mesh)->n > 1) strcpy(spec, "P((x,y))");
    lb_array *a = lb_from_slice(cx, mesh, LB_SHAPE(2 * size, 3), spec, own);
    lb_array *all = lb_materialize(cx, lb_unshard(cx, a));
    for (int r = 0; r < size && all; r++)
        say(((const float *)lb_data(all))[6 * r] == (float)r, "from_slice", "",
            "");
    say(all != NULL, "from_slice", "", lb_error(cx));
    say(!lb_from_slice(cx, mesh, LB_SHAPE(size, 3), spec, own), "from_slice",
        "of another shape", "");
    lb_clear(cx);
}

/* ---- quantizing
 * --------------------------------------------------------------- */

static void same_bytes(lb_ctx *cx, lb_mesh *mesh, const sample_format *f,
                       lb_dtype dtype, lb_shape shape, const char *spec)
{
    lb_text why = {""};
    char more[160];
    lb_quant_config c;
    sample_config(f, shape.rank, LB_NO_DTYPE, &c);
    c.dtype = f->config.dtype;
    lb_enter(cx);
    lb_array *w = lb_convert(cx, numbers(cx, shape), dtype);
    lb_array *q = lb_shard(cx, mesh, lb_quantize(cx, w, &c), spec);
    lb_mesh_agree(mesh); /* if one rank refuses, all do */
    const lb_status first = lb_error_status(cx);
    lb_clear(cx);
    lb_array *r = lb_quantize(cx, lb_shard(cx, mesh, w, spec), &c);
    lb_mesh_agree(mesh);
    const lb_status second = lb_error_status(cx);
    bool ok = first == second;
    if (!first && !second)
        ok = sample_same(lb_local(cx, q), lb_local(cx, r), &why);
    snprintf(more, sizeof more, "%s %s %s", f->name, lb_dtype_name(dtype),
             spec);
    say(ok, "bytes", more, second ? lb_error(cx) : why.s);
    lb_clear(cx);
    lb_leave(cx);
}

/* Values that cannot be quantized are reported with their index in the whole
 * array. */
static void trouble(lb_ctx *cx, lb_mesh *mesh, const char *format)
{
    float x[16 * 64] = {0};
    x[11 * 64 + 5] = NAN;
    lb_array *w = lb_from(cx, LB_F32, LB_SHAPE(16, 64), x);
    lb_array *a = lb_shard(cx, mesh, w, "P(x)");
    lb_array *q = lb_quantize(
        cx, a,
        &(lb_quant_config){.format = format,
                           .axes = {strcmp(format, "int8") ? 0 : 1, {0}}});
    lb_unshard(cx, q);
    lb_mesh_agree(mesh);
    say(lb_error_status(cx) == LB_E_ARG &&
            strstr(lb_error(cx), "element (11,5) of f32(16,64)"),
        "trouble", format, lb_error(cx));
    lb_clear(cx);
}

static void refusals(lb_ctx *cx, lb_mesh *mesh)
{
    lb_array *w = numbers(cx, LB_SHAPE(16, 64));
    lb_array *q = lb_quantize(cx, w, NULL);
    char want[160];
    const int n = lb_mesh_grid(mesh)->axis[0].size;
    if (n > 1) {
        say(!lb_shard(cx, mesh, q, "P(None, x)"), "refuse", "blocks", "");
        snprintf(want, sizeof want,
                 "spec P(None, x) cuts axis 1 of nf4 f32(16,64) in pieces of "
                 "%d, inside blocks of 64: use a block size that divides %d",
                 64 / n, 64 / n);
        say(!strcmp(lb_error(cx), want), "refuse", "blocks", lb_error(cx));
        lb_clear(cx);
        lb_spec_report r = {0};
        lb_array *a = lb_shard_relaxed(cx, mesh, q, "P(None, x)", &r);
        say(a && r.n == 1 && r.change[0].entry == 1, "relax", "blocks",
            lb_error(cx));
        /* Dropped axes do not count as used twice. */
        a = lb_shard_relaxed(cx, mesh, q, "P(x, x)", &r);
        say(a && r.n == 1 && r.change[0].entry == 1, "relax", "twice",
            lb_error(cx));
        r.strict_names = true;
        say(!lb_shard_relaxed(cx, mesh, q, "P(x, x)", &r), "refuse", "twice",
            "");
        lb_clear(cx);
    }
    say(!lb_shard(cx, NULL, w, "P()"), "refuse", "no mesh", "");
    lb_clear(cx);
    say(!lb_reshard(cx, w, "P()"), "refuse", "not sharded", "");
    lb_clear(cx);
    say(!lb_shard(cx, mesh, w, "P(z)"), "refuse", "unknown axis", "");
    lb_clear(cx);
}

/* The slices of all ranks have one format, and join to the array of a single
 * process, even if only some slices could stay packed. */
static void check_alike(lb_ctx *cx, lb_mesh *mesh, const char *what,
                        lb_array *got, lb_array *want)
{
    lb_text why = {""};
    int32_t packed = got && strcmp(lb_format_of(lb_local(cx, got)), "dense");
    lb_array *one = lb_from(cx, LB_I32, LB_SHAPE(1), &packed);
    const int n = lb_mesh_size(mesh);
    one = lb_from_slice(cx, mesh, LB_SHAPE(n), "P(x)", one);
    const int64_t all = lb_item_int(cx, lb_reduce_sum(cx, one, NULL));
    got = lb_unshard(cx, got);
    const bool ok =
        got && sample_same(sample_plain(cx, got), sample_plain(cx, want), &why);
    lb_mesh_agree(mesh);
    say(ok && !lb_error_status(cx), what, why.s, lb_error(cx));
    say(all == 0 || all == n, what, "formats differ", "");
    lb_clear(cx);
}

/* Scales along rows that are equal on rank 0, and not elsewhere. */
static void joined(lb_ctx *cx, lb_mesh *mesh)
{
    const lb_quant_config columns = {.format = "int8", .axes = {1, {0}}};
    const int n = lb_mesh_size(mesh);
    float twice[96];
    for (int i = 0; i < 96; i++)
        twice[i] = i < 96 / n ? 1 : 2;
    lb_array *w = numbers(cx, LB_SHAPE(16, 96));
    lb_array *v = lb_mul(cx, w, lb_from(cx, LB_F32, LB_SHAPE(96), twice));
    lb_array *both[] = {lb_quantize(cx, w, &columns),
                        lb_quantize(cx, v, &columns)};
    lb_array *want = lb_concatenate(cx, both, 2, 0);
    for (int i = 0; i < 2; i++)
        both[i] = lb_shard(cx, mesh, both[i], "P(None, x)");
    check_alike(cx, mesh, "join", lb_concatenate(cx, both, 2, 0), want);
}

/* Rows of one and a half blocks: with three ranks, only the rows of the last
 * rank begin and end with blocks. */
static void flat(lb_ctx *cx, lb_mesh *mesh)
{
    const lb_quant_config blocks = {.block_size = 64, .blocks = LB_BLOCKS_FLAT};
    const int n = lb_mesh_size(mesh);
    lb_array *q = lb_quantize(cx, numbers(cx, LB_SHAPE(n, 96)), &blocks);
    lb_array *all = lb_shard(cx, mesh, q, "P()");
    check_alike(cx, mesh, "flat", lb_reshard(cx, all, "P(x)"), q);
}

/* Slices are anybody's. */
static void given(lb_ctx *cx, lb_mesh *mesh)
{
    const int n = lb_mesh_size(mesh);
    const int64_t lo[] = {0, 64 * lb_mesh_rank(mesh)};
    const int64_t hi[] = {16, lo[1] + 64};
    const lb_shape shape = LB_SHAPE(16, 64 * n);
    lb_array *w = lb_quantize(cx, numbers(cx, shape), NULL), *got;
    lb_array *mine = lb_slice(cx, w, lo, hi, NULL);
    if (lb_mesh_rank(mesh) % 2) mine = lb_materialize(cx, mine);
    got = lb_unshard(cx, lb_from_slice(cx, mesh, shape, "P(None, x)", mine));
    lb_text why = {""};
    const bool ok =
        got && sample_same(sample_plain(cx, got), sample_plain(cx, w), &why);
    lb_mesh_agree(mesh);
    say(ok && !lb_error_status(cx), "given", why.s, lb_error(cx));
    lb_clear(cx);
}

static int ranks_alike(lb_comm *comm, void *user)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, user, NULL);
    joined(cx, mesh);
    flat(cx, mesh);
    given(cx, mesh);
    say(lb_mesh_close(mesh), "close", user, lb_error(cx));
    lb_close(cx);
    return 0;
}

static int ranks(lb_comm *comm, void *user)
{
    const plan *p = user;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, p->mesh, NULL);
    moves(cx, mesh, "dense", NULL);
    moves(cx, mesh, "nf4", &(lb_quant_config){.block_size = 16});
    moves(cx, mesh, "int8",
          &(lb_quant_config){.format = "int8", .axes = {1, {0}}});
    moves(cx, mesh, "ternary", &(lb_quant_config){.format = "ternary"});
    lb_enter(cx);
    reads(cx, mesh);
    slices(cx, mesh);
    refusals(cx, mesh);
    lb_leave(cx);
    for (int f = 0; f < p->formats.n; f++)
        for (int i = 0; i < SPECS; i++) {
            const sample_format *fmt = &p->formats.item[f];
            if (!fmt->fmt || !lb_is_encodable(fmt->fmt) ||
                !has_axes(mesh, specs[i]))
                continue;
            same_bytes(cx, mesh, fmt, LB_F32, LB_SHAPE(16, 2048), specs[i]);
            same_bytes(cx, mesh, fmt, LB_BF16, LB_SHAPE(8, 96), specs[i]);
        }
    trouble(cx, mesh, "nf4");
    trouble(cx, mesh, "int8");
    trouble(cx, mesh, "ternary");
    say(lb_mesh_close(mesh), "close", p->mesh, lb_error(cx));
    lb_close(cx);
    return 0;
}

static int tests(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    static const char *const meshes[] = {"x=1", "x=2", "x=2,y=2", "x=4",
                                         "x=2,y=4"};
    static const int size[] = {1, 2, 4, 4, 8};
    for (int m = 0; m < 5; m++) {
        if (!ranks_are(size[m])) continue;
        plan p = {meshes[m], sample_formats_of(NULL)};
        CHECK_EQ_I(ranks_on(size[m], ranks, &p), 0);
        sample_formats_free(&p.formats);
    }
    CHECK_EQ_I(ranks_on(2, ranks_alike, "x=2"), 0);
    CHECK_EQ_I(ranks_on(3, ranks_alike, "x=3"), 0);
    CHECK_EQ_I(ranks_on(4, ranks_alike, "x=4"), 0);
    return check_report("shard");
}

int main(int argc, char **argv)
{
    return ranks_main(argc, argv, tests);
}
