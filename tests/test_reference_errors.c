/* test_reference_errors.c - the mean of |x - x'| over 4 Mi values of N(0, 1),
 * against the published figures of bitsandbytes' own tests for nf4, and against
 * that of int8 in blocks of 64, each within 0.5 %.
 *
 * The standard error of that mean is below 0.05 %, so chance does not matter.
 */
#include "check.h"
#include "lowbit.h"

static const struct {
    const char *format;
    int64_t block;
    double error;
} reference[] = {
    {"nf4", 32, .067746},  {"nf4", 64, .072798},   {"nf4", 128, .076831},
    {"nf4", 256, .080337}, {"nf4", 4096, .092547}, {"int8", 64, .00504},
};

enum { ROWS = 1024, ROW = 4096 };

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    lb_array *x =
        lb_random_normal(cx, (lb_key){20, 4}, LB_F32, LB_SHAPE(ROWS, ROW));
    for (size_t i = 0; i < sizeof reference / sizeof *reference; i++) {
        const lb_quant_config config = {.format = reference[i].format,
                                        .block_size = reference[i].block};
        lb_enter(cx);
        lb_array *q = lb_quantize(cx, x, &config);
        lb_array *off = lb_abs(cx, lb_sub(cx, x, q));
        /* In f64, whose sum of so many numbers is exact enough. */
        const double error =
            lb_item(cx, lb_mean(cx, lb_convert(cx, off, LB_F64), NULL, false));
        printf("%-5s block %4d: %.6f, reference %.6f, %+.3f %%\n",
               reference[i].format, (int)reference[i].block, error,
               reference[i].error, 100 * (error / reference[i].error - 1));
        CHECK_NEAR(error, reference[i].error, .005 * reference[i].error);
        lb_leave(cx);
    }
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    return check_report("test_reference_errors");
}
