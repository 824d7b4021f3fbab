/* reduce_ops.c - sum, prod, max, min, and, or on lanes of each type.
 *
 * Each pair of a type and an operation is one instance of reduce_lanes.h; the
 * table at the end lists the functions used where a level has none of its own.
 */
#include "prims/reduce_ops.h"

#include <math.h>
#include <string.h>

#define REDUCE_FN static
#define VBYTES    16
#define OTHER_HALF(b, a, n)                                                    \
    ((b) = (a), memcpy(&(b), (const char *)&(a) + (n), (n)))
#define BITS(x)       ((__typeof__((x) == (x)))(x))
#define PICK(m, a, b) ((__typeof__(a))((BITS(a) & (m)) | (BITS(b) & ~(m))))
#define SUM(a, b)     ((a) + (b))
#define PROD(a, b)    ((a) * (b))
#define AND(a, b)     ((a) & (b))
#define OR(a, b)      ((a) | (b))
#define MAX(a, b)     PICK((a) >= (b), a, b)
#define MIN(a, b)     PICK((a) <= (b), a, b)
/* Equal floats may be zeros of different sign: AND of the bits gives the larger
 * one, OR the smaller one. A NaN on the left is kept; one on the right sets all
 * bits, which is a NaN too. */
#define FMAX(a, b)                                                             \
    ((__typeof__(a))(((BITS(b) | ~((a) <= (b))) & (BITS(a) | ((a) < (b)))) |   \
                     ((b) != (b))))
#define FMIN(a, b)                                                             \
    ((__typeof__(a))(((BITS(b) & ((a) >= (b))) | (BITS(a) & ~((a) > (b)))) |   \
                     ((b) != (b))))

#define T       float
#define OP      SUM
#define NAME(x) x##_f32_sum
#include "kernels/reduce_lanes.h"
#define T       float
#define OP      PROD
#define NAME(x) x##_f32_prod
#include "kernels/reduce_lanes.h"
#define T       float
#define OP      FMAX
#define NAME(x) x##_f32_max
#include "kernels/reduce_lanes.h"
#define T       float
#define OP      FMIN
#define NAME(x) x##_f32_min
#include "kernels/reduce_lanes.h"
#define T       double
#define OP      SUM
#define NAME(x) x##_f64_sum
#include "kernels/reduce_lanes.h"
#define T       double
#define OP      PROD
#define NAME(x) x##_f64_prod
#include "kernels/reduce_lanes.h"
#define T       double
#define OP      FMAX
#define NAME(x) x##_f64_max
#include "kernels/reduce_lanes.h"
#define T       double
#define OP      FMIN
#define NAME(x) x##_f64_min
#include "kernels/reduce_lanes.h"
#define T       int64_t
#define OP      MAX
#define NAME(x) x##_i64_max
#include "kernels/reduce_lanes.h"
#define T       int64_t
#define OP      MIN
#define NAME(x) x##_i64_min
#include "kernels/reduce_lanes.h"
/* The unsigned functions also serve signed types if only the bits matter,
 * because they may wrap. */
#define T       uint64_t
#define OP      SUM
#define NAME(x) x##_u64_sum
#include "kernels/reduce_lanes.h"
#define T       uint64_t
#define OP      PROD
#define NAME(x) x##_u64_prod
#include "kernels/reduce_lanes.h"
#define T       uint64_t
#define OP      MAX
#define NAME(x) x##_u64_max
#include "kernels/reduce_lanes.h"
#define T       uint64_t
#define OP      MIN
#define NAME(x) x##_u64_min
#include "kernels/reduce_lanes.h"
#define T       uint64_t
#define OP      AND
#define NAME(x) x##_u64_and
#include "kernels/reduce_lanes.h"
#define T       uint64_t
#define OP      OR
#define NAME(x) x##_u64_or
#include "kernels/reduce_lanes.h"
#define T       uint8_t
#define OP      AND
#define NAME(x) x##_u8_and
#include "kernels/reduce_lanes.h"
#define T       uint8_t
#define OP      OR
#define NAME(x) x##_u8_or
#include "kernels/reduce_lanes.h"

#define R(x) &reducer_##x
static const lb_reducer *const reducers[][5] = {
    /* clang-format off: f32, f64, i64, u64, bool */
    [LB_REDUCE_SUM] = {R(f32_sum), R(f64_sum), R(u64_sum), R(u64_sum), NULL},
    [LB_REDUCE_PROD] = {R(f32_prod), R(f64_prod), R(u64_prod), R(u64_prod),
                        R(u8_and)},
    [LB_REDUCE_MAX] = {R(f32_max), R(f64_max), R(i64_max), R(u64_max),
                       R(u8_or)},
    [LB_REDUCE_MIN] = {R(f32_min), R(f64_min), R(i64_min), R(u64_min),
                       R(u8_and)},
    [LB_REDUCE_AND] = {NULL, NULL, R(u64_and), R(u64_and), R(u8_and)},
    [LB_REDUCE_OR] = {NULL, NULL, R(u64_or), R(u64_or), R(u8_or)},
    /* clang-format on */
};

static lb_value least_or_largest(lb_dtype d, bool largest)
{
    const int bits = (int)lb_dtype_size(d) * 8;
    switch (lb_ctype_of(d)) {
    case LB_C_F32:
        return (lb_value){.f32 = largest ? INFINITY : -INFINITY};
    case LB_C_F64:
        return (lb_value){.f64 =
                              largest ? (double)INFINITY : -(double)INFINITY};
    case LB_C_I64: {
        const int64_t most = INT64_MAX >> (64 - bits);
        return (lb_value){.i64 = largest ? most : -most - 1};
    }
    case LB_C_U64:
        return (lb_value){.u64 = largest ? UINT64_MAX >> (64 - bits) : 0};
    case LB_C_BOOL:
        break;
    }
    return (lb_value){.u8 = largest};
}

static lb_value number(lb_dtype d, int n)
{
    switch (lb_ctype_of(d)) {
    case LB_C_F32:
        return (lb_value){.f32 = (float)n};
    case LB_C_F64:
        return (lb_value){.f64 = n};
    case LB_C_BOOL:
        return (lb_value){.u8 = n != 0};
    default:
        return (lb_value){.i64 = n};
    }
}

lb_value lb_reduce_identity(lb_reduce_op op, lb_dtype d)
{
    switch (op) {
    case LB_REDUCE_PROD:
        return number(d, 1);
    case LB_REDUCE_MAX:
        return least_or_largest(d, false);
    case LB_REDUCE_MIN:
        return least_or_largest(d, true);
    case LB_REDUCE_AND:
        return number(d, d == LB_BOOL ? 1 : -1);
    default:
        return number(d, 0);
    }
}

const lb_reducer *lb_reducer_for(const lb_cpu *cpu, lb_reduce_op op,
                                 lb_ctype ctype)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512 && ctype == LB_C_F32 &&
        lb_reducers_f32_avx512[op])
        return lb_reducers_f32_avx512[op];
    if (cpu->level >= LB_LEVEL_AVX2 && ctype == LB_C_F32 &&
        lb_reducers_f32_avx2[op])
        return lb_reducers_f32_avx2[op];
#else
    (void)cpu;
#endif
    return reducers[op][ctype];
}
