#!/usr/bin/env bash
# test_cli_foreign.sh PROGRAM - checkpoints of other programs that cannot be
# decoded here: each is named and none is damaged. To be run in the project's
# root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash
out=$tmp/out.safetensors

# ---- pickles -----------------------------------------------------------------

# zip_file FILE NAME: a ZIP archive with one stored, empty member.
zip_file()
{
    local name=$2 n size at
    n=$(printf '\\x%02x\\0' ${#name})
    size=$(printf '\\x%02x' $((46 + ${#name})))
    at=$(printf '\\x%02x' $((30 + ${#name})))
    # shellcheck disable=SC2059
    {
        printf 'PK\3\4\24\0\0\0\0\0\0\0\41\0'
        printf '\0\0\0\0\0\0\0\0\0\0\0\0'"$n"'\0\0%s' "$name"
        printf 'PK\1\2\24\0\24\0\0\0\0\0\0\0\41\0'
        printf '\0\0\0\0\0\0\0\0\0\0\0\0'"$n"'\0\0\0\0\0\0\0\0\0\0\0\0'
        printf '\0\0\0\0%s' "$name"
        printf 'PK\5\6\0\0\0\0\1\0\1\0'"$size"'\0\0\0'"$at"'\0\0\0\0\0'
    } >"$1"
}

pickled="a PyTorch pickle, which is not supported; convert it to safetensors"
zip_file "$tmp/pytorch_model.bin" archive/data.pkl
zip_file "$tmp/plain.pt" data.pkl
printf '\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.' \
    >"$tmp/legacy.pth"
printf '\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94.' >"$tmp/model.ckpt"
for pickle in pytorch_model.bin plain.pt legacy.pth model.ckpt; do
    refused 3 "$pickle: $pickled" info "$tmp/$pickle"
    refused 3 "$pickle: $pickled" check "$tmp/$pickle"
    refused 3 "$pickle: $pickled" quantize "$tmp/$pickle" -o "$out" --type nf4
    refused 3 "$pickle: $pickled" convert "$tmp/$pickle" -o "$out"
done
zip_file "$tmp/notes.zip" notes.txt
refused 3 "1 files without a single npy array, not an npz file" info "$tmp/notes.zip"
mkdir "$tmp/pickles"
cp "$tmp/pytorch_model.bin" "$tmp/pickles"
refused 3 "pickles: has PyTorch pickles (pytorch_model.bin) and no model.safe" \
    info "$tmp/pickles"
mv "$tmp/pickles/pytorch_model.bin" "$tmp/pickles/pytorch_model.bin.index.json"
refused 3 "(pytorch_model.bin.index.json)" quantize "$tmp/pickles" \
    -o "$tmp/made" --type nf4
# An archive of nothing is what numpy.savez writes of no arrays.
run 0 info "$golden/nothing.npz"
has "total: 0 arrays"
for made in "$out" "$tmp/made"; do
    [ ! -e "$made" ] || die "something was written"
done

finish
