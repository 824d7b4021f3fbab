/* test_to_string.c - arrays as text: numpy's own output (golden/print.txt,
 * written by tools/gen_print_golden.py), the first line, every format, and
 * buffers of any size. */
#include "lowbit_ext.h"
#include "refused.h"

enum { LINE = 1 << 16, TEXT = 1 << 15 };
static char line[LINE], want[TEXT], text[TEXT];

/* ---- numpy -------------------------------------------------------------- */

static lb_dtype dtype_named(const char *name)
{
    for (int d = 1; d < LB_N_DTYPES; d++)
        if (!strcmp(name, lb_dtype_name((lb_dtype)d))) return (lb_dtype)d;
    return LB_NO_DTYPE;
}

static lb_shape shape_of(const char *s)
{
    lb_shape shape = {0};
    while (*s && *s != '-') {
        char *end;
        shape.dim[shape.rank++] = strtoll(s, &end, 10);
        s = end + (*end == ',');
    }
    return shape;
}

/* Reads hexadecimal bytes in place. */
static const void *bytes_of(char *hex)
{
    uint8_t *to = (uint8_t *)hex;
    for (const char *c = hex; c[0] && c[1] && c[0] > ' '; c += 2) {
        const char two[] = {c[0], c[1], 0};
        *to++ = (uint8_t)strtoul(two, NULL, 16);
    }
    return hex;
}

static bool next_line(FILE *f, char *to, int room)
{
    if (!fgets(to, room, f)) return false;
    to[strcspn(to, "\n")] = 0;
    return true;
}

static void check_numpy(lb_ctx *cx)
{
    FILE *f = fopen("tests/golden/print.txt", "r");
    int n = 0;
    CHECK(f != NULL);
    if (!f) return;
    next_line(f, line, LINE);
    while (next_line(f, line, LINE)) {
        char dtype[8], shape[64];
        lb_print_options o = {.no_header = true};
        long long threshold;
        int suppress, lines;
        if (sscanf(line, "%7s %63s %d %lld %d %d %d %d", dtype, shape,
                   &o.precision, &threshold, &o.edge, &o.line_width, &suppress,
                   &lines) != 8)
            break;
        o.threshold = threshold;
        o.suppress = suppress != 0;
        if (!next_line(f, line, LINE)) break;
        want[0] = 0;
        for (int i = 0; i < lines; i++) {
            const size_t at = strlen(want);
            if (!fgets(want + at, (int)(TEXT - at), f)) break;
        }
        want[strlen(want) - 1] = 0;
        lb_enter(cx);
        lb_array *a =
            lb_from(cx, dtype_named(dtype), shape_of(shape), bytes_of(line));
        const int64_t length = lb_to_string_with(cx, a, &o, text, TEXT);
        const bool same =
            length == (int64_t)strlen(want) && strcmp(text, want) == 0;
        if (check_fails(same))
            fprintf(stderr, "%s(%s), precision %d:\n%s\nnumpy has\n%s\n", dtype,
                    shape, o.precision, text, want);
        lb_leave(cx);
        n++;
    }
    CHECK(feof(f));
    CHECK(n > 400);
    fclose(f);
}

/* ---- the first line and formats ------------------------------------------ */

static void prints(lb_ctx *cx, lb_array *a, const char *say)
{
    const int64_t n = lb_to_string(cx, a, text, TEXT);
    CHECK_EQ_I(n, strlen(say));
    CHECK_EQ_S(text, say);
}

static void check_lines(lb_ctx *cx)
{
    const float x[] = {1, -2.5f, 0.25f, 4, 5, 6};
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(2, 3), x);
    prints(cx, a,
           "dense f32(2,3), 24 bytes\n[[ 1.   -2.5   0.25]\n"
           " [ 4.    5.    6.  ]]");
    prints(cx, lb_transpose(cx, a, NULL),
           "dense f32(3,2), 24 bytes\n[[ 1.    4.  ]\n [-2.5   5.  ]\n"
           " [ 0.25  6.  ]]");
    prints(cx, lb_quantize(cx, a, &(lb_quant_config){.format = "int8"}),
           "int8 f32(2,3), 14 bytes\n"
           "[[ 1.003937  -2.5        0.2559055]\n"
           " [ 4.015748   5.007874   6.       ]]");
    const int64_t from[] = {0, 1}, to[] = {2, 3};
    prints(cx, lb_slice(cx, a, from, to, NULL),
           "dense f32(2,2), a view of 24 bytes\n[[-2.5   0.25]\n"
           " [ 5.    6.  ]]");
    prints(cx, lb_convert(cx, lb_full(cx, LB_F32, LB_SHAPE(2), 0.1), LB_BF16),
           "dense bf16(2), 4 bytes\n[0.1 0.1]");
    prints(cx, lb_scalar_int(cx, -7), "dense i32(), 4 bytes\n-7");
    prints(cx, lb_from(cx, LB_F32, LB_SHAPE(0, 4), NULL),
           "dense f32(0,4), 0 bytes\n[]");
    CHECK_EQ_I(lb_describe(a, text, TEXT), 24);
    CHECK_EQ_S(text, "dense f32(2,3), 24 bytes");
    CHECK_EQ_I(lb_describe(NULL, text, TEXT), 4);
}

