/* lanes_f32_loops.h - the loops behind lanes_f32.def, for one level.
 *
 * A template without a guard: each level's file includes it once, with
 *   vf, vi, vu         vectors of float, int32_t and uint32_t
 *   LANE_FN         how small functions are declared: inline, for the level
 *   LANE_RUN        how loops are declared: for the level
 *   LANE_TABLE      the table to be defined, and LANE_NAME, its name
 * and after mathf_lanes.h and these functions, for which vectors of the
 * compiler have no operator:
 *   vf root_of(vf), vf inverse_root_of(vf)
 *   vi load_bools(const uint8_t *p)                      a vector's worth
 *   void store_bools(uint8_t *to, vi a, vi b, vi c, vi d)   four masks as 0 and
 * 1 Whole vectors go through the loops, the rest through lb_lanes_padded.
 */
enum { LANES = (int)(sizeof(vf) / sizeof(float)), FOUR = 4 * LANES };

LANE_FN vf load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

LANE_FN void store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}

/* ---- rounding ----------------------------------------------------------- */

/* From 2^23 on all floats are integers; below, adding that rounds to one. */
LANE_FN vf nearest_of(vf x)
{
    const vf a = magnitude(x);
    const vf r = with_sign_of((a + 0x1p23f) - 0x1p23f, x);
    return pick(a < 0x1p23f, r, x);
}

/* The sign is put back, for the zeros. Zero is added, not taken off: a compiler
 * may leave out the latter, and with it what makes a NaN a quiet one. */
LANE_FN vf floor_of(vf x)
{
    const vf r = nearest_of(x);
    return with_sign_of(r + pick(r > x, splat(-1.0f), splat(0.0f)), x);
}

LANE_FN vf ceil_of(vf x)
{
    const vf r = nearest_of(x);
    return with_sign_of(r + pick(r < x, splat(1.0f), splat(0.0f)), x);
}

/* Ties that went down to an even number go up. */
LANE_FN vf nearest_away_of(vf x)
{
    const vf a = magnitude(x);
    const vf r = nearest_of(a);
    const vf up = r + pick(a - r == 0.5f, splat(1.0f), splat(0.0f));
    return with_sign_of(up, x);
}

/* ---- max and min -------------------------------------------------------- */

/* Of equal numbers only zeros may differ: in the sign, of which max wants the
 * plain one and min the other. A NaN on the left stays, then one on the right.
 */
LANE_FN vf max_of(vf x, vf y)
{
    const vf equal = (vf)((vu)x & (vu)y);
    return pick(x == y, equal, pick((x <= INFINITY) & ~(x > y), y, x));
}

LANE_FN vf min_of(vf x, vf y)
{
    const vf equal = (vf)((vu)x | (vu)y);
    return pick(x == y, equal, pick((x <= INFINITY) & ~(x < y), y, x));
}

/* ---- loops -------------------------------------------------------------- */

typedef vf unary_fn(vf x);
typedef vf binary_fn(vf x, vf y);
typedef vi test_fn(vf x);
typedef vi compare_fn(vf x, vf y);

/* Four vectors of an operand, or one element in all of them. */
LANE_FN void load_four(const float *p, bool one, vf v[4])
{
    for (int k = 0; k < 4; k++)
        v[k] = one ? splat(*p) : load(p + k * LANES);
}

LANE_FN void run_unary(const lb_lanes *l, unary_fn *f, lb_lanes_fn *self)
{
    static const size_t size[4] = {4, 0, 0, 4};
    const float *x = l->in[0];
    float *out = l->out;
    const int64_t n = l->n;
    int64_t i = 0;
    for (; i + FOUR <= n; i += FOUR) { /* four chains of operations at once */
        vf v[4];
        load_four(x + i, false, v);
        for (int k = 0; k < 4; k++)
            v[k] = f(v[k]);
        for (int k = 0; k < 4; k++)
            store(out + i + k * LANES, v[k]);
    }
    for (; i + LANES <= n; i += LANES)
        store(out + i, f(load(x + i)));
    if (i < n) lb_lanes_padded(l, i, size, self);
}

LANE_FN void run_binary(const lb_lanes *l, binary_fn *f, lb_lanes_fn *self)
{
    static const size_t size[4] = {4, 4, 0, 4};
    const float *x = l->in[0], *y = l->in[1];
    float *out = l->out;
    const int64_t n = l->n;
    int64_t i = 0;
    if (l->ones && isnan(l->ones == 1 ? *x : *y)) {
        lb_lanes_copied(l, self);
        return;
    }
    if (l->ones == 1) {
        const vf one = splat(*x);
        for (; i + LANES <= n; i += LANES)
            store(out + i, f(one, load(y + i)));
    } else if (l->ones == 2) {
        const vf one = splat(*y);
        for (; i + LANES <= n; i += LANES)
            store(out + i, f(load(x + i), one));
    } else {
        for (; i + LANES <= n; i += LANES)
            store(out + i, f(load(x + i), load(y + i)));
    }
    if (i < n) lb_lanes_padded(l, i, size, self);
}

LANE_FN void run_test(const lb_lanes *l, test_fn *f, lb_lanes_fn *self)
{
    static const size_t size[4] = {4, 0, 0, 1};
    const float *x = l->in[0];
    uint8_t *out = l->out;
    const int64_t n = l->n;
    int64_t i = 0;
    for (; i + FOUR <= n; i += FOUR, x += FOUR)
        store_bools(out + i, f(load(x)), f(load(x + LANES)),
                    f(load(x + 2 * LANES)), f(load(x + 3 * LANES)));
    if (i < n) lb_lanes_padded(l, i, size, self);
}

