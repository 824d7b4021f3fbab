/* write_gptq.c - writes GPTQ's layout, version 2:
 *
 *     P.qweight  I32 (K * bits / 32, N): streams of bits along K
 *     P.qzeros   I32 (K / group, N * bits / 32): streams along N
 *     P.scales   F16 (K / group, N)
 *     P.g_idx    I32 (K): the group of each input
 *
 * w = scale * (code - zero). Version 1 stores zero - 1, which cannot express 0.
 */
#include <string.h>

#include "core/core.h"
#include "io/layouts/writers.h"

enum { QWEIGHT, QZEROS, SCALES, G_IDX };
enum { ZERO = 2 }; /* part */

static bool is_bits(int bits)
{
    return bits == 2 || bits == 3 || bits == 4 || bits == 8;
}

/* Loaders convert other scales to f16. */
lb_verdict lb_gptq_plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    size_t n;
    lb_packed_facts f;
    const lb_described *d = item->described;
    if (!lb_packed_facts_of(d, &f) || d->shape.rank != 2 || f.bias ||
        f.listed || !is_bits(f.bits) ||
        (f.scale != LB_F16 && f.scale != LB_BF16) || f.row * f.bits % 32 ||
        f.rows * f.bits % 32 || !lb_name_ends(item->name, ".weight", &n))
        return LB_DECLINED;
    const lb_shape qweight = LB_SHAPE(f.row * f.bits / 32, f.rows);
    const lb_shape qzeros = LB_SHAPE(f.groups, f.rows * f.bits / 32);
    const lb_shape scales = LB_SHAPE(f.groups, f.rows), g_idx = LB_SHAPE(f.row);
    const bool ok = lb_saver_tensor(cx, s, item, item->name, n, ".qweight",
                                    NULL, LB_I32, &qweight) &&
                    lb_saver_tensor(cx, s, item, item->name, n, ".qzeros", NULL,
                                    LB_I32, &qzeros) &&
                    lb_saver_tensor(cx, s, item, item->name, n, ".scales", NULL,
                                    f.scale, &scales) &&
                    lb_saver_tensor(cx, s, item, item->name, n, ".g_idx", NULL,
                                    LB_I32, &g_idx);
    return ok ? LB_DONE : LB_FAILED;
}

static lb_array *groups_of(lb_ctx *cx, const lb_packed_facts *f)
{
    const lb_shape shape = LB_SHAPE(f->row);
    lb_array *a = lb_dense(cx, LB_I32, &shape);
    int32_t *to = a ? a->store->data : NULL;
    for (int64_t k = 0; to && k < f->row; k++)
        to[k] = (int32_t)(k / f->group);
    return a;
}

lb_array *lb_gptq_part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    lb_packed_facts f;
    lb_packed_facts_of(item->described, &f);
    switch (k) {
    case QWEIGHT:
        return lb_transpose(cx, lb_packed_words(cx, a), NULL);
    case QZEROS:
        return lb_transpose(cx, lb_packed_zeros(cx, a, &f), NULL);
    case SCALES:
        return lb_transpose(cx, lb_packed_entries(cx, a, "scale", &f, f.scale),
                            NULL);
    default:
        return groups_of(cx, &f);
    }
}

bool lb_gptq_moves(lb_ctx *cx, const lb_moving *m, lb_move_plan *to)
{
    (void)cx;
    int bits = m->scheme ? lb_packed_bits(m) : 4;
    const lb_dtype scale = lb_packed_scale(m) == LB_BF16 ? LB_BF16 : LB_F16;
    if (!bits) bits = 4;
    while (!is_bits(bits))
        bits++;
    lb_packed_target(m, bits,
                     m->scheme || m->block_size ? lb_packed_group(m) : 128,
                     scale, to);
    if (!lb_packed_symmetric(m, bits)) to->target.elem[ZERO] = LB_U8;
    to->target.zero_most = (1 << bits) - 1;
    return true;
}

static bool is_symmetric(const lb_loading *how)
{
    for (int64_t i = 0; i < how->n_packed; i++)
        if (lb_described_part_of(how->packed[i].described, "zero"))
            return false;
    return true;
}

static void put_settings(lb_bytes *to, const lb_packed_facts *f)
{
    lb_bytes_text(to, "\"bits\": %d,\n    \"group_size\": %lld", f->bits,
                  (long long)(f->group == f->row ? -1 : f->group));
}

/* Modules with other settings, and those that are not quantized, by regular
 * expressions. */
static void put_dynamic(lb_bytes *to, const lb_loading *how,
                        const lb_packed_facts *first)
{
    bool any = false;
    for (int64_t i = 0; i < how->n_packed; i++) {
        lb_packed_facts f;
        lb_packed_facts_of(how->packed[i].described, &f);
        if (f.bits == first->bits && f.group == first->group) continue;
        lb_bytes_text(to, any ? ",\n      " : ",\n    \"dynamic\": {\n      ");
        lb_put_pattern(to, "+:", how->packed[i].name);
        lb_bytes_text(to, ": {");
        put_settings(to, &f);
        lb_bytes_text(to, "}");
        any = true;
    }
    for (int64_t i = 0; !how->plain && i < how->n_skip; i++) {
        lb_bytes_text(to, any ? ",\n      " : ",\n    \"dynamic\": {\n      ");
        lb_put_pattern(to, "-:", how->skip[i]);
        lb_bytes_text(to, ": {}");
        any = true;
    }
    if (any) lb_bytes_text(to, "\n    }");
}

static bool has_head(const lb_loading *how)
{
    for (int64_t i = 0; i < how->n_packed; i++)
        if (lb_role_is_head(lb_name_role(how->packed[i].name))) return true;
    return false;
}

void lb_gptq_configure(lb_bytes *to, const lb_loading *how)
{
    lb_packed_facts f;
    lb_packed_facts_of(how->packed[0].described, &f);
    lb_bytes_text(to, "{\n    \"quant_method\": \"gptq\",\n    ");
    put_settings(to, &f);
    lb_bytes_text(to,
                  ",\n    \"desc_act\": false,\n    \"sym\": %s,\n"
                  "    \"lm_head\": %s,\n"
                  "    \"checkpoint_format\": \"gptq_v2\",\n"
                  "    \"pack_dtype\": \"int32\"",
                  is_symmetric(how) ? "true" : "false",
                  has_head(how) ? "true" : "false");
    put_dynamic(to, how, &f);
    lb_bytes_text(to, "\n  }");
}
