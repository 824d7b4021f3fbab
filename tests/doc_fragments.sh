#!/bin/sh
# doc_fragments.sh - every fragment of C in README.md, docs/add-a-*.md,
# docs/training.md and docs/programs.md appears, line for line, in a file that is
# built or in a public header. Differences in blanks are ignored.
# ctest: skip-ref
export LC_ALL=C
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
        print FILENAME ":" line ": this fragment is in no source file"
        bad++
    }
    next
}
inside { piece = piece $0 "\n" }
END {
    print "doc_fragments: " pieces " fragments, " bad + 0 " without a source"
    exit bad > 0 || pieces == 0
}' $(find include src examples tests -name '*.[ch]' -o -name '*.def') \
    README.md docs/add-a-*.md docs/training.md docs/programs.md
