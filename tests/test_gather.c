/* test_gather.c - gather, scatter_add, take and embedding, against the
 * definition written as loops over the result's indices. */
/* ctest: skip-tsan */
#include "lowbit_params.h"
#include "model.h"

typedef struct gather_case {
    const char *what;
    lb_shape a, starts;
    lb_gather_dims d;
} gather_case;

/* clang-format off */
static const gather_case cases[] = {
    {"rows", {2, {10, 6}}, {1, {4}},
     {.offset_dims = {1, {1}}, .collapsed_slice_dims = {1, {0}},
      .start_index_map = {1, {0}}, .index_vector_dim = 1,
      .slice_sizes = {1, 6}}},
    {"rows, vectors of one", {2, {10, 6}}, {2, {4, 1}},
     {.offset_dims = {1, {1}}, .collapsed_slice_dims = {1, {0}},
      .start_index_map = {1, {0}}, .index_vector_dim = 1,
      .slice_sizes = {1, 6}}},
    {"columns", {2, {6, 11}}, {2, {3, 2}},
     {.offset_dims = {1, {0}}, .collapsed_slice_dims = {1, {1}},
      .start_index_map = {1, {1}}, .index_vector_dim = 2,
      .slice_sizes = {6, 1}}},
    {"points", {3, {5, 6, 3}}, {2, {7, 2}},
     {.offset_dims = {1, {1}}, .collapsed_slice_dims = {2, {0, 1}},
      .start_index_map = {2, {0, 1}}, .index_vector_dim = 1,
      .slice_sizes = {1, 1, 3}}},
    {"points, other order", {3, {5, 6, 3}}, {2, {7, 2}},
     {.offset_dims = {1, {0}}, .collapsed_slice_dims = {2, {0, 2}},
      .start_index_map = {2, {2, 0}}, .index_vector_dim = 1,
      .slice_sizes = {1, 6, 1}}},
    {"windows", {2, {8, 9}}, {3, {2, 3, 2}},
     {.offset_dims = {2, {0, 3}}, .start_index_map = {2, {0, 1}},
      .index_vector_dim = 2, .slice_sizes = {3, 4}}},
    {"windows, vectors first", {2, {8, 9}}, {2, {2, 5}},
     {.offset_dims = {2, {1, 2}}, .start_index_map = {2, {1, 0}},
      .index_vector_dim = 0, .slice_sizes = {3, 4}}},
    {"windows, vectors between", {3, {4, 8, 9}}, {3, {3, 2, 4}},
     {.offset_dims = {2, {0, 2}}, .collapsed_slice_dims = {1, {0}},
      .start_index_map = {2, {0, 2}}, .index_vector_dim = 1,
      .slice_sizes = {1, 8, 2}}},
    {"batching", {3, {4, 6, 5}}, {3, {4, 3, 1}},
     {.offset_dims = {1, {2}}, .collapsed_slice_dims = {1, {1}},
      .operand_batching_dims = {1, {0}},
      .start_indices_batching_dims = {1, {0}}, .start_index_map = {1, {1}},
      .index_vector_dim = 2, .slice_sizes = {1, 1, 5}}},
    {"batching, crossed", {3, {3, 4, 6}}, {4, {4, 2, 3, 1}},
     {.offset_dims = {1, {3}}, .operand_batching_dims = {2, {0, 1}},
      .start_indices_batching_dims = {2, {2, 0}}, .start_index_map = {1, {2}},
      .index_vector_dim = 3, .slice_sizes = {1, 1, 2}}},
    {"batching, vectors first", {2, {3, 7}}, {3, {1, 2, 3}},
     {.collapsed_slice_dims = {1, {1}}, .operand_batching_dims = {1, {0}},
      .start_indices_batching_dims = {1, {2}}, .start_index_map = {1, {1}},
      .index_vector_dim = 0, .slice_sizes = {1, 1}}},
    {"no windows", {2, {10, 6}}, {2, {0, 3}},
     {.offset_dims = {1, {2}}, .collapsed_slice_dims = {1, {0}},
      .start_index_map = {1, {0}}, .index_vector_dim = 2,
      .slice_sizes = {1, 6}}},
    {"empty windows", {2, {10, 6}}, {1, {4}},
     {.offset_dims = {2, {1, 2}}, .start_index_map = {1, {0}},
      .index_vector_dim = 1, .slice_sizes = {0, 6}}},
    {"one scalar", {1, {7}}, {0, {0}},
     {.collapsed_slice_dims = {1, {0}}, .start_index_map = {1, {0}},
      .index_vector_dim = 0, .slice_sizes = {1}}},
    {"empty vectors", {2, {3, 5}}, {2, {4, 0}},
     {.offset_dims = {2, {0, 2}}, .index_vector_dim = 1,
      .slice_sizes = {2, 5}}},
    {"of a scalar", {0, {0}}, {2, {3, 0}},
     {.index_vector_dim = 1}},
    {"rank 8", {4, {3, 2, 4, 2}}, {5, {2, 1, 2, 3, 2}},
     {.offset_dims = {4, {0, 2, 4, 7}}, .start_index_map = {2, {2, 0}},
      .index_vector_dim = 4, .slice_sizes = {2, 2, 3, 1}}},
    {"many points", {1, {50}}, {1, {33000}},
     {.collapsed_slice_dims = {1, {0}}, .start_index_map = {1, {0}},
      .index_vector_dim = 1, .slice_sizes = {1}}},
    {"many rows", {2, {30, 40}}, {1, {900}},
     {.offset_dims = {1, {1}}, .collapsed_slice_dims = {1, {0}},
      .start_index_map = {1, {0}}, .index_vector_dim = 1,
      .slice_sizes = {1, 40}}},
    {"many columns", {3, {40, 300, 2}}, {1, {290}},
     {.offset_dims = {2, {0, 1}}, .collapsed_slice_dims = {1, {1}},
      .start_index_map = {1, {1}}, .index_vector_dim = 1,
      .slice_sizes = {40, 1, 2}}},
    {"large windows", {3, {7, 130, 170}}, {1, {5}},
     {.offset_dims = {3, {1, 2, 3}}, .start_index_map = {1, {0}},
      .index_vector_dim = 1, .slice_sizes = {2, 130, 170}}},
};
/* clang-format on */
enum { N_CASES = sizeof cases / sizeof *cases };

