#!/usr/bin/env bash
# test_conformance_runner.sh [PROGRAM] - can the conformance runner fail?
#
# PROGRAM takes KIND DIR (default: tools/conformance, which builds it). Cases
# are made here, from bytes: changed in any byte of what they expect, cut off,
# or malformed in any other way, each must be a failed case or a usage error,
# with the counts and the exit status that go with it, and never a crash.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
program=${1:-$root/tools/conformance}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
checks=0

die()
{
    echo "test_conformance_runner.sh: $*" >&2
    [ ! -e "$tmp/out" ] || sed 's/^/    /' "$tmp/out" "$tmp/err" >&2
    exit 1
}

# run ARGUMENT...: leaves $status, $tmp/out and $tmp/err.
run()
{
    status=0
    "$program" "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
}

# expect WHAT STATUS LAST-LINE, of the last run.
expect()
{
    checks=$((checks + 1))
    [ "$status" = "$2" ] || die "$1: exit status $status, not $2"
    [ "$(tail -n 1 "$tmp/out")" = "$3" ] || die "$1: the last line is not '$3'"
}

says() # WHAT FILE TEXT
{
    checks=$((checks + 1))
    grep -qF -- "$3" "$tmp/$2" || die "$1: '$3' is not in what it says"
}

# npy FILE DESCR SHAPE BYTES: BYTES as printf takes them.
npy()
{
    local dict="{'descr': '$2', 'fortran_order': ${5:-False}, 'shape': $3, }"
    {
        printf '\223NUMPY\1\0'
        printf "\\x$(printf %x $((${#dict} + 1)))\\0%s\\n" "$dict"
        printf '%b' "$4"
    } >"$1"
}

# good DIR: x + y of i32 (2), as v3; expected in v2.
good()
{
    mkdir -p "$1"
    npy "$1/v0.npy" '<i4' '(2,)' '\x01\x00\x00\x00\xff\xff\xff\xff'
    npy "$1/v1.npy" '<i4' '(2,)' '\x02\x01\x00\x00\x05\x00\x00\x00'
    npy "$1/v2.npy" '<i4' '(2,)' '\x03\x01\x00\x00\x04\x00\x00\x00'
    cat >"$1/case.json" <<'END'
{"source": "here",
 "check": [["check.expect_eq", "v3", "v2"]],
 "ops": [{"op": "add", "ins": ["v0", "v1"], "outs": ["v3"],
  "out_types": [{"shape": [2], "dtype": "i32"}], "attrs": {}}],
 "consts": {"v0": {"npy": "v0.npy", "shape": [2], "dtype": "i32"},
            "v1": {"npy": "v1.npy", "shape": [2], "dtype": "i32"},
            "v2": {"npy": "v2.npy", "shape": [2], "dtype": "i32"}}}
END
}

fresh() # an empty directory for cases
{
    rm -rf "$tmp/cases"
    mkdir "$tmp/cases"
}

# ---- what is right passes ----------------------------------------------------

fresh
good "$tmp/cases/right"
run stablehlo "$tmp/cases"
expect "a right case" 0 "1 passed, 0 failed, 0 skipped"
run -v --threads 1 stablehlo "$tmp/cases"
expect "-v" 0 "1 passed, 0 failed, 0 skipped"
says "-v" out "PASS right "
cp "$tmp/out" "$tmp/one"
for options in "--threads 2" "--threads 7" "--isa ref"; do
    # shellcheck disable=SC2086
    run stablehlo "$tmp/cases" -v $options
    expect "$options" 0 "1 passed, 0 failed, 0 skipped"
    cmp -s "$tmp/one" "$tmp/out" || die "$options: other bits"
done
run stablehlo "$tmp/cases/right"
expect "a case by itself" 0 "1 passed, 0 failed, 0 skipped"
npy "$tmp/cases/right/v2.npy" '>i4' '(2,)' '\x00\x00\x01\x03\x00\x00\x00\x04'
run stablehlo "$tmp/cases"
expect "the other byte order" 0 "1 passed, 0 failed, 0 skipped"
npy "$tmp/cases/right/v2.npy" '<i4' '(2,)' \
    '\x03\x01\x00\x00\x04\x00\x00\x00' True
run stablehlo "$tmp/cases"
expect "the other element order" 0 "1 passed, 0 failed, 0 skipped"

# ---- one byte of what is expected --------------------------------------------

