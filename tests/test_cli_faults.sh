#!/usr/bin/env bash
# test_cli_faults.sh PROGRAM FAULTY - the command on a failing file system: its
# messages, the files it leaves, and what --verify finds. FAULTY is the command
# linked with tests/faults.c. Run it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
program=${faulty:?usage: $0 PROGRAM FAULTY}
dense=tests/golden/layouts/bnb4.values
packed=tests/golden/layouts/bnb4.safetensors
to=$tmp/to.safetensors

# fails FAULT TEXT VERB...: with the message TEXT, and the old file stays.
fails()
{
    export LOWBIT_FAULT=$1
    local text=$2
    shift 2
    echo old >"$to"
    refused 1 "$text" "$@" -q -o "$to" --force
    unset LOWBIT_FAULT
    [ "$(cat "$to")" = old ] || die "'$*': the old file is gone"
    [ ! -e "$to.partial" ] || die "'$*': a partial file is left"
}

jobs=("quantize $dense --type nf4" "convert $packed" "dequantize $packed")
for job in "${jobs[@]}"; do
    # shellcheck disable=SC2206
    verb=($job)
    fails "pwrite 3 28" "No space left on device" "${verb[@]}"
    grep -qE 'to.safetensors.partial: cannot write [0-9]+ bytes at offset [0-9]+ of [0-9]+: ' \
        "$tmp/err" || die "'$job': the message does not name the bytes"
    fails "pwrite 4 5" "Input/output error" "${verb[@]}"
    fails "ftruncate 2 28" "cannot resize: No space left on device" "${verb[@]}"
    fails "fsync 1 5" "cannot sync: Input/output error" "${verb[@]}"
    fails "rename 1 13" "cannot rename: Permission denied" "${verb[@]}"
    # Short reads and writes are continued.
    rm -f "$to"
    run 0 "${verb[@]}" -q -o "$to"
    cp "$to" "$tmp/right"
    export LOWBIT_FAULT="pwrite 3 short"
    run 0 "${verb[@]}" -q -o "$to" --force
    cmp -s "$to" "$tmp/right" || die "'$job': different bytes after a short write"
    # A flipped bit is detected only by reading the output again.
    export LOWBIT_FAULT="pwrite 4 flip"
    run 0 "${verb[@]}" -q -o "$to" --force
    if cmp -s "$to" "$tmp/right"; then die "'$job': no bit was flipped"; fi
    fails "pwrite 4 flip" "was not read back as written" \
        "${verb[@]}" --verify
    run 0 "${verb[@]}" -q -o "$to" --force --verify
    cmp -s "$to" "$tmp/right" || die "'$job': different bytes with --verify"
done

# A wrong read gives wrong output that was written correctly. It is found by
# reading the source again. One of the reads is of an unchanged array.
found=0
for ((k = 1; k <= 60; k++)); do
    status=0
    LOWBIT_FAULT="pread $k flip" "$program" quantize $dense --type nf4 -q \
        --force -o "$to" --verify >"$tmp/out" 2>"$tmp/err" || status=$?
    case $status in
    0) ;;
    1 | 3) grep -q 'verification failed: ' "$tmp/err" && found=$((found + 1)) ;;
    *) die "read $k: exit status $status" ;;
    esac
done
checks=$((checks + 60))
[ "$found" -gt 0 ] || die "no wrong read was detected"

# The result exists but cannot be read for the report.
for ((k = 30; k > 0; k--)); do
    rm -f "$to" "$tmp/r.json"
    status=0
    LOWBIT_FAULT="pread $k 5" "$program" quantize $dense --type nf4 -q \
        -o "$to" --report "$tmp/r.json" >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" = 0 ] || break
done
checks=$((checks + 1))
[ "$status" = 1 ] || die "exit status $status, not 1"
grep -q 'to.safetensors: cannot read' "$tmp/err" || die "the message does not name the file"
[ -e "$to" ] || die "the result is gone"
[ ! -e "$tmp/r.json" ] || die "there is a report"

finish
