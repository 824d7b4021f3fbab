/* config_of.c - the configuration that an array was, or could have been,
 * quantized with.
 *
 * An array knows the layout of its parts, not the configuration. Few members of
 * a configuration affect the layout, so all their combinations are tried, with
 * block sizes and axes taken from the parts table, until the format returns the
 * same layout. Explicit settings come before defaults, those that the array
 * remembers (lb_made) before others.
 */
#include <string.h>

#include "core/core.h"

extern const lb_format *const lb_scale_format;

/* A layout to compare with: of the store, or of a view as a box. */
typedef struct {
    const lb_array *a;
    const lb_store *s;
    lb_shape shape;             /* stored */
    lb_part part[LB_MAX_PARTS]; /* with g by axis of shape */
} config_target;

static bool is_whole(const lb_array *a)
{
    return lb_is_row_major(a) && a->offset == 0 &&
           lb_shape_size(&a->shape) == lb_shape_size(&a->store->shape);
}

/* The view's own axes: the layout that an array of its shape would have if it
 * were stored as it is. False if it cuts through blocks or repeats elements. */
static bool target_of_view(const lb_array *a, config_target *t)
{
    lb_box b;
    *t = (config_target){.a = a, .s = a->store, .shape = a->shape};
    if (!lb_as_box(a, &b)) return false;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        lb_array cut;
        if (!b.part[p].a) continue;
        if (!lb_box_cut(&b, p, &cut)) return false;
        t->part[p] = b.part[p];
        for (int k = 0; k < a->shape.rank; k++)
            t->part[p].g[k] = b.axis[k] < 0 ? 1 : b.part[p].g[b.axis[k]];
    }
    return true;
}

static config_target target_of_store(const lb_array *a)
{
    config_target t = {.a = a, .s = a->store, .shape = a->store->shape};
    memcpy(t.part, a->store->part, sizeof t.part);
    return t;
}

/* ---- comparing ----------------------------------------------------------- */

/* Elements of an axis of n that share an entry. */
static int64_t span_of(int64_t g, int64_t n)
{
    return g && g < n ? g : n;
}

/* Of an empty axis the number of entries shows whether it is shared. */
static bool same_entries(const lb_part *x, const lb_part *y, const lb_shape *s)
{
    const lb_shape nx = lb_part_shape(s, x), ny = lb_part_shape(s, y);
    for (int k = 0; k < s->rank; k++)
        if (span_of(x->g[k], s->dim[k]) != span_of(y->g[k], s->dim[k]))
            return false;
    return lb_shape_equal(&nx, &ny) && x->own == y->own;
}

static bool is_packed(const lb_array *a)
{
    return a->store->data == NULL;
}

static bool same_layout(const config_target *t, const lb_layout *l)
{
    if (!lb_shape_equal(&l->stored, &t->shape) || l->dtype != t->a->dtype ||
        l->meaning != t->s->meaning)
        return false;
    for (int p = 0; p < LB_MAX_PARTS && t->s->fmt->part[p].name; p++) {
        const lb_array *part = t->part[p].a;
        if (!part != !l->elem[p]) return false;
        if (!part) continue;
        if (!same_entries(&t->part[p], &l->part[p], &t->shape)) return false;
        if (l->as[p] ? part->store->fmt != l->as[p] : part->dtype != l->elem[p])
            return false;
    }
    return true;
}

/* ---- candidates ---------------------------------------------------------- */

/* The part that shows what shares a scale: the scale, else the first. */
static const lb_part *scale_of(const config_target *t)
{
    for (int p = 0; p < LB_MAX_PARTS && t->s->fmt->part[p].name; p++)
        if (t->s->fmt->part[p].scale && t->part[p].a) return &t->part[p];
    return &t->part[0];
}

static lb_axes shared_axes(const config_target *t)
{
    const lb_part *scale = scale_of(t);
    lb_axes axes = {0};
    if (t->shape.rank != t->a->shape.rank) return axes;
    for (int k = 0; k < t->shape.rank; k++)
        if (!scale->g[k]) axes.axis[axes.n++] = k;
    return axes;
}

