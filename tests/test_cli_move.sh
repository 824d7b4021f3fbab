#!/usr/bin/env bash
# test_cli_move.sh PROGRAM - convert --to with a type or a layout: what is moved,
# refused and allowed, and the tensors and settings that are written. Run it in
# the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash

# A model of f16 values that a formula draws: exponents 2^-4 to 2^-1.
dir=$tmp/model
mkdir "$dir"
n=$((64 * 256))
header='{"model.layers.0.mlp.up_proj.weight":{"dtype":"F16","shape":[64,256],"data_offsets":[0,'$((2 * n))']},"model.layers.0.input_layernorm.weight":{"dtype":"F16","shape":[4],"data_offsets":['$((2 * n))','$((2 * n + 8))']}}'
{
    printf '%b' "\\x$(printf %02x $((${#header} % 256)))\\x$(printf %02x $((${#header} / 256)))"
    printf '\0\0\0\0\0\0%s' "$header"
    awk -v n="$n" 'BEGIN { for (i = 0; i < n; i++) { s = (s * 8121 + 28411) % 134456
        printf "\\%03o\\%03o", s % 256, 44 + 4 * (int(s / 256) % 3) + int(s / 768) % 4 + 128 * (int(s / 3072) % 2) } }' |
        while IFS= read -r -n 4096 bytes || [ -n "$bytes" ]; do printf '%b' "${bytes//\\/\\0}"; done
    printf '\0\74\0\74\0\74\0\74'
} >"$dir/model.safetensors"
echo '{"model_type": "llama", "torch_dtype": "float16"}' >"$dir/config.json"
run 0 check "$dir"
w=model.layers.0.mlp.up_proj.weight

quantize() # TYPE OUTPUT OPTION...
{
    run 0 quantize "$dir" -o "$tmp/$2" --type "$1" --no-sync -q --force "${@:3}"
}

move() # STATUS SOURCE OUTPUT OPTION...: in $tmp, or a golden; $tmp/out is its stderr
{
    local status=0 from=$tmp/$2
    checks=$((checks + 1))
    [ "${2#tests/}" = "$2" ] || from=$2
    "$program" convert "$from" -o "$tmp/$3" --no-sync "${@:4}" >"$tmp/data" \
        2>"$tmp/out" || status=$?
    [ "$status" = "$1" ] || die "convert ${*:2}: exit status $status, not $1"
}

same() # A B
{
    run 0 diff "$tmp/$1" "$tmp/$2"
}

tensors() # FILE <<TEXT: its raw tensors, with types and shapes
{
    cat >"$tmp/want"
    run 0 info --raw "$tmp/$1"
    awk 'NF > 3 && $1 ~ /^model/ { print $1, $2, $3 }' "$tmp/out" | grep -v norm \
        >"$tmp/got"
    diff "$tmp/want" "$tmp/got" >"$tmp/diff" || die "$1: $(cat "$tmp/diff")"
}

# ---- types -------------------------------------------------------------------

quantize q4_0 q4_0.gguf --container-only
move 0 q4_0.gguf q4_1.gguf --to q4_1 -v
has "q4_0 (f32) -> q4_1"
has ", moved"
has "quantized arrays: 1 moved; others copied: 1"
same q4_0.gguf q4_1.gguf
move 0 q4_1.gguf back.gguf --to q4_0
cmp "$tmp/q4_0.gguf" "$tmp/back.gguf" || die "q4_0 to q4_1 and back: other bytes"
for to in q5_0 q5_1 q8_0; do
    move 0 q4_0.gguf "$to.gguf" --to "$to"
    same q4_0.gguf "$to.gguf"
done

# What is refused leaves nothing behind.
move 4 q4_0.gguf none.gguf --to iq4_nl -v --report "$tmp/none.json"
has "1 of 1 quantized arrays cannot be moved to iq4_nl, the first is '$w': its codes are on other levels"
has "quantized again: nrmse 0.0"
has "quantized arrays: 1 refused"
grep -q '"moved": "refused", "refused": "its codes are on' "$tmp/none.json" ||
    die "no refusal in the report"
! ls "$tmp"/none.gguf* 2>/dev/null || die "a file is left"
move 4 q4_0.gguf none.gguf --to iq4_nl --dry-run
move 4 q4_0.gguf none.gguf --to iq4_nl --allow rounded
move 0 q4_0.gguf iq4_nl.gguf --to iq4_nl --allow requantize -v
has ", requantized"
move 2 q4_0.gguf none.gguf --to q4_9
has "unknown target 'q4_9'"
move 2 q4_0.gguf none.gguf --to q4_1 --allow all
has "--allow takes exact, rounded or requantize"
move 0 q4_0.gguf upper.gguf --to GGUF
cmp "$tmp/q4_0.gguf" "$tmp/upper.gguf" || die "GGUF and gguf differ"
move 0 model dense --to mlx
has "model has no quantized arrays"
move 2 q4_0.gguf none.gguf --layout mlx
has "--layout mlx requires a move: use --to mlx"
move 2 q4_0.gguf none.gguf --allow rounded
has "--allow requires --to"
move 3 q4_0.gguf none/ --to native
has "its tensors have the names of GGUF"