fresh
good "$tmp/cases/changed"
v2=$tmp/cases/changed/v2.npy
cp "$v2" "$tmp/v2.npy"
size=$(stat -c %s "$v2")
for ((at = 0; at < size; at++)); do
    byte=$(od -An -tu1 -j $at -N 1 "$tmp/v2.npy" | tr -d ' ')
    cp "$tmp/v2.npy" "$v2"
    printf '%b' "\\x$(printf %x $((byte ^ 2)))" |
        dd of="$v2" bs=1 seek=$at conv=notrunc status=none
    run stablehlo "$tmp/cases"
    expect "byte $at changed" 1 "0 passed, 1 failed, 0 skipped"
done
says "the last byte changed" out \
    "FAIL changed: element (1) is 4, but 33554436 is expected; 1 of 2 differ"
for ((at = 0; at < size; at += 3)); do
    head -c $at "$tmp/v2.npy" >"$v2"
    run stablehlo "$tmp/cases"
    expect "cut to $at bytes" 1 "0 passed, 1 failed, 0 skipped"
done

# ---- floats ------------------------------------------------------------------

floats() # WHAT CHECK BYTES-EXPECTED-OF-1.5 PASSED FAILED
{
    local i
    for i in v0 v1 v2; do
        npy "$tmp/cases/changed/$i.npy" '<f4' '(2,)' \
            '\x00\x00\x40\x3f\x00\x00\xc0\x7f' # .75, NaN
    done
    npy "$tmp/cases/changed/v2.npy" '<f4' '(2,)' "$3\\x00\\x00\\xc0\\x7f"
    good "$tmp/good"
    sed -e 's/i32/f32/' -e "s/\"check.expect_eq\", \"v3\", \"v2\"/$2/" \
        "$tmp/good/case.json" >"$tmp/cases/changed/case.json"
    run stablehlo "$tmp/cases"
    expect "$1" "$5" "$4 passed, $5 failed, 0 skipped"
}
floats "equal floats" '"check.expect_eq", "v3", "v2"' '\x00\x00\xc0\x3f' 1 0
floats "1 ulp, exact" '"check.expect_eq", "v3", "v2"' '\x01\x00\xc0\x3f' 0 1
floats "1 ulp, close" '"check.expect_close", "v3", "v2"' '\x01\x00\xc0\x3f' 1 0
floats "1e-3, close" '"check.expect_close", "v3", "v2"' '\x00\x20\xc0\x3f' 0 1
floats "1e-3 is allowed" '"check.expect_close", "v3", "v2", {"rtol": 1e-2}' \
    '\x00\x20\xc0\x3f' 1 0
floats "2 ulps of 1" \
    '"check.expect_close", "v3", "v2", {"max_ulp_difference": 1}' \
    '\x02\x00\xc0\x3f' 0 1
floats "infinity" '"check.expect_close", "v3", "v2"' '\x00\x00\x80\x7f' 0 1
floats "NaN" '"check.expect_close", "v3", "v2"' '\x00\x00\xc0\x7f' 0 1

# ---- counts and usage --------------------------------------------------------

# edit NAME SED-SCRIPT: a good case with case.json edited.
edit()
{
    good "$tmp/cases/$1"
    sed -i -e "$2" "$tmp/cases/$1/case.json"
    if cmp -s "$tmp/cases/$1/case.json" "$tmp/good/case.json"; then
        die "$1: the edit changes nothing"
    fi
}

