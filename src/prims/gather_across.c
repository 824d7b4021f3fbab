/* gather_across.c - see gather_across.h.
 *
 * For a packed operand, the windows of a group are sorted by their start. Close
 * windows form a span, which is decoded whole as long as decoding the gaps
 * costs less than another call of the decoder. As many spans as fit into the
 * buffer form a round: they are decoded consecutively, then elements are picked
 * in window order.
 */
#include "prims/gather_across.h"

#include <string.h>

#include "kernels/convert.h"
#include "kernels/turn.h"
#include "prims/dims.h"

enum {
    GROUP = 4096, /* windows looked up together */
    PIECE = 256,  /* elements of each in a unit: amortizes the lookup */
    BATCH = 16,   /* elements transposed together: a cache line of f32 */
    ROOM = 8192,  /* elements of a round */
    GAP = 256     /* elements decoded in the time of a call, approximately */
};

/* ---- planning ----------------------------------------------------------- */

bool lb_across_fits(const lb_windows *ws, const lb_array *a)
{
    int64_t inside = INT64_MAX, between = INT64_MAX;
    for (int i = 0; i < ws->window.rank; i++)
        if (ws->window.dim[i] > 1)
            inside =
                lb_min_i64(inside, lb_distance(a->stride[ws->offset_in[i]]));
    for (int k = 0; k < ws->rank; k++)
        if (ws->last[k] > 0)
            between = lb_min_i64(between, lb_distance(a->stride[k]));
    return between < inside;
}

lb_across lb_across_plan(const lb_windows *ws, const lb_call *c)
{
    lb_across x = {
        .ws = ws,
        .a = c->in[0],
        .raw = lb_elements(c->in[0]),
        .size = lb_dtype_size(c->dtype),
        .ctype = lb_ctype_of(c->dtype),
        .elements = lb_shape_size(&ws->window),
    };
    lb_row_major(&c->shape, x.stride);
    for (int i = 0; i < ws->window.rank; i++)
        if (ws->window.dim[i] > 1 && x.stride[ws->offset_out[i]] == 1)
            x.turned = true;
    x.group =
        lb_max_i64(lb_min_i64(ws->count, x.turned ? GROUP / 2 : GROUP), 1);
    x.piece = lb_max_i64(lb_min_i64(x.elements, PIECE), 1);
    x.pieces = lb_ceil_div(x.elements, x.piece);
    x.units = lb_ceil_div(ws->count, x.group) * x.pieces;
    return x;
}

/* ---- scratch ------------------------------------------------------------ */

typedef struct {
    int64_t from; /* offset in the operand, relative to a window at its
                   * origin */
    int64_t window;
} item;

/* Decoded into elements [at, at + n) of a round. */
typedef struct {
    int64_t from, at, n;
} span;

typedef struct {
    int64_t spans, picks; /* end of its spans and picks */
    int64_t n;            /* elements */
    int64_t next;         /* next pick, during construction */
} spell;

/* Moves an element of the round (or of the operand, if it need not be decoded)
 * to the result, or to a row of the block. */
typedef struct {
    int64_t at, to;
} pick;

typedef struct {
    lb_window *look;
    int64_t *to;   /* offset of each window in the result */
    int64_t *lost; /* windows that do not fit */
    pick *pick;
    item *item[2]; /* two buffers for sorting; the second is reused later */
    span *span;
    spell *round;
    char *tile, *decoded, *block;
    int64_t n, n_lost, rounds;
} gather_scratch;

/* The next `bytes` of the scratch; base may be NULL, to count. */
static void *cut(char *base, size_t *used, size_t bytes)
{
    enum { LINE = 64 };
    void *at = base ? base + *used : NULL;
    *used += (bytes + LINE - 1) / LINE * LINE;
    return at;
}

static size_t lay_out(const lb_across *x, char *base, gather_scratch *s)
{
    const size_t n = (size_t)x->group, room = ROOM;
    size_t used = 0;
    *s = (gather_scratch){.look =
                              cut(base, &used, LB_WINDOWS * sizeof *s->look)};
    s->to = cut(base, &used, n * sizeof *s->to);
    s->lost = cut(base, &used, n * sizeof *s->lost);
    s->pick = cut(base, &used, n * sizeof *s->pick);
    if (x->turned) s->block = cut(base, &used, BATCH * n * x->size);
    if (x->raw) return used;
    s->item[0] = cut(base, &used, n * sizeof *s->item[0]);
    s->item[1] = cut(base, &used, n * sizeof *s->item[1]);
    s->span = cut(base, &used, n * sizeof *s->span);
    s->round = cut(base, &used, n * sizeof *s->round);
    s->tile = cut(base, &used, room * lb_ctype_size(x->ctype));
    s->decoded = s->tile;
    if (x->size != lb_ctype_size(x->ctype))
        s->decoded = cut(base, &used, room * x->size);
    return used;
}

