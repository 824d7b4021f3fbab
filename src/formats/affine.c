/* affine.c - unsigned codes of 1 to 8 bits with a scale and a zero point per
 * group: int1 to int7, and uint8.
 *
 *   codes  a stream of bits per row (kernels/affine_decode.h); rows are padded
 *          with zeros to whole entries of the part:
 *
 *              bits      1  2  3  4  5  6  7  8
 *              elements  8  4  8  2  8  4  8  1     of an entry
 *              bytes     1  1  3  1  5  3  7  1
 *
 *   scale  one per group; f32, f16 or bf16; may be negative
 *   zero   optional: one per group; integers or floats; default 2^(bits-1), or
 *          0 if there is a bias
 *   bias   optional: one per group; floats
 *   group  optional: the group of each column (GPTQ's act-order). Groups are
 *          then an axis of the other parts: scale (rows, 1, groups)
 *
 *   without bias  w = scale * (code - zero) in f32
 *   with bias     w = scale * (code - zero) + bias, where the product and the
 *                 sum are rounded to the dtype of the scale, as in MLX
 *
 * Encoding: a group is block_size elements of a row, or a row (scale row).
 *
 *   symmetric  s = m / -2^(bits-1), with m the first value of the largest |x|,
 *              which so gets code 0; -m would get 2^bits and is clamped
 *   center     s = (max - min) / (2^bits - 1), where min <= 0 <= max;
 *              zero = -round(min / s); max gets the largest code
 *   code       round(x / s) + zero, clamped; halves are rounded up
 */
#include "formats/affine.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "formats/config.h"
#include "kernels/affine_decode.h"
#include "kernels/convert.h"
#include "lowbit_ext.h"

enum {
    CODES = LB_AFFINE_CODES,
    SCALE = LB_AFFINE_SCALE,
    ZERO = LB_AFFINE_ZERO,
    BIAS = LB_AFFINE_BIAS,
    GROUP = LB_AFFINE_GROUP
};
enum { BLOCK = 64 }; /* default block_size */

static const lb_affine_type *type_of(const lb_format *f)
{
    return f->type;
}

/* ---- layout ------------------------------------------------------------- */

static bool check_groups(lb_ctx *cx, const lb_quant *q, int rank)
{
    const char *name = q->format->name;
    const bool row = q->scale == LB_SCALE_ROW;
    if (q->axes.n && (q->axes.n > 1 || q->axes.axis[0] != rank - 1))
        return lb_fail(cx, LB_E_AXIS,
                       "%s: axis %d of %d is not supported: groups are along "
                       "the last axis (quantize the transpose)",
                       name, q->axes.axis[0], rank);
    if (q->scale == LB_SCALE_NONE || q->scale == LB_SCALE_TENSOR)
        return lb_fail(cx, LB_E_ARG,
                       "%s: scale %s is not supported: use block or row", name,
                       lb_config_scale(q->scale));
    if (q->blocks == LB_BLOCKS_FLAT)
        return lb_fail(cx, LB_E_ARG,
                       "%s: blocks is flat, but groups are within rows", name);
    if (q->blocks == LB_BLOCKS_LISTED)
        return (!row && q->block_size > 0 && rank > 0) ||
               lb_fail(cx, LB_E_ARG,
                       "%s: blocks is listed, which requires the number of "
                       "groups as block_size, and rows",
                       name);
    if (row && q->block_size)
        return lb_fail(cx, LB_E_ARG, "%s: block_size is %lld, but scale is row",
                       name, (long long)q->block_size);
    return q->block_size % 8 == 0 ||
           lb_fail(cx, LB_E_ARG, "%s: block_size is %lld, not a multiple of 8",
                   name, (long long)q->block_size);
}

static bool check(lb_ctx *cx, const lb_quant *q, int rank)
{
    if (q->compat != LB_COMPAT_NATIVE)
        return lb_fail(cx, LB_E_ARG,
                       "%s: compat is %s, but only native is supported",
                       q->format->name, lb_compat_name(q->compat));
    return check_groups(cx, q, rank) &&
           lb_config_unused(cx, q, "decode", lb_config_decode(q->decode)) &&
           lb_config_unused(cx, q, "meaning", lb_config_meaning(q->meaning)) &&
           lb_config_unused(cx, q, "threshold",
                            lb_config_threshold(q->threshold));
}

