/* dotf32.h - f32 products of a few rows with rows of codes, decoded in
 * registers.
 *
 *   c[j][i] (+)= sum over kk < depth of x[i][kk] * (level(code[j][kk]) * scale)
 *
 * x is packed: of up to mr rows a vector of each in turn, in an order that
 * suits how codes are decoded, group by group. A lane sums every lanes-th
 * number of that order; lanes fold in a fixed tree. Raw pointers only.
 */
#ifndef LB_DOTF32_H
#define LB_DOTF32_H

#include <stdbool.h>
#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_DOTF32_KC = 512, /* depth of a panel, after which lanes are folded */
    LB_DOTF32_MAX_MR = 12,
    LB_DOTF32_MAX_GROUP = 256
};

/* n rows of w, and of each the next `depth` numbers. */
typedef struct lb_dotf32_codes {
    int bits;           /* of a code: 8, 4, 2 or 1 */
    const float *level; /* 2^bits, finite; of 8 bits none: the code is one */
    const uint8_t *codes;
    int64_t step; /* bytes from row to row */
    const float *scale;
    int64_t scale_step;
    int64_t g; /* how many numbers share one, lb_dotf32_unit times a power of
                * two; 0: all of a row */
    bool tame; /* numbers of x and levels are neither huge nor tiny: scales may
                * wait until all else is summed */
    int64_t n, depth;
    uintptr_t ahead; /* what is asked for as rows are read: this is added to
                      * their addresses; 0: nothing */
} lb_dotf32_codes;

typedef struct lb_dotf32 {
    const char *name; /* "dot f32 avx2" */
    int mr, lanes;
    /* rows <= mr of x, of as many whole groups as the depth needs, aligned to
     * 32 bytes. first: c is set, not added to. */
    void (*dots)(const lb_dotf32_codes *w, int rows, const float *x, bool first,
                 float *c, int64_t ldc);
} lb_dotf32;

/* The kernel of a level, or NULL. */
const lb_dotf32 *lb_dotf32_for(const lb_cpu *cpu);

/* Numbers of a group, and how many of them must share a scale. */
int64_t lb_dotf32_group(int bits);
int64_t lb_dotf32_unit(int bits);
/* place[i]: which number of a group is i-th in its order, which is that of
 * kernels of so many lanes. */
void lb_dotf32_order(int lanes, int bits, bool high_first, uint8_t *place);

#if defined(__x86_64__)
extern const lb_dotf32 lb_dotf32_avx2, lb_dotf32_avx512;
#endif

#endif
