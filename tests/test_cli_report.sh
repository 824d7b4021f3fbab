#!/usr/bin/env bash
# test_cli_report.sh PROGRAM - reports: the same figures as JSON, Markdown and
# HTML, which is a single self-contained page. Run it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash

# Two arrays: the values of one are halved. Its name must be escaped everywhere.
header='{"a.0.<b>|&\"_w.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
header+='"n":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}'
safetensors "$tmp/a" "$header" '\0\0\xc0\x40\0\0\0\x41\0\0\0\0'
safetensors "$tmp/b" "$header" '\0\0\x40\x40\0\0\x80\x40\0\0\0\0'

version=$("$program" --version | sed 's/lowbit //')

report() # FILE: report of a to b, without times and memory
{
    run 1 diff -q "$tmp/a" "$tmp/b" --report "$tmp/$1"
    [ ! -s "$tmp/err" ] || die "output on stderr"
    [ ! -e "$tmp/$1.partial" ] || die "a partial file is left"
    sed -E "s|$tmp|DIR|g;s/'(DIR[^']*)'/\1/g;s/\"seconds\": [^,]*/\"seconds\": S/
        s/\"peak_bytes\": [^,]*/\"peak_bytes\": P/" "$tmp/$1" >"$tmp/out"
    [[ $1 = *.html ]] || sed -Ei "s/[0-9a-f]{32}/HASH/g
        s/[0-9-]{10} [0-9:]{5} UTC/DATE/; s/^- lowbit: $version$/- lowbit: VERSION/" "$tmp/out"
}

is() # <<TEXT: compares with the last output
{
    checks=$((checks + 1))
    diff - "$tmp/out" >"$tmp/diff" || die "differs: $(cat "$tmp/diff")"
}

report r.json
is <<END
{"lowbit": "$version", "schema": 1, "verb": "diff", "source": "DIR/a", "output": "DIR/b", "dry_run": false, "resumed": 0, "command": "lowbit diff -q DIR/a DIR/b --report DIR/r.json", "date": "DATE", "source_hashes": [{"file": "a", "xxh128": "HASH"}], "seconds": S, "peak_bytes": P, "parameters": 3, "source_bytes": 12, "output_bytes": 12, "bits_per_weight": 32, "nrmse": 0.5, "max": 4, "cosine": 1, "types": [{"type": "f32", "arrays": 2, "parameters": 3, "source_bytes": 12, "output_bytes": 12, "bits_per_weight": 32, "nrmse": 0.5, "max": 4, "cosine": 1}], "kept": [{"reason": "equal", "arrays": 1, "parameters": 1, "source_bytes": 4, "output_bytes": 4, "bits_per_weight": 32, "nrmse": 0, "max": 0, "cosine": 1}], "moved": [], "codes": [], "arrays": [
{"name": "a.0.<b>|&\"_w.weight", "type": "F32", "format": "dense", "dtype": "f32", "shape": [2], "bytes": 8, "output_format": "dense", "output_dtype": "f32", "output_bytes": 8, "layout": null, "block_size": null, "kept": null, "moved": null, "refused": null, "nrmse": 0.5, "max": 4, "cosine": 1},
{"name": "n", "type": "F32", "format": "dense", "dtype": "f32", "shape": [1], "bytes": 4, "output_format": "dense", "output_dtype": "f32", "output_bytes": 4, "layout": null, "block_size": null, "kept": "equal", "moved": null, "refused": null, "nrmse": 0, "max": 0, "cosine": 1}]}
END

report r.md
is <<'END'
# DIR/a vs. DIR/b

From `DIR/a`: 12 B to 12 B, 32 bits per weight; error: nrmse 0.5.

    lowbit diff -q DIR/a DIR/b --report DIR/r.md

## Job

- date: DATE
- lowbit: VERSION
- source hash (XXH128): HASH  a

## Types

| type | arrays | weights | before | after | bits | nrmse | max | cosine |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
| f32 | 2 | 3 | 12 B | 12 B | 32.000 | 0.5 | 4 | 1 |

## Largest errors

| array | shape | from | to | before | after | nrmse | max | cosine |
|---|---|---|---|--:|--:|--:|--:|--:|
| a.0.\<b\>\|&"\_w.weight | (2) | f32 | f32 | 8 B | 8 B | 0.5 | 4 | 1 |

## Equal, or not compared

| reason | arrays | weights | before | after | bits | nrmse | max | cosine |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
| equal | 1 | 1 | 4 B | 4 B | 32.000 | | | |

## Arrays

