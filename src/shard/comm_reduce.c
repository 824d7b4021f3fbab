/* comm_reduce.c - combines two runs of elements, element by element. */
#include "shard/comm_reduce.h"

/* Integer sums wrap: they are computed as WIDE, an unsigned type at least as
 * wide as int. */
#define COMBINE(NAME, TYPE, WIDE)                                              \
    static void combine_##NAME(lb_comm_op op, int64_t n, const TYPE *from,     \
                               TYPE *to)                                       \
    {                                                                          \
        for (int64_t i = 0; i < n && op == LB_COMM_SUM; i++)                   \
            to[i] = (TYPE)((WIDE)to[i] + (WIDE)from[i]);                       \
        for (int64_t i = 0; i < n && op == LB_COMM_MAX; i++)                   \
            to[i] = from[i] > to[i] ? from[i] : to[i];                         \
        for (int64_t i = 0; i < n && op == LB_COMM_MIN; i++)                   \
            to[i] = from[i] < to[i] ? from[i] : to[i];                         \
    }

COMBINE(f32, float, float)
COMBINE(f64, double, double)
COMBINE(i8, int8_t, uint32_t)
COMBINE(i16, int16_t, uint32_t)
COMBINE(i32, int32_t, uint32_t)
COMBINE(i64, int64_t, uint64_t)
COMBINE(u8, uint8_t, uint32_t)
COMBINE(u16, uint16_t, uint32_t)
COMBINE(u32, uint32_t, uint32_t)
COMBINE(u64, uint64_t, uint64_t)

void lb_comm_combine(lb_comm_op op, lb_dtype dtype, int64_t n, const void *from,
                     void *to)
{
    switch (dtype) {
    case LB_F32:
        combine_f32(op, n, from, to);
        break;
    case LB_F64:
        combine_f64(op, n, from, to);
        break;
    case LB_I8:
        combine_i8(op, n, from, to);
        break;
    case LB_I16:
        combine_i16(op, n, from, to);
        break;
    case LB_I32:
        combine_i32(op, n, from, to);
        break;
    case LB_I64:
        combine_i64(op, n, from, to);
        break;
    case LB_U8:
        combine_u8(op, n, from, to);
        break;
    case LB_U16:
        combine_u16(op, n, from, to);
        break;
    case LB_U32:
        combine_u32(op, n, from, to);
        break;
    case LB_U64:
        combine_u64(op, n, from, to);
        break;
    default: /* never used */
        break;
    }
}
