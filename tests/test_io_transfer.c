/* test_io_transfer.c - files quantized in chunks equal those quantized whole.
 *
 * Arrays larger than the memory limit, with shapes that leave partial chunks
 * and blocks, in every format and layout that supports them: the output has the
 * same bytes as one saved from whole quantized arrays. An interrupted run that
 * is continued gives the same bytes.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "core/core.h"
#include "io/arrays/saver.h"
#include "io_golden.h"
#include "refused.h"
#include "scratch.h"

enum { MEMORY = 1000000 };

static lb_ctx *cx;
static char source[SCRATCH_MAX], whole[SCRATCH_MAX], pieces[SCRATCH_MAX];

typedef struct sample {
    const char *name;
    lb_dtype dtype;
    int rank;
    int64_t dim[4];
} sample;

static const sample samples[] = {
    {"line.weight", LB_F32, 2, {640, 1024}},     /* whole blocks in rows */
    {"rest.weight", LB_F32, 2, {2048, 321}},     /* an odd remainder in each */
    {"half.weight", LB_BF16, 2, {1500, 1024}},   /* of two-byte values */
    {"f16.weight", LB_F16, 2, {516, 1500}},      /* .. */
    {"experts.weight", LB_F32, 3, {5, 96, 704}}, /* more axes */
    {"deep", LB_F32, 4, {3, 2, 120, 512}},
    {"small.weight", LB_F32, 2, {4, 512}},
    {"norm", LB_F32, 1, {700}},
};
enum { N = sizeof samples / sizeof *samples };

static lb_array *numbers(int i)
{
    const sample *s = &samples[i];
    return lb_random_normal(cx, (lb_key){11, (uint64_t)i}, s->dtype,
                            lb_shape_make(s->rank, s->dim));
}

static void make_source(void)
{
    lb_planned list[N] = {0};
    for (int i = 0; i < N; i++)
        list[i] = (lb_planned){.name = samples[i].name, .array = numbers(i)};
    CHECK(lb_save(cx, source, list, N, NULL));
}

/* ---- in chunks and as a whole -------------------------------------------- */

static const char *all_that_fits(void *user, const lb_entry *e,
                                 lb_quant_config *config)
{
    (void)user;
    (void)config;
    return e->rank < 2 ? "1-D" : NULL;
}

typedef struct seen {
    int quantized, kept, resumed;
    lb_difference all;
    uint64_t read, total;
    int64_t stop_at; /* ends the process after that many */
} seen;

static void note(void *user, const lb_written *w)
{
    seen *s = user;
    s->quantized += !w->kept;
    s->kept += w->kept != NULL;
    s->resumed += w->resumed;
    s->all.n += w->error.n;
    s->all.dd += w->error.dd;
    s->all.aa += w->error.aa;
    if (s->stop_at && w->i + 1 >= s->stop_at) _exit(7);
}

static void watch(void *user, const lb_progress *p)
{
    seen *s = user;
    CHECK(p->done > s->read && p->done <= p->total);
    s->read = p->done;
    s->total = p->total;
}

static lb_quantize_options options_of(const lb_quant_config *config,
                                      const char *kind, const char *layout,
                                      seen *s)
{
    return (lb_quantize_options){.struct_size = sizeof(lb_quantize_options),
                                 .kind = kind,
                                 .layout = layout,
                                 .config = *config,
                                 .choose = all_that_fits,
                                 .done = note,
                                 .done_user = s,
                                 .progress = watch,
                                 .progress_user = s,
                                 .max_memory = MEMORY,
                                 .measure = true,
                                 .no_sync = true};
}

static int sample_named(const char *name)
{
    int i = 0;
    while (i < N - 1 && strcmp(samples[i].name, name) != 0)
        i++;
    return i;
}

/* The same with lb_quantize and lb_save, array by array. */
static bool save_whole(const lb_quant_config *config, const char *kind,
                       const char *layout, lb_difference *d)
{
    lb_planned list[N] = {0};
    const lb_save_options o = {.kind = kind, .layout = layout, .no_sync = true};
    lb_file *f = lb_file_open(cx, source, NULL);
    for (int k = 0; k < N; k++) {
        const int i = sample_named(lb_file_entry(f, k)->name);
        lb_array *a = numbers(i);
        const lb_planned p = {.name = samples[i].name,
                              .dtype = samples[i].dtype,
                              .shape = lb_shape_of(a),
                              .config = config};
        list[k] = (lb_planned){.name = samples[i].name, .array = a};
        if (samples[i].rank < 2 || !lb_can_save(cx, &p, kind, layout)) {
            lb_clear(cx);
            continue;
        }
        list[k].array = lb_quantize(cx, a, config);
        const lb_file_layout *l =
            lb_file_layout_for(layout ? layout : "native", config->format);
        if (l && l->adapt) list[k].array = l->adapt(cx, list[k].array);
        CHECK(lb_compare(cx, a, list[k].array, d));
    }
    lb_file_close(f);
    return lb_save(cx, whole, list, N, &o);
}

