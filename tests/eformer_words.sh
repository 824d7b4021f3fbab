#!/bin/sh
# eformer_words.sh - the first column of a table in docs/from-eformer.md contains
# every word of tests/eformer_words.txt, and every lb_ function and LB_ constant
# that the page names is declared in a public header.
# ctest: skip-ref
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1

page=docs/from-eformer.md
awk '
FNR == NR {
    if (/^[^#]/) want[++n] = $0
    next
}
/^\|/ { split($0, column, "|"); left = left "\n" column[2] " " }
# Whether word is in left, not as a part of a longer name.
function has(word,    rest, at) {
    rest = left
    while ((at = index(rest, word)) > 0) {
        if (substr(rest, at - 1, 1) !~ /[A-Za-z0-9_]/ &&
            (substr(rest, at + length(word), 1) !~ /[A-Za-z0-9_]/ ||
             word !~ /[A-Za-z0-9_]$/))
            return 1
        rest = substr(rest, at + length(word))
    }
    return 0
}
END {
    for (i = 1; i <= n; i++)
        if (!has(want[i])) {
            print FILENAME ": no row for " want[i]
            bad++
        }
    print "eformer_words: " n " words, " bad + 0 " without a row"
    exit bad > 0 || n == 0
}' tests/eformer_words.txt $page || exit 1

bad=$(grep -o '\b\(lb_[a-z0-9_]*[a-z0-9]\|LB_[A-Z0-9_]*[A-Z0-9]\)' $page |
    sort -u | while read -r name; do
    grep -q "\b$name" include/*.h || echo "$page: $name is in no public header"
done)
[ -z "$bad" ] || {
    echo "$bad"
    exit 1
}
