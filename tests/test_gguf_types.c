/* test_gguf_types.c - the block types of GGUF files: bytes and values against
 * ggml's and gguf-py's (see tests/golden/gguf_types.h), the laws on many
 * blocks, shapes with partial blocks, and errors. */
/* ctest: simde */
#include <stdlib.h>

#include "check.h"
#include "golden/gguf_types.h"
#include "lowbit_ext.h"

typedef struct {
    const char *name;
    int len, size, d_at;
    double largest; /* code: d is max|x| / largest */
    double bound;   /* in f32, of max|x|, where d is a normal f16 */
} block_type;

static const block_type types[] = {
    {"q8_0", 32, 34, 0, 127, 0.004427}, {"q4_0", 32, 18, 0, 8, 0.125428},
    {"iq4_nl", 32, 18, 0, 113, 0.24},   {"tq1_0", 256, 54, 52, 1, 0.50049},
    {"tq2_0", 256, 66, 64, 1, 0.50049},
};
enum { N_TYPES = sizeof types / sizeof *types };

static const block_type *type_named(const char *name)
{
    for (int t = 0; t < N_TYPES; t++)
        if (!strcmp(types[t].name, name)) return &types[t];
    return NULL;
}

/* ---- numbers: the formulas of tools/gen_gguf_types.py -------------------- */

static uint32_t draw_state;
static int32_t draw(void) /* 24 bits */
{
    draw_state = draw_state * 1664525 + 1013904223;
    return (int32_t)(draw_state >> 8);
}

static void numbers(const char *kind, int e, int m, int n, int seed, float *x)
{
    draw_state = (uint32_t)seed;
    for (int i = 0; i < n; i++) {
        double v = 0;
        if (!strcmp(kind, "flat")) {
            v = ldexp(draw() - (1 << 23), e - 23);
        } else if (!strcmp(kind, "tail")) {
            const int mantissa = draw() - (1 << 23);
            v = ldexp(mantissa, e - 23 - draw() % 12);
        } else if (!strcmp(kind, "half")) {
            v = ldexp(draw() % (2 * abs(m) + 1) - abs(m), e - 1);
            if (i == 0) v = ldexp(m, e - 1);
        } else if (!strcmp(kind, "one") && i == 5) {
            v = ldexp(-3.25, e);
        } else if (!strcmp(kind, "minus")) {
            v = -0.0;
        }
        x[i] = (float)v;
    }
}

static uint64_t digest(const float *x, int n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (int i = 0; i < n; i++) {
        uint32_t u = 0x7fc00000;
        if (!isnan(x[i])) memcpy(&u, &x[i], sizeof u);
        for (int k = 0; k < 4; k++)
            h = (h ^ (u >> 8 * k & 255)) * 0x100000001b3;
    }
    return h;
}

/* ---- helpers ------------------------------------------------------------- */

static lb_array *quantized(lb_ctx *cx, const char *name, lb_array *a)
{
    return lb_quantize(cx, a, &(lb_quant_config){.format = name});
}

/* The bytes of a's blocks; NULL and a failed check if there are not n. */
static const uint8_t *blocks_of(lb_ctx *cx, lb_array *a, int64_t n)
{
    lb_array *part = lb_component(cx, a, "blocks");
    CHECK_EQ_S(lb_error(cx), "");
    CHECK_EQ_I(lb_size(part), n);
    CHECK(lb_dtype_of(part) == LB_U8);
    return lb_size(part) == n ? lb_data(part) : NULL;
}

static bool same_bytes(const uint8_t *a, const uint8_t *b, int64_t n)
{
    return a && b && !memcmp(a, b, (size_t)n);
}

/* The same values in any shape. */
static bool same_values(lb_ctx *cx, lb_array *a, lb_array *b)
{
    const void *x = lb_data(lb_materialize(cx, a));
    const void *y = lb_data(lb_materialize(cx, b));
    return x && y && lb_size(a) == lb_size(b) &&
           !memcmp(x, y, (size_t)lb_size(a) * sizeof(float));
}

static int64_t blocks_in(const block_type *t, int64_t n)
{
    return (n + t->len - 1) / t->len;
}

