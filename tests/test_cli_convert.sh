#!/usr/bin/env bash
# test_cli_convert.sh PROGRAM - dequantize and convert: between formats, layouts
# and containers, and back. Run it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
layouts=tests/golden/layouts

does() # ARGUMENT...: must print nothing to stdout; $tmp/out is its stderr
{
    checks=$((checks + 1))
    "$program" "$@" >"$tmp/data" 2>"$tmp/out" || die "'$*': failed"
    [ ! -s "$tmp/data" ] || die "'$*': prints something"
}

same() # A B: all arrays have equal values
{
    checks=$((checks + 1))
    "$program" diff "$1" "$2" >"$tmp/out" 2>"$tmp/err" || die "$1 and $2 differ"
}

# ---- dequantize --------------------------------------------------------------

out=$tmp/out.safetensors
run 0 dequantize --help
has "usage: lowbit dequantize SRC [OPTION].."
src=$layouts/bnb4.safetensors
refused 2 "dequantize takes one argument, SRC (got 0)" dequantize
refused 2 "dequantize needs an output path (-o)" dequantize "$src"
refused 2 "already exists" dequantize "$src" -o "$tmp"
run 0 dequantize "$src" -o "$tmp/decoded/" -q # a directory
[ -e "$tmp/decoded/model.safetensors" ] || die "no directory"
refused 2 "--dtype takes f32, f16, bf16 or f64, not 'i8'" dequantize "$src" \
    -o "$out" --dtype i8
refused 2 "--to takes safetensors, gguf, npy or npz, not 'zip'" \
    dequantize "$src" -o "$out" --to zip
refused 2 "--jobs takes" dequantize "$src" -o "$out" -j 0
refused 2 "--report needs a name that ends in" dequantize "$src" -o "$out" --report x
refused 1 "cannot open" dequantize no/such -o "$out"
# Nothing to dequantize is a warning, also in JSON.
for how in "" --dry-run "--dtype f16"; do
    # shellcheck disable=SC2086 # words, meant to split
    "$program" dequantize tests/golden/layouts/bnb4.values -o "$out" --force \
        --no-sync --json $how >"$tmp/out" 2>"$tmp/err" || die "nothing to dequantize"
    has '"warnings": ["tests/golden/layouts/bnb4.values has no quantized arrays"]'
    grep -q "^lowbit: warning: tests/golden/layouts/bnb4.values has no quantized arrays" \
        "$tmp/err" || die "no warning"
done
run 0 dequantize tests/golden/layouts/bnb4.values -o "$out" --force --no-sync -q
"$program" dequantize tests/golden/layouts/bnb4.safetensors -o "$out" --force \
    --no-sync --json >"$tmp/out" 2>"$tmp/err" || die "dequantize"
has '"warnings": []'
rm "$out"
refused 3 "unknown file format" dequantize Makefile -o "$out"
refused 3 "which is not supported" dequantize "$golden/fields.npy" -o "$out"
refused 3 "npz files have no type for bf16; convert it to f32 or f16" dequantize "$src" -o "$tmp/x.npz" -q
[ ! -e "$out" ] || die "something was written"

does dequantize "$src" -o "$out" --no-sync -v
has "3/7 nested.weight (70,300) nf4 (bf16) -> bf16, 12.1 kB -> 42.0 kB"
has "1/7 norm.weight (7) kept bf16 (dense)"
has "5 arrays dequantized, 2 left unchanged"
has "size: 14.7 kB -> 47.4 kB (3.2 times larger)"
# The values equal those that bitsandbytes decodes.
same "$layouts/bnb4.values" "$out"
refused 2 "already exists (use --force to overwrite)" dequantize "$src" -o "$out"
does dequantize "$src" -o "$tmp/j1" -q -j 1
[ ! -s "$tmp/out" ] || die "-q prints something"
cmp -s "$tmp/j1" "$out" || die "different bytes on one thread"
for what in bnb8 eformer native fp4; do
    does dequantize $layouts/$what.safetensors -o "$out" --force -q
    same $layouts/$what.values "$out"
