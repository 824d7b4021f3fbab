/* manual.c - `lowbit --manual VERB`: a verb's manual page, as scdoc reads it,
 * from what --help is made of. The build makes pages of them. */
#include <string.h>

#include "verb.h"

/* As one line: where one begins, a hyphen is a list, and roff takes a dot for
 * a command. What scdoc would take for markup is told to be none. */
static void put_scdoc(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (strchr("_*\\#~<`|[", *p) || (p == text && *p == '-')) putchar('\\');
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
    puts(" \\[_OPTION_\\]..\n\n# DESCRIPTION\n");
    put_scdoc(v->summary);
    puts(".\n");
    if (v->help) {
        put_scdoc(v->help);
        puts("\n");
    }
    puts("# OPTIONS\n");
    for (int i = 0; i < N_OPTIONS; i++)
        if (verb_takes(v, (option_id)i)) manual_option(&option_rows[i]);
    manual_examples(v->examples);
    puts(
        "# EXIT STATUS\n\n"
        "0 done, 1 failed, 2 a command line that makes no sense, 3 a file that "
        "is wrong,\n4 what --strict forbids.\n\n# SEE ALSO\n\n*lowbit*(1)");
}
