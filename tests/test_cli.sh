#!/usr/bin/env bash
# test_cli.sh PROGRAM - does `lowbit` do what it is asked for?
#
# The command itself, info and quantize; other verbs have files of their own.
# Every verb and option, exact output where it is not long, every exit status.
# Data are on stdout, talk is on stderr. To be run in the project's root.
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
refused 2 "no verb 'inof'" help inof
refused 2 "no verb 'inof'; is it lowbit info?" inof
refused 2 "no verb 'frobnicate'; see lowbit --help" frobnicate
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
has "usage: lowbit info FILE [OPTION].."
refused 2 "info takes FILE, and 0 are given" info
refused 2 "info takes FILE, and 2 are given" info a b
refused 2 "'--no-such' is no option of it; see lowbit info --help" info --no-such
refused 2 "'--jsno' is no option of it; is it --json?" info --jsno a
refused 2 "'--ouput=x' is no option of it; is it --output?" quantize --ouput=x
refused 2 "'-Z' is no option of it" info -Z a
refused 2 "'--quiet' is no option of it" info --quiet a
refused 1 "no/such: cannot open: No such file" info no/such
refused 1 "a directory without model.safetensors" info "$tmp"
refused 3 "not recognized" info Makefile
head -c 20 "$golden/types.safetensors" >"$tmp/cut"
refused 3 "in a file of 20" info "$tmp/cut"