/* The last ones are for behavior that depends on size: not with every view. */
static bool skipped(int i)
{
    return i % N_CASES >= N_CASES - 4 && i / N_CASES % 4 > 1;
}

/* ---- the definition ------------------------------------------------------ */

static bool has(const lb_axes *axes, int axis)
{
    for (int i = 0; i < axes->n; i++)
        if (axes->axis[i] == axis) return true;
    return false;
}

/* The batch index of the result's index r, in order. */
static void batch_index(const lb_gather_dims *d, const lb_shape *result,
                        const int64_t *r, int64_t *batch)
{
    for (int k = 0, n = 0; k < result->rank; k++)
        if (!has(&d->offset_dims, k)) batch[n++] = r[k];
}

/* The position in the operand of the result's index r; false if its window does
 * not fit and bounds is FILL. */
static bool source(const gather_case *c, const model *starts,
                   const lb_shape *result, const int64_t *r, int64_t *at)
{
    const lb_gather_dims *d = &c->d;
    int64_t batch[LB_MAX_RANK] = {0}, where[LB_MAX_RANK];
    bool fits = true;
    batch_index(d, result, r, batch);
    memset(at, 0, LB_MAX_RANK * sizeof *at);
    for (int i = 0; i < d->start_index_map.n; i++) {
        for (int k = 0, n = 0; k < c->starts.rank; k++)
            where[k] = k == d->index_vector_dim ? i : batch[n++];
        const int axis = d->start_index_map.axis[i];
        const double last = (double)(c->a.dim[axis] - d->slice_sizes[axis]);
        double s = starts->v[model_flat(&starts->shape, where)];
        fits = fits && s >= 0 && s <= last && c->a.dim[axis] > 0;
        at[axis] = (int64_t)(s > last ? last : s < 0 ? 0 : s);
    }
    for (int i = 0; i < d->operand_batching_dims.n; i++) {
        const int from = d->start_indices_batching_dims.axis[i];
        at[d->operand_batching_dims.axis[i]] =
            batch[from - (from > d->index_vector_dim)];
    }
    for (int k = 0, n = 0; k < c->a.rank; k++)
        if (!has(&d->collapsed_slice_dims, k) &&
            !has(&d->operand_batching_dims, k))
            at[k] += r[d->offset_dims.axis[n++]];
    return fits || d->bounds == LB_BOUNDS_CLAMP;
}

