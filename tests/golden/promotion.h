/* promotion.h - made by tools/gen_promotion.py with jax 0.10.2. */
#include "lowbit.h"

/* clang-format off */
static const struct { unsigned char dtype, weak; } promotion[15][15] = {
    /* LB_F32 */ {
        {LB_F32,0}, {LB_F32,0}, {LB_F32,0}, {LB_F64,0}, {LB_F32,0},
        {LB_F32,0}, {LB_F32,0}, {LB_F32,0}, {LB_F32,0}, {LB_F32,0},
        {LB_F32,0}, {LB_F32,0}, {LB_F32,0}, {LB_F32,0}, {LB_F32,0},
    },
    /* LB_F16 */ {
        {LB_F32,0}, {LB_F16,0}, {LB_F32,0}, {LB_F64,0}, {LB_F16,0},
        {LB_F16,0}, {LB_F16,0}, {LB_F16,0}, {LB_F16,0}, {LB_F16,0},
        {LB_F16,0}, {LB_F16,0}, {LB_F16,0}, {LB_F16,0}, {LB_F16,0},
    },
    /* LB_BF16 */ {
        {LB_F32,0}, {LB_F32,0}, {LB_BF16,0}, {LB_F64,0}, {LB_BF16,0},
        {LB_BF16,0}, {LB_BF16,0}, {LB_BF16,0}, {LB_BF16,0}, {LB_BF16,0},
        {LB_BF16,0}, {LB_BF16,0}, {LB_BF16,0}, {LB_BF16,0}, {LB_BF16,0},
    },
    /* LB_F64 */ {
        {LB_F64,0}, {LB_F64,0}, {LB_F64,0}, {LB_F64,0}, {LB_F64,0},
        {LB_F64,0}, {LB_F64,0}, {LB_F64,0}, {LB_F64,0}, {LB_F64,0},
        {LB_F64,0}, {LB_F64,0}, {LB_F64,0}, {LB_F64,0}, {LB_F64,0},
    },
    /* LB_I8 */ {
        {LB_F32,0}, {LB_F16,0}, {LB_BF16,0}, {LB_F64,0}, {LB_I8,0},
        {LB_I16,0}, {LB_I32,0}, {LB_I64,0}, {LB_I16,0}, {LB_I32,0},
        {LB_I64,0}, {LB_F32,1}, {LB_I8,0}, {LB_I8,0}, {LB_F32,1},
    },
    /* LB_I16 */ {
        {LB_F32,0}, {LB_F16,0}, {LB_BF16,0}, {LB_F64,0}, {LB_I16,0},
        {LB_I16,0}, {LB_I32,0}, {LB_I64,0}, {LB_I16,0}, {LB_I32,0},
        {LB_I64,0}, {LB_F32,1}, {LB_I16,0}, {LB_I16,0}, {LB_F32,1},
    },
    /* LB_I32 */ {
        {LB_F32,0}, {LB_F16,0}, {LB_BF16,0}, {LB_F64,0}, {LB_I32,0},
        {LB_I32,0}, {LB_I32,0}, {LB_I64,0}, {LB_I32,0}, {LB_I32,0},
        {LB_I64,0}, {LB_F32,1}, {LB_I32,0}, {LB_I32,0}, {LB_F32,1},
    },
    /* LB_I64 */ {
        {LB_F32,0}, {LB_F16,0}, {LB_BF16,0}, {LB_F64,0}, {LB_I64,0},
        {LB_I64,0}, {LB_I64,0}, {LB_I64,0}, {LB_I64,0}, {LB_I64,0},
        {LB_I64,0}, {LB_F32,1}, {LB_I64,0}, {LB_I64,0}, {LB_F32,1},
    },
    /* LB_U8 */ {
        {LB_F32,0}, {LB_F16,0}, {LB_BF16,0}, {LB_F64,0}, {LB_I16,0},
        {LB_I16,0}, {LB_I32,0}, {LB_I64,0}, {LB_U8,0}, {LB_U16,0},
        {LB_U32,0}, {LB_U64,0}, {LB_U8,0}, {LB_U8,0}, {LB_F32,1},
    },
    /* LB_U16 */ {
        {LB_F32,0}, {LB_F16,0}, {LB_BF16,0}, {LB_F64,0}, {LB_I32,0},
        {LB_I32,0}, {LB_I32,0}, {LB_I64,0}, {LB_U16,0}, {LB_U16,0},
        {LB_U32,0}, {LB_U64,0}, {LB_U16,0}, {LB_U16,0}, {LB_F32,1},
    },
    /* LB_U32 */ {
        {LB_F32,0}, {LB_F16,0}, {LB_BF16,0}, {LB_F64,0}, {LB_I64,0},
        {LB_I64,0}, {LB_I64,0}, {LB_I64,0}, {LB_U32,0}, {LB_U32,0},
        {LB_U32,0}, {LB_U64,0}, {LB_U32,0}, {LB_U32,0}, {LB_F32,1},
    },
    /* LB_U64 */ {
        {LB_F32,0}, {LB_F16,0}, {LB_BF16,0}, {LB_F64,0}, {LB_F32,1},
        {LB_F32,1}, {LB_F32,1}, {LB_F32,1}, {LB_U64,0}, {LB_U64,0},
        {LB_U64,0}, {LB_U64,0}, {LB_U64,0}, {LB_U64,0}, {LB_F32,1},
    },
    /* LB_BOOL */ {
        {LB_F32,0}, {LB_F16,0}, {LB_BF16,0}, {LB_F64,0}, {LB_I8,0},
        {LB_I16,0}, {LB_I32,0}, {LB_I64,0}, {LB_U8,0}, {LB_U16,0},
        {LB_U32,0}, {LB_U64,0}, {LB_BOOL,0}, {LB_I32,1}, {LB_F32,1},
    },
    /* int */ {
        {LB_F32,0}, {LB_F16,0}, {LB_BF16,0}, {LB_F64,0}, {LB_I8,0},
        {LB_I16,0}, {LB_I32,0}, {LB_I64,0}, {LB_U8,0}, {LB_U16,0},
        {LB_U32,0}, {LB_U64,0}, {LB_I32,1}, {LB_I32,1}, {LB_F32,1},
    },
    /* float */ {
        {LB_F32,0}, {LB_F16,0}, {LB_BF16,0}, {LB_F64,0}, {LB_F32,1},
        {LB_F32,1}, {LB_F32,1}, {LB_F32,1}, {LB_F32,1}, {LB_F32,1},
        {LB_F32,1}, {LB_F32,1}, {LB_F32,1}, {LB_F32,1}, {LB_F32,1},
    },
};
/* clang-format on */
