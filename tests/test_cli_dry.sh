#!/usr/bin/env bash
# test_cli_dry.sh PROGRAM - a dry run fails where the real run would fail, with the
# same message, and describes what it would write. Run it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
letters_model 4
values=tests/golden/layouts/bnb4.values
packed=tests/golden/layouts/bnb4.safetensors
model=$tmp/model
echo '{"a": 1}' >"$model/tokenizer.json"
out=$tmp/new/out.safetensors
mkdir "$tmp/new"

# What exists and when it was changed.
snapshot()
{
    find "$tmp" ! -path "$tmp/snap*" ! -path "$tmp/err" ! -path "$tmp/out" \
        ! -path "$tmp/dry*" ! -path "$tmp" -printf '%p %y %s %T@ %C@\n' | sort
}

# agree STATUS TEXT ARGUMENT...: both runs fail so, and change nothing.
agree()
{
    local status=$1 text=$2
    shift 2
    snapshot >"$tmp/snap.before"
    refused "$status" "$text" "$@" --dry-run
    cp "$tmp/err" "$tmp/dry.err"
    snapshot >"$tmp/snap.after"
    diff "$tmp/snap.before" "$tmp/snap.after" >"$tmp/out" ||
        die "'$*': the dry run changes files"
    refused "$status" "$text" "$@"
    diff "$tmp/dry.err" "$tmp/err" >"$tmp/out" || die "'$*': another message"
}

cut=(shard "$model" --mesh x=2 --spec '.=P(x)' -q) # else a line for each array
for job in "quantize $model --type nf4" "convert $model" "dequantize $model" cut; do
    if [ "$job" = cut ]; then
        run=("${cut[@]}")
    else
        read -ra run <<<"$job"
    fi
    # Output that exists.
    echo old >"$tmp/new/file"
    agree 2 "$tmp/new/file" "${run[@]}" -o "$tmp/new/file"
    agree 2 "$model" "${run[@]}" -o "$model"
    # .. that is the input, or other files.
    agree 2 "$model is also the input" "${run[@]}" -o "$model" --force
    agree 2 "$model is also the input" "${run[@]}" -o "$model/" --force
    mkdir "$tmp/new/dir"
    echo mine >"$tmp/new/dir/diary"
    agree 2 "'diary', which is not part of the model" "${run[@]}" \
        -o "$tmp/new/dir" --force
    agree 1 "is a file, not a directory" "${cut[@]}" -o "$tmp/new/file" --force
    # Places where nothing can be written.
    agree 1 "No such file or directory" "${run[@]}" -o "$tmp/none/dir"
    agree 1 "Not a directory" "${run[@]}" -o "$tmp/new/file/dir"
    agree 1 "File name too long" "${run[@]}" -o "$tmp/$(printf 'n%.0s' {1..250})"
    # A partial directory in use.
    mkdir "$tmp/new/busy.partial"
    exec 9<"$tmp/new/busy.partial"
    flock 9
    agree 1 "another process is writing it" "${run[@]}" -o "$tmp/new/busy"
    exec 9<&-
    # Other files of the model that cannot be copied.
    if [ "$(id -u)" != 0 ]; then
        chmod 0 "$model/tokenizer.json"
        agree 1 "tokenizer.json: cannot open" "${run[@]}" -o "$tmp/new/made"
        chmod 600 "$model/tokenizer.json"
        mkdir -m 500 "$tmp/new/locked"
        agree 1 "Permission denied" "${run[@]}" -o "$tmp/new/locked/made"
    fi
    rm -rf "$tmp/new"
    mkdir "$tmp/new"
done

# Files.
cp "$values" "$tmp/values.safetensors"
chmod 644 "$tmp/values.safetensors"
one=$tmp/values.safetensors
for job in "quantize $one --type nf4" "convert $one" "dequantize $one"; do
    read -ra run <<<"$job"
    ln -f "$one" "$tmp/new/same"
    agree 2 "$tmp/new/same" "${run[@]}" -o "$tmp/new/same"
    agree 2 "$tmp/new/same is also the input" "${run[@]}" -o "$tmp/new/same" --force
    ln -sf "$one" "$tmp/new/link"
    agree 2 "is also the input" "${run[@]}" -o "$tmp/new/link" --force
    agree 1 "is not a regular file" "${run[@]}" -o /dev/null --force
    agree 1 "No such file or directory" "${run[@]}" -o "$tmp/none/a.safetensors"
    : >"$out.partial"
    exec 9<"$out.partial"
    flock 9
    agree 1 "another process is writing it" "${run[@]}" -o "$out"
    exec 9<&-
    rm "$out.partial"
    agree 2 "--report" "${run[@]}" -o "$out" --report "$tmp/r.pdf"
    agree 2 "--report $one" "${run[@]}" -o "$out" --report "$one"
    agree 1 "none.npz" "${run[0]}" "$tmp/none.npz" -o "$out" "${run[@]:2}"
done