size_t lb_across_scratch(const lb_across *x)
{
    gather_scratch s;
    return lay_out(x, NULL, &s);
}

/* ---- lookup -------------------------------------------------------------- */

/* Stable radix sort by `from`, a byte at a time. */
static void sort_items(gather_scratch *s)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int64_t i = 0; i < s->n; i++) {
        least = lb_min_i64(least, s->item[0][i].from);
        most = lb_max_i64(most, s->item[0][i].from);
    }
    for (int shift = 0; s->n && (most - least) >> shift; shift += 8) {
        int64_t end[257] = {0};
        const item *in = s->item[0];
        item *out = s->item[1];
        for (int64_t i = 0; i < s->n; i++)
            end[((in[i].from - least) >> shift & 255) + 1]++;
        for (int b = 0; b < 256; b++)
            end[b + 1] += end[b];
        for (int64_t i = 0; i < s->n; i++)
            out[end[(in[i].from - least) >> shift & 255]++] = in[i];
        s->item[1] = s->item[0];
        s->item[0] = out;
    }
}

/* Forms spans and rounds of the items; stores the position of each window's
 * data at the window's index in the other item buffer. */
static void make_rounds(gather_scratch *s)
{
    span *last = s->span;
    spell *r = s->round;
    for (int64_t i = 0; i < s->n; i++) {
        const item *in = &s->item[0][i];
        int64_t more = i ? in->from - (last->from + last->n) + 1 : 0;
        if (!i || more > GAP || r->n + more > ROOM) {
            more = 1;
            if (!i) {
                *r = (spell){0};
            } else if (r->n == ROOM) {
                r++;
                *r = (spell){.spans = r[-1].spans, .next = i};
            }
            last = &s->span[r->spans++];
            *last = (span){in->from, r->n, 0};
        }
        last->n += more;
        r->n += more;
        r->picks = i + 1;
        s->item[1][in->window] =
            (item){last->at + in->from - last->from, r - s->round};
    }
    s->rounds = s->n ? r - s->round + 1 : 0;
}

/* Where element 0 of a window of the group is first written. */
static int64_t place_of(const lb_across *x, const gather_scratch *s, int64_t w)
{
    return x->turned ? w : s->to[w];
}

/* Looks up source and destination of windows lo <= w < lo + n. */
static void look_up(const lb_across *x, const lb_call *c, int64_t lo, int64_t n,
                    gather_scratch *s)
{
    s->n = s->n_lost = 0;
    for (int64_t i = 0, m; i < n; i += m) {
        m = lb_min_i64(n - i, LB_WINDOWS);
        lb_windows_look(x->ws, c, x->stride, lo + i, m, s->look);
        for (int64_t w = i; w < i + m; w++) {
            const lb_window *win = &s->look[w - i];
            int64_t from = 0;
            s->to[w] = win->result;
            if (!win->fits) {
                s->lost[s->n_lost++] = w;
                continue;
            }
            for (int k = 0; k < x->ws->rank; k++)
                from += win->start[k] * x->a->stride[k];
            s->pick[s->n] = (pick){from, place_of(x, s, w)};
            if (!x->raw) s->item[0][s->n] = (item){from, w};
            s->n++;
        }
    }
    if (x->raw) return;
    sort_items(s);
    make_rounds(s);
    /* In window order, in which the result is written. */
    for (int64_t i = 0, lost = 0; i < n; i++) {
        if (lost < s->n_lost && s->lost[lost] == i) {
            lost++;
            continue;
        }
        const item *found = &s->item[1][i];
        s->pick[s->round[found->window].next++] =
            (pick){found->from, place_of(x, s, i)};
    }
}

/* ---- moving -------------------------------------------------------------- */

static void pick_each(size_t size, const pick *p, int64_t n, const char *from,
                      char *out)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++)
            out[p[i].to] = from[p[i].at];
        return;
    case 2:
        for (int64_t i = 0; i < n; i++)
            memcpy(out + p[i].to * 2, from + p[i].at * 2, 2);
        return;
    case 4:
        for (int64_t i = 0; i < n; i++)
            memcpy(out + p[i].to * 4, from + p[i].at * 4, 4);
        return;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(out + p[i].to * 8, from + p[i].at * 8, 8);
    }
}

