/* sample_formats.c - every way to store a sample: each format of the registry
 * and each external one, with default and with other configurations.
 *
 * Formats with an encoder need no entry here: lb_quantize makes their arrays.
 * Formats without one have a constructor in outside[]. Other configurations
 * that the laws should cover are rows of variants[].
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "e4m3.h"
#include "low_rank.h"
#include "samples.h"
#include "toy_formats.h"

/* ---- dense -------------------------------------------------------------- */

static lb_array *make_dense(lb_ctx *cx, const sample_format *f, lb_dtype dtype,
                            lb_shape shape, const void *data)
{
    (void)f;
    return lb_from(cx, dtype, shape, data);
}

const sample_format sample_dense = {
    .name = "dense", .max_rank = LB_MAX_RANK, .make = make_dense};

/* Which operands a format gets that is not used for all of them. */
static bool is_chosen(const sample_format *f, const sample_operand *o)
{
    uint32_t h = (uint32_t)o->dtype * 31 + (uint32_t)o->shape.rank;
    for (int i = 0; i < o->shape.rank; i++)
        h = h * 31 + (uint32_t)o->shape.dim[i];
    for (const char *c = f->name; *c; c++)
        h = (h ^ (uint8_t)*c) * 16777619;
    return f->every < 2 || (h >> 8) % (uint32_t)f->every == 0 ||
           getenv("LB_TEST_EVERY_FORMAT");
}

bool sample_takes(const sample_format *f, const sample_operand *o)
{
    if (!f->fmt) return true;
    if (!is_chosen(f, o)) return false;
    const lb_dtype only = f->config.dtype;
    return o->shape.rank <= f->max_rank &&
           (only ? o->dtype == only : sample_kind_of(o->dtype) == KIND_F);
}

/* ---- formats with an encoder -------------------------------------------- */

/* Axes that an array of a smaller rank lacks are left out. */
static lb_axes fitting_axes(const lb_axes *axes, bool all, int rank)
{
    lb_axes to = {0};
    unsigned seen = 0;
    for (int i = 0; i < (all ? rank : axes->n); i++) {
        const int k = all ? i : axes->axis[i] + (axes->axis[i] < 0 ? rank : 0);
        if (k < 0 || k >= rank || seen >> k & 1) continue;
        seen |= 1u << k;
        to.axis[to.n++] = k;
    }
    return to;
}

void sample_config(const sample_format *f, int rank, lb_dtype dtype,
                   lb_quant_config *c)
{
    *c = f->config;
    c->format = f->fmt->name;
    c->axes = fitting_axes(&f->config.axes, f->all_axes, rank);
    c->dtype = dtype;
}

static lb_array *make_quantized(lb_ctx *cx, const sample_format *f,
                                lb_dtype dtype, lb_shape shape,
                                const void *data)
{
    lb_quant_config c;
    sample_config(f, shape.rank, dtype, &c);
    const bool floats = sample_kind_of(dtype) == KIND_F;
    const lb_dtype from = floats ? dtype : LB_F32;
    const int64_t n = lb_shape_size(&shape);
    const size_t size = lb_dtype_size(from);
    char *copy = malloc((size_t)n * size + 1);
    if (!copy) abort();
    if (floats) memcpy(copy, data, (size_t)n * size);
    for (int64_t i = 0; i < n && !floats; i++) /* ternary and the like, as i8 */
        ((float *)(void *)copy)[i] = ((const int8_t *)data)[i];
    sample_mend(from, n, copy);
    lb_array *a = lb_from(cx, from, shape, copy);
    free(copy);
    return lb_quantize(cx, a, &c);
}

/* LB_MAX_RANK, or one less if a part would have too many axes. */
static int max_rank(const sample_format *f)
{
    const lb_shape s = LB_SHAPE(1, 1, 1, 1, 1, 1, 1, 1);
    lb_quant_config c;
    lb_quant q;
    lb_layout l;
    sample_config(f, s.rank, f->config.dtype ? f->config.dtype : LB_F32, &c);
    c.format = NULL; /* known here, possibly not to the registry */
    if (!lb_is_encodable(f->fmt) ||
        !lb_quant_of(NULL, "sample", &c, s.rank, &q))
        return LB_MAX_RANK;
    q.format = f->fmt;
    bool fits = lb_layout_of(NULL, &q, LB_F32, &s, &l);
    for (int p = 0; p < LB_MAX_PARTS && fits; p++)
        fits = !l.elem[p] ||
               lb_part_shape(&l.stored, &l.part[p]).rank <= LB_MAX_RANK;
    return fits ? LB_MAX_RANK : LB_MAX_RANK - 1;
}