static double f16_value(const uint8_t *at)
{
    const int h = at[0] | at[1] << 8, e = h >> 10 & 31, m = h & 1023;
    const double v = e == 31 ? (double)INFINITY
                     : e     ? ldexp(1024 + m, e - 25)
                             : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

static bool is_normal_d(const uint8_t *block, const block_type *t)
{
    const double d = fabs(f16_value(block + t->d_at));
    return d == 0 || (d >= 0x1p-14 && d <= 65504);
}

/* Where ggml stores an infinite or NaN scale, we refuse the values. */
static bool too_large(const block_type *t, const uint8_t *blocks, int64_t size)
{
    for (int64_t i = 0; i < size; i += t->size)
        if ((blocks[i + t->d_at + 1] & 0x7c) == 0x7c) return true;
    return false;
}

/* ---- golden -------------------------------------------------------------- */

static void test_encoded(lb_ctx *cx)
{
    const int n =
        (int)(sizeof gguf_golden_encoded / sizeof *gguf_golden_encoded);
    for (int i = 0; i < n; i++) {
        const block_type *t = type_named(gguf_golden_encoded[i].type);
        const char *hex = gguf_golden_encoded[i].bytes;
        const int count = gguf_golden_encoded[i].n;
        float x[3 * 256], y[3 * 256];
        uint8_t want[8 * 34];
        numbers(gguf_golden_encoded[i].kind, gguf_golden_encoded[i].exponent,
                gguf_golden_encoded[i].halves, count,
                gguf_golden_encoded[i].seed, x);
        const int64_t size = blocks_in(t, count) * t->size;
        CHECK_EQ_I(strlen(hex), 2 * size);
        for (int64_t k = 0; k < size; k++) {
            unsigned byte = 0;
            sscanf(hex + 2 * k, "%2x", &byte);
            want[k] = (uint8_t)byte;
        }
        lb_enter(cx);
        lb_array *q =
            quantized(cx, t->name, lb_from(cx, LB_F32, LB_SHAPE(count), x));
        if (too_large(t, want, size)) {
            CHECK(!q && lb_error_status(cx) == LB_E_ARG);
            lb_clear(cx);
            lb_leave(cx);
            continue;
        }
        const bool bytes_ok = same_bytes(blocks_of(cx, q, size), want, size);
        lb_read(cx, q, y, (size_t)count * sizeof *y);
        const bool values_ok =
            digest(y, count) == gguf_golden_encoded[i].decoded;
        if (check_fails(bytes_ok && values_ok))
            fprintf(stderr, "%s of %d %s 2^%d: %s\n", t->name, count,
                    gguf_golden_encoded[i].kind,
                    gguf_golden_encoded[i].exponent,
                    bytes_ok ? "values" : "bytes");
        lb_leave(cx);
    }
}

static lb_array *from_blocks(lb_ctx *cx, const block_type *t, lb_shape shape,
                             lb_array *part)
{
    const char *name = "blocks";
    return lb_from_parts(cx, &(lb_quant_config){.format = t->name}, shape, NULL,
                         &name, &part, 1);
}

/* Blocks of random bytes: every one decodes to something. */
static void test_decoded(lb_ctx *cx)
{
    for (int i = 0; i < N_TYPES; i++) {
        const block_type *t = type_named(gguf_golden_decoded[i].type);
        const int count = gguf_golden_decoded[i].count, n = count * t->len;
        uint8_t raw[64 * 66];
        float *y = malloc((size_t)n * sizeof *y);
        draw_state = (uint32_t)t->size;
        for (int k = 0; k < count * t->size; k++)
            raw[k] = (uint8_t)(draw() >> 16);
        for (int k = 0; k < count; k++) {
            uint8_t *high = &raw[k * t->size + t->d_at + 1];
            if ((*high & 0x7c) == 0x7c) *high &= 0xfb;
        }
        lb_enter(cx);
        lb_array *part =
            lb_from(cx, LB_U8, LB_SHAPE(4, count / 4, t->size), raw);
        lb_array *q = from_blocks(cx, t, LB_SHAPE(4, n / 4), part);
        CHECK(y && lb_read(cx, q, y, (size_t)n * sizeof *y));
        CHECK(digest(y, n) == gguf_golden_decoded[i].decoded);
        CHECK_EQ_S(lb_format_of(q), t->name);
        CHECK_EQ_I(lb_nbytes(q), count * t->size);
        lb_leave(cx);
        free(y);
    }
}

/* ---- inputs and shapes --------------------------------------------------- */

/* The value of an element counts, not its dtype; the result has that dtype. */
static void test_dtypes(lb_ctx *cx)
{
    const lb_dtype dtypes[] = {LB_F16, LB_BF16, LB_F64};
    for (int t = 0; t < N_TYPES; t++)
        for (int k = 0; k < 3; k++) {
            const int64_t size = 3 * blocks_in(&types[t], 300) * types[t].size;
            float x[900];
            numbers("tail", 0, 0, 900, 101, x);
            lb_enter(cx);
            lb_array *a = lb_convert(
                cx, lb_from(cx, LB_F32, LB_SHAPE(3, 300), x), dtypes[k]);
            lb_array *q = quantized(cx, types[t].name, a);
            lb_array *r =
                quantized(cx, types[t].name, lb_convert(cx, a, LB_F32));
            CHECK(lb_dtype_of(q) == dtypes[k]);
            CHECK(same_bytes(blocks_of(cx, q, size), blocks_of(cx, r, size),
                             size));
            /* One rounding of the decoded values. */
            lb_array *u = lb_materialize(cx, q);
            lb_array *v = lb_convert(cx, lb_materialize(cx, r), dtypes[k]);
            CHECK(u && v &&
                  !memcmp(lb_data(u), lb_data(v),
                          900 * lb_dtype_size(dtypes[k])));
            CHECK_EQ_S(lb_error(cx), "");
            lb_leave(cx);
        }
}

/* Rows begin with a new block: each is quantized as if alone. */
static void test_rows(lb_ctx *cx)
{
    static const int length[] = {1,  2,  15, 16,  17,  31,
                                 32, 33, 63, 255, 256, 257};
    for (int t = 0; t < N_TYPES; t++)
        for (int k = 0; k < 12; k++) {
            const int n = length[k];
            const int64_t row = blocks_in(&types[t], n) * types[t].size;
            float x[2 * 3 * 257];
            numbers("flat", 3, 0, 6 * n, 102, x);
            lb_enter(cx);
            lb_array *q = quantized(cx, types[t].name,
                                    lb_from(cx, LB_F32, LB_SHAPE(2, 3, n), x));
            const uint8_t *all = blocks_of(cx, q, 6 * row);
            CHECK_EQ_I(lb_nbytes(q), 6 * row);
            for (int i = 0; i < 6 && all; i++) {
                lb_array *one =
                    quantized(cx, types[t].name,
                              lb_from(cx, LB_F32, LB_SHAPE(n), x + i * n));
                CHECK(same_bytes(all + i * row, blocks_of(cx, one, row), row));
            }
            lb_leave(cx);
        }
}

static void test_small(lb_ctx *cx)
{
    for (int t = 0; t < N_TYPES; t++) {
        const block_type *b = &types[t];
        const float x[1] = {-2.5f};
        lb_enter(cx);
        lb_array *row =
            quantized(cx, b->name, lb_from(cx, LB_F32, LB_SHAPE(1), x));
        lb_array *scalar =
            quantized(cx, b->name, lb_from(cx, LB_F32, (lb_shape){0}, x));
        CHECK_EQ_I(lb_rank(scalar), 0);
        CHECK_EQ_I(lb_nbytes(scalar), b->size);
        CHECK(same_bytes(lb_part_bytes(scalar->store, 0),
                         blocks_of(cx, row, b->size), b->size));
        CHECK(lb_item(cx, scalar) == lb_item(cx, row));
        CHECK_NEAR(lb_item(cx, scalar), -2.5, 2.5 * b->bound);
        const lb_shape empty[] = {LB_SHAPE(0), LB_SHAPE(3, 0), LB_SHAPE(0, 40)};
        for (int k = 0; k < 3; k++) {
            lb_array *q =
                quantized(cx, b->name, lb_from(cx, LB_F32, empty[k], x));
            const lb_shape got = lb_shape_of(q);
            CHECK(lb_shape_equal(&got, &empty[k]));
            CHECK_EQ_S(lb_format_of(q), b->name);
            CHECK_EQ_I(lb_size(lb_materialize(cx, q)), 0);
        }
        CHECK_EQ_S(lb_error(cx), "");
        lb_leave(cx);
    }
}

/* A view of q is that view of its values. */
static void check_view(lb_ctx *cx, lb_array *of_q, lb_array *of_values)
{
    of_q = lb_materialize(cx, of_q);
    of_values = lb_materialize(cx, of_values);
    CHECK_EQ_S(lb_error(cx), "");
    CHECK(of_q && of_values &&
          lb_shape_equal(&of_q->shape, &of_values->shape) &&
          !memcmp(lb_data(of_q), lb_data(of_values),
                  (size_t)lb_size(of_q) * sizeof(float)));
}

static void test_views(lb_ctx *cx)
{
    for (int t = 0; t < N_TYPES; t++) {
        float x[6 * 300];
        numbers("tail", 0, 0, 6 * 300, 103, x);
        lb_enter(cx);
        lb_array *q = quantized(cx, types[t].name,
                                lb_from(cx, LB_F32, LB_SHAPE(6, 300), x));
        lb_array *v = lb_materialize(cx, q);
        const int64_t from[] = {1, 13}, to[] = {6, 299}, step[] = {2, 3};
        check_view(cx, lb_transpose(cx, q, NULL), lb_transpose(cx, v, NULL));
        check_view(cx, lb_slice(cx, q, from, to, NULL),
                   lb_slice(cx, v, from, to, NULL));
        check_view(cx, lb_slice(cx, q, from, to, step),
                   lb_slice(cx, v, from, to, step));
        check_view(cx, lb_reverse(cx, q, LB_AXES(1)),
                   lb_reverse(cx, v, LB_AXES(1)));
        check_view(cx, lb_reshape(cx, q, LB_SHAPE(2, 3, 5, 60)),
                   lb_reshape(cx, v, LB_SHAPE(2, 3, 5, 60)));
        lb_array *both[] = {q, q}, *dense[] = {v, v};
        lb_array *joined = lb_concatenate(cx, both, 2, 0);
        check_view(cx, joined, lb_concatenate(cx, dense, 2, 0));
        CHECK_EQ_S(lb_format_of(joined), types[t].name);
        CHECK_EQ_S(lb_format_of(lb_transpose(cx, q, NULL)), types[t].name);
        lb_leave(cx);
    }
}

/* An element's bits do not depend on the run that it is decoded in. */
static void test_runs(lb_ctx *cx)
{
    enum { ROWS = 3, N = 700 };
    for (int t = 0; t < N_TYPES; t++) {
        float x[ROWS * N], whole[ROWS * N], run[LB_RUN + 1];
        numbers("flat", 0, 0, ROWS * N, 104, x);
        lb_enter(cx);
        lb_array *q = quantized(cx, types[t].name,
                                lb_from(cx, LB_F32, LB_SHAPE(ROWS, N), x));
        CHECK(lb_read(cx, q, whole, sizeof whole));
        const lb_cpu cpu = {.level = LB_LEVEL_REF};
        for (int i = 0; i < 20000; i++) {
            const int row = draw() % ROWS, at = draw() % N;
            const int most = N - at < LB_RUN ? N - at : LB_RUN;
            const int n = draw() % (most + 1), first = row * N + at;
            run[n] = 12345;
            q->store->fmt->decode(&cpu, q->store, first, n, run);
            const bool ok =
                !memcmp(run, whole + first, (size_t)n * sizeof *run);
            if (check_fails(ok && run[n] == 12345))
                fprintf(stderr, "%s: decode(%d, %d)\n", types[t].name, first,
                        n);
        }
        lb_leave(cx);
    }
}

static void test_threads(void)
{
    enum { ROWS = 77, N = 517 };
    static const int threads[] = {1, 2, 7};
    float *x = malloc(sizeof(float) * ROWS * N);
    uint8_t *first = malloc((size_t)ROWS * N * 2);
    CHECK(x && first);
    if (x) numbers("tail", 4, 0, ROWS * N, 105, x);
    for (int t = 0; t < N_TYPES && x && first; t++)
        for (int k = 0; k < 3; k++) {
            const int64_t size = ROWS * blocks_in(&types[t], N) * types[t].size;
            lb_ctx *cx = lb_open(&(lb_options){
                .struct_size = sizeof(lb_options), .threads = threads[k]});
            lb_array *q = quantized(cx, types[t].name,
                                    lb_from(cx, LB_F32, LB_SHAPE(ROWS, N), x));
            const uint8_t *bytes = blocks_of(cx, q, size);
            if (k == 0 && bytes) memcpy(first, bytes, (size_t)size);
            CHECK(same_bytes(bytes, first, size));
            lb_close(cx);
        }
    free(x);
    free(first);
}

/* ---- laws 1 and 2 -------------------------------------------------------- */

/* Within bound * max|x| in every block; zeros stay zeros unless the table has
 * none. */
static void check_law_1(const block_type *t, const float *x, const float *y,
                        const uint8_t *block)
{
    double most = 0, off = 0;
    bool zeros = true;
    if (!is_normal_d(block, t)) return;
    for (int i = 0; i < t->len; i++) {
        most = fmax(most, fabs((double)x[i]));
        off = fmax(off, fabs((double)y[i] - (double)x[i]));
        zeros = zeros && (x[i] != 0 || y[i] == 0);
    }
    if (f16_value(block + t->d_at) == 0)
        CHECK(off <= most);
    else
        CHECK_NEAR(off, 0, most * t->bound);
    CHECK(zeros || !strcmp(t->name, "iq4_nl"));
}

static void laws_of(lb_ctx *cx, const block_type *t, const char *kind, int e)
{
    enum { N = 64 * 256 };
    const int count = N / t->len;
    const lb_format *fmt = lb_find_format(cx, t->name);
    float *x = malloc(sizeof(float) * N), *y = malloc(sizeof(float) * N),
          *z = malloc(sizeof(float) * N);
    CHECK(x && y && z);
    if (x && y && z) {
        numbers(kind, e, (int)(2 * t->largest), N, N, x);
        lb_enter(cx);
        lb_array *q =
            quantized(cx, t->name, lb_from(cx, LB_F32, LB_SHAPE(N), x));
        lb_read(cx, q, y, sizeof(float) * N);
        lb_array *r =
            quantized(cx, t->name, lb_from(cx, LB_F32, LB_SHAPE(N), y));
        lb_read(cx, r, z, sizeof(float) * N);
        const uint8_t *a = blocks_of(cx, q, count * t->size);
        const uint8_t *b = blocks_of(cx, r, count * t->size);
        for (int i = 0; i < count && a && b; i++) {
            const uint8_t *block = a + i * t->size;
            check_law_1(t, x + i * t->len, y + i * t->len, block);
            if (f16_value(block + t->d_at) == 0 || !is_normal_d(block, t))
                continue;
            if (fmt->searches)
                check_law_1(t, y + i * t->len, z + i * t->len, b + i * t->size);
            else
                CHECK(same_bytes(block, b + i * t->size, t->size));
        }
        lb_leave(cx);
    }
    free(x);
    free(y);
    free(z);
}

/* An encoder that searches for codes may find others the second time, which
 * change values less. */
static void test_second(lb_ctx *cx)
{
    enum { N = 32 * 4096 };
    static float x[N], y[N], z[N];
    double first = 0, second = 0;
    numbers("flat", 0, 0, N, 106, x);
    lb_enter(cx);
    lb_array *q = quantized(cx, "iq4_nl", lb_from(cx, LB_F32, LB_SHAPE(N), x));
    CHECK(lb_read(cx, q, y, sizeof y));
    q = quantized(cx, "iq4_nl", lb_from(cx, LB_F32, LB_SHAPE(N), y));
    CHECK(lb_read(cx, q, z, sizeof z));
    for (int i = 0; i < N; i++) {
        first += pow((double)(y[i] - x[i]), 2);
        second += pow((double)(z[i] - y[i]), 2);
    }
    CHECK(first > 0 && second < 0.02 * first);
    lb_leave(cx);
}

static void test_laws(lb_ctx *cx)
{
    static const char *const kinds[] = {"flat", "tail", "half"};
    static const int exponents[] = {0, -5, 7, -9, 15, -13, -30, 3, -140};
    for (int t = 0; t < N_TYPES; t++) {
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < 9; i++)
                laws_of(cx, &types[t], kinds[k], exponents[i]);
        lb_quant q = {.format = lb_find_format(cx, types[t].name)};
        CHECK(q.format && q.format->bound(&q) <= types[t].bound);
        CHECK_EQ_I(q.format && q.format->searches,
                   !strcmp(types[t].name, "iq4_nl"));
        /* A 16-bit dtype rounds once more. */
        q.dtype = LB_BF16;
        CHECK(q.format && q.format->bound(&q) > types[t].bound + 0x1p-9);
    }
    test_second(cx);
}

