#!/usr/bin/env bash
# test_conformance_runner.sh [PROGRAM] - checks that the conformance runner can
# fail.
#
# PROGRAM takes KIND DIR (default: tools/conformance, which builds it). The cases
# are generated here. With any byte of the expected values changed, truncated, or
# otherwise malformed, each must be a failed case or a usage error, with the right
# counts and exit status, and never a crash.
set -euo pipefail
export LC_ALL=C
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

# expect WHAT STATUS LAST-LINE: checks the last run.
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

# words WORD...: values of 4 (or 2) bytes in hex, as escapes for printf.
words()
{
    local w
    for w in "$@"; do
        for ((i = ${#w} - 2; i >= 0; i -= 2)); do
            printf '\\x%s' "${w:i:2}"
        done
    done
}

# changed KIND FILE FIRST STEP LAST-LINE: changes each of FILE's bytes FIRST,
# FIRST + STEP, ... and the last one, and expects LAST-LINE. Leaves the last change.
changed()
{
    local at=$3 byte last
    last=$(($(stat -c %s "$2") - 1))
    cp "$2" "$tmp/original"
    while :; do
        byte=$(od -An -tu1 -j "$at" -N 1 "$tmp/original" | tr -d ' ')
        cp "$tmp/original" "$2"
        printf '%b' "\\x$(printf %x $((byte ^ 2)))" |
            dd of="$2" bs=1 seek="$at" conv=notrunc status=none
        run "$1" "$tmp/cases"
        expect "$1: byte $at of ${2##*/} changed" 1 "$5"
        ((at < last)) || break
        at=$((at + $4 < last ? at + $4 : last))
    done
}

# elements KIND FILE STEP: the same for the elements of an array; restores the
# file.
elements()
{
    local header
    header=$(od -An -tu1 -j 8 -N 1 "$2" | tr -d ' ')
    changed "$1" "$2" $((10 + header)) "$3" "0 passed, 1 failed, 0 skipped"
    cp "$tmp/original" "$2"
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

# ---- correct cases pass ------------------------------------------------------

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

# ---- changed bytes of expected values ----------------------------------------

fresh
good "$tmp/cases/changed"
v2=$tmp/cases/changed/v2.npy
cp "$v2" "$tmp/v2.npy"
size=$(stat -c %s "$v2")
changed stablehlo "$v2" 0 1 "0 passed, 1 failed, 0 skipped"
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
edit region 's/"attrs": {}/"attrs": {}, "region": {"args": [], "ops": []}/'
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

# reduced DIR REGION: v0 (-> 1) and v1 (-> 5) by a region, from 2 and 4.
reduced()
{
    mkdir -p "$1"
    npy "$1/v0.npy" '<i4' '(2,)' '\x07\x00\x00\x00\x01\x00\x00\x00'
    npy "$1/v1.npy" '<i4' '(2,)' '\x02\x00\x00\x00\x05\x00\x00\x00'
    npy "$1/i0.npy" '<i4' '()' '\x02\x00\x00\x00'
    npy "$1/i1.npy" '<i4' '()' '\x04\x00\x00\x00'
    npy "$1/w0.npy" '<i4' '()' '\x01\x00\x00\x00'
    npy "$1/w1.npy" '<i4' '()' '\x05\x00\x00\x00'
    cat >"$1/case.json" <<END
{"source": "here",
 "check": [["check.expect_eq", "y0", "w0"], ["check.expect_eq", "y1", "w1"]],
 "ops": [{"op": "reduce", "ins": ["v0", "v1", "i0", "i1"], "outs": ["y0", "y1"],
  "out_types": [{"shape": [], "dtype": "i32"}, {"shape": [], "dtype": "i32"}],
  "attrs": {"dimensions": [0]}, "region": $2}],
 "consts": {"v0": {"npy": "v0.npy", "shape": [2], "dtype": "i32"},
            "v1": {"npy": "v1.npy", "shape": [2], "dtype": "i32"},
            "i0": {"npy": "i0.npy", "shape": [], "dtype": "i32"},
            "i1": {"npy": "i1.npy", "shape": [], "dtype": "i32"},
            "w0": {"npy": "w0.npy", "shape": [], "dtype": "i32"},
            "w1": {"npy": "w1.npy", "shape": [], "dtype": "i32"}}}
END
}

# The smaller key with its value; a constant that does nothing.
i1='"out_types": [{"shape": [], "dtype": "i1"}]'
i32='"out_types": [{"shape": [], "dtype": "i32"}]'
args='"args": ["k", "v", "l", "w"]'
ops='{"op": "constant", "ins": [], "outs": ["z"], '$i32', "attrs": {"value": 0}},
 {"op": "add", "ins": ["k", "z"], "outs": ["m"], '$i32'},
 {"op": "compare", "ins": ["m", "l"], "outs": ["p"], '$i1',
  "attrs": {"direction": "LT", "compare_type": "SIGNED"}},
 {"op": "select", "ins": ["p", "k", "l"], "outs": ["a"], '$i32'},
 {"op": "select", "ins": ["p", "v", "w"], "outs": ["b"], '$i32'}'
fresh
reduced "$tmp/cases/returns" "{$args, \"ops\": [$ops], \"returns\": [\"a\", \"b\"]}"
reduced "$tmp/cases/return" "[{$args, \"ops\": [$ops,
 {\"op\": \"return\", \"ins\": [\"a\", \"b\"], \"outs\": [], \"out_types\": []}]}]"
run stablehlo "$tmp/cases"
expect "regions" 0 "2 passed, 0 failed, 0 skipped"
fresh
reduced "$tmp/cases/order" "{$args, \"ops\": [$ops], \"returns\": [\"b\", \"a\"]}"
reduced "$tmp/cases/dtype" "{$args, \"ops\": [$ops], \"returns\": [\"p\", \"b\"]}"
reduced "$tmp/cases/few" "{$args, \"ops\": [$ops], \"returns\": [\"a\"]}"
reduced "$tmp/cases/unknown" "{$args, \"ops\": [$ops], \"returns\": [\"a\", \"y\"]}"
reduced "$tmp/cases/args" "{\"args\": [\"k\", \"v\"], \"ops\": [$ops], \"returns\": [\"a\", \"b\"]}"
reduced "$tmp/cases/names" "{\"args\": [1, 2, 3, 4], \"ops\": [], \"returns\": []}"
reduced "$tmp/cases/twice" "{\"args\": [\"k\", \"k\", \"k\", \"k\"], \"ops\": []}"
reduced "$tmp/cases/no_ops" "{$args}"
reduced "$tmp/cases/number" '1'
run stablehlo "$tmp/cases"
expect "malformed regions" 1 "0 passed, 9 failed, 0 skipped"

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

# Each must fail by itself, with a message.
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
# Invalid attributes, each after its operation.
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

# ---- model directories as programs write them --------------------------------

model=$tmp/made/model
mkdir -p "$tmp/made"
cp -r "$root/tests/golden/affine/gptq_4_sym" "$model"
run gptq "$tmp/made"
expect "a directory with values" 0 "1 passed, 0 failed, 0 skipped"
run gptq "$model"
expect "the directory itself" 0 "1 passed, 0 failed, 0 skipped"
size=$(stat -c %s "$model/values.safetensors")
cp "$model/values.safetensors" "$tmp/original"
for at in $((size - 1)) $((size - 999)); do
    printf '\177' | dd of="$model/values.safetensors" bs=1 seek="$at" conv=notrunc \
        status=none
    run gptq "$tmp/made"
    expect "another value" 1 "0 passed, 1 failed, 0 skipped"
    says "another value" out "values of model.layers.0.mlp.down_proj.weight differ"
    cp "$tmp/original" "$model/values.safetensors"
done
rm "$model/values.safetensors"
run gptq "$tmp/made"
expect "a directory without values" 0 "1 passed, 0 failed, 0 skipped"
truncate -s -1 "$model/model.safetensors"
run gptq "$tmp/made"
expect "a model that ends early" 1 "0 passed, 1 failed, 0 skipped"
rm -r "$tmp/made"

# ---- gguf --------------------------------------------------------------------

# q8_0 of 32: a scale of .5, codes 0 .. 31.
fresh
gguf=$tmp/cases/block
mkdir "$gguf"
printf '{"ggml_type": 8, "n": 32}' >"$gguf/meta.json"
codes='' f32='' bf16=''
halves=(0000 3f00 3f80 3fc0 4000 4020 4040 4060 4080 4090 40a0 40b0 40c0 40d0
    40e0 40f0 4100 4108 4110 4118 4120 4128 4130 4138 4140 4148 4150 4158 4160
    4168 4170 4178)
for ((q = 0; q < 32; q++)); do
    codes+="\\x$(printf %02x $q)"
    f32+=$(words "${halves[q]}0000")
    bf16+=$(words "${halves[q]}")
done
npy "$gguf/raw_u8.npy" '|u1' '(34,)' "$(words 3800)$codes"
npy "$gguf/expected_f32.npy" '<f4' '(32,)' "$f32"
npy "$gguf/expected_bf16_bits.npy" '<u2' '(32,)' "$bf16"
run gguf "$tmp/cases"
expect "a right block" 0 "1 passed, 0 failed, 0 skipped"
elements gguf "$gguf/expected_f32.npy" 7
elements gguf "$gguf/expected_bf16_bits.npy" 7
elements gguf "$gguf/raw_u8.npy" 7
for meta in '' '[]' '{}' '{"ggml_type": 8}' '{"ggml_type": 8, "n": 31}' \
    '{"ggml_type": 8, "n": 32.0}' '{"ggml_type": 2, "n": 32}' \
    '{"ggml_type": "8", "n": 32}' '{"ggml_type": -1, "n": 32}'; do
    printf '%s' "$meta" >"$gguf/meta.json"
    run gguf "$tmp/cases"
    expect "gguf: meta.json '$meta'" 1 "0 passed, 1 failed, 0 skipped"
done
printf '{"ggml_type": 31, "n": 32}' >"$gguf/meta.json"
run gguf "$tmp/cases"
expect "an unknown ggml type" 1 "0 passed, 0 failed, 1 skipped"

# ---- bitsandbytes ------------------------------------------------------------

# Three codes (15, 0, 15) in blocks of two; scales 1 and .5.
bnb=$tmp/cases/nf4
table=(bf800000 bf3239b1 bf066b30 beca32a0 be91a24d be3d353f bdba7871 00000000
    3da2faff 3e24cae3 3e7c04dd 3ead033a 3ee1a4b8 3f1007ab 3f3913b3 3f800000)
four_bits()
{
    fresh
    mkdir "$bnb"
    printf '{"kind": "bnb 4bit", "n": 3, "blocksize": 2, "double_quant": %s,
        "nested_offset": 0.25, "nested_blocksize": 256}' "$1" >"$bnb/meta.json"
    npy "$bnb/weight_packed_u8.npy" '|u1' '(2,)' '\xf0\xf7'
    npy "$bnb/quant_map_f32.npy" '<f4' '(16,)' "$(words "${table[@]}")"
    npy "$bnb/expected_f32.npy" '<f4' '(3,)' "$(words 3f800000 bf800000 3f000000)"
    npy "$bnb/expected_bf16_bits.npy" '<u2' '(3,)' "$(words 3f80 bf80 3f00)"
}
four_bits false
npy "$bnb/absmax_f32.npy" '<f4' '(2,)' "$(words 3f800000 3f000000)"
run bitsandbytes "$tmp/cases"
expect "4 bits" 0 "1 passed, 0 failed, 0 skipped"
for file in expected_f32 expected_bf16_bits absmax_f32; do
    elements bitsandbytes "$bnb/$file.npy" 1
done
rm "$bnb/expected_bf16_bits.npy"
run bitsandbytes "$tmp/cases"
expect "4 bits without bf16" 1 "0 passed, 1 failed, 0 skipped"

# The scales again, as .25 + .75 * (1, 1/3): entries 255 and 254 of a map.
four_bits true
map=()
for ((i = 0; i < 254; i++)); do
    map+=(00000000)
done
map+=(3eaaaaab 3f800000)
npy "$bnb/nested_quant_map_f32.npy" '<f4' '(256,)' "$(words "${map[@]}")"
npy "$bnb/absmax_u8.npy" '|u1' '(2,)' '\xff\xfe'
npy "$bnb/nested_absmax_f32.npy" '<f4' '(1,)' "$(words 3f400000)"
npy "$bnb/absmax_dequant_f32.npy" '<f4' '(2,)' "$(words 3f800000 3f000000)"
run bitsandbytes "$tmp/cases"
expect "double quantization" 0 "1 passed, 0 failed, 0 skipped"
for file in expected_f32 expected_bf16_bits absmax_dequant_f32; do
    elements bitsandbytes "$bnb/$file.npy" 3
done

# (2,2) codes; rows with an absmax of 127 and 254.
fresh
mkdir "$bnb"
printf '{"kind": "bnb int8 vectorwise", "out": 2, "inn": 2}' >"$bnb/meta.json"
npy "$bnb/weight_i8.npy" '|i1' '(2, 2)' '\x7f\x81\x01\x00'
npy "$bnb/scb_f32.npy" '<f4' '(2,)' "$(words 42fe0000 437e0000)"
npy "$bnb/expected_f32.npy" '<f4' '(2, 2)' \
    "$(words 42fe0000 c2fe0000 40000000 00000000)"
npy "$bnb/expected_bf16_bits.npy" '<u2' '(2, 2)' "$(words 42fe c2fe 4000 0000)"
run bitsandbytes "$tmp/cases"
expect "8 bits" 0 "1 passed, 0 failed, 0 skipped"
for file in expected_f32 expected_bf16_bits scb_f32; do
    elements bitsandbytes "$bnb/$file.npy" 3
done
for meta in '[]' '{"kind": 1}' '{"kind": "bnb int8 vectorwise"}' \
    '{"kind": "bnb int8 vectorwise", "out": 4, "inn": 1}' \
    '{"kind": "bnb 4bit", "n": 4, "blocksize": 0, "double_quant": false}' \
    '{"kind": "bnb 4bit", "n": 4, "blocksize": 2, "double_quant": 1}' \
    '{"kind": "bnb 4bit", "n": 5, "blocksize": 2, "double_quant": false}'; do
    printf '%s' "$meta" >"$bnb/meta.json"
    run bitsandbytes "$tmp/cases"
    expect "bitsandbytes: meta.json '$meta'" 1 "0 passed, 1 failed, 0 skipped"
done
printf '{"kind": "bnb 3bit"}' >"$bnb/meta.json"
run bitsandbytes "$tmp/cases"
expect "an unknown kind of weights" 1 "0 passed, 0 failed, 1 skipped"

# ---- seed --------------------------------------------------------------------

ref() # FILE DTYPE SHAPE [TOLERANCE]
{
    printf '{"file": "g/%s.npy", "dtype": "%s", "shape": %s, "tol": %s}' \
        "$1" "$2" "$3" "${4:-\"exact\"}"
}

# seed_case ID GROUP OP PARAMS OUTPUTS: of x.
seed_case()
{
    printf '{"id": "%s", "group": %s, "op": "%s", "params": {%s},
        "inputs": {"x": %s}, "outputs": {%s}}' \
        "$1" "$2" "$3" "$4" "$(ref x f32 '[4]')" "$5"
}

# manifest CASE...: index.json; x is 1, -1, 0, 1 with a scale of 1 / 127.
manifest()
{
    local IFS=,
    fresh
    mkdir "$tmp/cases/g"
    printf '{"nf4_table_bits": [], "operands": {"q": {"format": "int8",
        "dtype": "f32", "shape": [4], "params": {"axis": [0]}, "x": %s,
        "codes": %s, "scale": %s, "values": %s}}, "cases": [%s]}' \
        "$(ref x f32 '[4]')" "$(ref codes i8 '[4]')" \
        "$(ref scale f32 '[1]')" "$(ref x f32 '[4]')" "$*" \
        >"$tmp/cases/index.json"
    (
        cd "$tmp/cases/g"
        npy x.npy '<f4' '(4,)' "$(words 3f800000 bf800000 00000000 3f800000)"
        cp x.npy values.npy
        npy values16.npy '<u2' '(4,)' "$(words 3f80 bf80 0000 3f80)"
        npy codes.npy '|i1' '(4,)' '\x7f\x81\x00\x7f'
        npy scale.npy '<f4' '(1,)' "$(words 3c010204)"
        npy nibbles.npy '|u1' '(2, 1)' '\xf0\x7f'
        npy absmax.npy '<f4' '(2,)' "$(words 3f800000 3f800000)"
        npy ternary.npy '|u1' '(1,)' '\x92'
        npy signs.npy '|i1' '(4,)' '\x01\xff\x00\x01'
        npy sum.npy '<f4' '(4,)' "$(words 40000000 c0000000 00000000 40000000)"
        cp sum.npy cotangent.npy
        npy six.npy '<f4' '(4,)' "$(words 40c00000 c0c00000 00000000 40c00000)"
    )
}
int8_case=$(seed_case g1/a 1 int8_quantize '"axis": null' \
    "\"codes\": $(ref codes i8 '[4]'), \"scale\": $(ref scale f32 '[1]'),
     \"values_f32\": $(ref values f32 '[4]'),
     \"values_bf16\": $(ref values16 bf16 '[4]')")
