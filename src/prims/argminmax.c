/* argminmax.c - the first index of the largest or smallest element of an axis.
 *
 * Every element is mapped to an i64 key with the same order, where -0 equals 0,
 * reversed for argmin, and NaN above everything: so one loop serves every dtype
 * and both operations. Because the first of equal keys wins, parts of an axis
 * may be searched in any order by any thread. f32 tiles are first reduced by
 * reduce_max or reduce_min, and only the result becomes a key.
 */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "kernels/convert.h"
#include "lowbit_params.h"
#include "prims/cuts.h"
#include "prims/dims.h"
#include "prims/reduce_ops.h"

enum {
    TILE = 2048,      /* elements converted to keys at a time */
    WIDE_TILE = 8192, /* the same for strided axes, ... */
    WIDE = 256,       /* ... for this many results: long contiguous runs */
    FEW = 4,          /* with fewer results, strided access does not pay off */
    SEGMENT = 1 << 16 /* of an axis, per unit */
};

typedef struct {
    int64_t key, index;
} best;

typedef struct {
    lb_dims keep;
    int64_t n, stride; /* of the axis */
    int64_t results, w, blocks, segments;
    int64_t tile; /* elements */
    lb_ctype ctype;
    bool smallest;
} argminmax_job;

extern const lb_prim lb_prim_argmin;

static void prepare(const lb_call *c, argminmax_job *j)
{
    const lb_array *a = c->in[0];
    const lb_argminmax_params *p = c->params;
    *j = (argminmax_job){
        .n = a->shape.dim[p->axis],
        .stride = a->stride[p->axis],
        .results = 1,
        .ctype = lb_ctype_of(a->dtype),
        .smallest = c->prim == &lb_prim_argmin,
    };
    for (int k = 0; k < a->shape.rank; k++) {
        if (k == p->axis) continue;
        j->results *= a->shape.dim[k];
        lb_dims_add(&j->keep, a->shape.dim[k], a->stride[k]);
    }
    lb_dims_end(&j->keep);
    /* Blocks are within the last kept axis, so that each is a plane. */
    const int64_t inner = j->keep.dim[j->keep.n - 1];
    const bool across =
        lb_distance(j->keep.stride[j->keep.n - 1]) < lb_distance(j->stride) &&
        inner >= FEW;
    j->tile = across ? WIDE_TILE : TILE;
    j->w = across ? WIDE : TILE / lb_min_i64(j->n, TILE);
    j->w = lb_max_i64(1, lb_min_i64(inner, j->w));
    j->blocks = inner ? j->results / inner * lb_ceil_div(inner, j->w) : 0;
    j->segments = lb_ceil_div(j->n, SEGMENT);
}

/* The first result of block b; *w: number of results. */
static int64_t block_at(const argminmax_job *j, int64_t b, int64_t *w)
{
    const int64_t inner = j->keep.dim[j->keep.n - 1];
    const int64_t per = lb_ceil_div(inner, j->w), at = b % per * j->w;
    *w = lb_min_i64(j->w, inner - at);
    return b / per * inner + at;
}

/* ---- keys --------------------------------------------------------------- */

/* Converts a tile of f64 to keys in place. */
static void keys_of_floats(int64_t n, bool smallest, void *tile)
{
    for (int64_t i = 0; i < n; i++) {
        double x;
        int64_t key;
        memcpy(&x, (char *)tile + i * 8, 8);
        const bool nan = x != x;
        x += 0.0; /* -0 becomes 0 */
        memcpy(&key, &x, 8);
        if (key < 0) key ^= INT64_MAX;
        key = nan ? INT64_MAX : smallest ? ~key : key;
        memcpy((char *)tile + i * 8, &key, 8);
    }
}

static void keys_of_ints(int64_t n, bool is_unsigned, bool smallest,
                         int64_t *key)
{
    const int64_t flip = (is_unsigned ? INT64_MIN : 0) ^ (smallest ? -1 : 0);
    for (int64_t i = 0; i < n; i++)
        key[i] ^= flip;
}

/* A view of w results by [k, k + n) of the axis. */
static lb_array plane_of(const argminmax_job *j, const lb_call *c,
                         int64_t result, int64_t w, int64_t k, int64_t n)
{
    return lb_plane(c->in[0], lb_dims_offset(&j->keep, result) + k * j->stride,
                    w, j->keep.stride[j->keep.n - 1], n, j->stride);
}

