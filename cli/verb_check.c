/* verb_check.c - `lowbit check`: validate a file.
 *
 * Opening the file checks its header. Then the values of every array are read.
 * Problems are the result, so they go to stdout, one line each.
 */
#include <inttypes.h>
#include <string.h>

#include "input.h"
#include "scan.h"

typedef struct check {
    json *j; /* NULL: lines of text */
    bool quiet;
    scan scan;
    int64_t invalid;     /* arrays */
    int64_t unsupported; /* arrays whose values cannot be loaded */
    double values;       /* checked */
} check;

/* ---- output -------------------------------------------------------------- */

static void put_line(check *c, const char *name, const char *problem)
{
    if (c->quiet || c->j) return;
    scan_clear(&c->scan);
    put_text(stdout, name, strlen(name));
    fputs(": ", stdout);
    failure_begin();
    put_text(stdout, problem, strlen(problem));
    failure_end();
    putchar('\n');
}

static void put_flaw(check *c, const char *name, const char *what, lb_flaw f)
{
    char text[160];
    if (!f.n) return;
    snprintf(text, sizeof text, "%" PRId64 " %s, first at index %" PRId64, f.n,
             what, f.first);
    put_line(c, name, text);
}

/* found NULL: the values were not checked, for the reason given, or because
 * only the header is. */
static void put_json(const check *c, const lb_entry *e, const char *status,
                     const lb_findings *found, const char *why)
{
    if (!c->j) return;
    json_next(c->j);
    json_open(c->j, '{');
    json_array_head(c->j, e);
    json_string(json_key(c->j, "status"), status);
    json_string(json_key(c->j, "message"), why);
    if (found) {
        json_int(json_key(c->j, "nan"), found->nan.n);
        json_int(json_key(c->j, "infinite"), found->inf.n);
        json_int(json_key(c->j, "invalid_codes"), found->code.n);
        json_int(json_key(c->j, "invalid_scales"), found->scale.n);
    }
    json_close(c->j, '}');
}

/* ---- arrays -------------------------------------------------------------- */

/* After an array could not be loaded: false if that is not the file's fault. */
static bool check_failure(lb_ctx *cx, const lb_entry *e, check *c)
{
    const lb_status status = lb_error_status(cx);
    const bool beyond = is_beyond(cx);
    if (beyond)
        c->unsupported++;
    else if (status == LB_E_CONTENT || status == LB_E_ARG) {
        c->invalid++;
        put_line(c, e->name, lb_error(cx));
    } else
        return false;
    put_json(c, e, beyond ? "unsupported" : "invalid", NULL, lb_error(cx));
    lb_clear(cx);
    return true;
}

static bool examine(void *user, lb_ctx *cx, lb_array *part)
{
    return lb_examine(cx, part, user);
}

static bool check_array(lb_ctx *cx, lb_file *f, const lb_entry *e, check *c)
{
    lb_findings found = {0};
    if (!scan_array(&c->scan, cx, f, e, examine, &found))
        return check_failure(cx, e, c);
    const bool sound = lb_findings_sound(&found);
    c->values += (double)found.n;
    c->invalid += !sound;
    put_flaw(c, e->name, "NaN", found.nan);
    put_flaw(c, e->name, "infinite", found.inf);
    put_flaw(c, e->name, "invalid codes", found.code);
    put_flaw(c, e->name, "scales that are negative or not finite", found.scale);
    put_json(c, e, sound ? "ok" : "invalid", &found, NULL);
    if (found.outer_zeros) {
        scan_clear(&c->scan);
        caution("%s: %" PRId64 " zero point%s outside the range of the codes; "
                "programs that wrote GPTQ's first version destroyed some so",
                e->name, found.outer_zeros,
                found.outer_zeros == 1 ? " is" : "s are");
    }
    return true;
}