nf4_case=$(seed_case g2/b 2 nf4_quantize '"block_size": 2' \
    "\"packed\": $(ref nibbles u8 '[2, 1]'),
     \"absmax\": $(ref absmax f32 '[2]'),
     \"values_table_f32\": $(ref values f32 '[4]')")
ternary_case=$(seed_case g3/c 3 ternary_quantize '' \
    "\"packed\": $(ref ternary u8 '[1]'), \"values\": $(ref signs i8 '[4]')")
add_case() # TOLERANCE
{
    printf '{"id": "g5/d", "group": 5, "op": "add", "params": {},
        "operands": [{"operand": "q"}, {"array": %s}], "outputs": {"out": %s}}' \
        "$(ref x f32 '[4]')" "$(ref sum f32 '[4]' "$1")"
}
call_case() # CALL
{
    printf '{"id": "g4/e", "group": 4, "params": {"types": ["nf4", "int8"]},
        "inputs": {"x": %s}, "calls": [%s]}' "$(ref x f32 '[4]')" "$1"
}

ste_case=$(printf '{"id": "g6/f", "group": 6, "op": "straight_through",
    "params": {"format": "int8", "block_size": 4},
    "inputs": {"w": %s, "cotangent": %s},
    "outputs": {"value": %s, "gradient": %s}}' \
    "$(ref x f32 '[4]')" "$(ref sum f32 '[4]')" "$(ref values f32 '[4]')" \
    "$(ref cotangent f32 '[4]')")
