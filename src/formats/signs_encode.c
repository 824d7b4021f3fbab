/* signs_encode.c - computes codes -1, 0, 1 and their scales; see signs.h.
 *
 * A row is divided into segments (the whole row, or its blocks), a segment into
 * chunks of LB_CHUNK elements. A group is one segment or, if the tensor has one
 * scale or none, all of them. Statistics of chunks are combined in order, so
 * that results do not depend on how the work is distributed:
 *
 *   GROUPS  each unit processes whole groups: statistics, then codes
 *   CHUNKS  the only group, in phases: statistics of chunks, kept in shared
 *           memory; combining them; codes; combining again for the scale
 *   SERIAL  the only group in one unit, if chunks are so short that their
 *           statistics would take more memory than the array
 */
#include <math.h>

#include "formats/signs.h"
#include "kernels/bits.h"

enum { GROUPS, CHUNKS, SERIAL };
enum { SPAN = 2048 }; /* elements per unit, approximately */

typedef struct {
    int way;
    int64_t rows, cols;
    int64_t length, each; /* elements per segment; segments per row */
    int64_t chunks;       /* chunks per full segment */
    int64_t unit, units;  /* segments or chunks of a row per unit of work; units
                           * per row */
} signs_cuts;

/* Statistics of chunks: one of the two, depending on need. */
typedef struct {
    lb_total *sum;
    lb_moments *moments;
} tallies;

typedef union {
    lb_total sum;
    lb_moments moments;
} signs_tally;

/* Shared memory of CHUNKS. */
typedef struct {
    float cut;
    _Alignas(64) lb_moments of[];
} board;

/* The statistics of chunks in shared memory. */
static tallies tallies_of(board *b)
{
    void *of = b ? b->of : NULL;
    return (tallies){of, of};
}

typedef struct {
    const lb_work *work;
    const lb_encode_kernel *kernel;
    const lb_quant *q;
    const lb_signs_rule *rule;
    lb_signs_need need;
    lb_dtype from;
    signs_cuts c;
    uint8_t *codes;
    int64_t bytes; /* per row of codes */
    float *scale;  /* NULL: none */
    float *room;   /* for SPAN values */
} signs_job;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- distribution of the work -------------------------------------------- */

/* Segments per unit: they must end at a byte boundary. */
static int64_t unit_of(const signs_cuts *c, int bits)
{
    const int64_t per = 8 / bits, few = SPAN / c->length;
    if (c->each == 1) return 1;
    return c->length % per ? ceil_div(few > 0 ? few : 1, per) * per
           : few > 0       ? few
                           : 1;
}

