#!/usr/bin/env bash
# test_cli_refuse.sh PROGRAM - errors after a valid command line: unwritable
# destinations, unusable sources, conflicts with existing files. Each ends with a
# message and leaves existing files unchanged. Run it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
values=tests/golden/layouts/bnb4.values
packed=tests/golden/layouts/bnb4.safetensors
out=$tmp/out.safetensors

# A model of two layers, in one file, with its config.json.
mkdir "$tmp/model"
size=$((64 * 64 * 4))
header="{\"layers.0.up.weight\":{\"dtype\":\"F32\",\"shape\":[64,64],\"data_offsets\":[0,$size]},"
header+="\"layers.1.up.weight\":{\"dtype\":\"F32\",\"shape\":[64,64],\"data_offsets\":[$size,$((2 * size))]}}"
safetensors "$tmp/model/model.safetensors" "$header" ''
head -c $((2 * size)) /dev/zero >>"$tmp/model/model.safetensors"
echo '{"dtype":"float32"}' >"$tmp/model/config.json"
safetensors "$tmp/experts" "{\"experts\":{\"dtype\":\"F32\",\"shape\":[2,32,64],\"data_offsets\":[0,$size]}}" ''
head -c $size /dev/zero >>"$tmp/experts"

# ---- places ------------------------------------------------------------------

# A report must not replace an input or output.
cp -r "$tmp/model" "$tmp/of"
cp "$values" "$tmp/of.json"
ln -s of/config.json "$tmp/of.link.json"
in_the_way()
{
    refused 2 "--report $1 would overwrite $2" "${@:3}" --report "$1"
}
to=("$tmp/to.json" "$tmp/./to.json")
in_the_way "${to[1]}" "${to[0]}" quantize "$values" -o "${to[0]}" --type nf4
in_the_way "$tmp/of.json" "$tmp/of.json" quantize "$values" -o "${to[0]}" \
    --type nf4 --recipe "$tmp/of.json"
ln -s to.json "$tmp/nowhere.json"
refused 2 "--report $tmp/nowhere.json is a dangling symbolic link" quantize "$values" \
    -o "${to[0]}" --type nf4 --report "$tmp/nowhere.json"
in_the_way "$tmp/of.json" "$tmp/of.json" quantize "$tmp/of.json" -o "$out" --type nf4
in_the_way "$tmp/of/config.json" "$tmp/of" quantize "$tmp/of" -o "$tmp/to" --type nf4
in_the_way "$tmp/of.link.json" "$tmp/of/config.json" diff "$tmp/of/config.json" "$values"
in_the_way "$tmp/of.json" "$tmp/of.json" diff "$values" "$tmp/of.json"
mkdir "$tmp/to"
in_the_way "$tmp/to/new.html" "$tmp/to/" convert "$tmp/of" -o "$tmp/to/"
[ -z "$(ls "$tmp/to")" ] || die "something was written"
rmdir "$tmp/to"
cmp -s "$values" "$tmp/of.json" || die "the source is gone"
run 0 quantize "$tmp/of" -o "$tmp/to" --type nf4 -q --report "$tmp/of/new.html"
rm -r "$tmp/of" "$tmp/to"

many=()
for ((i = 0; i < 257; i++)); do many+=(--exclude x); done
refused 2 "more than 256 options with values" quantize a "${many[@]}"
echo old >"$tmp/file"
refused 1 "file is a file, not a directory" quantize "$tmp/model" \
    -o "$tmp/file/" --type nf4 --force -q
[ "$(cat "$tmp/file")" = old ] || die "the file is gone"
cp -r "$tmp/model" "$tmp/it.partial"
refused 2 "it.partial is also the input" \
    quantize "$tmp/it.partial" -o "$tmp/it" --type nf4 -q
[ -e "$tmp/it.partial/model.safetensors" ] || die "the source is gone"
refused 2 "can only hold safetensors files, not gguf" dequantize "$tmp/model" \
    -o "$tmp/dir/" --to gguf -q --container-only
refused 1 "is not a regular file" quantize "$values" -o /dev/full \
    --type nf4 --force -q
[ -c /dev/full ] || die "the device is gone"
refused 1 "no/dir/x: No such file" quantize "$values" \
    -o "$tmp/no/dir/x" --type nf4 -q
# The destination is checked before a long planning phase.
aims=(quantize "$tmp/model" --target-bpw 20 -q -o)
refused 1 "no/dir/x: No such file" "${aims[@]}" "$tmp/no/dir/x"
refused 1 "no/dir/x.gguf: No such file" "${aims[@]}" \
    "$tmp/no/dir/x.gguf" --container-only
mkdir "$tmp/full"
echo mine >"$tmp/full/notes.txt"
refused 2 "full holds 'notes.txt', which is not part" "${aims[@]}" "$tmp/full" \
    --force