done
does dequantize "$src" -o "$tmp/x.npz" -q --dtype f32
run 0 info "$tmp/x.npz"
has ": npz"
has "total: 7 arrays"
has "norm.weight    f32"
# ... which are then not rounded to bf16.
run 0 diff "$layouts/bnb4.values" "$tmp/x.npz" --tolerance 0.002
does dequantize $layouts/fp4.safetensors -o "$tmp/x.dat" -q --to gguf \
    --container-only --report "$tmp/r.json"
run 0 info "$tmp/x.dat"
has ": gguf"
has "total: 1 array"
cp "$tmp/r.json" "$tmp/out"
has '"verb": "dequantize"'

# ---- convert -----------------------------------------------------------------

run 0 convert --help
has "usage: lowbit convert SRC [OPTION].."
refused 2 "convert needs an output path (-o)" convert "$src"
refused 2 "--layout takes native, bnb, bitnet or eformer, not 'x'" convert \
    "$src" -o "$out" --layout x
refused 2 "--dtype takes f32, f16, bf16 or f64" convert "$src" -o "$out" --dtype x
does convert "$src" -o "$tmp/native" -v
has "3/7 nested.weight (70,300) nf4 (bf16) -> nf4, 12.1 kB -> 11.9 kB"
has "5 arrays converted (nf4), 2 left unchanged"
same "$src" "$tmp/native"
run 0 info "$tmp/native"
has "native, 6 tensors"
does convert "$tmp/native" -o "$tmp/bnb" --layout bnb -q
run 0 info "$tmp/bnb"
has "nested.weight  nf4 (bf16)  (70,300)   12.1 kB  bnb, 6 tensors"
same "$src" "$tmp/bnb"
same "$tmp/bnb" "$layouts/bnb4.values"
refused 3 "layout bitnet cannot store 'nested.weight', which is nf4" convert \
    "$src" -o "$tmp/x" --layout bitnet -q
[ ! -e "$tmp/x" ] || die "something was written"

# Every format, through every container that can store it.
values=$layouts/bnb4.values
for type in int8 nf4 ternary binary dynamic8; do
    does quantize "$values" -o "$tmp/q" --type $type --force -q --no-sync
    does convert "$tmp/q" -o "$tmp/c" --force -q --no-sync
    same "$tmp/q" "$tmp/c"
    cmp -s "$tmp/q" "$tmp/c" || die "$type: different bytes"
done
for type in q8_0 q4_0 iq4_nl tq1_0 tq2_0; do
    does quantize "$values" -o "$tmp/q" --type $type --force -q --no-sync
    does dequantize "$tmp/q" -o "$tmp/c" --force -q --no-sync
    same "$tmp/q" "$tmp/c"
done
# GGUF to safetensors and back, with its values.
does convert "$golden/values.gguf" -o "$tmp/v.gguf" -q
same "$golden/values.gguf" "$tmp/v.gguf"
run 0 info --metadata "$tmp/v.gguf"
has 'x.i16 = -30000'
does convert "$golden/values.gguf" -o "$tmp/v.safetensors" -q --dtype bf16
run 0 info --metadata "$tmp/v.safetensors"
has 'x.text = "héllo"'
# Flags shared by the verbs that write files.
for verb in dequantize convert; do
    does $verb "$src" -o "$tmp/plain" --force -q
    does $verb "$src" -o "$tmp/flags" --force --resume --verify --verbose \
        --max-memory 1M --jobs 1 --report "$tmp/flags.json"
    has "verified: 7 arrays"
    has "3/7 nested.weight"
    has "report: $tmp/flags.json"
    cmp -s "$tmp/plain" "$tmp/flags" || die "$verb: different bytes with flags"
    does $verb "$src" -o "$tmp/flags" --force --verify --quiet
    [ ! -s "$tmp/out" ] || die "$verb: --quiet prints something"
    does $verb "$golden/values.gguf" -o "$tmp/kind" --force --to gguf --no-sync
    run 0 info "$tmp/kind"
    has ": gguf"
    cp "$tmp/flags.json" "$tmp/out"
    has "\"verb\": \"$verb\""
done
# An existing empty directory is used.
mkdir "$tmp/void"
does dequantize "$src" -o "$tmp/void" -q
[ -e "$tmp/void/model.safetensors" ] || die "no model in the directory"
# Input and output cannot be the same file.
cp "$values" "$tmp/self"
run 2 convert "$tmp/self" -o "$tmp/self" --force -q
cmp -s "$values" "$tmp/self" || die "the source is gone"

finish
