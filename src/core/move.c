/* move.c - see move.h.
 *
 * Threads take blocks of rows, and these in tiles that stay in L2. A tile of
 * the source is decoded; codes are recovered from its values by the parameters
 * of their group, which is exact: an f32 is within 2^-23 of a code that is an
 * integer, and one that is not near an integer is refused. The codes are stored
 * with the new parameters, decoded, and compared with the tile.
 */
#include "core/move.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/convert.h"

enum {
    ROWS = 64,          /* of a tile, if the source is read down its columns */
    COLS = 2048,        /* of a tile, if it is read along its rows */
    TILE = 16384,       /* elements: 64 KB */
    ZERO_MOST = 1 << 20 /* zero point: sums with codes do not overflow */
};
_Static_assert((int)COLS <= (int)LB_RUN, "a row of a tile is decoded at once");

/* ---- schemes ------------------------------------------------------------- */

/* Doubled levels of E2M1, and IQ4_NL's: codes of integer levels, -1: none. */
enum { LEVELS = 241, E2M1_MOST = 12, IQ4_LEAST = -127 };
typedef struct level_table {
    int least, most;
    int16_t code[LEVELS];
} level_table;

static void fill_levels(lb_levels_kind kind, level_table *t)
{
    static const int8_t e2m1[] = {0, 1, 2, 3, 4, 6, 8, 12};
    static const int8_t iq4[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};
    memset(t->code, -1, sizeof t->code);
    if (kind == LB_LEVELS_E2M1) {
        t->least = -E2M1_MOST;
        t->most = E2M1_MOST;
        for (int c = 7; c >= 0; c--) {
            t->code[E2M1_MOST - e2m1[c]] = (int16_t)(c + 8);
            t->code[E2M1_MOST + e2m1[c]] = (int16_t)c;
        }
    } else {
        t->least = IQ4_LEAST;
        t->most = 113;
        for (int c = 0; c < 16; c++)
            t->code[iq4[c] - IQ4_LEAST] = (int16_t)c;
    }
}

bool lb_scheme_of(const lb_array *a, lb_scheme *to)
{
    lb_scheme s;
    lb_box b;
    const lb_recode *r = a->store->fmt->recode;
    if (!r || !r->scheme(a->store, &s)) return false;
    *to = s;
    /* A view of the whole store in its own order, or with permuted axes. */
    if (lb_is_row_major(a) && lb_shape_equal(&a->shape, &a->store->shape))
        return true;
    const int last = a->shape.rank - 1;
    const int stored = a->store->shape.rank - 1;
    memset(to->g, 0, sizeof to->g);
    if (lb_is_row_major(a) && last >= 0 &&
        a->shape.dim[last] == a->store->shape.dim[stored]) {
        for (int k = 0; k < last; k++)
            to->g[k] = 1; /* merged or split leading axes */
        to->g[last] = s.g[stored];
        for (int k = 0; k < stored; k++)
            if (s.g[k] != 1) return false;
        return true;
    }
    if (!lb_as_box(a, &b) || !lb_shape_equal(&b.shape, &a->store->shape))
        return false;
    for (int k = 0; k <= last; k++)
        to->g[k] = b.axis[k] < 0 ? 0 : s.g[b.axis[k]];
    return true;
}

int lb_scheme_bits(const lb_scheme *s)
{
    int bits = 1;
    while (bits < 16 && (1 << bits) - 1 < s->most - s->least)
        bits++;
    return bits;
}

const char *lb_move_excluded(const lb_scheme *from, const lb_scheme *to)
{
    if (from->levels != to->levels)
        return "its codes are on other levels than those of the target";
    return NULL;
}

/* ---- one group ----------------------------------------------------------- */

typedef struct mover {
    const lb_cpu *cpu;
    const lb_array *a; /* read as f32 */
    lb_store *to;
    lb_scheme from, goal;
    level_table levels;
    int64_t rows, row;    /* of a */
    int64_t each, cols;   /* rows of a unit, columns of a tile */
    int64_t group, piece; /* elements of a row that share parameters */
    bool copies;          /* codes have the same bytes in both */
    lb_move *part;        /* of each unit */
    _Atomic bool declined;
} mover;