/* Scales, zero points and biases: per block, per row, or of listed groups. */
static void fill_groups(const lb_quant *q, lb_layout *to)
{
    const bool listed = q->blocks == LB_BLOCKS_LISTED;
    const int64_t block = q->scale == LB_SCALE_ROW || listed ? 0
                          : q->block_size                    ? q->block_size
                                                             : BLOCK;
    for (int p = SCALE; p <= BIAS; p++) {
        lb_part_rows(&to->part[p], &to->stored, block);
        if (listed) to->part[p].own = q->block_size;
    }
    if (!listed) return;
    to->part[GROUP].g[to->stored.rank - 1] = 1;
    to->elem[GROUP] = LB_I32;
}

static bool layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                   const lb_shape *shape, lb_layout *to)
{
    (void)from;
    const lb_affine_type *t = type_of(q->format);
    if (!check(cx, q, shape->rank) || !lb_config_float(cx, q, to->dtype))
        return false;
    if (!shape->rank) to->stored = LB_SHAPE(1);
    if (t->bytes > 1 || q->blocks == LB_BLOCKS_LISTED)
        lb_config_fold(&to->stored);
    const int last = to->stored.rank - 1;
    lb_part_rows(&to->part[CODES], &to->stored, t->elements);
    to->part[CODES].own = t->bytes > 1 ? t->bytes : 0;
    fill_groups(q, to);
    to->elem[CODES] = LB_U8;
    to->elem[SCALE] = LB_F32;
    if (q->center) to->elem[ZERO] = LB_U8;
    to->run = to->part[SCALE].g[last] ? to->part[SCALE].g[last]
              : to->stored.dim[last]  ? to->stored.dim[last]
                                      : 1;
    return true;
}

/* ---- decoding ----------------------------------------------------------- */

static int64_t row_of(const lb_store *s)
{
    const int last = s->shape.rank - 1;
    return last < 0 ? 1 : s->shape.dim[last];
}

/* A code per byte: in place, or in room. */
static const uint8_t *read_codes(const lb_affine_kernel *k, const lb_store *s,
                                 int64_t first, int64_t n, uint8_t *room)
{
    const int bits = type_of(s->fmt)->bits;
    const int64_t at = first % row_of(s);
    const uint8_t *row = lb_part_bytes(s, CODES);
    row += lb_part_entry(s, CODES, first - at);
    if (bits == 8) return row + at;
    k->codes(bits, row, at, n, room);
    return room;
}

/* n entries of a part, of any dtype, as floats. */
static void read_entries(const lb_cpu *cpu, const lb_array *a, int64_t at,
                         int64_t n, float *out)
{
    enum { SOME = 64 };
    int64_t v[SOME];
    if (a->dtype >= LB_F32 && a->dtype <= LB_F64) {
        lb_tile_read_flat(cpu, a, at, n, LB_C_F32, out);
        return;
    }
    const uint8_t *bytes = a->dtype == LB_U8 ? lb_data(a) : NULL;
    for (int64_t i = 0; bytes && i < n; i++)
        out[i] = (float)bytes[at + i];
    for (int64_t i = 0, m; !bytes && i < n; i += m) {
        m = n - i < SOME ? n - i : SOME;
        lb_tile_read_flat(cpu, a, at + i, m, lb_ctype_of(a->dtype), v);
        lb_convert_run(lb_ctype_of(a->dtype), v, LB_C_F32, m, out + i);
    }
}

static float default_zero(const lb_store *s)
{
    return s->part[BIAS].a ? 0 : (float)(1 << (type_of(s->fmt)->bits - 1));
}

