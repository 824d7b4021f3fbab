/* attention_program.c - compile an attention block, compare it with the same
 * function run eagerly, and print what was compiled.
 *
 *   attention_program          a line per step
 *   attention_program dot      a drawing: attention_program dot | dot -Tsvg
 *   attention_program json
 */
#include <lowbit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TIME = 32, WIDE = 256, HEADS = 4, HEAD = WIDE / HEADS };
enum { X, NORM, WQ, WK, WV, WO, ARGS };

/* (time, wide) -> (heads, time, head) */
static lb_array *split(lb_ctx *cx, lb_array *x)
{
    const int perm[] = {1, 0, 2};
    return lb_transpose(cx, lb_reshape(cx, x, LB_SHAPE(TIME, HEADS, HEAD)),
                        perm);
}

static lb_array *attention(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    const int swap[] = {0, 2, 1}, back[] = {1, 0, 2};
    (void)n, (void)user;
    lb_array *h = lb_rms_norm(cx, a[X], a[NORM], 1e-5);
    lb_array *q = split(cx, lb_matmul(cx, h, a[WQ]));
    lb_array *k = split(cx, lb_matmul(cx, h, a[WK]));
    lb_array *v = split(cx, lb_matmul(cx, h, a[WV]));
    lb_array *row = lb_iota(cx, LB_I32, LB_SHAPE(TIME, TIME), 0);
    lb_array *column = lb_iota(cx, LB_I32, LB_SHAPE(TIME, TIME), 1);
    lb_array *past = lb_ge(cx, row, column);
    lb_array *s = lb_matmul(cx, q, lb_transpose(cx, k, swap));
    s = lb_mul(cx, s, lb_scalar(cx, 1 / sqrt((double)HEAD)));
    s = lb_softmax(cx, lb_select(cx, past, s, lb_scalar(cx, -1e9)), -1);
    lb_array *y = lb_transpose(cx, lb_matmul(cx, s, v), back);
    y = lb_matmul(cx, lb_reshape(cx, y, LB_SHAPE(TIME, WIDE)), a[WO]);
    return lb_add(cx, a[X], y);
}

int main(int argc, char **argv)
{
    float want[TIME][WIDE], got[TIME][WIDE];
    lb_ctx *cx = lb_open(NULL);
    lb_array *a[ARGS];
    for (int i = 0; i < ARGS; i++) {
        const lb_shape shape = i == X      ? LB_SHAPE(TIME, WIDE)
                               : i == NORM ? LB_SHAPE(WIDE)
                                           : LB_SHAPE(WIDE, WIDE);
        a[i] = lb_random_normal(cx, (lb_key){1, (uint64_t)i}, LB_F32, shape);
        if (i > NORM) {
            a[i] = lb_mul(cx, a[i], lb_scalar(cx, 1 / sqrt((double)WIDE)));
            a[i] = lb_quantize(cx, a[i], &(lb_quant_config){.format = "nf4"});
        }
    }
    lb_compiled *f = lb_compile(cx, attention, NULL, NULL);
    lb_array *compiled = lb_run(f, a, ARGS); /* traces; later calls do not */
    lb_read(cx, compiled, got, sizeof got);
    lb_read(cx, attention(cx, a, ARGS, NULL), want, sizeof want);
    const char *how = argc > 1 ? argv[1] : "text";
    const char *text =
        lb_compiled_explain(f, 0,
                            strcmp(how, "dot") == 0    ? LB_EXPLAIN_DOT
                            : strcmp(how, "json") == 0 ? LB_EXPLAIN_JSON
                                                       : LB_EXPLAIN_TEXT);
    const bool same = text && memcmp(got, want, sizeof got) == 0;
    printf("%s", same ? text : lb_error(cx));
    lb_compiled_close(f);
    lb_close(cx);
    return !same;
}
