/* test_structure.c - the primitives that move elements into new arrays: copy,
 * reshape where it copies, concatenate, pad, dynamic slices, iota, constants.
 * Against index arithmetic, with 1, 2 and 7 threads: the model has one value
 * for each element, so equality means equal bits. */
/* ctest: skip-tsan */
#include "lowbit_params.h"
#include "model.h"

static const lb_dtype dtypes[] = {LB_F32, LB_I8,  LB_F16,  LB_F64, LB_BF16,
                                  LB_U64, LB_I16, LB_BOOL, LB_U8,  LB_I32};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

/* Every kind of view, dense and hidden, each with a dtype. */
static int kind_of(int i)
{
    return i % MODEL_VIEWS + i / MODEL_VIEWS % 2 * MODEL_HIDDEN;
}
enum { N_KINDS = 2 * MODEL_VIEWS };

/* ---- copy ---------------------------------------------------------------- */

static void test_copy(lb_ctx *cx)
{
    static const lb_shape shapes[] = {
        {0, {0}},
        {1, {1}},
        {1, {1000}},
        {2, {37, 71}},
        {2, {3, 700}},
        {2, {700, 3}},
        {3, {5, 0, 7}},
        {3, {17, 1, 19}},
        {3, {9, 33, 21}},
        {4, {3, 5, 70, 2}},
        {8, {2, 1, 3, 1, 2, 3, 1, 2}},
    };
    const int n = sizeof shapes / sizeof *shapes;
    for (int i = 0; i < n * N_KINDS; i++) {
        const lb_dtype d = dtypes[(i / N_KINDS + i) % N_DTYPES];
        const int kind = kind_of(i % N_KINDS);
        lb_enter(cx);
        const model m = model_make(shapes[i / N_KINDS], d, kind, (uint32_t)i);
        lb_array *a = model_array(cx, &m, d, kind);
        lb_array *c = lb_materialize(cx, a);
        CHECK_MODEL(cx, c, d, &m);
        CHECK(lb_data(c) != NULL);
        CHECK_EQ_I(c == a, lb_data(a) != NULL);
        /* The primitive itself always copies. */
        const lb_prim *copy = lb_find_primitive(cx, "copy");
        lb_array *b = lb_bind(cx, copy, 1, &a, NULL);
        CHECK_MODEL(cx, b, d, &m);
        CHECK(b && b->store != a->store);
        lb_leave(cx);
        model_end();
    }
}

/* Large ones, for every element size: several units, blocks and their ends, and
 * larger than the caches. */
static void test_large_copy(lb_ctx *cx)
{
    static const lb_shape shapes[] = {{2, {260, 530}}, {3, {130, 5, 201}}};
    static const lb_dtype sizes[] = {LB_F64, LB_F32, LB_BF16, LB_U8};
    for (int i = 0; i < 2 * MODEL_VIEWS * 4; i++) {
        const lb_dtype d = sizes[i % 4];
        const int kind = i / 4 % MODEL_VIEWS;
        lb_enter(cx);
        const model m = model_make(shapes[i / 4 / MODEL_VIEWS], d, kind, 5);
        lb_array *a = model_array(cx, &m, d, kind);
        CHECK_MODEL(cx, lb_materialize(cx, a), d, &m);
        lb_leave(cx);
        model_end();
    }
    if (lb_threads(cx) != 2) return;
    for (int kind = 0; kind <= MODEL_COLUMNS; kind++) { /* 17 MB */
        lb_enter(cx);
        const model m =
            model_make((lb_shape){2, {1300, 1700}}, LB_F64, kind, 5);
        lb_array *a = model_array(cx, &m, LB_F64, kind);
        const lb_prim *copy = lb_find_primitive(cx, "copy");
        CHECK_MODEL(cx, lb_bind(cx, copy, 1, &a, NULL), LB_F64, &m);
        lb_leave(cx);
        model_end();
    }
}

