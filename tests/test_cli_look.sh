#!/usr/bin/env bash
# test_cli_look.sh PROGRAM - check, diff and stats: validate, compare and describe
# files. Run it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
export LC_ALL=C
src=tests/golden/layouts/bnb4.values # dense: it is what others decode

shows() # STATUS ARGUMENT... <<TEXT: exactly that on stdout
{
    local want=$1
    shift
    cat >"$tmp/want"
    run "$want" "$@"
    diff "$tmp/want" "$tmp/out" >"$tmp/diff" ||
        die "'$*': $(cat "$tmp/diff")"
}

f32() # SHAPE BYTES: the header of a file with one array of f32
{
    echo "{\"w\":{\"dtype\":\"F32\",\"shape\":$1,\"data_offsets\":[0,$2]}}"
}

# ---- check -------------------------------------------------------------------

run 0 check --help
has "usage: lowbit check FILE [OPTION]..."
refused 2 "check takes one argument, FILE (got 0)" check
refused 2 "--jobs takes 1 to 256, not 'x'" check -j x a
refused 1 "cannot open" check no/such
refused 3 "unknown file format" check Makefile
shows 0 check "$src" <<END
$src: safetensors, 7 arrays, 22701 values checked: OK
END
shows 0 check -j 1 --header "$src" <<END
$src: safetensors, 7 arrays, header checked: OK
END
shows 0 check "$golden/scalar.npy" <<END
$golden/scalar.npy: npy, 1 array, 1 value checked: OK
END
shows 0 check "$golden/shapes.safetensors" <<END
$golden/shapes.safetensors: safetensors, 6 arrays, 14 values checked: OK
1 array of unsupported type or shape: only the offsets were checked
END
# Standard input: a file, or a pipe, which is copied.
shows_input() # COMMAND FILE: as `$program COMMAND FILE` does
{
    checks=$((checks + 1))
    "$program" "$1" "$2" | sed "s|^$2: |-: |" >"$tmp/want"
    "$program" "$1" - <"$2" >"$tmp/out"
    cmp "$tmp/want" "$tmp/out" || die "$1 - <FILE"
    # shellcheck disable=SC2002
    cat "$2" | TMPDIR=$tmp "$program" "$1" - >"$tmp/out"
    cmp "$tmp/want" "$tmp/out" || die "cat FILE | $1 -"
}
shows_input check "$src"
shows_input info "$src"
[ -z "$(find "$tmp" -name 'lowbit-*')" ] || die "a temporary file is left"
: | TMPDIR=$tmp/none run 1 check -
grep -q "cannot copy standard input to a file in $tmp/none: No such" \
    "$tmp/err" || die "does not name the directory"
: | run 3 check -
run 0 check -q "$src"
[ ! -s "$tmp/out" ] || die "check -q prints"

# 1, NaN, NaN, -infinity
safetensors "$tmp/nan" "$(f32 "[2,2]" 16)" \
    '\0\0\x80\x3f\0\0\xc0\x7f\0\0\xc0\xff\0\0\x80\xff'
shows 3 check "$tmp/nan" <<END
w: 2 NaN, first at index 1
w: 1 infinite, first at index 3
$tmp/nan: safetensors, 1 array, 4 values checked: 1 invalid array
END
shows 0 check --header "$tmp/nan" <<END
$tmp/nan: safetensors, 1 array, header checked: OK
END
head='"lowbit": "'$("$program" --version | cut -d ' ' -f 2)'", "schema": 1, "verb"'
w='"name": "w", "type": "F32", "format": "dense", "dtype": "f32", "shape"'
shows 3 check --json "$tmp/nan" <<END
{$head: "check", "path": "$tmp/nan", "kind": "safetensors", "arrays": [
{$w: [2, 2], "bytes": 16, "status": "invalid", "message": null, "nan": 2, "infinite": 1, "invalid_codes": 0, "invalid_scales": 0}], "invalid": 1, "unsupported": 0, "values": 4, "warnings": [], "error": {"exit": 3, "kind": "invalid_file", "message": "$tmp/nan: 1 invalid array"}}
END
shows 3 check -q "$tmp/nan" </dev/null
grep -qxF "lowbit: $tmp/nan: 1 invalid array" "$tmp/err" || die "check -q: no error"
run 3 check -q --json "$tmp/nan"
has '"status": "invalid"'
run 0 check --json "$golden/shapes.safetensors"
has '"bytes": 2, "status": "unsupported", "message": '

