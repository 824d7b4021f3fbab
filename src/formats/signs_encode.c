/* signs_encode.c - from numbers to signs and scales; see signs.h.
 *
 * A row is cut into segments (itself, or its blocks), a segment into chunks of
 * LB_CHUNK elements. A group is one segment or, where the tensor has one scale
 * or none, all of them. Statistics of chunks are joined in their order, so
 * that nothing depends on how the work was dealt out:
 *
 *   GROUPS  each unit does whole groups: statistics, then codes
 *   CHUNKS  the one group, in phases: statistics of chunks, which wait in
 *           shared memory; all of them joined; codes; joined again: the scale
 *   SERIAL  the one group in one unit, where chunks are so short that their
 *           statistics would take more memory than the array
 */
#include <math.h>

#include "formats/signs.h"
#include "kernels/bits.h"

enum { GROUPS, CHUNKS, SERIAL };
enum { STATISTICS, CUT, CODES, SCALE }; /* phases of CHUNKS */
enum { SPAN = 2048 };                   /* elements to a unit, about */

typedef struct {
    int way;
    int64_t rows, cols;
    int64_t length, each; /* of a segment; segments of a row */
    int64_t chunks;       /* of a whole segment */
    int64_t unit, units;  /* parts of a row (segments or chunks) to a unit of
                           * work; units of a row */
} cuts;

/* One of them, as the need says. */
typedef union {
    lb_total sum;
    lb_moments moments;
} tally;

/* What CHUNKS shares. */
typedef struct {
    float cut;
    _Alignas(64) tally of[];
} board;

typedef struct {
    const lb_work *work;
    const lb_quant *q;
    const lb_signs_rule *rule;
    lb_signs_need need;
    lb_dtype from;
    cuts c;
    uint8_t *codes;
    int64_t bytes; /* of a row of codes */
    float *scale;  /* NULL: none */
    float *x;      /* elements [first, past) of the source; SPAN at most .. */
    int64_t first, past, end; /* .. and none from end on */
} job;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- how the work is dealt out ------------------------------------------ */

/* Segments to a unit: they must end where a byte does. */
static int64_t unit_of(const cuts *c, int bits)
{
    const int64_t per = 8 / bits, few = SPAN / c->length;
    if (c->each == 1) return 1;
    return c->length % per ? ceil_div(few > 0 ? few : 1, per) * per
           : few > 0       ? few
                           : 1;
}

/* Of an array that is not empty. g: of the scale on the last axis; 0 shared. */
static cuts cuts_of(const lb_quant *q, const lb_shape *shape, int64_t g)
{
    const lb_scale scale = lb_signs_scale(q);
    cuts c = {.cols = shape->rank ? shape->dim[shape->rank - 1] : 1};
    c.rows = lb_shape_size(shape) / c.cols;
    c.length = g > 0 && g < c.cols ? g : c.cols;
    c.each = ceil_div(c.cols, c.length);
    c.chunks = ceil_div(c.length, LB_CHUNK);
    const bool one = scale == LB_SCALE_NONE || scale == LB_SCALE_TENSOR ||
                     c.rows * c.each == 1;
    const bool room = c.cols >= 64 || c.rows <= 1 << 16;
    c.way = !one ? GROUPS : room ? CHUNKS : SERIAL;
    c.unit =
        c.way == GROUPS ? unit_of(&c, q->format->codes.bits) : SPAN / LB_CHUNK;
    c.units = ceil_div(c.way == GROUPS ? c.each : c.chunks, c.unit);
    return c;
}

static int64_t block_of(const lb_layout *l)
{
    const int rank = l->stored.rank;
    return rank ? l->part[LB_SIGNS_SCALE].g[rank - 1] : 0;
}