static void test_reshape(lb_ctx *cx)
{
    for (int i = 0; i < 4 * N_KINDS; i++) {
        const lb_dtype d = dtypes[i % N_DTYPES];
        const int kind = kind_of(i % N_KINDS);
        lb_enter(cx);
        model m = model_make((lb_shape){3, {6, 10, 35}}, d, kind, 11);
        lb_array *a = model_array(cx, &m, d, kind);
        const lb_shape to[] = {
            {1, {2100}}, {2, {-1, 7}}, {4, {2, 5, 6, -1}}, {2, {42, 50}}};
        const lb_shape is[] = {
            {1, {2100}}, {2, {300, 7}}, {4, {2, 5, 6, 35}}, {2, {42, 50}}};
        m.shape = is[i / N_KINDS];
        CHECK_MODEL(cx, lb_reshape(cx, a, to[i / N_KINDS]), d, &m);
        lb_leave(cx);
        model_end();
    }
}

static void test_reshape_permuted(lb_ctx *cx)
{
    static const int perms[][3] = {{0, 1, 2}, {2, 0, 1}, {2, 1, 0}, {0, 2, 1}};
    for (int i = 0; i < 4 * N_KINDS; i++) {
        const lb_dtype d = dtypes[i % N_DTYPES];
        const int kind = kind_of(i % N_KINDS), *p = perms[i / N_KINDS];
        lb_enter(cx);
        const model m = model_make((lb_shape){3, {4, 6, 9}}, d, kind, 12);
        lb_array *a = model_array(cx, &m, d, kind);
        lb_shape turned = {.rank = 3};
        for (int k = 0; k < 3; k++)
            turned.dim[k] = m.shape.dim[p[k]];
        model want = model_new((lb_shape){2, {8, 27}});
        for (int64_t e = 0; e < 216; e++) {
            int64_t j[LB_MAX_RANK], from[LB_MAX_RANK];
            model_index(&turned, e, j);
            for (int k = 0; k < 3; k++)
                from[p[k]] = j[k];
            want.v[e] = m.v[model_flat(&m.shape, from)];
        }
        CHECK_MODEL(cx, lb_reshape_permuted(cx, a, p, LB_SHAPE(-1, 27)), d,
                    &want);
        if (i / N_KINDS == 2)
            CHECK_MODEL(cx, lb_reshape_permuted(cx, a, NULL, LB_SHAPE(8, 27)),
                        d, &want);
        lb_leave(cx);
        model_end();
    }
}

/* ---- concatenate --------------------------------------------------------- */

static model model_join(const model *m, int n, int axis)
{
    lb_shape s = m[0].shape;
    for (int i = 1; i < n; i++)
        s.dim[axis] += m[i].shape.dim[axis];
    model r = model_new(s);
    for (int64_t e = 0; e < model_size(&s); e++) {
        int64_t i[LB_MAX_RANK] = {0};
        int k = 0;
        model_index(&s, e, i);
        while (i[axis] >= m[k].shape.dim[axis])
            i[axis] -= m[k++].shape.dim[axis];
        r.v[e] = m[k].v[model_flat(&m[k].shape, i)];
    }
    return r;
}

static void test_concatenate(lb_ctx *cx)
{
    static const lb_shape shapes[] = {
        {1, {7}}, {2, {5, 6}}, {3, {4, 3, 2}}, {2, {0, 3}}, {2, {300, 41}}};
    for (int i = 0; i < 5 * N_KINDS; i++) {
        const lb_dtype d = dtypes[(i + i / N_KINDS) % N_DTYPES];
        lb_shape s = shapes[i / N_KINDS];
        for (int axis = 0; axis < s.rank; axis++) {
            enum { MOST = 40 };
            const int n = axis == 0 && i % 5 == 0 ? MOST : 1 + i % 4;
            model m[MOST];
            lb_array *in[MOST];
            lb_enter(cx);
            for (int k = 0; k < n; k++) {
                const int kind = kind_of((i + k) % N_KINDS);
                s.dim[axis] = k % 3 ? shapes[i / N_KINDS].dim[axis] + k % 4 : 0;
                m[k] = model_make(s, d, kind, (uint32_t)(i * 50 + k));
                in[k] = model_array(cx, &m[k], d, kind);
            }
            const model want = model_join(m, n, axis);
            CHECK_MODEL(cx, lb_concatenate(cx, in, n, axis), d, &want);
            CHECK_MODEL(cx, lb_concatenate(cx, in, n, axis - s.rank), d, &want);
            lb_leave(cx);
            model_end();
        }
    }
    /* promotion: i32 with f16 is f16, a weak scalar follows. */
    lb_array *a = lb_full_int(cx, LB_I32, LB_SHAPE(2), 3);
    lb_array *b = lb_full(cx, LB_F16, LB_SHAPE(1), 0.5);
    lb_array *in[] = {a, b, lb_reshape(cx, lb_scalar(cx, 2), LB_SHAPE(1))};
    model want = model_new((lb_shape){1, {4}});
    memcpy(want.v, (double[]){3, 3, 0.5, 2}, 4 * sizeof(double));
    CHECK_MODEL(cx, lb_concatenate(cx, in, 3, 0), LB_F16, &want);
    model_end();
}

