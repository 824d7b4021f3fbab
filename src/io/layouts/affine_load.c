/* affine_load.c - loads rows of arrays of affine_tensors.h. */
#include <string.h>

#include "core/core.h"
#include "io/arrays/saver.h"
#include "io/arrays/slices.h"
#include "io/layouts/affine_tensors.h"

/* Rows [lo, hi) of the matrix. */
typedef struct {
    lb_ctx *cx;
    lb_file *f;
    const lb_affine_tensors *t;
    int64_t lo, hi;
} affine_rows;

/* ---- bits ---------------------------------------------------------------- */

/* Code i of a stream of words that are `step` apart. */
static int code_at(const uint32_t *word, int64_t step, int bits, bool padded,
                   int64_t i)
{
    const int64_t each = 32 / bits;
    const int64_t bit = padded ? i / each * 32 + i % each * bits : i * bits;
    const int shift = (int)(bit % 32);
    uint64_t v = word[bit / 32 * step];
    if (shift + bits > 32) v |= (uint64_t)word[(bit / 32 + 1) * step] << 32;
    return (int)(v >> shift & ((1u << bits) - 1));
}

/* The nibble of row j of eight. */
static const int awq_nibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};

/* ---- rearranging --------------------------------------------------------- */

/* Releases the array whose memory is used under another dtype. */
static void release(void *user)
{
    lb_unref(user);
}

/* The bytes of a dense array, without copying. */
static lb_array *as_bytes(lb_ctx *cx, lb_array *a, const lb_shape *shape)
{
    if (!a || !(a = lb_materialize(cx, a))) return NULL;
    if (!lb_shape_size(shape)) return lb_dense(cx, LB_U8, shape);
    lb_array *b = lb_wrap(cx, LB_U8, *shape, lb_data(a), release, lb_ref(a));
    if (!b) lb_unref(a);
    return b;
}

/* A box of a tensor seen as a matrix. */
static lb_array *cut_matrix(const affine_rows *r, const lb_tensor *t,
                            lb_dtype dtype, int64_t n, int64_t m,
                            const int64_t start[2], const int64_t stop[2])
{
    const lb_cut box = {.of = LB_SHAPE(n, m),
                        .start = {start[0], start[1]},
                        .count = {stop[0] - start[0], stop[1] - start[1]}};
    return lb_tensor_cut(r->cx, r->f, t, dtype, &box);
}

/* Columns [lo, hi) of a matrix of n rows. */
static lb_array *cut_columns(const affine_rows *r, const lb_tensor *t,
                             int64_t n, int64_t m, int64_t lo, int64_t hi)
{
    const int64_t start[] = {0, lo}, stop[] = {n, hi};
    return cut_matrix(r, t, t->dtype, n, m, start, stop);
}

static lb_array *cut_rows(const affine_rows *r, const lb_tensor *t, int64_t m)
{
    const int64_t start[] = {r->lo, 0}, stop[] = {r->hi, m};
    return cut_matrix(r, t, t->dtype, r->t->rows, m, start, stop);
}

typedef struct {
    const affine_rows *r;
    const void *from;
    int64_t words; /* of a row of `from` */
    uint8_t *to;
    int64_t bytes; /* of a row of `to` */
    int64_t first; /* row of the array at the first word */
} affine_task;

/* Eight rows from a column of words; a unit is 64 columns. */
static void awq_task(void *arg, int64_t lo, int64_t hi, int thread)
{
    enum { COLUMNS = 64 };
    const affine_task *a = arg;
    const affine_rows *r = a->r;
    const uint32_t *word = a->from;
    (void)thread;
    for (int64_t u = lo; u < hi; u++) {
        const int64_t k1 = lb_min_i64((u + 1) * COLUMNS, r->t->columns);
        for (int64_t c = 0; c < a->words; c++)
            for (int j = 0; j < 8; j++) {
                const int64_t row = a->first + 8 * c + j - r->lo;
                const int shift = 4 * awq_nibble[j];
                if (row < 0 || row >= r->hi - r->lo) continue;
                uint8_t *to = a->to + row * a->bytes;
                for (int64_t k = u * COLUMNS; k < k1; k += 2) {
                    uint32_t v = word[k * a->words + c] >> shift & 15;
                    if (k + 1 < k1)
                        v |= (word[(k + 1) * a->words + c] >> shift & 15) << 4;
                    to[k / 2] = (uint8_t)v;
                }
            }
    }
}

