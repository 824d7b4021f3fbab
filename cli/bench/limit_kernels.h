/* limit_kernels.h - loops that measure the peak performance of a core.
 *
 * Each instruction set level has its own; others use portable C, whose peak is
 * that of the compiler's code.
 */
#ifndef LB_BENCH_LIMIT_KERNELS_H
#define LB_BENCH_LIMIT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Runs `rounds` rounds in registers (or L1), each of `ops` operations; a
 * multiply-add counts as two. */
typedef struct limit_loop {
    void (*run)(int64_t rounds);
    double ops;
} limit_loop;

/* Access pattern: `streams` concurrent streams, `apart` bytes apart, then the
 * next streams * apart bytes. */
typedef struct limit_walk {
    int streams;  /* 1, 4 or 8 */
    size_t apart; /* a multiple of 64 */
} limit_walk;

typedef struct limit_kernels {
    limit_loop fma;    /* f32 */
    limit_loop dot16;  /* int16 products, int32 sums */
    limit_loop dot8;   /* int8 products; summed in 16 bits for a while where
                        * that is faster, which codes of up to two bits permit
                        */
    limit_loop lookup; /* lookups in tables of 16 bytes, with sign, summed in 16
                        * bits; one operation per byte */
    /* Both: buffers aligned to 64, sizes a multiple of streams * apart, or of
     * 64. */
    void (*read)(const void *from, size_t bytes, limit_walk walk);
    void (*fill)(void *to, size_t bytes); /* non-temporal stores */
} limit_kernels;

/* By the name of a level, see lb_isa. */
limit_kernels limit_kernels_for(const char *isa);

/* x86: replaces portable kernels by better ones. */
void limit_kernels_x86(const char *isa, limit_kernels *kernels);

#endif