/* ---- pad ----------------------------------------------------------------- */

static model model_pad(const model *m, double value, const int64_t *lo,
                       const int64_t *hi, const int64_t *in)
{
    lb_shape s = m->shape;
    for (int k = 0; k < s.rank; k++)
        s.dim[k] += lo[k] + hi[k] + (s.dim[k] ? (s.dim[k] - 1) * in[k] : 0);
    model r = model_new(s);
    for (int64_t e = 0; e < model_size(&s); e++)
        r.v[e] = value;
    for (int64_t e = 0; e < model_size(&m->shape); e++) {
        int64_t i[LB_MAX_RANK];
        bool inside = true;
        model_index(&m->shape, e, i);
        for (int k = 0; k < s.rank; k++) {
            i[k] = lo[k] + i[k] * (in[k] + 1);
            inside = inside && i[k] >= 0 && i[k] < s.dim[k];
        }
        if (inside) r.v[model_flat(&s, i)] = m->v[e];
    }
    return r;
}

static void test_pad(lb_ctx *cx)
{
    static const lb_shape shapes[] = {
        {0, {0}},    {1, {7}},       {2, {5, 6}},    {3, {4, 3, 5}},
        {2, {4, 0}}, {3, {1, 2, 1}}, {2, {120, 99}}, {1, {1}}};
    uint32_t seed = 1;
    for (int i = 0; i < 8 * N_KINDS * 3; i++) {
        const lb_shape s = shapes[i % 8];
        const lb_dtype d = dtypes[i % N_DTYPES];
        const int kind = kind_of(i / 8 % N_KINDS);
        int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK], in[LB_MAX_RANK];
        for (int k = 0; k < s.rank; k++) {
            in[k] = i % 3 ? model_random(&seed) % 4 : 0;
            const int64_t n = s.dim[k] ? (s.dim[k] - 1) * (in[k] + 1) + 1 : 0;
            lo[k] = (int64_t)(model_random(&seed) % 12) - 5;
            hi[k] = (int64_t)(model_random(&seed) % 12) - 5;
            if (lo[k] + hi[k] + n < 0) hi[k] = -n - lo[k];
        }
        lb_enter(cx);
        const model m = model_make(s, d, kind, seed);
        const model one = model_make((lb_shape){0}, d, 0, seed + 1);
        lb_array *a = model_array(cx, &m, d, kind);
        lb_array *v = model_array(cx, &one, d, i % 5 ? 0 : MODEL_HIDDEN);
        const model want = model_pad(&m, one.v[0], lo, hi, in);
        CHECK_MODEL(cx, lb_pad(cx, a, v, lo, hi, in), d, &want);
        lb_leave(cx);
        model_end();
    }
}

static void test_pad_more(lb_ctx *cx)
{
    const model m = model_make((lb_shape){2, {2, 3}}, LB_F16, 0, 4);
    lb_array *a = model_array(cx, &m, LB_F16, 0);
    const int64_t none[2] = {0}, one[2] = {1, 1};
    /* NULLs are zeros, a weak value takes the array's dtype. */
    CHECK_MODEL(cx, lb_pad(cx, a, lb_scalar(cx, 7), NULL, NULL, NULL), LB_F16,
                &m);
    const model want = model_pad(&m, 7, one, none, one);
    CHECK_MODEL(cx, lb_pad(cx, a, lb_scalar(cx, 7), one, NULL, one), LB_F16,
                &want);
    /* Interior padding of one element is empty, however large; widths may be
     * arbitrarily large if they cancel. */
    lb_array *x = lb_full(cx, LB_F32, LB_SHAPE(1), 5);
    const int64_t big[] = {INT64_MAX}, small[] = {-INT64_MAX}, up[] = {2};
    model three = model_new((lb_shape){1, {3}});
    memcpy(three.v, (double[]){9, 9, 5}, 3 * sizeof(double));
    CHECK_MODEL(cx, lb_pad(cx, x, lb_scalar(cx, 9), up, NULL, big), LB_F32,
                &three);
    const model gone = model_new((lb_shape){1, {1}});
    CHECK_MODEL(cx, lb_pad(cx, x, lb_scalar(cx, 0), small, big, NULL), LB_F32,
                &gone);
    const int64_t least[] = {INT64_MIN}, after[] = {INT64_MAX};
    const model nothing = model_new((lb_shape){1, {0}});
    CHECK_MODEL(cx, lb_pad(cx, x, lb_scalar(cx, 0), least, after, NULL), LB_F32,
                &nothing);
    model_end();
}