void lb_signs_plan(const lb_call *call, lb_plan *to)
{
    const lb_shape *shape = &call->in[0]->shape;
    const lb_quant *q = call->params;
    const lb_signs_rule *rule = q->format->type;
    lb_layout l = {.stored = *shape, .dtype = LB_F32};
    if (!lb_shape_size(shape)) return;
    lb_signs_layout(NULL, q, call->in[0]->dtype, shape, &l);
    const cuts c = cuts_of(q, shape, block_of(&l));
    const bool scaled = l.elem[LB_SIGNS_SCALE];
    const lb_signs_need need = rule->need(q, scaled);
    const int64_t units = c.way == SERIAL ? 1 : c.rows * c.units;
    to->per_thread = SPAN * sizeof(float);
    to->phases = 1;
    to->units[0] = units;
    if (c.way != CHUNKS || need == LB_SIGNS_NOTHING) return;
    to->shared = sizeof(board) + (size_t)(c.rows * c.chunks) * sizeof(tally);
    to->phases = need == LB_SIGNS_SPREAD && scaled ? SCALE + 1 : CODES + 1;
    to->units[CUT] = to->units[SCALE] = 1;
    to->units[CODES] = units;
}

static job job_of(const lb_work *w, const lb_signs_rule *rule)
{
    lb_store *s = w->out->store;
    const lb_part *scale = &s->part[LB_SIGNS_SCALE];
    const lb_quant *q = w->call->params;
    const int last = s->shape.rank - 1;
    job j = {
        .work = w,
        .q = q,
        .rule = rule,
        .need = rule->need(q, scale->a != NULL),
        .from = w->call->in[0]->dtype,
        .c = cuts_of(q, &s->shape, last < 0 ? 0 : scale->g[last]),
        .codes = lb_part_place(s, LB_SIGNS_CODES),
        .scale = scale->a ? lb_part_place(s, LB_SIGNS_SCALE) : NULL,
        .x = w->scratch,
    };
    j.bytes = ceil_div(j.c.cols * q->format->codes.bits, 8);
    return j;
}

/* ---- chunks ------------------------------------------------------------- */

/* Elements [first, first + n), n <= LB_CHUNK. Those behind them come along. */
static const float *look(job *j, int64_t first, int64_t n)
{
    if (first < j->first || first + n > j->past) {
        j->first = first;
        j->past = least(first + SPAN, j->end);
        lb_source_read(j->work, first, j->past - first, j->x);
    }
    return j->x + (first - j->first);
}

/* Chunk c of a segment: where in its row it is; how long: 0 past the end. */
static int64_t chunk(const cuts *c, int64_t segment, int64_t k, int64_t *at)
{
    const int64_t begin = segment % c->each * c->length;
    const int64_t end = least(begin + c->length, c->cols);
    *at = begin + k * LB_CHUNK;
    return *at < end ? least(end - *at, LB_CHUNK) : 0;
}

static tally tally_of(const job *j, const float *x, int64_t n)
{
    if (j->need == LB_SIGNS_SPREAD)
        return (tally){.moments = lb_moments_of(x, n)};
    return (tally){.sum = lb_total_above(x, n, -1)};
}

static tally join(const job *j, tally a, tally b)
{
    if (j->need == LB_SIGNS_SPREAD)
        return (tally){.moments = lb_moments_join(a.moments, b.moments)};
    return (tally){.sum = lb_total_join(a.sum, b.sum)};
}

static float mean_of(lb_total s)
{
    return s.n > 0 ? (float)(s.sum / s.n) : 0;
}

static float cut_of(const job *j, tally t)
{
    return j->need == LB_SIGNS_SPREAD ? j->rule->cut(j->q, j->from, t.moments)
                                      : mean_of(t.sum);
}

/* The scale is taken over those elements whose code is not 0. */
static bool takes_kept(const job *j)
{
    return j->scale && j->need == LB_SIGNS_SPREAD;
}

static void put_scale(const job *j, int64_t entry, float s)
{
    if (j->scale)
        j->scale[entry] = j->q->meaning == LB_MEANS_INVERSE ? 1.0f / s : s;
}

static void put_codes(const job *j, float cut, const float *x, int64_t n,
                      int64_t row, int64_t at)
{
    const lb_code_kind *k = &j->q->format->codes;
    uint8_t bits[LB_CHUNK];
    j->rule->bits(j->q, cut, x, n, bits);
    lb_bits_put(k->bits, (uint8_t)k->filler, bits, n, j->codes + row * j->bytes,
                at);
}

