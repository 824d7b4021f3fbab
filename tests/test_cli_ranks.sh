#!/usr/bin/env bash
# test_cli_ranks.sh PROGRAM - verbs whose work is shared by the processes of
# mpirun: the bytes equal those of a single process; an error of one rank is
# reported by all; killing a rank ends all of them, names it, and damages nothing.
# Without MPI only the error message is tested. Run it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
arrays=16
letters_model $arrays

# ---- without -----------------------------------------------------------------

# As one of two processes, without liblowbit-mpi.
mkdir "$tmp/bin"
cp "$program" "$tmp/bin/lowbit"
alone=$program
program=$tmp/bin/lowbit
export OMPI_COMM_WORLD_SIZE=2
refused 1 "started as one of 2 processes, but cannot run lowbit-mpi" quantize \
    "$tmp/model" --type nf4 -o "$tmp/none"
refused 1 "started as one of 2 processes, but cannot run lowbit-mpi" shard "$tmp/model" \
    --mesh x=2 --spec '.=P(x)' -o "$tmp/none"
refused 1 "started as one of 2 processes, but cannot run lowbit-mpi" merge "$tmp/model" \
    -o "$tmp/none"
refused 1 "started as one of 2 processes, but cannot run lowbit-mpi" diff "$tmp/model" \
    "$tmp/model" --report "$tmp/none"
[ ! -e "$tmp/none" ] || die "an output exists"
[ ! -e "$tmp/none.partial" ] || die "a partial output exists"
run 0 info "$tmp/model" # no work to share, no output file
unset OMPI_COMM_WORLD_SIZE
program=$alone

ranks=$(dirname "$program")/lowbit-mpi
if ! [ -x "$ranks" ] || ! command -v mpirun >/dev/null; then
    echo "test_cli_ranks.sh: no lowbit-mpi, or no mpirun"
    finish
    exit 0
fi

# ---- with --------------------------------------------------------------------

# Open MPI needs two variables to run as root, and an option if there are fewer
# cores than ranks.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
over=
! mpirun --version 2>&1 | grep -q 'Open MPI\|OpenRTE' || over=--oversubscribe

# shared RANKS STATUS ARGUMENT...
shared()
{
    local n=$1 want=$2 status=0
    shift 2
    checks=$((checks + 1))
    # shellcheck disable=SC2086
    timeout 120 mpirun $over -np "$n" "$program" "$@" >"$tmp/out" \
        2>"$tmp/err" || status=$?
    [ "$status" = "$want" ] || die "$n ranks, '$*': status $status, not $want"
}

same()
{
    checks=$((checks + 1))
    diff -r "$1" "$2" >"$tmp/diff" || die "$(cat "$tmp/diff")"
    [ ! -e "$2.partial" ] || die "$2.partial is left"
}

job=(quantize "$tmp/model" --type nf4 --no-sync)
run 0 "${job[@]}" -q -o "$tmp/whole"
run 0 "${job[@]}" -q -o "$tmp/whole.safetensors"
for n in 2 4; do
    shared $n 0 "${job[@]}" -v -o "$tmp/dir" --verify
    same "$tmp/whole" "$tmp/dir"
    # Only the first rank prints, for all arrays.
    [ "$(grep -c "^[0-9]*/$arrays layers" "$tmp/err")" = $arrays ] ||
        die "not a line for each array"
    [ "$(grep -c "^wrote .*: $arrays arrays quantized" "$tmp/err")" = 1 ] ||
        die "no single summary"
    grep -q '^1/.*nrmse 0\.' "$tmp/err" || die "the summary has no error figures"
    shared $n 0 "${job[@]}" -q -o "$tmp/file.safetensors" --report "$tmp/r.json"
    same "$tmp/whole.safetensors" "$tmp/file.safetensors"
    [ ! -s "$tmp/err" ] || die "-q prints something"
    [ -s "$tmp/r.json" ] || die "there is no report"
    rm -rf "$tmp/dir" "$tmp/file.safetensors" "$tmp/r.json"
done
run 0 dequantize "$tmp/whole" -o "$tmp/floats.safetensors" -q --no-sync
shared 3 0 dequantize "$tmp/whole" -o "$tmp/file.safetensors" -q --no-sync
same "$tmp/floats.safetensors" "$tmp/file.safetensors"
program=$ranks
shared 2 0 info "$tmp/whole" # by the first rank alone
program=$alone
[ "$(grep -c "$arrays arrays" "$tmp/out")" = 1 ] || die "not printed once"