/* ---- dynamic ------------------------------------------------------------- */

/* Starts of several dtypes, in and out of range. */
static void make_starts(lb_ctx *cx, const lb_shape *s, const int64_t *n,
                        uint32_t *seed, lb_array **out, int64_t *at)
{
    for (int k = 0; k < s->rank; k++) {
        const lb_dtype d =
            (lb_dtype[]){LB_I32, LB_U8, LB_I64, LB_U64, LB_I8}[k % 5];
        int64_t v = model_random(seed) % (s->dim[k] + 3);
        const bool plus = d == LB_U8 || d == LB_U64;
        if (!plus && model_random(seed) % 4 == 0) v = -v;
        uint64_t raw = (uint64_t)v;
        if (d == LB_U64 && v > s->dim[k]) raw = UINT64_MAX;
        out[k] = lb_from(cx, d, (lb_shape){0}, &raw);
        const int64_t most = s->dim[k] - n[k];
        at[k] = v > most ? most : v < 0 ? 0 : v;
    }
}

static void test_dynamic(lb_ctx *cx)
{
    static const lb_shape shapes[] = {{0, {0}},       {1, {9}},
                                      {2, {5, 6}},    {3, {4, 3, 5}},
                                      {2, {4, 0}},    {5, {2, 3, 2, 4, 3}},
                                      {2, {150, 130}}};
    uint32_t seed = 2;
    for (int i = 0; i < 7 * N_KINDS * 2; i++) {
        const lb_shape s = shapes[i % 7];
        const lb_dtype d = dtypes[i % N_DTYPES];
        const int kind = kind_of(i / 7 % N_KINDS);
        int64_t at[LB_MAX_RANK], index[LB_MAX_RANK];
        lb_array *starts[LB_MAX_RANK];
        lb_shape part = s;
        for (int k = 0; k < s.rank; k++)
            part.dim[k] = model_random(&seed) % (s.dim[k] + 1);
        lb_enter(cx);
        make_starts(cx, &s, part.dim, &seed, starts, at);
        const model m = model_make(s, d, kind, seed);
        const int other = kind_of((i + 5) % N_KINDS);
        const model u = model_make(part, d, other, seed + 1);
        lb_array *a = model_array(cx, &m, d, kind);
        lb_array *b = model_array(cx, &u, d, other);
        model cut = model_new(part), put = model_new(s);
        memcpy(put.v, m.v, (size_t)model_size(&s) * sizeof(double));
        for (int64_t e = 0; e < model_size(&part); e++) {
            model_index(&part, e, index);
            for (int k = 0; k < s.rank; k++)
                index[k] += at[k];
            cut.v[e] = m.v[model_flat(&s, index)];
            put.v[model_flat(&s, index)] = u.v[e];
        }
        lb_array *c = lb_dynamic_slice(cx, a, starts, part.dim);
        CHECK_MODEL(cx, c, d, &cut);
        CHECK(c && c->store == a->store);
        CHECK_MODEL(cx, lb_dynamic_update_slice(cx, a, b, starts), d, &put);
        lb_leave(cx);
        model_end();
    }
}

/* ---- made from nothing --------------------------------------------------- */

