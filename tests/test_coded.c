/* test_coded.c - coded.h's description of an operand against decoding it: every
 * element of every view, and which views are supported. */
/* ctest: simde skip-tsan */
#include <stdlib.h>

#include "check.h"
#include "matmul/coded.h"

/* ---- the description, read one element at a time ------------------------ */

static unsigned code_at(const lb_coded *c, int64_t line, int64_t at)
{
    const int per = 8 / c->bits;
    const uint8_t byte = c->bytes[line * c->byte_step + at / per];
    const int place = (int)(at % per);
    const int shift = (c->high_first ? per - 1 - place : place) * c->bits;
    return byte >> shift & ((1u << c->bits) - 1);
}

static double number_at(const lb_coded *c, const lb_cpu *cpu, int64_t row,
                        int64_t k)
{
    const int64_t line = c->along ? row : k, at = c->along ? k : row;
    const unsigned code = code_at(c, line, at);
    float tmp;
    const int64_t block = c->lines.g ? at / c->lines.g : 0;
    const float s = *lb_coded_scales(c, cpu, line, block, 1, &tmp);
    const float level =
        c->bits == 8 ? (float)(int8_t)code : c->numbers.level[code];
    return (double)level * (double)s;
}

/* ---- one view ----------------------------------------------------------- */

/* a (rows, K), or (batch, rows, K), as an operand. */
static lb_matrix matrix_of(const lb_array *a)
{
    lb_matrix m = {.source = {.type = LB_C_F32}, .a = a};
    const int r = a->shape.rank;
    if (r == 3) lb_dims_add(&m.batch, a->shape.dim[0], a->stride[0]);
    lb_dims_add(&m.row, a->shape.dim[r - 2], a->stride[r - 2]);
    lb_dims_add(&m.depth, a->shape.dim[r - 1], a->stride[r - 1]);
    lb_dims_end(&m.batch);
    lb_dims_end(&m.row);
    lb_dims_end(&m.depth);
    return m;
}

static void one_view(lb_ctx *cx, lb_array *a, bool want, const char *what)
{
    const lb_cpu cpu = {.level = LB_LEVEL_REF};
    if (!a) {
        CHECK(a != NULL);
        return;
    }
    lb_matrix m = matrix_of(a);
    lb_matrix_end(&m);
    lb_coded c;
    const bool is = lb_coded_of(&cpu, &m.source, &c);
    if (check_fails(is == want))
        fprintf(stderr, "%s %s: %s\n", lb_format_of(a), what,
                is ? "understood" : "declined");
    if (!is) return;
    const int r = lb_rank(a);
    const int64_t batch = r == 3 ? lb_dim(a, 0) : 1;
    const int64_t rows = lb_dim(a, r - 2), depth = lb_dim(a, r - 1);
    float *w = malloc((size_t)lb_size(a) * sizeof *w), *at = w;
    CHECK(lb_read(cx, lb_materialize(cx, lb_convert(cx, a, LB_F32)), w,
                  (size_t)lb_size(a) * sizeof *w));
    int wrong = 0;
    for (int64_t b = 0; b < batch; b++) {
        const lb_coded one = lb_coded_at(&c, &m.source, b);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < depth; k++, at++) {
                const double v = number_at(&one, &cpu, i, k);
                wrong += !(fabs(v - (double)*at) <= 3e-7 * fabs(v));
            }
    }
    free(w);
    if (check_fails(wrong == 0))
        fprintf(stderr, "%s %s: %d values are wrong\n", lb_format_of(a), what,
                wrong);
}

/* ---- formats and views -------------------------------------------------- */

static lb_array *cut(lb_ctx *cx, lb_array *a, int64_t r0, int64_t r1,
                     int64_t c0, int64_t c1)
{
    return lb_slice(cx, a, (int64_t[]){r0, c0}, (int64_t[]){r1, c1}, NULL);
}

typedef struct {
    lb_quant_config config;
    int64_t cols;      /* of the array */
    int64_t byte, cut; /* where a code begins a byte; also a block */
    bool understood;
} row;

