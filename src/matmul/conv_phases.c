/* conv_phases.c - computes a convolution of a dilated input as several
 * convolutions of the input without dilation.
 *
 * Along an axis where the input is dilated by d and the stride is 1, output o
 * meets input elements only at every (d / gcd)-th kernel element. At which ones
 * depends on o mod d, the phase:
 *
 *     o = 0 1 2 3 4 5      kernel a b c, d = 2, x . y . z
 *         p q p q p q      phase p: x, y, z with a, c;  phase q: with b
 *
 * So each phase is a convolution with some of the kernel's elements, which are
 * a view of it, packed or not. Together they multiply each nonzero pair once.
 * Results are computed separately per phase and then interleaved.
 */
#include "matmul/conv_phases.h"

#include "core/core.h"
#include "matmul/conv_dims.h"

enum { MAX_PHASES = 64 }; /* product over all axes */

typedef struct {
    lb_conv v;
    lb_shape piece;                 /* shape of one phase's result */
    int64_t phases[LB_MAX_SPATIAL]; /* per axis; 1: keep the axis as it is */
    int n;                          /* product over all axes */
} phases;

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* False: no benefit, or too many phases. */
static bool count(phases *p)
{
    p->n = 1;
    p->piece = lb_conv_shape(&p->v);
    for (int k = 0; k < p->v.spaces; k++) {
        const lb_conv_space *s = &p->v.space[k];
        p->phases[k] = s->stride == 1 ? s->lhs_dilation : 1;
        if (p->phases[k] > MAX_PHASES / p->n) return false;
        p->n *= (int)p->phases[k];
        p->piece.dim[s->out] = lb_ceil_div(p->piece.dim[s->out], p->phases[k]);
    }
    return p->n > 1;
}

/* ---- one phase ----------------------------------------------------------- */

/* The kernel elements that phase r of an axis uses: every step-th starting with
 * first, in the order in which the kernel is applied. */
typedef struct {
    int64_t first, step, n;
    int64_t apart;  /* distance between their input elements */
    int64_t offset; /* input position of output 0 */
} taps;

/* With a single kernel element its distance is arbitrary: step must not point
 * beyond the kernel. */
static taps taps_of(const lb_conv_space *s, int64_t r)
{
    const int64_t d = s->lhs_dilation, common = gcd(d, s->rhs_dilation);
    taps t = {.step = d / common, .apart = s->rhs_dilation / common};
    const int64_t end = lb_min_i64(t.step, s->kernel);
    while (t.first < end && (r + t.first * s->rhs_dilation - s->pad_lo) % d)
        t.first++;
    if (t.first >= end) return t;
    t.n = lb_ceil_div(s->kernel - t.first, t.step);
    t.offset = (r + t.first * s->rhs_dilation - s->pad_lo) / d;
    return t;
}

/* Sets kernel and dims of phase i; false: it has no nonzero pairs. */
static bool aim(const phases *p, int64_t i, int64_t *lo, int64_t *hi,
                int64_t *step, lb_conv_dims *dims)
{
    for (int k = p->v.spaces - 1; k >= 0; i /= p->phases[k--]) {
        const lb_conv_space *s = &p->v.space[k];
        if (p->phases[k] == 1) continue;
        const taps t = taps_of(s, i % p->phases[k]);
        if (!t.n) return false;
        const int64_t last = t.first + (t.n - 1) * t.step;
        lo[s->rhs] = s->reversed ? s->kernel - 1 - last : t.first;
        hi[s->rhs] = lo[s->rhs] + (t.n - 1) * t.step + 1;
        step[s->rhs] = t.step;
        dims->lhs_dilation[k] = 1;
        dims->rhs_dilation[k] = t.apart;
        dims->pad_lo[k] = -t.offset;
        dims->pad_hi[k] =
            p->piece.dim[s->out] + (t.n - 1) * t.apart - s->in + t.offset;
    }
    return true;
}

