/* parts.c - the parts table: shapes and entries, and arrays built from parts.
 *
 * Everything about a format's layout is derived from the table; nothing here
 * depends on a specific format.
 */
#include <string.h>

#include "core/core.h"

lb_shape lb_part_shape(const lb_shape *stored, const lb_part *p)
{
    lb_shape s = *stored;
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = p->g[k] ? lb_ceil_div(stored->dim[k], p->g[k]) : 1;
    if (p->own > 0 && s.rank < LB_MAX_RANK) s.dim[s.rank++] = p->own;
    return s;
}

/* a / b for a >= 0, b > 0. Most sizes are powers of two, and a division takes
 * longer than everything else here. */
static inline int64_t divide(int64_t a, int64_t b)
{
    return b & (b - 1) ? a / b : a >> __builtin_ctzll((uint64_t)b);
}

/* Whether entries follow the rows of the store. */
static bool in_rows(const lb_part *p, int last)
{
    bool rows = last >= 0;
    for (int k = 0; k < last; k++)
        rows = rows && p->g[k] == 1;
    return rows;
}

int64_t lb_part_entry(const lb_store *s, int part, int64_t e)
{
    const lb_part *p = &s->part[part];
    const int last = s->shape.rank - 1;
    int64_t at = 0, step = p->own > 0 ? p->own : 1;
    if (in_rows(p, last)) {
        const int64_t n = s->shape.dim[last], g = p->g[last];
        if (g == 1) return e * step;
        const int64_t row = divide(e, n);
        if (!g) return row * step;
        const int64_t whole = divide(n, g), each = whole + (whole * g != n);
        return (row * each + divide(e - row * n, g)) * step;
    }
    for (int k = last; k >= 0; k--) {
        const int64_t n = s->shape.dim[k], g = p->g[k];
        const int64_t next = divide(e, n), i = e - next * n;
        e = next;
        if (!g) continue;
        at += divide(i, g) * step;
        step *= lb_ceil_div(n, g);
    }
    return at;
}

void lb_part_scales(const lb_cpu *cpu, const lb_store *s, int part,
                    int64_t first, int64_t n, float *out)
{
    if (n <= 0) return;
    const lb_part *p = &s->part[part];
    const int last = s->shape.rank - 1;
    const int64_t g = last < 0 ? 0 : p->g[last];
    const int64_t c = g ? first % s->shape.dim[last] : 0;
    const int64_t at = lb_part_entry(s, part, first);
    const int64_t into = g ? c % g : 0; /* position in its entry */
    const int64_t entries = g ? (into + n - 1) / g + 1 : 1;
    lb_tile_read_flat(cpu, p->a, at, entries, LB_C_F32, out);
    /* Expand backward, in place: an entry never comes after its elements. */
    for (int64_t b = entries - 1, end = n; b >= 0; b--) {
        const float v = out[b];
        const int64_t begin = b ? b * g - into : 0;
        for (int64_t i = begin; i < end; i++)
            out[i] = v;
        end = begin;
    }
}

enum { LEAST = (LB_RUN + LB_SPANS - 3) / (LB_SPANS - 2) }; /* elements */

/* For any n, across the ends of rows: a pointer into the part, if groups end
 * where rows do. */
static lb_spans spans_far(const lb_store *s, int part, int64_t first, int64_t n)
{
    const lb_spans none = {NULL, n, n};
    const lb_part *p = &s->part[part];
    const int last = s->shape.rank - 1;
    const float *there = p->a->dtype == LB_F32 ? lb_data(p->a) : NULL;
    if (!there || p->own || last < 0) return none;
    if (lb_size(p->a) == 1) return (lb_spans){there, n, n};
    const int64_t row = s->shape.dim[last];
    const int64_t g = p->g[last] ? p->g[last] : row;
    if (!in_rows(p, last) || g < LEAST || row % g) return none;
    return (lb_spans){there + lb_part_entry(s, part, first), g - first % g, g};
}

lb_spans lb_part_spans(const lb_cpu *cpu, const lb_store *s, int part,
                       int64_t first, int64_t n, float *room, float *spread)
{
    const lb_part *p = &s->part[part];
    const int last = s->shape.rank - 1;
    const int64_t g = last < 0 ? 0 : p->g[last];
    if (n > LB_RUN) return spans_far(s, part, first, n);
    if (g > 1 && g < LEAST) {
        lb_part_scales(cpu, s, part, first, n, spread);
        return (lb_spans){spread, 1, 1};
    }
    const int64_t at = lb_part_entry(s, part, first);
    int64_t into = 0; /* position in its entry */
    if (g > 1) {
        const int64_t d = s->shape.dim[last];
        const int64_t c = first - divide(first, d) * d;
        into = c - divide(c, g) * g;
    }
    lb_spans spans = {NULL, g ? g - into : n, g ? g : n};
    const float *there = p->a->dtype == LB_F32 ? lb_data(p->a) : NULL;
    if (there) {
        spans.value = there + at;
    } else {
        float *to = g == 1 ? spread : room;
        const int64_t entries = g ? divide(into + n - 1, g) + 1 : 1;
        lb_tile_read_flat(cpu, p->a, at, entries, LB_C_F32, to);
        spans.value = to;
    }
    return spans;
}