/* Parameters in terms of the target, and what is added to codes. */
typedef struct target_param {
    lb_qparam p;
    int add;
} target_param;

static bool decline(lb_move *m, const char *why)
{
    if (!m->why[0]) snprintf(m->why, sizeof m->why, "%s", why);
    return false;
}

/* Bias as part of the zero point: it has to be a multiple of the scale, up to
 * the rounding of both to 8 bits. */
static bool whole_zero(const lb_qparam *p, double *zero, lb_move *m)
{
    *zero = p->zero;
    if (p->bias == 0) return true;
    const double real = (double)p->bias / (double)p->scale;
    const double whole = rint(real);
    if (!(fabs(real) < 1024) || fabs(real - whole) > 0x1p-8 * (1 + fabs(whole)))
        return decline(m, "a bias is not a multiple of its scale, so there is "
                          "no integer zero point");
    *zero -= whole;
    return true;
}

static bool express(const mover *v, const lb_qparam *p, target_param *to,
                    lb_move *m)
{
    const lb_scheme *f = &v->from, *g = &v->goal;
    double zero;
    to->p = (lb_qparam){.scale = p->scale};
    to->add = 0;
    if (!isfinite(p->scale) || !isfinite(p->bias))
        return decline(m, "a scale is not finite");
    if (p->zero < -ZERO_MOST || p->zero > ZERO_MOST)
        return decline(m, "a zero point is out of range");
    if (g->levels != LB_LEVELS_INT) return true;
    if (g->bias) {
        to->add = g->least - f->least;
        const double below =
            (double)p->scale * (double)(p->zero + to->add) - (double)p->bias;
        to->p.bias = (float)-below;
        return true;
    }
    if (!whole_zero(p, &zero, m)) return false;
    to->add = g->least - f->least;
    if (zero + to->add < g->zero_least) to->add = g->zero_least - (int)zero;
    if (zero + to->add > g->zero_most) to->add = g->zero_most - (int)zero;
    to->p.zero = (int)zero + to->add;
    return true;
}

static bool same_param(const lb_qparam *a, const lb_qparam *b)
{
    return memcmp(&a->scale, &b->scale, sizeof a->scale) == 0 &&
           memcmp(&a->bias, &b->bias, sizeof a->bias) == 0 &&
           a->zero == b->zero;
}

/* ---- codes --------------------------------------------------------------- */

/* Rounds to an integer, half to even, below 2^22. */
#define MAGIC 12582912.0f

/* Codes of n values, plus add. Returns the distance from integers. */
static float int_codes(const float *restrict x, int64_t n, const lb_qparam *p,
                       int add, int16_t *restrict code, int *least, int *most)
{
    const float by = 1 / p->scale, bias = p->bias;
    int lo = INT16_MAX, hi = INT16_MIN;
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        const float real = (x[i] - bias) * by;
        const float shifted = real + MAGIC;
        const float off = real - (shifted - MAGIC);
        int32_t bits;
        memcpy(&bits, &shifted, sizeof bits);
        const int c = (bits - 0x4b400000) + add;
        bad |= !(off < 0.0625f) | !(off > -0.0625f);
        lo = c < lo ? c : lo;
        hi = c > hi ? c : hi;
        code[i] = (int16_t)c;
    }
    *least = lo;
    *most = hi;
    return bad ? 1 : 0;
}

/* Codes that follow from levels. */
static bool level_codes(const level_table *t, const float *x, int64_t n,
                        float scale, int16_t *code)
{
    const double by = 1 / (double)scale;
    for (int64_t i = 0; i < n; i++) {
        /* If the scale is 0 so are all values: level 1 of all tables. */
        const double real = scale != 0 ? (double)x[i] * by : x[i] == 0;
        const double whole = rint(real);
        if (!(fabs(real - whole) < 0.0625) || whole < t->least ||
            whole > t->most)
            return false;
        code[i] = t->code[(int)whole - t->least];
        if (code[i] < 0) return false;
        if (whole == 0) code[i] = signbit(x[i]) ? 8 : 0; /* of E2M1 */
    }
    return true;
}

