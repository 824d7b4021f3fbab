/* decode.h - codes to numbers, many at a time.
 *
 * Formats find codes and scales; here is the arithmetic, once in portable C,
 * which says what the bits are, and once for each level that is faster. All
 * give the same bits. Scales come as lb_spans: a number and how many elements
 * it serves. Raw pointers only; nothing outside of what is named is touched.
 */
#ifndef LB_DECODE_H
#define LB_DECODE_H

#include "lowbit_ext.h"

/* The numbers of n codes that lie in a row of fields, from its place `at` on:
 * least + step * bits, then times or divided by the scale. */
typedef struct lb_fields {
    int bits; /* 1 or 2; the first of a byte in its lowest */
    int least, step;
    bool divides;
} lb_fields;

typedef struct lb_decode_kernel {
    const char *name; /* "decode avx2" */
    /* Signed bytes. meaning: scale code * s, absmax (code * s) * f32(1/127),
     * inverse code / s. s.value may be out, if s.each is 1. */
    void (*bytes)(lb_meaning meaning, const int8_t *code, int64_t n, lb_spans s,
                  float *out);
    /* Halves of bytes, the high one first, as level[16] * s; skip: 1 if the
     * first is in a low half, else 0. */
    void (*halves)(const float *level, const uint8_t *byte, int64_t skip,
                   int64_t n, lb_spans s, float *out);
    /* Fields of 1 or 2 bits. s.value NULL: no scale. */
    void (*fields)(lb_fields f, const uint8_t *row, int64_t at, int64_t n,
                   lb_spans s, float *out);
    /* Bytes as level[256] * s. */
    void (*levels)(const float *level, const uint8_t *code, int64_t n,
                   lb_spans s, float *out);
    /* Blocks of GGUF files, n whole ones, with a scale d in f16; NULL: the
     * format's own loop is all there is.
     *   bytes32   d, 32 signed bytes
     *   halves32  d, 16 bytes: level of the low halves, then of the high ones
     *   pairs256  64 bytes of 4 fields (32 apart), d; field - 1
     *   trits256  52 bytes of 5 or 4 digits to base 3, d; digit - 1 */
    void (*bytes32)(const uint8_t *from, int64_t n, float *out);
    void (*halves32)(const int8_t *level, const uint8_t *from, int64_t n,
                     float *out);
    void (*pairs256)(const uint8_t *from, int64_t n, float *out);
    void (*trits256)(const uint8_t *from, int64_t n, float *out);
} lb_decode_kernel;

/* The strongest kernel of a level. */
const lb_decode_kernel *lb_decode_kernel_for(const lb_cpu *cpu);

extern const lb_decode_kernel lb_decode_ref;
#if defined(__x86_64__)
extern const lb_decode_kernel lb_decode_avx2, lb_decode_avx512;

/* Of AVX2, for stronger levels as well. */
void lb_decode_levels_avx2(const float *level, const uint8_t *code, int64_t n,
                           lb_spans s, float *out);
void lb_decode_bytes32_avx2(const uint8_t *from, int64_t n, float *out);
void lb_decode_halves32_avx2(const int8_t *level, const uint8_t *from,
                             int64_t n, float *out);
void lb_decode_pairs256_avx2(const uint8_t *from, int64_t n, float *out);
void lb_decode_trits256_avx2(const uint8_t *from, int64_t n, float *out);
#elif defined(__aarch64__)
extern const lb_decode_kernel lb_decode_neon;
#endif

/* For lb_format.kernels: the levels that run more than the reference. */
#define LB_DECODE_LEVELS                                                       \
    (1u << LB_LEVEL_NEON | 1u << LB_LEVEL_AVX2 | 1u << LB_LEVEL_AVX512 |       \
     1u << LB_LEVEL_AVX512VNNI | 1u << LB_LEVEL_AMX)

/* Where the elements end, of n, that the first value serves; and those that the
 * next one serves. */
static inline int64_t lb_span_first(lb_spans s, int64_t n)
{
    return s.head < n ? s.head : n;
}
static inline int64_t lb_span_next(lb_spans s, int64_t end, int64_t n)
{
    return s.each < n - end ? end + s.each : n;
}

#endif
