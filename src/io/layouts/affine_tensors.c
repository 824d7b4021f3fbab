/* affine_tensors.c - see affine_tensors.h. Checking; loading is in
 * affine_load.c. */
#include "io/layouts/affine_tensors.h"

#include <string.h>

#include "core/core.h"

enum { CODES, SCALE, ZERO, BIAS, GROUP };

lb_affine_tensors *lb_affine_begin(lb_ctx *cx, lb_file *f, const char *prefix,
                                   size_t n, const char *suffix)
{
    lb_affine_tensors *t = lb_arena_alloc(cx, &f->arena, 1, sizeof *t);
    char *name = lb_arena_alloc(cx, &f->arena, n + strlen(suffix) + 1, 1);
    if (!t || !name) return NULL;
    memcpy(name, prefix, n);
    memcpy(name + n, suffix, strlen(suffix) + 1);
    t->name = name;
    t->rank = 2;
    return t;
}

int64_t lb_affine_words(int64_t n, int bits, bool padded)
{
    return padded ? lb_ceil_div(n, 32 / bits) : lb_ceil_div(n * bits, 32);
}

int64_t lb_affine_group_size(const lb_affine_tensors *t)
{
    if (t->groups < 1 || (!t->group && t->columns % t->groups)) return 0;
    return lb_ceil_div(t->columns, t->groups);
}

bool lb_affine_is_scale(const lb_tensor *t)
{
    return t &&
           (t->dtype == LB_F32 || t->dtype == LB_F16 || t->dtype == LB_BF16);
}

bool lb_affine_is(const lb_tensor *t, lb_dtype dtype, int rank)
{
    return t && t->dtype == dtype && t->rank == rank;
}

/* ---- checks -------------------------------------------------------------- */

static bool wrong(lb_ctx *cx, const lb_file *f, const lb_affine_tensors *t,
                  const lb_tensor *part, const char *want)
{
    lb_shape shape = {0};
    if (part->rank <= LB_MAX_RANK) shape = lb_shape_make(part->rank, part->dim);
    return lb_refuse(
        cx, f->r->file[part->file],
        "'%s' is %s %s, but '%s' with %lld rows, %lld columns of %d bits and "
        "%lld groups needs %s",
        LB_NAME(part->name), part->type, LB_SHOW(&shape), LB_NAME(t->name),
        (long long)t->rows, (long long)t->columns, t->bits,
        (long long)t->groups, want);
}

static int64_t count(const lb_tensor *t)
{
    int64_t n = 0;
    if (t->rank > LB_MAX_RANK) return -1;
    const lb_shape shape = lb_shape_make(t->rank, t->dim);
    return lb_shape_count(&shape, &n) ? n : -1;
}

static int64_t last_of(const lb_tensor *t)
{
    return t->rank ? t->dim[t->rank - 1] : 1;
}

/* Whether a tensor is a matrix (n, m), with any split of the first axis. */
static bool is_matrix(const lb_tensor *t, int64_t n, int64_t m)
{
    const int64_t all = count(t);
    if (t->rank < 1 || last_of(t) != m || all < 0) return false;
    return m > 0 ? all / m == n : n == 0;
}

/* One entry per row, without an axis of groups. */
static bool is_list(const lb_tensor *s, const lb_affine_tensors *t)
{
    return s->rank == 1 && s->dim[0] == t->rows && t->groups == 1;
}

static bool check_codes(lb_ctx *cx, const lb_file *f,
                        const lb_affine_tensors *t)
{
    const lb_tensor *c = t->codes;
    const int64_t n = t->rows, k = t->columns;
    const int64_t words = lb_affine_words(k, t->bits, false);
    const int64_t bytes = lb_ceil_div(k * t->bits, 8);
    bool ok = false;
    switch (t->order) {
    case LB_ORDER_ROWS:
        ok = c->dtype == LB_U8 ? is_matrix(c, n, bytes)
                               : (c->dtype == LB_I32 || c->dtype == LB_U32) &&
                                     is_matrix(c, n, words);
        break;
    case LB_ORDER_PADDED:
        ok = c->dtype == LB_I32 &&
             is_matrix(c, n, lb_affine_words(k, t->bits, true));
        break;
    case LB_ORDER_DOWN:
        ok = c->dtype == LB_I32 && is_matrix(c, words, n) &&
             k * t->bits % 32 == 0;
        break;
    case LB_ORDER_AWQ:
        ok = c->dtype == LB_I32 && is_matrix(c, k, n / 8) && n % 8 == 0;
        break;
    case LB_ORDER_SIGNED:
        ok = c->dtype == LB_I8 && is_matrix(c, n, k);
    }
    return (ok && !c->fortran) || wrong(cx, f, t, c, "codes of another shape");
}

