/* verb_shard.c - `lowbit shard`: splits a checkpoint into a file for each rank.
 */
#include <string.h>

#include "interrupt.h"
#include "places.h"

typedef struct talk {
    const arguments *a;
    lb_grid grid;
    json *j;  /* NULL: lines */
    FILE *to; /* lines; NULL: none */
    bool all; /* arrays; otherwise only those with a dropped entry */
    int64_t n, cut;
} talk;

static void put_dropped(const talk *t, const lb_placement *p)
{
    const int n = p->dropped.n < LB_MAX_CHANGES ? p->dropped.n : LB_MAX_CHANGES;
    for (int i = 0; i < n; i++)
        fprintf(t->to, "; entry %d ignored: %s", p->dropped.change[i].entry,
                p->dropped.change[i].why);
}

static void put_json(talk *t, const lb_placement *p, const char *spec)
{
    json *j = t->j;
    json_next(j);
    json_open(j, '{');
    json_array_head(j, p->entry);
    json_string(json_key(j, "spec"), spec);
    json_string(json_key(j, "rule"), p->pattern);
    json_string(json_key(j, "replicated"), p->whole);
    json_key(j, "ignored");
    json_open(j, '[');
    for (int i = 0; i < p->dropped.n && i < LB_MAX_CHANGES; i++)
        json_string(j, p->dropped.change[i].why);
    json_close(j, ']');
    json_close(j, '}');
}

/* Prints the spec of an array and the rule it comes from. */
static void placed(void *user, const lb_placement *p, int64_t i, int64_t n)
{
    talk *t = user;
    char spec[256];
    (void)i;
    lb_spec_text(&t->grid, &p->spec, spec, sizeof spec);
    t->n = n;
    t->cut += !p->whole;
    if (t->j) put_json(t, p, spec);
    if (!t->to || (!t->all && !p->dropped.n)) return;
    put_text(t->to, p->entry->name, strlen(p->entry->name));
    fputc(' ', t->to);
    put_shape(t->to, p->entry->dim, p->entry->rank);
    if (p->whole)
        fprintf(t->to, " replicated: %s", p->whole);
    else
        fprintf(t->to, " split %s", spec);
    if (p->pattern) {
        fputs(" (rule ", t->to);
        put_text(t->to, p->pattern, strlen(p->pattern));
        fputc(')', t->to);
    }
    put_dropped(t, p);
    fputc('\n', t->to);
}

static bool read_rules(const arguments *a, lb_ctx *cx, lb_rules *r)
{
    bool ok = r != NULL;
    for (int i = 0; ok && i < a->n_given; i++) {
        if (a->given[i].id == OPTION_SPEC)
            ok = lb_rules_add(cx, r, a->given[i].value);
        else if (a->given[i].id == OPTION_RULES)
            ok = lb_rules_read(cx, r, a->given[i].value);
    }
    return ok;
}

static bool check_options(const arguments *a)
{
    if (!place_is_free(a, "shard")) return false;
    if (a->value[OPTION_MESH] && a->count[OPTION_SPEC] + a->count[OPTION_RULES])
        return true;
    complain(USAGE, "shard needs --mesh, and --spec or --rules; see lowbit "
                    "shard --help");
    return false;
}

static void sum_up(const talk *t, bool dry)
{
    const char *to = t->a->value[OPTION_OUTPUT];
    fputs(!dry ? "wrote " : to ? "dry run: would write " : "dry run", t->to);
    if (to) put_text(t->to, to, strlen(to));
    fprintf(t->to, ": %d ranks, %lld of %lld arrays %ssplit, %lld replicated\n",
            lb_grid_size(&t->grid), (long long)t->cut, (long long)t->n,
            to ? "" : "would be ", (long long)(t->n - t->cut));
}

