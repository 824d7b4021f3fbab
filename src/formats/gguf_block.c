/* gguf_block.c - layout, encoding and decoding of GGUF block types; see
 * gguf_block.h. */
#include "formats/gguf_block.h"

#include <string.h>

#include "formats/config.h"

enum { MOST = 256 }; /* maximum values in a block of any type */

/* ---- layout ------------------------------------------------------------- */

static bool check(lb_ctx *cx, const lb_gguf_block *type, const lb_quant *q)
{
    if (q->compat != LB_COMPAT_NATIVE)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "%s: compat is %s, but GGUF types only support compat "
                       "%s",
                       q->format->name, lb_compat_name(q->compat),
                       lb_compat_name(LB_COMPAT_NATIVE));
    if (q->blocks == LB_BLOCKS_FLAT)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "%s: blocks cannot cross rows in this format",
                       q->format->name);
    if (q->block_size && q->block_size != type->len)
        return lb_fail(cx, LB_E_ARG,
                       "%s: block_size is %lld, but blocks have %d elements",
                       q->format->name, (long long)q->block_size, type->len);
    return lb_config_unused(cx, q, "axis", lb_config_flag(q->axes.n)) &&
           lb_config_unused(cx, q, "scale", lb_config_scale(q->scale)) &&
           lb_config_unused(cx, q, "threshold",
                            lb_config_threshold(q->threshold)) &&
           lb_config_unused(cx, q, "meaning", lb_config_meaning(q->meaning)) &&
           lb_config_unused(cx, q, "decode", lb_config_decode(q->decode)) &&
           lb_config_unused(cx, q, "center", lb_config_flag(q->center));
}

bool lb_gguf_layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                    const lb_shape *shape, lb_layout *to)
{
    (void)from;
    const lb_gguf_block *type = q->format->type;
    if (!check(cx, type, q) || !lb_config_float(cx, q, to->dtype)) return false;
    if (!shape->rank) to->stored = (lb_shape){.rank = 1, .dim = {1}};
    lb_config_fold(&to->stored);
    lb_part_rows(&to->part[0], &to->stored, type->len);
    to->part[0].own = type->size;
    to->elem[0] = LB_U8;
    to->run = type->len;
    return true;
}

/* ---- runs --------------------------------------------------------------- */

void lb_gguf_encode_run(const lb_cpu *cpu, const lb_quant *q, lb_store *to,
                        int64_t first, int64_t n, const float *x)
{
    const lb_gguf_block *type = q->format->type;
    lb_gguf_encoder *encode = lb_gguf_encoder_for(cpu, type->encode);
    const int64_t blocks = n / type->len, rest = n % type->len;
    float filled[MOST] = {0};
    if (n <= 0) return;
    uint8_t *at = (uint8_t *)lb_part_place(to, 0) + lb_part_entry(to, 0, first);
    encode(x, blocks, at);
    if (!rest) return;
    memcpy(filled, x + (n - rest), (size_t)rest * sizeof *x);
    encode(filled, 1, at + blocks * type->size);
}

const uint8_t *lb_gguf_block_at(const lb_store *s, int64_t e)
{
    return (const uint8_t *)lb_part_bytes(s, 0) + lb_part_entry(s, 0, e);
}

/* The block of an element, and in *lo its index in the block. */
static const uint8_t *block_of(const lb_store *s, int64_t e, int *lo)
{
    const lb_gguf_block *type = s->fmt->type;
    const int last = s->shape.rank - 1;
    const int64_t column = last < 0 ? 0 : e % s->shape.dim[last];
    *lo = (int)(column % type->len);
    return lb_gguf_block_at(s, e);
}

/* Values [lo, lo + n) of consecutive blocks, which are decoded as a whole. */
static void decode_blocks(const lb_cpu *cpu, const lb_gguf_block *type,
                          const uint8_t *from, int64_t lo, int64_t n, float *w)
{
    lb_gguf_decoder *decode = type->decoder(lb_gguf_decoders_for(cpu));
    float block[MOST];
    while (n > 0) {
        const int64_t whole = lo ? 0 : n / type->len;
        int64_t m = whole * type->len;
        if (whole) {
            decode(from, whole, w);
        } else {
            m = n < type->len - lo ? n : type->len - lo;
            decode(from, 1, block);
            memcpy(w, block + lo, (size_t)m * sizeof *w);
        }
        from += (whole ? whole : 1) * type->size;
        w += m;
        n -= m;
        lo = 0;
    }
}

/* The blocks of a row are contiguous. */
void lb_gguf_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                    int64_t n, void *out)
{
    const lb_gguf_block *type = s->fmt->type;
    const lb_decode_kernel *kernel = lb_decode_kernel_for(cpu);
    float *w = out;
    int lo;
    if (n <= 0) return;
    const uint8_t *from = block_of(s, first, &lo);
    if (type->decoder) {
        decode_blocks(cpu, type, from, lo, n, w);
        return;
    }
    while (n > 0) {
        const int64_t left = type->len - lo, whole = n / type->len;
        if (lo == 0 && whole && kernel != &lb_decode_ref) {
            type->decode_whole(kernel, from, whole, w);
            from += whole * type->size;
            w += whole * type->len;
            n -= whole * type->len;
            continue;
        }
        const int m = (int)(n < left ? n : left);
        type->decode(from, lo, m, w);
        from += type->size;
        w += m;
        n -= m;
        lo = 0;
    }
}

bool lb_gguf_unpack(const lb_cpu *cpu, const lb_store *s, int64_t first,
                    int64_t n, lb_sink to)
{
    const lb_gguf_block *type = s->fmt->type;
    int lo;
    if (n <= 0 || n % type->len) return false;
    const uint8_t *from = block_of(s, first, &lo);
    return lo == 0 &&
           type->unpack(lb_unpack_kernel_for(cpu), from, n / type->len, to);
}

double lb_gguf_bound(const lb_quant *q)
{
    const double bound = ((const lb_gguf_block *)q->format->type)->bound;
    return bound + (1 + bound) * lb_config_unit(q);
}