/* Digit `which % n` of a number; the rest stays. */
static int digit(int *which, int n)
{
    const int d = *which % n;
    *which /= n;
    return d;
}

/* Combination `which`; false past the last. */
static bool candidate(const config_target *t, int which, lb_quant *q)
{
    static const lb_scale scales[] = {LB_SCALE_NONE, LB_SCALE_TENSOR,
                                      LB_SCALE_ROW, LB_SCALE_BLOCK,
                                      LB_SCALE_DEFAULT};
    static const lb_blocks blocks[] = {LB_BLOCKS_IN_ROWS, LB_BLOCKS_FLAT,
                                       LB_BLOCKS_DEFAULT};
    const lb_made *made = &t->s->made;
    const int last = t->shape.rank - 1;
    const lb_part *scale = scale_of(t);
    const int64_t block = last < 0 ? 0 : scale->g[last];
    *q = (lb_quant){
        .format = t->s->fmt,
        .dtype = t->a->dtype,
        .reference = made->reference,
        .clip_gradient = made->clip_gradient,
    };
    q->scale = scales[digit(&which, 5)];
    if (!digit(&which, 2)) q->block_size = block;
    if (!digit(&which, 2)) q->axes = shared_axes(t);
    q->blocks = blocks[digit(&which, 3)];
    if (!digit(&which, 2)) q->meaning = (lb_meaning)t->s->meaning;
    q->decode = digit(&which, 2) ? LB_DECODE_POLY : LB_DECODE_TABLE;
    q->center = digit(&which, 2);
    if (!digit(&which, 2)) q->threshold = made->threshold;
    const int compat = digit(&which, LB_COMPAT_BNB_CPU + 1);
    q->compat =
        (lb_compat)((compat + (int)made->compat) % (LB_COMPAT_BNB_CPU + 1));
    return which == 0;
}

static bool find(const config_target *t, lb_quant *q)
{
    lb_layout l;
    for (int which = 0; candidate(t, which, q); which++)
        if (lb_layout_of(NULL, q, t->a->dtype, &t->a->shape, &l) &&
            same_layout(t, &l))
            return true;
    return false;
}

/* ---- settings that the layout does not show ------------------------------ */

static bool same_elements(lb_ctx *cx, const lb_array *x, const lb_array *y)
{
    enum { RUN = 64 };
    const int64_t size = lb_shape_size(&x->shape);
    if (size != lb_shape_size(&y->shape)) return false;
    for (int64_t i = 0; i < size; i += RUN) {
        double v[RUN], w[RUN];
        const int64_t n = lb_min_i64(RUN, size - i);
        lb_tile_read_flat(&cx->cpu, x, i, n, LB_C_F64, v);
        lb_tile_read_flat(&cx->cpu, y, i, n, LB_C_F64, w);
        if (memcmp(v, w, (size_t)n * sizeof *v) != 0) return false;
    }
    return true;
}

/* Parts that do not depend on elements (decoding tables) must be those that the
 * format prepares. */
static bool same_tables(lb_ctx *cx, const config_target *t, const lb_quant *q)
{
    bool any = false, same = true;
    for (int p = 1; p < LB_MAX_PARTS; p++)
        any = any || (t->part[p].a && t->part[p].own);
    if (!any) return true;
    lb_layout l;
    lb_shape one = t->a->shape;
    for (int k = 0; k < one.rank; k++)
        one.dim[k] = 1;
    lb_enter(cx);
    lb_array *a = lb_layout_of(cx, q, t->a->dtype, &one, &l)
                      ? lb_layout_alloc(cx, q, &l, &one)
                      : NULL;
    if (a && q->format->prepare) q->format->prepare(q, a->store);
    for (int p = 1; p < LB_MAX_PARTS && a && same; p++)
        if (t->part[p].a && t->part[p].own)
            same = same_elements(cx, a->store->part[p].a, t->part[p].a);
    lb_leave(cx);
    return a && same;
}

/* Scales that are quantized, but not by the format itself, must be so as
 * lb_quantize_scales does it. */
