/* mathf_lanes.h - exp, log, tanh, logistic and erf on vectors of any width.
 *
 * The one source of these functions: mathf.c includes it with vectors of one
 * lane, the kernels of each level with as many as its registers hold. Nothing
 * but + - * /, comparisons and integer operations of the compiler's own
 * vectors, each rounded once and none fused, so every width gives the same
 * bits. A template without a guard, for one inclusion in a file, with
 *   vf, vi, vu    vectors of float, int32_t and uint32_t
 *   LANE_FN    how small functions are declared: inline, for the level
 *   LANE_MIN(x, y), LANE_MAX(x, y), LANE_SCALE(y, k)   optional: instructions
 *              that give the bits of at_most, at_least and times_power
 *   LANE_LOOKUP(table, i)   optional: of 16 floats, by the low bits of each i
 *
 * Both sides of every choice are computed and one is picked. Specials are put
 * in by picks at the end, and arguments are clamped first so that nothing
 * undefined happens on the way. The polynomials are minimax fits by
 * tools/gen_mathf_coefficients.py; the errors noted are relative to the
 * function's value.
 */
#define SIGN      0x80000000u
#define QUIET_NAN 0x7fc00000u /* what 0/0 gives differs between machines */
#define LOG2_E    0x1.715476p+0f
/* ln2 in two parts: the high one times an integer below 2^9 is exact. */
#define LN2_HIGH 0x1.62e4p-1f
#define LN2_LOW  0x1.7f7d1cp-20f
/* Adding this to |x| < 2^22 leaves the nearest integer in the low bits. */
#define ROUNDER      0x1.8p23f
#define ROUNDER_BITS 0x4b400000u
/* m in [sqrt(1/2), sqrt(2)): the mantissas that log works on begin here. */
#define SQRT_HALF 0x3f3504f3u

LANE_FN vf splat(float x)
{
    return x - (vf){0};
}

/* m has all bits of a lane, or none: where it has them a, else b. */
LANE_FN vf pick(vi m, vf a, vf b)
{
    return (vf)((m & (vi)a) | (~m & (vi)b));
}

LANE_FN vf magnitude(vf x)
{
    return (vf)((vu)x & ~SIGN);
}

LANE_FN vf with_sign_of(vf x, vf sign)
{
    return (vf)((vu)x | ((vu)sign & SIGN));
}

/* x below the limit; the limit for a NaN. */
LANE_FN vf at_most(vf x, float limit)
{
#ifdef LANE_MIN
    return LANE_MIN(x, splat(limit));
#else
    return pick(x < limit, x, splat(limit));
#endif
}

LANE_FN vf at_least(vf x, float limit)
{
#ifdef LANE_MAX
    return LANE_MAX(x, splat(limit));
#else
    return pick(x > limit, x, splat(limit));
#endif
}

/* y 2^k for the integer k = t - ROUNDER, |k| < 256, in two halves: the first
 * product is exact, so that a subnormal result is rounded only once. */
LANE_FN vf times_power(vf y, vf t)
{
#ifdef LANE_SCALE
    return LANE_SCALE(y, t - ROUNDER);
#else
    const vi k = (vi)((vu)t - ROUNDER_BITS);
    const vi half = k >> 1;
    const vf first = (vf)((vu)(half + 127) << 23);
    const vf second = (vf)((vu)(k - half + 127) << 23);
    return y * first * second;
#endif
}

/* x = k ln2 + r, |r| <= ln2/2; k + ROUNDER in *t. e^r - 1 for |x| < 2^8. */
LANE_FN vf exp_minus_1(vf x, vf *t)
{
    *t = x * LOG2_E + ROUNDER;
    const vf kf = *t - ROUNDER;
    const vf r = (x - kf * LN2_HIGH) - kf * LN2_LOW;
    /* (e^r - 1 - r) / r^2, error 2^-28.2 of e^r */
    const vf p =
        0x1.fffffcp-2f +
        r * (0x1.55548cp-3f +
             r * (0x1.555858p-5f + r * (0x1.123de2p-7f + r * 0x1.6ac778p-10f)));
    return r + r * r * p;
}

/* e^x for x in [-104, 89]: 2^k e^r. */
LANE_FN vf exp_inside(vf x)
{
    vf t;
    const vf w = exp_minus_1(x, &t);
    return times_power(1.0f + w, t);
}

LANE_FN vf exp_of(vf x)
{
    const vf y = exp_inside(at_least(at_most(x, 89.0f), -104.0f));
    return pick(x <= INFINITY, y, x); /* or NaN */
}

/* x = 2^k (1 + f); s = f / (2 + f); log(1 + f) = 2 atanh(s) = 2s + s R(s^2)
 * with error 2^-30.2. 2s = f - f^2/2 + s f^2/2 keeps f, which is exact, as the
 * leading term. */
LANE_FN vf log_of(vf x)
{
    const vi tiny = (vi)x < 0x00800000; /* also below 0, which ends as NaN */
    const vf scaled = pick(tiny, x * 0x1p23f, x);
    const vu u = (vu)scaled - SQRT_HALF;
    const vf less = pick(tiny, splat(23.0f), splat(0.0f));
    const vf k = __builtin_convertvector((vi)u >> 23, vf) - less;
    const vf f = (vf)((u & 0x007fffffu) + SQRT_HALF) - 1.0f;
    const vf s = f / (2.0f + f);
    const vf z = s * s;
    const vf R =
        z * (0x1.55557ap-1f + z * (0x1.995ed8p-2f + z * 0x1.31e03cp-2f));
    const vf h = 0.5f * f * f;
    vf y = k * LN2_HIGH + (f - (h - (s * (h + R) + k * LN2_LOW)));
    y = pick(x < INFINITY, y, x); /* inf and NaN */
    y = pick(x < 0.0f, (vf)(QUIET_NAN - (vu){0}), y);
    return pick(x == 0.0f, splat(-INFINITY), y);
}

