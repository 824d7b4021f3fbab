/* few_ref.c - dots of a few rows in portable C: the specification.
 *
 * Multiplications and additions, each rounded once; the vector levels fuse.
 */
#include "kernels/few.h"

#include <string.h>

enum { LANES = 8, MANY = 1 };

static void dots(int h, int64_t k, const float *x, const float *w, int64_t ldw,
                 int n, float *t, bool first, lb_few_next next)
{
    (void)next;
    for (int j = 0; j < n; j++, w += ldw, t += LB_FEW_ROWS) {
        float s[LB_FEW_ROWS][LANES] = {{0}};
        for (int64_t kk = 0; kk < k; kk += LANES) {
            const int lanes = k - kk < LANES ? (int)(k - kk) : LANES;
            for (int i = 0; i < h; i++)
                for (int l = 0; l < lanes; l++)
                    s[i][l] += x[kk * h + i * LANES + l] * w[kk + l];
        }
        for (int i = 0; i < h; i++) {
            for (int half = LANES / 2; half; half /= 2)
                for (int l = 0; l < half; l++)
                    s[i][l] += s[i][l + half];
            t[i] = first ? s[i][0] : t[i] + s[i][0];
        }
    }
}

static void add(int64_t n, float *to, const float *from)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void copy(const float *from, int64_t ld, int64_t n, int nr, float *to,
                 int64_t step, int64_t ahead)
{
    (void)ahead;
    for (int64_t i = 0; i < n; i++)
        for (int r = 0; r < LB_FEW_TOGETHER; r++)
            memcpy(to + i * step + r * nr, from + r * ld + i * nr,
                   (size_t)nr * sizeof *to);
}

const lb_few_kernel lb_few_ref = {.name = "few ref 4x1",
                                  .lanes = LANES,
                                  .many = MANY,
                                  .dots = dots,
                                  .add = add,
                                  .copy = copy};