static bool nested(const config_target *t, const lb_quant *q, bool *any,
                   bool *same)
{
    lb_layout l;
    if (!lb_layout_of(NULL, q, t->a->dtype, &t->a->shape, &l)) return false;
    *any = false;
    *same = true;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        const lb_array *part = t->s->part[p].a;
        if (!part || !is_packed(part) || l.as[p]) continue;
        *any = true;
        *same = *same && t->s->fmt->part[p].scale &&
                part->store->fmt == lb_scale_format;
    }
    return *same;
}

/* ---- the public function ------------------------------------------------- */

static bool check(lb_ctx *cx, const lb_array *a)
{
    if (!a) return lb_fail(cx, LB_E_NULL, "config_of: the array is NULL");
    if (!lb_has_elements(cx, "config_of", a)) return false;
    if (!is_packed(a))
        return lb_fail(
            cx, LB_E_ARG, "config_of: %s%s is %s: it has not been quantized",
            lb_dtype_name(a->dtype), LB_SHOW(&a->shape), lb_format_of(a));
    return a->store->fmt->layout ||
           lb_fail(cx, LB_E_UNSUPPORTED,
                   "config_of: lb_quantize cannot make %s, whose arrays are "
                   "built from parts",
                   lb_format_of(a));
}

/* Describes the first scale, to say why nothing fits. */
static bool no_config(lb_ctx *cx, const lb_array *a, const config_target *t)
{
    const lb_part *scale = scale_of(t);
    lb_shape per = t->shape;
    for (int k = 0; k < per.rank; k++)
        per.dim[k] = span_of(scale->g[k], per.dim[k]);
    return lb_fail(cx, LB_E_UNSUPPORTED,
                   "config_of: no configuration of %s makes this layout of "
                   "%s%s: stored as %s, one %s entry per %s elements. Blocks "
                   "along another axis than the last, and scales of another "
                   "dtype, only come from views and files: lb_materialize it "
                   "and quantize again",
                   t->s->fmt->name, lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                   LB_SHOW(&t->shape), lb_dtype_name(scale->a->dtype),
                   LB_SHOW(&per));
}

static bool write_config(const lb_quant *q, bool double_quant,
                         lb_quant_config *to)
{
    *to = (lb_quant_config){
        .struct_size = sizeof *to,
        .format = q->format->name,
        .block_size = q->block_size,
        .axes = q->axes,
        .dtype = q->dtype,
        .reference = q->reference,
        .compat = q->compat,
        .decode = q->decode,
        .scale = q->scale,
        .meaning = q->meaning,
        .threshold = q->threshold,
        .blocks = q->blocks,
        .double_quant = double_quant,
        .center = q->center,
        .clip_gradient = q->clip_gradient,
    };
    return true;
}

bool lb_config_of(lb_ctx *cx, lb_array *a, lb_quant_config *config)
{
    config_target t;
    lb_quant q;
    bool any, same;
    if (!cx || !config)
        return lb_fail(cx, LB_E_NULL, "config_of: %s is NULL",
                       cx ? "config" : "the context");
    if (a && a->store->sharding) a = a->store->part[0].a;
    if (!check(cx, a)) return false;
    bool found = is_whole(a);
    if (found) {
        t = target_of_store(a);
        found = find(&t, &q);
    }
    if (!found) {
        const bool box = target_of_view(a, &t);
        if (!box && !is_whole(a))
            return lb_fail(cx, LB_E_UNSUPPORTED,
                           "config_of: this view of %s %s, with shape %s, cuts "
                           "through blocks, or repeats, reverses or skips "
                           "elements (lb_materialize and quantize again)",
                           a->store->fmt->name, LB_SHOW(&a->store->shape),
                           LB_SHOW(&a->shape));
        if (!box) t = target_of_store(a);
        if (!box || !find(&t, &q)) return no_config(cx, a, &t);
    }
    if (!nested(&t, &q, &any, &same) || (any && !is_whole(a)))
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "config_of: parts of this %s%s are quantized, but not "
                       "as lb_quantize_scales does it for this shape",
                       t.s->fmt->name, LB_SHOW(&a->shape));
    if (!same_tables(cx, &t, &q))
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "config_of: this %s%s has a decoding table of its own",
                       t.s->fmt->name, LB_SHOW(&a->shape));
    return write_config(&q, any, config);
}