/* ---- the ways ----------------------------------------------------------- */

/* All of a group: segments lo <= s < hi. */
static void do_group(job *j, int64_t lo, int64_t hi)
{
    const cuts *c = &j->c;
    tally t = {.moments = {0}};
    lb_total kept = {0};
    int64_t at, n;
    if (j->need != LB_SIGNS_NOTHING)
        for (int64_t s = lo; s < hi; s++)
            for (int64_t k = 0; (n = chunk(c, s, k, &at)); k++)
                t = join(
                    j, t,
                    tally_of(j, look(j, s / c->each * c->cols + at, n), n));
    const float cut = cut_of(j, t);
    for (int64_t s = lo; s < hi; s++)
        for (int64_t k = 0; (n = chunk(c, s, k, &at)); k++) {
            const float *x = look(j, s / c->each * c->cols + at, n);
            put_codes(j, cut, x, n, s / c->each, at);
            if (takes_kept(j))
                kept = lb_total_join(kept, lb_total_above(x, n, cut));
        }
    put_scale(j, lo, takes_kept(j) ? mean_of(kept) : cut);
}

static void do_groups(job *j)
{
    const cuts *c = &j->c;
    const int64_t hi = j->work->hi, per_unit = c->unit * c->length;
    j->end = (hi - 1) / c->units * c->cols +
             least(((hi - 1) % c->units + 1) * per_unit, c->cols);
    for (int64_t u = j->work->lo; u < hi; u++) {
        const int64_t row = u / c->units * c->each;
        const int64_t from = u % c->units * c->unit;
        const int64_t to = least(from + c->unit, c->each);
        for (int64_t s = row + from; s < row + to; s++)
            do_group(j, s, s + 1);
    }
}

static tally join_all(const job *j, const board *b)
{
    tally t = b->of[0];
    for (int64_t i = 1; i < j->c.rows * j->c.chunks; i++)
        t = join(j, t, b->of[i]);
    return t;
}

static void do_chunk(job *j, int phase, board *b, int64_t row, int64_t k)
{
    int64_t at;
    const int64_t n = chunk(&j->c, row, k, &at);
    const float *x = look(j, row * j->c.cols + at, n);
    tally *t = b ? &b->of[row * j->c.chunks + k] : NULL;
    if (phase == STATISTICS) {
        if (t) *t = tally_of(j, x, n);
        return;
    }
    const float cut = b ? b->cut : 0;
    put_codes(j, cut, x, n, row, at);
    if (t && takes_kept(j)) t->sum = lb_total_above(x, n, cut);
}

static void do_chunks(job *j, int phase, board *b)
{
    const cuts *c = &j->c;
    const int64_t hi = j->work->hi;
    j->end = (hi - 1) / c->units * c->cols +
             least(((hi - 1) % c->units + 1) * SPAN, c->cols);
    for (int64_t u = j->work->lo; u < hi; u++) {
        const int64_t from = u % c->units * c->unit;
        const int64_t to = least(from + c->unit, c->chunks);
        for (int64_t k = from; k < to; k++)
            do_chunk(j, phase, b, u / c->units, k);
    }
}

void lb_signs_encode(const lb_work *w)
{
    const lb_quant *q = w->call->params;
    job j = job_of(w, q->format->type);
    board *b = w->shared;
    if (j.c.way == GROUPS) {
        do_groups(&j);
    } else if (j.c.way == SERIAL) {
        j.end = j.c.rows * j.c.cols;
        do_group(&j, 0, j.c.rows);
    } else if (j.need == LB_SIGNS_NOTHING) {
        do_chunks(&j, CODES, NULL);
    } else if (w->phase == CUT) {
        b->cut = cut_of(&j, join_all(&j, b));
        put_scale(&j, 0, b->cut);
    } else if (w->phase == SCALE) {
        j.need = LB_SIGNS_MEAN; /* what waits there now are sums */
        put_scale(&j, 0, mean_of(join_all(&j, b).sum));
    } else {
        do_chunks(&j, w->phase, b);
    }
}