/* ---- formats without ---------------------------------------------------- */

/* A logical dtype, to which every read rounds. */
static lb_array *labelled(lb_ctx *cx, lb_array *a, lb_dtype dtype)
{
    return a && dtype != LB_F32 ? lb_convert(cx, a, dtype) : a;
}

static uint32_t seed_of(const void *data)
{
    uint32_t seed = 0; /* a sample's data can begin with any value */
    if (data) memcpy(&seed, data, 1);
    return seed;
}

static lb_array *make_scale(lb_ctx *cx, const sample_format *f, lb_dtype dtype,
                            lb_shape shape, const void *data)
{
    (void)f;
    const unsigned shared = seed_of(data) % 4;
    return labelled(cx, toy_scale_make(cx, &shape, shared, seed_of(data)),
                    dtype);
}

/* Variants that need axes skip scalars, or everything but matrices. */
static lb_array *make_block(lb_ctx *cx, const sample_format *f, lb_dtype dtype,
                            lb_shape shape, const void *data)
{
    if (!shape.rank) return make_scale(cx, f, dtype, shape, data);
    return labelled(cx, toy_block_make(cx, &shape, 32, seed_of(data)), dtype);
}

static lb_array *make_sum(lb_ctx *cx, const sample_format *f, lb_dtype dtype,
                          lb_shape shape, const void *data)
{
    if (shape.rank != 2) return make_scale(cx, f, dtype, shape, data);
    lb_array *base = toy_block_make(cx, &shape, 32, seed_of(data));
    return labelled(cx, toy_sum_make(cx, base, 3, 5), dtype);
}

/* base + A B; the base in lb_quantize's default format. */
static lb_array *make_low_rank(lb_ctx *cx, const sample_format *f,
                               lb_dtype dtype, lb_shape shape, const void *data)
{
    enum { R = 3 };
    if (shape.rank != 2) return make_scale(cx, f, dtype, shape, data);
    const lb_key key = {seed_of(data), 0};
    const lb_shape m = LB_SHAPE(shape.dim[0], R), n = LB_SHAPE(R, shape.dim[1]);
    lb_array *w = lb_random_normal(cx, key, LB_F32, shape);
    lb_array *a = lb_random_normal(cx, lb_key_fold(key, 1), LB_F32, m);
    lb_array *b = lb_random_normal(cx, lb_key_fold(key, 2), LB_F32, n);
    w = low_rank_make(cx, lb_quantize(cx, w, NULL), a, b);
    return labelled(cx, w, dtype);
}

/* A format of the library that is only read: blocks of random bytes with
 * moderate values: neither so large that sums overflow, nor so small that a
 * difference quotient passes all of them. */
static bool is_moderate(lb_ctx *cx, const lb_quant_config *c, lb_array *block,
                        int64_t len)
{
    static const char *const name = "blocks";
    float w[256];
    lb_array *a = lb_from_parts(cx, c, LB_SHAPE(len), NULL, &name, &block, 1);
    if (!a || len > 256 || !lb_read(cx, a, w, (size_t)len * sizeof *w))
        return false;
    float most = 0;
    for (int64_t i = 0; i < len; i++) {
        if (!(fabsf(w[i]) < 64)) return false;
        most = fmaxf(most, fabsf(w[i]));
    }
    return most == 0 || most > 0x1p-8f;
}

