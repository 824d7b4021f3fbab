/* options.c - the command line: parser, and values of options. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "verb.h"

bool verb_takes(const verb *v, option_id id)
{
    if (id == OPTION_HELP) return true;
    for (const option_id *o = v->options; *o != N_OPTIONS; o++)
        if (*o == id) return true;
    return false;
}

/* ---- the parser ---------------------------------------------------------- */

/* getopt's tables; val of a long option is LONG + its id. */
enum { LONG = 256 };
static void forms(const verb *v, char *letters, struct option *longs)
{
    *letters++ = ':'; /* tell a missing value from an unknown option */
    for (int i = 0; i < N_OPTIONS; i++) {
        const option_row *o = &option_rows[i];
        const int takes = o->operand ? required_argument : no_argument;
        if (!verb_takes(v, (option_id)i)) continue;
        *longs++ = (struct option){o->name, takes, NULL, LONG + i};
        if (o->alias)
            *longs++ = (struct option){o->alias, takes, NULL, LONG + i};
        if (!o->letter) continue;
        *letters++ = o->letter;
        if (o->operand) *letters++ = ':';
    }
    *letters = 0;
    *longs = (struct option){0};
}

static int id_of(int c)
{
    for (int i = 0; c < LONG && i < N_OPTIONS; i++)
        if (option_rows[i].letter == c) return i;
    return c - LONG;
}

/* getopt reorders its arguments: it gets a copy. */
static char **own_list(int argc, char **argv)
{
    char **list = calloc((size_t)argc + 1, sizeof *list);
    if (!list) complain(FAILED, "out of memory");
    for (int i = 0; list && i < argc; i++)
        list[i] = argv[i];
    return list;
}

/* The names of options that begin with this one: several are ambiguous. */
static int list_matches(const verb *v, const char *name, char *to, size_t size)
{
    int n = 0;
    *to = 0;
    for (int i = 0; i < N_OPTIONS; i++) {
        const char *other = option_rows[i].name;
        if (!verb_takes(v, (option_id)i) ||
            strncmp(other, name, strlen(name)) != 0)
            continue;
        const size_t used = strlen(to);
        snprintf(to + used, size - used, "%s--%s", n++ ? ", " : "", other);
    }
    return n;
}

static bool other_verb_takes(const char *name)
{
    for (int i = 0; i < N_OPTIONS; i++)
        if (strcmp(option_rows[i].name, name) == 0) return true;
    return false;
}

static void unknown_long(const verb *v, const char *given)
{
    const char *names[N_OPTIONS];
    char name[64], matches[256];
    int n = 0;
    for (int i = 0; i < N_OPTIONS; i++)
        if (verb_takes(v, (option_id)i)) names[n++] = option_rows[i].name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given + 2, "="),
             given + 2);
    const char *meant = nearest(name, names, n);
    const int begin = list_matches(v, name, matches, sizeof matches);
    if (begin == 1 && strchr(given, '='))
        complain(USAGE, "option %s takes no value", matches);
    else if (begin > 1)
        complain(USAGE, "option '--%s' is ambiguous: %s", name, matches);
    else if (other_verb_takes(name))
        complain(USAGE, "%s has no option '--%s' (see lowbit %s --help)",
                 v->name, name, v->name);
    else if (meant)
        complain(USAGE, "unknown option '--%s'; did you mean --%s?", name,
                 meant);
    else
        complain(USAGE, "unknown option '--%s' (see lowbit %s --help)", name,
                 v->name);
}

/* c: what getopt returned, '?' or ':'. */
static bool wrong_option(const verb *v, const char *given, int c)
{
    if (c == ':')
        complain(USAGE, "option '%.64s' needs a value", given);
    else if (strncmp(given, "--", 2) == 0)
        unknown_long(v, given);
    else
        complain(USAGE, "unknown option '-%c' (see lowbit %s --help)", optopt,
                 v->name);
    return false;
}

