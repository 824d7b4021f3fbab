/* few.c - packing a few rows, and walking many past them. */
#include "kernels/few.h"

#include <string.h>

enum { LINE = 16 }; /* floats in a cache line */

const lb_few_kernel *lb_few_kernel_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_few_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_few_avx2;
#elif defined(__aarch64__)
    if (cpu->level == LB_LEVEL_NEON) return &lb_few_neon;
#else
    (void)cpu;
#endif
    return &lb_few_ref;
}

/* ---- along the depth ---------------------------------------------------- */

static void pack_row(const float *x, int64_t stride, int64_t k, int lanes,
                     int64_t step, float *dst)
{
    int64_t kk = 0;
    for (; kk + lanes <= k; kk += lanes, dst += step) {
        if (stride == 1)
            memcpy(dst, x + kk, (size_t)lanes * sizeof *dst);
        else
            for (int l = 0; l < lanes; l++)
                dst[l] = x[(kk + l) * stride];
    }
    for (int l = 0; l < lanes && kk < k; l++)
        dst[l] = kk + l < k ? x[(kk + l) * stride] : 0;
}

void lb_few_pack(const lb_few_kernel *kernel, const float *x,
                 int64_t row_stride, int64_t col_stride, int64_t m, int64_t k,
                 float *dst)
{
    for (int64_t i = 0, h; i < m; i += h) {
        h = lb_gemm_height(m - i, LB_FEW_ROWS);
        for (int64_t r = 0; r < h; r++)
            pack_row(x + (i + r) * row_stride, col_stride, k, kernel->lanes,
                     h * kernel->lanes,
                     dst + lb_few_floats(kernel, i, k) + r * kernel->lanes);
    }
}

void lb_few_along(const lb_few_kernel *kernel, int64_t m, int64_t k,
                  const float *x, const float *w, int64_t ldw, int64_t n,
                  float *t, int64_t ldt, bool first, lb_few_next next)
{
    const int many = kernel->many;
    const lb_few_next nothing = {0};
    for (int64_t j = 0; j < n; j += many) {
        const int count = n - j < many ? (int)(n - j) : many;
        float *to = t + j * LB_FEW_ROWS;
        for (int64_t i = 0, h; i < m; i += h, to += ldt) {
            h = lb_gemm_height(m - i, LB_FEW_ROWS);
            /* Asked for with the last: not pushed out of L1 by the others. */
            kernel->dots((int)h, k, x + lb_few_floats(kernel, i, k),
                         w + j * ldw, ldw, count, to, first,
                         i + h == m ? next : nothing);
        }
        if (next.at) next.at += (uintptr_t)(many * next.ld);
    }
}

void lb_few_row(const float *t, int64_t ldt, int64_t m, int64_t i, int64_t n,
                float *to, int64_t step)
{
    int64_t h = lb_gemm_height(m, LB_FEW_ROWS);
    for (; i >= h; h = lb_gemm_height(m, LB_FEW_ROWS)) {
        i -= h;
        m -= h;
        t += ldt;
    }
    t += i;
    for (int64_t j = 0; j < n; j++)
        to[j * step] = t[j * LB_FEW_ROWS];
}

/* ---- across it ---------------------------------------------------------- */

/* kk of a panel of k that are of lane l. */
static int64_t lane_steps(int64_t k, int lanes, int l)
{
    return (k - l + lanes - 1) / lanes;
}

/* And of the lanes before it: longer ones come first. */
static int64_t lane_start(int64_t k, int lanes, int l)
{
    const int64_t longer = k % lanes;
    return k / lanes * l + (l < longer ? l : longer);
}

void lb_few_pack_across(const lb_few_kernel *kernel,
                        const lb_gemm_kernel *tiles, const float *x,
                        int64_t row_stride, int64_t col_stride, int64_t m,
                        int64_t k, float *dst)
{
    const int lanes = kernel->lanes;
    for (int l = 0; l < lanes && l < k; l++)
        lb_gemm_pack_rows(x + l * col_stride, row_stride, lanes * col_stride, m,
                          lane_steps(k, lanes, l), tiles->mr,
                          dst + m * lane_start(k, lanes, l));
}

/* Columns that go together: where their lanes are, and what is to be copied
 * meanwhile. */
typedef struct {
    const lb_few_kernel *kernel;
    const lb_gemm_kernel *tiles;
    int64_t m, k;
    const float *x, *w;
    int64_t lane_step; /* from lane to lane */
    lb_few_copy *next;
    int64_t copied; /* floats of it, with each lane */
} strip;

/* The lane that comes as number q, so that neighbours can be added at once:
 * the bits of q, reversed. */
static int lane_at(int q, int lanes)
{
    int l = 0;
    for (int bit = lanes / 2; q; q /= 2, bit /= 2)
        l += q % 2 * bit;
    return l;
}

/* One lane onto sum: all rows, nr floats to each. A lane that has no kk is
 * zero, as it is in a register. */
static void one_lane(const strip *s, int l, float *sum, bool first)
{
    const int64_t steps = lane_steps(s->k, s->kernel->lanes, l);
    const int64_t at = lane_start(s->k, s->kernel->lanes, l);
    const int nr = s->tiles->nr;
    const float *const w = steps ? s->w + l * s->lane_step : s->w;
    for (int64_t i = 0, h; i < s->m; i += h) {
        h = lb_gemm_height(s->m - i, s->tiles->mr);
        s->tiles->tile(steps, s->x + s->m * at + i * steps, w, nr, sum + i * nr,
                       nr, (int)h, nr, first);
    }
    if (s->next) lb_few_copy_some(s->kernel, s->tiles, s->next, s->copied);
}

