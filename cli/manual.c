/* manual.c - `lowbit --manual VERB`: the manual page of a verb as scdoc source,
 * made from the same text as --help. */
#include <string.h>

#include "verb.h"

/* As one line per paragraph: at the start of a line a hyphen would begin a
 * list, and a dot would be a roff command. Markup is escaped. */
static void put_scdoc(const char *text)
{
    bool begins = true;
    for (const char *p = text; *p; p++) {
        const bool paragraph = p[0] == '\n' && p[1] == '\n';
        if (strchr("_*\\#~<`|[", *p) || (begins && *p == '-')) putchar('\\');
        begins = paragraph;
        if (paragraph) fputs("\n\n", stdout);
        if (paragraph)
            p++;
        else
            putchar(*p == '\n' ? ' ' : *p);
    }
}

static void manual_option(const option_row *o)
{
    putchar('*');
    if (o->letter) printf("-%c*, *", o->letter);
    printf("--%s*", o->name);
    if (o->operand) printf(" _%s_", o->operand);
    fputs("\n\t", stdout);
    put_scdoc(o->help);
    puts("\n");
}

static void manual_examples(const char *examples)
{
    if (!examples) return;
    fputs("# EXAMPLES\n\n```\n", stdout);
    puts(examples);
    puts("```\n");
}

void verb_manual(const verb *v)
{
    printf("lowbit-%s(1) \"lowbit %s\"\n\n# NAME\n\nlowbit-%s - ", v->name,
           lb_version(), v->name);
    put_scdoc(v->summary);
    printf("\n\n# SYNOPSIS\n\n*lowbit %s*%s", v->name, *v->operands ? " " : "");
    put_scdoc(v->operands);
    puts(" \\[_OPTION_\\]...\n\n# DESCRIPTION\n");
    put_scdoc(v->summary);
    puts(".\n");
    if (v->help) {
        put_scdoc(v->help);
        puts("\n");
    }
    puts("# OPTIONS\n");
    for (const option_group *g = option_groups; g->title; g++)
        for (const option_id *o = g->id; *o != N_OPTIONS; o++)
            if (verb_takes(v, *o)) manual_option(&option_rows[*o]);
    manual_examples(v->examples);
    puts(
        "# EXIT STATUS\n\n"
        "0 success, 1 failure, 2 usage error, 3 invalid or unsupported input,\n"
        "4 --strict violation or refused conversion, 130 interrupted.\n\n"
        "# SEE ALSO\n\n"
        "*lowbit*(1)");
}