static lb_array *run(lb_ctx *cx, const lb_prim *prim, const phases *p,
                     int64_t i, lb_array **in, const lb_conv_dims *dims,
                     bool *none)
{
    int64_t lo[LB_MAX_RANK] = {0}, hi[LB_MAX_RANK], step[LB_MAX_RANK];
    lb_conv_dims mine = *dims;
    for (int k = 0; k < in[1]->shape.rank; k++) {
        hi[k] = in[1]->shape.dim[k];
        step[k] = 1;
    }
    *none = !aim(p, i, lo, hi, step, &mine);
    if (*none) return NULL;
    lb_array *w = lb_slice(cx, in[1], lo, hi, step);
    return w ? lb_bind(cx, prim, 2, (lb_array *[]){in[0], w}, &mine) : NULL;
}

/* ---- combining phases ---------------------------------------------------- */

/* If all other phases are zero, spreads the remaining one. */
static lb_array *spread(lb_ctx *cx, const phases *p, int64_t i, lb_array *a)
{
    int64_t lo[LB_MAX_RANK] = {0}, hi[LB_MAX_RANK] = {0},
            between[LB_MAX_RANK] = {0};
    const lb_shape whole = lb_conv_shape(&p->v);
    for (int k = p->v.spaces - 1; k >= 0; i /= p->phases[k--]) {
        const int out = p->v.space[k].out;
        lo[out] = i % p->phases[k];
        between[out] = p->phases[k] - 1;
        hi[out] = whole.dim[out] - lo[out] -
                  ((p->piece.dim[out] - 1) * p->phases[k] + 1);
    }
    return lb_pad(cx, a, lb_scalar(cx, 0), lo, hi, between);
}

/* (phases, piece) -> (phases of axis 0, ..., piece) -> each axis followed by
 * its phases -> the result, cut to its size */
static lb_array *weave(lb_ctx *cx, const phases *p, lb_array *const *piece)
{
    lb_array *stack[MAX_PHASES];
    lb_shape apart = {.rank = 0}, joined = p->piece;
    int perm[LB_MAX_RANK], n = 0, axis[LB_MAX_RANK];
    const int64_t zero[LB_MAX_RANK] = {0};
    const lb_shape whole = lb_conv_shape(&p->v);
    for (int k = 0; k < joined.rank; k++)
        axis[k] = -1;
    for (int k = 0; k < p->v.spaces; k++) {
        if (p->phases[k] == 1) continue;
        axis[p->v.space[k].out] = apart.rank;
        apart.dim[apart.rank++] = p->phases[k];
        joined.dim[p->v.space[k].out] *= p->phases[k];
    }
    const int split = apart.rank;
    for (int k = 0; k < joined.rank; k++) {
        apart.dim[apart.rank++] = p->piece.dim[k];
        perm[n++] = split + k;
        if (axis[k] >= 0) perm[n++] = axis[k];
    }
    for (int i = 0; i < p->n; i++)
        stack[i] = lb_expand(cx, piece[i], 0);
    lb_array *a = lb_concatenate(cx, stack, p->n, 0);
    a = lb_reshape_permuted(cx, lb_reshape(cx, a, apart), perm, joined);
    return lb_slice(cx, a, zero, whole.dim, NULL);
}

lb_array *lb_conv_by_phases(lb_ctx *cx, const lb_prim *prim, lb_array **in,
                            const lb_conv_dims *dims)
{
    phases p;
    lb_array *piece[MAX_PHASES], *some = NULL;
    bool none[MAX_PHASES];
    int found = 0, last = 0;
    if (!lb_conv_read(cx, &in[0]->shape, &in[1]->shape, dims, &p.v))
        return NULL;
    if (!count(&p)) return lb_bind(cx, prim, 2, in, dims);
    for (int i = 0; i < p.n; i++) {
        piece[i] = run(cx, prim, &p, i, in, dims, &none[i]);
        if (none[i]) continue;
        if (!piece[i]) return NULL;
        some = piece[i];
        last = i;
        found++;
    }
    if (!found) return lb_bind(cx, prim, 2, in, dims);
    if (found == 1) return spread(cx, &p, last, some);
    for (int i = 0; i < p.n; i++)
        if (none[i]) piece[i] = lb_zeros(cx, some->dtype, p.piece);
    return weave(cx, &p, piece);
}