const void *lb_part_bytes(const lb_store *s, int part)
{
    const lb_array *a = s->part[part].a; /* raw: dense and row-major */
    return (const char *)a->store->data +
           (size_t)a->offset * lb_dtype_size(a->dtype);
}

/* ---- construction -------------------------------------------------------- */

/* Raw bytes are read along the last axis, so entries must follow it. Sub-byte
 * codes share bytes only there. */
static bool check_raw(lb_ctx *cx, const lb_format *fmt, int p,
                      const lb_shape *stored, const lb_part *part)
{
    const int last = stored->rank - 1;
    const int bits = p == 0 ? fmt->codes.bits : 0;
    if (!fmt->part[p].raw || part->own || last < 0) return true;
    const int64_t g = part->g[last];
    if (g < 1 || (bits && g != 8 / bits))
        return lb_fail(cx, LB_E_ARG,
                       "%s: part %s has one entry per %lld elements of "
                       "the last axis",
                       fmt->name, fmt->part[p].name, (long long)g);
    return true;
}

bool lb_part_check(lb_ctx *cx, const lb_format *fmt, int p,
                   const lb_shape *stored, const lb_part *part)
{
    const char *name = fmt->part[p].name;
    for (int k = 0; k < stored->rank; k++)
        if (part->g[k] < 0)
            return lb_fail(cx, LB_E_ARG, "%s: part %s has g %lld on axis %d",
                           fmt->name, name, (long long)part->g[k], k);
    if (part->own < 0 || (part->own > 0 && stored->rank == LB_MAX_RANK))
        return lb_fail(cx, LB_E_SHAPE,
                       "%s: part %s has an own axis of size %lld at rank %d",
                       fmt->name, name, (long long)part->own, stored->rank);
    return check_raw(cx, fmt, p, stored, part);
}

static bool check_given(lb_ctx *cx, const lb_format *fmt, int p,
                        const lb_shape *stored, const lb_part *part)
{
    const char *name = fmt->part[p].name;
    if (!lb_part_check(cx, fmt, p, stored, part)) return false;
    const lb_shape want = lb_part_shape(stored, part);
    if (!lb_shape_equal(&part->a->shape, &want))
        return lb_fail(cx, LB_E_SHAPE,
                       "%s: part %s has shape %s, not %s for stored shape %s",
                       fmt->name, name, LB_SHOW(&part->a->shape),
                       LB_SHOW(&want), LB_SHOW(stored));
    if (fmt->part[p].raw && !lb_data(part->a))
        return lb_fail(cx, LB_E_ARG, "%s: part %s must be dense and row-major",
                       fmt->name, name);
    if (part->a->store->depth + 1 > LB_MAX_NESTING)
        return lb_fail(cx, LB_E_SIZE, "%s: parts are nested more than %d deep",
                       fmt->name, LB_MAX_NESTING);
    return true;
}

static bool check_make(lb_ctx *cx, const lb_format *fmt, lb_dtype dtype,
                       const lb_shape *stored, const lb_part *table)
{
    if (!fmt || !stored || !table)
        return lb_fail(cx, LB_E_NULL, "make: %s is NULL",
                       !fmt      ? "the format"
                       : !stored ? "the shape"
                                 : "the table");
    if (!lb_dtype_size(dtype))
        return lb_fail(cx, LB_E_DTYPE, "%s: %d is not a dtype", fmt->name,
                       (int)dtype);
    if (!fmt->part[0].name)
        return lb_fail(cx, LB_E_ARG, "make: %s has no parts", fmt->name);
    if (!lb_shape_check(cx, fmt->name, stored)) return false;
    bool named = true;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        named = named && fmt->part[p].name;
        if (table[p].a && !named)
            return lb_fail(cx, LB_E_ARG, "%s: it has no part %d", fmt->name, p);
        if (!table[p].a && named && !fmt->part[p].optional)
            return lb_fail(cx, LB_E_NULL, "%s: part %s is missing", fmt->name,
                           fmt->part[p].name);
        if (table[p].a && (!lb_has_elements(cx, fmt->name, table[p].a) ||
                           !check_given(cx, fmt, p, stored, &table[p])))
            return false;
    }
    return true;
}

lb_array *lb_make(lb_ctx *cx, const lb_format *fmt, lb_dtype dtype, int meaning,
                  const lb_shape *stored, const lb_part *table)
{
    if (!cx || !check_make(cx, fmt, dtype, stored, table)) return NULL;
    size_t got;
    lb_store *s = lb_heap_alloc(cx->heap, sizeof *s, &got);
    if (!s) {
        lb_fail(cx, LB_E_NOMEM, "out of memory");
        return NULL;
    }
    *s = (lb_store){
        .refs = 1,
        .heap = cx->heap,
        .heap_size = got,
        .fmt = fmt,
        .shape = *stored,
        .ctype = LB_C_F32,
        .meaning = meaning,
    };
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name; p++) {
        s->part[p] = table[p];
        if (!lb_ref(s->part[p].a)) continue;
        const int depth = s->part[p].a->store->depth + 1;
        s->depth = depth > s->depth ? depth : s->depth;
    }
    return lb_view_store(cx, s, dtype);
}

lb_array *lb_make_like(lb_ctx *cx, const lb_store *like, lb_dtype dtype,
                       const lb_shape *stored, const lb_part *table)
{
    lb_array *a = lb_make(cx, like->fmt, dtype, like->meaning, stored, table);
    if (a) a->store->made = like->made;
    return a;
}
