#!/usr/bin/env bash
# test_cli_machine.sh PROGRAM - formats, cpu and bench. Times are not checked. Run
# it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash

# ---- formats -----------------------------------------------------------------

refused 2 "formats takes no arguments (got 1)" formats x
run 0 formats --help
has "usage: lowbit formats [OPTION]..."
# Bits follow from the block size; errors are as in docs/formats.md for other
# normally distributed values (int8's is larger because rows are longer).
LOWBIT_ISA=ref prints formats <<END
type       bits/weight     nrmse  kernels     stored in
int8             8.031    0.0079  portable    native bnb eformer mlx gptq compressed-tensors
nf4                4.5    0.0921  portable    native bnb eformer
ternary              2    0.4440  portable    native bitnet eformer mlx gptq compressed-tensors
binary               1    0.6031  portable    native eformer
dynamic8         8.125    0.0109  portable    native
q8_0               8.5    0.0054  portable    native mlx gptq compressed-tensors gguf
q4_0               4.5    0.0860  portable    native mlx gptq awq compressed-tensors gguf
iq4_nl             4.5    0.0762  portable    native gguf
tq1_0            1.688    0.8081  portable    native mlx gptq compressed-tensors gguf
tq2_0            2.062    0.8081  portable    native mlx gptq compressed-tensors gguf
fp8_e4m3         8.002    0.0264  portable    native compressed-tensors fp8
fp8_e5m2         8.002    0.0528  portable    native
mxfp8             8.25    0.0265  portable    native mlx compressed-tensors
mxfp4             4.25    0.1119  portable    native mlx compressed-tensors
int1               1.5    0.8383  portable    native compressed-tensors
int2               2.5    0.3954  portable    native mlx gptq compressed-tensors
int3               3.5    0.1927  portable    native mlx gptq compressed-tensors
int4               4.5    0.0950  portable    native mlx gptq awq compressed-tensors
int5               5.5    0.0474  portable    native mlx compressed-tensors
int6               6.5    0.0237  portable    native mlx compressed-tensors
int7               7.5    0.0118  portable    native compressed-tensors
uint8              8.5    0.0059  portable    native mlx gptq compressed-tensors

read only: q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k iq4_xs iq3_s iq3_xxs iq2_s
           iq2_xs iq2_xxs iq1_m iq1_s gguf_mxfp4 gguf_nvfp4 q2_0 q1_0 i2_s
           nvfp4 fp4_e2m1 e8m0
END
LOWBIT_ISA=ref run 0 formats --json
has '{"format": "nf4", "bits_per_weight": 4.5, "nrmse": 0.092'
has '"kernels": "portable", "layouts": ["native", "bnb", "eformer"]}'
has '"read_only": ["q4_1", "q5_0"'

# ---- cpu ---------------------------------------------------------------------

refused 2 "cpu takes no arguments (got 2)" cpu a b
run 0 cpu --help
has "usage: lowbit cpu [OPTION]..."
LOWBIT_ISA=ref run 0 cpu
has "level    ref"
grep -q "^tuning   [a-z0-9-]*$" "$tmp/out" || die "no tuning"
has "formats  none"
best=$(sed -n 's/^best *//p' "$tmp/out")
LOWBIT_ISA=$best run 0 cpu
has "level    $best"
LOWBIT_ISA=ref run 0 cpu --json
has "\"level\": \"ref\", \"best\": \"$best\", \"tuning\": \""
has '"formats": [], "warnings": []}'
LOWBIT_ISA=odd refused 2 'odd' cpu

# ---- bench -------------------------------------------------------------------

run 0 bench --help
has "usage: lowbit bench [OPTION]..."
refused 2 "unknown type 'nf5'; did you mean nf4?" bench --type nf5 --quick
refused 2 "cannot quantize to type dense" bench --type dense --quick
for shape in 8 8x 8x8x8 0x8 8x-1 xx8 8x99999999 x; do
    refused 2 "--shape takes shapes NxK such as 4096x4096, each from 1 to 16777216, not '$shape'" \
        bench --shape $shape
done
refused 2 "--jobs takes integers from 1 to 256 or all, not '300'" bench -j 300
refused 2 "--k does not apply to the summary (see lowbit bench --help)" bench --k 8
refused 2 "lists of M, shapes, orientations and threads need --products" bench --m 1,8
LOWBIT_ISA=ref run 0 bench --quick --m 2 --shape 64x32 -j 1
has "x (2,32) @ W (64,32) transposed, 1 thread, ref"
for format in f32 int8 nf4 ternary binary dynamic8 q8_0 q4_0 iq4_nl tq1_0 \
    tq2_0; do
    has "$format "
done
run 0 bench --quick --m 2 --shape 64x32 --orient w --type NF4 --json
has '{"format": "f32", "bytes": 8192, "gflops": '
has '{"format": "nf4", "bytes": 1152, "gflops": '
has '"dequantize_gb_s": '
run 0 bench --products --quick --m 2 --shape 64x32 --type nf4 -j 1 --json
has '"precision": "fastest", "m": 2'

finish
