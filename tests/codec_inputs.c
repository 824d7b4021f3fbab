/* codec_inputs.c - see codec_inputs.h. Values are generated as doubles and then
 * rounded to the dtype; overflow becomes the dtype's largest finite value. */
#include "codec_inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/convert.h"
#include "numbers.h"

const char *codec_kind_name(codec_kind kind)
{
    static const char *const name[CODEC_KINDS] = {
        "zeros",  "one number", "-0",     "denormals",  "tiny",
        "levels", "midpoints",  "normal", "heavy tail", "huge"};
    return name[kind];
}

static double uniform(uint64_t *state) /* 0 < u < 1 */
{
    return ((double)(number_draw(state) >> 12) + 0.5) * 0x1p-52;
}

static double normal(uint64_t *state)
{
    const double r = sqrt(-2 * log(uniform(state)));
    return r * cos(6.283185307179586 * uniform(state));
}

static double sign(uint64_t *state)
{
    return number_draw(state) & 1 ? -1 : 1;
}

/* A value of the dtype with layout d. */
static double draw(codec_kind kind, const codec_levels *l, number_layout d,
                   uint64_t *state)
{
    const double least = ldexp(1, d.min_exp), most = ldexp(1, d.max_exp);
    const double u = uniform(state);
    switch (kind) {
    case CODEC_DENORMALS:
        return sign(state) * u * least;
    case CODEC_TINY:
        return sign(state) * ldexp(least, (int)(u * 24) - 4) * uniform(state);
    case CODEC_LEVELS:
    case CODEC_MIDPOINTS: {
        const int at = (int)(u * l->n), step = kind == CODEC_MIDPOINTS;
        const int next = at + step < l->n ? at + step : at;
        return ((double)l->level[at] + (double)l->level[next]) / 2;
    }
    case CODEC_TAIL:
        return normal(state) * exp(2 * normal(state));
    case CODEC_HUGE:
        return u < 0.2 ? sign(state) * most : normal(state) * most / 4;
    default:
        return normal(state);
    }
}

static void fill(codec_kind kind, const codec_levels *levels, lb_dtype dtype,
                 uint64_t seed, int64_t n, void *dst)
{
    enum { RUN = 256 };
    const number_layout d = number_layout_of(dtype);
    const double most = ldexp(1 - ldexp(1, -d.digits), d.max_exp);
    uint64_t state = seed * 977 + (uint64_t)kind;
    const bool scaled = kind == CODEC_LEVELS || kind == CODEC_MIDPOINTS;
    /* Levels are used at several magnitudes. */
    const double unit = scaled ? ldexp(1, (int)(seed % 7) - 3) : 1;
    const size_t size = lb_dtype_size(dtype);
    for (int64_t i = 0; i < n; i += RUN) {
        double v[RUN];
        const int64_t m = n - i < RUN ? n - i : RUN;
        for (int64_t k = 0; k < m; k++) {
            v[k] = draw(kind, levels, d, &state) * unit;
            if (fabs(v[k]) > most) v[k] = copysign(most, v[k]);
        }
        lb_store_run(LB_C_F64, v, dtype, m, (char *)dst + (size_t)i * size);
    }
}

/* Zeros of one sign, possibly with one of the other. */
static void fill_zeros(codec_kind kind, lb_dtype dtype, uint64_t seed,
                       int64_t n, void *dst)
{
    uint64_t state = seed;
    const size_t size = lb_dtype_size(dtype);
    const double zero = kind == CODEC_MINUS ? -0.0 : 0;
    const double one = kind == CODEC_MINUS ? 1 : normal(&state) * 3;
    const bool has_one = kind == CODEC_ONE || (kind == CODEC_MINUS && n % 2);
    char *to = dst;
    for (int64_t i = 0; i < n; i++)
        if (i)
            memcpy(to + (size_t)i * size, to, size);
        else
            lb_store_run(LB_C_F64, &zero, dtype, 1, to);
    if (n && has_one)
        lb_store_run(LB_C_F64, &one, dtype, 1,
                     to + (size_t)(number_draw(&state) % (uint64_t)n) * size);
}

/* Kinds that are just random are cached: they are needed again and again. */
static const void *pooled(codec_kind kind, lb_dtype dtype, uint64_t seed,
                          int64_t n)
{
    enum { POOL = 20000 };
    static char pool[CODEC_KINDS][LB_F64 + 1][POOL * 8];
    static bool filled[CODEC_KINDS][LB_F64 + 1];
    char *at = pool[kind][dtype];
    const size_t size = lb_dtype_size(dtype);
    const codec_levels none = {.n = 0};
    if (n > POOL || kind == CODEC_LEVELS || kind == CODEC_MIDPOINTS)
        return NULL;
    if (!filled[kind][dtype]) fill(kind, &none, dtype, 1, POOL, at);
    filled[kind][dtype] = true;
    return at + (size_t)(seed * 617 % (uint64_t)(POOL - n + 1)) * size;
}

void codec_fill(codec_kind kind, const codec_levels *levels, lb_dtype dtype,
                uint64_t seed, int64_t n, void *dst)
{
    if (kind <= CODEC_MINUS) {
        fill_zeros(kind, dtype, seed, n, dst);
        return;
    }
    const void *from = pooled(kind, dtype, seed, n);
    if (from)
        memcpy(dst, from, (size_t)n * lb_dtype_size(dtype));
    else
        fill(kind, levels, dtype, seed, n, dst);
}

static int upward(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

void codec_levels_from(codec_levels *to, const float *value, int64_t n)
{
    float *sorted = malloc((size_t)n * sizeof *sorted + 1);
    if (!sorted) abort();
    memcpy(sorted, value, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, upward);
    to->n = 0;
    for (int64_t i = 0; i < n && to->n < CODEC_LEVELS_MAX; i++)
        if (!i || sorted[i] != sorted[i - 1]) to->level[to->n++] = sorted[i];
    free(sorted);
}
