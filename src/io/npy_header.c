/* npy_header.c - the header of npy files: parsed and composed. */
#include "io/npy_header.h"

#include <string.h>

enum { RANK_MOST = 64, NESTING_MOST = 8 }; /* numpy has 64 */

const lb_coding lb_npy_types[] = {
    {"|b1", LB_BOOL, 1, 1, 0},     {"|i1", LB_I8, 1, 1, 0},
    {"<i2", LB_I16, 1, 2, 0},      {"<i4", LB_I32, 1, 4, 0},
    {"<i8", LB_I64, 1, 8, 0},      {"|u1", LB_U8, 1, 1, 0},
    {"<u2", LB_U16, 1, 2, 0},      {"<u4", LB_U32, 1, 4, 0},
    {"<u8", LB_U64, 1, 8, 0},      {"<f2", LB_F16, 1, 2, 0},
    {"<f4", LB_F32, 1, 4, 0},      {"<f8", LB_F64, 1, 8, 0},
    {"|V2", LB_NO_DTYPE, 1, 2, 0}, {NULL, LB_NO_DTYPE, 0, 0, 0},
};

static const char magic[] = "\x93NUMPY";
enum { MAGIC = sizeof magic - 1 };

bool lb_npy_probe(const uint8_t *head, size_t n)
{
    return n >= MAGIC && memcmp(head, magic, MAGIC) == 0;
}

bool lb_npy_prefix(lb_ctx *cx, const lb_infile *f, const char *who,
                   const uint8_t *head, size_t n, size_t *begin, size_t *length,
                   int *major)
{
    if (n < MAGIC + 2 || !lb_npy_probe(head, n))
        return lb_refuse(cx, f, "%s: does not begin as npy does", who);
    const int version = head[MAGIC], minor = head[MAGIC + 1];
    if (version < 1 || version > 3 || minor)
        return lb_refuse(cx, f, "%s: npy version %d.%d, not 1.0, 2.0 or 3.0",
                         who, version, minor);
    *begin = MAGIC + 2 + (version == 1 ? 2 : 4);
    if (n < *begin)
        return lb_refuse(cx, f, "%s: ends after %zu bytes, before its header",
                         who, n);
    const uint8_t *at = head + MAGIC + 2;
    *length = version == 1 ? lb_get_u16(at) : lb_get_u32(at);
    *major = version;
    if (*length > LB_NPY_LITERAL)
        return lb_refuse(cx, f, "%s: a header of %zu bytes, more than %d", who,
                         *length, LB_NPY_LITERAL);
    return true;
}

/* ---- parsing ------------------------------------------------------------- */

typedef struct parser {
    lb_ctx *cx;
    const lb_infile *f;
    const char *who;
    lb_arena *arena;
    const uint8_t *text, *at, *end;
    int major;
} parser;

/* What one element is. */
typedef struct item {
    int64_t size;
    int swap;
    lb_dtype dtype;
} item;

static bool wrong(parser *p, const char *what)
{
    return lb_refuse(p->cx, p->f, "%s: its header has %s at byte %td", p->who,
                     what, p->at - p->text);
}

static void pass_space(parser *p)
{
    while (p->at < p->end && *p->at && strchr(" \t\r\n\f", *p->at))
        p->at++;
}

/* Passes c, if it comes next. */
static bool pass(parser *p, char c)
{
    pass_space(p);
    if (p->at == p->end || *p->at != (uint8_t)c) return false;
    p->at++;
    return true;
}

