#!/bin/sh
# test_eformer_examples.sh DIR - the output of eformer's examples in C, programs
# in DIR, is what double precision gives (tools/gen_eformer_golden.py).
# ctest: never-arm64 (runs programs without the emulator)
export LC_ALL=C
tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT

golden=$(dirname "$0")/golden/eformer_examples.txt
grep '^eformer_' "$golden" | while read -r name; do
    echo "$name"
    "$1/$name" || echo "$name failed"
done >"$tmp"
diff "$golden" "$tmp" || exit 1
echo "test_eformer_examples.sh: the output of $(grep -c '^eformer_' "$tmp") examples"