static lb_array *make_read_only(lb_ctx *cx, const sample_format *f,
                                lb_dtype dtype, lb_shape shape,
                                const void *data)
{
    static const char *const name = "blocks";
    const lb_quant_config c = {.format = f->fmt->name, .dtype = LB_F32};
    lb_quant q;
    lb_layout l, one;
    const lb_shape probe = LB_SHAPE(256);
    if (!lb_quant_of(cx, "sample", &c, shape.rank, &q) ||
        !lb_layout_of(cx, &q, LB_F32, &shape, &l) ||
        !lb_layout_of(cx, &q, LB_F32, &probe, &one))
        return NULL;
    const lb_shape part = lb_part_shape(&l.stored, &l.part[0]);
    const lb_shape some = lb_part_shape(&one.stored, &one.part[0]);
    const int64_t size = one.part[0].own,
                  len = 256 * size / lb_shape_size(&some);
    const int64_t bytes = lb_shape_size(&part);
    uint8_t *to = calloc(1, (size_t)bytes + 1);
    uint32_t state = seed_of(data) + 1;
    if (!to) abort();
    for (int64_t at = 0; at + size <= bytes; at += size)
        for (int tries = 0; tries < 50; tries++) {
            for (int64_t i = 0; i < size; i++) {
                state = state * 1664525 + 1013904223;
                to[at + i] = (uint8_t)(state >> 24);
            }
            lb_enter(cx);
            lb_array *block = lb_from(cx, LB_U8, LB_SHAPE(1, size), to + at);
            const bool fine = is_moderate(cx, &c, block, len);
            lb_leave(cx);
            if (fine) break;
            memset(to + at, 0, (size_t)size);
        }
    lb_array *blocks = lb_from(cx, LB_U8, part, to);
    free(to);
    return labelled(cx, lb_from_parts(cx, &c, shape, NULL, &name, &blocks, 1),
                    dtype);
}

extern const lb_format lb_format_nvfp4, lb_format_fp4_e2m1, lb_format_e8m0;

/* Random codes. */
static lb_array *random_bytes(lb_ctx *cx, const lb_shape *shape, uint32_t seed,
                              uint8_t least, uint8_t n)
{
    const int64_t size = lb_shape_size(shape);
    uint8_t *to = malloc((size_t)size + 1);
    uint32_t state = seed + 1;
    if (!to) abort();
    for (int64_t i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        to[i] = (uint8_t)(least + (state >> 24) % n);
    }
    lb_array *a = lb_from(cx, LB_U8, *shape, to);
    free(to);
    return a;
}

static lb_array *make_e8m0(lb_ctx *cx, const sample_format *f, lb_dtype dtype,
                           lb_shape shape, const void *data)
{
    lb_part table[LB_MAX_PARTS] = {0};
    (void)f;
    lb_part_rows(&table[0], &shape, 1);
    table[0].a = random_bytes(cx, &shape, seed_of(data), 120, 10);
    return lb_make(cx, &lb_format_e8m0, dtype, 0, &shape, table);
}

static lb_array *make_e2m1(lb_ctx *cx, const sample_format *f, lb_dtype dtype,
                           lb_shape shape, const void *data)
{
    lb_part table[LB_MAX_PARTS] = {0};
    (void)f;
    lb_part_rows(&table[0], &shape, 2);
    const lb_shape codes = lb_part_shape(&shape, &table[0]);
    table[0].a = random_bytes(cx, &codes, seed_of(data), 0, 255);
    return lb_make(cx, &lb_format_fp4_e2m1, dtype, 0, &shape, table);
}

/* Scales of E4M3, with one of their own: divided by it, as some programs do. */
static lb_array *make_nvfp4(lb_ctx *cx, const sample_format *f, lb_dtype dtype,
                            lb_shape shape, const void *data)
{
    enum { BLOCK = 16 };
    lb_part table[LB_MAX_PARTS] = {0}, scales[LB_MAX_PARTS] = {0};
    const float by = 48;
    lb_shape one = shape;
    (void)f;
    lb_part_rows(&table[0], &shape, 2);
    lb_part_rows(&table[1], &shape, BLOCK);
    const lb_shape codes = lb_part_shape(&shape, &table[0]),
                   scale = lb_part_shape(&shape, &table[1]);
    for (int k = 0; k < one.rank; k++)
        one.dim[k] = 1;
    lb_part_rows(&scales[0], &scale, 1);
    scales[0].a = random_bytes(cx, &scale, seed_of(data), 0x30, 0x30);
    scales[1].a = lb_from(cx, LB_F32, one, &by);
    table[0].a = random_bytes(cx, &codes, seed_of(data) + 1, 0, 255);
    table[1].a = lb_make(cx, lb_find_format(cx, "fp8_e4m3"), LB_F32,
                         LB_MEANS_INVERSE, &scale, scales);
    return table[1].a ? lb_make(cx, &lb_format_nvfp4, dtype, 0, &shape, table)
                      : NULL;
}

