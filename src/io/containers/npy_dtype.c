/* npy_dtype.c - parses numpy dtypes. */
#include "io/containers/npy_dtype.h"

#include <stdio.h>
#include <string.h>

#include "core/core.h"

static const char orders[] = "<>=|";

static bool wrong(const lb_npy_task *k, const char *what)
{
    return lb_refuse(k->cx, k->f, "%s: its descr has %s", k->who, what);
}

static bool unknown(const lb_npy_task *k, const char *s, size_t n)
{
    return lb_refuse(k->cx, k->f, "%s: '%s' is not a numpy dtype", k->who,
                     lb_quote(s, n, false).s);
}

static bool is(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

/* ---- simple ones --------------------------------------------------------- */

/* Parses a number like C's strtol, up to INT32_MAX: leading spaces and a sign
 * are allowed. Returns what follows; NULL if there is no number. */
static const char *pass_int(const char *s, const char *end, int64_t *v)
{
    while (s < end && *s && strchr(" \t\n\v\f\r", *s))
        s++;
    const bool minus = s < end && *s == '-';
    if (s < end && (*s == '+' || minus)) s++;
    const char *digits = s;
    for (*v = 0; s < end && *s >= '0' && *s <= '9'; s++) {
        *v = *v * 10 + (*s - '0');
        if (*v > INT32_MAX) return NULL;
    }
    return s == digits || (minus && *v) ? NULL : s;
}

/* The type for a kind letter and a size. */
static const struct known {
    char kind;
    int8_t size;
    lb_dtype dtype;
} all_known[] = {
    {'b', 1, LB_BOOL},      {'i', 1, LB_I8},       {'i', 2, LB_I16},
    {'i', 4, LB_I32},       {'i', 8, LB_I64},      {'u', 1, LB_U8},
    {'u', 2, LB_U16},       {'u', 4, LB_U32},      {'u', 8, LB_U64},
    {'f', 2, LB_F16},       {'f', 4, LB_F32},      {'f', 8, LB_F64},
    {'f', 16, LB_NO_DTYPE}, {'c', 8, LB_NO_DTYPE}, {'c', 16, LB_NO_DTYPE},
    {'c', 32, LB_NO_DTYPE}, {'M', 8, LB_NO_DTYPE}, {'m', 8, LB_NO_DTYPE},
};

/* Types with names of their own: a letter, or a word that allows no byte order
 * before it. "S0" and similar types get their size elsewhere, if at all. */
static const struct alias {
    const char *name, *meant;
} letters[] =
    {
        {"?", "b1"},  {"b", "i1"},  {"B", "u1"}, {"h", "i2"},  {"H", "u2"},
        {"i", "i4"},  {"I", "u4"},  {"l", "i8"}, {"q", "i8"},  {"p", "i8"},
        {"n", "i8"},  {"L", "u8"},  {"Q", "u8"}, {"P", "u8"},  {"N", "u8"},
        {"e", "f2"},  {"f", "f4"},  {"d", "f8"}, {"g", "f16"}, {"F", "c8"},
        {"D", "c16"}, {"G", "c32"}, {"c", "S1"}, {"S", "S0"},  {"U", "U0"},
        {"V", "V0"},  {"M", "M8"},  {"m", "m8"}, {"T", "O8"},  {"O", "O8"},
},
  words[] = {
      {"bool", "b1"},     {"bool_", "b1"},
      {"byte", "i1"},     {"ubyte", "u1"},
      {"short", "i2"},    {"ushort", "u2"},
      {"intc", "i4"},     {"uintc", "u4"},
      {"long", "i8"},     {"ulong", "u8"},
      {"longlong", "i8"}, {"ulonglong", "u8"},
      {"intp", "i8"},     {"uintp", "u8"},
      {"int", "i8"},      {"int_", "i8"},
      {"uint", "u8"},     {"half", "f2"},
      {"single", "f4"},   {"double", "f8"},
      {"float", "f8"},    {"longdouble", "f16"},
      {"csingle", "c8"},  {"cdouble", "c16"},
      {"complex", "c16"}, {"clongdouble", "c32"},
      {"bytes", "S0"},    {"bytes_", "S0"},
      {"a", "S0"},        {"str", "U0"},
      {"str_", "U0"},     {"unicode", "U0"},
      {"void", "V0"},     {"object", "O8"},
      {"object_", "O8"},
};

static const char *meant_by(const struct alias *list, size_t count,
                            const char *s, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (is(s, n, list[i].name)) return list[i].meant;
    return NULL;
}

/* A word with its number of bits, such as "float32". */
static bool is_bits(const char *s, size_t n, char *kind, int64_t *size)
{
    static const char *const stem[] = {"int", "uint", "float", "complex"};
    for (size_t i = 0; i < sizeof stem / sizeof *stem; i++) {
        const size_t k = strlen(stem[i]);
        if (n <= k || memcmp(s, stem[i], k) != 0 || s[k] < '1' || s[k] > '9')
            continue;
        if (pass_int(s + k, s + n, size) != s + n || *size % 8) return false;
        *size /= 8;
        *kind = *stem[i];
        return true;
    }
    return false;
}

/* From kind and size; false if there is no such type. */
static bool sized(char kind, int64_t n, bool swap, lb_npy_dtype *d)
{
    const struct known *at = NULL;
    int unit = 1;
    *d = (lb_npy_dtype){.size = n, .items = 1};
    if (kind == 'a') kind = 'S';
    if (kind == 'U') {
        if (n > INT32_MAX / 4) return false;
        unit = 4;
        d->size = 4 * n;
    } else if (kind != 'S' && kind != 'V') {
        for (size_t i = 0; i < sizeof all_known / sizeof *all_known; i++)
            if (all_known[i].kind == kind && all_known[i].size == n)
                at = &all_known[i];
        if (!at) return false;
        d->dtype = at->dtype;
        unit = (int)(kind == 'c' ? n / 2 : n);
    }
    if (!at) d->dtype = LB_NO_DTYPE;
    d->raw = kind == 'V';
    d->swap = swap && unit > 1 ? unit : 0;
    snprintf(d->name, sizeof d->name, "%c%c%lld",
             unit == 1 ? '|'
             : swap    ? '>'
                       : '<',
             kind, (long long)n);
    return true;
}

/* ---- times --------------------------------------------------------------- */

static const char *const units[] = {"Y",  "M",  "W",  "D",  "h",  "m", "s",
                                    "ms", "us", "ns", "ps", "fs", "as"};
enum { N_UNITS = sizeof units / sizeof *units, SECOND = 6 };

/* numpy expresses fractions of a unit in one of the next three smaller units:
 * the first that divides evenly. */
static bool divide(int64_t by, int64_t *n, int *unit)
{
    static const int parts[SECOND + 1][3] = {
        {12, 52, 365}, {4, 30, 720},   {7, 168, 10080},   {24, 1440, 86400},
        {60, 3600, 0}, {60, 60000, 0}, {1000, 1000000, 0}};
    const int *part = parts[*unit < SECOND ? *unit : SECOND];
    for (int i = 0; i < 3 && part[i] && *unit + 1 + i < N_UNITS; i++) {
        if (by < 1 || part[i] % by) continue;
        *n *= part[i] / by;
        *unit += 1 + i;
        return true;
    }
    return false;
}

/* A datetime unit after the name: "[25us]", "[D/24]", or nothing. */
static bool add_unit(const char *s, const char *end, lb_npy_dtype *d)
{
    int64_t n = 1, by = 1;
    int unit = 0;
    if (s == end) return true;
    if (end - s < 3 || *s != '[' || end[-1] != ']') return false;
    const char *number = pass_int(++s, --end, &n);
    if (!number) {
        if (*s >= '0' && *s <= '9') return false; /* overflow */
        n = 1;
        number = s;
    }
    s = number;
    const char *slash = memchr(s, '/', (size_t)(end - s));
    const size_t len = (size_t)((slash ? slash : end) - s);
    while (unit < N_UNITS && !is(s, len, units[unit]))
        unit++;
    if (is(s, len, "\xce\xbcs"))
        unit = SECOND + 2; /* the letter mu, in UTF-8 */
    if (slash && pass_int(slash + 1, end, &by) != end) return false;
    if (is(s, len, "generic")) return by == 1;
    if (unit == N_UNITS || (by != 1 && !divide(by, &n, &unit))) return false;
    const size_t at = strlen(d->name);
    if (n == 1)
        snprintf(d->name + at, sizeof d->name - at, "[%s]", units[unit]);
    else
        snprintf(d->name + at, sizeof d->name - at, "[%lld%s]", (long long)n,
                 units[unit]);
    return true;
}

/* Whether the text is a unit, and what follows it. */
static bool is_time(const char *s, size_t n, char *kind, size_t *used)
{
    static const struct {
        const char *word;
        char kind;
    } word[] = {
        {"M8", 'M'}, {"m8", 'm'}, {"datetime64", 'M'}, {"timedelta64", 'm'}};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        *used = strlen(word[i].word);
        *kind = word[i].kind;
        if (n >= *used && memcmp(s, word[i].word, *used) == 0) return true;
    }
    return false;
}

