/* sample_views.c - the values of samples, and every view of them.
 *
 * A view makes its base, an array of another shape, in the given format, and
 * transforms it. The resulting values are arbitrary: the laws read them with
 * sample_read, never through the code under test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "kernels/convert.h"
#include "samples.h"

/* ---- values ------------------------------------------------------------- */

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

typedef struct float_layout {
    int mantissa, exponent; /* bits */
} float_layout;

static float_layout layout_of(lb_dtype d)
{
    switch (d) {
    case LB_F16:
        return (float_layout){10, 5};
    case LB_BF16:
        return (float_layout){7, 8};
    case LB_F64:
        return (float_layout){52, 11};
    default:
        return (float_layout){23, 8};
    }
}

/* An ordinary value: between 2^-3 and 2^2. */
static uint64_t ordinary(lb_dtype d, uint64_t r)
{
    const float_layout l = layout_of(d);
    const uint64_t bias = ((uint64_t)1 << (l.exponent - 1)) - 1;
    const uint64_t e = bias - 3 + (r >> 56) % 5;
    const uint64_t sign = r >> 55 & 1;
    return sign << (l.mantissa + l.exponent) | e << l.mantissa |
           (r & (((uint64_t)1 << l.mantissa) - 1));
}

static uint64_t smooth(lb_dtype d, uint64_t r, bool plus)
{
    const float_layout l = layout_of(d);
    const uint64_t bias = ((uint64_t)1 << (l.exponent - 1)) - 1;
    const uint64_t e = bias - 2 + (r >> 56) % 2;
    const uint64_t sign = plus ? 0 : r >> 55 & 1;
    return sign << (l.mantissa + l.exponent) | e << l.mantissa |
           (r & (((uint64_t)1 << l.mantissa) - 1));
}

/* 0, the smallest and the largest subnormal, the smallest normal, 1, 2, the
 * largest value, infinity, each with either sign; or NaN. */
static uint64_t special(lb_dtype d, uint64_t r)
{
    const float_layout l = layout_of(d);
    const uint64_t one = (uint64_t)1 << l.mantissa;
    const uint64_t inf = (((uint64_t)1 << l.exponent) - 1) << l.mantissa;
    const uint64_t bias = ((uint64_t)1 << (l.exponent - 1)) - 1;
    const uint64_t of[] = {0,
                           1,
                           one - 1,
                           one,
                           inf - 1,
                           inf,
                           bias << l.mantissa,
                           (bias + 1) << l.mantissa};
    const uint64_t sign = (r >> 8 & 1) << (l.mantissa + l.exponent);
    return r % 9 == 8 ? inf | one >> 1 : of[r % 9] | sign;
}

static uint64_t float_bits(lb_dtype d, sample_kind kind, uint64_t r)
{
    const float_layout l = layout_of(d);
    const uint64_t inf = (((uint64_t)1 << l.exponent) - 1) << l.mantissa;
    const bool any = kind == VALUES_ANY || kind == VALUES_FINITE;
    if (kind == VALUES_TAME || (any && r >> 60 > 4)) return ordinary(d, r);
    if (kind == VALUES_SMOOTH || kind == VALUES_PLUS)
        return smooth(d, r, kind == VALUES_PLUS);
    if (any) return special(d, r);
    /* Any copy may quiet a signalling NaN: only quiet ones are used. */
    return (r & inf) == inf ? r | (uint64_t)1 << (l.mantissa - 1) : r;
}

static uint64_t int_bits(lb_dtype d, sample_kind kind, uint64_t r)
{
    const int bits = (int)lb_dtype_size(d) * 8;
    const uint64_t top = (uint64_t)1 << (bits - 1);
    const uint64_t of[] = {0,       1, (uint64_t)-1, top,
                           top - 1, 2, (uint64_t)-2, (uint64_t)bits};
    if (kind == VALUES_TAME)
        return sample_kind_of(d) == KIND_U ? r % 16 : r % 31 - 15;
    return r >> 60 > 7 ? r : of[r % 8];
}

void sample_fill(const sample_operand *o, uint64_t seed, int64_t n, void *dst)
{
    uint64_t state = seed * 1000003 + (uint64_t)o->dtype;
    const size_t size = lb_dtype_size(o->dtype);
    const int kind = sample_kind_of(o->dtype);
    char *to = dst;
    for (int64_t i = 0; i < n; i++, to += size) {
        const uint64_t r = draw(&state);
        uint64_t v = kind == KIND_F   ? float_bits(o->dtype, o->kind, r)
                     : kind == KIND_B ? r >> 40 & 1
                                      : int_bits(o->dtype, o->kind, r);
        if (o->kind == VALUES_INDEX)
            v = (uint64_t)(o->lo + (int64_t)(r >> 1) % (o->hi - o->lo));
        memcpy(to, &v, size); /* little endian */
    }
    if (o->kind == VALUES_FINITE) sample_mend(o->dtype, n, dst);
}