/* Measuring candidate types takes longest, and reports its progress. */
static void test_choice(void)
{
    seen plain = {0}, s = {0};
    const lb_quant_config nf4 = {.format = "nf4"}, int8 = {.format = "int8"};
    lb_quantize_options o = options_of(&nf4, NULL, NULL, &plain);
    CHECK(lb_quantize_file(cx, source, pieces, &o));
    CHECK(plain.read == plain.total && plain.quantized);
    o = options_of(&nf4, NULL, NULL, &s);
    o.other = &int8;
    o.n_other = 1;
    o.target_bits = 31;
    CHECK(lb_quantize_file(cx, source, pieces, &o));
    CHECK_EQ_S(lb_error(cx), "");
    CHECK(s.read == s.total && s.total > 2 * plain.total);
}

static void compare(const lb_quant_config *config, const char *kind,
                    const char *layout)
{
    seen s = {0};
    lb_difference d = {0};
    lb_quantize_options o = options_of(config, kind, layout, &s);
    /* Needs the whole array: the result must fit twice, but not the source. */
    if (config->double_quant || (config->axes.n && !config->axes.axis[0]))
        o.max_memory = 4 * MEMORY;
    lb_enter(cx);
    CHECK(save_whole(config, kind, layout, &d));
    lb_leave(cx);
    lb_trim(cx);
    CHECK(lb_quantize_file(cx, source, pieces, &o));
    const bool same = io_same_bytes(whole, pieces);
    if (check_fails(same))
        fprintf(stderr,
                "%s, %s %s, double %d: bytes differ from the whole array's\n",
                config->format, kind ? kind : "", layout ? layout : "",
                config->double_quant);
    CHECK_EQ_S(lb_error(cx), "");
    CHECK(s.quantized + s.kept == N && s.read == s.total);
    CHECK_EQ_I(s.all.n, d.n);
    CHECK_NEAR(lb_difference_nrmse(&s.all), lb_difference_nrmse(&d), 1e-6);
}