static bool wrong_operands(const verb *v, int n)
{
    static const char *const count[] = {"no arguments", "one argument",
                                        "two arguments"};
    const int most = v->n_operands + v->n_optional;
    const char *hint = n > most && verb_takes(v, OPTION_OUTPUT)
                           ? "; use -o for the output"
                           : "";
    if (!most)
        complain(USAGE, "%s takes no arguments (got %d)", v->name, n);
    else if (v->n_optional)
        complain(USAGE, "%s takes %s (got %d argument%s)%s", v->name,
                 v->operands, n, n == 1 ? "" : "s", hint);
    else
        complain(USAGE, "%s takes %s, %s (got %d)%s", v->name, count[most],
                 v->operands, n, hint);
    return false;
}

static bool read_all(const verb *v, int argc, char **argv, arguments *a)
{
    char letters[2 * N_OPTIONS + 2];
    struct option longs[2 * N_OPTIONS + 1];
    forms(v, letters, longs);
    opterr = 0;
    for (int c, at = 1;
         (c = getopt_long(argc, argv, letters, longs, NULL)) != -1;
         at = optind) {
        /* In a cluster such as -qZ, optind still points to the argument. */
        if (c == ':' || c == '?')
            return wrong_option(v, argv[optind > at ? optind - 1 : at], c);
        const int id = id_of(c);
        a->count[id]++;
        a->value[id] = optarg;
        if (!optarg) continue;
        if (a->n_given == GIVEN_MOST) {
            complain(USAGE, "more than %d options with values", GIVEN_MOST);
            return false;
        }
        a->given[a->n_given].id = (option_id)id;
        a->given[a->n_given++].value = optarg;
    }
    if (a->count[OPTION_HELP]) return true;
    const int n = argc - optind;
    if (n < v->n_operands || n > v->n_operands + v->n_optional)
        return wrong_operands(v, n);
    for (; optind < argc; optind++)
        a->operand[a->n_operands++] = argv[optind];
    return true;
}

/* Output is renamed into place and read back: it cannot be a stream. Input that
 * is read more than once, or compared with output, cannot be one either. */
static bool has_paths(const verb *v, const arguments *a)
{
    const bool files = !v->streams && v != &verb_completion;
    if (a->n_operands && !*a->operand[0]) {
        complain(USAGE, "the first argument of %s is empty", v->name);
        return false;
    }
    for (int i = 0; i < a->n_operands && files; i++) {
        if (strcmp(a->operand[i], "-") != 0) continue;
        complain(USAGE,
                 "%s cannot read standard input; give the path of a file (./- "
                 "for a file called -)",
                 v->name);
        return false;
    }
    for (int i = 0; i < a->n_given; i++) {
        const option_id id = a->given[i].id;
        if ((id != OPTION_OUTPUT && id != OPTION_REPORT && id != OPTION_SVG) ||
            strcmp(a->given[i].value, "-") != 0)
            continue;
        complain(USAGE,
                 "--%s: cannot write to standard output; give the path of a "
                 "file (./- for a file called -)",
                 option_rows[id].name);
        return false;
    }
    return true;
}

/* As the library spells it; bench has a list of its own. */
static bool read_type(const verb *v, arguments *a)
{
    const char *given = a->value[OPTION_TYPE];
    if (!given || v == &verb_bench) return true;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    if (!cx) return true; /* the verb reports the error */
    const char *name = format_named(cx, given);
    if (name) snprintf(a->type, sizeof a->type, "%s", name);
    if (name) a->value[OPTION_TYPE] = a->type;
    lb_close(cx);
    return name != NULL;
}

bool arguments_read(const verb *v, int argc, char **argv, arguments *a)
{
    *a = (arguments){.argc = argc, .argv = argv};
    char **list = own_list(argc - 1, argv + 1);
    const bool ok = list && read_all(v, argc - 1, list, a) && has_paths(v, a) &&
                    (a->count[OPTION_HELP] || read_type(v, a));
    free(list);
    return ok;
}

/* ---- values -------------------------------------------------------------- */

static bool wrong_value(const arguments *a, option_id id, const char *wants)
{
    complain(USAGE, "--%s takes %s, not '%.64s'", option_rows[id].name, wants,
             a->value[id]);
    return false;
}

/* The factor of a suffix: k, M, G, T in any case (powers of 1000), with an i
 * powers of 1024; a B may follow. 0 if it is invalid. */