static bool check_arrays(lb_ctx *cx, lb_file *f, bool values, check *c)
{
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        if (!e->format) {
            c->unsupported++;
            put_json(c, e, "unsupported", NULL, "unsupported type");
        } else if (!values)
            put_json(c, e, "ok", NULL, NULL);
        else if (!check_array(cx, f, e, c))
            return false;
    }
    return true;
}

/* ---- the verb ------------------------------------------------------------ */

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void summary(const char *path, const lb_file *f, const check *c,
                    bool values)
{
    const int64_t n = lb_file_count(f);
    put_text(stdout, path, strlen(path));
    printf(": %s, %" PRId64 " array%s, ", lb_file_kind(f), n, plural(n));
    if (values)
        printf("%.0f value%s checked: ", c->values, c->values == 1 ? "" : "s");
    else
        fputs("header checked: ", stdout);
    if (c->invalid) {
        failure_begin();
        printf("%" PRId64 " invalid array%s", c->invalid, plural(c->invalid));
        failure_end();
        putchar('\n');
    } else
        puts("OK");
    if (c->unsupported)
        printf("%" PRId64 " array%s of unsupported type or shape: only the "
               "offsets were checked\n",
               c->unsupported, plural(c->unsupported));
}

static void json_summary(json *j, const check *c)
{
    json_close(j, ']');
    json_int(json_key(j, "invalid"), c->invalid);
    json_int(json_key(j, "unsupported"), c->unsupported);
    json_double(json_key(j, "values"), c->values);
    json_end(j);
}

static verdict check_file(const arguments *a, lb_ctx *cx, lb_file *f, check *c)
{
    const bool values = !a->count[OPTION_HEADER];
    const char *path = a->operand[0];
    if (a->count[OPTION_JSON]) {
        c->j = json_begin("check");
        json_string(json_key(c->j, "path"), path);
        json_string(json_key(c->j, "kind"), lb_file_kind(f));
        json_open(json_key(c->j, "arrays"), '[');
    }
    scan_begin(&c->scan, a, f, NULL, 1);
    const bool ok = check_arrays(cx, f, values, c);
    scan_clear(&c->scan);
    if (!ok) return complain_of(cx);
    if (c->j)
        json_summary(c->j, c);
    else if (!c->quiet)
        summary(path, f, c, values);
    if (!c->invalid) return DONE;
    if (c->j || c->quiet)
        complain(BAD_INPUT, "%s: %" PRId64 " invalid array%s", path, c->invalid,
                 plural(c->invalid));
    return BAD_INPUT;
}

static verdict run(const arguments *a)
{
    check c = {.quiet = a->count[OPTION_QUIET] && !a->count[OPTION_JSON]};
    int64_t jobs = 0;
    if (!argument_number(a, OPTION_JOBS, 1, 256, &jobs)) return USAGE;
    const char *input = input_path(a->operand[0]);
    lb_ctx *cx = input ? context_open((int)jobs) : NULL;
    if (!cx) return complaint_verdict();
    const lb_file_options o = {.struct_size = sizeof o, .no_map = true};
    lb_file *f = lb_file_open(cx, input, &o);
    const verdict v = f ? check_file(a, cx, f, &c) : complain_of(cx);
    lb_file_close(f);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {OPTION_HEADER, OPTION_JOBS,
                                          OPTION_JSON, OPTION_QUIET, N_OPTIONS};

const verb verb_check = {
    .name = "check",
    .operands = "FILE",
    .summary = "Validate a file",
    .help =
        "The header is checked against the format's specification; --header "
        "stops there. Then all values are read: NaN, infinities, codes "
        "that the format does not define, and scales that are negative or "
        "not finite are errors, and the exit code is 3. FILE is any file "
        "or directory that lowbit info accepts; - is standard input.",
    .examples = "lowbit check model.safetensors\n"
                "lowbit check --header model.gguf\n"
                "curl -s URL | lowbit check -",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
    .streams = true,
};
