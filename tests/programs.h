/* programs.h - small functions of arrays for tests of compiled functions. */
#ifndef LB_PROGRAMS_H
#define LB_PROGRAMS_H

#include "check.h"
#include "samples.h"

/* 0, 1/7, 2/7, ... in that dtype and shape. */
static inline lb_array *iota(lb_ctx *cx, lb_dtype dtype, lb_shape shape)
{
    lb_array *a = lb_iota(cx, LB_I32, LB_SHAPE(lb_shape_size(&shape)), 0);
    a = lb_div(cx, lb_convert(cx, a, LB_F32), lb_scalar(cx, 7));
    return lb_convert(cx, lb_reshape(cx, a, shape), dtype);
}

static inline bool equal(lb_array *a, lb_array *b)
{
    lb_text why = {""};
    const bool same = sample_same(a, b, &why);
    if (!same) fprintf(stderr, "%s\n", why.s);
    return same;
}

/* gelu(y) + y, where y = a b elementwise. */
static inline lb_array *simple(lb_ctx *cx, lb_array *const *a, int n,
                               void *user)
{
    (void)n, (void)user;
    lb_array *y = lb_mul(cx, a[0], a[1]);
    return lb_add(cx, lb_gelu(cx, y), y);
}

static inline lb_array *layer(lb_ctx *cx, lb_array *const *a, int n, void *user)
{
    (void)n, (void)user;
    return lb_softmax(cx, lb_silu(cx, lb_matmul(cx, a[0], a[1])), -1);
}

static inline lb_array *doubled(lb_ctx *cx, lb_array *const *a, int n,
                                void *user)
{
    (void)user;
    return n ? lb_add(cx, a[0], a[0]) : lb_scalar(cx, 2);
}

static inline void expect(const lb_compiled *f, int programs, int64_t traces,
                          int64_t runs, int line)
{
    const lb_compiled_stats s = lb_compiled_stats_of(f);
    if (check_fails(s.programs == programs && s.traces == traces &&
                    s.runs == runs && !s.eager))
        fprintf(stderr, "line %d: %d programs, %lld traces, %lld runs\n", line,
                s.programs, (long long)s.traces, (long long)s.runs);
}
#define EXPECT(programs, traces, runs)                                         \
    expect(f, programs, traces, runs, __LINE__)

#endif
