/* python_literal.c - parser for Python literals. */
#include "io/util/python_literal.h"

#include <string.h>

#include "core/core.h"

/* Python's limit of nested brackets. */
enum { DEPTH_MOST = 200 };

typedef struct literal_parser {
    lb_ctx *cx;
    lb_arena *arena;
    const char *text, *at, *end;
    const char *joint; /* after the last line continuation */
    char *room;        /* buffer for the contents of all strings, which are
                        * never longer than the source text */
    int depth;         /* nesting of brackets: inside of them a newline is a
                        * space */
    bool long_ints;
    bool short_memory;
    const char *wrong;
} literal_parser;

static lb_py *parse_value(literal_parser *p);

static void *wrong(literal_parser *p, const char *what)
{
    if (!p->wrong) p->wrong = what;
    return NULL;
}

static void *no_memory(literal_parser *p)
{
    p->short_memory = true;
    return wrong(p, "no memory");
}

static lb_py *new_value(literal_parser *p, lb_py_kind kind)
{
    lb_py *v = lb_arena_alloc(p->cx, p->arena, 1, sizeof *v);
    if (!v) return no_memory(p);
    v->kind = kind;
    v->begin = p->at;
    return v;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A character of a name. All non-ASCII characters count as letters, because
 * names are rejected anyway. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool next_is(const literal_parser *p, char c)
{
    return p->at < p->end && *p->at == c;
}

/* ---- between values ------------------------------------------------------ */

/* A backslash that ends a line continues it; any other backslash stays and is
 * an error. */
static bool pass_joint(literal_parser *p)
{
    if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != '\n')
        return false;
    p->at += 2;
    p->joint = p->at;
    return true;
}

/* Skips spaces; with lines, also comments and newlines inside brackets. */
static void pass_blanks(literal_parser *p, bool lines)
{
    while (p->at < p->end) {
        const char c = *p->at;
        if (c == ' ' || c == '\t' || c == '\f' ||
            (c == '\n' && lines && p->depth)) {
            p->at++;
        } else if (c == '#' && lines) {
            while (p->at < p->end && *p->at != '\n')
                p->at++;
        } else if (!pass_joint(p)) {
            return;
        }
    }
}

static void pass_space(literal_parser *p)
{
    pass_blanks(p, true);
}

static bool pass(literal_parser *p, char c)
{
    pass_space(p);
    if (!next_is(p, c)) return false;
    p->at++;
    return true;
}

static bool pass_word(literal_parser *p, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
        return false;
    const char *end = p->at + n;
    if (end < p->end && (is_letter(*end) || is_digit(*end))) return false;
    p->at = end;
    return true;
}

/* Skips blank lines before and after the value. */
static void pass_lines(literal_parser *p)
{
    do
        pass_space(p);
    while (pass(p, '\n'));
}

/* The first line that is not blank must not be indented, unless it is the very
 * first. A form feed resets the indentation. */
static bool is_indented(const literal_parser *p)
{
    const char *line = p->at;
    while (line > p->text && line[-1] != '\n' && line[-1] != '\f')
        line--;
    if (line == p->text || line == p->at) return false;
    if (line[-1] == '\n' && line - 1 > p->text && line[-2] == '\\')
        return false;
    return true;
}

/* ---- strings ------------------------------------------------------------- */

/* String prefixes: any order and case, each letter at most once. */
typedef struct prefix {
    size_t n; /* number of letters */
    bool raw, bytes;
} prefix;

/* Whether a string literal begins here. */
static bool string_begins(const literal_parser *p, prefix *x)
{
    bool plain = false;
    *x = (prefix){0};
    for (const char *at = p->at; at < p->end; at++, x->n++) {
        switch (*at) {
        case '\'':
        case '"':
            return !plain || x->n == 1;
        case 'u':
        case 'U':
            if (plain) return false;
            plain = true;
            break;
        case 'r':
        case 'R':
            if (x->raw) return false;
            x->raw = true;
            break;
        case 'b':
        case 'B':
            if (x->bytes) return false;
            x->bytes = true;
            break;
        default:
            return false;
        }
    }
    return false;
}

