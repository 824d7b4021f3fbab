/* layout_int.c - integer weights whose rows are stored as such:
 *
 *     compressed-tensors
 *         P.weight_packed      I32 (rows, words)   a stream, low bits first;
 *                                                  files from before 0.17:
 *                                                  32 / bits codes per word
 *         P.weight_scale       (rows, groups)      bf16, f16, f32
 *         P.weight_shape       I64 (2)             rows, columns
 *         P.weight_zero_point  I32 (words, groups) streams down the rows
 *         P.weight_g_idx       I32 (columns)       the group of each
 *
 *         P.weight             I8 (rows, columns)
 *         P.weight_scale       (rows, groups), (rows) or (1)
 *         P.weight_zero_point  I8
 *
 *     MLX, transformers' metal
 *         P.weight             U32 (.., rows, words)
 *         P.scales             (.., rows, groups)
 *         P.biases, .qbiases   as scales
 *
 *     Gemma
 *         P.weight             U8 (rows, bytes), or I8
 *         P.weight_scale       F32 (rows, 1)
 *
 * Streams need the number of bits, which is in config.json, sometimes by
 * module.
 */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/layouts/affine_tensors.h"
#include "io/models/module_match.h"

/* ---- compressed-tensors -------------------------------------------------- */

/* Rows and columns, from a tensor that is read now. */
static bool read_shape(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                       int64_t shape[2])
{
    int32_t narrow[2];
    if (t->rank != 1 || t->dim[0] != 2 ||
        (t->dtype != LB_I64 && t->dtype != LB_I32))
        return lb_refuse(cx, f->r->file[t->file],
                         "'%s' is not an I64 of 2 elements", LB_NAME(t->name));
    if (t->dtype == LB_I64)
        return lb_reader_read(cx, f->r, t, 0, 2 * sizeof *shape, shape);
    if (!lb_reader_read(cx, f->r, t, 0, sizeof narrow, narrow)) return false;
    shape[0] = narrow[0];
    shape[1] = narrow[1];
    return true;
}

/* The bits whose streams have so many words: as configured if that fits, else
 * the only number that does. */
static void find_bits(lb_affine_tensors *t, int64_t words, int configured)
{
    for (int pass = configured ? 0 : 1; pass < 2 && !t->bits; pass++)
        for (int b = 1; b <= 8 && !t->bits; b++)
            for (int padded = 0; padded < 2 && !t->bits; padded++) {
                if (!pass && b != configured) continue;
                if (lb_affine_words(t->columns, b, padded) != words) continue;
                t->bits = b;
                t->order = padded ? LB_ORDER_PADDED : LB_ORDER_ROWS;
            }
}

/* groups, and columns per group: as configured, or equal. */
static void set_groups(lb_affine_tensors *t, int64_t configured)
{
    t->groups = t->scale->rank > 1 ? t->scale->dim[t->scale->rank - 1] : 1;
    t->group_size = configured;
    if (!configured || lb_ceil_div(t->columns, configured) != t->groups)
        t->group_size = lb_affine_group_size(t);
}

static lb_verdict find_packed(lb_ctx *cx, lb_file *f, const lb_tensor *q,
                              lb_group *g)
{
    size_t n;
    int64_t shape[2];
    lb_module_settings m;
    if (q->dtype != LB_I32 || q->rank < 2 || q->rank >= LB_MAX_RANK ||
        !lb_name_ends(q->name, ".weight_packed", &n))
        return LB_DECLINED;
    const lb_tensor *scale =
        lb_reader_find_in(f->r, q->name, n, ".weight_scale");
    const lb_tensor *size =
        lb_reader_find_in(f->r, q->name, n, ".weight_shape");
    if (!lb_affine_is_scale(scale) || !size) return LB_DECLINED;
    lb_affine_tensors *t = lb_affine_begin(cx, f, q->name, n, ".weight");
    if (!t || !read_shape(cx, f, size, shape) ||
        !lb_module_settings_of(cx, f, t->name, n, &m))
        return LB_FAILED;
    t->codes = q;
    t->scale = scale;
    t->zero = lb_reader_find_in(f->r, q->name, n, ".weight_zero_point");
    t->zero_order = LB_ORDER_DOWN;
    t->group = lb_reader_find_in(f->r, q->name, n, ".weight_g_idx");
    if (shape[0] < 0 || shape[1] < 1 || q->rank != 2 || shape[0] != q->dim[0] ||
        shape[1] > INT64_MAX / 64)
        return lb_refuse(cx, f->r->file[size->file],
                         "'%s' is (%lld,%lld), which does not fit the %lld "
                         "rows of '%s'",
                         LB_NAME(size->name), (long long)shape[0],
                         (long long)shape[1], (long long)q->dim[0],
                         LB_NAME(q->name))
                   ? LB_DONE
                   : LB_FAILED;
    t->rows = shape[0];
    t->columns = shape[1];
    find_bits(t, q->dim[1], (int)m.bits);
    set_groups(t, m.group_size);
    const lb_verdict v = lb_affine_group(cx, f, t, g);
    g->tensor[5] = size;
    return v;
}

