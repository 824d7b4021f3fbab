/* nf4.c - 4 bits per element: an index into sixteen levels, times the block's
 * absmax.
 *
 *     byte      0       1       2           row of 5, block of 4
 *     element  0 1     2 3     4 -          high half first; unused half at a
 *     absmax   -- 0 ------     - 1 -        row's end holds code 7, zero
 *
 * value = level[code] * absmax in f32. Blocks are within rows of the last axis,
 * or cross rows (bitsandbytes); then the array is stored as one row. An array
 * with another decode than the default stores its own sixteen levels.
 */
#include <math.h>
#include <string.h>

#include "formats/config.h"
#include "kernels/convert.h"
#include "kernels/decode.h"
#include "kernels/nf4_ref.h"
#include "kernels/unpack.h"
#include "lowbit_ext.h"

enum { CODES, ABSMAX, TABLE };
enum { LEVELS = 16, EDGES = 15, BLOCK = 64, FILLER = 7 };

/* ---- decode -------------------------------------------------------------- */

static bool levels(const lb_cpu *cpu, const lb_store *s, lb_levels *to)
{
    const lb_array *own = s->part[TABLE].a;
    if (own)
        lb_tile_read_flat(cpu, own, 0, LEVELS, LB_C_F32, to->level);
    else
        memcpy(to->level, lb_nf4_levels, sizeof to->level);
    to->scale = ABSMAX;
    return true;
}

/* A run of a row: its codes, and the levels, which may be read into `own`. */
typedef struct {
    const uint8_t *byte;
    int64_t skip; /* 1 if the first element is in the low half */
    const float *level;
} nf4_run;

static nf4_run run_at(const lb_cpu *cpu, const lb_store *s, int64_t first,
                      float *own)
{
    const int rank = s->shape.rank;
    const int64_t row = rank ? s->shape.dim[rank - 1] : 1;
    const uint8_t *byte = lb_part_bytes(s, CODES);
    nf4_run r = {byte + lb_part_entry(s, CODES, first), first % row % 2,
                 lb_nf4_levels};
    if (s->part[TABLE].a) {
        lb_tile_read_flat(cpu, s->part[TABLE].a, 0, LEVELS, LB_C_F32, own);
        r.level = own;
    }
    return r;
}

static void decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, void *out)
{
    float own[LEVELS], room[LB_SPANS];
    const nf4_run r = run_at(cpu, s, first, own);
    const lb_spans absmax = lb_part_spans(cpu, s, ABSMAX, first, n, room, out);
    lb_decode_kernel_for(cpu)->halves(r.level, r.byte, r.skip, n, absmax, out);
}

static bool unpack(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, lb_sink to)
{
    float own[LEVELS], room[LB_SPANS], each[LB_RUN];
    const nf4_run r = run_at(cpu, s, first, own);
    if (r.skip) return false;
    const lb_spans absmax = lb_part_spans(cpu, s, ABSMAX, first, n, room, each);
    return absmax.value &&
           lb_unpack_kernel_for(cpu)->halves(r.level, r.byte, n, &absmax, to);
}

/* ---- layout -------------------------------------------------------------- */

static bool check(lb_ctx *cx, const lb_quant *q, lb_dtype label)
{
    if (q->block_size < 0 || q->block_size % 2)
        return lb_fail(cx, LB_E_ARG,
                       "nf4: block_size is %lld, not a positive even number",
                       (long long)q->block_size);
    if (q->axes.n && q->compat != LB_COMPAT_EFORMER)
        return lb_fail(
            cx, LB_E_AXIS,
            "nf4: axis %d is not supported: blocks are along the last axis",
            q->axes.axis[0]);
    if (q->scale != LB_SCALE_DEFAULT && q->scale != LB_SCALE_BLOCK)
        return lb_fail(cx, LB_E_ARG,
                       "nf4: scale %s is not supported: there is one "
                       "scale per block",
                       lb_config_scale(q->scale));
    return lb_config_unused(cx, q, "meaning", lb_config_meaning(q->meaning)) &&
           lb_config_unused(cx, q, "threshold",
                            lb_config_threshold(q->threshold)) &&
           lb_config_unused(cx, q, "center", lb_config_flag(q->center)) &&
           lb_config_float(cx, q, label);
}

