#!/usr/bin/env bash
# test_cli_roundtrip.sh PROGRAM - quantize, dequantize, diff: every type in every
# layout that can store it, with odd shapes. Decoding must return exactly the
# encoded values, and these are within the type's error of the source. Run it in
# the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash

shapes='1,1 1,64 64,1 5,13 7,33 3,7,11 2,3,4,5 1,1025 130,66 0,5 4,0 96,256 31
    12,256'

# n pseudorandom bf16 values of both signs, 1/8 to 2, as escapes for printf.
numbers()
{
    awk -v n="$1" 'BEGIN {
        split("3e be 3f bf 3f bf 3e be", high, " ")
        x = n + 7
        for (i = 0; i < n; i++) {
            x = (x * 1103515245 + 12345) % 2147483648
            y = int(x / 65536)
            printf "\\x%02x\\x%s", y % 256, high[int(y / 256) % 8 + 1]
        }
    }'
}

header='' bytes='' at=0 sep='{'
for shape in $shapes; do
    n=1
    for d in ${shape//,/ }; do n=$((n * d)); done
    header+="$sep\"s$((at)).${shape//,/x}.weight\":{\"dtype\":\"BF16\",\"shape\":"
    header+="[$shape],\"data_offsets\":[$at,$((at + 2 * n))]}"
    bytes+=$(numbers $n)
    at=$((at + 2 * n))
    sep=,
done
src=$tmp/src.safetensors
safetensors "$src" "$header}" "$bytes"
run 0 check "$src"

quietly() # ARGUMENT..
{
    checks=$((checks + 1))
    "$program" "$@" -q >"$tmp/out" 2>"$tmp/err" || die "'$*': failed"
    [ ! -s "$tmp/err" ] || die "'$*': output on stderr"
}

# trip LIMIT OUTPUT OPTION...: LIMIT is the maximum nrmse.
trip()
{
    local limit=$1 to=$tmp/$2
    shift 2
    quietly quantize "$src" -o "$to" --force --no-sync --include . "$@"
    run 0 check "$to"
    quietly dequantize "$to" -o "$tmp/dense.safetensors" --force --no-sync
    run 0 diff -q "$to" "$tmp/dense.safetensors" # equal
    run 0 diff -q "$src" "$tmp/dense.safetensors" --tolerance "$limit"
    quietly quantize "$src" -o "$tmp/one" --force --no-sync --include . "$@" \
        -j 1 --max-memory 1M --verify
    [ "${to##*.}" = gguf ] || cmp -s "$to" "$tmp/one" ||
        die "$*: different bytes on one thread with little memory"
    run 0 info "$to"
    trips=$((trips + 1))
    packed=$((packed + $(grep -c " ${type:?} (bf16)\| $type (f32)" "$tmp/out" || true)))
}

# Limits for one array, given its worst scale.
trips=0 packed=0
for row in int8:0.02 nf4:0.2 ternary:0.8 binary:0.9 dynamic8:0.05 q8_0:0.02 \
    q4_0:0.2 iq4_nl:0.2 tq1_0:1.1 tq2_0:1.1; do
    type=${row%:*}
    trip "${row#*:}" q.safetensors --type "$type"
done
type=nf4
trip 0.2 q.safetensors --type nf4 --block-size 16
trip 0.2 q.safetensors --type nf4 --double-quant
trip 0.2 q.safetensors --type nf4 --compat eformer --layout eformer
trip 0.2 q.safetensors --type nf4 --layout bnb
trip 0.2 q.safetensors --type nf4 --layout bnb --double-quant
type=int8
trip 0.02 q.safetensors --type int8 --axis 0
trip 0.02 q.safetensors --type int8 --layout bnb
trip 0.02 q.safetensors --type int8 --layout eformer
# The former name of eformer.
trip 0.2 q.safetensors --type nf4 --compat seed --layout seed
trip 0.2 q.safetensors --type int8 --layout seed --override 's0=nf4:compat=seed'
type=ternary
trip 1.1 q.safetensors --type ternary --layout eformer
trip 0.8 q.safetensors --type ternary --scale row --threshold absmean
trip 0.8 q.safetensors --type ternary --scale block
type=binary
trip 0.9 q.safetensors --type binary --block-size 32
mv "$tmp/q.safetensors" "$tmp/blocks.safetensors"
trip 0.9 q.safetensors --type binary --block-size 32 --scale block
cmp -s "$tmp/q.safetensors" "$tmp/blocks.safetensors" ||
    die "--block-size does not imply --scale block"
trip 1.1 q.safetensors --type binary --layout eformer
# Whether a scale multiplies or divides is stated in config.json.
type=ternary
for class in bitlinear autobitlinear; do
    echo "{\"quantization_config\":{\"quant_method\":\"bitnet\",\"linear_class\":\"$class\"}}" \
        >"$tmp/config.json"
    trip 1.1 q.safetensors --type ternary --layout bitnet --linear-class $class
done
for row in q8_0:0.02 q4_0:0.2 iq4_nl:0.2 tq1_0:1.1 tq2_0:1.1; do
    type=${row%:*}
    trip "${row#*:}" q.gguf --type "$type" --container-only
done
[ "$packed" -gt 100 ] || die "only $packed arrays were quantized in $trips trips"
# A name may be a prefix of another; their parts are not mixed up.
src=$tmp/names.safetensors
header='{"a":{"dtype":"BF16","shape":[2,64],"data_offsets":[0,256]},'
header+='"a.b":{"dtype":"BF16","shape":[2,64],"data_offsets":[256,512]},'
header+='"a.codes":{"dtype":"BF16","shape":[2,64],"data_offsets":[512,768]}}'
safetensors "$src" "$header" "$(numbers 384)"
type=nf4
for how in "" --double-quant "--layout eformer"; do
    # shellcheck disable=SC2086
    trip 0.2 q.safetensors --type nf4 $how
done
safetensors "$tmp/deep" '{"w":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}' '\0\0\0\0'
refused 3 "'w' has rank 9; the maximum is 8" quantize "$tmp/deep" \
    -o "$tmp/x" --type nf4
refused 3 "'w' has rank 9; the maximum is 8" convert "$tmp/deep" \
    -o "$tmp/x"

finish