static bool pass_word(parser *p, const char *word)
{
    const size_t n = strlen(word);
    pass_space(p);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* A string, as it stands between its quotes. Names of fields may have escapes,
 * which nobody here wants to know. */
static bool parse_string(parser *p, const char **text, size_t *n)
{
    pass_space(p);
    if (p->at < p->end && *p->at == 'u') p->at++; /* Python 2's */
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"'))
        return wrong(p, "no string");
    const uint8_t quote = *p->at++, *begin = p->at;
    for (; p->at < p->end && *p->at != quote; p->at++)
        if (*p->at == '\\' && p->end - p->at > 1) p->at++;
    if (p->at == p->end) return wrong(p, "a string without an end");
    *text = (const char *)begin;
    *n = (size_t)(p->at++ - begin);
    return true;
}

/* From 0 on, and not octal. Python 2 wrote an L after long ones. */
static bool parse_number(parser *p, int64_t *n)
{
    pass_space(p);
    const uint8_t *begin = p->at;
    *n = 0;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (!lb_mul_i64(*n, 10, n) || !lb_add_i64(*n, *p->at - '0', n))
            return wrong(p, "a number that is too large");
    if (p->at == begin || (*begin == '0' && *n))
        return wrong(p, "no number from 0 on");
    if (p->major < 3 && p->at < p->end && *p->at == 'L') p->at++;
    return true;
}

/* A tuple of numbers; dim has room for RANK_MOST. */
static bool parse_shape(parser *p, int64_t *dim, int *rank)
{
    *rank = 0;
    bool comma = true;
    if (!pass(p, '(')) return wrong(p, "no tuple");
    while (!pass(p, ')')) {
        if (!comma) return wrong(p, "no comma");
        if (*rank == RANK_MOST) return wrong(p, "a shape of too many axes");
        if (!parse_number(p, &dim[(*rank)++])) return false;
        comma = pass(p, ',');
    }
    if (*rank == 1 && !comma) return wrong(p, "a number that is no tuple");
    return true;
}

/* Digits that are left of a descr; -1 if there are others. */
static int64_t digits(const char *s, size_t n)
{
    int64_t v = 0;
    if (n == 0 || n > 9) return -1;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return -1;
        v = v * 10 + (s[i] - '0');
    }
    return v;
}

/* Numbers: which sizes there are, and ours among them. */
static bool number_item(char kind, int64_t n, item *it)
{
    static const struct {
        char kind;
        int8_t size;
        lb_dtype dtype;
    } known[] = {
        {'b', 1, LB_BOOL},      {'i', 1, LB_I8},       {'i', 2, LB_I16},
        {'i', 4, LB_I32},       {'i', 8, LB_I64},      {'u', 1, LB_U8},
        {'u', 2, LB_U16},       {'u', 4, LB_U32},      {'u', 8, LB_U64},
        {'f', 2, LB_F16},       {'f', 4, LB_F32},      {'f', 8, LB_F64},
        {'f', 16, LB_NO_DTYPE}, {'c', 8, LB_NO_DTYPE}, {'c', 16, LB_NO_DTYPE},
        {'c', 32, LB_NO_DTYPE}, {'M', 8, LB_NO_DTYPE}, {'m', 8, LB_NO_DTYPE},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].kind != kind || known[i].size != n) continue;
        const int unit = (int)(kind == 'c' ? n / 2 : n);
        *it = (item){n, unit, known[i].dtype};
        return true;
    }
    return false;
}

static bool is(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

/* The number type of that kind and size; NULL if there is none. */
static const char *sized(char kind, int64_t bytes)
{
    static const char *const all[] = {"b1", "i1", "i2", "i4", "i8",
                                      "u1", "u2", "u4", "u8", "f2",
                                      "f4", "f8", "c8", "c16"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i][0] == kind &&
            digits(all[i] + 1, strlen(all[i]) - 1) == bytes)
            return all[i];
    return NULL;
}

/* What numpy calls types, too: a letter, or a word, after which their bits may
 * stand, and before which no order. NULL: nothing of the kind. */