static void test_pieces(void)
{
    static const lb_quant_config configs[] = {
        {.format = "nf4"},
        {.format = "nf4", .block_size = 32},
        {.format = "nf4", .double_quant = true},
        {.format = "int8"},
        {.format = "int8", .axes = {1, {-1}}},
        {.format = "int8", .axes = {1, {0}}},
        {.format = "ternary"},
        {.format = "ternary", .scale = LB_SCALE_ROW},
        {.format = "ternary", .scale = LB_SCALE_BLOCK},
        {.format = "ternary", .compat = LB_COMPAT_EFORMER, .dtype = LB_F32},
        {.format = "binary"},
        {.format = "binary", .scale = LB_SCALE_BLOCK},
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        compare(&configs[i], NULL, NULL);
    static const lb_quant_config bnb4 = {.format = "nf4",
                                         .compat = LB_COMPAT_BNB_CPU};
    static const lb_quant_config bnb8 = {.format = "int8",
                                         .compat = LB_COMPAT_BNB_CPU};
    static const lb_quant_config signs = {.format = "ternary",
                                          .threshold = LB_THRESHOLD_ABSMEAN};
    compare(&bnb4, NULL, "bnb");
    compare(&bnb8, NULL, "bnb");
    compare(&signs, NULL, "bitnet");
    compare(&configs[0], NULL, "eformer");
    compare(&configs[3], NULL, "eformer");
    compare(&configs[6], NULL, "eformer");
    static const char *const blocks[] = {"q8_0", "q4_0", "iq4_nl", "tq1_0",
                                         "tq2_0"};
    for (int i = 0; i < 5; i++) {
        const lb_quant_config c = {.format = blocks[i]};
        compare(&c, "gguf", NULL);
    }
}

/* Memory is within the limit, plus a fixed amount for the file's metadata. */
static void test_memory(void)
{
    static const lb_quant_config config = {.format = "nf4"};
    seen s = {0};
    const lb_options options = {.struct_size = sizeof options, .threads = 2};
    lb_ctx *keep = cx;
    cx = lb_open(&options);
    const lb_quantize_options o = options_of(&config, NULL, NULL, &s);
    CHECK(lb_quantize_file(cx, source, pieces, &o));
    CHECK(lb_bytes_peak(cx) < 3 * MEMORY);
    lb_close(cx);
    cx = keep;
}

/* ---- resuming ------------------------------------------------------------ */

/* A child that ends in the middle: its partial output is resumed. */
static void stop_after(int64_t arrays, const lb_quant_config *config)
{
    const pid_t child = fork();
    if (child == 0) {
        seen s = {.stop_at = arrays};
        lb_ctx *own = lb_open(&(lb_options){.threads = 1});
        const lb_quantize_options o = options_of(config, NULL, NULL, &s);
        lb_quantize_file(own, source, pieces, &o);
        _exit(0);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void test_resume(void)
{
    static const lb_quant_config config = {.format = "nf4"};
    static const lb_quant_config other = {.format = "nf4", .block_size = 32};
    struct stat st;
    char partial[SCRATCH_MAX + 16];
    snprintf(partial, sizeof partial, "%s.partial", pieces);
    seen s = {0};
    lb_quantize_options o = options_of(&config, NULL, NULL, &s);
    CHECK(lb_quantize_file(cx, source, whole, &o));
    for (int64_t k = 1; k <= N; k++) {
        unlink(pieces);
        stop_after(k, &config);
        CHECK(stat(pieces, &st) != 0 && stat(partial, &st) == 0);
        s = (seen){0};
        o.resume = true;
        CHECK(lb_quantize_file(cx, source, pieces, &o));
        CHECK_EQ_I(s.resumed, k);
        CHECK(s.quantized + s.kept == N && s.read == s.total);
        CHECK(io_same_bytes(whole, pieces) && stat(partial, &st) != 0);
    }
    /* Of another job, or invalid: starts from the beginning. */
    stop_after(3, &other);
    s = (seen){0};
    CHECK(lb_quantize_file(cx, source, pieces, &o));
    CHECK(s.resumed == 0 && io_same_bytes(whole, pieces));
    stop_after(3, &config);
    CHECK(truncate(partial, 1000) == 0);
    s = (seen){0};
    CHECK(lb_quantize_file(cx, source, pieces, &o));
    CHECK(s.resumed == 0 && io_same_bytes(whole, pieces));
    s = (seen){0};
    CHECK(lb_quantize_file(cx, source, pieces, &o));
    CHECK(s.resumed == 0 && io_same_bytes(whole, pieces));
    /* A source that changed meanwhile counts as another one. */
    stop_after(3, &config);
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    CHECK(utimensat(AT_FDCWD, source, times, 0) == 0);
    s = (seen){0};
    CHECK(lb_quantize_file(cx, source, pieces, &o));
    CHECK(s.resumed == 0 && io_same_bytes(whole, pieces));
}

/* ---- cancelled ---------------------------------------------------------- */

typedef struct brake {
    int after; /* calls until it stops the job */
} brake;

static bool pulls(void *user)
{
    brake *b = user;
    return --b->after < 0;
}

/* Stopped after any number of chunks: the partial file with the complete ones
 * stays, and a resumed run writes the same bytes as an uninterrupted one. */
static void test_cancel(void)
{
    static const lb_quant_config config = {.format = "nf4"};
    char partial[SCRATCH_MAX + 16];
    struct stat st;
    seen s = {0};
    lb_quantize_options o = options_of(&config, NULL, NULL, &s);
    int kept = 0, gone = 0;
    snprintf(partial, sizeof partial, "%s.partial", pieces);
    CHECK(lb_quantize_file(cx, source, whole, &o));
    o.cancel = pulls;
    for (int n = 0, stopped = 1; stopped && n < 1000; n += n < 4 ? 1 : 7) {
        brake b = {.after = n};
        unlink(pieces);
        s = (seen){0};
        o.cancel_user = &b;
        o.resume = false;
        stopped = !lb_quantize_file(cx, source, pieces, &o);
        if (!stopped) break;
        CHECK_EQ_I(lb_error_status(cx), LB_E_CANCELLED);
        lb_clear(cx);
        CHECK(stat(pieces, &st) != 0);
        const int finished = s.quantized + s.kept;
        const bool has = stat(partial, &st) == 0;
        CHECK(has == (finished > 0));
        kept += has;
        gone += !has;
        b.after = 1 << 20;
        s = (seen){0};
        o.resume = true;
        CHECK(lb_quantize_file(cx, source, pieces, &o));
        CHECK_EQ_I(s.resumed, finished);
        CHECK(io_same_bytes(whole, pieces));
    }
    CHECK(kept > 2 && gone > 0);
}

/* ---- values that a type cannot represent --------------------------------- */

static const char *all_of_them(void *user, const lb_entry *e,
                               lb_quant_config *config)
{
    (void)user;
    (void)e;
    (void)config;
    return NULL;
}

/* Finite, but too large for a scale: the message has the index within the whole
 * array (vectors: elements, others: rows). */
static void test_too_large(void)
{
    enum { COLUMNS = 50, ROWS = 8000, LENGTH = COLUMNS * ROWS, AT = 300007 };
    static const lb_quant_config config = {.format = "nf4"};
    static double v[LENGTH];
    struct stat st;
    v[AT] = 1e300;
    for (int rank = 1; rank <= 2; rank++) {
        const lb_shape shape =
            rank == 1 ? LB_SHAPE(LENGTH) : LB_SHAPE(ROWS, COLUMNS);
        seen s = {0};
        lb_quantize_options o = options_of(&config, NULL, NULL, &s);
        o.choose = all_of_them;
        lb_enter(cx);
        const lb_planned p = {.name = "v",
                              .array = lb_from(cx, LB_F64, shape, v)};
        CHECK(lb_save(cx, whole, &p, 1, NULL));
        lb_leave(cx);
        unlink(pieces);
        CHECK(!lb_quantize_file(cx, whole, pieces, &o));
        CHECK_EQ_I(lb_error_status(cx), LB_E_ARG);
        long long begin = 0, row = 0, column = 0, where = -1;
        const char *say = lb_error(cx);
        if (rank == 1 && sscanf(say,
                                "'v', from element %lld on: quantize: element "
                                "(%lld) of f64(",
                                &begin, &column) == 2)
            where = begin + column;
        if (rank == 2 && sscanf(say,
                                "'v', from row %lld on: quantize: element "
                                "(%lld,%lld) of f64(",
                                &begin, &row, &column) == 3)
            where = (begin + row) * COLUMNS + column;
        if (check_fails(where == AT && begin > 0 &&
                        strstr(say, "is 1e+300, which nf4 cannot hold")))
            fprintf(stderr, "too large: %s\n", say);
        lb_clear(cx);
        CHECK(stat(pieces, &st) != 0);
    }
}

/* An array with a global scale is read in place; this is not possible if its
 * bytes must be swapped. */
static void test_turned(void)
{
    enum { NUMBERS = 500000 };
    static const char head[] = "\x93NUMPY\x01\x00v\x00{'descr': '>f4', "
                               "'fortran_order': False, 'shape': (500, 1000), ";
    static const lb_quant_config config = {.format = "ternary",
                                           .scale = LB_SCALE_TENSOR};
    static uint8_t bytes[128 + 4 * NUMBERS];
    seen s = {0};
    lb_quantize_options o = options_of(&config, NULL, NULL, &s);
    o.choose = all_of_them;
    memset(bytes, ' ', 128);
    memcpy(bytes, head, sizeof head - 1);
    bytes[126] = '}';
    bytes[127] = '\n';
    FILE *f = fopen(whole, "wb");
    CHECK(f && fwrite(bytes, sizeof bytes, 1, f) == 1 && fclose(f) == 0);
    REFUSED(lb_quantize_file(cx, whole, pieces, &o), LB_E_UNSUPPORTED,
            "is compressed, big-endian or in Fortran order, and too large to "
            "be read as a whole");
}

int main(void)
{
    cx = lb_open(&(lb_options){.threads = 2});
    CHECK(scratch_file(source) && scratch_file(whole) && scratch_file(pieces));
    lb_enter(cx);
    make_source();
    lb_leave(cx);
    test_pieces();
    test_choice();
    test_memory();
    test_resume();
    test_cancel();
    test_too_large();
    test_turned();
    CHECK_EQ_S(lb_error(cx), "");
    unlink(source);
    unlink(whole);
    unlink(pieces);
    lb_close(cx);
    return check_report("files in pieces");
}
