/* int8.c - whole numbers from -127 to 127 times a scale that a group shares.
 *
 *   codes  i8, one per element
 *   scale  one per group: along the axes of the config, or per block of the
 *          last; s = max |x| / 127, code = round_half_even(x / s)
 *
 *   meaning scale    w = code * s, rounded to the dtype of the scale
 *           absmax   w = (code * s) * f32(1/127), where s is max |x|
 *           inverse  w = code / s
 *
 * A group may lie anywhere in the array, so encoding has phases: the largest
 * |x| of all groups, found in any order and kept where the scale will be; then
 * scales; then codes.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "formats/config.h"
#include "kernels/convert.h"
#include "kernels/decode.h"
#include "kernels/sums.h"
#include "lowbit_ext.h"

enum { CODES, SCALE };
enum { MOST = 127 };

/* ---- layout ------------------------------------------------------------- */

static bool only_last(const lb_quant *q, int rank)
{
    return !q->axes.n || (q->axes.n == 1 && q->axes.axis[0] == rank - 1);
}

static bool check(lb_ctx *cx, const lb_quant *q, int rank)
{
    if (!lb_config_unused(cx, q, "decode", q->decode) ||
        !lb_config_unused(cx, q, "threshold", q->threshold) ||
        !lb_config_unused(cx, q, "center", q->center))
        return false;
    if (q->blocks == LB_BLOCKS_FLAT)
        return lb_fail(cx, LB_E_ARG,
                       "int8: config.blocks is %d (flat): its "
                       "groups lie in rows",
                       (int)q->blocks);
    if (q->scale)
        return lb_fail(cx, LB_E_ARG,
                       "int8: config.scale is %d: axes and block_size say who "
                       "shares one",
                       (int)q->scale);
    const bool one = q->compat == LB_COMPAT_SEED || lb_config_is_bnb(q);
    if (one && q->meaning &&
        !(lb_config_is_bnb(q) && q->meaning == LB_MEANS_ABSMAX))
        return lb_fail(cx, LB_E_ARG,
                       "int8: config.meaning is %d: compat %s stores %s",
                       (int)q->meaning, lb_compat_name(q->compat),
                       lb_config_is_bnb(q) ? "max |x|" : "max |x| / 127");
    const bool blocks = q->block_size && q->compat != LB_COMPAT_SEED;
    if ((blocks || lb_config_is_bnb(q)) && !only_last(q, rank))
        return lb_fail(cx, LB_E_AXIS,
                       "int8: axis %d of %d is to share a scale, but %s of "
                       "compat %s are along the last",
                       q->axes.axis[0], rank, blocks ? "blocks" : "the groups",
                       lb_compat_name(q->compat));
    return true;
}

static bool layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                   const lb_shape *shape, lb_layout *to)
{
    const int last = shape->rank - 1;
    if (!check(cx, q, shape->rank) || !lb_config_float(cx, q, to->dtype))
        return false;
    lb_part_rows(&to->part[CODES], shape, 1);
    lb_part_rows(&to->part[SCALE], shape, 1);
    int64_t *g = to->part[SCALE].g;
    for (int i = 0; i < q->axes.n; i++)
        g[q->axes.axis[i]] = 0;
    if (!q->axes.n && last >= 0) g[last] = 0;
    const bool seed = q->compat == LB_COMPAT_SEED;
    if (q->block_size && !seed && last >= 0) g[last] = q->block_size;
    if (lb_config_is_bnb(q)) to->meaning = LB_MEANS_ABSMAX;
    to->elem[CODES] = LB_I8;
    to->elem[SCALE] = seed && from != LB_F64 ? from : LB_F32;
    return true;
}

/* ---- encoding ----------------------------------------------------------- */

enum { FIND, MAKE, PUT, INVERT }; /* phases */
enum { PIECE = 1024 };            /* scales to a unit of work */

typedef struct {
    const lb_work *work;
    const lb_quant *q;
    int meaning;
    int8_t *codes;
    char *scale;
    lb_dtype d; /* of the scale */
    int64_t g;  /* of the last axis; 0 shared */
    int64_t stride[LB_MAX_RANK], step[LB_MAX_RANK]; /* elements, scales */
    float *x, *f; /* a tile, and room for another */
} job;

/* Elements of a row of the array that lie in a tile. */
typedef struct {
    float *x;
    int64_t first, entry; /* of the row: its element 0, and that one's scale */
    int64_t at, n;        /* of the row: which elements */
} run;

