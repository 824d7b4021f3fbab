#!/usr/bin/env bash
# test_cli_shard.sh PROGRAM - checkpoints split into per-rank files and merged
# again have the same bytes in every layout; the spec of each array is printed;
# errors are reported and leave existing files unchanged. Run it in the project's
# root.
# ctest: skip-asan
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
layouts=tests/golden/layouts

# check_ranks SRC: the header of each rank is valid, and so are values if those of SRC
# are.
check_ranks()
{
    local name status=0
    "$program" check "$1" >"$tmp/out" 2>"$tmp/err" || status=$?
    for name in "$tmp"/ranks/*.safetensors; do
        run 0 check "$name" --header
        if [ "$status" = 0 ]; then run 0 check "$name"; fi
    done
}

# there_and_back SRC MESH RULE...: SRC is a file or a directory of weights.
there_and_back()
{
    local from=$1 mesh=$2 rule=() to=$tmp/back.safetensors name
    shift 2
    for r in "$@"; do rule+=(--spec "$r"); done
    rm -rf "$tmp/ranks" "$tmp/back" "$to"
    run 0 shard "$from" -o "$tmp/ranks" --mesh "$mesh" "${rule[@]}" --relaxed \
        -q --no-sync
    check_ranks "$from"
    if [ -d "$from" ] && [ -e "$from/model.safetensors.index.json" ]; then
        run 0 merge "$tmp/ranks" -o "$tmp/back" -q --no-sync
        for name in "$from"/*.safetensors "$from"/*.index.json; do
            cmp "$name" "$tmp/back/$(basename "$name")" 2>"$tmp/err" ||
                die "$from by $mesh, $*"
        done
    else
        [ ! -d "$from" ] || from=$from/model.safetensors
        run 0 merge "$tmp/ranks" -o "$to" -q --no-sync
        cmp "$from" "$to" 2>"$tmp/err" || die "$from by $mesh, $*"
    fi
    checks=$((checks + 1))
    for part in "$to" "$tmp/back" "$tmp/ranks"; do
        [ ! -e "$part.partial" ] || die "$part.partial is left"
    done
}

for from in "$layouts"/*.safetensors "$layouts/bitlinear" \
    "$golden/types.safetensors" "$golden/shapes.safetensors" \
    "$golden/names.safetensors" "$golden/sharded"; do
    there_and_back "$from" x=2 '.=P(x)'
    there_and_back "$from" x=2,y=2 '.=P(y, x)'
    there_and_back "$from" x=4 '.=P(None, x)'
    there_and_back "$from" x=1 '.=P(x)'
done

# ---- larger meshes, and strict mode ------------------------------------------

header='{"up.weight":{"dtype":"F32","shape":[64,256],"data_offsets":[0,65536]},'
header+='"down.weight":{"dtype":"F32","shape":[256,64],"data_offsets":[65536,131072]},'
header+='"norm.weight":{"dtype":"F32","shape":[8],"data_offsets":[131072,131104]} }'
safetensors "$tmp/model.safetensors" "$header" ''
digits=0123456789 # pairs are finite in f16 as well
digits=$digits$digits$digits$digits$digits$digits$digits
base64 -w0 /dev/urandom | tr 'A-Za-z+/' "${digits:0:54}" |
    head -c 131104 >>"$tmp/model.safetensors" || true
for how in '--type nf4 --block-size 32' '--type int8' '--type ternary' \
    '--type nf4 --layout bnb' '--type nf4 --layout bnb --double-quant' \
    '--type int8 --layout bnb' '--type nf4 --block-size 32 --layout eformer' \
    '--type ternary --layout bitnet' '--type nf4 --double-quant'; do
    rm -f "$tmp/small.safetensors"
    # shellcheck disable=SC2086
    run 0 quantize "$tmp/model.safetensors" -o "$tmp/small.safetensors" $how -q
    there_and_back "$tmp/small.safetensors" dp=2,tp=2 'up=P(tp, None)' \
        'down=P(tp, dp)' '.=P()'
    there_and_back "$tmp/small.safetensors" tp=2 'up=P(None, tp)' 'down=P(tp)'
done

# A spec with axis names of maximum length.
axes=()
for k in 0 1 2 3 4 5 6 7; do axes+=("an_axis_whose_name_is_longest_$k"); done
mesh=$(printf ',%s=1' "${axes[@]}") spec=$(printf ', %s' "${axes[@]}")
there_and_back "$tmp/model.safetensors" "${mesh:1: -1}2" "down=P((${spec:2}))"
prints info "$tmp/ranks/rank-00001-of-00002.safetensors" <<TEXT
$tmp/ranks/rank-00001-of-00002.safetensors: safetensors
name         type  shape         size
down.weight  f32   (128,64)   32.8 kB
norm.weight  f32   (8)           32 B
up.weight    f32   (64,256)   65.5 kB
total: 3 arrays, 24.6 K parameters, 98.3 kB, 32 bits per weight
TEXT

# The values in a rank's file are those of its slice.
there_and_back "$tmp/model.safetensors" tp=4 'up=P(None, tp)' 'down=P(tp)' '.=P()'
prints info "$tmp/ranks/rank-00002-of-00004.safetensors" <<TEXT
$tmp/ranks/rank-00002-of-00004.safetensors: safetensors
name         type  shape        size
down.weight  f32   (64,64)   16.4 kB
norm.weight  f32   (8)          32 B
up.weight    f32   (64,64)   16.4 kB
total: 3 arrays, 8.2 K parameters, 32.8 kB, 32 bits per weight
TEXT
prints shard "$tmp/model.safetensors" --mesh tp=4 --spec 'up=P(None, tp)' \
    --spec 'down=P((tp, pp))' --spec 'norm=P()' --relaxed --dry-run <<TEXT
up.weight (64,256) split P(None, tp) (rule up)
down.weight (256,64) replicated: no axis of the rule can be split (rule down); entry 0 ignored: the mesh tp=4 has no axis pp
norm.weight (8) replicated: the rule splits no axis (rule norm)
dry run: 4 ranks, 1 of 3 arrays would be split, 2 replicated
TEXT
run 0 shard "$tmp/model.safetensors" --mesh tp=4 --spec 'up=P(None, tp)' \
    --dry-run --json
has '"shape": [64, 256], "bytes": 65536, "spec": "P(None, tp)", "rule": "up", "replicated": null, "ignored": []}'
has '"replicated": "no rule matches"'
echo '# rows
up=P(tp)' >"$tmp/rules"
run 0 shard "$tmp/model.safetensors" --mesh tp=2 --rules "$tmp/rules" --dry-run
has 'up.weight (64,256) split P(tp) (rule up)'

# ---- refused -----------------------------------------------------------------

shard=(shard "$tmp/model.safetensors" -o "$tmp/none" --mesh tp=4)
refused 2 'shard needs --mesh' "${shard[@]}"
refused 2 'shard needs an output path (-o)' shard "$tmp/model.safetensors" --mesh tp=4 \
    --spec '.=P(tp)'
refused 2 'expected PATTERN=P(None, tp)' "${shard[@]}" --spec nothing
refused 2 'spec P(tp, None is incomplete; expected P(tp, None)' "${shard[@]}" --spec 'up=P(tp, None'
refused 2 'expected axes such as dp=2,tp=4' shard "$tmp/model.safetensors" -o \
    "$tmp/none" --mesh tp --spec '.=P(tp)'
refused 2 "'up.weight': spec P(pp) names pp, which the mesh tp=4 lacks" \
    "${shard[@]}" --spec '.=P(pp)' -q
refused 2 "rule 'none' matches none of the " "${shard[@]}" -q \
    --spec 'none=P(tp)'
refused 2 'into 3 pieces, but 64 is not a multiple of 3' shard "$tmp/model.safetensors" -o "$tmp/none" \
    --mesh tp=3 --spec 'up=P(tp)' -q
refused 3 'only safetensors files can be sharded, not gguf' shard $golden/types.gguf -o \
    "$tmp/none" --mesh tp=2 --spec '.=P()' -q
refused 3 "is already the file of a rank" shard \
    "$tmp/ranks/rank-00000-of-00004.safetensors" -o "$tmp/none" --mesh tp=2 \
    --spec '.=P()' -q
refused 2 'is also the input' quantize "$tmp/model.safetensors" -o \
    "$tmp/./model.safetensors" --type int8
refused 2 'already exists (use --force to overwrite)' shard \
    "$tmp/model.safetensors" -o "$tmp/ranks" --mesh tp=4 --spec 'up=P(tp)'
run 0 shard "$tmp/model.safetensors" -o "$tmp/ranks" --mesh tp=2 \
    --spec 'up=P(tp)' --force -q
[ "$(find "$tmp/ranks" -type f | wc -l)" = 2 ] || die "old files of ranks are left"
# One line, unless -v or what --relaxed has dropped asks for more.
for lines in "1" "4 -v" "2 --relaxed --spec down=P((tp,pp))"; do
    # shellcheck disable=SC2086
    set -- $lines
    "$program" shard "$tmp/model.safetensors" -o "$tmp/ranks" --mesh tp=2 \
        --spec 'up=P(tp)' --force "${@:2}" 2>"$tmp/out" || die "shard $lines"
    [ "$(wc -l <"$tmp/out")" = "$1" ] || die "shard $lines: other lines"
    has "wrote $tmp/ranks: 2 ranks, "
done
[ ! -e "$tmp/none" ] || die "an output exists"
[ ! -e "$tmp/none.partial" ] || die "a partial output exists"

"$program" merge "$tmp/ranks" -o "$tmp/said.safetensors" 2>"$tmp/out" ||
    die "merge failed"
has "wrote $tmp/said.safetensors: 3 arrays merged, 131.1 kB" # 32776 f32
echo old >"$tmp/old.safetensors"
refused 2 'already exists' merge "$tmp/ranks" -o "$tmp/old.safetensors"
refused 3 'merge takes a directory of files such as rank-00000-of-' merge "$golden" -o "$tmp/none"
mv "$tmp/ranks/rank-00001-of-00002.safetensors" "$tmp/away"
refused 1 'cannot open' merge "$tmp/ranks" -o "$tmp/old.safetensors" --force -q
head -c 3000 "$tmp/away" >"$tmp/ranks/rank-00001-of-00002.safetensors"
run 3 merge "$tmp/ranks" -o "$tmp/old.safetensors" --force -q
[ "$(cat "$tmp/old.safetensors")" = old ] || die "the old file is gone"
[ ! -e "$tmp/old.safetensors.partial" ] || die "a partial file is left"
mv "$tmp/away" "$tmp/ranks/rank-00001-of-00002.safetensors"
refused 2 'is also the input' merge "$tmp/ranks" -o \
    "$tmp/ranks/rank-00000-of-00002.safetensors" --force -q

# ---- files that would be lost ------------------------------------------------

# stays DIR: equals $tmp/kept, and no partial directory is left.
stays()
{
    checks=$((checks + 1))
    diff -r "$tmp/kept" "$1" >"$tmp/diff" || die "$1: $(cat "$tmp/diff")"
    [ ! -e "$1.partial" ] || die "$1.partial is left"
}

cp -r $golden/sharded "$tmp/src"
cp -r "$tmp/src" "$tmp/kept"
by=(--mesh x=2 --spec '.=P(x)' --relaxed -q --no-sync --force)
read_from='is also the input'
index=model.safetensors.index.json
refused 2 "$read_from" shard "$tmp/src" -o "$tmp/src" "${by[@]}"
refused 2 "$read_from" shard "$tmp/src/" -o "$tmp/./src/" "${by[@]}"
refused 2 "$read_from" shard "$tmp/src/$index" -o "$tmp/src" "${by[@]}"
stays "$tmp/src"
cp "$tmp/model.safetensors" "$tmp/src/one.safetensors"
cp "$tmp/model.safetensors" "$tmp/kept/one.safetensors"
ln -s "$tmp/src/one.safetensors" "$tmp/link.safetensors"
refused 2 "$read_from" shard "$tmp/link.safetensors" -o "$tmp/src" "${by[@]}"
refused 2 "$read_from" quantize "$tmp/src/one.safetensors" --type int8 \
    -o "$tmp/src/" -q --force
stays "$tmp/src"
rm "$tmp/src/one.safetensors" "$tmp/kept/one.safetensors"
run 0 shard "$tmp/src" -o "$tmp/cut" "${by[@]}"
mv "$tmp/src" "$tmp/src.partial"
refused 2 "$read_from" shard "$tmp/src.partial" -o "$tmp/src" "${by[@]}"
refused 2 "$read_from" shard "$tmp/src.partial/$index" -o "$tmp/src" "${by[@]}"
[ ! -e "$tmp/src" ] || die "an output exists"
mv "$tmp/src.partial" "$tmp/src"
stays "$tmp/src"
refused 2 "$read_from" merge "$tmp/cut" -o "$tmp/cut" --force -q
mv "$tmp/cut" "$tmp/cut.partial"
refused 2 "$read_from" merge "$tmp/cut.partial" -o "$tmp/cut" -q
mv "$tmp/cut.partial" "$tmp/cut"

# Files other than those of the ranks.
echo '{}' >"$tmp/src/config.json"
cp "$tmp/src/config.json" "$tmp/kept"
refused 2 "holds 'config.json'" merge "$tmp/cut" -o "$tmp/src" --force -q
refused 2 "holds 'config.json'" shard "$tmp/model.safetensors" -o "$tmp/src" \
    "${by[@]}"
stays "$tmp/src"
rm "$tmp/src/config.json" "$tmp/kept/config.json"
run 0 merge "$tmp/cut" -o "$tmp/src" --force -q
stays "$tmp/src"

# ---- other files -------------------------------------------------------------

# Both directions carry the configuration, the tokenizer and subdirectories;
# links to files become files; the records of git and of downloads stay behind.
cp -r "$tmp/src" "$tmp/whole"
mkdir -p "$tmp/whole/1_Pooling/deep" "$tmp/whole/empty" "$tmp/whole/.git" \
    "$tmp/whole/.cache/huggingface"
echo '{"model_type":"t"}' >"$tmp/whole/config.json"
echo tokens >"$tmp/whole/1_Pooling/deep/vocab.txt"
echo inner >"$tmp/whole/1_Pooling/model.safetensors"
echo attributes >"$tmp/whole/.gitattributes"
cp -r "$tmp/whole" "$tmp/kept.whole"
rm -r "$tmp/kept.whole/.git" "$tmp/kept.whole/.cache"
echo x | tee "$tmp/whole/.git/x" "$tmp/whole/.cache/huggingface/x" \
    >"$tmp/whole/pytorch_model.bin"
echo vocabulary >"$tmp/blob"
ln -s "$tmp/blob" "$tmp/whole/tokenizer.json"
ln -s . "$tmp/whole/loop"
cp "$tmp/blob" "$tmp/kept.whole/tokenizer.json"
run 0 shard "$tmp/whole" -o "$tmp/whole.cut" "${by[@]}"
cmp "$tmp/whole/config.json" "$tmp/whole.cut/config.json" || die "no config"
[ ! -e "$tmp/whole.cut/$index" ] || die "ranks have an index"
for again in 1 2; do # the second over the first
    run 0 merge "$tmp/whole.cut" -o "$tmp/whole.back" -q --force
    diff -r "$tmp/kept.whole" "$tmp/whole.back" >"$tmp/diff" ||
        die "merged, $again: $(cat "$tmp/diff")"
    [ ! -L "$tmp/whole.back/tokenizer.json" ] || die "a link was copied"
    run 0 shard "$tmp/whole" -o "$tmp/whole.cut" "${by[@]}"
done
# Nothing may be lost in a subdirectory either.
echo mine >"$tmp/whole.back/1_Pooling/deep/thesis.txt"
refused 2 "deep holds 'thesis.txt', which is not part of the model" merge \
    "$tmp/whole.cut" -o "$tmp/whole.back" -q --force
rm "$tmp/whole.back/1_Pooling/deep/thesis.txt"
mkdir "$tmp/whole.back/2_Dense"
refused 2 "holds '2_Dense'" merge "$tmp/whole.cut" -o "$tmp/whole.back" -q --force
[ -d "$tmp/whole.back/2_Dense" ] || die "a directory is gone"
# An output inside of the model is not copied into itself.
for again in 1 2; do
    run 0 convert "$tmp/whole" -o "$tmp/whole/inside" -q --force
    [ ! -e "$tmp/whole/inside/inside" ] || die "copied into itself, $again"
    [ -e "$tmp/whole/inside/1_Pooling/model.safetensors" ] || die "a file was dropped"
done

# The name decides: several files become one file, or the directory they were.
run 0 merge "$tmp/whole.cut" -o "$tmp/joined.safetensors" -q
[ -f "$tmp/joined.safetensors" ] || die "not a file"
run 0 diff "$tmp/src" "$tmp/joined.safetensors"
run 0 check "$tmp/joined.safetensors" --header
run 0 merge "$tmp/whole.cut" -o "$tmp/joined.model" -q
[ -d "$tmp/joined.model" ] || die "not a directory"
run 0 merge "$tmp/whole.cut" -o "$tmp/joined.d.safetensors/" -q
[ -e "$tmp/joined.d.safetensors/$index" ] || die "a slash does not make a directory"

# ---- one writer --------------------------------------------------------------

# A partial output stays while another process holds its lock.
mkdir "$tmp/busy.partial"
echo growing >"$tmp/busy.partial/model.safetensors"
exec 9<"$tmp/busy.partial"
flock -n 9
busy='busy.partial: another process is writing it'
refused 1 "$busy" shard "$tmp/src" -o "$tmp/busy" "${by[@]}"
refused 1 "$busy" merge "$tmp/cut" -o "$tmp/busy" -q
refused 1 "$busy" quantize "$tmp/src" --type int8 -o "$tmp/busy" -q
[ "$(cat "$tmp/busy.partial/model.safetensors")" = growing ] ||
    die "another process's output is gone"
rm "$tmp/busy.partial/model.safetensors"
refused 1 "$busy" shard "$tmp/src" -o "$tmp/busy" "${by[@]}"
[ -d "$tmp/busy.partial" ] || die "another process's directory is gone"
flock -u 9
run 0 merge "$tmp/cut" -o "$tmp/busy" -q
exec 9<&-
stays "$tmp/busy"
# A link to another directory is not followed.
mkdir "$tmp/other"
echo other >"$tmp/other/model.safetensors"
ln -s other "$tmp/link.partial"
refused 1 'link.partial: cannot open' merge "$tmp/cut" -o "$tmp/link" -q
[ -L "$tmp/link.partial" ] || die "the link is gone"
[ -e "$tmp/other/model.safetensors" ] || die "the target of a link is gone"

# ---- mismatched rank files ---------------------------------------------------

# cut_model TO MESH RULE: splits the model above
cut_model()
{
    run 0 shard "$tmp/model.safetensors" -o "$1" --mesh "$2" --spec "$3" -q \
        --no-sync
}

# no_merge TEXT: merging $tmp/odd fails with TEXT
no_merge()
{
    refused 3 "$1" merge "$tmp/odd" -o "$tmp/none" -q
    [ ! -e "$tmp/none" ] || die "an output exists"
    [ ! -e "$tmp/none.partial" ] || die "a partial output exists"
    rm -rf "$tmp/odd"
}

# edit RANK SCRIPT: edits a header with sed; its length must not change
edit()
{
    local f=$tmp/odd/$1 n
    n=$(stat -c %s "$f")
    LC_ALL=C sed -i "$2" "$f"
    [ "$(stat -c %s "$f")" = "$n" ] || die "$2: changed the length"
    checks=$((checks + 1))
}

# rehead RANK SCRIPT: edits a header with sed -E and updates its length
rehead()
{
    local f=$tmp/odd/$1 n header
    n=$(($(od -An -t u8 -N 8 "$f")))
    header=$(head -c $((8 + n)) "$f" | tail -c +9 | sed -E "$2")
    tail -c +$((9 + n)) "$f" >"$tmp/data"
    safetensors "$f" "$header" ''
    cat "$tmp/data" >>"$f"
}

a=rank-00000-of-00002.safetensors b=rank-00001-of-00002.safetensors
cut_model "$tmp/by_rows" x=2 'up=P(x)'
cut_model "$tmp/by_columns" x=2 'up=P(None, x)'
cut_model "$tmp/by_y" y=2 'up=P(y)'
mkdir "$tmp/odd"
cp "$tmp/by_rows/$a" "$tmp/odd/$b"
cp "$tmp/by_rows/$b" "$tmp/odd/$a"
no_merge "$a: is the file of rank 1, not of rank 0"
cp -r "$tmp/by_rows" "$tmp/odd"
cp "$tmp/by_rows/$a" "$tmp/odd/$b"
no_merge "$b: is the file of rank 0, not of rank 1"
cp -r "$tmp/by_rows" "$tmp/odd"
cp "$tmp/by_y/$b" "$tmp/odd/$b"
no_merge "$b: its mesh is y=2, but that of rank 0 is x=2"
cp -r "$tmp/by_rows" "$tmp/odd"
cp "$tmp/by_columns/$b" "$tmp/odd/$b"
no_merge "$b: its spec of 'up.weight' differs from that of rank 0"

# The description of the checkpoint in the first rank's file.
run 0 shard $golden/sharded -o "$tmp/odd" --mesh x=2 --spec '.=P(x)' --relaxed -q
cp -r "$tmp/odd" "$tmp/even"
key='\(lowbit_shard\.\(name\|size\|header\)\)\.'
edit $a "s/${key}0/\1.2/g;s/${key}1/\1.0/g;s/${key}2/\1.1/g"
no_merge "$a: its file 0 is called 'model-00002-of-00002.safetensors', but"
cp -r "$tmp/even" "$tmp/odd"
edit $a 's/lowbit_shard\.name\.1/lowbit_shard.name.7/'
no_merge "$a: has no value lowbit_shard.name.1, so it was not written by shard"
run 0 shard $layouts/bnb4.safetensors -o "$tmp/odd" --mesh x=2 \
    --spec '.=P(x)' --relaxed -q
edit $a 's/\(lowbit_shard\.tensor\.[^"]*" *: *"\)./\1g/'
no_merge "$a: invalid hex data in its metadata"
cp -r "$tmp/even" "$tmp/odd"
edit $a 's/\(lowbit_shard\.files" *: *"\)2/\13/'
no_merge "$a: has no value lowbit_shard.size.2, so it was not written by shard"
cp -r "$tmp/even" "$tmp/odd"
rehead $a 's/("lowbit_shard\.index":")([^"\\]|\\.)*"/\1{\\"weight_map\\":{}}"/'
no_merge "$a: an index of other files"
cp -r "$tmp/even" "$tmp/odd"
edit $a 's/\(lowbit_shard\.files" *: *"\)2/\1-/'
no_merge "$a: an invalid number in its metadata"
cp -r "$tmp/even" "$tmp/odd"
edit $a 's/\(lowbit_shard\.name\.0" *: *"\)m/\1./'
no_merge "$a: an invalid file name"
cp -r "$tmp/even" "$tmp/odd"
edit $a 's/\(lowbit_shard\.size\.0" *: *"\)[1-9]/\10/'
no_merge "$a: a recorded size smaller than the header"
cp -r "$tmp/even" "$tmp/odd"
edit $a 's/lowbit_shard\.index/lowbit_shard.order/'
no_merge "$a: several files without an index"
cp -r "$tmp/by_rows" "$tmp/odd"
edit $a 's/"x=2"/"x=3"/'
no_merge "$a: its mesh is x=3, but there are files of 2 ranks"
cp -r "$tmp/by_rows" "$tmp/odd"
edit $b 's/"up\.weight"/"up.weighs"/'
no_merge "$b: has no tensor 'up.weight' of 32768 bytes"
cp -r "$tmp/by_rows" "$tmp/odd"
edit $a 's/spec\.up\.weight/spec.up.weighs/'
no_merge "$a: has neither 'up.weight' nor a spec of its array"
cp -r "$tmp/by_rows" "$tmp/odd"
cp "$tmp/by_rows/$a" "$tmp/odd/rank-00000-of-00003.safetensors"
refused 3 "has both $a and rank-00000-of-00003" merge "$tmp/odd" -o "$tmp/none"
rm -r "$tmp/odd"

# A spec longer than any that shard writes.
cp -r "$tmp/by_rows" "$tmp/odd"
for name in $a $b; do rehead "$name" "s/P\(x\)/$(printf '%0600d' 0)/"; done
no_merge "$a: a spec of an array that cannot be split"

# A JSON tensor with a shape at a place where it cannot be rewritten.
cp $layouts/bnb4.safetensors "$tmp/blob.safetensors"
LC_ALL=C sed -i 's/"quant_type": "nf4", "blocksize": \([0-9]*\), "dtype": \("[a-z0-9]*"\), "shape"/"quant_type":"nf4","blocksize":\1,"dtype":\2, "\\u0073hape"/g' \
    "$tmp/blob.safetensors"
run 0 info "$tmp/blob.safetensors"
refused 3 'has no "shape"' shard "$tmp/blob.safetensors" -o "$tmp/none" \
    --mesh x=2 --spec '.=P(x)' --relaxed -q
[ ! -e "$tmp/none" ] || die "an output exists"

rm "$tmp/small.safetensors"
run 0 quantize "$tmp/model.safetensors" -o "$tmp/small.safetensors" --type nf4 \
    --block-size 32 --layout eformer -q
run 0 shard "$tmp/small.safetensors" -o "$tmp/odd" --mesh x=2 --spec 'up=P(x)' -q
edit $a 's/\[64, 256\]/[64,  96]/'
no_merge "$a: 'up.weight.packed' has 8192 bytes, which is not a multiple of its 3072 entries"

# ---- limits ------------------------------------------------------------------

refused 2 'a mesh of 4098 ranks; the maximum for files is 4096' shard \
    "$tmp/model.safetensors" --mesh x=2049,y=2 --spec '.=P()' --dry-run
# More files than may be open at once by default.
header='{"a":{"dtype":"U8","shape":[80],"data_offsets":[0,80]}}'
safetensors "$tmp/a.safetensors" "$header" "$(printf '%080d' 7)"
run 0 shard "$tmp/a.safetensors" -o "$tmp/many" --mesh x=80 --spec 'a=P(x)' \
    --no-sync -q
most=$(ulimit -Hn)
if [ "$most" = unlimited ] || [ "$most" -ge 128 ]; then
    (
        ulimit -Sn 64
        run 0 merge "$tmp/many" -o "$tmp/b.safetensors" --no-sync -q
    )
    cmp "$tmp/a.safetensors" "$tmp/b.safetensors" ||
        die "80 ranks: different bytes"
else
    echo "test_cli_shard.sh: 80 files at once not tested: ulimit -Hn is $most"
fi
rm -rf "$tmp/many" "$tmp/b.safetensors"

# Too large for the first rank's header, where quotes take four bytes.
{
    printf '{"__metadata__":{"k":"'
    yes '\"' | tr -d '\n' | head -c 40000000
    printf '"},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
} >"$tmp/header" || true
n=$(stat -c %s "$tmp/header")
{
    for k in 0 8 16 24 32 40 48 56; do
        # shellcheck disable=SC2059
        printf "\\x$(printf %x $(((n >> k) & 255)))"
    done
    cat "$tmp/header"
} >"$tmp/quotes.safetensors"
run 0 info "$tmp/quotes.safetensors"
refused 3 'bytes; the maximum is 100000000' shard \
    "$tmp/quotes.safetensors" -o "$tmp/none" --mesh x=1 --spec '.=P(x)' -q
[ ! -e "$tmp/none" ] || die "an output exists"
[ ! -e "$tmp/none.partial" ] || die "a partial output exists"

# Reserved file names, and metadata keys reserved for ranks.
mkdir "$tmp/named"
cp $golden/sharded/model-00001-of-00002.safetensors "$tmp/named/.hidden"
echo '{"weight_map":{"layer.0.b":".hidden"}}' >"$tmp/named/$index"
refused 3 "has a file '.hidden', a name that merge would not write" shard \
    "$tmp/named" -o "$tmp/none" "${by[@]}"
header='{"__metadata__":{"lowbit_shard.size.0":"1"}}'
safetensors "$tmp/named/b.safetensors" "$header" ''
refused 3 "already the file of a rank: it has a value lowbit_shard.size.0" shard \
    "$tmp/named/b.safetensors" -o "$tmp/none" "${by[@]}"
# An index without files, and a file name that is not text.
rm -rf "$tmp/none" "$tmp/named"
mkdir "$tmp/named"
echo '{"weight_map":{}}' >"$tmp/named/$index"
echo '# none' >"$tmp/rules"
run 0 shard "$tmp/named" -o "$tmp/empty" --mesh x=2 --rules "$tmp/rules" -q
run 0 merge "$tmp/empty" -o "$tmp/none" -q
cmp "$tmp/named/$index" "$tmp/none/$index" || die "an empty index"
cp "$tmp/a.safetensors" "$tmp/"$'\xff'.safetensors
run 0 shard "$tmp/"$'\xff'.safetensors -o "$tmp/many" --mesh x=2 \
    --spec 'a=P(x)' --force -q
run 0 merge "$tmp/many" -o "$tmp/b.safetensors" --force -q
cmp "$tmp/a.safetensors" "$tmp/b.safetensors" || die "a name that is not text: different bytes"
finish
