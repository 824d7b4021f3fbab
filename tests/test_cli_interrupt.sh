#!/usr/bin/env bash
# test_cli_interrupt.sh PROGRAM FAULTY - what Ctrl-C, SIGTERM and SIGHUP leave
# and print, and how a run is resumed. FAULTY raises the signal at a given
# system call (tests/faults.h), so that nothing depends on time. To be run in
# the project's root.
# ctest: skip-asan
set -euo pipefail
# Signals are not ignored from the start, as in the background of a shell (SIGINT)
# or after nohup (SIGHUP): bash cannot undo that itself.
[ "${LB_TEST_SIGNALS-}" ] ||
    LB_TEST_SIGNALS=default exec env --default-signal=HUP,INT,TERM \
        bash "$0" "$@"
# shellcheck source=tests/cli.bash
. tests/cli.bash
program=${faulty:?usage: $0 PROGRAM FAULTY}
letters_model 4
run 0 convert "$tmp/model" -o "$tmp/model.safetensors" -q --no-sync

# stopped SIGNAL FAULT VERB ...: at that call, with 128 + SIGNAL.
stopped()
{
    export LOWBIT_FAULT="$2 -$1"
    local signal=$1
    shift 2
    run $((128 + signal)) "$@"
    unset LOWBIT_FAULT
}

says() # PATTERN: stderr has a line that matches it
{
    checks=$((checks + 1))
    grep -qE -- "$1" "$tmp/err" || die "stderr does not say '$1'"
}

# resumed VERB ...: prints, with --resume, what it has skipped.
succeeds()
{
    checks=$((checks + 1))
    "$program" "$@" >"$tmp/out" 2>"$tmp/err" || die "'$*': exit status $?"
}

# The third piece of data is that of the second array or a later one: each has
# 1 MiB, and a piece at least that.
size='\([0-9.]+ [kM]?B\)'
for job in "quantize --type nf4" "dequantize" "convert --dtype bf16"; do
    for from in model.safetensors model; do
        read -ra verb <<<"$job -j 1 --no-sync"
        to=$tmp/to.safetensors
        [ $from = model.safetensors ] || to=$tmp/to
        verb+=("$tmp/$from" -o "$to")
        rm -rf "$to" "$tmp/right"
        run 0 "${verb[@]}" -q
        mv "$to" "$tmp/right"
        kept=0
        for ((at = 1; at < 60; at++)); do # until it is done by then
            rm -rf "$to.partial"
            status=0
            LOWBIT_FAULT="pwrite $at -2" "$program" "${verb[@]}" -q \
                >"$tmp/out" 2>"$tmp/err" || status=$?
            [ $status != 0 ] || break
            [ $status = 130 ] || die "$job: exit status $status"
            if [ ! -e "$to.partial" ]; then
                says "^lowbit: interrupted; $to was not written\$"
                continue
            fi
            says "^lowbit: interrupted; kept $to.partial $size, continue with --resume\$"
            kept=$((kept + 1))
            succeeds "${verb[@]}" --resume
            says '^lowbit: resumed: skipped [1-4] of 4 arrays '"$size"
            diff -r "$to" "$tmp/right" >"$tmp/diff" || die "$job: other bytes"
            [ ! -e "$to.partial" ] || die "$job: $to.partial is left"
            rm -rf "$to"
        done
        [ "$status" = 0 ] || die "$job, $from: always interrupted"
        [ "$kept" -ge 2 ] || die "$job, $from: nothing was kept"
        diff -r "$to" "$tmp/right" >"$tmp/diff" || die "$job: other bytes"
        rm -rf "$to"
    done
done

# ---- discarded output --------------------------------------------------------

