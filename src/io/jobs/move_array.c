/* move_array.c - moves an array from a file to another, in pieces of rows.
 *
 * A piece that does not fit ends the move. If quantizing again is allowed the
 * whole array is then quantized, from its first row on.
 */
#include "io/jobs/move_array.h"

#include <stdio.h>
#include <string.h>

#include "core/core.h"

typedef struct moving {
    lb_ctx *cx;
    const lb_transfer *t;
    const lb_move_plan *p;
    lb_saver *s;
    lb_allow allow;
    lb_move_result *r;
} moving;

static bool put(const moving *v, lb_array *rows)
{
    return !v->s || lb_saver_piece(v->cx, v->s, rows);
}

static void add(lb_difference *d, const lb_move *m, int64_t n)
{
    d->n += n;
    d->apart += m->sums.apart;
    d->nonfinite += m->sums.nonfinite;
    d->aa += m->sums.aa;
    d->bb += m->sums.bb;
    d->ab += m->sums.ab;
    d->dd += m->sums.dd;
    if (m->sums.max > d->max) d->max = m->sums.max;
}

/* ---- pieces -------------------------------------------------------------- */

/* LB_DECLINED: refused. */
typedef lb_verdict move_step(const moving *v, lb_array *rows);

static lb_verdict move_rows(const moving *v, lb_array *rows)
{
    lb_move m;
    lb_array *to;
    const lb_verdict done = lb_move_array(v->cx, rows, &v->p->target, &to, &m);
    if (done != LB_DONE) {
        snprintf(v->r->why, sizeof v->r->why, "%s", m.why);
        return done;
    }
    add(&v->r->error, &m, lb_size(rows));
    if (!m.exact) v->r->moved = LB_MOVED_ROUNDED;
    if (!m.exact && v->allow == LB_ALLOW_EXACT) {
        snprintf(v->r->why, sizeof v->r->why,
                 "a scale or a bias would be rounded");
        return LB_DECLINED;
    }
    return put(v, to) ? LB_DONE : LB_FAILED;
}

static lb_verdict remake_rows(const moving *v, lb_array *rows)
{
    lb_difference d = {0};
    lb_array *to = v->p->remake(v->cx, rows);
    lb_array *x = lb_convert(v->cx, rows, LB_F32), /* not rounded to a dtype */
        *y = to ? lb_convert(v->cx, to, LB_F32) : NULL;
    if (!x || !y || !lb_compare(v->cx, x, y, &d) ||
        !lb_compare(v->cx, x, y, &v->r->error))
        return LB_FAILED;
    if (d.apart) v->r->moved = LB_MOVED_ROUNDED;
    if (d.nonfinite || (d.apart && v->allow == LB_ALLOW_EXACT)) {
        snprintf(v->r->why, sizeof v->r->why, "%s",
                 d.nonfinite ? "a scale is not finite"
                             : "the scale of the array would be rounded");
        if (d.nonfinite) v->r->moved = LB_MOVED_REFUSED;
        return LB_DECLINED;
    }
    return put(v, to) ? LB_DONE : LB_FAILED;
}

/* A format that nothing can be moved to is encoded as it is stored. */
static lb_array *quantized(const moving *v, lb_array *rows)
{
    lb_move m;
    lb_array *to = NULL;
    lb_array *q = lb_quantize(v->cx, rows, &v->p->encode);
    if (!q || !q->store->fmt->recode) return q;
    const lb_verdict done = lb_move_array(v->cx, q, &v->p->target, &to, &m);
    if (done == LB_DECLINED)
        lb_fail(v->cx, LB_E_UNSUPPORTED, "'%s': %s",
                LB_NAME(v->t->group->entry.name), m.why);
    return to;
}

static lb_verdict quantize_rows(const moving *v, lb_array *rows)
{
    lb_array *to = quantized(v, rows);
    return to && lb_compare(v->cx, rows, to, &v->r->error) && put(v, to)
               ? LB_DONE
               : LB_FAILED;
}