/* For a nonempty array. g: of the scale along the last axis; 0: shared. */
static signs_cuts cuts_of(const lb_quant *q, const lb_shape *shape, int64_t g)
{
    const lb_scale scale = lb_signs_scale(q);
    signs_cuts c = {.cols = shape->rank ? shape->dim[shape->rank - 1] : 1};
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

/* Phases of CHUNKS. Codes that do not depend on a cut are written in the same
 * pass as the statistics (BOTH). */
enum { STATISTICS, CUT, CODES, SCALE, BOTH };

static int steps_of(const lb_signs_rule *rule, lb_signs_need need, bool scaled,
                    int *step)
{
    const bool asks = need == LB_SIGNS_SPREAD || rule->cut_of_mean;
    int n = 0;
    if (need == LB_SIGNS_NOTHING) {
        step[n++] = CODES;
    } else if (!asks) {
        step[n++] = BOTH;
        step[n++] = CUT;
    } else {
        step[n++] = STATISTICS;
        step[n++] = CUT;
        step[n++] = CODES;
        if (need == LB_SIGNS_SPREAD && scaled) step[n++] = SCALE;
    }
    return n;
}

void lb_signs_plan(const lb_call *call, lb_plan *to)
{
    const lb_shape *shape = &call->in[0]->shape;
    const lb_quant *q = call->params;
    const lb_signs_rule *rule = q->format->type;
    lb_layout l = {.stored = *shape, .dtype = LB_F32};
    int step[LB_MAX_PHASES];
    if (!lb_shape_size(shape)) return;
    lb_signs_layout(NULL, q, call->in[0]->dtype, shape, &l);
    const signs_cuts c = cuts_of(q, shape, block_of(&l));
    const bool scaled = l.elem[LB_SIGNS_SCALE];
    const lb_signs_need need = rule->need(q, scaled);
    const int64_t units = c.way == SERIAL ? 1 : c.rows * c.units;
    to->per_thread = SPAN * sizeof(float);
    to->phases = 1;
    to->units[0] = units;
    if (c.way != CHUNKS) return;
    if (need != LB_SIGNS_NOTHING)
        to->shared =
            sizeof(board) + (size_t)(c.rows * c.chunks) * sizeof(lb_moments);
    to->phases = steps_of(rule, need, scaled, step);
    for (int p = 0; p < to->phases; p++)
        to->units[p] = step[p] == CUT || step[p] == SCALE ? 1 : units;
}

static signs_job job_of(const lb_work *w, const lb_signs_rule *rule)
{
    lb_store *s = w->out->store;
    const lb_part *scale = &s->part[LB_SIGNS_SCALE];
    const lb_quant *q = w->call->params;
    const int last = s->shape.rank - 1;
    signs_job j = {
        .work = w,
        .kernel = lb_encode_kernel_for(w->call->cpu),
        .q = q,
        .rule = rule,
        .need = rule->need(q, scale->a != NULL),
        .from = w->call->in[0]->dtype,
        .c = cuts_of(q, &s->shape, last < 0 ? 0 : scale->g[last]),
        .codes = lb_part_place(s, LB_SIGNS_CODES),
        .scale = scale->a ? lb_part_place(s, LB_SIGNS_SCALE) : NULL,
        .room = w->scratch,
    };
    j.bytes = ceil_div(j.c.cols * q->format->codes.bits, 8);
    return j;
}

/* ---- statistics --------------------------------------------------------- */

/* Of the chunks of n <= SPAN values. */
static void tell(const signs_job *j, const float *x, int64_t n, tallies to)
{
    if (j->need == LB_SIGNS_SPREAD)
        j->kernel->moments(x, n, to.moments);
    else if (j->need == LB_SIGNS_MEAN)
        j->kernel->totals(x, n, -1, to.sum);
}

/* Combines t with n more chunks, in order. */
static signs_tally join(const signs_job *j, signs_tally t, tallies more,
                        int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (j->need == LB_SIGNS_SPREAD)
            t.moments = lb_moments_join(t.moments, more.moments[i]);
        else
            t.sum = lb_total_join(t.sum, more.sum[i]);
    return t;
}

static float mean_of(lb_total s)
{
    return s.n > 0 ? (float)(s.sum / s.n) : 0;
}

/* The cut for codes; and the scale, if it is known already. */
static float cut_of(const signs_job *j, signs_tally t, float *scale)
{
    if (j->need == LB_SIGNS_SPREAD)
        return *scale = j->rule->cut(j->q, j->from, t.moments);
    *scale = mean_of(t.sum);
    return j->rule->cut_of_mean ? j->rule->cut_of_mean(*scale) : 0;
}

/* The scale is a mean over the elements whose code is not 0. */
static bool takes_kept(const signs_job *j)
{
    return j->scale && j->need == LB_SIGNS_SPREAD;
}

static void put_scale(const signs_job *j, int64_t entry, float s)
{
    if (j->scale)
        j->scale[entry] = j->q->meaning == LB_MEANS_INVERSE ? 1.0f / s : s;
}

/* ---- codes -------------------------------------------------------------- */

static const float *look(const signs_job *j, int64_t row, int64_t at, int64_t n,
                         bool again)
{
    return (again ? lb_source_again
                  : lb_source_peek)(j->work, row * j->c.cols + at, n, j->room);
}

/* Codes of n <= SPAN values. If the first byte is shared with earlier codes,
 * these were followed by fillers, which are replaced. */
static void put_codes(const signs_job *j, float cut, const float *x, int64_t n,
                      int64_t row, int64_t at)
{
    const lb_code_kind *k = &j->q->format->codes;
    const int64_t per = 8 / k->bits;
    uint8_t *to = j->codes + row * j->bytes, bytes[SPAN / 4], bits[SPAN];
    if (at % per == 0) {
        j->rule->codes(j->kernel, cut, x, n, to + at / per);
        return;
    }
    j->rule->codes(j->kernel, cut, x, n, bytes);
    lb_bits_get(k->bits, bytes, 0, n, bits);
    lb_bits_put(k->bits, (uint8_t)k->filler, bits, n, to, at);
}

/* ---- the algorithms ------------------------------------------------------ */

/* The k-th span of a segment: values [*at, *at + n) of the row; returns n, at
 * most SPAN, or 0 past the end of the segment. */
static int64_t span(const signs_cuts *c, int64_t segment, int64_t k,
                    int64_t *at)
{
    const int64_t begin = segment % c->each * c->length;
    const int64_t end = least(begin + c->length, c->cols);
    *at = begin + k * SPAN;
    return *at < end ? least(end - *at, SPAN) : 0;
}

/* Processes a whole group: segments lo <= s < hi. */
static void do_group(const signs_job *j, int64_t lo, int64_t hi)
{
    enum { CHUNKS_OF_SPAN = SPAN / LB_CHUNK };
    lb_moments some[CHUNKS_OF_SPAN] = {{0}};
    lb_total sums[CHUNKS_OF_SPAN] = {{0}}, kept = {0};
    const signs_cuts *c = &j->c;
    const tallies all = {sums, some};
    signs_tally t = {.moments = {0}};
    int64_t at, n;
    const bool again = j->need != LB_SIGNS_NOTHING;
    if (again)
        for (int64_t s = lo; s < hi; s++)
            for (int64_t k = 0; (n = span(c, s, k, &at)); k++) {
                tell(j, look(j, s / c->each, at, n, false), n, all);
                t = join(j, t, all, ceil_div(n, LB_CHUNK));
            }
    float scale;
    const float cut = cut_of(j, t, &scale);
    for (int64_t s = lo; s < hi; s++)
        for (int64_t k = 0; (n = span(c, s, k, &at)); k++) {
            const float *x = look(j, s / c->each, at, n, again);
            put_codes(j, cut, x, n, s / c->each, at);
            if (!takes_kept(j)) continue;
            j->kernel->totals(x, n, cut, sums);
            for (int64_t i = 0; i < ceil_div(n, LB_CHUNK); i++)
                kept = lb_total_join(kept, sums[i]);
        }
    put_scale(j, lo, takes_kept(j) ? mean_of(kept) : scale);
}

static void do_groups(const signs_job *j)
{
    const signs_cuts *c = &j->c;
    for (int64_t u = j->work->lo; u < j->work->hi; u++) {
        const int64_t row = u / c->units * c->each;
        const int64_t from = u % c->units * c->unit;
        const int64_t to = least(from + c->unit, c->each);
        for (int64_t s = row + from; s < row + to; s++)
            do_group(j, s, s + 1);
    }
}

/* The chunks of a unit; a unit is a span. */
static void do_span(const signs_job *j, int step, board *b, int64_t row,
                    int64_t k)
{
    const signs_cuts *c = &j->c;
    const int64_t at = k * SPAN, n = least(c->cols - at, SPAN);
    const int64_t first = row * c->chunks + at / LB_CHUNK;
    const float *x = look(j, row, at, n, b && step == CODES);
    const float cut = b && step == CODES ? b->cut : 0;
    tallies t = tallies_of(b);
    if (step != STATISTICS) put_codes(j, cut, x, n, row, at);
    if (step != CODES) {
        if (j->need == LB_SIGNS_SPREAD)
            t.moments += first;
        else
            t.sum += first;
        tell(j, x, n, t);
    } else if (takes_kept(j)) {
        j->kernel->totals(x, n, cut, t.sum + first);
    }
}

/* For CHUNKS, where the only group consists of all chunks. */
static void do_step(signs_job *j, int step, board *b)
{
    const tallies all = tallies_of(b);
    const int64_t n = j->c.rows * j->c.chunks;
    const signs_tally none = {.moments = {0}};
    float scale;
    if (step == CUT && b) {
        b->cut = cut_of(j, join(j, none, all, n), &scale);
        put_scale(j, 0, scale);
    } else if (step == SCALE) {
        j->need = LB_SIGNS_MEAN; /* the shared memory now holds sums */
        put_scale(j, 0, mean_of(join(j, none, all, n).sum));
    } else {
        for (int64_t u = j->work->lo; u < j->work->hi; u++)
            do_span(j, step, b, u / j->c.units, u % j->c.units);
    }
}

void lb_signs_encode(const lb_work *w)
{
    const lb_quant *q = w->call->params;
    signs_job j = job_of(w, q->format->type);
    int step[LB_MAX_PHASES];
    if (j.c.way == GROUPS) {
        do_groups(&j);
    } else if (j.c.way == SERIAL) {
        do_group(&j, 0, j.c.rows);
    } else {
        steps_of(j.rule, j.need, j.scale != NULL, step);
        do_step(&j, step[w->phase],
                j.need == LB_SIGNS_NOTHING ? NULL : w->shared);
    }
}
