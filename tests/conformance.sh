#!/bin/sh
# conformance.sh PROGRAM DIR [THREADS] - every kind of case in DIR, with 1, 2 and
# 7 threads, or so many: all must pass, and with the same bits.
#
# The cases are not part of the project: where there are none, that is said, and
# it is not an error. Kinds that PROGRAM does not know yet are left out.
export LC_ALL=C
program=$1
dir=$2
numbers=${3:-1 2 7}
first=${numbers%% *}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

kinds=$("$program" --help | sed -n '/^known kinds:/,$s/^  \([a-z]*\) .*/\1/p')
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
