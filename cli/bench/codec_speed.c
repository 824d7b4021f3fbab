/* codec_speed.c - see codec_speed.h.
 *
 * GB/s count the dense side: bytes of f32, bf16 or f16 that are read when
 * quantizing and written when decoding. Quantizing is compared with the read
 * bandwidth of DRAM, decoding with non-temporal stores. With one thread, these
 * stores go to the same (small) pages in alternating rounds, because store
 * bandwidth varies from minute to minute. Slow formats are measured on less
 * data, as shown in the table.
 */
#include "codec_speed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_rows.h"
#include "bench_weights.h"
#include "limits.h"
#include "lowbit_ext.h"
#include "sampling.h"

enum {
    COLUMNS = 4096,
    ROWS_IN_MIB = (1 << 20) / (COLUMNS * 4),
    LEAST_ROWS = 16 /* for the first estimate */
};

typedef struct codec {
    const bench_options *o;
    lb_ctx *cx;
    limits limit;
    lb_array *source[LB_N_DTYPES]; /* per dtype, all rows */
    char *memory;                  /* room for f32 */
    lb_quant_config config;
    lb_dtype dtype;
    lb_array *dense, *packed; /* the current case */
} codec;

static lb_array *quantize(codec *c)
{
    return lb_quantize(c->cx, c->dense, &c->config);
}

/* Bytes of an unsigned tensor: any are valid in read-only formats. */
static lb_array *random_bytes(codec *c, lb_shape shape)
{
    uint32_t s = 1;
    lb_array *const a = lb_zeros(c->cx, LB_U8, shape);
    const size_t n = a ? (size_t)lb_size(a) : 0;
    uint8_t *const bytes = malloc(n + 1);
    for (size_t i = 0; bytes && i < n; i++) {
        s = s * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(s >> 24);
    }
    lb_array *const r = bytes ? lb_from(c->cx, LB_U8, shape, bytes) : NULL;
    free(bytes);
    return r;
}

/* An array of a format that has no encoder, whose only part is blocks. */
static lb_array *blocks(codec *c, const lb_format *f)
{
    const lb_quant q = {.format = f, .dtype = c->dtype};
    const int rank = lb_rank(c->dense);
    const lb_shape shape = LB_SHAPE(lb_dim(c->dense, 0), lb_dim(c->dense, 1));
    lb_layout to = {.stored = shape, .dtype = c->dtype};
    if (rank != 2 || !f->layout(c->cx, &q, LB_F32, &shape, &to)) return NULL;
    const char *const name = f->part[0].name;
    lb_array *part = random_bytes(c, lb_part_shape(&to.stored, &to.part[0]));
    const lb_quant_config config = {.format = f->name, .dtype = c->dtype};
    return lb_from_parts(c->cx, &config, shape, NULL, &name, &part, 1);
}

static lb_array *packed(codec *c)
{
    const lb_format *const f = lb_find_format(c->cx, c->config.format);
    return lb_is_encodable(f) ? quantize(c) : blocks(c, f);
}

static void run_quantize(void *arg)
{
    codec *const c = arg;
    lb_drop(c->cx, quantize(c));
}

static size_t dense_bytes(const codec *c)
{
    return (size_t)lb_size(c->dense) * lb_dtype_size(c->dtype);
}

static void run_read(void *arg)
{
    codec *const c = arg;
    lb_read(c->cx, c->packed, c->memory, dense_bytes(c));
}

/* The bandwidth that quantizing is compared with. */
static void run_fill(void *arg)
{
    codec *const c = arg;
    c->limit.kernels.fill(c->memory, dense_bytes(c));
}

static lb_array *rows(codec *c, int64_t n)
{
    lb_array *const all = c->source[c->dtype];
    return lb_slice(c->cx, all, (int64_t[]){0, 0}, (int64_t[]){n, COLUMNS},
                    NULL);
}

/* As many rows as requested, or as fit into the time limit. */
static int64_t affordable(codec *c, void (*run)(void *))
{
    int64_t most = c->o->mib * ROWS_IN_MIB;
    int64_t n = most < LEAST_ROWS ? most : LEAST_ROWS;
    double s = 0;
    for (;; n *= 2) {
        lb_enter(c->cx);
        c->dense = rows(c, n);
        c->packed = packed(c);
        if (c->packed) {
            run(c); /* warm */
            const double start = now();
            run(c);
            s = now() - start;
        }
        lb_leave(c->cx);
        if (lb_error_status(c->cx) != LB_OK) return 0;
        if (n * 2 > most) return most;
        if (s * 2 > c->o->seconds / 3) return n;
    }
}

