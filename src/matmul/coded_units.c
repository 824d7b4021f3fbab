/* coded_units.c - see coded_units.h. */
#include "matmul/coded_units.h"

static bool worth_splitting(const lb_product *p, const lb_weights *w,
                            const lb_cut *cut, const lb_units *b, int64_t units)
{
    const double each = (double)w->m * (double)w->n * (double)p->k /
                        ((double)b->bm * (double)b->bn);
    return p->batch * b->bm * b->bn < units && each >= 2.0 * (double)cut->work;
}

lb_units lb_units_of(const lb_product *p, const lb_call *c, const lb_weights *w,
                     const lb_cut *cut)
{
    const int64_t m = w->m, n = w->n;
    const int64_t units = c->threads > 1 ? cut->shares * c->threads : 1;
    lb_units b = {.bm = lb_ceil_div(m, cut->most_m),
                  .bn = lb_ceil_div(n, cut->most_n)};
    while (worth_splitting(p, w, cut, &b, units) &&
           (n / b.bn > cut->grain || m / b.bm > cut->least_m))
        if (n / b.bn > cut->grain)
            b.bn++;
        else
            b.bm++;
    b.mb = lb_ceil_div(m, b.bm);
    b.nb = lb_min_i64(n, lb_round_up(lb_ceil_div(n, b.bn), cut->grain));
    b.bm = lb_ceil_div(m, b.mb);
    b.bn = lb_ceil_div(n, b.nb);
    b.n = p->batch * b.bm * b.bn;
    return b;
}

lb_unit lb_units_at(const lb_units *b, const lb_weights *w, int64_t unit)
{
    const int64_t i0 = unit / b->bn % b->bm * b->mb, j0 = unit % b->bn * b->nb;
    return (lb_unit){
        .batch = unit / (b->bm * b->bn),
        .i0 = i0,
        .m = lb_min_i64(b->mb, w->m - i0),
        .j0 = j0,
        .n = lb_min_i64(b->nb, w->n - j0),
    };
}