gradient_case() # EXPRESSION: equivalent to sum(c * x^3)
{
    printf '{"id": "g8/g", "group": 8, "op": "grad", "params": {"expression":
        "%s", "differentiate": ["x"]}, "inputs": {"c": %s, "x": %s},
        "outputs": {"value": {"number": 6, "tol": 1e-6}, "d_x": %s}}' "$1" \
        "$(ref sum f32 '[4]')" "$(ref x f32 '[4]')" "$(ref six f32 '[4]')"
}
grad_case=$(gradient_case "sum(c * f32(bf16(x)^3)): the product is a bf16 \
product, the gradient is rounded to bf16 on its way back")

manifest "$int8_case" "$nf4_case" "$ternary_case" "$(add_case '"exact"')" \
    "$(call_case '{"call": "quantize(x)", "result": {"class": "ArrayNF4",
    "dtype": "f32", "shape": [64], "block_size": 64}}')" \
    "$ste_case" "$grad_case" \
    '{"id": "g6/h", "group": 6, "op": "train_adam"}' \
    "$(gradient_case 'sum(c * sinh(x))')"
# Two maps and a refusal: start of the second slice, whether the other map has
# whole arrays, and the name of the missing axis.
sharding() # START WHOLE NAME
{
    local no='{"exception": "ValueError", "message": "no such axis"}'
    local on='"mesh": [2], "names": ["x"], "shape": [4]'
    printf '{"maps": [{%s, "spec": ["x"], "shard_shape": [2],
        "fully_replicated": false, "replica_id": [0, 0],
        "shards": [[[0, 2]], [[%s, 4]]]},
        {%s, "spec": [], "shard_shape": [4], "fully_replicated": %s,
        "replica_id": [0, 1], "shards": [[[0, 4]], [[0, 4]]]}],
        "refused": [{%s, "spec": ["%s"], "why": "unknown axis",
        "named_sharding": %s, "device_put": %s}]}' \
        "$on" "$1" "$on" "$2" "$on" "$3" "$no" "$no" \
        >"$tmp/cases/sharding.json"
}
sharding 2 true nope
run seed "$tmp/cases"
expect "right cases" 0 "11 passed, 0 failed, 2 skipped"
says "right cases" out "group 1: 1 passed, 0 failed, 0 skipped"
says "right cases" out "group 7: 3 passed, 0 failed, 0 skipped"
for wrong in "1 true nope" "2 false nope" "2 true x"; do
    # shellcheck disable=SC2086
    sharding $wrong
    run seed "$tmp/cases"
    expect "seed: sharding $wrong" 1 "10 passed, 1 failed, 2 skipped"