static lb_shape result_shape(const gather_case *c)
{
    const lb_gather_dims *d = &c->d;
    lb_shape s = {0};
    int64_t batch[LB_MAX_RANK], window[LB_MAX_RANK];
    int n = 0, m = 0, i = 0, j = 0;
    for (int k = 0; k < c->starts.rank; k++)
        if (k != d->index_vector_dim) batch[n++] = c->starts.dim[k];
    for (int k = 0; k < c->a.rank; k++)
        if (!has(&d->collapsed_slice_dims, k) &&
            !has(&d->operand_batching_dims, k))
            window[m++] = d->slice_sizes[k];
    for (s.rank = 0; s.rank < n + m; s.rank++)
        s.dim[s.rank] = has(&d->offset_dims, s.rank) ? window[j++] : batch[i++];
    return s;
}

static model model_gather(const gather_case *c, const model *a,
                          const model *starts, double fill)
{
    model r = model_new(result_shape(c));
    for (int64_t e = 0; e < model_size(&r.shape); e++) {
        int64_t i[LB_MAX_RANK] = {0}, at[LB_MAX_RANK];
        model_index(&r.shape, e, i);
        r.v[e] = source(c, starts, &r.shape, i, at)
                     ? a->v[model_flat(&a->shape, at)]
                     : fill;
    }
    return r;
}

/* To nearest even with this many bits. */
static double rounded(double v, int bits)
{
    int e;
    const double m = frexp(v, &e);
    return ldexp(nearbyint(ldexp(m, bits)), e - bits);
}

static double added(lb_dtype d, double sum, double v)
{
    switch (d) {
    case LB_F64:
        return sum + v;
    case LB_I8:
        return (int8_t)(int64_t)(sum + v);
    case LB_I32:
        return (int32_t)(int64_t)(sum + v);
    case LB_U16:
        return (uint16_t)(int64_t)(sum + v);
    case LB_BOOL:
        return sum != 0 || v != 0;
    default:
        return (double)((float)sum + (float)v);
    }
}

/* Windows one after the other, in the order of their index vectors. */
static model model_scatter(const gather_case *c, lb_dtype d, const model *a,
                           const model *starts, const model *u)
{
    model r = model_new(a->shape);
    memcpy(r.v, a->v, (size_t)model_size(&a->shape) * sizeof(double));
    /* The updates in the order "batch index, then the rest". */
    lb_shape order = {0};
    int axis[LB_MAX_RANK];
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < u->shape.rank; k++)
            if (has(&c->d.offset_dims, k) == (pass == 1)) {
                axis[order.rank] = k;
                order.dim[order.rank++] = u->shape.dim[k];
            }
    for (int64_t e = 0; e < model_size(&order); e++) {
        int64_t o[LB_MAX_RANK], i[LB_MAX_RANK] = {0}, at[LB_MAX_RANK];
        model_index(&order, e, o);
        for (int k = 0; k < order.rank; k++)
            i[axis[k]] = o[k];
        if (!source(c, starts, &u->shape, i, at)) continue;
        double *to = &r.v[model_flat(&r.shape, at)];
        *to = added(d, *to, u->v[model_flat(&u->shape, i)]);
    }
    for (int64_t e = 0; e < model_size(&r.shape); e++) {
        if (d == LB_F16) r.v[e] = rounded(r.v[e], 11);
        if (d == LB_BF16) r.v[e] = rounded(r.v[e], 8);
    }
    return r;
}

