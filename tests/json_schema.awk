# json_schema.awk - check a result of the command against docs/json.md.
#
#     awk -f tests/json.awk -v types=1 OUTPUT >FLAT
#     awk -v verb=VERB -v failed=0 -f tests/json_schema.awk docs/json.md FLAT
#
# The tables in docs/json.md are the schema. Every member must be documented with
# its type, and every documented member must be present: on success those of the
# verb, on failure those of the error. report=1: neither warnings nor error.
FNR == 1 { files++ }
files == 1 && /^#/ {
    section = ""
    if ($0 == "## Every object") section = "every"
    if ($0 == "## Arrays") section = "array"
    if (/^### / && index($0, "`" verb "`")) section = "verb"
    known = known || section == "verb"
}
files == 1 && section && /^\| `/ {
    n = split($0, cell, / *\| */)
    gsub(/`/, "", cell[2])
    if (section == "array") member[cell[2]] = cell[3]
    else if (cell[4] ~ /^only on failure/) add_error("." cell[2], cell[3])
    else add("." cell[2], cell[3], section == "every" && !report)
}
files == 2 {
    if (!ready++) prepare()
    type = $0 ~ / (\{\}|\[\]) [0-9]+$/ ? $(NF - 1) : $NF
    path = substr($0, 1, match($0, / (\{\}|\[\]) [0-9]+$/) ? RSTART - 1 \
                                                           : length($0) - length(type) - 1)
    for (p in map)
        if (index(path, p ".") == 1) next
    gsub(/\[[0-9]+\]/, "[]", path)
    if (!(path in want) && hidden(path)) next
    if (!(path in want)) bad(path " is not documented")
    else if (!suits(want[path], type)) bad(path " is " type ", not " want[path])
    seen[path]++
    if (type == "{}") objects[path]++
}
END {
    if (!failed && seen[".error"]) bad(".error after success")
    if (!known && verb != "null") bad("verb " verb " is not documented")
    for (path in want) {
        if (!must[path]) continue
        parent = path
        sub(/(\[\]|\.[^.[]*)$/, "", parent)
        if (path ~ /\[\]$/) continue
        if (seen[path] + 0 != objects[parent] + 0)
            bad(path " occurs " seen[path] + 0 " times in " objects[parent] + 0 " objects")
    }
    exit wrong
}

function bad(what) { print "docs/json.md: " what; wrong = 1 }

function add(path, type, always)
{
    want[path] = type
    must[path] = always || !failed
    if (report && path == ".warnings") must[path] = 0
}

function add_error(path, type)
{
    want[path] = type
    must[path] = failed
}

# What lists and arrays contain.
function prepare(    path, list, n, i, p)
{
    want[""] = "object"
    for (path in want) list[++n] = path
    for (i = 1; i <= n; i++) {
        p = list[i]
        if (want[p] == "map") map[p] = 1
        if (want[p] ~ /^list of /) {
            want[p "[]"] = substr(want[p], 9)
            must[p "[]"] = must[p]
            p = p "[]"
        }
        if (want[p] ~ /^array/) add_members(p, must[p])
        if (want[p] == "any") any[p] = 1
    }
}

# Lists of an array's members hold plain values.
function add_members(p, required,    m)
{
    for (m in member) {
        want[p "." m] = member[m]
        must[p "." m] = required
        if (member[m] ~ /^list of /) want[p "." m "[]"] = substr(member[m], 9)
    }
}

function hidden(path,    p)
{
    for (p in any)
        if (index(path, p) == 1) return 1
    return 0
}

function suits(type, actual)
{
    if (type == "any") return 1
    if (sub(/ or null$/, "", type) && actual == "null") return 1
    if (type ~ /^list of /) return actual == "[]"
    if (type == "object" || type == "array" || type == "map") return actual == "{}"
    return type == actual || (type == "number" && actual == "integer")
}