/* Arrays as other programs make them, which lb_quantize cannot: int4 with a
 * bias, and int2 with zero points and listed groups. These are formats of their
 * own here, because the laws quantize whatever can be quantized. */
static lb_format biased, listed;

static bool copy_format(lb_ctx *cx, const char *name, const char *of,
                        lb_format *to)
{
    const lb_format *from = lb_find_format(cx, of);
    if (!from || to->name) return from != NULL;
    *to = *from;
    to->layout = NULL;
    to->encode_run = NULL;
    to->name = name;
    return true;
}

/* Random parts for a table; scales from 2^-4 to 2^-3 of both signs. */
static lb_array *random_part(lb_ctx *cx, lb_dtype dtype, const lb_shape *shape,
                             int64_t lo, int64_t hi, uint32_t *state)
{
    const int64_t n = lb_shape_size(shape);
    double *v = calloc((size_t)n + 1, sizeof *v);
    if (!v) abort();
    const bool floats = sample_kind_of(dtype) == KIND_F;
    for (int64_t i = 0; i < n; i++) {
        *state = *state * 1664525 + 1013904223;
        const double x = (double)(*state >> 8) / (1 << 24);
        v[i] = floats ? (x < 0.5 ? -1 : 1) * (1 + x) / 16
                      : floor((double)lo + x * (double)(hi - lo));
    }
    lb_array *a = lb_convert(cx, lb_from(cx, LB_F64, *shape, v), dtype);
    free(v);
    return a;
}

static lb_array *make_affine(lb_ctx *cx, const sample_format *f, lb_dtype dtype,
                             lb_shape shape, const void *data)
{
    const bool lists = f->fmt == &listed;
    const char *like = lists ? "int2" : "int4";
    if (!shape.rank || shape.rank == LB_MAX_RANK)
        return make_scale(cx, f, dtype, shape, data);
    lb_quant q = {.format = lb_find_format(cx, like), .dtype = LB_F32};
    lb_layout l;
    q.block_size = lists ? 5 : 16;
    q.blocks = lists ? LB_BLOCKS_LISTED : LB_BLOCKS_DEFAULT;
    if (!lb_layout_of(cx, &q, LB_F32, &shape, &l)) return NULL;
    static const struct {
        lb_dtype biased, listed;
        int64_t hi;
    } part[] = {{LB_U8, LB_U8, 256},
                {LB_BF16, LB_F16, 0},
                {LB_NO_DTYPE, LB_U8, 9},
                {LB_BF16, LB_NO_DTYPE, 0},
                {LB_NO_DTYPE, LB_I32, 5}};
    uint32_t state = seed_of(data);
    for (int p = 0; p < 5; p++) {
        const lb_dtype d = lists ? part[p].listed : part[p].biased;
        const lb_shape s = lb_part_shape(&l.stored, &l.part[p]);
        if (d) l.part[p].a = random_part(cx, d, &s, 0, part[p].hi, &state);
    }
    lb_array *a = lb_make(cx, f->fmt, LB_F32, 0, &l.stored, l.part);
    return labelled(cx, lb_reshape(cx, a, shape), dtype);
}

const sample_format sample_toys[] = {
    {.name = "toy_block",
     .fmt = &toy_block,
     .max_rank = LB_MAX_RANK,
     .make = make_block},
    {.name = "toy_scale",
     .fmt = &toy_scale,
     .max_rank = LB_MAX_RANK,
     .make = make_scale},
    {.name = "toy_sum",
     .fmt = &toy_sum,
     .max_rank = LB_MAX_RANK,
     .make = make_sum},
    {.name = NULL},
};

/* ---- the lists ---------------------------------------------------------- */

/* External formats. make: for those without an encoder. */
static const struct {
    const lb_format *fmt;
    lb_array *(*make)(lb_ctx *, const sample_format *, lb_dtype, lb_shape,
                      const void *);
} outside[] = {
    {&toy_block, make_block},
    {&toy_scale, make_scale},
    {&toy_sum, make_sum},
    {&e4m3_format, NULL},
    {&low_rank_format, make_low_rank},
    {&biased, make_affine},
    {&listed, make_affine},
};
enum { OUTSIDE = sizeof outside / sizeof *outside };