| array | shape | from | to | before | after | nrmse | max | cosine |
|---|---|---|---|--:|--:|--:|--:|--:|
| a.0.\<b\>\|&"\_w.weight | (2) | f32 | f32 | 8 B | 8 B | 0.5 | 4 | 1 |
| n | (1) | f32 | f32 | 4 B | 4 B | | | |
END

# Arrays that are missing or cannot be compared are in the figures.
safetensors "$tmp/c" \
    '{"n":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"z":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}' \
    '\0\0\0\0\0\0\0\0\0\0\0\0'
run 1 diff -q "$tmp/a" "$tmp/c" --report "$tmp/odd.json"
cp "$tmp/odd.json" "$tmp/out"
has '"parameters": 5, "source_bytes": 12, "output_bytes": 12, '
has '"kept": [{"reason": "only in the first file", "arrays": 1, "parameters": 2, "source_bytes": 8, "output_bytes": 0, '
has '{"reason": "different shapes", "arrays": 1, "parameters": 1, "source_bytes": 4, "output_bytes": 4, '
has '{"reason": "only in the second file", "arrays": 1, "parameters": 2, "source_bytes": 0, "output_bytes": 8, '
has '"shape": [2], "bytes": 8, "output_format": null, "output_dtype": null, "output_bytes": 0, "layout": null, "block_size": null, "kept": "only in the first file", '

# ---- HTML --------------------------------------------------------------------

page() # checks for every page
{
    local tag
    has '<!doctype html>'
    has '</html>'
    for tag in svg section table div p span li b title text rect; do
        [ "$(grep -o "<${tag}[ >]" "$tmp/out" | wc -l)" = \
            "$(grep -oE "</$tag>|<$tag [^>]*/>" "$tmp/out" | wc -l)" ] ||
            die "<$tag> is not closed"
        checks=$((checks + 1))
    done
    if grep -qiE 'http|//|<script[^>]|<link|<img|@import|url\(|src=' "$tmp/out"; then
        die "the page loads external content"
    fi
}

report r.html
sed -i 's|DIR/|DIR|g' "$tmp/out"
page
has 'a.<wbr>0.<wbr>&lt;b&gt;|&amp;&quot;_w.<wbr>weight'
has '<b>0.5</b><span><abbr>error (nrmse)</abbr></span>'
has 'layer 0, &lt;b&gt;|&amp;&quot;_w: nrmse 0.5'
has 'lowbit diff -q DIRa DIRb --report DIRr.html'
# The facts: date, hash of the source; terms on hover and in a legend.
grep -qE "lowbit $version, 20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC" "$tmp/out" ||
    die "no date"
grep -qE '<dt>source hash \(XXH128\)</dt><dd>[0-9a-f]{32}  a</dd>' "$tmp/out" ||
    die "no hash"
if command -v xxh128sum >/dev/null; then
    has "$(xxh128sum <"$tmp/a" | cut -d' ' -f1)"
fi
has '<th title="normalized root mean square error: '
has '<dt>nrmse</dt><dd>normalized root mean square error: '
# The colour scale begins at zero: two equal errors are both dark.
has 'fill-opacity="1.000"'
has '>nrmse 0 <i class="ramp"></i> 0.5<'
# The table can be sorted: numbers are attributes, with thousands separators.
has '<table class="sort"><thead>'
has 'title="8 bytes">8 B</td>'

src=tests/golden/layouts/bnb4.values
for type in nf4 int8 ternary q4_0; do
    "$program" quantize "$src" -o "$tmp/q" --type $type --force -q
    run 1 diff -q "$src" "$tmp/q" --report "$tmp/q.html"
    sed "s|$tmp/||g;s|tests/golden/layouts/||g" "$tmp/q.html" >"$tmp/out"
    page
    [ $type = q4_0 ] || has "aria-label=\"Codes of $type\""
    has "$type (bf16)"
    has '<td data-v="21000" title="21,000 elements">(70,300)</td>'
    # with many codes, only some are labelled, with round numbers
    [ $type != int8 ] || for code in -96 -32 0 64; do has ">$code</text>"; done
done
safetensors "$tmp/one" \
    '{"w":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}' '\0\0\xc0\x40'
run 0 diff -q "$tmp/one" "$tmp/one" --report "$tmp/one.html"
cp "$tmp/one.html" "$tmp/out"
has ', 1 array, lowbit '
has '<summary>1 array <span'
has '<title>f32, 1 array, 4 B</title>'

# ---- a job: lines, a bar, the end --------------------------------------------

