/* test_io_slices.c - slices of arrays in files. For every file of other
 * programs and every format in every layout that can store it: each box of
 * several cuts, loaded by itself, equals that box of the whole array, in format
 * and in bits; it is refused exactly where the core cannot cut such an array;
 * and only the needed part of the file is read. Loaded over a mesh, the array
 * equals the result of lb_shard. With --big: a file of 2 GB on 8 ranks.
 */
/* ctest: long=--big */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "io/layouts/entries.h"
#include "io_golden.h"
#include "ranks.h"
#include "scratch.h"

static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;

static void say(bool ok, const char *what, const char *name, const char *why)
{
    pthread_mutex_lock(&checking);
    if (check_fails(ok)) fprintf(stderr, "%s: %s: %s\n", what, name, why);
    pthread_mutex_unlock(&checking);
}

/* ---- boxes --------------------------------------------------------------- */

typedef struct box {
    int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK], n[LB_MAX_RANK];
} box;

/* If blocks hold several rows, columns are views with the scale of all, which
 * files cannot store. */
static bool holds_rows(const lb_array *a, const box *b)
{
    const int last = a->shape.rank - 1;
    return a->store->shape.rank == 1 && last > 0 &&
           b->n[last] < a->shape.dim[last] && a->store->part[1].a &&
           a->store->part[1].g[0] > a->shape.dim[last];
}

static void check_one(lb_ctx *cx, lb_file *f, const char *name, lb_array *whole,
                      const box *b)
{
    lb_enter(cx);
    lb_array *want = lb_slice(cx, whole, b->lo, b->hi, NULL);
    const bool dense = strcmp(lb_format_of(whole), "dense") == 0;
    const bool fits = dense || (lb_can_pack(want) && !holds_rows(whole, b));
    lb_array *got = lb_file_load_slice(cx, f, name, b->lo, b->n);
    char where[96];
    snprintf(where, sizeof where, "%s of %s at %lld,%lld: %lld,%lld", name,
             lb_format_of(whole), (long long)b->lo[0],
             lb_rank(whole) > 1 ? (long long)b->lo[1] : 0LL, (long long)b->n[0],
             lb_rank(whole) > 1 ? (long long)b->n[1] : 0LL);
    if (fits) {
        say(got && strcmp(lb_format_of(got), lb_format_of(whole)) == 0 &&
                io_same_bits(cx, got, want),
            "slice", where, lb_error(cx));
        say(!got || dense || lb_nbytes(got) <= lb_nbytes(whole),
            "no larger than the whole", where, "");
    } else {
        say(!got && lb_error_status(cx) == LB_E_SHAPE &&
                strstr(lb_error(cx), "inside a block"),
            "refused", where, lb_error(cx));
    }
    lb_clear(cx);
    lb_leave(cx);
}

/* All slices into several equal parts along the first two axes, and the last
 * one; and an inner box. */
static void check_boxes(lb_ctx *cx, lb_file *f, const char *name)
{
    static const int64_t cuts[] = {1, 2, 3, 4, 8};
    lb_enter(cx);
    lb_array *whole = lb_file_load(cx, f, name);
    if (!whole || !lb_rank(whole)) {
        lb_clear(cx);
        lb_leave(cx);
        return;
    }
    const int rank = lb_rank(whole), last = rank - 1;
    box b;
    for (int k = 0; k < rank; k++) {
        b.lo[k] = 0;
        b.hi[k] = b.n[k] = lb_dim(whole, k);
    }
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < (rank > 1 ? 5 : 1); j++) {
            const int64_t n = lb_dim(whole, 0), m = lb_dim(whole, last);
            const int64_t x = cuts[i], y = cuts[j];
            if (n % x || (rank > 1 && m % y)) continue;
            for (int64_t p = 0; p < x; p++)
                for (int64_t q = 0; q < y; q++) {
                    b.lo[last] = q * (b.n[last] = m / y);
                    b.hi[last] = b.lo[last] + b.n[last];
                    b.lo[0] = p * (b.n[0] = n / x);
                    b.hi[0] = b.lo[0] + b.n[0];
                    check_one(cx, f, name, whole, &b);
                }
        }
    for (int k = 0; k < rank; k++) {
        b.lo[k] = lb_dim(whole, k) / 5;
        b.hi[k] = lb_dim(whole, k) - lb_dim(whole, k) / 7;
        b.n[k] = b.hi[k] - b.lo[k];
    }
    check_one(cx, f, name, whole, &b);
    lb_leave(cx);
}