static void begin_json(talk *t, bool dry)
{
    json *j = t->j = json_begin("shard");
    json_string(json_key(j, "source"), t->a->operand[0]);
    json_string(json_key(j, "output"), dry ? NULL : t->a->value[OPTION_OUTPUT]);
    json_bool(json_key(j, "dry_run"), dry);
    json_string(json_key(j, "mesh"), t->a->value[OPTION_MESH]);
    json_int(json_key(j, "ranks"), lb_grid_size(&t->grid));
    json_open(json_key(j, "arrays"), '[');
}

static void end_json(talk *t)
{
    json_close(t->j, ']');
    json_int(json_key(t->j, "split"), t->cut);
    json_end(t->j);
}

/* A shape that a spec cannot split: the spec is wrong for these arrays. */
static verdict failed(const lb_ctx *cx, const char *to)
{
    const verdict v = interrupt_verdict(cx, to);
    return lb_error_status(cx) == LB_E_SHAPE ? USAGE : v;
}

static verdict run(const arguments *a)
{
    const bool dry = a->count[OPTION_DRY_RUN] != 0;
    const bool quiet = a->count[OPTION_QUIET] != 0;
    const bool as_json = a->count[OPTION_JSON] != 0;
    talk t = {.a = a, .all = dry || a->count[OPTION_VERBOSE]};
    if (!check_options(a)) return USAGE;
    if (!as_json && !quiet) t.to = dry ? stdout : stderr;
    lb_ctx *cx = context_open(1);
    if (!cx) return complaint_verdict();
    lb_rules *rules = lb_rules_open(cx);
    verdict v = DONE;
    if (!lb_grid_parse(cx, a->value[OPTION_MESH], &t.grid) ||
        !read_rules(a, cx, rules)) {
        complain_of(cx);
        v = USAGE;
    }
    const lb_shard_options o = {.struct_size = sizeof o,
                                .mesh = a->value[OPTION_MESH],
                                .rules = rules,
                                .relaxed = a->count[OPTION_RELAXED] != 0,
                                .dry_run = dry,
                                .no_sync = a->count[OPTION_NO_SYNC] != 0,
                                .placed = placed,
                                .user = &t,
                                .cancel = interrupted};
    interrupt_defer(true);
    if (v == DONE && as_json) begin_json(&t, dry);
    if (v == DONE &&
        !lb_shard_file(cx, a->operand[0], a->value[OPTION_OUTPUT], &o))
        v = failed(cx, dry ? NULL : a->value[OPTION_OUTPUT]);
    if (v == DONE && as_json) end_json(&t);
    if (v == DONE && t.to) sum_up(&t, dry);
    lb_rules_close(rules);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {
    OPTION_OUTPUT,  OPTION_MESH,    OPTION_SPEC,    OPTION_RULES,
    OPTION_RELAXED, OPTION_DRY_RUN, OPTION_JSON,    OPTION_FORCE,
    OPTION_NO_SYNC, OPTION_QUIET,   OPTION_VERBOSE, N_OPTIONS};

const verb verb_shard = {
    .name = "shard",
    .operands = "SRC",
    .summary = "Split a checkpoint into a file for each rank of a mesh",
    .help =
        "SRC is a safetensors file, its index or its directory. A rule "
        "assigns a sharding spec to arrays whose name matches a pattern, "
        "as in JAX: P(None, tp) splits columns into as many pieces as the "
        "mesh has along tp. The first matching rule applies; arrays "
        "without one are replicated to every rank. Quantized arrays are "
        "split between blocks, codes and scales together. -v prints the spec "
        "of each array.\n\nThe file of a rank can be loaded by itself, "
        "and lowbit merge restores the checkpoint byte for byte. OUTPUT is "
        "a directory; it is created atomically.",
    .examples = "lowbit shard model/ -o ranks/ --mesh dp=2,tp=4 --spec "
                "'up=P(tp, None)'\n"
                "lowbit shard model.safetensors --mesh tp=8 --rules rules.txt "
                "--dry-run",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
};
