/* test_worked_numbers.c - the eight values of docs/formats.md: each format's
 * stored bytes are as that page shows them. The page's bytes were computed with
 * numpy 2.4, gguf-py 0.19, bitsandbytes 0.50 and, for iq4_nl, ggml's C code. */
#include "check.h"
#include "lowbit.h"

typedef struct worked {
    const char *format, *part;
    int n;
    uint8_t bytes[9];
    const char *scale;
    float value; /* of scale */
} worked;

static const worked rows[] = {
    {"int8",
     "codes",
     8,
     {0x20, 0xba, 0x10, 0x00, 0x30, 0xfa, 0x5f, 0x81},
     "scale",
     0.015748031f},
    {"nf4", "codes", 4, {0xa2, 0x97, 0xb6, 0xe0}, "absmax", 2},
    {"ternary", "codes", 2, {0x51, 0x26}, "scale", 1.3375f},
    {"binary", "codes", 1, {0x5d}, "scale", 0.775f},
    {"dynamic8",
     "codes",
     8,
     {0xc9, 0x1f, 0xc0, 0x7f, 0xd2, 0x51, 0xed, 0x00},
     "absmax",
     2},
    {"q8_0",
     "blocks",
     9,
     {0x08, 0x24, 0x20, 0xba, 0x10, 0x00, 0x30, 0xfa, 0x5f},
     NULL,
     0},
    {"q4_0",
     "blocks",
     9,
     {0x00, 0x34, 0x8a, 0x84, 0x89, 0x88, 0x8b, 0x88, 0x8e},
     NULL,
     0},
    {"iq4_nl",
     "blocks",
     9,
     {0x1a, 0x24, 0x8a, 0x83, 0x89, 0x88, 0x8c, 0x87, 0x8e},
     NULL,
     0},
    {"tq1_0",
     "blocks",
     9,
     {0x80, 0x2b, 0x80, 0x80, 0x80, 0x80, 0xd5, 0x2b, 0x80},
     NULL,
     0},
    {"tq2_0",
     "blocks",
     9,
     {0x55, 0x54, 0x55, 0x55, 0x55, 0x55, 0x56, 0x54, 0x55},
     NULL,
     0},
};

static void check_row(lb_ctx *cx, const worked *r)
{
    const float x[] = {0.5f, -1.1f, 0.25f, 0, 0.75f, -0.1f, 1.5f, -2};
    lb_array *a = lb_from(cx, LB_F32, LB_SHAPE(8), x);
    lb_array *q = lb_quantize(cx, a, &(lb_quant_config){.format = r->format});
    const void *part = lb_data(lb_component(cx, q, r->part));
    const bool same = part && memcmp(part, r->bytes, (size_t)r->n) == 0;
    if (check_fails(same)) fprintf(stderr, "%s: different bytes\n", r->format);
    if (!r->scale) return;
    const float *scale = lb_data(lb_component(cx, q, r->scale));
    CHECK(scale != NULL);
    if (scale) CHECK_NEAR(*scale, r->value, 1e-7);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(cx, &rows[i]);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    return check_report("worked numbers");
}