void sample_mend(lb_dtype dtype, int64_t n, void *data)
{
    enum { MOST = 10 }; /* 2^10: all dtypes represent sums and scales */
    const float_layout l = layout_of(dtype);
    const uint64_t bias = ((uint64_t)1 << (l.exponent - 1)) - 1;
    const uint64_t mask = ((uint64_t)1 << l.exponent) - 1;
    const size_t size = lb_dtype_size(dtype);
    char *at = data;
    for (int64_t i = 0; i < n; i++, at += size) {
        uint64_t v = 0;
        memcpy(&v, at, size);
        if ((v >> l.mantissa & mask) < bias + MOST) continue;
        uint64_t state = v + (uint64_t)i;
        v = ordinary(dtype, draw(&state));
        memcpy(at, &v, size);
    }
}

/* ---- bases --------------------------------------------------------------- */

/* Cache of arrays, keyed by everything they depend on: samples of a primitive
 * share operands, and some encoders are slow. */
typedef struct memo {
    const sample_format *f;
    sample_operand o; /* with the base's shape */
    uint64_t seed;
    lb_array *a;
} memo;

enum { MEMOS = 16384 };
static memo *memos;

void sample_remember(bool on)
{
    for (int i = 0; memos && i < MEMOS; i++)
        lb_unref(memos[i].a);
    free(memos);
    memos = on ? calloc(MEMOS, sizeof *memos) : NULL;
}

static memo *memo_of(const sample_format *f, const sample_operand *o,
                     uint64_t seed)
{
    uint64_t h = (uint64_t)(uintptr_t)f + seed * 31 + (uint64_t)o->dtype;
    h = draw(&h) + (uint64_t)o->kind;
    for (int k = 0; k < o->shape.rank; k++)
        h = draw(&h) + (uint64_t)o->shape.dim[k];
    return &memos[draw(&h) % MEMOS];
}

static bool is_memo_of(const memo *m, const sample_format *f,
                       const sample_operand *o, uint64_t seed)
{
    return m->a && m->f == f && m->seed == seed && m->o.dtype == o->dtype &&
           m->o.kind == o->kind && m->o.lo == o->lo && m->o.hi == o->hi &&
           lb_shape_equal(&m->o.shape, &o->shape);
}

/* An array of another shape with the operand's kind of values. */
static lb_array *base(lb_ctx *cx, const sample_format *f,
                      const sample_operand *o, lb_shape shape, uint64_t seed)
{
    sample_operand key = *o;
    key.shape = shape;
    memo *m = memos ? memo_of(f, &key, seed) : NULL;
    if (m && is_memo_of(m, f, &key, seed)) return lb_view(cx, m->a);
    const int64_t n = lb_shape_size(&shape);
    void *data = calloc((size_t)n + 1, lb_dtype_size(o->dtype));
    if (!data) abort();
    sample_fill(o, seed, n, data);
    lb_array *a = f->make ? f->make(cx, f, o->dtype, shape, data) : NULL;
    free(data);
    if (!m || !a) return a;
    lb_unref(m->a);
    *m = (memo){f, key, seed, lb_ref(a)};
    return lb_view(cx, a);
}

/* ---- views -------------------------------------------------------------- */

static lb_array *plain(lb_ctx *cx, const sample_format *f,
                       const sample_operand *o, uint64_t seed)
{
    return base(cx, f, o, o->shape, seed);
}

static lb_array *transposed(lb_ctx *cx, const sample_format *f,
                            const sample_operand *o, uint64_t seed)
{
    if (o->shape.rank < 2) return NULL;
    lb_shape s = o->shape;
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = o->shape.dim[s.rank - 1 - k];
    return lb_transpose(cx, base(cx, f, o, s, seed), NULL);
}

/* The first axis of the base becomes the last. */
static lb_array *rotated(lb_ctx *cx, const sample_format *f,
                         const sample_operand *o, uint64_t seed)
{
    const int rank = o->shape.rank;
    if (rank < 3) return NULL;
    lb_shape s = o->shape;
    int perm[LB_MAX_RANK];
    for (int k = 0; k < rank; k++) {
        s.dim[k] = o->shape.dim[(k + rank - 1) % rank];
        perm[k] = (k + 1) % rank;
    }
    return lb_transpose(cx, base(cx, f, o, s, seed), perm);
}

