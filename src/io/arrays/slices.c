/* slices.c - maps boxes of an array to boxes of its parts. */
#include "io/arrays/slices.h"

#include <string.h>

#include "core/core.h"
#include "io/arrays/saver.h"

lb_cut lb_cut_all(const lb_shape *of)
{
    lb_cut c = {.of = *of};
    memcpy(c.count, of->dim, sizeof c.count);
    return c;
}

bool lb_cut_is_all(const lb_cut *c)
{
    for (int k = 0; k < c->of.rank; k++)
        if (c->count[k] != c->of.dim[k]) return false;
    return true;
}

bool lb_cut_same(const lb_cut *a, const lb_cut *b)
{
    if (!lb_shape_equal(&a->of, &b->of)) return false;
    for (int k = 0; k < a->of.rank; k++)
        if (a->start[k] != b->start[k] || a->count[k] != b->count[k])
            return false;
    return true;
}

lb_shape lb_cut_shape(const lb_cut *c)
{
    return lb_shape_make(c->of.rank, c->count);
}

int64_t lb_cut_size(const lb_cut *c)
{
    const lb_shape s = lb_cut_shape(c);
    return lb_shape_size(&s);
}

bool lb_cut_runs(const lb_cut *c, lb_cut_visit *visit, void *user)
{
    int64_t at[LB_MAX_RANK] = {0}, stride[LB_MAX_RANK], run = 1;
    const int rank = c->of.rank;
    int last = rank; /* the axes from here on form one run */
    if (!lb_cut_size(c)) return true;
    lb_row_major(&c->of, stride);
    while (last > 0 && (last == rank || c->count[last] == c->of.dim[last]))
        run *= c->count[--last];
    for (int64_t done = 0;; done += run) {
        int64_t first = 0;
        for (int k = 0; k < rank; k++)
            first += (c->start[k] + at[k]) * stride[k];
        if (!visit(user, first, done, run)) return false;
        int k = last - 1;
        while (k >= 0 && ++at[k] == c->count[k])
            at[k--] = 0;
        if (k < 0) return true;
    }
}

/* ---- parts --------------------------------------------------------------- */

/* One axis with an entry per g elements; g 0: one entry for all. */
static bool cut_axis(int64_t n, int64_t g, int64_t lo, int64_t count,
                     int64_t *start, int64_t *entries)
{
    const int64_t hi = lo + count;
    *start = 0;
    *entries = 1;
    if (!g) return true;
    *start = lo / g;
    *entries = lb_ceil_div(hi, g) - *start;
    return lo % g == 0 && (hi % g == 0 || hi == n);
}

/* How the box of a stored array is expressed. */
typedef enum form { SAME, FLAT, ROWS, NONE } form;

/* The elements [*lo, *lo + *n) in row-major order, if the box is such a run. */
static bool as_run(const lb_cut *box, int64_t *lo, int64_t *n)
{
    int k = 0;
    int64_t stride[LB_MAX_RANK];
    lb_row_major(&box->of, stride);
    while (k < box->of.rank && box->count[k] == 1)
        k++;
    for (int j = k + 1; j < box->of.rank; j++)
        if (box->count[j] != box->of.dim[j]) return false;
    *lo = 0;
    for (int j = 0; j < box->of.rank; j++)
        *lo += box->start[j] * stride[j];
    *n = lb_cut_size(box);
    return true;
}

/* *block: size of the block that the box cuts through. */
static form form_of(const lb_described *d, const lb_cut *box, int64_t *block)
{
    int64_t lo, n, start, entries;
    *block = 0;
    if (lb_shape_equal(&d->shape, &d->stored)) return SAME;
    const int64_t all = lb_shape_size(&d->shape);
    const int last = d->shape.rank - 1;
    if (d->stored.rank != 1 || d->stored.dim[0] != all || last < 0) return NONE;
    bool run = as_run(box, &lo, &n), rows = true;
    for (int p = 0; p < d->n_parts; p++) {
        const int64_t g = d->part[p].table.g[0];
        run = run && cut_axis(all, g, lo, n, &start, &entries);
        if (g > 1 && d->shape.dim[last] % g) {
            rows = false;
            *block = g;
        }
    }
    return run ? FLAT : rows ? ROWS : NONE;
}

static bool cut_table(form how, const lb_described *d, const lb_part *t,
                      const lb_cut *box, lb_cut *to, int64_t *block)
{
    lb_cut from = *box; /* in the coordinates of the table */
    lb_part table = *t;
    const int last = d->shape.rank - 1;
    if (how == FLAT) {
        from.of = d->stored;
        as_run(box, &from.start[0], &from.count[0]);
    } else if (how == ROWS) {
        for (int k = 0; k <= last; k++)
            table.g[k] = !t->g[0] ? 0 : k == last ? t->g[0] : 1;
    }
    *to = (lb_cut){.of = lb_part_shape(&from.of, &table)};
    for (int k = 0; k < from.of.rank; k++)
        if (!cut_axis(from.of.dim[k], table.g[k], from.start[k], from.count[k],
                      &to->start[k], &to->count[k])) {
            *block = table.g[k];
            return false;
        }
    if (to->of.rank > from.of.rank) to->count[from.of.rank] = table.own;
    return true;
}

