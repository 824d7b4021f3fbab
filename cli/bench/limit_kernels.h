/* limit_kernels.h - loops that do one thing as fast as a core can.
 *
 * Each instruction-set level has its own; a machine or level without any gets
 * plain C, whose limits are those of what the compiler makes of it.
 */
#ifndef LB_BENCH_LIMIT_KERNELS_H
#define LB_BENCH_LIMIT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* `rounds` rounds in registers (or L1), each of `ops` operations, where a
 * multiplication with its addition counts as two. */
typedef struct limit_loop {
    void (*run)(int64_t rounds);
    double ops;
} limit_loop;

/* How memory is walked: `streams` places at once, `apart` bytes from each
 * other, then on to the next streams * apart bytes. */
typedef struct limit_walk {
    int streams;  /* 1, 4 or 8 */
    size_t apart; /* a multiple of 64 */
} limit_walk;

typedef struct limit_kernels {
    limit_loop fma;    /* f32 */
    limit_loop dot16;  /* int16 products, int32 sums */
    limit_loop dot8;   /* int8 products; sums in 16 bits where that is faster,
                        * which codes of two bits and less allow for a while */
    limit_loop lookup; /* bytes of tables of 16, each by an index, with a sign,
                        * added up in 16 bits; an operation is a byte */
    /* Both: aligned to 64, bytes a multiple of streams * apart, or of 64. */
    void (*read)(const void *from, size_t bytes, limit_walk walk);
    void (*fill)(void *to, size_t bytes); /* past the caches, if it can */
} limit_kernels;

/* By the name of a level, as lb_isa gives it. */
limit_kernels limit_kernels_for(const char *isa);

/* Those of x86; the plain ones come in and are replaced where it has better. */
void limit_kernels_x86(const char *isa, limit_kernels *kernels);

#endif
