/* dynamic8.c - 8 bits per element: an index into 256 levels, which are denser
 * near zero, times the block's absmax.
 *
 *     value = level[code] * absmax + offset      two roundings, in f32
 *
 * The levels are bitsandbytes' signed dynamic map, or a table stored in the
 * array. The offset exists if the mean was subtracted first (center), as
 * bitsandbytes does for the absmax of its 4-bit arrays. Encoding then has three
 * phases: sums of chunks, their mean, codes.
 */
#include <float.h>
#include <math.h>

#include "formats/config.h"
#include "kernels/decode.h"
#include "kernels/dynamic8_ref.h"
#include "kernels/encode.h"
#include "kernels/sums.h"
#include "kernels/unpack.h"
#include "lowbit_ext.h"

enum { CODES, ABSMAX, TABLE, OFFSET };
enum { LEVELS = 256, BLOCK = 256 };

/* ---- decode -------------------------------------------------------------- */

static void add_offset(const lb_cpu *cpu, const lb_store *s, int64_t first,
                       int64_t n, float *w)
{
    enum { PIECE = 256 }; /* values, if all offsets may differ */
    float room[LB_SPANS], each[PIECE];
    for (int64_t i = 0, m; i < n; i += m, w += m) {
        m = n - i < PIECE ? n - i : PIECE;
        const lb_spans offset =
            lb_part_spans(cpu, s, OFFSET, first + i, m, room, each);
        int64_t j = 0, end = lb_span_first(offset, m);
        for (int64_t k = 0; j < m; k++, end = lb_span_next(offset, end, m))
            for (const float v = offset.value[k]; j < end; j++)
                w[j] += v;
    }
}

/* The map, or the array's own table, read into `own`. */
static const float *levels_of(const lb_cpu *cpu, const lb_store *s, float *own)
{
    if (!s->part[TABLE].a) return lb_dynamic8_map;
    lb_tile_read_flat(cpu, s->part[TABLE].a, 0, LEVELS, LB_C_F32, own);
    return own;
}

static void decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, void *out)
{
    const uint8_t *code = lb_part_bytes(s, CODES);
    float own[LEVELS], room[LB_SPANS];
    const float *level = levels_of(cpu, s, own);
    const lb_spans absmax = lb_part_spans(cpu, s, ABSMAX, first, n, room, out);
    lb_decode_kernel_for(cpu)->levels(
        level, code + lb_part_entry(s, CODES, first), n, absmax, out);
    if (s->part[OFFSET].a) add_offset(cpu, s, first, n, out);
}

/* Not with an offset, which is added before values are rounded. */
static bool unpack(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, lb_sink to)
{
    const uint8_t *code = lb_part_bytes(s, CODES);
    float own[LEVELS], room[LB_SPANS], each[LB_RUN];
    if (s->part[OFFSET].a) return false;
    const float *level = levels_of(cpu, s, own);
    const lb_spans absmax = lb_part_spans(cpu, s, ABSMAX, first, n, room, each);
    return absmax.value &&
           lb_unpack_kernel_for(cpu)->levels(
               level, code + lb_part_entry(s, CODES, first), n, &absmax, to);
}

/* ---- layout -------------------------------------------------------------- */

static bool check(lb_ctx *cx, const lb_quant *q, lb_dtype label)
{
    if (q->block_size < 0)
        return lb_fail(cx, LB_E_ARG,
                       "dynamic8: block_size is %lld, not positive",
                       (long long)q->block_size);
    if (q->compat == LB_COMPAT_EFORMER)
        return lb_fail(cx, LB_E_ARG, "dynamic8: not available with compat %s",
                       lb_compat_name(q->compat));
    if (q->axes.n)
        return lb_fail(cx, LB_E_AXIS,
                       "dynamic8: axis %d is not supported: blocks are along "
                       "the last axis",
                       q->axes.axis[0]);
    if (q->scale != LB_SCALE_DEFAULT && q->scale != LB_SCALE_BLOCK)
        return lb_fail(cx, LB_E_ARG,
                       "dynamic8: scale %s is not supported: there is one "
                       "scale per block",
                       lb_config_scale(q->scale));
    return lb_config_unused(cx, q, "meaning", lb_config_meaning(q->meaning)) &&
           lb_config_unused(cx, q, "threshold",
                            lb_config_threshold(q->threshold)) &&
           lb_config_unused(cx, q, "decode", lb_config_decode(q->decode)) &&
           lb_config_float(cx, q, label);
}

