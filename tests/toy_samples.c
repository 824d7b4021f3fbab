/* toy_samples.c - the toy formats as one more way to store a sample. */
#include <string.h>

#include "samples.h"
#include "toy_formats.h"

static bool takes_floats(lb_dtype d)
{
    return sample_kind_of(d) == KIND_F;
}

/* A label, which every read rounds to. */
static lb_array *labelled(lb_ctx *cx, lb_array *a, lb_dtype dtype)
{
    return a && dtype != LB_F32 ? lb_convert(cx, a, dtype) : a;
}

static uint32_t seed_of(const void *data)
{
    uint32_t seed = 0; /* a sample's data begin with as good a number */
    if (data) memcpy(&seed, data, 1);
    return seed;
}

static lb_array *make_scale(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                            const void *data)
{
    const unsigned shared = seed_of(data) % 4;
    return labelled(cx, toy_scale_make(cx, &shape, shared, seed_of(data)),
                    dtype);
}

/* Those that need axes leave scalars, or all but matrices, to another. */
static lb_array *make_block(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                            const void *data)
{
    if (!shape.rank) return make_scale(cx, dtype, shape, data);
    return labelled(cx, toy_block_make(cx, &shape, 32, seed_of(data)), dtype);
}

static lb_array *make_sum(lb_ctx *cx, lb_dtype dtype, lb_shape shape,
                          const void *data)
{
    if (shape.rank != 2) return make_scale(cx, dtype, shape, data);
    lb_array *base = toy_block_make(cx, &shape, 32, seed_of(data));
    return labelled(cx, toy_sum_make(cx, base, 3, 5), dtype);
}

const sample_format sample_toys[] = {
    {"toy_block", takes_floats, make_block},
    {"toy_scale", takes_floats, make_scale},
    {"toy_sum", takes_floats, make_sum},
    {NULL, NULL, NULL},
};