/* Reads it as keys. */
static void read_keys(const argminmax_job *j, const lb_call *c, int64_t result,
                      int64_t w, int64_t k, int64_t n, int64_t *key)
{
    const lb_array v = plane_of(j, c, result, w, k, n);
    const int64_t zero[2] = {0};
    if (j->ctype == LB_C_F64) {
        lb_tile_read(c->cpu, &v, zero, v.shape.dim, LB_C_F64, key);
        keys_of_floats(w * n, j->smallest, key);
        return;
    }
    if (j->ctype == LB_C_BOOL) {
        uint8_t byte[WIDE_TILE];
        lb_tile_read(c->cpu, &v, zero, v.shape.dim, LB_C_BOOL, byte);
        lb_convert_run(LB_C_BOOL, byte, LB_C_I64, w * n, key);
    } else {
        lb_tile_read(c->cpu, &v, zero, v.shape.dim, j->ctype, key);
    }
    keys_of_ints(w * n, j->ctype == LB_C_U64, j->smallest, key);
}

/* ---- evaluation --------------------------------------------------------- */

static void meet(best *b, int64_t key, int64_t index)
{
    if (key > b->key) *b = (best){key, index};
}

/* The index of the first element equal to x (or NaN, if x is). It exists. */
static int64_t first_of(const float *p, int64_t n, float x)
{
    enum { STEP = 16 };
    int64_t i = 0;
    if (isnan(x)) {
        while (!isnan(p[i]))
            i++;
        return i;
    }
    for (; i + STEP <= n; i += STEP) {
        int any = 0;
        for (int k = 0; k < STEP; k++)
            any |= p[i + k] == x;
        if (any) break;
    }
    while (p[i] != x)
        i++;
    return i;
}

/* Searches [k, k + n) of the axis for w results, by the maximum of each; tile
 * has space for its elements and as many results. */
static void search_f32(const argminmax_job *j, const lb_call *c, int64_t result,
                       int64_t w, int64_t k, int64_t n, float *tile, best *to)
{
    const lb_reduce_op op = j->smallest ? LB_REDUCE_MIN : LB_REDUCE_MAX;
    const lb_value start = lb_reduce_identity(op, LB_F32);
    const lb_array v = plane_of(j, c, result, w, k, n);
    const float *p =
        lb_tile_peek(c->cpu, &v, (int64_t[2]){0}, v.shape.dim, LB_C_F32, tile);
    float *most = tile + j->tile;
    lb_reducer_for(c->cpu, op, LB_C_F32)->rows(p, n, w, n, &start, most);
    for (int64_t r = 0; r < w; r++) {
        const double x = (double)most[r];
        int64_t key;
        memcpy(&key, &x, sizeof key);
        keys_of_floats(1, j->smallest, &key);
        if (key > to[r].key)
            to[r] = (best){key, k + first_of(p + r * n, n, most[r])};
    }
}

/* The best of one segment for each result of a block. */
static void search(const argminmax_job *j, const lb_call *c, int64_t result,
                   int64_t w, int64_t segment, int64_t *key, best *to)
{
    const int64_t lo = segment * SEGMENT;
    const int64_t hi = lb_min_i64(j->n, lo + SEGMENT);
    for (int64_t r = 0; r < w; r++)
        to[r] = (best){INT64_MIN, lo}; /* with equal keys the lower index
                                        * wins */
    for (int64_t k = lo, n; k < hi; k += n) {
        n = lb_min_i64(hi - k, j->tile / w);
        if (j->ctype == LB_C_F32) {
            search_f32(j, c, result, w, k, n, (float *)(void *)key, to);
            continue;
        }
        read_keys(j, c, result, w, k, n, key);
        for (int64_t r = 0; r < w; r++)
            for (int64_t i = 0; i < n; i++)
                meet(&to[r], key[r * n + i], k + i);
    }
}

static void write_block(const lb_work *work, int64_t result, int64_t w,
                        const best *from, int64_t *index)
{
    for (int64_t r = 0; r < w; r++)
        index[r] = from[r].index;
    lb_tile_write_flat(work->call->cpu, work->out, result, w, LB_C_I64, index);
}

