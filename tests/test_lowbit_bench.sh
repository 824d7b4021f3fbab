#!/usr/bin/env bash
# test_lowbit_bench.sh PROGRAM - does lowbit-bench do what it is asked for?
#
# Arguments that make no sense are refused with exit status 2 and a sentence
# that names them; every mode runs on something tiny; JSON is JSON, one object
# a line, with what was asked for in it and errors that are small. How fast
# anything is, is not looked at.
# ctest: skip-ref
set -euo pipefail
program=${1:?usage: test_lowbit_bench.sh PROGRAM}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
checks=0

die()
{
    echo "test_lowbit_bench.sh: $*" >&2
    sed 's/^/    /' "$tmp/out" "$tmp/err" >&2
    exit 1
}

# run STATUS ARGUMENT...: leaves $tmp/out and $tmp/err.
run()
{
    local want=$1 status=0
    shift
    checks=$((checks + 1))
    "$program" "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" = "$want" ] || die "'$*': exit status $status, not $want"
}

# refused TEXT ARGUMENT...: a sentence with TEXT, and nothing on stdout.
refused()
{
    local text=$1
    shift
    run 2 "$@"
    grep -qF -- "$text" "$tmp/err" || die "'$*': does not say '$text'"
    [ ! -s "$tmp/out" ] || die "'$*': prints something"
}

# lines N: JSON objects on stdout, and nothing else. The grammar is that of
# what the program may print: no nesting.
lines()
{
    local string='"([^"\\]|\\.)*"' number='-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?'
    local member="$string: ($string|$number|true|false|null)"
    checks=$((checks + 1))
    [ "$(wc -l <"$tmp/out")" = "$1" ] || die "not $1 lines"
    if grep -vqE "^\{$member(, $member)*\}$" "$tmp/out"; then
        die "a line is not JSON"
    fi
}

has() # TEXT: somewhere in what the last run printed
{
    checks=$((checks + 1))
    grep -qF -- "$1" "$tmp/out" || die "'$1' is not in what it prints"
}

# ---- arguments ---------------------------------------------------------------

run 0 --help
has "usage: lowbit-bench"
has "--openblas"
run 0 --version
has "lowbit-bench "
refused "unknown argument '--odd'" --odd
refused "unknown argument 'int8'" int8
refused "unknown argument '--formatsx'" --formatsx int8
refused "--m wants a value" --m
refused "--m twice" --m 1 --m 2
refused "'0' is not a number from 1" --m 0
refused "'-1' is not a number from 1" --m=-1
refused "'' is not a number from 1" --m 1,,2
refused "'' is not a number from 1" --m ""
refused "'8x' is not a number from 1" --m 8x
refused "'257' is neither a number from 1 to 256 nor all" --threads 257
refused "'99999999999999999999' is not" --m 99999999999999999999
refused "more than 32 items" --m "$(seq -s, 33)"
refused "'best' is none of highest, fast, fastest" --precisions fast,best
refused "'f64' is none of f32, bf16, f16" --act f64
refused "'cold' is none of warm, dram" --weights cold
refused "'t' is none of wt, w" --orient t
refused "'4096' is not a shape" --shape 4096
refused "'4x' is not a shape" --shape 8x8,4x
refused "'4x4x4' is not a shape" --shape 4x4x4
refused "'soon' is not a number from 0" --seconds soon
refused "'nan' is not a number from 0" --seconds nan
refused "an empty or too long name" --formats int8,
refused "--codec and --error: one at a time" --codec --error
refused "--m means nothing to --codec" --codec --m 8
refused "--k means nothing to the sweep" --k 8
refused "'0' is neither a number from 1 to 256 nor all" --threads 1,0
refused "each from 1 to 16777216" --shape 99999999x8
refused "'int9' is none of f32" --formats int9
refused "'int9' is none of f32" --codec --formats nf4,int9
refused '--isa is "odd": not one of ref' --isa odd
refused '--isa is "odd": not one of ref' --limits --isa odd