static job job_of(const lb_work *w)
{
    lb_store *s = w->out->store;
    const lb_part *part = &s->part[SCALE];
    const int last = s->shape.rank - 1;
    job j = {
        .work = w,
        .q = w->call->params,
        .meaning = s->meaning,
        .codes = lb_part_place(s, CODES),
        .scale = lb_part_place(s, SCALE),
        .d = part->a->dtype,
        .g = last < 0 ? 0 : part->g[last],
        .x = w->scratch,
        .f = (float *)w->scratch + LB_TILE,
    };
    lb_row_major(&s->shape, j.stride);
    lb_row_major(&part->a->shape, j.step);
    for (int k = 0; k <= last; k++)
        if (!part->g[k]) j.step[k] = 0;
    return j;
}

static void *scale_at(const job *j, int64_t entry)
{
    return j->scale + (size_t)entry * lb_dtype_size(j->d);
}

static void prepare(const lb_quant *q, lb_store *to)
{
    (void)q;
    const lb_store *scale = to->part[SCALE].a->store;
    if (scale->data_size) memset(scale->data, 0, scale->data_size);
}

static void plan(const lb_call *c, lb_plan *to)
{
    const lb_array *in = c->in[0];
    const lb_quant *q = c->params;
    lb_layout l = {.meaning = (int)q->meaning, .dtype = LB_F32};
    layout(NULL, q, in->dtype, &in->shape, &l);
    const lb_shape scale = lb_part_shape(&in->shape, &l.part[SCALE]);
    const int64_t pieces = (lb_shape_size(&scale) + PIECE - 1) / PIECE;
    to->phases = l.meaning == LB_MEANS_INVERSE ? INVERT + 1 : PUT + 1;
    to->units[FIND] = lb_tiling_for(&in->shape, &in, 1).tiles;
    to->units[MAKE] = l.meaning == LB_MEANS_ABSMAX ? 0 : pieces;
    to->units[PUT] = to->units[FIND];
    to->units[INVERT] = pieces;
    to->per_thread = 2 * LB_TILE * sizeof(float);
}

/* What bitsandbytes does before anything else. */
static void to_half(const job *j, const run *r)
{
    lb_round_run(LB_F16, r->n, r->x);
    for (int64_t i = 0; i < r->n; i++) {
        if (!isinf(r->x[i])) continue;
        if (j->q->on_nonfinite != LB_NONFINITE_CLAMP)
            lb_work_trouble(j->work, r->first + r->at + i);
        r->x[i] = copysignf(65504.0f, r->x[i]);
    }
}

static void each_run(const job *j, void (*use)(const job *, const run *))
{
    const lb_work *w = j->work;
    const lb_array *in = w->call->in[0];
    const lb_tiling t = lb_tiling_for(&in->shape, &in, 1);
    const int last = in->shape.rank - 1;
    for (int64_t tile = w->lo; tile < w->hi; tile++) {
        int64_t lo[LB_MAX_RANK] = {0}, n[LB_MAX_RANK], i[LB_MAX_RANK] = {0};
        lb_tiling_box(&t, tile, lo, n);
        lb_source_read_box(w, lo, n, j->x);
        run r = {.x = j->x, .n = 1};
        if (last >= 0) {
            r.at = lo[last];
            r.n = n[last];
        }
        for (int k = 0; k < last; k++) {
            r.first += lo[k] * j->stride[k];
            r.entry += lo[k] * j->step[k];
        }
        for (int k = 0; k >= 0; r.x += r.n) {
            if (lb_config_is_bnb(j->q)) to_half(j, &r);
            use(j, &r);
            for (k = last - 1; k >= 0; k--) { /* an odometer */
                r.first += j->stride[k];
                r.entry += j->step[k];
                if (++i[k] < n[k]) break;
                r.first -= n[k] * j->stride[k];
                r.entry -= n[k] * j->step[k];
                i[k] = 0;
            }
        }
    }
}

/* Numbers that are not negative have the order of their bits, in every dtype,
 * and those of a group are of the scale's, or it is f32. */
static void raise_to(const job *j, int64_t entry, float most)
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

static void find(const job *j, const run *r)
{
    if (j->g == 1) {
        for (int64_t i = 0; i < r->n; i++)
            raise_to(j, r->entry + r->at + i, fabsf(r->x[i]));
        return;
    }
    const int64_t g = j->g ? j->g : r->at + r->n;
    for (int64_t i = 0, m; i < r->n; i += m) {
        m = g - (r->at + i) % g;
        m = m < r->n - i ? m : r->n - i;
        raise_to(j, r->entry + (r->at + i) / g, lb_largest_abs(r->x + i, m));
    }
}