static int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    const int low = c | 0x20;
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* Exactly n digits in base 16, or up to n digits in base 8. */
static int64_t pass_code(literal_parser *p, int n, int base)
{
    int64_t v = 0;
    int i = 0;
    for (; i < n && p->at < p->end; i++, p->at++) {
        const int digit = hex_digit(*p->at);
        if (digit < 0 || digit >= base) break;
        v = v * base + digit;
    }
    return i == n || (base == 8 && i) ? v : -1;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)((0xff80u >> more) | c >> 6 * more);
    for (int i = more - 1; i >= 0; i--)
        *to++ = (char)(0x80 | (c >> 6 * i & 0x3f));
    return to;
}

/* Decodes an escape sequence after its backslash; NULL if it is invalid.
 * Unknown escapes are kept with their backslash. */
static char *pass_escape(literal_parser *p, char *to, bool bytes)
{
    static const char letter[] = "\\'\"abfnrtv",
                      plain[] = "\\'\"\a\b\f\n\r\t\v";
    const char c = *p->at;
    const char *k = c ? strchr(letter, c) : NULL;
    int64_t code = -1;
    if (c == '\n') return p->at++, to;
    if (k) return p->at++, *to++ = plain[k - letter], to;
    const bool wide = !bytes && (c == 'u' || c == 'U');
    if (c >= '0' && c <= '7') {
        code = pass_code(p, 3, 8);
    } else if (c == 'x' || wide) {
        p->at++;
        code = pass_code(p, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    } else if (c == 'N' && !bytes) {
        return wrong(p, "a character given by its name");
    } else {
        *to++ = '\\';
        return to;
    }
    if (code < 0 || code > 0x10ffff) return wrong(p, "no escape");
    if (!bytes) return put_utf8(to, (uint32_t)code);
    *to++ = (char)code;
    return to;
}

static bool ends_here(const literal_parser *p, const char *quote, size_t n)
{
    return (size_t)(p->end - p->at) >= n && memcmp(p->at, quote, n) == 0;
}

/* Parses a string from its prefix on. Returns the end of its contents in `to`.
 */
static char *pass_string(literal_parser *p, const prefix *x, char *to)
{
    p->at += x->n;
    const char q[3] = {*p->at, *p->at, *p->at};
    const size_t n = ends_here(p, q, 3) ? 3 : 1;
    p->at += n;
    while (p->at < p->end && !ends_here(p, q, n)) {
        const char c = *p->at;
        if (c == '\n' && n == 1) return wrong(p, "an unterminated string");
        if (x->bytes && (unsigned char)c >= 0x80)
            return wrong(p, "non-ASCII characters in bytes");
        p->at++;
        if (c != '\\' || p->at == p->end) {
            *to++ = c;
        } else if (x->raw) {
            *to++ = c;
            *to++ = *p->at++;
        } else {
            to = pass_escape(p, to, x->bytes);
            if (!to) return NULL;
        }
    }
    if (p->at == p->end) return wrong(p, "an unterminated string");
    p->at += n;
    return to;
}

/* One or more adjacent literals, which are concatenated. */
static lb_py *parse_string(literal_parser *p, prefix x)
{
    lb_py *v = new_value(p, x.bytes ? LB_PY_BYTES : LB_PY_STRING);
    char *to = p->room;
    if (!v) return NULL;
    do {
        if ((v->kind == LB_PY_BYTES) != x.bytes)
            return wrong(p, "a string next to bytes");
        to = pass_string(p, &x, to);
        if (!to) return NULL;
        v->end = p->at;
        pass_space(p);
    } while (string_begins(p, &x));
    v->text = p->room;
    v->n = (size_t)(to - p->room);
    p->room = to + 1; /* the terminating 0 */
    return v;
}

/* ---- numbers ------------------------------------------------------------- */

/* Digits, possibly separated by single underscores; false if there are none. If
 * v is not NULL, it receives the value, and wide whether that overflows. */
static bool pass_digits(literal_parser *p, int base, bool under, int64_t *v,
                        bool *wide)
{
    bool some = false;
    for (;;) {
        const char *at = p->at;
        if (under && next_is(p, '_')) at++;
        const int digit = at < p->end ? hex_digit(*at) : -1;
        if (digit < 0 || digit >= base) return some;
        if (v &&
            (*wide || !lb_mul_i64(*v, base, v) || !lb_add_i64(*v, digit, v))) {
            *wide = true;
            *v = 0;
        }
        p->at = at + 1;
        some = under = true;
    }
}

/* After 0x, 0o or 0b. */
static bool pass_based(literal_parser *p, lb_py *v)
{
    const int letter = p->at[1] | 0x20;
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
    p->at += 2;
    return pass_digits(p, base, true, &v->number, &v->wide);
}

/* Fraction, exponent and imaginary unit, all optional. */
static bool pass_rest(literal_parser *p, lb_py *v)
{
    if (next_is(p, '.')) {
        p->at++;
        v->kind = LB_PY_NUMBER;
        pass_digits(p, 10, false, NULL, NULL);
    }
    if (next_is(p, 'e') || next_is(p, 'E')) {
        p->at++;
        v->kind = LB_PY_NUMBER;
        if (next_is(p, '+') || next_is(p, '-')) p->at++;
        if (!pass_digits(p, 10, false, NULL, NULL)) return false;
    }
    if (next_is(p, 'j') || next_is(p, 'J')) {
        p->at++;
        v->kind = LB_PY_NUMBER;
    }
    return true;
}

/* Python 2's suffix L, any number of them: numpy skips them. */
static void pass_long(literal_parser *p)
{
    while (p->long_ints) {
        const char *before = p->at;
        pass_blanks(p, false);
        if (pass_word(p, "L")) continue;
        p->at = before;
        return;
    }
}

static lb_py *parse_number(literal_parser *p)
{
    lb_py *v = new_value(p, LB_PY_INT);
    if (!v) return NULL;
    const char *begin = p->at;
    bool ok = true;
    if (p->end - begin > 1 && *begin == '0' && begin[1] &&
        strchr("xXoObB", begin[1])) {
        ok = pass_based(p, v);
    } else {
        pass_digits(p, 10, false, &v->number, &v->wide);
        ok = pass_rest(p, v) &&
             (v->kind != LB_PY_INT || *begin != '0' ||
              (v->number == 0 && !v->wide)); /* 007 is invalid */
    }
    v->end = p->at;
    if (ok) pass_long(p);
    if (!ok || (p->at < p->end && (is_letter(*p->at) || is_digit(*p->at))))
        return wrong(p, "no number");
    return v;
}

/* ---- values -------------------------------------------------------------- */

static bool open_bracket(literal_parser *p)
{
    p->at++;
    if (++p->depth > DEPTH_MOST) wrong(p, "too deeply nested brackets");
    return p->depth <= DEPTH_MOST;
}

/* Items up to the closing bracket, separated by commas, possibly with a
 * trailing one. *comma: whether there was a comma. In braces: entries of a
 * dict, if the first item is one. */
static bool parse_items(literal_parser *p, lb_py *v, char close, bool *comma)
{
    lb_py **end = &v->item;
    *comma = true;
    while (!pass(p, close)) {
        if (!*comma) return wrong(p, "no comma") != NULL;
        lb_py *item = parse_value(p);
        if (!item) return false;
        *end = item;
        end = &item->next;
        const bool entry = close == '}' && pass(p, ':');
        if (close == '}' && v->n == 0 && !entry) v->kind = LB_PY_SET;
        if (close == '}' && entry != (v->kind == LB_PY_DICT))
            return wrong(p, "neither a dict nor a set") != NULL;
        v->n++;
        if (entry) {
            item = parse_value(p);
            if (!item) return false;
            *end = item;
            end = &item->next;
            v->n++;
        }
        *comma = pass(p, ',');
    }
    p->depth--;
    v->end = p->at;
    return true;
}

static lb_py *parse_bracket(literal_parser *p, lb_py_kind kind, char close)
{
    bool comma;
    lb_py *v = new_value(p, kind);
    if (!v || !open_bracket(p) || !parse_items(p, v, close, &comma))
        return NULL;
    if (kind != LB_PY_TUPLE || v->n != 1 || comma) return v;
    return v->item; /* in parentheses */
}

static lb_py *parse_word(literal_parser *p)
{
    lb_py *v = new_value(p, LB_PY_BOOL);
    if (!v) return NULL;
    if (pass_word(p, "True")) {
        v->number = 1;
    } else if (pass_word(p, "None")) {
        v->kind = LB_PY_NONE;
    } else if (pass_word(p, "set")) {
        v->kind = LB_PY_SET;
        if (!pass(p, '(') || !pass(p, ')')) return wrong(p, "no value");
    } else if (!pass_word(p, "False")) {
        return wrong(p, "no value");
    }
    v->end = p->at;
    return v;
}

static lb_py *parse_atom(literal_parser *p)
{
    prefix x;
    pass_space(p);
    if (p->at == p->end) return wrong(p, "no value");
    if (string_begins(p, &x)) return parse_string(p, x);
    switch (*p->at) {
    case '(':
        return parse_bracket(p, LB_PY_TUPLE, ')');
    case '[':
        return parse_bracket(p, LB_PY_LIST, ']');
    case '{':
        return parse_bracket(p, LB_PY_DICT, '}');
    case '.':
        if (p->end - p->at >= 3 && memcmp(p->at, "...", 3) == 0) {
            lb_py *v = new_value(p, LB_PY_NONE);
            p->at += 3;
            if (v) v->end = p->at;
            return v;
        }
        if (p->end - p->at > 1 && is_digit(p->at[1])) return parse_number(p);
        return wrong(p, "no value");
    default:
        return is_digit(*p->at) ? parse_number(p) : parse_word(p);
    }
}

/* A sign is allowed once, before an unsigned number. */
static lb_py *parse_value(literal_parser *p)
{
    pass_space(p);
    const char *begin = p->at;
    const bool minus = next_is(p, '-');
    const bool sign = minus || next_is(p, '+');
    if (sign) p->at++;
    lb_py *v = parse_atom(p);
    if (!v || !sign) return v;
    if ((v->kind != LB_PY_INT && v->kind != LB_PY_NUMBER) || v->computed)
        return wrong(p, "a sign that is not before a number");
    if (minus) v->number = -v->number;
    v->computed = true;
    v->begin = begin;
    return v;
}

/* One value, or several separated by commas, which form a tuple. */
static lb_py *parse_values(literal_parser *p)
{
    lb_py *v = parse_value(p), *all = NULL;
    if (!v || !pass(p, ',')) return v;
    all = new_value(p, LB_PY_TUPLE);
    if (!all) return NULL;
    all->begin = v->begin;
    all->item = v;
    all->n = 1;
    for (pass_space(p); p->at < p->end && *p->at != '\n'; pass_space(p)) {
        v->next = parse_value(p);
        v = v->next;
        if (!v) return NULL;
        all->n++;
        if (!pass(p, ',')) break;
    }
    all->end = p->at;
    return all;
}

/* Only blank lines may follow the value, without line continuations. The
 * value's last line may continue, but not to the end of the text. */
static void pass_end(literal_parser *p)
{
    pass_space(p);
    bool joined = p->joint == p->end;
    p->joint = NULL;
    pass_lines(p);
    joined = joined || p->joint;
    if (p->at != p->end)
        wrong(p, "more than one value");
    else if (joined)
        wrong(p, "a line continuation at the end");
}

const lb_py *lb_py_parse(lb_ctx *cx, lb_arena *arena, const char *text,
                         size_t n, bool long_ints, const char **why, size_t *at)
{
    literal_parser p = {.cx = cx, .arena = arena, .text = text, .at = text};
    p.end = text + n;
    p.long_ints = long_ints;
    p.room = lb_arena_alloc(cx, arena, (uint64_t)n + 1, 1);
    *at = 0;
    if (!p.room) return NULL;
    const lb_py *v = NULL;
    pass_lines(&p);
    if (is_indented(&p))
        wrong(&p, "an indented line");
    else
        v = parse_values(&p);
    if (v) pass_end(&p);
    *at = (size_t)(p.at - text);
    if (p.wrong && !p.short_memory) *why = p.wrong;
    return p.wrong ? NULL : v;
}

bool lb_py_is(const lb_py *v, const char *string)
{
    return v->kind == LB_PY_STRING && strlen(string) == v->n &&
           memcmp(v->text, string, v->n) == 0;
}
