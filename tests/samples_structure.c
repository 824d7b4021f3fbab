/* samples_structure.c - samples of the primitives that move elements or create
 * arrays. */
#include <string.h>

#include "samples.h"

/* Cycles through all dtypes, over the samples of a primitive. */
typedef struct maker {
    sample_list *list;
    const char *prim;
    int dtype;
} maker;

static lb_dtype next_dtype(maker *m)
{
    return (lb_dtype)(m->dtype++ % (LB_N_DTYPES - 1) + 1);
}

/* A sample with one operand of the next dtype and these dims. */
static sample *one(maker *m, lb_shape shape)
{
    sample *s = sample_add(m->list, m->prim);
    sample_in(s, next_dtype(m), shape, VALUES_BITS);
    return s;
}

static void copy_ints(int *to, int n, const int *from)
{
    memcpy(to, from, (size_t)n * sizeof *to);
}

static void copy_dims(int64_t *to, int n, const int64_t *from)
{
    memcpy(to, from, (size_t)n * sizeof *to);
}

#define INTS(...)                                                              \
    (const int[LB_MAX_RANK])                                                   \
    {                                                                          \
        __VA_ARGS__                                                            \
    }
#define DIMS(...)                                                              \
    (const int64_t[LB_MAX_RANK])                                               \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* ---- views -------------------------------------------------------------- */

/* Pairs of operands of one shape, for all pairs of floats. */
static void stes(maker *m, bool large)
{
    static const lb_dtype of[] = {LB_F32, LB_BF16, LB_F16, LB_F64};
    const lb_shape shape[] = {LB_SHAPE(3, 5), {0}, LB_SHAPE(2, 0)};
    for (int i = 0; i < (large ? 1 : 16); i++) {
        sample *s = sample_add(m->list, m->prim);
        for (int k = 0; k < 2; k++)
            sample_in(s, of[k ? i % 4 : i / 4],
                      large ? LB_SHAPE(300, 257) : shape[i % 3], VALUES_BITS);
    }
}

static void copies(maker *m, bool large)
{
    if (large) {
        one(m, LB_SHAPE(300, 1057));
        one(m, LB_SHAPE(300, 257));
        return;
    }
    for (int d = 1; d < LB_N_DTYPES; d++) {
        one(m, LB_SHAPE(3, 4, 5));
        one(m, LB_SHAPE(71, 37));
    }
    one(m, (lb_shape){0});
    one(m, LB_SHAPE(5));
    one(m, LB_SHAPE(3, 0, 2));
    one(m, LB_SHAPE(2, 3, 2, 3, 2));
    one(m, LB_SHAPE(2, 1, 3, 1, 2, 1, 2, 2));
}

/* Each dtype to dtypes of the same width, half, a quarter and an eighth of it,
 * and back. */
static void bitcasts(maker *m, bool large)
{
    static const lb_dtype by_width[4][3] = {{LB_I8, LB_U8, LB_U8},
                                            {LB_BF16, LB_I16, LB_F16},
                                            {LB_F32, LB_I32, LB_U32},
                                            {LB_F64, LB_I64, LB_U64}};
    const lb_shape of[] = {
        LB_SHAPE(3, 5), {0}, LB_SHAPE(2, 3, 37), LB_SHAPE(0), LB_SHAPE(1, 70)};
    for (int i = 0; i < (large ? 16 : 48); i++) {
        const int from = i % 4, to = i / 4 % 4, k = i / 16;
        lb_shape shape = large ? LB_SHAPE(300, 257) : of[i % 5];
        if (to > from) shape.dim[shape.rank++] = 1 << (to - from);
        sample *s = sample_add(m->list, m->prim);
        sample_in(s, by_width[from][k], shape, VALUES_BITS);
        s->params.convert.dtype = by_width[to][(k + from) % 3];
    }
    if (large) return;
    sample *s = sample_add(m->list, m->prim); /* nothing to do */
    sample_in(s, LB_F32, LB_SHAPE(3, 4), VALUES_BITS);
    s->params.convert.dtype = LB_F32;
}

static void add_transpose(maker *m, lb_shape shape, const int *perm)
{
    copy_ints(one(m, shape)->params.transpose.perm, shape.rank, perm);
}

