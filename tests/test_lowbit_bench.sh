#!/usr/bin/env bash
# test_lowbit_bench.sh PROGRAM - lowbit-bench, the other name of `lowbit bench`.
#
# Usage errors exit with 2 and a message that names them; every benchmark runs
# on a tiny case; JSON is one object per line, with the requested members and
# small errors. Speeds are not checked.
# ctest: skip-ref
set -euo pipefail
export LC_ALL=C
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

# refused TEXT ARGUMENT...: fails with a message that has TEXT, no stdout.
refused()
{
    local text=$1
    shift
    run 2 "$@"
    grep -qF -- "$text" "$tmp/err" || die "'$*': does not say '$text'"
    [ ! -s "$tmp/out" ] || die "'$*': prints something"
}

# lines N: stdout has N JSON objects, without nesting, and nothing else.
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

has() # TEXT: is in the output of the last run
{
    checks=$((checks + 1))
    grep -qF -- "$1" "$tmp/out" || die "'$1' is not in what it prints"
}

# ---- arguments ---------------------------------------------------------------

run 0 --help
has "usage: lowbit bench"
has "--openblas"
run 0 --version
has "lowbit "
refused "unknown option '--odd'" --odd
refused "bench takes no arguments (got 1)" int8
refused "unknown option '--formatsx'" --formatsx int8
refused "option '--m' needs a value" --m
refused "--m is given twice" --m 1 --m 2
numbers="--m takes integers from 1 to 1048576, not"
refused "$numbers '0'" --m 0
refused "$numbers '-1'" --m=-1
refused "$numbers ''" --m 1,,2
refused "$numbers ''" --m ""
refused "$numbers '8x'" --m 8x
refused "$numbers '99999999999999999999'" --m 99999999999999999999
refused "--jobs takes integers from 1 to 256 or all, not '257'" --threads 257
refused "--jobs takes integers from 1 to 256 or all, not '0'" --threads 1,0
refused "more than 32 items" --m "$(seq -s, 33)"
refused "--precisions takes highest, fast, fastest, not 'best'" --precisions fast,best
refused "--act takes f32, bf16, f16, not 'f64'" --act f64
refused "--weights takes warm, dram, not 'cold'" --weights cold
refused "--orient takes wt, w, not 't'" --orient t
for shape in 4096 4x 4x4x4 99999999x8; do
    refused "shapes NxK such as 4096x4096, each from 1 to 16777216, not '$shape'" \
        --shape 8x8,$shape
done
refused "--seconds takes a number from 0 to 3600, not 'soon'" --seconds soon
refused "--seconds takes a number from 0 to 3600, not 'nan'" --seconds nan
refused "--size takes an integer (MiB) from 1 to 65536, not '1.5'" --codec --size 1.5
refused "--type: empty or too long name" --formats int8,
refused "--codec and --error: one benchmark at a time" --codec --error
refused "--m does not apply to --codec" --codec --m 8
refused "--k does not apply to --products" --k 8
refused "unknown type 'int9'; did you mean int8?" --formats int9
refused "unknown type 'int9'; did you mean int8?" --codec --formats nf4,int9
refused '--isa is "odd": not one of ref' --isa odd
refused '--isa is "odd": not one of ref' --limits --isa odd
refused "--svg: cannot write to standard output" --svg -

# ---- products ----------------------------------------------------------------

tiny=(--json --seconds 0 --threads 1)
run 0 "${tiny[@]}" --formats int8,nf4,ternary,binary --m 1,8 --weights warm \
    --precisions highest,fast,fastest --shape 16x64
lines 24
has '{"format": "int8", "precision": "highest", "m": 1, "threads": 1, "weights": "warm", "gflops": '
has '"isa": "'
has '{"format": "binary", "precision": "fastest", "m": 8, "threads": 1, "weights": "warm", "gflops": '
if grep -q null "$tmp/out"; then die "a figure is not finite"; fi

# errors MOST: every printed error is a number and at most MOST.
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
# A container may have a CPU quota below that.
if [ "$threads" -lt 1 ] || [ "$threads" -gt "$cores" ]; then
    die "--threads all is $threads, of $cores cores"
fi
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

# If it is installed.
status=0
"$program" "${tiny[@]}" --openblas --m 2 --shape 8x8 >"$tmp/out" \
    2>"$tmp/err" || status=$?
if [ $status = 0 ]; then
    lines 1
else
    grep -q "libopenblas" "$tmp/err" || die "--openblas does not say why not"
fi

echo "test_lowbit_bench.sh: $checks checks passed"
