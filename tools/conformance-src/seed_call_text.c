/* seed_call_text.c - parses the text of a call of the original system.
 *
 *     call    quantize(array, ..) | straight_through(array, ..) | config
 *     config  QuantizationConfig(..)
 *     ..      keyword or positional arguments, separated by commas: dtype
 *             ('nf4', 'nf4' as enum, QuantizationType.NF4, 5), block_size,
 *             simulate, use_kernel; for a call also config=config, which takes
 *             precedence
 *     array   [dtype] x[lo:hi] | [dtype] array | zeros(sizes)
 *
 * Text after the last parenthesis is a comment.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seed_cases.h"

typedef struct text_cursor {
    const char *p;
} text_cursor;

/* A word of letters, digits and underscores; it may begin with a digit. */
typedef struct word {
    char s[64];
} word;

static void skip_space(text_cursor *c)
{
    while (*c->p == ' ') {
        c->p++;
    }
}

static bool take(text_cursor *c, char want)
{
    skip_space(c);
    if (*c->p != want) return false;
    c->p++;
    return true;
}

static bool is_word(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

static bool take_word(text_cursor *c, word *out)
{
    skip_space(c);
    size_t n = 0;
    while (is_word(c->p[n])) {
        n++;
    }
    if (n == 0 || n >= sizeof(out->s)) return false;
    memcpy(out->s, c->p, n);
    out->s[n] = 0;
    c->p += n;
    return true;
}

static bool take_this(text_cursor *c, const char *want)
{
    text_cursor ahead = *c;
    word w;
    if (!take_word(&ahead, &w) || strcmp(w.s, want) != 0) return false;
    *c = ahead;
    return true;
}

/* An integer; false if there is none, and nothing is consumed. */
static bool take_int(text_cursor *c, int64_t *out)
{
    skip_space(c);
    char *end = NULL;
    const char *const digits = c->p + (*c->p == '-' || *c->p == '+');
    if (!isdigit((unsigned char)*digits)) return false;
    *out = strtoll(c->p, &end, 10);
    c->p = end;
    return true;
}

/* Everything up to the end of the argument. */
static bool take_rest(text_cursor *c, char *out, size_t size)
{
    skip_space(c);
    const size_t n = strcspn(c->p, ",)");
    if (n == 0 || n >= size) return false;
    memcpy(out, c->p, n);
    out[n] = 0;
    c->p += n;
    return true;
}

/* ---- values -------------------------------------------------------------- */

/* A type by name. A number is not a type in C either: it becomes a name that
 * does not exist. */
static bool take_format(text_cursor *c, seed_call *out)
{
    skip_space(c);
    if (*c->p == '\'' || *c->p == '"') {
        const char quote = *c->p++;
        const char *const end = strchr(c->p, quote);
        const size_t n = end ? (size_t)(end - c->p) : sizeof(out->format);
        if (n >= sizeof(out->format)) return false;
        memcpy(out->format, c->p, n);
        out->format[n] = 0;
        c->p = end + 1;
        if (!take_this(c, "as")) return true;
        return take_this(c, "string") || take_this(c, "enum");
    }
    if (take_this(c, "QuantizationType")) {
        word w;
        if (!take(c, '.') || !take_word(c, &w)) return false;
        for (size_t i = 0; w.s[i]; i++) {
            w.s[i] = (char)tolower((unsigned char)w.s[i]);
        }
        memcpy(out->format, w.s, sizeof(out->format));
        return true;
    }
    return take_rest(c, out->format, sizeof(out->format));
}

static bool take_block(text_cursor *c, seed_call *out)
{
    char *end = NULL;
    char digits[64];
    if (!take_rest(c, digits, sizeof(digits))) return false;
    const long long v = strtoll(digits, &end, 10);
    out->has_block = true;
    out->block_size = *end || end == digits || v <= 0 ? -1 : v;
    return true;
}

static bool take_bool(text_cursor *c, bool *out)
{
    *out = take_this(c, "True");
    return *out || take_this(c, "False");
}

static bool take_option(text_cursor *c, const char *name, seed_call *out)
{
    bool yes = false;
    if (!strcmp(name, "dtype")) return take_format(c, out);
    if (!strcmp(name, "block_size")) return take_block(c, out);
    if (!strcmp(name, "simulate")) return take_bool(c, &out->simulate);
    if (strcmp(name, "use_kernel") != 0 || !take_bool(c, &yes)) return false;
    out->reference = !yes;
    return true;
}

/* name=, if it comes next. */
static bool take_name(text_cursor *c, word *out)
{
    text_cursor ahead = *c;
    if (!take_word(&ahead, out) || !take(&ahead, '=')) return false;
    *c = ahead;
    return true;
}

/* After "QuantizationConfig". */
static bool take_config(text_cursor *c, seed_call *out)
{
    static const char *const places[] = {"dtype", "block_size", "simulate",
                                         "use_kernel"};
    size_t place = 0;
    if (!take(c, '(')) return false;
    while (!take(c, ')')) {
        word name;
        if (take_name(c, &name)) {
            if (!take_option(c, name.s, out)) return false;
        } else if (place == sizeof(places) / sizeof(places[0]) ||
                   !take_option(c, places[place++], out)) {
            return false;
        }
        skip_space(c);
        if (!take(c, ',') && *c->p != ')') return false;
    }
    return true;
}

/* ---- arrays -------------------------------------------------------------- */

/* Also numpy's names: int32, uint8, float16, bfloat16. */
static lb_dtype dtype_called(const char *name)
{
    static const struct {
        const char *numpy, *here;
    } stems[] = {{"int", "i"}, {"uint", "u"}, {"float", "f"}, {"bfloat", "bf"}};
    const lb_dtype plain = dtype_named(name);
    for (size_t i = 0; !plain && i < sizeof(stems) / sizeof(stems[0]); i++) {
        const size_t n = strlen(stems[i].numpy);
        char other[72];
        if (strncmp(name, stems[i].numpy, n) != 0) continue;
        snprintf(other, sizeof(other), "%s%s", stems[i].here, name + n);
        return dtype_named(other);
    }
    return plain;
}

static bool take_sizes(text_cursor *c, lb_shape *out)
{
    *out = (lb_shape){0};
    if (!take(c, '(')) return false;
    while (!take(c, ')')) {
        int64_t n = 0;
        if (out->rank == LB_MAX_RANK || !take_int(c, &n) || n < 0) return false;
        out->dim[out->rank++] = n;
        skip_space(c);
        if (!take(c, ',') && *c->p != ')') return false;
    }
    return true;
}

/* [lo:hi], both optional; negative values are not supported. */
static bool take_rows(text_cursor *c, seed_call *out)
{
    out->lo = 0;
    out->hi = INT64_MAX;
    if (!take(c, '[')) return true;
    take_int(c, &out->lo);
    if (!take(c, ':')) return false;
    take_int(c, &out->hi);
    return take(c, ']') && out->lo >= 0 && out->hi >= out->lo;
}

static bool take_array(text_cursor *c, seed_call *out)
{
    word w;
    text_cursor ahead = *c;
    if (take_word(&ahead, &w) && dtype_called(w.s)) {
        out->dtype = dtype_called(w.s);
        *c = ahead;
    }
    if (take_this(c, "zeros")) {
        out->zeros = true;
        return take_sizes(c, &out->shape);
    }
    return (take_this(c, "x") || take_this(c, "array")) && take_rows(c, out);
}

/* ---- calls --------------------------------------------------------------- */

static const seed_call defaults = {.format = "nf4"};

/* After the function's name: the array and its options. */
static bool take_arguments(text_cursor *c, seed_call *out)
{
    bool has_config = false;
    seed_call config = defaults;
    if (!take(c, '(') || !take_array(c, out)) return false;
    while (take(c, ',')) {
        word name;
        const bool named = take_name(c, &name);
        if (take_this(c, "QuantizationConfig")) {
            if (named && strcmp(name.s, "config") != 0) return false;
            has_config = true;
            if (!take_config(c, &config)) return false;
        } else if (!named || !take_option(c, name.s, out)) {
            return false;
        }
    }
    if (!take(c, ')')) return false;
    if (!has_config) return true;
    memcpy(out->format, config.format, sizeof(out->format));
    out->has_block = config.has_block;
    out->block_size = config.block_size;
    out->simulate = config.simulate;
    out->reference = config.reference;
    return true;
}

bool seed_call_parse(const char *words, seed_call *out, note *n)
{
    text_cursor c = {words};
    word name;
    *out = defaults;
    out->hi = INT64_MAX;
    bool ok = take_word(&c, &name);
    if (ok && !strcmp(name.s, "QuantizationConfig")) {
        out->function = SEED_CONFIG;
        ok = take_config(&c, out);
    } else if (ok) {
        out->function =
            !strcmp(name.s, "quantize") ? SEED_QUANTIZE : SEED_STRAIGHT_THROUGH;
        ok = (out->function == SEED_QUANTIZE ||
              !strcmp(name.s, "straight_through")) &&
             take_arguments(&c, out);
    }
    skip_space(&c);
    ok = ok && (!*c.p || *c.p == '[');
    return ok || note_skip(n, "not understood from '%.64s' on", c.p);
}
