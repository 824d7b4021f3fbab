/* pack_x.c - rows of x as panels of bytes; see panels.h. */
#include <math.h>
#include <string.h>

#include "matmul/panels.h"

/* Scales and starts of a block. */
enum { HEAD = 2 * LB_DOTBYTE_MAX_MR * sizeof(float) };

int64_t lb_pack_x_bytes(const lb_panels *p, int64_t rows, int64_t depth)
{
    return lb_panel_blocks(p, depth) * HEAD +
           rows * lb_panel_steps(p, depth) * p->planes * p->kernel->size;
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
        .bytes = (int8_t *)bytes + b * p->share * rows * p->kernel->size,
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

/* What numbers are multiplied with; 0 for zeros, NaN if one is not finite, inf
 * if it is too large for a float. */
static float factor_of(const lb_panels *p, int64_t n, const float *x)
{
    float lane;
    const float most = lb_dotint_for(p->cpu)->largest(n, x, &lane);
    const float top = (float)(p->planes == 2 ? (int)LB_DOTBYTE_MOST_X2
                                             : (int)LB_DOTBYTE_MOST_X);
    if (!isfinite(most)) return (float)NAN;
    return most == 0 ? 0 : top / most;
}

/* One block of a row, as words: sums of these are bounded, too. x may be
 * changed, here and below. */
static void round_words(const lb_panels *p, float *x, const float *from,
                        int64_t n, const x_part *to, int row)
{
    /* Sums of lanes differ between levels, the sum of all does not. */
    lb_int_largest *const largest =
        p->decoded ? lb_int_largest_and_sum : lb_dotint_for(p->cpu)->largest;
    const lb_int_bound bound = {LB_DOTINT_MOST_X,
                                p->decoded ? p->sum : p->sum / 8};
    const lb_int_row r = lb_int_row_of(largest, bound, n, from, x);
    p->kernel->round(n, r.x, r.factor, 1, p->in_turn, to->bytes + row * to->row,
                     to->apart, to->plane);
    to->scale[row] = r.scale;
    to->start[row] = 0;
}

/* The same as bytes. */
static void round_block(const lb_panels *p, float *x, const float *from,
                        int64_t n, const x_part *to, int row)
{
    const float lift = 0x1p100f;
    float factor = factor_of(p, n, from);
    float scale = factor == 0 ? 0 : p->up / factor;
    if (isinf(factor)) { /* x is tiny: once more, on a larger scale */
        for (int64_t k = 0; k < n; k++)
            x[k] = from[k] * lift;
        from = x;
        factor = factor_of(p, n, from);
        scale = p->up / factor / lift;
    } else if (isnan(factor)) {
        memset(x, 0, (size_t)n * sizeof *x);
        from = x;
        factor = 0;
    }
    const int32_t sum =
        p->kernel->round(n, from, factor, p->planes, p->in_turn,
                         to->bytes + row * to->row, to->apart, to->plane);
    to->scale[row] = scale;
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
    const int64_t piece = p->kernel->piece / p->kernel->size;
    const int64_t lines = (int64_t)rows * p->planes * p->kernel->size;
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
        at = lb_line_up(at, b.ks, n, factor, row);
        for (int64_t s = 0; s * p->share < n; s++) {
            const x_part one = part_at(p, to, rows, n, s);
            const int64_t first = s * p->share;
            const int64_t some = lb_min_i64(p->share, n - first);
            if (p->kernel->size == 2)
                round_words(p, row + first, at + first, some, &one, r);
            else
                round_block(p, row + first, at + first, some, &one, r);
        }
    }
}