# ---- products ----------------------------------------------------------------

tiny=(--json --seconds 0 --threads 1)
run 0 "${tiny[@]}" --formats int8,nf4,ternary,binary --m 1,8 --weights warm \
    --precisions highest,fast,fastest --shape 16x64
lines 24
has '{"format": "int8", "precision": "highest", "m": 1, "threads": 1, "weights": "warm", "gflops": '
has '"isa": "'
has '{"format": "binary", "precision": "fastest", "m": 8, "threads": 1, "weights": "warm", "gflops": '
if grep -q null "$tmp/out"; then die "a figure is not finite"; fi

# errors MOST: every error that was printed is a number, and at most so large.
errors()
{
    checks=$((checks + 1))
    sed 's/.*"error": \([^,}]*\).*/\1/' "$tmp/out" |
        awk -v most="$1" '!($1 + 0 <= most + 0) || $1 !~ /^[0-9]/ { exit 1 }' ||
        die "an error is above $1"
}
run 0 "${tiny[@]}" --formats all --m 3 --shape 256x256 --orient wt,w \
    --precisions highest --act f32,bf16
errors 1e-6
[ "$(grep -c '"orient": "w"' "$tmp/out")" = $(($(wc -l <"$tmp/out") / 2)) ] ||
    die "not half of them x @ W"
has '"format": "f32"'
has '"format": "tq2_0"'
has '"act": "bf16"'
run 0 --json --seconds 0 --formats f32,bf16,f16 --m 2 --shape 7x5 \
    --threads 1,2 --precisions highest --orient wt,w
lines 12
errors 1e-6
run 0 "${tiny[@]}" --formats int8 --m 1 --shape 1024x1024 --weights dram \
    --precisions highest
lines 1
has '"weights": "dram"'
errors 1e-6

# ---- the other modes -----------------------------------------------------------

run 0 "${tiny[@]}" --codec --size 1 --formats all
has '"what": "quantize"'
has '"what": "dequantize"'
has '"dtype": "f16"'
run 0 "${tiny[@]}" --calls --formats f32,nf4
lines 4
run 0 "${tiny[@]}" --limits
lines 1
has '"lookup_gops": '
run 0 --json --seconds 0 --threads all,1,2 --calls --formats f32
lines 6
threads=$(sed -n '1s/.*"threads": \([0-9]*\).*/\1/p' "$tmp/out")
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) # nproc obeys those
[ "$threads" = "$cores" ] || die "--threads all is $threads, not $cores"
run 0 --json --error --k 1,33,300 --formats f32,nf4 --threads 2
lines 108
has '"x": "outliers"'
run 0 --error --k 64,100 --formats int8 --precisions highest
has "1e-06"
run 0 --formats f32,int8 --m 1,2 --shape 64x64 --seconds 0 --threads 1 \
    --svg "$tmp/plot.svg"
has "of limit"
run 0 --formats binary --precisions fast --m 8 --shape 256x256 --seconds 0 \
    --threads 1
if grep -q "^level avx2" "$tmp/out"; then has "of lookup"; fi
grep -q '^</svg>$' "$tmp/plot.svg" || die "no plot"
[ "$(grep -c '<title>' "$tmp/plot.svg")" = 8 ] || die "not 8 points"
run 1 --formats f32 --m 1 --shape 8x8 --seconds 0 --threads 1 \
    --precisions highest --svg "$tmp/nowhere/plot.svg"
[ ! -s "$tmp/out" ] || die "measures before it looks where to draw"

# Where it is installed.
status=0
"$program" "${tiny[@]}" --openblas --m 2 --shape 8x8 >"$tmp/out" \
    2>"$tmp/err" || status=$?
if [ $status = 0 ]; then
    lines 1
else
    grep -q "libopenblas" "$tmp/err" || die "--openblas does not say why not"
fi

echo "test_lowbit_bench.sh: $checks checks passed"
