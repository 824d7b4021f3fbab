/* attention_f32.c - attention in f32, one pass over the keys.
 *
 * A unit is a kv head with some of the queries of its heads: `rows` rows. Keys
 * come in blocks. Per row a running maximum m, the sum l of exp(s - m), and the
 * sum of exp(s - m) v; when m grows, both sums shrink by exp(m_old - m_new).
 *
 *     wide    up to 128 rows: k is packed into panels, scores are tiles of
 *             gemm.h
 *     thin    up to 8 rows (generation): keys and values are read where they
 *             are, if they are f32; units are also chunks of 512 keys, whose
 *             sums phase 1 combines
 *
 * What is not f32 is decoded block by block. Of integers with a scale per row
 * only the codes are converted, all rows at once: scores are multiplied by the
 * scales of keys, weights by the scales of values. Units and chunks depend on
 * shapes and the number of valid keys, never on threads.
 */
#include <math.h>
#include <string.h>

#include "kernels/attend.h"
#include "kernels/few.h"
#include "kernels/lanes_f32.h"
#include "kernels/mathf.h"
#include "prims/attention.h"

enum {
    THIN = 8,   /* most rows of a thin unit */
    WIDE = 128, /* and of a wide one */
    KEYS = 128, /* of a block of a wide unit */
    CHUNK = 512 /* of a thin unit, which is one block: 6 % faster than four */
};

typedef struct {
    lb_attend a;
    lb_attend_codes codes[2]; /* keys, values */
    const lb_gemm_kernel *tiles;
    const lb_few_kernel *few;
    const lb_attend_kernel *inner;
    lb_lanes_fn *tanh;
    bool thin;
    int64_t queries;       /* of a unit */
    int64_t rows;          /* group * queries */
    int64_t blocks;        /* of queries */
    int64_t keys;          /* of a block */
    int64_t chunks, chunk; /* of keys, and their size */
    int64_t state;         /* floats of a thin unit's result: sums, m, l */
    /* scratch, in floats */
    int64_t q_at, packed_at, k_at, v_at, s_at, t_at, row_at, scale_at[2];
    int64_t sums_at, n;
} grid;
_Static_assert(sizeof(grid) <= LB_PLAN_NOTE, "it is kept in plan->note");