/* Both operations of MLX round to the dtype of the scale. */
static void round_to_scale(const lb_cpu *cpu, const lb_store *s, int64_t n,
                           float *w)
{
    const lb_dtype d = s->part[SCALE].a->dtype;
    if (d == LB_F16 || d == LB_BF16) lb_convert_kernel_for(cpu)->round(d, n, w);
}

/* The groups of a part that a run covers. */
typedef struct {
    int64_t at;    /* of the first element in its group */
    int64_t g;     /* elements of a group; 0: all */
    int64_t n;     /* groups of the run */
    int64_t entry; /* of the first group */
} affine_groups;

static affine_groups groups_of(const lb_store *s, int part, int64_t first,
                               int64_t n)
{
    const int last = s->shape.rank - 1;
    affine_groups r = {.g = last < 0 ? 0 : s->part[part].g[last], .n = 1};
    r.entry = lb_part_entry(s, part, first);
    if (!r.g) return r;
    r.at = first % s->shape.dim[last] % r.g;
    r.n = (r.at + n - 1) / r.g + 1;
    return r;
}

static lb_spans spans_of(const lb_cpu *cpu, const lb_store *s, int part,
                         int64_t first, int64_t n, float *room)
{
    const affine_groups r = groups_of(s, part, first, n);
    read_entries(cpu, s->part[part].a, r.entry, r.n, room);
    return (lb_spans){room, r.g ? r.g - r.at : n, r.g ? r.g : n};
}

/* A run of at most LB_SPANS groups of every part. */
static void decode_spans(const lb_cpu *cpu, const lb_store *s, int64_t first,
                         int64_t n, const uint8_t *code, float *w)
{
    const lb_affine_kernel *k = lb_affine_kernel_for(cpu);
    float scale[LB_SPANS], room[LB_SPANS];
    const lb_spans by = spans_of(cpu, s, SCALE, first, n, scale);
    if (s->part[ZERO].a) spans_of(cpu, s, ZERO, first, n, room);
    k->scale(code, n, by, s->part[ZERO].a ? room : NULL, default_zero(s), w);
    if (!s->part[BIAS].a) return;
    round_to_scale(cpu, s, n, w);
    k->add(n, spans_of(cpu, s, BIAS, first, n, room), w);
    round_to_scale(cpu, s, n, w);
}

/* The smallest group of any part. */
static int64_t least_group(const lb_store *s)
{
    const int last = s->shape.rank - 1;
    int64_t least = LB_RUN;
    for (int p = SCALE; p <= BIAS && last >= 0; p++)
        if (s->part[p].a && s->part[p].g[last] && s->part[p].g[last] < least)
            least = s->part[p].g[last];
    return least;
}

/* Whether scale, zero and bias have the same groups, as in all arrays that are
 * made by this format's layout. */
static bool same_groups(const lb_store *s)
{
    const int last = s->shape.rank - 1;
    const lb_part *scale = &s->part[SCALE];
    for (int p = ZERO; p <= BIAS && last >= 0; p++)
        if (s->part[p].a && s->part[p].g[last] != scale->g[last]) return false;
    return true;
}

/* ---- listed groups ------------------------------------------------------ */

/* The entries of a part that the elements of a run use, one for each. Reads all
 * groups of the row if they are fewer than the elements. */
static void pick(const lb_cpu *cpu, const lb_store *s, int part, int64_t first,
                 int64_t n, const int32_t *group, float *out)
{
    float all[LB_RUN];
    const int64_t own = s->part[part].own, most = own > 0 ? own - 1 : 0;
    const int64_t at = lb_part_entry(s, part, first);
    const bool few = most < n && most < LB_RUN;
    if (few) read_entries(cpu, s->part[part].a, at, most + 1, all);
    for (int64_t i = 0; i < n; i++) {
        const int64_t g = group[i] < 0 ? 0 : group[i] > most ? most : group[i];
        if (few)
            out[i] = all[g];
        else
            read_entries(cpu, s->part[part].a, at + g, 1, &out[i]);
    }
}

