/* test_io_budget.c - types chosen for a target size: never both larger and less
 * accurate than a single type for all arrays, close to the best assignment, and
 * the same for every number of threads. */
#include <unistd.h>

#include "check.h"
#include "lowbit_io.h"
#include "scratch.h"

static lb_ctx *cx;
static char source[SCRATCH_MAX], out[SCRATCH_MAX];

enum { ARRAYS = 7, TYPES = 32 };

/* ---- arrays that suit different types ------------------------------------ */

static lb_array *normal(int64_t rows, int64_t columns, int i, double scale)
{
    const lb_key key = {5, (uint64_t)i};
    lb_array *x = lb_random_normal(cx, key, LB_F32, LB_SHAPE(rows, columns));
    return lb_mul(cx, x, lb_scalar(cx, scale));
}

static lb_array *heavy_tailed(int64_t rows, int64_t columns, int i)
{
    lb_array *x = normal(rows, columns, i, 1);
    return lb_mul(cx, x, lb_mul(cx, x, x));
}

static void make_source(void)
{
    const lb_planned list[ARRAYS] = {
        {.name = "plain", .array = normal(64, 512, 1, 1)},
        {.name = "small", .array = normal(128, 256, 2, 0.01)},
        {.name = "heavy", .array = heavy_tailed(96, 256, 3)},
        {.name = "signs", .array = lb_sign(cx, normal(32, 256, 4, 1))},
        {.name = "bf16",
         .array = lb_convert(cx, normal(64, 256, 5, 2), LB_BF16)},
        /* Row lengths that no GGUF type accepts, and some that only certain
         * types accept. */
        {.name = "odd", .array = normal(50, 75, 6, 1)},
        {.name = "rows96", .array = normal(64, 96, 7, 1)},
    };
    CHECK(lb_save(cx, source, list, ARRAYS, NULL));
}

/* ---- running ------------------------------------------------------------- */

typedef struct result {
    uint64_t nbytes;
    double error, elements;
    const char *format[ARRAYS];
    int64_t block[ARRAYS];
} result;

static void note(void *user, const lb_written *w)
{
    result *r = user;
    double n = 1;
    for (int k = 0; k < w->entry->rank; k++)
        n *= (double)w->entry->dim[k];
    r->elements += n;
    r->nbytes += w->nbytes;
    r->error += w->error.dd;
    r->format[w->i] = w->format;
    r->block[w->i] = w->config ? w->config->block_size : 0;
}

static bool run(lb_quantize_options o, result *r)
{
    *r = (result){0};
    o.done = note;
    o.done_user = r;
    o.measure = o.dry_run = true;
    return lb_quantize_file(cx, source, NULL, &o);
}

/* ---- against one type for all -------------------------------------------- */

static void hold_against(const char *kind, const result *one, int n,
                         const char *const *name, double bits)
{
    result r;
    const lb_quantize_options o = {
        .kind = kind, .config = {.format = name[0]}, .target_bits = bits};
    if (!run(o, &r)) { /* less than the smallest type */
        CHECK(strstr(lb_error(cx), "cannot reach"));
        lb_clear(cx);
        return;
    }
    CHECK(8 * (double)r.nbytes <= bits * r.elements);
    for (int i = 0; i < n; i++) {
        const bool worse = r.nbytes > one[i].nbytes && r.error > one[i].error;
        if (check_fails(!worse))
            fprintf(stderr, "%s, %g bits: %llu bytes, error %g; %s: %llu, %g\n",
                    kind, bits, (unsigned long long)r.nbytes, r.error, name[i],
                    (unsigned long long)one[i].nbytes, one[i].error);
        /* If the type fits, the result is at least as accurate. */
        CHECK(8 * (double)one[i].nbytes > bits * r.elements ||
              r.error <= one[i].error);
    }
}

static void test_single_types(const char *kind)
{
    static const double around[] = {0.9,      0.99, 1 - 1e-6, 1,
                                    1 + 1e-6, 1.01, 1.1};
    result one[TYPES];
    const char *name[TYPES], *format;
    int n = 0;
    for (int k = 0; (format = lb_format_name(cx, k)) && n < TYPES; k++) {
        const lb_quantize_options o = {.kind = kind,
                                       .config = {.format = format}};
        const lb_planned p = {.name = "w",
                              .dtype = LB_F32,
                              .shape = LB_SHAPE(256, 256),
                              .config = &o.config};
        const bool stored = lb_can_save(cx, &p, kind, NULL);
        lb_clear(cx);
        if (!stored || !lb_can_quantize(cx, format)) continue;
        CHECK(run(o, &one[n]));
        name[n++] = format;
    }
    CHECK(n >= 5);
    for (int i = 0; i < n; i++)
        for (size_t a = 0; a < sizeof around / sizeof *around; a++)
            hold_against(kind, one, n, name,
                         around[a] * 8 * (double)one[i].nbytes /
                             one[i].elements);
    hold_against(kind, one, n, name, 8);
    hold_against(kind, one, n, name, 5);
}