static lb_array *repeated(lb_ctx *cx, const sample_format *f,
                          const sample_operand *o, uint64_t seed, int from,
                          int to)
{
    if (o->shape.rank < 1) return NULL;
    lb_shape s = o->shape;
    for (int k = from; k < to; k++)
        s.dim[k] = 1;
    return lb_broadcast_to(cx, base(cx, f, o, s, seed), o->shape);
}

static lb_array *broadcast_first(lb_ctx *cx, const sample_format *f,
                                 const sample_operand *o, uint64_t seed)
{
    return repeated(cx, f, o, seed, 0, 1);
}

static lb_array *broadcast_last(lb_ctx *cx, const sample_format *f,
                                const sample_operand *o, uint64_t seed)
{
    return repeated(cx, f, o, seed, o->shape.rank - 1, o->shape.rank);
}

static lb_array *broadcast_all(lb_ctx *cx, const sample_format *f,
                               const sample_operand *o, uint64_t seed)
{
    return repeated(cx, f, o, seed, 0, o->shape.rank);
}

static lb_array *cut(lb_ctx *cx, const sample_format *f,
                     const sample_operand *o, uint64_t seed, int64_t before,
                     int64_t step, int64_t after)
{
    lb_shape s = o->shape;
    int64_t start[LB_MAX_RANK], limit[LB_MAX_RANK], stride[LB_MAX_RANK];
    for (int k = 0; k < s.rank; k++) {
        const bool all = s.rank - k > 4; /* or the base would be huge */
        start[k] = all ? 0 : before;
        stride[k] = all ? 1 : step;
        limit[k] = start[k] + (s.dim[k] ? (s.dim[k] - 1) * stride[k] + 1 : 0);
        s.dim[k] = limit[k] + (all ? 0 : after);
    }
    return s.rank ? lb_slice(cx, base(cx, f, o, s, seed), start, limit, stride)
                  : NULL;
}

static lb_array *sliced(lb_ctx *cx, const sample_format *f,
                        const sample_operand *o, uint64_t seed)
{
    return cut(cx, f, o, seed, 3, 1, 2);
}

static lb_array *every_second(lb_ctx *cx, const sample_format *f,
                              const sample_operand *o, uint64_t seed)
{
    return cut(cx, f, o, seed, 1, 2, 1);
}

static lb_array *reversed(lb_ctx *cx, const sample_format *f,
                          const sample_operand *o, uint64_t seed)
{
    return o->shape.rank ? lb_reverse(cx, plain(cx, f, o, seed), NULL) : NULL;
}

static lb_array *reversed_last(lb_ctx *cx, const sample_format *f,
                               const sample_operand *o, uint64_t seed)
{
    if (o->shape.rank < 2) return NULL;
    return lb_reverse(cx, plain(cx, f, o, seed), LB_AXES(-1));
}

/* One of several columns: every stride is a multiple of 3. */
static lb_array *trailing(lb_ctx *cx, const sample_format *f,
                          const sample_operand *o, uint64_t seed)
{
    sample_operand wide = *o;
    const int last = wide.shape.rank++;
    if (last + 1 > f->max_rank) return NULL;
    wide.shape.dim[last] = 3;
    int64_t start[LB_MAX_RANK] = {0};
    start[last] = 1;
    lb_shape limit = wide.shape;
    limit.dim[last] = 2;
    lb_array *a =
        lb_slice(cx, plain(cx, f, &wide, seed), start, limit.dim, NULL);
    return lb_reshape(cx, a, o->shape);
}

/* Axes from `from` on are merged in the base. */
static lb_shape merged(const lb_shape *s, int from)
{
    lb_shape to = *s;
    to.rank = from + 1;
    for (int k = from + 1; k < s->rank; k++)
        to.dim[from] *= s->dim[k];
    return to;
}

static lb_array *split_last(lb_ctx *cx, const sample_format *f,
                            const sample_operand *o, uint64_t seed)
{
    if (o->shape.rank < 2) return NULL;
    const lb_shape s = merged(&o->shape, o->shape.rank - 2);
    return lb_reshape(cx, base(cx, f, o, s, seed), o->shape);
}