bool lb_cut_part(const lb_described *d, const lb_described_part *p,
                 const lb_cut *box, lb_cut *to, int64_t *block)
{
    const form how = form_of(d, box, block);
    return how != NONE && cut_table(how, d, &p->table, box, to, block);
}

bool lb_cut_fits(const lb_described *d, const lb_cut *box, int64_t *block)
{
    lb_cut to;
    bool ok = true;
    for (int p = 0; ok && p < d->n_parts; p++)
        ok = lb_cut_part(d, &d->part[p], box, &to, block);
    return ok;
}

static bool find_leaf(const lb_described *d, int *k, const lb_cut *box,
                      lb_cut *to)
{
    int64_t block;
    for (int p = 0; p < d->n_parts; p++) {
        const lb_described_part *part = &d->part[p];
        lb_cut mine = lb_cut_one();
        const bool fits = lb_cut_part(d, part, box, &mine, &block);
        if (!part->array) {
            if ((*k)--) continue;
            *to = mine;
            return fits;
        }
        lb_described below = *part->array;
        below.shape = mine.of; /* or the rows that contain them */
        if (find_leaf(&below, k, &mine, to)) return fits;
        if (*k < 0) return false;
    }
    return false;
}

bool lb_cut_leaf(const lb_described *d, int k, const lb_cut *box, lb_cut *to)
{
    return find_leaf(d, &k, box, to);
}

/* ---- slices -------------------------------------------------------------- */

static bool describe_part(lb_ctx *cx, lb_arena *arena, form how,
                          const lb_described *d, const lb_cut *box, bool deep,
                          lb_described_part *p)
{
    int64_t block;
    lb_cut to;
    const int last = d->shape.rank - 1;
    const int64_t g = p->table.g[0];
    if (!cut_table(how, d, &p->table, box, &to, &block)) return false;
    if (how == ROWS) {
        for (int k = 0; k <= last; k++)
            p->table.g[k] = !g ? 0 : k == last ? g : 1;
        p->n_groups = d->shape.rank;
    }
    if (!p->array || !deep) return true;
    if (how == ROWS) { /* as the rows that contain them */
        lb_described *seen = lb_arena_alloc(cx, arena, 1, sizeof *seen);
        if (!seen) return false;
        *seen = *p->array;
        seen->shape = to.of;
        p->array = seen;
    }
    p->array = lb_cut_described(cx, arena, p->array, &to, true);
    return p->array != NULL;
}

lb_described *lb_cut_described(lb_ctx *cx, lb_arena *arena,
                               const lb_described *d, const lb_cut *box,
                               bool deep)
{
    int64_t block;
    const form how = form_of(d, box, &block);
    if (how == NONE) return NULL;
    lb_described *out = lb_arena_alloc(cx, arena, 1, sizeof *out);
    if (!out) return NULL;
    *out = *d;
    out->shape = out->stored = lb_cut_shape(box);
    if (how == FLAT) {
        const int64_t n = lb_shape_size(&out->shape);
        out->stored = lb_shape_make(1, &n);
    }
    for (int p = 0; p < d->n_parts; p++)
        if (!describe_part(cx, arena, how, d, box, deep, &out->part[p]))
            return NULL;
    return out;
}

const lb_described *lb_cut_describe(lb_ctx *cx, lb_file *f, const lb_group *g,
                                    const lb_quant_config *config)
{
    const lb_entry *e = &g->entry;
    const lb_planned p = {.name = e->name,
                          .dtype = e->dtype,
                          .shape = lb_shape_make(e->rank, e->dim),
                          .config = config};
    return lb_describe_config(cx, &f->arena, &p);
}

/* ---- four rows in one ---------------------------------------------------- */

void lb_cut_quarters(const lb_cut *box, lb_cut *bytes, lb_cut *rows)
{
    const int64_t quarter = lb_ceil_div(box->of.dim[0], 4);
    const int64_t lo = box->start[0], n = box->count[0];
    const bool one = n && lo / quarter == (lo + n - 1) / quarter;
    *bytes = *rows = *box;
    bytes->of.dim[0] = quarter;
    bytes->start[0] = one ? lo % quarter : 0;
    bytes->count[0] = one ? n : quarter;
    for (int k = 0; k < box->of.rank; k++) {
        rows->of.dim[k] = box->count[k];
        rows->start[k] = 0;
    }
    rows->of.dim[0] = one ? 4 * n : box->of.dim[0];
    rows->start[0] = one ? lo / quarter * n : lo;
}

bool lb_cut_place_quarters(const lb_cut *box, lb_cut *to)
{
    *to = *box;
    to->of.dim[0] = to->count[0] = lb_ceil_div(box->of.dim[0], 4);
    return box->of.rank > 1 && box->count[0] == box->of.dim[0];
}

lb_cut lb_cut_one(void)
{
    return (lb_cut){.of = {0}};
}
