/* toy_formats.c - see toy_formats.h. Written with lowbit_ext.h alone, as any
 * user's format would be. */
#include "toy_formats.h"

#include <string.h>

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Small multiples of powers of two: sums of products of them are exact. */
static float small(uint32_t *seed)
{
    return (float)((int)(next(seed) % 16) - 8) / 8.0f;
}

/* ---- block -------------------------------------------------------------- */

enum { CODES, SCALE };

static void block_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                         int64_t n, void *out)
{
    const int64_t row = s->shape.dim[s->shape.rank - 1];
    const uint8_t *code = lb_part_bytes(s, CODES);
    float *w = out;
    code += lb_part_entry(s, CODES, first);
    const int64_t odd = first % row & 1;
    lb_part_scales(cpu, s, SCALE, first, n, w);
    for (int64_t i = 0; i < n; i++) {
        const uint8_t b = code[(i + odd) / 2];
        w[i] *= (float)(((i + odd) & 1 ? b & 15 : b >> 4) - 8);
    }
}

const lb_format toy_block = {
    .struct_size = sizeof(lb_format),
    .name = "toy_block",
    .part = {{.name = "codes", .raw = true}, {.name = "scale"}},
    .relabel = true,
    .decode = block_decode,
};

/* A part with the shape from the table; every byte or float is random. */
static lb_array *part_bytes(lb_ctx *cx, lb_dtype dtype, const lb_shape *stored,
                            const lb_part *part, uint32_t *seed)
{
    const lb_shape shape = lb_part_shape(stored, part);
    lb_array *a = lb_dense(cx, dtype, &shape);
    if (!a) return NULL;
    const int64_t n = lb_size(a);
    for (int64_t i = 0; i < n; i++) {
        if (dtype == LB_F32)
            ((float *)a->store->data)[i] = small(seed) + 2.0f;
        else
            ((uint8_t *)a->store->data)[i] = (uint8_t)next(seed);
    }
    return a;
}

lb_array *toy_block_make(lb_ctx *cx, const lb_shape *shape, int64_t block,
                         uint32_t seed)
{
    lb_part t[LB_MAX_PARTS] = {0};
    const int last = shape->rank - 1;
    for (int k = 0; k <= last; k++)
        t[CODES].g[k] = t[SCALE].g[k] = 1;
    t[CODES].g[last] = 2;
    t[SCALE].g[last] = block;
    t[CODES].a = part_bytes(cx, LB_U8, shape, &t[CODES], &seed);
    t[SCALE].a = part_bytes(cx, LB_F32, shape, &t[SCALE], &seed);
    if (!t[CODES].a || !t[SCALE].a) return NULL;
    const int64_t row = shape->dim[last], bytes = (row + 1) / 2;
    uint8_t *code = t[CODES].a->store->data;
    for (int64_t i = 0; row % 2 && i < lb_size(t[CODES].a); i++)
        if (i % bytes == bytes - 1) code[i] &= 0xf0; /* canonical */
    return lb_make(cx, &toy_block, LB_F32, 0, shape, t);
}

/* ---- scale -------------------------------------------------------------- */

static void scale_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                         int64_t n, void *out)
{
    const int8_t *code = lb_part_bytes(s, CODES);
    float *w = out;
    code += lb_part_entry(s, CODES, first);
    lb_part_scales(cpu, s, SCALE, first, n, w);
    for (int64_t i = 0; i < n; i++)
        w[i] *= (float)code[i];
}

const lb_format toy_scale = {
    .struct_size = sizeof(lb_format),
    .name = "toy_scale",
    .part = {{.name = "codes", .raw = true}, {.name = "scale"}},
    .relabel = true,
    .decode = scale_decode,
};

lb_array *toy_scale_make(lb_ctx *cx, const lb_shape *shape, unsigned shared,
                         uint32_t seed)
{
    lb_part t[LB_MAX_PARTS] = {0};
    for (int k = 0; k < shape->rank; k++) {
        t[CODES].g[k] = 1;
        t[SCALE].g[k] = shared >> k & 1 ? 0 : 1;
    }
    t[CODES].a = part_bytes(cx, LB_I8, shape, &t[CODES], &seed);
    t[SCALE].a = part_bytes(cx, LB_F32, shape, &t[SCALE], &seed);
    if (!t[CODES].a || !t[SCALE].a) return NULL;
    return lb_make(cx, &toy_scale, LB_F32, 0, shape, t);
}

/* ---- sum ---------------------------------------------------------------- */

enum { BASE, A, B };

static void sum_decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                       int64_t n, void *out)
{
    enum { MAX_R = 8 };
    float *w = out;
    const int64_t r = s->part[A].own;
    lb_tile_read_flat(cpu, s->part[BASE].a, first, n, LB_C_F32, w);
    for (int64_t i = 0; i < n; i++) {
        float x[MAX_R], y[MAX_R];
        lb_tile_read_flat(cpu, s->part[A].a, lb_part_entry(s, A, first + i), r,
                          LB_C_F32, x);
        lb_tile_read_flat(cpu, s->part[B].a, lb_part_entry(s, B, first + i), r,
                          LB_C_F32, y);
        for (int64_t k = 0; k < r; k++)
            w[i] += x[k] * y[k];
    }
}

const lb_format toy_sum = {
    .struct_size = sizeof(lb_format),
    .name = "toy_sum",
    .part = {{.name = "base", .firm = true}, {.name = "a"}, {.name = "b"}},
    .relabel = true,
    .decode = sum_decode,
};

lb_array *toy_sum_make(lb_ctx *cx, lb_array *base, int64_t r, uint32_t seed)
{
    if (!base) return NULL;
    const lb_shape shape = lb_shape_of(base);
    lb_part t[LB_MAX_PARTS] = {
        [BASE] = {.g = {1, 1}, .a = base},
        [A] = {.g = {1, 0}, .own = r},
        [B] = {.g = {0, 1}, .own = r},
    };
    t[A].a = part_bytes(cx, LB_F32, &shape, &t[A], &seed);
    t[B].a = part_bytes(cx, LB_F32, &shape, &t[B], &seed);
    if (!t[A].a || !t[B].a) return NULL;
    return lb_make(cx, &toy_sum, LB_F32, 0, &shape, t);
}