/* The name of the quantization method is needed: bitsandbytes, EETQ and others
 * store bytes with scales as well. */
static lb_verdict find_bytes(lb_ctx *cx, lb_file *f, const lb_tensor *scale,
                             lb_group *g)
{
    size_t n;
    if (!lb_affine_is_scale(scale) ||
        !lb_name_ends(scale->name, ".weight_scale", &n))
        return LB_DECLINED;
    const lb_tensor *q = lb_reader_find_in(f->r, scale->name, n, ".weight");
    if (!lb_affine_is(q, LB_I8, 2)) return LB_DECLINED;
    lb_affine_tensors *t = lb_affine_begin(cx, f, q->name, n, ".weight");
    lb_module_settings m;
    if (!t || !lb_module_settings_of(cx, f, t->name, n, &m)) return LB_FAILED;
    t->codes = q;
    t->scale = scale;
    t->bits = 8;
    t->rows = q->dim[0];
    t->columns = q->dim[1];
    t->order = t->zero_order = LB_ORDER_SIGNED;
    t->zero = lb_reader_find_in(f->r, q->name, n, ".weight_zero_point");
    set_groups(t, m.group_size);
    return lb_affine_group(cx, f, t, g);
}

static lb_verdict find_ct(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                          lb_group *g)
{
    const lb_verdict v = find_packed(cx, f, t, g);
    return v == LB_DECLINED ? find_bytes(cx, f, t, g) : v;
}

const lb_file_layout lb_file_layout_ct_int = {
    .name = "compressed-tensors", .find = find_ct, LB_AFFINE_TENSORS};

/* ---- MLX ----------------------------------------------------------------- */

/* (bits, group) that fit: words * 32 = columns * bits, columns = groups *
 * group. */
static bool fits_mlx(const lb_tensor *w, const lb_tensor *scale, int64_t bits,
                     int64_t group)
{
    const int64_t words = w->dim[w->rank - 1], n = scale->dim[scale->rank - 1];
    return bits && group && words <= INT64_MAX / 32 &&
           n <= INT64_MAX / 8 / group && words * 32 == n * group * bits;
}

static void find_mlx_bits(const lb_tensor *w, const lb_tensor *scale,
                          lb_module_settings *m)
{
    static const int bits[] = {4, 8, 6, 5, 3, 2}, group[] = {64, 128, 32};
    if (fits_mlx(w, scale, m->bits, m->group_size)) return;
    if (m->bits && m->group_size) return; /* an error: they contradict */
    for (int g = 0; g < 3; g++)
        for (int b = 0; b < 6; b++) {
            const int64_t has = m->group_size ? m->group_size : group[g];
            const int64_t takes = m->bits ? m->bits : bits[b];
            if (!fits_mlx(w, scale, takes, has)) continue;
            m->bits = takes;
            m->group_size = has;
            return;
        }
}

static bool same_rows(const lb_tensor *a, const lb_tensor *b)
{
    bool same = a->rank == b->rank && a->rank >= 2 && a->rank < LB_MAX_RANK;
    for (int k = 0; same && k < a->rank - 1; k++)
        same = a->dim[k] == b->dim[k];
    return same;
}