static lb_array *awq_codes(const affine_rows *r)
{
    const lb_affine_tensors *t = r->t;
    const int64_t lo = r->lo / 8, hi = lb_ceil_div(r->hi, 8);
    const lb_shape shape = LB_SHAPE(r->hi - r->lo, lb_ceil_div(t->columns, 2));
    lb_array *words = cut_columns(r, t->codes, t->columns, t->rows / 8, lo, hi);
    lb_array *out = lb_dense(r->cx, LB_U8, &shape);
    if (!words || !out) return NULL;
    affine_task task = {
        r, lb_data(words), hi - lo, out->store->data, shape.dim[1], 8 * lo};
    if (lb_size(out) && lb_size(words))
        lb_pool_run(r->cx->pool, lb_ceil_div(t->columns, 64), awq_task, &task);
    return out;
}

/* Signed bytes to codes; rows that are padded in words to a stream. */
static void row_task(void *arg, int64_t lo, int64_t hi, int thread)
{
    const affine_task *a = arg;
    const lb_affine_tensors *t = a->r->t;
    (void)thread;
    for (int64_t row = lo; row < hi; row++) {
        uint8_t *to = a->to + row * a->bytes;
        const uint8_t *byte = a->from;
        const uint32_t *word = a->from;
        if (t->order == LB_ORDER_SIGNED) {
            for (int64_t k = 0; k < t->columns; k++)
                to[k] = byte[row * t->columns + k] ^ 0x80;
            continue;
        }
        memset(to, 0, (size_t)a->bytes);
        for (int64_t k = 0; k < t->columns; k++) {
            const int64_t bit = k * t->bits;
            const int v = code_at(word + row * a->words, 1, t->bits, true, k)
                          << bit % 8;
            to[bit / 8] = (uint8_t)(to[bit / 8] | v);
            if (v >> 8) to[bit / 8 + 1] = (uint8_t)(v >> 8);
        }
    }
}

static lb_array *rebuilt_rows(const affine_rows *r, int64_t words,
                              int64_t bytes)
{
    const lb_shape shape = LB_SHAPE(r->hi - r->lo, bytes);
    lb_array *from = cut_rows(r, r->t->codes, words);
    lb_array *out = lb_dense(r->cx, LB_U8, &shape);
    if (!from || !out) return NULL;
    affine_task task = {r, lb_data(from), words, out->store->data, bytes, 0};
    if (lb_size(out)) lb_pool_run(r->cx->pool, shape.dim[0], row_task, &task);
    return out;
}

/* The stream of each row: bytes (rows, any number that suffices). */
static lb_array *codes_of(const affine_rows *r)
{
    const lb_affine_tensors *t = r->t;
    const int64_t n = r->hi - r->lo;
    const int64_t words = lb_affine_words(t->columns, t->bits, false);
    const lb_shape shape = LB_SHAPE(n, 4 * words);
    lb_array *a;
    switch (t->order) {
    case LB_ORDER_ROWS:
        if (t->codes->dtype == LB_U8)
            return cut_rows(r, t->codes, lb_ceil_div(t->columns * t->bits, 8));
        return as_bytes(r->cx, cut_rows(r, t->codes, words), &shape);
    case LB_ORDER_PADDED:
        return rebuilt_rows(r, lb_affine_words(t->columns, t->bits, true),
                            4 * words);
    case LB_ORDER_DOWN:
        a = cut_columns(r, t->codes, words, t->rows, r->lo, r->hi);
        return as_bytes(r->cx, lb_transpose(r->cx, a, NULL), &shape);
    case LB_ORDER_AWQ:
        return awq_codes(r);
    default:
        return rebuilt_rows(r, t->columns, t->columns);
    }
}

/* ---- scales and zero points ---------------------------------------------- */

/* (rows, groups) */
static lb_array *floats_of(const affine_rows *r, const lb_tensor *s)
{
    const lb_affine_tensors *t = r->t;
    if (s->size == lb_dtype_size(s->dtype) && t->groups == 1)
        return lb_broadcast_to(
            r->cx,
            lb_reshape(r->cx, lb_tensor_load(r->cx, r->f, s, (lb_rows){0, -1}),
                       LB_SHAPE(1, 1)),
            LB_SHAPE(r->hi - r->lo, 1));
    if (!t->across) return cut_rows(r, s, t->groups);
    lb_array *a = cut_columns(r, s, t->groups, t->rows, r->lo, r->hi);
    return lb_materialize(r->cx, lb_transpose(r->cx, a, NULL));
}

