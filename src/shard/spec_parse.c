/* spec_parse.c - parses a spec and checks it against a grid and a shape.
 *
 *     spec   ->  NULL | None | name | list | P list
 *     list   ->  ( entry, ... ) | [ entry, ... ]
 *     entry  ->  None | name | list of names, major to minor
 *
 * Strict: what JAX rejects is an error. With a report it is parsed as eformer
 * does: what does not fit becomes None and is reported; a mesh axis that is
 * still used twice after that is an error, as in eformer.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shard/mesh.h"

typedef struct {
    lb_ctx *cx;
    const lb_grid *grid;
    const lb_shape *shape;
    const int64_t *grain; /* NULL: 1 along each axis */
    const char *text, *at;
    lb_spec_report *report; /* NULL: strict */
    lb_spec *spec;
} spec_parser;

/* One entry as parsed. */
typedef struct {
    int n;
    int axis[LB_MAX_MESH_AXES];
    char unknown[LB_AXIS_NAME]; /* the first name that is not a mesh axis */
    int names;                  /* including unknown ones */
} spec_entry;

static bool fail(const spec_parser *p, lb_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool fail(const spec_parser *p, lb_status status, const char *fmt, ...)
{
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return lb_fail(p->cx, status, "spec %.120s %s", p->text, why);
}

/* Relaxed parsing: an entry becomes None, and is reported. */
static void drop(const spec_parser *p, int k, spec_entry *e, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));
static void drop(const spec_parser *p, int k, spec_entry *e, const char *fmt,
                 ...)
{
    lb_spec_report *r = p->report;
    if (e) *e = (spec_entry){0};
    if (r->n < LB_MAX_CHANGES) {
        lb_spec_change *c = &r->change[r->n];
        va_list ap;
        c->entry = k;
        va_start(ap, fmt);
        vsnprintf(c->why, sizeof c->why, fmt, ap);
        va_end(ap);
    }
    r->n++;
}

/* ---- tokens -------------------------------------------------------------- */

static char next(spec_parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
    return *p->at;
}

static bool garbled(const spec_parser *p)
{
    if (!*p->at)
        return fail(p, LB_E_ARG,
                    "is incomplete; expected P(tp, None) or P((dp, tp), None)");
    return fail(p, LB_E_ARG,
                "is invalid from \"%.20s\" on; expected "
                "P(tp, None) or P((dp, tp), None)",
                p->at);
}

static bool read_name(spec_parser *p, char *name)
{
    size_t n = 0;
    const char quote = next(p) == '"' || *p->at == '\'' ? *p->at++ : 0;
    for (; isalnum((unsigned char)*p->at) || *p->at == '_'; p->at++) {
        if (n + 1 == LB_AXIS_NAME) return garbled(p);
        name[n++] = *p->at;
    }
    name[n] = 0;
    if (!n || (quote && *p->at != quote)) return garbled(p);
    if (quote) p->at++;
    return quote || strcmp(name, "None") != 0 || (name[0] = 0, true);
}

static bool add_name(const spec_parser *p, const char *name, spec_entry *e)
{
    e->names++;
    for (int k = 0; k < p->grid->n; k++) {
        if (strcmp(p->grid->axis[k].name, name) != 0) continue;
        if (e->n == LB_MAX_MESH_AXES)
            return fail(p, LB_E_AXIS, "repeats an axis in one entry");
        e->axis[e->n++] = k;
        return true;
    }
    if (!e->unknown[0]) memcpy(e->unknown, name, LB_AXIS_NAME);
    return true;
}

static bool read_entry(spec_parser *p, spec_entry *e)
{
    char name[LB_AXIS_NAME] = "";
    *e = (spec_entry){0};
    const char open = next(p), close = open == '(' ? ')' : ']';
    if (open != '(' && open != '[')
        return read_name(p, name) && (!name[0] || add_name(p, name, e));
    p->at++;
    while (next(p) != close) {
        if (!read_name(p, name)) return false;
        if (!name[0]) return fail(p, LB_E_ARG, "has None among names");
        if (!add_name(p, name, e)) return false;
        if (next(p) == ',')
            p->at++;
        else if (*p->at != close)
            return garbled(p);
    }
    p->at++;
    return true;
}

/* ---- rules --------------------------------------------------------------- */

static int64_t product(const lb_grid *grid, const spec_entry *e)
{
    int64_t n = 1;
    for (int i = 0; i < e->n; i++)
        n *= grid->axis[e->axis[i]].size;
    return n;
}

