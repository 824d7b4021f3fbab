/* layout_written.c - layouts of other programs, for writing. Those of the same
 * name that find tensors are for reading. */
#include "io/layouts/writers.h"

static lb_verdict find(lb_ctx *cx, lb_file *f, const lb_tensor *t, lb_group *g)
{
    (void)cx, (void)f, (void)t, (void)g;
    return LB_DECLINED;
}

const lb_file_layout lb_file_layout_mlx_out = {
    .name = "mlx", .find = find, .rows = true, LB_WRITES(mlx)};
const lb_file_layout lb_file_layout_gptq_out = {
    .name = "gptq", .find = find, .refuses = lb_linear_only, LB_WRITES(gptq)};
const lb_file_layout lb_file_layout_awq_out = {
    .name = "awq", .find = find, .refuses = lb_linear_only, LB_WRITES(awq)};
const lb_file_layout lb_file_layout_ct_out = {.name = "compressed-tensors",
                                              .find = find,
                                              .refuses = lb_linear_only,
                                              LB_WRITES(ct)};
const lb_file_layout lb_file_layout_fp8_out = {
    .name = "fp8", .find = find, .refuses = lb_linear_only, LB_WRITES(fp8)};