done
sharding 2 true nope

one_of() # CASE FILE...: every byte of these files
{
    local file
    manifest "$1"
    shift
    run seed "$tmp/cases"
    expect "seed, right" 0 "1 passed, 0 failed, 0 skipped"
    for file in "$@"; do
        elements seed "$tmp/cases/g/$file.npy" 1
    done
}
one_of "$int8_case" codes scale values values16
one_of "$nf4_case" nibbles absmax
one_of "$ternary_case" ternary signs
one_of "$(add_case '"exact"')" sum codes scale
one_of "$ste_case" values cotangent
one_of "$grad_case" six
said=() # equivalent formulas of the same function
for formula in "sum(c * x * x * x)" "u = x * c; sum(u * x^2), any x" "c @ x^3" \
    "-2 sum(x^3 * c) + sum(3 c * x^3); a remark" "sum(mean(c * x^3, 0)) * 4" \
    "mean(c * x^3) * 4" "sum(c[:,None] * x[:,None]^3)" "sum(max(c * x^3, -9))" \
    "sum(reshape(concat(c, c; axis -1), (2, -1)) * x^3) / 2" \
    "sum(c[None,:] @ reshape(x^3, (-1, 1)))" \
    "sum(c * int8(x, axis -1)^3)" "sum(c * nf4(x, block 2)^3), exact table" \
    "sum(c * ste_ternary(x) * x^2)  (a remark)"; do
    said+=("$(gradient_case "$formula")")