# In chunks of rows, with the index in the whole array; the same for any number
# of threads. Holes in the file are zeros.
safetensors "$tmp/large" "$(f32 "[20,1048576]" 83886080)" ''
begin=$(stat -c %s "$tmp/large")
truncate -s $((begin + 83886080)) "$tmp/large"
put_bytes "$tmp/large" $((begin + 4 * 20000000)) '\0\0\xc0\x7f'
put_bytes "$tmp/large" $((begin + 4 * 3)) '\0\0\x80\x3f'
for j in 1 2 3; do
    shows 3 check -j $j "$tmp/large" <<END
w: 1 NaN, first at index 20000000
$tmp/large: safetensors, 1 array, 20971520 values checked: 1 invalid array
END
    run 0 stats -j $j "$tmp/large" w
    has "min 0, max 1, mean 4.76837e-08, std 0.000218366, zeros 20971518, NaN 1, infinite 0"
    mv "$tmp/out" "$tmp/stats.$j"
done
cmp "$tmp/stats.1" "$tmp/stats.2"
cmp "$tmp/stats.1" "$tmp/stats.3"
# A clamped NaN does not affect the error of the other values.
"$program" quantize "$tmp/nan" -o "$tmp/clamped" -q --report "$tmp/r.json" \
    --type int8 --override 'w=int8:nonfinite=clamp'
! grep -q '"nrmse": null' "$tmp/r.json" || die "one NaN makes the error NaN"
grep -q '"nrmse": 0' "$tmp/r.json" || die "the report has no error figures"

# Scales are stored first, codes last.
"$program" quantize "$src" -o "$tmp/t" --type ternary -q
size=$(stat -c %s "$tmp/t")
put_bytes "$tmp/t" $((size - 5250)) '\xff'
run 3 check "$tmp/t"
has "'nested.weight': ternary: code 2 of element 0 is invalid"
"$program" quantize "$src" -o "$tmp/n" --type nf4 -q
begin=$((8 + $(od -An -t u8 -N 8 "$tmp/n")))
put_bytes "$tmp/n" $((begin + 8)) '\0\0\x80\xbf'
run 3 check "$tmp/n"
has "nested.weight: 1 scales that are negative or not finite, first at index 2"
has ": 1 invalid array"

# ---- diff --------------------------------------------------------------------

run 0 diff --help
has "usage: lowbit diff A B [OPTION]..."
refused 2 "diff takes two arguments, A B (got 1)" diff a
refused 2 "--tolerance takes a number of at least 0, not '-1'" diff a b \
    --tolerance -1
refused 2 "--tolerance takes a number of at least 0, not 'nan'" diff a b \
    --tolerance nan
refused 2 "--tolerance takes a number of at least 0, not '1x'" diff a b \
    --tolerance 1x
refused 2 "--top takes 1 to 2147483647, not '0'" diff "$src" "$src" --top 0
refused 1 "cannot open" diff no/such "$src"
refused 1 "cannot open" diff "$src" no/such
refused 3 "unknown file format" diff "$src" Makefile
run 0 diff "$src" "$src"
has "nested.weight  bf16      bf16      equal"
has "7 arrays, 0 exceed tolerance 0; overall nrmse 0, max 0, cosine 1"

# |a-b| = 5, |a| = 10; the cosine is 1
safetensors "$tmp/a" "$(f32 "[2]" 8)" '\0\0\xc0\x40\0\0\0\x41' # 6 8
safetensors "$tmp/b" "$(f32 "[2]" 8)" '\0\0\x40\x40\0\0\x80\x40' # 3 4
shows 1 diff "$tmp/a" "$tmp/b" <<END
w     f32       f32       nrmse 0.5       max 4         cosine 1
1 array, 1 exceeds tolerance 0; overall nrmse 0.5, max 4, cosine 1
END
shows 0 diff "$tmp/a" "$tmp/b" --tolerance 0.5 <<END
w     f32       f32       nrmse 0.5       max 4         cosine 1
1 array, 0 exceed tolerance 0.5; overall nrmse 0.5, max 4, cosine 1
END
run 1 diff -q -j 1 "$tmp/a" "$tmp/b"
[ ! -s "$tmp/out" ] || die "diff -q prints"
shows 1 diff "$tmp/a" "$tmp/b" --json <<END
{$head: "diff", "first": "$tmp/a", "second": "$tmp/b", "tolerance": 0, "compared": 1, "differ": 1, "values": 2, "differing": 2, "nonfinite": 0, "nrmse": 0.5, "max": 4, "cosine": 1, "arrays": [
{$w: [2], "bytes": 8, "in": "both", "second": {$w: [2], "bytes": 8}, "message": null, "values": 2, "differing": 2, "nonfinite": 0, "nrmse": 0.5, "max": 4, "cosine": 1, "differs": true}], "warnings": [], "error": {"exit": 1, "kind": "differs", "message": "1 of 1 arrays exceed tolerance 0 or were not compared"}}
END
run 0 diff "$tmp/a" "$tmp/a" --json
[ ! -s "$tmp/err" ] || die "equal files: output on stderr"
# Arrays that cannot be compared.
safetensors "$tmp/c" "$(f32 "[1,2]" 8)" '\0\0\xc0\x40\0\0\0\x41'
run 1 diff "$tmp/a" "$tmp/c"
has "w     f32       f32       different shapes: (2) and (1,2)"
# One array on each side is paired regardless of names.
safetensors "$tmp/d" "$(f32 "[2]" 8 | sed 's/"w"/"v"/')" '\0\0\xc0\x40\0\0\0\x41'
shows 0 diff "$tmp/a" "$tmp/d" <<END
w     f32       f32       equal
1 array, 0 exceed tolerance 0; overall nrmse 0, max 0, cosine 1
END
for k in a b; do "$program" convert "$tmp/$k" -o "$tmp/$k.npy" -q; done
shows 0 diff "$tmp/a.npy" "$tmp/b.npy" --tolerance 0.5 <<END
a     f32       f32       nrmse 0.5       max 4         cosine 1
1 array, 0 exceed tolerance 0.5; overall nrmse 0.5, max 4, cosine 1
END
run 0 diff "$tmp/d" "$tmp/a.npy"
# Several arrays are paired by name; without a pair the error is null.
safetensors "$tmp/vu" '{"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"u":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}' \
    '\0\0\xc0\x40\0\0\0\x41'