static const char *other_name(const char *s, size_t n, bool ordered)
{
    static const char letter[] = "?bBhHiIlqpnLQPNefdFD";
    static const char *const meant[] = {
        "b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "i8", "i8",
        "i8", "u8", "u8", "u8", "u8", "f2", "f4", "f8", "c8", "c16"};
    static const struct {
        const char *word;
        int bytes; /* if no bits are said */
    } word[] = {
        {"bool", 1}, {"int", 8}, {"uint", 8}, {"float", 8}, {"complex", 16}};
    const char *at = n == 1 ? strchr(letter, *s) : NULL;
    if (at && *at) return meant[at - letter];
    for (size_t i = 0; !ordered && i < sizeof word / sizeof *word; i++) {
        const size_t k = strlen(word[i].word);
        if (n < k || memcmp(s, word[i].word, k) != 0) continue;
        const int64_t bits = n > k ? digits(s + k, n - k) : 8 * word[i].bytes;
        if (bits % 8 == 0 && (*s != 'b' || n == k)) return sized(*s, bits / 8);
    }
    return NULL;
}

/* Of times: "[s]", "[25us]". */
static bool is_unit(const char *s, size_t n)
{
    static const char *const unit[] = {"Y",  "M",  "W",  "D",      "h",
                                       "m",  "s",  "ms", "us",     "ns",
                                       "ps", "fs", "as", "generic"};
    if (n < 2 || s[n - 1] != ']') return false;
    s++, n -= 2;
    while (n && *s >= '0' && *s <= '9')
        s++, n--;
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
        if (is(s, n, unit[i])) return true;
    return false;
}

/* "<f4", "|S5", ..; order gets its mark as numpy would write it, *s and *n what
 * follows that. */
static bool parse_simple(parser *p, const char **s_, size_t *n_, item *it,
                         char *order)
{
    const char *s = *s_, *all = s;
    size_t n = *n_;
    const size_t all_n = n;
    *order = '<';
    if (n && strchr("<>=|", *s) && *s) {
        if (*s == '>') *order = '>';
        s++, n--;
    }
    const char *other = n ? other_name(s, n, s != all) : NULL;
    if (other) s = other, n = strlen(other);
    *s_ = s;
    *n_ = n;
    const char kind = n ? *s : 0;
    const char *unit = n ? memchr(s, '[', n) : NULL;
    if (kind && strchr("Mm", kind) && unit &&
        is_unit(unit, n - (size_t)(unit - s)))
        n = (size_t)(unit - s);
    const int64_t count = n ? digits(s + 1, n - 1) : -1;
    bool ok = count >= 0;
    if (kind == 'O')
        return lb_refuse(p->cx, p->f,
                         "%s: holds objects of Python, which are programs",
                         p->who);
    if (ok && (kind == 'S' || kind == 'a' || kind == 'V'))
        *it = (item){count, 1, LB_NO_DTYPE};
    else if (ok && kind == 'U')
        *it = (item){count * 4, 4, LB_NO_DTYPE};
    else
        ok = ok && number_item(kind, count, it);
    if (!ok)
        return lb_refuse(p->cx, p->f, "%s: '%s' is no descr of numpy", p->who,
                         lb_quote(all, all_n, false).s);
    if (it->swap == 1) *order = '|';
    if (*order != '>') it->swap = 0;
    return true;
}

static bool parse_item(parser *p, int depth, item *it);

/* (name, item) or (name, item, shape), where name may be (title, name). */
static bool parse_field(parser *p, int depth, int64_t *size)
{
    const char *name;
    size_t n;
    int64_t dim[RANK_MOST];
    int rank = 0;
    item it = {0, 0, LB_NO_DTYPE};
    if (!pass(p, '(')) return wrong(p, "no tuple");
    if (pass(p, '(')) {
        if (!parse_string(p, &name, &n) || !pass(p, ',') ||
            !parse_string(p, &name, &n) || !pass(p, ')'))
            return wrong(p, "no title and name");
    } else if (!parse_string(p, &name, &n))
        return false;
    if (!pass(p, ',')) return wrong(p, "no comma");
    if (!parse_item(p, depth + 1, &it)) return false;
    bool closed = false;
    if (pass(p, ',')) {
        closed = pass(p, ')');
        if (!closed && !parse_shape(p, dim, &rank)) return false;
        if (!closed) pass(p, ',');
    }
    if (!closed && !pass(p, ')')) return wrong(p, "no end of a tuple");
    for (int i = 0; i < rank; i++)
        if (!lb_mul_i64(it.size, dim[i], &it.size))
            return wrong(p, "a field that is too large");
    if (!lb_add_i64(*size, it.size, size) || *size > INT32_MAX)
        return wrong(p, "a field that is too large");
    return true;
}

