/* test_core.c - contexts, errors, scopes, references, memory, promotion, and
 * arrays that are too large to exist. */
#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "golden/promotion.h"
#include "lowbit_ext.h"
#include "meter.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- options ------------------------------------------------------------ */

static void refused(const lb_options *o, const char *say)
{
    char why[256];
    lb_ctx *cx = lb_open(o);
    CHECK(!cx);
    lb_close(cx);
    CHECK(lb_open_why(o, why, sizeof why) == why);
    if (check_fails(strstr(why, say) != NULL))
        fprintf(stderr, "error \"%s\" does not contain \"%s\"\n", why, say);
}

static void bad_options(void)
{
    void *(*const alloc)(void *, size_t, size_t) = NULL;
    const lb_allocator half = {alloc, NULL, NULL};
    refused(&(lb_options){.threads = -1}, "threads is -1");
    refused(&(lb_options){.threads = 5000}, "5000");
    refused(&(lb_options){.keep_bytes = -2}, "keep_bytes is -2");
    refused(&(lb_options){.dense = (lb_dense_policy)9}, "dense is 9");
    refused(&(lb_options){.precision = (lb_precision)9}, "precision is 9");
    refused(&(lb_options){.allocator = &half}, "alloc");
    refused(&(lb_options){.isa = "sse9"}, "sse9");
    refused(&(lb_options){.struct_size = 3}, "struct_size is 3");
#if defined(__x86_64__)
    refused(&(lb_options){.isa = "neon"}, "neon");
#else
    refused(&(lb_options){.isa = "avx2"}, "avx2");
#endif
    char small[5] = "....";
    lb_open_why(&(lb_options){.threads = -1}, small, sizeof small);
    CHECK_EQ_S(small, "opti");
    lb_open_why(&(lb_options){.threads = -1}, small, 0);
    CHECK_EQ_S(small, "opti");
}

static void sizes_of_options(void)
{
    struct {
        lb_options now;
        char later[64];
    } larger = {.now = {.struct_size = sizeof larger, .threads = 2}};
    memset(larger.later, 0x55, sizeof larger.later);
    lb_ctx *cx = lb_open(&larger.now);
    CHECK_EQ_I(lb_threads(cx), 2);
    lb_close(cx);
    /* Fields past the caller's size are not read. */
    lb_options old = {.struct_size = offsetof(lb_options, allocator),
                      .threads = 3,
                      .isa = "no such level"};
    cx = lb_open(&old);
    CHECK_EQ_I(lb_threads(cx), 3);
    lb_close(cx);
    old = (lb_options){.struct_size = sizeof old, .threads = 1, .isa = "ref"};
    cx = lb_open(&old);
    CHECK_EQ_I(lb_threads(cx), 1);
    CHECK_EQ_S(lb_isa(cx), "ref");
    lb_close(cx);
    cx = lb_open(NULL);
    CHECK(cx && lb_threads(cx) >= 1);
    lb_close(cx);
}

static void environment(void)
{
    setenv("LOWBIT_ISA", "ref", 1);
    lb_ctx *cx = lb_open(NULL);
    CHECK_EQ_S(lb_isa(cx), "ref");
    lb_close(cx);
    setenv("LOWBIT_ISA", "nonsense", 1);
    refused(NULL, "LOWBIT_ISA is \"nonsense\"");
    cx = lb_open(&(lb_options){.isa = "ref"}); /* the option wins */
    CHECK(cx != NULL);
    lb_close(cx);
    unsetenv("LOWBIT_ISA");
    setenv("LOWBIT_PRECISION", "low", 1);
    refused(NULL, "LOWBIT_PRECISION is \"low\": not highest, fast or fastest");
    unsetenv("LOWBIT_PRECISION");
    setenv("LOWBIT_DENSE", "sometimes", 1);
    refused(NULL, "LOWBIT_DENSE is \"sometimes\"");
    setenv("LOWBIT_DENSE", "deny", 1);
    cx = lb_open(NULL);
    CHECK(cx != NULL);
    lb_close(cx);
    unsetenv("LOWBIT_DENSE");
}

/* ---- errors ------------------------------------------------------------- */

