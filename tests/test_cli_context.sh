#!/usr/bin/env bash
# test_cli_context.sh PROGRAM - info --context: the cache of keys and values, what
# fits, and the bound on speed. Expected values are computed here, by hand. Run it in
# the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
export LC_ALL=C

# NAME SHAPE BYTES ...: a safetensors file of bf16 zeros
model()
{
    local header='' at=0
    while [ $# -gt 0 ]; do
        header+=",\"$1\":{\"dtype\":\"BF16\",\"shape\":$2,"
        header+="\"data_offsets\":[$at,$((at + $3))]}"
        at=$((at + $3))
        shift 3
    done
    header="{${header#,}}"
    while [ $((${#header} % 8)) != 0 ]; do header+=' '; done
    printf '%b' "$(printf '\\x%02x\\x%02x\\0\\0\\0\\0\\0\\0' $((${#header} % 256)) \
        $((${#header} / 256)))$header" >"$tmp/model.safetensors"
    truncate -s $((8 + ${#header} + at)) "$tmp/model.safetensors"
}

shows() # LINE...: the last lines of info
{
    printf '%s\n' "$@" >"$tmp/want"
    tail -n $# "$tmp/out" | diff "$tmp/want" - || die "info: other text"
}

# Two layers, 64 + 64 values each: 2 * 128 * 2 bytes. Of the embedding only a row is
# read: 3 * 64 * 64 * 2 bytes of weights and 2 * 128 * 64 * 2 of projections are.
two=()
for i in 0 1; do
    two+=("model.layers.$i.self_attn.k_proj.weight" '[64,64]' 8192)
    two+=("model.layers.$i.self_attn.v_proj.weight" '[64,64]' 8192)
done
model model.embed_tokens.weight '[1000,64]' 128000 "${two[@]}" \
    lm_head.weight '[1000,64]' 128000
run 0 info --context 1000 --memory 1M --bandwidth 10 "$tmp/model.safetensors"
shows 'context of 1000 tokens: cache of 512.0 kB in f16 (2 layers, 512 B per token)' \
    'memory: 800.8 kB with the weights, of 1.0 MB: fits, up to 1.4 K tokens' \
    'speed: at most 1.49e+04 tokens/s at 10 GB/s, because each token reads 160.8 kB of weights and the cache'
run 0 info --context 2000 --memory 1M "$tmp/model.safetensors"
has 'of 1.0 MB: does not fit, up to 1.4 K tokens'
run 0 info --context 1 --memory 100k "$tmp/model.safetensors"
has 'the weights do not fit'
run 0 info --context 1000 --memory 1M --bandwidth 10 --json "$tmp/model.safetensors"
has '"context": {"tokens": 1000, "layers": 2, "cache_bytes_per_token": 512, "cache_bytes": 512000, "read_bytes_per_token": 160768, "experts_read": 1, "memory": 1000000, "tokens_that_fit": 1389, "bandwidth": 10000000000,'

# Without an output head the embedding is one; queries, keys and values in one array:
# (96 - 64) values; images have no cache; experts are all read.
model model.embed_tokens.weight '[10,64]' 1280 \
    model.layers.0.self_attn.qkv_proj.weight '[96,64]' 12288 \
    model.layers.0.self_attn.o_proj.weight '[64,64]' 8192 \
    model.layers.0.mlp.experts.0.up_proj.weight '[8,64]' 1024 \
    vision_tower.layers.0.self_attn.k_proj.weight '[64,64]' 8192
run 0 info --context 1 "$tmp/model.safetensors"
has 'cache of 64 B in f16 (1 layer, 64 B per token)'
has 'each token reads 31.0 kB of weights (all experts) and the cache'

model w.weight '[8,8]' 128
run 0 info --context 1 "$tmp/model.safetensors"
has 'context: no key and value projections of a known architecture'
run 0 info --json --context 1 "$tmp/model.safetensors"
has '"context": null'
run 0 info --json "$tmp/model.safetensors"
has '"context": null'
refused 2 "--context takes 1 to 1099511627776, not '0'" info --context 0 x
finish