static int zero_at(const lb_affine_tensors *t, const void *data, int64_t row,
                   int64_t group)
{
    const uint32_t *word = data;
    int64_t words = lb_affine_words(t->rows, t->bits, false);
    switch (t->zero_order) {
    case LB_ORDER_DOWN: {
        const bool padded = t->zero->size != (uint64_t)(4 * words * t->groups);
        return code_at(word + group, t->groups, t->bits, padded, row) + t->plus;
    }
    case LB_ORDER_AWQ:
        return (int)(word[group * (t->rows / 8) + row / 8] >>
                         4 * awq_nibble[row % 8] &
                     15);
    case LB_ORDER_SIGNED:
        return ((const int8_t *)
                    data)[t->zero->size == 1 ? 0 : row * t->groups + group] +
               (1 << (t->bits - 1));
    default: {
        const bool padded = t->zero_order == LB_ORDER_PADDED;
        words = lb_affine_words(t->rows, t->bits, padded);
        return code_at(word + group * words, 1, t->bits, padded, row) + t->plus;
    }
    }
}

/* All zero points: they are few. */
static lb_array *load_zero(const affine_rows *r)
{
    const lb_rows all = {0, -1};
    return lb_materialize(r->cx, lb_tensor_load(r->cx, r->f, r->t->zero, all));
}

/* Whether there are zero points that must be stored. */
static bool has_zero(const affine_rows *r, const lb_array *zero)
{
    lb_affine_tensors *t = (lb_affine_tensors *)r->t; /* of the arena */
    const void *data = lb_data(zero);
    for (int64_t g = 0; !t->symmetric && g < t->groups; g++)
        for (int64_t i = 0; i < t->rows && !t->symmetric; i++)
            if (zero_at(t, data, i, g) != 1 << (t->bits - 1)) t->symmetric = -1;
    if (!t->symmetric) t->symmetric = 1;
    return t->symmetric < 0;
}

/* (rows, groups) of u8, or of i16 where 256 is possible; NULL without an error:
 * all are 2^(bits - 1), the default. */
static lb_array *zero_of(const affine_rows *r)
{
    const lb_affine_tensors *t = r->t;
    const int64_t n = r->hi - r->lo;
    const lb_shape shape = LB_SHAPE(n, t->groups);
    if (!t->zero || t->symmetric > 0) return NULL;
    const lb_array *stored = load_zero(r);
    if (!stored || !has_zero(r, stored)) return NULL;
    const bool wide = t->bits == 8 && t->plus;
    lb_array *out = lb_dense(r->cx, wide ? LB_I16 : LB_U8, &shape);
    for (int64_t i = 0; out && i < n * t->groups; i++) {
        const int v =
            zero_at(t, lb_data(stored), r->lo + i / t->groups, i % t->groups);
        if (wide)
            ((int16_t *)out->store->data)[i] = (int16_t)v;
        else
            ((uint8_t *)out->store->data)[i] = (uint8_t)v;
    }
    return out;
}

/* The group of each column, checked; in *listed whether it must be stored,
 * because groups are not runs of group_size. */
static lb_array *group_of(const affine_rows *r, bool *listed)
{
    const lb_affine_tensors *t = r->t;
    lb_array *a = lb_materialize(
        r->cx, lb_tensor_load(r->cx, r->f, t->group, (lb_rows){0, -1}));
    const int32_t *g = a ? lb_data(a) : NULL;
    *listed = lb_ceil_div(t->columns, t->group_size) != t->groups;
    for (int64_t k = 0; g && k < t->columns; k++) {
        if (g[k] < 0 || g[k] >= t->groups) {
            lb_refuse(r->cx, r->f->r->file[t->group->file],
                      "'%s': column %lld is of group %d, but there are %lld",
                      LB_NAME(t->group->name), (long long)k, (int)g[k],
                      (long long)t->groups);
            return NULL;
        }
        *listed = *listed || g[k] != k / t->group_size;
    }
    return a;
}

/* ---- arrays -------------------------------------------------------------- */

/* The shape of a part: that of the array with another last axis, and one more
 * if own. */
static lb_shape part_shape(const lb_shape *array, int64_t last, int64_t own)
{
    lb_shape s = *array;
    s.dim[s.rank - 1] = last;
    if (own) s.dim[s.rank++] = own;
    return s;
}

