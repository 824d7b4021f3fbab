/* reduce.c - sum, prod, max, min, and, or over any axes.
 *
 * The order of a float sum is a tree that depends only on the logical shape,
 * never on strides, format, tiles, threads or level. The n elements of one
 * result, in row-major order of the reduced axes, are divided into chunks of
 * 1024. In a chunk, lane l of L (16 for f32, 8 for f64) accumulates elements l,
 * l+L, l+2L, ... in order, starting with the identity; lanes are combined in
 * halves, (l, l + L/2), (l, l + L/4), ...; then neighboring chunks are
 * combined, level by level, where an odd last one moves up unchanged. A group
 * of 2^g chunks is a complete subtree: if there are few results, threads share
 * the work by groups.
 */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "lowbit_params.h"
#include "prims/cuts.h"
#include "prims/dims.h"
#include "prims/reduce_ops.h"
#include "prims/reduce_vjp.h"

enum {
    CHUNK = 1024,
    ROW_GROUP = 64,     /* chunks per unit for contiguous rows */
    COL_GROUP = 4,      /* and for columns */
    COL_BYTES = 1024,   /* bytes of a row of a block of columns: lanes fit in
                         * L1 */
    COL_DECODED = 4096, /* the same if decoded, where long runs are faster */
    TILE = 4096,        /* elements read at a time if they must be decoded */
    COL_TILE = 65536,   /* the same for columns: four rows per lane */
    FEW = 4             /* columns: fewer are not worth strided access */
};

/* ---- geometry ----------------------------------------------------------- */

/* A block is w results along one kept axis; a unit is a block, or one group of
 * chunks of a block. */
typedef struct {
    const lb_reducer *op;
    lb_value identity;
    lb_ctype ctype;
    const char *data; /* the elements, or NULL: they must be decoded */
    int64_t size;     /* of an element; signed because offsets may be
                       * negative */
    lb_dims keep, gone;
    int along;    /* the kept axis along which a block extends */
    int64_t step; /* stride of its results */
    int64_t results, n;
    bool across; /* columns: adjacent results are adjacent in memory */
    bool cross;  /* the last axis is not the contiguous one */
    int64_t w, across_blocks, blocks;
    int64_t chunks, group, groups;
} reduce_job;

static int nearest(const lb_dims *x)
{
    int best = x->n - 1;
    for (int k = x->n - 1; k >= 0; k--)
        if (lb_distance(x->stride[k]) < lb_distance(x->stride[best])) best = k;
    return best;
}

/* Chooses the direction and width of blocks. Results do not depend on it. */
static void choose_blocks(reduce_job *j, bool as_is)
{
    const int inner = nearest(&j->gone), outer = nearest(&j->keep);
    const int64_t wide =
        (as_is ? COL_BYTES : COL_DECODED) / (int64_t)j->op->size;
    j->cross = inner != j->gone.n - 1;
    j->across = lb_distance(j->keep.stride[outer]) <
                    lb_distance(j->gone.stride[inner]) &&
                j->keep.dim[outer] >= FEW;
    j->along = j->across ? outer : j->keep.n - 1;
    j->chunks = lb_ceil_div(j->n, CHUNK);
    j->group = j->across ? COL_GROUP : ROW_GROUP;
    j->groups = lb_ceil_div(j->chunks, j->group);
    if (j->across)
        j->w = wide;
    else
        j->w = j->n > CHUNK ? 1 : 4 * TILE / lb_max_i64(j->n, 16);
    j->w = lb_max_i64(lb_min_i64(j->w, j->keep.dim[j->along]), 1);
    j->across_blocks = lb_ceil_div(j->keep.dim[j->along], j->w);
    j->blocks = j->results == 0
                    ? 0
                    : j->results / j->keep.dim[j->along] * j->across_blocks;
    j->step = 1;
    for (int k = j->along + 1; k < j->keep.n; k++)
        j->step *= j->keep.dim[k];
}

static lb_reduce_op op_of(const lb_prim *prim); /* in the order of EACH,
                                                 * below */