static bool in_range(const mover *v, const target_param *t, int least, int most,
                     lb_move *m)
{
    if (least >= v->goal.least && most <= v->goal.most) return true;
    if (!m->why[0])
        snprintf(m->why, sizeof m->why,
                 "codes %d ... %d with zero point %d do not fit into %d ... %d",
                 least, most, t->p.zero, v->goal.least, v->goal.most);
    return false;
}

/* at: the first element, in the source's store. */
static bool find_codes(const mover *v, const float *x, int64_t at, int64_t n,
                       const lb_qparam *p, const target_param *t, int16_t *code,
                       lb_move *m)
{
    static const char off[] = "values are not on the grid of their codes";
    const lb_recode *from = v->a->store->fmt->recode;
    int least, most;
    if (v->goal.levels != LB_LEVELS_INT)
        return (v->a->stride[1] == 1 && from->codes &&
                from->codes(v->a->store, at, n, code)) ||
               level_codes(&v->levels, x, n, p->scale, code) || decline(m, off);
    if (v->a->stride[1] == 1 && from->codes &&
        from->codes(v->a->store, at, n, code)) {
        least = INT16_MAX;
        most = INT16_MIN;
        for (int64_t i = 0; i < n; i++) {
            code[i] = (int16_t)(code[i] + t->add);
            if (code[i] < least) least = code[i];
            if (code[i] > most) most = code[i];
        }
        return in_range(v, t, least, most, m);
    }
    if (!isfinite(1 / p->scale)) { /* zero, or too small to divide by */
        for (int64_t i = 0; i < n; i++) {
            if (p->scale != 0) {
                const double c =
                    rint(((double)x[i] - (double)p->bias) / (double)p->scale);
                code[i] = (int16_t)(fabs(c) < 1024 ? c : 0);
                code[i] = (int16_t)(code[i] + p->zero + t->add);
            } else
                code[i] = (int16_t)(v->goal.bias ? v->goal.least : t->p.zero);
            if (code[i] < v->goal.least || code[i] > v->goal.most)
                return decline(m, off);
        }
        return true;
    }
    if (int_codes(x, n, p, p->zero + t->add, code, &least, &most) != 0)
        return decline(m, off);
    return in_range(v, t, least, most, m);
}

/* ---- tiles --------------------------------------------------------------- */

/* The store's element of (row, column) of the source. */
static int64_t element(const mover *v, int64_t r, int64_t c)
{
    const lb_array *a = v->a;
    int64_t e = a->offset + c * a->stride[a->shape.rank - 1];
    for (int k = a->shape.rank - 2; k >= 0; r /= a->shape.dim[k], k--)
        e += r % a->shape.dim[k] * a->stride[k];
    return e;
}

/* All groups of the source in columns [lo, hi) of a row share parameters. */
static bool one_param(const mover *v, int64_t r, int64_t lo, int64_t hi,
                      const lb_qparam *p, lb_move *m)
{
    const lb_recode *from = v->a->store->fmt->recode;
    const int64_t piece = v->piece ? v->piece : v->row;
    for (int64_t c = lo / piece * piece; c < hi; c += piece) {
        if (v->group && c <= lo / v->group * v->group) continue;
        const lb_qparam q = from->param(v->a->store, element(v, r, c));
        if (same_param(p, &q)) continue;
        if (!m->why[0])
            snprintf(m->why, sizeof m->why,
                     "%lld elements have parameters of their own, but %lld "
                     "share them in the target",
                     (long long)piece,
                     (long long)(v->group ? v->group : v->row));
        return false;
    }
    return true;
}

