/* options.c - the one table of options, and the one parser. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "verb.h"

const option_row option_rows[N_OPTIONS] = {
    [OPTION_AXIS] = {"axis", 0, "N",
                     "int8: the axis along which elements share a scale; -1, "
                     "the last, if not said"},
    [OPTION_BINS] = {"bins", 0, "N", "bars of the histogram, 24 if not said"},
    [OPTION_BLOCK_SIZE] = {"block-size", 0, "N",
                           "elements that share a scale; nf4: 64 if not said"},
    [OPTION_COMPAT] = {"compat", 0, "WHOSE",
                       "arithmetic: native, eformer, bnb-cuda, bnb-cpu"},
    [OPTION_DOUBLE_QUANT] = {"double-quant", 0, NULL,
                             "scales in 8 bits as well"},
    [OPTION_DRY_RUN] = {"dry-run", 0, NULL,
                        "say what would be done, and write nothing"},
    [OPTION_EXCLUDE] = {"exclude", 0, "RE",
                        "arrays of such names stay as they are"},
    [OPTION_DTYPE] = {"dtype", 0, "DTYPE", "f32, f16, bf16 or f64"},
    [OPTION_FORCE] = {"force", 0, NULL, "replace a file that is there"},
    [OPTION_HEADER] = {"header", 0, NULL, "only what the header claims"},
    [OPTION_HELP] = {"help", 'h', NULL, "this text"},
    [OPTION_INCLUDE] = {"include", 0, "RE",
                        "also those of such names, which would stay"},
    [OPTION_JOBS] = {"jobs", 'j', "N", "threads; all there are if not said"},
    [OPTION_JSON] = {"json", 0, NULL, "the same as JSON"},
    [OPTION_LAYOUT] = {"layout", 0, "NAME",
                       "native (the default), bnb, bitnet or eformer"},
    [OPTION_LINEAR_CLASS] = {"linear-class", 0, "NAME",
                             "of BitNet's: autobitlinear, whose scales "
                             "multiply, or bitlinear"},
    [OPTION_MAX_MEMORY] = {"max-memory", 0, "BYTES",
                           "of arrays at a time; 512MiB if not said"},
    [OPTION_MESH] = {"mesh", 0, "AXES", "ranks by named axes: dp=2,tp=4"},
    [OPTION_METADATA] = {"metadata", 0, NULL, "also the values in the file"},
    [OPTION_NO_SYNC] = {"no-sync", 0, NULL, "do not wait for the disk"},
    [OPTION_OUTPUT] = {"output", 'o', "FILE", "where to; must be said"},
    [OPTION_OVERRIDE] = {"override", 0, "RULE",
                         "RE=TYPE[:KEY=VALUE,..] or RE=keep, for some"},
    [OPTION_QUICK] = {"quick", 0, NULL, "two calls of each: to try it out"},
    [OPTION_QUIET] = {"quiet", 'q', NULL, "no talk but errors"},
    [OPTION_RAW] = {"raw", 0, NULL,
                    "tensors as they lie, not the arrays they make up"},
    [OPTION_RECIPE] = {"recipe", 0, "FILE",
                       "lines include RE, exclude RE, override RULE"},
    [OPTION_RELAXED] = {"relaxed", 0, NULL,
                        "leave out what does not fit of a spec, and say so"},
    [OPTION_REPORT] = {"report", 0, "FILE",
                       "what it cost, as .html, .md or .json"},
    [OPTION_RESUME] = {"resume", 0, NULL,
                       "go on where a run that was killed has ended"},
    [OPTION_RULES] = {"rules", 0, "FILE", "lines as --spec has them"},
    [OPTION_SCALE] = {"scale", 0, "OF", "none, tensor, row or block"},
    [OPTION_SHAPE] = {"shape", 0, "MxKxN", "1x4096x4096 if not said"},
    [OPTION_SHAPE_FALLBACK] = {"shape-fallback", 0, "HOW",
                               "where a type does not take a shape: keep, "
                               "error, adjust"},
    [OPTION_SPEC] = {"spec", 0, "RULE",
                     "RE=P(None, tp): how arrays are cut whose names match"},
    [OPTION_STRICT] = {"strict", 0, NULL,
                       "fail where something cannot be as it is asked for"},
    [OPTION_TARGET_BPW] = {"target-bpw", 0, "BITS",
                           "of a weight, on average: types are chosen by "
                           "measured error"},
    [OPTION_TARGET_SIZE] = {"target-size", 0, "BYTES",
                            "of the result, as 4.2G: types are chosen so, too"},
    [OPTION_THRESHOLD] = {"threshold", 0, "HOW", "ternary: std or absmean"},
    [OPTION_TO] = {"to", 0, "KIND", "safetensors, gguf, npy or npz"},
    [OPTION_TOLERANCE] = {"tolerance", 0, "X",
                          "the largest nrmse that is no difference; 0"},
    [OPTION_TOP] = {"top", 0, "N", "the N worst, the worst first"},
    [OPTION_TYPE] = {"type", 0, "FORMAT", "int8, nf4, ..: see lowbit formats"},
    [OPTION_VERBOSE] = {"verbose", 'v', NULL, "a line for each array"},
    [OPTION_VERIFY] = {"verify", 0, NULL, "read the result again, and compare"},
};

bool verb_takes(const verb *v, option_id id)
{
    if (id == OPTION_HELP) return true;
    for (const option_id *o = v->options; *o != N_OPTIONS; o++)
        if (*o == id) return true;
    return false;
}

static void put_examples(FILE *to, const char *line)
{
    if (line) fputs("\nExamples:\n", to);
    while (line) {
        const int n = (int)strcspn(line, "\n");
        fprintf(to, "  %.*s\n", n, line);
        line = line[n] ? line + n + 1 : NULL;
    }
}

/* Words in lines of 79 columns at most, of which the next is column `at` and
 * later ones begin in column `margin`. */