static void prepare(const lb_call *c, reduce_job *j)
{
    const lb_array *a = c->in[0];
    const lb_reduce_params *p = c->params;
    const lb_reduce_op op = op_of(c->prim);
    *j = (reduce_job){.ctype = lb_ctype_of(a->dtype), .results = 1, .n = 1};
    j->op = lb_reducer_for(c->cpu, op, j->ctype);
    j->size = (int64_t)j->op->size;
    j->identity = lb_reduce_identity(op, a->dtype);
    for (int k = 0; k < a->shape.rank; k++) {
        const bool gone = lb_axes_has(&p->axes, k);
        *(gone ? &j->n : &j->results) *= a->shape.dim[k];
        lb_dims_add(gone ? &j->gone : &j->keep, a->shape.dim[k], a->stride[k]);
    }
    lb_dims_end(&j->keep);
    lb_dims_end(&j->gone);
    const bool as_is = lb_elements(a) && a->dtype != LB_BOOL &&
                       lb_dtype_size(a->dtype) == j->op->size;
    choose_blocks(j, as_is);
    const bool runs = j->across ? j->keep.stride[j->along] == 1
                                : j->gone.n == 1 && j->gone.stride[0] == 1;
    if (as_is && (runs || (!j->across && j->n <= 1))) j->data = lb_elements(a);
}

/* ---- reading ------------------------------------------------------------ */

/* A block of results: its offsets in the operand and in the result. */
typedef struct {
    int64_t from, to, j, w;
} block;

static block block_at(const reduce_job *j, int64_t b)
{
    const int64_t at = b % j->across_blocks * j->w;
    block x = {0, 0, at, 0};
    int64_t i = b / j->across_blocks, step = 1;
    x.w = lb_min_i64(j->w, j->keep.dim[j->along] - at);
    for (int k = j->keep.n - 1; k >= 0; step *= j->keep.dim[k--]) {
        const int64_t e = k == j->along ? at : i % j->keep.dim[k];
        if (k != j->along) i /= j->keep.dim[k];
        x.from += e * j->keep.stride[k];
        x.to += e * step;
    }
    return x;
}

/* Reads a plane of the operand into a tile. */
static void read_plane(const lb_cpu *cpu, const lb_array *a, int64_t from,
                       int64_t rows, int64_t row_stride, int64_t n,
                       int64_t stride, lb_ctype c, void *tile)
{
    const lb_array v = lb_plane(a, from, rows, row_stride, n, stride);
    lb_tile_read(cpu, &v, (int64_t[2]){0}, v.shape.dim, c, tile);
}

/* Reads elements [first, first + n) of one result: pieces of the last axis, or
 * several full rows together, which is faster for a transposed operand. */
static void read_range(const reduce_job *j, const lb_cpu *cpu,
                       const lb_array *a, int64_t from, int64_t first,
                       int64_t n, char *tile)
{
    const int last = j->gone.n - 1;
    const int64_t row = j->gone.dim[last];
    const int64_t outer = last > 0 ? j->gone.dim[last - 1] : 1;
    for (int64_t m; n > 0; first += m, n -= m) {
        int64_t rows = 1;
        const int64_t at = first % row;
        if (at || n < row)
            m = lb_min_i64(n, row - at);
        else {
            rows = lb_min_i64(n / row, outer - first / row % outer);
            m = rows * row;
        }
        read_plane(cpu, a, from + lb_dims_offset(&j->gone, first), rows,
                   last > 0 ? j->gone.stride[last - 1] : 0, m / rows,
                   j->gone.stride[last], j->ctype, tile);
        tile += (size_t)m * j->op->size;
    }
}

/* ---- evaluation --------------------------------------------------------- */

/* Combines n partial results of w results each, stride apart, level by level
 * into the first. */
