/* lanes_f32.h - elementwise functions of f32 runs, for each level.
 *
 * Every level gives the bits of the reference: all are compiled from
 * lanes_f32_loops.h, with vectors of the level's width. (Which of two NaNs an
 * addition hands on is left to the machine.)
 */
#ifndef LB_LANES_F32_H
#define LB_LANES_F32_H

#include "lowbit_ext.h"

typedef enum lb_lane {
    LB_LANE_none, /* for those who have no such function */
#define UNARY(NAME, VALUE)  LB_LANE_##NAME,
#define BINARY(NAME, VALUE) LB_LANE_##NAME,
#define TEST(NAME, MASK)    LB_LANE_##NAME,
#define COMPARE(NAME, MASK) LB_LANE_##NAME,
#define SPECIAL(NAME)       LB_LANE_##NAME,
#include "kernels/lanes_f32.def"
#undef UNARY
#undef BINARY
#undef TEST
#undef COMPARE
#undef SPECIAL
    LB_LANE_END
} lb_lane;

typedef struct lb_lanes_f32 {
    const char *name; /* "lanes avx2" */
    lb_lanes_fn *run[LB_LANE_END];
} lb_lanes_f32;

/* The strongest kernels of a level. */
const lb_lanes_f32 *lb_lanes_f32_for(const lb_cpu *cpu);

/* The elements from `from` on, fewer than a block, by the same function on a
 * whole block of copies. Sizes are those of an element of in[0], in[1], in[2]
 * and out, 0 where there is none. */
enum { LB_LANES_BLOCK = 64 };
void lb_lanes_padded(const lb_lanes *l, int64_t from, const size_t size[4],
                     lb_lanes_fn *run);

/* A binary function of an operand that is a single element, with copies of it:
 * of two NaNs, which one is the result depends on how a loop was compiled. */
void lb_lanes_copied(const lb_lanes *l, lb_lanes_fn *run);

extern const lb_lanes_f32 lb_lanes_f32_ref;
#if defined(__x86_64__)
extern const lb_lanes_f32 lb_lanes_f32_avx2, lb_lanes_f32_avx512;
#endif

#endif