static void put_folded(FILE *to, const char *text, int at, int margin)
{
    static const char space[] = " \n";
    for (bool first = true; *(text += strspn(text, space)); first = false) {
        const int n = (int)strcspn(text, space);
        const bool fits = at + !first + n <= 79;
        if (!fits) fprintf(to, "\n%*s", margin, "");
        fprintf(to, "%s%.*s", fits && !first ? " " : "", n, text);
        at = fits ? at + !first + n : margin + n;
        text += n;
    }
    fputc('\n', to);
}

void verb_help(FILE *to, const verb *v)
{
    enum { LEFT = 27 };
    fprintf(to, "usage: lowbit %s%s%s [OPTION]..\n\n%s.\n", v->name,
            *v->operands ? " " : "", v->operands, v->summary);
    if (v->help) {
        fputc('\n', to);
        put_folded(to, v->help, 0, 0);
    }
    put_examples(to, v->examples);
    fputs("\nOptions:\n", to);
    for (int i = 0; i < N_OPTIONS; i++) {
        char left[40] = "";
        if (!verb_takes(v, (option_id)i)) continue;
        snprintf(left, sizeof left, "%c%c%s--%s%s%s",
                 option_rows[i].letter ? '-' : ' ',
                 option_rows[i].letter ? option_rows[i].letter : ' ',
                 option_rows[i].letter ? ", " : "  ", option_rows[i].name,
                 option_rows[i].operand ? " " : "",
                 option_rows[i].operand ? option_rows[i].operand : "");
        fprintf(to, "  %-*s", LEFT - 2, left);
        put_folded(to, option_rows[i].help, LEFT, LEFT);
    }
}