static int64_t lines(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

static int64_t take(grid *g, int64_t floats)
{
    const int64_t at = g->n;
    g->n += lines(floats);
    return at;
}

static void place_scratch(grid *g)
{
    const lb_attend *a = &g->a;
    const int64_t nr = g->tiles->nr, keys = (g->keys + nr - 1) / nr * nr;
    g->q_at = take(g, g->rows * a->d);
    g->packed_at = take(g, g->thin ? lb_few_floats(g->few, g->rows, a->d)
                                   : g->rows * a->d + keys * a->d);
    g->k_at = take(g, g->keys * a->d);
    g->v_at = take(g, g->keys * a->dv);
    g->s_at = take(g, g->rows * g->keys);
    g->t_at = take(g, g->thin ? THIN * g->keys : 0);
    g->row_at = take(g, g->keys);
    for (int i = 0; i < 2; i++)
        g->scale_at[i] = take(g, g->codes[i].code ? g->keys : 0);
    g->sums_at = take(g, g->state);
}

static void make_grid(const lb_call *c, grid *g)
{
    const lb_lanes_f32 *lanes = lb_lanes_f32_for(c->cpu);
    *g = (grid){
        .a = lb_attend_of(c),
        .codes = {lb_attend_codes_of(c->cpu, c->in[1]),
                  lb_attend_codes_of(c->cpu, c->in[2])},
        .tiles = lb_gemm_kernel_for(c->cpu),
        .few = lb_few_kernel_for(c->cpu),
        .inner = lb_attend_kernel_for(c->cpu),
        .tanh = lanes->run[LB_LANE_tanh],
    };
    const lb_attend *a = &g->a;
    const int64_t all = a->group * a->queries;
    g->thin = all <= THIN && a->d <= LB_FEW_KC;
    g->queries =
        g->thin ? a->queries
                : lb_min_i64(a->queries,
                             lb_max_i64(WIDE / lb_max_i64(a->group, 1), 1));
    g->rows = a->group * g->queries;
    g->blocks = g->queries ? lb_ceil_div(a->queries, g->queries) : 0;
    g->keys = lb_min_i64(g->thin ? CHUNK : KEYS, a->keys);
    g->state = g->rows * (a->dv + 2);
    g->chunk = g->thin ? CHUNK : lb_max_i64(a->keys, 1);
    g->chunks = 1;
    if (g->thin) {
        int64_t most = 1;
        for (int64_t b = 0; b < a->batch; b++)
            most = lb_max_i64(most, lb_attend_valid(c, a, b));
        g->chunks = lb_ceil_div(most, CHUNK);
    }
    place_scratch(g);
}

void lb_attend_plan_f32(const lb_call *c, lb_plan *plan)
{
    grid *g = plan->note;
    make_grid(c, g);
    const int64_t units = g->a.batch * g->a.kv_heads * g->blocks;
    plan->kernel = g->codes[0].code || g->codes[1].code ? "attend codes"
                   : g->thin                            ? g->few->name
                                                        : g->tiles->name;
    if (!lb_shape_size(&c->shape)) return;
    plan->per_thread = (size_t)g->n * sizeof(float);
    plan->phases = g->thin ? 2 : 1;
    plan->units[0] = units * g->chunks;
    plan->units[1] = units;
    if (g->thin)
        plan->shared =
            (size_t)(units * g->chunks * lines(g->state)) * sizeof(float);
}

/* ---- a unit -------------------------------------------------------------- */

typedef struct {
    const lb_work *w;
    const grid *g;
    float *scratch;
    int64_t batch, head; /* of keys */
    int64_t first, n;    /* queries */
    int64_t rows, valid;
    float *sums, *m, *l; /* (rows, dv), (rows), (rows) */
} unit;

/* Row r is query first + r % n of head r / n of the group. */
static void load_queries(const unit *u)
{
    const lb_attend *a = &u->g->a;
    float *q = u->scratch + u->g->q_at;
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
    for (int64_t r = 0; r < u->rows; r++) {
        lb_attend_box(a, false, u->batch, u->head * a->group + r / u->n,
                      u->first + r % u->n, 1, a->d, lo, n);
        lb_tile_read(u->w->call->cpu, u->w->call->in[0], lo, n, LB_C_F32,
                     q + r * a->d);
    }
    u->g->inner->times(q, u->rows * a->d, (float)a->params->scale);
    float *to = u->scratch + u->g->packed_at;
    if (u->g->thin)
        lb_few_pack(u->g->few, q, a->d, 1, u->rows, a->d, to);
    else
        lb_gemm_pack_rows(q, a->d, 1, u->rows, a->d, u->g->tiles->mr, to);
}

/* Element 0 of row 0 of keys or values, in the store. */
static int64_t start_of(const unit *u, const lb_array *x)
{
    const lb_attend *a = &u->g->a;
    return x->offset + (a->lead ? u->batch * x->stride[0] : 0) +
           u->head * x->stride[a->kh];
}

/* The scales of keys or values [first, first + n); NULL: they have none. */
static const float *scales_of(const unit *u, int operand, int64_t first,
                              int64_t n)
{
    const lb_array *x = u->w->call->in[operand];
    const lb_attend_codes *c = &u->g->codes[operand - 1];
    const int64_t step = x->stride[u->g->a.kt];
    float *to = u->scratch + u->g->scale_at[operand - 1];
    if (!c->code) return NULL;
    lb_attend_scales(c, start_of(u, x) + first * step, step, n, to);
    return to;
}

static void multiply(float *x, const float *by, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        x[j] *= by[j];
}

/* Rows [first, first + n) of k or v: where they are, or decoded. If they are
 * codes, without their scales. */
static const float *load(const unit *u, int operand, int64_t first, int64_t n,
                         int64_t *ld)
{
    const lb_attend *a = &u->g->a;
    const lb_cpu *cpu = u->w->call->cpu;
    const lb_array *x = u->w->call->in[operand];
    const lb_attend_codes *codes = &u->g->codes[operand - 1];
    const int64_t size = operand == 1 ? a->d : a->dv, step = x->stride[a->kt];
    const int64_t at = start_of(u, x) + first * step;
    const float *p = x->dtype == LB_F32 ? lb_elements(x) : NULL;
    float *to = u->scratch + (operand == 1 ? u->g->k_at : u->g->v_at);
    int64_t lo[LB_MAX_RANK], count[LB_MAX_RANK];
    if (p && (x->stride[a->lead + 2] == 1 || size == 1)) {
        *ld = step;
        return p + (at - x->offset);
    }
    *ld = size;
    if (codes->code) {
        lb_attend_convert(cpu, codes, at, step, n, to);
        return to;
    }
    lb_attend_box(a, true, u->batch, u->head, first, n, size, lo, count);
    lb_tile_read(cpu, x, lo, count, LB_C_F32, to);
    return to;
}

/* Scores of all rows with n keys: row r at s + r*keys. */
static void score(const unit *u, int64_t first, int64_t n)
{
    const grid *g = u->g;
    const int64_t d = g->a.d;
    float *s = u->scratch + g->s_at, *x = u->scratch + g->packed_at;
    int64_t ld;
    const float *k = load(u, 1, first, n, &ld);
    if (!d) {
        memset(s, 0, (size_t)(u->rows * g->keys) * sizeof *s);
        return;
    }
    if (g->thin) {
        float *t = u->scratch + g->t_at;
        const int64_t ldt = LB_FEW_ROWS * g->keys;
        lb_few_along(g->few, u->rows, d, x, k, ld, n, t, ldt, true,
                     (lb_few_next){0});
        for (int64_t r = 0; r < u->rows; r++)
            lb_few_row(t, ldt, u->rows, r, n, s + r * g->keys, 1);
        return;
    }
    float *panels = x + g->rows * d;
    const int nr = g->tiles->nr;
    int64_t j = 0;
    for (; j + nr <= n && g->tiles->pack; j += nr)
        g->tiles->pack(k + j * ld, ld, d, panels + j * d);
    if (j < n) lb_gemm_pack(k + j * ld, ld, 1, n - j, d, nr, panels + j * d, d);
    lb_gemm_block(g->tiles, u->rows, n, d, x, panels, nr, d, s, g->keys, true,
                  NULL);
}

static void lanes(lb_lanes_fn *run, const float *x, int64_t n, float *y)
{
    run(&(lb_lanes){.n = n, .bits = 32, .in = {x}, .out = y});
}

static void cap(const unit *u, float *s, int64_t n)
{
    const float c = (float)u->g->a.params->soft_cap;
    float *row = u->scratch + u->g->row_at;
    u->g->inner->times(s, n, 1 / c);
    lanes(u->g->tanh, s, n, row);
    u->g->inner->times(row, n, c);
    memcpy(s, row, (size_t)n * sizeof *s);
}

/* Of the keys [first, first + n), row r sees those from a to b. */
typedef struct key_span {
    int64_t a, b;
} key_span;

static key_span seen_of(const unit *u, int64_t r, int64_t first, int64_t n)
{
    int64_t lo, hi;
    lb_attend_seen(&u->g->a, u->valid, u->first + r % u->n, &lo, &hi);
    const int64_t a = lb_min_i64(lb_max_i64(lo - first, 0), n);
    return (key_span){a, lb_max_i64(lb_min_i64(hi - first, n), a)};
}

/* Scores [a, b) of a row become weights. */
static void weigh(const unit *u, int64_t r, float *s, int64_t a, int64_t b)
{
    const lb_attend_kernel *k = u->g->inner;
    if (b <= a) return;
    if (u->g->a.params->soft_cap > 0) cap(u, s + a, b - a);
    const float most = fmaxf(u->m[r], k->most(s + a, b - a));
    if (most == -INFINITY) { /* weights of 0, not exp(-inf + inf) */
        for (int64_t j = a; j < b; j++) {
            if (isnan(s[j])) u->l[r] = NAN;
            s[j] = 0;
        }
        return;
    }
    if (most > u->m[r]) {
        const float by = lb_expf(u->m[r] - most);
        u->l[r] *= by;
        k->times(u->sums + r * u->g->a.dv, u->g->a.dv, by);
        u->m[r] = most;
    }
    u->l[r] += k->weigh(s + a, b - a, most);
}

/* Adds values [a, b) to the sums of rows [r, r + m). */
static void add_values(const unit *u, int64_t r, int64_t m, key_span x,
                       const float *v, int64_t ld)
{
    const grid *g = u->g;
    const float *p = u->scratch + g->s_at + r * g->keys + x.a;
    if (x.b > x.a)
        g->inner->mix(m, x.b - x.a, g->a.dv, p, g->keys, v + x.a * ld, ld,
                      u->sums + r * g->a.dv, g->a.dv);
}

/* Adds to each row the values it sees, in order: a few neighbours together
 * those that all of them see, and each by itself what is before and behind. */
static void mix(const unit *u, int64_t first, int64_t n, const float *v,
                int64_t ld)
{
    enum { FEW = 6 }; /* rows that a kernel takes at a time */
    for (int64_t r = 0, m; r < u->rows; r += m) {
        key_span all = seen_of(u, r, first, n);
        const key_span one = all;
        for (m = 1; r + m < u->rows; m++) {
            const key_span x = seen_of(u, r + m, first, n);
            const bool same = x.a == one.a && x.b == one.b;
            if (!same && m >= FEW) break;
            const key_span both = {lb_max_i64(all.a, x.a),
                                   lb_min_i64(all.b, x.b)};
            if (both.b <= both.a) break;
            all = both;
        }
        for (int64_t i = r; i < r + m; i++)
            add_values(u, i, 1, (key_span){seen_of(u, i, first, n).a, all.a}, v,
                       ld);
        add_values(u, r, m, all, v, ld);
        for (int64_t i = r; i < r + m; i++)
            add_values(u, i, 1, (key_span){all.b, seen_of(u, i, first, n).b}, v,
                       ld);
    }
}

static void one_block(const unit *u, int64_t first, int64_t n)
{
    const grid *g = u->g;
    float *s = u->scratch + g->s_at;
    const float *k = scales_of(u, 1, first, n), *v = scales_of(u, 2, first, n);
    int64_t ld;
    score(u, first, n);
    for (int64_t r = 0; r < u->rows; r++) {
        const key_span x = seen_of(u, r, first, n);
        float *row = s + r * g->keys;
        if (k) multiply(row + x.a, k + x.a, x.b - x.a);
        weigh(u, r, row, x.a, x.b);
        if (v) multiply(row + x.a, v + x.a, x.b - x.a);
    }
    const float *values = load(u, 2, first, n, &ld);
    mix(u, first, n, values, ld);
}

/* The keys that any query of the unit sees, of those in [from, end). */
static void all_blocks(const unit *u, int64_t from, int64_t end)
{
    const grid *g = u->g;
    int64_t lo, hi, none;
    lb_attend_seen(&g->a, u->valid, u->first, &lo, &none);
    lb_attend_seen(&g->a, u->valid, u->first + u->n - 1, &none, &hi);
    lo = lb_max_i64(lo, from);
    hi = lb_min_i64(hi, end);
    if (hi <= lo) return;
    for (int64_t j = lo / g->keys * g->keys; j < hi; j += g->keys) {
        const int64_t at = lb_max_i64(j, from);
        one_block(u, at, lb_min_i64(j + g->keys, hi) - at);
    }
}

/* Rows divided by the sums of their weights. */
static void finish(const unit *u)
{
    const lb_attend *a = &u->g->a;
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
    for (int64_t r = 0; r < u->rows; r++) {
        float *y = u->sums + r * u->g->a.dv;
        lb_attend_seen(a, u->valid, u->first + r % u->n, &lo[0], &n[0]);
        const bool seen = n[0] > lo[0];
        if (seen)
            u->g->inner->times(y, a->dv, 1 / u->l[r]);
        else
            memset(y, 0, (size_t)a->dv * sizeof *y);
        lb_attend_box(a, false, u->batch, u->head * a->group + r / u->n,
                      u->first + r % u->n, 1, a->dv, lo, n);
        lb_tile_write(u->w->call->cpu, u->w->out, lo, n, LB_C_F32, y);
    }
}

static unit make_unit(const lb_work *w, const grid *g, int64_t k, float *sums)
{
    unit u = {.w = w, .g = g, .scratch = w->scratch, .sums = sums};
    u.first = k % g->blocks * g->queries;
    k /= g->blocks;
    u.head = k % g->a.kv_heads;
    u.batch = k / g->a.kv_heads;
    u.n = lb_min_i64(g->queries, g->a.queries - u.first);
    u.rows = g->a.group * u.n;
    u.valid = lb_attend_valid(w->call, &g->a, u.batch);
    u.m = sums + g->rows * g->a.dv;
    u.l = u.m + g->rows;
    return u;
}

static void begin(const unit *u)
{
    memset(u->sums, 0, (size_t)u->g->state * sizeof *u->sums);
    for (int64_t r = 0; r < u->rows; r++)
        u->m[r] = -INFINITY;
    load_queries(u);
}

/* ---- eval ---------------------------------------------------------------- */

static float *state_of(const lb_work *w, const grid *g, int64_t k)
{
    return (float *)w->shared + k * lines(g->state);
}

/* Adds up the chunks of a unit, in order, in the first one's place. */
static void combine(const lb_work *w, const grid *g, int64_t k)
{
    const unit u = make_unit(w, g, k, state_of(w, g, k * g->chunks));
    for (int64_t c = 1; c < g->chunks; c++) {
        const unit x = make_unit(w, g, k, state_of(w, g, k * g->chunks + c));
        for (int64_t r = 0; r < u.rows; r++) {
            const float most = fmaxf(u.m[r], x.m[r]);
            /* Both are -inf where no key is seen, or all scores are. */
            const float a = u.m[r] == most ? 1 : lb_expf(u.m[r] - most);
            const float b = x.m[r] == most ? 1 : lb_expf(x.m[r] - most);
            float *to = u.sums + r * g->a.dv;
            const float *from = x.sums + r * g->a.dv;
            for (int64_t i = 0; i < g->a.dv; i++)
                to[i] = to[i] * a + from[i] * b;
            u.l[r] = u.l[r] * a + x.l[r] * b;
            u.m[r] = most;
        }
    }
    finish(&u);
}

void lb_attend_eval_f32(const lb_work *w)
{
    const grid *g = w->plan->note;
    for (int64_t k = w->lo; k < w->hi; k++) {
        if (w->phase) {
            combine(w, g, k);
        } else if (g->thin) {
            const unit u = make_unit(w, g, k / g->chunks, state_of(w, g, k));
            const int64_t from = k % g->chunks * g->chunk;
            begin(&u);
            all_blocks(&u, from, from + g->chunk);
        } else {
            const unit u = make_unit(w, g, k, (float *)w->scratch + g->sums_at);
            begin(&u);
            all_blocks(&u, 0, g->a.keys);
            finish(&u);
        }
    }
}
