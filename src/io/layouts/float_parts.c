/* float_parts.c - see float_parts.h. */
#include "io/layouts/float_parts.h"

#include <string.h>

#include "core/core.h"

bool lb_type_is(const lb_tensor *t, const char *types)
{
    const size_t n = strlen(t->type);
    for (const char *at = types; (at = strstr(at, t->type)); at += n)
        if ((at == types || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return true;
    return false;
}

const char *lb_floats_name(lb_ctx *cx, lb_file *f, const char *prefix, size_t n,
                           const char *suffix)
{
    const size_t more = strlen(suffix);
    char *to = lb_arena_alloc(cx, &f->arena, n + more + 1, 1);
    if (!to) return NULL;
    memcpy(to, prefix, n);
    memcpy(to + n, suffix, more + 1);
    return to;
}

/* The dtype that a model has in memory: that of 16-bit scales, of config.json,
 * or f32. */
static bool find_dtype(lb_ctx *cx, lb_file *f, const lb_tensor *scale,
                       lb_dtype *dtype)
{
    *dtype = scale ? scale->dtype : LB_NO_DTYPE;
    if (*dtype == LB_BF16 || *dtype == LB_F16) return true;
    const lb_model_config *c = lb_model_config_of(cx, f);
    if (!c) return false;
    *dtype = lb_dtype_of_torch(c->dtype);
    if (*dtype != LB_BF16 && *dtype != LB_F16) *dtype = LB_F32;
    return true;
}

static lb_verdict refuse(lb_ctx *cx, const lb_file *f, const lb_floats *t,
                         const char *why)
{
    const lb_tensor *s = t->scale;
    const lb_shape a = lb_shape_make(t->codes->rank, t->codes->dim),
                   b = lb_shape_make(s->rank, s->dim);
    lb_refuse(cx, f->r->file[s->file], "'%s' %s has scales '%s' %s %s: %s",
              LB_NAME(t->name), LB_SHOW(&a), LB_NAME(s->name), s->type,
              LB_SHOW(&b), why);
    return LB_FAILED;
}

static bool ranks_ok(const lb_floats *t)
{
    return t->codes->rank >= 1 && t->codes->rank <= LB_MAX_RANK &&
           t->scale->rank <= LB_MAX_RANK && !t->codes->fortran &&
           !t->scale->fortran;
}

/* ---- scales -------------------------------------------------------------- */

/* The scale of scales: one for all, or one for each entry of leading axes. */
static bool put_more(const lb_floats *t, lb_described *scales)
{
    lb_described_part *p = lb_parts_add(scales, "scale");
    const lb_tensor *m = t->more;
    p->tensor = m;
    p->elem = m->dtype;
    if (m->size == lb_dtype_size(m->dtype)) return true;
    for (int k = 0; k < m->rank; k++) {
        if (k >= scales->shape.rank) return m->dim[k] == 1;
        p->table.g[k] = m->dim[k] != 1 || scales->shape.dim[k] == 1;
    }
    return true;
}

/* Scales with this table, as a tensor or as an array of 8-bit floats. */
static bool put_scale(lb_ctx *cx, lb_file *f, const lb_floats *t,
                      const lb_part *table, lb_described *d)
{
    const lb_tensor *s = t->scale;
    lb_described_part *p = lb_parts_add(d, "scale");
    p->table = *table;
    p->tensor = s;
    p->elem = s->dtype;
    const bool power =
        strcmp(d->format, "nvfp4") != 0 && lb_type_is(s, "U8 F8_E8M0");
    if (!power && lb_type_is(s, "F32 F16 BF16")) return true;
    const lb_shape shape = lb_part_shape(&d->stored, table);
    lb_described *a =
        lb_parts_begin(cx, f, power ? "e8m0" : "fp8_e4m3", LB_F32, &shape);
    if (!a) return false;
    p->array = a;
    lb_parts_rows(a, "codes", s, LB_U8, 1);
    if (power && s->dtype == LB_U8) a->meaning = (int)t->top;
    if (!t->more) return true;
    a->meaning = t->divided ? LB_MEANS_INVERSE : LB_MEANS_SCALE;
    return put_more(t, a) ||
           lb_refuse(cx, f->r->file[s->file], "'%s' has another rank than '%s'",
                     LB_NAME(t->more->name), LB_NAME(s->name));
}

/* ---- fp8 ----------------------------------------------------------------- */

/* Elements of an axis of n that share one of m scales; 0: all. `block` is that
 * of the configuration, or 0. False: no such block exists. */
static bool group_of(int64_t n, int64_t m, int64_t block, int64_t *g)
{
    enum { USUAL = 128 };
    *g = 0;
    if (m == 1) return true;
    *g = 1;
    if (m == n) return true;
    *g = block;
    if (block > 0) return m >= lb_ceil_div(n, block); /* or cropped */
    if (m < 1 || m > n) return false;
    *g = n / m;
    if (n % m == 0) return true;
    *g = USUAL;
    return lb_ceil_div(n, USUAL) == m;
}

static bool groups_of(const lb_floats *t, const int64_t block[2], lb_part *to)
{
    const lb_tensor *w = t->codes, *s = t->scale;
    const int last = w->rank - 1;
    bool one = true;
    for (int k = 0; k < s->rank; k++)
        one = one && s->dim[k] == 1;
    if (one) return true;
    if (s->rank < w->rank) { /* leading axes */
        for (int k = 0; k < s->rank; k++)
            if (!group_of(w->dim[k], s->dim[k], 0, &to->g[k]) || to->g[k] > 1)
                return false;
        return true;
    }
    for (int k = 0; k <= last; k++) {
        const int64_t b = k >= last - 1 ? block[k - last + 1] : 0;
        if (!group_of(w->dim[k], s->dim[k], b, &to->g[k])) return false;
    }
    return s->rank == w->rank;
}

/* Powers of two for each 32 of a row, which is mxfp8. */
static bool is_mx(const lb_floats *t)
{
    const lb_tensor *w = t->codes, *s = t->scale;
    const int last = w->rank - 1;
    bool mx = lb_type_is(w, "F8_E4M3") && lb_type_is(s, "U8 F8_E8M0") &&
              s->rank == w->rank && w->dim[last] / 32 == s->dim[last] &&
              w->dim[last] % 32 == 0;
    for (int k = 0; mx && k < last; k++)
        mx = s->dim[k] == w->dim[k];
    return mx;
}

lb_verdict lb_floats_fp8(lb_ctx *cx, lb_file *f, const lb_floats *t,
                         lb_group *g)
{
    lb_part table = {.own = 0};
    lb_dtype dtype;
    if (!ranks_ok(t)) return LB_DECLINED;
    if (is_mx(t)) return lb_floats_blocks(cx, f, "mxfp8", false, t, g);
    const lb_model_config *c = lb_quant_config_of(cx, f);
    if (!c || !find_dtype(cx, f, t->scale, &dtype)) return LB_FAILED;
    if (!groups_of(t, c->block, &table))
        return refuse(cx, f, t, "they do not fit");
    const lb_shape shape = lb_shape_make(t->codes->rank, t->codes->dim);
    const bool e5m2 = lb_type_is(t->codes, "F8_E5M2");
    lb_described *d =
        lb_parts_begin(cx, f, e5m2 ? "fp8_e5m2" : "fp8_e4m3", dtype, &shape);
    if (!d) return LB_FAILED;
    lb_parts_rows(d, "codes", t->codes, LB_U8, 1);
    return put_scale(cx, f, t, &table, d) &&
                   lb_parts_group(cx, f, t->name, d, g)
               ? LB_DONE
               : LB_FAILED;
}

/* ---- blocks of a row ----------------------------------------------------- */

/* Bytes of a row of codes; false if they are not rows. */
static bool row_bytes(const lb_tensor *w, bool own, lb_shape *rows,
                      int64_t *bytes)
{
    *rows = lb_shape_make(own ? w->rank - 1 : w->rank, w->dim);
    if (rows->rank < 1) return false;
    int64_t *last = &rows->dim[rows->rank - 1];
    const int64_t each = own                    ? w->dim[w->rank - 1]
                         : lb_type_is(w, "U32") ? 4
                                                : 1;
    if (each < 1 || *last > INT64_MAX / 4 / each) return false;
    *bytes = *last * each;
    return true;
}

lb_verdict lb_floats_blocks(lb_ctx *cx, lb_file *f, const char *format,
                            bool own, const lb_floats *t, lb_group *g)
{
    lb_part table = {.own = 0};
    lb_shape shape;
    lb_dtype dtype;
    int64_t bytes;
    const bool halves = strcmp(format, "mxfp8") != 0;
    const int64_t block = strcmp(format, "nvfp4") == 0 ? 16 : 32;
    if (!ranks_ok(t) || !row_bytes(t->codes, own, &shape, &bytes))
        return LB_DECLINED;
    const int last = shape.rank - 1;
    shape.dim[last] = halves && !lb_type_is(t->codes, "F4") ? 2 * bytes : bytes;
    bool fits = t->scale->rank == shape.rank && shape.dim[last] % block == 0 &&
                lb_shape_check(NULL, "", &shape);
    for (int k = 0; fits && k <= last; k++)
        fits = t->scale->dim[k] ==
               (k < last ? shape.dim[k] : shape.dim[k] / block);
    if (!fits)
        return refuse(cx, f, t,
                      block == 16 ? "not one for each 16 elements of a row"
                                  : "not one for each 32 elements of a row");
    if (!find_dtype(cx, f, NULL, &dtype)) return LB_FAILED;
    lb_described *d = lb_parts_begin(cx, f, format, dtype, &shape);
    if (!d) return LB_FAILED;
    lb_parts_rows(d, "codes", t->codes, LB_U8, halves ? 2 : 1);
    lb_part_rows(&table, &shape, block);
    return put_scale(cx, f, t, &table, d) &&
                   lb_parts_group(cx, f, t->name, d, g)
               ? LB_DONE
               : LB_FAILED;
}

/* ---- no scales ----------------------------------------------------------- */

lb_verdict lb_floats_plain(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                           lb_group *g)
{
    static const char *const format[][2] = {{"F8_E4M3", "fp8_e4m3"},
                                            {"F8_E5M2", "fp8_e5m2"},
                                            {"F8_E8M0", "e8m0"},
                                            {"F4", "fp4_e2m1"}};
    const char *name = NULL;
    for (int i = 0; i < 4; i++)
        if (strcmp(t->type, format[i][0]) == 0) name = format[i][1];
    if (!name || t->rank > LB_MAX_RANK || t->fortran) return LB_DECLINED;
    const lb_shape shape = lb_shape_make(t->rank, t->dim);
    const bool halves = strcmp(t->type, "F4") == 0;
    if (halves && (t->rank < 1 || t->dim[t->rank - 1] % 2)) return LB_DECLINED;
    if (!lb_shape_check(NULL, "", &shape)) return LB_DECLINED;
    lb_described *d = lb_parts_begin(cx, f, name, LB_F32, &shape);
    if (!d) return LB_FAILED;
    lb_parts_rows(d, "codes", t, LB_U8, halves ? 2 : 1);
    if (!lb_parts_group(cx, f, t->name, d, g)) return LB_FAILED;
    g->entry.layout = NULL; /* a single tensor has no group */
    return LB_DONE;
}