static void transposes(maker *m, bool large)
{
    if (large) {
        add_transpose(m, LB_SHAPE(300, 257), INTS(1, 0));
        return;
    }
    for (int i = 0; i < 4; i++) {
        add_transpose(m, LB_SHAPE(3, 4), INTS(1, 0));
        add_transpose(m, LB_SHAPE(3, 4, 5), INTS(2, 0, 1));
        add_transpose(m, LB_SHAPE(2, 3, 4, 5), INTS(0, 3, 1, 2));
    }
    add_transpose(m, (lb_shape){0}, INTS(0));
    add_transpose(m, LB_SHAPE(4), INTS(0));
    add_transpose(m, LB_SHAPE(4, 0), INTS(1, 0));
    add_transpose(m, LB_SHAPE(1, 1, 5), INTS(2, 1, 0));
}

static void add_broadcast(maker *m, lb_shape shape, const int *dims,
                          lb_shape to)
{
    lb_broadcast_params *p = &one(m, shape)->params.broadcast;
    p->shape = to;
    copy_ints(p->dims, shape.rank, dims);
}

static void broadcasts(maker *m, bool large)
{
    if (large) {
        add_broadcast(m, LB_SHAPE(257), INTS(1), LB_SHAPE(300, 257));
        return;
    }
    for (int i = 0; i < 3; i++) {
        add_broadcast(m, (lb_shape){0}, INTS(0), LB_SHAPE(3, 4));
        add_broadcast(m, LB_SHAPE(3), INTS(0), LB_SHAPE(3, 4));
        add_broadcast(m, LB_SHAPE(3), INTS(1), LB_SHAPE(2, 3));
        add_broadcast(m, LB_SHAPE(1, 3), INTS(1, 2), LB_SHAPE(4, 2, 3));
        add_broadcast(m, LB_SHAPE(3, 2), INTS(2, 0), LB_SHAPE(2, 5, 3));
    }
    add_broadcast(m, (lb_shape){0}, INTS(0), (lb_shape){0});
    add_broadcast(m, LB_SHAPE(0), INTS(1), LB_SHAPE(3, 0));
    add_broadcast(m, LB_SHAPE(1), INTS(0), LB_SHAPE(0));
}

static void add_slice(maker *m, lb_shape shape, const int64_t *start,
                      const int64_t *limit, const int64_t *stride)
{
    lb_slice_params *p = &one(m, shape)->params.slice;
    copy_dims(p->start, shape.rank, start);
    copy_dims(p->limit, shape.rank, limit);
    copy_dims(p->stride, shape.rank, stride);
}

static void slices(maker *m, bool large)
{
    if (large) {
        add_slice(m, LB_SHAPE(300, 257), DIMS(1, 3), DIMS(299, 250),
                  DIMS(1, 2));
        return;
    }
    for (int i = 0; i < 4; i++) {
        add_slice(m, LB_SHAPE(9), DIMS(1), DIMS(8), DIMS(3));
        add_slice(m, LB_SHAPE(5, 7), DIMS(1, 3), DIMS(4, 7), DIMS(1, 1));
        add_slice(m, LB_SHAPE(5, 4, 3), DIMS(0, 1, 0), DIMS(5, 4, 3),
                  DIMS(2, 3, 1));
    }
    add_slice(m, (lb_shape){0}, DIMS(0), DIMS(0), DIMS(0));
    add_slice(m, LB_SHAPE(5, 4), DIMS(5, 0), DIMS(5, 4), DIMS(1, 1));
    add_slice(m, LB_SHAPE(0), DIMS(0), DIMS(0), DIMS(7));
    add_slice(m, LB_SHAPE(3, 2, 2, 4), DIMS(0, 1, 0, 1), DIMS(3, 2, 2, 2),
              DIMS(1, 1, 1, 9));
}

static void add_reverse(maker *m, lb_shape shape, const lb_axes *axes)
{
    one(m, shape)->params.reverse.axes = *axes;
}

