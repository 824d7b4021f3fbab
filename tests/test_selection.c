/* test_selection.c - which algorithm multiplies which weights: compared with a
 * table that is reviewed when it changes, golden/selection.txt.
 *
 * A line is a level, an orientation, a precision and some formats, then the
 * algorithm for each number of rows of x (M). Weights are 512 x 512. Nothing is
 * multiplied, but planning may read scales, so levels that this machine lacks
 * are skipped. `test_selection --update` rewrites the lines of the others.
 */
/* ctest: amx */
#include "base/cpu.h"
#include "core/core.h"
#include "laws.h"

enum { SIZE = 512, MOST_LINES = 2048, LINE = 4096 };

static const char path[] = "tests/golden/selection.txt";
static const int64_t rows[] = {1, 2, 3, 4, 8, 16, 32, 128, 512};
enum { N_ROWS = sizeof rows / sizeof *rows };

typedef struct {
    char *line[MOST_LINES];
    int n;
} text;

static void append(text *t, const char *line)
{
    if (check_fails(t->n < MOST_LINES)) return;
    t->line[t->n] = strdup(line);
    if (!t->line[t->n++]) abort();
}

static void text_free(text *t)
{
    while (t->n)
        free(t->line[--t->n]);
}

/* ---- the table as it is ------------------------------------------------- */

/* What a CPU has beyond its level, in every combination that matters. */
static const struct {
    const char *name;
    lb_cpu cpu;
} cpus[] = {
    {"ref", {.level = LB_LEVEL_REF}},
#if defined(__x86_64__)
    {"avx2", {.level = LB_LEVEL_AVX2}},
    {"avx512", {.level = LB_LEVEL_AVX512}},
    {"avx512vnni", {.level = LB_LEVEL_AVX512VNNI}},
    {"amx", {.level = LB_LEVEL_AMX}},
#elif defined(__aarch64__)
    {"neon", {.level = LB_LEVEL_NEON}},
    {"neon+dotprod", {.level = LB_LEVEL_NEON, .dotprod = true}},
#endif
};
enum { N_CPUS = sizeof cpus / sizeof *cpus };

/* "; 1: gemv q4 f32", unless it is that of the number of rows before. */
static size_t add_choice(lb_ctx *cx, lb_array *w, bool turned,
                         lb_precision precision, int r, char *last, char *to,
                         size_t room)
{
    const lb_dot_dims d = {.lhs_contract = {1, {1}},
                           .rhs_contract = {1, {turned ? 1 : 0}},
                           .precision = precision};
    lb_array *in[2] = {lb_zeros(cx, LB_F32, LB_SHAPE(rows[r], SIZE)), w};
    const char *line = lb_explain(cx, "dot_general", in, 2, &d);
    const char *choice = line ? strstr(line, ": tiles, ") : NULL;
    if (check_fails(choice != NULL)) return 0;
    choice += strlen(": tiles, ");
    const char *end = strstr(choice, " unit");
    while (end && end > choice && *end != ',')
        end--;
    if (check_fails(end != NULL)) return 0;
    const int n = (int)(end - choice);
    if ((int)strlen(last) == n && memcmp(last, choice, (size_t)n) == 0)
        return 0;
    snprintf(last, LINE, "%.*s", n, choice);
    return (size_t)snprintf(to, room, "%s %lld: %s", r ? ";" : "",
                            (long long)rows[r], last);
}

static void add_choices(lb_ctx *cx, lb_array *w, bool turned,
                        lb_precision precision, char *to)
{
    char last[LINE] = "";
    size_t at = 0;
    *to = 0;
    for (int r = 0; r < N_ROWS; r++)
        at += add_choice(cx, w, turned, precision, r, last, to + at, LINE - at);
}

/* Formats whose codes are not multiplied are one: "decoded". */
static const char *name_of(const sample_format *f)
{
    return f->fmt->levels ? f->name : "decoded";
}

/* Formats with the same choices share a line. */
static void add_formats(lb_ctx *cx, const char *head, lb_array **w,
                        const sample_format_list *f, bool turned,
                        lb_precision precision, text *t)
{
    char *choice = calloc((size_t)f->n, LINE);
    if (!choice) abort();
    for (int i = 0; i < f->n; i++)
        if (w[i]) add_choices(cx, w[i], turned, precision, choice + i * LINE);
    for (int i = 0; i < f->n; i++) {
        const char *mine = choice + i * LINE;
        if (!*mine) continue;
        char line[2 * LINE];
        size_t at = (size_t)snprintf(line, sizeof line, "%s", head);
        bool decoded = false; /* is named */
        for (int k = i; k < f->n; k++) {
            if (strcmp(choice + k * LINE, mine) != 0) continue;
            const bool coded = f->item[k].fmt->levels;
            if (coded || !decoded)
                at +=
                    (size_t)snprintf(line + at, sizeof line - at, "%s%s",
                                     k > i ? " | " : "", name_of(&f->item[k]));
            decoded = decoded || !coded;
            if (k > i) choice[k * LINE] = 0;
        }
        snprintf(line + at, sizeof line - at, " ->%s", mine);
        append(t, line);
    }
    free(choice);
}