static bool layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                   const lb_shape *shape, lb_layout *to)
{
    (void)from;
    if (!check(cx, q, to->dtype)) return false;
    if (lb_config_is_flat(q) || shape->rank == 0)
        to->stored = LB_SHAPE(lb_shape_size(shape));
    lb_part_rows(&to->part[CODES], &to->stored, 1);
    lb_part_rows(&to->part[ABSMAX], &to->stored,
                 q->block_size ? q->block_size : BLOCK);
    to->part[TABLE].own = LEVELS;
    to->elem[CODES] = LB_U8;
    to->elem[ABSMAX] = LB_F32;
    if (q->center) to->elem[OFFSET] = LB_F32;
    return true;
}

/* An empty array has no mean, and nothing will be encoded. */
static void prepare(const lb_quant *q, lb_store *to)
{
    if (q->center) *(float *)lb_part_place(to, OFFSET) = 0;
}

/* ---- encode -------------------------------------------------------------- */

enum { PIECE = 2048 }; /* elements read at a time */

/* Rows are divided into runs of equal length, except the last of a row; a unit
 * of work consists of several runs. */
typedef struct {
    int64_t row, length, each, total, unit;
} runs;

static runs runs_of(const lb_shape *stored, int64_t length)
{
    const int64_t size = lb_shape_size(stored);
    if (!size) return (runs){.row = 1, .length = 1, .each = 1, .unit = 1};
    runs r = {.row = stored->dim[stored->rank - 1]};
    r.length = length < r.row ? length : r.row;
    r.each = r.row / r.length + (r.row % r.length != 0);
    r.total = size / r.row * r.each;
    r.unit = 4 * PIECE / r.length + 1;
    return r;
}

/* Run i: its first element, and its length. */
static int64_t run_at(const runs *r, int64_t i, int64_t *first)
{
    const int64_t at = i % r->each * r->length;
    *first = i / r->each * r->row + at;
    return r->row - at < r->length ? r->row - at : r->length;
}

static int64_t units(const runs *r)
{
    return r->total / r->unit + (r->total % r->unit != 0);
}

typedef struct {
    runs chunks, blocks;
} dynamic8_cuts;

static dynamic8_cuts cuts_of(const lb_call *c)
{
    lb_layout l = {.stored = c->in[0]->shape, .dtype = LB_F32};
    layout(NULL, c->params, c->in[0]->dtype, &c->in[0]->shape, &l);
    const int64_t block = l.part[ABSMAX].g[l.stored.rank - 1];
    return (dynamic8_cuts){runs_of(&l.stored, LB_CHUNK),
                           runs_of(&l.stored, block)};
}

static void encode_plan(const lb_call *c, lb_plan *to)
{
    const lb_quant *q = c->params;
    const dynamic8_cuts cut = cuts_of(c);
    to->per_thread = PIECE * sizeof(float);
    if (!cut.blocks.total) return;
    if (q->center) {
        to->shared = (size_t)cut.chunks.total * sizeof(double);
        to->units[to->phases++] = units(&cut.chunks);
        to->units[to->phases++] = 1;
    }
    to->units[to->phases++] = units(&cut.blocks);
}

static void sum_chunk(const lb_work *w, const runs *r, int64_t i)
{
    float *x = w->scratch;
    double sum = 0;
    int64_t first;
    const int64_t n = run_at(r, i, &first);
    lb_source_read(w, first, n, x);
    for (int64_t k = 0; k < n; k++)
        sum += x[k];
    ((double *)w->shared)[i] = sum;
}

static float mean_of(const lb_work *w, const runs *r)
{
    const double *sum = w->shared;
    double all = 0;
    for (int64_t i = 0; i < r->total; i++)
        all += sum[i];
    return (float)(all / (double)lb_shape_size(&w->call->in[0]->shape));
}

static const float *read_centered(const lb_work *w, int64_t first, int64_t n,
                                  float offset)
{
    float *x = w->scratch;
    if (offset == 0) return lb_source_peek(w, first, n, x);
    lb_source_read(w, first, n, x);
    /* x - offset may overflow f32. */
    for (int64_t i = 0; i < n; i++)
        x[i] = fmaxf(fminf(x[i] - offset, FLT_MAX), -FLT_MAX);
    return x;
}

/* What encoding a block needs to know. */
typedef struct {
    const lb_work *work;
    const lb_encode_kernel *kernel;
    lb_dynamic8_encoder *encode;
    lb_compat compat;
    float offset;
    uint8_t *code;
    float *absmax;
} dynamic8_job;

