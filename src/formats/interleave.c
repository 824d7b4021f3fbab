/* interleave.c - the layout of signs in eformer and in BitNet files: four rows
 * per row of bytes, 2 bits each, for ternary and binary alike.
 *
 *   byte row i of R = ceil(rows/4):  bits 0-1  row i      bits 4-5  row i+2R
 *                                    bits 2-3  row i+R    bits 6-7  row i+3R
 *
 * A row is everything at one index of the first axis: an element of a vector; a
 * scalar is one row. The stored bits are code + 1; those of missing rows are 0
 * (as transformers writes them), and are ignored when reading.
 */
#include "formats/config.h"
#include "formats/signs.h"

typedef struct {
    lb_shape packed;
    int64_t rows, cols; /* of the unpacked array */
} geometry;

static geometry geometry_of(const lb_shape *shape)
{
    geometry g = {.packed = *shape, .rows = 1, .cols = 1};
    if (!shape->rank) g.packed = (lb_shape){1, {1}};
    if (shape->rank) g.rows = shape->dim[0];
    for (int k = 1; k < shape->rank; k++)
        g.cols *= shape->dim[k];
    g.packed.dim[0] = g.rows / 4 + (g.rows % 4 != 0);
    return g;
}

static lb_array *unpack(lb_ctx *cx, const char *name, const lb_shape *shape,
                        lb_array *packed)
{
    const geometry g = geometry_of(shape);
    if (packed->dtype != LB_U8 || !lb_shape_equal(&packed->shape, &g.packed)) {
        lb_fail(cx, packed->dtype != LB_U8 ? LB_E_DTYPE : LB_E_SHAPE,
                "%s: packed is %s%s, not u8%s as needed for shape %s", name,
                lb_dtype_name(packed->dtype), LB_SHOW(&packed->shape),
                LB_SHOW(&g.packed), LB_SHOW(shape));
        return NULL;
    }
    packed = lb_materialize(cx, packed);
    lb_array *codes = packed ? lb_dense(cx, LB_I8, shape) : NULL;
    if (!codes) return NULL;
    const uint8_t *from = packed->store->data;
    int8_t *to = codes->store->data;
    const int64_t R = g.packed.dim[0];
    for (int64_t r = 0; r < g.rows; r++)
        for (int64_t c = 0; c < g.cols; c++)
            to[r * g.cols + c] =
                (int8_t)((from[r % R * g.cols + c] >> r / R * 2 & 3) - 1);
    return codes;
}

/* A single scale is accepted in any shape. */
static lb_array *given_scale(lb_ctx *cx, lb_array *scale, int rank)
{
    lb_shape ones = {.rank = rank};
    for (int k = 0; k < rank; k++)
        ones.dim[k] = 1;
    return lb_size(scale) == 1 ? lb_reshape(cx, scale, ones) : scale;
}

lb_array *lb_interleave_load(lb_ctx *cx, const lb_quant *q,
                             const lb_shape *shape, lb_array *const *part)
{
    lb_quant_config config = lb_config_from(q);
    lb_array *codes = unpack(cx, config.format, shape, part[LB_SIGNS_CODES]);
    lb_array *scale = part[LB_SIGNS_SCALE];
    if (!codes) return NULL;
    /* eformer has no scales, but none of its arithmetic is used here. */
    if (config.compat == LB_COMPAT_EFORMER && scale)
        config.compat = LB_COMPAT_NATIVE;
    if (!config.scale) config.scale = scale ? LB_SCALE_TENSOR : LB_SCALE_NONE;
    if (scale && !(scale = given_scale(cx, scale, shape->rank))) return NULL;
    return lb_from_codes(cx, &config, codes, scale);
}

static lb_array *pack(lb_ctx *cx, lb_array *a)
{
    const geometry g = geometry_of(&a->shape);
    lb_array *packed = lb_dense(cx, LB_U8, &g.packed);
    const lb_array *codes = packed ? lb_codes(cx, a) : NULL;
    if (!codes) return NULL;
    const int8_t *from = codes->store->data;
    uint8_t *to = packed->store->data;
    const int64_t R = g.packed.dim[0];
    for (int64_t i = 0; i < R * g.cols; i++)
        to[i] = 0;
    for (int64_t r = 0; r < g.rows; r++)
        for (int64_t c = 0; c < g.cols; c++) {
            const int bits = (from[r * g.cols + c] + 1) << r / R * 2;
            to[r % R * g.cols + c] |= (uint8_t)bits;
        }
    return packed;
}

lb_array *lb_interleave_save(lb_ctx *cx, lb_array *a, int part)
{
    lb_array *scale = a->store->part[LB_SIGNS_SCALE].a;
    if (part == LB_SIGNS_CODES) return pack(cx, a);
    if (!scale) return NULL;
    if (lb_size(scale) == 1)
        return lb_materialize(cx, lb_reshape(cx, scale, (lb_shape){1, {1}}));
    if (lb_shape_equal(&a->shape, &a->store->shape))
        return lb_materialize(cx, scale);
    lb_fail(cx, LB_E_UNSUPPORTED, "%s: scales %s have shape %s, not %s",
            a->store->fmt->name, LB_SHOW(&scale->shape),
            LB_SHOW(&a->store->shape), LB_SHOW(&a->shape));
    return NULL;
}