/* A descr, or a list of fields. Its bytes have no one order then. */
static bool parse_item(parser *p, int depth, item *it)
{
    char order;
    const char *s;
    size_t n;
    pass_space(p);
    if (p->at < p->end && *p->at != '[')
        return parse_string(p, &s, &n) && parse_simple(p, &s, &n, it, &order);
    if (depth > NESTING_MOST) return wrong(p, "fields that nest too deep");
    *it = (item){0, 0, LB_NO_DTYPE};
    bool comma = true;
    if (!pass(p, '[')) return wrong(p, "no descr");
    while (!pass(p, ']')) {
        if (!comma) return wrong(p, "no comma");
        if (!parse_field(p, depth, &it->size)) return false;
        comma = pass(p, ',');
    }
    return true;
}

/* A piece of the literal in UTF-8; versions 1 and 2 are in Latin-1. */
static char *literal_text(parser *p, const uint8_t *from, const uint8_t *end)
{
    const size_t n = (size_t)(end - from);
    if (p->major == 3) return lb_arena_text(p->cx, p->arena, from, n);
    char *text = lb_arena_alloc(p->cx, p->arena, 2 * n + 1, 1), *to = text;
    for (; text && from < end; from++) {
        if (*from >= 0x80) *to++ = (char)(0xc0 | *from >> 6);
        *to++ = (char)(*from < 0x80 ? *from : 0x80 | (*from & 0x3f));
    }
    return text;
}

/* t->type is what numpy calls it: with its order for a simple one. */
static bool parse_descr(parser *p, lb_tensor *t, item *it)
{
    const char *s;
    size_t n;
    char order;
    pass_space(p);
    const uint8_t *begin = p->at;
    if (p->at < p->end && *p->at == '[') {
        if (!parse_item(p, 0, it)) return false;
        t->type = literal_text(p, begin, p->at);
        return t->type != NULL;
    }
    if (!parse_string(p, &s, &n) || !parse_simple(p, &s, &n, it, &order))
        return false;
    char *type = lb_arena_alloc(p->cx, p->arena, n + 2, 1);
    if (!type) return false;
    type[0] = order;
    memcpy(type + 1, s, n);
    t->type = type;
    t->dtype = it->dtype;
    t->swap = it->swap;
    return true;
}

enum { DESCR = 1, FORTRAN = 2, SHAPE = 4, ALL = 7 };

static bool parse_entry(parser *p, lb_tensor *t, item *it, unsigned *seen)
{
    static const char *const key[] = {"descr", "fortran_order", "shape"};
    const char *s;
    size_t n;
    unsigned which = 0;
    if (!parse_string(p, &s, &n)) return false;
    for (unsigned i = 0; i < 3; i++)
        if (strlen(key[i]) == n && memcmp(key[i], s, n) == 0) which = 1u << i;
    if (!which || *seen & which)
        return wrong(p, "a key that is unknown or twice");
    *seen |= which;
    if (!pass(p, ':')) return wrong(p, "no colon");
    if (which == DESCR) return parse_descr(p, t, it);
    if (which == FORTRAN) {
        t->fortran = pass_word(p, "True");
        return t->fortran || pass_word(p, "False") || wrong(p, "no bool");
    }
    int64_t room[RANK_MOST];
    if (!parse_shape(p, room, &t->rank)) return false;
    const size_t size = (size_t)t->rank * sizeof *room;
    int64_t *dim = lb_arena_alloc(p->cx, p->arena, size, 1);
    if (!dim) return false;
    memcpy(dim, room, size);
    t->dim = dim;
    return true;
}