# A scale that is rounded: f32 to f16.
quantize int8 int8.safetensors
move 4 int8.safetensors none.gguf --to q8_0 --container-only
has "a scale or a bias would be rounded"
move 0 int8.safetensors q8_0r.gguf --to q8_0 --container-only --allow rounded -v
has ", rounded"

# ---- layouts -----------------------------------------------------------------

move 0 q4_0.gguf ct.safetensors --to compressed-tensors
tensors ct.safetensors <<TEXT
${w}_packed i32 (64,32)
${w}_scale f16 (64,8)
${w}_shape i64 (2)
TEXT
move 0 q4_0.gguf gptq.safetensors --to gptq
tensors gptq.safetensors <<TEXT
${w%.weight}.g_idx i32 (256)
${w%.weight}.qweight i32 (32,64)
${w%.weight}.qzeros i32 (8,8)
${w%.weight}.scales f16 (8,64)
TEXT
move 0 q4_0.gguf awq.safetensors --to awq
tensors awq.safetensors <<TEXT
${w%.weight}.qweight i32 (256,8)
${w%.weight}.qzeros i32 (8,8)
${w%.weight}.scales f16 (8,64)
TEXT
move 0 q4_0.gguf mlx.safetensors --to mlx
tensors mlx.safetensors <<TEXT
${w%.weight}.biases f32 (64,8)
${w%.weight}.scales f32 (64,8)
$w u32 (64,32)
TEXT
move 0 q4_0.gguf mlx16.safetensors --to mlx --allow rounded --block-size 32
tensors mlx16.safetensors <<TEXT
${w%.weight}.biases f16 (64,8)
${w%.weight}.scales f16 (64,8)
$w u32 (64,32)
TEXT
quantize mxfp4 mxfp4
for to in mlx compressed-tensors; do
    move 0 mxfp4 "mxfp4-$to" --to "$to" -v
    has ", moved"
    same mxfp4 "mxfp4-$to"
    move 0 "mxfp4-$to" back --to native --force
    same mxfp4 back
done
grep -q '"quantization": {' "$tmp/mxfp4-mlx/config.json" || die "no quantization"
grep -q '"format": "mxfp4-pack-quantized"' "$tmp/mxfp4-compressed-tensors/config.json" ||
    die "another format"
for to in mlx compressed-tensors; do
    quantize mxfp8 "mxfp8-$to" --layout "$to"
    for other in mlx compressed-tensors; do
        move 0 "mxfp8-$to" "mxfp8-$to-$other" --to "$other"
        has "1 moved"
        same "mxfp8-$to" "mxfp8-$to-$other"
        move 0 "mxfp8-$to-$other" back --to "$to" --force
        cmp "$tmp/mxfp8-$to/model.safetensors" "$tmp/back/model.safetensors" ||
            die "mxfp8 from $to to $other and back: other bytes"
    done
done
grep -q '"mode": "mxfp8"' "$tmp/mxfp8-mlx/config.json" || die "no mode mxfp8"
grep -q '"format": "mxfp8-quantized"' "$tmp/mxfp8-compressed-tensors/config.json" ||
    die "another format than mxfp8-quantized"
quantize fp8_e4m3 fp8
for to in fp8 compressed-tensors; do
    move 0 fp8 "fp8-$to" --to "$to"
    has "1 moved"
    same fp8 "fp8-$to"
done
grep -q '"weight_block_size": \[128, 128\]' "$tmp/fp8-fp8/config.json" || die "no size"
quantize fp8_e4m3 fp8-48 --block-size 48 # the first rows are a part of tiles
for to in fp8 compressed-tensors native; do
    move 0 fp8-48 "fp8-48-$to" --to "$to"
    has "1 moved"
    same fp8-48 "fp8-48-$to"
done
tr -d ' \n' <"$tmp/fp8-48-compressed-tensors/config.json" |
    grep -qF '"strategy":"block","block_structure":[48,48]' || die "no blocks"
move 4 fp8 none --to gptq
has "quantized again: nrmse"
! ls -d "$tmp"/none "$tmp"/none.partial 2>/dev/null || die "a directory is left"

