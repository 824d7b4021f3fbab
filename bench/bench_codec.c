/* bench_codec.c - speed of decoding, compared with filling memory.
 *
 *   bench_codec [threads [substring of a format's name]]
 *
 * Alternates lb_read of 64 Mi elements into touched memory and a fill of 256
 * MiB with non-temporal stores. Prints GB/s of results, best and median, the
 * ratio of the medians, and elements per second for results of other dtypes.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "bench.h"
#include "lowbit.h"

enum { ROUNDS = 9, COLUMNS = 8192, ROWS = 8192, SOME_ROWS = 64 };
#define ELEMENTS ((size_t)ROWS * COLUMNS)

typedef struct {
    const char *name;
    lb_quant_config config;
    bool twice; /* double_quant */
} codec;

#define OF(name_, format_, ...)                                                \
    {                                                                          \
        .name = name_, .config = {.format = format_, __VA_ARGS__ }             \
    }

static const codec codecs[] = {
    OF("int8 row", "int8", .dtype = LB_F32),
    OF("int8 column", "int8", .axes = {1, {0}}),
    OF("int8 block 64", "int8", .block_size = 64),
    OF("int8 absmax", "int8", .meaning = LB_MEANS_ABSMAX),
    OF("int8 inverse", "int8", .meaning = LB_MEANS_INVERSE),
    OF("nf4", "nf4", .dtype = LB_F32),
    OF("nf4 poly", "nf4", .decode = LB_DECODE_POLY),
    {"nf4 twice", {.format = "nf4"}, true},
    OF("ternary", "ternary", .dtype = LB_F32),
    OF("ternary block 64", "ternary", .scale = LB_SCALE_BLOCK),
    OF("ternary inverse", "ternary", .scale = LB_SCALE_ROW,
       .meaning = LB_MEANS_INVERSE),
    OF("binary", "binary", .dtype = LB_F32),
    OF("binary row", "binary", .scale = LB_SCALE_ROW),
    OF("dynamic8", "dynamic8", .dtype = LB_F32),
    OF("q8_0", "q8_0", .dtype = LB_F32),
    OF("q4_0", "q4_0", .dtype = LB_F32),
    OF("iq4_nl", "iq4_nl", .dtype = LB_F32),
    OF("tq1_0", "tq1_0", .dtype = LB_F32),
    OF("tq2_0", "tq2_0", .dtype = LB_F32),
};

typedef struct {
    lb_ctx *cx;
    void *memory; /* large enough for f64 */
    lb_array *packed;
    lb_dtype dtype;
} setup;

static void check(const setup *s, bool ok)
{
    if (ok) return;
    fprintf(stderr, "%s\n", lb_error(s->cx));
    exit(1);
}

/* ---- figures ------------------------------------------------------------ */

typedef struct {
    double best, median; /* ns */
} figure;

static figure figure_of(double *ns, int n)
{
    const double median = bench_median(ns, n);
    return (figure){ns[0], median};
}

/* Alternates both. */
static void take_turns(setup *s, double (*const *round)(setup *), int n,
                       figure *out)
{
    static double ns[2][ROUNDS];
    for (int r = -1; r < ROUNDS; r++) /* the first is a warm-up */
        for (int i = 0; i < n; i++)
            ns[i][r < 0 ? 0 : r] = round[i](s);
    for (int i = 0; i < n; i++)
        out[i] = figure_of(ns[i], ROUNDS);
}

/* ---- the fill ----------------------------------------------------------- */

static double fill(setup *s)
{
    const size_t bytes = ELEMENTS * sizeof(float);
    const double start = bench_now();
#if defined(__SSE2__)
    const __m128i one = _mm_set1_epi8(1);
    __m128i *to = s->memory;
    for (size_t i = 0; i < bytes / sizeof one; i += 4) {
        _mm_stream_si128(to + i, one);
        _mm_stream_si128(to + i + 1, one);
        _mm_stream_si128(to + i + 2, one);
        _mm_stream_si128(to + i + 3, one);
    }
    _mm_sfence();
#else
    memset(s->memory, 1, bytes);
#endif
    return bench_now() - start;
}

/* ---- packed arrays ------------------------------------------------------ */

/* A few rows, repeated: encoding all of it would take long. */
static lb_array *packed_of(setup *s, const codec *c)
{
    lb_array *x = lb_random_normal(s->cx, (lb_key){1, 0}, LB_F32,
                                   LB_SHAPE(SOME_ROWS, COLUMNS));
    lb_array *a = lb_quantize(s->cx, x, &c->config);
    for (int rows = SOME_ROWS; rows < ROWS; rows *= 2) {
        lb_array *both[] = {a, a};
        a = lb_concatenate(s->cx, both, 2, 0);
    }
    if (c->twice) a = lb_quantize_scales(s->cx, a);
    check(s, a && strcmp(lb_format_of(a), c->config.format) == 0);
    return a;
}

/* ---- decoding ----------------------------------------------------------- */

static double decode(setup *s)
{
    lb_array *a = s->packed;
    if (s->dtype != LB_F32) a = lb_convert(s->cx, a, s->dtype);
    const double start = bench_now();
    check(s, lb_read(s->cx, a, s->memory, ELEMENTS * lb_dtype_size(s->dtype)));
    return bench_now() - start;
}

static void bench_decode(setup *s, const codec *c)
{
    static double (*const sides[])(setup *) = {fill, decode};
    static const lb_dtype others[] = {LB_BF16, LB_F16, LB_F64};
    const double bytes = (double)ELEMENTS * sizeof(float);
    figure f[2];
    s->dtype = LB_F32;
    take_turns(s, sides, 2, f);
    printf("%-18s %7.1f %7.1f %7.1f %7.2f  ", c->name, bytes / f[1].best,
           bytes / f[1].median, bytes / f[0].median, f[0].median / f[1].median);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        s->dtype = others[i];
        take_turns(s, &sides[1], 1, f);
        printf(" %7.2f", (double)ELEMENTS / f[0].median);
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    const char *pick = argc > 2 ? argv[2] : "";
    setup s = {.cx = lb_open(&(lb_options){.threads = threads}),
               .memory = aligned_alloc(4096, ELEMENTS * sizeof(double))};
    if (!s.cx || !s.memory) return 1;
    memset(s.memory, 1, ELEMENTS * sizeof(double));
    printf("lb_read, %d thread%s\n", threads, threads > 1 ? "s" : "");
    printf("%-18s %7s %7s %7s %7s   %7s %7s %7s\n", "GB/s, Gelements/s", "best",
           "median", "fill", "/ fill", "bf16", "f16", "f64");
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        if (!strstr(codecs[i].name, pick)) continue;
        lb_enter(s.cx);
        s.packed = packed_of(&s, &codecs[i]);
        bench_decode(&s, &codecs[i]);
        lb_leave(s.cx);
        lb_trim(s.cx);
    }
    lb_close(s.cx);
    free(s.memory);
    return 0;
}