/* Decoded values, whatever the format: the text of the dense copy, and of an
 * array of which only the ends are decoded. */
static void check_formats(lb_ctx *cx)
{
    static char dense[TEXT];
    const lb_print_options cut = {.no_header = true, .threshold = 4};
    const lb_format *f;
    lb_array *x = lb_random_normal(cx, (lb_key){2, 9}, LB_F32, LB_SHAPE(9, 64));
    for (int k = 0; (f = lb_format_at(cx, k)); k++) {
        if (!lb_is_encodable(f)) continue;
        lb_array *q = lb_quantize(cx, x, &(lb_quant_config){.format = f->name});
        lb_array *view[] = {q, lb_transpose(cx, q, NULL),
                            lb_convert(cx, q, LB_BF16)};
        for (int v = 0; v < 3; v++) {
            const int64_t n = lb_to_string_with(cx, view[v], &cut, text, TEXT);
            CHECK(n > 0);
            CHECK_EQ_I(lb_to_string_with(cx, lb_materialize(cx, view[v]), &cut,
                                         dense, TEXT),
                       n);
            CHECK_EQ_S(text, dense);
        }
        CHECK(lb_to_string(cx, q, text, TEXT) > 0);
        CHECK(strstr(text, f->name) == text);
    }
}

/* Never writes past the buffer, and always returns the whole length. */
static void check_sizes(lb_ctx *cx)
{
    lb_array *a = lb_iota(cx, LB_I32, LB_SHAPE(5), 0);
    const int64_t n = lb_to_string(cx, a, NULL, 0);
    static const char all[] = "dense i32(5), 20 bytes\n[0 1 2 3 4]";
    CHECK_EQ_I(n, sizeof all - 1);
    for (size_t size = 0; size < sizeof all + 3; size++) {
        memset(text, '#', sizeof all + 4);
        CHECK_EQ_I(lb_to_string(cx, a, text, size), n);
        const size_t m = size < sizeof all ? size : sizeof all;
        if (m) CHECK(memcmp(text, all, m - 1) == 0 && text[m - 1] == 0);
        CHECK(text[m] == '#');
    }
}

static void check_refusals(lb_ctx *cx)
{
    lb_array *a = lb_zeros(cx, LB_F32, LB_SHAPE(2));
    const lb_print_options bad[] = {{.precision = 65},
                                    {.precision = -2},
                                    {.threshold = -2},
                                    {.edge = -1},
                                    {.line_width = -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        REFUSED(lb_to_string_with(cx, a, &bad[i], text, TEXT) >= 0, LB_E_ARG,
                "options are precision");
    REFUSED(lb_to_string_with(cx, a, &(lb_print_options){.struct_size = 2},
                              text, TEXT) >= 0,
            LB_E_ARG, "struct_size is 2");
    REFUSED(lb_to_string(cx, NULL, text, TEXT) >= 0, LB_E_NULL, "NULL");
    CHECK_EQ_I(lb_to_string(NULL, a, text, TEXT), -1);
}

static lb_array *prints_itself(lb_ctx *cx, lb_array *const *in, int n,
                               void *user)
{
    (void)n;
    (void)user;
    CHECK(lb_to_string(cx, in[0], text, TEXT) > 0);
    return lb_neg(cx, in[0]);
}

static void check_traced(lb_ctx *cx)
{
    lb_array *a = lb_zeros(cx, LB_F32, LB_SHAPE(2));
    lb_compiled *f = lb_compile(cx, prints_itself, NULL, NULL);
    CHECK(lb_run(f, &a, 1) != NULL);
    CHECK(strstr(text, "f32(2)") != NULL);
    lb_compiled_close(f);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    check_numpy(cx);
    check_lines(cx);
    check_formats(cx);
    check_sizes(cx);
    check_refusals(cx);
    check_traced(cx);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    return check_report("to_string");
}
