/* json_text.c - incremental JSON reader (RFC 8259), and writers of strings and
 * numbers. */
#include "io/util/json_text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

enum { DEPTH_MOST = 127 }; /* the limit of serde_json */

/* ---- begin and end ------------------------------------------------------- */

bool lb_json_wrong(lb_json *j, const char *what)
{
    if (!j->failed)
        lb_refuse(j->cx, j->f, "%s has %s at byte %td", j->what, what,
                  j->at - j->text);
    j->failed = true;
    return false;
}

bool lb_json_begin(lb_ctx *cx, lb_json *j, lb_infile *f, uint64_t offset,
                   uint64_t n, const char *what)
{
    *j = (lb_json){.cx = cx, .f = f, .what = what};
    if (n <= PTRDIFF_MAX) j->text = lb_heap_alloc(cx->heap, (size_t)n, &j->got);
    if (!j->text) {
        j->failed = true;
        return lb_fail(cx, LB_E_NOMEM, "out of memory");
    }
    j->at = j->text;
    j->end = j->text + n;
    j->failed = !lb_infile_read(cx, f, offset, (size_t)n, j->text);
    if (j->failed) return false;
    if (!lb_utf8_valid((const char *)j->text, (size_t)n))
        return lb_json_wrong(j, "invalid UTF-8");
    return true;
}

static void pass_space(lb_json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' ||
                              *j->at == '\r' || *j->at == '\t'))
        j->at++;
}

bool lb_json_end(lb_json *j)
{
    if (!j->failed) {
        pass_space(j);
        if (j->at != j->end) lb_json_wrong(j, "more than one value");
    }
    lb_heap_free(j->cx->heap, j->text, j->got);
    j->text = NULL;
    return !j->failed;
}

/* ---- structure ----------------------------------------------------------- */

int lb_json_peek(lb_json *j)
{
    pass_space(j);
    if (j->failed || j->at == j->end) return -1;
    const uint8_t c = *j->at;
    switch (c) {
    case '{':
    case '[':
    case '"':
    case 't':
    case 'f':
    case 'n':
        return c;
    default:
        return c == '-' || (c >= '0' && c <= '9') ? 0 : -1;
    }
}

bool lb_json_enter(lb_json *j, char open)
{
    if (j->failed) return false;
    if (lb_json_peek(j) != open)
        return lb_json_wrong(j, open == '{' ? "no object" : "no array");
    if (j->depth == DEPTH_MOST) return lb_json_wrong(j, "too deep nesting");
    j->at++;
    j->depth++;
    j->first = true;
    return true;
}

bool lb_json_more(lb_json *j, char close)
{
    if (j->failed) return false;
    pass_space(j);
    const bool first = j->first;
    j->first = false;
    if (j->at < j->end && *j->at == (uint8_t)close) {
        j->at++;
        j->depth--;
        return false;
    }
    if (first) return true;
    if (j->at == j->end || *j->at != ',')
        return lb_json_wrong(j, "neither a comma nor a closing bracket");
    j->at++;
    return true;
}

uint64_t lb_json_entries(lb_json *j)
{
    lb_json look = *j;
    uint64_t n = 0;
    const bool object = lb_json_peek(&look) == '{';
    if (!lb_json_enter(&look, object ? '{' : '[')) return 0;
    while (lb_json_more(&look, object ? '}' : ']')) {
        if (object) lb_json_key_word(&look, NULL, 0);
        lb_json_skip(&look);
        n++;
    }
    j->failed = look.failed;
    return n;
}

/* ---- strings ------------------------------------------------------------- */

/* Four hexadecimal digits; -1 if they are not. */
static int32_t hex4(const lb_json *j, const uint8_t *at)
{
    int32_t v = 0;
    if (j->end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const int c = at[i] | 0x20;
        const bool digit = at[i] >= '0' && at[i] <= '9';
        if (!digit && (c < 'a' || c > 'f')) return -1;
        v = v << 4 | (digit ? at[i] - '0' : c - 'a' + 10);
    }
    return v;
}

/* The code point of an escape sequence, after its backslash; -1 if invalid. */
static int32_t escape(lb_json *j)
{
    static const char letter[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
    if (j->at == j->end) return -1;
    const uint8_t c = *j->at++;
    const char *k = c ? strchr(letter, c) : NULL;
    if (k) return plain[k - letter];
    if (c != 'u') return -1;
    int32_t hi = hex4(j, j->at);
    if (hi < 0) return -1;
    j->at += 4;
    if (hi < 0xd800 || hi > 0xdfff) return hi;
    if (hi > 0xdbff || j->end - j->at < 6 || j->at[0] != '\\' ||
        j->at[1] != 'u')
        return -1;
    const int32_t lo = hex4(j, j->at + 2);
    if (lo < 0xdc00 || lo > 0xdfff) return -1;
    j->at += 6;
    return 0x10000 + ((hi - 0xd800) << 10) + (lo - 0xdc00);
}

static char *put_utf8(char *to, int32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)((0xff80 >> more) | c >> 6 * more);
    for (int i = more - 1; i >= 0; i--)
        *to++ = (char)(0x80 | (c >> 6 * i & 0x3f));
    return to;
}