done
manifest "${said[@]}"
run seed "$tmp/cases"
expect "seed: formulas" 0 "${#said[@]} passed, 0 failed, 0 skipped"
said=()
for formula in "sum(c * x^3" "sum(c * x^3) x" "sum(q * x)" "sum()" \
    "sum(c * x^3, first)" "sum(c * nf4(x, rows 2))" "c[1,2]" "u = x" "" \
    "$(printf '(%.0s' {1..99})x"; do
    said+=("$(gradient_case "$formula")")
done
manifest "${said[@]}"
run seed "$tmp/cases"
expect "seed: no formulas" 1 "0 passed, 0 failed, ${#said[@]} skipped"
manifest "${grad_case/: 6,/: 6.0001,}"
run seed "$tmp/cases"
expect "seed: another value" 1 "0 passed, 1 failed, 0 skipped"
manifest '{"id": "g8/g", "group": 8}'
run seed "$tmp/cases"
expect "seed: no expression" 1 "0 passed, 1 failed, 0 skipped"

# Tolerances: the exact result is 2, -2, 0, 2.
added() # WHAT TOLERANCE EXPECTED PASSED FAILED
{
    manifest "$(add_case "$2")"
    # shellcheck disable=SC2086
    npy "$tmp/cases/g/sum.npy" '<f4' '(4,)' "$(words $3)"
    run seed "$tmp/cases"
    expect "seed: $1" "$5" "$4 passed, $5 failed, 0 skipped"
}
added "-0 is not 0" '"exact"' "40000000 c0000000 80000000 40000000" 0 1
added "-0 is near 0" '0, "tol_of": "element"' \
    "40000000 c0000000 80000000 40000000" 1 0