static void decode_listed(const lb_cpu *cpu, const lb_store *s, int64_t first,
                          int64_t n, const uint8_t *code, float *w)
{
    float zero[LB_RUN];
    const int32_t *group = lb_part_bytes(s, GROUP);
    group += lb_part_entry(s, GROUP, first);
    for (int64_t i = 0; i < n; i++)
        zero[i] = default_zero(s);
    if (s->part[ZERO].a) pick(cpu, s, ZERO, first, n, group, zero);
    pick(cpu, s, SCALE, first, n, group, w);
    for (int64_t i = 0; i < n; i++)
        w[i] *= (float)code[i] - zero[i];
    if (!s->part[BIAS].a) return;
    round_to_scale(cpu, s, n, w);
    pick(cpu, s, BIAS, first, n, group, zero);
    for (int64_t i = 0; i < n; i++)
        w[i] += zero[i];
    round_to_scale(cpu, s, n, w);
}

static void decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, void *out)
{
    uint8_t room[LB_RUN];
    float *w = out;
    if (n <= 0) return;
    const uint8_t *code =
        read_codes(lb_affine_kernel_for(cpu), s, first, n, room);
    if (s->part[GROUP].a) {
        decode_listed(cpu, s, first, n, code, w);
        return;
    }
    /* Groups that differ are decoded element by element. */
    const int64_t each = same_groups(s) ? least_group(s) * (LB_SPANS - 2) : 1;
    for (int64_t i = 0, m; i < n; i += m) {
        m = n - i < each ? n - i : each;
        decode_spans(cpu, s, first + i, m, code + i, w + i);
    }
}

/* ---- encoding ----------------------------------------------------------- */

/* To the nearest integer, half up; beyond 2^21 any that is as large. */
static float nearest(float x)
{
    const float limit = 0x1p21f, magic = 0x1.8p23f;
    const float y = x > limit ? limit : x < -limit ? -limit : x;
    const float even = (y + magic) - magic;
    return y - even == 0.5f ? even + 1 : even;
}