static void fold(const lb_reducer *op, char *part, int64_t n, int64_t stride,
                 int64_t w)
{
    const size_t size = (size_t)stride * op->size;
    for (; n > 1; n = n / 2 + n % 2) {
        for (int64_t i = 0; i < n / 2; i++)
            op->join(part + 2 * (size_t)i * size,
                     part + (2 * (size_t)i + 1) * size, w,
                     part + (size_t)i * size);
        if (n % 2)
            memmove(part + (size_t)(n / 2) * size,
                    part + (size_t)(n - 1) * size, (size_t)w * op->size);
    }
}

/* Writes n identities. */
static void fill(const reduce_job *j, int64_t n, char *to)
{
    const size_t size = (size_t)n * j->op->size;
    memcpy(to, &j->identity, j->op->size);
    for (size_t have = j->op->size; have < size; have *= 2)
        memcpy(to + have, to, have < size - have ? have : size - have);
}

/* Rows of a single chunk: all results of a block. */
static void short_rows(const reduce_job *j, const lb_work *work, const block *b,
                       char *part, char *tile)
{
    const lb_array *a = work->call->in[0];
    const int64_t stride = j->keep.stride[j->along];
    if (j->data) {
        j->op->rows(j->data + b->from * j->size, stride, b->w, j->n,
                    &j->identity, part);
        return;
    }
    if (j->gone.n == 1)
        read_plane(work->call->cpu, a, b->from, b->w, stride, j->n,
                   j->gone.stride[0], j->ctype, tile);
    else
        for (int64_t r = 0; r < b->w; r++)
            read_range(j, work->call->cpu, a, b->from + r * stride, 0, j->n,
                       tile + (size_t)(r * j->n) * j->op->size);
    j->op->rows(tile, j->n, b->w, j->n, &j->identity, part);
}

static int64_t row_tile(const reduce_job *j)
{
    return j->cross ? ROW_GROUP * CHUNK : TILE;
}

/* A group of chunks of one result. */
static void long_row(const reduce_job *j, const lb_work *work, const block *b,
                     int64_t first, int64_t n, char *part, char *tile)
{
    const size_t size = j->op->size;
    char *to = part;
    for (int64_t i = 0, m; i < n; i += m) {
        m = j->data ? n : lb_min_i64(n - i, row_tile(j));
        const char *p = tile;
        if (j->data)
            p = j->data + (b->from + first) * j->size;
        else
            read_range(j, work->call->cpu, work->call->in[0], b->from,
                       first + i, m, tile);
        j->op->rows(p, CHUNK, m / CHUNK, CHUNK, &j->identity, to);
        to += (size_t)(m / CHUNK) * size;
        if (m % CHUNK == 0) continue;
        p += (size_t)(m / CHUNK * CHUNK) * size;
        j->op->rows(p, CHUNK, 1, m % CHUNK, &j->identity, to);
        to += size;
    }
    fold(j->op, part, lb_ceil_div(n, CHUNK), 1, 1);
}

/* Accumulates one chunk of a block of columns in its lanes. */
static void column_chunk(const reduce_job *j, const lb_work *work,
                         const block *b, int64_t first, int64_t n, char *lanes,
                         char *tile)
{
    const int last = j->gone.n - 1;
    const int64_t step = j->gone.stride[last];
    for (int64_t i = 0, m; i < n; i += m) {
        const int64_t at = b->from + lb_dims_offset(&j->gone, first + i);
        m = lb_min_i64(n - i,
                       j->gone.dim[last] - (first + i) % j->gone.dim[last]);
        if (j->data) {
            j->op->cols(j->data + at * j->size, step, m, b->w, i % j->op->lanes,
                        lanes);
            continue;
        }
        m = lb_min_i64(m, COL_TILE / b->w);
        read_plane(work->call->cpu, work->call->in[0], at, m, step, b->w,
                   j->keep.stride[j->along], j->ctype, tile);
        j->op->cols(tile, b->w, m, b->w, i % j->op->lanes, lanes);
    }
}