added "1 ulp, too much" '1e-7, "tol_of": "element"' \
    "40000001 c0000000 00000000 40000000" 0 1
added "1 ulp, allowed" '2e-7, "tol_of": "element"' \
    "40000001 c0000000 00000000 40000000" 1 0
added "1 ulp of the largest" '2e-7, "tol_of": "array"' \
    "40000000 c0000000 34800000 40000000" 1 0
added "1 ulp of another" '2e-7, "tol_of": "element"' \
    "40000000 c0000000 34800000 40000000" 0 1
added "the smallest normal number" '2e-7, "tol_of": "element"' \
    "40000000 c0000000 00800000 40000000" 0 1
added "infinity" '1e30, "tol_of": "array"' \
    "40000000 c0000000 7f800000 40000000" 0 1
added "a tolerance that is none" '-1, "tol_of": "array"' \
    "40000000 c0000000 00000000 40000000" 0 1

# Calls and their expected results.
is() # CLASS DTYPE SHAPE MORE
{
    printf '"result": {"class": "%s", "dtype": "%s", "shape": %s%s}' "$@"
}
right="2 passed, 0 failed, 0 skipped"
wrong="1 passed, 1 failed, 0 skipped"
odd="1 passed, 0 failed, 1 skipped"
called() # CALL RESULT LAST-LINE
{
    manifest "$(call_case "{\"call\": \"$1\", $2}")"
    run seed "$tmp/cases"
    local failed=0
    [ "$3" != "$wrong" ] || failed=1
    expect "seed: $1" $failed "$3"
}
refused='"exception": "ValueError"'
nf4='ArrayNF4 f32'
# shellcheck disable=SC2086
{
    called "quantize(x)" "$(is $nf4 '[64]' ', "block_size": 64')" "$right"
    called "quantize(x)" "$(is $nf4 '[64]' ', "block_size": 32')" "$wrong"
    called "quantize(x)" "$(is $nf4 '[65]' '')" "$wrong"
    called "quantize(x)" "$(is ArrayNF4 bf16 '[64]' '')" "$wrong"
    called "quantize(x)" "$(is Array8B f32 '[4]' '')" "$wrong"
    called "quantize(x)" "$(is dense f32 '[4]' '')" "$wrong"
    called "quantize(x)" "$refused" "$wrong"
    called "quantize(x[:3], dtype='int8' as enum)" \
        "$(is Array8B f32 '[3]' ', "axis": [-1]')" "$right"
    called "quantize(bf16 x, dtype='int8', simulate=True)" \
        "$(is dense bf16 '[4]' '')" "$right"
    called "quantize(x, config=QuantizationConfig('nf4', 8), dtype='int8')  [x]" \
        "$(is $nf4 '[8]' ', "block_size": 8')" "$right"
    called "quantize(zeros(), dtype='int8')" "$refused" "$right"
    called "quantize(zeros(2, 0), dtype='nf4')" "$refused" "$right"
    called "quantize(x, dtype='int4')" "$refused" "$right"
    called "quantize(x, dtype=5)" "$refused" "$right"
    called "quantize(x, dtype='int4')" "$(is $nf4 '[4]' '')" "$wrong"
    called "QuantizationConfig(dtype=5)" "$(is QuantizationConfig '' '[]' '')" \
        "$right"
    for block in 0 -2 3 64.0; do
        called "quantize(x, block_size=$block)" "$refused" "$right"
    done
    called "quantize(x, block_size=2)" "$refused" "$wrong"
    called "quantize(int32 array, dtype='int8')" "$refused" "$right"
    called "quantize(x, odd=1)" "$refused" "$odd"
    called "quantise(x)" "$refused" "$odd"
    called "quantize(x" "$refused" "$odd"
}