/* Parses a string into to, or skips it if to is NULL. Returns its length. */
static size_t pass_string(lb_json *j, char *to)
{
    size_t n = 0;
    char room[4] = {0};
    j->at++;
    for (;;) {
        const uint8_t *run = j->at; /* of unescaped bytes */
        while (j->at < j->end && *j->at >= 0x20 && *j->at != '"' &&
               *j->at != '\\')
            j->at++;
        const size_t len = (size_t)(j->at - run);
        if (to && len) memcpy(to + n, run, len);
        n += len;
        if (j->at == j->end || *j->at == '"') break;
        if (*j->at < 0x20) return lb_json_wrong(j, "a control character"), 0;
        j->at++;
        const int32_t c = escape(j);
        if (c < 0) return lb_json_wrong(j, "no escape"), 0;
        char *at = to ? to + n : room;
        n += (size_t)(put_utf8(at, c) - at);
    }
    if (j->at == j->end) return lb_json_wrong(j, "an unterminated string"), 0;
    j->at++;
    return n;
}

const char *lb_json_string(lb_json *j, lb_arena *arena, size_t *n)
{
    *n = 0;
    if (j->failed) return "";
    if (lb_json_peek(j) != '"') return lb_json_wrong(j, "no string"), "";
    const uint8_t *begin = j->at;
    const size_t len = pass_string(j, NULL);
    if (j->failed) return "";
    char *to = lb_arena_alloc(j->cx, arena, (uint64_t)len + 1, 1);
    if (!to) return j->failed = true, "";
    j->at = begin;
    *n = pass_string(j, to);
    return to;
}

void lb_json_word(lb_json *j, char *to, size_t size)
{
    if (size) *to = 0;
    if (j->failed) return;
    if (lb_json_peek(j) != '"') {
        lb_json_wrong(j, "no string");
        return;
    }
    const uint8_t *begin = j->at;
    const size_t len = pass_string(j, NULL);
    if (j->failed || len >= size) return;
    j->at = begin;
    to[pass_string(j, to)] = 0;
    if (strlen(to) != len) *to = 0; /* known words contain no 0 */
}

static void pass_colon(lb_json *j)
{
    pass_space(j);
    if (j->failed) return;
    if (j->at < j->end && *j->at == ':')
        j->at++;
    else
        lb_json_wrong(j, "no colon");
}

const char *lb_json_key(lb_json *j, lb_arena *arena)
{
    size_t n;
    const char *key = lb_json_string(j, arena, &n);
    if (memchr(key, 0, n)) lb_json_wrong(j, "a name that contains a 0");
    pass_colon(j);
    return j->failed ? "" : key;
}

void lb_json_key_word(lb_json *j, char *to, size_t size)
{
    lb_json_word(j, to, size);
    pass_colon(j);
}

/* ---- numbers and the rest ------------------------------------------------ */

static bool pass_digits(lb_json *j)
{
    const uint8_t *begin = j->at;
    while (j->at < j->end && *j->at >= '0' && *j->at <= '9')
        j->at++;
    return j->at > begin;
}

static bool pass(lb_json *j, char c)
{
    if (j->at == j->end || *j->at != (uint8_t)c) return false;
    j->at++;
    return true;
}

static void pass_number(lb_json *j)
{
    pass(j, '-');
    bool ok = pass(j, '0') || pass_digits(j);
    if (ok && pass(j, '.')) ok = pass_digits(j);
    if (ok && (pass(j, 'e') || pass(j, 'E'))) {
        if (!pass(j, '+')) pass(j, '-');
        ok = pass_digits(j);
    }
    if (!ok) lb_json_wrong(j, "no number");
}

int64_t lb_json_count_of(lb_json *j)
{
    if (j->failed) return 0;
    const int next = lb_json_peek(j);
    const uint8_t *begin = j->at;
    int64_t v = 0;
    if (next != 0) return lb_json_wrong(j, "no number");
    pass_number(j);
    for (const uint8_t *p = begin; !j->failed && p < j->at; p++) {
        const bool digit = *p >= '0' && *p <= '9';
        if (digit && lb_mul_i64(v, 10, &v) && lb_add_i64(v, *p - '0', &v))
            continue;
        j->at = begin;
        return lb_json_wrong(
            j, digit ? "a number that is too large"
                     : "a number that is not a non-negative integer");
    }
    return j->failed ? 0 : v;
}

/* Uses the C library's strtod, which expects the locale's decimal point. */
static double number_from(const char *text)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double v = c ? strtod_l(text, NULL, c) : (double)NAN;
    if (c) freelocale(c);
    return v;
}

double lb_json_number_of(lb_json *j)
{
    char text[64];
    if (j->failed) return 0;
    if (lb_json_peek(j) != 0) return lb_json_wrong(j, "no number"), 0;
    const uint8_t *begin = j->at;
    pass_number(j);
    if (j->failed) return 0;
    const size_t n = (size_t)(j->at - begin);
    double v = (double)NAN;
    if (n < sizeof text) {
        memcpy(text, begin, n);
        text[n] = 0;
        v = number_from(text);
    }
    if (isfinite(v)) return v;
    j->at = begin;
    return lb_json_wrong(j, "a number that is too large"), 0;
}