LANE_FN void run_compare(const lb_lanes *l, compare_fn *f, lb_lanes_fn *self)
{
    static const size_t size[4] = {4, 4, 0, 1};
    const bool one_x = l->ones & 1, one_y = l->ones & 2;
    const float *x = l->in[0], *y = l->in[1];
    uint8_t *out = l->out;
    const int64_t n = l->n;
    int64_t i = 0;
    for (; i + FOUR <= n; i += FOUR) {
        vf a[4], b[4];
        load_four(x, one_x, a);
        load_four(y, one_y, b);
        store_bools(out + i, f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]),
                    f(a[3], b[3]));
        x += one_x ? 0 : FOUR;
        y += one_y ? 0 : FOUR;
    }
    if (i < n) lb_lanes_padded(l, i, size, self);
}

/* A function of vectors, and the loop that calls it, inlined. */
#define LOOP(KIND, NAME)                                                       \
    LANE_RUN void lane_##NAME(const lb_lanes *l)                               \
    {                                                                          \
        run_##KIND(l, f_##NAME, lane_##NAME);                                  \
    }
#define UNARY(NAME, VALUE)                                                     \
    LANE_FN vf f_##NAME(vf x)                                                  \
    {                                                                          \
        return VALUE;                                                          \
    }                                                                          \
    LOOP(unary, NAME)
#define BINARY(NAME, VALUE)                                                    \
    LANE_FN vf f_##NAME(vf x, vf y)                                            \
    {                                                                          \
        return VALUE;                                                          \
    }                                                                          \
    LOOP(binary, NAME)
#define TEST(NAME, MASK)                                                       \
    LANE_FN vi f_##NAME(vf x)                                                  \
    {                                                                          \
        return MASK;                                                           \
    }                                                                          \
    LOOP(test, NAME)
#define COMPARE(NAME, MASK)                                                    \
    LANE_FN vi f_##NAME(vf x, vf y)                                            \
    {                                                                          \
        return MASK;                                                           \
    }                                                                          \
    LOOP(compare, NAME)
#define SPECIAL(NAME)
#include "kernels/lanes_f32.def"
#undef UNARY
#undef BINARY
#undef TEST
#undef COMPARE
#undef SPECIAL

/* ---- those with loops of their own -------------------------------------- */

/* x^e by squaring, the same for every element; e >= 0. */
LANE_FN vf power_of(vf x, unsigned e)
{
    vf r = splat(1.0f);
    for (; e; e >>= 1, x = x * x)
        if (e & 1) r = r * x;
    return r;
}

/* The exponents that occur most are constants of their loops. */
LANE_RUN void lane_integer_pow(const lb_lanes *l)
{
    static const size_t size[4] = {4, 0, 0, 4};
    const int e = l->exponent;
    const unsigned bits = e < 0 ? 0u - (unsigned)e : (unsigned)e;
    const float *x = l->in[0];
    float *out = l->out;
    const int64_t n = l->n;
    int64_t i = 0;
    if (e == 2) {
        for (; i + LANES <= n; i += LANES)
            store(out + i, power_of(load(x + i), 2));
    } else if (e == 3) {
        for (; i + LANES <= n; i += LANES)
            store(out + i, power_of(load(x + i), 3));
    } else {
        for (; i + LANES <= n; i += LANES) {
            const vf r = power_of(load(x + i), bits);
            store(out + i, e < 0 ? 1.0f / r : r);
        }
    }
    if (i < n) lb_lanes_padded(l, i, size, lane_integer_pow);
}

LANE_RUN void lane_select(const lb_lanes *l)
{
    static const size_t size[4] = {1, 4, 4, 4};
    const uint8_t *p = l->in[0];
    const float *x = l->in[1], *y = l->in[2];
    float *out = l->out;
    const int64_t n = l->n;
    const bool one_x = l->ones & 2, one_y = l->ones & 4;
    const vf first_x = splat(one_x ? *x : 0.0f);
    const vf first_y = splat(one_y ? *y : 0.0f);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vi on = load_bools(p + i);
        store(out + i, pick(on, one_x ? first_x : load(x + i),
                            one_y ? first_y : load(y + i)));
    }
    if (i < n) lb_lanes_padded(l, i, size, lane_select);
}

LANE_RUN void lane_clamp(const lb_lanes *l)
{
    static const size_t size[4] = {4, 4, 4, 4};
    const float *lo = l->in[0], *x = l->in[1], *hi = l->in[2];
    float *out = l->out;
    const int64_t n = l->n;
    const bool one_lo = l->ones & 1, one_hi = l->ones & 4;
    const vf first_lo = splat(one_lo ? *lo : 0.0f);
    const vf first_hi = splat(one_hi ? *hi : 0.0f);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vf least = one_lo ? first_lo : load(lo + i);
        const vf most = one_hi ? first_hi : load(hi + i);
        store(out + i, min_of(max_of(load(x + i), least), most));
    }
    if (i < n) lb_lanes_padded(l, i, size, lane_clamp);
}

#define UNARY(NAME, VALUE)  [LB_LANE_##NAME] = lane_##NAME,
#define BINARY(NAME, VALUE) [LB_LANE_##NAME] = lane_##NAME,
#define TEST(NAME, MASK)    [LB_LANE_##NAME] = lane_##NAME,
#define COMPARE(NAME, MASK) [LB_LANE_##NAME] = lane_##NAME,
#define SPECIAL(NAME)       [LB_LANE_##NAME] = lane_##NAME,
const lb_lanes_f32 LANE_TABLE = {.name = LANE_NAME,
                                 .run = {
#include "kernels/lanes_f32.def"
                                 }};