static lb_verdict find_mlx(lb_ctx *cx, lb_file *f, const lb_tensor *scale,
                           lb_group *g)
{
    size_t n;
    lb_module_settings m;
    if (!lb_affine_is_scale(scale) || !lb_name_ends(scale->name, ".scales", &n))
        return LB_DECLINED;
    const lb_tensor *w = lb_reader_find_in(f->r, scale->name, n, ".weight");
    const lb_tensor *bias = lb_reader_find_in(f->r, scale->name, n, ".biases");
    if (!bias) bias = lb_reader_find_in(f->r, scale->name, n, ".qbiases");
    if (!w || w->dtype != LB_U32 || !lb_affine_is_scale(bias))
        return LB_DECLINED;
    lb_affine_tensors *t = lb_affine_begin(cx, f, w->name, n, ".weight");
    if (!t || !lb_module_settings_of(cx, f, t->name, n, &m)) return LB_FAILED;
    if (!same_rows(w, scale)) return LB_DECLINED;
    find_mlx_bits(w, scale, &m);
    t->codes = w;
    t->scale = scale;
    t->bias = bias;
    t->bits = (int)m.bits;
    t->group_size = m.group_size;
    t->groups = scale->dim[scale->rank - 1];
    if (!fits_mlx(w, scale, m.bits, m.group_size))
        return lb_refuse(cx, f->r->file[w->file],
                         "'%s' has %lld words and %lld groups per row, which "
                         "does not fit %lld bits and groups of %lld",
                         LB_NAME(w->name), (long long)w->dim[w->rank - 1],
                         (long long)t->groups, (long long)m.bits,
                         (long long)m.group_size)
                   ? LB_DONE
                   : LB_FAILED;
    t->columns = t->groups * m.group_size;
    t->rank = w->rank;
    int64_t *dim =
        lb_arena_alloc(cx, &f->arena, (uint64_t)w->rank, sizeof *dim);
    if (!dim) return LB_FAILED;
    lb_shape rows = lb_shape_make(w->rank - 1, w->dim);
    memcpy(dim, w->dim, (size_t)w->rank * sizeof *dim);
    dim[w->rank - 1] = t->columns;
    t->dim = dim;
    if (!lb_shape_count(&rows, &t->rows)) return LB_DECLINED;
    return lb_affine_group(cx, f, t, g);
}

const lb_file_layout lb_file_layout_mlx_affine = {
    .name = "mlx", .find = find_mlx, LB_AFFINE_TENSORS};

/* ---- Gemma --------------------------------------------------------------- */

/* Which weights with row scales are Gemma's, only config.json knows. */
static lb_verdict find_gemma(lb_ctx *cx, lb_file *f, const lb_tensor *scale,
                             lb_group *g)
{
    static const struct {
        const char *scale, *codes;
    } names[] = {{".weight_scale", ".weight"},
                 {"embedding_scale", "embedding_quantized"}};
    size_t n = 0;
    lb_module_settings m;
    if (scale->dtype != LB_F32 || scale->rank != 2) return LB_DECLINED;
    for (int i = 0; i < 2; i++) {
        if (!lb_name_ends(scale->name, names[i].scale, &n)) continue;
        const lb_tensor *q =
            lb_reader_find_in(f->r, scale->name, n, names[i].codes);
        const lb_settings *s = q ? lb_settings_of(cx, f) : NULL;
        if (!q || q->rank != 2 || (q->dtype != LB_U8 && q->dtype != LB_I8))
            continue;
        if (!s) return LB_FAILED;
        if (strcmp(lb_setting_text(s, "quant_method"), "gemma") != 0)
            return LB_DECLINED;
        lb_affine_tensors *t =
            lb_affine_begin(cx, f, q->name, n, names[i].codes);
        if (!t || !lb_module_settings_of(cx, f, t->name, n, &m))
            return LB_FAILED;
        const bool bytes = q->dtype == LB_I8;
        t->bits = bytes ? 8 : (int)m.bits;
        if (!bytes && t->bits != 2 && t->bits != 4) return LB_DECLINED;
        if (q->dim[1] > INT64_MAX / 8) return LB_DECLINED;
        t->order = bytes ? LB_ORDER_SIGNED : LB_ORDER_ROWS;
        t->codes = q;
        t->scale = scale;
        t->rows = q->dim[0];
        t->columns = q->dim[1] * 8 / t->bits;
        set_groups(t, 0);
        return lb_affine_group(cx, f, t, g);
    }
    return LB_DECLINED;
}

const lb_file_layout lb_file_layout_gemma = {
    .name = "gemma", .find = find_gemma, LB_AFFINE_TENSORS};
