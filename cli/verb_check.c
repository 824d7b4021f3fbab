/* verb_check.c - `lowbit check`: is a file sound?
 *
 * To open it is to hold all that its header claims against the rules; then
 * every array is loaded and its numbers looked at. What is wrong goes to
 * stdout, a line for each flaw, because it is what was asked for.
 */
#include <inttypes.h>
#include <string.h>

#include "input.h"

typedef struct check {
    json *j; /* NULL: lines of text */
    bool quiet;
    int64_t flawed;  /* arrays */
    int64_t unknown; /* arrays that are right, and cannot be loaded here */
    double elements; /* looked at */
} check;

/* ---- what is said -------------------------------------------------------- */

static void say(check *c, const char *name, const char *what)
{
    if (c->quiet) return;
    if (c->j) {
        json_open(c->j, '{');
        json_string(json_key(c->j, "name"), name);
        json_string(json_key(c->j, "flaw"), what);
        json_close(c->j, '}');
        return;
    }
    put_text(stdout, name, strlen(name));
    fputs(": ", stdout);
    put_text(stdout, what, strlen(what));
    putchar('\n');
}

static void say_flaw(check *c, const char *name, const char *what, lb_flaw f)
{
    char text[160];
    if (!f.n) return;
    snprintf(text, sizeof text, "%" PRId64 " %s, the first at %" PRId64, f.n,
             what, f.first);
    say(c, name, text);
}

/* ---- arrays -------------------------------------------------------------- */

/* What could not be loaded: false if that says nothing about the file. */
static bool check_failure(lb_ctx *cx, const lb_entry *e, check *c)
{
    const lb_status status = lb_error_status(cx);
    if (is_beyond(cx))
        c->unknown++;
    else if (status == LB_E_CONTENT || status == LB_E_ARG) {
        c->flawed++;
        say(c, e->name, lb_error(cx));
    } else
        return false;
    lb_clear(cx);
    return true;
}

static bool check_array(lb_ctx *cx, lb_file *f, const lb_entry *e, check *c)
{
    lb_findings found = {0};
    lb_enter(cx);
    const bool ok = lb_examine(cx, lb_file_load(cx, f, e->name), &found);
    lb_leave(cx);
    if (!ok) return check_failure(cx, e, c);
    c->elements += (double)found.n;
    c->flawed += !lb_findings_sound(&found);
    say_flaw(c, e->name, "NaN", found.nan);
    say_flaw(c, e->name, "infinite", found.inf);
    say_flaw(c, e->name, "codes that the format does not have", found.code);
    say_flaw(c, e->name, "scales that are negative or not finite", found.scale);
    return true;
}

static bool check_arrays(lb_ctx *cx, lb_file *f, bool values, check *c)
{
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        c->unknown += !e->format;
        if (values && e->format && !check_array(cx, f, e, c)) return false;
    }
    return true;
}

/* ---- the verb ------------------------------------------------------------ */

static void begin(const char *path, const lb_file *f, const check *c)
{
    if (!c->j || !f) return;
    json_open(c->j, '{');
    json_string(json_key(c->j, "path"), path);
    json_string(json_key(c->j, "kind"), lb_file_kind(f));
    json_open(json_key(c->j, "flaws"), '[');
}

/* why: it could not be looked at to the end; NULL: it was. */
static void end(const char *path, const lb_file *f, const check *c,
                const char *why)
{
    const int64_t n = lb_file_count(f);
    if (c->j && f) {
        json_close(c->j, ']');
        json_string(json_key(c->j, "error"), why);
        json_int(json_key(c->j, "arrays"), n);
        json_int(json_key(c->j, "flawed"), c->flawed);
        json_int(json_key(c->j, "unknown"), c->unknown);
        json_double(json_key(c->j, "elements"), c->elements);
        json_close(c->j, '}');
        putchar('\n');
    }
    if (c->quiet || c->j || why) return;
    put_text(stdout, path, strlen(path));
    printf(": %s, %" PRId64 " array%s, %.0f element%s looked at: ",
           lb_file_kind(f), n, n == 1 ? "" : "s", c->elements,
           c->elements == 1 ? "" : "s");
    if (c->flawed)
        printf("%" PRId64 " flawed\n", c->flawed);
    else
        puts("sound");
    if (c->unknown)
        printf("%" PRId64 " of them cannot be loaded here: only where they lie "
               "was looked at\n",
               c->unknown);
}

static verdict run(const arguments *a)
{
    json text = {.to = stdout};
    check c = {.j = a->count[OPTION_JSON] ? &text : NULL,
               .quiet = a->count[OPTION_QUIET] && !a->count[OPTION_JSON]};
    const char *path = a->operand[0];
    int64_t jobs = 0;
    if (!argument_number(a, OPTION_JOBS, 1, 256, &jobs)) return USAGE;
    const char *input = input_path(path);
    if (!input) return FAILED;
    lb_ctx *cx = context_open((int)jobs);
    if (!cx) return FAILED;
    lb_file *f = lb_file_open(cx, input, NULL);
    begin(path, f, &c);
    const bool seen = f && check_arrays(cx, f, !a->count[OPTION_HEADER], &c);
    verdict v = c.flawed ? BAD_INPUT : DONE;
    if (!seen) v = complain_of(cx);
    end(path, f, &c, seen ? NULL : lb_error(cx));
    lb_file_close(f);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {OPTION_HEADER, OPTION_JOBS,
                                          OPTION_JSON, OPTION_QUIET, N_OPTIONS};

const verb verb_check = {
    .name = "check",
    .operands = "FILE",
    .summary = "Looks for what is wrong in a file",
    .help = "The header is held against every rule of its kind of file, which "
            "with --header is\nall. Then every array is loaded: NaN and "
            "infinities, codes that the format does not\nhave, and scales that "
            "are negative or not finite are flaws. The exit status is 3 if\n"
            "there are any.",
    .examples = "lowbit check model.safetensors\n"
                "lowbit check --header model.gguf",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
};
