/* test_io_descriptors.c - every format as a descriptor and parts, and back:
 * the same bytes, shared; wrong descriptors and parts are refused.
 */
#include <stdlib.h>

#include "check.h"
#include "lowbit_io.h"

enum { MOST = 16, ROWS = 3, COLS = 512 };

typedef struct parts_of {
    char text[4096], name[MOST][64];
    const char *names[MOST];
    lb_array *part[MOST];
    int n;
    size_t size;
} parts_of;

static void take_apart(lb_ctx *cx, lb_array *a, parts_of *p)
{
    const int64_t size = lb_descriptor(cx, a, p->text, sizeof p->text);
    CHECK(size > 0 && (size_t)size == strlen(p->text));
    CHECK_EQ_I(lb_descriptor(cx, a, NULL, 0), size);
    p->size = (size_t)size;
    for (p->n = 0; p->n < MOST; p->n++) {
        const int k = p->n;
        p->part[k] = lb_stored_part(cx, a, k, p->name[k], sizeof p->name[k]);
        if (!p->part[k]) break;
        p->names[k] = p->name[k];
        CHECK_EQ_S(lb_format_of(p->part[k]), "dense");
    }
    CHECK_EQ_I(lb_error_status(cx), LB_OK);
}

static lb_array *assemble(lb_ctx *cx, const parts_of *p)
{
    return lb_from_descriptor(cx, p->text, p->size, p->names, p->part, p->n);
}

static void check_same(lb_ctx *cx, lb_array *a, lb_array *b, const char *what)
{
    static float x[ROWS * COLS], y[ROWS * COLS];
    CHECK_EQ_S(lb_format_of(b), lb_format_of(a));
    CHECK(a && b && lb_nbytes(a) == lb_nbytes(b));
    CHECK(lb_read_f32(cx, a, x, lb_size(a)) &&
          lb_read_f32(cx, b, y, lb_size(b)));
    if (memcmp(x, y, (size_t)lb_size(a) * sizeof *x)) CHECK_EQ_S(what, "equal");
}

static void test_back(lb_ctx *cx, lb_array *a, const char *what)
{
    parts_of p;
    take_apart(cx, a, &p);
    CHECK(p.n > 0);
    lb_array *b = assemble(cx, &p);
    CHECK_EQ_S(lb_error(cx), "");
    if (b) {
        check_same(cx, a, b, what);
        char name[64];
        lb_array *codes = lb_stored_part(cx, b, 0, name, sizeof name);
        CHECK(lb_data(codes) == lb_data(p.part[0]));
    }
    lb_clear(cx);
}

static void test_formats(lb_ctx *cx)
{
    const lb_key key = {.seed = 1};
    lb_array *w = lb_random_normal(cx, key, LB_F32, LB_SHAPE(ROWS, COLS));
    const char *format;
    for (int k = 0; (format = lb_format_name(cx, k)); k++) {
        if (!lb_can_quantize(cx, format)) continue;
        lb_quant_config c = {.struct_size = sizeof c, .format = format};
        test_back(cx, lb_quantize(cx, w, &c), format);
    }
    lb_quant_config c = {.struct_size = sizeof c, .format = "nf4"};
    c.double_quant = true;
    test_back(cx, lb_quantize(cx, w, &c), "nf4, double");
    c.blocks = LB_BLOCKS_FLAT;
    c.block_size = 96;
    test_back(cx, lb_quantize(cx, w, &c), "nf4, flat");
}

static void refused(lb_ctx *cx, const parts_of *p, lb_status status,
                    const char *words)
{
    CHECK(!assemble(cx, p));
    CHECK_EQ_I(lb_error_status(cx), status);
    if (!strstr(lb_error(cx), words)) CHECK_EQ_S(lb_error(cx), words);
    lb_clear(cx);
}

static void replace(parts_of *p, const char *old, const char *new)
{
    char *at = strstr(p->text, old);
    CHECK(at != NULL);
    if (!at) return;
    memmove(at + strlen(new), at + strlen(old), strlen(at + strlen(old)) + 1);
    memcpy(at, new, strlen(new));
    p->size = strlen(p->text);
}

static void test_refused(lb_ctx *cx)
{
    const lb_key key = {.seed = 1};
    lb_array *w = lb_random_normal(cx, key, LB_F32, LB_SHAPE(ROWS, COLS));
    lb_quant_config c = {.struct_size = sizeof c, .format = "nf4"};
    parts_of good, p;
    take_apart(cx, lb_quantize(cx, w, &c), &good);
    p = good;
    p.n = 1;
    refused(cx, &p, LB_E_ARG, "'absmax' is missing");
    p = good;
    p.names[p.n] = "more";
    p.part[p.n++] = w;
    refused(cx, &p, LB_E_ARG, "3 parts are given, but the descriptor has 2");
    p = good;
    p.part[1] = w;
    refused(cx, &p, LB_E_SHAPE, "absmax");
    p = good;
    replace(&p, "\"groups\": [1, 64]", "\"groups\": [3, 64]");
    refused(cx, &p, LB_E_CONTENT, "layout that this format does not produce");
    p = good;
    replace(&p, "\"nf4\"", "\"nf5\"");
    refused(cx, &p, LB_E_UNSUPPORTED, "'nf5' is not a packed format");
    p = good;
    replace(&p, "512]", "513]");
    refused(cx, &p, LB_E_CONTENT, "invalid shapes");
    for (size_t n = 0; n < good.size; n++) {
        p = good;
        p.size = n;
        CHECK(!assemble(cx, &p));
        lb_clear(cx);
    }
}

static void test_others(lb_ctx *cx)
{
    char name[4] = "";
    lb_array *w = lb_zeros(cx, LB_F32, LB_SHAPE(4, 64));
    CHECK_EQ_I(lb_descriptor(cx, w, NULL, 0), -1);
    CHECK_EQ_I(lb_error_status(cx), LB_E_UNSUPPORTED);
    lb_clear(cx);
    CHECK(!lb_stored_part(cx, w, 0, name, sizeof name));
    lb_array *q = lb_quantize(cx, w, NULL);
    CHECK(lb_stored_part(cx, q, 1, name, sizeof name));
    CHECK_EQ_S(name, "abs"); /* shortened */
    CHECK(!lb_stored_part(cx, q, 2, name, sizeof name));
    CHECK(!lb_stored_part(cx, q, -1, name, sizeof name));
    lb_array *row = lb_slice_axis(cx, q, 0, 1, 2);
    CHECK_EQ_I(lb_descriptor(cx, row, NULL, 0), -1);
    CHECK_EQ_I(lb_error_status(cx), LB_E_UNSUPPORTED);
    lb_clear(cx);
    CHECK_EQ_I(lb_descriptor(cx, NULL, NULL, 0), -1);
    CHECK(!lb_from_descriptor(cx, NULL, 0, NULL, NULL, 0));
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    lb_enter(cx);
    test_formats(cx);
    test_refused(cx);
    test_others(cx);
    lb_leave(cx);
    lb_close(cx);
    return check_report("descriptors");
}
