/* test_nearest.c - messages for formats that do not exist and for integers. */
#include "lowbit_ext.h"
#include "refused.h"

static const struct {
    const char *name, *say;
} rows[] = {
    {"uint4", "\"uint4\": 4-bit formats are nf4, q4_0, iq4_nl, mxfp4, int4 "
              "(supported: int8"},
    {"Q4_K", "\"Q4_K\": 4-bit formats are nf4, q4_0, iq4_nl, mxfp4, int4 "
             "(supported: int8"},
    {"fp8", "\"fp8\": 8-bit formats are int8, dynamic8, q8_0, fp8_e4m3, "
            "fp8_e5m2, mxfp8, uint8 (supp"},
    {"uint2", "\"uint2\": 2-bit formats are ternary, tq2_0, int2 (supp"},
    {"1bit", "\"1bit\": 1-bit formats are binary, tq1_0, int1 (supp"},
    {"uint3", "\"uint3\": 3-bit formats are int3 (supp"},
    {"q5_7", "\"q5_7\": 5-bit formats are int5 (supp"},
    {"bf16", "\"bf16\": 8-bit formats are int8, dynamic8, q8_0, fp8_e4m3, "
             "fp8_e5m2, mxfp8, uint8 (supp"},
    {"Tenary", "\"Tenary\": did you mean ternary (2 bits)? (supp"},
    {"gptq", "\"gptq\" (supported: int8"},
    {"", "\"\" (supported: int8"},
    {"99999999999999999999", "99\": 8-bit formats are"},
};

int main(void)
{
    lb_ctx *cx = lb_open(NULL);
    lb_array *x = lb_zeros(cx, LB_F32, LB_SHAPE(2, 64));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const lb_quant_config c = {.format = rows[i].name};
        REFUSED(lb_quantize(cx, x, &c), LB_E_ARG, rows[i].say);
    }
    for (int d = LB_I8; d <= LB_BOOL; d++) {
        lb_array *a = lb_zeros(cx, (lb_dtype)d, LB_SHAPE(2, 64));
        REFUSED(lb_quantize(cx, a, NULL), LB_E_DTYPE, "lb_from_codes");
        REFUSED(lb_straight_through(cx, a, NULL), LB_E_DTYPE, "float dtype");
    }
    lb_close(cx);
    return check_report("nearest");
}
