/* dotint.h - products of matrices of whole numbers of 16 bits, in panels.
 *
 *   c[i][j] += xs[i] * ws[j] * sum over kk of x[i][kk] * w[j][kk]
 *
 * Numbers of x (m,k) are rounded to whole ones with a scale for each row of a
 * panel, those of w (n,k) are made from codes. A panel is a range of the depth
 * in which no lane's sum can leave 32 bits; it is filled up to whole steps,
 * with zeros in x. Its rows lie side by side, a vector of each in turn:
 *
 *   x: up to mr rows, [vector][row][lanes]      w: nr rows, the same
 *
 * In which order a step of the depth comes is the kernel's affair and the same
 * for both. Codes are brought along the depth first, if rows run along memory
 * (turn), and to bytes, if no kind below fits (unpack). Kernels that have dots
 * multiply them as they are; for others, and where many rows of x make it
 * worth it, rows become panels (pack). Raw pointers only.
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
    LB_DOTINT_SCALES = 24, /* the most of mr * nr */
    LB_DOTINT_KC = 512,    /* depth of a panel, in which no sum can leave 32
                            * bits: 128 * 32639 * 512 < 2^31, */
    LB_DOTINT_DEEP = 1024, /* and the most for kernels that see to that */
    /* Magnitudes of x: 256 * 127 + 127, so that two bytes with signs hold them.
     */
    LB_DOTINT_MOST_X = 32639,
    LB_DOTINT_LINE = 63, /* numbers on a line: 63 * 32639 * 1024 < 2^31 */
    /* Fine weights, which are products of a level and a ratio: the sum of a
     * panel may need more than 32 bits, but not that of a lane, an eighth of
     * the panel, if the magnitudes of x in it add up to less than 2^31 / 2^13.
     * 262000 leaves room for the roundings of 160 numbers and of the sum. Of
     * normal numbers that is about 2200 for one of 1 in deep panels. */
    LB_DOTINT_FINE_W = 1 << 13,
    LB_DOTINT_FINE_X = 262000,
    /* The largest level and ratio, whose product times 2^-15 is FINE_W. */
    LB_DOTINT_LEVEL = 1 << 14,
    LB_DOTINT_RATIO = 1 << 14,
    /* The same where levels are bytes, times 2^6. */
    LB_DOTINT_NUMBER_BITS = 6,
    LB_DOTINT_NUMBER_RATIO = 32767
};

/* How the codes of a row of w lie. */
typedef enum lb_dotint_kind {
    LB_DOTINT_BYTES,  /* bytes are numbers */
    LB_DOTINT_FIELD,  /* one field of each byte is a code, of at most 4 bits */
    LB_DOTINT_FIELDS, /* codes of 4 or 2 bits, in the order of fields: of each
                       * 32 bytes first those of all lowest fields, then those
                       * of all that are next, and so on */
    LB_DOTINT_BITS,   /* codes of 1 bit, in order */
    LB_DOTINT_WORDS   /* numbers of 16 bits, a panel of one row; for dots */
} lb_dotint_kind;

/* Rows of w as they are: n rows, of each the next `depth` of the depth. */
typedef struct lb_dotint_codes {
    lb_dotint_kind kind;
    int bits;        /* FIELDS */
    bool high_first; /* BITS */
    int field, mask; /* FIELD: code = byte >> field & mask */
    /* What codes stand for, if not fine: of FIELD number[code], of FIELDS and
     * of BITS least + slope * code, small enough for sums of either part. */
    const int8_t *number;
    int least, slope;
    /* Fine: (level * ratio + 2^14) >> 15, where level is level[code], or of
     * BYTES the byte times 2^6; ratio[kk / g] is for kk. g is 1 or a multiple
     * of a step, of FIELDS of 64; if it is 1, there are ratios up to a whole
     * step. Not of BITS, and of FIELDS of 4 bits only. */
    bool fine;
    const int16_t *level, *ratio;
    int64_t ratio_step, g;
    const uint8_t *codes;
    int64_t step; /* bytes from row to row */
    const float *ws;
    int64_t ws_step;
    int64_t n, depth;
    uintptr_t ahead; /* what is asked for as rows are read: this is added to
                      * their addresses; 0: nothing */
} lb_dotint_codes;

/* What comes with a group of rows of x in a panel. */
typedef struct lb_dotint_head {
    float scale[LB_DOTINT_SCALES]; /* of each row, nr times */
    int32_t sum[LB_DOTINT_MAX_MR]; /* of its numbers */
} lb_dotint_head;

typedef struct lb_dotint {
    const char *name; /* "dot i16 avx2" */
    int mr, nr, lanes;
    int kc; /* the most of a panel's depth */
    /* The largest magnitude; inf or a NaN if a number is not finite. lane:
     * the largest sum of magnitudes that meet in a lane, if fine. */
    float (*largest)(int64_t n, const float *x, float *lane);
    /* One row of a panel of x: each number times factor, rounded to nearest
     * even; zeros up to a whole step. Returns their sum. Vectors are written
     * `apart` numbers apart, here and below. */
    int32_t (*round)(int64_t n, const float *x, float factor, int16_t *to,
                     int64_t apart);
    /* n codes of 4, 2 or 1 bits as number[code]. The bytes past n, up to a
     * whole step, may be written. */
    void (*unpack)(int bits, bool high_first, const int8_t *number, int64_t n,
                   const uint8_t *codes, int8_t *to);
    /* to[p*ld + l] = line[l][p] for LB_DOTINT_LINES lines, p < n. */
    void (*turn)(const int8_t *const *line, int64_t n, int8_t *to, int64_t ld);
    /* Of each of some rows n scales as parts of the largest magnitude among
     * them, in units of 1 / top, rounded to nearest even, and that magnitude.
     * If it is 0, or inf or NaN as in largest, all parts are 0. Rows are step
     * scales and apart parts apart. */
    void (*ratios)(int64_t rows, int64_t n, const float *scale, int64_t step,
                   float top, int16_t *ratio, int64_t apart, float *most);
    /* Row j of w as one of a panel of w. What comes past the depth, up to a
     * whole step, or of FIELDS to 32 whole bytes, are numbers of no meaning. */
    void (*pack)(const lb_dotint_codes *w, int64_t j, int16_t *to,
                 int64_t apart);
    /* c[i*nr + j] = fma(sum * ws[j], xs[i*nr + j], c[i*nr + j], or 0 if first),
     * sum as f32, for rows <= mr. k is whole steps, panels are aligned to 64
     * bytes. The sum is exact; if fine, lanes are rounded to f32 and folded
     * as such. */
    void (*tile)(int rows, int64_t k, const int16_t *x, const int16_t *w,
                 const float *xs, const float *ws, bool fine, bool first,
                 float *c);
    /* In place of tile, where there is one: the same sums, of rows of x with
     * rows of w as they are. c[j*ldc + i]; nr is 1. Sums of deep panels are
     * rounded to f32 as two halves. */
    void (*dots)(const lb_dotint_codes *w, int rows, const int16_t *x,
                 const lb_dotint_head *head, bool first, float *c, int64_t ldc);
} lb_dotint;

/* The strongest kernel of a level. */
const lb_dotint *lb_dotint_for(const lb_cpu *cpu);

extern const lb_dotint lb_dotint_ref;
#if defined(__x86_64__)
extern const lb_dotint lb_dotint_avx2, lb_dotint_avx512, lb_dotint_vnni;
#elif defined(__aarch64__)
extern const lb_dotint lb_dotint_neon;
#endif

#endif