prints info "$golden/shapes.safetensors" <<END
$golden/shapes.safetensors: safetensors, 6 arrays, 16 elements, 31 B, 15.5 bits each
scalar  f32                      4  ()
none    bf16                     0  (0,5)
a-b     f16                     12  (2,3)
a.b     f16                     12  (2,3)
one     i8                       1  (1)
deep    u8                       2  (1,1,1,1,1,1,1,1,1,2)
END
prints info -- "$golden/fields.npy" <<END
$golden/fields.npy: npy, 1 array, 2 elements, 42 B, 168 bits each
fields  ([('a', '<i4'), ('b', '>f8', (2,)..)            42  (2)
END
bnb=tests/golden/layouts/bnb8.safetensors
prints info "$bnb" <<END
$bnb: safetensors, 3 arrays, 248 elements, 293 B, 9.45 bits each
a.bias      f16                     14  (7)
a.weight    int8 f32               260  (7,33)  bnb, 3 tensors
b.c.weight  int8 f32                19  (2,5)  bnb, 3 tensors
END
prints info --raw "$bnb" <<END
$bnb: safetensors, 7 arrays, 259 elements, 293 B, 9.05 bits each
a.SCB              f32                     28  (7)
b.c.SCB            f32                      8  (2)
a.bias             f16                     14  (7)
a.weight           i8                     231  (7,33)
b.c.weight         i8                      10  (2,5)
a.weight_format    u8                       1  ()
b.c.weight_format  u8                       1  ()
END
prints info --metadata "$golden/sharded" <<END
$golden/sharded: safetensors_index, 4 arrays, 16 elements, 44 B, 22 bits each
format = "pt"
layer.0.b   f32                     12  (3)
layer.0.wé  f16                      8  (2,2)
layer.1.b   f32                     12  (3)
layer.1.wé  f16                     12  (2,3)
END
prints info "$golden/scalar.npy" <<END
$golden/scalar.npy: npy, 1 array, 1 element, 4 B, 32 bits each
scalar  f32                      4  ()
END
prints info --json "$golden/scalar.npy" <<END
{"lowbit": "$version", "schema": 1, "verb": "info", "path": "$golden/scalar.npy", "kind": "npy", "parameters": 1, "bytes": 4, "metadata": {}, "arrays": [
{"name": "scalar", "type": "<f4", "format": "dense", "dtype": "f32", "shape": [], "bytes": 4, "layout": null, "tensors": 1}], "warnings": []}
END
run 0 info "$golden/names.safetensors"
has 'tab\x09new\x0abell\x07\x1f'
run 0 info --metadata "$golden/values.gguf"
for line in 'x.u8 = 200' 'x.i8 = -3' 'x.i16 = -30000' 'x.u32 = 4000000000' \
    'x.i32 = -2000000000' 'x.f32 = 1.5' 'x.bool = true' \
    'x.u64 = 18446744073709551615' 'x.i64 = -9223372036854775808' \
    'x.f64 = -0.10000000000000001' 'x.text = "héllo"' \
    'x.words = {"array": 3}'; do
    has "$line"
done

# ---- quantize ----------------------------------------------------------------

src=tests/golden/layouts/bnb4.values # dense: it is what others decode
dst=$tmp/out.safetensors
run 0 quantize --help
has "usage: lowbit quantize SRC [OPTION].."
refused 2 "quantize needs --output" quantize "$src" --type nf4
refused 2 "quantize needs --type" quantize "$src" -o "$dst"
refused 2 "is there already; --force replaces it" quantize "$src" -o "$tmp" \
    --type nf4
refused 1 "which is not part of the model and would be lost" \
    quantize "$src" -o "$tmp" --type nf4 --force
refused 2 "--output is empty" quantize "$src" -o "" --type nf4
refused 2 "--layout takes one of native bnb bitnet eformer, not 'gguf'" \
    quantize "$src" -o "$dst" --type nf4 --layout gguf
refused 2 "--jobs takes 1 to 256, not '0'" quantize "$src" -o "$dst" \
    --type nf4 -j 0
refused 2 "--block-size takes 1 to 2147483647, not '64x'" \
    quantize "$src" -o "$dst" --type nf4 --block-size 64x
refused 2 "'--type' lacks its value" quantize "$src" -o "$dst" --type
refused 2 '--type: no format "nf5" (there are: ' quantize "$src" -o "$dst" --type nf5
refused 2 "--max-memory takes at least 1000000 bytes, not '2Ki'" \
    quantize "$src" -o "$dst" --type nf4 --max-memory 2Ki
refused 3 "not recognized" quantize Makefile -o "$dst" --type nf4
[ ! -e "$dst" ] || die "something was written"

quantize() # ARGUMENT...: talks, and prints nothing
{
    checks=$((checks + 1))
    "$program" quantize "$src" -o "$dst" "$@" >"$tmp/out" 2>"$tmp/err" ||
        die "quantize $*: fails"
    [ ! -s "$tmp/out" ] || die "quantize $*: prints something"
}
quantize --type nf4 --no-sync
cp "$tmp/err" "$tmp/out"
has "nested.weight (70,300) nf4, 42.0 kB -> 11.9 kB"
has "norm.weight (7) stays bf16: a vector"
has "plain.weight (6,100) stays bf16: tiny"
has "1 array quantized (88.5 % of the bytes), 6 as they were; 47.4 kB -> 17.3 kB"
refused 2 "is there already; --force replaces it" quantize "$src" -o "$dst" \
    --type nf4
"$program" quantize "$golden/scalar.npy" -o "$tmp/scalar" --type nf4 \
    2>"$tmp/out" || die "a single number fails"
has "scalar () stays f32: a single number"
cp "$dst" "$tmp/first"
quantize --type nf4 --force -q -j 1
[ ! -s "$tmp/err" ] || die "-q talks"
cmp -s "$dst" "$tmp/first" || die "other bytes on one thread"
LOWBIT_ISA=ref quantize --type nf4 --force -q --max-memory 1M
cmp -s "$dst" "$tmp/first" || die "other bytes at ref"
run 0 info "$dst"
has "nested.weight  nf4 bf16             11900  (70,300)  native, 2 tensors"
for type in int8 ternary binary q8_0 q4_0 iq4_nl tq1_0 tq2_0 dynamic8; do
    quantize --type $type --force -q --no-sync
    run 0 info "$dst"
    has "nested.weight  $type bf16"
done
quantize --type nf4 --double-quant --block-size 128 --force -q --no-sync
run 0 info "$dst"
has "native, 4 tensors"
quantize --type nf4 --layout bnb --force -q --no-sync
run 0 info "$dst"
has "bnb, 4 tensors"
quantize --type int8 --layout bnb --compat bnb-cpu --force -q --no-sync
run 0 info "$dst"
has "bnb, 3 tensors"
refused 2 "--linear-class takes one of autobitlinear bitlinear, not 'x'" \
    quantize "$src" -o "$dst" --type ternary --linear-class x --force
quantize --type ternary --linear-class bitlinear --force -q --no-sync
run 0 info --metadata "$dst"
has '\"meaning\": 2'
quantize --type ternary --layout eformer --scale tensor --threshold absmean \
    --force -q --no-sync
run 0 info "$dst"
has "eformer, 2 tensors"

# ---- quantize: which, and into what -------------------------------------------

q=(quantize "$src" -o "$dst" --force --no-sync)
refused 1 "exclude 'lyer' matches none of the names of 7 arrays, of which the first is 'stack.weight'" "${q[@]}" --type nf4 \
    --exclude lyer
refused 2 "missing closing parenthesis" "${q[@]}" --type nf4 --include 'a('
refused 2 "no such type" "${q[@]}" --type nf4 --override 'a=nf5'
refused 2 "cannot open" "${q[@]}" --type nf4 --recipe no/such
quantize --type nf4 --force --include plain --override 'nested=int8:axis=-1' \
    --exclude '^norm'
cp "$tmp/err" "$tmp/out"
has "nested.weight (70,300) int8"
has "plain.weight (6,100) nf4"
has "norm.weight (7) stays bf16: excluded"
echo 'override nested=keep' >"$tmp/recipe"
quantize --type nf4 --force --recipe "$tmp/recipe"
cp "$tmp/err" "$tmp/out"
has "nested.weight (70,300) stays bf16: kept by an override"
run 0 "${q[@]}" --type nf4 --dry-run -q
rm "$dst"
"$program" quantize "$src" --type nf4 --dry-run 2>"$tmp/out" ||
    die "--dry-run needs an output"
has "nested.weight (70,300) nf4, 42.0 kB -> 11.9 kB"
[ ! -e "$dst" ] || die "--dry-run writes"
refused 2 "--dry-run writes no --report" "${q[@]}" --type nf4 --dry-run --report a.md
refused 2 "--shape-fallback takes one of keep error adjust, not 'x'" "${q[@]}" \
    --type nf4 --shape-fallback x
refused 2 "a file of kind gguf has no place for int8" quantize "$src" \
    -o "$tmp/out.gguf" --type int8
refused 2 "layout bitnet has no place for nf4 made so" quantize "$src" \
    -o "$dst" --force --type nf4 --layout bitnet
gguf=(quantize "$golden/sharded" -o "$tmp/out.gguf" --force --type q8_0
    --include w)
run 0 "${gguf[@]}" -q # rows of 2 and 3 are no blocks of 32
refused 4 "is to be quantized, and cannot be as it is asked for" "${gguf[@]}" --strict
refused 3 "q8_0: the layout has no place for its shape, (2,2)" "${gguf[@]}" \
    --shape-fallback error
refused 2 "--target-bpw or --target-size, not both" "${q[@]}" --target-bpw 5 \
    --target-size 4k
refused 2 "--target-* mixes types" "${q[@]}" --target-bpw 5 --layout bnb
refused 2 "--target-size takes bytes, as 4.2G, 500MB or 3Gi, not '4x'" "${q[@]}" \
    --target-size 4x
refused 1 "cannot reach 0.3524 bits per weight (1000 bytes): the minimum is " \
    "${q[@]}" --target-size 1k
grep -q ", of which 5445 bytes are arrays that are not quantized" "$tmp/err" ||
    die "not what stays"
refused 2 "--target-bpw takes a number from 0.1 to 64" "${q[@]}" --target-bpw 0
quantize --target-bpw 7 --force -q
run 0 info "$dst"
grep -q ' [56]\.[0-9]* bits each\| 7 bits each' "$tmp/out" ||
    die "not about 7 bits: $(head -1 "$tmp/out")"
quantize --target-size 19.9k --force -q
size=$(stat -c %s "$dst")
[ "$size" -le 19900 ] || die "$size bytes, more than 19.9k"
# All types are candidates: no larger and no less exact than one for all.
"$program" quantize "$src" -o "$dst" --force -q --type iq4_nl --report "$tmp/r.json"
one=$(grep -o '"nrmse": [0-9.e-]*' "$tmp/r.json" | head -1 | cut -d' ' -f2)
"$program" quantize "$src" -o "$dst" --force -q --target-bpw 8 --report "$tmp/r.json"
best=$(grep -o '"nrmse": [0-9.e-]*' "$tmp/r.json" | head -1 | cut -d' ' -f2)
awk "BEGIN { exit !($best < $one) }" || die "8 bits: $best, iq4_nl: $one"
# Also where names make most of the file, and are in each of its shards.
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
    run 1 quantize "$tmp/long" -o "$tmp/x" --target-size 1k --force
    least=$(sed -n 's/.*minimum is [0-9.]* (\([0-9]*\) .*/\1/p' "$tmp/err")
    run 0 quantize "$tmp/long" -o "$tmp/x" --force -q --target-size \
        $((least + 4000))
    size=$(stat -c %s "$tmp/x/model.safetensors")
    [ "$size" -le $((least + 4000)) ] || die "$size bytes, more than $least + 4000"
    [ "$size" -ge $((least - 4000)) ] || die "$size bytes, far from $least + 4000"
done
# A scale for each number is no gain, unless it is asked for.
safetensors "$tmp/thin" \
    '{"w":{"dtype":"F32","shape":[1024,1],"data_offsets":[0,4096]}}' ''
head -c 4096 /dev/zero >>"$tmp/thin"
for type in nf4 int8; do
    thin=(quantize "$tmp/thin" -o "$tmp/x.safetensors" --type "$type" --force)
    "$program" "${thin[@]}" 2>"$tmp/out" || die "thin: $type"
    has "1/1 w (1024,1) stays f32: it would not be smaller"
    for asks in "--include w" "--override w=$type"; do
        # shellcheck disable=SC2086
        run 0 "${thin[@]}" -q $asks
        run 0 info "$tmp/x.safetensors"
        has "w     $type f32"
    done
done
quantize --type nf4 --force -q --resume # none is there to go on with
cp -r "$golden/sharded" "$tmp/model"
run 0 quantize "$tmp/model" -o "$tmp/small" --type nf4 -q
[ -e "$tmp/small/model.safetensors.index.json" ] || die "no directory"

finish