/* ---- tests --------------------------------------------------------------- */

/* Indices inside and slightly out of range; huge ones too if the dtype has
 * them. */
static model make_starts(const gather_case *c, lb_dtype d, uint32_t seed)
{
    model m = model_new(c->starts);
    for (int64_t e = 0; e < model_size(&m.shape); e++) {
        int64_t i[LB_MAX_RANK];
        model_index(&m.shape, e, i);
        const int at = c->d.index_vector_dim;
        const int axis =
            c->d.start_index_map.axis[at < m.shape.rank ? i[at] : 0];
        const int64_t n = c->a.dim[axis];
        const bool plus = d == LB_U8 || d == LB_U32 || d == LB_U64;
        const int64_t v = (int64_t)(model_random(&seed) % (n + 4)) - !plus * 2;
        m.v[e] = (double)v;
        if (d == LB_U64 && v == n + 2) m.v[e] = 0x1p63; /* -2^63 as i64 */
        if (d == LB_I64 && v == n) m.v[e] = -0x1p63;
    }
    return m;
}

static double fill_of(lb_dtype d)
{
    switch (d) {
    case LB_I8:
        return -128;
    case LB_I16:
        return -32768;
    case LB_I32:
        return -0x1p31;
    case LB_I64:
        return -0x1p63;
    case LB_U8:
        return 255;
    case LB_U16:
        return 65535;
    case LB_U32:
        return 0x1p32 - 1;
    case LB_U64:
        return 0x1p64; /* as a double */
    case LB_BOOL:
        return 1;
    default:
        return (double)NAN;
    }
}

static void test_gather(lb_ctx *cx)
{
    static const lb_dtype dtypes[] = {LB_F32, LB_U8,   LB_BF16, LB_I64, LB_F64,
                                      LB_I16, LB_F16,  LB_U32,  LB_I32, LB_U64,
                                      LB_I8,  LB_BOOL, LB_U16};
    static const lb_dtype index[] = {LB_I32, LB_I64, LB_U8, LB_I8,
                                     LB_U64, LB_I16, LB_U32};
    for (int i = 0; i < N_CASES * 2 * MODEL_VIEWS; i++) {
        if (skipped(i) || check_thins()) continue;
        gather_case c = cases[i % N_CASES];
        const lb_dtype d = dtypes[i % 13], t = index[i % 7];
        const int kind = i / N_CASES;
        const int view = kind % MODEL_VIEWS + kind / MODEL_VIEWS * MODEL_HIDDEN;
        lb_enter(cx);
        const model a = model_make(c.a, d, view, (uint32_t)i);
        const model s = make_starts(&c, t, (uint32_t)i);
        lb_array *in = model_array(cx, &a, d, view);
        /* Small indices repeat or hide only if the values do. */
        const int shown = kind % MODEL_VIEWS == MODEL_REPEATED ? 0 : view;
        lb_array *at = model_array(cx, &s, t, shown);
        const model clamp = model_gather(&c, &a, &s, 0);
        CHECK(model_same(cx, lb_gather(cx, in, at, &c.d), d, &clamp, c.what));
        c.d.bounds = LB_BOUNDS_FILL;
        const model fill = model_gather(&c, &a, &s, fill_of(d));
        CHECK(model_same(cx, lb_gather(cx, in, at, &c.d), d, &fill, c.what));
        c.d.has_fill = true;
        c.d.fill = d == LB_BOOL ? 0 : 3;
        const model three = model_gather(&c, &a, &s, c.d.fill);
        CHECK(model_same(cx, lb_gather(cx, in, at, &c.d), d, &three, c.what));
        lb_leave(cx);
        model_end();
    }
}