# An invalid manifest, and cases that break its rules.
printf '{"cases": {}}' >"$tmp/cases/index.json"
run seed "$tmp/cases"
expect "seed: no list of cases" 2 ""
rm "$tmp/cases/index.json"
run seed "$tmp/cases"
expect "seed: no manifest" 2 ""
bent() # SED-SCRIPT: breaks a valid manifest, which then fails
{
    manifest "$int8_case" "$(add_case '"exact"')"
    cp "$tmp/cases/index.json" "$tmp/before"
    sed -i -e "$1" "$tmp/cases/index.json"
    ! cmp -s "$tmp/cases/index.json" "$tmp/before" ||
        die "seed: '$1' changes nothing"
    run seed "$tmp/cases"
    checks=$((checks + 1))
    if [ "$status" != 1 ] || ! grep -q '^FAIL [a-z0-9/]*: .' "$tmp/out"; then
        die "seed: '$1' does not fail"
    fi
}
bent 's/"outputs": {"codes"/"outputs": {}, "more": {"codes"/'
bent 's/"file": "g\/codes.npy"/"file": "..\/cases\/g\/codes.npy"/'
bent 's/"file": "g\/codes.npy"/"file": "g\/gone.npy"/'
bent 's/"file": "g\/codes.npy"/"file": "g\/\/codes.npy"/'
bent 's/"file": "g\/codes.npy"/"file": "\/g\/codes.npy"/'
bent 's/"file": "g\/codes.npy"/"file": ""/'
bent 's/"file": "g\/codes.npy"/"number": 1/'
bent 's/"dtype": "i8"/"dtype": "u8"/'
bent 's/"shape": \[4\], "tol"/"shape": [2, 2], "tol"/'
bent 's/"axis": null/"axis": [1]/'
bent 's/"axis": null/"axis": "0"/'
bent 's/"axis": null/"axis": [0, 0]/'
bent 's/"operand": "q"/"operand": "p"/'
bent 's/"format": "int8"/"format": "odd"/'
bent 's/"format": "int8"/"format": "nf4"/'
bent 's/"op": "add"/"op": "sqrt"/'
bent 's/"op": "add"/"op": 1/'
bent 's/"op": "add"/"op": "gather"/'
bent 's/"op": "add", "params": {}/"op": "dot_general", "params": {"lhs_contract": [1]}/'
bent 's/"op": "add", "params": {}/"op": "conv_general_dilated", "params": {"dimension_numbers": ["", "", ""]}/'
bent 's/"op": "add", "params": {}/"op": "reshape", "params": {"new_sizes": [4]}/'