static void reverses(maker *m, bool large)
{
    if (large) {
        add_reverse(m, LB_SHAPE(300, 257), LB_AXES(1));
        return;
    }
    for (int i = 0; i < 4; i++) {
        add_reverse(m, LB_SHAPE(7), LB_AXES(0));
        add_reverse(m, LB_SHAPE(3, 4), LB_AXES(1));
        add_reverse(m, LB_SHAPE(2, 3, 4), LB_AXES(2, 0));
    }
    add_reverse(m, (lb_shape){0}, &(const lb_axes){0});
    add_reverse(m, LB_SHAPE(2, 3), &(const lb_axes){0});
    add_reverse(m, LB_SHAPE(3, 0, 2), LB_AXES(0, 1));
    add_reverse(m, LB_SHAPE(1, 5, 1, 2), LB_AXES(0, 1, 2, 3));
}

static void add_reshape(maker *m, lb_shape shape, const int *perm, lb_shape to)
{
    lb_reshape_params *p = &one(m, shape)->params.reshape;
    p->shape = to;
    p->permute = perm != NULL;
    if (perm) copy_ints(p->perm, shape.rank, perm);
}

static void reshapes(maker *m, bool large)
{
    if (large) {
        add_reshape(m, LB_SHAPE(300, 257), INTS(1, 0), LB_SHAPE(100, 771));
        add_reshape(m, LB_SHAPE(256, 512), INTS(1, 0), LB_SHAPE(131072));
        return;
    }
    for (int i = 0; i < 3; i++) {
        add_reshape(m, LB_SHAPE(3, 4), NULL, LB_SHAPE(12));
        add_reshape(m, LB_SHAPE(12), NULL, LB_SHAPE(2, 3, 2));
        add_reshape(m, LB_SHAPE(3, 4, 5), NULL, LB_SHAPE(5, 12));
        add_reshape(m, LB_SHAPE(3, 4), INTS(1, 0), LB_SHAPE(2, 6));
        add_reshape(m, LB_SHAPE(2, 3, 4), INTS(2, 0, 1), LB_SHAPE(8, 3));
    }
    add_reshape(m, LB_SHAPE(1, 1), NULL, (lb_shape){0});
    add_reshape(m, (lb_shape){0}, NULL, LB_SHAPE(1, 1, 1));
    add_reshape(m, LB_SHAPE(3, 0), NULL, LB_SHAPE(0, 7));
    add_reshape(m, LB_SHAPE(6, 1, 4), NULL, LB_SHAPE(1, 24, 1));
    add_reshape(m, LB_SHAPE(2, 3, 4, 5), INTS(3, 1, 0, 2), LB_SHAPE(10, 12));
}

/* ---- joining, padding, updating ----------------------------------------- */

static void add_concatenate(maker *m, int axis, int n, const lb_shape *shape)
{
    const lb_dtype dtype = next_dtype(m);
    sample *s = sample_add(m->list, m->prim);
    s->params.concatenate.axis = axis;
    for (int i = 0; i < n; i++)
        sample_in(s, dtype, shape[i], VALUES_BITS);
}
#define SHAPES(...)                                                            \
    (int)(sizeof((lb_shape[]){__VA_ARGS__}) / sizeof(lb_shape)),               \
        (const lb_shape[])                                                     \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

static void concatenates(maker *m, bool large)
{
    if (large) {
        add_concatenate(
            m, 1,
            SHAPES(LB_SHAPE(300, 257), LB_SHAPE(300, 400), LB_SHAPE(300, 3)));
        return;
    }
    for (int i = 0; i < 4; i++) {
        add_concatenate(m, 0, SHAPES(LB_SHAPE(3), LB_SHAPE(4)));
        add_concatenate(m, 1,
                        SHAPES(LB_SHAPE(3, 2), LB_SHAPE(3, 5), LB_SHAPE(3, 1)));
        add_concatenate(m, 0, SHAPES(LB_SHAPE(2, 3, 4), LB_SHAPE(1, 3, 4)));
        add_concatenate(m, 1,
                        SHAPES(LB_SHAPE(2, 1, 3, 2), LB_SHAPE(2, 4, 3, 2)));
    }
    add_concatenate(m, 0, SHAPES(LB_SHAPE(5, 2)));
    add_concatenate(m, 0,
                    SHAPES(LB_SHAPE(2, 3), LB_SHAPE(0, 3), LB_SHAPE(1, 3)));
    add_concatenate(m, 0, SHAPES(LB_SHAPE(2, 0), LB_SHAPE(3, 0)));
}