/* Half octaves, by the last exponent bits and the first mantissa bit: [4, 6),
 * [6, 8) to [2, 3), [3, 4). The sixth piece begins at 0, and the fifth ends at
 * 10. A point c of each whose tanh is nearly an f32, its tanh, 1 - tanh^2. */
_Alignas(64) static const float TANH_AT[16] = {
    0x1.3ff6bcp+1f, 0x1.bffdcp+1f,  0x1.3ffc3cp+2f, 0x1.bfe33p+2f,
    0x1.154246p+3f, 0x0p+0f,        0x1.40237cp-4f, 0x1.c006a6p-4f,
    0x1.3febc8p-3f, 0x1.bffda6p-3f, 0x1.400624p-2f, 0x1.c0023cp-2f,
    0x1.4003d8p-1f, 0x1.c0129cp-1f, 0x1.3ff0e4p+0f, 0x1.c003cp+0f};
_Alignas(64) static const float TANH[16] = {
    0x1.f92486p-1f, 0x1.ff1124p-1f, 0x1.fff418p-1f, 0x1.ffffc8p-1f,
    0x1.fffffep-1f, 0x0p+0f,        0x1.3f7d02p-4f, 0x1.be3f6ap-4f,
    0x1.3d580cp-3f, 0x1.b8fac6p-3f, 0x1.35ff1ep-2f, 0x1.a5747ap-2f,
    0x1.1bf728p-1f, 0x1.686fb4p-1f, 0x1.b249c2p-1f, 0x1.e1fcd4p-1f};
_Alignas(64) static const float TANH_SLOPE[16] = {
    0x1.b3ee22p-6f,  0x1.dd4892p-9f, 0x1.7cfb92p-13f, 0x1.bffee8p-19f,
    0x1.ffffecp-24f, 0x1p+0f,        0x1.fce28ep-1f,  0x1.f9ec3ep-1f,
    0x1.f3b4e6p-1f,  0x1.e84308p-1f, 0x1.d113c4p-1f,  0x1.a944f6p-1f,
    0x1.6281dp-1f,   0x1.0242d2p-1f, 0x1.1f41d4p-2f,  0x1.d21fc6p-4f};

LANE_FN vf lookup(const float *table, vi i)
{
#ifdef LANE_LOOKUP
    return LANE_LOOKUP(table, i);
#else
    vf y = {0};
    for (int k = 0; k < (int)(sizeof y / sizeof y[0]); k++)
        y[k] = table[i[k] & 15];
    return y;
#endif
}

/* tanh(c + t) = T + (1 - T^2) tanh(t) / (1 + T tanh(t)), where T = tanh(c) is
 * from a table and tanh(t) = p / q with error 2^-30.4 of the whole. */
LANE_FN vf tanh_of(vf x)
{
    /* tanh(10) is 1 - 4e-9: 1; a NaN stays */
#ifdef LANE_MIN
    const vf a = LANE_MIN(splat(10.0f), magnitude(x));
#else
    const vf size = magnitude(x);
    const vf a = pick(size > 10.0f, splat(10.0f), size);
#endif
    const vi piece = (vi)at_least(a, 0x1.8p-5f) >> 22;
    const vf T = lookup(TANH, piece);
    const vf t = a - lookup(TANH_AT, piece);
    const vf z = t * t;
    const vf p = t + t * (z * 0x1.83aa9ap-4f);
    const vf q = 1.0f + z * (0x1.b63ff2p-2f + z * 0x1.31b466p-7f);
    const vf y = T + lookup(TANH_SLOPE, piece) * p / (q + T * p);
    return with_sign_of(y, x);
}

/* Through e^-|x| on both sides, which never overflows: 1/(1 + e^-x) for x >= 0
 * and e^x/(1 + e^x) below, where the quotient follows e^x down to the smallest
 * subnormal. */
LANE_FN vf logistic_of(vf x)
{
    const vf a = at_most(magnitude(x), 104.0f);
    const vf e = exp_inside(-a);
    const vf y = pick(x < 0.0f, e, splat(1.0f)) / (1.0f + e);
    return pick(x <= INFINITY, y, x); /* or NaN */
}

/* Below 1 an odd polynomial, erf(x)/x - 1 with error 2^-29.4; above,
 * 1 - e^-g where g = -log(erfc(x)) is a polynomial, error 2^-29.6 of erf. */
LANE_FN vf erf_of(vf x)
{
    const vf a = at_most(magnitude(x), 4.0f); /* erf(4) is 1 - 1.5e-8: 1 */
    const vf z = a * a;
    const vf p =
        0x1.06eba8p-3f +
        z * (-0x1.81273ep-2f +
             z * (0x1.ce2ce6p-4f +
                  z * (-0x1.b7f71ap-6f +
                       z * (0x1.53f224p-8f +
                            z * (-0x1.a3515ep-11f + z * 0x1.4771fcp-14f)))));
    const vf g =
        0x1.662b2ap-12f +
        a * (0x1.2088e8p+0f +
             a * (0x1.46baf2p-1f +
                  a * (0x1.a6532ap-4f +
                       a * (-0x1.65cb6cp-6f +
                            a * (0x1.825b26p-9f + a * -0x1.86de34p-13f)))));
    const vf near = a + a * p;
    const vf far = 1.0f - exp_inside(-g);
    const vf y = with_sign_of(pick(a < 1.0f, near, far), x);
    return pick(x <= INFINITY, y, x); /* or NaN */
}
