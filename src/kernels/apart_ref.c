/* apart_ref.c - see apart.h. */
#include <math.h>

#include "kernels/apart.h"

enum { LANES = LB_APART_LANES, BLOCK = LB_APART_BLOCK };

/* Numbers of which one is not finite have no distance: they are counted, unless
 * they are the same. */
static void add_one(lb_apart *to, double a, double b)
{
    if (!isfinite(a) || !isfinite(b)) {
        if (a == b || (isnan(a) && isnan(b))) return;
        to->apart++;
        to->nonfinite++;
        return;
    }
    const double e = fabs(a - b);
    to->aa += a * a;
    to->bb += b * b;
    to->ab += a * b;
    to->dd += e * e;
    to->apart += a != b;
    if (e > to->max) to->max = e;
}

void lb_apart_plain(const float *a, const float *b, int64_t n, lb_apart *to)
{
    for (int64_t i = 0; i < n; i++)
        add_one(to, (double)a[i], (double)b[i]);
}

void lb_apart_plain_f64(const double *a, const double *b, int64_t n,
                        lb_apart *to)
{
    for (int64_t i = 0; i < n; i++)
        add_one(to, a[i], b[i]);
}

/* Of what is padded or was never trained there may be much. */
static bool all_zero(const float *x)
{
    bool zero = true;
    for (int i = 0; i < BLOCK; i++)
        zero &= x[i] == 0;
    return zero;
}

void lb_apart_wild(const float *a, const float *b, lb_apart *to)
{
    if (!all_zero(a) || !all_zero(b)) lb_apart_plain(a, b, BLOCK, to);
}

typedef struct {
    float aa[LANES], bb[LANES], ab[LANES], dd[LANES], max[LANES];
    int32_t apart[LANES];
} lanes;

static void add_block(const float *a, const float *b, lanes *s)
{
    for (int i = 0; i < BLOCK; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const float x = a[i + k], y = b[i + k], e = fabsf(x - y);
            s->aa[k] += x * x;
            s->bb[k] += y * y;
            s->ab[k] += x * y;
            s->dd[k] += e * e;
            s->max[k] = e > s->max[k] ? e : s->max[k];
            s->apart[k] += x != y;
        }
}

static bool is_tame(const float *sum)
{
    bool all = true, some = false;
    for (int k = 0; k < LANES; k++) {
        all &= sum[k] < LB_APART_MOST;
        some |= sum[k] > LB_APART_LEAST;
    }
    return all && some;
}

void lb_apart_ref(const float *a, const float *b, int64_t n, lb_apart *to)
{
    double aa[LANES] = {0}, bb[LANES] = {0}, ab[LANES] = {0}, dd[LANES] = {0};
    for (int64_t i = 0; i < n; i += BLOCK) {
        lanes s = {.aa = {0}};
        add_block(a + i, b + i, &s);
        if (!is_tame(s.aa) || !is_tame(s.bb)) {
            lb_apart_wild(a + i, b + i, to);
            continue;
        }
        for (int k = 0; k < LANES; k++) {
            aa[k] += (double)s.aa[k];
            bb[k] += (double)s.bb[k];
            ab[k] += (double)s.ab[k];
            dd[k] += (double)s.dd[k];
            to->apart += s.apart[k];
            if ((double)s.max[k] > to->max) to->max = (double)s.max[k];
        }
    }
    for (int k = 0; k < LANES; k++) {
        to->aa += aa[k];
        to->bb += bb[k];
        to->ab += ab[k];
        to->dd += dd[k];
    }
}

lb_apart_fn *lb_apart_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return lb_apart_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return lb_apart_avx2;
#endif
    (void)cpu;
    return lb_apart_ref;
}
