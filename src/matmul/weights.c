/* weights.c - which operand is the weights, and where results go. */
#include "matmul/weights.h"

#include <string.h>

/* Packed, in any format. */
static bool is_packed(const lb_source *s)
{
    return s->matrix && !s->matrix->a->store->data;
}

/* Weights to be decoded. */
static bool has_others(const lb_product *p, lb_weights *w)
{
    const bool last = is_packed(p->b);
    if (p->precision < LB_PRECISION_FAST || (!last && !is_packed(p->a)))
        return false;
    *w = (lb_weights){.x = p->a, .w = p->b, .m = p->m, .n = p->n};
    if (!last)
        *w = (lb_weights){
            .x = p->b, .w = p->a, .m = p->n, .n = p->m, .swapped = true};
    w->coded.along = !w->w->across;
    return true;
}

bool lb_weights_of(const lb_product *p, const lb_cpu *cpu, lb_weights *w)
{
    *w = (lb_weights){.x = p->a, .w = p->b, .m = p->m, .n = p->n};
    if (lb_coded_of(cpu, w->w, &w->coded)) return true;
    *w = (lb_weights){
        .x = p->b, .w = p->a, .m = p->n, .n = p->m, .swapped = true};
    return lb_coded_of(cpu, w->w, &w->coded) || has_others(p, w);
}

/* Rows of n floats, ld apart, to where they belong. */
static void put_rows(const lb_product *p, const lb_work *to, int64_t batch,
                     int64_t i, int64_t m, int64_t j, int64_t n,
                     const float *tile, int64_t ld)
{
    if (p->in_place) {
        float *at =
            (float *)to->out->store->data + (batch * p->m + i) * p->n + j;
        for (int64_t r = 0; r < m; r++)
            memcpy(at + r * p->n, tile + r * ld, (size_t)n * sizeof *at);
    } else if (ld == n) {
        p->put(p, to, batch, i, m, j, n, tile);
    } else {
        for (int64_t r = 0; r < m; r++)
            p->put(p, to, batch, i + r, 1, j, n, tile + r * ld);
    }
}

void lb_weights_put(const lb_product *p, const lb_weights *w, const lb_work *to,
                    int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n,
                    const float *tile, int64_t ld, float *turned)
{
    if (!w->swapped) {
        put_rows(p, to, batch, i, m, j, n, tile, ld);
        return;
    }
    for (int64_t r = 0; r < m && m > 1; r++)
        for (int64_t c = 0; c < n; c++)
            turned[c * m + r] = tile[r * ld + c];
    put_rows(p, to, batch, j, n, i, m, m > 1 ? turned : tile, m);
}
