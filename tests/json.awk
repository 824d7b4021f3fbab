# json.awk - flatten JSON: one line "PATH VALUE" for each value.
#
# Members are .key, elements [0]; strings are printed without quotes and with
# their escapes. An object or a list is printed as {} or [] and its size. Exit
# status 1 and a sentence on stderr if the input is not exactly one value.
# With -v types=1 types are printed instead of values: string, integer, number,
# boolean, null.
{ text = text $0 "\n" }

END {
    at = 1
    value("")
    space()
    if (at <= length(text)) fail("more than one value")
}

function fail(why)
{
    print "not JSON at byte " at ": " why > "/dev/stderr"
    failed = 1
    exit 1
}

function space() { while (substr(text, at, 1) ~ /[ \t\n\r]/) at++ }

function take(c)
{
    space()
    if (substr(text, at, 1) != c) fail("no " c)
    at++
}

function string(    from)
{
    take("\"")
    from = at
    while (substr(text, at, 1) != "\"") {
        if (at > length(text) || substr(text, at, 1) < " ") fail("string")
        at += substr(text, at, 1) == "\\" ? 2 : 1
    }
    return substr(text, from, at++ - from)
}

function word(    s)
{
    s = substr(text, at, 64)
    if (!match(s, /^(true|false|null|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?)/))
        fail("no value")
    at += RLENGTH
    return substr(s, 1, RLENGTH)
}

function type_of(w)
{
    if (w == "true" || w == "false") return "boolean"
    if (w == "null") return w
    return w ~ /[.eE]/ ? "number" : "integer"
}

function items(path, open, shut,    n, key)
{
    take(open)
    space()
    if (substr(text, at, 1) == shut) {
        at++
        return 0
    }
    for (n = 0; n == 0 || substr(text, at - 1, 1) == ","; n++) {
        if (open == "{") {
            key = string()
            if ((path, key) in seen) fail("two of " key)
            seen[path, key] = 1
            take(":")
        }
        value(path (open == "{" ? "." key : "[" n "]"))
        space()
        if (substr(text, at++, 1) !~ /[]},]/) fail("no comma")
    }
    at--
    take(shut)
    return n
}

function value(path,    c)
{
    space()
    c = substr(text, at, 1)
    if (c == "{")
        print path " {} " items(path, "{", "}")
    else if (c == "[")
        print path " [] " items(path, "[", "]")
    else if (c == "\"")
        print path " " (types ? substr("string" string(), 1, 6) : string())
    else
        print path " " (types ? type_of(word()) : word())
}