/* A group of chunks of a block of columns. */
static void columns(const reduce_job *j, const lb_work *work, const block *b,
                    int64_t first, int64_t n, char *part, char *lanes)
{
    const lb_reducer *op = j->op;
    const size_t size = op->size, line = (size_t)b->w * size;
    char *tile = lanes + (size_t)op->lanes * line;
    for (int64_t i = 0; i < n; i += CHUNK) {
        fill(j, op->lanes * b->w, lanes);
        column_chunk(j, work, b, first + i, lb_min_i64(CHUNK, n - i), lanes,
                     tile);
        for (int64_t half = op->lanes / 2; half; half /= 2)
            for (int64_t l = 0; l < half; l++)
                op->join(lanes + (size_t)l * line,
                         lanes + (size_t)(l + half) * line, b->w,
                         lanes + (size_t)l * line);
        memcpy(part + (size_t)(i / CHUNK * b->w) * size, lanes,
               (size_t)b->w * size);
    }
    fold(op, part, lb_ceil_div(n, CHUNK), b->w, b->w);
}

/* Canonicalizes NaNs, because it is unspecified which NaN an addition
 * returns. */
static void one_nan(lb_ctype c, int64_t n, void *part)
{
    float *f = part;
    double *d = part;
    for (int64_t i = 0; i < n && c == LB_C_F32; i++)
        if (isnan(f[i])) f[i] = NAN;
    for (int64_t i = 0; i < n && c == LB_C_F64; i++)
        if (isnan(d[i])) d[i] = (double)NAN;
}

static void write_block(const reduce_job *j, const lb_work *work,
                        const block *b, char *part)
{
    const lb_cpu *cpu = work->call->cpu;
    const int64_t dim = j->keep.dim[j->along];
    one_nan(j->ctype, b->w, part);
    if (j->step == 1) {
        lb_tile_write_flat(cpu, work->out, b->to, b->w, j->ctype, part);
        return;
    }
    lb_array out = *work->out;
    out.shape = (lb_shape){3, {j->results / (dim * j->step), dim, j->step}};
    lb_row_major(&out.shape, out.stride);
    lb_tile_write(cpu, &out,
                  (int64_t[]){b->to / (dim * j->step), b->j, b->to % j->step},
                  (int64_t[]){1, b->w, 1}, j->ctype, part);
}

/* One group of a block, to part, which has space for its chunks. */
static void reduce_group(const reduce_job *j, const lb_work *work,
                         const block *b, int64_t group, char *part,
                         char *scratch)
{
    const int64_t first = group * j->group * CHUNK;
    const int64_t n = lb_min_i64(j->group * CHUNK, j->n - first);
    if (j->n == 0)
        fill(j, b->w, part);
    else if (j->across)
        columns(j, work, b, first, n, part, scratch);
    else if (j->n <= CHUNK)
        short_rows(j, work, b, part, scratch);
    else
        long_row(j, work, b, first, n, part, scratch);
}

static size_t part_bytes(const reduce_job *j)
{
    const int64_t n =
        j->across ? COL_GROUP * j->w : lb_max_i64(j->w, ROW_GROUP);
    return ((size_t)n * j->op->size + 63) / 64 * 64;
}

static void eval(const lb_work *work)
{
    reduce_job j;
    prepare(work->call, &j);
    char *part = work->scratch, *scratch = part + part_bytes(&j);
    for (int64_t u = work->lo; u < work->hi; u++) {
        const bool split = j.groups > 1 && work->phase == 0;
        const block b = block_at(&j, split ? u / j.groups : u);
        const size_t size = (size_t)j.w * j.op->size;
        char *shared = (char *)work->shared;
        if (split) {
            reduce_group(&j, work, &b, u % j.groups, part, scratch);
            memcpy(shared + (size_t)u * size, part, (size_t)b.w * j.op->size);
        } else if (work->phase == 0) {
            reduce_group(&j, work, &b, 0, part, scratch);
            write_block(&j, work, &b, part);
        } else {
            char *parts = shared + (size_t)(u * j.groups) * size;
            fold(j.op, parts, j.groups, j.w, b.w);
            write_block(&j, work, &b, parts);
        }
    }
}