# What cannot be stored, or read.
agree 2 "would lack the architecture" quantize "$one" -o "$tmp/new/a.gguf" --type q8_0
agree 2 "would lack the architecture" convert "$one" -o "$tmp/new/a.gguf"
agree 2 bitnet quantize "$one" -o "$out" --type nf4 --layout bitnet
agree 4 "(" quantize "$golden/sharded" -o "$tmp/new/a.gguf" --type q8_0 \
    --include w --container-only --strict
agree 3 "dequantize" quantize "$packed" -o "$out" --type int8
safetensors "$tmp/nan.safetensors" \
    '{"a.weight":{"dtype":"F32","shape":[1,64],"data_offsets":[0,256]}}' ''
printf '\377\377\377\377%.0s' {1..64} >>"$tmp/nan.safetensors"
agree 3 "64 NaN" quantize "$tmp/nan.safetensors" -o "$out" --type nf4 --include .
agree 3 "64 NaN" quantize "$tmp/nan.safetensors" -o "$out" --type nf4 \
    --include . -q
[ ! -e "$out" ] || die "something was written"

# A full disk: the same number of bytes is missing.
disk=$tmp/disk
mkdir "$disk"
if mount -t tmpfs -o size=2m tmpfs "$disk" 2>/dev/null; then
    trap 'umount "$disk"; rm -rf "$tmp"' EXIT
    for to in "$disk/dir" "$disk/a.safetensors"; do
        agree 1 "file system has only" convert "$model" -o "$to"
        agree 1 "file system has only" quantize "$model" -o "$to" --type int8 \
            --exclude .
    done
    agree 1 "file system has only" "${cut[@]}" -o "$disk/dir"
    head -c 1900000 /dev/zero >"$disk/other"
    agree 1 "file system has only" quantize "$model" -o "$disk/dir" --type nf4
    # The other files of the model count as well.
    rm "$disk/other"
    run 0 quantize "$model" -o "$disk/dir" --type nf4 -q --no-sync --dry-run
    head -c 2000000 /dev/zero >"$model/merges.txt"
    agree 1 "file system has only" quantize "$model" -o "$disk/dir" --type nf4
    rm "$model/merges.txt"
else
    echo "test_cli_dry.sh: no full disk: mounting one is not allowed here"
fi

# ---- success -----------------------------------------------------------------

# would TEXT ARGUMENT...: prints TEXT and does not write; the real run succeeds.
would()
{
    local text=$1
    shift
    checks=$((checks + 1))
    snapshot >"$tmp/snap.before"
    "$program" "$@" --dry-run >"$tmp/out" 2>"$tmp/err" || die "'$*': fails"
    cat "$tmp/err" >>"$tmp/out"
    grep -qF -- "$text" "$tmp/out" || die "'$*': does not say '$text'"
    ! grep -qE '\bwrote\b|lowbit:' "$tmp/out" || die "'$*': speaks as if it wrote"
    snapshot >"$tmp/snap.after"
    diff "$tmp/snap.before" "$tmp/snap.after" >"$tmp/out" ||
        die "'$*': the dry run changes files"
    run 0 "$@" -q --no-sync
    rm -rf "$tmp/new"
    mkdir "$tmp/new"
}
to=$tmp/new/made
would "dry run: would write $to: 4 arrays quantized (nf4)" \
    quantize "$model" -o "$to" --type nf4
would "layout bnb, which transformers loads" quantize "$model" -o "$to" --type nf4
would "dry run: would write $out: 0 arrays converted" convert "$one" -o "$out"
would "dry run: would write $out: " dequantize "$packed" -o "$out" --verify
would "norm.weight (7) would be kept bf16" quantize "$one" -o "$out" --type nf4 -v
would "dry run: would write $to: 2 ranks, 4 of 4 arrays split" shard "$model" -o "$to" \
    --mesh x=2 --spec '.=P(x)'
# Without an output, as for the directory that the source is.
run 0 quantize "$model" --type nf4 --dry-run --json -q
has '"output": null, "dry_run": true'
for verb in convert dequantize; do
    run 0 $verb "$model" --dry-run -q
    refused 2 "$verb needs an output path (-o)" $verb "$model"
done

# Reports are written, and are those of the real run: types, sizes and errors.
figures()
{
    sed 's/"output": .*"peak_bytes": [0-9]*, //; s/"codes": \[.*\], "arrays"/"arrays"/
        s/"layout": [^,]*, "block_size": [^,]*, //' "$1"
}
"$program" quantize "$model" -o "$to" --type nf4 -q --dry-run \
    --report "$tmp/dry.json" --report "$tmp/dry.html"
[ ! -e "$to" ] || die "--dry-run writes"
[ -s "$tmp/dry.html" ] || die "one report is missing"
run 0 quantize "$model" -o "$to" --type nf4 -q --no-sync --report "$tmp/real.json"
figures "$tmp/dry.json" >"$tmp/want"
figures "$tmp/real.json" >"$tmp/got"
cmp -s "$tmp/want" "$tmp/got" || die "$(diff "$tmp/want" "$tmp/got")"

finish
