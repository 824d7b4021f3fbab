#!/bin/sh
# conformance.sh PROGRAM DIR [THREADS] - runs all conformance cases in DIR, with
# THREADS or with 1, 2 and 7 threads: all must pass, with the same bits.
#
# The cases are not part of the project: if there are none, a note is printed and
# the exit status is 0. Kinds that PROGRAM does not support are skipped.
export LC_ALL=C
program=$1
dir=$2
numbers=${3:-1 2 7}
first=${numbers%% *}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

kinds=$("$program" --help | sed -n '/^known kinds:/,$s/^  \([a-z0-9-]*\) .*/\1/p')
found=
for kind in $kinds; do
    [ -d "$dir/$kind" ] || continue
    found=$kind
    for threads in $numbers; do
        if ! "$program" -v --threads "$threads" "$kind" "$dir/$kind" \
            >"$tmp/$threads"; then
            grep -v '^PASS' "$tmp/$threads"
            exit 1
        fi
        echo "$kind, $threads threads: $(tail -n 1 "$tmp/$threads")"
        [ "$threads" != "$first" ] || sed -n 's/^group /    &/p' "$tmp/$first"
        cmp "$tmp/$first" "$tmp/$threads" || exit 1
    done
done
[ -n "$found" ] || echo "conformance.sh: no cases in $dir"
