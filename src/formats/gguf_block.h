/* gguf_block.h - common code of the GGUF block types.
 *
 * A row is divided into blocks of `len` values, each stored in `size` bytes
 * that include an f16 scale d. The only part holds these bytes:
 *
 *     stored (..., n)  ->  blocks u8 (..., ceil(n / len), size)
 *
 * The last block of a row may be short: it is encoded as if zeros followed.
 * Bytes are those of ggml's reference quantizers (kernels/gguf_ref.h), and
 * values those of its decoders: code * f32(d), in f32.
 */
#ifndef LB_GGUF_BLOCK_H
#define LB_GGUF_BLOCK_H

#include "formats/gguf_recode.h"
#include "kernels/convert.h"
#include "kernels/decode.h"
#include "kernels/gguf_decode.h"
#include "kernels/gguf_integers.h"
#include "kernels/gguf_ref.h"
#include "kernels/unpack.h"
#include "lowbit_ext.h"

typedef struct lb_gguf_block {
    int len;  /* values */
    int size; /* bytes */
    const lb_gguf_encoders *encode;
    /* Values [lo, lo + n) of a block. */
    void (*decode)(const uint8_t *from, int lo, int n, float *out);
    /* n whole blocks; a faster optional kernel. */
    void (*decode_whole)(const lb_decode_kernel *, const uint8_t *from,
                         int64_t n, float *out);
    bool (*unpack)(const lb_unpack_kernel *, const uint8_t *from, int64_t n,
                   lb_sink to);
    double bound; /* as in lb_format, before rounding to the logical dtype */
    /* Instead of these functions, for types without an encoder:
     * decodes whole blocks. */
    lb_gguf_decoder *(*decoder)(const lb_gguf_decoders *);
    const lb_gguf_recoder *recoder;
} lb_gguf_block;

/* Function pointers of a format whose type is a lb_gguf_block. */
bool lb_gguf_layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                    const lb_shape *shape, lb_layout *to);
void lb_gguf_encode_run(const lb_cpu *cpu, const lb_quant *q, lb_store *to,
                        int64_t first, int64_t n, const float *x);
void lb_gguf_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                    int64_t n, void *out);
bool lb_gguf_unpack(const lb_cpu *cpu, const lb_store *s, int64_t first,
                    int64_t n, lb_sink to);
double lb_gguf_bound(const lb_quant *q);
/* The first byte of the block of element e. */
const uint8_t *lb_gguf_block_at(const lb_store *s, int64_t e);

/* gguf_integers.c */
#define LB_DECLARE_INTEGERS(NAME, ...)                                         \
    extern const lb_integers lb_integers_##NAME;
LB_GGUF_INTEGER_TYPES(LB_DECLARE_INTEGERS)

/* d is rounded to f16 after the codes were computed with it. If it is a normal
 * number the error is within the type's bound. Below 2^-14 it loses bits; up to
 * 2^-25 it becomes 0, and with it the whole block, although its codes are not.
 * Above the largest f16 ggml stores an infinity, which its tools then reject;
 * here such values are rejected by the encoder. Bytes are little-endian. */
#define LB_GGUF_D_MOST 65504.0f
static inline float lb_gguf_get_d(const uint8_t *from)
{
    return lb_f32_from_f16((uint16_t)(from[0] | from[1] << 8));
}

#endif