# nvfp4: scales are multiplied by one number, or divided by its reciprocal, which
# is rounded; MLX has none.
nv=tests/golden/floats/nvfp4
nvfp4() # STATUS SOURCE OUTPUT OPTION...
{
    move "$1" "$nv/$2" "${@:3}"
}
nvfp4 4 modelopt none --to compressed-tensors
has "the scale of the array would be rounded"
nvfp4 0 modelopt nv-ct --to compressed-tensors --allow rounded
run 1 diff "$nv/modelopt" "$tmp/nv-ct"
run 0 diff "$nv/modelopt" "$tmp/nv-ct" --tolerance 1e-7
grep -q '"format": "nvfp4-pack-quantized"' "$tmp/nv-ct/config.json" || die "no nvfp4"
nvfp4 0 ct nv-same --to compressed-tensors
cmp "$nv/ct/model.safetensors" "$tmp/nv-same/model.safetensors" ||
    run 0 diff "$nv/ct" "$tmp/nv-same"
nvfp4 0 mlx_nvfp4 nv-mlx-ct --to compressed-tensors
run 0 diff "$nv/mlx_nvfp4" "$tmp/nv-mlx-ct"
nvfp4 0 mlx_nvfp4 nv-mlx --to mlx
run 0 diff "$nv/mlx_nvfp4" "$tmp/nv-mlx"
nvfp4 4 ct none --to mlx
has "nvfp4 with such scales and groups cannot be expressed as int4"
# The byte 255 of a power of two: NaN where it comes from, not in the target.
nvfp4 4 ../mxfp4/deepseek_v4 none --to mlx --allow rounded
has "a scale is not finite"

# Scales of bitsandbytes are 127 times as large.
move 4 int8.safetensors none.safetensors --to bnb
has "a scale or a bias would be rounded"
move 0 int8.safetensors bnb.safetensors --to bnb --allow rounded
has "1 rounded"
tensors bnb.safetensors <<TEXT
${w%.weight}.SCB f32 (64)
$w i8 (64,256)
${w}_format u8 ()
TEXT
run 0 diff "$tmp/int8.safetensors" "$tmp/bnb.safetensors" --tolerance 0.0003 # f16 or f32
move 4 q4_0.gguf none.safetensors --to bnb
has "share them in the target"

# ---- quantize ----------------------------------------------------------------

# Never more bits than asked for, without a word.
for each in int3:awq int7:mlx q8_0:awq nf4:gptq int1:gptq; do
    refused 2 "layout ${each#*:}" quantize "$dir" -o "$tmp/none" \
        --type "${each%:*}" --layout "${each#*:}"
    grep -q "cannot" "$tmp/err" || die "$each is not refused by name"
done

for layout in mlx gptq awq compressed-tensors; do
    quantize int4 "as-$layout" --layout "$layout" --block-size 32
done
grep -q '"checkpoint_format": "gptq_v2"' "$tmp/as-gptq/config.json" || die "no gptq_v2"
grep -q '"version": "gemm"' "$tmp/as-awq/config.json" || die "no version"
grep -q '"bits": 4' "$tmp/as-mlx/config.json" || die "no bits"
run 0 info --raw "$tmp/as-gptq"
has "quantized with gptq (recognized by tensor ${w%.weight}.qweight): the tensors are"

# A type is not mistaken for a copy, nor refused if it is only quantized to.
move 4 as-gptq none --to nf4
has "nothing can be moved to this type without quantizing"
for to in q4_k nvfp4 iq2_xxs; do
    move 4 as-gptq none --to $to --allow requantize
    has "and $to cannot be quantized to: it has no encoder"
done
for to in nf4 fp8 mxfp8; do
    move 0 as-gptq "gptq-$to" --to "$to" --allow requantize
    has "1 requantized"
done
run 0 diff "$tmp/as-gptq" "$tmp/gptq-fp8" --tolerance 0.05

# Names in patterns.
mkdir "$tmp/names"
cp "$dir/config.json" "$tmp/names/"
safetensors "$tmp/names/model.safetensors" \
    '{"m.a+b.weight":{"dtype":"F16","shape":[32,128],"data_offsets":[0,8192]},"m.c.weight":{"dtype":"F16","shape":[32,128],"data_offsets":[8192,16384]}}' \
    "$(printf '\\001\\074%.0s' {1..8192})"
run 0 quantize "$tmp/names" -o "$tmp/as-names" --type int4 --layout gptq -q --no-sync \
    --block-size 32 --include 'm\.' --exclude 'a\+'
grep -qF '"-:m\\.a\\+b$": {}' "$tmp/as-names/config.json" || die "no pattern"

# Between them, exactly, and back to the same bytes. Values of GPTQ and AWQ are
# rounded to f16, those of MLX with f32 scales are not: they are not compared.
for from in gptq awq; do
    for to in gptq awq compressed-tensors mlx native; do
        move 0 "as-$from" "to-$to" --to "$to" --force
        has "1 moved"
        [ "$to" = mlx ] || same "as-$from" "to-$to"
        move 0 "to-$to" again --to "$from" --force
        cmp "$tmp/as-$from/model.safetensors" "$tmp/again/model.safetensors" ||
            die "$from to $to and back: other bytes"
    done