/* max |x| / 127, and the number below where 127 times that would overflow. */
static float scale_of(float most)
{
    const float s = most / (float)MOST;
    return s * (float)MOST > FLT_MAX ? nextafterf(s, 0) : s;
}

static void make_scales(const job *j, int64_t first, int64_t n)
{
    float s[PIECE];
    lb_load_run(j->d, scale_at(j, first), 1, n, s);
    if (j->q->compat == LB_COMPAT_SEED) {
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
    lb_store_run(LB_C_F32, s, j->d, n, scale_at(j, first));
}

static void invert_scales(const job *j, int64_t first, int64_t n)
{
    float *s = scale_at(j, first);
    for (int64_t i = 0; i < n; i++)
        s[i] = 1.0f / s[i];
}

/* What is stored by now to what elements are divided by, or multiplied with.
 * All codes of a group whose scale is 0 are 0. */
static void to_factors(const job *j, int64_t n, float *f)
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

/* One for each element of a run from one for each group, in place: an entry
 * never lies behind the elements it serves. */
static void spread(int64_t g, const run *r, int64_t entries, float *f)
{
    for (int64_t b = entries - 1; b >= 0; b--) {
        const float v = f[b];
        const int64_t begin = (r->at / g + b) * g - r->at, end = begin + g;
        const int64_t hi = end < r->n ? end : r->n;
        for (int64_t i = begin > 0 ? begin : 0; i < hi; i++)
            f[i] = v;
    }
}

static void put(const job *j, const run *r)
{
    const int64_t g = j->g ? j->g : r->at + r->n, n = r->n;
    const int64_t entry = r->entry + r->at / g;
    const int64_t entries = (r->at + n - 1) / g - r->at / g + 1;
    int8_t *code = j->codes + r->first + r->at;
    float *f = j->f;
    lb_load_run(j->d, scale_at(j, entry), 1, entries, f);
    to_factors(j, entries, f);
    spread(g, r, entries, f);
    if (lb_config_is_bnb(j->q))
        for (int64_t i = 0; i < n; i++)
            f[i] = r->x[i] * f[i];
    else
        for (int64_t i = 0; i < n; i++)
            f[i] = r->x[i] / f[i];
    lb_round_run(j->d, n, f); /* of a 16-bit dtype only with compat seed */
    /* Adding 1.5 * 2^23 leaves no place for fractions: half to even. */
    const float most = MOST, whole = 12582912.0f;
    for (int64_t i = 0; i < n; i++) {
        const float v = f[i] > most ? most : f[i] < -most ? -most : f[i];
        code[i] = (int8_t)(int)((v + whole) - whole);
    }
}

static void encode(const lb_work *w)
{
    const job j = job_of(w);
    if (w->phase == FIND || w->phase == PUT) {
        each_run(&j, w->phase == FIND ? find : put);
        return;
    }
    const int64_t size = lb_size(w->out->store->part[SCALE].a);
    for (int64_t i = w->lo * PIECE, n; i < size && i < w->hi * PIECE; i += n) {
        n = size - i < PIECE ? size - i : PIECE;
        (w->phase == MAKE ? make_scales : invert_scales)(&j, i, n);
    }
}

/* ---- decoding ----------------------------------------------------------- */

static void decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, void *out)
{
    const int8_t *code = lb_part_bytes(s, CODES);
    float room[LB_SPANS];
    const lb_spans scale = lb_part_spans(cpu, s, SCALE, first, n, room, out);
    code += lb_part_entry(s, CODES, first);
    lb_decode_kernel_for(cpu)->bytes((lb_meaning)s->meaning, code, n, scale,
                                     out);
    if (s->meaning == LB_MEANS_SCALE)
        lb_convert_kernel_for(cpu)->round(s->part[SCALE].a->dtype, n, out);
}

/* Not where numbers are rounded to 16 bits. */
static bool levels(const lb_cpu *cpu, const lb_store *s, lb_levels *to)
{
    (void)cpu;
    to->scale = SCALE;
    to->inverse = s->meaning == LB_MEANS_INVERSE;
    to->factor = s->meaning == LB_MEANS_ABSMAX ? 1.0f / 127.0f : 1.0f;
    return s->part[SCALE].a->dtype == LB_F32;
}