static void check_file(lb_ctx *cx, const char *path, const char *class)
{
    for (int k = 0; k < 2; k++) {
        lb_file *f = lb_file_open(
            cx, path,
            &(lb_file_options){.no_map = k == 1, .linear_class = class});
        say(f != NULL, "open", path, lb_error(cx));
        for (int64_t i = 0; i < lb_file_count(f); i++)
            check_boxes(cx, f, lb_file_entry(f, i)->name);
        lb_file_close(f);
        lb_clear(cx);
    }
}

static void test_golden(lb_ctx *cx)
{
    static const char *const path[] = {
        "tests/golden/layouts/bnb4.safetensors",
        "tests/golden/layouts/fp4.safetensors",
        "tests/golden/layouts/bnb8.safetensors",
        "tests/golden/layouts/native.safetensors",
        "tests/golden/layouts/eformer.safetensors",
        "tests/golden/layouts/bitlinear",
        "tests/golden/layouts/autobitlinear",
        "tests/golden/io/shapes.safetensors",
        "tests/golden/io/types.safetensors",
        "tests/golden/io/types.gguf",
        "tests/golden/io/sharded",
        "tests/golden/io/fortran.npy",
        "tests/golden/io/big.npy",
        "tests/golden/io/bool.npy",
        "tests/golden/io/deflated.npz",
        "tests/golden/io/stored.npz",
    };
    for (size_t i = 0; i < sizeof path / sizeof *path; i++)
        check_file(cx, path[i], NULL);
}

/* ---- every format -------------------------------------------------------- */

typedef struct variant {
    lb_quant_config config; /* no format: dense */
    const char *layout;
    double rows, columns; /* of an array split in 8, at most that much more than
                           * an eighth is read; 0: it cannot be split */
} variant;

/* In BitNet a row of bytes holds rows of all quarters; nested scales are read
 * whole for columns, and in blocks of 256 for rows. */
