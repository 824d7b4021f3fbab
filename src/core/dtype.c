/* dtype.c - a table of the properties of each dtype.
 *
 * Promotion is the join in jax.numpy's lattice:
 *
 *   bool - u8 - u16 - u32 - u64 -+
 *       \    \     \     \       +- f* - bf16, f16 - f32 - f64
 *        i8 - i16 - i32 - i64 ---+
 *
 * where f*, the join of a signed integer and u64, is f32.
 */
#include "core/core.h"

typedef struct {
    const char *name;
    size_t size;
    lb_ctype ctype;
} traits;

static const traits table[LB_N_DTYPES] = {
    [LB_NO_DTYPE] = {"none", 0, LB_C_F32}, [LB_F32] = {"f32", 4, LB_C_F32},
    [LB_F16] = {"f16", 2, LB_C_F32},       [LB_BF16] = {"bf16", 2, LB_C_F32},
    [LB_F64] = {"f64", 8, LB_C_F64},       [LB_I8] = {"i8", 1, LB_C_I64},
    [LB_I16] = {"i16", 2, LB_C_I64},       [LB_I32] = {"i32", 4, LB_C_I64},
    [LB_I64] = {"i64", 8, LB_C_I64},       [LB_U8] = {"u8", 1, LB_C_U64},
    [LB_U16] = {"u16", 2, LB_C_U64},       [LB_U32] = {"u32", 4, LB_C_U64},
    [LB_U64] = {"u64", 8, LB_C_U64},       [LB_BOOL] = {"bool", 1, LB_C_BOOL},
};

static const traits *of(lb_dtype d)
{
    return &table[(unsigned)d < LB_N_DTYPES ? d : LB_NO_DTYPE];
}

const char *lb_dtype_name(lb_dtype d)
{
    return of(d)->name;
}

size_t lb_dtype_size(lb_dtype d)
{
    return of(d)->size;
}

lb_ctype lb_ctype_of(lb_dtype d)
{
    return of(d)->ctype;
}

size_t lb_ctype_size(lb_ctype c)
{
    return c == LB_C_F32 ? 4 : c == LB_C_BOOL ? 1 : 8;
}

bool lb_dtype_is_float(lb_dtype d)
{
    return of(d)->size > 0 && of(d)->ctype <= LB_C_F64;
}

bool lb_dtype_is_int(lb_dtype d)
{
    return of(d)->ctype == LB_C_I64 || of(d)->ctype == LB_C_U64;
}

bool lb_dtype_is_unsigned(lb_dtype d)
{
    return of(d)->ctype == LB_C_U64;
}

static lb_dtype promote_ints(lb_dtype a, lb_dtype b)
{
    static const lb_dtype next[] = {[1] = LB_I16, [2] = LB_I32, [4] = LB_I64};
    if (lb_dtype_is_unsigned(a) == lb_dtype_is_unsigned(b))
        return of(a)->size >= of(b)->size ? a : b;
    const lb_dtype s = lb_dtype_is_unsigned(a) ? b : a;
    const lb_dtype u = lb_dtype_is_unsigned(a) ? a : b;
    if (of(s)->size > of(u)->size) return s;
    return u == LB_U64 ? LB_F32 : next[of(u)->size];
}

lb_dtype lb_promote(lb_dtype a, lb_dtype b)
{
    if (!of(a)->size || !of(b)->size) return LB_NO_DTYPE;
    if (a == b || b == LB_BOOL) return a;
    if (a == LB_BOOL) return b;
    const bool fa = lb_dtype_is_float(a), fb = lb_dtype_is_float(b);
    if (!fa && !fb) return promote_ints(a, b);
    if (fa != fb) return fa ? a : b;
    if (of(a)->size != of(b)->size) return of(a)->size > of(b)->size ? a : b;
    return LB_F32; /* f16 and bf16 */
}