/* The bytes of whole entries of the codes. */
static lb_array *entries_of(const affine_rows *r, lb_array *bytes,
                            const lb_shape *array)
{
    const int bits = r->t->bits;
    const int64_t own = bits == 6 ? 3 : bits & 1 && bits > 1 ? bits : 0;
    const int64_t each = bits == 6 ? 4 : own ? 8 : 8 / bits;
    const int64_t n = lb_ceil_div(r->t->columns, each);
    const int64_t want = n * (own ? own : 1);
    if (!bytes) return NULL;
    const int64_t start[] = {0, 0}, stop[] = {lb_dim(bytes, 0), want};
    const int64_t more[] = {0, want - lb_dim(bytes, 1)};
    const int64_t none[] = {0, 0};
    if (more[1] > 0)
        bytes = lb_pad(r->cx, bytes, lb_scalar_int(r->cx, 0), none, more, NULL);
    else if (more[1] < 0)
        bytes = lb_slice(r->cx, bytes, start, stop, NULL);
    return lb_reshape(r->cx, lb_materialize(r->cx, bytes),
                      part_shape(array, n, own));
}

static lb_array *make(const affine_rows *r, const lb_group *g,
                      const lb_shape *array)
{
    static const char *const name[] = {"codes", "scale", "zero", "bias",
                                       "group"};
    const lb_affine_tensors *t = r->t;
    lb_array *part[5] = {NULL};
    const char *named[5];
    bool listed = false;
    if (t->group && !(part[4] = group_of(r, &listed))) return NULL;
    part[0] = entries_of(r, codes_of(r), array);
    part[1] = floats_of(r, t->scale);
    part[2] = zero_of(r);
    part[3] = t->bias ? floats_of(r, t->bias) : NULL;
    if (lb_error_status(r->cx)) return NULL;
    for (int p = 1; p < 4; p++)
        if (part[p])
            part[p] = lb_reshape(r->cx, part[p],
                                 listed ? part_shape(array, 1, t->groups)
                                        : part_shape(array, t->groups, 0));
    lb_shape columns = *array;
    for (int k = 0; k < columns.rank - 1; k++)
        columns.dim[k] = 1;
    part[4] = listed ? lb_reshape(r->cx, part[4], columns) : NULL;
    int n = 0;
    for (int p = 0; p < 5; p++) {
        if (!part[p]) continue;
        named[n] = name[p];
        part[n++] = part[p];
    }
    const bool row = !listed && t->groups == 1;
    const lb_quant_config config = {
        .format = g->entry.format,
        .block_size = row      ? 0
                      : listed ? t->groups
                               : t->group_size,
        .scale = row ? LB_SCALE_ROW : LB_SCALE_DEFAULT,
        .blocks = listed ? LB_BLOCKS_LISTED : LB_BLOCKS_DEFAULT,
        .dtype = g->entry.dtype};
    return lb_from_parts(r->cx, &config, *array, NULL, named, part, n);
}

lb_array *lb_affine_load(lb_ctx *cx, lb_file *f, const lb_group *g,
                         lb_rows rows)
{
    const lb_affine_tensors *t = g->own;
    lb_shape shape = lb_shape_make(t->rank, t->dim);
    int64_t each = 1; /* rows of the matrix per row of the array */
    for (int k = 1; k < t->rank - 1; k++)
        each *= t->dim[k];
    if (rows.hi >= 0) shape.dim[0] = rows.hi - rows.lo;
    affine_rows r = {cx, f, t, 0, t->rows};
    if (rows.hi >= 0) {
        r.lo = rows.lo * each;
        r.hi = rows.hi * each;
    }
    return make(&r, g, &shape);
}

bool lb_affine_cuts(const lb_group *g)
{
    (void)g;
    return true;
}

/* ---- boxes --------------------------------------------------------------- */

/* Which parts there are depends on the values of zero points and of g_idx. An
 * array of no rows has the same parts. */
const lb_described *lb_affine_describe(lb_ctx *cx, lb_file *f,
                                       const lb_group *g)
{
    const lb_affine_tensors *t = g->own;
    lb_enter(cx);
    const lb_array *a = lb_affine_load(cx, f, g, (lb_rows){0, 0});
    lb_described *d =
        a ? lb_describe_array(cx, &f->arena, g->entry.name, a) : NULL;
    lb_leave(cx);
    if (d) d->shape = d->stored = lb_shape_make(t->rank, t->dim);
    return d;
}

/* Its rows are loaded, and cut. */
lb_array *lb_affine_load_cut(lb_ctx *cx, lb_file *f, const lb_group *g,
                             const lb_cut *box)
{
    const lb_rows rows = {box->start[0], box->start[0] + box->count[0]};
    lb_cut rest = *box;
    rest.of.dim[0] = rest.count[0];
    rest.start[0] = 0;
    return lb_array_cut(cx, lb_affine_load(cx, f, g, rows), &rest);
}