/* Formats of the library without an encoder that are not blocks. */
static const struct {
    const lb_format *fmt;
    lb_array *(*make)(lb_ctx *, const sample_format *, lb_dtype, lb_shape,
                      const void *);
} inside[] = {
    {&lb_format_nvfp4, make_nvfp4},
    {&lb_format_fp4_e2m1, make_e2m1},
    {&lb_format_e8m0, make_e8m0},
};
enum { INSIDE = sizeof inside / sizeof *inside };

bool sample_add_outside(lb_ctx *cx)
{
    bool ok = copy_format(cx, "int4_biased", "int4", &biased) &&
              copy_format(cx, "int2_listed", "int2", &listed);
    for (int i = 0; i < OUTSIDE; i++)
        ok = lb_add_format(cx, outside[i].fmt) && ok;
    return ok;
}

/* clang-format off */
static const struct {
    const char *format, *name;
    lb_quant_config config;
    bool all_axes;
} variants[] = {
#define OF(FORMAT, WHAT, ...) {FORMAT, FORMAT ", " WHAT, {__VA_ARGS__}, false},
    OF("int8", "axis 0", .axes = {1, {0}})
    OF("int8", "axes 0 and -1", .axes = {2, {0, -1}})
    {"int8", "int8, all axes", {.format = NULL}, true},
    OF("int8", "block 32", .block_size = 32)
    OF("int8", "absmax", .meaning = LB_MEANS_ABSMAX)
    OF("int8", "inverse", .meaning = LB_MEANS_INVERSE)
    OF("int8", "bnb-cuda", .compat = LB_COMPAT_BNB_CUDA)
    OF("int8", "bnb-cpu", .compat = LB_COMPAT_BNB_CPU)
    OF("int8", "eformer", .compat = LB_COMPAT_EFORMER)
    OF("nf4", "block 2", .block_size = 2)
    OF("nf4", "block 32", .block_size = 32)
    OF("nf4", "flat", .blocks = LB_BLOCKS_FLAT)
    OF("nf4", "double quantized", .double_quant = true)
    OF("nf4", "flat, double quantized", .blocks = LB_BLOCKS_FLAT,
       .double_quant = true)
    OF("nf4", "poly", .decode = LB_DECODE_POLY)
    OF("nf4", "eformer", .compat = LB_COMPAT_EFORMER)
    OF("nf4", "bnb-cuda", .compat = LB_COMPAT_BNB_CUDA)
    OF("nf4", "bnb-cpu", .compat = LB_COMPAT_BNB_CPU)
    OF("ternary", "no scale", .scale = LB_SCALE_NONE)
    OF("ternary", "per row", .scale = LB_SCALE_ROW)
    OF("ternary", "per block", .scale = LB_SCALE_BLOCK, .block_size = 8)
    OF("ternary", "absmean", .threshold = LB_THRESHOLD_ABSMEAN)
    OF("ternary", "absmean per row", .threshold = LB_THRESHOLD_ABSMEAN,
       .scale = LB_SCALE_ROW)
    OF("ternary", "inverse", .threshold = LB_THRESHOLD_ABSMEAN,
       .meaning = LB_MEANS_INVERSE)
    OF("ternary", "i8", .dtype = LB_I8)
    OF("ternary", "eformer", .compat = LB_COMPAT_EFORMER)
    OF("binary", "no scale", .scale = LB_SCALE_NONE)
    OF("binary", "per row", .scale = LB_SCALE_ROW)
    OF("binary", "per block", .scale = LB_SCALE_BLOCK, .block_size = 16)
    OF("binary", "inverse", .meaning = LB_MEANS_INVERSE)
    OF("binary", "i8", .dtype = LB_I8)
    OF("binary", "eformer", .compat = LB_COMPAT_EFORMER)
    OF("dynamic8", "centered", .center = true)
    OF("dynamic8", "flat", .blocks = LB_BLOCKS_FLAT)
    OF("dynamic8", "bnb-cuda", .compat = LB_COMPAT_BNB_CUDA)
    OF("dynamic8", "bnb-cpu", .compat = LB_COMPAT_BNB_CPU)
    OF("e4m3", "block 16", .block_size = 16)
    OF("fp8_e4m3", "block 4", .block_size = 4)
    OF("fp8_e4m3", "tensor", .scale = LB_SCALE_TENSOR)
    OF("fp8_e4m3", "per row", .scale = LB_SCALE_ROW)
    OF("fp8_e4m3", "row block 16", .scale = LB_SCALE_ROW, .block_size = 16)
    OF("fp8_e4m3", "inverse", .meaning = LB_MEANS_INVERSE)
    OF("fp8_e5m2", "block 2", .block_size = 2)
    OF("fp8_e5m2", "per row", .scale = LB_SCALE_ROW)

    OF("int4", "block 32", .block_size = 32)
    OF("int4", "asymmetric", .center = true)
    OF("int4", "per row", .scale = LB_SCALE_ROW)
    OF("int4", "double quantized", .double_quant = true)
    OF("int3", "asymmetric, block 8", .center = true, .block_size = 8)
    OF("int2", "asymmetric, per row", .center = true, .scale = LB_SCALE_ROW)
    OF("uint8", "asymmetric", .center = true)
#undef OF
};
/* clang-format on */
enum { VARIANTS = sizeof variants / sizeof *variants };