/* Half a step, of which there are 127. What rounding adds, with u = 2^-24: in
 * units of a step at most 127 u for each of scale, quotient and the two of
 * decoding, below 2^-14. Where steps are rounded to 16 bits, or numbers to f16
 * before all else, nothing is promised: small groups may lose everything. */
static double bound(const lb_quant *q)
{
    if (q->compat != LB_COMPAT_NATIVE) return 0;
    return (0.5 + 0x1p-14) / MOST + lb_config_unit(q);
}

/* ---- the bytes of others ------------------------------------------------ */

/* eformer: "weight" and "scale", which are the parts under other names. */
static lb_array *load_seed(lb_ctx *cx, const lb_quant *q, const lb_shape *shape,
                           lb_array *const *part)
{
    static const char *const name[] = {"codes", "scale"};
    const lb_quant_config config = lb_config_of(q);
    return lb_from_parts(cx, &config, *shape, NULL, name, part,
                         part[SCALE] ? 2 : 1);
}

/* A scale as others have it: dense, an entry per element of an axis or one for
 * all of it. */
static lb_array *plain_scale(lb_ctx *cx, lb_array *a, int meaning)
{
    const lb_store *s = a->store;
    if (s->meaning != meaning) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "int8: its scales have meaning %d, and this layout %d",
                s->meaning, meaning);
        return NULL;
    }
    bool ok = lb_shape_equal(&a->shape, &s->shape);
    for (int k = 0; k < s->shape.rank; k++)
        ok = ok && (s->part[SCALE].g[k] <= 1 ||
                    s->part[SCALE].g[k] >= s->shape.dim[k]);
    if (!ok) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "int8: scales %s of %s are of blocks, which this layout does "
                "not have",
                LB_SHOW(&s->part[SCALE].a->shape), LB_SHOW(&a->shape));
        return NULL;
    }
    return lb_materialize(cx, s->part[SCALE].a);
}

static lb_array *save_seed(lb_ctx *cx, lb_array *a, int part)
{
    return part ? plain_scale(cx, a, LB_MEANS_SCALE) : lb_codes(cx, a);
}

/* bitsandbytes: "weight" i8 (out, in) and "scb" f32 (out). */
static lb_array *load_bnb(lb_ctx *cx, const lb_quant *q, const lb_shape *shape,
                          lb_array *const *part)
{
    static const char *const name[] = {"codes", "scale"};
    lb_quant_config config = lb_config_of(q);
    config.meaning = LB_MEANS_ABSMAX;
    lb_shape scale = *shape;
    if (scale.rank) scale.dim[scale.rank - 1] = 1;
    lb_array *own[] = {part[CODES], part[SCALE]};
    if (own[SCALE] && !(own[SCALE] = lb_reshape(cx, own[SCALE], scale)))
        return NULL;
    return lb_from_parts(cx, &config, *shape, NULL, name, own,
                         own[SCALE] ? 2 : 1);
}

static lb_array *save_bnb(lb_ctx *cx, lb_array *a, int part)
{
    if (!part) return lb_codes(cx, a);
    lb_shape rows = a->shape;
    if (rows.rank) rows.rank--;
    lb_array *scale = plain_scale(cx, a, LB_MEANS_ABSMAX);
    if (!scale) return NULL;
    if (lb_size(scale) != lb_shape_size(&rows)) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "int8: scales %s of %s are not one for each row",
                LB_SHOW(&scale->shape), LB_SHOW(&a->shape));
        return NULL;
    }
    return lb_reshape(cx, scale, rows);
}

static const lb_foreign foreign[] = {
    {"seed", {"weight", "scale"}, load_seed, save_seed},
    {"bnb", {"weight", "scb"}, load_bnb, save_bnb},
    {0},
};

extern const lb_format lb_format_int8;
const lb_format lb_format_int8 = {
    .struct_size = sizeof(lb_format),
    .name = "int8",
    .part = {{.name = "codes", .raw = true}, {.name = "scale", .scale = true}},
    .codes = {.bits = 8, .least = -MOST, .most = MOST, .step = 1},
    .relabel = true,
    .levels = levels,
    .decode = decode,
    .layout = layout,
    .prepare = prepare,
    .encode_plan = plan,
    .encode = encode,
    .bound = bound,
    .kernels = LB_DECODE_LEVELS,
    .foreign = foreign,
};