static const variant variants[] = {
    {{0}, "native", 1, 1},
    {{.format = "int8"}, "native", 1, 1.04},
    {{.format = "int8", .axes = {1, {0}}}, "native", 1.04, 1},
    {{.format = "int8", .block_size = 8}, "native", 1, 1},
    {{.format = "int8", .compat = LB_COMPAT_BNB_CPU}, "bnb", 1, 1.04},
    {{.format = "int8"}, "eformer", 1, 1.04},
    {{.format = "nf4"}, "native", 1, 1},
    {{.format = "nf4"}, "eformer", 1, 1},
    {{.format = "nf4", .block_size = 32}, "eformer", 1, 1},
    {{.format = "nf4", .block_size = 128}, "eformer", 1, 1},
    {{.format = "nf4", .double_quant = true}, "native", 1.05, 1.3},
    {{.format = "nf4", .compat = LB_COMPAT_BNB_CPU}, "bnb", 1, 1},
    {{.format = "nf4",
      .compat = LB_COMPAT_BNB_CPU,
      .blocks = LB_BLOCKS_FLAT,
      .double_quant = true},
     "bnb",
     1.05,
     1.3},
    {{.format = "ternary"}, "native", 1, 1},
    {{.format = "ternary"}, "eformer", 4, 1},
    {{.format = "ternary"}, "bitnet", 4, 1},
    {{.format = "ternary", .scale = LB_SCALE_ROW}, "native", 1, 1.2},
    {{.format = "binary"}, "native", 1, 1},
    {{.format = "binary", .scale = LB_SCALE_BLOCK, .block_size = 32},
     "native",
     1,
     1},
    {{.format = "dynamic8"}, "native", 1, 0},
    {{.format = "q8_0"}, "gguf", 1, 1},
    {{.format = "q4_0"}, "native", 1, 1},
    {{.format = "tq2_0"}, "native", 1, 0},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static bool save_variant(lb_ctx *cx, const variant *v, lb_shape shape,
                         const char *path)
{
    lb_enter(cx);
    lb_array *x = lb_random_normal(cx, (lb_key){3, 5}, LB_BF16, shape);
    if (v->config.format) x = lb_quantize(cx, x, &v->config);
    const bool gguf = strcmp(v->layout, "gguf") == 0;
    const bool ok =
        lb_save(cx, path, &(lb_planned){.name = "x.weight", .array = x}, 1,
                &(lb_save_options){.layout = gguf ? NULL : v->layout,
                                   .kind = gguf ? "gguf" : NULL,
                                   .no_sync = true});
    lb_leave(cx);
    return ok;
}

/* Bytes that one of 8 slices needs, without headers, with pread. */
static void check_share(lb_ctx *cx, const char *path, const variant *v,
                        int axis, double most)
{
    lb_file *f = lb_file_open(
        cx, path,
        &(lb_file_options){.no_map = true, .linear_class = "autobitlinear"});
    const lb_entry *e = lb_file_entry(f, 0);
    const char *name = v->config.format ? v->config.format : "dense";
    for (int64_t i = 0; e && i < 8; i++) {
        int64_t start[2] = {0, 0}, count[2] = {e->dim[0], e->dim[1]};
        count[axis] /= 8;
        start[axis] = i * count[axis];
        const uint64_t before = lb_file_bytes_read(f);
        lb_enter(cx);
        lb_array *a = lb_file_load_slice(cx, f, e->name, start, count);
        lb_leave(cx);
        const uint64_t took = lb_file_bytes_read(f) - before;
        char why[96];
        snprintf(why, sizeof why, "%s axis %d: %llu of %llu", v->layout, axis,
                 (unsigned long long)took, (unsigned long long)e->nbytes);
        if (most > 0) /* tables and states: 2,000 bytes */
            say(a && (double)took <= most / 8 * (double)e->nbytes + 2000 &&
                    (double)took >= 0.9 / 8 * (double)e->nbytes,
                "share", name, why);
        else
            say(!a, "not cut", name, why);
        lb_clear(cx);
    }
    lb_file_close(f);
}

static void test_formats(lb_ctx *cx)
{
    char path[SCRATCH_MAX];
    CHECK(scratch_file(path));
    for (int i = 0; i < VARIANTS; i++) {
        const variant *v = &variants[i];
        const lb_shape shape[] = {LB_SHAPE(8, 256), LB_SHAPE(12, 72),
                                  LB_SHAPE(16, 512)};
        for (int k = 0; k < 3; k++) {
            if (k == 1 && strcmp(v->layout, "gguf") == 0) continue;
            const bool saved = save_variant(cx, v, shape[k], path);
            say(saved, "save", v->layout, lb_error(cx));
            if (saved) check_file(cx, path, "autobitlinear");
            lb_clear(cx);
        }
        CHECK(save_variant(cx, v, LB_SHAPE(512, 1024), path));
        check_share(cx, path, v, 0, v->rows);
        check_share(cx, path, v, 1, v->columns);
    }
    unlink(path);
}

/* ---- refused ------------------------------------------------------------- */

static void refused(lb_ctx *cx, const void *got, lb_status status,
                    const char *words)
{
    say(!got && lb_error_status(cx) == status && strstr(lb_error(cx), words),
        "refused", words, lb_error(cx));
    lb_clear(cx);
}

static void test_refused(lb_ctx *cx)
{
    char path[SCRATCH_MAX];
    const int64_t zero[2] = {0, 0}, much[2] = {9, 256}, some[2] = {4, 32},
                  back[2] = {-1, 0}, none[2] = {0, 0};
    CHECK(scratch_file(path));
    CHECK(save_variant(cx, &variants[6], LB_SHAPE(8, 256), path));
    lb_file *f = lb_file_open(cx, path, NULL);
    refused(cx, lb_file_load_slice(cx, f, "x.weight", zero, much), LB_E_ARG,
            "the slice is not inside 'x.weight'");
    refused(cx, lb_file_load_slice(cx, f, "x.weight", back, some), LB_E_ARG,
            "not inside");
    refused(cx, lb_file_load_slice(cx, f, "x.weight", NULL, some), LB_E_NULL,
            "not inside");
    refused(cx, lb_file_load_slice(cx, f, "y", zero, some), LB_E_ARG,
            "no array called 'y'");
    refused(cx, lb_file_load_slice(cx, f, "x.weight", zero, some), LB_E_SHAPE,
            "slice (4,32) at (0,0) of 'x.weight', nf4 bf16(8,256), begins or "
            "ends inside a block of 64");
    CHECK(lb_file_load_slice(cx, f, "x.weight", zero, none) != NULL);
    CHECK_EQ_S(lb_error(cx), "");
    refused(cx, lb_file_load_sharded(cx, NULL, f, "x.weight", "P()", NULL),
            LB_E_NULL, "load_sharded: the mesh is NULL");
    CHECK_EQ_I(lb_file_bytes_read(NULL), 0);
    lb_file_close(f);
    unlink(path);
}

/* A file with an nf4 array 'w' of layout eformer: (2,64) except for its
 * descriptor.
 */
static bool put_eformer(const char *path, const char *shape)
{
    char text[512];
    const uint8_t zero[64 + 8] = {0};
    const int n = snprintf(
        text, sizeof text,
        "{\"__metadata__\":{\"lowbit.w\":\"{\\\"layout\\\":\\\"eformer\\\","
        "\\\"format\\\":\\\"nf4\\\",\\\"dtype\\\":\\\"f32\\\",\\\"shape\\\":%s}"
        "\"},\"w.packed\":{\"dtype\":\"U8\",\"shape\":[2,1,32],"
        "\"data_offsets\":[0,64]},\"w.absmax\":{\"dtype\":\"F32\","
        "\"shape\":[2,1],\"data_offsets\":[64,72]}}",
        shape);
    const uint8_t head[8] = {(uint8_t)(n & 255), (uint8_t)(n >> 8)};
    FILE *f = fopen(path, "wb");
    const bool ok = f && fwrite(head, 8, 1, f) == 1 &&
                    fwrite(text, (size_t)n, 1, f) == 1 &&
                    fwrite(zero, sizeof zero, 1, f) == 1;
    return f && fclose(f) == 0 && ok;
}

/* A descriptor is untrusted: it may state more axes or elements than the
 * tensors can have. */
static void test_described_wrong(lb_ctx *cx)
{
    static const struct {
        const char *shape;
        int64_t count[LB_MAX_RANK];
        const char *words; /* NULL: none */
    } c[] = {
        {"[2,64]", {1, 64}, NULL},
        {"[1,1,1,1,1,1,2,64]",
         {1, 1, 1, 1, 1, 1, 1, 64},
         "'w', nf4 (1,1,1,1,1,1,2,64), cannot be stored in layout eformer"},
        {"[4,64]",
         {2, 64},
         "tensor 'w.packed' has 64 bytes, but shape (4,1,32) needs 128"},
        {"[2,128]",
         {1, 128},
         "tensor 'w.packed' has 64 bytes, but shape (2,2,32) needs 128"},
        {"[1,64]",
         {0, 64},
         "tensor 'w.packed' has 64 bytes, but shape (1,1,32) needs 32"},
    };
    const int64_t zero[LB_MAX_RANK] = {0};
    char path[SCRATCH_MAX];
    CHECK(scratch_file(path));
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        say(put_eformer(path, c[i].shape), "write", path, c[i].shape);
        lb_file *f = lb_file_open(cx, path, NULL);
        lb_enter(cx);
        lb_array *a = lb_file_load_slice(cx, f, "w", zero, c[i].count);
        if (c[i].words)
            refused(cx, a, LB_E_CONTENT, c[i].words);
        else
            say(a != NULL, "load", c[i].shape, lb_error(cx));
        lb_leave(cx);
        lb_file_close(f);
    }
    unlink(path);
}