static bool check_entry(const spec_parser *p, int k, spec_entry *e)
{
    const int rank = p->shape->rank;
    if (k >= rank) {
        if (p->report) { /* whatever it contains */
            drop(p, k, e, "entry %d is past the array's %d axes", k, rank);
            return true;
        }
        return fail(p, LB_E_SHAPE, "has an entry %d, but %s has %d axes", k,
                    LB_SHOW(p->shape), rank);
    }
    if (e->unknown[0]) {
        char mesh[128];
        const spec_entry was = *e;
        drop(p, k, e, "the mesh %.80s has no axis %s",
             lb_grid_text(p->grid, mesh, sizeof mesh), was.unknown);
        return true;
    }
    const int64_t n = product(p->grid, e), size = p->shape->dim[k];
    const int64_t grain = p->grain && p->report && n > 1 ? p->grain[k] : 1;
    if (size % n == 0 && size / n % grain == 0) return true;
    if (size % n == 0) {
        drop(p, k, e,
             "pieces of %lld of axis %d are not a multiple of its blocks of "
             "%lld",
             (long long)(size / n), k, (long long)grain);
        return true;
    }
    if (!p->report)
        return fail(p, LB_E_SHAPE,
                    "splits axis %d of %s into %lld pieces, but %lld is not "
                    "a multiple of %lld",
                    k, LB_SHOW(p->shape), (long long)n, (long long)size,
                    (long long)n);
    drop(p, k, e, "the size of axis %d, %lld, is not a multiple of %lld", k,
         (long long)size, (long long)n);
    return true;
}

/* A mesh axis may cut only one axis of the array, once. */
static bool check_once(const spec_parser *p, const spec_entry *all, int n)
{
    unsigned used = 0;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < all[k].n; i++) {
            const int axis = all[k].axis[i];
            if (used >> axis & 1)
                return fail(p, LB_E_AXIS, "uses mesh axis %s twice",
                            p->grid->axis[axis].name);
            used |= 1u << axis;
        }
    return true;
}

static bool check_names(const spec_parser *p, const spec_entry *e, int n)
{
    char mesh[128];
    for (int k = 0; k < n; k++)
        if (e[k].unknown[0])
            return fail(p, LB_E_AXIS, "names %s, which the mesh %s lacks",
                        e[k].unknown, lb_grid_text(p->grid, mesh, sizeof mesh));
    return true;
}

/* JAX first checks names, then duplicates, then the shape. eformer drops
 * entries of a bare spec that do not fit, and checks the rest. */
static bool settle(const spec_parser *p, spec_entry *e, int n)
{
    const int rank = p->shape->rank;
    const bool strict = !p->report || p->report->strict_names;
    if (strict && (!check_names(p, e, n) || !check_once(p, e, n))) return false;
    for (int k = 0; k < n; k++)
        if (!check_entry(p, k, &e[k])) return false;
    if (!check_once(p, e, n)) return false;
    *p->spec = (lb_spec){.n = n < rank ? n : rank};
    for (int k = 0; k < p->spec->n; k++) {
        p->spec->entry[k].n = e[k].n;
        memcpy(p->spec->entry[k].axis, e[k].axis, sizeof e[k].axis);
    }
    return true;
}

static bool read_list(spec_parser *p, spec_entry *e, int room, int *n)
{
    const char close = *p->at++ == '(' ? ')' : ']';
    for (*n = 0; next(p) != close; ++*n) {
        if (*n == room)
            return fail(p, LB_E_SHAPE, "has more than %d entries", room);
        if (!read_entry(p, &e[*n])) return false;
        if (next(p) == ',')
            p->at++;
        else if (*p->at != close)
            return garbled(p);
    }
    p->at++;
    return true;
}

bool lb_spec_parse(lb_ctx *cx, const lb_grid *grid, lb_shape shape,
                   const char *text, lb_spec_report *report, lb_spec *spec)
{
    return lb_spec_parse_grain(cx, grid, shape, NULL, text, report, spec);
}

bool lb_spec_parse_grain(lb_ctx *cx, const lb_grid *grid, lb_shape shape,
                         const int64_t *grain, const char *text,
                         lb_spec_report *report, lb_spec *spec)
{
    enum { ROOM = 2 * LB_MAX_RANK };
    spec_entry e[ROOM];
    int n = 1;
    if (report) report->n = 0;
    *spec = (lb_spec){0};
    if (!grid)
        return lb_fail(cx, LB_E_NULL, "spec %.120s: there is no mesh",
                       text ? text : "None");
    if (!text) return true;
    spec_parser p = {cx, grid, &shape, grain, text, text, report, spec};
    const bool named = next(&p) == 'P' && p.at[1] == '(';
    if (named) p.at++;
    const bool list = *p.at == '(' || *p.at == '[';
    if (!(list ? read_list(&p, e, ROOM, &n) : read_entry(&p, &e[0])))
        return false;
    if (next(&p)) return garbled(&p);
    if (!list && !e[0].names) n = 0;
    return settle(&p, e, n);
}