/* Fills the parts table for rows of that stored shape. */
static void fill_table(const lb_shape *stored, int64_t block, lb_part *part)
{
    lb_part_rows(&part[CODES], stored, 2);
    lb_part_rows(&part[ABSMAX], stored, block);
    part[TABLE].own = LEVELS;
}

static bool layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                   const lb_shape *shape, lb_layout *to)
{
    if (!check(cx, q, to->dtype)) return false;
    if (lb_config_is_flat(q) || shape->rank == 0)
        to->stored = LB_SHAPE(lb_shape_size(shape));
    if (q->decode == LB_DECODE_POLY) lb_config_fold(&to->stored);
    to->run = q->block_size ? q->block_size : BLOCK;
    fill_table(&to->stored, to->run, to->part);
    to->elem[CODES] = LB_U8;
    /* eformer's absmax has the input's dtype, which is exact. */
    to->elem[ABSMAX] =
        q->compat == LB_COMPAT_EFORMER && from != LB_F64 ? from : LB_F32;
    if (q->decode == LB_DECODE_POLY) to->elem[TABLE] = LB_F32;
    return true;
}

static void prepare(const lb_quant *q, lb_store *to)
{
    (void)q;
    if (!to->part[TABLE].a) return;
    float *level = lb_part_place(to, TABLE);
    for (int c = 0; c < LEVELS; c++)
        level[c] = lb_nf4_poly[c];
}

/* ---- encode -------------------------------------------------------------- */

enum { SOME = 64 }; /* blocks encoded at a time */

/* Encodes whole blocks, or a short one. */
static void encode_blocks(const lb_cpu *cpu, lb_compat compat, lb_dtype d,
                          const float *x, int64_t n, int64_t block,
                          uint8_t *byte, void *absmax)
{
    const lb_encode_kernel *k = lb_encode_kernel_for(cpu);
    const int64_t blocks = n < block ? 1 : n / block;
    float most[SOME], by[SOME];
    k->largest(x, n, block, most);
    const lb_quotient how =
        lb_nf4_norms(compat, d, n >= block, blocks, most, by);
    lb_nf4_encoder_for(cpu)(lb_nf4_edges(compat), how, x, n, block, by, byte);
    lb_store_run(LB_C_F32, most, d, blocks, absmax);
}

static void encode_run(const lb_cpu *cpu, const lb_quant *q, lb_store *to,
                       int64_t first, int64_t n, const float *x)
{
    const int64_t block = to->part[ABSMAX].g[to->shape.rank - 1];
    const lb_dtype d = to->part[ABSMAX].a->dtype;
    uint8_t *byte = lb_part_place(to, CODES);
    char *absmax = lb_part_place(to, ABSMAX);
    byte += lb_part_entry(to, CODES, first);
    absmax += (size_t)lb_part_entry(to, ABSMAX, first) * lb_dtype_size(d);
    for (int64_t k, m; n > 0; x += k, n -= k, byte += k / 2) {
        m = n / block < SOME ? n / block : SOME;
        k = m ? m * block : n;
        encode_blocks(cpu, q->compat, d, x, k, block, byte, absmax);
        absmax += (size_t)m * lb_dtype_size(d);
    }
}

/* The worst case is at the ends of each code's interval. */
static double bound(const lb_quant *q)
{
    const float *edge = lb_nf4_edges(q->compat);
    const float *level =
        q->decode == LB_DECODE_POLY ? lb_nf4_poly : lb_nf4_levels;
    double most = 0;
    for (int c = 0; c < LEVELS; c++) {
        const double lo = c > 0 ? edge[c - 1] : -1;
        const double hi = c < EDGES ? edge[c] : 1;
        most = fmax(most, fmax(level[c] - lo, hi - level[c]));
    }
    /* Rounding of the quotient, the product, and to the logical dtype. */
    most += 0x1p-20 + lb_config_unit(q);
    /* eformer adds f16's smallest normal number to the absmax: this may double
     * it. */
    return q->compat == LB_COMPAT_EFORMER ? most + 0.5 + 0x1p-7 : most;
}

/* ---- eformer's layout --------------------------------------------------- */

/* packed (..., blocks, block/2) and absmax (..., blocks): the last block of a
 * row is padded with zeros, whose code is 7. */
enum { EFORMER_PACKED, EFORMER_ABSMAX };

