/* row_slab.c - see row_slab.h. */
#include "matmul/row_slab.h"

#include "kernels/turn.h"
#include "matmul/product.h"

enum {
    ROWS = 64, /* of a slab */
    DEPTH = 64 /* that is read and turned at a time: in L1 */
};

int64_t lb_row_slab_floats(const lb_source *x, int64_t n)
{
    const bool across = x->in_place ? x->rs == 1 && x->ks != 1 : x->across;
    return across ? ROWS * (n + DEPTH) : 0;
}

lb_row_slab lb_row_slab_of(const lb_source *x, const lb_cpu *cpu, int64_t batch,
                           int64_t end, void *room)
{
    return (lb_row_slab){
        .x = x,
        .cpu = cpu,
        .batch = batch,
        .end = end,
        .room = lb_row_slab_floats(x, 1) ? room : NULL,
    };
}

static void fill(lb_row_slab *s, int64_t i, int64_t k, int64_t n)
{
    const int64_t f = sizeof(float);
    float *const tmp = s->room + ROWS * n;
    s->first = i;
    s->rows = lb_min_i64(ROWS, s->end - i);
    s->k = k;
    s->n = n;
    for (int64_t at = 0, some; at < n; at += some) {
        some = lb_min_i64(DEPTH, n - at);
        const lb_block b =
            s->x->get(s->x, s->cpu, s->batch, i, s->rows, k + at, some, tmp);
        lb_turn(sizeof(float), b.p, b.ks * f, (char *)(s->room + at), n * f,
                some, s->rows);
    }
}

lb_block lb_row_slab_get(lb_row_slab *s, int64_t i, int64_t rows, int64_t k,
                         int64_t n, float *tmp)
{
    if (!s->room || rows > ROWS)
        return s->x->get(s->x, s->cpu, s->batch, i, rows, k, n, tmp);
    const bool there = k == s->k && n == s->n && i >= s->first &&
                       i + rows <= s->first + s->rows;
    if (!there) fill(s, i, k, n);
    return (lb_block){s->room + (i - s->first) * n, n, 1};
}