static void plan(const lb_call *c, lb_plan *p)
{
    reduce_job j;
    prepare(c, &j);
    const size_t size = j.op->size;
    const bool split = j.groups > 1;
    int64_t tile = 0;
    if (j.across)
        tile = j.op->lanes * j.w + (j.data ? 0 : COL_TILE);
    else if (!j.data)
        tile = j.n > CHUNK ? row_tile(&j) : j.w * j.n;
    p->per_thread = part_bytes(&j) + (size_t)tile * size;
    p->kernel = j.across ? "columns" : "rows";
    p->phases = split ? 2 : 1;
    p->units[0] = j.blocks * lb_max_i64(j.groups, 1);
    p->units[1] = j.blocks;
    if (split) p->shared = (size_t)(j.blocks * j.groups * j.w) * size;
}

/* ---- fused --------------------------------------------------------------- */

/* Rows of a tile: chunks, folded in the order above. */
static void reduce_tile(const lb_fusion *how, const void *tile, int64_t rows,
                        int64_t n, void *out)
{
    const lb_reducer *op = how->op;
    _Alignas(64) char part[LB_FUSE_COLS / CHUNK * sizeof(lb_value)];
    const char *from = tile;
    char *to = out;
    if (n <= CHUNK) {
        op->rows(from, n, rows, n, &how->initial, to);
    } else {
        const int64_t whole = n / CHUNK;
        for (int64_t r = 0; r < rows; r++, to += op->size) {
            op->rows(from, CHUNK, whole, CHUNK, &how->initial, part);
            from += (size_t)(whole * CHUNK) * op->size;
            if (n % CHUNK)
                op->rows(from, CHUNK, 1, n % CHUNK, &how->initial,
                         part + (size_t)whole * op->size);
            from += (size_t)(n % CHUNK) * op->size;
            fold(op, part, lb_ceil_div(n, CHUNK), 1, 1);
            memcpy(to, part, op->size);
        }
    }
    one_nan(how->ctype, rows, out);
}

/* Of trailing axes, so that a tile has the elements of a result in order. */
static void fuse(const lb_call *c, lb_fusion *to)
{
    const lb_reduce_params *p = c->params;
    const lb_array *a = c->in[0];
    const lb_reduce_op op = op_of(c->prim);
    const lb_ctype ctype = lb_ctype_of(a->dtype);
    const lb_value identity = lb_reduce_identity(op, a->dtype);
    const int lead = a->shape.rank - p->axes.n;
    for (int i = 0; i < p->axes.n; i++)
        if (p->axes.axis[i] < lead) return;
    if (!p->axes.n) return;
    to->kind = LB_FUSE_ROWS;
    to->lead = lead;
    to->reduce = reduce_tile;
    to->op = lb_reducer_for(c->cpu, op, ctype);
    to->ctype = ctype;
    memcpy(&to->initial, &identity, sizeof identity);
}

/* ---- the primitives ----------------------------------------------------- */

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_array *a = c->in[0];
    const lb_reduce_params *p = c->params;
    if (!lb_axes_check(cx, c->prim->name, "axes", &p->axes, a->shape.rank))
        return false;
    if (!lb_reducer_for(c->cpu, op_of(c->prim), lb_ctype_of(a->dtype)))
        return lb_fail(cx, LB_E_DTYPE, "%s: not defined for %s%s",
                       c->prim->name, lb_dtype_name(a->dtype),
                       a->dtype == LB_BOOL
                           ? "; convert it, or use reduce_or or reduce_max"
                           : "");
    c->dtype = a->dtype;
    c->shape.rank = 0;
    for (int k = 0; k < a->shape.rank; k++)
        if (!lb_axes_has(&p->axes, k))
            c->shape.dim[c->shape.rank++] = a->shape.dim[k];
    return true;
}

/* Without axes the result is the operand, including negative zeros. */
static lb_verdict move(lb_ctx *cx, const lb_call *c, lb_array **out)
{
    const lb_reduce_params *p = c->params;
    if (p->axes.n) return LB_DECLINED;
    *out = lb_view(cx, c->in[0]);
    if (!*out) return LB_FAILED;
    (*out)->weak = false;
    return LB_DONE;
}