/* getopt's forms of what the verb takes: of long ones, val is the id + 256. */
enum { LONG = 256 };
static void forms(const verb *v, char *letters, struct option *longs)
{
    *letters++ = ':'; /* tell a missing value from an unknown option */
    for (int i = 0; i < N_OPTIONS; i++) {
        if (!verb_takes(v, (option_id)i)) continue;
        *longs++ = (struct option){option_rows[i].name,
                                   option_rows[i].operand ? required_argument
                                                          : no_argument,
                                   NULL, LONG + i};
        if (!option_rows[i].letter) continue;
        *letters++ = option_rows[i].letter;
        if (option_rows[i].operand) *letters++ = ':';
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

/* getopt moves operands behind options, so it gets a list of its own. */
static char **own_list(int argc, char **argv)
{
    char **list = calloc((size_t)argc + 1, sizeof *list);
    if (!list) complain(FAILED, "out of memory");
    for (int i = 0; list && i < argc; i++)
        list[i] = argv[i];
    return list;
}

/* c: as getopt has it. */
static bool wrong_option(const verb *v, const char *given, int c)
{
    const char *names[N_OPTIONS], *meant = NULL;
    char word[64];
    int n = 0;
    for (int i = 0; i < N_OPTIONS; i++)
        if (verb_takes(v, (option_id)i)) names[n++] = option_rows[i].name;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(given, "="), given);
    if (c == '?' && strncmp(word, "--", 2) == 0)
        meant = nearest(word + 2, names, n);
    if (meant)
        complain(USAGE, "%s: '%.64s' is no option of it; is it --%s?", v->name,
                 given, meant);
    else
        complain(USAGE, "%s: '%.64s' %s; see lowbit %s --help", v->name, given,
                 c == ':' ? "lacks its value" : "is no option of it", v->name);
    return false;
}

static bool read_all(const verb *v, int argc, char **argv, arguments *a)
{
    char letters[2 * N_OPTIONS + 2];
    struct option longs[N_OPTIONS + 1];
    forms(v, letters, longs);
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (c == ':' || c == '?') return wrong_option(v, argv[optind - 1], c);
        const int id = id_of(c);
        a->count[id]++;
        a->value[id] = optarg;
        if (!optarg) continue;
        if (a->n_given == GIVEN_MOST) {
            complain(USAGE, "%s: more than %d options with values", v->name,
                     GIVEN_MOST);
            return false;
        }
        a->given[a->n_given].id = (option_id)id;
        a->given[a->n_given++].value = optarg;
    }
    if (a->count[OPTION_HELP]) return true;
    const int n = argc - optind;
    if (n < v->n_operands || n > v->n_operands + v->n_optional) {
        complain(USAGE, "%s takes %s, and %d %s given", v->name,
                 *v->operands ? v->operands : "options only", n,
                 n == 1 ? "is" : "are");
        return false;
    }
    for (; optind < argc; optind++)
        a->operand[a->n_operands++] = argv[optind];
    return true;
}

bool arguments_read(const verb *v, int argc, char **argv, arguments *a)
{
    *a = (arguments){.argc = argc, .argv = argv};
    char **list = own_list(argc - 1, argv + 1);
    const bool ok = list && read_all(v, argc - 1, list, a);
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

/* What a suffix multiplies by: k, M, G and T, in either case, by powers of
 * 1000, with an i by those of 1024; a B may follow. 0 if it is none. */
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
        return wrong_value(a, id, "bytes, as 4.2G, 500MB or 3Gi");
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
    return strcmp(given, word) == 0 ||
           (strcmp(given, "seed") == 0 && strcmp(word, "eformer") == 0);
}

bool argument_word(const arguments *a, option_id id, const char *const *word,
                   int *out)
{
    char wants[128] = "one of";
    if (!a->count[id]) return true;
    for (int i = 0; word[i]; i++) {
        if (is_word(a->value[id], word[i])) {
            *out = i;
            return true;
        }
        const size_t n = strlen(wants);
        snprintf(wants + n, sizeof wants - n, " %s", word[i]);
    }
    return wrong_value(a, id, wants);
}