/* ---- meshes -------------------------------------------------------------- */

static const char *const specs[] = {
    "P()",     "P(x)",    "P(None, x)", "P((x,y))",
    "P(y, x)", "P(x, y)", "P(None, y)", "P(None, (y, x))"};
enum { SPECS = sizeof specs / sizeof *specs };

typedef struct plan {
    const char *mesh, *path;
} plan;

/* Like lb_shard of the whole array: refuses the same, and gives the same on
 * every rank. */
static void check_sharded(lb_ctx *cx, lb_mesh *mesh, lb_file *f,
                          const char *tensor, const char *spec)
{
    lb_enter(cx);
    lb_array *whole = lb_file_load(cx, f, tensor);
    lb_array *want = lb_shard(cx, mesh, whole, spec);
    const lb_status status = lb_error_status(cx);
    lb_clear(cx);
    lb_array *got = lb_file_load_sharded(cx, mesh, f, tensor, spec, NULL);
    say(lb_error_status(cx) == status, tensor, spec, lb_error(cx));
    if (want && got) {
        const lb_spec a = lb_sharding_of(want), b = lb_sharding_of(got);
        say(lb_spec_equal(lb_mesh_grid(mesh), &a, &b), tensor, spec, "spec");
        say(io_same_bits(cx, lb_local(cx, got), lb_local(cx, want)), tensor,
            spec, "slice");
        say(io_same_bits(cx, got, whole), tensor, spec, "gathered");
    }
    lb_clear(cx);
    lb_leave(cx);
}