static void add_pad(maker *m, lb_shape shape, const int64_t *lo,
                    const int64_t *hi, const int64_t *interior)
{
    sample *s = one(m, shape);
    sample_in(s, s->in[0].dtype, (lb_shape){0}, VALUES_BITS);
    copy_dims(s->params.pad.lo, shape.rank, lo);
    copy_dims(s->params.pad.hi, shape.rank, hi);
    copy_dims(s->params.pad.interior, shape.rank, interior);
}

static void pads(maker *m, bool large)
{
    if (large) {
        add_pad(m, LB_SHAPE(300, 257), DIMS(3, 1), DIMS(0, 5), DIMS(0, 0));
        add_pad(m, LB_SHAPE(300, 257), DIMS(-3, 1), DIMS(0, -5), DIMS(1, 0));
        return;
    }
    for (int i = 0; i < 4; i++) {
        add_pad(m, LB_SHAPE(5), DIMS(2), DIMS(3), DIMS(0));
        add_pad(m, LB_SHAPE(5), DIMS(-2), DIMS(1), DIMS(2));
        add_pad(m, LB_SHAPE(3, 4), DIMS(1, 0), DIMS(0, 2), DIMS(0, 1));
        add_pad(m, LB_SHAPE(3, 4, 2), DIMS(-1, 1, 0), DIMS(0, -2, 3),
                DIMS(0, 0, 0));
    }
    add_pad(m, (lb_shape){0}, DIMS(0), DIMS(0), DIMS(0));
    add_pad(m, LB_SHAPE(0, 3), DIMS(2, 0), DIMS(1, 1), DIMS(5, 0));
    add_pad(m, LB_SHAPE(4), DIMS(-2), DIMS(-2), DIMS(0));
    add_pad(m, LB_SHAPE(4), DIMS(-9), DIMS(7), DIMS(0));
    add_pad(m, LB_SHAPE(2, 3, 2, 2), DIMS(1, 0, 2, 0), DIMS(0, 1, 0, 1),
            DIMS(1, 2, 0, 3));
}

static lb_dtype index_dtype(int i)
{
    static const lb_dtype d[] = {LB_I32, LB_I64, LB_U8,  LB_I8,
                                 LB_U64, LB_I16, LB_U32, LB_U16};
    return d[i % 8];
}

/* Starts from two below to two above the valid range, to test clamping. */
static void add_starts(maker *m, sample *s, lb_shape shape)
{
    for (int k = 0; k < shape.rank; k++) {
        const lb_dtype d = index_dtype(m->dtype + k);
        sample_operand *o = sample_in(s, d, (lb_shape){0}, VALUES_INDEX);
        o->lo = sample_kind_of(d) == KIND_U ? 0 : -2;
        o->hi = shape.dim[k] + 2;
    }
}

static void add_dynamic(maker *m, lb_shape shape, lb_shape part)
{
    sample *s = one(m, shape);
    if (strcmp(m->prim, "dynamic_slice") == 0)
        copy_dims(s->params.dynamic_slice.sizes, shape.rank, part.dim);
    else
        sample_in(s, s->in[0].dtype, part, VALUES_BITS);
    add_starts(m, s, shape);
}

static void dynamics(maker *m, bool large)
{
    if (large) {
        add_dynamic(m, LB_SHAPE(300, 257), LB_SHAPE(200, 100));
        return;
    }
    for (int i = 0; i < 5; i++) {
        add_dynamic(m, LB_SHAPE(7), LB_SHAPE(3));
        add_dynamic(m, LB_SHAPE(5, 6), LB_SHAPE(2, 6));
        add_dynamic(m, LB_SHAPE(3, 4, 5), LB_SHAPE(1, 2, 3));
        add_dynamic(m, LB_SHAPE(2, 3, 4, 2), LB_SHAPE(2, 1, 2, 2));
    }
    add_dynamic(m, (lb_shape){0}, (lb_shape){0});
    add_dynamic(m, LB_SHAPE(4, 3), LB_SHAPE(0, 3));
    add_dynamic(m, LB_SHAPE(0, 3), LB_SHAPE(0, 2));
    add_dynamic(m, LB_SHAPE(4, 3), LB_SHAPE(4, 3));
}