/* Also of an array without elements the others are counted. */
static bool is_counted(const lb_tensor *t, const item *it)
{
    int64_t n = it->size ? it->size : 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] && !lb_mul_i64(n, t->dim[i], &n)) return false;
    return true;
}

bool lb_npy_parse(lb_ctx *cx, const lb_infile *f, const char *who,
                  lb_arena *arena, const uint8_t *literal, size_t n, int major,
                  lb_tensor *t)
{
    parser p = {cx, f, who, arena, literal, literal, literal + n, major};
    item it = {0, 0, LB_NO_DTYPE};
    unsigned seen = 0;
    bool comma = true;
    if (major == 3 && !lb_utf8_valid((const char *)literal, n))
        return lb_refuse(cx, f, "%s: its header is not UTF-8", who);
    if (!pass(&p, '{')) return wrong(&p, "no dict");
    while (!pass(&p, '}')) {
        if (!comma) return wrong(&p, "no comma");
        if (!parse_entry(&p, t, &it, &seen)) return false;
        comma = pass(&p, ',');
    }
    pass_space(&p);
    if (p.at != p.end) return wrong(&p, "more than a dict");
    if (seen != ALL) return wrong(&p, "not descr, fortran_order and shape");
    const lb_coding c = {t->type, t->dtype, 1, (int)it.size, 0};
    if (!lb_coding_size(&c, t->dim, t->rank, &t->size) || !is_counted(t, &it))
        return lb_refuse(cx, f, "%s: more bytes than can be counted", who);
    return true;
}

/* ---- composing ----------------------------------------------------------- */

static void put_shape(lb_bytes *b, const lb_tensor *t)
{
    lb_bytes_put(b, "(", 1);
    for (int i = 0; i < t->rank; i++)
        lb_bytes_text(b, "%s%lld", i ? ", " : "", (long long)t->dim[i]);
    lb_bytes_text(b, "%s)", t->rank == 1 ? "," : "");
}

bool lb_npy_suits(lb_ctx *cx, const lb_tensor *t)
{
    if (t->rank <= RANK_MOST) return true;
    return lb_fail(cx, LB_E_UNSUPPORTED,
                   "tensor '%s' has rank %d: numpy has at most %d",
                   LB_NAME(t->name), t->rank, RANK_MOST);
}

/* numpy leaves room for the slowest axis to grow to 21 digits, and pads so that
 * numbers begin at a multiple of 64, with 1 to 64 spaces. */
void lb_npy_compose(lb_bytes *b, const lb_tensor *t)
{
    enum { DIGITS = 21, ALIGN = 64 };
    const size_t begin = b->n, prefix = MAGIC + 2 + 2;
    lb_bytes_put(b, magic, MAGIC);
    lb_bytes_put(b, "\x01\x00", 2);
    lb_bytes_u16(b, 0);
    lb_bytes_text(b, "{'descr': '%s', 'fortran_order': %s, 'shape': ", t->type,
                  t->fortran ? "True" : "False");
    put_shape(b, t);
    lb_bytes_text(b, ", }");
    if (t->rank) {
        const size_t before = b->n;
        lb_bytes_text(b, "%lld",
                      (long long)t->dim[t->fortran ? t->rank - 1 : 0]);
        const size_t wide = b->n - before;
        if (!b->failed) b->n = before;
        lb_bytes_fill(b, ' ', wide < DIGITS ? DIGITS - wide : 0);
    }
    const size_t n = b->n - begin + 1;
    lb_bytes_fill(b, ' ', ALIGN - n % ALIGN);
    lb_bytes_put(b, "\n", 1);
    if (b->failed) return;
    const size_t length = b->n - begin - prefix;
    b->at[begin + MAGIC + 2] = (uint8_t)length;
    b->at[begin + MAGIC + 3] = (uint8_t)(length >> 8);
}
