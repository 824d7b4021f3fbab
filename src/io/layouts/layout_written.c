/* layout_written.c - layouts of other programs, for writing. Those of the same
 * name that find tensors are for reading. */
#include "io/layouts/writers.h"

static lb_verdict find(lb_ctx *cx, lb_file *f, const lb_tensor *t, lb_group *g)
{
    (void)cx, (void)f, (void)t, (void)g;
    return LB_DECLINED;
}

const lb_file_layout lb_file_layout_mlx_out = {
    .name = "mlx",
    .find = find,
    .rows = true,
    .stores = "2, 3, 4, 5, 6 and 8 bits with biases, in whole groups of 32, 64 "
              "or 128 of a row; mxfp4, mxfp8; and nvfp4 without a scale of the "
              "array",
    LB_WRITES(mlx)};
const lb_file_layout lb_file_layout_gptq_out = {
    .name = "gptq",
    .find = find,
    .refuses = lb_linear_only,
    .packs_head = true,
    .stores = "matrices P.weight of 2, 3, 4 or 8 bits with scales of f16 or "
              "bf16 and zero points that are codes, whose rows and columns "
              "fill words of 32 bits",
    LB_WRITES(gptq)};
const lb_file_layout lb_file_layout_awq_out = {
    .name = "awq",
    .find = find,
    .refuses = lb_linear_only,
    .stores = "matrices P.weight of 4 bits with scales of f16 and zero points "
              "that are codes, of a multiple of 8 rows and in whole groups",
    LB_WRITES(awq)};
const lb_file_layout lb_file_layout_ct_out = {
    .name = "compressed-tensors",
    .find = find,
    .refuses = lb_linear_only,
    .packs_head = true,
    .stores = "matrices P.weight of 1 to 8 bits without biases, in whole "
              "groups and rows that fill words of 32 bits; of int8 with a "
              "scale per row; of fp8_e4m3; of mxfp4, mxfp8 and nvfp4",
    LB_WRITES(ct)};
const lb_file_layout lb_file_layout_fp8_out = {
    .name = "fp8",
    .find = find,
    .refuses = lb_linear_only,
    .stores = "matrices P.weight of fp8_e4m3, with one scale or a scale per "
              "tile",
    LB_WRITES(fp8)};