/* All lanes to tmp. Sums of the halves that are under way lie there one behind
 * the other; when a half is whole it is added to the one before it. */
static void all_lanes(const strip *s, float *tmp)
{
    const int64_t size = s->m * s->tiles->nr;
    int64_t halves = 0;
    for (int q = 0; q < s->kernel->lanes; q++) {
        if (q % 2 == 0) halves++;
        one_lane(s, lane_at(q, s->kernel->lanes), tmp + (halves - 1) * size,
                 q % 2 == 0);
        for (int rest = q / 2; q % 2 && rest % 2; rest /= 2, halves--)
            s->kernel->add(size, tmp + (halves - 2) * size,
                           tmp + (halves - 1) * size);
    }
}

/* The sums of all lanes to up to nr columns of c. */
static void run_strip(const strip *s, int64_t n, float *c, int64_t ldc,
                      bool first, float *tmp)
{
    const int nr = s->tiles->nr;
    all_lanes(s, tmp);
    for (int64_t i = 0; i < s->m; i++) {
        if (first)
            memcpy(c + i * ldc, tmp + i * nr,
                   (size_t)(n < nr ? n : nr) * sizeof *c);
        else
            s->kernel->add(n < nr ? n : nr, c + i * ldc, tmp + i * nr);
    }
}

/* ---- copies ---------------------------------------------------------------
 */

/* From lane to lane, and from nr columns to the next: a line more than there
 * is, or all of them would fall on the same places of the caches. */
static int64_t copy_lane(const lb_few_kernel *kernel,
                         const lb_gemm_kernel *tiles, int64_t k)
{
    return lane_steps(k, kernel->lanes, 0) * tiles->nr + LINE;
}

static int64_t copy_strip(const lb_few_kernel *kernel,
                          const lb_gemm_kernel *tiles, int64_t k)
{
    return kernel->lanes * copy_lane(kernel, tiles, k) + LINE;
}

int64_t lb_few_copy_floats(const lb_few_kernel *kernel,
                           const lb_gemm_kernel *tiles, int64_t k, int64_t n)
{
    return (n + tiles->nr - 1) / tiles->nr * copy_strip(kernel, tiles, k);
}

/* Rows kk, kk + lanes, .. of the copy, n columns from c->column on. Four rows
 * of a lane lie side by side there, so that few pages are written at a time. */
static void copy_rows(const lb_few_kernel *kernel, const lb_gemm_kernel *tiles,
                      const lb_few_copy *c, int64_t kk, int rows, int64_t n)
{
    const int nr = tiles->nr, lanes = kernel->lanes;
    const int64_t strip_step = copy_strip(kernel, tiles, c->k);
    const int64_t ld = lanes * c->ldw, strips = n / nr;
    const int64_t ahead = c->k - kk > (int64_t)rows * lanes ? 2 * c->ldw : 0;
    const float *from = c->from + (kk - c->at) * c->ldw + c->column;
    float *to = c->to + c->column / nr * strip_step +
                kk % lanes * copy_lane(kernel, tiles, c->k) + kk / lanes * nr;
    if (rows == LB_FEW_TOGETHER)
        kernel->copy(from, ld, strips, nr, to, strip_step, ahead);
    else
        for (int64_t i = 0; i < strips; i++)
            memcpy(to + i * strip_step, from + i * nr, (size_t)nr * sizeof *to);
    from += strips * nr;
    to += strips * strip_step;
    for (int r = 0; r < rows; r++)
        memcpy(to + r * nr, from + r * ld, (size_t)(n % nr) * sizeof *to);
}

/* Four rows of a lane go together, some columns of each at a time: as many
 * streams as memory likes. c->row counts in that order; what is left at the end
 * comes row by row. */
void lb_few_copy_some(const lb_few_kernel *kernel, const lb_gemm_kernel *tiles,
                      lb_few_copy *c, int64_t n)
{
    const int64_t group = lb_few_part(kernel);
    while (c->row < c->k && n > 0) {
        const bool whole = c->row < c->k / group * group;
        const int rows = whole ? LB_FEW_TOGETHER : 1;
        const int64_t kk =
            whole ? c->row / group * group + c->row % group / LB_FEW_TOGETHER
                  : c->row;
        const int64_t left = c->n - c->column, most = left / tiles->nr;
        const int64_t strips = (n - 1) / rows / tiles->nr + 1;
        const int64_t width = strips < most ? strips * tiles->nr : left;
        copy_rows(kernel, tiles, c, kk, rows, width);
        n -= rows * width;
        c->column += width;
        if (c->column < c->n) return;
        c->column = 0;
        c->row += rows;
    }
}

void lb_few_across(const lb_few_kernel *kernel, const lb_gemm_kernel *tiles,
                   int64_t m, const float *x, const lb_few_copy *w, float *c,
                   int64_t ldc, bool first, float *tmp, lb_few_copy *next)
{
    const int nr = tiles->nr;
    strip s = {kernel, tiles, m, w->k, x, w->to, copy_lane(kernel, tiles, w->k),
               next,   0};
    if (next) {
        const int64_t runs = (w->n + nr - 1) / nr * kernel->lanes;
        s.copied = next->k * next->n / runs + 1;
    }
    for (int64_t j = 0; j < w->n; j += nr) {
        run_strip(&s, w->n - j, c + j, ldc, first, tmp);
        s.w += copy_strip(kernel, tiles, w->k);
    }
    if (next) lb_few_copy_some(kernel, tiles, next, INT64_MAX);
}