/* (b*c, a) -> (a, b*c) -> (a, b, c): still a view. */
static lb_array *transposed_split(lb_ctx *cx, const sample_format *f,
                                  const sample_operand *o, uint64_t seed)
{
    if (o->shape.rank < 3) return NULL;
    lb_shape s = merged(&o->shape, 1);
    const int64_t rows = s.dim[0];
    s.dim[0] = s.dim[1];
    s.dim[1] = rows;
    lb_array *a = lb_transpose(cx, base(cx, f, o, s, seed), NULL);
    return lb_reshape(cx, a, o->shape);
}

/* (c, b, a) -> (a, b, c) -> flat: not a view. */
static lb_array *transposed_flat(lb_ctx *cx, const sample_format *f,
                                 const sample_operand *o, uint64_t seed)
{
    if (o->shape.rank < 2) return NULL;
    lb_array *a = transposed(cx, f, o, seed);
    a = lb_reshape(cx, a, LB_SHAPE(lb_shape_size(&o->shape)));
    return lb_reshape(cx, a, o->shape);
}

static lb_array *joined(lb_ctx *cx, const sample_format *f,
                        const sample_operand *o, uint64_t seed, int axis)
{
    if (axis < 0 || o->shape.dim[axis] < 2) return NULL;
    lb_shape s = o->shape, t = o->shape;
    s.dim[axis] /= 2;
    t.dim[axis] -= s.dim[axis];
    lb_array *part[] = {base(cx, f, o, s, seed), base(cx, f, o, t, seed + 1)};
    return lb_concatenate(cx, part, 2, axis);
}

static lb_array *joined_first(lb_ctx *cx, const sample_format *f,
                              const sample_operand *o, uint64_t seed)
{
    return o->shape.rank ? joined(cx, f, o, seed, 0) : NULL;
}

static lb_array *joined_last(lb_ctx *cx, const sample_format *f,
                             const sample_operand *o, uint64_t seed)
{
    return o->shape.rank > 1 ? joined(cx, f, o, seed, o->shape.rank - 1) : NULL;
}

/* Rows of a longer table, reversed, without every third. */
static lb_array *gathered(lb_ctx *cx, const sample_format *f,
                          const sample_operand *o, uint64_t seed)
{
    enum { MOST = 512 };
    int32_t row[MOST];
    lb_shape s = o->shape;
    if (s.rank < 1 || s.dim[0] > MOST) return NULL;
    const int64_t n = s.dim[0];
    s.dim[0] = n + n / 2 + 1;
    for (int64_t i = 0; i < n; i++)
        row[i] = (int32_t)((n - 1 - i) * 3 / 2);
    lb_array *index = lb_from(cx, LB_I32, LB_SHAPE(n), row);
    return lb_take(cx, base(cx, f, o, s, seed), index, 0);
}

/* Transposed, sliced, reversed and broadcast together. */
static lb_array *tangled(lb_ctx *cx, const sample_format *f,
                         const sample_operand *o, uint64_t seed)
{
    if (o->shape.rank < 2) return NULL;
    sample_operand in = *o;
    const int last = o->shape.rank - 1;
    in.shape.dim[last] = o->shape.dim[0];
    in.shape.dim[0] = 1;
    int perm[LB_MAX_RANK];
    for (int k = 0; k <= last; k++)
        perm[k] = k == 0 ? last : k == last ? 0 : k;
    lb_array *a = lb_transpose(cx, cut(cx, f, &in, seed, 1, 2, 2), perm);
    a = lb_reverse(cx, a, LB_AXES(0));
    return lb_broadcast_to(cx, a, o->shape);
}

const sample_view sample_views[] = {
    {"plain", plain},
    {"transposed", transposed},
    {"rotated", rotated},
    {"broadcast along the first axis", broadcast_first},
    {"broadcast along the last axis", broadcast_last},
    {"broadcast along all axes", broadcast_all},
    {"sliced at odd offsets", sliced},
    {"step 2", every_second},
    {"reversed", reversed},
    {"reversed along the last axis", reversed_last},
    {"trailing axis of size 1", trailing},
    {"split last axis", split_last},
    {"transposed, then split", transposed_split},
    {"transposed, then flattened", transposed_flat},
    {"result of concatenate along the first axis", joined_first},
    {"result of concatenate along the last axis", joined_last},
    {"result of gather", gathered},
    {"tangled", tangled},
    {NULL, NULL},
};

/* ---- reading back ------------------------------------------------------- */