/* Moves element e of all windows. */
static void move_element(const lb_across *x, const lb_cpu *cpu,
                         const gather_scratch *s, int64_t e, const void *fill,
                         char *out)
{
    const size_t size = x->size, tile_size = lb_ctype_size(x->ctype);
    for (int64_t i = 0; i < s->n_lost; i++)
        memcpy(out + place_of(x, s, s->lost[i]) * (int64_t)size, fill, size);
    if (x->raw) {
        pick_each(size, s->pick, s->n, x->raw + e * (int64_t)size, out);
        return;
    }
    lb_array v = *x->a;
    v.shape.rank = 1;
    v.stride[0] = 1;
    for (int64_t k = 0, i = 0, p = 0; k < s->rounds; k++) {
        const spell *r = &s->round[k];
        for (; i < r->spans; i++) {
            const span *d = &s->span[i];
            v.offset = x->a->offset + e + d->from;
            v.shape.dim[0] = d->n;
            lb_tile_read_flat(cpu, &v, 0, d->n, x->ctype,
                              s->tile + (size_t)d->at * tile_size);
        }
        if (s->decoded != s->tile)
            lb_convert_kernel_for(cpu)->store(x->ctype, s->tile, x->a->dtype,
                                              r->n, s->decoded);
        pick_each(size, s->pick + p, r->picks - p, s->decoded, out);
        p = r->picks;
    }
}

/* Transposes the block, with m elements of each window, to the windows'
 * positions in the result, where they are contiguous. */
static void turn_block(const lb_across *x, const gather_scratch *s,
                       int64_t windows, int64_t m, char *out)
{
    enum { TOGETHER = 16 };
    _Alignas(64) char square[TOGETHER * BATCH * 8];
    const int64_t size = (int64_t)x->size;
    for (int64_t w = 0; w < windows; w += TOGETHER) {
        const int64_t n = lb_min_i64(windows - w, TOGETHER);
        lb_turn(x->size, s->block + w * size, x->group * size, square,
                BATCH * size, m, n);
        for (int64_t i = 0; i < n; i++)
            memcpy(out + s->to[w + i] * size, square + i * BATCH * size,
                   (size_t)(m * size));
    }
}

/* The offset of element e of a window in the operand and in the result. */
static void find_element(const lb_across *x, int64_t e, int64_t *from,
                         int64_t *to)
{
    const lb_shape *shape = &x->ws->window;
    *from = *to = 0;
    for (int k = shape->rank - 1; k >= 0; e /= shape->dim[k--]) {
        const int64_t i = e % shape->dim[k];
        *from += i * x->a->stride[x->ws->offset_in[k]];
        *to += i * x->stride[x->ws->offset_out[k]];
    }
}

/* Elements [e, end) of all windows of a group. */
static void move_piece(const lb_across *x, const lb_work *w, gather_scratch *s,
                       int64_t windows, int64_t e, int64_t end,
                       const void *fill)
{
    char *out = (char *)w->out->store->data + (size_t)w->out->offset * x->size;
    const int64_t size = (int64_t)x->size;
    int64_t from, to;
    if (!x->turned) {
        for (; e < end; e++) {
            find_element(x, e, &from, &to);
            move_element(x, w->call->cpu, s, from, fill, out + to * size);
        }
        return;
    }
    /* Elements are contiguous within the last axis whose size is not 1. */
    int64_t row = 1;
    for (int k = x->ws->window.rank - 1; k >= 0 && row == 1; k--)
        row = x->ws->window.dim[k];
    for (int64_t m; e < end; e += m) {
        m = lb_min_i64(lb_min_i64(end - e, BATCH), row - e % row);
        for (int64_t i = 0; i < m; i++) {
            find_element(x, e + i, &from, &to);
            move_element(x, w->call->cpu, s, from, fill,
                         s->block + i * x->group * size);
        }
        find_element(x, e, &from, &to);
        turn_block(x, s, windows, m, out + to * size);
    }
}

void lb_across_run(const lb_across *x, const lb_work *w, const void *fill)
{
    gather_scratch s;
    if (!w->scratch)
        return; /* for the analyzer: plan always requests
                 * scratch */
    lay_out(x, w->scratch, &s);
    int64_t have = -1, n = 0;
    for (int64_t u = w->lo; u < w->hi; u++) {
        const int64_t group = u / x->pieces, e = u % x->pieces * x->piece;
        if (group != have) {
            have = group;
            n = lb_min_i64(x->group, x->ws->count - group * x->group);
            look_up(x, w->call, group * x->group, n, &s);
        }
        move_piece(x, w, &s, n, e, lb_min_i64(e + x->piece, x->elements), fill);
    }
}