messages() # ARGUMENT...: of quantize; $tmp/out is its stderr, without times
{
    checks=$((checks + 1))
    "$program" quantize "$src" -o "$tmp/q" --force --type nf4 "$@" \
        >"$tmp/data" 2>"$tmp/err" || die "quantize $*: failed"
    [ ! -s "$tmp/data" ] || die "quantize $*: prints"
    sed -E "s|$tmp|DIR|g;s/'(DIR[^']*)'/\1/g;s|, in [0-9.]+ m?s$|, in TIME|;s|^speed: [0-9.]+ [kMG]?B/s, peak memory .*|speed: RATE|" "$tmp/err" >"$tmp/out"
}

messages
is <<'END'
wrote DIR/q: 1 array quantized (nf4), 6 left unchanged
size: 47.4 kB -> 17.3 kB (2.7 times smaller), 6.113 bits per weight, in TIME
error: nrmse 0.04916, cosine 0.99879, largest 0.04916 (nested.weight)
END
messages -v
is <<'END'
1/7 stack.weight (3,8,32) kept f32 (tiny)
2/7 wide.weight (4,64) kept f32 (tiny)
3/7 nested.weight (70,300) bf16 -> nf4, 42.0 kB -> 11.9 kB, nrmse 0.04916
4/7 norm.weight (7) kept bf16 (1-D)
5/7 plain.weight (6,100) kept bf16 (tiny)
6/7 odd.weight (5,13) kept f16 (tiny)
7/7 bytes.weight (5) kept u8 (not a float type)
wrote DIR/q: 1 array quantized (nf4), 6 left unchanged
size: 47.4 kB -> 17.3 kB (2.7 times smaller), 6.113 bits per weight, in TIME
error: nrmse 0.04916, cosine 0.99879, largest 0.04916 (nested.weight)
END
messages -vv
sed -i 1,10d "$tmp/out"
is <<'END'
  type            arrays      weights              bytes    bits     nrmse       max     worst
  f32                  2         1024   4.5 %     4.1 kB  32.000
  nf4 (bf16)           1        21000  92.5 %    11.9 kB   4.533   0.04916    0.4375   0.04916
  bf16                 2          607   2.7 %     1.2 kB  16.000
  f16                  1           65   0.3 %      130 B  16.000
  u8                   1            5   0.0 %        5 B   8.000
largest errors (nrmse)
    0.04916  nested.weight  nf4 (bf16)
Not quantized
        4     5.4 kB  tiny: stack.weight, wide.weight, plain.weight, ...
        1       14 B  1-D: norm.weight
        1        5 B  not a float type: bytes.weight
speed: RATE
command: lowbit quantize tests/golden/layouts/bnb4.values -o DIR/q --force --type nf4 -vv
END
# What the default leaves out, and how to include it; nothing once it is included.
safetensors "$tmp/embedded" '{"lm_head.weight":{"dtype":"F32","shape":[64,64],
    "data_offsets":[0,16384]},"m.embed_tokens.weight":{"dtype":"F32",
    "shape":[64,64],"data_offsets":[16384,32768]}}' ''
head -c 32768 /dev/zero >>"$tmp/embedded"
"$program" quantize "$tmp/embedded" -o "$tmp/e" --type nf4 2>"$tmp/out" ||
    die "only an embedding"
has "kept: embedding and output head (2 arrays, 32.8 kB); to quantize them as well, add --include 'lm_head.weight|embed_tokens.weight'"
"$program" quantize "$tmp/embedded" -o "$tmp/e" --type nf4 --force \
    --include 'lm_head.weight|embed_tokens.weight' 2>"$tmp/out" || die "included"
has "2 arrays quantized (nf4), 0 left unchanged"
if grep -q '^kept' "$tmp/out"; then die "included, and kept"; fi
# The loaders of layout bnb expect floats there: no advice to include them.
"$program" quantize "$tmp/embedded" -o "$tmp/e" --type nf4 --force --layout bnb \
    2>"$tmp/out" || die "--layout bnb"
has "kept: embedding and output head (2 arrays, 32.8 kB), as the loaders of layout bnb expect"
if grep -q -e --include "$tmp/out"; then die "advice against the layout"; fi
"$program" quantize "$tmp/embedded" -o "$tmp/e" --type nf4 --force --layout eformer \
    2>"$tmp/out" || die "--layout eformer"
has "add --include 'lm_head.weight|embed_tokens.weight'"
# Why nothing was quantized.
"$program" quantize "$src" --type nf4 --exclude nested --dry-run 2>"$tmp/out" ||
    die "nothing quantized"
