/* help.c - `lowbit VERB --help`. */
#include <string.h>

#include "verb.h"

static void put_examples(FILE *to, const char *line)
{
    if (line) fputs("\nExamples:\n", to);
    while (line) {
        const int n = (int)strcspn(line, "\n");
        fprintf(to, "  %.*s\n", n, line);
        line = line[n] ? line + n + 1 : NULL;
    }
}

/* Fold words into lines of at most 79 columns; the first line starts at column
 * `at`, the others at column `margin`. */
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

/* Paragraphs are separated by empty lines. */
static void put_paragraphs(FILE *to, const char *text)
{
    while (text) {
        char paragraph[2048];
        const char *end = strstr(text, "\n\n");
        snprintf(paragraph, sizeof paragraph, "%.*s",
                 (int)(end ? (size_t)(end - text) : strlen(text)), text);
        fputc('\n', to);
        put_folded(to, paragraph, 0, 0);
        text = end ? end + 2 : NULL;
    }
}

static void put_option(FILE *to, const option_row *o)
{
    enum { LEFT = 27 };
    char left[40] = "";
    snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
             o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
             o->operand ? " " : "", o->operand ? o->operand : "");
    fprintf(to, "  %-*s", LEFT - 2, left);
    put_folded(to, o->help, LEFT, LEFT);
}

static int count_options(const verb *v)
{
    int n = 0;
    for (int i = 0; i < N_OPTIONS; i++)
        n += verb_takes(v, (option_id)i);
    return n;
}

void verb_help(FILE *to, const verb *v)
{
    enum { FEW = 10 }; /* are not grouped */
    const bool few = count_options(v) <= FEW;
    fprintf(to, "usage: lowbit %s%s%s [OPTION]...\n\n%s.\n", v->name,
            *v->operands ? " " : "", v->operands, v->summary);
    put_paragraphs(to, v->help);
    put_examples(to, v->examples);
    if (few) fputs("\nOptions:\n", to);
    for (const option_group *g = option_groups; g->title; g++) {
        bool first = !few;
        for (const option_id *o = g->id; *o != N_OPTIONS; o++) {
            if (!verb_takes(v, *o)) continue;
            if (first) fprintf(to, "\n%s:\n", g->title);
            first = false;
            put_option(to, &option_rows[*o]);
        }
    }
}