/* ---- gather and scatter_add --------------------------------------------- */

/* a, starts, and the shape of the result of gather. */
typedef struct gather_case {
    lb_shape a, starts, out;
    lb_gather_dims dims;
} gather_case;

static void add_gather(maker *m, const gather_case *g, lb_bounds bounds)
{
    const bool scatter = strcmp(m->prim, "scatter_add") == 0;
    const lb_dtype d = next_dtype(m), index = index_dtype(m->dtype);
    if (scatter && d == LB_BOOL) return;
    sample *s = sample_add(m->list, m->prim);
    const sample_kind kind = scatter ? VALUES_TAME : VALUES_BITS;
    sample_in(s, d, g->a, kind);
    sample_operand *o = sample_in(s, index, g->starts, VALUES_INDEX);
    o->lo = sample_kind_of(index) == KIND_U ? 0 : -1;
    o->hi = g->a.dim[0] + 1;
    if (scatter) sample_in(s, d, g->out, kind);
    s->params.gather = g->dims;
    s->params.gather.bounds = bounds;
    s->params.gather.has_fill = m->dtype % 2;
    s->params.gather.fill = 1;
}

static void gathers(maker *m, bool large)
{
    const gather_case c[] = {
        /* rows of a matrix */
        {LB_SHAPE(6, 4),
         LB_SHAPE(5, 1),
         LB_SHAPE(5, 4),
         {.offset_dims = {1, {1}},
          .collapsed_slice_dims = {1, {0}},
          .start_index_map = {1, {0}},
          .index_vector_dim = 1,
          .slice_sizes = {1, 4}}},
        /* columns, the index vector left out */
        {LB_SHAPE(4, 6),
         LB_SHAPE(3, 2),
         LB_SHAPE(3, 2, 4),
         {.offset_dims = {1, {2}},
          .collapsed_slice_dims = {1, {1}},
          .start_index_map = {1, {1}},
          .index_vector_dim = 2,
          .slice_sizes = {4, 1}}},
        /* single elements, the index vector first */
        {LB_SHAPE(5, 4),
         LB_SHAPE(2, 7),
         LB_SHAPE(7),
         {.collapsed_slice_dims = {2, {0, 1}},
          .start_index_map = {2, {1, 0}},
          .index_vector_dim = 0,
          .slice_sizes = {1, 1}}},
        /* windows */
        {LB_SHAPE(6, 5, 3),
         LB_SHAPE(2, 2),
         LB_SHAPE(2, 2, 3, 3),
         {.offset_dims = {3, {1, 2, 3}},
          .start_index_map = {2, {0, 1}},
          .index_vector_dim = 1,
          .slice_sizes = {2, 3, 3}}},
        /* batches: row b of starts selects from row b of a */
        {LB_SHAPE(3, 5, 2),
         LB_SHAPE(3, 4, 1),
         LB_SHAPE(3, 4, 2),
         {.offset_dims = {1, {2}},
          .collapsed_slice_dims = {1, {1}},
          .operand_batching_dims = {1, {0}},
          .start_indices_batching_dims = {1, {0}},
          .start_index_map = {1, {1}},
          .index_vector_dim = 2,
          .slice_sizes = {1, 1, 2}}},
        /* nothing selected */
        {LB_SHAPE(6, 4),
         LB_SHAPE(0, 1),
         LB_SHAPE(0, 4),
         {.offset_dims = {1, {1}},
          .collapsed_slice_dims = {1, {0}},
          .start_index_map = {1, {0}},
          .index_vector_dim = 1,
          .slice_sizes = {1, 4}}},
        /* one window, its start a vector: no batch axes */
        {LB_SHAPE(5, 6),
         LB_SHAPE(2),
         LB_SHAPE(3, 2),
         {.offset_dims = {2, {0, 1}},
          .start_index_map = {2, {0, 1}},
          .index_vector_dim = 0,
          .slice_sizes = {3, 2}}},
        /* an empty index */
        {LB_SHAPE(2, 3),
         LB_SHAPE(4, 0),
         LB_SHAPE(4, 2, 3),
         {.offset_dims = {2, {1, 2}},
          .index_vector_dim = 1,
          .slice_sizes = {2, 3}}},
    };
    enum { CASES = sizeof c / sizeof *c };
    if (large) {
        /* scatter_add divides long rows only */
        const bool scatter = strcmp(m->prim, "scatter_add") == 0;
        const int64_t n = scatter ? 5000 : 300, k = scatter ? 30 : 500;
        gather_case rows = c[0];
        rows.a = LB_SHAPE(k, n);
        rows.starts = LB_SHAPE(400, 1);
        rows.out = LB_SHAPE(400, n);
        rows.dims.slice_sizes[1] = n;
        m->dtype = 0;
        add_gather(m, &rows, LB_BOUNDS_CLAMP);
        add_gather(m, &rows, LB_BOUNDS_FILL);
        return;
    }
    for (int i = 0; i < 3 * CASES; i++)
        for (int b = LB_BOUNDS_CLAMP; b <= LB_BOUNDS_FILL; b++)
            add_gather(m, &c[i % CASES], (lb_bounds)b);
}