grep '^kept' "$tmp/out" >"$tmp/kept" || die "no reasons"
cp "$tmp/kept" "$tmp/out"
is <<'END'
kept: tiny (4 arrays, 5.4 kB)
kept: excluded (1 array, 42.0 kB)
kept: 1-D (1 array, 14 B)
kept: 1 more (-v lists all)
END
messages -q
[ ! -s "$tmp/out" ] || die "-q prints something"
messages -q --report "$tmp/q.json"
[ ! -s "$tmp/out" ] || die "-q prints something with --report"
cp "$tmp/q.json" "$tmp/out"
has '"verb": "quantize"'
has '"codes": [{"format": "nf4", "first": 0, "counts": [371, 960, 1284, '
has '"kept": [{"reason": "tiny", "arrays": 4, '
has '"shape": [70, 300], "bytes": 42000, "output_format": "nf4", "output_dtype": "bf16", "output_bytes": 11900, "layout": "native", "block_size": 64, "kept": null, "moved": null, "refused": null, "nrmse": 0.0491'
messages --report "$tmp/q.html" --report "$tmp/q2.md" --report "$tmp/q2.json"
has "report: DIR/q.html"
has "report: DIR/q2.md"
grep -q '^# ' "$tmp/q2.md" || die "no Markdown report"
grep -q '"verb": "quantize"' "$tmp/q2.json" || die "no JSON report"
refused 2 "--report $tmp/q2.md would overwrite $tmp/q2.md" diff "$src" "$src" \
    --report "$tmp/q2.md" --report "$tmp/q2.md"
refused 2 "needs a name that ends in .html, .md or .json, not 'x'" \
    diff "$src" "$src" --report "$tmp/q2.md" --report x
sed "s|$tmp/||g;s|tests/golden/layouts/||g" "$tmp/q.html" >"$tmp/out"
page
has "<h2>Not quantized</h2>"
has '<dt>layout</dt><dd>native</dd>'
has '<dt>block size</dt><dd>nf4: 64 elements</dd>'
has '<td>nf4 (bf16)</td><td data-v="64">64</td><td data-v="42000" title="42,000 bytes">42.0 kB</td>'
# Elements per scale: blocks end within a row or at its end, or are rows, or all.
for how in "int8=300" "int8 --axis 0=70" "int8 --block-size 32=32" \
    "nf4 --block-size 128=128" "nf4 --layout bnb=64" "ternary=21000" \
    "iq4_nl=32" "dynamic8=256"; do
    # shellcheck disable=SC2086
    run 0 quantize "$src" -o "$tmp/bl" --force -q --type ${how%=*} \
        --report "$tmp/bl.html"
    sed -n 's/.*<dt>block size.*: \([0-9]*\) elements.*/\1/p' "$tmp/bl.html" >"$tmp/out"
    [ "$(cat "$tmp/out")" = "${how##*=}" ] || die "$how: other blocks"
done
# --verify in every layout.
for how in "nf4 native" "int8 native" "nf4 bnb" "int8 bnb" "ternary bitnet" \
    "ternary eformer" "nf4 eformer"; do
    # shellcheck disable=SC2086
    set -- $how
    "$program" quantize "$src" -o "$tmp/v" --force --type "$1" --layout "$2" \
        --verify --report "$tmp/v.json" 2>"$tmp/out" || die "$how: --verify"
    has "verified: 7 arrays"
done
run 0 quantize "$src" --type nf4 --dry-run --json -q
has '"output": null, "dry_run": true'
has '"output_bytes": 17345, "bits_per_weight": 6.1125'
has '"codes": []'
run 0 quantize "$src" --dry-run --type nf4 -q --verify --report "$tmp/dry.md" \
    --report "$tmp/dry.html"
for made in md html; do
    grep -q "Dry run, nothing was written" "$tmp/dry.$made" ||
        die "dry.$made does not say that it was a dry run"
done
refused 2 "--report needs a name that ends in .html, .md or .json, not 'x'" \
    quantize "$src" -o "$tmp/q" --force --type nf4 --report x

# ---- a warning about arrays that were destroyed ------------------------------

# A coarse type rounds 0.4, 15 of 16 values, to 0 beside 1.
row='\0\0\x80\x3f'
for ((i = 1; i < 16; i++)); do row+='\xcd\xcc\xcc\x3e'; done
rows=$row
for ((i = 1; i < 128; i *= 2)); do rows+=$rows; done
safetensors "$tmp/coarse.safetensors" \
    '{"a.weight":{"dtype":"F32","shape":[8,256],"data_offsets":[0,8192]}}' "$rows"
