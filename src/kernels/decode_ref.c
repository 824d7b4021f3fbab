/* decode_ref.c - codes to numbers in portable C, and the choice of a level. */
#include <math.h>

#include "kernels/bits.h"
#include "kernels/decode.h"

static float by_scale(float code, float s)
{
    return code * s;
}

/* Powers of two keep 127 times a huge number from overflowing, and change no
 * bit of others. */
static float by_absmax(float code, float s)
{
    const bool huge = fabsf(s) > 0x1p120f;
    const float v = s * (huge ? 0x1p-8f : 1.0f);
    const float y = (code * v) * (1.0f / 127.0f);
    return y * (huge ? 0x1p8f : 1.0f);
}

static float by_inverse(float code, float s)
{
    return code / s;
}

static void bytes_ref(lb_meaning meaning, const int8_t *code, int64_t n,
                      lb_spans s, float *out)
{
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const float v = s.value[k];
        switch (meaning) {
        case LB_MEANS_ABSMAX:
            for (; i < end; i++)
                out[i] = by_absmax((float)code[i], v);
            break;
        case LB_MEANS_INVERSE:
            for (; i < end; i++)
                out[i] = by_inverse((float)code[i], v);
            break;
        default:
            for (; i < end; i++)
                out[i] = by_scale((float)code[i], v);
        }
    }
}

static void halves_ref(const float *level, const uint8_t *byte, int64_t skip,
                       int64_t n, lb_spans s, float *out)
{
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const float v = s.value[k];
        for (; i < end; i++) {
            const int64_t at = i + skip;
            const int b = byte[at / 2];
            out[i] = v * level[at & 1 ? b & 15 : b >> 4];
        }
    }
}

static void fields_ref(lb_fields f, const uint8_t *row, int64_t at, int64_t n,
                       lb_spans s, float *out)
{
    enum { PIECE = 256 };
    static const float one = 1;
    uint8_t bits[PIECE];
    if (!s.value) {
        s = (lb_spans){&one, n, n};
        f.divides = false;
    }
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const float v = s.value[k];
        for (int64_t m; i < end; i += m) {
            m = end - i < PIECE ? end - i : PIECE;
            lb_bits_get(f.bits, row, at + i, m, bits);
            for (int64_t j = 0; j < m; j++) {
                const float code = (float)(f.least + f.step * bits[j]);
                out[i + j] = f.divides ? code / v : code * v;
            }
        }
    }
}

static void levels_ref(const float *level, const uint8_t *code, int64_t n,
                       lb_spans s, float *out)
{
    int64_t i = 0, end = lb_span_first(s, n);
    for (int64_t k = 0; i < n; k++, end = lb_span_next(s, end, n)) {
        const float v = s.value[k];
        for (; i < end; i++)
            out[i] = v * level[code[i]];
    }
}

const lb_decode_kernel lb_decode_ref = {
    .name = "decode ref",
    .bytes = bytes_ref,
    .halves = halves_ref,
    .fields = fields_ref,
    .levels = levels_ref,
};

const lb_decode_kernel *lb_decode_kernel_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_decode_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_decode_avx2;
#elif defined(__aarch64__)
    if (cpu->level == LB_LEVEL_NEON) return &lb_decode_neon;
#endif
    (void)cpu;
    return &lb_decode_ref;
}
