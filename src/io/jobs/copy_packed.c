/* copy_packed.c - copies a packed array: decoded, or as stored.
 *
 * As a whole if it fits in half of max_memory; otherwise in groups of rows, if
 * both its layout and the target's can be split by rows.
 */
#include "core/core.h"
#include "io/jobs/copy_array.h"

enum { PIECE = 2 << 20 }; /* elements that are decoded at a time */

int64_t lb_transfer_rows(lb_ctx *cx, const lb_transfer *t, bool may_cut)
{
    const lb_group *g = t->group;
    const lb_entry *e = &g->entry;
    const int64_t n = e->rank && e->dim[0] > 0 ? e->dim[0] : 1;
    if (e->nbytes <= t->max_memory / 2) return n;
    const uint64_t row = e->nbytes / (uint64_t)n + 1;
    const bool cuts = !g->layout || (g->layout->cuts && g->layout->cuts(g));
    if (may_cut && e->rank > 1 && cuts && row <= t->max_memory / 4)
        return (int64_t)(t->max_memory / 4 / row);
    lb_fail(cx, LB_E_SIZE,
            "'%s' must be read as a whole: it has %llu bytes packed, and needs "
            "twice that, more than max_memory, %llu",
            LB_NAME(e->name), (unsigned long long)e->nbytes,
            (unsigned long long)t->max_memory);
    return 0;
}

typedef bool use(lb_ctx *cx, const lb_transfer *t, lb_saver *s, lb_array *rows,
                 lb_difference *m);

static bool each_rows(lb_ctx *cx, const lb_transfer *t, lb_saver *s,
                      int64_t each, use *what, lb_difference *m)
{
    const lb_entry *e = &t->group->entry;
    const int64_t n = e->rank && e->dim[0] > 0 ? e->dim[0] : 1;
    const bool whole = each >= n;
    uint64_t told = 0;
    bool ok = each > 0;
    for (int64_t lo = 0; ok && lo < n; lo += each) {
        const int64_t hi = lb_min_i64(lo + each, n);
        lb_enter(cx);
        lb_array *some = whole ? lb_file_load(cx, t->f, e->name)
                               : lb_file_load_rows(cx, t->f, e->name, lo, hi);
        ok = some && what(cx, t, s, some, m);
        lb_leave(cx);
        const uint64_t now =
            hi == n ? e->nbytes : e->nbytes / (uint64_t)n * (uint64_t)hi;
        if (ok && t->progress) ok = t->progress(t->user, now - told);
        told = now;
    }
    return ok;
}

/* As a vector. Decode before converting: values are rounded to the logical
 * dtype of the array. */
static bool decode(lb_ctx *cx, const lb_transfer *t, lb_saver *s,
                   lb_array *rows, lb_difference *m)
{
    const lb_dtype dtype = t->dtype ? t->dtype : t->group->entry.dtype;
    const int64_t n = lb_size(rows);
    const uint64_t most = t->max_memory / 16;
    const int64_t each = most < PIECE ? (int64_t)(most / 8) : PIECE;
    lb_array *row = lb_reshape(cx, rows, LB_SHAPE(n));
    bool ok = row != NULL;
    for (int64_t lo = 0; ok && lo < n; lo += each) {
        const int64_t hi = lb_min_i64(lo + each, n);
        lb_enter(cx);
        lb_array *x = lb_materialize(cx, lb_slice(cx, row, &lo, &hi, NULL));
        lb_array *y = lb_convert(cx, x, dtype);
        ok = x && y && lb_transfer_put(cx, t, s, x, y, m);
        lb_leave(cx);
    }
    return ok;
}

bool lb_transfer_decoded(lb_ctx *cx, const lb_transfer *t, lb_saver *s,
                         lb_difference *m)
{
    return each_rows(cx, t, s, lb_transfer_rows(cx, t, true), decode, m);
}

static bool store(lb_ctx *cx, const lb_transfer *t, lb_saver *s, lb_array *rows,
                  lb_difference *m)
{
    (void)t;
    (void)m;
    return !s || lb_saver_piece(cx, s, rows);
}

bool lb_transfer_stored(lb_ctx *cx, const lb_transfer *t, lb_saver *s)
{
    const bool may_cut = !s || lb_saver_takes_rows(s);
    return each_rows(cx, t, s, lb_transfer_rows(cx, t, may_cut), store, NULL) &&
           (!s || lb_saver_end(cx, s, (const uint8_t[LB_RECORD]){1}));
}