run 0 convert "$tmp/coarse.safetensors" -o "$tmp/coarse.gguf" -q --container-only
coarse="warning: 1 of 1 quantized array lost most of the information in the weights (cosine similarity below 0.9, lowest 0.5"
warns() # WANTED ARGUMENT...: whether there is that warning, also in JSON
{
    local want=$1 seen=0 listed=0
    shift
    checks=$((checks + 1))
    "$program" "$@" --json >"$tmp/out" 2>"$tmp/err" || die "'$*' fails"
    ! grep -qF "lowbit: $coarse" "$tmp/err" || seen=1
    ! grep -qF '"warnings": ["'"${coarse#warning: }" "$tmp/out" || listed=1
    [ "$seen$listed" = "$want$want" ] || die "'$*': warning $seen, in JSON $listed"
}
for type in tq1_0 tq2_0; do
    warns 1 quantize "$tmp/coarse.gguf" -o "$tmp/t.gguf" --force --type $type
    warns 1 quantize "$tmp/coarse.gguf" --dry-run --type $type
done
grep -q "use a type with more bits, such as iq4_nl or q8_0, or exclude" "$tmp/err" ||
    die "no advice"
warns 0 quantize "$tmp/coarse.gguf" -o "$tmp/t.gguf" --force --type q4_0
# The types are those that fit the target.
for target in "bpw 2.2" "size 1000"; do
    # shellcheck disable=SC2086 # words, meant to split
    warns 1 quantize "$tmp/coarse.gguf" -o "$tmp/t.gguf" --force --target-$target
    grep -q "will not work; use a larger --target-${target% *}\$" "$tmp/err" ||
        die "--target-$target: $(cat "$tmp/err")"
done
warns 0 quantize "$tmp/coarse.safetensors" -o "$tmp/t" --type nf4
# The limit is the error of each array, whatever the type.
for type in ternary binary int8; do
    "$program" quantize "$src" --type $type --include nested --dry-run --json \
        >"$tmp/out" 2>"$tmp/err" || die "$type fails"
    cosine=$(sed -n 's/.*"nested.weight".*"cosine": \([0-9.]*\).*/\1/p' "$tmp/out")
    low=$(awk -v c="$cosine" 'BEGIN { print (c < 0.9) }')
    checks=$((checks + 1))
    [ "$(grep -c 'cosine similarity below 0.9' "$tmp/err" || true)" = "$low" ] ||
        die "$type: cosine $cosine"
done

# ---- refusals ----------------------------------------------------------------

for name in r.pdf r html .htm; do
    refused 2 "--report needs a name that ends in .html, .md or .json, not '$tmp/$name'" \
        diff "$src" "$src" --report "$tmp/$name"
done
if [ "$(id -u)" = 0 ] || [ -w /dev/full ]; then
    ln -s /dev/full "$tmp/full.md.partial"
    run 1 diff -q "$src" "$src" --report "$tmp/full.md"
    grep -q "full.md: cannot write: No space left" "$tmp/err" ||
        die "no error for a full disk"
    [ ! -e "$tmp/full.md" ] || die "a partial report is left"
fi
# A symbolic link stays and its target is replaced.
echo old >"$tmp/real.md"
ln -s real.md "$tmp/link.md"
run 1 diff -q "$tmp/a" "$tmp/b" --report "$tmp/link.md"
[ -L "$tmp/link.md" ] || die "the link is gone"
grep -q '12 B to 12 B' "$tmp/real.md" || die "the target of the link is unchanged"
# Names that are not printable are quoted as in bash, on one line.
cp "$tmp/a" "$tmp/x"$'\n\'\xff'
run 1 diff -q "$tmp/x"$'\n\'\xff' "$tmp/b" --report "$tmp/x.md"
cp "$tmp/x.md" "$tmp/out"
has "From \`$tmp/x\\x0a'\\xff\`: 12 B to 12 B"
case $tmp in *[[:space:]]*) q="'" ;; *) q= ;; esac # other words are quoted, too
has "    lowbit diff -q \$'$tmp/x\\012\\'\\377' $q$tmp/b$q --report $q$tmp/x.md$q"
mkdir "$tmp/it's a dir"
run 1 diff -q "$tmp/a" "$tmp/b" --report "$tmp/it's a dir/x.md"
grep -qF -- "--report '$tmp/it'\\''s a dir/x.md'" "$tmp/it's a dir/x.md" ||
    die "the command is not quoted"

finish
