#!/usr/bin/env bash
# test_cli_streams.sh PROGRAM - output streams: terminals of any width, closed
# pipes, missing streams. Run it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
src=tests/golden/layouts/bnb4.values
job=(quantize "$src" --type nf4 --force)
run 0 "${job[@]}" -q -o "$tmp/right"

same() # what is at $tmp/q is what it should be
{
    cmp -s "$tmp/q" "$tmp/right" || die "$1: different bytes"
    rm "$tmp/q"
    checks=$((checks + 1))
}

# ---- pipes -------------------------------------------------------------------

# A job continues if its messages cannot be written; a result that cannot be
# written is an error.
exec 9> >(true)
wait $!
"$program" "${job[@]}" -o "$tmp/q" 2>&9 || die "stderr is a closed pipe: exit status $?"
same "nobody hears"
for to in "&9" /dev/full; do
    status=0
    eval '"$program" "${job[@]}" -q --json -o "$tmp/q"' ">$to" \
        2>"$tmp/err" || status=$?
    [ "$status" = 1 ] || die "--json >$to: exit status $status"
    grep -q "cannot write to stdout" "$tmp/err" || die "--json >$to: no message"
    same "--json >$to"
done
exec 9>&-

# ---- closed ------------------------------------------------------------------

# An output file must not get the descriptor of a closed stream.
"$program" "${job[@]}" -o "$tmp/q" 2>&- || die "without stderr"
same "without stderr"
"$program" "${job[@]}" -o "$tmp/q" >&- 2>&- || die "without stdout and stderr"
same "without stdout and stderr"
if "$program" "${job[@]}" --json -o "$tmp/q" <&- >&- 2>&-; then
    die "--json without stdout: no error"
fi
same "--json without streams"
status=0
"$program" info "$src" >&- 2>"$tmp/err" || status=$?
[ "$status" = 1 ] || die "info without stdout: exit status $status"
grep -q "cannot write to stdout" "$tmp/err" || die "info without stdout: no message"

# ---- terminals ---------------------------------------------------------------

# A progress bar that is erased, and lines only on request.
if ! command -v script >/dev/null; then
    finish
    exit 0
fi

on_terminal() # COLUMNS OPTION...
{
    local columns=$1
    shift
    script -qec "stty cols $columns; '$program' quantize '$src' -o '$tmp/q' \
        --force --type nf4 $*" /dev/null </dev/null | tr -d '\r' >"$tmp/out"
}

on_terminal 80
has 'B/s  0:00 elapsed  0:00 left'
grep -qE '%  [0-6]/7  [0-9.]+ k?B of 47.4 kB ' "$tmp/out" || die "no counts in the bar"
has $'\033[K'"wrote $tmp/q: 1 array quantized"
if grep -q '^1/7' "$tmp/out"; then die "lines on a terminal"; fi
on_terminal 80 -v
has '1/7 stack.weight (3,8,32) kept f32 (tiny)'
if grep -q 'elapsed' "$tmp/out"; then die "the bar was not erased"; fi
on_terminal 80 -q
[ ! -s "$tmp/out" ] || die "-q prints something on a terminal"
# It never fills a line, because it could not be overwritten then.
export LC_ALL=C
for columns in 10 25 40 60 200; do
    on_terminal $columns
    sed 's/\x1b\[K/\n/g' "$tmp/out" | grep '^[# ]* *[0-9]* %' >"$tmp/bars" ||
        die "$columns columns: no bar"
    longest=$(wc -L <"$tmp/bars")
    [ "$longest" -lt $columns ] || die "$columns columns: a bar of $longest"
    checks=$((checks + 1))
done

# Verbs that read all values have the same bar, and remove it.
for verb in check stats; do
    script -qec "stty cols 80; '$program' $verb '$src'" /dev/null </dev/null |
        tr -d '\r' >"$tmp/out"
    grep -qE '%  [0-9]+/(7|14)  [0-9.]+ k?B of [0-9.]+ kB ' "$tmp/out" ||
        die "$verb: no bar"
    has $'\033[K'
    sed 's/.*\x1b\[K//' "$tmp/out" >"$tmp/rest"
    if grep -q 'elapsed' "$tmp/rest"; then die "$verb: the bar stays"; fi
    run 0 $verb "$src" # and none without a terminal
done

script -qec "'$program' stats '$src' norm.weight" /dev/null </dev/null \
    >"$tmp/out"
has $'\033[36m'
NO_COLOR=1 script -qec "'$program' stats '$src' norm.weight" /dev/null \
    </dev/null >"$tmp/out"
if grep -q $'\033\[[0-9;]*m' "$tmp/out"; then die "NO_COLOR is coloured"; fi

# Failures and warnings are coloured on a terminal only.
coloured() # VARIABLE=VALUE
{
    env "$1" script -qec "'$program' info no/such" /dev/null </dev/null \
        >"$tmp/out" || true
    checks=$((checks + 1))
    grep -q $'\033\[1;31mlowbit: \033\[0m' "$tmp/out"
}
for command in "check '$tmp/nan'" "diff '$tmp/nan' '$src'"; do
    safetensors "$tmp/nan" \
        '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' '\0\0\xc0\x7f'
    TERM=xterm script -qec "'$program' $command" /dev/null </dev/null >"$tmp/out" || true
    has $'\033[31m'
    NO_COLOR=1 script -qec "'$program' $command" /dev/null </dev/null >"$tmp/out" || true
    if grep -q $'\033\[31m' "$tmp/out"; then die "NO_COLOR: $command"; fi
done
coloured TERM=xterm || die "a failure is not coloured"
if coloured NO_COLOR=1; then die "NO_COLOR is coloured"; fi
if coloured TERM=dumb; then die "TERM=dumb is coloured"; fi
run 1 info no/such
if grep -q $'\033' "$tmp/err"; then die "coloured without a terminal"; fi

finish