run 0 "${aims[@]}" "$tmp/aimed"
cp "$values" "$tmp/self"
for same in "$tmp/self" "$tmp/./self"; do
    refused 2 "is also the input" \
        quantize "$tmp/self" -o "$same" --type nf4 --force -q
done
ln -s self "$tmp/link"
ln "$tmp/self" "$tmp/hard"
for same in link hard; do
    refused 2 "is also the input" \
        quantize "$tmp/self" -o "$tmp/$same" --type nf4 --force -q
done
cmp -s "$values" "$tmp/self" || die "the source is gone"
# A symbolic link stays and its target is replaced; a dangling one is an error.
run 0 quantize "$values" -o "$tmp/right" --type nf4 -q
mkdir "$tmp/there" "$tmp/there/dir"
echo old >"$tmp/there/file"
ln -s there/file "$tmp/to_file"
ln -s there/dir "$tmp/to_dir"
ln -s nowhere "$tmp/lost"
for link in to_file lost; do
    refused 2 "$link already exists (use --force to overwrite)" quantize "$values" \
        -o "$tmp/$link" --type nf4
    run 0 quantize "$values" -o "$tmp/$link" --type nf4 -q --force
    cmp -s "$tmp/$link" "$tmp/right" || die "$link: different bytes"
done
[ -L "$tmp/to_file" ] || die "the link to a file is gone"
cmp -s "$tmp/there/file" "$tmp/right" || die "not at the target of the link"
for slash in '' /; do
    run 0 quantize "$tmp/model" -o "$tmp/to_dir$slash" --type nf4 -q --force
    [ -e "$tmp/there/dir/config.json" ] || die "not at the target of the link"
    [ -L "$tmp/to_dir" ] || die "the link to a directory is gone"
    run 0 check "$tmp/to_dir"
done
if command -v flock >/dev/null; then
    # Another process is writing it.
    (
        flock 9
        refused 1 "another process is writing it" quantize "$values" -o "$out" \
            --type nf4 -q
    ) 9>"$out.partial"
    rm "$out.partial"
fi
if [ "$(id -u)" != 0 ]; then
    mkdir -m 555 "$tmp/closed"
    refused 1 "closed/x: Permission denied" quantize "$values" \
        -o "$tmp/closed/x" --type nf4 -q
fi

# An unwritable report is an error before the work is done.
for where in "$tmp/no/r.md: cannot write: No such file" \
    "$tmp/d.md: not a regular file"; do
    mkdir -p "$tmp/d.md"
    refused 1 "$where" quantize "$values" -o "$out" --type nf4 --report \
        "${where%%: *}"
    refused 1 "$where" convert "$values" -o "$out" --report "${where%%: *}"
    refused 1 "$where" diff "$values" "$values" --report "${where%%: *}"
    [ ! -e "$out" ] || die "the work was done"
done
# A message is one line, whatever it quotes.
refused 1 'a\x0ab\x1b[31m\xff\xe2\x80\xae: cannot open' info \
    $'a\nb\e[31m\xff\xe2\x80\xae'
refused 2 "unknown verb 'a\\x0ab'" $'a\nb'

# ---- sources -----------------------------------------------------------------

refused 1 "not a regular file" info /dev/null
: >"$tmp/empty"
refused 3 "the file is empty" info "$tmp/empty"
refused 3 "the file is empty" quantize "$tmp/empty" -o "$out" \
    --type nf4
refused 3 "already quantized (nf4); run \`lowbit dequantize\` first" quantize "$packed" \
    -o "$out" --type nf4 --exclude nested -q
# Also if it is included by name.
for how in "--include ." "--override .=int8"; do
    # shellcheck disable=SC2086 # words, meant to split
    refused 3 "' is already quantized (nf4); run \`lowbit dequantize\` first" \
        quantize "$packed" -o "$out" --type int8 $how -q
done
# A value that cannot be quantized, in the middle of a large array.
safetensors "$tmp/nan" \
    '{"w":{"dtype":"F32","shape":[1024,4096],"data_offsets":[0,16777216]}}' ''
head -c 16777216 /dev/zero >>"$tmp/nan"
put_bytes "$tmp/nan" $(($(stat -c %s "$tmp/nan") - 4)) '\0\0\xc0\x7f'
for how in "type nf4" "type int8" "type ternary" "type int8 --max-memory 1M" \
    "type nf4 --double-quant" "target-bpw 5" "type binary --block-size 64"; do
    # shellcheck disable=SC2086 # words, meant to split
    refused 3 "nan: 'w' has 1 NaN and 0 infinite values, the first at (1023,4095), and" \
        quantize "$tmp/nan" -o "$out" -q --$how
    grep -q "(exclude the array, or override it with nonfinite=clamp)" "$tmp/err" ||
        die "the message does not suggest what to do"