static float clamped(float x, float most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

typedef struct {
    float scale, zero;
    float top; /* from here on the largest code: else max might miss it by the
                * rounding of two quotients, and codes would not be stable */
} affine_fit;

static affine_fit fit_symmetric(int bits, const float *x, int64_t n)
{
    const float half = (float)(1 << (bits - 1));
    float m = 0;
    for (int64_t i = 0; i < n; i++)
        m = fabsf(x[i]) > fabsf(m) ? x[i] : m;
    return (affine_fit){m != 0 ? m / -half : 0, half, INFINITY};
}

static affine_fit fit_range(int bits, const float *x, int64_t n)
{
    const float codes = (float)((1 << bits) - 1);
    float least = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    const double step = ((double)most - (double)least) / (double)codes;
    const float s = step < FLT_MAX ? (float)step : FLT_MAX;
    const float zero = s > 0 ? clamped(-nearest(least / s), codes) : 0;
    return (affine_fit){s, zero, s > 0 ? most : INFINITY};
}

static void encode_group(int bits, affine_fit f, const float *x, int64_t n,
                         uint8_t *code)
{
    const float most = (float)((1 << bits) - 1);
    for (int64_t i = 0; i < n; i++) {
        const float q = f.scale != 0 ? x[i] / f.scale : 0;
        const float c = clamped(nearest(q) + f.zero, most);
        code[i] = (uint8_t)(x[i] >= f.top ? most : c);
    }
}

/* Part of a group, which is a whole number of bytes unless it ends the row. */
static void pack_group(int bits, affine_fit f, const float *x, int64_t n,
                       uint8_t *to)
{
    enum { SOME = 256 };
    uint8_t code[SOME];
    for (int64_t i = 0; i < n; i += SOME) {
        const int64_t m = n - i < SOME ? n - i : SOME;
        encode_group(bits, f, x + i, m, code);
        lb_affine_pack(bits, code, m, to + i / 8 * bits);
    }
}

static void encode_run(const lb_cpu *cpu, const lb_quant *q, lb_store *to,
                       int64_t first, int64_t n, const float *x)
{
    (void)cpu;
    const lb_affine_type *t = type_of(q->format);
    const int64_t g = to->part[SCALE].g[to->shape.rank - 1];
    const int64_t block = g ? g : n;
    uint8_t *byte = lb_part_place(to, CODES);
    float *scale = lb_part_place(to, SCALE);
    uint8_t *zero = q->center ? lb_part_place(to, ZERO) : NULL;
    const int64_t entry = lb_part_entry(to, SCALE, first);
    const int64_t entries = (n + t->elements - 1) / t->elements;
    if (n <= 0) return;
    byte += lb_part_entry(to, CODES, first);
    if (n % t->elements)
        memset(byte + (entries - 1) * t->bytes, 0, (size_t)t->bytes);
    for (int64_t k = 0, lo = 0; lo < n; k++, lo += block) {
        const int64_t m = n - lo < block ? n - lo : block;
        const affine_fit f = zero ? fit_range(t->bits, x + lo, m)
                                  : fit_symmetric(t->bits, x + lo, m);
        scale[entry + k] = f.scale;
        if (zero) zero[entry + k] = (uint8_t)f.zero;
        pack_group(t->bits, f, x + lo, m, byte + lo / 8 * t->bits);
    }
}

/* The step, where the largest code is clamped; half of it with zero points,
 * whose range may be twice the largest |x|. Roundings of quotient, scale and
 * product add at most 2^8 2^-23 of a step. */
static double bound(const lb_quant *q)
{
    const double codes = 1 << type_of(q->format)->bits;
    return (q->center ? 1 / (codes - 1) : 2 / codes) * (1 + 0x1p-12) +
           lb_config_unit(q) * 2;
}

/* ---- products ------------------------------------------------------------ */

/* Products know levels of 4 bits that are symmetric. */
static bool levels(const lb_cpu *cpu, const lb_store *s, lb_levels *to)
{
    (void)cpu;
    if (s->part[ZERO].a || s->part[BIAS].a || s->part[GROUP].a) return false;
    for (int c = 0; c < 16; c++)
        to->level[c] = (float)(c - 8);
    to->scale = SCALE;
    return true;
}

/* An empty row has a scale. */
static void prepare(const lb_quant *q, lb_store *to)
{
    (void)q;
    for (int p = SCALE; p <= ZERO; p++) {
        const lb_array *a = to->part[p].a;
        if (a && a->store->data_size)
            memset(a->store->data, 0, a->store->data_size);
    }
}

#define AFFINE(NAME, BITS, ELEMENTS, BYTES, LEVELS)                            \
    static const lb_affine_type type_##NAME = {BITS, ELEMENTS, BYTES};         \
    extern const lb_format lb_format_##NAME;                                   \
    const lb_format lb_format_##NAME = {                                       \
        .struct_size = sizeof(lb_format),                                      \
        .name = #NAME,                                                         \
        .part = {{.name = "codes", .raw = true},                               \
                 {.name = "scale", .scale = true, .negative = true},           \
                 {.name = "zero", .optional = true, .integers = true},         \
                 {.name = "bias", .optional = true},                           \
                 {.name = "group", .raw = true, .optional = true}},            \
        .codes = {.bits = BITS, .most = (1 << BITS) - 1, .step = 1},           \
        .relabel = true,                                                       \
        .levels = LEVELS,                                                      \
        .decode = decode,                                                      \
        .layout = layout,                                                      \
        .prepare = prepare,                                                    \
        .encode_run = encode_run,                                              \
        .bound = bound,                                                        \
        .type = &type_##NAME,                                                  \
        .kernels = LB_DECODE_LEVELS,                                           \
        .recode = &lb_affine_recode,                                           \
    };
AFFINE(int1, 1, 8, 1, NULL)
AFFINE(int2, 2, 4, 1, NULL)
AFFINE(int3, 3, 8, 3, NULL)
AFFINE(int4, 4, 2, 1, levels)
AFFINE(int5, 5, 8, 5, NULL)
AFFINE(int6, 6, 4, 3, NULL)
AFFINE(int7, 7, 8, 7, NULL)
AFFINE(uint8, 8, 1, 1, NULL)