static double factor_of(const char *suffix)
{
    static const char letter[] = "kmgt";
    const char *at =
        *suffix ? strchr(letter, tolower((unsigned char)*suffix)) : NULL;
    const bool two = at && suffix[1] == 'i';
    double v = 1;
    for (const char *p = letter; at && p <= at; p++)
        v *= two ? 1024 : 1000;
    suffix += (at != NULL) + two;
    suffix += *suffix == 'B';
    return *suffix ? 0 : v;
}

bool argument_number(const arguments *a, option_id id, int64_t lo, int64_t hi,
                     int64_t *out)
{
    char wants[64], *end = NULL;
    if (!a->count[id]) return true;
    snprintf(wants, sizeof wants, "%lld to %lld", (long long)lo, (long long)hi);
    errno = 0;
    const long long v = strtoll(a->value[id], &end, 10);
    if (errno || end == a->value[id] || *end || v < lo || v > hi)
        return wrong_value(a, id, wants);
    *out = v;
    return true;
}

bool argument_real(const arguments *a, option_id id, double lo, double hi,
                   double *out)
{
    char wants[64], *end = NULL;
    if (!a->count[id]) return true;
    if (isinf(hi))
        snprintf(wants, sizeof wants, "a number of at least %g", lo);
    else
        snprintf(wants, sizeof wants, "a number from %g to %g", lo, hi);
    const double v = strtod(a->value[id], &end);
    if (end == a->value[id] || *end || !(v >= lo && v <= hi))
        return wrong_value(a, id, wants);
    *out = v;
    return true;
}

bool argument_bytes(const arguments *a, option_id id, uint64_t least,
                    uint64_t *out)
{
    char *end = NULL, wants[64];
    if (!a->count[id]) return true;
    const double v = strtod(a->value[id], &end);
    const double bytes = v * factor_of(end);
    if (end == a->value[id] || !(bytes >= 1) || !(bytes < 1e18))
        return wrong_value(a, id, "bytes, e.g. 4.2G, 500MB or 3GiB");
    snprintf(wants, sizeof wants, "at least %llu bytes",
             (unsigned long long)least);
    if ((uint64_t)bytes < least) return wrong_value(a, id, wants);
    *out = (uint64_t)bytes;
    return true;
}

/* Layout and compat "eformer" were called "seed"; that name is still accepted.
 */
static bool is_word(const char *given, const char *word)
{
    return strcasecmp(given, word) == 0 ||
           (strcasecmp(given, "seed") == 0 && strcmp(word, "eformer") == 0);
}

/* "a, b or c" */
static void list_words(const char *const *word, char *to, size_t size)
{
    *to = 0;
    for (int i = 0; word[i]; i++) {
        const size_t n = strlen(to);
        snprintf(to + n, size - n, "%s%s",
                 !i            ? ""
                 : word[i + 1] ? ", "
                               : " or ",
                 word[i]);
    }
}

bool argument_word(const arguments *a, option_id id, const char *const *word,
                   int *out)
{
    char list[160], wants[sizeof list + 64];
    int n = 0;
    if (!a->count[id]) return true;
    for (; word[n]; n++)
        if (*word[n] && is_word(a->value[id], word[n])) {
            *out = n;
            return true;
        }
    if (n && !**word) word++, n--; /* an index without a word */
    list_words(word, list, sizeof list);
    const char *meant = nearest(a->value[id], word, n);
    snprintf(wants, sizeof wants, "not '%.32s'%s%s%s", a->value[id],
             meant ? "; did you mean " : "", meant ? meant : "",
             meant ? "?" : "");
    complain(USAGE, "--%s takes %s, %s", option_rows[id].name, list, wants);
    return false;
}

const char *format_named(const lb_ctx *cx, const char *name)
{
    enum { MOST = 64 };
    const char *names[MOST];
    int n = 0;
    const char *f;
    for (int k = 0; n < MOST && (f = lb_format_name(cx, k)); k++) {
        const bool writes = lb_can_quantize(cx, f);
        if (strcasecmp(f, name) == 0) {
            if (writes) return f;
            complain(USAGE, "cannot quantize to %s (see lowbit formats)", f);
            return NULL;
        }
        if (writes) names[n++] = f;
    }
    const char *meant = nearest(name, names, n);
    if (meant)
        complain(USAGE, "unknown type '%.64s'; did you mean %s?", name, meant);
    else
        complain(USAGE, "unknown type '%.64s' (see lowbit formats)", name);
    return NULL;
}
