/* options.c - the one table of options, and the one parser. */
#include <getopt.h>
#include <string.h>

#include "verb.h"

static const struct {
    const char *name;
    char letter;         /* 0: none */
    const char *operand; /* NULL: takes none */
    const char *help;
} table[N_OPTIONS] = {
    [OPTION_HELP] = {"help", 'h', NULL, "this text"},
    [OPTION_JSON] = {"json", 0, NULL, "the same as JSON"},
    [OPTION_METADATA] = {"metadata", 0, NULL, "also the values in the file"},
    [OPTION_QUIET] = {"quiet", 'q', NULL, "no talk but errors"},
    [OPTION_RAW] = {"raw", 0, NULL,
                    "tensors as they lie, not the arrays they make up"},
};

static bool takes(const verb *v, option_id id)
{
    if (id == OPTION_HELP) return true;
    for (const option_id *o = v->options; *o != N_OPTIONS; o++)
        if (*o == id) return true;
    return false;
}

void verb_help(FILE *to, const verb *v)
{
    fprintf(to, "usage: lowbit %s %s [OPTION]..\n\n%s.\n", v->name, v->operands,
            v->summary);
    if (v->help) fprintf(to, "\n%s\n", v->help);
    fputc('\n', to);
    for (int i = 0; i < N_OPTIONS; i++) {
        char left[40] = "";
        if (!takes(v, (option_id)i)) continue;
        snprintf(left, sizeof left, "%c%c%s--%s%s%s",
                 table[i].letter ? '-' : ' ',
                 table[i].letter ? table[i].letter : ' ',
                 table[i].letter ? ", " : "  ", table[i].name,
                 table[i].operand ? " " : "",
                 table[i].operand ? table[i].operand : "");
        fprintf(to, "  %-24s %s\n", left, table[i].help);
    }
}

/* getopt's forms of what the verb takes: of long ones, val is the id + 256. */
enum { LONG = 256 };
static void forms(const verb *v, char *letters, struct option *longs)
{
    *letters++ = ':'; /* tell a missing value from an unknown option */
    for (int i = 0; i < N_OPTIONS; i++) {
        if (!takes(v, (option_id)i)) continue;
        *longs++ = (struct option){
            table[i].name, table[i].operand ? required_argument : no_argument,
            NULL, LONG + i};
        if (!table[i].letter) continue;
        *letters++ = table[i].letter;
        if (table[i].operand) *letters++ = ':';
    }
    *letters = 0;
    *longs = (struct option){0};
}

static int id_of(int c)
{
    for (int i = 0; c < LONG && i < N_OPTIONS; i++)
        if (table[i].letter == c) return i;
    return c - LONG;
}

bool arguments_read(const verb *v, int argc, char **argv, arguments *a)
{
    char letters[2 * N_OPTIONS + 2];
    struct option longs[N_OPTIONS + 1];
    *a = (arguments){0};
    forms(v, letters, longs);
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (c == ':' || c == '?') {
            complain(USAGE, "%s: '%.64s' %s; see lowbit %s --help", v->name,
                     argv[optind - 1],
                     c == ':' ? "lacks its value" : "is no option of it",
                     v->name);
            return false;
        }
        const int id = id_of(c);
        a->count[id]++;
        a->value[id] = optarg;
    }
    if (a->count[OPTION_HELP]) return true;
    if (argc - optind != v->n_operands) {
        complain(USAGE, "%s takes %s, and %d %s given", v->name, v->operands,
                 argc - optind, argc - optind == 1 ? "is" : "are");
        return false;
    }
    for (; optind < argc; optind++)
        a->operand[a->n_operands++] = argv[optind];
    return true;
}
