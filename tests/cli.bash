#!/usr/bin/env bash
# cli.bash - shared by the tests of the command `lowbit`; $1 is the program.
#
# Sets $tmp, which is removed at the end, and $golden.
export LC_ALL=C
program=${1:?usage: $0 PROGRAM [FAULTY]}
# shellcheck disable=SC2034
faulty=${2:-} # the same with a file system that fails, see tests/faults.h
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# shellcheck disable=SC2034
golden=tests/golden/io
checks=0
# With stdin closed, the numbers of descriptors and of calls to open differ.
[ -e /dev/fd/0 ] || exec </dev/null

die()
{
    echo "$(basename "$0"): $*" >&2
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
    [ "$want" != 0 ] || [ ! -s "$tmp/err" ] || die "'$*': unexpected output on stderr"
}

# refused STATUS TEXT ARGUMENT...: fails with a message that has TEXT, no stdout.
refused()
{
    local status=$1 text=$2
    shift 2
    run "$status" "$@"
    grep -qF -- "$text" "$tmp/err" || die "'$*': does not say '$text'"
    [ ! -s "$tmp/out" ] || die "'$*': prints something"
}

# prints ARGUMENT... <<TEXT: stdout is exactly TEXT.
prints()
{
    cat >"$tmp/want"
    run 0 "$@"
    diff "$tmp/want" "$tmp/out" >"$tmp/diff" ||
        die "'$*': $(cat "$tmp/diff")"
}

has() # TEXT: is a line in the output of the last run
{
    checks=$((checks + 1))
    grep -qF -- "$1" "$tmp/out" || die "'$1' is not in what it prints"
}

# safetensors FILE HEADER BYTES: BYTES as for printf.
safetensors()
{
    local LC_ALL=C # lengths are those in bytes
    # shellcheck disable=SC2059
    {
        printf "$(printf '\\x%02x\\x%02x' $((${#2} % 256)) $((${#2} / 256)))"
        printf '\0\0\0\0\0\0%s' "$2"
        printf "$3"
    } >"$1"
}

# put_bytes FILE OFFSET BYTES: overwrites bytes of a file.
put_bytes()
{
    # shellcheck disable=SC2059
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# letters_model ARRAYS: makes $tmp/model in two shards. Its bytes are letters and
# digits, which are finite values; each array has 1 MiB, (512,512) of f32.
letters_model()
{
    local each=$(($1 / 2)) size=1048576 index='' name header i k
    mkdir "$tmp/model"
    for k in 0 1; do
        name=model-0000$((k + 1))-of-00002.safetensors header=''
        for ((i = 0; i < each; i++)); do
            header+=$(printf ',"layers.%02d.weight":{"dtype":"F32",' \
                $((k * each + i)))
            header+=$(printf '"shape":[512,512],"data_offsets":[%d,%d]}' \
                $((i * size)) $(((i + 1) * size)))
            index+=$(printf ',"layers.%02d.weight":"%s"' $((k * each + i)) \
                "$name")
        done
        safetensors "$tmp/model/$name" "{${header:1}}" ''
        base64 -w0 /dev/urandom | head -c $((each * size)) \
            >>"$tmp/model/$name" || true
    done
    echo "{\"weight_map\":{${index:1}}}" >"$tmp/model/model.safetensors.index.json"
    echo '{"dtype":"float32"}' >"$tmp/model/config.json"
}

finish()
{
    echo "$(basename "$0"): $checks checks passed"
}