static void pass_word(lb_json *j, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0)
        lb_json_wrong(j, "no value");
    else
        j->at += n;
}

/* Skips a number, but rejects what serde_json cannot read as a double. */
static void skip_number(lb_json *j)
{
    enum { DIGITS = 308 }; /* this many digits cannot overflow */
    const uint8_t *begin = j->at;
    pass_number(j);
    const size_t n = (size_t)(j->at - begin);
    if (j->failed || j->python || j->at == j->end ||
        (n <= DIGITS && !memchr(begin, 'e', n) && !memchr(begin, 'E', n)) ||
        isfinite(number_from((const char *)begin)))
        return;
    j->at = begin;
    lb_json_wrong(j, "a number that is too large");
}

/* Python writes NaN and Infinity, which JSON does not have. */
static bool skip_python(lb_json *j)
{
    static const char *const word[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; j->python && i < sizeof word / sizeof *word; i++) {
        const size_t n = strlen(word[i]);
        if ((size_t)(j->end - j->at) < n || memcmp(j->at, word[i], n) != 0)
            continue;
        j->at += n;
        return true;
    }
    return false;
}

void lb_json_skip(lb_json *j)
{
    if (j->failed) return;
    const int next = lb_json_peek(j);
    if (skip_python(j)) return;
    switch (next) {
    case '{':
    case '[':
        lb_json_enter(j, (char)next);
        while (lb_json_more(j, next == '{' ? '}' : ']')) {
            if (next == '{') lb_json_key_word(j, NULL, 0);
            lb_json_skip(j);
        }
        return;
    case '"':
        lb_json_word(j, NULL, 0);
        return;
    case 0:
        skip_number(j);
        return;
    default:
        pass_word(j, next == 't' ? "true" : next == 'f' ? "false" : "null");
    }
}

/* ---- writing ------------------------------------------------------------- */

/* The code point at p, in valid UTF-8, and its length. */
static uint32_t code_point(const uint8_t *p, size_t *len)
{
    if (p[0] < 0x80) return *len = 1, p[0];
    *len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    uint32_t c = p[0] & (0x7fu >> *len);
    for (size_t i = 1; i < *len; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

static void put_escaped(lb_bytes *b, uint32_t c)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const char *k = c && c < 0x80 ? strchr(plain, (int)c) : NULL;
    if (k)
        lb_bytes_text(b, "\\%c", letter[k - plain]);
    else if (c < 0x10000)
        lb_bytes_text(b, "\\u%04x", c);
    else
        lb_bytes_text(b, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                      0xdc00 + ((c - 0x10000) & 0x3ff));
}

void lb_json_put(lb_bytes *b, const char *text, size_t n, bool ascii)
{
    const uint8_t *p = (const uint8_t *)text;
    lb_bytes_put(b, "\"", 1);
    for (size_t i = 0, len; i < n; i += len) {
        const uint32_t c = code_point(p + i, &len);
        if (c < 0x20 || c == '"' || c == '\\' || (ascii && c > 0x7e))
            put_escaped(b, c);
        else
            lb_bytes_put(b, p + i, len);
    }
    lb_bytes_put(b, "\"", 1);
}

/* The shortest decimal digits that read back as v >= 0. The first digit counts
 * 10^(return value). */
static int shortest(double v, char digit[18], int *n)
{
    for (int most = 1;; most++) {
        char text[40], plain[40];
        snprintf(text, sizeof text, "%.*e", most - 1, v);
        const char *at = text;
        for (*n = 0; *at != 'e'; at++) /* the decimal point is left out */
            if (*at >= '0' && *at <= '9') digit[(*n)++] = *at;
        const int e = (int)strtol(at + 1, NULL, 10);
        snprintf(plain, sizeof plain, "%.*se%d", *n, digit, e - *n + 1);
        if (most == 17 || number_from(plain) == v) return e;
    }
}

/* As repr() in Python: exponents below 1e-4 and from 1e16 on. */
void lb_json_put_number(lb_bytes *b, double v)
{
    char digit[18] = {0};
    int n, e;
    if (signbit(v)) lb_bytes_put(b, "-", 1);
    e = shortest(fabs(v), digit, &n);
    if (e < -4 || e >= 16) {
        lb_bytes_put(b, digit, 1);
        if (n > 1) lb_bytes_put(b, ".", 1);
        lb_bytes_put(b, digit + 1, (size_t)n - 1);
        lb_bytes_text(b, "e%c%02d", e < 0 ? '-' : '+', abs(e));
        return;
    }
    if (e < 0) lb_bytes_put(b, "0.000", (size_t)(1 - e));
    for (int i = 0; i < n || i <= e + 1; i++) {
        if (i == e + 1 && e >= 0) lb_bytes_put(b, ".", 1);
        lb_bytes_put(b, i < n ? &digit[i] : "0", 1);
    }
}
