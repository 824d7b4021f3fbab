#!/bin/sh
# test_llama.sh LLAMA GOLDEN - examples/llama.c computes what a reference in numpy and
# double precision does (tools/gen_llama_golden.py), in every format and precision,
# compiled and eagerly. Bounds are those of the products, whose errors few layers add
# up: rounding to 1e-5 at highest, 2e-4 at fast, 3e-2 at fastest.
export LC_ALL=C
llama=$1 golden=$2

die()
{
    echo "test_llama.sh: $*" >&2
    exit 1
}

prompt=$(sed -n 's/^prompt 0 //p' "$golden/expected.txt")
count=0
while read -r format nll text; do
    [ "$format" = prompt ] && continue
    quantize=$format
    [ "$format" = dense ] && quantize=
    for mode in "highest 1.1e-5" "highest 1.1e-5 -e" "highest 1.1e-5 -j1" \
        "fast 2e-4" "fastest 3e-2"; do
        # shellcheck disable=SC2086 # lists of words
        set -- $mode
        precision=$1 bound=$2 option=$3
        # shellcheck disable=SC2086
        got=$(LOWBIT_PRECISION=$precision "$llama" -H 4 -n 24 $option \
            ${quantize:+-f "$quantize"} "$golden/model.safetensors" $prompt \
            2>/dev/null) || die "$format $mode: failed"
        echo "$got" | awk -v want="$nll" -v bound="$bound" \
            '/^nll/ { d = $2 - want; ok = d <= bound && -d <= bound }
             END { exit !ok }' || die "$format $mode: $got, not nll $nll"
        [ "$precision" != highest ] || [ "${got##*
}" = "$text" ] || die "$format $mode: $got, not $text"
        count=$((count + 1))
    done
done <"$golden/expected.txt"
[ "$count" = 45 ] || die "$count cases, not 45"

# Without a file: random weights, the same for any number of threads.
[ "$("$llama" -n 8 2>/dev/null)" = "$("$llama" -n 8 -j 1 -e 2>/dev/null)" ] ||
    die "random weights: threads and compiling change the text"
"$llama" -n 600 >/dev/null 2>&1
[ $? = 2 ] || die "accepted more tokens than the cache has"
"$llama" -f nf5 2>&1 | grep -q "nf4" || die "no help about an unknown format"
"$llama" -H 5 2>&1 | grep -q "5 heads do not fit 64 rows of q_proj" ||
    die "no message about heads that do not divide the rows"
"$llama" no-such-file 1 2>/dev/null && die "accepted a missing file"
echo "test_llama.sh: passed"