/* Elements of a group, as stored in source and target. */
typedef struct both_groups {
    const float *x, *y; /* decoded */
    const int16_t *code;
    int64_t n;
    lb_qparam from, to;
    int add; /* to the source's codes */
} both_groups;

/* Whether both denote the same real numbers. In f64 products of f32 with codes
 * are exact, and sums are, unless their terms are 2^29 apart. */
static bool same_reals(const mover *v, const both_groups *g)
{
    const lb_qparam *p = &g->from, *q = &g->to;
    if (p->rounded || q->rounded) return false;
    if (v->goal.levels != LB_LEVELS_INT) return p->scale == q->scale;
    /* The same for all codes, if it is for any: sums are exact. */
    if (!g->code)
        return p->scale == q->scale &&
               (double)p->bias - (double)p->scale * p->zero ==
                   (double)q->bias - (double)q->scale * q->zero;
    for (int64_t i = 0; i < g->n; i++) {
        const double a = (double)p->scale * (g->code[i] - g->add - p->zero);
        const double b = (double)q->scale * (g->code[i] - q->zero);
        if (a + (double)p->bias != b + (double)q->bias) return false;
    }
    return true;
}

static void compare(const mover *v, const both_groups *g, lb_move *m)
{
    double most = 0, size = 0;
    if (memcmp(g->x, g->y, (size_t)g->n * sizeof *g->x) == 0) return;
    if (m->exact) m->exact = same_reals(v, g);
    for (int64_t i = 0; i < g->n; i++) {
        const double d = fabs((double)g->x[i] - (double)g->y[i]);
        if (!(d <= most)) most = d;
        size = fmax(size, fabs((double)g->x[i]));
    }
    const double step = fabs((double)g->from.scale);
    const double steps = most / (step > 0 ? step : size);
    if (most != 0 && !(steps <= m->steps)) m->steps = steps;
}

/* Copies the codes of n elements from `at` of the source to `to`: both have the
 * same format, so bytes are the same if both begin and end with them. False:
 * they do not. */
static bool copy_codes(const mover *v, int64_t at, int64_t to, int64_t n)
{
    const lb_store *s = v->a->store;
    const int64_t g = s->part[0].g[s->shape.rank - 1];
    const int64_t own = lb_max_i64(s->part[0].own, 1);
    if (!v->copies || at % v->row % g || to % v->row % g) return false;
    memcpy((uint8_t *)lb_part_place(v->to, 0) + lb_part_entry(v->to, 0, to),
           (const uint8_t *)lb_part_bytes(s, 0) + lb_part_entry(s, 0, at),
           (size_t)(lb_ceil_div(n, g) * own));
    return true;
}

/* Stores the codes and parameters of a group, whose values are g->x. code: room
 * for them. */
static bool move_group(const mover *v, both_groups *g, int64_t at, int64_t to,
                       int16_t *code, lb_move *m)
{
    const lb_recode *r = v->to->fmt->recode;
    target_param t;
    if (!express(v, &g->from, &t, m)) return false;
    g->add = t.add;
    g->code = NULL;
    if (t.add == 0 && copy_codes(v, at, to, g->n)) {
        r->set(v->to, to, &t.p);
        return true;
    }
    if (!find_codes(v, g->x, at, g->n, &g->from, &t, code, m)) return false;
    r->put(v->to, to, g->n, code, &t.p);
    g->code = code;
    return true;
}

