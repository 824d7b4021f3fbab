#!/usr/bin/env bash
# test_cli_json.sh PROGRAM - JSON output of every verb: one object, its first
# members, shapes, errors (docs/json.md). Run it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
version=$("$program" --version | cut -d ' ' -f 2)
src=tests/golden/layouts/bnb4.values

# follows_schema VERB FAILED [FILE]: the last output, or a report, does.
follows_schema()
{
    checks=$((checks + 1))
    awk -v types=1 -f tests/json.awk "${3:-$tmp/out}" >"$tmp/types"
    awk -v verb="$1" -v failed="$2" -v report=$(($# - 2)) \
        -f tests/json_schema.awk docs/json.md "$tmp/types" >"$tmp/wrong" ||
        die "$1: $(cat "$tmp/wrong")"
}

# json STATUS VERB ARGUMENT...: one object, with the first members of all.
json()
{
    local status=0 want=$1 verb=$2
    shift
    checks=$((checks + 1))
    "$program" "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" = "$want" ] || die "'$*': exit status $status, not $want"
    awk -f tests/json.awk "$tmp/out" >"$tmp/flat" 2>>"$tmp/err" ||
        die "'$*': not one JSON value"
    printf '.lowbit %s\n.schema 1\n.verb %s\n' "$version" "$verb" >"$tmp/want"
    follows_schema "$verb" $((want != 0))
    head -n 3 "$tmp/flat" | cmp -s "$tmp/want" - || die "'$*': other first members"
    is '.warnings [] 0'
}

is() # LINE: is in the flat form of the last object
{
    checks=$((checks + 1))
    grep -qxF -- "$1" "$tmp/flat" || die "no '$1' in $(cat "$tmp/flat")"
}

# fails STATUS KIND TEXT VERB ARGUMENT...: an error object and the message.
fails()
{
    local status=$1 kind=$2 text=$3
    shift 3
    json "$status" "$@" --json
    is ".error.exit $status"
    is ".error.kind $kind"
    grep '^\.error\.message ' "$tmp/flat" | grep -qF -- "$text" ||
        die "'$*': the message is not '$text'"
    grep -qF -- "$text" "$tmp/err" || die "'$*': stderr is not '$text'"
}

# ---- results -----------------------------------------------------------------

bnb=tests/golden/layouts/bnb8.safetensors
json 0 info "$bnb" --json
is ".path $bnb"
is ".parameters 248"
is ".bytes 293"
is ".arrays [] 3"
is ".arrays[1].name a.weight"
is ".arrays[1].format int8"
is ".arrays[1].dtype f32"
is ".arrays[1].shape [] 2"
is ".arrays[1].shape[1] 33"
is ".arrays[1].bytes 260"
json 0 info "$golden/shapes.safetensors" --json
is ".arrays[0].shape [] 0"
json 0 formats --json
is ".formats[1].format nf4"
is ".formats[1].bits_per_weight 4.5"
json 0 cpu --json
grep -q '^\.threads [0-9]*$' "$tmp/flat" || die "no threads"
json 0 bench --quick --type nf4 --m 2 --shape 64x32 --json
is ".results[0].quantize_gb_s null"
is ".results[1].bytes 1280"
json 0 bench --calls --quick --type nf4 --json
is ".results[1].n 64"
run 0 info --json --help # help is not JSON
has "usage: lowbit info"

# Verbs that write, and their reports.
f32=$tmp/f32.safetensors
run 0 convert "$src" -o "$f32" --dtype f32 -q
json 0 stats "$bnb" --json
is ".arrays[0].codes null"
is ".arrays[1].codes.first -127"
json 0 stats "$golden/types.gguf" --json
json 0 check "$bnb" --json
json 0 diff "$bnb" "$bnb" --json
json 1 diff "$src" "$bnb" --json
is ".error.kind differs"
is ".nrmse null"
run 1 diff "$f32" "$bnb" -q --report "$tmp/report.json"
follows_schema quantize 0 "$tmp/report.json"
for job in "quantize $f32 --type nf4" "quantize $f32 --type nf4 --dry-run" \
    "dequantize $bnb" "convert $bnb" "convert $f32"; do
    read -ra words <<<"$job"
    to=(-o "$tmp/to.safetensors" --report "$tmp/report.json")
    case $job in
    *dry-run) to=() ;;
    "convert $f32") to=(-o "$tmp/to.npz") ;;
    esac
    json 0 "${words[@]}" "${to[@]}" --force -q --json
    is ".source ${words[1]}"
    case $job in
    *dry-run) is ".output null" && is ".dry_run true" ;;
    "convert $f32") is ".output $tmp/to.npz" ;;
    *)
        is ".output $tmp/to.safetensors"
        follows_schema "${words[0]}" 0 "$tmp/report.json"
        sed 's/, "warnings": \[\]}$/}/' "$tmp/out" |
            cmp -s "$tmp/report.json" - || die "$job: --json is not its report"
        ;;
    esac
done
json 0 shard "$f32" -o "$tmp/ranks" --mesh x=2 --spec '.=P(x)' --relaxed --json
is ".ranks 2"
json 0 shard "$f32" --dry-run --mesh x=2 --spec '.=P(x)' --relaxed --json
is ".output null"
json 0 merge "$tmp/ranks" -o "$tmp/merged.safetensors" --json -q
is ".arrays[0].format dense"

# ---- errors ------------------------------------------------------------------

for verb in $("$program" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    fails 2 usage "--no-such" "$verb" --no-such
    fails 2 usage "$verb" "$verb" 1 2 3 4
done
for verb in info check stats "diff $src" convert dequantize \
    "quantize --type nf4" "shard --mesh x=2 --spec .=P(x)" merge; do
    read -ra words <<<"$verb"
    case $verb in
    convert | dequantize | quantize* | shard* | merge)
        words+=(-o "$tmp/o.safetensors")
        ;;
    esac
    fails 1 failed "no/such: cannot open: No such file" "${words[@]}" no/such
    fails 3 invalid_file "unknown file format" "${words[@]}" Makefile
done
fails 4 strict "as requested" quantize "$golden/sharded" \
    -o "$tmp/o.gguf" --type q8_0 --include w --strict --container-only

status=0
"$program" frobnicate --json >"$tmp/out" 2>"$tmp/err" || status=$?
[ "$status" = 2 ] || die "frobnicate: exit status $status"
awk -f tests/json.awk "$tmp/out" >"$tmp/flat" || die "frobnicate: not JSON"
is ".verb null"
is ".error.kind usage"
refused 2 "(got 2)" info -- --json a # the name of a file

finish