lb_text sample_lost_variants(const lb_ctx *cx)
{
    lb_text t = {""};
    size_t at = 0;
    for (int i = 0; i < VARIANTS && at < sizeof t.s; i++)
        if (!lb_find_format(cx, variants[i].format))
            at += (size_t)snprintf(t.s + at, sizeof t.s - at, "%s%s",
                                   at ? "; " : "", variants[i].name);
    return t;
}

static void add_format(sample_format_list *list, const lb_format *fmt)
{
    sample_format *f = &list->item[list->n];
    const int first = list->n++;
    *f = (sample_format){.name = fmt->name, .fmt = fmt};
    if (lb_is_encodable(fmt)) f->make = make_quantized;
    for (int i = 0; i < INSIDE && !f->make; i++)
        if (inside[i].fmt == fmt) f->make = inside[i].make;
    if (fmt->layout && !f->make) {
        f->make = make_read_only;
        f->every = 8;
    }
    for (int i = 0; i < OUTSIDE && !f->make; i++)
        if (outside[i].fmt == fmt) f->make = outside[i].make;
    if (strcmp(fmt->name, sample_dense.name) == 0) *f = sample_dense;
    for (int i = 0; i < VARIANTS; i++)
        if (strcmp(variants[i].format, fmt->name) == 0)
            list->item[list->n++] = (sample_format){
                .name = variants[i].name,
                .fmt = fmt,
                .variant = true,
                .config = variants[i].config,
                .all_axes = variants[i].all_axes,
                .make = make_quantized,
            };
    for (int i = first; i < list->n; i++)
        if (list->item[i].fmt)
            list->item[i].max_rank = max_rank(&list->item[i]);
}

sample_format_list sample_formats_of(const lb_ctx *cx)
{
    sample_format_list list = {0};
    const lb_format *fmt;
    int n = 0;
    while (lb_format_at(cx, n))
        n++;
    list.item = calloc((size_t)(n + VARIANTS), sizeof *list.item);
    if (!list.item) abort();
    for (int k = 0; (fmt = lb_format_at(cx, k)); k++)
        add_format(&list, fmt);
    return list;
}

void sample_formats_free(sample_format_list *list)
{
    free(list->item);
    *list = (sample_format_list){0};
}

/* Zeros with an inverse scale of 1/0 cannot be quantized. */
static bool is_finite(const lb_array *a)
{
    size_t size;
    bool ok = true;
    float *v = NULL;
    if (a->dtype == LB_F32) v = sample_read(a, &size);
    for (int64_t i = 0; v && i < lb_size(a); i++)
        ok = ok && isfinite(v[i]);
    free(v);
    return ok;
}

bool sample_has_scales(const lb_array *a)
{
    bool found = false;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        const lb_array *part = a->store->part[p].a;
        if (!part || !a->store->fmt->part[p].scale ||
            sample_kind_of(part->dtype) != KIND_F)
            continue;
        if (!part->store->data || !is_finite(part)) return false;
        found = true;
    }
    return found;
}