static void test_iota(lb_ctx *cx)
{
    static const lb_shape shapes[] = {
        {1, {1}}, {1, {100}}, {2, {3, 50}}, {3, {7, 0, 2}}, {3, {70, 20, 9}}};
    for (int i = 0; i < 5 * N_DTYPES; i++) {
        const lb_shape s = shapes[i % 5];
        const lb_dtype d = dtypes[i / 5];
        if (d == LB_BOOL) continue;
        for (int axis = 0; axis < s.rank; axis++) {
            model want = model_new(s);
            for (int64_t e = 0; e < model_size(&s); e++) {
                int64_t at[LB_MAX_RANK];
                model_index(&s, e, at);
                want.v[e] = (double)at[axis];
            }
            CHECK_MODEL(cx, lb_iota(cx, d, s, axis), d, &want);
            CHECK_MODEL(cx, lb_iota(cx, d, s, axis - s.rank), d, &want);
        }
        model_end();
    }
    /* Rounded once: 2^24 + 2^16 + 1 is above the midpoint of two bf16 (whose
     * last bit is 2^17 there), and rounding to f32 first would make it a tie,
     * rounded down. Small dtypes wrap. */
    const int64_t n = (1 << 24) + (1 << 16) + 2;
    lb_enter(cx);
    lb_array *b = lb_iota(cx, LB_BF16, LB_SHAPE(n), 0);
    const uint16_t *bits = lb_data(b);
    CHECK(bits && model_get(LB_BF16, bits + n - 2) == (1 << 24));
    CHECK(bits && model_get(LB_BF16, bits + n - 1) == (1 << 24) + (1 << 17));
    lb_array *w = lb_iota(cx, LB_I8, LB_SHAPE(300), 0);
    const int8_t *wrapped = lb_data(w);
    CHECK(wrapped && wrapped[127] == 127 && wrapped[128] == -128 &&
          wrapped[299] == 43);
    lb_leave(cx);
}

static void test_full(lb_ctx *cx)
{
    static const struct {
        lb_dtype d;
        double in, want;
    } c[] = {
        {LB_F32, 0.1, (double)0.1f},
        {LB_F64, 0.1, 0.1},
        {LB_F16, 65504, 65504},
        {LB_BF16, -3, -3},
        {LB_I8, 300, 127},
        {LB_I8, -3.9, -3},
        {LB_U8, -5, 0},
        {LB_I32, (double)NAN, 0},
        {LB_BOOL, 0.5, 1},
        {LB_I64, 1e300, 0x1p63},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        for (int rank = 0; rank < 3; rank++) {
            model m = model_new((lb_shape){rank, {3, (int64_t)i % 3}});
            for (int64_t e = 0; e < model_size(&m.shape); e++)
                m.v[e] = c[i].want;
            CHECK_MODEL(cx, lb_full(cx, c[i].d, m.shape, c[i].in), c[i].d, &m);
        }
    }
    for (int i = 0; i < N_DTYPES; i++) {
        model m = model_new((lb_shape){2, {2, 2}});
        CHECK_MODEL(cx, lb_zeros(cx, dtypes[i], m.shape), dtypes[i], &m);
        for (int e = 0; e < 4; e++)
            m.v[e] = dtypes[i] == LB_BOOL ? 1 : 100;
        CHECK_MODEL(cx, lb_full_int(cx, dtypes[i], m.shape, 100), dtypes[i],
                    &m);
    }
    lb_array *big = lb_full_int(cx, LB_I64, (lb_shape){0}, INT64_MIN);
    CHECK_EQ_I(lb_item_int(cx, big), INT64_MIN);
    model_end();
}

/* ---- errors -------------------------------------------------------------- */

