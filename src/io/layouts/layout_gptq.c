/* layout_gptq.c - linear layers as GPTQ and AWQ programs store them, words of
 * 32 bits:
 *
 *     P.qweight  I32   GPTQ (columns * bits / 32, rows)   AWQ (columns, rows/8)
 *     P.qzeros   I32   (groups, rows * bits / 32); AWQ: may be missing
 *     P.scales   F16   (groups, rows); BF16 and F32 exist
 *     P.g_idx    I32   (columns): GPTQ, the group of each; may be missing
 *
 * w = scales * (q - z). z is the stored zero point; in the first version of
 * GPTQ (which is the default) one more, also if it is 2^bits - 1. The bits
 * follow from the shapes: modules may differ ("dynamic").
 */
#include <string.h>

#include "core/core.h"
#include "io/layouts/affine_tensors.h"

/* Programs that use these names and types for other orders. */
static bool is_other(const lb_file *f, const char *name, size_t n)
{
    static const char *const suffix[] = {".tables2", ".q_perm", ".q_groups"};
    for (size_t i = 0; i < sizeof suffix / sizeof *suffix; i++)
        if (lb_reader_find_in(f->r, name, n, suffix[i])) return true;
    return false;
}

/* The tensors of a module, without orders; NULL: not of such a module, or an
 * error. */
static lb_affine_tensors *module_of(lb_ctx *cx, lb_file *f, const lb_tensor *q,
                                    const lb_settings **s)
{
    size_t n;
    if (!lb_affine_is(q, LB_I32, 2) || !lb_name_ends(q->name, ".qweight", &n))
        return NULL;
    const lb_tensor *scale = lb_reader_find_in(f->r, q->name, n, ".scales");
    if (!lb_affine_is_scale(scale) || scale->rank != 2 ||
        scale->dim[1] > LB_AFFINE_MOST || is_other(f, q->name, n) ||
        !(*s = lb_settings_of(cx, f)))
        return NULL;
    lb_affine_tensors *t = lb_affine_begin(cx, f, q->name, n, ".weight");
    if (!t) return NULL;
    t->codes = q;
    t->scale = scale;
    t->zero = lb_reader_find_in(f->r, q->name, n, ".qzeros");
    t->group = lb_reader_find_in(f->r, q->name, n, ".g_idx");
    t->across = true;
    t->groups = scale->dim[0];
    t->rows = scale->dim[1];
    return t;
}

/* The configured size, if it gives this number of groups; else the size of
 * equal groups, 0 if there is none. */
static int64_t size_of_groups(const lb_affine_tensors *t, const lb_settings *s)
{
    static const char *const name[] = {"group_size", "q_group_size"};
    for (int i = 0; i < 2; i++) {
        const int64_t g = lb_setting_count(s, name[i], INT32_MAX);
        if (g && lb_ceil_div(t->columns, g) == t->groups) return g;
    }
    return lb_affine_group_size(t);
}

/* ---- GPTQ ---------------------------------------------------------------- */

/* What is added to stored zero points; -1: a format that is not known. Planes
 * of bits ("gptq_p") are streams if the bits divide a word. */
static int added(const lb_settings *s, int bits)
{
    const char *packing = lb_setting_text(s, "packing_format");
    const char *format = lb_setting_text(s, "checkpoint_format");
    if (*packing ||
        strcmp(lb_setting_text(s, "quant_method"), "auto-round") == 0)
        return strstr(packing, "auto_gptq") != NULL;
    if (!*format) format = lb_setting_text(s, "format");
    if (!*format || strcmp(format, "gptq") == 0) return 1;
    if (strcmp(format, "gptq_p") == 0) return 32 % bits ? -1 : 0;
    return strcmp(format, "gptq_v2") == 0 ? 0 : -1;
}

/* Bits of a code: from zero points, which are stored along the rows, else from
 * g_idx, else as configured. */
static int bits_of(const lb_affine_tensors *t, const lb_settings *s)
{
    const lb_tensor *z = t->zero;
    const int64_t words = t->codes->dim[0];
    if (z && z->rank == 2 && t->rows > 0 && z->dim[1] <= t->rows)
        return (int)(z->dim[1] * 32 / t->rows);
    if (t->group && t->group->rank == 1 && t->group->dim[0] > 0 &&
        words <= t->group->dim[0])
        return (int)(words * 32 / t->group->dim[0]);
    return (int)lb_setting_count(s, "bits", 8);
}

static lb_verdict find_gptq(lb_ctx *cx, lb_file *f, const lb_tensor *q,
                            lb_group *g)
{
    const lb_settings *s = NULL;
    lb_affine_tensors *t = module_of(cx, f, q, &s);
    if (!t) return lb_error_status(cx) ? LB_FAILED : LB_DECLINED;
    if (q->dim[1] != t->rows) return LB_DECLINED;
    t->bits = bits_of(t, s);
    if (t->bits < 1 || t->bits > 8) return LB_DECLINED;
    t->plus = added(s, t->bits);
    if (t->plus < 0) return LB_DECLINED;
    if (q->dim[0] > INT64_MAX / 32) return LB_DECLINED;
    t->order = LB_ORDER_DOWN;
    t->zero_order = LB_ORDER_ROWS;
    t->columns = q->dim[0] * 32 / t->bits;
    t->group_size = size_of_groups(t, s);
    return lb_affine_group(cx, f, t, g);
}

const lb_file_layout lb_file_layout_gptq = {
    .name = "gptq", .find = find_gptq, LB_AFFINE_TENSORS};

/* ---- AWQ ----------------------------------------------------------------- */

static lb_verdict find_awq(lb_ctx *cx, lb_file *f, const lb_tensor *q,
                           lb_group *g)
{
    const lb_settings *s = NULL;
    lb_affine_tensors *t = module_of(cx, f, q, &s);
    if (!t) return lb_error_status(cx) ? LB_FAILED : LB_DECLINED;
    const char *version = lb_setting_text(s, "version");
    if (q->dim[1] != t->rows / 8 || t->rows % 8 || t->group) return LB_DECLINED;
    if (*version && strcmp(version, "gemm") != 0 &&
        strcmp(version, "GEMM") != 0)
        return LB_DECLINED;
    t->bits = 4;
    t->order = t->zero_order = LB_ORDER_AWQ;
    t->columns = q->dim[0];
    t->group_size = size_of_groups(t, s);
    return lb_affine_group(cx, f, t, g);
}

const lb_file_layout lb_file_layout_awq = {
    .name = "awq", .find = find_awq, LB_AFFINE_TENSORS};