/* ---- strings ------------------------------------------------------------- */

/* "<f4", "|S5", "float32", ...: one type without commas or repeat counts. */
static bool from_simple(const lb_npy_task *k, const char *all, size_t all_n,
                        lb_npy_dtype *d)
{
    const bool ordered = all_n && *all && strchr(orders, *all);
    const char *s = all + ordered, *end = all + all_n;
    const size_t n = all_n - ordered;
    const bool swap = ordered && *all == '>';
    size_t used = 0;
    char kind = 0;
    bool ok = n > 0;
    if (ok && is_time(s, n, &kind, &used)) {
        ok = sized(kind, 8, swap, d) && add_unit(s + used, end, d);
        return ok || unknown(k, all, all_n);
    }
    int64_t size = 0;
    const char *meant =
        n == 1 ? meant_by(letters, sizeof letters / sizeof *letters, s, n)
               : NULL;
    if (!meant && !ordered)
        meant = meant_by(words, sizeof words / sizeof *words, s, n);
    if (meant)
        ok = pass_int(meant + 1, meant + strlen(meant), &size) != NULL;
    else
        ok = n > 1 && pass_int(s + 1, end, &size) == end;
    kind = meant ? *meant : n ? *s : 0;
    if (!ok && !ordered) ok = is_bits(s, n, &kind, &size);
    if (ok && kind == 'O' && (size == 4 || size == 8))
        return lb_refuse(
            k->cx, k->f,
            "%s: contains Python objects (pickles), which are not supported",
            k->who);
    return (ok && sized(kind, size, swap, d)) || unknown(k, all, all_n);
}