static void test_join_errors(lb_ctx *cx)
{
    lb_array *a = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    lb_array *i = lb_zeros(cx, LB_I32, LB_SHAPE(2, 3));
    lb_array *b = lb_zeros(cx, LB_F32, LB_SHAPE(3, 2));
    lb_array *v = lb_zeros(cx, LB_F32, LB_SHAPE(2));
    lb_array *huge = lb_zeros(cx, LB_F32, LB_SHAPE(1LL << 58));
    lb_array *none = lb_zeros(cx, LB_F32, LB_SHAPE(1LL << 57, 0));
    lb_array *s = lb_zeros(cx, LB_F32, (lb_shape){0});
    lb_array *many[4] = {huge, huge, huge, huge};
    lb_array *empty[16] = {0};
    for (int k = 0; k < 16; k++)
        empty[k] = none;
#define JOIN(axis, ...)                                                        \
    lb_concatenate(cx, (lb_array *[]){__VA_ARGS__},                            \
                   sizeof((lb_array *[]){__VA_ARGS__}) / sizeof a, axis)
    CHECK_REFUSED(cx, JOIN(2, a, a), LB_E_AXIS);
    CHECK_REFUSED(cx, JOIN(-3, a, a), LB_E_AXIS);
    CHECK_REFUSED(cx, JOIN(0, s, s), LB_E_AXIS);
    CHECK_REFUSED(cx, JOIN(0, a, b), LB_E_SHAPE);
    CHECK_REFUSED(cx, JOIN(0, a, v), LB_E_SHAPE);
    CHECK_REFUSED(cx, JOIN(0, a, NULL), LB_E_NULL);
    CHECK_REFUSED(cx, JOIN(0, NULL, a), LB_E_NULL);
    CHECK_REFUSED(cx, lb_concatenate(cx, NULL, 0, 0), LB_E_ARG);
    CHECK_REFUSED(cx, lb_concatenate(cx, many, 4, 0), LB_E_SIZE);
    CHECK_REFUSED(cx, lb_concatenate(cx, empty, 16, 0), LB_E_SIZE);
    const lb_concatenate_params p = {0};
    lb_array *mixed[] = {a, i};
    const lb_prim *join = lb_find_primitive(cx, "concatenate");
    CHECK_REFUSED(cx, lb_bind(cx, join, 2, mixed, &p), LB_E_DTYPE);
}

static void test_pad_errors(lb_ctx *cx)
{
    lb_array *a = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    lb_array *zero = lb_zeros(cx, LB_F32, (lb_shape){0});
    lb_array *wrong = lb_zeros(cx, LB_I32, (lb_shape){0});
    const int64_t most[] = {INT64_MAX, 0}, cut[] = {-2, -2};
    const int64_t large[] = {1LL << 60, 0}, minus[] = {0, -1};
    CHECK_REFUSED(cx, lb_pad(cx, a, a, NULL, NULL, NULL), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_pad(cx, a, wrong, NULL, NULL, NULL), LB_E_DTYPE);
    /* a scalar takes the array's dtype, but must not lose precision */
    lb_array *i8 = lb_zeros(cx, LB_I8, LB_SHAPE(2));
    lb_array *yes = lb_zeros(cx, LB_BOOL, LB_SHAPE(2));
    lb_array *half = lb_scalar(cx, 0.5), *many = lb_scalar_int(cx, 300);
    CHECK_REFUSED(cx, lb_pad(cx, i8, half, NULL, NULL, NULL), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_pad(cx, i8, many, NULL, NULL, NULL), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_pad(cx, yes, half, NULL, NULL, NULL), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_pad(cx, yes, many, NULL, NULL, NULL), LB_E_DTYPE);
    CHECK(lb_pad(cx, i8, lb_scalar_int(cx, -128), NULL, NULL, NULL) != NULL);
    CHECK_REFUSED(cx, lb_pad(cx, a, zero, most, NULL, NULL), LB_E_SIZE);
    CHECK_REFUSED(cx, lb_pad(cx, a, zero, NULL, most, NULL), LB_E_SIZE);
    CHECK_REFUSED(cx, lb_pad(cx, a, zero, NULL, NULL, most), LB_E_SIZE);
    CHECK_REFUSED(cx, lb_pad(cx, a, zero, large, NULL, NULL), LB_E_SIZE);
    CHECK_REFUSED(cx, lb_pad(cx, a, zero, cut, cut, NULL), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_pad(cx, a, zero, NULL, NULL, minus), LB_E_ARG);
    CHECK_REFUSED(cx, lb_pad(cx, NULL, zero, NULL, NULL, NULL), LB_E_NULL);
    CHECK_REFUSED(cx, lb_pad(cx, a, NULL, NULL, NULL, NULL), LB_E_NULL);
}

