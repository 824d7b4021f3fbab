/* reduce_lanes.h - the inner loops of a reduction, for one type and operation.
 *
 * A template without a guard: reduce_ops.c includes it once for each pair, with
 *   T          the type of an element
 *   NAME(x)    x with the pair's suffix
 *   OP(a, b)   of two vectors of T
 * The lanes and their order are those of the header of reduce.c: 64 bytes of
 * lanes in four vectors that every machine has, so the bits are the same
 * everywhere. Rows go along memory, columns across it.
 */
#define V     NAME(vec)
#define WIDTH ((int64_t)(sizeof(V) / sizeof(T)))
#define LANES (4 * WIDTH)

typedef T V __attribute__((vector_size(16)));

static inline V NAME(load)(const T *p)
{
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline V NAME(op)(V a, V b)
{
    return OP(a, b);
}

/* The first n of a vector, the others as in rest. */
static inline V NAME(load_some)(const T *p, int64_t n, V rest)
{
    memcpy(&rest, p, (size_t)n * sizeof(T));
    return rest;
}

static inline V NAME(fill)(T x)
{
    T t[sizeof(V) / sizeof(T)];
    for (int64_t i = 0; i < WIDTH; i++)
        t[i] = x;
    return NAME(load)(t);
}

/* out[r] = the one chunk of p[r*stride + i], i < n. */
static void NAME(rows)(const void *from, int64_t stride, int64_t rows,
                       int64_t n, const void *identity, void *to)
{
    const T *p = from;
    T *out = to;
    const V id = NAME(fill)(*(const T *)identity);
    for (int64_t r = 0; r < rows; r++, p += stride) {
        V a = id, b = id, c = id, d = id;
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES) {
            a = NAME(op)(a, NAME(load)(p + i));
            b = NAME(op)(b, NAME(load)(p + i + WIDTH));
            c = NAME(op)(c, NAME(load)(p + i + 2 * WIDTH));
            d = NAME(op)(d, NAME(load)(p + i + 3 * WIDTH));
        }
        if (i < n) {
            V rest[4] = {id, id, id, id};
            memcpy(rest, p + i, (size_t)(n - i) * sizeof(T));
            a = NAME(op)(a, rest[0]);
            b = NAME(op)(b, rest[1]);
            c = NAME(op)(c, rest[2]);
            d = NAME(op)(d, rest[3]);
        }
        a = NAME(op)(a, c);
        b = NAME(op)(b, d);
        a = NAME(op)(a, b);
        for (size_t half = sizeof(V) / 2; half >= sizeof(T); half /= 2) {
            V other = a;
            memcpy(&other, (const char *)&a + half, half);
            a = NAME(op)(a, other);
        }
        out[r] = a[0];
    }
}

/* to[i] = OP(x[i], y[i]); to may be either. */
static void NAME(join)(const void *x, const void *y, int64_t n, void *to)
{
    const T *p = x, *q = y;
    T *out = to;
    const V zero = {0};
    for (int64_t i = 0; i < n; i += WIDTH) {
        const int64_t m = n - i < WIDTH ? n - i : WIDTH;
        const V v = m == WIDTH ? NAME(op)(NAME(load)(p + i), NAME(load)(q + i))
                               : NAME(op)(NAME(load_some)(p + i, m, zero),
                                          NAME(load_some)(q + i, m, zero));
        memcpy(out + i, &v, (size_t)m * sizeof(T));
    }
}

/* Rows of w columns onto the lanes of each column, acc[lane*ld + j]; the first
 * row belongs to the given lane. ld is a multiple of WIDTH. */
static void NAME(cols)(const void *from, int64_t stride, int64_t rows,
                       int64_t w, int64_t lane, int64_t ld, void *lanes)
{
    const T *p = from;
    for (int64_t r = 0; r < rows; r++, p += stride) {
        T *acc = (T *)lanes + (lane + r) % LANES * ld;
        int64_t j = 0;
        for (; j + LANES <= w; j += LANES) {
            const V a = NAME(op)(NAME(load)(acc + j), NAME(load)(p + j));
            const V b = NAME(op)(NAME(load)(acc + j + WIDTH),
                                 NAME(load)(p + j + WIDTH));
            const V c = NAME(op)(NAME(load)(acc + j + 2 * WIDTH),
                                 NAME(load)(p + j + 2 * WIDTH));
            const V d = NAME(op)(NAME(load)(acc + j + 3 * WIDTH),
                                 NAME(load)(p + j + 3 * WIDTH));
            memcpy(acc + j, &a, sizeof a);
            memcpy(acc + j + WIDTH, &b, sizeof b);
            memcpy(acc + j + 2 * WIDTH, &c, sizeof c);
            memcpy(acc + j + 3 * WIDTH, &d, sizeof d);
        }
        if (j < w) NAME(join)(acc + j, p + j, w - j, acc + j);
    }
}

static const lb_reducer NAME(reducer) = {
    .size = sizeof(T),
    .lanes = 64 / sizeof(T),
    .rows = NAME(rows),
    .cols = NAME(cols),
    .join = NAME(join),
};

#undef V
#undef WIDTH
#undef LANES
#undef T
#undef NAME
#undef OP