static bool from_string(const lb_npy_task *k, const char *s, size_t n,
                        int depth, lb_npy_dtype *d);

/* ---- sub-arrays ---------------------------------------------------------- */

/* An int that is a valid size; -1 otherwise. */
static int64_t size_of(const lb_py *v)
{
    if (v->kind != LB_PY_INT || v->wide || v->number < 0 ||
        v->number > INT32_MAX)
        return -1;
    return v->number;
}

/* Whether a value is a shape; its product goes to *items. */
static bool shape_of(const lb_py *v, int64_t *items)
{
    const bool many = v->kind == LB_PY_TUPLE || (v->kind == LB_PY_LIST && v->n);
    const lb_py *item = many ? v->item : v;
    const size_t n = many ? v->n : 1;
    *items = 1;
    if (n > LB_NPY_RANK) return false;
    bool none = false;
    for (size_t i = 0; i < n; i++, item = item->next) {
        const int64_t size = size_of(item);
        if (size < 0) return false;
        if (size == 0) none = true;
        if (!none && !lb_mul_i64(*items, size, items)) return false;
    }
    if (none) *items = 0;
    return *items <= INT32_MAX;
}

/* "S0" and similar types, whose size is the number that follows. */
static bool is_unsized(const lb_npy_dtype *d)
{
    return d->size == 0 && !d->array && d->name[0] && strchr("SUV", d->name[1]);
}

/* A sub-array of that shape; or, if a type follows, a type of the same size,
 * which changes nothing. */
