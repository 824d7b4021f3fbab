/* i8_encode.c - computes i8 codes and their scales; see i8_encode.h.
 *
 * Adjacent axes that both share a scale, or both do not, are merged. Then
 *
 *   GROUPS  for contiguous groups that are small enough for the cache: max |x|,
 *           scale and codes of one group (or several short ones) at a time
 *   STRIPS  otherwise, in phases: max |x| of all groups, collected in any order
 *           in the memory of the scales; then scales; then codes. A unit is a
 *           strip of some rows.
 *   TILES   the same, for sources that are not row-major
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "formats/config.h"
#include "formats/i8_encode.h"
#include "kernels/convert.h"
#include "kernels/encode.h"

enum { CODES = LB_I8_CODES, SCALE = LB_I8_SCALE };
enum { MOST = 127 };
enum { GROUPS, STRIPS, TILES };
enum { FIND, MAKE, PUT, INVERT }; /* phases */
enum {
    PIECE = 8192,   /* elements read at a time, approximately */
    LONG = 1 << 16, /* longest group, in elements, that stays in cache */
    UNIT = 1 << 16, /* elements per unit of work, approximately */
    SOME = 1024     /* scales per unit */
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- distribution of the work -------------------------------------------- */

typedef struct {
    int way;
    int rank;                                  /* number of merged axes */
    int64_t n[LB_MAX_RANK], step[LB_MAX_RANK]; /* sizes; strides of the
                                                * scales */
    int64_t rows, cols;                        /* cols: the last axis */
    int64_t g;                                 /* elements of a row per scale */
    int64_t each;                              /* scales per row */
    int64_t piece, pieces; /* elements of a row processed at a time (in GROUPS:
                            * whole groups); pieces per row */
    int64_t unit, units;   /* pieces (GROUPS) or rows (STRIPS) per unit; units
                            * in total */
} i8_cuts;

/* Merges axes. part: the scale's. For a nonempty array. */
static void join_axes(const lb_shape *shape, const lb_part *part, i8_cuts *c)
{
    const int last = shape->rank - 1;
    int64_t step = 1, of[LB_MAX_RANK] = {0}, kind[LB_MAX_RANK];
    for (int k = last; k >= 0; k--) {
        of[k] = part->g[k] ? step : 0;
        if (part->g[k]) step *= ceil_div(shape->dim[k], part->g[k]);
    }
    for (int k = 0; k <= last; k++) {
        const int64_t n = shape->dim[k], g = part->g[k];
        const int at = c->rank - 1;
        if (n == 1) continue;
        if (at >= 0 && g <= 1 && kind[at] == g) {
            c->n[at] *= n;
            c->step[at] = of[k];
            continue;
        }
        kind[c->rank] = g;
        c->n[c->rank] = n;
        c->step[c->rank++] = of[k];
    }
    if (!c->rank) {
        kind[0] = 0;
        c->n[c->rank++] = 1;
    }
    c->cols = c->n[c->rank - 1];
    c->rows = lb_shape_size(shape) / c->cols;
    const int64_t g = kind[c->rank - 1];
    c->g = g && g < c->cols ? g : g == 1 ? 1 : c->cols;
}

/* Whether groups are contiguous, in the order of their scales. */
static bool in_order(const i8_cuts *c)
{
    int64_t step = ceil_div(c->cols, c->g);
    for (int k = c->rank - 2; k >= 0; k--) {
        if (c->step[k] != step) return false;
        step *= c->n[k];
    }
    return true;
}

/* Whether the last axis is the contiguous one. */
static bool lies_in_rows(const lb_array *a)
{
    const int last = a->shape.rank - 1;
    if (last < 0 || a->shape.dim[last] == 1 || a->stride[last] == 1 ||
        a->stride[last] == 0)
        return true;
    for (int k = 0; k < last; k++)
        if (a->stride[k] == 1 && a->shape.dim[k] > 1) return false;
    return true;
}

static void cut_groups(i8_cuts *c)
{
    if (c->cols % c->g == 0) { /* rows end where groups do */
        c->cols *= c->rows;
        c->rows = 1;
    }
    c->each = ceil_div(c->cols, c->g);
    c->piece = most_of(PIECE / c->g, 1) * c->g;
    c->pieces = ceil_div(c->cols, c->piece);
    c->unit = most_of(UNIT / least(c->piece, c->cols), 1);
    c->units = ceil_div(c->rows * c->pieces, c->unit);
}

static void cut_strips(i8_cuts *c)
{
    c->each = ceil_div(c->cols, c->g);
    c->piece = least(c->cols, PIECE);
    c->pieces = ceil_div(c->cols, c->piece);
    c->unit = most_of(UNIT / c->piece, 1);
    c->units = ceil_div(c->rows, c->unit) * c->pieces;
}

/* apart: groups are shared with other slices, which requires phases. */
static i8_cuts cuts_of(const lb_array *in, const lb_part *part, bool apart)
{
    i8_cuts c = {.way = STRIPS, .piece = 1, .pieces = 1};
    if (!lb_shape_size(&in->shape)) return c; /* but there may be scales */
    join_axes(&in->shape, part, &c);
    if (!lies_in_rows(in))
        c.way = TILES;
    else if (!apart && c.g <= LONG && in_order(&c))
        c.way = GROUPS;
    if (c.way == GROUPS)
        cut_groups(&c);
    else
        cut_strips(&c);
    if (c.way == TILES) {
        const lb_tiling t = lb_tiling_for(&in->shape, &in, 1);
        c.piece = t.size;
        c.units = t.tiles;
    }
    return c;
}

static bool is_apart(const lb_call *c)
{
    return c->whole && c->whole->reduce;
}

void lb_i8_plan(const lb_call *call, lb_plan *to)
{
    const lb_array *in = call->in[0];
    const lb_quant *q = call->params;
    lb_layout l = {.meaning = (int)q->meaning, .dtype = LB_F32};
    q->format->layout(NULL, q, in->dtype, &in->shape, &l);
    const lb_shape scale = lb_part_shape(&in->shape, &l.part[SCALE]);
    const int64_t some = ceil_div(lb_shape_size(&scale), SOME);
    const i8_cuts c = cuts_of(in, &l.part[SCALE], is_apart(call));
    /* A piece; factors of its groups, and one per element. */
    to->per_thread =
        (size_t)(most_of(c.piece, PIECE) + 2 * PIECE) * sizeof(float);
    to->phases = 1;
    to->units[FIND] = c.units;
    if (c.way == GROUPS) return;
    to->phases = l.meaning == LB_MEANS_INVERSE ? INVERT + 1 : PUT + 1;
    to->units[MAKE] = l.meaning == LB_MEANS_ABSMAX ? 0 : some;
    to->units[PUT] = c.units;
    to->units[INVERT] = some;
}

typedef struct {
    const lb_work *work;
    const lb_encode_kernel *kernel;
    const lb_quant *q;
    int meaning;
    lb_quotient how;
    i8_cuts c;
    int8_t *codes;
    char *scale;
    lb_dtype d;          /* of the scale */
    float *x;            /* a piece */
    float *f, *e;        /* max |x| or factors: per group, per element */
    int64_t held, holds; /* the scales that f holds: first index, number */
} i8_job;

static lb_quotient how_of(const lb_quant *q, lb_dtype d)
{
    if (lb_config_is_bnb(q)) return LB_PRODUCT;
    return d == LB_F16    ? LB_QUOTIENT_F16 /* only with compat eformer */
           : d == LB_BF16 ? LB_QUOTIENT_BF16
                          : LB_QUOTIENT;
}

static i8_job job_of(const lb_work *w)
{
    lb_store *s = w->out->store;
    const lb_part *part = &s->part[SCALE];
    i8_job j = {
        .work = w,
        .kernel = lb_encode_kernel_for(w->call->cpu),
        .q = w->call->params,
        .meaning = s->meaning,
        .c = cuts_of(w->call->in[0], part, is_apart(w->call)),
        .codes = lb_part_place(s, CODES),
        .scale = lb_part_place(s, SCALE),
        .d = part->a->dtype,
        .x = w->scratch,
    };
    j.how = how_of(j.q, j.d);
    j.f = j.x + most_of(j.c.piece, PIECE);
    j.e = j.f + PIECE;
    return j;
}

/* ---- scales ------------------------------------------------------------- */

static void *scale_at(const i8_job *j, int64_t entry)
{
    return j->scale + (size_t)entry * lb_dtype_size(j->d);
}

/* Non-negative floats are ordered like their bits, in every dtype. Values of a
 * group have the scale's dtype, or it is f32. */
static void raise_to(const i8_job *j, int64_t entry, float most)
{
    if (j->d == LB_F32) {
        uint32_t *at = scale_at(j, entry), bits;
        memcpy(&bits, &most, sizeof bits);
        uint32_t was = __atomic_load_n(at, __ATOMIC_RELAXED);
        while (was < bits &&
               !__atomic_compare_exchange_n(at, &was, bits, true,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
    } else {
        uint16_t *at = scale_at(j, entry), bits;
        lb_store_run(LB_C_F32, &most, j->d, 1, &bits);
        uint16_t was = __atomic_load_n(at, __ATOMIC_RELAXED);
        while (was < bits &&
               !__atomic_compare_exchange_n(at, &was, bits, true,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
    }
}

/* max |x| / 127, or the next smaller number if 127 times that would
 * overflow. */
static float scale_of(float most)
{
    const float s = most / (float)MOST;
    return s * (float)MOST > FLT_MAX ? nextafterf(s, 0) : s;
}

static void make_scales(const i8_job *j, int64_t n, float *s)
{
    if (j->q->compat == LB_COMPAT_EFORMER) {
        const float tiny = j->d == LB_F16 ? 0x1p-14f : FLT_MIN;
        for (int64_t i = 0; i < n; i++)
            s[i] /= (float)MOST;
        lb_round_run(j->d, n, s);
        for (int64_t i = 0; i < n; i++)
            s[i] += tiny;
    } else {
        for (int64_t i = 0; i < n; i++)
            s[i] = scale_of(s[i]);
    }
}

/* Converts stored scales to what elements are divided by, or multiplied with.
 * All codes of a group whose scale is 0 are 0. */
static void to_factors(const i8_job *j, int64_t n, float *f)
{
    for (int64_t i = 0; i < n; i++) {
        const float v = f[i];
        if (j->q->compat == LB_COMPAT_BNB_CUDA)
            f[i] = v > 0 ? (float)MOST / v : 0;
        else if (j->q->compat == LB_COMPAT_BNB_CPU)
            f[i] = v > 0 ? 1.0f / v * (float)MOST : 0;
        else {
            const float s = j->meaning == LB_MEANS_ABSMAX ? scale_of(v) : v;
            f[i] = s > 0 ? s : INFINITY;
        }
    }
}

/* Separate phases, for SOME scales per unit: converts maxima to scales, and at
 * the end inverts them. */
static void do_scales(const i8_job *j)
{
    const lb_work *w = j->work;
    const int64_t size = lb_size(w->out->store->part[SCALE].a);
    for (int64_t i = w->lo * SOME, n; i < size && i < w->hi * SOME; i += n) {
        float s[SOME];
        n = least(size - i, SOME);
        lb_load_run(j->d, scale_at(j, i), 1, n, s);
        if (w->phase == MAKE)
            make_scales(j, n, s);
        else
            for (int64_t k = 0; k < n; k++)
                s[k] = 1.0f / s[k];
        lb_store_run(LB_C_F32, s, j->d, n, scale_at(j, i));
    }
}

/* ---- values -------------------------------------------------------------- */

/* bitsandbytes converts its input to f16 first. */
static void to_half(const i8_job *j, int64_t first, int64_t n, float *x)
{
    lb_round_run(LB_F16, n, x);
    for (int64_t i = 0; i < n; i++) {
        if (!isinf(x[i])) continue;
        if (j->q->on_nonfinite != LB_NONFINITE_CLAMP)
            lb_work_trouble(j->work, first + i);
        x[i] = copysignf(65504.0f, x[i]);
    }
}

static const float *look(const i8_job *j, int64_t first, int64_t n)
{
    if (!lb_config_is_bnb(j->q))
        return (j->work->phase == PUT ? lb_source_again : lb_source_peek)(
            j->work, first, n, j->x);
    lb_source_read(j->work, first, n, j->x);
    to_half(j, first, n, j->x);
    return j->x;
}

/* ---- contiguous groups --------------------------------------------------- */

/* Codes of n elements; f has a factor per g of them. */
static void put_groups(const i8_job *j, const float *x, int64_t n, int8_t *code)
{
    const int64_t g = j->c.g;
    if (g >= 64) {
        for (int64_t i = 0, b = 0; i < n; i += g, b++)
            j->kernel->whole(j->how, x + i, least(g, n - i), j->f[b], code + i);
        return;
    }
    for (int64_t i = 0, b = 0; i < n; i += g, b++)
        for (int64_t k = i; k < least(i + g, n); k++)
            j->e[k] = j->f[b];
    j->kernel->whole_each(j->how, x, n, j->e, code);
}

static void do_piece(const i8_job *j, int64_t row, int64_t at)
{
    const i8_cuts *c = &j->c;
    const int64_t n = least(c->cols - at, c->piece), first = row * c->cols + at;
    const int64_t entry = row * c->each + at / c->g, groups = ceil_div(n, c->g);
    const float *x = look(j, first, n);
    float *f = j->f;
    j->kernel->largest(x, n, c->g, f);
    if (j->meaning != LB_MEANS_ABSMAX) make_scales(j, groups, f);
    lb_store_run(LB_C_F32, f, j->d, groups, scale_at(j, entry));
    lb_load_run(j->d, scale_at(j, entry), 1, groups, f);
    to_factors(j, groups, f);
    put_groups(j, x, n, j->codes + first);
    if (j->meaning != LB_MEANS_INVERSE) return;
    float *s = scale_at(j, entry);
    for (int64_t i = 0; i < groups; i++)
        s[i] = 1.0f / s[i];
}

static void do_groups(const i8_job *j)
{
    const i8_cuts *c = &j->c;
    const int64_t end = least(j->work->hi * c->unit, c->rows * c->pieces);
    for (int64_t i = j->work->lo * c->unit; i < end; i++)
        do_piece(j, i / c->pieces, i % c->pieces * c->piece);
}

/* ---- phases ------------------------------------------------------------- */

/* Elements of a row that have one scale, or one each; all of these are in f. */
typedef struct {
    const float *x;
    int64_t first, n;       /* index in the array; number */
    int64_t entry, entries; /* 1, or n */
} i8_run;

/* Stores the maxima in f. */
static void let_go(i8_job *j)
{
    for (int64_t i = 0; i < j->holds; i++)
        raise_to(j, j->held + i, j->f[i]);
    j->holds = 0;
}

static void find(i8_job *j, const i8_run *r)
{
    if (j->held != r->entry || j->holds != r->entries) {
        let_go(j);
        for (int64_t i = 0; i < r->entries; i++)
            j->f[i] = 0;
        j->held = r->entry;
        j->holds = r->entries;
    }
    if (r->entries == r->n) {
        j->kernel->raise(r->x, r->n, j->f);
        return;
    }
    float most;
    j->kernel->largest(r->x, r->n, r->n, &most);
    j->f[0] = most > j->f[0] ? most : j->f[0];
}

static void put(i8_job *j, const i8_run *r)
{
    int8_t *code = j->codes + r->first;
    if (j->held != r->entry || j->holds != r->entries) {
        lb_load_run(j->d, scale_at(j, r->entry), 1, r->entries, j->f);
        to_factors(j, r->entries, j->f);
        j->held = r->entry;
        j->holds = r->entries;
    }
    if (r->entries == r->n)
        j->kernel->whole_each(j->how, r->x, r->n, j->f, code);
    else
        j->kernel->whole(j->how, r->x, r->n, j->f[0], code);
}

/* Processes n elements of a row, starting at `at`; entry: index of the row's
 * first scale. */
static void use(i8_job *j, const float *x, int64_t first, int64_t at, int64_t n,
                int64_t entry)
{
    void (*const one)(i8_job *, const i8_run *) =
        j->work->phase == FIND ? find : put;
    const int64_t g = j->c.g;
    if (g == 1) {
        one(j, &(i8_run){x, first, n, entry + at, n});
        return;
    }
    for (int64_t i = 0, m; i < n; i += m) {
        m = least(g - (at + i) % g, n - i);
        one(j, &(i8_run){x + i, first + i, m, entry + (at + i) / g, 1});
    }
}

static void do_strips(i8_job *j)
{
    const i8_cuts *c = &j->c;
    for (int64_t u = j->work->lo; u < j->work->hi; u++) {
        const int64_t at = u % c->pieces * c->piece;
        const int64_t n = least(c->cols - at, c->piece);
        const int64_t row = u / c->pieces * c->unit;
        for (int64_t r = row; r < least(row + c->unit, c->rows); r++) {
            int64_t entry = 0, rest = r;
            for (int k = c->rank - 2; k >= 0; rest /= c->n[k], k--)
                entry += rest % c->n[k] * c->step[k];
            const int64_t first = r * c->cols + at;
            use(j, look(j, first, n), first, at, n, entry);
        }
    }
}

/* Processes the rows of a tile, in the array's own axes. */
static void use_tile(i8_job *j, const int64_t *lo, const int64_t *n)
{
    const lb_store *s = j->work->out->store;
    const lb_part *part = &s->part[SCALE];
    const int last = s->shape.rank - 1;
    int64_t i[LB_MAX_RANK] = {0}, stride[LB_MAX_RANK], step[LB_MAX_RANK];
    int64_t first = 0, entry = 0;
    float *x = j->x;
    lb_row_major(&s->shape, stride);
    lb_row_major(&part->a->shape, step);
    for (int k = 0; k < last; k++) {
        if (!part->g[k]) step[k] = 0;
        first += lo[k] * stride[k];
        entry += lo[k] * step[k];
    }
    for (int k = 0; k >= 0; x += n[last]) {
        if (lb_config_is_bnb(j->q)) to_half(j, first + lo[last], n[last], x);
        use(j, x, first + lo[last], lo[last], n[last], entry);
        for (k = last - 1; k >= 0; k--) { /* an odometer */
            first += stride[k];
            entry += step[k];
            if (++i[k] < n[k]) break;
            first -= n[k] * stride[k];
            entry -= n[k] * step[k];
            i[k] = 0;
        }
    }
}

static void do_tiles(i8_job *j)
{
    const lb_work *w = j->work;
    const lb_array *in = w->call->in[0];
    const lb_tiling t = lb_tiling_for(&in->shape, &in, 1);
    for (int64_t tile = w->lo; tile < w->hi; tile++) {
        int64_t lo[LB_MAX_RANK] = {0}, n[LB_MAX_RANK];
        lb_tiling_box(&t, tile, lo, n);
        lb_source_read_box(w, lo, n, j->x);
        use_tile(j, lo, n);
    }
}

void lb_i8_encode(const lb_work *w)
{
    i8_job j = job_of(w);
    if (j.c.way == GROUPS) {
        do_groups(&j);
    } else if (w->phase == MAKE || w->phase == INVERT) {
        do_scales(&j);
    } else {
        if (j.c.way == STRIPS)
            do_strips(&j);
        else
            do_tiles(&j);
        if (w->phase == FIND) let_go(&j);
    }
}

/* max |x| of a group is over all its slices. Non-negative floats are ordered
 * like their bits. */
bool lb_i8_meet(const lb_work *w)
{
    const lb_array *scale = w->out->store->part[SCALE].a;
    const bool wide = scale->dtype == LB_F32;
    if (w->phase != FIND) return true;
    return w->call->whole->reduce(w->call->whole, true, wide ? LB_U32 : LB_U16,
                                  lb_shape_size(&scale->shape),
                                  lb_part_place(w->out->store, SCALE));
}