/* shape with another size of the last axis; with the last axis split in two. */
static lb_shape with_last(const lb_shape *shape, int64_t n)
{
    lb_shape s = *shape;
    s.dim[s.rank - 1] = n;
    return s;
}

static lb_shape with_two(const lb_shape *shape, int64_t n0, int64_t n1)
{
    lb_shape s = with_last(shape, n0);
    s.dim[s.rank++] = n1;
    return s;
}

/* Entries [lo, hi) of the last axis. */
static lb_array *cut_last(lb_ctx *cx, lb_array *a, int64_t lo, int64_t hi)
{
    if (!a) return NULL;
    int64_t start[LB_MAX_RANK] = {0}, limit[LB_MAX_RANK];
    const int last = a->shape.rank - 1;
    for (int k = 0; k <= last; k++)
        limit[k] = a->shape.dim[k];
    start[last] = lo;
    limit[last] = hi;
    return lb_slice(cx, a, start, limit, NULL);
}

/* The bytes for rows of n elements, with code 7 in the unused half at their
 * ends, whatever it held. */
static lb_array *own_codes(lb_ctx *cx, lb_array *packed, const lb_shape *stored)
{
    const int64_t n = stored->dim[stored->rank - 1], bytes = n / 2 + n % 2;
    lb_array *a = cut_last(cx, packed, 0, bytes);
    if (n % 2) {
        lb_array *end = cut_last(cx, a, bytes - 1, bytes);
        end = lb_and(cx, end, lb_scalar_int(cx, 0xf0));
        end = lb_or(cx, end, lb_scalar_int(cx, FILLER));
        lb_array *both[] = {cut_last(cx, a, 0, bytes - 1), end};
        a = lb_concatenate(cx, both, 2, -1);
    }
    return lb_materialize(cx, a);
}

static bool check_eformer(lb_ctx *cx, const char *name, const lb_array *a,
                          const lb_shape *want, bool ok, const char *dtypes)
{
    if (!ok)
        return lb_fail(cx, LB_E_DTYPE,
                       "nf4: %s of layout eformer is %s, not %s", name,
                       lb_dtype_name(a->dtype), dtypes);
    return lb_shape_equal(&a->shape, want) ||
           lb_fail(cx, LB_E_SHAPE,
                   "nf4: %s of layout eformer has shape %s, not %s", name,
                   LB_SHOW(&a->shape), LB_SHOW(want));
}

static lb_array *eformer_table(lb_ctx *cx, const lb_shape *stored,
                               const lb_part *part)
{
    return lb_from(cx, LB_F32, lb_part_shape(stored, part), lb_nf4_poly);
}

static lb_array *load_eformer(lb_ctx *cx, const lb_quant *q,
                              const lb_shape *shape, lb_array *const *part)
{
    lb_array *packed = part[EFORMER_PACKED], *absmax = part[EFORMER_ABSMAX];
    lb_quant named = *q;
    lb_layout l = {.stored = shape->rank ? *shape : LB_SHAPE(1)};
    if (!absmax) {
        lb_fail(cx, LB_E_NULL, "nf4: layout eformer requires absmax");
        return NULL;
    }
    const int last = l.stored.rank - 1;
    /* Without a block_size use that of the packed array. */
    const int64_t half =
        packed->shape.rank ? packed->shape.dim[packed->shape.rank - 1] : 0;
    if (!named.block_size) named.block_size = 2 * half;
    l.dtype = q->dtype ? q->dtype : absmax->dtype;
    if (!check(cx, &named, l.dtype) ||
        !lb_config_unused(cx, q, "blocks",
                          q->blocks == LB_BLOCKS_FLAT ? "flat" : NULL))
        return NULL;
    const int64_t block = named.block_size, n = l.stored.dim[last];
    if (block == 0 || last + 1 == LB_MAX_RANK) {
        lb_fail(cx, LB_E_SHAPE,
                "nf4: packed of layout eformer is %s for shape %s",
                LB_SHOW(&packed->shape), LB_SHOW(shape));
        return NULL;
    }
    const int64_t blocks = n / block + (n % block != 0);
    const lb_shape want_packed = with_two(&l.stored, blocks, block / 2);
    const lb_shape want_absmax = with_last(&l.stored, blocks);
    if (!check_eformer(cx, "packed", packed, &want_packed,
                       packed->dtype == LB_U8, "u8") ||
        !check_eformer(cx, "absmax", absmax, &want_absmax,
                       absmax->dtype >= LB_F32 && absmax->dtype <= LB_F64,
                       "floats"))
        return NULL;
    fill_table(&l.stored, block, l.part);
    packed = lb_reshape(cx, packed, with_last(&l.stored, blocks * (block / 2)));
    l.part[CODES].a = own_codes(cx, packed, &l.stored);
    l.part[ABSMAX].a = absmax;
    const bool poly = q->decode == LB_DECODE_POLY;
    if (poly) l.part[TABLE].a = eformer_table(cx, &l.stored, &l.part[TABLE]);
    if (!l.part[CODES].a || (poly && !l.part[TABLE].a)) return NULL;
    lb_array *a = lb_make(cx, q->format, l.dtype, 0, &l.stored, l.part);
    return lb_reshape(cx, a, *shape);
}

