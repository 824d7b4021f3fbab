#!/usr/bin/env bash
# test_cli.sh PROGRAM - tests the command itself, info and quantize; the other
# verbs have files of their own.
#
# Every verb and option, exact output unless it is long, every exit status.
# Results go to stdout, progress and diagnostics to stderr. Run it in the project's
# root.
# ctest: tsan
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash

# ---- the command -------------------------------------------------------------

run 2
grep -q '^usage: lowbit VERB' "$tmp/err" || die "no usage"
run 0 --help
has "usage: lowbit VERB"
has "  info "
run 0 --version
cp "$tmp/out" "$tmp/version"
run 0 -V
cmp -s "$tmp/version" "$tmp/out" || die "-V is another version"
version=$(sed -n 's/.*LB_VERSION_STRING "\(.*\)"/\1/p' include/lowbit.h)
has "lowbit $version"
run 0 help
has "usage: lowbit VERB"
run 0 help quantize
has "usage: lowbit quantize SRC"
refused 2 "unknown verb 'inof'" help inof
refused 2 "unknown verb 'inof'; did you mean info?" inof
refused 2 "unknown verb 'quant'; did you mean quantize?" quant
refused 2 "unknown verb 'DEQ'; did you mean dequantize?" DEQ
refused 2 "unknown verb 'co' (see lowbit --help)" co
refused 2 "unknown verb 'frobnicate' (see lowbit --help)" frobnicate
"$program" info "$golden/types.gguf" >/dev/full 2>"$tmp/err" &&
    die "a full disk is a success"
grep -q 'cannot write to stdout' "$tmp/err" || die "a full disk is not named"