done

# Embeddings, which only MLX packs.
mkdir "$tmp/embedded"
cp "$dir/config.json" "$tmp/embedded/"
safetensors "$tmp/embedded/model.safetensors" \
    '{"model.embed_tokens.weight":{"dtype":"F16","shape":[32,128],"data_offsets":[0,8192]},"lm_head.weight":{"dtype":"F16","shape":[32,128],"data_offsets":[8192,16384]}}' \
    "$(printf '\\001\\054%.0s' {1..8192})"
run 0 quantize "$tmp/embedded" -o "$tmp/mlx-embedded" --type int4 --layout mlx -q \
    --no-sync --include embed --include head --block-size 32
for to in gptq compressed-tensors; do
    move 0 mlx-embedded "embedded-$to" --to $to --allow rounded
    has "decoded to floats: 1; others copied: 0"
    run 0 info "$tmp/embedded-$to"
    grep -q "^model.embed_tokens.weight *f16 " "$tmp/out" || die "packed for $to"
done
grep -q '"lm_head": true' "$tmp/embedded-gptq/config.json" || die "no packed head"
move 0 mlx-embedded embedded-awq --to awq --allow rounded
run 0 info "$tmp/embedded-awq"
grep -q "^lm_head.weight *f16 " "$tmp/out" || die "a packed head for awq"

# ---- what no program could read ----------------------------------------------

# A zero point of GPTQ's first version is one more than stored: here 16, which
# the others cannot store in 4 bits.
mkdir "$tmp/v1"
echo '{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}}' \
    >"$tmp/v1/config.json"
safetensors "$tmp/v1/model.safetensors" \
    '{"m.qweight":{"dtype":"I32","shape":[4,8],"data_offsets":[0,128]},"m.qzeros":{"dtype":"I32","shape":[1,1],"data_offsets":[128,132]},"m.scales":{"dtype":"F16","shape":[1,8],"data_offsets":[132,148]}}' \
    "$(printf '\\001\\043\\105\\147%.0s' {1..32})\\377\\377\\377\\367$(printf '\\000\\074%.0s' {1..8})"
"$program" check "$tmp/v1" >"$tmp/out" 2>&1 || die "check of v1 fails"
has "lowbit: warning: m.weight: 7 zero points are outside the range of the codes"
for to in gptq awq compressed-tensors; do
    move 4 v1 none --to "$to"
    has "do not fit into 0 ... 15"
    move 0 v1 "v1-$to" --to "$to" --allow requantize
    run 0 diff "$tmp/v1" "$tmp/v1-$to" --tolerance 0.07
done
move 0 v1 v1-native --to native
same v1 v1-native

# A long key is part of the path of every setting below it.
{
    printf '{"quantization_config":{"%s":[0' "$(printf 'k%.0s' {1..1000})"
    printf ',0%.0s' {1..70000}
    echo ']}}'
} >"$tmp/v1/config.json"
refused 3 "the maximum is 67108864" info "$tmp/v1"

# No elements.
safetensors "$tmp/empty.safetensors" \
    '{"__metadata__":{"lowbit.m.weight":"{\"layout\":\"native\",\"format\":\"int4\",\"dtype\":\"f16\",\"shape\":[0,64],\"parts\":{\"codes\":{\"groups\":[1,2]},\"scale\":{\"groups\":[1,32]}}}"},"m.weight.codes":{"dtype":"U8","shape":[0,32],"data_offsets":[0,0]},"m.weight.scale":{"dtype":"F16","shape":[0,2],"data_offsets":[0,0]}}' ''
for to in gptq awq compressed-tensors mlx; do
    move 4 empty.safetensors none.safetensors --to "$to"
    has "cannot be moved to $to"
done

# The configuration is part of a single file.
for to in mlx gptq awq compressed-tensors; do
    for type in q4_0 q8_0; do
        [ $to$type != awqq8_0 ] || continue
        quantize $type one.gguf --container-only
        move 0 one.gguf one.safetensors --to $to --force
        run 0 diff "$tmp/one.gguf" "$tmp/one.safetensors" --tolerance 0.0005 # f16
        move 0 one.safetensors two.gguf --to $type --force --container-only
        run 0 diff "$tmp/one.gguf" "$tmp/two.gguf"
    done
done

# Without config.json, groups and bits of MLX are ambiguous.
quantize q4_0 q4_0 --layout native
move 0 q4_0 q4_0-mlx --to mlx
move 0 q4_0-mlx q4_0.safetensors --to q4_0
run 0 diff "$tmp/q4_0" "$tmp/q4_0.safetensors" --tolerance 0.0005 # f16 or f32

echo "test_cli_move: $checks checks"