/* Where 1/d is infinite, codes are those of zeros, and so are the values. */
static void test_tiniest(lb_ctx *cx)
{
    static const uint8_t code[] = {0, 0x88, 0x88, 0x80, 0x55};
    for (int t = 0; t < N_TYPES; t++) {
        const block_type *b = &types[t];
        float x[256], y[256];
        numbers("flat", -130, 0, b->len, 107, x);
        lb_enter(cx);
        lb_array *q =
            quantized(cx, b->name, lb_from(cx, LB_F32, LB_SHAPE(b->len), x));
        const uint8_t *block = blocks_of(cx, q, b->size);
        CHECK(lb_read(cx, q, y, (size_t)b->len * sizeof *y));
        CHECK(block && f16_value(block + b->d_at) == 0);
        for (int i = 0; i < b->size && block; i++) {
            /* The last four bytes of five codes contain only four. */
            const uint8_t want = t == 3 && i >= 48 ? 0x7f : code[t];
            if (i == b->d_at || i == b->d_at + 1) continue;
            CHECK_EQ_I(block[i], want);
        }
        for (int i = 0; i < b->len; i++)
            CHECK(y[i] == 0);
        lb_leave(cx);
    }
}

/* ---- refusals ------------------------------------------------------------ */

static void refuses(lb_ctx *cx, lb_array *a, lb_quant_config c,
                    lb_status status, const char *says)
{
    CHECK(!lb_quantize(cx, a, &c));
    CHECK_EQ_I(lb_error_status(cx), status);
    if (check_fails(strstr(lb_error(cx), says) &&
                    strstr(lb_error(cx), c.format)))
        fprintf(stderr, "error \"%s\" does not contain %s\n", lb_error(cx),
                says);
    lb_clear(cx);
}