shows 1 diff "$tmp/a" "$tmp/vu" --tolerance 9 <<END
w     only in the first file
v     only in the second file
u     only in the second file
3 arrays, 3 exceed tolerance 9; no values were compared
END
run 1 diff "$tmp/a" "$tmp/vu" --json
has '"compared": 0, "differ": 3, "values": 0, "differing": 0, "nonfinite": 0, "nrmse": null, "max": null, "cosine": null, "arrays": ['
has '"in": "first", "second": null, "message": "only in the first file"'
has '"kind": "differs"'
# A value that is finite in one file only is a difference at any tolerance.
safetensors "$tmp/inf" "$(f32 "[2]" 8)" '\0\0\xc0\x40\0\0\x80\x7f' # 6 inf
shows 1 diff "$tmp/a" "$tmp/inf" --tolerance 9 <<END
w     f32       f32       nrmse 0         max 0         cosine 1  1 not finite in one file
1 array, 1 exceeds tolerance 9; overall nrmse 0, max 0, cosine 1
END
safetensors "$tmp/e" "$(f32 "[2]" 16 | sed 's/F32/C64/')" "$(printf '\\0%.0s' {1..16})"
run 1 diff "$tmp/a" "$tmp/e"
has "unsupported type"
run 1 diff "$tmp/a" "$tmp/e" --json
has '"message": "unsupported type", "values": 0,'
run 0 diff "$tmp/nan" "$tmp/nan"
has "equal"
# Columns are as wide as their content; unsupported types are named.
many="[1,1,1,1,1,1,1,1,2]"
header=$(f32 "$many" 8)
safetensors "$tmp/many" "${header%\}},\"longer.name\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}" \
    '\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f'
shows 1 diff "$tmp/many" "$tmp/many" <<END
w            f32       f32       unsupported type or shape
longer.name  f32       f32       equal
2 arrays, 1 exceeds tolerance 0; overall nrmse 0, max 0, cosine 1
END
"$program" quantize "$src" -o "$tmp/dyn" --type dynamic8 -q
run 1 diff "$src" "$tmp/dyn"
has "nested.weight  bf16      dynamic8 (bf16)  nrmse 0.0"
has "norm.weight    bf16      bf16             equal"
# Compared with a quantized file: the worst array first
"$program" quantize "$src" -o "$tmp/q" --type nf4 -q
run 1 diff "$src" "$tmp/q" --top 1
[ "$(wc -l <"$tmp/out")" = 2 ] || die "--top 1 prints more"
has "nested.weight  bf16      nf4 (bf16)  nrmse 0.0"
run 0 diff "$src" "$tmp/q" --top 3 --tolerance 0.1
"$program" quantize "$src" -o "$tmp/r" --type nf4 --layout bnb -q
run 0 diff "$tmp/q" "$tmp/r" --tolerance 0.05

# ---- stats -------------------------------------------------------------------

