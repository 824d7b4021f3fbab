/* test_explain.c - the tier and kernel of every primitive and format, compared
 * with a table that is reviewed when it changes: golden/explain.txt. Formats
 * with the same tier as the one before are omitted there.
 *
 * The level is ref and there is one thread, so the table is the same on every
 * machine. `test_explain --update` rewrites it. test_selection.c has the
 * products of other levels.
 */
#include "laws.h"

static const char path[] = "tests/golden/explain.txt";

typedef struct text {
    char *s;
    size_t n, room;
} text;

static void append(text *t, const char *line)
{
    const size_t n = strlen(line);
    if (t->n + n + 2 > t->room) {
        t->room = 2 * t->room + n + 4096;
        t->s = realloc(t->s, t->room);
        if (!t->s) abort();
    }
    memcpy(t->s + t->n, line, n);
    memcpy(t->s + t->n + n, "\n", 2);
    t->n += n + 1;
}

/* ---- the table as it is ------------------------------------------------- */

/* The line of a call with operands in these formats, in `place`; checked
 * against what the call then does. */
static lb_text explained(lb_ctx *cx, const sample *s, const sample_format *f,
                         const sample_view *v)
{
    lb_array *in[SAMPLE_MAX_IN];
    lb_text t = {""};
    lb_enter(cx);
    bool ok = law_operands(cx, s, in);
    for (int i = 0; i < s->n_in && ok; i++) {
        if (!sample_takes(f, &s->in[i])) continue;
        lb_array *a = v->make(cx, f, &s->in[i], (uint64_t)i);
        if (a && law_suits(s, i, a)) in[i] = a; /* else the sample's operand */
    }
    /* The first call may enlarge the context's list of arrays. */
    if (ok) lb_explain(cx, s->prim, in, s->n_in, &s->params);
    const size_t before = lb_bytes_in_use(cx);
    const char *line =
        ok ? lb_explain(cx, s->prim, in, s->n_in, &s->params) : NULL;
    law_check(line && *line, s, "explain", f->name, lb_error(cx));
    if (line) {
        const bool plain = v == sample_views;
        snprintf(t.s, sizeof t.s, "%s%s%s", plain ? "" : v->name,
                 plain ? "" : ": ", line);
        /* The line agrees with the call: a move creates no new elements. */
        CHECK_EQ_I(lb_bytes_in_use(cx), before);
        lb_array *out = lb_bind(cx, lb_find_primitive(cx, s->prim), s->n_in, in,
                                &s->params);
        law_check(out != NULL, s, "explain", "and then refused", lb_error(cx));
        char dtype[300];
        if (out) {
            snprintf(dtype, sizeof dtype, "-> %s%s:", lb_dtype_name(out->dtype),
                     LB_SHOW(&out->shape));
            law_check(strstr(line, dtype) != NULL, s, "explain", dtype, line);
        }
    }
    lb_clear(cx);
    lb_leave(cx);
    return t;
}

static void explain(lb_ctx *cx, const sample *s, const sample_format *f,
                    const sample_view *v, text *to)
{
    append(to, explained(cx, s, f, v).s);
}

/* Whether two lines agree except for the name of the format. */
static bool same_way(const char *x, const char *x_name, const char *y,
                     const char *y_name)
{
    while (*x && *y) {
        const size_t m = strlen(x_name), n = strlen(y_name);
        if (strncmp(x, x_name, m) == 0 && strncmp(y, y_name, n) == 0) {
            x += m;
            y += n;
        } else if (*x++ != *y++)
            return false;
    }
    return *x == *y;
}

/* Formats with the same lines as the one before are omitted; the first is a
 * toy. */
static void explain_formats(lb_ctx *cx, const sample *s, text *to)
{
    const char *name = sample_toys->name;
    lb_text way = explained(cx, s, sample_toys, sample_views);
    append(to, way.s);
    sample_format_list list = sample_formats_of(cx);
    for (int i = 0; i < list.n; i++) {
        const sample_format *f = &list.item[i];
        if (!f->fmt || f->variant || f->every) continue;
        const lb_text own = explained(cx, s, f, sample_views);
        if (same_way(way.s, name, own.s, f->name)) continue;
        append(to, own.s);
        way = own;
        name = f->name;
    }
    sample_formats_free(&list);
}

/* The first sample with axes, if there is one. */
static const sample *typical(const sample_list *list)
{
    for (int i = 0; i < list->n; i++)
        if (list->item[i].n_in && list->item[i].in[0].shape.rank > 1 &&
            lb_shape_size(&list->item[i].in[0].shape) > 0)
            return &list->item[i];
    return &list->item[list->n - 1];
}

static void every_primitive(lb_ctx *cx, text *to)
{
    const lb_prim *p;
    for (int k = 0; (p = lb_primitive_at(cx, k)); k++) {
        sample_list small = samples_of(p->name, SAMPLES_SMALL);
        sample_list large = samples_of(p->name, SAMPLES_LARGE);
        if (check_fails(small.n && large.n))
            fprintf(stderr, "%s has no samples\n", p->name);
        else {
            const sample *s = typical(&small);
            explain(cx, s, &sample_dense, &sample_views[0], to);
            if (s->n_in) {
                explain(cx, s, &sample_dense, &sample_views[1], to);
                explain_formats(cx, s, to);
            }
            explain(cx, &large.item[0], &sample_dense, &sample_views[0], to);
        }
        samples_free(&small);
        samples_free(&large);
    }
}

/* ---- the table as it was ------------------------------------------------ */

static char *read_file(const char *name)
{
    FILE *f = fopen(name, "rb");
    if (!f) return NULL;
    enum { MOST = 1 << 20 };
    char *s = malloc(MOST + 1);
    if (!s) abort();
    s[fread(s, 1, MOST, f)] = 0;
    fclose(f);
    return s;
}

static int line_length(const char *s)
{
    return (int)strcspn(s, "\n");
}

static const char *next_line(const char *s)
{
    s += line_length(s);
    return *s ? s + 1 : s;
}

static bool has_line(const char *s, const char *line, int n)
{
    for (; *s; s = next_line(s))
        if (line_length(s) == n && memcmp(s, line, (size_t)n) == 0) return true;
    return false;
}

/* Lines that only one of the two has. */
static void missing(const char *from, const char *in, const char *sign)
{
    for (; *from; from = next_line(from)) {
        const int n = line_length(from);
        if (check_fails(has_line(in, from, n)))
            fprintf(stderr, "%s%.*s\n", sign, n, from);
    }
}

int main(int argc, char **argv)
{
    const bool update = argc > 1 && strcmp(argv[1], "--update") == 0;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1, .isa = "ref"});
    CHECK(cx != NULL);
    if (!cx) return check_report("explain");
    text now = {0};
    every_primitive(cx, &now);
    lb_close(cx);
    if (update) {
        FILE *f = fopen(path, "wb");
        CHECK(f && fwrite(now.s, 1, now.n, f) == now.n && fclose(f) == 0);
    }
    char *was = read_file(path);
    if (check_fails(was != NULL))
        fprintf(stderr, "cannot read %s: run from the root, or use --update\n",
                path);
    if (was) {
        missing(was, now.s, "- ");
        missing(now.s, was, "+ ");
        CHECK(strcmp(was, now.s) == 0);
    }
    free(was);
    free(now.s);
    return check_report("explain");
}