static void test_refusals(lb_ctx *cx)
{
    for (int t = 0; t < N_TYPES; t++) {
        const char *f = types[t].name;
        const float bad[2] = {1, NAN};
        lb_enter(cx);
        lb_array *a = lb_zeros(cx, LB_F32, LB_SHAPE(2, 40));
#define REFUSES(STATUS, SAYS, ...)                                             \
    refuses(cx, a, (lb_quant_config){.format = f, __VA_ARGS__}, STATUS, SAYS)
        REFUSES(LB_E_UNSUPPORTED, "eformer", .compat = LB_COMPAT_EFORMER);
        REFUSES(LB_E_UNSUPPORTED, "bnb-cuda", .compat = LB_COMPAT_BNB_CUDA);
        REFUSES(LB_E_UNSUPPORTED, "bnb-cpu", .compat = LB_COMPAT_BNB_CPU);
        REFUSES(LB_E_UNSUPPORTED, "cross rows", .blocks = LB_BLOCKS_FLAT);
        REFUSES(LB_E_ARG, "axis", .axes = {1, {1}});
        REFUSES(LB_E_ARG, "scale", .scale = LB_SCALE_BLOCK);
        REFUSES(LB_E_ARG, "threshold", .threshold = LB_THRESHOLD_ABSMEAN);
        REFUSES(LB_E_ARG, "meaning", .meaning = LB_MEANS_ABSMAX);
        REFUSES(LB_E_ARG, "decode", .decode = LB_DECODE_POLY);
        REFUSES(LB_E_ARG, "center", .center = true);
        REFUSES(LB_E_ARG, "block_size is 64", .block_size = 64);
        REFUSES(LB_E_DTYPE, "i8", .dtype = LB_I8);
#undef REFUSES
        CHECK(lb_quantize(cx, a,
                          &(lb_quant_config){.format = f,
                                             .block_size = types[t].len,
                                             .blocks = LB_BLOCKS_IN_ROWS}));
        const lb_shape deep = LB_SHAPE(1, 1, 1, 1, 1, 1, 2, 40);
        const lb_quant_config plain = {.format = f};
        CHECK(same_values(cx, lb_quantize(cx, lb_reshape(cx, a, deep), &plain),
                          lb_quantize(cx, a, &plain)));
        refuses(cx, lb_from(cx, LB_F32, LB_SHAPE(2), bad),
                (lb_quant_config){.format = f}, LB_E_ARG, "element (1)");
        CHECK(!from_blocks(cx, &types[t], LB_SHAPE(2, 40),
                           lb_zeros(cx, LB_U8, LB_SHAPE(2, 2, 17))));
        CHECK(lb_error_status(cx));
        lb_clear(cx);
        lb_leave(cx);
    }
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    CHECK(cx);
    if (!cx) return check_report("gguf_types");
    test_encoded(cx);
    test_decoded(cx);
    test_dtypes(cx);
    test_rows(cx);
    test_small(cx);
    test_views(cx);
    test_runs(cx);
    test_threads();
    test_laws(cx);
    test_tiniest(cx);
    test_refusals(cx);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    return check_report("gguf_types");
}
