/* recode.h - for lb_recode: single entries of parts. */
#ifndef LB_RECODE_H
#define LB_RECODE_H

#include "kernels/convert.h"
#include "lowbit_ext.h"

/* Entry `at` of an array of floats, in its row-major order. */
static inline float lb_recode_entry(const lb_array *a, int64_t at)
{
    static const lb_cpu plain = {.level = LB_LEVEL_REF};
    float value = 0;
    int64_t e = a->offset, rest = at;
    if (!a->store->data || a->store->elem != a->dtype) {
        lb_tile_read_flat(&plain, a, at, 1, LB_C_F32, &value);
        return value;
    }
    int64_t size = 1;
    int k = a->shape.rank - 1;
    while (k >= 0 && a->stride[k] == size)
        size *= a->shape.dim[k--];
    if (k < 0) /* row-major: without divisions, which take most of the time */
        e += at;
    else
        for (k = a->shape.rank - 1; k >= 0; rest /= a->shape.dim[k], k--)
            e += rest % a->shape.dim[k] * a->stride[k];
    lb_load_run(a->dtype,
                (const char *)a->store->data +
                    (size_t)e * lb_dtype_size(a->dtype),
                1, 1, &value);
    return value;
}

/* The entry of a part that belongs to element e. */
static inline float lb_recode_get(const lb_store *s, int part, int64_t e)
{
    return lb_recode_entry(s->part[part].a, lb_part_entry(s, part, e));
}

/* Stores it, rounded to the part's dtype. */
static inline void lb_recode_set(lb_store *s, int part, int64_t e, float value)
{
    const lb_dtype dtype = s->part[part].a->dtype;
    lb_store_run(LB_C_F32, &value, dtype, 1,
                 (char *)lb_part_place(s, part) +
                     (size_t)lb_part_entry(s, part, e) * lb_dtype_size(dtype));
}

#endif