# Verbs that write without sharing the work run on the first rank alone.
cut=(shard "$tmp/model" --mesh x=2 --spec '.=P(x)' --no-sync)
run 0 "${cut[@]}" -q -o "$tmp/cut"
shared 4 0 "${cut[@]}" -o "$tmp/cut4"
same "$tmp/cut" "$tmp/cut4"
[ "$(grep -c 'arrays split' "$tmp/err")" = 1 ] || die "no single summary"
shared 4 0 merge "$tmp/cut4" -o "$tmp/merged" -q --no-sync
same "$tmp/model" "$tmp/merged"

# ---- errors ------------------------------------------------------------------

# sentences N TEXT: N ranks print the same message. (mpirun stops the others with
# SIGTERM as soon as one has failed.)
sentences()
{
    checks=$((checks + 1))
    [ "$(grep '^lowbit: ' "$tmp/err" | grep -v ': interrupted' |
        sort -u | wc -l)" = 1 ] ||
        die "the ranks print different messages"
    [ "$(grep -cF -- "$2" "$tmp/err")" = "$1" ] || die "not all ranks print '$2'"
}

cp -r "$tmp/model" "$tmp/bad"
# A NaN in the middle of an array that some rank quantizes.
put_bytes "$tmp/bad/model-00001-of-00002.safetensors" 6000000 \
    '\xff\xff\xff\x7f\xff\xff\xff\x7f'
echo old >"$tmp/old.safetensors"
shared 4 3 quantize "$tmp/bad" --type nf4 -q -o "$tmp/old.safetensors" --force
sentences 4 "'layers."
[ "$(cat "$tmp/old.safetensors")" = old ] || die "the old file is gone"
[ ! -e "$tmp/old.safetensors.partial" ] || die "a partial file is left"
truncate -s -1 "$tmp/bad/model-00002-of-00002.safetensors"
shared 4 3 quantize "$tmp/bad" --type nf4 -q -o "$tmp/none"
sentences 4 "model-00002-of-00002.safetensors"
[ ! -e "$tmp/none" ] || die "an output exists"
[ ! -e "$tmp/none.partial" ] || die "a partial output exists"
shared 2 2 quantize "$tmp/model" --type nf4 -o "$tmp/old.safetensors"

# ---- killed ------------------------------------------------------------------

# Kills one rank as soon as there is a partial file; then continues. On a busy
# machine many runs end before that: repeats until one was killed.
killed=0 tries=40
if ! command -v pgrep >/dev/null; then
    echo "test_cli_ranks.sh: no pgrep: killing a rank not tested"
    tries=0
fi
for ((k = 0; k < tries && (k < 5 || killed == 0); k++)); do
    rm -f "$tmp/old.safetensors.partial"
    # shellcheck disable=SC2086
    timeout 120 mpirun $over -np 4 "$program" "${job[@]}" -q -j 1 \
        -o "$tmp/old.safetensors" --force >"$tmp/out" 2>"$tmp/err" &
    child=$!
    until [ -e "$tmp/old.safetensors.partial" ] ||
        ! kill -0 $child 2>/dev/null; do :; done
    victim=$(pgrep -f "lowbit.* -o $tmp/old.safetensors" | tail -n 1) || true
    name=$(cat "/proc/$victim/comm" 2>/dev/null) || name=
    case $name in lowbit*) kill -9 "$victim" 2>/dev/null || true ;; esac
    status=0
    wait $child || status=$?
    [ $status = 0 ] && echo old >"$tmp/old.safetensors" && continue # too late
    killed=$((killed + 1))
    checks=$((checks + 1))
    [ $status != 124 ] || die "the other ranks wait for the killed one"
    grep -qi 'rank [0-3]\|EXIT CODE: 9' "$tmp/err" || die "no rank is named"
    # Either the old file or the complete new one.
    cmp -s "$tmp/old.safetensors" "$tmp/whole.safetensors" ||
        [ "$(cat "$tmp/old.safetensors")" = old ] || die "the file is damaged"
    n=$((1 + k % 3))
    shared $n 0 "${job[@]}" -q -o "$tmp/old.safetensors" --force --resume \
        --verify
    same "$tmp/whole.safetensors" "$tmp/old.safetensors"
    echo old >"$tmp/old.safetensors"
done
[ $killed -gt 0 ] || [ $tries = 0 ] || die "no rank was killed in time"

# Ranks started by another MPI do not see each other: none writes anything.
for other in mpirun.openmpi mpirun.mpich; do
    command -v $other >/dev/null || continue
    [ "$(readlink -f "$(command -v $other)")" != \
        "$(readlink -f "$(command -v mpirun)")" ] || continue
    checks=$((checks + 1))
    ! timeout 60 $other -np 2 "$program" "${job[@]}" -o "$tmp/none" \
        >"$tmp/out" 2>"$tmp/err" || die "$other: no error"
    grep -q 'built with another MPI' "$tmp/err" || die "$other: no such message"
    [ ! -e "$tmp/none" ] || die "something was written"
done
finish
