#!/usr/bin/env bash
# test_cli.sh PROGRAM - does `lowbit` do what it is asked for?
#
# Every verb and option, exact output where it is not long, every exit status.
# Data are on stdout, talk is on stderr. To be run in the project's root.
set -euo pipefail
program=${1:?usage: test_cli.sh PROGRAM}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
golden=tests/golden/io
checks=0

die()
{
    echo "test_cli.sh: $*" >&2
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
    [ "$want" != 0 ] || [ ! -s "$tmp/err" ] || die "'$*': talks"
}

# refused STATUS TEXT ARGUMENT...: a sentence with TEXT, nothing on stdout.
refused()
{
    local status=$1 text=$2
    shift 2
    run "$status" "$@"
    grep -qF -- "$text" "$tmp/err" || die "'$*': does not say '$text'"
    [ ! -s "$tmp/out" ] || die "'$*': prints something"
}

# prints ARGUMENT... <<TEXT: exactly that.
prints()
{
    cat >"$tmp/want"
    run 0 "$@"
    diff "$tmp/want" "$tmp/out" >"$tmp/diff" ||
        die "'$*': $(cat "$tmp/diff")"
}

has() # TEXT: a line of what the last run printed
{
    checks=$((checks + 1))
    grep -qF -- "$1" "$tmp/out" || die "'$1' is not in what it prints"
}

# ---- the command -------------------------------------------------------------

run 2
grep -q '^usage: lowbit VERB' "$tmp/err" || die "no usage"
run 0 --help
has "usage: lowbit VERB"
has "  info "
run 0 --version
has "lowbit $(sed -n 's/.*LB_VERSION_STRING "\(.*\)"/\1/p' include/lowbit.h)"
refused 2 "no verb 'inof'" inof
"$program" info "$golden/types.gguf" >/dev/full 2>"$tmp/err" &&
    die "a full disk is a success"
grep -q 'cannot write to stdout' "$tmp/err" || die "a full disk is not named"

# ---- info --------------------------------------------------------------------

run 0 info --help
has "usage: lowbit info FILE [OPTION].."
has "  -h, --help"
refused 2 "info takes FILE, and 0 are given" info
refused 2 "info takes FILE, and 2 are given" info a b
refused 2 "'--no-such' is no option of it" info --no-such
refused 2 "'--quiet' is no option of it" info --quiet a
refused 1 "no/such: cannot open: No such file" info no/such
refused 1 "a directory without model.safetensors" info "$tmp"
refused 3 "not recognized" info Makefile
head -c 20 "$golden/types.safetensors" >"$tmp/cut"
refused 3 "in a file of 20" info "$tmp/cut"

prints info "$golden/shapes.safetensors" <<END
$golden/shapes.safetensors: safetensors, 6 arrays, 16 elements, 31 B, 15.5 bits each
scalar  f32                      4  ()
none    bf16                     0  (0,5)
a-b     f16                     12  (2,3)
a.b     f16                     12  (2,3)
one     i8                       1  (1)
deep    u8                       2  (1,1,1,1,1,1,1,1,1,2)
END
prints info -- "$golden/fields.npy" <<END
$golden/fields.npy: npy, 1 array, 2 elements, 42 B, 168 bits each
fields  ([('a', '<i4'), ('b', '>f8', (2,)..)            42  (2)
END
prints info --metadata "$golden/sharded" <<END
$golden/sharded: safetensors_index, 4 arrays, 16 elements, 44 B, 22 bits each
format = "pt"
layer.0.b   f32                     12  (3)
layer.0.wé  f16                      8  (2,2)
layer.1.b   f32                     12  (3)
layer.1.wé  f16                     12  (2,3)
END
prints info --json "$golden/scalar.npy" <<END
{"path": "$golden/scalar.npy", "kind": "npy", "elements": 1, "bytes": 4, "metadata": {}, "arrays": [
{"name": "scalar", "type": "<f4", "format": "dense", "dtype": "f32", "layout": null, "shape": [], "tensors": 1, "bytes": 4}]}
END
run 0 info "$golden/names.safetensors"
has 'tab\x09new\x0abell\x07\x1f'
run 0 info --metadata "$golden/values.gguf"
for line in 'x.u8 = 200' 'x.i8 = -3' 'x.i16 = -30000' 'x.u32 = 4000000000' \
    'x.i32 = -2000000000' 'x.f32 = 1.5' 'x.bool = true' \
    'x.u64 = 18446744073709551615' 'x.i64 = -9223372036854775808' \
    'x.f64 = -0.10000000000000001' 'x.text = "héllo"' \
    'x.words = {"array": 3}'; do
    has "$line"
done

echo "test_cli.sh: $checks checks passed"