/* ---- rotary position embedding ------------------------------------------- */

static void ropes(maker *m, bool large)
{
    const struct {
        lb_shape x;
        int axis;
        int64_t dims;
    } c[] = {{LB_SHAPE(5, 8), 0, 8},       {LB_SHAPE(2, 3, 8), 1, 6},
             {LB_SHAPE(3, 2, 8), 0, 8},    {LB_SHAPE(0, 4), 0, 4},
             {LB_SHAPE(2, 1, 3, 6), 1, 2}, {LB_SHAPE(2, 3, 0), 1, 0},
             {LB_SHAPE(3, 5), 0, 4}};
    static const lb_dtype of[] = {LB_F32, LB_BF16, LB_F64, LB_F16};
    enum { CASES = sizeof c / sizeof *c };
    for (int i = 0; i < (large ? 2 : 4 * CASES); i++) {
        const lb_shape x = large ? LB_SHAPE(3, 70, 300) : c[i % CASES].x;
        const int axis = large ? 1 : c[i % CASES].axis;
        sample *s = sample_add(m->list, m->prim);
        sample_in(s, of[i % 4], x, VALUES_TAME);
        sample_operand *at = sample_in(
            s, i % 3 ? LB_I32 : LB_U8,
            i % 2 ? (lb_shape){0} : LB_SHAPE(x.dim[axis]), VALUES_INDEX);
        at->lo = i % 3 ? -3 : 0;
        at->hi = 100;
        s->params.rope = (lb_rope_params){
            .axis = axis,
            .interleaved = i % 5 < 2,
            .inverse = i % 7 == 3,
            .scaling = (lb_rope_scaling)(i % 4),
            .dims = large ? 300 : c[i % CASES].dims,
            .base = i % 3 ? 10000 : 500,
            .factor = 4,
            .low = 1,
            .high = 8,
            .original = 64,
            .magnitude = i % 4 == 3 ? 1.25 : 1,
        };
    }
}