extern const lb_prim lb_prim_reduce_sum;

/* Partial results of 16-bit floats stay f32 until they are combined. */
static lb_array *share(lb_ctx *cx, const lb_share *p)
{
    const lb_call *c = p->whole;
    lb_array *a = p->in[0];
    if (p->partial && c->prim == &lb_prim_reduce_sum &&
        lb_is_16_bits(a->dtype)) {
        a = lb_materialize(cx, a); /* changing the logical dtype would skip the
                                    * rounding to 16 bits */
        a = a ? lb_as(cx, a, LB_F32) : NULL;
    }
    return a ? lb_bind(cx, c->prim, 1, &a, c->params) : NULL;
}

/* Combines the results of all ranks, stacked along the first axis. */
static lb_array *join(lb_ctx *cx, const lb_call *c, lb_array *all)
{
    const lb_reduce_params p = {{1, {0}}};
    return lb_bind(cx, c->prim, 1, &all, &p);
}

/* Float products depend on the order: keep that of a single process. */
static bool shard(const lb_call *c, lb_cuts *to)
{
    const lb_reduce_params *p = c->params;
    const lb_reduce_op op = op_of(c->prim);
    const bool any = op != LB_REDUCE_PROD || !lb_dtype_is_float(c->dtype);
    for (int k = 0, at = 0; k < c->in[0]->shape.rank; k++) {
        const bool goes = lb_axes_has(&p->axes, k);
        if (!goes || any) lb_cuts_pair(to, k + 1, 0, k, goes ? -1 : at);
        at += !goes;
    }
    to->combine = op == LB_REDUCE_SUM ? LB_COMBINE_SUM : LB_COMBINE_JOIN;
    to->run = share;
    to->join = join;
    return true;
}

#define PRIM(NAME, VJP)                                                        \
    const lb_prim lb_prim_##NAME = {                                           \
        .struct_size = sizeof(lb_prim),                                        \
        .name = #NAME,                                                         \
        .params_size = sizeof(lb_reduce_params),                               \
        .n_in = 1,                                                             \
        .infer = infer,                                                        \
        .move = move,                                                          \
        .plan = plan,                                                          \
        .eval = eval,                                                          \
        .vjp = VJP,                                                            \
        .shard = shard,                                                        \
        .fuse = fuse,                                                          \
    };
#define EACH(X)                                                                \
    X(reduce_sum)                                                              \
    X(reduce_prod) X(reduce_max) X(reduce_min) X(reduce_and) X(reduce_or)
PRIM(reduce_sum, lb_vjp_reduce_sum)
PRIM(reduce_prod, lb_vjp_reduce_prod)
PRIM(reduce_max, lb_vjp_reduce_extreme)
PRIM(reduce_min, lb_vjp_reduce_extreme)
PRIM(reduce_and, NULL) /* integers only */
PRIM(reduce_or, NULL)

static lb_reduce_op op_of(const lb_prim *prim)
{
#define POINTER(NAME) &lb_prim_##NAME,
    static const lb_prim *const prims[] = {EACH(POINTER)};
    int op = 0;
    while (prims[op] != prim)
        op++;
    return (lb_reduce_op)op;
}

static lb_array *reduce(lb_ctx *cx, const lb_prim *prim, lb_array *a,
                        const lb_axes *axes)
{
    lb_reduce_params p = {0};
    if (a && !lb_axes_fix(cx, prim->name, axes, a->shape.rank, &p.axes))
        return NULL;
    return lb_bind(cx, prim, 1, &a, &p);
}

#define FUNCTION(NAME)                                                         \
    lb_array *lb_##NAME(lb_ctx *cx, lb_array *a, const lb_axes *axes)          \
    {                                                                          \
        return reduce(cx, &lb_prim_##NAME, a, axes);                           \
    }
EACH(FUNCTION)