static bool add_shape(const lb_npy_task *k, const lb_py *v, int depth,
                      lb_npy_dtype *d)
{
    int64_t items = 1;
    lb_npy_dtype other = {.items = 1};
    const char kind = d->name[1];
    const bool swap = d->name[0] == '>';
    if (v->kind == LB_PY_STRING) {
        if (!from_string(k, v->text, v->n, depth + 1, &other)) return false;
        if (is_unsized(d)) return sized(kind, other.size, swap, d);
        return other.size == d->size || wrong(k, "types of different sizes");
    }
    if (is_unsized(d)) {
        const int64_t size = size_of(v);
        return (size >= 0 && sized(kind, size, swap, d)) ||
               wrong(k, "an invalid string size");
    }
    if (!shape_of(v, &items)) return wrong(k, "an invalid shape of a field");
    if (v->kind == LB_PY_TUPLE && v->n == 0) return true;
    d->array = d->raw = true;
    if (!lb_mul_i64(d->items, items, &d->items) ||
        !lb_mul_i64(d->size, items, &d->size) || d->size > INT32_MAX)
        return wrong(k, "a field that is too large");
    return true;
}

/* ---- several in a string ------------------------------------------------- */

/* One item of "f4, 2i2, >(2,3)f8": byte order, repeat count, byte order, type,
 * all optional. */
typedef struct dtype_piece {
    char order;
    const char *repeats, *type, *end; /* each ends where the next one begins */
} dtype_piece;

static bool among(const char *s, const char *end, const char *set)
{
    return s < end && *s && strchr(set, *s);
}

static bool is_word(const char *s, const char *end, const char *more)
{
    return s < end && ((*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') ||
                       (*s >= 'A' && *s <= 'Z') || among(s, end, more));
}

/* False if both byte orders are given and differ. */
static bool cut_piece(const char *s, const char *end, dtype_piece *x)
{
    char first = 0, second = 0;
    if (among(s, end, orders)) first = *s++;
    x->repeats = s;
    while (among(s, end, " "))
        s++;
    if (among(s, end, "(")) s++;
    while (among(s, end, " ,0123456789"))
        s++;
    if (among(s, end, ")")) s++;
    while (among(s, end, " "))
        s++;
    x->type = s;
    if (among(s, end, orders)) second = *s++;
    while (is_word(s, end, ".?"))
        s++;
    if (among(s, end, "[")) {
        const char *unit = s + 1;
        while (is_word(unit, end, ",."))
            unit++;
        if (unit > s + 1 && among(unit, end, "]")) s = unit + 1;
    }
    x->end = s;
    if (first == '=') first = '<';
    if (second == '=') second = '<';
    if (first && second && first != second) return false;
    x->order = first ? first : second;
    if (x->order == '|' || x->order == '<') x->order = 0;
    return true;
}

static bool from_piece(const lb_npy_task *k, const dtype_piece *x, int depth,
                       lb_npy_dtype *d)
{
    const char *type = x->type, *why = NULL;
    size_t at = 0;
    if (among(type, x->end, orders)) type++;
    const size_t n = (size_t)(x->end - type);
    char *text = lb_arena_alloc(k->cx, k->arena, (uint64_t)n + 2, 1);
    if (!text) return false;
    if (x->order) text[0] = x->order;
    memcpy(text + (x->order != 0), type, n);
    if (!from_string(k, text, n + (x->order != 0), depth + 1, d)) return false;
    if (x->repeats >= x->type) return true;
    const lb_py *shape =
        lb_py_parse(k->cx, k->arena, x->repeats, (size_t)(x->type - x->repeats),
                    false, &why, &at);
    if (!shape) return why && wrong(k, why);
    return add_shape(k, shape, depth, d);
}

static bool is_blank(const char *s, const char *end)
{
    while (among(s, end, " \t\n\v\f\r"))
        s++;
    return s == end;
}

/* Fields called f0, f1, ...; a single item without a comma is not a field. */
static bool from_commas(const lb_npy_task *k, const char *s, size_t n,
                        int depth, lb_npy_dtype *d)
{
    const char *all = s, *end = s + n;
    lb_npy_dtype sum = {.dtype = LB_NO_DTYPE, .items = 1};
    bool list = false;
    while (s < end) {
        dtype_piece x;
        if (!cut_piece(s, end, &x)) return unknown(k, all, n);
        s = x.end;
        if (is_blank(s, end)) {
            s = end;
        } else {
            while (among(s, end, " \t\n\v\f\r"))
                s++;
            if (!among(s, end, ",")) return unknown(k, all, n);
            s++;
            while (among(s, end, " \t\n\v\f\r"))
                s++;
            list = true;
        }
        if (!from_piece(k, &x, depth, d)) return false;
        if (!lb_add_i64(sum.size, d->size, &sum.size) || sum.size > INT32_MAX)
            return wrong(k, "a field that is too large");
    }
    if (list) *d = sum;
    return true;
}

/* Whether it starts with a repeat count, or has a comma outside of brackets. */
static bool has_commas(const char *s, size_t n)
{
    const char *at = n > 1 && *s && strchr(orders, *s) ? s + 1 : s;
    int depth = 0;
    if (*at >= '0' && *at <= '9') return true;
    if ((size_t)(at - s) + 1 < n && at[0] == '(' && at[1] == ')') return true;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ',' && depth == 0) return true;
        depth += (s[i] == '[') - (s[i] == ']');
    }
    return false;
}

