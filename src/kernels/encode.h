/* encode.h - runs of numbers to codes: what quantizing spends its time on.
 *
 * One table of functions for each level; encoders that serve one format are
 * beside its reference, where they are chosen likewise. All give the bits of
 * the reference, whatever the length and the alignment, and touch nothing
 * outside the runs they are given. Unless it says otherwise, numbers are
 * finite.
 */
#ifndef LB_ENCODE_H
#define LB_ENCODE_H

#include "kernels/sums.h"
#include "lowbit_ext.h"

/* How numbers become what codes are found for: v = x / by, or x * by, rounded
 * to f32 and then perhaps to a dtype of 16 bits. */
typedef enum lb_quotient {
    LB_QUOTIENT,
    LB_PRODUCT,
    LB_QUOTIENT_F16,
    LB_QUOTIENT_BF16
} lb_quotient;

typedef struct lb_encode_kernel {
    const char *name; /* "encode avx2" */
    /* The largest bits of |x|, which may be anything: those of infinities and
     * NaNs lie above those of numbers. */
    uint32_t (*peak_bits)(const float *x, int64_t n);
    /* The largest |x| of each `block` elements; the last may be fewer. */
    void (*largest)(const float *x, int64_t n, int64_t block, float *most);
    /* most[i] = the larger of that and |x[i]|. */
    void (*raise)(const float *x, int64_t n, float *most);

    /* Of each LB_CHUNK elements, the last perhaps fewer; see sums.h. */
    void (*totals)(const float *x, int64_t n, float least, lb_total *each);
    void (*moments)(const float *x, int64_t n, lb_moments *each);

    /* Whole numbers nearest to v, half to even, from -127 to 127; |v| below
     * 2^30. One `by` for all, or one for each. */
    void (*whole)(lb_quotient how, const float *x, int64_t n, float by,
                  int8_t *code);
    void (*whole_each)(lb_quotient how, const float *x, int64_t n,
                       const float *by, int8_t *code);
    /* 1 + (x > cut) - (x < -cut) in two bits, cut >= 0; x >= 0 in one. The
     * first in the lowest bits; (n + 3) / 4 or (n + 7) / 8 bytes, places that
     * are left over hold 1 (of two bits) or 0. */
    void (*ternary)(const float *x, int64_t n, float cut, uint8_t *byte);
    void (*binary)(const float *x, int64_t n, uint8_t *byte);
} lb_encode_kernel;

/* The strongest kernel of a level. */
const lb_encode_kernel *lb_encode_kernel_for(const lb_cpu *cpu);

extern const lb_encode_kernel lb_encode_ref;
#if defined(__x86_64__)
extern const lb_encode_kernel lb_encode_avx2, lb_encode_avx512;
#elif defined(__aarch64__)
extern const lb_encode_kernel lb_encode_neon;
#endif

#endif