void *sample_read(const lb_array *a, size_t *size)
{
    static const lb_cpu ref = {.level = LB_LEVEL_REF};
    const int64_t n = lb_shape_size(&a->shape);
    const size_t each = lb_dtype_size(a->dtype);
    char *out = malloc((size_t)n * each + 1);
    if (!out) abort();
    *size = (size_t)n * each;
    for (int64_t i = 0; i < n; i++) {
        int64_t e = a->offset, rest = i;
        for (int k = a->shape.rank - 1; k >= 0; k--) {
            e += rest % a->shape.dim[k] * a->stride[k];
            rest /= a->shape.dim[k];
        }
        if (a->store->data) {
            memcpy(out + (size_t)i * each,
                   (const char *)a->store->data + (size_t)e * each, each);
            continue;
        }
        char decoded[8], label[8];
        const lb_ctype from = a->store->ctype, to = lb_ctype_of(a->dtype);
        a->store->fmt->decode(&ref, a->store, e, 1, decoded);
        lb_convert_run(from, decoded, to, 1, label);
        lb_store_run(to, label, a->dtype, 1, out + (size_t)i * each);
    }
    return out;
}

lb_array *sample_plain(lb_ctx *cx, const lb_array *a)
{
    if (!a) return NULL;
    size_t size;
    void *data = sample_read(a, &size);
    lb_array *b = lb_from(cx, a->dtype, a->shape, data);
    free(data);
    return b;
}

/* ---- comparing ----------------------------------------------------------- */

static bool same_bits(const lb_array *a, const lb_array *b, lb_text *why)
{
    size_t size = (size_t)lb_shape_size(&a->shape) * lb_dtype_size(a->dtype);
    const size_t each = lb_dtype_size(a->dtype);
    const void *p = lb_data(a), *q = lb_data(b);
    if (p && q && memcmp(p, q, size) == 0) return true;
    char *x = sample_read(a, &size), *y = sample_read(b, &size);
    size_t at = 0;
    while (at < size && memcmp(x + at, y + at, each) == 0)
        at += each;
    if (at < size) {
        uint64_t u = 0, v = 0;
        memcpy(&u, x + at, each);
        memcpy(&v, y + at, each);
        snprintf(why->s, sizeof why->s, "element %zu of %zu is %llx, not %llx",
                 at / each, size / each, (unsigned long long)u,
                 (unsigned long long)v);
    }
    free(x);
    free(y);
    return at == size;
}

/* One entry along an axis is shared, or the only one of a group: the same. */
static bool same_groups(const lb_part *x, const lb_part *y, int rank)
{
    for (int k = 0; k < rank; k++)
        if (x->g[k] != y->g[k] &&
            (x->a->shape.dim[k] != 1 || y->a->shape.dim[k] != 1))
            return false;
    return x->own == y->own;
}

static bool same_parts(const lb_store *a, const lb_store *b, lb_text *why)
{
    lb_text inner;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        const lb_part *x = &a->part[p], *y = &b->part[p];
        if (!x->a && !y->a) continue;
        if (!x->a || !y->a || !same_groups(x, y, a->shape.rank))
            snprintf(why->s, sizeof why->s, "%s is laid out differently",
                     a->fmt->part[p].name);
        else if (!sample_same(x->a, y->a, &inner))
            snprintf(why->s, sizeof why->s, "%s: %.150s", a->fmt->part[p].name,
                     inner.s);
        if (why->s[0]) return false;
    }
    return true;
}

/* Views of stores with the same layout: they differ if the stored values do. */
static bool same_view(const lb_array *a, const lb_array *b)
{
    return !a->store->data && a->store->fmt == b->store->fmt &&
           a->store->meaning == b->store->meaning &&
           lb_shape_equal(&a->store->shape, &b->store->shape) &&
           a->offset == b->offset &&
           memcmp(a->stride, b->stride,
                  (size_t)a->shape.rank * sizeof *a->stride) == 0;
}

bool sample_same(const lb_array *a, const lb_array *b, lb_text *why)
{
    why->s[0] = 0;
    if (!a || !b) {
        snprintf(why->s, sizeof why->s, "no result");
        return !a && !b;
    }
    if (a->dtype != b->dtype || !lb_shape_equal(&a->shape, &b->shape)) {
        snprintf(why->s, sizeof why->s, "%s%.60s, not %s%.60s",
                 lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                 lb_dtype_name(b->dtype), LB_SHOW(&b->shape));
        return false;
    }
    if (same_view(a, b))
        return a->store == b->store || same_parts(a->store, b->store, why);
    return same_bits(a, b, why);
}