static bool from_string(const lb_npy_task *k, const char *s, size_t n,
                        int depth, lb_npy_dtype *d)
{
    enum { DEPTH_MOST = 8 }; /* items may start with repeat counts themselves */
    if (n == 0 || memchr(s, 0, n) || depth > DEPTH_MOST)
        return unknown(k, s, n);
    if (has_commas(s, n)) return from_commas(k, s, n, depth, d);
    return from_simple(k, s, n, d);
}

/* ---- fields -------------------------------------------------------------- */

/* Names and titles in use. */
typedef struct taken {
    const lb_py **at;
    size_t n;
} taken;

static bool take(const lb_npy_task *k, taken *t, const lb_py *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->at[i]->n == name->n &&
            memcmp(t->at[i]->text, name->text, name->n) == 0)
            return lb_refuse(k->cx, k->f,
                             "%s: its dtype has two fields called '%s'", k->who,
                             lb_quote(name->text, name->n, false).s);
    t->at[t->n++] = name;
    return true;
}

/* A name, or (title, name). A title that is not a string is ignored. */
static bool take_name(const lb_npy_task *k, taken *t, const lb_py *name)
{
    const lb_py *title = NULL;
    if (name->kind == LB_PY_TUPLE && name->n == 2) {
        title = name->item;
        name = title->next;
    }
    if (name->kind != LB_PY_STRING) return wrong(k, "a field without a name");
    return take(k, t, name) &&
           (!title || title->kind != LB_PY_STRING || take(k, t, title));
}

/* (name, descr) or (name, descr, shape). Bytes without a name are padding. */
static bool add_field(const lb_npy_task *k, const lb_py *field, taken *t,
                      int64_t *size)
{
    lb_npy_dtype d = {.items = 1};
    const bool pair = field->kind == LB_PY_TUPLE || field->kind == LB_PY_LIST;
    if (!pair || field->n < 2 || field->n > 3)
        return wrong(k, "a field that is not a name and a descr");
    const lb_py *name = field->item, *descr = name->next, *shape = descr->next;
    if (!lb_npy_dtype_of(k, descr, &d)) return false;
    if (shape && !add_shape(k, shape, 0, &d)) return false;
    if (!(d.raw && lb_py_is(name, "")) && !take_name(k, t, name)) return false;
    if (!lb_add_i64(*size, d.size, size) || *size > INT32_MAX)
        return wrong(k, "a field that is too large");
    return true;
}

static bool from_fields(const lb_npy_task *k, const lb_py *list,
                        lb_npy_dtype *d)
{
    taken t = {0};
    *d = (lb_npy_dtype){.dtype = LB_NO_DTYPE, .items = 1};
    t.at =
        lb_arena_alloc(k->cx, k->arena, 2 * (uint64_t)list->n, sizeof(void *));
    if (!t.at) return false;
    for (const lb_py *field = list->item; field; field = field->next)
        if (!add_field(k, field, &t, &d->size)) return false;
    return true;
}

bool lb_npy_dtype_of(const lb_npy_task *k, const lb_py *descr, lb_npy_dtype *d)
{
    if (descr->kind == LB_PY_STRING)
        return from_string(k, descr->text, descr->n, 0, d);
    if (descr->kind == LB_PY_LIST) return from_fields(k, descr, d);
    if (descr->kind != LB_PY_TUPLE || descr->n < 2)
        return wrong(k, "neither a string nor a tuple nor a list");
    return lb_npy_dtype_of(k, descr->item, d) &&
           add_shape(k, descr->item->next, 0, d);
}
