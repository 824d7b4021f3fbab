/* test_gguf_decode.c - the GGUF types that are only read: values of random
 * blocks against those of ggml (tests/golden/gguf_read_only.h) at every level,
 * parts of blocks, and the refusal to quantize to them. */
/* ctest: simde */
#include <stdlib.h>

#include "check.h"
#include "golden/gguf_read_only.h"
#include "lowbit_ext.h"

enum { N_TYPES = sizeof golden / sizeof *golden };

static uint64_t digest(const float *x, int64_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = 0x7fc00000;
        if (!isnan(x[i])) memcpy(&u, &x[i], sizeof u);
        for (int k = 0; k < 4; k++)
            h = (h ^ (u >> 8 * k & 255)) * 0x100000001b3;
    }
    return h;
}

/* rows of GOLDEN_BLOCKS / rows blocks; the formula of the generator. */
static lb_array *make(lb_ctx *cx, int t, int64_t rows)
{
    static const char *const name = "blocks";
    const int64_t size = golden[t].size, n = GOLDEN_BLOCKS * size;
    uint8_t *raw = malloc((size_t)n);
    uint32_t s = (uint32_t)size;
    if (!raw) abort();
    for (int64_t i = 0; i < n; i++) {
        s = s * 1664525 + 1013904223;
        raw[i] = (uint8_t)(s >> 24);
    }
    const int64_t columns = GOLDEN_BLOCKS / rows;
    lb_array *part = lb_from(cx, LB_U8, LB_SHAPE(rows, columns, size), raw);
    free(raw);
    const lb_quant_config c = {.format = golden[t].name, .dtype = LB_F32};
    return lb_from_parts(cx, &c, LB_SHAPE(rows, columns * golden[t].len), NULL,
                         &name, &part, 1);
}

static void check_values(const char *isa)
{
    lb_ctx *cx = lb_open(&(lb_options){.isa = isa, .threads = 2});
    for (int t = 0; t < N_TYPES; t++) {
        const int64_t n = (int64_t)GOLDEN_BLOCKS * golden[t].len;
        lb_array *a = make(cx, t, 6);
        float *w = malloc((size_t)n * sizeof *w);
        if (!w) abort();
        CHECK(lb_read(cx, a, w, (size_t)n * sizeof *w));
        CHECK_EQ_S(lb_format_of(a), golden[t].name);
        CHECK_EQ_I((int64_t)lb_nbytes(a), GOLDEN_BLOCKS * golden[t].size);
        if (check_fails(digest(w, n) == golden[t].values))
            fprintf(stderr, "%s %s: other values\n", golden[t].name, isa);
        /* Any part of a row, and single elements, have the same bits. */
        for (int64_t lo = 0; lo < 600; lo += 37) {
            const int64_t row = n / 6, count = (lo * 7 + 1) % 300 + 1;
            float some[300];
            lb_enter(cx);
            lb_array *cut = lb_slice(
                cx, a, (int64_t[]){2, lo},
                (int64_t[]){3, lo + count < row ? lo + count : row}, NULL);
            const int64_t m = lb_size(cut);
            CHECK(lb_read(cx, cut, some, (size_t)m * sizeof *some));
            CHECK(digest(some, m) == digest(w + 2 * row + lo, m));
            cut = lb_slice(cx, lb_transpose(cx, a, NULL), (int64_t[]){lo, 0},
                           (int64_t[]){lo + 1, 6}, NULL);
            CHECK(lb_read(cx, cut, some, 6 * sizeof *some));
            for (int i = 0; i < 6; i++)
                CHECK(digest(some + i, 1) == digest(w + i * row + lo, 1));
            lb_leave(cx);
        }
        free(w);
    }
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
}

static void check_refusals(lb_ctx *cx)
{
    lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(2, 256));
    for (int t = 0; t < N_TYPES; t++) {
        const lb_quant_config c = {.format = golden[t].name};
        char want[96];
        CHECK(!lb_quantize(cx, x, &c));
        CHECK(lb_error_status(cx) == LB_E_UNSUPPORTED);
        CHECK(strstr(lb_error(cx), "(supported: int8, nf4"));
        snprintf(
            want, sizeof want,
            "quantize: %s can be read, but not quantized to: ", golden[t].name);
        CHECK(strncmp(lb_error(cx), want, strlen(want)) == 0);
        lb_clear(cx);
    }
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    const char *const best = lb_isa_best();
    check_values("ref");
    if (!strncmp(best, "avx512", 6) || !strcmp(best, "amx"))
        check_values("avx2");
    check_values(best);
    check_refusals(cx);
    lb_close(cx);
    return check_report("test_gguf_decode");
}