static void test_scatter(lb_ctx *cx)
{
    static const lb_dtype dtypes[] = {LB_F32, LB_I8,  LB_BF16, LB_F64,
                                      LB_F16, LB_U16, LB_BOOL, LB_I32};
    for (int i = 0; i < N_CASES * 2 * MODEL_VIEWS; i++) {
        if (skipped(i) || check_thins()) continue;
        gather_case c = cases[i % N_CASES];
        const lb_dtype d = dtypes[(i + i / N_CASES) % 8];
        const lb_dtype t = i % 2 ? LB_I32 : LB_I64;
        const int kind = i / N_CASES;
        const int view = kind % MODEL_VIEWS + kind / MODEL_VIEWS * MODEL_HIDDEN;
        const int other = (view + 3) % MODEL_VIEWS + view / 8 * MODEL_HIDDEN;
        model a = model_make(c.a, d, view, (uint32_t)i);
        model u = model_make(result_shape(&c), d, other, (uint32_t)i + 9);
        /* Floats whose sums depend on the order. */
        for (int64_t e = 0; e < model_size(&u.shape); e++)
            if (d == LB_F32 || d == LB_F64)
                u.v[e] = (double)(float)(u.v[e] / 3);
        const model s = make_starts(&c, t, (uint32_t)i);
        lb_enter(cx);
        lb_array *in = model_array(cx, &a, d, view);
        lb_array *at = model_array(cx, &s, t, 0);
        lb_array *add = model_array(cx, &u, d, other);
        for (int fill = 0; fill < 2; fill++) {
            c.d.bounds = fill ? LB_BOUNDS_FILL : LB_BOUNDS_CLAMP;
            const model want = model_scatter(&c, d, &a, &s, &u);
            CHECK(model_same(cx, lb_scatter_add(cx, in, at, add, &c.d), d,
                             &want, c.what));
        }
        lb_leave(cx);
        model_end();
    }
}

/* take is gather with dims made from the axis. */
static void test_take(lb_ctx *cx)
{
    const lb_shape shape = {3, {4, 5, 6}}, index = {2, {2, 3}};
    const double at[] = {0, 3, -2, 9, 1, 2};
    const model a = model_make(shape, LB_F32, 0, 3);
    model i = model_new(index);
    memcpy(i.v, at, sizeof at);
    lb_array *x = model_array(cx, &a, LB_F32, 0);
    lb_array *j = model_array(cx, &i, LB_I8, MODEL_COLUMNS);
    for (int axis = 0; axis < 3; axis++) {
        lb_shape s = {.rank = 4};
        for (int k = 0; k < 4; k++)
            s.dim[k] = k < axis       ? shape.dim[k]
                       : k < axis + 2 ? index.dim[k - axis]
                                      : shape.dim[k - 1];
        model want = model_new(s);
        for (int64_t e = 0; e < model_size(&s); e++) {
            int64_t r[LB_MAX_RANK], from[LB_MAX_RANK];
            model_index(&s, e, r);
            for (int k = 0; k < 3; k++)
                from[k] = r[k < axis ? k : k + 1];
            const double v = at[r[axis] * 3 + r[axis + 1]];
            const int64_t last = shape.dim[axis] - 1;
            from[axis] = v < 0 ? 0 : v > (double)last ? last : (int64_t)v;
            want.v[e] = a.v[model_flat(&shape, from)];
        }
        CHECK_MODEL(cx, lb_take(cx, x, j, axis), LB_F32, &want);
        CHECK_MODEL(cx, lb_take(cx, x, j, axis - 3), LB_F32, &want);
        if (axis == 0) CHECK_MODEL(cx, lb_embedding(cx, x, j), LB_F32, &want);
    }
    /* An empty list of indices into an empty axis is valid. */
    lb_array *none = lb_zeros(cx, LB_F32, LB_SHAPE(0, 3));
    lb_array *no = lb_zeros(cx, LB_I32, LB_SHAPE(0));
    const model empty = model_new((lb_shape){2, {0, 3}});
    CHECK_MODEL(cx, lb_take(cx, none, no, 0), LB_F32, &empty);
    CHECK_REFUSED(cx, lb_take(cx, none, j, 0), LB_E_SHAPE);
    /* ... and indices out of range are filled, also if all are. */
    gather_case c = cases[0];
    c.a.dim[0] = 0;
    c.d.slice_sizes[0] = 0;
    c.d.bounds = LB_BOUNDS_FILL;
    const model nothing = model_new(c.a), s = make_starts(&c, LB_I32, 1);
    const model nan = model_gather(&c, &nothing, &s, (double)NAN);
    lb_array *e = model_array(cx, &nothing, LB_F32, 0);
    lb_array *t = model_array(cx, &s, LB_I32, 0);
    CHECK_MODEL(cx, lb_gather(cx, e, t, &c.d), LB_F32, &nan);
    model_end();
}

