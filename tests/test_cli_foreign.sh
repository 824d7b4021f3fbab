#!/usr/bin/env bash
# test_cli_foreign.sh PROGRAM - checkpoints of other programs that lowbit cannot
# decode: each is named and none is damaged. Run it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
out=$tmp/out.safetensors

absent() # PATH...: nothing was written there
{
    local path
    for path; do
        [ ! -e "$path" ] || die "$path was written"
    done
}

# ---- pickles -----------------------------------------------------------------

# zip_file FILE NAME: a ZIP archive with one stored, empty member.
zip_file()
{
    local name=$2 n size at
    n=$(printf '\\x%02x\\0' ${#name})
    size=$(printf '\\x%02x' $((46 + ${#name})))
    at=$(printf '\\x%02x' $((30 + ${#name})))
    # shellcheck disable=SC2059
    {
        printf 'PK\3\4\24\0\0\0\0\0\0\0\41\0'
        printf '\0\0\0\0\0\0\0\0\0\0\0\0'"$n"'\0\0%s' "$name"
        printf 'PK\1\2\24\0\24\0\0\0\0\0\0\0\41\0'
        printf '\0\0\0\0\0\0\0\0\0\0\0\0'"$n"'\0\0\0\0\0\0\0\0\0\0\0\0'
        printf '\0\0\0\0%s' "$name"
        printf 'PK\5\6\0\0\0\0\1\0\1\0'"$size"'\0\0\0'"$at"'\0\0\0\0\0'
    } >"$1"
}

pickled="a PyTorch pickle, which is not supported; convert it to safetensors"
zip_file "$tmp/pytorch_model.bin" archive/data.pkl
zip_file "$tmp/plain.pt" data.pkl
printf '\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.' \
    >"$tmp/legacy.pth"
printf '\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94.' >"$tmp/model.ckpt"
for pickle in pytorch_model.bin plain.pt legacy.pth model.ckpt; do
    refused 3 "$pickle: $pickled" info "$tmp/$pickle"
    refused 3 "$pickle: $pickled" check "$tmp/$pickle"
    refused 3 "$pickle: $pickled" quantize "$tmp/$pickle" -o "$out" --type nf4
    refused 3 "$pickle: $pickled" convert "$tmp/$pickle" -o "$out"
done
zip_file "$tmp/notes.zip" notes.txt
refused 3 "1 file without a single npy array, not an npz file" info "$tmp/notes.zip"
mkdir "$tmp/pickles"
cp "$tmp/pytorch_model.bin" "$tmp/pickles"
refused 3 "pickles: has PyTorch pickles (pytorch_model.bin) and no model.safe" \
    info "$tmp/pickles"
mv "$tmp/pickles/pytorch_model.bin" "$tmp/pickles/pytorch_model.bin.index.json"
refused 3 "(pytorch_model.bin.index.json)" quantize "$tmp/pickles" \
    -o "$tmp/made" --type nf4
# numpy.savez without arrays writes an empty archive.
run 0 info "$golden/nothing.npz"
has "total: 0 arrays"
absent "$out" "$tmp/made"

# ---- GGUF --------------------------------------------------------------------

# A GGUF file without general.architecture cannot be loaded as a model.
mkdir "$tmp/hf"
cp tests/golden/layouts/bnb8.values "$tmp/hf/model.safetensors"
echo '{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}' \
    >"$tmp/hf/config.json"
gguf=$tmp/made.gguf
for src in "$tmp/hf" "$tmp/hf/model.safetensors" "$golden/float32.npy"; do
    lost="$src is not a GGUF file: the output would lack the architecture"
    refused 2 "$lost" convert "$src" -o "$gguf"
    refused 2 "$lost" dequantize "$src" -o "$gguf"
    refused 2 "$lost" quantize "$src" -o "$gguf" --type q8_0
    refused 2 "$lost" quantize "$src" -o "$gguf" --target-bpw 5 --dry-run
    [ ! -e "$gguf" ] || die "something was written"
    for verb in "convert" "dequantize" "quantize --type q8_0"; do
        # shellcheck disable=SC2086 # words, meant to split
        run 0 $verb "$src" -o "$gguf" -q --no-sync --container-only
        rm "$gguf"
    done
done
# GGUF to GGUF keeps the architecture, also through another container.
run 0 convert "$golden/values.gguf" -o "$tmp/v.safetensors" -q --no-sync
run 0 convert "$tmp/v.safetensors" -o "$gguf" -q --no-sync
cmp -s "$golden/values.gguf" "$gguf" || die "converted back: different bytes"
run 0 quantize "$golden/values.gguf" -o "$gguf" -q --no-sync --force --type q8_0
if "$program" quantize --help | grep 'lowbit quantize model/.*gguf'; then
    die "--help has an example that is refused"
fi

# ---- the layout of a directory -----------------------------------------------

# chosen TEXT QUANT_METHOD OPTION...: the message and the content of config.json.
chosen()
{
    checks=$((checks + 1))
    "$program" quantize "$tmp/hf" -o "$tmp/made" --force --no-sync "${@:3}" \
        >"$tmp/out" 2>"$tmp/err" || die "'${*:3}': failed"
    grep -qF "layout $1" "$tmp/err" || die "'${*:3}': does not say '$1'"
    if [ -n "$2" ]; then
        grep -q "\"quant_method\": \"$2\"" "$tmp/made/config.json" ||
            die "'${*:3}': not $2"
    else
        grep -q '"lowbit": {' "$tmp/made/config.json" || die "'${*:3}': no lowbit"
        ! grep -q quant_method "$tmp/made/config.json" || die "'${*:3}': config.json has a quant_method"
    fi
}
header='{"layers.0.weight":{"dtype":"F32","shape":[64,64],"data_offsets":[0,16384]},'
header+='"layers.1.weight":{"dtype":"F32","shape":[64,64],"data_offsets":[16384,32768]}}'
safetensors "$tmp/hf/model.safetensors" "$header" ''
head -c 32768 /dev/zero | tr '\0' '<' >>"$tmp/hf/model.safetensors"
chosen "bnb, which transformers loads" bitsandbytes --type nf4
chosen "bnb, which transformers loads" bitsandbytes --type nf4 --double-quant
chosen "bnb, which transformers loads" bitsandbytes --type int8
chosen "bitnet, which transformers loads" bitnet --type ternary
chosen "native, which only lowbit loads: transformers does not" '' --type q8_0
chosen "native, which only lowbit loads: layout bnb does not" '' \
    --type int8 --block-size 32
chosen "native, which only lowbit loads: layout bnb requires one type" '' \
    --type nf4 --override layers.1=int8
chosen "native, which only lowbit loads: target" '' --target-bpw 6
# An explicit layout is not replaced.
refused 2 "layout bnb cannot store 'layers.1.weight' as q4_0" quantize "$tmp/hf" \
    -o "$tmp/made" --force --type nf4 --layout bnb --override layers.1=q4_0
refused 2 "bnb" quantize "$tmp/hf" -o "$tmp/made" --force --type int8 \
    --block-size 32 --layout bnb
run 0 quantize "$tmp/hf" -o "$tmp/made" -q --no-sync --force --type nf4 \
    --layout native
grep -q '"lowbit": {' "$tmp/made/config.json" || die "native: no lowbit"
run 0 info "$tmp/made"
has native
run 0 dequantize "$tmp/made" -o "$tmp/wide" -q --no-sync
! grep -q quantization "$tmp/wide/config.json" ||
    die "the quantization_config was kept"
# Converting a directory keeps its layout and config.json.
run 0 quantize "$tmp/hf" -o "$tmp/made" -q --no-sync --force --type nf4 --double-quant
run 0 convert "$tmp/made" -o "$tmp/wide" -q --no-sync --force
diff -r "$tmp/made" "$tmp/wide" >"$tmp/diff" || die "$(cat "$tmp/diff")"
rm -r "$tmp/made" "$tmp/wide"

# ---- quantized by others -----------------------------------------------------

# tensors FILE SPEC...: a file of tensors, each NAME:TYPE:DIM,DIM.
tensors()
{
    local file=$1 header='' at=0 spec name type dims dim n
    shift
    for spec; do
        IFS=: read -r name type dims <<<"$spec"
        case $type in
            I64) n=8 ;;
            F32 | I32 | U32) n=4 ;;
            F16 | BF16 | I16) n=2 ;;
            *) n=1 ;;
        esac
        for dim in ${dims//,/ }; do n=$((n * dim)); done
        header+=",\"$name\":{\"dtype\":\"$type\",\"shape\":[$dims],"
        header+="\"data_offsets\":[$at,$((at + n))]}"
        at=$((at + n))
    done
    header="{${header:1}}"
    while [ $((${#header} % 8)) != 0 ]; do header+=' '; done
    safetensors "$file" "$header" ''
    yes "codes and scales" | head -c $at >>"$file" || true
}

# foreign METHOD SPEC...: a file whose tensors show the method.
foreign()
{
    local method=$1 file=$tmp/foreign.safetensors
    shift
    local named="quantized with $method (recognized by tensor"
    tensors "$file" "$@"
    run 0 info "$file"
    has "$named"
    # Codes are packed: their number, and so the bits of each, are unknown.
    grep -qE '^total: [0-9]+ tensors?, [0-9.]+ k?B$' "$tmp/out" ||
        die "$method: $(tail -n 1 "$tmp/out")"
    run 0 info --json "$file"
    has "\"quantization\": {\"method\": \"$method\", \"decoded\": false"
    has '"parameters": null'
    refused 3 "$named" quantize "$file" -o "$out" --type nf4
    refused 3 "$named" quantize "$file" -o "$out" --type int8 --dry-run
    refused 3 "$named" dequantize "$file" -o "$out"
    refused 3 "which cannot be decoded; convert can only copy it" \
        convert "$file" -o "$tmp/out.npz"
    refused 3 "without another dtype" convert "$file" -o "$out" --dtype f32
    refused 3 "not move its arrays" convert "$file" -o "$out" --to mlx
    refused 3 "not move its arrays" convert "$file" -o "$out" --to q4_0
    absent "$out" "$tmp/out.npz"
    run 0 convert "$file" -o "$out" -q --no-sync --verify
    cmp -s "$file" "$out" || die "$method: different bytes"
    rm "$out"
}

# reads METHOD SPEC...: the same with a method that is decoded, but not written.
reads()
{
    local method=$1 file=$tmp/foreign.safetensors
    shift
    tensors "$file" "$@"
    run 0 info --json "$file"
    has "\"quantization\": {\"method\": \"$method\", \"decoded\": true"
    refused 3 "is already quantized" quantize "$file" -o "$out" --type nf4
    run 0 convert "$file" -o "$out" -q --no-sync --verify
    cmp -s "$file" "$out" || die "$method: different bytes"
    # Copied in lowbit's own layout, the values stay.
    run 0 convert "$file" -o "$out" -q --no-sync --force --layout native
    run 0 diff "$file" "$out" --quiet
    run 0 convert "$file" -o "$out" -q --no-sync --force --to native
    run 0 diff "$file" "$out" --quiet
    run 0 dequantize "$file" -o "$out" -q --no-sync --force
    run 0 info --json "$out"
    has '"quantization": null'
    run 0 diff "$file" "$out" --quiet
    rm "$out"
}

p=model.layers.0.mlp.up_proj
# 4 bits: a word has the codes of eight rows, or of eight columns
gptq=("$p.g_idx:I32:64" "$p.qweight:I32:8,32" "$p.qzeros:I32:1,4" "$p.scales:F16:1,32")
awq=("$p.qweight:I32:64,4" "$p.qzeros:I32:1,4" "$p.scales:F16:1,32")
mlx=("$p.weight:U32:32,8" "$p.biases:BF16:32,1" "$p.scales:BF16:32,1")
deepseek=("$p.weight_scale_inv:F32:1,1" "$p.weight:F8_E4M3:32,64")
reads gptq "${gptq[@]:1}"
foreign gptq "$p.B:I32:4,64" "$p.s:F16:1,32"
reads awq "${awq[@]}"
foreign awq "$p.qweight:I32:32,16" "$p.qzeros:I32:32,1" "$p.scales:F16:32,8"
foreign awq "$p.qzeros:F16:8,32" "$p.scales:F16:8,32" "$p.qweight:I16:8,64"
reads mlx "${mlx[@]}"
reads mlx "$p.weight:U32:4,32,8" "$p.scales:U8:4,32,2" # mxfp4
reads mlx "$p.weight:U32:32,8" "$p.qbiases:BF16:32,1" "$p.scales:BF16:32,1"
foreign compressed-tensors "$p.weight_packed:I32:32,8" "$p.weight_scale:F16:32,1"
reads compressed-tensors "$p.weight_global_scale:F32:1" \
    "$p.weight_scale:F8_E4M3:32,4" "$p.weight_packed:U8:32,32"
reads compressed-tensors "$p.weight_packed:U8:32,32" "$p.weight_scale:U8:32,2"
reads compressed-tensors "$p.weight_scale:BF16:32,1" "$p.weight:I8:32,64"
reads fp8 "${deepseek[@]}"
reads fp8 "experts.up_scale_inv:F32:2,1,1" "experts.up:F8_E4M3:2,32,64"
reads fp8 "$p.weight_scale:F32:32,1" "$p.weight:F8_E4M3:32,64"
reads fp8 "$p.scale:F8_E8M0:1,1" "$p.weight:F8_E4M3:32,64"
reads fp8 "$p.scale:F8_E8M0:32,2" "$p.weight:I8:32,32"
reads fp8 "$p.scale_weight:F32:1" "$p.weight:F8_E5M2:32,64"
reads fp8 "$p.weight:F8_E4M3:32,64" "$p.weight_scale:U8:32,2"
reads modelopt "$p.weight_scale_2:F32:1" "$p.weight_scale:F8_E4M3:32,4" \
    "$p.weight:U8:32,32"
reads mxfp4 "experts.up_proj_blocks:U8:2,32,2,16" "experts.up_proj_scales:U8:2,32,2"
foreign hqq "$p.scale:F16:32,1" "$p.zero:F16:32,1" "$p.W_q:U8:16,64"
foreign exl3 "$p.suh:F16:64" "$p.svh:F16:32" "$p.trellis:I16:4,2,48"
foreign exl2 "$p.q_weight:I32:8,32" "$p.q_groups:I16:4"
foreign aqlm "$p.codebooks:F16:1,256,1,8" "$p.scales:F16:32,1,1,1" "$p.codes:I8:32,8,1"
foreign higgs "$p.qweight:I32:8,32" "$p.scales:F16:1,32" "$p.tables2:F16:16,16"
foreign vptq "$p.indices:I32:1,8,8" "$p.centroids.weight:F16:1,256"
foreign 'quip#' "$p.Qidxs:I64:4,8" "$p.SU:F16:64"
foreign torchao "$p._weight_scale:F32:32,1" "$p._weight_qdata:I8:32,64"
foreign quanto "$p.weight._scale:F32:32,1" "$p.weight._data:I8:32,64"
foreign eetq "$p.weight_scales:F16:32" "$p.weight:I8:32,64"
foreign gemma "$p.weight_scale:F32:32,1" "$p.weight:U8:32,32"

# lies REASON SPEC...: a layout that is decoded, with shapes that do not match.
lies()
{
    local reason=$1 file=$tmp/foreign.safetensors
    shift
    tensors "$file" "$@"
    refused 3 "$reason" info "$file"
    refused 3 "$reason" convert "$file" -o "$out"
    absent "$out"
}
lies "(300,301) has scales '$p.weight_scale_inv' F32 (7,9): they do not fit" \
    "$p.weight:F8_E4M3:300,301" "$p.weight_scale_inv:F32:7,9"
lies "they do not fit" "$p.weight:F8_E4M3:32,64" "$p.weight_scale:F32:31"
lies "they do not fit" "$p.weight:F8_E4M3:32,64" "$p.weight_scale:F32:32,2,2"
lies "they do not fit" "$p.weight:F8_E4M3:32,64" "$p.scale:F32:33,1"
lies "(32,3): not one for each 32 elements of a row" \
    "$p.weight_packed:U8:32,32" "$p.weight_scale:U8:32,3"
lies "not one for each 32" "$p.weight:I8:32,31" "$p.scale:F8_E8M0:32,2"
lies "not one for each 32" "a_blocks:U8:2,32,2,15" "a_scales:U8:2,32,2"
lies "not one for each 32" "a_blocks:U8:2,32,2,16" "a_scales:U8:2,31,2"
lies "not one for each 16 elements of a row" "$p.weight_packed:U8:32,32" \
    "$p.weight_scale:F8_E4M3:32,2" "$p.weight_global_scale:F32:1"
lies "needs fp8_e4m3 scale of (32,1) elements, but '$p.weight_scale_2' is F32 (5)" \
    "$p.weight:U8:32,32" "$p.weight_scale:F8_E4M3:32,4" "$p.weight_scale_2:F32:5"
lies "has another rank" "$p.weight:U8:32,32" "$p.weight_scale:F8_E4M3:32,4" \
    "$p.weight_scale_2:F32:32,4,2"
lies "not one for each 32" "$p.weight:U32:4,32,8" "$p.scales:U8:4,31,2"
mkdir "$tmp/grid"
echo '{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}' \
    >"$tmp/grid/config.json"
tensors "$tmp/grid/model.safetensors" "$p.weight:F8_E4M3:300,300" \
    "$p.weight_scale_inv:F32:2,2"
refused 3 "they do not fit" info "$tmp/grid"
tensors "$tmp/grid/model.safetensors" "$p.weight:F8_E4M3:300,300" \
    "$p.weight_scale_inv:F32:3,4" # padded
run 0 info "$tmp/grid"
has "fp8_e4m3"
# 8-bit floats without scales; not if their scales may have another name.
reads_plain() # SPEC...
{
    tensors "$tmp/plain.safetensors" "$@"
    run 0 dequantize "$tmp/plain.safetensors" -o "$out" -q --no-sync
    rm "$out"
}
reads_plain "$p.weight:F8_E4M3:32,64" "$p.input_scale:F32:1" "q.e:F8_E8M0:4" \
    "r.weight:F8_E5M2:3,5,7"
tensors "$tmp/plain.safetensors" "$p.weight:F8_E4M3:32,64" "$p.other_scale:F32:1"
refused 3 "has type F8_E4M3, which is not supported" \
    dequantize "$tmp/plain.safetensors" -o "$out"

# Scales of 16 bits stay so.
tensors "$tmp/bf16.safetensors" "$p.weight:F8_E4M3:32,64" "$p.weight_scale_inv:BF16:1,1"
run 0 convert "$tmp/bf16.safetensors" -o "$out" -q --no-sync --to fp8
run 0 diff "$tmp/bf16.safetensors" "$out" --quiet
rm "$out"

# Headers are copied as well, even unusual ones: here with small types first,
# different orders in file and header, metadata at the end, line breaks, an escape,
# and a length that is not a multiple of 8.
reads fp8 "$p.weight:F8_E4M3:32,64" "$p.weight_scale_inv:F32:1,1"
header='{"w\u005fscale_inv":{"data_offsets":[2,6],"shape":[1,1],"dtype":"F32"},
  "w":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[0,2]},
  "__metadata__":{"b":"2","a":"1"} }   '
safetensors "$tmp/spaced" "$header" '\1\2\0\0\200\77'
for how in "" "--verify -j 1" "--resume"; do
    # shellcheck disable=SC2086 # words, meant to split
    run 0 convert "$tmp/spaced" -o "$out" -q --no-sync $how
    cmp -s "$tmp/spaced" "$out" || die "convert $how: different bytes"
    rm "$out"
done
run 0 convert "$tmp/spaced" -o "$out" -q --dry-run
"$program" convert "$tmp/spaced" -o "$out" --force --no-sync 2>"$tmp/out" ||
    die "convert of a foreign checkpoint"
has "copied $tmp/spaced to $out unchanged: "
# The tensors hold packed words: the number of weights is unknown.
"$program" convert "$tmp/spaced" -o "$out" --force --no-sync -vv --json \
    --report "$tmp/r.md" --report "$tmp/r.html" >"$tmp/out" 2>"$tmp/err" ||
    die "convert --json"
has '"parameters": null, "source_bytes": 6, "output_bytes": 6, "bits_per_weight": null'
has '"kept": [{"reason": "copied unchanged", "arrays": 2, "parameters": null, "source_bytes": 6, "output_bytes": 6, "bits_per_weight": null'
for made in err r.md r.html; do
    if grep -qiE '[^a-z]nan|bits per weight[^:]' "$tmp/$made"; then
        die "$(cat "$tmp/$made")"
    fi
done
cp "$tmp/r.md" "$tmp/out"
has "\`: 6 B to 6 B."
has "| copied unchanged | 2 |  | 6 B | 6 B |  | | | |"
rm "$out"

# Names that do not indicate a method without codes.
ordinary()
{
    tensors "$tmp/plain.safetensors" "$@"
    run 0 info --json "$tmp/plain.safetensors"
    has '"quantization": null'
    run 0 convert "$tmp/plain.safetensors" -o "$out" -q --no-sync --dtype f32
    run 0 quantize "$tmp/plain.safetensors" -o "$out" -q --no-sync --type q8_0 --force
    rm "$out"
}
ordinary "$p.scales:F16:32" "$p.weight:F16:32,64"
ordinary "$p.biases:F16:32,1" "$p.scales:F16:32,1" "$p.weight:F16:32,64"
ordinary "attn.W_q:F16:64,64" "attn.scale:F16:1"
ordinary "rows.weight:U32:32,8" "other.scales:F16:32,1"
ordinary "vq.codes:I64:4,4" "vq.codebooks:F32:4,16"
ordinary "$p.weight:F16:32,64" "$p.weight_scale:F16:1"
ordinary "$p.qweight:F16:32,64" "$p.scales:F16:1,64"

# ---- directories -------------------------------------------------------------

# model NAME CONFIG FILE SPEC...: a directory with CONFIG in FILE.
model()
{
    local dir=$tmp/$1 text=$2 file=$3
    shift 3
    rm -rf "$dir" "$tmp/copy"
    mkdir "$dir"
    echo '{"model_type": "llama", "dtype": "float16"}' >"$dir/config.json"
    echo "$text" >"$dir/$file"
    echo '{"a": 1}' >"$dir/tokenizer.json"
    tensors "$dir/model.safetensors" "$@"
}

# says METHOD FILE: FILE of $tmp/model names METHOD and is not lost.
says()
{
    local named="quantized with $1 (according to $2), which cannot be decoded"
    run 0 info "$tmp/model"
    has "$named"
    refused 3 "$named" quantize "$tmp/model" -o "$tmp/copy" --type q8_0
    refused 3 "$named" quantize "$tmp/model/" -o "$tmp/copy" --target-bpw 5
    refused 3 "$named" dequantize "$tmp/model" -o "$tmp/copy"
    refused 3 "$named" convert "$tmp/model" -o "$tmp/copy.safetensors"
    refused 3 "$named" convert "$tmp/model" -o "$tmp/copy.gguf"
    refused 3 "$named" convert "$tmp/model/model.safetensors" -o "$tmp/copy/"
    refused 3 "$named" convert "$tmp/model" -o "$tmp/copy" --dtype f32
    absent "$tmp/copy" "$tmp/copy.safetensors"
    run 0 convert "$tmp/model" -o "$tmp/copy" -q --no-sync
    diff -r "$tmp/model" "$tmp/copy" >"$tmp/diff" || die "$(cat "$tmp/diff")"
}

# reads_model METHOD FILE: $tmp/model is decoded.
reads_model()
{
    run 0 info --json "$tmp/model"
    has "\"quantization\": {\"method\": \"$1\", \"decoded\": true, \"source\": \"$2\""
    refused 3 "is already quantized" quantize "$tmp/model" -o "$tmp/copy" --type q8_0
    run 0 convert "$tmp/model" -o "$tmp/copy" -q --no-sync
    diff -r "$tmp/model" "$tmp/copy" >"$tmp/diff" || die "$(cat "$tmp/diff")"
    run 0 dequantize "$tmp/model" -o "$tmp/copy" -q --no-sync --force
    run 0 info --json "$tmp/copy"
    has '"quantization": null'
    run 0 diff "$tmp/model" "$tmp/copy" --quiet
    rm -r "$tmp/copy"
}

floats=("$p.weight:F16:32,64")
for method in gptq awq aqlm vptq quanto eetq higgs hqq compressed-tensors \
    fbgemm_fp8 torchao spqr fp8 quark fp_quant auto-round mxfp4 nvfp4 mxfp8 \
    metal fouroversix sinq gemma modelopt exl3 bitnet bitsandbytes of-tomorrow; do
    model model '{"quantization_config": {"bits": 4, "quant_method": "'$method'"}}' \
        config.json "${floats[@]}"
    says $method config.json
done
model model '{"text_config": {"quantization_config": {"quant_method": "fp8"}}}' \
    config.json "${deepseek[@]}"
reads_model fp8 config.json
model model '{"compression_config": {"quant_method": "compressed-tensors"}}' \
    config.json "${floats[@]}"
says compressed-tensors config.json
model model '{"quantization_config": {"load_in_8bit": true}}' config.json "${floats[@]}"
says bitsandbytes config.json
model model '{"quantization": {"group_size": 64, "bits": 4}}' config.json "${mlx[@]}"
reads_model mlx config.json
model model '{"quantization_config": {"secret": 1}}' config.json "${floats[@]}"
says unknown config.json
model model '{"bits": 4, "group_size": 64, "desc_act": false}' \
    quantize_config.json "${gptq[@]:1}"
reads_model gptq quantize_config.json
model model '{"w_bit": 4, "q_group_size": 64, "version": "GEMM"}' \
    quant_config.json "${awq[@]}"
reads_model awq quant_config.json
model model '{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}' \
    hf_quant_config.json "$p.weight_scale:F32:1" "$p.weight:F8_E4M3:32,64"
reads_model modelopt hf_quant_config.json
# If tensors and configuration differ, the configuration names the method.
model model '{"quantization_config": {"quant_method": "auto-round"}}' \
    config.json "${gptq[@]:1}"
reads_model auto-round config.json
# Configurations that are empty, or not about weights.
for text in '{"quantization_config": {}}' '{"quantization_config": null}' \
    '{"quantization": {"codebooks": 8}}'; do
    model model "$text" config.json "${floats[@]}"
    run 0 quantize "$tmp/model" -o "$tmp/copy" -q --no-sync --type nf4
done
model model '{"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}}' \
    hf_quant_config.json "${floats[@]}"
run 0 quantize "$tmp/model" -o "$tmp/copy" -q --no-sync --type nf4
# A float adapter next to a quantized model is not part of it.
model model '{"quantization_config": {"quant_method": "gptq"}}' config.json "${gptq[@]}"
tensors "$tmp/model/adapter.safetensors" "${floats[@]}"
run 0 quantize "$tmp/model/adapter.safetensors" -o "$out" -q --no-sync --type nf4
rm "$out"
# All shards are checked.
mv "$tmp/model/model.safetensors" "$tmp/model/model-00002-of-00002.safetensors"
tensors "$tmp/model/model-00001-of-00002.safetensors" "lm_head.weight:F16:32,64"
echo '{}' >"$tmp/model/config.json"
{
    echo '{"metadata": {"total_size": 5632}, "weight_map": {'
    for k in g_idx qweight qzeros scales; do
        echo "\"$p.$k\": \"model-00002-of-00002.safetensors\","
    done
    echo '"lm_head.weight": "model-00001-of-00002.safetensors"}}'
} >"$tmp/model/model.safetensors.index.json"
refused 3 "'$p.weight' is already quantized (int4)" \
    quantize "$tmp/model" -o "$tmp/made" --type nf4
run 0 convert "$tmp/model" -o "$tmp/made" -q --no-sync
for k in 1 2; do
    cmp -s "$tmp/model/model-0000$k-of-00002.safetensors" \
        "$tmp/made/model-0000$k-of-00002.safetensors" || die "shard $k: different bytes"
done
# An interrupted run that is continued.
run 0 convert "$tmp/model" -o "$tmp/made" -q --no-sync --force --resume
# Names of files and the index are kept: DeepSeek's have six digits, and there are
# indexes of one file.
rm "$tmp/model/adapter.safetensors" # not part of the model
cd "$tmp/model"
mv model-00001-of-00002.safetensors model-00001-of-000002.safetensors
mv model-00002-of-00002.safetensors quantized.safetensors
sed -i 's/00001-of-00002/00001-of-000002/; s/model-00002-of-00002/quantized/' \
    model.safetensors.index.json
cd "$OLDPWD"
same_model() # OPTION...: converting $tmp/model copies every file
{
    rm -rf "$tmp/made"
    run 0 convert "$tmp/model" -o "$tmp/made" -q --no-sync "$@"
    diff -r "$tmp/model" "$tmp/made" >"$tmp/diff" || die "$(cat "$tmp/diff")"
}
same_model
same_model --verify
rm "$tmp/model/model-00001-of-000002.safetensors"
sed -i '/lm_head/d; s/\("[^"]*scales".*\),$/\1}}/' "$tmp/model/model.safetensors.index.json"
same_model

# ---- what contradicts itself -------------------------------------------------

# contradicts SAY SPEC...: tensors that do not fit together are refused, with the numbers.
contradicts()
{
    local say=$1
    shift
    tensors "$tmp/lie.safetensors" "$@"
    refused 3 "$say" info "$tmp/lie.safetensors"
    refused 3 "$say" dequantize "$tmp/lie.safetensors" -o "$out"
    absent "$out"
}
q=$p.weight_packed
contradicts "'$p.qzeros' is I32 (2,4)" "$p.qweight:I32:8,32" "$p.qzeros:I32:2,4" "$p.scales:F16:1,32"
contradicts "'$p.g_idx' is I32 (63)" "$p.g_idx:I32:63" "${gptq[@]:1}"
contradicts "'$p.g_idx' is F32 (64)" "$p.g_idx:F32:64" "${gptq[@]:1}"
contradicts "'$p.qzeros' is I32 (1,3)" "$p.qweight:I32:64,4" "$p.qzeros:I32:1,3" "$p.scales:F16:1,32"
contradicts "'$p.biases' is BF16 (32,2)" "$p.weight:U32:32,8" "$p.biases:BF16:32,2" "$p.scales:BF16:32,1"
contradicts "'$p.biases' is F16 (32,1)" "$p.weight:U32:32,8" "$p.biases:F16:32,1" "$p.scales:BF16:32,1"
contradicts "has 7 words and 1 groups per row" "$p.weight:U32:32,7" "$p.biases:BF16:32,1" "$p.scales:BF16:32,1"
contradicts "'$p.weight_shape' is (" "$p.weight_shape:I64:2" "$q:I32:32,8" "$p.weight_scale:BF16:32,1"
contradicts "'$p.weight_shape' is not an I64 of 2" "$p.weight_shape:I64:3" "$q:I32:32,8" "$p.weight_scale:BF16:32,1"
contradicts "'$p.weight_scale' is BF16 (31,1)" "$p.weight_scale:BF16:31,1" "$p.weight:I8:32,64"
contradicts "'$p.weight_zero_point' is I8 (32,2)" "$p.weight_scale:BF16:32,1" "$p.weight:I8:32,64" \
    "$p.weight_zero_point:I8:32,2"
# Groups of columns are checked when they are read.
tensors "$tmp/lie.safetensors" "${gptq[@]}"
refused 3 "is of group" dequantize "$tmp/lie.safetensors" -o "$out"
run 3 check "$tmp/lie.safetensors"
has "is of group"
absent "$out"

# ---- integer weights ---------------------------------------------------------

# As other programs made them: everything works but quantizing again. Values are
# compared in test_io_affine.
for dir in tests/golden/affine/*; do
    rm -rf "$tmp/made" "$tmp/wide"
    run 0 info "$dir"
    run 0 check -q "$dir" # without the warning of zero points beyond the codes
    run 0 stats "$dir"
    run 0 dequantize "$dir" -o "$tmp/wide" -q --no-sync
    run 0 diff "$dir" "$tmp/wide" --quiet
    ! grep -q quant "$tmp/wide/config.json" || die "$dir: $(cat "$tmp/wide/config.json")"
    run 0 convert "$dir" -o "$tmp/made" -q --no-sync --layout native
    run 0 diff "$dir" "$tmp/made" --quiet
done

finish