static const row rows[] = {
    {{.format = "int8"}, 37, 1, 1, true},
    {{.format = "int8", .block_size = 16}, 70, 1, 16, true},
    {{.format = "int8", .axes = {1, {0}}}, 37, 1, 1, true},
    {{.format = "int8", .axes = {2, {0, 1}}}, 37, 1, 1, true},
    {{.format = "int8", .meaning = LB_MEANS_ABSMAX}, 37, 1, 1, true},
    {{.format = "int8", .meaning = LB_MEANS_INVERSE}, 37, 1, 1, true},
    {{.format = "nf4"}, 130, 2, 64, true},
    {{.format = "nf4", .block_size = 6}, 37, 2, 6, true},
    {{.format = "nf4", .double_quant = true}, 130, 2, 64, true},
    {{.format = "nf4", .decode = LB_DECODE_POLY}, 130, 2, 64, true},
    {{.format = "nf4", .blocks = LB_BLOCKS_FLAT}, 128, 2, 64, true},
    {{.format = "nf4", .dtype = LB_BF16}, 130, 2, 64, true},
    {{.format = "int8", .dtype = LB_F16}, 37, 1, 1, true},
    {{.format = "ternary", .scale = LB_SCALE_ROW}, 37, 4, 4, true},
    {{.format = "ternary", .scale = LB_SCALE_TENSOR}, 37, 4, 4, true},
    {{.format = "ternary", .scale = LB_SCALE_NONE}, 37, 4, 4, true},
    {{.format = "ternary", .scale = LB_SCALE_BLOCK, .block_size = 12},
     37,
     4,
     12,
     true},
    {{.format = "ternary", .scale = LB_SCALE_ROW, .dtype = LB_BF16},
     37,
     4,
     4,
     true},
    {{.format = "ternary", .scale = LB_SCALE_ROW, .meaning = LB_MEANS_INVERSE},
     37,
     4,
     4,
     true},
    {{.format = "binary", .scale = LB_SCALE_ROW}, 37, 8, 8, true},
    {{.format = "binary", .scale = LB_SCALE_ROW, .dtype = LB_F16},
     37,
     8,
     8,
     true},
    {{.format = "q8_0"}, 64, 1, 32, false},
    {{.format = "dynamic8"}, 64, 1, 64, false},
};

static void both_ways(lb_ctx *cx, lb_array *a, bool want, const char *what)
{
    char other[64];
    snprintf(other, sizeof other, "%s, transposed", what);
    one_view(cx, a, want, what);
    one_view(cx, a ? lb_transpose(cx, a, NULL) : NULL, want, other);
}

static void one_row(lb_ctx *cx, const row *r)
{
    enum { ROWS = 11 };
    const bool ok = r->understood;
    lb_array *x =
        lb_random_normal(cx, (lb_key){7, 0}, LB_F32, LB_SHAPE(ROWS, r->cols));
    lb_array *w = lb_quantize(cx, x, &r->config);
    both_ways(cx, w, ok, "whole");
    both_ways(cx, cut(cx, w, 3, 9, 0, r->cols), ok, "some rows");
    both_ways(cx, cut(cx, w, 2, 9, r->cut, r->cols), ok, "from a block on");
    if (r->cut > 1)
        both_ways(cx, cut(cx, w, 2, 9, 1, r->cols), false,
                  "from inside a block on");
    both_ways(cx, lb_reverse(cx, w, LB_AXES(0)),
              ok && r->config.blocks != LB_BLOCKS_FLAT, "rows reversed");
    one_view(cx, lb_reverse(cx, w, LB_AXES(1)), false, "backward");
    if (r->config.blocks == LB_BLOCKS_FLAT) return;
    lb_array *y = lb_random_normal(cx, (lb_key){8, 0}, LB_F32,
                                   LB_SHAPE(3, ROWS, r->cols));
    lb_quant_config config = r->config;
    for (int i = 0; i < config.axes.n; i++)
        config.axes.axis[i]++;
    lb_array *batch = lb_quantize(cx, y, &config);
    one_view(cx, batch, ok, "a batch");
    one_view(cx, lb_transpose(cx, batch, (int[]){0, 2, 1}), ok,
             "a batch, transposed");
    one_view(cx, lb_transpose(cx, batch, (int[]){1, 0, 2}), ok,
             "a batch of the middle axis");
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lb_enter(cx);
        one_row(cx, &rows[i]);
        lb_leave(cx);
        if (check_fails(!lb_error_status(cx)))
            fprintf(stderr, "%s: %s\n", rows[i].config.format, lb_error(cx));
        lb_clear(cx);
    }
    lb_close(cx);
    return check_report("coded");
}
