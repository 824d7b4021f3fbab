/* scan.c - reading all values of a file, with a progress bar. */
#include "scan.h"

#include <string.h>

/* Bytes of rows that are loaded at a time, and rows that may share scales. */
enum { CHUNK = 32 << 20, TILE = 128 };

void scan_begin(scan *s, const arguments *a, const lb_file *f,
                const lb_entry *only, int times)
{
    *s = (scan){0};
    progress_begin(&s->bar, a);
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        if (e->format && (!only || e == only)) {
            s->total += (uint64_t)times * e->nbytes;
            s->n += times;
        }
    }
}

static void advance(scan *s, const lb_entry *e, uint64_t done)
{
    s->done = done;
    progress_at(&s->bar, &(progress_step){.name = e->name,
                                          .i = s->i,
                                          .n = s->n,
                                          .done = s->done,
                                          .total = s->total});
}

int64_t rows_at_once(const lb_entry *e)
{
    if (!e->by_rows || e->nbytes <= CHUNK || e->dim[0] < 2) return 0;
    const uint64_t row = e->nbytes / (uint64_t)e->dim[0] + 1;
    const int64_t n = row < CHUNK ? (int64_t)(CHUNK / row) : 1;
    return n > TILE ? n / TILE * TILE : n;
}

bool scan_array(scan *s, lb_ctx *cx, lb_file *f, const lb_entry *e,
                bool (*fn)(void *user, lb_ctx *cx, lb_array *part), void *user)
{
    const int64_t each = rows_at_once(e), n = each ? e->dim[0] : 1;
    const uint64_t begin = s->done;
    bool ok = true;
    advance(s, e, begin);
    for (int64_t lo = 0; ok && lo < n; lo += each ? each : 1) {
        const int64_t hi = n - lo < each ? n : lo + each;
        lb_enter(cx);
        lb_array *part = each ? lb_file_load_rows(cx, f, e->name, lo, hi)
                              : lb_file_load(cx, f, e->name);
        ok = part && fn(user, cx, part);
        lb_leave(cx);
        if (each && ok)
            advance(s, e,
                    begin +
                        (uint64_t)((double)e->nbytes * (double)hi / (double)n));
    }
    s->i++;
    advance(s, e, begin + e->nbytes);
    return ok;
}

void scan_clear(scan *s)
{
    progress_clear(&s->bar);
}