static dynamic8_job job_of(const lb_work *w)
{
    const lb_quant *q = w->call->params;
    lb_store *to = w->out->store;
    return (dynamic8_job){
        .work = w,
        .kernel = lb_encode_kernel_for(w->call->cpu),
        .encode = lb_dynamic8_encoder_for(w->call->cpu),
        .compat = q->compat,
        .offset = q->center ? *(float *)lb_part_place(to, OFFSET) : 0,
        .code = lb_part_place(to, CODES),
        .absmax = lb_part_place(to, ABSMAX),
    };
}

/* Encodes adjacent blocks, at most PIECE elements. */
static void encode_some(const dynamic8_job *j, int64_t first, int64_t n,
                        int64_t block, float *absmax)
{
    const float *x = read_centered(j->work, first, n, j->offset);
    j->kernel->largest(x, n, block, absmax);
    for (int64_t at = 0; at < n; at += block, absmax++)
        j->encode(j->compat, *absmax, x + at, n - at < block ? n - at : block,
                  j->code + first + at);
}

/* Encodes a block of more elements: reads it once for its absmax, and again for
 * its codes. */
static void encode_long(const dynamic8_job *j, int64_t first, int64_t n,
                        float *absmax)
{
    float most = 0, part;
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t k = n - at < PIECE ? n - at : PIECE;
        const float *x = read_centered(j->work, first + at, k, j->offset);
        j->kernel->largest(x, k, k, &part);
        most = fmaxf(most, part);
    }
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t k = n - at < PIECE ? n - at : PIECE;
        const float *x = read_centered(j->work, first + at, k, j->offset);
        j->encode(j->compat, most, x, k, j->code + first + at);
    }
    *absmax = most;
}

/* Blocks [i, end), row by row. */
static void encode_blocks(const dynamic8_job *j, const runs *r, int64_t i,
                          int64_t end)
{
    for (int64_t m; i < end; i += m) {
        int64_t first;
        const int64_t n = run_at(r, i, &first), left = r->each - i % r->each;
        if (r->length > PIECE) {
            encode_long(j, first, n, j->absmax + i);
            m = 1;
            continue;
        }
        const int64_t row = r->row - first % r->row;
        m = PIECE / r->length;
        m = m < left ? m : left;
        m = m < end - i ? m : end - i;
        encode_some(j, first, m * r->length < row ? m * r->length : row,
                    r->length, j->absmax + i);
    }
}

static void encode(const lb_work *w)
{
    const lb_quant *q = w->call->params;
    const dynamic8_cuts cut = cuts_of(w->call);
    const int phase = q->center ? w->phase : 2;
    if (phase == 1) {
        *(float *)lb_part_place(w->out->store, OFFSET) =
            mean_of(w, &cut.chunks);
        return;
    }
    const runs *r = phase ? &cut.blocks : &cut.chunks;
    const int64_t end = w->hi * r->unit < r->total ? w->hi * r->unit : r->total;
    if (phase) {
        const dynamic8_job j = job_of(w);
        encode_blocks(&j, r, w->lo * r->unit, end);
    } else {
        for (int64_t i = w->lo * r->unit; i < end; i++)
            sum_chunk(w, r, i);
    }
}

/* Half the widest step, or the distance of -1 from the lowest level; plus half
 * a cell of the lookup table for values. */
static double bound(const lb_quant *q)
{
    const float *level = lb_dynamic8_map;
    double most = level[0] + 1.0;
    for (int c = 0; c + 1 < LEVELS; c++) {
        /* gcc 12 for aarch64 fails to compile fmax here */
        const double half = ((double)level[c + 1] - level[c]) / 2;
        if (half > most) most = half;
    }
    most += 1.0 / 65535 + 0x1p-20 + lb_config_unit(q);
    /* Centered values may be larger than any x of the block. */
    return q->center ? 0 : most;
}

extern const lb_format lb_format_dynamic8;
const lb_format lb_format_dynamic8 = {
    .struct_size = sizeof(lb_format),
    .name = "dynamic8",
    .part = {{.name = "codes", .raw = true},
             {.name = "absmax", .scale = true},
             {.name = "table", .optional = true},
             {.name = "offset", .optional = true}},
    .codes = {.bits = 8, .most = LEVELS - 1, .step = 1},
    .relabel = true,
    .decode = decode,
    .unpack = unpack,
    .layout = layout,
    .prepare = prepare,
    .encode_plan = encode_plan,
    .encode = encode,
    .bound = bound,
    .kernels = LB_DECODE_LEVELS,
    .searches = true, /* -1 is not a level: the next absmax may differ */
};