/* Promotion in scatter_add; negative axes are accepted. */
static void test_public(lb_ctx *cx)
{
    gather_case c = cases[0];
    const model a = model_make(c.a, LB_F16, 0, 1);
    const model s = make_starts(&c, LB_I32, 2);
    const model u = model_make(result_shape(&c), LB_I8, 0, 3);
    lb_array *x = model_array(cx, &a, LB_F16, 0);
    lb_array *t = model_array(cx, &s, LB_I32, 0);
    lb_array *y = model_array(cx, &u, LB_I8, 0);
    const model want = model_scatter(&c, LB_F16, &a, &s, &u);
    c.d.offset_dims.axis[0] = -1;
    c.d.collapsed_slice_dims.axis[0] = -2;
    c.d.start_index_map.axis[0] = -2;
    CHECK_MODEL(cx, lb_scatter_add(cx, x, t, y, &c.d), LB_F16, &want);
    gather_case v = cases[1];
    v.d.index_vector_dim = -1;
    const model w = make_starts(&cases[1], LB_I32, 2);
    const model rows = model_gather(&cases[1], &a, &w, 0);
    lb_array *vectors = model_array(cx, &w, LB_I32, 0);
    CHECK_MODEL(cx, lb_gather(cx, x, vectors, &v.d), LB_F16, &rows);
    model_end();
}

