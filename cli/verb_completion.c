/* verb_completion.c - `lowbit completion`: what a shell needs to complete
 * commands, from the same tables that read them. */
#include <string.h>

#include "verb.h"

/* ---- what may stand after an option -------------------------------------- */

static const char *const words[N_OPTIONS] = {
    [OPTION_COMPAT] = "native eformer bnb-cuda bnb-cpu",
    [OPTION_DTYPE] = "f32 f16 bf16 f64",
    [OPTION_LAYOUT] = "native bnb bitnet eformer",
    [OPTION_LINEAR_CLASS] = "autobitlinear bitlinear",
    [OPTION_SCALE] = "none tensor row block",
    [OPTION_SHAPE_FALLBACK] = "keep error adjust",
    [OPTION_THRESHOLD] = "std absmean",
    [OPTION_TO] = "safetensors gguf npy npz",
};

static void put_formats(const lb_ctx *cx)
{
    const char *format;
    for (int k = 1; (format = lb_format_name(cx, k)); k++)
        printf("%s%s", k > 1 ? " " : "", format);
}

/* Words, if there are any to choose from. */
static bool has_words(option_id id)
{
    return words[id] || strcmp(option_rows[id].operand, "TYPE") == 0;
}

static void put_words(const lb_ctx *cx, option_id id)
{
    if (words[id])
        fputs(words[id], stdout);
    else
        put_formats(cx);
}

static bool is_path(option_id id)
{
    const char *operand = option_rows[id].operand;
    return strcmp(operand, "FILE") == 0 || strcmp(operand, "PATH") == 0;
}

/* ---- bash ---------------------------------------------------------------- */

static void bash_options(const verb *v)
{
    printf("    %s) options='", v->name);
    for (int i = 0; i < N_OPTIONS; i++)
        if (verb_takes(v, (option_id)i))
            printf("%s--%s", i ? " " : "", option_rows[i].name);
    puts("' ;;");
}

static void bash_values(const lb_ctx *cx, option_id id)
{
    const option_row *o = &option_rows[id];
    if (!o->operand || is_path(id)) return;
    printf("    --%s", o->name);
    if (o->letter) printf(" | -%c", o->letter);
    fputs(") COMPREPLY=(", stdout);
    if (has_words(id)) {
        fputs("$(compgen -W '", stdout);
        put_words(cx, id);
        fputs("' -- \"$cur\")", stdout);
    }
    puts("); return ;;");
}

static void bash(const lb_ctx *cx)
{
    puts("# lowbit.bash - completion; made by `lowbit completion bash`.\n"
         "_lowbit()\n{\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} options=\n"
         "    local before=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "    COMPREPLY=()\n"
         "    if [ \"$COMP_CWORD\" = 1 ]; then");
    fputs("        COMPREPLY=($(compgen -W '--help --version", stdout);
    for (int i = 0; verbs[i]; i++)
        printf(" %s", verbs[i]->name);
    puts("' -- \"$cur\"))\n        return\n    fi\n    case $before in");
    for (int i = 0; i < N_OPTIONS; i++)
        bash_values(cx, (option_id)i);
    puts("    esac\n    case ${COMP_WORDS[1]} in");
    for (int i = 0; verbs[i]; i++)
        bash_options(verbs[i]);
    puts("    esac\n"
         "    case $cur in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
         "    esac\n}\n"
         "complete -o filenames -F _lowbit lowbit");
}

/* ---- zsh ----------------------------------------------------------------- */

/* Inside of '..[..]'. */
static void zsh_text(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr("[]:\\", *p)) putchar('\\');
        putchar(*p);
    }
}

static void zsh_option(const lb_ctx *cx, option_id id)
{
    const option_row *o = &option_rows[id];
    fputs("            ", stdout);
    if (o->letter)
        printf("{-%c,--%s}'[", o->letter, o->name);
    else
        printf("'--%s[", o->name);
    zsh_text(o->help);
    putchar(']');
    if (o->operand) {
        printf(":%s:", o->operand);
        if (is_path(id))
            fputs("_files", stdout);
        else if (has_words(id)) {
            putchar('(');
            put_words(cx, id);
            putchar(')');
        } else
            putchar(' ');
    }
    puts("' \\");
}

static void zsh(const lb_ctx *cx)
{
    puts("#compdef lowbit\n"
         "# _lowbit - completion; made by `lowbit completion zsh`.\n"
         "local -a verbs\nverbs=(");
    for (int i = 0; verbs[i]; i++) {
        printf("    '%s:", verbs[i]->name);
        zsh_text(verbs[i]->summary);
        puts("'");
    }
    puts(")\nif ((CURRENT == 2)); then\n    _describe verb verbs\n    return\n"
         "fi\ncase $words[2] in");
    for (int i = 0; verbs[i]; i++) {
        printf("    %s)\n        shift words\n        ((CURRENT--))\n"
               "        _arguments \\\n",
               verbs[i]->name);
        for (int k = 0; k < N_OPTIONS; k++)
            if (verb_takes(verbs[i], (option_id)k))
                zsh_option(cx, (option_id)k);
        puts("            '*:file:_files' ;;");
    }
    puts("esac");
}

/* ---- fish ---------------------------------------------------------------- */

static void fish_text(const char *text)
{
    putchar('\'');
    for (const char *p = text; *p; p++) {
        if (*p == '\'' || *p == '\\') putchar('\\');
        putchar(*p);
    }
    putchar('\'');
}

static void fish_option(const lb_ctx *cx, const verb *v, option_id id)
{
    const option_row *o = &option_rows[id];
    printf("complete -c lowbit -n '__fish_seen_subcommand_from %s' -l %s",
           v->name, o->name);
    if (o->letter) printf(" -s %c", o->letter);
    if (o->operand && is_path(id))
        fputs(" -rF", stdout);
    else if (o->operand) {
        fputs(" -x", stdout);
        if (has_words(id)) {
            fputs(" -a '", stdout);
            put_words(cx, id);
            putchar('\'');
        }
    }
    fputs(" -d ", stdout);
    fish_text(o->help);
    putchar('\n');
}

static void fish(const lb_ctx *cx)
{
    puts("# lowbit.fish - completion; made by `lowbit completion fish`.");
    for (int i = 0; verbs[i]; i++) {
        printf("complete -c lowbit -n __fish_use_subcommand -f -a %s -d ",
               verbs[i]->name);
        fish_text(verbs[i]->summary);
        putchar('\n');
        for (int k = 0; k < N_OPTIONS; k++)
            if (verb_takes(verbs[i], (option_id)k))
                fish_option(cx, verbs[i], (option_id)k);
    }
}

/* ---- the verb ------------------------------------------------------------ */

static verdict run(const arguments *a)
{
    static const struct {
        const char *name;
        void (*print)(const lb_ctx *cx);
    } shell[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (int i = 0; i < 3; i++) {
        if (strcmp(shell[i].name, a->operand[0]) != 0) continue;
        lb_ctx *cx = context_open(1);
        if (!cx) return FAILED;
        shell[i].print(cx);
        lb_close(cx);
        return DONE;
    }
    return complain(USAGE, "completion takes bash, zsh or fish, not '%.64s'",
                    a->operand[0]);
}

static const option_id options_taken[] = {N_OPTIONS};

const verb verb_completion = {
    .name = "completion",
    .operands = "SHELL",
    .summary = "Prints what bash, zsh or fish need to complete commands",
    .help = "make install puts it where shells look for it. For one user:\n"
            "lowbit completion bash > "
            "~/.local/share/bash-completion/completions/lowbit",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
};