static bool check_groups(lb_ctx *cx, const lb_file *f,
                         const lb_affine_tensors *t)
{
    if (t->groups < 1 || t->group_size < 1 ||
        (!t->group && lb_ceil_div(t->columns, t->group_size) != t->groups))
        return wrong(cx, f, t, t->scale,
                     "groups of one size that cover the columns");
    for (int i = 0; i < 2; i++) {
        const lb_tensor *s = i ? t->bias : t->scale;
        if (!s) continue;
        const bool one = count(s) == 1 && t->groups == 1;
        const bool fits =
            t->across ? is_matrix(s, t->groups, t->rows)
                      : is_matrix(s, t->rows, t->groups) || is_list(s, t);
        if (!lb_affine_is_scale(s) || !(one || fits) || s->fortran ||
            s->dtype != t->scale->dtype)
            return wrong(cx, f, t, s, "one float per row and group");
    }
    const lb_tensor *g = t->group;
    return !g || (g->dtype == LB_I32 && is_matrix(g, 1, t->columns)) ||
           wrong(cx, f, t, g, "an I32 per column");
}

static bool check_zero(lb_ctx *cx, const lb_file *f, const lb_affine_tensors *t)
{
    const lb_tensor *z = t->zero;
    bool ok = false;
    if (!z) return true;
    switch (t->zero_order) {
    case LB_ORDER_ROWS:
    case LB_ORDER_PADDED:
        ok = z->dtype == LB_I32 &&
             is_matrix(z, t->groups,
                       lb_affine_words(t->rows, t->bits,
                                       t->zero_order == LB_ORDER_PADDED));
        break;
    case LB_ORDER_DOWN:
        ok = z->dtype == LB_I32 &&
             (is_matrix(z, lb_affine_words(t->rows, t->bits, false),
                        t->groups) ||
              is_matrix(z, lb_affine_words(t->rows, t->bits, true), t->groups));
        break;
    case LB_ORDER_AWQ:
        ok = z->dtype == LB_I32 && is_matrix(z, t->groups, t->rows / 8);
        break;
    case LB_ORDER_SIGNED:
        ok = z->dtype == LB_I8 &&
             (is_matrix(z, t->rows, t->groups) || is_list(z, t) ||
              (count(z) == 1 && t->groups == 1));
    }
    return (ok && !z->fortran) ||
           wrong(cx, f, t, z, "one zero point per row and group");
}

lb_verdict lb_affine_group(lb_ctx *cx, lb_file *f, lb_affine_tensors *t,
                           lb_group *g)
{
    static const char *const format[] = {"int1", "int2", "int3", "int4",
                                         "int5", "int6", "int7", "uint8"};
    int64_t elements;
    const lb_shape shape = LB_SHAPE(t->rows, t->columns);
    if (t->bits < 1 || t->bits > 8 || t->rows < 0 || t->columns < 1 ||
        t->rows > LB_AFFINE_MOST || t->columns > LB_AFFINE_MOST ||
        !lb_shape_count(&shape, &elements))
        return wrong(cx, f, t, t->codes, "a valid shape") ? LB_DONE : LB_FAILED;
    if (!check_codes(cx, f, t) || !check_groups(cx, f, t) ||
        !check_zero(cx, f, t))
        return LB_FAILED;
    if (!t->dim) {
        int64_t *dim = lb_arena_alloc(cx, &f->arena, 2, sizeof *dim);
        if (!dim) return LB_FAILED;
        dim[0] = t->rows;
        dim[1] = t->columns;
        t->dim = dim;
    }
    g->tensor[CODES] = t->codes;
    g->tensor[SCALE] = t->scale;
    g->tensor[ZERO] = t->zero;
    g->tensor[BIAS] = t->bias;
    g->tensor[GROUP] = t->group;
    g->own = t;
    g->entry.name = t->name;
    g->entry.type = t->codes->type;
    g->entry.format = format[t->bits - 1];
    g->entry.dtype = t->scale->dtype;
    g->entry.rank = t->rank;
    g->entry.dim = t->dim;
    return LB_DONE;
}