# ---- parsers: verdicts on files ----------------------------------------------

fresh
mkdir "$tmp/cases/npy"
npy "$tmp/cases/npy/good.npy" '<i2' '(2,)' '\x01\x00\xff\x7f'
head -c 30 "$tmp/cases/npy/good.npy" >"$tmp/cases/npy/cut.npy"
hash=$(tail -c 4 "$tmp/cases/npy/good.npy" | sha256sum | cut -d ' ' -f 1)
parsers() # WHAT FILE EXPECT MORE PASSED
{
    echo "{\"$2\": {\"expect\": \"$3\"$4}}" >"$tmp/cases/npy/manifest.json"
    run parsers "$tmp/cases"
    expect "$1" $((1 - $5)) "$5 passed, $((1 - $5)) failed, 0 skipped"
}
listed=', "shape": [2], "dtype": "<i2"'
parsers "accepted" good.npy accept "$listed, \"sha_c_order\": \"$hash\"" 1
parsers "rejected" cut.npy "reject: cut" "" 1
parsers "either" cut.npy "accept / may reject" "" 1
parsers "wrongly accepted" good.npy reject "" 0
parsers "wrongly rejected" cut.npy accept "" 0
parsers "another shape" good.npy accept ', "shape": [2, 1]' 0
parsers "another dtype" good.npy accept ', "dtype": "<u2"' 0
parsers "other bytes" good.npy accept ", \"sha_c_order\": \"0${hash#?}\"" 0
parsers "no verdict" good.npy maybe "" 0
parsers "no such file" none.npy reject "" 0
parsers "a path" ../npy/cut.npy reject "" 0

# ---- transformers: a model made again ----------------------------------------

fresh
lowbit=$(dirname "$program")/../lowbit
[ -x "$lowbit" ] || lowbit=$root/build/lowbit
mkdir "$tmp/cases/base"
cp "$root/tests/golden/layouts/bnb4.values" "$tmp/cases/base/model.safetensors"
model=$tmp/cases/nf4/model.safetensors
"$lowbit" quantize "$tmp/cases/base" -o "$tmp/cases/nf4" --type nf4 \
    --layout bnb -q
run transformers "$tmp/cases"
expect "the same model" 0 "1 passed, 0 failed, 4 skipped"
size=$(stat -c %s "$model")
for at in 9 $((size / 2)) $((size - 1)); do
    cp "$model" "$tmp/original"
    printf '\377' | dd of="$model" bs=1 seek="$at" conv=notrunc status=none
    run transformers "$tmp/cases"
    expect "byte $at of the model changed" 1 "0 passed, 1 failed, 4 skipped"
    cp "$tmp/original" "$model"
done
rm "$tmp/cases/base/model.safetensors"
run transformers "$tmp/cases"
expect "no model" 2 ""

echo "test_conformance_runner.sh: $checks checks passed"