static void attentions(maker *m, bool large)
{
    const struct {
        int64_t batch, heads, kv, queries, keys, d, dv;
    } c[] = {{0, 2, 1, 3, 5, 4, 6},    {2, 4, 2, 2, 4, 3, 2},
             {0, 1, 1, 1, 7, 8, 8},    {2, 2, 2, 0, 3, 4, 4},
             {0, 2, 2, 3, 0, 4, 4},    {2, 3, 1, 9, 2, 5, 1},
             {0, 2, 1, 70, 40, 80, 30}};
    static const lb_dtype of[] = {LB_F32, LB_BF16, LB_F64, LB_F16};
    for (int i = 0; i < (large ? 2 : 24); i++) {
        const int k = large ? 6 : i % 6;
        const bool qp = i % 3 == 1, kp = i % 5 == 2;
        const int64_t b = c[k].batch;
        sample *s = sample_add(m->list, m->prim);
        for (int j = 0; j < 3; j++) {
            int64_t dim[4] = {b, j ? c[k].kv : c[k].heads,
                              j ? c[k].keys : c[k].queries,
                              j == 2 ? c[k].dv : c[k].d};
            if (j ? kp : qp) {
                const int64_t t = dim[1];
                dim[1] = dim[2];
                dim[2] = t;
            }
            sample_in(s, of[(j ? i / 4 : i) % 4],
                      lb_shape_make(b ? 4 : 3, b ? dim : dim + 1), VALUES_TAME);
        }
        sample_operand *n = sample_in(
            s, i % 2 ? LB_I32 : LB_U64,
            b && i % 4 < 2 ? LB_SHAPE(b) : (lb_shape){0}, VALUES_INDEX);
        n->lo = 1;
        n->hi = 9;
        s->params.attention = (lb_attention_params){
            .scale = 0.5,
            .soft_cap = i % 4 == 2 ? 1.5 : 0,
            .window = i % 6 == 5 ? 2 : 0,
            .causal = i % 2,
            .q_positions_first = qp,
            .kv_positions_first = kp,
        };
    }
}

/* ---- from nothing ------------------------------------------------------- */

static void iotas(maker *m, bool large)
{
    const lb_shape shape[] = {LB_SHAPE(7), LB_SHAPE(3, 5), LB_SHAPE(2, 3, 4),
                              LB_SHAPE(0, 2), LB_SHAPE(300)};
    for (int i = 0; i < 39; i++) {
        const lb_dtype d = next_dtype(m);
        if (d == LB_BOOL) continue;
        lb_iota_params *p = &sample_add(m->list, m->prim)->params.iota;
        p->dtype = d;
        p->shape = large ? LB_SHAPE(300, 257) : shape[i % 5];
        p->axis = i % p->shape.rank;
        if (large && i > 1) return;
    }
}

static void randoms(maker *m, bool large)
{
    const lb_shape shape[] = {{0}, LB_SHAPE(5), LB_SHAPE(3, 67), LB_SHAPE(0)};
    const bool bits = strcmp(m->prim, "random_bits") == 0;
    for (int i = 0; i < 39; i++) {
        const lb_dtype d = next_dtype(m);
        const int kind = sample_kind_of(d);
        if (bits ? !(kind & (KIND_I | KIND_U)) : kind != KIND_F) continue;
        lb_random_uniform_params *p =
            &sample_add(m->list, m->prim)->params.uniform;
        p->of.key = (lb_key){42, (uint64_t)i};
        p->of.dtype = d;
        p->of.shape = large ? LB_SHAPE(300, 257) : shape[i % 4];
        p->lo = -1.5;
        p->hi = 3;
    }
}

static void permutations(maker *m, bool large)
{
    static const int64_t n[] = {0, 1, 2, 17, 300};
    for (int i = 0; i < 5; i++) {
        lb_random_permutation_params *p =
            &sample_add(m->list, m->prim)->params.permutation;
        p->key = (lb_key){7, (uint64_t)i};
        p->n = large ? 70000 + i : n[i];
    }
}

/* clang-format off */
static const struct {
    const char *prim;
    void (*make)(maker *, bool large);
} makers[] = {
    {"copy", copies},               {"transpose", transposes},
    {"stop_gradient", copies},      {"ste", stes},
    {"bitcast_convert", bitcasts},
    {"broadcast_in_dim", broadcasts}, {"slice", slices},
    {"reverse", reverses},          {"reshape", reshapes},
    {"concatenate", concatenates},  {"pad", pads},
    {"dynamic_slice", dynamics},    {"dynamic_update_slice", dynamics},
    {"rope", ropes},                {"attention", attentions},
    {"gather", gathers},            {"scatter_add", gathers},
    {"iota", iotas},                {"random_bits", randoms},
    {"random_uniform", randoms},    {"random_normal", randoms},
    {"random_permutation", permutations},
};
/* clang-format on */

bool samples_structure(const char *prim, sample_size size, sample_list *list)
{
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        if (strcmp(makers[i].prim, prim) != 0) continue;
        maker m = {.list = list, .prim = makers[i].prim};
        makers[i].make(&m, size == SAMPLES_LARGE);
        return true;
    }
    return false;
}