/* ---- against all assignments --------------------------------------------- */

static const lb_quant_config types[] = {{.format = "nf4"},
                                        {.format = "iq4_nl"},
                                        {.format = "int8"},
                                        {.format = "q8_0"},
                                        {.format = "ternary"}};
enum { N_TYPES = sizeof types / sizeof *types };

/* Bytes and error of each array in each type. */
static uint64_t size_of[ARRAYS][N_TYPES];
static double error_of[ARRAYS][N_TYPES];

static void measure(void)
{
    lb_file *f = lb_file_open(cx, source, NULL);
    for (int i = 0; i < ARRAYS; i++)
        for (int k = 0; k < N_TYPES; k++) {
            const lb_entry *e = lb_file_entry(f, i);
            lb_difference d = {0};
            lb_enter(cx);
            lb_array *x = lb_file_load(cx, f, e->name);
            lb_array *q = lb_quantize(cx, x, &types[k]);
            size_of[i][k] = q ? lb_nbytes(q) : e->nbytes;
            CHECK(!q || lb_compare(cx, x, q, &d));
            error_of[i][k] = d.dd;
            lb_clear(cx);
            lb_leave(cx);
        }
    lb_file_close(f);
}

static double best_error(uint64_t most)
{
    double best = INFINITY;
    int all = 1;
    for (int i = 0; i < ARRAYS; i++)
        all *= N_TYPES;
    for (int code = 0; code < all; code++) {
        uint64_t size = 0;
        double error = 0;
        for (int i = 0, c = code; i < ARRAYS; i++, c /= N_TYPES) {
            size += size_of[i][c % N_TYPES];
            error += error_of[i][c % N_TYPES];
        }
        if (size <= most && error < best) best = error;
    }
    return best;
}

static void test_all_assignments(void)
{
    double sum = 0;
    int n = 0;
    measure();
    for (double bits = 2.5; bits < 8.6; bits += 0.25, n++) {
        result r;
        const lb_quantize_options o = {.config = types[0],
                                       .other = types + 1,
                                       .n_other = N_TYPES - 1,
                                       .target_bits = bits};
        CHECK(run(o, &r));
        const double best = best_error((uint64_t)(bits * r.elements / 8));
        const double times = sqrt(r.error / best);
        CHECK(times >= 1 - 1e-6 && times < 1.25);
        sum += times;
    }
    CHECK(sum / n < 1.02);
}

/* ---- files --------------------------------------------------------------- */

static uint64_t file_size(void)
{
    struct stat st;
    return stat(out, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* At the size of a file in one type: no larger, including the header. */
static void test_file_size(const char *kind, const char *format)
{
    result one, r;
    lb_quantize_options o = {.kind = kind,
                             .config = {.format = format},
                             .done = note,
                             .done_user = &one,
                             .measure = true,
                             .no_sync = true};
    one = (result){0};
    CHECK(lb_quantize_file(cx, source, out, &o));
    o.target_bytes = file_size();
    o.done_user = &r;
    r = (result){0};
    CHECK(lb_quantize_file(cx, source, out, &o));
    CHECK(file_size() > 0 && file_size() <= o.target_bytes);
    CHECK(file_size() < o.target_bytes || r.error <= one.error);
    CHECK(strcmp(format, "int8") != 0 || r.error < one.error);
}

static void test_threads(void)
{
    result r, again;
    const lb_quantize_options o = {.config = {.format = "nf4"},
                                   .target_bits = 5.3};
    CHECK(run(o, &r));
    lb_ctx *keep = cx;
    cx = lb_open(&(lb_options){.threads = 1, .isa = "ref"});
    CHECK(run(o, &again));
    CHECK(r.nbytes == again.nbytes && r.error == again.error);
    for (int i = 0; i < ARRAYS; i++) {
        CHECK(r.block[i] == again.block[i]);
        CHECK_EQ_S(r.format[i], again.format[i]);
    }
    lb_close(cx);
    cx = keep;
}

int main(void)
{
    cx = lb_open(&(lb_options){.threads = 2});
    CHECK(scratch_file(source) && scratch_file(out));
    lb_enter(cx);
    make_source();
    lb_leave(cx);
    test_single_types("safetensors");
    test_single_types("gguf");
    test_all_assignments();
    test_file_size("safetensors", "int8");
    test_file_size("safetensors", "nf4");
    test_file_size("gguf", "q8_0");
    test_threads();
    CHECK_EQ_S(lb_error(cx), "");
    unlink(source);
    unlink(out);
    lb_close(cx);
    return check_report("types for a target size");
}