fresh
edit unknown_op 's/"op": "add"/"op": "fft"/'
run stablehlo "$tmp/cases"
expect "nothing but a skipped case" 1 "0 passed, 0 failed, 1 skipped"
says "a skipped case" out "SKIP unknown_op: lowbit has no function for 'fft'"
edit unknown_attr 's/"attrs": {}/"attrs": {"odd": 1}/'
edit foreign 's/"i32"/"complex<f32>"/'
edit several 's/"add", "ins": \["v0", "v1"\], "outs": \["v3"\]/"reduce", "ins": ["v0", "v1", "v0", "v1"], "outs": ["v3", "v4"]/
s/"out_types": \[/"out_types": [{"shape": [], "dtype": "i32"}, /'
edit wrong 's/"op": "add"/"op": "subtract"/'
good "$tmp/cases/right"
mkdir "$tmp/cases/no_case"
run stablehlo "$tmp/cases"
expect "all verdicts" 1 "1 passed, 1 failed, 4 skipped"
rm -r "$tmp/cases/wrong"
run stablehlo "$tmp/cases"
expect "skipped and passed" 0 "1 passed, 0 failed, 4 skipped"
printf '[{"dir": "right"}, {"dir": "gone"}, {"dir": "../cases/right"}]' \
    >"$tmp/cases/index.json"
run stablehlo "$tmp/cases"
expect "listed, not there" 1 "1 passed, 2 failed, 4 skipped"
says "listed, not there" out "FAIL gone: "
printf '[{"dir": 1}]' >"$tmp/cases/index.json"
run stablehlo "$tmp/cases"
expect "an index that is none" 2 ""

fresh
run stablehlo "$tmp/cases"
expect "no case" 1 "0 passed, 0 failed, 0 skipped"
run stablehlo "$tmp/nowhere"
expect "no directory" 2 ""
run nonsense "$tmp/cases"
expect "an unknown kind" 2 ""
says "an unknown kind" err "stablehlo"
for arguments in "" "stablehlo" "stablehlo a b" "--odd stablehlo a" \
    "--threads x stablehlo $tmp" "--threads -1 stablehlo $tmp" \
    "--isa odd stablehlo $tmp"; do
    # shellcheck disable=SC2086
    run $arguments
    expect "arguments '$arguments'" 2 ""
done

# ---- malformed cases ---------------------------------------------------------

# Each must fail, by itself, with a sentence.
fresh
n=0
bad() # SED-SCRIPT
{
    n=$((n + 1))
    edit "bad$n" "$1"
}
long=$(printf '[%.0s' {1..5000})
bad 's/{"source"/"source"/'
bad 'd'
bad '1!d;c []'
bad '1!d;c null'
bad "1!d;c $long"
bad 's/"ops"/"sops"/'
bad 's/\[\["check.expect_eq", "v3", "v2"\]\]/[]/'
bad 's/\[\["check.expect_eq", "v3", "v2"\]\]/{}/'
bad 's/\["check.expect_eq", "v3", "v2"\]/["check.expect_eq", "v3"]/'
bad 's/\["check.expect_eq", "v3", "v2"\]/[1, 2, 3]/'
bad 's/"v3", "v2"\]/"v3", "v9"]/'
bad 's/"check.expect_eq", "v3", "v2"/"check.expect_close", "v3", "v2", 1/'
bad 's/"check.expect_eq", "v3", "v2"/"check.expect_close", "v3", "v2", {}/'
bad 's/"ins": \["v0", "v1"\]/"ins": ["v0", "v7"]/'
bad 's/"ins": \["v0", "v1"\]/"ins": ["v0"]/'
bad 's/"ins": \["v0", "v1"\]/"ins": []/'
bad 's/"ins": \["v0", "v1"\]/"ins": [0, null]/'
bad 's/"ins": \["v0", "v1"\]/"ins": "v0"/'
bad 's/"outs": \["v3"\]/"outs": ["v0"]/'
bad 's/"outs": \["v3"\]/"outs": []/'
bad 's/"outs": \["v3"\]/"outs": [3]/'
bad 's/"out_types": \[{"shape": \[2\]/"out_types": [{"shape": [3]/'
bad 's/"out_types": \[{"shape": \[2\]/"out_types": [{"shape": [2.0]/'
bad 's/"out_types": \[{"shape": \[2\]/"out_types": [{"shape": [-2]/'
bad 's/"out_types": \[{"shape": \[2\]/"out_types": [{"shape": [99999999999, 99999999999]/'
bad 's/"out_types": \[{"shape": \[2\], "dtype": "i32"/"out_types": [{"shape": [2], "dtype": "i64"/'
bad 's/"out_types": \[{"shape": \[2\], "dtype": "i32"/"out_types": [{"shape": [2], "dtype": "odd"/'
bad 's/"out_types": \[.*\], "attrs"/"out_types": [], "attrs"/'
bad 's/"attrs": {}/"attrs": []/'
bad 's/"op": "add"/"op": 1/'
bad 's/"npy": "v0.npy", "shape": \[2\]/"npy": "v0.npy", "shape": [2, 1]/'
bad 's/"npy": "v0.npy", "shape": \[2\], "dtype": "i32"/"npy": "v0.npy", "shape": [2], "dtype": "f32"/'
bad 's/"npy": "v0.npy"/"npy": "..\/right\/v0.npy"/'
bad 's/"npy": "v0.npy"/"npy": "."/'
bad 's/"npy": "v0.npy"/"npy": ""/'
bad 's/"npy": "v0.npy"/"npy": 1/'
bad 's/"npy": "v0.npy"/"npy": "gone.npy"/'
bad 's/"npy": "v0.npy"/"npy": "case.json"/'
bad 's/"consts"/"sconts"/'
# Attributes that do not fit; the operation comes first.
attrs() # OP ATTRS
{
    bad "s/\"op\": \"add\", \"ins\": \[\"v0\", \"v1\"\]/\"op\": \"$1\", \"ins\": [\"v0\"]/
s/\"attrs\": {}/\"attrs\": {$2}/"
}
attrs reverse ''
attrs reverse '"dims": [-1]'
attrs reverse '"dims": [5]'
attrs reverse '"dims": [0, 0]'
attrs reverse '"dims": [0, 0, 0, 0, 0, 0, 0, 0, 0]'
attrs reverse '"dims": "0"'
attrs transpose '"dims": []'
attrs transpose '"dims": [7]'
attrs broadcast_in_dim '"dims": [1]'
attrs broadcast_in_dim '"dims": []'
attrs slice '"slices": []'
attrs slice '"slices": [[0]]'
attrs slice '"slices": [[0, 3]]'
attrs slice '"slices": [[0, 2, 0]]'
attrs slice '"slices": [[-9223372036854775808, 2]]'
attrs slice '"slices": [[0, 2, 1, 1]]'
attrs dynamic_slice '"sizes": [2]'
attrs concatenate '"dim": 3'
attrs concatenate '"dim": 1e300'
attrs iota '"dim": 0'
attrs reduce '"applies": "add", "dimensions": [0]'
attrs gather '"slice_sizes": [1]'
attrs constant '"value": [1, 2]'
two() # OP ATTRS
{
    bad "s/\"op\": \"add\"/\"op\": \"$1\"/
s/\"attrs\": {}/\"attrs\": {$2}/"
}
two compare '"direction": "LT"'
two compare '"direction": "ODD"'
two compare '"direction": 1'
two pad '"low": [0], "high": [0], "interior": [0]'
two pad '"low": [9223372036854775807], "high": [9223372036854775807]'
two dot ''
two dot_general '"lhs_contracting": [0]'
two dot_general '"lhs_contracting": [3], "rhs_contracting": [0]'
two dot_general '"lhs_contracting": [0, 0], "rhs_contracting": [0, 0]'
two convolution ''
two gather '"index_vector_dim": 9, "slice_sizes": [1]'
two gather '"index_vector_dim": 1, "start_index_map": [0], "offset_dims": [6], "slice_sizes": [1]'
mkdir -p "$tmp/cases/fifo" "$tmp/cases/folder/case.json"
mkfifo "$tmp/cases/fifo/case.json"
good "$tmp/cases/right"
run stablehlo "$tmp/cases"
expect "malformed cases" 1 "1 passed, $((n + 2)) failed, 0 skipped"
[ "$(grep -c '^FAIL [a-z0-9]*: .' "$tmp/out")" = $((n + 2)) ] ||
    die "a malformed case without a sentence"

# bytes NAME DESCR SHAPE BYTES: the expected file.
fresh
n=0
bytes()
{
    n=$((n + 1))
    good "$tmp/cases/bytes$n"
    npy "$tmp/cases/bytes$n/v2.npy" "$1" "$2" \
        '\x03\x01\x00\x00\x04\x00\x00\x00' "${3:-False}"
}
bytes '<i4' '(2)'
bytes '<i4' '(2,'
bytes '<i4' '2'
bytes '<i4' '(-2,)'
bytes '<i4' '(2,,)'
bytes '<i4' '(1, 2)'
bytes '<i4' '(3,)'
bytes '<i4' '(18446744073709551618,)'
bytes '<i4' '(4611686018427387904, 4, 2)'
bytes '<i4' '(1, 1, 1, 1, 1, 1, 1, 1, 2)'
bytes '<u4' '(2,)'
bytes '<f4' '(2,)'
bytes '<i8' '(1,)'
bytes '<i3' '(2,)'
bytes '|i4' '(2,)'
bytes 'O' '(2,)'
bytes '' '(2,)'
bytes '<i4' '(2,)' None
bytes '<i4' "(2,), 'more': 1"
bytes '<i4' "(2,), 'shape': (2,)"
bytes '<i4' '(2,)}}'
good "$tmp/cases/longer"
printf '\0' >>"$tmp/cases/longer/v2.npy"
good "$tmp/cases/header"
printf '\223NUMPY\2\0\377\377\377\377' >"$tmp/cases/header/v2.npy"
run stablehlo "$tmp/cases"
expect "malformed arrays" 1 "0 passed, $((n + 2)) failed, 0 skipped"

echo "test_conformance_runner.sh: $checks checks passed"