/* Whether the array's own levels are the polynomial's, which readers of the
 * layout know. */
static bool has_poly(const lb_store *s)
{
    static const lb_cpu reference = {.level = LB_LEVEL_REF};
    float own[LEVELS];
    lb_tile_read_flat(&reference, s->part[TABLE].a, 0, LEVELS, LB_C_F32, own);
    for (int c = 0; c < LEVELS; c++)
        if (own[c] != lb_nf4_poly[c]) return false;
    return true;
}

/* a views its whole store in order. */
static lb_array *save_eformer(lb_ctx *cx, lb_array *a, int part)
{
    const lb_store *s = a->store;
    const int last = s->shape.rank - 1;
    const lb_shape shape = a->shape.rank ? a->shape : LB_SHAPE(1);
    const int64_t n = shape.dim[shape.rank - 1];
    const int64_t block = last >= 0 ? s->part[ABSMAX].g[last] : 0;
    bool in_rows = last >= 0 && block > 0 && s->shape.dim[last] == n;
    for (int k = 0; k < last; k++)
        in_rows = in_rows && s->part[ABSMAX].g[k] == 1;
    if (!in_rows || shape.rank == LB_MAX_RANK) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "nf4: layout eformer needs blocks within rows and an axis for "
                "them; this is %s, stored as %s with absmax %s",
                LB_SHOW(&a->shape), LB_SHOW(&s->shape),
                LB_SHOW(&s->part[ABSMAX].a->shape));
        return NULL;
    }
    if (s->part[TABLE].a && !has_poly(s)) {
        lb_fail(
            cx, LB_E_UNSUPPORTED,
            "nf4: this array has its own levels, which layout eformer cannot "
            "store");
        return NULL;
    }
    const int64_t blocks = n / block + (n % block != 0);
    if (part == EFORMER_ABSMAX)
        return lb_materialize(
            cx, lb_reshape(cx, s->part[ABSMAX].a, with_last(&shape, blocks)));
    const int64_t bytes = n / 2 + n % 2;
    int64_t lo[LB_MAX_RANK] = {0}, hi[LB_MAX_RANK] = {0};
    hi[shape.rank - 1] = blocks * (block / 2) - bytes;
    lb_array *codes =
        lb_reshape(cx, s->part[CODES].a, with_last(&shape, bytes));
    codes = lb_pad(cx, codes, lb_scalar_int(cx, FILLER << 4 | FILLER), lo, hi,
                   NULL);
    return lb_reshape(cx, codes, with_two(&shape, blocks, block / 2));
}

static const lb_foreign foreign[] = {
    {"eformer", {"packed", "absmax"}, load_eformer, save_eformer},
    {0},
};

extern const lb_format lb_format_nf4;
const lb_format lb_format_nf4 = {
    .struct_size = sizeof(lb_format),
    .name = "nf4",
    .part = {{.name = "codes", .raw = true},
             {.name = "absmax", .scale = true},
             {.name = "table", .optional = true}},
    .codes = {4, true, 0, LEVELS - 1, 1, FILLER},
    .relabel = true,
    .levels = levels,
    .decode = decode,
    .unpack = unpack,
    .layout = layout,
    .prepare = prepare,
    .encode_run = encode_run,
    .bound = bound,
    .kernels = LB_DECODE_LEVELS,
    .foreign = foreign,
};
