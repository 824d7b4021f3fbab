/* dotint.h - products of matrices of whole numbers of 16 bits, in panels.
 *
 *   c[i][j] += xs[i] * ws[j] * sum over kk of x[i][kk] * w[j][kk]
 *
 * Numbers of x (m,k) are rounded to whole ones with a scale for each row of a
 * panel, those of w (n,k) are made from codes. A panel is a range of the depth
 * in which no sum can leave 32 bits; it is filled up to whole steps, with
 * zeros in x. Its rows lie side by side, a vector of each in turn:
 *
 *   x: up to mr rows, [vector][row][lanes]      w: nr rows, the same
 *
 * In which order a step of the depth comes is the kernel's affair and the same
 * for both. Three stages lead from codes to w, each of them a small kernel:
 * fields to bytes (unpack), if rows run along memory bytes to rows along the
 * depth (turn), bytes to 16 bits (widen, scale). Raw pointers only.
 */
#ifndef LB_DOTINT_H
#define LB_DOTINT_H

#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_DOTINT_STEP = 32,   /* depths are filled up to a multiple of this */
    LB_DOTINT_LINES = 16,  /* that turn takes at once, */
    LB_DOTINT_PLACES = 32, /* and a multiple of so many numbers of each */
    LB_DOTINT_MAX_MR = 8,
    LB_DOTINT_MAX_NR = 4,
    LB_DOTINT_KC = 512, /* depth of a panel */
    /* Magnitudes of x. Weights of at most 8 bits: 128 * 32767 * 512 < 2^31. */
    LB_DOTINT_MOST_X = 32767,
    /* Fine weights, which are products of a level and a ratio: the sum of a
     * panel may need more than 32 bits, but not that of a lane, an eighth of
     * the panel, if the magnitudes of x in it add up to less than 2^31 / 2^13.
     * 262000 leaves room for the roundings of 64 numbers and of the sum. Of
     * normal numbers that is 4000 for one of 1. */
    LB_DOTINT_FINE_W = 1 << 13,
    LB_DOTINT_FINE_X = 262000,
    /* The largest level and ratio, whose product times 2^-15 is FINE_W. */
    LB_DOTINT_LEVEL = 1 << 14,
    LB_DOTINT_RATIO = 1 << 14,
    /* The same where levels are bytes, times 2^6. */
    LB_DOTINT_NUMBER_BITS = 6,
    LB_DOTINT_NUMBER_RATIO = 32767
};

typedef struct lb_dotint {
    const char *name; /* "dot i16 avx2" */
    int mr, nr, lanes;
    /* The largest magnitude; inf or a NaN if a number is not finite. lane:
     * the largest sum of magnitudes that meet in a lane, if fine. */
    float (*largest)(int64_t n, const float *x, float *lane);
    /* One row of a panel of x: each number times factor, rounded to nearest
     * even; zeros up to a whole step. Vectors are written `apart` numbers
     * apart, here and below. */
    void (*round)(int64_t n, const float *x, float factor, int16_t *to,
                  int64_t apart);
    /* n codes of 4, 2 or 1 bits as number[code]. The bytes past n, up to a
     * whole step, may be written. */
    void (*unpack)(int bits, bool high_first, const int8_t *number, int64_t n,
                   const uint8_t *codes, int8_t *to);
    /* to[p*ld + l] = line[l][p] for LB_DOTINT_LINES lines, p < n. */
    void (*turn)(const int8_t *const *line, int64_t n, int8_t *to, int64_t ld);
    /* Scales as parts of the largest magnitude, in units of 1 / top, rounded
     * to nearest even; returns that magnitude. If it is 0, or inf or NaN as in
     * largest, all parts are 0. */
    float (*ratios)(int64_t n, const float *scale, float top, int16_t *ratio);
    /* One row of a panel of w: the bytes as they are, or if there are numbers
     * number[byte >> field & mask], mask <= 15; zeros up to a step. */
    void (*widen)(int64_t n, const int8_t *from, const int8_t *number,
                  int field, int mask, int16_t *to, int64_t apart);
    /* The same, fine: (level * ratio + 2^14) >> 15, where level is
     * level[byte >> field & mask], or if there are none the byte times 2^6.
     * ratio[kk / g] is for kk; g is 1 or a multiple of a step. What comes past
     * n are numbers of no meaning. */
    void (*scale)(int64_t n, const int8_t *from, const int16_t *level,
                  int field, int mask, const int16_t *ratio, int64_t g,
                  int16_t *to, int64_t apart);
    /* Both at once, for n codes of 4 or 2 bits, in another order: of each 32
     * bytes first the codes of all first fields, then those of all second
     * ones, and so on. What comes past n, up to 32 whole bytes, are numbers of
     * no meaning. */
    void (*widen_fields)(int bits, bool high_first, const int8_t *number,
                         int64_t n, const uint8_t *codes, int16_t *to,
                         int64_t apart);
    /* The same, fine, for codes of 4 bits; g is a multiple of 64. */
    void (*scale_fields)(bool high_first, const int16_t *level,
                         const int16_t *ratio, int64_t g, int64_t n,
                         const uint8_t *codes, int16_t *to, int64_t apart);
    /* c[i*nr + j] = fma(sum * ws[j], xs[i*nr + j], c[i*nr + j], or 0 if first),
     * sum as f32, for rows <= mr. k is whole steps, panels are aligned to 64
     * bytes. The sum is exact; if fine, lanes are rounded to f32 and folded
     * as such. */
    void (*tile)(int rows, int64_t k, const int16_t *x, const int16_t *w,
                 const float *xs, const float *ws, bool fine, bool first,
                 float *c);
} lb_dotint;

/* The strongest kernel of a level. */
const lb_dotint *lb_dotint_for(const lb_cpu *cpu);

extern const lb_dotint lb_dotint_ref;
#if defined(__x86_64__)
extern const lb_dotint lb_dotint_avx2, lb_dotint_avx512, lb_dotint_vnni;
#endif

#endif