for verb in $("$program" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    run 0 "$verb" --help
    has "usage: lowbit $verb "
    has "  -h, --help"
    [ "$(wc -L <"$tmp/out")" -lt 80 ] || die "$verb --help: wider than 79 columns"
done

# ---- info --------------------------------------------------------------------

run 0 info --help
has "usage: lowbit info FILE [OPTION]..."
refused 2 "info takes one argument, FILE (got 0)" info
refused 2 "info takes one argument, FILE (got 2)" info a b
refused 2 "quantize takes one argument, SRC (got 2); use -o for the output" quantize a b
refused 2 "cpu takes no arguments (got 1)" cpu a
refused 2 "stats takes FILE [ARRAY] (got 3 arguments)" stats a b c
refused 2 "unknown option '--no-such' (see lowbit info --help)" info --no-such
refused 2 "unknown option '--jsno'; did you mean --json?" info --jsno a
refused 2 "unknown option '--ouput'; did you mean --output?" quantize --ouput=x
refused 2 "option '--ta' is ambiguous: --target-bpw, --target-size" quantize --ta 4
refused 2 "option --json takes no value" info --json=yes a
refused 2 "unknown option '-Z'" info -Z a
refused 2 "unknown option '-Z'" quantize -qZ a
refused 2 "info has no option '--quiet' (see lowbit info --help)" info --quiet a
refused 1 "no/such: cannot open: No such file" info no/such
refused 3 "a directory without model.safetensors" info "$tmp"
refused 3 "unknown file format" info Makefile
head -c 20 "$golden/types.safetensors" >"$tmp/cut"
refused 3 "in a file of 20" info "$tmp/cut"

prints info "$golden/shapes.safetensors" <<END
$golden/shapes.safetensors: safetensors
name    type  shape                      size
a-b     f16   (2,3)                      12 B
a.b     f16   (2,3)                      12 B
deep    u8    (1,1,1,1,1,1,1,1,1,2)       2 B
none    bf16  (0,5)                       0 B
one     i8    (1)                         1 B
scalar  f32   ()                          4 B
total: 6 arrays, 16 parameters, 31 B, 15.5 bits per weight
END
prints info -- "$golden/fields.npy" <<END
$golden/fields.npy: npy
name    type                                         shape      size
fields  [('a', '<i4'), ('b', '>f... (not supported)  (2)        42 B
total: 1 array, 2 parameters, 42 B, 168 bits per weight
END
bnb=tests/golden/layouts/bnb8.safetensors
prints info "$bnb" <<END
$bnb: safetensors
name        type        shape       size
a.bias      f16         (7)         14 B
a.weight    int8 (f32)  (7,33)     260 B  bnb, 3 tensors
b.c.weight  int8 (f32)  (2,5)       19 B  bnb, 3 tensors
total: 3 arrays, 248 parameters, 293 B, 9.45 bits per weight
END
prints info --raw "$bnb" <<END
$bnb: safetensors
name               type  shape       size
a.SCB              f32   (7)         28 B
a.bias             f16   (7)         14 B
a.weight           i8    (7,33)     231 B
a.weight_format    u8    ()           1 B
b.c.SCB            f32   (2)          8 B
b.c.weight         i8    (2,5)       10 B
b.c.weight_format  u8    ()           1 B
total: 7 arrays, 259 parameters, 293 B, 9.05 bits per weight
END
prints info --metadata "$golden/sharded" <<END
$golden/sharded: safetensors_index
format = "pt"
name        type  shape      size
layer.0.b   f32   (3)        12 B
layer.0.wé  f16   (2,2)       8 B
layer.1.b   f32   (3)        12 B
layer.1.wé  f16   (2,3)      12 B
total: 4 arrays, 16 parameters, 44 B, 22 bits per weight
END
prints info "$golden/scalar.npy" <<END
$golden/scalar.npy: npy
name    type  shape      size
scalar  f32   ()          4 B
total: 1 array, 1 parameter, 4 B, 32 bits per weight
END
# Layers in the order of their numbers; sizes and counts in decimal units.
header=''
for i in 10 9 2 010; do
    header+=",\"layers.$i.w\":{\"dtype\":\"U8\",\"shape\":[1500],\"data_offsets\":"
    header+="[$((size = ${size:-0})),$((size += 1500))]}"
done
safetensors "$tmp/layers" "{${header:1}}" ''
head -c 6000 /dev/zero >>"$tmp/layers"
prints info "$tmp/layers" <<END
$tmp/layers: safetensors
name          type  shape       size
layers.2.w    u8    (1500)    1.5 kB
layers.9.w    u8    (1500)    1.5 kB
layers.010.w  u8    (1500)    1.5 kB
layers.10.w   u8    (1500)    1.5 kB
total: 4 arrays, 6.0 K parameters, 6.0 kB, 8 bits per weight
END
# Files left by an interrupted run.
cp "$tmp/layers" "$tmp/x.partial"
"$program" info "$tmp/x.partial" >"$tmp/out" 2>"$tmp/err" || die "info of a partial file"
grep -q "x.partial (6.[0-9] kB) is the incomplete output of an interrupted run; repeat the command with --resume" \
    "$tmp/err" || die "a partial file is not marked"
run 1 info "$tmp/x"
grep -q "x.partial (6.[0-9] kB) exists: the incomplete output" "$tmp/err" ||
    die "the partial file is not mentioned"
rm "$tmp/x.partial" "$tmp/layers"
prints info --json "$golden/scalar.npy" <<END
{"lowbit": "$version", "schema": 1, "verb": "info", "path": "$golden/scalar.npy", "kind": "npy", "parameters": 1, "bytes": 4, "partial": false, "quantization": null, "context": null, "metadata": {}, "arrays": [
{"name": "scalar", "type": "<f4", "format": "dense", "dtype": "f32", "shape": [], "bytes": 4, "layout": null, "tensors": 1}], "warnings": []}
END
run 0 info "$golden/names.safetensors"
has 'tab\x09new\x0abell\x07\x1f'
run 0 info --metadata "$golden/values.gguf"
for line in 'x.u8 = 200' 'x.i8 = -3' 'x.i16 = -30000' 'x.u32 = 4000000000' \
    'x.i32 = -2000000000' 'x.f32 = 1.5' 'x.bool = true' \
    'x.u64 = 18446744073709551615' 'x.i64 = -9223372036854775808' \
    'x.f64 = -0.1' 'x.text = "héllo"' \
    'x.words = [3 values]'; do
    has "$line"
done
# -0.0, 1e-6 and the largest value as f32; infinity and NaN as f64; a short list.
# shellcheck disable=SC2059 # escapes
{
    printf 'GGUF\3\0\0\0\0\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0'
    one='\1\0\0\0\0\0\0\0'
    printf "${one}a\\6\\0\\0\\0\\0\\0\\0\\x80${one}b\\6\\0\\0\\0\\xbd\\x37\\x86\\x35"
    printf "${one}c\\6\\0\\0\\0\\xff\\xff\\x7f\\x7f"
    printf "${one}d\\x0c\\0\\0\\0\\0\\0\\0\\0\\0\\0\\xf0\\xff"
    printf "${one}e\\x0c\\0\\0\\0\\0\\0\\0\\0\\0\\0\\xf8\\x7f"
    printf "${one}f\\x09\\0\\0\\0\\0\\0\\0\\0${one}\\7"
} >"$tmp/reals.gguf"
run 0 info --metadata "$tmp/reals.gguf"
for line in 'a = -0' 'b = 1e-06' 'c = 3.4028235e+38' 'd = -inf' 'e = nan' 'f = [1 value]'; do
    has "$line"
done

# ---- quantize ----------------------------------------------------------------

src=tests/golden/layouts/bnb4.values # dense: the values that bitsandbytes decodes
dst=$tmp/out.safetensors
run 0 quantize --help
has "usage: lowbit quantize SRC [OPTION]..."
refused 2 "quantize needs an output path (-o)" quantize "$src" --type nf4
refused 2 "quantize needs --type, --target-bpw or --target-size" quantize "$src" -o "$dst"
for option in "type nf4" "block-size 32" double-quant "scale row" "axis 0" \
    "threshold absmean" "linear-class bitlinear"; do
    # shellcheck disable=SC2086 # words, split on purpose
    refused 2 "--target-size chooses types and their settings; it cannot be combined with --${option% *} (" \
        quantize "$src" -o "$dst" --target-size 20k --$option
done
refused 2 "already exists (use --force to overwrite)" quantize "$src" -o "$tmp" \
    --type nf4
refused 2 "which is not part of the model and would be lost" \
    quantize "$src" -o "$tmp" --type nf4 --force
refused 2 "the output path is empty" quantize "$src" -o "" --type nf4
refused 2 "--layout takes native, bnb, bitnet, eformer, mlx, gptq, awq, compressed-tensors or fp8, not 'gguf'" \
    quantize "$src" -o "$dst" --type nf4 --layout gguf
refused 2 "--jobs takes 1 to 256, not '0'" quantize "$src" -o "$dst" \
    --type nf4 -j 0
refused 2 "--block-size takes 1 to 2147483647, not '64x'" \
    quantize "$src" -o "$dst" --type nf4 --block-size 64x
refused 2 "option '--type' needs a value" quantize "$src" -o "$dst" --type
for type in q8_0 iq4_nl; do
    refused 2 "--double-quant does not apply to $type, which has no separate scales" \
        quantize "$src" -o "$dst" --type $type --double-quant
done
refused 2 "unknown type 'nf5'; did you mean nf4?" quantize "$src" -o "$dst" --type nf5
refused 2 "unknown type 'Q5_K_M' (see lowbit formats)" quantize "$src" -o "$dst" --type Q5_K_M
refused 2 "--layout takes native, bnb, bitnet, eformer, mlx, gptq, awq, compressed-tensors or fp8, not 'bbn'; did you mean bnb?" \
    quantize "$src" -o "$dst" --type nf4 --layout bbn
for verb in "quantize $src --type nf4" "convert $src" "dequantize $src" \
    "shard $src --mesh tp=1" "merge ${src%/*}"; do
    # shellcheck disable=SC2086 # words, split on purpose
    refused 2 "--output: cannot write to standard output" $verb -o -
done
for verb in "quantize --type nf4 -o x" "convert -o x" "dequantize -o x" "diff $src" \
    "shard --mesh tp=1 -o x" "merge -o x"; do
    # shellcheck disable=SC2086 # words, split on purpose
    refused 2 "${verb%% *} cannot read standard input; give the path of a file" $verb -
done
refused 2 "--report: cannot write to standard output" diff "$src" "$src" --report -
[ ! -e - ] || die "a file called - was written"
refused 2 "--max-memory takes at least 1000000 bytes, not '2Ki'" \
    quantize "$src" -o "$dst" --type nf4 --max-memory 2Ki
refused 3 "unknown file format" quantize Makefile -o "$dst" --type nf4
[ ! -e "$dst" ] || die "something was written"

quantize() # ARGUMENT...: must write to stderr only
{
    checks=$((checks + 1))
    "$program" quantize "$src" -o "$dst" "$@" >"$tmp/out" 2>"$tmp/err" ||
        die "quantize $*: fails"
    [ ! -s "$tmp/out" ] || die "quantize $*: prints something"
}
quantize --type nf4 --no-sync -v
cp "$tmp/err" "$tmp/out"
has "nested.weight (70,300) bf16 -> nf4, 42.0 kB -> 11.9 kB"
has "norm.weight (7) kept bf16 (1-D)"
has "plain.weight (6,100) kept bf16 (tiny)"
has "wrote $dst: 1 array quantized (nf4), 6 left unchanged"
has "size: 47.4 kB -> 17.3 kB (2.7 times smaller), 6.113 bits per weight, in "
refused 2 "already exists (use --force to overwrite)" quantize "$src" -o "$dst" \
    --type nf4
"$program" quantize "$golden/scalar.npy" -o "$tmp/scalar" --type nf4 \
    -v 2>"$tmp/out" || die "a single number fails"
has "scalar () kept f32 (scalar)"
cp "$dst" "$tmp/first"
quantize --type nf4 --force -q -j 1
[ ! -s "$tmp/err" ] || die "-q prints something"
cmp -s "$dst" "$tmp/first" || die "different bytes on one thread"
LOWBIT_ISA=ref quantize --type nf4 --force -q --max-memory 1M
cmp -s "$dst" "$tmp/first" || die "different bytes at level ref"
run 0 info "$dst"
has "nested.weight  nf4 (bf16)  (70,300)   11.9 kB  native, 2 tensors"
for type in Int8 ternary BINARY q8_0 Q4_0 iq4_nl tq1_0 tq2_0 dynamic8; do
    quantize --type $type --force -q --no-sync
    run 0 info "$dst"
    has "nested.weight  ${type,,} (bf16)"
done
quantize --type nf4 --double-quant --block-size 128 --force -q --no-sync
run 0 info "$dst"
has "native, 4 tensors"
quantize --type nf4 --layout bnb --force -q --no-sync
run 0 info "$dst"
has "bnb, 4 tensors"
quantize --type NF4 --layout BNB --scale Block --force -q --no-sync
run 0 info "$dst"
has "bnb, 4 tensors"
quantize --type ternary --layout BitNet --linear-class BitLinear --verify --force -q
quantize --type int8 --layout bnb --compat bnb-cpu --force -q --no-sync
run 0 info "$dst"
has "bnb, 3 tensors"
refused 2 "--linear-class takes autobitlinear or bitlinear, not 'x'" \
    quantize "$src" -o "$dst" --type ternary --linear-class x --force
quantize --type ternary --linear-class bitlinear --force -q --no-sync
run 0 info --metadata "$dst"
has '\"meaning\": 2'
quantize --type ternary --layout eformer --scale tensor --threshold absmean \
    --force -q --no-sync
run 0 info "$dst"
has "eformer, 2 tensors"

# ---- quantize: selection and types --------------------------------------------

q=(quantize "$src" -o "$dst" --force --no-sync)
# A pattern that matches nothing: a recipe may serve several architectures.
none="matches none of the 7 arrays (e.g. 'stack.weight')"
for how in include exclude override; do
    to=x
    [ $how != override ] || to=x=Q8_0
    "$program" "${q[@]}" --type nf4 --$how $to 2>"$tmp/out" || die "--$how: failed"
    has "lowbit: warning: --$how 'x' $none"
    refused 4 "lowbit: --$how 'x' $none" "${q[@]}" --type nf4 --$how $to --strict
done
run 0 "${q[@]}" --type nf4 --exclude x -q
"$program" "${q[@]}" --type nf4 --exclude x -q --json >"$tmp/out" || die "--json: failed"
# An empty pattern comes from a variable that is not set.
for how in "--exclude=" "--include=" "--override==nf4"; do
    name=${how%%=*}
    refused 2 "lowbit: $name " "${q[@]}" --type nf4 "$how"
    grep -q "'': the pattern is empty (. matches every name)" "$tmp/err" ||
        die "$how: $(cat "$tmp/err")"
done
refused 2 "the first argument of info is empty" info ""
# Errors name the option, or the line of the recipe.
for how in include exclude override; do
    to='a('
    [ $how != override ] || to='a(=nf4'
    refused 2 "lowbit: --$how 'a(': missing closing parenthesis" "${q[@]}" \
        --type nf4 --$how "$to"
    printf '\n%s %s\n' $how "$to" >"$tmp/recipe"
    refused 2 "lowbit: $tmp/recipe, line 2: $how 'a(': missing closing" "${q[@]}" \
        --type nf4 --recipe "$tmp/recipe"
    printf '# none\n%s x%s\n' $how "${to#a(}" >"$tmp/recipe"
    refused 4 "lowbit: $tmp/recipe, line 2: $how 'x' $none" "${q[@]}" --type nf4 \
        --recipe "$tmp/recipe" --strict
done
slow='^((.|[a-z0-9])+)+[A-Z]$' # takes exponential time
refused 2 "lowbit: --exclude '$slow': match limit exceeded" "${q[@]}" --type nf4 \
    --exclude "$slow"
refused 2 "--override 'a=nf5': unknown type 'nf5': 5-bit formats are int5 (ex" \
    "${q[@]}" --type nf4 --override 'a=nf5'
refused 2 "unknown type 'tenary': did you mean ternary (2 bits)? (expected PATTERN=TYPE" \
    "${q[@]}" --type nf4 --override 'a=Tenary'
refused 2 "cannot open" "${q[@]}" --type nf4 --recipe no/such
quantize --type nf4 --force -v --include plain --override 'nested=Int8:axis=-1' \
    --exclude '^norm'
cp "$tmp/err" "$tmp/out"
has "nested.weight (70,300) bf16 -> int8"
has "plain.weight (6,100) bf16 -> nf4"
has "norm.weight (7) kept bf16 (excluded)"
has "2 arrays quantized (int8 1, nf4 1), 5 left unchanged"
echo 'override nested=keep' >"$tmp/recipe"
quantize --type nf4 --force -v --recipe "$tmp/recipe"
cp "$tmp/err" "$tmp/out"
has "nested.weight (70,300) kept bf16 (kept by an override)"
run 0 "${q[@]}" --type nf4 --dry-run -q
rm "$dst"
"$program" quantize "$src" --type nf4 --dry-run -v 2>"$tmp/out" ||
    die "--dry-run needs an output"
has "nested.weight (70,300) bf16 -> nf4, 42.0 kB -> 11.9 kB"
has "dry run: 1 array would be quantized (nf4), 6 left unchanged"
[ ! -e "$dst" ] || die "--dry-run wrote a file"
refused 2 "--shape-fallback takes keep, error or adjust, not 'x'" "${q[@]}" \
    --type nf4 --shape-fallback x
refused 2 "GGUF cannot store int8 (see" quantize "$src" \
    -o "$tmp/out.gguf" --type int8
for kind in npy npz; do
    refused 2 "$kind cannot store quantized arrays; write a .safetensors or .gguf file" \
        quantize "$golden/float32.npy" -o "$tmp/out.$kind" --type int8
done
refused 2 "layout bitnet cannot store nf4; use --layout native, bnb or eformer" \
    quantize "$src" -o "$dst" --force --type nf4 --layout bitnet
refused 2 "layout bnb cannot store ternary; use --layout native, bitnet, eformer, mlx, gptq or compressed-tensors" \
    quantize "$src" -o "$dst" --force --type ternary --layout bnb
refused 2 "q4_0 is a GGUF type and cannot be stored in layout bnb; use --layout native" \
    quantize "$src" -o "$dst" --force --type q4_0 --layout bnb
refused 2 "layout bnb cannot store nf4 with these settings" \
    quantize "$src" -o "$dst" --force --type nf4 --layout bnb --compat eformer
into=(quantize "$golden/sharded" -o "$tmp/out.gguf" --force --include w
    --container-only)
gguf=("${into[@]}" --type q8_0)
run 0 "${gguf[@]}" -q # rows of 2 and 3 do not fill blocks of 32
"$program" "${gguf[@]}" 2>"$tmp/out" || die "kept arrays"
has "kept: row length 2 is not a multiple of 32 (1 array, 8 B)"
has "kept: row length 3 is not a multiple of 32 (1 array, 12 B)"
refused 2 ", of which 20 bytes are arrays that the output cannot store quantized" \
    "${into[@]}" --target-bpw 1
refused 4 "as requested" "${gguf[@]}" --strict
refused 3 "q8_0: row length 2 is not a multiple of 32, shape (2,2)" "${gguf[@]}" \
    --shape-fallback error
refused 2 "use either --target-bpw or --target-size, not both" "${q[@]}" --target-bpw 5 \
    --target-size 4k
refused 2 "--target-bpw and --target-size mix types" "${q[@]}" --target-bpw 5 --layout bnb
refused 2 "--target-size takes bytes, e.g. 4.2G, 500MB or 3GiB, not '4x'" "${q[@]}" \
    --target-size 4x
refused 2 "cannot reach 0.3524 bits per weight (1 kB): the minimum is " \
    "${q[@]}" --target-size 1k
grep -q ", of which 5.445 kB are arrays that are not quantized" "$tmp/err" ||
    die "no list of unchanged arrays"
refused 2 "--target-bpw takes a number from 0.1 to 64" "${q[@]}" --target-bpw 0
quantize --target-bpw 7 --force -q
run 0 info "$dst"
grep -q ' [56]\.[0-9]* bits per weight\| 7 bits per weight' "$tmp/out" ||
    die "expected about 7 bits: $(tail -1 "$tmp/out")"
quantize --target-size 19.9k --force -q
size=$(stat -c %s "$dst")
[ "$size" -le 19900 ] || die "$size bytes, more than 19.9k"
# All types are candidates: never larger and less accurate than a single type.
"$program" quantize "$src" -o "$dst" --force -q --type iq4_nl --report "$tmp/r.json"
one=$(grep -o '"nrmse": [0-9.e-]*' "$tmp/r.json" | head -1 | cut -d' ' -f2)
"$program" quantize "$src" -o "$dst" --force -q --target-bpw 8 --report "$tmp/r.json"
best=$(grep -o '"nrmse": [0-9.e-]*' "$tmp/r.json" | head -1 | cut -d' ' -f2)
awk "BEGIN { exit !($best < $one) }" || die "8 bits: $best, iq4_nl: $one"
# Also if names make up most of the file and are in each of its shards.
for prefix in w "$(printf 'w%.0s' {1..200})"; do
    header=''
    for ((i = 0; i < 20; i++)); do
        header+=",\"$prefix$i\":{\"dtype\":\"F32\",\"shape\":[32,32],"
        header+="\"data_offsets\":[$((i * 4096)),$((i * 4096 + 4096))]}"
    done
    rm -rf "$tmp/long"
    mkdir "$tmp/long"
    safetensors "$tmp/long/model.safetensors" "{${header:1}}" ''
    base64 -w0 /dev/urandom | head -c 81920 >>"$tmp/long/model.safetensors" || true
    echo '{}' >"$tmp/long/config.json"
    run 2 quantize "$tmp/long" -o "$tmp/x" --target-size 1k --force
    least=$(sed -n 's/.*minimum is [^,]*, \([0-9]*\) bytes.*/\1/p' "$tmp/err")
    run 0 quantize "$tmp/long" -o "$tmp/x" --force -q --target-size \
        $((least + 4000))
    size=$(stat -c %s "$tmp/x/model.safetensors")
    [ "$size" -le $((least + 4000)) ] || die "$size bytes, more than $least + 4000"
    [ "$size" -ge $((least - 4000)) ] || die "$size bytes, far from $least + 4000"
done
# One scale per value saves nothing: only on request.
safetensors "$tmp/thin" \
    '{"w":{"dtype":"F32","shape":[1024,1],"data_offsets":[0,4096]}}' ''
head -c 4096 /dev/zero >>"$tmp/thin"
for type in nf4 int8; do
    thin=(quantize "$tmp/thin" -o "$tmp/x.safetensors" --type "$type" --force)
    "$program" "${thin[@]}" -v 2>"$tmp/out" || die "thin: $type"
    has "1/1 w (1024,1) kept f32 (would not be smaller)"
    for asks in "--include w" "--override w=$type"; do
        # shellcheck disable=SC2086
        run 0 "${thin[@]}" -q $asks
        run 0 info "$tmp/x.safetensors"
        has "w     $type (f32)"
    done
done
quantize --type nf4 --force -q --resume # there is no partial file
cp -r "$golden/sharded" "$tmp/model"
run 0 quantize "$tmp/model" -o "$tmp/small" --type nf4 -q
[ -e "$tmp/small/model.safetensors.index.json" ] || die "no directory"

finish