run 0 stats --help
has "usage: lowbit stats FILE [ARRAY] [OPTION]..."
refused 2 "stats takes FILE [ARRAY] (got 3 arguments)" stats a b c
refused 2 "--bins takes 2 to 200, not '1'" stats a --bins 1
refused 1 "cannot open" stats no/such
refused 3 "unknown file format" stats Makefile
refused 2 "no array 'x' (lowbit info lists them)" stats "$src" x
refused 2 "no array 'norm.wieght'; did you mean norm.weight?" stats "$src" norm.wieght
shows 0 stats "$tmp/a" <<END
name  type                min        max       mean        std
w     f32                   6          8          7          1  @                      @
END
shows 0 stats "$tmp/a" w --bins 4 -j 1 <<END
w  f32  (2)
min 6, max 8, mean 7, std 1, zeros 0, NaN 0, infinite 0
           6  ################################################ 1
         6.5  0
           7  0
         7.5  ################################################ 1
           8
END
LC_ALL=C.UTF-8 shows 0 stats "$tmp/a" --bins 2 <<END
name  type                min        max       mean        std
w     f32                   6          8          7          1  ██
END
shows 0 stats "$tmp/nan" <<END
name  type                min        max       mean        std
w     f32                   1          1          1          0              @             2 NaN  1 infinite
END
# In the order of info; JSON keeps that of the file.
safetensors "$tmp/layers" '{"l.10.w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
    "l.2.w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}' '\1\2'
shows 0 stats "$tmp/layers" --bins 2 <<END
name    type                min        max       mean        std
l.2.w   u8                    2          2          2          0   @
l.10.w  u8                    1          1          1          0   @
END
run 0 stats "$tmp/layers" --json
[ "$(grep -o '"name": "[^"]*"' "$tmp/out" | tr '\n' ' ')" = \
    '"name": "l.10.w" "name": "l.2.w" ' ] || die "JSON in another order"
shows 0 stats --json --bins 2 "$tmp/a" w <<END
{$head: "stats", "path": "$tmp/a", "kind": "safetensors", "arrays": [
{$w: [2], "bytes": 8, "message": null, "min": 6, "max": 8, "mean": 7, "std": 1, "zeros": 0, "nan": 0, "infinite": 0, "histogram": {"lo": 6, "hi": 8, "below": 0, "above": 0, "counts": [1, 1]}, "codes": null}], "warnings": []}
END
# Arrays that cannot be checked are named.
shows 0 stats "$tmp/many" --bins 2 <<END
name         type                min        max       mean        std
longer.name  f32                   1          1          1          0   @
w            f32           unsupported type or shape
END
shows 0 stats "$tmp/e" <<END
name  type                       min        max       mean        std
w     C64 (not supported)  unsupported type
END
run 0 stats "$tmp/e" --json
has '"format": null, "dtype": null, "shape": [2], "bytes": 16, "message": "unsupported type", "min": null, '
refused 3 "C64" stats "$tmp/e" w
# Values so large that their spacing exceeds 1/2 or their range overflows a
# double, and adjacent subnormals.
safetensors "$tmp/far" \
    '{"far":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},"same":{"dtype":"F64","shape":[1],"data_offsets":[16,24]},"near":{"dtype":"F64","shape":[2],"data_offsets":[24,40]}}' \
    '\xff\xff\xff\xff\xff\xff\xef\x7f\xff\xff\xff\xff\xff\xff\xef\xff\x7d\xc3\x94\x25\xad\x49\xb2\x54\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
run 0 stats "$tmp/far" --bins 4
has "far   f64           -1.8e+308   1.8e+308          0        inf  @  @"
has "same  f64              1e+100     1e+100     1e+100          0    @"
has "near  f64                   0  4.94e-324          0          0  @"
shows 0 stats "$tmp/far" far --bins 2 <<END
far  f64  (2)
min -1.79769e+308, max 1.79769e+308, mean 0, std inf, zeros 0, NaN 0, infinite 0
 -1.798e+308  ################################################ 1
           0  ################################################ 1
  1.798e+308
END
safetensors "$tmp/most" \
    '{"most":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}' \
    '\xff\xff\xff\xff\xff\xff\xef\x7f'
shows 0 stats "$tmp/most" most --bins 2 <<END
most  f64  (1)
min 1.79769e+308, max 1.79769e+308, mean 1.79769e+308, std inf, zeros 0, NaN 0, infinite 0
  1.796e+308  0
  1.797e+308  ################################################ 1
  1.798e+308
END
run 0 stats --json "$src"
has '{"name": "bytes.weight", "type": '
run 0 stats "$tmp/q" nested.weight
has "codes"
[ "$(grep -c '^ *[0-9]*  #* [0-9]*$' "$tmp/out")" -ge 16 ] || die "not 16 codes"
run 0 stats "$tmp/q" --raw
has "nested.weight.absmax"

finish