static void eval(const lb_work *work)
{
    argminmax_job j;
    prepare(work->call, &j);
    int64_t *key = work->scratch, w;
    best *own = (best *)(void *)(key + j.tile), *all = work->shared;
    for (int64_t u = work->lo; u < work->hi; u++) {
        const bool split = j.segments > 1 && work->phase == 0;
        const int64_t b = split ? u / j.segments : u;
        const int64_t result = block_at(&j, b, &w);
        if (split) {
            search(&j, work->call, result, w, u % j.segments, key,
                   all + u * j.w);
            continue;
        }
        best *found = own;
        if (work->phase == 0)
            search(&j, work->call, result, w, 0, key, own);
        else
            found = all + u * j.segments * j.w;
        for (int64_t s = 1; s < j.segments; s++)
            for (int64_t r = 0; r < w; r++)
                meet(&found[r], found[s * j.w + r].key,
                     found[s * j.w + r].index);
        write_block(work, result, w, found, key);
    }
}

static void plan(const lb_call *c, lb_plan *p)
{
    argminmax_job j;
    prepare(c, &j);
    p->per_thread =
        (size_t)j.tile * sizeof(int64_t) + (size_t)j.w * sizeof(best);
    p->phases = j.segments > 1 ? 2 : 1;
    p->units[0] = j.blocks * j.segments;
    p->units[1] = j.blocks;
    p->kernel = j.ctype == LB_C_F32 ? "extremes" : "keys";
    if (j.segments > 1)
        p->shared = (size_t)(j.blocks * j.segments * j.w) * sizeof(best);
}

/* ---- the primitives ----------------------------------------------------- */

static bool infer(lb_ctx *cx, lb_call *c)
{
    const lb_array *a = c->in[0];
    const lb_argminmax_params *p = c->params;
    const char *who = c->prim->name;
    const lb_axes axis = {1, {p->axis}};
    if (!lb_axes_check(cx, who, "axis", &axis, a->shape.rank)) return false;
    if (!lb_dtype_is_int(p->dtype))
        return lb_fail(cx, LB_E_DTYPE, "%s: index dtype %s is not an integer",
                       who, lb_dtype_name(p->dtype));
    const int64_t n = a->shape.dim[p->axis];
    if (n == 0)
        return lb_fail(cx, LB_E_SHAPE, "%s: axis %d of %s is empty", who,
                       p->axis, LB_SHOW(&a->shape));
    const int bits =
        (int)lb_dtype_size(p->dtype) * 8 - !lb_dtype_is_unsigned(p->dtype);
    if (bits < 63 && n - 1 >= (int64_t)1 << bits)
        return lb_fail(cx, LB_E_DTYPE,
                       "%s: axis %d of %s has %lld elements, more than %s can "
                       "number",
                       who, p->axis, LB_SHOW(&a->shape), (long long)n,
                       lb_dtype_name(p->dtype));
    c->dtype = p->dtype;
    c->shape.rank = 0;
    for (int k = 0; k < a->shape.rank; k++)
        if (k != p->axis) c->shape.dim[c->shape.rank++] = a->shape.dim[k];
    return true;
}

static bool shard(const lb_call *c, lb_cuts *to)
{
    const lb_argminmax_params *p = c->params;
    for (int k = 0, at = 0; k < c->in[0]->shape.rank; k++)
        if (k != p->axis) lb_cuts_pair(to, k + 1, 0, k, at++);
    return true;
}

const lb_prim lb_prim_argmax = {
    .struct_size = sizeof(lb_prim),
    .name = "argmax",
    .element_ns = 0.4F,
    .params_size = sizeof(lb_argminmax_params),
    .n_in = 1,
    .infer = infer,
    .plan = plan,
    .eval = eval,
    .shard = shard,
};

const lb_prim lb_prim_argmin = {
    .struct_size = sizeof(lb_prim),
    .name = "argmin",
    .element_ns = 0.4F,
    .params_size = sizeof(lb_argminmax_params),
    .n_in = 1,
    .infer = infer,
    .plan = plan,
    .eval = eval,
    .shard = shard,
};

static lb_array *arg(lb_ctx *cx, const lb_prim *prim, lb_array *a, int axis,
                     lb_dtype dtype)
{
    lb_argminmax_params p = {axis, dtype ? dtype : LB_I32};
    if (a && !lb_axis_fix(cx, prim->name, axis, a->shape.rank, &p.axis))
        return NULL;
    return lb_bind(cx, prim, 1, &a, &p);
}

lb_array *lb_argmax(lb_ctx *cx, lb_array *a, int axis, lb_dtype index_dtype)
{
    return arg(cx, &lb_prim_argmax, a, axis, index_dtype);
}

lb_array *lb_argmin(lb_ctx *cx, lb_array *a, int axis, lb_dtype index_dtype)
{
    return arg(cx, &lb_prim_argmin, a, axis, index_dtype);
}
