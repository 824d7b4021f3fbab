#!/bin/sh
# test_fashion.sh PROGRAM - the example on generated images: the same bytes with
# every number of threads, and after interrupted training was continued.
# ctest: skip-tsan skip-asan skip-ref
export LC_ALL=C
program=$1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

die()
{
    echo "test_fashion.sh: $*" >&2
    exit 1
}

# idx NAME N SALT: N images of noise with a bright row that depends on the label.
# Bytes are octal escapes for printf, because awk cannot print a zero byte.
idx()
{
    for what in images labels; do
        rank=3
        [ $what = images ] || rank=1
        awk -v n="$2" -v x="$3" -v what=$what '
        function byte(v) { printf "\\0%03o", v }
        BEGIN {
            byte(0); byte(0); byte(8); byte(what == "images" ? 3 : 1)
            byte(0); byte(0); byte(int(n / 256)); byte(n % 256)
            if (what == "images")
                for (k = 0; k < 2; k++) { byte(0); byte(0); byte(0); byte(28) }
            for (i = 0; i < n; i++) {
                label = (i * 7 + int(i / 10)) % 10
                if (what == "labels") { byte(label); continue }
                for (p = 0; p < 784; p++) {
                    x = (x * 16807) % 2147483647
                    byte(int(p / 28) == 2 * label + 4 ? 150 + x % 100 : x % 90)
                }
            }
        }' >"$tmp/text"
        printf '%b' "$(cat "$tmp/text")" |
            gzip >"$tmp/$1-$what-idx$rank-ubyte.gz"
    done
}
idx train 384 1
idx t10k 100 2

run() # ARGUMENT...
{
    "$program" --data "$tmp" --seeds 1 "$@" 2>"$tmp/err" >"$tmp/out" ||
        die "fashion $*: $(cat "$tmp/err")"
}

for net in mlp cnn; do
    for threads in 1 2 7; do
        run --net $net --epochs 4 --threads $threads --only 'ternary QAT' \
            --save "$tmp/$net.$threads" --chart "$tmp/$net.svg"
        grep -E '^seed' "$tmp/err" >"$tmp/$net.seen.$threads"
        cmp -s "$tmp/$net.1" "$tmp/$net.$threads" ||
            die "$net: other bytes with $threads threads"
        cmp -s "$tmp/$net.seen.1" "$tmp/$net.seen.$threads" ||
            die "$net: other accuracies with $threads threads"
    done
    grep -q '^| ternary QAT | 100.00 %' "$tmp/out" ||
        die "$net did not learn: $(cat "$tmp/out")"
    grep -q '</svg>' "$tmp/$net.svg" || die "no chart of $net"
done

# Hyperparameters are chosen on a validation set; the test images are not used and
# need not exist.
mkdir "$tmp/train"
cp "$tmp"/train-* "$tmp/train"
run --data "$tmp/train" --validate 100 --epochs 2 --only none --rate 2e-3 \
    --batch 32
grep -q '| validation accuracy' "$tmp/out" || die "no word of validation"
for wrong in '--validate 384' '--batch 400' '--rate 0' '--rate x' '--epochs'; do
    # shellcheck disable=SC2086
    "$program" --data "$tmp" --seeds 1 --only none $wrong >/dev/null 2>&1 &&
        die "took $wrong"
done

# Killed as soon as there is a checkpoint, and again later (which may be after the
# end). The table and the weights are the same.
rows='ternary QAT, nf4 PTQ'
table() # FILE: without the columns of times
{
    sed -n 's/^\(| .* |\)[^|]*|$/\1/p' "$1"
}
run --seeds 2 --epochs 8 --only "$rows" --save "$tmp/whole" \
    --chart "$tmp/whole.svg"
table "$tmp/out" >"$tmp/whole.table"
for first in mlp-1-float mlp-2-ternary-QAT; do
    "$program" --data "$tmp" --seeds 2 --epochs 8 --only "$rows" \
        --checkpoint "$tmp/kept" >/dev/null 2>&1 &
    job=$!
    while [ ! -e "$tmp/kept/$first.safetensors" ] &&
        kill -0 $job 2>/dev/null; do
        sleep 0.01
    done
    kill -9 $job 2>/dev/null
    wait $job 2>/dev/null
    [ -e "$tmp/kept/$first.safetensors" ] || die "no checkpoint $first"
done
run --seeds 2 --epochs 8 --only "$rows" --checkpoint "$tmp/kept" \
    --save "$tmp/resumed" --chart "$tmp/resumed.svg"
cmp -s "$tmp/whole" "$tmp/resumed" || die "other bytes after it was killed"
cmp -s "$tmp/whole.svg" "$tmp/resumed.svg" || die "another chart"
table "$tmp/out" | cmp -s - "$tmp/whole.table" || die "another table"
[ "$(wc -l <"$tmp/whole.table")" = 4 ] || die "$(cat "$tmp/whole.table")"
for wrong in '--epochs 7' '--batch 32' '--rate 1e-4' '--validate 100'; do
    # shellcheck disable=SC2086
    "$program" --data "$tmp" --seeds 1 --epochs 8 --only none \
        --checkpoint "$tmp/kept" $wrong >/dev/null 2>"$tmp/err" &&
        die "went on with $wrong"
    grep -q 'mlp-1-float.safetensors is of seed 1, 8 epochs' "$tmp/err" ||
        die "$wrong: $(cat "$tmp/err")"
done

# Weights of each training, without the state of the optimizer.
run --epochs 4 --only 'ternary QAT' --save "$tmp/one" --save-all "$tmp/each"
cmp -s "$tmp/one" "$tmp/each/mlp-1-float.safetensors" || die "other weights of f32"
ls -s "$tmp/each" >"$tmp/out"
[ "$(stat -c %s "$tmp/each/mlp-1-ternary-QAT.safetensors")" = \
    "$(stat -c %s "$tmp/one")" ] || die "$(cat "$tmp/out")"

"$program" --only 'nf4 QTA' 2>&1 | grep -q "unknown row 'nf4 QTA'; choose from" ||
    die "accepted an unknown row"
"$program" --help | grep -q -e --checkpoint || die "no help"
"$program" --data "$tmp/none" >/dev/null 2>&1 && die "accepted a missing data directory"
"$program" --net rnn >/dev/null 2>&1
[ $? = 2 ] || die "accepted an unknown net"
"$program" --data "$tmp" --compare "$tmp/whole" "$tmp/whole" >"$tmp/out" ||
    die "compare"
grep -qE '^whole .* 1.0x +100.00 % +0.00 % ' "$tmp/out" ||
    die "compare: $(cat "$tmp/out")"
"$program" --data "$tmp" --compare "$tmp/out" >/dev/null 2>&1 &&
    die "compared a text file"

echo "test_fashion.sh: the same bytes with 1, 2 and 7 threads, and resumed"