done
put_bytes "$tmp/nan" $(($(stat -c %s "$tmp/nan") - 4200000)) '\0\0\x80\xff'
run 3 quantize "$tmp/nan" -o "$out" -q --type nf4 --dry-run --json
has "nan: 'w' has 1 NaN and 1 infinite values, the first at (767,2672), and nf4"
# A finite value that is too large for the type is not a defect of the file.
safetensors "$tmp/much" \
    '{"w":{"dtype":"F32","shape":[64,64],"data_offsets":[0,16384]}}' ''
head -c 16384 /dev/zero >>"$tmp/much"
put_bytes "$tmp/much" $(($(stat -c %s "$tmp/much") - 4)) '\xff\xff\x7f\x7f'
refused 2 "which q8_0 cannot hold" quantize "$tmp/much" -o "$out" -q --type q8_0
quiet=(quantize "$tmp/nan" -o "$out" -q --override)
run 0 "${quiet[@]}" 'w=nf4:nonfinite=clamp' --type nf4
rm "$out"
refused 1 "max_memory" quantize "$tmp/nan" -o "$out" --type ternary \
    --scale tensor -q --max-memory 1M
for bytes in x 0 -1 1X 1Gx 1iB nan 1e30; do
    refused 2 "--max-memory takes bytes, e.g. 4.2G, 500MB or 3GiB, not '$bytes'" \
        convert "$packed" -o "$out" --max-memory "$bytes"
done
for bytes in 20k 20K 20kB 0.02M 0.02mB 20000 20e3B; do
    refused 2 "--max-memory takes at least 1000000 bytes, not '$bytes'" \
        dequantize "$packed" -o "$out" -q --max-memory "$bytes"
done
for bytes in 999999 0.999M 976KiB; do
    refused 2 "--max-memory takes at least 1000000 bytes, not '$bytes'" \
        convert "$packed" -o "$out" -q --max-memory "$bytes"
done
# Errors about a type use the names of the command's options.
for how in "int8 --scale row|int8: scale row is not supported: use axis or block_size" \
    "nf4 --scale tensor|nf4: scale tensor is not supported: there is one scale per block" \
    "dynamic8 --scale none|dynamic8: scale none is not supported" \
    "ternary --scale row --compat eformer|ternary: scale is row, but compat eformer has no" \
    "ternary --threshold absmean --compat eformer|threshold is absmean, but compat eformer" \
    "ternary --scale row --block-size 64|block_size is 64, but scale is row" \
    "ternary --compat bnb-cpu|compat is bnb-cpu, but bitsandbytes has no ternary format" \
    "int8 --threshold absmean|int8: threshold is absmean, but this format" \
    "q8_0 --axis 0|q8_0: axis is given, but this format does not use it" \
    "q8_0 --linear-class bitlinear|--linear-class bitlinear does not apply to q8_0" \
    "nf4 --axis 0|nf4: axis 0 is not supported: blocks are along" \
    "dynamic8 --axis -1|dynamic8: axis 1 is not supported: blocks are"; do
    # shellcheck disable=SC2086 # words, meant to split
    refused 2 "${how#*|}" quantize "$values" -o "$out" --type ${how%%|*}
done
# An axis may exist in other arrays only.
run 0 quantize "$tmp/experts" -o "$out" --type int8 --axis 2 -q
rm "$out"
refused 2 "layers.0.up.weight: axis 2 is out of range for an array of rank 2" \
    quantize "$tmp/model" -o "$out" --type int8 --axis 2 -q
for axis in 1.5 8 -9 x; do
    refused 2 "--axis takes -8 to 7, not '$axis'" quantize "$values" -o "$out" \
        --type int8 --axis "$axis"
done
[ ! -e "$out" ] || die "something was written"

# ---- conflicts with other files ----------------------------------------------

model=(quantize "$tmp/model" -o "$tmp/small" --type nf4 --layout bnb -q)
refused 2 "support a single type" "${model[@]}" --compat bnb-cpu \
    --override 'layers.1=int8'
head -c 17000000 /dev/zero | tr '\0' ' ' >"$tmp/model/config.json"
refused 3 "config.json: has 17000000 bytes; the maximum is 16777216" "${model[@]}"
echo '{"dtype": ' >"$tmp/model/config.json"
refused 3 "config.json" "${model[@]}"
head -c 1100000 /dev/zero | tr '\0' '\n' >"$tmp/recipe"
refused 2 "has 1100000 bytes; the maximum is 1048576" "${model[@]}" \
    --recipe "$tmp/recipe"
printf 'include a\nfrobnicate b\n' >"$tmp/recipe"
refused 2 "recipe, line 2: " "${model[@]}" --recipe "$tmp/recipe"
for stays in "$tmp/small" "$tmp/small.partial"; do
    [ ! -e "$stays" ] || die "$stays is left"
done

finish
