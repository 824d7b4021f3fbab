#!/bin/sh
# doc_fragments.sh - every piece of C in docs/add-a-*.md and docs/training.md
# stands, line for line, in a file that is built or in a public header: what is
# shown is what compiles.
# How many blanks stand in a row does not matter.
# ctest: skip-ref
cd "$(dirname "$0")/.." || exit 1

# shellcheck disable=SC2046
awk '
{ gsub(/ +/, " ") }
FNR == 1 { md = FILENAME ~ /\.md$/; inside = 0 }
!md { text[FILENAME] = text[FILENAME] "\n" $0; next }
/^```c$/ { inside = 1; piece = "\n"; line = FNR; next }
/^```$/ && inside {
    inside = 0
    pieces++
    found = 0
    for (f in text) if (index(text[f] "\n", piece)) found = 1
    if (!found) {
        print FILENAME ":" line ": this C stands in no file"
        bad++
    }
    next
}
inside { piece = piece $0 "\n" }
END {
    print "doc_fragments: " pieces " pieces of C, " bad + 0 " of nobody"
    exit bad > 0 || pieces == 0
}' $(find include src examples tests -name '*.[ch]' -o -name '*.def') \
    docs/add-a-*.md docs/training.md
