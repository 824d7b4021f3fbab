#!/bin/sh
# test_tiny_llama.sh TINY_LLAMA LOWBIT - the demo's model directory is reproducible
# and can be quantized to a directory.
export LC_ALL=C
tiny_llama=$1 lowbit=$2
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

die()
{
    echo "test_tiny_llama.sh: $*" >&2
    exit 1
}

for copy in a b; do "$tiny_llama" "$tmp/$copy" || die "cannot write"; done
for file in config.json model.safetensors; do
    cmp "$tmp/a/$file" "$tmp/b/$file" || die "$file differs"
done
"$lowbit" check -q "$tmp/a" || die "invalid"
"$lowbit" quantize "$tmp/a" -o "$tmp/nf4" --type nf4 2>"$tmp/err" || die "quantize"
# The layout that transformers loads has no quantized embeddings.
grep -q "; layout bnb, which transformers loads$" "$tmp/err" || die "$(cat "$tmp/err")"
pattern='lm_head.weight|embed_tokens.weight'
grep -qF "add --include '$pattern' (then only lowbit loads the model)" "$tmp/err" ||
    die "$(cat "$tmp/err")"
"$lowbit" quantize "$tmp/a" -o "$tmp/all" --type nf4 --include "$pattern" \
    2>"$tmp/err" || die "quantize --include"
grep -q "30 arrays quantized (nf4), 9 left unchanged; layout native, which only" \
    "$tmp/err" || die "$(cat "$tmp/err")"
[ -s "$tmp/nf4/config.json" ] || die "no config.json"
"$lowbit" info "$tmp/nf4" >"$tmp/info" || die "info"
[ "$(grep -c nf4 "$tmp/info")" -ge 28 ] || die "$(cat "$tmp/info")"
"$tiny_llama" >/dev/null 2>&1
[ $? = 2 ] || die "accepted a call without a directory"
"$tiny_llama" "$tmp/a/config.json" >/dev/null 2>&1 && die "wrote into a file"
echo "test_tiny_llama.sh: passed"
