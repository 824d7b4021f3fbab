#!/usr/bin/env bash
# test_cli_kill.sh PROGRAM [FAULTY [RUNS]] - runs that are killed at any moment, and
# full disks: an existing destination stays, and --resume ends with the same bytes
# as an uninterrupted run. Run it in the project's root.
# ctest: skip-asan
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
runs=${3:-20}
arrays=24
letters_model $arrays

job=(quantize "$tmp/model" --type nf4 -q -j 1 --no-sync)
began=$(date +%s%N)
run 0 "${job[@]}" -o "$tmp/whole"
took=$((($(date +%s%N) - began) / 1000000)) # ms
[ "$took" -lt 1000 ] || took=1000 # a busy machine
run 0 "${job[@]}" -o "$tmp/whole.safetensors"

# kill_after MS ARGUMENT...: without the shell's message.
kill_after()
{
    local ms=$1 child
    shift
    "$program" "$@" >"$tmp/out" 2>"$tmp/err" &
    child=$!
    sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
    kill -9 "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
}

# ---- killed ------------------------------------------------------------------

killed=0
for ((k = 0; k < runs; k++)); do
    at=$((RANDOM % (took + 1)))
    for to in "$tmp/dir" "$tmp/file.safetensors"; do
        whole=$tmp/whole.safetensors
        [ "$to" != "$tmp/dir" ] || whole=$tmp/whole
        rm -rf "$to" "$to.partial"
        kill_after "$at" "${job[@]}" -o "$to"
        if [ -e "$to" ]; then
            [ ! -e "$to.partial" ] || die "killed after $at ms: output and partial file exist"
        else
            killed=$((killed + 1))
        fi
        run 0 "${job[@]}" -o "$to" --resume --force --verify
        diff -r "$whole" "$to" >"$tmp/diff" ||
            die "killed after $at ms and resumed: $(cat "$tmp/diff")"
        [ ! -e "$to.partial" ] || die "$to.partial is left"
        # An existing file stays until the new one is complete.
        kill_after "$at" "${job[@]}" -o "$to" --force --block-size 32
        run 0 info "$to"
        has "$arrays arrays"
    done
done
[ "$runs" -lt 10 ] || [ "$killed" -gt 0 ] || die "no run was killed in time"

refused 2 "already exists (use --force to overwrite)" "${job[@]}" -o "$tmp/whole" \
    --resume

# The same for the other verbs that write files.
for how in "convert whole.safetensors" "dequantize whole.safetensors" \
    "dequantize whole"; do
    again=("${how% *}" "$tmp/${how#* }" -q -j 1 --no-sync --max-memory 2M)
    to=$tmp/again
    [ "${again[1]}" = "$tmp/whole" ] || to=$tmp/again.safetensors
    rm -rf "$tmp/right" "$to"
    began=$(date +%s%N)
    run 0 "${again[@]}" -o "$to"
    took=$((($(date +%s%N) - began) / 1000000))
    [ "$took" -lt 1000 ] || took=1000
    mv "$to" "$tmp/right"
    for ((k = 0; k < (runs + 3) / 4; k++)); do
        at=$((RANDOM % (took + 1)))
        kill_after "$at" "${again[@]}" -o "$to"
        run 0 "${again[@]}" -o "$to" --resume --force
        diff -r "$tmp/right" "$to" >"$tmp/diff" ||
            die "$how killed after $at ms and resumed: $(cat "$tmp/diff")"
        [ ! -e "$to.partial" ] || die "$to.partial is left"
        rm -rf "$to"
    done
done

# ---- full --------------------------------------------------------------------

echo old >"$tmp/old.safetensors"
checks=$((checks + 1))
if (
    trap '' XFSZ
    ulimit -f 100 # kB
    "$program" "${job[@]}" -o "$tmp/old.safetensors" --force 2>"$tmp/err"
); then
    die "no error for a file that is too large"
fi
grep -q 'File too large' "$tmp/err" || die "the system's message is missing"
[ "$(cat "$tmp/old.safetensors")" = old ] || die "the old file is gone"
[ ! -e "$tmp/old.safetensors.partial" ] || die "a partial file is left"

disk=$tmp/disk
mkdir "$disk"
if mount -t tmpfs -o size=2m tmpfs "$disk" 2>/dev/null; then
    trap 'umount "$disk"; rm -rf "$tmp"' EXIT
    echo old >"$disk/old.safetensors"
    refused 1 "file system has only" "${job[@]}" -o "$disk/old.safetensors" --force
    [ "$(cat "$disk/old.safetensors")" = old ] || die "the old file is gone"
    refused 1 "file system has only" "${job[@]}" -o "$disk/dir"
    ls "$disk" >"$tmp/out"
    [ "$(cat "$tmp/out")" = old.safetensors ] || die "another file is left"
    # Enough space at first; then another process uses it up.
    mount -o remount,size=16m "$disk"
    full=0
    for ((k = 0; k < 20 && !full; k++)); do
        "$program" "${job[@]}" -o "$disk/old.safetensors" --force \
            >"$tmp/out" 2>"$tmp/err" &
        child=$!
        until [ -e "$disk/old.safetensors.partial" ] ||
            ! kill -0 $child 2>/dev/null; do :; done
        kill -STOP $child 2>/dev/null || true
        [ ! -e "$disk/old.safetensors.partial" ] || full=1
        head -c 32000000 /dev/zero >"$disk/other" 2>/dev/null || true
        kill -CONT $child 2>/dev/null || true
        status=0
        wait $child || status=$?
        rm "$disk/other"
        # It had finished by then, or not yet checked the free space.
        if [ $status = 0 ] || grep -q 'file system has only' "$tmp/err"; then full=0; fi
        [ $full = 1 ] || echo old >"$disk/old.safetensors"
    done
    checks=$((checks + 1))
    [ "$full $status" = "1 1" ] || die "no disk became full in time: $status"
    grep -q 'cannot write [0-9]* bytes at offset [0-9]* of [0-9]*: No space left' \
        "$tmp/err" || die "no message that the disk is full"
    [ "$(cat "$disk/old.safetensors")" = old ] || die "the old file is gone"
    [ ! -e "$disk/old.safetensors.partial" ] || die "a partial file is left"
else
    echo "test_cli_kill.sh: full disk not tested: mounting is not permitted"
fi

finish