/* Each of these changes of a valid case is an error. */
static void test_errors(lb_ctx *cx)
{
    const gather_case *good = &cases[8]; /* batching */
    lb_array *a = lb_zeros(cx, LB_F32, good->a);
    lb_array *s = lb_zeros(cx, LB_I32, good->starts);
    lb_array *u = lb_zeros(cx, LB_F32, result_shape(good));
    lb_array *half = lb_zeros(cx, LB_F32, LB_SHAPE(4, 3, 4));
    const lb_prim *gather = lb_find_primitive(cx, "gather");
    const lb_prim *scatter = lb_find_primitive(cx, "scatter_add");
    lb_array *in[] = {a, s, u};
    CHECK(lb_gather(cx, a, s, &good->d) != NULL);
    CHECK(lb_scatter_add(cx, a, s, u, &good->d) != NULL);
#define WRONG(change, status)                                                  \
    do {                                                                       \
        lb_gather_dims d = good->d;                                            \
        d.change;                                                              \
        CHECK_REFUSED(cx, lb_bind(cx, gather, 2, in, &d), status);             \
        CHECK_REFUSED(cx, lb_bind(cx, scatter, 3, in, &d), status);            \
    } while (0)
    WRONG(index_vector_dim = 4, LB_E_AXIS);
    WRONG(index_vector_dim = -1, LB_E_AXIS);
    WRONG(index_vector_dim = 1, LB_E_SHAPE); /* vectors of 3 */
    WRONG(index_vector_dim = 0, LB_E_SHAPE);
    WRONG(start_index_map.n = 0, LB_E_SHAPE);
    WRONG(start_index_map.axis[0] = 3, LB_E_AXIS);
    WRONG(start_index_map.axis[0] = 0, LB_E_AXIS); /* batching */
    WRONG(start_index_map.n = 9, LB_E_AXIS);
    WRONG(collapsed_slice_dims.axis[0] = 0, LB_E_AXIS); /* batching */
    WRONG(collapsed_slice_dims.axis[0] = -1, LB_E_AXIS);
    WRONG(collapsed_slice_dims.n = 0, LB_E_AXIS); /* too few offset_dims */
    WRONG(offset_dims.n = 0, LB_E_AXIS);
    WRONG(offset_dims.n = -1, LB_E_AXIS);
    WRONG(offset_dims.axis[0] = 3, LB_E_AXIS);
    WRONG(operand_batching_dims.n = 0, LB_E_AXIS);
    WRONG(operand_batching_dims.axis[0] = 2, LB_E_SHAPE); /* 5, not 4 */
    WRONG(start_indices_batching_dims.axis[0] = 1, LB_E_SHAPE);
    WRONG(start_indices_batching_dims.axis[0] = 2, LB_E_AXIS); /* vectors */
    WRONG(start_indices_batching_dims.axis[0] = 3, LB_E_AXIS);
    WRONG(slice_sizes[0] = 2, LB_E_SHAPE);
    WRONG(slice_sizes[1] = 0, LB_E_SHAPE);
    WRONG(slice_sizes[2] = 6, LB_E_SHAPE);
    WRONG(slice_sizes[2] = -1, LB_E_SHAPE);
    WRONG(bounds = (lb_bounds)7, LB_E_ARG);

    lb_gather_dims d = cases[5].d; /* windows: two offset_dims */
    lb_array *w = lb_zeros(cx, LB_F32, cases[5].a);
    lb_array *t = lb_zeros(cx, LB_I32, cases[5].starts);
    d.offset_dims = (lb_axes){2, {3, 0}};
    CHECK_REFUSED(cx, lb_gather(cx, w, t, &d), LB_E_AXIS);
    lb_array *deep = lb_zeros(cx, LB_I32, LB_SHAPE(1, 1, 1, 1, 1, 1, 1, 2));
    d = (lb_gather_dims){.offset_dims = {2, {0, 1}},
                         .start_index_map = {2, {0, 1}},
                         .index_vector_dim = 7,
                         .slice_sizes = {1, 1}};
    CHECK_REFUSED(cx, lb_gather(cx, w, deep, &d), LB_E_SHAPE); /* rank 9 */
    lb_array *long_ = lb_zeros(cx, LB_F32, LB_SHAPE(1LL << 40));
    lb_array *much = lb_zeros(cx, LB_I32, LB_SHAPE(1LL << 30, 1));
    d = (lb_gather_dims){.offset_dims = {1, {1}},
                         .start_index_map = {1, {0}},
                         .index_vector_dim = 1,
                         .slice_sizes = {1LL << 40}};
    CHECK_REFUSED(cx, lb_gather(cx, long_, much, &d), LB_E_SIZE);

    d = good->d;
    CHECK_REFUSED(cx, lb_gather(cx, a, a, &d), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_gather(cx, NULL, s, &d), LB_E_NULL);
    CHECK_REFUSED(cx, lb_gather(cx, a, NULL, &d), LB_E_NULL);
    CHECK_REFUSED(cx, lb_scatter_add(cx, a, s, NULL, &d), LB_E_NULL);
    CHECK_REFUSED(cx, lb_scatter_add(cx, a, s, half, &d), LB_E_SHAPE);
    lb_array *mixed[] = {a, s, lb_zeros(cx, LB_F64, result_shape(good))};
    CHECK_REFUSED(cx, lb_bind(cx, scatter, 3, mixed, &d), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_take(cx, a, s, 3), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_take(cx, a, a, 0), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_take(cx, NULL, s, 0), LB_E_NULL);
    CHECK_REFUSED(cx, lb_embedding(cx, a, NULL), LB_E_NULL);
    CHECK(!lb_gather(cx, a, s, NULL));
    CHECK_EQ_I(lb_error_status(cx), LB_E_NULL);
    lb_clear(cx);
}

int main(void)
{
    static const int threads[] = {1, 2, 7};
    for (int i = 0; i < 3; i++) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = threads[i]});
        CHECK(cx != NULL);
        if (!cx) continue;
        test_gather(cx);
        test_scatter(cx);
        test_take(cx);
        test_public(cx);
        test_errors(cx);
        CHECK_EQ_S(lb_error(cx), "");
        lb_close(cx);
    }
    return check_report("test_gather");
}
