/* reduce_lanes.h - the inner loops of a reduction, for one type and operation.
 *
 * A template without a guard: a file includes it once for each pair, with
 *   T          the type of an element
 *   NAME(x)    x with the pair's suffix
 *   OP(a, b)   of two vectors of T
 * and once for all
 *   VBYTES     of a vector
 *   REDUCE_FN  how functions are declared: for the level
 *   OTHER_HALF(b, a, n)  n bytes of a from byte n on to the first of b
 *   LOAD_SOME(p, n, rest)   optional: the first n of a vector, the others as in
 *              rest
 *   ANY_ORDER  optional: OP gives the same bits in any order, and VBYTES is 64
 * The lanes and their order are those of the header of reduce.c: 64 bytes of
 * lanes, in as many vectors as that takes, so the bits are the same everywhere.
 * Rows go along memory, columns across it.
 */
#define V     NAME(vec)
#define WIDTH ((int64_t)(sizeof(V) / sizeof(T)))
#define LANES ((int64_t)(64 / sizeof(T)))
#define VECS  ((int)(64 / sizeof(V)))

typedef T V __attribute__((vector_size(VBYTES)));

REDUCE_FN inline V NAME(load)(const T *p)
{
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}

REDUCE_FN inline V NAME(op)(V a, V b)
{
    return OP(a, b);
}

/* The first n of a vector, the others as in rest. */
REDUCE_FN inline V NAME(load_some)(const T *p, int64_t n, V rest)
{
#ifdef LOAD_SOME
    return LOAD_SOME(p, n, rest);
#else
    memcpy(&rest, p, (size_t)n * sizeof(T));
    return rest;
#endif
}

REDUCE_FN inline V NAME(fill)(T x)
{
    T t[sizeof(V) / sizeof(T)];
    for (int64_t i = 0; i < WIDTH; i++)
        t[i] = x;
    return NAME(load)(t);
}

/* The lanes of one half, by as many bytes, with those of the other; half is a
 * constant where this is inlined. */
REDUCE_FN inline V NAME(halve)(V a, const size_t half)
{
    V other;
    OTHER_HALF(other, a, half);
    return NAME(op)(a, other);
}

REDUCE_FN inline void NAME(add)(V *acc, const T *p)
{
    for (int v = 0; v < VECS; v++)
        acc[v] = NAME(op)(acc[v], NAME(load)(p + v * WIDTH));
}

REDUCE_FN inline T NAME(fold)(V *acc)
{
    for (int v = 0; v < 2 && VECS == 4; v++)
        acc[v] = NAME(op)(acc[v], acc[(v + 2) % VECS]);
    V a = VECS > 1 ? NAME(op)(acc[0], acc[VECS > 1]) : acc[0];
    if (sizeof(V) == 64) a = NAME(halve)(a, 32);
    if (sizeof(V) >= 32) a = NAME(halve)(a, 16);
    a = NAME(halve)(a, 8);
    if (sizeof(T) <= 4) a = NAME(halve)(a, 4);
    if (sizeof(T) == 1) a = NAME(halve)(NAME(halve)(a, 2), 1);
    return a[0];
}

/* out[r] = the one chunk of p[r*stride + i], i < n. The identity in lanes past
 * the end changes nothing, not even a zero's sign, as no lane begins with a
 * minus. One row after the other: several at once would hide how long a sum
 * takes, but rows that are a few KiB apart come from memory at half the speed.
 */
REDUCE_FN void NAME(rows)(const void *from, int64_t stride, int64_t rows,
                          int64_t n, const void *identity, void *to)
{
    const T *p = from;
    T *out = to;
    const V id = NAME(fill)(*(const T *)identity);
    for (int64_t r = 0; r < rows; r++, p += stride) {
        V acc[64 / sizeof(V)];
        for (int v = 0; v < VECS; v++)
            acc[v] = id;
        int64_t i = 0;
#ifdef ANY_ORDER
        V more[3] = {id, id, id};
        for (; i + 4 * LANES <= n; i += 4 * LANES) {
            NAME(add)(acc, p + i);
            for (int k = 0; k < 3; k++)
                NAME(add)(more + k, p + i + (k + 1) * LANES);
        }
        more[0] = NAME(op)(more[0], more[1]);
        acc[0] = NAME(op)(acc[0], NAME(op)(more[0], more[2]));
#endif
        for (; i + LANES <= n; i += LANES)
            NAME(add)(acc, p + i);
        for (int v = 0; v < VECS && i < n; v++, i += WIDTH) {
            const int64_t m = n - i < WIDTH ? n - i : WIDTH;
            acc[v] = NAME(op)(acc[v], NAME(load_some)(p + i, m, id));
        }
        out[r] = NAME(fold)(acc);
    }
}

/* to[i] = OP(x[i], y[i]); to may be either. */
REDUCE_FN void NAME(join)(const void *x, const void *y, int64_t n, void *to)
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

/* A vector of acc with those at p, p + step, p + 2 step, p + 3 step. */
REDUCE_FN inline void NAME(four)(T *acc, const T *p, int64_t step)
{
    V a = NAME(op)(NAME(load)(acc), NAME(load)(p));
    a = NAME(op)(a, NAME(load)(p + step));
    a = NAME(op)(a, NAME(load)(p + 2 * step));
    a = NAME(op)(a, NAME(load)(p + 3 * step));
    memcpy(acc, &a, sizeof a);
}

/* Four rows of one lane, and a word to memory about those of the next. */
REDUCE_FN void NAME(four_rows)(T *acc, const T *p, int64_t step, int64_t next,
                               int64_t w)
{
    int64_t j = 0;
    for (; j + LANES <= w; j += LANES, p += LANES, acc += LANES) {
        __builtin_prefetch(p + next);
        __builtin_prefetch(p + next + step);
        __builtin_prefetch(p + next + 2 * step);
        __builtin_prefetch(p + next + 3 * step);
        for (int v = 0; v < VECS; v++)
            NAME(four)(acc + v * WIDTH, p + v * WIDTH, step);
    }
    for (; j + WIDTH <= w; j += WIDTH, p += WIDTH, acc += WIDTH)
        NAME(four)(acc, p, step);
    for (int64_t r = 0; r < 4 && j < w; r++)
        NAME(join)(acc, p + r * step, w - j, acc);
}

/* Four rows of a lane at a time, to touch its numbers a quarter as often. */
REDUCE_FN void NAME(cols)(const void *from, int64_t stride, int64_t rows,
                          int64_t w, int64_t lane, void *lanes)
{
    const T *p = from;
    T *acc = lanes;
    int64_t r = 0;
    for (; r + 4 * LANES <= rows; r += 4 * LANES)
        for (int64_t l = 0; l < LANES; l++)
            NAME(four_rows)
    (acc + (lane + l) % LANES * w, p + (r + l) * stride, LANES * stride, stride,
     w);
    for (; r < rows; r++) {
        T *to = acc + (lane + r) % LANES * w;
        NAME(join)(to, p + r * stride, w, to);
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
#undef VECS
#undef T
#undef NAME
#undef OP
