/* pack_x.c - rows of x as panels of bytes; see panels.h. */
#include <math.h>
#include <string.h>

#include "kernels/dotlut.h"
#include "matmul/magnitude.h"
#include "matmul/panels.h"

/* Scales and starts of a block. */
enum { HEAD = 2 * LB_DOTBYTE_MAX_MR * sizeof(float) };

int64_t lb_pack_x_bytes(const lb_panels *p, int64_t rows, int64_t depth)
{
    return lb_panel_blocks(p, depth) * HEAD +
           rows * lb_panel_steps(p, depth) * p->planes * p->kernel->x_size;
}

int64_t lb_pack_x_room(const lb_panels *p)
{
    return (p->mr + 1) * p->kc;
}

/* A block of rows: where its parts are. */
typedef struct {
    float *scale;
    int32_t *start;
    int8_t *bytes;
    int64_t apart, row, plane; /* bytes: to the next piece, row, plane */
} x_part;

static x_part part_at(const lb_panels *p, char *at, int rows, int64_t n,
                      int64_t b)
{
    float *const head = (float *)(void *)(at + b * HEAD);
    char *const bytes = at + lb_panel_blocks(p, n) * HEAD;
    const int64_t steps = lb_panel_steps(p, n);
    if (p->kernel->by_row)
        return (x_part){
            .scale = head,
            .start = (int32_t *)(void *)(head + LB_DOTBYTE_MAX_MR),
            .bytes = (int8_t *)bytes + b * p->share,
            .row = steps,
            .plane = rows * steps,
        };
    return (x_part){
        .scale = head,
        .start = (int32_t *)(void *)(head + LB_DOTBYTE_MAX_MR),
        .bytes = (int8_t *)bytes + b * p->share * rows * p->kernel->x_size,
        .apart = (int64_t)rows * p->kernel->piece,
        .row = p->kernel->piece,
        .plane = rows * steps,
    };
}

lb_dotbyte_x lb_pack_x_at(const lb_panels *p, char *at, int rows, int64_t n)
{
    const x_part t = part_at(p, at, rows, n, 0);
    return (lb_dotbyte_x){.rows = rows,
                          .planes = p->planes,
                          .bytes = t.bytes,
                          .plane = t.plane,
                          .row = t.row,
                          .start = t.start,
                          .scale = t.scale,
                          .share = p->share,
                          .apart = HEAD / (int64_t)sizeof(float)};
}

/* n numbers that are step apart, side by side and times their factors, if
 * there are any: at tmp, or where they are. */
static const float *line_up(const float *x, int64_t step, int64_t n,
                            const float *factor, float *tmp)
{
    if (step == 1 && !factor) return x;
    for (int64_t k = 0; k < n; k++)
        tmp[k] = factor ? x[k * step] * factor[k] : x[k * step];
    return tmp;
}

/* How large integers may be, and the sum of their magnitudes; 0: any. */
typedef struct {
    float one, sum;
} x_bound;

static x_bound bound_of(const lb_panels *p)
{
    if (p->kernel->x_size == 4) return (x_bound){LB_DOTLUT_MOST_X, 0};
    if (p->kernel->x_size == 2) return (x_bound){LB_DOTBYTE_MOST_X2, p->sum};
    const int most =
        p->planes == 2 ? (int)LB_DOTBYTE_MOST_X2 : (int)LB_DOTBYTE_MOST_X;
    return (x_bound){(float)most, 0};
}

/* What numbers are multiplied with, so that they stay within bounds; 0 for
 * zeros, NaN if one is not finite. If x is so small that this is too large for
 * a float, it is inf, and if x is so large that the sum is, negative. */
static float factor_of(x_bound bound, int64_t n, const float *x)
{
    float sum;
    const float most = lb_largest_and_sum(n, x, &sum);
    if (!isfinite(most)) return (float)NAN;
    if (most == 0) return 0;
    const float factor = bound.one / most;
    if (bound.sum == 0) return factor;
    return isinf(sum) ? -1 : fminf(factor, bound.sum / sum);
}

/* One block of a row; tmp, which may be x, has room for it. */
static void round_block(const lb_panels *p, float *tmp, const float *x,
                        int64_t n, const x_part *to, int row)
{
    const x_bound bound = bound_of(p);
    float lift = 1, factor = factor_of(bound, n, x);
    if (isinf(factor) || factor < 0) { /* once more, on another scale */
        lift = factor < 0 ? 0x1p-20f : 0x1p100f;
        for (int64_t k = 0; k < n; k++)
            tmp[k] = x[k] * lift;
        x = tmp;
        factor = factor_of(bound, n, x);
    }
    to->scale[row] = isnan(factor) ? factor
                     : factor == 0 ? 0
                                   : p->up / factor / lift;
    if (isnan(factor)) {
        memset(tmp, 0, (size_t)n * sizeof *tmp);
        x = tmp;
        factor = 0;
    }
    const int32_t sum =
        p->kernel->round(n, x, factor, p->planes, p->in_turn,
                         to->bytes + row * to->row, to->apart, to->plane);
    to->start[row] = (int32_t)((int64_t)sum * -p->offset);
}

/* Dots read scales of rows that are not. */
static void clear_head(const lb_panels *p, char *to, int rows, int64_t n,
                       int64_t b)
{
    const x_part one = part_at(p, to, rows, n, b);
    for (int r = rows; r < p->mr; r++) {
        one.scale[r] = 0;
        one.start[r] = 0;
    }
}

/* Rows by themselves end with zeros: pieces may be longer than what is rounded.
 */
static void clear_ends(const lb_panels *p, char *to, int rows, int64_t n)
{
    const int64_t piece = p->kernel->piece / p->kernel->x_size;
    const int64_t lines = (int64_t)rows * p->planes * p->kernel->x_size;
    const x_part all = part_at(p, to, rows, n, 0);
    for (int64_t l = 1; l <= lines; l++)
        memset(all.bytes + l * all.row - piece, 0, (size_t)piece);
}

void lb_pack_x(const lb_panels *p, lb_row_slab *x, int64_t i, int rows,
               int64_t k, int64_t n, const float *factor, char *to, float *tmp)
{
    float *const row = tmp, *const block = tmp + p->kc;
    const lb_block b = lb_row_slab_get(x, i, rows, k, n, block);
    for (int64_t s = 0; s * p->share < n; s++)
        clear_head(p, to, rows, n, s);
    if (p->kernel->by_row) clear_ends(p, to, rows, n);
    for (int r = 0; r < rows; r++) {
        const float *at = (const float *)b.p + r * b.rs;
        at = line_up(at, b.ks, n, factor, row);
        for (int64_t s = 0; s * p->share < n; s++) {
            const x_part one = part_at(p, to, rows, n, s);
            const int64_t first = s * p->share;
            const int64_t some = lb_min_i64(p->share, n - first);
            round_block(p, row + first, at + first, some, &one, r);
        }
    }
}