/* Columns [lo, lo + n) of row r, decoded at x. */
static bool move_row(const mover *v, int64_t r, int64_t lo, int64_t n,
                     const float *x, lb_move *m)
{
    const lb_recode *from = v->a->store->fmt->recode;
    const lb_recode *to = v->to->fmt->recode;
    int16_t code[COLS];
    float y[COLS];
    for (int64_t c = lo, end; c < lo + n; c = end) {
        const int64_t first = v->group ? c / v->group * v->group : 0;
        const int64_t past = v->group ? first + v->group : v->row;
        const int64_t at = r * v->row + c;
        end = lb_min_i64(past, lo + n);
        both_groups g = {.x = x + (c - lo),
                         .y = y + (c - lo),
                         .code = code,
                         .n = end - c,
                         .from =
                             from->param(v->a->store, element(v, r, first))};
        if (!one_param(v, r, c, end, &g.from, m) ||
            !move_group(v, &g, element(v, r, c), at, code, m))
            return false;
        v->to->fmt->decode(v->cpu, v->to, at, g.n, y + (c - lo));
        g.to = to->param(v->to, at);
        compare(v, &g, m);
    }
    if (n % LB_APART_BLOCK)
        lb_apart_plain(x, y, n, &m->sums);
    else
        lb_apart_for(v->cpu)(x, y, n, &m->sums);
    return m->steps <= 0.5 ||
           decline(m, "a scale or a bias is out of the range of the target");
}

static bool move_tile(const mover *v, int64_t r, int64_t c, int64_t rows,
                      int64_t cols, lb_move *m)
{
    _Alignas(64) float tile[TILE];
    const int64_t lo[] = {r, c}, n[] = {rows, cols};
    lb_tile_read(v->cpu, v->a, lo, n, LB_C_F32, tile);
    for (int64_t i = 0; i < rows; i++)
        if (!move_row(v, r + i, c, cols, tile + i * cols, m)) return false;
    return true;
}

static void move_units(void *arg, int64_t lo, int64_t hi, int thread)
{
    mover *v = arg;
    (void)thread;
    for (int64_t u = lo; u < hi; u++) {
        lb_move *m = &v->part[u];
        const int64_t r = u * v->each;
        const int64_t rows = lb_min_i64(v->each, v->rows - r);
        *m = (lb_move){.exact = true};
        for (int64_t c = 0; c < v->row && !v->declined; c += v->cols)
            if (!move_tile(v, r, c, rows, lb_min_i64(v->cols, v->row - c), m))
                v->declined = true;
    }
}

/* ---- all of it ----------------------------------------------------------- */

static void add_parts(const mover *v, int64_t units, lb_move *m)
{
    for (int64_t u = 0; u < units; u++) {
        const lb_move *p = &v->part[u];
        m->sums.apart += p->sums.apart;
        m->sums.nonfinite += p->sums.nonfinite;
        m->sums.aa += p->sums.aa;
        m->sums.bb += p->sums.bb;
        m->sums.ab += p->sums.ab;
        m->sums.dd += p->sums.dd;
        if (p->sums.max > m->sums.max) m->sums.max = p->sums.max;
        if (p->steps > m->steps) m->steps = p->steps;
        m->exact &= p->exact;
        if (p->why[0]) decline(m, p->why);
    }
}

static lb_verdict run(lb_ctx *cx, mover *v, lb_move *m)
{
    size_t got;
    const int64_t units = lb_ceil_div(v->rows, v->each);
    v->part = lb_heap_alloc(cx->heap, (size_t)units * sizeof *v->part, &got);
    if (!v->part) {
        lb_fail(cx, LB_E_NOMEM, "move: out of memory");
        return LB_FAILED;
    }
    memset(v->part, 0, (size_t)units * sizeof *v->part);
    lb_pool_run(cx->pool, units, move_units, v);
    add_parts(v, units, m);
    lb_heap_free(cx->heap, v->part, got);
    return v->declined ? LB_DECLINED : LB_DONE;
}

