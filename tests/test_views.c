/* test_views.c - transpose, broadcast, slice, reverse, squeeze, expand and
 * reshapes that need no copy, against index arithmetic; all of them are views.
 */
#include "lowbit_params.h"
#include "model.h"

static const lb_dtype dtypes[] = {LB_F32, LB_F16, LB_BF16, LB_F64,
                                  LB_I8,  LB_I64, LB_U16,  LB_BOOL};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

static const lb_shape shapes[] = {
    {0, {0}},
    {1, {5}},
    {1, {1}},
    {1, {0}},
    {2, {3, 4}},
    {2, {4, 0}},
    {3, {2, 3, 4}},
    {3, {1, 5, 1}},
    {3, {2, 0, 3}},
    {4, {2, 1, 3, 2}},
    {5, {2, 3, 1, 2, 2}},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* ---- the operations on models -------------------------------------------- */

static model model_transpose(const model *m, const int *perm)
{
    lb_shape s = m->shape;
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = m->shape.dim[perm[k]];
    model r = model_new(s);
    for (int64_t e = 0; e < model_size(&s); e++) {
        int64_t i[LB_MAX_RANK], from[LB_MAX_RANK];
        model_index(&s, e, i);
        for (int k = 0; k < s.rank; k++)
            from[perm[k]] = i[k];
        r.v[e] = m->v[model_flat(&m->shape, from)];
    }
    return r;
}

static model model_broadcast(const model *m, lb_shape s, const int *dims)
{
    model r = model_new(s);
    for (int64_t e = 0; e < model_size(&s); e++) {
        int64_t i[LB_MAX_RANK], from[LB_MAX_RANK];
        model_index(&s, e, i);
        for (int k = 0; k < m->shape.rank; k++)
            from[k] = m->shape.dim[k] == 1 ? 0 : i[dims[k]];
        r.v[e] = m->v[model_flat(&m->shape, from)];
    }
    return r;
}

static model model_slice(const model *m, const int64_t *lo, const int64_t *hi,
                         const int64_t *by)
{
    lb_shape s = m->shape;
    for (int k = 0; k < s.rank; k++) {
        s.dim[k] = 0;
        for (int64_t i = lo[k]; i < hi[k]; i += by[k])
            s.dim[k]++;
    }
    model r = model_new(s);
    for (int64_t e = 0; e < model_size(&s); e++) {
        int64_t i[LB_MAX_RANK];
        model_index(&s, e, i);
        for (int k = 0; k < s.rank; k++)
            i[k] = lo[k] + i[k] * by[k];
        r.v[e] = m->v[model_flat(&m->shape, i)];
    }
    return r;
}

static model model_reverse(const model *m, const lb_axes *axes)
{
    model r = model_new(m->shape);
    for (int64_t e = 0; e < model_size(&m->shape); e++) {
        int64_t i[LB_MAX_RANK];
        model_index(&m->shape, e, i);
        for (int k = 0; k < axes->n; k++)
            i[axes->axis[k]] =
                m->shape.dim[axes->axis[k]] - 1 - i[axes->axis[k]];
        r.v[e] = m->v[model_flat(&m->shape, i)];
    }
    return r;
}

/* ---- tests --------------------------------------------------------------- */

typedef struct subject {
    lb_ctx *cx;
    lb_dtype dtype;
    model m;
    lb_array *a;
} subject;

#define CHECK_VIEW(s, v, want)                                                 \
    do {                                                                       \
        lb_array *view_ = (v);                                                 \
        CHECK(model_same((s)->cx, view_, (s)->dtype, want, #v));               \
        CHECK(view_ && view_->store == (s)->a->store);                         \
    } while (0)

static void test_transpose(const subject *s)
{
    const int rank = s->m.shape.rank;
    int perm[LB_MAX_RANK], negative[LB_MAX_RANK];
    for (int turn = 0; turn <= rank; turn++) {
        for (int k = 0; k < rank; k++) {
            perm[k] = (k + turn) % rank;
            negative[k] = perm[k] - rank;
        }
        const model want = model_transpose(&s->m, perm);
        CHECK_VIEW(s, lb_transpose(s->cx, s->a, perm), &want);
        CHECK_VIEW(s, lb_transpose(s->cx, s->a, negative), &want);
    }
    for (int k = 0; k < rank; k++)
        perm[k] = rank - 1 - k;
    const model want = model_transpose(&s->m, perm);
    CHECK_VIEW(s, lb_transpose(s->cx, s->a, NULL), &want);
}

static void test_broadcast(const subject *s)
{
    const lb_shape *from = &s->m.shape;
    lb_shape to = {.rank = from->rank + 2};
    int dims[LB_MAX_RANK];
    /* Reversed, with a new axis at either end, axes of size 1 broadcast. */
    to.dim[0] = 2;
    to.dim[to.rank - 1] = 3;
    for (int k = 0; k < from->rank; k++) {
        dims[k] = from->rank - k;
        to.dim[dims[k]] = from->dim[k] == 1 ? 4 : from->dim[k];
    }
    model want = model_broadcast(&s->m, to, dims);
    CHECK_VIEW(s, lb_broadcast_in_dim(s->cx, s->a, to, dims), &want);
    /* Squeeze as in numpy, and 1 to 0. */
    for (int k = 0; k < from->rank; k++) {
        dims[k] = k + 2;
        to.dim[k + 2] = from->dim[k] == 1 ? 0 : from->dim[k];
    }
    to.dim[0] = 3;
    to.dim[1] = 1;
    want = model_broadcast(&s->m, to, dims);
    CHECK_VIEW(s, lb_broadcast_to(s->cx, s->a, to), &want);
}

static void test_slice(const subject *s)
{
    uint32_t seed = 7;
    for (int round = 0; round < 6; round++) {
        int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK], by[LB_MAX_RANK];
        for (int k = 0; k < s->m.shape.rank; k++) {
            const int64_t n = s->m.shape.dim[k];
            lo[k] = model_random(&seed) % (n + 1);
            hi[k] = lo[k] + model_random(&seed) % (n - lo[k] + 1);
            by[k] = 1 + model_random(&seed) % 3;
            if (round == 4) lo[k] = 0, hi[k] = n, by[k] = 1;
            if (round == 5) lo[k] = n, hi[k] = n;
        }
        const model want = model_slice(&s->m, lo, hi, by);
        CHECK_VIEW(s, lb_slice(s->cx, s->a, lo, hi, by), &want);
        for (int k = 0; k < s->m.shape.rank; k++)
            by[k] = 1;
        const model ones = model_slice(&s->m, lo, hi, by);
        CHECK_VIEW(s, lb_slice(s->cx, s->a, lo, hi, NULL), &ones);
        for (int k = 0; k < s->m.shape.rank; k++) {
            by[k] = INT64_MAX; /* one element, without overflow */
            hi[k] = lo[k] + (hi[k] > lo[k]);
        }
        const model first = model_slice(
            &s->m, lo, hi, (const int64_t[]){1, 1, 1, 1, 1, 1, 1, 1});
        CHECK_VIEW(s, lb_slice(s->cx, s->a, lo, hi, by), &first);
    }
}

static void test_reverse(const subject *s)
{
    const int rank = s->m.shape.rank;
    for (int bits = 0; bits < 1 << rank; bits++) {
        lb_axes axes = {0};
        for (int k = 0; k < rank; k++)
            if (bits >> k & 1) axes.axis[axes.n++] = k;
        const model want = model_reverse(&s->m, &axes);
        CHECK_VIEW(s, lb_reverse(s->cx, s->a, &axes), &want);
        for (int i = 0; i < axes.n; i++)
            axes.axis[i] -= rank;
        CHECK_VIEW(s, lb_reverse(s->cx, s->a, &axes), &want);
    }
}

/* Axes of size 1 are added and removed without a copy in every view. */
static void test_ones(const subject *s)
{
    const lb_shape *from = &s->m.shape;
    for (int at = 0; at <= from->rank; at++) {
        model want = {.shape = {.rank = from->rank + 1}, .v = s->m.v};
        for (int k = 0; k <= from->rank; k++)
            want.shape.dim[k] = k == at ? 1 : from->dim[k < at ? k : k - 1];
        lb_array *e = lb_expand(s->cx, s->a, at);
        CHECK_VIEW(s, e, &want);
        CHECK_VIEW(s, lb_expand(s->cx, s->a, at - from->rank - 1), &want);
        CHECK_VIEW(s, lb_squeeze(s->cx, e, LB_AXES(at)), &s->m);
    }
    model want = {.v = s->m.v};
    for (int k = 0; k < from->rank; k++)
        if (from->dim[k] != 1) want.shape.dim[want.shape.rank++] = from->dim[k];
    CHECK_VIEW(s, lb_squeeze(s->cx, s->a, NULL), &want);
    CHECK_VIEW(s, lb_squeeze(s->cx, s->a, &(lb_axes){0}), &s->m);
}

static void test_all(lb_ctx *cx)
{
    for (int i = 0; i < N_SHAPES; i++) {
        for (int kind = 0; kind < MODEL_VIEWS; kind++) {
            const int hidden = (i + kind) % 2 * MODEL_HIDDEN;
            subject s = {cx, dtypes[(i + kind) % N_DTYPES], {{0}, 0}, 0};
            s.m = model_make(shapes[i], s.dtype, kind, (uint32_t)(i + kind));
            lb_enter(cx);
            s.a = model_array(cx, &s.m, s.dtype, kind + hidden);
            test_transpose(&s);
            test_broadcast(&s);
            test_slice(&s);
            test_reverse(&s);
            test_ones(&s);
            lb_leave(cx);
            model_end();
        }
    }
}

/* numpy's rule: which reshapes of which views copy. */
static void test_no_copy(lb_ctx *cx)
{
    /* clang-format off */
    static const struct {
        lb_shape from, to;
        int kind;
        bool view;
    } c[] = {
        {{2, {4, 6}}, {1, {24}},            MODEL_PLAIN,    true},
        {{2, {4, 6}}, {3, {2, 2, 6}},       MODEL_PLAIN,    true},
        {{2, {4, 6}}, {4, {1, 8, 1, 3}},    MODEL_PLAIN,    true},
        {{2, {4, 6}}, {1, {24}},            MODEL_COLUMNS,  false},
        {{2, {4, 6}}, {3, {2, 2, 6}},       MODEL_COLUMNS,  true},
        {{2, {4, 6}}, {4, {2, 2, 3, 2}},    MODEL_COLUMNS,  true},
        {{2, {4, 6}}, {3, {2, 4, 3}},       MODEL_COLUMNS,  false},
        {{2, {1, 6}}, {1, {6}},             MODEL_COLUMNS,  true},
        {{3, {4, 1, 6}}, {2, {4, 6}},       MODEL_COLUMNS,  true},
        {{2, {4, 6}}, {1, {24}},            MODEL_BACKWARD, true},
        {{2, {4, 6}}, {1, {24}},            MODEL_STEPPED,  false},
        {{2, {4, 6}}, {3, {4, 3, 2}},       MODEL_STEPPED,  true},
        {{2, {4, 6}}, {1, {24}},            MODEL_REPEATED, false},
        {{2, {4, 6}}, {4, {2, 2, 2, 3}},    MODEL_REPEATED, true},
        {{1, {1}}, {0, {0}},                MODEL_PLAIN,    true},
        {{0, {0}}, {3, {1, 1, 1}},          MODEL_PLAIN,    true},
        {{2, {0, 6}}, {3, {3, 0, 9}},       MODEL_COLUMNS,  true},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        for (int hidden = 0; hidden <= MODEL_HIDDEN; hidden += MODEL_HIDDEN) {
            model m = model_make(c[i].from, LB_F32, c[i].kind, 3);
            lb_array *a = model_array(cx, &m, LB_F32, c[i].kind + hidden);
            lb_array *r = lb_reshape(cx, a, c[i].to);
            m.shape = c[i].to;
            CHECK_MODEL(cx, r, LB_F32, &m);
            CHECK_EQ_I(r && r->store == a->store, c[i].view);
        }
    }
    model_end();
}

static void test_errors(lb_ctx *cx)
{
    lb_array *a = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    lb_array *deep = lb_zeros(cx, LB_F32, LB_SHAPE(1, 1, 1, 1, 1, 1, 1, 1));
    const int64_t zero[] = {0, 0}, whole[] = {2, 3};
    CHECK_REFUSED(cx, lb_transpose(cx, a, (const int[]){0, 2}), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_transpose(cx, a, (const int[]){0, -3}), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_transpose(cx, a, (const int[]){1, 1}), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_transpose(cx, NULL, NULL), LB_E_NULL);

    CHECK_REFUSED(cx, lb_broadcast_in_dim(cx, a, LB_SHAPE(2, 4), (int[]){0, 1}),
                  LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_broadcast_in_dim(cx, a, LB_SHAPE(2, 3), (int[]){0, 2}),
                  LB_E_AXIS);
    CHECK_REFUSED(cx, lb_broadcast_in_dim(cx, a, LB_SHAPE(3, 3), (int[]){1, 1}),
                  LB_E_AXIS);
    CHECK_REFUSED(cx, lb_broadcast_in_dim(cx, a, LB_SHAPE(2, 3), NULL),
                  LB_E_NULL);
    CHECK_REFUSED(cx, lb_broadcast_to(cx, a, LB_SHAPE(3)), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_broadcast_to(cx, a, LB_SHAPE(2, 2, 2)), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_broadcast_to(cx, a, LB_SHAPE(-1, 2, 3)), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_broadcast_to(cx, a, LB_SHAPE(INT64_MAX, 2, 3)),
                  LB_E_SIZE);
    CHECK_REFUSED(cx,
                  lb_broadcast_to(cx, a, LB_SHAPE(1LL << 30, 1LL << 30, 2, 3)),
                  LB_E_SIZE);
    CHECK_REFUSED(cx, lb_broadcast_to(cx, a, lb_shape_make(9, NULL)),
                  LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_broadcast_to(cx, NULL, LB_SHAPE(3)), LB_E_NULL);

    CHECK_REFUSED(cx, lb_slice(cx, a, (int64_t[]){-1, 0}, whole, NULL),
                  LB_E_ARG);
    CHECK_REFUSED(cx, lb_slice(cx, a, zero, (int64_t[]){2, 4}, NULL), LB_E_ARG);
    CHECK_REFUSED(cx, lb_slice(cx, a, whole, (int64_t[]){1, 3}, NULL),
                  LB_E_ARG);
    CHECK_REFUSED(cx, lb_slice(cx, a, zero, whole, zero), LB_E_ARG);
    CHECK_REFUSED(cx, lb_slice(cx, a, NULL, whole, NULL), LB_E_NULL);
    CHECK_REFUSED(cx, lb_slice(cx, a, zero, NULL, NULL), LB_E_NULL);
    CHECK_REFUSED(cx, lb_slice(cx, NULL, zero, whole, NULL), LB_E_NULL);

    CHECK_REFUSED(cx, lb_reverse(cx, a, LB_AXES(2)), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_reverse(cx, a, LB_AXES(1, -1)), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_reverse(cx, NULL, NULL), LB_E_NULL);

    CHECK_REFUSED(cx, lb_squeeze(cx, a, LB_AXES(0)), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_squeeze(cx, a, LB_AXES(2)), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_squeeze(cx, NULL, NULL), LB_E_NULL);
    CHECK_REFUSED(cx, lb_expand(cx, a, 3), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_expand(cx, deep, 0), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_expand(cx, NULL, 0), LB_E_NULL);

    CHECK_REFUSED(cx, lb_reshape(cx, a, LB_SHAPE(7)), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_reshape(cx, a, LB_SHAPE(-1, -1)), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_reshape(cx, a, LB_SHAPE(-1, 4)), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_reshape(cx, a, LB_SHAPE(-1, 0)), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_reshape(cx, a, LB_SHAPE(-2, -3)), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_reshape(cx, a, LB_SHAPE(-1, INT64_MAX, 3)),
                  LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_reshape(cx, a, LB_SHAPE(INT64_MAX, INT64_MAX)),
                  LB_E_SIZE);
    CHECK_REFUSED(cx, lb_reshape(cx, a, lb_shape_make(9, NULL)), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_reshape(cx, NULL, LB_SHAPE(6)), LB_E_NULL);
    CHECK_REFUSED(cx, lb_reshape_permuted(cx, a, (int[]){0, 0}, LB_SHAPE(6)),
                  LB_E_AXIS);
}

/* lb_bind does not normalise the arguments of lowbit.h. */
static void test_strict(lb_ctx *cx)
{
    lb_array *a = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    const lb_transpose_params t = {{-1, 0}};
    const lb_reverse_params r = {{1, {-1}}};
    const lb_reshape_params n = {.shape = {1, {-1}}};
    const lb_broadcast_params b = {{2, {2, 3}}, {-2, 1}};
#define STRICT(name, p, status)                                                \
    CHECK_REFUSED(cx, lb_bind(cx, lb_find_primitive(cx, name), 1, &a, p),      \
                  status)
    STRICT("transpose", &t, LB_E_AXIS);
    STRICT("reverse", &r, LB_E_AXIS);
    STRICT("reshape", &n, LB_E_SHAPE);
    STRICT("broadcast_in_dim", &b, LB_E_AXIS);
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 2});
    CHECK(cx != NULL);
    if (cx) {
        test_all(cx);
        test_no_copy(cx);
        test_errors(cx);
        test_strict(cx);
        CHECK_EQ_S(lb_error(cx), "");
    }
    lb_close(cx);
    return check_report("test_views");
}
