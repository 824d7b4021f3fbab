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
int64_t lb_tile_size(const lb_described *d, const lb_described_part *scale)
{
    enum { USUAL = 128 };
    const int64_t *g = scale->table.g, *dim = d->shape.dim;
    int64_t tile = lb_max_i64(g[0], g[1]);
    if (!tile && dim[0] <= USUAL && dim[1] <= USUAL) tile = USUAL;
    for (int k = 0; k < 2; k++)
        if (g[k] != tile && (g[k] || dim[k] > tile)) return -1;
    return tile == 1 ? -1 : tile;
}

/* Elements of a tile along both axes; 0: one scale. -1: other scales. */
static int64_t tile_of(const lb_described *d)
{
    const lb_described_part *scale = lb_described_part_of(d, "scale");
    if (strcmp(d->format, "fp8_e4m3") != 0 || d->shape.rank != 2 ||
        d->meaning || !scale || scale->array)
        return -1;
    return lb_tile_size(d, scale);
}

lb_verdict lb_fp8_plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    size_t n;
    const lb_shape *shape = &item->shape;
    const int64_t tile = tile_of(item->described);
    if (tile < 0 || !lb_name_ends(item->name, ".weight", &n))
        return LB_DECLINED;
    const lb_dtype elem = lb_described_part_of(item->described, "scale")->elem;
    const lb_shape scale = tile ? LB_SHAPE(lb_ceil_div(shape->dim[0], tile),
                                           lb_ceil_div(shape->dim[1], tile))
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

/* Only arrays of this format have such codes. */
bool lb_fp8_moves(lb_ctx *cx, const lb_moving *m, lb_move_plan *to)
{
    (void)cx;
    const lb_quant_config c = {.format = "fp8_e4m3",
                               .block_size = m->block_size};
    *to = (lb_move_plan){.target.config = c, .encode = c};
    return true;
}

void lb_fp8_configure(lb_bytes *to, const lb_loading *how)
{
    const int64_t tile = tile_of(how->packed[0].described);
    lb_bytes_text(to, "{\n    \"quant_method\": \"fp8\",\n"
                      "    \"fmt\": \"e4m3\",\n"
                      "    \"activation_scheme\": \"dynamic\",\n"
                      "    \"weight_block_size\": ");
    if (tile)
        lb_bytes_text(to, "[%lld, %lld],\n", (long long)tile, (long long)tile);
    else
        lb_bytes_text(to, "null,\n");
    lb_bytes_text(to, "    \"modules_to_not_convert\": ");
    lb_put_texts(to, how->plain ? NULL : how->skip, how->n_skip);
    lb_bytes_text(to, "\n  }");
}