static void errors(lb_ctx *cx)
{
    lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
    CHECK_EQ_S(lb_error(cx), "");
    lb_array *bad = lb_reshape(cx, x, LB_SHAPE(7));
    CHECK(!bad);
    char first[256];
    snprintf(first, sizeof first, "%s", lb_error(cx));
    CHECK(strstr(first, "(2,3)") && strstr(first, "(7)"));
    /* The first error stays, whatever follows; valid calls continue to work. */
    CHECK(!lb_exp(cx, lb_add(cx, bad, x)));
    CHECK(!lb_convert(cx, x, LB_NO_DTYPE));
    CHECK(lb_exp(cx, x) != NULL);
    CHECK_EQ_S(lb_error(cx), first);
    CHECK_EQ_I(lb_error_status(cx), LB_E_SHAPE);
    lb_clear(cx);
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
    CHECK_EQ_S(lb_error(cx), "");
    CHECK(!lb_convert(cx, x, LB_NO_DTYPE));
    CHECK_EQ_I(lb_error_status(cx), LB_E_DTYPE);
    lb_clear(cx);
    for (int i = LB_OK; i <= LB_E_UNSUPPORTED; i++)
        for (int j = LB_OK; j < i; j++)
            CHECK(strcmp(lb_status_name((lb_status)i),
                         lb_status_name((lb_status)j)) != 0);
    CHECK_EQ_S(lb_status_name(LB_E_NOMEM), "out of memory");
    CHECK_EQ_S(lb_status_name((lb_status)1000), "unknown status");
    CHECK_EQ_S(lb_status_name((lb_status)-1), "unknown status");
    CHECK_EQ_S(lb_version(), LB_VERSION_STRING);
    /* A message longer than its buffer is cut, not overrun. */
    char text[2000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    CHECK(!lb_fail(cx, LB_E_ARG, "%s", text));
    CHECK(strlen(lb_error(cx)) > 100 && strlen(lb_error(cx)) < sizeof text);
    lb_clear(cx);
}

/* ---- looking ------------------------------------------------------------ */

static void looking(lb_ctx *cx)
{
    static const struct {
        lb_dtype d;
        const char *name;
        size_t size;
    } t[] = {{LB_F32, "f32", 4},        {LB_F16, "f16", 2},
             {LB_BF16, "bf16", 2},      {LB_F64, "f64", 8},
             {LB_I8, "i8", 1},          {LB_I16, "i16", 2},
             {LB_I32, "i32", 4},        {LB_I64, "i64", 8},
             {LB_U8, "u8", 1},          {LB_U16, "u16", 2},
             {LB_U32, "u32", 4},        {LB_U64, "u64", 8},
             {LB_BOOL, "bool", 1},      {LB_NO_DTYPE, "none", 0},
             {(lb_dtype)14, "none", 0}, {(lb_dtype)-1, "none", 0}};
    for (size_t i = 0; i < COUNT(t); i++) {
        CHECK_EQ_S(lb_dtype_name(t[i].d), t[i].name);
        CHECK_EQ_I(lb_dtype_size(t[i].d), t[i].size);
    }
    CHECK_EQ_I(lb_promote(LB_F32, LB_NO_DTYPE), LB_NO_DTYPE);
    CHECK_EQ_I(lb_promote((lb_dtype)99, LB_I8), LB_NO_DTYPE);

    lb_array *a = lb_iota(cx, LB_I16, LB_SHAPE(2, 3, 4), 2);
    CHECK_EQ_I(lb_rank(a), 3);
    CHECK_EQ_I(lb_dim(a, 0), 2);
    CHECK_EQ_I(lb_dim(a, -1), 4);
    CHECK_EQ_I(lb_dim(a, -3), 2);
    CHECK_EQ_I(lb_dim(a, 3), -1);
    CHECK_EQ_I(lb_dim(a, -4), -1);
    CHECK_EQ_I(lb_size(a), 24);
    CHECK_EQ_I(lb_nbytes(a), 48);
    CHECK_EQ_I(lb_dtype_of(a), LB_I16);
    CHECK_EQ_S(lb_format_of(a), "dense");
    CHECK(lb_data(a) && ((const int16_t *)lb_data(a))[7] == 3);
    CHECK(lb_materialize(cx, a) == a);
    lb_array *t2 = lb_transpose(cx, a, NULL);
    CHECK(!lb_data(t2));
    CHECK_EQ_I(lb_nbytes(t2), 48); /* of what is stored behind it */
    CHECK(lb_data(lb_materialize(cx, t2)) != NULL);
    /* A row of a matrix is contiguous, a column is not. */
    const int64_t lo[3] = {1, 0, 0}, hi[3] = {2, 3, 4};
    CHECK(lb_data(lb_slice(cx, a, lo, hi, NULL)) ==
          (const char *)lb_data(a) + 24);
    CHECK_EQ_I(lb_rank(NULL), -1);
    CHECK_EQ_I(lb_dim(NULL, 0), -1);
    CHECK_EQ_I(lb_size(NULL), -1);
    CHECK_EQ_I(lb_shape_of(NULL).rank, -1);
    CHECK_EQ_I(lb_dtype_of(NULL), LB_NO_DTYPE);
    CHECK_EQ_I(lb_nbytes(NULL), 0);
    CHECK(!lb_data(NULL));
    CHECK_EQ_I(lb_shape_make(9, (const int64_t[9]){1}).rank, 9);
    CHECK_EQ_S(lb_error(cx), "");
}

static void making(lb_ctx *cx)
{
    /* Bytes of bool that are not bools are refused. */
    static const uint8_t odd[] = {1, 0, 2};
    CHECK(lb_wrap(cx, LB_BOOL, LB_SHAPE(2), odd, NULL, NULL) != NULL);
    CHECK(!lb_wrap(cx, LB_BOOL, LB_SHAPE(3), odd, NULL, NULL));
    CHECK(strstr(lb_error(cx), "byte 2") && strstr(lb_error(cx), "is 2"));
    lb_clear(cx);
    CHECK_EQ_I(lb_dtype_of(lb_scalar(cx, 2.5)), LB_F64);
    CHECK(lb_item(cx, lb_scalar(cx, 2.5)) == 2.5);
    CHECK_EQ_I(lb_dtype_of(lb_scalar_int(cx, INT32_MIN)), LB_I32);
    CHECK_EQ_I(lb_dtype_of(lb_scalar_int(cx, (int64_t)INT32_MAX + 1)), LB_I64);
    CHECK_EQ_I(lb_item_int(cx, lb_scalar_int(cx, INT64_MIN)), INT64_MIN);
    CHECK(lb_item(cx, lb_full(cx, LB_F16, LB_SHAPE(1), 2.0005)) == 2.0);
    CHECK_EQ_I(lb_item_int(cx, lb_full_int(cx, LB_U8, LB_SHAPE(1, 1), 300)),
               44);
    CHECK_EQ_I(lb_nbytes(lb_full(cx, LB_F64, LB_SHAPE(1000, 1000), 1)), 8);
    /* Any byte but 0 is true, and true is stored as 1. */
    const uint8_t bytes[] = {0, 1, 2, 255};
    uint8_t to[4];
    CHECK(lb_read(cx, lb_from(cx, LB_BOOL, LB_SHAPE(4), bytes), to, 4));
    CHECK(to[0] == 0 && to[1] == 1 && to[2] == 1 && to[3] == 1);
    CHECK_EQ_I(lb_size(lb_from(cx, LB_F32, LB_SHAPE(0, 3), NULL)), 0);
    CHECK(lb_read(cx, lb_zeros(cx, LB_F32, LB_SHAPE(0)), NULL, 0));
    int32_t rows[4];
    lb_array *a = lb_iota(cx, LB_I32, LB_SHAPE(3, 2), 0);
    CHECK(lb_read_rows(cx, a, 1, 3, rows, sizeof rows));
    CHECK(rows[0] == 1 && rows[1] == 1 && rows[2] == 2 && rows[3] == 2);
    CHECK(lb_read_rows(cx, a, 3, 3, NULL, 0));
    CHECK_EQ_S(lb_error(cx), "");
}

/* ---- scopes and references ---------------------------------------------- */

/* An array that counts its destruction. */
static void gone(void *user)
{
    ++*(int *)user;
}

static lb_array *marked(lb_ctx *cx, int *count)
{
    static const float one[] = {1, 2, 3, 4};
    return lb_wrap(cx, LB_F32, LB_SHAPE(2, 2), one, gone, count);
}

/* Outside of all scopes only lb_ref keeps an array; arrays kept there are freed
 * with the context. */
static void keep_outermost(void)
{
    int n = 0;
    lb_ctx *cx = lb_open(NULL);
    lb_array *a = marked(cx, &n);
    CHECK(lb_keep(cx, a) == a && lb_keep(cx, a) == a);
    lb_close(cx);
    CHECK_EQ_I(n, 1);
}

static void scopes(lb_ctx *cx)
{
    int n[4] = {0};
    keep_outermost();
    lb_enter(cx);
    marked(cx, &n[0]);
    lb_enter(cx);
    marked(cx, &n[1]);
    lb_array *kept = lb_keep(cx, marked(cx, &n[2]));
    lb_leave(cx);
    CHECK(n[0] == 0 && n[1] == 1 && n[2] == 0);
    CHECK_EQ_I(lb_size(kept), 4);
    lb_leave(cx);
    CHECK(n[0] == 1 && n[1] == 1 && n[2] == 1);

    /* Keeping twice moves an array outward twice; once more is one scope
     * further. */
    lb_enter(cx);
    lb_enter(cx);
    lb_enter(cx);
    lb_array *a = marked(cx, &n[3]);
    for (int i = 0; i < 5; i++)
        lb_keep(cx, a); /* all but the first find it outside already */
    lb_leave(cx);
    CHECK_EQ_I(n[3], 0);
    lb_keep(cx, a);
    lb_leave(cx);
    CHECK_EQ_I(n[3], 0);
    lb_leave(cx);
    CHECK_EQ_I(n[3], 1);
    CHECK(!lb_keep(cx, NULL));
    CHECK(!lb_ref(NULL));
    lb_unref(NULL);
    lb_drop(cx, NULL);
}

/* Keeping and dropping an array of another scope, or of none. */
static void foreign(lb_ctx *cx)
{
    int n[3] = {0};
    lb_enter(cx);
    lb_array *outer = marked(cx, &n[0]);
    lb_array *other = marked(cx, &n[1]);
    lb_enter(cx);
    marked(cx, &n[2]);
    CHECK(lb_keep(cx, outer) == outer); /* of the outer scope: stays there */
    lb_drop(cx, outer);
    CHECK(n[0] == 1 && n[1] == 0 && n[2] == 0);
    CHECK_EQ_I(lb_size(other), 4);
    lb_leave(cx);
    CHECK(n[0] == 1 && n[1] == 0 && n[2] == 1);
    lb_array *ref = lb_ref(other);
    lb_leave(cx);
    CHECK_EQ_I(n[1], 0);
    lb_keep(cx, ref); /* of no scope: nothing happens */
    lb_drop(cx, ref);
    CHECK_EQ_I(n[1], 0);
    lb_unref(ref);
    CHECK_EQ_I(n[1], 1);
}

/* Dropping from any place of any of three scopes leaves the others alone. */
static void drops(lb_ctx *cx)
{
    enum { SCOPES = 3, EACH = 3, ALL = SCOPES * EACH };
    for (int d = 0; d < ALL; d++)
        for (int e = 0; e < ALL; e++) {
            int n[ALL] = {0};
            lb_array *a[ALL];
            for (int i = 0; i < ALL; i++) {
                if (i % EACH == 0) lb_enter(cx);
                a[i] = marked(cx, &n[i]);
            }
            lb_drop(cx, a[d]);
            if (e != d) lb_drop(cx, a[e]);
            for (int s = SCOPES - 1; s >= 0; s--) {
                for (int i = 0; i < ALL; i++) {
                    const bool left = i / EACH > s || i == d || i == e;
                    CHECK_EQ_I(n[i], left);
                }
                lb_leave(cx);
            }
            for (int i = 0; i < ALL; i++)
                CHECK_EQ_I(n[i], 1);
        }
}

static void leaving_too_often(void)
{
    int n = 0;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    for (int i = 0; i < 100; i++)
        lb_enter(cx);
    for (int i = 0; i < 200; i++)
        lb_leave(cx);
    lb_array *a = marked(cx, &n); /* only the last scope is left to own it */
    CHECK(a != NULL);
    lb_close(cx);
    CHECK_EQ_I(n, 1);
}

static void outliving(void)
{
    int n = 0, never = 0;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    lb_array *a = marked(cx, &n);
    lb_array *sum = lb_ref(lb_add(cx, a, lb_scalar(cx, 1)));
    lb_array *view = lb_ref(lb_transpose(cx, a, NULL));
    CHECK(!lb_wrap(cx, LB_F32, LB_SHAPE(-1), &n, gone, &never));
    CHECK(!lb_wrap(cx, LB_F64, LB_SHAPE(1), (char *)&n + 1, gone, &never));
    for (int i = 0; i < 50; i++)
        lb_enter(cx);
    lb_close(cx); /* closes all scopes */
    CHECK_EQ_I(n, 0);
    CHECK_EQ_I(never, 0);
    lb_ctx *other = lb_open(&(lb_options){.threads = 1});
    float v[4];
    CHECK(lb_read(other, sum, v, sizeof v) && v[3] == 5);
    CHECK(lb_read(other, lb_mul(other, view, sum), v, sizeof v) && v[1] == 9);
    lb_unref(sum);
    lb_unref(view); /* the last view of the wrapped data */
    CHECK_EQ_I(n, 1);
    lb_close(other);
    CHECK_EQ_I(n, 1);
}

/* ---- memory ------------------------------------------------------------- */

static void memory(void)
{
    enum { N = 1 << 20 };
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_drop(cx, lb_scalar(cx, 1)); /* allocates the lists */
    const size_t base = lb_bytes_in_use(cx);
    lb_enter(cx);
    lb_array *a = lb_iota(cx, LB_F32, LB_SHAPE(N), 0);
    const size_t one = lb_bytes_in_use(cx) - base;
    CHECK(one >= 4 * N && one < 5 * N);
    lb_array *b = lb_exp(cx, a);
    CHECK(lb_bytes_in_use(cx) - base >= 8 * N);
    lb_drop(cx, a);
    CHECK(lb_bytes_in_use(cx) - base < 6 * N);
    CHECK_EQ_I(lb_size(b), N);
    lb_leave(cx);
    CHECK_EQ_I(lb_bytes_in_use(cx), base);
    const size_t peak = lb_bytes_peak(cx);
    CHECK(peak >= 8 * N && peak < 10 * N);
    CHECK(lb_trim(cx) >= 4 * N); /* blocks kept for reuse */
    CHECK_EQ_I(lb_trim(cx), 0);
    CHECK_EQ_I(lb_bytes_peak(cx), peak);
    lb_close(cx);
    cx = lb_open(&(lb_options){.threads = 1, .keep_bytes = -1});
    lb_drop(cx, lb_iota(cx, LB_F32, LB_SHAPE(N), 0));
    CHECK_EQ_I(lb_trim(cx), 0);
    lb_close(cx);
    CHECK_EQ_I(lb_trim(NULL), 0);
    CHECK_EQ_I(lb_bytes_in_use(NULL), 0);
    CHECK_EQ_I(lb_bytes_peak(NULL), 0);
    CHECK_EQ_I(lb_threads(NULL), 0);
    CHECK_EQ_S(lb_isa(NULL), "");
    CHECK_EQ_S(lb_cpu_name(NULL), "");
    CHECK_EQ_S(lb_cpu_family(NULL), "");
}

/* ---- promotion ---------------------------------------------------------- */

static lb_array *operand(lb_ctx *cx, size_t i)
{
    const size_t last = COUNT(promotion) - 1;
    if (i == last) return lb_scalar(cx, 1);
    if (i == last - 1) return lb_scalar_int(cx, 1);
    return lb_full_int(cx, (lb_dtype)(i + 1), LB_SHAPE(2), 1);
}

static void promotions(lb_ctx *cx)
{
    const size_t strong = COUNT(promotion) - 2;
    for (size_t i = 0; i < COUNT(promotion); i++)
        for (size_t j = 0; j < COUNT(promotion); j++) {
            lb_enter(cx);
            lb_array *m = lb_max(cx, operand(cx, i), operand(cx, j));
            lb_dtype want = (lb_dtype)promotion[i][j].dtype;
            /* Unlike jax, which uses f32, weak scalars keep f64 among
             * themselves. */
            if (i >= strong && j >= strong && want == LB_F32) want = LB_F64;
            if (check_fails(lb_dtype_of(m) == want))
                fprintf(stderr, "max of %zu and %zu is %s, not %s\n", i, j,
                        lb_dtype_name(lb_dtype_of(m)), lb_dtype_name(want));
            if (check_fails(m && m->weak == promotion[i][j].weak))
                fprintf(stderr, "max of %zu and %zu: wrong weakness\n", i, j);
            CHECK(lb_item(cx, lb_reduce_max(cx, m, NULL)) == 1);
            if (i < strong && j < strong)
                CHECK_EQ_I(lb_promote((lb_dtype)(i + 1), (lb_dtype)(j + 1)),
                           want);
            lb_leave(cx);
        }
    /* A weak scalar is rounded once, to the dtype of the other operand, and
     * never wraps. */
    lb_array *one = lb_full(cx, LB_F64, LB_SHAPE(1), 1);
    CHECK(lb_item(cx, lb_mul(cx, one, lb_scalar(cx, 0.1))) == 0.1);
    lb_array *small = lb_full_int(cx, LB_I8, LB_SHAPE(2), 1);
    CHECK(lb_add(cx, small, lb_scalar_int(cx, -128)) != NULL);
    CHECK(!lb_add(cx, small, lb_scalar_int(cx, 128)));
    CHECK_EQ_I(lb_error_status(cx), LB_E_DTYPE);
    CHECK(strstr(lb_error(cx), "128") && strstr(lb_error(cx), "i8"));
    lb_clear(cx);
    CHECK(!lb_add(cx, lb_convert(cx, small, LB_U64), lb_scalar_int(cx, -1)));
    lb_clear(cx);
    CHECK(lb_add(cx, lb_convert(cx, small, LB_I64),
                 lb_scalar_int(cx, INT64_MIN)) != NULL);
    /* Float functions convert integers to f32; other results do not. */
    lb_array *i = lb_full_int(cx, LB_I64, LB_SHAPE(2), 2);
    CHECK_EQ_I(lb_dtype_of(lb_exp(cx, i)), LB_F32);
    CHECK_EQ_I(lb_dtype_of(lb_atan2(cx, i, i)), LB_F32);
    CHECK_EQ_I(lb_dtype_of(lb_div(cx, i, i)), LB_I64);
    CHECK_EQ_I(lb_dtype_of(lb_lt(cx, i, lb_scalar(cx, 2))), LB_BOOL);
    lb_array *half = lb_full(cx, LB_BF16, LB_SHAPE(2), 2);
    lb_array *sum = lb_add(cx, i, lb_scalar(cx, 0.5)); /* a weak f32 */
    CHECK_EQ_I(lb_dtype_of(lb_add(cx, sum, half)), LB_BF16);
    CHECK_EQ_S(lb_error(cx), "");
}

/* ---- threads of the user ------------------------------------------------ */

typedef struct visitor {
    lb_array *shared;
    double sum;
    bool fine;
} visitor;

static void *visit(void *arg)
{
    visitor *v = arg;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    v->fine = cx != NULL;
    for (int i = 0; i < 200 && v->fine; i++) {
        lb_enter(cx);
        lb_array *a = lb_ref(v->shared);
        lb_array *t = lb_transpose(cx, a, NULL);
        lb_array *s = lb_reduce_sum(cx, lb_mul(cx, t, t), NULL);
        v->sum = lb_item(cx, s);
        lb_unref(a);
        v->fine = !lb_error_status(cx);
        lb_leave(cx);
    }
    lb_unref(v->shared);
    lb_close(cx);
    return NULL;
}

static void sharing(void)
{
    enum { VISITORS = 2 };
    visitor v[VISITORS];
    pthread_t thread[VISITORS];
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_array *a = lb_iota(cx, LB_F32, LB_SHAPE(10, 100), 0);
    for (int i = 0; i < VISITORS; i++) {
        v[i] = (visitor){.shared = lb_ref(a)};
        CHECK(pthread_create(&thread[i], NULL, visit, &v[i]) == 0);
    }
    lb_close(cx); /* the visitors continue and free its memory */
    for (int i = 0; i < VISITORS; i++) {
        pthread_join(thread[i], NULL);
        CHECK(v[i].fine);
        CHECK(v[i].sum == 28500);
    }
}

/* ---- more than 2^31 elements -------------------------------------------- */

static void enormous(lb_ctx *cx)
{
    const int64_t n = (int64_t)1 << 33;
    const size_t before = lb_bytes_peak(cx);
    lb_array *a = lb_full_int(cx, LB_I8, LB_SHAPE(4, n), 5);
    CHECK_EQ_I(lb_size(a), 4 * n);
    const int64_t lo[] = {1, n - 3}, hi[] = {2, n}, by[] = {1, 2};
    lb_array *s = lb_slice(cx, a, lo, hi, by);
    CHECK_EQ_I(lb_dim(s, 1), 2);
    CHECK_EQ_I(lb_item_int(cx, lb_reduce_sum(cx, s, NULL)), 10);
    lb_array *t = lb_reverse(cx, lb_transpose(cx, a, NULL), NULL);
    const int64_t tlo[] = {n - 1, 0}, thi[] = {n, 1};
    CHECK_EQ_I(lb_item_int(cx, lb_slice(cx, t, tlo, thi, NULL)), 5);
    CHECK_EQ_I(lb_dim(lb_reshape(cx, a, LB_SHAPE(8, -1)), 1), n / 2);
    lb_array *at = lb_full_int(cx, LB_I64, lb_shape_make(0, NULL), n - 1);
    lb_array *start[] = {lb_scalar_int(cx, 3), at};
    lb_array *d = lb_dynamic_slice(cx, a, start, (const int64_t[]){1, 1});
    CHECK_EQ_I(lb_item_int(cx, d), 5);
    CHECK_EQ_I(lb_nbytes(a), 1);
    /* Offsets also exceed 2^31 where one long row is stored. */
    const int64_t m = (int64_t)1 << 32;
    lb_array *row = lb_expand(cx, lb_iota(cx, LB_U16, LB_SHAPE(3), 0), 1);
    lb_array *wide = lb_broadcast_to(cx, row, LB_SHAPE(3, m));
    const int64_t wlo[] = {2, m - 1}, whi[] = {3, m};
    CHECK_EQ_I(lb_item_int(cx, lb_slice(cx, wide, wlo, whi, NULL)), 2);
    CHECK(lb_bytes_peak(cx) < before + 1000000);
    CHECK_EQ_S(lb_error(cx), "");
}

/* ---- lb_options.debug --------------------------------------------------- */

static void found(lb_ctx *cx, bool ok, const char *who, const char *made)
{
    const char *e = lb_error(cx);
    const bool right = !ok && lb_error_status(cx) == LB_E_ARG &&
                       strstr(e, who) == e && strstr(e, made) &&
                       strstr(e, "lb_keep");
    if (check_fails(right)) fprintf(stderr, "%s, %s: \"%s\"\n", who, made, e);
    lb_clear(cx);
}

static lb_array *square(lb_ctx *cx, lb_array *const *args, int n, void *user)
{
    (void)n, (void)user;
    return lb_mul(cx, args[0], args[0]);
}

/* Arrays used after their scope was closed, in every kind of function. */
static void debug_arrays(lb_ctx *cx)
{
    const float v[] = {1, 2, 3, 4};
    float got[4];
    lb_enter(cx);
    lb_array *x = lb_from(cx, LB_F32, LB_SHAPE(2, 2), v);
    lb_array *sum = lb_add(cx, x, x);
    lb_array *q = lb_quantize(cx, x, NULL);
    lb_array *kept = lb_keep(cx, lb_exp(cx, x));
    lb_array *held = lb_ref(lb_sqrt(cx, x));
    lb_leave(cx);
    CHECK_EQ_S(lb_error(cx), "");
    found(cx, lb_mul(cx, x, kept), "mul: ", "f32(2,2) made by from");
    found(cx, lb_mul(cx, kept, sum), "mul: ", "f32(2,2) made by add");
    found(cx, lb_transpose(cx, q, NULL), "transpose: ", "made by quantize");
    found(cx, lb_read(cx, sum, got, sizeof got), "read: ", "made by add");
    found(cx, lb_read_rows(cx, sum, 0, 1, got, 8), "read: ", "made by add");
    found(cx, lb_materialize(cx, q), "copy: ", "made by quantize");
    found(cx, lb_keep(cx, q), "keep: ", "made by quantize");
    lb_drop(cx, q);
    found(cx, false, "drop: ", "made by quantize");
    found(cx, lb_explain(cx, "exp", &x, 1, NULL), "exp: ", "made by from");
    lb_compiled *f = lb_compile(cx, square, NULL, NULL);
    found(cx, lb_run(f, &sum, 1), "", "made by add");
    lb_compiled_close(f);
    lb_array *grad = NULL;
    found(cx, lb_value_and_grad(cx, square, &sum, 1, NULL, &grad, 1), "",
          "made by add");
    CHECK(!lb_data(x) && lb_nbytes(sum) == 0); /* nothing to read */
    CHECK_EQ_I(lb_size(sum), 4);
    /* One reference too many is as harmless as it can be. */
    lb_unref(lb_ref(sum));
    found(cx, lb_neg(cx, sum), "neg: ", "made by add");
    CHECK(lb_add(cx, kept, held) != NULL);
    CHECK(lb_read(cx, held, got, sizeof got) && got[3] == 2);
    lb_unref(held);
    found(cx, lb_neg(cx, held), "neg: ", "made by sqrt");
    CHECK_EQ_S(lb_error(cx), "");
}

/* Nothing is leaked, whichever allocation fails; references may outlive the
 * context. */
static void debug_memory(void)
{
    for (long k = 1, failed = 1; failed; k++) {
        meter m = {.fail_at = k};
        const lb_allocator al = {meter_alloc, meter_free, &m};
        lb_ctx *cx = lb_open(&(lb_options){
            .threads = 2, .allocator = &al, .keep_bytes = -1, .debug = true});
        lb_enter(cx);
        lb_array *a = lb_full(cx, LB_F32, LB_SHAPE(64, 64), 1);
        lb_array *b = lb_ref(lb_exp(cx, a));
        lb_leave(cx);
        CHECK(lb_size(b) == (b ? 64 * 64 : -1));
        /* Elements are freed; only views stay. */
        const size_t before = lb_bytes_in_use(cx);
        for (int i = 0; i < 10; i++)
            lb_drop(cx, lb_exp(cx, b));
        CHECK(!cx || lb_bytes_in_use(cx) - before < 10 * 4096);
        failed = m.failed;
        CHECK(failed ? !cx || lb_error_status(cx) == LB_E_NOMEM
                     : lb_error_status(cx) == LB_OK);
        lb_close(cx);
        CHECK(!b || m.blocks > 0);
        lb_unref(b);
        CHECK_EQ_I(m.blocks, 0);
    }
}

static void debugging(void)
{
    for (int env = 0; env < 2; env++) {
        if (env) setenv("LOWBIT_DEBUG", "1", 1);
        lb_ctx *cx = lb_open(&(lb_options){.threads = 1, .debug = !env});
        CHECK(cx != NULL);
        debug_arrays(cx);
        lb_enter(cx);
        lb_leave(cx);
        CHECK_EQ_S(lb_error(cx), "");
        lb_leave(cx);
        CHECK_EQ_I(lb_error_status(cx), LB_E_ARG);
        CHECK(strstr(lb_error(cx), "leave: no scope is open") != NULL);
        lb_close(cx);
    }
    setenv("LOWBIT_DEBUG", "yes", 1);
    refused(&(lb_options){.threads = 1}, "LOWBIT_DEBUG is \"yes\"");
    unsetenv("LOWBIT_DEBUG");
    debug_memory();
}

int main(void)
{
    bad_options();
    sizes_of_options();
    environment();
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    CHECK(cx != NULL);
    if (cx) {
        errors(cx);
        looking(cx);
        making(cx);
        scopes(cx);
        foreign(cx);
        drops(cx);
        promotions(cx);
        enormous(cx);
    }
    lb_close(cx);
    leaving_too_often();
    outliving();
    debugging();
    memory();
    sharing();
    return check_report("core");
}