static int ranks(lb_comm *comm, void *user)
{
    const plan *p = user;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, p->mesh, NULL);
    lb_file *f = lb_file_open(cx, p->path, NULL);
    for (int64_t i = 0; i < lb_file_count(f); i++)
        for (int k = 0; k < SPECS; k++) {
            if (!strchr(p->mesh, 'y') && strchr(specs[k], 'y')) continue;
            check_sharded(cx, mesh, f, lb_file_entry(f, i)->name, specs[k]);
        }
    /* Relaxed: slices of 32 are inside blocks of 64. */
    lb_spec_report report = {0};
    lb_array *a =
        lb_file_load_sharded(cx, mesh, f, "nf4", "P(None, (x, y), z)", &report);
    const bool two = strchr(p->mesh, 'y') != NULL, small = comm->size == 8;
    say(a && report.n == (two && !small ? 1 : 2), "relaxed",
        report.change[0].why, lb_error(cx));
    if (!two)
        say(strstr(report.change[0].why, "has no axis y") != NULL, "relaxed",
            report.change[0].why, "");
    else if (small)
        say(strstr(report.change[1].why, "inside a block of 64") != NULL,
            "relaxed", report.change[1].why, "");
    /* One rank lacks the array: all report its message. */
    const bool odd = comm->rank == comm->size - 1;
    lb_array *bad =
        lb_file_load_sharded(cx, mesh, f, odd ? "none" : "dense", "P(x)", NULL);
    char words[64];
    snprintf(words, sizeof words, "rank %d of %d: ", odd ? comm->rank : 0,
             comm->size);
    say(!bad && strstr(lb_error(cx), "has no array called 'none'") &&
            (comm->size == 1 || !odd || strstr(lb_error(cx), words)),
        "error", p->mesh, lb_error(cx));
    lb_clear(cx);
    lb_file_close(f);
    say(lb_mesh_close(mesh), "close", p->mesh, lb_error(cx));
    lb_close(cx);
    return 0;
}

static void save_some(lb_ctx *cx, const char *path)
{
    lb_planned list[] = {{.name = "dense"},
                         {.name = "nf4"},
                         {.name = "int8"},
                         {.name = "ternary"}};
    lb_enter(cx);
    for (int i = 0; i < 4; i++) {
        lb_array *x =
            lb_random_normal(cx, (lb_key){9, 1}, LB_F32, LB_SHAPE(16, 256));
        if (i)
            x = lb_quantize(cx, x, &(lb_quant_config){.format = list[i].name});
        list[i].array = x;
    }
    CHECK(lb_save(cx, path, list, 4, &(lb_save_options){.no_sync = true}));
    lb_leave(cx);
}

static void test_meshes(lb_ctx *cx)
{
    static const char *const mesh[] = {"x=1", "x=2", "x=2,y=2", "x=4",
                                       "x=2,y=4"};
    static const int size[] = {1, 2, 4, 4, 8};
    char path[SCRATCH_MAX];
    CHECK(scratch_file(path));
    save_some(cx, path);
    for (int m = 0; m < 5; m++) {
        plan p = {mesh[m], path};
        if (ranks_are(size[m])) CHECK_EQ_I(ranks_on(size[m], ranks, &p), 0);
    }
    unlink(path);
}

/* ---- a file of two gigabytes, with --big -------------------------------- */

