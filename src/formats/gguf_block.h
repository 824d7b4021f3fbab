/* gguf_block.h - what the block types of GGUF files have in common.
 *
 * A row is cut into blocks of `len` numbers, each of `size` bytes with a scale
 * d in f16 of its own; there is one part, those bytes:
 *
 *     stored (.., n)  ->  blocks u8 (.., ceil(n / len), size)
 *
 * A row's last block may be short: it is encoded as if zeros followed. Bytes
 * are those of ggml's reference quantizers as they run on x86-64 (f32, nothing
 * contracted), and values those of its decoders: code * f32(d), in f32.
 */
#ifndef LB_GGUF_BLOCK_H
#define LB_GGUF_BLOCK_H

#include <math.h>

#include "kernels/convert.h"
#include "kernels/decode.h"
#include "lowbit_ext.h"

typedef struct lb_gguf_block {
    int len;                                     /* numbers */
    int size;                                    /* bytes */
    void (*encode)(const float *x, uint8_t *to); /* a whole block */
    /* Numbers [lo, lo + n) of a block. */
    void (*decode)(const uint8_t *from, int lo, int n, float *out);
    /* n whole blocks, faster; for kernels that can. */
    void (*decode_whole)(const lb_decode_kernel *, const uint8_t *from,
                         int64_t n, float *out);
    double bound; /* as lb_format's, before values are rounded to a label */
} lb_gguf_block;

/* The slots of a format whose type is a lb_gguf_block. */
bool lb_gguf_layout(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                    const lb_shape *shape, lb_layout *to);
void lb_gguf_encode_run(const lb_cpu *cpu, const lb_quant *q, lb_store *to,
                        int64_t first, int64_t n, const float *x);
void lb_gguf_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                    int64_t n, void *out);
double lb_gguf_bound(const lb_quant *q);

/* d is rounded to f16 after codes were found with it. Where that is a normal
 * number the error is within the type's bound. Below 2^-14 it loses bits, up
 * to 2^-25 it is 0, and so is the whole block though its codes are not. Above
 * f16's largest number ggml stores an infinity, which its tools then refuse:
 * here such numbers are refused before. Bytes are little-endian. */
#define LB_GGUF_D_MOST 65504.0f
static inline void lb_gguf_put_d(uint8_t *to, float d)
{
    const uint16_t h = lb_f16_from_f32(d);
    to[0] = (uint8_t)(h & 0xff);
    to[1] = (uint8_t)(h >> 8);
}

static inline float lb_gguf_get_d(const uint8_t *from)
{
    return lb_f32_from_f16((uint16_t)(from[0] | from[1] << 8));
}

static inline float lb_gguf_absmax(const float *x, int n)
{
    float most = 0;
    for (int i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most;
}

/* The first of the numbers with the largest |x|, with its sign; 0, never -0, if
 * all are 0. */
static inline float lb_gguf_peak(const float *x, int n)
{
    const float most = lb_gguf_absmax(x, n);
    float peak = 0;
    for (int i = n - 1; i >= 0 && most > 0; i--)
        peak = fabsf(x[i]) == most ? x[i] : peak;
    return peak;
}

/* 1/d, and 0 where that is not finite: codes are those of a block of zeros.
 * For d below 2^-128 ggml converts infinities to integers, and what it stores
 * depends on its compiler. */
static inline float lb_gguf_inverse(float d)
{
    const float id = 1 / d;
    return isfinite(id) ? id : 0;
}

/* Half away from zero, as roundf and lroundf do; |v| < 2^23. The remainder is
 * exact, and there is no call in the way of the vectorizer. */
static inline int lb_gguf_round(float v)
{
    const int t = (int)v;
    const float rest = v - (float)t;
    return t + (rest >= 0.5f) - (rest <= -0.5f);
}

#endif