/* The groups of rows: a scale of the target is written by one thread. */
static bool set_schemes(mover *v, lb_move *m)
{
    const lb_array *a = v->a;
    const lb_recode *r = v->to->fmt->recode;
    if (!lb_scheme_of(a, &v->from)) {
        snprintf(m->why, sizeof m->why,
                 "%s with such scales and groups cannot be expressed as %s",
                 a->store->fmt->name, v->to->fmt->name);
        return false;
    }
    if (!r || !r->scheme(v->to, &v->goal) || !v->goal.stores)
        return decline(m,
                       "nothing can be moved to this type without quantizing");
    const char *why = lb_move_excluded(&v->from, &v->goal);
    if (why) return decline(m, why);
    const int last = v->to->shape.rank - 1;
    for (int k = 0; k < last; k++)
        if (v->goal.g[k] != 1 && v->to->shape.dim[k] != 1)
            return decline(m, "rows share scales in the target");
    if (last < 0 || v->to->shape.dim[last] != v->row)
        return decline(m, "the target stores other rows");
    v->group = v->goal.g[last];
    v->piece = v->from.g[1];
    v->copies = a->store->fmt == v->to->fmt && r->set && a->stride[1] == 1 &&
                a->store->shape.rank > 0 &&
                a->store->shape.dim[a->store->shape.rank - 1] == v->row &&
                a->store->part[0].g[a->store->shape.rank - 1] > 0;
    if (v->goal.levels != LB_LEVELS_INT)
        fill_levels(v->goal.levels, &v->levels);
    return true;
}

static lb_array *two_axes(lb_ctx *cx, lb_array *a, lb_move *m)
{
    const int last = a->shape.rank - 1;
    const int64_t row = last < 0 ? 0 : a->shape.dim[last];
    if (!row || !lb_shape_size(&a->shape)) {
        decline(m, "it has no elements or no axes");
        return NULL;
    }
    lb_array *v =
        lb_view(cx, lb_reshape(cx, a, LB_SHAPE(lb_size(a) / row, row)));
    if (!v) return NULL;
    v->dtype = LB_F32; /* values before they are rounded to the dtype */
    if (v->store->fmt == a->store->fmt) return v;
    decline(m, "this view of it cannot be read by rows");
    return NULL;
}

lb_array *lb_move_alloc(lb_ctx *cx, const lb_array *a, const lb_move_target *t)
{
    lb_quant q;
    lb_layout l;
    if (!lb_quant_of(cx, "move", &t->config, a->shape.rank, &q) ||
        !lb_layout_of(cx, &q, a->dtype, &a->shape, &l))
        return NULL;
    for (int p = 0; p < LB_MAX_PARTS && q.format->part[p].name; p++)
        if (t->elem[p]) l.elem[p] = t->elem[p];
    lb_array *out = lb_layout_alloc(cx, &q, &l, &a->shape);
    if (out && q.format->prepare) q.format->prepare(&q, out->store);
    return out;
}

static lb_verdict move(lb_ctx *cx, lb_array *a, const lb_move_target *t,
                       lb_array **out, lb_move *m)
{
    *out = lb_move_alloc(cx, a, t);
    lb_array *x = *out ? two_axes(cx, a, m) : NULL;
    if (!x) return m->why[0] ? LB_DECLINED : LB_FAILED;
    const bool rows = x->stride[1] == 1;
    mover v = {.cpu = &cx->cpu,
               .a = x,
               .to = (*out)->store,
               .rows = x->shape.dim[0],
               .row = x->shape.dim[1],
               .each = rows ? TILE / COLS : ROWS,
               .cols = rows ? COLS : TILE / ROWS};
    m->exact = true;
    if (!set_schemes(&v, m)) return LB_DECLINED;
    if (t->zero_most && t->zero_most < v.goal.zero_most)
        v.goal.zero_most = t->zero_most;
    if (t->least && t->least > v.goal.least) v.goal.least = t->least;
    return run(cx, &v, m);
}

lb_verdict lb_move_array(lb_ctx *cx, lb_array *a, const lb_move_target *t,
                         lb_array **out, lb_move *m)
{
    *m = (lb_move){0};
    *out = NULL;
    if (!a || !(a = lb_here(cx, a))) return LB_FAILED;
    lb_enter(cx);
    const lb_verdict v = move(cx, a, t, out, m);
    *out = lb_leave_with(cx, v == LB_DONE ? *out : NULL);
    return v == LB_DONE && !*out ? LB_FAILED : v;
}
