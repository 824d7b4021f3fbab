/* explain.c - a program as text, as JSON, or as a drawing for Graphviz.
 *
 * A step reads and writes the bytes of its operands and results: stored bytes
 * of packed arguments, dense bytes of intermediates, none for views (transpose,
 * broadcast). Kernels are those of the last run.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "program/program.h"

/* A growing text. */
typedef struct text {
    lb_ctx *cx;
    char *s;
    size_t n, room, got;
    bool failed;
} text;

static bool reserve(text *t, size_t more)
{
    size_t got;
    if (t->n + more < t->room) return true;
    const size_t room = 2 * (t->n + more) + 1024;
    char *s = lb_heap_alloc(t->cx->heap, room, &got);
    if (!s) {
        t->failed = true;
        return lb_fail(t->cx, LB_E_NOMEM, "out of memory (explaining)");
    }
    if (t->s) {
        memcpy(s, t->s, t->n + 1);
        lb_heap_free(t->cx->heap, t->s, t->got);
    }
    t->s = s;
    t->room = room;
    t->got = got;
    return true;
}

static void put(text *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void put(text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    if (!t->failed && n >= 0 && reserve(t, (size_t)n + 1)) {
        vsnprintf(t->s + t->n, (size_t)n + 1, fmt, again);
        t->n += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

/* "a0" for an argument, "c3" for a constant, otherwise "v12". */
static void put_name(text *t, const prog_value *v)
{
    if (v->arg >= 0)
        put(t, "a%d", v->arg);
    else
        put(t, "%c%d", v->constant ? 'c' : 'v', v->id);
}

static const char *format_of(const lb_program *p, const prog_value *v)
{
    if (v->arg >= 0) return p->key[v->arg].fmt->name;
    return v->constant ? lb_format_of(v->constant) : "";
}

/* "f32(2,3)", preceded by the format if it is packed. */
static void put_type(text *t, const lb_program *p, const prog_value *v)
{
    const char *format = format_of(p, v);
    const bool packed = v->arg >= 0 ? p->key[v->arg].packed
                                    : v->constant && !v->constant->store->data;
    if (packed) put(t, "%s ", format);
    put(t, "%s%s", lb_dtype_name(v->dtype), LB_SHOW(&v->shape));
}

/* ---- figures ------------------------------------------------------------- */

typedef struct figures {
    int64_t read, written, operations;
} figures;

static int64_t bytes_of(const lb_program *p, const prog_value *v)
{
    if (v->arg >= 0) return p->key[v->arg].bytes;
    return lb_shape_size(&v->shape) * (int64_t)lb_dtype_size(v->dtype);
}

static int64_t operations_of(const prog_node *node)
{
    switch (node->fusion.kind) {
    case LB_FUSE_LANES:
        return lb_shape_size(&node->out->shape);
    case LB_FUSE_ROWS:
        return lb_shape_size(&node->in[0]->shape);
    default:
        return node->operations;
    }
}

static bool is_inside(const prog_step *s, const prog_value *v)
{
    return s->fused && v->by && v->by->group == s->node->group;
}

/* Whether an operand of a step has been counted already. */
static bool is_repeated(const prog_step *s, const prog_node *at, int k)
{
    const prog_node *node = s->node;
    for (; node; node = s->fused ? node->next : NULL)
        for (int j = 0; j < node->n_in; j++) {
            if (node == at && j == k) return false;
            if (node->in[j] == at->in[k]) return true;
        }
    return false;
}

static figures figures_of(const lb_program *p, const prog_step *s)
{
    figures f = {0, 0, 0};
    const prog_node *node = s->node;
    if (!s->fused && !node->prim->eval) return f; /* a view */
    for (; node; node = s->fused ? node->next : NULL) {
        for (int k = 0; k < node->n_in; k++)
            if (!is_inside(s, node->in[k]) && !is_repeated(s, node, k))
                f.read += bytes_of(p, node->in[k]);
        if (!s->fused || node->out->leaves) f.written += bytes_of(p, node->out);
        f.operations += operations_of(node);
    }
    return f;
}

static figures total_of(const lb_program *p)
{
    figures all = {0, 0, 0};
    for (int i = 0; i < p->n_steps; i++) {
        const figures f = figures_of(p, &p->step[i]);
        all.read += f.read;
        all.written += f.written;
        all.operations += f.operations;
    }
    return all;
}

static const char *kernel_of(const prog_step *s)
{
    return s->kernel && *s->kernel ? s->kernel : s->fused ? "fused" : "-";
}

/* ---- text ---------------------------------------------------------------- */

static void put_operands(text *t, const prog_step *s)
{
    bool first = true;
    const prog_node *node = s->node;
    for (; node; node = s->fused ? node->next : NULL)
        for (int k = 0; k < node->n_in; k++) {
            if (is_inside(s, node->in[k]) || is_repeated(s, node, k)) continue;
            put(t, "%s", first ? "" : ", ");
            put_name(t, node->in[k]);
            first = false;
        }
}

static void put_results(text *t, const lb_program *p, const prog_step *s)
{
    bool first = true;
    const prog_node *node = s->node;
    for (; node; node = s->fused ? node->next : NULL) {
        if (s->fused && !node->out->leaves) continue;
        put(t, "%s", first ? "" : ", ");
        put_name(t, node->out);
        put(t, ": ");
        put_type(t, p, node->out);
        first = false;
    }
}

static void put_what(text *t, const prog_step *s)
{
    const prog_node *node = s->node;
    for (; node; node = s->fused ? node->next : NULL)
        put(t, "%s%s", node == s->node ? "" : " ", node->prim->name);
}

static void as_text(text *t, const lb_program *p)
{
    const figures all = total_of(p);
    put(t, "%d arguments, %d results, %d steps for %lld calls (%d removed)\n",
        p->n_args, p->n_results, p->n_steps, (long long)p->nodes.n, p->removed);
    for (int i = 0; i < p->n_args; i++) {
        put(t, "%s", i ? ", " : "arguments: ");
        put_name(t, p->arg[i]);
        put(t, ": ");
        put_type(t, p, p->arg[i]);
    }
    put(t, "%s", p->n_args ? "\n" : "");
    for (int i = 0; i < p->n_steps; i++) {
        const prog_step *s = &p->step[i];
        const figures f = figures_of(p, s);
        put(t, "%3d  ", i);
        put_results(t, p, s);
        put(t, " = %s", s->fused ? "fused[" : "");
        put_what(t, s);
        put(t, "%s(", s->fused ? "]" : "");
        put_operands(t, s);
        put(t, ")  kernel %s, reads %lld, writes %lld, %lld operations\n",
            kernel_of(s), (long long)f.read, (long long)f.written,
            (long long)f.operations);
    }
    put(t, "results: ");
    for (int i = 0; i < p->n_results; i++) {
        put(t, "%s", i ? ", " : "");
        put_name(t, p->result[i]);
    }
    put(t,
        "\ntotal: reads %lld bytes, writes %lld, %lld operations; peak of "
        "intermediates and results %zu bytes\n",
        (long long)all.read, (long long)all.written, (long long)all.operations,
        p->peak);
}

/* ---- JSON ---------------------------------------------------------------- */

static void put_value(text *t, const lb_program *p, const prog_value *v)
{
    put(t, "{\"name\": \"");
    put_name(t, v);
    put(t, "\", \"format\": \"%s\", \"dtype\": \"%s\", \"shape\": [",
        *format_of(p, v) ? format_of(p, v) : "dense", lb_dtype_name(v->dtype));
    for (int k = 0; k < v->shape.rank; k++)
        put(t, "%s%lld", k ? ", " : "", (long long)v->shape.dim[k]);
    put(t, "]}");
}

static void put_names(text *t, const prog_step *s)
{
    bool first = true;
    const prog_node *node = s->node;
    for (; node; node = s->fused ? node->next : NULL)
        for (int k = 0; k < node->n_in; k++) {
            if (is_inside(s, node->in[k]) || is_repeated(s, node, k)) continue;
            put(t, "%s\"", first ? "" : ", ");
            put_name(t, node->in[k]);
            put(t, "\"");
            first = false;
        }
}

static void put_step(text *t, const lb_program *p, const prog_step *s)
{
    const figures f = figures_of(p, s);
    const prog_node *node = s->node;
    put(t, "{\"primitives\": [");
    for (; node; node = s->fused ? node->next : NULL)
        put(t, "%s\"%s\"", node == s->node ? "" : ", ", node->prim->name);
    put(t, "], \"fused\": %s, \"operands\": [", s->fused ? "true" : "false");
    put_names(t, s);
    put(t, "], \"results\": [");
    bool first = true;
    for (node = s->node; node; node = s->fused ? node->next : NULL) {
        if (s->fused && !node->out->leaves) continue;
        put(t, "%s", first ? "" : ", ");
        put_value(t, p, node->out);
        first = false;
    }
    put(t,
        "], \"kernel\": \"%s\", \"bytes_read\": %lld, \"bytes_written\": %lld, "
        "\"operations\": %lld}",
        kernel_of(s), (long long)f.read, (long long)f.written,
        (long long)f.operations);
}

static void as_json(text *t, const lb_program *p)
{
    const figures all = total_of(p);
    put(t, "{\"arguments\": [");
    for (int i = 0; i < p->n_args; i++) {
        put(t, "%s", i ? ", " : "");
        put_value(t, p, p->arg[i]);
    }
    put(t, "], \"steps\": [");
    for (int i = 0; i < p->n_steps; i++) {
        put(t, "%s\n  ", i ? "," : "");
        put_step(t, p, &p->step[i]);
    }
    put(t, "], \"results\": [");
    for (int i = 0; i < p->n_results; i++) {
        put(t, "%s\"", i ? ", " : "");
        put_name(t, p->result[i]);
        put(t, "\"");
    }
    put(t,
        "], \"calls\": %lld, \"removed\": %d, \"bytes_read\": %lld, "
        "\"bytes_written\": %lld, \"operations\": %lld, \"peak_bytes\": %zu}\n",
        (long long)p->nodes.n, p->removed, (long long)all.read,
        (long long)all.written, (long long)all.operations, p->peak);
}

/* ---- Graphviz ------------------------------------------------------------ */

static void draw_value(text *t, const lb_program *p, const prog_value *v)
{
    put(t, "  \"");
    put_name(t, v);
    put(t, "\" [shape=%s, label=\"", v->constant ? "plain" : "ellipse");
    put_name(t, v);
    put(t, "\\n");
    put_type(t, p, v);
    put(t, "\"];\n");
}

/* The id of a step is that of its first node: values point to their step. */
static int step_of(const lb_program *p, const prog_value *v)
{
    for (int i = 0; i < p->n_steps; i++) {
        const prog_node *node = p->step[i].node;
        for (; node; node = p->step[i].fused ? node->next : NULL)
            if (node->out == v) return i;
    }
    return -1;
}

static void draw_edges(text *t, const lb_program *p, int i)
{
    const prog_step *s = &p->step[i];
    const prog_node *node = s->node;
    for (; node; node = s->fused ? node->next : NULL)
        for (int k = 0; k < node->n_in; k++) {
            const prog_value *v = node->in[k];
            if (is_inside(s, v) || is_repeated(s, node, k)) continue;
            if (v->by) {
                put(t, "  s%d -> s%d [label=\"%s%s\"];\n", step_of(p, v), i,
                    lb_dtype_name(v->dtype), LB_SHOW(&v->shape));
                continue;
            }
            put(t, "  \"");
            put_name(t, v);
            put(t, "\" -> s%d;\n", i);
        }
}

static void as_dot(text *t, const lb_program *p)
{
    put(t, "digraph program {\n"
           "  node [shape=box, style=filled, fillcolor=white, "
           "fontname=\"sans-serif\", fontsize=11];\n"
           "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (int64_t i = 0; i < p->values.n; i++) {
        const prog_value *v = p->values.item[i];
        if (!v->by && (v->uses || v->arg >= 0)) draw_value(t, p, v);
    }
    for (int i = 0; i < p->n_steps; i++) {
        const prog_step *s = &p->step[i];
        put(t, "  s%d [%slabel=\"", i,
            s->fused ? "fillcolor=\"#dbe9f6\", " : "");
        const prog_node *node = s->node;
        int in_line = 0;
        for (; node; node = s->fused ? node->next : NULL, in_line++)
            put(t, "%s%s",
                !in_line      ? ""
                : in_line % 4 ? " "
                              : "\\n",
                node->prim->name);
        put(t, "\"];\n");
        draw_edges(t, p, i);
    }
    for (int i = 0; i < p->n_results; i++) {
        const prog_value *v = p->result[i];
        put(t, "  r%d [shape=ellipse, label=\"result %d\\n%s%s\"];\n", i, i,
            lb_dtype_name(v->dtype), LB_SHOW(&v->shape));
        if (v->by) put(t, "  s%d -> r%d;\n", step_of(p, v), i);
    }
    put(t, "}\n");
}

char *lb_program_text(const lb_program *p, lb_explain_form form, size_t *got)
{
    text t = {.cx = p->cx};
    switch (form) {
    case LB_EXPLAIN_TEXT:
        as_text(&t, p);
        break;
    case LB_EXPLAIN_JSON:
        as_json(&t, p);
        break;
    case LB_EXPLAIN_DOT:
        as_dot(&t, p);
        break;
    default:
        lb_fail(p->cx, LB_E_ARG, "explain: %d is not an lb_explain_form",
                (int)form);
        return NULL;
    }
    *got = t.got;
    if (!t.failed) return t.s;
    if (t.s) lb_heap_free(p->cx->heap, t.s, t.got);
    return NULL;
}