static void show(const codec *c, const char *format, const char *what,
                 const sample_side *side, double most, const char *most_name)
{
    const double gb = (double)dense_bytes(c) * 1e-9;
    const double mib = (double)lb_size(c->dense) * 4 / (1 << 20);
    const double rate = gb / side->median;
    if (c->o->json) {
        row_begin();
        row_text("format", format);
        row_text("dtype", lb_dtype_name(c->dtype));
        row_text("what", what);
        row_integer("threads", lb_threads(c->cx));
        row_number("mib", mib);
        row_number("gbps", rate);
        row_number("best_gbps", gb / side->best);
        row_number("limit_gbps", most);
        row_text("limit", most_name);
        row_end();
        return;
    }
    printf("%-10s %-5s %-10s %3d %7.1f %8.3f %8.3f  %3.0f %% of %s%s\n", format,
           lb_dtype_name(c->dtype), what, lb_threads(c->cx), mib, rate,
           gb / side->best, 100 * rate / most, most_name,
           side->clean ? "" : " ~");
    fflush(stdout);
}

/* The GB/s that decoding is compared with. */
static double store_rate(const codec *c, const sample_side *fill)
{
    if (!fill->samples) return c->limit.stream;
    return (double)dense_bytes(c) * 1e-9 / fill->median;
}

static bool measure(codec *c, const char *format, bool reading)
{
    void (*const run)(void *) = reading ? run_read : run_quantize;
    const int64_t n = affordable(c, run);
    lb_enter(c->cx);
    if (n) {
        c->dense = rows(c, n);
        c->packed = packed(c);
    }
    const bool ok = lb_error_status(c->cx) == LB_OK;
    if (ok) {
        sample_side sides[] = {{.run = run, .arg = c},
                               {.run = run_fill, .arg = c}};
        const bool both = reading && lb_threads(c->cx) == 1;
        sample(sides, both ? 2 : 1, c->o->seconds);
        show(c, format, reading ? "dequantize" : "quantize", &sides[0],
             reading ? store_rate(c, &sides[1]) : c->limit.dram,
             reading ? "stream" : "dram");
    } else {
        bench_fail("%s: %s", format, lb_error(c->cx));
        lb_clear(c->cx);
    }
    lb_leave(c->cx);
    return ok;
}

static bool measure_formats(codec *c)
{
    const name_list *const formats = &c->o->formats;
    bool ok = true;
    for (int f = 0; f < formats->n; f++) {
        const char *const name = formats->at[f];
        if (weights_dense(name)) continue; /* nothing to encode */
        for (int a = 0; a < c->o->acts.n; a++) {
            c->dtype = (lb_dtype)c->o->acts.at[a];
            c->config = weights_config(name, ORIENT_WT);
            c->config.dtype = c->dtype;
            if (lb_is_encodable(lb_find_format(c->cx, name)))
                ok = measure(c, name, false) && ok;
            ok = measure(c, name, true) && ok;
        }
    }
    return ok;
}

/* Sources of every dtype and destination memory, all touched. */
static bool prepare(codec *c)
{
    const int64_t n = c->o->mib * ROWS_IN_MIB;
    lb_array *const x =
        lb_random_normal(c->cx, (lb_key){1, 0}, LB_F32, LB_SHAPE(n, COLUMNS));
    for (int a = 0; a < c->o->acts.n; a++) {
        const lb_dtype d = (lb_dtype)c->o->acts.at[a];
        c->source[d] = lb_materialize(c->cx, lb_convert(c->cx, x, d));
    }
    const size_t bytes = (size_t)c->o->mib << 20;
    c->memory = aligned_alloc(64, bytes);
    if (c->memory) memset(c->memory, 1, bytes);
    if (!c->memory) return bench_fail("out of memory");
    return lb_error_status(c->cx) == LB_OK || bench_fail("%s", lb_error(c->cx));
}

static bool run_threads(const bench_options *o, int threads, bool head)
{
    codec c = {.o = o, .cx = bench_context(o, threads)};
    if (!c.cx) return false;
    bool ok = limits_open(&c.limit, threads, lb_isa(c.cx), o->seconds);
    if (ok && !o->json) limits_print(&c.limit);
    if (ok && head && !o->json)
        printf(
            "level %s; GB/s of the dense side, median and best sample; ~: "
            "samples were preempted\n\n%-10s %-5s %-10s %3s %7s %8s %8s  %s\n",
            lb_isa(c.cx), "format", "dtype", "what", "thr", "MiB f32", "GB/s",
            "best", "of limit");
    ok = ok && prepare(&c) && measure_formats(&c);
    limits_close(&c.limit);
    free(c.memory);
    lb_close(c.cx);
    return ok;
}

bool codec_speed_run(const bench_options *o)
{
    bool ok = true;
    for (int t = 0; t < o->threads.n; t++)
        ok = run_threads(o, (int)o->threads.at[t], t == 0) && ok;
    return ok;
}