static void test_dynamic_errors(lb_ctx *cx)
{
    lb_array *a = lb_zeros(cx, LB_F32, LB_SHAPE(2, 3));
    lb_array *v = lb_zeros(cx, LB_F32, LB_SHAPE(3));
    lb_array *wide = lb_zeros(cx, LB_F32, LB_SHAPE(1, 4));
    lb_array *i = lb_scalar_int(cx, 0), *f = lb_scalar(cx, 0);
    lb_array *row = lb_zeros(cx, LB_I32, LB_SHAPE(1));
    lb_array *ok[] = {i, i}, *floats[] = {i, f}, *rows[] = {row, i};
    lb_array *null[] = {i, NULL};
    const int64_t n[] = {1, 2}, big[] = {1, 4}, minus[] = {-1, 1};
    CHECK_REFUSED(cx, lb_dynamic_slice(cx, a, ok, big), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_dynamic_slice(cx, a, ok, minus), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_dynamic_slice(cx, a, floats, n), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_dynamic_slice(cx, a, rows, n), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_dynamic_slice(cx, a, null, n), LB_E_NULL);
    CHECK_REFUSED(cx, lb_dynamic_slice(cx, a, NULL, n), LB_E_NULL);
    CHECK_REFUSED(cx, lb_dynamic_slice(cx, a, ok, NULL), LB_E_NULL);
    CHECK_REFUSED(cx, lb_dynamic_slice(cx, NULL, ok, n), LB_E_NULL);
#define UPDATE(a, u, s) lb_dynamic_update_slice(cx, a, u, s)
    CHECK_REFUSED(cx, UPDATE(a, wide, ok), LB_E_SHAPE);
    CHECK_REFUSED(cx, UPDATE(a, v, ok), LB_E_SHAPE);
    CHECK_REFUSED(cx, UPDATE(a, a, floats), LB_E_DTYPE);
    CHECK_REFUSED(cx, UPDATE(a, NULL, ok), LB_E_NULL);
    CHECK_REFUSED(cx, UPDATE(a, a, NULL), LB_E_NULL);
    const lb_prim *update = lb_find_primitive(cx, "dynamic_update_slice");
    lb_array *ints = lb_zeros(cx, LB_I32, LB_SHAPE(1, 1));
    CHECK_REFUSED(cx, lb_bind(cx, update, 1, &a, NULL), LB_E_ARG);
    CHECK_REFUSED(cx, lb_bind(cx, update, 3, (lb_array *[]){a, a, i}, NULL),
                  LB_E_ARG);
    CHECK_REFUSED(cx,
                  lb_bind(cx, update, 4, (lb_array *[]){a, ints, i, i}, NULL),
                  LB_E_DTYPE);
}

static void test_made_errors(lb_ctx *cx)
{
    CHECK_REFUSED(cx, lb_iota(cx, LB_F32, LB_SHAPE(2, 3), 2), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_iota(cx, LB_F32, (lb_shape){0}, 0), LB_E_AXIS);
    CHECK_REFUSED(cx, lb_iota(cx, LB_BOOL, LB_SHAPE(2), 0), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_iota(cx, (lb_dtype)77, LB_SHAPE(2), 0), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_iota(cx, LB_F32, LB_SHAPE(-2), 0), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_iota(cx, LB_F32, LB_SHAPE(1LL << 40, 1LL << 40), 0),
                  LB_E_SIZE);
    CHECK_REFUSED(cx, lb_iota(cx, LB_F32, lb_shape_make(9, NULL), 0),
                  LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_full(cx, LB_F32, LB_SHAPE(-2), 1), LB_E_SHAPE);
    CHECK_REFUSED(cx, lb_full(cx, (lb_dtype)77, LB_SHAPE(2), 1), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_zeros(cx, LB_NO_DTYPE, LB_SHAPE(2)), LB_E_DTYPE);
    CHECK_REFUSED(cx, lb_zeros(cx, LB_F32, LB_SHAPE(INT64_MAX)), LB_E_SIZE);
    CHECK_REFUSED(cx, lb_materialize(cx, NULL), LB_E_NULL);
}

int main(void)
{
    static const int threads[] = {1, 2, 7};
    for (int i = 0; i < 3; i++) {
        lb_ctx *cx = lb_open(&(lb_options){.threads = threads[i]});
        CHECK(cx != NULL);
        if (!cx) continue;
        test_copy(cx);
        test_large_copy(cx);
        test_reshape(cx);
        test_reshape_permuted(cx);
        test_concatenate(cx);
        test_pad(cx);
        test_pad_more(cx);
        test_dynamic(cx);
        test_iota(cx);
        test_full(cx);
        test_join_errors(cx);
        test_pad_errors(cx);
        test_dynamic_errors(cx);
        test_made_errors(cx);
        CHECK_EQ_S(lb_error(cx), "");
        lb_close(cx);
    }
    return check_report("test_structure");
}
