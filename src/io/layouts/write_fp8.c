/* write_fp8.c - writes FP8 as DeepSeek and transformers store it:
 *
 *     P.weight            F8_E4M3 (N, K)
 *     P.weight_scale_inv  F32 (ceil(N / 128), ceil(K / 128)), or of the tensor;
 *                         BF16 and F16 scales of other checkpoints stay so
 *
 * w = code * scale, whatever the name says.
 */
#include <string.h>

#include "core/core.h"
#include "io/layouts/writers.h"

/* An axis that is not longer than a tile shares its scale. */
bool lb_tile_size(const lb_described *d, const lb_described_part *scale,
                  int64_t tile[2])
{
    enum { USUAL = 128 };
    const int64_t *g = scale->table.g, *dim = d->shape.dim;
    int64_t most = lb_max_i64(g[0], g[1]);
    if (!most && dim[0] <= USUAL && dim[1] <= USUAL) most = USUAL;
    for (int k = 0; k < 2; k++) {
        tile[k] = g[k] ? g[k] : most;
        if (most && ((!g[k] && dim[k] > most) || tile[k] == 1)) return false;
    }
    return true;
}

static bool tile_of(const lb_described *d, int64_t tile[2])
{
    const lb_described_part *scale = lb_described_part_of(d, "scale");
    return strcmp(d->format, "fp8_e4m3") == 0 && d->shape.rank == 2 &&
           !d->meaning && scale && !scale->array &&
           lb_tile_size(d, scale, tile);
}

lb_verdict lb_fp8_plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    size_t n;
    const lb_shape *shape = &item->shape;
    int64_t tile[2];
    if (!tile_of(item->described, tile) ||
        !lb_name_ends(item->name, ".weight", &n))
        return LB_DECLINED;
    const lb_dtype elem = lb_described_part_of(item->described, "scale")->elem;
    const lb_shape scale = *tile ? LB_SHAPE(lb_ceil_div(shape->dim[0], tile[0]),
                                            lb_ceil_div(shape->dim[1], tile[1]))
                                 : LB_SHAPE(1);
    const bool ok = lb_saver_tensor(cx, s, item, item->name, n, ".weight",
                                    "F8_E4M3", LB_NO_DTYPE, shape) &&
                    lb_saver_tensor(cx, s, item, item->name, n,
                                    ".weight_scale_inv", NULL, elem, &scale);
    return ok ? LB_DONE : LB_FAILED;
}

lb_array *lb_fp8_part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    (void)item;
    return lb_component(cx, a, k ? "scale" : "codes");
}

/* ---- other scales -------------------------------------------------------- */

/* Index of the part "scale" of small floats. */
enum { SCALE = 1 };

const char *lb_scale_format_of(const lb_array *a)
{
    const lb_array *scale = a->store->part[SCALE].a;
    return scale && !scale->store->data ? scale->store->fmt->name : "";
}

/* a with another array as scales. */
static lb_array *with_scales(lb_ctx *cx, lb_array *a, lb_array *scale)
{
    lb_part part[LB_MAX_PARTS];
    const lb_store *s = a->store;
    memcpy(part, s->part, sizeof part);
    part[SCALE].a = scale;
    return scale ? lb_make(cx, s->fmt, a->dtype, s->meaning, &s->shape, part)
                 : NULL;
}

lb_array *lb_plain_scales(lb_ctx *cx, lb_array *a)
{
    return with_scales(cx, a, lb_materialize(cx, a->store->part[SCALE].a));
}

lb_array *lb_infinite_255(lb_ctx *cx, lb_array *a)
{
    enum { INFINITY_255 = 1 }; /* meaning of format e8m0 */
    const lb_store *s = a->store->part[SCALE].a->store;
    return with_scales(
        cx, a, lb_make(cx, s->fmt, LB_F32, INFINITY_255, &s->shape, s->part));
}

/* Only arrays of this format have such codes. */
bool lb_fp8_moves(lb_ctx *cx, const lb_moving *m, lb_move_plan *to)
{
    (void)cx;
    const lb_quant_config c = {.format = "fp8_e4m3",
                               .block_size = m->block_size};
    *to = (lb_move_plan){.target.config = c, .encode = c};
    if (strcmp(m->a->store->fmt->name, c.format) == 0 &&
        strcmp(lb_scale_format_of(m->a), "e8m0") == 0)
        to->remake = lb_plain_scales;
    return true;
}

void lb_fp8_configure(lb_bytes *to, const lb_loading *how)
{
    int64_t tile[2] = {0, 0};
    tile_of(how->packed[0].described, tile);
    lb_bytes_text(to, "{\n    \"quant_method\": \"fp8\",\n"
                      "    \"fmt\": \"e4m3\",\n"
                      "    \"activation_scheme\": \"dynamic\",\n"
                      "    \"weight_block_size\": ");
    if (*tile)
        lb_bytes_text(to, "[%lld, %lld],\n", (long long)tile[0],
                      (long long)tile[1]);
    else
        lb_bytes_text(to, "null,\n");
    lb_bytes_text(to, "    \"modules_to_not_convert\": ");
    lb_put_texts(to, how->plain ? NULL : how->skip, how->n_skip);
    lb_bytes_text(to, "\n  }");
}
