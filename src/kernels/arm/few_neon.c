/* few_neon.c - the 4x2 dot kernel for NEON.
 *
 *              w: 2 rows        8 sums of 8 lanes along the depth, each in two
 *           +------+------+     registers: 16 accumulators, four registers of
 *   x: 4    | r  r | r  r |     w and two of x at a time. Lanes and bits are
 *   rows    +------+------+     those of AVX2.
 */
#include "kernels/few.h"

#if defined(__aarch64__)
#include "kernels/arm/neon.h"

enum { MANY = 2, LANES = 8 };

/* h and n are constants where this is inlined. */
LB_INLINE void tile(const int h, const int n, int64_t k, const float *x,
                    const float *w, int64_t ldw, float *t, bool first)
{
    lb_eight r[MANY][LB_FEW_ROWS];
    LB_UNROLL
    for (int j = 0; j < n; j++) {
        LB_UNROLL
        for (int i = 0; i < h; i++)
            r[j][i] = lb_eight_zero();
    }
    int64_t left = k;
    for (; left >= LANES; left -= LANES, x += h * LANES, w += LANES) {
        lb_eight v[MANY];
        LB_UNROLL
        for (int j = 0; j < n; j++)
            v[j] = lb_eight_load(w + j * ldw);
        LB_UNROLL
        for (int i = 0; i < h; i++) {
            const lb_eight u = lb_eight_load(x + i * LANES);
            LB_UNROLL
            for (int j = 0; j < n; j++) {
                r[j][i] = lb_eight_fma(r[j][i], u, v[j]);
            }
        }
    }
    LB_UNROLL
    for (int j = 0; j < n; j++) {
        LB_UNROLL
        for (int i = 0; i < h; i++) {
            if (left)
                r[j][i] = lb_eight_fma_some(r[j][i], x + i * LANES, w + j * ldw,
                                            left);
            float *to = t + j * LB_FEW_ROWS + i;
            *to = first ? lb_eight_sum(r[j][i]) : *to + lb_eight_sum(r[j][i]);
        }
    }
}

LB_INLINE void rows(const int h, int64_t k, const float *x, const float *w,
                    int64_t ldw, int n, float *t, bool first)
{
    if (n == MANY)
        tile(h, MANY, k, x, w, ldw, t, first);
    else
        for (int j = 0; j < n; j++)
            tile(h, 1, k, x, w + j * ldw, ldw, t + j * LB_FEW_ROWS, first);
}

static void dots(int h, int64_t k, const float *x, const float *w, int64_t ldw,
                 int n, float *t, bool first, lb_few_next next)
{
    (void)next; /* nothing was measured */
    switch (h) {
    case 4:
        rows(4, k, x, w, ldw, n, t, first);
        return;
    case 3:
        rows(3, k, x, w, ldw, n, t, first);
        return;
    case 2:
        rows(2, k, x, w, ldw, n, t, first);
        return;
    default:
        rows(1, k, x, w, ldw, n, t, first);
    }
}

static void add(int64_t n, float *to, const float *from)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(to + i, vaddq_f32(vld1q_f32(to + i), vld1q_f32(from + i)));
    for (; i < n; i++)
        to[i] += from[i];
}

static void copy(const float *from, int64_t ld, int64_t n, int nr, float *to,
                 int64_t step, int64_t ahead)
{
    (void)ahead; /* nothing was measured */
    for (int64_t i = 0; i < n; i++)
        for (int r = 0; r < LB_FEW_TOGETHER; r++)
            for (int j = 0; j < nr; j += 4)
                vst1q_f32(to + i * step + r * nr + j,
                          vld1q_f32(from + r * ld + i * nr + j));
}

const lb_few_kernel lb_few_neon = {.name = "few neon 4x2",
                                   .lanes = LANES,
                                   .many = MANY,
                                   .dots = dots,
                                   .add = add,
                                   .copy = copy};
#endif