for to in "$tmp/q.safetensors" "$tmp/q"; do
    from=$tmp/model
    [ "$to" = "$tmp/q" ] || from=$tmp/model.safetensors
    job=(quantize "$from" --type nf4 -j 1 --no-sync -o "$to")
    leave() # a partial output; the signal comes when three arrays are written
    {
        local at=12
        rm -rf "$to" "$to.partial"
        while [ ! -e "$to.partial" ]; do
            status=0
            LOWBIT_FAULT="pwrite $at -${1:-2}" "$program" "${job[@]}" -q \
                >"$tmp/out" 2>"$tmp/err" || status=$?
            [ $status = $((128 + ${1:-2})) ] || die "exit status $status"
            at=$((at + 1))
        done
    }
    leave 15 # SIGTERM
    says "^lowbit: interrupted; kept $to.partial $size, continue with --resume\$"
    run 0 "${job[@]}" -q
    leave 1 # SIGHUP
    succeeds "${job[@]}"
    says "^lowbit: discarded $to.partial $size of an interrupted run \(it could have been resumed\)\$"
    if grep -q resumed: "$tmp/err"; then die "resumed"; fi
    leave
    succeeds "${job[@]}" --block-size 32 --resume
    says "^lowbit: discarded $to.partial $size of an interrupted run with other inputs or options\$"
    leave
    # info of the partial output, and of the output that does not exist yet.
    note="the incomplete output of an interrupted run; repeat the command with --resume to continue it"
    status=0
    "$program" info "$to.partial" >"$tmp/out" 2>"$tmp/err" || status=$?
    says "^lowbit: (warning: )?$to.partial $size is $note\$"
    [ "$to" = "$tmp/q" ] || [ $status = 3 ] || die "exit status $status"
    "$program" info "$to" >"$tmp/out" 2>"$tmp/err" || true
    says "^lowbit: warning: $to.partial $size exists: $note\$"
    rm -rf "$to.partial"
done

# ---- copied checkpoints ------------------------------------------------------

cp -r "$tmp/model" "$tmp/foreign"
echo '{"quantization_config": {"quant_method": "fp8"}}' >"$tmp/foreign/config.json"
job=(convert "$tmp/foreign" -o "$tmp/copy" -q -j 1 --no-sync)
stopped 2 "pwrite 9" "${job[@]}"
says "^lowbit: interrupted; kept $tmp/copy.partial $size, continue with --resume\$"
run 0 "${job[@]}" --resume
diff -r "$tmp/foreign" "$tmp/copy" >"$tmp/diff" || die "convert: other bytes"

# ---- other verbs -------------------------------------------------------------

# Those that cannot be resumed leave nothing behind.
by=(shard "$tmp/model" --mesh x=2 --spec '.=P(x)' --no-sync -q)
run 0 "${by[@]}" -o "$tmp/ranks"
for job in "shard @/model --mesh x=2 --spec .=P(x) --no-sync -q -o @/none" \
    "merge @/ranks -q -o @/none" "merge @/ranks -q -o @/none.safetensors" \
    "convert @/model.safetensors -q -o @/none.npz"; do
    read -ra verb <<<"$job"
    verb=("${verb[@]/#@/$tmp}") # may contain blanks
    call=pwrite
    [ "${verb[0]}" != convert ] || call="write"
    for at in 1 3; do
        stopped 2 "$call $at" "${verb[@]}"
        says "^lowbit: interrupted; $tmp/none[.a-z]* was not written\$"
        [ "$(find "$tmp" -maxdepth 1 -name 'none*')" = "" ] ||
            die "$job: something is left"
    done
done

# Those that only read end at once (the first open is that of /dev/null).
for verb in "check" "stats" "diff @/model.safetensors"; do
    read -ra job <<<"$verb"
    job=("${job[@]/#@/$tmp}")
    stopped 2 "open 2" "${job[@]}" "$tmp/model.safetensors"
    says '^lowbit: interrupted$'
    stopped 2 "open 2" "${job[@]}" "$tmp/model.safetensors" --json
    awk -f tests/json.awk "$tmp/out" >"$tmp/flat" || die "$verb: not JSON"
    grep -qx '.error.kind interrupted' "$tmp/flat" || die "$verb: no error"
    grep -qx '.error.exit 130' "$tmp/flat" || die "$verb: no exit code"
done
stopped 15 "pwrite 6" quantize "$tmp/model.safetensors" --type nf4 -q -j 1 \
    -o "$tmp/json.safetensors" --json
awk -f tests/json.awk "$tmp/out" >"$tmp/flat" || die "quantize: not JSON"
grep -qx '.error.kind interrupted' "$tmp/flat" || die "quantize: no error"
grep -qx '.error.exit 143' "$tmp/flat" || die "quantize: no exit code"

# A second signal ends a job that does not get to stop by itself. A signal that
# is ignored from the start stays ignored.
export LOWBIT_FAULT="pwrite -1 -2"
run 130 quantize "$tmp/model.safetensors" --type nf4 -q -j 1 \
    -o "$tmp/twice.safetensors"
unset LOWBIT_FAULT
says '^lowbit: interrupted$'
(
    trap '' HUP
    LOWBIT_FAULT="pwrite 3 -1" run 0 quantize "$tmp/model.safetensors" \
        --type nf4 -q -o "$tmp/ignored.safetensors"
)

finish