/* Whether the table has that format, or the class of those that are decoded. */
static bool is_known(const text *t, const sample_format *f)
{
    const char *name = name_of(f);
    const size_t n = strlen(name);
    for (int i = 0; i < t->n; i++)
        for (const char *at = t->line[i]; (at = strstr(at, name)); at += n)
            if (at[-1] == ' ' &&
                (!strncmp(at + n, " | ", 3) || !strncmp(at + n, " -> ", 4)))
                return true;
    fprintf(stderr, "%s: not in the table yet, see --update\n", name);
    return false;
}

/* known: NULL, or the formats to look at. */
static void every_choice(lb_ctx *cx, const text *known, text *t)
{
    static const char *const names[] = {"highest", "fast", "fastest"};
    sample_format_list f = sample_formats_of(cx);
    lb_array **w = calloc((size_t)f.n + 1, sizeof(lb_array *));
    float *data = malloc((size_t)SIZE * SIZE * sizeof *data);
    if (!w || !data) abort();
    const sample_operand o = {LB_F32, LB_SHAPE(SIZE, SIZE), VALUES_SMOOTH, 0, 0,
                              false};
    sample_fill(&o, 1, (int64_t)SIZE * SIZE, data);
    for (int i = 0; i < f.n; i++) {
        f.item[i].every = 0;
        if (!f.item[i].fmt || !sample_takes(&f.item[i], &o) ||
            (known && !is_known(known, &f.item[i])))
            continue;
        w[i] = f.item[i].make(cx, &f.item[i], LB_F32, o.shape, data);
        CHECK(w[i] != NULL);
    }
    for (int c = 0; c < N_CPUS; c++) {
        if (!lb_level_available(cpus[c].cpu.level)) continue;
        cx->cpu = cpus[c].cpu;
        for (int i = 0; i < 6; i++) {
            char head[128];
            snprintf(head, sizeof head, "%s, x @ W%s, %s: ", cpus[c].name,
                     i % 2 ? "^T" : "", names[i / 2]);
            add_formats(cx, head, w, &f, i % 2,
                        (lb_precision)(LB_PRECISION_HIGHEST + i / 2), t);
        }
    }
    free(data);
    free(w);
    sample_formats_free(&f);
}

/* ---- the table as it was ------------------------------------------------ */

static text read_lines(void)
{
    text t = {.n = 0};
    FILE *f = fopen(path, "rb");
    static char line[2 * LINE];
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        append(&t, line);
    }
    if (f) fclose(f);
    return t;
}

static bool has_line(const text *t, const char *line)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->line[i], line) == 0) return true;
    return false;
}

/* Whether a line is about a CPU that was looked at. */
static bool is_here(const char *line)
{
    for (int c = 0; c < N_CPUS; c++)
        if (lb_level_available(cpus[c].cpu.level) &&
            strncmp(line, cpus[c].name, strlen(cpus[c].name)) == 0 &&
            line[strlen(cpus[c].name)] == ',')
            return true;
    return false;
}

static void compare(const text *from, const text *in, const char *sign)
{
    for (int i = 0; i < from->n; i++)
        if (is_here(from->line[i]) && check_fails(has_line(in, from->line[i])))
            fprintf(stderr, "%s%s\n", sign, from->line[i]);
}

static void update(const text *now, const text *was)
{
    FILE *f = fopen(path, "wb");
    if (check_fails(f != NULL)) return;
    for (int i = 0; i < now->n; i++)
        fprintf(f, "%s\n", now->line[i]);
    for (int i = 0; i < was->n; i++)
        if (!is_here(was->line[i])) fprintf(f, "%s\n", was->line[i]);
    CHECK(fclose(f) == 0);
}

int main(int argc, char **argv)
{
    text now = {.n = 0}, was = read_lines();
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    CHECK(cx != NULL);
    const bool updates = argc > 1 && strcmp(argv[1], "--update") == 0;
    if (cx) every_choice(cx, updates ? NULL : &was, &now);
    lb_close(cx);
    if (updates) {
        update(&now, &was);
    } else {
        CHECK(was.n > 0);
        compare(&was, &now, "-");
        compare(&now, &was, "+");
    }
    text_free(&now);
    text_free(&was);
    return check_report("selection");
}