enum { DENSE = 29, PACKED = 12 };

static void save_big(lb_ctx *cx, const char *path)
{
    static const char *const format[] = {"nf4", "int8", "ternary"};
    lb_planned list[DENSE + PACKED + 1] = {0};
    char name[DENSE + PACKED][32];
    lb_enter(cx);
    lb_array *dense = lb_zeros(cx, LB_BF16, LB_SHAPE(8192, 4096)), *packed[3];
    lb_array *x =
        lb_random_normal(cx, (lb_key){1, 2}, LB_BF16, LB_SHAPE(4096, 4096));
    for (int i = 0; i < 3; i++)
        packed[i] = lb_quantize(cx, x, &(lb_quant_config){.format = format[i]});
    for (int i = 0; i < DENSE + PACKED; i++) {
        snprintf(name[i], sizeof name[i], "layers.%d.%s", i,
                 i % 2 ? "up" : "down");
        list[i] = (lb_planned){.name = name[i],
                               .array = i < DENSE ? dense : packed[i % 3]};
    }
    list[DENSE + PACKED] = (lb_planned){
        .name = "norm", .array = lb_zeros(cx, LB_BF16, LB_SHAPE(4096))};
    CHECK(lb_save(cx, path, list, DENSE + PACKED + 1,
                  &(lb_save_options){.no_sync = true}));
    CHECK_EQ_S(lb_error(cx), "");
    lb_leave(cx);
}

/* A model's columns and rows; bytes read by each rank. */
static int load_big(lb_comm *comm, void *user)
{
    const char *path = user;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, "tp=8", NULL);
    lb_file *f = lb_file_open(cx, path, &(lb_file_options){.no_map = true});
    lb_rules *rules = lb_rules_open(cx);
    lb_rules_add(cx, rules, "up$=P(tp, None)");
    lb_rules_add(cx, rules, "down$=P(None, tp)");
    const uint64_t header = lb_file_bytes_read(f);
    uint64_t all = 0;
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        lb_placement p;
        char text[256];
        lb_enter(cx);
        say(lb_rules_place(cx, rules, lb_mesh_grid(mesh), f, e->name, false,
                           &p) &&
                lb_file_load_sharded(cx, mesh, f, e->name,
                                     lb_spec_text(lb_mesh_grid(mesh), &p.spec,
                                                  text, sizeof text),
                                     NULL),
            "big", e->name, lb_error(cx));
        lb_leave(cx);
        all += e->nbytes;
    }
    const uint64_t took = lb_file_bytes_read(f) - header;
    char why[160];
    snprintf(why, sizeof why,
             "rank %d: %llu bytes of %llu, %.5f of an eighth, and a header of "
             "%llu",
             comm->rank, (unsigned long long)took, (unsigned long long)all,
             (double)took * 8 / (double)all, (unsigned long long)header);
    say(all > 2000000000 && (double)took <= 1.05 / 8 * (double)all, "big", path,
        why);
    if (comm->rank == 0) puts(why);
    lb_rules_close(rules);
    lb_file_close(f);
    say(lb_mesh_close(mesh), "close", path, lb_error(cx));
    lb_close(cx);
    return 0;
}

static void test_big(lb_ctx *cx)
{
    char path[SCRATCH_MAX];
    if (!ranks_are(8)) return;
    if (ranks_first()) {
        CHECK(scratch_file(path));
        save_big(cx, path);
    }
    CHECK(ranks_share(path, sizeof path));
    CHECK_EQ_I(ranks_on(8, load_big, path), 0);
    CHECK(ranks_share(path, sizeof path));
    if (ranks_first()) unlink(path);
}

static int tests(int argc, char **argv)
{
    const bool big = argc > 1 && strcmp(argv[1], "--big") == 0;
    lb_ctx *cx = lb_open(NULL);
    if (big) {
        test_big(cx);
        lb_close(cx);
        return check_report("io_slices");
    }
    if (ranks_first()) {
        test_golden(cx);
        test_formats(cx);
        test_refused(cx);
        test_described_wrong(cx);
    }
    test_meshes(cx);
    lb_close(cx);
    return check_report("io_slices");
}

int main(int argc, char **argv)
{
    return ranks_main(argc, argv, tests);
}
