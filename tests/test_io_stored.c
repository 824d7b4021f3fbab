/* test_io_stored.c - packed arrays from file to file, decoded or as stored: the
 * same bytes with little memory and after an interrupted run.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "io_golden.h"
#include "lowbit_io.h"
#include "scratch.h"

static char source[SCRATCH_MAX], packed[SCRATCH_MAX], whole[SCRATCH_MAX],
    pieces[SCRATCH_MAX];

enum { LITTLE = 1000000, ARRAYS = 4 }; /* memory limit; arrays of the source */

/* The first is larger than LITTLE in every format, and has an odd row length.
 */
static void make_source(lb_ctx *cx)
{
    const lb_planned list[ARRAYS] = {
        {.name = "a.weight",
         .array = lb_random_normal(cx, (lb_key){3, 1}, LB_BF16,
                                   LB_SHAPE(4099, 2048))},
        {.name = "b.weight",
         .array =
             lb_random_normal(cx, (lb_key){3, 2}, LB_F32, LB_SHAPE(3, 77, 41))},
        {.name = "c.weight",
         .array =
             lb_random_normal(cx, (lb_key){3, 3}, LB_F32, LB_SHAPE(64, 64))},
        {.name = "norm", .array = lb_full(cx, LB_F16, LB_SHAPE(9), 3)}};
    CHECK(lb_save(cx, source, list, ARRAYS, NULL));
}

typedef struct seen {
    int n, resumed, stop_at;
} seen;

static void note(void *user, const lb_written *w)
{
    seen *s = user;
    s->n++;
    s->resumed += w->resumed;
    if (s->stop_at && w->i + 1 >= s->stop_at) _exit(7);
}

static const struct row {
    lb_quant_config config;
    const char *kind, *layout;
    bool cuts; /* its rows can be read separately */
} rows[] = {
    {{.format = "nf4"}, NULL, NULL, true},
    {{.format = "nf4", .double_quant = true}, NULL, NULL, true},
    {{.format = "int8"}, NULL, NULL, true},
    {{.format = "int8", .axes = {1, {0}}}, NULL, NULL, true},
    {{.format = "ternary", .scale = LB_SCALE_ROW}, NULL, NULL, true},
    {{.format = "binary"}, NULL, NULL, true},
    {{.format = "q8_0"}, NULL, NULL, true},
    {{.format = "q8_0"}, "gguf", NULL, true},
    {{.format = "int8", .compat = LB_COMPAT_BNB_CPU}, NULL, "bnb", true},
    {{.format = "nf4", .compat = LB_COMPAT_BNB_CPU}, NULL, "bnb", false},
};

static lb_convert_options options_of(const struct row *r, bool keep, seen *s)
{
    return (lb_convert_options){.kind = r->kind,
                                .layout = r->layout,
                                .keep = keep,
                                .strict = true,
                                .done = note,
                                .done_user = s,
                                .no_sync = true};
}

/* In a context of its own, to measure its peak. */
static void test_memory(const struct row *r, bool keep)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    seen s = {0};
    lb_convert_options o = options_of(r, keep, &s);
    o.max_memory = LITTLE;
    const bool ok = lb_convert_file(cx, packed, pieces, &o);
    if (r->cuts) {
        CHECK_EQ_S(lb_error(cx), "");
        CHECK(ok && s.n == ARRAYS && io_same_bytes(whole, pieces));
        CHECK(lb_bytes_peak(cx) < 3 * LITTLE);
    } else {
        CHECK(!ok && lb_error_status(cx) == LB_E_SIZE);
        CHECK(strstr(lb_error(cx),
                     "'a.weight' must be read as a whole: it has") != NULL);
    }
    lb_close(cx);
}

static void stop_after(int k, const struct row *r, bool keep)
{
    const pid_t child = fork();
    int status = 0;
    if (child == 0) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
        seen s = {.stop_at = k};
        const lb_convert_options o = options_of(r, keep, &s);
        (void)lb_convert_file(cx, packed, pieces, &o);
        _exit(1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void test_resume(const struct row *r, bool keep)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    for (int k = 1; k <= ARRAYS; k++) {
        seen s = {0};
        lb_convert_options o = options_of(r, keep, &s);
        unlink(pieces);
        stop_after(k, r, keep);
        o.resume = true;
        o.verify = true;
        CHECK(lb_convert_file(cx, packed, pieces, &o));
        CHECK_EQ_S(lb_error(cx), "");
        CHECK(s.n == ARRAYS && s.resumed == k && io_same_bytes(whole, pieces));
    }
    lb_close(cx);
}

static void test_row(const struct row *r)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    const lb_quantize_options q = {.config = r->config,
                                   .kind = r->kind,
                                   .layout = r->layout,
                                   .no_sync = true};
    CHECK(lb_quantize_file(cx, source, packed, &q));
    for (int keep = 0; keep < 2; keep++) {
        seen s = {0};
        const lb_convert_options o = options_of(r, keep, &s);
        CHECK(lb_convert_file(cx, packed, whole, &o) && s.n == ARRAYS);
        if (keep) CHECK(io_same_bytes(packed, whole));
        test_memory(r, keep);
        if (r == rows || r->kind) test_resume(r, keep);
    }
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
}

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    CHECK(scratch_file(source) && scratch_file(packed) && scratch_file(whole) &&
          scratch_file(pieces));
    make_source(cx);
    lb_close(cx);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        test_row(&rows[i]);
    unlink(source);
    unlink(packed);
    unlink(whole);
    unlink(pieces);
    return check_report("packed arrays from file to file");
}