static lb_verdict price_rows(const moving *v, lb_array *rows)
{
    lb_array *to = quantized(v, rows);
    return to && lb_compare(v->cx, rows, to, &v->r->error) ? LB_DONE
                                                           : LB_FAILED;
}

static lb_verdict each_rows(const moving *v, move_step *what, bool tell)
{
    const lb_entry *e = &v->t->group->entry;
    const int64_t n = e->rank && e->dim[0] > 0 ? e->dim[0] : 1;
    const int64_t each =
        lb_transfer_rows(v->cx, v->t, !v->s || lb_saver_takes_rows(v->s));
    lb_verdict done = each > 0 ? LB_DONE : LB_FAILED;
    uint64_t told = 0;
    for (int64_t lo = 0; done == LB_DONE && lo < n; lo += each) {
        const int64_t hi = lb_min_i64(lo + each, n);
        lb_enter(v->cx);
        lb_array *rows =
            each >= n ? lb_file_load(v->cx, v->t->f, e->name)
                      : lb_file_load_rows(v->cx, v->t->f, e->name, lo, hi);
        done = rows ? what(v, rows) : LB_FAILED;
        lb_leave(v->cx);
        const uint64_t now =
            hi == n ? e->nbytes : e->nbytes / (uint64_t)n * (uint64_t)hi;
        if (done == LB_DONE && tell && v->t->progress &&
            !v->t->progress(v->t->user, now - told))
            done = LB_FAILED;
        told = now;
    }
    return done;
}

/* ---- arrays -------------------------------------------------------------- */

bool lb_transfer_price(lb_ctx *cx, const lb_transfer *t, const lb_move_plan *p,
                       lb_move_result *r)
{
    const moving v = {.cx = cx, .t = t, .p = p, .r = r};
    r->error = (lb_difference){0};
    r->moved = LB_MOVED_REFUSED;
    if (!p->encode.format || each_rows(&v, price_rows, true) == LB_DONE)
        return true;
    const lb_status s = lb_error_status(cx);
    if (s == LB_E_NOMEM || s == LB_E_CANCELLED || s == LB_E_FILE) return false;
    lb_clear(cx); /* it cannot be quantized either */
    r->error = (lb_difference){0};
    return true;
}

static bool requantize(const moving *v)
{
    v->r->error = (lb_difference){0};
    v->r->moved = LB_MOVED_REQUANTIZED;
    if (v->s) lb_saver_rewind(v->s);
    return each_rows(v, quantize_rows, true) == LB_DONE;
}

/* It is allowed to quantize again, but not possible. */
static void add_encoder(const lb_move_plan *p, lb_move_result *r)
{
    const size_t n = strlen(r->why);
    snprintf(r->why + n, sizeof r->why - n,
             ", and %s cannot be quantized to: it has no encoder",
             p->target.config.format);
}

bool lb_transfer_moved(lb_ctx *cx, const lb_transfer *t, const lb_move_plan *p,
                       lb_allow allow, lb_saver *s, lb_move_result *r)
{
    const moving v = {cx, t, p, s, allow, r};
    *r = (lb_move_result){.moved = LB_MOVED_EXACT};
    const lb_verdict done =
        each_rows(&v, p->remake ? remake_rows : move_rows, false);
    if (done == LB_FAILED) return false;
    if (done == LB_DECLINED) {
        if (r->moved == LB_MOVED_ROUNDED) { /* the rest is not measured */
            r->moved = LB_MOVED_REFUSED;
            r->rounds = true;
            return true;
        }
        if (allow == LB_ALLOW_REQUANTIZE && !p->encode.format)
            add_encoder(p, r);
        if (allow != LB_ALLOW_REQUANTIZE || !p->encode.format)
            return lb_transfer_price(cx, t, p, r);
        if (!requantize(&v)) return false;
    } else if (t->progress && !t->progress(t->user, t->group->entry.nbytes))
        return false;
    uint8_t record[LB_RECORD] = {1, (uint8_t)r->moved};
    memcpy(record + 8, &r->error, sizeof r->error);
    return !s || lb_saver_end(cx, s, record);
}
